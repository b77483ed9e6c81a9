//! Load latencies in a run, by the level that served each load.

pub use tombolo_metrics::{LatencyRecord, LegsRecord, ServedRecord};
use tombolo_model::observe::{Latencies, LoadServer, Loads};

fn served(loads: &Loads) -> ServedRecord {
    ServedRecord {
        count: loads.count(),
        mean_ns: mean_ns(loads.time(), loads),
        p50_ns: loads.percentile(0.5) / 1000.0,
        p99_ns: loads.percentile(0.99) / 1000.0,
        legs_ns: LegsRecord::of(loads.legs().map(|time| mean_ns(time, loads))),
    }
}

/// Converts a time summed over all loads to nanoseconds per load.
fn mean_ns(time: u64, loads: &Loads) -> f64 {
    time as f64 / 1000.0 / loads.count().max(1) as f64
}

/// Record for a run with these latencies.
pub(crate) fn record(latencies: &Latencies) -> LatencyRecord {
    let [l1, own_l2, module, gpu, host, dram] = LoadServer::ALL.map(|server| served(latencies.of(server)));
    LatencyRecord { l1, own_l2, module, gpu, host, dram }
}
