//! Results, bytes by closed forms, and trees.

use super::tree::{Neighbours, neighbours};
use crate::find;
use tombolo_types::Semantics;
use tombolo_types::stream::{CtaStream, Op, Program};
use tombolo_workload::bench::{Mode, Request, record};
use tombolo_workload::record::{RecordOptions, Recording};
use tombolo_workload::scale::Scale;

/// Bytes of the larger of a rank's input and output: whole lines for each of 16 ranks.
const BYTES: u64 = 16 * 128 * 3;

/// An operation by an algorithm, and the bytes that a rank sends and receives in it, if all ranks have as many.
struct Form {
    name: &'static str,
    algorithm: Option<&'static str>,
    /// By number of ranks: the numerator of a fraction of the buffer whose denominator is the number of ranks.
    share: fn(u64) -> u64,
}

const FORMS: &[Form] = &[
    Form { name: "all-reduce", algorithm: Some("ring"), share: |n| 2 * (n - 1) },
    Form { name: "all-reduce", algorithm: Some("one-shot"), share: |n| (n - 1) * n },
    Form { name: "all-reduce", algorithm: Some("two-shot"), share: |n| 2 * (n - 1) },
    Form { name: "reduce-scatter", algorithm: Some("ring"), share: |n| n - 1 },
    Form { name: "reduce-scatter", algorithm: Some("direct"), share: |n| n - 1 },
    Form { name: "all-gather", algorithm: Some("ring"), share: |n| n - 1 },
    Form { name: "all-gather", algorithm: Some("direct"), share: |n| n - 1 },
    Form { name: "all-to-all", algorithm: None, share: |n| n - 1 },
    Form { name: "send-receive", algorithm: None, share: |n| n },
];

fn recorded(name: &str, algorithm: Option<&str>, gpus: u8) -> Recording {
    let workload = find(name).expect("it ships");
    let (bytes, mut given) = (BYTES.to_string(), Vec::new());
    given.extend(algorithm.map(|algorithm| ("algorithm".to_owned(), algorithm.to_owned())));
    for (key, value) in [("bytes", bytes.as_str()), ("ctas", "3"), ("threads", "64"), ("slice", "256")] {
        given.push((key.to_owned(), value.to_owned()));
    }
    let request = Request::new(workload, Scale::FULL, &given, 7).expect("it reads").with_gpus(gpus);
    record(workload, &request, &RecordOptions::default(), Mode::Verify).unwrap_or_else(|error| panic!("{error}"))
}

/// Bytes that weak accesses of each rank's CTAs exchange with memory of each other rank: sent by stores, and received by
/// loads.
fn exchanged(recording: &Recording) -> Vec<Vec<u64>> {
    let kernel = &recording.kernels()[1];
    let ranks = kernel.parts.len();
    let owner = |address: u64| {
        let array = recording.arrays().iter().find(|array| array.addresses().contains(&address)).expect("an array");
        array.name.trim_start_matches(|letter: char| !letter.is_ascii_digit()).parse::<usize>().expect("a rank")
    };
    let line = recording.line_size();
    let mut bytes = vec![vec![0; ranks]; ranks];
    let mut stream = CtaStream::default();
    for cta in 0..kernel.ctas {
        recording.cta(1, cta, &mut stream).expect("it decodes");
        let rank = kernel.parts.partition_point(|first| *first <= cta) - 1;
        for op in &stream.ops {
            let (accesses, order, is_load) = match *op {
                Op::Load { accesses, order, .. } => (accesses, order, true),
                Op::Store { accesses, order, .. } => (accesses, order, false),
                _ => continue,
            };
            if order.order().semantics != Semantics::Weak {
                continue;
            }
            for access in &stream.accesses[accesses.range()] {
                let other = owner(line.address_of(access.line));
                let moved = u64::from(access.mask.grains()) * line.grain();
                let (from, to) = if is_load { (other, rank) } else { (rank, other) };
                if from != to {
                    bytes[from][to] += moved;
                }
            }
        }
    }
    bytes
}

#[test]
fn ranks_send_and_receive_what_the_closed_forms_say() {
    for Form { name, algorithm, share } in FORMS {
        for gpus in [2, 3, 4, 8, 16] {
            // With three ranks the buffer is rounded up.
            let buffer = BYTES.next_multiple_of(128 * u64::from(gpus));
            let is_whole = matches!((*name, *algorithm), ("all-reduce", Some("one-shot")) | ("send-receive", _));
            let buffer = if is_whole { BYTES } else { buffer };
            let n = u64::from(gpus);
            let expected = buffer * share(n) / n;
            let bytes = exchanged(&recorded(name, *algorithm, gpus));
            for rank in 0..usize::from(gpus) {
                let sent: u64 = bytes[rank].iter().sum();
                let received: u64 = bytes.iter().map(|row| row[rank]).sum();
                assert_eq!((sent, received), (expected, expected), "{name} {algorithm:?} of {gpus}, rank {rank}");
            }
        }
    }
}

