//! What microbenchmarks found on NVIDIA's GPUs, and what the same probes find on their descriptions: the latency of a
//! load from each level, by a pointer chase, and the bandwidth of each, by streams.
//!
//! A probe is run at two lengths, and the difference counts: launches and cold starts cancel.

use self::Quantity::{Cycles, Gigabytes};
use crate::estimate::EstimateError;
use serde::Serialize;
use std::sync::Arc;
use tombolo_machine::{DesignConfig, MachineConfig};
use tombolo_system::{RunSpec, run};
use tombolo_workload::bench::{Mode, Request, find, footprint, record};
use tombolo_workload::record::RecordOptions;
use tombolo_workload::scale::Scale;

/// Where the published numbers come from.
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

/// A probe of one machine with its published result.
#[derive(Clone, Copy, Debug)]
pub struct Probe {
    /// The machine.
    pub machine: &'static str,
    /// What is probed.
    pub name: &'static str,
    /// What it finds.
    pub quantity: Quantity,
    /// What was measured on hardware.
    pub published: f64,
    /// The file of [`Probe::source`] that says so.
    pub file: &'static str,
    parameters: &'static [(&'static str, &'static str)],
    /// The parameter that differs between the two lengths, and both.
    length: (&'static str, [&'static str; 2]),
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
    /// Where the published number is from.
    pub source: String,
}

const fn probe(
    machine: &'static str,
    name: &'static str,
    quantity: Quantity,
    published: f64,
    file: &'static str,
    parameters: &'static [(&'static str, &'static str)],
    length: (&'static str, [&'static str; 2]),
) -> Probe {
    Probe { machine, name, quantity, published, file, parameters, length }
}

/// Rings: within the L1; within the L2, where the first lap is cold; beyond it, where each step meets a new line.
const IN_L1: &[(&str, &str)] = &[("kib", "32")];
const IN_L2: &[(&str, &str)] = &[("kib", "512")];
const IN_DRAM: &[(&str, &str)] = &[("kib", "65536")];
const WARM: (&str, [&str; 2]) = ("steps", ["4096", "8192"]);
const COLD: (&str, [&str; 2]) = ("steps", ["4096", "12288"]);

/// Streams within the L1s: a CTA an SM, which stays on its own 64 KiB; the first passes fill the L1s.
const V100_L1: &[(&str, &str)] = &[("ctas", "80"), ("kib", "5120"), ("parts", "own")];
const H100_L1: &[(&str, &str)] = &[("ctas", "114"), ("kib", "7296"), ("parts", "own")];
const L1_PASSES: (&str, [&str; 2]) = ("passes", ["4", "12"]);
/// Streams within the L2: two CTAs an SM, which go on to parts that their L1 has not seen; the first passes fill
/// the L2.
const V100_L2: &[(&str, &str)] = &[("ctas", "160"), ("kib", "5120")];
const H100_L2: &[(&str, &str)] = &[("ctas", "228"), ("kib", "10944")];
const L2_PASSES: (&str, [&str; 2]) = ("passes", ["2", "6"]);
/// Streams beyond: two CTAs an SM through arrays that no cache has seen, of two sizes in KiB.
const V100_NEW: (&str, [&str; 2]) = ("kib", ["7680", "28160"]);
const H100_NEW: (&str, [&str; 2]) = ("kib", ["10944", "32832"]);
const V100_READ: &[(&str, &str)] = &[("ctas", "160")];
const V100_WRITE: &[(&str, &str)] = &[("ctas", "160"), ("operation", "write")];
const V100_COPY: &[(&str, &str)] = &[("ctas", "160"), ("operation", "copy")];
const H100_READ: &[(&str, &str)] = &[("ctas", "228")];
const H100_WRITE: &[(&str, &str)] = &[("ctas", "228"), ("operation", "write")];
const H100_COPY: &[(&str, &str)] = &[("ctas", "228"), ("operation", "copy")];

