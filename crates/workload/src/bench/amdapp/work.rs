//! Arithmetic of a kernel's stretches, as its binary for Southern Islands has it.

use crate::simt::{ComputeClass, Value, Warp};

/// Vector instructions of a stretch, by class. Scalar instructions, which a unit of their own runs, do not count.
///
/// Source of all: AMD APP SDK 2.5 (Multi2Sim/m2s-bench-amdsdk-2.5-src), the file `*_Kernels.bin` of each sample, decoded by
/// AMD's Southern Islands instruction set manual. Moves and conversions are of class `Fp32`, comparisons of `Other`.
#[derive(Clone, Copy, Default)]
pub(super) struct Work {
    pub(super) fp32: u16,
    pub(super) int: u16,
    pub(super) other: u16,
    pub(super) special: u16,
}

impl Work {
    /// Records the instructions behind the loads that `value` waits for; returns it as a value that waits for none.
    pub(super) fn on<V: Value>(self, warp: &mut Warp<'_>, value: V) -> V {
        let value = warp.compute(ComputeClass::Int, self.int, value);
        warp.compute(ComputeClass::Fp32, self.fp32, ());
        warp.compute(ComputeClass::Other, self.other, ());
        warp.compute(ComputeClass::Special, self.special, ());
        value
    }

    /// The same, where no load is waited for.
    pub(super) fn alone(self, warp: &mut Warp<'_>) {
        self.on(warp, ());
    }
}
