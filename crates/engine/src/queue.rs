//! The event queue for a partition: a time wheel, backed by a heap for the far future.
//!
//! Events wait in the bucket for their time, in small chunks. A push therefore writes close to the last push into this
//! bucket. Only the open bucket is ordered: when a bucket opens, all chunks are moved out of the wheel and the keys are
//! sorted. Later pushes into the open bucket are inserted at their position. Events beyond the wheel's horizon wait in
//! a heap and join the wheel as it turns. A bucket with more events than keys can name opens in parts: the rest waits
//! in a sorted map, the *crowd*. All storage is kept and reused, most recently emptied first. A queue in a steady state
//! therefore allocates nothing and writes memory that is still in the host's caches.
//!
//! Opening a bucket costs about the time for sorting some events. The bucket width therefore follows the event density:
//! the width is reviewed at intervals, doubled if buckets held few events, and halved if buckets held many. The order
//! never depends on the width.
//!
//! A message is written at its final position ([`EventQueue::place`]) and read there some time later. A processor that
//! reads recently written data in different pieces would otherwise wait until all its stores have reached the cache.

use crate::event::Event;
use crate::occupancy::{BUCKETS, Occupancy};
use crate::prefetch::prefetch;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use tombolo_types::{ComponentId, Ps};

/// Width of the narrowest bucket in picoseconds, given by a power of two: 4096 ps, a few GPU clocks. Source: measured.
/// `run --machine hmg-4x4 --workload triad --scale 1/16` runs 1.14 times faster than with 1024 ps buckets, which hold
/// an event or two. With 8192 ps, `cargo bench -p tombolo-system --bench throughput remote` takes 0.98 of the time and
/// `reuse` 1.1 times as long: more events are pushed into the open bucket, too late to be loaded with it.
const NARROWEST: u32 = 12;

/// Width of the widest bucket in picoseconds, given by a power of two: half a crossbar latency, so that most crossing
/// messages lie in a bucket not yet open. Source: hmg-4x4, 40 cycles at 1.3 GHz. The largest shipped machine has 512
/// SMs per partition: with five events per SM and cycle, they fill less than half a bucket's capacity.
const WIDEST: u32 = 14;

/// Number of buckets opened between two reviews of the event count, or fewer if buckets hold many events. Assumed: a
/// fraction of a kernel.
const REVIEW: u64 = 1024;

/// Average number of events per bucket below which the width doubles. Assumed: opening a bucket costs about the time
/// for sorting some events.
const FEW: u64 = 4;

/// Average number of events per bucket above which the width is halved: more than twice [`FEW`] at double width.
/// Assumed.
const MANY: u64 = 32;

/// Events per chunk. Source: measured with `cargo bench -p tombolo-system --bench throughput`: with 8, memory use is
/// equal and a few more instructions are necessary. Larger chunks waste memory in sparse buckets, smaller ones require
/// more links in full buckets.
const CHUNK: usize = 16;

/// No slot: marks the tail in an empty bucket, or the end in a chunk list.
const NONE: u32 = u32::MAX;

/// Bits used for an event's index in a [`Key`].
const INDEX_BITS: u32 = 18;

/// Flag in an event's index: the event was pushed after its bucket was opened.
const LATE: u32 = 1 << (INDEX_BITS - 1);

/// All bits of an index: higher than any event's index.
const EVERY_INDEX: u32 = (1 << INDEX_BITS) - 1;

/// Maximum number of chunks in a bucket whose events keys can name.
const CHUNKS_NAMED: usize = LATE as usize / CHUNK;

/// Events leaving the crowd together. Assumed: half the number of nameable events, which leaves room for equally many
/// pushes.
const PART: usize = LATE as usize / 2;

