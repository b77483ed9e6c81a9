//! Why a command gave no answer.

use std::io;
use std::path::PathBuf;
use tombolo_machine::ConfigError;
use tombolo_system::RunError;
use tombolo_types::stream::StreamError;
use tombolo_validation::{EstimateError, MeasuredError};
use tombolo_workload::bench::WorkloadError;
use tombolo_workload::trace::TraceError;

/// What ended a command early. Each message names what was given, and what is allowed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// A machine, a design, a setting or a scale.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A workload that does not exist.
    #[error("no workload is called {name:?}{}; there are {}", did_you_mean(near), known.join(", "))]
    UnknownWorkload {
        /// As given.
        name: String,
        /// Names that look like it.
        near: Vec<String>,
        /// All names.
        known: Vec<&'static str>,
    },
    /// A workload's parameters, or its recording.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// A trace that cannot be read or written.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// A recording that cannot be read.
    #[error("{label}: {error}")]
    Stream {
        /// Workload or trace.
        label: String,
        /// What is wrong.
        error: StreamError,
    },
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
    /// A run that came to no result.
    #[error("{label}: {error}")]
    Run {
        /// Workload, machine and design.
        label: String,
        /// Why.
        error: RunError,
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
    /// A broken invariant of the simulator.
    #[error("{label}: the simulator failed: {message}; please report this")]
    Broken {
        /// What was under way.
        label: String,
        /// What the panic said.
        message: String,
    },
    /// A file or folder that does not hold what it should.
    #[error("{}: {reason}", path.display())]
    Unreadable {
        /// The file or folder.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A file that cannot be written.
    #[error("{}: cannot {action}: {error}; nothing was written", path.display())]
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

impl Failure {
    /// Whether whoever read standard output has seen enough.
    pub(crate) fn is_closed_pipe(&self) -> bool {
        matches!(self, Failure::Stdout(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }
}

/// A hint for a message; empty where nothing looks alike.
pub(crate) fn did_you_mean(near: &[String]) -> String {
    match near {
        [] => String::new(),
        names => format!(" (did you mean {}?)", names.join(" or ")),
    }
}