/// The probes.
pub const PROBES: [Probe; 16] = [
    probe("v100", "L1, latency", Cycles, 29.9, "gpu-latency/v100.txt", IN_L1, WARM),
    probe("v100", "L2, latency", Cycles, 215.0, "gpu-latency/v100.txt", IN_L2, WARM),
    probe("v100", "DRAM, latency", Cycles, 432.0, "gpu-latency/v100.txt", IN_DRAM, COLD),
    probe("v100", "L1, read", Gigabytes, 13_873.4, "gpu-cache/v100.txt, 64 kB", V100_L1, L1_PASSES),
    probe("v100", "L2, read", Gigabytes, 2_275.9, "gpu-cache/v100.txt, 280 kB", V100_L2, L2_PASSES),
    probe("v100", "DRAM, read", Gigabytes, 866.0, "gpu-stream/v100.txt", V100_READ, V100_NEW),
    probe("v100", "DRAM, write", Gigabytes, 895.0, "gpu-stream/v100.txt", V100_WRITE, V100_NEW),
    probe("v100", "DRAM, copy", Gigabytes, 802.0, "gpu-stream/v100.txt", V100_COPY, V100_NEW),
    probe("h100", "L1, latency", Cycles, 34.2, "gpu-latency/h100_pcie.txt", IN_L1, WARM),
    probe("h100", "L2, latency", Cycles, 265.5, "gpu-latency/h100_pcie.txt", IN_L2, WARM),
    probe("h100", "DRAM, latency", Cycles, 644.0, "gpu-latency/h100_pcie.txt", IN_DRAM, COLD),
    probe("h100", "L1, read", Gigabytes, 25_204.7, "gpu-cache/h100_pcie.txt, 64 kB", H100_L1, L1_PASSES),
    probe("h100", "L2, read", Gigabytes, 6_992.5, "gpu-l2-cache/h100_pcie.txt, 12288 kB", H100_L2, L2_PASSES),
    probe("h100", "DRAM, read", Gigabytes, 1_942.0, "gpu-stream/h100_pcie.txt", H100_READ, H100_NEW),
    probe("h100", "DRAM, write", Gigabytes, 2_016.0, "gpu-stream/h100_pcie.txt", H100_WRITE, H100_NEW),
    probe("h100", "DRAM, copy", Gigabytes, 1_704.0, "gpu-stream/h100_pcie.txt", H100_COPY, H100_NEW),
];

impl Probe {
    /// Where the published number is from.
    pub fn source(&self) -> String {
        format!("{GPU_BENCHES}, {}", self.file)
    }

    /// Probes `machine` under `design`.
    ///
    /// # Errors
    /// See [`EstimateError`]; none where machine and probe are those that ship.
    pub fn find(&self, machine: &Arc<MachineConfig>, design: &DesignConfig) -> Result<Finding, EstimateError> {
        let [short, long] = self.length.1;
        let (short, long) = (self.run(short, machine, design)?, self.run(long, machine, design)?);
        let (time_s, amount) = (long.0 - short.0, long.1 - short.1);
        let simulated = match self.quantity {
            Quantity::Cycles => time_s * machine.sm.clock.hz() as f64 / amount,
            Quantity::Gigabytes => amount / time_s / 1e9,
        };
        Ok(Finding {
            machine: machine.name.clone(),
            name: self.name,
            quantity: self.quantity,
            published: self.published,
            simulated,
            source: self.source(),
        })
    }

    /// Seconds of a run at a length, and the steps or bytes that it made.
    fn run(
        &self,
        length: &str,
        machine: &Arc<MachineConfig>,
        design: &DesignConfig,
    ) -> Result<(f64, f64), EstimateError> {
        let workload = find(if self.quantity == Quantity::Cycles { "chase" } else { "bandwidth" })?;
        let given = self.parameters.iter().copied().chain([(self.length.0, length)]);
        let parameters: Vec<_> = given.map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        let request = Request::new(workload, Scale::FULL, &parameters, 1)?;
        let options =
            RecordOptions { warp_width: machine.sm.warp_width, line: machine.line, ..RecordOptions::default() };
        let program = Arc::new(record(workload, &request, &options, Mode::Auto)?);
        let (machine, design) = (Arc::clone(machine), design.clone());
        let record = run(&RunSpec { machine, design, program, pages: None, threads: 1 })?;
        let kernel = record.kernels.last().map_or(0.0, |kernel| kernel.end_s - kernel.start_s);
        let amount = match self.quantity {
            Quantity::Cycles => request.values.count("steps") as f64,
            Quantity::Gigabytes => {
                let ways = if request.values.text("operation") == "copy" { 2 } else { 1 };
                (ways * footprint(workload, &request)?[0].bytes * request.values.count("passes")) as f64
            }
        };
        Ok((kernel, amount))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;

    #[test]
    fn latencies_and_bandwidths_are_near_what_was_published() {
        let design = tombolo_machine::design("no-remote-caching").unwrap().check().unwrap();
        let short = |probe: &&Probe| {
            probe.quantity == Quantity::Cycles || (probe.machine == "v100" && probe.name.ends_with("read"))
        };
        for probe in PROBES.iter().filter(short) {
            let machine = Arc::new(tombolo_machine::machine(probe.machine).unwrap().check().unwrap());
            let Finding { name, published, simulated, .. } = probe.find(&machine, &design).unwrap();
            let ratio = simulated / published;
            assert!((0.85..1.3).contains(&ratio), "{} {name}: {simulated:.1}, published {published}", probe.machine);
        }
    }
}
