//! Load latencies in a run, by the level that served each load.

use serde::{Deserialize, Serialize};
use tombolo_model::latency::{Latencies, Leg, LoadServer, Loads};

macro_rules! legs {
    ($( $(#[doc = $about:literal])* $field:ident: $Leg:ident ),+ $(,)?) => {
        /// Mean time per load in each leg, in nanoseconds: the legs add up to the mean latency.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[serde(default)]
        pub struct LegsRecord { $( $(#[doc = $about])* pub $field: f64, )+ }

        impl LegsRecord {
            fn new(loads: &Loads) -> LegsRecord {
                let of = |leg: Leg| mean_ns(loads.legs()[leg as usize], loads);
                LegsRecord { $( $field: of(Leg::$Leg), )+ }
            }

            /// Every leg with its name, in the order along a load's path.
            pub fn named(&self) -> [(&'static str, f64); Leg::ALL.len()] {
                Leg::ALL.map(|leg| match leg { $( Leg::$Leg => (stringify!($field), self.$field), )+ })
            }
        }
    };
}

legs! {
    /// Translation time that is not hidden behind the L1 lookup.
    tlb: Tlb,
    /// The L1: its queue and its lookup.
    l1: L1,
    /// The crossbar between SM and slice, both directions, with its queues.
    crossbar: Crossbar,
    /// Slices: waits for ports, miss registers, lines and credits.
    slice_queue: SliceQueue,
    /// Slices: lookups, and time to transfer the bytes.
    slice: Slice,
    /// Links between modules: queueing, both directions.
    link_queue: LinkQueue,
    /// Links between modules: the zero-load part of the trip.
    link_wire: LinkWire,
    /// Memory: queueing behind earlier accesses.
    dram_queue: DramQueue,
    /// Memory: the access time given the row's state, and the path to the banks.
    bank: Bank,
}

/// Loads served by one level, counted as line transactions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ServedRecord {
    /// Number of loads.
    pub count: u64,
    /// Mean latency in nanoseconds; 0 without loads.
    pub mean_ns: f64,
    /// Median latency in nanoseconds, exact to an eighth.
    pub p50_ns: f64,
    /// 99th percentile of the latency in nanoseconds, exact to an eighth.
    pub p99_ns: f64,
    /// Mean latency by leg, in nanoseconds.
    pub legs_ns: LegsRecord,
}

impl ServedRecord {
    fn new(loads: &Loads) -> ServedRecord {
        ServedRecord {
            count: loads.count(),
            mean_ns: mean_ns(loads.time(), loads),
            p50_ns: loads.percentile(0.5) / 1000.0,
            p99_ns: loads.percentile(0.99) / 1000.0,
            legs_ns: LegsRecord::new(loads),
        }
    }
}

/// Converts a time summed over all loads to nanoseconds per load.
fn mean_ns(time: u64, loads: &Loads) -> f64 {
    time as f64 / 1000.0 / loads.count().max(1) as f64
}

/// Latencies for loads from SMs, polls included, by serving level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LatencyRecord {
    /// Loads served by the SM's own L1.
    pub l1: ServedRecord,
    /// Loads served by the L2 in the SM's own module.
    pub own_l2: ServedRecord,
    /// Loads served by a remote module in the same GPU, from its L2 or memory.
    pub module: ServedRecord,
    /// Loads served by a remote GPU, from its L2 or memory.
    pub gpu: ServedRecord,
    /// Loads served by the host.
    pub host: ServedRecord,
    /// Loads served by the memory in the SM's own module, or by a memory-side cache.
    pub dram: ServedRecord,
}

impl LatencyRecord {
    pub(crate) fn new(latencies: &Latencies) -> LatencyRecord {
        let of = |served| ServedRecord::new(latencies.of(served));
        LatencyRecord {
            l1: of(LoadServer::L1),
            own_l2: of(LoadServer::OwnL2),
            module: of(LoadServer::Module),
            gpu: of(LoadServer::Gpu),
            host: of(LoadServer::Host),
            dram: of(LoadServer::Dram),
        }
    }

    /// Means by leg over all loads, with names, in nanoseconds: the legs add up to the mean latency. All 0 without
    /// loads.
    pub fn legs_ns(&self) -> [(&'static str, f64); Leg::ALL.len()] {
        let count: u64 = self.named().iter().map(|(_, served)| served.count).sum();
        let mut legs = LegsRecord::default().named();
        for (_, served) in self.named() {
            for ((_, mean), (_, leg)) in legs.iter_mut().zip(served.legs_ns.named()) {
                *mean += leg * served.count as f64 / count.max(1) as f64;
            }
        }
        legs
    }

    /// Every serving level with its name.
    pub fn named(&self) -> [(&'static str, ServedRecord); LoadServer::ALL.len()] {
        LoadServer::ALL.map(|served| match served {
            LoadServer::L1 => ("l1", self.l1),
            LoadServer::OwnL2 => ("own_l2", self.own_l2),
            LoadServer::Module => ("module", self.module),
            LoadServer::Gpu => ("gpu", self.gpu),
            LoadServer::Host => ("host", self.host),
            LoadServer::Dram => ("dram", self.dram),
        })
    }
}
