//! Miss status holding registers: one entry per outstanding line, with the requests that wait for it.
//!
//! A refused request is parked here and woken by what frees its place: behind the entry of its line, or, where
//! the table is full, in one queue for the whole table. Nothing is retried on a timer.
//!
//! Not modelled here: what a request is, what may merge, when a fill comes. The owner decides; waiters,
//! parked requests and entry state are its own types.

use crate::set_index::GOLDEN;
use tombolo_engine::prefetch;
use tombolo_types::Line;

/// Shape of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MshrConfig {
    /// Lines outstanding at once, at least 1.
    pub entries: u32,
    /// Requests that may wait on one line.
    pub merges: u32,
}

/// An entry, from its allocation until it is freed. Names are used again afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EntryId(u32);

/// Counters of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MshrStats {
    /// Entries allocated.
    pub allocations: u64,
    /// Requests that joined an entry, the first of each included.
    pub waiters: u64,
    /// Requests parked, behind a line or a full table.
    pub parks: u64,
    /// Parked requests handed back to run again.
    pub wakes: u64,
    /// Most entries in use at once.
    pub peak: u32,
}

/// End of a list, in [`Node::next`] and [`List`].
const NIL: u32 = u32::MAX;

/// A queue of nodes of one slab.
#[derive(Clone, Copy, Debug)]
struct List {
    head: u32,
    tail: u32,
}

impl List {
    const EMPTY: List = List { head: NIL, tail: NIL };
}

#[derive(Clone, Copy, Debug)]
struct Node<T> {
    next: u32,
    value: T,
}

/// Nodes of many queues. Grows to the most that ever waited, then allocates no more.
#[derive(Clone, Debug)]
struct Slab<T> {
    nodes: Vec<Node<T>>,
    free: u32,
}

impl<T: Copy> Slab<T> {
    fn new() -> Slab<T> {
        Slab { nodes: Vec::new(), free: NIL }
    }

    #[inline]
    fn push(&mut self, list: &mut List, value: T) {
        let node = Node { next: NIL, value };
        let at = match self.free {
            NIL => {
                self.nodes.push(node);
                self.nodes.len() as u32 - 1
            }
            free => {
                self.free = self.nodes[free as usize].next;
                self.nodes[free as usize] = node;
                free
            }
        };
        match list.tail {
            NIL => list.head = at,
            tail => self.nodes[tail as usize].next = at,
        }
        list.tail = at;
    }

    #[inline]
    fn pop(&mut self, list: &mut List) -> Option<T> {
        if list.head == NIL {
            return None;
        }
        let at = list.head;
        let Node { next, value } = self.nodes[at as usize];
        list.head = next;
        if next == NIL {
            list.tail = NIL;
        }
        self.nodes[at as usize].next = self.free;
        self.free = at;
        Some(value)
    }

    fn values(&self, list: List) -> impl Iterator<Item = &T> {
        let mut at = list.head;
        std::iter::from_fn(move || {
            let node = self.nodes.get(at as usize)?;
            at = node.next;
            Some(&node.value)
        })
    }
}

/// One outstanding line, or a link of the free list (through `later.head`). In one or two cache lines of the host,
/// with the first of its waiters: most lines have no other.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Entry<P, W> {
    line: Line,
    payload: P,
    first: Option<W>,
    /// Waiters after the first.
    later: List,
    parked: List,
    waiting: u32,
    live: bool,
}

/// An entry that was freed: its state, and the requests that are now to be served or run again.
///
/// Empty it with [`Mshr::next_waiter`] and then [`Mshr::next_parked`]; what is left in it is lost.
#[derive(Debug)]
#[must_use]
pub struct Freed<P, W> {
    /// The line it was for.
    pub line: Line,
    /// The state it had.
    pub payload: P,
    first: Option<W>,
    later: List,
    parked: List,
}

/// A slot of the hash table: the upper bits of a line's hash, and below them the number of its entry. The uppermost
/// bits are the place where the line would stand alone, so that slots move without a look at their entries.
type Slot = u64;

/// An empty slot: no entry has the number of all ones, for there are at most half as many entries as slots.
const VACANT: Slot = Slot::MAX;

