//! Machines with more modules than a word has bits. If a module set lost members, pages would move nowhere and runs
//! would end in a deadlock.

use crate::common::{apart, design, hosted};
use std::sync::Arc;
use tombolo_design::DesignConfig;
use tombolo_design::placement::{CopyContents, Movement};
use tombolo_machine::MachineConfig;
use tombolo_programs::find;
use tombolo_system::directed::{CtaBuilder, DirectedProgram};
use tombolo_system::{RunRecord, RunSpec, run, run_checked};
use tombolo_types::stream::Program;
use tombolo_types::{HostPhase, LineSize, Promise};
use tombolo_workload::bench::{Mode, Request, record};
use tombolo_workload::record::RecordOptions;
use tombolo_workload::scale::Scale;

/// Lines per page.
const PAGE: u64 = 512;

/// Settings for GPUs that are quickly built.
const SMALL: [&str; 4] = ["topology.sms_per_module=1", "l2.slices=1", "l2.bytes=64KiB", "l1.bytes=16KiB"];

/// Every shipped design.
fn designs() -> impl Iterator<Item = DesignConfig> {
    tombolo_design::list_designs().into_iter().map(|listed| design(listed.name, &[]))
}

/// A machine with `gpus` GPUs on which a design runs; a host is included if the design needs it.
fn machine(design: &DesignConfig, gpus: u64) -> Arc<MachineConfig> {
    let all = format!("topology.gpus={gpus}");
    if design.has_host() {
        hosted(&[&SMALL[..], &[&all[..], "stack.bytes=1MiB"]].concat())
    } else {
        apart(gpus, &SMALL)
    }
}

/// A private page for each GPU, written by the GPU and read by its neighbour, plus a shared page in which each GPU
/// writes one line and reads another GPU's line.
fn program(gpus: u64) -> Arc<DirectedProgram> {
    let (own, shared) = (|gpu: u64| gpu * PAGE, gpus * PAGE);
    let each = |of: &dyn Fn(u64) -> CtaBuilder| (0..gpus).map(of).collect::<Vec<CtaBuilder>>();
    let writes =
        each(&|gpu| CtaBuilder::new().warp(|warp| _ = warp.write([own(gpu), own(gpu) + 1]).write([shared + gpu])));
    let reads = each(&|gpu| {
        let next = (gpu + 1) % gpus;
        CtaBuilder::new().warp(|warp| _ = warp.read([own(next), own(next) + 1]).read([shared + next]))
    });
    let arrays = [("own", 0..shared), ("shared", shared..shared + PAGE)];
    let bytes = |lines: std::ops::Range<u64>| std::iter::once(lines.start * 128..lines.end * 128).collect();
    let setup = HostPhase { reads: Vec::new(), writes: bytes(shared..shared + 4) };
    let results = HostPhase { reads: bytes(shared..shared + 8), writes: Vec::new() };
    let program = DirectedProgram::of_arrays(LineSize::B128, vec![writes, reads], &arrays, &[]);
    // Launches repeat, so that subscribers without uses are found and leave the page.
    program.with_launch_order(&[0, 1, 0, 1, 0, 1]).with_host_phases(setup, results)
}

/// Runs a program with and without load checking, and compares the two runs.
fn simulate(machine: &Arc<MachineConfig>, design: &DesignConfig, program: Arc<dyn Program>) -> RunRecord {
    let spec = RunSpec { machine: Arc::clone(machine), design: design.clone(), program, pages: None, threads: 1 };
    let (name, modules) = (&design.name, machine.topology.modules());
    let plain = run(&spec).unwrap_or_else(|error| panic!("{name}, {modules} modules: {error}"));
    let checked = run_checked(&spec, None).unwrap_or_else(|error| panic!("{name}, {modules} modules: {error}"));
    assert_eq!(plain.digest, checked.digest, "{name}, {modules} modules");
    if !design.promises.contains(Promise::Nothing) {
        assert_eq!(checked.check.expect("it is checked").first, [], "{name}, {modules} modules");
    }
    plain
}

/// True if pages move, are copied or are published, or if GPUs cache blocks from host memory.
fn moves(design: &DesignConfig) -> bool {
    design.placement.sharing().movement != Movement::Placed || design.has_host()
}

#[test]
fn pages_move_and_are_published_among_more_gpus_than_a_word_has_bits() {
    let mut ran = 0;
    for design in designs().filter(|design| moves(design) && !sends_pages_to_all(design)) {
        for gpus in [33, 65] {
            let machine = machine(&design, gpus);
            if design.build(&machine).is_err() {
                // A directory entry names at most 32 modules; another test checks the error message.
                assert!(design.has_host(), "{} and {gpus} GPUs", design.name);
                continue;
            }
            let record = simulate(&machine, &design, program(gpus));
            if let Some(publication) = record.publication {
                let held: Vec<u64> =
                    publication.subscribers.keys().map(|count| count.parse().expect("a number")).collect();
                assert!(
                    held.contains(&gpus),
                    "{}: all of {gpus} GPUs hold the page that all use: {held:?}",
                    design.name
                );
            }
            ran += 1;
        }
    }
    assert!(ran > 20, "{ran} runs");
}