/// Events in their total order: [`EventQueue::pop`] returns the smallest (`time`, `to`, `from`, `sequence`).
///
/// An event may be pushed at any time not before the last popped event, also between events with the same time as the
/// last popped one. Events with the same `time`, `to` and `from` must be pushed in the order of `sequence`. An engine
/// ensures this: a queue receives a source's events in their sending order, because parcels between threads keep this
/// order and are emptied before the next ones.
pub struct EventQueue<M> {
    /// Storage of the wheel. Chunk `c` has slots `c * CHUNK` to `c * CHUNK + CHUNK - 1`, filled from the first.
    chunks: Vec<Box<Chunk<M>>>,
    /// Links by chunk. For a chunk in use: the last slot in the bucket's previous chunk, whose slots are all full. For
    /// a free chunk: a slot in the next free chunk.
    before: Vec<u32>,
    /// A slot in the first free chunk; `before` leads to the rest of the list.
    free: u32,
    /// Last used slot per bucket of the wheel, by bucket number modulo `BUCKETS`.
    tails: Box<[u32; BUCKETS]>,
    occupancy: Occupancy,
    /// Binary logarithm of a bucket's width in picoseconds, from [`NARROWEST`] to [`WIDEST`].
    width: u32,
    /// Number of the open bucket (time over the width). This bucket's events are in `run`, events in the next `BUCKETS`
    /// buckets in the wheel, and all later events in `far`. No event lies before this bucket: a bucket is opened only
    /// for a pop.
    open: u64,
    /// Start time for the open bucket.
    base: Ps,
    /// Buckets opened since the last review, and the number of events inside.
    opened: u64,
    held: u64,
    /// Keys for the open bucket, the first event last.
    run: Vec<Key>,
    /// Chunks in the open bucket, the first filled last, possibly followed by empty chunks.
    pub(crate) batch: Vec<Box<Chunk<M>>>,
    /// Events pushed into the open bucket after it was opened, by index without `LATE`.
    late: Vec<Event<M>>,
    /// Events in the open bucket without keys in `run`, by [`Event::key`]: more than indices can name.
    crowd: BTreeMap<(u64, u64), Event<M>>,
    /// Bound for the keys in `run` whose events come before the crowd.
    crowd_from: Key,
    /// Events beyond the horizon: time, number and index in `far_events`.
    far: BinaryHeap<Reverse<(Ps, u64, u32)>>,
    far_events: Vec<Event<M>>,
    /// Free indices in `far_events`.
    far_free: Vec<u32>,
    /// Number of events pushed beyond the horizon so far: the next event's number.
    far_pushed: u64,
}

/// Storage for a few events in a bucket, in push order.
pub(crate) type Chunk<M> = [EventSlot<M>; CHUNK];

/// A waiting event, or an empty slot for an event: within a single cache line of the host if the message is small
/// enough.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(crate) struct EventSlot<M>(Event<M>);

/// An event's position in the bucket's order, and the storage location. From the highest bit: time within the bucket
/// (14 bits), `to` (16), `from` (16) and the index (18), which is higher for later pushes.
type Key = u64;

impl<M: Copy + Default> Default for EventQueue<M> {
    fn default() -> Self {
        EventQueue::new()
    }
}

impl<M: Copy + Default> EventQueue<M> {
    /// An empty queue at time zero.
    pub fn new() -> EventQueue<M> {
        EventQueue {
            chunks: Vec::new(),
            before: Vec::new(),
            free: NONE,
            tails: Box::new([NONE; BUCKETS]),
            occupancy: Occupancy::new(),
            width: NARROWEST,
            open: 0,
            base: Ps::ZERO,
            opened: 0,
            held: 0,
            run: Vec::new(),
            batch: Vec::new(),
            late: Vec::new(),
            crowd: BTreeMap::new(),
            crowd_from: Key::MAX,
            far: BinaryHeap::new(),
            far_events: Vec::new(),
            far_free: Vec::new(),
            far_pushed: 0,
        }
    }

    /// Number of events waiting.
    pub fn len(&self) -> usize {
        let wheel = (0..BUCKETS as u64).map(|bucket| self.waiting(bucket).map(<[_]>::len).sum::<usize>());
        self.run.len() + self.crowd.len() + wheel.sum::<usize>() + self.far.len()
    }

