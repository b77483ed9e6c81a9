//! What the engine keeps for one partition: its queue, the sequence numbers of its components, and the
//! messages it has for others.

use crate::event::Event;
use crate::queue::EventQueue;
use tombolo_types::{ComponentId, Ps};

/// Marks a component of another partition among the sequence numbers.
const FOREIGN: u64 = u64::MAX;

/// One partition's share of the engine. Aligned to two cache lines, so that partitions that run side by
/// side do not write to the same one.
#[repr(align(128))]
pub(crate) struct Lane<M> {
    pub(crate) queue: EventQueue<M>,
    /// Events sent so far by each component of the engine, or `FOREIGN`.
    sequences: Vec<u64>,
    /// Messages for other partitions, by partition, until the window ends.
    parcels: Vec<Parcel<M>>,
    /// Partitions whose parcel is not empty.
    addressed: Vec<u16>,
    /// Events handled so far.
    pub(crate) events: u64,
    /// Time of the last event handled.
    pub(crate) last_event: Ps,
}

/// Messages from one partition to another.
pub(crate) struct Parcel<M> {
    pub(crate) events: Vec<Event<M>>,
    /// The earliest time among them.
    pub(crate) earliest: Ps,
}

impl<M> Lane<M> {
    /// The lane of partition `partition` of `partitions`.
    pub(crate) fn new(partition: usize, partitions: usize, home: &[u16]) -> Lane<M> {
        let own = |&home: &u16| if usize::from(home) == partition { 0 } else { FOREIGN };
        Lane {
            queue: EventQueue::new(),
            sequences: home.iter().map(own).collect(),
            parcels: (0..partitions).map(|_| Parcel { events: Vec::new(), earliest: Ps::NEVER }).collect(),
            addressed: Vec::new(),
            events: 0,
            last_event: Ps::ZERO,
        }
    }

    /// Time of the first event waiting, or [`Ps::NEVER`].
    pub(crate) fn due(&self) -> Ps {
        self.queue.next_time().unwrap_or(Ps::NEVER)
    }

    /// Numbers the next event of a component of this partition.
    pub(crate) fn next_sequence(&mut self, from: ComponentId) -> u32 {
        match self.sequences.get_mut(usize::from(from.0)) {
            Some(sent) if *sent <= u64::from(u32::MAX) => {
                *sent += 1;
                (*sent - 1) as u32
            }
            sent => refuse(from, sent.copied()),
        }
    }

    /// Puts an event into the parcel for partition `to`.
    pub(crate) fn post(&mut self, to: usize, event: Event<M>) {
        let parcel = &mut self.parcels[to];
        if parcel.events.is_empty() {
            self.addressed.push(to as u16);
        }
        parcel.earliest = parcel.earliest.min(event.time);
        parcel.events.push(event);
    }

    /// Gives each parcel that is not empty to `carry`, which takes what is in it.
    pub(crate) fn dispatch(&mut self, mut carry: impl FnMut(usize, &mut Parcel<M>)) {
        for to in self.addressed.drain(..) {
            let parcel = &mut self.parcels[usize::from(to)];
            carry(usize::from(to), parcel);
            debug_assert!(parcel.events.is_empty(), "a parcel is taken whole");
            parcel.earliest = Ps::NEVER;
        }
    }
}

#[cold]
fn refuse(from: ComponentId, sent: Option<u64>) -> ! {
    let from = from.0;
    match sent {
        Some(FOREIGN) => panic!("component {from} sends, but its partition is not the one that runs"),
        Some(_) => panic!("component {from} has sent 2^32 events: their order can no longer be told apart"),
        None => panic!("component {from} sends, but is not one of this engine"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "component 0 has sent 2^32 events")]
    fn the_last_sequence_number_is_given_once() {
        let mut lane = Lane::<()>::new(0, 1, &[0]);
        lane.sequences[0] = u64::from(u32::MAX);
        assert_eq!(lane.next_sequence(ComponentId(0)), u32::MAX);
        lane.next_sequence(ComponentId(0));
    }

    #[test]
    #[should_panic(expected = "component 1 sends, but its partition is not the one that runs")]
    fn a_component_of_another_partition_cannot_send() {
        Lane::<()>::new(0, 2, &[0, 1]).next_sequence(ComponentId(1));
    }

    #[test]
    fn a_parcel_knows_its_earliest_event_and_is_empty_once_taken() {
        let mut lane = Lane::<u8>::new(0, 3, &[0, 1, 2]);
        let event = |time| Event { time: Ps(time), to: ComponentId(2), from: ComponentId(0), sequence: 0, message: 0 };
        lane.post(2, event(9));
        lane.post(2, event(5));
        let mut taken = Vec::new();
        lane.dispatch(|to, parcel| {
            taken.push((to, parcel.earliest, parcel.events.len()));
            parcel.events.clear();
        });
        lane.dispatch(|_, _| panic!("nothing is left to take"));
        assert_eq!(taken, [(2, Ps(5), 2)]);
    }
}
