//! Partition of a program's items (rows, planes, nodes) over GPUs, and grids over the partition: the counterpart to
//! `cudaSetDevice` and a range per device in the program's source.

use crate::prelude::*;
use std::ops::Range;

/// Items in contiguous blocks, one block per GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Partition {
    /// First item per GPU, then the number of items.
    first: Vec<u64>,
}

impl Partition {
    /// Splits the items 0 to `items - 1` into blocks whose sizes differ by at most one.
    pub(crate) fn even(items: u64, gpus: u8) -> Partition {
        Partition::groups(items, 1, gpus)
    }

    /// Splits the items into whole groups with `size` neighbours each (the last may be smaller): block sizes differ by
    /// at most one group.
    pub(crate) fn groups(items: u64, size: u64, gpus: u8) -> Partition {
        let (groups, gpus) = (items.div_ceil(size), u64::from(gpus));
        Partition { first: (0..=gpus).map(|gpu| (groups * gpu / gpus * size).min(items)).collect() }
    }

    /// Splits the items into whole groups with `size` neighbours each, so that blocks have about equal weight. `before`
    /// is a prefix sum over the item weights, with the total at the end.
    pub(crate) fn by_weight(before: &[u32], size: u64, gpus: u8) -> Partition {
        let items = before.len() as u64 - 1;
        let total = u64::from(before[items as usize]);
        let groups: Vec<u64> = (0..=items.div_ceil(size)).map(|group| (group * size).min(items)).collect();
        let start = |gpu: u64| {
            let share = total * gpu / u64::from(gpus);
            groups[groups.partition_point(|item| u64::from(before[*item as usize]) < share)]
        };
        let mut first: Vec<u64> = (0..u64::from(gpus)).map(start).collect();
        first.push(items);
        Partition { first }
    }

    /// Partition of the items' contents; `before` is a prefix sum over the content counts.
    pub(crate) fn contents(&self, before: &[u32]) -> Partition {
        Partition { first: self.first.iter().map(|item| u64::from(before[*item as usize])).collect() }
    }

    /// Number of GPUs.
    pub(crate) fn gpus(&self) -> usize {
        self.first.len() - 1
    }

    /// Item range for a GPU.
    pub(crate) fn block(&self, gpu: usize) -> Range<u64> {
        self.first[gpu]..self.first[gpu + 1]
    }

    /// Grid over all GPUs' blocks, in tiles with up to `each` items; `across` CTAs process each tile.
    pub(crate) fn tiles(&self, each: u64, across: u64) -> PartitionGrid {
        self.tiles_from(self.first[..self.gpus()].to_vec(), each, across)
    }

    /// Like [`Partition::tiles`], but tiles begin at multiples of `each`, except for a block's first tile. A warp's
    /// threads then share lines as on one GPU.
    pub(crate) fn aligned(&self, each: u64) -> PartitionGrid {
        self.tiles_from(self.first[..self.gpus()].iter().map(|first| first / each * each).collect(), each, 1)
    }

    /// Builds tiles for each block, starting at an item that may lie before the block.
    fn tiles_from(&self, from: Vec<u64>, each: u64, across: u64) -> PartitionGrid {
        let tiles = |gpu: usize| match self.block(gpu) {
            block if block.is_empty() => 0,
            block => (block.end - from[gpu]).div_ceil(each) * across,
        };
        let parts = (0..self.gpus()).scan(0, |next, gpu| {
            let first = *next;
            *next += tiles(gpu);
            Some(first)
        });
        let parts: Vec<u64> = parts.collect();
        let ctas = parts[self.gpus() - 1] + tiles(self.gpus() - 1);
        PartitionGrid { cut: self.clone(), from, each, across, parts, ctas }
    }
}

/// A grid over a [`Partition`]: each GPU's block in tiles.
#[derive(Clone, Debug)]
pub(crate) struct PartitionGrid {
    cut: Partition,
    /// Item at which each GPU's tiles start.
    from: Vec<u64>,
    each: u64,
    across: u64,
    /// First CTA per GPU.
    parts: Vec<u64>,
    ctas: u64,
}

