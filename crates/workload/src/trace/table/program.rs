//! A table's program: launches from sorted rows, arrays at their addresses, and the host's commands.

use super::row::{AccessKind, WarpOperation};
use crate::encode::{decode, encode};
use crate::simt::coalesce::run;
use crate::simt::memory::{ALIGNMENT, FIRST_ADDRESS};
use crate::trace::error::Mismatch;
use rustc_hash::FxHashMap;
use tombolo_types::array::merge_ranges;
use tombolo_types::stream::{
    Access, Accesses, Command, CtaStream, KernelClass, KernelInfo, Op, Program, StreamError, Token,
};
use tombolo_types::{ArrayInfo, GpuId, GpuSet, HostPhase, LaunchDevices, LineSize};

/// Lanes per warp, as on NVIDIA's GPUs.
const WARP_WIDTH: u32 = 32;
/// Largest number of warps in a CTA. Source: assumed; CUDA allows 1,024 threads, which are 32 warps.
pub(super) const MOST_WARPS: u32 = 64;

/// A table, read whole.
pub(in crate::trace) struct TableProgram {
    name: String,
    line_size: LineSize,
    kernels: Vec<KernelInfo>,
    commands: Vec<Command>,
    arrays: Vec<ArrayInfo>,
    phases: Vec<HostPhase>,
    setup: HostPhase,
    results: HostPhase,
    /// The streams of each kernel.
    streams: Vec<EncodedCtas>,
}

/// Concatenated encodings of a kernel's CTAs.
#[derive(Default)]
pub(super) struct EncodedCtas {
    bytes: Vec<u8>,
    /// End of each stream in `bytes`.
    ends: Vec<usize>,
}

/// Bytes at an address, or at an offset into an array.
#[derive(Clone, Copy, Default)]
pub(super) struct Location {
    pub(super) array: Option<u32>,
    pub(super) address: u64,
    pub(super) bytes: u64,
}

/// A warp's position. Rows are sorted by it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct WarpPosition {
    pub(super) launch: u32,
    pub(super) gpu: Option<u8>,
    pub(super) cta: u32,
    pub(super) warp: u32,
}

/// A row of a warp.
pub(super) struct WarpRow {
    pub(super) position: WarpPosition,
    pub(super) operation: WarpOperation,
    pub(super) location: Location,
    /// The event that the operation leaves or awaits.
    pub(super) event: Option<u32>,
    pub(super) line: u64,
}

/// An operation of the host, in the table's order.
pub(super) enum HostStep {
    Launch(u32),
    Copy { location: Location, to_device: bool },
    Access { location: Location, writes: bool },
    Synchronize,
}

/// A launch while its rows are read.
pub(super) struct Launch {
    pub(super) info: KernelInfo,
    pub(super) threads: Option<u32>,
    pub(super) stream: u32,
    pub(super) has_gpus: bool,
    pub(super) events: FxHashMap<String, u32>,
    /// For each event, the row that leaves it, and the first row that awaits it.
    pub(super) uses: Vec<(Option<u64>, Option<u64>)>,
}

/// An array while its rows are read.
pub(super) struct NamedArray {
    pub(super) name: String,
    pub(super) bytes: u64,
    pub(super) declared: bool,
    pub(super) element: Option<u32>,
}

/// A launch while its CTAs are added.
#[derive(Default)]
pub(super) struct BuiltLaunch {
    streams: EncodedCtas,
    /// The largest number of a warp, and the line of the last row that names it.
    widest: (u32, u64),
    /// First CTA of each GPU, by GPU.
    parts: Vec<(u8, u32)>,
}

impl BuiltLaunch {
    /// Adds a CTA. `rows`: all its rows, by warp. CTAs come in the order of their GPUs and numbers.
    pub(super) fn add(
        &mut self,
        rows: &[WarpRow],
        arrays: &[ArrayInfo],
        line_size: LineSize,
    ) -> Result<(), (u64, Mismatch)> {
        let number = self.streams.ends.len() as u32;
        encode(&stream(rows, arrays, line_size)?, &mut self.streams.bytes);
        self.streams.ends.push(self.streams.bytes.len());
        let last = rows.last().expect("a CTA has rows");
        if last.position.warp >= self.widest.0 {
            self.widest = (last.position.warp, last.line);
        }
        if let Some(gpu) = last.position.gpu.filter(|gpu| self.parts.last().is_none_or(|(last, _)| last != gpu)) {
            self.parts.push((gpu, number));
        }
        Ok(())
    }
}

