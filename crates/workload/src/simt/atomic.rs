//! Atomics by a warp: reductions with a discarded result, and atomics that return the old value.

use super::access::{LaneElements, lanes};
use super::deps::Deps;
use super::lanes::{Index, Lanes, MAX_LANES, Number};
use super::memory::{Array, Element, Integer};
use super::warp::{SpinDetector, Warp};
use tombolo_types::Order;
use tombolo_types::stream::{AtomicResult, Op};

/// Size of the smallest element supported by atomics, in bytes. Source: CUDA C++ Programming Guide, atomic functions:
/// 32 bits, except for a 16-bit compare and swap.
const NARROWEST: u64 = 4;

/// A reduction that commutes exactly: on integers only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduction {
    /// Sum, wrapping around.
    Add,
    /// Minimum.
    Min,
    /// Maximum.
    Max,
}

impl Reduction {
    fn apply<T: Integer>(self, old: T, value: T) -> T {
        match self {
            Reduction::Add => old.wrapping_sum(value),
            Reduction::Min => old.min(value),
            Reduction::Max => old.max(value),
        }
    }
}

impl Warp<'_> {
    /// Reduces `value` into `array[index]` in each active lane; no value is returned (`red`).
    pub fn reduce<T: Integer, I: Index>(
        &mut self,
        reduction: Reduction,
        array: Array<T>,
        index: Lanes<I>,
        value: impl Into<Lanes<T>>,
        order: Order,
    ) {
        let (place, value) = (self.lane_elements(array, index, 1), value.into());
        self.record.wait(value.deps);
        self.record_atomic(array, &place, AtomicResult::Discarded, order);
        if let Some(shadow) = self.launch.shadow {
            for lane in lanes(self.active) {
                shadow.reduce(self.launch, array, place.elements[lane], self.cta, reduction);
            }
        }
        for lane in lanes(self.active) {
            let update = |old| reduction.apply(old, value.values[lane]);
            self.launch.memory.update(array, place.elements[lane], update);
        }
        self.note_writes(array, &place);
    }

    /// Adds `value` to `array[index]` in each active lane, in ascending lane order; no value is returned (`atomicAdd`
    /// on floats). Not allowed in an independent kernel: floating-point sums depend on the CTA order.
    pub fn add_in_order<T: Number, I: Index>(
        &mut self,
        array: Array<T>,
        index: Lanes<I>,
        value: impl Into<Lanes<T>>,
        order: Order,
    ) {
        if !self.in_order() {
            let name = self.launch.memory.name(array);
            self.fault(format_args!("{name} is added to in order in a kernel declared independent"));
        }
        let place = self.lane_elements(array, index, 1);
        self.add(array, &place, value.into(), order);
    }

    /// Adds `value` to `array[index]` in each active lane, at elements that no other CTA accesses in this kernel
    /// (`atomicAdd` on floats); no value is returned. Allowed in an independent kernel: no order of CTAs changes the sum.
    /// Lanes act in ascending order.
    pub fn add_alone<T: Number, I: Index>(
        &mut self,
        array: Array<T>,
        index: Lanes<I>,
        value: impl Into<Lanes<T>>,
        order: Order,
    ) {
        let place = self.lane_elements(array, index, 1);
        self.shadow_store(array, &place);
        self.add(array, &place, value.into(), order);
    }

    /// Adds `value` at `place` in each active lane, in ascending lane order, without a check of independence.
    fn add<T: Number>(&mut self, array: Array<T>, place: &LaneElements, value: Lanes<T>, order: Order) {
        self.record.wait(value.deps);
        self.record_atomic(array, place, AtomicResult::Discarded, order);
        for lane in lanes(self.active) {
            self.launch.memory.update(array, place.elements[lane], |old| old.plus(value.values[lane]));
        }
        self.note_writes(array, place);
    }

    /// Reduces `value` into `array[index]` and returns the old value (`atomicAdd`, `atomicMin`, `atomicMax`). Lanes act
    /// in ascending order. Not allowed in an independent kernel: the result depends on the CTA order.
    pub fn atomic<T: Integer, I: Index>(
        &mut self,
        reduction: Reduction,
        array: Array<T>,
        index: Lanes<I>,
        value: impl Into<Lanes<T>>,
        order: Order,
    ) -> Lanes<T> {
        let value = value.into();
        self.returning(array, index, &value, order, |old, lane| reduction.apply(old, value.values[lane]))
    }

    /// Stores `value` to `array[index]` and returns the old value (`atomicExch`).
    pub fn exchange<T: Element, I: Index>(
        &mut self,
        array: Array<T>,
        index: Lanes<I>,
        value: impl Into<Lanes<T>>,
        order: Order,
    ) -> Lanes<T> {
        let value = value.into();
        self.returning(array, index, &value, order, |_, lane| value.values[lane])
    }

    /// Stores `value` to `array[index]` if the element equals `expected`, and returns the old value (`atomicCAS`).
    pub fn compare_exchange<T: Element, I: Index>(
        &mut self,
        array: Array<T>,
        index: Lanes<I>,
        expected: impl Into<Lanes<T>>,
        value: impl Into<Lanes<T>>,
        order: Order,
    ) -> Lanes<T> {
        let both = expected.into().zip(value.into(), |expected, value| (expected, value));
        self.returning(array, index, &both, order, |old, lane| {
            let (expected, value) = both.values[lane];
            if old == expected { value } else { old }
        })
    }

    fn returning<T: Element, I: Index, V>(
        &mut self,
        array: Array<T>,
        index: Lanes<I>,
        operand: &Lanes<V>,
        order: Order,
        update: impl Fn(T, usize) -> T,
    ) -> Lanes<T> {
        if !self.in_order() {
            let name = self.launch.memory.name(array);
            self.fault(format_args!("an atomic on {name} returns in a kernel declared independent"));
        }
        let place = self.lane_elements(array, index, 1);
        self.record.wait(operand.deps);
        self.record_atomic(array, &place, AtomicResult::Returned, order);
        let mut values = [T::default(); MAX_LANES];
        for lane in lanes(self.active) {
            let change = |old| update(old, lane);
            values[lane] = self.launch.memory.update(array, place.elements[lane], change);
        }
        self.note_writes(array, &place);
        Lanes { values, deps: Deps::of(self.record.loads.issue(), self.launch.address_only()) }
    }

    fn record_atomic<T: Element>(&mut self, array: Array<T>, place: &LaneElements, result: AtomicResult, order: Order) {
        if T::BYTES < NARROWEST {
            let name = self.launch.memory.name(array);
            self.fault(format_args!("an atomic on {name}, whose elements have {} byte: {NARROWEST} or more", T::BYTES));
        }
        let accesses = self.coalesce(array, place, 1);
        self.record.spin = SpinDetector::default();
        self.record.ops.push(Op::Atomic { order: order.into(), result, accesses });
    }
}
