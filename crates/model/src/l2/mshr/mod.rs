//! Miss status holding registers (MSHRs): an entry per outstanding line, with the requests that wait for this line.
//!
//! A refused request is parked here and woken when space becomes free: behind its line's entry, or, if the table is
//! full, in a single queue for the entire table. No request is retried on a timer.
//!
//! Not modelled here: a request's meaning, merge rules, and fill times. The owner decides these, and also defines the
//! types for waiters, parked requests and entry state.

mod index;
pub(crate) mod list;
mod per_entry;

use crate::l2::set_index::scatter;
use index::LineIndex;
use list::{List, NIL, Slab};
pub(crate) use per_entry::PerEntry;
use std::collections::VecDeque;
use tombolo_engine::prefetch;
use tombolo_types::Line;

/// Maximum number of entries per table, and maximum number of requests waiting on an entry.
pub(crate) const MAX_ENTRIES: u32 = u16::MAX as u32;

/// Shape of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MshrConfig {
    /// Maximum number of outstanding lines, 1 to `MAX_ENTRIES`.
    pub entries: u32,
    /// Maximum number of requests waiting on a line, at most `MAX_ENTRIES`.
    pub merges: u32,
}

/// Entry identifier, valid from allocation until release. Identifiers are reused afterwards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct EntryId(u16);

impl EntryId {
    /// Creates an identifier from a number, for owners without an entry table.
    pub(crate) fn numbered(number: u8) -> EntryId {
        EntryId(number.into())
    }

    /// Index below the table's entry count.
    #[inline]
    pub(crate) fn index(self) -> usize {
        usize::from(self.0)
    }

    /// Number passed to [`EntryId::numbered`].
    pub(crate) fn number(self) -> u8 {
        self.0 as u8
    }
}

/// Table counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MshrStats {
    /// Entries allocated.
    pub(crate) allocations: u64,
    /// Requests that waited on an entry, including the first request for each entry.
    pub(crate) waiters: u64,
    /// Requests parked, either behind a line or because the table was full.
    pub(crate) parks: u64,
    /// Parked requests woken to run again.
    pub(crate) wakes: u64,
    /// Maximum number of entries in use simultaneously.
    pub(crate) peak: u32,
}

/// Initial capacity of a table. The table grows to the maximum number of entries ever in use, a small number for most
/// tables in a large machine. Assumed: a fraction of any table.
const FIRST_ENTRIES: u32 = 16;

/// Marker for a free entry: no line has this number.
const FREE: Line = Line(u64::MAX);

/// Outstanding line, or a free-list link (through `later.head`). If the payload is small enough, an entry fits in a
/// single host cache line together with its first waiter: most lines have no further waiter.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct MshrEntry<P, W> {
    /// Line number, or [`FREE`] if the entry is in the free list.
    line: Line,
    payload: P,
    first: Option<W>,
    /// Waiters after the first.
    later: List,
    parked: List,
    waiting: u16,
}

/// Freed entry, or the detached waiters from a live entry: its state, and the requests that must be served or retried.
///
/// Empty it with [`Mshr::next_waiter`] and then [`Mshr::next_parked`]; requests left inside are lost.
#[derive(Debug)]
#[must_use]
pub struct FreedEntry<P, W> {
    /// Line that the entry was allocated for.
    pub line: Line,
    /// Entry state at its release.
    pub(crate) payload: P,
    first: Option<W>,
    later: List,
    parked: List,
}

/// Table of outstanding lines. `P`: entry state; `W`: a request that waits for the line; `R`: a request that could not
/// even wait and must be retried.
#[derive(Clone, Debug)]
pub struct Mshr<P, W, R> {
    config: MshrConfig,
    /// Index of the entries in use, by line.
    index: LineIndex,
    entries: Vec<MshrEntry<P, W>>,
    free: u32,
    used: u32,
    waiters: Slab<W>,
    parked: Slab<R>,
    /// Requests that wait for a free entry, oldest first.
    backlog: VecDeque<R>,
    stats: MshrStats,
}

impl<P: Copy, W: Copy, R: Copy> Mshr<P, W, R> {
    /// Host memory per entry in bytes.
    pub(crate) const ENTRY_BYTES: usize = size_of::<MshrEntry<P, W>>();

    /// Creates an empty table. Panics on a shape outside the limits in [`MshrConfig`].
    pub fn new(config: MshrConfig) -> Mshr<P, W, R> {
        assert!(config.merges <= MAX_ENTRIES, "{} merges: at most {MAX_ENTRIES} are possible", config.merges);
        assert!(
            (1..=MAX_ENTRIES).contains(&config.entries),
            "{} entries: 1 to {MAX_ENTRIES} are possible",
            config.entries
        );
        Mshr {
            config,
            index: LineIndex::new(config.entries.min(FIRST_ENTRIES)),
            entries: Vec::new(),
            free: NIL,
            used: 0,
            waiters: Slab::new(),
            parked: Slab::new(),
            backlog: VecDeque::new(),
            stats: MshrStats::default(),
        }
    }

