//! Ports of modules and their inner components: queueing is observed through times in directed programs. CTA `i` among
//! sixteen runs on module `i`.

use crate::common::{design, machine, simulate};
use std::sync::Arc;
use tombolo_machine::MachineConfig;
use tombolo_model::front_end::PageTable;
use tombolo_model::l2::AddressMap;
use tombolo_system::directed::{CtaBuilder, DirectedProgram, WarpBuilder};
use tombolo_types::stream::AtomicResult;
use tombolo_types::{Line, Mask, Order, Scope};

/// The memory order for a load that no L1 serves.
const PAST_L1: Order = Order::relaxed(Scope::Gpu);

/// Seconds from the last kernel's launch to its end.
fn last_kernel(settings: &[&str], kernels: Vec<Vec<CtaBuilder>>) -> f64 {
    let record = simulate(&machine(settings), design("hmg", &[]), DirectedProgram::new(kernels));
    let kernel = record.kernels.last().expect("a kernel ran");
    kernel.end_s - kernel.start_s
}

#[test]
fn a_fill_does_not_wait_for_hits_that_are_still_looked_up() {
    // One warp follows lines that only memory has. Meanwhile, another warp on its SM hits one line repeatedly. At
    // nearly every time a hit is in flight whose reservation precedes a fill and whose departure comes long after it.
    let time = |hits: usize| {
        let mut cta = CtaBuilder::new().warp(|warp| {
            for line in (64..128).step_by(8) {
                warp.load([line], PAST_L1).use_result(1);
            }
        });
        cta = cta.warp(|warp| (0..hits).for_each(|_| _ = warp.load([0], PAST_L1).use_result(1)));
        let touch = vec![CtaBuilder::new().warp(|warp| _ = warp.read([0]))];
        last_kernel(&["l2.hit_latency=1us"], vec![touch, vec![cta]])
    };
    let (alone, beside) = (time(0), time(6));
    // Eight misses, each a lookup lasting a microsecond or more; six hits end before them.
    assert!(alone > 8e-6 && beside < alone + 0.1e-6, "{alone} s alone, {beside} s beside hits");
}

#[test]
fn what_has_yet_to_come_in_holds_up_nothing_that_is_there() {
    // Three modules request lines from the fourth module in their GPU, faster than its port receives requests. Its own
    // SM follows lines in the same memory. If requests were handled when they begin to arrive, they would reserve the
    // memory for their later arrival, ahead of the SM's requests.
    let time = |loads: u64| {
        let chain = CtaBuilder::new().warp(|warp| {
            for line in (4096..4096 + 4 * 256).step_by(4) {
                warp.read([line]);
            }
        });
        let flood = |module: u64| {
            CtaBuilder::new().warp(|warp| _ = warp.load((0..loads).map(|i| 8192 + 3 * i + module), Order::WEAK))
        };
        let mut kernel = vec![CtaBuilder::new(); 16];
        kernel[0] = chain;
        (1..4).for_each(|module| kernel[module as usize] = flood(module));
        let mut touch = vec![CtaBuilder::new(); 16];
        touch[0] = CtaBuilder::new().warp(|warp| _ = warp.read([0]));
        last_kernel(&["module_link.rate=1GB/s", "l1.mshrs=64"], vec![touch, kernel])
    };
    let (alone, beside) = (time(0), time(48));
    assert!(alone > 40e-6 && beside < alone + 0.5e-6, "{alone} s alone, {beside} s beside others");
}

