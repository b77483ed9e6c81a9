//! Shared helpers of the tests: traces of a single kernel, written to a temporary folder.

use std::io::Read;
use std::path::Path;
use tempfile::TempDir;
use tombolo_types::LineSize;
use tombolo_types::stream::{CtaStream, Op, Program};
use tombolo_workload::trace;

/// Lanes per warp.
pub(crate) const WARP: u32 = 32;
/// Base addresses for scratchpad and local memory in traces created by the helpers.
pub(crate) const BASES: &str = "-shmem base_addr = 0x00007f1300000000\n-local mem base_addr = 0x00007f1200000000\n";

/// A header for blocks with `threads` threads.
pub(crate) fn header(version: u32, grid: &str, threads: u32) -> String {
    format!(
        "-kernel name = sample\n-kernel id = 1\n-grid dim = ({grid})\n-block dim = ({threads},1,1)\n-shmem = 64\n\
         -nregs = 16\n-cuda stream id = 3\n{BASES}-accelsim tracer version = {version}\n-enable lineinfo = 0\n\n\
         #traces format = ...\n"
    )
}

/// A thread block with the given warps, each a list of instruction lines.
pub(crate) fn block(name: &str, warps: &[&[&str]]) -> String {
    let mut text = format!("\n#BEGIN_TB\n\nthread block = {name}\n");
    for (warp, lines) in warps.iter().enumerate() {
        text += &format!("\nwarp = {warp}\ninsts = {}\n", lines.len());
        lines.iter().for_each(|line| text += &format!("{line} \n"));
    }
    text + "\n#END_TB\n"
}

/// A folder with a trace from the given kernel files.
pub(crate) fn folder(kernels: &[(&str, &[u8])]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut list = String::new();
    for (name, bytes) in kernels {
        std::fs::write(folder.path().join(name), bytes).unwrap();
        list += &format!("{name}\n");
    }
    std::fs::write(folder.path().join("kernelslist.g"), list).unwrap();
    folder
}

/// Opens a trace for lines of 128 bytes.
pub(crate) fn open(path: &Path) -> Result<Box<dyn Program>, trace::TraceError> {
    trace::open(path, LineSize::B128, WARP)
}

/// Notes for readers of results from a trace.
pub(crate) fn notes(path: &Path) -> Vec<String> {
    let (_, notes) = trace::open_with_notes(path, LineSize::B128, WARP).unwrap_or_else(|error| panic!("{error}"));
    let listed = trace::info(path).unwrap().notes;
    assert!(listed.iter().all(|note| notes.contains(note)), "what `info` shows reaches results: {listed:?}");
    notes
}

/// A folder with the given kernel files and the given list.
pub(crate) fn folder_with_list(list: &str, kernels: &[(&str, &[u8])]) -> TempDir {
    let folder = folder(kernels);
    std::fs::write(folder.path().join("kernelslist.g"), list).unwrap();
    folder
}

/// `text` packed with gzip.
pub(crate) fn gzip(text: &[u8]) -> Vec<u8> {
    let mut packed = Vec::new();
    flate2::read::GzEncoder::new(text, flate2::Compression::fast()).read_to_end(&mut packed).unwrap();
    packed
}

/// `text` packed with xz.
pub(crate) fn xz(text: &[u8]) -> Vec<u8> {
    let mut packed = Vec::new();
    liblzma::read::XzEncoder::new(text, 0).read_to_end(&mut packed).unwrap();
    packed
}

/// `text` packed with zstd.
pub(crate) fn zstd(text: &[u8]) -> Vec<u8> {
    zstd::encode_all(text, 1).unwrap()
}

/// Opens a trace of a single kernel.
pub(crate) fn open_text(text: &str) -> Result<Box<dyn Program>, trace::TraceError> {
    open(folder(&[("kernel-1.traceg", text.as_bytes())]).path())
}

/// The error message for a trace of a single kernel, from its line number on.
pub(crate) fn refusal(text: &str) -> String {
    let message = open_text(text).err().expect("the trace is bad").to_string();
    let (_, rest) = message.split_once("kernel-1.traceg").expect("the message names the file");
    rest.trim_start_matches(':').trim_start().to_owned()
}

/// The stream of a block with a single warp.
pub(crate) fn stream(version: u32, lines: &[&str]) -> CtaStream {
    let text = header(version, "1,1,1", 32) + &block("0,0,0", &[lines]);
    let program = open_text(&text).unwrap_or_else(|error| panic!("{error}"));
    let mut stream = CtaStream::default();
    program.cta(0, 0, &mut stream).unwrap();
    assert_eq!(stream.instructions(), lines.len() as u64, "each line is one warp instruction");
    stream
}

/// A warp's operations, without arithmetic.
pub(crate) fn memory(version: u32, lines: &[&str]) -> Vec<Op> {
    let mut ops = stream(version, lines).ops;
    ops.retain(|op| !matches!(op, Op::Compute { .. }));
    ops
}

/// Decodes the streams of all CTAs.
pub(crate) fn streams(program: &dyn Program) -> Vec<CtaStream> {
    let mut streams = Vec::new();
    for (kernel, info) in program.kernels().iter().enumerate() {
        for cta in 0..info.ctas {
            let mut stream = CtaStream::default();
            program.cta(kernel as u32, cta, &mut stream).unwrap();
            streams.push(stream);
        }
    }
    streams
}
