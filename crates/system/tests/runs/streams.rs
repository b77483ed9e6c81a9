//! Concurrent kernels from several streams, tested with directed programs for which times and counters are known in
//! closed form.

use crate::common::{DESIGNS, design, machine, simulate, simulate_on};
use std::sync::Arc;
use tombolo_machine::MachineConfig;
use tombolo_protocol::BrokenRule;
use tombolo_system::checker::CheckReport;
use tombolo_system::directed::{CtaBuilder, DirectedProgram};
use tombolo_system::record::KernelRecord;
use tombolo_system::{RunRecord, RunSpec, run, run_checked};
use tombolo_types::stream::Command;
use tombolo_types::{GpuId, LaunchDevices, ModuleId, ModuleSet, Order, Scope};

/// CTAs in a grid: one per module in the machine.
const CTAS: u64 = 16;
/// Distance in lines between the data for two kernels: a page for each CTA.
const APART: u64 = 1 << 20;

fn launch(kernel: u32, stream: u32) -> Command {
    Command::launch(kernel, stream)
}

fn launch_on(kernel: u32, stream: u32, on: LaunchDevices) -> Command {
    Command::Launch { kernel, stream, on }
}

fn gpu(index: u8) -> LaunchDevices {
    LaunchDevices::gpu(GpuId(index))
}

/// A kernel that only computes: a CTA per module, with a single warp.
fn computing(instructions: u16) -> Vec<CtaBuilder> {
    (0..CTAS).map(|_| CtaBuilder::new().warp(|warp| _ = warp.compute(instructions))).collect()
}

/// A kernel that reads and writes private lines: `kernel` selects them, and no two kernels or CTAs share a page.
fn streaming(kernel: u64, lines: u64) -> Vec<CtaBuilder> {
    let cta = |cta: u64| {
        let first = kernel * APART + cta * (APART / CTAS);
        CtaBuilder::new().warp(|warp| (first..first + lines).for_each(|line| _ = warp.read([line]).write([line])))
    };
    (0..CTAS).map(cta).collect()
}

fn ran(kernels: Vec<Vec<CtaBuilder>>, commands: Vec<Command>) -> RunRecord {
    simulate(&machine(&[]), design("hmg", &[]), DirectedProgram::new(kernels).with_commands(commands))
}

fn took(kernel: &KernelRecord) -> f64 {
    kernel.end_s - kernel.start_s
}

fn is_near(one: f64, other: f64) -> bool {
    (one - other).abs() < 1e-11
}

#[test]
fn two_streams_take_less_than_one_after_the_other_and_each_what_it_takes_alone() {
    let kernels = || vec![computing(40_000), computing(40_000)];
    let alone = ran(kernels(), vec![launch(0, 0)]);
    let beside = ran(kernels(), vec![launch(0, 0), launch(1, 1)]);
    let behind = ran(kernels(), vec![launch(0, 0), launch(1, 0)]);
    // The dispatcher starts the second kernel's CTA one interval later; each CTA has its own sub-core.
    let (own, turn) = (took(&alone.kernels[0]), machine(&[]).host.dispatch_interval.seconds());
    let both: Vec<f64> = beside.kernels.iter().map(took).collect();
    assert!(own > 10e-6 && is_near(both[0], own) && is_near(both[1], own + turn), "{own} {both:?}");
    assert!(is_near(beside.time_s, alone.time_s + turn), "{} {}", beside.time_s, alone.time_s);
    let gap = behind.kernels[1].start_s - behind.kernels[0].end_s;
    assert!(is_near(behind.time_s, alone.time_s + gap + own), "{} {}", behind.time_s, alone.time_s);
}

