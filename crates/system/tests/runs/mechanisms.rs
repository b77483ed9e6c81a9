//! Mechanisms in HMG and the machine: micro-programs for which bytes, hits and invalidations are predicted in closed
//! form, in addition to the mechanisms named by the papers' claims (crate `experiment`, `mechanism`). CTA `i` among
//! sixteen runs on module `i`; the first kernel places pages by touching them.

use crate::common::{self, design, machine, simulate};
use std::sync::Arc;
use tombolo_system::directed::{CtaBuilder, DirectedProgram, WarpBuilder};
use tombolo_system::{RunError, RunRecord, RunSpec, run};
use tombolo_types::stream::AtomicResult;
use tombolo_types::{Line, Mask, Order, Scope};

/// A kernel with sixteen CTAs; each CTA in `active` runs one warp.
fn kernel(active: impl IntoIterator<Item = usize>, write: impl Fn(usize, &mut WarpBuilder<'_>)) -> Vec<CtaBuilder> {
    let mut ctas = vec![CtaBuilder::new(); 16];
    for module in active {
        ctas[module] = CtaBuilder::new().warp(|warp| write(module, warp));
    }
    ctas
}

/// Module `home` touches `lines`, which makes this module the pages' home.
fn touch(home: usize, lines: std::ops::Range<u64>) -> Vec<CtaBuilder> {
    kernel([home], |_, warp| {
        lines.clone().for_each(|line| {
            warp.read([line]);
        });
    })
}

fn reads(active: impl IntoIterator<Item = usize>, lines: std::ops::Range<u64>) -> Vec<CtaBuilder> {
    kernel(active, |_, warp| {
        lines.clone().for_each(|line| {
            warp.read([line]);
        });
    })
}

fn link<'a>(record: &'a RunRecord, name: &str) -> &'a tombolo_system::record::LinkRecord {
    record.links.iter().find(|link| link.name == name).expect("a link of the machine")
}

