//! The host as a reader and a writer between kernels: effects of host copies and host code on lines held by L2s.

use crate::common::{self, DESIGNS, apart, design, held, machine, simulate};
use std::ops::Range;
use std::sync::Arc;
use tombolo_design::DesignConfig;
use tombolo_machine::MachineConfig;
use tombolo_protocol::transfer::BrokenTransfer;
use tombolo_system::checker::{CheckReport, ViolationKind};
use tombolo_system::directed::{CtaBuilder, DirectedProgram, HostLines, WarpBuilder};
use tombolo_system::{RunSpec, run_checked};
use tombolo_types::stream::Command;
use tombolo_types::{LaunchDevices, LineSize, Mask, ModuleId, Order};

const LINE: u64 = 128;
/// Lines in the only array.
const LINES: Range<u64> = 0..8;

/// A kernel with sixteen CTAs, one per module.
fn kernel(each: impl Fn(u64, &mut WarpBuilder<'_>)) -> Vec<CtaBuilder> {
    (0..16).map(|module| CtaBuilder::new().warp(|warp| each(module, warp))).collect()
}

/// Every module reads all lines.
fn reading() -> Vec<CtaBuilder> {
    kernel(|_, warp| LINES.for_each(|line| _ = warp.read([line])))
}

/// Module 5 alone writes all lines.
fn writing() -> Vec<CtaBuilder> {
    kernel(|module, warp| LINES.filter(|_| module == 5).for_each(|line| _ = warp.write([line])))
}

fn copy(bytes: Range<u64>, to_device: bool) -> Command {
    Command::Copy { address: bytes.start, bytes: bytes.end - bytes.start, to_device }
}

/// Bytes in all lines.
fn whole() -> Range<u64> {
    0..LINES.end * LINE
}

/// Kernels, with host commands between the first and the second.
fn between(kernels: Vec<Vec<CtaBuilder>>, host: &[Command]) -> Arc<DirectedProgram> {
    let launches = (0..kernels.len() as u32).map(|kernel| Command::launch(kernel, 0));
    let mut commands: Vec<Command> = Vec::new();
    for launch in launches {
        if !commands.is_empty() {
            commands.extend_from_slice(host);
        }
        commands.push(launch);
    }
    DirectedProgram::new(kernels).with_commands(commands)
}

fn checked(
    machine: &Arc<MachineConfig>,
    design: DesignConfig,
    program: &Arc<DirectedProgram>,
    broken: Option<BrokenTransfer>,
) -> CheckReport {
    let (machine, program) = (Arc::clone(machine), Arc::clone(program) as _);
    let spec = RunSpec { machine, design, program, pages: None, threads: 2 };
    let record = match broken {
        Some(rule) => run_checked(&spec, rule),
        None => run_checked(&spec, None),
    };
    record.unwrap_or_else(|error| panic!("{error}")).check.expect("a checked run says what it found")
}

/// Lines that memory reads for two kernels that each read all lines, with the host commands in between.
fn fetched(name: &str, host: &[Command]) -> u64 {
    let program = between(vec![reading(), reading()], host);
    let [record, _] = held(&machine(&[]), &design(name, &[]), &program);
    record.dram.read_bytes / LINE
}

#[test]
fn lines_that_a_copy_wrote_are_read_anew_and_others_hit() {
    for name in ["nhcc", "hmg", "ideal", "numa-memory-side"] {
        let all = LINES.end;
        assert_eq!(fetched(name, &[]), all, "{name}");
        assert_eq!(fetched(name, &[copy(whole(), true)]), 2 * all, "{name}");
        assert_eq!(fetched(name, &[copy(2 * LINE..5 * LINE, true)]), all + 3, "{name}");
        assert_eq!(fetched(name, &[copy(LINE + 4..LINE + 8, true)]), all + 1, "{name}: part of a line");
        assert_eq!(fetched(name, &[copy(whole(), false)]), all, "{name}: to the host");
    }
}

#[test]
fn hits_behind_a_copy_fall() {
    let hits = |name: &str, host: &[Command]| {
        let program = between(vec![reading(), reading()], host);
        let record = simulate(&machine(&[]), design(name, &[]), program);
        record.modules.iter().map(|module| module.l2_hits).sum::<u64>()
    };
    for name in ["nhcc", "hmg", "ideal"] {
        let (without, with) = (hits(name, &[]), hits(name, &[copy(whole(), true)]));
        assert!(with < without, "{name}: {with} hits, {without} without the copy");
    }
}

#[test]
fn a_large_copy_drops_what_a_small_one_does() {
    // More lines than are looked up one by one; the first ones are present.
    for name in ["hmg", "ideal"] {
        assert_eq!(fetched(name, &[copy(0..4096 * LINE, true)]), 2 * LINES.end, "{name}");
    }
}

#[test]
fn a_copy_before_the_first_kernel_drops_nothing_and_changes_no_value() {
    let commands = vec![copy(whole(), true), Command::launch(0, 0)];
    let program = DirectedProgram::new(vec![reading()]).with_commands(commands);
    for name in DESIGNS {
        let [_, checked] = held(&machine(&[]), &design(name, &[]), &program);
        assert_eq!(checked.check.expect("it is checked").stores, 0, "{name}");
    }
}

/// Host code that writes between the kernels.
fn by_code(lines: Range<u64>) -> Arc<DirectedProgram> {
    let arrays = [("a", LINES)];
    DirectedProgram::of_arrays(LineSize::B128, vec![reading(), reading()], &arrays, &[(1, HostLines::Written(lines))])
}

#[test]
fn copies_that_a_write_leaves_are_seen() {
    let by_copy = between(vec![reading(), reading()], &[copy(whole(), true)]);
    for program in [by_copy, by_code(LINES)] {
        for name in ["nhcc", "hmg", "numa-memory-side"] {
            let found = |broken| checked(&machine(&[]), design(name, &[]), &program, broken);
            assert_eq!(found(None).first, [], "{name}");
            let kept = found(Some(BrokenTransfer::WriteKeepsCopies));
            assert_eq!((kept.violations, kept.first[0].kind), (16 * LINES.end, ViolationKind::Old), "{name}");
        }
        for name in ["nhcc", "hmg"] {
            let kept = checked(&machine(&[]), design(name, &[]), &program, Some(BrokenTransfer::WriteKeepsSharers));
            assert!(kept.violations > 0, "{name}");
        }
    }
}

#[test]
fn a_home_that_no_acquire_drops_gives_up_what_the_host_wrote() {
    let program = between(vec![reading(), reading()], &[copy(whole(), true)]);
    for name in ["no-remote-caching", "software-flat", "software-hierarchical"] {
        let found = |broken| checked(&machine(&[]), design(name, &["design.invalidate=remote"]), &program, broken);
        assert_eq!(found(None).first, [], "{name}");
        assert!(found(Some(BrokenTransfer::WriteKeepsCopies)).violations > 0, "{name}");
    }
}

#[test]
fn a_home_beside_the_next_kernel_drops_what_others_would_read_there() {
    // Module 0, which alone runs the first kernel, is home for the lines. It does not run the second kernel and
    // performs no invalidation for it.
    let first = kernel(|module, warp| LINES.filter(|_| module == 0).for_each(|line| _ = warp.read([line])));
    let commands = vec![
        Command::launch(0, 0),
        copy(whole(), true),
        Command::Launch { kernel: 1, stream: 0, on: LaunchDevices::module(ModuleId(5)) },
    ];
    let program = DirectedProgram::new(vec![first, reading()]).with_commands(commands);
    let found = |broken| checked(&machine(&[]), design("viper-cached", &[]), &program, broken);
    assert_eq!(found(None).first, []);
    assert!(found(Some(BrokenTransfer::WriteKeepsCopies)).violations > 0);
}

#[test]
fn what_the_host_reads_is_the_newest_value() {
    let back = &["design.l2_write=back"][..];
    for host in [vec![copy(whole(), false)], vec![copy(0..6, false), copy(LINE..whole().end, false)]] {
        let program = between(vec![writing(), reading()], &host);
        for name in ["no-remote-caching", "software-flat", "software-hierarchical", "nhcc", "hmg", "numa-memory-side"] {
            let found = |broken| checked(&machine(&[]), design(name, back), &program, broken);
            assert_eq!(found(None).first, [], "{name}");
            let passed = found(Some(BrokenTransfer::ReadPassesL2));
            let first = &passed.first[0];
            assert_eq!((passed.violations, first.kind), (LINES.end, ViolationKind::Old), "{name}");
            assert_eq!((&*first.by, first.launch, &*passed.places[0].module), ("the host", 0, "host"), "{name}");
        }
    }
}

#[test]
fn a_copy_over_dirty_lines_leaves_the_bytes_beside_it() {
    // The host writes half a line that a kernel has left dirty; the host and a kernel then read both halves.
    let host = [copy(64..LINE, true), copy(whole(), false), copy(0..4, true), copy(0..LINE, false)];
    let program = between(vec![writing(), reading(), writing(), reading()], &host);
    for write in ["design.l2_write=back", "design.l2_write=through"] {
        for name in DESIGNS.into_iter().filter(|name| *name != "ideal") {
            let found = checked(&machine(&[]), design(name, &[write]), &program, None);
            assert_eq!(found.first, [], "{name}, {write}");
        }
    }
}

#[test]
fn a_part_that_the_host_wrote_is_read_beside_a_part_that_a_kernel_wrote() {
    let half = kernel(|module, warp| {
        if module == 3 {
            warp.store([0], Mask(0xffff), Order::WEAK);
        }
    });
    let program = between(vec![reading(), half, reading()], &[copy(64..LINE, true)]);
    for name in DESIGNS.into_iter().filter(|name| *name != "ideal") {
        assert_eq!(checked(&machine(&[]), design(name, &[]), &program, None).first, [], "{name}");
    }
}

/// Kernels in which either GPU touches lines on two pages.
fn in_turns() -> Vec<Vec<CtaBuilder>> {
    let on = |gpu: u64, write: bool| {
        let cta = |other: u64| {
            CtaBuilder::new().warp(|warp| {
                for line in [0, 512, 513].into_iter().filter(|_| gpu == other) {
                    if write {
                        warp.write([line])
                    } else {
                        warp.read([line])
                    };
                }
            })
        };
        (0..2).map(cta).collect::<Vec<_>>()
    };
    vec![on(0, true), on(1, false), on(1, true), on(0, false), on(0, false)]
}

#[test]
fn what_the_host_writes_follows_pages_that_move() {
    let program = between(in_turns(), &[copy(0..64, true), copy(513 * LINE..514 * LINE, true)]);
    for name in ["unified-memory", "gps", "peer"] {
        let found = checked(&apart(2, &[]), design(name, &[]), &program, None);
        assert_eq!((found.first, found.loads >= 9), (vec![], true), "{name}");
    }
}

#[test]
fn what_the_host_writes_of_a_page_that_it_holds_comes_with_the_page() {
    const PAGE: u64 = 512;
    // A GPU with room for two pages reads three in turn.
    let touch = |page: u64| vec![CtaBuilder::new().warp(|warp| _ = warp.read([page * PAGE])), CtaBuilder::new()];
    let kernels = (0..9).map(|launch| touch(launch % 3)).collect();
    let write = |page: u64| copy(page * PAGE * LINE..page * PAGE * LINE + LINE, true);
    let program = between(kernels, &[write(0), write(1), write(2)]);
    let small = apart(2, &["dram.bytes=128KB"]);
    let found = checked(&small, design("unified-memory", &[]), &program, None);
    assert_eq!((found.first, found.loads), (vec![], 9));
}

#[test]
fn a_run_with_transfers_is_the_same_at_every_thread_count() {
    let host = [copy(64..LINE, true), copy(whole(), false)];
    let program = between(vec![writing(), reading(), writing(), reading()], &host);
    let machine = machine(&[]);
    for name in ["nhcc", "hmg"] {
        let digest = |threads| common::simulate_on(threads, &machine, design(name, &[]), Arc::clone(&program)).digest;
        assert_eq!(digest(1), digest(3), "{name}");
    }
}
