//! Estimates the time for all launches from the launches that ran, with an error bound.
//!
//! *The time.* In each group of launches, a line fitted through the drawn launches (time over work) predicts the
//! remaining launches. The deviation in a drawn tile is multiplied by the number of tiles in its block. This sum is
//! unbiased however wrong the lines are: they only reduce the scatter. Source: the generalised regression estimator
//! (Särndal, Swensson and Wretman, "Model Assisted Survey Sampling", 1992, chapter 6).
//!
//! *The scatter.* A tile's deviation is measured against lines through all remaining tiles, block by block. The
//! variance is half the mean square difference between neighbouring blocks, used with Student's t. Source: Wolter,
//! "Introduction to Variance Estimation", 2007, chapter 8, its second estimator.
//!
//! *The warm-up.* Some tiles run twice, with a short and a long warm-up. The difference in time, with its own t, bounds
//! the warm-up error: the residual error is assumed no larger than the error that the doubling removed. Both errors are
//! added, as if they had equal sign.

use super::plan::{Population, SamplingPlan};
use rustc_hash::FxHashMap;

/// Student's t: 97.5 % lie below, with 1, 2, … degrees of freedom; 95 % lie between the value and its negative. Source:
/// any statistical table.
const STUDENT: [f64; 40] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
    2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042, 2.040, 2.037,
    2.035, 2.032, 2.030, 2.028, 2.026, 2.024, 2.023, 2.021,
];
/// Minimum spread in a group's work, relative to its mean, for fitting a slope. Source: assumed: below this value the
/// slope is noise.
const SPREAD: f64 = 0.05;

/// Estimated total for all launches.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Estimate {
    /// Seconds in launches.
    pub(crate) time_s: f64,
    /// Error bound at 95 % confidence.
    pub(crate) error_s: f64,
    /// Part of the error bound due to warm-ups.
    pub(crate) warm_up_s: f64,
}

/// Measured launch times in seconds, indexed by launch, for the launches that ran.
pub(crate) struct LaunchTimes<'a> {
    pub(crate) plan: &'a SamplingPlan,
    pub(crate) population: &'a Population,
    /// Times with the long warm-ups.
    pub(crate) long: &'a [f64],
    /// Times with warm-ups half as long.
    pub(crate) short: &'a [f64],
}

/// A fitted line: time over work.
#[derive(Clone, Copy, Debug, Default)]
struct LinearFit {
    at_none: f64,
    slope: f64,
}

impl LinearFit {
    /// Least-squares fit through `points` (work and time), at least one; level if the points do not justify a slope.
    fn through(points: &[(f64, f64)]) -> LinearFit {
        let count = points.len() as f64;
        let mean = |of: &dyn Fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
        let (work, time) = (mean(&|point| point.0), mean(&|point| point.1));
        let spread = mean(&|point| (point.0 - work).powi(2));
        if points.len() < 3 || spread <= (SPREAD * work).powi(2) {
            return LinearFit { at_none: time, slope: 0.0 };
        }
        let slope = mean(&|point| (point.0 - work) * (point.1 - time)) / spread;
        LinearFit { at_none: time - slope * work, slope }
    }

    fn at(self, work: f64) -> f64 {
        self.at_none + self.slope * work
    }
}

fn student(freedom: usize) -> f64 {
    STUDENT[freedom.clamp(1, STUDENT.len()) - 1]
}

impl LaunchTimes<'_> {
    /// The estimate.
    pub(crate) fn estimate(&self) -> Estimate {
        let LaunchTimes { plan, population, long, .. } = self;
        let blocks = plan.tiles.len();
        let fits = self.fits(None);
        let (certain, rest): (Vec<usize>, Vec<usize>) =
            (0..population.work.len()).partition(|&launch| plan.certain[launch]);
        let besides = |number: usize, fits: &FxHashMap<usize, LinearFit>| {
            let one = |launch| long[launch] - self.predicted(fits, launch);
            plan.tiles[number].of as f64 * self.drawn(number).map(one).sum::<f64>()
        };
        let of_rest: f64 = rest.iter().map(|&launch| self.predicted(&fits, launch)).sum();
        let of_certain: f64 = certain.iter().map(|&launch| long[launch]).sum();
        let time_s = of_rest + of_certain + (0..blocks).map(|number| besides(number, &fits)).sum::<f64>();
        let besides: Vec<f64> = (0..blocks).map(|number| besides(number, &self.fits(Some(number)))).collect();
        let squares: f64 = besides.windows(2).map(|pair| (pair[1] - pair[0]).powi(2)).sum();
        let tiles = plan.tiles.iter().map(|tile| tile.of).sum::<usize>() as f64;
        let left_out = 1.0 - blocks as f64 / tiles;
        let variance = left_out * squares * blocks as f64 / (2.0 * (blocks - 1) as f64);
        let warm_up_s = self.warm_up() * time_s;
        Estimate { time_s, error_s: student(blocks - 1) * variance.sqrt() + warm_up_s, warm_up_s }
    }

    /// The launches in tile `number` that represent further launches.
    fn drawn(&self, number: usize) -> impl Iterator<Item = usize> + '_ {
        self.plan.tiles[number].launches.clone().filter(|&launch| !self.plan.certain[launch])
    }

    /// For each group, the line fitted through the launches in all tiles except `without`.
    fn fits(&self, without: Option<usize>) -> FxHashMap<usize, LinearFit> {
        let mut points: FxHashMap<usize, Vec<(f64, f64)>> = FxHashMap::default();
        for launch in
            (0..self.plan.tiles.len()).filter(|&number| without != Some(number)).flat_map(|number| self.drawn(number))
        {
            points
                .entry(self.population.groups[launch])
                .or_default()
                .push((self.population.work[launch], self.long[launch]));
        }
        points.into_iter().map(|(group, points)| (group, LinearFit::through(&points))).collect()
    }

    fn predicted(&self, fits: &FxHashMap<usize, LinearFit>, launch: usize) -> f64 {
        let fit = fits
            .get(&self.population.groups[launch])
            .expect("a group that is no certain one has launches in two tiles");
        fit.at(self.population.work[launch])
    }

    /// Error bound for the warm-up, as a share of the time.
    fn warm_up(&self) -> f64 {
        let sum = |of: &[f64], launches: std::ops::Range<usize>| of[launches].iter().sum::<f64>();
        let again = self.plan.tiles.iter().filter(|tile| tile.again).map(|tile| tile.launches.clone());
        let pairs: Vec<(f64, f64)> =
            again.map(|launches| (sum(self.long, launches.clone()), sum(self.short, launches))).collect();
        let count = pairs.len() as f64;
        let all: f64 = pairs.iter().map(|pair| pair.0).sum();
        let ratio = pairs.iter().map(|(long, short)| short - long).sum::<f64>() / all;
        let squares: f64 = pairs.iter().map(|(long, short)| (short - long - ratio * long).powi(2)).sum();
        let scatter = (squares * count / (count - 1.0)).sqrt() / all;
        ratio.abs() + student(pairs.len() - 1) * scatter
    }
}

