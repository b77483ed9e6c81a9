//! The event queue of one partition: a time wheel with a far-future heap behind it.
//!
//! Events wait in the bucket of their few nanoseconds, in chunks of a few, so that a bucket that is opened is read
//! in long strides and a push writes where the last one to the same bucket wrote. Only open buckets are
//! ordered: as many as hold a dozen events are kept open, so that there is something to look ahead to; their
//! keys are sorted, and what is pushed into them afterwards goes to a small heap beside the sorted run. What lies
//! beyond the wheel's horizon waits in a heap and joins the wheel as it turns. All storage is kept and reused, so a
//! queue in a steady state allocates nothing.

use crate::event::Event;
use crate::occupancy::{BUCKETS, Occupancy};
use crate::prefetch::prefetch;
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use tombolo_types::{ComponentId, Ps};

/// Picoseconds of a bucket, as a power of two: 4096 ps, a few GPU clocks, so that the buckets of a partition with a
/// few SMs hold an event or two and their chunks are not mostly empty. Source: measured, `run --machine hmg-4x4
/// --workload triad --scale 1/16` is 1.14 times as fast as with four times as many buckets of 1024 ps.
const BUCKET_BITS: u32 = 12;

/// Buckets are opened until so many events are in the run. Assumed: a little further than a partition is told
/// ahead; more send more late events through the heap, fewer leave less to look ahead to.
const DEPTH: usize = 12;

/// Popped keys are forgotten so many at a time.
const FORGET: usize = 64;

/// Events of a chunk. Source: measured in `benches/queue.rs`; more waste memory in sparse buckets, fewer
/// follow more links in full ones.
const CHUNK: usize = 4;

/// How often an event can be shown before it comes out.
pub(crate) const ROUNDS: usize = 5;

/// No slot: the tail of an empty bucket, the end of a list of chunks.
const NONE: u32 = u32::MAX;

/// Events in their total order: [`EventQueue::pop`] gives the smallest (`time`, `to`, `from`, `sequence`).
///
/// An event may be pushed at any time not before the last one popped, also into the middle of the events
/// that have the time of the last one popped.
pub struct EventQueue<M> {
    /// Chunk `c` is slots `c * CHUNK` to `c * CHUNK + CHUNK - 1`, filled from the first.
    slots: Vec<Slot<M>>,
    /// By chunk.
    links: Vec<Link>,
    /// A slot of the first chunk without events; `links` leads to the others.
    free: u32,
    /// Last slot in use of each bucket of the wheel, by bucket number modulo `BUCKETS`.
    tails: Box<[u32]>,
    occupancy: Occupancy,
    /// Number (time / 4096 ps) of the last open bucket. Everything up to it is in `run` or `late`, everything within
    /// `BUCKETS` of it in the wheel, everything beyond in `far`.
    open: u64,
    /// When the first bucket that holds an event and is not open begins, in picoseconds; the largest number where there
    /// is none.
    closed_from: u64,
    /// Keys of the open buckets, in order.
    run: Vec<Key>,
    /// How many of them have been popped.
    popped: usize,
    /// For each round of looking ahead: how many of them have been shown or popped unshown.
    shown: [usize; ROUNDS],
    /// What was pushed into the open buckets after they were sorted.
    late: BinaryHeap<LargestFirst<M>>,
    far: BinaryHeap<LargestFirst<M>>,
    len: usize,
}

/// What is known of a chunk.
#[derive(Clone, Copy)]
struct Link {
    /// The last slot of the chunk before it in the same bucket, all of whose slots are full; of a free chunk, a slot of
    /// the next free one.
    before: u32,
    /// Slots in use.
    used: u32,
}

