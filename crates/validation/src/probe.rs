//! Microbenchmark results for NVIDIA's GPUs, and the results of equivalent probes on their machine descriptions: the
//! load latency for each memory level, by a pointer chase, and the bandwidth of each level, by streams.
//!
//! A latency, and a cache bandwidth, is the difference between two lengths: launches and cold starts cancel. If the
//! cold starts do not cancel exactly, because the longer run's cold start overlaps more work, the machine's own rate
//! bounds the result. Memory bandwidth is measured with a single long stream, from launch until the last reply. The
//! cost of an instruction with divergent lanes is likewise a difference between two lengths, and a first touch is a
//! separate run.

use self::Quantity::{Cycles, Gigabytes};
use crate::estimate::EstimateError;
use crate::pattern::{Pattern, measure_pattern};
use crate::peer::{TransferDirection, measure_transfer};
use crate::scattered::ScatteredReads;
use serde::Serialize;
use std::sync::Arc;
use tombolo_design::DesignConfig;
use tombolo_machine::MachineConfig;
use tombolo_system::{RunSpec, run};
use tombolo_types::Rate;
use tombolo_types::stream::ComputeClass;
use tombolo_workload::bench::{Mode, Request, find, footprint, record};
use tombolo_workload::record::RecordOptions;
use tombolo_workload::scale::Scale;

/// Source of the published numbers for single GPUs.
const GPU_BENCHES: &str = "te42kyfo/gpu-benches at 1c36d50";

/// Measured quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Quantity {
    /// SM clock cycles: from load to load, per SM instruction, or per first touch.
    #[serde(rename = "cycles")]
    Cycles,
    /// Gigabytes (10^9 bytes) per second.
    #[serde(rename = "gigabytes")]
    Gigabytes,
}

/// Probed memory level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeTarget {
    /// The L1 caches.
    L1,
    /// The L2 caches.
    L2,
    /// Memory.
    Dram,
    /// The memory of a peer GPU.
    Peer,
    /// Accesses with a pattern.
    Pattern(Pattern),
    /// Random or strided reads.
    Scattered(ScatteredReads),
}

