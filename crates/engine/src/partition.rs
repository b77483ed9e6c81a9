//! What a model gives the engine, and what the engine gives a model: [`Partition`] and [`Outbox`].

use crate::event::Event;
use crate::lane::Lane;
use tombolo_types::{ComponentId, Ps};

/// One cut of the machine: the components in it, which only ever run one at a time. All partitions of an
/// engine have one type; a machine of different parts uses an enum.
pub trait Partition: Send {
    /// What components tell each other. Copied a few times on its way: keep it small (24 bytes or so).
    type Message: Send;

    /// Handles one event for one of this partition's components, and schedules what follows from it.
    fn handle(&mut self, event: Event<Self::Message>, out: &mut Outbox<'_, Self::Message>);
}

/// Where a component's messages go while it handles an event.
pub struct Outbox<'a, M> {
    pub(crate) now: Ps,
    /// The partition that is running.
    pub(crate) partition: u16,
    pub(crate) lane: &'a mut Lane<M>,
    pub(crate) map: Map<'a>,
    pub(crate) others: Others<'a, M>,
}

/// Which component lives where, and how far apart partitions are.
#[derive(Clone, Copy)]
pub(crate) struct Map<'a> {
    /// Partition of each component.
    pub(crate) home: &'a [u16],
    /// The least delay of a message between partitions.
    pub(crate) lookahead: Ps,
}

/// How a message reaches another partition.
pub(crate) enum Others<'a, M> {
    /// On one thread: straight into its queue. It lies at or after the end of the window, so it does not
    /// matter whether that partition has run already.
    Direct {
        /// Lanes of the partitions before the running one.
        before: &'a mut [Lane<M>],
        /// Lanes of those after it.
        after: &'a mut [Lane<M>],
        /// Time of each partition's first event.
        due: &'a mut [Ps],
    },
    /// On several: into the parcel for that partition, which goes out when the window ends.
    Parcels,
}

impl<M> Outbox<'_, M> {
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
        let least = if local { Ps::ZERO } else { self.map.lookahead };
        let earliest = Ps(self.now.0.saturating_add(least.0));
        if at < earliest || at == Ps::NEVER {
            self.refuse(at, from, to);
        }
        let sequence = self.lane.next_sequence(from);
        let event = Event { time: at, to, from, sequence, message };
        if local {
            self.lane.queue.push(event);
            return;
        }
        let other = usize::from(home);
        match &mut self.others {
            Others::Parcels => self.lane.post(other, event),
            Others::Direct { before, after, due } => {
                due[other] = due[other].min(at);
                let lane = match other.checked_sub(before.len() + 1) {
                    Some(index) => &mut after[index],
                    None => &mut before[other],
                };
                lane.queue.push(event);
            }
        }
    }

    /// Hands the partition all its events before `end`, in order.
    pub(crate) fn run<P: Partition<Message = M>>(&mut self, partition: &mut P, end: Ps) {
        while let Some(event) = self.lane.queue.pop_before(end) {
            self.now = event.time;
            self.lane.events += 1;
            partition.handle(event, self);
        }
        self.lane.last_event = self.lane.last_event.max(self.now);
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

impl Map<'_> {
    /// The partition of a component.
    pub(crate) fn home_of(&self, component: ComponentId) -> u16 {
        match self.home.get(usize::from(component.0)) {
            Some(&home) => home,
            None => panic!("component {} is not one of the {} of this engine", component.0, self.home.len()),
        }
    }
}
