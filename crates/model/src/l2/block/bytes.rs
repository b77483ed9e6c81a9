//! Byte sets and byte contents for a block, kept as lists ordered by line.
//!
//! A transaction touches few lines in a block at a time, so both types store only the affected lines, in ascending
//! order. Simulations without line contents (`D` is zero-sized) store no contents at all.

use std::fmt::Debug;
use tombolo_protocol::Data;
use tombolo_protocol::block::{BlockData, ByteSet};
use tombolo_types::Mask;

/// Byte set in a block: `(line, mask)` pairs ordered by line number within the block. Every stored mask is non-empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct BlockBytes(Vec<(u16, Mask)>);

impl BlockBytes {
    /// Creates a set with the bytes `mask` in a single line. An empty mask gives an empty set.
    pub(crate) fn of(line: u16, mask: Mask) -> BlockBytes {
        if mask.is_empty() { BlockBytes::default() } else { BlockBytes(vec![(line, mask)]) }
    }

    /// Creates a set with every byte in the first `lines` lines.
    pub(crate) fn whole(lines: u16) -> BlockBytes {
        BlockBytes((0..lines).map(|line| (line, Mask::ALL)).collect())
    }

    /// Returns the byte mask for a single line.
    #[inline]
    pub(crate) fn of_line(&self, line: u16) -> Mask {
        self.place(line).map_or(Mask::NONE, |at| self.0[at].1)
    }

    /// Iterates over the set line by line.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = (u16, Mask)> + '_ {
        self.0.iter().copied()
    }

    /// Number of lines with any byte in the set.
    pub(crate) fn lines(&self) -> usize {
        self.0.len()
    }

    /// Number of grains (the smallest unit a mask tracks), summed over all lines.
    pub(crate) fn grains(&self) -> u32 {
        self.0.iter().map(|(_, mask)| mask.grains()).sum()
    }

    /// Finds a line's entry in the list: its index, or on failure the index for an insertion.
    #[inline]
    fn place(&self, line: u16) -> Result<usize, usize> {
        // Most blocks are complete, and then a line's index equals its number.
        let guess = usize::from(line);
        if self.0.get(guess).is_some_and(|(found, _)| *found == line) {
            return Ok(guess);
        }
        self.0.binary_search_by_key(&line, |(found, _)| *found)
    }
}

impl ByteSet for BlockBytes {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn add(&mut self, other: &BlockBytes) {
        for (line, mask) in other.iter() {
            match self.place(line) {
                Ok(at) => self.0[at].1 |= mask,
                Err(at) => self.0.insert(at, (line, mask)),
            }
        }
    }

    fn remove(&mut self, other: &BlockBytes) {
        if other.0.len() > self.0.len() {
            self.0.retain_mut(|(line, mask)| {
                *mask = *mask & !other.of_line(*line);
                !mask.is_empty()
            });
            return;
        }
        for (line, mask) in other.iter() {
            let Ok(at) = self.place(line) else { continue };
            self.0[at].1 = self.0[at].1 & !mask;
            if self.0[at].1.is_empty() {
                self.0.remove(at);
            }
        }
    }

    fn within(&self, other: &BlockBytes) -> BlockBytes {
        BlockBytes(kept(&self.0, |line, mask| mask & other.of_line(line)))
    }

    fn without(&self, other: &BlockBytes) -> BlockBytes {
        BlockBytes(kept(&self.0, |line, mask| mask & !other.of_line(line)))
    }
}

/// Applies `left` to each line's mask and drops lines without remaining bytes.
fn kept(lines: &[(u16, Mask)], left: impl Fn(u16, Mask) -> Mask) -> Vec<(u16, Mask)> {
    let each = lines.iter().map(|&(line, mask)| (line, left(line, mask)));
    each.filter(|(_, mask)| !mask.is_empty()).collect()
}

/// Contents of a block's lines, in ascending line order. Absent lines hold default contents. Always empty if `D` is
/// zero-sized.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct BlockContents<D>(Vec<(u16, D)>);