#[test]
fn a_fetch_behind_a_busy_port_holds_up_no_other_slice() {
    // One warp follows lines in one slice that only memory has. Another warp requests present lines from the other
    // slice, more than its port passes at once, followed by one line from memory. If a fetch were handled immediately,
    // it would reserve the memory for its later departure from the port, ahead of the first slice's requests.
    let settings =
        ["topology.sms_per_module=2", "l2.slices=2", "l2.rate=1GB/s", "dram.channels=1", "dram.banks=1", "l1.mshrs=64"];
    let lines = |slice, from, count| lines_of_slice(&machine(&settings), slice, from, count);
    let (held, missed, chain) = (lines(1, 0, 32), lines(1, 4096, 8), lines(0, 8192, 64));
    let time = |floods: usize| {
        let follows =
            CtaBuilder::new().warp(|warp| chain.iter().for_each(|&line| _ = warp.load([line], PAST_L1).use_result(1)));
        let floods = CtaBuilder::new().warp(|warp| {
            for &line in &missed[..floods] {
                warp.load(held.iter().copied(), PAST_L1).load([line], PAST_L1).use_result(2).use_result(1);
            }
        });
        let touch = CtaBuilder::new().warp(|warp| _ = warp.load(held.iter().copied(), PAST_L1).use_result(1));
        let mut kernel = vec![CtaBuilder::new(); 32];
        (kernel[0], kernel[1]) = (follows, floods);
        last_kernel(&settings, vec![vec![touch], kernel])
    };
    let (alone, beside) = (time(0), time(8));
    // A flood occupies the port for 32 lines, 128 ns each.
    assert!(alone > 20e-6 && beside < alone + 1e-6, "{alone} s alone, {beside} s beside floods");
}

#[test]
fn the_result_of_an_atomic_of_another_gpu_crosses_the_crossbar_as_its_request_does() {
    let atomics = 8;
    let time = |latency: &str| {
        let mut ctas = vec![CtaBuilder::new(); 16];
        ctas[4] = CtaBuilder::new().warp(|warp| {
            (0..atomics).for_each(|_| _ = warp.atomic([0], PAST_L1, AtomicResult::Returned).use_result(1));
        });
        let touch = vec![CtaBuilder::new().warp(|warp| _ = warp.read([0]))];
        // Command latency above the crossbar's, because the crossbar's share in the path to a kernel and back is part
        // of that latency.
        last_kernel(&[latency, "host.command_latency=10us"], vec![touch, ctas])
    };
    let added = time("crossbar.latency=2us") - time("crossbar.latency=1us");
    assert!((added - 2.0 * f64::from(atomics) * 1e-6).abs() < 1e-9, "two crossings each, not {added} s");
}

#[test]
fn a_cta_that_ends_late_holds_up_no_dispatch_before() {
    // Two SMs with one CTA each: one runs a long CTA, the other twenty short CTAs.
    let time = |short: usize| {
        let cta = |instructions: u16| CtaBuilder::new().warp(|warp| _ = warp.compute(instructions));
        let ctas = std::iter::once(cta(40_000)).chain((0..short).map(|_| cta(2000))).collect();
        let settings = ["topology.gpus=1", "topology.modules_per_gpu=1", "topology.sms_per_module=2", "sm.ctas=1"];
        last_kernel(&settings, vec![ctas])
    };
    let (alone, beside) = (time(0), time(20));
    assert!(beside < 1.2 * alone, "{alone} s alone, {beside} s beside short ones");
}

#[test]
fn a_cta_takes_the_place_of_the_one_that_ends_first() {
    let time = |instructions: &[u16]| {
        let cta = |&count: &u16| CtaBuilder::new().warp(|warp| _ = warp.compute(count));
        let settings = ["topology.gpus=1", "topology.modules_per_gpu=1", "sm.ctas=2"];
        last_kernel(&settings, vec![instructions.iter().map(cta).collect()])
    };
    // Two CTAs fit at once: the second long CTA runs beside the first, regardless of the short CTA's position.
    let (last, middle) = (time(&[10, 60_000, 60_000]), time(&[60_000, 10, 60_000]));
    assert!(last > 90e-6 && (last - middle).abs() < 1e-6, "{last} s and {middle} s");
}

/// `count` lines starting at `from`, in different regions, held by `slice` in a module of `machine`.
fn lines_of_slice(machine: &MachineConfig, slice: u16, from: u64, count: usize) -> Vec<u64> {
    let pages =
        PageTable::interleaved_by_page(machine.topology.modules() as u8, machine.page_bytes / machine.line.bytes());
    let map = AddressMap::new(machine, Arc::new(pages));
    (from..).step_by(4).filter(|&line| map.slice(Line(line)) == slice).take(count).collect()
}

