//! Messages between components. Everything here is plain data, small enough to copy through queues.

use crate::fabric::packet::{CopyName, Packet, Route};
use crate::fabric::turning_link::Direction;
use crate::front_end::boundaries::{ExtentId, LostLines};
use crate::front_end::cpu::HostWork;
use crate::front_end::page_run::PageRun;
use crate::l2::credits::Generation;
use crate::l2::mshr::EntryId;
use crate::l2::outstanding::Tickets;
use crate::l2::posted::Drainer;
use crate::observe::latency::{ModuleLatency, Note, ReplyLatency, Stamp, short};
use crate::observe::value_probe::Contents;
use crate::sm::kernel_slot::KernelSlot;
use tombolo_engine::Outbox;
use tombolo_protocol::drain::Pool;
use tombolo_protocol::paging::{AttemptedAccess, Mapping};
use tombolo_protocol::{Action, Request};
use tombolo_types::stream::Token;
use tombolo_types::{GpuId, Line, Mask, ModuleId, Page, Ps, Scope, SmId};

/// Output for a component's messages while it handles an event.
pub(crate) type Out<'a, D> = Outbox<'a, Message<D>>;

/// Destination for a reply: a warp and a result register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyDestination {
    /// The SM's module.
    pub(crate) module: ModuleId,
    /// SM number within the module.
    pub sm: SmId,
    /// Warp slot within the SM.
    pub(crate) warp: u8,
    /// Result slot in the warp, 0 to 63.
    pub(crate) result: u8,
    /// For a read: the SM's MSHR that waits for the reply.
    pub(crate) register: EntryId,
}

/// Flag event left by a store or awaited by a polling load: the kernel's slot and the token plus 1; 0 means none. Each
/// kernel numbers its tokens densely from 0, and kernels run side by side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flag(pub u32);

impl Flag {
    /// No flag.
    pub const NONE: Flag = Flag(0);
    /// Bits used for the token plus 1.
    const TOKEN_BITS: u32 = 27;

    /// Flag for a token in the kernel that runs in a slot.
    #[inline]
    pub(crate) fn of(kernel: KernelSlot, token: Token) -> Flag {
        Flag(u32::from(kernel.0) << Flag::TOKEN_BITS | (token.0 + 1))
    }

    /// Slot of the kernel.
    #[inline]
    pub fn kernel(self) -> KernelSlot {
        KernelSlot((self.0 >> Flag::TOKEN_BITS) as u8)
    }

    /// Number within the kernel, from 1; 0 if there is none.
    #[inline]
    pub fn number(self) -> u32 {
        self.0 & ((1 << Flag::TOKEN_BITS) - 1)
    }
}

const _: () = assert!(Token::MAX.0 + 1 < 1 << Flag::TOKEN_BITS);
const _: () = assert!(KernelSlot::MAX as u32 <= 1 << (u32::BITS - Flag::TOKEN_BITS));

/// A request to an L2, from an SM in its module or from another module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineRequest<D: Contents> {
    /// The line.
    pub line: Line,
    /// The requested operation.
    pub request: Request<D>,
    /// Requesting SM and warp.
    pub origin: ReplyDestination,
    /// Flag that the request leaves or polls for.
    pub(crate) flag: Flag,
    /// For a store or atomic: the senders' credits, returned on acceptance. For a read: see [`Tickets::of_read`].
    pub(crate) tickets: Tickets,
    /// For a read from another L2: the requester's MSHR that waits for the reply.
    pub(crate) requester_mshr: EntryId,
    /// Set if the request goes to a subscriber for its line's page, its final destination.
    pub(crate) is_published: bool,
}

impl<D: Contents> LineRequest<D> {
    /// Records the arrival time at a slice of blocks, in place of a read's tickets.
    pub(crate) fn note_arrival(&mut self, at: Ps) {
        if D::FOLLOWS && matches!(self.request, Request::Read { .. }) {
            self.tickets = Tickets::of_read(ModuleLatency {
                slice: Stamp::of(at).since(Stamp::default()),
                ..ModuleLatency::default()
            });
        }
    }

    /// Latency note for a read with recorded arrival, answered between `leaves` and `at`: all time until `leaves`
    /// counts as slice time.
    pub(crate) fn held_until(&self, leaves: Ps, at: Ps) -> D::Note<ReplyLatency> {
        let arrived = Stamp::of(Ps(self.tickets.held().slice.into()));
        let slice = Stamp::of(leaves).after(arrived);
        let inside = ModuleLatency { slice, ..ModuleLatency::default() };
        D::Note::of(ReplyLatency { inside, crossbar: short(at.saturating_sub(leaves)), ..ReplyLatency::default() })
    }
}

