//! Measures each kernel's demands on a machine from the program's streams: the amount of work, and the touched lines.
//!
//! For lines, a spatial sample is kept: all lines with addresses that hash into a fixed share. The number of lines
//! between two touches to a kept line follows from the kept lines in between. Source: SHARDS (Waldspurger et al., FAST
//! 2015).

use crate::survey::{Reader, SurveyedLaunch, survey};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;
use tombolo_design::scheduling::{CtaDistribution, MachineShape};
use tombolo_machine::MachineConfig;
use tombolo_types::stream::{CtaStream, Program, StreamError};
use tombolo_types::{Line, ModuleId};

/// Approximate number of kept lines that fill the caches. Source: SHARDS, section 3: some thousands give a miss ratio
/// within a percent.
const KEPT: u64 = 4096;
/// Spreads addresses. Source: Fibonacci hashing (Knuth, volume 3): the 64-bit golden ratio.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Demands of one kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Demand {
    /// Instructions plus line transactions.
    pub(crate) work: u64,
    /// Touched lines within the kept sample, without duplicates, ascending.
    pub(crate) lines: Vec<Line>,
}

/// Demands of all kernels in a program on a machine.
#[derive(Clone, Debug, Default)]
pub struct KernelDemands {
    /// Demands, indexed by kernel.
    pub(crate) kernels: Vec<Demand>,
    /// Number of kept lines that fill the machine's L2 and memory-side caches.
    pub(crate) capacity: usize,
}

impl KernelDemands {
    /// Measures the demands of `program` on `machine` in a single walk over the streams.
    ///
    /// # Errors
    /// The recording is damaged.
    pub fn of(machine: &MachineConfig, program: &dyn Program) -> Result<KernelDemands, StreamError> {
        let modules = machine.topology.modules() as u64;
        let capacity = (machine.l2.bytes + machine.memory_cache.bytes.0) / machine.line.bytes() * modules;
        let mut reader = DemandWalk::keeping(program.kernels().len(), (capacity / KEPT).max(1).ilog2());
        // The division of grids among modules is irrelevant: each CTA is visited once.
        survey(program, CtaDistribution::Interleaved { chunk: 1 }, MachineShape::of(machine), &mut [&mut reader])?;
        Ok(reader.finish(capacity))
    }
}

/// The walk over the streams.
struct DemandWalk {
    /// A line is kept if its hashed address has at least this many leading zeros.
    zeros: u32,
    seen: Vec<bool>,
    kernels: Vec<(u64, FxHashSet<Line>)>,
    /// The kernel being visited.
    at: usize,
}

impl DemandWalk {
    fn keeping(kernels: usize, zeros: u32) -> DemandWalk {
        DemandWalk { zeros, seen: vec![false; kernels], kernels: vec![(0, FxHashSet::default()); kernels], at: 0 }
    }

    fn finish(self, capacity: u64) -> KernelDemands {
        let demand = |(work, lines): (u64, FxHashSet<Line>)| {
            let mut lines: Vec<Line> = lines.into_iter().collect();
            lines.sort_unstable();
            Demand { work, lines }
        };
        let capacity = (capacity >> self.zeros).max(1) as usize;
        KernelDemands { kernels: self.kernels.into_iter().map(demand).collect(), capacity }
    }
}

impl Reader for DemandWalk {
    fn launch(&mut self, launch: SurveyedLaunch) -> bool {
        self.at = launch.kernel as usize;
        !std::mem::replace(&mut self.seen[self.at], true)
    }

    fn cta(&mut self, _: ModuleId, _: u32, stream: &CtaStream) {
        let (work, lines) = &mut self.kernels[self.at];
        *work += stream.instructions() + stream.accesses.len() as u64;
        let kept = |line: &Line| line.0.wrapping_mul(SPREAD).leading_zeros() >= self.zeros;
        lines.extend(stream.accesses.iter().map(|access| access.line).filter(kept));
    }
}

