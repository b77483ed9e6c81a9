//! What the warp slots of a run spent their cycles on: each in one class, whole cycles that add up.
//!
//! A slot that a CTA holds counts as what its warp does or waits for, which the SMs have told. All others are empty: of a
//! GPU with a kernel open of which no CTA runs, anywhere, they count as `kernel_boundary`; else as `idle`. So does a slot
//! whose warp has ended before its CTA.

use crate::counters::ModuleCounters;
use crate::time::{Span, union};
use serde::{Deserialize, Serialize};
use tombolo_machine::MachineConfig;
use tombolo_model::command_processor::{CommandProcessor, KernelTime};
use tombolo_model::pace::Pace;
use tombolo_model::stall::{QUEUED, Queue, Stall, StallTimes};
use tombolo_types::{Clock, Ps};

/// Shares from this one on are shown. Source: what a decimal of a percent shows as other than nothing.
pub const SHOWN: f64 = 0.0005;

/// Cycles of a class that were spent in queues. They are inside the class, not beside it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct QueueRecord {
    /// Of links between modules.
    pub link: u64,
    /// Of L2 slices: for ports, miss registers, lines and credits.
    pub slice: u64,
    /// Of memory.
    pub dram: u64,
}

impl QueueRecord {
    /// Of all queues.
    pub fn sum(&self) -> u64 {
        self.link + self.slice + self.dram
    }

    fn and(self, other: QueueRecord) -> QueueRecord {
        QueueRecord { link: self.link + other.link, slice: self.slice + other.slice, dram: self.dram + other.dram }
    }
}

/// Cycles spent in queues, of the classes that meet any: waits for loads that others answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct QueuedRecord {
    /// Of `own_l2`.
    pub own_l2: QueueRecord,
    /// Of `module`.
    pub module: QueueRecord,
    /// Of `gpu`.
    pub gpu: QueueRecord,
    /// Of `host`.
    pub host: QueueRecord,
}

impl QueuedRecord {
    /// Of times in picoseconds; `cycles`: whole cycles of a time.
    fn new(times: &StallTimes, cycles: impl Fn(u64) -> u64) -> QueuedRecord {
        let [own_l2, module, gpu, host] = QUEUED.map(|stall| {
            let [link, slice, dram] = Queue::ALL.map(|queue| cycles(times.queued(stall, queue)));
            QueueRecord { link, slice, dram }
        });
        QueuedRecord { own_l2, module, gpu, host }
    }

    /// Each class by name.
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
        /// Cycles of warp slots by what they went to.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(default)]
        pub struct StallRecord {
            /// Of all warp slots, in cycles of the SM clock: the sum of the classes.
            pub warp_slot_cycles: u64,
            $( $(#[doc = $about])* pub $field: u64, )+
            /// Of the classes, what was spent in queues; of runs whose loads are followed.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub queued: Option<QueuedRecord>,
        }

        impl StallRecord {
            /// Names of its numbers: the sum, then every class, in order.
            pub const NAMES: &[&str] = &["warp_slot_cycles", $( stringify!($field) ),+];

            /// Every class by name, in order.
            pub fn named(&self) -> [(&'static str, u64); Stall::ALL.len()] {
                Stall::ALL.map(|stall| match stall { $( Stall::$Stall => (stringify!($field), self.$field), )+ })
            }

            /// Cycles of one class.
            fn class(&mut self, stall: Stall) -> &mut u64 {
                match stall { $( Stall::$Stall => &mut self.$field, )+ }
            }
        }
    };
}

classes! {
    /// Its warp issued other than arithmetic, or was ready and waited for its sub-core.
    issue: Issue,
    /// Its warp's arithmetic occupied the pipelines of its sub-core.
    arithmetic: Arithmetic,
    /// Waits for the scratchpad.
    scratchpad: Scratchpad,
    /// Waits for hits of the L1, or in its queue.
    l1: L1,
    /// Waits for loads and atomics that the L2 or the memory of its own module answered, or for the room that one left.
    own_l2: OwnL2,
    /// Likewise, of another module of its GPU.
    module: Module,
    /// Likewise, of another GPU.
    gpu: Gpu,
    /// Likewise, of the host.
    host: Host,
    /// Waits for translations.
    tlb: Tlb,
    /// Waits for pages that its module was not to use so.
    page: Page,
    /// Waits for store credits.
    store_credit: StoreCredit,
    /// Waits for the other warps of its CTA at a barrier.
    barrier: Barrier,
    /// Waits for flags, and for the operations of an acquire.
    acquire: Acquire,
    /// Waits for posted stores before a release, and for the operations of that.
    release: Release,
    /// Empty while a kernel was open and no CTA of any ran: launches, and the operations at boundaries.
    kernel_boundary: KernelBoundary,
    /// Empty otherwise, or its warp had ended.
    idle: Idle,
}

impl StallRecord {
    /// Of times in picoseconds, by a clock. Each class is rounded with those before it, so that they add up.
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

