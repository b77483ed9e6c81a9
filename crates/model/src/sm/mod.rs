//! Streaming multiprocessor (SM): in-order warps, their loads and posted stores, and the L1.
//!
//! Modelled: issue slots by instruction class, chains of dependent arithmetic, load-use waits, coalesced line
//! transactions, bounded misses and posted stores, barriers, acquire and release by the protocol's front end. Not
//! modelled: instruction fetch, register banks, the pipeline below issue.
//!
//! - `warp`: state for a single warp. `ready`: choice of the next warp. `sub_core`: a scheduler. `issue`: the issue
//!   loop.
//! - `arithmetic`: dependent arithmetic. `banks`: bank conflicts in the L1's data array.
//! - `access`: loads, stores and atomics at the L1. `synchronize`: the stages of acquire and release.
//! - `translate`: address translation and its waiters. `paging`: faults on pages that the module must not access.
//! - `stalls`: stall accounting for warps. `latency`: latency accounting for loads.
//! - `host`: the L1 as the protocol's host interface. `prefetch`: hints for the host's caches, without effect on
//!   results.

pub(crate) mod dispatcher;
pub(crate) mod flags;
pub(crate) mod kernel_slot;
pub(crate) mod kernel_stats;
pub(crate) mod page_waits;
pub(crate) mod residency;
pub(crate) mod tlb;
pub(crate) mod translation;

pub use kernel_slot::{KernelSlot, entry};
pub use kernel_stats::{KernelStats, LaunchTimes};
pub use residency::residency;
pub use tlb::{Tlb, TlbConfig, TlbStats};

mod access;
mod arithmetic;
mod banks;
mod host;
mod issue;
mod latency;
mod paging;
mod prefetch;
mod ready;
mod stalls;
mod sub_core;
mod synchronize;
mod translate;
mod warp;

use crate::calendar::{Calendar, FRACTION};
use crate::l2::cache::Cache;
use crate::l2::mshr::{EntryId, Mshr, PerEntry};
use crate::l2::posted::{Drainer, Posted};
use crate::message::{Flag, Message, Out};
use crate::module::config::ModuleSite;
use crate::module::context::SmContext;
use crate::observe::latency::{ReplyLatency, Stamp};
use crate::observe::stall::{Stall, StallTimes};
use crate::observe::stats::SmStats;
use crate::observe::value_probe::{Contents, ValueProbe};
use crate::sm::flags::FlagSet;
use crate::sm::kernel_stats::KernelCounts;
use arithmetic::{ArithmeticPath, ClassTiming};
use banks::Banks;
use host::SmFill;
use latency::RequestLatency;
use ready::{ReadyTimes, SLOTS};
use stalls::{StallCause, Stalls};
use std::collections::VecDeque;
use sub_core::SubCore;
use tombolo_machine::machine::Scheduler;
use tombolo_machine::{Fraction, MachineConfig};
use tombolo_protocol::host::{fill, invalidate_bulk};
use tombolo_protocol::l1::{self, L1Line, L1Pending};
use tombolo_types::stream::{ComputeClass, CtaStream};
use tombolo_types::{ComponentId, Line, Mask, ModuleId, Ps, Scope, Sectors, Serializer, SmId};
use translate::PendingTranslation;
use warp::{RESULTS, WaitReason, Warp};

/// MSHR payload for an L1 miss.
#[derive(Clone, Copy, Debug)]
struct Miss {
    pending: L1Pending,
    /// Flag requested by polls in this miss; at most one flag per miss.
    flag: Flag,
}

const _: () = assert!(Mshr::<Miss, Waiter, u8>::ENTRY_BYTES <= 64);

/// Load waiting for a miss.
#[derive(Clone, Copy, Debug)]
struct Waiter {
    warp: u8,
    result: u8,
    /// True if the load polls the miss's flag.
    polls: bool,
    /// Bytes the load waits for, not rounded to sectors.
    mask: Mask,
    /// Start time of the wait.
    since: Stamp,
}

