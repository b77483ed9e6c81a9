//! Tests for complete reporting: every adjusted parameter must appear in the recording's notes.

use super::*;
use std::collections::HashSet;
use tombolo_workload::bench::{Mode, Request, record};
use tombolo_workload::parameter::ParameterKind;
use tombolo_workload::record::RecordOptions;
use tombolo_workload::simt::{Backing, Memory};

/// Notes about adjusted parameters in the recording of a workload with the given parameters and scale.
fn adjusted(name: &str, scale: &str, given: &[(&str, &str)]) -> Vec<String> {
    let given: Vec<_> = given.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
    let workload = find(name).unwrap();
    let request = Request::new(workload, scale.parse().unwrap(), &given, 7).unwrap();
    let recording = record(workload, &request, &RecordOptions::default(), Mode::Auto).unwrap();
    assert_eq!(recording.notes().len(), recording.adjusted().len());
    recording.notes().to_vec()
}

#[test]
fn a_parameter_that_is_rounded_says_so() {
    let whole = |of: u32| format!("whole multiples of {of}");
    let parts = "whole parts of 16 KiB, as many for each CTA".to_owned();
    for (name, given, taken, rule) in [
        ("bandwidth", &[("kib", "100"), ("ctas", "3")][..], "kib=100` is taken as 144", parts),
        ("chase", &[("kib", "33"), ("steps", "9")], "kib=33` is taken as 64", "powers of two from 1".to_owned()),
        ("backprop", &[("inputs", "17"), ("hidden", "16")], "inputs=17` is taken as 32", whole(16)),
        ("bitonicsort", &[("elements", "300")], "elements=300` is taken as 512", "powers of two from 128".to_owned()),
        ("fft", &[("elements", "513")], "elements=513` is taken as 1024", whole(512)),
        ("srad", &[("columns", "32"), ("rows", "33")], "rows=33` is taken as 48", whole(16)),
        (
            "gaussian",
            &[("size", "9"), ("steps", "9")],
            "steps=9` is taken as 8",
            "all but one of the unknowns, at most".to_owned(),
        ),
        (
            "pagerank",
            &[("nodes", "90"), ("rows", "91")],
            "rows=91` is taken as 90",
            "as many as nodes, at most".to_owned(),
        ),
        (
            "alexnet-conv2",
            &[("batch", "5"), ("inputs", "2"), ("outputs", "2"), ("side", "9"), ("launches", "4")],
            "launches=4` is taken as 3",
            "equal mini-batches of the images, the last perhaps smaller".to_owned(),
        ),
    ] {
        assert_eq!(adjusted(name, "1", given), [format!("`{taken}: {rule}")], "{name}");
    }
    let scaled = adjusted("fir", "1/4", &[("samples", "2000")]);
    assert_eq!(scaled, ["`samples=2000`, 500 at scale 1/4, is taken as 512: whole multiples of 256"]);
    let small: [(&str, &[(&str, &str)]); 2] =
        [("bandwidth", &[("kib", "96"), ("ctas", "3")]), ("fft", &[("elements", "512")])];
    assert!(small.iter().all(|(name, given)| adjusted(name, "1", given).is_empty()), "what fits is no note");
}

/// Workloads that use every count exactly as given, although several counts lead to equally large arrays. Counts of
/// comd are cells, arrays of euler3d end with a whole CTA, and im2col has equally many places in larger filters at
/// fewer positions. Collectives have a word per message of a CTA: as many for several sizes of messages.
const EXACT: [&str; 9] = [
    "comd",
    "euler3d",
    "im2col",
    "all-reduce",
    "reduce-scatter",
    "all-gather",
    "all-to-all",
    "broadcast",
    "send-receive",
];

/// Every count that a workload adjusts must be reported: the resulting arrays must equal the arrays for the reported
/// value.
#[test]
fn counts_that_lay_out_the_same_arrays_as_others_are_told() {
    let mut silent = Vec::new();
    for workload in list().iter().filter(|workload| !EXACT.contains(&workload.name())) {
        for parameter in workload.parameters() {
            let ParameterKind::Count { low, high } = parameter.kind else { continue };
            let of = |count: u64| {
                let mut request = small::small_with(*workload, parameter.name, count);
                let mut memory = Memory::new(Backing::AddressOnly);
                workload.lay_out(&mut request, &mut memory).ok()?;
                let told = request.adjusted().iter().any(|one| one.parameter == parameter.name);
                Some((memory.arrays().iter().map(|array| array.bytes).collect::<Vec<_>>(), told))
            };
            let own: u64 = small::small(*workload).values.count(parameter.name);
            let many: Vec<_> = (own..own + 8).filter(|count| (low..=high).contains(count)).map(of).collect();
            let sizes = |of: fn(&bool) -> bool| {
                many.iter().flatten().filter(|(_, told)| of(told)).map(|(arrays, _)| arrays.clone()).collect::<Vec<_>>()
            };
            let plain = sizes(|told| !told);
            let moves = many.iter().flatten().any(|(arrays, _)| Some(arrays) != plain.first());
            let distinct: HashSet<_> = plain.iter().collect();
            if moves && distinct.len() < plain.len() {
                silent.push(format!("{} {}", workload.name(), parameter.name));
            }
        }
    }
    assert_eq!(silent, [""; 0]);
}
