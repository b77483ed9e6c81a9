//! What a model gives the engine, and what the engine gives a model: [`Partition`] and [`Outbox`].

use crate::event::Event;
use crate::lane::Lane;
use crate::share::{Map, Neighbours};
use tombolo_types::{ComponentId, Ps};

/// One cut of the machine: the components in it, which only ever run one at a time. All partitions of an
/// engine have one type; a machine of different parts uses an enum.
pub trait Partition: Send {
    /// What components tell each other. Copied a few times on its way: keep it small (24 bytes or so).
    type Message: Send;

    /// Handles one event for one of this partition's components, and schedules what follows from it.
    fn handle(&mut self, event: Event<Self::Message>, out: &mut Outbox<'_, Self::Message>);

    /// An event for `to` will be handled soon: a good time to bring the component itself into the host's caches, before
    /// [`Partition::prefetch`] follows what it points to. Must change nothing.
    fn prefetch_component(&self, to: ComponentId) {
        let _ = to;
    }

    /// An event for `to` will be handled soon: a good time to bring what it needs into the host's caches (see
    /// [`crate::prefetch`]). Must change nothing.
    fn prefetch(&self, to: ComponentId, message: &Self::Message, round: Round) {
        let _ = (to, message, round);
    }
}

/// Which of its announcements an event is at. What one round loads, the next may follow: pointers are chased
/// without waiting for any of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Round {
    /// What the message itself names.
    First,
    /// What is found through what the first round loaded.
    Second,
    /// What is found through what the second round loaded.
    Third,
}

/// How many events ahead a message is loaded, then its component, and then what is found in each round. Assumed: an
/// event takes about as long as a load from memory; other distances were not compared.
const MESSAGE_AHEAD: usize = 10;
const COMPONENT_AHEAD: usize = 8;
const FIRST_AHEAD: usize = 6;
const SECOND_AHEAD: usize = 4;
const THIRD_AHEAD: usize = 2;

/// Where a component's messages go while it handles an event.
pub struct Outbox<'a, M> {
    now: Ps,
    /// The partition that is running.
    partition: u16,
    lane: &'a mut Lane<M>,
    map: Map<'a>,
    neighbours: Neighbours<'a, M>,
}

impl<'a, M> Outbox<'a, M> {
    /// The outbox of partition `partition`.
    pub(crate) fn new(partition: u16, lane: &'a mut Lane<M>, map: Map<'a>, neighbours: Neighbours<'a, M>) -> Self {
        Outbox { now: lane.last_event, partition, lane, map, neighbours }
    }

    /// The time of the event being handled.
    pub fn now(&self) -> Ps {
        self.now
    }

    /// Schedules `message` for `to` at `at`. `from` is the component that is handling the event, or another
    /// one of its partition.
    ///
    /// # Panics
    /// When `at` lies before now, for a component of the same partition, or before now plus the lookahead,
    /// for one of another partition; when `from` belongs to another partition, `to` to none, or `at` is
    /// [`Ps::NEVER`]; when `from` has sent 2^32 events.
    pub fn send(&mut self, at: Ps, from: ComponentId, to: ComponentId, message: M) {
        let home = self.map.home_of(to);
        let local = home == self.partition;
        let least = if local { 0 } else { self.map.lookahead.0 };
        if at.0 < self.now.0.saturating_add(least) || at == Ps::NEVER {
            self.refuse(at, from, to);
        }
        let sequence = self.lane.next_sequence(from);
        let event = Event { time: at, to, from, sequence, message };
        if local {
            self.lane.queue.push(event);
        } else {
            self.neighbours.send(home, event);
        }
    }

    /// Hands the partition all its events before `end`, in order.
    pub(crate) fn run<P: Partition<Message = M>>(&mut self, partition: &mut P, end: Ps) {
        while let Some(late) = self.lane.queue.first_before(end) {
            self.announce(partition);
            let Some(event) = self.lane.queue.take_first(late) else { break };
            self.now = event.time;
            self.lane.last_event = event.time;
            self.lane.events += 1;
            partition.handle(event, self);
        }
    }

    /// Tells a partition of what comes.
    #[inline]
    fn announce<P: Partition<Message = M>>(&mut self, partition: &P) {
        let queue = &mut self.lane.queue;
        queue.load_ahead(0, MESSAGE_AHEAD);
        // Written out, so that each round is compiled for itself.
        queue.look_ahead(1, COMPONENT_AHEAD, |to, _| partition.prefetch_component(to));
        queue.look_ahead(2, FIRST_AHEAD, |to, message| partition.prefetch(to, message, Round::First));
        queue.look_ahead(3, SECOND_AHEAD, |to, message| partition.prefetch(to, message, Round::Second));
        queue.look_ahead(4, THIRD_AHEAD, |to, message| partition.prefetch(to, message, Round::Third));
    }

    #[cold]
    fn refuse(&self, at: Ps, from: ComponentId, to: ComponentId) -> ! {
        let (now, lookahead) = (self.now, self.map.lookahead);
        let (source, home) = (self.partition, self.map.home_of(to));
        let (from, to) = (from.0, to.0);
        assert!(at != Ps::NEVER, "component {from} sends to component {to} at a time that never comes");
        assert!(
            source != home,
            "component {from} sends to component {to} at {at}, in the past: it is {now} in partition {home}"
        );
        panic!(
            "component {from} of partition {source} sends to component {to} of partition {home} at {at}, but it is \
             {now} and messages between partitions take at least {lookahead}"
        );
    }
}
