//! Runs distributed over tests and designs: parallel on any number of threads, with a deterministic result.

use crate::reached::Reached;
use crate::report::{FailingRun, NO_HOST, NOT_PROMISED, STOPPED, SkippedTests, TimedReport, TimedTest, TimedVerdict};
use crate::setup::Setup;
use crate::shrink::shrink;
use crate::trial::{RunFailure, Trial, TrialContext, attempt, expressible, trial};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use tombolo_check::axiomatic::Outcomes;
use tombolo_check::litmus::{FinalState, Program};
use tombolo_check::verify::{Case, Design};
use tombolo_design::DesignConfig;
use tombolo_system::BrokenRules;
use tombolo_types::{Promise, StopFlag};

/// Seed for the series of random programs in runs.
pub const SERIES: u64 = 1;
/// Maximum runs until a design without a promise must have misbehaved.
const BLIND_AFTER: u64 = 1_000;
/// Maximum number of candidate executions examined by the model for a test: less than ten seconds.
const CANDIDATES: u64 = 3_000_000;
/// Seeds judged by the model ahead of the corresponding runs: bounds the memory for its answers.
const AT_A_TIME: u64 = 64;

/// A design under attack.
#[derive(Clone, Debug)]
pub struct Target {
    /// Configuration of the design.
    pub config: DesignConfig,
    /// The design in the verifier's form, with its promise.
    design: Design,
}

impl Target {
    /// Creates a target from a design configuration.
    ///
    /// # Panics
    /// If no protocol corresponds to its coherence setting: a test finds a protocol for each.
    pub fn new(config: &DesignConfig) -> Target {
        let options = config.options();
        let design = Design::new(&config.name, config.coherence.protocol(), options, config.promises.strongest());
        Target { config: config.clone(), design: design.expect("a test finds a protocol for every coherence") }
    }

    /// True if the design promises nothing to any program.
    fn promises_nothing(&self) -> bool {
        self.config.promises.strongest() == Promise::Nothing
    }
}

/// Parameters of an attack.
pub struct Attack<'a> {
    /// Designs under attack.
    pub targets: &'a [Target],
    /// The tests.
    pub cases: &'a [Case],
    /// Set if every third run uses a random program.
    pub random: bool,
    /// Seed of the first run; later runs use consecutive seeds.
    pub seed: u64,
    /// Number of runs under each design.
    pub runs: u64,
    /// Number of threads.
    pub threads: usize,
}

/// Default tests. Shapes appear three times, because each exposes a rule that can be broken.
pub fn shipped() -> Vec<Case> {
    [Case::shapes(), Case::core(), Case::shapes(), Case::kernels(), Case::shapes()].concat()
}

/// Shipped tests for designs that promise values at kernel boundaries alone: all accesses are weak.
pub fn at_boundaries() -> Vec<Case> {
    let meets = |case: &Case| case.allowed(CANDIDATES).is_ok_and(|(program, _)| program.meets_at_boundaries_alone());
    Case::kernels().into_iter().filter(meets).collect()
}

/// Attacks each target with `runs` runs from `seed` on: with the tests of [`shipped`] and random programs, or, if the
/// design promises values at kernel boundaries alone, with the tests of [`at_boundaries`]. Reports follow the order of
/// targets.
pub fn attack_shipped(
    targets: &[Target],
    (seed, runs): (u64, u64),
    threads: usize,
    watch: &dyn ProgressObserver,
) -> Vec<TimedReport> {
    let at_ends = |target: &&Target| target.config.promises.strongest() == Promise::KernelBoundary;
    let [ending, others]: [Vec<Target>; 2] =
        [true, false].map(|ends| targets.iter().filter(|target| at_ends(target) == ends).cloned().collect());
    let report = |targets: &[Target], cases: &[Case], random| {
        if targets.is_empty() {
            return Vec::new();
        }
        attack(&Attack { targets, cases, random, seed, runs, threads }, watch)
    };
    let mut reports = report(&others, &shipped(), true).into_iter();
    let mut reports_of_ending = report(&ending, &at_boundaries(), false).into_iter();
    let next = |target: &Target| if at_ends(&target) { reports_of_ending.next() } else { reports.next() };
    targets.iter().filter_map(next).collect()
}

