//! A streaming multiprocessor: warps that issue in order, their loads and posted stores, and the L1.
//!
//! Modelled: issue slots by instruction class, chains of dependent arithmetic, load-use waits, coalesced line
//! transactions, bounded misses and posted stores, barriers, acquire and release by the protocol's front end.
//! Not modelled: instruction fetch, register banks, the pipeline below issue.
//!
//! - `warp`: one warp's state. `ready`: which warp issues next. `sub_core`: a scheduler. `issue`: the issue loop.
//! - `arithmetic`: dependent arithmetic.
//! - `access`: loads, stores and atomics at the L1. `synchronize`: the stages of acquire and release.
//! - `translate`: translations, and what waits for them. `paging`: pages that its module may not use.
//! - `stalls`: what its warps spend their time on. `latency`: what its loads take.
//! - `host`: what an SM keeps of its L1, as the protocol's host sees it. `prefetch`: hints for the host's caches, which change nothing.

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

use crate::cache::Cache;
use crate::calendar::{Calendar, FRACTION};
use crate::context::SmContext;
use crate::flags::FlagSet;
use crate::kernel_slot::KernelSlot;
use crate::latency::{Answered, Stamp};
use crate::message::{Flag, Message, Out};
use crate::mshr::{ByEntry, EntryId, Mshr};
use crate::pace::KernelCounts;
use crate::posted::{Drainer, Posted};
use crate::site::Site;
use crate::stall::{Stall, StallTimes};
use crate::stats::SmStats;
use crate::tlb::Tlb;
use crate::watch::{Contents, Watch};
use arithmetic::{Pace, Path};
use banks::Banks;
use host::FillingSm;
use latency::Asked;
use ready::{Ready, SLOTS};
use stalls::{Stalls, Waited};
use std::collections::VecDeque;
use sub_core::SubCore;
use tombolo_machine::machine::Scheduler;
use tombolo_machine::{Fraction, MachineConfig};
use tombolo_protocol::Protocol;
use tombolo_protocol::host::{fill, invalidate_bulk};
use tombolo_protocol::l1::{self, L1Line, L1Pending};
use tombolo_types::stream::{ComputeClass, CtaStream};
use tombolo_types::{ComponentId, Line, Mask, ModuleId, Ps, Scope, Sectors, Serializer, SmId};
use translate::Awaited;
use warp::{RESULTS, Wait, Warp};

/// A miss of the L1.
#[derive(Clone, Copy, Debug)]
struct Miss {
    pending: L1Pending,
    /// The flag that its polls look for: one at a time.
    flag: Flag,
}

const _: () = assert!(Mshr::<Miss, Waiter, u8>::ENTRY_BYTES <= 64);

/// A load that waits for a miss.
#[derive(Clone, Copy, Debug)]
struct Waiter {
    warp: u8,
    result: u8,
    /// Whether it looks for the flag of the miss.
    polls: bool,
    /// The bytes that it waits for, not rounded to sectors.
    mask: Mask,
    /// When it began to.
    since: Stamp,
}

/// A resident CTA.
struct Cta {
    stream: CtaStream,
    /// Of which kernel.
    kernel: KernelSlot,
    /// Bit `i`: warp slot `i` is one of its.
    slots: u64,
    /// Warps that have not ended.
    alive: u32,
    /// Of these, at the barrier.
    at_barrier: u32,
    /// When the last of them came, or a warp ended.
    latest: Ps,
}

/// Constants of an SM, resolved once.
#[derive(Clone, Debug)]
struct Costs {
    /// Of one instruction of each [`ComputeClass`].
    compute: [Pace; 6],
    /// One issue slot, in 1024ths of a picosecond.
    slot: u64,
    /// From one instruction of a warp to its next, at least, likewise; 0 where its sub-core never has to wait for a turn.
    turn: u64,
    /// The lookup of one coalesced transaction.
    transaction: Ps,
    /// The addresses of one memory instruction: from its first lookup until the next instruction's.
    instruction: Ps,
    /// Transactions that may queue before the L1.
    backlog: Ps,
    /// Of an L1 line.
    sectors: Sectors,
    /// Requests that wait on one outstanding sector, at most.
    merges: u32,
    lines_per_page_shift: u32,
}

/// Transactions that may queue between the coalescer and the L1 before issue stalls. Assumed: one warp's
/// worth of fully divergent lanes.
const BACKLOG_TRANSACTIONS: u64 = 32;

/// From a failed poll of a flag to the next. Assumed: a branch and a load's issue in a spin loop.
const POLL_INTERVAL: Ps = Ps::from_ns(20);

/// Failed polls after which a flag is given up and the run ends with a report. Assumed: 20 ms of simulated
/// time, longer than any kernel that is worth simulating.
const MOST_POLLS: u32 = 1_000_000;