#[test]
fn without_remote_caching_modules_of_one_gpu_still_cache_each_others_data() {
    let machine = machine(&[]);
    // Two warps on one SM, one after the other in one kernel: their scope bypasses the L1.
    let twice = |module: usize| kernel([module], |_, warp| _ = warp.read([0]).read([1]).read([2]));
    let run = |module| {
        let program = DirectedProgram::new(vec![touch(0, 0..3), twice(module)]);
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
    let writer = (0..warps).fold(CtaBuilder::new(), |cta, index| {
        cta.warp(|warp| (0..lines / warps).for_each(|line| _ = warp.write([index * (lines / warps) + line])))
    });
    let mut ctas = vec![CtaBuilder::new(); 16];
    ctas[4] = writer;
    let program = DirectedProgram::new(vec![touch(0, 0..1), ctas]);
    let record = simulate(&machine, design("hmg", &[]), program);
    let written = link(&record, "gpu1.out");
    assert_eq!(written.data_bytes, lines * machine.line.bytes());
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
    let machine = machine(&[
        "l1.mshrs=4",
        "l1.merges=2",
        "l2.mshrs=16",
        "sm.posted_stores=4",
        "l2.posted_stores=4",
        "dram.rate=50GB/s",
    ]);
    let cta = |id: u64| {
        (0..16).fold(CtaBuilder::new(), |cta, warp| {
            cta.warp(|w| {
                for step in 0..8 {
                    let base = (id * 16 + warp) * 64 + step * 8;
                    w.load(base..base + 8, Order::WEAK).write(8192 + base..8192 + base + 4);
                    // A request that waits for a miss register for the first line may find that another request has
                    // fetched it meanwhile.
                    w.load([step, 32_768 + base, 32_768 + base + 1], Order::WEAK).use_result(2);
                    w.atomic([16_384 + step], Order::relaxed(Scope::Sys), AtomicResult::Returned);
                }
            })
        })
    };
    for name in common::DESIGNS {
        let record = simulate(&machine, design(name, &[]), DirectedProgram::new(vec![(0..16).map(cta).collect()]));
        assert_eq!(record.transactions, 16 * 16 * 8 * (8 + 4 + 3 + 1), "{name}");
        assert_eq!(record.memory_instructions, 16 * 16 * 8 * 4, "{name}: a parked instruction counts once");
        assert!(record.sm["parks"] > 1000 && record.coherence["queued"] > 0, "{name}: resources were short");
        assert_eq!(record.sm["retries"], 0, "{name}");
    }
}

/// Module 0 reads its own 1,024 lines, 256 regions, in two kernels. Four slices have 16 entries each, in one set. An
/// entry that represents the home's own lines is evicted by the seventeenth region, and its lines are dropped; the L2
/// alone could hold all lines.
#[test]
fn a_directory_that_tracks_all_replaces_entries_of_unshared_lines_and_drops_them() {
    let (lines, regions, entries) = (1024, 256, 64);
    for name in ["nhcc", "hmg"] {
        let run = |tracks| {
            let settings = ["l2.slices=4", "directory.entries=64", tracks];
            let program = DirectedProgram::new(vec![touch(0, 0..lines), reads([0], 0..lines)]);
            simulate(&machine(&settings), design(name, &[]), program)
        };
        let shared = run("directory.tracks=shared");
        assert_eq!((shared.coherence["directory_evictions"], shared.coherence["read_hits"]), (0, lines), "{name}");
        let all = run("directory.tracks=all");
        assert_eq!(all.coherence["directory_evictions"], 2 * regions - entries, "{name}");
        assert_eq!(all.coherence["directory_evictions_shared"], 0, "{name}");
        assert_eq!(all.coherence["lines_invalidated_by_eviction"], 4 * (2 * regions - entries), "{name}");
        assert_eq!((all.coherence["reads"], all.coherence["read_hits"]), (2 * lines, 0), "{name}");
    }
}

/// Like the previous test, with stores that stay dirty: an evicted entry writes its lines to memory, line by line.
#[test]
fn a_replaced_entry_writes_the_dirty_lines_of_its_home_to_memory() {
    let (lines, entries) = (1024, 64);
    let run = |tracks| {
        let writes = kernel([0], |_, warp| (0..lines).for_each(|line| _ = warp.write([line])));
        let settings = ["l2.slices=4", "directory.entries=64", tracks];
        simulate(&machine(&settings), design("hmg", &["design.l2_write=back"]), DirectedProgram::new(vec![writes]))
    };
    assert_eq!(run("directory.tracks=shared").coherence["writebacks"], 0);
    assert_eq!(run("directory.tracks=all").coherence["writebacks"], lines - 4 * entries);
}

/// A producer that computes for a long time and then releases a flag; a consumer waiting for the flag.
fn handover(arithmetic: u16, scope: Scope) -> Arc<DirectedProgram> {
    let mut ctas = vec![CtaBuilder::new(); 16];
    ctas[0] = CtaBuilder::new().warp(|warp| {
        warp.compute(arithmetic).write([8]).store([0], Mask(1), Order::release(scope)).signal(0);
    });
    ctas[1] = CtaBuilder::new().warp(|warp| {
        warp.wait_until(0, 0, Order::acquire(scope)).read([8]);
    });
    DirectedProgram::new(vec![ctas])
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

/// Module 4 writes lines on GPU 0, one in each region, and after each write releases a flag on its own GPU.
fn releases(scope: Scope) -> Arc<DirectedProgram> {
    let release = kernel([4], |_, warp| {
        for region in 0..RELEASES {
            warp.write([4 * region]).store([REMOTE], Mask(1), Order::release(scope));
        }
    });
    DirectedProgram::new(vec![touch(0, 0..4 * RELEASES), touch(5, REMOTE..REMOTE + 1), release])
}

/// Releases by one warp: enough that module 4 is the GPU home for some lines.
const RELEASES: u64 = 16;
/// A line on a separate page.
const REMOTE: u64 = 1 << 20;

#[test]
fn a_gpu_release_waits_for_nothing_that_crosses_gpus() {
    let machine = machine(&["gpu_link.latency=10us"]);
    for name in ["software-hierarchical", "hmg"] {
        let time = |scope| simulate(&machine, design(name, &[]), releases(scope)).time_s;
        let round_trip = 20e-6;
        let waited = (time(Scope::Sys) - time(Scope::Gpu)) / round_trip;
        assert!(waited > 0.9 * RELEASES as f64, "{name}: {waited} round trips for {RELEASES} releases");
    }
}

#[test]
fn a_kernel_ends_as_soon_under_a_hierarchy_as_without() {
    let machine = machine(&[]);
    let time = |name| simulate(&machine, design(name, &[]), DirectedProgram::new(vec![touch(0, 0..1); 2])).time_s;
    assert_eq!(time("hmg"), time("nhcc"));
    assert_eq!(time("software-hierarchical"), time("software-flat"));
}

#[test]
fn a_relaxed_wait_invalidates_nothing_until_a_fence_acquires() {
    let machine = machine(&[]);
    let hits = |wait: fn(&mut WarpBuilder<'_>)| {
        let mut ctas = vec![CtaBuilder::new(); 16];
        ctas[0] = CtaBuilder::new().warp(|warp| _ = warp.store([0], Mask(1), Order::release(Scope::Sys)).signal(0));
        ctas[1] = CtaBuilder::new().warp(|warp| {
            wait(warp.read([8]));
            warp.read([8]);
        });
        simulate(&machine, design("software-flat", &[]), DirectedProgram::new(vec![ctas])).l1.hits
    };
    assert_eq!(hits(|warp| _ = warp.wait_until(0, 0, Order::relaxed(Scope::Sys))), 1);
    assert_eq!(hits(|warp| _ = warp.wait_until(0, 0, Order::acquire(Scope::Sys))), 0);
    let fenced = |warp: &mut WarpBuilder<'_>| {
        _ = warp.wait_until(0, 0, Order::relaxed(Scope::Sys)).fence(Order::acquire(Scope::Sys))
    };
    assert_eq!(hits(fenced), 0);
}

#[test]
fn a_flag_nobody_sets_ends_the_run_with_a_report() {
    let mut ctas = vec![CtaBuilder::new(); 16];
    ctas[1] = CtaBuilder::new().warp(|warp| _ = warp.wait_until(0, 0, Order::acquire(Scope::Gpu)));
    let machine = machine(&[]);
    let program = DirectedProgram::new(vec![ctas]);
    let spec = RunSpec { machine, design: design("hmg", &[]), program, pages: None, threads: 1 };
    let Err(RunError::Stuck { report, .. }) = run(&spec) else { panic!("the run cannot end") };
    assert!(report.contains("module1 sm0 warp 0 waits for Flag"), "{report}");
}

#[test]
fn a_run_beyond_the_horizon_ends_with_an_error() {
    let machine = machine(&["gpu_link.rate=1B/s"]);
    let program = DirectedProgram::new(vec![
        kernel([0], |_, warp| (0..800).for_each(|line| _ = warp.write([line]))),
        kernel([12], |_, warp| (0..800).for_each(|line| _ = warp.read([line]))),
    ]);
    let spec = RunSpec { machine, design: design("hmg", &[]), program, pages: None, threads: 1 };
    assert!(
        matches!(run(&spec), Err(RunError::TooLong)),
        "lines take minutes: {:?}",
        run(&spec).map(|record| record.time_s)
    );
}

#[test]
fn a_directory_names_no_more_modules_than_it_has_bits() {
    let machine = machine(&["topology.gpus=16"]);
    let spec = |name| {
        let program = DirectedProgram::new(vec![vec![CtaBuilder::new(); 64]]);
        RunSpec { machine: Arc::clone(&machine), design: design(name, &[]), program, pages: None, threads: 1 }
    };
    let refused = run(&spec("nhcc")).expect_err("64 modules").to_string();
    assert!(refused.contains("a directory entry names at most 32 modules, machine hmg-4x4 has 64"), "{refused}");
    assert!(run(&spec("software-flat")).is_ok(), "who has no directory needs no bits");
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
        simulate(&machine, design, DirectedProgram::new(kernels()))
    };
    let line = machine.line.bytes();
    assert_eq!(link(&run("through"), "module1.out").data_bytes, 10 * line, "every store travels");
    assert_eq!(link(&run("back"), "module1.out").data_bytes, line, "one write-back does");
}

