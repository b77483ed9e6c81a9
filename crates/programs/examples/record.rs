//! Records workloads and prints the recording cost: time, compressed size, memory, and decoding time.
//!
//! ```text
//! cargo run --release -p tombolo-programs --example record -- SCALE [THREADS [WORKLOAD[,key=value…]…]]
//! ```
//!
//! `M instr` counts each kernel once, `M run` counts each launch; `CTAs` is the mean CTA count per launch, weighted by
//! the launch's instructions.
//!
//! To measure peak memory, run a single workload at a time: the operating system reports the peak of the process.

use std::error::Error;
use std::time::Instant;
use tombolo_programs::{find, list};
use tombolo_types::stream::{Command, CtaStream, Op, Program};
use tombolo_workload::bench::{Mode, Request, Workload, record};
use tombolo_workload::record::RecordOptions;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let scale = arguments.first().map_or("1/16", String::as_str).parse()?;
    let threads = arguments.get(1).map_or(Ok(1), |text| text.parse())?;
    let named: Vec<&str> = arguments.iter().skip(2).map(String::as_str).collect();
    let all: Vec<&str> = list().iter().map(|workload| workload.name()).collect();
    println!(
        "workload        launches   kernels    M instr    M run  M trans  M ops  record s  M instr/s  B/instr  B/op  ns/instr  ns/op  arrays MB  peak MB    CTAs"
    );
    for text in if named.is_empty() { all } else { named } {
        let mut parts = text.split(',');
        let workload = find(parts.next().unwrap_or_default())?;
        let given = parts.map(|part| part.split_once('=').ok_or_else(|| format!("`{part}` is no key=value")));
        let given = given.map(|pair| pair.map(|(key, value)| (key.to_owned(), value.to_owned())));
        measure(workload, &Request::new(workload, scale, &given.collect::<Result<Vec<_>, _>>()?, 1)?, threads)?;
    }
    Ok(())
}

fn measure(workload: &dyn Workload, request: &Request, threads: u32) -> Result<(), Box<dyn Error>> {
    let options = RecordOptions { threads, ..RecordOptions::default() };
    let (start, started) = (Instant::now(), cpu_seconds());
    let recording = record(workload, request, &options, Mode::Auto)?;
    let recorded = elapsed(start, started, threads);
    let peak = peak_megabytes();
    let (mut stream, mut operations, mut instructions) = (CtaStream::default(), 0_u64, 0_u64);
    let mut transactions = 0_u64;
    let mut each = vec![0_u64; recording.kernels().len()];
    let (start, started) = (Instant::now(), cpu_seconds());
    for (kernel, info) in (0..).zip(recording.kernels()) {
        for cta in 0..info.ctas {
            recording.cta(kernel, cta, &mut stream)?;
            operations += stream.ops.len() as u64;
            transactions += stream.accesses.len() as u64;
            each[kernel as usize] += stream.instructions();
            instructions +=
                stream.ops.iter().filter(|op| !matches!(op, Op::Use { .. } | Op::Signal { .. })).count() as u64;
        }
    }
    let decoded = elapsed(start, started, 1) * 1e9;
    let launches = recording.commands().iter().filter_map(|command| match command {
        Command::Launch { kernel, .. } => Some(*kernel as usize),
        Command::Copy { .. } | Command::Host { .. } | Command::Barrier => None,
    });
    let launched: Vec<usize> = launches.collect();
    let run = launched.iter().map(|kernel| each[*kernel]).sum::<u64>();
    let weighted = launched.iter().map(|kernel| each[*kernel] as f64 * f64::from(recording.kernels()[*kernel].ctas));
    let ctas = weighted.sum::<f64>() / run as f64;
    let packed = recording.packed_bytes() as f64;
    println!(
        "{:<14} {:>9} {:>9} {:>10.2} {:>8.2} {:>8.2} {:>6.1} {:>9.2} {:>10.2} {:>8.2} {:>5.2} {:>9.2} {:>6.2} {:>10.0} {:>8.0} {ctas:>8.1}",
        workload.name(),
        recording.commands().len(),
        recording.kernels().len(),
        recording.instructions() as f64 / 1e6,
        run as f64 / 1e6,
        transactions as f64 / 1e6,
        operations as f64 / 1e6,
        recorded,
        instructions as f64 / 1e6 / recorded,
        packed / recording.instructions() as f64,
        packed / operations as f64,
        decoded / recording.instructions() as f64,
        decoded / operations as f64,
        recording.arrays().iter().map(|array| array.bytes).sum::<u64>() as f64 / 1e6,
        peak,
    );
    Ok(())
}

/// Seconds since `start`: this thread's processor time if the system reports this time and the recording used a single
/// thread, because a busy machine would distort wall-clock time.
fn elapsed(start: Instant, started: Option<f64>, threads: u32) -> f64 {
    match (started, cpu_seconds()) {
        (Some(before), Some(after)) if threads == 1 => after - before,
        _ => start.elapsed().as_secs_f64(),
    }
}

/// Processor time of this thread in seconds.
fn cpu_seconds() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(text.split(' ').next()?.parse::<f64>().ok()? * 1e-9)
}

/// Peak resident memory of this process in megabytes; 0 if the system does not report a value.
fn peak_megabytes() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<f64>().ok());
    kilobytes.unwrap_or_default() * 1.024e-3
}