/// Resident CTA.
struct Cta {
    stream: CtaStream,
    /// Slot for the CTA's kernel.
    kernel: KernelSlot,
    /// Bit `i`: warp slot `i` belongs to this CTA.
    slots: u64,
    /// Number of live warps, not yet ended.
    alive: u32,
    /// Number of live warps waiting at the barrier.
    at_barrier: u32,
    /// Latest time at which a warp reached the barrier or ended.
    latest: Ps,
}

/// SM timing constants, resolved once from the machine description.
#[derive(Clone, Debug)]
struct Costs {
    /// Timing per [`ComputeClass`].
    compute: [ClassTiming; 6],
    /// Issue slot length, in 1024ths of a picosecond.
    slot: u64,
    /// Minimum distance between instructions from a single warp, in 1024ths of a picosecond; 0 if a sub-core never
    /// waits for a turn.
    turn: u64,
    /// Lookup time per coalesced transaction.
    transaction: Ps,
    /// Lookup time per load's line that is not in the L1.
    miss: Ps,
    /// Minimum distance between a load's requests for lines.
    request_interval: Ps,
    /// Minimum distance between the first requests of load instructions.
    request_instruction: Ps,
    /// Address generation time per memory instruction: minimum distance between the first lookups of successive
    /// instructions.
    instruction: Ps,
    /// Maximum backlog of queued transactions before the L1, as time.
    backlog: Ps,
    /// Sector layout of an L1 line.
    sectors: Sectors,
    /// Maximum number of requests waiting on an outstanding sector.
    merges: u32,
    lines_per_page_shift: u32,
}

/// Maximum number of transactions queued between the coalescer and the L1 before issue stalls. Assumed: a full warp
/// with divergent lanes.
const BACKLOG_TRANSACTIONS: u64 = 32;

/// Interval between a failed poll and the next poll. Assumed: a branch and a load's issue in a spin loop.
const POLL_INTERVAL: Ps = Ps::from_ns(20);

/// Number of failed polls after which a warp gives up on a flag and the run ends with a report. Assumed: 20 ms of
/// simulated time, longer than any kernel worth simulating.
const MOST_POLLS: u32 = 1_000_000;

impl Costs {
    fn new(machine: &MachineConfig) -> Costs {
        let period = u128::from(machine.sm.clock.span(1 << 20).0);
        let fixed = |numerator: u32, denominator: u32| {
            (period * u128::from(numerator) * 1024 / (u128::from(denominator) << 20)) as u64
        };
        let time = |cycles: Fraction| fixed(cycles.numerator, cycles.denominator);
        let pace = |class| ClassTiming {
            issue: time(machine.sm.cycles(class)),
            latency: time(machine.sm.latency_cycles(class)),
        };
        let lines = machine.l1.lookups_per_cycle;
        let transaction = Ps(fixed(lines.denominator, lines.numerator) / 1024);
        Costs {
            compute: ComputeClass::ALL.map(pace),
            slot: fixed(1, 1),
            turn: if machine.sm.turn_cycles > 1 { fixed(machine.sm.turn_cycles, 1) } else { 0 },
            transaction,
            miss: if machine.l1.miss_lookup == Ps::ZERO { transaction } else { machine.l1.miss_lookup },
            request_interval: machine.l1.request_interval,
            request_instruction: machine.l1.request_instruction,
            instruction: machine.sm.clock.span(machine.l1.instruction_cycles.unwrap_or(0).into()),
            backlog: Ps(transaction.0 * BACKLOG_TRANSACTIONS),
            sectors: crate::convert::sectors(machine),
            merges: machine.l1.merges,
            lines_per_page_shift: (machine.page_bytes / machine.line.bytes()).trailing_zeros(),
        }
    }
}

/// Scratchpad pass length, in the calendar's fractions of a picosecond.
fn pass_length(machine: &MachineConfig) -> u64 {
    let pass = machine.sm.shared_pass_cycles;
    let period = u128::from(machine.sm.clock.span(1 << 20).0);
    (((period * u128::from(pass.numerator)) << FRACTION) / (u128::from(pass.denominator) << 20)) as u64
}

