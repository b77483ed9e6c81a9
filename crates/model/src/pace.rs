//! A module's part of one launch: when its CTAs ran, as its dispatcher knows, and what each SM counts of them. It decides nothing.

use crate::kernel_slot::{KernelSlot, entry};
use crate::stall::StallTimes;
use crate::stats::SmStats;
use tombolo_types::Ps;

/// What SMs counted of one kernel: of its own CTAs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelStats {
    /// CTAs run.
    pub ctas: u64,
    /// Warp instructions issued.
    pub warp_instructions: u64,
    /// Of these, loads, stores, atomics and flag waits.
    pub memory_instructions: u64,
    /// Line transactions that left the coalescers.
    pub transactions: u64,
    /// L1 load lookups, by line.
    pub l1_loads: u64,
    /// Of these, hits.
    pub l1_load_hits: u64,
    /// What its warps spent their time on.
    pub stalls: StallTimes,
}

impl KernelStats {
    /// Those of an SM from the start of the run.
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

    /// What was counted since `earlier`.
    fn since(&self, earlier: &KernelStats) -> KernelStats {
        KernelStats { stalls: self.stalls.since(&earlier.stalls), ..self.with(earlier, u64::wrapping_sub) }
    }

    /// Both together.
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

/// Which kernels an SM's counters count: all that is counted between two warps of different kernels is the former's.
#[derive(Clone, Debug, Default)]
pub struct KernelCounts {
    /// The kernel of the warp that ran last.
    latest: KernelSlot,
    /// The counters when it began to.
    mark: KernelStats,
    /// By kernel, before that.
    kernels: Vec<KernelStats>,
}

impl KernelCounts {
    /// A warp of `kernel` runs next.
    #[inline]
    pub fn turn_to(&mut self, kernel: KernelSlot, stats: &SmStats, stalls: &StallTimes) {
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

    /// What has been counted of a kernel since it was last asked for.
    pub fn take(&mut self, kernel: KernelSlot, stats: &SmStats, stalls: &StallTimes) -> KernelStats {
        self.settle(stats, stalls);
        std::mem::take(entry(&mut self.kernels, kernel))
    }
}

/// A module's part of one launch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pace {
    launched: Ps,
    /// How long the module had CTAs of it, until their stores were taken.
    busy: Ps,
    /// When the first of its CTAs started, and the last one ended, where it had one.
    ran: Option<(Ps, Ps)>,
    /// Of each quarter of its CTAs: the sum of the times from the launch to their starts, in picoseconds, and how many.
    quarters: [(u64, u32); 4],
}

impl Pace {
    /// Of a kernel launched at `launched`.
    pub fn new(launched: Ps) -> Pace {
        Pace { launched, ..Pace::default() }
    }

    /// A CTA of a quarter starts.
    pub(crate) fn start(&mut self, at: Ps, quarter: usize) {
        let (sum, count) = &mut self.quarters[quarter];
        *sum += (at - self.launched).0;
        *count += 1;
        let (first, last) = self.ran.unwrap_or((at, at));
        self.ran = Some((first.min(at), last.max(at)));
    }

    /// A CTA has ended.
    pub(crate) fn end(&mut self, at: Ps) {
        if let Some((_, last)) = &mut self.ran {
            *last = at.max(*last);
        }
    }

    /// The module's part is over; `ended`: when, where it had a CTA.
    pub(crate) fn drain(&mut self, ended: Option<Ps>) {
        self.busy = ended.map_or(Ps::ZERO, |at| at - self.launched);
    }

    /// From when to when the module had CTAs of the kernel, or stores of theirs that were not taken.
    pub fn busy(&self) -> (Ps, Ps) {
        (self.launched, self.launched + self.busy)
    }

    /// From when to when CTAs of it ran here; `None` where none did.
    pub fn ran(&self) -> Option<(Ps, Ps)> {
        self.ran
    }

    /// Seconds from the mean start of the second quarter to that of the third, and from there to the fourth's; 0
    /// where they are empty.
    pub fn seconds(&self) -> [f64; 2] {
        let mean = |quarter: usize| {
            let (sum, count) = self.quarters[quarter];
            sum as f64 / f64::from(count.max(1)) * 1e-12
        };
        if self.quarters[1].1 == 0 { [0.0; 2] } else { [mean(2) - mean(1), mean(3) - mean(2)] }
    }
}
