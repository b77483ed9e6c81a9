//! What components send each other. Everything here is plain data, small enough to copy through queues.

use crate::boundaries::{ExtentId, Lost};
use crate::cpu::HostWork;
use crate::credits::Generation;
use crate::kernel_slot::KernelSlot;
use crate::latency::{Answered, Inside, Note, Stamp, short};
use crate::mshr::EntryId;
use crate::outstanding::Tickets;
use crate::packet::{CopyName, Packet, Route};
use crate::page_run::PageRun;
use crate::posted::Drainer;
use crate::turning_link::Way;
use crate::watch::Contents;
use tombolo_engine::Outbox;
use tombolo_protocol::drain::Pool;
use tombolo_protocol::paging::{Mapping, Wanted};
use tombolo_protocol::{Action, Request};
use tombolo_types::stream::Token;
use tombolo_types::{GpuId, Line, Mask, ModuleId, Page, Ps, Scope, SmId};

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

/// The flag event that a store leaves or a polling load looks for: its kernel's slot, and the token + 1; 0 for none.
/// Tokens are dense from 0 in each kernel, and kernels run side by side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flag(pub u32);

impl Flag {
    /// No flag.
    pub const NONE: Flag = Flag(0);
    /// Bits of a token + 1.
    const TOKEN_BITS: u32 = 27;

    /// That of a token of the kernel in a slot.
    #[inline]
    pub fn of(kernel: KernelSlot, token: Token) -> Flag {
        Flag(u32::from(kernel.0) << Flag::TOKEN_BITS | (token.0 + 1))
    }

    /// The kernel's slot.
    #[inline]
    pub fn kernel(self) -> KernelSlot {
        KernelSlot((self.0 >> Flag::TOKEN_BITS) as u8)
    }

    /// Its number within the kernel, from 1; 0 for none.
    #[inline]
    pub fn number(self) -> u32 {
        self.0 & ((1 << Flag::TOKEN_BITS) - 1)
    }
}

const _: () = assert!(Token::MAX.0 + 1 < 1 << Flag::TOKEN_BITS);
const _: () = assert!(KernelSlot::MOST as u32 <= 1 << (u32::BITS - Flag::TOKEN_BITS));

/// A request to an L2, from an SM of its module or from another module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineRequest<D: Contents> {
    /// The line.
    pub line: Line,
    /// What is wanted.
    pub request: Request<D>,
    /// Who issued it first.
    pub origin: Origin,
    /// The flag it leaves or looks for.
    pub flag: Flag,
    /// Of a store or atomic: the credits of its senders, returned when taken. Of a read: [`Tickets::of_read`].
    pub tickets: Tickets,
    /// Of a read from another L2: that L2's miss register that waits for the answer.
    pub asker: EntryId,
    /// Whether it is sent to a subscriber of its line's page, where it ends.
    pub is_published: bool,
}

impl<D: Contents> LineRequest<D> {
    /// Notes when it comes to a slice of blocks, in the place of a read's tickets.
    pub fn note_arrival(&mut self, at: Ps) {
        if D::FOLLOWS && matches!(self.request, Request::Read { .. }) {
            self.tickets =
                Tickets::of_read(Inside { slice: Stamp::of(at).since(Stamp::default()), ..Inside::default() });
        }
    }