/// A table of outstanding lines. `P`: state of an entry; `W`: a request that waits for the line; `R`: a
/// request that could not even wait and must run again.
#[derive(Clone, Debug)]
pub struct Mshr<P, W, R> {
    config: MshrConfig,
    /// Open-addressed by line with linear probing; a power of two at least twice `entries`.
    slots: Vec<Slot>,
    /// 64 minus the binary logarithm of the count of slots.
    shift: u32,
    entries: Vec<Entry<P, W>>,
    free: u32,
    used: u32,
    waiters: Slab<W>,
    parked: Slab<R>,
    backlog: List,
    stats: MshrStats,
}

impl<P: Copy, W: Copy, R: Copy> Mshr<P, W, R> {
    /// An empty table. Panics on a table without entries.
    pub fn new(config: MshrConfig) -> Mshr<P, W, R> {
        assert!(config.entries > 0, "a table needs at least one entry");
        let slots = (config.entries as usize * 2).next_power_of_two().max(2);
        Mshr {
            config,
            slots: vec![VACANT; slots],
            shift: 64 - slots.trailing_zeros(),
            entries: Vec::with_capacity(config.entries as usize),
            free: NIL,
            used: 0,
            waiters: Slab::new(),
            parked: Slab::new(),
            backlog: List::EMPTY,
            stats: MshrStats::default(),
        }
    }

    /// Starts to load what [`Mshr::find`] will read first into the host's caches.
    #[inline]
    pub fn prefetch(&self, line: Line) {
        prefetch(&self.slots[self.ideal(hash(line))]);
    }

    /// Starts to load the entry of `line`. What [`Mshr::prefetch`] loads should be there by now.
    #[inline]
    pub fn prefetch_entry(&self, line: Line) {
        if let Some(id) = self.candidate(line) {
            prefetch(&self.entries[id as usize]);
        }
    }

    /// The first waiter of `line`, for another prefetch. What [`Mshr::prefetch_entry`] loads should be there by now.
    #[inline]
    pub fn first_waiter(&self, line: Line) -> Option<&W> {
        self.candidate(line).and_then(|id| self.entries[id as usize].first.as_ref())
    }

    /// The entry of `line`.
    #[inline]
    pub fn find(&self, line: Line) -> Option<EntryId> {
        let hash = hash(line);
        let mut at = self.ideal(hash);
        loop {
            let slot = self.slots[at];
            if slot == VACANT {
                return None;
            }
            if self.is_of(slot, hash) && self.entries[self.number(slot)].line == line {
                return Some(EntryId(self.number(slot) as u32));
            }
            at = self.after(at);
        }
    }

    /// The first entry whose slot looks like that of `line`, unread.
    #[inline]
    fn candidate(&self, line: Line) -> Option<u32> {
        let hash = hash(line);
        let mut at = self.ideal(hash);
        loop {
            let slot = self.slots[at];
            if slot == VACANT {
                return None;
            }
            if self.is_of(slot, hash) {
                return Some(self.number(slot) as u32);
            }
            at = self.after(at);
        }
    }

    /// State of an entry.
    #[inline]
    pub fn get(&self, id: EntryId) -> &P {
        &self.entry(id).payload
    }

    /// State of an entry, to change.
    #[inline]
    pub fn get_mut(&mut self, id: EntryId) -> &mut P {
        &mut self.entry_mut(id).payload
    }

    /// The line of an entry.
    pub fn line(&self, id: EntryId) -> Line {
        self.entry(id).line
    }

    /// Gives `line`, which must have no entry, one with no waiters. `None` where the table is full: park
    /// the request with [`Mshr::park_for_room`].
    #[inline]
    pub fn allocate(&mut self, line: Line, payload: P) -> Option<EntryId> {
        debug_assert!(self.find(line).is_none(), "{line} is outstanding already");
        if self.used == self.config.entries {
            return None;
        }
        self.used += 1;
        self.stats.allocations += 1;
        self.stats.peak = self.stats.peak.max(self.used);
        let entry =
            Entry { line, payload, first: None, later: List::EMPTY, parked: List::EMPTY, waiting: 0, live: true };
        let id = match self.free {
            NIL => {
                self.entries.push(entry);
                self.entries.len() as u32 - 1
            }
            free => {
                self.free = self.entries[free as usize].later.head;
                self.entries[free as usize] = entry;
                free
            }
        };
        let hash = hash(line);
        let mut at = self.ideal(hash);
        while self.slots[at] != VACANT {
            at = self.after(at);
        }
        self.slots[at] = hash & !self.numbers() | u64::from(id);
        Some(EntryId(id))
    }

