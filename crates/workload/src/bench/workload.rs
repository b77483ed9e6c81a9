//! Workloads, requests for an instance of a workload, and their errors.

use crate::graph::GraphError;
use crate::parameter::{AdjustedParameter, Parameter, ParameterError, ParameterValues};
use crate::record::{Host, RecordError, mebibytes};
use crate::scale::Scale;
use crate::simt::Memory;
use thiserror::Error;

/// A benchmark: description, and layout at a given size.
pub trait Workload: Sync {
    /// Name on the command line.
    fn name(&self) -> &'static str;
    /// Description for a list, in a single line.
    fn about(&self) -> &'static str;
    /// Source for the workload's shape.
    fn source(&self) -> &'static str;
    /// Parameters of the workload.
    fn parameters(&self) -> &'static [Parameter];
    /// True if work does not follow footprint, and a scaled run answers a different question.
    fn nonlinear(&self) -> bool {
        false
    }
    /// True if no address and no branch depends on data, and address-only recording gives identical streams.
    fn data_independent(&self) -> bool {
        false
    }
    /// True if the workload is written for several GPUs: grids are divided by the GPU count ([`Request::gpus`]), and
    /// streams are specific to this count.
    fn partitioned_by_gpus(&self) -> bool {
        false
    }
    /// Adds the arrays to `memory` and returns the program over these arrays. Every adjustment of a requested parameter
    /// is noted in the request ([`Request::notes`]).
    fn lay_out(&self, request: &mut Request, memory: &mut Memory) -> Result<Box<dyn Instance>, WorkloadError>;
}

/// Refuses more items than 32-bit signed indices, as used in CUDA sources, can count.
///
/// # Errors
/// Returns [`WorkloadError::Shape`].
pub fn check_indices(workload: &'static str, count: u64, items: &str) -> Result<(), WorkloadError> {
    if count <= i32::MAX as u64 {
        return Ok(());
    }
    Err(WorkloadError::Shape { workload, message: format!("{count} {items} exceed 2^31 - 1") })
}

/// Size, parameters and seed for an instance of a workload.
#[derive(Clone, Debug)]
pub struct Request {
    /// Scale of the inputs.
    pub scale: Scale,
    /// Checked parameters.
    pub values: ParameterValues,
    /// Seed of generated inputs.
    pub seed: u64,
    /// GPU count of the machine, at least 1: the value returned by `cudaGetDeviceCount`.
    gpus: u8,
    adjusted: Vec<AdjustedParameter>,
    notes: Vec<String>,
}

impl Request {
    /// A request for `workload`; `given` are the user's (key, value) pairs.
    pub fn new(
        workload: &dyn Workload,
        scale: Scale,
        given: &[(String, String)],
        seed: u64,
    ) -> Result<Request, WorkloadError> {
        let values = ParameterValues::check(workload.name(), workload.parameters(), given)?;
        Ok(Request { scale, values, seed, gpus: 1, adjusted: Vec::new(), notes: Vec::new() })
    }

    /// Returns the request for a machine with `gpus` GPUs; a new request is for a single GPU.
    ///
    /// # Panics
    /// If `gpus` is 0.
    #[must_use]
    pub fn with_gpus(self, gpus: u8) -> Request {
        assert!(gpus > 0, "a machine has a GPU");
        Request { gpus, ..self }
    }

    /// GPU count of the machine, used by multi-GPU programs for dividing work.
    pub fn gpus(&self) -> u8 {
        self.gpus
    }

    /// Parameters that the layout set to different values than requested.
    pub fn adjusted(&self) -> &[AdjustedParameter] {
        &self.adjusted
    }

    /// Notes about the layout for readers of the result: adjusted parameters with the reasons, and properties found in
    /// inputs.
    pub fn notes(&self) -> Vec<String> {
        self.adjusted.iter().map(AdjustedParameter::to_string).chain(self.notes.iter().cloned()).collect()
    }

