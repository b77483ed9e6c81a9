//! Commands inside another program, such as an interpreter: the same arguments, documents and messages as the command
//! line, without its standard streams and interrupts.
//!
//! ```
//! use tombolo::session::{Session, SilentWatcher};
//! use std::sync::Arc;
//!
//! let words = ["run", "--machine", "hmg-4x4", "--design", "hmg", "--workload", "triad,elements=4096", "--json"];
//! let mut session = Session::start(words.map(str::to_owned).to_vec(), Arc::new(SilentWatcher));
//! let answer = session.wait().expect("these arguments are right");
//! assert!(answer.status == 0 && answer.output.contains("\"digest\""));
//! ```

use crate::failure::CommandFailure;
use crate::{CommandLine, WRONG_INPUT};
use clap::Parser;
use clap::error::ErrorKind;
use std::cell::RefCell;
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tombolo_experiment::PointError;
use tombolo_experiment::campaign::unbroken;
use tombolo_types::StopFlag;

pub use tombolo_experiment::campaign::{SilentWatcher, Watcher};

/// Receiver of a session's progress.
pub type SharedWatcher = Arc<dyn Watcher + Send + Sync>;

/// Result of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The exit status of the command line: 0 done, 1 the answer is "no", 2 a part gave no result.
    pub status: u8,
    /// The text for standard output: a JSON document with `--json`.
    pub output: String,
    /// The lines for standard error: notes, warnings, and failures of parts.
    pub messages: Vec<String>,
}

/// Reason for which a command gave no answer, with the text that the command line prints behind `error:`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SessionError {
    /// The class of the reason.
    pub kind: SessionErrorKind,
    /// The text.
    pub message: String,
}

/// Classes of reasons for a missing answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionErrorKind {
    /// An argument is unknown, missing or contradicts others.
    Argument,
    /// A machine, a design, a setting or a scale.
    Description,
    /// A workload, a trace or a litmus test.
    Program,
    /// An experiment file.
    Experiment,
    /// A file or folder cannot be read or written.
    File,
    /// A run gave no result.
    Run,
    /// The session was stopped.
    Stopped,
}

/// A command that runs on a thread of its own.
pub struct Session {
    stop: StopFlag,
    result: Receiver<Result<Answer, SessionError>>,
    thread: Option<JoinHandle<()>>,
}

impl Session {
    /// Starts a command. `words`: its arguments, without the program's name.
    pub fn start(words: Vec<String>, watcher: SharedWatcher) -> Session {
        let stop = StopFlag::new();
        let (sender, result) = sync_channel(1);
        let flag = stop.clone();
        let thread = std::thread::spawn(move || {
            let sink = Arc::new(SessionSink::new(words, watcher));
            let answer = flag.during(|| answer(&sink));
            // The receiver is gone if nobody waits for the answer.
            let _ = sender.send(if flag.is_set() { Err(stopped()) } else { answer });
        });
        Session { stop, result, thread: Some(thread) }
    }

    /// Asks the command to stop: it then ends within about a second. Finished points of a study are kept.
    pub fn stop(&self) {
        self.stop.set();
    }

    /// Waits for the answer.
    ///
    /// # Errors
    /// See [`SessionError`].
    pub fn wait(&mut self) -> Result<Answer, SessionError> {
        loop {
            if let Some(answer) = self.wait_for(Duration::from_secs(3600)) {
                return answer;
            }
        }
    }

    /// Waits for the answer, for this time at most. The answer is given once; a later call reports a stopped session.
    ///
    /// # Errors
    /// See [`SessionError`].
    pub fn wait_for(&mut self, time: Duration) -> Option<Result<Answer, SessionError>> {
        match self.result.recv_timeout(time) {
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(Err(stopped())),
            Ok(answer) => {
                // The thread has nothing left to do.
                self.thread.take().map(JoinHandle::join);
                Some(answer)
            }
        }
    }
}

impl Drop for Session {
    /// Stops the command, and waits for its threads.
    fn drop(&mut self) {
        self.stop.set();
        self.thread.take().map(JoinHandle::join);
    }
}

fn stopped() -> SessionError {
    SessionError { kind: SessionErrorKind::Stopped, message: CommandFailure::Stopped.to_string() }
}

/// Parses and runs the command of `sink` on the calling thread.
fn answer(sink: &Arc<SessionSink>) -> Result<Answer, SessionError> {
    let words = std::iter::once("tombolo").chain(sink.words.iter().map(String::as_str));
    let line = match CommandLine::try_parse_from(words) {
        Ok(line) => line,
        Err(help) if matches!(help.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) => {
            return Ok(Answer { status: 0, output: help.to_string(), messages: Vec::new() });
        }
        Err(error) => {
            let text = error.to_string();
            let message = text.strip_prefix("error: ").unwrap_or(&text).trim_end().to_owned();
            return Err(SessionError { kind: SessionErrorKind::Argument, message });
        }
    };
    CURRENT.set(Some(Arc::clone(sink)));
    let status = unbroken("tombolo", || line.command.execute());
    CURRENT.set(None);
    let status = status.map_err(|failure| SessionError { kind: kind(&failure), message: failure.to_string() })?;
    let status = [0, 1, WRONG_INPUT].into_iter().find(|known| ExitCode::from(*known) == status);
    let take = |text: &Mutex<String>| std::mem::take(&mut *text.lock().unwrap_or_else(PoisonError::into_inner));
    let messages = std::mem::take(&mut *sink.messages.lock().unwrap_or_else(PoisonError::into_inner));
    Ok(Answer { status: status.unwrap_or(WRONG_INPUT), output: take(&sink.output), messages })
}

