//! Host accesses to device arrays, line by line, as issued by a CPU with caches.

use crate::address::{Line, LineSize, Mask};
use crate::array::HostPhase;
use std::iter::Peekable;
use std::ops::Range;
use std::slice;

/// Kind of access by the host to a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HostAccessKind {
    /// A load.
    Read,
    /// A store.
    Write,
}

/// A host access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HostAccess {
    /// The line.
    pub line: Line,
    /// Bytes read or written.
    pub mask: Mask,
    /// Read or write.
    pub kind: HostAccessKind,
}

impl HostPhase {
    /// Converts the phase into accesses to lines with size `size`, in order of address.
    ///
    /// - A line is read at most once and written at most once: all ranges in the line form a single access. A line that
    ///   is read and written is read first.
    /// - A write to a whole line has [`Mask::ALL`], to avoid a fetch for the line. A partial write has the mask for its
    ///   bytes; a partly covered grain counts as a whole grain, like in every [`Mask`].
    ///
    /// Ranges do not record the order of the host's accesses. A host that walks with a stride, or in several passes, is
    /// represented by a single pass over its lines, in order.
    pub fn accesses(&self, size: LineSize) -> impl Iterator<Item = HostAccess> + '_ {
        MergedAccesses { reads: lines(&self.reads, size).peekable(), writes: lines(&self.writes, size).peekable() }
    }
}

/// Bytes in a line contained in some range from `ranges`, which ascend and do not overlap.
pub fn mask_within(ranges: &[Range<u64>], line: Line, size: LineSize) -> Mask {
    let start = line.0 * size.bytes();
    let last = start + (size.bytes() - 1);
    let first = ranges.partition_point(|range| range.end <= start);
    let here = ranges[first..].iter().take_while(|range| range.start <= last);
    here.fold(Mask::NONE, |mask, range| {
        let from = range.start.max(start);
        mask | size.mask(from, range.end - from)
    })
}

/// Merged iterator over reads and writes.
struct MergedAccesses<'a> {
    reads: Peekable<RangeLines<'a>>,
    writes: Peekable<RangeLines<'a>>,
}

impl Iterator for MergedAccesses<'_> {
    type Item = HostAccess;

    fn next(&mut self) -> Option<HostAccess> {
        let writes = match (self.reads.peek(), self.writes.peek()) {
            (Some((read, _)), Some((written, _))) => written < read,
            (None, Some(_)) => true,
            (Some(_) | None, None) => false,
        };
        let (from, kind) =
            if writes { (&mut self.writes, HostAccessKind::Write) } else { (&mut self.reads, HostAccessKind::Read) };
        from.next().map(|(line, mask)| HostAccess { line, mask, kind })
    }
}

/// Lines in ascending ranges, each once, with the bytes covered by some range.
struct RangeLines<'a> {
    size: LineSize,
    ranges: slice::Iter<'a, Range<u64>>,
    /// Rest of the current range; empty behind the last one.
    rest: Range<u64>,
}

fn lines(ranges: &[Range<u64>], size: LineSize) -> RangeLines<'_> {
    let mut lines = RangeLines { size, ranges: ranges.iter(), rest: 0..0 };
    lines.next_range();
    lines
}

impl RangeLines<'_> {
    /// Advances to the next range.
    fn next_range(&mut self) {
        self.rest = self.ranges.find(|range| !range.is_empty()).cloned().unwrap_or(0..0);
    }

    /// Consumes the current range's bytes in its first line; returns their mask.
    fn take_mask(&mut self) -> Mask {
        let Range { start, end } = self.rest;
        let left = self.size.bytes() - start % self.size.bytes();
        let bytes = left.min(end - start);
        self.rest.start += bytes;
        self.size.mask(start, bytes)
    }
}

