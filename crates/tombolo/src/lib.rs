//! Command line as a library: parses the arguments, runs the command, and prints the result.
//!
//! Each subcommand has a file in `command`. They share:
//! - `hardware`: machine, designs, settings, scale. `study`: code shared between `reproduce` and `sweep`.
//! - `request`: experiments without a file.
//! - `output`: standard output and files. `table`: aligned text. `progress`, `threads`.
//! - `comparison`, `summary` and `verdict`: printed results. `time_argument`: the run time to compare.
//! - `explanation`: reasons for differences between designs.
//! - `sharing`: comparison of memory-sharing policies between GPUs.
//! - `template` and `schema`: files for a user's own machines, designs and workloads. `version` and `provenance`:
//!   program and host behind a result.
//!
//! Running many points in parallel is the task of the crate `experiment`, which `compare`, `sweep` and `reproduce` use.
//!
//! Exit status: 0 done; 1 the answer is "no"; 2 the input was wrong or a run gave no result, with a message; 130 a
//! study was interrupted. With status 2 no file is written except three:
//! - a study's report, with each failure by name;
//! - the timeline of a run whose record cannot be written;
//! - a check's document, with each omitted test by name.
//!
//! A crate of a user adds programs, protocols, machines, designs and observers with [`App`]; [`program`] is the language of kernels,
//! [`protocol`] that of coherence protocols, [`observer`] has what observes a run, and [`simulation`] runs a machine from
//! Rust. [`session`] runs a command inside another program and returns its document.
//!
//! Read `command` next.

use clap::{CommandFactory, Parser};
use std::process::ExitCode;

mod allowed_outcomes;
mod app;
mod command;
mod comparison;
mod explanation;
mod failure;
mod hardware;
pub mod observer;
mod output;
pub mod program;
mod progress;
pub mod protocol;
mod provenance;
mod request;
mod sample_argument;
mod schema;
pub mod session;
mod sharing;
pub mod simulation;
mod study;
mod summary;
mod table;
mod template;
mod threads;
mod time_argument;
mod verdict;
mod version;

pub use app::App;

/// Exit status for wrong input, or for a run without a result.
const WRONG_INPUT: u8 = 2;

/// A fast, verified simulator of the memory systems of multi-GPU and multi-chiplet machines.
#[derive(Parser)]
#[command(name = "tombolo", version = &**version::SHORT, long_version = &**version::LONG, arg_required_else_help = true)]
struct CommandLine {
    #[command(subcommand)]
    command: command::Command,
}

/// Returns every subcommand with its options, for `--help` and shell completion.
pub fn command_line() -> clap::Command {
    CommandLine::command()
}

/// Parses the arguments of this process, runs the command, and returns its exit status.
pub fn execute() -> ExitCode {
    let line = CommandLine::parse();
    match line.command.execute() {
        Ok(status) => status,
        Err(failure) => {
            output::complain(&format!("error: {failure}"));
            ExitCode::from(WRONG_INPUT)
        }
    }
}