/// Slices and channels in a module, and channels per slice group: the module has the largest number of groups that
/// divides both counts.
#[test]
fn lines_of_a_slice_use_the_channels_of_its_group_and_no_others() {
    for (slices, channels, own) in [(4, 4, 1), (4, 16, 4), (16, 4, 1), (6, 4, 2), (4, 6, 3), (3, 5, 5)] {
        let [slices_are, channels_are] = [format!("l2.slices={slices}"), format!("dram.channels={channels}")];
        let settings = ["topology.gpus=1", "topology.modules_per_gpu=1", &slices_are, &channels_are];
        let machine = machine(&settings);
        let lines = lines_of_slice(&machine, slices - 1, 0, 2000);
        let cta = CtaBuilder::new().warp(|warp| lines.iter().for_each(|&line| _ = warp.read([line])));
        let record = simulate(&machine, design("hmg", &[]), DirectedProgram::new(vec![vec![cta]]));
        assert_eq!(record.dram.read_bytes, 2000 * 128);
        let busy = record.utilization.dram_channels;
        let used = busy.mean * f64::from(channels) / busy.highest;
        assert!(used <= own.into() && used > f64::from(own) * 0.9, "{slices} slices, {channels} channels: {used} used");
    }
}

#[test]
fn every_slice_has_its_turn_of_store_credits() {
    let settings = [
        "topology.gpus=1",
        "topology.modules_per_gpu=2",
        "topology.sms_per_module=2",
        "l2.slices=2",
        "l2.posted_stores=1",
    ];
    // Lines in the second module's memory.
    let far = 1 << 14;
    let time = |flooded: u16| {
        let lines = |slice, from, count| lines_of_slice(&machine(&settings), slice, from, count);
        let (stores, one) = (lines(flooded, far, 60), lines(1 - flooded, far, 1));
        let reads = lines(1 - flooded, 4096, 60);
        let floods = CtaBuilder::new().warp(|warp| _ = warp.write(stores.iter().copied()));
        let follows = CtaBuilder::new().warp(|warp| {
            warp.compute(100).write(one.iter().copied());
            reads.iter().for_each(|&line| _ = warp.read([line]));
        });
        let touch = vec![CtaBuilder::new(), CtaBuilder::new().warp(|warp| _ = warp.read([far]))];
        let kernel = vec![floods, follows, CtaBuilder::new(), CtaBuilder::new()];
        let record =
            simulate(&machine(&settings), design("software-flat", &[]), DirectedProgram::new(vec![touch, kernel]));
        let kernel = record.kernels.last().expect("a kernel ran");
        kernel.end_s - kernel.start_s
    };
    let (first, second) = (time(0), time(1));
    assert!((first - second).abs() < 2e-6, "{first} s with the first slice flooded, {second} s with the second");
}

#[test]
fn a_store_credit_that_comes_back_first_is_heard_of_first() {
    let time = |credits: &'static str, late: usize| {
        let settings = [
            "topology.gpus=1",
            "topology.modules_per_gpu=1",
            "topology.sms_per_module=2",
            "l2.slices=2",
            "l2.rate=1GB/s",
            credits,
        ];
        let lines = |slice, from, count| lines_of_slice(&machine(&settings), slice, from, count);
        let (held, behind) = (lines(0, 0, 100), lines(0, 4096, late));
        let (stores, reads) = (lines(1, 4096, 20), lines(1, 1 << 15, 40));
        let floods = CtaBuilder::new().warp(|warp| _ = warp.load(held.iter().copied(), PAST_L1).use_result(1));
        let follows = CtaBuilder::new().warp(|warp| {
            warp.compute(100);
            behind.iter().chain(&stores).for_each(|&line| _ = warp.store([line], Mask(1), Order::WEAK));
            reads.iter().for_each(|&line| _ = warp.read([line]));
        });
        let touch = CtaBuilder::new().warp(|warp| _ = warp.read(held.iter().copied()));
        last_kernel(&settings, vec![vec![touch], vec![floods, follows]])
    };
    // One additional store goes to a slice with a port that is busy for microseconds, with one additional credit for
    // it.
    let (alone, beside) = (time("sm.posted_stores=1", 0), time("sm.posted_stores=2", 1));
    assert!(alone > 15e-6 && beside < alone + 0.5e-6, "{alone} s, {beside} s with one store more");
}

