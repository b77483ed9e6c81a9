//! Blocks larger than a mask: this crate's own contents and byte sets behave coherently under the same rules, step
//! by step, and the cost of a hit depends only on the named bytes.

mod sparse;
mod world;

use sparse::{LineBits, Sparse, cost};
use std::fmt::Debug;
use tombolo_protocol::client_home::{BlockEvent, BlockRequest, Nodes};
use tombolo_protocol::nmoesi::{ClientState, Nmoesi, NmoesiOptions};
use tombolo_protocol::options::ProtocolOptions;
use tombolo_protocol::{BlockData, ByteSet, Data};
use tombolo_types::{Mask, Scope};
use world::{BYTES, Bytewise, World, random_run};

/// A block that fits into a mask.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Dense([u8; BYTES]);

fn named(mask: Mask) -> impl Iterator<Item = usize> {
    (0..BYTES).filter(move |byte| mask.0 >> byte & 1 != 0)
}

impl Data for Dense {
    type Update = u8;

    fn merge(&mut self, from: Dense, mask: Mask) {
        named(mask).for_each(|byte| self.0[byte] = from.0[byte]);
    }

    fn update(&mut self, add: u8, mask: Mask) -> Dense {
        let before = *self;
        named(mask).for_each(|byte| self.0[byte] = self.0[byte].wrapping_add(add));
        before
    }
}

impl Bytewise for Dense {
    fn set(bytes: &[usize]) -> Mask {
        Mask(bytes.iter().fold(0, |mask, byte| mask | 1 << byte))
    }

    fn bytes(set: &Mask) -> Vec<usize> {
        named(*set).collect()
    }

    fn filled(value: u8) -> Dense {
        Dense([value; BYTES])
    }

    fn byte(&self, byte: usize) -> u8 {
        self.0[byte]
    }
}

type Rules = Nmoesi<true>;

fn rules(nmoesi: NmoesiOptions) -> Rules {
    Nmoesi::new(ProtocolOptions { nmoesi, ..ProtocolOptions::default() })
}

/// Sparse contents lose all bytes unrelated to the current message.
#[test]
fn sparse_and_dense_blocks_behave_alike() {
    for (peer_transfer, silent_eviction) in [(true, true), (true, false), (false, true), (false, false)] {
        let rules = rules(NmoesiOptions { peer_transfer, silent_eviction, ..NmoesiOptions::default() });
        for seed in 1..=100 {
            let dense = random_run::<_, Dense>(rules, seed);
            assert_eq!(dense, random_run::<_, Sparse>(rules, seed), "seed {seed}");
        }
    }
}

/// The contract for every byte set type. `one` and `two` overlap, and each has bytes missing from the other.
fn check_byte_set_contract<S: ByteSet>(one: &S, two: &S) {
    let (both, only_one, only_two) = (one.within(two), one.without(two), two.without(one));
    assert!(S::default().is_empty() && ![&both, &only_one, &only_two].into_iter().any(S::is_empty));
    assert_eq!(both, two.within(one));
    assert!(only_one.within(two).is_empty());
    let (mut all, mut sum) = (one.clone(), S::default());
    all.add(two);
    [&only_two, &both, &only_one].into_iter().for_each(|part| sum.add(part));
    assert_eq!(all, sum, "the parts make up the whole, and equal sets are equal however they came about");
    all.remove(two);
    assert_eq!(all, only_one);
    all.remove(one);
    assert_eq!(all, S::default());
}

#[test]
fn byte_sets_satisfy_their_contract() {
    let (one, two) = ([0, 1, 2, 9], [1, 2, 3, 20]);
    check_byte_set_contract(&Dense::set(&one), &Dense::set(&two));
    check_byte_set_contract(&Sparse::set(&one), &Sparse::set(&two));
}

/// The contract for every contents type: operations affect only the bytes in the given set.
fn check_contents_contract<B: Bytewise + BlockData<Update = u8>>() {
    let (set, mut block) = (B::set(&[1, 5]), B::filled(7));
    block.merge(&B::filled(9).only(&set), &set);
    assert_eq!([0, 1, 5, 6].map(|byte| block.byte(byte)), [7, 9, 9, 7]);
    let before = block.update(3, &B::set(&[0, 1]));
    assert_eq!([0, 1].map(|byte| before.byte(byte)), [7, 9]);
    assert_eq!([0, 1, 5].map(|byte| block.byte(byte)), [10, 12, 9]);
}

#[test]
fn contents_satisfy_their_contract() {
    check_contents_contract::<Dense>();
    check_contents_contract::<Sparse>();
}

/// Number of lines written by a client. Source: a block with 16 KB has 256 lines with 64 B each.
const WRITTEN: u16 = 256;

/// A client that has written its whole block, with half the lines in the L2 only.
fn written_all_over() -> World<Rules, Sparse> {
    let mut world = World::new(rules(NmoesiOptions::default()), 1, Sparse::of_lines(WRITTEN));
    for line in 0..WRITTEN {
        let (set, data) = (LineBits::of_line(line), Sparse::of_line(line, 1));
        world.ask(0, BlockRequest::Write { set, scope: Scope::Cta, data });
        if line % 2 == 0 {
            world.at_client(0, BlockEvent::EvictAbove(LineBits::of_line(line)));
        }
    }
    assert_eq!(Rules::state(world.slot(0)), Some(ClientState::M));
    assert!(Rules::is_dirty(world.slot(0)));
    world
}

/// Maximum number of lines and bytes inspected by a single-line step. Source: assumed; some ten operations on a
/// four-byte line.
const FRUGAL: u64 = 60;

#[test]
fn the_cost_of_a_hit_depends_only_on_the_bytes_it_names() {
    let mut world = written_all_over();
    for line in [100, 101] {
        let set = || LineBits::of_line(line);
        let (scope, data) = (Scope::Cta, Sparse::of_line(line, 2));
        let events = [
            BlockEvent::Request(BlockRequest::Read { set: set(), scope }),
            BlockEvent::Request(BlockRequest::Write { set: set(), scope, data }),
            BlockEvent::Request(BlockRequest::Atomic { set: set(), scope: Scope::Sys, update: 1, returns: true }),
            BlockEvent::EvictAbove(set()),
        ];
        for event in events {
            let (before, what) = (cost(), format!("{event:?}"));
            world.at_client(0, event);
            let took = cost() - before;
            assert!(took < FRUGAL, "{what} looks at {took} lines and bytes of {WRITTEN} lines");
        }
    }
}