impl<D: Data> BlockContents<D> {
    /// Contents for a single line.
    pub(crate) fn of(line: u16, data: D) -> BlockContents<D> {
        let mut held = BlockContents::default();
        held.put(line, |place| *place = data);
        held
    }

    /// Returns the contents held for a line.
    pub(crate) fn line(&self, line: u16) -> D {
        let place = self.0.binary_search_by_key(&line, |(found, _)| *found);
        place.map_or_else(|_| D::default(), |at| self.0[at].1)
    }

    /// Applies a change to a line's contents, inserting the line first if it is absent.
    pub(crate) fn put(&mut self, line: u16, change: impl FnOnce(&mut D)) {
        if size_of::<D>() == 0 {
            return;
        }
        let at = match self.0.binary_search_by_key(&line, |(found, _)| *found) {
            Ok(at) => at,
            Err(at) => {
                self.0.insert(at, (line, D::default()));
                at
            }
        };
        change(&mut self.0[at].1);
    }
}

impl<D: Data> BlockData for BlockContents<D> {
    type Set = BlockBytes;
    type Update = D::Update;

    fn merge(&mut self, from: &BlockContents<D>, set: &BlockBytes) {
        if size_of::<D>() == 0 {
            return;
        }
        for (line, mask) in set.iter() {
            self.put(line, |data| data.merge(from.line(line), mask));
        }
    }

    fn update(&mut self, update: D::Update, set: &BlockBytes) -> BlockContents<D> {
        let mut before = BlockContents::default();
        if size_of::<D>() == 0 {
            return before;
        }
        for (line, mask) in set.iter() {
            let mut old = D::default();
            self.put(line, |data| old = data.update(update, mask));
            before.put(line, |data| *data = old);
        }
        before
    }

    fn only(&self, set: &BlockBytes) -> BlockContents<D> {
        BlockContents(self.0.iter().filter(|(line, _)| !set.of_line(*line).is_empty()).copied().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Masks of a four-line block, indexed by line.
    fn bits(bytes: &BlockBytes) -> Vec<u32> {
        (0..4).map(|line| bytes.of_line(line).0).collect()
    }

    fn bytes() -> impl Strategy<Value = BlockBytes> {
        let line = prop_oneof![Just(0_u32), Just(u32::MAX), any::<u32>()];
        prop::collection::vec(line, 4).prop_map(|masks| {
            let mut bytes = BlockBytes::default();
            (0..).zip(masks).for_each(|(line, mask)| bytes.add(&BlockBytes::of(line, Mask(mask))));
            bytes
        })
    }

    proptest! {
        #[test]
        fn sets_of_bytes_are_sets(left in bytes(), right in bytes()) {
            let with = |each: fn(u32, u32) -> u32| {
                bits(&left).into_iter().zip(bits(&right)).map(|(one, other)| each(one, other)).collect::<Vec<_>>()
            };
            let (mut both, mut rest) = (left.clone(), left.clone());
            both.add(&right);
            rest.remove(&right);
            prop_assert_eq!(bits(&both), with(|one, other| one | other));
            prop_assert_eq!(bits(&rest), with(|one, other| one & !other));
            prop_assert_eq!(bits(&left.within(&right)), with(|one, other| one & other));
            prop_assert_eq!(&left.without(&right), &rest, "equal sets are written alike");
            prop_assert_eq!(rest.is_empty(), bits(&rest).iter().all(|mask| *mask == 0));
            prop_assert_eq!(both.lines(), bits(&both).iter().filter(|mask| **mask != 0).count());
        }
    }

    #[test]
    fn what_has_no_contents_takes_no_room() {
        let mut held = BlockContents::<()>::of(3, ());
        held.merge(&BlockContents::default(), &BlockBytes::whole(64));
        assert!(held.0.is_empty() && held.only(&BlockBytes::whole(64)).0.is_empty());
    }
}
