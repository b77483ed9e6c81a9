//! The event queue of one partition: a time wheel with a far-future heap behind it.
//!
//! Events wait in the bucket of their time, in chunks of a few, so that a bucket that is opened is read in long
//! strides and a push writes where the last one to the same bucket wrote. Only the open bucket is ordered: when it is
//! opened its keys are sorted and its messages gathered, and what is pushed into it afterwards is put in its place among
//! them. What lies beyond the wheel's horizon waits in a heap and joins the wheel as it turns. All storage is kept and
//! reused, so a queue in a steady state allocates nothing.
//!
//! A message is written where it waits ([`EventQueue::place`]) and read where it was gathered, some time after that: a
//! processor that reads in other pieces what it has just written waits until all its stores have reached the cache.

use crate::event::Event;
use crate::occupancy::{BUCKETS, Occupancy};
use crate::prefetch::prefetch;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use tombolo_types::{ComponentId, Ps};

/// Picoseconds of a bucket, as a power of two: 4096 ps, a few GPU clocks. Source: measured. `run --machine hmg-4x4
/// --workload triad --scale 1/16` is 1.14 times as fast as with buckets of 1024 ps, which hold an event or two; with
/// hundreds of components (`cargo bench -p tombolo-system --bench throughput`) widths from 1024 to 8192 ps are alike.
const BUCKET_BITS: u32 = 12;

/// Events of a chunk. Source: measured in `benches/queue.rs`; more waste memory in sparse buckets, fewer
/// follow more links in full ones.
const CHUNK: usize = 4;

/// No slot: the tail of an empty bucket, the end of a list of chunks.
const NONE: u32 = u32::MAX;

/// In the index of a message: it was pushed into the bucket after it was opened.
const LATE: u32 = 1 << 31;

/// Events in their total order: [`EventQueue::pop`] gives the smallest (`time`, `to`, `from`, `sequence`).
///
/// An event may be pushed at any time not before the last one popped, also into the middle of the events
/// that have the time of the last one popped.
pub struct EventQueue<M> {
    /// Chunk `c` is slots `c * CHUNK` to `c * CHUNK + CHUNK - 1`, filled from the first.
    slots: Vec<Slot<M>>,
    /// By chunk: the last slot of the chunk before it in the same bucket, all of whose slots are full; of a free chunk,
    /// a slot of the next free one.
    before: Vec<u32>,
    /// A slot of the first free chunk; `before` leads to the others.
    free: u32,
    /// Last slot in use of each bucket of the wheel, by bucket number modulo `BUCKETS`.
    tails: Box<[u32]>,
    occupancy: Occupancy,
    /// Number (time / 4096 ps) of the open bucket. It is in `run`, what follows within `BUCKETS` in the wheel, what lies
    /// beyond in `far`. Nothing is before it: it is opened only to pop from it.
    open: u64,
    /// Keys of the open bucket, the first event last.
    run: Vec<Key>,
    /// Messages of the open bucket, by index.
    pub(crate) batch: Vec<M>,
    /// Messages that were pushed into it since, by index without `LATE`.
    late: Vec<M>,
    /// Time, tie and index in `far_messages` of what lies beyond the horizon.
    far: BinaryHeap<Reverse<(u64, u64, u32)>>,
    far_messages: Vec<M>,
    /// Indices of `far_messages` that are free.
    far_free: Vec<u32>,
    len: usize,
}

/// A waiting event, or an empty place for one: in one cache line of the host where its message is small enough.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Slot<M> {
    time: u64,
    tie: u64,
    message: M,
}

/// An event's place in the order of its bucket, and where its message is: from the highest bit, its time within the
/// bucket (32 bits), what decides a tie (64) and the index (32). No two events are equal in the order, so the index never
/// decides.
type Key = u128;

/// An event that is due.
#[derive(Clone, Copy)]
pub(crate) struct Due {
    time: u64,
    tie: u64,
    index: u32,
}

