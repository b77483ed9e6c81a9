//! One state of the explored machine: everything a later step can depend on, and nothing else.

use super::config::Wishes;
use super::pages::PageState;
use super::publication::Queued;
use super::values::{Values, cells};
use crate::litmus::Value;
use std::fmt;
use std::hash::{Hash, Hasher};
use tombolo_protocol::directory::EntrySet;
use tombolo_protocol::l1::{L1Line, L1Pending};
use tombolo_protocol::{Action as PlanAction, Collector, LineState, Pending, Request, Sharers};
use tombolo_types::{Mask, ModuleId};

/// Set in a channel's region where invalidations keep no order with fills.
pub(super) const ASIDE: u8 = 0x80;

/// A set of threads: bit `i` is thread `i`.
pub(super) type ThreadSet = u8;

/// A set of lines in L2s: bit `module × lines + line`, or the same by regions.
pub(super) type SlotSet = u128;

/// A register of any thread: registers of thread 0 first, then those of thread 1 and so on.
pub(super) type FlatRegister = u16;

/// A register of a running program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct RegisterState {
    /// Its value; 0 while it awaits one.
    pub(super) value: Value,
    /// What it awaits.
    pub(super) awaits: Option<Awaited>,
}

/// Where a register's value will come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Awaited {
    /// The fill of its SM's pending miss on a line: the cell of it.
    Load {
        /// The line.
        line: u8,
        /// The cell.
        cell: u8,
    },
    /// The result of an atomic on a cell of a line.
    Atomic {
        /// The line.
        line: u8,
        /// The cell.
        cell: u8,
    },
}

/// How far a thread is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct ThreadState {
    /// Index of the instruction at hand; the length of the code when done.
    pub(super) pc: u16,
    /// Its stage.
    pub(super) stage: u8,
    /// Whether that stage has begun.
    pub(super) begun: bool,
    /// The plan of an acquire or release being run.
    pub(super) plan: Option<Collector>,
    /// Modules whose acknowledgment the plan's phase lacks.
    pub(super) owed: EntrySet<ModuleId>,
}

/// One line at one L1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct L1Slot {
    pub(super) line: Option<L1Line<Values>>,
    pub(super) pending: Option<L1Pending>,
}

/// One line at one L2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct L2Slot {
    pub(super) line: Option<LineState<Values>>,
    pub(super) pending: Option<Pending>,
}

/// Who sent a request to an L2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Source {
    /// An SM, of the module or of one that has passed its read on: an index into the explorer's SMs.
    Sm(u8),
    /// Another module.
    Module(ModuleId),
    /// Nobody waits for the answer: a prefetch that warms the caches.
    Prefetch,
}

/// A request and where its answer goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Posted {
    /// What is asked.
    pub(super) request: Request<Values>,
    /// Where the result of an atomic goes.
    pub(super) result: Option<FlatRegister>,
    /// Who issued it, where its L2 has passed it on: the answer goes there.
    pub(super) passed: Option<Source>,
    /// Threads whose release waits until it is taken.
    pub(super) watched: ThreadSet,
    /// Whether it was published: a subscriber takes it, and sends it to nobody.
    pub(super) published: bool,
}

/// A request held at an L2 by the pending miss of its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Held {
    pub(super) module: ModuleId,
    pub(super) line: u8,
    pub(super) source: Source,
    pub(super) how: Hold,
}

/// How a request is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Hold {
    /// A waiter of the miss: it takes its bytes from the fill.
    Wait(Mask),
    /// The releases of these threads write the line back after the fill. Its source is the module itself.
    Flush(ThreadSet),
    /// Parked: it runs again after the fill.
    Park(Posted),
}

impl Hold {
    /// Its place among those of one slot: in which order they run.
    fn rank(&self) -> u8 {
        match self {
            Hold::Wait(_) => 0,
            Hold::Flush(_) => 1,
            Hold::Park(_) => 2,
        }
    }
}

