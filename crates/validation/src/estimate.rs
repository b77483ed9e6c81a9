//! Estimates the time for a case on a machine.
//!
//! The sample chosen by [`tombolo_workload::record::Sample`] is recorded and run, and the total time is projected from
//! the times of its launches. Measurements repeat their body, therefore caches start in the state left by the previous
//! repetition. Memory-side caches contain the ends of the program's arrays, up to the available capacity. The other
//! caches, if the program fits into the L2s, hold the data left by its launches (or by the last launch, if the launches
//! are long).

use crate::suite::{Case, HostCopy, TimedBody};
use std::collections::BTreeSet;
use std::sync::Arc;
use thiserror::Error;
use tombolo_design::DesignConfig;
use tombolo_machine::MachineConfig;
use tombolo_programs::find;
use tombolo_system::record::KernelRecord;
use tombolo_system::{Projection, ResidentLines, RunError, RunSpec, Simulation, sample};
use tombolo_types::stream::{Command, CtaStream, KernelInfo, Op, Program, StreamError};
use tombolo_types::{Line, LineSize, Rate};
use tombolo_workload::bench::{Mode, Request, WorkloadError, record};
use tombolo_workload::record::{LaunchDurations, LaunchWeights, RecordOptions, Recording};
use tombolo_workload::scale::Scale;
use tombolo_workload::simt::ArrayInfo;

/// Seed for generated inputs: any number.
pub const SEED: u64 = 1;

/// Host time for awaiting all kernels, plus the event afterwards. Source: fitted on floydwarshall 24_nodes, beyond its
/// copies and launches.
const SYNCHRONIZE_S: f64 = 14.5e-6;

/// Size in bytes up to which the host writes directly to device memory without copying. Source: `kMaxH2dMemcpySize` in
/// ROCm's runtime (rocclr): 8 KiB; this interpretation of the constant is assumed.
const WRITTEN_BYTES: u64 = 8 << 10;

/// Duration of a direct host write. Source: fitted on pagerank nodes64.
const WRITE_S: f64 = 4e-6;

/// Size in bytes up to which a copy from or to pageable memory goes through a pinned runtime buffer, which the host
/// fills and empties; larger copies pin the memory. Source: ROCm's runtime (rocclr): one staging buffer, 1 MiB.
const STAGED_BYTES: u64 = 1 << 20;
/// Rate at which the host fills the staging buffer for transfers to the device. Source: fitted on memcopy_h2d 1MB.
const STAGED_TO_DEVICE: Rate = Rate(17_700_000_000);
/// Rate at which the host empties the staging buffer after transfers to the host. Source: fitted on memcopy_d2h 1MB.
const STAGED_TO_HOST: Rate = Rate(3_420_000_000);

/// Steps for the parallel walk over the arrays left in a cache. Source: assumed: steps of at most half a megabyte,
/// small compared with a sample's footprint.
const STEPS: u64 = 1024;

/// Reason why a case yielded no time.
#[derive(Debug, Error)]
pub enum EstimateError {
    /// The workload could not be recorded.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// The program could not be run.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The recording could not be read.
    #[error(transparent)]
    Stream(#[from] StreamError),
    /// The executed sample cannot represent the whole.
    #[error("the parts that ran project to {0} s for the whole, which is no time: run it with --whole")]
    Projection(f64),
}

/// A simulated time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Seconds.
    pub time_s: f64,
    /// Set if a simulated sample represents the whole.
    pub sampled: bool,
    /// Estimated sampling error in seconds, derived from the difference between halves of the sample.
    pub error_s: f64,
}

/// Estimates times on a machine.
#[derive(Clone)]
pub struct Estimator {
    /// The machine.
    pub machine: Arc<MachineConfig>,
    /// The design.
    pub design: DesignConfig,
    /// Set to run only a sample; otherwise the complete program is run.
    pub samples: bool,
}

/// Times of a launch, for projecting a whole program from samples.
fn durations_of(kernel: &KernelRecord) -> LaunchDurations {
    LaunchDurations { total_s: kernel.end_s - kernel.start_s, quarters_s: kernel.quarters_s }
}

/// Projection for the parts, if the result is a valid time.
fn projected(parts: &[LaunchWeights], durations: &[LaunchDurations]) -> Result<Projection, EstimateError> {
    let projection = Projection::of(parts, durations);
    if projection.time_s < 0.0 { Err(EstimateError::Projection(projection.time_s)) } else { Ok(projection) }
}

/// Only a recording's launches, preceded by launches for warming the caches.
struct WarmedLaunches {
    recording: Recording,
    commands: Vec<Command>,
}

/// Maximum warp instructions up to which all launches in a program run again to warm the caches. For larger programs
/// only the last launch is repeated, for samples all launches. Source: assumed: a second of simulation.
const WARM_INSTRUCTIONS: u64 = 300_000;