    /// Of a read that has noted its arrival and is answered from `leaves` to `at`: all until then as a slice's time.
    pub fn held_until(&self, leaves: Ps, at: Ps) -> D::Note<Answered> {
        let arrived = Stamp::of(Ps(self.tickets.held().slice.into()));
        let slice = Stamp::of(leaves).after(arrived);
        let inside = Inside { slice, ..Inside::default() };
        D::Note::of(Answered { inside, crossbar: short(at.saturating_sub(leaves)), ..Answered::default() })
    }
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
pub enum Message<D: Contents> {
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
    /// To the switch, or to a way of a GPU: what must cross to another GPU.
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
        /// What that took.
        time: D::Note<Inside>,
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
        /// Whether the flag that the read looked for was seen.
        seen: bool,
        /// The module that has answered.
        by: ModuleId,
        /// What it took, from the request's arrival at a slice of the SM's module.
        time: D::Note<Answered>,
    },
    /// To an SM: the result of an atomic.
    Old {
        /// Warp slot.
        warp: u8,
        /// Result slot.
        result: u8,
        /// Contents before the atomic.
        data: D,
        /// The module that has performed it.
        by: ModuleId,
    },
    /// To an SM: what has waited longest for its port is wholly inside.
    Inside,
    /// To an SM: a store that it has posted was taken.
    StoreTaken {
        /// The credit it took.
        credit: Generation,
    },
    /// To an SM, or the first slice of a group: a kernel's launch begins, in a slot whose flags are new.
    Begin {
        /// Where it is under way.
        slot: KernelSlot,
        /// Its number among the launches of the program.
        launch: u32,
    },
    /// To an SM: run a CTA.
    Start {
        /// The kernel's slot.
        slot: KernelSlot,
        /// The kernel, among those of the program.
        kernel: u32,
        /// The CTA.
        cta: u32,
    },
    /// To a controller: a CTA has ended.
    CtaEnded {
        /// On which SM.
        sm: SmId,
        /// The kernel's slot.
        slot: KernelSlot,
        /// Whether it could not be decoded, so that none is to be started any more.
        failed: bool,
    },
    /// To an SM: tell when all that it has posted so far has been taken.
    Drain(Drainer),
    /// To the first slice of a group: translate a page that an SM's TLB lacks, at the bank of the L2 TLB there.
    Translate {
        /// The SM.
        sm: SmId,
        /// The page.
        page: Page,
    },
    /// To an SM: a translation.
    Translated {
        /// The page.
        page: Page,
        /// When it is there.
        ready: Ps,
        /// Whether it took a walk.
        walked: bool,
    },
    /// Likewise: translate a page, and have the driver serve a fault.
    Walk {
        /// The page.
        page: Page,
        /// What an SM wants of it.
        wanted: Wanted,
    },
    /// To an SM: everything posted before a release has been taken.
    Drained {
        /// The warp that waits.
        warp: u8,
        /// Scope of its release.
        scope: Scope,
    },
    /// To a controller: everything an SM had posted when a CTA ended has been taken.
    CtaDrained {
        /// The CTA's kernel.
        slot: KernelSlot,
    },
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
    /// To a controller: a subscriber has taken what this module has published.
    Delivered {
        /// Ticket given when it was sent.
        ticket: Generation,
        /// The line.
        line: Line,
    },
    /// To a controller: memory has taken what a bulk invalidation wrote back.
    Written {
        /// The phase that waits for it.
        join: u32,
    },
    /// To a controller: so many lanes of the GPU's link carry into it.
    LanesIn(u32),
    /// To a controller: start a kernel.
    Launch {
        /// The command of the program that launches it.
        command: u32,
        /// Its number among the launches of the program.
        launch: u32,
        /// Where it is under way.
        slot: KernelSlot,
    },
    /// To the host's controller: a kernel starts in a slot, whose flags are new.
    KernelBegins {
        /// Where it is under way.
        slot: KernelSlot,
        /// Number of its launch.
        launch: u32,
    },
    /// To the first slice of a group: what all of the group do for a phase.
    Act {
        /// What to do.
        action: Action,
        /// With which lines.
        extent: ExtentId,
        /// Whether to count them.
        counted: bool,
        /// The controller's name for it.
        act: u32,
    },
    /// To a controller: a group of slices has done that.
    GroupActed {
        /// The controller's name for it.
        act: u32,
        /// When memory has taken what was written to it.
        taken: Ps,
        /// What the slices lost, where it was counted.
        lost: Lost,
        /// Bytes that they wrote back.
        flushed: u64,
    },
    /// To a controller, from the command processor: a phase of a kernel's boundary.
    Phase {
        /// Whose boundary.
        slot: KernelSlot,
        /// What to do.
        action: Action,
        /// With which lines.
        extent: ExtentId,
        /// Whether to count them.
        counted: bool,
    },
    /// To a controller, from the command processor, and from there to the first slice of each group: the host reads or writes.
    Transfer {
        /// Its number.
        number: u32,
        /// Whether it reads: then only values are looked at.
        is_read: bool,
    },
    /// To the command processor: a controller has done its part of the phase.
    PhaseDone {
        /// Whose boundary.
        slot: KernelSlot,
        /// Which module's.
        module: ModuleId,
        /// What its L2 lost, where it was counted.
        lost: Lost,
    },
    /// To the command processor: a module has run its CTAs.
    KernelDone {
        /// Which module.
        module: ModuleId,
        /// Of which kernel.
        slot: KernelSlot,
    },
    /// To the command processor, from itself: what a command waited for is over.
    Due {
        /// Which command.
        slot: KernelSlot,
    },
    /// To a controller, from the driver: its part of the move of pages.
    Paging {
        /// Which pages.
        pages: PageRun,
        /// What to do.
        order: PagingOrder,
    },
    /// To a controller: something that the module's part of a move waits for is over.
    PageQuiet {
        /// Of which pages.
        pages: PageRun,
    },
    /// To the driver: a module has made an access that it may not make.
    Fault {
        /// Which page.
        page: Page,
        /// Which module.
        module: ModuleId,
        /// What it is.
        wanted: Wanted,
    },
    /// To a controller, from the driver: tell it which pages the module has accessed so far.
    AskAccesses,
    /// To the driver: a module has accessed pages.
    Accessed {
        /// Which pages.
        pages: PageRun,
        /// Which module.
        module: ModuleId,
    },
    /// To the driver: a module has told of all pages that it has accessed.
    AccessesTold,
    /// To the driver, from itself: it has read what modules have accessed.
    TrackingEnds,
    /// To the driver: a part of the step at hand of the moves of pages is done.
    PagingDone {
        /// Which pages.
        pages: PageRun,
    },
    /// To the driver, from itself: its work on a batch of faults is over.
    Serviced,
    /// To the driver, from itself: the shootdown of pages begins.
    Shootdown {
        /// Which pages.
        pages: PageRun,
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
    CopyOn {
        /// With which of the copies that it makes side by side.
        lane: u8,
    },
    /// To the driver: a copy is wholly in memory.
    Copied {
        /// Which copy.
        copy: CopyName,
    },
    /// To the driver, from the command processor: do what comes before or behind a command.
    Around {
        /// Which command, for the answer.
        slot: KernelSlot,
        /// Its place in the program.
        command: u32,
        /// Which side of it.
        behind: bool,
    },
    /// To the driver, from the command processor: a module's part of a kernel has ended, and it sends what comes behind.
    Sends {
        /// Which command, for the answer.
        slot: KernelSlot,
        /// Its place in the program.
        command: u32,
        /// Which module.
        module: ModuleId,
    },
    /// To the command processor: that is done.
    AroundDone {
        /// Which command.
        slot: KernelSlot,
    },
    /// To a controller: pages that a command finds elsewhere.
    Remap {
        /// The command.
        command: u32,
    },
    /// To the host's core, from the command processor: what the host program does now.
    HostWork {
        /// Which command, for the answer.
        slot: KernelSlot,
        /// What it is.
        work: HostWork,
    },
    /// To the host's core, from itself: it may issue.
    HostIssue,
    /// To the command processor: go on with the next commands.
    #[default]
    Next,
}

impl<D: Contents> Message<D> {
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
