//! A set-associative tag array: lookup, insertion, eviction, bulk invalidation by class.
//!
//! Modelled: tags, replacement, way partitions, pinned lines. Not modelled here: time, data, misses (see
//! [`crate::mshr`]), what a state means. The state of a line is whatever the owner stores.

mod set;

use crate::set_index::SetIndex;
use set::{Group, Groups};
use std::cell::Cell;
use tombolo_engine::{HOST_LINE, prefetch};
use tombolo_types::Line;

/// Most ways of a set.
pub const MAX_WAYS: u32 = 32;

/// Ways of a set by bit: which of them an insertion may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ways {
    /// Those whose line may go.
    pub victims: u32,
    /// Those that may be filled while they are empty.
    pub empty: u32,
}

impl Ways {
    /// Every way there is.
    pub const ALL: Ways = Ways { victims: u32::MAX, empty: u32::MAX };

    /// These alone: the others are another cache.
    pub fn only(ways: u32) -> Ways {
        Ways { victims: ways, empty: ways }
    }

    /// Victims from these alone; an empty way has no victim and takes any line.
    pub fn replacing(ways: u32) -> Ways {
        Ways { victims: ways, empty: u32::MAX }
    }
}

/// Which lines a bulk invalidation drops together: the owner's meaning, 0 to 3.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct BulkClass(u8);

impl BulkClass {
    /// How many there are.
    pub const COUNT: usize = 4;

    /// Class `id`. Panics unless 0 to 3.
    pub const fn new(id: u8) -> BulkClass {
        assert!(id < 4, "a cache has four classes");
        BulkClass(id)
    }

    /// Its number, 0 to 3.
    pub const fn id(self) -> u8 {
        self.0
    }
}

/// What goes when a set is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Replacement {
    /// The line not looked up for longest.
    #[default]
    LeastRecentlyUsed,
    /// The line inserted first, whatever was looked up since.
    FirstIn,
}

/// How a line chooses its set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Index {
    /// By its number modulo the sets, turned by a hash of the quotient.
    #[default]
    Hashed,
    /// As [`Index::Hashed`], by a hash that is independent of the slice, for lines of some slices alone.
    HashedWithinSlices,
    /// By its number modulo the sets: the low bits, for a power of two.
    LowBits,
}

/// Shape of a tag array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheConfig {
    /// Sets: any number from 1, power of two or not (see [`SetIndex`] for which line goes where).
    pub sets: u32,
    /// Ways of a set, 1 to [`MAX_WAYS`].
    pub ways: u32,
    /// Which line goes when a set is full.
    pub replacement: Replacement,
    /// How a line chooses its set.
    pub index: Index,
}

/// A line that an insertion pushed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Victim<S> {
    /// The line.
    pub line: Line,
    /// Its class.
    pub class: BulkClass,
    /// Its state when it went.
    pub state: S,
}

/// Outcome of an insertion.
#[derive(Debug, PartialEq, Eq)]
pub struct Inserted<'a, S> {
    /// State of the line now in the array.
    pub state: &'a mut S,
    /// The valid line that had to go, if one had to.
    pub victim: Option<Victim<S>>,
}

#[derive(Clone, Copy)]
struct Slot<S> {
    line: Line,
    state: S,
}

/// Slots left empty at most: an allocation begins at a multiple of 8 bytes, and 8 slots on at another place within a cache
/// line of the host, or at the same always.
const SPARE_SLOTS: usize = 8;

/// Where a line is.
#[derive(Clone, Copy)]
struct Place {
    set: usize,
    way: u32,
}

/// A tag array of `sets` × `ways` lines, each with a state of type `S`.
///
/// A lookup reads one host cache line of hashes and ages, and on a hit one more with the line and its state.
/// A bulk invalidation only counts; a set forgets the dropped lines when it is next touched.
#[derive(Clone)]
pub struct Cache<S> {
    index: SetIndex,
    ways: u32,
    touches: bool,
    /// Binary logarithm of groups in a set: 0, 1 or 2.
    group_shift: u32,
    /// Set-major.
    groups: Vec<Groups>,
    /// Shares of 2^`share_shift` ways, each set-major, and as many of them as a line has been stored in: most sets of a
    /// large array hold few lines, and those take the first ways. See [`Cache::slot`].
    slots: Vec<Slot<S>>,
    /// Slots left empty so that the first set begins with a cache line of the host.
    first_slot: usize,
    /// Binary logarithm of the ways of a set that lie together: those that fill a cache line of the host.
    share_shift: u32,
    /// Bulk invalidations so far.
    sweeps: u32,
    /// The number of the latest bulk invalidation of each class, 0 before the first.
    swept: [u32; BulkClass::COUNT],
    /// By set: bulk invalidations that it has taken into account.
    seen: Vec<u32>,
    /// One event looks its line up several times.
    last: Cell<Found>,
}

