//! What a host does around [`Coherence::step`] and [`Nodes::step`](crate::nodes::Nodes::step): which requests run, park, lack
//! something and run again, who is served when bytes come, what an invalidation reaches, what a release writes back.
//!
//! Requests of a line, or of a block, run in the order of their arrival at an L2: [`take`] parks one behind those that are
//! parked, [`resume`] runs these in their order, and a [`Backlog`] keeps it among those that lack a resource.
//!
//! Both worlds drive these functions, each through a view of what it keeps: the timing model of arrays and miss
//! registers, the explorer of small vectors. A view says how something is kept and sent; the order of things, which
//! decides what loads return, is here.

use crate::broken_rule::BrokenRule;
use crate::coherence::{Coherence, Pending, Protocol};
use std::collections::VecDeque;
use tombolo_types::{Line, Mask};

/// What became of a request or a write-back that was tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tried {
    /// It was taken.
    Taken,
    /// The protocol refused it while its line's miss is pending. Nothing has changed.
    Stalled,
}

/// What became of a request that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It has run, or is parked on its line's miss.
    Yes,
    /// It is to wait for a store credit, or behind who does.
    Waits,
}

/// The arrival of one request at an L2.
pub trait Arrival {
    /// What a host of bounded resources may lack for it, beside a store credit.
    type Lack;

    /// Whether it is a read.
    fn is_read(&self) -> bool;
    /// Whether a store waits here for a credit that comes before it on a channel ([`crate::coherence::Channels::up`]).
    fn follows_waiting(&self) -> bool;
    /// Whether it needs no store credit, or finds one.
    fn has_credit(&self) -> bool;
    /// Whether requests are parked on the pending miss of its line.
    fn has_parked(&self) -> bool;
    /// Parks it there, behind the others.
    fn park(&mut self);
    /// Has the protocol take it, and does what that asks for.
    ///
    /// # Errors
    /// Says what the host lacks. Nothing has changed.
    fn run(&mut self) -> Result<Tried, Self::Lack>;
}

/// Whether a request may pass a store that waits for a credit and came before it on its channel: none may. Those of other
/// channels may. The line's order at its L2 is then that of arrival, whoever waits.
#[inline]
pub fn passes_waiting(protocol: &impl Protocol, is_read: bool) -> bool {
    is_read && protocol.broken(BrokenRule::LoadPassesStore)
}

/// A request arrives at an L2, or runs again there. Behind a store that waits for a credit it waits too; behind one that
/// is parked on its line's miss it parks too, and so does one that the protocol refuses.
///
/// # Errors
/// Says what the host lacks. Nothing has changed.
#[inline]
pub fn take<A: Arrival>(protocol: &impl Protocol, arrival: &mut A) -> Result<Taken, A::Lack> {
    if arrival.follows_waiting() && !passes_waiting(protocol, arrival.is_read()) {
        return Ok(Taken::Waits);
    }
    let waits_its_turn = arrival.has_parked() && !protocol.broken(BrokenRule::RequestPassesParked);
    if waits_its_turn {
        arrival.park();
    } else if !arrival.has_credit() {
        return Ok(Taken::Waits);
    } else if arrival.run()? == Tried::Stalled {
        arrival.park();
    }
    Ok(Taken::Yes)
}

/// Requests that lack a resource of their L2, a miss register for instance, in the order in which they run again.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Backlog<R>(VecDeque<R>);

impl<R> Default for Backlog<R> {
    fn default() -> Backlog<R> {
        Backlog(VecDeque::new())
    }
}

impl<R> Backlog<R> {
    /// Whether no request is there.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The request at place `at`, counted from the one that runs first.
    #[inline]
    pub fn get(&self, at: usize) -> Option<&R> {
        self.0.get(at)
    }

    /// The requests in their order.
    pub fn iter(&self) -> impl Iterator<Item = &R> {
        self.0.iter()
    }

