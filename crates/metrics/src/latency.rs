//! Load latencies in a run, by the level that served each load.

use serde::{Deserialize, Serialize};

macro_rules! legs {
    ($( $field:ident = $label:literal, $about:literal; )+) => {
        metrics! {
            /// Mean time per load in each leg, in nanoseconds: the legs add up to the mean latency.
            #[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
            #[serde(default)]
            pub struct LegsRecord { $( $field: f64 = $label, "ns", $about; )+ }
        }

        impl LegsRecord {
            /// Record with the given means, in the order along a load's path.
            pub fn of([$( $field ),+]: [f64; 9]) -> LegsRecord {
                LegsRecord { $( $field ),+ }
            }

            /// Every leg with its name, in the order along a load's path.
            pub fn named(&self) -> [(&'static str, f64); 9] {
                [$( (stringify!($field), self.$field) ),+]
            }
        }
    };
}

legs! {
    tlb = "translation, loads served by {0}", "Of the mean of `latency.{1}`: waits for translations.";
    l1 = "L1, loads served by {0}", "Of the mean of `latency.{1}`: the queue and the lookup of the L1.";
    crossbar = "crossbar, loads served by {0}", "Of the mean of `latency.{1}`: the crossbar between SM and slice, there and back.";
    slice_queue = "queue of slices, loads served by {0}", "Of the mean of `latency.{1}`: waits for ports, miss registers, lines and credits of L2 slices.";
    slice = "slices, loads served by {0}", "Of the mean of `latency.{1}`: lookups in L2 slices, and passing bytes.";
    link_queue = "queue of links, loads served by {0}", "Of the mean of `latency.{1}`: waits for links between modules.";
    link_wire = "links, loads served by {0}", "Of the mean of `latency.{1}`: what idle links between modules take, there and back.";
    dram_queue = "queue of memory, loads served by {0}", "Of the mean of `latency.{1}`: waits for other accesses of memory.";
    bank = "bank, loads served by {0}", "Of the mean of `latency.{1}`: the access of memory itself.";
}

metrics! {
    /// Loads served by one level, counted as line transactions.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
    #[serde(default)]
    pub struct ServedRecord {
        count: u64 = "loads served by {0}", "", "Loads and polls, by line, that {1} served.";
        mean_ns: f64 = "latency of loads served by {0}", "ns", "From a load's event at its SM to its bytes there: the mean of those that {1} served.";
        p50_ns: f64 = "median latency of loads served by {0}", "ns", "What half of them do not exceed, to an eighth at worst.";
        p99_ns: f64 = "99th percentile of loads served by {0}", "ns", "What 99 of a hundred do not exceed, to an eighth at worst.";
        /// Mean latency by leg, in nanoseconds.
        legs_ns: LegsRecord => ["{0}", "{2}"];
    }
}

metrics! {
    /// Latencies for loads from SMs, polls included, by serving level.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
    #[serde(default)]
    pub struct LatencyRecord {
        /// Loads served by the SM's own L1.
        l1: ServedRecord => ["the L1", "the L1 of their SM", "l1"];
        /// Loads served by the L2 in the SM's own module.
        own_l2: ServedRecord => ["their own L2", "the L2 of their module", "own_l2"];
        /// Loads served by a remote module in the same GPU, from its L2 or memory.
        module: ServedRecord => ["other modules", "another module of their GPU", "module"];
        /// Loads served by a remote GPU, from its L2 or memory.
        gpu: ServedRecord => ["other GPUs", "another GPU", "gpu"];
        /// Loads served by the host.
        host: ServedRecord => ["the host", "the host", "host"];
        /// Loads served by the memory in the SM's own module, or by a memory-side cache.
        dram: ServedRecord => ["their own memory", "the memory of their module, or a cache in front of it", "dram"];
    }
}

impl LatencyRecord {
    /// Means by leg over all loads, with names, in nanoseconds: the legs add up to the mean latency. All 0 without
    /// loads.
    pub fn legs_ns(&self) -> [(&'static str, f64); 9] {
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
    pub fn named(&self) -> [(&'static str, ServedRecord); 6] {
        let LatencyRecord { l1, own_l2, module, gpu, host, dram } = *self;
        [("l1", l1), ("own_l2", own_l2), ("module", module), ("gpu", gpu), ("host", host), ("dram", dram)]
    }
}