    /// True if no event waits.
    pub fn is_empty(&self) -> bool {
        self.next_time().is_none()
    }

    /// Adds an event. Its time must not lie before the last popped event, or it would be handled in the past. Panics if
    /// the waiting events take 2^32 slots.
    #[inline]
    pub fn push(&mut self, event: Event<M>) {
        *self.place(event.time, event.to, event.from, event.sequence) = event.message;
    }

    /// Adds an event; the caller writes the message to the returned reference.
    #[inline(always)]
    pub(crate) fn place(&mut self, time: Ps, to: ComponentId, from: ComponentId, sequence: u32) -> &mut M {
        let bucket = time.0 >> self.width;
        if bucket.wrapping_sub(self.open).wrapping_sub(1) < BUCKETS as u64 - 1 {
            let tail = &mut self.tails[bucket as usize % BUCKETS];
            if *tail as usize % CHUNK != CHUNK - 1 {
                *tail += 1;
                let chunk = &mut self.chunks[*tail as usize / CHUNK];
                let slot = *tail as usize % CHUNK;
                // The next push to the bucket writes to this slot.
                prefetch(&chunk[(slot + 1) % CHUNK]);
                return chunk[slot].fill(time, to, from, sequence);
            }
        }
        self.place_aside(time, to, from, sequence)
    }

    /// Removes the first event in the total order.
    pub fn pop(&mut self) -> Option<Event<M>> {
        self.pop_before(Ps::NEVER)
    }

    /// Removes the first event in the total order if its time lies before `end`.
    #[inline]
    pub fn pop_before(&mut self, end: Ps) -> Option<Event<M>> {
        let mut batch = std::mem::take(&mut self.batch);
        let mut index = self.next(self.bound(end));
        if index.is_none() && self.open_next::<false>(end, &mut batch, |_| {}, |_| {}) {
            index = self.next(self.bound(end));
        }
        let event = index.map(|index| if is_late(index) { self.late(index) } else { *on_time(&batch, index) });
        self.batch = batch;
        event
    }

    /// Bound for the keys of events before `end` in the open bucket.
    #[inline(always)]
    pub(crate) fn bound(&self, end: Ps) -> u64 {
        match end.0.saturating_sub(self.base.0) {
            within if within < 1 << WIDEST => within << (u64::BITS - WIDEST),
            _ => u64::MAX,
        }
    }

    /// Removes the first event in the open bucket if its key is below `bound`, and returns its index. If [`is_late`]
    /// holds for the index, read the event with [`EventQueue::late`], otherwise with [`on_time`] from `batch`. Also
    /// `None` if the crowd must be opened.
    #[inline(always)]
    pub(crate) fn next(&mut self, bound: u64) -> Option<u32> {
        let bound = bound.min(self.crowd_from);
        let key = self.run.pop_if(|key| *key < bound)?;
        Some(key as u32 & EVERY_INDEX)
    }

    /// Event pushed into the open bucket after it was opened.
    #[inline(always)]
    pub(crate) fn late(&self, index: u32) -> Event<M> {
        self.late[(index & !LATE) as usize]
    }

    /// Time of the first event, or `None` if no event waits.
    pub fn next_time(&self) -> Option<Ps> {
        let open = [self.run.last().copied(), self.crowd.first_key_value().map(|_| self.crowd_from)];
        if let Some(key) = open.into_iter().flatten().min() {
            return Some(Ps(self.base.0 + (key >> (u64::BITS - WIDEST))));
        }
        match self.next_bucket() {
            Some(bucket) => Some(self.first_of(bucket)),
            None => self.far.peek().map(|&Reverse((time, ..))| time),
        }
    }

