//! Reads a table as a program.

use super::program::{
    BuiltLaunch, HostStep, Launch, Location, MOST_WARPS, NamedArray, TableProgram, WarpPosition, WarpRow, cta_of,
    laid_out,
};
use super::row::{AccessKind, Column, Columns, HostOperation, LAST_ADDRESS, Row, WarpOperation, refused};
use crate::trace::container::open_text;
use crate::trace::error::{Mismatch, TraceError};
use rustc_hash::FxHashMap;
use std::path::Path;
use tombolo_types::LineSize;
use tombolo_types::stream::{KernelInfo, Token};

/// Largest number of CTAs in a launch on one GPU. Source: assumed.
pub(super) const MOST_CTAS: u32 = 1 << 24;

/// The table while it is read.
#[derive(Default)]
pub(super) struct TableReader {
    pub(super) arrays: Vec<NamedArray>,
    pub(super) array_numbers: FxHashMap<String, u32>,
    pub(super) launches: Vec<Launch>,
    launch_numbers: FxHashMap<(String, u64), u32>,
    pub(super) steps: Vec<HostStep>,
    rows: Vec<WarpRow>,
    /// True if accesses name arrays, false if they do not, once one was read.
    pub(super) by_array: Option<bool>,
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
        if row.text(Column::Kernel).is_empty() {
            return self.host(row);
        }
        let row = self.warp(row, line)?;
        self.rows.push(row);
        Ok(())
    }

    /// Reads a row of the host.
    pub(super) fn host(&mut self, row: &Row<'_>) -> Result<(), Mismatch> {
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

    /// Reads a row of a warp.
    pub(super) fn warp(&mut self, row: &Row<'_>, line: u64) -> Result<WarpRow, Mismatch> {
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
        Ok(WarpRow { position, operation, location, event, line })
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
        self.launches.iter().try_for_each(Launch::check_events)?;
        let arrays = laid_out(&self.arrays);
        self.rows.sort_by_key(|row| row.position);
        let mut built: Vec<BuiltLaunch> = Vec::with_capacity(self.launches.len());
        for rows in self.rows.chunk_by(|one, other| one.position.launch == other.position.launch) {
            let mut launch = BuiltLaunch::default();
            for cta in rows.chunk_by(|one, other| cta_of(one) == cta_of(other)) {
                launch.add(cta, &arrays, line_size)?;
            }
            built.push(launch);
        }
        TableProgram::new((name, line_size), &self.launches, built, &self.steps, arrays)
    }
}
