//! Buffers of the ranks, the part of a buffer that a CTA moves, and signals between CTAs.

use crate::prelude::*;
use std::ops::Range;

/// Elements per access of a thread: 16 bytes.
const VECTOR: u64 = 4;
/// Elements per line: parts of different CTAs share no line.
const LINE: u64 = 32;
/// Loads of a thread before the first of their values is used, or one per source if there are more sources. Source: NCCL,
/// `src/device/common_kernel.h`, which unrolls its loops to keep several accesses in flight.
const UNROLL: u64 = 4;

/// Bytes of an element.
pub(super) const ELEMENT: u64 = 4;

/// What the threads of a warp load or store at once.
type Vector = [Lanes<f32>; VECTOR as usize];

/// A CTA's rank, and its channel: its number within the rank. CTAs of a channel work on the same part of each chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) rank: usize,
    pub(super) channel: u64,
}

/// Elements of an array from `first` on.
#[derive(Clone, Copy)]
pub(super) struct View {
    array: Array<f32>,
    first: u64,
}

/// Numbers that describe an operation among ranks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) ranks: usize,
    /// CTAs of each rank.
    pub(super) ctas: u64,
    /// Threads per CTA.
    pub(super) threads: u32,
    /// Elements of a chunk: the unit that a step of an algorithm moves.
    pub(super) chunk: u64,
    /// Most elements of a message.
    pub(super) slice: u64,
    /// Messages per slice that a channel of a rank receives, at least 1.
    pub(super) messages: u64,
}

impl Shape {
    /// The part of a chunk that a channel moves, in whole lines.
    pub(super) fn part(&self, channel: u64) -> Range<u64> {
        let lines = self.chunk.div_ceil(LINE);
        let at = |channel: u64| (lines * channel / self.ctas * LINE).min(self.chunk);
        at(channel)..at(channel + 1)
    }

    /// The slices of a channel's part, in order.
    pub(super) fn slices(&self, channel: u64) -> impl Iterator<Item = Range<u64>> + use<> {
        let (part, slice) = (self.part(channel), self.slice);
        part.clone().step_by(slice as usize).map(move |first| first..(first + slice).min(part.end))
    }

    /// Slices of the channel that has most.
    fn most_slices(&self) -> u64 {
        (0..self.ctas)
            .map(|channel| self.part(channel))
            .map(|part| part.end - part.start)
            .max()
            .unwrap_or(0)
            .div_ceil(self.slice)
    }
}

/// Sizes of a rank's buffers, in elements.
#[derive(Clone, Copy, Debug)]
pub(super) struct BufferSizes {
    pub(super) input: u64,
    pub(super) output: u64,
    pub(super) staging: u64,
}

/// The ranks' buffers and signals.
pub(super) struct Ranks {
    pub(super) shape: Shape,
    pub(super) input: Vec<Array<f32>>,
    pub(super) output: Vec<Array<f32>>,
    pub(super) staging: Vec<Array<f32>>,
    /// By channel and message: the number of the sending launch, from 1; 0 before.
    pub(super) signals: Vec<Array<u32>>,
}

impl Ranks {
    /// Lays out the buffers.
    pub(super) fn lay_out(shape: Shape, sizes: BufferSizes, memory: &mut Memory) -> Ranks {
        let words = shape.ctas * shape.most_slices() * shape.messages;
        let mut each = |name: &str, elements: u64| -> Vec<Array<f32>> {
            (0..shape.ranks)
                .map(|rank| memory.array(&format!("{name}{rank}"), elements.max(1), Scaling::Scales))
                .collect()
        };
        let (input, output) = (each("input", sizes.input), each("output", sizes.output));
        let staging = if sizes.staging > 0 { each("staging", sizes.staging) } else { Vec::new() };
        let flags = |rank| memory.flags(&format!("signals{rank}"), words, Scaling::Scales);
        Ranks { shape, input, output, staging, signals: (0..shape.ranks).map(flags).collect() }
    }

    /// A CTA's rank and channel.
    pub(super) fn place(&self, cta: u32) -> Place {
        let cta = u64::from(cta);
        Place { rank: (cta / self.shape.ctas) as usize, channel: cta % self.shape.ctas }
    }

    /// The rank `steps` behind `rank` in the ring; `steps` is negative for ranks ahead.
    pub(super) fn behind(&self, rank: usize, steps: i64) -> usize {
        (rank as i64 - steps).rem_euclid(self.shape.ranks as i64) as usize
    }

    /// Other ranks than `rank`, its next one first, so that no rank is everybody's first.
    pub(super) fn peers(&self, rank: usize) -> impl Iterator<Item = usize> + use<> {
        let ranks = self.shape.ranks;
        (1..ranks).map(move |step| (rank + step) % ranks)
    }

    /// Chunk `index` of an array.
    pub(super) fn chunk(&self, array: Array<f32>, index: usize) -> View {
        View { array, first: index as u64 * self.shape.chunk }
    }

    /// A whole array.
    pub(super) fn whole(&self, array: Array<f32>) -> View {
        View { array, first: 0 }
    }

    /// Word of a message that a channel receives.
    fn word(&self, channel: u64, slice: u64, message: u64) -> u64 {
        (channel * self.shape.most_slices() + slice) * self.shape.messages + message
    }

