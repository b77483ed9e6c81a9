//! Results of way partitioning in caches.

use crate::counters::ModuleCounters;
use crate::record::{LocalWaysRecord, WaysRecord};
use tombolo_model::l2::LocalWays;

/// Way shifts, summed over all modules.
pub(crate) fn way_moves(modules: &[&dyn ModuleCounters]) -> WaysRecord {
    let mut moves = WaysRecord::default();
    for module in modules {
        let (to_remote, to_local) = module.ways().moves();
        moves.to_remote += to_remote;
        moves.to_local += to_local;
    }
    moves
}

/// History of local ways for each module, in module order.
pub(crate) fn local_ways(modules: &[&dyn ModuleCounters]) -> Vec<LocalWaysRecord> {
    let of = |module: &&dyn ModuleCounters| {
        let record = |ways: &LocalWays| LocalWaysRecord {
            module: module.id().to_string(),
            since_s: ways.since.seconds(),
            l1: ways.l1,
            l2: ways.l2,
        };
        module.ways().history().iter().map(record).collect::<Vec<_>>()
    };
    modules.iter().flat_map(of).collect()
}
