//! Packet sizes on the links.

use crate::fabric::packet::Payload;
use tombolo_machine::MachineConfig;
use tombolo_types::{Bytes, Mask, Ps, Serializer};

/// Number of possible grain counts per line, including zero.
const GRAINS: usize = Mask::ALL.grains() as usize + 1;

/// Size in bytes for each kind of packet, in whole flits.
#[derive(Clone, Debug)]
pub struct PacketSizes {
    read: Bytes,
    control: Bytes,
    /// Header plus data, indexed by grains carried.
    data: [Bytes; GRAINS],
    /// Header plus data plus mask, indexed by grains carried.
    partial: [Bytes; GRAINS],
    /// Time to enter an SM, indexed by grains carried.
    ingress_time: [Ps; GRAINS],
    /// Sizes: a line, the maximum payload per copy packet, and a packet header.
    line: u64,
    payload: u64,
    header: u64,
    flit: u64,
}

impl PacketSizes {
    /// Packet sizes on a machine.
    pub fn new(machine: &MachineConfig) -> PacketSizes {
        let sizes = &machine.messages;
        let flits = |bytes: u64| Bytes(bytes.next_multiple_of(sizes.flit_bytes));
        let ingress_time = Serializer::new(machine.crossbar.rate);
        let grain = machine.line.grain();
        let data = |grains: usize| sizes.header_bytes.0 + grains as u64 * machine.line.grain();
        PacketSizes {
            read: flits(sizes.request_bytes.0),
            control: flits(sizes.control_bytes.0),
            data: std::array::from_fn(|grains| flits(data(grains))),
            partial: std::array::from_fn(|grains| flits(data(grains) + sizes.mask_bytes.0)),
            ingress_time: std::array::from_fn(|grains| ingress_time.span(Bytes(grains as u64 * grain))),
            line: machine.line.bytes(),
            payload: machine.copy.payload.0,
            header: sizes.header_bytes.0,
            flit: sizes.flit_bytes,
        }
    }

    /// Size of the reply to a read for the bytes in `mask`.
    #[inline]
    pub(crate) fn answer(&self, mask: Mask) -> Bytes {
        self.data[mask.grains() as usize]
    }

    /// Time for `grains` grains to enter an SM.
    #[inline]
    pub(crate) fn ingress_time(&self, grains: u32) -> Ps {
        self.ingress_time[grains as usize]
    }

    /// Size of an invalidation, an acknowledgment, or a plan's phase.
    pub fn control(&self) -> Bytes {
        self.control
    }

    /// Total size of `lines` lines in a copy, split into packets of the copy's own size.
    pub(crate) fn copied(&self, lines: u64) -> Bytes {
        let bytes = lines * self.line;
        let packet = |payload: u64| (payload + self.header).next_multiple_of(self.flit);
        let rest = bytes % self.payload;
        Bytes(bytes / self.payload * packet(self.payload) + if rest > 0 { packet(rest) } else { 0 })
    }

    /// Packet size with this payload.
    #[inline]
    pub(crate) fn of(&self, payload: Payload) -> Bytes {
        match payload {
            Payload::Read => self.read,
            Payload::Grains(grains) => self.data[grains as usize],
            Payload::Masked(grains) => self.partial[grains as usize],
            Payload::Control => self.control,
            Payload::Lines(lines) => self.copied(lines.into()),
            Payload::Block(grains, masks) => {
                let bytes = u64::from(grains) * (self.line / u64::from(Mask::ALL.grains())) + u64::from(masks);
                Bytes((self.header + bytes).next_multiple_of(self.flit))
            }
            Payload::Nothing => Bytes(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fabric::packet::Packet;
    use crate::l2::mshr::EntryId;
    use crate::l2::outstanding::Tickets;
    use crate::message::{Flag, LineRequest, ReplyDestination};
    use tombolo_protocol::Request;
    use tombolo_types::{Line, ModuleId, Scope, SmId};

    /// Size of an SM's request on a machine whose flits have 16 bytes, like headers, requests and masks.
    fn bytes(request: Request<()>) -> u64 {
        let machine = tombolo_machine::machine("hmg-4x4").and_then(|machine| machine.check()).expect("a preset");
        let register = EntryId::default();
        let origin = ReplyDestination { module: ModuleId(0), sm: SmId(0), warp: 0, result: 0, register };
        let (flag, tickets) = (Flag::NONE, Tickets::default());
        let body = LineRequest {
            line: Line(1),
            request,
            origin,
            flag,
            tickets,
            requester_mshr: register,
            is_published: false,
        };
        PacketSizes::new(&machine).of(Packet::Request(body).facts().payload).0
    }

    #[test]
    fn a_store_carries_what_it_writes_and_which_bytes_those_are() {
        let write = |mask| bytes(Request::Write { mask, scope: Scope::Cta, data: (), tracked: true });
        assert_eq!(write(Mask::ALL), 16 + 128, "a complete line needs no mask");
        assert_eq!(write(Mask(1)), 16 + 16 + 16, "a word of four bytes takes a flit");
        assert_eq!(write(Mask(u32::MAX >> 1)), 16 + 128 + 16, "124 bytes, the mask, and a flit begun");
    }

    #[test]
    fn a_read_weighs_the_same_whatever_it_asks_for() {
        let read = |mask| bytes(Request::Read { mask, scope: Scope::Sys });
        assert_eq!((read(Mask::ALL), read(Mask(1))), (16, 16));
    }
}
