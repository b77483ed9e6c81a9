//! The event queue of one partition: a time wheel with a far-future heap behind it.
//!
//! Events wait in a slab, linked into the bucket of their nanosecond. Only the bucket being drained is
//! ordered: it is sorted when it is opened, and what is pushed into it afterwards goes to a small heap beside
//! the sorted run. What lies beyond the wheel's horizon waits in a heap and joins the wheel as it turns. All
//! storage is kept and reused, so a queue in a steady state allocates nothing.

use crate::event::Event;
use crate::occupancy::{BUCKETS, Occupancy};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use tombolo_types::Ps;

/// Picoseconds of a bucket, as a power of two: 1024 ps. About one GPU clock, so that a busy partition has a
/// few events in a bucket and an idle one none. Source: assumed, measured in `benches/queue.rs`.
const BUCKET_BITS: u32 = 10;

/// The end of a list of slots.
const NO_SLOT: u32 = u32::MAX;

/// Events in their total order: [`EventQueue::pop`] gives the smallest (`time`, `to`, `from`, `sequence`).
///
/// An event may be pushed at any time not before the last one popped, also into the middle of the events
/// that have the time of the last one popped.
pub struct EventQueue<M> {
    slots: Vec<Slot<M>>,
    /// First of the list of empty slots.
    free: u32,
    /// First slot of each bucket of the wheel, by bucket number modulo `BUCKETS`.
    heads: Box<[u32]>,
    occupancy: Occupancy,
    /// Number (time / 1024 ps) of the bucket being drained. Everything up to it is in `run` or `late`,
    /// everything within `BUCKETS` of it in the wheel, everything beyond in `far`.
    open: u64,
    /// The open bucket, largest key first, so that the next event is at the end.
    run: Vec<Key>,
    /// What was pushed into the open bucket after it was sorted.
    late: BinaryHeap<Reverse<Key>>,
    far: BinaryHeap<Reverse<Key>>,
    len: usize,
}

/// A waiting event, or an empty place for one.
struct Slot<M> {
    time: u64,
    tie: u64,
    /// Next slot of the same bucket, or next empty slot.
    next: u32,
    message: Option<M>,
}

/// An event's place in the total order, and the slot where it waits. No two events are equal in the order,
/// so the slot never decides a comparison.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    time: u64,
    tie: u64,
    slot: u32,
}

impl Key {
    fn bucket(&self) -> u64 {
        self.time >> BUCKET_BITS
    }
}

impl<M> Default for EventQueue<M> {
    fn default() -> Self {
        EventQueue::new()
    }
}

impl<M> EventQueue<M> {
    /// An empty queue at time zero.
    pub fn new() -> EventQueue<M> {
        EventQueue {
            slots: Vec::new(),
            free: NO_SLOT,
            heads: vec![NO_SLOT; BUCKETS].into_boxed_slice(),
            occupancy: Occupancy::new(),
            open: 0,
            run: Vec::new(),
            late: BinaryHeap::new(),
            far: BinaryHeap::new(),
            len: 0,
        }
    }

    /// Number of events waiting.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no event waits.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds an event. Its time must not lie before that of the last event popped: it would be handled in
    /// the past. Panics with more than 2^32 - 1 events waiting.
    pub fn push(&mut self, event: Event<M>) {
        let key = self.store(event);
        match key.bucket().checked_sub(self.open) {
            None | Some(0) => self.late.push(Reverse(key)),
            Some(ahead) if ahead < BUCKETS as u64 => self.link(key),
            Some(_) => self.far.push(Reverse(key)),
        }
        self.len += 1;
    }

    /// Removes the first event in the total order.
    pub fn pop(&mut self) -> Option<Event<M>> {
        self.pop_before(Ps::NEVER)
    }

    /// Removes the first event in the total order if its time lies before `end`.
    pub fn pop_before(&mut self, end: Ps) -> Option<Event<M>> {
        if self.run.is_empty() && self.late.is_empty() && !self.open_next(end) {
            return None;
        }
        let (key, late) = self.first_open()?;
        if key.time >= end.0 {
            return None;
        }
        if late {
            self.late.pop();
        } else {
            self.run.pop();
        }
        self.len -= 1;
        Some(self.take(key))
    }

