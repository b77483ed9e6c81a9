//! What a program says of its data: its arrays by name, and what the host does to them between two commands.

use crate::address::{Line, LineSize};
use std::ops::Range;

/// One array of a program's address space.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ArrayInfo {
    /// Name in the source.
    pub name: String,
    /// Virtual address of its first byte.
    pub base: u64,
    /// Bytes of its elements.
    pub bytes: u64,
    /// Bytes of one element, where known.
    pub element: Option<u32>,
}

impl ArrayInfo {
    /// Its addresses.
    pub fn addresses(&self) -> Range<u64> {
        self.base..self.base + self.bytes
    }

    /// The lines that hold any of it; none where it is empty.
    pub fn lines(&self, size: LineSize) -> Range<Line> {
        lines_of(&self.addresses(), size)
    }
}

/// The lines that hold any of `bytes`; none where there are none.
pub fn lines_of(bytes: &Range<u64>, size: LineSize) -> Range<Line> {
    let first = size.line_of(bytes.start);
    let end = if bytes.is_empty() { first } else { Line(size.line_of(bytes.end - 1).0 + 1) };
    first..end
}

/// What the host does to device arrays between two commands: addresses it reads and addresses it writes. Both are
/// ascending ranges that are not empty, and no two of which touch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct HostPhase {
    /// What it reads.
    pub reads: Vec<Range<u64>>,
    /// What it writes.
    pub writes: Vec<Range<u64>>,
}

impl HostPhase {
    /// Whether it does nothing.
    pub fn is_empty(&self) -> bool {
        self.reads.is_empty() && self.writes.is_empty()
    }
}

/// Sorts `ranges` and makes one of those that overlap or touch; drops empty ones.
pub fn unite(ranges: &mut Vec<Range<u64>>) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_array_is_in_every_line_that_holds_a_byte_of_it() {
        let array = ArrayInfo { base: 256, bytes: 129, ..ArrayInfo::default() };
        assert_eq!(array.lines(LineSize::B128), Line(2)..Line(4));
        assert!(ArrayInfo { bytes: 0, ..array }.lines(LineSize::B128).is_empty());
    }

    #[test]
    #[expect(clippy::reversed_empty_ranges, reason = "a range that is empty")]
    fn ranges_that_touch_are_united() {
        let mut ranges = vec![8..12, 0..4, 5..5, 4..6, 9..10, 30..20];
        unite(&mut ranges);
        assert_eq!(ranges, [0..6, 8..12]);
    }
}
