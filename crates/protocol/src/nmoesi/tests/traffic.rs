//! Traffic on the host's links, tested without a notion of time.

use super::world::{TestBytes, World, coherent_store, load, store, with_and_without_peers};
use crate::nmoesi::ClientState::{E, I, M, N, O, S};
use crate::nmoesi::{KernelEnd, Message, NmoesiOptions};

#[test]
fn peers_save_one_memory_read_for_a_clean_block() {
    for gpus in [2, 3, 4] {
        for options in with_and_without_peers() {
            let mut world = World::new(gpus, options);
            for gpu in 0..gpus {
                assert_eq!(world.read(gpu, 0), 0);
            }
            // The second client's copy comes from the first, whose ownership ends: a clean block then has no owner.
            assert_eq!(world.reads, if options.peer_transfer { gpus - 1 } else { gpus });
            assert_eq!(world.owner(), None);
            assert_eq!(world.states(), [vec![S; gpus], vec![I]].concat());
            assert_eq!(world.carried(), (0, 0));
        }
    }
}

#[test]
fn peers_save_all_memory_reads_for_a_written_block() {
    for gpus in [2, 3, 4] {
        for options in with_and_without_peers() {
            let mut world = World::new(gpus, options);
            world.write(0, 0, 1);
            assert_eq!((world.reads, world.owner(), world.states()[0]), (1, Some(0), M), "a store fetches its block");
            for gpu in 1..gpus {
                assert_eq!(world.read(gpu, 0), 1);
            }
            let (reads, carried, owner) =
                if options.peer_transfer { (1, (0, 0), Some(0)) } else { (gpus, (1, 1), None) };
            assert_eq!((world.reads, world.carried(), world.owner()), (reads, carried, owner));
        }
    }
}

#[test]
fn a_kernel_that_writes_alone_moves_nothing_at_its_end() {
    for options in with_and_without_peers() {
        let mut world = World::new(2, options);
        world.write(0, 0, 1);
        let before = world.delivered.len();
        world.release(0);
        world.end_kernel();
        world.launch();
        assert_eq!((world.delivered.len(), world.states()), (before, vec![M, I, I]));
    }
}

#[test]
fn with_flush_all_the_end_of_a_kernel_writes_everything_back() {
    let options = NmoesiOptions { kernel_end: KernelEnd::FlushAll, ..NmoesiOptions::default() };
    let mut world = World::new(2, options);
    world.write(0, 0, 1);
    world.end_kernel();
    assert_eq!((world.carried(), world.memory), ((1, 1), TestBytes([1, 0, 0, 0])));
    assert_eq!(world.states(), [S, I, I]);
    let before = world.delivered.len();
    world.launch();
    assert_eq!(world.delivered.len(), before);
}

/// Builds a machine with four GPUs that have each written their own byte in a shared block.
fn alternate_bytes(options: NmoesiOptions) -> World {
    let mut world = World::new(4, options);
    for gpu in 0..4 {
        world.write(gpu, gpu, gpu as u8 + 1);
    }
    world.end_kernel();
    world
}

#[test]
fn alternate_bytes_of_several_gpus_merge_without_loss() {
    for options in with_and_without_peers() {
        // Without peers the first writer has nothing left: its byte went down at the second client's request.
        for first in usize::from(!options.peer_transfer)..4 {
            let mut world = alternate_bytes(options);
            world.merge(first);
            assert_eq!((world.memory, world.carried()), (TestBytes([1, 2, 3, 4]), (4, 4)), "each byte goes once");
        }
        let mut world = alternate_bytes(options);
        world.launch();
        // All clients merge at once here. A client whose bytes wait for the home is asked for them too, and sends
        // them twice.
        let twice = if options.peer_transfer { 3 } else { 2 };
        assert_eq!(world.carried(), (4 + twice, 4 + twice));
        for reader in 0..4 {
            assert_eq!([0, 1, 2, 3].map(|byte| world.read(reader, byte)), [1, 2, 3, 4]);
        }
    }
}

#[test]
fn the_host_fetches_bytes_once_from_each_client_that_has_some() {
    for options in with_and_without_peers() {
        let mut world = World::new(4, options);
        let host = world.host();
        world.write(0, 0, 1);
        world.write(1, 1, 2);
        world.read(2, 0);
        let of_owner = if options.peer_transfer { O } else { S };
        assert_eq!(world.states(), [of_owner, N, S, I, I]);
        world.end_kernel();
        let (before, _) = world.carried();
        assert_eq!(world.read(host, 0), 1);
        let holders = if options.peer_transfer { 2 } else { 1 };
        assert_eq!(world.carried().0 - before, holders);
        assert_eq!(world.states(), [I, I, I, I, E]);
        let before = world.delivered.len();
        assert_eq!([1, 2, 3].map(|byte| world.read(host, byte)), [2, 0, 0]);
        assert_eq!(world.delivered.len(), before, "of its other words the host has all");
    }
}

#[test]
fn a_host_store_takes_the_block_from_every_client() {
    for options in with_and_without_peers() {
        let mut world = World::new(3, options);
        let host = world.host();
        world.write(0, 0, 1);
        world.write(1, 1, 2);
        world.read(2, 0);
        world.ask(host, coherent_store(2, 3));
        assert_eq!((world.states(), world.owner()), (vec![I, I, I, M], Some(host)));
        let probes = world.delivered.iter().filter(|one| one.message == Message::Take).count();
        assert_eq!(probes, 3);
        assert_eq!([0, 1, 2].map(|byte| world.read(2, byte)), [1, 2, 3]);
    }
}

#[test]
fn no_reader_gets_exclusive_access_to_a_held_block() {
    for options in with_and_without_peers() {
        for writer in [false, true] {
            let mut world = World::new(3, options);
            for gpu in 0..3 {
                world.ask(gpu, if writer { store(0, 1) } else { load(0) });
            }
            let exclusive = |message: &_| matches!(message, Message::Exclusive { .. } | Message::Alone { .. });
            assert_eq!(world.delivered.iter().filter(|one| exclusive(&one.message)).count(), 1);
        }
    }
}

#[test]
fn a_client_named_after_a_silent_eviction_is_not_probed_by_its_own_request() {
    let mut world = World::new(2, NmoesiOptions::default());
    world.read(0, 0);
    world.evict(0);
    assert_eq!(world.owner(), Some(0));
    let before = world.delivered.len();
    world.read(0, 0);
    assert_eq!(world.delivered.len() - before, 2, "a request and the block");
    assert_eq!(world.states(), [E, I, I]);
}
