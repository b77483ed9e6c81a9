//! A resource reserved out of order, for example a bus whose users become ready in an order different from their
//! request order.
//!
//! A queue in call order would make a request that is ready now wait behind an earlier request that becomes ready much
//! later. A calendar divides time into units, each free or reserved. A request reserves the first free units from its
//! ready time on, contiguous or not.
//!
//! Commands in a DRAM channel also keep a minimum distance inside a bank group. A calendar with `Distances` reserves
//! start times: each start closes the units nearby for all commands, and further units for commands to the same group.

use crate::l2::set_index::Divisor;
use tombolo_engine::HORIZON;
use tombolo_types::Ps;

/// Fraction bits of a unit's length in picoseconds, so units with a fractional length do not drift.
pub(crate) const FRACTION: u32 = 16;

/// Units per word.
const WORD: u64 = 64;

/// Initial number of words. Assumed: the look-ahead needed without overload.
const FEWEST: usize = 4;

/// Minimum distances between the starts of two reservations, in units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Distances {
    /// Number of groups, at least 1.
    pub(crate) groups: u32,
    /// Distance between any two reservations, at least 1.
    pub(crate) any: u64,
    /// Distance between two reservations in a group: from `any` to 32.
    pub(crate) group: u64,
}

impl Distances {
    /// Adjacent reservations, without groups.
    pub(crate) const ADJACENT: Distances = Distances { groups: 1, any: 1, group: 1 };
}

/// Reservations for a resource that serves a single request at a time.
#[derive(Clone, Debug)]
pub(crate) struct Calendar {
    /// Length of a unit in 2^-16 ps; `None` if work takes no time.
    unit: Option<Divisor>,
    length: u64,
    distances: Distances,
    /// Starts of the first commands to a group, as bits from the first one on.
    starts: u64,
    /// Number of the first word: the earliest time for reservations.
    first: u64,
    /// Units that are closed. Windows are open to [`Calendar::reserve_in_window`] alone.
    ring: Ring,
    /// Number of leading words, from `first` on, without a free unit.
    full: u64,
}

/// Columns in a ring: units closed for all reservations, units in windows, then units closed for a group, by group. There
/// are no columns for groups if groups need no larger distance.
const TAKEN: usize = 0;
const WINDOWS: usize = 1;
const CLOSED: usize = 2;

/// Ring of rows with a word per column; a word has a bit per unit of time. The number of rows is a power of two; row `w`,
/// from the calendar's first row on, has index `w` modulo this number.
#[derive(Clone, Debug)]
struct Ring {
    words: Vec<u64>,
    columns: usize,
    /// Number of rows, less one.
    mask: usize,
}

impl Ring {
    fn new(columns: usize) -> Ring {
        Ring { words: vec![0; FEWEST * columns], columns, mask: FEWEST - 1 }
    }

    /// Row number `row`, at or after row `first`; grows the ring if necessary.
    #[inline]
    fn row(&mut self, first: u64, row: u64) -> &mut [u64] {
        if row - first > self.mask as u64 {
            self.grow(first, row);
        }
        let at = (row as usize & self.mask) * self.columns;
        &mut self.words[at..at + self.columns]
    }

    /// Grows the ring to contain `row`.
    #[cold]
    fn grow(&mut self, first: u64, row: u64) {
        let rows = ((row - first + 1) as usize).next_power_of_two();
        let mut grown = Ring { words: vec![0; rows * self.columns], columns: self.columns, mask: rows - 1 };
        for held in first..=first + self.mask as u64 {
            grown.row(first, held).copy_from_slice(self.row(first, held));
        }
        *self = grown;
    }

    /// Clears the rows from `first` on, before `row`.
    #[inline]
    fn clear(&mut self, first: u64, row: u64) {
        for past in first..row.min(first + self.mask as u64 + 1) {
            self.row(first, past).fill(0);
        }
    }

