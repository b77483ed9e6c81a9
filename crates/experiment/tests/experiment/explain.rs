//! Checks pairs of designs with a known difference: the class of warp-slot cycles with the difference, and the counter
//! behind it.

use std::sync::Arc;
use tombolo_experiment::explain::{Difference, differences, shares};
use tombolo_machine::MachineConfig;
use tombolo_system::directed::{CtaBuilder, DirectedProgram, WarpBuilder};
use tombolo_system::{RunRecord, RunSpec, TimeChoice, run};
use tombolo_types::stream::Program;
use tombolo_types::{Mask, Order, Scope};

fn machine(name: &str, settings: &[&str]) -> Arc<MachineConfig> {
    let mut machine = tombolo_machine::machine(name).expect("a preset");
    tombolo_design::apply(settings, &mut machine, &mut []).expect("settings a machine has");
    Arc::new(machine.check().expect("a machine that fits"))
}

/// HMG's machine with one SM per module: CTA `i` among sixteen runs on module `i`.
fn modules(settings: &[&str]) -> Arc<MachineConfig> {
    machine("hmg-4x4", &[&["topology.sms_per_module=1", "l1.sector_bytes=128"], settings].concat())
}

/// Four GPUs with one module and one SM each: CTA `i` among four runs on GPU `i`.
fn gpus(settings: &[&str]) -> Arc<MachineConfig> {
    machine("gps-4-pcie3", &[&["topology.sms_per_module=1", "page_bytes=64KB"], settings].concat())
}

fn record(machine: &Arc<MachineConfig>, design: &str, settings: &[&str], program: &Arc<DirectedProgram>) -> RunRecord {
    let mut base = tombolo_machine::machine("hmg-4x4").expect("a preset");
    let mut designs = [tombolo_design::design(design).expect("a preset")];
    tombolo_design::apply(settings, &mut base, &mut designs).expect("settings a design has");
    let [design] = designs;
    let (machine, program) = (Arc::clone(machine), Arc::clone(program) as Arc<dyn Program>);
    let spec =
        RunSpec { machine, design: design.check().expect("a design that fits"), program, pages: None, threads: 1 };
    run(&spec).unwrap_or_else(|error| panic!("{error}"))
}

/// Returns the differences between the first run and the second, largest first. Checks that each run's shares add up to
/// its time relative to the first run.
fn explained(first: &RunRecord, other: &RunRecord) -> Vec<Difference> {
    let time = TimeChoice::Region;
    for run in [first, other] {
        let sum: f64 = shares(run, first, time).iter().map(|(_, share)| share).sum();
        let expected = run.time.of(time) / first.time.of(time);
        assert!((sum - expected).abs() < 1e-6, "{sum} of {expected}");
    }
    let differences = differences(&[(first, other)], time);
    eprintln!("{} against {}:", other.design, first.design);
    for one in &differences[..4] {
        let Difference { class, from, to, counter } = one;
        eprintln!("  {class} {from:.4} -> {to:.4} {counter:?}");
    }
    differences
}

/// Returns the class with the largest growth, and the counter behind it.
fn grown(first: &RunRecord, other: &RunRecord) -> (&'static str, &'static str) {
    let mut grown = explained(first, other).into_iter().filter(|one| one.growth() > 0.0);
    let Difference { class, counter, .. } = grown.next().expect("a class grew");
    (class, counter.map_or("", |change| change.path))
}

/// Returns the class with the largest difference, a flag set if the class grew, and the counter behind it.
fn leading(first: &RunRecord, other: &RunRecord) -> (&'static str, bool, &'static str) {
    let Difference { class, from, to, counter } = explained(first, other).remove(0);
    (class, to > from, counter.map_or("", |change| change.path))
}

