//! What a model gives the engine, and what the engine gives a model: [`Partition`] and [`Outbox`].

use crate::event::Event;
use crate::lane::Lane;
use crate::queue::{is_late, on_time};
use crate::share::{Neighbours, Ownership};
use tombolo_types::{ComponentId, Ps};

/// One cut of the machine: the components in it, which only ever run one at a time. All partitions of an
/// engine have one type; a machine of different parts uses an enum.
pub trait Partition: Send {
    /// What components tell each other. Copied on its way: keep it small (48 bytes or so).
    type Message: Copy + Default + Send;

    /// Handles one event for one of this partition's components, and schedules what follows from it.
    fn handle(&mut self, event: &Event<Self::Message>, out: &mut Outbox<'_, Self::Message>);

    /// Whether [`Partition::prefetch`] and [`Partition::prefetch_found`] are worth their work. Does not change during a run.
    fn wants_hints(&self) -> bool {
        true
    }

    /// An event will be handled soon: a good time to bring what it looks at first into the host's caches (see
    /// [`crate::prefetch()`]). Must change nothing, should wait for nothing, and is not told of every event.
    fn prefetch(&self, event: &Event<Self::Message>) {
        let _ = event;
    }

    /// The same, once all events of the next few nanoseconds have been shown to [`Partition::prefetch`]: a good time to
    /// bring what is found by reading what that has brought.
    fn prefetch_found(&self, event: &Event<Self::Message>) {
        let _ = event;
    }
}

/// Where a component's messages go while it handles an event.
pub struct Outbox<'a, M> {
    now: Ps,
    /// The partition that is running.
    partition: u16,
    lane: &'a mut Lane<M>,
    map: Ownership<'a>,
    neighbours: Neighbours<'a, M>,
}

impl<'a, M: Copy + Default> Outbox<'a, M> {
    /// The outbox of partition `partition`.
    pub(crate) fn new(
        partition: u16,
        lane: &'a mut Lane<M>,
        map: Ownership<'a>,
        neighbours: Neighbours<'a, M>,
    ) -> Self {
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
    #[inline(always)]
    pub fn send(&mut self, at: Ps, from: ComponentId, to: ComponentId, message: M) {
        *self.place(at, from, to) = message;
    }

    /// Schedules an event, whose message is to be written where this says.
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

    /// Schedules an event for a component of partition `home`, another one.
    #[inline(never)]
    fn place_elsewhere(&mut self, at: Ps, from: ComponentId, to: ComponentId, home: u16) -> &mut M {
        let lookahead = self.map.lookahead.delay(self.neighbours.is_near(home));
        if at.0 < self.now.0.saturating_add(lookahead.0) || at == Ps::NEVER {
            self.refuse(at, from, to);
        }
        let sequence = self.lane.next_sequence(from);
        self.neighbours.place(home, at, to, from, sequence)
    }

    /// Hands the partition all its events before `end`, in order.
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
            if !opened {
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
