//! Set-associative tag array: lookup, insertion, eviction, and bulk invalidation by class.
//!
//! Modelled: tags, replacement, way partitions, pinned lines. Not modelled here: time, data, misses (see
//! [`crate::l2::mshr`]), and the meaning of a line's state, which is defined by the owner.

mod set;

use crate::l2::set_index::SetIndex;
use set::{Group, Groups};
use std::cell::Cell;
use tombolo_engine::{HOST_LINE, prefetch};
use tombolo_types::Line;

/// Maximum associativity.
pub(crate) const MAX_WAYS: u32 = 32;

/// Way masks for an insertion: bit `i` stands for way `i` in the set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ways {
    /// Ways whose line may be evicted.
    pub(crate) victims: u32,
    /// Ways that may be filled while empty.
    pub(crate) empty: u32,
}

impl Ways {
    /// Mask that allows every way.
    pub const ALL: Ways = Ways { victims: u32::MAX, empty: u32::MAX };

    /// Restricts victims and empty ways to `ways`. The remaining ways then act as a separate cache.
    pub(crate) fn only(ways: u32) -> Ways {
        Ways { victims: ways, empty: ways }
    }

    /// Restricts victims to `ways`, but allows any empty way.
    pub(crate) fn replacing(ways: u32) -> Ways {
        Ways { victims: ways, empty: u32::MAX }
    }
}

/// Class for bulk invalidation: all lines in a class are dropped together. The owner defines each class, 0 to 3.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct BulkClass(u8);

impl BulkClass {
    /// Number of classes.
    pub(crate) const COUNT: usize = 4;

    /// Creates class `id`. Panics unless the number is between 0 and 3.
    pub const fn new(id: u8) -> BulkClass {
        assert!(id < 4, "a cache has four classes");
        BulkClass(id)
    }

    /// Class number, 0 to 3.
    pub(crate) const fn id(self) -> u8 {
        self.0
    }
}

/// Replacement policy for a full set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Replacement {
    /// Evicts the least recently used line.
    #[default]
    LeastRecentlyUsed,
    /// Evicts the line inserted first, regardless of later lookups.
    FirstIn,
}

/// Hash function from a line number to its set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IndexFunction {
    /// Line number modulo the set count, rotated by a hash computed over the quotient.
    #[default]
    Hashed,
    /// Like [`IndexFunction::Hashed`], with a hash independent from the slice hash, for caches that hold only lines from some
    /// slices.
    HashedWithinSlices,
    /// Line number modulo the set count: the low bits if the count is a power of two.
    LowBits,
}

/// Shape and policies of a tag array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheConfig {
    /// Number of sets: any positive number, not necessarily a power of two (see `SetIndex` for the mapping).
    pub sets: u32,
    /// Associativity, 1 to `MAX_WAYS`.
    pub ways: u32,
    /// Replacement policy for a full set.
    pub replacement: Replacement,
    /// Hash function from a line number to its set.
    pub index: IndexFunction,
}

/// Line evicted to make space for an insertion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Victim<S> {
    /// Evicted line.
    pub(crate) line: Line,
    /// Class stored with the line.
    pub(crate) class: BulkClass,
    /// State at the time of eviction.
    pub(crate) state: S,
}

/// Outcome of an insertion.
#[derive(Debug, PartialEq, Eq)]
pub struct Insertion<'a, S> {
    /// State of the inserted line.
    pub(crate) state: &'a mut S,
    /// Valid line that was evicted, if any.
    pub victim: Option<Victim<S>>,
}

#[derive(Clone, Copy)]
struct CacheLine<S> {
    line: Line,
    state: S,
}

/// Maximum number of unused slots at the start. An allocation is aligned to 8 bytes, and skipping 8 slots either
/// covers every alignment within a host cache line, or never changes it.
const SPARE_SLOTS: usize = 8;

/// Location of a line.
#[derive(Clone, Copy)]
struct WayLocation {
    set: usize,
    way: u32,
}