/// A probe for a machine with its published result.
#[derive(Clone, Copy, Debug)]
pub struct Probe {
    /// The machine.
    pub machine: &'static str,
    /// The probed level.
    pub level: ProbeTarget,
    /// Level and method, in words.
    pub name: &'static str,
    /// The measured quantity.
    pub quantity: Quantity,
    /// Value measured on hardware.
    pub published: f64,
    /// File in [`Probe::source`] with the published value; for probes between GPUs, and for patterns, the complete
    /// source.
    pub file: &'static str,
    /// Reason for a large deviation of the simulated value, if any.
    pub why: Option<&'static str>,
    parameters: &'static [(&'static str, &'static str)],
    /// The parameter for the length, and a single length, or two lengths for subtraction. The difference between two
    /// lengths removes launch and warm-up costs.
    length: (&'static str, &'static [&'static str]),
}

/// A probe's result and the published value.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// The machine.
    pub machine: String,
    /// Name of the probe.
    pub name: &'static str,
    /// Measured quantity.
    pub quantity: Quantity,
    /// Measured on hardware.
    pub published: f64,
    /// Simulated.
    pub simulated: f64,
    /// Maximum that the machine description allows; `None` for a latency, or if the description specifies no rate.
    /// Simulated cache and link bandwidths are clamped to this limit.
    pub limit: Option<f64>,
    /// Source of the published number.
    pub source: String,
    /// Reason for a deviation of more than 15 %.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<&'static str>,
}

const fn probe(
    machine: &'static str,
    (level, name): (ProbeTarget, &'static str),
    quantity: Quantity,
    published: f64,
    file: &'static str,
    parameters: &'static [(&'static str, &'static str)],
    length: (&'static str, &'static [&'static str]),
) -> Probe {
    Probe { machine, level, name, quantity, published, file, why: None, parameters, length }
}

/// Rings: within the L1; within the L2, with a cold first lap; beyond it, with a new line at each step.
const IN_L1: &[(&str, &str)] = &[("kib", "32")];
const IN_L2: &[(&str, &str)] = &[("kib", "512")];
const IN_DRAM: &[(&str, &str)] = &[("kib", "65536")];
const WARM: (&str, &[&str]) = ("steps", &["4096", "8192"]);
const COLD: (&str, &[&str]) = ("steps", &["4096", "12288"]);

/// Streams within the L1s: a CTA per SM, confined to its own 64 KiB; the first passes fill the L1s.
const V100_L1: &[(&str, &str)] = &[("ctas", "80"), ("kib", "5120"), ("parts", "own")];
const H100_L1: &[(&str, &str)] = &[("ctas", "114"), ("kib", "7296"), ("parts", "own")];
const L1_PASSES: (&str, &[&str]) = ("passes", &["4", "12"]);
/// Streams within the L2: two CTAs per SM, which proceed to parts unseen by the SM's L1; the first passes fill the L2.
const V100_L2: &[(&str, &str)] = &[("ctas", "160"), ("kib", "5120")];
const H100_L2: &[(&str, &str)] = &[("ctas", "228"), ("kib", "10944")];
const L2_PASSES: (&str, &[&str]) = ("passes", &["2", "6"]);
/// Streams beyond: two CTAs per SM through an array that no cache has seen, in KiB: ten times the V100's L2 and four
/// times the H100's.
const V100_NEW: (&str, &[&str]) = ("kib", &["61440"]);
const H100_NEW: (&str, &[&str]) = ("kib", &["196992"]);
const V100_READ: &[(&str, &str)] = &[("ctas", "160")];
const V100_WRITE: &[(&str, &str)] = &[("ctas", "160"), ("operation", "write")];
const V100_COPY: &[(&str, &str)] = &[("ctas", "160"), ("operation", "copy")];
const H100_READ: &[(&str, &str)] = &[("ctas", "228")];
const H100_WRITE: &[(&str, &str)] = &[("ctas", "228"), ("operation", "write")];
const H100_COPY: &[(&str, &str)] = &[("ctas", "228"), ("operation", "copy")];

/// A probe for accesses with a pattern, in cycles.
const fn pattern(
    machine: &'static str,
    (pattern, name): (Pattern, &'static str),
    published: f64,
    source: &'static str,
) -> Probe {
    let length = match pattern {
        Pattern::Lines | Pattern::OneBank | Pattern::RandomWords => GATHERS,
        Pattern::L2Lines { .. } | Pattern::L2Words | Pattern::L2Vectors => ROUNDS,
        Pattern::Sectors | Pattern::Structs | Pattern::StructsFromL2 | Pattern::Broadcast | Pattern::BroadcastAgain => {
            ONCE
        }
        Pattern::OneWord => ATOMICS,
        Pattern::Dependent(_) => CHAINS,
    };
    probe(machine, (ProbeTarget::Pattern(pattern), name), Cycles, published, source, &[], length)
}

/// A probe for loads by one SM of an H100 SXM, in cycles.
const fn port(pattern: (Pattern, &'static str), published: f64) -> Probe {
    self::pattern("h100-sxm", pattern, published, PORT_ROWS)
}

const PORT_ROWS: &str = "crates/validation/data/h100/h100-sxm-80gb.csv, rows gather with level=l2 and warps=32, in_flight with \
                         sms=1, bandwidth with level=l2 and ctas=1, and first_touch with from=l2";

/// A probe for random reads by an H100 SXM, in gigabytes per second.
const fn random(mib: u64, (granule, lanes): (u64, u64), name: &'static str, published: f64) -> Probe {
    let reads = ProbeTarget::Scattered(ScatteredReads::Random { mib, granule, lanes });
    probe("h100-sxm", (reads, name), Gigabytes, published, SCATTERED_ROWS, &[], SCATTERED)
}

/// A probe for strided reads by an H100 SXM, in gigabytes of sectors per second.
const fn strided(stride: u64, name: &'static str, published: f64) -> Probe {
    let reads = ProbeTarget::Scattered(ScatteredReads::Strided { stride });
    probe("h100-sxm", (reads, name), Gigabytes, published, SCATTERED_ROWS, &[], SCATTERED)
}

/// Loads per lane. The measured kernels have 128 or 32.
const SCATTERED: (&str, &[&str]) = ("loads", &["8", "24"]);
const SCATTERED_ROWS: &str = "crates/validation/data/h100/h100-sxm-80gb.csv, rows random_reads and strided_reads";

/// Loads or atomics per warp; a single access for first touches.
const GATHERS: (&str, &[&str]) = ("loads", &["32", "96"]);
const ATOMICS: (&str, &[&str]) = ("atomics", &["8", "24"]);
const CHAINS: (&str, &[&str]) = ("instructions", &["64", "192"]);
const ROUNDS: (&str, &[&str]) = ("rounds", &["4", "12"]);
const ONCE: (&str, &[&str]) = ("touches", &["1"]);
/// Measured on an H100 SXM, with SMs equal to the PCIe card's.
const GATHER_ROWS: &str = "crates/validation/data/h100/h100-sxm-80gb.csv, rows gather with level=l1 and warps=32";
const TOUCH_ROWS: &str = "crates/validation/data/h100/h100-sxm-80gb.csv, rows first_touch with from=memory";
const ATOMIC_ROWS: &str =
    "crates/validation/data/h100/h100-sxm-80gb.csv, row atomic_rate of one word and one lane, at 1980 MHz";
const BROADCAST_ROWS: &str =
    "crates/validation/data/h100/h100-sxm-80gb.csv, rows broadcast with sms=132, warps=1 and path=l1";
const CHAIN_ROWS: &str = "crates/validation/data/h100/h100-sxm-80gb.csv, rows arithmetic with chains=1 and warps=1";
const JIA: &str = "Jia et al. 2018 (arXiv 1804.06826), table 4.1";
const FORUM: &str = "NVIDIA's forum, Pascal L1 cache (2017), of Volta: four tags a cycle, 32 lines of a warp";

impl Probe {
    /// Returns the probe with a reason for its deviation from the published value.
    const fn because(self, why: &'static str) -> Probe {
        Probe { why: Some(why), ..self }
    }
}

/// A single GPU reads or writes a peer's memory: size in MiB.
const PEER: (&str, &[&str]) = ("mib", &["8", "24"]);
/// Copies by an engine; from the first GPU to six peers: 371.0, 376.7, 376.6, 376.8, 375.6, 375.9 GB/s.
const P2P_WRITES: &str = "NVIDIA/nccl issue 1264, p2pBandwidthLatencyTest, one way, P2P writes, mean from GPU 0";

/// Deviation of stores to memory.
const REFRESHED: &str = "all banks of a channel are refreshed together, which takes 12 % of the time; what the L2 still holds at the \
                         end counts as time and not as bytes";
/// Deviation of words in random banks.
const CONFLICTS: &str = "lookups and banks overlap here; on hardware conflicts of random words add to the lookups";
/// Deviation of loads with 32 lines.
const SIDE_BY_SIDE: &str = "requests leave in a cycle and a half each here: on hardware a load of 32 lines from memory takes 107 cycles longer \
                            than one of a line, and three more 155 beyond that";
/// Deviation of lines requested by all SMs.
const EACH_ALONE: &str = "a slice answers each SM on its own; on hardware 132 SMs take no longer than one, so requests of one line are \
                          joined before they reach it";
/// Deviation of atomics.
const A_CYCLE: &str = "a slice takes a request each cycle of the SMs; on hardware an atomic takes one and a half";
/// Deviation of loads that all warps send for few lines.
const ROUND_TRIPS: &str = "all loads of a line wait for one reply here, and the next round starts after it";
/// Deviation of random lines.
const NO_LOSS: &str =
    "requests of 128 bytes take the bus without a gap here; on hardware they leave a fifth of it idle";
/// Deviation of words in every second line.
const ROWS_JOINED: &str =
    "a row stays open here until another row of its bank is needed; on hardware every second line finds it closed";
/// Deviation of L2 streams.
const PORTS_ALONE: &str = "between SMs and slices the model has ports alone, and no network that fills up";

/// The probes.
pub const PROBES: [Probe; 79] = [
    probe("v100", (ProbeTarget::L1, "L1, latency"), Cycles, 29.9, "gpu-latency/v100.txt", IN_L1, WARM),
    probe("v100", (ProbeTarget::L2, "L2, latency"), Cycles, 215.0, "gpu-latency/v100.txt", IN_L2, WARM),
    probe("v100", (ProbeTarget::Dram, "DRAM, latency"), Cycles, 432.0, "gpu-latency/v100.txt", IN_DRAM, COLD),
    probe("v100", (ProbeTarget::L1, "L1, read"), Gigabytes, 13_873.4, "gpu-cache/v100.txt, 64 kB", V100_L1, L1_PASSES),
    probe("v100", (ProbeTarget::L2, "L2, read"), Gigabytes, 2_275.9, "gpu-cache/v100.txt, 280 kB", V100_L2, L2_PASSES)
        .because(PORTS_ALONE),
    probe("v100", (ProbeTarget::Dram, "DRAM, read"), Gigabytes, 866.0, "gpu-stream/v100.txt", V100_READ, V100_NEW),
    probe("v100", (ProbeTarget::Dram, "DRAM, write"), Gigabytes, 895.0, "gpu-stream/v100.txt", V100_WRITE, V100_NEW),
    probe("v100", (ProbeTarget::Dram, "DRAM, copy"), Gigabytes, 802.0, "gpu-stream/v100.txt", V100_COPY, V100_NEW),
    probe("h100", (ProbeTarget::L1, "L1, latency"), Cycles, 34.2, "gpu-latency/h100_pcie.txt", IN_L1, WARM),
    probe("h100", (ProbeTarget::L2, "L2, latency"), Cycles, 265.5, "gpu-latency/h100_pcie.txt", IN_L2, WARM),
    probe("h100", (ProbeTarget::Dram, "DRAM, latency"), Cycles, 644.0, "gpu-latency/h100_pcie.txt", IN_DRAM, COLD),
    probe(
        "h100",
        (ProbeTarget::L1, "L1, read"),
        Gigabytes,
        25_204.7,
        "gpu-cache/h100_pcie.txt, 64 kB",
        H100_L1,
        L1_PASSES,
    ),
    probe(
        "h100",
        (ProbeTarget::L2, "L2, read"),
        Gigabytes,
        6_992.5,
        "gpu-l2-cache/h100_pcie.txt, 12288 kB",
        H100_L2,
        L2_PASSES,
    )
    .because(PORTS_ALONE),
    probe(
        "h100",
        (ProbeTarget::Dram, "DRAM, read"),
        Gigabytes,
        1_942.0,
        "gpu-stream/h100_pcie.txt",
        H100_READ,
        H100_NEW,
    ),
    probe(
        "h100",
        (ProbeTarget::Dram, "DRAM, write"),
        Gigabytes,
        2_016.0,
        "gpu-stream/h100_pcie.txt",
        H100_WRITE,
        H100_NEW,
    )
    .because(REFRESHED),
    probe(
        "h100",
        (ProbeTarget::Dram, "DRAM, copy"),
        Gigabytes,
        1_704.0,
        "gpu-stream/h100_pcie.txt",
        H100_COPY,
        H100_NEW,
    ),
    pattern("v100", (Pattern::Lines, "L1 hit of 32 lines"), 8.0, FORUM),
    pattern("h100", (Pattern::Lines, "L1 hit of 32 lines"), 8.17, GATHER_ROWS),
    pattern("h100", (Pattern::OneBank, "L1 hit of 32 lines in one bank"), 32.24, GATHER_ROWS),
    pattern("h100", (Pattern::RandomWords, "L1 hit of 32 random words"), 10.45, GATHER_ROWS).because(CONFLICTS),
    pattern("h100", (Pattern::Sectors, "first touch of four sectors by four warps"), 721.0, TOUCH_ROWS),
    pattern("h100", (Pattern::Structs, "first touch of 32 structs, four loads"), 1007.5, TOUCH_ROWS)
        .because(SIDE_BY_SIDE),
    pattern("h100", (Pattern::OneWord, "atomic to one word"), 1.5, ATOMIC_ROWS).because(A_CYCLE),
    pattern("h100", (Pattern::Broadcast, "256 lines that all SMs read, from memory"), 23_607.0, BROADCAST_ROWS)
        .because(EACH_ALONE),
    pattern("h100", (Pattern::BroadcastAgain, "256 lines that all SMs read, from the L2"), 11_793.0, BROADCAST_ROWS),
    port((Pattern::L2Lines { lines: 1, spread: true }, "L2 hit of 1 line by 32 warps"), 1.114).because(ROUND_TRIPS),
    port((Pattern::L2Lines { lines: 2, spread: true }, "L2 hit of 2 lines by 32 warps"), 2.180),
    port((Pattern::L2Lines { lines: 4, spread: true }, "L2 hit of 4 lines by 32 warps"), 4.238),
    port((Pattern::L2Lines { lines: 4, spread: false }, "L2 hit of 4 sectors by 32 warps"), 4.150),
    port((Pattern::L2Lines { lines: 8, spread: true }, "L2 hit of 8 lines by 32 warps"), 8.689),
    port((Pattern::L2Lines { lines: 8, spread: false }, "L2 hit of 8 sectors by 32 warps"), 8.242),
    port((Pattern::L2Lines { lines: 16, spread: true }, "L2 hit of 16 lines by 32 warps"), 16.261),
    port((Pattern::L2Lines { lines: 32, spread: true }, "L2 hit of 32 lines by 32 warps"), 32.381),
    port((Pattern::L2Lines { lines: 32, spread: false }, "L2 hit of 32 sectors by 32 warps"), 32.594),
    port((Pattern::L2Words, "L2 hit of a word a lane, per line"), 128.0 / 41.478),
    port((Pattern::L2Vectors, "L2 hit of 16 bytes a lane, per line"), 128.0 / 85.4),
    port((Pattern::StructsFromL2, "32 structs from the L2, beyond a sector"), 196.0),
    random(32, (32, 1), "1 lane a granule of 32 B, random in 32 MiB", 3155.77).because(PORTS_ALONE),
    random(32, (32, 8), "8 lanes a granule of 32 B, random in 32 MiB", 2855.03).because(PORTS_ALONE),
    random(32, (64, 16), "16 lanes a granule of 64 B, random in 32 MiB", 4932.01).because(PORTS_ALONE),
    random(32, (128, 32), "32 lanes a granule of 128 B, random in 32 MiB", 5029.51).because(PORTS_ALONE),
    random(256, (32, 1), "1 lane a granule of 32 B, random in 256 MiB", 1131.0),
    random(256, (32, 8), "8 lanes a granule of 32 B, random in 256 MiB", 1082.16),
    random(256, (64, 16), "16 lanes a granule of 64 B, random in 256 MiB", 2063.63),
    random(256, (128, 32), "32 lanes a granule of 128 B, random in 256 MiB", 2825.2).because(NO_LOSS),
    random(1024, (32, 1), "1 lane a granule of 32 B, random in 1 GiB", 1037.54),
    random(1024, (32, 8), "8 lanes a granule of 32 B, random in 1 GiB", 997.55),
    random(1024, (64, 16), "16 lanes a granule of 64 B, random in 1 GiB", 1907.97),
    random(1024, (128, 32), "32 lanes a granule of 128 B, random in 1 GiB", 2616.68).because(NO_LOSS),
    random(8192, (32, 1), "1 lane a granule of 32 B, random in 8 GiB", 1012.61),
    random(8192, (32, 8), "8 lanes a granule of 32 B, random in 8 GiB", 977.045),
    random(8192, (64, 16), "16 lanes a granule of 64 B, random in 8 GiB", 1846.87),
    random(8192, (128, 32), "32 lanes a granule of 128 B, random in 8 GiB", 2566.99).because(NO_LOSS),
    random(32768, (32, 1), "1 lane a granule of 32 B, random in 32 GiB", 1010.72),
    random(32768, (32, 8), "8 lanes a granule of 32 B, random in 32 GiB", 967.862),
    random(32768, (64, 16), "16 lanes a granule of 64 B, random in 32 GiB", 1841.37),
    random(32768, (128, 32), "32 lanes a granule of 128 B, random in 32 GiB", 2559.39).because(NO_LOSS),
    random(65536, (32, 1), "1 lane a granule of 32 B, random in 64 GiB", 1010.66),
    random(65536, (32, 8), "8 lanes a granule of 32 B, random in 64 GiB", 970.686),
    random(65536, (64, 16), "16 lanes a granule of 64 B, random in 64 GiB", 1846.08),
    random(65536, (128, 32), "32 lanes a granule of 128 B, random in 64 GiB", 2560.91).because(NO_LOSS),
    strided(32, "a word each 32 B", 2864.96),
    strided(64, "a word each 64 B", 1501.18),
    strided(128, "a word each 128 B", 1364.0),
    strided(256, "a word each 256 B", 1022.75).because(ROWS_JOINED),
    strided(512, "a word each 512 B", 1007.04),
    strided(1024, "a word each 1024 B", 996.745),
    strided(2048, "a word each 2048 B", 989.456),
    strided(4096, "a word each 4096 B", 985.041),
    strided(8192, "a word each 8192 B", 980.894),
    pattern("v100", (Pattern::Dependent(ComputeClass::Fp32), "dependent sum in single"), 4.0, JIA),
    pattern("v100", (Pattern::Dependent(ComputeClass::Fp64), "dependent sum in double"), 8.0, JIA),
    pattern("v100", (Pattern::Dependent(ComputeClass::Special), "dependent reciprocal"), 14.0, JIA),
    pattern("h100", (Pattern::Dependent(ComputeClass::Fp32), "dependent sum in single"), 4.11, CHAIN_ROWS),
    pattern("h100", (Pattern::Dependent(ComputeClass::Fp64), "dependent sum in double"), 8.08, CHAIN_ROWS),
    pattern("h100", (Pattern::Dependent(ComputeClass::Special), "dependent power of two"), 17.02, CHAIN_ROWS),
    probe("dgx-h100", (ProbeTarget::Peer, "peer GPU, read"), Gigabytes, 375.4, P2P_WRITES, &[], PEER),
    probe(
        "dgx-h100",
        (ProbeTarget::Peer, "peer GPU, write"),
        Gigabytes,
        375.4,
        P2P_WRITES,
        &[("operation", "write")],
        PEER,
    ),
    probe(
        "dgx-h100",
        (ProbeTarget::Peer, "peer GPU, copy"),
        Gigabytes,
        375.4,
        P2P_WRITES,
        &[("operation", "copy")],
        PEER,
    ),
];

impl Probe {
    /// Source of the published number.
    pub fn source(&self) -> String {
        match self.level {
            ProbeTarget::L1 | ProbeTarget::L2 | ProbeTarget::Dram => format!("{GPU_BENCHES}, {}", self.file),
            ProbeTarget::Peer | ProbeTarget::Pattern(_) | ProbeTarget::Scattered(_) => self.file.to_owned(),
        }
    }

    /// Design for the probe: the machine's own L2 design. Between GPUs, a design with L2s that hold only their own
    /// memory.
    pub fn design(&self) -> &'static str {
        match self.level {
            _ if self.machine == "h100-sxm" => "h100",
            ProbeTarget::L1
            | ProbeTarget::L2
            | ProbeTarget::Dram
            | ProbeTarget::Pattern(_)
            | ProbeTarget::Scattered(_) => self.machine,
            ProbeTarget::Peer => "numa-memory-side",
        }
    }

    /// Probes `machine` under `design`.
    ///
    /// # Errors
    /// See [`EstimateError`]; none for a shipped machine and probe.
    pub fn find(&self, machine: &Arc<MachineConfig>, design: &DesignConfig) -> Result<Finding, EstimateError> {
        let runs: Result<Vec<_>, _> = self.length.1.iter().map(|length| self.run(length, machine, design)).collect();
        // A single length is compared with zero.
        let (long, short) = match &runs?[..] {
            [short, long] => (*long, *short),
            runs => (runs[0], TransferAmount::default()),
        };
        let (time_s, amount) = (long.time_s - short.time_s, long.amount - short.amount);
        let limit = self.limit(machine);
        let simulated = match (self.quantity, self.level) {
            (Quantity::Cycles, _) => time_s * machine.sm.clock.hz() as f64 / amount,
            // A complete stream needs no upper bound, and must show its result without any.
            (Quantity::Gigabytes, ProbeTarget::Dram) => amount / time_s / 1e9,
            // The final phases of two lengths may differ.
            (Quantity::Gigabytes, _) => (amount / time_s / 1e9).min(limit.unwrap_or(f64::INFINITY)),
        };
        Ok(Finding {
            machine: machine.name.clone(),
            name: self.name,
            quantity: self.quantity,
            published: self.published,
            simulated,
            limit,
            source: self.source(),
            why: self.why.filter(|_| (simulated / self.published - 1.0).abs() > 0.15),
        })
    }

    /// Maximum bandwidth in gigabytes per second that the machine description allows at this level. Limits are the L1s'
    /// ports with a line per lookup, the L2s' slices or the crossbar's ports to them, the memories, and the links'
    /// payload without headers.
    fn limit(&self, machine: &MachineConfig) -> Option<f64> {
        let (sms, modules) = (machine.topology.sms() as f64, machine.topology.modules() as f64);
        let rate = |rate: Rate| if rate.is_infinite() { f64::INFINITY } else { rate.0 as f64 };
        let bytes = match self.level {
            ProbeTarget::L1 => {
                let lines = machine.l1.lookups_per_cycle;
                let lines = f64::from(lines.numerator) / f64::from(lines.denominator);
                let looked_up = lines * machine.line.bytes() as f64;
                let read = machine.l1.banks.map_or(f64::INFINITY, |banks| 4.0 * f64::from(banks));
                sms * looked_up.min(read) * machine.sm.clock.hz() as f64
            }
            ProbeTarget::L2 => {
                let slices = modules * f64::from(machine.l2.slices) * rate(machine.l2.rate);
                slices.min(sms * rate(machine.crossbar.rate))
            }
            ProbeTarget::Dram => modules * rate(machine.dram.rate),
            ProbeTarget::Pattern(_) | ProbeTarget::Scattered(_) => return None,
            ProbeTarget::Peer => {
                let header = machine.messages.header_bytes.0;
                let carried = if self.direction() == TransferDirection::Copy {
                    machine.copy.payload.0
                } else {
                    machine.line.bytes()
                };
                let packet = (carried + header).next_multiple_of(machine.messages.flit_bytes);
                rate(machine.gpu_link.rate) * carried as f64 / packet as f64
            }
        };
        (self.quantity == Quantity::Gigabytes && bytes.is_finite()).then_some(bytes / 1e9)
    }

    /// Transfer direction for a probe of a peer GPU's memory.
    fn direction(&self) -> TransferDirection {
        match self.parameters {
            [] => TransferDirection::Read,
            [(_, "copy"), ..] => TransferDirection::Copy,
            [_, ..] => TransferDirection::Write,
        }
    }

    /// Runs the probe at the given length.
    fn run(
        &self,
        length: &str,
        machine: &Arc<MachineConfig>,
        design: &DesignConfig,
    ) -> Result<TransferAmount, EstimateError> {
        if let ProbeTarget::Pattern(pattern) = self.level {
            let length = length.parse().expect("lengths of probes are numbers");
            let (time_s, amount) = measure_pattern(pattern, length, machine, design)?;
            return Ok(TransferAmount { time_s, amount });
        }
        if let ProbeTarget::Scattered(reads) = self.level {
            let loads = length.parse().expect("lengths of probes are numbers");
            let (time_s, amount) = reads.measure(loads, machine, design)?;
            return Ok(TransferAmount { time_s, amount });
        }
        if self.level == ProbeTarget::Peer {
            let direction = self.direction();
            let mib = length.parse().expect("lengths of probes are numbers");
            let (time_s, amount) = measure_transfer(direction, mib, machine, design)?;
            return Ok(TransferAmount { time_s, amount });
        }
        let workload = find(if self.quantity == Quantity::Cycles { "chase" } else { "bandwidth" })?;
        let given = self.parameters.iter().copied().chain([(self.length.0, length)]);
        let parameters: Vec<_> = given.map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        let request = Request::new(workload, Scale::FULL, &parameters, 1)?;
        let options =
            RecordOptions { warp_width: machine.sm.warp_width, line: machine.line, ..RecordOptions::default() };
        let program = Arc::new(record(workload, &request, &options, Mode::Auto)?);
        let (machine, design) = (Arc::clone(machine), design.clone());
        let record = run(&RunSpec { machine, design, program, pages: None, threads: 1 })?;
        let asked = match self.quantity {
            Quantity::Cycles => request.values.count("steps") as f64,
            Quantity::Gigabytes => {
                let ways = if request.values.text("operation") == "copy" { 2 } else { 1 };
                (ways * footprint(workload, &request)?[0].bytes * request.values.count("passes")) as f64
            }
        };
        // Data kept in a cache has not been transferred.
        let moved = (record.dram.read_bytes + record.dram.write_bytes) as f64;
        let is_stream = self.quantity == Quantity::Gigabytes && self.level == ProbeTarget::Dram;
        let amount = if is_stream { asked.min(moved) } else { asked };
        Ok(TransferAmount { time_s: record.gpus.iter().map(|gpu| gpu.busy_s).fold(0.0, f64::max), amount })
    }
}

/// Amount transferred by a run.
#[derive(Clone, Copy, Debug, Default)]
struct TransferAmount {
    /// Seconds from the first CTA launch until the last served request.
    time_s: f64,
    /// Steps or bytes.
    amount: f64,
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;

    fn found(probe: &Probe, settings: &[(&str, &str)]) -> Finding {
        let mut machine = tombolo_machine::machine(probe.machine).unwrap();
        settings.iter().for_each(|(key, value)| machine.set(key, value).unwrap());
        let design = tombolo_design::design(probe.design()).unwrap().check().unwrap();
        probe.find(&Arc::new(machine.check().unwrap()), &design).unwrap()
    }

    #[test]
    fn a_stream_is_below_the_rate_of_its_memory_and_near_it() {
        for rate in ["900GB/s", "450GB/s"] {
            let streams = PROBES.iter().filter(|probe| probe.machine == "v100" && probe.level == ProbeTarget::Dram);
            for probe in streams.filter(|probe| probe.quantity == Quantity::Gigabytes) {
                let found = found(probe, &[("dram.rate", rate)]);
                let limit = found.limit.unwrap();
                assert!((limit - rate[..3].parse::<f64>().unwrap()).abs() < 1e-9, "{limit}");
                let share = found.simulated / limit;
                // For a copy the bus turns around, and all streams wait for refreshes.
                assert!((0.86..1.0).contains(&share), "{}: {share} of {rate}", probe.name);
            }
        }
    }

    #[test]
    fn a_copy_takes_80_to_95_percent_of_the_pins_and_no_more_than_10_percent_from_what_was_published() {
        for probe in PROBES.iter().filter(|probe| probe.name == "DRAM, copy") {
            let found = found(probe, &[]);
            let share = found.simulated / found.limit.unwrap();
            assert!((0.8..=0.95).contains(&share), "{}: {share} of the pins", probe.machine);
            let ratio = found.simulated / found.published;
            assert!((0.9..=1.1).contains(&ratio), "{}: {ratio} of what was published", probe.machine);
        }
    }

    #[test]
    fn no_probe_passes_what_is_physically_possible_and_those_far_off_say_why() {
        possible_and_explained(3);
    }

    #[test]
    #[ignore = "deep: every probe"]
    fn no_probe_at_all_passes_what_is_physically_possible() {
        possible_and_explained(1);
    }

    /// Checks every probe at a multiple of `step`.
    fn possible_and_explained(step: usize) {
        for probe in PROBES.into_iter().step_by(step) {
            let found = found(&probe, &[]);
            if let ProbeTarget::Pattern(pattern) = probe.level {
                let machine = tombolo_machine::machine(probe.machine).unwrap().check().unwrap();
                // Lookups and cycles are whole picoseconds, rounded down: at most 32 of each.
                let least = pattern.least(&machine) - 32e-12 * machine.sm.clock.hz() as f64;
                assert!(
                    found.simulated >= least,
                    "{} {}: {} of {least} cycles",
                    probe.machine,
                    probe.name,
                    found.simulated
                );
            }
            let Finding { name, simulated, limit, published, why, .. } = found;
            assert!(limit.is_none_or(|limit| simulated <= limit), "{} {name}: {simulated:.1}", probe.machine);
            let ratio = simulated / published;
            assert!(
                (0.85..=1.15).contains(&ratio) || why.is_some(),
                "{} {name}: {ratio}, and no reason",
                probe.machine
            );
        }
    }

    #[test]
    fn another_gpus_memory_is_read_and_written_at_the_rate_of_the_link() {
        for probe in PROBES.iter().filter(|probe| probe.level == ProbeTarget::Peer) {
            let machine = Arc::new(tombolo_machine::machine(probe.machine).unwrap().check().unwrap());
            let design = tombolo_design::design(probe.design()).unwrap().check().unwrap();
            let Finding { name, published, simulated, limit, .. } = probe.find(&machine, &design).unwrap();
            let share = simulated / limit.unwrap();
            assert!((0.95..=1.0).contains(&share), "{name}: {simulated:.1} GB/s, {share} of what a link carries");
            let ratio = simulated / published;
            // docs/validation.md explains the larger deviation of copies.
            let most = if probe.direction() == TransferDirection::Copy { 1.15 } else { 1.1 };
            assert!((0.95..most).contains(&ratio), "{name}: {simulated:.1}, published {published}");
        }
    }

    #[test]
    fn latencies_and_bandwidths_are_near_what_was_published() {
        let short = |probe: &&Probe| {
            let is_chase = probe.quantity == Quantity::Cycles && !matches!(probe.level, ProbeTarget::Pattern(_));
            is_chase || (probe.machine == "v100" && probe.name.ends_with("read"))
        };
        for probe in PROBES.iter().filter(short) {
            let machine = Arc::new(tombolo_machine::machine(probe.machine).unwrap().check().unwrap());
            let design = tombolo_design::design(probe.design()).unwrap().check().unwrap();
            let Finding { name, published, simulated, limit, .. } = probe.find(&machine, &design).unwrap();
            assert_eq!(limit.is_some(), probe.quantity == Quantity::Gigabytes, "{name}");
            assert!(
                limit.is_none_or(|limit| simulated <= limit),
                "{} {name}: {simulated:.1} of {limit:?}",
                probe.machine
            );
            let ratio = simulated / published;
            assert!((0.85..1.3).contains(&ratio), "{} {name}: {simulated:.1}, published {published}", probe.machine);
        }
    }
}
