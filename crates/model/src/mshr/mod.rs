//! Miss status holding registers: one entry per outstanding line, with the requests that wait for it.
//!
//! A refused request is parked here and woken by what frees its place: behind the entry of its line, or, where
//! the table is full, in one queue for the whole table. Nothing is retried on a timer.
//!
//! Not modelled here: what a request is, what may merge, when a fill comes. The owner decides; waiters,
//! parked requests and entry state are its own types.

mod by_entry;
mod index;
pub(crate) mod list;

use crate::set_index::scatter;
pub use by_entry::ByEntry;
use index::Index;
use list::{List, NIL, Slab};
use std::collections::VecDeque;
use tombolo_engine::prefetch;
use tombolo_types::Line;

/// The most entries of a table, and the most requests that may wait on one.
pub const MAX_ENTRIES: u32 = u16::MAX as u32;

/// Shape of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MshrConfig {
    /// Lines outstanding at once, 1 to [`MAX_ENTRIES`].
    pub entries: u32,
    /// Requests that may wait on one line, at most [`MAX_ENTRIES`].
    pub merges: u32,
}

/// An entry, from its allocation until it is freed. Names are used again afterwards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct EntryId(u16);

impl EntryId {
    /// A name for who has no table of entries.
    pub fn numbered(number: u8) -> EntryId {
        EntryId(number.into())
    }

    /// As an index, below the entries of its table.
    #[inline]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    /// That name.
    pub fn number(self) -> u8 {
        self.0 as u8
    }
}

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

/// Entries that a table begins with room for; it grows to the most that were ever in use, which are few in most tables of
/// a large machine. Assumed: a fraction of any table.
const FIRST_ENTRIES: u32 = 16;

/// No line has this number.
const FREE: Line = Line(u64::MAX);

/// One outstanding line, or a link of the free list (through `later.head`). In one cache line of the host where
/// what it holds is small enough, with the first of its waiters: most lines have no other.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Entry<P, W> {
    /// [`FREE`] where it is in the free list.
    line: Line,
    payload: P,
    first: Option<W>,
    /// Waiters after the first.
    later: List,
    parked: List,
    waiting: u16,
}

/// An entry that was freed, or its waiters alone: its state, and the requests that are now to be served or run again.
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

/// A table of outstanding lines. `P`: state of an entry; `W`: a request that waits for the line; `R`: a
/// request that could not even wait and must run again.
#[derive(Clone, Debug)]
pub struct Mshr<P, W, R> {
    config: MshrConfig,
    /// Entries in use, by line.
    index: Index,
    entries: Vec<Entry<P, W>>,
    free: u32,
    used: u32,
    waiters: Slab<W>,
    parked: Slab<R>,
    /// What waits for room, oldest first.
    backlog: VecDeque<R>,
    stats: MshrStats,
}

impl<P: Copy, W: Copy, R: Copy> Mshr<P, W, R> {
    /// Bytes of the host that an entry takes.
    pub const ENTRY_BYTES: usize = size_of::<Entry<P, W>>();

    /// An empty table. Panics on a shape outside what [`MshrConfig`] allows.
    pub fn new(config: MshrConfig) -> Mshr<P, W, R> {
        assert!(config.merges <= MAX_ENTRIES, "{} merges: at most {MAX_ENTRIES} are possible", config.merges);
        assert!(
            (1..=MAX_ENTRIES).contains(&config.entries),
            "{} entries: 1 to {MAX_ENTRIES} are possible",
            config.entries
        );
        Mshr {
            config,
            index: Index::new(config.entries.min(FIRST_ENTRIES)),
            entries: Vec::new(),
            free: NIL,
            used: 0,
            waiters: Slab::new(),
            parked: Slab::new(),
            backlog: VecDeque::new(),
            stats: MshrStats::default(),
        }
    }

    /// Starts to load what [`Mshr::find`] will read first into the host's caches.
    #[inline]
    pub fn prefetch(&self, line: Line) {
        self.index.prefetch(hash(line));
    }

    /// Starts to load what a new entry for `line` will be written to, and what [`Mshr::find`] will read first, into the
    /// host's caches.
    #[inline]
    pub fn prefetch_new(&self, line: Line) {
        self.prefetch(line);
        self.prefetch_free();
    }

    /// Starts to load the entry that the next allocation takes.
    #[inline]
    fn prefetch_free(&self) {
        if let Some(entry) = self.entries.get(self.free as usize) {
            prefetch(entry);
        }
    }

    /// Starts to load an entry into the host's caches.
    #[inline]
    pub fn prefetch_entry(&self, id: EntryId) {
        prefetch(&self.entries[id.0 as usize]);
    }

    /// The first that waits on an entry, in use or not.
    #[inline]
    pub fn first_waiter(&self, id: EntryId) -> Option<&W> {
        self.entries[id.0 as usize].first.as_ref()
    }

    /// Starts to load the first of what waits on an entry behind the first waiter into the host's caches.
    #[inline]
    pub fn prefetch_waiting(&self, id: EntryId) {
        let Entry { later, parked, .. } = &self.entries[id.0 as usize];
        self.waiters.prefetch(*later);
        self.parked.prefetch(*parked);
    }

    /// Whether an entry is in use for `line`.
    #[inline]
    pub fn holds(&self, id: EntryId, line: Line) -> bool {
        self.entries[id.0 as usize].line == line
    }

    /// The entry of `line`.
    #[inline]
    pub fn find(&self, line: Line) -> Option<EntryId> {
        self.index.find(hash(line), |id| self.entries[usize::from(id)].line == line).map(EntryId)
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
        self.enter(line, payload, None)
    }