/// Tag array with `sets` × `ways` lines, each with a state of type `S`.
///
/// A lookup reads a single host cache line with hashes and ages, and on a hit another with the line and its state. A
/// bulk invalidation only increments a counter; each set drops the invalidated lines at its next access.
#[derive(Clone)]
pub struct Cache<S> {
    index: SetIndex,
    ways: u32,
    touches: bool,
    /// Binary logarithm of the groups per set: 0, 1 or 2.
    group_shift: u32,
    /// Tags, in set-major order.
    groups: Vec<Groups>,
    /// Lines and states, divided into shares with 2^`share_shift` ways each, and set-major within a share. Shares are
    /// allocated when a line is first stored in their ways: most sets in a large array hold few lines, and use their
    /// first ways. See [`Cache::slot`].
    slots: Vec<CacheLine<S>>,
    /// Number of unused slots at the start, which align the first set to a host cache line.
    first_slot: usize,
    /// Binary logarithm of the adjacent ways per set: the number that fits in a host cache line.
    share_shift: u32,
    /// Number of bulk invalidations performed to date.
    sweeps: u32,
    /// Number of the latest bulk invalidation per class, 0 before the first.
    swept: [u32; BulkClass::COUNT],
    /// Number of bulk invalidations already applied, per set.
    seen: Vec<u32>,
    /// Cached result from the last search, because a single event usually looks up its line several times.
    last: Cell<LastSearch>,
}

/// Result of the last search. Kept consistent by every operation that changes a set.
#[derive(Clone, Copy)]
struct LastSearch {
    line: Line,
    set: usize,
    way: Option<u32>,
}

/// Empty search result: no line has this number.
const NOTHING: LastSearch = LastSearch { line: Line(u64::MAX), set: 0, way: None };

/// Calls a function from [`set`] on set `$set` in `$cache`, passed as an array of groups.
macro_rules! in_set {
    ($cache:ident, $set:expr, $function:ident($($argument:expr),*)) => {{
        let first = $set << $cache.group_shift;
        let groups = &$cache.groups[first / 4];
        match $cache.group_shift {
            0 => set::$function(groups.set::<1>(first), $($argument),*),
            1 => set::$function(groups.set::<2>(first), $($argument),*),
            _ => set::$function(groups.set::<4>(first), $($argument),*),
        }
    }};
    ($cache:ident, mut $set:expr, $function:ident($($argument:expr),*)) => {{
        let first = $set << $cache.group_shift;
        let groups = &mut $cache.groups[first / 4];
        match $cache.group_shift {
            0 => set::$function(groups.set_mut::<1>(first), $($argument),*),
            1 => set::$function(groups.set_mut::<2>(first), $($argument),*),
            _ => set::$function(groups.set_mut::<4>(first), $($argument),*),
        }
    }};
}

impl<S: Copy + Default> Cache<S> {
    /// Creates an empty array. Panics on a shape outside the limits in [`CacheConfig`].
    pub fn new(config: CacheConfig) -> Cache<S> {
        assert!((1..=MAX_WAYS).contains(&config.ways), "{} ways: 1 to {MAX_WAYS} are possible", config.ways);
        let index = match config.index {
            IndexFunction::Hashed => SetIndex::new(config.sets),
            IndexFunction::HashedWithinSlices => SetIndex::within_slices(config.sets),
            IndexFunction::LowBits => SetIndex::by_low_bits(config.sets),
        };
        let group_shift = config.ways.div_ceil(8).next_power_of_two().trailing_zeros();
        let sets = config.sets as usize;
        let most = (HOST_LINE / size_of::<CacheLine<S>>()).max(1).ilog2();
        let mut cache = Cache {
            index,
            ways: config.ways,
            touches: config.replacement == Replacement::LeastRecentlyUsed,
            group_shift,
            groups: vec![Groups::EMPTY; (sets << group_shift).div_ceil(4)],
            slots: Vec::new(),
            first_slot: 0,
            share_shift: most.min(config.ways.next_power_of_two().ilog2()),
            sweeps: 0,
            swept: [0; BulkClass::COUNT],
            seen: vec![0; sets],
            last: Cell::new(NOTHING),
        };
        // Ages in a set always form a permutation of 0..ways; bytes beyond the ways are never read.
        for set in 0..sets {
            for way in 0..config.ways {
                let (group, shift) = cache.way_mut(WayLocation { set, way });
                group.set_age(shift, way);
            }
        }
        cache
    }

    /// Capacity in lines.
    pub fn capacity(&self) -> u64 {
        u64::from(self.index.sets()) * u64::from(self.ways)
    }

    /// Prefetches the data that a lookup for `line` reads first into the host's caches.
    #[inline]
    pub(crate) fn prefetch(&self, line: Line) {
        self.prefetch_set(self.index.index(line.0));
    }

