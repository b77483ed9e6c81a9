//! A warp: identity, active lanes, arithmetic, branches and fences.

use super::access::lanes;
use super::cooperative::FlagRegistry;
use super::deps::{Deps, LoadTracker};
use super::fault::Fault;
use super::lanes::{Lanes, MAX_LANES, Number, Value};
use super::launch::Launch;
use super::memory::Element;
use crate::chains::{Arithmetic, Chains, Depth};
use std::array::from_fn;
use std::fmt;
use tombolo_types::Order;
use tombolo_types::stream::{Access, ComputeClass, Op};

/// Instructions recorded so far for a warp.
#[derive(Default)]
pub(crate) struct WarpRecord {
    pub(crate) ops: Vec<Op>,
    pub(crate) accesses: Vec<Access>,
    pub(crate) loads: LoadTracker,
    pub(crate) chains: Chains,
    pub(crate) spin: SpinDetector,
}

impl WarpRecord {
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.ops.clear();
        self.accesses.clear();
        self.loads = LoadTracker::default();
        self.chains = Chains::default();
        self.spin = SpinDetector::default();
    }

    /// Records the waits for `deps` before an instruction that is not arithmetic: for arithmetic first, then for loads.
    #[inline]
    pub(crate) fn wait(&mut self, deps: Deps) {
        self.chains.wait(deps.depth, &mut self.ops, 0);
        self.wait_for_loads(deps);
    }

    /// Records the waits for all loads in `deps` that are still outstanding, oldest first.
    #[inline]
    pub(crate) fn wait_for_loads(&mut self, deps: Deps) {
        let mut waited = self.loads.wait(deps);
        while waited != 0 {
            let oldest = 63 - waited.leading_zeros();
            self.ops.push(Op::Use { distance: oldest as u8 + 1 });
            waited &= !(1 << oldest);
        }
    }

    /// Records arithmetic with operand depth `operand`; returns the result's depth.
    pub(crate) fn compute(&mut self, run: Arithmetic, operand: Depth) -> Depth {
        self.chains.push(run, operand, &mut self.ops, 0)
    }
}

/// Detects a warp that loads the same line repeatedly: Rust code that spins on memory would never end.
#[derive(Default)]
pub(crate) struct SpinDetector {
    pub(crate) line: u64,
    pub(crate) loads: u32,
}

/// A warp in a CTA while its kernel runs. Instructions affect the active lanes.
pub struct Warp<'a> {
    pub(super) launch: &'a Launch<'a>,
    pub(super) record: &'a mut WarpRecord,
    pub(super) book: Option<&'a FlagRegistry>,
    pub(super) cta: u32,
    pub(super) index: u32,
    pub(super) active: u64,
}

