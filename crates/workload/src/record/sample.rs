//! Recording part of a program in place of all of it.
//!
//! A kernel's time is taken to be a straight line in the CTAs of its grid once the machine is full, and in the
//! trips of its outer loop once caches are in their steady state. So a large kernel is recorded twice, with one
//! share of its CTAs and with two others, after one that only warms what all touch, and the line through both times is
//! followed to the whole. Where it has a long outer loop, the CTAs are those that fill the machine, and shares of the
//! trips are recorded in the same way; further CTAs take their turn as further trips would. Of a series of launches that differ in nothing but an index,
//! some are recorded, spread evenly; a launch whose streams equal an earlier one's is not recorded again.
//!
//! All this is a weighted sum: [`Part::weight`] says how often a recorded launch's time counts in the time of
//! the whole program. Weights may be negative (the shorter of two launches).

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use tombolo_types::stream::{CtaStream, KernelInfo};

/// CTAs of a kernel that a machine holds at once.
pub type AtOnce = Arc<dyn Fn(&KernelInfo) -> u64 + Send + Sync>;

/// How much of a program to record.
#[derive(Clone)]
pub struct Sample {
    /// What fills the machine.
    pub at_once: AtOnce,
    /// Instructions and line transactions in the recordings of a launch together, about. What fills the machine is
    /// recorded even where it is more; what is less is recorded as it is.
    pub work: u64,
    /// Launches of a series.
    pub launches: u64,
}

impl fmt::Debug for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sample").field("work", &self.work).field("launches", &self.launches).finish_non_exhaustive()
    }
}

/// How many times the shorter recording of a grid fills the machine, at most. Source: assumed: beyond, the start and
/// the end of a kernel weigh little.
const FILLS: u64 = 4;
/// Trips of a loop in its shorter recording, at least. Source: assumed: the start and the end of a CTA weigh little
/// beside so many.
const LEAST_TRIPS: u64 = 16;
/// Instructions and line transactions of a launch. Source: assumed: some seconds of simulation.
const WORK: u64 = 1_200_000;
/// Launches of a sampled series. Source: assumed: enough to follow a slow change.
const LAUNCHES: u64 = 6;

/// The outer loop of a kernel, which every thread runs alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trips {
    /// Trips.
    pub count: u64,
    /// Trips after which accesses fall on new lines: samples are multiples of it.
    pub unit: u64,
}

impl Trips {
    /// A loop that nobody samples.
    pub(crate) const NONE: Trips = Trips { count: 1, unit: 1 };
}

/// A recorded launch as a part of its program.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Part {
    /// How often its time counts.
    pub weight: f64,
}

/// One recording of a kernel: its CTAs, its trips, and its weight.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Piece {
    pub(crate) ctas: Range<u64>,
    pub(crate) trips: Range<u64>,
    pub(crate) weight: f64,
}

/// A part of a count and how often its time counts.
type Weighted = (Range<u64>, f64);

/// Parts of `count` that are recorded, in units of the shorter of the two that count.
const RECORDED: u64 = 4;

/// Of `count`, gone through `waves` times: `short` whose time does not count, for they find cold what all touch; then
/// as many others, and twice as many others, so that none finds what those before it have loaded.
fn ends(count: u64, short: u64, waves: f64) -> Vec<Weighted> {
    let beyond = (waves * count as f64 - 2.0 * short as f64) / short as f64;
    vec![(0..short, 0.0), (short..2 * short, -beyond), (2 * short..RECORDED * short, 1.0 + beyond)]
}

/// What a CTA costs to simulate: its instructions and line transactions.
pub(crate) fn work_of(stream: &CtaStream) -> u64 {
    (stream.ops.len() + stream.accesses.len()) as u64
}

impl Sample {
    /// A sample for a machine that holds `at_once` CTAs of a kernel.
    pub fn new(at_once: AtOnce) -> Sample {
        Sample { at_once, work: WORK, launches: LAUNCHES }
    }