    #[inline]
    fn prefetch_set(&self, set: usize) {
        prefetch(&self.groups[(set << self.group_shift) / 4]);
        if self.sweeps != 0 {
            prefetch(&self.seen[set]);
        }
    }

    /// Prefetches the slot that holds `line`, or the slot for its insertion.
    #[inline]
    pub(crate) fn prefetch_slot(&self, line: Line) {
        let set = self.index.index(line.0);
        let equal = in_set!(self, set, alike(line));
        let way = if equal == 0 { self.choose(set, Ways::ALL) } else { Some(equal.trailing_zeros()) };
        if let Some(way) = way {
            self.prefetch_place(WayLocation { set, way });
        }
    }

    /// Prefetches a way's slot, if allocated.
    #[inline]
    fn prefetch_place(&self, place: WayLocation) {
        if let Some(slot) = self.slots.get(self.slot(place)) {
            prefetch(slot);
        }
    }

    /// Prefetches the data that a fill for an absent `line` will change into the host's caches: the set, and the
    /// line's slot if the set's slots are adjacent.
    #[inline]
    pub(crate) fn prefetch_fill(&self, line: Line) {
        let set = self.index.index(line.0);
        self.prefetch_set(set);
        if self.slots_lie_together() {
            self.prefetch_place(WayLocation { set, way: 0 });
        }
    }

    /// True if all slots in a set share a host cache line.
    #[inline]
    fn slots_lie_together(&self) -> bool {
        self.ways <= 1 << self.share_shift && size_of::<CacheLine<S>>() <= HOST_LINE
    }

    /// Prefetches the data that a lookup for `line` will read into the host's caches: the set, and the line's slot if
    /// present. Returns true if the line may be present.
    #[inline]
    pub(crate) fn prefetch_held(&self, line: Line) -> bool {
        let set = self.index.index(line.0);
        self.prefetch_set(set);
        if self.slots_lie_together() {
            self.prefetch_place(WayLocation { set, way: 0 });
            return true;
        }
        let equal = in_set!(self, set, alike(line));
        if equal != 0 {
            self.prefetch_place(WayLocation { set, way: equal.trailing_zeros() });
        }
        equal != 0
    }

    /// Looks up the state for `line` and marks the line as most recently used.
    #[inline]
    pub fn lookup(&mut self, line: Line) -> Option<&mut S> {
        let set = self.set_of(line);
        self.refresh(set);
        let place = self.find(set, line)?;
        if self.touches {
            self.touch(place);
        }
        Some(self.state_mut(place))
    }

    /// Returns the state of `line` without a change to the replacement order.
    #[inline]
    pub(crate) fn peek(&self, line: Line) -> Option<&S> {
        self.find_fresh(line).map(|place| &self.slots[self.slot(place)].state)
    }

    /// Returns the mutable state of `line` without a change to the replacement order.
    #[inline]
    pub(crate) fn peek_mut(&mut self, line: Line) -> Option<&mut S> {
        self.find_fresh(line).map(|place| self.state_mut(place))
    }

    /// Returns the class stored with `line`.
    #[cfg(test)]
    pub(crate) fn class_of(&self, line: Line) -> Option<BulkClass> {
        self.find_fresh(line).map(|place| self.class(place))
    }

