//! Races between messages.

use super::world::{TestBytes, World, broken, client, coherent_store, load, with_and_without_peers};
use crate::client_home::Node;
use crate::nmoesi::ClientState::{E, I, M, N, S};
use crate::nmoesi::{BrokenNmoesi, Message, NmoesiOptions};

const HOST: usize = 2;

/// GPU 0 holds the block exclusively, with or without a written byte. GPU 1 has requested it, and the home's
/// message to GPU 0 is still in flight.
fn asked_of_owner(options: NmoesiOptions, is_written: bool) -> World {
    let mut world = World::new(2, options);
    world.read(0, 0);
    if is_written {
        world.write(0, 0, 1);
    }
    assert_eq!(world.states(), [if is_written { M } else { E }, I, I]);
    world.begin(1, load(0));
    assert!(world.deliver(client(1), Node::Home));
    world
}

/// Number of delivered messages of this kind.
fn count(world: &World, kind: fn(&Message<TestBytes>) -> bool) -> usize {
    world.delivered.iter().filter(|one| kind(&one.message)).count()
}

#[test]
fn an_owner_that_evicted_a_clean_block_refuses_and_memory_supplies() {
    for options in with_and_without_peers() {
        let mut world = asked_of_owner(options, false);
        world.begin_eviction(0);
        world.run();
        assert_eq!((world.found(1, 0), world.reads), (0, 2));
        assert_eq!((world.states(), world.owner()), (vec![I, E, I], Some(1)), "nobody else holds it");
        assert_eq!(count(&world, |message| *message == Message::Refused), usize::from(options.peer_transfer));
        assert_eq!(count(&world, |message| matches!(message, Message::Peer { .. })), 0);
    }
}

#[test]
fn an_owner_replies_during_its_write_back_and_the_bytes_still_count() {
    let mut world = asked_of_owner(NmoesiOptions::default(), true);
    world.begin_eviction(0);
    assert!(!world.deliver(client(0), Node::Home), "what goes back waits for the transaction");
    assert!(world.deliver(Node::Home, client(0)));
    assert!(world.deliver(client(0), client(1)));
    assert_eq!(world.found(1, 0), 1);
    assert_eq!((world.reads, world.memory), (1, TestBytes::default()));
    world.run();
    assert_eq!((world.memory, world.owner()), (TestBytes([1, 0, 0, 0]), None));
    assert_eq!(world.states(), [I, I, I], "the bytes are merged: who shares the block gives it up");
    assert_eq!(world.read(1, 0), 1);
}

#[test]
fn without_peers_the_bytes_being_written_back_are_the_reply() {
    let [_, options] = with_and_without_peers();
    let mut world = asked_of_owner(options, true);
    world.begin_eviction(0);
    world.run();
    assert_eq!((world.found(1, 0), world.memory), (1, TestBytes([1, 0, 0, 0])));
    assert_eq!((world.states(), world.owner()), (vec![I, E, I], Some(1)));
}

/// The host stores 2 to byte 0 while GPU 0's bytes are being written back. Returns memory's contents after the
/// host's eviction.
fn stored_over_a_write_back(options: NmoesiOptions, is_shared: bool) -> (World, TestBytes) {
    let mut world = World::new(2, options);
    if is_shared {
        world.read(1, 0);
    }
    world.write(0, 0, 1);
    world.write(0, 1, 1);
    world.begin_eviction(0);
    world.begin(HOST, coherent_store(0, 2));
    assert!(world.deliver(client(HOST), Node::Home));
    assert!(world.deliver(Node::Home, client(0)));
    if is_shared {
        assert!(world.deliver(Node::Home, client(1)));
        assert!(world.deliver(client(1), Node::Home));
    }
    // The reply overtakes the write-back.
    let at = world.in_flight.iter().position(|one| matches!(one.message, Message::Bytes { .. })).unwrap();
    let answer = world.in_flight.remove(at).unwrap();
    world.in_flight.push_front(answer);
    assert!(world.deliver(client(0), Node::Home));
    assert!(world.deliver(Node::Home, client(HOST)));
    assert_eq!(world.states(), [I, I, M]);
    world.begin_eviction(HOST);
    assert!(world.deliver(client(HOST), Node::Home));
    let memory = world.memory;
    world.run();
    (world, memory)
}

