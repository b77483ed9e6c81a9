//! Tests for reads, writes and launches in the programs at the sizes in UMH's Table I, derived by arithmetic from the
//! sources.

use crate::find;
use crate::prelude::*;
use crate::small::small;
use std::collections::BTreeSet;
use std::ops::Range;
use tombolo_types::stream::{Command, CtaStream, KernelInfo, Op, Program};
use tombolo_workload::bench::{Mode, footprint, record};
use tombolo_workload::record::RecordOptions;
use tombolo_workload::scale::Scale;

/// Expected values for a program: bytes in read-only arrays, bytes in written arrays, and all launches in order, each
/// as `times x kernel, CTAs x threads`.
type ExpectedProgram = (&'static str, u64, u64, &'static [&'static str]);

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// Expected values for all programs. Source: host programs and kernels in AMD APP SDK 2.5 at the sizes in UMH, Table I.
const ROWS: [ExpectedProgram; 7] = [
    ("amdapp-floydwarshall", 0, 512 * KIB, &["256 x floyd-row, 256 x 256"]),
    ("amdapp-matrixmultiplication", 8 * MIB, 4 * MIB, &["1 x product-staged, 1024 x 64"]),
    (
        "radixsort",
        16 * MIB,
        16 * MIB,
        &[
            "1 x histogram, 128 x 64",
            "1 x permute, 128 x 64",
            "1 x histogram, 128 x 64",
            "1 x permute, 128 x 64",
            "1 x histogram, 128 x 64",
            "1 x permute, 128 x 64",
            "1 x histogram, 128 x 64",
            "1 x permute, 128 x 64",
        ],
    ),
    ("reduction", 8 * MIB, 32 * KIB, &["1 x reduce, 2048 x 256"]),
    // Two levels with 8192 and 32 sums, and the scans of both: 8192 and 32.
    (
        "scanlargearrays",
        8 * MIB,
        8 * MIB + 64 * KIB + 256,
        &[
            "1 x scan-blocks, 8192 x 128",
            "1 x scan-blocks, 32 x 128",
            "1 x scan-sums, 1 x 16",
            "1 x add-sums, 32 x 256",
            "1 x add-sums, 8192 x 256",
        ],
    ),
    ("amdapp-simpleconvolution", MIB + KIB, MIB, &["1 x convolution, 1024 x 256"]),
    ("sobelfilter", 3 * MIB, 3 * MIB, &["3 x sobel, 3072 x 256"]),
];

fn at_table_one(workload: &dyn Workload) -> Request {
    Request::new(workload, Scale::FULL, &[], 7).unwrap()
}

/// Bytes in arrays that the kernels only read, and bytes in written arrays, at Table I's size. A small instance's
/// kernels access the corresponding arrays.
fn bytes(workload: &dyn Workload) -> (u64, u64) {
    let recording = record(workload, &small(workload), &RecordOptions::default(), Mode::Auto).unwrap();
    let (mut loaded, mut stored) = (BTreeSet::new(), BTreeSet::new());
    let mut stream = CtaStream::default();
    for (kernel, info) in (0..).zip(recording.kernels()) {
        for cta in 0..info.ctas {
            recording.cta(kernel, cta, &mut stream).unwrap();
            for op in &stream.ops {
                let (touched, accesses) = match op {
                    Op::Load { accesses, .. } => (&mut loaded, *accesses),
                    Op::Store { accesses, .. } => (&mut stored, *accesses),
                    _ => continue,
                };
                touched.extend(stream.accesses[accesses.range()].iter().map(|access| {
                    let address = recording.line_size().address_of(access.line);
                    recording.arrays().partition_point(|array| array.base <= address) - 1
                }));
            }
        }
    }
    let arrays = footprint(workload, &at_table_one(workload)).unwrap();
    let sum = |indices: &mut dyn Iterator<Item = &usize>| indices.map(|index| arrays[*index].bytes).sum();
    (sum(&mut loaded.difference(&stored)), sum(&mut stored.iter()))
}

/// The launches at Table I's size; no launch depends on data.
fn launches(workload: &dyn Workload) -> Vec<String> {
    let mut memory = Memory::new(Backing::AddressOnly);
    let instance = workload.lay_out(&mut at_table_one(workload), &mut memory).unwrap();
    let options = RecordOptions::default();
    let mut host = Host::planning(&memory, &options);
    instance.run(&mut host).unwrap();
    let plan = host.into_plan();
    let told = |run: &[KernelInfo]| {
        let KernelInfo { name, ctas, threads_per_cta, .. } = &run[0];
        format!("{} x {name}, {ctas} x {threads_per_cta}", run.len())
    };
    plan.chunk_by(|one, next| one == next).map(told).collect()
}

/// Arrays read and written by the host in each phase, always completely.
fn phases(name: &str) -> Vec<String> {
    let workload = find(name).unwrap();
    let recording = record(workload, &small(workload), &RecordOptions::default(), Mode::Auto).unwrap();
    let array = |range: &Range<u64>| {
        let whole = recording.arrays().iter().find(|array| array.addresses() == *range);
        whole.expect("a whole array").name.clone()
    };
    let names = |ranges: &[Range<u64>]| ranges.iter().map(array).collect::<Vec<_>>().join(" ");
    let told = |command: &Command| match command {
        Command::Host { phase } => {
            let phase = &recording.host_phases()[*phase as usize];
            Some(format!("reads {} writes {}", names(&phase.reads), names(&phase.writes)))
        }
        Command::Launch { .. } | Command::Copy { .. } | Command::Barrier => None,
    };
    recording.commands().iter().filter_map(told).collect()
}

/// Source: RadixSort.cpp and Reduction.cpp, runCLKernels. All other hosts work only before the first kernel.
#[test]
fn hosts_work_between_kernels_and_behind_the_last() {
    for (name, ..) in ROWS {
        let expected: &[&str] = match name {
            "radixsort" => &["reads buckets writes scanned", "reads sorted writes unsorted"].repeat(4),
            "reduction" => &["reads sums writes "],
            _ => &[],
        };
        assert_eq!(phases(name), expected, "{name}");
    }
}

#[test]
fn arrays_and_launches_are_those_of_the_sources() {
    for (name, read, written, expected) in ROWS {
        let workload = find(name).unwrap();
        assert_eq!(bytes(workload), (read, written), "{name}");
        assert_eq!(launches(workload), expected, "{name}");
    }
}
