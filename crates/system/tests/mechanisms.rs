//! Mechanisms of HMG and of the machine: micro-programs whose bytes, hits and invalidations are predicted in
//! closed form. CTA `i` of sixteen runs on module `i`; the first kernel places pages by touching them.

mod common;

use common::{design, machine, simulate};
use std::sync::Arc;
use tombolo_machine::MachineConfig;
use tombolo_system::directed::{Cta, Directed, Warp};
use tombolo_system::{RunError, RunRecord, RunSpec, run};
use tombolo_types::stream::AtomicResult;
use tombolo_types::{Mask, Order, Scope};

/// A kernel of sixteen CTAs of which those in `active` run one warp each.
fn kernel(active: impl IntoIterator<Item = usize>, write: impl Fn(usize, &mut Warp<'_>)) -> Vec<Cta> {
    let mut ctas = vec![Cta::new(); 16];
    for module in active {
        ctas[module] = Cta::new().warp(|warp| write(module, warp));
    }
    ctas
}

/// Module `home` touches `lines`, so that their pages live there.
fn touch(home: usize, lines: std::ops::Range<u64>) -> Vec<Cta> {
    kernel([home], |_, warp| {
        lines.clone().for_each(|line| {
            warp.read([line]);
        });
    })
}

fn reads(active: impl IntoIterator<Item = usize>, lines: std::ops::Range<u64>) -> Vec<Cta> {
    kernel(active, |_, warp| {
        lines.clone().for_each(|line| {
            warp.read([line]);
        });
    })
}

fn link<'a>(record: &'a RunRecord, name: &str) -> &'a tombolo_system::record::LinkRecord {
    record.links.iter().find(|link| link.name == name).expect("a link of the machine")
}

/// Bytes of a message that carries `data` bytes of a whole line.
fn message(machine: &MachineConfig, data: u64) -> u64 {
    (machine.messages.header_bytes.0 + data).next_multiple_of(machine.messages.flit_bytes)
}

#[test]
fn an_array_shared_by_a_gpu_crosses_once_under_hmg_and_once_a_module_under_nhcc() {
    let machine = machine(&[]);
    let line = message(&machine, 128);
    for (name, copies) in [("hmg", 1), ("software-hierarchical", 1), ("nhcc", 4), ("software-flat", 4)] {
        let program = Directed::new(vec![touch(0, 0..64), reads(4..8, 0..64)]);
        let record = simulate(&machine, design(name, &[]), program);
        assert_eq!(link(&record, "gpu1.in").data_bytes, copies * 64 * line, "{name}");
    }
}

#[test]
fn a_store_invalidates_each_sharer_flat_and_each_gpu_and_module_hierarchically() {
    let machine = machine(&[]);
    let store = || kernel([0], |_, warp| _ = warp.write([0]));
    let count = |name: &str| {
        let record =
            simulate(&machine, design(name, &[]), Directed::new(vec![touch(0, 0..1), reads(0..16, 0..1), store()]));
        (record.coherence["invalidations_by_store"], record.coherence["invalidations_forwarded"])
    };
    assert_eq!(count("nhcc"), (15, 0), "every module but the home");
    // At the system home three modules and three GPUs; at each GPU home the GPU's three other modules.
    assert_eq!(count("hmg"), (3 + 3, 3 * 3));
    assert_eq!(count("software-flat"), (0, 0));
}

#[test]
fn modules_that_write_one_region_invalidate_each_other_once_a_write() {
    let machine = machine(&[]);
    let mut kernels = vec![touch(0, 0..8)];
    let writes = 10;
    for turn in 0..writes {
        let module = 1 + turn % 2;
        // Neighbouring lines of one four-line entry, each module its own.
        kernels.push(kernel([module], |module, warp| _ = warp.read([3 + module as u64]).write([3 + module as u64])));
    }
    let count = |name: &str| {
        let record = simulate(&machine, design(name, &[]), Directed::new(kernels.clone()));
        record.coherence["invalidations_by_store"]
    };
    assert_eq!(count("hmg"), writes as u64 - 1, "all but the first write");
    assert_eq!(count("nhcc"), writes as u64 - 1);
    assert_eq!(count("software-hierarchical"), 0);
}

