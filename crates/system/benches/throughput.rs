//! How fast the simulator is: warp instructions and line transactions a second of replay.
//!
//! `cargo bench -p tombolo-system --bench throughput [stream|gather|reuse|remote|threads|designs] [once]` prints one
//! line a case: the median of five runs and the spread; with `once`, one run and its transactions. The programs are
//! generated; replay alone is timed. Beside it, `purpose` says what its instructions are for.

use std::sync::Arc;
use tombolo_machine::MachineConfig;
use tombolo_system::{RunRecord, RunSpec, place, run};
use tombolo_types::stream::{Access, Accesses, Command, ComputeClass, CtaStream, KernelInfo, Op, Program, StreamError};
use tombolo_types::{Line, LineSize, Mask, Order};

/// The program's own allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Warps of a CTA.
const WARPS: u32 = 8;

/// A program whose streams are computed from the CTA's number.
struct Generated {
    name: &'static str,
    kernels: Vec<KernelInfo>,
    commands: Vec<Command>,
    write: fn(kernel: u32, warp: u64, &mut CtaStream),
}

impl Generated {
    fn program(name: &'static str, ctas: &[u32], write: fn(u32, u64, &mut CtaStream)) -> Arc<dyn Program> {
        let kernel = |&ctas: &u32| KernelInfo {
            name: name.into(),
            ctas,
            threads_per_cta: 32 * WARPS,
            registers: 32,
            ..KernelInfo::default()
        };
        let commands = (0..ctas.len() as u32).map(|kernel| Command::launch(kernel, 0)).collect();
        Arc::new(Generated { name, kernels: ctas.iter().map(kernel).collect(), commands, write })
    }
}

impl Program for Generated {
    fn name(&self) -> &str {
        self.name
    }

    fn line_size(&self) -> LineSize {
        LineSize::B128
    }

    fn warp_width(&self) -> u32 {
        32
    }

    fn kernels(&self) -> &[KernelInfo] {
        &self.kernels
    }

    fn commands(&self) -> &[Command] {
        &self.commands
    }

    fn cta(&self, kernel: u32, cta: u32, into: &mut CtaStream) -> Result<(), StreamError> {
        into.clear();
        for warp in 0..WARPS {
            let start = into.ops.len() as u32;
            (self.write)(kernel, u64::from(cta * WARPS + warp), into);
            into.warps.push(start..into.ops.len() as u32);
        }
        Ok(())
    }
}

fn accesses(stream: &mut CtaStream, lines: impl IntoIterator<Item = u64>, mask: Mask) -> Accesses {
    let start = stream.accesses.len() as u32;
    stream.accesses.extend(lines.into_iter().map(|line| Access { line: Line(line), mask }));
    Accesses { start, len: (stream.accesses.len() as u32 - start) as u8 }
}

fn load(stream: &mut CtaStream, lines: impl IntoIterator<Item = u64>, mask: Mask) {
    let accesses = accesses(stream, lines, mask);
    stream.ops.push(Op::Load { order: Order::WEAK.into(), accesses });
}

fn store(stream: &mut CtaStream, line: u64) {
    let accesses = accesses(stream, [line], Mask::ALL);
    stream.ops.push(Op::Store { order: Order::WEAK.into(), accesses });
}

fn compute(stream: &mut CtaStream, count: u16) {
    stream.ops.push(Op::occupy(ComputeClass::Fp32, count));
}

/// Lines of one of the three arrays of 64 MB together.
const STREAM_LINES: u64 = (64 << 20) / 128 / 3;

/// Two loads, a store and ten arithmetic instructions a warp, each line touched once.
fn stream(_: u32, warp: u64, out: &mut CtaStream) {
    compute(out, 4);
    load(out, [warp], Mask::ALL);
    load(out, [STREAM_LINES + warp], Mask::ALL);
    out.ops.push(Op::Use { distance: 1 });
    compute(out, 6);
    store(out, 2 * STREAM_LINES + warp);
}

/// Lines that a gather scatters over: 2 GB.
const GATHER_LINES: u64 = 1 << 24;

/// An index load, a gather of 32 lines, a store, ten arithmetic instructions: 2.6 transactions each.
fn gather(_: u32, warp: u64, out: &mut CtaStream) {
    compute(out, 4);
    load(out, [2 * GATHER_LINES + warp], Mask::ALL);
    out.ops.push(Op::Use { distance: 1 });
    compute(out, 2);
    // An odd multiplier modulo a power of two visits each line once.
    let line = |lane: u64| (warp * 32 + lane).wrapping_mul(0x9e37_79b1) % GATHER_LINES;
    load(out, (0..32).map(line), Mask(1));
    out.ops.push(Op::Use { distance: 1 });
    compute(out, 4);
    store(out, 3 * GATHER_LINES + warp);
}

/// Warps of the remote program, and lines of each.
const REMOTE_WARPS: u64 = 1 << 16;
const REMOTE_LINES: u64 = 8;

