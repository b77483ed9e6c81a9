//! Sampling: recording a part in place of the whole program.
//!
//! - *Grids.* Once the machine is full, a CTA starts when another ends, at a constant pace. A large grid is therefore
//!   recorded only for a few fillings of the machine, and the pace at which their second half started is extrapolated
//!   to the end of the grid. Before this pace counts, caches that hold back stores must be full. If each module runs a
//!   block of neighbouring CTAs, every module's sample comes from the module's own block, and meets the same data as in
//!   a full run.
//! - *Loops.* A kernel with a long outer loop is recorded with the CTAs that fill the machine and a few trips: some
//!   trips for warming up state outside the loop, then equally many, then twice this number. The line through the last
//!   two times is extrapolated to all trips; further CTAs follow like further trips.
//! - *Series.* If launches differ only in an index, a few launches are recorded, spread evenly. Each is preceded by the
//!   launch before, which prepares the caches and does not count. If two earlier launches have identical streams, a
//!   launch is not recorded again: the first started from other cache contents, and the second represents all
//!   repetitions. Launches in a program use parts from different places in the grids, to avoid cache hits on data that
//!   would have been evicted long before.
//!
//! The projection is a weighted sum of times: [`LaunchWeights`]. Measurements in two halves also give an error bound
//! for the sum: half the difference between both halves ([`Projection::error_s`]). The halves are the pace in a grid's
//! third and fourth quarter, the shorter and the longer recording of a loop, or alternate launches in a series.

use super::simulation_cost::SimulationCost;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Add, AddAssign, Mul, Range};
use std::sync::Arc;
use tombolo_types::stream::KernelInfo;

/// Number of CTAs that are resident on a machine at once, for a given kernel.
pub type ResidentCtas = Arc<dyn Fn(&KernelInfo) -> u64 + Send + Sync>;

/// Sampling plan: the amount to record from a program.
#[derive(Clone)]
pub struct Sample {
    /// Number of CTAs that fill the machine, for each kernel.
    pub at_once: ResidentCtas,
    /// Blocks of neighbouring CTAs per grid, equal to the module count; 1 if neighbours run on different modules.
    pub blocks: u64,
    /// Approximate budget for a launch's recordings, in instructions plus line transactions. The minimum needed for the
    /// pace or the line is recorded even above the budget; a smaller launch is recorded completely.
    pub work: u64,
    /// Recorded launches per series.
    pub launches: u64,
    /// Cache lines available for holding back stores: while some lines are free, stores cost less than later.
    pub held_back: u64,
}

impl fmt::Debug for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sample").field("work", &self.work).field("launches", &self.launches).finish_non_exhaustive()
    }
}

/// Minimum and maximum number of machine fillings by a grid's recorded CTAs. Source: assumed: with fewer than four,
/// CTAs that started together still load and compute together; beyond sixteen the pace has long settled.
const FILLS: (u64, u64) = (4, 16);
/// Minimum work per CTA in the shorter recording of a loop, in instructions plus line transactions. Source: assumed:
/// the start and end of a CTA, a few dozen instructions, are then negligible.
const LEAST_WORK: u64 = 400;
/// Budget per launch, in instructions plus line transactions. Source: assumed: some seconds of simulation.
const WORK: u64 = 1_200_000;
/// Recorded launches per series. Source: assumed: enough to follow a slow change.
const LAUNCHES: u64 = 6;

/// The outer loop of a kernel, run alike by every thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trips {
    /// Number of trips.
    pub count: u64,
    /// Trips before accesses reach new lines: samples are multiples of this unit.
    pub unit: u64,
}

impl Trips {
    /// A loop without sampling.
    pub(crate) const NONE: Trips = Trips { count: 1, unit: 1 };
}

/// Measured times of a launch.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LaunchDurations {
    /// Seconds from the start to the end of the launch.
    pub total_s: f64,
    /// Seconds between the mean CTA start times of consecutive quarters: from the second to the third, and from the
    /// third to the fourth. They measure the time to start the third and fourth quarter; in a mean, stragglers have
    /// little weight.
    pub quarters_s: [f64; 2],
}

