//! Costs of hardware present in a machine, and zero cost for absent hardware: real traces on single GPUs.

use crate::common;
use std::path::Path;
use std::sync::Arc;
use tombolo_machine::MachineConfig;
use tombolo_system::directed::{CtaBuilder, DirectedProgram, WarpBuilder};
use tombolo_system::{RunRecord, RunSpec, run};
use tombolo_types::stream::{AtomicResult, Program};
use tombolo_types::{Mask, Order, Scope};
use tombolo_workload::trace;

fn machine(name: &str, settings: &[&str]) -> Arc<MachineConfig> {
    let mut machine = tombolo_machine::machine(name).expect("a preset");
    tombolo_design::apply(settings, &mut machine, &mut []).expect("settings a machine has");
    Arc::new(machine.check().expect("a machine that fits"))
}

fn simulate(machine: &Arc<MachineConfig>, design: &str, program: Arc<dyn Program>) -> RunRecord {
    let design = common::design(design, &[]);
    let spec = RunSpec { machine: Arc::clone(machine), design, program, pages: None, threads: 1 };
    run(&spec).unwrap_or_else(|error| panic!("{error}"))
}

/// Runs a trace from `tests/data` on a machine.
fn traced(name: &str, machine: &Arc<MachineConfig>, design: &str) -> RunRecord {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name);
    let program = trace::open(&path, machine.line, machine.sm.warp_width).expect("a trace");
    simulate(machine, design, program.into())
}

/// Settings for links that connect nothing: a lone GPU's link, and a lone module's link.
const NO_GPU_LINK: [&str; 3] = ["gpu_link.latency=100us", "gpu_link.rate=1GB/s", "gpu_link.lanes=2"];
const NO_MODULE_LINK: [&str; 2] = ["module_link.latency=100us", "module_link.rate=1GB/s"];

#[test]
fn links_that_a_machine_lacks_change_nothing() {
    let both = [&NO_GPU_LINK[..], &NO_MODULE_LINK].concat();
    for (name, design, lacks) in [
        ("v100", "v100", &both[..]),
        ("h100", "h100", &both),
        ("numa-hypothetical-4", "numa-memory-side", &both),
        ("hmg-1x4", "hmg", &NO_GPU_LINK),
        ("numa-4", "numa-aware", &NO_MODULE_LINK),
    ] {
        let [plain, set] = [&[][..], lacks].map(|settings| traced("empty-kernel", &machine(name, settings), design));
        assert_eq!((set.digest, set.cycles), (plain.digest, plain.cycles), "{name}");
        let program = || {
            DirectedProgram::new(vec![
                (0..32).map(|id| CtaBuilder::new().warp(|w| _ = w.read([id, 64]).write([id]))).collect(),
            ])
        };
        let [plain, set] = [&[][..], lacks].map(|settings| simulate(&machine(name, settings), design, program()));
        assert_eq!((set.digest, set.cycles), (plain.digest, plain.cycles), "{name}");
    }
}

#[test]
fn an_empty_kernel_takes_what_the_command_processor_does() {
    // The kernel goes out to one module, its end comes back, and one release phase goes out and back.
    let kernel = |latency: &str| {
        let machine = machine("v100", &[&format!("host.command_latency={latency}")]);
        traced("empty-kernel", &machine, "v100").kernels[0].clone()
    };
    let [near, far] = ["36ns", "136ns"].map(|latency| {
        let kernel = kernel(latency);
        (kernel.end_s - kernel.start_s) * 1e9
    });
    let trips = (far - near) / 100.0;
    assert!((trips - trips.round()).abs() < 1e-6 && (1.0..=4.0).contains(&trips), "{trips} trips");
    assert!(near < 100.0 + trips * 36.0, "{near} ns, of which {trips} trips");
}

#[test]
fn a_slice_takes_a_request_a_cycle() {
    let machine = machine("v100", &[]);
    let [few, many] = ["store-one-word-16", "store-one-word-32"].map(|name| traced(name, &machine, "v100").cycles);
    let more = 10_240;
    assert!(many - few >= more, "{more} more stores to one word take {} cycles", many - few);
    assert!(many - few < more + more / 10, "and not much longer: {} cycles", many - few);
}

#[test]
fn a_stream_of_stores_runs_at_the_rate_at_which_memory_takes_what_is_evicted() {
    let machine = machine("v100", &["l2.bytes=768KB"]);
    let line = machine.line.bytes();
    // Thirty times the L2, written once by 512 warps.
    let each = 30 * machine.l2.bytes / line / 512;
    let warp = |id: u64| CtaBuilder::new().warp(|warp| (0..each).for_each(|index| _ = warp.write([id * each + index])));
    let record = simulate(&machine, "v100", DirectedProgram::new(vec![(0..512).map(warp).collect()]));
    assert_eq!(record.dram.write_bytes, 29 * machine.l2.bytes, "the L2 keeps the rest");
    let share = record.dram.write_bytes as f64 / record.gpus[0].busy_s / machine.dram.rate.0 as f64;
    assert!((0.9..=1.0).contains(&share), "{share} of the rate of memory");
}

