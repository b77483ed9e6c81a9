//! Records of links, GPUs, modules and launches.

use crate::stalls::{DeviceStalls, StallRecord};
use serde::{Deserialize, Serialize};

metrics! {
    /// Record for one direction of a link.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    pub struct LinkRecord {
        /// Name, for example `gpu0.out` (GPU 0 to the switch), `gpu0.in`, `module3.out`.
        name: String;
        bytes: u64 = "link traffic", "B", "Bytes sent in one direction of one link, headers included.";
        data_bytes: u64 = "link data", "B", "Of the bytes sent, bytes of memory: without headers, masks and what fills a flit.";
        utilization: f64 = "link utilization", "share of time", "Share of the simulated time that the link was sending, 0 to 1.";
        #[serde(default)]
        busy_s: f64 = "link busy", "s", "Time that the link was sending.";
        lanes: f64 = "lanes", "", "Lanes that carried this way, on average over the run; 1 of a link without lanes.";
        lanes_turned: u64 = "lanes turned", "", "Lanes that turned to this way.";
    }
}

metrics! {
    /// Record for one GPU, summed over its modules.
    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    pub struct GpuRecord {
        /// GPU name, for example `gpu0`.
        name: String;
        busy_s: f64 = "busy time", "s", "Time in which the GPU had CTAs of a kernel, or stores of theirs that were not yet taken.";
        transactions: u64 = "transactions", "", "Line-granular requests that left the coalescers of the GPU's SMs.";
        link_bytes: u64 = "link traffic", "B", "Bytes on the GPU's link to other GPUs, both ways, headers included.";
        /// Warp slot cycles by class.
        #[serde(default)]
        stalls: StallRecord => ["GPU"] of DeviceStalls;
    }
}

metrics! {
    /// Record for one module in a GPU.
    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    pub struct ModuleRecord {
        /// Module name, for example `module3`, counted over all GPUs.
        name: String;
        /// The module's GPU, for example `gpu0`.
        gpu: String;
        transactions: u64 = "transactions", "", "Line-granular requests that left the coalescers of the module's SMs.";
        l1_loads: u64 = "L1 loads", "", "Loads looked up in the module's L1 caches, by line.";
        l1_load_hits: u64 = "L1 hits", "", "Of the module's L1 loads, those that found their line.";
        l2_loads: u64 = "L2 loads", "", "Loads looked up in the module's L2, its own and others', by line.";
        l2_hits: u64 = "L2 hits", "", "Of the module's L2 loads, those that found their line.";
        l2_remote_loads: u64 = "L2 loads from other modules", "", "Of the module's L2 loads, those that came from another module.";
        dram_read_bytes: u64 = "memory reads", "B", "Bytes read from the module's memory, in whole bursts.";
        dram_write_bytes: u64 = "memory writes", "B", "Bytes written to the module's memory, in whole bursts.";
        sent_bytes: u64 = "bytes sent", "B", "Bytes that the module sent to others, headers included.";
        /// Warp slot cycles by class.
        stalls: StallRecord => ["module"] of DeviceStalls;
    }
}

/// Record for one launch: the interval with the kernel open, and the counters over all CTAs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KernelRecord {
    /// Kernel name.
    pub name: String,
    /// The GPU that ran the kernel, for example `gpu0`; null if several GPUs shared the launch.
    pub gpu: Option<String>,
    /// Stream in the host program.
    pub stream: u32,
    /// Seconds from the start of the run to the end of the launch latency.
    pub start_s: f64,
    /// Seconds from the start of the run to the end of the release.
    pub end_s: f64,
    /// CTAs run.
    pub ctas: u64,
    /// Warp instructions issued.
    pub warp_instructions: u64,
    /// Loads, stores, atomics and flag waits among them.
    pub memory_instructions: u64,
    /// Line transactions that left the coalescers.
    pub transactions: u64,
    /// Loads looked up in L1 caches, counted by line.
    pub l1_loads: u64,
    /// L1 loads that hit.
    pub l1_load_hits: u64,
    /// Warp slot cycles in the kernel's GPUs while it was open; slots not held by the launch's CTAs count as empty.
    pub stalls: StallRecord,
    /// Seconds between the mean start times of consecutive quarters of the CTAs: from the second quarter to the third,
    /// and from the third to the fourth; averaged over the modules.
    #[serde(skip)]
    pub quarters_s: [f64; 2],
}
