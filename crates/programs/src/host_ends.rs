//! Tests for host accesses before the first command and after the last.

use super::small::small;
use super::*;
use std::ops::Range;
use tombolo_types::HostPhase;
use tombolo_types::stream::{Command, Program};
use tombolo_workload::bench::{Mode, Workload, record};
use tombolo_workload::record::{RecordOptions, Recording};

fn recorded(workload: &dyn Workload) -> Recording {
    record(workload, &small(workload), &RecordOptions::default(), Mode::Auto).unwrap()
}

/// Array names for the ranges, plus the byte count if a range does not cover the whole array.
fn told(recording: &Recording, ranges: &[Range<u64>]) -> Vec<String> {
    let array = |range: &Range<u64>| {
        let array = recording.arrays().iter().find(|array| array.addresses().contains(&range.start)).unwrap();
        assert!(range.end <= array.addresses().end, "{}: {range:?} leaves {}", recording.name(), array.name);
        if *range == array.addresses() {
            array.name.clone()
        } else {
            format!("{} {:?}", array.name, range.end - range.start)
        }
    };
    ranges.iter().map(array).collect()
}

#[test]
fn a_host_sets_inputs_and_reads_what_it_copies_back() {
    let of = |name: &str| {
        let recording = recorded(find(name).unwrap());
        let HostPhase { reads, writes } = recording.setup();
        (told(&recording, reads), told(&recording, writes), told(&recording, &recording.results().reads))
    };
    let texts = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    for (name, written, read) in [
        ("pathfinder", &["wall", "result0"][..], &["result1"][..]),
        ("fastwalshtransform", &["values"], &["values"]),
        ("simpleconvolution", &["input", "mask"], &["output"]),
        // The host sets only the borders, and copies the remaining zeros with them.
        ("nw", &["reference", "matrix"], &["matrix"]),
        // The device clears its norms.
        ("jacobi", &["a", "a_new"], &["a_new", "l2_norm0", "l2_norm1", "l2_norm2", "l2_norm3"]),
        // Phases write the source's level and the flag before launches, and a phase after the last launch reads the
        // flag.
        ("bfs", &["row", "first", "degree", "target"], &["level"]),
        ("hacc", &[], &[]),
        // The program copies within device memory.
        ("memcopy", &["from"], &[]),
    ] {
        assert_eq!(of(name), (vec![], texts(written), texts(read)), "{name}");
    }
    assert_eq!(of("comd").0.len(), 8, "it reads how many atoms a cell has");
}

/// True if a phase after the last launch reads the data copied back: the program's results then omit this data.
fn reads_behind(recording: &Recording) -> bool {
    let behind = recording.commands().rsplit(|command| command.kernel().is_some()).next().unwrap();
    behind.iter().any(|command| match command {
        Command::Host { phase } => !recording.host_phases()[*phase as usize].reads.is_empty(),
        Command::Launch { .. } | Command::Copy { .. } | Command::Barrier => false,
    })
}

/// Panics if a host sets up nothing, reads back nothing, or accesses memory outside arrays. A single known program is
/// exempt from each rule.
pub(super) fn assert_sets_something_up_and_reads_something_back(recording: &Recording) {
    let (setup, results) = (recording.setup(), recording.results());
    told(recording, &setup.reads);
    assert!(results.writes.is_empty(), "{}", recording.name());
    let is_told_by_phases = recording.name() == "hacc";
    assert_eq!(told(recording, &setup.writes).is_empty(), is_told_by_phases, "{}", recording.name());
    let reads_nothing = told(recording, &results.reads).is_empty() && !reads_behind(recording);
    assert_eq!(reads_nothing, recording.name() == "memcopy", "{}", recording.name());
}