/// True if the text is a single sentence on a single line.
fn is_sentence(text: &str) -> bool {
    !text.contains('\n') && !text.contains(". ")
}

/// True if a module sends whole pages to every other: 65,000 pages a launch on 255 modules.
fn sends_pages_to_all(design: &DesignConfig) -> bool {
    matches!(design.placement.sharing().movement, Movement::Copies { copied: CopyContents::SharedPages, .. })
}

#[test]
fn every_design_runs_on_any_number_of_modules_or_says_in_a_sentence_why_not() {
    runs_or_says_why_not(|design| !sends_pages_to_all(design));
}

#[test]
#[ignore = "deep: minutes of copies"]
fn pages_are_copied_among_as_many_modules_as_have_ids() {
    runs_or_says_why_not(sends_pages_to_all);
}

/// Builds every selected design for several module counts, and runs it on the most modules that have ids.
fn runs_or_says_why_not(selected: impl Fn(&DesignConfig) -> bool) {
    for design in designs().filter(selected) {
        for gpus in [1, 2, 31, 32, 33, 64, 65, 128, 254, 255] {
            let machine = machine(&design, gpus);
            let spec = RunSpec { machine, design: design.clone(), program: program(gpus), pages: None, threads: 1 };
            if design.build(&spec.machine).is_err() {
                let error = run(&spec).err().map(|error| error.to_string()).expect("it does not fit");
                assert!(is_sentence(&error) && error.contains(&design.name), "{error}");
            } else if gpus == 255 {
                let record = run(&spec).unwrap_or_else(|error| panic!("{}, {gpus} GPUs: {error}", design.name));
                assert_eq!(record.gpus.len(), 255, "{}", design.name);
            }
        }
    }
}

#[test]
fn the_host_is_one_module_more_than_the_most_that_have_ids() {
    let design = design("unified-memory-host", &[]);
    assert!(design.build(&machine(&design, 254)).is_ok());
    let spec = RunSpec { machine: machine(&design, 255), design, program: program(255), pages: None, threads: 1 };
    let refused = run(&spec).err().map(|error| error.to_string()).expect("there is no id");
    assert!(refused.contains("makes the host one module more, and machine host of 255 modules"), "{refused}");
}

/// A small dgx-h100 with the given number of GPUs.
fn dgx(gpus: u64) -> Arc<MachineConfig> {
    let mut machine = tombolo_machine::machine("dgx-h100").expect("a preset");
    let all = format!("topology.gpus={gpus}");
    tombolo_design::apply(&[&SMALL[..], &[&all[..]]].concat(), &mut machine, &mut []).expect("settings a machine has");
    Arc::new(machine.check().expect("a machine that fits"))
}

/// A stencil of `columns` points a row, with `rows` interior rows.
fn workload(name: &str, machine: &MachineConfig, (columns, rows): (u64, u64)) -> Arc<dyn Program> {
    let given = [("columns", columns), ("rows", rows + 2), ("iterations", 2)];
    let given = given.map(|(key, value): (&str, u64)| (key.to_owned(), value.to_string()));
    let workload = find(name).expect("a workload that ships");
    let request = Request::new(workload, Scale::FULL, &given, 1).unwrap_or_else(|error| panic!("{error}"));
    let request = request.with_gpus(machine.topology.gpus);
    let options = RecordOptions { line: machine.line, warp_width: machine.sm.warp_width, ..RecordOptions::default() };
    Arc::new(record(workload, &request, &options, Mode::Auto).expect("it runs"))
}

#[test]
#[ignore = "deep: every design, several minutes of a core"]
fn stencils_run_on_33_65_and_72_modules_under_every_design_that_accepts_them() {
    stencils_run_on(&[33, 65, 72], (512, 4));
}

#[test]
#[ignore = "deep: every design; memory that moves, is copied or is published among all takes longest"]
fn stencils_run_on_144_modules_under_every_design_that_accepts_them() {
    stencils_run_on(&[144], (256, 2));
}

/// Runs stencils of `columns` points a row and `rows` interior rows a GPU. A design that copies what was written to
/// every other GPU moves lines as the square of the number of GPUs.
fn stencils_run_on(numbers: &[u64], (columns, rows): (u64, u64)) {
    for &gpus in numbers {
        let machine = dgx(gpus);
        let programs = ["jacobi", "stencil2d"].map(|name| workload(name, &machine, (columns, rows * gpus)));
        for design in designs().filter(|design| design.build(&machine).is_ok()) {
            for program in &programs {
                simulate(&machine, &design, Arc::clone(program));
            }
        }
    }
}

#[test]
fn a_host_whose_loads_are_answered_in_parts_goes_on() {
    let machine = dgx(2);
    let program = workload("jacobi", &machine, (2048, 64));
    let record = simulate(&machine, &design("unified-memory-host", &[]), program);
    assert!(record.paging.expect("pages move").pins > 0, "the host loads from afar what GPUs have stored in part");
}