impl Costs {
    fn new(machine: &MachineConfig) -> Costs {
        let period = u128::from(machine.sm.clock.span(1 << 20).0);
        let fixed = |numerator: u32, denominator: u32| {
            (period * u128::from(numerator) * 1024 / (u128::from(denominator) << 20)) as u64
        };
        let time = |cycles: Fraction| fixed(cycles.numerator, cycles.denominator);
        let pace =
            |class| Pace { issue: time(machine.sm.cycles(class)), latency: time(machine.sm.latency_cycles(class)) };
        let lines = machine.l1.lookups_per_cycle;
        let transaction = Ps(fixed(lines.denominator, lines.numerator) / 1024);
        Costs {
            compute: ComputeClass::ALL.map(pace),
            slot: fixed(1, 1),
            turn: if machine.sm.turn_cycles > 1 { fixed(machine.sm.turn_cycles, 1) } else { 0 },
            transaction,
            instruction: machine.sm.clock.span(machine.l1.instruction_cycles.unwrap_or(0).into()),
            backlog: Ps(transaction.0 * BACKLOG_TRANSACTIONS),
            sectors: crate::convert::sectors(machine),
            merges: machine.l1.merges,
            lines_per_page_shift: (machine.page_bytes / machine.line.bytes()).trailing_zeros(),
        }
    }
}

/// One scratchpad pass, in the fractions of a picosecond that calendars count in.
fn pass_length(machine: &MachineConfig) -> u64 {
    let pass = machine.sm.shared_pass_cycles;
    let period = u128::from(machine.sm.clock.span(1 << 20).0);
    (((period * u128::from(pass.numerator)) << FRACTION) / (u128::from(pass.denominator) << 20)) as u64
}

/// One SM.
pub struct Sm<D: Contents> {
    id: ComponentId,
    module: ModuleId,
    sm: SmId,
    costs: Costs,
    /// Whether hints for the host's caches are worth their work.
    hints: bool,
    /// By warp slot; the slots of a sub-core are neighbours.
    warps: Vec<Warp>,
    /// When they may issue.
    ready: Ready,
    /// By warp slot modulo [`SLOTS`]: its arithmetic.
    paths: [Path; SLOTS],
    /// How long the warp whose instructions run has waited for its sub-core.
    lag: Ps,
    /// By warp slot and result slot: transactions outstanding.
    outstanding: Vec<[u8; RESULTS as usize]>,
    /// Bit `i`: warp slot `i` is taken, until all of its CTA is over.
    taken: u64,
    /// Bit `i`: the warp in slot `i` has not ended.
    alive: u64,
    sub_cores: Vec<SubCore>,
    ctas: Vec<Option<Cta>>,
    /// Streams of CTAs that have ended, to be used again.
    spare: Vec<CtaStream>,
    l1: Cache<L1Line<D>>,
    mshr: Mshr<Miss, Waiter, u8>,
    /// Stores and atomics on their way.
    posted: Posted,
    /// Warps that wait for a store credit, oldest first.
    credit_queue: VecDeque<u8>,
    /// Flags that this SM has left.
    flags: FlagSet,
    tlb: Tlb,
    /// Pages whose translation is asked for, and what waits for it.
    awaited: Vec<Awaited<D>>,
    /// Port toward the slices.
    port: Serializer,
    /// When the L1 looks up the next transaction.
    l1_free: Ps,
    /// What the L1's data give to loads that hit.
    banks: Banks,
    /// When the scratchpad is taken: sub-cores reach it at times that are not the order they are simulated in.
    scratchpad: Calendar,
    /// Of which kernels the counters count.
    counts: KernelCounts,
    stalls: Stalls,
    /// By miss register: what its last request took up to the slice.
    asked: ByEntry<Asked>,
    /// Counters.
    pub stats: SmStats,
}

impl<D: Contents> Sm<D> {
    /// An idle SM.
    pub fn new<C>(sm: SmId, site: &Site<C, D>) -> Sm<D> {
        let Site { module, machine, layout, .. } = site;
        let slots = machine.sm.warps as usize;
        assert!(slots <= SLOTS, "warp slots of an SM are bits of a word");
        Sm {
            id: layout.sm(*module, sm),
            module: *module,
            sm,
            costs: Costs::new(machine),
            hints: site.hints,
            warps: vec![Warp::new(0, (0, KernelSlot(0)), 0, 0); slots],
            ready: Ready::new(machine.sm.scheduler),
            paths: [Path::default(); SLOTS],
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
            banks: Banks::new(machine),
            scratchpad: Calendar::new(pass_length(machine)),
            awaited: Vec::new(),
            counts: KernelCounts::default(),
            stalls: Stalls::new(slots),
            asked: ByEntry::default(),
            stats: SmStats::default(),
        }
    }

