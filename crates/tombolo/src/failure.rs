//! Why a command gave no answer.

use std::io;
use std::path::PathBuf;
use tombolo_check::verify::{CorpusError, ObservationError};
use tombolo_experiment::{PointError, SpecError, StoreError, StudyError};
use tombolo_machine::ConfigError;
use tombolo_validation::{EstimateError, MeasuredError};
use tombolo_workload::trace::TraceError;

/// What ended a command early. Each message names what was given, and what is allowed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// A machine, a design, a setting or a scale.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A workload, its recording, or its run.
    #[error(transparent)]
    Point(#[from] PointError),
    /// An experiment.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// A folder of results.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A trace that cannot be read or written.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// Litmus tests that cannot be read.
    #[error(transparent)]
    Litmus(#[from] CorpusError),
    /// A table of observations that cannot be used.
    #[error(transparent)]
    Observed(#[from] ObservationError),
    /// A value of the command line that does not fit the others.
    #[error("{flag} {value}: {reason}")]
    Argument {
        /// Such as `--baseline`.
        flag: &'static str,
        /// As given.
        value: String,
        /// What is wrong with it, and what is allowed.
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
        /// Why.
        error: Box<EstimateError>,
    },
    /// A file or folder that does not hold what it should.
    #[error("{}: {reason}", path.display())]
    Unreadable {
        /// The file or folder.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A file that cannot be written. Another of the same command may have been.
    #[error("{}: cannot {action}: {error}; nothing was written to it", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// Why not.
        error: io::Error,
    },
    /// Standard output does not take more.
    #[error("standard output: {0}")]
    Stdout(io::Error),
}

impl From<StudyError> for Failure {
    fn from(error: StudyError) -> Failure {
        match error {
            StudyError::Spec(error) => Failure::Spec(error),
            StudyError::Store(error) => Failure::Store(error),
        }
    }
}

/// A hint for a message; empty where nothing looks alike.
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
        let failure = Failure::File { path: "out.json".into(), action: "write", error: io::Error::other("full") };
        assert_eq!(failure.to_string(), "out.json: cannot write: full; nothing was written to it");
    }
}
