//! A state of the explored machine: all data that may affect a later step, and nothing beyond.

use super::config::UnrequestedChanges;
use super::copies::Copying;
use super::pages::PageState;
use super::publication::QueueEntry;
use super::values::{Values, cells};
use crate::litmus::Value;
use std::fmt;
use std::hash::{Hash, Hasher};
use tombolo_protocol::directory::EntrySet;
use tombolo_protocol::l1::{L1Line, L1Pending};
use tombolo_protocol::{Action as PlanAction, Collector, LineState, Pending, Request, Sharers};
use tombolo_types::{Mask, ModuleId};

/// Set in a channel's region if invalidations are unordered with fills.
pub(super) const ASIDE: u8 = 0x80;

/// A set of threads: bit `i` is thread `i`.
pub(super) type ThreadSet = u8;

/// A set of L2 lines: bit `module × lines + line`. Also used for sets of regions.
pub(super) type SlotSet = u128;

/// A register of any thread: first the registers in thread 0, then the registers in thread 1, etc.
pub(super) type FlatRegister = u16;

/// A register of a running program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct RegisterState {
    /// Current value; 0 while the register awaits a value.
    pub(super) value: Value,
    /// Awaited result.
    pub(super) awaits: Option<AwaitedResult>,
}

/// Source of an awaited register value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum AwaitedResult {
    /// The fill for the pending miss of the SM on a line: a cell in this line.
    Load {
        /// The line.
        line: u8,
        /// The cell.
        cell: u8,
    },
    /// The result of an atomic on a line's cell.
    Atomic {
        /// The line.
        line: u8,
        /// The cell.
        cell: u8,
    },
}

/// Progress of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct ThreadState {
    /// Index of the current instruction; equal to the length of the code when the thread is done.
    pub(super) pc: u16,
    /// Current stage of this instruction.
    pub(super) stage: u8,
    /// Set if this stage has begun.
    pub(super) begun: bool,
    /// Plan in progress for an acquire or release.
    pub(super) plan: Option<Collector>,
    /// Modules with an outstanding acknowledgment in the plan's current phase.
    pub(super) owed: EntrySet<ModuleId>,
}

/// A line at an L1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct L1Slot {
    pub(super) line: Option<L1Line<Values>>,
    pub(super) pending: Option<L1Pending>,
}

/// A line at an L2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct L2Slot {
    pub(super) line: Option<LineState<Values>>,
    pub(super) pending: Option<Pending>,
}

/// Sender of a request to an L2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum RequestSource {
    /// An SM in this module, or in a module that has forwarded the SM's read: an index into the explorer's SMs.
    Sm(u8),
    /// Another module.
    Module(ModuleId),
    /// A prefetch that warms the caches: no requester waits for the reply.
    Prefetch,
}

/// A request and the destination for its reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct PostedRequest {
    /// The request.
    pub(super) request: Request<Values>,
    /// Destination register for the result of an atomic.
    pub(super) result: Option<FlatRegister>,
    /// Original requester, if its L2 has forwarded the request: the reply goes directly to this requester.
    pub(super) passed: Option<RequestSource>,
    /// Threads with releases that wait until the request is served.
    pub(super) watched: ThreadSet,
    /// Set if the request was published: a subscriber performs the request without forwarding it.
    pub(super) published: bool,
}

/// A request held at an L2 by its line's pending miss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct HeldRequest {
    pub(super) module: ModuleId,
    pub(super) line: u8,
    pub(super) source: RequestSource,
    pub(super) how: HoldReason,
}

/// Reason why a request is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum HoldReason {
    /// A waiter for the miss: the fill supplies the waiting bytes.
    Wait(Mask),
    /// A flush: the releases by these threads write the line back after the fill. The source is the module itself.
    Flush(ThreadSet),
    /// Parked: it is retried after the fill.
    Park(PostedRequest),
}

impl HoldReason {
    /// Service order among the held requests at a slot.
    fn rank(&self) -> u8 {
        match self {
            HoldReason::Wait(_) => 0,
            HoldReason::Flush(_) => 1,
            HoldReason::Park(_) => 2,
        }
    }
}

