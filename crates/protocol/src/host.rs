//! Host duties around [`Coherence::step`] and [`Nodes::step`](crate::client_home::Nodes::step): running, parking and
//! retrying requests, deferring requests that lack a resource, serving waiters after a fill, applying invalidations
//! to lines, and selecting lines for a release's write-back.
//!
//! Requests for a line, or for a block, run in their arrival order at an L2. [`take`] parks a request behind the
//! parked requests, [`resume`] runs them in order, and a [`Backlog`] keeps the order among requests that lack a
//! resource.
//!
//! Both worlds drive these functions, each through a view into its own state: arrays and miss registers in the
//! timing model, small vectors in the explorer. A view defines storage and sending. The order of actions, which
//! decides load results, is defined in this module.

use crate::broken_rule::BrokenRule;
use crate::coherence::{Coherence, Pending, Protocol};
use crate::sm_rules::L1Protocol;
use std::collections::VecDeque;
use tombolo_types::{Line, Mask};

/// The outcome of trying a request or a write-back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepOutcome {
    /// The protocol accepted it.
    Accepted,
    /// The protocol refused it because the line's miss is pending. Nothing has changed.
    Stalled,
}

/// The outcome of a request's arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// The request has run, or is parked on its line's miss.
    Admitted,
    /// The request must wait for a store credit, or behind a request that waits for a credit.
    AwaitsCredit,
}

/// A single request's arrival at an L2.
pub trait Arrival {
    /// A resource, besides a store credit, that a host with bounded resources may lack for the request.
    type MissingResource;

    /// True if the request is a read.
    fn is_read(&self) -> bool;
    /// True if an older store on the channel ([`crate::coherence::Channels::up`]) still waits here for a credit.
    fn follows_waiting(&self) -> bool;
    /// True if the request needs no store credit, or a credit is available.
    fn has_credit(&self) -> bool;
    /// True if requests are parked on the line's pending miss.
    fn has_parked(&self) -> bool;
    /// Parks the request on that miss, behind the parked requests.
    fn park(&mut self);
    /// Runs the protocol step and carries out its effects.
    ///
    /// # Errors
    /// Names the resource that the host lacks. Nothing has changed.
    fn run(&mut self) -> Result<StepOutcome, Self::MissingResource>;
}

/// True if a request may overtake an older store on its channel that waits for a credit. Without a broken rule the
/// answer is always false. Requests on different channels may overtake. The line's order at its L2 then equals
/// arrival order, whichever request waits.
#[inline]
pub fn passes_waiting(protocol: &impl Protocol, is_read: bool) -> bool {
    is_read && protocol.broken(BrokenRule::LoadPassesStore)
}

/// Handles a request that arrives at an L2, or that is retried. Behind a store that waits for a credit, the request
/// waits too. Behind a request parked on the line's miss it parks too, and a request refused by the protocol also
/// parks.
///
/// # Errors
/// Names the resource that the host lacks. Nothing has changed.
#[inline]
pub fn take<A: Arrival>(protocol: &impl Protocol, arrival: &mut A) -> Result<Admission, A::MissingResource> {
    if arrival.follows_waiting() && !passes_waiting(protocol, arrival.is_read()) {
        return Ok(Admission::AwaitsCredit);
    }
    let waits_its_turn = arrival.has_parked() && !protocol.broken(BrokenRule::RequestPassesParked);
    if waits_its_turn {
        arrival.park();
    } else if !arrival.has_credit() {
        return Ok(Admission::AwaitsCredit);
    } else if arrival.run()? == StepOutcome::Stalled {
        arrival.park();
    }
    Ok(Admission::Admitted)
}

/// Requests that lack an L2 resource, for instance a miss register, in the order in which they will be retried.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Backlog<R>(VecDeque<R>);

impl<R> Default for Backlog<R> {
    fn default() -> Backlog<R> {
        Backlog(VecDeque::new())
    }
}

impl<R> Backlog<R> {
    /// True if the backlog is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The request at position `at`, counted from the first to run.
    #[inline]
    pub fn get(&self, at: usize) -> Option<&R> {
        self.0.get(at)
    }

    /// The requests in order.
    pub fn iter(&self) -> impl Iterator<Item = &R> {
        self.0.iter()
    }

