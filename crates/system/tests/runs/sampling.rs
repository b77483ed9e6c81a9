//! Sampled launches in directed programs, compared with the whole program.

use crate::common::{design, machine};
use std::sync::Arc;
use tombolo_machine::MachineConfig;
use tombolo_system::directed::{CtaBuilder, DirectedProgram};
use tombolo_system::{RunRecord, RunSpec, run, run_sampled, sampling_refusal};
use tombolo_types::LaunchDevices;
use tombolo_types::stream::Command;

/// Small L2 caches, which lose lines from much earlier launches, and copies with nonzero duration.
fn small() -> Arc<MachineConfig> {
    machine(&["l2.bytes=64KB", "page_bytes=4KB", "host.copy_rate=15.75GB/s"])
}

fn spec(design_name: &str, threads: usize, program: &Arc<DirectedProgram>) -> RunSpec {
    let program = Arc::clone(program) as Arc<_>;
    RunSpec { machine: small(), design: design(design_name, &[]), program, pages: None, threads }
}

fn both(design_name: &str, program: &Arc<DirectedProgram>) -> (RunRecord, RunRecord) {
    let spec = spec(design_name, 1, program);
    (run(&spec).expect("it runs"), run_sampled(&spec, None, None).expect("it runs"))
}

/// A kernel with one CTA per module; each module reads its own `count` lines, starting from `first`.
fn reading(first: u64, count: u64) -> Vec<CtaBuilder> {
    let lines = |module: u64| first + module * count..first + (module + 1) * count;
    (0..16).map(|module| CtaBuilder::sharing(lines(module), 4, |warp, line| _ = warp.read([line]))).collect()
}

/// `launches` kernels that read different lines each.
fn streaming(launches: u64, lines: impl Fn(u64) -> u64) -> Arc<DirectedProgram> {
    DirectedProgram::new((0..launches).map(|launch| reading(launch << 20, lines(launch))).collect())
}

/// Checks that the sample's time is within the error bound, and that not all launches ran.
fn assert_true(whole: &RunRecord, sampled: &RunRecord) {
    let sampling = sampled.sampling.as_ref().expect("it was asked for");
    assert_eq!(sampling.whole, None);
    assert!(sampling.launches_run < sampling.launches && sampling.launches == whole.kernel_launches);
    let (truth, told) = (whole.time_s, sampled.time_s);
    assert!((told - truth).abs() <= sampling.error_s, "{told} ± {} where it takes {truth}", sampling.error_s);
    let region = (sampled.time.region_s - whole.time.region_s).abs();
    assert!(region <= sampling.error_s && sampling.error_s < 0.1 * truth, "{region} {}", sampling.error_s);
    let launches = (sampled.time.launches_s - whole.time.launches_s).abs();
    assert!(launches < 1e-9, "what launches take is known: {launches}");
}

#[test]
fn alike_launches_are_told_by_a_few() {
    let (whole, sampled) = both("hmg", &streaming(240, |_| 64));
    assert_true(&whole, &sampled);
    assert_eq!(sampling_refusal(&spec("hmg", 1, &streaming(240, |_| 64)), None).expect("its streams are whole"), None);
    let sampling = sampled.sampling.expect("it was asked for");
    assert!(sampling.error_s < 0.01 * whole.time_s, "± {} of {}", sampling.error_s, whole.time_s);
}

#[test]
fn launches_that_grow_are_told_by_their_work() {
    // Whole pages, each homed on one module.
    let (whole, sampled) = both("hmg", &streaming(240, |launch| 32 * (1 + launch / 40)));
    assert_true(&whole, &sampled);
}

