//! A program's description of its data: named arrays, and the host's accesses to arrays between two commands.

use crate::address::{Line, LineSize};
use std::ops::Range;

/// An array in a program's address space.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ArrayInfo {
    /// Name in the source.
    pub name: String,
    /// Virtual address of the first byte.
    pub base: u64,
    /// Total size of the elements in bytes.
    pub bytes: u64,
    /// Size of one element in bytes, if known.
    pub element: Option<u32>,
}

impl ArrayInfo {
    /// Address range of the array.
    pub fn addresses(&self) -> Range<u64> {
        self.base..self.base + self.bytes
    }

    /// Lines with any byte from the array; none for an empty array.
    pub fn lines(&self, size: LineSize) -> Range<Line> {
        lines_of(&self.addresses(), size)
    }
}

/// Lines with any byte from `bytes`; none if the range is empty.
pub fn lines_of(bytes: &Range<u64>, size: LineSize) -> Range<Line> {
    let first = size.line_of(bytes.start);
    let end = if bytes.is_empty() { first } else { Line(size.line_of(bytes.end - 1).0 + 1) };
    first..end
}

/// Host accesses to device arrays between two commands: addresses read and addresses written. Both lists contain
/// ascending ranges; no range is empty, and no two ranges touch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct HostPhase {
    /// Ranges read.
    pub reads: Vec<Range<u64>>,
    /// Ranges written.
    pub writes: Vec<Range<u64>>,
}

impl HostPhase {
    /// True if nothing is read or written.
    pub fn is_empty(&self) -> bool {
        self.reads.is_empty() && self.writes.is_empty()
    }

    /// Number of bytes read.
    pub fn read_bytes(&self) -> u64 {
        bytes_of(&self.reads)
    }

    /// Number of bytes written.
    pub fn written_bytes(&self) -> u64 {
        bytes_of(&self.writes)
    }
}

/// Total size in bytes of non-overlapping ranges.
fn bytes_of(ranges: &[Range<u64>]) -> u64 {
    ranges.iter().map(|range| range.end - range.start).sum()
}

/// Sorts `ranges` and merges ranges that overlap or touch; drops empty ranges.
pub fn merge_ranges(ranges: &mut Vec<Range<u64>>) {
    ranges.retain(|range| !range.is_empty());
    ranges.sort_unstable_by_key(|range| range.start);
    ranges.dedup_by(|later, earlier| {
        let touches = later.start <= earlier.end;
        if touches {
            earlier.end = earlier.end.max(later.end);
        }
        touches
    });
}

/// Parts of `ranges` not contained in `others`. Arguments and result are lists in the form used by a [`HostPhase`].
pub fn subtract(ranges: &[Range<u64>], others: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut left = Vec::with_capacity(ranges.len());
    let mut others = others.iter().peekable();
    for range in ranges {
        let mut start = range.start;
        while let Some(other) = others.next_if(|other| other.end <= range.end) {
            if start < other.start {
                left.push(start..other.start);
            }
            start = start.max(other.end);
        }
        // The next range in `others` ends behind this range, and may begin inside it.
        let end = others.peek().map_or(range.end, |other| other.start.min(range.end));
        if start < end {
            left.push(start..end);
        }
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_array_is_in_every_line_that_holds_a_byte_of_it() {
        let array = ArrayInfo { base: 256, bytes: 129, ..ArrayInfo::default() };
        assert_eq!(array.lines(LineSize::B128), Line(2)..Line(4));
        assert!(ArrayInfo { bytes: 0, ..array }.lines(LineSize::B128).is_empty());
    }

    #[test]
    #[expect(clippy::reversed_empty_ranges, reason = "an empty range is under test")]
    fn ranges_that_touch_are_united() {
        let mut ranges = vec![8..12, 0..4, 5..5, 4..6, 9..10, 30..20];
        merge_ranges(&mut ranges);
        assert_eq!(ranges, [0..6, 8..12]);
    }

    #[test]
    fn what_others_hold_is_taken_from_ranges() {
        let all = 0..20;
        assert_eq!(subtract(&[0..10, 20..30], &[]), [0..10, 20..30]);
        assert_eq!(subtract(&[0..10, 20..30], &[2..4, 6..8, 9..22, 29..40]), [0..2, 4..6, 8..9, 22..29]);
        assert_eq!(subtract(&[5..10, 12..20], &[0..2, 3..6, 11..12, 12..13, 19..20]), [6..10, 13..19]);
        assert_eq!(subtract(std::slice::from_ref(&all), std::slice::from_ref(&all)), []);
        assert_eq!(subtract(&[5..6, 8..9], std::slice::from_ref(&all)), []);
    }

    /// Ranges below 200, in the form used by a phase.
    fn ranges() -> impl Strategy<Value = Vec<Range<u64>>> {
        let range = (0..180_u64, 1..20_u64).prop_map(|(start, bytes)| start..start + bytes);
        proptest::collection::vec(range, 0..10).prop_map(|mut ranges| {
            merge_ranges(&mut ranges);
            ranges
        })
    }

    proptest! {
        #[test]
        fn what_is_left_is_what_others_do_not_hold(some in ranges(), others in ranges()) {
            let holds = |ranges: &[Range<u64>], byte| ranges.iter().any(|range| range.contains(&byte));
            let left = subtract(&some, &others);
            for byte in 0..200 {
                prop_assert_eq!(holds(&left, byte), holds(&some, byte) && !holds(&others, byte));
            }
            let mut united = left.clone();
            merge_ranges(&mut united);
            prop_assert_eq!(united, left);
        }
    }
}
