//! The benchmarks' generated programs, each on its machine.

use std::sync::Arc;
use tombolo_system::{RunSpec, place};
use tombolo_types::stream::{Access, Accesses, Command, ComputeClass, CtaStream, KernelInfo, Op, Program, StreamError};
use tombolo_types::{Line, LineSize, Mask, Order};

/// Warps per CTA.
const WARPS: u32 = 8;

/// A program with streams computed from the CTA's number.
struct GeneratedProgram {
    name: &'static str,
    kernels: Vec<KernelInfo>,
    commands: Vec<Command>,
    write: fn(kernel: u32, warp: u64, &mut CtaStream),
}

impl GeneratedProgram {
    fn program(name: &'static str, ctas: &[u32], write: fn(u32, u64, &mut CtaStream)) -> Arc<dyn Program> {
        let kernel = |&ctas: &u32| KernelInfo {
            name: name.into(),
            ctas,
            threads_per_cta: 32 * WARPS,
            registers: 32,
            ..KernelInfo::default()
        };
        let commands = (0..ctas.len() as u32).map(|kernel| Command::launch(kernel, 0)).collect();
        Arc::new(GeneratedProgram { name, kernels: ctas.iter().map(kernel).collect(), commands, write })
    }
}

impl Program for GeneratedProgram {
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

/// Lines in each of three arrays with 64 MB in total.
const STREAM_LINES: u64 = (64 << 20) / 128 / 3;

/// Two loads, a store and ten arithmetic instructions per warp; each line is touched once.
fn stream(_: u32, warp: u64, out: &mut CtaStream) {
    compute(out, 4);
    load(out, [warp], Mask::ALL);
    load(out, [STREAM_LINES + warp], Mask::ALL);
    out.ops.push(Op::Use { distance: 1 });
    compute(out, 6);
    store(out, 2 * STREAM_LINES + warp);
}

/// Lines over which a gather scatters its accesses: 2 GB.
const GATHER_LINES: u64 = 1 << 24;

/// An index load, a gather over 32 lines, a store, ten arithmetic instructions: 2.6 transactions each.
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

/// Warps in the remote program, and lines per warp.
const REMOTE_WARPS: u64 = 1 << 16;
const REMOTE_LINES: u64 = 8;

/// Kernel 0 touches a line in each page from the page's home; kernel 1 reads the data located one GPU further.
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

/// Warps in the reuse program, warps per module (among sixteen), lines shared by a module's warps (2 MB), and reads per
/// warp.
const REUSE_WARPS: u64 = 1 << 15;
const REUSE_SHARERS: u64 = REUSE_WARPS / 16;
const REUSE_LINES: u64 = 1 << 14;
const REUSE_READS: u64 = 64;

/// Each module's warps read a common set of lines in different orders, more than an L1 holds and less than an L2.
fn reuse(_: u32, warp: u64, out: &mut CtaStream) {
    let first = warp / REUSE_SHARERS * REUSE_LINES;
    for read in 0..REUSE_READS {
        // The upper bits in a product with the 64-bit golden ratio spread the reads over all lines.
        let hash = (warp * REUSE_READS + read).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        load(out, [first + (hash >> (64 - REUSE_LINES.ilog2()))], Mask::ALL);
        compute(out, 2);
    }
    out.ops.push(Op::Use { distance: 1 });
    compute(out, 4);
}

/// A benchmark's run on one thread: streaming or a gather on one V100, or reads from an L2 or from another GPU on
/// `hmg-4x4`.
///
/// # Panics
/// If the case or the design does not exist.
pub(crate) fn spec(design: &str, case: &str) -> RunSpec {
    let ctas = |warps: u64| (warps / u64::from(WARPS)) as u32;
    let (machine, program) = match case {
        "stream" => ("v100", GeneratedProgram::program("stream", &[ctas(STREAM_LINES)], stream)),
        "gather" => ("v100", GeneratedProgram::program("gather", &[4096], gather)),
        "reuse" => ("hmg-4x4", GeneratedProgram::program("reuse", &[ctas(REUSE_WARPS)], reuse)),
        "remote" => ("hmg-4x4", GeneratedProgram::program("remote", &[ctas(REMOTE_WARPS); 2], remote)),
        other => panic!("there is no case {other}"),
    };
    let machine = tombolo_machine::machine(machine).expect("a preset").check();
    let machine = Arc::new(machine.expect("a preset is sound"));
    let design = tombolo_design::design(design).expect("a preset").check().expect("a preset is sound");
    let pages = place(&machine, &design, &*program).expect("a generated program is whole");
    RunSpec { machine, design, program, pages: Some(pages), threads: 1 }
}
