//! What components send each other. Everything here is plain data, small enough to copy through queues.

use crate::boundaries::{ExtentId, Lost};
use crate::credits::Generation;
use crate::link::Traffic;
use crate::mshr::EntryId;
use crate::outstanding::Tickets;
use crate::turning_link::Way;
use tombolo_engine::Outbox;
use tombolo_protocol::coherence::Cause;
use tombolo_protocol::drain::Pool;
use tombolo_protocol::paging::Mapping;
use tombolo_protocol::{Action, Data, Request};
use tombolo_types::{ComponentId, GpuId, Line, Mask, ModuleId, Page, Scope, SmId};

/// Where a component's messages go while it handles an event.
pub type Out<'a, D> = Outbox<'a, Message<D>>;

/// Which result register of which warp a reply is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Module of the SM.
    pub module: ModuleId,
    /// SM within the module.
    pub sm: SmId,
    /// Warp slot within the SM.
    pub warp: u8,
    /// Result slot of the warp, 0 to 63.
    pub result: u8,
    /// Of a read: the SM's miss register that waits for the answer.
    pub register: EntryId,
}

/// The flag event that a store leaves or a polling load looks for: `Token::index + 1`, 0 for none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flag(pub u32);

impl Flag {
    /// No flag.
    pub const NONE: Flag = Flag(0);
}

/// A request to an L2, from an SM of its module or from another module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineRequest<D: Data> {
    /// The line.
    pub line: Line,
    /// What is wanted.
    pub request: Request<D>,
    /// Who issued it first.
    pub origin: Origin,
    /// The flag it leaves or looks for.
    pub flag: Flag,
    /// Of a store or atomic: the credits of its senders, returned when taken.
    pub tickets: Tickets,
    /// Of a read from another L2: that L2's miss register that waits for the answer.
    pub asker: EntryId,
}

/// What one module sends another: the content of a message on the links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packet<D: Data> {
    /// Toward a home.
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
        /// Whose it is.
        origin: Origin,
        /// The line.
        line: Line,
        /// Bytes carried.
        mask: Mask,
        /// Contents.
        data: D,
        /// The flag that the read looked for, where it was seen.
        seen: Flag,
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
    },
    /// A phase of an acquire or release.
    Act {
        /// What to do.
        action: Action,
        /// The component that collects acknowledgments.
        collector: ComponentId,
        /// Which of its collections.
        collection: u16,
    },
    /// The acknowledgment of [`Packet::Act`].
    Acted {
        /// Which collection.
        collection: u16,
    },
    /// Part of a copy between memories.
    Chunk(Chunk),
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
    /// An invalidation, an acknowledgment, a phase of a plan.
    Control,
    /// Nothing of its own: its bytes are those of the fill behind it.
    Nothing,
}

