//! Division of a run's time, tested with directed programs for which copies and launches are known in closed form.

use crate::common::{self, DESIGNS, NO_REFRESH, design, machine};
use std::sync::Arc;
use tombolo_system::directed::{CtaBuilder, DirectedProgram};
use tombolo_system::{RunRecord, RunSpec, run};
use tombolo_types::LineSize;
use tombolo_types::stream::{Command, CtaStream, KernelInfo, Program, StreamError};

/// A directed program with a custom launch order for its kernels, with copies in between.
struct Ordered {
    directed: Arc<DirectedProgram>,
    commands: Vec<Command>,
}

impl Program for Ordered {
    fn name(&self) -> &str {
        self.directed.name()
    }

    fn line_size(&self) -> LineSize {
        self.directed.line_size()
    }

    fn warp_width(&self) -> u32 {
        self.directed.warp_width()
    }

    fn kernels(&self) -> &[KernelInfo] {
        self.directed.kernels()
    }

    fn commands(&self) -> &[Command] {
        &self.commands
    }

    fn cta(&self, kernel: u32, cta: u32, into: &mut CtaStream) -> Result<(), StreamError> {
        self.directed.cta(kernel, cta, into)
    }
}

fn launch(kernel: u32, stream: u32) -> Command {
    Command::launch(kernel, stream)
}

fn copy(bytes: u64) -> Command {
    Command::Copy { address: 0, bytes, to_device: true }
}

/// Two kernels: each CTA in the first reads one line, each CTA in the second reads four.
fn kernels() -> Arc<DirectedProgram> {
    let reads = |lines: u64| {
        let cta =
            |first: u64| CtaBuilder::new().warp(|warp| (first..first + lines).for_each(|line| _ = warp.read([line])));
        (0..16).map(|module| cta(module * 64)).collect()
    };
    DirectedProgram::new(vec![reads(1), reads(4)])
}

/// A run of `commands` with launches that take 4 us at first, then 1 us, and copies that take 1 us plus a nanosecond
/// per byte.
fn ran(name: &str, settings: &[&str], commands: Vec<Command>) -> RunRecord {
    let host = ["host.launch_latency=4us", "host.dependent_launch_latency=1us", "host.copy_latency=1us"];
    let machine = machine(&[&host[..], &["host.copy_rate=1GB/s"], &NO_REFRESH, settings].concat());
    let program = Arc::new(Ordered { directed: kernels(), commands });
    run(&RunSpec { machine, design: design(name, &[]), program, pages: None, threads: 1 }).expect("it runs")
}

/// Microseconds rounded to a hundred thousandth: a picosecond passes between two commands.
fn us(seconds: f64) -> f64 {
    (seconds * 1e11).round() / 1e5
}

#[test]
fn launches_and_copies_take_what_the_machine_says_and_kernels_the_rest_under_every_design() {
    let commands = || vec![copy(3000), launch(0, 0), copy(500), launch(1, 0), launch(0, 0), copy(1000)];
    for name in DESIGNS {
        let RunRecord { time, time_s, kernels, .. } = ran(name, &[], commands());
        assert_eq!(us(time.launches_s), 4.0 + 1.0 + 1.0, "{name}");
        assert_eq!(us(time.copies_s), 4.0 + 1.5 + 2.0, "{name}");
        let open: f64 = kernels.iter().map(|kernel| kernel.end_s - kernel.start_s).sum();
        assert_eq!((us(time.kernels_s), time.host_s), (us(open), 0.0), "{name}");
        let sum = time.kernels_s + time.copies_s + time.host_s + time.launches_s;
        assert!((sum - time.whole_s).abs() < 1e-15 && time.whole_s == time_s, "{name}: {time:?}");
        let between = time.region_s - (open + 1.5e-6 + 1e-6 + 1e-6);
        // A picosecond passes between two commands.
        assert!(between.abs() < 1e-11, "the gaps and the copy between, {name}: {between}");
    }
}

#[test]
fn the_region_leaves_out_what_is_before_the_first_kernel_and_after_the_last() {
    let long = ran("hmg", &[], vec![copy(90_000), launch(0, 0), launch(1, 0), copy(90_000)]).time;
    let short = ran("hmg", &["host.launch_latency=2us"], vec![launch(0, 0), launch(1, 0)]).time;
    // The kernel's start may shift within a cycle.
    let is_near = |one: f64, other: f64| (one - other).abs() < 2e-9;
    assert!(is_near(long.region_s, short.region_s) && is_near(long.kernels_s, short.kernels_s), "{long:?} {short:?}");
    assert!(is_near(long.whole_s - short.whole_s, 2.0 * 91e-6 + 2e-6), "{long:?} {short:?}");
}

