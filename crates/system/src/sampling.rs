//! Simulates some launches from a program instead of all, and estimates the whole program's time with an error bound.
//!
//! Sampled launches run whole, on pages placed as in the full program. Each runs after enough earlier launches to warm
//! the caches for it. `plan` chooses the launches. `demand` measures each kernel's work and lines, by which launches
//! are classified. `estimate` computes the total time and its error. `reduced_program` is the program that runs.
//!
//! If sampling is impossible, or saves little, the program runs whole and the record states the reason. The design must
//! not depend on earlier launches except through cache contents; launches must run one after another, with the machine
//! to themselves.
//!
//! Not included: parts of launches, sampled by `validate` ([`mod@crate::sample`]).

mod demand;
mod estimate;
mod plan;
mod reduced_program;

use crate::placement::place;
use crate::record::{HostRecord, KernelRecord, RunRecord};
use crate::run::{RunError, RunSpec};
use crate::simulation::Simulation;
use crate::time::{TimeChoice, TimeRecord};
pub use demand::KernelDemands;
use estimate::{Estimate, LaunchTimes};
use plan::{Population, Refusal, SamplingPlan};
use reduced_program::ReducedProgram;
use std::sync::Arc;
use tombolo_design::{DesignConfig, Elision, Placement};
use tombolo_engine::ThreadPool;
pub use tombolo_metrics::SamplingRecord;
use tombolo_model::front_end::PageTable;
use tombolo_types::LaunchDevices;
use tombolo_types::stream::{Command, Program};

/// Largest accepted error, as a share of the time. Source: assumed: about half the typical difference between designs
/// in the papers' figures.
const WIDEST: f64 = 0.1;

/// Tolerated relative difference between sums of times. Source: times are picoseconds, and launches take a thousand
/// times a thousand.
const ROUNDING: f64 = 1e-6;

/// A time with its error bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimeEstimate {
    /// Seconds.
    pub time_s: f64,
    /// Error bound in seconds, in both directions.
    pub error_s: f64,
}

impl TimeEstimate {
    /// The chosen time from a run's record.
    pub fn of(record: &RunRecord, time: TimeChoice) -> TimeEstimate {
        TimeEstimate { time_s: record.time.of(time), error_s: record.error_s() }
    }

    /// Smallest and largest possible value.
    pub fn range(self) -> [f64; 2] {
        [self.time_s - self.error_s, self.time_s + self.error_s]
    }

    /// Range for the quotient by `other`, with both times at their extremes: the confidence is at least that of the two
    /// together, for any correlation between their errors.
    pub fn over(self, other: TimeEstimate) -> [f64; 2] {
        let ([low, high], [least, greatest]) = (self.range(), other.range());
        [low.max(0.0) / greatest, if least > 0.0 { high / least } else { f64::INFINITY }]
    }
}

/// Runs a sample from the program in `spec`, or the whole program if sampling does not apply; `demands` belong to this
/// program. If `spare` is given, its threads join as in [`Simulation::spare`]. The record is equal at every thread count.
///
/// # Errors
/// See [`RunError`].
pub fn run_sampled(
    spec: &RunSpec,
    demands: Option<&KernelDemands>,
    spare: Option<&ThreadPool>,
) -> Result<RunRecord, RunError> {
    let reason = match SampleSetup::of(spec, demands)? {
        Ok(choice) => match choice.record(spec, spare)? {
            Ok(record) => return Ok(record),
            Err(reason) => reason,
        },
        Err(reason) => reason,
    };
    let mut record = simulate(spec, spare)?;
    let launches = record.kernels.len() as u64;
    record.sampling = Some(SamplingRecord {
        launches,
        launches_run: launches,
        launches_counted: launches,
        whole: Some(reason),
        ..SamplingRecord::default()
    });
    Ok(record)
}

/// Reason for which [`run_sampled`] would run the whole program, if known before the simulation; `None` if it would try
/// a sample.
///
/// # Errors
/// See [`RunError`].
pub fn sampling_refusal(spec: &RunSpec, demands: Option<&KernelDemands>) -> Result<Option<String>, RunError> {
    Ok(SampleSetup::of(spec, demands)?.err())
}

fn simulate(spec: &RunSpec, spare: Option<&ThreadPool>) -> Result<RunRecord, RunError> {
    let simulation = Simulation::new(spec);
    let simulation = match spare {
        Some(spare) => simulation.spare(spare),
        None => simulation,
    };
    Ok(simulation.run()?.record)
}

/// Reason for which no program, or not this program, can be sampled under `design`.
fn refused(design: &DesignConfig, program: &dyn Program) -> Option<&'static str> {
    let stays = matches!(
        design.placement,
        Placement::FirstTouch(_) | Placement::InterleavedLine(_) | Placement::InterleavedPage(_)
    );
    if !stays {
        return Some("under this design what earlier launches did decides where data is");
    }
    if !matches!(design.elision, Elision::Never(_)) {
        return Some("under this design what earlier launches did decides what a kernel boundary does");
    }
    let commands = program.commands();
    let is_launch = |command: &Command| command.kernel().is_some();
    let first = commands.iter().position(is_launch)?;
    let last = commands.iter().rposition(is_launch)?;
    let mut streams = None;
    for command in &commands[first..=last] {
        match *command {
            Command::Launch { stream, on, .. }
                if on != LaunchDevices::All || *streams.get_or_insert(stream) != stream =>
            {
                return Some("launches run side by side, or on parts of the machine");
            }
            // The host waits for the copy: its duration does not depend on earlier launches.
            Command::Copy { .. } => {}
            Command::Launch { .. } | Command::Host { .. } | Command::Barrier => {}
        }
    }
    None
}