    /// The requests in order, mutable in place.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut R> {
        self.0.iter_mut()
    }

    /// Adds an arriving request at the end.
    #[inline]
    pub fn push(&mut self, request: R) {
        self.0.push_back(request);
    }

    /// Removes the first request to run.
    #[inline]
    pub fn pop(&mut self) -> Option<R> {
        self.0.pop_front()
    }

    /// Adds requests that previously waited for another event and lack a resource on retry, in this order, at the
    /// front. They are older than the backlog's requests for their lines, because a backlog request has waited here
    /// since its arrival.
    pub fn defer(&mut self, protocol: &impl Protocol, requests: impl DoubleEndedIterator<Item = R>) {
        if protocol.broken(BrokenRule::RequestPassesDeferred) {
            self.0.extend(requests);
            return;
        }
        requests.rev().for_each(|request| self.0.push_front(request));
    }
}

/// An L2 whose requests may lack a resource.
pub trait DeferringL2 {
    /// A request.
    type Item;

    /// The requests that lack a resource.
    fn backlog(&mut self) -> &mut Backlog<Self::Item>;
    /// Handles a request like [`take`]. Returns false, without any change, if the request lacks a resource.
    fn take(&mut self, item: &Self::Item) -> bool;
}

/// Handles an arriving request. It joins the backlog if it lacks a resource, or if older requests do. Returns true
/// if the request now waits in the backlog.
#[inline]
pub fn offer<B: DeferringL2>(host: &mut B, item: B::Item) -> bool {
    let waits = !host.backlog().is_empty() || !host.take(&item);
    if waits {
        host.backlog().push(item);
    }
    waits
}

/// Handles a freed resource: backlog requests run in order, up to the first that still lacks a resource.
pub fn serve<B: DeferringL2>(host: &mut B) {
    while let Some(item) = host.backlog().pop() {
        if !host.take(&item) {
            host.backlog().0.push_front(item);
            return;
        }
    }
}

/// A read that waits for bytes from a miss.
pub trait AwaitingRead: Copy {
    /// Bytes the read waits for.
    fn mask(&self) -> Mask;
    /// A copy of this read that waits for `mask`.
    fn for_bytes(self, mask: Mask) -> Self;
}

/// The arrival of a miss's bytes at an L1 or an L2.
pub trait FillTarget {
    /// A waiting read.
    type Waiter: AwaitingRead;
    /// The miss's waiters, removed from it in arrival order.
    type Detached;

    /// Installs the installable bytes. Returns true if the miss is over, with no byte in flight any more.
    fn install(&mut self) -> bool;
    /// Removes the waiters from the miss. A miss that is over ends, and also releases its parked requests.
    fn release(&mut self, over: bool) -> Self::Detached;
    /// The next waiter among the removed waiters.
    fn next_waiter(&mut self, held: &mut Self::Detached) -> Option<Self::Waiter>;
    /// Delivers the awaited bytes to a waiter. `complete`: set if the waiter waits for no further bytes.
    fn serve(&mut self, waiter: Self::Waiter, complete: bool);
    /// Puts a waiter back, behind the current waiters.
    fn wait(&mut self, waiter: Self::Waiter);
}

/// Handles the arrival of a miss's bytes `come`: they install, and each waiter receives its share, in arrival
/// order. Returns the parked requests if the miss is over.
#[inline]
pub fn fill<F: FillTarget>(protocol: &impl L1Protocol, filling: &mut F, come: Mask) -> Option<F::Detached> {
    let over = filling.install();
    let mut held = filling.release(over);
    while let Some(waiter) = filling.next_waiter(&mut held) {
        let (given, rest) = (waiter.mask() & come, waiter.mask() & !come);
        if !given.is_empty() {
            filling.serve(waiter.for_bytes(given), rest.is_empty());
        }
        if !rest.is_empty() {
            filling.wait(waiter.for_bytes(rest));
        }
        if protocol.broken(BrokenRule::FillForgetsOthers) {
            while filling.next_waiter(&mut held).is_some() {}
        }
    }
    over.then_some(held)
}

/// Work that waits at an L2 for the end of a miss, besides the reads answered by its bytes.
pub trait MissCompletion {
    /// The parked requests, in arrival order.
    type Detached;
    /// A parked request.
    type Item;

