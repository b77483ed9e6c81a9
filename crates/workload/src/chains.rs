//! Chains of dependent arithmetic in a warp, tracked during recording.
//!
//! A stretch is arithmetic without any other instruction in between. A stretch's path is the longest chain of dependent
//! instructions within the stretch. Each recorded run states by how much it lengthens the path, and parallel chains do
//! not add up.

use tombolo_types::stream::{ChainLinks, ComputeClass, Op};

/// Position of a value in the warp's arithmetic: the stretch that computed the value, and the length of the value's
/// chain within the stretch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Depth {
    stretch: u32,
    steps: u32,
}

impl Depth {
    /// Depth of a value that no arithmetic computed.
    pub(crate) const NONE: Depth = Depth { stretch: 0, steps: 0 };
}

/// A run of arithmetic instructions in a single class, about to be recorded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arithmetic {
    /// Pipeline that executes the run.
    pub(crate) class: ComputeClass,
    /// Number of instructions, at least 1.
    pub(crate) count: u16,
    /// Length of the longest dependent chain in the run, 1 to `count`.
    pub(crate) chain: u16,
}

/// Arithmetic state for a warp during recording.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Chains {
    /// The latest stretch, counted from 1.
    stretch: u32,
    /// Path length in the latest stretch.
    steps: u32,
    /// Latest stretch whose results the warp has already waited for.
    settled: u32,
    /// Set when the latest result is held by no value; the next instruction outside arithmetic then depends on this
    /// result.
    loose: bool,
}

impl Chains {
    /// Appends `run` to `ops`, the warp's instructions so far. A run is merged into the run before if both have the
    /// same class. `operand` is the run's deepest operand. Returns the result's depth.
    #[inline]
    pub(crate) fn push(&mut self, run: Arithmetic, operand: Depth, ops: &mut Vec<Op>, first: usize) -> Depth {
        let Arithmetic { class, count, chain } = run;
        let before = ops[first..].last_mut();
        let goes_on = matches!(before, Some(Op::Compute { .. }));
        if !goes_on {
            self.stretch += 1;
            self.steps = 0;
        }
        let older = operand.stretch != self.stretch && operand.stretch > self.settled;
        let from = match operand.stretch == self.stretch {
            true => operand.steps,
            false if older => self.steps,
            false => 0,
        };
        let steps = from + u32::from(chain);
        let longer = steps.saturating_sub(self.steps).min(u32::from(chain)) as u16;
        self.steps = self.steps.max(steps);
        let result = Depth { stretch: self.stretch, steps };
        if let Some(Op::Compute { class: last, count: so_far, chain, links }) = before
            && *last == class
            && let Some(sum) = so_far.checked_add(count)
        {
            (*so_far, *chain) = (sum, *chain + longer);
            links.joins |= older;
            return result;
        }
        let links = ChainLinks { joins: longer > 0 && (goes_on || older), awaited: false };
        ops.push(Op::Compute { class, count, chain: longer, links });
        result
    }

    /// Marks the latest result as held by no value: the next instruction that is not arithmetic needs this result.
    pub(crate) fn note_unheld_result(&mut self) {
        self.loose = true;
    }

