//! Eight GPUs with a single module each, and programs that store from GPU to GPU. Each kernel has eight CTAs; CTA `i`
//! runs on GPU `i`.

use super::design;
use std::sync::Arc;
use tombolo_machine::MachineConfig;
use tombolo_system::directed::{CtaBuilder, DirectedProgram};
use tombolo_system::{RunError, RunRecord, RunSpec, run};

/// Number of lines that a GPU stores to another GPU. The lines homed at GPU `i` begin at `i` times [`FAR`].
pub const LINES: u64 = 2000;
/// Distance in lines between the areas for two consecutive GPUs.
pub const FAR: u64 = 1 << 20;

/// The machine with settings applied and 10 GB/s links.
pub fn machine(settings: &[&str]) -> Arc<MachineConfig> {
    let mut machine = tombolo_machine::machine("numa-8").expect("a preset");
    let mut all = vec!["topology.sms_per_module=1", "l1.sector_bytes=128", "gpu_link.rate=10GB/s", "gpu_link.lanes=1"];
    all.extend(settings);
    tombolo_design::apply(&all, &mut machine, &mut []).expect("settings a machine has");
    Arc::new(machine.check().expect("a machine that fits"))
}

/// Runs a program under `numa-memory-side`. `settings`: for the machine; `links`: for the design's links.
pub fn simulate(settings: &[&str], links: &[&str], program: Arc<DirectedProgram>) -> Result<RunRecord, RunError> {
    let design = design("numa-memory-side", links);
    run(&RunSpec { machine: machine(settings), design, program, pages: None, threads: 1 })
}

/// A kernel in which each GPU touches its own lines, followed by a kernel with one CTA per GPU from `of_gpu`.
pub fn program(of_gpu: impl Fn(u64) -> CtaBuilder) -> Arc<DirectedProgram> {
    let touch =
        |gpu: u64| CtaBuilder::new().warp(|warp| (0..LINES).for_each(|line| _ = warp.write([gpu * FAR + line])));
    DirectedProgram::new(vec![(0..8).map(touch).collect(), (0..8).map(of_gpu).collect()])
}

/// Stores [`LINES`] lines from the first to the second GPU of each pair, all pairs at once. Returns the time of this
/// kernel in seconds, and the run's record.
pub fn stores(settings: &[&str], pairs: &[(u64, u64)]) -> (f64, RunRecord) {
    let program = program(|gpu| match pairs.iter().find(|pair| pair.0 == gpu) {
        Some(&(_, to)) => CtaBuilder::sharing(to * FAR..to * FAR + LINES, 8, |warp, line| _ = warp.write([line])),
        None => CtaBuilder::new(),
    });
    let record = simulate(settings, &[], program).expect("a machine that the design fits");
    (record.kernels[1].end_s - record.kernels[1].start_s, record)
}
