//! Merging of bytes from several clients into a single block.

use super::world::{BYTES, TestBytes, World, broken, client, coherent_load, with_and_without_peers};
use crate::client_home::Node;
use crate::nmoesi::BrokenNmoesi;
use crate::nmoesi::ClientState::{E, I, M, N, O, S};
use crate::nmoesi::NmoesiOptions;

/// Two GPUs and a host.
fn world(options: NmoesiOptions) -> World {
    World::new(2, options)
}

/// A world in which a kernel on GPU 0 has written 1 to byte 0, and then a kernel on GPU 1 has written 2 to byte
/// `second`.
fn two_kernels(options: NmoesiOptions, second: usize) -> World {
    let mut world = world(options);
    world.write(0, 0, 1);
    world.end_kernel();
    world.launch();
    world.write(1, second, 2);
    world.end_kernel();
    world
}

/// The host's view of a byte written by two kernels, if the bytes from GPU `first` arrive first.
fn later_of_two(options: NmoesiOptions, first: usize) -> u8 {
    let mut world = two_kernels(options, 0);
    let host = world.host();
    world.begin(host, coherent_load(0));
    world.deliver(client(host), Node::Home);
    for gpu in [first, 1 - first] {
        world.deliver(Node::Home, client(gpu));
    }
    world.run();
    world.found(host, 0)
}

#[test]
fn the_later_of_two_kernels_wins_whichever_bytes_arrive_first() {
    assert_eq!(two_kernels(NmoesiOptions::default(), 0).states(), [O, N, I]);
    for first in [0, 1] {
        for options in with_and_without_peers() {
            assert_eq!(later_of_two(options, first), 2);
        }
    }
    assert_eq!(later_of_two(broken(BrokenNmoesi::OwnerMergedLast), 1), 1);
}

#[test]
fn a_word_of_a_gpu_joins_a_block_of_the_host() {
    for options in with_and_without_peers() {
        let mut world = world(options);
        let host = world.host();
        world.write_all(host, 7);
        world.launch();
        assert_eq!(world.read(0, 0), 7);
        world.write(0, 1, 9);
        let of_host = if options.peer_transfer { O } else { S };
        assert_eq!(world.states(), [N, I, of_host]);
        world.end_kernel();
        assert_eq!([0, 1, 2, 3].map(|byte| world.read(host, byte)), [7, 9, 7, 7]);
        world.evict(host);
        assert_eq!(world.memory, TestBytes([7, 9, 7, 7]));
    }
}

/// A world in which kernels on GPU 0, then on GPU 1, have each written the whole block. GPU `first` merges first.
fn two_of_a_whole_block(options: NmoesiOptions, first: usize) -> World {
    let mut world = world(options);
    world.write_all(0, 1);
    world.end_kernel();
    world.launch();
    world.write_all(1, 2);
    world.end_kernel();
    world.merge(first);
    world.launch();
    world
}

#[test]
fn after_two_writers_of_a_whole_block_no_client_keeps_old_bytes() {
    for first in [0, 1] {
        for options in with_and_without_peers() {
            let mut world = two_of_a_whole_block(options, first);
            assert_eq!(world.memory, TestBytes([2; BYTES]));
            for gpu in [0, 1] {
                assert_eq!([0, 1, 2, 3].map(|byte| world.read(gpu, byte)), [2; BYTES]);
            }
        }
    }
    let mut world = two_of_a_whole_block(broken(BrokenNmoesi::MergeKeepsOwnCopy), 0);
    assert_eq!(world.read(0, 0), 1);
}

#[test]
fn a_merging_client_keeps_its_copy_only_if_no_other_client_had_bytes() {
    let mut world = two_of_a_whole_block(NmoesiOptions::default(), 0);
    assert_eq!(world.states(), [I, I, I]);
    world.read(0, 0);
    world.evict(0);
    world.read(1, 0);
    world.read(0, 0);
    assert_eq!(world.states(), [S, S, I]);
    world.write(1, 0, 3);
    world.launch();
    assert_eq!(world.states(), [I, S, I]);
}

#[test]
fn older_bytes_of_an_owner_are_merged_with_newer_bytes_of_a_sharer() {
    let merges: [fn(&mut World); 4] = [
        |world| world.launch(),
        |world| world.release(1),
        |world| world.evict(1),
        |world| world.ask(world.host(), coherent_load(1)),
    ];
    for merge in merges {
        for options in with_and_without_peers() {
            let mut world = two_kernels(options, 1);
            let of_owner = if options.peer_transfer { O } else { S };
            assert_eq!(world.states(), [of_owner, N, I]);
            merge(&mut world);
            assert_eq!(world.memory, TestBytes([1, 2, 0, 0]));
            for reader in [1, 0, world.host()] {
                assert_eq!([0, 1].map(|byte| world.read(reader, byte)), [1, 2]);
            }
        }
    }
}

/// Kernels on both GPUs have each written a byte in a block; the host has read another block; a kernel is launched.
/// Returns GPU 0's view of GPU 1's byte.
fn across_host_code(options: NmoesiOptions) -> u8 {
    let (mut written, mut other) = (world(options), world(options));
    written.write(0, 0, 1);
    written.write(1, 1, 2);
    written.end_kernel();
    let before = written.delivered.len();
    let host = other.host();
    other.read(host, 0);
    assert_eq!(written.delivered.len(), before, "before host code nothing is merged");
    written.launch();
    other.launch();
    assert_eq!(other.states(), [I, I, E], "what a client holds alone stays");
    written.read(0, 1)
}

#[test]
fn a_launch_owes_the_merge_however_much_host_code_is_before_it() {
    for options in with_and_without_peers() {
        assert_eq!(across_host_code(options), 2);
    }
    assert_eq!(across_host_code(broken(BrokenNmoesi::LaunchSkipsMerge)), 0);
}

#[test]
fn a_client_that_becomes_alone_in_n_keeps_its_own_bytes_on_top() {
    for options in with_and_without_peers() {
        let mut world = two_kernels(options, 0);
        world.write(0, 1, 3);
        let others = if options.peer_transfer { O } else { N };
        assert_eq!(world.states(), [others, N, I]);
        world.ask(1, coherent_load(1));
        assert_eq!((world.found(1, 1), world.read(1, 0)), (3, 2));
        assert_eq!(world.states(), [I, M, I]);
    }
    let mut world = two_kernels(broken(BrokenNmoesi::OthersOverOwn), 0);
    world.ask(1, coherent_load(1));
    assert_eq!(world.read(1, 0), 1);
}