    /// A kernel's launch begins in a slot, whose flags are new. The L1 drops what it holds, where the protocol says so.
    pub fn begin<C: Protocol>(&mut self, slot: KernelSlot, launch: u32, here: &mut SmContext<'_, '_, C, D>) {
        here.shared.begin(slot, launch);
        self.flags.forget(slot);
        if l1::acquire_invalidates(&here.site.protocol, Scope::Sys) {
            self.invalidate_l1();
        }
    }

    /// Starts CTA `cta` of kernel `index` of the program, which is under way in slot `kernel`.
    ///
    /// Panics where no CTA slot or too few warp slots are free: its controller knows what fits.
    pub fn start_cta<C: Protocol>(
        &mut self,
        (kernel, index, cta): (KernelSlot, u32, u32),
        here: &mut SmContext<'_, '_, C, D>,
    ) {
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
            here.site.watch.warp(here.site.warp_slot(self.sm, free), index);
            self.taken |= 1 << free;
            self.warps[free] = Warp::new(sub_core, (slot as u8, kernel), range.start, range.end);
            self.set_alive(free, true);
            self.ready.arrive(free);
            self.stalls.count_from(free, at);
            alive += 1;
            slots |= 1 << free;
            self.wake(free, at, here.out);
        }
        here.site.watch.cta(here.site.warp_slot(self.sm, 0), slots, kernel);
        self.ctas[slot] = Some(Cta { stream, kernel, slots, alive, at_barrier: 0, latest: at });
        if alive == 0 {
            self.end_cta(slot as u8, here);
        }
    }

    /// Tells the controller of a CTA that has ended, or (`failed`) could not be decoded, and once more when all that the SM has
    /// posted so far has been taken.
    fn cta_ended<C: Protocol>(&mut self, slot: KernelSlot, failed: bool, here: &mut SmContext<'_, '_, C, D>) {
        let at = here.out.now() + crate::convert::to_controller(&here.site.machine);
        let controller = here.site.layout.controller(here.site.module);
        here.out.send(at, self.id, controller, Message::CtaEnded { sm: self.sm, slot, failed });
        self.drain(Drainer::Cta(slot), here);
    }

    /// Its id.
    pub fn id(&self) -> ComponentId {
        self.id
    }

    /// Its TLB is this one from now on.
    pub fn set_tlb(&mut self, tlb: &Tlb) {
        self.tlb = tlb.clone();
    }

    /// A free warp slot, of the sub-core that has the most, and which that is.
    fn free_slot(&self) -> (u8, usize) {
        let free = |(_, sub_core): &(usize, &SubCore)| sub_core.count(!self.taken);
        let (index, most) = self.sub_cores.iter().enumerate().rev().max_by_key(free).expect("an SM has a sub-core");
        let slots = most.slots & !self.taken;
        assert!(slots != 0, "the controller knows how many warps fit");
        (index as u8, slots.trailing_zeros() as usize)
    }

    /// The warp in `slot` has come, or has ended.
    fn set_alive(&mut self, slot: usize, alive: bool) {
        self.alive = self.alive & !(1 << slot) | u64::from(alive) << slot;
        let sub_core = &mut self.sub_cores[usize::from(self.warps[slot].sub_core)];
        sub_core.least = self.costs.turn / u64::from(sub_core.count(self.alive).max(1));
    }

    /// What its warps have spent their time on.
    pub fn stalls(&self) -> &StallTimes {
        &self.stalls.times
    }

    /// Warps that have not ended.
    pub fn alive(&self) -> u32 {
        self.alive.count_ones()
    }

    /// Misses of its L1 under way.
    pub fn misses(&self) -> u32 {
        self.mshr.used()
    }

    /// How long its port toward the slices was in use.
    pub fn busy(&self) -> Ps {
        self.port.busy()
    }

    /// Warp slots.
    pub fn slots(&self) -> usize {
        self.warps.len()
    }

    /// Invalidates the L1 (an acquire beyond the CTA, or a kernel's start).
    pub fn invalidate_l1(&mut self) {
        self.stats.l1_invalidations += 1;
        invalidate_bulk(self);
    }

    /// The answer to a read has come: installs it and gives it to who waits. Where nothing of the line is on its way any
    /// more, its register is free.
    pub fn fill<C: Protocol>(&mut self, message: FillMessage<D>, here: &mut SmContext<'_, '_, C, D>) {
        let FillMessage { register, line, mask, .. } = message;
        assert!(self.mshr.holds(register, line), "{}: a fill of {line} nobody asked for", self.sm);
        let site = here.site;
        let way = self.way(&message, here);
        let answered = way.answered();
        let mut filling = FillingSm { sm: self, here: &mut *here, fill: message, answered, way, waited: 0 };
        let held = fill(&site.protocol, &mut filling, mask);
        let waited = filling.waited;
        if site.follows_loads() {
            here.shared.latencies.add_legs(way.served, way.share(waited));
        }
        let Some(mut held) = held else { return };
        if here.site.map.moves() {
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

    /// The result of an atomic has come from a module.
    pub fn old<C: Protocol>(&mut self, warp: u8, result: u8, by: ModuleId, here: &mut SmContext<'_, '_, C, D>) {
        let stall = here.shared.stall_of(by);
        self.result(usize::from(warp), (result, stall.into()), false, here.out);
    }

    /// What each waiting warp waits for, for a report of who waits for whom.
    pub fn waiting(&self) -> impl Iterator<Item = String> + '_ {
        let alive = (0..self.warps.len()).filter(|slot| self.alive >> slot & 1 != 0);
        alive.map(|slot| format!("{} warp {slot} waits for {:?}", self.sm, self.warps[slot].wait))
    }

    /// One transaction of a result has come, and what a wait for it counts as.
    fn result(&mut self, slot: usize, (result, answered): (u8, Waited), flag_seen: bool, out: &mut Out<'_, D>) {
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
            Wait::Result(awaited) => awaited == result,
            Wait::AnyResult => true,
            Wait::AllResults => warp.pending == 0,
            Wait::Nothing
            | Wait::MissRegister
            | Wait::Line
            | Wait::StoreCredit
            | Wait::Barrier
            | Wait::Drain
            | Wait::Sync
            | Wait::Page
            | Wait::Flag => false,
        };
        if wakes {
            if warp.stall != Stall::Acquire {
                warp.stall = answered.stall;
                self.count_queued(slot, answered, out.now());
            }
            self.wake(slot, out.now(), out);
        }
    }

    /// Makes a warp ready at `at` and has its sub-core issue then.
    fn wake(&mut self, slot: usize, at: Ps, out: &mut Out<'_, D>) {
        self.warps[slot].wait = Wait::Nothing;
        self.ready.set(slot, at);
        let index = usize::from(self.warps[slot].sub_core);
        let due = at.max(self.sub_cores[index].free_at).max(out.now());
        self.schedule(index, slot, due, out);
    }

    /// Has a sub-core issue at `due`, for a warp, unless it does so earlier anyway.
    fn schedule(&mut self, index: usize, slot: usize, due: Ps, out: &mut Out<'_, D>) {
        self.prefetch_stream(slot);
        if due < self.sub_cores[index].next {
            self.sub_cores[index].next = due;
            out.send(due, self.id, self.id, Message::Issue { sub_core: index as u8, likely: slot as u8 });
        }
    }

    /// Blocks a warp until somebody wakes it.
    fn block(&mut self, slot: usize, wait: Wait) {
        self.warps[slot].wait = wait;
        self.warps[slot].stall = wait.stall();
        self.ready.set(slot, Ps::NEVER);
    }

    /// Makes a warp ready at `at`, until when its time counts as `stall`.
    fn pause(&mut self, slot: usize, at: Ps, stall: Stall) {
        self.warps[slot].stall = stall;
        self.ready.set(slot, at);
    }

    fn keep_line<C: Protocol>(
        &mut self,
        line: Line,
        before: Option<L1Line<D>>,
        after: Option<L1Line<D>>,
        here: &SmContext<'_, '_, C, D>,
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
                let stored = self.l1.store(line, crate::cache::BulkClass::new(0), new, here.l1_ways(line));
                assert!(stored, "no L1 line is pinned");
            }
        }
    }
}

/// Idle sub-cores that share `slots` warp slots. Before its first instruction, one that takes warps in turn begins with
/// the second of its slots, but the first sub-core with the first.
fn sub_cores(slots: usize, count: usize, scheduler: Scheduler) -> Vec<SubCore> {
    let each = slots / count;
    let skipped = |index: usize| usize::from(index > 0 && scheduler == Scheduler::GreedyRoundRobin) % each;
    (0..count).map(|index| SubCore::new(index * each, each, index * each + skipped(index))).collect()
}

/// The content of [`Message::Fill`].
#[derive(Clone, Copy, Debug)]
pub struct FillMessage<D> {
    /// The miss register that waits for it.
    pub register: EntryId,
    /// The line.
    pub line: Line,
    /// Bytes carried.
    pub mask: Mask,
    /// Contents.
    pub data: D,
    /// Whether the flag that the read looked for was seen.
    pub seen: bool,
    /// The module that has answered.
    pub by: ModuleId,
    /// What it took, from the request's arrival at a slice of the module.
    pub time: Answered,
}
