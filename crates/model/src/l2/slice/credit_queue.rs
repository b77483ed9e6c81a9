//! Stores without a credit, and the requests queued behind them. Requests to different lanes may overtake.

use super::{Admission, Slice, SliceRequest};
use crate::l2::mshr::list::{List, Slab};
use crate::module::context::SliceContext;
use crate::observe::value_probe::Contents;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use tombolo_protocol::Coherence;
use tombolo_protocol::effects::Delivery;
use tombolo_types::Line;

/// Requests at a level that wait for a store credit, or behind such a store, grouped into lanes. A lane is the line or
/// the region whose requests stay in order on the channels between modules.
#[derive(Clone, Debug)]
pub(super) struct CreditQueue<R> {
    /// Waiting requests per lane; each lane starts with a store.
    lanes: FxHashMap<Line, List>,
    requests: Slab<R>,
    /// Lane of each waiting store, oldest store first.
    stores: VecDeque<Line>,
    /// State of the module in which every lane's first store lacks a resource, if it is known.
    blocked: Option<PublicationState>,
}

/// What decides at a publishing module whether any store obtains a credit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PublicationState {
    /// Changes to the publications of all lines.
    publications: u64,
    /// Changes to the mappings of all pages.
    mappings: u64,
    /// Room for a store from this module, and for a forwarded one.
    has_room: [bool; 2],
}

impl PublicationState {
    /// The state now; `None` if the module does not publish.
    fn now<C, D: Contents>(here: &SliceContext<'_, '_, C, D>) -> Option<PublicationState> {
        let publications = here.uncore.publisher.as_ref()?.changes();
        let has_room = [false, true].map(|forwarded| here.uncore.drains.has_room(forwarded));
        Some(PublicationState { publications, mappings: here.config.map.changes(), has_room })
    }
}

/// Lane whose first store has obtained a credit.
struct LaneTurn {
    lane: Line,
    list: List,
    is_first: bool,
}

impl<R: Copy> CreditQueue<R> {
    /// Creates an empty structure.
    pub(super) fn new() -> CreditQueue<R> {
        CreditQueue { lanes: FxHashMap::default(), requests: Slab::new(), stores: VecDeque::new(), blocked: None }
    }

    /// True if no request waits.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.stores.is_empty()
    }

    /// True if a store in `lane` waits.
    pub(super) fn holds(&self, lane: Line) -> bool {
        self.lanes.contains_key(&lane)
    }

    /// Appends a request to its lane.
    pub(super) fn push(&mut self, lane: Line, request: R, is_store: bool) {
        if is_store {
            self.stores.push_back(lane);
        }
        let list = self.lanes.entry(lane).or_insert(List::EMPTY);
        self.requests.push(list, request);
    }

    /// Inserts requests ahead of their lane, starting with a store. Stores among these requests count as the oldest.
    fn push_first(&mut self, lane: Line, requests: impl IntoIterator<Item = R>, is_store: impl Fn(&R) -> bool) {
        self.blocked = None;
        let mut list = List::EMPTY;
        for request in requests {
            if is_store(&request) {
                self.stores.push_front(lane);
            }
            self.requests.push(&mut list, request);
        }
        let mut later = self.lanes.remove(&lane).unwrap_or(List::EMPTY);
        while let Some(request) = self.requests.pop(&mut later) {
            self.requests.push(&mut list, request);
        }
        self.lanes.insert(lane, list);
    }

    /// Removes and returns all requests in a lane.
    pub(super) fn take_lane(&mut self, lane: Line) -> VecDeque<R> {
        let mut list = self.lanes.remove(&lane).unwrap_or(List::EMPTY);
        self.stores.retain(|&other| other != lane);
        std::iter::from_fn(|| self.requests.pop(&mut list)).collect()
    }

    /// First request in the lane with the oldest store.
    fn oldest(&self) -> Option<&R> {
        let lane = self.stores.front()?;
        self.requests.values(self.lanes[lane]).next()
    }

    /// Starts the turn for the oldest store's lane, after the store has obtained a credit.
    fn begin(&mut self) -> Option<LaneTurn> {
        let lane = self.stores.pop_front()?;
        let list = self.lanes.remove(&lane).expect("a lane is kept as long as a store of it waits");
        Some(LaneTurn { lane, list, is_first: true })
    }

    /// Returns the turn's next request: first its store, then the following requests without need for a credit. The
    /// remainder of the lane continues to wait.
    fn next(&mut self, turn: &mut LaneTurn, is_store: impl Fn(&R) -> bool) -> Option<R> {
        let next = self.requests.values(turn.list).next()?;
        if !turn.is_first && is_store(next) {
            self.lanes.insert(turn.lane, turn.list);
            return None;
        }
        turn.is_first = false;
        self.requests.pop(&mut turn.list)
    }

    /// Ends a turn at `request`, which cannot run: removes and returns the request together with the remainder of the
    /// lane.
    fn give_up(&mut self, mut turn: LaneTurn, request: R) -> VecDeque<R> {
        let mut rest = VecDeque::from([request]);
        while let Some(request) = self.requests.pop(&mut turn.list) {
            rest.push_back(request);
        }
        self.stores.retain(|&lane| lane != turn.lane);
        rest
    }

    /// All waiting requests, lane by lane, starting with the oldest store's lane.
    pub(super) fn requests(&self) -> impl Iterator<Item = &R> {
        let is_first = |&(index, lane): &(usize, &Line)| !self.stores.iter().take(index).any(|other| other == lane);
        let lanes = self.stores.iter().enumerate().filter(is_first).map(|(_, lane)| lane);
        lanes.flat_map(|lane| self.requests.values(self.lanes[lane]))
    }
}

