//! A test under a design: explorations are shared among any number of threads, but counted in order.

use super::case::{Case, JudgedTest, Obstacle, Placements};
use super::coverage::{ExploredPlacement, coverage};
use super::report::{EventReachability, ModelVerdict, Outcome, TestReport, TestVerdict};
use super::{Budget, Design, ProgressObserver};
use crate::explore::{self, Config, Report, Start};
use crate::litmus::{Assignments, FinalState};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Cost factor that a large program may reach compared with a small program.
const LARGE: u64 = 6;

pub(super) struct Job<'a> {
    case: &'a Case,
    judged: &'a Result<JudgedTest, Obstacle>,
    design: &'a Design,
    budget: Budget,
    progress: Mutex<JobState<'a>>,
}

/// Progress of a job.
enum JobState<'a> {
    /// No thread has started the job.
    Fresh,
    /// In progress.
    Exploring(Box<ActiveJob<'a>>),
    /// Done.
    Done(Box<TestReport>),
}

/// The set of explorations, shared by all working threads.
struct Task<'a> {
    judged: &'a JudgedTest,
    places: Vec<ExploredPlacement>,
    whole: bool,
    states: u64,
    states_of_placement: usize,
}

/// A job in progress.
struct ActiveJob<'a> {
    task: Arc<Task<'a>>,
    /// Index of the next place to explore.
    next: usize,
    /// Reports for places that follow an unfinished place.
    early: BTreeMap<usize, Report>,
    /// Number of counted places: all before this index are done.
    counted: usize,
    /// Set if no further place counts.
    closed: bool,
    sum: JobTotals,
}

/// Accumulated result over the counted places.
#[derive(Default)]
struct JobTotals {
    states: u64,
    outcomes: BTreeSet<FinalState>,
    /// Places with an exhausted state budget.
    cut: usize,
    violation: Option<(explore::Violation, String)>,
}

impl<'a> Job<'a> {
    pub(super) fn new(
        case: &'a Case,
        judged: &'a Result<JudgedTest, Obstacle>,
        design: &'a Design,
        budget: Budget,
    ) -> Job<'a> {
        Job { case, judged, design, budget, progress: Mutex::new(JobState::Fresh) }
    }

    pub(super) fn into_report(self) -> TestReport {
        match self.progress.into_inner().unwrap_or_else(PoisonError::into_inner) {
            JobState::Done(report) => *report,
            JobState::Fresh | JobState::Exploring(_) => unreachable!("workers leave when every job is done"),
        }
    }

    /// Explores a further place, if any that no thread has started.
    pub(super) fn explore_next(&self, watch: &dyn ProgressObserver) -> bool {
        let Some((task, index)) = self.take(watch) else { return false };
        let place = &task.places[index];
        let config = Config {
            options: self.design.options,
            boundary_policy: self.design.boundary_policy,
            broken_elision: self.design.broken_elision,
            paging: self.design.paging,
            publication: self.design.publication(),
            copies: self.design.copies,
            unrequested: self.design.unrequested(),
            start: place.start,
            evictions: self.case.evictions(),
            max_states: task.states_of_placement,
            walks: self.budget.walks,
            ..Config::new(self.design.protocol)
        };
        let forbidden = |state: &FinalState| task.judged.forbids(state);
        let report = explore::run(&task.judged.program, &place.layout, &config, &forbidden)
            .expect("a design names a protocol there is");
        self.put(&task, index, report, watch);
        true
    }

    fn lock(&self) -> MutexGuard<'_, JobState<'a>> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, watch: &dyn ProgressObserver) -> Option<(Arc<Task<'a>>, usize)> {
        let mut progress = self.lock();
        if let JobState::Fresh = *progress {
            watch.started(&self.case.name, &self.design.name);
            match self.task() {
                Ok(task) => *progress = JobState::Exploring(Box::new(ActiveJob::new(task))),
                Err(obstacle) => {
                    *progress = JobState::Done(Box::new(self.not_run(obstacle)));
                    watch.finished(&self.case.name, &self.design.name);
                }
            }
        }
        let JobState::Exploring(exploring) = &mut *progress else { return None };
        let index = exploring.next;
        if exploring.closed || index == exploring.task.places.len() {
            return None;
        }
        exploring.next += 1;
        Some((Arc::clone(&exploring.task), index))
    }

    fn put(&self, task: &Task<'_>, index: usize, report: Report, watch: &dyn ProgressObserver) {
        let mut progress = self.lock();
        let JobState::Exploring(exploring) = &mut *progress else { return };
        exploring.early.insert(index, report);
        exploring.count();
        if exploring.closed {
            let report = self.report(task, exploring);
            *progress = JobState::Done(Box::new(report));
            watch.finished(&self.case.name, &self.design.name);
        }
    }

    fn task(&self) -> Result<Task<'a>, Obstacle> {
        let judged = self.judged.as_ref().map_err(Obstacle::clone)?;
        if let Some(reason) = explore::refuses(&judged.program, self.design.protocol) {
            return Err(Obstacle::Unsupported(reason));
        }
        let config = Config { options: self.design.options, ..Config::new(self.design.protocol) };
        let gpu_homes = explore::is_hierarchical(&config).expect("a design names a protocol there is");
        let machines = self.design.machines(gpu_homes);
        let mut coverage = coverage(&judged.program, self.case.placements, machines);
        if self.design.boundary_policy.elides() {
            // The table assumes empty L2s at the start.
            coverage.places.retain(|place| place.start == Start::Cold);
        }
        let is_large = judged.program.locations.len() > 2 || judged.program.threads.len() > 3;
        let (states, states_of_placement) = match self.case.placements {
            Placements::Drawn { .. } => (u64::MAX, self.budget.states_of_random),
            Placements::All => {
                (self.budget.states_of_test * if is_large { LARGE } else { 1 }, self.budget.states_of_placement)
            }
        };
        Ok(Task { judged, places: coverage.places, whole: coverage.whole, states, states_of_placement })
    }

    fn not_run(&self, obstacle: Obstacle) -> TestReport {
        let (verdict, reason) = match obstacle {
            Obstacle::Unreadable(reason) => (TestVerdict::Unreadable, reason),
            Obstacle::Unsupported(reason) => (TestVerdict::Unsupported, reason),
            Obstacle::Bounded(reason) => (TestVerdict::Bounded, reason),
        };
        TestReport {
            name: self.case.name.clone(),
            file: self.case.file.clone(),
            event: EventReachability::Unreached,
            expected: None,
            outcomes: Vec::new(),
            reached: 0,
            allowed: 0,
            states: 0,
            placements: 0,
            placements_of: 0,
            verdict,
            reason: Some(reason),
            trace: None,
            program: None,
        }
    }

    fn report(&self, task: &Task<'_>, exploring: &mut ActiveJob<'_>) -> TestReport {
        let (judged, sum) = (task.judged, std::mem::take(&mut exploring.sum));
        let reached = sum.outcomes.iter().any(|state| judged.is_event(state));
        let (verdict, reason) = self.verdict(task, exploring.counted, &sum);
        let (violated, listed) = (sum.violation.is_some(), self.case.file.is_some());
        let named = |state| Assignments { program: &judged.program, state }.entries().collect::<Outcome>();
        TestReport {
            event: if reached { EventReachability::Reached } else { EventReachability::Unreached },
            expected: judged
                .allows_event()
                .map(|may| if may { ModelVerdict::Allowed } else { ModelVerdict::Forbidden }),
            outcomes: sum.outcomes.iter().filter(|state| listed || judged.is_event(state)).map(named).collect(),
            reached: sum.outcomes.len(),
            allowed: judged.allowed.as_ref().map_or(0, |allowed| allowed.states().len()),
            states: sum.states,
            placements: exploring.counted / 2,
            placements_of: task.places.len() / 2,
            verdict,
            reason,
            trace: sum.violation.map(|(_, trace)| trace),
            program: (violated && self.case.file.is_none()).then(|| judged.program.to_string()),
            ..self.not_run(Obstacle::Bounded(String::new()))
        }
    }

    fn verdict(&self, task: &Task<'_>, counted: usize, sum: &JobTotals) -> (TestVerdict, Option<String>) {
        let places = task.places.len();
        if !self.design.promises(&task.judged.program) {
            let seen =
                sum.violation.as_ref().map(|(violation, _)| format!("reaches what the model forbids: {violation}"));
            return (
                TestVerdict::NotPromised,
                Some(seen.unwrap_or_else(|| "does not violate the model here".to_owned())),
            );
        }
        if let Some((violation, _)) = &sum.violation {
            return (TestVerdict::Violation, Some(violation.to_string()));
        }
        if counted < places {
            let reason = format!("{} states end after {counted} of {places} explorations", task.states);
            return (TestVerdict::Bounded, Some(reason));
        }
        if sum.cut > 0 {
            let reason = format!(
                "{} of {places} explorations end after {} states, then {} random walks",
                sum.cut, task.states_of_placement, self.budget.walks
            );
            return (TestVerdict::Bounded, Some(reason));
        }
        if !task.whole {
            return (TestVerdict::Bounded, Some(format!("{} placements drawn from all", places / 2)));
        }
        (TestVerdict::Ok, None)
    }
}

