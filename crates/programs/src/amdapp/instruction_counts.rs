//! Arithmetic in the stretches of a kernel, counted from the kernel's binary for Southern Islands.

use crate::prelude::*;

/// Vector instructions in a stretch of a kernel, counted by instruction class. Scalar instructions run in a separate
/// unit and do not count.
///
/// Source of all: AMD APP SDK 2.5 (Multi2Sim/m2s-bench-amdsdk-2.5-src), the file `*_Kernels.bin` of each sample,
/// decoded with AMD's Southern Islands instruction set manual. Moves and conversions are in class `Fp32`, comparisons
/// in `Other`.
#[derive(Clone, Copy, Default)]
pub(crate) struct InstructionCounts {
    pub(crate) fp32: u16,
    pub(crate) int: u16,
    pub(crate) other: u16,
    pub(crate) special: u16,
}

impl InstructionCounts {
    /// Records the instructions after the loads on which `value` depends; returns `value` without any pending loads.
    pub(crate) fn on<V: Value>(self, warp: &mut Warp<'_>, value: V) -> V {
        let value = warp.compute(ComputeClass::Int, self.int, value);
        warp.compute(ComputeClass::Fp32, self.fp32, ());
        warp.compute(ComputeClass::Other, self.other, ());
        warp.compute(ComputeClass::Special, self.special, ());
        value
    }

    /// Records the instructions without waiting for a load.
    pub(crate) fn alone(self, warp: &mut Warp<'_>) {
        self.on(warp, ());
    }
}
