//! Links with turning lanes, on whole machines: directed programs with a known steady state. CTA `i` among four runs on
//! GPU `i`; the first kernel places pages by touching them.

use crate::common::design;
use std::ops::Range;
use std::sync::Arc;
use tombolo_machine::MachineConfig;
use tombolo_system::directed::{CtaBuilder, DirectedProgram};
use tombolo_system::timeline::{Timeline, Trace};
use tombolo_system::{RunError, RunRecord, RunSpec, Simulation, run};
use tombolo_types::{Order, Ps, Scope};

/// Lines that each sender writes: together half a millisecond on the receiver's link, a hundred samples.
const LINES: u64 = 9_600;
/// Warps per CTA.
const WARPS: u64 = 32;

/// Four sockets with links at an eighth of NUMA-GPU's rate, one SM each.
fn machine(settings: &[&str]) -> Arc<MachineConfig> {
    let mut machine = tombolo_machine::machine("numa-4").expect("a preset");
    let mut all = vec!["topology.sms_per_module=1", "gpu_link.rate=8GB/s", "sm.posted_stores=1024"];
    all.extend(settings);
    tombolo_design::apply(&all, &mut machine, &mut []).expect("settings a machine has");
    Arc::new(machine.check().expect("a machine that fits"))
}

fn spec(design_name: &str, settings: &[&str], program: Arc<DirectedProgram>) -> RunSpec {
    RunSpec { machine: machine(&[]), design: design(design_name, settings), program, pages: None, threads: 1 }
}

/// Lines in the array homed on `gpu`, enough for all senders together.
fn array(gpu: u64) -> Range<u64> {
    gpu * 4 * LINES..(gpu * 4 + 3) * LINES
}

/// Every GPU touches its array.
fn touch() -> Vec<CtaBuilder> {
    (0..4).map(|gpu| CtaBuilder::sharing(array(gpu), WARPS, |warp, line| _ = warp.read([line]))).collect()
}

/// GPU `from` writes its part in GPU `to`'s array, for each pair.
fn writes(pairs: &[(u64, u64)]) -> Vec<CtaBuilder> {
    let mut ctas = vec![CtaBuilder::new(); 4];
    for &(from, to) in pairs {
        let start = array(to).start + (from % 3) * LINES;
        ctas[from as usize] = CtaBuilder::sharing(start..start + LINES, WARPS, |warp, line| _ = warp.write([line]));
    }
    ctas
}

fn timed(design_name: &str, settings: &[&str], pairs: &[(u64, u64)]) -> (RunRecord, Timeline) {
    let spec = spec(design_name, settings, DirectedProgram::new(vec![touch(), writes(pairs)]));
    let observed = Simulation::new(&spec).timeline(Ps::from_ns(5000)).run().expect("a program that ends");
    (observed.record, observed.timeline.expect("it was asked for"))
}

/// Seconds for the kernel that writes.
fn time(record: &RunRecord) -> f64 {
    let kernel = record.kernels.last().expect("two kernels ran");
    kernel.end_s - kernel.start_s
}

/// Lanes in a link direction at the end of the run.
fn lanes(timeline: &Timeline, name: &str) -> u32 {
    let track = timeline.tracks.iter().find(|track| track.name == name).expect("a way of a link");
    track.link.lanes().last().expect("a way has lanes").1
}

const TO_ONE: [(u64, u64); 3] = [(1, 0), (2, 0), (3, 0)];

#[test]
fn the_link_of_one_receiver_settles_at_fifteen_lanes_to_one() {
    let (fixed, _) = timed("numa-turning-links", &["links=static"], &TO_ONE);
    let (turning, timeline) = timed("numa-turning-links", &[], &TO_ONE);
    assert_eq!((lanes(&timeline, "gpu0.in"), lanes(&timeline, "gpu0.out")), (15, 1));
    let turned = |name: &str| turning.links.iter().find(|link| link.name == name).expect("a way").lanes_turned;
    assert_eq!(turned("gpu0.in"), 7);
    let speed_up = time(&fixed) / time(&turning);
    // 15/8, minus the loss during the first seven samples.
    assert!((1.7..=15.0 / 8.0).contains(&speed_up), "{speed_up}");
}

#[test]
fn the_speed_up_ends_at_another_limit() {
    // A single sender: its output has eight lanes and gains seven more, and so does the receiver's input.
    let (fixed, _) = timed("numa-turning-links", &["links=static"], &[(1, 0)]);
    let (turning, timeline) = timed("numa-turning-links", &[], &[(1, 0)]);
    assert_eq!(lanes(&timeline, "gpu1.out"), 15);
    let speed_up = time(&fixed) / time(&turning);
    assert!((1.2..=15.0 / 8.0).contains(&speed_up), "{speed_up}");
}