impl<'a> ActiveJob<'a> {
    fn new(task: Task<'a>) -> ActiveJob<'a> {
        let task = Arc::new(task);
        ActiveJob { task, next: 0, early: BTreeMap::new(), counted: 0, closed: false, sum: JobTotals::default() }
    }

    /// Counts finished places up to the first unfinished place, until a place closes the job.
    fn count(&mut self) {
        while !self.closed
            && let Some(report) = self.early.remove(&self.counted)
        {
            self.counted += 1;
            self.sum.add(report);
            self.closed = self.counted == self.task.places.len()
                || self.sum.violation.is_some()
                || self.sum.states >= self.task.states;
        }
    }
}

impl JobTotals {
    fn add(&mut self, report: Report) {
        self.states += report.states as u64;
        self.outcomes.extend(report.outcomes);
        match report.verdict {
            explore::ExplorationVerdict::Clean => {}
            explore::ExplorationVerdict::Bounded => self.cut += 1,
            explore::ExplorationVerdict::Violated(violation) => {
                self.violation = Some((violation, report.trace.unwrap_or_default()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explore::PROTOCOLS;
    use crate::verify::verify;
    use tombolo_protocol::catalogue::facts;
    use tombolo_protocol::vi::ProtocolOptions;
    use tombolo_types::Promise;

    #[test]
    fn a_machine_without_a_host_does_not_run_host_threads() {
        let design = |protocol| Design::new(protocol, protocol, ProtocolOptions::default(), Promise::Ptx).unwrap();
        let lacks_host = |protocol: &&&str| !facts(protocol).expect("it is listed").host;
        let designs: Vec<Design> = PROTOCOLS.iter().filter(lacks_host).map(|protocol| design(*protocol)).collect();
        for report in verify(&designs, &Case::host(), Budget::default(), 1, &()) {
            assert_eq!(report.tests.len(), Case::host().len());
            for test in report.tests {
                assert_eq!((test.verdict, test.states), (TestVerdict::Unsupported, 0), "{}", test.name);
                let reason = test.reason.expect("it says why");
                let said = format!("the machine of {} has no host", report.design);
                assert!(reason.contains(&said), "{}: {reason}", test.name);
            }
        }
    }
}
