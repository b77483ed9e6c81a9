//! What modules send each other on the links, and what ports and links need to know of it.

use crate::block::Letter;
use crate::credits::Generation;
use crate::latency::Packed;
use crate::link::Traffic;
use crate::message::{Flag, LineRequest, Origin};
use crate::mshr::EntryId;
use crate::watch::Contents;
use tombolo_protocol::coherence::Cause;
use tombolo_protocol::nodes::Class;
use tombolo_protocol::{Action, Request};
use tombolo_types::{ComponentId, Line, Mask, ModuleId, Page, SmId};

/// What one module sends another: the content of a message on the links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packet<D: Contents> {
    /// Toward a home, or toward a subscriber: what was stored to a published page.
    Request(LineRequest<D>),
    /// Toward a home: the sender has dropped the line's region.
    Downgrade {
        /// Any line of the region.
        line: Line,
    },
    /// From a home: the answer to a read.
    Fill {
        /// The miss register that waits for it.
        register: EntryId,
        /// The line.
        line: Line,
        /// Bytes carried.
        mask: Mask,
        /// Contents.
        data: D,
        /// The module that has answered: the sender, or one further up.
        by: ModuleId,
        /// What it took in modules, from the request's arrival to the departure.
        inside: D::Note<Packed>,
        /// And on links, in picoseconds.
        link: D::Note<u32>,
    },
    /// From a home, ahead of a fill of the line: the copy that comes shows this flag.
    Flag {
        /// The line.
        line: Line,
        /// Which.
        flag: Flag,
    },
    /// From a home: the answer to a read that its module's L2 has passed on, for an SM.
    Answer {
        /// The SM.
        sm: SmId,
        /// Its miss register that waits for it.
        register: EntryId,
        /// The line.
        line: Line,
        /// Bytes carried.
        mask: Mask,
        /// Contents.
        data: D,
        /// Whether the flag that the read looked for was seen.
        seen: bool,
        /// The module that has answered.
        by: ModuleId,
        /// What it took there, and at the slice that has passed it on.
        inside: D::Note<Packed>,
    },
    /// From a home: the line's region is no longer current.
    Invalidate {
        /// Any line of the region.
        line: Line,
        /// Why it was first sent.
        cause: Cause,
        /// Ticket of the sender, returned when taken.
        ticket: Generation,
    },
    /// The result of an atomic, for an SM: by the GPU home where the atomic came by it.
    Old {
        /// Whose it is.
        origin: Origin,
        /// The line of the atomic.
        line: Line,
        /// Contents before the atomic.
        data: D,
        /// The module that has performed it.
        by: ModuleId,
    },
    /// A phase of an acquire or release.
    Act {
        /// What to do.
        action: Action,
        /// The component that collects acknowledgments.
        collector: ComponentId,
        /// Which of its collections.
        collection: u32,
    },
    /// The acknowledgment of [`Packet::Act`].
    Acted {
        /// Which collection.
        collection: u32,
    },
    /// Part of a copy between memories.
    Chunk(Chunk),
    /// What slices of blocks tell each other.
    Told(Told),
}

/// What slices tell each other of a block: a letter ([`crate::block::Post`]), and what it weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told {
    /// The first line of the block.
    pub line: Line,
    /// The letter.
    pub letter: Letter,
    /// Who sends it to whom.
    pub class: Class,
    /// Grains of lines in it.
    pub grains: u32,
    /// Bytes of masks in it.
    pub masks: u16,
}

/// Some lines of a copy, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Which copy, for who has asked for it.
    pub copy: CopyName,
    /// The first line.
    pub first: Line,
    /// How many.
    pub lines: u16,
    /// Whether it is the last of its copy.
    pub is_last: bool,
}

/// A copy, for who has asked for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CopyName {
    /// Of a page that moves.
    Page(Page),
    /// Of the program's schedule: its index there.
    Listed(u32),
}

