//! The command line of tombolo with a program, two protocols, an observer, a machine and three designs of this crate:
//! `cargo run --release -- compare --machine two-boards --scale 1/16 --designs nhcc,gpu-directory --workload distant-sum`, or
//! `cargo run --release -- compare --machine umh-4-nvlink --scale 1/16 --designs umh,msi --workload reduction`.

mod distant_sum;
mod gpu_directory;
mod msi;
mod page_sharing;

use std::process::ExitCode;
use tombolo::protocol::ClientHome;

fn main() -> ExitCode {
    tombolo::App::new()
        .program(&distant_sum::DISTANT_SUM)
        .protocol::<gpu_directory::GpuDirectory>("gpu-directory")
        .protocol::<ClientHome<msi::Msi>>("msi")
        .observer::<page_sharing::PageSharing>("page-sharing")
        .machine("two-boards", include_str!("two-boards.toml"))
        .design("careful-hmg", include_str!("careful-hmg.toml"))
        .design("gpu-directory", include_str!("gpu-directory.toml"))
        .design("msi", include_str!("msi.toml"))
        .execute()
}
