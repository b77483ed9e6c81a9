//! Contents of TLBs and L2s at a program's start: `tlb.start`, `host.copies`.

use crate::common::{self, design, held};
use std::sync::Arc;
use tombolo_machine::MachineConfig;
use tombolo_system::directed::{CtaBuilder, DirectedProgram};
use tombolo_system::{RunRecord, RunSpec, run};
use tombolo_types::Mask;
use tombolo_types::stream::Command;

/// A V100 without refreshes and with settings applied.
fn v100(settings: &[&str]) -> Arc<MachineConfig> {
    let mut machine = tombolo_machine::machine("v100").expect("a preset");
    let all = [&common::NO_REFRESH[..], settings].concat();
    tombolo_design::apply(&all, &mut machine, &mut []).expect("settings a machine has");
    Arc::new(machine.check().expect("a machine that fits"))
}

fn simulate(machine: &Arc<MachineConfig>, name: &str, program: Arc<DirectedProgram>) -> RunRecord {
    common::simulate(machine, design(name, &[]), program)
}

/// Lines in a 2 MB page.
const PAGE: u64 = (2 << 20) / 128;

/// Two arrays with a single line each, on separate pages; a kernel reads line `line`.
fn reading(line: u64) -> Arc<DirectedProgram> {
    let kernel = vec![CtaBuilder::new().warp(|warp| _ = warp.read([line]))];
    DirectedProgram::with_arrays(vec![kernel], &[("lower", PAGE..PAGE + 1), ("upper", 2 * PAGE..2 * PAGE + 1)])
}

/// Cycles that translation adds to a kernel: the difference between runs with and without the machine's TLB latencies.
fn translation(line: u64, settings: &[&str]) -> f64 {
    let seconds = |more: &[&str]| {
        let all = [&["page_bytes=2MB"], settings, more].concat();
        simulate(&v100(&all), "v100", reading(line)).gpus[0].busy_s
    };
    (seconds(&[]) - seconds(&["tlb.l2_latency=0ns", "tlb.walk_latency=0ns"])) * 1.38e9
}

/// Cycles for V100's TLB and walk, and for the L1 lookup that overlaps with them.
const L2_TLB: f64 = 80.0;
const WALK: f64 = 574.0;
const LOOKUP: f64 = 28.0;

#[test]
fn a_warm_tlb_has_the_pages_of_arrays_and_a_cold_one_walks() {
    let near = |found: f64, expected: f64| assert!((found - expected).abs() <= 2.0, "{found}, not {expected} cycles");
    let (lower, upper) = (PAGE, 2 * PAGE);
    for line in [lower, upper] {
        near(translation(line, &[]), L2_TLB + WALK - LOOKUP);
        near(translation(line, &["tlb.start=cold"]), L2_TLB + WALK - LOOKUP);
        near(translation(line, &["tlb.start=warm"]), 0.0);
    }
    // Given two pages, a TLB with one entry holds the latter.
    let small = ["tlb.start=warm", "tlb.l1_entries=1"];
    near(translation(upper, &small), 0.0);
    near(translation(lower, &small), L2_TLB - LOOKUP);
    let smaller = [&small[..], &["tlb.l2_entries=1", "tlb.l2_ways=1"]].concat();
    near(translation(upper, &smaller), 0.0);
    near(translation(lower, &smaller), L2_TLB + WALK - LOOKUP);
}

#[test]
fn a_program_without_arrays_finds_the_pages_that_it_accesses() {
    let program = || DirectedProgram::new(vec![vec![CtaBuilder::new().warp(|warp| _ = warp.read([0, 7 * PAGE]))]]);
    let stalls = |start| simulate(&v100(&["page_bytes=2MB", start]), "v100", program()).stalls.tlb;
    assert!(stalls("tlb.start=cold") > 600, "the pages are walked for");
    assert_eq!(stalls("tlb.start=warm"), 0);
}

/// An L2 with 512 lines: one slice with 32 sets and 16 ways, indexed by the line's low bits.
const SMALL: [&str; 4] = ["l2.slices=1", "l2.bytes=64KB", "l2.ways=16", "l2.set_index=low-bits"];

