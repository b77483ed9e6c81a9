//! Engine state for a partition: the event queue, and the components' sequence numbers.

use crate::queue::EventQueue;
use tombolo_types::{ComponentId, Ps};

/// Marks a component from another partition among the sequence numbers.
const FOREIGN: u64 = u64::MAX;

/// A partition's part in the engine.
pub(crate) struct PartitionLane<M> {
    pub(crate) queue: EventQueue<M>,
    /// Number of events sent so far, by component in the engine, or `FOREIGN`.
    sequences: Vec<u64>,
    /// Events handled so far.
    pub(crate) events: u64,
    /// Time of the last handled event.
    pub(crate) last_event: Ps,
}

impl<M: Copy + Default> PartitionLane<M> {
    /// Lane for partition `partition`.
    pub(crate) fn new(partition: usize, home: &[u16]) -> PartitionLane<M> {
        let own = |&home: &u16| if usize::from(home) == partition { 0 } else { FOREIGN };
        let sequences = home.iter().map(own).collect();
        PartitionLane { queue: EventQueue::new(), sequences, events: 0, last_event: Ps::ZERO }
    }

    /// Time of the first waiting event, or [`Ps::NEVER`].
    pub(crate) fn due(&self) -> Ps {
        self.queue.next_time().unwrap_or(Ps::NEVER)
    }

    /// Returns the sequence number for the next event from a component in this partition.
    #[inline(always)]
    pub(crate) fn next_sequence(&mut self, from: ComponentId) -> u32 {
        match self.sequences.get_mut(usize::from(from.0)) {
            Some(sent) if *sent <= u64::from(u32::MAX) => {
                *sent += 1;
                (*sent - 1) as u32
            }
            _ => self.refuse(from),
        }
    }

    #[cold]
    #[inline(never)]
    fn refuse(&self, from: ComponentId) -> ! {
        let from = from.0;
        match self.sequences.get(usize::from(from)) {
            Some(&FOREIGN) => panic!("component {from} sends, but its partition is not the one that runs"),
            Some(_) => panic!("component {from} has sent 2^32 events: their order can no longer be told apart"),
            None => panic!("component {from} sends, but is not one of this engine"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "component 0 has sent 2^32 events")]
    fn the_last_sequence_number_is_given_once() {
        let mut lane = PartitionLane::<()>::new(0, &[0]);
        lane.sequences[0] = u64::from(u32::MAX);
        assert_eq!(lane.next_sequence(ComponentId(0)), u32::MAX);
        lane.next_sequence(ComponentId(0));
    }

    #[test]
    #[should_panic(expected = "component 1 sends, but its partition is not the one that runs")]
    fn a_component_of_another_partition_cannot_send() {
        PartitionLane::<()>::new(0, &[0, 1]).next_sequence(ComponentId(1));
    }
}