/// Weights of a recorded launch: for the total time, and additionally for the start time of the second half of CTAs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TimeWeights {
    /// Weight for the total time. Negative for the shorter recording in a pair.
    pub total: f64,
    /// Weight for the second half's start time.
    pub second_half: f64,
}

impl TimeWeights {
    fn of(self, durations: &LaunchDurations) -> f64 {
        self.total * durations.total_s + self.second_half * (durations.quarters_s[0] + durations.quarters_s[1])
    }
}

impl Add for TimeWeights {
    type Output = TimeWeights;

    fn add(self, other: TimeWeights) -> TimeWeights {
        TimeWeights { total: self.total + other.total, second_half: self.second_half + other.second_half }
    }
}

impl Mul<f64> for TimeWeights {
    type Output = TimeWeights;

    fn mul(self, by: f64) -> TimeWeights {
        TimeWeights { total: self.total * by, second_half: self.second_half * by }
    }
}

/// Weight of a recorded launch in the projection of the program's time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LaunchWeights {
    /// Weights of this launch's times in the program's time.
    pub weights: TimeWeights,
    /// Index of this piece's launch in the program.
    pub launch: u32,
    /// Weight for the total time in half the difference between a loop's two recordings.
    pub loop_difference: f64,
    /// Index of the launch's series; the `series_difference` weights in a series together give an error estimate.
    pub series: u32,
    /// Weights in half the difference between alternate launches of the series; see [`LaunchWeights::series`].
    pub series_difference: TimeWeights,
}

impl AddAssign for LaunchWeights {
    /// Adds the weights from a repetition of this launch.
    fn add_assign(&mut self, other: LaunchWeights) {
        self.weights = self.weights + other.weights;
        self.loop_difference += other.loop_difference;
        self.series_difference = self.series_difference + other.series_difference;
    }
}

/// Projected time for a whole program, computed from all parts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Projection {
    /// Seconds in the program's launches.
    pub time_s: f64,
    /// Error bound of the time: half the difference between each sample's two halves, summed as if all errors had the
    /// same sign. 0 if nothing was sampled. The bound does not cover a bias common to all parts of a sample.
    pub error_s: f64,
}

impl Projection {
    /// The projection from the measured times for `parts`; both slices have the same order.
    pub fn of(parts: &[LaunchWeights], durations: &[LaunchDurations]) -> Projection {
        assert_eq!(parts.len(), durations.len(), "a run has the launches that were recorded");
        let (mut launches, mut series) = (BTreeMap::<u32, f64>::new(), BTreeMap::<u32, f64>::new());
        let mut time_s = 0.0;
        for (part, durations) in parts.iter().zip(durations) {
            let [third, fourth] = durations.quarters_s;
            time_s += part.weights.of(durations);
            *launches.entry(part.launch).or_default() +=
                part.loop_difference * durations.total_s + part.weights.second_half * (third - fourth);
            *series.entry(part.series).or_default() += part.series_difference.of(durations);
        }
        // Uses a fold because `sum` over an empty iterator gives -0.0.
        let error_s = launches.values().chain(series.values()).fold(0.0, |sum, apart| sum + apart.abs());
        Projection { time_s, error_s }
    }
}

/// A run of neighbouring recorded CTAs in a grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CtaRun {
    /// Index of the first CTA among the recorded CTAs.
    index: u64,
    /// Index of the first CTA in the grid.
    cta: u64,
}

/// The recorded CTAs of a grid, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CtaSelection {
    count: u64,
    /// Runs in order of index: the first run begins with index 0.
    runs: Vec<CtaRun>,
}

impl CtaSelection {
    /// A selection with a single run of neighbouring CTAs.
    pub(crate) fn run(ctas: Range<u64>) -> CtaSelection {
        CtaSelection { count: ctas.end - ctas.start, runs: vec![CtaRun { index: 0, cta: ctas.start }] }
    }

