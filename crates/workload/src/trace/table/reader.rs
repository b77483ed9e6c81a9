//! Reads a table as a program.

use super::row::{AccessKind, Column, Columns, HostOperation, LAST_ADDRESS, Row, WarpOperation, refused};
use crate::encode::{decode, encode};
use crate::simt::coalesce::run;
use crate::simt::memory::{ALIGNMENT, FIRST_ADDRESS};
use crate::trace::container::open_text;
use crate::trace::error::{Mismatch, TraceError};
use rustc_hash::FxHashMap;
use std::path::Path;
use tombolo_types::array::merge_ranges;
use tombolo_types::stream::{
    Access, Accesses, Command, CtaStream, KernelClass, KernelInfo, Op, Program, StreamError, Token,
};
use tombolo_types::{ArrayInfo, GpuId, GpuSet, HostPhase, LaunchDevices, LineSize};

/// Lanes per warp, as on NVIDIA's GPUs.
const WARP_WIDTH: u32 = 32;
/// Largest number of CTAs in a launch on one GPU. Source: assumed.
const MOST_CTAS: u32 = 1 << 24;
/// Largest number of warps in a CTA. Source: assumed; CUDA allows 1,024 threads, which are 32 warps.
const MOST_WARPS: u32 = 64;

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
struct EncodedCtas {
    bytes: Vec<u8>,
    /// End of each stream in `bytes`.
    ends: Vec<usize>,
}

/// Bytes at an address, or at an offset into an array.
#[derive(Clone, Copy, Default)]
struct Location {
    array: Option<u32>,
    address: u64,
    bytes: u64,
}

/// A warp's position. Rows are sorted by it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct WarpPosition {
    launch: u32,
    gpu: Option<u8>,
    cta: u32,
    warp: u32,
}

/// A row of a warp.
struct WarpRow {
    position: WarpPosition,
    operation: WarpOperation,
    location: Location,
    /// The event that the operation leaves or awaits.
    event: Option<u32>,
    line: u64,
}

/// An operation of the host, in the table's order.
enum HostStep {
    Launch(u32),
    Copy { location: Location, to_device: bool },
    Access { location: Location, writes: bool },
    Synchronize,
}

/// A launch while its rows are read.
struct Launch {
    info: KernelInfo,
    threads: Option<u32>,
    stream: u32,
    has_gpus: bool,
    events: FxHashMap<String, u32>,
    /// For each event, the row that leaves it, and the first row that awaits it.
    uses: Vec<(Option<u64>, Option<u64>)>,
}

/// An array while its rows are read.
struct NamedArray {
    name: String,
    bytes: u64,
    declared: bool,
    element: Option<u32>,
}

/// The table while it is read.
#[derive(Default)]
struct TableReader {
    arrays: Vec<NamedArray>,
    array_numbers: FxHashMap<String, u32>,
    launches: Vec<Launch>,
    launch_numbers: FxHashMap<(String, u64), u32>,
    steps: Vec<HostStep>,
    rows: Vec<WarpRow>,
    /// True if accesses name arrays, false if they do not, once one was read.
    by_array: Option<bool>,
}

impl TableProgram {
    /// Reads the table at `path` in lines of `line_size`.
    pub(in crate::trace) fn open(path: &Path, name: String, line_size: LineSize) -> Result<TableProgram, TraceError> {
        let mut table = csv::ReaderBuilder::new();
        let mut table = table.comment(Some(b'#')).trim(csv::Trim::All).from_reader(open_text(path)?);
        let header = table.headers().map_err(|error| refused(path, error))?;
        let header_line = header.position().map_or(1, csv::Position::line);
        let columns = Columns::of(header).map_err(|mismatch| mismatch.at(path, header_line))?;
        let mut reader = TableReader::default();
        let mut record = csv::StringRecord::new();
        let mut line = header_line;
        while table.read_record(&mut record).map_err(|error| refused(path, error))? {
            line = record.position().map_or(line, csv::Position::line);
            let row = Row { columns: &columns, record: &record };
            reader.row(&row, line).map_err(|mismatch| mismatch.at(path, line))?;
        }
        if reader.rows.is_empty() {
            return Err(Mismatch::end("a row with an operation of a kernel").at(path, line));
        }
        reader.program(name, line_size).map_err(|(line, mismatch)| mismatch.at(path, line))
    }
}

impl TableReader {
    fn row(&mut self, row: &Row<'_>, line: u64) -> Result<(), Mismatch> {
        if row.text(Column::Kernel).is_empty() { self.host(row) } else { self.warp(row, line) }
    }

    fn host(&mut self, row: &Row<'_>) -> Result<(), Mismatch> {
        let step = match row.host_operation()? {
            HostOperation::Array => return self.declare(row),
            HostOperation::Synchronize => HostStep::Synchronize,
            HostOperation::Copy { to_device } => HostStep::Copy { location: self.located(row)?, to_device },
            HostOperation::Access { writes } => HostStep::Access { location: self.located(row)?, writes },
        };
        self.steps.push(step);
        Ok(())
    }