impl<'a> Warp<'a> {
    /// Warp `index` in CTA `cta`; every lane with a thread is active.
    pub(super) fn new(
        launch: &'a Launch<'a>,
        record: &'a mut WarpRecord,
        book: Option<&'a FlagRegistry>,
        cta: u32,
        index: u32,
    ) -> Warp<'a> {
        let threads = launch.info.threads_per_cta - index * launch.width;
        let active = u64::MAX >> (64 - threads.min(launch.width));
        Warp { launch, record, book, cta, index, active }
    }

    /// Lanes per warp.
    #[inline]
    pub fn width(&self) -> u32 {
        self.launch.width
    }

    /// Index of the warp in its CTA.
    #[inline]
    pub fn index(&self) -> u32 {
        self.index
    }

    /// Index of the warp's CTA in the grid: `blockIdx.x`.
    #[inline]
    pub fn cta(&self) -> u32 {
        self.cta
    }

    /// The lane number in each lane.
    #[inline]
    pub fn lane(&self) -> Lanes<i32> {
        Lanes::by_lane(|lane| lane as i32)
    }

    /// The index in the CTA for each lane's thread: `threadIdx.x`.
    #[inline]
    pub fn thread(&self) -> Lanes<i32> {
        let first = (self.index * self.launch.width) as i32;
        Lanes::by_lane(|lane| first + lane as i32)
    }

    /// The index in the grid for each lane's thread: `blockIdx.x * blockDim.x + threadIdx.x`.
    #[inline]
    pub fn global_thread(&self) -> Lanes<i32> {
        let first = (self.cta * self.launch.info.threads_per_cta + self.index * self.launch.width) as i32;
        Lanes::by_lane(|lane| first.wrapping_add(lane as i32))
    }

    /// Bit mask of the active lanes.
    #[inline]
    pub fn active(&self) -> u64 {
        self.active
    }

    /// True if values are computed. If false, a kernel may omit arithmetic that affects no address.
    #[inline]
    pub fn computes(&self) -> bool {
        !self.launch.address_only()
    }

    /// Records `count` arithmetic instructions of `class` that need `value`, each dependent on its predecessor. Records
    /// the wait for the loads behind `value`, and returns the value with a dependence on the chain instead.
    ///
    /// The chain starts when its operands are available. For `()` the chain starts at once, and the next instruction
    /// that is not arithmetic needs its result, for example a load whose address is computed by the chain.
    pub fn compute<V: Value>(&mut self, class: ComputeClass, count: u16, value: V) -> V {
        self.compute_wide(class, count, 1, value)
    }

    /// Like [`Warp::compute`], with `ilp` concurrent chains of `count / ilp` instructions each: independent operations
    /// in the program, for example accumulators in an unrolled loop. `ilp` is at least 1.
    pub fn compute_wide<V: Value>(&mut self, class: ComputeClass, count: u16, ilp: u16, mut value: V) -> V {
        let mut operand = None;
        value.visit(&mut |awaited| {
            self.record.wait_for_loads(*awaited.0);
            operand = operand.max(Some(awaited.0.depth));
            awaited.0.settle();
        });
        if count > 0 {
            let run = Arithmetic { class, count, chain: count.div_ceil(ilp) };
            let result = self.record.compute(run, operand.unwrap_or(Depth::NONE));
            value.visit(&mut |awaited| awaited.0.depth = result);
            if operand.is_none() {
                self.record.chains.note_unheld_result();
            }
        }
        value
    }

    /// Records `count` instructions of `class` that turn `N` operands into `M` results by `function`, lane by lane: a
    /// formula too long for operators. Waits for the operands; inactive lanes hold zero. The instructions form a single
    /// chain.
    pub fn calculate<T, U, const N: usize, const M: usize>(
        &mut self,
        class: ComputeClass,
        count: u16,
        operands: [Lanes<T>; N],
        function: impl Fn([T; N]) -> [U; M],
    ) -> [Lanes<U>; M]
    where
        T: Element,
        U: Element,
    {
        self.calculate_wide(class, count, 1, operands, function)
    }

    /// Like [`Warp::calculate`], with `ilp` concurrent chains.
    pub fn calculate_wide<T, U, const N: usize, const M: usize>(
        &mut self,
        class: ComputeClass,
        count: u16,
        ilp: u16,
        operands: [Lanes<T>; N],
        function: impl Fn([T; N]) -> [U; M],
    ) -> [Lanes<U>; M]
    where
        T: Element,
        U: Element,
    {
        let operands = self.compute_wide(class, count, ilp, operands);
        let deps = operands.iter().fold(Deps::NONE, |deps, operand| deps.unite(operand.deps));
        let mut results = [Lanes { values: [U::default(); MAX_LANES], deps }; M];
        if self.computes() {
            for lane in lanes(self.active) {
                let values = function(from_fn(|operand| operands[operand].values[lane]));
                results.iter_mut().zip(values).for_each(|(result, value)| result.values[lane] = value);
            }
        }
        results
    }

    /// Runs `body` with only the lanes active for which `condition` holds; skips `body` if no lane remains. Costs a
    /// single instruction, the branch.
    pub fn when(&mut self, condition: Lanes<bool>, body: impl FnOnce(&mut Warp<'_>)) {
        let on = self.branch(condition) & self.active;
        self.with_active(on, body);
    }

    /// Runs both sides of a branch in sequence.
    pub fn when_else(
        &mut self,
        condition: Lanes<bool>,
        body: impl FnOnce(&mut Warp<'_>),
        otherwise: impl FnOnce(&mut Warp<'_>),
    ) {
        let taken = self.branch(condition);
        self.with_active(taken & self.active, body);
        self.with_active(!taken & self.active, otherwise);
    }

    /// Runs `body` in the lowest active lane, like `if (lane == 0)`. Costs a single instruction.
    pub fn single(&mut self, body: impl FnOnce(&mut Warp<'_>)) {
        let branch = Arithmetic { class: ComputeClass::Other, count: 1, chain: 1 };
        self.record.compute(branch, Depth::NONE);
        self.with_active(self.active & self.active.wrapping_neg(), body);
    }

    /// Runs `body(warp, 0)`, `body(warp, 1)` and so on, each with only the lanes active whose `count` is larger: a loop
    /// over a different range in each lane. Costs a single instruction, the branch, before each round.
    pub fn repeat(&mut self, count: Lanes<u32>, mut body: impl FnMut(&mut Warp<'_>, u32)) {
        for round in 0.. {
            let on = self.branch(count.gt(round)) & self.active;
            if on == 0 {
                break;
            }
            self.with_active(on, |warp| body(warp, round));
        }
    }

    /// Selects `new` in the active lanes and `old` in all others: an assignment inside a branch.
    pub fn update<T: Copy>(&self, old: Lanes<T>, new: Lanes<T>) -> Lanes<T> {
        let active = self.active;
        Lanes::by_lane(|lane| active >> lane & 1 == 1).select(new, old)
    }

    /// Sums `value` over each group of `group` neighbouring lanes and returns the sum in every lane: a butterfly with
    /// `__shfl_xor_sync`, at the cost of a shuffle and an addition per step. Inactive lanes count as zero. `group` is a
    /// power of two, at most the width.
    pub fn sum_lanes<T: Number>(&mut self, class: ComputeClass, value: Lanes<T>, group: u32) -> Lanes<T> {
        let mut sum = self.compute(class, 0, self.update(Lanes::all(T::default()), value));
        let mut distance = group / 2;
        while distance > 0 {
            let shuffled = self.compute(ComputeClass::Other, 1, sum);
            let other = Lanes { values: from_fn(|lane| sum.values[lane ^ distance as usize]), ..shuffled };
            sum = self.compute(class, 1, sum + other);
            distance /= 2;
        }
        sum
    }

    /// True if `condition` holds in any active lane: `__any_sync`. Costs a single instruction.
    #[inline]
    pub fn any(&mut self, condition: Lanes<bool>) -> bool {
        self.branch(condition) & self.active != 0
    }

    /// Runs a single instruction with only the lanes active for which `condition` holds.
    pub(super) fn predicated<R>(&mut self, condition: Lanes<bool>, instruction: impl FnOnce(&mut Self) -> R) -> R {
        self.record.wait(condition.deps);
        let on = self.decided(condition) & self.active;
        let before = std::mem::replace(&mut self.active, on);
        let result = instruction(self);
        self.active = before;
        result
    }

    #[inline]
    fn branch(&mut self, condition: Lanes<bool>) -> u64 {
        let condition = self.compute(ComputeClass::Other, 1, condition);
        self.decided(condition)
    }

    /// Bit mask of the lanes for which `condition` holds, after waiting for the condition.
    #[inline]
    fn decided(&self, condition: Lanes<bool>) -> u64 {
        if condition.deps.unknown {
            self.fault(format_args!("a branch depends on a value that a run of addresses alone does not have"));
        }
        condition.bits()
    }

    #[inline]
    fn with_active(&mut self, on: u64, body: impl FnOnce(&mut Warp<'_>)) {
        if on != 0 {
            let before = std::mem::replace(&mut self.active, on);
            body(self);
            self.active = before;
        }
    }

    /// Records a memory fence.
    pub fn fence(&mut self, order: Order) {
        self.record.spin = SpinDetector::default();
        self.record.ops.push(Op::Fence { order: order.into() });
    }

    /// Records a scratchpad access with `passes` passes, for contents that the kernel keeps itself.
    pub fn shared(&mut self, passes: u16) {
        if passes > 0 {
            self.record.ops.push(Op::Shared { passes });
        }
    }

    /// Ends the recording with an error that names the CTA.
    pub(super) fn fault(&self, message: fmt::Arguments<'_>) -> ! {
        Fault::raise(self.cta, format!("warp {}: {message}", self.index))
    }
}