    /// Lets `waiter` wait on an entry, behind the others. `false` where as many wait as may: park the
    /// request with [`Mshr::park`].
    #[inline]
    pub fn push_waiter(&mut self, id: EntryId, waiter: W) -> bool {
        let merges = self.config.merges;
        let entry = live(&mut self.entries, id);
        if entry.waiting == merges {
            return false;
        }
        entry.waiting += 1;
        match entry.waiting {
            1 => entry.first = Some(waiter),
            _ => self.waiters.push(&mut entry.later, waiter),
        }
        self.stats.waiters += 1;
        true
    }

    /// Parks `request` until the entry is freed; then it must run again, behind those parked before it.
    #[inline]
    pub fn park(&mut self, id: EntryId, request: R) {
        self.parked.push(&mut live(&mut self.entries, id).parked, request);
        self.stats.parks += 1;
    }

    /// Whether requests are parked behind the entry. A new request for the line that must not overtake them
    /// parks behind them.
    #[inline]
    pub fn has_parked(&self, id: EntryId) -> bool {
        self.entry(id).parked.head != NIL
    }

    /// Parks `request` until the table has room; see [`Mshr::wake`].
    #[inline]
    pub fn park_for_room(&mut self, request: R) {
        self.parked.push(&mut self.backlog, request);
        self.stats.parks += 1;
    }

    /// Whether requests wait for room. A new request that must not overtake them parks behind them.
    #[inline]
    pub fn has_backlog(&self) -> bool {
        self.backlog.head != NIL
    }

    /// The first request that waits for room, if there is room for it. It must run now; where it needs no
    /// entry after all, ask again.
    #[inline]
    pub fn wake(&mut self) -> Option<R> {
        if self.is_full() {
            return None;
        }
        let request = self.parked.pop(&mut self.backlog)?;
        self.stats.wakes += 1;
        Some(request)
    }

    /// Ends an entry: its line may be allocated anew, and its requests come out of what is returned.
    #[inline]
    pub fn free(&mut self, id: EntryId) -> Freed<P, W> {
        let Entry { line, payload, first, later, parked, .. } = *live(&mut self.entries, id);
        self.unlink(id, line);
        let entry = &mut self.entries[id.0 as usize];
        entry.live = false;
        entry.later.head = self.free;
        self.free = id.0;
        self.used -= 1;
        Freed { line, payload, first, later, parked }
    }

    /// The next waiter of a freed entry, in the order they came.
    #[inline]
    pub fn next_waiter(&mut self, freed: &mut Freed<P, W>) -> Option<W> {
        freed.first.take().or_else(|| self.waiters.pop(&mut freed.later))
    }

    /// The next request parked behind a freed entry, in the order they came.
    #[inline]
    pub fn next_parked(&mut self, freed: &mut Freed<P, W>) -> Option<R> {
        let request = self.parked.pop(&mut freed.parked)?;
        self.stats.wakes += 1;
        Some(request)
    }

    /// Entries in use.
    pub fn used(&self) -> u32 {
        self.used
    }

    /// Entries in all.
    pub fn capacity(&self) -> u32 {
        self.config.entries
    }

    /// Whether every entry is in use.
    pub fn is_full(&self) -> bool {
        self.used == self.config.entries
    }

    /// Entries in use, for a report of who waits for whom; the order means nothing but is the same in every
    /// run.
    pub fn entries(&self) -> impl Iterator<Item = EntryId> {
        (0..).zip(&self.entries).filter(|(_, entry)| entry.live).map(|(id, _)| EntryId(id))
    }

    /// Requests that wait on an entry, first come first.
    pub fn waiters(&self, id: EntryId) -> impl Iterator<Item = &W> {
        let entry = self.entry(id);
        entry.first.iter().chain(self.waiters.values(entry.later))
    }

    /// Requests parked behind an entry, first come first.
    pub fn parked(&self, id: EntryId) -> impl Iterator<Item = &R> {
        self.parked.values(self.entry(id).parked)
    }

    /// Requests that wait for room, first come first.
    pub fn backlog(&self) -> impl Iterator<Item = &R> {
        self.parked.values(self.backlog)
    }

    /// Counters so far.
    pub fn stats(&self) -> &MshrStats {
        &self.stats
    }

