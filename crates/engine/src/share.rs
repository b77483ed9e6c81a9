//! A thread's share of the partitions, and their execution within a window. Messages inside the share go directly into
//! queues; messages to other shares are collected in parcels.

use crate::engine::HORIZON;
use crate::event::Event;
use crate::lane::PartitionLane;
use crate::lookahead::Lookahead;
use crate::partition::{Outbox, Partition};
use std::ops::Range;
use tombolo_types::{ComponentId, Ps, StopFlag};

/// Partition of each component, the delays between partitions, and the flag that ends the run early.
#[derive(Clone, Copy)]
pub(crate) struct Ownership<'a> {
    /// Partition of each component.
    pub(crate) home: &'a [u16],
    pub(crate) lookahead: &'a Lookahead,
    pub(crate) stop: &'a StopFlag,
}

impl Ownership<'_> {
    /// Partition of a component.
    #[inline(always)]
    pub(crate) fn home_of(&self, component: ComponentId) -> u16 {
        match self.home.get(usize::from(component.0)) {
            Some(&home) => home,
            None => refuse(component, self.home.len()),
        }
    }

    /// End of the window beginning at `start`. `whole`: true if each group has all partitions on one thread. A single
    /// group waits for no other.
    pub(crate) fn window_end(&self, start: Ps, whole: bool) -> Ps {
        let Lookahead { groups, within, between } = self.lookahead;
        match whole {
            true if groups.first() == groups.last() => HORIZON,
            true => after(start, *between),
            false => after(start, *within),
        }
    }
}

fn after(start: Ps, lookahead: Ps) -> Ps {
    Ps(start.0.saturating_add(lookahead.0)).min(HORIZON)
}

#[cold]
#[inline(never)]
fn refuse(component: ComponentId, components: usize) -> ! {
    panic!("component {} is not one of the {components} of this engine", component.0)
}

/// Location of a partition: thread, seat on this thread, and group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PartitionLocation {
    worker: u16,
    seat: u16,
    group: u16,
}

/// Location of each partition, from each partition's thread and group. Seats follow the partition order.
fn locations(owners: &[u16], groups: &[u16]) -> Vec<PartitionLocation> {
    let mut seated = vec![0; owners.iter().map(|&owner| usize::from(owner) + 1).max().unwrap_or(0)];
    let place = |(&worker, &group): (&u16, &u16)| {
        let seat = seated[usize::from(worker)];
        seated[usize::from(worker)] += 1;
        PartitionLocation { worker, seat, group }
    };
    owners.iter().zip(groups).map(place).collect()
}

/// Messages for the partitions of another thread, until the window ends.
struct Parcel<M> {
    events: Vec<Event<M>>,
    /// Earliest time among the events.
    earliest: Ps,
}

/// Partitions of one thread. `indices`, `partitions`, `lanes` and `due` are indexed by seat.
pub(crate) struct Share<'a, P: Partition> {
    map: Ownership<'a>,
    worker: u16,
    /// Each partition's index in the engine.
    indices: Vec<u16>,
    partitions: Vec<&'a mut P>,
    lanes: Vec<PartitionLane<P::Message>>,
    /// Time of the first event in each partition.
    due: Vec<Ps>,
    /// Seats of each group with partitions in this share.
    groups: Vec<Range<usize>>,
    /// Locations for all partitions in the engine.
    locations: Vec<PartitionLocation>,
    /// Parcels by receiving thread.
    parcels: Vec<Parcel<P::Message>>,
    /// Seat that ran last.
    running: usize,
}

impl<'a, P: Partition> Share<'a, P> {
    /// An empty share for thread `worker`; `owners` gives the thread for each partition.
    pub(crate) fn new(worker: u16, owners: &[u16], threads: usize, map: Ownership<'a>) -> Self {
        let parcel = || Parcel { events: Vec::new(), earliest: Ps::NEVER };
        Share {
            map,
            worker,
            indices: Vec::new(),
            partitions: Vec::new(),
            lanes: Vec::new(),
            due: Vec::new(),
            groups: Vec::new(),
            locations: locations(owners, &map.lookahead.groups),
            parcels: std::iter::repeat_with(parcel).take(threads).collect(),
            running: 0,
        }
    }

    /// Adds a partition; calls must be in the order of indices.
    pub(crate) fn seat(&mut self, index: usize, partition: &'a mut P, lane: PartitionLane<P::Message>) {
        let seat = self.indices.len();
        let group = |index: u16| self.map.lookahead.groups[usize::from(index)];
        match self.groups.last_mut() {
            Some(seats) if group(self.indices[seats.start]) == group(index as u16) => seats.end = seat + 1,
            _ => self.groups.push(seat..seat + 1),
        }
        self.indices.push(index as u16);
        self.partitions.push(partition);
        self.due.push(lane.due());
        self.lanes.push(lane);
    }

    /// Dissolves the share into partitions: index, partition and lane.
    pub(crate) fn into_seats(self) -> impl Iterator<Item = (u16, &'a mut P, PartitionLane<P::Message>)> {
        let seats = self.indices.into_iter().zip(self.partitions).zip(self.lanes);
        seats.map(|((index, partition), lane)| (index, partition, lane))
    }

