//! Requests that bypass the L2: the module's memory serves these requests if memory is the protocol's ordering point.
//! A request takes effect when it is handed over, in event order; its reply departs when memory has completed the
//! access.

use super::request::waiter;
use super::{Slice, SliceRequest};
use crate::fabric::packet::Packet;
use crate::l2::departure::Departure;
use crate::message::{Flag, Message};
use crate::module::context::SliceContext;
use crate::observe::latency::{ModuleLatency, Note};
use crate::observe::value_probe::Contents;
use tombolo_protocol::{Coherence, Request, Requester};
use tombolo_types::{Mask, ModuleId, Ps};

impl<D: Contents> Slice<D> {
    /// Passes `request`, derived from `item`, to memory; returns its completion time.
    pub(super) fn pass_to_memory<C: Coherence>(
        &mut self,
        item: &SliceRequest<D>,
        request: Request<D>,
        leaves: Departure,
        here: &mut SliceContext<'_, '_, C, D>,
    ) -> Ps {
        let line = item.body.line;
        match request {
            Request::Read { mask, .. } => {
                let data = here.shared.memory.read(line);
                let read = here.read_memory(line, mask, leaves);
                let time = self.latency_until(leaves.time(), item, 0, here).and(read.time(leaves.time()));
                self.reply_at(read.done, item, (mask, data, time), here);
                read.done
            }
            Request::Write { mask, data, .. } => self.write_memory(line, (mask, data), leaves, here),
            Request::Atomic { mask, update, returns, .. } => {
                let data = here.shared.memory.update(line, mask, update);
                let done = here.read_memory(line, mask, leaves).done;
                if returns {
                    self.reply_old_at(done, item, data, here);
                }
                // Read and write are issued together: the update itself takes no time.
                let written = here.store_memory(line, mask, leaves);
                done.max(written)
            }
        }
    }

    /// Schedules a read's reply to depart at `done`, with its bytes and latency record.
    fn reply_at<C: Coherence>(
        &mut self,
        done: Ps,
        item: &SliceRequest<D>,
        (mask, data, time): (Mask, D, ModuleLatency),
        here: &mut SliceContext<'_, '_, C, D>,
    ) {
        let (line, to) = (item.body.line, waiter(item, here));
        let (own, register, inside) = (here.config.module, to.register, D::Note::of(time.into()));
        let (target, packet) = match to.from {
            Requester::Module(sender) if here.config.answers_issuer(sender, line) => {
                let seen = here.flags().seen(line, to.flag) != Flag::NONE;
                (to.module, Packet::Answer { sm: to.sm, register, line, mask, data, seen, by: own, inside })
            }
            Requester::Module(module) => {
                (module, Packet::Fill { register, line, mask, data, by: own, inside, link: D::Note::default() })
            }
            Requester::Local => panic!("{own}: a read of its own SMs has a miss register"),
        };
        here.out.send(done, self.id, self.id, Message::BypassReply { target, packet });
    }

    /// Schedules an atomic's reply, with the line's previous contents, to depart at `done`.
    fn reply_old_at<C: Coherence>(
        &mut self,
        done: Ps,
        item: &SliceRequest<D>,
        data: D,
        here: &mut SliceContext<'_, '_, C, D>,
    ) {
        let (line, origin, by) = (item.body.line, item.body.origin, here.config.module);
        let target = if origin.module == by { by } else { here.config.next_back(line, origin.module) };
        let packet = Packet::AtomicResult { origin, line, data, by };
        here.out.send(done, self.id, self.id, Message::BypassReply { target, packet });
    }

    /// Sends the reply for an access that bypassed the L2. A fill answers an MSHR in `target`, and its module's stores
    /// queue behind this MSHR. The reply therefore carries memory's current contents and flags.
    pub(crate) fn send_bypass_reply<C: Coherence>(
        &mut self,
        target: ModuleId,
        packet: Packet<D>,
        here: &mut SliceContext<'_, '_, C, D>,
    ) {
        let leaves = Departure::at(here.out.now());
        match packet {
            Packet::Fill { register, line, mask, by, inside, link, .. } => {
                for flag in here.flags_mut().news(line, target) {
                    here.send(leaves, target, Packet::Flag { line, flag });
                }
                let data = here.shared.memory.read(line);
                here.send(leaves, target, Packet::Fill { register, line, mask, data, by, inside, link });
            }
            Packet::AtomicResult { origin, data, by, .. } if target == here.config.module => {
                let old = Message::AtomicResult { warp: origin.warp, result: origin.result, data, responder: by };
                here.deliver(leaves, origin.sm, 1, |_| old);
            }
            answer => {
                here.send(leaves, target, answer);
            }
        }
    }
}