    /// Time of the first event in an occupied wheel bucket.
    fn first_of(&self, bucket: u64) -> Ps {
        let mut first = Ps::NEVER;
        for slots in self.waiting(bucket) {
            for slot in slots {
                first = first.min(slot.0.time);
            }
        }
        first
    }

    /// Waiting events in a bucket of the wheel, the last chunk first.
    #[inline]
    fn waiting(&self, bucket: u64) -> impl Iterator<Item = &[EventSlot<M>]> {
        let mut tail = self.tails[bucket as usize % BUCKETS];
        std::iter::from_fn(move || {
            let (chunk, last) = (tail as usize / CHUNK, tail as usize % CHUNK);
            tail = *self.before.get(chunk)?;
            Some(&self.chunks[chunk][..=last])
        })
    }

    /// Number of the first occupied wheel bucket after the open bucket.
    #[inline]
    fn next_bucket(&self) -> Option<u64> {
        let distance = self.occupancy.distance_to_next(self.open as usize % BUCKETS)?;
        Some(self.open + distance as u64)
    }

    /// Opens the next bucket with an event, if its first event lies before `end`. A bucket that is not popped from must
    /// stay closed, because events may still be pushed before it. The open bucket must hold no events before `end`.
    /// `batch` is `self.batch`, moved out of the queue to make the events readable during pushes. With `HINTS`, passes
    /// all events in the bucket to `first`, and then all to `then`, each some time before the pop.
    #[inline(never)]
    pub(crate) fn open_next<const HINTS: bool>(
        &mut self,
        end: Ps,
        batch: &mut Vec<Box<Chunk<M>>>,
        mut first: impl FnMut(&Event<M>),
        mut then: impl FnMut(&Event<M>),
    ) -> bool {
        if !self.crowd.is_empty() {
            return self.open_crowd(end, batch);
        }
        if self.opened >= REVIEW || self.held >= MANY * REVIEW {
            self.review();
        }
        let Some(bucket) = self.next_bucket_before(end) else { return false };
        (self.open, self.base) = (bucket, Ps(bucket << self.width));
        if !self.far.is_empty() {
            self.recall();
        }
        self.held += self.late.len() as u64;
        self.late.clear();
        let ring = bucket as usize % BUCKETS;
        let mut tail = std::mem::replace(&mut self.tails[ring], NONE);
        self.occupancy.clear(ring);
        for place in 0.. {
            if tail == NONE {
                break;
            }
            if place == CHUNKS_NAMED {
                self.crowd_out(tail);
                break;
            }
            let (chunk, last) = (tail as usize / CHUNK, tail as usize % CHUNK);
            if place == batch.len() {
                batch.push(empty_chunk());
            }
            if HINTS && let Some(chunk) = self.chunks.get(self.before[chunk] as usize / CHUNK) {
                // This chunk is read next.
                chunk.iter().for_each(prefetch);
            }
            std::mem::swap(&mut self.chunks[chunk], &mut batch[place]);
            let events = &batch[place][..=last];
            let index = first_index(place);
            // The last push comes first, which is nearly the sorted order.
            let base = self.base;
            let key = |(slot, event): (usize, &EventSlot<M>)| key(&event.0, base, index + slot as u32);
            self.run.extend(events.iter().enumerate().rev().map(key));
            if HINTS {
                events.iter().for_each(|slot| first(&slot.0));
            }
            (tail, self.before[chunk], self.free) = (self.before[chunk], self.free, tail);
        }
        if HINTS && let Some(next) = self.next_bucket() {
            // The next bucket's events are read soon, when it is opened.
            self.waiting(next).take(1).flatten().for_each(prefetch);
        }
        self.opened += 1;
        self.held += (self.run.len() + self.crowd.len()) as u64;
        if !self.crowd.is_empty() {
            self.take_part(batch);
            return true;
        }
        if self.run.len() > 1 {
            self.run.sort_unstable_by(|a, b| b.cmp(a));
        }
        let keys = if HINTS { &self.run[..] } else { &[] };
        for key in keys.iter().rev() {
            then(on_time(batch, *key as u32 & EVERY_INDEX));
        }
        true
    }

