//! A run's result in the format that scripts read: `run --json` prints this record.

use crate::caches::{DramRecord, L1Record, L2Record, LocalWaysRecord, MemoryCacheRecord, TrafficRecord, WaysRecord};
use crate::check::CheckReport;
use crate::devices::{GpuRecord, KernelRecord, LinkRecord, ModuleRecord};
use crate::elision::ElisionRecord;
use crate::energy::Energy;
use crate::host::{BlocksRecord, HostRecord, PhasesRecord};
use crate::iteration::IterationRecord;
use crate::latency::LatencyRecord;
use crate::paging::{CopiesRecord, PagingRecord};
use crate::publication::PublicationRecord;
use crate::sampling::SamplingRecord;
use crate::stalls::StallRecord;
use crate::stats::{L2Stats, SmStats};
use crate::time::TimeRecord;
use crate::utilization::UtilizationRecord;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

metrics! {
    /// The result of a run. Every field except `host` is equal at every thread count.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    pub struct RunRecord {
        /// Version of the simulator.
        tombolo: String;
        /// Machine name.
        machine: String;
        /// Design name.
        design: String;
        /// Workload or trace name.
        workload: String;
        /// The fraction of the machine and the input that was run.
        scale: String;
        time_s: f64 = "simulated time", "s", "Time from the start of the program to the end of its last kernel's release or last copy.";
        /// Simulated seconds by part.
        time: TimeRecord => [];
        cycles: u64 = "cycles", "cycles", "Simulated time in cycles of the SM clock.";
        kernel_launches: u64 = "kernel launches", "", "Kernels launched.";
        warp_instructions: u64 = "warp instructions", "", "Instructions issued, one for all lanes of a warp.";
        memory_instructions: u64 = "memory instructions", "", "Of the warp instructions, loads, stores and atomics.";
        transactions: u64 = "transactions", "", "Line-granular requests that left the SMs' coalescers.";
        /// L1 caches.
        l1: L1Record => [];
        /// L2 caches.
        l2: L2Record => [];
        /// Each direction of each link between GPUs and modules.
        links: Vec<LinkRecord> => [];
        /// Each GPU.
        gpus: Vec<GpuRecord> => [];
        /// Each module in each GPU.
        #[serde(default)]
        modules: Vec<ModuleRecord> => [];
        /// Utilisation: memories, slices and crossbars.
        #[serde(default)]
        utilization: UtilizationRecord => [];
        inter_gpu_bytes: u64 = "traffic between GPUs", "B", "Bytes that GPUs sent each other, and the host where that is in the fabric, headers included.";
        /// Memory.
        dram: DramRecord => ["", "all memories", ""];
        /// Memory-side caches.
        memory_cache: MemoryCacheRecord => [];
        /// First iteration against later ones; for iterative programs that are cut over GPUs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        iteration: Option<IterationRecord> => [];
        /// Operations performed and elided at kernel boundaries; absent if the design elides none and no log was requested.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        elision: Option<ElisionRecord> => [];
        /// Page migrations; absent for designs with fixed pages.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        paging: Option<PagingRecord> => [];
        /// Copies between GPUs; absent for designs without copies.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        copies: Option<CopiesRecord> => [];
        /// Stores published to subscribers; absent for designs that publish no page.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        publication: Option<PublicationRecord> => [];
        /// Run time by phase; for designs with a coherent host.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        phases: Option<PhasesRecord> => [];
        /// The host's memory; for designs with a coherent host.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        host_memory: Option<DramRecord> => ["host ", "the memory of the host", " of the host"];
        /// Blocks from host memory in GPU memories; for designs that cache host memory in GPUs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        blocks: Option<BlocksRecord> => [];
        /// Traffic between levels; for machines with memory-side caches.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        traffic_flits: Option<TrafficRecord> => [];
        /// Invalidations, evictions and flushes, by cause; [`L2Stats`] documents each.
        coherence: BTreeMap<String, u64> => [] of L2Stats;
        /// Way shifts between local and remote lines.
        #[serde(default)]
        ways: WaysRecord => [];
        /// Each shift and each reset at a kernel's start, by module and time.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        local_ways: Vec<LocalWaysRecord>;
        /// Warp slot cycles by class.
        #[serde(default)]
        stalls: StallRecord => [];
        /// Load latencies, by serving level; present if the run tracks load latencies.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        latency: Option<LatencyRecord> => [];
        /// Sampling details; absent if no sampling was requested.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sampling: Option<SamplingRecord> => [];
        /// Further counters from the SMs.
        sm: BTreeMap<String, u64> => [] of SmStats;
        /// Picojoules by component.
        energy_pj: Energy => [];
        /// Hash over the whole simulated result: equal at every thread count.
        digest: String;
        /// Hash over the counters that observe the simulation without influencing it.
        statistics_digest: String;
        /// Each launch, in order. Not part of the JSON: writers choose how many launches to print.
        #[serde(skip)]
        kernels: Vec<KernelRecord>;
        /// The value checker's result; only in a checked run. Stored records never include it.
        #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
        check: Option<CheckReport>;
        /// Notes: features that a trace cannot express, and approximations.
        #[serde(default)]
        notes: Vec<String>;
        /// Cost of the run.
        host: HostRecord => [];
    }
}

impl RunRecord {
    /// Error bound for each time in the record, in seconds: 0 if the whole program ran.
    pub fn error_s(&self) -> f64 {
        self.sampling.as_ref().map_or(0.0, |sampling| sampling.error_s)
    }

    /// Sentence on the sampling, if sampling was requested.
    pub fn sampling_note(&self) -> Option<String> {
        let SamplingRecord { launches, launches_counted, error_s, whole, .. } = self.sampling.as_ref()?;
        let design = &self.design;
        Some(match whole {
            Some(reason) => format!("no sample applies under {design}, and it ran whole: {reason}"),
            None => format!(
                "sampled under {design}: times are estimated from {launches_counted} of {launches} launches, ± {:.1} % with 95 % \
                 confidence; all other numbers are of what ran",
                100.0 * error_s / self.time_s
            ),
        })
    }

    /// True if the record's times are estimates.
    pub fn is_estimate(&self) -> bool {
        self.sampling.as_ref().is_some_and(|sampling| sampling.whole.is_none())
    }
}