/// Kind of synchronisation requested by an SM from the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncKind {
    /// The protocol's acquire plan.
    Acquire,
    /// The protocol's release plan.
    Release,
}

/// A module's part in a page move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PagingOrder {
    /// Stop using the page, and report when no access to it is in flight.
    Unmap,
    /// Write the page's dirty bytes to memory, and drop its lines.
    WriteBack,
    /// Use this mapping from now on; `None` means the page belongs to the host.
    Map(Option<Mapping>),
}

/// Event on the links with turning lanes between GPUs and the switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkEvent {
    /// A kernel is launched.
    Launch,
    /// The kernel's release has ended.
    End,
    /// A sample ends.
    Sample {
        /// Launch number for the sample.
        launch: u32,
    },
    /// The last byte in a packet leaves.
    Sent {
        /// GPU of the link.
        gpu: GpuId,
        /// Direction on the link.
        direction: Direction,
    },
    /// Lanes have turned.
    Turned {
        /// GPU of the link.
        gpu: GpuId,
    },
}

/// Content of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Message<D: Contents> {
    /// To an SM: the scheduler in a sub-core may issue.
    Issue {
        /// Number of the sub-core.
        sub_core: u8,
        /// The warp most likely to issue.
        likely: u8,
    },
    /// To a slice: a request from an SM in its module.
    Local(LineRequest<D>),
    /// To a slice, or a controller for the control packets: a packet arrives over the links, before it has passed the
    /// ingress of the module's port.
    Arrive {
        /// Source, target and size.
        route: Route,
        /// The packet.
        packet: Packet<D>,
    },
    /// To a slice, an SM or a controller: a packet from the links is completely received.
    Enter {
        /// Sending module.
        source: ModuleId,
        /// The packet.
        packet: Packet<D>,
    },
    /// To the switch, or to a GPU port: a packet for another GPU.
    Cross {
        /// Source, target and size.
        route: Route,
        /// The packet.
        packet: Packet<D>,
    },
    /// To the switch: an event on links with turning lanes.
    Link(LinkEvent),
    /// To an SM, from itself: the last arithmetic instruction in a CTA is complete.
    CtaOver {
        /// CTA slot.
        cta: u8,
    },
    /// To a slice, from itself: a fetch that waited for the slice's port goes to memory.
    Fetch {
        /// The line.
        line: Line,
        /// Bytes to fetch.
        mask: Mask,
        /// The waiting MSHR.
        register: EntryId,
    },
    /// To a slice: memory has read the bytes for a fetch.
    Memory {
        /// The line.
        line: Line,
        /// Bytes read.
        mask: Mask,
        /// The waiting MSHR.
        register: EntryId,
        /// Latency of the read.
        latency: D::Note<ModuleLatency>,
    },
    /// To a slice, from itself: memory has answered an L2-bypassing request.
    BypassReply {
        /// Module that receives the reply.
        target: ModuleId,
        /// The reply. A fill reads its contents when this event is handled.
        packet: Packet<D>,
    },
    /// To an SM: the reply to a read.
    Fill {
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
        responder: ModuleId,
        /// Latency from the request's arrival at a slice in the SM's module.
        latency: D::Note<ReplyLatency>,
    },
    /// To an SM: the result of an atomic.
    AtomicResult {
        /// Warp slot.
        warp: u8,
        /// Result slot.
        result: u8,
        /// Contents before the atomic.
        data: D,
        /// Module that performed the atomic.
        responder: ModuleId,
    },
    /// To an SM: the oldest packet in the ingress queue has been received.
    PortReceived,
    /// To an SM: a posted store has been accepted.
    StoreAccepted {
        /// Credit returned for the store.
        credit: Generation,
    },
    /// To an SM, or the first slice in a group: a kernel launch begins in a slot with fresh flags.
    Begin {
        /// Slot of the kernel.
        slot: KernelSlot,
        /// Launch number within the program.
        launch: u32,
    },
    /// To an SM: run a CTA.
    Start {
        /// The kernel's slot.
        slot: KernelSlot,
        /// Kernel index in the program.
        kernel: u32,
        /// CTA number.
        cta: u32,
    },
    /// To a controller: a CTA has ended.
    CtaEnded {
        /// SM that ran the CTA.
        sm: SmId,
        /// The kernel's slot.
        slot: KernelSlot,
        /// Set if the CTA could not be decoded, and no further CTA starts.
        failed: bool,
    },
    /// To the command processor: an SM has room for another CTA, which it holds until the answer.
    CtaWanted {
        /// The asking module.
        module: ModuleId,
        /// SM with the room.
        sm: SmId,
        /// The kernel's slot.
        slot: KernelSlot,
    },
    /// To a controller: the answer to `CtaWanted`.
    CtaAssigned {
        /// SM with the room.
        sm: SmId,
        /// The kernel's slot.
        slot: KernelSlot,
        /// CTA number; `None` if all have been assigned.
        cta: Option<u32>,
    },
    /// To an SM: report when all stores posted so far have been accepted.
    Drain(Drainer),
    /// To the first slice in a group: translate a page that misses in an SM's TLB, at the group's L2 TLB bank.
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
        /// Time when the translation is available.
        ready: Ps,
        /// Set if a page walk was necessary.
        walked: bool,
    },
    /// To the first slice in a group: translate a page, and let the driver serve a fault.
    Walk {
        /// The page.
        page: Page,
        /// Kind of access needed by the SM.
        wanted: AttemptedAccess,
    },
    /// To an SM: all stores posted before a release have been accepted.
    Drained {
        /// The waiting warp.
        warp: u8,
        /// Scope of the release.
        scope: Scope,
    },
    /// To a controller: all stores posted by an SM before a CTA ended have been accepted.
    CtaDrained {
        /// Slot for the CTA's kernel.
        slot: KernelSlot,
    },
    /// To a controller: run a plan for a warp.
    Sync {
        /// The SM.
        sm: SmId,
        /// The warp.
        warp: u8,
        /// Kind of plan.
        kind: SyncKind,
        /// Scope of the plan.
        scope: Scope,
    },
    /// To an SM: the plan is complete.
    Synced {
        /// The warp.
        warp: u8,
    },
    /// To a controller: another module has accepted a store or an invalidation from this module.
    Acknowledged {
        /// Pool that counts the operation.
        pool: Pool,
        /// Ticket issued at the send.
        ticket: Generation,
    },
    /// To a controller: a subscriber has accepted bytes published by this module.
    Delivered {
        /// Ticket issued at the send.
        ticket: Generation,
        /// The line.
        line: Line,
    },
    /// To a controller: memory has accepted the bytes written back by a bulk invalidation.
    Written {
        /// The phase waiting for the write.
        join: u32,
    },
    /// To a controller: new number of incoming lanes on the GPU's link.
    LanesIn(u32),
    /// To a controller: start a kernel.
    Launch {
        /// Index for the program's launch command.
        command: u32,
        /// Launch number within the program.
        launch: u32,
        /// Slot of the kernel.
        slot: KernelSlot,
    },
    /// To the host's controller: a kernel starts in a slot with fresh flags.
    KernelBegins {
        /// Slot of the kernel.
        slot: KernelSlot,
        /// Launch number.
        launch: u32,
    },
    /// To the first slice in a group: an action for all slices in the group.
    Act {
        /// The action.
        action: Action,
        /// Lines reached by the action.
        extent: ExtentId,
        /// Set if lost lines are counted.
        counted: bool,
        /// The controller's number for this phase.
        act: u32,
    },
    /// To a controller: a slice group has finished the action.
    GroupActed {
        /// The controller's number for this phase.
        act: u32,
        /// Time when memory has accepted all written bytes.
        taken: Ps,
        /// Lines lost from the slices, if counted.
        lost: LostLines,
        /// Bytes written back by the slices.
        flushed: u64,
    },
    /// To a controller, from the command processor: a phase at a kernel boundary.
    Phase {
        /// Slot for the boundary's command.
        slot: KernelSlot,
        /// The action.
        action: Action,
        /// Lines reached by the action.
        extent: ExtentId,
        /// Set if lost lines are counted.
        counted: bool,
    },
    /// To a controller, from the command processor, and then to the first slice in each group: the host reads or
    /// writes.
    Transfer {
        /// Number of the transfer.
        number: u32,
        /// Set for a read, which only looks at values.
        is_read: bool,
    },
    /// To the command processor: a controller has finished in a phase.
    PhaseDone {
        /// Slot for the boundary's command.
        slot: KernelSlot,
        /// Module that has finished.
        module: ModuleId,
        /// Lines lost from the module's L2, if counted.
        lost: LostLines,
    },
    /// To the command processor: a module has run all CTAs for a kernel.
    KernelDone {
        /// The module.
        module: ModuleId,
        /// Slot of the kernel.
        slot: KernelSlot,
    },
    /// To the command processor, from itself: a command's wait is over.
    Due {
        /// Slot of the command.
        slot: KernelSlot,
    },
    /// To a controller, from the driver: the module's part in a page move.
    Paging {
        /// Affected pages.
        pages: PageRun,
        /// Required operation.
        order: PagingOrder,
    },
    /// To a controller: an operation that the module's part in a page move waits for is complete.
    PageQuiet {
        /// Affected pages.
        pages: PageRun,
    },
    /// To the driver: a module has attempted a disallowed access.
    Fault {
        /// The page.
        page: Page,
        /// The module.
        module: ModuleId,
        /// Kind of access.
        wanted: AttemptedAccess,
    },
    /// To a controller, from the driver: report the pages accessed by the module so far.
    AskAccesses,
    /// To the driver: a module has accessed pages.
    Accessed {
        /// The pages.
        pages: PageRun,
        /// The module.
        module: ModuleId,
    },
    /// To the driver: a module has reported all accessed pages.
    AccessesReported,
    /// To the driver, from itself: all access records have been read.
    TrackingEnds,
    /// To the driver: a part of the current step in a page move is complete.
    PagingDone {
        /// Affected pages.
        pages: PageRun,
    },
    /// To the driver, from itself: the service time for a batch of faults is over.
    Serviced,
    /// To the driver, from itself: the shootdown of pages begins.
    Shootdown {
        /// Affected pages.
        pages: PageRun,
    },
    /// To a copy engine: start a copy.
    Copy {
        /// The copy.
        copy: CopyName,
        /// Destination module, or `None` for the host.
        to: Option<ModuleId>,
    },
    /// To a copy engine: fetch a page from the host.
    TakePage {
        /// The page.
        page: Page,
    },
    /// To a copy engine, from itself: continue.
    CopyOn {
        /// Lane with the concurrent copy to continue.
        lane: u8,
    },
    /// To the driver: a copy is completely in memory.
    Copied {
        /// The copy.
        copy: CopyName,
    },
    /// To the driver, from the command processor: run the operations scheduled before or after a command.
    ScheduledTasks {
        /// Slot for the command, used in the reply.
        slot: KernelSlot,
        /// Command index in the program.
        command: u32,
        /// Set for operations after the command.
        behind: bool,
    },
    /// To the driver, from the command processor: a kernel has ended on a module, so this module's scheduled copies
    /// begin.
    ModuleTransfers {
        /// Slot for the command, used in the reply.
        slot: KernelSlot,
        /// Command index in the program.
        command: u32,
        /// The module.
        module: ModuleId,
    },
    /// To the command processor: the scheduled operations are complete.
    ScheduledTasksDone {
        /// Slot of the command.
        slot: KernelSlot,
    },
    /// To a controller: pages get a new home for a command.
    Remap {
        /// Index of the command.
        command: u32,
    },
    /// To the host's core, from the command processor: the next piece of host work.
    HostWork {
        /// Slot for the command, used in the reply.
        slot: KernelSlot,
        /// The work.
        work: HostWork,
    },
    /// To the host's core, from itself: it may issue.
    HostIssue,
    /// To the command processor: continue with the next commands.
    #[default]
    Next,
}

impl<D: Contents> Message<D> {
    /// For a message to a slice: the request, with a flag set if it comes from an SM in the slice's module.
    #[inline]
    pub(crate) fn request(&self) -> Option<(&LineRequest<D>, bool)> {
        match self {
            Message::Local(request) => Some((request, true)),
            Message::Arrive { packet: Packet::Request(request), .. }
            | Message::Enter { packet: Packet::Request(request), .. } => Some((request, false)),
            _ => None,
        }
    }

    /// For a message to a slice: a fill's line, and the MSHR waiting for the fill.
    #[inline]
    pub(crate) fn slice_fill(&self) -> Option<(Line, EntryId)> {
        match *self {
            Message::Memory { line, register, .. }
            | Message::Arrive { packet: Packet::Fill { line, register, .. }, .. }
            | Message::Enter { packet: Packet::Fill { line, register, .. }, .. } => Some((line, register)),
            _ => None,
        }
    }
}

// An event with its time, both endpoints and its number fits into one cache line of the simulating host.
const _: () = assert!(std::mem::size_of::<Message<()>>() <= 48);
