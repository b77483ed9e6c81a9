//! A module's part in a launch: the run times for its CTAs, known to the dispatcher, and each SM's counters. Nothing in
//! this file makes decisions.

use crate::observe::stall::StallTimes;
use crate::observe::stats::SmStats;
use crate::sm::kernel_slot::{KernelSlot, entry};
use tombolo_types::Ps;

/// Counters recorded by SMs for the CTAs of a kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelStats {
    /// CTAs run.
    pub ctas: u64,
    /// Warp instructions issued.
    pub warp_instructions: u64,
    /// Loads, stores, atomics and flag waits among these instructions.
    pub memory_instructions: u64,
    /// Line transactions sent by the coalescers.
    pub transactions: u64,
    /// L1 load lookups, by line.
    pub l1_loads: u64,
    /// L1 hits among these lookups.
    pub l1_load_hits: u64,
    /// Stall times for the warps, by cause.
    pub stalls: StallTimes,
}

impl KernelStats {
    /// Counters from an SM since the start of the run.
    fn of(sm: &SmStats, stalls: &StallTimes) -> KernelStats {
        KernelStats {
            ctas: sm.ctas,
            warp_instructions: sm.warp_instructions,
            memory_instructions: sm.memory_instructions,
            transactions: sm.transactions,
            l1_loads: sm.l1_loads,
            l1_load_hits: sm.l1_hits,
            stalls: *stalls,
        }
    }

    /// Difference to an earlier count.
    fn since(&self, earlier: &KernelStats) -> KernelStats {
        KernelStats { stalls: self.stalls.since(&earlier.stalls), ..self.with(earlier, u64::wrapping_sub) }
    }

    /// Sum of both counts.
    pub fn and(&self, other: &KernelStats) -> KernelStats {
        KernelStats { stalls: self.stalls.and(&other.stalls), ..self.with(other, u64::wrapping_add) }
    }

    fn with(&self, other: &KernelStats, join: impl Fn(u64, u64) -> u64) -> KernelStats {
        KernelStats {
            ctas: join(self.ctas, other.ctas),
            warp_instructions: join(self.warp_instructions, other.warp_instructions),
            memory_instructions: join(self.memory_instructions, other.memory_instructions),
            transactions: join(self.transactions, other.transactions),
            l1_loads: join(self.l1_loads, other.l1_loads),
            l1_load_hits: join(self.l1_load_hits, other.l1_load_hits),
            stalls: self.stalls,
        }
    }
}

/// Assigns an SM's counters to kernels: all counts between two warps from different kernels belong to the first.
#[derive(Clone, Debug, Default)]
pub(crate) struct KernelCounts {
    /// Kernel of the warp that ran last.
    latest: KernelSlot,
    /// Counters at the time when this kernel's turn began.
    mark: KernelStats,
    /// Counters before this turn, by kernel slot.
    kernels: Vec<KernelStats>,
}

impl KernelCounts {
    /// Notes that a warp from `kernel` runs next.
    #[inline]
    pub(crate) fn turn_to(&mut self, kernel: KernelSlot, stats: &SmStats, stalls: &StallTimes) {
        if kernel != self.latest {
            self.settle(stats, stalls);
            self.latest = kernel;
        }
    }

    #[cold]
    fn settle(&mut self, stats: &SmStats, stalls: &StallTimes) {
        let now = KernelStats::of(stats, stalls);
        let of_latest = entry(&mut self.kernels, self.latest);
        *of_latest = of_latest.and(&now.since(&self.mark));
        self.mark = now;
    }

    /// Returns a kernel's counters since the last call.
    pub(crate) fn take(&mut self, kernel: KernelSlot, stats: &SmStats, stalls: &StallTimes) -> KernelStats {
        self.settle(stats, stalls);
        std::mem::take(entry(&mut self.kernels, kernel))
    }
}

/// A module's part in a launch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaunchTimes {
    launched: Ps,
    /// Time during which the module had CTAs from this launch, until their stores were accepted.
    busy: Ps,
    /// Start time for the first CTA and end time for the last, if any CTA ran.
    ran: Option<(Ps, Ps)>,
    /// For each quarter of the CTAs: the summed times from launch to start, in picoseconds, and the CTA count.
    quarters: [(u64, u32); 4],
}

impl LaunchTimes {
    /// Record for a kernel launched at `launched`.
    pub(crate) fn new(launched: Ps) -> LaunchTimes {
        LaunchTimes { launched, ..LaunchTimes::default() }
    }

    /// Records the start of a CTA in a quarter.
    pub(crate) fn start(&mut self, at: Ps, quarter: usize) {
        let (sum, count) = &mut self.quarters[quarter];
        *sum += (at - self.launched).0;
        *count += 1;
        let (first, last) = self.ran.unwrap_or((at, at));
        self.ran = Some((first.min(at), last.max(at)));
    }

    /// Records a CTA's end.
    pub(crate) fn end(&mut self, at: Ps) {
        if let Some((_, last)) = &mut self.ran {
            *last = at.max(*last);
        }
    }

    /// Ends the module's part; `ended`: end time, if the module had a CTA.
    pub(crate) fn drain(&mut self, ended: Option<Ps>) {
        self.busy = ended.map_or(Ps::ZERO, |at| at - self.launched);
    }

    /// Interval during which the module had CTAs from the kernel, or unacknowledged stores by these CTAs.
    pub fn busy(&self) -> (Ps, Ps) {
        (self.launched, self.launched + self.busy)
    }

    /// Interval during which CTAs ran on this module; `None` if there were none.
    pub fn ran(&self) -> Option<(Ps, Ps)> {
        self.ran
    }

    /// Seconds from the mean CTA start in the second quarter to the third, and from the third to the fourth; 0 if they
    /// are empty.
    pub fn seconds(&self) -> [f64; 2] {
        let mean = |quarter: usize| {
            let (sum, count) = self.quarters[quarter];
            sum as f64 / f64::from(count.max(1)) * 1e-12
        };
        if self.quarters[1].1 == 0 { [0.0; 2] } else { [mean(2) - mean(1), mean(3) - mean(2)] }
    }
}
