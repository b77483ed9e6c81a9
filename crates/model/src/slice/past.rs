//! What a module's memory takes in the place of its L2, where memory is the ordering point. A request takes effect as it is
//! handed over, in the order of the events; its answer leaves when memory has it.

use super::request::waiter;
use super::{Item, Slice};
use crate::context::SliceContext;
use crate::departure::Departure;
use crate::message::Message;
use crate::packet::Packet;
use crate::watch::Contents;
use tombolo_protocol::{Coherence, Reply, Request, Requester};
use tombolo_types::{ModuleId, Ps};

impl<D: Contents> Slice<D> {
    /// Hands `request`, which `item` has become, to memory; returns when it is taken there.
    pub(super) fn pass_to_memory<C: Coherence>(
        &mut self,
        item: &Item<D>,
        request: Request<D>,
        leaves: Departure,
        here: &mut SliceContext<'_, '_, C, D>,
    ) -> Ps {
        let line = item.body.line;
        match request {
            Request::Read { mask, .. } => {
                let data = here.shared.memory.read(line);
                let done = here.read_memory(line, mask, leaves);
                self.answer_at(done, item, Reply::Fill { mask, data }, here);
                done
            }
            Request::Write { mask, data, .. } => self.write_memory(line, (mask, data), leaves, here),
            Request::Atomic { mask, update, returns, .. } => {
                let data = here.shared.memory.update(line, mask, update);
                let done = here.read_memory(line, mask, leaves);
                if returns {
                    self.answer_at(done, item, Reply::Old { data }, here);
                }
                // Read and write are asked for together: the update itself takes no time.
                let written = here.store_memory(line, mask, leaves);
                done.max(written)
            }
        }
    }

    /// Has an answer leave at `done`.
    fn answer_at<C: Coherence>(
        &mut self,
        done: Ps,
        item: &Item<D>,
        reply: Reply<D>,
        here: &mut SliceContext<'_, '_, C, D>,
    ) {
        let (line, to) = (item.body.line, waiter(item));
        let own = here.site.module;
        let (target, packet) = match (reply, to.from) {
            (Reply::Fill { mask, data }, Requester::Module(_)) if here.site.protocol.passes_reads() => {
                let seen = here.shared.flags.seen(line, to.flag);
                (to.origin.module, Packet::Answer { origin: to.origin, line, mask, data, seen, by: own })
            }
            (Reply::Fill { mask, data }, Requester::Module(module)) => {
                (module, Packet::Fill { register: to.asker, line, mask, data, by: own })
            }
            (Reply::Fill { .. }, Requester::Local) => panic!("{own}: a read of its own SMs has a miss register"),
            (Reply::Old { data }, _) => {
                let back = if to.origin.module == own { own } else { here.site.next_back(line, to.origin.module) };
                (back, Packet::Old { origin: to.origin, line, data, by: own })
            }
        };
        here.out.send(done, self.id, self.id, Message::Past { target, packet });
    }

    /// Memory has answered what passed the L2. A fill has a miss register of `target` waiting, behind which its module's
    /// stores wait too: what it carries, and which flags, is what memory holds now.
    pub fn answer_past<C: Coherence>(
        &mut self,
        target: ModuleId,
        packet: Packet<D>,
        here: &mut SliceContext<'_, '_, C, D>,
    ) {
        let leaves = Departure::at(here.out.now());
        match packet {
            Packet::Fill { register, line, mask, by, .. } => {
                for flag in here.shared.flags.news(line, target) {
                    here.send(leaves, target, Packet::Flag { line, flag });
                }
                let data = here.shared.memory.read(line);
                here.send(leaves, target, Packet::Fill { register, line, mask, data, by });
            }
            Packet::Old { origin, data, by, .. } if target == here.site.module => {
                let at = here.deliver(leaves, origin.sm, 1);
                let sm = here.site.layout.sm(target, origin.sm);
                let old = Message::Old { warp: origin.warp, result: origin.result, data, by };
                here.out.send(at, self.id, sm, old);
            }
            answer => {
                here.send(leaves, target, answer);
            }
        }
    }
}