impl TableProgram {
    /// The whole program. An error has its row's line.
    pub(super) fn new(
        (name, line_size): (String, LineSize),
        launches: &[Launch],
        built: Vec<BuiltLaunch>,
        steps: &[HostStep],
        arrays: Vec<ArrayInfo>,
    ) -> Result<TableProgram, (u64, Mismatch)> {
        let named: GpuSet = built.iter().flat_map(|launch| &launch.parts).map(|(gpu, _)| GpuId(*gpu)).collect();
        let mut streams = Vec::with_capacity(launches.len());
        let mut kernels = Vec::with_capacity(launches.len());
        let mut devices = Vec::with_capacity(launches.len());
        for (launch, built) in launches.iter().zip(built) {
            let (info, on) = described(launch, &built, named)?;
            kernels.push(info);
            devices.push(on);
            streams.push(built.streams);
        }
        let HostProgram { commands, phases, setup, results } = host_program(steps, launches, &devices, &arrays);
        Ok(TableProgram { name, line_size, kernels, commands, arrays, phases, setup, results, streams })
    }
}

impl Launch {
    /// Returns an error if an awaited event is never left.
    pub(super) fn check_events(&self) -> Result<(), (u64, Mismatch)> {
        let lost = self.uses.iter().find_map(|(left, awaited)| awaited.filter(|_| left.is_none()));
        let expected = "a store or an atomic of the launch that leaves the awaited event";
        lost.map_or(Ok(()), |line| Err((line, Mismatch { expected: expected.to_owned(), found: "none".to_owned() })))
    }
}

/// The CTA of a row.
pub(super) fn cta_of(row: &WarpRow) -> (Option<u8>, u32) {
    (row.position.gpu, row.position.cta)
}

/// Arrays at their addresses.
pub(super) fn laid_out(arrays: &[NamedArray]) -> Vec<ArrayInfo> {
    let mut base = FIRST_ADDRESS;
    let place = |array: &NamedArray| {
        let NamedArray { ref name, bytes, element, .. } = *array;
        let info = ArrayInfo { name: name.clone(), base, bytes, element };
        base += bytes.max(1).next_multiple_of(ALIGNMENT);
        info
    };
    arrays.iter().map(place).collect()
}

/// The address of a location.
fn address(location: Location, arrays: &[ArrayInfo]) -> u64 {
    location.array.map_or(0, |array| arrays[array as usize].base) + location.address
}

/// The kernel and the devices of a launch, in a table that names the GPUs `named`. A launch on GPUs 0
/// to n - 1, several of them, which are all that the table names, is one on the whole machine.
fn described(
    launch: &Launch,
    built: &BuiltLaunch,
    named: GpuSet,
) -> Result<(KernelInfo, LaunchDevices), (u64, Mismatch)> {
    let (widest, line) = built.widest;
    let (ctas, warps) = (built.streams.ends.len() as u32, widest + 1);
    let threads_per_cta = launch.threads.unwrap_or(warps * WARP_WIDTH);
    if threads_per_cta.div_ceil(WARP_WIDTH) < warps || threads_per_cta > MOST_WARPS * WARP_WIDTH {
        let expected = format!("a launch of {threads_per_cta} threads a CTA, at most {}", MOST_WARPS * WARP_WIDTH);
        return Err((line, Mismatch { expected, found: format!("warp {widest}") }));
    }
    let waits = launch.uses.iter().any(|(_, awaited)| awaited.is_some());
    let class = if waits { KernelClass::Cooperative } else { KernelClass::Independent };
    let parts = &built.parts;
    let gpus: GpuSet = parts.iter().map(|(gpu, _)| GpuId(*gpu)).collect();
    let all = u8::try_from(parts.len()).ok().filter(|several| *several > 1).map(GpuSet::first);
    let is_whole = gpus == named && all == Some(named);
    let on = if launch.has_gpus && !is_whole { LaunchDevices::Gpus(gpus) } else { LaunchDevices::All };
    let parts = if parts.len() > 1 { parts.iter().map(|(_, first)| *first).collect() } else { Vec::new() };
    Ok((KernelInfo { ctas, threads_per_cta, class, parts, ..launch.info.clone() }, on))
}

