//! The home's L2 where memory is the ordering point: what a request of another module does there on its way to memory.

use super::{Rules, Visit};
use crate::broken_rule::BrokenRule;
use crate::coherence::{Coherence, LineState, MemoryAccess, OrderingPoint, Refusal, Reply, Request, ValidInvalid};
use crate::data::Data;
use crate::node::Effects;
use crate::topology::Topology;
use tombolo_types::{Mask, Scope};

impl<R: Rules, T: Topology, D: Data, E: Effects<ValidInvalid, D>, const BREAKABLE: bool>
    Visit<'_, R, T, D, E, BREAKABLE>
{
    /// A request of another module at its line's home, where memory is the ordering point.
    pub(super) fn pass_home(&mut self, request: Request<D>) -> Result<(), Refusal> {
        let by_l2 = self.protocol.ordering_point() == OrderingPoint::Memory { by_home_l2: true };
        if !by_l2 || !self.is_met_on_the_way(request)? {
            self.effects.memory(MemoryAccess::Request(request));
        }
        Ok(())
    }

    /// What such a request does in the home's L2 on its way to memory. Whether it ends here.
    fn is_met_on_the_way(&mut self, request: Request<D>) -> Result<bool, Refusal> {
        match request {
            Request::Read { mask, scope: Scope::Cta } => {
                // Dirty bytes beside others that are not here stay unseen: nobody has released them.
                let hit = self.slot.line.filter(|line| line.valid.contains(mask));
                if let Some(LineState { data, .. }) = hit {
                    self.effects.answer(Reply::Fill { mask, data });
                }
                return Ok(hit.is_some());
            }
            Request::Read { .. } => {}
            // The miss was read before them: it would leave an older copy behind.
            Request::Write { .. } | Request::Atomic { .. } if self.slot.pending.is_some() => {
                return Err(Refusal::Stall);
            }
            Request::Write { .. } if self.broken(BrokenRule::WriteBackPassesHomeCopy) => {}
            Request::Atomic { .. } if self.broken(BrokenRule::AtomicPassesHomeCopy) => {}
            Request::Write { mask, data, .. } => self.update_copy(mask, data),
            Request::Atomic { mask, .. } => self.drop_clean(mask),
        }
        Ok(false)
    }

    /// Bytes that pass the home's L2 on their way to memory, which others may read here: its clean ones stay current. Its
    /// dirty ones stay what they are, and go to memory later.
    fn update_copy(&mut self, mask: Mask, data: D) {
        if let Some(line) = &mut self.slot.line {
            line.data.merge(data, mask & line.valid & !line.dirty);
        }
    }

    /// Clean bytes of the home's copy that are about to change in memory go.
    fn drop_clean(&mut self, mask: Mask) {
        if let Some(line) = &mut self.slot.line {
            line.valid = line.valid & !mask | line.dirty;
            if line.valid.is_empty() {
                self.slot.line = None;
            }
        }
    }
}