/// Observer of an attack's progress.
pub trait ProgressObserver: Sync {
    /// Called when `runs` further runs are done.
    fn advanced(&self, runs: u64);
}

/// No observer.
impl ProgressObserver for () {
    fn advanced(&self, _: u64) {}
}

/// Unique key of a test.
fn key(case: &Case) -> String {
    case.file.clone().unwrap_or_else(|| case.name.clone())
}

/// A test with the outcomes allowed by the model, or the reason why it is not run.
type JudgedProgram = Result<(Program, Outcomes), String>;

impl Attack<'_> {
    /// The test for a run.
    fn case(&self, seed: u64) -> Case {
        let listed = |number: u64| self.cases[(number % self.cases.len() as u64) as usize].clone();
        if !self.random {
            return listed(seed);
        }
        let (round, turn) = (seed / 3, seed % 3);
        if turn == 2 || self.cases.is_empty() { Case::random(SERIES, round, 1) } else { listed(round * 2 + turn) }
    }

    /// True if run number `run` is still needed under a design: a design that promises nothing only has to misbehave
    /// once.
    fn is_due(&self, target: usize, sum: &DesignTotals, run: u64) -> bool {
        if self.targets[target].promises_nothing() { sum.first.is_none() } else { run < self.runs }
    }
}

/// Executes all runs. Reports follow the order of designs, and are identical for any thread count. If the calling
/// thread's [`StopFlag`] is set, the remaining runs are not made.
pub fn attack(attack: &Attack<'_>, watch: &dyn ProgressObserver) -> Vec<TimedReport> {
    let mut sums: Vec<DesignTotals> = attack.targets.iter().map(|_| DesignTotals::default()).collect();
    let nothing = attack.targets.iter().any(Target::promises_nothing);
    let runs = if nothing { attack.runs.max(BLIND_AFTER) } else { attack.runs };
    if attack.cases.is_empty() && !attack.random {
        return attack.targets.iter().zip(sums).map(|(target, sum)| sum.report(attack, target)).collect();
    }
    let listed: BTreeSet<String> = attack.cases.iter().map(key).collect();
    let mut known: FxHashMap<String, JudgedProgram> = FxHashMap::default();
    for first in (0..runs).step_by(AT_A_TIME as usize) {
        let is_due = (0..sums.len()).any(|target| attack.is_due(target, &sums[target], first));
        if !is_due || StopFlag::current().is_set() {
            break;
        }
        let seeds: Vec<u64> = (first..runs.min(first + AT_A_TIME)).map(|run| attack.seed.wrapping_add(run)).collect();
        let cases: Vec<Case> = seeds.iter().map(|seed| attack.case(*seed)).collect();
        judge_new(attack.threads, &cases, &mut known);
        let mut jobs: Vec<(usize, usize)> = Vec::new();
        for at in 0..seeds.len() {
            let due = (0..sums.len()).filter(|one| attack.is_due(*one, &sums[*one], first + at as u64));
            jobs.extend(due.map(|target| (at, target)));
        }
        let verdicts = side_by_side(attack.threads, jobs.len(), |job| {
            let (at, target) = jobs[job];
            let verdict = one(&attack.targets[target], &known[&key(&cases[at])], seeds[at]);
            watch.advanced(1);
            verdict
        });
        for ((at, target), verdict) in jobs.into_iter().zip(verdicts) {
            // Runs in this batch after the first misbehaviour do not count.
            if attack.is_due(target, &sums[target], first + at as u64) {
                sums[target].add(&cases[at], seeds[at], verdict, &known);
            }
        }
        known.retain(|one, _| listed.contains(one));
    }
    side_by_side(attack.threads, sums.len(), |at| sums[at].report(attack, &attack.targets[at]))
}

