//! Commands of the command line, run in this process.

use crate::interrupt::INTERVAL;
use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tombolo::session::{Session, SessionError, SessionErrorKind, SharedWatcher, Watcher};

create_exception!(tombolo._native, Failure, PyException, "A command without an answer: its kind, and its message.");

/// Progress of a command, read at intervals.
#[derive(Default)]
struct Progress {
    state: Mutex<ProgressState>,
}

#[derive(Clone, Default, PartialEq)]
struct ProgressState {
    done: usize,
    all: usize,
    running: Vec<String>,
    left: Option<Duration>,
}

impl Progress {
    fn change(&self, with: impl FnOnce(&mut ProgressState)) {
        with(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn state(&self) -> ProgressState {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Watcher for Progress {
    fn begins(&self, points: usize, finished: usize) {
        self.change(|state| (state.done, state.all) = (finished, points + finished));
    }

    fn started(&self, what: &str) {
        self.change(|state| state.running.push(what.to_owned()));
    }

    fn ended(&self, what: &str) {
        self.change(|state| {
            if let Some(place) = state.running.iter().position(|name| name == what) {
                state.running.remove(place);
            }
        });
    }

    fn advanced(&self, points: usize, left: Option<Duration>) {
        self.change(|state| {
            state.done += points;
            state.left = left;
        });
    }

    // The session keeps warnings.
    fn warn(&self, _: &str) {}
}

/// Runs a command: `execute(words, progress) -> (status, output, messages)`.
///
/// `words`: the arguments of the command line, without the program's name. `progress`: called with (done, all, running,
/// seconds left or None) when one of them has changed, at most ten times a second; None for no calls. The interpreter lock
/// is free during the run. A signal whose handler raises, like Ctrl-C, ends the run; the exception is raised when the
/// run's threads have ended.
///
/// Raises Failure(kind, message) if the command has no answer.
#[pyfunction]
pub(crate) fn execute(
    py: Python<'_>,
    words: Vec<String>,
    progress: Option<Py<PyAny>>,
) -> PyResult<(u8, String, Vec<String>)> {
    let watcher = Arc::new(Progress::default());
    let shared: SharedWatcher = watcher.clone();
    let mut session = Session::start(words, shared);
    let mut shown = ProgressState::default();
    loop {
        let waiting = &mut session;
        if let Some(result) = py.detach(move || waiting.wait_for(INTERVAL)) {
            let answer = result.map_err(|error| Failure::new_err((kind(&error), error.message)))?;
            return Ok((answer.status, answer.output, answer.messages));
        }
        let show = || {
            py.check_signals()?;
            let state = watcher.state();
            if let Some(progress) = &progress
                && state != shown
            {
                let left = state.left.map(|left| left.as_secs_f64());
                progress.call1(py, (state.done, state.all, state.running.join("; "), left))?;
            }
            Ok(state)
        };
        match show() {
            Ok(state) => shown = state,
            Err(raised) => {
                // Dropping the session stops its command and waits for its threads.
                py.detach(move || drop(session));
                return Err(raised);
            }
        }
    }
}

/// The word for an error's kind in Python.
fn kind(error: &SessionError) -> &'static str {
    match error.kind {
        SessionErrorKind::Argument => "argument",
        SessionErrorKind::Description => "description",
        SessionErrorKind::Program => "program",
        SessionErrorKind::Experiment => "experiment",
        SessionErrorKind::File => "file",
        SessionErrorKind::Run => "run",
        SessionErrorKind::Stopped => "stopped",
    }
}
