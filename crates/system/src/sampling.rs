//! A run of some launches of a program in place of all, which gives the time of the whole and how far it may be off.
//!
//! Launches run whole, on pages placed as the whole program places them, each behind those that leave in the caches what it
//! finds there. `plan`: which. `demand`: what kernels ask for, by which launches are told apart. `estimate`: the time
//! of all, and its error. `thinned`: the program that is run.
//!
//! Where this cannot be done, or would save little, the program runs whole, and the record says why: the design must have
//! nothing that earlier launches decide besides what is in caches; launches must follow one another, alone on the machine.
//!
//! Not here: parts of launches, which `validate` samples ([`mod@crate::sample`]).

mod demand;
mod estimate;
mod plan;
mod thinned;

use crate::placement::place;
use crate::record::{HostRecord, KernelRecord, RunRecord};
use crate::run::{RunError, RunSpec, run, run_beside};
use crate::time::{TimeChoice, TimeRecord};
pub use demand::Demands;
use estimate::{Estimate, Taken};
use plan::{Plan, Population, Refusal};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use thinned::Thinned;
use tombolo_design::{DesignConfig, Elision, Placement};
use tombolo_engine::Spare;
use tombolo_model::page_table::PageTable;
use tombolo_types::On;
use tombolo_types::stream::{Command, Program};

/// The widest error that an answer may have, as a share of the time. Source: assumed: half of what designs differ by in the
/// papers' figures, mostly.
const WIDEST: f64 = 0.1;

/// What sums of times may differ by, as a share. Source: times are picoseconds, and launches take a thousand times a thousand.
const ROUNDING: f64 = 1e-6;

/// How a run was sampled.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SamplingRecord {
    /// Launches of the program.
    pub launches: u64,
    /// Launches simulated for the record.
    pub launches_run: u64,
    /// Of these, launches that the time is from; the others warm caches.
    pub launches_counted: u64,
    /// How far each time of the record may be off, in seconds, with 95 % confidence; 0 of a program that ran whole.
    pub error_s: f64,
    /// Of this, what warm-ups may be off by.
    pub warm_up_s: f64,
    /// Why the program ran whole; absent where it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whole: Option<String>,
}

impl RunRecord {
    /// How far each of its times may be off, in seconds: 0 where it is of the whole program.
    pub fn error_s(&self) -> f64 {
        self.sampling.as_ref().map_or(0.0, |sampling| sampling.error_s)
    }

    /// What it says of how it was sampled, where anybody asked.
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

    /// Whether its times are estimates.
    pub fn is_estimate(&self) -> bool {
        self.sampling.as_ref().is_some_and(|sampling| sampling.whole.is_none())
    }
}

/// A time and how far it may be off.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Told {
    /// Seconds.
    pub time_s: f64,
    /// Seconds, either way.
    pub error_s: f64,
}

impl Told {
    /// The chosen time of a run.
    pub fn of(record: &RunRecord, time: TimeChoice) -> Told {
        Told { time_s: record.time.of(time), error_s: record.error_s() }
    }

    /// The least and the greatest that it may be.
    pub fn range(self) -> [f64; 2] {
        [self.time_s - self.error_s, self.time_s + self.error_s]
    }

    /// The least and the greatest that it may be over `other`, both off as far as they may be: no less sure than the two
    /// together, however their errors go along.
    pub fn over(self, other: Told) -> [f64; 2] {
        let ([low, high], [least, greatest]) = (self.range(), other.range());
        [low.max(0.0) / greatest, if least > 0.0 { high / least } else { f64::INFINITY }]
    }
}