#[test]
fn kernels_on_different_gpus_do_not_meet() {
    let kernels = || vec![streaming(0, 64), streaming(1, 64)];
    let alone = ran(kernels(), vec![launch_on(0, 0, gpu(0))]);
    let other = ran(kernels(), vec![launch_on(1, 0, gpu(2))]);
    let both = ran(kernels(), vec![launch_on(0, 0, gpu(0)), launch_on(1, 1, gpu(2))]);
    for (kernel, alone) in both.kernels.iter().zip([&alone.kernels[0], &other.kernels[0]]) {
        assert!(is_near(took(kernel), took(alone)), "{kernel:?} {alone:?}");
        assert_eq!((kernel.ctas, kernel.transactions), (CTAS, CTAS * 2 * 64));
        assert_eq!((kernel.l1_loads, kernel.l1_load_hits), (alone.l1_loads, alone.l1_load_hits));
    }
    let gpus: Vec<Option<&str>> = both.kernels.iter().map(|kernel| kernel.gpu.as_deref()).collect();
    assert_eq!(gpus, [Some("gpu0"), Some("gpu2")]);
    assert_eq!([both.kernels[0].stream, both.kernels[1].stream], [0, 1]);
    let transactions: Vec<u64> = both.gpus.iter().map(|gpu| gpu.transactions).collect();
    assert_eq!(transactions, [CTAS * 128, 0, CTAS * 128, 0]);
    let idle = |record: &RunRecord, at: usize| record.gpus[at].busy_s == 0.0 && record.gpus[at].link_bytes == 0;
    assert!(idle(&both, 1) && idle(&both, 3) && idle(&alone, 1) && idle(&alone, 2) && idle(&alone, 3));
}

#[test]
fn a_launch_on_modules_is_cut_over_them() {
    let on = LaunchDevices::Modules(ModuleSet::from_bits(0b1000_0000_0000_0010));
    let record = ran(vec![streaming(0, 8)], vec![launch_on(0, 0, on)]);
    let transactions: Vec<u64> = record.gpus.iter().map(|gpu| gpu.transactions).collect();
    assert_eq!(transactions, [CTAS * 8, 0, 0, CTAS * 8]);
    assert_eq!(record.kernels[0].gpu, None);
    let one = ran(vec![streaming(0, 8)], vec![launch_on(0, 0, LaunchDevices::module(ModuleId(5)))]);
    assert_eq!(one.kernels[0].gpu.as_deref(), Some("gpu1"));
}

#[test]
fn a_grid_that_the_program_cuts_runs_as_it_says() {
    let program = || DirectedProgram::new(vec![streaming(0, 8)]).cut(0, &[0, 10, 10, 15]);
    let cut = |scheduling: &str| {
        let record = simulate(&machine(&[]), design("hmg", &[scheduling]), program());
        record.gpus.iter().map(|gpu| gpu.transactions / 16).collect::<Vec<u64>>()
    };
    assert_eq!(cut("scheduling=program"), [10, 0, 5, 1]);
    assert_eq!(cut("scheduling=contiguous"), [4; 4]);
    let refused = |machine, program, settings: &[&str]| {
        let spec = RunSpec { machine, design: design("hmg", settings), program, pages: None, threads: 1 };
        run(&spec).expect_err("it is refused").to_string()
    };
    let two = machine(&["topology.gpus=2"]);
    let why = refused(Arc::clone(&two), program(), &["scheduling=program"]);
    assert!(why.contains("cuts its grid for 4 devices, and launches it on 2"), "{why}");
    let beyond = DirectedProgram::new(vec![streaming(0, 8)]).with_commands(vec![launch_on(0, 0, gpu(2))]);
    let why = refused(two, beyond, &[]);
    assert!(why.contains("on GPU 2 of 2"), "{why}");
}

/// A kernel with a CTA per warp slot of an SM that holds two, four waves on all of `machine`'s SMs: CTAs of the first
/// module compute eight times as long as those of the others, under static assignment.
fn unequal(machine: &MachineConfig, waves: u64) -> Vec<CtaBuilder> {
    let (an_sm, modules) = (u64::from(machine.topology.sms_per_module), machine.topology.modules() as u64);
    let cta = |cta: u64| {
        let is_long = (cta / an_sm).is_multiple_of(modules);
        let instructions = if is_long { 8000 } else { 1000 };
        CtaBuilder::new().warp(|warp| _ = warp.compute(instructions).write([cta * (APART / CTAS)]))
    };
    (0..2 * waves * an_sm * modules).map(cta).collect()
}

