//! Errors in experiment files, and reasons for points without a result.

use std::io;
use std::path::PathBuf;
use tombolo_machine::ConfigError;
use tombolo_system::RunError;
use tombolo_types::stream::StreamError;
use tombolo_workload::bench::WorkloadError;
use tombolo_workload::trace::TraceError;

/// An experiment file that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SpecError {
    /// The file cannot be read.
    #[error("{}: {reason}", path.display())]
    Unreadable {
        /// Path to the file.
        path: PathBuf,
        /// Reason.
        reason: String,
    },
    /// The file contains a key or a value unknown to experiments.
    #[error("{file}:{line}: {message}")]
    Syntax {
        /// Name of the file.
        file: String,
        /// Line number, from 1.
        line: usize,
        /// The key or value, and the allowed alternatives.
        message: String,
    },
    /// The value is valid for its key, but not in this place.
    #[error("{file}:{line}: {key} = {value:?}: {reason}")]
    Value {
        /// Name of the file.
        file: String,
        /// Line number, from 1.
        line: usize,
        /// Key name.
        key: &'static str,
        /// Value, spelled like in the file.
        value: String,
        /// Reason, and allowed values.
        reason: String,
    },
    /// Parts in a file contradict each other.
    #[error("{file}: {key}: {reason}")]
    Shape {
        /// Name of the file.
        file: String,
        /// Key name.
        key: &'static str,
        /// Reason, and allowed values.
        reason: String,
    },
    /// No experiment, suite or paper with this name ships.
    #[error("no {kind} is called {name:?}{}; there are {}", suggestion(near), known.join(", "))]
    UnknownName {
        /// `figure`, `suite` or `paper`.
        kind: &'static str,
        /// Name given by the user.
        name: String,
        /// Similar names.
        near: Vec<String>,
        /// All known names.
        known: Vec<String>,
    },
}

/// Reason for a point without a result.
#[derive(Debug, thiserror::Error)]
pub enum PointError {
    /// A machine, a design, a setting or a scale is invalid.
    #[error(transparent)]
    Config(Box<ConfigError>),
    /// The workload does not exist.
    #[error("no workload is called {name:?}{}; there are {}", suggestion(near), known.join(", "))]
    UnknownWorkload {
        /// Name given by the user.
        name: String,
        /// Similar names.
        near: Vec<String>,
        /// All known names.
        known: Vec<&'static str>,
    },
    /// The word does not describe a workload.
    #[error("workload {value}: {reason}")]
    Workloads {
        /// Word given by the user.
        value: String,
        /// Expected form.
        reason: &'static str,
    },
    /// Workload parameters are invalid, or recording failed.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// The trace cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// A file named by a parameter cannot be read.
    #[error("{path}: {error}")]
    File {
        /// Path to the file.
        path: String,
        /// Reason.
        error: io::Error,
    },
    /// The recording cannot be read.
    #[error("{label}: {error}")]
    Stream {
        /// Workload or trace.
        label: String,
        /// Error in the stream.
        error: StreamError,
    },
    /// The run gave no result.
    #[error("{label}: {error}")]
    Run {
        /// Workload, machine and design.
        label: String,
        /// Reason.
        error: Box<RunError>,
    },
    /// A simulator invariant is broken.
    #[error("{label}: the simulator failed: {message}; please report this")]
    Broken {
        /// Description of the running work.
        label: String,
        /// Message from the panic.
        message: String,
    },
}

impl From<ConfigError> for PointError {
    fn from(error: ConfigError) -> PointError {
        PointError::Config(Box::new(error))
    }
}

/// A results folder that cannot be read or written. A full disk also ends in this error.
#[derive(Debug, thiserror::Error)]
#[error("{}: cannot {action}: {error}; results that were finished before are kept", path.display())]
pub struct StoreError {
    /// Path to the file or folder.
    pub path: PathBuf,
    /// Attempted action.
    pub action: &'static str,
    /// Reason.
    pub error: io::Error,
}

/// Returns a "did you mean" hint for a message; empty if no name is similar.
pub(crate) fn suggestion(near: &[String]) -> String {
    match near {
        [] => String::new(),
        names => format!(" (did you mean {}?)", names.join(" or ")),
    }
}