/// Runs a sample of the program of `spec`, or all of it where a sample does not apply; `demands` are those of its program.
/// Threads of `spare`, where there are any, join as in [`run_beside`]. The record is the same at every thread count.
///
/// # Errors
/// See [`RunError`].
pub fn run_sampled(spec: &RunSpec, demands: Option<&Demands>, spare: Option<&Spare>) -> Result<RunRecord, RunError> {
    let reason = match Choice::of(spec, demands)? {
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

/// Why [`run_sampled`] would run the whole program, as far as that is known before anything has run; `None`: it would try a
/// sample.
///
/// # Errors
/// See [`RunError`].
pub fn refusal(spec: &RunSpec, demands: Option<&Demands>) -> Result<Option<String>, RunError> {
    Ok(Choice::of(spec, demands)?.err())
}

fn simulate(spec: &RunSpec, spare: Option<&Spare>) -> Result<RunRecord, RunError> {
    spare.map_or_else(|| run(spec), |spare| run_beside(spec, spare))
}

/// Why no program, or not this one, can be sampled under `design`.
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
            Command::Launch { stream, on, .. } if on != On::All || *streams.get_or_insert(stream) != stream => {
                return Some("launches run side by side, or on parts of the machine");
            }
            // The host waits for it: it takes as long without the launches before it.
            Command::Copy { .. } => {}
            Command::Launch { .. } | Command::Host { .. } | Command::Barrier => {}
        }
    }
    None
}

/// The launches that are to stand for all.
struct Choice {
    plan: Plan,
    population: Population,
}

impl Choice {
    /// Those of the program of `spec`, or why there are none.
    fn of(spec: &RunSpec, demands: Option<&Demands>) -> Result<Result<Choice, String>, RunError> {
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
                own = Demands::of(&spec.machine, &*spec.program)?;
                &own
            }
        };
        let population = Population::of(spec.program.kernels(), demands, &order);
        Ok(match Plan::of(&population) {
            Ok(plan) => Ok(Choice { plan, population }),
            Err(Refusal::Few) => Err(few(order.len())),
            Err(Refusal::Much(share)) => Err(much(share)),
        })
    }

    /// The record of the sample, or why it says too little.
    fn record(self, spec: &RunSpec, spare: Option<&Spare>) -> Result<Result<RunRecord, String>, RunError> {
        let pages = match &spec.pages {
            Some(pages) => Arc::clone(pages),
            None => place(&spec.machine, &spec.design, &*spec.program)?,
        };
        Sampler { spec, spare, pages, plan: self.plan, population: self.population }.record()
    }
}

/// A program of which samples run.
struct Sampler<'a> {
    spec: &'a RunSpec,
    spare: Option<&'a Spare>,
    pages: Arc<PageTable>,
    plan: Plan,
    population: Population,
}

impl Sampler<'_> {
    /// The record of the sample, or why it says too little.
    fn record(&self) -> Result<Result<RunRecord, String>, RunError> {
        let Sampler { plan, population, .. } = self;
        let keeps = plan.long(population);
        let ((record, seconds), (again, more)) = (self.run(&keeps)?, self.run(&plan.short)?);
        let (long, short) = (taken(&keeps, &record.kernels), taken(&plan.short, &again.kernels));
        let estimate = Taken { plan, population, long: &long, short: &short }.estimate();
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
        Ok(Ok(self.told(record, time, estimate, seconds + more)))
    }

    /// The record of a run of the launches that `keeps` has, and the seconds that it took the host.
    fn run(&self, keeps: &[bool]) -> Result<(RunRecord, f64), RunError> {
        let program = Arc::new(Thinned::new(&self.spec.program, keeps));
        let record =
            simulate(&RunSpec { program, pages: Some(Arc::clone(&self.pages)), ..self.spec.clone() }, self.spare)?;
        let seconds = record.host.wall_s;
        Ok((record, seconds))
    }

    /// A record of what ran, with the times of the whole.
    fn told(&self, record: RunRecord, time: TimeRecord, estimate: Estimate, wall_s: f64) -> RunRecord {
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

/// By launch, the seconds that its kernel was open in a run of those that `keeps` has; 0 of others.
fn taken(keeps: &[bool], kernels: &[KernelRecord]) -> Vec<f64> {
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
        let told = |time_s, error_s| Told { time_s, error_s };
        assert_eq!(told(6.0, 0.0).over(told(3.0, 0.0)), [2.0, 2.0]);
        assert_eq!(told(6.0, 2.0).over(told(3.0, 1.0)), [1.0, 4.0]);
        assert_eq!(told(6.0, 2.0).over(told(1.0, 1.0))[1], f64::INFINITY);
    }
}
