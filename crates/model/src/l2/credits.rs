//! Bounded outstanding operations, for example posted stores, and drains that wait for all operations begun before
//! them.
//!
//! A credit is returned by a call, in any order. Operations belong to generations: a drain ends the current generation,
//! and later operations do not delay the drain.

use std::collections::VecDeque;

/// All operations between two drains. Serves as the handle for the return of a credit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Generation(u32);

impl Generation {
    /// A number in place of a handle, for components without credits.
    pub(crate) fn numbered(number: u32) -> Generation {
        Generation(number)
    }

    /// Returns this number.
    pub(crate) fn number(self) -> u32 {
        self.0
    }
}

/// A wait for every credit taken before the drain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Drain(Generation);

/// Counters of a credit pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CreditsStats {
    /// Credits handed out.
    pub(crate) taken: u64,
    /// Number of requests refused because no credit was left.
    pub(crate) refused: u64,
    /// Maximum number of credits out simultaneously.
    pub(crate) peak: u32,
    /// Drains begun.
    pub(crate) drains: u64,
}

/// A pool of credits.
#[derive(Clone, Debug)]
pub struct Credits {
    limit: u32,
    out: u32,
    /// Number of credits out per generation, for generations that some pending drain or the future still needs. Oldest
    /// first; never empty, and the last record is the current generation.
    records: VecDeque<u32>,
    /// Number of the oldest record.
    oldest: u32,
    stats: CreditsStats,
}

impl Credits {
    /// A full pool with `limit` credits.
    pub fn new(limit: u32) -> Credits {
        Credits { limit, out: 0, records: VecDeque::from([0]), oldest: 0, stats: CreditsStats::default() }
    }

    /// Takes a credit in the current generation. `None` if no credit is left: the caller parks, and tries again when a
    /// credit is returned.
    #[inline]
    pub fn try_take(&mut self) -> Option<Generation> {
        if self.out >= self.limit {
            self.stats.refused += 1;
            return None;
        }
        Some(self.take())
    }

    /// Takes a credit even if none is left, for operations that must not be refused: for example, write-backs of dirty
    /// bytes. The pool refuses further callers until enough credits have been returned.
    #[inline]
    pub(crate) fn take(&mut self) -> Generation {
        self.out += 1;
        self.stats.taken += 1;
        self.stats.peak = self.stats.peak.max(self.out);
        let newest = self.records.len() - 1;
        self.records[newest] += 1;
        Generation(self.oldest + newest as u32)
    }

    /// Returns a credit from `generation`. Call `Credits::pop_drained` afterwards.
    ///
    /// Panics if no credit from this generation is out.
    #[inline]
    pub fn give_back(&mut self, generation: Generation) {
        let record = generation.0.checked_sub(self.oldest).and_then(|age| self.records.get_mut(age as usize));
        let record = record.filter(|record| **record > 0);
        *record.unwrap_or_else(|| panic!("no credit of {generation:?} is out")) -= 1;
        self.out -= 1;
    }

    /// Number of credits available to callers.
    #[inline]
    pub(crate) fn available(&self) -> u32 {
        self.limit.saturating_sub(self.out)
    }

    /// Begins a drain for every credit taken so far. [`Credits::pop_drained`] yields the drain, immediately or after
    /// some later return.
    pub(crate) fn drain(&mut self) -> Drain {
        let drain = Drain(Generation(self.oldest + self.records.len() as u32 - 1));
        self.records.push_back(0);
        self.stats.drains += 1;
        drain
    }

    /// Returns the oldest pending drain once every credit taken before it is back. Call repeatedly until the result is
    /// `None`, after every drain begun and every credit returned.
    #[inline]
    pub(crate) fn pop_drained(&mut self) -> Option<Drain> {
        if self.records.len() == 1 || self.records[0] != 0 {
            return None;
        }
        self.records.pop_front();
        self.oldest += 1;
        Some(Drain(Generation(self.oldest - 1)))
    }

    /// Number of credits out.
    pub(crate) fn out(&self) -> u32 {
        self.out
    }

