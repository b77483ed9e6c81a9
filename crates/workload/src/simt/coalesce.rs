//! The coalescer: converts lane addresses to line transactions with byte masks.
//!
//! Each line appears once, in ascending order of its first lane.

use tombolo_types::stream::Access;
use tombolo_types::{LineSize, Mask};

/// Appends the lines accessed by the lanes in `active`, with `bytes` bytes at `address(lane)` each. Items are aligned
/// to their size, a power of two up to 32, so no item crosses a line boundary.
pub(crate) fn scatter(
    line_size: LineSize,
    active: u64,
    bytes: u64,
    address: impl Fn(usize) -> u64,
    accesses: &mut Vec<Access>,
) {
    let first = accesses.len();
    let mut last = first;
    let mut lanes = active;
    while lanes != 0 {
        let at = address(lanes.trailing_zeros() as usize);
        lanes &= lanes - 1;
        let (line, mask) = (line_size.line_of(at), line_size.mask(at, bytes));
        // Neighbouring lanes mostly share a line, so the latest line is compared first.
        match accesses.get_mut(last) {
            Some(access) if { access.line } == line => access.mask |= mask,
            _ => match accesses[first..].iter().position(|access| { access.line } == line) {
                Some(place) => {
                    last = first + place;
                    accesses[last].mask |= mask;
                }
                None => {
                    last = accesses.len();
                    accesses.push(Access { line, mask });
                }
            },
        }
    }
}

/// Appends the lines covered by the bytes `[start, start + bytes)`: equal to the result of [`scatter`] for lanes with
/// adjacent items.
pub(crate) fn run(line_size: LineSize, start: u64, bytes: u64, accesses: &mut Vec<Access>) {
    let end = start + bytes;
    let mut at = start;
    while at < end {
        let line = line_size.line_of(at);
        let next = (line_size.address_of(line) + line_size.bytes()).min(end);
        let whole = next - at == line_size.bytes();
        let mask = if whole { Mask::ALL } else { line_size.mask(at, next - at) };
        accesses.push(Access { line, mask });
        at = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tombolo_types::Line;

    fn lines(active: u64, bytes: u64, address: impl Fn(usize) -> u64) -> Vec<(u64, u32)> {
        let mut accesses = Vec::new();
        scatter(LineSize::B128, active, bytes, address, &mut accesses);
        accesses.iter().map(|access| (access.line.0, access.mask.0)).collect()
    }

    const WARP: u64 = u32::MAX as u64;

    #[test]
    fn a_unit_stride_of_words_is_one_full_line() {
        assert_eq!(lines(WARP, 4, |lane| 1280 + 4 * lane as u64), [(10, u32::MAX)]);
    }

    #[test]
    fn a_misaligned_unit_stride_is_two_lines() {
        assert_eq!(lines(WARP, 4, |lane| 4 + 4 * lane as u64), [(0, u32::MAX << 1), (1, 1)]);
    }

    #[test]
    fn a_broadcast_is_one_word() {
        assert_eq!(lines(WARP, 4, |_| 264), [(2, 1 << 2)]);
    }

    #[test]
    fn lines_come_in_order_of_their_first_lane_and_once() {
        assert_eq!(lines(0b1111, 4, |lane| [1024, 0, 1028, 4][lane]), [(8, 0b11), (0, 0b11)]);
    }

    #[test]
    fn lanes_that_are_off_touch_nothing() {
        assert_eq!(lines(1 << 31 | 1, 4, |lane| 128 * lane as u64), [(0, 1), (31, 1)]);
        assert_eq!(lines(0, 4, |_| 0), []);
    }

    proptest! {
        #[test]
        fn a_run_is_the_scatter_of_its_lanes(
            start in 0_u64..4096, lanes in 1_u32..=64, wide in any::<bool>(), log_line in 5_u32..=8,
        ) {
            let bytes = if wide { 8 } else { 4 };
            let size = LineSize::new(1 << log_line).unwrap();
            let (mut slow, mut fast) = (Vec::new(), Vec::new());
            let active = u64::MAX >> (64 - lanes);
            scatter(size, active, bytes, |lane| (start + lane as u64) * bytes, &mut slow);
            run(size, start * bytes, u64::from(lanes) * bytes, &mut fast);
            prop_assert_eq!(&slow, &fast);
            prop_assert!(fast.windows(2).all(|pair| pair[0].line.0 + 1 == pair[1].line.0));
            prop_assert_eq!(fast[0].line, Line((start * bytes) >> log_line));
        }
    }
}