    /// Sets the bits in a column from unit `from` to before unit `until`, without units before row `first`.
    #[inline]
    fn set(&mut self, first: u64, column: usize, (from, until): (u64, u64)) {
        let mut from = from.max(first * WORD);
        while from < until {
            let (row, bit) = (from / WORD, from % WORD);
            let count = (WORD - bit).min(until - from);
            self.row(first, row)[column] |= (u64::MAX >> (WORD - count)) << bit;
            from += count;
        }
    }
}

impl Calendar {
    /// An idle resource, whose units take `length`/65536 ps each; a length of zero means no request ever waits.
    pub(crate) fn new(length: u64) -> Calendar {
        Calendar::with_distances(length, Distances::ADJACENT)
    }

    /// An idle resource as in [`Calendar::new`], with minimum distances for [`Calendar::reserve_in`].
    pub(crate) fn with_distances(length: u64, distances: Distances) -> Calendar {
        let Distances { groups, any, group } = distances;
        assert!(groups >= 1 && any >= 1 && group >= any && group <= WORD / 2, "{distances:?} for a calendar");
        let columns = if group > any { CLOSED + groups as usize } else { CLOSED };
        let unit = (length > 0).then(|| Divisor::new(length));
        let starts = (0..WORD).step_by(group as usize).fold(0, |starts, at| starts | 1 << at);
        Calendar { unit, length, distances, starts, first: 0, ring: Ring::new(columns), full: 0 }
    }

    /// Duration for `units`, bounded by [`HORIZON`].
    #[inline]
    pub(crate) fn span(&self, units: u64) -> Ps {
        Ps(units.saturating_mul(self.length) >> FRACTION)
    }

    /// Number of units to cover a span; a partial unit counts as a whole unit.
    pub(crate) fn units(&self, span: Ps) -> u64 {
        if self.unit.is_none() { 0 } else { (span.0 << FRACTION).div_ceil(self.length) }
    }

    /// Reserves `units` from `ready` on; returns the end of the reservation. `now`, at most `ready`, is a lower bound
    /// for all later calls. Times are below [`HORIZON`]; a request ready later is never seen.
    #[inline]
    pub(crate) fn reserve(&mut self, now: Ps, ready: Ps, units: u64) -> Ps {
        let Some(unit) = self.unit else { return ready };
        if units == 0 || ready >= HORIZON {
            return ready;
        }
        let (mut word, mut open) = self.begin(unit, now, ready);
        let mut left = units;
        let last = loop {
            let row = self.ring.row(self.first, word);
            let free = !(row[TAKEN] | row[WINDOWS]) & open;
            if free != 0 {
                let take = lowest(free, left);
                row[TAKEN] |= take;
                left -= u64::from(take.count_ones());
                if left == 0 {
                    break word * WORD + u64::from(take.ilog2());
                }
            }
            open = u64::MAX;
            word += 1;
        };
        self.skip_full();
        (ready + self.span(units)).max(self.span(last + 1))
    }

    /// Reserves `count` commands to a group from `ready` on, at the calendar's distances and outside windows. Returns the
    /// end of the last command: `any` units after its start. `now` and `ready` are those of [`Calendar::reserve`].
    #[inline]
    pub(crate) fn reserve_in(&mut self, group: u32, now: Ps, ready: Ps, count: u64) -> Ps {
        if self.distances.group == 1 {
            return self.reserve(now, ready, count);
        }
        self.reserve_commands::<true>(group, now, ready, count)
    }

    /// Like [`Calendar::reserve_in`], also inside windows.
    #[inline]
    pub(crate) fn reserve_in_window(&mut self, group: u32, now: Ps, ready: Ps, count: u64) -> Ps {
        self.reserve_commands::<false>(group, now, ready, count)
    }

