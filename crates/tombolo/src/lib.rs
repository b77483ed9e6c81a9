//! The command line as a library: reads what is asked, runs it, prints the answer.
//!
//! One file a subcommand, in `command`. They share:
//! - `hardware`: machine, designs, settings, scale. `study`: what `reproduce` and `sweep` have in common.
//! - `asked`: experiments that have no file.
//! - `output`: standard output and files. `table`: aligned text. `progress`, `threads`.
//! - `comparison`, `summary` and `verdict`: what is printed of results. `timed`: which time is compared.
//! - `explanation`: why designs differ.
//! - `sharing`: ways to share memory between GPUs, side by side.
//! - `template` and `schema`: files of a user's own. `version` and `provenance`: what made an answer.
//!
//! Many runs side by side are the crate `experiment`'s.
//!
//! Exit status: 0 done; 1 the question was answered "no"; 2 the input was wrong or a run gave no result, with
//! a message; 130 a study was interrupted. With status 2 no file is written but three:
//! - the report of a study, which names what failed;
//! - the timeline of a run whose record cannot be written;
//! - the document of a check, which names each test that was not run.
//!
//! Read `command` next.

use clap::{CommandFactory, Parser};
use std::process::ExitCode;

mod allowed;
mod asked;
mod command;
mod comparison;
mod explanation;
mod failure;
mod hardware;
mod output;
mod progress;
mod provenance;
mod sampled;
mod schema;
mod sharing;
mod study;
mod summary;
mod table;
mod template;
mod threads;
mod timed;
mod verdict;
mod version;

/// Status of a run whose input was wrong, or that gave no result.
const WRONG_INPUT: u8 = 2;

/// A fast, verified simulator of the memory systems of multi-GPU and multi-chiplet machines.
#[derive(Parser)]
#[command(name = "tombolo", version = &**version::SHORT, long_version = &**version::LONG, arg_required_else_help = true)]
struct CommandLine {
    #[command(subcommand)]
    command: command::Command,
}

/// Every subcommand with its options, as `--help` and the completion of shells tell them.
pub fn command_line() -> clap::Command {
    CommandLine::command()
}

/// Reads the arguments of this process, does what they ask, and tells how it ended.
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