/// Streaming multiprocessor state.
pub struct Sm<D: Contents> {
    id: ComponentId,
    module: ModuleId,
    sm: SmId,
    costs: Costs,
    /// True if host cache hints are enabled for this run.
    hints: bool,
    /// Resident warps by warp slot; a sub-core's slots are contiguous.
    warps: Vec<Warp>,
    /// Ready times for all warps.
    ready: ReadyTimes,
    /// Arithmetic path by warp slot modulo [`SLOTS`].
    paths: [ArithmeticPath; SLOTS],
    /// Time for which the currently issuing warp has waited for its sub-core.
    lag: Ps,
    /// Outstanding transactions by warp slot and result slot.
    outstanding: Vec<[u8; RESULTS as usize]>,
    /// Bit `i`: warp slot `i` is allocated, until its complete CTA has ended.
    taken: u64,
    /// Bit `i`: the warp in slot `i` has not ended.
    alive: u64,
    sub_cores: Vec<SubCore>,
    ctas: Vec<Option<Cta>>,
    /// Stream buffers from ended CTAs, kept for reuse.
    spare: Vec<CtaStream>,
    l1: Cache<L1Line<D>>,
    mshr: Mshr<Miss, Waiter, u8>,
    /// Stores and atomics in flight.
    posted: Posted,
    /// Warps waiting for a store credit, oldest first.
    credit_queue: VecDeque<u8>,
    /// Flags set by this SM.
    flags: FlagSet,
    tlb: Tlb,
    /// Pages with a translation request in flight, and their waiters.
    awaited: Vec<PendingTranslation<D>>,
    /// Port toward the slices.
    port: Serializer,
    /// Earliest time of the next L1 lookup.
    l1_free: Ps,
    /// Earliest time of the next request for a line.
    request_free: Ps,
    /// Time of the current instruction's first request for a line.
    first_request: Option<Ps>,
    /// Data banks that limit reads on L1 hits.
    banks: Banks,
    /// Scratchpad reservations. A calendar is needed because sub-cores reserve at times that differ from their
    /// simulation order.
    scratchpad: Calendar,
    /// Kernel attribution of the counters.
    counts: KernelCounts,
    stalls: Stalls,
    /// Latency record of the request side, by MSHR: time from issue to the slice for its latest request.
    request_latencies: PerEntry<RequestLatency>,
    /// Event counters.
    pub stats: SmStats,
}

impl<D: Contents> Sm<D> {
    /// Creates an idle SM.
    pub(crate) fn new(sm: SmId, config: &ModuleSite<D>) -> Sm<D> {
        let ModuleSite { module, machine, layout, .. } = config;
        let slots = machine.sm.warps as usize;
        assert!(slots <= SLOTS, "warp slots of an SM are bits of a word");
        Sm {
            id: layout.sm(*module, sm),
            module: *module,
            sm,
            costs: Costs::new(machine),
            hints: config.hints,
            warps: vec![Warp::new(0, (0, KernelSlot(0)), 0, 0); slots],
            ready: ReadyTimes::new(machine.sm.scheduler),
            paths: [ArithmeticPath::default(); SLOTS],
            lag: Ps::ZERO,
            outstanding: vec![[0; RESULTS as usize]; slots],
            taken: 0,
            alive: 0,
            sub_cores: sub_cores(slots, machine.sm.sub_cores as usize, machine.sm.scheduler),
            ctas: (0..machine.sm.ctas).map(|_| None).collect(),
            spare: Vec::new(),
            l1: Cache::new(crate::convert::l1(machine)),
            mshr: Mshr::new(crate::convert::l1_mshr(machine)),
            posted: Posted::new(crate::convert::posted(machine)),
            credit_queue: VecDeque::new(),
            flags: FlagSet::default(),
            tlb: Tlb::new(crate::convert::l1_tlb(machine)),
            port: Serializer::new(machine.crossbar.rate),
            l1_free: Ps::ZERO,
            request_free: Ps::ZERO,
            first_request: None,
            banks: Banks::new(machine),
            scratchpad: Calendar::new(pass_length(machine)),
            awaited: Vec::new(),
            counts: KernelCounts::default(),
            stalls: Stalls::new(slots),
            request_latencies: PerEntry::default(),
            stats: SmStats::default(),
        }
    }

