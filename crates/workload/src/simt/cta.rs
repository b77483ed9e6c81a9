//! A CTA: ordered warps, a barrier and a scratchpad.

use super::cooperative::{FlagRegistry, TokenMark};
use super::fault::Fault;
use super::launch::Launch;
use super::memory::Element;
use super::shared::Shared;
use super::warp::{Warp, WarpRecord};
use tombolo_types::stream::{Accesses, CtaStream, Op, Token};

/// Recorded content of a CTA: reused from CTA to CTA to avoid allocations.
#[derive(Default)]
pub(crate) struct CtaRecord {
    warps: Vec<WarpRecord>,
    pub(super) tokens: Vec<Token>,
    /// Bytes of instructions and accesses already reported by [`CtaRecord::grown`].
    told: u64,
}

/// A CTA during the run of a kernel.
pub struct Cta<'a> {
    pub(super) launch: &'a Launch<'a>,
    pub(super) record: &'a mut CtaRecord,
    pub(super) book: Option<&'a FlagRegistry>,
    pub(super) index: u32,
}

impl<'a> Cta<'a> {
    pub(crate) fn new(
        launch: &'a Launch<'a>,
        record: &'a mut CtaRecord,
        book: Option<&'a FlagRegistry>,
        index: u32,
    ) -> Cta<'a> {
        record.warps.resize_with(launch.warps() as usize, WarpRecord::default);
        record.warps.iter_mut().for_each(WarpRecord::clear);
        record.tokens.clear();
        record.told = 0;
        Cta { launch, record, book, index: launch.picked.cta(u64::from(index)) as u32 }
    }

    /// Index in the grid: `blockIdx.x`.
    #[inline]
    pub fn index(&self) -> u32 {
        self.index
    }

    /// CTA count in the grid: `gridDim.x`.
    #[inline]
    pub fn grid(&self) -> u32 {
        self.launch.grid
    }

    /// Outer loop trips to run: see [`Grid::trips`](super::Grid::trips).
    pub fn trips(&self) -> std::ops::Range<u64> {
        self.launch.trips.clone()
    }

    /// Threads in the CTA: `blockDim.x`.
    #[inline]
    pub fn threads(&self) -> u32 {
        self.launch.info.threads_per_cta
    }

    /// Warps in the CTA.
    #[inline]
    pub fn warps(&self) -> u32 {
        self.launch.warps()
    }

    /// True if values are computed: see [`Warp::computes`].
    #[inline]
    pub fn computes(&self) -> bool {
        !self.launch.address_only()
    }

    /// Runs `body` in each warp, in index order.
    pub fn each_warp(&mut self, mut body: impl FnMut(&mut Warp<'_>)) {
        for warp in 0..self.warps() {
            self.warp(warp, &mut body);
        }
    }

    /// Runs `body` in warp `index` alone. Faults if the CTA has no such warp.
    pub fn warp<R>(&mut self, index: u32, body: impl FnOnce(&mut Warp<'_>) -> R) -> R {
        let Some(record) = self.record.warps.get_mut(index as usize) else {
            self.fault(&format!("it has no warp {index}"))
        };
        body(&mut Warp::new(self.launch, record, self.book, self.index, index))
    }

    /// The CTA barrier, recorded by every warp. Writes before the barrier are visible to all warps after it.
    pub fn barrier(&mut self) {
        self.record.warps.iter_mut().for_each(|warp| warp.ops.push(Op::Barrier));
    }

    /// An array with `len` zeros in the scratchpad.
    pub fn shared<T: Element>(&mut self, len: usize) -> Shared<T> {
        Shared { values: vec![T::default(); len] }
    }

    pub(super) fn fault(&self, message: &str) -> ! {
        Fault::raise(self.index, message.to_owned())
    }

    /// The record for warp `index`; the warp must exist.
    pub(super) fn record_of(&mut self, index: u32) -> &mut WarpRecord {
        &mut self.record.warps[index as usize]
    }
}

impl CtaRecord {
    /// Growth in bytes of instructions and accesses since the last call.
    pub(super) fn grown(&mut self) -> u64 {
        let of = |warp: &WarpRecord| size_of_val(&*warp.ops) + size_of_val(&*warp.accesses);
        let bytes = self.warps.iter().map(of).sum::<usize>() as u64;
        bytes - std::mem::replace(&mut self.told, bytes)
    }

    /// Writes the finished CTA to `into`. `marks` lists the instructions awaited by other CTAs, in order.
    pub(crate) fn finish(&mut self, marks: &[TokenMark], into: &mut CtaStream) {
        into.clear();
        into.tokens.append(&mut self.tokens);
        for (index, warp) in self.warps.iter().enumerate() {
            let (start, base) = (into.ops.len() as u32, into.accesses.len() as u32);
            let mut marks = marks.iter().filter(|mark| mark.warp == index as u32).peekable();
            for (at, op) in warp.ops.iter().enumerate() {
                into.ops.push(moved(*op, base));
                while let Some(mark) = marks.next_if(|mark| mark.op == at as u32) {
                    into.ops.push(Op::Signal { token: into.tokens.len() as u16 });
                    into.tokens.push(mark.token);
                }
            }
            into.accesses.extend_from_slice(&warp.accesses);
            into.warps.push(start..into.ops.len() as u32);
        }
    }
}

/// Returns `op` with all access indices moved by `base`.
fn moved(mut op: Op, base: u32) -> Op {
    match &mut op {
        Op::Load { accesses, .. } | Op::Store { accesses, .. } | Op::Atomic { accesses, .. } => {
            *accesses = Accesses { start: accesses.start + base, ..*accesses };
        }
        Op::WaitUntil { access, .. } => *access += base,
        Op::Compute { .. }
        | Op::Fence { .. }
        | Op::Shared { .. }
        | Op::Barrier
        | Op::Use { .. }
        | Op::Signal { .. } => {}
    }
    op
}
