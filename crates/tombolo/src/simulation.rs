//! Runs from Rust: a machine, a design and a workload by their names, and a record of the run.
//!
//! ```
//! use tombolo::simulation::{Setup, Simulation};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let spec = Setup::new("hmg-4x4", "hmg").set("l2.ways=8").scale("1/32").workload("triad,elements=65536")?;
//! let observed = Simulation::new(&spec).check().latency().run()?;
//! let record = observed.record;
//! assert_eq!(record.check.map(|check| check.violations), Some(0));
//! println!("{} s, {} bytes between GPUs", record.time.region_s, record.inter_gpu_bytes);
//! # Ok(())
//! # }
//! ```
//!
//! What [`App`](crate::App) registers is known here as well.

use crate::failure::CommandFailure;
use crate::hardware::MachineArguments;
use tombolo_experiment::workload::{Target, only};
use tombolo_machine::MachineScale;

pub use tombolo_system::{Observed, RunError, RunRecord, RunSpec, Simulation};

/// A machine and a design to run a workload on, as the command line names them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a setup prepares a run by `workload`"]
pub struct Setup {
    machine: String,
    design: String,
    settings: Vec<String>,
    scale: String,
    threads: usize,
}

/// A reason for which a run could not be prepared: the message of the command line.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct SetupError(#[from] CommandFailure);

impl Setup {
    /// Creates a setup from a machine and a design. Each is a preset, a registered name, or the path of a TOML file.
    pub fn new(machine: &str, design: &str) -> Setup {
        let (machine, design) = (machine.to_owned(), design.to_owned());
        Setup { machine, design, settings: Vec::new(), scale: "1".to_owned(), threads: 1 }
    }

    /// Replaces a value of the machine or the design, like `l2.bytes=6MB`.
    pub fn set(mut self, setting: &str) -> Setup {
        self.settings.push(setting.to_owned());
        self
    }

    /// Runs a fraction of the machine and of the workload's input, like `1/16`.
    pub fn scale(mut self, scale: &str) -> Setup {
        scale.clone_into(&mut self.scale);
        self
    }

    /// Number of threads that record and simulate, at least 1. The record is the same for each number.
    pub fn threads(mut self, threads: usize) -> Setup {
        self.threads = threads.max(1);
        self
    }

    /// Records a workload, with its parameters, or opens a trace (`trace:PATH`).
    ///
    /// # Errors
    /// Fails if a name, a setting, the scale or a parameter is not accepted, or if the trace cannot be read.
    pub fn workload(self, workload: &str) -> Result<RunSpec, SetupError> {
        Ok(self.prepared(workload)?)
    }

    fn prepared(self, workload: &str) -> Result<RunSpec, CommandFailure> {
        let scale: MachineScale = self.scale.parse()?;
        let arguments = MachineArguments::new(self.machine, self.settings, scale);
        let mut hardware = arguments.hardware(&[self.design])?;
        let machine = hardware.machine;
        let source = only(workload)?.record(Target::new(&machine, machine.scale), self.threads)?;
        let design = hardware.designs.remove(0);
        Ok(RunSpec { machine, design, program: source.program, pages: None, threads: self.threads })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_name_has_the_message_of_the_command_line() {
        let refused = |setup: Setup, workload: &str| setup.workload(workload).err().map(|error| error.to_string());
        let hmg = || Setup::new("hmg-4x4", "hmg").scale("1/32");
        let message = refused(Setup::new("hmg-4x4", "hgm"), "triad").expect("no such design");
        assert!(message.starts_with("no design is called \"hgm\""), "{message}");
        let message = refused(hmg().scale("2"), "triad").expect("more than the machine");
        assert!(message.contains("scale"), "{message}");
        let message = refused(hmg().set("l2.wais=8"), "triad").expect("no such key");
        assert!(message.contains("l2.ways"), "{message}");
        let message = refused(hmg(), "triad,elemens=1").expect("no such parameter");
        assert!(message.contains("elements"), "{message}");
        assert!(refused(hmg().threads(2), "triad,elements=65536").is_none());
    }
}