    /// Starts a kernel launch in a slot and clears the slot's flags. Invalidates the L1 if the protocol requires it.
    pub(crate) fn begin(&mut self, slot: KernelSlot, launch: u32, here: &mut SmContext<'_, '_, D>) {
        here.shared.begin(slot, launch);
        self.flags.forget(slot);
        if l1::acquire_invalidates(&here.config.sm_rules, Scope::Sys) {
            self.invalidate_l1();
        }
    }

    /// Starts CTA `cta` from the program's kernel `index`, running in slot `kernel`.
    ///
    /// Panics if no CTA slot or too few warp slots are free: the controller must track the SM's capacity.
    pub(crate) fn start_cta(&mut self, (kernel, index, cta): (KernelSlot, u32, u32), here: &mut SmContext<'_, '_, D>) {
        let at = here.out.now();
        let mut stream = self.spare.pop().unwrap_or_default();
        if let Err(error) = here.shared.program.cta(index, cta, &mut stream) {
            here.shared.failure.get_or_insert(error.to_string());
            return self.cta_ended(kernel, true, here);
        }
        let slot = self.ctas.iter().position(Option::is_none).expect("the controller knows how many CTAs fit");
        self.counts.turn_to(kernel, &self.stats, &self.stalls.times);
        self.stats.ctas += 1;
        let mut alive = 0;
        let mut slots = 0;
        for (index, range) in (0..).zip(&stream.warps) {
            let (sub_core, free) = self.free_slot();
            here.config.probe.warp(here.config.warp_slot(self.sm, free), index);
            self.taken |= 1 << free;
            self.warps[free] = Warp::new(sub_core, (slot as u8, kernel), range.start, range.end);
            self.set_alive(free, true);
            self.ready.arrive(free);
            self.stalls.count_from(free, at);
            alive += 1;
            slots |= 1 << free;
            self.wake(free, at, here.out);
        }
        here.config.probe.cta(here.config.warp_slot(self.sm, 0), slots, kernel);
        self.ctas[slot] = Some(Cta { stream, kernel, slots, alive, at_barrier: 0, latest: at });
        if alive == 0 {
            self.end_cta(slot as u8, here);
        }
    }

    /// Notifies the controller that a CTA has ended or (`failed`) could not be decoded. Sends another notification
    /// when all stores posted before by this SM have been acknowledged.
    fn cta_ended(&mut self, slot: KernelSlot, failed: bool, here: &mut SmContext<'_, '_, D>) {
        let at = here.out.now() + crate::convert::to_controller(&here.config.machine);
        let controller = here.config.layout.controller(here.config.module);
        here.out.send(at, self.id, controller, Message::CtaEnded { sm: self.sm, slot, failed });
        self.drain(Drainer::Cta(slot), here);
    }

    /// Component id.
    pub(crate) fn id(&self) -> ComponentId {
        self.id
    }

    /// Replaces the TLB's contents with a copy of `tlb`.
    pub(crate) fn set_tlb(&mut self, tlb: &Tlb) {
        self.tlb = tlb.clone();
    }

    /// Returns a free warp slot and its sub-core: the sub-core with the most free slots.
    fn free_slot(&self) -> (u8, usize) {
        let free = |(_, sub_core): &(usize, &SubCore)| sub_core.count(!self.taken);
        let (index, most) = self.sub_cores.iter().enumerate().rev().max_by_key(free).expect("an SM has a sub-core");
        let slots = most.slots & !self.taken;
        assert!(slots != 0, "the controller knows how many warps fit");
        (index as u8, slots.trailing_zeros() as usize)
    }

