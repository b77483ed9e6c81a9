//! The program `tombolo`: the command line of the library of the same name, and the allocator that it runs with.

use std::process::ExitCode;

/// Memory in huge pages, as `.cargo/config.toml` has it built. Source: measured, the programs of `cargo bench -p
/// tombolo-system --bench throughput` at an eighth of their size: the irregular ones are 1.14 to 1.17 times as fast as with
/// the system's allocator, medians of pairs.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    tombolo::execute()
}
