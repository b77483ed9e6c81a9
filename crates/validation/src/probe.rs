//! What microbenchmarks found on NVIDIA's GPUs, and what the same probes find on their descriptions: the latency of a
//! load from each level, by a pointer chase, and the bandwidth of each, by streams.
//!
//! A latency, and the bandwidth of a cache, is the difference of two lengths: launches and cold starts cancel. Where they
//! do not quite, for the longer run's cold start overlaps more of its work, the machine's own rate is the most that is
//! told. The bandwidth of memory is that of one long stream, from its launch until the last of it has been served.

use self::Quantity::{Cycles, Gigabytes};
use crate::estimate::EstimateError;
use crate::peer::{Way, moved};
use serde::Serialize;
use std::sync::Arc;
use tombolo_design::DesignConfig;
use tombolo_machine::MachineConfig;
use tombolo_system::{RunSpec, run};
use tombolo_types::Rate;
use tombolo_workload::bench::{Mode, Request, find, footprint, record};
use tombolo_workload::record::RecordOptions;
use tombolo_workload::scale::Scale;

/// Where the published numbers of single GPUs come from.
const GPU_BENCHES: &str = "te42kyfo/gpu-benches at 1c36d50";

/// What a probe finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Quantity {
    /// Cycles of the SMs' clock from load to load.
    Cycles,
    /// Gigabytes (10^9 bytes) a second.
    Gigabytes,
}

/// What is probed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// The L1 caches.
    L1,
    /// The L2 caches.
    L2,
    /// Memory.
    Dram,
    /// The memory of another GPU.
    Peer,
}