#[test]
fn links_that_are_saturated_both_ways_gain_nothing() {
    let exchange = [(0, 1), (1, 0), (2, 3), (3, 2)];
    let (fixed, _) = timed("numa-turning-links", &["links=static"], &exchange);
    let (turning, timeline) = timed("numa-turning-links", &[], &exchange);
    let speed_up = time(&fixed) / time(&turning);
    assert!((0.97..1.03).contains(&speed_up), "{speed_up}");
    for name in ["gpu0.in", "gpu0.out", "gpu3.in", "gpu3.out"] {
        assert!((7..=9).contains(&lanes(&timeline, name)), "{name} has {} lanes", lanes(&timeline, name));
    }
}

#[test]
fn a_longer_switch_time_costs_the_lanes_that_turn() {
    let time_of = |switch: &str| time(&timed("numa-turning-links", &[switch], &TO_ONE).0);
    let (quick, slow) = (time_of("links.switch_time=10"), time_of("links.switch_time=4000"));
    assert!(slow > quick * 1.003, "{slow} and {quick}");
    assert!(slow < quick * 1.1, "seven turns of 4 us each in a quarter of a millisecond");
}

#[test]
fn a_link_that_is_not_saturated_does_not_turn_and_costs_the_same() {
    let slow = || {
        CtaBuilder::sharing(array(0).start..array(0).start + 640, WARPS, |warp, line| {
            _ = warp.write([line]).compute(20_000)
        })
    };
    let run_of = |settings: &[&str]| {
        let ctas = vec![CtaBuilder::new(), slow(), CtaBuilder::new(), CtaBuilder::new()];
        run(&spec("numa-turning-links", settings, DirectedProgram::new(vec![touch(), ctas]))).expect("it ends")
    };
    let (fixed, turning) = (run_of(&["links=static"]), run_of(&[]));
    assert!(turning.links.iter().all(|link| link.lanes_turned == 0));
    assert_eq!(turning.inter_gpu_bytes, fixed.inter_gpu_bytes);
    assert!((time(&turning) / time(&fixed) - 1.0).abs() < 1e-3);
}

#[test]
fn links_give_one_digest_at_every_thread_count() {
    for (links, turned) in [("links=turning", 15..u64::MAX), ("links=static", 0..1)] {
        let digest = |threads: usize| {
            let kernels = || vec![touch(), writes(&TO_ONE), writes(&[(0, 1), (2, 1), (3, 1)])];
            let spec = RunSpec { threads, ..spec("numa-turning-links", &[links], DirectedProgram::new(kernels())) };
            let record = run(&spec).expect("it ends");
            (record.digest, record.cycles, record.links.iter().map(|link| link.lanes_turned).collect::<Vec<_>>())
        };
        let one = digest(1);
        assert!(turned.contains(&one.2.iter().sum()), "lanes that turned in both kernels: {:?}", one.2);
        for threads in [2, 3, 8] {
            assert_eq!(one, digest(threads), "{links} on {threads} threads");
        }
    }
}

#[test]
fn a_run_that_cannot_go_on_ends_although_links_are_sampled() {
    let wait = CtaBuilder::new().warp(|warp| _ = warp.wait_until(0, 0, Order::acquire(Scope::Sys)));
    let program = DirectedProgram::new(vec![vec![CtaBuilder::new(), wait, CtaBuilder::new(), CtaBuilder::new()]]);
    let stuck = run(&spec("numa-turning-links", &[], program));
    assert!(matches!(stuck, Err(RunError::Stuck { .. })), "{stuck:?}");
}

#[test]
fn links_without_lanes_to_turn_are_refused_with_the_reason() {
    let program = || DirectedProgram::new(vec![vec![CtaBuilder::new(); 4]]);
    for (setting, reason) in [("gpu_link.lanes=1", "gpu_link.lanes is 1"), ("gpu_link.rate=infinite", "infinite")] {
        let spec = RunSpec { machine: machine(&[setting]), ..spec("numa-turning-links", &[], program()) };
        let error = run(&spec).expect_err("nothing can turn").to_string();
        assert!(error.contains(reason) && error.contains("numa-turning-links"), "{error}");
    }
}

#[test]
fn a_timeline_agrees_with_its_record() {
    let (record, timeline) = timed("numa-turning-links", &[], &TO_ONE);
    for track in &timeline.tracks {
        let link = record.links.iter().find(|link| link.name == track.name).expect("a link of the record");
        assert_eq!(track.link.bytes().iter().sum::<u64>(), link.bytes, "{}", track.name);
    }
    let peak = timeline.tracks[1].utilization(timeline.window).fold(0.0, f64::max);
    assert!((1.8..1.95).contains(&peak), "fifteen lanes carry 15/8 of the machine's rate: {peak}");
}

