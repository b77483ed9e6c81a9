//! Cycle accounting for a run's warp slots: every cycle is in exactly one class, and whole cycles add up.
//!
//! A slot held by a CTA counts by its warp's activity or stall reason, as reported by the SMs. All remaining slots are
//! empty. If a GPU has an open kernel with no CTA running anywhere, its empty slots count as `kernel_boundary`,
//! otherwise as `idle`. A slot counts as `idle` after its warp has ended, even if the CTA still runs.

use crate::counters::ModuleCounters;
use crate::time::{Span, union};
use serde::{Deserialize, Serialize};
use tombolo_machine::MachineConfig;
use tombolo_model::command_processor::{CommandProcessor, KernelTime};
use tombolo_model::kernel_stats::LaunchTimes;
use tombolo_model::stall::{QUEUED, Queue, Stall, StallTimes};
use tombolo_types::{Clock, Ps};

/// Smallest share that tables show. Source: the smallest share that rounds to more than zero with one decimal in
/// percent.
pub const SMALLEST_SHOWN_SHARE: f64 = 0.0005;

/// Cycles within a class that were spent in queues. The class already includes them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct QueueRecord {
    /// Cycles in queues for links between modules.
    pub link: u64,
    /// Cycles in L2 slice queues: for ports, miss registers, lines and credits.
    pub slice: u64,
    /// Cycles in memory queues.
    pub dram: u64,
}

impl QueueRecord {
    /// Sum over all queues.
    pub fn sum(&self) -> u64 {
        self.link + self.slice + self.dram
    }

    fn and(self, other: QueueRecord) -> QueueRecord {
        QueueRecord { link: self.link + other.link, slice: self.slice + other.slice, dram: self.dram + other.dram }
    }
}

/// Cycles spent in queues, for the classes that can have any: stalls on loads served outside the SM.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct QueuedRecord {
    /// Queueing within class `own_l2`.
    pub own_l2: QueueRecord,
    /// Queueing within class `module`.
    pub module: QueueRecord,
    /// Queueing within class `gpu`.
    pub gpu: QueueRecord,
    /// Queueing within class `host`.
    pub host: QueueRecord,
}

impl QueuedRecord {
    /// Converts times in picoseconds; `cycles` returns the whole cycles in a time.
    fn new(times: &StallTimes, cycles: impl Fn(u64) -> u64) -> QueuedRecord {
        let [own_l2, module, gpu, host] = QUEUED.map(|stall| {
            let [link, slice, dram] = Queue::ALL.map(|queue| cycles(times.queued(stall, queue)));
            QueueRecord { link, slice, dram }
        });
        QueuedRecord { own_l2, module, gpu, host }
    }