#[test]
fn a_downgrade_saves_the_invalidation_of_a_line_that_is_gone() {
    // A direct-mapped L2 with one line per slice: the second region evicts the first.
    let machine = machine(&["l2.slices=1", "l2.bytes=2KB", "l2.ways=16"]);
    let run = |downgrade: bool| {
        let design = design("hmg", &[&format!("design.coherence.downgrade={downgrade}")]);
        let store = kernel([0], |_, warp| _ = warp.write([0]));
        let program = DirectedProgram::new(vec![touch(0, 0..128), reads([1], 0..1), reads([1], 4..68), store]);
        simulate(&machine, design, program).coherence["invalidations_by_store"]
    };
    assert_eq!(run(false), 1, "silent: the home still thinks that module 1 shares");
    assert_eq!(run(true), 0);
}

#[test]
fn the_ideal_keeps_its_l1_only_where_the_design_says_so() {
    let machine = machine(&[]);
    let hits = |coherent: bool| {
        let design = design("ideal", &[&format!("design.coherence.l1_coherent={coherent}")]);
        let program = DirectedProgram::new(vec![reads([0], 0..8), reads([0], 0..8)]);
        simulate(&machine, design, program).l1.hits
    };
    assert_eq!(hits(true), 0, "each kernel starts with an empty L1");
    assert_eq!(hits(false), 8);
}

#[test]
fn pages_that_all_modules_touch_alike_are_spread_over_them() {
    let machine = machine(&[]);
    let lines_per_page = machine.page_bytes / machine.line.bytes();
    let pages = 160;
    let program = DirectedProgram::new(vec![kernel(0..16, |_, warp| {
        (0..pages).for_each(|page| _ = warp.read([page * lines_per_page]));
    })]);
    let table = tombolo_system::place(&machine, &design("hmg", &[]), &*program).expect("a whole program");
    let mut homes = [0; 16];
    (0..pages).for_each(|page| {
        homes[usize::from(
            table.home(tombolo_types::ModuleId(0), Line(page * lines_per_page)).expect("it was touched").0,
        )] += 1;
    });
    // Ten each if they were dealt out evenly.
    assert!(homes.iter().all(|pages| (5..=15).contains(pages)), "{homes:?}");
}