impl Iterator for RangeLines<'_> {
    type Item = (Line, Mask);

    fn next(&mut self) -> Option<(Line, Mask)> {
        let line = self.size.line_of(self.rest.start);
        let mut mask = Mask::NONE;
        while !self.rest.is_empty() && self.size.line_of(self.rest.start) == line {
            mask |= self.take_mask();
            if self.rest.is_empty() {
                self.next_range();
            }
        }
        (!mask.is_empty()).then_some((line, mask))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::merge_ranges;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// Accesses in the form (line, mask, true for a write).
    fn told(phase: &HostPhase, size: LineSize) -> Vec<(u64, u32, bool)> {
        let access = |HostAccess { line, mask, kind }: HostAccess| (line.0, mask.0, kind == HostAccessKind::Write);
        phase.accesses(size).map(access).collect()
    }

    fn reading(reads: Vec<Range<u64>>) -> HostPhase {
        HostPhase { reads, writes: Vec::new() }
    }

    fn writing(addresses: Range<u64>) -> HostPhase {
        HostPhase { reads: Vec::new(), writes: std::iter::once(addresses).collect() }
    }

    #[test]
    fn a_phase_that_does_nothing_accesses_nothing() {
        assert_eq!(told(&HostPhase::default(), LineSize::B128), []);
    }

    #[test]
    fn a_write_of_a_whole_line_has_every_byte_and_one_of_a_part_its_own() {
        let phase = writing(120..260);
        assert_eq!(told(&phase, LineSize::B128), [(0, 0b11 << 30, true), (1, u32::MAX, true), (2, 1, true)]);
    }

    #[test]
    fn ranges_of_one_line_are_one_access() {
        let phase = reading(vec![0..4, 8..12, 124..132, 140..144]);
        assert_eq!(told(&phase, LineSize::B128), [(0, 0b101 | 1 << 31, false), (1, 0b1001, false)]);
    }

    #[test]
    fn a_line_that_is_both_is_read_first_and_lines_ascend() {
        let phase = HostPhase { reads: vec![128..132, 512..516], writes: vec![0..4, 128..256, 300..304] };
        let expected = [(0, 1, true), (1, 1, false), (1, u32::MAX, true), (2, 1 << 11, true), (4, 1, false)];
        assert_eq!(told(&phase, LineSize::B128), expected);
    }

    #[test]
    fn the_last_address_has_a_line() {
        let last = u64::MAX >> 7;
        assert_eq!(
            told(&writing(u64::MAX - 128..u64::MAX), LineSize::B128),
            [(last - 1, 1 << 31, true), (last, u32::MAX, true)]
        );
    }

    /// Ranges below 2 KiB, in the form used by a phase.
    fn ranges() -> impl Strategy<Value = Vec<Range<u64>>> {
        let range = (0..2000_u64, 1..300_u64).prop_map(|(start, bytes)| start..start + bytes);
        proptest::collection::vec(range, 0..12).prop_map(|mut ranges| {
            merge_ranges(&mut ranges);
            ranges
        })
    }

    /// Grains with a byte in some range.
    fn grains(ranges: &[Range<u64>], size: LineSize) -> BTreeSet<u64> {
        ranges.iter().cloned().flatten().map(|byte| byte / size.grain()).collect()
    }

    #[test]
    fn a_line_outside_all_ranges_has_no_bytes() {
        let ranges = [0..4, 384..512];
        let masks = [0, 1, 2, 3, 4].map(|line| mask_within(&ranges, Line(line), LineSize::B128));
        assert_eq!(masks, [Mask(1), Mask::NONE, Mask::NONE, Mask::ALL, Mask::NONE]);
    }

    proptest! {
        #[test]
        fn a_lines_bytes_within_ranges_are_those_of_its_access(writes in ranges(), log in 5..=8_u32) {
            let size = LineSize::new(1 << log).unwrap();
            let phase = HostPhase { reads: Vec::new(), writes };
            for HostAccess { line, mask, .. } in phase.accesses(size) {
                prop_assert_eq!(mask_within(&phase.writes, line, size), mask);
            }
        }

        #[test]
        fn every_byte_is_accessed_once_and_no_other(reads in ranges(), writes in ranges(), log in 5..=8_u32) {
            let size = LineSize::new(1 << log).unwrap();
            let phase = HostPhase { reads, writes };
            let mut found = [Vec::new(), Vec::new()];
            for HostAccess { line, mask, kind } in phase.accesses(size) {
                prop_assert!(!mask.is_empty());
                let bits = (0..32).filter(|bit| mask.0 >> bit & 1 == 1);
                found[kind as usize].extend(bits.map(|bit| 32 * line.0 + bit));
            }
            let expected = [grains(&phase.reads, size), grains(&phase.writes, size)];
            prop_assert_eq!(found, expected.map(|grains| grains.into_iter().collect::<Vec<_>>()));
        }

        #[test]
        fn accesses_ascend_by_line_and_a_read_comes_before_a_write(reads in ranges(), writes in ranges()) {
            let phase = HostPhase { reads, writes };
            let order: Vec<_> = phase.accesses(LineSize::B128).map(|access| (access.line, access.kind)).collect();
            prop_assert!(order.windows(2).all(|pair| pair[0] < pair[1]));
        }
    }
}