    /// The recordings of a launch of `kernel`, one of `of` in its series, of which a CTA costs `work` in all trips
    /// of its outer loop.
    pub(crate) fn pieces(&self, kernel: &KernelInfo, trips: Trips, work: u64, of: u64) -> Vec<Piece> {
        let (ctas, full) = (u64::from(kernel.ctas), (self.at_once)(kernel).max(1));
        // The shorter of the two recordings that count has a third of their work.
        let share = self.work / of.max(1) / 3;
        let grid = if ctas / RECORDED > full { full } else { ctas };
        let short = (share.saturating_mul(trips.count) / grid.saturating_mul(work).max(1)).max(LEAST_TRIPS);
        let short = short.next_multiple_of(trips.unit);
        if trips.count / RECORDED > short {
            let loops = ends(trips.count, short, ctas as f64 / grid as f64);
            return loops.into_iter().map(|(trips, weight)| Piece { ctas: 0..grid, trips, weight }).collect();
        }
        let fills = (share / full.saturating_mul(work).max(1)).clamp(1, FILLS);
        let short = full.saturating_mul(fills);
        let grids = if ctas / RECORDED > short { ends(ctas, short, 1.0) } else { vec![(0..ctas, 1.0)] };
        grids.into_iter().map(|(ctas, weight)| Piece { ctas, trips: 0..trips.count, weight }).collect()
    }

    /// The indices to record of a series of `count` launches, and how often each counts.
    pub(crate) fn series(sample: Option<&Sample>, count: u64) -> (Vec<u64>, f64) {
        let kept = sample.map_or(count, |sample| count.min(sample.launches.max(1)));
        let indices = (0..kept).map(|place| (2 * place + 1) * count / (2 * kept)).collect();
        (indices, count as f64 / kept.max(1) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tombolo_types::stream::KernelClass;

    fn sample() -> Sample {
        Sample { at_once: Arc::new(|_| 10), work: 6000, launches: 4 }
    }

    fn kernel(ctas: u32) -> KernelInfo {
        KernelInfo {
            name: "kernel".into(),
            ctas,
            threads_per_cta: 64,
            shared_bytes: 0,
            registers: 0,
            class: KernelClass::Independent,
        }
    }

    /// What a time of `fixed`, and `each` for each CTA and trip, is projected to.
    fn projected(pieces: &[Piece], fixed: f64, each: f64) -> f64 {
        let count = |range: &Range<u64>| (range.end - range.start) as f64;
        let time = |piece: &Piece| fixed + each * count(&piece.ctas) * count(&piece.trips);
        pieces.iter().map(|piece| piece.weight * time(piece)).sum()
    }

    #[test]
    fn a_small_grid_is_recorded_whole() {
        let pieces = sample().pieces(&kernel(30), Trips::NONE, 1000, 1);
        assert_eq!(pieces, [Piece { ctas: 0..30, trips: 0..1, weight: 1.0 }]);
    }

    #[test]
    fn a_large_grid_is_the_end_of_a_line_through_two() {
        let pieces = sample().pieces(&kernel(50), Trips::NONE, 1000, 1);
        assert_eq!(pieces.iter().map(|piece| piece.ctas.clone()).collect::<Vec<_>>(), [0..10, 10..20, 20..40]);
        assert!((projected(&pieces, 7.0, 3.0) - 157.0).abs() < 1e-9);
    }

    #[test]
    fn cheap_ctas_fill_the_machine_several_times() {
        let first = |work, of| sample().pieces(&kernel(1000), Trips::NONE, work, of)[0].ctas.end;
        assert_eq!((first(1, 1), first(100, 1), first(100, 2), first(1000, 1)), (40, 20, 10, 10));
    }

    #[test]
    fn trips_of_a_full_machine_stand_for_those_of_all_ctas() {
        let trips = Trips { count: 100, unit: 4 };
        let pieces = sample().pieces(&kernel(50), trips, 10_000, 1);
        assert_eq!(pieces.iter().map(|piece| piece.trips.clone()).collect::<Vec<_>>(), [0..16, 16..32, 32..64]);
        assert!(pieces[0].weight == 0.0 && pieces.iter().all(|piece| piece.ctas == (0..10)));
        assert!((projected(&pieces, 7.0, 3.0) - (7.0 + 3.0 * 5000.0)).abs() < 1e-6);
    }

    #[test]
    fn a_short_loop_is_recorded_whole() {
        let trips = Trips { count: 10, unit: 4 };
        let pieces = sample().pieces(&kernel(50), trips, 100, 1);
        assert!(pieces.iter().all(|piece| piece.trips == (0..10)));
        assert!((projected(&pieces, 7.0, 3.0) - (7.0 + 3.0 * 500.0)).abs() < 1e-6);
    }

    #[test]
    fn a_series_is_spread_evenly() {
        assert_eq!(Sample::series(Some(&sample()), 16), (vec![2, 6, 10, 14], 4.0));
        assert_eq!(Sample::series(None, 3), (vec![0, 1, 2], 1.0));
        assert_eq!(Sample::series(Some(&sample()), 3), (vec![0, 1, 2], 1.0));
    }
}