#[test]
fn under_dynamic_assignment_a_cta_runs_where_room_is_first() {
    let machine = machine(&["sm.ctas=2"]);
    let (an_sm, modules) = (u64::from(machine.topology.sms_per_module), machine.topology.modules() as u64);
    let run = |scheduling: &str, waves: u64, threads: usize| {
        let design = design("hmg", &[&format!("scheduling={scheduling}")]);
        let program = DirectedProgram::new(vec![unequal(&machine, waves), unequal(&machine, waves)])
            .with_commands(vec![launch(0, 0), launch(1, 1)]);
        simulate_on(threads, &machine, design, program)
    };
    // Static: three quarters of the SMs wait for the first module. Dynamic: they take over its later CTAs.
    let (fixed, dynamic) = (run("virtual-gpu", 4, 1), run("virtual-gpu-dynamic", 4, 1));
    assert_eq!(dynamic.digest, run("virtual-gpu-dynamic", 4, 3).digest);
    let all = 2 * 2 * 4 * an_sm * modules;
    let ctas = |record: &RunRecord| record.kernels.iter().map(|kernel| kernel.ctas).sum::<u64>();
    assert_eq!((ctas(&fixed), ctas(&dynamic)), (all, all));
    let instructions = |record: &RunRecord| record.kernels.iter().map(|kernel| kernel.warp_instructions).sum::<u64>();
    assert_eq!(instructions(&fixed), instructions(&dynamic));
    let ratio = fixed.time_s / dynamic.time_s;
    assert!(ratio > 2.0, "{ratio}");
    let spread = |record: &RunRecord| {
        let sent: Vec<u64> = record.gpus.iter().map(|gpu| gpu.transactions).collect();
        (sent.iter().min().copied(), sent.iter().max().copied())
    };
    assert_eq!(spread(&fixed), (Some(all / 4), Some(all / 4)));
    assert!(spread(&dynamic).0 < Some(all / 4), "{:?}", spread(&dynamic));
    let (fixed, dynamic) = (run("virtual-gpu", 1, 1), run("virtual-gpu-dynamic", 1, 1));
    assert_eq!(spread(&fixed), spread(&dynamic), "a single wave is assigned as under static");
}

#[test]
fn overlapping_kernels_have_their_own_rows_and_time_counts_them_once() {
    let kernels = vec![computing(30_000), streaming(1, 16), computing(10_000)];
    let record = ran(kernels, vec![launch(0, 4), launch(1, 9), launch(2, 9)]);
    let rows = &record.kernels;
    let of = |row: &KernelRecord| (row.stream, row.ctas, row.transactions, row.warp_instructions);
    let expected = [(4, 16, 0, 16 * 30_000), (9, 16, 16 * 32, 16 * 32), (9, 16, 0, 16 * 10_000)];
    assert_eq!(rows.iter().map(of).collect::<Vec<_>>(), expected);
    assert!(rows[1].start_s < rows[0].end_s && rows[2].start_s > rows[1].end_s, "{rows:?}");
    let time = &record.time;
    let sum = time.kernels_s + time.copies_s + time.host_s + time.launches_s;
    assert!((sum - time.whole_s).abs() < 1e-15 && time.whole_s == record.time_s, "{time:?}");
    let open: f64 = rows.iter().map(took).sum();
    assert!(time.kernels_s < open - 1e-6, "{time:?}");
    let busy = record.gpus[0].busy_s;
    assert!(busy > 0.0 && busy <= time.region_s, "{busy} {time:?}");
}

#[test]
fn ctas_of_the_kernel_launched_first_come_first() {
    // An SM has 64 warp slots: the first kernel runs in two turns, and the second starts in slots left free by the
    // second turn.
    let waves = |turns: u64| {
        let ctas = 16 * 64 * turns;
        (0..ctas).map(|_| CtaBuilder::new().warp(|warp| _ = warp.compute(1000))).collect::<Vec<_>>()
    };
    let settings = ["sm.ctas=64"];
    let ran = |commands| {
        let program = DirectedProgram::new(vec![waves(2), computing(10)]).with_commands(commands);
        simulate(&machine(&settings), design("hmg", &[]), program)
    };
    let alone = ran(vec![launch(0, 0)]);
    let beside = ran(vec![launch(0, 0), launch(1, 1)]);
    let (first, second) = (&beside.kernels[0], &beside.kernels[1]);
    assert!(took(second) > took(&alone.kernels[0]) / 2.0, "{second:?}");
    assert!(took(first) < took(&alone.kernels[0]) * 1.01, "{first:?}");
}

