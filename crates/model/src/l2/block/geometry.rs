//! Mapping between lines and blocks.
//!
//! A slice may own fewer consecutive lines than a block has (`stack.interleave_bytes` below `stack.block_bytes`). The
//! block is then split into parts, one per slice, and each part has a separate entry in the stack's directory and in
//! the host's directory. Parts are the unit for transfers and for coherence state: a `Block` in this module names a
//! part.

use super::Block;
use tombolo_machine::coherent_host::StackConfig;
use tombolo_types::{Line, LineSize};

/// Address arithmetic between a line number and a block, or between a line number and a part if blocks are split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Geometry {
    /// Binary logarithm of a machine block's size in lines.
    whole: u32,
    /// Binary logarithm of the consecutive lines per slice, at most a block's size.
    run: u32,
    /// Binary logarithm of the part count per block.
    parts: u32,
}

impl Geometry {
    /// Geometry for a machine with lines of size `line` and at most `slices` slices per module.
    pub(super) fn new(stack: &StackConfig, line: LineSize, slices: u16) -> Geometry {
        let lines = |bytes: u64| (bytes / line.bytes()).trailing_zeros();
        let whole = lines(stack.block_bytes);
        let run = lines(stack.interleave()).min(whole);
        Geometry { whole, run, parts: (whole - run).min(slices.trailing_zeros()) }
    }

    pub(super) fn block(self, line: Line) -> Block {
        Block((line.0 >> self.whole) << self.parts | line.0 >> self.run & self.most_part())
    }

    /// Returns a line's index within its block.
    pub(super) fn place(self, line: Line) -> u16 {
        let within = line.0 & ((1 << self.whole) - 1);
        (within >> (self.run + self.parts) << self.run | within & ((1 << self.run) - 1)) as u16
    }

    /// Number of lines in a block.
    pub(super) fn lines(self) -> u16 {
        1 << (self.whole - self.parts)
    }

    /// Returns the line at index `place` in a block.
    pub(super) fn line(self, block: Block, place: u16) -> Line {
        let (place, part) = (u64::from(place), block.0 & self.most_part());
        let (turn, within) = (place >> self.run, place & ((1 << self.run) - 1));
        let whole = block.0 >> self.parts << self.whole;
        Line(whole | turn << (self.run + self.parts) | part << self.run | within)
    }

    /// Number of parts per machine block: 1 if a block lies in one slice.
    pub(super) fn parts(self) -> u64 {
        1 << self.parts
    }

    fn most_part(self) -> u64 {
        (1 << self.parts) - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tombolo_types::Bytes;

    fn geometry(block_bytes: u64, interleave: u64, slices: u16) -> Geometry {
        let machine = tombolo_machine::machine("umh-4-pcie").expect("a preset").check().expect("a preset is sound");
        let stack = machine.stack.expect("it has stacks");
        let stack = StackConfig { block_bytes, interleave_bytes: Bytes(interleave), ..stack };
        Geometry::new(&stack, machine.line, slices)
    }

    #[test]
    fn a_block_of_one_slice_is_neighbouring_lines() {
        for interleave in [0, 4096, 8192] {
            let whole = geometry(4096, interleave, 4);
            assert_eq!((whole.lines(), whole.parts()), (64, 1));
            assert_eq!(
                (whole.block(Line(130)), whole.place(Line(130)), whole.line(Block(2), 2)),
                (Block(2), 2, Line(130))
            );
        }
    }

    #[test]
    fn a_block_that_is_spread_has_a_part_in_each_slice() {
        let lines = geometry(4096, 64, 4);
        assert_eq!((lines.lines(), lines.parts()), (16, 4));
        let part: Vec<u64> = (0..3).map(|place| lines.line(Block(5), place).0).collect();
        assert_eq!(part, [65, 69, 73], "every fourth line of block 1, from its second on");
        let quarters = geometry(4096, 1024, 8);
        assert_eq!((quarters.lines(), quarters.parts()), (16, 4), "a kilobyte each, in four slices of eight");
    }

    proptest! {
        #[test]
        fn every_line_has_one_place_and_a_block_one_slice(
            line in 0..1_u64 << 40,
            block in 6..15_u32,
            interleave in 6..15_u32,
            slices in 0..4_u32,
        ) {
            let slices = 1_u16 << slices;
            let geometry = geometry(1 << block, 1 << interleave, slices);
            let (block, place) = (geometry.block(Line(line)), geometry.place(Line(line)));
            prop_assert_eq!(geometry.line(block, place), Line(line));
            prop_assert!(place < geometry.lines());
            let slice = |line: Line| line.0 / ((1 << interleave) / 64) % u64::from(slices);
            let of = (0..geometry.lines()).map(|place| slice(geometry.line(block, place)));
            prop_assert!(of.into_iter().all(|one| one == slice(Line(line))));
        }
    }
}
