//! `share`: runs every memory-sharing policy between GPUs, ranks them, and gives advice.

use crate::failure::CommandFailure;
use crate::hardware::MachineArguments;
use crate::output::OutputArguments;
use crate::progress::Progress;
use crate::provenance::{provenance, seeds};
use crate::sharing::advice::advice;
use crate::sharing::break_even::{BreakEven, SPAN, search};
use crate::sharing::exchange::{ExchangeRow, exchange_rows};
use crate::sharing::host::host_rows;
use crate::sharing::overlap::OverlappedCopies;
use crate::sharing::policies::{PLAIN, SharingPolicy};
use crate::sharing::policy_runs::{PolicyRun, PolicyRuns};
use crate::sharing::report::{BreakEvenRow, Cost, RankedPolicy, SharingReport, SingleGpuRun, ranking};
use crate::threads::ThreadsArgument;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;
use tombolo_design::scheduling::CtaDistribution;
use tombolo_experiment::PointError;
use tombolo_experiment::workload::{PreparedProgram, Target, WorkloadChoice, only};
use tombolo_machine::MachineScale;
use tombolo_machine::quantity::Quantity;
use tombolo_system::movement::Movement;
use tombolo_system::placement::TouchOrder;

/// Arguments for `share`.
#[derive(clap::Args)]
#[command(group(clap::ArgGroup::new("program").required(true).args(["workload", "trace"])))]
pub(crate) struct Arguments {
    #[command(flatten)]
    machine: MachineArguments,
    /// Workload from `list workloads`, with parameters: triad,elements=4096; or trace:PATH to a folder with a
    /// kernelslist.g, the list itself, or a file from `trace import` or `trace record`; a PATH with a comma goes in
    /// double quotes: 'trace:"a,b"'
    #[arg(long = "workload", value_name = "W[,KEY=VALUE…]|trace:PATH")]
    workload: Option<String>,
    /// Like `--workload trace:PATH`, without quotes
    #[arg(long = "trace", value_name = "PATH", hide = true)]
    trace: Option<PathBuf>,
    #[command(flatten)]
    threads: ThreadsArgument,
    #[command(flatten)]
    output: OutputArguments,
}

impl Arguments {
    /// Runs every policy and prints the ranking.
    pub(crate) fn execute(&self) -> Result<ExitCode, CommandFailure> {
        let mut field = PolicyRuns::new(&self.machine)?;
        let chosen = self.chosen()?;
        chosen.check(Target::of(&field.machine))?;
        let named = chosen.files().into_iter().chain([PathBuf::from(self.machine.machine())]);
        self.output.check(named)?;
        let (threads, started) = (self.threads.count(), Instant::now());
        let progress = Progress::new(field.policies.len() + field.host_policies.len() + 1);
        let what = format!("{} {}", if chosen.is_trace() { "reading" } else { "recording" }, chosen.label);
        let source = progress.during(&what, || chosen.record(Target::of(&field.machine), threads))?;
        let alone = progress.during("one GPU", || -> Result<_, CommandFailure> {
            if !chosen.partitioned_by_gpus() {
                return field.alone(&source, threads);
            }
            let single = chosen.record(Target::of(&*field.single()?), threads)?;
            field.alone(&single, threads)
        })?;
        let alone = SingleGpuRun { design: PLAIN, time_s: alone.time.region_s };
        if alone.time_s == 0.0 {
            let reason = "it runs no kernel: there is nothing to share".to_owned();
            return Err(CommandFailure::Argument { flag: "--workload", value: chosen.label, reason });
        }
        let ran = field.run(&source, threads, &progress)?;
        let on_host = host_rows(field.run_hosted(&source, threads, &progress)?);
        let ranking = ranking(&ran, alone.time_s);
        let mut notes = std::mem::take(&mut field.notes);
        notes.extend(distinct_notes(&ran, &chosen));
        let scale = field.machine.scale;
        if scale != MachineScale::FULL {
            notes.push(format!("ranges of the calls are those of the input at scale {scale}"));
        }
        let best = best(&ran, &ranking);
        let break_even = self.break_even(&field, &best, &source, (threads, &progress), &mut notes)?;
        let (advice, exchange) = advice_and_exchanges(&field, &source, best[0])?;
        drop(progress);
        let without_copies = ranking.iter().find(|policy| policy.bound && policy.time_s > 0.0);
        let overlapped =
            without_copies.map(|policy| OverlappedCopies::new(&field.machine, &exchange, policy.time_s, alone.time_s));
        let shared = SharingReport {
            tombolo: env!("CARGO_PKG_VERSION"),
            machine: field.machine.name.clone(),
            scale: field.machine.scale.to_string(),
            workload: chosen.label.clone(),
            set: self.machine.settings().to_vec(),
            gpus: field.machine.topology.gpus,
            one_gpu: alone,
            ranking,
            break_even,
            advice,
            overlapped,
            exchange,
            on_host,
            notes,
            host: Cost { wall_s: started.elapsed().as_secs_f64(), threads },
        };
        let made = provenance(threads, &seeds(std::slice::from_ref(&chosen)));
        self.output.give(&shared, made, true, |colours| shared.text(colours))?;
        Ok(ExitCode::SUCCESS)
    }

