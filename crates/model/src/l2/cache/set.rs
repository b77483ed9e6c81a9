//! Packed tags of a set: a hash byte per way, and a byte with age, class and pin bit per way. Eight ways share a pair
//! of words, and every operation here works on all ways in parallel.

use super::{BulkClass, MAX_WAYS, Ways};
use crate::bytes::{HIGH, LOW, equal_bytes, zero_bytes};
use crate::l2::set_index::scatter;
use tombolo_types::Line;

/// Eight ways in a set, with a byte each.
#[derive(Clone, Copy)]
pub(super) struct Group {
    /// Line hash per way, never 0; 0 marks an empty way.
    prints: u64,
    /// Metadata byte per way: pin bit (1 bit), class (2), age (5).
    meta: u64,
}

/// Four groups in a single host cache line. Depending on the associativity, a host line holds four, two or one sets;
/// no set straddles two host lines.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(super) struct Groups([Group; 4]);

/// Pin bits within [`Group::meta`], one per way.
const PINNED: u64 = HIGH;
/// Age fields within [`Group::meta`]: 0 for the most recently used way.
const AGE: u64 = LOW * 31;
/// Bit position of the class field within each [`Group::meta`] byte.
const CLASS_SHIFT: u32 = 5;

/// Bit set of all bytes equal to `byte`: bit `i` for byte `i`, starting with the first word's lowest byte.
#[inline]
fn equal<const N: usize>(words: [u64; N], byte: u8) -> u32 {
    let mut found = 0;
    for (at, pair) in words.chunks(2).enumerate() {
        let bits = match *pair {
            [low, high] => equal_bytes(low, high, byte),
            [low] => equal_bytes(low, low, byte) & 0xff,
            _ => 0,
        };
        found |= bits << (16 * at);
    }
    found
}

#[inline]
fn fingerprint(line: Line) -> u64 {
    (scatter(line.0) >> 56).max(1)
}

impl Groups {
    pub(super) const EMPTY: Groups = Groups([Group { prints: 0, meta: 0 }; 4]);

    /// Returns the set with `N` groups (1, 2 or 4), starting at group `first`, a multiple of `N`.
    #[inline]
    pub(super) fn set<const N: usize>(&self, first: usize) -> &[Group; N] {
        &self.0.as_chunks::<N>().0[first % 4 / N]
    }

    #[inline]
    pub(super) fn set_mut<const N: usize>(&mut self, first: usize) -> &mut [Group; N] {
        &mut self.0.as_chunks_mut::<N>().0[first % 4 / N]
    }

    /// Returns the group that contains a way, and the bit shift to the way's byte. The set starts at group `first`.
    #[inline]
    pub(super) fn way(&self, first: usize, way: u32) -> (&Group, u32) {
        (&self.0[(first + way as usize / 8) % 4], way % 8 * 8)
    }

    #[inline]
    pub(super) fn way_mut(&mut self, first: usize, way: u32) -> (&mut Group, u32) {
        (&mut self.0[(first + way as usize / 8) % 4], way % 8 * 8)
    }
}

impl Group {
    #[inline]
    pub(super) fn is_empty(&self, shift: u32) -> bool {
        self.prints >> shift & 0xff == 0
    }

    #[inline]
    pub(super) fn class(&self, shift: u32) -> BulkClass {
        BulkClass((self.meta >> (shift + CLASS_SHIFT) & 3) as u8)
    }

    #[inline]
    pub(super) fn age(&self, shift: u32) -> u64 {
        self.meta >> shift & 31
    }

    pub(super) fn set_age(&mut self, shift: u32, age: u32) {
        self.meta = (self.meta & !(31 << shift)) | u64::from(age) << shift;
    }

    pub(super) fn set_pinned(&mut self, shift: u32, pinned: bool) {
        self.meta = (self.meta & !(0x80 << shift)) | u64::from(pinned) << (shift + 7);
    }

    /// Empties a way and keeps its age.
    #[inline]
    pub(super) fn clear(&mut self, shift: u32) {
        self.prints &= !(0xff << shift);
        self.meta &= !(0x80 << shift);
    }