    fn declare(&mut self, row: &Row<'_>) -> Result<(), Mismatch> {
        let number = self.array(row)?.ok_or_else(|| row.mismatch(Column::Array, "the name of the array"))?;
        let (_, bytes) = row.bytes(LAST_ADDRESS)?;
        let element = row.optional(Column::Count)?;
        let array = &mut self.arrays[number as usize];
        if array.declared {
            return Err(row.mismatch(Column::Array, "an array that no earlier row declares"));
        }
        if bytes < array.bytes {
            return Err(row.mismatch(Column::Bytes, &format!("at least {}, which earlier rows access", array.bytes)));
        }
        (array.bytes, array.declared, array.element) = (bytes, true, element);
        Ok(())
    }

    fn warp(&mut self, row: &Row<'_>, line: u64) -> Result<(), Mismatch> {
        let gpu = row.optional(Column::Gpu)?;
        let launch = self.launch(row, gpu.is_some())?;
        let (cta, warp) = (row.number(Column::Cta, 0_u32)?, row.number(Column::Warp, 0_u32)?);
        if cta >= MOST_CTAS {
            return Err(row.mismatch(Column::Cta, &format!("a number below {MOST_CTAS}")));
        }
        if warp >= MOST_WARPS {
            return Err(row.mismatch(Column::Warp, &format!("a number below {MOST_WARPS}")));
        }
        let operation = row.warp_operation()?;
        let location = if operation.has_address() { self.accessed(row)? } else { Location::default() };
        let event = self.event(row, launch, operation, line)?;
        let position = WarpPosition { launch, gpu, cta, warp };
        self.rows.push(WarpRow { position, operation, location, event, line });
        Ok(())
    }

    /// The launch of a row, which is its first or a later one.
    fn launch(&mut self, row: &Row<'_>, has_gpu: bool) -> Result<u32, Mismatch> {
        let (kernel, number) = (row.text(Column::Kernel), row.number(Column::Launch, 0_u64)?);
        let next = self.launches.len() as u32;
        let launch = *self.launch_numbers.entry((kernel.to_owned(), number)).or_insert(next);
        if launch == next {
            let info = KernelInfo {
                name: kernel.to_owned(),
                shared_bytes: row.number(Column::SharedBytes, 0)?,
                registers: row.number(Column::Registers, 0)?,
                ..KernelInfo::default()
            };
            let (threads, stream) = (row.optional(Column::Threads)?, row.number(Column::Stream, 0)?);
            let (events, uses) = (FxHashMap::default(), Vec::new());
            self.launches.push(Launch { info, threads, stream, has_gpus: has_gpu, events, uses });
            self.steps.push(HostStep::Launch(launch));
        }
        if self.launches[launch as usize].has_gpus != has_gpu {
            return Err(row.mismatch(Column::Gpu, "a GPU in all rows of a launch, or in none"));
        }
        Ok(launch)
    }

    /// The number of the array that a row names.
    fn array(&mut self, row: &Row<'_>) -> Result<Option<u32>, Mismatch> {
        let name = row.text(Column::Array);
        if name.is_empty() {
            return Ok(None);
        }
        if let Some(number) = self.array_numbers.get(name) {
            return Ok(Some(*number));
        }
        let number = self.arrays.len() as u32;
        self.array_numbers.insert(name.to_owned(), number);
        self.arrays.push(NamedArray { name: name.to_owned(), bytes: 0, declared: false, element: None });
        Ok(Some(number))
    }

    /// The location of a warp's access.
    fn accessed(&mut self, row: &Row<'_>) -> Result<Location, Mismatch> {
        row.accessed()?.map_or(Ok(Location::default()), |bytes| self.location(row, bytes))
    }

    /// The location of a copy, or of an access by the host.
    fn located(&mut self, row: &Row<'_>) -> Result<Location, Mismatch> {
        let bytes = row.bytes(LAST_ADDRESS)?;
        self.location(row, bytes)
    }

    fn location(&mut self, row: &Row<'_>, (address, bytes): (u64, u64)) -> Result<Location, Mismatch> {
        let number = self.array(row)?;
        if *self.by_array.get_or_insert(number.is_some()) != number.is_some() {
            return Err(row.mismatch(Column::Array, "an array in all accesses, or in none"));
        }
        if let Some(number) = number {
            let array = &mut self.arrays[number as usize];
            let end = address + bytes;
            if array.declared && end > array.bytes {
                let expected = format!("an offset inside array {}, of {} bytes", array.name, array.bytes);
                return Err(row.mismatch(Column::Address, &expected));
            }
            array.bytes = array.bytes.max(end);
        }
        Ok(Location { array: number, address, bytes })
    }