    /// Does what [`Mshr::allocate`] does for a line that `waiter` is the first to wait for.
    #[inline]
    pub fn allocate_for(&mut self, line: Line, payload: P, waiter: W) -> Option<EntryId> {
        assert!(self.config.merges > 0, "a miss takes at least the request that caused it");
        let id = self.enter(line, payload, Some(waiter))?;
        self.stats.waiters += 1;
        Some(id)
    }

    #[inline]
    fn enter(&mut self, line: Line, payload: P, first: Option<W>) -> Option<EntryId> {
        debug_assert!(self.find(line).is_none(), "{line} is outstanding already");
        if self.used == self.config.entries {
            return None;
        }
        let waiting = u16::from(first.is_some());
        self.used += 1;
        self.stats.allocations += 1;
        self.stats.peak = self.stats.peak.max(self.used);
        let entry = Entry { line, payload, first, later: List::EMPTY, parked: List::EMPTY, waiting };
        let id = match self.free {
            NIL => {
                self.make_room();
                self.entries.push(entry);
                self.entries.len() as u32 - 1
            }
            free => {
                self.free = self.entries[free as usize].later.head;
                self.entries[free as usize] = entry;
                self.prefetch_free();
                free
            }
        };
        self.index.insert(hash(line), id as u16);
        Some(EntryId(id as u16))
    }

    /// Makes the index larger where one entry more would be too many for it.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self) {
        let entries = self.entries.len() as u32;
        if entries < self.index.room() {
            return;
        }
        self.index = Index::new(2 * entries);
        for (id, entry) in (0..).zip(&self.entries).filter(|(_, entry)| entry.line != FREE) {
            self.index.insert(hash(entry.line), id);
        }
    }

    /// Lets `waiter` wait on an entry, behind the others. `false` where as many wait as may: park the
    /// request with [`Mshr::park`].
    #[inline]
    pub fn push_waiter(&mut self, id: EntryId, waiter: W) -> bool {
        let merges = self.config.merges;
        let entry = live(&mut self.entries, id);
        if u32::from(entry.waiting) == merges {
            return false;
        }
        self.attach(id, waiter);
        self.stats.waiters += 1;
        true
    }

    /// Requests that wait on an entry.
    #[inline]
    pub fn waiting(&self, id: EntryId) -> u32 {
        u32::from(self.entry(id).waiting)
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
        self.backlog.push_back(request);
        self.stats.parks += 1;
    }

    /// Whether requests wait for room. A new request that must not overtake them parks behind them.
    #[inline]
    pub fn has_backlog(&self) -> bool {
        !self.backlog.is_empty()
    }

    /// The first request that waits for room, if there is room for it. It must run now; where it needs no
    /// entry after all, ask again.
    #[inline]
    pub fn wake(&mut self) -> Option<R> {
        if self.is_full() {
            return None;
        }
        let request = self.backlog.pop_front()?;
        self.stats.wakes += 1;
        Some(request)
    }

    /// Ends an entry: its line may be allocated anew, and its requests come out of what is returned.
    #[inline]
    pub fn free(&mut self, id: EntryId) -> Freed<P, W> {
        let Entry { line, payload, first, later, parked, .. } = *live(&mut self.entries, id);
        self.index.remove(hash(line), id.0);
        let entry = &mut self.entries[id.0 as usize];
        entry.line = FREE;
        entry.later.head = self.free;
        self.free = id.0.into();
        self.used -= 1;
        Freed { line, payload, first, later, parked }
    }

    /// The next waiter of a freed entry, in the order they came.
    #[inline]
    pub fn next_waiter(&mut self, freed: &mut Freed<P, W>) -> Option<W> {
        freed.first.take().or_else(|| self.waiters.pop(&mut freed.later))
    }

    /// Takes the waiters of an entry that stays, and nothing that is parked: some of its bytes have come.
    pub fn detach(&mut self, id: EntryId) -> Freed<P, W> {
        let entry = live(&mut self.entries, id);
        entry.waiting = 0;
        let later = std::mem::replace(&mut entry.later, List::EMPTY);
        Freed { line: entry.line, payload: entry.payload, first: entry.first.take(), later, parked: List::EMPTY }
    }

    /// Lets a waiter that was taken wait again, behind those that do.
    pub fn attach(&mut self, id: EntryId, waiter: W) {
        let entry = live(&mut self.entries, id);
        entry.waiting += 1;
        match entry.waiting {
            1 => entry.first = Some(waiter),
            _ => self.waiters.push(&mut entry.later, waiter),
        }
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
        (0..).zip(&self.entries).filter(|(_, entry)| entry.line != FREE).map(|(id, _)| EntryId(id))
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
    pub fn backlog(&self) -> &VecDeque<R> {
        &self.backlog
    }

    /// Counters so far.
    pub fn stats(&self) -> &MshrStats {
        &self.stats
    }

    #[inline]
    fn entry(&self, id: EntryId) -> &Entry<P, W> {
        let entry = &self.entries[id.0 as usize];
        debug_assert!(entry.line != FREE, "{id:?} was freed");
        entry
    }

    #[inline]
    fn entry_mut(&mut self, id: EntryId) -> &mut Entry<P, W> {
        live(&mut self.entries, id)
    }
}

#[inline]
fn hash(line: Line) -> u64 {
    scatter(line.0)
}

#[inline]
fn live<P, W>(entries: &mut [Entry<P, W>], id: EntryId) -> &mut Entry<P, W> {
    let entry = &mut entries[id.0 as usize];
    debug_assert!(entry.line != FREE, "{id:?} was freed");
    entry
}

#[cfg(test)]
mod tests;
