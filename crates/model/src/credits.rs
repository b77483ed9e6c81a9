//! Bounded outstanding operations (posted stores, say), and drains that wait for those taken before them.
//!
//! A credit comes back by a call, in any order, or at a time that is known when the operation is sent.
//! Operations belong to generations: a drain ends the current one, so it is not held up by what comes later.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use tombolo_types::Ps;

/// The operations between two drains. The handle by which a credit comes back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Generation(u32);

impl Generation {
    /// A number in the place of a handle, for who has no credits.
    pub fn numbered(number: u32) -> Generation {
        Generation(number)
    }

    /// That number.
    pub fn number(self) -> u32 {
        self.0
    }
}

/// A wait for every credit taken before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Drain(Generation);

/// A drain that nothing unknown holds up any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drained {
    /// Which.
    pub drain: Drain,
    /// When the last credit taken before it comes back; zero where none was ever taken. May be past.
    pub at: Ps,
}

/// Counters of a pool of credits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CreditsStats {
    /// Credits handed out.
    pub taken: u64,
    /// Times that none was left.
    pub refused: u64,
    /// Most out at once.
    pub peak: u32,
    /// Drains begun.
    pub drains: u64,
}

/// What is known of one generation.
#[derive(Clone, Copy, Debug, Default)]
struct Record {
    /// Credits out whose return is not known.
    unknown: u32,
    /// Latest known return.
    latest: Ps,
}

/// A pool of credits.
#[derive(Clone, Debug)]
pub struct Credits {
    limit: u32,
    out: u32,
    /// Future returns that are known.
    returns: BinaryHeap<Reverse<Ps>>,
    /// Generations that some unanswered drain or the future still needs, oldest first; never empty, and the
    /// last is the current one.
    records: VecDeque<Record>,
    /// Number of the oldest record.
    oldest: u32,
    /// Latest return of all generations older than that.
    latest: Ps,
    stats: CreditsStats,
}

impl Credits {
    /// A full pool of `limit` credits.
    pub fn new(limit: u32) -> Credits {
        Credits {
            limit,
            out: 0,
            returns: BinaryHeap::with_capacity(limit.min(4096) as usize),
            records: VecDeque::from([Record::default()]),
            oldest: 0,
            latest: Ps::ZERO,
            stats: CreditsStats::default(),
        }
    }

    /// Takes a credit at `now`, of the current generation. `None` where none is left: the caller parks, and
    /// tries again when one comes back (see [`Credits::next_return`]).
    #[inline]
    pub fn try_take(&mut self, now: Ps) -> Option<Generation> {
        if self.out >= self.limit {
            self.settle(now);
            if self.out >= self.limit {
                self.stats.refused += 1;
                return None;
            }
        }
        Some(self.take())
    }

    /// Takes a credit even where none is left: for what must not be refused, such as dirty bytes on their way
    /// out. The pool refuses others until as many have come back.
    #[inline]
    pub fn take(&mut self) -> Generation {
        self.out += 1;
        self.stats.taken += 1;
        self.stats.peak = self.stats.peak.max(self.out);
        let newest = self.records.len() - 1;
        self.records[newest].unknown += 1;
        Generation(self.oldest + newest as u32)
    }

    /// A credit of `generation` comes back at `now`. Ask [`Credits::pop_drained`] afterwards.
    ///
    /// Panics where no credit of that generation is out.
    #[inline]
    pub fn give_back(&mut self, now: Ps, generation: Generation) {
        self.know(generation, now);
        self.out -= 1;
    }

    /// A credit of `generation` will come back at `at`. Ask [`Credits::pop_drained`] afterwards.
    ///
    /// Panics where no credit of that generation is out.
    #[inline]
    pub fn return_at(&mut self, generation: Generation, at: Ps) {
        self.know(generation, at);
        self.returns.push(Reverse(at));
    }