/// The launches that represent the whole program.
struct SampleSetup {
    plan: SamplingPlan,
    population: Population,
}

impl SampleSetup {
    /// Chooses launches for the program in `spec`, or returns the reason against sampling.
    fn of(spec: &RunSpec, demands: Option<&KernelDemands>) -> Result<Result<SampleSetup, String>, RunError> {
        if let Some(reason) = refused(&spec.design, &*spec.program) {
            return Ok(Err(reason.to_owned()));
        }
        let order: Vec<u32> = spec.program.commands().iter().filter_map(Command::kernel).collect();
        if order.len() < plan::LEAST {
            return Ok(Err(few(order.len())));
        }
        let own;
        let demands = match demands {
            Some(demands) => demands,
            None => {
                own = KernelDemands::of(&spec.machine, &*spec.program)?;
                &own
            }
        };
        let population = Population::of(spec.program.kernels(), demands, &order);
        Ok(match SamplingPlan::of(&population) {
            Ok(plan) => Ok(SampleSetup { plan, population }),
            Err(Refusal::Few) => Err(few(order.len())),
            Err(Refusal::Much(share)) => Err(much(share)),
        })
    }

    /// The sample's record, or the reason for which the sample is too inaccurate.
    fn record(self, spec: &RunSpec, spare: Option<&ThreadPool>) -> Result<Result<RunRecord, String>, RunError> {
        let pages = match &spec.pages {
            Some(pages) => Arc::clone(pages),
            None => place(&spec.machine, &spec.design, &*spec.program)?,
        };
        Sampler { spec, spare, pages, plan: self.plan, population: self.population }.record()
    }
}

/// A program to be sampled.
struct Sampler<'a> {
    spec: &'a RunSpec,
    spare: Option<&'a ThreadPool>,
    pages: Arc<PageTable>,
    plan: SamplingPlan,
    population: Population,
}

impl Sampler<'_> {
    /// The sample's record, or the reason for which the sample is too inaccurate.
    fn record(&self) -> Result<Result<RunRecord, String>, RunError> {
        let Sampler { plan, population, .. } = self;
        let keeps = plan.long(population);
        let ((record, seconds), (again, more)) = (self.run(&keeps)?, self.run(&plan.short)?);
        let (long, short) = (launch_times(&keeps, &record.kernels), launch_times(&plan.short, &again.kernels));
        let estimate = LaunchTimes { plan, population, long: &long, short: &short }.estimate();
        let ran: f64 = long.iter().sum();
        if (record.time.kernels_s - ran).abs() > ROUNDING * ran {
            return Ok(Err("kernel boundaries take time outside of launches".to_owned()));
        }
        let Estimate { time_s, error_s, warm_up_s } = estimate;
        let gaps = (long.len() - record.kernels.len()) as f64;
        let time = record.time.with(time_s - ran, gaps * self.spec.machine.host.dependent_launch_latency.seconds());
        let percent = |seconds: f64| 100.0 * seconds / time.whole_s;
        if error_s > WIDEST * time.whole_s {
            let (all, warm_up) = (percent(error_s), percent(warm_up_s));
            return Ok(Err(format!("a sample says too little: ± {all:.0} %, of which warm-ups {warm_up:.0} %")));
        }
        Ok(Ok(self.estimated_record(record, time, estimate, seconds + more)))
    }

    /// Runs the launches kept in `keeps`; returns the record and the seconds spent on the host.
    fn run(&self, keeps: &[bool]) -> Result<(RunRecord, f64), RunError> {
        let program = Arc::new(ReducedProgram::new(&self.spec.program, keeps));
        let record =
            simulate(&RunSpec { program, pages: Some(Arc::clone(&self.pages)), ..self.spec.clone() }, self.spare)?;
        let seconds = record.host.wall_s;
        Ok((record, seconds))
    }

    /// The record for the launches that ran, with the times estimated for the whole program.
    fn estimated_record(&self, record: RunRecord, time: TimeRecord, estimate: Estimate, wall_s: f64) -> RunRecord {
        let Estimate { error_s, warm_up_s, .. } = estimate;
        let counted = self.plan.counted().filter(|counted| *counted).count() as u64;
        let launches = self.plan.certain.len();
        let sampling = SamplingRecord {
            launches: launches as u64,
            launches_run: record.kernels.len() as u64,
            launches_counted: counted,
            error_s,
            warm_up_s,
            whole: None,
        };
        let host = HostRecord { wall_s, ..record.host };
        RunRecord { time_s: time.whole_s, time, iteration: None, sampling: Some(sampling), host, ..record }
    }
}

fn few(launches: usize) -> String {
    format!("it has {launches} launches, and a sample needs {} at least", plan::LEAST)
}

fn much(share: f64) -> String {
    format!("a sample costs {:.0} % of its work: little is alike, or caches warm up late", 100.0 * share)
}

/// Seconds during which each launch's kernel was open, indexed by launch, in a run with the launches kept in `keeps`; 0
/// for launches not in the run.
fn launch_times(keeps: &[bool], kernels: &[KernelRecord]) -> Vec<f64> {
    let mut times = kernels.iter().map(|kernel| kernel.end_s - kernel.start_s);
    keeps
        .iter()
        .map(|&kept| if kept { times.next().expect("a run has the launches that were kept") } else { 0.0 })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quotient_of_two_times_is_off_by_both() {
        let told = |time_s, error_s| TimeEstimate { time_s, error_s };
        assert_eq!(told(6.0, 0.0).over(told(3.0, 0.0)), [2.0, 2.0]);
        assert_eq!(told(6.0, 2.0).over(told(3.0, 1.0)), [1.0, 4.0]);
        assert_eq!(told(6.0, 2.0).over(told(1.0, 1.0))[1], f64::INFINITY);
    }
}
