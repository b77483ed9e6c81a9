//! Scoreboard for a warp's registers: turns register numbers into waits for memory and arithmetic results.

use crate::chains::Depth;
use std::ops::Range;
use tombolo_types::stream::Op;

/// Limit on outstanding results per warp. Source: the definition of [`Op::Use`].
const OUTSTANDING: u32 = 64;
/// Registers for the widest result: 256 bits.
const WIDEST: u16 = 8;
/// The zero register, which discards writes. Source: CUDA Binary Utilities, "RZ".
pub(super) const ZERO_REGISTER: u8 = 255;

/// Pending results in a warp.
pub(super) struct Scoreboard {
    /// Pending load per register, numbered from 1; 0 for none.
    pending: [u32; 256],
    /// Arithmetic depth for each register's value.
    depths: [Depth; 256],
    /// Count of issued loads and returning atomics: equals the latest load's number.
    issued: u32,
    /// Copies to the scratchpad without a completed wait: number and group, oldest first.
    copies: Vec<(u32, u32)>,
    /// Count of closed copy groups.
    groups: u32,
}

impl Scoreboard {
    /// A scoreboard with nothing pending.
    pub(super) fn new() -> Scoreboard {
        Scoreboard { pending: [0; 256], depths: [Depth::NONE; 256], issued: 0, copies: Vec::new(), groups: 0 }
    }

    /// Forgets everything, for the next warp.
    pub(super) fn clear(&mut self) {
        self.pending.fill(0);
        self.depths.fill(Depth::NONE);
        self.issued = 0;
        self.copies.clear();
        self.groups = 0;
    }

    /// Arithmetic depth for `count` registers from `first`: the maximum over all registers.
    #[inline]
    pub(super) fn depth(&self, first: u8, count: u8) -> Depth {
        self.depths[registers(first, count)].iter().copied().max().unwrap_or(Depth::NONE)
    }

    /// Records a write to `count` registers from `first` by arithmetic at `depth`; [`Depth::NONE`] for a producer
    /// outside arithmetic.
    #[inline]
    pub(super) fn compute(&mut self, first: u8, count: u8, depth: Depth) {
        self.depths[registers(first, count)].fill(depth);
    }

    /// Waits for pending loads into `count` registers from `first`, because the next instruction reads or overwrites
    /// these registers.
    #[inline]
    pub(super) fn wait(&mut self, first: u8, count: u8, ops: &mut Vec<Op>) {
        if first == ZERO_REGISTER {
            return;
        }
        for register in u16::from(first)..(u16::from(first) + u16::from(count)).min(u16::from(ZERO_REGISTER)) {
            let load = self.pending[usize::from(register)];
            if load != 0 {
                self.wait_for(load, register, ops);
            }
        }
    }

    /// Waits for `load`, whose result includes `register`.
    fn wait_for(&mut self, load: u32, register: u16, ops: &mut Vec<Op>) {
        let distance = self.issued - load + 1;
        if distance <= OUTSTANDING {
            ops.push(Op::Use { distance: distance as u8 });
        }
        let near = usize::from(register.saturating_sub(WIDEST))..usize::from(register + WIDEST).min(256);
        for pending in &mut self.pending[near] {
            if *pending == load {
                *pending = 0;
            }
        }
    }

    /// Issues a load or returning atomic into the destination registers (first, count), if any.
    #[inline]
    pub(super) fn issue(&mut self, destination: Option<(u8, u8)>) {
        self.issued += 1;
        let Some((first, count)) = destination else { return };
        if first == ZERO_REGISTER {
            return;
        }
        self.pending[registers(first, count)].fill(self.issued);
        self.compute(first, count, Depth::NONE);
    }

    /// Issues a copy to the scratchpad, within the open group.
    pub(super) fn issue_copy(&mut self) {
        self.issued += 1;
        let oldest = self.issued.saturating_sub(OUTSTANDING - 1);
        self.copies.retain(|(copy, _)| *copy >= oldest);
        self.copies.push((self.issued, self.groups));
    }

    /// Closes the open copy group.
    pub(super) fn commit_copies(&mut self) {
        self.groups += 1;
    }

    /// True if a copy without a completed wait is outstanding.
    pub(super) fn has_copies(&self) -> bool {
        !self.copies.is_empty()
    }

    /// Waits until at most `left` closed groups are outstanding.
    pub(super) fn wait_copies(&mut self, left: u32, ops: &mut Vec<Op>) {
        let done = self.groups.saturating_sub(left);
        let issued = self.issued;
        self.copies.retain(|(copy, group)| {
            let distance = issued - copy + 1;
            let due = *group < done;
            if due && distance <= OUTSTANDING {
                ops.push(Op::Use { distance: distance as u8 });
            }
            !due
        });
    }
}

/// Index range of `count` registers from `first`, without the zero register.
#[inline]
fn registers(first: u8, count: u8) -> Range<usize> {
    let end = (usize::from(first) + usize::from(count)).min(usize::from(ZERO_REGISTER));
    usize::from(first).min(end)..end
}

#[cfg(test)]
mod tests {
    use super::*;

    fn distances(ops: &[Op]) -> Vec<u8> {
        ops.iter()
            .map(|op| match op {
                Op::Use { distance } => *distance,
                other => panic!("{other:?}"),
            })
            .collect()
    }

    #[test]
    fn the_first_use_waits_and_the_second_does_not() {
        let (mut board, mut ops) = (Scoreboard::new(), Vec::new());
        board.issue(Some((4, 2)));
        board.issue(Some((8, 1)));
        board.wait(5, 1, &mut ops);
        board.wait(4, 1, &mut ops);
        board.wait(8, 1, &mut ops);
        board.wait(9, 1, &mut ops);
        assert_eq!(distances(&ops), [2, 1]);
    }

    #[test]
    fn the_zero_register_never_waits() {
        let (mut board, mut ops) = (Scoreboard::new(), Vec::new());
        board.issue(Some((254, 4)));
        board.issue(Some((255, 1)));
        board.wait(255, 2, &mut ops);
        assert!(ops.is_empty());
        board.wait(254, 1, &mut ops);
        assert_eq!(distances(&ops), [2]);
    }

    #[test]
    fn what_is_older_than_64_is_complete() {
        let (mut board, mut ops) = (Scoreboard::new(), Vec::new());
        board.issue(Some((1, 1)));
        board.issue(Some((2, 1)));
        for _ in 0..63 {
            board.issue(None);
        }
        board.wait(1, 1, &mut ops);
        assert!(ops.is_empty());
        board.wait(2, 1, &mut ops);
        assert_eq!(distances(&ops), [64]);
    }

    #[test]
    fn copies_are_waited_for_by_group() {
        let (mut board, mut ops) = (Scoreboard::new(), Vec::new());
        board.issue_copy();
        board.issue_copy();
        board.commit_copies();
        board.issue_copy();
        board.commit_copies();
        board.issue_copy();
        board.wait_copies(1, &mut ops);
        assert_eq!(distances(&ops), [4, 3]);
        ops.clear();
        board.wait_copies(0, &mut ops);
        assert_eq!(distances(&ops), [2], "the open group is not waited for");
    }
}
