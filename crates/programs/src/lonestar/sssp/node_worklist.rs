//! *wln*: a thread per worklist item relaxes all edges at the item's node. Every launch has the same number of CTAs, and
//! the items are dealt evenly over their threads.
//!
//! Whoever lowers a distance pushes the node, so that a list may hold a node several times. A list of the public
//! program starts with an entry for each fifth node, and doubles when it overflows; here it has an entry per arc, and
//! overflow is an error.
//!
//! Source: LonestarGPU 2.0, apps/sssp/sssp_worklistn.h and include/worklist.h.

use super::{ATOMIC, SingleSourcePaths};
use crate::prelude::*;

/// A worklist's items, and its ends and capacity in separate allocations (`Worklist`).
#[derive(Clone, Copy)]
struct Worklist {
    items: Array<u32>,
    start: Array<u32>,
    end: Array<u32>,
    capacity: Array<u32>,
}

impl Worklist {
    /// Number of items, read by every thread (`count`).
    fn count(&self, warp: &mut Warp<'_>) -> Lanes<u32> {
        let end = warp.load(self.end, Lanes::all(0));
        let start = warp.load(self.start, Lanes::all(0));
        warp.compute(ComputeClass::Int, 1, end - start)
    }

    /// Appends a node per active lane (`push`).
    fn push(&self, warp: &mut Warp<'_>, node: Lanes<u32>) {
        let capacity = warp.load(self.capacity, Lanes::all(0));
        let slot = warp.atomic(Reduction::Add, self.end, Lanes::all(0), 1, ATOMIC);
        let (slot, _) = warp.compute(ComputeClass::Int, 2, (slot, capacity));
        warp.store(self.items, slot, node);
    }
}

/// The worklist of a launch and that of the next, and the number of CTAs per launch.
pub(super) struct NodeWorklists {
    lists: [Worklist; 2],
    /// Flag for a list that overflowed; never set here.
    overflow: Array<u32>,
    ctas: u32,
}

/// First item and number of items for thread `thread` of `threads` (`myItems`): at most one each while there are fewer
/// items than threads, otherwise neighbouring items, of which the first threads have one more.
fn share(thread: u32, threads: u32, items: u32) -> (u32, u32) {
    if threads > items {
        return (thread, u32::from(thread < items));
    }
    let (each, left) = (items / threads, items % threads);
    (thread * each + thread.min(left), each + u32::from(thread < left))
}

impl NodeWorklists {
    /// Lays out two lists with `arcs` entries each.
    pub(super) fn lay_out(memory: &mut Memory, arcs: u64, scaling: Scaling, ctas: u32) -> NodeWorklists {
        let lists = [0, 1].map(|at| {
            let mut word = |field: &str| memory.array(&format!("{field}{at}"), 1, Scaling::Fixed);
            let (start, end, capacity) = (word("start"), word("end"), word("capacity"));
            Worklist { items: memory.array(&format!("worklist{at}"), arcs.max(1), scaling), start, end, capacity }
        });
        NodeWorklists { lists, overflow: memory.array("overflow", 1, Scaling::Fixed), ctas }
    }

    /// Launches until a list stays empty.
    pub(super) fn run(&self, paths: &SingleSourcePaths, host: &mut Host<'_>) -> Result<(), RecordError> {
        let [mut from, mut to] = self.lists;
        host.memory().write(from.items, 0, paths.source);
        host.memory().write(from.end, 0, 1);
        for list in [from, to] {
            host.memory().write(list.capacity, 0, list.items.len() as u32);
            [list.start, list.end, list.capacity].into_iter().for_each(|word| host.copy_to_device(word));
        }
        host.copy_element_to_device(from.items, 0);
        for _ in 0..paths.launches {
            host.memory().write(self.overflow, 0, 0);
            host.copy_to_device(self.overflow);
            let grid = Grid::new("relax", u64::from(self.ctas), paths.threads);
            host.launch_ordered(grid, |cta| relax(paths, cta, &from, &to))?;
            [self.overflow, to.start, to.end].into_iter().for_each(|word| host.copy_to_host(word));
            if host.memory().read(to.end, 0) == 0 {
                break;
            }
            (from, to) = (to, from);
            host.memory().write(to.end, 0, 0);
            [to.start, to.end].into_iter().for_each(|word| host.copy_to_device(word));
        }
        Ok(())
    }
}

/// Relaxes the edges at each thread's items of `from`, and pushes the nodes that became nearer to `to`.
fn relax(paths: &SingleSourcePaths, cta: &mut Cta<'_>, from: &Worklist, to: &Worklist) {
    let threads = cta.grid() * cta.threads();
    cta.each_warp(|warp| {
        let thread = warp.compute(ComputeClass::Int, 2, warp.global_thread());
        let items = from.count(warp);
        let shares = thread.zip(items, |thread, items| share(thread as u32, threads, items));
        let (first, count) =
            warp.compute(ComputeClass::Int, 6, (shares.map(|(first, _)| first), shares.map(|(_, count)| count)));
        warp.repeat(count, |warp, at| {
            // Pushes may have changed the ends, so they are loaded for each item.
            from.count(warp);
            let at = warp.compute(ComputeClass::Int, 1, first + at);
            let node = warp.load(from.items, at);
            relax_node(paths, warp, node, to);
        });
    });
}

fn relax_node(paths: &SingleSourcePaths, warp: &mut Warp<'_>, node: Lanes<u32>, to: &Worklist) {
    let (first, degree) = paths.network.row(warp, node.cast());
    warp.repeat(degree, |warp, arc| {
        let arc = warp.compute(ComputeClass::Int, 1, first + arc);
        let target = warp.load(paths.network.target, arc);
        let weight = warp.load(paths.weight, arc);
        // Atomics in the launch may have changed the distance, so it is loaded for each arc.
        let distance = warp.load(paths.distance, node);
        let known = warp.load(paths.distance, target);
        let reached = warp.compute(ComputeClass::Int, 1, distance.zip(weight, u32::saturating_add));
        warp.when(reached.lt(known), |warp| {
            let before = warp.atomic(Reduction::Min, paths.distance, target, reached, ATOMIC);
            warp.when(reached.lt(before), |warp| to.push(warp, target));
        });
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_dealt_once_each_and_evenly() {
        for (threads, items) in [(8, 0), (8, 5), (8, 8), (8, 21), (1, 3)] {
            let shares: Vec<_> = (0..threads).map(|thread| share(thread, threads, items)).collect();
            let dealt: Vec<u32> = shares.iter().flat_map(|&(first, count)| first..first + count).collect();
            assert_eq!(dealt, (0..items).collect::<Vec<_>>());
            let counts = || shares.iter().map(|(_, count)| *count);
            assert!(counts().max() <= counts().min().map(|least| least + 1), "{shares:?}");
        }
    }
}
