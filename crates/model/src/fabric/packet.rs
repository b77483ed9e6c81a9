//! Packets between modules on the links, with the facts that ports and links need to know. A packet is plain data; its
//! receiver, traffic class and payload size follow from its kind.

use crate::fabric::link::Traffic;
use crate::l2::block::MessageId;
use crate::l2::credits::Generation;
use crate::l2::mshr::EntryId;
use crate::message::{Flag, LineRequest, ReplyDestination};
use crate::observe::latency::PackedLatency;
use crate::observe::value_probe::Contents;
use tombolo_protocol::client_home::MessageClass;
use tombolo_protocol::coherence::InvalidationCause;
use tombolo_protocol::{Action, Request};
use tombolo_types::{ComponentId, Line, Mask, ModuleId, Page, SmId};

/// A packet from one module to another: the content in a message on the links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packet<D: Contents> {
    /// Towards a home, or towards a subscriber with bytes stored to a published page.
    Request(LineRequest<D>),
    /// Towards a home: the sender has dropped the line's region.
    Downgrade {
        /// Any line in the region.
        line: Line,
    },
    /// From a home: the reply to a read.
    Fill {
        /// The MSHR waiting for the reply.
        register: EntryId,
        /// The line.
        line: Line,
        /// Bytes carried.
        mask: Mask,
        /// Contents.
        data: D,
        /// Module that answered: the sender, or a module further up.
        by: ModuleId,
        /// Time inside modules, from the request's arrival to the departure.
        inside: D::Note<PackedLatency>,
        /// Time on links, in picoseconds.
        link: D::Note<u32>,
    },
    /// From a home, ahead of a fill for the line: the copy in this fill shows the flag.
    Flag {
        /// The line.
        line: Line,
        /// The flag.
        flag: Flag,
    },
    /// From a home: the reply to a read forwarded by the SM's L2, addressed to the SM.
    Answer {
        /// The SM.
        sm: SmId,
        /// The SM's MSHR that waits for the reply.
        register: EntryId,
        /// The line.
        line: Line,
        /// Bytes carried.
        mask: Mask,
        /// Contents.
        data: D,
        /// Set if the flag polled by the read was seen.
        seen: bool,
        /// Module that answered.
        by: ModuleId,
        /// Time inside the home, and at the slice that forwarded the read.
        inside: D::Note<PackedLatency>,
    },
    /// From a home: the line's region is no longer current.
    Invalidate {
        /// Any line in the region.
        line: Line,
        /// Original cause of the invalidation.
        cause: InvalidationCause,
        /// The sender's ticket, returned with the acknowledgment.
        ticket: Generation,
    },
    /// Result of an atomic, for an SM. Returns through the GPU home if the atomic came along this path.
    AtomicResult {
        /// Requester of the atomic.
        origin: ReplyDestination,
        /// Line of the atomic.
        line: Line,
        /// Contents before the atomic.
        data: D,
        /// Module that performed the atomic.
        by: ModuleId,
    },
    /// A phase of an acquire or release.
    Act {
        /// The action.
        action: Action,
        /// Component that collects the acknowledgments.
        collector: ComponentId,
        /// The collector's number for this collection.
        collection: u32,
    },
    /// Acknowledgment for [`Packet::Act`].
    PhaseDone {
        /// Number of the collection.
        collection: u32,
    },
    /// Part of a copy between memories.
    Chunk(Chunk),
    /// A message between two slices with blocks.
    BlockMessage(BlockMessage),
}

/// A message between slices about a block: its id in the `Mailbox`, with its payload size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockMessage {
    /// First line in the block.
    pub line: Line,
    /// Id of the message.
    pub(crate) id: MessageId,
    /// Kinds of sender and receiver.
    pub class: MessageClass,
    /// Grains of line data carried.
    pub grains: u32,
    /// Bytes of masks carried.
    pub(crate) masks: u16,
}

/// Consecutive lines of a copy. Their contents travel as side data, outside the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// The copy, for its requester.
    pub(crate) copy: CopyName,
    /// First line.
    pub first: Line,
    /// Number of lines.
    pub lines: u16,
    /// Set for the last chunk in its copy.
    pub(crate) is_last: bool,
}

/// Name for a copy, known to the requester.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CopyName {
    /// Copy of a moving page.
    Page(Page),
    /// Copy from the program's schedule, by index in the schedule.
    Listed(u32),
}

