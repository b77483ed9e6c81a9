//! *wlc*: a thread per worklist item gathers the edges at the item's node, and the CTA's threads relax them, an edge
//! each, like in Merrill's breadth-first search. One thread reserves space in the next list for the whole CTA.
//!
//! A thread pushes a node if its own edge is shorter than the distance it loaded, even if another thread was faster: a
//! list holds a node as often as it was pushed. Items and distances are loaded past the L1 (`LOAD_CG`). The first launch
//! pushes the source.
//!
//! Source: LonestarGPU 2.0, apps/sssp/sssp_worklistc.h and include/worklistc.h.

use super::{ATOMIC, SingleSourcePaths};
use crate::prelude::*;

/// Worklist entries per arc. Source: LonestarGPU 2.0, apps/sssp/sssp_worklistc.h (`nedges * 2`).
const ENTRIES_PER_ARC: u64 = 2;

/// A worklist's items, and its length and capacity in separate allocations (`Worklist2`).
#[derive(Clone, Copy)]
struct Worklist {
    items: Array<u32>,
    length: Array<u32>,
    capacity: Array<u32>,
}

/// The worklist of a launch and that of the next.
pub(super) struct EdgeWorklists {
    lists: [Worklist; 2],
}

/// Edges at a thread's node, to be shared by the CTA's threads.
#[derive(Clone, Copy, Debug, Default)]
struct ArcRange {
    node: u32,
    first: u32,
    degree: u32,
}

impl EdgeWorklists {
    /// Lays out two lists for a network with `arcs` arcs.
    pub(super) fn lay_out(memory: &mut Memory, arcs: u64, scaling: Scaling) -> EdgeWorklists {
        let entries = (arcs * ENTRIES_PER_ARC).max(1);
        let lists = [0, 1].map(|at| {
            let mut word = |field: &str| memory.array(&format!("{field}{at}"), 1, Scaling::Fixed);
            let (length, capacity) = (word("length"), word("capacity"));
            Worklist { items: memory.array(&format!("worklist{at}"), entries, scaling), length, capacity }
        });
        EdgeWorklists { lists }
    }

    /// Launches until a list stays empty, with a thread per item.
    pub(super) fn run(&self, paths: &SingleSourcePaths, host: &mut Host<'_>) -> Result<(), RecordError> {
        let [mut from, mut to] = self.lists;
        for list in [from, to] {
            host.memory().write(list.capacity, 0, list.items.len() as u32);
            host.copy_to_device(list.capacity);
            host.copy_to_device(list.length);
        }
        host.launch_ordered(Grid::new("push-source", 1, paths.threads), |cta| push_source(paths, cta, &from))?;
        let mut items = 1_u32;
        for _ in 0..paths.launches {
            let grid = Grid::new("relax", u64::from(items.div_ceil(paths.threads)), paths.threads);
            host.launch_ordered(grid, |cta| relax(paths, cta, &from, &to))?;
            host.copy_to_host(to.length);
            items = host.memory().read(to.length, 0);
            if items == 0 {
                break;
            }
            (from, to) = (to, from);
            host.memory().write(to.length, 0, 0);
            host.copy_to_device(to.length);
        }
        Ok(())
    }
}

/// Pushes the source from the first thread.
fn push_source(paths: &SingleSourcePaths, cta: &mut Cta<'_>, to: &Worklist) {
    cta.each_warp(|warp| {
        let thread = warp.compute(ComputeClass::Int, 3, warp.global_thread());
        warp.when(thread.eq(0), |warp| {
            let slot = warp.atomic(Reduction::Add, to.length, Lanes::all(0), 1, ATOMIC);
            let capacity = warp.load(to.capacity, Lanes::all(0));
            let (slot, _) = warp.compute(ComputeClass::Int, 1, (slot, capacity));
            warp.store(to.items, slot, paths.source);
        });
    });
}