#[test]
fn a_ring_has_one_way_and_direct_algorithms_have_all() {
    let ways = |name, algorithm| {
        let bytes = exchanged(&recorded(name, Some(algorithm), 4));
        bytes[0].iter().map(|bytes| *bytes > 0).collect::<Vec<_>>()
    };
    assert_eq!(ways("all-reduce", "ring"), [false, true, false, false]);
    assert_eq!(ways("all-gather", "ring"), [false, true, false, false]);
    assert_eq!(ways("all-reduce", "two-shot"), [false, true, true, true]);
    assert_eq!(ways("reduce-scatter", "direct"), [false, true, true, true]);
}

#[test]
fn a_tree_sends_half_of_the_buffer_over_each_edge_both_ways() {
    for gpus in [2, 3, 4, 8, 16] {
        let bytes = exchanged(&recorded("all-reduce", Some("tree"), gpus));
        let half = BYTES / 2;
        for (rank, sent) in bytes.iter().enumerate() {
            let both = [0, 1].map(|tree| neighbours(tree, rank, gpus.into()));
            let edges: usize =
                both.iter().map(|Neighbours { parent, children }| children.len() + usize::from(parent.is_some())).sum();
            assert_eq!(sent.iter().sum::<u64>(), half * edges as u64, "rank {rank} of {gpus}");
            assert!(edges <= 4, "at most twice the buffer");
        }
    }
    let broadcast = exchanged(&recorded("broadcast", None, 4));
    assert_eq!([broadcast[0][1], broadcast[1][2], broadcast[2][3]], [BYTES; 3]);
    assert_eq!(broadcast.iter().flatten().sum::<u64>(), 3 * BYTES);
}

#[test]
fn each_tree_reaches_all_ranks_and_an_inner_rank_is_a_leaf_of_the_other() {
    for ranks in 2..40 {
        for tree in [0, 1] {
            let all: Vec<Neighbours> = (0..ranks).map(|rank| neighbours(tree, rank, ranks)).collect();
            let mut root = 0;
            for (rank, Neighbours { parent, children }) in all.iter().enumerate() {
                assert!(children.len() <= 2, "{ranks} ranks: {rank} has children {children:?}");
                match parent {
                    Some((parent, number)) => assert_eq!(all[*parent].children[*number], rank),
                    None => root += 1,
                }
                let mut at = rank;
                for _ in 0..=ranks.ilog2() {
                    at = all[at].parent.map_or(at, |(parent, _)| parent);
                }
                assert!(all[at].parent.is_none(), "{ranks} ranks: {rank} is far from the root");
            }
            assert_eq!(root, 1, "{ranks} ranks");
        }
        if ranks % 2 == 0 {
            let is_inner = |tree, rank| neighbours(tree, rank, ranks).children.len() == 2;
            assert!((0..ranks).all(|rank| !(is_inner(0, rank) && is_inner(1, rank))), "{ranks} ranks");
        }
    }
}

#[test]
fn every_operation_and_algorithm_has_its_result_on_any_number_of_gpus() {
    let all = FORMS.iter().map(|form| (form.name, form.algorithm));
    for (name, algorithm) in all.chain([("all-reduce", Some("tree")), ("broadcast", None)]) {
        for gpus in [1, 2, 5, 7, 72] {
            recorded(name, algorithm, gpus);
        }
    }
}

#[test]
fn buffers_of_several_lines_a_thread_and_partial_warps_are_summed() {
    let workload = find("all-reduce").expect("it ships");
    for (bytes, threads, slice) in [("200000", "32", "65536"), ("128", "1024", "128"), ("123456", "512", "4096")] {
        for algorithm in ["ring", "tree", "one-shot", "two-shot"] {
            let given =
                [("algorithm", algorithm), ("bytes", bytes), ("ctas", "2"), ("threads", threads), ("slice", slice)];
            let given = given.map(|(key, value)| (key.to_owned(), value.to_owned()));
            let request = Request::new(workload, Scale::FULL, &given, 7).expect("it reads").with_gpus(3);
            record(workload, &request, &RecordOptions::default(), Mode::Verify)
                .unwrap_or_else(|error| panic!("{error}"));
        }
    }
}