#[cfg(test)]
mod tests {
    use super::super::plan::TILE;
    use super::*;

    const LAUNCHES: usize = 1002;

    /// Launches in one group, with work that goes up and down.
    fn population() -> Population {
        Population {
            groups: vec![0; LAUNCHES],
            work: (0..LAUNCHES).map(|launch| 100.0 + (launch % 40) as f64).collect(),
            warm_up_lengths: (0..LAUNCHES).map(|launch| launch.min(1)).collect(),
            firsts: (0..LAUNCHES).map(|launch| launch == 0).collect(),
        }
    }

    /// The estimate if launch `i` takes `takes(i)`, and `short` times as long after the short warm-up; and the true
    /// total.
    fn estimate(takes: impl Fn(usize) -> f64, short: f64) -> (Estimate, f64) {
        let population = population();
        let plan = SamplingPlan::of(&population).expect("a long program");
        let ran = |keeps: &[bool], times: f64| -> Vec<f64> {
            (0..LAUNCHES).map(|launch| if keeps[launch] { takes(launch) * times } else { f64::NAN }).collect()
        };
        let (long, short) = (ran(&plan.long(&population), 1.0), ran(&plan.short, short));
        let taken = LaunchTimes { plan: &plan, population: &population, long: &long, short: &short };
        (taken.estimate(), (0..LAUNCHES).map(takes).sum())
    }

    #[test]
    fn what_follows_work_is_known_exactly() {
        let work = population().work;
        let (estimate, truth) = estimate(|launch| 7.0 + 0.5 * work[launch], 1.0);
        assert!((estimate.time_s - truth).abs() < 1e-9 * truth, "{} {truth}", estimate.time_s);
        assert!(estimate.error_s < 1e-6 * truth && estimate.warm_up_s == 0.0, "{estimate:?}");
    }

    #[test]
    fn what_a_longer_warm_up_changes_is_an_error_that_is_left() {
        let (estimate, truth) = estimate(|_| 2.0, 1.03);
        assert!((estimate.time_s - truth).abs() < 1e-9 * truth);
        assert!((estimate.warm_up_s / truth - 0.03).abs() < 1e-9, "{estimate:?}");
        assert!((estimate.error_s - estimate.warm_up_s).abs() < 1e-9 * truth);
    }

    #[test]
    fn a_program_that_slows_down_is_within_its_error() {
        for half in [100, 300, 501, 700, 900] {
            let (estimate, truth) = estimate(|launch| if launch < half { 1.0 } else { 3.0 }, 1.0);
            assert!((estimate.time_s - truth).abs() <= estimate.error_s, "{half}: {estimate:?}, and it takes {truth}");
            assert!(estimate.error_s < 0.1 * truth, "{half}: {estimate:?}");
        }
    }

    #[test]
    fn nineteen_of_twenty_random_programs_are_within_their_errors() {
        let inside = (0..200_u64).filter(|&seed| {
            let random = |launch: usize| {
                let mut state = (seed << 32 | launch as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                state = (state ^ (state >> 31)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                1.0 + ((state ^ (state >> 29)) >> 40) as f64 / (1_u64 << 24) as f64
            };
            let (estimate, truth) = estimate(random, 1.0);
            (estimate.time_s - truth).abs() <= estimate.error_s
        });
        let inside = inside.count();
        assert!((185..=200).contains(&inside), "{inside} of 200");
    }

    #[test]
    fn tiles_stand_for_those_of_their_block() {
        // Work that carries no information: a tile in block b takes b per launch.
        let population = Population { work: vec![1.0; LAUNCHES], ..population() };
        let plan = SamplingPlan::of(&population).expect("a long program");
        let block = |launch: usize| {
            let tile = (launch / TILE).saturating_sub(1);
            let mut ends = plan.tiles.iter().scan(0, |end, tile| {
                *end += tile.of;
                Some(*end)
            });
            if launch < TILE { 0 } else { ends.position(|end| tile < end).expect("blocks have all tiles") }
        };
        let times: Vec<f64> = (0..LAUNCHES).map(|launch| block(launch) as f64).collect();
        let taken = LaunchTimes { plan: &plan, population: &population, long: &times, short: &times };
        let (estimate, truth) = (taken.estimate(), times.iter().sum::<f64>());
        assert!((estimate.time_s - truth).abs() < 1e-9 * truth, "{} {truth}", estimate.time_s);
    }
}
