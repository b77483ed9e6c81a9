//! Which registers of a warp wait for memory, and which for arithmetic: turns register numbers into waits.

use crate::chains::Depth;
use std::ops::Range;
use tombolo_types::stream::Op;

/// Results a warp can have outstanding. Source: the definition of [`Op::Use`].
const OUTSTANDING: u32 = 64;
/// Registers of the widest result: 256 bits.
const WIDEST: u16 = 8;
/// The register that reads as zero and swallows writes. Source: CUDA Binary Utilities, "RZ".
pub(super) const ZERO_REGISTER: u8 = 255;

/// The pending results of one warp.
pub(super) struct Scoreboard {
    /// Number, from 1, of the load that each register waits for; 0 for none.
    pending: [u32; 256],
    /// The arithmetic that computed each register.
    depths: [Depth; 256],
    /// Loads and returning atomics issued: the number of the latest.
    issued: u32,
    /// Copies to the scratchpad that nothing has waited for: number and group, oldest first.
    copies: Vec<(u32, u32)>,
    /// Groups of copies closed so far.
    groups: u32,
}

impl Scoreboard {
    /// One with nothing pending.
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

    /// The arithmetic that `count` registers from `first` wait for: the deepest.
    #[inline]
    pub(super) fn depth(&self, first: u8, count: u8) -> Depth {
        self.depths[registers(first, count)].iter().copied().max().unwrap_or(Depth::NONE)
    }

    /// `count` registers from `first` are written by arithmetic, or by what is none.
    #[inline]
    pub(super) fn compute(&mut self, first: u8, count: u8, depth: Depth) {
        self.depths[registers(first, count)].fill(depth);
    }

    /// The instruction to come reads or overwrites `count` registers from `first`: waits for what they wait for.
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

    /// Waits for `load`, whose result `register` is part of.
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

    /// A load or returning atomic issues, into `count` registers from the given one, if any.
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

    /// A copy to the scratchpad issues, into the open group.
    pub(super) fn issue_copy(&mut self) {
        self.issued += 1;
        let oldest = self.issued.saturating_sub(OUTSTANDING - 1);
        self.copies.retain(|(copy, _)| *copy >= oldest);
        self.copies.push((self.issued, self.groups));
    }

    /// Closes the open group of copies.
    pub(super) fn commit_copies(&mut self) {
        self.groups += 1;
    }

    /// Whether a copy is outstanding that nothing has waited for.
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

/// `count` registers from `first`, without the zero register.
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