    /// Makes the warp wait for `operand`, because the next instruction appended to `ops` is not arithmetic and reads a
    /// value.
    #[inline]
    pub(crate) fn wait(&mut self, operand: Depth, ops: &mut Vec<Op>, first: usize) {
        if operand.stretch <= self.settled && !self.loose {
            return;
        }
        (self.settled, self.loose) = (self.stretch, false);
        match ops[first..].last_mut() {
            Some(Op::Compute { links, .. }) => links.awaited = true,
            _ => ops.push(Op::Use { distance: 0 }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ComputeClass::{Fp32, Int};

    fn run(class: ComputeClass, count: u16) -> Arithmetic {
        Arithmetic { class, count, chain: count }
    }

    fn op(class: ComputeClass, count: u16, chain: u16, joins: bool, awaited: bool) -> Op {
        Op::Compute { class, count, chain, links: ChainLinks { joins, awaited } }
    }

    #[test]
    fn what_reads_the_result_before_lengthens_the_chain() {
        let (mut chains, mut ops) = (Chains::default(), Vec::new());
        let first = chains.push(run(Fp32, 3), Depth::NONE, &mut ops, 0);
        chains.push(run(Fp32, 2), first, &mut ops, 0);
        assert_eq!(ops, [op(Fp32, 5, 5, false, false)]);
    }

    #[test]
    fn neighbours_on_different_values_stand_side_by_side() {
        let (mut chains, mut ops) = (Chains::default(), Vec::new());
        let (mut a, mut b) = (Depth::NONE, Depth::NONE);
        for _ in 0..10 {
            a = chains.push(run(Fp32, 1), a, &mut ops, 0);
            b = chains.push(run(Fp32, 1), b, &mut ops, 0);
        }
        assert_eq!(ops, [op(Fp32, 20, 10, false, false)]);
        assert_eq!(a, b);
    }

    #[test]
    fn chains_of_two_classes_side_by_side_lengthen_the_path_by_turns() {
        let (mut chains, mut ops) = (Chains::default(), Vec::new());
        let a = chains.push(run(Fp32, 1), Depth::NONE, &mut ops, 0);
        let b = chains.push(run(Int, 1), Depth::NONE, &mut ops, 0);
        chains.push(run(Fp32, 1), a.max(b), &mut ops, 0);
        assert_eq!(ops, [op(Fp32, 1, 1, false, false), op(Int, 1, 0, false, false), op(Fp32, 1, 1, true, false)]);
    }

    #[test]
    fn a_chain_goes_on_behind_an_instruction_that_does_not_need_it() {
        let (mut chains, mut ops) = (Chains::default(), Vec::new());
        let a = chains.push(run(Fp32, 4), Depth::NONE, &mut ops, 0);
        ops.push(Op::Barrier);
        chains.push(run(Fp32, 4), a, &mut ops, 0);
        ops.push(Op::Barrier);
        chains.push(run(Fp32, 4), Depth::NONE, &mut ops, 0);
        let computes = |joins| op(Fp32, 4, 4, joins, false);
        assert_eq!(ops, [computes(false), Op::Barrier, computes(true), Op::Barrier, computes(false)]);
    }

    #[test]
    fn what_needs_the_path_says_so_once() {
        let (mut chains, mut ops) = (Chains::default(), Vec::new());
        let a = chains.push(run(Int, 1), Depth::NONE, &mut ops, 0);
        chains.wait(a, &mut ops, 0);
        ops.push(Op::Barrier);
        chains.wait(a, &mut ops, 0);
        let b = chains.push(run(Int, 1), a, &mut ops, 0);
        ops.push(Op::Barrier);
        chains.wait(b, &mut ops, 0);
        let last = [op(Int, 1, 1, false, false), Op::Barrier, Op::Use { distance: 0 }];
        assert_eq!(ops[..2], [op(Int, 1, 1, false, true), Op::Barrier]);
        assert_eq!(ops[2..], last, "it reads a result that has been waited for");
    }

    #[test]
    fn what_no_value_holds_is_needed_by_the_next_instruction_of_another_kind() {
        let (mut chains, mut ops) = (Chains::default(), Vec::new());
        chains.push(run(Int, 2), Depth::NONE, &mut ops, 0);
        chains.note_unheld_result();
        chains.wait(Depth::NONE, &mut ops, 0);
        assert_eq!(ops, [op(Int, 2, 2, false, true)]);
    }

    #[test]
    fn runs_of_more_than_a_count_holds_are_cut() {
        let (mut chains, mut ops) = (Chains::default(), Vec::new());
        let a = chains.push(run(Fp32, u16::MAX), Depth::NONE, &mut ops, 0);
        chains.push(run(Fp32, 2), a, &mut ops, 0);
        assert_eq!(ops, [op(Fp32, u16::MAX, u16::MAX, false, false), op(Fp32, 2, 2, true, false)]);
    }
}
