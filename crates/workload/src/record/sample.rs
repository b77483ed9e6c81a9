//! Recording part of a program in place of all of it.
//!
//! A kernel's time is taken to be a straight line in the CTAs of its grid once the machine is full, and in the
//! trips of its outer loop once caches are in their steady state. So a large kernel is recorded twice, with one
//! share of its CTAs and with two, and the line through both times is followed to the whole; likewise for
//! trips. Of a series of launches that differ in nothing but an index, some are recorded, spread evenly; a
//! launch whose streams equal an earlier one's is not recorded again.
//!
//! All this is a weighted sum: [`Part::weight`] says how often a recorded launch's time counts in the time of
//! the whole program. Weights may be negative (the shorter of two launches).

use std::ops::Range;

/// How much of a program to record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Threads in the shorter recording of a grid: what fills the machine, some times over, so that the start and
    /// the end of a kernel weigh little. A kernel whose loop is sampled too is long, and takes what fills it once.
    pub threads: u64,
    /// Line transactions in the shorter recording of an outer loop, over all warps recorded.
    pub accesses: u64,
    /// Launches of a series.
    pub launches: u64,
}

/// How often the threads of [`Sample::threads`] fill the machine. Source: measured: with less, a stream's loads
/// still run ahead of its stores.
const FILLS: u64 = 4;

/// The outer loop of a kernel, which every thread runs alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trips {
    /// Trips.
    pub count: u64,
    /// Trips after which accesses fall on new lines: samples are multiples of it.
    pub unit: u64,
    /// Line transactions of a warp in a trip, about.
    pub accesses: u64,
}

impl Trips {
    /// A loop that nobody samples.
    pub(crate) const NONE: Trips = Trips { count: 1, unit: 1, accesses: 0 };
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

/// The count itself, or `short` of it and then twice as many others where those save work: others, so that the
/// second does not find what the first has loaded.
fn ends(whole: u64, short: u64) -> Vec<Weighted> {
    let long = 2 * short;
    if short == 0 || whole <= long + short {
        return vec![(0..whole, 1.0)];
    }
    let beyond = (whole - long) as f64 / short as f64;
    vec![(0..short, -beyond), (short..short + long, 1.0 + beyond)]
}

/// Line transactions of a sampled loop. Source: assumed: some seconds of simulation.
const ACCESSES: u64 = 1_500_000;
/// Launches of a sampled series. Source: assumed: enough to follow a slow change.
const LAUNCHES: u64 = 6;

impl Sample {
    /// The sample for a machine that holds `threads` threads at once.
    pub fn of(threads: u64) -> Sample {
        Sample { threads: FILLS * threads, accesses: ACCESSES, launches: LAUNCHES }
    }

    /// The recordings of a kernel of `ctas` CTAs of `threads` threads in warps of `width`.
    pub(crate) fn pieces(&self, ctas: u64, threads: u32, width: u32, trips: Trips) -> Vec<Piece> {
        let filling = if trips == Trips::NONE { self.threads } else { self.threads / FILLS };
        let grids = ends(ctas, filling.div_ceil(u64::from(threads)).max(1));
        let largest = grids.iter().map(|(grid, _)| grid.end - grid.start).max().unwrap_or(ctas);
        let warps = largest * u64::from(threads.div_ceil(width));
        let short = self.accesses / (warps * trips.accesses.max(1)).max(1);
        let loops = ends(trips.count, short.max(2 * trips.unit).next_multiple_of(trips.unit));
        let mut pieces = Vec::new();
        for (ctas, of_grid) in grids {
            for (trips, of_loop) in &loops {
                pieces.push(Piece { ctas: ctas.clone(), trips: trips.clone(), weight: of_grid * of_loop });
            }
        }
        pieces
    }

    /// The indices to record of a series of `count` launches, and how often each counts.
    pub(crate) fn series(sample: Option<Sample>, count: u64) -> (Vec<u64>, f64) {
        let kept = sample.map_or(count, |sample| count.min(sample.launches.max(1)));
        let indices = (0..kept).map(|place| (2 * place + 1) * count / (2 * kept)).collect();
        (indices, count as f64 / kept.max(1) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: Sample = Sample { threads: 1000, accesses: 1000, launches: 4 };

    #[test]
    fn a_small_grid_is_recorded_whole() {
        let pieces = SAMPLE.pieces(30, 100, 32, Trips::NONE);
        assert_eq!(pieces, [Piece { ctas: 0..30, trips: 0..1, weight: 1.0 }]);
    }

    #[test]
    fn a_large_grid_is_the_end_of_a_line_through_two() {
        let pieces = SAMPLE.pieces(50, 100, 32, Trips::NONE);
        let time = |ctas: &Range<u64>| 7.0 + 3.0 * (ctas.end - ctas.start) as f64;
        let sum: f64 = pieces.iter().map(|piece| piece.weight * time(&piece.ctas)).sum();
        assert_eq!(pieces.iter().map(|piece| piece.ctas.clone()).collect::<Vec<_>>(), [0..10, 10..30]);
        assert!((sum - time(&(0..50))).abs() < 1e-9);
    }

    #[test]
    fn trips_and_ctas_are_followed_together() {
        let trips = Trips { count: 100, unit: 4, accesses: 10 };
        let pieces = SAMPLE.pieces(50, 25, 32, trips);
        let count = |range: &Range<u64>| (range.end - range.start) as f64;
        let time = |piece: &Piece| (7.0 + 3.0 * count(&piece.ctas)) * (2.0 + 5.0 * count(&piece.trips));
        let sum: f64 = pieces.iter().map(|piece| piece.weight * time(piece)).sum();
        assert_eq!(pieces.len(), 4);
        assert!(pieces.iter().all(|piece| piece.trips.end % 4 == 0));
        assert!((sum - 157.0 * 502.0).abs() < 1e-6);
    }

    #[test]
    fn a_series_is_spread_evenly() {
        assert_eq!(Sample::series(Some(SAMPLE), 16), (vec![2, 6, 10, 14], 4.0));
        assert_eq!(Sample::series(None, 3), (vec![0, 1, 2], 1.0));
        assert_eq!(Sample::series(Some(SAMPLE), 3), (vec![0, 1, 2], 1.0));
    }
}