/// Which component of the target module receives a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receiver {
    /// The slice of a line.
    Slice(Line),
    /// An SM.
    Sm(SmId),
    /// The SM of the origin where the target is its module; on the way there the slice of the line.
    Origin(Origin, Line),
    /// The controller.
    Controller,
    /// The copy engine.
    CopyEngine,
}

/// What a packet carries, for its size on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payload {
    /// The request of a read.
    Read,
    /// A header and this many grains of a line.
    Grains(u32),
    /// Some bytes of a line, and which they are: this many grains.
    Masked(u32),
    /// So many lines of a copy, in packets of its own size.
    Lines(u16),
    /// So many grains of a block and so many bytes of masks, behind one header.
    Block(u32, u16),
    /// An invalidation, an acknowledgment, a phase of a plan.
    Control,
    /// Nothing of its own: its bytes are those of the fill behind it.
    Nothing,
}

impl Payload {
    /// Of a request.
    #[inline]
    pub fn of<D: Contents>(request: &Request<D>) -> Payload {
        match *request {
            Request::Read { .. } => Payload::Read,
            Request::Write { mask, .. } | Request::Atomic { mask, .. } => Payload::store(mask),
        }
    }

    /// Of what is published: whole lines, and atomics as they are. Source: GPS, section 7.5: transfers are at the granularity of
    /// lines.
    pub fn published<D: Contents>(request: &Request<D>) -> Payload {
        match *request {
            Request::Write { .. } => Payload::store(Mask::ALL),
            Request::Read { .. } | Request::Atomic { .. } => Payload::of(request),
        }
    }

    /// Of a store of these bytes of a line.
    #[inline]
    pub fn store(mask: Mask) -> Payload {
        let carried = if mask == Mask::ALL { Payload::Grains } else { Payload::Masked };
        carried(mask.grains())
    }
}

/// What ports and links need to know of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Who receives it.
    pub receiver: Receiver,
    /// What it counts as on a link.
    pub traffic: Traffic,
    /// What it carries.
    pub payload: Payload,
}

impl<D: Contents> Packet<D> {
    /// What ports and links need to know of it.
    #[inline]
    pub fn facts(&self) -> Facts {
        let (receiver, payload) = match *self {
            Packet::Request(LineRequest { line, request, is_published: true, .. }) => {
                (Receiver::Slice(line), Payload::published(&request))
            }
            Packet::Request(LineRequest { line, request, .. }) => (Receiver::Slice(line), Payload::of(&request)),
            Packet::Fill { line, mask, .. } => (Receiver::Slice(line), Payload::Grains(mask.grains())),
            Packet::Answer { sm, mask, .. } => (Receiver::Sm(sm), Payload::Grains(mask.grains())),
            Packet::Old { origin, line, .. } => (Receiver::Origin(origin, line), Payload::Grains(1)),
            Packet::Flag { line, .. } => (Receiver::Slice(line), Payload::Nothing),
            Packet::Downgrade { line } | Packet::Invalidate { line, .. } => (Receiver::Slice(line), Payload::Control),
            Packet::Act { .. } | Packet::Acted { .. } => (Receiver::Controller, Payload::Control),
            Packet::Chunk(Chunk { lines, .. }) => (Receiver::CopyEngine, Payload::Lines(lines)),
            Packet::Told(Told { line, grains: 0, .. }) => (Receiver::Slice(line), Payload::Control),
            Packet::Told(Told { line, grains, masks, .. }) => (Receiver::Slice(line), Payload::Block(grains, masks)),
        };
        let traffic = match payload {
            Payload::Grains(grains) | Payload::Masked(grains) | Payload::Block(grains, _) => Traffic::Data { grains },
            Payload::Lines(lines) => Traffic::Data { grains: u32::from(lines) * Mask::ALL.grains() },
            Payload::Read | Payload::Control | Payload::Nothing => Traffic::Control,
        };
        Facts { receiver, traffic, payload }
    }
}

/// Where a packet goes and what it weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// From.
    pub source: ModuleId,
    /// To.
    pub target: ModuleId,
    /// Bytes on every link it crosses.
    pub bytes: u16,
    /// The component of the target that takes it.
    pub component: ComponentId,
}
