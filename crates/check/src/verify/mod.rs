//! Verification: tests × designs × placements, explored in parallel within fixed budgets.
//!
//! - [`Case`]: a test, from a file, from the shipped set, or random; [`read_tests`] collects cases from files.
//! - [`Design`]: a protocol with options and a promise.
//! - [`verify`]: explores every case under every design; [`DesignReport`] contains the results.
//! - [`answers`]: every outcome allowed by the model; [`compare`] checks device observations against these outcomes.
//! - [`mutants`]: broken protocols, and shipped tests for catching them.
//!
//! Placements with the most modules come first, in strides: an exhausted [`Budget`] leaves a representative sample.
//! Random walks to the end follow a search with an exhausted budget. The verdict is then [`TestVerdict::Bounded`], like
//! for drawn placements and for a test with too many candidate executions.
//!
//! A verdict is independent from the number of threads and from the machine's speed: budgets count states, and among a
//! test's placements exactly the ones before budget exhaustion count.

mod answer;
mod case;
mod corpus;
mod coverage;
mod design;
mod job;
pub mod mutants;
mod observation;
mod report;
pub mod shapes;
mod suite;

pub use answer::{AllowedOutcome, ModelOutcomes, answers};
pub use case::{Case, PLACEMENTS_OF_RANDOM, Placements};
pub use corpus::{CorpusError, read_tests};
pub use design::{ConfigurationError, Design};
pub use observation::{
    ObservationComparison, ObservationError, Observations, ObservedOutcome, UnmatchedTest, UnobservedOutcome, compare,
};
pub use report::{DesignReport, EventReachability, ModelVerdict, Outcome, TestReport, TestVerdict};

use job::Job;
use std::sync::atomic::{AtomicUsize, Ordering};
use tombolo_types::StopFlag;

/// Exploration limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// States per placement.
    pub states_of_placement: usize,
    /// States per test over all its placements; six times this number if the test has more than two locations or more
    /// than three threads.
    pub states_of_test: u64,
    /// States per placement for a random program.
    pub states_of_random: usize,
    /// Random executions drawn after the state budget for a placement is exhausted.
    pub walks: usize,
}

impl Default for Budget {
    /// Three million states per placement (at most 400 MB of memory); five million per test (about ten seconds on two
    /// cores); four thousand per placement for a random program, then thirty walks.
    fn default() -> Budget {
        Budget { states_of_placement: 3_000_000, states_of_test: 5_000_000, states_of_random: 4_000, walks: 30 }
    }
}

/// Observer of a verification's progress. All methods may be called from several threads at a time.
pub trait ProgressObserver: Sync {
    /// Called when `test` under `design` starts.
    fn started(&self, test: &str, design: &str);
    /// Called when `test` under `design` is done.
    fn finished(&self, test: &str, design: &str);
}

/// No observer.
impl ProgressObserver for () {
    fn started(&self, _: &str, _: &str) {}
    fn finished(&self, _: &str, _: &str) {}
}

/// Tests judged by the model in a batch, before exploration: bounds the memory for its answers.
const AT_A_TIME: usize = 64;

/// Explores every case under every design with `threads` threads. Reports follow the order of `designs`, tests within a
/// report the order of `cases`. Designs with equal explored properties share their explorations. The call returns after
/// the last exploration. If the calling thread's [`StopFlag`] is set, the remaining explorations are bounded at once.
pub fn verify(
    designs: &[Design],
    cases: &[Case],
    budget: Budget,
    threads: usize,
    watch: &dyn ProgressObserver,
) -> Vec<DesignReport> {
    let empty = |design: &Design| DesignReport { design: design.name.clone(), tests: Vec::with_capacity(cases.len()) };
    let mut reports: Vec<DesignReport> = designs.iter().map(empty).collect();
    let is_first = |index: usize| !designs[..index].iter().any(|other| other.is_explored_as(&designs[index]));
    let distinct: Vec<usize> = (0..designs.len()).filter(|&index| is_first(index)).collect();
    for cases in cases.chunks(AT_A_TIME) {
        let judged = side_by_side(threads, cases.len(), |index| cases[index].judge());
        let pairs =
            cases.iter().zip(&judged).flat_map(|pair| distinct.iter().map(move |&index| (pair, &designs[index])));
        let jobs: Vec<Job<'_>> = pairs.map(|((case, judged), design)| Job::new(case, judged, design, budget)).collect();
        let (first, stop) = (AtomicUsize::new(0), StopFlag::current());
        std::thread::scope(|scope| {
            for _ in 0..threads.max(1) {
                scope.spawn(|| stop.during(|| work(&jobs, &first, watch)));
            }
        });
        for (index, job) in jobs.into_iter().enumerate() {
            let (first, test) = (&designs[distinct[index % distinct.len()]], job.into_report());
            for (design, report) in designs.iter().zip(&mut reports).filter(|(design, _)| design.is_explored_as(first))
            {
                if design.name != first.name {
                    watch.started(&test.name, &design.name);
                    watch.finished(&test.name, &design.name);
                }
                report.tests.push(test.clone());
            }
        }
    }
    reports
}

/// Executes explorations, in the order of jobs, while any remain.
fn work(jobs: &[Job<'_>], first: &AtomicUsize, watch: &dyn ProgressObserver) {
    loop {
        let at = first.load(Ordering::Relaxed);
        let Some(job) = jobs.get(at) else { return };
        if !job.explore_next(watch) {
            // No place in this job is left to start; other threads may still be working on it.
            let _ = first.compare_exchange(at, at + 1, Ordering::Relaxed, Ordering::Relaxed);
        }
    }
}

/// Runs `work` on each index from 0 to `count` with `threads` threads; returns results in index order.
fn side_by_side<T: Send>(threads: usize, count: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let run = || {
        let mut done = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= count {
                return done;
            }
            done.push((index, work(index)));
        }
    };
    let stop = StopFlag::current();
    let mut all: Vec<(usize, T)> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads.max(1)).map(|_| scope.spawn(|| stop.during(run))).collect();
        let join = |worker: std::thread::ScopedJoinHandle<'_, Vec<(usize, T)>>| {
            worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        workers.into_iter().flat_map(join).collect()
    });
    all.sort_unstable_by_key(|(index, _)| *index);
    all.into_iter().map(|(_, result)| result).collect()
}
