//! Digests for recordings from small instances: a change in a program's behaviour becomes visible, and is either
//! intended or an error.

use super::*;
use std::hash::{Hash, Hasher};
use tombolo_types::stream::{Command, CtaStream, KernelInfo, Program};
use tombolo_workload::bench::{Mode, Request, record};
use tombolo_workload::record::{RecordOptions, Recording};

/// A line per instance: the workload's name, the given parameters, and the digest.
const PINNED: &str = include_str!("pinned.txt");

/// FNV-1a, over eight bytes at a time if available.
struct Digest(u64);

impl Hasher for Digest {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(29);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Digest over kernels, commands that take time, and every CTA's stream.
fn digest(recording: &Recording) -> u64 {
    let mut digest = Digest(0xcbf2_9ce4_8422_2325);
    let mut stream = CtaStream::default();
    for (kernel, info) in (0..).zip(recording.kernels()) {
        let KernelInfo { name, ctas, threads_per_cta, shared_bytes, registers, class, parts } = info;
        (name, ctas, threads_per_cta, shared_bytes, registers, class).hash(&mut digest);
        if !parts.is_empty() {
            parts.hash(&mut digest);
        }
        for cta in 0..info.ctas {
            recording.cta(kernel, cta, &mut stream).unwrap();
            let CtaStream { ops, warps, accesses, tokens } = &stream;
            (ops, warps, accesses, tokens).hash(&mut digest);
        }
    }
    let timed = recording.commands().iter().filter(|command| !matches!(command, Command::Host { .. }));
    // Properties that most programs do not use must not change their digests.
    format!("{:?}", timed.collect::<Vec<_>>()).replace(", on: All", "").hash(&mut digest);
    digest.finish()
}

/// Panics if the digest of a small instance's recording differs from the pinned digest in the file.
pub(super) fn assert_pinned(name: &str, given: &str, recording: &Recording) {
    let found = format!("{name}{given} {:016x}", digest(recording));
    assert!(PINNED.lines().any(|pinned| pinned == found), "not pinned: {found}");
}

/// Every instance: its name in the file, its request, and how it is recorded.
fn instances() -> impl Iterator<Item = (String, Request, RecordOptions)> {
    let shipped =
        list().iter().map(|workload| (workload.name().to_owned(), small::small(*workload), RecordOptions::default()));
    let variants = tests::variants().map(|(name, request, given)| {
        let options = RecordOptions { warp_width: 32, check_independence: true, ..RecordOptions::default() };
        (format!("{name}{given}"), request, options)
    });
    shipped.chain(variants)
}

/// With `TOMBOLO_BLESS=1` the file is written again.
#[test]
fn every_pinned_line_is_of_an_instance() {
    if std::env::var_os("TOMBOLO_BLESS").is_some() {
        let line = |(instance, request, options): (String, Request, RecordOptions)| {
            let workload = find(instance.split(',').next().expect("a name")).expect("it ships");
            let recording = record(workload, &request, &options, Mode::Verify).expect("it is recorded");
            format!("{instance} {:016x}\n", digest(&recording))
        };
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/src/pinned.txt");
        return std::fs::write(file, instances().map(line).collect::<String>()).expect("it is written");
    }
    let pinned: Vec<&str> = PINNED.lines().filter_map(|line| Some(line.rsplit_once(' ')?.0)).collect();
    assert_eq!(pinned, instances().map(|(instance, ..)| instance).collect::<Vec<_>>());
}
