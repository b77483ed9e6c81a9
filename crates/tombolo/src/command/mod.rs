//! Subcommands, with a file each: arguments, and an `execute` with an exit status. A new subcommand needs a file, a
//! line in the list of modules, and a variant with a line in `execute` below. The module `probes` is a part of
//! `validate`.

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

use crate::failure::CommandFailure;
use std::process::ExitCode;

/// Subcommand to run.
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Runs a workload or trace on a machine under a design
    #[command(name = "run")]
    Run(run::Arguments),
    /// Runs workloads under several designs, prints their results against a baseline, and explains them
    #[command(name = "compare")]
    Compare(compare::Arguments),
    /// Runs a workload under several designs, and reports warp stalls and the largest differences
    #[command(name = "explain")]
    Explain(explain::Arguments),
    /// Runs every memory-sharing policy between GPUs, ranks them, and gives advice for each array
    #[command(name = "share")]
    Share(share::Arguments),
    /// Runs a paper's evaluation and prints its claims, each with the paper's and the measured value
    #[command(name = "reproduce")]
    Reproduce(reproduce::Arguments),
    /// Runs your own experiment: a file, or settings to vary
    #[command(name = "sweep")]
    Sweep(sweep::Arguments),
    /// Finds each workload's smallest scale with the design comparison of the next larger scale
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
    /// Makes an HTML page from the results in a folder
    #[command(name = "report")]
    Report(report::Arguments),
    /// Lists the available choices, one per line
    #[command(name = "list")]
    List(list::Arguments),
    /// Shows a machine, a design, a workload or the counters in full: values, sources, ranges, units
    #[command(name = "show")]
    Show(show::Arguments),
    /// Writes a commented starting file: a machine, a design, or a workload
    #[command(name = "new")]
    New(new::Arguments),
    /// Prints a script for shell completion of this command line
    #[command(name = "completion")]
    Completion(completion::Arguments),
}

impl Command {
    /// Runs the subcommand and returns the exit status.
    pub(crate) fn execute(&self) -> Result<ExitCode, CommandFailure> {
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