    /// Prefetches the data that [`Mshr::find`] will read first into the host's caches.
    #[inline]
    pub(crate) fn prefetch(&self, line: Line) {
        self.index.prefetch(hash(line));
    }

    /// Prefetches the data that [`Mshr::find`] will read first, and the memory for a new `line` entry, into the host's
    /// caches.
    #[inline]
    pub(crate) fn prefetch_new(&self, line: Line) {
        self.prefetch(line);
        self.prefetch_free();
    }

    /// Prefetches the entry that the next allocation will use.
    #[inline]
    fn prefetch_free(&self) {
        if let Some(entry) = self.entries.get(self.free as usize) {
            prefetch(entry);
        }
    }

    /// Prefetches an entry into the host's caches.
    #[inline]
    pub(crate) fn prefetch_entry(&self, id: EntryId) {
        prefetch(&self.entries[id.0 as usize]);
    }

    /// First waiter on an entry, whether in use or not.
    #[inline]
    pub(crate) fn first_waiter(&self, id: EntryId) -> Option<&W> {
        self.entries[id.0 as usize].first.as_ref()
    }

    /// Prefetches an entry's second waiter and first parked request into the host's caches.
    #[inline]
    pub(crate) fn prefetch_waiting(&self, id: EntryId) {
        let MshrEntry { later, parked, .. } = &self.entries[id.0 as usize];
        self.waiters.prefetch(*later);
        self.parked.prefetch(*parked);
    }

    /// True if the entry is in use for `line`.
    #[inline]
    pub(crate) fn holds(&self, id: EntryId, line: Line) -> bool {
        self.entries[id.0 as usize].line == line
    }

    /// Returns the entry for `line`, if any.
    #[inline]
    pub fn find(&self, line: Line) -> Option<EntryId> {
        self.index.find(hash(line), |id| self.entries[usize::from(id)].line == line).map(EntryId)
    }

    /// Entry state.
    #[inline]
    pub(crate) fn get(&self, id: EntryId) -> &P {
        &self.entry(id).payload
    }

    /// Mutable entry state.
    #[inline]
    pub(crate) fn get_mut(&mut self, id: EntryId) -> &mut P {
        &mut self.entry_mut(id).payload
    }

    /// Line for which an entry is in use.
    pub(crate) fn line(&self, id: EntryId) -> Line {
        self.entry(id).line
    }

    /// Allocates an entry without waiters for `line`, which must have none yet. Returns `None` if the table is full:
    /// park the request with `Mshr::park_for_room`.
    #[inline]
    pub fn allocate(&mut self, line: Line, payload: P) -> Option<EntryId> {
        self.enter(line, payload, None)
    }

    /// Like [`Mshr::allocate`], with `waiter` as the line's first waiter.
    #[inline]
    pub(crate) fn allocate_for(&mut self, line: Line, payload: P, waiter: W) -> Option<EntryId> {
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
        let entry = MshrEntry { line, payload, first, later: List::EMPTY, parked: List::EMPTY, waiting };
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

    /// Enlarges the index if a further entry would exceed its capacity.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self) {
        let entries = self.entries.len() as u32;
        if entries < self.index.room() {
            return;
        }
        self.index = LineIndex::new(2 * entries);
        for (id, entry) in (0..).zip(&self.entries).filter(|(_, entry)| entry.line != FREE) {
            self.index.insert(hash(entry.line), id);
        }
    }

    /// Appends `waiter` to an entry's waiters. Returns `false` if the entry already has the maximum number of waiters:
    /// park the request with `Mshr::park`.
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

    /// Number of requests waiting on an entry.
    #[inline]
    pub(crate) fn waiting(&self, id: EntryId) -> u32 {
        u32::from(self.entry(id).waiting)
    }

    /// Parks `request` until the entry is freed; it must be retried then, after all requests parked earlier.
    #[inline]
    pub(crate) fn park(&mut self, id: EntryId, request: R) {
        self.parked.push(&mut live(&mut self.entries, id).parked, request);
        self.stats.parks += 1;
    }

    /// True if requests are parked behind the entry. A new request for the line should park behind the parked requests
    /// if it must not overtake.
    #[inline]
    pub(crate) fn has_parked(&self, id: EntryId) -> bool {
        self.entry(id).parked.head != NIL
    }