    #[inline]
    fn entry(&self, id: EntryId) -> &Entry<P, W> {
        let entry = &self.entries[id.0 as usize];
        debug_assert!(entry.live, "{id:?} was freed");
        entry
    }

    #[inline]
    fn entry_mut(&mut self, id: EntryId) -> &mut Entry<P, W> {
        live(&mut self.entries, id)
    }

    /// The slot where a line of this hash, or what is kept of it in a slot, would stand alone.
    #[inline]
    fn ideal(&self, hash: u64) -> usize {
        (hash >> self.shift) as usize
    }

    #[inline]
    fn after(&self, at: usize) -> usize {
        (at + 1) & (self.slots.len() - 1)
    }

    /// The bits of a slot that number an entry: as many as number the slots.
    #[inline]
    fn numbers(&self) -> u64 {
        self.slots.len() as u64 - 1
    }

    #[inline]
    fn number(&self, slot: Slot) -> usize {
        (slot & self.numbers()) as usize
    }

    /// Whether a slot holds what is kept of this hash.
    #[inline]
    fn is_of(&self, slot: Slot, hash: u64) -> bool {
        (slot ^ hash) & !self.numbers() == 0
    }

    /// Takes the entry of `line` out of the slots and moves back what had been displaced past it.
    #[inline]
    fn unlink(&mut self, id: EntryId, line: Line) {
        let own = hash(line) & !self.numbers() | u64::from(id.0);
        let mut hole = self.ideal(own);
        while self.slots[hole] != own {
            hole = self.after(hole);
        }
        let mask = self.slots.len() - 1;
        let mut at = hole;
        loop {
            at = self.after(at);
            let slot = self.slots[at];
            if slot == VACANT {
                break;
            }
            // It may move back to the hole unless its own place lies behind the hole.
            let displaced = at.wrapping_sub(self.ideal(slot)) & mask;
            if displaced >= at.wrapping_sub(hole) & mask {
                self.slots[hole] = slot;
                hole = at;
            }
        }
        self.slots[hole] = VACANT;
    }
}

#[inline]
fn hash(line: Line) -> u64 {
    line.0.wrapping_mul(GOLDEN)
}