    /// The time of the first event, or `None` if no event waits.
    pub fn next_time(&self) -> Option<Ps> {
        if let Some((key, _)) = self.first_open() {
            return Some(Ps(key.time));
        }
        let Some(bucket) = self.next_bucket() else {
            return self.far.peek().map(|Reverse(key)| Ps(key.time));
        };
        let mut slot = self.heads[bucket as usize % BUCKETS];
        let mut earliest = Ps::NEVER;
        while slot != NO_SLOT {
            let waiting = &self.slots[slot as usize];
            earliest = earliest.min(Ps(waiting.time));
            slot = waiting.next;
        }
        Some(earliest)
    }

    /// The first event of the open bucket, and whether it came after the bucket was sorted.
    fn first_open(&self) -> Option<(Key, bool)> {
        match (self.run.last(), self.late.peek()) {
            (Some(&run), None) => Some((run, false)),
            (Some(&run), Some(Reverse(late))) if run < *late => Some((run, false)),
            (_, Some(&Reverse(late))) => Some((late, true)),
            (None, None) => None,
        }
    }

    /// Number of the first occupied bucket of the wheel after the open one.
    fn next_bucket(&self) -> Option<u64> {
        let distance = self.occupancy.distance_to_next(self.open as usize % BUCKETS)?;
        Some(self.open + distance as u64)
    }

    /// Opens the first bucket that holds an event, provided that it begins before `end`; the open bucket
    /// must be exhausted. A bucket that begins later stays closed, because events may still be pushed
    /// before it.
    fn open_next(&mut self, end: Ps) -> bool {
        let next = self.next_bucket().or_else(|| self.far.peek().map(|Reverse(key)| key.bucket()));
        let Some(bucket) = next.filter(|bucket| bucket << BUCKET_BITS < end.0) else {
            return false;
        };
        self.open = bucket;
        self.recall();
        self.unlink(bucket as usize % BUCKETS);
        self.run.sort_unstable_by(|a, b| b.cmp(a));
        true
    }

    /// Moves what has come within the horizon of the open bucket from the far heap to the wheel.
    fn recall(&mut self) {
        while let Some(&Reverse(key)) = self.far.peek() {
            let ahead = key.bucket() - self.open;
            if ahead >= BUCKETS as u64 {
                break;
            }
            self.far.pop();
            if ahead == 0 {
                self.run.push(key);
            } else {
                self.link(key);
            }
        }
    }

    /// Puts a stored event at the head of its bucket's list.
    fn link(&mut self, key: Key) {
        let bucket = key.bucket() as usize % BUCKETS;
        let head = &mut self.heads[bucket];
        self.slots[key.slot as usize].next = *head;
        *head = key.slot;
        self.occupancy.set(bucket);
    }

    /// Empties the list of a bucket (by its index in the ring) into `run`.
    fn unlink(&mut self, bucket: usize) {
        let mut slot = std::mem::replace(&mut self.heads[bucket], NO_SLOT);
        while slot != NO_SLOT {
            let waiting = &self.slots[slot as usize];
            self.run.push(Key { time: waiting.time, tie: waiting.tie, slot });
            slot = waiting.next;
        }
        self.occupancy.clear(bucket);
    }

    /// Puts an event into an empty slot.
    fn store(&mut self, event: Event<M>) -> Key {
        let (time, tie) = event.key();
        let message = Some(event.message);
        let slot = self.free;
        if let Some(empty) = self.slots.get_mut(slot as usize) {
            self.free = empty.next;
            (empty.time, empty.tie, empty.message) = (time, tie, message);
            return Key { time, tie, slot };
        }
        let slot = self.slots.len() as u32;
        assert!(self.slots.len() < NO_SLOT as usize, "an event queue cannot hold 2^32 events");
        self.slots.push(Slot { time, tie, next: NO_SLOT, message });
        Key { time, tie, slot }
    }

    /// Takes an event out of its slot.
    fn take(&mut self, key: Key) -> Event<M> {
        let slot = &mut self.slots[key.slot as usize];
        let message = slot.message.take().expect("a key names a full slot");
        slot.next = self.free;
        self.free = key.slot;
        Event::from_key((key.time, key.tie), message)
    }
}