#[test]
fn stores_without_credit_leave_local_loads_of_other_lines_their_rate() {
    // A warp stores to lines on another GPU over a nearly blocked link, and each store obtains a credit only after
    // another store has been accepted. Meanwhile, warps in the same module load lines from its slices at the slices'
    // rate.
    let settings = [
        "topology.sms_per_module=2",
        "gpu_link.rate=200MB/s",
        "l2.posted_stores=4",
        "l2.rate=8B/cycle",
        "l2.slices=2",
        "sm.posted_stores=64",
    ];
    let (local, remote) = (0..64_u64, 1 << 20..(1 << 20) + 512_u64);
    let at = |module: usize, ctas: Vec<CtaBuilder>| {
        let mut kernel = vec![CtaBuilder::new(); 32];
        kernel.splice(2 * module..2 * module + ctas.len(), ctas);
        kernel
    };
    let touch =
        |lines: std::ops::Range<u64>| CtaBuilder::new().warp(|warp| lines.for_each(|line| _ = warp.read([line])));
    let time = |stores: u64, passes: usize| {
        let loads = (0..8).fold(CtaBuilder::new(), |cta, _| {
            let loads = |_| local.clone().step_by(8).map(|line| line..line + 8);
            cta.warp(|warp| (0..passes).flat_map(loads).for_each(|lines| _ = warp.load(lines, PAST_L1).use_result(4)))
        });
        let stores = CtaBuilder::new().warp(|warp| (0..stores).for_each(|line| _ = warp.write([remote.start + line])));
        let places = [at(0, vec![touch(local.clone())]), at(4, vec![touch(remote.clone())])];
        let [near, far] = places;
        last_kernel(&settings, vec![near, far, at(0, vec![loads, stores])])
    };
    let (loads, stores, both) = (time(0, 280), time(160, 0), time(160, 280));
    assert!(stores > 0.7 * loads && stores < 0.95 * loads, "stores take {stores} s of the {loads} s of loads");
    assert!(both < 1.01 * loads, "loads take {loads} s alone, {both} s beside stores");
}

#[test]
fn answers_to_reads_that_share_a_miss_pass_the_slice_one_after_the_other() {
    // Eight SMs in a module load the same lines: at 1 GB/s, the single slice takes 128 ns for each reply, cold and warm
    // alike.
    let machine = ["topology.sms_per_module=8", "l2.slices=1", "l2.rate=1GB/s", "sm.ctas=1"];
    let (sms, lines) = (8, 16_u64);
    let reading =
        || (0..16 * sms).map(|cta| if cta < sms { reads(lines) } else { CtaBuilder::new() }).collect::<Vec<_>>();
    let cold = last_kernel(&machine, vec![reading()]);
    let answers = (sms as u64 * lines * 128) as f64 * 1e-9;
    assert!((1.0..1.2).contains(&(cold / answers)), "{cold} s, the answers alone {answers} s");
}

/// A CTA that loads the first `lines` lines.
fn reads(lines: u64) -> CtaBuilder {
    CtaBuilder::new().warp(|warp| (0..lines).for_each(|line| _ = warp.load([line], PAST_L1)))
}

#[test]
fn loads_that_hit_take_their_lookups_or_their_banks_whichever_is_more() {
    // Sixteen lines per instruction, with the first word or the whole line: four cycles for lookups, sixteen for the
    // banks.
    let cycles = |settings: &[&str], mask: Mask| {
        let kernel = |times: usize| {
            vec![CtaBuilder::new().warp(|warp| {
                warp.read(0..16).use_result(1);
                (0..times).for_each(|_| _ = warp.load_part(0..16, mask, Order::WEAK));
                warp.use_result(1);
            })]
        };
        let all = [&["l1.lookups_per_cycle=4", "sm.clock=1GHz", "sm.pending_loads=64"], settings].concat();
        let [few, many] = [64, 128].map(|times| last_kernel(&all, vec![kernel(times)]));
        (many - few) * 1e9 / 64.0
    };
    let near =
        |measured: f64, expected: f64| assert!((measured / expected - 1.0).abs() < 0.02, "{measured}, {expected}");
    near(cycles(&["l1.banks=32"], Mask(1)), 16.0);
    near(cycles(&["l1.banks=32"], Mask::ALL), 16.0);
    near(cycles(&["l1.banks=none"], Mask(1)), 4.0);
    near(cycles(&["l1.banks=none", "l1.lookups_per_cycle=1"], Mask(1)), 16.0);
}

