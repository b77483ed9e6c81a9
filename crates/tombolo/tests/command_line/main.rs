//! Tests the command line from outside: printed output, written files, and exit status.

mod boundaries;
mod busy;
mod check;
mod compared;
mod explain;
mod files;
mod new;
mod own;
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
/// A workload small enough for a test, with lines shared between modules.
const TINY: &str = "pathfinder,columns=65536,rows=60";

/// Returns the program as a command, not yet started.
fn tombolo(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tombolo"));
    command.args(arguments).stdin(Stdio::null());
    command
}

/// Returns the program as a command that reacts to interrupts, even if the test environment ignores interrupts or
/// hangups (`nohup`). The program installs no signal handler if any of the signals is ignored.
#[cfg(unix)]
fn interruptible(arguments: &[&str]) -> Command {
    if !cfg!(target_os = "linux") {
        return tombolo(arguments);
    }
    let mut command = Command::new("env");
    command.args(["--default-signal=INT,HUP,TERM", env!("CARGO_BIN_EXE_tombolo")]).args(arguments).stdin(Stdio::null());
    command
}

/// Runs the program with `arguments`.
fn outcome(arguments: &[&str]) -> Output {
    tombolo(arguments).output().expect("the program starts")
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("what is printed is UTF-8")
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("what is printed is UTF-8")
}

/// Runs the program, checks its success, and returns the printed document.
fn json(arguments: &[&str]) -> Value {
    let output = outcome(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
    serde_json::from_slice(&output.stdout).expect("one JSON document and nothing else")
}

/// Arguments for `run` on the small machine.
fn small_run<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&["run"], &SMALL[..], more].concat()
}

/// Arguments for `compare` on the small machine.
fn small_compare<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&["compare"], &SMALL[..], more].concat()
}
