//! A module's view of moving pages: all received mappings, on top of the placement before the run.
//!
//! Each module has its own view, changed only by messages, so a run gives equal results at every thread count. A page
//! without received mappings is mapped according to [`Paging::placed`].

use rustc_hash::FxHashMap;
use tombolo_protocol::paging::{Mapping, PagePermission, Paging};
use tombolo_types::{ModuleId, ModuleSet, Page};

/// Subscriber sets, each stored once: most pages share a few sets.
#[derive(Clone, Debug)]
struct SubscriberSets {
    sets: Vec<ModuleSet>,
    numbers: FxHashMap<ModuleSet, u32>,
}

impl SubscriberSets {
    /// Only the empty set, with number 0.
    fn new() -> SubscriberSets {
        SubscriberSets { sets: vec![ModuleSet::NONE], numbers: FxHashMap::from_iter([(ModuleSet::NONE, 0)]) }
    }

    fn number(&mut self, set: ModuleSet) -> u32 {
        *self.numbers.entry(set).or_insert_with(|| {
            self.sets.push(set);
            self.sets.len() as u32 - 1
        })
    }
}

/// A [`Mapping`] whose subscribers are stored by number. Compact, because every module has an entry for each moving
/// page.
#[derive(Clone, Copy, Debug)]
struct StoredMapping {
    home: ModuleId,
    access: PagePermission,
    subscribers: u32,
}

/// All pages in a run from one module's viewpoint.
#[derive(Clone, Debug)]
pub struct View {
    at: ModuleId,
    rules: Paging,
    /// The mapping of a page without received mappings, by the module at which the page is placed.
    initial: Vec<Mapping>,
    mapped: FxHashMap<Page, StoredMapping>,
    subscribers: SubscriberSets,
    /// Number of changes to the mappings.
    changes: u64,
}

impl View {
    /// View for module `at` among `modules` modules, before the run.
    pub fn new(at: ModuleId, modules: u8, rules: Paging) -> View {
        let initial = |placed| {
            let mapping = rules.placed(placed, modules).mapping(at);
            mapping.unwrap_or_else(|| Mapping::at(placed, PagePermission::None))
        };
        View {
            at,
            rules,
            initial: (0..=modules).map(|placed| initial(ModuleId(placed))).collect(),
            mapped: FxHashMap::default(),
            subscribers: SubscriberSets::new(),
            changes: 0,
        }
    }

    /// Number of changes to the mappings so far.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    /// The module's mapping for a page placed at `placed`: the last received mapping, or the one that follows from the
    /// placement.
    #[inline]
    pub(crate) fn mapping(&self, page: Page, placed: ModuleId) -> Mapping {
        match self.mapped.get(&page) {
            Some(&StoredMapping { home, access, subscribers }) => {
                Mapping { home, access, subscribers: self.subscribers.sets[subscribers as usize] }
            }
            None => self.initial[usize::from(placed.0)],
        }
    }

    fn set(&mut self, page: Page, Mapping { home, access, subscribers }: Mapping) {
        self.changes += 1;
        let subscribers = self.subscribers.number(subscribers);
        self.mapped.insert(page, StoredMapping { home, access, subscribers });
    }

    /// Sets the module's mapping for the page. `None`: the page belongs to the host, and the home stays unchanged in
    /// this view.
    pub(crate) fn map(&mut self, page: Page, placed: ModuleId, mapping: Option<Mapping>) {
        let told = self.mapping(page, placed).updated(mapping);
        self.set(page, told);
    }

    /// Stops accesses by the module to the page. Accesses in flight still find the page's home.
    pub(crate) fn refuse(&mut self, page: Page, placed: ModuleId) {
        let refused = self.mapping(page, placed).unmapped();
        self.set(page, refused);
    }

    /// Notes that the whole page has arrived in the module's memory.
    pub(crate) fn arrived(&mut self, page: Page, placed: ModuleId) {
        let arrived = self.rules.arrived(self.at, self.mapping(page, placed));
        self.set(page, arrived);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_where_it_was_placed_until_it_is_told_otherwise() {
        let mut view = View::new(ModuleId(1), 3, Paging::default());
        assert_eq!(view.mapping(Page(0), ModuleId(0)), Mapping::at(ModuleId(0), PagePermission::None));
        assert_eq!(view.mapping(Page(1), ModuleId(1)).access, PagePermission::Write);
        view.map(Page(0), ModuleId(0), Some(Mapping::at(ModuleId(1), PagePermission::Write)));
        assert_eq!(view.mapping(Page(0), ModuleId(0)).home, ModuleId(1));
        view.refuse(Page(0), ModuleId(0));
        assert_eq!(view.mapping(Page(0), ModuleId(0)), Mapping::at(ModuleId(1), PagePermission::None));
        view.map(Page(1), ModuleId(1), None);
        assert_eq!(view.mapping(Page(1), ModuleId(1)), Mapping::at(ModuleId(1), PagePermission::None));
    }

    #[test]
    fn a_page_is_published_to_whom_the_module_was_told_last() {
        let mut view = View::new(ModuleId(1), 200, Paging::default());
        let published = |last: u8| Mapping {
            subscribers: [1, last].map(ModuleId).into_iter().collect(),
            ..Mapping::at(ModuleId(1), PagePermission::Write)
        };
        for (page, last) in [(0, 7), (1, 199), (2, 7), (0, 42)] {
            view.map(Page(page), ModuleId(1), Some(published(last)));
        }
        let seen = |page| view.mapping(Page(page), ModuleId(1));
        assert_eq!([0, 1, 2].map(seen), [42, 199, 7].map(published));
        assert_eq!(view.subscribers.sets.len(), 4, "each set once, including the empty set");
    }

    #[test]
    fn where_everybody_may_use_it_a_page_is_used_from_afar() {
        let view = View::new(ModuleId(2), 3, Paging { everybody: true, ..Paging::default() });
        assert_eq!(view.mapping(Page(7), ModuleId(0)), Mapping::at(ModuleId(0), PagePermission::Write));
    }
}
