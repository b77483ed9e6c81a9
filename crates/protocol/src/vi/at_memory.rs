//! The home's L2 when memory is the ordering point: its actions on another module's request on the path to memory.

use super::{L2Transition, Rules};
use crate::broken_rule::BrokenRule;
use crate::coherence::{Coherence, LineState, MemoryAccess, OrderingPoint, Refusal, Reply, Request, ValidInvalid};
use crate::data::Data;
use crate::effects::Effects;
use crate::topology::Topology;
use tombolo_types::{Mask, Scope};

impl<R: Rules, T: Topology, D: Data, E: Effects<ValidInvalid, D>, const BREAKABLE: bool>
    L2Transition<'_, R, T, D, E, BREAKABLE>
{
    /// Handles another module's request at its line's home, if memory is the ordering point.
    pub(super) fn pass_to_memory(&mut self, request: Request<D>) -> Result<(), Refusal> {
        let by_l2 = self.protocol.ordering_point() == OrderingPoint::Memory { by_home_l2: true };
        if !by_l2 || !self.look_up_home_l2(request)? {
            self.effects.memory(MemoryAccess::Request(request));
        }
        Ok(())
    }

    /// Handles another module's request at its line's home, if this L2 is only snooped: the request goes on to memory,
    /// after the line's dirty bytes. A miss in flight was read before these bytes, and before a store, and would leave an
    /// older copy behind.
    pub(super) fn pass_by_snooped(&mut self, request: Request<D>) -> Result<(), Refusal> {
        let is_dirty = self.slot.line.is_some_and(|line| !line.dirty.is_empty());
        let changes = !matches!(request, Request::Read { .. });
        if self.slot.pending.is_some() && (is_dirty || changes) {
            return Err(Refusal::Stall);
        }
        if !self.broken(BrokenRule::SnoopKeepsDirty) {
            self.write_back();
        }
        if changes && !self.broken(BrokenRule::SnoopKeepsCopy) {
            self.slot.line = None;
        }
        self.effects.memory(MemoryAccess::Request(request));
        Ok(())
    }

    /// Performs the request's lookup in the home's L2 on the path to memory. Returns true if the request ends here.
    fn look_up_home_l2(&mut self, request: Request<D>) -> Result<bool, Refusal> {
        match request {
            Request::Read { mask, scope: Scope::Cta } => {
                // Dirty bytes stay unseen if the line lacks some requested bytes: no release has published them.
                let hit = self.slot.line.filter(|line| line.valid.contains(mask));
                if let Some(LineState { data, .. }) = hit {
                    self.effects.answer(Reply::Fill { mask, data });
                }
                return Ok(hit.is_some());
            }
            Request::Read { .. } => {}
            // The miss was read before these writes and would leave an older copy behind.
            Request::Write { .. } | Request::Atomic { .. } if self.slot.pending.is_some() => {
                return Err(Refusal::Stall);
            }
            Request::Write { .. } if self.broken(BrokenRule::WriteBackPassesHomeCopy) => {}
            Request::Atomic { .. } if self.broken(BrokenRule::AtomicPassesHomeCopy) => {}
            Request::Write { mask, data, .. } => self.update_clean_bytes(mask, data),
            Request::Atomic { mask, .. } => self.drop_clean(mask),
        }
        Ok(false)
    }

    /// Updates the home's L2 for bytes on the path to memory, if other modules may read the copy: clean bytes stay
    /// current. Dirty bytes remain unchanged, and go to memory later.
    fn update_clean_bytes(&mut self, mask: Mask, data: D) {
        if let Some(line) = &mut self.slot.line {
            line.data.merge(data, mask & line.valid & !line.dirty);
        }
    }

    /// Drops the clean bytes in the home's copy that are about to change in memory.
    fn drop_clean(&mut self, mask: Mask) {
        if let Some(line) = &mut self.slot.line {
            line.valid = line.valid & !mask | line.dirty;
            if line.valid.is_empty() {
                self.slot.line = None;
            }
        }
    }
}
