//! What can be wrong with an experiment file, and why a point gave no result.

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
    /// A file that cannot be read.
    #[error("{}: {reason}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// A key or a value that an experiment does not have.
    #[error("{file}:{line}: {message}")]
    Syntax {
        /// The file.
        file: String,
        /// Its line, from 1.
        line: usize,
        /// The key or value, and what is allowed.
        message: String,
    },
    /// A value that its key could take, but not here.
    #[error("{file}:{line}: {key} = {value:?}: {reason}")]
    Value {
        /// The file.
        file: String,
        /// Its line, from 1.
        line: usize,
        /// The key.
        key: &'static str,
        /// As written.
        value: String,
        /// Why, and what is allowed.
        reason: String,
    },
    /// Parts of a file that do not go together.
    #[error("{file}: {key}: {reason}")]
    Shape {
        /// The file.
        file: String,
        /// The key.
        key: &'static str,
        /// Why, and what is allowed.
        reason: String,
    },
    /// An experiment, a suite or a paper that does not ship.
    #[error("no {kind} is called {name:?}{}; there are {}", suggestion(near), known.join(", "))]
    UnknownName {
        /// `figure`, `suite` or `paper`.
        kind: &'static str,
        /// As given.
        name: String,
        /// Names that look like it.
        near: Vec<String>,
        /// All names.
        known: Vec<String>,
    },
}

/// Why a point gave no result.
#[derive(Debug, thiserror::Error)]
pub enum PointError {
    /// A machine, a design, a setting or a scale.
    #[error(transparent)]
    Config(Box<ConfigError>),
    /// A workload that does not exist.
    #[error("no workload is called {name:?}{}; there are {}", suggestion(near), known.join(", "))]
    UnknownWorkload {
        /// As given.
        name: String,
        /// Names that look like it.
        near: Vec<String>,
        /// All names.
        known: Vec<&'static str>,
    },
    /// A word that is no workload.
    #[error("workload {value}: {reason}")]
    Workloads {
        /// As given.
        value: String,
        /// What is expected.
        reason: &'static str,
    },
    /// A workload's parameters, or its recording.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// A trace that cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// A file that a parameter names and that cannot be read.
    #[error("{path}: {error}")]
    File {
        /// The file.
        path: String,
        /// Why not.
        error: io::Error,
    },
    /// A recording that cannot be read.
    #[error("{label}: {error}")]
    Stream {
        /// Workload or trace.
        label: String,
        /// What is wrong.
        error: StreamError,
    },
    /// A run that came to no result.
    #[error("{label}: {error}")]
    Run {
        /// Workload, machine and design.
        label: String,
        /// Why.
        error: Box<RunError>,
    },
    /// A broken invariant of the simulator.
    #[error("{label}: the simulator failed: {message}; please report this")]
    Broken {
        /// What was under way.
        label: String,
        /// What the panic said.
        message: String,
    },
}

impl From<ConfigError> for PointError {
    fn from(error: ConfigError) -> PointError {
        PointError::Config(Box::new(error))
    }
}

/// A folder of results that cannot be read or written. A full disk ends here.
#[derive(Debug, thiserror::Error)]
#[error("{}: cannot {action}: {error}; results that were finished before are kept", path.display())]
pub struct StoreError {
    /// The file or folder.
    pub path: PathBuf,
    /// What was tried.
    pub action: &'static str,
    /// Why not.
    pub error: io::Error,
}

/// A hint for a message; empty where nothing looks alike.
pub(crate) fn suggestion(near: &[String]) -> String {
    match near {
        [] => String::new(),
        names => format!(" (did you mean {}?)", names.join(" or ")),
    }
}
