//! Two traces recorded on real GPUs: contents, and equal streams from every file format of each trace.

use super::kit::{WARP, gzip, streams, zstd};
use std::io::Read;
use std::path::{Path, PathBuf};
use tombolo_types::LineSize;
use tombolo_types::stream::{AtomicResult, Command, CtaStream, Op, Program};
use tombolo_workload::trace;

const VECTORADD: &str = "vectoradd-a100";
const BTREE: &str = "rodinia-btree-h100";

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/traces").join(name)
}

fn open(path: &Path) -> Box<dyn Program> {
    trace::open(path, LineSize::B128, WARP).unwrap_or_else(|error| panic!("{error}"))
}

fn texts(name: &str) -> Vec<(String, String)> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder(name)).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "xz"));
    files.sort();
    let text = |path: &PathBuf| {
        let mut text = String::new();
        liblzma::read::XzDecoder::new(std::fs::File::open(path).unwrap()).read_to_string(&mut text).unwrap();
        (path.file_stem().unwrap().to_string_lossy().into_owned(), text)
    };
    files.iter().map(text).collect()
}

/// Number of warp instructions announced in the trace files (`insts = `), summed without the trace reader.
fn announced(name: &str) -> u64 {
    let count = |text: &str| -> u64 {
        text.lines().filter_map(|line| line.strip_prefix("insts = ")).map(|n| n.parse::<u64>().unwrap()).sum()
    };
    texts(name).iter().map(|(_, text)| count(text)).sum()
}

#[test]
fn decoded_instructions_are_as_many_as_the_files_announce() {
    for (name, expected) in [(VECTORADD, 26_601), (BTREE, 43_664)] {
        let program = open(&folder(name));
        let decoded: u64 = streams(&*program).iter().map(CtaStream::instructions).sum();
        assert_eq!(decoded, announced(name), "{name}");
        assert_eq!(decoded, expected, "{name}");
    }
}

#[test]
fn vectoradd_reads_two_arrays_and_writes_one() {
    let program = open(&folder(VECTORADD));
    let [kernel] = program.kernels() else { panic!("one kernel") };
    assert_eq!((kernel.name.as_str(), kernel.ctas, kernel.threads_per_cta), ("_Z9vectorAddPKfS0_Pfi", 196, 256));
    assert_eq!((kernel.registers, kernel.shared_bytes), (12, 0));
    let copy = |address| Command::Copy { address, bytes: 200_000, to_device: true };
    let launch = Command::launch(0, 0);
    assert_eq!(program.commands(), [copy(0x7fb0_fc40_0000), copy(0x7fb0_fc43_0e00), launch]);

    let mut stream = CtaStream::default();
    program.cta(0, 1, &mut stream).unwrap();
    assert_eq!(stream.warps.len(), 8);
    let warp = &stream.ops[stream.warps[0].start as usize..stream.warps[0].end as usize];
    let memory: Vec<&Op> = warp.iter().filter(|op| !matches!(op, Op::Compute { .. })).collect();
    let [
        Op::Load { accesses: first, .. },
        Op::Load { .. },
        Op::Use { distance: 2 },
        Op::Use { distance: 1 },
        Op::Store { .. },
    ] = memory[..]
    else {
        panic!("two loads, the wait of the addition for both, a store: {memory:?}");
    };
    assert_eq!({ stream.accesses[first.range()][0].line }.0, (0x7fb0_fc43_0e00 + 256 * 4) / 128);
    let info = trace::info(&folder(VECTORADD)).unwrap();
    assert_eq!(info.footprint_lines, 3 * 200_000_u64.div_ceil(128));
    assert_eq!(info.transactions, 3 * 1563);
    assert_eq!(info.kernels[0].memory_instructions.global, 3 * 1563);
    assert_eq!(info.unknown_opcodes, []);
    assert_eq!(info.tracer_version, Some(5));
    assert!(info.notes[0].contains("no synchronisation between CTAs"), "{:?}", info.notes);
}

