//! How a program cuts its items (rows, planes, nodes) over GPUs, and grids over that: what `cudaSetDevice` and a range a
//! device are in its source.

use crate::simt::Grid;
use std::ops::Range;

/// Items in blocks of neighbours, a block for each GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cut {
    /// The first item of each GPU, then the number of items.
    first: Vec<u64>,
}

impl Cut {
    /// Items from 0 to `items - 1` in blocks of which no two differ by more than one.
    pub(super) fn even(items: u64, gpus: u8) -> Cut {
        Cut::groups(items, 1, gpus)
    }

    /// Items in whole groups of `size` neighbours, the last perhaps smaller: no two blocks differ by more than a group.
    pub(super) fn groups(items: u64, size: u64, gpus: u8) -> Cut {
        let (groups, gpus) = (items.div_ceil(size), u64::from(gpus));
        Cut { first: (0..=gpus).map(|gpu| (groups * gpu / gpus * size).min(items)).collect() }
    }

    /// GPUs.
    pub(super) fn gpus(&self) -> usize {
        self.first.len() - 1
    }

    /// The items of a GPU.
    pub(super) fn block(&self, gpu: usize) -> Range<u64> {
        self.first[gpu]..self.first[gpu + 1]
    }

    /// The blocks of all GPUs in tiles of up to `each` items, every tile by `across` CTAs.
    pub(super) fn tiles(&self, each: u64, across: u64) -> Tiles {
        let tiles = |gpu: usize| (self.first[gpu + 1] - self.first[gpu]).div_ceil(each) * across;
        let parts = (0..self.gpus()).scan(0, |next, gpu| {
            let first = *next;
            *next += tiles(gpu);
            Some(first)
        });
        let parts: Vec<u64> = parts.collect();
        let ctas = parts[self.gpus() - 1] + tiles(self.gpus() - 1);
        Tiles { cut: self.clone(), each, across, parts, ctas }
    }
}

/// A grid over a [`Cut`]: each GPU's block in tiles.
#[derive(Clone, Debug)]
pub(super) struct Tiles {
    cut: Cut,
    each: u64,
    across: u64,
    /// The first CTA of each GPU.
    parts: Vec<u64>,
    ctas: u64,
}

/// What one CTA of such a grid does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tile {
    /// Whose.
    pub(super) gpu: usize,
    /// Its items.
    pub(super) items: Range<u64>,
    /// Which it is of the CTAs of the tile.
    pub(super) across: u64,
}

impl Tiles {
    /// The grid, of CTAs of `threads` threads.
    pub(super) fn grid(&self, name: &str, threads: u32) -> Grid {
        // A grid of more CTAs than an index counts is refused by its launch, whatever its parts.
        let parts = self.parts.iter().map(|first| u32::try_from(*first).unwrap_or(u32::MAX)).collect();
        Grid::new(name, self.ctas, threads).parts(parts)
    }

    /// What CTA `cta` does.
    pub(super) fn tile(&self, cta: u32) -> Tile {
        let cta = u64::from(cta);
        let gpu = self.parts.partition_point(|first| *first <= cta) - 1;
        let (block, local) = (self.cut.block(gpu), cta - self.parts[gpu]);
        let first = block.start + local / self.across * self.each;
        Tile { gpu, items: first..(first + self.each).min(block.end), across: local % self.across }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn blocks_are_as_even_as_groups_allow() {
        let blocks = |cut: Cut| (0..cut.gpus()).map(|gpu| cut.block(gpu)).collect::<Vec<_>>();
        assert_eq!(blocks(Cut::even(10, 4)), [0..2, 2..5, 5..7, 7..10]);
        assert_eq!(blocks(Cut::groups(10, 4, 2)), [0..4, 4..10]);
        assert_eq!(blocks(Cut::even(2, 4)), [0..0, 0..1, 1..1, 1..2]);
        assert_eq!(Cut::even(7, 1).block(0), 0..7);
    }

    proptest! {
        #[test]
        fn tiles_hold_every_item_of_a_gpu_once(
            (items, gpus) in (1..500_u64, 1..17_u8),
            (each, across) in (1..40_u64, 1..4_u64),
        ) {
            let cut = Cut::even(items, gpus);
            let tiles = cut.tiles(each, across);
            let all: Vec<Tile> = (0..tiles.ctas as u32).map(|cta| tiles.tile(cta)).collect();
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