    /// Both together.
    pub fn and(mut self, other: &StallRecord) -> StallRecord {
        for (stall, (_, cycles)) in Stall::ALL.into_iter().zip(other.named()) {
            *self.class(stall) += cycles;
        }
        self.warp_slot_cycles += other.warp_slot_cycles;
        self.queued = self.queued.map_or(other.queued, |queued| Some(queued.and(&other.queued.unwrap_or_default())));
        self
    }

    /// A share of all warp slots, 0 to 1; 0 of none.
    pub fn share(&self, cycles: u64) -> f64 {
        cycles as f64 / self.warp_slot_cycles.max(1) as f64
    }
}

/// The times of a run's warp slots, once it has ended.
pub(crate) struct Slots<'a> {
    pub(crate) machine: &'a MachineConfig,
    pub(crate) processor: &'a CommandProcessor,
    /// Those of GPUs.
    pub(crate) modules: &'a [&'a dyn ModuleCounters],
    /// Whether loads are followed.
    pub(crate) follows: bool,
}

impl Slots<'_> {
    /// Of the modules of one GPU, over a run of length `whole`.
    pub(crate) fn of_gpu(&self, modules: &[&dyn ModuleCounters], whole: Ps) -> StallRecord {
        let modules_per_gpu = self.machine.topology.modules_per_gpu;
        let (mut open, mut ran) = (Vec::new(), Vec::new());
        for (launch, time) in self.processor.kernels().iter().enumerate() {
            if modules.iter().any(|module| time.on.has(module.id(), modules_per_gpu)) {
                open.push(Span { start: time.start, end: time.end });
                ran.extend(self.ran(launch));
            }
        }
        let boundary = union(&mut open) - union(&mut ran);
        let held = modules.iter().flat_map(|module| module.sms());
        let held = held.fold(StallTimes::default(), |sum, sm| sum.and(sm.stalls));
        self.record(&filled(held, slots(modules), boundary, whole))
    }

    /// Of one launch, over the time that its kernel was open: of slots that its own CTAs held, and of all others as empty.
    pub(crate) fn of_launch(&self, launch: usize, time: &KernelTime) -> StallRecord {
        let modules_per_gpu = self.machine.topology.modules_per_gpu;
        let modules = self.modules.iter().filter(|module| time.on.has(module.id(), modules_per_gpu));
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

    fn paces(&self, launch: usize) -> impl Iterator<Item = &Pace> {
        self.modules.iter().filter_map(move |module| module.controller().dispatcher().paces().get(launch))
    }

    /// From when to when CTAs of a launch ran anywhere.
    fn ran(&self, launch: usize) -> Option<Span> {
        let ran = self.paces(launch).filter_map(Pace::ran);
        let ran = ran.reduce(|(first, last), (start, end)| (first.min(start), last.max(end)));
        ran.map(|(start, end)| Span { start, end })
    }
}

/// Whole cycles of a clock in picoseconds.
fn whole_cycles(ps: u64, clock: Clock) -> u64 {
    (u128::from(ps) * u128::from(clock.hz()) / 1_000_000_000_000) as u64
}

/// Warp slots of modules.
fn slots(modules: &[&dyn ModuleCounters]) -> u64 {
    modules.iter().flat_map(|module| module.sms()).map(|sm| sm.slots).sum()
}

/// What warps `held`, and the rest of so many slots over a time: at boundaries, and idle.
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
