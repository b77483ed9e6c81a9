//! Tests for the distribution of partitions among threads.

use std::collections::BTreeSet;
use std::thread::{self, ThreadId};
use tombolo_engine::{Engine, Event, Lookahead, Outbox, Partition, ThreadPool};
use tombolo_types::{ComponentId, Ps};

const LOOKAHEAD: Ps = Ps(1_000);

/// Records the thread of each event, and sends itself another message, a given number of times.
#[derive(Default)]
struct Witness(Vec<ThreadId>);

impl Partition for Witness {
    type Message = u32;
    fn handle(&mut self, event: &Event<u32>, out: &mut Outbox<'_, u32>) {
        self.0.push(thread::current().id());
        if let Some(left) = event.message.checked_sub(1) {
            out.send(event.time + LOOKAHEAD, event.to, event.to, left);
        }
    }
}

/// Events per busy partition and window: above the cost for a barrier.
const CHAINS: u32 = 32;

/// Threads for the first and for the last event in each of four partitions on two threads. The `busy` partitions have
/// work for two thousand times the least lookahead; the run must take `windows` windows.
fn witnesses(busy: [u16; 2], lookahead: Lookahead, windows: u64) -> Vec<Option<(ThreadId, ThreadId)>> {
    let mut engine =
        Engine::new((0..4).map(|_| Witness::default()).collect(), vec![0, 1, 2, 3], lookahead).ignoring_load();
    for component in busy.map(ComponentId) {
        (0..CHAINS).for_each(|_| engine.schedule(Ps::ZERO, component, component, 2_000));
    }
    assert_eq!(engine.run(2).windows, windows);
    let ends = |witness: &Witness| Some((*witness.0.first()?, *witness.0.last()?));
    engine.partitions().iter().map(ends).collect()
}

#[test]
fn partitions_of_one_thread_part_when_they_alone_are_busy() {
    let [Some(first), None, Some(second), None] = witnesses([0, 2], Lookahead::even(4, LOOKAHEAD), 2_001)[..] else {
        panic!("two are busy")
    };
    assert_eq!(first.0, second.0);
    assert_ne!(first.1, second.1);
}

#[test]
fn partitions_stay_on_their_threads_while_these_are_equally_busy() {
    let [Some(first), None, None, Some(last)] = witnesses([0, 3], Lookahead::even(4, LOOKAHEAD), 2_001)[..] else {
        panic!("two are busy")
    };
    assert_eq!((first.0, last.0), (first.1, last.1));
    assert_ne!(first.0, last.0);
}

/// Two pairs of neighbours, with a larger distance between the pairs.
fn pairs() -> Lookahead {
    Lookahead { groups: vec![0, 0, 1, 1], within: LOOKAHEAD, between: Ps(3_000) }
}

#[test]
fn a_group_parts_where_it_alone_is_busy_and_only_then() {
    // Windows are long until the review after 512 windows, and short afterwards.
    let [Some(first), Some(second), None, None] = witnesses([0, 1], pairs(), 512 + 465)[..] else {
        panic!("two are busy")
    };
    assert_eq!(first.0, second.0);
    assert_ne!(first.1, second.1);
    let [Some(first), None, Some(last), None] = witnesses([0, 2], pairs(), 667)[..] else { panic!("two are busy") };
    assert_eq!((first.0, last.0), (first.1, last.1));
    assert_ne!(first.0, last.0);
}

/// An engine with four partitions, each busy for two thousand times the lookahead if its entry in `chains` is above
/// zero.
fn busy(chains: [u32; 4]) -> Engine<Witness> {
    let lookahead = Lookahead::even(4, LOOKAHEAD);
    let mut engine =
        Engine::new((0..4).map(|_| Witness::default()).collect(), vec![0, 1, 2, 3], lookahead).ignoring_load();
    for (component, chains) in (0..).map(ComponentId).zip(chains) {
        (0..chains).for_each(|_| engine.schedule(Ps::ZERO, component, component, 2_000));
    }
    engine
}

#[test]
fn a_thread_that_cannot_help_is_given_back() {
    for (chains, threads) in [([CHAINS, 0, 0, 0], 1), ([CHAINS, CHAINS, 1, 0], 2), ([1, 1, 1, 1], 1)] {
        let stats = busy(chains).run(4);
        assert_eq!((stats.threads, stats.windows), (threads, 2_001), "{chains:?}");
        assert_eq!(stats.events, 2_001 * u64::from(chains.iter().sum::<u32>()), "{chains:?}");
    }
}

#[test]
fn spare_threads_join_a_run_and_are_free_again_behind_it() {
    let spare = ThreadPool::new(3);
    let mut engine = busy([CHAINS; 4]);
    let stats = engine.run_beside(&spare);
    assert_eq!((stats.threads, stats.windows, stats.events), (4, 2_001, 4 * 2_001 * u64::from(CHAINS)));
    assert_eq!(spare.count(), 3);
    let last: BTreeSet<_> = engine.partitions().iter().map(|witness| format!("{:?}", witness.0.last())).collect();
    assert_eq!(last.len(), 4, "each partition ended on a thread of its own");
}

#[test]
fn a_run_without_spare_threads_stays_on_its_own() {
    let stats = busy([CHAINS; 4]).run_beside(&ThreadPool::default());
    assert_eq!((stats.threads, stats.windows), (1, 2_001));
}