    /// Writes the line back for the releases that were refused while the miss was pending, if any.
    fn flush(&mut self, held: &mut Self::Detached);
    /// The next parked request.
    fn next_parked(&mut self, held: &mut Self::Detached) -> Option<Self::Item>;
    /// True if both requests share a channel, so neither may overtake the other while it waits for a credit.
    fn keep_order(&self, one: &Self::Item, other: &Self::Item) -> bool;
    /// Handles a request like [`take`]. `follows`: set if an older store on its channel waits for a credit. Returns
    /// `None`, without any change, if the host lacks a resource for the request.
    fn take(&mut self, item: &Self::Item, follows: bool) -> Option<Admission>;
    /// Queues requests for a credit, in this order, ahead of all waiting requests on their channels, which arrived
    /// later.
    fn wait_first(&mut self, waiting: VecDeque<Self::Item>);
    /// Defers requests that the host cannot run yet, in this order, ahead of all requests on their channels: both
    /// requests that wait for a credit and later arrivals ([`Backlog::defer`]).
    fn defer(&mut self, deferred: VecDeque<Self::Item>);
}

/// Resumes work after a miss is over and its waiters are served: releases write the line back, then the parked
/// requests run again in order. They are older than all requests that wait for a credit on their channels. A parked
/// request without a credit therefore waits at the front, and later parked requests on its channel wait behind it.
#[inline]
pub fn resume<R: MissCompletion>(host: &mut R, mut held: R::Detached) {
    host.flush(&mut held);
    let (mut waiting, mut deferred) = (VecDeque::new(), VecDeque::new());
    while let Some(item) = host.next_parked(&mut held) {
        let follows = waiting.iter().any(|other| host.keep_order(other, &item));
        let taken = if follows || deferred.is_empty() { host.take(&item, follows) } else { None };
        match taken {
            Some(Admission::Admitted) => {}
            Some(Admission::AwaitsCredit) => waiting.push_back(item),
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

/// A region's lines at an L2, under invalidation by a home or under replacement of their directory entry.
pub trait Region {
    /// Performs the protocol's step for the region as a whole.
    fn step(&mut self);
    /// Performs the protocol's step for a single line in the region, if present.
    fn drop_line(&mut self, line: Line);
}

/// Applies a home's invalidation to the region around `line`, whose lines are `lines`.
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

/// Evicts a region's directory entry; the region's lines are `lines`. If the entry also tracks lines in this L2,
/// the L2 evicts them: dirty bytes go to the next level up. A line whose miss is in flight stays, and allocates an
/// entry again on arrival: its data is as new as the next level's copy, so no byte is stale.
#[inline]
pub fn replace_entry(protocol: &impl Coherence, region: &mut impl Region, lines: impl Iterator<Item = Line>) {
    region.step();
    if protocol.tracks_own() {
        lines.for_each(|line| region.drop_line(line));
    }
}

/// The lines selected by a bulk invalidation: all lines in an L1, or some classes in an L2.
pub trait Bulk {
    /// Drops the present lines: in an L2 each by the protocol's step, or all at once if the step would have no
    /// effect.
    fn drop_lines(&mut self);
    /// Applies a change to each pending miss among the selected lines.
    fn each_miss(&mut self, change: impl FnMut(&mut Pending));
}

/// Performs a bulk invalidation: present lines are dropped; data in flight serves its waiters and never installs.
#[inline]
pub fn invalidate_bulk(bulk: &mut impl Bulk) {
    bulk.drop_lines();
    bulk.each_miss(Pending::invalidate);
}

/// A dirty line at an L2, offered to a release for write-back.
pub trait WriteBack {
    /// Asks the protocol to write the line back.
    fn write_back(&mut self) -> StepOutcome;
    /// Makes the release wait for the end of the line's miss, which then writes the line back.
    fn write_back_later(&mut self);
}

/// Performs a release's action on a dirty line: its bytes go to the next level up, immediately or when its miss is
/// over.
#[inline]
pub fn flush(protocol: &impl Protocol, line: &mut impl WriteBack) {
    if line.write_back() == StepOutcome::Stalled && !protocol.broken(BrokenRule::ReleaseForgetsPending) {
        line.write_back_later();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hmg::Hmg;
    use crate::vi::{ProtocolOptions, Tracks};

    /// A host that logs each action requested from it.
    #[derive(Default)]
    struct ActionLog {
        told: Vec<String>,
        /// Properties of the arriving request: read or not, behind a waiting store, and lacking a credit.
        is_read: bool,
        follows_waiting: bool,
        lacks_credit: bool,
        /// Set if a request is parked, and if a tried request stalls.
        has_parked: bool,
        stalls: bool,
        /// Bytes still in flight.
        missing: Mask,
        waiting: Vec<Reader>,
        /// Parked requests, and the requests among them that lack a resource or a credit.
        parked: Vec<u32>,
        lacking: Option<u32>,
        uncredited: Option<u32>,
    }

    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Reader {
        name: char,
        mask: Mask,
    }

    impl AwaitingRead for Reader {
        fn mask(&self) -> Mask {
            self.mask
        }

        fn for_bytes(self, mask: Mask) -> Reader {
            Reader { mask, ..self }
        }
    }

    impl ActionLog {
        fn tell(&mut self, what: String) {
            self.told.push(what);
        }
    }

    impl Arrival for ActionLog {
        type MissingResource = ();

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

        fn run(&mut self) -> Result<StepOutcome, ()> {
            self.tell("run".to_owned());
            Ok(if self.stalls { StepOutcome::Stalled } else { StepOutcome::Accepted })
        }
    }

    impl FillTarget for ActionLog {
        type Waiter = Reader;
        type Detached = std::vec::IntoIter<Reader>;

        fn install(&mut self) -> bool {
            self.tell("install".to_owned());
            self.missing.is_empty()
        }

        fn release(&mut self, over: bool) -> Self::Detached {
            self.tell(format!("release {over}"));
            std::mem::take(&mut self.waiting).into_iter()
        }

        fn next_waiter(&mut self, held: &mut Self::Detached) -> Option<Reader> {
            held.next()
        }

        fn serve(&mut self, Reader { name, mask }: Reader, complete: bool) {
            self.tell(format!("serve {name} {:b} {complete}", mask.0));
        }

        fn wait(&mut self, waiter: Reader) {
            self.waiting.push(waiter);
        }
    }

    impl MissCompletion for ActionLog {
        type Detached = ();
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

        fn take(&mut self, item: &u32, follows: bool) -> Option<Admission> {
            if follows {
                return Some(Admission::AwaitsCredit);
            }
            self.tell(format!("take {item}"));
            match self.lacking == Some(*item) {
                true => None,
                false if self.uncredited == Some(*item) => Some(Admission::AwaitsCredit),
                false => Some(Admission::Admitted),
            }
        }

        fn wait_first(&mut self, waiting: VecDeque<u32>) {
            self.tell(format!("wait {waiting:?}"));
        }

        fn defer(&mut self, deferred: VecDeque<u32>) {
            self.tell(format!("defer {deferred:?}"));
        }
    }

    impl Region for ActionLog {
        fn step(&mut self) {
            self.tell("region".to_owned());
        }

        fn drop_line(&mut self, line: Line) {
            self.tell(format!("drop {}", line.0));
        }
    }

    impl WriteBack for ActionLog {
        fn write_back(&mut self) -> StepOutcome {
            if self.stalls { StepOutcome::Stalled } else { StepOutcome::Accepted }
        }

        fn write_back_later(&mut self) {
            self.tell("later".to_owned());
        }
    }

    fn hmg(rule: Option<BrokenRule>) -> Hmg {
        Hmg::new(ProtocolOptions { broken_rule: rule, ..ProtocolOptions::default() })
    }

    #[test]
    fn a_request_parks_behind_parked_requests_or_when_refused() {
        let told = |has_parked, stalls, rule| {
            let mut log = ActionLog { has_parked, stalls, ..ActionLog::default() };
            take(&hmg(rule), &mut log).expect("nothing is lacking");
            log.told
        };
        assert_eq!(told(false, false, None), ["run"]);
        assert_eq!(told(false, true, None), ["run", "park"]);
        assert_eq!(told(true, false, None), ["park"]);
        assert_eq!(told(true, false, Some(BrokenRule::RequestPassesParked)), ["run"]);
    }

    #[test]
    fn no_request_overtakes_a_store_of_its_channel_that_waits_for_a_credit() {
        let told = |log: ActionLog, rule| {
            let mut log = log;
            if take(&hmg(rule), &mut log).expect("nothing is lacking") == Admission::AwaitsCredit {
                log.tell("wait".to_owned());
            }
            log.told
        };
        let behind = |is_read| ActionLog { is_read, follows_waiting: true, has_parked: true, ..ActionLog::default() };
        assert_eq!(told(ActionLog { lacks_credit: true, ..ActionLog::default() }, None), ["wait"]);
        assert_eq!(told(ActionLog { lacks_credit: true, has_parked: true, ..ActionLog::default() }, None), ["park"]);
        assert_eq!([true, false].map(|is_read| told(behind(is_read), None)), [["wait"], ["wait"]]);
        let broken = Some(BrokenRule::LoadPassesStore);
        assert_eq!([true, false].map(|is_read| told(behind(is_read), broken)), [["park"], ["wait"]]);
    }

    #[test]
    fn each_waiter_receives_arrived_bytes_and_waits_for_the_rest() {
        let waiting = vec![Reader { name: 'a', mask: Mask(0b11) }, Reader { name: 'b', mask: Mask(0b100) }];
        let mut log = ActionLog { missing: Mask(0b110), waiting, ..ActionLog::default() };
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
        let mut log = ActionLog { waiting, ..ActionLog::default() };
        fill(&hmg(Some(BrokenRule::FillForgetsOthers)), &mut log, Mask(1));
        assert_eq!(log.told, ["install", "release true", "serve a 1 true"]);
    }

    #[test]
    fn releases_write_back_before_parked_requests_and_a_blocked_request_holds_the_rest() {
        let mut log = ActionLog { parked: vec![1, 2, 3], lacking: Some(2), ..ActionLog::default() };
        resume(&mut log, ());
        assert_eq!(log.told, ["flush", "take 1", "take 2", "defer [2, 3]"]);
    }

    #[test]
    fn a_parked_request_waits_first_for_a_credit_and_its_channel_follows() {
        let mut log = ActionLog { parked: vec![1, 2, 3, 4], uncredited: Some(1), ..ActionLog::default() };
        resume(&mut log, ());
        assert_eq!(log.told, ["flush", "take 1", "take 2", "take 4", "wait [1, 3]"]);
        let mut log =
            ActionLog { parked: vec![1, 2, 3, 4], uncredited: Some(1), lacking: Some(2), ..ActionLog::default() };
        resume(&mut log, ());
        assert_eq!(log.told, ["flush", "take 1", "take 2", "wait [1, 3]", "defer [2, 4]"]);
    }

    impl DeferringL2 for (Backlog<u32>, u32) {
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
    fn an_arriving_request_waits_behind_the_backlog_whatever_it_lacks() {
        let mut host = (Backlog::default(), 5);
        assert_eq!([3, 7, 2, 8].map(|item| offer(&mut host, item)), [false, true, true, true]);
        assert_eq!(order(&host.0), [7, 2, 8]);
        host.1 = 8;
        serve(&mut host);
        assert_eq!(order(&host.0), [8]);
    }

    #[test]
    fn deferred_requests_go_first_in_their_order() {
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
            let mut log = ActionLog::default();
            invalidate_region(&hmg(rule), &mut log, Line(5), (4..8).map(Line));
            log.told
        };
        assert_eq!(told(None), ["region", "drop 4", "drop 5", "drop 6", "drop 7"]);
        assert_eq!(told(Some(BrokenRule::InvalidationReachesOneLine)), ["region", "drop 5"]);
    }

    #[test]
    fn a_replaced_entry_evicts_the_lines_of_its_home_if_it_tracks_them() {
        let told = |tracks| {
            let mut log = ActionLog::default();
            replace_entry(
                &Hmg::<true>::new(ProtocolOptions { tracks, ..ProtocolOptions::default() }),
                &mut log,
                (4..6).map(Line),
            );
            log.told
        };
        assert_eq!(told(Tracks::Shared), ["region"]);
        assert_eq!(told(Tracks::All), ["region", "drop 4", "drop 5"]);
    }

    #[test]
    fn a_release_waits_for_a_line_whose_miss_is_pending() {
        let told = |stalls, rule| {
            let mut log = ActionLog { stalls, ..ActionLog::default() };
            flush(&hmg(rule), &mut log);
            log.told
        };
        assert_eq!(told(true, None), ["later"]);
        assert!(told(false, None).is_empty() && told(true, Some(BrokenRule::ReleaseForgetsPending)).is_empty());
    }
}
