//! Two-dimensional grids: square work-groups, numbered along rows.

use crate::prelude::*;

/// Number of threads to whose multiples the samples round (`GROUP_SIZE`).
const ROUNDING: u64 = 256;

/// A grid of work-groups with `side` × `side` threads.
#[derive(Clone, Copy)]
pub(super) struct SquareGrid {
    /// Threads along a row of the grid.
    pub(super) width: i32,
    /// Threads along a row of a group.
    pub(super) side: i32,
}

impl SquareGrid {
    /// Groups along a row of the grid.
    fn across(self) -> i32 {
        self.width / self.side
    }

    /// Threads per group.
    pub(super) fn threads(self) -> u32 {
        (self.side * self.side) as u32
    }

    /// Column and row of the first thread in group `index`.
    pub(super) fn corner(self, index: u32) -> [i32; 2] {
        let index = index as i32;
        [index % self.across() * self.side, index / self.across() * self.side]
    }

    /// Column and row within the group for each lane's thread.
    pub(super) fn local(self, warp: &Warp<'_>) -> [Lanes<i32>; 2] {
        let thread = warp.thread();
        [thread % self.side, thread / self.side]
    }

    /// Column and row within the grid for each lane's thread.
    pub(super) fn global(self, warp: &Warp<'_>) -> [Lanes<i32>; 2] {
        let ([left, top], [column, row]) = (self.corner(warp.cta()), self.local(warp));
        [column + left, row + top]
    }
}

/// Side of the square derived from a count by a sample: a quarter of the count, then the square root, each rounded down
/// to a multiple of 256 but at least 256.
fn side_of(count: u64) -> u64 {
    let down = |count: u64| (count / ROUNDING).max(1) * ROUNDING;
    down(down(count / 4).isqrt())
}

/// Side of the derived square at the scale: a whole number of groups, each `group` threads wide. The parameter counts
/// four numbers per thread.
pub(super) fn fit_square(request: &mut Request, parameter: &'static str, group: u64) -> u64 {
    let count = request.values.count(parameter);
    let side = request.scale.side_of(side_of(count)).next_multiple_of(group);
    let rule = format!(
        "four times a square whose side is a multiple of {ROUNDING}, rounded down, at scale 1, and of {group} at others"
    );
    request.fit(parameter, request.scale.of(count), 4 * side * side, &rule);
    side
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_become_squares_as_the_samples_round_them() {
        // The counts of UMH's Table I, then counts just below and exactly at the next square.
        assert_eq!([2_097_152, 131_072].map(side_of), [512, 256]);
        assert_eq!([4 * 512 * 512 - 1, 4 * 512 * 512].map(side_of), [256, 512]);
    }
}
