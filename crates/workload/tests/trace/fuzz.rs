//! Random damage: opening a damaged trace never panics and never hangs, regardless of the result.

use super::kit::{block, folder, folder_with_list, gzip, header, open, xz, zstd};
use super::tracez::{blocks, tracez};
use proptest::prelude::*;
use proptest::sample::Index;
use std::sync::OnceLock;
use tombolo_programs::find;
use tombolo_types::stream::{Command, CtaStream};
use tombolo_workload::bench::{Mode, Request, record};
use tombolo_workload::record::RecordOptions;
use tombolo_workload::scale::Scale;
use tombolo_workload::trace;

const INSTRUCTIONS: &[&str] = &[
    "0000 ffffffff 1 R2 LDG.E.64 1 R4 8 1 0x7f0000001000 8 0",
    "0010 0000f00f 1 R5 LD.E 1 R4 4 2 0x7f1300000000 4 -8 4 4 4 4 4 0",
    "0020 00000003 0 STL.64 2 R1 R2 8 0 0xfffbd0 0xfffbd0 -1",
    "0030 ffffffff 1 R5 ATOMG.E.ADD.STRONG.GPU 2 R4 R2 4 1 0x7f0000002000 0 0",
    "0040 ffffffff 1 R2 LDSM.16.M88.4 1 R4 4 1 0x0 16 0",
    "0050 ffffffff 0 LDGSTS.E.BYPASS.128 2 R2 R4 16 1 0x7f0000003000 16 0",
    "0060 ffffffff 0 BAR.SYNC 0 0 0",
    "0070 00000000 0 EXIT 0 0 0",
];
/// Instructions of Hopper as Accel-Sim 2 writes them.
const HOPPER: &[&str] = &[
    "0010 00000001 0 UTMALDG.2D 2 UR8 UR4 128 0x7f2000000400 1 0x3 256 0 3 2 0x7f6000000000 0x7f6000001000 0 0 NoVal",
    "0020 00000001 0 UBLKPF.L2 2 UR8 UR4 16 0x0 0 48 0 4 0x7f6000000000 3 16 -16 0 0 NoVal",
    "0030 ffffffff 1 R24 HGMMA.64x128x16.F32 2 R24 UR4 1 0 0 0 Val 1 0x0 1 0x0 1 0x0",
    "0040 ffffffff 1 R5 LD.E 1 R4 4 1 0x7f1307000000 4 0 0 NoVal",
    "0050 00000003 1 R5 LD.E 1 R4 4 0 0x7f1300000000 0x7f6000000000 0 0 NoVal",
    "0060 00000000 0 REPLAY_START 0 0 0 0 NoVal",
    "0070 ffffffff 0 LDGSTS.E.BYPASS.128 2 R2 R4 16 0 0x0 0x7f6000000000 0 0 NoVal",
    "0080 ffffffff 1 R2 ATOMS.ADD 2 R4 R6 4 1 0x400 0 0 0 NoVal",
];
/// Text pieces with a meaning somewhere in a trace.
const PIECES: &[&str] = &[
    "#BEGIN_TB\n",
    "#END_TB\n",
    "warp = 0\n",
    "warp = 1\n",
    "insts = 99999999999\n",
    "thread block = 1,0,0\n",
    "-grid dim = (2147483647,1,1)\n",
    "\n",
    " ",
    "0x",
    "ffffffffffffffff",
    "-9223372036854775808",
    " 255 ",
    "R255",
    "LD.E.256",
    "ATOMS.64",
    "2",
    "0",
    "\u{0}",
    "\"",
    "\"'",
    "\u{feff}",
    "-nregs = 300\n",
    "-cuda stream id = -1\n",
    "-shmem = -1\n",
    "0 0 0 0 0000 ffffffff 0 EXIT 0 0 0\n",
    "Memset,0x10,0,64\n",
    "MemcpyDtoDAsync,0x10,0x20,64,7\n",
    "ncclAllReduce,0x10\n",
    "cudaMemcpyAsyncHtoD,0x10,64\n",
    " 3 4000000000 0x0",
    " 4 0x0 4000000000 1",
    " HGMMA.64x8x16 ",
    "cluster rank = 4294967295\n",
    "-binary version = 90\n",
    "-kernel id = 4294967295\n",
    " NoVal",
    "./kernel-1.traceg\n",
    " # ",
    "\u{1f}\u{8b}\u{8}",
];
/// Valid list lines, with the launch count for each line.
const FINE: &[(&str, usize)] = &[
    ("", 0),
    ("# kernel-1.traceg", 0),
    ("MemcpyHtoD,0x10,64", 0),
    ("MemcpyDtoHAsync,0x10,64", 0),
    ("MemcpyPeer,0x10,64", 0),
    ("cudaMalloc,0x10,64", 0),
    ("ncclSend,0x10,64", 0),
    ("kernel-1.traceg", 1),
    ("./kernel-1.traceg \r", 1),
    ("kernel-1.traceg.gz # again", 1),
];
/// Invalid list lines.
const OTHER: &[&str] =
    &["hello world", "kernal-1.traceg", "./kernel-2.traceg", "memcpyHtoD,0x10,64", "MemcpyHtoD", "-x", "1"];