/// Gathers the edges at the CTA's items of `from`; each thread relaxes an edge at a time.
fn relax(paths: &SingleSourcePaths, cta: &mut Cta<'_>, from: &Worklist, to: &Worklist) {
    let (threads, steps) = (cta.threads() as usize, cta.threads().ilog2() as u16);
    let mut ranges = vec![ArcRange::default(); threads];
    cta.each_warp(|warp| {
        warp.shared(1);
        let item = warp.compute(ComputeClass::Int, 2, warp.global_thread());
        let length = warp.load(from.length, Lanes::all(0));
        warp.when(item.lt(length.cast::<i32>()), |warp| {
            let node = warp.load_ordered(from.items, item, ATOMIC);
            let (first, degree) = paths.network.row(warp, node.cast());
            let [node, first, degree] = warp.compute(ComputeClass::Int, 0, [node, first, degree]);
            let base = (warp.index() * warp.width()) as usize;
            each_active(warp, |lane| {
                ranges[base + lane as usize] =
                    ArcRange { node: node.lane(lane), first: first.lane(lane), degree: degree.lane(lane) };
            });
        });
    });
    scan(cta, steps);
    let edges: Vec<(u32, u32)> = ranges
        .iter()
        .flat_map(|range| (range.first..range.first + range.degree).map(|arc| (arc, range.node)))
        .collect();
    for share in edges.chunks(threads) {
        let found = relax_share(paths, cta, share);
        scan(cta, steps);
        push(cta, to, &found);
    }
}

/// Relaxes an arc per thread and returns thread and node for each thread that pushes. `share` holds at most one arc per
/// thread, with the arc's index and the node at its start.
fn relax_share(paths: &SingleSourcePaths, cta: &mut Cta<'_>, share: &[(u32, u32)]) -> Vec<(u32, u32)> {
    let mut found = Vec::new();
    cta.barrier();
    // Threads write their nodes' arcs that fall into this share, and each thread reads an arc back.
    cta.each_warp(|warp| warp.shared(2));
    cta.barrier();
    cta.each_warp(|warp| {
        warp.shared(2);
        let base = warp.index() * warp.width();
        let entry = |lane| share.get((base + lane) as usize).copied().unwrap_or_default();
        let (arc, node) = (Lanes::by_lane(|lane| entry(lane).0), Lanes::by_lane(|lane| entry(lane).1));
        warp.when(warp.thread().lt(share.len() as i32), |warp| {
            let target = warp.load(paths.network.target, arc);
            let weight = warp.load(paths.weight, arc);
            let known = warp.load_ordered(paths.distance, target, ATOMIC);
            let distance = warp.load_ordered(paths.distance, node, ATOMIC);
            let reached = warp.compute(ComputeClass::Int, 1, distance.zip(weight, u32::saturating_add));
            warp.when(reached.lt(known), |warp| {
                warp.reduce(Reduction::Min, paths.distance, target, reached, ATOMIC);
                each_active(warp, |lane| found.push((base + lane, target.lane(lane))));
            });
        });
    });
    found
}

/// Pushes the nodes in `found`, each from its thread, into space that the first thread reserves (`push_1item`).
fn push(cta: &mut Cta<'_>, to: &Worklist, found: &[(u32, u32)]) {
    let mut first = 0;
    cta.warp(0, |warp| {
        warp.single(|warp| {
            let slot = warp.atomic(Reduction::Add, to.length, Lanes::all(0), found.len() as u32, ATOMIC);
            let slot = warp.compute(ComputeClass::Int, 0, slot);
            each_active(warp, |lane| first = slot.lane(lane));
            warp.shared(1);
        });
    });
    cta.barrier();
    cta.each_warp(|warp| {
        warp.shared(1);
        let base = warp.index() * warp.width();
        let place = |lane| found.binary_search_by_key(&(base + lane), |(thread, _)| *thread).ok();
        let slot = Lanes::by_lane(|lane| place(lane).map_or(0, |at| first + at as u32));
        let node = Lanes::by_lane(|lane| place(lane).map_or(0, |at| found[at].1));
        warp.when(Lanes::by_lane(|lane| place(lane).is_some()), |warp| {
            let capacity = warp.load(to.capacity, Lanes::all(0));
            let (slot, _) = warp.compute(ComputeClass::Int, 1, (slot, capacity));
            warp.store(to.items, slot, node);
        });
    });
}

/// Accounts for a prefix sum over a value per thread: in each warp by shuffles, then over the warps' sums.
fn scan(cta: &mut Cta<'_>, steps: u16) {
    cta.each_warp(|warp| {
        warp.compute(ComputeClass::Int, 2 * steps, ());
        warp.shared(1);
    });
    cta.barrier();
    cta.each_warp(|warp| warp.shared(1));
    cta.barrier();
}