fn copy(first: u64, lines: u64) -> Command {
    Command::Copy { address: first * 128, bytes: lines * 128, to_device: true }
}

/// Bytes read from memory during a kernel that reads lines after copies.
fn read_from_memory(settings: &[&str], copies: Vec<Command>, lines: std::ops::Range<u64>) -> u64 {
    let machine = v100(&[&SMALL, settings].concat());
    let kernel = vec![CtaBuilder::new().warp(|warp| lines.for_each(|line| _ = warp.read([line])))];
    let commands = [copies, vec![Command::launch(0, 0)]].concat();
    simulate(&machine, "v100", DirectedProgram::new(vec![kernel]).with_commands(commands)).dram.read_bytes
}

#[test]
fn an_l2_holds_the_latest_copies_that_it_has_room_for() {
    let whole = 512 * 128;
    assert_eq!(read_from_memory(&[], vec![copy(0, 512)], 0..512), whole);
    assert_eq!(read_from_memory(&["host.copies=past"], vec![copy(0, 512)], 0..512), whole);
    let l2 = ["host.copies=l2"];
    assert_eq!(read_from_memory(&l2, vec![copy(0, 512)], 0..512), 0);
    // Three times its capacity in one copy: the last third is present.
    assert_eq!(read_from_memory(&l2, vec![copy(0, 1536)], 1024..1536), 0);
    assert_eq!(read_from_memory(&l2, vec![copy(0, 1536)], 512..1024), whole);
    // After two copies the latter is present, regardless of the address order.
    assert_eq!(read_from_memory(&l2, vec![copy(512, 512), copy(0, 512)], 0..512), 0);
    assert_eq!(read_from_memory(&l2, vec![copy(0, 512), copy(512, 512)], 0..512), whole);
    // Half a line: memory has the other half.
    let half = Command::Copy { address: 0, bytes: 64, to_device: true };
    assert_eq!(read_from_memory(&l2, vec![half], 0..1), 64);
}

#[test]
fn copies_are_in_the_l2_of_their_home_where_the_protocol_leaves_them_there() {
    // Module 5 is the first to touch the lines, and module 9 reads them afterwards.
    let kernel = |module| {
        let ctas = (0..16).map(|cta| match cta {
            cta if cta == module => CtaBuilder::new().warp(|warp| (0..64).for_each(|line| _ = warp.read([line]))),
            _ => CtaBuilder::new(),
        });
        ctas.collect::<Vec<_>>()
    };
    let commands = vec![copy(0, 64), Command::launch(0, 0), Command::launch(1, 0)];
    let program = DirectedProgram::new(vec![kernel(5), kernel(9)]).with_commands(commands);
    for name in ["nhcc", "hmg", "numa-memory-side"] {
        let machine = common::machine(&["host.copies=l2"]);
        let [record, _] = held(&machine, &design(name, &[]), &program);
        assert_eq!(record.dram.read_bytes, 0, "{name}");
        let [past, _] = held(&common::machine(&[]), &design(name, &[]), &program);
        assert!(past.dram.read_bytes >= 64 * 128, "{name}: {}", past.dram.read_bytes);
        assert_eq!(past.time.copies_s, record.time.copies_s, "{name}: a copy takes as long");
    }
}

#[test]
fn designs_that_have_no_such_start_are_refused() {
    let refused = |machine: Arc<MachineConfig>, name: &str, word: &str| {
        let program = DirectedProgram::new(vec![vec![CtaBuilder::new().warp(|warp| _ = warp.read_part([0], Mask(1)))]]);
        let spec = RunSpec { machine, design: design(name, &[]), program, pages: None, threads: 1 };
        let error = run(&spec).expect_err("it cannot be").to_string();
        assert!(error.contains(word) && error.contains(name), "{error}");
    };
    refused(common::apart(2, &["tlb.start=warm"]), "unified-memory", "tlb.start");
    refused(common::apart(2, &["host.copies=l2"]), "unified-memory", "host.copies");
    refused(common::apart(2, &["host.copies=l2"]), "memcpy", "host.copies");
    refused(common::hosted(&["host.copies=l2"]), "umh", "host.copies");
    refused(common::machine(&["host.copies=l2", "directory.tracks=all"]), "hmg", "directory.tracks");
}