    /// Picks `count` CTAs from a grid with `ctas` CTAs, an equal share from each of `blocks` blocks. The position
    /// within each block depends on the launch number. The grid has at least `count + blocks` CTAs.
    fn part(ctas: u64, count: u64, blocks: u64, launch: u32) -> CtaSelection {
        assert!(count + blocks <= ctas, "{count} CTAs of {ctas} in {blocks} blocks");
        let cut = |of: u64, block: u64| of * block / blocks;
        let run = |block: u64| {
            let (index, cta) = (cut(count, block), cut(ctas, block));
            let room = (cut(ctas, block + 1) - cta) - (cut(count, block + 1) - index);
            CtaRun { index, cta: cta + offset(launch, room, 1) }
        };
        CtaSelection { count, runs: (0..blocks).map(run).collect() }
    }

    /// Number of picked CTAs.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Picked CTAs before the grid's CTA `cta`.
    pub(crate) fn before(&self, cta: u64) -> u64 {
        let Some(last) = self.runs.partition_point(|run| run.cta < cta).checked_sub(1) else { return 0 };
        let end = self.runs.get(last + 1).map_or(self.count, |run| run.index);
        (self.runs[last].index + (cta - self.runs[last].cta)).min(end)
    }

    /// Grid index of the picked CTA at index `index`.
    pub(crate) fn cta(&self, index: u64) -> u64 {
        let run = self.runs[self.runs.partition_point(|run| run.index <= index) - 1];
        run.cta + (index - run.index)
    }
}

/// A kernel recording: its CTAs, its trips, and its weights in the projected time and in half the difference between a
/// loop's two recordings (`loop_difference`).
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LaunchPiece {
    pub(crate) ctas: CtaSelection,
    pub(crate) trips: Range<u64>,
    pub(crate) weights: TimeWeights,
    pub(crate) loop_difference: f64,
}

impl LaunchPiece {
    /// The piece that covers a kernel's whole grid and loop.
    pub(crate) fn whole(ctas: u64, trips: u64) -> LaunchPiece {
        let weights = TimeWeights { total: 1.0, second_half: 0.0 };
        LaunchPiece { ctas: CtaSelection::run(0..ctas), trips: 0..trips, weights, loop_difference: 0.0 }
    }
}

/// A recorded launch in a series: its index, the number of represented launches, and the factor for the launch's time
/// in half the difference between alternate launches (`series_difference`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SeriesLaunch {
    pub(crate) index: u64,
    pub(crate) stands_for: f64,
    pub(crate) series_difference: f64,
}

impl SeriesLaunch {
    /// A launch outside any series.
    pub(crate) const ALONE: SeriesLaunch = SeriesLaunch { index: 0, stands_for: 1.0, series_difference: 0.0 };

    /// True if the launch counts; false if the launch only prepares the caches for the next launch.
    pub(crate) fn counts(&self) -> bool {
        self.stands_for != 0.0
    }
}

/// Total length for a loop's recordings, in units of the shorter recording.
const RECORDED: u64 = 4;

impl Sample {
    /// A sample for a machine that holds `at_once` CTAs of a kernel and divides a grid into `blocks` blocks, at least
    /// 1.
    pub fn new(at_once: ResidentCtas, blocks: u64) -> Sample {
        Sample { at_once, blocks: blocks.max(1), work: WORK, launches: LAUNCHES, held_back: 0 }
    }

    /// Returns the sample for a machine whose caches hold back stores in `lines` lines.
    pub fn holding_back(self, lines: u64) -> Sample {
        Sample { held_back: lines, ..self }
    }