/// For each launch in `order`, a list of kernels: the number of preceding launches necessary to warm the caches. The
/// count reaches back to the last touch for all its lines except a share of `1 / LEFT`. Lines are ignored if more lines
/// than the caches hold have been touched since. The minimum is 1. Source: boundary line reuse latency (Eeckhout et
/// al., The Computer Journal 2005).
pub(crate) fn warm_up_lengths(demands: &KernelDemands, order: &[u32]) -> Vec<usize> {
    let mut last: FxHashMap<Line, usize> = FxHashMap::default();
    let mut held = CachedLaunches::default();
    let mut warm_up_lengths = Vec::with_capacity(order.len());
    for (launch, &kernel) in order.iter().enumerate() {
        let lines = &demands.kernels[kernel as usize].lines;
        let mut ages: Vec<usize> = lines
            .iter()
            .filter_map(|line| last.get(line).map(|&at| launch - at))
            .filter(|&age| age <= held.launches())
            .collect();
        ages.sort_unstable();
        let left = ages.len() / LEFT;
        warm_up_lengths.push(ages.len().checked_sub(left + 1).map_or(1, |place| ages[place]).min(launch));
        lines.iter().for_each(|&line| _ = last.insert(line, launch));
        held.push(lines, demands.capacity);
    }
    warm_up_lengths
}

/// The warm-up may miss one in this many reused lines. Source: BLRL's strictest setting, 99 % or more.
const LEFT: usize = 100;

/// The latest launches that together touch enough lines to fill the caches; no more launches than necessary.
#[derive(Default)]
struct CachedLaunches<'a> {
    launches: VecDeque<&'a [Line]>,
    counts: FxHashMap<Line, u32>,
}

impl<'a> CachedLaunches<'a> {
    fn launches(&self) -> usize {
        self.launches.len()
    }

    fn push(&mut self, lines: &'a [Line], capacity: usize) {
        self.launches.push_back(lines);
        lines.iter().for_each(|&line| *self.counts.entry(line).or_default() += 1);
        while let Some(first) = self.launches.front()
            && self.counts.len() - self.alone(first) >= capacity
        {
            for line in *first {
                let count = self.counts.get_mut(line).expect("it was counted as it came");
                *count -= 1;
                if *count == 0 {
                    self.counts.remove(line);
                }
            }
            self.launches.pop_front();
        }
    }

    /// Number of lines in `lines` that no further launch touches.
    fn alone(&self, lines: &[Line]) -> usize {
        lines.iter().filter(|line| self.counts.get(line) == Some(&1)).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn demands(kernels: &[std::ops::Range<u64>], capacity: usize) -> KernelDemands {
        let demand = |lines: &std::ops::Range<u64>| Demand { work: 1, lines: lines.clone().map(Line).collect() };
        KernelDemands { kernels: kernels.iter().map(demand).collect(), capacity }
    }

    #[test]
    fn a_launch_needs_those_since_its_lines_were_touched() {
        let demands = demands(&[0..10, 10..20, 20..30], 1000);
        assert_eq!(warm_up_lengths(&demands, &[0, 1, 2, 0, 0, 1]), [0, 1, 1, 3, 1, 4]);
    }

    #[test]
    fn lines_that_caches_have_lost_since_need_no_launch() {
        let demands = demands(&[0..10, 10..20, 20..30], 15);
        assert_eq!(warm_up_lengths(&demands, &[0, 1, 2, 0]), [0, 1, 1, 1]);
    }

    #[test]
    fn one_line_in_a_hundred_may_be_older() {
        let order = [0, 1, 1, 2];
        let of_two = |old: u64, new: u64| {
            warm_up_lengths(&demands(&[0..old, 1000..1000 + new, 0..1000 + new], 1 << 20), &order)[3]
        };
        assert_eq!((of_two(1, 99), of_two(2, 99)), (1, 3));
    }
}