/// Work for one CTA in the grid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CtaTile {
    /// GPU that owns the items.
    pub(crate) gpu: usize,
    /// Item range.
    pub(crate) items: Range<u64>,
    /// Index among the CTAs that share the tile.
    pub(crate) across: u64,
}

impl PartitionGrid {
    /// Launch grid, with `threads` threads per CTA.
    pub(crate) fn grid(&self, name: &str, threads: u32) -> Grid {
        // The launch rejects a grid with more CTAs than an index can count, regardless of its parts.
        let parts = self.parts.iter().map(|first| u32::try_from(*first).unwrap_or(u32::MAX)).collect();
        Grid::new(name, self.ctas, threads).parts(parts)
    }

    /// Work for CTA `cta`.
    pub(crate) fn tile(&self, cta: u32) -> CtaTile {
        let cta = u64::from(cta);
        let gpu = self.parts.partition_point(|first| *first <= cta) - 1;
        let (block, local) = (self.cut.block(gpu), cta - self.parts[gpu]);
        let first = self.from[gpu] + local / self.across * self.each;
        let items = first.max(block.start)..(first + self.each).min(block.end);
        CtaTile { gpu, items, across: local % self.across }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn blocks_are_as_even_as_groups_allow() {
        let blocks = |cut: Partition| (0..cut.gpus()).map(|gpu| cut.block(gpu)).collect::<Vec<_>>();
        assert_eq!(blocks(Partition::even(10, 4)), [0..2, 2..5, 5..7, 7..10]);
        assert_eq!(blocks(Partition::groups(10, 4, 2)), [0..4, 4..10]);
        assert_eq!(blocks(Partition::even(2, 4)), [0..0, 0..1, 1..1, 1..2]);
        assert_eq!(Partition::even(7, 1).block(0), 0..7);
    }

    #[test]
    fn blocks_that_are_weighed_are_whole_groups_and_hold_their_parts() {
        // Weights 1, 9, 1, 1, 0, 2, 4, 0.
        let before = [0, 1, 10, 11, 12, 12, 14, 18, 18];
        let blocks = |cut: Partition| (0..cut.gpus()).map(|gpu| cut.block(gpu)).collect::<Vec<_>>();
        let cut = Partition::by_weight(&before, 2, 3);
        assert_eq!(blocks(cut.clone()), [0..2, 2..4, 4..8]);
        assert_eq!(blocks(cut.contents(&before)), [0..10, 10..12, 12..18]);
        assert_eq!(blocks(Partition::by_weight(&[0, 0, 0], 1, 2)), [0..0, 0..2]);
    }

    #[test]
    fn aligned_tiles_begin_at_multiples() {
        let tiles = Partition::even(22, 2).aligned(4);
        let all: Vec<_> = (0..tiles.ctas as u32).map(|cta| (tiles.tile(cta).gpu, tiles.tile(cta).items)).collect();
        assert_eq!(all, [(0, 0..4), (0, 4..8), (0, 8..11), (1, 11..12), (1, 12..16), (1, 16..20), (1, 20..22)]);
    }

    proptest! {
        #[test]
        fn tiles_hold_every_item_of_a_gpu_once(
            (items, gpus) in (1..500_u64, 1..17_u8),
            (each, across) in (1..40_u64, 1..4_u64),
        ) {
            let cut = Partition::even(items, gpus);
            let tiles = cut.tiles(each, across);
            let all: Vec<CtaTile> = (0..tiles.ctas as u32).map(|cta| tiles.tile(cta)).collect();
            for gpu in 0..cut.gpus() {
                for place in 0..across {
                    let own = all.iter().filter(|tile| tile.gpu == gpu && tile.across == place);
                    let held: Vec<u64> = own.flat_map(|tile| tile.items.clone()).collect();
                    prop_assert_eq!(held, cut.block(gpu).collect::<Vec<_>>());
                }
            }
            prop_assert!(all.is_sorted_by_key(|tile| tile.gpu));
        }
    }
}
