//! How ways of caches are shared: what a design asks of the model, and what came of it.

use crate::record::{LocalWaysRecord, WaysRecord};
use tombolo_machine::design::L2Capacity;
use tombolo_machine::{DesignConfig, MachineConfig};
use tombolo_model::module::Module;
use tombolo_model::watch::Contents;
use tombolo_model::way_partition::{LocalWays, WayPolicy};
use tombolo_protocol::Coherence;

/// How a design shares the ways of caches.
pub(crate) fn way_policy(machine: &MachineConfig, design: &DesignConfig) -> WayPolicy {
    match design.l2_capacity {
        L2Capacity::Shared => WayPolicy::Together,
        L2Capacity::StaticHalves => WayPolicy::Halves,
        L2Capacity::NumaAware => WayPolicy::Shifting {
            sample: machine.sm.clock.span(design.partition_sample.into()),
            reset: design.partition_reset,
        },
    }
}

/// Shifts of ways of all modules.
pub(crate) fn way_moves<C: Coherence, D: Contents>(modules: &[&Module<C, D>]) -> WaysRecord {
    let mut moves = WaysRecord::default();
    for module in modules {
        let (to_remote, to_local) = module.slice_shared().ways.moves();
        moves.to_remote += to_remote;
        moves.to_local += to_local;
    }
    moves
}

/// Local ways over time, module by module.
pub(crate) fn local_ways<C: Coherence, D: Contents>(modules: &[&Module<C, D>]) -> Vec<LocalWaysRecord> {
    let of = |module: &&Module<C, D>| {
        let record = |ways: &LocalWays| LocalWaysRecord {
            module: module.id().to_string(),
            since_s: ways.since.seconds(),
            l1: ways.l1,
            l2: ways.l2,
        };
        module.slice_shared().ways.history().iter().map(record).collect::<Vec<_>>()
    };
    modules.iter().flat_map(of).collect()
}