fn kind(failure: &CommandFailure) -> SessionErrorKind {
    match failure {
        CommandFailure::Config(_) | CommandFailure::Protocol(_) => SessionErrorKind::Description,
        CommandFailure::Point(error) => match error {
            PointError::Config(_) => SessionErrorKind::Description,
            PointError::Run { .. } | PointError::Broken { .. } => SessionErrorKind::Run,
            PointError::File { .. } => SessionErrorKind::File,
            _ => SessionErrorKind::Program,
        },
        CommandFailure::Spec(_) => SessionErrorKind::Experiment,
        CommandFailure::Trace(_) | CommandFailure::Litmus(_) => SessionErrorKind::Program,
        CommandFailure::Observed(_) | CommandFailure::Measured(_) => SessionErrorKind::File,
        CommandFailure::Argument { .. } => SessionErrorKind::Argument,
        CommandFailure::Estimate { .. } => SessionErrorKind::Run,
        CommandFailure::Store(_)
        | CommandFailure::Unreadable { .. }
        | CommandFailure::File { .. }
        | CommandFailure::Stdout(_) => SessionErrorKind::File,
        CommandFailure::Stopped => SessionErrorKind::Stopped,
    }
}

thread_local! {
    static CURRENT: RefCell<Option<Arc<SessionSink>>> = const { RefCell::new(None) };
}

/// The session that the calling thread's command belongs to; `None` on the command line.
pub(crate) fn current() -> Option<Arc<SessionSink>> {
    CURRENT.with_borrow(Option::clone)
}

/// Output of a session's command.
pub(crate) struct SessionSink {
    words: Vec<String>,
    watcher: SharedWatcher,
    output: Mutex<String>,
    messages: Mutex<Vec<String>>,
}

impl SessionSink {
    fn new(words: Vec<String>, watcher: SharedWatcher) -> SessionSink {
        SessionSink { words, watcher, output: Mutex::default(), messages: Mutex::default() }
    }

    /// Arguments of the command.
    pub(crate) fn words(&self) -> &[String] {
        &self.words
    }

    /// Receiver of the progress.
    pub(crate) fn watcher(&self) -> &dyn Watcher {
        &*self.watcher
    }

    /// Adds text to the output.
    pub(crate) fn print(&self, text: &str) {
        self.output.lock().unwrap_or_else(PoisonError::into_inner).push_str(text);
    }

    /// Adds a line to the messages.
    pub(crate) fn message(&self, text: String) {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner).push(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    fn session(words: &str) -> Session {
        Session::start(words.split(' ').map(str::to_owned).collect(), Arc::new(SilentWatcher))
    }

    fn refused(words: &str) -> SessionError {
        session(words).wait().expect_err("it is refused")
    }

    #[test]
    fn a_refused_command_has_the_text_of_the_command_line_and_its_kind() {
        let unknown = refused("run --machine hmg-4x4 --design hgm --workload triad --json");
        assert_eq!(unknown.kind, SessionErrorKind::Description);
        assert!(unknown.message.starts_with("no design is called \"hgm\""), "{unknown}");
        let option = refused("run --machine hmg-4x4 --desing hmg --workload triad");
        assert_eq!(option.kind, SessionErrorKind::Argument);
        assert!(option.message.starts_with("unexpected argument '--desing' found"), "{option}");
        let workload = refused("run --machine hmg-4x4 --design hmg --workload tria");
        assert_eq!(workload.kind, SessionErrorKind::Program);
    }

    #[test]
    fn messages_and_progress_stay_in_the_session() {
        struct Count(Mutex<(usize, usize)>);
        impl Watcher for Count {
            fn begins(&self, points: usize, _: usize) {
                self.0.lock().unwrap().0 = points;
            }
            fn started(&self, _: &str) {}
            fn ended(&self, _: &str) {}
            fn advanced(&self, points: usize, _: Option<Duration>) {
                self.0.lock().unwrap().1 += points;
            }
            fn warn(&self, _: &str) {}
        }
        let count = Arc::new(Count(Mutex::default()));
        let words = "compare --machine hmg-4x4 --designs hmg,nhcc --workload triad,elements=65536 --scale 0.03 --json";
        let words = words.split(' ').map(str::to_owned).collect();
        let answer = Session::start(words, count.clone()).wait().expect("it runs");
        assert_eq!((answer.status, *count.0.lock().unwrap()), (0, (2, 2)));
        assert!(answer.output.starts_with('{'), "{}", answer.output);
        assert!(answer.messages.iter().any(|message| message.starts_with("note: --scale 3/100")), "{answer:?}");
        assert!(current().is_none());
    }

    #[test]
    fn a_stopped_session_ends_soon_in_each_phase_of_a_command() {
        // Recording and simulation; several points; exploration; attacks.
        let long = [
            "run --machine hmg-4x4 --design hmg --workload bfs --json",
            "run --machine hmg-4x4 --design hmg --workload triad,iterations=64 --json --threads 2",
            "compare --machine hmg-4x4 --designs hmg,nhcc --workload triad,iterations=64 --json",
            "check --design hmg --mutants --json",
            "check --timed 100000 --design hmg --json",
        ];
        for words in long {
            for after in [Duration::from_millis(50), Duration::from_millis(1500)] {
                let mut session = session(words);
                assert_eq!(session.wait_for(after), None, "{words} takes longer");
                session.stop();
                let since = Instant::now();
                let error = session.wait().expect_err("it was stopped");
                assert_eq!(error.kind, SessionErrorKind::Stopped);
                let taken = since.elapsed();
                eprintln!("{words}: {taken:?}");
                assert!(taken < Duration::from_secs(10), "{words}: {taken:?}");
            }
        }
    }
}