    /// Pieces to record from `kernel` in launch number `launch`. The launch's series has `of` recorded launches, and a
    /// CTA costs `work` for all trips through the outer loop.
    pub(crate) fn pieces(
        &self,
        kernel: &KernelInfo,
        trips: Trips,
        work: SimulationCost,
        of: u64,
        launch: u32,
    ) -> Vec<LaunchPiece> {
        let (ctas, full) = (u64::from(kernel.ctas), (self.at_once)(kernel).max(1));
        let (budget, lines, work) = (self.work / of.max(1), work.lines.max(1), work.all.max(1));
        let grid = if ctas / FILLS.0 > full { full } else { ctas };
        let least = (LEAST_WORK * trips.count).div_ceil(work);
        let short = (budget / RECORDED).saturating_mul(trips.count) / grid.saturating_mul(work);
        // The first recording must fill the caches.
        let filling = (self.held_back * trips.count).div_ceil(grid.saturating_mul(lines));
        let short = short.max(least).max(filling).max(1).next_multiple_of(trips.unit);
        if trips.count / RECORDED > short {
            return self.loops(ctas, grid, trips, short, launch);
        }
        let recorded = full.saturating_mul((budget / full.saturating_mul(work)).clamp(FILLS.0, FILLS.1));
        // The first quarter must fill the caches, and does not count.
        let recorded = recorded.max(4 * self.held_back.div_ceil(lines));
        if ctas < recorded + self.blocks {
            return vec![LaunchPiece::whole(ctas, trips.count)];
        }
        let second_half = (ctas - recorded) as f64 / (recorded - recorded / 2) as f64;
        let weights = TimeWeights { total: 1.0, second_half };
        let picked = CtaSelection::part(ctas, recorded, self.blocks, launch);
        vec![LaunchPiece { ctas: picked, trips: 0..trips.count, weights, loop_difference: 0.0 }]
    }

    /// Recordings for a loop with `grid` CTAs at a time, out of `ctas`.
    fn loops(&self, ctas: u64, grid: u64, trips: Trips, short: u64, launch: u32) -> Vec<LaunchPiece> {
        let whole = grid + self.blocks > ctas;
        let picked =
            if whole { CtaSelection::run(0..grid) } else { CtaSelection::part(ctas, grid, self.blocks, launch) };
        let spare = if grid < ctas { 0 } else { trips.count - RECORDED * short };
        let first_trip = offset(launch, spare, trips.unit);
        let waves = ctas as f64 / grid as f64;
        let beyond = (waves * trips.count as f64 - 2.0 * short as f64) / short as f64;
        let piece = |from: u64, to: u64, total: f64, loop_difference: f64| LaunchPiece {
            ctas: picked.clone(),
            trips: first_trip + from * short..first_trip + to * short,
            weights: TimeWeights { total, second_half: 0.0 },
            loop_difference,
        };
        vec![piece(0, 1, 0.0, 0.0), piece(1, 2, -beyond, -0.5 * beyond), piece(2, 4, 1.0 + beyond, 0.25 * beyond)]
    }

    /// Recorded launch count for a series with `count` launches.
    pub(crate) fn kept(&self, count: u64) -> u64 {
        count.min(self.launches.max(1))
    }

    /// The launches to record from a series; `stands_for` has each launch's weight. Each recorded launch is preceded by
    /// its predecessor in the series, unless the predecessor is recorded anyway.
    pub(crate) fn series(sample: Option<&Sample>, stands_for: &[u64]) -> Vec<SeriesLaunch> {
        let count = stands_for.len();
        let kept = sample.map_or(count, |sample| sample.kept(count as u64) as usize);
        let sum = |range: Range<usize>| stands_for[range].iter().sum::<u64>() as f64;
        let stratum = |place: usize| sum(place * count / kept..(place + 1) * count / kept);
        let halves = [0, 1].map(|first| (first..kept).step_by(2).map(stratum).sum::<f64>());
        let turn = |place: usize| SeriesLaunch {
            index: ((2 * place + 1) * count / (2 * kept)) as u64,
            stands_for: stratum(place),
            // Each half is scaled to the whole series, and the error is half the difference between both estimates.
            series_difference: match (kept < count && kept > 1, place % 2) {
                (false, _) => 0.0,
                (true, 0) => 0.5 * sum(0..count) / halves[0],
                (true, _) => -0.5 * sum(0..count) / halves[1],
            },
        };
        let mut turns: Vec<SeriesLaunch> = Vec::new();
        for turn in (0..kept).map(turn) {
            let before =
                turn.index.checked_sub(1).filter(|&before| turns.last().is_none_or(|last| last.index != before));
            turns.extend(before.map(|index| SeriesLaunch { index, stands_for: 0.0, series_difference: 0.0 }));
            turns.push(turn);
        }
        turns
    }
}

