//! A resource reserved out of order, for example a bus whose users become ready in an order different from their
//! request order.
//!
//! A queue in call order would make a request that is ready now wait behind an earlier request that becomes ready much
//! later. A calendar divides time into units, each free or reserved. A request reserves the first free units from its
//! ready time on, contiguous or not.

use crate::set_index::Divisor;
use tombolo_engine::HORIZON;
use tombolo_types::Ps;

/// Fraction bits of a unit's length in picoseconds, so units with a fractional length do not drift.
pub(crate) const FRACTION: u32 = 16;

/// Units per word in [`Calendar::taken`].
const WORD: u64 = 64;

/// Initial number of words. Assumed: the look-ahead needed without overload.
const FEWEST: usize = 4;

/// Reservations for a resource that serves a single request at a time.
#[derive(Clone, Debug)]
pub struct Calendar {
    /// Length of a unit in 2^-16 ps; `None` if work takes no time.
    unit: Option<Divisor>,
    length: u64,
    /// Number of the first word: the earliest time for reservations.
    first: u64,
    /// Ring of words with a bit for each unit of time, set when the unit is reserved. The ring's length is a power of
    /// two; word `w`, from `first` on, has index `w` modulo the length.
    taken: Vec<u64>,
    /// Number of leading words, from `first` on, without a free unit.
    full: u64,
}

impl Calendar {
    /// An idle resource, whose units take `length`/65536 ps each; a length of zero means no request ever waits.
    pub fn new(length: u64) -> Calendar {
        let unit = (length > 0).then(|| Divisor::new(length));
        Calendar { unit, length, first: 0, taken: vec![0; FEWEST], full: 0 }
    }

    /// Duration for `units`, bounded by [`HORIZON`].
    #[inline]
    pub fn span(&self, units: u64) -> Ps {
        Ps(units.saturating_mul(self.length) >> FRACTION)
    }

    /// Number of units to cover a span; a partial unit counts as a whole unit.
    pub fn units(&self, span: Ps) -> u64 {
        if self.unit.is_none() { 0 } else { (span.0 << FRACTION).div_ceil(self.length) }
    }

    /// Reserves `units` from `ready` on; returns the end of the reservation. `now`, at most `ready`, is a lower bound
    /// for all later calls. Times are below [`HORIZON`]; a request ready later is never seen.
    #[inline]
    pub fn reserve(&mut self, now: Ps, ready: Ps, units: u64) -> Ps {
        let Some(unit) = self.unit else { return ready };
        if units == 0 || ready >= HORIZON {
            return ready;
        }
        self.advance(unit.split(now.0 << FRACTION).0 / WORD);
        let start = unit.split(ready.0 << FRACTION).0.max(self.first * WORD);
        let due = start / WORD;
        let mut word = due.max(self.first + self.full);
        let mut open = if word == due { u64::MAX << (start % WORD) } else { u64::MAX };
        let mut left = units;
        let last = loop {
            let taken = self.word(word);
            let free = !*taken & open;
            if free != 0 {
                let take = lowest(free, left);
                *taken |= take;
                left -= u64::from(take.count_ones());
                if left == 0 {
                    break word * WORD + u64::from(take.ilog2());
                }
            }
            open = u64::MAX;
            word += 1;
        };
        while self.full < self.taken.len() as u64 && *self.word(self.first + self.full) == u64::MAX {
            self.full += 1;
        }
        (ready + self.span(units)).max(self.span(last + 1))
    }

    /// Word number `word`, at or after the first; grows the ring if necessary.
    #[inline]
    fn word(&mut self, word: u64) -> &mut u64 {
        if word - self.first >= self.taken.len() as u64 {
            self.grow(word);
        }
        let mask = self.taken.len() - 1;
        &mut self.taken[word as usize & mask]
    }

    /// Grows the ring to contain `word`.
    #[cold]
    fn grow(&mut self, word: u64) {
        let before = std::mem::take(&mut self.taken);
        let held = before.len() as u64;
        let words = ((word - self.first + 1) as usize).next_power_of_two();
        self.taken = vec![0; words];
        for at in self.first..self.first + held {
            self.taken[at as usize % words] = before[(at % held) as usize];
        }
    }

    /// Drops the words before `word`.
    #[inline]
    fn advance(&mut self, word: u64) {
        if word <= self.first {
            return;
        }
        let mask = self.taken.len() - 1;
        for past in self.first..word.min(self.first + self.taken.len() as u64) {
            self.taken[past as usize & mask] = 0;
        }
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
}
