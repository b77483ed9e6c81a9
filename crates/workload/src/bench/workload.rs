//! What a workload is, what is asked of one, and what may be wrong with that.

use crate::graph::GraphError;
use crate::parameter::{Adjusted, Parameter, ParameterError, Values};
use crate::record::{Host, RecordError, mebibytes};
use crate::scale::Scale;
use crate::simt::Memory;
use thiserror::Error;

/// A benchmark: what it is, and how it is laid out at a size.
pub trait Workload: Sync {
    /// Name on the command line.
    fn name(&self) -> &'static str;
    /// One line for a list.
    fn about(&self) -> &'static str;
    /// Where its shape comes from.
    fn source(&self) -> &'static str;
    /// Its parameters.
    fn parameters(&self) -> &'static [Parameter];
    /// Whether work does not follow footprint, so that a scaled run answers a different question.
    fn nonlinear(&self) -> bool {
        false
    }
    /// Whether no address and no branch depends on data, so that addresses alone give the same streams.
    fn address_only(&self) -> bool {
        false
    }
    /// Whether it is written for several GPUs: it cuts its grids by their number ([`Request::gpus`]), so that streams are
    /// those of a number of GPUs.
    fn cut_by_gpus(&self) -> bool {
        false
    }
    /// Adds the arrays to `memory` and returns the program over them; what was asked and is not taken as asked is left
    /// in the request ([`Request::notes`]).
    fn lay_out(&self, request: &mut Request, memory: &mut Memory) -> Result<Box<dyn Instance>, WorkloadError>;
}

/// Refuses more items than 32-bit signed indices, which CUDA sources use, can count.
pub(crate) fn check_indices(workload: &'static str, count: u64, items: &str) -> Result<(), WorkloadError> {
    if count <= i32::MAX as u64 {
        return Ok(());
    }
    Err(WorkloadError::Shape { workload, message: format!("{count} {items} exceed 2^31 - 1") })
}

/// Size, parameters and seed of one instance of a workload.
#[derive(Clone, Debug)]
pub struct Request {
    /// Scale of the inputs.
    pub scale: Scale,
    /// Checked parameters.
    pub values: Values,
    /// Seed of generated inputs.
    pub seed: u64,
    /// GPUs of the machine, at least 1: what `cudaGetDeviceCount` returns.
    gpus: u8,
    adjusted: Vec<Adjusted>,
    notes: Vec<String>,
}

impl Request {
    /// A request for `workload`; `given` are (key, value) pairs of the user.
    pub fn new(
        workload: &dyn Workload,
        scale: Scale,
        given: &[(String, String)],
        seed: u64,
    ) -> Result<Request, WorkloadError> {
        let values = Values::check(workload.name(), workload.parameters(), given)?;
        Ok(Request { scale, values, seed, gpus: 1, adjusted: Vec::new(), notes: Vec::new() })
    }

    /// The same on a machine of so many GPUs; a new request is for one.
    ///
    /// # Panics
    /// On none.
    #[must_use]
    pub fn with_gpus(self, gpus: u8) -> Request {
        assert!(gpus > 0, "a machine has a GPU");
        Request { gpus, ..self }
    }

    /// GPUs of the machine, by which programs for several cut their work.
    pub fn gpus(&self) -> u8 {
        self.gpus
    }

    /// Parameters that the layout took at other values than asked for.
    pub fn adjusted(&self) -> &[Adjusted] {
        &self.adjusted
    }

    /// What a reader of the result should know of the layout: what was adjusted, and why, and what inputs turned out to
    /// be.
    pub fn notes(&self) -> Vec<String> {
        self.adjusted.iter().map(Adjusted::to_string).chain(self.notes.iter().cloned()).collect()
    }

    /// Leaves a note.
    pub(crate) fn note(&mut self, note: String) {
        self.notes.push(note);
    }

    /// Takes a parameter, `wanted` at the scale, at the value `fitted`, which it returns; `rule` says which values
    /// there are.
    pub(crate) fn fit(&mut self, parameter: &'static str, wanted: u64, fitted: u64, rule: &str) -> u64 {
        self.fit_parts(parameter, wanted, fitted, 1, rule)
    }

    /// [`Request::fit`] for a parameter whose unit has so many `parts`, in which both values are.
    pub(crate) fn fit_parts(
        &mut self,
        parameter: &'static str,
        wanted: u64,
        fitted: u64,
        parts: u64,
        rule: &str,
    ) -> u64 {
        if fitted != wanted {
            let [wanted, taken] = [wanted, fitted].map(|count| count as f64 / parts as f64);
            let (given, scale, rule) = (self.values.text(parameter).to_owned(), self.scale, rule.to_owned());
            self.adjusted.push(Adjusted { parameter, given, scale, wanted, taken, rule });
        }
        fitted
    }

    /// [`Request::fit`] to the next multiple.
    pub(crate) fn fit_multiple(&mut self, parameter: &'static str, wanted: u64, of: u64) -> u64 {
        self.fit(parameter, wanted, wanted.next_multiple_of(of), &format!("whole multiples of {of}"))
    }

    /// [`Request::fit`] to at least as many.
    pub(crate) fn fit_least(&mut self, parameter: &'static str, wanted: u64, least: u64) -> u64 {
        self.fit(parameter, wanted, wanted.max(least), &format!("at least {least}"))
    }

    /// [`Request::fit`] to at most as many.
    pub(crate) fn fit_most(&mut self, parameter: &'static str, wanted: u64, most: u64) -> u64 {
        self.fit(parameter, wanted, wanted.min(most), &format!("at most {most}"))
    }
}

/// A workload over the arrays of one address space.
pub trait Instance {
    /// Sets the inputs, as the host does before it launches anything. Sets the same elements whether arrays have contents or
    /// not, and is quick where they have none: see [`Memory::fill`].
    fn fill(&self, memory: &Memory);
    /// The host program.
    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError>;
    /// Compares the result with a plain reference; `Err` says where they differ.
    fn verify(&self, memory: &Memory) -> Result<(), String>;
}

/// A workload could not be recorded.
#[derive(Debug, Error)]
pub enum WorkloadError {
    /// No such workload.
    #[error("no workload is named `{name}`; there are {allowed}")]
    Unknown {
        /// The name given.
        name: String,
        /// The names there are.
        allowed: String,
    },
    /// A parameter that does not fit.
    #[error(transparent)]
    Parameter(#[from] ParameterError),
    /// Parameters that do not fit each other or the scale.
    #[error("{workload}: {message}")]
    Shape {
        /// The workload.
        workload: &'static str,
        /// What does not fit.
        message: String,
    },
    /// The arrays do not fit the host.
    #[error("{workload} needs {} MiB of memory for its arrays, and the host has {} MiB", mebibytes(*.needs), .has >> 20)]
    Memory {
        /// The workload.
        workload: &'static str,
        /// Bytes of its arrays.
        needs: u64,
        /// Bytes that there are.
        has: u64,
    },
    /// A user's graph could not be read.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// The program broke a rule of the language, or its streams could not be kept.
    #[error("{workload}: {error}")]
    Record {
        /// The workload.
        workload: &'static str,
        /// What happened.
        error: RecordError,
    },
    /// The result is wrong.
    #[error("{workload} computed a wrong result: {message}")]
    Wrong {
        /// The workload.
        workload: &'static str,
        /// Where it differs from the reference.
        message: String,
    },
}