/// Queries the model for new tests.
fn judge_new(threads: usize, cases: &[Case], known: &mut FxHashMap<String, JudgedProgram>) {
    let mut new: Vec<&Case> = cases.iter().filter(|case| !known.contains_key(&key(case))).collect();
    new.sort_unstable_by_key(|case| key(case));
    new.dedup_by_key(|case| key(case));
    let judged = side_by_side(threads, new.len(), |at| judge(new[at]));
    known.extend(new.into_iter().map(key).zip(judged));
}

fn judge(case: &Case) -> JudgedProgram {
    let (program, allowed) = case.allowed(CANDIDATES)?;
    expressible(&program).map_err(|reason| format!("no stream expresses {reason}"))?;
    Ok((program, allowed))
}

/// Executes a run, if it applies: the design may promise nothing to the program.
fn one(target: &Target, judged: &JudgedProgram, seed: u64) -> Result<Trial, String> {
    if StopFlag::current().is_set() {
        return Err(STOPPED.to_owned());
    }
    let (program, allowed) = judged.as_ref().map_err(String::clone)?;
    if program.has_host() && !target.config.has_host() {
        return Err(NO_HOST.to_owned());
    }
    if !target.promises_nothing() && !target.design.promises(program) {
        return Err(NOT_PROMISED.to_owned());
    }
    let setup = Setup::draw(program, &target.config, seed);
    let judge = TrialContext { design: &target.config, allowed, broken: BrokenRules::default() };
    Ok(attempt(&setup, judge, false))
}

/// Finds the first run that exposes a broken rule under the attack's first design; returns its seed and failure.
pub fn catch(attack: &Attack<'_>, rule: impl Into<BrokenRules>) -> Option<(u64, RunFailure)> {
    let broken = rule.into();
    let target = attack.targets.first()?;
    let mut known: FxHashMap<String, JudgedProgram> = FxHashMap::default();
    (0..attack.runs).map(|run| attack.seed.wrapping_add(run)).find_map(|seed| {
        let case = attack.case(seed);
        let (program, allowed) = known.entry(key(&case)).or_insert_with(|| judge(&case)).as_ref().ok()?;
        if program.has_host() && !target.config.has_host() {
            return None;
        }
        let setup = Setup::draw(program, &target.config, seed);
        let judge = TrialContext { design: &target.config, allowed, broken };
        trial(&setup, judge).err().map(|failure| (seed, failure))
    })
}

/// Accumulated results for the runs under a design.
#[derive(Default)]
struct DesignTotals {
    runs: u64,
    /// By [`key`].
    tests: BTreeMap<String, TestTotals>,
    violations: u64,
    /// Number of runs with a count above zero, by counter.
    reached: Reached,
    first: Option<(Case, u64, RunFailure)>,
    not_run: BTreeMap<String, BTreeSet<String>>,
}

/// Accumulated results for a test.
#[derive(Default)]
struct TestTotals {
    name: String,
    random: bool,
    runs: u64,
    outcomes: BTreeSet<FinalState>,
    allowed: usize,
}

impl DesignTotals {
    fn add(&mut self, case: &Case, seed: u64, run: Result<Trial, String>, known: &FxHashMap<String, JudgedProgram>) {
        let Trial { verdict, moved, .. } = match run {
            Ok(trial) => trial,
            Err(reason) => {
                self.not_run.entry(reason).or_default().insert(key(case));
                return;
            }
        };
        self.runs += 1;
        moved.into_iter().for_each(|path| *self.reached.entry(path).or_default() += 1);
        let seen = self.tests.entry(key(case)).or_default();
        seen.name.clone_from(&case.name);
        seen.runs += 1;
        seen.random = case.is_random();
        seen.allowed = known[&key(case)].as_ref().map_or(0, |(_, allowed)| allowed.states().len());
        match verdict {
            Ok(state) => {
                seen.outcomes.insert(state);
            }
            Err(failure) => {
                self.violations += 1;
                self.first.get_or_insert_with(|| (case.clone(), seed, failure));
            }
        }
    }

