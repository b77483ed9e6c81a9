//! How one module sees pages that move: what it has been told of them, over where they were placed before the run.
//!
//! Each module has its own, changed by messages alone: so a run is the same at every thread count. A page that a module
//! was told nothing of is where it was placed, and is used there by its home alone, or by everybody.

use rustc_hash::FxHashMap;
use tombolo_protocol::paging::{Access, Mapping, Paging};
use tombolo_types::{ModuleId, Page};

/// The pages of a run as one module sees them.
#[derive(Clone, Debug)]
pub struct View {
    at: ModuleId,
    /// Whether a page may be used from afar until its module is told otherwise.
    everybody: bool,
    told: FxHashMap<Page, Mapping>,
}

impl View {
    /// The view of module `at` before the run; `everybody`: whether pages are used from afar.
    pub fn new(at: ModuleId, everybody: bool) -> View {
        View { at, everybody, told: FxHashMap::default() }
    }

    /// How the module sees a page that was placed at `placed`.
    #[inline]
    pub fn mapping(&self, page: Page, placed: ModuleId) -> Mapping {
        self.told.get(&page).copied().unwrap_or_else(|| self.untold(placed))
    }

    fn untold(&self, placed: ModuleId) -> Mapping {
        let access = if self.everybody || placed == self.at { Access::Write } else { Access::None };
        Mapping { home: placed, access }
    }

    /// From now on the module sees the page so; `None`: the page is the host's, and its home here stays what it was.
    pub fn map(&mut self, page: Page, placed: ModuleId, mapping: Option<Mapping>) {
        let told = self.mapping(page, placed).told(mapping);
        self.told.insert(page, told);
    }

    /// From now on the module makes no access to the page. What is on its way still finds its home.
    pub fn refuse(&mut self, page: Page, placed: ModuleId) {
        let refused = self.mapping(page, placed).refused();
        self.told.insert(page, refused);
    }

    /// All of the page has come to the module's memory.
    pub fn arrived(&mut self, page: Page, placed: ModuleId, rules: Paging) {
        let arrived = rules.arrived(self.at, self.mapping(page, placed));
        self.told.insert(page, arrived);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_where_it_was_placed_until_it_is_told_otherwise() {
        let mut view = View::new(ModuleId(1), false);
        assert_eq!(view.mapping(Page(0), ModuleId(0)), Mapping { home: ModuleId(0), access: Access::None });
        assert_eq!(view.mapping(Page(1), ModuleId(1)).access, Access::Write);
        view.map(Page(0), ModuleId(0), Some(Mapping { home: ModuleId(1), access: Access::Write }));
        assert_eq!(view.mapping(Page(0), ModuleId(0)).home, ModuleId(1));
        view.refuse(Page(0), ModuleId(0));
        assert_eq!(view.mapping(Page(0), ModuleId(0)), Mapping { home: ModuleId(1), access: Access::None });
        view.map(Page(1), ModuleId(1), None);
        assert_eq!(view.mapping(Page(1), ModuleId(1)), Mapping { home: ModuleId(1), access: Access::None });
    }

    #[test]
    fn where_everybody_may_use_it_a_page_is_used_from_afar() {
        let view = View::new(ModuleId(2), true);
        assert_eq!(view.mapping(Page(7), ModuleId(0)), Mapping { home: ModuleId(0), access: Access::Write });
    }
}