/// A probe of one machine with its published result.
#[derive(Clone, Copy, Debug)]
pub struct Probe {
    /// The machine.
    pub machine: &'static str,
    /// What is probed.
    pub level: Level,
    /// The same with how, in words.
    pub name: &'static str,
    /// What it finds.
    pub quantity: Quantity,
    /// What was measured on hardware.
    pub published: f64,
    /// The file of [`Probe::source`] that says so; between GPUs the whole source.
    pub file: &'static str,
    parameters: &'static [(&'static str, &'static str)],
    /// The parameter that is the length, and one length, or two whose difference counts.
    length: (&'static str, &'static [&'static str]),
}

/// A probe's result beside the published one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// The machine.
    pub machine: String,
    /// What was probed.
    pub name: &'static str,
    /// In what.
    pub quantity: Quantity,
    /// Measured on hardware.
    pub published: f64,
    /// Simulated.
    pub simulated: f64,
    /// The most that the machine's description allows; none of a latency, or of what it gives no rate.
    pub limit: Option<f64>,
    /// Where the published number is from.
    pub source: String,
}

const fn probe(
    machine: &'static str,
    (level, name): (Level, &'static str),
    quantity: Quantity,
    published: f64,
    file: &'static str,
    parameters: &'static [(&'static str, &'static str)],
    length: (&'static str, &'static [&'static str]),
) -> Probe {
    Probe { machine, level, name, quantity, published, file, parameters, length }
}

/// Rings: within the L1; within the L2, where the first lap is cold; beyond it, where each step meets a new line.
const IN_L1: &[(&str, &str)] = &[("kib", "32")];
const IN_L2: &[(&str, &str)] = &[("kib", "512")];
const IN_DRAM: &[(&str, &str)] = &[("kib", "65536")];
const WARM: (&str, &[&str]) = ("steps", &["4096", "8192"]);
const COLD: (&str, &[&str]) = ("steps", &["4096", "12288"]);

/// Streams within the L1s: a CTA an SM, which stays on its own 64 KiB; the first passes fill the L1s.
const V100_L1: &[(&str, &str)] = &[("ctas", "80"), ("kib", "5120"), ("parts", "own")];
const H100_L1: &[(&str, &str)] = &[("ctas", "114"), ("kib", "7296"), ("parts", "own")];
const L1_PASSES: (&str, &[&str]) = ("passes", &["4", "12"]);
/// Streams within the L2: two CTAs an SM, which go on to parts that their L1 has not seen; the first passes fill
/// the L2.
const V100_L2: &[(&str, &str)] = &[("ctas", "160"), ("kib", "5120")];
const H100_L2: &[(&str, &str)] = &[("ctas", "228"), ("kib", "10944")];
const L2_PASSES: (&str, &[&str]) = ("passes", &["2", "6"]);
/// Streams beyond: two CTAs an SM through an array that no cache has seen, ten times the L2 of V100 and four times that of
/// H100, in KiB.
const V100_NEW: (&str, &[&str]) = ("kib", &["61440"]);
const H100_NEW: (&str, &[&str]) = ("kib", &["196992"]);
const V100_READ: &[(&str, &str)] = &[("ctas", "160")];
const V100_WRITE: &[(&str, &str)] = &[("ctas", "160"), ("operation", "write")];
const V100_COPY: &[(&str, &str)] = &[("ctas", "160"), ("operation", "copy")];
const H100_READ: &[(&str, &str)] = &[("ctas", "228")];
const H100_WRITE: &[(&str, &str)] = &[("ctas", "228"), ("operation", "write")];
const H100_COPY: &[(&str, &str)] = &[("ctas", "228"), ("operation", "copy")];

/// One GPU alone reads or writes another's memory: bytes, in MiB.
const PEER: (&str, &[&str]) = ("mib", &["8", "24"]);
/// Copies by an engine; its first GPU's, to six others: 371.0, 376.7, 376.6, 376.8, 375.6, 375.9 GB/s.
const P2P_WRITES: &str = "NVIDIA/nccl issue 1264, p2pBandwidthLatencyTest, one way, P2P writes, mean from GPU 0";

/// The probes.
pub const PROBES: [Probe; 19] = [
    probe("v100", (Level::L1, "L1, latency"), Cycles, 29.9, "gpu-latency/v100.txt", IN_L1, WARM),
    probe("v100", (Level::L2, "L2, latency"), Cycles, 215.0, "gpu-latency/v100.txt", IN_L2, WARM),
    probe("v100", (Level::Dram, "DRAM, latency"), Cycles, 432.0, "gpu-latency/v100.txt", IN_DRAM, COLD),
    probe("v100", (Level::L1, "L1, read"), Gigabytes, 13_873.4, "gpu-cache/v100.txt, 64 kB", V100_L1, L1_PASSES),
    probe("v100", (Level::L2, "L2, read"), Gigabytes, 2_275.9, "gpu-cache/v100.txt, 280 kB", V100_L2, L2_PASSES),
    probe("v100", (Level::Dram, "DRAM, read"), Gigabytes, 866.0, "gpu-stream/v100.txt", V100_READ, V100_NEW),
    probe("v100", (Level::Dram, "DRAM, write"), Gigabytes, 895.0, "gpu-stream/v100.txt", V100_WRITE, V100_NEW),
    probe("v100", (Level::Dram, "DRAM, copy"), Gigabytes, 802.0, "gpu-stream/v100.txt", V100_COPY, V100_NEW),
    probe("h100", (Level::L1, "L1, latency"), Cycles, 34.2, "gpu-latency/h100_pcie.txt", IN_L1, WARM),
    probe("h100", (Level::L2, "L2, latency"), Cycles, 265.5, "gpu-latency/h100_pcie.txt", IN_L2, WARM),
    probe("h100", (Level::Dram, "DRAM, latency"), Cycles, 644.0, "gpu-latency/h100_pcie.txt", IN_DRAM, COLD),
    probe("h100", (Level::L1, "L1, read"), Gigabytes, 25_204.7, "gpu-cache/h100_pcie.txt, 64 kB", H100_L1, L1_PASSES),
    probe(
        "h100",
        (Level::L2, "L2, read"),
        Gigabytes,
        6_992.5,
        "gpu-l2-cache/h100_pcie.txt, 12288 kB",
        H100_L2,
        L2_PASSES,
    ),
    probe("h100", (Level::Dram, "DRAM, read"), Gigabytes, 1_942.0, "gpu-stream/h100_pcie.txt", H100_READ, H100_NEW),
    probe("h100", (Level::Dram, "DRAM, write"), Gigabytes, 2_016.0, "gpu-stream/h100_pcie.txt", H100_WRITE, H100_NEW),
    probe("h100", (Level::Dram, "DRAM, copy"), Gigabytes, 1_704.0, "gpu-stream/h100_pcie.txt", H100_COPY, H100_NEW),
    probe("dgx-h100", (Level::Peer, "peer GPU, read"), Gigabytes, 375.4, P2P_WRITES, &[], PEER),
    probe("dgx-h100", (Level::Peer, "peer GPU, write"), Gigabytes, 375.4, P2P_WRITES, &[("operation", "write")], PEER),
    probe("dgx-h100", (Level::Peer, "peer GPU, copy"), Gigabytes, 375.4, P2P_WRITES, &[("operation", "copy")], PEER),
];

impl Probe {
    /// Where the published number is from.
    pub fn source(&self) -> String {
        match self.level {
            Level::L1 | Level::L2 | Level::Dram => format!("{GPU_BENCHES}, {}", self.file),
            Level::Peer => self.file.to_owned(),
        }
    }

    /// The design that a probe runs under: that of the machine's own L2, which between GPUs holds its own memory alone.
    pub fn design(&self) -> &'static str {
        match self.level {
            Level::L1 | Level::L2 | Level::Dram => self.machine,
            Level::Peer => "numa-memory-side",
        }
    }

    /// Probes `machine` under `design`.
    ///
    /// # Errors
    /// See [`EstimateError`]; none where machine and probe are those that ship.
    pub fn find(&self, machine: &Arc<MachineConfig>, design: &DesignConfig) -> Result<Finding, EstimateError> {
        let runs: Result<Vec<_>, _> = self.length.1.iter().map(|length| self.run(length, machine, design)).collect();
        // A single length counts from nothing.
        let (long, short) = match &runs?[..] {
            [short, long] => (*long, *short),
            runs => (runs[0], Moved::default()),
        };
        let (time_s, amount) = (long.time_s - short.time_s, long.amount - short.amount);
        let limit = self.limit(machine);
        let simulated = match (self.quantity, self.level) {
            (Quantity::Cycles, _) => time_s * machine.sm.clock.hz() as f64 / amount,
            // One stream from its start to its end needs no bound, and is to be seen without.
            (Quantity::Gigabytes, Level::Dram) => amount / time_s / 1e9,
            // The ends of two lengths may differ.
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
        })
    }

    /// Gigabytes a second that the machine's description allows at this level: the L1s' ports a line at a time, the L2s'
    /// slices or the crossbar's ports to them, the memories, the links' lines beside their headers.
    fn limit(&self, machine: &MachineConfig) -> Option<f64> {
        let (sms, modules) = (machine.topology.sms() as f64, machine.topology.modules() as f64);
        let rate = |rate: Rate| if rate.is_infinite() { f64::INFINITY } else { rate.0 as f64 };
        let bytes = match self.level {
            Level::L1 => {
                let lines = machine.l1.lookups_per_cycle;
                let lines = f64::from(lines.numerator) / f64::from(lines.denominator);
                let looked_up = lines * machine.line.bytes() as f64;
                let read = if machine.l1.banks == 0 { f64::INFINITY } else { 4.0 * f64::from(machine.l1.banks) };
                sms * looked_up.min(read) * machine.sm.clock.hz() as f64
            }
            Level::L2 => {
                let slices = modules * f64::from(machine.l2.slices) * rate(machine.l2.rate);
                slices.min(sms * rate(machine.crossbar.rate))
            }
            Level::Dram => modules * rate(machine.dram.rate),
            Level::Peer => {
                let header = machine.messages.header_bytes.0;
                let carried = if self.way() == Way::Copy { machine.copy.payload.0 } else { machine.line.bytes() };
                let packet = (carried + header).next_multiple_of(machine.messages.flit_bytes);
                rate(machine.gpu_link.rate) * carried as f64 / packet as f64
            }
        };
        (self.quantity == Quantity::Gigabytes && bytes.is_finite()).then_some(bytes / 1e9)
    }

    /// Of a probe of another GPU's memory: which way the bytes go.
    fn way(&self) -> Way {
        match self.parameters {
            [] => Way::Read,
            [(_, "copy"), ..] => Way::Copy,
            [_, ..] => Way::Write,
        }
    }

    /// A run at a length.
    fn run(&self, length: &str, machine: &Arc<MachineConfig>, design: &DesignConfig) -> Result<Moved, EstimateError> {
        if self.level == Level::Peer {
            let way = self.way();
            let mib = length.parse().expect("lengths of probes are numbers");
            let (time_s, amount) = moved(way, mib, machine, design)?;
            return Ok(Moved { time_s, amount });
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
        // What a cache keeps has not been moved.
        let moved = (record.dram.read_bytes + record.dram.write_bytes) as f64;
        let is_stream = self.quantity == Quantity::Gigabytes && self.level == Level::Dram;
        let amount = if is_stream { asked.min(moved) } else { asked };
        Ok(Moved { time_s: record.gpus.iter().map(|gpu| gpu.busy_s).fold(0.0, f64::max), amount })
    }
}

/// What a run moved.
#[derive(Clone, Copy, Debug, Default)]
struct Moved {
    /// Seconds from the launch of its CTAs until the last was served.
    time_s: f64,
    /// Steps or bytes.
    amount: f64,
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_below_the_rate_of_its_memory_and_near_it() {
        let design = tombolo_design::design("v100").unwrap().check().unwrap();
        for rate in ["900GB/s", "450GB/s"] {
            let mut machine = tombolo_machine::machine("v100").unwrap();
            machine.set("dram.rate", rate).unwrap();
            let machine = Arc::new(machine.check().unwrap());
            let streams = PROBES.iter().filter(|probe| probe.machine == "v100" && probe.level == Level::Dram);
            for probe in streams.filter(|probe| probe.quantity == Quantity::Gigabytes) {
                let found = probe.find(&machine, &design).unwrap();
                let limit = found.limit.unwrap();
                assert!((limit - machine.dram.rate.0 as f64 / 1e9).abs() < 1e-9, "{limit}");
                let share = found.simulated / limit;
                assert!((0.93..1.0).contains(&share), "{}: {share} of {rate}", probe.name);
            }
        }
    }

    #[test]
    fn another_gpus_memory_is_read_and_written_at_the_rate_of_the_link() {
        for probe in PROBES.iter().filter(|probe| probe.level == Level::Peer) {
            let machine = Arc::new(tombolo_machine::machine(probe.machine).unwrap().check().unwrap());
            let design = tombolo_design::design(probe.design()).unwrap().check().unwrap();
            let Finding { name, published, simulated, limit, .. } = probe.find(&machine, &design).unwrap();
            let share = simulated / limit.unwrap();
            assert!((0.95..=1.0).contains(&share), "{name}: {simulated:.1} GB/s, {share} of what a link carries");
            let ratio = simulated / published;
            // docs/validation.md says why copies are farther above.
            let most = if probe.way() == Way::Copy { 1.15 } else { 1.1 };
            assert!((0.95..most).contains(&ratio), "{name}: {simulated:.1}, published {published}");
        }
    }

    #[test]
    fn latencies_and_bandwidths_are_near_what_was_published() {
        let short = |probe: &&Probe| {
            probe.quantity == Quantity::Cycles || (probe.machine == "v100" && probe.name.ends_with("read"))
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