#[test]
fn later_launches_that_are_slower_for_the_same_work_are_within_the_error_or_run_whole() {
    // The first half reads local lines; the second half reads the first kernel's pages on another GPU.
    let first = reading(0, 4096);
    let own = |launch: u64| -> Vec<CtaBuilder> { part(launch, 0) };
    let afar = |launch: u64| -> Vec<CtaBuilder> { part(launch, 8) };
    fn part(launch: u64, turned: u64) -> Vec<CtaBuilder> {
        let lines = |module: u64| {
            let first = (module + turned) % 16 * 4096 + launch % 64 * 64;
            first..first + 64
        };
        (0..16).map(|module| CtaBuilder::sharing(lines(module), 4, |warp, line| _ = warp.read([line]))).collect()
    }
    for slow_from in [20, 60, 120, 200] {
        let kernels = (0..240).map(|launch| if launch < slow_from { own(launch) } else { afar(launch) });
        let program = DirectedProgram::new(std::iter::once(first.clone()).chain(kernels).collect());
        let (whole, sampled) = both("no-remote-caching", &program);
        let sampling = sampled.sampling.as_ref().expect("it was asked for");
        match &sampling.whole {
            Some(_) => assert_eq!(sampled.digest, whole.digest),
            None => assert_true(&whole, &sampled),
        }
        let slow = whole.kernels[230].end_s - whole.kernels[230].start_s;
        let fast = whole.kernels[10].end_s - whole.kernels[10].start_s;
        assert!(slow > 1.2 * fast, "the program does slow down: {fast} {slow}");
    }
}

#[test]
fn a_sample_is_the_same_on_one_thread_and_on_two() {
    let program = streaming(240, |launch| 16 + launch % 50);
    let on = |threads| {
        let record = run_sampled(&spec("hmg", threads, &program), None, None).expect("it runs");
        (record.digest, record.time, record.sampling)
    };
    assert_eq!(on(1), on(2));
}

/// Checks that the record states the reason for running whole, and equals the whole run.
fn assert_whole(design_name: &str, program: &Arc<DirectedProgram>, reason: &str) {
    let (whole, sampled) = both(design_name, program);
    let note = sampled.sampling_note().expect("it was asked for");
    assert!(note.contains(reason), "{note}");
    assert_eq!((&sampled.digest, sampled.time, sampled.time_s), (&whole.digest, whole.time, whole.time_s));
    let sampling = sampled.sampling.expect("it was asked for");
    assert!(sampling.whole.as_ref().is_some_and(|why| why.contains(reason)), "{:?}", sampling.whole);
    let before = sampling_refusal(&spec(design_name, 1, program), None).expect("its streams are whole");
    assert_eq!(before, sampling.whole, "what is known before a run");
    assert_eq!((sampling.error_s, sampling.launches_run), (0.0, whole.kernel_launches));
}

#[test]
fn where_no_sample_applies_the_program_runs_whole() {
    assert_whole("hmg", &streaming(10, |_| 64), "10 launches");
    assert_whole("cpelide", &streaming(60, |_| 8), "kernel boundary");
    // Each launch needs cache contents from the first.
    let again = DirectedProgram::new(vec![reading(0, 4), reading(1 << 20, 4)]);
    let order: Vec<u32> = (0..60).map(|launch| u32::from(launch % 30 > 0)).collect();
    assert_whole("hmg", &again.with_launch_order(&order), "of its work");
}

#[test]
fn launches_side_by_side_run_whole() {
    let program = DirectedProgram::new((0..60).map(|launch| reading(launch << 20, 8)).collect());
    let streams = |kernel: u32| Command::Launch { kernel, stream: kernel % 2, on: LaunchDevices::All };
    assert_whole("hmg", &program.with_commands((0..60).map(streams).collect()), "side by side");
}

#[test]
fn copies_between_launches_take_what_they_take_in_the_whole() {
    let copied =
        |kernel: u32| [Command::launch(kernel, 0), Command::Copy { address: 0, bytes: 4096, to_device: false }];
    let program = streaming(240, |_| 64).with_commands((0..240).flat_map(copied).collect());
    let (whole, sampled) = both("hmg", &program);
    assert_true(&whole, &sampled);
    assert!(whole.time.copies_s > 0.0);
    assert!((sampled.time.copies_s - whole.time.copies_s).abs() < 1e-9, "{:?} {:?}", sampled.time, whole.time);
}