impl WarmedLaunches {
    fn new(recording: Recording, warms: bool) -> WarmedLaunches {
        let launches = recording.commands().iter().filter(|command| matches!(command, Command::Launch { .. }));
        let mut commands: Vec<Command> = launches.cloned().collect();
        let again = match commands.len() {
            count if !recording.is_sampled() && recording.instructions() > WARM_INSTRUCTIONS => count.min(1),
            count => count,
        };
        if warms {
            commands.splice(0..0, commands[commands.len() - again..].to_vec());
        }
        WarmedLaunches { recording, commands }
    }
}

impl Program for WarmedLaunches {
    fn name(&self) -> &str {
        self.recording.name()
    }

    fn line_size(&self) -> LineSize {
        self.recording.line_size()
    }

    fn warp_width(&self) -> u32 {
        self.recording.warp_width()
    }

    fn kernels(&self) -> &[KernelInfo] {
        self.recording.kernels()
    }

    fn commands(&self) -> &[Command] {
        &self.commands
    }

    fn cta(&self, kernel: u32, cta: u32, into: &mut CtaStream) -> Result<(), StreamError> {
        self.recording.cta(kernel, cta, into)
    }
}

impl Estimator {
    /// Estimates the time for `case` on the machine, on the calling thread.
    ///
    /// # Errors
    /// See [`EstimateError`].
    pub fn estimate(&self, case: &Case) -> Result<Estimate, EstimateError> {
        let recording = self.record(case)?;
        let sampled = recording.is_sampled();
        let (parts, launches) = (recording.parts().to_vec(), recording.launches());
        let footprint: u64 = recording.arrays().iter().map(|array| array.bytes).sum();
        let warms = footprint <= self.machine.l2.bytes * self.machine.topology.modules() as u64;
        let resident = self.resident(&recording)?;
        let program = Arc::new(WarmedLaunches::new(recording, warms));
        let kernels = if parts.is_empty() {
            Vec::new()
        } else {
            let (machine, design) = (Arc::clone(&self.machine), self.design.clone());
            Simulation::new(&RunSpec { machine, design, program, pages: None, threads: 1 })
                .resident(&resident)
                .run()?
                .record
                .kernels
        };
        let last = &kernels[kernels.len() - parts.len()..];
        let durations: Vec<_> = last.iter().map(durations_of).collect();
        let Projection { time_s, error_s } = projected(&parts, &durations)?;
        let time_s = time_s + self.launching(launches, &case.body) + self.copying(&case.body);
        Ok(Estimate { time_s, sampled, error_s })
    }

    fn record(&self, case: &Case) -> Result<Recording, EstimateError> {
        let workload = find(case.workload)?;
        let request = Request::new(workload, Scale::FULL, &case.parameters, SEED)?;
        let options = RecordOptions {
            warp_width: self.machine.sm.warp_width,
            line: self.machine.line,
            sample: self.samples.then(|| sample(&self.machine, &self.design)),
            ..RecordOptions::default()
        };
        Ok(record(workload, &request, &options, Mode::Auto)?)
    }

    /// Contents of the memory-side caches after a run: all arrays, or the end of each array. Arrays are walked in
    /// parallel, in the manner of kernels.
    fn resident(&self, recording: &Recording) -> Result<Vec<ResidentLines>, StreamError> {
        let line = self.machine.line.bytes();
        let written = written(recording)?;
        let lines = |array: &ArrayInfo| array.bytes.div_ceil(line);
        let all: u64 = recording.arrays().iter().map(lines).sum();
        let room = self.machine.memory_cache.bytes.0 / line * self.machine.topology.modules() as u64;
        let mut resident = Vec::new();
        for step in 0..STEPS {
            for (index, array) in recording.arrays().iter().enumerate() {
                let lines = lines(array);
                let kept = if all <= room { lines } else { share(lines, room, all) };
                let (from, to) = (share(kept, step, STEPS), share(kept, step + 1, STEPS));
                let first = Line(recording.line_size().line_of(array.base).0 + lines - kept + from);
                resident.push(ResidentLines { first, lines: to - from, dirty: written.contains(&index) });
            }
        }
        Ok(resident)
    }

    /// Launch overhead in seconds: the first kernel starts on an idle machine, each further kernel after its
    /// predecessor.
    fn launching(&self, launches: u64, body: &TimedBody) -> f64 {
        let host = &self.machine.host;
        let (first, next) = (host.launch_latency.seconds(), host.dependent_launch_latency.seconds());
        match launches + body.fills {
            0 => 0.0,
            rounds if body.rounds => {
                // A flag copied in, the launch, the wait for its end, and the flag copied back.
                rounds as f64 * (WRITE_S + first + SYNCHRONIZE_S + host.copy_latency.seconds())
            }
            all => first + (all - 1) as f64 * next + if body.synchronizes { SYNCHRONIZE_S } else { 0.0 },
        }
    }