#[test]
fn what_trips_take_beyond_the_launch_latency_is_the_kernel_s() {
    // The acquire's round trip and the launch's trip, under HMG only the last: hidden, or far too long to hide.
    for (name, trip, hidden) in [
        ("software-hierarchical", "gpu_link.latency=100ns", 0.0),
        ("hmg", "gpu_link.latency=100ns", 0.0),
        ("software-hierarchical", "gpu_link.latency=10us", 2.0),
        ("hmg", "gpu_link.latency=10us", 2.0),
    ] {
        let second = |latency: &str| {
            let settings = [trip, latency];
            let RunRecord { time, kernels, .. } = ran(name, &settings, vec![launch(0, 0), launch(0, 0)]);
            let gap = kernels[1].start_s - kernels[0].end_s;
            assert_eq!(us(time.launches_s), 4.0 + us(gap), "{name}");
            assert_eq!(us(kernels[0].start_s), 4.0, "{name}");
            (us(gap), 1e6 * (kernels[1].end_s - kernels[1].start_s))
        };
        let (short, long) = (second("host.dependent_launch_latency=1us"), second("host.dependent_launch_latency=3us"));
        assert_eq!((short.0, long.0), (1.0, 3.0), "{name}");
        // The longer latency hides a larger part of the same trips.
        assert!((short.1 - long.1 - hidden).abs() < 2e-3, "{name}, {trip}: {short:?} {long:?}");
    }
}

#[test]
fn each_launch_has_the_counters_of_its_own_ctas() {
    let commands = vec![launch(1, 3), launch(0, 7), launch(1, 3)];
    let record = ran("hmg", &[], commands);
    let rows = &record.kernels;
    let of = |index: usize| (rows[index].stream, rows[index].ctas, rows[index].transactions, rows[index].l1_loads);
    assert_eq!([of(0), of(1), of(2)], [(3, 16, 64, 64), (7, 16, 16, 16), (3, 16, 64, 64)]);
    assert!(rows.iter().all(|row| row.gpu.is_none()), "all GPUs run them together");
    let sum = |of: fn(&tombolo_system::record::KernelRecord) -> u64| rows.iter().map(of).sum::<u64>();
    assert_eq!(sum(|row| row.warp_instructions), record.warp_instructions);
    assert_eq!(sum(|row| row.memory_instructions), record.memory_instructions);
    assert_eq!(sum(|row| row.transactions), record.transactions);
    assert_eq!((sum(|row| row.l1_loads), sum(|row| row.l1_load_hits)), (record.l1.loads, record.l1.hits));
    let alone = ran("ideal", &["topology.gpus=1"], vec![launch(0, 0)]);
    assert_eq!(alone.kernels[0].gpu.as_deref(), Some("gpu0"));
}

#[test]
fn each_gpu_has_its_own_transactions_and_time() {
    let mut ctas = vec![CtaBuilder::new(); 16];
    // Modules 4 to 7 belong to GPU 1. Module 5 computes for a long time.
    ctas[5] = CtaBuilder::new().warp(|warp| _ = warp.compute(20_000).read([0]));
    let program = DirectedProgram::new(vec![ctas]);
    let machine = machine(&[]);
    let record = common::simulate(&machine, design("hmg", &[]), program);
    let names: Vec<&str> = record.gpus.iter().map(|gpu| gpu.name.as_str()).collect();
    assert_eq!(names, ["gpu0", "gpu1", "gpu2", "gpu3"]);
    assert_eq!(record.gpus.iter().map(|gpu| gpu.transactions).collect::<Vec<_>>(), [0, 1, 0, 0]);
    let long = 20_000.0 / 1.3e9;
    assert!(record.gpus[1].busy_s > long && record.gpus[1].busy_s < record.time.kernels_s, "{:?}", record.gpus);
    assert!(record.gpus[0].busy_s < 0.1 * long, "{:?}", record.gpus);
    let bytes = |name: &str| record.links.iter().find(|link| link.name == name).map_or(0, |link| link.bytes);
    assert_eq!(record.gpus[1].link_bytes, bytes("gpu1.in") + bytes("gpu1.out"));
}