/// Kernel 0 touches a line of each page from its home; kernel 1 reads what lies a GPU further.
fn remote(kernel: u32, warp: u64, out: &mut CtaStream) {
    let shift = if kernel == 0 { 0 } else { REMOTE_WARPS / 4 };
    let first = (warp + shift) % REMOTE_WARPS * REMOTE_LINES;
    if kernel == 0 {
        load(out, [first], Mask::ALL);
        return;
    }
    for line in 0..REMOTE_LINES {
        load(out, [first + line], Mask::ALL);
        compute(out, 2);
    }
    out.ops.push(Op::Use { distance: 1 });
    compute(out, 4);
}

/// Warps of the reuse program, those of a module (of sixteen), the lines that they share (2 MB), and how many a warp reads.
const REUSE_WARPS: u64 = 1 << 15;
const REUSE_SHARERS: u64 = REUSE_WARPS / 16;
const REUSE_LINES: u64 = 1 << 14;
const REUSE_READS: u64 = 64;

/// Each module's warps read the same lines in orders of their own, more than an L1 holds and less than an L2.
fn reuse(_: u32, warp: u64, out: &mut CtaStream) {
    let first = warp / REUSE_SHARERS * REUSE_LINES;
    for read in 0..REUSE_READS {
        // The upper bits of a product with the 64-bit golden ratio spread the reads over all lines.
        let hash = (warp * REUSE_READS + read).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        load(out, [first + (hash >> (64 - REUSE_LINES.ilog2()))], Mask::ALL);
        compute(out, 2);
    }
    out.ops.push(Op::Use { distance: 1 });
    compute(out, 4);
}

fn preset(name: &str) -> Arc<MachineConfig> {
    let description = tombolo_machine::machine(name).expect("a preset");
    Arc::new(description.check().expect("a preset is sound"))
}

fn spec(machine: &str, program: Arc<dyn Program>, threads: usize) -> RunSpec {
    under("hmg", machine, program, threads)
}

fn under(design: &str, machine: &str, program: Arc<dyn Program>, threads: usize) -> RunSpec {
    let machine = preset(machine);
    let design = tombolo_design::design(design).expect("a preset").check().expect("a preset is sound");
    let pages = place(&machine, &design, &*program).expect("a generated program is whole");
    RunSpec { machine, design, program, pages: Some(pages), threads }
}

/// Whether each case is to run once, as under a profiler.
fn once() -> bool {
    std::env::args().any(|arg| arg == "once")
}

fn measure(name: &str, spec: &RunSpec) -> f64 {
    let runs = if once() { 1 } else { 5 };
    let mut records: Vec<RunRecord> = (0..runs).map(|_| run(spec).expect("a sound program runs")).collect();
    records.sort_by(|a, b| a.host.wall_s.total_cmp(&b.host.wall_s));
    let median = &records[records.len() / 2];
    println!(
        "{name}: {:.2} M warp instructions/s, {:.2} M transactions/s, {:.1} events/transaction, {:.0} ns/event; \
         {:.3} s (from {:.3} to {:.3}), digest {}",
        median.host.warp_instructions_per_s / 1e6,
        median.host.transactions_per_s / 1e6,
        median.host.events as f64 / median.transactions as f64,
        median.host.wall_s * 1e9 / median.host.events as f64 * median.host.threads as f64,
        median.host.wall_s,
        records[0].host.wall_s,
        records[records.len() - 1].host.wall_s,
        median.digest,
    );
    if once() {
        println!("{name}: {} transactions", median.transactions);
    }
    median.host.wall_s
}

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-') && arg != "once").collect();
    let wants = |name: &str| wanted.is_empty() || wanted.iter().any(|arg| arg == name);
    if wants("stream") {
        let ctas = (STREAM_LINES / u64::from(WARPS)) as u32;
        measure("stream", &spec("v100", Generated::program("stream", &[ctas], stream), 1));
    }
    if wants("gather") {
        measure("gather", &spec("v100", Generated::program("gather", &[4096], gather), 1));
    }
    if wants("reuse") {
        let ctas = (REUSE_WARPS / u64::from(WARPS)) as u32;
        measure("reuse", &spec("hmg-4x4", Generated::program("reuse", &[ctas], reuse), 1));
    }
    let ctas = (REMOTE_WARPS / u64::from(WARPS)) as u32;
    if wants("remote") {
        measure("remote", &spec("hmg-4x4", Generated::program("remote", &[ctas, ctas], remote), 1));
    }
    if wants("designs") {
        for design in ["no-remote-caching", "software-flat", "software-hierarchical", "nhcc", "ideal"] {
            let program = Generated::program("remote", &[ctas, ctas], remote);
            measure(&format!("remote, {design}"), &under(design, "hmg-4x4", program, 1));
        }
    }
    if wants("threads") {
        let program = Generated::program("remote", &[ctas, ctas], remote);
        let one = measure("remote, one thread", &spec("hmg-4x4", Arc::clone(&program), 1));
        let two = measure("remote, two threads", &spec("hmg-4x4", program, 2));
        println!("two threads are {:.2} times as fast as one", one / two);
    }
}