    /// Moves the bucket's events that keys cannot name into the crowd: the chunks up to slot `tail`.
    #[cold]
    fn crowd_out(&mut self, mut tail: u32) {
        while tail != NONE {
            let (chunk, last) = (tail as usize / CHUNK, tail as usize % CHUNK);
            let events = &self.chunks[chunk][..=last];
            self.crowd.extend(events.iter().map(|slot| (slot.0.key(), slot.0)));
            (tail, self.before[chunk], self.free) = (self.before[chunk], self.free, tail);
        }
    }

    /// Opens the next part of the open bucket, if the crowd holds the first event, and this event lies before `end`.
    #[cold]
    fn open_crowd(&mut self, end: Ps, batch: &[Box<Chunk<M>>]) -> bool {
        let is_first = self.run.last().is_none_or(|key| *key >= self.crowd_from);
        let opens = is_first && self.crowd.first_key_value().is_some_and(|(&(time, _), _)| time < end.0);
        if opens {
            self.take_part(batch);
        }
        opens
    }

    /// Fills `run` with the first events in the open bucket, and moves all later ones to the crowd.
    #[cold]
    fn take_part(&mut self, batch: &[Box<Chunk<M>>]) {
        for key in std::mem::take(&mut self.run) {
            let index = key as u32 & EVERY_INDEX;
            let event = if is_late(index) { self.late(index) } else { *on_time(batch, index) };
            self.crowd.insert(event.key(), event);
        }
        self.late.clear();
        while self.late.len() < PART
            && let Some((_, event)) = self.crowd.pop_first()
        {
            self.run.push(key(&event, self.base, LATE | self.late.len() as u32));
            self.late.push(event);
        }
        self.run.reverse();
        let first = self.crowd.first_key_value();
        self.crowd_from = first.map_or(Key::MAX, |(_, event)| key(event, self.base, EVERY_INDEX));
    }

    /// Next bucket to open, if its first event lies before `end`.
    #[inline(always)]
    fn next_bucket_before(&self, end: Ps) -> Option<u64> {
        let Some(bucket) = self.next_bucket() else {
            let &Reverse((time, ..)) = self.far.peek()?;
            return (time < end).then_some(time.0 >> self.width);
        };
        let begins = bucket << self.width;
        let surely = begins + (1 << self.width) <= end.0;
        (surely || begins < end.0 && self.first_of(bucket) < end).then_some(bucket)
    }

    /// Moves events that have come within the open bucket's horizon from the far heap to the wheel.
    #[cold]
    fn recall(&mut self) {
        while let Some(&Reverse((time, _, index))) = self.far.peek()
            && (time.0 >> self.width) - self.open < BUCKETS as u64
        {
            self.far.pop();
            self.far_free.push(index);
            let Event { to, from, sequence, message, .. } = self.far_events[index as usize];
            *self.place_in_wheel(time, to, from, sequence) = message;
        }
    }

    /// Changes the width of the buckets if those opened recently held few events or many, once the open bucket is
    /// empty.
    #[cold]
    fn review(&mut self) {
        let (few, many) = (self.held < FEW * self.opened, self.held > MANY * self.opened);
        if !self.run.is_empty() {
            return;
        }
        // The open bucket becomes the last part of a wider one, or its first part becomes a narrower one: all waiting
        // events lie behind it.
        let (width, open) = match (few, many) {
            (true, _) if self.width < WIDEST => (self.width + 1, self.open >> 1),
            (_, true) if self.width > NARROWEST => (self.width - 1, self.open << 1),
            _ => (self.width, self.open),
        };
        if width > self.width && self.open.is_multiple_of(2) {
            // The change waits until after the next bucket.
            return;
        }
        (self.opened, self.held) = (0, 0);
        if width != self.width {
            self.set_width(width, open);
        }
    }

