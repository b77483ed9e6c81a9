//! A simulation with its observers: the one way to run a program.

use crate::broken_rules::BrokenRules;
use crate::checker::{Checker, LaunchOrder, Versions};
use crate::elision::BoundaryRecord;
use crate::observer::{ObserverSet, SharedObserver};
use crate::record::RunRecord;
use crate::run::{ResidentLines, RunError, RunSpec, dispatch};
use crate::timeline::Timeline;
use crate::version_probe::VersionProbe;
use std::sync::Arc;
use tombolo_engine::ThreadPool;
use tombolo_model::observe::Contents;
use tombolo_types::Ps;

/// Runs a program to its end, without observers.
///
/// # Errors
/// See [`RunError`].
pub fn run(spec: &RunSpec) -> Result<RunRecord, RunError> {
    Ok(Simulation::new(spec).run()?.record)
}

/// Runs a program with versioned lines, and checks every load against the memory model. `broken`: a rule broken on
/// purpose, so that tests can see the checker detect the fault.
///
/// # Errors
/// See [`RunError`].
pub fn run_checked(spec: &RunSpec, broken: impl Into<BrokenRules>) -> Result<RunRecord, RunError> {
    Ok(Simulation::new(spec).check().broken(broken).run()?.record)
}

/// Runs a program with line contents chosen by the caller, and reports events to `probe`. `broken`: a rule broken on
/// purpose.
///
/// # Errors
/// See [`RunError`].
pub fn run_watched<D: Contents>(
    spec: &RunSpec,
    watch: &D::Probe,
    broken: impl Into<BrokenRules>,
) -> Result<RunRecord, RunError> {
    Ok(dispatch::<D>(spec, RunOptions { broken: broken.into(), ..RunOptions::default() }, watch)?.record)
}

/// A program on a machine under a design, with observers. Observers combine freely, and none changes a time: the record
/// equals that of [`run`], with the measurements added, except for the cost. An observer that is absent costs nothing.
///
/// ```
/// # use tombolo_system::{RunError, RunSpec, Simulation};
/// # use tombolo_types::Ps;
/// fn observed(spec: &RunSpec) -> Result<(), RunError> {
///     let run = Simulation::new(spec).check().latency().timeline(Ps::from_ns(1000)).run()?;
///     assert!(run.record.check.is_some() && run.record.latency.is_some() && run.timeline.is_some());
///     Ok(())
/// }
/// ```
#[derive(Clone)]
#[must_use = "a simulation runs by `run`"]
pub struct Simulation<'a> {
    spec: &'a RunSpec,
    options: RunOptions<'a>,
    checks: bool,
    observers: Vec<SharedObserver>,
}

impl<'a> Simulation<'a> {
    /// A simulation without observers.
    pub fn new(spec: &'a RunSpec) -> Simulation<'a> {
        Simulation { spec, options: RunOptions::default(), checks: false, observers: Vec::new() }
    }

    /// Starts with the fitting part of these lines in the machine's memory-side caches.
    pub fn resident(mut self, resident: &'a [ResidentLines]) -> Simulation<'a> {
        self.options.resident = resident;
        self
    }

    /// Runs on the calling thread; these threads join if they bring a speedup. The specification's own number of
    /// threads is then ignored.
    pub fn spare(mut self, spare: &'a ThreadPool) -> Simulation<'a> {
        self.options.spare = Some(spare);
        self
    }

    /// Breaks rules on purpose.
    pub fn broken(mut self, rules: impl Into<BrokenRules>) -> Simulation<'a> {
        self.options.broken = rules.into();
        self
    }

    /// Checks every load against the memory model: [`RunRecord::check`]. Lines carry versions.
    pub fn check(mut self) -> Simulation<'a> {
        self.checks = true;
        self
    }

    /// Measures load latencies and the share spent in queues: [`RunRecord::latency`]. Lines carry versions, because loads
    /// can only be followed if lines have contents.
    pub fn latency(mut self) -> Simulation<'a> {
        self.options.follows = true;
        self
    }

    /// Records the activity in links, modules and GPUs over time, in windows of this length: [`Observed::timeline`].
    pub fn timeline(mut self, window: Ps) -> Simulation<'a> {
        self.options.window = Some(window);
        self
    }

    /// Logs the operations at each kernel boundary, regardless of elision in the design: [`Observed::boundaries`]. The
    /// log's sums stand in [`RunRecord::elision`].
    pub fn boundaries(mut self) -> Simulation<'a> {
        self.options.logs = true;
        self
    }

    /// Tells an observer of the run's events. Lines carry versions, like in a checked run.
    pub fn observe(mut self, observer: SharedObserver) -> Simulation<'a> {
        self.observers.push(observer);
        self
    }

    /// Runs the program to its end.
    ///
    /// # Errors
    /// See [`RunError`].
    pub fn run(self) -> Result<Observed, RunError> {
        let Simulation { spec, options, checks, observers } = self;
        if !checks && !options.follows && observers.is_empty() {
            return if options.broken == BrokenRules::default() {
                dispatch::<()>(spec, options, &())
            } else {
                dispatch::<Versions>(spec, options, &VersionProbe::default())
            };
        }
        let order = || LaunchOrder::of(spec.program.commands());
        let checker = checks.then(|| Arc::new(Checker::new(spec.machine.line, order(), spec.program.arrays())));
        let observers = (!observers.is_empty()).then(|| Arc::new(ObserverSet::new(spec.machine.line, observers)));
        let probe = VersionProbe { checker, observers };
        let observed = dispatch::<Versions>(spec, options, &probe)?;
        let check = probe.checker.map(|checker| checker.checked());
        Ok(Observed { record: RunRecord { check, ..observed.record }, ..observed })
    }
}

/// Results of a simulation.
pub struct Observed {
    /// The record.
    pub record: RunRecord,
    /// The timeline, if requested.
    pub timeline: Option<Timeline>,
    /// The logged boundaries; empty if none were requested.
    pub boundaries: Vec<BoundaryRecord>,
}

/// Optional inputs: warm caches, an injected fault, a timeline, load tracking, additional threads.
#[derive(Clone, Copy, Default)]
pub(crate) struct RunOptions<'a> {
    /// Contents of memory-side caches at the start.
    pub(crate) resident: &'a [ResidentLines],
    /// Rules broken on purpose.
    pub(crate) broken: BrokenRules,
    /// Length of the timeline's windows, if a timeline is requested.
    pub(crate) window: Option<Ps>,
    /// True if boundaries are logged.
    pub(crate) logs: bool,
    /// True if load latencies are tracked.
    pub(crate) follows: bool,
    /// Threads that may join a run started on the calling thread.
    pub(crate) spare: Option<&'a ThreadPool>,
}