impl<D: Contents> Slice<D> {
    /// Ordering lane of a line: requests in the same lane stay in order on the channels between modules.
    pub(super) fn lane<C: Coherence>(&self, line: Line, here: &SliceContext<'_, '_, C, D>) -> Line {
        match here.config.protocol.channels().up {
            Delivery::FifoPerLine => line,
            Delivery::FifoPerRegion => self.directory.region_of(line),
            Delivery::Fifo | Delivery::Unordered => unreachable!("no protocol declares it for requests"),
        }
    }

    /// True if a waiting store must stay ahead of this request.
    #[inline]
    pub(super) fn follows_waiting<C: Coherence>(
        &self,
        item: &SliceRequest<D>,
        here: &SliceContext<'_, '_, C, D>,
    ) -> bool {
        let waiting = &self.uncredited[item.level()];
        !waiting.is_empty() && waiting.holds(self.lane(item.body.line, here))
    }

    /// Queues a request until a store credit is available, or behind an older store without credit.
    pub(super) fn wait_for_credit<C: Coherence>(
        &mut self,
        item: SliceRequest<D>,
        here: &mut SliceContext<'_, '_, C, D>,
    ) {
        let lane = self.lane(item.body.line, here);
        let waiting = &mut self.uncredited[item.level()];
        if waiting.blocked.is_some() && waiting.blocked != PublicationState::now(here) {
            waiting.blocked = None;
        }
        waiting.push(lane, item, !item.is_read());
        if here.uncore.publisher.is_some() {
            self.publish_early(&item, here);
        }
        here.shared.stats.queued += 1;
        self.queued += 1;
    }

    /// Queues requests to a line ahead of their lanes, because of their earlier arrival.
    pub(super) fn wait_first<C: Coherence>(
        &mut self,
        mut waiting: VecDeque<SliceRequest<D>>,
        here: &mut SliceContext<'_, '_, C, D>,
    ) {
        here.shared.stats.queued += waiting.len() as u64;
        self.queued += waiting.len() as u32;
        if here.uncore.publisher.is_some() {
            waiting.iter().for_each(|item| self.publish_early(item, here));
        }
        while let Some(first) = waiting.front() {
            let (level, lane) = (first.level(), self.lane(first.body.line, here));
            let (these, others) = waiting.into_iter().partition(|item| item.level() == level);
            let these: VecDeque<SliceRequest<D>> = these;
            self.uncredited[level].push_first(lane, these, |item| !item.is_read());
            waiting = others;
        }
    }

