//! The queue compared with a sorted map: equal pushes and pops must return equal events in the same order.

use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeMap;
use tombolo_engine::{Event, EventQueue};
use tombolo_types::{ComponentId, Ps};

/// A call on a queue, chosen at random. Times count from the last event popped, in picoseconds.
#[derive(Clone, Debug)]
enum QueueCall {
    Push { delay: u64, to: u16, from: u16 },
    Pop,
    PopBefore { end: u64 },
    NextTime,
}

/// Delays in every range that the wheel treats differently: none, the open bucket, the wheel, its horizon (4096 buckets
/// with 4096 ps, because this many events never widen them) and beyond. Whole microseconds make times coincide.
fn delay() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(0),
        0..1_024_u64,
        0..20_000_u64,
        0..5_000_000_u64,
        16_770_000..16_785_000_u64,
        0..200_000_000_u64,
        (0..40_u64).prop_map(|us| us * 1_000_000),
    ]
}

fn call() -> impl Strategy<Value = QueueCall> {
    prop_oneof![
        4 => (delay(), 0..4_u16, 0..4_u16).prop_map(|(delay, to, from)| QueueCall::Push { delay, to, from }),
        2 => Just(QueueCall::Pop),
        2 => delay().prop_map(|end| QueueCall::PopBefore { end }),
        1 => Just(QueueCall::NextTime),
    ]
}

/// A queue, the expected content, and the time of the last popped event.
#[derive(Default)]
struct CheckedQueue {
    queue: EventQueue<u32>,
    reference: BTreeMap<(u64, u64), u32>,
    now: u64,
    sent: u32,
}

impl CheckedQueue {
    fn call(&mut self, call: &QueueCall) {
        match *call {
            QueueCall::Push { delay, to, from } => self.push(delay, to, from),
            QueueCall::Pop => self.pop_before(u64::MAX),
            QueueCall::PopBefore { end } => self.pop_before(self.now + end),
            QueueCall::NextTime => self.compare_next_time(),
        }
    }

    fn push(&mut self, delay: u64, to: u16, from: u16) {
        let message = self.sent;
        let (to, from) = (ComponentId(to), ComponentId(from));
        let event = Event { time: Ps(self.now + delay), to, from, sequence: self.sent, message };
        self.sent += 1;
        self.reference.insert(event.key(), message);
        self.queue.push(event);
    }

    fn pop_before(&mut self, end: u64) {
        let first = self.reference.first_entry().filter(|first| first.key().0 < end).map(|first| first.remove_entry());
        let popped = self.queue.pop_before(Ps(end)).map(|event| (event.key(), event.message));
        assert_eq!(popped, first);
        self.now = popped.map_or(self.now, |((time, _), _)| time);
    }

    fn compare_next_time(&self) {
        let first = self.reference.keys().next().map(|&(time, _)| Ps(time));
        assert_eq!(self.queue.next_time(), first);
        assert_eq!(self.queue.len(), self.reference.len());
        assert_eq!(self.queue.is_empty(), first.is_none());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn events_come_out_in_the_total_order(calls in vec(call(), 0..400)) {
        let mut pair = CheckedQueue::default();
        calls.iter().for_each(|call| pair.call(call));
        while !pair.reference.is_empty() {
            pair.compare_next_time();
            pair.pop_before(u64::MAX);
        }
        prop_assert!(pair.queue.pop().is_none());
    }
}

#[test]
fn a_long_run_of_many_events_stays_in_order() {
    let mut pair = CheckedQueue::default();
    for step in 0..60_000_u64 {
        let mixed = step.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let delay = (mixed >> 40) % [1, 1_000, 100_000, 9_000_000][(mixed >> 20) as usize % 4];
        pair.push(delay, (mixed >> 8) as u16 % 8, mixed as u16 % 8);
        if step % 3 != 0 {
            pair.pop_before(u64::MAX);
        }
    }
    while !pair.reference.is_empty() {
        pair.pop_before(u64::MAX);
    }
}