    /// Every class with its name.
    pub fn named(&self) -> [(&'static str, QueueRecord); QUEUED.len()] {
        [("own_l2", self.own_l2), ("module", self.module), ("gpu", self.gpu), ("host", self.host)]
    }

    fn and(self, other: &QueuedRecord) -> QueuedRecord {
        QueuedRecord {
            own_l2: self.own_l2.and(other.own_l2),
            module: self.module.and(other.module),
            gpu: self.gpu.and(other.gpu),
            host: self.host.and(other.host),
        }
    }
}

macro_rules! classes {
    ($( $(#[doc = $about:literal])* $field:ident: $Stall:ident ),+ $(,)?) => {
        /// Warp slot cycles, by class.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(default)]
        pub struct StallRecord {
            /// Cycles over all warp slots, in SM clock cycles: the sum over the classes.
            pub warp_slot_cycles: u64,
            $( $(#[doc = $about])* pub $field: u64, )+
            /// Cycles spent in queues, by class; present if the run tracks load latencies.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub queued: Option<QueuedRecord>,
        }

        impl StallRecord {
            /// Field names: the sum, then every class, in order.
            pub const NAMES: &[&str] = &["warp_slot_cycles", $( stringify!($field) ),+];

            /// Every class with its name, in order.
            pub fn named(&self) -> [(&'static str, u64); Stall::ALL.len()] {
                Stall::ALL.map(|stall| match stall { $( Stall::$Stall => (stringify!($field), self.$field), )+ })
            }

            /// Cycles in one class.
            fn class(&mut self, stall: Stall) -> &mut u64 {
                match stall { $( Stall::$Stall => &mut self.$field, )+ }
            }
        }
    };
}

classes! {
    /// The slot's warp issued a non-arithmetic instruction, or was ready and waited for its sub-core.
    issue: Issue,
    /// The warp's arithmetic occupied the pipelines in its sub-core.
    arithmetic: Arithmetic,
    /// Waits for the scratchpad.
    scratchpad: Scratchpad,
    /// Waits for L1 hits, or in the L1's queue.
    l1: L1,
    /// Waits for loads and atomics served by the module's own L2 or memory, or for resources that such accesses
    /// occupied.
    own_l2: OwnL2,
    /// Waits for loads and atomics served by another module in its GPU, or for resources so occupied.
    module: Module,
    /// Waits for loads and atomics served by another GPU, or for resources so occupied.
    gpu: Gpu,
    /// Waits for loads and atomics served by the host, or for resources so occupied.
    host: Host,
    /// Waits for translations.
    tlb: Tlb,
    /// Waits for pages on which the module lacked the necessary permission.
    page: Page,
    /// Waits for store credits.
    store_credit: StoreCredit,
    /// Waits for the CTA's remaining warps at a barrier.
    barrier: Barrier,
    /// Waits for flags, and for an acquire's operations.
    acquire: Acquire,
    /// Waits for posted stores before a release, and for the release's operations.
    release: Release,
    /// Empty while a kernel was open and no CTA ran: launches, and operations at kernel boundaries.
    kernel_boundary: KernelBoundary,
    /// Empty in all remaining cases, or the slot's warp had ended.
    idle: Idle,
}

impl StallRecord {
    /// Converts times in picoseconds to clock cycles. Each class is rounded together with all earlier classes, so that
    /// the cycles add up.
    fn new(times: &StallTimes, clock: Clock) -> StallRecord {
        let cycles = |ps: u64| whole_cycles(ps, clock);
        let mut record = StallRecord::default();
        let mut sum = 0;
        for stall in Stall::ALL {
            let before = cycles(sum);
            sum += times.of(stall);
            *record.class(stall) = cycles(sum) - before;
        }
        record.warp_slot_cycles = cycles(sum);
        record
    }

    /// Sum of two records.
    pub fn and(mut self, other: &StallRecord) -> StallRecord {
        for (stall, (_, cycles)) in Stall::ALL.into_iter().zip(other.named()) {
            *self.class(stall) += cycles;
        }
        self.warp_slot_cycles += other.warp_slot_cycles;
        self.queued = self.queued.map_or(other.queued, |queued| Some(queued.and(&other.queued.unwrap_or_default())));
        self
    }

    /// Share in all warp slot cycles, 0 to 1; 0 if there are none.
    pub fn share(&self, cycles: u64) -> f64 {
        cycles as f64 / self.warp_slot_cycles.max(1) as f64
    }
}

/// Warp slot times for a run that has ended.
pub(crate) struct WarpSlots<'a> {
    pub(crate) machine: &'a MachineConfig,
    pub(crate) processor: &'a CommandProcessor,
    /// The GPU modules.
    pub(crate) modules: &'a [&'a dyn ModuleCounters],
    /// True if the run tracks load latencies.
    pub(crate) follows: bool,
}

impl WarpSlots<'_> {
    /// Record for one GPU's modules, over a run that lasts `whole`.
    pub(crate) fn of_gpu(&self, modules: &[&dyn ModuleCounters], whole: Ps) -> StallRecord {
        let modules_per_gpu = self.machine.topology.modules_per_gpu;
        let (mut open, mut ran) = (Vec::new(), Vec::new());
        for (launch, time) in self.processor.kernels().iter().enumerate() {
            if modules.iter().any(|module| time.on.contains(module.id(), modules_per_gpu)) {
                open.push(Span { start: time.start, end: time.end });
                ran.extend(self.ran(launch));
            }
        }
        let boundary = union(&mut open) - union(&mut ran);
        let held = modules.iter().flat_map(|module| module.sms());
        let held = held.fold(StallTimes::default(), |sum, sm| sum.and(sm.stalls));
        self.record(&filled(held, slots(modules), boundary, whole))
    }

    /// Record for one launch, over the time its kernel was open: slots held by its own CTAs count by activity, all
    /// remaining slots as empty.
    pub(crate) fn of_launch(&self, launch: usize, time: &KernelTime) -> StallRecord {
        let modules_per_gpu = self.machine.topology.modules_per_gpu;
        let modules = self.modules.iter().filter(|module| time.on.contains(module.id(), modules_per_gpu));
        let modules: Vec<&dyn ModuleCounters> = modules.copied().collect();
        let whole = time.end - time.start;
        let boundary = whole - self.ran(launch).map_or(Ps::ZERO, |ran| ran.end - ran.start);
        let counted = self.modules.iter().map(|module| module.counted(launch).stalls);
        let held = counted.fold(StallTimes::default(), |sum, stalls| sum.and(&stalls));
        self.record(&filled(held, slots(&modules), boundary, whole))
    }

    fn record(&self, times: &StallTimes) -> StallRecord {
        let clock = self.machine.sm.clock;
        let queued = self.follows.then(|| QueuedRecord::new(times, |ps| whole_cycles(ps, clock)));
        StallRecord { queued, ..StallRecord::new(times, clock) }
    }

    fn paces(&self, launch: usize) -> impl Iterator<Item = &LaunchTimes> {
        self.modules.iter().filter_map(move |module| module.controller().dispatcher().paces().get(launch))
    }

    /// Interval in which CTAs from a launch ran anywhere.
    fn ran(&self, launch: usize) -> Option<Span> {
        let ran = self.paces(launch).filter_map(LaunchTimes::ran);
        let ran = ran.reduce(|(first, last), (start, end)| (first.min(start), last.max(end)));
        ran.map(|(start, end)| Span { start, end })
    }
}

/// Whole clock cycles in a time given in picoseconds.
fn whole_cycles(ps: u64, clock: Clock) -> u64 {
    (u128::from(ps) * u128::from(clock.hz()) / 1_000_000_000_000) as u64
}

/// Warp slots in `modules`.
fn slots(modules: &[&dyn ModuleCounters]) -> u64 {
    modules.iter().flat_map(|module| module.sms()).map(|sm| sm.slots).sum()
}

/// Completes the times `held` by warps with the empty time in `slots` slots over `whole`: boundary time first, the rest
/// idle.
fn filled(mut held: StallTimes, slots: u64, boundary: Ps, whole: Ps) -> StallTimes {
    held.add(Stall::KernelBoundary, Ps(boundary.0 * slots));
    let rest = (whole.0 * slots).checked_sub(held.sum()).expect("a slot is held by one warp at a time");
    held.add(Stall::Idle, Ps(rest));
    held
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cycles_of_classes_add_up_whatever_is_rounded() {
        let mut times = StallTimes::default();
        for (index, stall) in Stall::ALL.into_iter().enumerate() {
            times.add(stall, Ps(1_000_003 * index as u64 + 7));
        }
        let record = StallRecord::new(&times, Clock::from_hz(1_300_000_000));
        let sum: u64 = record.named().iter().map(|(_, cycles)| cycles).sum();
        assert_eq!(sum, record.warp_slot_cycles);
        assert_eq!(record.warp_slot_cycles, times.sum() * 13 / 10_000);
        for (stall, (name, cycles)) in Stall::ALL.into_iter().zip(record.named()) {
            let exact = times.of(stall) as f64 * 1.3e-3;
            assert!((cycles as f64 - exact).abs() < 1.0, "{name}: {cycles} for {exact}");
        }
    }

    #[test]
    fn what_no_warp_holds_is_at_a_boundary_or_idle() {
        let mut held = StallTimes::default();
        held.add(Stall::Gpu, Ps(30));
        let all = filled(held, 4, Ps(5), Ps(100));
        assert_eq!((all.of(Stall::KernelBoundary), all.of(Stall::Idle), all.sum()), (20, 350, 400));
    }
}