    /// The requests in their order, to be changed in place.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut R> {
        self.0.iter_mut()
    }

    /// Adds a request that arrives, behind all others.
    #[inline]
    pub fn push(&mut self, request: R) {
        self.0.push_back(request);
    }

    /// Removes the request that runs first.
    #[inline]
    pub fn pop(&mut self) -> Option<R> {
        self.0.pop_front()
    }

    /// Adds requests that have waited for something else before and lack a resource as they run again, in this order, ahead
    /// of all others. Those of their lines came before what is here of these: it waits here since it came.
    pub fn defer(&mut self, protocol: &impl Protocol, requests: impl DoubleEndedIterator<Item = R>) {
        if protocol.broken(BrokenRule::RequestPassesDeferred) {
            self.0.extend(requests);
            return;
        }
        requests.rev().for_each(|request| self.0.push_front(request));
    }
}

/// An L2 of which requests may lack a resource.
pub trait Backlogged {
    /// A request.
    type Item;

    /// The requests that lack one.
    fn backlog(&mut self) -> &mut Backlog<Self::Item>;
    /// Takes one, as [`take`] does. False where it lacks a resource, and nothing has changed.
    fn take(&mut self, item: &Self::Item) -> bool;
}

/// A request arrives. It lacks a resource, too, while others do that came before it. Returns whether it waits for one.
#[inline]
pub fn offer<B: Backlogged>(host: &mut B, item: B::Item) -> bool {
    let waits = !host.backlog().is_empty() || !host.take(&item);
    if waits {
        host.backlog().push(item);
    }
    waits
}

/// A resource has come free: those that lacked one run in their order, up to the first that does still.
pub fn serve<B: Backlogged>(host: &mut B) {
    while let Some(item) = host.backlog().pop() {
        if !host.take(&item) {
            host.backlog().0.push_front(item);
            return;
        }
    }
}

/// A read that waits for bytes of a miss.
pub trait Waits: Copy {
    /// Bytes it waits for.
    fn mask(&self) -> Mask;
    /// The same, waiting for `mask`.
    fn of(self, mask: Mask) -> Self;
}

/// The arrival of bytes of a miss at an L1 or an L2.
pub trait Filling {
    /// A read that waits.
    type Waiter: Waits;
    /// Those who waited on the miss, taken from it in the order they came.
    type Held;

    /// Installs what may be installed. Whether the miss is over: nothing of it is on its way any more.
    fn install(&mut self) -> bool;
    /// Takes those who wait from the miss; one that is over ends, and gives up those who parked on it as well.
    fn release(&mut self, over: bool) -> Self::Held;
    /// The next of them that waits.
    fn next_waiter(&mut self, held: &mut Self::Held) -> Option<Self::Waiter>;
    /// Gives a waiter the bytes it waits for. `complete`: it waits for nothing more.
    fn serve(&mut self, waiter: Self::Waiter, complete: bool);
    /// Has a waiter wait again, behind those that do.
    fn wait(&mut self, waiter: Self::Waiter);
}

/// The bytes `come` of a miss have come: they install, and each who waited is given its own, in the order of arrival.
/// Returns who parked on the miss where it is over.
#[inline]
pub fn fill<F: Filling>(protocol: &impl Protocol, filling: &mut F, come: Mask) -> Option<F::Held> {
    let over = filling.install();
    let mut held = filling.release(over);
    while let Some(waiter) = filling.next_waiter(&mut held) {
        let (given, rest) = (waiter.mask() & come, waiter.mask() & !come);
        if !given.is_empty() {
            filling.serve(waiter.of(given), rest.is_empty());
        }
        if !rest.is_empty() {
            filling.wait(waiter.of(rest));
        }
        if protocol.broken(BrokenRule::FillForgetsOthers) {
            while filling.next_waiter(&mut held).is_some() {}
        }
    }
    over.then_some(held)
}

