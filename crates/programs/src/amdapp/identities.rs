//! Tests for the samples at the sizes of UMH's Table I: bytes read and written, groups launched, and host accesses.

use crate::find;
use crate::prelude::*;
use rustc_hash::FxHashSet;
use tombolo_types::LineSize;
use tombolo_types::stream::{Command, CtaStream, Op, Program};
use tombolo_workload::bench::{Mode, record};
use tombolo_workload::record::{RecordOptions, Recording};
use tombolo_workload::scale::Scale;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// Expected values for a sample with default parameters. Source: UMH, Table I, and the sample's host program.
struct ExpectedSample {
    name: &'static str,
    /// Bytes in all lines loaded from arrays without any store.
    read: u64,
    /// Bytes in all stored lines.
    written: u64,
    /// Total bytes of all arrays.
    allocated: u64,
    /// Number of groups and threads per group, launch by launch.
    grids: &'static [(u32, u32)],
    /// Bytes read and written by the host in each phase, after setup and before results.
    host: &'static [[u64; 2]],
}

const ROWS: [ExpectedSample; 6] = [
    ExpectedSample {
        name: "blackscholes",
        read: 4 * MIB,
        written: 8 * MIB,
        allocated: 12 * MIB,
        grids: &[(1024, 256)],
        host: &[],
    },
    ExpectedSample {
        name: "dct",
        read: 4 * MIB + 256,
        written: 4 * MIB,
        allocated: 8 * MIB + 256,
        grids: &[(16384, 64)],
        host: &[],
    },
    ExpectedSample {
        name: "dwthaar1d",
        read: 8 * MIB,
        // The list of averages is as long as the signal, but only 4096 entries are used.
        written: 8 * MIB + 16 * KIB,
        allocated: 24 * MIB,
        grids: &[(4096, 256), (8, 256), (1, 4)],
        host: &[
            // The host keeps the signal.
            [8 * MIB, 0],
            // Averages become the signal for the next launch.
            [8 * MIB + 16 * KIB, 16 * KIB],
            [16 * KIB + 8 * 4, 8 * 4],
            // The last average, all coefficients except the last launch's, and the signal are copied to their final
            // arrays.
            [8 * 4 + 4, 4 + (8 * MIB - 8 * 4) + 8 * MIB],
        ],
    },
    ExpectedSample {
        name: "histogram",
        read: 16 * MIB,
        written: 128 * KIB,
        allocated: 16 * MIB + 128 * KIB,
        grids: &[(128, 128)],
        host: &[[128 * KIB, 0]],
    },
    ExpectedSample {
        name: "mersennetwister",
        read: MIB,
        written: 4 * MIB,
        allocated: 5 * MIB,
        grids: &[(256, 256)],
        host: &[],
    },
    ExpectedSample {
        name: "amdapp-matrixtranspose",
        read: 4 * MIB,
        written: 4 * MIB,
        allocated: 8 * MIB,
        grids: &[(4096, 256)],
        host: &[],
    },
];

/// Bytes in loaded lines of arrays without stores, and bytes in stored lines.
fn touched(recording: &Recording) -> [u64; 2] {
    let (mut loaded, mut stored, mut stream) = (FxHashSet::default(), FxHashSet::default(), CtaStream::default());
    for (kernel, info) in (0..).zip(recording.kernels()) {
        for cta in 0..info.ctas {
            recording.cta(kernel, cta, &mut stream).unwrap();
            for op in &stream.ops {
                let (lines, accesses) = match op {
                    Op::Load { accesses, .. } => (&mut loaded, accesses),
                    Op::Store { accesses, .. } => (&mut stored, accesses),
                    _ => continue,
                };
                lines.extend(stream.accesses[accesses.range()].iter().map(|access| access.line));
            }
        }
    }
    let size = recording.line_size();
    let bytes = |lines: usize| lines as u64 * size.bytes();
    let read_only = recording
        .arrays()
        .iter()
        .map(|array| array.lines(size))
        .filter(|lines| !stored.iter().any(|line| lines.contains(line)));
    let read = read_only.map(|lines| loaded.iter().filter(|line| lines.contains(line)).count()).sum();
    [bytes(read), bytes(stored.len())]
}

/// Number of groups and threads per group, launch by launch.
fn grids(recording: &Recording) -> Vec<(u32, u32)> {
    let kernels = recording.commands().iter().filter_map(Command::kernel);
    kernels.map(|kernel| &recording.kernels()[kernel as usize]).map(|info| (info.ctas, info.threads_per_cta)).collect()
}

/// Bytes read and written by the host between commands, phase by phase.
fn host(recording: &Recording) -> Vec<[u64; 2]> {
    let phases = recording.commands().iter().filter_map(|command| match *command {
        Command::Host { phase } => Some(&recording.host_phases()[phase as usize]),
        Command::Launch { .. } | Command::Copy { .. } | Command::Barrier => None,
    });
    phases.map(|phase| [phase.read_bytes(), phase.written_bytes()]).collect()
}

#[test]
fn samples_read_write_and_launch_what_they_do_at_the_papers_sizes() {
    let options = RecordOptions { warp_width: 64, line: LineSize::new(64).unwrap(), ..RecordOptions::default() };
    for row in &ROWS {
        let workload = find(row.name).unwrap();
        let request = Request::new(workload, Scale::FULL, &[], 7).unwrap();
        let recording = record(workload, &request, &options, Mode::Auto).unwrap();
        assert_eq!(touched(&recording), [row.read, row.written], "{}", row.name);
        let allocated: u64 = recording.arrays().iter().map(|array| array.bytes).sum();
        assert_eq!(allocated, row.allocated, "{}", row.name);
        assert_eq!(grids(&recording), row.grids, "{}", row.name);
        assert_eq!(host(&recording), row.host, "{}", row.name);
    }
}