    #[inline]
    fn reserve_commands<const OUTSIDE: bool>(&mut self, group: u32, now: Ps, ready: Ps, count: u64) -> Ps {
        let Distances { any, group: near, .. } = self.distances;
        let Some(unit) = self.unit else { return ready };
        if count == 0 || ready >= HORIZON {
            return ready;
        }
        let (mut word, mut open) = self.begin(unit, now, ready);
        let mut left = count;
        let last = 'reserved: loop {
            let row = self.ring.row(self.first, word);
            let window = if OUTSIDE { row[WINDOWS] } else { 0 };
            let closed = row.get(CLOSED + group as usize).copied().unwrap_or(0);
            let mut free = !(row[TAKEN] | closed | window) & open;
            open = u64::MAX;
            if let Some(last) = self.take_run(group, word, free, left) {
                break word * WORD + last;
            }
            while free != 0 {
                let bit = u64::from(free.trailing_zeros());
                self.take(group, word, bit);
                left -= 1;
                if left == 0 {
                    break 'reserved word * WORD + bit;
                }
                let next = bit + near;
                free = if next < WORD { free & (u64::MAX << next) } else { 0 };
                open = if next > WORD { u64::MAX << (next - WORD) } else { u64::MAX };
            }
            word += 1;
        };
        self.skip_full();
        (ready + self.idle_span(count)).max(self.span(last + any))
    }

    /// Drops the time before `now`. Returns the first word that may have a free unit from `ready` on, with these units.
    #[inline]
    fn begin(&mut self, unit: Divisor, now: Ps, ready: Ps) -> (u64, u64) {
        self.advance(unit.split(now.0 << FRACTION).0 / WORD);
        let start = unit.split(ready.0 << FRACTION).0.max(self.first * WORD);
        let due = start / WORD;
        let word = due.max(self.first + self.full);
        (word, if word == due { u64::MAX << (start % WORD) } else { u64::MAX })
    }

    /// Takes `count` starts, each at the group's distance after the one before, if the free units `free` of a word allow
    /// this from the first one on and the units nearby are in this word. Returns the bit of the last start. The effect
    /// equals one call of [`Calendar::take`] per start.
    #[inline]
    fn take_run(&mut self, group: u32, word: u64, free: u64, count: u64) -> Option<u64> {
        let Distances { any, group: near, .. } = self.distances;
        let (bit, length) = (u64::from(free.trailing_zeros()), count.checked_mul(near)?);
        if bit + 1 < near || bit + length > WORD || any > 2 {
            return None;
        }
        let run = (self.starts & (u64::MAX >> (WORD - length))) << bit;
        if free & run != run {
            return None;
        }
        let row = self.ring.row(self.first, word);
        row[TAKEN] |= if any == 2 { run | run << 1 | run >> 1 } else { run };
        if let Some(word) = row.get_mut(CLOSED + group as usize) {
            *word |= (u64::MAX >> (WORD - length - (near - 1))) << (bit + 1 - near);
        }
        Some(bit + length - near)
    }

    /// Takes the start at bit `bit` of a word: closes the units nearby.
    #[inline]
    fn take(&mut self, group: u32, word: u64, bit: u64) {
        let Distances { any, group: near, .. } = self.distances;
        let (first, column) = (self.first, CLOSED + group as usize);
        if bit >= near - 1 && bit + near <= WORD {
            let closed = |distance: u64| (u64::MAX >> (WORD - 2 * distance + 1)) << (bit + 1 - distance);
            let row = self.ring.row(first, word);
            row[TAKEN] |= closed(any);
            if let Some(word) = row.get_mut(column) {
                *word |= closed(near);
            }
            return;
        }
        let at = word * WORD + bit;
        self.ring.set(first, TAKEN, (at.saturating_sub(any - 1), at + any));
        if column < self.ring.columns {
            self.ring.set(first, column, (at.saturating_sub(near - 1), at + near));
        }
    }

    /// Time that [`Calendar::reserve_in`] takes for `count` commands on an idle resource.
    #[inline]
    pub(crate) fn idle_span(&self, count: u64) -> Ps {
        let Distances { any, group, .. } = self.distances;
        if count == 0 { Ps::ZERO } else { self.span((count - 1) * group + any) }
    }

    /// First free unit from `from` on after which reservations and windows are sparse: at most `most` units in a word's
    /// time.
    pub(crate) fn sparse_from(&mut self, now: Ps, from: Ps, most: u32) -> Ps {
        let Some(unit) = self.unit else { return from };
        self.advance(unit.split(now.0 << FRACTION).0 / WORD);
        let start = unit.split(from.0 << FRACTION).0.max(self.first * WORD);
        let (mut word, bit) = (start / WORD, start % WORD);
        let mut used = |word| {
            let row = self.ring.row(self.first, word);
            row[TAKEN] | row[WINDOWS]
        };
        loop {
            let (low, high) = (used(word) >> bit, used(word + 1));
            let window = if bit == 0 { low } else { low | high << (WORD - bit) };
            if window.count_ones() <= most && window != u64::MAX {
                return from.max(self.span(word * WORD + bit + u64::from(window.trailing_ones())));
            }
            word += 1;
        }
    }

    /// Opens a window from `from` to `until`, in the event at `now`.
    pub(crate) fn open_window(&mut self, now: Ps, from: Ps, until: Ps) {
        let Some(unit) = self.unit else { return };
        self.advance(unit.split(now.0 << FRACTION).0 / WORD);
        let (from, until) = (unit.split(from.0 << FRACTION).0, self.units(until));
        self.ring.set(self.first, WINDOWS, (from.saturating_sub(self.distances.any - 1), until));
    }

    /// Counts full words again, after reservations.
    #[inline]
    fn skip_full(&mut self) {
        while self.full <= self.ring.mask as u64 && self.ring.row(self.first, self.first + self.full)[TAKEN] == u64::MAX
        {
            self.full += 1;
        }
    }

    /// Drops the words before `word`.
    #[inline]
    fn advance(&mut self, word: u64) {
        if word <= self.first {
            return;
        }
        self.ring.clear(self.first, word);
        self.full = self.full.saturating_sub(word - self.first);
        self.first = word;
    }
}

