//! The subcommands, one file each: its arguments, and an `execute` that answers with an exit status. Adding one
//! is a file, its line in the list of modules, and its variant and line below. `probes` is a part of `validate`.

mod check;
mod compare;
mod completion;
mod explain;
mod list;
mod new;
mod probes;
mod report;
mod reproduce;
mod run;
mod scale;
mod share;
mod show;
mod sweep;
mod trace;
mod validate;

use crate::failure::Failure;
use std::process::ExitCode;

/// What is asked.
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Runs one workload or trace on one machine under one design
    #[command(name = "run")]
    Run(run::Arguments),
    /// Runs workloads under several designs and prints how each does against a baseline, and why
    #[command(name = "compare")]
    Compare(compare::Arguments),
    /// Runs a workload under several designs and tells what warps waited for, and what the designs differ in most
    #[command(name = "explain")]
    Explain(explain::Arguments),
    /// Runs every way to share memory between GPUs, ranks them, and says what to do with each array
    #[command(name = "share")]
    Share(share::Arguments),
    /// Runs a paper's evaluation and prints its claims, each with what the paper states and what came out
    #[command(name = "reproduce")]
    Reproduce(reproduce::Arguments),
    /// Runs an experiment of your own: a file, or settings to vary
    #[command(name = "sweep")]
    Sweep(sweep::Arguments),
    /// Finds the smallest scale of each workload at which designs compare as at the next larger one
    #[command(name = "scale")]
    Scale(scale::Arguments),
    /// Checks designs against the memory model, exhaustively, on small programs
    #[command(name = "check")]
    Check(check::Arguments),
    /// Reads, converts and records traces
    #[command(name = "trace")]
    Trace(trace::Arguments),
    /// Runs measured kernels on a machine and compares simulated with measured times
    #[command(name = "validate")]
    Validate(validate::Arguments),
    /// Makes one HTML page of the results in a folder
    #[command(name = "report")]
    Report(report::Arguments),
    /// Lists what there is to choose from, a line each
    #[command(name = "list")]
    List(list::Arguments),
    /// Shows a machine, a design, a workload or the counters in full: values, sources, ranges, units
    #[command(name = "show")]
    Show(show::Arguments),
    /// Writes a commented file to begin with: a machine, a design, or a workload
    #[command(name = "new")]
    New(new::Arguments),
    /// Prints what a shell needs to complete words of this command line
    #[command(name = "completion")]
    Completion(completion::Arguments),
}

impl Command {
    /// Does it.
    pub(crate) fn execute(&self) -> Result<ExitCode, Failure> {
        match self {
            Command::Run(arguments) => arguments.execute(),
            Command::Compare(arguments) => arguments.execute(),
            Command::Explain(arguments) => arguments.execute(),
            Command::Share(arguments) => arguments.execute(),
            Command::Reproduce(arguments) => arguments.execute(),
            Command::Sweep(arguments) => arguments.execute(),
            Command::Scale(arguments) => arguments.execute(),
            Command::Check(arguments) => arguments.execute(),
            Command::Trace(arguments) => arguments.execute(),
            Command::Validate(arguments) => arguments.execute(),
            Command::Report(arguments) => arguments.execute(),
            Command::List(arguments) => arguments.execute(),
            Command::Show(arguments) => arguments.execute(),
            Command::New(arguments) => arguments.execute(),
            Command::Completion(arguments) => arguments.execute(),
        }
    }
}
