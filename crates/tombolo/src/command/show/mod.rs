//! `show`: prints details about a machine, a design, a workload, a counter or a reading: a file for each.

mod counters;
mod launches;
mod readings;
mod schema;
mod values;
mod workload;

use crate::failure::CommandFailure;
use std::process::ExitCode;
use tombolo_design::DesignConfig;
use tombolo_machine::MachineConfig;

/// Arguments for `show`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: Subject,
}

#[derive(clap::Subcommand)]
enum Subject {
    /// A machine's values: --sources adds their origins, --diff shows differences from another machine
    #[command(name = "machine")]
    Machine(values::Arguments),
    /// A design's values, with equal options
    #[command(name = "design")]
    Design(values::Arguments),
    /// A workload: parameters with ranges, and array sizes in bytes
    #[command(name = "workload")]
    Workload(workload::Arguments),
    /// The counters in a run's record: name, unit and meaning
    #[command(name = "counters")]
    Counters(counters::Arguments),
    /// A paper's readings: the settings for each, and the supporting sentence or artifact
    Readings(readings::Arguments),
    /// The JSON schema of a machine's or a design's file, for editors: save it to a file, and put its path after
    /// `#:schema` in the first line of a .toml file
    #[command(name = "schema")]
    Schema(schema::Arguments),
}

impl Arguments {
    /// Prints the requested details to standard output.
    pub(crate) fn execute(&self) -> Result<ExitCode, CommandFailure> {
        match &self.what {
            Subject::Machine(arguments) => arguments.execute::<MachineConfig>()?,
            Subject::Design(arguments) => arguments.execute::<DesignConfig>()?,
            Subject::Workload(arguments) => arguments.execute()?,
            Subject::Counters(arguments) => arguments.execute()?,
            Subject::Readings(arguments) => arguments.execute()?,
            Subject::Schema(arguments) => arguments.execute()?,
        }
        Ok(ExitCode::SUCCESS)
    }
}
