//! Cycle accounting for a run's warp slots: every cycle is in exactly one class, and whole cycles add up.
//!
//! A slot held by a CTA counts by its warp's activity or stall reason, as reported by the SMs. All remaining slots are
//! empty. If a GPU has an open kernel with no CTA running anywhere, its empty slots count as `kernel_boundary`,
//! otherwise as `idle`. A slot counts as `idle` after its warp has ended, even if the CTA still runs.

use crate::counters::ModuleCounters;
use crate::time::{Span, union};
use tombolo_machine::MachineConfig;
pub use tombolo_metrics::{QueueRecord, QueuedRecord, StallRecord};
use tombolo_model::front_end::{CommandProcessor, KernelTime};
use tombolo_model::observe::{QUEUED, Queue, Stall, StallTimes};
use tombolo_model::sm::LaunchTimes;
use tombolo_types::{Clock, Ps};

/// Smallest share that tables show. Source: the smallest share that rounds to more than zero with one decimal in
/// percent.
pub const SMALLEST_SHOWN_SHARE: f64 = 0.0005;

/// Converts queueing times in picoseconds; `cycles` returns the whole cycles in a time.
fn queued(times: &StallTimes, cycles: impl Fn(u64) -> u64) -> QueuedRecord {
    let [own_l2, module, gpu, host] = QUEUED.map(|stall| {
        let [link, slice, dram] = Queue::ALL.map(|queue| cycles(times.queued(stall, queue)));
        QueueRecord { link, slice, dram }
    });
    QueuedRecord { own_l2, module, gpu, host }
}

/// Converts times in picoseconds to clock cycles. Each class is rounded together with all earlier classes, so that the
/// cycles add up.
fn stalls(times: &StallTimes, clock: Clock) -> StallRecord {
    let mut sum = 0;
    StallRecord::of(Stall::ALL.map(|stall| {
        let before = whole_cycles(sum, clock);
        sum += times.of(stall);
        whole_cycles(sum, clock) - before
    }))
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
        let queued = self.follows.then(|| queued(times, |ps| whole_cycles(ps, clock)));
        StallRecord { queued, ..stalls(times, clock) }
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
        let record = stalls(&times, Clock::from_hz(1_300_000_000));
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
