//! Trace summary in numbers, for inspection before simulation.

use super::error::TraceError;
use super::footprint::Footprint;
use super::table;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use tombolo_types::stream::{Command, CtaStream, Op, Program};
use tombolo_types::{HostPhase, LineSize};

/// Memory instructions (warp instructions) by the memory they address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spaces {
    /// Device memory.
    pub global: u64,
    /// Stacks and spilled registers, also in device memory.
    pub local: u64,
    /// The scratchpad of a CTA.
    pub shared: u64,
    /// Constant banks; only an issue slot is simulated.
    pub constant: u64,
    /// Textures and surfaces.
    pub texture: u64,
}

/// An opcode with an execution count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpcodeCount {
    /// Name of the operation, up to the first dot.
    pub name: String,
    /// Warp instructions.
    pub count: u64,
}

/// How much of an operation a trace holds, and what of it is not simulated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OperationCoverage {
    /// Name of the operation: of an instruction set, or of a table's rows.
    pub name: String,
    /// Warp instructions of all launches.
    pub instructions: u64,
    /// Bytes that these instructions read or write in memory: of lanes, before coalescing, for an instruction set; of
    /// line transactions otherwise.
    pub bytes: u64,
    /// Effect missing from the simulation; `None` if the simulation has all effects.
    pub not_simulated: Option<String>,
}

impl OperationCoverage {
    /// An operation that did not occur so far.
    pub(super) fn new(name: &str, not_simulated: Option<&str>) -> OperationCoverage {
        OperationCoverage {
            name: name.to_owned(),
            instructions: 0,
            bytes: 0,
            not_simulated: not_simulated.map(str::to_owned),
        }
    }
}

/// A recorder's information about a kernel beyond its stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KernelOrigin {
    pub(super) source: String,
    pub(super) grid: [u32; 3],
    pub(super) block: [u32; 3],
    pub(super) memory: Spaces,
}

/// A recorder's information about a program beyond its streams. A native trace keeps this information.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Origin {
    pub(super) format: String,
    pub(super) tracer_version: Option<u32>,
    /// Per-kernel information, in the program's kernel order.
    pub(super) kernels: Vec<KernelOrigin>,
    pub(super) unknown_opcodes: Vec<OpcodeCount>,
    /// Counts by operation over all launches, sorted by name; older files lack them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) operations: Option<Vec<OperationCoverage>>,
    pub(super) notes: Vec<String>,
}

/// Summary for a kernel in a trace. Counts are per launch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KernelSummary {
    /// Kernel name, mangled if the trace gives a mangled name.
    pub name: String,
    /// File in which the kernel was recorded, if known.
    pub source: Option<String>,
    /// Number of launches.
    pub launches: u64,
    /// CTAs in x, y, z; a kernel recorded without dimensions has all its CTAs in x.
    pub grid: [u32; 3],
    /// Threads per CTA in x, y, z; without recorded dimensions, all threads are in x.
    pub block: [u32; 3],
    /// Number of CTAs.
    pub ctas: u64,
    /// Warps in all CTAs.
    pub warps: u64,
    /// Scratchpad bytes per CTA.
    pub shared_bytes: u32,
    /// Registers per thread; 0 if unknown.
    pub registers: u32,
    /// Warp instructions.
    pub warp_instructions: u64,
    /// Memory instructions by space. A kernel that was not traced on hardware has only global and shared accesses.
    pub memory_instructions: Spaces,
    /// Line transactions that leave the coalescers.
    pub transactions: u64,
}

/// Copies between host and device in a given direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CopySummary {
    /// Number of copies.
    pub count: u64,
    /// Total bytes of all copies.
    pub bytes: u64,
}

/// Host accesses to device memory at the start or end of a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct HostSummary {
    /// Bytes that the host reads; each byte counts once.
    pub read_bytes: u64,
    /// Bytes that the host writes; each byte counts once.
    pub written_bytes: u64,
}

impl HostSummary {
    /// Summarises a host phase.
    pub fn of(phase: &HostPhase) -> HostSummary {
        HostSummary { read_bytes: phase.read_bytes(), written_bytes: phase.written_bytes() }
    }
}

