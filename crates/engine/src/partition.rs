//! Interface between a model and the engine: [`Partition`] and [`Outbox`].

use crate::event::Event;
use crate::lane::PartitionLane;
use crate::queue::{is_late, on_time};
use crate::share::{Neighbours, Ownership};
use tombolo_types::{ComponentId, Ps};

/// A partition of the machine: its components never run concurrently. All partitions in an engine have one type; a
/// machine with different parts uses an enum.
pub trait Partition: Send {
    /// Message between components. Copied in transit: keep the size small (48 bytes or less).
    type Message: Copy + Default + Send;

    /// Handles one event for a component in this partition, and schedules the resulting events through `out`.
    fn handle(&mut self, event: &Event<Self::Message>, out: &mut Outbox<'_, Self::Message>);

    /// True if [`Partition::prefetch`] and [`Partition::prefetch_found`] are worth their cost. Constant during a run.
    fn wants_hints(&self) -> bool {
        true
    }

    /// Called before an event is handled: a good time to prefetch the first data its handler reads into the host's
    /// caches (see [`crate::prefetch()`]). Must change nothing, should wait for nothing, and is not called for every
    /// event.
    fn prefetch(&self, event: &Event<Self::Message>) {
        let _ = event;
    }

    /// Like [`Partition::prefetch`], but called after all events in the next few nanoseconds have been passed to it: a
    /// good time to prefetch data found through pointers it has loaded.
    fn prefetch_found(&self, event: &Event<Self::Message>) {
        let _ = event;
    }
}

/// Output for a component's messages while it handles an event. An outbox checks that no message violates the
/// lookahead.
pub struct Outbox<'a, M> {
    now: Ps,
    /// Index of the running partition.
    partition: u16,
    lane: &'a mut PartitionLane<M>,
    map: Ownership<'a>,
    neighbours: Neighbours<'a, M>,
}

impl<'a, M: Copy + Default> Outbox<'a, M> {
    /// Outbox for partition `partition`.
    pub(crate) fn new(
        partition: u16,
        lane: &'a mut PartitionLane<M>,
        map: Ownership<'a>,
        neighbours: Neighbours<'a, M>,
    ) -> Self {
        Outbox { now: lane.last_event, partition, lane, map, neighbours }
    }

    /// Time of the current event.
    pub fn now(&self) -> Ps {
        self.now
    }

    /// Schedules `message` for `to` at `at`. `from` is the component handling the event, or another component in the
    /// partition.
    ///
    /// # Panics
    /// If `at` lies before now, for a component in the same partition, or before now plus the lookahead, for a
    /// component in another partition. If `from` belongs to another partition, `to` to none, or `at` is [`Ps::NEVER`].
    /// If `from` has sent 2^32 events.
    #[inline(always)]
    pub fn send(&mut self, at: Ps, from: ComponentId, to: ComponentId, message: M) {
        *self.place(at, from, to) = message;
    }

    /// Schedules an event; the caller writes the message to the returned reference.
    #[inline(never)]
    fn place(&mut self, at: Ps, from: ComponentId, to: ComponentId) -> &mut M {
        let home = self.map.home_of(to);
        if home != self.partition {
            return self.place_elsewhere(at, from, to, home);
        }
        if at < self.now || at == Ps::NEVER {
            self.refuse(at, from, to);
        }
        let sequence = self.lane.next_sequence(from);
        self.lane.queue.place(at, to, from, sequence)
    }

    /// Schedules an event for a component in another partition, `home`.
    #[inline(never)]
    fn place_elsewhere(&mut self, at: Ps, from: ComponentId, to: ComponentId, home: u16) -> &mut M {
        let lookahead = self.map.lookahead.delay(self.neighbours.is_near(home));
        if at.0 < self.now.0.saturating_add(lookahead.0) || at == Ps::NEVER {
            self.refuse(at, from, to);
        }
        let sequence = self.lane.next_sequence(from);
        self.neighbours.place(home, at, to, from, sequence)
    }

    /// Handles all events of the partition before `end`, in order, and passes upcoming events to the prefetch hooks.
    pub(crate) fn run<P: Partition<Message = M>>(&mut self, partition: &mut P, end: Ps) {
        let mut batch = std::mem::take(&mut self.lane.queue.batch);
        let mut bound = self.lane.queue.bound(end);
        let hints = partition.wants_hints();
        loop {
            while let Some(index) = self.lane.queue.next(bound) {
                let late;
                let event = if is_late(index) {
                    late = self.lane.queue.late(index);
                    &late
                } else {
                    on_time(&batch, index)
                };
                self.now = event.time;
                self.lane.last_event = event.time;
                self.lane.events += 1;
                partition.handle(event, self);
            }
            let queue = &mut self.lane.queue;
            let opened = if hints {
                let first = |event: &Event<M>| partition.prefetch(event);
                queue.open_next::<true>(end, &mut batch, first, |event| partition.prefetch_found(event))
            } else {
                queue.open_next::<false>(end, &mut batch, |_| {}, |_| {})
            };
            if !opened || self.map.stop.is_set() {
                break;
            }
            bound = self.lane.queue.bound(end);
        }
        self.lane.queue.batch = batch;
    }

    #[cold]
    fn refuse(&self, at: Ps, from: ComponentId, to: ComponentId) -> ! {
        let (source, home) = (self.partition, self.map.home_of(to));
        let (now, lookahead) = (self.now, self.map.lookahead.of(source, home));
        let (from, to) = (from.0, to.0);
        assert!(at != Ps::NEVER, "component {from} sends to component {to} at a time that never comes");
        assert!(
            source != home,
            "component {from} sends to component {to} at {at}, in the past: it is {now} in partition {home}"
        );
        panic!(
            "component {from} of partition {source} sends to component {to} of partition {home} at {at}, but it is \
             {now} and messages between these two take at least {lookahead}"
        );
    }
}
