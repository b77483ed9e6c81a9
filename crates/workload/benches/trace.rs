//! Measures the speed of reading traces, and the size of the native format: `cargo bench -p tombolo-workload --bench
//! trace`.
//!
//! The inputs are the two real traces, with their thread blocks repeated until the text is large. Times are this
//! thread's processor time, and other work on the machine does not count; if the system does not report processor time,
//! wall-clock time is used.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tombolo_types::LineSize;
use tombolo_types::stream::{CtaStream, Program};
use tombolo_workload::trace;

/// Minimum text size in bytes.
const TEXT: usize = 64 << 20;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    for name in ["vectoradd-a100/kernel-1", "rodinia-btree-h100/kernel-1-ctx_0x5607b0e17740"] {
        measure(name)?;
    }
    Ok(())
}

/// Processor time of this thread. Source: proc(5), `schedstat`: nanoseconds, first field.
fn on_core() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(Duration::from_nanos(text.split(' ').next()?.parse().ok()?))
}

/// Runs `work`; returns the elapsed seconds and the result.
fn timed<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let (clock, core) = (Instant::now(), on_core());
    let result = work();
    // The system counts in time slices: a shorter span reads as zero.
    let span = on_core().zip(core).map(|(after, before)| after - before).filter(|span| *span > Duration::ZERO);
    let span = span.unwrap_or_else(|| clock.elapsed());
    (span.as_secs_f64(), result)
}

fn measure(name: &str) -> Result<(), Failure> {
    let folder = tempfile::tempdir()?;
    let plain = folder.path().join("kernel-1.traceg");
    let text = repeated(&unpacked(name)?);
    std::fs::write(&plain, &text)?;
    println!("{name}: {} MB of text", text.len() / 1_000_000);
    let instructions = time_open("plain", &plain, text.len())?;
    let zst = folder.path().join("kernel-1.traceg.zst");
    std::fs::write(&zst, zstd::encode_all(text.as_bytes(), 3)?)?;
    time_open("zst", &zst, text.len())?;
    let native = folder.path().join("program.tombolo");
    let (imported, result) = timed(|| trace::import(&plain, &native));
    result?;
    let bytes = std::fs::metadata(&native)?.len();
    println!(
        "  import: {:.2} s; {:.3} bytes a warp instruction, 1/{} of the text",
        imported,
        bytes as f64 / instructions as f64,
        text.len() as u64 / bytes
    );
    time_open("native", &native, text.len())?;
    Ok(())
}

/// Opens a trace, then decodes the whole trace; returns the warp instruction count.
fn time_open(form: &str, path: &Path, text: usize) -> Result<u64, Failure> {
    let (opened, program) = timed(|| trace::open(path, LineSize::B128, 32));
    let program = program?;
    let (decoded, instructions) = timed(|| decode(&*program));
    let instructions = instructions?;
    println!(
        "  {form}: opened at {:.0} MB/s, {:.1} M warp instructions/s; decoded at {:.1} M/s",
        text as f64 / 1e6 / opened,
        instructions as f64 / 1e6 / opened,
        instructions as f64 / 1e6 / decoded
    );
    Ok(instructions)
}

fn decode(program: &dyn Program) -> Result<u64, Failure> {
    let mut stream = CtaStream::default();
    let mut instructions = 0;
    for cta in 0..program.kernels()[0].ctas {
        program.cta(0, cta, &mut stream)?;
        instructions += stream.instructions();
    }
    Ok(instructions)
}

fn unpacked(name: &str) -> Result<String, Failure> {
    let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "tests/data/traces", name].iter().collect();
    let mut text = String::new();
    liblzma::read::XzDecoder::new(std::fs::File::open(format!("{}.traceg.xz", path.display()))?)
        .read_to_string(&mut text)?;
    Ok(text)
}

/// Returns `text` with its thread blocks, all in x, repeated under further indices.
fn repeated(text: &str) -> String {
    let (header, body) = text.split_once("#BEGIN_TB").expect("a trace has thread blocks");
    let blocks: Vec<&str> = body.split("#BEGIN_TB").collect();
    let rounds = TEXT / body.len() + 1;
    let grid = format!("-grid dim = ({},1,1)", blocks.len() * rounds);
    let old = format!("-grid dim = ({},1,1)", blocks.len());
    let mut out = header.replace(&old, &grid);
    for index in 0..blocks.len() * rounds {
        let block = blocks[index % blocks.len()];
        let old = format!("thread block = {},0,0", index % blocks.len());
        out += "#BEGIN_TB";
        out += &block.replacen(&old, &format!("thread block = {index},0,0"), 1);
    }
    out
}