/// The stream of a CTA, from its rows.
fn stream(rows: &[WarpRow], arrays: &[ArrayInfo], line_size: LineSize) -> Result<CtaStream, (u64, Mismatch)> {
    let mut stream = CtaStream::default();
    for warp in rows.chunk_by(|one, other| one.position.warp == other.position.warp) {
        // Warps without a row end at once.
        let first = stream.ops.len() as u32;
        stream.warps.resize(warp[0].position.warp as usize, first..first);
        let mut rows = warp.iter().peekable();
        while let Some(row) = rows.next() {
            let start = stream.accesses.len();
            if row.operation.has_address() {
                cover(row.location, arrays, line_size, start, &mut stream.accesses);
            }
            while let Some(more) = rows.next_if(|next| next.operation == WarpOperation::More) {
                cover(more.location, arrays, line_size, start, &mut stream.accesses);
                if !matches!(row.operation, WarpOperation::Access(kind, _) if kind != AccessKind::Wait) {
                    return Err((
                        more.line,
                        expected("a row behind a load, a store or an atomic of its warp", "`and`"),
                    ));
                }
            }
            let lines = stream.accesses.len() - start;
            let len = u8::try_from(lines)
                .map_err(|_| (row.line, expected("an access of at most 255 lines", &format!("{lines}"))))?;
            operation(row, Accesses { start: start as u32, len }, &mut stream)?;
        }
        stream.warps.push(first..stream.ops.len() as u32);
    }
    Ok(stream)
}

fn expected(expected: &str, found: &str) -> Mismatch {
    Mismatch { expected: expected.to_owned(), found: found.to_owned() }
}

/// Adds a row's operation to its warp.
fn operation(row: &WarpRow, accesses: Accesses, stream: &mut CtaStream) -> Result<(), (u64, Mismatch)> {
    let mut token = |event: u32| {
        let known = stream.tokens.iter().position(|token| token.0 == event);
        let place = known.unwrap_or_else(|| {
            stream.tokens.push(Token(event));
            stream.tokens.len() - 1
        });
        u16::try_from(place).map_err(|_| (row.line, expected("at most 65536 events a CTA", "more")))
    };
    let token = row.event.map(&mut token).transpose()?;
    stream.ops.push(match row.operation {
        WarpOperation::Plain(op) => op,
        WarpOperation::More => {
            return Err((row.line, expected("a row behind a load, a store or an atomic of its warp", "`and`")));
        }
        WarpOperation::Access(AccessKind::Load, order) => Op::Load { order, accesses },
        WarpOperation::Access(AccessKind::Store, order) => Op::Store { order, accesses },
        WarpOperation::Access(AccessKind::Atomic(result), order) => Op::Atomic { order, result, accesses },
        WarpOperation::Access(AccessKind::Wait, order) => {
            if accesses.len != 1 {
                return Err((row.line, expected("a flag inside a line", "a flag that crosses lines")));
            }
            let token = token.expect("a wait has an event");
            stream.ops.push(Op::WaitUntil { order, access: accesses.start, token });
            return Ok(());
        }
    });
    stream.ops.extend(token.map(|token| Op::Signal { token }));
    Ok(())
}

/// Adds the lines of a location to an access whose lines begin at `start`.
fn cover(location: Location, arrays: &[ArrayInfo], line_size: LineSize, start: usize, accesses: &mut Vec<Access>) {
    let first = accesses.len();
    run(line_size, address(location, arrays), location.bytes, accesses);
    // Further bytes of a line that the access has already.
    if first > start {
        let added = accesses.split_off(first);
        for access in added {
            match accesses[start..].iter_mut().find(|known| { known.line } == { access.line }) {
                Some(known) => known.mask |= access.mask,
                None => accesses.push(access),
            }
        }
    }
}