/// Start position for the parts in launch number `launch`, out of `places`, rounded down to a multiple of `unit`.
/// Positions follow golden ratio steps and stay apart for any number of launches. All lie in the first half, because
/// caches initially hold the end of the program's data.
fn offset(launch: u32, places: u64, unit: u64) -> u64 {
    let fraction = 0x9E37_79B9_7F4A_7C15_u64.wrapping_mul(u64::from(launch)) >> 33;
    let place = ((u128::from(places) * u128::from(fraction)) >> 32) as u64;
    place / unit * unit
}

#[cfg(test)]
mod tests {
    use super::*;
    use tombolo_types::stream::KernelClass;

    fn sample() -> Sample {
        Sample { at_once: Arc::new(|_| 10), blocks: 1, work: 10_000, launches: 4, held_back: 0 }
    }

    /// Work with half the cost in line transactions.
    fn work(all: u64) -> SimulationCost {
        SimulationCost { all, lines: all / 2 }
    }

    fn kernel(ctas: u32) -> KernelInfo {
        KernelInfo {
            name: "kernel".into(),
            ctas,
            threads_per_cta: 64,
            shared_bytes: 0,
            registers: 0,
            class: KernelClass::Independent,
            parts: Vec::new(),
        }
    }

    /// Times for a launch with `fixed` seconds, plus `each` seconds per CTA and trip after the start of the second
    /// quarter.
    fn durations(piece: &LaunchPiece, fixed: f64, each: f64) -> LaunchDurations {
        let trips = piece.trips.end - piece.trips.start;
        let running = each * piece.ctas.count() as f64 * trips as f64;
        LaunchDurations { total_s: fixed + running, quarters_s: [running / 4.0; 2] }
    }

    fn parts(pieces: &[LaunchPiece]) -> Vec<LaunchWeights> {
        let part = |piece: &LaunchPiece| LaunchWeights {
            weights: piece.weights,
            launch: 0,
            loop_difference: piece.loop_difference,
            series: 0,
            series_difference: TimeWeights::default(),
        };
        pieces.iter().map(part).collect()
    }

    fn projected(pieces: &[LaunchPiece], fixed: f64, each: f64) -> Projection {
        let durations: Vec<LaunchDurations> = pieces.iter().map(|piece| durations(piece, fixed, each)).collect();
        Projection::of(&parts(pieces), &durations)
    }

    #[test]
    fn a_small_grid_is_recorded_whole() {
        assert_eq!(sample().pieces(&kernel(40), Trips::NONE, work(1000), 1, 0), [LaunchPiece::whole(40, 1)]);
    }

    #[test]
    fn a_large_grid_goes_on_at_the_pace_of_its_second_half() {
        let pieces = sample().pieces(&kernel(100), Trips::NONE, work(1000), 1, 0);
        assert_eq!((pieces.len(), pieces[0].ctas.clone()), (1, CtaSelection::run(0..40)));
        let Projection { time_s, error_s } = projected(&pieces, 7.0, 3.0);
        assert!((time_s - 307.0).abs() < 1e-9 && error_s == 0.0, "{time_s} {error_s}");
    }

    #[test]
    fn a_pace_that_changes_is_an_error() {
        let pieces = sample().pieces(&kernel(100), Trips::NONE, work(1000), 1, 0);
        // Ten CTAs in 30 s, then ten in 10 s; 60 CTAs are left: 120 s, between 60 s and 180 s.
        let durations = LaunchDurations { total_s: 100.0, quarters_s: [30.0, 10.0] };
        assert_eq!(Projection::of(&parts(&pieces), &[durations]), Projection { time_s: 220.0, error_s: 60.0 });
    }

    #[test]
    fn cheap_ctas_fill_the_machine_several_times() {
        let recorded = |cost, of| sample().pieces(&kernel(1000), Trips::NONE, work(cost), of, 0)[0].ctas.count();
        assert_eq!((recorded(1, 1), recorded(100, 1), recorded(100, 2), recorded(1000, 1)), (160, 100, 50, 40));
    }

    #[test]
    fn what_caches_hold_back_is_in_the_first_quarter() {
        let recorded = |lines, ctas| {
            let sample = sample().holding_back(lines);
            sample.pieces(&kernel(ctas), Trips::NONE, work(100), 1, 0)[0].ctas.count()
        };
        assert_eq!(
            (recorded(0, 1000), recorded(1000, 1000), recorded(5000, 1000), recorded(50_000, 1000)),
            (100, 100, 400, 1000)
        );
    }

