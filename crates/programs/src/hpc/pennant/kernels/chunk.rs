//! A CTA in a kernel over sides: it processes a chunk with whole zones.
//!
//! Each thread handles a side. Threads sum over a zone's sides through the scratchpad, in a ring from side to next
//! side. Each thread writes its zone's result, and all write equal values.

use super::super::{CHUNK, Hydro};
use super::{LaneVector, cost, pair, zero};
use crate::prelude::*;
use std::array::from_fn;

/// Registers for a thread in a kernel over sides.
#[derive(Clone, Copy)]
pub(super) struct SideThread {
    /// Set if the thread has a side.
    pub(super) on: Lanes<bool>,
    /// Index of the side in its chunk.
    pub(super) own: Lanes<i32>,
    pub(super) side: Lanes<i32>,
    pub(super) zone: Lanes<i32>,
    /// The side's end points.
    pub(super) ends: [Lanes<i32>; 2],
    /// Next side around the zone, and the previous side.
    pub(super) next: Lanes<i32>,
    pub(super) before: Lanes<i32>,
    pub(super) places: [LaneVector; 2],
    pub(super) centre: LaneVector,
    pub(super) area: Lanes<f64>,
    /// Surface or force for the side, between two stages in the kernel.
    pub(super) vector: LaneVector,
    pub(super) forces: [LaneVector; 2],
    /// Value for the side or its zone, between two stages in the kernel.
    pub(super) value: Lanes<f64>,
}

/// Scratchpad arrays in a kernel over sides.
pub(super) struct Scratch {
    /// Offset from a side to the next side, and to the previous side.
    pub(super) on: Shared<i32>,
    pub(super) back: Shared<i32>,
    pub(super) one: Shared<f64>,
    pub(super) two: Shared<f64>,
}

pub(super) fn share_pair(warp: &mut Warp<'_>, shared: &mut Shared<f64>, index: Lanes<i32>, value: LaneVector) {
    warp.store_shared_vector(shared, index * 2, value);
}

/// Runs `body` for each other side in a zone, from the next side on.
fn ring(warp: &mut Warp<'_>, on: &Shared<i32>, own: Lanes<i32>, mut body: impl FnMut(&mut Warp<'_>, Lanes<i32>)) {
    let mut at = own + warp.load_shared(on, own);
    loop {
        let more = at.ne(own);
        if !warp.any(more) {
            break;
        }
        let now = at;
        warp.when(more, |warp| {
            body(warp, now);
            let step = warp.load_shared(on, now);
            at = warp.update(now, now + step);
        });
    }
}

/// Runs `body` in the threads that have a side, then meets at the barrier.
pub(super) fn stage(
    cta: &mut Cta<'_>,
    threads: &mut [SideThread],
    mut body: impl FnMut(&mut Warp<'_>, &mut SideThread),
) {
    cta.each_warp(|warp| {
        let thread = &mut threads[warp.index() as usize];
        warp.when(thread.on, |warp| body(warp, thread));
    });
    cta.barrier();
}

/// Mean over a zone's points, which wait in the scratchpad.
pub(super) fn mean(warp: &mut Warp<'_>, scratch: &Scratch, thread: &SideThread) -> LaneVector {
    let mut sum: LaneVector = warp.load_shared_vector(&scratch.two, thread.own * 2);
    let mut count = Lanes::all(1.0);
    ring(warp, &scratch.on, thread.own, |warp, at| {
        let other: LaneVector = warp.load_shared_vector(&scratch.two, at * 2);
        // The two position components, like PENNANT's `double2`, and a count.
        let more = warp.compute_wide(ComputeClass::Fp64, 3, 3, [sum[0] + other[0], sum[1] + other[1], count + 1.0]);
        [sum[0], sum[1], count] = from_fn(|part| warp.update([sum[0], sum[1], count][part], more[part]));
    });
    warp.calculate(ComputeClass::Fp64, cost::CENTRE, [sum[0], sum[1], count], |[x, y, count]| [x / count, y / count])
}

/// Extreme among a zone's values, which wait in the scratchpad.
pub(super) fn extreme(
    warp: &mut Warp<'_>,
    scratch: &Scratch,
    thread: &SideThread,
    of: impl Fn(Lanes<f64>, Lanes<f64>) -> Lanes<f64>,
) -> Lanes<f64> {
    let mut found = warp.load_shared(&scratch.one, thread.own);
    ring(warp, &scratch.on, thread.own, |warp, at| {
        let other = warp.load_shared(&scratch.one, at);
        let extreme = warp.compute(ComputeClass::Fp64, 1, of(found, other));
        found = warp.update(found, extreme);
    });
    found
}

impl Hydro {
    /// Builds the chunk's threads, with their positions in the chunk and around their zones.
    pub(super) fn begin(&self, cta: &mut Cta<'_>) -> (Vec<SideThread>, Scratch) {
        let len = CHUNK as usize;
        let mut scratch =
            Scratch { on: cta.shared(len), back: cta.shared(len), one: cta.shared(len), two: cta.shared(2 * len) };
        let (maps, mut threads) = (&self.maps, Vec::new());
        cta.each_warp(|warp| {
            let chunk = Lanes::all(warp.cta() as i32);
            let (first, end) = (warp.load(maps.chunk_first, chunk), warp.load(maps.chunk_end, chunk));
            let own = warp.thread();
            let side = warp.compute(ComputeClass::Int, 1, own + first);
            let on = side.lt(warp.compute(ComputeClass::Int, 0, end));
            let none = Lanes::all(0);
            let nowhere = [zero(); 2];
            let mut thread = SideThread {
                on,
                own,
                side,
                zone: none,
                ends: [none; 2],
                next: none,
                before: none,
                places: [nowhere; 2],
                centre: nowhere,
                area: zero(),
                vector: nowhere,
                forces: [nowhere; 2],
                value: zero(),
            };
            warp.when(on, |warp| {
                thread.ends = [maps.first, maps.second].map(|map| warp.load(map, side));
                thread.zone = warp.load(maps.zone, side);
                thread.next = warp.load(maps.next, side);
                let near = warp.compute(ComputeClass::Int, 3, thread.next - first);
                warp.store_shared(&mut scratch.on, own, near - own);
                warp.store_shared(&mut scratch.back, near, own - near);
            });
            threads.push(thread);
        });
        cta.barrier();
        stage(cta, &mut threads, |warp, thread| {
            let back = warp.load_shared(&scratch.back, thread.own);
            thread.before = warp.compute(ComputeClass::Int, 1, thread.side + back);
        });
        (threads, scratch)
    }

    /// Loads the end points for each side, and shares the first point with the zone's other sides.
    pub(super) fn fetch(
        &self,
        cta: &mut Cta<'_>,
        threads: &mut [SideThread],
        scratch: &mut Scratch,
        places: Array<f64>,
    ) {
        stage(cta, threads, |warp, thread| {
            thread.places = thread.ends.map(|point| pair(warp, places, point));
            share_pair(warp, &mut scratch.two, thread.own, thread.places[0]);
        });
    }
}
