//! Costs for sharing memory between GPUs: page migrations, and copies between GPUs.

use serde::{Deserialize, Serialize};
use tombolo_machine::MachineConfig;
use tombolo_model::command_processor::CommandWait;
use tombolo_model::copy_engine::CopyStats;
use tombolo_model::driver::PagingStats;
use tombolo_types::Ps;

/// Page migrations and faults.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PagingRecord {
    /// Accesses that faulted for lack of permission, by a GPU or a coherent host, counted once per page and requester
    /// at a time.
    pub faults: u64,
    /// Faults among them raised by the host.
    #[serde(default)]
    pub host_faults: u64,
    /// Fault batches served by the driver.
    pub batches: u64,
    /// Pages migrated or duplicated by faults.
    pub migrations: u64,
    /// Bytes migrated by faults.
    pub migrated_bytes: u64,
    /// Bytes in pages prefetched before a kernel.
    pub prefetched_bytes: u64,
    /// Times that a page in use was unmapped (shootdowns).
    pub shootdowns: u64,
    /// Pages evicted to the host to make room.
    pub evictions: u64,
    /// Times that a thrashing page was pinned.
    pub pins: u64,
    /// Time while faults were being served, including migrations.
    pub faults_s: f64,
}

impl PagingRecord {
    /// Converts the driver's counters.
    pub(crate) fn new(machine: &MachineConfig, stats: &PagingStats) -> PagingRecord {
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
}

/// Copies between GPUs after kernels, or between the host and GPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CopiesRecord {
    /// Calls that copy a range.
    pub calls: u64,
    /// Bytes copied, without headers.
    pub bytes: u64,
    /// Time while the program waited for copies, or for pages moved before a kernel.
    pub exposed_s: f64,
}

impl CopiesRecord {
    /// Sums the copy engines' counters; the exposed time is the sum over all waits around commands.
    pub(crate) fn new<'a>(engines: impl Iterator<Item = &'a CopyStats>, waits: &[CommandWait]) -> CopiesRecord {
        let exposed = waits.iter().fold(Ps::ZERO, |sum, CommandWait { time, .. }| sum + (time.end - time.start));
        let zero = CopiesRecord { exposed_s: exposed.seconds(), ..CopiesRecord::default() };
        engines.fold(zero, |sum, engine| CopiesRecord {
            calls: sum.calls + engine.calls,
            bytes: sum.bytes + engine.bytes,
            ..sum
        })
    }
}