#[test]
fn a_stream_waits_for_its_own_and_a_barrier_for_all() {
    let kernels = || vec![computing(30_000), computing(10)];
    let free = ran(kernels(), vec![launch(0, 0), launch(1, 1), launch(1, 1)]);
    assert!(free.kernels[2].end_s < free.kernels[0].end_s && free.kernels[2].start_s > free.kernels[1].end_s);
    let held = ran(kernels(), vec![launch(0, 0), launch(1, 1), Command::Barrier, launch(1, 1)]);
    assert!(held.kernels[2].start_s > held.kernels[0].end_s);
    let copy = Command::Copy { address: 0, bytes: 64, to_device: true };
    let copied = ran(kernels(), vec![launch(0, 0), launch(1, 1), copy, launch(1, 1)]);
    assert!(copied.kernels[2].start_s > copied.kernels[0].end_s);
    let one = |barrier: Option<Command>| {
        let commands = [Some(launch(0, 0)), barrier, Some(launch(1, 0))];
        ran(kernels(), commands.into_iter().flatten().collect()).time_s
    };
    assert!(is_near(one(None), one(Some(Command::Barrier))), "a barrier takes no time of its own");
}

/// Two kernels with one flag each, both numbered 0, on private lines.
fn waiting(kernel: u64, delay: u16) -> Vec<CtaBuilder> {
    let (flag, data) = (kernel * APART, kernel * APART + 8);
    let (release, acquire) = (Order::release(Scope::Sys), Order::acquire(Scope::Sys));
    let cta = |cta: u64| match cta {
        0 => CtaBuilder::new().warp(|warp| {
            warp.compute(delay).write([data]).store([flag], tombolo_types::Mask(1), release).signal(0);
        }),
        15 => CtaBuilder::new().warp(|warp| _ = warp.read([data]).wait_until(flag, 0, acquire).read([data])),
        _ => CtaBuilder::new(),
    };
    (0..CTAS).map(cta).collect()
}

fn checked(name: &str, settings: &[&str], program: Arc<DirectedProgram>, broken: Option<BrokenRule>) -> CheckReport {
    let spec = RunSpec { machine: machine(settings), design: design(name, &[]), program, pages: None, threads: 2 };
    run_checked(&spec, broken).unwrap_or_else(|error| panic!("{name}: {error}")).check.expect("it is checked")
}

#[test]
fn flags_of_kernels_side_by_side_are_told_apart() {
    let program = || {
        DirectedProgram::new(vec![waiting(0, 50_000), waiting(1, 10)]).with_commands(vec![launch(0, 0), launch(1, 1)])
    };
    for name in DESIGNS.into_iter().filter(|name| *name != "ideal") {
        let found = checked(name, &[], program(), None);
        assert_eq!((found.violations, found.loads > 4), (0, true), "{name}: {:?}", found.first);
    }
    let record = simulate(&machine(&[]), design("hmg", &[]), program());
    assert!(took(&record.kernels[1]) < took(&record.kernels[0]) / 2.0, "{:?}", record.kernels);
}

/// Each stream writes half the lines in a first kernel; after a barrier, each stream reads and writes the other half.
fn exchange(rounds: u32) -> Arc<DirectedProgram> {
    let lines = |half: u64, cta: u64| (0..8).map(move |line| half * APART + cta * 64 + line);
    let writes = |half: u64| (0..CTAS).map(|cta| CtaBuilder::new().warp(|w| _ = w.write(lines(half, cta)))).collect();
    let crosses = |half: u64| {
        let cta = |cta: u64| {
            let from = (cta + 5) % CTAS;
            CtaBuilder::new().warp(|w| _ = w.read(lines(1 - half, from)).write(lines(1 - half, from)))
        };
        (0..CTAS).map(cta).collect()
    };
    let kernels = vec![writes(0), writes(1), crosses(0), crosses(1)];
    let round = [launch(0, 0), launch(1, 1), Command::Barrier, launch(2, 0), launch(3, 1), Command::Barrier];
    let commands = round.iter().cycle().take(round.len() * rounds as usize).cloned().collect();
    DirectedProgram::new(kernels).with_commands(commands)
}

#[test]
fn what_streams_share_through_a_barrier_is_current_under_every_design() {
    for name in DESIGNS.into_iter().filter(|name| *name != "ideal") {
        let found = checked(name, &[], exchange(3), None);
        assert_eq!((found.violations, found.loads), (0, 3 * 2 * CTAS * 8), "{name}: {:?}", found.first);
    }
}

/// A kernel in stream `by` writes lines homed on remote modules while another kernel computes; after a barrier the
/// homes read them.
fn handed_over(by: u32) -> Arc<DirectedProgram> {
    let lines = |cta: u64| (0..16).map(move |line| cta % CTAS * 64 + line);
    let reads = || (0..CTAS).map(|cta| CtaBuilder::new().warp(|w| _ = w.read(lines(cta)))).collect();
    let writes = (0..CTAS).map(|cta| CtaBuilder::new().warp(|w| _ = w.write(lines(cta + 5)))).collect();
    let (other, barrier) = (1 - by, Command::Barrier);
    let commands = vec![launch(0, 0), barrier.clone(), launch(1, by), launch(2, other), barrier, launch(0, other)];
    DirectedProgram::new(vec![reads(), writes, computing(10)]).with_commands(commands)
}