/// Builds a kernel with `ctas` CTAs; CTA `at` executes `each` on its share of lines, in sixteen warps, and the rest are
/// empty.
fn on(
    at: usize,
    ctas: usize,
    lines: std::ops::Range<u64>,
    each: impl Fn(&mut WarpBuilder<'_>, u64),
) -> Vec<CtaBuilder> {
    let mut all = vec![CtaBuilder::new(); ctas];
    all[at] = CtaBuilder::sharing(lines, 16, each);
    all
}

fn read(warp: &mut WarpBuilder<'_>, line: u64) {
    warp.read([line]);
}

fn write(warp: &mut WarpBuilder<'_>, line: u64) {
    warp.write([line]);
}

/// Every CTA writes lines without sharing.
fn writes(ctas: u64, lines: u64) -> Vec<CtaBuilder> {
    (0..ctas).map(|cta| CtaBuilder::sharing(cta * lines..(cta + 1) * lines, 16, write)).collect()
}

/// Module 4 reads lines homed on GPU 0. Each warp reads its own lines four times, and the lines exceed the L1.
fn shared_by_readers() -> Arc<DirectedProgram> {
    let reader = (0..16).fold(CtaBuilder::new(), |cta, index| {
        let own = index * 128..(index + 1) * 128;
        cta.warp(|warp| (0..4).flat_map(|_| own.clone()).for_each(|line| _ = warp.read([line])))
    });
    let mut readers = vec![CtaBuilder::new(); 16];
    readers[4] = reader;
    DirectedProgram::new(vec![on(0, 16, 0..2048, read), readers])
}

#[test]
fn caching_what_others_own_saves_loads_between_gpus() {
    let (machine, program) = (modules(&["l1.bytes=16KB"]), shared_by_readers());
    let pair = ["no-remote-caching", "hmg"].map(|design| record(&machine, design, &[], &program));
    assert_eq!(leading(&pair[0], &pair[1]), ("gpu", false, "coherence.inter_gpu_loads"));
}

#[test]
fn a_directory_too_small_takes_lines_from_their_readers() {
    let (machine, program) = (modules(&["l1.bytes=16KB", "directory.entries=64"]), shared_by_readers());
    let pair = ["software-flat", "nhcc"].map(|design| record(&machine, design, &[], &program));
    assert_eq!(leading(&pair[0], &pair[1]), ("gpu", true, "coherence.lines_invalidated_by_eviction"));
}

#[test]
fn a_table_of_chiplets_elides_write_backs_at_boundaries() {
    let machine = machine("chiplet-4", &["topology.sms_per_module=1"]);
    let kernels = vec![writes(4, 4096); 6];
    let program = DirectedProgram::of_arrays(machine.line, kernels, &[("all", 0..4 * 4096)], &[]);
    let pair = ["viper", "cpelide"].map(|design| record(&machine, design, &[], &program));
    assert_eq!(leading(&pair[0], &pair[1]), ("kernel_boundary", false, "coherence.writebacks"));
}

#[test]
fn pages_that_move_to_whoever_touches_them_fault() {
    let (machine, program) = (gpus(&[]), DirectedProgram::new(vec![writes(4, 512), on(1, 4, 0..512, read)]));
    let pair = ["remote-demand-loads", "unified-memory"].map(|design| record(&machine, design, &[], &program));
    assert_eq!(grown(&pair[0], &pair[1]), ("page", "paging.faults"));
    assert_eq!(leading(&pair[0], &pair[1]), ("gpu", false, "coherence.inter_gpu_loads"));
}

#[test]
fn copies_before_kernels_take_the_place_of_loads_from_other_gpus() {
    let (machine, program) = (gpus(&[]), DirectedProgram::new(vec![writes(4, 2048), on(1, 4, 0..2048, read)]));
    let pair = ["remote-demand-loads", "memcpy"].map(|design| record(&machine, design, &[], &program));
    assert_eq!(grown(&pair[0], &pair[1]), ("idle", "copies.bytes"));
    assert_eq!(leading(&pair[0], &pair[1]), ("gpu", false, "coherence.inter_gpu_loads"));
}

#[test]
fn an_l2_that_writes_through_has_stores_wait_for_memory() {
    // No store waits in memory for an earlier store to the same line.
    let machine = modules(&["sm.posted_stores=16", "dram.rate=4GB/s", "dram.write_queue=2"]);
    let again = |warp: &mut WarpBuilder<'_>, line: u64| (0..8).for_each(|_| _ = warp.write([line]));
    let program = DirectedProgram::new(vec![on(0, 16, 0..1024, again)]);
    let pair = ["through", "back"].map(|kind| record(&machine, "hmg", &[&format!("design.l2_write={kind}")], &program));
    assert_eq!(leading(&pair[0], &pair[1]), ("store_credit", false, "dram.write_bytes"));
}

#[test]
fn a_release_of_a_gpu_under_a_hierarchy_stays_inside() {
    let machine = modules(&["gpu_link.latency=10us"]);
    let release = |warp: &mut WarpBuilder<'_>, line: u64| {
        warp.write([line]).store([line + 4096], Mask(1), Order::release(Scope::Gpu));
    };
    let program = DirectedProgram::new(vec![on(0, 16, 0..8192, read), on(4, 16, 0..256, release)]);
    let pair = ["software-flat", "software-hierarchical"].map(|design| record(&machine, design, &[], &program));
    let (class, grew, _) = leading(&pair[0], &pair[1]);
    assert_eq!((class, grew), ("release", false));
}