/// A channel: its messages are delivered in the order sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Channel {
    /// From an SM to its L2, per line.
    ToL2 { sm: u8, line: u8 },
    /// Toward a home, per line or per region.
    Up { from: ModuleId, to: ModuleId, lane: u8 },
    /// From a home, per region.
    Down { from: ModuleId, to: ModuleId, region: u8 },
    /// From an L2 to an SM, per line: the slices of an L2 keep no order between lines.
    ToSm { sm: u8, line: u8 },
    /// From a module's memory, per line: only a single miss is pending at a time.
    Memory { module: ModuleId, line: u8 },
    /// An atomic's result, directly to its register.
    Result { register: FlatRegister },
    /// An action of a thread's plan at a module.
    Plan { thread: u8, module: ModuleId },
}

impl Channel {
    /// Packs the channel into 32 bits.
    fn word(self) -> u64 {
        let (class, fields) = match self {
            Channel::ToL2 { sm, line } => (0, [sm, line, 0]),
            Channel::Up { from, to, lane } => (1, [from.0, to.0, lane]),
            Channel::Down { from, to, region } => (2, [from.0, to.0, region]),
            Channel::ToSm { sm, line } => (3, [sm, line, 0]),
            Channel::Memory { module, line } => (4, [module.0, line, 0]),
            Channel::Result { register } => (5, [register.to_le_bytes()[0], register.to_le_bytes()[1], 0]),
            Channel::Plan { thread, module } => (6, [thread, module.0, 0]),
        };
        u64::from(u32::from_le_bytes([fields[0], fields[1], fields[2], class]))
    }
}

/// Contents of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum MessageBody {
    /// A request.
    Request(PostedRequest),
    /// The sender has dropped the region.
    Downgrade,
    /// Bytes of a line.
    Fill {
        /// Mask of the bytes.
        mask: Mask,
        /// Contents.
        data: Values,
    },
    /// Drop the region.
    Invalidate {
        /// Threads with releases that wait until the invalidation is performed.
        watched: ThreadSet,
    },
    /// The contents before an atomic.
    Old(Values),
    /// An action of an acquire or a release.
    Act(PlanAction),
}

/// An in-flight message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ChannelMessage {
    pub(super) channel: Channel,
    /// The affected line; for an invalidation or downgrade any line in the region.
    pub(super) line: u8,
    pub(super) body: MessageBody,
}

/// Behaviour that no correct protocol shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Violation {
    /// A protocol encountered an event declared impossible, or broke a host rule.
    Unexpected(&'static str),
    /// A state without successors with an unfinished thread, a held request or an in-flight message.
    Deadlock,
    /// At rest, a readable copy in an L2 differs from its home.
    Stale {
        /// Module with the copy.
        module: ModuleId,
        /// The copied line.
        line: u8,
    },
    /// At rest, the home's directory does not know about a copy in an L2.
    Untracked {
        /// Module with the copy.
        module: ModuleId,
        /// The copied line.
        line: u8,
    },
    /// A final state that the program's test forbids.
    Forbidden,
    /// No final state can be reached: some thread waits forever in a loop.
    Endless,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Violation::Unexpected(what) => write!(f, "unexpected: {what}"),
            Violation::Deadlock => f.write_str("deadlock"),
            Violation::Stale { module, line } => write!(f, "{module} keeps a stale copy of line {line}"),
            Violation::Untracked { module, line } => write!(f, "{module} keeps line {line} unknown to its home"),
            Violation::Forbidden => f.write_str("forbidden outcome"),
            Violation::Endless => f.write_str("no end can be reached"),
        }
    }
}

/// Threads, their registers and the L1s of their SMs.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct FrontEnds {
    pub(super) threads: Vec<ThreadState>,
    /// All registers, in the order of [`FlatRegister`].
    pub(super) registers: Vec<RegisterState>,
    /// L1 slots: SM × lines + line.
    pub(super) l1: Vec<L1Slot>,
    /// Arrivals of threads that did not wait, since the barrier last opened: by index in the scene's barriers.
    pub(super) arrivals: Vec<u8>,
}

impl Clone for FrontEnds {
    fn clone(&self) -> FrontEnds {
        FrontEnds {
            threads: self.threads.clone(),
            registers: self.registers.clone(),
            l1: self.l1.clone(),
            arrivals: self.arrivals.clone(),
        }
    }