#[test]
fn a_release_that_is_left_out_is_caught_in_either_stream() {
    let narrow = ["gpu_link.rate=100MB/s", "module_link.rate=100MB/s"];
    for (name, by) in [("software-flat", 0), ("software-hierarchical", 1), ("hmg", 0), ("hmg", 1)] {
        let found = |broken| checked(name, &narrow, handed_over(by), broken).violations;
        assert_eq!(found(None), 0, "{name}");
        assert!(found(Some(BrokenRule::ReleaseSkipsStores)) > 0, "{name}, stream {by}");
    }
}

/// On CPElide's machine: each stream repeatedly writes a private array on its two chiplets; after a barrier each stream
/// reads the array written by the other stream's chiplets, and writes to it.
fn on_chiplets(settings: &[&str], name: &str) -> RunRecord {
    const LINES: u64 = 64 * 16;
    let machine = {
        let mut machine = tombolo_machine::machine("chiplet-4").expect("a preset");
        tombolo_design::apply(&["topology.sms_per_module=1"], &mut machine, &mut []).expect("a setting it has");
        Arc::new(machine.check().expect("a machine that fits"))
    };
    let lines = |array: u64, cta: u64| (0..16).map(move |line| array * LINES + cta * 64 + line);
    let own = |array: u64| {
        let cta = |cta| CtaBuilder::new().warp(|w| lines(array, cta).for_each(|line| _ = w.read([line]).write([line])));
        (0..16).map(cta).collect::<Vec<_>>()
    };
    let kernels = vec![own(0), own(1)];
    let [low, high] = [0b0011, 0b1100].map(|set| LaunchDevices::Modules(ModuleSet::from_bits(set)));
    let one = |kernel, stream, on| launch_on(kernel, stream, on);
    let side = [one(0, 0, low), one(1, 1, high), one(0, 0, low), one(1, 1, high), Command::Barrier];
    let crossed = [one(0, 0, high), one(1, 1, low), one(1, 1, LaunchDevices::All), Command::Barrier];
    let commands = [&side[..], &crossed, &side].concat();
    let program = DirectedProgram::of_arrays(machine.line, kernels, &[("a", 0..LINES), ("b", LINES..2 * LINES)], &[])
        .with_commands(commands);
    let spec = RunSpec { machine, design: design(name, settings), program, pages: None, threads: 2 };
    run_checked(&spec, None).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[test]
fn chiplets_that_share_through_a_barrier_are_current_under_every_elision() {
    for (name, settings) in [
        ("viper", &[][..]),
        ("viper", &["boundary=launch"]),
        ("viper-cached", &[]),
        ("viper-cached", &["boundary=launch"]),
        ("viper-cached", &["elision=cpelide"]),
        ("cpelide", &[]),
        ("cpelide", &["elision.labels=exact", "elision.operations=range"]),
        ("cpelide", &["elision.labels=modes"]),
        ("cpelide-home-aware", &[]),
        ("hmg-chiplet", &[]),
    ] {
        let record = on_chiplets(settings, name);
        let found = record.check.expect("it is checked");
        assert_eq!((found.violations, found.loads), (0, 11 * 256), "{name} {settings:?}: {:?}", found.first);
        assert!(record.kernels[1].start_s < record.kernels[0].end_s, "{name} {settings:?}: the streams overlap");
    }
}

#[test]
fn a_label_that_lacks_an_array_is_seen_to_read_old_values_beside_another_stream() {
    let found = on_chiplets(&["elision.drop=a"], "cpelide").check.expect("it is checked");
    assert!(found.violations > 0);
}

#[test]
fn two_streams_give_one_digest_at_every_thread_count() {
    for name in DESIGNS {
        let ran = |threads| simulate_on(threads, &machine(&[]), design(name, &[]), exchange(2));
        let one = ran(1);
        assert!(one.kernels[1].start_s < one.kernels[0].end_s, "{name}: side by side");
        for threads in [2, 4] {
            assert_eq!(ran(threads).digest, one.digest, "{name} on {threads} threads");
        }
    }
}
