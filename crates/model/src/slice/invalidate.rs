//! Invalidations at a slice: in bulk, of a region by its home, and by directory entries that are replaced.

use super::Slice;
use crate::actions::Actions;
use crate::cache::BulkClass;
use crate::context::SliceContext;
use crate::departure::Departure;
use crate::message::Packet;
use crate::mshr::EntryId;
use crate::watch::Contents;
use tombolo_protocol::coherence::Cause;
use tombolo_protocol::{Class, ClassSet, Coherence, Event, Sharers, Slot};
use tombolo_types::{Line, ModuleId, Ps};

impl<D: Contents> Slice<D> {
    /// Drops the lines of some classes; their misses on the way become stale. Returns when memory has taken what
    /// was written to it.
    pub fn invalidate_classes<C: Coherence>(&mut self, classes: ClassSet, here: &mut SliceContext<'_, '_, C, D>) -> Ps {
        let mut taken = here.out.now();
        if !self.has_dirty(classes) {
            for class in Class::ALL.into_iter().filter(|class| classes.contains(*class)) {
                self.cache.invalidate_class(BulkClass::new(class as u8));
            }
        } else {
            // One by one, for dirty bytes must not be lost.
            for line in self.lines_where(|class, _| classes.contains(class)) {
                taken = taken.max(self.invalidate_line(line, here));
            }
        }
        let entries: Vec<EntryId> = self.mshr.entries().collect();
        for entry in entries {
            let miss = self.mshr.get_mut(entry);
            if classes.contains(miss.class) {
                let mut pending = miss.pending();
                pending.invalidate();
                miss.set_pending(pending);
            }
        }
        taken
    }

    /// Sends the invalidations of a step.
    pub(super) fn send_invalidations<C: Coherence>(
        &mut self,
        line: Line,
        actions: &Actions<D>,
        leaves: Departure,
        here: &mut SliceContext<'_, '_, C, D>,
    ) {
        if actions.invalidate == 0 {
            return;
        }
        let count = u64::from(actions.invalidate.count_ones());
        match actions.cause {
            Cause::Store => {
                here.shared.stats.invalidations_by_store += count;
                here.shared.stats.stores_on_shared += 1;
            }
            Cause::DirectoryEviction => here.shared.stats.invalidations_by_eviction += count,
            Cause::Forwarded => here.shared.stats.invalidations_forwarded += count,
        }
        here.shared.stats.invalidation_bytes += count * here.site.weights.control().0;
        let cause = actions.original.unwrap_or(actions.cause);
        for target in (0..32).filter(|bit| actions.invalidate >> bit & 1 != 0).map(ModuleId) {
            let ticket = here.shared.drains.post_invalidation(here.site.is_beyond(target));
            here.send(leaves, target, Packet::Invalidate { line, cause, ticket });
        }
    }

    /// A home has invalidated a region.
    pub(super) fn invalidate<C: Coherence>(
        &mut self,
        line: Line,
        cause: Cause,
        ready: Ps,
        here: &mut SliceContext<'_, '_, C, D>,
    ) {
        let leaves = Departure::at(ready);
        let before = self.view(line, here);
        let mut slot = before;
        let mut actions = self.step(&mut slot, Event::InvalidateRegion, here);
        self.keep_entry(&before, &slot, leaves, here);
        actions.original = Some(cause);
        self.send_invalidations(line, &actions, leaves, here);
        for line in here.site.map.region_lines(line) {
            if self.cache.peek(line).is_none() {
                continue;
            }
            let before = self.view(line, here);
            let mut slot = before;
            self.step(&mut slot, Event::InvalidateLine, here);
            if slot.line.is_none() {
                match cause {
                    Cause::Store | Cause::Forwarded => here.shared.stats.lines_invalidated_by_store += 1,
                    Cause::DirectoryEviction => here.shared.stats.lines_invalidated_by_eviction += 1,
                }
            }
            self.keep_line(&before, &slot, leaves, here);
        }
    }

    /// Stores what became of the directory entry.
    pub(super) fn keep_entry<C: Coherence>(
        &mut self,
        before: &Slot<D>,
        after: &Slot<D>,
        leaves: Departure,
        here: &mut SliceContext<'_, '_, C, D>,
    ) {
        let line = after.line_id;
        match (before.entry, after.entry) {
            (None, None) => {}
            (Some(old), Some(new)) => {
                if old != new {
                    *self.directory.lookup(line).expect("the entry was just looked up") = new;
                }
            }
            (Some(_), None) => {
                self.directory.remove(line);
            }
            (None, Some(new)) => {
                if let Some(victim) = self.directory.insert(line, new) {
                    self.replace_entry(victim.region, victim.entry, leaves, here);
                }
            }
        }
    }

    pub(super) fn replace_entry<C: Coherence>(
        &mut self,
        line: Line,
        sharers: Sharers,
        leaves: Departure,
        here: &mut SliceContext<'_, '_, C, D>,
    ) {
        here.shared.stats.directory_evictions += 1;
        here.shared.stats.directory_evictions_shared += u64::from(!sharers.is_empty());
        let homes = here.site.homes(line);
        let mut slot = Slot { line_id: line, homes, line: None, pending: None, entry: Some(sharers) };
        let actions = self.step(&mut slot, Event::ReplaceEntry, here);
        self.send_invalidations(line, &actions, leaves, here);
    }
}