fn text() -> String {
    let warps = [INSTRUCTIONS, INSTRUCTIONS];
    header(5, "2,1,1", 64) + &block("0,0,0", &warps) + &block("1,0,0", &warps)
}

/// A trace of Hopper in version 6.
fn hopper() -> String {
    let header = header(6, "2,1,1", 64).replace("-nregs", "-binary version = 90\n-nregs");
    let block = |name: &str, rank: u32| block(&format!("{name}\ncluster rank = {rank}"), &[&HOPPER[..6], &HOPPER[7..]]);
    header + &block("0,0,0", 0) + &block("1,0,0", 1)
}

/// A change to a byte sequence.
#[derive(Clone, Debug)]
enum Change {
    Set(Index, u8),
    Cut(Index),
    Remove(Index, usize),
    Repeat(Index, usize),
    Insert(Index, &'static str),
}

fn change() -> impl Strategy<Value = Change> {
    let at = any::<Index>;
    prop_oneof![
        4 => (at(), any::<u8>()).prop_map(|(at, byte)| Change::Set(at, byte)),
        1 => at().prop_map(Change::Cut),
        3 => (at(), 1_usize..80).prop_map(|(at, length)| Change::Remove(at, length)),
        3 => (at(), 1_usize..80).prop_map(|(at, length)| Change::Repeat(at, length)),
        6 => (at(), prop::sample::select(PIECES)).prop_map(|(at, piece)| Change::Insert(at, piece)),
    ]
}

fn apply(bytes: &mut Vec<u8>, changes: &[Change]) {
    for change in changes {
        let length = bytes.len();
        let part = |at: &Index, count: &usize| {
            let start = at.index(length);
            start..(start + count).min(length)
        };
        match change {
            _ if length == 0 => return,
            Change::Set(at, byte) => bytes[at.index(length)] = *byte,
            Change::Cut(at) => bytes.truncate(at.index(length)),
            Change::Remove(at, count) => drop(bytes.drain(part(at, count))),
            Change::Repeat(at, count) => {
                let again = bytes[part(at, count)].to_vec();
                let start = at.index(length);
                bytes.splice(start..start, again);
            }
            Change::Insert(at, piece) => {
                let start = at.index(length);
                bytes.splice(start..start, piece.bytes());
            }
        }
    }
}

/// Opens and completely decodes the kernel file; a successful result must be complete.
fn try_kernel(bytes: &[u8]) -> Result<(), TestCaseError> {
    let trace = folder(&[("kernel-1.traceg", bytes)]);
    let program = match open(trace.path()) {
        Ok(program) => program,
        Err(error) => {
            prop_assert!(error.to_string().contains("kernel-1.traceg"), "{}", error);
            return Ok(());
        }
    };
    let mut stream = CtaStream::default();
    for cta in 0..program.kernels()[0].ctas {
        prop_assert!(program.cta(0, cta, &mut stream).is_ok());
        prop_assert_eq!(stream.warps.len() as u32, program.kernels()[0].threads_per_cta.div_ceil(32));
    }
    Ok(())
}

/// Native files: the sample, a recording with arrays and host phases, and a file in the format's first version.
fn natives() -> &'static [Vec<u8>; 3] {
    static NATIVES: OnceLock<[Vec<u8>; 3]> = OnceLock::new();
    NATIVES.get_or_init(|| {
        let trace = folder(&[("kernel-1.traceg", text().as_bytes())]);
        let file = trace.path().join("sample.tombolo");
        trace::import(trace.path(), &file).unwrap();
        let sample = std::fs::read(&file).unwrap();
        let first = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/native/bfs-version-1.tombolo");
        let workload = find("bfs").unwrap();
        let given = [("nodes", "300")].map(|(key, value)| (key.to_owned(), value.to_owned()));
        let request = Request::new(workload, Scale::FULL, &given, 1).unwrap();
        let recording = record(workload, &request, &RecordOptions::default(), Mode::Auto).unwrap();
        trace::write(&recording, &file).unwrap();
        [sample, std::fs::read(&file).unwrap(), std::fs::read(first).unwrap()]
    })
}