    /// Marks the warp in `slot` as live or ended, and updates its sub-core's minimum issue interval.
    fn set_alive(&mut self, slot: usize, alive: bool) {
        self.alive = self.alive & !(1 << slot) | u64::from(alive) << slot;
        let sub_core = &mut self.sub_cores[usize::from(self.warps[slot].sub_core)];
        sub_core.least = self.costs.turn / u64::from(sub_core.count(self.alive).max(1));
    }

    /// Accumulated stall times of all warps.
    pub fn stalls(&self) -> &StallTimes {
        &self.stalls.times
    }

    /// Number of live warps, not yet ended.
    pub(crate) fn alive(&self) -> u32 {
        self.alive.count_ones()
    }

    /// Number of L1 misses in flight.
    pub(crate) fn misses(&self) -> u32 {
        self.mshr.used()
    }

    /// Busy time of the port toward the slices.
    pub fn busy(&self) -> Ps {
        self.port.busy()
    }

    /// Number of warp slots.
    pub fn slots(&self) -> usize {
        self.warps.len()
    }

    /// Invalidates the L1 (an acquire beyond the CTA, or a kernel's start).
    pub(crate) fn invalidate_l1(&mut self) {
        self.stats.l1_invalidations += 1;
        invalidate_bulk(self);
    }

    /// Handles the reply to a read: installs the bytes and serves the waiting loads. Frees the MSHR when no bytes of
    /// the line remain in flight, and then resumes parked warps.
    pub(crate) fn fill(&mut self, message: FillMessage<D>, here: &mut SmContext<'_, '_, D>) {
        let FillMessage { register, line, mask, .. } = message;
        assert!(self.mshr.holds(register, line), "{}: a fill of {line} nobody asked for", self.sm);
        let config = here.config;
        let load_latency = self.load_latency(&message, here);
        let answered = load_latency.stall_cause();
        let mut filling = SmFill { sm: self, here: &mut *here, fill: message, answered, load_latency, waited: 0 };
        let held = fill(&config.sm_rules, &mut filling, mask);
        let waited = filling.waited;
        if config.follows_loads() {
            here.shared.latencies.add_legs(load_latency.served, load_latency.share(waited));
        }
        let Some(mut held) = held else { return };
        if here.config.map.moves() {
            self.miss_ends(line, here);
        }
        while let Some(warp) = self.mshr.next_parked(&mut held) {
            self.resume(usize::from(warp), answered, here);
        }
        while let Some(warp) = self.mshr.wake() {
            self.prefetch_queue(self.mshr.backlog());
            self.resume(usize::from(warp), answered, here);
        }
    }

    /// Handles the result of an atomic, returned from module `by`.
    pub(crate) fn old(&mut self, warp: u8, result: u8, by: ModuleId, here: &mut SmContext<'_, '_, D>) {
        let stall = here.shared.stall_of(by);
        self.result(usize::from(warp), (result, stall.into()), false, here.out);
    }