    /// Duration of all copies in seconds, executed sequentially.
    fn copying(&self, body: &TimedBody) -> f64 {
        let host = &self.machine.host;
        let seconds = |copy: &HostCopy| {
            if copy.to_device && copy.bytes <= WRITTEN_BYTES {
                return WRITE_S;
            }
            let rate = match (copy.bytes <= STAGED_BYTES, copy.to_device) {
                (false, _) => host.copy_rate,
                (true, true) => STAGED_TO_DEVICE,
                (true, false) => STAGED_TO_HOST,
            };
            let transfer = if rate.is_infinite() { 0.0 } else { copy.bytes as f64 / rate.0 as f64 };
            host.copy_latency.seconds() + transfer
        };
        body.copies.iter().map(seconds).sum()
    }
}

/// `count × part / whole`, rounded down; `part` is at most `whole`.
fn share(count: u64, part: u64, whole: u64) -> u64 {
    (u128::from(count) * u128::from(part) / u128::from(whole)) as u64
}

/// Indices of the arrays with program stores, determined from the first CTA in each kernel.
fn written(recording: &Recording) -> Result<BTreeSet<usize>, StreamError> {
    let mut found = BTreeSet::new();
    let mut stream = CtaStream::default();
    for kernel in 0..recording.kernels().len() as u32 {
        recording.cta(kernel, 0, &mut stream)?;
        for op in &stream.ops {
            if let Op::Store { accesses, .. } = op {
                for access in &stream.accesses[accesses.range()] {
                    let address = recording.line_size().address_of(access.line);
                    found.extend(recording.arrays().partition_point(|array| array.base <= address).checked_sub(1));
                }
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;
    use crate::suite::case;
    use tombolo_workload::record::TimeWeights;

    fn estimator(samples: bool) -> Estimator {
        let mut described = tombolo_machine::machine("mi300a").unwrap();
        // A small machine that small programs fill, without fitting into its L2s.
        for (key, value) in [
            ("l2.bytes", "32KB"),
            ("topology.sms_per_module", "1"),
            ("sm.threads", "256"),
            ("sm.warps", "4"),
            ("sm.ctas", "4"),
            ("sm.posted_stores", "16"),
            ("l2.posted_stores", "64"),
        ] {
            described.set(key, value).unwrap();
        }
        let design = tombolo_design::design("mi300a").unwrap().check().unwrap();
        Estimator { machine: Arc::new(described.check().unwrap()), design, samples }
    }

    #[test]
    fn a_sample_of_a_stream_is_near_the_whole() {
        let case = case("vectoradd", "262144", 0).unwrap();
        let (part, whole) = (estimator(true).estimate(&case).unwrap(), estimator(false).estimate(&case).unwrap());
        assert!(part.sampled && !whole.sampled);
        let ratio = part.time_s / whole.time_s;
        assert!((0.85..1.15).contains(&ratio), "{ratio}");
    }

    #[test]
    fn parts_that_project_to_less_than_no_time_are_an_error() {
        let part = |total| LaunchWeights {
            weights: TimeWeights { total, second_half: 0.0 },
            launch: 0,
            loop_difference: 0.0,
            series: 0,
            series_difference: TimeWeights::default(),
        };
        let durations = |total_s| LaunchDurations { total_s, ..LaunchDurations::default() };
        // The shorter recording of a loop took longer than the longer recording.
        let error = projected(&[part(-9.0), part(10.0)], &[durations(2.0), durations(1.0)]).unwrap_err().to_string();
        assert!(error.starts_with("the parts that ran project to -8 s for the whole, which is no time"), "{error}");
        assert_eq!(projected(&[part(-9.0), part(10.0)], &[durations(1.0), durations(2.0)]).unwrap().time_s, 11.0);
    }

    #[test]
    fn a_copy_takes_its_latency_and_its_bytes() {
        let case = case("memcopy_h2d", "64MB", 0).unwrap();
        let time = estimator(true).estimate(&case).unwrap().time_s;
        let host = &estimator(true).machine.host;
        let expected = host.copy_latency.seconds() + (64_u64 << 20) as f64 / host.copy_rate.0 as f64;
        assert!((time - expected).abs() < 1e-9, "{time} {expected}");
    }

    #[test]
    fn a_small_copy_is_staged_and_slower_on_the_way_back() {
        let time = |benchmark, size| estimator(true).estimate(&case(benchmark, size, 0).unwrap()).unwrap().time_s;
        assert!(time("memcopy_h2d", "1MB") > time("memcopy_h2d", "2MB"));
        assert!(time("memcopy_d2h", "1MB") > 4.0 * time("memcopy_h2d", "1MB"));
    }

    #[test]
    fn a_round_of_the_host_costs_more_than_a_launch() {
        let estimator = estimator(true);
        let rounds = TimedBody { rounds: true, ..TimedBody::default() };
        assert!(estimator.launching(3, &rounds) > 5.0 * estimator.launching(3, &TimedBody::default()));
        assert_eq!(estimator.launching(0, &TimedBody::default()), 0.0);
    }
}
