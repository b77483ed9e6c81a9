//! A set-associative tag array: lookup, insertion, eviction, bulk invalidation by class.
//!
//! Modelled: tags, replacement, way partitions, pinned lines. Not modelled here: time, data, misses (see
//! [`crate::mshr`]), what a state means. The state of a line is whatever the owner stores.

use crate::set_index::{GOLDEN, SetIndex};
use tombolo_engine::prefetch;
use tombolo_types::Line;

/// Most ways of a set.
pub const MAX_WAYS: u32 = 32;

/// Ways of a set by bit: which of them an insertion may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ways(pub u32);

impl Ways {
    /// Every way there is.
    pub const ALL: Ways = Ways(u32::MAX);
}

/// Which lines a bulk invalidation drops together: the owner's meaning, 0 to 3.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Class(u8);

impl Class {
    /// How many there are.
    pub const COUNT: usize = 4;

    /// Class `id`. Panics unless 0 to 3.
    pub const fn new(id: u8) -> Class {
        assert!(id < 4, "a cache has four classes");
        Class(id)
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

/// Shape of a tag array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheConfig {
    /// Sets: any number from 1, power of two or not (see [`SetIndex`] for which line goes where).
    pub sets: u32,
    /// Ways of a set, 1 to [`MAX_WAYS`].
    pub ways: u32,
    /// Which line goes when a set is full.
    pub replacement: Replacement,
}

/// A line that an insertion pushed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Victim<S> {
    /// The line.
    pub line: Line,
    /// Its class.
    pub class: Class,
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

/// The low bit of each byte of a word.
const LOW: u64 = 0x0101_0101_0101_0101;
/// The high bit of each byte: in [`Group::meta`], whether the way is pinned.
const HIGH: u64 = LOW << 7;
/// In [`Group::meta`], the age of each way: 0 for the newest.
const AGE: u64 = LOW * 31;
/// In [`Group::meta`], the class of each way.
const CLASS_SHIFT: u32 = 5;

/// Eight ways of a set, one byte each.
#[derive(Clone, Copy)]
struct Group {
    /// A hash of the line, never 0; 0 where the way is empty.
    prints: u64,
    /// Pinned (1 bit), class (2), age (5).
    meta: u64,
}

/// Bytes of a cache line of the host.
const HOST_LINE: usize = 64;

/// Four groups in one host cache line: four, two or one set, so that no set straddles two.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Groups([Group; 4]);

const EMPTY: Groups = Groups([Group { prints: 0, meta: 0 }; 4]);

#[derive(Clone, Copy)]
struct Slot<S> {
    line: Line,
    state: S,
}

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
    /// Set-major: way `w` of set `s` is `first_slot + s * ways + w`.
    slots: Vec<Slot<S>>,
    /// Slots left empty so that the first set begins with a cache line of the host.
    first_slot: usize,
    /// Bulk invalidations so far.
    sweeps: u32,
    /// The number of the latest bulk invalidation of each class, 0 before the first.
    swept: [u32; Class::COUNT],
    /// By set: bulk invalidations that it has taken into account.
    seen: Vec<u32>,
}

/// Sets the high bit of each byte that is zero, and no other bit.
#[inline]
fn zero_bytes(word: u64) -> u64 {
    !(((word & !HIGH) + !HIGH) | word | !HIGH)
}