    /// Sets a new width for the buckets; `open` becomes the open bucket.
    fn set_width(&mut self, width: u32, open: u64) {
        let waiting = self.take_waiting();
        (self.width, self.open, self.base) = (width, open, Ps(open << width));
        for Event { time, to, from, sequence, message } in waiting {
            *self.place(time, to, from, sequence) = message;
        }
        // The horizon has changed with the width.
        self.recall();
    }

    /// Empties the wheel. Events from one bucket come in push order.
    fn take_waiting(&mut self) -> Vec<Event<M>> {
        let mut events = Vec::new();
        let mut bucket = self.open;
        while let Some(distance) = self.occupancy.distance_to_next(bucket as usize % BUCKETS) {
            bucket += distance as u64;
            let ring = bucket as usize % BUCKETS;
            let mut slots: Vec<&[EventSlot<M>]> = self.waiting(bucket).collect();
            slots.reverse();
            events.extend(slots.into_iter().flatten().map(|slot| slot.0));
            let mut tail = std::mem::replace(&mut self.tails[ring], NONE);
            self.occupancy.clear(ring);
            while tail != NONE {
                let before = &mut self.before[tail as usize / CHUNK];
                (tail, *before, self.free) = (*before, self.free, tail);
            }
        }
        events
    }

    /// Slot for an event without room in the last chunk of its bucket.
    #[inline(never)]
    fn place_aside(&mut self, time: Ps, to: ComponentId, from: ComponentId, sequence: u32) -> &mut M {
        match (time.0 >> self.width).wrapping_sub(self.open) {
            0 => self.place_in_open(time, to, from, sequence),
            ahead if ahead < BUCKETS as u64 => self.place_in_wheel(time, to, from, sequence),
            ahead => {
                assert!(ahead < 1 << 63, "an event is pushed at {time}, in the past");
                self.place_far(time, to, from, sequence)
            }
        }
    }

    /// Slot among the events in the open bucket.
    #[inline(never)]
    fn place_in_open(&mut self, time: Ps, to: ComponentId, from: ComponentId, sequence: u32) -> &mut M {
        let (index, event) = (self.late.len(), Event { time, to, from, sequence, message: M::default() });
        // An event behind any crowd event, or behind all crowd events with the same time, destination and source,
        // belongs to the crowd.
        if index == LATE as usize - 1 || key(&event, self.base, EVERY_INDEX) >= self.crowd_from {
            return self.place_in_crowd(event);
        }
        self.late.push(event);
        let late = &mut self.late[index];
        let key = key(late, self.base, LATE | index as u32);
        let place = self.run.partition_point(|&other| other > key);
        self.run.insert(place, key);
        &mut late.message
    }

    /// Slot in the crowd of the open bucket.
    #[cold]
    fn place_in_crowd(&mut self, event: Event<M>) -> &mut M {
        self.crowd_from = self.crowd_from.min(key(&event, self.base, EVERY_INDEX));
        &mut self.crowd.entry(event.key()).or_insert(event).message
    }

    /// Slot in the far heap, until the wheel has come nearer.
    #[cold]
    fn place_far(&mut self, time: Ps, to: ComponentId, from: ComponentId, sequence: u32) -> &mut M {
        let event = Event { time, to, from, sequence, message: M::default() };
        let index = self.far_free.pop().unwrap_or_else(|| {
            self.far_events.push(event);
            self.far_events.len() as u32 - 1
        });
        self.far.push(Reverse((time, self.far_pushed, index)));
        self.far_pushed += 1;
        let place = &mut self.far_events[index as usize];
        *place = event;
        &mut place.message
    }

    /// Slot in a wheel bucket.
    #[inline(always)]
    fn place_in_wheel(&mut self, time: Ps, to: ComponentId, from: ComponentId, sequence: u32) -> &mut M {
        let ring = (time.0 >> self.width) as usize % BUCKETS;
        let tail = self.tails[ring];
        let slot = if tail as usize % CHUNK == CHUNK - 1 { self.take_chunk(tail) } else { tail + 1 };
        self.tails[ring] = slot;
        if tail == NONE {
            self.occupancy.set(ring);
        }
        self.chunks[slot as usize / CHUNK][slot as usize % CHUNK].fill(time, to, from, sequence)
    }