#[test]
fn btree_spills_registers_to_local_memory() {
    let info = trace::info(&folder(BTREE)).unwrap();
    let [first, second] = &info.kernels[..] else { panic!("two kernels") };
    assert_eq!((first.ctas, first.warps, first.block), (8, 32, [128, 1, 1]));
    let (loads, stores) = (20_086 - 2 * 1563, 1627 - 1563);
    let memory = |kernel: &trace::KernelSummary| kernel.memory_instructions;
    assert_eq!(memory(first).global + memory(second).global, loads + stores);
    assert_eq!(memory(first).local + memory(second).local, 3856 + 8448);
    assert_eq!(memory(first).constant + memory(second).constant, 64 + 320 + 128 + 1691 - 1563);
    assert_eq!(info.unknown_opcodes, []);
    let program = open(&folder(BTREE));
    let returned = |op: &Op| matches!(op, Op::Atomic { result: AtomicResult::Returned, .. });
    assert!(!streams(&*program).iter().any(|stream| stream.ops.iter().any(returned)));
}

#[test]
fn however_files_are_packed_the_streams_are_the_same() {
    for name in [VECTORADD, BTREE] {
        let expected = streams(&*open(&folder(name)));
        let plain = |text: &[u8]| text.to_vec();
        for (ending, pack) in [("", plain as fn(&[u8]) -> Vec<u8>), (".zst", zstd), (".gz", gzip)] {
            let copy = tempfile::tempdir().unwrap();
            std::fs::copy(folder(name).join("kernelslist.g"), copy.path().join("kernelslist.g")).unwrap();
            for (file, text) in texts(name) {
                std::fs::write(copy.path().join(file + ending), pack(text.as_bytes())).unwrap();
            }
            assert_eq!(streams(&*open(&copy.path().join("kernelslist.g"))), expected, "{name}{ending}");
        }
    }
}

#[test]
fn an_imported_trace_is_the_same_program() {
    for name in [VECTORADD, BTREE] {
        let out = tempfile::tempdir().unwrap();
        let file = out.path().join("program.tombolo");
        trace::import(&folder(name), &file).unwrap();
        let (recorded, native) = (open(&folder(name)), open(&file));
        assert_eq!(native.kernels(), recorded.kernels());
        assert_eq!(native.commands(), recorded.commands());
        assert_eq!((native.name(), native.warp_width()), (recorded.name(), recorded.warp_width()));
        assert_eq!(streams(&*native), streams(&*recorded));
        assert_eq!(trace::info(&file).unwrap(), trace::info(&folder(name)).unwrap());
        assert_eq!(std::fs::read_dir(out.path()).unwrap().count(), 1, "nothing but the file is left");
    }
}

#[test]
fn a_native_trace_adapts_to_other_lines() {
    for name in [VECTORADD, BTREE] {
        let out = tempfile::tempdir().unwrap();
        let file = out.path().join("program.tombolo");
        trace::import(&folder(name), &file).unwrap();
        for size in [32, 64, 256].map(|bytes| LineSize::new(bytes).unwrap()) {
            let direct = trace::open(&folder(name), size, WARP).unwrap();
            let adapted = trace::open(&file, size, WARP).unwrap();
            assert_eq!(adapted.line_size(), size);
            assert_eq!(streams(&*adapted), streams(&*direct), "{name} with lines of {} bytes", size.bytes());
        }
    }
}

#[test]
fn ctas_decode_alike_from_any_thread() {
    let out = tempfile::tempdir().unwrap();
    let file = out.path().join("program.tombolo");
    trace::import(&folder(VECTORADD), &file).unwrap();
    for path in [folder(VECTORADD), file] {
        let program = open(&path);
        let expected = streams(&*program);
        std::thread::scope(|scope| {
            for step in [1, 5, 13, 195] {
                let (program, expected) = (&program, &expected);
                scope.spawn(move || {
                    let mut stream = CtaStream::default();
                    for cta in (0..196).map(|place| place * step % 196) {
                        program.cta(0, cta, &mut stream).unwrap();
                        assert_eq!(stream, expected[cta as usize]);
                    }
                });
            }
        });
    }
}

#[test]
fn wider_warps_take_the_trace_and_narrower_ones_do_not() {
    let wide = trace::open(&folder(VECTORADD), LineSize::B128, 64).unwrap();
    assert_eq!(wide.warp_width(), 32);
    let error = trace::open(&folder(VECTORADD), LineSize::B128, 16).err().unwrap();
    assert!(error.to_string().ends_with("warps of 32 lanes, which do not fit a machine's warps of 16"), "{error}");
}