/// What waits at an L2 for the end of a miss, beside reads that its bytes answer.
pub trait Resuming {
    /// Those who parked, in the order they came.
    type Held;
    /// A request that parked.
    type Item;

    /// Writes the line back for the releases that were refused while the miss was pending, if any were.
    fn flush(&mut self, held: &mut Self::Held);
    /// The next of those that parked.
    fn next_parked(&mut self, held: &mut Self::Held) -> Option<Self::Item>;
    /// Whether neither of two may pass the other while that waits for a credit: they are of one channel.
    fn keep_order(&self, one: &Self::Item, other: &Self::Item) -> bool;
    /// Takes one, as [`take`] does. `follows`: whether a store waits for a credit that comes before it on its channel. `None`
    /// where the host lacks something for it, and nothing has changed.
    fn take(&mut self, item: &Self::Item, follows: bool) -> Option<Taken>;
    /// Has them wait for a credit, in this order, ahead of all of their channels that wait: those came later.
    fn wait_first(&mut self, waiting: VecDeque<Self::Item>);
    /// Keeps those that the host cannot take yet, in this order, ahead of all of their channels: of what waits for a credit,
    /// and of what arrives later ([`Backlog::defer`]).
    fn defer(&mut self, deferred: VecDeque<Self::Item>);
}

/// A miss is over and its waiters are served: releases write the line back, then the parked run again in their order. They
/// came before all that waits for a credit now on their channels. One that has no credit itself waits ahead of that, and
/// those of its channel that parked behind it follow.
#[inline]
pub fn resume<R: Resuming>(host: &mut R, mut held: R::Held) {
    host.flush(&mut held);
    let (mut waiting, mut deferred) = (VecDeque::new(), VecDeque::new());
    while let Some(item) = host.next_parked(&mut held) {
        let follows = waiting.iter().any(|other| host.keep_order(other, &item));
        let taken = if follows || deferred.is_empty() { host.take(&item, follows) } else { None };
        match taken {
            Some(Taken::Yes) => {}
            Some(Taken::Waits) => waiting.push_back(item),
            None => deferred.push_back(item),
        }
    }
    if !waiting.is_empty() {
        host.wait_first(waiting);
    }
    if !deferred.is_empty() {
        host.defer(deferred);
    }
}

/// The lines of a region at an L2, which a home invalidates or whose directory entry is replaced.
pub trait Region {
    /// The protocol's step for the region as a whole.
    fn step(&mut self);
    /// The protocol's step for one line of it, where that is present.
    fn drop_line(&mut self, line: Line);
}

/// A home's invalidation of the region of `line`, whose lines are `lines`.
#[inline]
pub fn invalidate_region(
    protocol: &impl Protocol,
    region: &mut impl Region,
    line: Line,
    lines: impl Iterator<Item = Line>,
) {
    region.step();
    let all = !protocol.broken(BrokenRule::InvalidationReachesOneLine);
    lines.filter(|&other| all || other == line).for_each(|other| region.drop_line(other));
}

/// The directory entry of a region makes room, whose lines are `lines`. Where it stands for what is here too, its L2
/// evicts those lines: dirty bytes go one level up. One whose miss is on its way stays, and takes an entry again when that
/// has come: what comes is as new as what its level above holds, so nothing of it is stale.
#[inline]
pub fn replace_entry(protocol: &impl Coherence, region: &mut impl Region, lines: impl Iterator<Item = Line>) {
    region.step();
    if protocol.tracks_own() {
        lines.for_each(|line| region.drop_line(line));
    }
}

/// The lines of a cache that a bulk invalidation means: of an L1 all, of an L2 those of some classes.
pub trait Bulk {
    /// Drops those that are present: of an L2 each by the protocol's step, or at once where that would ask for nothing.
    fn drop_lines(&mut self);
    /// Changes each of their misses on the way.
    fn each_miss(&mut self, change: impl FnMut(&mut Pending));
}

