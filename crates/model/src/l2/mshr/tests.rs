//! MSHR tests against a plain reference table with queues.

use super::*;
use proptest::prelude::*;
use std::collections::{BTreeMap, VecDeque};

type TestTable = Mshr<u32, u32, u32>;

fn table(entries: u32, merges: u32) -> TestTable {
    Mshr::new(MshrConfig { entries, merges })
}

fn served(table: &mut TestTable, id: EntryId) -> (Vec<u32>, Vec<u32>) {
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
fn a_table_grows_to_its_most_entries_and_finds_them_all() {
    let mut table = table(300, 8);
    let mut held = BTreeMap::new();
    for line in 0..450 {
        let id = table.allocate(Line(line), line as u32).expect("there is room");
        held.insert(line, id);
        // Every third entry is freed before the table grows again.
        if line % 3 == 0 {
            let (waiters, parked) = served(&mut table, held.remove(&line).expect("it is held"));
            assert!(waiters.is_empty() && parked.is_empty());
        }
    }
    assert_eq!((table.used(), table.is_full()), (300, true));
    assert!((0..450).all(|line| table.find(Line(line)) == held.get(&line).copied()));
    assert!(held.iter().all(|(line, id)| *table.get(*id) == *line as u32));
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
struct ReferenceTable {
    lines: BTreeMap<u64, (u32, VecDeque<u32>, VecDeque<u32>)>,
    backlog: VecDeque<u32>,
}

#[derive(Clone, Copy, Debug)]
enum TableOp {
    Request(u64),
    Park(u64),
    Free(u64),
    Wake,
}

/// Test steps on lines that collide often: a small set with many neighbours in the table.
fn step() -> impl Strategy<Value = TableOp> {
    let line = prop_oneof![0..24_u64, (0..24_u64).prop_map(|i| i << 40)];
    prop_oneof![
        6 => line.clone().prop_map(TableOp::Request),
        2 => line.clone().prop_map(TableOp::Park),
        4 => line.prop_map(TableOp::Free),
        1 => Just(TableOp::Wake),
    ]
}

fn agree(table: &mut TestTable, naive: &mut ReferenceTable, config: MshrConfig, step: TableOp, stamp: u32) {
    let full = naive.lines.len() as u32 == config.entries;
    match step {
        TableOp::Request(line) => match (table.find(Line(line)), naive.lines.get_mut(&line)) {
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
        TableOp::Park(line) => {
            if let (Some(id), Some((_, _, parked))) = (table.find(Line(line)), naive.lines.get_mut(&line)) {
                table.park(id, stamp);
                parked.push_back(stamp);
            }
        }
        TableOp::Free(line) => {
            let expected = naive.lines.remove(&line);
            let freed = table.find(Line(line)).map(|id| (*table.get(id), served(table, id)));
            assert_eq!(freed, expected.map(|(payload, waiters, parked)| (payload, (waiters.into(), parked.into()))));
        }
        TableOp::Wake => {
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
        let (mut table, mut naive) = (TestTable::new(config), ReferenceTable::default());
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