    /// Adds a note.
    pub fn note(&mut self, note: String) {
        self.notes.push(note);
    }

    /// Adjusts a parameter from `wanted`, its requested value at the scale, to `fitted`, and returns `fitted`; `rule`
    /// describes the admissible values.
    pub fn fit(&mut self, parameter: &'static str, wanted: u64, fitted: u64, rule: &str) -> u64 {
        self.fit_parts(parameter, wanted, fitted, 1, rule)
    }

    /// Like [`Request::fit`], for a parameter whose unit is divided into `parts`; both values are given in parts.
    pub fn fit_parts(&mut self, parameter: &'static str, wanted: u64, fitted: u64, parts: u64, rule: &str) -> u64 {
        if fitted != wanted {
            let [scaled, used] = [wanted, fitted].map(|count| count as f64 / parts as f64);
            let (given, scale, rule) = (self.values.text(parameter).to_owned(), self.scale, rule.to_owned());
            self.adjusted.push(AdjustedParameter { parameter, given, scale, scaled, used, rule });
        }
        fitted
    }

    /// Like [`Request::fit`], rounding up to the next multiple.
    pub fn fit_multiple(&mut self, parameter: &'static str, wanted: u64, of: u64) -> u64 {
        self.fit(parameter, wanted, wanted.next_multiple_of(of), &format!("whole multiples of {of}"))
    }

    /// Like [`Request::fit`], raising the value to a minimum.
    pub fn fit_least(&mut self, parameter: &'static str, wanted: u64, least: u64) -> u64 {
        self.fit(parameter, wanted, wanted.max(least), &format!("at least {least}"))
    }

    /// Like [`Request::fit`], lowering the value to a maximum.
    pub fn fit_most(&mut self, parameter: &'static str, wanted: u64, most: u64) -> u64 {
        self.fit(parameter, wanted, wanted.min(most), &format!("at most {most}"))
    }
}

/// A workload laid out over the arrays of an address space.
pub trait Instance {
    /// Sets the inputs, like a host before its first launch. Sets the same elements with or without array contents, and
    /// is quick without contents: see [`Memory::fill`].
    fn fill(&self, memory: &Memory);
    /// The host program.
    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError>;
    /// Compares the result with a plain reference; `Err` describes the first difference.
    fn verify(&self, memory: &Memory) -> Result<(), String>;
}

/// Reason for which a workload could not be recorded.
#[derive(Debug, Error)]
pub enum WorkloadError {
    /// Unknown workload name.
    #[error("no workload is named `{name}`; there are {allowed}")]
    Unknown {
        /// The name as given.
        name: String,
        /// All known names.
        allowed: String,
    },
    /// A registered workload whose name is taken.
    #[error("a workload named `{name}` is there already: a registered one has a name of its own")]
    Registered {
        /// The name.
        name: &'static str,
    },
    /// A parameter with an unknown key or an invalid value.
    #[error(transparent)]
    Parameter(#[from] ParameterError),
    /// Parameters incompatible with each other or with the scale.
    #[error("{workload}: {message}")]
    Shape {
        /// Name of the workload.
        workload: &'static str,
        /// Description of the mismatch.
        message: String,
    },
    /// The arrays exceed the host's memory.
    #[error("{workload} needs {} MiB of memory for its arrays, and the host has {} MiB", mebibytes(*.needs), .has >> 20)]
    Memory {
        /// Name of the workload.
        workload: &'static str,
        /// Bytes needed for its arrays.
        needs: u64,
        /// Bytes available.
        has: u64,
    },
    /// A user's graph could not be read.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// The program broke a rule of the language, or the streams could not be stored.
    #[error("{workload}: {error}")]
    Record {
        /// Name of the workload.
        workload: &'static str,
        /// The recording error.
        error: RecordError,
    },
    /// The result is wrong.
    #[error("{workload} computed a wrong result: {message}")]
    Wrong {
        /// Name of the workload.
        workload: &'static str,
        /// Description of the first difference from the reference.
        message: String,
    },
}