    /// Credits that can be taken at `now`.
    #[inline]
    pub fn available(&mut self, now: Ps) -> u32 {
        self.settle(now);
        self.limit.saturating_sub(self.out)
    }

    /// The earliest return that is known and not yet settled; `None` where the next one comes by a call.
    pub fn next_return(&self) -> Option<Ps> {
        self.returns.peek().map(|&Reverse(at)| at)
    }

    /// Begins a drain of every credit taken so far. [`Credits::pop_drained`] yields it, at once or after some
    /// later return.
    pub fn drain(&mut self) -> Drain {
        let drain = Drain(Generation(self.oldest + self.records.len() as u32 - 1));
        self.records.push_back(Record::default());
        self.stats.drains += 1;
        drain
    }

    /// The oldest drain not yet yielded, once the return of every credit taken before it is known. To be
    /// asked until it says `None`, after every drain begun and every credit returned.
    #[inline]
    pub fn pop_drained(&mut self) -> Option<Drained> {
        if self.records.len() == 1 || self.records[0].unknown != 0 {
            return None;
        }
        self.latest = self.latest.max(self.records.pop_front()?.latest);
        self.oldest += 1;
        Some(Drained { drain: Drain(Generation(self.oldest - 1)), at: self.latest })
    }

    /// Credits out, as of the latest time this pool was asked at.
    pub fn out(&self) -> u32 {
        self.out
    }

    /// Counters so far.
    pub fn stats(&self) -> &CreditsStats {
        &self.stats
    }

    /// Takes back what has returned by `now`.
    #[inline]
    fn settle(&mut self, now: Ps) {
        while self.returns.peek().is_some_and(|&Reverse(at)| at <= now) {
            self.returns.pop();
            self.out -= 1;
        }
    }