    /// Parks `request` until the table has a free entry; see [`Mshr::wake`].
    #[inline]
    pub(crate) fn park_for_room(&mut self, request: R) {
        self.backlog.push_back(request);
        self.stats.parks += 1;
    }

    /// True if requests wait for a free entry. A new request should park behind the waiting requests if it must not
    /// overtake.
    #[inline]
    pub(crate) fn has_backlog(&self) -> bool {
        !self.backlog.is_empty()
    }

    /// Wakes the oldest request that waits for a free entry, if an entry is free. The request must run immediately; if
    /// it needs no entry after all, call again.
    #[inline]
    pub(crate) fn wake(&mut self) -> Option<R> {
        if self.is_full() {
            return None;
        }
        let request = self.backlog.pop_front()?;
        self.stats.wakes += 1;
        Some(request)
    }

    /// Frees an entry. The line may be allocated again, and the entry's requests can be taken from the returned value.
    #[inline]
    pub fn free(&mut self, id: EntryId) -> FreedEntry<P, W> {
        let MshrEntry { line, payload, first, later, parked, .. } = *live(&mut self.entries, id);
        self.index.remove(hash(line), id.0);
        let entry = &mut self.entries[id.0 as usize];
        entry.line = FREE;
        entry.later.head = self.free;
        self.free = id.0.into();
        self.used -= 1;
        FreedEntry { line, payload, first, later, parked }
    }

    /// Next waiter of a freed entry, in arrival order.
    #[inline]
    pub fn next_waiter(&mut self, freed: &mut FreedEntry<P, W>) -> Option<W> {
        freed.first.take().or_else(|| self.waiters.pop(&mut freed.later))
    }

    /// Detaches the waiters from a live entry after a partial fill; parked requests stay.
    pub(crate) fn detach(&mut self, id: EntryId) -> FreedEntry<P, W> {
        let entry = live(&mut self.entries, id);
        entry.waiting = 0;
        let later = std::mem::replace(&mut entry.later, List::EMPTY);
        FreedEntry { line: entry.line, payload: entry.payload, first: entry.first.take(), later, parked: List::EMPTY }
    }

    /// Appends a detached waiter to an entry's waiters again.
    pub(crate) fn attach(&mut self, id: EntryId, waiter: W) {
        let entry = live(&mut self.entries, id);
        entry.waiting += 1;
        match entry.waiting {
            1 => entry.first = Some(waiter),
            _ => self.waiters.push(&mut entry.later, waiter),
        }
    }

    /// Next request parked behind a freed entry, in arrival order.
    #[inline]
    pub(crate) fn next_parked(&mut self, freed: &mut FreedEntry<P, W>) -> Option<R> {
        let request = self.parked.pop(&mut freed.parked)?;
        self.stats.wakes += 1;
        Some(request)
    }

    /// Number of entries in use.
    pub(crate) fn used(&self) -> u32 {
        self.used
    }

    /// True if every entry is in use.
    pub(crate) fn is_full(&self) -> bool {
        self.used == self.config.entries
    }

    /// Entries in use, for the deadlock report. Their order has no meaning but is reproducible between runs.
    pub(crate) fn entries(&self) -> impl Iterator<Item = EntryId> {
        (0..).zip(&self.entries).filter(|(_, entry)| entry.line != FREE).map(|(id, _)| EntryId(id))
    }

    /// Requests waiting on an entry, in arrival order.
    pub(crate) fn waiters(&self, id: EntryId) -> impl Iterator<Item = &W> {
        let entry = self.entry(id);
        entry.first.iter().chain(self.waiters.values(entry.later))
    }

    /// Requests waiting for a free entry, in arrival order.
    pub(crate) fn backlog(&self) -> &VecDeque<R> {
        &self.backlog
    }

    /// Counters so far.
    #[cfg(test)]
    pub(crate) fn stats(&self) -> &MshrStats {
        &self.stats
    }

    #[inline]
    fn entry(&self, id: EntryId) -> &MshrEntry<P, W> {
        let entry = &self.entries[id.0 as usize];
        debug_assert!(entry.line != FREE, "{id:?} was freed");
        entry
    }

    #[inline]
    fn entry_mut(&mut self, id: EntryId) -> &mut MshrEntry<P, W> {
        live(&mut self.entries, id)
    }
}

#[inline]
fn hash(line: Line) -> u64 {
    scatter(line.0)
}

#[inline]
fn live<P, W>(entries: &mut [MshrEntry<P, W>], id: EntryId) -> &mut MshrEntry<P, W> {
    let entry = &mut entries[id.0 as usize];
    debug_assert!(entry.line != FREE, "{id:?} was freed");
    entry
}

#[cfg(test)]
mod tests;