/// Gathers the high bits of the eight bytes: bit `i` from byte `i`.
#[inline]
fn gather(highs: u64) -> u32 {
    ((highs >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56) as u32
}

#[inline]
fn fingerprint(line: Line) -> u64 {
    (line.0.wrapping_mul(GOLDEN) >> 56).max(1)
}

impl<S: Copy + Default> Cache<S> {
    /// An empty array. Panics on a shape outside what [`CacheConfig`] allows.
    pub fn new(config: CacheConfig) -> Cache<S> {
        assert!((1..=MAX_WAYS).contains(&config.ways), "{} ways: 1 to {MAX_WAYS} are possible", config.ways);
        let index = SetIndex::new(config.sets);
        let group_shift = config.ways.div_ceil(8).next_power_of_two().trailing_zeros();
        let sets = config.sets as usize;
        let mut slots: Vec<Slot<S>> = Vec::with_capacity(sets * config.ways as usize + HOST_LINE);
        let first_slot = slots.as_ptr().align_offset(HOST_LINE).min(HOST_LINE);
        let empty = Slot { line: Line(0), state: S::default() };
        slots.resize(first_slot + sets * config.ways as usize, empty);
        let mut cache = Cache {
            index,
            ways: config.ways,
            touches: config.replacement == Replacement::LeastRecentlyUsed,
            group_shift,
            groups: vec![EMPTY; (sets << group_shift).div_ceil(4)],
            slots,
            first_slot,
            sweeps: 0,
            swept: [0; Class::COUNT],
            seen: vec![0; sets],
        };
        // Ages of a set are always a permutation of 0..ways; bytes beyond the ways are never looked at.
        for set in 0..sets {
            for way in 0..config.ways {
                let (group, shift) = cache.way_mut(Place { set, way });
                group.meta |= u64::from(way) << shift;
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
        let set = self.index.index(line.0);
        prefetch(&self.groups(set)[0]);
        prefetch(&self.seen[set]);
    }

    /// Starts to load the slot of `line`, or the one that it would take. What [`Cache::prefetch`] loads should be
    /// there by now.
    #[inline]
    pub fn prefetch_slot(&self, line: Line) {
        let set = self.index.index(line.0);
        let equal = self.alike(set, line);
        let way = if equal == 0 { self.choose(set, Ways::ALL) } else { Some(equal.trailing_zeros()) };
        if let Some(way) = way {
            prefetch(&self.slots[self.slot(Place { set, way })]);
        }
    }

    /// The state of `line`, which becomes the newest of its set.
    #[inline]
    pub fn lookup(&mut self, line: Line) -> Option<&mut S> {
        let set = self.index.index(line.0);
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
    pub fn class_of(&self, line: Line) -> Option<Class> {
        self.find_fresh(line).map(|place| self.class(place))
    }

    /// Stores `line`, as the newest of its set, in an empty one of `ways` or else in place of the oldest of
    /// them that is not pinned. A line that is there already stays in its way and takes the new class and
    /// state. `None`, and nothing changes, where every way of `ways` is pinned.
    #[inline]
    pub fn insert(&mut self, line: Line, class: Class, state: S, ways: Ways) -> Option<Inserted<'_, S>> {
        let set = self.index.index(line.0);
        self.refresh(set);
        let held = self.find(set, line);
        let place = match held {
            Some(place) => place,
            None => Place { set, way: self.choose(set, ways)? },
        };
        let victim = if held.is_some() { None } else { self.evict(place) };
        if held.is_none() || self.touches {
            self.touch(place);
        }
        let (group, shift) = self.way_mut(place);
        group.prints = (group.prints & !(0xff << shift)) | fingerprint(line) << shift;
        group.meta = (group.meta & !(0x60 << shift)) | u64::from(class.0) << (shift + CLASS_SHIFT);
        let slot = self.slot(place);
        self.slots[slot] = Slot { line, state };
        Some(Inserted { state: &mut self.slots[slot].state, victim })
    }

    /// Drops `line` and returns its state.
    #[inline]
    pub fn remove(&mut self, line: Line) -> Option<S> {
        let place = self.find_fresh(line)?;
        self.evict(place).map(|victim| victim.state)
    }

    /// Protects `line` from eviction (not from removal or invalidation), or ends that. Returns whether the
    /// line is there.
    pub fn set_pinned(&mut self, line: Line, pinned: bool) -> bool {
        let Some(place) = self.find_fresh(line) else { return false };
        let (group, shift) = self.way_mut(place);
        group.meta = (group.meta & !(0x80 << shift)) | u64::from(pinned) << (shift + 7);
        true
    }

    /// Drops every line of `class`, at the cost of a counter. Dropped lines are not reported as victims.
    pub fn invalidate_class(&mut self, class: Class) {
        if self.sweeps == u32::MAX {
            self.sweep();
        }
        self.sweeps += 1;
        self.swept[class.0 as usize] = self.sweeps;
    }

    /// Visits every valid line, set by set and way by way.
    pub fn for_each_valid(&mut self, mut visit: impl FnMut(Line, Class, &mut S)) {
        self.retain(|line, class, state| {
            visit(line, class, state);
            true
        });
    }

    /// Visits every valid line, set by set and way by way, and drops those for which `keep` says no.
    pub fn retain(&mut self, mut keep: impl FnMut(Line, Class, &mut S) -> bool) {
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

    /// The groups of `set`.
    #[inline]
    fn groups(&self, set: usize) -> &[Group] {
        let at = set << self.group_shift;
        &self.groups[at >> 2].0[at & 3..][..1 << self.group_shift]
    }

    #[inline]
    fn groups_mut(&mut self, set: usize) -> &mut [Group] {
        let at = set << self.group_shift;
        &mut self.groups[at >> 2].0[at & 3..][..1 << self.group_shift]
    }

    /// The group of a way and the shift of its byte.
    #[inline]
    fn way(&self, place: Place) -> (&Group, u32) {
        (&self.groups(place.set)[place.way as usize / 8], place.way % 8 * 8)
    }

    #[inline]
    fn way_mut(&mut self, place: Place) -> (&mut Group, u32) {
        (&mut self.groups_mut(place.set)[place.way as usize / 8], place.way % 8 * 8)
    }

    /// The age, class and pin of a way.
    #[inline]
    fn meta(&self, place: Place) -> u64 {
        let (group, shift) = self.way(place);
        group.meta >> shift & 0xff
    }

    #[inline]
    fn is_empty(&self, place: Place) -> bool {
        let (group, shift) = self.way(place);
        group.prints >> shift & 0xff == 0
    }

    fn class(&self, place: Place) -> Class {
        Class((self.meta(place) >> CLASS_SHIFT & 3) as u8)
    }

    #[inline]
    fn slot(&self, place: Place) -> usize {
        self.first_slot + place.set * self.ways as usize + place.way as usize
    }

    #[inline]
    fn state_mut(&mut self, place: Place) -> &mut S {
        let slot = self.slot(place);
        &mut self.slots[slot].state
    }

    /// The ways of `set` by bit whose hash is that of `line`.
    #[inline]
    fn alike(&self, set: usize, line: Line) -> u32 {
        let print = fingerprint(line) * LOW;
        let mut equal = 0;
        for (at, group) in self.groups(set).iter().enumerate() {
            equal |= gather(zero_bytes(group.prints ^ print)) << (8 * at);
        }
        equal
    }

    /// The way of `set` that holds `line`, dropped in bulk or not.
    #[inline]
    fn find(&self, set: usize, line: Line) -> Option<Place> {
        let mut equal = self.alike(set, line);
        while equal != 0 {
            let place = Place { set, way: equal.trailing_zeros() };
            if self.slots[self.slot(place)].line == line {
                return Some(place);
            }
            equal &= equal - 1;
        }
        None
    }

    /// Where `line` is, unless dropped in bulk.
    #[inline]
    fn find_fresh(&self, line: Line) -> Option<Place> {
        self.find(self.index.index(line.0), line).filter(|&place| self.is_fresh(place))
    }

    fn is_fresh(&self, place: Place) -> bool {
        self.swept[self.class(place).0 as usize] <= self.seen[place.set]
    }

    /// Makes `set` forget the lines dropped in bulk since it was last touched.
    #[inline]
    fn refresh(&mut self, set: usize) {
        if self.sweeps != 0 && self.seen[set] != self.sweeps {
            self.forget(set);
        }
    }

    #[cold]
    fn forget(&mut self, set: usize) {
        for way in 0..self.ways {
            let place = Place { set, way };
            if !self.is_fresh(place) {
                self.evict(place);
            }
        }
        self.seen[set] = self.sweeps;
    }

    /// Refreshes every set and starts counting bulk invalidations anew.
    #[cold]
    fn sweep(&mut self) {
        (0..self.seen.len()).for_each(|set| self.refresh(set));
        self.seen.fill(0);
        self.swept = [0; Class::COUNT];
        self.sweeps = 0;
    }

    /// Makes a way the newest of its set: what was newer grows one older.
    #[inline]
    fn touch(&mut self, place: Place) {
        let age = self.meta(place) & 31;
        if age == 0 {
            return;
        }
        for group in self.groups_mut(place.set) {
            let newer = !(((group.meta & AGE) | HIGH) - age * LOW) & HIGH;
            group.meta += newer >> 7;
        }
        let (group, shift) = self.way_mut(place);
        group.meta &= !(31 << shift);
    }

    /// Empties a way and returns what it held.
    #[inline]
    fn evict(&mut self, place: Place) -> Option<Victim<S>> {
        if self.is_empty(place) {
            return None;
        }
        let class = self.class(place);
        let (group, shift) = self.way_mut(place);
        group.prints &= !(0xff << shift);
        group.meta &= !(0x80 << shift);
        let Slot { line, state } = self.slots[self.slot(place)];
        Some(Victim { line, class, state })
    }

    /// The way an insertion takes: the first empty one allowed, else the oldest allowed and not pinned.
    #[inline]
    fn choose(&self, set: usize, ways: Ways) -> Option<u32> {
        let (mut empty, mut pinned, mut oldest) = (0, 0, 0);
        let last = u64::from(self.ways - 1) * LOW;
        for (at, group) in self.groups(set).iter().enumerate() {
            empty |= gather(zero_bytes(group.prints)) << (8 * at);
            pinned |= gather(group.meta & HIGH) << (8 * at);
            oldest |= gather(zero_bytes((group.meta & AGE) ^ last)) << (8 * at);
        }
        let allowed = ways.0 & (u32::MAX >> (MAX_WAYS - self.ways));
        if empty & allowed != 0 {
            return Some((empty & allowed).trailing_zeros());
        }
        let allowed = allowed & !pinned;
        if oldest & allowed != 0 {
            return Some((oldest & allowed).trailing_zeros());
        }
        (0..self.ways).filter(|way| allowed >> way & 1 != 0).max_by_key(|&way| self.meta(Place { set, way }) & 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const OWN: Class = Class::new(0);
    const REMOTE: Class = Class::new(1);

    fn cache(sets: u32, ways: u32) -> Cache<u64> {
        Cache::new(CacheConfig { sets, ways, replacement: Replacement::LeastRecentlyUsed })
    }

    fn put(cache: &mut Cache<u64>, line: u64, class: Class) -> Option<u64> {
        let inserted = cache.insert(Line(line), class, line, Ways::ALL).unwrap();
        inserted.victim.map(|victim| victim.line.0)
    }

    fn fill(cache: &mut Cache<u64>, lines: impl IntoIterator<Item = u64>) {
        for line in lines {
            put(cache, line, OWN);
        }
    }

    #[test]
    fn the_line_unused_for_longest_goes_first() {
        let mut cache = cache(1, 4);
        (0..4).for_each(|line| assert_eq!(put(&mut cache, line, OWN), None));
        assert!(cache.lookup(Line(0)).is_some());
        assert_eq!(put(&mut cache, 4, OWN), Some(1));
        assert_eq!(put(&mut cache, 5, OWN), Some(2));
    }

    #[test]
    fn first_in_goes_first_however_often_it_is_used() {
        let mut cache = Cache::<u64>::new(CacheConfig { sets: 1, ways: 2, replacement: Replacement::FirstIn });
        put(&mut cache, 0, OWN);
        put(&mut cache, 1, OWN);
        assert!(cache.lookup(Line(0)).is_some());
        assert_eq!(put(&mut cache, 0, OWN), None, "stored again, but not anew");
        assert_eq!(put(&mut cache, 2, OWN), Some(0));
    }

    #[test]
    fn a_peek_does_not_make_a_line_newer() {
        let mut cache = cache(1, 2);
        put(&mut cache, 0, OWN);
        put(&mut cache, 1, OWN);
        assert_eq!(cache.peek(Line(0)), Some(&0));
        assert_eq!(put(&mut cache, 2, OWN), Some(0));
    }

    #[test]
    fn a_bulk_invalidation_drops_its_class_alone() {
        let mut cache = cache(3, 4);
        for line in 0..12 {
            put(&mut cache, line, if line % 2 == 0 { OWN } else { REMOTE });
        }
        cache.invalidate_class(REMOTE);
        assert_eq!(cache.count_valid(), 6);
        assert!((0..12).all(|line| cache.peek(Line(line)).is_some() == (line % 2 == 0)));
    }

    #[test]
    fn a_line_stored_after_a_bulk_invalidation_stays() {
        let mut cache = cache(1, 4);
        put(&mut cache, 0, REMOTE);
        cache.invalidate_class(REMOTE);
        put(&mut cache, 1, REMOTE);
        assert_eq!((cache.lookup(Line(0)).copied(), cache.lookup(Line(1)).copied()), (None, Some(1)));
    }

    #[test]
    fn a_place_freed_in_bulk_is_taken_before_anything_is_evicted() {
        let mut cache = cache(1, 4);
        fill(&mut cache, 0..3);
        put(&mut cache, 3, REMOTE);
        cache.invalidate_class(REMOTE);
        assert_eq!(put(&mut cache, 4, OWN), None);
    }

    #[test]
    fn counting_bulk_invalidations_wraps_without_reviving_a_line() {
        let mut cache = cache(2, 4);
        cache.sweeps = u32::MAX - 1;
        put(&mut cache, 0, REMOTE);
        put(&mut cache, 1, OWN);
        cache.invalidate_class(REMOTE);
        cache.invalidate_class(REMOTE);
        assert_eq!(cache.sweeps, 1, "it wrapped");
        assert_eq!((cache.peek(Line(0)), cache.peek(Line(1))), (None, Some(&1)));
    }

    #[test]
    fn insertions_keep_to_the_ways_they_may_use() {
        let mut cache = cache(1, 8);
        let low = Ways(0b11);
        for line in 0..2 {
            assert!(cache.insert(Line(line), OWN, line, low).unwrap().victim.is_none());
        }
        let inserted = cache.insert(Line(2), OWN, 2, low).unwrap();
        assert_eq!(inserted.victim.unwrap().line, Line(0), "six ways are empty, but not these two");
    }

    #[test]
    fn a_pinned_line_is_not_evicted() {
        let mut cache = cache(1, 2);
        put(&mut cache, 0, OWN);
        put(&mut cache, 1, OWN);
        assert!(cache.set_pinned(Line(0), true));
        assert_eq!(put(&mut cache, 2, OWN), Some(1));
        assert!(cache.set_pinned(Line(2), true));
        assert!(cache.insert(Line(3), OWN, 3, Ways::ALL).is_none(), "every way is pinned");
        assert!(cache.set_pinned(Line(0), false));
        assert_eq!(put(&mut cache, 3, OWN), Some(0));
    }

    #[test]
    fn a_flush_drops_what_it_does_not_keep() {
        let mut cache = cache(5, 3);
        fill(&mut cache, 0..15);
        cache.retain(|line, _, state| {
            *state += 100;
            line.0 < 4
        });
        let mut left = Vec::new();
        cache.for_each_valid(|line, _, state| left.push((line.0, *state)));
        left.sort_unstable();
        assert_eq!(left, [(0, 100), (1, 101), (2, 102), (3, 103)]);
    }

    #[test]
    fn lines_of_48_bits_are_told_apart() {
        let mut cache = cache(4, 16);
        let lines: Vec<u64> = (0..48).map(|bit| 1 << bit).collect();
        fill(&mut cache, lines.iter().copied());
        for line in lines {
            assert!(cache.peek(Line(line)).is_none_or(|&state| state == line));
        }
    }

    /// What a tag array should do, one step at a time and with nothing packed.
    struct Naive {
        index: SetIndex,
        sets: Vec<Vec<Option<NaiveLine>>>,
        clock: u64,
    }

    #[derive(Clone, Copy)]
    struct NaiveLine {
        line: u64,
        class: Class,
        state: u64,
        pinned: bool,
        used: u64,
    }

    impl Naive {
        fn find(&mut self, line: u64) -> Option<&mut Option<NaiveLine>> {
            let set = &mut self.sets[self.index.index(line)];
            set.iter_mut().find(|way| way.is_some_and(|held| held.line == line))
        }

        fn lookup(&mut self, line: u64) -> Option<u64> {
            self.clock += 1;
            let used = self.clock;
            self.find(line)?.as_mut().map(|held| {
                held.used = used;
                held.state
            })
        }

        /// Outer `None`: no way could be used; inner: no line had to go.
        fn insert(&mut self, line: u64, class: Class, state: u64, ways: u32) -> Option<Option<(u64, u64)>> {
            self.clock += 1;
            let used = self.clock;
            if let Some(Some(held)) = self.find(line) {
                *held = NaiveLine { class, state, used, ..*held };
                return Some(None);
            }
            let set = &mut self.sets[self.index.index(line)];
            let usable = set
                .iter_mut()
                .enumerate()
                .filter(|(way, held)| ways >> way & 1 != 0 && held.is_none_or(|held| !held.pinned));
            let (_, way) = usable.min_by_key(|(_, held)| held.map_or(0, |held| held.used))?;
            let old = way.replace(NaiveLine { line, class, state, pinned: false, used });
            Some(old.map(|held| (held.line, held.state)))
        }

        fn invalidate_class(&mut self, class: Class) {
            let ways = self.sets.iter_mut().flatten();
            ways.filter(|way| way.is_some_and(|held| held.class == class)).for_each(|way| *way = None);
        }

        fn count(&self) -> u64 {
            self.sets.iter().flatten().flatten().count() as u64
        }
    }

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Lookup(u64),
        Peek(u64),
        Insert(u64, u8, u32),
        Remove(u64),
        Pin(u64, bool),
        Invalidate(u8),
    }

    fn step() -> impl Strategy<Value = Step> {
        let line = 0_u64..200;
        prop_oneof![
            6 => line.clone().prop_map(Step::Lookup),
            2 => line.clone().prop_map(Step::Peek),
            10 => (line.clone(), 0..4_u8, prop_oneof![Just(u32::MAX), any::<u32>()])
                .prop_map(|(line, class, ways)| Step::Insert(line, class, ways)),
            2 => line.clone().prop_map(Step::Remove),
            2 => (line, any::<bool>()).prop_map(|(line, pinned)| Step::Pin(line, pinned)),
            1 => (0..4_u8).prop_map(Step::Invalidate),
        ]
    }

    fn agree(cache: &mut Cache<u64>, naive: &mut Naive, step: Step, stamp: u64) {
        match step {
            Step::Lookup(line) => assert_eq!(cache.lookup(Line(line)).copied(), naive.lookup(line)),
            Step::Peek(line) => {
                let held = naive.find(line).and_then(|way| *way);
                assert_eq!(cache.peek(Line(line)).copied(), held.map(|held| held.state));
                assert_eq!(cache.class_of(Line(line)), held.map(|held| held.class));
            }
            Step::Insert(line, class, ways) => {
                let inserted = cache.insert(Line(line), Class::new(class), stamp, Ways(ways));
                let victim = inserted.map(|it| it.victim.map(|victim| (victim.line.0, victim.state)));
                assert_eq!(victim, naive.insert(line, Class::new(class), stamp, ways));
            }
            Step::Remove(line) => {
                let held = naive.find(line).and_then(Option::take);
                assert_eq!(cache.remove(Line(line)), held.map(|held| held.state));
            }
            Step::Pin(line, pinned) => {
                let held = naive.find(line).and_then(Option::as_mut).map(|held| held.pinned = pinned);
                assert_eq!(cache.set_pinned(Line(line), pinned), held.is_some());
            }
            Step::Invalidate(class) => {
                cache.invalidate_class(Class::new(class));
                naive.invalidate_class(Class::new(class));
            }
        }
        assert_eq!(cache.count_valid(), naive.count());
    }

    proptest! {
        #[test]
        fn it_does_what_a_naive_array_does(
            sets in 1..=6_u32,
            ways in 1..=MAX_WAYS,
            steps in prop::collection::vec(step(), 1..400),
        ) {
            let mut cache = cache(sets, ways);
            let mut naive =
                Naive { index: SetIndex::new(sets), sets: vec![vec![None; ways as usize]; sets as usize], clock: 0 };
            for (stamp, step) in steps.into_iter().enumerate() {
                agree(&mut cache, &mut naive, step, stamp as u64);
            }
        }
    }
}