/// Component in the target module that receives a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Receiver {
    /// The slice of a line.
    Slice(Line),
    /// An SM.
    Sm(SmId),
    /// The requesting SM if the target is its module; on intermediate modules, the line's slice.
    Origin(ReplyDestination, Line),
    /// The controller.
    Controller,
    /// The copy engine.
    CopyEngine,
}

/// Content of a packet, for its size on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Payload {
    /// Request of a read.
    Read,
    /// A header plus this number of grains.
    Grains(u32),
    /// Some bytes of a line with their mask: this number of grains.
    Masked(u32),
    /// This number of lines in a copy, in packets sized for copies.
    Lines(u16),
    /// Grains in a block and bytes in masks, in these numbers, behind one header.
    Block(u32, u16),
    /// An invalidation, an acknowledgment, or a plan's phase.
    Control,
    /// No bytes: the size is included in the fill that follows.
    Nothing,
}

impl Payload {
    /// Payload of a request.
    #[inline]
    pub(crate) fn of<D: Contents>(request: &Request<D>) -> Payload {
        match *request {
            Request::Read { .. } => Payload::Read,
            Request::Write { mask, .. } | Request::Atomic { mask, .. } => Payload::store(mask),
        }
    }

    /// Payload for a published request: whole lines for stores; atomics are sent unchanged. Source: GPS, section 7.5:
    /// transfers are at the granularity of lines.
    pub(crate) fn published<D: Contents>(request: &Request<D>) -> Payload {
        match *request {
            Request::Write { .. } => Payload::store(Mask::ALL),
            Request::Read { .. } | Request::Atomic { .. } => Payload::of(request),
        }
    }

    /// Payload for a store with these bytes in a line.
    #[inline]
    pub(crate) fn store(mask: Mask) -> Payload {
        let carried = if mask == Mask::ALL { Payload::Grains } else { Payload::Masked };
        carried(mask.grains())
    }
}

/// Facts about a packet that ports and links need to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PacketFacts {
    /// Receiving component.
    pub(crate) receiver: Receiver,
    /// Traffic class on a link.
    pub(crate) traffic: Traffic,
    /// Content, for the size.
    pub(crate) payload: Payload,
}

impl<D: Contents> Packet<D> {
    /// Facts about this packet for ports and links.
    #[inline]
    pub(crate) fn facts(&self) -> PacketFacts {
        let (receiver, payload) = match *self {
            Packet::Request(LineRequest { line, request, is_published: true, .. }) => {
                (Receiver::Slice(line), Payload::published(&request))
            }
            Packet::Request(LineRequest { line, request, .. }) => (Receiver::Slice(line), Payload::of(&request)),
            Packet::Fill { line, mask, .. } => (Receiver::Slice(line), Payload::Grains(mask.grains())),
            Packet::Answer { sm, mask, .. } => (Receiver::Sm(sm), Payload::Grains(mask.grains())),
            Packet::AtomicResult { origin, line, .. } => (Receiver::Origin(origin, line), Payload::Grains(1)),
            Packet::Flag { line, .. } => (Receiver::Slice(line), Payload::Nothing),
            Packet::Downgrade { line } | Packet::Invalidate { line, .. } => (Receiver::Slice(line), Payload::Control),
            Packet::Act { .. } | Packet::PhaseDone { .. } => (Receiver::Controller, Payload::Control),
            Packet::Chunk(Chunk { lines, .. }) => (Receiver::CopyEngine, Payload::Lines(lines)),
            Packet::BlockMessage(BlockMessage { line, grains: 0, .. }) => (Receiver::Slice(line), Payload::Control),
            Packet::BlockMessage(BlockMessage { line, grains, masks, .. }) => {
                (Receiver::Slice(line), Payload::Block(grains, masks))
            }
        };
        let traffic = match payload {
            Payload::Grains(grains) | Payload::Masked(grains) | Payload::Block(grains, _) => Traffic::Data { grains },
            Payload::Lines(lines) => Traffic::Data { grains: u32::from(lines) * Mask::ALL.grains() },
            Payload::Read | Payload::Control | Payload::Nothing => Traffic::Control,
        };
        PacketFacts { receiver, traffic, payload }
    }
}

/// Source, destination and size for a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// Sending module.
    pub source: ModuleId,
    /// Target module.
    pub target: ModuleId,
    /// Bytes on every link along the path.
    pub bytes: u16,
    /// Receiving component in the target module.
    pub(crate) component: ComponentId,
}