    /// Time of the earliest event waiting in this share or sent from the share in this window; [`Ps::NEVER`] if none.
    pub(crate) fn earliest(&self) -> Ps {
        let sent = self.parcels.iter().map(|parcel| parcel.earliest);
        self.due.iter().copied().chain(sent).min().unwrap_or(Ps::NEVER)
    }

    /// Events handled by each partition, by seat.
    pub(crate) fn events(&self) -> Vec<u64> {
        self.lanes.iter().map(|lane| lane.events).collect()
    }

    /// Index of the last running partition.
    pub(crate) fn running(&self) -> u16 {
        self.indices[self.running]
    }

    /// Runs each group, in order, through all events before `end`, in the group's own windows: meanwhile, the host's
    /// caches hold the group's state. A run that is to stop leaves the window unfinished.
    pub(crate) fn run_window(&mut self, end: Ps) {
        for group in 0..self.groups.len() {
            let seats = self.groups[group].clone();
            loop {
                let start = self.due[seats.clone()].iter().copied().min().unwrap_or(Ps::NEVER);
                if start >= end || self.map.stop.is_set() {
                    break;
                }
                let until = if seats.len() == 1 { end } else { after(start, self.map.lookahead.within).min(end) };
                self.run_seats(seats.clone(), until);
            }
        }
    }

    /// Runs each partition on these seats, in order, through all events before `end`.
    fn run_seats(&mut self, seats: Range<usize>, end: Ps) {
        for seat in seats {
            if self.due[seat] >= end {
                continue;
            }
            self.running = seat;
            let (before, rest) = self.lanes.split_at_mut(seat);
            let (lane, after) = rest.split_first_mut().expect("each seat has a lane");
            let neighbours = Neighbours {
                worker: self.worker,
                group: self.map.lookahead.groups[usize::from(self.indices[seat])],
                locations: &self.locations,
                before,
                after,
                due: &mut self.due,
                parcels: &mut self.parcels,
            };
            Outbox::new(self.indices[seat], lane, self.map, neighbours).run(self.partitions[seat], end);
            self.due[seat] = self.lanes[seat].due();
        }
    }

    /// Passes the parcel for thread `to` to `carry`, which must empty the parcel.
    pub(crate) fn dispatch(&mut self, to: usize, carry: impl FnOnce(&mut Vec<Event<P::Message>>)) {
        let parcel = &mut self.parcels[to];
        if !parcel.events.is_empty() {
            carry(&mut parcel.events);
            debug_assert!(parcel.events.is_empty(), "a parcel is taken whole");
            parcel.earliest = Ps::NEVER;
        }
    }

    /// Pushes an event sent by another thread into the receiving partition's queue.
    pub(crate) fn receive(&mut self, event: Event<P::Message>) {
        let home = self.map.home_of(event.to);
        let seat = usize::from(self.locations[usize::from(home)].seat);
        self.due[seat] = self.due[seat].min(event.time);
        self.lanes[seat].queue.push(event);
    }
}

/// Routes for messages that leave the running partition.
pub(crate) struct Neighbours<'a, M> {
    worker: u16,
    /// Group of the running partition.
    group: u16,
    locations: &'a [PartitionLocation],
    /// Lanes for the thread's partitions before the running partition.
    before: &'a mut [PartitionLane<M>],
    /// Lanes for the thread's partitions after the running partition.
    after: &'a mut [PartitionLane<M>],
    /// Time of the first event in each partition on the thread.
    due: &'a mut [Ps],
    parcels: &'a mut [Parcel<M>],
}

impl<M: Copy + Default> Neighbours<'_, M> {
    /// True if another partition belongs to the running partition's group.
    #[inline(always)]
    pub(crate) fn is_near(&self, home: u16) -> bool {
        self.locations[usize::from(home)].group == self.group
    }

    /// Sends an event to another partition, `home`; the caller writes the message to the returned reference. On the
    /// same thread, the event goes straight into the queue. The event lies at or after the end of the window, and the
    /// receiving partition may have run already.
    #[inline(always)]
    pub(crate) fn place(&mut self, home: u16, time: Ps, to: ComponentId, from: ComponentId, sequence: u32) -> &mut M {
        let PartitionLocation { worker, seat, .. } = self.locations[usize::from(home)];
        if worker != self.worker {
            return self.place_in_parcel(worker, time, to, from, sequence);
        }
        let seat = usize::from(seat);
        self.due[seat] = self.due[seat].min(time);
        let lane = match seat.checked_sub(self.before.len() + 1) {
            Some(behind) => &mut self.after[behind],
            None => &mut self.before[seat],
        };
        lane.queue.place(time, to, from, sequence)
    }

    /// Sends an event to another thread, `worker`.
    #[inline(never)]
    fn place_in_parcel(&mut self, worker: u16, time: Ps, to: ComponentId, from: ComponentId, sequence: u32) -> &mut M {
        let Parcel { events, earliest } = &mut self.parcels[usize::from(worker)];
        *earliest = time.min(*earliest);
        let at = events.len();
        events.push(Event { time, to, from, sequence, message: M::default() });
        &mut events[at].message
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thread_seats_its_partitions_in_order() {
        let place = |worker, seat, group| PartitionLocation { worker, seat, group };
        let expected = [place(1, 0, 5), place(0, 0, 5), place(1, 1, 6), place(3, 0, 7)];
        assert_eq!(locations(&[1, 0, 1, 3], &[5, 5, 6, 7]), expected);
    }
}