/// 1280 warps read 60 MB, each its own part, 32 lines at a time. A hash spreads lines over slices and their channels.
#[test]
fn a_stream_of_loads_runs_at_the_rate_of_memory() {
    let machine = machine("v100", &[]);
    let (warps, each) = (1280, 12 * 32);
    let warp = |id: u64| {
        let part = id * each..(id + 1) * each;
        CtaBuilder::new().warp(|warp| part.step_by(32).for_each(|line| _ = warp.read(line..line + 32)))
    };
    let record = simulate(&machine, "v100", DirectedProgram::new(vec![(0..warps).map(warp).collect()]));
    assert_eq!(record.dram.read_bytes, warps * each * machine.line.bytes());
    let share = record.dram.read_bytes as f64 / record.gpus[0].busy_s / machine.dram.rate.0 as f64;
    assert!((0.9..=1.0).contains(&share), "{share} of the rate of memory: {:?}, {:?}", record.dram, record.utilization);
}

#[test]
fn an_atomic_that_misses_reads_its_sector() {
    let machine = machine("v100", &[]);
    let record = traced("sparse-atomics", &machine, "v100");
    assert_eq!(record.dram.read_bytes, 2048 * 32, "each of the 2,048 atomics touches one sector of a line");
}

#[test]
fn a_cta_barrier_waits_for_the_loads_before_it() {
    // The first warp's load takes 20 us in memory; no instruction uses its result, and both warps meet at a barrier.
    let time = |latency: &str| {
        let machine = machine("v100", &[&format!("dram.base_latency={latency}")]);
        let cta = CtaBuilder::new()
            .warp(|w| _ = w.load([64], Order::WEAK).barrier().compute(1))
            .warp(|w| _ = w.barrier().compute(5000));
        let kernel = simulate(&machine, "v100", DirectedProgram::new(vec![vec![cta]])).kernels[0].clone();
        kernel.end_s - kernel.start_s
    };
    let arithmetic = 5000.0 * 2.0 / 1.38e9;
    assert!(time("20us") > 20e-6 + arithmetic, "the arithmetic behind the barrier began before the load was there");
    assert!(time("1us") < 20e-6);
}

#[test]
fn results_of_atomics_come_back_by_the_gpu_home() {
    // A `.sys` atomic from module 4, on GPU 1, to a line homed at module 0: the request passes through the GPU home,
    // and so does its result.
    let run = |design: &str| {
        let alone = |module: usize, cta: CtaBuilder| {
            let mut ctas = vec![CtaBuilder::new(); 16];
            ctas[module] = cta;
            ctas
        };
        let order = Order::relaxed(Scope::Sys);
        let lines = 0..64;
        let place = CtaBuilder::new().warp(|w| lines.clone().for_each(|line| _ = w.read([line])));
        let atomics = CtaBuilder::new().warp(|w| {
            lines.clone().for_each(|line| _ = w.atomic([line], order, AtomicResult::Returned).use_result(1));
        });
        let program = DirectedProgram::new(vec![alone(0, place), alone(4, atomics)]);
        let record = simulate(&machine("hmg-4x4", &["topology.sms_per_module=1"]), design, program);
        let kernel = record.kernels[1].clone();
        (record.coherence["atomics"], record.coherence["atomics_passed"], kernel.end_s - kernel.start_s)
    };
    let (flat, hierarchical) = (run("nhcc"), run("hmg"));
    assert_eq!((flat.0, hierarchical.0), (64, 64), "each is performed once");
    assert_eq!(flat.1, 64, "each is passed on by its own L2");
    assert!(hierarchical.1 > 64 && hierarchical.1 <= 128, "and by a GPU home: {}", hierarchical.1);
    let by_home = (hierarchical.1 - 64) as f64;
    let hop = 32e-9;
    assert!(hierarchical.2 - flat.2 >= by_home * 2.0 * hop, "there and back: {} s", hierarchical.2 - flat.2);
}

/// Cycles for a kernel with these CTAs on a V100, minus the cycles for a lone warp reading a single sector.
fn beyond_one_sector(ctas: Vec<CtaBuilder>) -> u64 {
    let machine = machine("v100", &["sm.clock=1.132GHz"]);
    let cycles = |ctas| simulate(&machine, "v100", DirectedProgram::new(vec![ctas])).cycles;
    cycles(ctas) - cycles(vec![reading_sector(0)])
}

/// The grains in a 32-byte sector.
fn sector(index: u32) -> Mask {
    Mask(0xff << (8 * index))
}

fn reading_sector(index: u32) -> CtaBuilder {
    CtaBuilder::new().warp(|warp| _ = warp.read_part([0], sector(index)))
}

// A sector from DRAM takes 356 cycles there.
#[test]
fn sectors_of_one_line_are_independent_reads_of_one_l1() {
    let warps = (0..4).fold(CtaBuilder::new(), |cta, index| cta.warp(|warp| _ = warp.read_part([0], sector(index))));
    let more = beyond_one_sector(vec![warps]);
    assert!(more <= 35, "four warps read a sector each: {more} cycles longer");
}

#[test]
fn sectors_of_one_line_are_independent_reads_of_one_l2() {
    let more = beyond_one_sector((0..4).map(reading_sector).collect());
    assert!(more <= 35, "four SMs read a sector each: {more} cycles longer");
}

#[test]
fn a_warp_has_four_sectors_of_each_line_under_way() {
    let lines = 0..32_u64;
    let loads = |warp: &mut WarpBuilder<'_>| {
        for index in 0..4 {
            warp.load_part(lines.clone(), sector(index), Order::WEAK);
        }
        _ = warp.use_result(1).use_result(2).use_result(3).use_result(4);
    };
    let one = beyond_one_sector(vec![CtaBuilder::new().warp(|warp| _ = warp.read_part(lines.clone(), sector(0)))]);
    let four = beyond_one_sector(vec![CtaBuilder::new().warp(loads)]);
    assert!(four <= one + 107, "four loads take {} cycles longer than one", four - one);
}
