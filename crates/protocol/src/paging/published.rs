//! Subscriber changes for published pages: a module subscribes, some modules leave, or a single copy remains.
//!
//! Every module that uses the page unmaps it first, because every module may publish to it.

use super::{BrokenPaging, Holder, PageTransition, Paging, PlannedStep, Residence};
use crate::topology::ModuleSet;
use tombolo_types::ModuleId;

/// A page's initial sharing, until an event changes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Start {
    /// The page has a single copy, and is not published.
    #[default]
    OneCopy,
    /// The page is published to its home only: a module may subscribe when it loads from the page.
    PublishedToHome,
    /// The page is published to every module; the lowest subscriber serves modules that leave.
    PublishedToAll,
}

/// The module notified about a change before all other modules: the home, if the page is or was published.
pub(super) fn home_told_first(now: &Residence, after: &Residence) -> Option<ModuleId> {
    after.home.module().filter(|_| now.published || after.published)
}

impl Paging {
    /// Collapses a published page to a single copy and unpublishes it: the writer's copy if it has a copy, else the
    /// lowest module's.
    pub(super) fn collapse_change(&self, now: &Residence, writer: ModuleId, modules: u8) -> PageTransition {
        let goes_to_writer = now.holders().contains(writer) || self.is_broken(BrokenPaging::CollapsedToWriter);
        let kept = if goes_to_writer { Some(writer) } else { now.holders().lowest() };
        let kept = kept.map_or(now.home, Holder::Module);
        let given_up = now.holders().difference(kept.set());
        let after = Residence::at(kept, ModuleSet::first(modules));
        self.ordered_change(now, [Some(self.unmap_step(now)), Some(PlannedStep::WriteBack(given_up)), None], after)
    }

    /// The unmap step: every user of a published page unmaps it.
    fn unmap_step(&self, now: &Residence) -> PlannedStep {
        PlannedStep::Unmap(if self.is_broken(BrokenPaging::PublishersKept) { now.holders() } else { now.mapped })
    }

    /// Subscribes a module to a published page.
    pub(super) fn subscribe_change(&self, now: &Residence, home: ModuleId, reader: ModuleId) -> PageTransition {
        let after = Residence { copies: now.copies.union(ModuleSet::only(reader)), ..*now };
        let copy = PlannedStep::Copy { from: now.home, to: Holder::Module(reader) };
        let written = PlannedStep::WriteBack(ModuleSet::only(home));
        self.ordered_change(now, [Some(self.unmap_step(now)), Some(written), Some(copy)], after)
    }

    /// Removes subscribers from a published page.
    pub(super) fn leave_change(&self, now: &Residence, leaving: ModuleSet, ends: bool) -> Option<PageTransition> {
        let Holder::Module(home) = now.home else { return None };
        let stay = now.subscribers().difference(leaving);
        let stay = if stay.is_empty() { now.home.set() } else { stay };
        let gone = now.holders().difference(stay);
        let published = !(ends && stay.count() == 1);
        if !now.published || (gone.is_empty() && published) {
            return None;
        }
        let home = if stay.contains(home) { home } else { stay.lowest()? };
        let copies = stay.difference(ModuleSet::only(home));
        let after = Residence { home: Holder::Module(home), copies, mapped: now.mapped, published };
        Some(self.ordered_change(now, [Some(self.unmap_step(now)), Some(PlannedStep::WriteBack(gone)), None], after))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{A, B, C, set};
    use super::super::{AttemptedAccess, ChangeReason, ChangeStep, Mapping, PagePermission};
    use super::*;

    fn page(subscribers: &[ModuleId]) -> Residence {
        Residence::published(subscribers[0], set(subscribers), 3)
    }

    /// The map steps: first for the home, then for all other modules.
    fn map(after: Residence) -> [ChangeStep; 2] {
        let home = after.home.set();
        [home, ModuleSet::first(3).difference(home)].map(|modules| ChangeStep::Map { after, modules })
    }

    fn change(rules: Paging, now: Residence, wish: ChangeReason) -> Option<Vec<ChangeStep>> {
        rules.change(&now, wish, 3).map(|change| change.steps().collect())
    }

    #[test]
    fn every_module_unmaps_a_page_whose_subscribers_change() {
        let all = ModuleSet::first(3);
        let leave = |modules, ends| ChangeReason::Leave { modules: set(modules), ends };
        let left = change(Paging::default(), page(&[A, B, C]), leave(&[A], true)).expect("one leaves");
        let [home, others] = map(page(&[B, C]));
        assert_eq!(left, [ChangeStep::Unmap(all), ChangeStep::WriteBack(set(&[A])), home, others]);
        let one = change(Paging::default(), page(&[A, B]), leave(&[A], true)).expect("one leaves");
        assert_eq!(one[2..], map(Residence::at(Holder::Module(B), all)), "one is left, and publishes no more");
        let last = change(Paging::default(), page(&[A, B]), leave(&[A, B], false)).expect("one leaves");
        assert_eq!(last[2..], map(page(&[A])), "the last does not leave");
        assert_eq!(change(Paging::default(), page(&[A]), leave(&[A], false)), None);
        assert_eq!(change(Paging::default(), Residence::at(Holder::Module(A), all), leave(&[A], true)), None);
    }

    #[test]
    fn a_reader_subscribes_if_the_rules_say_so() {
        let (rules, load) = (
            Paging { subscribes: true, ..Paging::default() },
            ChangeReason::Fault { module: C, wanted: AttemptedAccess::Load },
        );
        assert_eq!(change(Paging::default(), page(&[A, B]), load), None, "it loads from afar");
        let copy = ChangeStep::Copy { from: Holder::Module(A), to: Holder::Module(C) };
        let [home, others] = map(page(&[A, B, C]));
        let steps = [ChangeStep::Unmap(ModuleSet::first(3)), ChangeStep::WriteBack(set(&[A])), copy, home, others];
        assert_eq!(change(rules, page(&[A, B]), load), Some(steps.to_vec()));
        let store = ChangeReason::Fault { module: C, wanted: AttemptedAccess::Store };
        assert_eq!(change(rules, page(&[A, B]), store), None, "who stores does not subscribe");
    }

    #[test]
    fn a_system_store_leaves_one_copy_which_is_the_copy_of_the_writer_if_any() {
        let store = |module| ChangeReason::Fault { module, wanted: AttemptedAccess::SystemStore };
        let all = ModuleSet::first(3);
        let own = change(Paging::default(), page(&[A, B]), store(B)).expect("it collapses");
        let collapsed = |gives_up, home| {
            let [first, others] = map(Residence::at(Holder::Module(home), all));
            [ChangeStep::Unmap(all), ChangeStep::WriteBack(set(&[gives_up])), first, others]
        };
        assert_eq!(own, collapsed(A, B));
        let other = change(Paging::default(), page(&[B, A]), store(C)).expect("it collapses");
        assert_eq!(other, collapsed(B, A));
        assert_eq!(change(Paging::default(), Residence::at(Holder::Module(A), all), store(B)), None, "it has");
    }

    #[test]
    fn the_mapping_of_a_module_names_its_subscribers_and_its_home() {
        let seen = |module| page(&[B, C]).mapping(module).expect("it has a home");
        let both = set(&[B, C]);
        assert_eq!(seen(A), Mapping { subscribers: both, ..Mapping::at(B, PagePermission::Write) });
        assert_eq!(seen(C), Mapping { subscribers: both, ..Mapping::at(C, PagePermission::Write) });
    }
}
