//! Writes a program as a table.

use super::ARITHMETIC;
use super::row::{ACCESSES, AccessKind, Column, HOST_OPERATIONS, HostOperation, LINKS, PLAIN, PlainKind};
use crate::trace::error::TraceError;
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use tombolo_types::stream::{Access, Accesses, Command, CtaStream, Op, PackedOrder, Program, StreamError};
use tombolo_types::{GpuId, LaunchDevices, LineSize, Mask, Semantics};

/// Bits per mask.
const GRAINS: u32 = u32::BITS;

/// Writes `program` to `out`: with its own line size, and with all columns.
pub(in crate::trace) fn write(program: &dyn Program, out: &Path) -> Result<(), TraceError> {
    let file = File::create(out).map_err(TraceError::io(out, "create"))?;
    let mut table = TableWriter { table: csv::Writer::from_writer(BufWriter::new(file)), path: out, program };
    table.whole()?;
    let file = table.table.into_inner().map_err(|error| TraceError::io(out, "write")(error.into_error()))?;
    let file = file.into_inner().map_err(|error| TraceError::io(out, "write")(error.into_error()))?;
    file.sync_all().map_err(TraceError::io(out, "write"))
}

/// The file being written.
struct TableWriter<'a> {
    table: csv::Writer<BufWriter<File>>,
    path: &'a Path,
    program: &'a dyn Program,
}

/// A row: its fields by column.
#[derive(Clone)]
struct Fields([String; Column::ALL.len()]);

impl Fields {
    fn empty() -> Fields {
        Fields(std::array::from_fn(|_| String::new()))
    }

    fn with(mut self, column: Column, value: impl std::fmt::Display) -> Fields {
        self.0[column as usize] = value.to_string();
        self
    }
}