    /// Describes each waiting warp's condition for the deadlock report.
    pub fn waiting(&self) -> impl Iterator<Item = String> + '_ {
        let alive = (0..self.warps.len()).filter(|slot| self.alive >> slot & 1 != 0);
        alive.map(|slot| format!("{} warp {slot} waits for {:?}", self.sm, self.warps[slot].wait))
    }

    /// Completes a transaction that contributes to a result. `answered`: the stall category for a wait on it.
    fn result(&mut self, slot: usize, (result, answered): (u8, StallCause), flag_seen: bool, out: &mut Out<'_, D>) {
        let warp = &mut self.warps[slot];
        if warp.several >> result & 1 != 0 {
            let left = &mut self.outstanding[slot][usize::from(result)];
            *left -= 1;
            if *left > 0 {
                return;
            }
        }
        warp.pending &= !(1 << result);
        warp.flag_seen |= flag_seen;
        let wakes = match warp.wait {
            WaitReason::Result(awaited) => awaited == result,
            WaitReason::AnyResult => true,
            WaitReason::AllResults => warp.pending == 0,
            WaitReason::Nothing
            | WaitReason::MissRegister
            | WaitReason::Line
            | WaitReason::StoreCredit
            | WaitReason::Barrier
            | WaitReason::Drain
            | WaitReason::Sync
            | WaitReason::Page
            | WaitReason::Flag => false,
        };
        if wakes {
            if warp.stall != Stall::Acquire {
                warp.stall = answered.stall;
                self.count_queued(slot, answered, out.now());
            }
            self.wake(slot, out.now(), out);
        }
    }

    /// Makes a warp ready at `at` and schedules its sub-core.
    fn wake(&mut self, slot: usize, at: Ps, out: &mut Out<'_, D>) {
        self.warps[slot].wait = WaitReason::Nothing;
        self.ready.set(slot, at);
        let index = usize::from(self.warps[slot].sub_core);
        let due = at.max(self.sub_cores[index].free_at).max(out.now());
        self.schedule(index, slot, due, out);
    }

    /// Schedules a sub-core's issue event at `due` for a warp, unless an earlier event is already scheduled.
    fn schedule(&mut self, index: usize, slot: usize, due: Ps, out: &mut Out<'_, D>) {
        self.prefetch_stream(slot);
        if due < self.sub_cores[index].next {
            self.sub_cores[index].next = due;
            out.send(due, self.id, self.id, Message::Issue { sub_core: index as u8, likely: slot as u8 });
        }
    }

    /// Blocks a warp until an event wakes it.
    fn block(&mut self, slot: usize, wait: WaitReason) {
        self.warps[slot].wait = wait;
        self.warps[slot].stall = wait.stall();
        self.ready.set(slot, Ps::NEVER);
    }

    /// Makes a warp ready at `at`; the time until then counts as `stall`.
    fn pause(&mut self, slot: usize, at: Ps, stall: Stall) {
        self.warps[slot].stall = stall;
        self.ready.set(slot, at);
    }

    fn keep_line(
        &mut self,
        line: Line,
        before: Option<L1Line<D>>,
        after: Option<L1Line<D>>,
        here: &SmContext<'_, '_, D>,
    ) {
        match (before, after) {
            (None, None) => {}
            (Some(old), Some(new)) => {
                if old != new {
                    *self.l1.peek_mut(line).expect("the line was just looked up") = new;
                }
            }
            (Some(_), None) => {
                self.l1.remove(line);
            }
            (None, Some(new)) => {
                // The victim is clean: an L1 writes through.
                let stored = self.l1.store(line, crate::l2::cache::BulkClass::new(0), new, here.l1_ways(line));
                assert!(stored, "no L1 line is pinned");
            }
        }
    }
}

/// Creates idle sub-cores that share `slots` warp slots. With a round-robin scheduler, the first instruction comes
/// from the second slot in each sub-core, except in the first sub-core, whose first slot issues first.
fn sub_cores(slots: usize, count: usize, scheduler: Scheduler) -> Vec<SubCore> {
    let each = slots / count;
    let skipped = |index: usize| usize::from(index > 0 && scheduler == Scheduler::GreedyRoundRobin) % each;
    (0..count).map(|index| SubCore::new(index * each, each, index * each + skipped(index))).collect()
}

/// Contents of a [`Message::Fill`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct FillMessage<D> {
    /// MSHR that waits for the fill.
    pub(crate) register: EntryId,
    /// Filled line.
    pub(crate) line: Line,
    /// Bytes in this fill.
    pub(crate) mask: Mask,
    /// Line contents.
    pub(crate) data: D,
    /// True if the flag polled in the read was set.
    pub(crate) seen: bool,
    /// Module that replied.
    pub(crate) responder: ModuleId,
    /// Latency record, from the request's arrival at a slice in the module.
    pub(crate) latency: ReplyLatency,
}
