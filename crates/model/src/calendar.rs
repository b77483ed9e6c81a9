//! A resource reserved out of order: a bus, say, whose users become ready at times that are not the order
//! they ask in.
//!
//! A queue that serves in call order would make a request that is ready now wait behind one that asked
//! earlier but is ready much later. Here time is cut into units, each free or taken, and a request takes the
//! first free ones from when it is ready, together or not.

use crate::set_index::Divisor;
use std::collections::VecDeque;
use tombolo_types::Ps;

/// Fraction bits of a unit's length in picoseconds, so that units that are no whole number do not drift.
pub(crate) const FRACTION: u32 = 16;

/// Units of one word of [`Calendar::taken`].
const WORD: u64 = 64;

/// Reservations of one resource that does one thing at a time.
#[derive(Clone, Debug)]
pub struct Calendar {
    /// Length of a unit in 2^-16 ps; `None` where work takes no time.
    unit: Option<Divisor>,
    length: u64,
    /// Number of the first word of `taken`: nothing may be reserved before it.
    first: u64,
    /// A bit for each unit of time, set where it is taken.
    taken: VecDeque<u64>,
    /// Leading words of `taken` without a free unit.
    full: usize,
}

impl Calendar {
    /// An idle resource with units of `length`/65536 ps; zero for one that nothing ever waits for.
    pub fn new(length: u64) -> Calendar {
        let unit = (length > 0).then(|| Divisor::new(length));
        Calendar { unit, length, first: 0, taken: VecDeque::new(), full: 0 }
    }

    /// How long `units` take.
    #[inline]
    pub fn span(&self, units: u64) -> Ps {
        Ps((units * self.length) >> FRACTION)
    }

    /// Reserves `units` from `ready` on; returns when they are over. `now`, at most `ready`, tells that
    /// nothing will be asked for before it. Times are below 2^48 ps (281 s).
    #[inline]
    pub fn reserve(&mut self, now: Ps, ready: Ps, units: u64) -> Ps {
        let Some(unit) = self.unit else { return ready };
        if units == 0 {
            return ready;
        }
        self.advance(unit.split(now.0 << FRACTION).0 / WORD);
        let start = unit.split(ready.0 << FRACTION).0.max(self.first * WORD) - self.first * WORD;
        let due = (start / WORD) as usize;
        let mut word = due.max(self.full);
        let mut open = if word == due { u64::MAX << (start % WORD) } else { u64::MAX };
        let mut left = units;
        let mut last = 0;
        while left > 0 {
            if word >= self.taken.len() {
                self.taken.resize(word + 1, 0);
            }
            let free = !self.taken[word] & open;
            if free != 0 {
                let take = lowest(free, left);
                self.taken[word] |= take;
                left -= u64::from(take.count_ones());
                last = (self.first + word as u64) * WORD + u64::from(take.ilog2());
            }
            open = u64::MAX;
            word += 1;
        }
        while self.taken.get(self.full) == Some(&u64::MAX) {
            self.full += 1;
        }
        (ready + self.span(units)).max(self.span(last + 1))
    }

    /// Forgets the words before `word`.
    #[inline]
    fn advance(&mut self, word: u64) {
        if word <= self.first {
            return;
        }
        let past = (word - self.first).min(self.taken.len() as u64) as usize;
        self.taken.drain(..past);
        self.full = self.full.saturating_sub(past);
        self.first = word;
    }
}

/// The `count` lowest bits that are set in `bits`, or all of them where there are fewer.
#[inline]
fn lowest(bits: u64, count: u64) -> u64 {
    if count >= u64::from(bits.count_ones()) {
        return bits;
    }
    let rest = (0..count).fold(bits, |rest, _| rest & (rest - 1));
    bits & !rest
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Units of 10 ps.
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
        assert_eq!(calendar.reserve(Ps(0), Ps(4990), 2), Ps(5030), "around what is taken");
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
        // Offered at nearly three times what it can do, it is taken without a gap but for the first words.
        let ends = calendar.reserve(Ps(70_000), Ps(70_000), 1);
        assert!((units..units + 2 * WORD).contains(&(ends.0 / 10)), "{ends} for {units} units");
    }
}