/// A waiting event, or an empty place for one.
struct Slot<M> {
    time: u64,
    tie: u64,
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

/// An event in the reverse of the total order, so that a [`BinaryHeap`] gives the first one.
struct LargestFirst<M>(Event<M>);

impl<M> PartialEq for LargestFirst<M> {
    fn eq(&self, other: &Self) -> bool {
        self.0.key() == other.0.key()
    }
}

impl<M> Eq for LargestFirst<M> {}

impl<M> PartialOrd for LargestFirst<M> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<M> Ord for LargestFirst<M> {
    fn cmp(&self, other: &Self) -> Ordering {
        other.0.key().cmp(&self.0.key())
    }
}

fn bucket_of(time: Ps) -> u64 {
    time.0 >> BUCKET_BITS
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
            links: Vec::new(),
            free: NONE,
            tails: vec![NONE; BUCKETS].into_boxed_slice(),
            occupancy: Occupancy::new(),
            open: 0,
            closed_from: u64::MAX,
            run: Vec::new(),
            popped: 0,
            shown: [0; ROUNDS],
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
    /// the past. Panics when the events waiting take 2^32 slots.
    pub fn push(&mut self, event: Event<M>) {
        self.len += 1;
        let bucket = bucket_of(event.time);
        match bucket.checked_sub(self.open) {
            None | Some(0) => return self.late.push(LargestFirst(event)),
            Some(ahead) if ahead < BUCKETS as u64 => self.put(event),
            Some(_) => self.far.push(LargestFirst(event)),
        }
        self.closed_from = self.closed_from.min(bucket << BUCKET_BITS);
    }

    /// Removes the first event in the total order.
    pub fn pop(&mut self) -> Option<Event<M>> {
        self.pop_before(Ps::NEVER)
    }

    /// Removes the first event in the total order if its time lies before `end`.
    pub fn pop_before(&mut self, end: Ps) -> Option<Event<M>> {
        let late = self.first_before(end)?;
        self.take_first(late)
    }

    /// Opens buckets as far as is to be looked ahead, and says whether the first event came late, if it comes before
    /// `end`. A bucket that begins at or after `end` stays closed, because events may still be pushed before it.
    #[inline]
    pub(crate) fn first_before(&mut self, end: Ps) -> Option<bool> {
        if self.closed_from < end.0 && self.run.len() - self.popped < DEPTH {
            self.open_more(end);
        }
        let (time, late) = self.first_open()?;
        (time < end).then_some(late)
    }

    /// Removes the first event, `late` or not, as [`EventQueue::first_before`] has just said.
    #[inline]
    pub(crate) fn take_first(&mut self, late: bool) -> Option<Event<M>> {
        self.len -= 1;
        if late {
            return self.late.pop().map(|late| late.0);
        }
        let key = self.run[self.popped];
        self.popped += 1;
        let message = self.slots[key.slot as usize].message.take().expect("a key names a full slot");
        self.release(key.slot);
        Some(Event::from_key((key.time, key.tie), message))
    }

    /// A slot has been emptied: frees its chunk with the last of them.
    #[inline]
    fn release(&mut self, slot: u32) {
        let link = &mut self.links[slot as usize / CHUNK];
        link.used -= 1;
        if link.used == 0 {
            link.before = self.free;
            self.free = slot;
        }
    }

    /// Shows `visit` the receivers and messages of the next `ahead` events that it has not been shown in this
    /// `round`, 0 to 4. What is pushed into a bucket after it was opened is never shown.
    #[inline]
    pub fn look_ahead(&mut self, round: usize, ahead: usize, mut visit: impl FnMut(ComponentId, &M)) {
        for at in self.next_shown(round, ahead) {
            let key = &self.run[at];
            if let Some(message) = &self.slots[key.slot as usize].message {
                visit(ComponentId((key.tie >> 48) as u16), message);
            }
        }
    }

    /// Starts to load the messages of the next `ahead` events, in a round of its own.
    #[inline]
    pub fn load_ahead(&mut self, round: usize, ahead: usize) {
        for at in self.next_shown(round, ahead) {
            prefetch(&self.slots[self.run[at].slot as usize].message);
        }
    }

    /// Of the next `ahead` keys of the run, those that this round has not shown.
    #[inline]
    fn next_shown(&mut self, round: usize, ahead: usize) -> std::ops::Range<usize> {
        let from = self.shown[round].max(self.popped);
        let until = (self.popped + ahead).min(self.run.len()).max(from);
        self.shown[round] = until;
        from..until
    }

    /// The time of the first event, or `None` if no event waits.
    pub fn next_time(&self) -> Option<Ps> {
        if let Some((time, _)) = self.first_open() {
            return Some(time);
        }
        let Some(bucket) = self.next_bucket() else {
            return self.far.peek().map(|far| far.0.time);
        };
        let mut earliest = u64::MAX;
        let tail = self.tails[bucket as usize % BUCKETS];
        for_each(&self.slots, &self.links, tail, |_, waiting| earliest = earliest.min(waiting.time));
        Some(Ps(earliest))
    }

    /// Time of the first event of the open bucket, and whether it came after the bucket was sorted.
    fn first_open(&self) -> Option<(Ps, bool)> {
        match (self.run.get(self.popped), self.late.peek()) {
            (Some(run), None) => Some((Ps(run.time), false)),
            (Some(run), Some(late)) if (run.time, run.tie) < late.0.key() => Some((Ps(run.time), false)),
            (_, Some(late)) => Some((late.0.time, true)),
            (None, None) => None,
        }
    }

    /// Number of the first occupied bucket of the wheel after the open one.
    fn next_bucket(&self) -> Option<u64> {
        let distance = self.occupancy.distance_to_next(self.open as usize % BUCKETS)?;
        Some(self.open + distance as u64)
    }

    /// Opens the next buckets that hold events and begin before `end`, until there is enough to look ahead to.
    fn open_more(&mut self, end: Ps) {
        if self.popped >= FORGET {
            self.run.drain(..self.popped);
            self.shown = self.shown.map(|shown| shown.saturating_sub(self.popped));
            self.popped = 0;
        }
        while self.closed_from < end.0 && self.run.len() - self.popped < DEPTH {
            self.open_bucket(self.closed_from >> BUCKET_BITS);
            self.closed_from = self.next_closed().map_or(u64::MAX, |bucket| bucket << BUCKET_BITS);
        }
    }

    /// Number of the first bucket that holds an event and is not open.
    fn next_closed(&self) -> Option<u64> {
        self.next_bucket().or_else(|| self.far.peek().map(|far| bucket_of(far.0.time)))
    }

    /// Adds the events of a bucket to the run.
    fn open_bucket(&mut self, bucket: u64) {
        self.open = bucket;
        self.recall();
        let ring = bucket as usize % BUCKETS;
        let tail = std::mem::replace(&mut self.tails[ring], NONE);
        self.occupancy.clear(ring);
        let first = self.run.len();
        for_each(&self.slots, &self.links, tail, |slot, waiting| {
            self.run.push(Key { time: waiting.time, tie: waiting.tie, slot });
        });
        self.run[first..].sort_unstable();
    }

    /// Moves what has come within the horizon of the open bucket from the far heap to the wheel.
    fn recall(&mut self) {
        while self.far.peek().is_some_and(|far| bucket_of(far.0.time) - self.open < BUCKETS as u64) {
            if let Some(LargestFirst(event)) = self.far.pop() {
                self.put(event);
            }
        }
    }

    /// Puts an event into its bucket of the wheel.
    fn put(&mut self, event: Event<M>) {
        let ring = bucket_of(event.time) as usize % BUCKETS;
        let tail = self.tails[ring];
        let slot = if tail as usize % CHUNK == CHUNK - 1 { self.take_chunk(tail) } else { tail + 1 };
        self.tails[ring] = slot;
        self.links[slot as usize / CHUNK].used += 1;
        self.occupancy.set(ring);
        let (time, tie) = event.key();
        self.slots[slot as usize] = Slot { time, tie, message: Some(event.message) };
    }

    /// Takes an empty chunk that follows the one that ends with slot `previous`, or none; returns its first
    /// slot.
    fn take_chunk(&mut self, previous: u32) -> u32 {
        if self.free == NONE {
            self.add_chunk();
        }
        let chunk = self.free / CHUNK as u32;
        let link = &mut self.links[chunk as usize];
        self.free = std::mem::replace(&mut link.before, previous);
        chunk * CHUNK as u32
    }

    /// Makes an empty chunk, where there is none.
    #[cold]
    fn add_chunk(&mut self) {
        assert!(self.slots.len() < NONE as usize - CHUNK, "the events of a queue take 2^32 slots");
        self.free = self.slots.len() as u32;
        self.slots.extend(std::iter::repeat_with(|| Slot { time: 0, tie: 0, message: None }).take(CHUNK));
        self.links.push(Link { before: NONE, used: 0 });
    }
}

/// Shows `visit` each event of a bucket whose last slot is `tail`, with its slot: the chunk filled last first,
/// the first chunk last.
fn for_each<M>(slots: &[Slot<M>], links: &[Link], mut tail: u32, mut visit: impl FnMut(u32, &Slot<M>)) {
    while tail != NONE {
        let last = tail as usize;
        let first = last - last % CHUNK;
        for (slot, waiting) in (first as u32..).zip(&slots[first..=last]) {
            visit(slot, waiting);
        }
        tail = links[last / CHUNK].before;
    }
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
            [queue.slots.capacity(), queue.links.capacity(), queue.run.capacity(), queue.far.capacity()]
        };
        turn_over(&mut queue, 200_000, delay);
        let before = storage(&queue);
        turn_over(&mut queue, 200_000, delay);
        assert_eq!(storage(&queue), before);
        assert!(queue.slots.len() <= (100 + DEPTH) * CHUNK, "no more chunks than events, waiting or just popped");
    }

    #[test]
    fn a_bucket_that_begins_after_the_end_stays_closed() {
        let mut queue = filled(1);
        turn_over(&mut queue, 1, |_| 1_000_000);
        assert!(queue.pop_before(Ps(500_000)).is_none());
        assert_eq!(queue.open, 0, "what is pushed before it goes to the wheel, not to the open bucket");
    }
}
