//! The command line of tombolo with a program, a machine and a design of this crate:
//! `cargo run --release -- compare --machine two-boards --scale 1/16 --designs hmg,careful-hmg --workload distant-sum`.

mod distant_sum;

use std::process::ExitCode;

fn main() -> ExitCode {
    tombolo::App::new()
        .program(&distant_sum::DISTANT_SUM)
        .machine("two-boards", include_str!("two-boards.toml"))
        .design("careful-hmg", include_str!("careful-hmg.toml"))
        .execute()
}