    fn report(&self, attack: &Attack<'_>, target: &Target) -> TimedReport {
        let tests = self.tests.iter().filter(|(_, seen)| !seen.random).map(|(_, seen)| TimedTest {
            name: seen.name.clone(),
            runs: seen.runs,
            outcomes: seen.outcomes.len(),
            allowed: seen.allowed,
        });
        let not_run =
            self.not_run.iter().map(|(reason, tests)| SkippedTests { reason: reason.clone(), tests: tests.len() });
        let verdict = self.verdict(target, attack);
        let shown = verdict == TimedVerdict::Violation;
        TimedReport {
            design: target.config.name.clone(),
            verdict,
            runs: self.runs,
            tests: tests.collect(),
            programs: self.tests.values().filter(|seen| seen.random).count(),
            outcomes: self.tests.values().map(|seen| seen.outcomes.len()).sum(),
            allowed: self.tests.values().map(|seen| seen.allowed).sum(),
            violations: self.violations,
            reached: self.reached.clone(),
            not_run: not_run.collect(),
            first: self.first.as_ref().filter(|_| shown).map(|(case, seed, failure)| {
                let (program, allowed) = judge(case).expect("it has been run");
                let judge = TrialContext { design: &target.config, allowed: &allowed, broken: BrokenRules::default() };
                failing(judge, &program, (&case.name, *seed, failure))
            }),
        }
    }

    fn verdict(&self, target: &Target, attack: &Attack<'_>) -> TimedVerdict {
        let panicked = matches!(self.first, Some((_, _, RunFailure::Panicked(_) | RunFailure::Early { .. })));
        match (target.promises_nothing(), self.first.is_some()) {
            (false, false) => TimedVerdict::Ok,
            (true, true) if !panicked => TimedVerdict::Misbehaves,
            (true, false) if self.runs >= BLIND_AFTER && attack.random => TimedVerdict::Blind,
            // Explicitly named tests need not expose any misbehaviour.
            (true, false) => TimedVerdict::Ok,
            (_, true) => TimedVerdict::Violation,
        }
    }
}

/// Minimises and charts a run under the attack's first design, if it fails. `broken`: deliberately broken rules.
pub fn show(attack: &Attack<'_>, seed: u64, broken: impl Into<BrokenRules>) -> Option<FailingRun> {
    let (target, case) = (attack.targets.first()?, attack.case(seed));
    let (program, allowed) = judge(&case).ok()?;
    let judge = TrialContext { design: &target.config, allowed: &allowed, broken: broken.into() };
    let failure = trial(&Setup::draw(&program, &target.config, seed), judge).err()?;
    Some(failing(judge, &program, (&case.name, seed, &failure)))
}

/// A failing run, minimised and charted.
fn failing(judge: TrialContext<'_>, program: &Program, (test, seed, failure): (&str, u64, &RunFailure)) -> FailingRun {
    let (small, as_small) = shrink(&Setup::draw(program, judge.design, seed), failure, judge);
    let trace = attempt(&small, judge, true).chart;
    FailingRun {
        test: test.to_owned(),
        seed,
        seen_as: failure.describe(program),
        small: as_small.describe(&small.program),
        program: small.program.to_string(),
        setup: small.describe(judge.design),
        trace,
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
        let workers: Vec<_> = (0..threads.clamp(1, count.max(1))).map(|_| scope.spawn(|| stop.during(run))).collect();
        let join = |worker: std::thread::ScopedJoinHandle<'_, Vec<(usize, T)>>| {
            worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        workers.into_iter().flat_map(join).collect()
    });
    all.sort_unstable_by_key(|(index, _)| *index);
    all.into_iter().map(|(_, result)| result).collect()
}
