//! The command line of tombolo with a program, a protocol, an observer, a machine and two designs of this crate:
//! `cargo run --release -- compare --machine two-boards --scale 1/16 --designs nhcc,gpu-directory --workload distant-sum`.

mod distant_sum;
mod gpu_directory;
mod page_sharing;

use std::process::ExitCode;

fn main() -> ExitCode {
    tombolo::App::new()
        .program(&distant_sum::DISTANT_SUM)
        .protocol::<gpu_directory::GpuDirectory>("gpu-directory")
        .observer::<page_sharing::PageSharing>("page-sharing")
        .machine("two-boards", include_str!("two-boards.toml"))
        .design("careful-hmg", include_str!("careful-hmg.toml"))
        .design("gpu-directory", include_str!("gpu-directory.toml"))
        .execute()
}