#[test]
fn a_timeline_is_a_trace_whose_times_ascend_and_whose_kernels_are_those_of_the_record() {
    let (record, timeline) = timed("numa-turning-links", &[], &TO_ONE);
    let run = ("numa-turning-links".to_owned(), timeline);
    let text = serde_json::to_string(&Trace::of(std::slice::from_ref(&run))).expect("its keys are strings");
    let trace: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
    let events = trace["traceEvents"].as_array().expect("a list of events");
    let of = |phase: &str| events.iter().filter(move |event| event["ph"] == phase).collect::<Vec<_>>();
    let mut last = std::collections::BTreeMap::new();
    for event in of("C") {
        let at = event["ts"].as_f64().expect("a time");
        let before = last.insert(event["name"].as_str().expect("a name"), at);
        assert!(before.is_none_or(|before| before < at), "{event}");
    }
    assert_eq!(last.len(), 4 * 2 * 2 + 4 * 5, "utilisation and lanes, both ways of four links; five of each GPU");
    let slices = of("X");
    let all = record.kernels.iter().flat_map(|kernel| (0..4).map(move |gpu| (gpu, kernel)));
    assert_eq!(slices.len(), record.kernels.len() * 4, "one on the track of each GPU");
    for (slice, (gpu, kernel)) in slices.iter().zip(all) {
        assert_eq!((&slice["pid"], &slice["tid"]), (&1.into(), &(gpu * 64 + 1).into()));
        let (at, long) = (slice["ts"].as_f64().expect("a time"), slice["dur"].as_f64().expect("a length"));
        assert_eq!(slice["name"], kernel.name.as_str());
        assert!((at * 1e-6 - kernel.start_s).abs() < 1e-12 && ((at + long) * 1e-6 - kernel.end_s).abs() < 1e-12);
    }
}

#[test]
fn what_kernels_moved_is_what_the_record_counts() {
    let (record, timeline) = timed("numa-turning-links", &[], &TO_ONE);
    for track in &timeline.modules {
        let (last, module) = (track.samples.last().expect("of the end"), &record.modules[usize::from(track.module.0)]);
        assert_eq!(last.dram_bytes, module.dram_read_bytes + module.dram_write_bytes, "{}", module.name);
        assert_eq!((last.l2_loads, last.sent_bytes), (module.l2_loads, module.sent_bytes), "{}", module.name);
        assert_eq!((last.warps, last.misses), (0, 0), "nothing is under way at the end");
        assert!(track.samples.iter().any(|sample| sample.warps > 0) || module.name == "module0", "{}", module.name);
        assert!(track.samples.is_sorted_by(|a, b| a.at < b.at || a == b), "{}", module.name);
    }
    let run = ("a".to_owned(), timeline);
    let trace = Trace::of(&[run.clone(), run]);
    let bytes = |pid: u32, what: &str| -> u64 {
        let slices = trace.trace_events.iter().filter(|event| event.ph == 'X' && event.pid == pid);
        slices.map(|slice| slice.args[what].as_u64().expect("a count")).sum()
    };
    let dram = record.dram.read_bytes + record.dram.write_bytes;
    assert_eq!((bytes(1, "gpu_dram_bytes"), bytes(2, "gpu_dram_bytes")), (dram, dram), "two runs side by side");
    assert_eq!(bytes(1, "gpu_l2_loads"), record.l2.loads);
}

#[test]
fn a_timeline_is_the_same_at_every_thread_count() {
    let timeline = |threads: usize| {
        let program = DirectedProgram::new(vec![touch(), writes(&TO_ONE), writes(&[(0, 1), (2, 1)])]);
        let spec = RunSpec { threads, ..spec("numa-turning-links", &[], program) };
        Simulation::new(&spec).timeline(Ps::from_ns(700)).run().expect("it ends").timeline.expect("it was asked for")
    };
    let one = timeline(1);
    assert!(one.modules.iter().all(|module| module.samples.len() > 10), "windows of 0.7 us");
    assert!([2, 5].into_iter().all(|threads| timeline(threads) == one));
}

#[test]
fn a_timeline_changes_nothing() {
    let program = || DirectedProgram::new(vec![touch(), writes(&TO_ONE)]);
    for settings in [&["links=static"][..], &[]] {
        let plain = run(&spec("numa-turning-links", settings, program())).expect("it ends");
        let spec = spec("numa-turning-links", settings, program());
        let timed = Simulation::new(&spec).timeline(Ps::from_ns(700)).run().expect("it ends").record;
        assert_eq!(plain.digest, timed.digest);
        let all = Simulation::new(&spec).timeline(Ps::from_ns(700)).check().latency().boundaries().run();
        let all = all.expect("observers combine");
        assert_eq!(all.record.digest, plain.digest);
        assert!(all.timeline.is_some() && all.record.check.is_some_and(|check| check.loads > 0));
        assert!(all.record.latency.is_some() && !all.boundaries.is_empty());
    }
}
