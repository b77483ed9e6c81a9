//! Ranges of lines, and sets of ranges: a label's lines for an array and a module.

use std::ops::Range;
use tombolo_types::{Line, LineSize};

/// Consecutive lines, at least one: from `first` up to the line before `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LineRange {
    /// The first line.
    pub first: Line,
    /// The line after the last line.
    pub end: Line,
}

impl LineRange {
    /// The lines from `first` up to the line before `end`.
    ///
    /// # Panics
    /// Panics if the range is empty.
    pub fn new(first: Line, end: Line) -> LineRange {
        assert!(first < end, "a range from {first} up to before {end} holds no line");
        LineRange { first, end }
    }

    /// The lines that hold any byte in the non-empty range `bytes`: rounded outward at both ends.
    ///
    /// If two modules each write a part of a line, the line is in both modules' ranges, so the ranges overlap.
    pub fn covering(bytes: Range<u64>, size: LineSize) -> LineRange {
        LineRange::new(size.line_of(bytes.start), Line(size.line_of(bytes.end - 1).0 + 1))
    }

    /// True if some line is in both ranges.
    pub fn overlaps(self, other: LineRange) -> bool {
        self.first < other.end && other.first < self.end
    }

    /// The smallest range that contains both ranges.
    pub fn hull(self, other: LineRange) -> LineRange {
        LineRange { first: self.first.min(other.first), end: self.end.max(other.end) }
    }

    /// Number of lines between this range and a later range; 0 if they touch or overlap.
    pub fn gap(self, later: LineRange) -> u64 {
        later.first.0.saturating_sub(self.end.0)
    }
}

/// A line set, stored as ascending ranges without adjacent neighbours.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct LineSet(Ranges);

/// Storage specialised for a single range: most sets are a single range, and an explorer copies very many sets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
enum Ranges {
    #[default]
    None,
    One(LineRange),
    /// At least two ranges.
    Many(Vec<LineRange>),
}

/// Expects ascending ranges, none adjacent to another.
impl From<Vec<LineRange>> for Ranges {
    fn from(ranges: Vec<LineRange>) -> Ranges {
        match ranges.as_slice() {
            [] => Ranges::None,
            [one] => Ranges::One(*one),
            [_, _, ..] => Ranges::Many(ranges),
        }
    }
}

impl LineSet {
    /// True if the set is empty.
    pub fn is_empty(&self) -> bool {
        self.ranges().is_empty()
    }

    /// The set's ranges, in ascending order.
    pub fn ranges(&self) -> &[LineRange] {
        match &self.0 {
            Ranges::None => &[],
            Ranges::One(range) => std::slice::from_ref(range),
            Ranges::Many(ranges) => ranges,
        }
    }

    /// True if some line is in both sets.
    pub fn overlaps(&self, other: &LineSet) -> bool {
        self.common(other).next().is_some()
    }

    /// Adds the lines in `other`.
    pub fn add(&mut self, other: &LineSet) {
        match (&mut self.0, &other.0) {
            (_, Ranges::None) => {}
            (mine @ Ranges::None, theirs) => mine.clone_from(theirs),
            (Ranges::One(mine), Ranges::One(theirs)) if mine.overlaps(*theirs) => *mine = mine.hull(*theirs),
            (Ranges::One(_) | Ranges::Many(_), Ranges::One(_) | Ranges::Many(_)) => {
                *self = self.ranges().iter().chain(other.ranges()).copied().collect();
            }
        }
    }

    /// The lines in both sets.
    pub fn intersection(&self, other: &LineSet) -> LineSet {
        self.common(other).collect()
    }

    /// This set's lines that are absent from `other`.
    pub fn without(&self, other: &LineSet) -> LineSet {
        let mut ranges = Vec::with_capacity(self.ranges().len());
        for &LineRange { mut first, end } in self.ranges() {
            for gone in LineSet::from(LineRange { first, end }).common(other) {
                if first < gone.first {
                    ranges.push(LineRange { first, end: gone.first });
                }
                first = gone.end;
            }
            if first < end {
                ranges.push(LineRange { first, end });
            }
        }
        LineSet(ranges.into())
    }

    /// Number of lines in the set.
    pub fn count(&self) -> u64 {
        self.ranges().iter().map(|range| range.end.0 - range.first.0).sum()
    }