    #[test]
    fn what_caches_hold_back_is_in_the_first_recording_of_a_loop() {
        // Ten CTAs at a time, each with 50 lines per trip.
        let trips = Trips { count: 100, unit: 1 };
        let first =
            |lines| sample().holding_back(lines).pieces(&kernel(50), trips, work(10_000), 1, 0)[0].trips.clone();
        assert_eq!((first(0), first(500), first(2500), first(7000)), (0..4, 0..4, 0..5, 0..14));
    }

    #[test]
    fn trips_of_a_full_machine_stand_for_those_of_all_ctas() {
        let trips = Trips { count: 100, unit: 4 };
        let pieces = sample().pieces(&kernel(50), trips, work(10_000), 1, 0);
        assert_eq!(pieces.iter().map(|piece| piece.trips.clone()).collect::<Vec<_>>(), [0..4, 4..8, 8..16]);
        assert!(pieces.iter().all(|piece| piece.ctas == CtaSelection::run(0..10)));
        let Projection { time_s, error_s } = projected(&pieces, 0.0, 3.0);
        assert!((time_s - 3.0 * 5000.0).abs() < 1e-6 && error_s < 1e-6, "{time_s} {error_s}");
    }

    #[test]
    fn what_a_loop_needs_besides_its_trips_is_an_error_of_half_its_share() {
        let pieces = sample().pieces(&kernel(50), Trips { count: 100, unit: 4 }, work(10_000), 1, 0);
        // The 123 remaining recordings of 4 trips are extrapolated; each might take 7 s more, or half as much.
        let Projection { time_s, error_s } = projected(&pieces, 7.0, 3.0);
        assert!((time_s - (7.0 + 3.0 * 5000.0)).abs() < 1e-6, "{time_s}");
        assert!((error_s - 123.0 * 7.0 / 4.0).abs() < 1e-6, "{error_s}");
    }

    #[test]
    fn a_cta_of_a_loop_does_some_work() {
        let short = |cost| sample().pieces(&kernel(50), Trips { count: 1000, unit: 1 }, work(cost), 1, 0)[0].trips.end;
        assert_eq!((short(2_000_000), short(20_000)), (1, 20));
    }

    #[test]
    fn a_short_loop_is_recorded_whole() {
        let trips = Trips { count: 10, unit: 4 };
        let pieces = sample().pieces(&kernel(50), trips, work(100), 1, 0);
        assert!(pieces.iter().all(|piece| piece.trips == (0..10)));
        assert!((projected(&pieces, 7.0, 3.0).time_s - (7.0 + 3.0 * 500.0)).abs() < 1e-6);
    }

    #[test]
    fn launches_take_their_parts_from_different_places() {
        let place = |launch| sample().pieces(&kernel(1000), Trips::NONE, work(1000), 1, launch)[0].ctas.cta(0);
        assert_eq!([0, 1, 2, 3].map(place), [0, 296, 113, 409]);
        let trips =
            |launch| sample().pieces(&kernel(10), Trips { count: 1000, unit: 8 }, work(1 << 20), 1, launch)[1].clone();
        assert_eq!((trips(1).ctas, trips(1).trips), (CtaSelection::run(0..10), 304..312));
    }

    #[test]
    fn a_series_is_spread_evenly() {
        let indices = |sample: Option<&Sample>, count| -> Vec<(u64, f64)> {
            let turns = Sample::series(sample, &vec![1; count]);
            turns.iter().filter(|turn| turn.counts()).map(|turn| (turn.index, turn.stands_for)).collect()
        };
        assert_eq!(indices(Some(&sample()), 16), [(2, 4.0), (6, 4.0), (10, 4.0), (14, 4.0)]);
        assert_eq!(indices(None, 3), [(0, 1.0), (1, 1.0), (2, 1.0)]);
        assert_eq!(indices(Some(&sample()), 3), [(0, 1.0), (1, 1.0), (2, 1.0)]);
    }