    /// Counters so far.
    #[cfg(test)]
    pub(crate) fn stats(&self) -> &CreditsStats {
        &self.stats
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn no_more_than_the_limit_are_out() {
        let mut credits = Credits::new(2);
        let first = credits.try_take().unwrap();
        assert!(credits.try_take().is_some());
        assert!(credits.try_take().is_none());
        credits.give_back(first);
        assert!(credits.try_take().is_some());
        assert_eq!(credits.stats().refused, 1);
    }

    #[test]
    fn a_drain_ignores_what_was_taken_later() {
        let mut credits = Credits::new(8);
        let before = credits.try_take().unwrap();
        let drain = credits.drain();
        let after = credits.try_take().unwrap();
        credits.give_back(after);
        assert_eq!(credits.pop_drained(), None);
        credits.give_back(before);
        assert_eq!(credits.pop_drained(), Some(drain));
    }

    #[test]
    fn a_drain_of_nothing_is_over_at_once() {
        let mut credits = Credits::new(8);
        let drain = credits.drain();
        assert_eq!(credits.pop_drained(), Some(drain));
        assert_eq!(credits.pop_drained(), None);
    }

    #[test]
    fn a_later_drain_waits_for_older_generations() {
        let mut credits = Credits::new(8);
        let old = credits.try_take().unwrap();
        let first = credits.drain();
        let young = credits.try_take().unwrap();
        let second = credits.drain();
        credits.give_back(young);
        assert_eq!(credits.pop_drained(), None);
        credits.give_back(old);
        assert_eq!(credits.pop_drained(), Some(first));
        assert_eq!(credits.pop_drained(), Some(second));
    }

    #[test]
    #[should_panic(expected = "no credit of Generation(0) is out")]
    fn a_credit_returned_twice_panics() {
        let mut credits = Credits::new(8);
        let generation = credits.try_take().unwrap();
        credits.give_back(generation);
        credits.give_back(generation);
    }

    #[derive(Clone, Copy, Debug)]
    enum CreditStep {
        Take,
        GiveBack(prop::sample::Index),
        Drain,
    }

    fn step() -> impl Strategy<Value = CreditStep> {
        prop_oneof![
            4 => Just(CreditStep::Take),
            3 => any::<prop::sample::Index>().prop_map(CreditStep::GiveBack),
            1 => Just(CreditStep::Drain),
        ]
    }

    /// Reference model: all credits ever taken, each with a flag if returned, and drains with the number of credits
    /// taken before.
    #[derive(Default)]
    struct NaiveCredits {
        taken: Vec<(Generation, bool)>,
        drains: VecDeque<(Drain, usize)>,
    }

    impl NaiveCredits {
        fn out(&self) -> u32 {
            self.taken.iter().filter(|(_, back)| !back).count() as u32
        }

        fn return_one(&mut self, which: prop::sample::Index) -> Option<Generation> {
            let mut waiting: Vec<_> = self.taken.iter_mut().filter(|(_, back)| !back).collect();
            let index = (!waiting.is_empty()).then(|| which.index(waiting.len()))?;
            waiting[index].1 = true;
            Some(waiting[index].0)
        }

        fn pop_drained(&mut self) -> Option<Drain> {
            let &(drain, before) = self.drains.front()?;
            self.taken[..before].iter().all(|(_, back)| *back).then(|| self.drains.pop_front())?;
            Some(drain)
        }
    }

    proptest! {
        #[test]
        fn it_does_what_a_list_of_all_credits_does(
            limit in 1..12_u32,
            steps in prop::collection::vec(step(), 1..300),
        ) {
            let (mut credits, mut naive) = (Credits::new(limit), NaiveCredits::default());
            for step in steps {
                match step {
                    CreditStep::Take => {
                        let room = naive.out() < limit;
                        let taken = credits.try_take();
                        prop_assert_eq!(taken.is_some(), room);
                        naive.taken.extend(taken.map(|generation| (generation, false)));
                    }
                    CreditStep::GiveBack(which) => {
                        if let Some(generation) = naive.return_one(which) {
                            credits.give_back(generation);
                        }
                    }
                    CreditStep::Drain => naive.drains.push_back((credits.drain(), naive.taken.len())),
                }
                prop_assert_eq!(credits.pop_drained(), naive.pop_drained());
                prop_assert_eq!(credits.available(), limit - naive.out());
            }
        }
    }
}
