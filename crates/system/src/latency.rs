//! How long the loads of a run took, by who served them.

use serde::{Deserialize, Serialize};
use tombolo_model::latency::{Latencies, Leg, Loads, Served};

macro_rules! legs {
    ($( $(#[doc = $about:literal])* $field:ident: $Leg:ident ),+ $(,)?) => {
        /// Mean times of loads by leg, in nanoseconds: they add up to the mean latency.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[serde(default)]
        pub struct LegsRecord { $( $(#[doc = $about])* pub $field: f64, )+ }

        impl LegsRecord {
            fn new(loads: &Loads) -> LegsRecord {
                let of = |leg: Leg| mean_ns(loads.legs()[leg as usize], loads);
                LegsRecord { $( $field: of(Leg::$Leg), )+ }
            }

            /// Each leg by name, in the order of a load's way.
            pub fn named(&self) -> [(&'static str, f64); Leg::ALL.len()] {
                Leg::ALL.map(|leg| match leg { $( Leg::$Leg => (stringify!($field), self.$field), )+ })
            }
        }
    };
}

legs! {
    /// A translation, beyond what passed beside it.
    tlb: Tlb,
    /// The L1: its queue and its lookup.
    l1: L1,
    /// The crossbar between SM and slice, there and back, with its queues.
    crossbar: Crossbar,
    /// Slices: waits for ports, miss registers, lines and credits.
    slice_queue: SliceQueue,
    /// Slices: lookups, and passing bytes.
    slice: Slice,
    /// Links between modules: waits, there and back.
    link_queue: LinkQueue,
    /// Links between modules: what an idle trip takes.
    link_wire: LinkWire,
    /// Memory: waits for other accesses.
    dram_queue: DramQueue,
    /// Memory: the access in the state that its row is in, and the way to its banks.
    bank: Bank,
}

/// Loads, in line transactions, that one kind of place has served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ServedRecord {
    /// How many.
    pub count: u64,
    /// Mean latency in nanoseconds; 0 of none.
    pub mean_ns: f64,
    /// The latency that half of them do not exceed, in nanoseconds, to an eighth at worst.
    pub p50_ns: f64,
    /// The latency that 99 of a hundred do not exceed, likewise.
    pub p99_ns: f64,
    /// The mean by leg, in nanoseconds.
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

/// A time of all loads, in nanoseconds for each.
fn mean_ns(time: u64, loads: &Loads) -> f64 {
    time as f64 / 1000.0 / loads.count().max(1) as f64
}

/// How long the loads of SMs took, polls included, by who served them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LatencyRecord {
    /// The L1 of the SM.
    pub l1: ServedRecord,
    /// The L2 of its module.
    pub own_l2: ServedRecord,
    /// Another module of its GPU: the L2 there, or memory.
    pub module: ServedRecord,
    /// Another GPU, likewise.
    pub gpu: ServedRecord,
    /// The host.
    pub host: ServedRecord,
    /// The memory of its module, or a cache in front of it.
    pub dram: ServedRecord,
}

impl LatencyRecord {
    pub(crate) fn new(latencies: &Latencies) -> LatencyRecord {
        let of = |served| ServedRecord::new(latencies.of(served));
        LatencyRecord {
            l1: of(Served::L1),
            own_l2: of(Served::OwnL2),
            module: of(Served::Module),
            gpu: of(Served::Gpu),
            host: of(Served::Host),
            dram: of(Served::Dram),
        }
    }

    /// The means by leg over all loads, by name, in nanoseconds: they add up to their mean latency. All 0 where there are none.
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

    /// Each kind of place by name.
    pub fn named(&self) -> [(&'static str, ServedRecord); Served::ALL.len()] {
        Served::ALL.map(|served| match served {
            Served::L1 => ("l1", self.l1),
            Served::OwnL2 => ("own_l2", self.own_l2),
            Served::Module => ("module", self.module),
            Served::Gpu => ("gpu", self.gpu),
            Served::Host => ("host", self.host),
            Served::Dram => ("dram", self.dram),
        })
    }
}