    #[inline]
    fn know(&mut self, generation: Generation, at: Ps) {
        let record = generation.0.checked_sub(self.oldest).and_then(|age| self.records.get_mut(age as usize));
        let record = record.filter(|record| record.unknown > 0);
        let record = record.unwrap_or_else(|| panic!("no credit of {generation:?} is out"));
        record.unknown -= 1;
        record.latest = record.latest.max(at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn no_more_than_the_limit_are_out() {
        let mut credits = Credits::new(2);
        let first = credits.try_take(Ps(0)).unwrap();
        assert!(credits.try_take(Ps(0)).is_some());
        assert!(credits.try_take(Ps(0)).is_none());
        credits.give_back(Ps(1), first);
        assert!(credits.try_take(Ps(1)).is_some());
        assert_eq!(credits.stats().refused, 1);
    }

    #[test]
    fn a_credit_with_a_known_return_comes_back_then() {
        let mut credits = Credits::new(1);
        let generation = credits.try_take(Ps(0)).unwrap();
        assert_eq!(credits.next_return(), None);
        credits.return_at(generation, Ps(100));
        assert_eq!(credits.next_return(), Some(Ps(100)));
        assert!(credits.try_take(Ps(99)).is_none());
        assert!(credits.try_take(Ps(100)).is_some());
    }

    #[test]
    fn a_drain_ignores_what_was_taken_later() {
        let mut credits = Credits::new(8);
        let before = credits.try_take(Ps(0)).unwrap();
        let drain = credits.drain();
        let after = credits.try_take(Ps(1)).unwrap();
        credits.give_back(Ps(2), after);
        assert_eq!(credits.pop_drained(), None);
        credits.give_back(Ps(3), before);
        assert_eq!(credits.pop_drained(), Some(Drained { drain, at: Ps(3) }));
    }

    #[test]
    fn a_drain_of_nothing_is_over_at_once() {
        let mut credits = Credits::new(8);
        let drain = credits.drain();
        assert_eq!(credits.pop_drained(), Some(Drained { drain, at: Ps::ZERO }));
        assert_eq!(credits.pop_drained(), None);
    }

    #[test]
    fn a_later_drain_waits_for_older_generations() {
        let mut credits = Credits::new(8);
        let old = credits.try_take(Ps(0)).unwrap();
        let first = credits.drain();
        let young = credits.try_take(Ps(0)).unwrap();
        let second = credits.drain();
        credits.return_at(young, Ps(50));
        assert_eq!(credits.pop_drained(), None);
        credits.return_at(old, Ps(70));
        assert_eq!(credits.pop_drained(), Some(Drained { drain: first, at: Ps(70) }));
        assert_eq!(credits.pop_drained(), Some(Drained { drain: second, at: Ps(70) }));
    }

    #[test]
    #[should_panic(expected = "no credit of Generation(0) is out")]
    fn a_credit_returned_twice_panics() {
        let mut credits = Credits::new(8);
        let generation = credits.try_take(Ps(0)).unwrap();
        credits.give_back(Ps(0), generation);
        credits.give_back(Ps(0), generation);
    }

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Take,
        GiveBack(prop::sample::Index),
        ReturnAt(prop::sample::Index, u64),
        Drain,
        Wait(u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => Just(Step::Take),
            2 => any::<prop::sample::Index>().prop_map(Step::GiveBack),
            2 => (any::<prop::sample::Index>(), 0..50_u64).prop_map(|(which, after)| Step::ReturnAt(which, after)),
            1 => Just(Step::Drain),
            2 => (0..30_u64).prop_map(Step::Wait),
        ]
    }

    /// Every credit ever taken, with its return once known.
    #[derive(Default)]
    struct Naive {
        taken: Vec<(Generation, Option<Ps>)>,
        /// Each drain with how many credits were taken before it.
        drains: VecDeque<(Drain, usize)>,
    }

    impl Naive {
        fn out(&self, now: Ps) -> u32 {
            self.taken.iter().filter(|(_, back)| back.is_none_or(|at| at > now)).count() as u32
        }

        fn return_one(&mut self, which: prop::sample::Index, at: Ps) -> Option<Generation> {
            let mut waiting: Vec<_> = self.taken.iter_mut().filter(|(_, back)| back.is_none()).collect();
            let index = (!waiting.is_empty()).then(|| which.index(waiting.len()))?;
            waiting[index].1 = Some(at);
            Some(waiting[index].0)
        }

        fn pop_drained(&mut self) -> Option<Drained> {
            let &(drain, before) = self.drains.front()?;
            let at = self.taken[..before].iter().try_fold(Ps::ZERO, |at, (_, back)| Some(at.max((*back)?)))?;
            self.drains.pop_front();
            Some(Drained { drain, at })
        }
    }

    proptest! {
        #[test]
        fn it_does_what_a_list_of_all_credits_does(
            limit in 1..12_u32,
            steps in prop::collection::vec(step(), 1..300),
        ) {
            let (mut credits, mut naive, mut now) = (Credits::new(limit), Naive::default(), Ps::ZERO);
            for step in steps {
                match step {
                    Step::Take => {
                        let room = naive.out(now) < limit;
                        let taken = credits.try_take(now);
                        prop_assert_eq!(taken.is_some(), room);
                        naive.taken.extend(taken.map(|generation| (generation, None)));
                    }
                    Step::GiveBack(which) => {
                        if let Some(generation) = naive.return_one(which, now) {
                            credits.give_back(now, generation);
                        }
                    }
                    Step::ReturnAt(which, after) => {
                        if let Some(generation) = naive.return_one(which, now + Ps(after)) {
                            credits.return_at(generation, now + Ps(after));
                        }
                    }
                    Step::Drain => naive.drains.push_back((credits.drain(), naive.taken.len())),
                    Step::Wait(span) => now += Ps(span),
                }
                prop_assert_eq!(credits.pop_drained(), naive.pop_drained());
                prop_assert_eq!(credits.available(now), limit - naive.out(now));
            }
        }
    }
}