impl Due {
    /// The event, whose message is `message`.
    #[inline(always)]
    pub(crate) fn with<M>(self, message: M) -> Event<M> {
        Event::from_key((self.time, self.tie), message)
    }
}

impl<M: Copy + Default> Default for EventQueue<M> {
    fn default() -> Self {
        EventQueue::new()
    }
}

impl<M: Copy + Default> EventQueue<M> {
    /// An empty queue at time zero.
    pub fn new() -> EventQueue<M> {
        EventQueue {
            slots: Vec::new(),
            before: Vec::new(),
            free: NONE,
            tails: vec![NONE; BUCKETS].into_boxed_slice(),
            occupancy: Occupancy::new(),
            open: 0,
            run: Vec::new(),
            batch: Vec::new(),
            late: Vec::new(),
            far: BinaryHeap::new(),
            far_messages: Vec::new(),
            far_free: Vec::new(),
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
    /// the past. Panics when the events waiting take 2^31 slots.
    #[inline]
    pub fn push(&mut self, event: Event<M>) {
        let (time, tie) = event.key();
        *self.place(time, tie) = event.message;
    }

    /// Adds an event with this key, whose message is to be written where this says.
    #[inline(always)]
    pub(crate) fn place(&mut self, time: u64, tie: u64) -> &mut M {
        self.len += 1;
        let ahead = (time >> BUCKET_BITS).wrapping_sub(self.open);
        if ahead.wrapping_sub(1) < BUCKETS as u64 - 1 {
            self.place_in_wheel(time, tie)
        } else if ahead == 0 {
            self.place_in_open(time, tie)
        } else {
            self.place_far(time, tie, ahead)
        }
    }

    /// Removes the first event in the total order.
    pub fn pop(&mut self) -> Option<Event<M>> {
        self.pop_before(Ps::NEVER)
    }

    /// Removes the first event in the total order if its time lies before `end`.
    #[inline]
    pub fn pop_before(&mut self, end: Ps) -> Option<Event<M>> {
        let mut batch = std::mem::take(&mut self.batch);
        let event = self.next_before(end, &mut batch, |_, _| {}).map(|due| match self.late(due) {
            Some(message) => due.with(message),
            None => due.with(*batch_message(&batch, due)),
        });
        self.batch = batch;
        event
    }

    /// Removes the first event in the total order if its time lies before `end`. `batch` is `self.batch`, taken out of the
    /// queue so that its messages can be looked at while others are pushed: the event's is [`EventQueue::late`], or else
    /// [`batch_message`]. Shows `soon` most of the events that come next, each some time before it comes out.
    #[inline(always)]
    pub(crate) fn next_before(
        &mut self,
        end: Ps,
        batch: &mut Vec<M>,
        soon: impl FnMut(ComponentId, &M),
    ) -> Option<Due> {
        if self.run.is_empty() && !self.open_next(end, batch, soon) {
            return None;
        }
        let key = *self.run.last()?;
        let time = (self.open << BUCKET_BITS) + (key >> 96) as u64;
        if time >= end.0 {
            return None;
        }
        self.run.pop();
        self.len -= 1;
        Some(Due { time, tie: (key >> 32) as u64, index: key as u32 })
    }

    /// The message of an event that was pushed into the open bucket; `None` where it is in the batch.
    #[inline(always)]
    pub(crate) fn late(&self, due: Due) -> Option<M> {
        (due.index & LATE != 0).then(|| self.late[(due.index & !LATE) as usize])
    }

    /// The time of the first event, or `None` if no event waits.
    pub fn next_time(&self) -> Option<Ps> {
        if let Some(key) = self.run.last() {
            return Some(Ps((self.open << BUCKET_BITS) + (key >> 96) as u64));
        }
        match self.next_bucket() {
            Some(bucket) => Some(self.earliest(bucket)),
            None => self.far.peek().map(|&Reverse((time, ..))| Ps(time)),
        }
    }

    /// The time of the first event of a bucket of the wheel.
    fn earliest(&self, bucket: u64) -> Ps {
        let mut earliest = u64::MAX;
        let mut tail = self.tails[bucket as usize % BUCKETS];
        while tail != NONE {
            let (last, first) = (tail as usize, tail as usize / CHUNK * CHUNK);
            earliest = self.slots[first..=last].iter().map(|slot| slot.time).fold(earliest, u64::min);
            tail = self.before[last / CHUNK];
        }
        Ps(earliest)
    }

    /// Number of the first occupied bucket of the wheel after the open one.
    #[inline]
    fn next_bucket(&self) -> Option<u64> {
        let distance = self.occupancy.distance_to_next(self.open as usize % BUCKETS)?;
        Some(self.open + distance as u64)
    }

    /// Opens the next bucket that holds an event, if its first event lies before `end`. One that is not popped from must
    /// stay closed, because events may still be pushed before it.
    #[inline(never)]
    fn open_next(&mut self, end: Ps, batch: &mut Vec<M>, mut soon: impl FnMut(ComponentId, &M)) -> bool {
        let bucket = match self.next_bucket() {
            Some(bucket) => {
                let begins = bucket << BUCKET_BITS;
                if begins >= end.0 || begins + (1 << BUCKET_BITS) > end.0 && self.earliest(bucket) >= end {
                    return false;
                }
                bucket
            }
            None => match self.far.peek() {
                Some(&Reverse((time, ..))) if time < end.0 => time >> BUCKET_BITS,
                _ => return false,
            },
        };
        self.open = bucket;
        if !self.far.is_empty() {
            self.recall();
        }
        batch.clear();
        self.late.clear();
        let ring = bucket as usize % BUCKETS;
        let mut tail = std::mem::replace(&mut self.tails[ring], NONE);
        self.occupancy.clear(ring);
        while tail != NONE {
            let (last, first) = (tail as usize, tail as usize / CHUNK * CHUNK);
            let chunk = &self.slots[first..=last];
            let keys = (batch.len() as u32..).zip(chunk);
            self.run.extend(keys.map(|(index, slot)| key(slot.time, slot.tie, index)));
            batch.extend(chunk.iter().map(|slot| slot.message));
            chunk.iter().for_each(|slot| soon(ComponentId((slot.tie >> 48) as u16), &slot.message));
            tail = std::mem::replace(&mut self.before[last / CHUNK], self.free);
            self.free = last as u32;
        }
        if let Some(next) = self.next_bucket() {
            // Its messages are read when it is opened, soon.
            let last = self.tails[next as usize % BUCKETS] as usize;
            self.slots[last / CHUNK * CHUNK..=last].iter().for_each(prefetch);
        }
        if self.run.len() > 1 {
            self.run.sort_unstable_by(|a, b| b.cmp(a));
        }
        true
    }

    /// Moves what has come within the horizon of the open bucket from the far heap to the wheel.
    #[cold]
    fn recall(&mut self) {
        while let Some(&Reverse((time, tie, index))) = self.far.peek()
            && (time >> BUCKET_BITS) - self.open < BUCKETS as u64
        {
            self.far.pop();
            self.far_free.push(index);
            *self.place_in_wheel(time, tie) = self.far_messages[index as usize];
        }
    }

    /// A place among the events of the open bucket.
    #[inline(never)]
    fn place_in_open(&mut self, time: u64, tie: u64) -> &mut M {
        let index = self.late.len();
        self.late.push(M::default());
        let key = key(time, tie, LATE | index as u32);
        let place = self.run.partition_point(|&other| other > key);
        self.run.insert(place, key);
        &mut self.late[index]
    }

    /// A place `ahead` buckets away, until the wheel has come nearer.
    #[cold]
    fn place_far(&mut self, time: u64, tie: u64, ahead: u64) -> &mut M {
        assert!(ahead < 1 << 63, "an event is pushed at {}, in the past", Ps(time));
        let index = self.far_free.pop().unwrap_or_else(|| {
            self.far_messages.push(M::default());
            self.far_messages.len() as u32 - 1
        });
        self.far.push(Reverse((time, tie, index)));
        &mut self.far_messages[index as usize]
    }

    /// A place in a bucket of the wheel.
    #[inline(always)]
    fn place_in_wheel(&mut self, time: u64, tie: u64) -> &mut M {
        let ring = (time >> BUCKET_BITS) as usize % BUCKETS;
        let tail = self.tails[ring];
        let slot = if tail as usize % CHUNK == CHUNK - 1 { self.take_chunk(tail) } else { tail + 1 };
        self.tails[ring] = slot;
        self.occupancy.set(ring);
        let slot = &mut self.slots[slot as usize];
        (slot.time, slot.tie) = (time, tie);
        &mut slot.message
    }

    /// Takes an empty chunk that follows the one that ends with slot `previous`, or none; returns its first
    /// slot.
    #[inline]
    fn take_chunk(&mut self, previous: u32) -> u32 {
        if self.free == NONE {
            self.add_chunk();
        }
        let chunk = self.free / CHUNK as u32;
        self.free = std::mem::replace(&mut self.before[chunk as usize], previous);
        chunk * CHUNK as u32
    }

    /// Makes an empty chunk, where there is none.
    #[cold]
    fn add_chunk(&mut self) {
        assert!(self.slots.len() < LATE as usize - CHUNK, "the events of a queue take 2^31 slots");
        self.free = self.slots.len() as u32;
        self.slots.extend([Slot { time: 0, tie: 0, message: M::default() }; CHUNK]);
        self.before.push(NONE);
    }
}

/// The message in `batch` of an event that is due and not late.
#[inline(always)]
pub(crate) fn batch_message<M>(batch: &[M], due: Due) -> &M {
    &batch[due.index as usize]
}

/// The key of an event.
#[inline]
fn key(time: u64, tie: u64, index: u32) -> Key {
    Key::from(time & ((1 << BUCKET_BITS) - 1)) << 96 | Key::from(tie) << 32 | Key::from(index)
}

// The tail of an empty bucket must look like that of a full chunk: the first event takes a new one.
const _: () = assert!(NONE as usize % CHUNK == CHUNK - 1);

#[cfg(test)]
mod tests {
    use super::*;
    use tombolo_types::ComponentId;

    /// Replaces the first event by one `delay` later, so many times.
    fn turn_over(queue: &mut EventQueue<u8>, times: u32, mut delay: impl FnMut(u32) -> u64) {
        for sequence in 0..times {
            let first = queue.pop().expect("every event is replaced");
            queue.push(Event { time: first.time + Ps(delay(sequence)), sequence, ..first });
        }
    }

    fn filled(events: u32) -> EventQueue<u8> {
        let mut queue = EventQueue::new();
        let at = |sequence| Event { time: Ps(0), to: ComponentId(0), from: ComponentId(1), sequence, message: 0 };
        (0..events).for_each(|sequence| queue.push(at(sequence)));
        queue
    }

    #[test]
    fn a_steady_queue_keeps_to_the_storage_it_has() {
        let mut queue = filled(100);
        let delay = |sequence: u32| u64::from(sequence.wrapping_mul(0x9e37_79b1) >> 8) % 6_000_000;
        let storage = |queue: &EventQueue<u8>| {
            [queue.slots.capacity(), queue.before.capacity(), queue.run.capacity(), queue.far.capacity()]
        };
        turn_over(&mut queue, 200_000, delay);
        let before = storage(&queue);
        turn_over(&mut queue, 200_000, delay);
        assert_eq!(storage(&queue), before);
        assert!(queue.slots.len() <= 102 * CHUNK, "no more chunks than events, waiting or just popped");
    }

    #[test]
    fn a_bucket_that_begins_after_the_end_stays_closed() {
        let mut queue = filled(1);
        turn_over(&mut queue, 1, |_| 1_000_000);
        assert!(queue.pop_before(Ps(500_000)).is_none());
        assert_eq!(queue.open, 0, "what is pushed before it goes to the wheel, not to the open bucket");
    }
}
