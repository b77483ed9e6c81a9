//! Binary `tombolo`: runs the command line from the library with an equal name, and selects the memory allocator.

use std::process::ExitCode;

/// Allocator with huge pages, configured in `.cargo/config.toml`. Source: measured, the programs in `cargo bench -p
/// tombolo-system --bench throughput` at an eighth of their size. The irregular programs run 1.14 to 1.17 times faster
/// than with the system's allocator, in medians over pairs of runs.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    tombolo::execute()
}
