//! A tree of switches between GPUs: uplink sharing is observed through times and link counters in directed programs.
//! Eight GPUs with one module each, two per leaf; CTA `i` among eight runs on GPU `i`.

use crate::common::design;
use crate::common::eight::{FAR, LINES, machine, program, simulate, stores};
use std::ops::Range;
use tombolo_system::directed::CtaBuilder;
use tombolo_system::{RunRecord, RunSpec, run};
use tombolo_types::Order;

/// Settings for a tree with uplinks at the rate of a GPU's link.
const TREE: &[&str] = &["fabric.shape=tree", "fabric.gpus_per_leaf=2", "fabric.uplink_rate=10GB/s"];
fn bytes(record: &RunRecord, names: Range<u8>, way: &str) -> Vec<u64> {
    let of = |leaf| record.links.iter().find(|link| link.name == format!("leaf{leaf}.{way}")).map(|link| link.bytes);
    names.map(|leaf| of(leaf).expect("a tree tells of its uplinks")).collect()
}

#[test]
fn within_a_leaf_a_tree_is_one_switch() {
    let (one, plain) = stores(&[], &[(0, 1), (2, 3)]);
    let (tree, record) = stores(TREE, &[(0, 1), (2, 3)]);
    assert_eq!((one, plain.cycles), (tree, record.cycles));
    assert_eq!(bytes(&record, 0..4, "up"), [0; 4]);
    assert!(plain.links.iter().all(|link| !link.name.starts_with("leaf")), "one switch has no uplinks");
}

#[test]
fn two_gpus_of_a_leaf_share_its_uplink_exactly() {
    let (alone, _) = stores(TREE, &[(0, 2)]);
    let (both, record) = stores(TREE, &[(0, 2), (1, 3)]);
    let line = 128 + record_header();
    assert_eq!(bytes(&record, 0..4, "up"), [2 * LINES * line, 0, 0, 0]);
    assert_eq!(bytes(&record, 0..4, "down"), [0, 2 * LINES * line, 0, 0]);
    let more = LINES as f64 * line as f64 / 10e9;
    assert!(((both - alone) / more - 1.0).abs() < 0.01, "{both} s beside each other, {alone} s alone");
    // On different leaves, or with uplinks twice as fast, the transfers do not interfere.
    let (apart, _) = stores(TREE, &[(0, 2), (4, 6)]);
    let wide = [TREE, &["fabric.uplink_rate=20GB/s"]].concat();
    let (wide, _) = stores(&wide, &[(0, 2), (1, 3)]);
    assert!(apart < alone * 1.001 && wide < alone * 1.001, "{apart} s and {wide} s, {alone} s alone");
}

fn record_header() -> u64 {
    machine(&[]).messages.header_bytes.0
}

#[test]
fn uplinks_add_their_latency_twice_each_way() {
    // A chain of loads from another GPU's memory: the request and its reply each pass both uplinks.
    let time = |settings: &[&str]| {
        let chain = |gpu: u64| match gpu {
            0 => CtaBuilder::new().warp(|warp| {
                (0..100).for_each(|line| _ = warp.load([6 * FAR + line], Order::WEAK).use_result(1));
            }),
            _ => CtaBuilder::new(),
        };
        let record = simulate(settings, &[], program(chain)).expect("a machine that the design fits");
        record.kernels[1].end_s - record.kernels[1].start_s
    };
    let of = |latency| [TREE, &["fabric.uplink_rate=infinite", latency]].concat();
    let [near, far] = ["fabric.uplink_latency=0ns", "fabric.uplink_latency=100ns"].map(|latency| time(&of(latency)));
    assert!(((far - near) / (100.0 * 4.0 * 100e-9) - 1.0).abs() < 0.01, "{near} s and {far} s");
    assert!((near - time(&[])).abs() < 1e-9, "uplinks without latency and of any rate are one switch");
}

#[test]
fn a_tree_gives_the_same_result_at_any_number_of_threads() {
    let of = |threads| {
        let program = program(|gpu| {
            CtaBuilder::new().warp(|warp| {
                (0..200).for_each(|line| {
                    _ = warp.read([(gpu * 3 + 5) % 8 * FAR + line]).write([(gpu + 3) % 8 * FAR + line])
                });
            })
        });
        let settings = [TREE, &["fabric.uplink_latency=150ns"]].concat();
        let design = design("numa-coherent", &[]);
        run(&RunSpec { machine: machine(&settings), design, program, pages: None, threads }).expect("it runs").digest
    };
    assert_eq!(of(1), of(3));
}

#[test]
fn lanes_of_a_tree_do_not_turn() {
    let settings = [TREE, &["gpu_link.lanes=8"]].concat();
    let refused = simulate(&settings, &["links=turning"], program(|_| CtaBuilder::new()));
    assert!(refused.is_err_and(|error| error.to_string().contains("fabric.shape")));
}