/// Summary of a whole trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TraceInfo {
    /// Name of the program.
    pub name: String,
    /// `NVBit`, `table`, or `native` for a recording of a workload. An imported NVBit trace keeps the name of its format.
    pub format: String,
    /// Version of the recording tracer.
    pub tracer_version: Option<u32>,
    /// Line size for which transactions and footprint are counted, in bytes.
    pub line_bytes: u64,
    /// Lanes per warp.
    pub warp_width: u32,
    /// Kernels, ordered by first launch.
    pub kernels: Vec<KernelSummary>,
    /// Copies from host to device.
    pub copies_to_device: CopySummary,
    /// Copies from device to host.
    pub copies_to_host: CopySummary,
    /// Host accesses before the first command: [`Program::setup`].
    pub setup: HostSummary,
    /// Host accesses after the last command: [`Program::results`].
    pub results: HostSummary,
    /// Warp instructions of all launches.
    pub warp_instructions: u64,
    /// Line transactions of all launches.
    pub transactions: u64,
    /// Distinct lines accessed by kernels.
    pub footprint_lines: u64,
    /// Total size of all accessed lines in bytes.
    pub footprint_bytes: u64,
    /// Counts by operation, sorted by name.
    pub operations: Vec<OperationCoverage>,
    /// Opcodes unknown to the reader: each takes only an issue slot. Sorted by name.
    pub unknown_opcodes: Vec<OpcodeCount>,
    /// Notes for readers of results.
    pub notes: Vec<String>,
}

/// Summarises the contents of `program`. `format`: the name of its format, if no origin tells it.
pub(super) fn summarise(program: &dyn Program, origin: Option<&Origin>, format: &str) -> Result<TraceInfo, TraceError> {
    let mut footprint = Footprint::default();
    let mut streams = StreamCoverage::default();
    let mut kernels = Vec::with_capacity(program.kernels().len());
    for index in 0..program.kernels().len() as u32 {
        kernels.push(summarise_kernel(program, index, origin, &mut footprint, &mut streams)?);
    }
    let total = |count: fn(&KernelSummary) -> u64| kernels.iter().map(|kernel| count(kernel) * kernel.launches).sum();
    let (warp_instructions, transactions) =
        (total(|kernel| kernel.warp_instructions), total(|kernel| kernel.transactions));
    let [copies_to_host, copies_to_device] = copies(program.commands());
    Ok(TraceInfo {
        name: program.name().to_owned(),
        format: origin.map_or_else(|| format.to_owned(), |origin| origin.format.clone()),
        tracer_version: origin.and_then(|origin| origin.tracer_version),
        line_bytes: program.line_size().bytes(),
        warp_width: program.warp_width(),
        kernels,
        copies_to_device,
        copies_to_host,
        setup: HostSummary::of(program.setup()),
        results: HostSummary::of(program.results()),
        warp_instructions,
        transactions,
        footprint_lines: footprint.lines(),
        footprint_bytes: footprint.lines() * program.line_size().bytes(),
        operations: origin.and_then(|origin| origin.operations.clone()).unwrap_or_else(|| streams.operations()),
        unknown_opcodes: origin.map_or_else(Vec::new, |origin| origin.unknown_opcodes.clone()),
        notes: notes(program, origin),
    })
}

/// Notes for readers of results: remarks from the recorder, and program features that this version does not simulate.
pub(super) fn notes(program: &dyn Program, origin: Option<&Origin>) -> Vec<String> {
    let mut notes = origin.map_or_else(Vec::new, |origin| origin.notes.clone());
    let streams: BTreeSet<u32> = program
        .commands()
        .iter()
        .filter_map(|command| if let Command::Launch { stream, .. } = command { Some(*stream) } else { None })
        .collect();
    if streams.len() > 1 {
        notes.push(format!(
            "the kernels of {} CUDA streams run side by side: what they wait for of each other is known only where \
             the trace lists a wait or a copy of the host",
            streams.len()
        ));
    }
    if program.arrays().is_empty() {
        notes.push(
            "the trace names neither arrays nor what the host does to them: which kernel uses which array is not known"
                .to_owned(),
        );
    }
    notes
}

