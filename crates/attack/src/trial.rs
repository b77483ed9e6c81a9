//! One run and its verdict.

use crate::observer::Observer;
use crate::script::scripts;
use crate::setup::Setup;
use crate::staging::Staging;
use crate::values::Values;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Once};
use tombolo_check::axiomatic::Outcomes;
use tombolo_check::litmus::{Assignments, FinalState, Program};
use tombolo_design::DesignConfig;
use tombolo_system::run::Broken;
use tombolo_system::{RunSpec, run_watched};

/// What a run is judged under.
#[derive(Clone, Copy)]
pub struct Judge<'a> {
    /// The design.
    pub design: &'a DesignConfig,
    /// What the model allows the run's program.
    pub allowed: &'a Outcomes,
    /// Rules that are broken on purpose.
    pub broken: Broken,
}

/// What was wrong with a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// It ended in a state that the model forbids.
    Forbidden(FinalState),
    /// An instruction issued before what it needs had come, or a load never returned.
    Early {
        /// Index of the thread.
        thread: usize,
        /// The load or atomic that lacks its result.
        at: usize,
    },
    /// The timing model panicked.
    Panicked(String),
    /// The run did not end: why.
    Stopped(String),
}

impl Failure {
    /// In words.
    pub fn describe(&self, program: &Program) -> String {
        match self {
            Failure::Forbidden(state) => format!("forbidden outcome: {}", Assignments { program, state }),
            Failure::Early { thread, at } => {
                format!("thread {thread} lacks the result of its instruction {at} where it is needed")
            }
            Failure::Panicked(message) => format!("panic: {message}"),
            Failure::Stopped(why) => format!("no end: {why}"),
        }
    }

    /// Whether another failure is of the same kind.
    pub fn is_like(&self, other: &Failure) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

/// Why no stream can express a program.
///
/// # Errors
/// The reason.
pub fn expressible(program: &Program) -> Result<(), &'static str> {
    if program.locations.is_empty() {
        return Err("no location");
    }
    scripts(program).map(|_| ())
}

/// Runs a setup, and judges the state in which it ends.
///
/// # Errors
/// What is wrong with it.
pub fn trial(setup: &Setup, judge: Judge<'_>) -> Result<FinalState, Failure> {
    run(setup, judge, false).0
}

/// The same, with the chart of what passed.
pub fn charted(setup: &Setup, judge: Judge<'_>) -> (Result<FinalState, Failure>, String) {
    run(setup, judge, true)
}

fn run(setup: &Setup, judge: Judge<'_>, chart: bool) -> (Result<FinalState, Failure>, String) {
    let scripts = scripts(&setup.program).expect("only programs that streams express are run");
    let staging = Staging::new(setup, &scripts, judge.design.scheduling.cut());
    let observer = Observer::new(setup, scripts, &staging, chart);
    let ended = quietly(|| timed(setup, judge, staging, &observer));
    let verdict = ended.unwrap_or_else(|message| Err(Failure::Panicked(message)));
    (verdict, observer.chart())
}

/// The timed run.
fn timed(setup: &Setup, judge: Judge<'_>, staging: Staging, observer: &Arc<Observer>) -> Result<FinalState, Failure> {
    let machine = setup.machine().map_err(|error| Failure::Stopped(error.to_string()))?;
    let spec = RunSpec {
        machine: Arc::new(machine),
        design: judge.design.clone(),
        program: Arc::new(staging),
        pages: Some(setup.pages()),
        threads: 1,
    };
    run_watched::<Values>(&spec, observer, judge.broken).map_err(|error| Failure::Stopped(error.to_string()))?;
    let state = observer.ending().map_err(|(thread, early)| Failure::Early { thread, at: early.0 })?;
    if judge.allowed.contains(&state) { Ok(state) } else { Err(Failure::Forbidden(state)) }
}

thread_local! {
    /// Whether a panic of this thread is a finding, and not to be printed.
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Does `work`; a panic in it is an error with its message, and nothing is printed.
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
