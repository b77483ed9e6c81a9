//! A broken protocol that timing alone would prefer. Three steps: a workload timed under the sound protocol, the
//! workload timed under a protocol with a broken rule, then the explorer on the shipped litmus tests. The comparison
//! shows why speed alone is no proof of correctness.
//!
//! ```text
//! cargo run --release -p tombolo-attack --example faster_but_wrong -- [RULE [WORKLOAD [DESIGN [MACHINE [SCALE]]]]]
//! ```
//!
//! RULE names a `tombolo_protocol::BrokenRule`. Both runs are checked runs: each line records the last writing store.

use std::error::Error;
use std::sync::Arc;
use tombolo_check::verify::mutants::{Broken, Mutant, TestEffort, catch};
use tombolo_design::design;
use tombolo_machine::machine;
use tombolo_programs::find;
use tombolo_protocol::BrokenRule;
use tombolo_system::{RunRecord, RunSpec, run_checked};
use tombolo_workload::bench::{Mode, Request, record};
use tombolo_workload::record::RecordOptions;

/// Default arguments.
const DEFAULTS: [&str; 5] = ["AcquireKeepsL2", "rnn-forward", "software-hierarchical", "hmg-4x4", "1/16"];
/// Seed for a workload's generated input.
const SEED: u64 = 1;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let [rule, workload, design, machine, scale] =
        DEFAULTS.map(|default| arguments.next().unwrap_or_else(|| default.to_owned()));
    let broken = BrokenRule::ALL.into_iter().find(|known| known.name() == rule);
    let broken = broken.ok_or_else(|| format!("{rule} is no BrokenRule"))?;
    let spec = spec(&workload, &design, &machine, &scale)?;

    println!("{workload} on {machine} at {scale}, design {design}");
    let sound = run_checked(&spec, None)?;
    let faulty = run_checked(&spec, Some(broken))?;
    let gain = 100.0 * (sound.time.region_s / faulty.time.region_s - 1.0);
    println!("  sound protocol             {}", timed(&sound));
    println!("  {rule:26} {}", timed(&faulty));
    println!("By time alone the broken protocol is {gain:.1} % faster.\n");

    let mutant = Mutant { rule: Broken::Rule(broken), protocol: spec.design.coherence.protocol() };
    let reports = catch(&[mutant], TestEffort::Enough, 1, &());
    let Some(caught) = &reports[0].by else { return Err(format!("no test that ships catches {rule}").into()) };
    println!("The model checker, on test {}: {}", caught.first.test, caught.first.seen_as);
    println!("{}", reports[0].trace.as_deref().unwrap_or_default());
    Ok(())
}

/// A workload recorded for a machine, both scaled, under a design.
fn spec(workload: &str, design_name: &str, machine_name: &str, scale: &str) -> Result<RunSpec, Box<dyn Error>> {
    let machine = Arc::new(machine(machine_name)?.check()?.scaled(scale.parse()?)?);
    let workload = find(workload)?;
    let options = RecordOptions { line: machine.line, warp_width: machine.sm.warp_width, ..RecordOptions::default() };
    let recording = record(workload, &Request::new(workload, scale.parse()?, &[], SEED)?, &options, Mode::Auto)?;
    let design = design(design_name)?.check()?;
    Ok(RunSpec { machine, design, program: Arc::new(recording), pages: None, threads: 1 })
}

/// Time and checked loads from a run, as text.
fn timed(record: &RunRecord) -> String {
    let wrong = record.check.as_ref().map_or(0, |checked| checked.violations);
    format!("{:8.1} us, {wrong} wrong loads", record.time.region_s * 1e6)
}