impl Payload {
    /// Of a request.
    #[inline]
    pub fn of<D: Data>(request: &Request<D>) -> Payload {
        match *request {
            Request::Read { .. } => Payload::Read,
            Request::Write { mask, .. } | Request::Atomic { mask, .. } => Payload::store(mask),
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

impl<D: Data> Packet<D> {
    /// What ports and links need to know of it.
    #[inline]
    pub fn facts(&self) -> Facts {
        let (receiver, payload) = match *self {
            Packet::Request(LineRequest { line, request, .. }) => (Receiver::Slice(line), Payload::of(&request)),
            Packet::Fill { line, mask, .. } => (Receiver::Slice(line), Payload::Grains(mask.grains())),
            Packet::Answer { origin, mask, .. } => (Receiver::Sm(origin.sm), Payload::Grains(mask.grains())),
            Packet::Old { origin, line, .. } => (Receiver::Origin(origin, line), Payload::Grains(1)),
            Packet::Flag { line, .. } => (Receiver::Slice(line), Payload::Nothing),
            Packet::Downgrade { line } | Packet::Invalidate { line, .. } => (Receiver::Slice(line), Payload::Control),
            Packet::Act { .. } | Packet::Acted { .. } => (Receiver::Controller, Payload::Control),
            Packet::Chunk(Chunk { lines, .. }) => (Receiver::CopyEngine, Payload::Lines(lines)),
        };
        let traffic = match payload {
            Payload::Grains(grains) | Payload::Masked(grains) => Traffic::Data { grains },
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

/// Which kind of synchronisation an SM asks its controller for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncKind {
    /// The protocol's acquire plan.
    Acquire,
    /// The protocol's release plan.
    Release,
}

/// A module's part of the move of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PagingOrder {
    /// Use it no more, and say when nothing is under way to it.
    Unmap,
    /// Write its dirty bytes to memory, and drop its lines.
    WriteBack,
    /// See it so from now on; `None`: it is the host's.
    Map(Option<Mapping>),
}

/// What happens to the links between GPUs and the switch whose lanes turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkEvent {
    /// A kernel is launched.
    Launch,
    /// Its release has ended.
    End,
    /// The end of a sample.
    Sample {
        /// Which launch it belongs to.
        launch: u32,
    },
    /// The last byte of a packet leaves.
    Sent {
        /// Whose link.
        gpu: GpuId,
        /// Which way.
        way: Way,
    },
    /// Lanes have turned.
    Turned {
        /// Whose link.
        gpu: GpuId,
    },
}

/// One event's content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Message<D: Data> {
    /// To an SM: the scheduler of a sub-core may issue.
    Issue {
        /// Which sub-core.
        sub_core: u8,
        /// The warp that it is likely to issue.
        likely: u8,
    },
    /// To a slice: a request of an SM of its module.
    Local(LineRequest<D>),
    /// To a slice, or a controller for the control packets: what came over the links.
    Arrive {
        /// How it came.
        route: Route,
        /// What it is.
        packet: Packet<D>,
    },
    /// To a slice, an SM or a controller: what came over the links is wholly inside.
    Enter {
        /// From.
        source: ModuleId,
        /// What it is.
        packet: Packet<D>,
    },
    /// To the switch: what must cross to another GPU.
    Cross {
        /// Where it goes.
        route: Route,
        /// What it is.
        packet: Packet<D>,
    },
    /// To the switch: links whose lanes turn.
    Link(LinkEvent),
    /// To an SM, from itself: the last arithmetic of a CTA is over.
    CtaOver {
        /// Its place.
        cta: u8,
    },
    /// To a slice, from itself: a fetch that waited for the slice's port goes to memory.
    Fetch {
        /// The line.
        line: Line,
        /// Bytes.
        mask: Mask,
        /// The miss register that waits for them.
        register: EntryId,
    },
    /// To a slice: memory has the bytes of a fetch.
    Memory {
        /// The line.
        line: Line,
        /// Bytes.
        mask: Mask,
        /// The miss register that waits for them.
        register: EntryId,
    },
    /// To a slice, from itself: memory has answered what passed the L2.
    Past {
        /// Whom the answer is for.
        target: ModuleId,
        /// The answer. A fill takes its contents now.
        packet: Packet<D>,
    },
    /// To an SM: the answer to a read.
    Fill {
        /// Its miss register that waits for it.
        register: EntryId,
        /// The line.
        line: Line,
        /// Bytes carried.
        mask: Mask,
        /// Contents.
        data: D,
        /// The flag that the read looked for, where it was seen.
        seen: Flag,
    },
    /// To an SM: the result of an atomic.
    Old {
        /// Warp slot.
        warp: u8,
        /// Result slot.
        result: u8,
        /// Contents before the atomic.
        data: D,
    },
    /// To an SM: a posted store was taken and somebody waits for its place.
    StoreReturned,
    /// To an SM: everything posted before a release has been taken.
    Drained {
        /// The warp that waits.
        warp: u8,
        /// Scope of its release.
        scope: Scope,
    },
    /// To a controller: everything an SM posted before its kernel ended has been taken, or its latest CTA has ended.
    KernelDrained,
    /// To a controller: run a plan for a warp.
    Sync {
        /// The SM.
        sm: SmId,
        /// The warp.
        warp: u8,
        /// Which plan.
        kind: SyncKind,
        /// Its scope.
        scope: Scope,
    },
    /// To an SM: the plan is done.
    Synced {
        /// The warp.
        warp: u8,
    },
    /// To a controller: others have taken a store or an invalidation of this module.
    Taken {
        /// Which kind it is of.
        pool: Pool,
        /// Ticket given when it was sent.
        ticket: Generation,
    },
    /// To a controller: memory has taken what a bulk invalidation wrote back.
    Written {
        /// The phase that waits for it.
        join: u16,
    },
    /// To a controller: so many lanes of the GPU's link carry into it.
    LanesIn(u32),
    /// To a controller: start a kernel.
    Launch {
        /// Index of the kernel.
        kernel: u32,
    },
    /// To a controller, from the command processor: a phase of a kernel's boundary.
    Phase {
        /// What to do.
        action: Action,
        /// With which lines.
        extent: ExtentId,
        /// Whether to count them.
        counted: bool,
    },
    /// To the command processor: a controller has done its part of the phase.
    PhaseDone {
        /// Which module's.
        module: ModuleId,
        /// What its L2 lost, where it was counted.
        lost: Lost,
    },
    /// To the command processor: a module has run its CTAs.
    KernelDone,
    /// To a controller, from the driver: its part of the move of a page.
    Paging {
        /// Which page.
        page: Page,
        /// What to do.
        order: PagingOrder,
    },
    /// To a controller: something that the module's part of a move waits for is over.
    PageQuiet {
        /// Which page.
        page: Page,
    },
    /// To the driver: a module has made an access that it may not make.
    Fault {
        /// Which page.
        page: Page,
        /// Which module.
        module: ModuleId,
        /// Whether it is a store or an atomic.
        writes: bool,
    },
    /// To the driver: a part of the step at hand of a page's move is done.
    PagingDone {
        /// Which page.
        page: Page,
    },
    /// To the driver, from itself: its work on a batch of faults is over.
    Serviced,
    /// To the driver, from itself: the shootdown of a page begins.
    Shootdown {
        /// Which page.
        page: Page,
    },
    /// To a copy engine: copy.
    Copy {
        /// Which copy.
        copy: CopyName,
        /// To this module, or (`None`) to the host.
        to: Option<ModuleId>,
    },
    /// To a copy engine: take a page that the host has.
    TakePage {
        /// Which page.
        page: Page,
    },
    /// To a copy engine, from itself: go on.
    CopyOn,
    /// To the driver: a copy is wholly in memory.
    Copied {
        /// Which copy.
        copy: CopyName,
    },
    /// To the driver, from the command processor: do what comes before or behind a command.
    Around {
        /// The command.
        command: u32,
        /// Which side of it.
        behind: bool,
    },
    /// To the command processor: that is done.
    AroundDone {
        /// The command.
        command: u32,
    },
    /// To a controller: pages that a command finds elsewhere.
    Remap {
        /// The command.
        command: u32,
    },
    /// To the command processor: go on with the next command.
    #[default]
    Next,
}

impl<D: Data> Message<D> {
    /// To a slice: the request, and whether an SM of its module has sent it.
    #[inline]
    pub fn request(&self) -> Option<(&LineRequest<D>, bool)> {
        match self {
            Message::Local(request) => Some((request, true)),
            Message::Arrive { packet: Packet::Request(request), .. }
            | Message::Enter { packet: Packet::Request(request), .. } => Some((request, false)),
            _ => None,
        }
    }

    /// To a slice: the line of a fill, and the miss register that waits for it.
    #[inline]
    pub fn slice_fill(&self) -> Option<(Line, EntryId)> {
        match *self {
            Message::Memory { line, register, .. }
            | Message::Arrive { packet: Packet::Fill { line, register, .. }, .. }
            | Message::Enter { packet: Packet::Fill { line, register, .. }, .. } => Some((line, register)),
            _ => None,
        }
    }
}

// An event, with its time, both ends and its number, is one cache line of the host.
const _: () = assert!(std::mem::size_of::<Message<()>>() <= 48);
