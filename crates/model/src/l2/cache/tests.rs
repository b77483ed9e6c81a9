use super::*;
use proptest::prelude::*;

const OWN: BulkClass = BulkClass::new(0);
const REMOTE: BulkClass = BulkClass::new(1);

fn cache(sets: u32, ways: u32) -> Cache<u64> {
    Cache::new(CacheConfig { sets, ways, replacement: Replacement::LeastRecentlyUsed, index: IndexFunction::Hashed })
}

fn put(cache: &mut Cache<u64>, line: u64, class: BulkClass) -> Option<u64> {
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
fn ways_take_memory_as_lines_come_to_them() {
    let mut cache = cache(1, 16);
    let slots = |cache: &Cache<u64>| cache.slots.len() - cache.first_slot;
    assert_eq!(slots(&cache), 0);
    let counts = (0..16).map(|line| {
        put(&mut cache, line, OWN);
        slots(&cache)
    });
    // Four slots at 16 bytes fill a host cache line.
    assert_eq!(counts.collect::<Vec<usize>>(), [4, 4, 4, 4, 8, 8, 8, 8, 12, 12, 12, 12, 16, 16, 16, 16]);
    assert!((0..16).all(|line| cache.peek(Line(line)) == Some(&line)), "lines keep their states");
    assert_eq!(put(&mut cache, 16, OWN), Some(0));
    assert_eq!(slots(&cache), 16);
}

#[test]
fn first_in_goes_first_however_often_it_is_used() {
    let mut cache = Cache::<u64>::new(CacheConfig {
        sets: 1,
        ways: 2,
        replacement: Replacement::FirstIn,
        index: IndexFunction::Hashed,
    });
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
    let low = Ways::only(0b11);
    for line in 0..2 {
        assert!(cache.insert(Line(line), OWN, line, low).unwrap().victim.is_none());
    }
    let inserted = cache.insert(Line(2), OWN, 2, low).unwrap();
    assert_eq!(inserted.victim.unwrap().line, Line(0), "six ways are empty, but not these two");
}

#[test]
fn an_empty_way_takes_any_line_where_only_victims_are_limited() {
    let mut cache = cache(1, 4);
    let low = Ways::replacing(0b11);
    for line in 0..4 {
        assert!(cache.insert(Line(line), OWN, line, low).unwrap().victim.is_none(), "two low ways, then two others");
    }
    let inserted = cache.insert(Line(4), OWN, 4, low).unwrap();
    assert_eq!(inserted.victim.unwrap().line, Line(0), "the oldest of the low ways");
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

/// Reference tag array: sequential and without packing.
struct ReferenceCache {
    index: SetIndex,
    sets: Vec<Vec<Option<ReferenceLine>>>,
    clock: u64,
}

#[derive(Clone, Copy)]
struct ReferenceLine {
    line: u64,
    class: BulkClass,
    state: u64,
    pinned: bool,
    used: u64,
}

impl ReferenceCache {
    fn find(&mut self, line: u64) -> Option<&mut Option<ReferenceLine>> {
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

    /// Outer `None`: no way was usable; inner `None`: no line was evicted.
    fn insert(&mut self, line: u64, class: BulkClass, state: u64, ways: Ways) -> Option<Option<(u64, u64)>> {
        self.clock += 1;
        let used = self.clock;
        if let Some(Some(held)) = self.find(line) {
            *held = ReferenceLine { class, state, used, ..*held };
            return Some(None);
        }
        let set = &mut self.sets[self.index.index(line)];
        let own = |way: usize| ways.victims >> way & 1 != 0;
        let usable = set.iter_mut().enumerate().filter(|(way, held)| match held {
            Some(held) => own(*way) && !held.pinned,
            None => own(*way) || ways.empty >> way & 1 != 0,
        });
        let (_, way) = usable.min_by_key(|(way, held)| (held.map_or(0, |held| held.used), !own(*way)))?;
        let old = way.replace(ReferenceLine { line, class, state, pinned: false, used });
        Some(old.map(|held| (held.line, held.state)))
    }

    fn invalidate_class(&mut self, class: BulkClass) {
        let ways = self.sets.iter_mut().flatten();
        ways.filter(|way| way.is_some_and(|held| held.class == class)).for_each(|way| *way = None);
    }

    fn count(&self) -> u64 {
        self.sets.iter().flatten().flatten().count() as u64
    }
}

#[derive(Clone, Copy, Debug)]
enum CacheOp {
    Lookup(u64),
    Peek(u64),
    Insert(u64, u8, Ways),
    Remove(u64),
    Pin(u64, bool),
    Invalidate(u8),
}

fn ways() -> impl Strategy<Value = Ways> {
    prop_oneof![Just(Ways::ALL), any::<u32>().prop_map(Ways::only), any::<u32>().prop_map(Ways::replacing)]
}

fn step() -> impl Strategy<Value = CacheOp> {
    let line = 0_u64..200;
    prop_oneof![
        6 => line.clone().prop_map(CacheOp::Lookup),
        2 => line.clone().prop_map(CacheOp::Peek),
        10 => (line.clone(), 0..4_u8, ways()).prop_map(|(line, class, ways)| CacheOp::Insert(line, class, ways)),
        2 => line.clone().prop_map(CacheOp::Remove),
        2 => (line, any::<bool>()).prop_map(|(line, pinned)| CacheOp::Pin(line, pinned)),
        1 => (0..4_u8).prop_map(CacheOp::Invalidate),
    ]
}

fn agree(cache: &mut Cache<u64>, naive: &mut ReferenceCache, step: CacheOp, stamp: u64) {
    match step {
        CacheOp::Lookup(line) => assert_eq!(cache.lookup(Line(line)).copied(), naive.lookup(line)),
        CacheOp::Peek(line) => {
            let held = naive.find(line).and_then(|way| *way);
            assert_eq!(cache.peek(Line(line)).copied(), held.map(|held| held.state));
            assert_eq!(cache.class_of(Line(line)), held.map(|held| held.class));
        }
        CacheOp::Insert(line, class, ways) => {
            let inserted = cache.insert(Line(line), BulkClass::new(class), stamp, ways);
            let victim = inserted.map(|it| it.victim.map(|victim| (victim.line.0, victim.state)));
            assert_eq!(victim, naive.insert(line, BulkClass::new(class), stamp, ways));
        }
        CacheOp::Remove(line) => {
            let held = naive.find(line).and_then(Option::take);
            assert_eq!(cache.remove(Line(line)), held.map(|held| held.state));
        }
        CacheOp::Pin(line, pinned) => {
            let held = naive.find(line).and_then(Option::as_mut).map(|held| held.pinned = pinned);
            assert_eq!(cache.set_pinned(Line(line), pinned), held.is_some());
        }
        CacheOp::Invalidate(class) => {
            cache.invalidate_class(BulkClass::new(class));
            naive.invalidate_class(BulkClass::new(class));
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
            ReferenceCache { index: SetIndex::new(sets), sets: vec![vec![None; ways as usize]; sets as usize], clock: 0 };
        for (stamp, step) in steps.into_iter().enumerate() {
            agree(&mut cache, &mut naive, step, stamp as u64);
        }
    }
}