/// A channel: messages of one channel are delivered in the order sent.
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
    /// From a module's memory, per line: one miss is pending at a time.
    Memory { module: ModuleId, line: u8 },
    /// An atomic's result, straight to its register.
    Result { register: FlatRegister },
    /// One action of a thread's plan at one module.
    Plan { thread: u8, module: ModuleId },
}

impl Channel {
    /// All of it in 32 bits.
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

/// What a message says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Body {
    /// A request.
    Posted(Posted),
    /// The sender has dropped the region.
    Downgrade,
    /// Bytes of a line.
    Fill {
        /// Which.
        mask: Mask,
        /// Contents.
        data: Values,
    },
    /// Drop the region.
    Invalidate {
        /// Threads whose release waits until it is taken.
        watched: ThreadSet,
    },
    /// The contents before an atomic.
    Old(Values),
    /// Part of an acquire or a release.
    Act(PlanAction),
}

/// A message in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Message {
    pub(super) channel: Channel,
    /// The line it is about; for an invalidation or downgrade any line of the region.
    pub(super) line: u8,
    pub(super) body: Body,
}

/// What no correct protocol does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Violation {
    /// A protocol met an event that it says must not happen, or broke a rule of its host.
    Unexpected(&'static str),
    /// A state without successors in which a thread is not done, or something is held or in flight.
    Deadlock,
    /// At rest, a readable copy in an L2 differs from its home.
    Stale {
        /// Where the copy is.
        module: ModuleId,
        /// Of which line.
        line: u8,
    },
    /// At rest, a copy in an L2 that its home's directory does not know of.
    Untracked {
        /// Where the copy is.
        module: ModuleId,
        /// Of which line.
        line: u8,
    },
    /// A final state that the program's test forbids.
    Forbidden,
    /// No final state can be reached: some thread waits in a loop for what never comes.
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
pub(super) struct Fronts {
    pub(super) threads: Vec<ThreadState>,
    /// All registers, in the order of [`FlatRegister`].
    pub(super) registers: Vec<RegisterState>,
    /// L1 slots: SM × lines + line.
    pub(super) l1: Vec<L1Slot>,
}

impl Clone for Fronts {
    fn clone(&self) -> Fronts {
        Fronts { threads: self.threads.clone(), registers: self.registers.clone(), l1: self.l1.clone() }
    }

    /// Takes no memory where these have held as much before.
    fn clone_from(&mut self, from: &Fronts) {
        self.threads.clone_from(&from.threads);
        self.registers.clone_from(&from.registers);
        self.l1.clone_from(&from.l1);
    }
}

/// Slots without anything, most of them, are left out; bytes that are not valid do not count.
impl Hash for Fronts {
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
                Some(Awaited::Load { line, cell }) => 1 << 16 | u64::from(line) << 8 | u64::from(cell),
                Some(Awaited::Atomic { line, cell }) => 2 << 16 | u64::from(line) << 8 | u64::from(cell),
            });
        }
        for (index, slot) in self.l1.iter().enumerate() {
            let line = slot.line.map(|line| (line.valid.0, 0, line.data));
            let pending = slot.pending.map(|pending| (pending.miss, pending.poisoned));
            hash_slot(1 << 8 | index, line, pending, hasher);
        }
    }
}

/// One state.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct State {
    pub(super) fronts: Fronts,
    /// L2 slots: module × lines + line.
    pub(super) l2: Vec<L2Slot>,
    /// Directory entries: module × regions + region.
    pub(super) entries: Vec<Option<Sharers>>,
    /// Memory, by line; where there are pages that of each module and of the host: [`Machine::memory_index`](super::machine::Machine::memory_index).
    pub(super) memory: Vec<Values>,
    /// Pages, where they move or are published.
    pub(super) pages: Vec<PageState>,
    /// Changes of pages that nobody's access has asked for and that may still happen.
    pub(super) wishes: Wishes,
    /// What modules have to publish: by module, then by line.
    pub(super) queues: Vec<Queued>,
    /// Requests held at L2s: in order of arrival among those of one slot.
    pub(super) held: Vec<Held>,
    /// Messages in flight: in the order sent among those of one channel.
    pub(super) messages: Vec<Message>,
    /// What went wrong in the step that led here.
    pub(super) broken: Option<Violation>,
}