/// What the last search found. What changes a set keeps it true.
#[derive(Clone, Copy)]
struct Found {
    line: Line,
    set: usize,
    way: Option<u32>,
}

/// No line has this number.
const NOTHING: Found = Found { line: Line(u64::MAX), set: 0, way: None };

/// Calls a function of [`set`] on set `$set` of `$cache`, as the array of groups that it is.
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
    /// An empty array. Panics on a shape outside what [`CacheConfig`] allows.
    pub fn new(config: CacheConfig) -> Cache<S> {
        assert!((1..=MAX_WAYS).contains(&config.ways), "{} ways: 1 to {MAX_WAYS} are possible", config.ways);
        let index = match config.index {
            Index::Hashed => SetIndex::new(config.sets),
            Index::HashedWithinSlices => SetIndex::within_slices(config.sets),
            Index::LowBits => SetIndex::by_low_bits(config.sets),
        };
        let group_shift = config.ways.div_ceil(8).next_power_of_two().trailing_zeros();
        let sets = config.sets as usize;
        let most = (HOST_LINE / size_of::<Slot<S>>()).max(1).ilog2();
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
        // Ages of a set are always a permutation of 0..ways; bytes beyond the ways are never looked at.
        for set in 0..sets {
            for way in 0..config.ways {
                let (group, shift) = cache.way_mut(Place { set, way });
                group.set_age(shift, way);
            }
        }
        cache
    }

    /// Lines it can hold.
    pub fn capacity(&self) -> u64 {
        u64::from(self.index.sets()) * u64::from(self.ways)
    }

    /// Starts to load what a lookup of `line` will read first into the host's caches.
    #[inline]
    pub fn prefetch(&self, line: Line) {
        self.prefetch_set(self.index.index(line.0));
    }

    #[inline]
    fn prefetch_set(&self, set: usize) {
        prefetch(&self.groups[(set << self.group_shift) / 4]);
        if self.sweeps != 0 {
            prefetch(&self.seen[set]);
        }
    }

    /// Starts to load the slot of `line`, or the one that it would take.
    #[inline]
    pub fn prefetch_slot(&self, line: Line) {
        let set = self.index.index(line.0);
        let equal = in_set!(self, set, alike(line));
        let way = if equal == 0 { self.choose(set, Ways::ALL) } else { Some(equal.trailing_zeros()) };
        if let Some(way) = way {
            self.prefetch_place(Place { set, way });
        }
    }

    /// Starts to load the slot of a way, where it has one.
    #[inline]
    fn prefetch_place(&self, place: Place) {
        if let Some(slot) = self.slots.get(self.slot(place)) {
            prefetch(slot);
        }
    }

    /// Starts to load what a fill of `line` that is not held will change into the host's caches: its set, and its slot
    /// where those of a set lie together.
    #[inline]
    pub fn prefetch_fill(&self, line: Line) {
        let set = self.index.index(line.0);
        self.prefetch_set(set);
        if self.slots_lie_together() {
            self.prefetch_place(Place { set, way: 0 });
        }
    }

    /// Whether all slots of a set share a cache line of the host.
    #[inline]
    fn slots_lie_together(&self) -> bool {
        self.ways <= 1 << self.share_shift && size_of::<Slot<S>>() <= HOST_LINE
    }

    /// Starts to load what a lookup of `line` will read into the host's caches: its set, and its slot where it is held.
    /// Returns whether it may be.
    #[inline]
    pub fn prefetch_held(&self, line: Line) -> bool {
        let set = self.index.index(line.0);
        self.prefetch_set(set);
        if self.slots_lie_together() {
            self.prefetch_place(Place { set, way: 0 });
            return true;
        }
        let equal = in_set!(self, set, alike(line));
        if equal != 0 {
            self.prefetch_place(Place { set, way: equal.trailing_zeros() });
        }
        equal != 0
    }

    /// The state of `line`, which becomes the newest of its set.
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

    /// The state of `line`; the replacement order stays.
    #[inline]
    pub fn peek(&self, line: Line) -> Option<&S> {
        self.find_fresh(line).map(|place| &self.slots[self.slot(place)].state)
    }

    /// The state of `line`, to change; the replacement order stays.
    #[inline]
    pub fn peek_mut(&mut self, line: Line) -> Option<&mut S> {
        self.find_fresh(line).map(|place| self.state_mut(place))
    }

    /// The class that `line` is stored under.
    pub fn class_of(&self, line: Line) -> Option<BulkClass> {
        self.find_fresh(line).map(|place| self.class(place))
    }

    /// Stores `line`, as the newest of its set, in an empty one of `ways` or else in place of the oldest of
    /// them that is not pinned. A line that is there already stays in its way and takes the new class and
    /// state. `None`, and nothing changes, where every way of `ways` is pinned.
    #[inline]
    pub fn insert(&mut self, line: Line, class: BulkClass, state: S, ways: Ways) -> Option<Inserted<'_, S>> {
        let (slot, held) = self.place(line, class, ways)?;
        let state = Slot { line, state };
        let before = std::mem::replace(&mut self.slots[slot], state);
        let victim = held.map(|class| Victim { line: before.line, class, state: before.state });
        Some(Inserted { state: &mut self.slots[slot].state, victim })
    }

    /// Does what [`Cache::insert`] does for a caller that does not ask what had to go. Returns whether there was a way.
    #[inline]
    pub fn store(&mut self, line: Line, class: BulkClass, state: S, ways: Ways) -> bool {
        let Some((slot, _)) = self.place(line, class, ways) else { return false };
        self.slots[slot] = Slot { line, state };
        true
    }

    /// Gives `line` a way, the one that it is in or another; returns its slot, and the class of another line that has to
    /// go.
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
        self.last.set(Found { line, set, way: Some(way) });
        let slot = self.slot(Place { set, way });
        if slot >= self.slots.len() {
            self.add_slots(way);
            return Some((self.slot(Place { set, way }), held));
        }
        Some((slot, held))
    }

    /// Adds slots up to the share of a way.
    #[cold]
    #[inline(never)]
    fn add_slots(&mut self, way: u32) {
        let shares = (way >> self.share_shift) as usize + 1;
        let count = (shares * self.index.sets() as usize) << self.share_shift;
        let mut slots: Vec<Slot<S>> = Vec::with_capacity(count + SPARE_SLOTS);
        let first_slot = slots.as_ptr().align_offset(HOST_LINE).min(SPARE_SLOTS);
        let empty = Slot { line: Line(0), state: S::default() };
        slots.resize(first_slot, empty);
        slots.extend_from_slice(&self.slots[self.first_slot..]);
        slots.resize(first_slot + count, empty);
        (self.slots, self.first_slot) = (slots, first_slot);
    }

    /// Drops `line` and returns its state.
    #[inline]
    pub fn remove(&mut self, line: Line) -> Option<S> {
        let place = self.find_fresh(line)?;
        self.evict(place).map(|victim| victim.state)
    }

    /// Protects `line` from eviction (not from removal or invalidation), or ends that. Returns whether the
    /// line is there.
    #[inline]
    pub fn set_pinned(&mut self, line: Line, pinned: bool) -> bool {
        let Some(place) = self.find_fresh(line) else { return false };
        let (group, shift) = self.way_mut(place);
        group.set_pinned(shift, pinned);
        true
    }

    /// Drops every line of `class`, at the cost of a counter. Dropped lines are not reported as victims.
    pub fn invalidate_class(&mut self, class: BulkClass) {
        if self.sweeps == u32::MAX {
            self.sweep();
        }
        self.sweeps += 1;
        self.swept[class.0 as usize] = self.sweeps;
    }

    /// Visits every valid line, set by set and way by way.
    pub fn for_each_valid(&mut self, mut visit: impl FnMut(Line, BulkClass, &mut S)) {
        self.retain(|line, class, state| {
            visit(line, class, state);
            true
        });
    }

    /// Visits every valid line, set by set and way by way, and drops those for which `keep` says no.
    pub fn retain(&mut self, mut keep: impl FnMut(Line, BulkClass, &mut S) -> bool) {
        for set in 0..self.seen.len() {
            self.refresh(set);
            for way in 0..self.ways {
                let place = Place { set, way };
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

    /// How many valid lines it holds; counts them.
    pub fn count_valid(&self) -> u64 {
        let places = (0..self.seen.len()).flat_map(|set| (0..self.ways).map(move |way| Place { set, way }));
        places.filter(|&place| !self.is_empty(place) && self.is_fresh(place)).count() as u64
    }

    /// The group of a way and the shift of its byte.
    #[inline]
    fn way(&self, place: Place) -> (&Group, u32) {
        let first = place.set << self.group_shift;
        self.groups[first / 4].way(first, place.way)
    }

    #[inline]
    fn way_mut(&mut self, place: Place) -> (&mut Group, u32) {
        let first = place.set << self.group_shift;
        self.groups[first / 4].way_mut(first, place.way)
    }

    #[inline]
    fn is_empty(&self, place: Place) -> bool {
        let (group, shift) = self.way(place);
        group.is_empty(shift)
    }

    fn class(&self, place: Place) -> BulkClass {
        let (group, shift) = self.way(place);
        group.class(shift)
    }

    /// The index of a way's slot.
    #[inline]
    fn slot(&self, place: Place) -> usize {
        let (share, within) = (place.way >> self.share_shift, place.way & ((1 << self.share_shift) - 1));
        let set = share as usize * self.index.sets() as usize + place.set;
        self.first_slot + (set << self.share_shift) + within as usize
    }

    #[inline]
    fn state_mut(&mut self, place: Place) -> &mut S {
        let slot = self.slot(place);
        &mut self.slots[slot].state
    }

    /// The set of `line`.
    #[inline]
    fn set_of(&self, line: Line) -> usize {
        let last = self.last.get();
        if last.line == line { last.set } else { self.index.index(line.0) }
    }

    /// The way of `set` that holds `line`, dropped in bulk or not.
    #[inline]
    fn find(&self, set: usize, line: Line) -> Option<Place> {
        let last = self.last.get();
        let way = if last.line == line { last.way } else { self.search(set, line) };
        way.map(|way| Place { set, way })
    }

    #[inline]
    fn search(&self, set: usize, line: Line) -> Option<u32> {
        let mut equal = in_set!(self, set, alike(line));
        let mut way = None;
        while equal != 0 {
            let candidate = equal.trailing_zeros();
            if self.slots[self.slot(Place { set, way: candidate })].line == line {
                way = Some(candidate);
                break;
            }
            equal &= equal - 1;
        }
        self.last.set(Found { line, set, way });
        way
    }

    /// Where `line` is, unless dropped in bulk.
    #[inline(always)]
    fn find_fresh(&self, line: Line) -> Option<Place> {
        self.find(self.set_of(line), line).filter(|&place| self.is_fresh(place))
    }

    #[inline]
    fn is_fresh(&self, place: Place) -> bool {
        self.sweeps == 0 || self.swept[self.class(place).0 as usize] <= self.seen[place.set]
    }

    /// Makes `set` forget the lines dropped in bulk since it was last touched.
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

    /// Refreshes every set and starts counting bulk invalidations anew.
    #[cold]
    fn sweep(&mut self) {
        (0..self.seen.len()).for_each(|set| self.refresh(set));
        self.seen.fill(0);
        self.swept = [0; BulkClass::COUNT];
        self.sweeps = 0;
    }

    /// Makes a way the newest of its set.
    #[inline]
    fn touch(&mut self, place: Place) {
        let (group, shift) = self.way(place);
        let age = group.age(shift);
        if age == 0 {
            return;
        }
        in_set!(self, mut place.set, grow_older(age));
        let (group, shift) = self.way_mut(place);
        group.set_age(shift, 0);
    }

    /// Empties a way and returns what it held.
    #[inline]
    fn evict(&mut self, place: Place) -> Option<Victim<S>> {
        let slot = self.slot(place);
        let (group, shift) = self.way_mut(place);
        if group.is_empty(shift) {
            return None;
        }
        let class = group.class(shift);
        group.clear(shift);
        self.last.set(NOTHING);
        let Slot { line, state } = self.slots[slot];
        Some(Victim { line, class, state })
    }

    /// The way an insertion takes.
    #[inline]
    fn choose(&self, set: usize, ways: Ways) -> Option<u32> {
        in_set!(self, set, choose(self.ways, ways))
    }
}

#[cfg(test)]
mod tests;
