//! A coherence directory: a set-associative array with one entry per region. A region has at least one line.
//!
//! The protocol defines the contents of an entry. Not modelled here: time. Within a set, the least recently used entry
//! is replaced.

use crate::l2::cache::{BulkClass, Cache, CacheConfig, IndexFunction, Replacement, Ways};
use tombolo_types::Line;

/// Shape of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirectoryConfig {
    /// Number of sets, from 1.
    pub sets: u32,
    /// Ways per set, 1 to [`MAX_WAYS`](crate::l2::cache::MAX_WAYS).
    pub ways: u32,
    /// Lines covered by an entry: a power of two.
    pub(crate) lines_per_entry: u32,
}

/// An entry evicted by an insertion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EvictedEntry<E> {
    /// First line covered by the entry.
    pub(crate) region: Line,
    /// Contents of the entry.
    pub(crate) entry: E,
}

/// Counters of a directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DirectoryStats {
    /// Entries evicted by insertions.
    pub(crate) evictions: u64,
    /// Maximum number of entries in use at once.
    pub(crate) peak: u64,
}

/// A directory with entry type `E`.
#[derive(Clone)]
pub(crate) struct Directory<E> {
    entries: Cache<E>,
    region_shift: u32,
    used: u64,
    stats: DirectoryStats,
}

impl<E: Copy + Default> Directory<E> {
    /// An empty directory. Panics if [`DirectoryConfig`] does not allow the shape.
    pub(crate) fn new(config: DirectoryConfig) -> Directory<E> {
        let lines = config.lines_per_entry;
        assert!(lines.is_power_of_two(), "an entry covers a power of two of lines, not {lines}");
        let shape = CacheConfig {
            sets: config.sets,
            ways: config.ways,
            replacement: Replacement::LeastRecentlyUsed,
            index: IndexFunction::Hashed,
        };
        Directory {
            entries: Cache::new(shape),
            region_shift: lines.trailing_zeros(),
            used: 0,
            stats: DirectoryStats::default(),
        }
    }

    /// Prefetches into the host's caches the first data read by [`Directory::lookup`].
    #[inline]
    pub(crate) fn prefetch(&self, line: Line) {
        self.entries.prefetch(self.key(line));
    }

    /// Prefetches the entry for `line`, or its replacement victim, into the host's caches. Reads data prefetched by
    /// [`Directory::prefetch`].
    #[inline]
    pub(crate) fn prefetch_slot(&self, line: Line) {
        self.entries.prefetch_slot(self.key(line));
    }

    /// Returns the entry that covers `line`, now the newest in the set.
    #[inline]
    pub(crate) fn lookup(&mut self, line: Line) -> Option<&mut E> {
        self.entries.lookup(self.key(line))
    }

    /// Returns the entry for `line`; the replacement order stays unchanged.
    #[inline]
    pub(crate) fn peek(&self, line: Line) -> Option<&E> {
        self.entries.peek(self.key(line))
    }

    /// Stores the entry for `line` as the newest in its set, replacing any present entry for the region. Returns the
    /// entry evicted from another region, if any.
    #[inline]
    pub(crate) fn insert(&mut self, line: Line, entry: E) -> Option<EvictedEntry<E>> {
        let key = self.key(line);
        let fresh = self.entries.peek(key).is_none();
        let inserted = self.entries.insert(key, BulkClass::default(), entry, Ways::ALL);
        let victim = inserted.expect("no entry is ever pinned").victim;
        if let Some(victim) = victim {
            self.stats.evictions += 1;
            return Some(EvictedEntry { region: Line(victim.line.0 << self.region_shift), entry: victim.state });
        }
        self.used += u64::from(fresh);
        self.stats.peak = self.stats.peak.max(self.used);
        None
    }

    /// Removes and returns the entry that covers `line`.
    #[inline]
    pub(crate) fn remove(&mut self, line: Line) -> Option<E> {
        let entry = self.entries.remove(self.key(line))?;
        self.used -= 1;
        Some(entry)
    }

    /// First line in the region around `line`.
    #[inline]
    pub(crate) fn region_of(&self, line: Line) -> Line {
        Line(self.key(line).0 << self.region_shift)
    }

    /// Entries in use.
    #[cfg(test)]
    pub(crate) fn used(&self) -> u64 {
        self.used
    }

    /// Counters so far.
    #[cfg(test)]
    pub(crate) fn stats(&self) -> &DirectoryStats {
        &self.stats
    }

    #[inline]
    fn key(&self, line: Line) -> Line {
        Line(line.0 >> self.region_shift)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory(sets: u32, ways: u32) -> Directory<u32> {
        Directory::new(DirectoryConfig { sets, ways, lines_per_entry: 4 })
    }

    #[test]
    fn an_entry_covers_its_region() {
        let mut directory = directory(16, 4);
        directory.insert(Line(6), 0b1010);
        assert!((4..8).all(|line| directory.peek(Line(line)) == Some(&0b1010)));
        assert_eq!((directory.peek(Line(3)), directory.peek(Line(8))), (None, None));
        assert_eq!(directory.region_of(Line(6)), Line(4));
    }

    #[test]
    fn a_full_set_reports_the_region_it_drops() {
        let mut directory = directory(1, 2);
        assert_eq!(directory.insert(Line(0), 10), None);
        assert_eq!(directory.insert(Line(4), 11), None);
        assert!(directory.lookup(Line(1)).is_some());
        assert_eq!(directory.insert(Line(8), 12), Some(EvictedEntry { region: Line(4), entry: 11 }));
        assert_eq!(*directory.stats(), DirectoryStats { evictions: 1, peak: 2 });
    }

    #[test]
    fn storing_an_entry_again_uses_no_more_room() {
        let mut directory = directory(4, 2);
        directory.insert(Line(0), 1);
        directory.insert(Line(3), 2);
        assert_eq!((directory.used(), directory.peek(Line(0))), (1, Some(&2)));
    }

    #[test]
    fn a_removed_entry_is_gone() {
        let mut directory = directory(4, 2);
        directory.insert(Line(0), 1);
        assert_eq!(directory.remove(Line(2)), Some(1));
        assert_eq!((directory.remove(Line(0)), directory.used()), (None, 0));
    }

    #[test]
    fn lines_tracked_at_the_point_of_overflow_are_four_times_the_entries() {
        let mut directory = directory(768, 16);
        let lines = 768 * 16 * 4;
        let overflow =
            (0..).position(|line| directory.peek(Line(line)).is_none() && directory.insert(Line(line), 0).is_some());
        assert_eq!(overflow, Some(lines));
    }
}