#[test]
fn a_page_goes_to_the_module_that_reaches_it_first() {
    let machine = machine(&[]);
    let lines_per_page = machine.page_bytes / machine.line.bytes();
    // Every module begins with its own page and then visits all other pages in turn.
    let program = DirectedProgram::new(vec![kernel(0..16, |module, warp| {
        (0..16).for_each(|step| _ = warp.read([(module as u64 + step) % 16 * lines_per_page]));
    })]);
    let table = tombolo_system::place(&machine, &design("hmg", &[]), &*program).expect("a whole program");
    let homes = (0..16)
        .map(|page| table.home(tombolo_types::ModuleId(0), Line(page * lines_per_page)).expect("it was touched").0);
    assert_eq!(homes.collect::<Vec<_>>(), (0..16).collect::<Vec<_>>());
}

#[test]
fn a_flag_that_a_poll_has_brought_to_a_gpu_home_is_seen_there_by_later_polls() {
    let wait = |warp: &mut WarpBuilder<'_>| _ = warp.wait_until(0, 0, Order::acquire(Scope::Gpu));
    let mut ctas = vec![CtaBuilder::new(); 16];
    ctas[0] = CtaBuilder::new().warp(|warp| _ = warp.store([0], Mask(1), Order::release(Scope::Gpu)).signal(0));
    ctas[4] = CtaBuilder::new().warp(|warp| wait(warp.compute(10_000)));
    ctas[5] = CtaBuilder::new().warp(|warp| wait(warp.compute(20_000)));
    ctas[6] = CtaBuilder::new().warp(|warp| wait(warp.compute(30_000)));
    for name in ["nhcc", "hmg", "software-flat", "software-hierarchical"] {
        let program = DirectedProgram::new(vec![touch(0, 0..1), ctas.clone()]);
        let record = simulate(&machine(&[]), design(name, &[]), program);
        assert_eq!(record.sm["failed_polls"], 0, "{name}: it was set long before");
    }
}

/// Seconds for `ctas` on one SM.
fn on_one_sm(settings: &[&str], ctas: Vec<CtaBuilder>) -> f64 {
    let mut settings = settings.to_vec();
    settings.extend(["topology.gpus=1", "topology.modules_per_gpu=1"]);
    simulate(&machine(&settings), design("hmg", &[]), DirectedProgram::new(vec![ctas])).time_s
}

#[test]
fn a_kernel_lasts_until_the_arithmetic_after_its_last_access_has_ended() {
    let ctas = |instructions: u16| vec![CtaBuilder::new().warp(|warp| _ = warp.write([0]).compute(instructions))];
    let added = on_one_sm(&[], ctas(60_000)) - on_one_sm(&[], ctas(40_000));
    let cycles = added * machine(&[]).sm.clock.hz() as f64;
    assert!((39_000.0..=41_000.0).contains(&cycles), "20,000 instructions of two cycles took {cycles} more");
}

#[test]
fn the_scratchpad_serves_sub_cores_in_order_of_time() {
    let warps = |count: usize| {
        let work = |warp: &mut WarpBuilder<'_>| (0..8).for_each(|_| _ = warp.compute(1000).scratchpad(2));
        vec![(0..count).fold(CtaBuilder::new(), |cta, _| cta.warp(work))]
    };
    let (one, four) = (on_one_sm(&[], warps(1)), on_one_sm(&[], warps(4)));
    assert!(four < 1.1 * one, "arithmetic of four sub-cores overlaps: {four} s beside {one} s");
}

#[test]
fn a_warp_alone_issues_once_a_turn() {
    let ctas = || vec![CtaBuilder::new().warp(|warp| (0..20_000).for_each(|_| _ = warp.scratchpad(1)))];
    let (free, turns) = (on_one_sm(&[], ctas()), on_one_sm(&["sm.turn_cycles=4"], ctas()));
    assert!(turns > 1.5 * free, "{turns} s beside {free} s");
}

#[test]
fn a_warp_that_waits_for_the_scratchpad_at_a_barrier_leaves_its_sub_core_to_others() {
    let ctas = |count: usize| {
        let work = |warp: &mut WarpBuilder<'_>| (0..32).for_each(|_| _ = warp.scratchpad(1).barrier());
        vec![CtaBuilder::new().warp(work); count]
    };
    let settings = ["sm.sub_cores=1", "sm.shared_latency=1000cycles"];
    let (one, four) = (on_one_sm(&settings, ctas(1)), on_one_sm(&settings, ctas(4)));
    assert!(four < 1.1 * one, "waits overlap: {four} s beside {one} s");
}
