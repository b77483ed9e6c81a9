//! Invalidations at a slice: in bulk, per region by its home, and after directory evictions.

use super::Slice;
use super::host::{ClassInvalidation, InvalidatedRegion, ReplacedEntry, SliceWithContext};
use crate::fabric::packet::Packet;
use crate::l2::departure::Departure;
use crate::module::actions::Actions;
use crate::module::context::SliceContext;
use crate::observe::value_probe::Contents;
use tombolo_protocol::coherence::InvalidationCause;
use tombolo_protocol::elision::LineSet;
use tombolo_protocol::{ClassSet, Coherence, LineSlot, Sharers, host};
use tombolo_types::{Line, Ps};

impl<D: Contents> Slice<D> {
    /// Invalidates all lines in the given classes and extent; pending misses become stale. Returns the time at which
    /// memory has accepted all written-back bytes.
    pub(crate) fn invalidate_classes<C: Coherence>(
        &mut self,
        classes: ClassSet,
        extent: Option<&LineSet>,
        here: &mut SliceContext<'_, '_, C, D>,
    ) -> Ps {
        let taken = here.out.now();
        let mut lines =
            ClassInvalidation { here: SliceWithContext { slice: self, context: here }, classes, extent, taken };
        host::invalidate_bulk(&mut lines);
        lines.taken
    }

    /// Sends the invalidations produced in a protocol step.
    #[inline]
    pub(super) fn send_invalidations<C: Coherence>(
        &mut self,
        line: Line,
        actions: &Actions<D>,
        leaves: Departure,
        here: &mut SliceContext<'_, '_, C, D>,
    ) {
        if !actions.invalidate.is_empty() {
            self.send_each_invalidation(line, actions, leaves, here);
        }
    }

    #[inline(never)]
    fn send_each_invalidation<C: Coherence>(
        &mut self,
        line: Line,
        actions: &Actions<D>,
        leaves: Departure,
        here: &mut SliceContext<'_, '_, C, D>,
    ) {
        let count = u64::from(actions.invalidate.count());
        match actions.cause {
            InvalidationCause::Store => {
                here.shared.stats.invalidations_by_store += count;
                here.shared.stats.stores_on_shared += 1;
            }
            InvalidationCause::DirectoryEviction => here.shared.stats.invalidations_by_eviction += count,
            InvalidationCause::Forwarded => here.shared.stats.invalidations_forwarded += count,
        }
        here.shared.stats.invalidation_bytes += count * here.config.packet_sizes.control().0;
        let cause = actions.original.unwrap_or(actions.cause);
        for target in actions.invalidate {
            let ticket = here.uncore.drains.post_invalidation(here.config.is_beyond(target));
            here.send(leaves, target, Packet::Invalidate { line, cause, ticket });
        }
    }

    /// Handles an invalidation for a region, received from the region's home.
    pub(super) fn invalidate<C: Coherence>(
        &mut self,
        line: Line,
        cause: InvalidationCause,
        ready: Ps,
        here: &mut SliceContext<'_, '_, C, D>,
    ) {
        let (config, leaves) = (here.config, Departure::at(ready));
        let here = SliceWithContext { slice: self, context: here };
        let mut region = InvalidatedRegion { here, line, cause, leaves };
        host::invalidate_region(&config.protocol, &mut region, line, config.map.region_lines(line));
    }

    /// Stores a changed directory entry after a protocol step, possibly evicting another entry.
    #[inline]
    pub(super) fn keep_entry<C: Coherence>(
        &mut self,
        before: &LineSlot<D>,
        after: &LineSlot<D>,
        leaves: Departure,
        here: &mut SliceContext<'_, '_, C, D>,
    ) {
        if before.entry != after.entry {
            self.change_entry(after.line_id, (before.entry, after.entry), leaves, here);
        }
    }

    #[inline(never)]
    fn change_entry<C: Coherence>(
        &mut self,
        line: Line,
        change: (Option<Sharers>, Option<Sharers>),
        leaves: Departure,
        here: &mut SliceContext<'_, '_, C, D>,
    ) {
        match change {
            (None, None) => {}
            (Some(_), Some(new)) => {
                *self.directory.lookup(line).expect("the entry was just looked up") = new;
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
        let config = here.config;
        let here = SliceWithContext { slice: self, context: here };
        let mut region = ReplacedEntry { here, line, sharers, leaves };
        host::replace_entry(&config.protocol, &mut region, config.map.region_lines(line));
    }
}