    /// Allocates no memory if the previous contents were at least as large.
    fn clone_from(&mut self, from: &FrontEnds) {
        self.threads.clone_from(&from.threads);
        self.registers.clone_from(&from.registers);
        self.l1.clone_from(&from.l1);
        self.arrivals.clone_from(&from.arrivals);
    }
}

/// Hashing skips empty slots, the majority, and ignores invalid bytes.
impl Hash for FrontEnds {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        for thread in &self.threads {
            let stage = u64::from(thread.pc) << 40 | u64::from(thread.stage) << 32 | bits(thread.owed);
            hasher.write_u64(stage | u64::from(thread.begun) << 57 | u64::from(thread.plan.is_some()) << 56);
            if let Some(plan) = thread.plan {
                plan.hash(hasher);
            }
        }
        for register in &self.registers {
            hasher.write_u64(register.value as u64);
            hasher.write_u64(match register.awaits {
                None => 0,
                Some(AwaitedResult::Load { line, cell }) => 1 << 16 | u64::from(line) << 8 | u64::from(cell),
                Some(AwaitedResult::Atomic { line, cell }) => 2 << 16 | u64::from(line) << 8 | u64::from(cell),
            });
        }
        for (index, slot) in self.l1.iter().enumerate() {
            let line = slot.line.map(|line| (line.valid.0, 0, line.data));
            let pending = slot.pending.map(|pending| (pending.miss, pending.poisoned));
            hash_slot(1 << 8 | index, line, pending, hasher);
        }
        self.arrivals.iter().for_each(|arrivals| hasher.write_u8(*arrivals));
    }
}

/// A single state.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct MachineState {
    pub(super) fronts: FrontEnds,
    /// L2 slots: module × lines + line.
    pub(super) l2: Vec<L2Slot>,
    /// Directory entries: module × regions + region.
    pub(super) entries: Vec<Option<Sharers>>,
    /// Memory, by line; with pages, a separate memory per module and for the host:
    /// [`Machine::memory_index`](super::machine::Machine::memory_index).
    pub(super) memory: Vec<Values>,
    /// Pages, if they move or are published.
    pub(super) pages: Vec<PageState>,
    /// Remaining budget for page changes without a requesting access.
    pub(super) unrequested: UnrequestedChanges,
    /// Queues of stores to publish: by module, then by line.
    pub(super) queues: Vec<QueueEntry>,
    /// Copies behind kernels.
    pub(super) copying: Copying,
    /// Requests held at L2s: in arrival order within a slot.
    pub(super) held: Vec<HeldRequest>,
    /// Messages in flight: in send order within a channel.
    pub(super) messages: Vec<ChannelMessage>,
    /// Violation in the step that led to this state.
    pub(super) broken: Option<Violation>,
}

impl Clone for MachineState {
    fn clone(&self) -> MachineState {
        MachineState {
            fronts: self.fronts.clone(),
            l2: self.l2.clone(),
            entries: self.entries.clone(),
            memory: self.memory.clone(),
            pages: self.pages.clone(),
            unrequested: self.unrequested,
            queues: self.queues.clone(),
            copying: self.copying.clone(),
            held: self.held.clone(),
            messages: self.messages.clone(),
            broken: self.broken,
        }
    }

    /// Allocates no memory if this state was previously at least as large: a search copies a state for every step.
    fn clone_from(&mut self, from: &MachineState) {
        self.fronts.clone_from(&from.fronts);
        self.l2.clone_from(&from.l2);
        self.entries.clone_from(&from.entries);
        self.memory.clone_from(&from.memory);
        self.pages.clone_from(&from.pages);
        self.unrequested = from.unrequested;
        self.queues.clone_from(&from.queues);
        self.copying.clone_from(&from.copying);
        self.held.clone_from(&from.held);
        self.messages.clone_from(&from.messages);
        self.broken = from.broken;
    }
}

/// Bits of a single-word set.
fn bits<I>(set: EntrySet<I>) -> u64 {
    set.bits().unwrap_or_default()
}

