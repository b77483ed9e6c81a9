//! The result of a run, as scripts see it: `run --json` prints this.

use crate::checker::Checked;
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
use tombolo_workload::record::Spent;

/// Lookups in all L1s, in line transactions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct L1Record {
    /// Loads, stores and atomics.
    pub accesses: u64,
    /// Of these, loads.
    pub loads: u64,
    /// Of the loads, hits.
    pub hits: u64,
    /// Of the loads, merged into a miss already on its way.
    pub merges: u64,
}

/// Lookups in all L2 slices, in line transactions; one that goes on to a home counts in each slice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct L2Record {
    /// Loads, stores and atomics.
    pub accesses: u64,
    /// Of these, loads.
    pub loads: u64,
    /// Of the loads, hits.
    pub hits: u64,
    /// Of the loads, merged into a miss already on its way.
    pub merges: u64,
    /// Of the loads, from other modules.
    pub remote_loads: u64,
    /// Of these, hits.
    pub remote_hits: u64,
}

/// One direction of one link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkRecord {
    /// Such as `gpu0.out` (GPU 0 to the switch), `gpu0.in`, `module3.out`.
    pub name: String,
    /// Bytes, headers included.
    pub bytes: u64,
    /// Of these, bytes of memory: without headers, masks and what fills a flit.
    pub data_bytes: u64,
    /// Share of the run's time that it was sending, 0 to 1.
    pub utilization: f64,
    /// Seconds that it was sending.
    #[serde(default)]
    pub busy_s: f64,
    /// Lanes that carried this way, on average over the run; 1 of a link without lanes.
    pub lanes: f64,
    /// Lanes that turned to this way.
    pub lanes_turned: u64,
}

/// All memories: what their channels transferred, in whole bursts, and what state they met rows in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DramRecord {
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Accesses to a row that was open, or about to be.
    #[serde(default)]
    pub row_hits: u64,
    /// Accesses to a bank with no row open.
    #[serde(default)]
    pub row_misses: u64,
    /// Accesses to a bank with another row open.
    #[serde(default)]
    pub row_conflicts: u64,
}

impl DramRecord {
    /// Adds a module's.
    pub(crate) fn add(&mut self, stats: &DramStats) {
        self.read_bytes += stats.read_bytes;
        self.write_bytes += stats.write_bytes;
        self.row_hits += stats.row_hits;
        self.row_misses += stats.row_misses;
        self.row_conflicts += stats.row_conflicts;
    }

    /// Accesses of channels, each to a row in one of the three states.
    pub fn accesses(&self) -> u64 {
        self.row_hits + self.row_misses + self.row_conflicts
    }
}

/// All caches in front of memories; zeros where the machine has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MemoryCacheRecord {
    /// Reads and stores.
    pub accesses: u64,
    /// Of these, reads: hits, merges and misses together.
    pub reads: u64,
    /// Of these, stores.
    pub writes: u64,
    /// Reads that found their bytes.
    pub hits: u64,
    /// Reads that found their line on its way from memory.
    pub merges: u64,
    /// Reads that found neither.
    pub misses: u64,
    /// Lines displaced.
    pub evictions: u64,
    /// Dirty lines that went to memory.
    pub write_backs: u64,
}

impl MemoryCacheRecord {
    /// Adds a module's.
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

/// Flits of messages between levels, of both ways together and with headers. Source: CPElide (MICRO 2024), figure 10.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrafficRecord {
    /// Between SMs and the L2 slices of their modules.
    pub l1_l2: u64,
    /// Between L2 slices and the caches in front of memory.
    pub l2_l3: u64,
    /// Between modules.
    pub remote: u64,
}

/// How often a controller shifted the ways of its module's caches, summed over the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaysRecord {
    /// Samples at which ways went from lines of the module's own memory to others'.
    pub to_remote: u64,
    /// Samples at which they went to lines of its own memory.
    pub to_local: u64,
}

/// How many ways of a module's caches its own memory's lines may take, from a moment on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LocalWaysRecord {
    /// Such as `module3`.
    pub module: String,
    /// Seconds from the start of the run.
    pub since_s: f64,
    /// Of each L1; 0 where it has one way, for all lines.
    pub l1: u32,
    /// Of the L2, likewise.
    pub l2: u32,
}

/// One launch: when its kernel was open, and what its CTAs did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KernelRecord {
    /// Its name.
    pub name: String,
    /// The GPU that ran it, such as `gpu0`; null where all GPUs of several did.
    pub gpu: Option<String>,
    /// Stream of the host program.
    pub stream: u32,
    /// Seconds from the start of the run to the end of its launch latency.
    pub start_s: f64,
    /// Seconds from the start of the run to the end of its release.
    pub end_s: f64,
    /// CTAs run.
    pub ctas: u64,
    /// Warp instructions issued.
    pub warp_instructions: u64,
    /// Of these, loads, stores, atomics and flag waits.
    pub memory_instructions: u64,
    /// Line transactions that left the coalescers.
    pub transactions: u64,
    /// Loads looked up in L1 caches, by line.
    pub l1_loads: u64,
    /// Of these, hits.
    pub l1_load_hits: u64,
    /// What warp slots of its GPUs spent their cycles on while it was open; those that its CTAs did not hold as empty.
    pub stalls: StallRecord,
    /// Seconds from the mean start of the CTAs of each quarter to that of the next, from the second to the third and on
    /// to the fourth; the mean of the modules.
    #[serde(skip)]
    pub quarters_s: [f64; 2],
}

impl KernelRecord {
    /// What the launch took, for a program's projection from its parts.
    pub fn spent(&self) -> Spent {
        Spent { total_s: self.end_s - self.start_s, quarters_s: self.quarters_s }
    }
}