#[test]
fn an_instruction_keeps_the_l1_as_long_as_its_addresses_take_or_its_lines_whichever_is_more() {
    let cycles = |settings: &[&str], lines: u64| {
        let kernel = |times: usize| {
            vec![CtaBuilder::new().warp(|warp| {
                warp.read(0..16).use_result(1);
                (0..times).for_each(|_| _ = warp.load_part(0..lines, Mask(1), Order::WEAK));
                warp.use_result(1);
            })]
        };
        let all =
            [&["l1.lookups_per_cycle=1", "l1.banks=none", "sm.clock=1GHz", "sm.pending_loads=64"], settings].concat();
        let [few, many] = [64, 128].map(|times| last_kernel(&all, vec![kernel(times)]));
        (many - few) * 1e9 / 64.0
    };
    let near =
        |measured: f64, expected: f64| assert!((measured / expected - 1.0).abs() < 0.02, "{measured}, {expected}");
    near(cycles(&[], 1), 1.0);
    near(cycles(&["l1.instruction_cycles=4"], 1), 4.0);
    near(cycles(&["l1.instruction_cycles=4"], 3), 4.0);
    near(cycles(&["l1.instruction_cycles=4"], 16), 16.0);
}

#[test]
fn requests_for_lines_take_their_lookups_and_leave_at_their_intervals() {
    // Cycles per line of loads from the L2, each of `lines` lines.
    let cycles = |settings: &[&str], lines: u64| {
        let kernel = |times: u64| {
            let loads = |warp: &mut WarpBuilder<'_>| {
                (0..times).for_each(|load| _ = warp.load(load * lines..(load + 1) * lines, PAST_L1));
                warp.use_result(1);
            };
            vec![CtaBuilder::new().warp(loads)]
        };
        let all =
            [&["l1.lookups_per_cycle=4", "sm.clock=1GHz", "sm.pending_loads=64", "l1.mshrs=1024"], settings].concat();
        let [few, many] = [32, 64].map(|times| last_kernel(&all, vec![kernel(times), kernel(times)]));
        (many - few) * 1e9 / (32 * lines) as f64
    };
    let near =
        |measured: f64, expected: f64| assert!((measured / expected - 1.0).abs() < 0.03, "{measured}, {expected}");
    near(cycles(&["l1.miss_lookup=16 cycles"], 4), 16.0);
    near(cycles(&["l1.request_interval=16 cycles"], 4), 16.0);
    near(cycles(&["l1.request_instruction=64 cycles"], 4), 16.0);
    near(cycles(&["l1.request_instruction=64 cycles", "l1.request_interval=32 cycles"], 4), 32.0);
}

#[test]
fn a_fetch_of_two_sectors_leaves_the_second_in_the_l2() {
    let run = |settings: &[&str]| {
        let settings = [&["l1.sector_bytes=32B"], settings].concat();
        let half = |sector: u32| Mask(0xff << (8 * sector));
        let cta = CtaBuilder::new().warp(|warp| {
            for sector in [0, 1] {
                warp.load_part(0..16, half(sector), PAST_L1).use_result(1);
            }
        });
        let record = simulate(&machine(&settings), design("hmg", &[]), DirectedProgram::new(vec![vec![cta]]));
        (record.l2.hits, record.dram.read_bytes)
    };
    assert_eq!(run(&[]), (0, 16 * 64), "each sector is fetched");
    assert_eq!(run(&["l2.fetch_bytes=64"]), (16, 16 * 64), "the first sector's fetch brings the second");
    assert_eq!(run(&["l2.fetch_bytes=128"]).1, 16 * 128, "a fetch brings the line");
}