    #[test]
    fn a_launch_of_a_series_stands_for_what_its_neighbours_stand_for() {
        let turns = Sample::series(Some(&sample()), &[5, 4, 3, 2, 1, 1, 1, 1]);
        let counted = turns.iter().filter(|turn| turn.counts()).map(|turn| turn.stands_for);
        assert_eq!(counted.collect::<Vec<_>>(), [9.0, 5.0, 2.0, 2.0]);
    }

    #[test]
    fn a_launch_of_a_series_follows_the_one_before_it() {
        let indices = |count| -> Vec<(u64, bool)> {
            let turns = Sample::series(Some(&sample()), &vec![1; count]);
            turns.iter().map(|turn| (turn.index, turn.counts())).collect()
        };
        let spread = [1, 5, 9, 13].into_iter().flat_map(|before| [(before, false), (before + 1, true)]);
        assert_eq!(indices(16), spread.collect::<Vec<_>>());
        // Launches 0, 1, 3 and 4 of five: the predecessor of the third is left out, and the other predecessors are
        // recorded.
        assert_eq!(indices(5), [(0, true), (1, true), (2, false), (3, true), (4, true)]);
        assert_eq!(indices(3), [(0, true), (1, true), (2, true)]);
    }

    #[test]
    fn every_block_of_a_grid_gives_its_share_from_the_same_place() {
        // Picks 13 of 50 CTAs in four blocks: from 12, 13, 12 and 13 CTAs the sample has 3, 3, 3 and 4.
        let ctas = |launch| -> Vec<u64> {
            let picked = CtaSelection::part(50, 13, 4, launch);
            (0..picked.count()).map(|index| picked.cta(index)).collect()
        };
        assert_eq!(ctas(0), [0, 1, 2, 12, 13, 14, 25, 26, 27, 37, 38, 39, 40]);
        for launch in 0..100 {
            let ctas = ctas(launch);
            assert!(ctas.is_sorted_by(|a, b| a < b), "{ctas:?}");
            assert!(
                [12, 25, 37, 50].iter().zip([3, 6, 9, 13]).all(|(&end, before)| ctas[before - 1] < end),
                "{ctas:?}"
            );
            assert!([12, 25, 37].iter().zip([3, 6, 9]).all(|(&start, first)| ctas[first] >= start), "{ctas:?}");
        }
    }

    #[test]
    fn a_grid_that_has_hardly_more_ctas_than_the_sample_is_recorded_whole() {
        let sample = Sample { blocks: 8, ..sample() };
        let recorded = |ctas| sample.pieces(&kernel(ctas), Trips::NONE, work(1000), 1, 0)[0].ctas.count();
        assert_eq!([40, 41, 47, 48, 100].map(recorded), [40, 41, 47, 40, 40]);
    }

    #[test]
    fn launches_that_differ_in_turn_are_an_error_and_a_series_that_is_whole_has_none() {
        let error = |count, times: &[f64]| {
            let part = |turn: &SeriesLaunch| {
                let weights = TimeWeights { total: turn.stands_for, second_half: 0.0 };
                LaunchWeights {
                    weights,
                    launch: 0,
                    loop_difference: 0.0,
                    series: 0,
                    series_difference: weights * turn.series_difference,
                }
            };
            let parts: Vec<LaunchWeights> = Sample::series(Some(&sample()), &vec![1; count]).iter().map(part).collect();
            let mut times = times.iter();
            let durations = |turn: &SeriesLaunch| {
                let total_s = if turn.counts() { *times.next().expect("a time for each that counts") } else { 99.0 };
                LaunchDurations { total_s, quarters_s: [0.0; 2] }
            };
            let durations: Vec<LaunchDurations> =
                Sample::series(Some(&sample()), &vec![1; count]).iter().map(durations).collect();
            Projection::of(&parts, &durations).error_s
        };
        // Alternate launches project 16 s and 48 s.
        assert_eq!(
            (error(16, &[1.0, 3.0, 1.0, 3.0]), error(16, &[2.0; 4]), error(3, &[1.0, 3.0, 1.0])),
            (16.0, 0.0, 0.0)
        );
    }
}