fn summarise_kernel(
    program: &dyn Program,
    index: u32,
    origin: Option<&Origin>,
    footprint: &mut Footprint,
    streams: &mut StreamCoverage,
) -> Result<KernelSummary, TraceError> {
    let launch = |command: &&Command| matches!(command, Command::Launch { kernel, .. } if *kernel == index);
    let launches = program.commands().iter().filter(launch).count() as u64;
    let info = &program.kernels()[index as usize];
    let origin = origin.and_then(|origin| origin.kernels.get(index as usize));
    let mut stream = CtaStream::default();
    let (mut warps, mut warp_instructions, mut transactions) = (0, 0, 0);
    let mut counted = Spaces::default();
    for cta in 0..info.ctas {
        program.cta(index, cta, &mut stream).map_err(|source| TraceError::Stream { kernel: index, cta, source })?;
        warps += stream.warps.len() as u64;
        warp_instructions += stream.instructions();
        transactions += stream.accesses.len() as u64;
        stream.accesses.iter().for_each(|access| footprint.add(access.line));
        for op in &stream.ops {
            streams.add(op, &stream, program.line_size(), launches);
            match op {
                Op::Load { .. } | Op::Store { .. } | Op::Atomic { .. } | Op::WaitUntil { .. } => counted.global += 1,
                Op::Shared { .. } => counted.shared += 1,
                Op::Compute { .. } | Op::Fence { .. } | Op::Barrier | Op::Use { .. } | Op::Signal { .. } => {}
            }
        }
    }
    Ok(KernelSummary {
        name: info.name.clone(),
        source: origin.map(|origin| origin.source.clone()),
        launches,
        grid: origin.map_or([info.ctas, 1, 1], |origin| origin.grid),
        block: origin.map_or([info.threads_per_cta, 1, 1], |origin| origin.block),
        ctas: u64::from(info.ctas),
        warps,
        shared_bytes: info.shared_bytes,
        registers: info.registers,
        warp_instructions,
        memory_instructions: origin.map_or(counted, |origin| origin.memory),
        transactions,
    })
}

/// Counts by operation of decoded streams, for programs without a recorder's counts.
#[derive(Default)]
struct StreamCoverage(BTreeMap<&'static str, (u64, u64)>);

impl StreamCoverage {
    /// Counts `op` of `stream`, which runs `launches` times.
    fn add(&mut self, op: &Op, stream: &CtaStream, line_size: LineSize, launches: u64) {
        let accesses = match *op {
            Op::Load { accesses, .. } | Op::Store { accesses, .. } | Op::Atomic { accesses, .. } => accesses.range(),
            Op::WaitUntil { access, .. } => access as usize..access as usize + 1,
            _ => 0..0,
        };
        let name = match op {
            Op::Compute { class, .. } => table::class_word(*class),
            Op::Load { .. } => "load",
            Op::Store { .. } => "store",
            Op::Atomic { .. } => "atomic",
            Op::Fence { .. } => "fence",
            Op::Shared { .. } => "shared",
            Op::Barrier => "barrier",
            Op::WaitUntil { .. } => "wait",
            Op::Use { .. } | Op::Signal { .. } => return,
        };
        let grains: u64 = stream.accesses[accesses].iter().map(|access| u64::from({ access.mask }.grains())).sum();
        let (instructions, bytes) = self.0.entry(name).or_default();
        *instructions += op.instructions() * launches;
        *bytes += grains * line_size.grain() * launches;
    }

    fn operations(self) -> Vec<OperationCoverage> {
        let operation = |(name, (instructions, bytes))| OperationCoverage {
            instructions,
            bytes,
            ..OperationCoverage::new(name, None)
        };
        self.0.into_iter().map(operation).collect()
    }
}

/// Summaries of all copies: to the host first, then to the device.
fn copies(commands: &[Command]) -> [CopySummary; 2] {
    let mut summaries = [CopySummary::default(); 2];
    for command in commands {
        if let Command::Copy { bytes, to_device, .. } = command {
            let summary = &mut summaries[usize::from(*to_device)];
            summary.count += 1;
            summary.bytes = summary.bytes.saturating_add(*bytes);
        }
    }
    summaries
}