/// The `count` lowest bits set in `bits`, at least one; all set bits if fewer are set.
#[inline]
fn lowest(bits: u64, count: u64) -> u64 {
    // The bits are mostly adjacent, because few reservations fall between others.
    if count < WORD {
        let first = u64::from(bits.trailing_zeros());
        if first + count <= WORD {
            let together = ((1 << count) - 1) << first;
            if bits & together == together {
                return together;
            }
        }
    }
    if count >= u64::from(bits.count_ones()) {
        return bits;
    }
    let rest = (0..count).fold(bits, |rest, _| rest & (rest - 1));
    bits & !rest
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A calendar whose units take 10 ps each.
    fn calendar() -> Calendar {
        Calendar::new(10 << FRACTION)
    }

    #[test]
    fn an_idle_resource_takes_as_long_as_the_work() {
        let mut calendar = calendar();
        assert_eq!(calendar.reserve(Ps(33), Ps(637), 4), Ps(677), "across a word's end, between two units");
        assert_eq!(calendar.reserve(Ps(10_000), Ps(10_010), 300), Ps(13_010), "longer than a word");
    }

    #[test]
    fn work_ready_at_once_queues_back_to_back() {
        let mut calendar = calendar();
        for i in 1..=1000 {
            assert_eq!(calendar.reserve(Ps(0), Ps(0), 3), Ps(30 * i));
        }
    }

    #[test]
    fn units_that_are_no_whole_picosecond_do_not_drift() {
        let mut calendar = Calendar::new((10 << FRACTION) / 3);
        let last = (0..30_000).map(|_| calendar.reserve(Ps(0), Ps(0), 1)).last();
        assert_eq!(last, Some(Ps(99_999)), "100 ns but for the rounding of a unit to 2^-16 ps");
    }

    #[test]
    fn work_that_is_ready_does_not_wait_for_work_that_is_not() {
        let mut calendar = calendar();
        assert_eq!(calendar.reserve(Ps(0), Ps(5000), 1), Ps(5010));
        assert_eq!(calendar.reserve(Ps(0), Ps(0), 1), Ps(10));
        assert_eq!(calendar.reserve(Ps(0), Ps(5000), 1), Ps(5020));
        assert_eq!(calendar.reserve(Ps(0), Ps(4990), 2), Ps(5030), "around reserved units");
    }

    #[test]
    fn no_unit_is_taken_twice() {
        let mut calendar = calendar();
        let mut units = 0;
        for i in 0..10_000_u64 {
            let now = Ps(i * 7);
            calendar.reserve(now, now + Ps(i * 7919 % 3000), 1 + i % 3);
            units += 1 + i % 3;
        }
        // At nearly three times its capacity, the resource is reserved without a gap except in the first words.
        let ends = calendar.reserve(Ps(70_000), Ps(70_000), 1);
        assert!((units..units + 2 * WORD).contains(&(ends.0 / 10)), "{ends} for {units} units");
    }

    /// A calendar for four groups: any two starts are 20 ps apart, two starts in a group 30 ps.
    fn grouped() -> Calendar {
        Calendar::with_distances(10 << FRACTION, Distances { groups: 4, any: 2, group: 3 })
    }

    #[test]
    fn a_group_keeps_its_distance_and_others_fill_the_gaps() {
        let mut calendar = grouped();
        assert_eq!(calendar.reserve_in(0, Ps(0), Ps(0), 3), Ps(80), "starts at 0, 30 and 60");
        assert_eq!(calendar.reserve_in(1, Ps(0), Ps(0), 1), Ps(100), "no gap holds a further command");
        let mut halves = Calendar::with_distances(10 << FRACTION, Distances { groups: 4, any: 1, group: 2 });
        assert_eq!(halves.reserve_in(0, Ps(0), Ps(0), 4), Ps(70), "starts at 0, 20, 40 and 60");
        assert_eq!(halves.reserve_in(1, Ps(0), Ps(0), 4), Ps(80), "starts at 10, 30, 50 and 70");
        assert_eq!(halves.reserve_in(0, Ps(0), Ps(0), 1), Ps(90));
    }

    #[test]
    fn starts_in_a_group_are_apart_in_any_order_of_requests() {
        let mut calendar = grouped();
        let mut starts = Vec::new();
        for i in 0..3000_u64 {
            let (group, now) = ((i * 31 % 7 % 4) as u32, Ps(i * 22));
            let end = calendar.reserve_in(group, now, now + Ps(i * 7919 % 2000), 1);
            starts.push((end.0 / 10 - 2, group));
        }
        starts.sort_unstable();
        assert!(starts.windows(2).all(|pair| pair[1].0 - pair[0].0 >= 2));
        for group in 0..4 {
            let own: Vec<u64> = starts.iter().filter(|start| start.1 == group).map(|start| start.0).collect();
            assert!(own.windows(2).all(|pair| pair[1] - pair[0] >= 3), "group {group}");
        }
    }

    #[test]
    fn a_window_is_for_commands_that_may_use_it() {
        let mut calendar = grouped();
        calendar.open_window(Ps(0), Ps(40), Ps(900));
        assert_eq!(calendar.reserve_in(0, Ps(0), Ps(0), 1), Ps(20));
        assert_eq!(calendar.reserve_in(1, Ps(0), Ps(0), 1), Ps(40), "the last to end before the window");
        assert_eq!(calendar.reserve_in(0, Ps(0), Ps(0), 1), Ps(920), "after the window");
        assert_eq!(calendar.reserve_in_window(0, Ps(0), Ps(0), 1), Ps(60), "inside the window");
    }

    #[test]
    fn a_time_is_sparse_if_a_words_time_after_it_has_few_reservations() {
        let mut calendar = calendar();
        calendar.reserve(Ps(0), Ps(0), 100);
        assert_eq!(calendar.sparse_from(Ps(0), Ps(0), 48), Ps(1000), "the first free unit");
        assert_eq!(calendar.sparse_from(Ps(0), Ps(0), 0), Ps(1280), "whole words are looked at");
        calendar.open_window(Ps(0), Ps(1000), Ps(5000));
        assert_eq!(calendar.sparse_from(Ps(0), Ps(0), 16), Ps(5120));
    }
}