/// Hashing skips empty slots, the majority, therefore each hashed slot includes its kind and index. Invalid bytes are
/// ignored.
impl Hash for MachineState {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.fronts.hash(hasher);
        for (index, slot) in self.l2.iter().enumerate() {
            let line = slot.line.map(|line| (line.valid.0, line.dirty.0, line.data));
            hash_slot(2 << 8 | index, line, slot.pending.map(|pending| (pending, Mask::NONE)), hasher);
        }
        for (index, entry) in self.entries.iter().enumerate() {
            if let Some(sharers) = entry {
                let index = 3 << 8 | index as u64;
                hasher.write_u64(index << 48 | bits(sharers.modules) << 16 | bits(sharers.gpus));
            }
        }
        for values in &self.memory {
            values.0.iter().for_each(|value| hasher.write_u64(*value as u64));
        }
        if !self.pages.is_empty() {
            (&self.pages, self.unrequested).hash(hasher);
        }
        if !self.queues.is_empty() {
            self.queues.hash(hasher);
        }
        if self.copying != Copying::default() {
            self.copying.hash(hasher);
        }
        self.held.hash(hasher);
        hasher.write_usize(self.messages.len());
        for message in &self.messages {
            hasher.write_u64(message.channel.word() << 8 | u64::from(message.line));
            message.body.hash(hasher);
        }
        self.broken.hash(hasher);
    }
}

/// Hashes a cache slot: valid and dirty cells with their contents, and the miss with its poisoned part. Masks have two
/// bits and scopes two.
fn hash_slot<H: Hasher>(index: usize, line: Option<(u32, u32, Values)>, miss: Option<(Pending, Mask)>, to: &mut H) {
    if line.is_none() && miss.is_none() {
        return;
    }
    let (valid, dirty, data) = line.unwrap_or_default();
    let miss = miss.map_or(0, |(miss, poisoned)| {
        let masks = u64::from(miss.mask.0 | miss.stale.0 << 2 | poisoned.0 << 4);
        1 | (miss.scope as u64) << 1 | masks << 3
    });
    let is_line = u64::from(line.is_some());
    to.write_u64((index as u64) << 48 | miss << 12 | u64::from(valid) << 4 | u64::from(dirty) << 1 | is_line);
    for cell in cells(Mask(valid)) {
        to.write_u64(data.0[cell] as u64);
    }
}

impl MachineState {
    /// Sorts unordered elements, to let equivalent states compare equal.
    pub(super) fn canonicalise(&mut self) {
        self.held.sort_by_key(|held| (held.module, held.line, held.how.rank()));
        self.messages.sort_by_key(|message| message.channel);
        self.queues.sort_by_key(|queued| (queued.module, queued.line));
    }

    /// Records a violation; the first recorded violation wins.
    pub(super) fn break_with(&mut self, violation: Violation) {
        self.broken.get_or_insert(violation);
    }

    /// Threads with releases that wait for a message or a held request.
    pub(super) fn watched(&self) -> ThreadSet {
        let in_flight = self.messages.iter().fold(0, |threads, message| match message.body {
            MessageBody::Request(posted) => threads | posted.watched,
            MessageBody::Invalidate { watched } => threads | watched,
            MessageBody::Downgrade | MessageBody::Fill { .. } | MessageBody::Old(_) | MessageBody::Act(_) => threads,
        });
        in_flight | self.watched_held(|_| true)
    }

    /// Threads with a current phase that tracks stores up to their system home.
    pub(super) fn waiting_to_the_end(&self) -> ThreadSet {
        let phase = |thread: &ThreadState| thread.plan.and_then(|plan| plan.phase());
        let waits = |thread| phase(thread).is_some_and(|phase| phase.action.awaits_to_the_end());
        let each = self.fronts.threads.iter().enumerate();
        each.fold(0, |threads, (index, thread)| threads | u8::from(waits(thread)) << index)
    }

    /// Threads with releases that wait for a request posted by `sm`.
    pub(super) fn watched_from_sm(&self, sm: u8) -> ThreadSet {
        let mut threads = 0;
        for message in &self.messages {
            if let (Channel::ToL2 { sm: from, .. }, MessageBody::Request(posted)) = (message.channel, message.body)
                && from == sm
            {
                threads |= posted.watched;
            }
        }
        threads | self.watched_held(|source| source == RequestSource::Sm(sm))
    }

    fn watched_held(&self, chosen: impl Fn(RequestSource) -> bool) -> ThreadSet {
        let held = self.held.iter().filter(|held| chosen(held.source));
        held.fold(0, |threads, held| match held.how {
            HoldReason::Park(posted) => threads | posted.watched,
            HoldReason::Flush(watched) => threads | watched,
            HoldReason::Wait(_) => threads,
        })
    }
}