/// A bulk invalidation: what is here goes, what is on its way serves those who wait and never installs.
#[inline]
pub fn invalidate_bulk(bulk: &mut impl Bulk) {
    bulk.drop_lines();
    bulk.each_miss(Pending::invalidate);
}

/// A dirty line at an L2, for a release to write back.
pub trait WriteBack {
    /// Has the protocol write it back.
    fn write_back(&mut self) -> Tried;
    /// Has the release wait for the end of the line's miss, which writes it back.
    fn write_back_later(&mut self);
}

/// A release's part at one dirty line: its bytes go one level up now, or when its miss is over.
#[inline]
pub fn flush(protocol: &impl Protocol, line: &mut impl WriteBack) {
    if line.write_back() == Tried::Stalled && !protocol.broken(BrokenRule::ReleaseForgetsPending) {
        line.write_back_later();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hmg::Hmg;
    use crate::vi::{Options, Tracks};

    /// A host that writes down what it is asked to do.
    #[derive(Default)]
    struct Log {
        told: Vec<String>,
        /// Whether it is a read, whether a store ahead of it waits, and whether it lacks a credit itself.
        is_read: bool,
        follows_waiting: bool,
        lacks_credit: bool,
        /// Whether something is parked, and what becomes of a request that is tried.
        has_parked: bool,
        stalls: bool,
        /// Bytes that are still to come.
        missing: Mask,
        waiting: Vec<Reader>,
        /// Requests that parked, and which of them lacks something.
        parked: Vec<u32>,
        lacking: Option<u32>,
        uncredited: Option<u32>,
    }

    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Reader {
        name: char,
        mask: Mask,
    }

    impl Waits for Reader {
        fn mask(&self) -> Mask {
            self.mask
        }

        fn of(self, mask: Mask) -> Reader {
            Reader { mask, ..self }
        }
    }

    impl Log {
        fn tell(&mut self, what: String) {
            self.told.push(what);
        }
    }

    impl Arrival for Log {
        type Lack = ();

        fn is_read(&self) -> bool {
            self.is_read
        }

        fn follows_waiting(&self) -> bool {
            self.follows_waiting
        }

        fn has_credit(&self) -> bool {
            !self.lacks_credit
        }

        fn has_parked(&self) -> bool {
            self.has_parked
        }

        fn park(&mut self) {
            self.tell("park".to_owned());
        }

        fn run(&mut self) -> Result<Tried, ()> {
            self.tell("run".to_owned());
            Ok(if self.stalls { Tried::Stalled } else { Tried::Taken })
        }
    }

    impl Filling for Log {
        type Waiter = Reader;
        type Held = std::vec::IntoIter<Reader>;

        fn install(&mut self) -> bool {
            self.tell("install".to_owned());
            self.missing.is_empty()
        }

        fn release(&mut self, over: bool) -> Self::Held {
            self.tell(format!("release {over}"));
            std::mem::take(&mut self.waiting).into_iter()
        }

        fn next_waiter(&mut self, held: &mut Self::Held) -> Option<Reader> {
            held.next()
        }

        fn serve(&mut self, Reader { name, mask }: Reader, complete: bool) {
            self.tell(format!("serve {name} {:b} {complete}", mask.0));
        }

        fn wait(&mut self, waiter: Reader) {
            self.waiting.push(waiter);
        }
    }

    impl Resuming for Log {
        type Held = ();
        type Item = u32;

        fn flush(&mut self, (): &mut ()) {
            self.tell("flush".to_owned());
        }

        fn next_parked(&mut self, (): &mut ()) -> Option<u32> {
            (!self.parked.is_empty()).then(|| self.parked.remove(0))
        }

        fn keep_order(&self, one: &u32, other: &u32) -> bool {
            one % 2 == other % 2
        }

        fn take(&mut self, item: &u32, follows: bool) -> Option<Taken> {
            if follows {
                return Some(Taken::Waits);
            }
            self.tell(format!("take {item}"));
            match self.lacking == Some(*item) {
                true => None,
                false if self.uncredited == Some(*item) => Some(Taken::Waits),
                false => Some(Taken::Yes),
            }
        }

        fn wait_first(&mut self, waiting: VecDeque<u32>) {
            self.tell(format!("wait {waiting:?}"));
        }

        fn defer(&mut self, deferred: VecDeque<u32>) {
            self.tell(format!("defer {deferred:?}"));
        }
    }

    impl Region for Log {
        fn step(&mut self) {
            self.tell("region".to_owned());
        }

        fn drop_line(&mut self, line: Line) {
            self.tell(format!("drop {}", line.0));
        }
    }

    impl WriteBack for Log {
        fn write_back(&mut self) -> Tried {
            if self.stalls { Tried::Stalled } else { Tried::Taken }
        }

        fn write_back_later(&mut self) {
            self.tell("later".to_owned());
        }
    }

    fn hmg(rule: Option<BrokenRule>) -> Hmg {
        Hmg::new(Options { broken_rule: rule, ..Options::default() })
    }

    #[test]
    fn a_request_parks_behind_the_parked_and_where_it_is_refused() {
        let told = |has_parked, stalls, rule| {
            let mut log = Log { has_parked, stalls, ..Log::default() };
            take(&hmg(rule), &mut log).expect("nothing is lacking");
            log.told
        };
        assert_eq!(told(false, false, None), ["run"]);
        assert_eq!(told(false, true, None), ["run", "park"]);
        assert_eq!(told(true, false, None), ["park"]);
        assert_eq!(told(true, false, Some(BrokenRule::RequestPassesParked)), ["run"]);
    }

    #[test]
    fn nothing_passes_a_store_of_its_channel_that_waits_for_a_credit() {
        let told = |log: Log, rule| {
            let mut log = log;
            if take(&hmg(rule), &mut log).expect("nothing is lacking") == Taken::Waits {
                log.tell("wait".to_owned());
            }
            log.told
        };
        let behind = |is_read| Log { is_read, follows_waiting: true, has_parked: true, ..Log::default() };
        assert_eq!(told(Log { lacks_credit: true, ..Log::default() }, None), ["wait"]);
        assert_eq!(told(Log { lacks_credit: true, has_parked: true, ..Log::default() }, None), ["park"]);
        assert_eq!([true, false].map(|is_read| told(behind(is_read), None)), [["wait"], ["wait"]]);
        let broken = Some(BrokenRule::LoadPassesStore);
        assert_eq!([true, false].map(|is_read| told(behind(is_read), broken)), [["park"], ["wait"]]);
    }

    #[test]
    fn each_waiter_is_given_what_came_and_waits_for_the_rest() {
        let waiting = vec![Reader { name: 'a', mask: Mask(0b11) }, Reader { name: 'b', mask: Mask(0b100) }];
        let mut log = Log { missing: Mask(0b110), waiting, ..Log::default() };
        assert!(fill(&hmg(None), &mut log, Mask(0b1)).is_none());
        assert_eq!(log.told, ["install", "release false", "serve a 1 false"]);
        assert_eq!(log.waiting, [Reader { name: 'a', mask: Mask(0b10) }, Reader { name: 'b', mask: Mask(0b100) }]);
        log.told.clear();
        log.missing = Mask::NONE;
        assert!(fill(&hmg(None), &mut log, Mask(0b110)).is_some());
        assert_eq!(log.told, ["install", "release true", "serve a 10 true", "serve b 100 true"]);
    }

    #[test]
    fn a_fill_that_forgets_others_serves_the_first() {
        let waiting = ['a', 'b', 'c'].map(|name| Reader { name, mask: Mask(1) }).to_vec();
        let mut log = Log { waiting, ..Log::default() };
        fill(&hmg(Some(BrokenRule::FillForgetsOthers)), &mut log, Mask(1));
        assert_eq!(log.told, ["install", "release true", "serve a 1 true"]);
    }

    #[test]
    fn releases_write_back_before_the_parked_run_and_none_passes_one_that_cannot() {
        let mut log = Log { parked: vec![1, 2, 3], lacking: Some(2), ..Log::default() };
        resume(&mut log, ());
        assert_eq!(log.told, ["flush", "take 1", "take 2", "defer [2, 3]"]);
    }

    #[test]
    fn one_that_parked_waits_for_a_credit_ahead_of_others_and_its_channel_follows() {
        let mut log = Log { parked: vec![1, 2, 3, 4], uncredited: Some(1), ..Log::default() };
        resume(&mut log, ());
        assert_eq!(log.told, ["flush", "take 1", "take 2", "take 4", "wait [1, 3]"]);
        let mut log = Log { parked: vec![1, 2, 3, 4], uncredited: Some(1), lacking: Some(2), ..Log::default() };
        resume(&mut log, ());
        assert_eq!(log.told, ["flush", "take 1", "take 2", "wait [1, 3]", "defer [2, 4]"]);
    }

    impl Backlogged for (Backlog<u32>, u32) {
        type Item = u32;

        fn backlog(&mut self) -> &mut Backlog<u32> {
            &mut self.0
        }

        fn take(&mut self, item: &u32) -> bool {
            *item < self.1
        }
    }

    fn order(backlog: &Backlog<u32>) -> Vec<u32> {
        backlog.iter().copied().collect()
    }

    #[test]
    fn one_that_arrives_waits_behind_those_that_lack_something_whatever_itself_lacks() {
        let mut host = (Backlog::default(), 5);
        assert_eq!([3, 7, 2, 8].map(|item| offer(&mut host, item)), [false, true, true, true]);
        assert_eq!(order(&host.0), [7, 2, 8]);
        host.1 = 8;
        serve(&mut host);
        assert_eq!(order(&host.0), [8]);
    }

    #[test]
    fn those_that_run_again_and_lack_something_go_ahead_in_their_order() {
        let deferred = |rule| {
            let mut backlog = Backlog::default();
            [7, 8].into_iter().for_each(|item| backlog.push(item));
            backlog.defer(&hmg(rule), [1, 2].into_iter());
            order(&backlog)
        };
        assert_eq!(deferred(None), [1, 2, 7, 8]);
        assert_eq!(deferred(Some(BrokenRule::RequestPassesDeferred)), [7, 8, 1, 2]);
    }

    #[test]
    fn an_invalidation_reaches_the_region_once_and_each_of_its_lines() {
        let told = |rule| {
            let mut log = Log::default();
            invalidate_region(&hmg(rule), &mut log, Line(5), (4..8).map(Line));
            log.told
        };
        assert_eq!(told(None), ["region", "drop 4", "drop 5", "drop 6", "drop 7"]);
        assert_eq!(told(Some(BrokenRule::InvalidationReachesOneLine)), ["region", "drop 5"]);
    }

    #[test]
    fn a_replaced_entry_takes_the_lines_of_its_home_where_it_stands_for_them() {
        let told = |tracks| {
            let mut log = Log::default();
            replace_entry(&Hmg::<true>::new(Options { tracks, ..Options::default() }), &mut log, (4..6).map(Line));
            log.told
        };
        assert_eq!(told(Tracks::Shared), ["region"]);
        assert_eq!(told(Tracks::All), ["region", "drop 4", "drop 5"]);
    }

    #[test]
    fn a_release_waits_for_a_line_whose_miss_is_pending() {
        let told = |stalls, rule| {
            let mut log = Log { stalls, ..Log::default() };
            flush(&hmg(rule), &mut log);
            log.told
        };
        assert_eq!(told(true, None), ["later"]);
        assert!(told(false, None).is_empty() && told(true, Some(BrokenRule::ReleaseForgetsPending)).is_empty());
    }
}