#[test]
fn a_write_back_counts_for_nothing_after_the_block_was_taken() {
    for options in with_and_without_peers() {
        for is_shared in [false, true] {
            let (world, before) = stored_over_a_write_back(options, is_shared);
            assert_eq!((before, world.memory), (TestBytes([2, 1, 0, 0]), TestBytes([2, 1, 0, 0])));
            assert_eq!((world.states(), world.owner()), (vec![I, I, I], None));
        }
    }
    let (world, before) = stored_over_a_write_back(broken(BrokenNmoesi::StaleWriteBackCounts), true);
    assert_eq!((before, world.memory), (TestBytes([2, 1, 0, 0]), TestBytes([1, 1, 0, 0])));
}

#[test]
fn a_release_waits_until_no_copy_lacks_the_bytes_that_were_taken() {
    let rules = [(NmoesiOptions::default(), true), (broken(BrokenNmoesi::GivenNotAwaited), false)];
    for (options, waits) in rules {
        let mut world = World::new(2, options);
        world.read(1, 0);
        world.write(0, 0, 1);
        assert_eq!(world.states(), [N, S, I]);
        // The host takes the block, and GPU 0 is the first to receive the message.
        world.begin(HOST, coherent_store(1, 2));
        assert!(world.deliver(client(HOST), Node::Home));
        assert!(world.deliver(Node::Home, client(0)));
        assert!(world.deliver(client(0), Node::Home));
        assert_eq!((world.states(), world.owes(0)), (vec![I, S, I], waits), "GPU 1 has its old copy still");
        world.run();
        assert_eq!((world.states(), world.owes(0)), (vec![I, I, M], false));
        assert_eq!(world.read(HOST, 0), 1);
    }
}

/// A world in which GPU 0 has sent its block to GPU 1; before it arrives, the host takes the block and stores 2.
fn overtaken(options: NmoesiOptions) -> World {
    let mut world = asked_of_owner(options, true);
    assert!(world.deliver(Node::Home, client(0)));
    assert!(world.deliver(client(0), Node::Home));
    world.begin(HOST, coherent_store(0, 2));
    assert!(world.deliver(client(HOST), Node::Home));
    for gpu in [0, 1] {
        assert!(world.deliver(Node::Home, client(gpu)));
        assert!(world.deliver(client(gpu), Node::Home));
    }
    assert!(world.deliver(Node::Home, client(HOST)));
    assert_eq!(world.states(), [I, I, M]);
    world.run();
    world
}

#[test]
fn a_peer_block_taken_away_in_flight_is_requested_again_from_the_home() {
    let mut world = overtaken(NmoesiOptions::default());
    assert_eq!(world.found(1, 0), 2);
    assert_eq!(count(&world, |message| matches!(message, Message::Peer { .. })), 1, "no peer is asked twice");
    assert_eq!(world.states(), [I, E, I]);
    assert_eq!(world.read(HOST, 0), 2);
    assert_eq!(world.states(), [I, I, E], "a load of the host takes the block from its sharers");
    let world = overtaken(broken(BrokenNmoesi::PeerOvertakenInstalls));
    assert_eq!((world.found(1, 0), world.states()), (1, vec![I, S, M]));
}

#[test]
fn a_client_that_loses_its_block_while_requesting_gets_the_whole_block() {
    for options in with_and_without_peers() {
        let mut world = World::new(2, options);
        world.read(0, 0);
        world.read(1, 0);
        world.begin(0, coherent_store(0, 1));
        world.begin(1, coherent_store(1, 2));
        assert!(world.deliver(client(1), Node::Home));
        world.run();
        assert_eq!((world.read(0, 1), world.states()), (2, vec![M, I, I]));
    }
}