/// The host's part of a program.
struct HostProgram {
    commands: Vec<Command>,
    phases: Vec<HostPhase>,
    setup: HostPhase,
    results: HostPhase,
}

fn host_program(
    steps: &[HostStep],
    launches: &[Launch],
    devices: &[LaunchDevices],
    arrays: &[ArrayInfo],
) -> HostProgram {
    let is_access = |step: &&HostStep| matches!(step, HostStep::Access { .. });
    let leading = steps.iter().take_while(is_access).count();
    let trailing = steps.len() - steps.iter().rev().take_while(is_access).count();
    let is_told = steps.iter().any(|step| is_access(&step));
    let is_launch = |step: &HostStep| matches!(step, HostStep::Launch(_));
    let first = steps.iter().position(is_launch).expect("a table has a launch");
    let last = steps.iter().rposition(is_launch).expect("a table has a launch");
    let (mut commands, mut phases) = (Vec::new(), Vec::new());
    let (mut setup, mut results) = (HostPhase::default(), HostPhase::default());
    let mut open: Option<HostPhase> = None;
    for (index, step) in steps.iter().enumerate() {
        if let HostStep::Access { location, writes } = step {
            let begin = address(*location, arrays);
            let range = begin..begin + location.bytes;
            let phase = match index {
                _ if index < leading => &mut setup,
                _ if index >= trailing => &mut results,
                _ => open.get_or_insert_default(),
            };
            if *writes {
                phase.writes.push(range)
            } else {
                phase.reads.push(range)
            }
            continue;
        }
        if let Some(phase) = open.take() {
            commands.push(Command::Host { phase: phases.len() as u32 });
            phases.push(phase);
        }
        commands.push(match *step {
            HostStep::Launch(kernel) => {
                let (stream, on) = (launches[kernel as usize].stream, devices[kernel as usize]);
                Command::Launch { kernel, stream, on }
            }
            HostStep::Copy { location, to_device } => {
                let (address, bytes) = (address(location, arrays), location.bytes);
                // Copied data has contents, and results are read: unless the table says what the host accesses.
                if to_device && index < first && !is_told {
                    setup.writes.push(address..address + bytes);
                } else if !to_device && index > last && !is_told {
                    results.reads.push(address..address + bytes);
                }
                Command::Copy { address, bytes, to_device }
            }
            HostStep::Synchronize => Command::Barrier,
            HostStep::Access { .. } => unreachable!("it is taken above"),
        });
    }
    for phase in phases.iter_mut().chain([&mut setup, &mut results]) {
        merge_ranges(&mut phase.reads);
        merge_ranges(&mut phase.writes);
    }
    HostProgram { commands, phases, setup, results }
}

impl Program for TableProgram {
    fn name(&self) -> &str {
        &self.name
    }

    fn line_size(&self) -> LineSize {
        self.line_size
    }

    fn warp_width(&self) -> u32 {
        WARP_WIDTH
    }

    fn kernels(&self) -> &[KernelInfo] {
        &self.kernels
    }

    fn commands(&self) -> &[Command] {
        &self.commands
    }

    fn arrays(&self) -> &[ArrayInfo] {
        &self.arrays
    }

    fn host_phases(&self) -> &[HostPhase] {
        &self.phases
    }

    fn setup(&self) -> &HostPhase {
        &self.setup
    }

    fn results(&self) -> &HostPhase {
        &self.results
    }

    fn cta(&self, kernel: u32, cta: u32, into: &mut CtaStream) -> Result<(), StreamError> {
        let EncodedCtas { bytes, ends } = &self.streams[kernel as usize];
        let start = cta.checked_sub(1).map_or(0, |before| ends[before as usize]);
        decode(&bytes[start..ends[cta as usize]], into).map(|_| ())
    }
}