    /// The event that a row leaves or awaits.
    fn event(
        &mut self,
        row: &Row<'_>,
        launch: u32,
        operation: WarpOperation,
        line: u64,
    ) -> Result<Option<u32>, Mismatch> {
        let name = row.text(Column::Flag);
        let waits = matches!(operation, WarpOperation::Access(AccessKind::Wait, _));
        if name.is_empty() {
            return if waits { Err(row.mismatch(Column::Flag, "the event to wait for")) } else { Ok(None) };
        }
        let leaves = matches!(operation, WarpOperation::Access(AccessKind::Store | AccessKind::Atomic(_), _));
        if !waits && !leaves {
            return Err(row.mismatch(Column::Flag, "nothing, as a store, an atomic or a wait alone has an event"));
        }
        let launch = &mut self.launches[launch as usize];
        let next = launch.uses.len() as u32;
        if next > Token::MAX.0 {
            return Err(row.mismatch(Column::Flag, &format!("at most {} events a launch", Token::MAX.0)));
        }
        let event = *launch.events.entry(name.to_owned()).or_insert(next);
        if event == next {
            launch.uses.push((None, None));
        }
        let (left, awaited) = &mut launch.uses[event as usize];
        if waits {
            awaited.get_or_insert(line);
        } else if left.replace(line).is_some() {
            return Err(row.mismatch(Column::Flag, "an event that no other operation of the launch leaves"));
        }
        Ok(Some(event))
    }

    /// The whole program. An error has its line.
    fn program(mut self, name: String, line_size: LineSize) -> Result<TableProgram, (u64, Mismatch)> {
        for launch in &self.launches {
            let lost = launch.uses.iter().find_map(|(left, awaited)| awaited.filter(|_| left.is_none()));
            if let Some(line) = lost {
                let found = "none".to_owned();
                let expected = "a store or an atomic of the launch that leaves the awaited event".to_owned();
                return Err((line, Mismatch { expected, found }));
            }
        }
        let arrays = laid_out(&self.arrays);
        let named: GpuSet = self.rows.iter().filter_map(|row| row.position.gpu.map(GpuId)).collect();
        self.rows.sort_by_key(|row| row.position);
        let mut streams = Vec::with_capacity(self.launches.len());
        let mut kernels = Vec::with_capacity(self.launches.len());
        let mut devices = Vec::with_capacity(self.launches.len());
        for rows in self.rows.chunk_by(|one, other| one.position.launch == other.position.launch) {
            let launch = &self.launches[rows[0].position.launch as usize];
            let mut built = EncodedCtas::default();
            for cta in rows.chunk_by(|one, other| cta_of(one) == cta_of(other)) {
                encode(&stream(cta, &arrays, line_size)?, &mut built.bytes);
                built.ends.push(built.bytes.len());
            }
            let (info, on) = described(launch, rows, built.ends.len() as u32, named)?;
            kernels.push(info);
            devices.push(on);
            streams.push(built);
        }
        let host = host_program(&self.steps, &self.launches, &devices, &arrays);
        let HostProgram { commands, phases, setup, results } = host;
        Ok(TableProgram { name, line_size, kernels, commands, arrays, phases, setup, results, streams })
    }
}

/// The CTA of a row.
fn cta_of(row: &WarpRow) -> (Option<u8>, u32) {
    (row.position.gpu, row.position.cta)
}

/// Arrays at their addresses.
fn laid_out(arrays: &[NamedArray]) -> Vec<ArrayInfo> {
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

/// The kernel and the devices of a launch with `ctas` CTAs, in a table that names the GPUs `named`. A launch on GPUs 0
/// to n - 1, several of them, which are all that the table names, is one on the whole machine.
fn described(
    launch: &Launch,
    rows: &[WarpRow],
    ctas: u32,
    named: GpuSet,
) -> Result<(KernelInfo, LaunchDevices), (u64, Mismatch)> {
    let widest = rows.iter().max_by_key(|row| row.position.warp).expect("a launch has rows");
    let warps = widest.position.warp + 1;
    let threads_per_cta = launch.threads.unwrap_or(warps * WARP_WIDTH);
    if threads_per_cta.div_ceil(WARP_WIDTH) < warps || threads_per_cta > MOST_WARPS * WARP_WIDTH {
        let expected = format!("a launch of {threads_per_cta} threads a CTA, at most {}", MOST_WARPS * WARP_WIDTH);
        return Err((widest.line, Mismatch { expected, found: format!("warp {}", warps - 1) }));
    }
    let waits = launch.uses.iter().any(|(_, awaited)| awaited.is_some());
    let class = if waits { KernelClass::Cooperative } else { KernelClass::Independent };
    let mut parts: Vec<(u8, u32)> = Vec::new();
    for (number, cta) in (0..).zip(rows.chunk_by(|one, other| cta_of(one) == cta_of(other))) {
        if let Some(gpu) = cta[0].position.gpu.filter(|gpu| parts.last().is_none_or(|(last, _)| last != gpu)) {
            parts.push((gpu, number));
        }
    }
    let gpus: GpuSet = parts.iter().map(|(gpu, _)| GpuId(*gpu)).collect();
    let all = u8::try_from(parts.len()).ok().filter(|several| *several > 1).map(GpuSet::first);
    let is_whole = gpus == named && all == Some(named);
    let on = if launch.has_gpus && !is_whole { LaunchDevices::Gpus(gpus) } else { LaunchDevices::All };
    let parts = if parts.len() > 1 { parts.into_iter().map(|(_, first)| first).collect() } else { Vec::new() };
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