/// One GPU.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GpuRecord {
    /// Such as `gpu0`.
    pub name: String,
    /// Seconds in which it had CTAs of a kernel, or stores of theirs that were not yet taken.
    pub busy_s: f64,
    /// Line transactions that left its coalescers.
    pub transactions: u64,
    /// Bytes on its link to other GPUs, both ways, headers included.
    pub link_bytes: u64,
    /// What its warp slots spent their cycles on.
    #[serde(default)]
    pub stalls: StallRecord,
}

/// One GPU module.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ModuleRecord {
    /// Such as `module3`, counted over all GPUs.
    pub name: String,
    /// Its GPU, such as `gpu0`.
    pub gpu: String,
    /// Line transactions that left its coalescers.
    pub transactions: u64,
    /// Loads looked up in its L1 caches, by line.
    pub l1_loads: u64,
    /// Of these, hits.
    pub l1_load_hits: u64,
    /// Loads looked up in its L2, its own and others', in line transactions.
    pub l2_loads: u64,
    /// Of these, hits.
    pub l2_hits: u64,
    /// Of the loads, from other modules.
    pub l2_remote_loads: u64,
    /// Bytes that its memory read, in whole bursts.
    pub dram_read_bytes: u64,
    /// Bytes that its memory wrote, likewise.
    pub dram_write_bytes: u64,
    /// Bytes that it sent to other modules, headers included.
    pub sent_bytes: u64,
    /// What its warp slots spent their cycles on.
    pub stalls: StallRecord,
}

/// What the run cost the machine it ran on. Differs from run to run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostRecord {
    /// Seconds simulating, without recording the workload.
    pub wall_s: f64,
    /// Warp instructions simulated a second.
    pub warp_instructions_per_s: f64,
    /// Line transactions simulated a second.
    pub transactions_per_s: f64,
    /// Most memory the process held, in bytes; 0 where the system does not say.
    pub peak_rss_bytes: u64,
    /// Threads used, in most of the run.
    pub threads: usize,
    /// Events handled.
    pub events: u64,
}

/// The result of a run. Everything but `host` is equal at every thread count.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// Version of the simulator.
    pub tombolo: String,
    /// Machine.
    pub machine: String,
    /// Design.
    pub design: String,
    /// Workload or trace.
    pub workload: String,
    /// The fraction of the machine and the input that was run.
    pub scale: String,
    /// Simulated seconds: the whole.
    pub time_s: f64,
    /// Its parts.
    pub time: TimeRecord,
    /// Simulated cycles of the SM clock.
    pub cycles: u64,
    /// Kernels launched.
    pub kernel_launches: u64,
    /// Warp instructions issued.
    pub warp_instructions: u64,
    /// Of these, loads, stores and atomics.
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
    /// Each module of each GPU.
    #[serde(default)]
    pub modules: Vec<ModuleRecord>,
    /// How busy memories, slices and crossbars were.
    #[serde(default)]
    pub utilization: UtilizationRecord,
    /// Bytes that GPUs sent each other, and a host in the fabric.
    pub inter_gpu_bytes: u64,
    /// Memory.
    pub dram: DramRecord,
    /// Caches in front of memory.
    pub memory_cache: MemoryCacheRecord,
    /// Its first iteration and the others; of programs that are cut over GPUs and repeat what they do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iteration: Option<IterationRecord>,
    /// What was done and elided at kernel boundaries; absent where nothing elides and nobody asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elision: Option<ElisionRecord>,
    /// Pages that moved; absent of designs whose pages stay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paging: Option<PagingRecord>,
    /// Copies from GPU to GPU; absent of designs that make none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copies: Option<CopiesRecord>,
    /// What was published to subscribers; absent of designs that publish no page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub publication: Option<PublicationRecord>,
    /// Where the time went; of designs in which the host takes part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phases: Option<PhasesRecord>,
    /// Memory of the host; of designs in which it takes part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_memory: Option<DramRecord>,
    /// Blocks of host memory in the memories of GPUs; of designs that cache them there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks: Option<BlocksRecord>,
    /// What passed between the levels; of machines with caches in front of memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traffic_flits: Option<TrafficRecord>,
    /// Invalidations, evictions, flushes, by cause; see `tombolo_model::stats` for each.
    pub coherence: BTreeMap<String, u64>,
    /// Shifts of ways between local and remote lines.
    #[serde(default)]
    pub ways: WaysRecord,
    /// Each such shift and each reset at a kernel's start, by module and time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub local_ways: Vec<LocalWaysRecord>,
    /// What warp slots spent their cycles on.
    #[serde(default)]
    pub stalls: StallRecord,
    /// How long loads took, by who served them; of runs whose loads are followed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<LatencyRecord>,
    /// How it was sampled; absent where nobody asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampling: Option<SamplingRecord>,
    /// Other counters of the SMs.
    pub sm: BTreeMap<String, u64>,
    /// Picojoules by component.
    pub energy_pj: Energy,
    /// Hash of the whole simulated result: equal at every thread count.
    pub digest: String,
    /// Hash of the counters that observe the simulation and decide nothing.
    pub statistics_digest: String,
    /// Each launch, in order. Its JSON has none: whoever writes it says how many there are to be.
    #[serde(skip)]
    pub kernels: Vec<KernelRecord>,
    /// What the checker of values found; only of a checked run. No kept record has it.
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    pub check: Option<Checked>,
    /// What was noted: what a trace cannot carry, what was approximated.
    #[serde(default)]
    pub notes: Vec<String>,
    /// What the run cost.
    pub host: HostRecord,
}
