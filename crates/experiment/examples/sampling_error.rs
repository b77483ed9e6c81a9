//! Measures the true error in sampled runs and compares the measurement with the reported error: a table row per
//! workload and design.
//!
//! `cargo run --release -p tombolo-experiment --example sampling_error -- MACHINE SCALE DESIGN,DESIGN… quick|full
//! SUITE|WORKLOAD…`
//!
//! Workloads from a suite use the parameters of its quick scale, or with `full` all their work. Each workload is
//! recorded once. A program for which sampling is refused before the run is not run at all. A sample with too little
//! data already ran the whole program, which is not repeated. Times are for one thread; recording time is reported
//! separately.

use std::error::Error;
use std::sync::Arc;
use std::time::Instant;
use tombolo_design::DesignConfig;
use tombolo_experiment::campaign::{run_one, run_one_sampled};
use tombolo_experiment::preset::workloads_of;
use tombolo_experiment::workload::{PreparedProgram, Target, WorkloadChoice, workloads};
use tombolo_machine::MachineConfig;
use tombolo_system::{RunRecord, RunSpec, sampling_refusal};

/// Result of a sampled run next to the result of the whole run.
struct Pair {
    /// Relative error in the sampled time.
    error: f64,
    /// Reported error bound on the time, and the warm-up part within the bound.
    told: f64,
    warm_up: f64,
    /// Host time in seconds.
    whole_s: f64,
    sampled_s: f64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [machine, scale, designs, quick, named @ ..] = &arguments[..] else {
        return Err("MACHINE SCALE DESIGN,DESIGN… quick|full SUITE|WORKLOAD…".into());
    };
    let machine = Arc::new(tombolo_machine::machine(machine)?.check()?.scaled(scale.parse()?)?);
    let designs = designs.split(',').map(|name| Ok(tombolo_design::design(name)?.check()?));
    let designs = designs.collect::<Result<Vec<DesignConfig>, Box<dyn Error>>>()?;
    let words: Vec<String> = (named.iter())
        .flat_map(|name| workloads_of(name, quick == "quick").unwrap_or_else(|_| vec![name.clone()]))
        .collect();
    println!("| workload | design | whole | sampled | true error | ± | of it warm-ups | launches counted | faster |");
    println!("| --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    let (mut pairs, mut whole) = (Vec::new(), 0);
    for choice in workloads(&words)? {
        let began = Instant::now();
        let source = choice.record(Target::of(&machine), 1)?;
        let recording_s = began.elapsed().as_secs_f64();
        for design in &designs {
            match compared(&choice, &machine, design, &source)? {
                Some(pair) => pairs.push((pair, recording_s)),
                None => whole += 1,
            }
        }
    }
    summary(&mut pairs, whole);
    Ok(())
}

/// Returns a table row, or `None` if the program ran whole.
fn compared(
    choice: &WorkloadChoice,
    machine: &Arc<MachineConfig>,
    design: &DesignConfig,
    source: &PreparedProgram,
) -> Result<Option<Pair>, Box<dyn Error>> {
    let label = format!("{} | {}", choice.label, design.name);
    let program = Arc::clone(&source.program);
    let spec = RunSpec { machine: Arc::clone(machine), design: design.clone(), program, pages: None, threads: 1 };
    if let Some(reason) = sampling_refusal(&spec, None)? {
        println!("| {label} | | whole: {reason} | | | | | |");
        return Ok(None);
    }
    let began = Instant::now();
    let sampled = run_one_sampled(machine, design, source, 1)?;
    let sampled_s = began.elapsed().as_secs_f64();
    let sampling = sampled.sampling.as_ref().ok_or("a sample was asked for")?;
    if let Some(reason) = &sampling.whole {
        println!("| {label} | {} | whole: {reason} | | | | | |", told(&sampled));
        return Ok(None);
    }
    let began = Instant::now();
    let whole = run_one(machine, design, source, 1)?;
    let whole_s = began.elapsed().as_secs_f64();
    let share = |seconds: f64| seconds / whole.time_s;
    let (error, warm_up) = (share(sampled.time_s - whole.time_s), share(sampling.warm_up_s));
    let pair = Pair { error, told: share(sampling.error_s), warm_up, whole_s, sampled_s };
    println!(
        "| {label} | {} | {} | {:+.2} % | {:.2} % | {:.2} % | {} of {} | {:.1} |{}",
        told(&whole),
        told(&sampled),
        100.0 * pair.error,
        100.0 * pair.told,
        100.0 * pair.warm_up,
        sampling.launches_counted,
        sampling.launches,
        whole_s / sampled_s,
        if pair.is_inside() { "" } else { " outside" }
    );
    Ok(Some(pair))
}

fn told(record: &RunRecord) -> String {
    format!("{:.1} us", 1e6 * record.time_s)
}

impl Pair {
    fn is_inside(&self) -> bool {
        self.error.abs() <= self.told
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

fn summary(pairs: &mut [(Pair, f64)], whole: usize) {
    let sampled = pairs.len();
    let inside = pairs.iter().filter(|(pair, _)| pair.is_inside()).count();
    let of = |value: &dyn Fn(&Pair) -> f64| pairs.iter().map(|(pair, _)| value(pair)).collect::<Vec<_>>();
    let sum = |value: &dyn Fn(&Pair) -> f64| of(value).iter().sum::<f64>();
    let recording: f64 = pairs.iter().map(|(_, seconds)| seconds).sum();
    let (whole_s, sampled_s) = (sum(&|pair| pair.whole_s), sum(&|pair| pair.sampled_s));
    println!("\n{} pairs, {whole} of them whole; of {sampled} sampled {inside} within ±", sampled + whole);
    println!(
        "median true error {:.2} %, median ± {:.2} %, median ± of warm-ups {:.2} %",
        100.0 * median(of(&|pair| pair.error.abs())),
        100.0 * median(of(&|pair| pair.told)),
        100.0 * median(of(&|pair| pair.warm_up))
    );
    println!(
        "sampled pairs: {whole_s:.1} s whole, {sampled_s:.1} s sampled, {:.1} times as fast; {:.1} with a recording each",
        whole_s / sampled_s,
        (whole_s + recording) / (sampled_s + recording)
    );
}