#[test]
fn a_gpu_release_moves_nothing_between_gpus_for_data_of_its_own_gpu() {
    let machine = machine(&[]);
    let release = |name: &str, scope| {
        let program = Directed::new(vec![
            touch(0, 0..64),
            kernel([1], |_, warp| {
                (0..32).for_each(|line| _ = warp.write([line]));
                warp.store([40], Mask(1), Order::release(scope));
            }),
        ]);
        simulate(&machine, design(name, &[]), program).inter_gpu_bytes
    };
    assert_eq!(release("hmg", Scope::Gpu), 0);
    assert_eq!(release("software-hierarchical", Scope::Gpu), 0);
    // Twelve modules of other GPUs are asked twice to drain their invalidations, and acknowledge twice.
    assert_eq!(release("hmg", Scope::Sys), 12 * 2 * 2 * message_control(&machine));
    // A flat protocol has no smaller scope: the same twelve are asked once.
    assert_eq!(release("nhcc", Scope::Gpu), 12 * 2 * message_control(&machine));
}

fn message_control(machine: &MachineConfig) -> u64 {
    machine.messages.control_bytes.0.next_multiple_of(machine.messages.flit_bytes)
}

#[test]
fn the_directory_overflows_when_lines_over_four_exceed_its_entries() {
    let machine = machine(&["l2.slices=1", "directory.entries=16", "directory.ways=16"]);
    for (lines, evicted) in [(64, 0), (68, 1), (80, 4)] {
        let program = Directed::new(vec![touch(0, 0..lines), reads([1], 0..lines)]);
        let record = simulate(&machine, design("hmg", &[]), program);
        assert_eq!(record.coherence["directory_evictions"], evicted, "{lines} lines");
        assert_eq!(record.coherence["invalidations_by_eviction"], evicted, "{lines} lines, one sharer each");
        assert_eq!(record.coherence["lines_invalidated_by_eviction"], 4 * evicted, "{lines} lines");
    }
}

#[test]
fn a_second_kernel_finds_remote_data_cached_under_directories_only() {
    let machine = machine(&[]);
    let line = message(&machine, 128);
    let cases = [
        ("hmg", 1),
        ("nhcc", 1),
        ("ideal", 1),
        ("software-flat", 3),
        ("software-hierarchical", 3),
        ("no-remote-caching", 3),
    ];
    for (name, fetched) in cases {
        let program = Directed::new(vec![touch(0, 0..64), reads([4], 0..64), reads([4], 0..64), reads([4], 0..64)]);
        let record = simulate(&machine, design(name, &[]), program);
        assert_eq!(link(&record, "gpu1.in").data_bytes, fetched * 64 * line, "{name}");
    }
}

#[test]
fn without_remote_caching_modules_of_one_gpu_still_cache_each_others_data() {
    let machine = machine(&[]);
    // Two warps of one SM, one after the other in one kernel: the L1 is bypassed by scope.
    let twice = |module: usize| kernel([module], |_, warp| _ = warp.read([0]).read([1]).read([2]));
    let run = |module| {
        let program = Directed::new(vec![touch(0, 0..3), twice(module)]);
        simulate(&machine, design("no-remote-caching", &[]), program)
    };
    assert_eq!(run(1).inter_gpu_bytes, 0);
    assert!(run(4).inter_gpu_bytes > 0);
}

#[test]
fn a_saturated_link_sets_the_pace_of_the_sms_behind_it() {
    let machine = machine(&["sm.posted_stores=32"]);
    let lines = 16 * 1024;
    let warps = 16;
    let writer = (0..warps).fold(Cta::new(), |cta, index| {
        cta.warp(|warp| (0..lines / warps).for_each(|line| _ = warp.write([index * (lines / warps) + line])))
    });
    let mut ctas = vec![Cta::new(); 16];
    ctas[4] = writer;
    let program = Directed::new(vec![touch(0, 0..1), ctas]);
    let record = simulate(&machine, design("hmg", &[]), program);
    let written = link(&record, "gpu1.out");
    assert_eq!(written.data_bytes, lines * message(&machine, 128));
    let busy = written.utilization * record.time_s;
    let expected = written.bytes as f64 / machine.gpu_link.rate.0 as f64;
    assert!((busy / expected - 1.0).abs() < 0.01, "{busy} s sending, {expected} s by rate");
    let window = 32.0 * 128.0 / record.time_s;
    assert!(record.time_s > expected, "{window} B/s");
    assert!(record.sm["parks"] > 0, "stores waited for credits");
    assert_eq!(record.sm["retries"], 0);
}

