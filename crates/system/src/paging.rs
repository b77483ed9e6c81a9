//! What sharing memory between GPUs took: pages that moved, and copies from GPU to GPU.

use serde::{Deserialize, Serialize};
use tombolo_machine::MachineConfig;
use tombolo_model::command_processor::Wait;
use tombolo_model::copy_engine::CopyStats;
use tombolo_model::driver::PagingStats;
use tombolo_types::Ps;

/// Pages that moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PagingRecord {
    /// Accesses that a GPU, or a host that takes part, was not to make, once a page and each at a time.
    pub faults: u64,
    /// Those of them that the host told of.
    #[serde(default)]
    pub host_faults: u64,
    /// Batches of faults that the driver has served.
    pub batches: u64,
    /// Pages that faults have moved or copied.
    pub migrations: u64,
    /// Bytes of these.
    pub migrated_bytes: u64,
    /// Bytes of pages that were moved before a kernel.
    pub prefetched_bytes: u64,
    /// Times that a page was unmapped where it was in use.
    pub shootdowns: u64,
    /// Pages that went to the host to make room.
    pub evictions: u64,
    /// Times that a page that thrashed was pinned.
    pub pins: u64,
    /// While faults were being served, with what they moved.
    pub faults_s: f64,
}

impl PagingRecord {
    /// What the driver has counted.
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

/// Copies from GPU to GPU behind kernels, or between the host and GPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CopiesRecord {
    /// Calls that copy a range.
    pub calls: u64,
    /// Bytes copied, without headers.
    pub bytes: u64,
    /// While the program waited for them, or for pages moved before a kernel.
    pub exposed_s: f64,
}

impl CopiesRecord {
    /// What the engines have counted.
    pub(crate) fn new<'a>(engines: impl Iterator<Item = &'a CopyStats>, waits: &[Wait]) -> CopiesRecord {
        let exposed = waits.iter().fold(Ps::ZERO, |sum, Wait { time, .. }| sum + (time.end - time.start));
        let zero = CopiesRecord { exposed_s: exposed.seconds(), ..CopiesRecord::default() };
        engines.fold(zero, |sum, engine| CopiesRecord {
            calls: sum.calls + engine.calls,
            bytes: sum.bytes + engine.bytes,
            ..sum
        })
    }
}