    /// Changes the class for a way's line.
    #[inline]
    pub(super) fn set_class(&mut self, shift: u32, class: BulkClass) {
        self.meta = (self.meta & !(0x60 << shift)) | u64::from(class.0) << (shift + CLASS_SHIFT);
    }
}

/// Bit set of the ways whose hash equals the hash for `line`.
#[inline]
pub(super) fn alike<const N: usize>(set: &[Group; N], line: Line) -> u32 {
    equal(set.map(|group| group.prints), fingerprint(line) as u8)
}

/// Increments the age of all ways newer than `age`, to let a way with this age become the newest. The caller updates
/// the way's own age.
#[inline]
pub(super) fn grow_older<const N: usize>(set: &mut [Group; N], age: u64) {
    for group in set {
        let newer = !(((group.meta & AGE) | HIGH) - age * LOW) & HIGH;
        group.meta += newer >> 7;
    }
}

/// Empties all ways in the classes given as the bit set `classes`.
pub(super) fn clear_classes<const N: usize>(set: &mut [Group; N], classes: u32) {
    for group in set {
        for class in (0..BulkClass::COUNT as u64).filter(|class| classes >> class & 1 != 0) {
            let of_class = zero_bytes((group.meta >> CLASS_SHIFT & (LOW * 3)) ^ (class * LOW));
            group.prints &= !((of_class >> 7) * 0xff);
            group.meta &= !(zero_bytes(group.prints) & PINNED);
        }
    }
}

/// Selects the way for an insertion: the first empty way that also permits eviction, else the first empty way, else
/// the oldest evictable way without a pin. `ways`: the associativity.
#[inline(always)]
pub(super) fn choose<const N: usize>(set: &[Group; N], ways: u32, allowed: Ways) -> Option<u32> {
    let all = u32::MAX >> (MAX_WAYS - ways);
    let empty = equal(set.map(|group| group.prints), 0) & allowed.empty & all;
    let allowed = allowed.victims & all;
    if empty != 0 {
        let own = empty & allowed;
        return Some(if own != 0 { own.trailing_zeros() } else { empty.trailing_zeros() });
    }
    // A pinned way never matches.
    let oldest = equal(set.map(|group| group.meta & (AGE | PINNED)), (ways - 1) as u8) & allowed;
    if oldest != 0 {
        return Some(oldest.trailing_zeros());
    }
    let of = |way: u32| &set[way as usize / 8 % N];
    let free = |way: &u32| allowed >> way & 1 != 0 && of(*way).meta >> (way % 8 * 8 + 7) & 1 == 0;
    (0..ways).filter(free).max_by_key(|&way| of(way).age(way % 8 * 8))
}

/// Stores `line` in the way selected by [`choose`] and marks this way as newest. Returns the way, and the class of the
/// evicted line, if any.
#[inline]
pub(super) fn claim<const N: usize>(
    set: &mut [Group; N],
    ways: u32,
    allowed: Ways,
    line: Line,
    class: BulkClass,
) -> Option<(u32, Option<BulkClass>)> {
    let way = choose(set, ways, allowed)?;
    let (at, shift) = (way as usize / 8 % N, way % 8 * 8);
    let held = (!set[at].is_empty(shift)).then(|| set[at].class(shift));
    grow_older(set, set[at].age(shift));
    let group = &mut set[at];
    group.prints = (group.prints & !(0xff << shift)) | fingerprint(line) << shift;
    group.meta = (group.meta & !(0xff << shift)) | u64::from(class.0) << (shift + CLASS_SHIFT);
    Some((way, held))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn bytes_are_found_one_by_one(words: [u64; 4], byte: u8) {
            let bytes = words.iter().flat_map(|word| word.to_le_bytes());
            let expected = bytes.enumerate().fold(0, |found, (at, other)| found | u32::from(other == byte) << at);
            prop_assert_eq!(equal(words, byte), expected);
            prop_assert_eq!(equal([words[0], words[1]], byte), expected & 0xffff);
            prop_assert_eq!(equal([words[0]], byte), expected & 0xff);
        }
    }
}