#[test]
fn parked_requests_are_woken_and_never_retried() {
    let machine = machine(&["l1.mshrs=4", "l1.merges=2", "l2.mshrs=16", "sm.posted_stores=4", "l2.posted_stores=4"]);
    let cta = |id: u64| {
        (0..16).fold(Cta::new(), |cta, warp| {
            cta.warp(|w| {
                for step in 0..8 {
                    let base = (id * 16 + warp) * 64 + step * 8;
                    w.load(base..base + 8, Order::WEAK).write(8192 + base..8192 + base + 4);
                    w.load([step], Order::WEAK).use_result(2);
                    w.atomic([16_384 + step], Order::relaxed(Scope::Sys), AtomicResult::Returned);
                }
            })
        })
    };
    for name in common::DESIGNS {
        let record = simulate(&machine, design(name, &[]), Directed::new(vec![(0..16).map(cta).collect()]));
        assert_eq!(record.transactions, 16 * 16 * 8 * (8 + 4 + 1 + 1), "{name}");
        assert_eq!(record.memory_instructions, 16 * 16 * 8 * 4, "{name}: a parked instruction counts once");
        assert!(record.sm["parks"] > 1000 && record.coherence["queued"] > 100, "{name}: resources were short");
        assert_eq!(record.sm["retries"], 0, "{name}");
    }
}

/// A producer that computes for long and then releases a flag; a consumer that waits for it.
fn handover(arithmetic: u16, scope: Scope) -> Arc<Directed> {
    let mut ctas = vec![Cta::new(); 16];
    ctas[0] = Cta::new().warp(|warp| {
        warp.compute(arithmetic).write([8]).store([0], Mask(1), Order::release(scope)).signal(0);
    });
    ctas[1] = Cta::new().warp(|warp| {
        warp.wait_until(0, 0, Order::acquire(scope)).read([8]);
    });
    Directed::new(vec![ctas])
}

#[test]
fn a_wait_ends_no_earlier_than_the_release_it_reads() {
    let machine = machine(&[]);
    for name in common::DESIGNS {
        for scope in [Scope::Gpu, Scope::Sys] {
            let short = simulate(&machine, design(name, &[]), handover(1, scope));
            let long = simulate(&machine, design(name, &[]), handover(20_000, scope));
            assert!(long.cycles > short.cycles + 19_000, "{name} {scope}: {} and {}", short.cycles, long.cycles);
            assert!(long.sm["failed_polls"] > short.sm["failed_polls"], "{name}: polls are counted");
        }
    }
}

#[test]
fn a_flag_nobody_sets_ends_the_run_with_a_report() {
    let mut ctas = vec![Cta::new(); 16];
    ctas[1] = Cta::new().warp(|warp| _ = warp.wait_until(0, 0, Order::acquire(Scope::Gpu)));
    let machine = machine(&[]);
    let program = Directed::new(vec![ctas]);
    let spec = RunSpec { machine, design: design("hmg", &[]), program, pages: None, threads: 1 };
    let Err(RunError::Stuck { report, .. }) = run(&spec) else { panic!("the run cannot end") };
    assert!(report.contains("module1 sm0 warp 0 waits for Flag"), "{report}");
}

#[test]
fn write_back_leaves_stores_at_home_until_they_are_released() {
    let machine = machine(&[]);
    let kernels = || {
        let write = || kernel([1], |_, warp| (0..10).for_each(|_| _ = warp.write([4])));
        vec![touch(0, 0..8), write()]
    };
    let run = |write: &str| {
        let design = design("hmg", &[&format!("design.l2_write={write}")]);
        simulate(&machine, design, Directed::new(kernels()))
    };
    let line = message(&machine, 128);
    assert_eq!(link(&run("through"), "module1.out").data_bytes, 10 * line, "every store travels");
    assert_eq!(link(&run("back"), "module1.out").data_bytes, line, "one write-back does");
}

#[test]
fn a_downgrade_saves_the_invalidation_of_a_line_that_is_gone() {
    // A direct-mapped L2 of one line a slice: the second region evicts the first.
    let machine = machine(&["l2.slices=1", "l2.bytes=2KB", "l2.ways=16"]);
    let run = |downgrade: bool| {
        let design = design("hmg", &[&format!("design.downgrade={downgrade}")]);
        let store = kernel([0], |_, warp| _ = warp.write([0]));
        let program = Directed::new(vec![touch(0, 0..128), reads([1], 0..1), reads([1], 4..68), store]);
        simulate(&machine, design, program).coherence["invalidations_by_store"]
    };
    assert_eq!(run(false), 1, "silent: the home still thinks that module 1 shares");
    assert_eq!(run(true), 0);
}

#[test]
fn the_ideal_keeps_its_l1_only_where_the_design_says_so() {
    let machine = machine(&[]);
    let hits = |coherent: bool| {
        let design = design("ideal", &[&format!("design.l1_coherent={coherent}")]);
        let program = Directed::new(vec![reads([0], 0..8), reads([0], 0..8)]);
        simulate(&machine, design, program).l1.hits
    };
    assert_eq!(hits(true), 0, "each kernel starts with an empty L1");
    assert_eq!(hits(false), 8);
}
