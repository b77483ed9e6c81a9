//! Costs for sharing memory between GPUs: page migrations, and copies between GPUs.

use tombolo_machine::MachineConfig;
pub use tombolo_metrics::{CopiesRecord, PagingRecord};
use tombolo_model::front_end::{CommandWait, CopyStats, PagingStats};
use tombolo_types::Ps;

/// Converts the driver's counters.
pub(crate) fn paging(machine: &MachineConfig, stats: &PagingStats) -> PagingRecord {
    PagingRecord {
        faults: stats.faults,
        host_faults: stats.host_faults,
        batches: stats.batches,
        migrations: stats.migrations,
        migrated_bytes: stats.migrations * machine.page_bytes,
        prefetched_bytes: stats.prefetches * machine.page_bytes,
        shootdowns: stats.shootdowns,
        evictions: stats.evictions,
        pins: stats.pins,
        faults_s: stats.busy.seconds(),
    }
}

/// Sums the copy engines' counters; the exposed time is the sum over all waits around commands.
pub(crate) fn copies<'a>(engines: impl Iterator<Item = &'a CopyStats>, waits: &[CommandWait]) -> CopiesRecord {
    let exposed = waits.iter().fold(Ps::ZERO, |sum, CommandWait { time, .. }| sum + (time.end - time.start));
    let zero = CopiesRecord { exposed_s: exposed.seconds(), ..CopiesRecord::default() };
    engines.fold(zero, |sum, engine| CopiesRecord {
        calls: sum.calls + engine.calls,
        bytes: sum.bytes + engine.bytes,
        ..sum
    })
}
