//! A shared medium for all GPUs, a direct link for each pair, and GPUs that pass packets on: resource sharing is observed by
//! times and link counters in directed programs. Eight GPUs with one module each; CTA `i` among eight runs on GPU `i`.

use crate::common::design;
use crate::common::eight::{FAR, LINES, machine, program, simulate, stores};
use std::sync::Arc;
use tombolo_system::directed::{CtaBuilder, DirectedProgram};
use tombolo_system::{RunRecord, RunSpec, run};
use tombolo_types::Order;

const SHARED: &str = "fabric.shape=shared";
const PAIRS: &str = "fabric.shape=pairs";
/// With `fabric.columns`, rows of several GPUs.
const TORUS: &str = "fabric.shape=torus";
const RING: &str = "fabric.shape=ring";

/// Bytes in all stores from one GPU to another, headers included.
fn sent() -> u64 {
    LINES * (128 + machine(&[]).messages.header_bytes.0)
}

fn bytes(record: &RunRecord, name: &str) -> Option<u64> {
    record.links.iter().find(|link| link.name == name).map(|link| link.bytes)
}

#[test]
fn on_one_medium_any_two_pairs_share_the_rate_exactly() {
    let (alone, _) = stores(&[SHARED], &[(0, 1)]);
    let (both, record) = stores(&[SHARED], &[(0, 1), (2, 3)]);
    let more = sent() as f64 / 10e9;
    assert!(((both - alone) / more - 1.0).abs() < 0.01, "{both} s beside each other, {alone} s alone");
    assert_eq!(["medium.up", "medium.down"].map(|way| bytes(&record, way)), [Some(2 * sent()); 2]);
    assert_eq!(
        ["gpu0.out", "gpu1.in", "gpu2.in"].map(|way| bytes(&record, way)),
        [Some(sent()), Some(sent()), Some(0)]
    );
    let (apart, plain) = stores(&["fabric.shape=switch"], &[(0, 1), (2, 3)]);
    assert!(apart < alone * 1.001 && bytes(&plain, "medium.up").is_none(), "a switch keeps them apart");
}

#[test]
fn links_from_each_to_each_do_not_meet_even_at_one_gpu() {
    let to_one: [(u64, u64); 3] = [(0, 1), (2, 1), (3, 1)];
    let (alone, _) = stores(&[PAIRS], &[(0, 1)]);
    let (all, record) = stores(&[PAIRS], &to_one);
    assert!(all < alone * 1.01, "{all} s beside each other, {alone} s alone");
    assert_eq!((bytes(&record, "gpu1.in"), bytes(&record, "gpu0.out")), (Some(3 * sent()), Some(sent())));
    let (switched, _) = stores(&["fabric.shape=switch"], &to_one);
    assert!(switched > alone * 2.5, "a switch has one way to it: {switched} s");
}

#[test]
fn an_idle_load_takes_the_latency_whatever_the_shape() {
    let time = |shape: &str| {
        let chain = |gpu: u64| match gpu {
            0 => CtaBuilder::new().warp(|warp| {
                (0..100).for_each(|line| _ = warp.load([6 * FAR + line], Order::WEAK).use_result(1));
            }),
            _ => CtaBuilder::new(),
        };
        let settings = [shape, "gpu_link.rate=infinite"];
        let record = simulate(&settings, &[], program(chain)).expect("a machine that the design fits");
        record.kernels[1].end_s - record.kernels[1].start_s
    };
    let switch = time("fabric.shape=switch");
    assert_eq!([SHARED, PAIRS].map(time), [switch; 2]);
}

#[test]
fn every_shape_gives_the_same_result_at_any_number_of_threads() {
    for shape in [SHARED, PAIRS, "fabric.shape=switch", "fabric.shape=tree", RING, TORUS] {
        let of = |threads| {
            let program = program(|gpu| {
                CtaBuilder::new().warp(|warp| {
                    (0..200).for_each(|line| {
                        _ = warp.read([(gpu * 3 + 5) % 8 * FAR + line]).write([(gpu + 3) % 8 * FAR + line])
                    });
                })
            });
            let design = design("numa-coherent", &[]);
            run(&RunSpec { machine: machine(&[shape, "fabric.columns=4"]), design, program, pages: None, threads })
                .expect("it runs")
                .digest
        };
        let one = of(1);
        for threads in [2, 3, 8] {
            assert_eq!(one, of(threads), "{shape} on {threads} threads");
        }
    }
}

#[test]
fn their_lanes_do_not_turn() {
    for shape in [SHARED, PAIRS, RING, TORUS] {
        let refused = simulate(&[shape, "gpu_link.lanes=8"], &["links=turning"], program(|_| CtaBuilder::new()));
        assert!(refused.is_err_and(|error| error.to_string().contains("fabric.shape is ")), "{shape}");
    }
}

#[test]
fn a_host_that_no_design_uses_changes_nothing() {
    let of = |has_host: bool| {
        let described = tombolo_machine::machine("dgx-h100").expect("a preset");
        let mut machine = described.check().expect("it fits");
        if !has_host {
            (machine.cpu, machine.llc, machine.host_memory) = (None, None, None);
            (machine.host_directory, machine.host_link) = (None, None);
        }
        assert_eq!(machine.coherent_host().is_some(), has_host);
        let touch = |gpu: u64| CtaBuilder::new().warp(|warp| _ = warp.write([gpu * FAR]).read([(gpu + 1) % 8 * FAR]));
        let program = DirectedProgram::new(vec![(0..8).map(touch).collect(), (0..8).map(touch).collect()]);
        let (machine, design) = (Arc::new(machine), design("numa-memory-side", &[]));
        run(&RunSpec { machine, design, program, pages: None, threads: 1 }).expect("it runs")
    };
    let (with, without) = (of(true), of(false));
    assert_eq!((with.digest, with.links), (without.digest, without.links));
}