    fn chosen(&self) -> Result<WorkloadChoice, CommandFailure> {
        match (&self.workload, &self.trace) {
            (Some(workload), _) => Ok(only(workload)?),
            (None, Some(path)) => Ok(WorkloadChoice::trace(path)),
            (None, None) => unreachable!("one of the two is required"),
        }
    }

    /// Searches the break-even point between the best two policies; among policies with equal times, the first counts.
    /// Adds a note if there is no break-even point.
    fn break_even(
        &self,
        field: &PolicyRuns,
        best: &[&PolicyRun],
        source: &PreparedProgram,
        (threads, progress): (usize, &Progress),
        notes: &mut Vec<String>,
    ) -> Result<Option<BreakEvenRow>, CommandFailure> {
        let time = |ran: &PolicyRun| ran.record.time.region_s;
        let first = best[0];
        let (level, behind): (Vec<&PolicyRun>, Vec<&PolicyRun>) = best.iter().partition(|ran| time(ran) == time(first));
        if level.len() > 1 {
            let names: Vec<&str> = level.iter().map(|ran| ran.policy.design).collect();
            notes.push(format!("{} take the same time; the first of them stands for all", names.join(", ")));
        }
        let Some(second) = behind.first() else {
            notes.push("no way is slower than another: none change places".to_owned());
            return Ok(None);
        };
        let (pair, there) = ([first.policy, second.policy], [time(first), time(second)]);
        let [a, b] = pair.map(|policy: SharingPolicy| policy.design);
        let found = search(field.rate, there, |rate| {
            let what = format!("{a} and {b} at {}", rate.print());
            progress.during(&what, || field.times_at(rate, pair, source, threads))
        })?;
        Ok(match found {
            BreakEven::At(rate) => Some(BreakEvenRow { a, b, rate: rate.print().to_string() }),
            BreakEven::Jump(rate) => {
                let rate = rate.print();
                notes.push(format!("{a} and {b} change places at gpu_link.rate={rate}, where their times jump"));
                None
            }
            BreakEven::Never => {
                let own = field.rate.print();
                notes.push(format!("{a} is ahead of {b} from 1/{SPAN} to {SPAN} times the link rate of {own}"));
                None
            }
        })
    }
}

/// Returns the runs of realisable policies, fastest first.
fn best<'a>(ran: &'a [PolicyRun], ranking: &[RankedPolicy]) -> Vec<&'a PolicyRun> {
    let run = |ranked: &RankedPolicy| {
        ran.iter().find(|ran| ran.policy.design == ranked.design).expect("what is ranked was run")
    };
    ranking.iter().filter(|ranked| !ranked.bound).map(run).collect()
}

/// Returns each distinct note from the runs, with the designs unless all share the note, and notes about the program.
fn distinct_notes(ran: &[PolicyRun], chosen: &WorkloadChoice) -> Vec<String> {
    let mut by_note: Vec<(&str, Vec<&str>)> = Vec::new();
    for (design, note) in ran.iter().flat_map(|ran| ran.record.notes.iter().map(|note| (ran.policy.design, &**note))) {
        match by_note.iter_mut().find(|(known, _)| *known == note) {
            Some((_, designs)) => designs.push(design),
            None => by_note.push((note, vec![design])),
        }
    }
    let told = |(note, designs): (&str, Vec<&str>)| {
        if designs.len() == ran.len() { note.to_owned() } else { format!("{}: {note}", designs.join(", ")) }
    };
    let mut notes: Vec<String> = by_note.into_iter().map(told).collect();
    if chosen.is_trace() {
        notes.push("a trace of one GPU names no GPUs and no arrays: its grids are cut in contiguous blocks".to_owned());
    }
    notes
}

/// Computes the advice for each array and the required exchanges between GPUs, in a single walk over the streams.
fn advice_and_exchanges(
    field: &PolicyRuns,
    source: &PreparedProgram,
    best: &PolicyRun,
) -> Result<(Vec<String>, Vec<ExchangeRow>), CommandFailure> {
    let (machine, program) = (&field.machine, &*source.program);
    let order = TouchOrder::new(machine.topology.gpus, machine.page_bytes / machine.line.bytes());
    let movement = Movement::find(program, CtaDistribution::Program, order);
    let movement = movement.map_err(|error| PointError::Stream { label: source.label.clone(), error })?;
    let told = advice(program, &movement.sharing(program), best.policy.family);
    Ok((told, exchange_rows(program, &movement.exchanges(program))))
}
