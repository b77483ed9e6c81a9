//! A run's result in the format that scripts read: `run --json` prints this.

use crate::checker::CheckReport;
use crate::elision::ElisionRecord;
use crate::energy::Energy;
use crate::host::{BlocksRecord, PhasesRecord};
use crate::iteration::IterationRecord;
use crate::latency::LatencyRecord;
use crate::paging::{CopiesRecord, PagingRecord};
use crate::publication::PublicationRecord;
use crate::sampling::SamplingRecord;
use crate::stalls::StallRecord;
use crate::time::TimeRecord;
use crate::utilization::UtilizationRecord;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tombolo_model::dram::DramStats;
use tombolo_model::memory_cache::MemoryCacheStats;
use tombolo_workload::record::LaunchDurations;

/// Lookups in all L1s, counted as line transactions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct L1Record {
    /// Loads, stores and atomics.
    pub accesses: u64,
    /// Loads.
    pub loads: u64,
    /// Loads that hit.
    pub hits: u64,
    /// Loads merged into a pending miss.
    pub merges: u64,
}

/// Lookups in all L2 slices, counted as line transactions; a transaction forwarded to a home counts in each slice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct L2Record {
    /// Loads, stores and atomics.
    pub accesses: u64,
    /// Loads.
    pub loads: u64,
    /// Loads that hit.
    pub hits: u64,
    /// Loads merged into a pending miss.
    pub merges: u64,
    /// Loads from remote modules.
    pub remote_loads: u64,
    /// Remote loads that hit.
    pub remote_hits: u64,
}

/// Record for one direction of a link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkRecord {
    /// Name, for example `gpu0.out` (GPU 0 to the switch), `gpu0.in`, `module3.out`.
    pub name: String,
    /// Bytes, headers included.
    pub bytes: u64,
    /// Bytes that carry memory data: without headers, masks and flit padding.
    pub data_bytes: u64,
    /// Share of the run's time that the link was sending, 0 to 1.
    pub utilization: f64,
    /// Seconds that the link was sending.
    #[serde(default)]
    pub busy_s: f64,
    /// Lanes active in this direction, averaged over the run; 1 for a link without lanes.
    pub lanes: f64,
    /// Lanes turned to this direction.
    pub lanes_turned: u64,
}

/// All memories: bytes transferred by their channels, in whole bursts, and row states met by accesses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DramRecord {
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Accesses to a row that was open, or about to be.
    #[serde(default)]
    pub row_hits: u64,
    /// Accesses to a bank with no open row.
    #[serde(default)]
    pub row_misses: u64,
    /// Accesses to a bank with a different row open.
    #[serde(default)]
    pub row_conflicts: u64,
}

impl DramRecord {
    /// Adds one module's counters.
    pub(crate) fn add(&mut self, stats: &DramStats) {
        self.read_bytes += stats.read_bytes;
        self.write_bytes += stats.write_bytes;
        self.row_hits += stats.row_hits;
        self.row_misses += stats.row_misses;
        self.row_conflicts += stats.row_conflicts;
    }

    /// Accesses by all channels; each access meets a row in a state among hit, miss and conflict.
    pub fn accesses(&self) -> u64 {
        self.row_hits + self.row_misses + self.row_conflicts
    }
}

/// All memory-side caches; zeros if the machine has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MemoryCacheRecord {
    /// Reads and stores.
    pub accesses: u64,
    /// Reads: hits, merges and misses together.
    pub reads: u64,
    /// Stores.
    pub writes: u64,
    /// Reads that hit.
    pub hits: u64,
    /// Reads merged with a line already in flight from memory.
    pub merges: u64,
    /// Reads that missed.
    pub misses: u64,
    /// Lines evicted.
    pub evictions: u64,
    /// Dirty lines written back to memory.
    pub write_backs: u64,
}

impl MemoryCacheRecord {
    /// Adds one module's counters.
    pub(crate) fn add(&mut self, stats: MemoryCacheStats) {
        self.accesses += stats.reads + stats.writes;
        self.reads += stats.reads;
        self.writes += stats.writes;
        self.hits += stats.read_hits;
        self.merges += stats.merges;
        self.misses += stats.read_misses;
        self.evictions += stats.evictions;
        self.write_backs += stats.write_backs;
    }
}

/// Flits in messages between levels, both directions together, headers included. Source: CPElide (MICRO 2024), figure
/// 10.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrafficRecord {
    /// Between SMs and the L2 slices in their modules.
    pub l1_l2: u64,
    /// Between L2 slices and memory-side caches.
    pub l2_l3: u64,
    /// Between modules.
    pub remote: u64,
}

/// Number of way shifts in the modules' caches, summed over the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaysRecord {
    /// Samples at which ways were moved from local lines to remote lines.
    pub to_remote: u64,
    /// Samples at which ways were moved to local lines.
    pub to_local: u64,
}

/// Number of ways in a module's caches that local lines may use, from a given time on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LocalWaysRecord {
    /// Module name, for example `module3`.
    pub module: String,
    /// Seconds from the start of the run.
    pub since_s: f64,
    /// Local ways in each L1; 0 if the L1 has a single way for all lines.
    pub l1: u32,
    /// Local ways in the L2; 0 if the L2 has a single way for all lines.
    pub l2: u32,
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

impl KernelRecord {
    /// Times of the launch, for projecting a whole program from samples.
    pub fn durations(&self) -> LaunchDurations {
        LaunchDurations { total_s: self.end_s - self.start_s, quarters_s: self.quarters_s }
    }
}