#[inline]
fn live<P, W>(entries: &mut [Entry<P, W>], id: EntryId) -> &mut Entry<P, W> {
    let entry = &mut entries[id.0 as usize];
    debug_assert!(entry.live, "{id:?} was freed");
    entry
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, VecDeque};

    type Table = Mshr<u32, u32, u32>;

    fn table(entries: u32, merges: u32) -> Table {
        Mshr::new(MshrConfig { entries, merges })
    }

    fn served(table: &mut Table, id: EntryId) -> (Vec<u32>, Vec<u32>) {
        let mut freed = table.free(id);
        let waiters = std::iter::from_fn(|| table.next_waiter(&mut freed)).collect();
        let parked = std::iter::from_fn(|| table.next_parked(&mut freed)).collect();
        (waiters, parked)
    }

    #[test]
    fn waiters_are_served_before_the_parked_and_in_order() {
        let mut table = table(4, 8);
        let id = table.allocate(Line(7), 0).unwrap();
        table.park(id, 100);
        (0..3).for_each(|waiter| assert!(table.push_waiter(id, waiter)));
        table.park(id, 101);
        assert_eq!(served(&mut table, id), (vec![0, 1, 2], vec![100, 101]));
        assert_eq!(table.find(Line(7)), None);
    }

    #[test]
    fn no_more_wait_on_a_line_than_may() {
        let mut table = table(4, 2);
        let id = table.allocate(Line(7), 0).unwrap();
        assert!(table.push_waiter(id, 0) && table.push_waiter(id, 1));
        assert!(!table.push_waiter(id, 2));
        assert_eq!(table.stats().waiters, 2);
    }

    #[test]
    fn a_full_table_wakes_one_request_for_each_place() {
        let mut table = table(2, 1);
        let ids = [1, 2].map(|line| table.allocate(Line(line), 0).unwrap());
        assert_eq!(table.allocate(Line(3), 0), None);
        table.park_for_room(3);
        table.park_for_room(4);
        assert_eq!(table.wake(), None, "there is no room yet");
        served(&mut table, ids[0]);
        assert_eq!(table.wake(), Some(3));
        table.allocate(Line(3), 0).unwrap();
        assert_eq!(table.wake(), None);
        assert!(table.has_backlog());
    }

    #[test]
    fn a_woken_request_may_allocate_the_same_line_and_park_the_next_behind_it() {
        let mut table = table(2, 1);
        let id = table.allocate(Line(5), 0).unwrap();
        table.park(id, 1);
        table.park(id, 2);
        let mut freed = table.free(id);
        assert_eq!(table.next_parked(&mut freed), Some(1));
        let again = table.allocate(Line(5), 0).unwrap();
        assert_eq!(table.next_parked(&mut freed), Some(2));
        table.park(again, 2);
        assert_eq!(served(&mut table, again), (vec![], vec![2]));
    }

    #[test]
    fn the_counters_tell_occupancy_and_parking() {
        let mut table = table(2, 1);
        let id = table.allocate(Line(1), 0).unwrap();
        table.allocate(Line(2), 0).unwrap();
        table.park(id, 0);
        table.park_for_room(1);
        served(&mut table, id);
        table.wake();
        let expected = MshrStats { allocations: 2, waiters: 0, parks: 2, wakes: 2, peak: 2 };
        assert_eq!(*table.stats(), expected);
    }

    #[derive(Default)]
    struct Naive {
        lines: BTreeMap<u64, (u32, VecDeque<u32>, VecDeque<u32>)>,
        backlog: VecDeque<u32>,
    }

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Request(u64),
        Park(u64),
        Free(u64),
        Wake,
    }

    /// Lines that collide often: few, and many of them neighbours in the table.
    fn step() -> impl Strategy<Value = Step> {
        let line = prop_oneof![0..24_u64, (0..24_u64).prop_map(|i| i << 40)];
        prop_oneof![
            6 => line.clone().prop_map(Step::Request),
            2 => line.clone().prop_map(Step::Park),
            4 => line.prop_map(Step::Free),
            1 => Just(Step::Wake),
        ]
    }

    fn agree(table: &mut Table, naive: &mut Naive, config: MshrConfig, step: Step, stamp: u32) {
        let full = naive.lines.len() as u32 == config.entries;
        match step {
            Step::Request(line) => match (table.find(Line(line)), naive.lines.get_mut(&line)) {
                (Some(id), Some((payload, waiters, _))) => {
                    assert_eq!(table.get(id), payload);
                    let room = waiters.len() < config.merges as usize;
                    assert_eq!(table.push_waiter(id, stamp), room);
                    waiters.extend(room.then_some(stamp));
                }
                (None, None) => {
                    let id = table.allocate(Line(line), stamp);
                    assert_eq!(id.is_none(), full);
                    match id {
                        Some(_) => drop(naive.lines.insert(line, (stamp, VecDeque::new(), VecDeque::new()))),
                        None => {
                            table.park_for_room(stamp);
                            naive.backlog.push_back(stamp);
                        }
                    }
                }
                (found, expected) => panic!("found {found:?}, expected {expected:?}"),
            },
            Step::Park(line) => {
                if let (Some(id), Some((_, _, parked))) = (table.find(Line(line)), naive.lines.get_mut(&line)) {
                    table.park(id, stamp);
                    parked.push_back(stamp);
                }
            }
            Step::Free(line) => {
                let expected = naive.lines.remove(&line);
                let freed = table.find(Line(line)).map(|id| (*table.get(id), served(table, id)));
                assert_eq!(
                    freed,
                    expected.map(|(payload, waiters, parked)| (payload, (waiters.into(), parked.into())))
                );
            }
            Step::Wake => {
                let expected = if full { None } else { naive.backlog.pop_front() };
                assert_eq!(table.wake(), expected);
            }
        }
    }

    proptest! {
        #[test]
        fn it_does_what_a_map_of_queues_does(
            entries in 1..20_u32,
            merges in 0..4_u32,
            steps in prop::collection::vec(step(), 1..400),
        ) {
            let config = MshrConfig { entries, merges };
            let (mut table, mut naive) = (Table::new(config), Naive::default());
            for (stamp, step) in steps.into_iter().enumerate() {
                agree(&mut table, &mut naive, config, step, stamp as u32);
                prop_assert_eq!(table.used() as usize, naive.lines.len());
                prop_assert_eq!(table.entries().count(), naive.lines.len());
            }
            for line in naive.lines.keys() {
                prop_assert!(table.find(Line(*line)).is_some());
            }
        }
    }
}
