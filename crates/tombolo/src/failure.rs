//! Reasons for a command without a result.

use std::io;
use std::path::PathBuf;
use tombolo_check::verify::{CorpusError, ObservationError};
use tombolo_experiment::{PointError, SpecError, StoreError, StudyError};
use tombolo_machine::ConfigError;
use tombolo_protocol::registry::NameTaken;
use tombolo_validation::{EstimateError, MeasuredError};
use tombolo_workload::trace::TraceError;

/// An error that ended a command early. Each message names the given value and the allowed values.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CommandFailure {
    /// A machine, a design, a setting or a scale.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A protocol whose name is taken.
    #[error(transparent)]
    Protocol(#[from] NameTaken),
    /// A workload, a recording, or a run.
    #[error(transparent)]
    Point(#[from] PointError),
    /// An experiment.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// A folder with results.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A trace that cannot be read or written.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// Unreadable litmus tests.
    #[error(transparent)]
    Litmus(#[from] CorpusError),
    /// An unusable table with observations.
    #[error(transparent)]
    Observed(#[from] ObservationError),
    /// A command-line value that contradicts different arguments.
    #[error("{flag} {value}: {reason}")]
    Argument {
        /// Flag, for example `--baseline`.
        flag: &'static str,
        /// Value given by the user.
        value: String,
        /// Reason, and allowed values.
        reason: String,
    },
    /// A table of measured times.
    #[error(transparent)]
    Measured(#[from] MeasuredError),
    /// A measured row that could not be simulated.
    #[error("{label}: {error}")]
    Estimate {
        /// Benchmark, size and machine.
        label: String,
        /// Reason for the run's failure.
        error: Box<EstimateError>,
    },
    /// A file or folder with unexpected contents.
    #[error("{}: {reason}", path.display())]
    Unreadable {
        /// Path to the file or folder.
        path: PathBuf,
        /// Description of the problem.
        reason: String,
    },
    /// A file that cannot be written. Different files from this command may already be written.
    #[error("{}: cannot {action}: {error}; nothing was written to it", path.display())]
    File {
        /// Path to the file.
        path: PathBuf,
        /// Attempted action.
        action: &'static str,
        /// Reason for the run's failure.
        error: io::Error,
    },
    /// The calling thread's [`tombolo_types::StopFlag`] was set.
    #[error("stopped")]
    Stopped,
    /// Standard output does not accept more data.
    #[error("standard output: {0}")]
    Stdout(io::Error),
}

impl From<StudyError> for CommandFailure {
    fn from(error: StudyError) -> CommandFailure {
        match error {
            StudyError::Spec(error) => CommandFailure::Spec(error),
            StudyError::Store(error) => CommandFailure::Store(error),
            StudyError::Stopped(_) => CommandFailure::Stopped,
        }
    }
}

/// Returns a "did you mean" hint for a message; empty if no name is similar.
pub(crate) fn did_you_mean(near: &[String]) -> String {
    match near {
        [] => String::new(),
        names => format!(" (did you mean {}?)", names.join(" or ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_be_written_says_so_of_itself_alone() {
        let failure =
            CommandFailure::File { path: "out.json".into(), action: "write", error: io::Error::other("full") };
        assert_eq!(failure.to_string(), "out.json: cannot write: full; nothing was written to it");
    }
}
