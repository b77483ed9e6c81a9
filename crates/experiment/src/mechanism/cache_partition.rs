//! Cache ways that shift between local and remote lines: a set of remote lines larger than half an L2, and programs
//! that access only local memory. Source: NUMA-GPU, section 5.
//!
//! The machine is NUMA-GPU's with four sockets, one SM each and caches with one slice: an L2 with 32 sets and 16 ways,
//! and an L1 with a single set and four ways. The requests in flight from an SM saturate the link.

use super::{Measurement, received, simulate};
use std::sync::Arc;
use tombolo_machine::MachineConfig;
use tombolo_system::directed::{CtaBuilder, WarpBuilder};

/// Sets in an L2, and therefore the lines per way.
const WAY: u64 = 32;
/// Remote lines that are read repeatedly: one way more than half an L2.
const JUST_OVER_HALF: u64 = 9 * WAY;
/// Repeated reads: many windows with 5K cycles each.
const PASSES: u64 = 40;
/// Lines with 144 B each that cross in a window of 5 us at 2.5 GB/s.
const WINDOW: u64 = 87;

/// Lines that cross in additional passes after the ways have shifted: none.
pub(super) fn crossing_after_ways_have_shifted() -> Result<Measurement, String> {
    let (some, ways) = read_again("numa-aware-cache", PASSES)?;
    let (more, _) = read_again("numa-aware-cache", 2 * PASSES)?;
    // Each window shifts a way until no lines cross: at most three windows of traffic, then all lines once.
    if some > 3 * WINDOW + JUST_OVER_HALF {
        return Err(format!("{some} lines crossed before ways had shifted"));
    }
    match (ways.first(), ways.last()) {
        (Some((2, 8)), Some((1, 3..=7))) => Ok(Measurement::count(0, more - some)),
        _ => Err(format!("local ways of the reader's L1 and L2 went as {ways:?}")),
    }
}

/// Share of the lines read in each pass that crosses the link, if remote lines may occupy only half the L2.
pub(super) fn crossing_under_static_halves() -> Result<Measurement, String> {
    let (crossed, _) = read_again("numa-static-halves", PASSES)?;
    Ok(Measurement { predicted: None, measured: crossed as f64 / (PASSES * JUST_OVER_HALF) as f64, unit: "" })
}

/// Local ways in the L2s at the end of a program without remote accesses: all but one among sixteen.
pub(super) fn ways_of_a_local_program() -> Result<Measurement, String> {
    // A single SM saturates this memory, and each socket's lines cover whole pages.
    let machine = machine(&["dram.rate=10GB/s", "dram.channels=1", "l1.mshrs=512"])?;
    let lines = 1024;
    let own = |socket: u64| CtaBuilder::new().warp(|warp| _ = warp.sweep(socket * lines..(socket + 1) * lines, 10));
    let record = simulate(&machine, "numa-aware-cache", vec![(0..4).map(own).collect()])?;
    let last = |module: u64| {
        let name = format!("module{module}");
        record.local_ways.iter().rfind(|ways| ways.module == name).map(|ways| (ways.l1, ways.l2))
    };
    let ends: Vec<_> = (0..4).map(last).collect();
    match (record.inter_gpu_bytes, ends[0]) {
        (0, Some((3, l2))) if ends.iter().all(|end| *end == ends[0]) => Ok(Measurement::count(15, l2.into())),
        (bytes, _) => Err(format!("{bytes} B crossed, and local ways of L1 and L2 ended as {ends:?}")),
    }
}

/// Returns the lines that cross while socket 1 reads the lines on socket 0 `passes` times, and the local ways of its L1
/// and L2.
fn read_again(design: &str, passes: u64) -> Result<(u64, Vec<(u32, u32)>), String> {
    let machine = machine(&["gpu_link.rate=2.5GB/s", "l1.mshrs=24"])?;
    let touch = of_one(0, |warp| (0..JUST_OVER_HALF).for_each(|line| _ = warp.read([line])));
    let read = of_one(1, |warp| _ = warp.sweep(0..JUST_OVER_HALF, passes));
    let record = simulate(&machine, design, vec![touch, read])?;
    let ways = record.local_ways.iter().filter(|ways| ways.module == "module1").map(|ways| (ways.l1, ways.l2));
    Ok((received(&record) / machine.line.bytes(), ways.collect()))
}

/// Builds a kernel with four CTAs; the CTA on `socket` runs one warp, and the rest are empty.
fn of_one(socket: usize, write: impl FnOnce(&mut WarpBuilder<'_>)) -> Vec<CtaBuilder> {
    let mut ctas = vec![CtaBuilder::new(); 4];
    ctas[socket] = CtaBuilder::new().warp(write);
    ctas
}

fn machine(settings: &[&str]) -> Result<Arc<MachineConfig>, String> {
    let small = ["topology.sms_per_module=1", "l2.slices=1", "l2.bytes=64KB", "l1.bytes=512B", "l1.sector_bytes=128"];
    let mut machine = tombolo_machine::machine("numa-4").map_err(|error| error.to_string())?;
    tombolo_design::apply(&[&small, settings].concat(), &mut machine, &mut []).map_err(|error| error.to_string())?;
    machine.check().map(Arc::new).map_err(|error| error.to_string())
}
