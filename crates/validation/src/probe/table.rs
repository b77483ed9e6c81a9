//! The probes, with their published values, sources and causes of deviations.

use super::Quantity::{Cycles, Gigabytes};
use super::{Probe, ProbeTarget, Quantity};
use crate::pattern::Pattern;
use crate::scattered::ScatteredReads;
use tombolo_types::stream::ComputeClass;

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