    /// Inserts `line` as most recently used, into an empty way from `ways`, or else in place of the oldest unpinned
    /// line in these ways. A line already present keeps its way and receives the new class and state. Returns `None`
    /// without any change if every way in `ways` is pinned.
    #[inline]
    pub fn insert(&mut self, line: Line, class: BulkClass, state: S, ways: Ways) -> Option<Insertion<'_, S>> {
        let (slot, held) = self.place(line, class, ways)?;
        let state = CacheLine { line, state };
        let before = std::mem::replace(&mut self.slots[slot], state);
        let victim = held.map(|class| Victim { line: before.line, class, state: before.state });
        Some(Insertion { state: &mut self.slots[slot].state, victim })
    }

    /// Like [`Cache::insert`], for callers without interest in the victim. Returns true if a way was available.
    #[inline]
    pub(crate) fn store(&mut self, line: Line, class: BulkClass, state: S, ways: Ways) -> bool {
        let Some((slot, _)) = self.place(line, class, ways) else { return false };
        self.slots[slot] = CacheLine { line, state };
        true
    }

    /// Allocates a way for `line`, either its present way or a new way. Returns the slot, and the evicted line's
    /// class, if any.
    #[inline]
    fn place(&mut self, line: Line, class: BulkClass, ways: Ways) -> Option<(usize, Option<BulkClass>)> {
        let set = self.set_of(line);
        self.refresh(set);
        if let Some(place) = self.find(set, line) {
            if self.touches {
                self.touch(place);
            }
            let (group, shift) = self.way_mut(place);
            group.set_class(shift, class);
            return Some((self.slot(place), None));
        }
        let (way, held) = in_set!(self, mut set, claim(self.ways, ways, line, class))?;
        self.last.set(LastSearch { line, set, way: Some(way) });
        let slot = self.slot(WayLocation { set, way });
        if slot >= self.slots.len() {
            self.add_slots(way);
            return Some((self.slot(WayLocation { set, way }), held));
        }
        Some((slot, held))
    }

    /// Allocates slots up to and including a way's share.
    #[cold]
    #[inline(never)]
    fn add_slots(&mut self, way: u32) {
        let shares = (way >> self.share_shift) as usize + 1;
        let count = (shares * self.index.sets() as usize) << self.share_shift;
        let mut slots: Vec<CacheLine<S>> = Vec::with_capacity(count + SPARE_SLOTS);
        let first_slot = slots.as_ptr().align_offset(HOST_LINE).min(SPARE_SLOTS);
        let empty = CacheLine { line: Line(0), state: S::default() };
        slots.resize(first_slot, empty);
        slots.extend_from_slice(&self.slots[self.first_slot..]);
        slots.resize(first_slot + count, empty);
        (self.slots, self.first_slot) = (slots, first_slot);
    }

    /// Removes `line` and returns its state.
    #[inline]
    pub(crate) fn remove(&mut self, line: Line) -> Option<S> {
        let place = self.find_fresh(line)?;
        self.evict(place).map(|victim| victim.state)
    }

    /// Protects `line` from eviction (not from removal or invalidation), or ends the protection. Returns true if the
    /// line is present.
    #[inline]
    pub(crate) fn set_pinned(&mut self, line: Line, pinned: bool) -> bool {
        let Some(place) = self.find_fresh(line) else { return false };
        let (group, shift) = self.way_mut(place);
        group.set_pinned(shift, pinned);
        true
    }

    /// Invalidates every line in `class` at constant cost. Invalidated lines are not reported as victims.
    pub(crate) fn invalidate_class(&mut self, class: BulkClass) {
        if self.sweeps == u32::MAX {
            self.sweep();
        }
        self.sweeps += 1;
        self.swept[class.0 as usize] = self.sweeps;
    }

    /// Visits every valid line, in set-major order.
    pub(crate) fn for_each_valid(&mut self, mut visit: impl FnMut(Line, BulkClass, &mut S)) {
        self.retain(|line, class, state| {
            visit(line, class, state);
            true
        });
    }

    /// Visits every valid line, in set-major order, and drops each line for which `keep` returns false.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(Line, BulkClass, &mut S) -> bool) {
        for set in 0..self.seen.len() {
            self.refresh(set);
            for way in 0..self.ways {
                let place = WayLocation { set, way };
                if self.is_empty(place) {
                    continue;
                }
                let class = self.class(place);
                let slot = self.slot(place);
                let line = self.slots[slot].line;
                if !keep(line, class, &mut self.slots[slot].state) {
                    self.evict(place);
                }
            }
        }
    }

    /// Number of valid lines, computed by a scan.
    #[cfg(test)]
    pub(crate) fn count_valid(&self) -> u64 {
        let places = (0..self.seen.len()).flat_map(|set| (0..self.ways).map(move |way| WayLocation { set, way }));
        places.filter(|&place| !self.is_empty(place) && self.is_fresh(place)).count() as u64
    }

    /// Group that contains a way, and the bit shift to the way's byte.
    #[inline]
    fn way(&self, place: WayLocation) -> (&Group, u32) {
        let first = place.set << self.group_shift;
        self.groups[first / 4].way(first, place.way)
    }

    #[inline]
    fn way_mut(&mut self, place: WayLocation) -> (&mut Group, u32) {
        let first = place.set << self.group_shift;
        self.groups[first / 4].way_mut(first, place.way)
    }

    #[inline]
    fn is_empty(&self, place: WayLocation) -> bool {
        let (group, shift) = self.way(place);
        group.is_empty(shift)
    }

    fn class(&self, place: WayLocation) -> BulkClass {
        let (group, shift) = self.way(place);
        group.class(shift)
    }

    /// Index of a way's slot.
    #[inline]
    fn slot(&self, place: WayLocation) -> usize {
        let (share, within) = (place.way >> self.share_shift, place.way & ((1 << self.share_shift) - 1));
        let set = share as usize * self.index.sets() as usize + place.set;
        self.first_slot + (set << self.share_shift) + within as usize
    }

    #[inline]
    fn state_mut(&mut self, place: WayLocation) -> &mut S {
        let slot = self.slot(place);
        &mut self.slots[slot].state
    }

    /// Set index for `line`.
    #[inline]
    fn set_of(&self, line: Line) -> usize {
        let last = self.last.get();
        if last.line == line { last.set } else { self.index.index(line.0) }
    }

    /// Way in `set` that holds `line`, including lines already invalidated in bulk.
    #[inline]
    fn find(&self, set: usize, line: Line) -> Option<WayLocation> {
        let last = self.last.get();
        let way = if last.line == line { last.way } else { self.search(set, line) };
        way.map(|way| WayLocation { set, way })
    }

    #[inline]
    fn search(&self, set: usize, line: Line) -> Option<u32> {
        let mut equal = in_set!(self, set, alike(line));
        let mut way = None;
        while equal != 0 {
            let candidate = equal.trailing_zeros();
            if self.slots[self.slot(WayLocation { set, way: candidate })].line == line {
                way = Some(candidate);
                break;
            }
            equal &= equal - 1;
        }
        self.last.set(LastSearch { line, set, way });
        way
    }

    /// Location for `line`; none after a bulk invalidation.
    #[inline(always)]
    fn find_fresh(&self, line: Line) -> Option<WayLocation> {
        self.find(self.set_of(line), line).filter(|&place| self.is_fresh(place))
    }

    #[inline]
    fn is_fresh(&self, place: WayLocation) -> bool {
        self.sweeps == 0 || self.swept[self.class(place).0 as usize] <= self.seen[place.set]
    }

    /// Drops all lines in `set` invalidated in bulk since its last access.
    #[inline]
    fn refresh(&mut self, set: usize) {
        if self.sweeps != 0 && self.seen[set] != self.sweeps {
            self.forget(set);
        }
    }

    #[cold]
    #[inline(never)]
    fn forget(&mut self, set: usize) {
        let seen = std::mem::replace(&mut self.seen[set], self.sweeps);
        let dropped = (0..BulkClass::COUNT).filter(|&class| self.swept[class] > seen);
        let classes = dropped.fold(0, |classes, class| classes | 1 << class);
        in_set!(self, mut set, clear_classes(classes));
        self.last.set(NOTHING);
    }

    /// Applies pending bulk invalidations to every set and restarts their count.
    #[cold]
    fn sweep(&mut self) {
        (0..self.seen.len()).for_each(|set| self.refresh(set));
        self.seen.fill(0);
        self.swept = [0; BulkClass::COUNT];
        self.sweeps = 0;
    }

    /// Marks a way as the set's most recently used.
    #[inline]
    fn touch(&mut self, place: WayLocation) {
        let (group, shift) = self.way(place);
        let age = group.age(shift);
        if age == 0 {
            return;
        }
        in_set!(self, mut place.set, grow_older(age));
        let (group, shift) = self.way_mut(place);
        group.set_age(shift, 0);
    }

    /// Clears a way and returns its former line.
    #[inline]
    fn evict(&mut self, place: WayLocation) -> Option<Victim<S>> {
        let slot = self.slot(place);
        let (group, shift) = self.way_mut(place);
        if group.is_empty(shift) {
            return None;
        }
        let class = group.class(shift);
        group.clear(shift);
        self.last.set(NOTHING);
        let CacheLine { line, state } = self.slots[slot];
        Some(Victim { line, class, state })
    }

    /// Selects the way for an insertion.
    #[inline]
    fn choose(&self, set: usize, ways: Ways) -> Option<u32> {
        in_set!(self, set, choose(self.ways, ways))
    }
}

#[cfg(test)]
mod tests;
