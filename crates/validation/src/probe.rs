//! Microbenchmark results for NVIDIA's GPUs, and the results of equivalent probes on their machine descriptions: the
//! load latency for each memory level, by a pointer chase, and the bandwidth of each level, by streams.
//!
//! A latency, and a cache bandwidth, is the difference between two lengths: launches and cold starts cancel. If the
//! cold starts do not cancel exactly, because the longer run's cold start overlaps more work, the machine's own rate
//! bounds the result. Memory bandwidth is measured with a single long stream, from launch until the last reply. The
//! cost of an instruction with divergent lanes is likewise a difference between two lengths, and a first touch is a
//! separate run.

use crate::estimate::EstimateError;
use crate::pattern::{Pattern, measure_pattern};
use crate::peer::{TransferDirection, measure_transfer};
use crate::scattered::ScatteredReads;
use serde::Serialize;
use std::sync::Arc;
use tombolo_design::DesignConfig;
use tombolo_machine::MachineConfig;
use tombolo_programs::find;
use tombolo_system::{RunSpec, run};
use tombolo_types::Rate;
use tombolo_workload::bench::{Mode, Request, footprint, record};
use tombolo_workload::record::RecordOptions;
use tombolo_workload::scale::Scale;

/// Source of the published numbers for single GPUs.
const GPU_BENCHES: &str = "te42kyfo/gpu-benches at 1c36d50";

mod table;

pub use table::PROBES;

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

impl Probe {
    /// Returns the probe with a reason for its deviation from the published value.
    const fn because(self, why: &'static str) -> Probe {
        Probe { why: Some(why), ..self }
    }
}

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
        possible_and_explained(10);
    }

    #[test]
    #[ignore = "deep: every probe"]
    fn no_probe_at_all_passes_what_is_physically_possible() {
        possible_and_explained(1);
    }

    /// Checks every probe at a multiple of `step`, on two threads.
    fn possible_and_explained(step: usize) {
        std::thread::scope(|scope| {
            for half in 0..2 {
                scope.spawn(move || PROBES.into_iter().step_by(step).skip(half).step_by(2).for_each(assert_explained));
            }
        });
    }

    fn assert_explained(probe: Probe) {
        let found = found(&probe, &[]);
        if let ProbeTarget::Pattern(pattern) = probe.level {
            let machine = tombolo_machine::machine(probe.machine).unwrap().check().unwrap();
            // Lookups and cycles are whole picoseconds, rounded down: at most 32 of each.
            let least = pattern.least(&machine) - 32e-12 * machine.sm.clock.hz() as f64;
            let simulated = found.simulated;
            assert!(simulated >= least, "{} {}: {simulated} of {least} cycles", probe.machine, probe.name);
        }
        let Finding { name, simulated, limit, published, why, .. } = found;
        assert!(limit.is_none_or(|limit| simulated <= limit), "{} {name}: {simulated:.1}", probe.machine);
        let ratio = simulated / published;
        let is_near = (0.85..=1.15).contains(&ratio);
        assert!(is_near || why.is_some(), "{} {name}: {ratio}, and no reason", probe.machine);
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