/// Record for one GPU, summed over its modules.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GpuRecord {
    /// GPU name, for example `gpu0`.
    pub name: String,
    /// Seconds in which the GPU had running CTAs, or stores not yet accepted.
    pub busy_s: f64,
    /// Line transactions that left the GPU's coalescers.
    pub transactions: u64,
    /// Bytes on its link to remote GPUs, both directions, headers included.
    pub link_bytes: u64,
    /// Warp slot cycles by class.
    #[serde(default)]
    pub stalls: StallRecord,
}

/// Record for one module in a GPU.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ModuleRecord {
    /// Module name, for example `module3`, counted over all GPUs.
    pub name: String,
    /// The module's GPU, for example `gpu0`.
    pub gpu: String,
    /// Line transactions that left the module's coalescers.
    pub transactions: u64,
    /// Loads looked up in the module's L1 caches, counted by line.
    pub l1_loads: u64,
    /// L1 loads that hit.
    pub l1_load_hits: u64,
    /// Loads looked up in the module's L2, local and remote, counted as line transactions.
    pub l2_loads: u64,
    /// L2 loads that hit.
    pub l2_hits: u64,
    /// L2 loads from remote modules.
    pub l2_remote_loads: u64,
    /// Bytes read from the module's memory, in whole bursts.
    pub dram_read_bytes: u64,
    /// Bytes written to the module's memory, in whole bursts.
    pub dram_write_bytes: u64,
    /// Bytes sent to remote modules, headers included.
    pub sent_bytes: u64,
    /// Warp slot cycles by class.
    pub stalls: StallRecord,
}

/// Cost of the run on the host machine. Differs from run to run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostRecord {
    /// Seconds spent on simulation, without recording the workload.
    pub wall_s: f64,
    /// Warp instructions simulated per second.
    pub warp_instructions_per_s: f64,
    /// Line transactions simulated per second.
    pub transactions_per_s: f64,
    /// Peak memory held by the process, in bytes; 0 if the system does not report it.
    pub peak_rss_bytes: u64,
    /// Threads used during most of the run.
    pub threads: usize,
    /// Events handled.
    pub events: u64,
}

/// The result of a run. Every field except `host` is equal at every thread count.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// Version of the simulator.
    pub tombolo: String,
    /// Machine name.
    pub machine: String,
    /// Design name.
    pub design: String,
    /// Workload or trace name.
    pub workload: String,
    /// The fraction of the machine and the input that was run.
    pub scale: String,
    /// Simulated seconds in total.
    pub time_s: f64,
    /// Simulated seconds by part.
    pub time: TimeRecord,
    /// Simulated cycles of the SM clock.
    pub cycles: u64,
    /// Kernels launched.
    pub kernel_launches: u64,
    /// Warp instructions issued.
    pub warp_instructions: u64,
    /// Loads, stores and atomics among them.
    pub memory_instructions: u64,
    /// Line transactions that left the coalescers.
    pub transactions: u64,
    /// L1 caches.
    pub l1: L1Record,
    /// L2 caches.
    pub l2: L2Record,
    /// Each direction of each link between GPUs and modules.
    pub links: Vec<LinkRecord>,
    /// Each GPU.
    pub gpus: Vec<GpuRecord>,
    /// Each module in each GPU.
    #[serde(default)]
    pub modules: Vec<ModuleRecord>,
    /// Utilisation: memories, slices and crossbars.
    #[serde(default)]
    pub utilization: UtilizationRecord,
    /// Bytes sent between GPUs, including a host in the fabric.
    pub inter_gpu_bytes: u64,
    /// Memory.
    pub dram: DramRecord,
    /// Memory-side caches.
    pub memory_cache: MemoryCacheRecord,
    /// First iteration against later ones; for iterative programs that are cut over GPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iteration: Option<IterationRecord>,
    /// Operations performed and elided at kernel boundaries; absent if the design elides none and no log was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elision: Option<ElisionRecord>,
    /// Page migrations; absent for designs with fixed pages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paging: Option<PagingRecord>,
    /// Copies between GPUs; absent for designs without copies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copies: Option<CopiesRecord>,
    /// Stores published to subscribers; absent for designs that publish no page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub publication: Option<PublicationRecord>,
    /// Run time by phase; for designs with a coherent host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phases: Option<PhasesRecord>,
    /// The host's memory; for designs with a coherent host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_memory: Option<DramRecord>,
    /// Blocks from host memory in GPU memories; for designs that cache host memory in GPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks: Option<BlocksRecord>,
    /// Traffic between levels; for machines with memory-side caches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traffic_flits: Option<TrafficRecord>,
    /// Invalidations, evictions and flushes, by cause; `tombolo_model::stats` documents each.
    pub coherence: BTreeMap<String, u64>,
    /// Way shifts between local and remote lines.
    #[serde(default)]
    pub ways: WaysRecord,
    /// Each shift and each reset at a kernel's start, by module and time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub local_ways: Vec<LocalWaysRecord>,
    /// Warp slot cycles by class.
    #[serde(default)]
    pub stalls: StallRecord,
    /// Load latencies, by serving level; present if the run tracks load latencies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<LatencyRecord>,
    /// Sampling details; absent if no sampling was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampling: Option<SamplingRecord>,
    /// Further counters from the SMs.
    pub sm: BTreeMap<String, u64>,
    /// Picojoules by component.
    pub energy_pj: Energy,
    /// Hash over the whole simulated result: equal at every thread count.
    pub digest: String,
    /// Hash over the counters that observe the simulation without influencing it.
    pub statistics_digest: String,
    /// Each launch, in order. Not part of the JSON: writers choose how many launches to print.
    #[serde(skip)]
    pub kernels: Vec<KernelRecord>,
    /// The value checker's result; only in a checked run. Stored records never include it.
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    pub check: Option<CheckReport>,
    /// Notes: features that a trace cannot express, and approximations.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Cost of the run.
    pub host: HostRecord,
}