    /// Adds up the elements `range` of all `sources` in order, and stores the sum to all `sinks`. All loads of a round are in
    /// flight at once.
    pub(super) fn transfer(&self, cta: &mut Cta<'_>, range: &Range<u64>, sources: &[View], sinks: &[View]) {
        let stride = u64::from(cta.threads()) * VECTOR;
        let turns = (UNROLL / sources.len() as u64).max(1);
        cta.each_warp(|warp| {
            let of_warp = u64::from(warp.index() * warp.width()) * VECTOR;
            for round in range.clone().step_by((stride * turns) as usize) {
                let firsts = (0..turns).map(|turn| round + turn * stride + of_warp).filter(|first| *first < range.end);
                let loaded: Vec<(u64, Vec<Vector>)> = firsts
                    .map(|first| (first, sources.iter().map(|source| load(warp, first, range.end, *source)).collect()))
                    .collect();
                for (first, loaded) in loaded {
                    let sum = add_up(warp, &loaded);
                    sinks.iter().for_each(|sink| store(warp, first, range.end, *sink, sum));
                }
            }
        });
    }

    /// Tells `to` that a message has arrived there: all stores of the CTA come before.
    pub(super) fn signal(
        &self,
        cta: &mut Cta<'_>,
        (to, epoch): (usize, u32),
        (channel, slice, message): (u64, u64, u64),
    ) {
        let word = self.word(channel, slice, message) as i32;
        cta.barrier();
        cta.warp(0, |warp| {
            let release = Order::release(Scope::Sys);
            warp.single(|warp| warp.store_ordered(self.signals[to], Lanes::all(word), epoch, release));
        });
    }

    /// Waits for a message to `rank`: all later loads of the CTA come after.
    pub(super) async fn wait(
        &self,
        cta: &mut Cta<'_>,
        (rank, epoch): (usize, u32),
        (channel, slice, message): (u64, u64, u64),
    ) {
        let word = self.word(channel, slice, message);
        let relaxed = Order::relaxed(Scope::Sys);
        cta.wait_until(0, self.signals[rank], word, relaxed, |flag| flag == epoch).await;
        cta.warp(0, |warp| warp.fence(Order::acquire(Scope::Sys)));
        cta.barrier();
    }

    /// Waits until the CTAs of this channel on all ranks have come here: each CTA signals all others, and waits for all
    /// others. A meeting has one message per rank; `first` is the number of the first message. Peers share the warps in
    /// turn.
    pub(super) async fn meet(&self, cta: &mut Cta<'_>, epoch: u32, first: u64) {
        let Place { rank, channel } = self.place(cta.index());
        let (relaxed, release) = (Order::relaxed(Scope::Sys), Order::release(Scope::Sys));
        let warps = cta.warps();
        let mine = self.word(channel, 0, first + rank as u64) as i32;
        cta.barrier();
        for (turn, peer) in (0..).zip(self.peers(rank)) {
            cta.warp(turn % warps, |warp| {
                warp.single(|warp| warp.store_ordered(self.signals[peer], Lanes::all(mine), epoch, release));
            });
        }
        for (turn, peer) in (0..).zip(self.peers(rank)) {
            let word = self.word(channel, 0, first + peer as u64);
            cta.wait_until(turn % warps, self.signals[rank], word, relaxed, |flag| flag == epoch).await;
        }
        let waited = warps.min(self.shape.ranks as u32 - 1);
        (0..waited).for_each(|warp| cta.warp(warp, |warp| warp.fence(Order::acquire(Scope::Sys))));
        cta.barrier();
    }
}

/// Index of each thread's first element, and the threads with elements before `end`; `None` if all have some.
fn lanes(warp: &Warp<'_>, view: View, first: u64, end: u64) -> (Lanes<i32>, Option<Lanes<bool>>) {
    let index = warp.lane() * VECTOR as i32 + (view.first + first) as i32;
    let is_whole = first + u64::from(warp.width()) * VECTOR <= end;
    (index, (!is_whole).then(|| index.lt((view.first + end) as i32)))
}

/// Loads the elements from `first` on.
fn load(warp: &mut Warp<'_>, first: u64, end: u64, source: View) -> Vector {
    let (index, active) = lanes(warp, source, first, end);
    match active {
        Some(active) => warp.load_vector_if(active, source.array, index),
        None => warp.load_vector(source.array, index),
    }
}

/// Sum over all sources, in order.
fn add_up(warp: &mut Warp<'_>, loaded: &[Vector]) -> Vector {
    let mut sum = loaded[0];
    for loaded in &loaded[1..] {
        sum = std::array::from_fn(|part| warp.compute(ComputeClass::Fp32, 1, sum[part] + loaded[part]));
    }
    sum
}

/// Stores the elements from `first` on.
fn store(warp: &mut Warp<'_>, first: u64, end: u64, sink: View, values: Vector) {
    let (index, active) = lanes(warp, sink, first, end);
    match active {
        Some(active) => warp.when(active, |warp| warp.store_vector(sink.array, index, values)),
        None => warp.store_vector(sink.array, index, values),
    }
}