/// The word of a value.
fn word<T: PartialEq>(words: &[(&'static str, T)], value: &T) -> &'static str {
    words.iter().find(|(_, known)| known == value).map(|(word, _)| *word).expect("every value has a word")
}

impl TableWriter<'_> {
    fn row(&mut self, fields: &Fields) -> Result<(), TraceError> {
        let path = self.path;
        self.table.write_record(&fields.0).map_err(|error| TraceError::io(path, "write")(error.into()))
    }

    fn whole(&mut self) -> Result<(), TraceError> {
        let mut names = Fields::empty();
        Column::ALL.iter().for_each(|column| names.0[*column as usize] = column.name().to_owned());
        self.row(&names)?;
        let program = self.program;
        for array in program.arrays().iter().filter(|array| array.bytes > 0) {
            let row = Fields::empty().with(Column::Operation, word(&HOST_OPERATIONS, &HostOperation::Array));
            let row = row.with(Column::Array, &array.name).with(Column::Bytes, array.bytes);
            let element = array.element.map_or_else(String::new, |element| element.to_string());
            self.row(&row.with(Column::Count, element))?;
        }
        self.host(&program.setup().reads, &program.setup().writes)?;
        for (number, command) in program.commands().iter().enumerate() {
            match *command {
                Command::Launch { kernel, stream, on } => self.launch(number, kernel, stream, on)?,
                Command::Copy { address, bytes, to_device } => {
                    let operation = word(&HOST_OPERATIONS, &HostOperation::Copy { to_device });
                    let row = Fields::empty().with(Column::Operation, operation);
                    let row = self.located(row, address, bytes);
                    self.row(&row)?;
                }
                Command::Host { phase } => {
                    let phase = &program.host_phases()[phase as usize];
                    self.host(&phase.reads, &phase.writes)?;
                }
                Command::Barrier => {
                    let operation = word(&HOST_OPERATIONS, &HostOperation::Synchronize);
                    self.row(&Fields::empty().with(Column::Operation, operation))?;
                }
            }
        }
        self.host(&program.results().reads, &program.results().writes)
    }

    /// Rows for accesses of the host.
    fn host(&mut self, reads: &[std::ops::Range<u64>], writes: &[std::ops::Range<u64>]) -> Result<(), TraceError> {
        for (ranges, writes) in [(reads, false), (writes, true)] {
            for range in ranges {
                let operation = word(&HOST_OPERATIONS, &HostOperation::Access { writes });
                let row = Fields::empty().with(Column::Operation, operation);
                let row = self.located(row, range.start, range.end - range.start);
                self.row(&row)?;
            }
        }
        Ok(())
    }

    /// Adds an address, as an offset if it is in an array.
    fn located(&self, row: Fields, address: u64, bytes: u64) -> Fields {
        let arrays = self.program.arrays();
        let after = arrays.partition_point(|array| array.base <= address);
        match after.checked_sub(1).map(|at| &arrays[at]).filter(|array| address < array.base + array.bytes) {
            Some(array) => row.with(Column::Array, &array.name).with(Column::Address, address - array.base),
            None => row.with(Column::Address, address),
        }
        .with(Column::Bytes, bytes)
    }

    fn launch(&mut self, number: usize, kernel: u32, stream: u32, on: LaunchDevices) -> Result<(), TraceError> {
        let info = &self.program.kernels()[kernel as usize];
        let gpus: Vec<GpuId> = match on {
            LaunchDevices::All if info.parts.is_empty() => Vec::new(),
            LaunchDevices::All => (0..info.parts.len() as u8).map(GpuId).collect(),
            LaunchDevices::Gpus(gpus) => gpus.iter().collect(),
            LaunchDevices::Modules(_) => {
                let message = "runs on modules of a GPU, which a table cannot say".to_owned();
                return Err(TraceError::Stream { kernel, cta: 0, source: StreamError { message } });
            }
        };
        let first = Fields::empty()
            .with(Column::Kernel, &info.name)
            .with(Column::Launch, number)
            .with(Column::Stream, stream)
            .with(Column::Threads, info.threads_per_cta)
            .with(Column::Registers, info.registers)
            .with(Column::SharedBytes, info.shared_bytes);
        let mut stream = CtaStream::default();
        for cta in 0..info.ctas {
            let failed = |source| TraceError::Stream { kernel, cta, source };
            self.program.cta(kernel, cta, &mut stream).map_err(failed)?;
            let part = info.parts.partition_point(|first| *first <= cta).saturating_sub(1);
            // Without a division by the program, a launch on several GPUs gives each as many CTAs.
            let part = if info.parts.is_empty() && !gpus.is_empty() {
                (u64::from(cta) * gpus.len() as u64 / u64::from(info.ctas)) as usize
            } else {
                part
            };
            let gpu = gpus.get(part).map_or_else(String::new, |gpu| gpu.0.to_string());
            let row = first.clone().with(Column::Gpu, gpu).with(Column::Cta, cta);
            for (warp, ops) in stream.warps.iter().enumerate() {
                let row = row.clone().with(Column::Warp, warp);
                self.warp(&row, &stream, &stream.ops[ops.start as usize..ops.end as usize])?;
            }
        }
        Ok(())
    }

    fn warp(&mut self, row: &Fields, stream: &CtaStream, ops: &[Op]) -> Result<(), TraceError> {
        for (index, op) in ops.iter().enumerate() {
            let event = match ops.get(index + 1) {
                Some(Op::Signal { token }) => stream.tokens[usize::from(*token)].0.to_string(),
                _ => String::new(),
            };
            let row = row.clone();
            let plain = |operation: &str| row.clone().with(Column::Operation, operation);
            match *op {
                Op::Signal { .. } => {}
                Op::Barrier => self.row(&plain(word(&PLAIN, &PlainKind::Barrier)))?,
                Op::Fence { order } => self.row(&ordered(plain(word(&PLAIN, &PlainKind::Fence)), order))?,
                Op::Shared { passes } => {
                    self.row(&plain(word(&PLAIN, &PlainKind::Shared)).with(Column::Count, passes))?
                }
                Op::Use { distance } => {
                    self.row(&plain(word(&PLAIN, &PlainKind::Use)).with(Column::Count, distance))?
                }
                Op::Compute { class, count, chain, links } => {
                    let row = plain(word(&ARITHMETIC, &class)).with(Column::Count, count).with(Column::Chain, chain);
                    self.row(&row.with(Column::Links, word(&LINKS, &links)))?;
                }
                Op::Load { order, accesses } => self.access(&row, AccessKind::Load, order, accesses, stream)?,
                Op::Store { order, accesses } => {
                    let row = row.with(Column::Flag, event);
                    self.access(&row, AccessKind::Store, order, accesses, stream)?;
                }
                Op::Atomic { order, result, accesses } => {
                    let row = row.with(Column::Flag, event);
                    self.access(&row, AccessKind::Atomic(result), order, accesses, stream)?;
                }
                Op::WaitUntil { order, access, token } => {
                    let row = row.with(Column::Flag, stream.tokens[usize::from(token)].0);
                    let accesses = Accesses { start: access, len: 1 };
                    self.access(&row, AccessKind::Wait, order, accesses, stream)?;
                }
            }
        }
        Ok(())
    }

    /// Writes a row per run of bytes in an access.
    fn access(
        &mut self,
        row: &Fields,
        kind: AccessKind,
        order: PackedOrder,
        accesses: Accesses,
        stream: &CtaStream,
    ) -> Result<(), TraceError> {
        let runs = runs(&stream.accesses[accesses.range()], self.program.line_size());
        let mut row = ordered(row.clone().with(Column::Operation, word(&ACCESSES, &kind)), order);
        let blank = [Column::Order, Column::Scope, Column::Flag];
        if runs.is_empty() {
            return self.row(&row.with(Column::Bytes, 0));
        }
        for (address, bytes) in runs {
            self.row(&self.located(row.clone(), address, bytes))?;
            row = blank
                .iter()
                .fold(row, |row, column| row.with(*column, ""))
                .with(Column::Operation, word(&PLAIN, &PlainKind::More));
        }
        Ok(())
    }
}

/// Adds an order. A weak access has neither order nor scope.
fn ordered(row: Fields, order: PackedOrder) -> Fields {
    let order = order.order();
    if order.semantics == Semantics::Weak {
        return row;
    }
    row.with(Column::Order, order.semantics).with(Column::Scope, order.scope)
}

/// Runs of neighbouring bytes in an access, in the order of its lines.
fn runs(accesses: &[Access], size: LineSize) -> Vec<(u64, u64)> {
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for access in accesses {
        let mut mask = access.mask;
        while mask != Mask::NONE {
            let first = mask.0.trailing_zeros();
            let length = (mask.0 >> first).trailing_ones();
            let address = size.address_of(access.line) + u64::from(first) * size.grain();
            let bytes = u64::from(length) * size.grain();
            match runs.last_mut().filter(|(start, bytes)| start + bytes == address) {
                Some((_, longer)) => *longer += bytes,
                None => runs.push((address, bytes)),
            }
            mask = if first + length == GRAINS { Mask::NONE } else { Mask(mask.0 & (u32::MAX << (first + length))) };
        }
    }
    runs
}
