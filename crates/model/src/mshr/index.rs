//! Which entry holds a line: a hash table of buckets, each one cache line of the host, whose places are all compared at
//! once, so that a search mostly looks at one bucket and seldom takes a turn that the host has to guess.

use crate::bytes::equal_bytes;
use tombolo_engine::prefetch;

/// Places of a bucket: the bytes that are compared at once.
const PLACES: usize = 16;

/// Entries for which a bucket is made: half of its places, so that few buckets overflow. Assumed: no other was tried.
const FILL: u32 = 8;

/// Some entries, by a hash of their lines. What finds no place in its own bucket stands in one after it.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Bucket {
    /// A byte of the hash of each place, never 0; 0 where the place is empty.
    prints: [u64; 2],
    /// The entry of each place.
    entries: [u16; PLACES],
    /// Entries that belong here or before and stand in a later bucket.
    passed: u32,
}

const _: () = assert!(size_of::<Bucket>() == 64);

impl Bucket {
    const EMPTY: Bucket = Bucket { prints: [0; 2], entries: [0; PLACES], passed: 0 };

    /// The places of this byte of hash, or the empty ones for 0, by bit.
    #[inline]
    fn places(&self, print: u8) -> u32 {
        equal_bytes(self.prints[0], self.prints[1], print)
    }

    #[inline]
    fn set(&mut self, place: usize, print: u8) {
        let (word, shift) = (&mut self.prints[place / 8 % 2], place % 8 * 8);
        *word = *word & !(0xff << shift) | u64::from(print) << shift;
    }
}

/// The places by bit in a set.
#[inline]
fn each(mut places: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let place = places.trailing_zeros() as usize;
        places &= places.checked_sub(1)?;
        Some(place % PLACES)
    })
}

/// The entries of a table by the hashes of their lines: numbers below 2^16, each held once.
#[derive(Clone, Debug)]
pub(super) struct Index {
    /// At least two, as many as a power of two.
    buckets: Vec<Bucket>,
    /// 64 minus the binary logarithm of their count.
    shift: u32,
}

impl Index {
    /// An empty index, for as many entries at once. It has a place for twice as many, so a search ends.
    pub(super) fn new(entries: u32) -> Index {
        let buckets = entries.div_ceil(FILL).next_power_of_two().max(2) as usize;
        Index { buckets: vec![Bucket::EMPTY; buckets], shift: 64 - buckets.trailing_zeros() }
    }

    /// Entries that it is made for.
    pub(super) fn room(&self) -> u32 {
        self.buckets.len() as u32 * FILL
    }

    /// Starts to load what a search for this hash reads into the host's caches.
    #[inline]
    pub(super) fn prefetch(&self, hash: u64) {
        prefetch(&self.buckets[self.own(hash)]);
    }

    /// The entry of this hash that `is` the one wanted.
    #[inline]
    pub(super) fn find(&self, hash: u64, mut is: impl FnMut(u16) -> bool) -> Option<u16> {
        let mut at = self.own(hash);
        loop {
            let bucket = &self.buckets[at];
            for place in each(bucket.places(self.print(hash))) {
                if is(bucket.entries[place]) {
                    return Some(bucket.entries[place]);
                }
            }
            if bucket.passed == 0 {
                return None;
            }
            at = self.after(at);
        }
    }

    /// Adds an entry, which must not be held.
    #[inline]
    pub(super) fn insert(&mut self, hash: u64, entry: u16) {
        let print = self.print(hash);
        let mut at = self.own(hash);
        loop {
            let bucket = &mut self.buckets[at];
            let empty = bucket.places(0);
            if empty != 0 {
                let place = empty.trailing_zeros() as usize % PLACES;
                bucket.set(place, print);
                bucket.entries[place] = entry;
                return;
            }
            bucket.passed += 1;
            at = self.after(at);
        }
    }

    /// Takes out an entry, which must be held.
    #[inline]
    pub(super) fn remove(&mut self, hash: u64, entry: u16) {
        let print = self.print(hash);
        let mut at = self.own(hash);
        loop {
            let bucket = &mut self.buckets[at];
            if let Some(place) = each(bucket.places(print)).find(|&place| bucket.entries[place] == entry) {
                bucket.set(place, 0);
                return;
            }
            bucket.passed -= 1;
            at = self.after(at);
        }
    }

    /// The bucket that a hash belongs to.
    #[inline]
    fn own(&self, hash: u64) -> usize {
        (hash >> self.shift) as usize
    }

    /// The byte of a hash that is compared.
    #[inline]
    fn print(&self, hash: u64) -> u8 {
        ((hash >> (self.shift - 8)) as u8).max(1)
    }

    #[inline]
    fn after(&self, at: usize) -> usize {
        (at + 1) & (self.buckets.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_holds_what_a_list_holds(
            entries in 1..80_u32,
            // Few buckets and few bytes of hash: many collide, and buckets overflow.
            steps in prop::collection::vec((any::<prop::sample::Index>(), 0..4_u64, 0..2_u64), 1..400),
        ) {
            let mut index = Index::new(entries);
            let mut list: Vec<(u64, u16)> = Vec::new();
            let mut free: Vec<u16> = (0..entries as u16).collect();
            for (which, upper, lower) in steps {
                let hash = upper << 62 | lower << (index.shift - 8);
                if free.is_empty() || (!list.is_empty() && which.index(3) == 0) {
                    let (hash, entry) = list.swap_remove(which.index(list.len()));
                    index.remove(hash, entry);
                    free.push(entry);
                } else {
                    let entry = free.pop().expect("one is free");
                    index.insert(hash, entry);
                    list.push((hash, entry));
                }
                for entry in 0..entries as u16 {
                    let held = list.iter().find(|(_, other)| *other == entry);
                    let hash = held.map_or(hash, |(hash, _)| *hash);
                    prop_assert_eq!(index.find(hash, |other| other == entry), held.map(|_| entry));
                }
            }
            list.into_iter().for_each(|(hash, entry)| index.remove(hash, entry));
            let left = |bucket: &Bucket| bucket.prints != [0; 2] || bucket.passed != 0;
            prop_assert!(!index.buckets.iter().any(left), "searches of an empty index end at once");
        }
    }
}
