//! A single run and its verdict.

use crate::observer::Observer;
use crate::reached;
use crate::script::scripts;
use crate::setup::Setup;
use crate::staging::LitmusStreams;
use crate::values::CellOffsets;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Once};
use tombolo_check::axiomatic::Outcomes;
use tombolo_check::litmus::{Assignments, FinalState, Program};
use tombolo_design::DesignConfig;
use tombolo_design::placement::ExploredSharing;
use tombolo_machine::MachineConfig;
use tombolo_system::BrokenRules;
use tombolo_system::{RunSpec, run_watched};

/// Context for judging a run.
#[derive(Clone, Copy)]
pub struct TrialContext<'a> {
    /// The design.
    pub design: &'a DesignConfig,
    /// Outcomes that the model allows for the run's program.
    pub allowed: &'a Outcomes,
    /// Deliberately broken rules.
    pub broken: BrokenRules,
}

/// Failure of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunFailure {
    /// The run ended in a state forbidden by the model.
    Forbidden(FinalState),
    /// An instruction issued before its inputs had arrived, or a load never returned.
    Early {
        /// Index of the thread.
        thread: usize,
        /// The load or atomic without a result.
        at: usize,
    },
    /// The timing model panicked.
    Panicked(String),
    /// The run did not end; contains the reason.
    Stopped(String),
}

impl RunFailure {
    /// Describes the failure in words.
    pub fn describe(&self, program: &Program) -> String {
        match self {
            RunFailure::Forbidden(state) => format!("forbidden outcome: {}", Assignments { program, state }),
            RunFailure::Early { thread, at } => {
                format!("thread {thread} lacks the result of its instruction {at} where it is needed")
            }
            RunFailure::Panicked(message) => format!("panic: {message}"),
            RunFailure::Stopped(why) => format!("no end: {why}"),
        }
    }

    /// True if another failure has the equal kind.
    pub fn is_like(&self, other: &RunFailure) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

/// Checks that a stream can express a program.
///
/// # Errors
/// The reason why none can.
pub fn expressible(program: &Program) -> Result<(), &'static str> {
    if program.locations.is_empty() {
        return Err("no location");
    }
    scripts(program).map(|_| ())
}

/// A run that has ended.
pub struct Trial {
    /// The final state, or the failure.
    pub verdict: Result<FinalState, RunFailure>,
    /// Paths of the counters that the run has moved, as in the JSON of a run; empty if the run did not end.
    pub moved: Vec<String>,
    /// The message chart; empty if none was asked for.
    pub chart: String,
}

impl Trial {
    fn failed(failure: RunFailure) -> Trial {
        Trial { verdict: Err(failure), moved: Vec::new(), chart: String::new() }
    }
}

/// Runs a setup, and judges its final state.
///
/// # Errors
/// The failure of the run.
pub fn trial(setup: &Setup, judge: TrialContext<'_>) -> Result<FinalState, RunFailure> {
    attempt(setup, judge, false).verdict
}

/// Runs a setup like `trial`, and tells more about the run. `chart`: set if the messages are drawn.
pub fn attempt(setup: &Setup, judge: TrialContext<'_>, chart: bool) -> Trial {
    let scripts = scripts(&setup.program).expect("only programs that streams express are run");
    let machine = match setup.machine() {
        Ok(machine) => Arc::new(machine),
        Err(error) => return Trial::failed(RunFailure::Stopped(error.to_string())),
    };
    let staging = LitmusStreams::new(setup, &scripts, judge.design.scheduling.cut(&machine));
    let observer = Observer::new(setup, scripts, &staging, chart);
    let ended = quietly(|| timed(setup, machine, judge, staging, &observer));
    let trial = ended.unwrap_or_else(|message| Trial::failed(RunFailure::Panicked(message)));
    Trial { chart: observer.chart(), ..trial }
}

/// Executes the timed run, without a chart.
fn timed(
    setup: &Setup,
    machine: Arc<MachineConfig>,
    judge: TrialContext<'_>,
    staging: LitmusStreams,
    observer: &Arc<Observer>,
) -> Trial {
    // Each GPU has a page of its own if memory is duplicated: the design places them.
    let pages = match judge.design.placement.sharing().explored() {
        ExploredSharing::Copied(_) | ExploredSharing::LatestWriter => None,
        ExploredSharing::Placed | ExploredSharing::Pages(_) => Some(setup.pages()),
    };
    let record = setup.design(judge.design).and_then(|design| {
        let spec = RunSpec { machine, design, program: Arc::new(staging), pages, threads: 1 };
        run_watched::<CellOffsets>(&spec, observer, judge.broken).map_err(|error| error.to_string())
    });
    let record = match record {
        Ok(record) => record,
        Err(reason) => return Trial::failed(RunFailure::Stopped(reason)),
    };
    let verdict = match observer.ending() {
        Err((thread, early)) => Err(RunFailure::Early { thread, at: early.0 }),
        Ok(state) if judge.allowed.contains(&state) => Ok(state),
        Ok(state) => Err(RunFailure::Forbidden(state)),
    };
    Trial { verdict, moved: reached::moved(&record), chart: String::new() }
}

thread_local! {
    /// Set while a panic on this thread is an expected finding that must not be printed.
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Runs `work`; converts a panic into an error with its message, without printing.
fn quietly<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !QUIET.get() {
                before(info);
            }
        }));
    });
    QUIET.set(true);
    let result = catch_unwind(AssertUnwindSafe(work));
    QUIET.set(false);
    result.map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default()
    })
}