    /// Reduces the set to at most `most` ranges by filling the smallest gaps; among equal gaps, the lowest first.
    pub fn limited(self, most: usize) -> LineSet {
        let pieces = self.ranges();
        if pieces.len() <= most {
            return self;
        }
        let mut gaps: Vec<usize> = (1..pieces.len()).collect();
        gaps.sort_by_key(|&later| (pieces[later - 1].gap(pieces[later]), later));
        let mut filled = vec![false; pieces.len()];
        gaps.iter().take(pieces.len() - most).for_each(|&later| filled[later] = true);
        let mut ranges: Vec<LineRange> = Vec::with_capacity(most);
        for (range, filled) in pieces.iter().zip(filled) {
            match ranges.last_mut() {
                Some(last) if filled => *last = last.hull(*range),
                Some(_) | None => ranges.push(*range),
            }
        }
        LineSet(ranges.into())
    }

    /// Ranges of lines in both sets, ascending.
    fn common(&self, other: &LineSet) -> impl Iterator<Item = LineRange> {
        self.ranges().iter().flat_map(|&mine| {
            let others = other.ranges();
            let from = others.partition_point(|theirs| theirs.end <= mine.first);
            let theirs = others[from..].iter().take_while(move |theirs| theirs.first < mine.end);
            theirs.map(move |theirs| LineRange { first: mine.first.max(theirs.first), end: mine.end.min(theirs.end) })
        })
    }
}

impl From<LineRange> for LineSet {
    fn from(lines: LineRange) -> LineSet {
        LineSet(Ranges::One(lines))
    }
}

/// Accepts ranges in any order, including overlapping ranges.
impl FromIterator<LineRange> for LineSet {
    fn from_iter<I: IntoIterator<Item = LineRange>>(ranges: I) -> LineSet {
        let mut ranges: Vec<LineRange> = ranges.into_iter().collect();
        ranges.sort_unstable();
        ranges.dedup_by(|later, earlier| {
            let touches = later.first <= earlier.end;
            if touches {
                *earlier = earlier.hull(*later);
            }
            touches
        });
        LineSet(ranges.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(ranges: &[(u64, u64)]) -> LineSet {
        ranges.iter().map(|&(first, end)| LineRange::new(Line(first), Line(end))).collect()
    }

    #[test]
    fn a_partially_used_line_counts_as_used() {
        let size = LineSize::new(64).expect("a power of two");
        let lines = |bytes| LineRange::covering(bytes, size);
        assert_eq!(lines(0..64), LineRange::new(Line(0), Line(1)));
        assert_eq!(lines(63..65), LineRange::new(Line(0), Line(2)));
        assert!(lines(0..100).overlaps(lines(100..200)), "both use the second line");
    }

    #[test]
    fn ranges_that_touch_are_one() {
        assert_eq!(set(&[(4, 6), (0, 2), (2, 3), (5, 9)]), set(&[(0, 3), (4, 9)]));
        let mut sum = set(&[(0, 3)]);
        sum.add(&set(&[(8, 9)]));
        sum.add(&set(&[(3, 5)]));
        assert_eq!(sum, set(&[(0, 5), (8, 9)]));
    }

    #[test]
    fn sets_overlap_where_their_intersection_has_a_line() {
        let mine = set(&[(0, 3), (6, 9)]);
        for (theirs, common) in
            [(set(&[(3, 6)]), set(&[])), (set(&[(2, 7)]), set(&[(2, 3), (6, 7)])), (set(&[(8, 20)]), set(&[(8, 9)]))]
        {
            assert_eq!(mine.intersection(&theirs), common);
            assert_eq!(mine.overlaps(&theirs), !common.is_empty());
            assert_eq!(theirs.overlaps(&mine), !common.is_empty());
        }
    }

    #[test]
    fn a_difference_has_no_line_from_the_subtracted_set() {
        let mine = set(&[(0, 4), (6, 9), (12, 13)]);
        for (theirs, left) in [
            (set(&[]), mine.clone()),
            (set(&[(1, 2), (3, 7)]), set(&[(0, 1), (2, 3), (7, 9), (12, 13)])),
            (set(&[(0, 20)]), set(&[])),
        ] {
            assert_eq!(mine.without(&theirs), left);
            assert_eq!(left.count() + mine.intersection(&theirs).count(), mine.count());
        }
    }

    #[test]
    fn the_smallest_gaps_are_filled_first() {
        let pieces = set(&[(0, 1), (4, 5), (6, 7), (9, 10)]);
        assert_eq!(pieces.clone().limited(4), pieces);
        assert_eq!(pieces.clone().limited(3), set(&[(0, 1), (4, 7), (9, 10)]));
        assert_eq!(pieces.clone().limited(2), set(&[(0, 1), (4, 10)]));
        assert_eq!(pieces.limited(1), set(&[(0, 10)]));
    }
}