    /// Allocates an empty chunk after the chunk ending with slot `previous`, or without a predecessor; returns the
    /// first slot.
    fn take_chunk(&mut self, previous: u32) -> u32 {
        if self.free == NONE {
            self.add_chunk();
        }
        let chunk = self.free / CHUNK as u32;
        self.free = std::mem::replace(&mut self.before[chunk as usize], previous);
        chunk * CHUNK as u32
    }

    /// Adds an empty chunk, if none is free.
    #[cold]
    fn add_chunk(&mut self) {
        assert!(self.chunks.len() < NONE as usize / CHUNK, "the events of a queue take 2^32 slots");
        self.free = (self.chunks.len() * CHUNK) as u32;
        self.chunks.push(empty_chunk());
        self.before.push(NONE);
    }
}

impl<M> EventSlot<M> {
    /// Stores an event here; the caller writes the message to the returned reference.
    #[inline(always)]
    fn fill(&mut self, time: Ps, to: ComponentId, from: ComponentId, sequence: u32) -> &mut M {
        let event = &mut self.0;
        (event.time, event.to, event.from, event.sequence) = (time, to, from, sequence);
        &mut event.message
    }
}

#[cold]
fn empty_chunk<M: Copy + Default>() -> Box<Chunk<M>> {
    let nobody = ComponentId(0);
    Box::new([EventSlot(Event { time: Ps::ZERO, to: nobody, from: nobody, sequence: 0, message: M::default() }); CHUNK])
}

/// Index of the first event in chunk `place` within a batch. Chunks filled later come first in the batch and have
/// higher indices.
#[inline(always)]
fn first_index(place: usize) -> u32 {
    LATE - CHUNK as u32 - (place * CHUNK) as u32
}

/// True if the event at `index` was pushed after its bucket was opened.
#[inline(always)]
pub(crate) fn is_late(index: u32) -> bool {
    index & LATE != 0
}

/// Event at `index` in `batch`, which must not be late.
#[inline(always)]
pub(crate) fn on_time<M>(batch: &[Box<Chunk<M>>], index: u32) -> &Event<M> {
    let place = (LATE - 1 - index) as usize / CHUNK;
    &batch[place][index as usize % CHUNK].0
}

/// Key for an event in the bucket that begins at `base`.
#[inline(always)]
fn key<M>(event: &Event<M>, base: Ps, index: u32) -> Key {
    let time = (event.time.0 - base.0) << (u64::BITS - WIDEST);
    time | u64::from(event.to.0) << (INDEX_BITS + 16) | u64::from(event.from.0) << INDEX_BITS | u64::from(index)
}

// The tail of an empty bucket must look like the tail of a full chunk: the first event then allocates a new chunk.
const _: () = assert!(NONE as usize % CHUNK == CHUNK - 1);

// Time within the bucket, `to`, `from` and index fill a key.
const _: () = assert!(WIDEST + 16 + 16 + INDEX_BITS == u64::BITS);

// Buckets just narrowed are not immediately widened again, nor the reverse.
const _: () = assert!(MANY > 2 * FEW);

#[cfg(test)]
mod tests {
    use super::*;
    use tombolo_types::ComponentId;

