//! Hash index for MSHR entries, keyed by line.
//!
//! The table consists of buckets, each in a single host cache line, and compares all places in a bucket in parallel. A
//! search usually reads a single bucket and rarely takes a branch that the host mispredicts.

use crate::bytes::equal_bytes;
use tombolo_engine::prefetch;

/// Number of places per bucket: the bytes compared in parallel.
const PLACES: usize = 16;

/// Number of entries planned per bucket. At half occupancy, few buckets overflow. Assumed: no alternative was tried.
const FILL: u32 = 8;

/// Bucket for entries with similar line hashes. If its own bucket is full, an entry is stored in a later bucket.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Bucket {
    /// Hash byte per place, never 0; 0 marks an empty place.
    prints: [u64; 2],
    /// Entry number per place.
    entries: [u16; PLACES],
    /// Number of entries overflowed from this bucket: stored in a later bucket, but hashed to this or an earlier
    /// bucket.
    passed: u32,
}

const _: () = assert!(size_of::<Bucket>() == 64);

impl Bucket {
    const EMPTY: Bucket = Bucket { prints: [0; 2], entries: [0; PLACES], passed: 0 };

    /// Bit set of places with the hash byte `print`; for 0, bit set of empty places.
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

/// Iterates over the places in a bit set.
#[inline]
fn each(mut places: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let place = places.trailing_zeros() as usize;
        places &= places.checked_sub(1)?;
        Some(place % PLACES)
    })
}

/// Index over a table's entries, keyed by line hash. Entry numbers are below 2^16 and each occurs at most once.
#[derive(Clone, Debug)]
pub(super) struct LineIndex {
    /// Buckets: a power of two, at least two.
    buckets: Vec<Bucket>,
    /// Hash shift: 64 minus the binary logarithm of the bucket count.
    shift: u32,
}

impl LineIndex {
    /// Creates an empty index for up to `entries` entries. The index has twice this number of places, and every search
    /// therefore terminates.
    pub(super) fn new(entries: u32) -> LineIndex {
        let buckets = entries.div_ceil(FILL).next_power_of_two().max(2) as usize;
        LineIndex { buckets: vec![Bucket::EMPTY; buckets], shift: 64 - buckets.trailing_zeros() }
    }

    /// Number of entries the index is sized for.
    pub(super) fn room(&self) -> u32 {
        self.buckets.len() as u32 * FILL
    }

    /// Prefetches the bucket that a search for this hash reads first into the host's caches.
    #[inline]
    pub(super) fn prefetch(&self, hash: u64) {
        prefetch(&self.buckets[self.own(hash)]);
    }

    /// Returns the entry with this hash for which `is` returns true.
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

    /// Inserts an entry, which must be absent.
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

    /// Removes an entry, which must be present.
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

    /// Home bucket for a hash.
    #[inline]
    fn own(&self, hash: u64) -> usize {
        (hash >> self.shift) as usize
    }

    /// Hash byte stored and compared within a bucket.
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
            // Few buckets and few hash bytes: many entries collide, and buckets overflow.
            steps in prop::collection::vec((any::<prop::sample::Index>(), 0..4_u64, 0..2_u64), 1..400),
        ) {
            let mut index = LineIndex::new(entries);
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