/// A packing method for a file.
fn packer() -> impl Strategy<Value = fn(&[u8]) -> Vec<u8>> {
    prop::sample::select(vec![xz as fn(&[u8]) -> Vec<u8>, gzip, zstd])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 250, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn changed_text_never_panics(changes in prop::collection::vec(change(), 1..6)) {
        let mut bytes = text().into_bytes();
        apply(&mut bytes, &changes);
        try_kernel(&bytes)?;
    }

    #[test]
    fn changed_text_of_hopper_never_panics(changes in prop::collection::vec(change(), 1..6)) {
        let mut bytes = hopper().into_bytes();
        apply(&mut bytes, &changes);
        try_kernel(&bytes)?;
    }

    #[test]
    fn a_changed_trace_of_warps_never_panics(
        changes in prop::collection::vec(change(), 1..4),
        dictionary in prop::sample::select(vec![&b""[..], b"ffffffff 1 R3 FADD 2 R2 R3 0 0 0 NoVal"]),
    ) {
        let mut bytes = tracez(&header(6, "2,1,1", 64), &blocks(), 3, dictionary);
        apply(&mut bytes, &changes);
        try_kernel(&bytes)?;
    }

    #[test]
    fn changed_text_in_a_container_never_panics(changes in prop::collection::vec(change(), 1..6), pack in packer()) {
        let mut bytes = text().into_bytes();
        apply(&mut bytes, &changes);
        try_kernel(&pack(&bytes))?;
    }

    #[test]
    fn a_changed_container_never_panics(changes in prop::collection::vec(change(), 1..4), pack in packer()) {
        let mut bytes = pack(text().as_bytes());
        apply(&mut bytes, &changes);
        try_kernel(&bytes)?;
    }

    #[test]
    fn a_changed_list_never_panics(changes in prop::collection::vec(change(), 1..4)) {
        let trace = folder(&[("kernel-1.traceg", text().as_bytes())]);
        let mut bytes = b"MemcpyHtoD,0x00007f00,256\nkernel-1.traceg\nMemcpyDtoHAsync,0x00007f00,256\nMemsetD8,0x7f00,0,16 # x\n".to_vec();
        apply(&mut bytes, &changes);
        std::fs::write(trace.path().join("kernelslist.g"), bytes).unwrap();
        let _ = open(trace.path());
    }

    #[test]
    fn no_line_of_a_list_is_skipped(
        fine in prop::collection::vec(prop::sample::select(FINE), 0..8),
        other in prop::option::of((any::<Index>(), prop::sample::select(OTHER))),
    ) {
        let mut lines: Vec<&str> = fine.iter().map(|(line, _)| *line).chain(["kernel-1.traceg"]).collect();
        let place = other.map(|(at, line)| {
            let place = at.index(lines.len());
            lines.insert(place, line);
            place + 1
        });
        let trace = folder_with_list(&lines.join("\n"), &[("kernel-1.traceg", text().as_bytes())]);
        match (open(trace.path()), place) {
            (Ok(program), None) => {
                let launches = program.commands().iter().filter(|command| matches!(command, Command::Launch { .. }));
                prop_assert_eq!(launches.count(), 1 + fine.iter().map(|(_, kernels)| kernels).sum::<usize>());
            }
            (Err(error), Some(line)) => {
                let place = format!("kernelslist.g:{line}: ");
                prop_assert!(error.to_string().contains(&place), "{} for line {}", error, line);
            }
            (outcome, place) => prop_assert!(false, "{:?} of {:?}", outcome.err(), place),
        }
    }

    #[test]
    fn a_changed_native_file_never_panics(
        native in prop::sample::select(&natives()[..]),
        changes in prop::collection::vec(change(), 1..4),
    ) {
        let mut bytes = native.clone();
        apply(&mut bytes, &changes);
        let out = tempfile::tempdir().unwrap();
        let file = out.path().join("sample.tombolo");
        std::fs::write(&file, &bytes).unwrap();
        let read = trace::info(&file);
        prop_assert!(read.is_err() || bytes == native, "damage does not show");
    }
}