    /// Replaces the first event by a later one (`delay`), `times` times.
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
            let far = queue.far.capacity() + queue.far_events.capacity() + queue.far_free.capacity();
            [queue.chunks.capacity(), queue.batch.capacity(), queue.run.capacity(), queue.late.capacity(), far]
        };
        turn_over(&mut queue, 200_000, delay);
        let before = storage(&queue);
        turn_over(&mut queue, 200_000, delay);
        assert_eq!(storage(&queue), before);
        assert!(queue.chunks.len() <= 102, "no more chunks than events, waiting or just popped");
    }

    #[test]
    fn buckets_are_as_wide_as_events_are_sparse_and_the_order_stays() {
        let (mut queue, mut left) = (filled(3), 3);
        let (mut sequence, mut last, mut random) = (3, (0, 0), 1_u64);
        for (waiting, most, width) in [(3, 60_000, WIDEST), (2_000, 30_000, NARROWEST), (3, 60_000, WIDEST)] {
            for _ in 0..200_000 {
                let first = queue.pop().expect("every event is replaced");
                assert!(first.key() > last || last == (0, 0), "{:?} after {last:?}", first.key());
                last = first.key();
                let new = if left < waiting { 2 } else { usize::from(left == waiting) };
                left = left + new - 1;
                for _ in 0..new {
                    random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                    let (time, to) = (first.time + Ps(1 + (random >> 33) % most), ComponentId((random >> 61) as u16));
                    queue.push(Event { time, to, from: ComponentId(0), sequence, message: 0 });
                    sequence += 1;
                }
            }
            assert_eq!((queue.width, queue.len()), (width, waiting));
        }
    }

    #[test]
    fn a_bucket_holds_more_events_than_keys_can_name() {
        let many = 3 * LATE + 5;
        let mut queue = EventQueue::new();
        // Events come from several sources, the last source first.
        let at = |number: u32| {
            let (to, from) = (ComponentId(0), ComponentId(7 - (number % 7) as u16));
            Event { time: Ps(5_000), to, from, sequence: number, message: 0_u8 }
        };
        (0..many).for_each(|number| queue.push(at(number)));
        assert_eq!((queue.len(), queue.next_time()), (many as usize, Some(Ps(5_000))));
        let mut sorted: Vec<(u64, u64)> = (0..many).map(|number| at(number).key()).collect();
        sorted.sort_unstable();
        assert!(queue.pop_before(Ps(5_000)).is_none());
        for expected in sorted {
            assert_eq!(queue.pop_before(Ps(5_001)).map(|event| event.key()), Some(expected));
        }
        assert!(queue.is_empty() && queue.pop().is_none());
    }

    #[test]
    fn more_events_than_keys_can_name_are_pushed_into_an_open_bucket() {
        let mut queue = filled(1);
        let first = queue.pop().expect("one was pushed");
        let mut expected = BTreeMap::new();
        let mut push = |queue: &mut EventQueue<u8>, time: u64, from: u16| {
            let event = Event { time: Ps(time), from: ComponentId(from), sequence: expected.len() as u32, ..first };
            expected.insert(event.key(), ());
            queue.push(event);
        };
        // Each push is ahead of all previous ones: the last pushes find no index, and come first.
        for time in [3_002, 3_001, 3_000] {
            (0..=u16::MAX).rev().for_each(|from| push(&mut queue, time, from));
        }
        // Further pushes go between these events, behind them, and behind events from the same source.
        for number in 0..1_000 {
            push(&mut queue, 2_999 + number % 5, (number * 37) as u16);
        }
        assert_eq!((queue.open, queue.len()), (0, expected.len()), "all events are in one bucket");
        for (popped, key) in expected.into_keys().enumerate() {
            assert_eq!(queue.next_time(), Some(Ps(key.0)));
            assert!(queue.pop_before(Ps(key.0)).is_none());
            assert_eq!(queue.pop().map(|event| event.key()), Some(key), "event {popped}");
        }
        assert!(queue.is_empty());
    }

    #[test]
    fn a_bucket_that_begins_after_the_end_stays_closed() {
        let mut queue = filled(1);
        turn_over(&mut queue, 1, |_| 1_000_000);
        assert!(queue.pop_before(Ps(500_000)).is_none());
        assert_eq!(queue.open, 0, "an earlier push goes to the wheel, not to the open bucket");
    }
}
