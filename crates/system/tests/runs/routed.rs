//! GPUs that pass packets on, in a ring, a torus, or over listed links: paths are observed through times and link counters
//! in directed programs. Eight GPUs with one module each; CTA `i` among eight runs on GPU `i`.

use crate::common::eight::{FAR, LINES, machine, program, simulate, stores};
use tombolo_system::RunRecord;
use tombolo_system::directed::CtaBuilder;
use tombolo_types::Order;

const RING: &[&str] = &["fabric.shape=ring"];
const TORUS: &[&str] = &["fabric.shape=torus", "fabric.columns=4"];

/// Bytes by link between two GPUs, in the record's order, without idle links.
fn hops(record: &RunRecord) -> Vec<(&str, u64)> {
    let between = |name: &str| name.matches("gpu").count() == 2;
    let busy = record.links.iter().filter(|link| between(&link.name) && link.bytes > 0);
    busy.map(|link| (link.name.as_str(), link.bytes)).collect()
}

/// Bytes of [`LINES`] stores on a link.
fn stored() -> u64 {
    LINES * (128 + machine(&[]).messages.header_bytes.0)
}

#[test]
fn a_store_uses_every_link_on_its_path_and_no_other() {
    let (_, near) = stores(RING, &[(0, 1)]);
    assert_eq!(hops(&near), [("gpu0.gpu1", stored())]);
    let (_, far) = stores(RING, &[(0, 2), (5, 4)]);
    assert_eq!(hops(&far), [("gpu0.gpu1", stored()), ("gpu1.gpu2", stored()), ("gpu5.gpu4", stored())]);
    let (_, torus) = stores(TORUS, &[(0, 5)]);
    assert_eq!(hops(&torus), [("gpu0.gpu1", stored()), ("gpu1.gpu5", stored())]);
    let (_, one) = stores(&[], &[(0, 2)]);
    assert!(hops(&one).is_empty(), "a switch has no links between GPUs");
}

#[test]
fn pairs_that_share_a_link_take_as_long_as_their_bytes() {
    let (alone, _) = stores(RING, &[(0, 2)]);
    let (both, _) = stores(RING, &[(0, 2), (1, 3)]);
    let more = stored() as f64 / 10e9;
    assert!(((both - alone) / more - 1.0).abs() < 0.02, "{both} s over one link, {alone} s alone");
    let (apart, _) = stores(RING, &[(0, 2), (4, 6)]);
    assert!(apart < alone * 1.001, "{apart} s and {alone} s");
    // Every GPU stores to the next GPU: each link carries its full rate.
    let (all, _) = stores(RING, &[0, 1, 2, 3, 4, 5, 6, 7].map(|gpu| (gpu, (gpu + 1) % 8)));
    let (one, _) = stores(RING, &[(0, 1)]);
    assert!(all < one * 1.001, "{all} s and {one} s");
}

/// Time for a chain of 100 loads by GPU 0 from the memory of GPU `from`.
fn chain(settings: &[&str], from: u64) -> f64 {
    let chain = |gpu: u64| match gpu {
        0 => CtaBuilder::new().warp(|warp| {
            (0..100).for_each(|line| _ = warp.load([from * FAR + line], Order::WEAK).use_result(1));
        }),
        _ => CtaBuilder::new(),
    };
    let record = simulate(settings, &[], program(chain)).expect("a machine that the design fits");
    record.kernels[1].end_s - record.kernels[1].start_s
}

#[test]
fn a_hop_costs_its_latency_each_way() {
    let hop = machine(&[]).gpu_link.latency.seconds();
    let fast = [RING, &["gpu_link.rate=infinite"]].concat();
    let (one, three) = (chain(&fast, 1), chain(&fast, 3));
    assert!(((three - one) / (100.0 * 2.0 * 2.0 * hop) - 1.0).abs() < 0.01, "{one} s and {three} s");
    let listed = "fabric.links=0:1:10GB/s:1us,1:2:10GB/s:1us,2:3:10GB/s:1us,3:4:10GB/s:1us,4:5:10GB/s:1us,5:6:10GB/s:1us,6:7:10GB/s:1us";
    let listed = ["fabric.shape=links", listed, "gpu_link.latency=1us"];
    let (one, seven) = (chain(&listed, 1), chain(&listed, 7));
    let lines = 6.0 * 100.0 * stored() as f64 / LINES as f64 / 10e9;
    assert!(((seven - one - lines) / (100.0 * 6.0 * 2.0 * 1e-6) - 1.0).abs() < 0.02, "{one} s and {seven} s");
}