impl Clone for State {
    fn clone(&self) -> State {
        State {
            fronts: self.fronts.clone(),
            l2: self.l2.clone(),
            entries: self.entries.clone(),
            memory: self.memory.clone(),
            pages: self.pages.clone(),
            wishes: self.wishes,
            queues: self.queues.clone(),
            held: self.held.clone(),
            messages: self.messages.clone(),
            broken: self.broken,
        }
    }

    /// Takes no memory where this state has held as much before: a search copies one state for every step.
    fn clone_from(&mut self, from: &State) {
        self.fronts.clone_from(&from.fronts);
        self.l2.clone_from(&from.l2);
        self.entries.clone_from(&from.entries);
        self.memory.clone_from(&from.memory);
        self.pages.clone_from(&from.pages);
        self.wishes = from.wishes;
        self.queues.clone_from(&from.queues);
        self.held.clone_from(&from.held);
        self.messages.clone_from(&from.messages);
        self.broken = from.broken;
    }
}

/// Bits of a set of one word.
fn bits<I>(set: EntrySet<I>) -> u64 {
    set.bits().unwrap_or_default()
}

/// Slots without anything, most of them, are left out, so each names its kind and index; bytes that are not valid do not count.
impl Hash for State {
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
            (&self.pages, self.wishes).hash(hasher);
        }
        if !self.queues.is_empty() {
            self.queues.hash(hasher);
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

/// One slot of a cache: valid and dirty cells with their contents, and the miss with what of it is poisoned.
/// Masks have two bits and scopes two.
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

impl State {
    /// Puts what has no order into one order, so that equal states are equal.
    pub(super) fn canonicalise(&mut self) {
        self.held.sort_by_key(|held| (held.module, held.line, held.how.rank()));
        self.messages.sort_by_key(|message| message.channel);
        self.queues.sort_by_key(|queued| (queued.module, queued.line));
    }

    /// Notes the first thing that went wrong.
    pub(super) fn break_with(&mut self, violation: Violation) {
        self.broken.get_or_insert(violation);
    }

    /// The threads whose releases wait for something.
    pub(super) fn watched(&self) -> ThreadSet {
        let in_flight = self.messages.iter().fold(0, |threads, message| match message.body {
            Body::Posted(posted) => threads | posted.watched,
            Body::Invalidate { watched } => threads | watched,
            Body::Downgrade | Body::Fill { .. } | Body::Old(_) | Body::Act(_) => threads,
        });
        in_flight | self.watched_held(|_| true)
    }

    /// The threads whose phase at hand waits for what becomes of a store, up to its system home.
    pub(super) fn waiting_to_the_end(&self) -> ThreadSet {
        let phase = |thread: &ThreadState| thread.plan.and_then(|plan| plan.phase());
        let waits = |thread| phase(thread).is_some_and(|phase| phase.action.awaits_to_the_end());
        let each = self.fronts.threads.iter().enumerate();
        each.fold(0, |threads, (index, thread)| threads | u8::from(waits(thread)) << index)
    }

    /// The threads whose releases wait for something that `sm` has posted.
    pub(super) fn watched_from_sm(&self, sm: u8) -> ThreadSet {
        let mut threads = 0;
        for message in &self.messages {
            if let (Channel::ToL2 { sm: from, .. }, Body::Posted(posted)) = (message.channel, message.body)
                && from == sm
            {
                threads |= posted.watched;
            }
        }
        threads | self.watched_held(|source| source == Source::Sm(sm))
    }

    fn watched_held(&self, chosen: impl Fn(Source) -> bool) -> ThreadSet {
        let held = self.held.iter().filter(|held| chosen(held.source));
        held.fold(0, |threads, held| match held.how {
            Hold::Park(posted) => threads | posted.watched,
            Hold::Flush(watched) => threads | watched,
            Hold::Wait(_) => threads,
        })
    }
}