    /// Retries a level's stores that can obtain a credit, oldest first, each with the following requests that need
    /// none.
    pub(super) fn serve_uncredited<C: Coherence>(&mut self, level: usize, here: &mut SliceContext<'_, '_, C, D>) {
        let state = PublicationState::now(here);
        if state.is_some() && state == self.uncredited[level].blocked {
            return;
        }
        let mut is_blocked = true;
        for _ in 0..self.uncredited[level].stores.len() {
            let Some(&first) = self.uncredited[level].oldest() else { return };
            if !first.credit_left(here) {
                if here.uncore.publisher.is_none() {
                    return;
                }
                // A store in this lane may have been queued since: an atomic must wait until it is published.
                self.publish_early(&first, here);
                // This store's missing resource, a queue slot or a reply, may be available to a store in another lane.
                self.uncredited[level].stores.rotate_left(1);
                continue;
            }
            is_blocked = false;
            let Some(mut turn) = self.uncredited[level].begin() else { return };
            while let Some(item) = self.uncredited[level].next(&mut turn, |item| !item.is_read()) {
                if self.take(&item, here.out.now(), here) == Admission::NoMshr {
                    // The request lacks an MSHR, so the rest of its lane must wait for an MSHR as well.
                    let rest = self.uncredited[level].give_up(turn, item);
                    self.queued -= rest.len() as u32;
                    self.requeue_first(&rest, here);
                    break;
                }
                self.queued -= 1;
            }
        }
        self.uncredited[level].blocked = state.filter(|_| is_blocked);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Test request: lane, arrival number, and true for a store.
    type Numbered = (u64, usize, bool);

    fn push(waiting: &mut CreditQueue<Numbered>, request: Numbered) {
        waiting.push(Line(request.0), request, request.2);
    }

    /// Requests that run after a single credit.
    fn turn(waiting: &mut CreditQueue<Numbered>) -> Vec<Numbered> {
        let Some(mut turn) = waiting.begin() else { return Vec::new() };
        std::iter::from_fn(|| waiting.next(&mut turn, |request| request.2)).collect()
    }

    #[test]
    fn the_oldest_store_is_first_and_what_follows_it_keeps_its_place() {
        let mut waiting = CreditQueue::new();
        let all = [(1, 0, true), (2, 1, true), (1, 2, false), (1, 3, true), (2, 4, false)];
        all.into_iter().for_each(|request| push(&mut waiting, request));
        assert_eq!(waiting.requests().map(|request| request.1).collect::<Vec<_>>(), [0, 2, 3, 1, 4]);
        assert_eq!(turn(&mut waiting), [all[0], all[2]]);
        assert_eq!(turn(&mut waiting), [all[1], all[4]]);
        assert_eq!(turn(&mut waiting), [all[3]]);
        assert!(waiting.is_empty() && !waiting.holds(Line(1)));
    }

    #[test]
    fn a_lane_that_is_given_up_leaves_no_turn_behind() {
        let mut waiting = CreditQueue::new();
        let all = [(1, 0, true), (2, 1, true), (1, 2, false), (1, 3, true)];
        all.into_iter().for_each(|request| push(&mut waiting, request));
        let mut turn = waiting.begin().expect("three stores wait");
        let first = waiting.next(&mut turn, |request| request.2).expect("a turn begins with its store");
        assert_eq!(waiting.give_up(turn, first), [all[0], all[2], all[3]]);
        assert_eq!(waiting.requests().collect::<Vec<_>>(), [&all[1]]);
    }

    #[test]
    fn what_parked_waits_ahead_of_its_lane() {
        let mut waiting = CreditQueue::new();
        let later = [(2, 2, true), (1, 3, true), (1, 4, false)];
        later.into_iter().for_each(|request| push(&mut waiting, request));
        let parked = [(1, 0, true), (1, 1, false)];
        waiting.push_first(Line(1), parked, |request| request.2);
        assert_eq!(turn(&mut waiting), parked);
        assert_eq!(turn(&mut waiting), [later[0]]);
        assert_eq!(turn(&mut waiting), [later[1], later[2]]);
        assert!(waiting.is_empty());
        waiting.push_first(Line(3), parked, |request| request.2);
        push(&mut waiting, (3, 2, true));
        assert_eq!(waiting.take_lane(Line(3)), [parked[0], parked[1], (3, 2, true)]);
        assert!(waiting.is_empty() && waiting.take_lane(Line(4)).is_empty());
    }

    proptest! {
        /// Arrivals and credits in arbitrary order. Each lane keeps its arrival order, as the explorer assumes; stores
        /// run in arrival order, and a request waits only behind a store in its own lane.
        #[test]
        fn each_lane_keeps_its_order_of_arrival(steps in prop::collection::vec((0..4_u64, any::<bool>(), 0..3_u8), 0..200)) {
            let mut waiting = CreditQueue::new();
            let mut ran: Vec<Numbered> = Vec::new();
            for (number, (lane, is_store, credits)) in steps.into_iter().enumerate() {
                if is_store || waiting.holds(Line(lane)) {
                    push(&mut waiting, (lane, number, is_store));
                } else {
                    ran.push((lane, number, false));
                }
                (0..credits).for_each(|_| ran.extend(turn(&mut waiting)));
            }
            while !waiting.is_empty() {
                ran.extend(turn(&mut waiting));
            }
            for lane in 0..4 {
                let of_lane = ran.iter().filter(|request| request.0 == lane);
                prop_assert!(of_lane.is_sorted_by_key(|request| request.1), "{ran:?}");
            }
            prop_assert!(ran.iter().filter(|request| request.2).is_sorted_by_key(|request| request.1), "{ran:?}");
        }
    }
}
