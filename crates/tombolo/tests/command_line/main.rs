//! The command line from outside: what it prints, what it writes, and its exit status.

mod boundaries;
mod busy;
mod check;
mod compared;
mod explain;
mod files;
mod new;
mod refusals;
mod report;
mod results;
mod sampled;
mod scales;
mod schema;
mod screen;
mod share;
mod show;
mod study;
mod times;
mod traces;
mod validate;
mod version;

use serde_json::Value;
use std::process::{Command, Output, Stdio};

/// A machine small enough for a test.
const SMALL: [&str; 4] = ["--machine", "hmg-4x4", "--scale", "1/32"];
/// A workload small enough for a test, with lines that modules share.
const TINY: &str = "pathfinder,columns=65536,rows=60";

/// The program, not started.
fn tombolo(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tombolo"));
    command.args(arguments).stdin(Stdio::null());
    command
}

/// The program, not started, which an interrupt reaches even where whoever runs the tests ignores interrupts, or hangups
/// (`nohup`): the program takes over none of the signals where one of them is ignored.
#[cfg(unix)]
fn interruptible(arguments: &[&str]) -> Command {
    if !cfg!(target_os = "linux") {
        return tombolo(arguments);
    }
    let mut command = Command::new("env");
    command.args(["--default-signal=INT,HUP,TERM", env!("CARGO_BIN_EXE_tombolo")]).args(arguments).stdin(Stdio::null());
    command
}

/// What it does with `arguments`.
fn outcome(arguments: &[&str]) -> Output {
    tombolo(arguments).output().expect("the program starts")
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("what is printed is UTF-8")
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("what is printed is UTF-8")
}

/// The document it prints, when all goes well.
fn json(arguments: &[&str]) -> Value {
    let output = outcome(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
    serde_json::from_slice(&output.stdout).expect("one JSON document and nothing else")
}

/// `run` on the small machine.
fn small_run<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&["run"], &SMALL[..], more].concat()
}

/// `compare` on the small machine.
fn small_compare<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&["compare"], &SMALL[..], more].concat()
}
