//! Traces of NVIDIA GPUs recorded with NVBit by Accel-Sim's tracer, versions 3 to 6, as text or warp by warp.
//!
//! Each kernel file is read once, when the trace is opened. The file's CTAs are kept encoded and decoded upon request
//! by the machine. Reading order: [`kernelslist`] with [`command`], [`header`], [`kernel`] with [`tracez`],
//! [`instruction`] with [`bulk`], [`opcode`], [`warp`] with [`lanes`], [`scoreboard`] and [`coalescer`]; [`census`] and
//! [`notes`] for remarks that results should state about a trace.
//!
//! Not present in these traces: waits between CTAs, and addresses for texture fetches. A spinning load is therefore
//! repeated exactly as often as on the traced machine. Bulk copies, mbarriers, and the numbers and counts of barriers
//! are read but not simulated; notes count them.

mod bulk;
mod census;
mod coalescer;
mod command;
mod cursor;
mod header;
mod instruction;
mod kernel;
mod kernelslist;
mod lanes;
mod notes;
mod opcode;
mod scoreboard;
mod spill;
mod tracez;
mod warp;

use super::error::TraceError;
use super::info::{KernelOrigin, OpcodeCount, OperationCoverage, Origin};
use crate::encode::decode;
use crate::transfers::{copied_back, copied_in};
use header::StreamKey;
use kernel::Kernel;
use kernelslist::ListCommand;
use spill::{Spill, SpilledBytes};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tombolo_types::stream::{Command, CtaStream, KernelClass, KernelInfo, Program, StreamError};
use tombolo_types::{HostPhase, LineSize};

/// Lanes per warp in every NVBit trace.
pub(super) const WARP_WIDTH: u32 = opcode::LANES;

/// Kernel files named in `list`; empty if the list cannot be read.
pub(super) fn kernel_files(list: &Path) -> Vec<PathBuf> {
    kernelslist::read(list).unwrap_or_default().kernels().cloned().collect()
}

/// True if the file at `path` is a kernel trace in the per-warp form.
pub(super) fn is_per_warp(path: &Path) -> Result<bool, TraceError> {
    tracez::is_tracez(path)
}

/// An opened NVBit trace.
pub(super) struct NvbitProgram {
    name: String,
    line_size: LineSize,
    infos: Vec<KernelInfo>,
    commands: Vec<Command>,
    setup: HostPhase,
    results: HostPhase,
    kernels: Vec<Kernel>,
    paths: Vec<PathBuf>,
    encoded: SpilledBytes,
    /// Notes about list commands without simulation.
    list_notes: Vec<String>,
}

impl NvbitProgram {
    /// Reads the trace whose kernel list is at `list`, for lines of `line_size`.
    pub(super) fn open(list: &Path, name: String, line_size: LineSize) -> Result<NvbitProgram, TraceError> {
        let list = kernelslist::read(list)?;
        let mut list_notes = list.notes.clone();
        let mut reading = KernelReader::default();
        let mut spill = Spill::new();
        for path in list.kernels() {
            reading.kernel(path, line_size, &mut spill)?;
        }
        if !list.single {
            list_notes.extend(notes::missing_launches(reading.kernels.iter().map(|kernel| kernel.header.launch)));
        }
        let commands = reading.commands(&list.entries);
        let encoded = spill.finish().map_err(TraceError::io(&std::env::temp_dir(), "store decoded CTAs"))?;
        let infos = reading.kernels.iter().zip(&reading.paths).map(|(kernel, path)| info(kernel, path)).collect();
        let KernelReader { kernels, paths, .. } = reading;
        // Host accesses other than copies are unknown.
        let setup = HostPhase { reads: Vec::new(), writes: copied_in(&commands, &[]) };
        let results = HostPhase { reads: copied_back(&commands, &[]), writes: Vec::new() };
        Ok(NvbitProgram { name, line_size, infos, commands, setup, results, kernels, paths, encoded, list_notes })
    }

    /// Information in the trace beyond its streams.
    pub(super) fn origin(&self) -> Origin {
        let mut unknown: BTreeMap<&str, u64> = BTreeMap::new();
        for (name, count) in self.kernels.iter().flat_map(|kernel| &kernel.census.unknown) {
            *unknown.entry(name).or_default() += count;
        }
        let unknown_opcodes =
            unknown.into_iter().map(|(name, count)| OpcodeCount { name: name.to_owned(), count }).collect();
        let notes = notes::of(&self.kernels, &self.paths, &self.list_notes);
        let kernels = self.kernels.iter().zip(&self.paths).map(|(kernel, path)| kernel_origin(kernel, path)).collect();
        let tracer_version = self.kernels.iter().map(|kernel| kernel.header.version).max();
        let operations = Some(self.operations());
        Origin { format: "NVBit".to_owned(), tracer_version, kernels, unknown_opcodes, operations, notes }
    }

    /// Counts by operation, over all launches.
    fn operations(&self) -> Vec<OperationCoverage> {
        let mut launches = vec![0_u64; self.kernels.len()];
        self.commands.iter().filter_map(Command::kernel).for_each(|kernel| launches[kernel as usize] += 1);
        let mut coverage: BTreeMap<&str, OperationCoverage> = BTreeMap::new();
        for (kernel, launches) in self.kernels.iter().zip(launches) {
            for (name, limit, count) in &kernel.operations {
                let total = coverage.entry(name).or_insert_with(|| OperationCoverage::new(name, *limit));
                total.instructions += count.instructions * launches;
                total.bytes = total.bytes.saturating_add(count.bytes.saturating_mul(launches));
                if total.not_simulated.is_none() {
                    total.not_simulated = notes::missing_effect(count).map(str::to_owned);
                }
            }
        }
        coverage.into_values().filter(|operation| operation.instructions > 0).collect()
    }
}

/// State while kernels are being read.
#[derive(Default)]
struct KernelReader {
    kernels: Vec<Kernel>,
    paths: Vec<PathBuf>,
    /// Kernel index by absolute path: a list may name a file by several paths.
    index: BTreeMap<PathBuf, u32>,
    /// Streams, in order of appearance.
    streams: Vec<StreamKey>,
}

/// A path that is equal for equal files, as far as a path's text can show.
fn identity(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

impl KernelReader {
    /// Reads the kernel at `path`, unless an earlier launch has already read it.
    fn kernel(&mut self, path: &Path, line_size: LineSize, spill: &mut Spill) -> Result<(), TraceError> {
        let identity = identity(path);
        if self.index.contains_key(&identity) {
            return Ok(());
        }
        let streams = &mut self.streams;
        let slot = |header: &header::Header| {
            let known = streams.iter().position(|stream| *stream == header.stream);
            known.unwrap_or_else(|| {
                streams.push(header.stream.clone());
                streams.len() - 1
            }) as u64
        };
        let kernel = kernel::read(path, line_size, slot, spill)?;
        self.index.insert(identity, self.kernels.len() as u32);
        self.kernels.push(kernel);
        self.paths.push(path.to_owned());
        Ok(())
    }

    /// Converts the list's entries into host commands. Streams are numbered by appearance, unless all are small numbers
    /// already. With a single stream, all commands run in order, so waits are omitted.
    fn commands(&self, entries: &[ListCommand]) -> Vec<Command> {
        let number = |stream: &StreamKey| match stream {
            StreamKey::Handle(handle) => u32::try_from(*handle).ok(),
            StreamKey::Name(_) => None,
        };
        let small = self.streams.iter().all(|stream| number(stream).is_some());
        let place =
            |stream: &StreamKey| self.streams.iter().position(|other| other == stream).map(|place| place as u32);
        let stream = |stream: &StreamKey| if small { number(stream) } else { place(stream) };
        entries
            .iter()
            .filter_map(|entry| match entry {
                ListCommand::Copy { address, bytes, to_device } => {
                    Some(Command::Copy { address: *address, bytes: *bytes, to_device: *to_device })
                }
                ListCommand::Wait => (self.streams.len() > 1).then_some(Command::Barrier),
                ListCommand::Kernel { path } => {
                    let kernel = self.index[&identity(path)];
                    let stream = stream(&self.kernels[kernel as usize].header.stream);
                    Some(Command::launch(kernel, stream.expect("every kernel's stream was numbered")))
                }
            })
            .collect()
    }
}

fn info(kernel: &Kernel, path: &Path) -> KernelInfo {
    let Kernel { header, .. } = kernel;
    let name = if header.name.is_empty() { file_name(path) } else { header.name.clone() };
    KernelInfo {
        parts: Vec::new(),
        name,
        ctas: header.blocks(),
        threads_per_cta: header.threads(),
        shared_bytes: header.shared_bytes,
        registers: header.registers,
        class: KernelClass::Independent,
    }
}

fn kernel_origin(kernel: &Kernel, path: &Path) -> KernelOrigin {
    let Kernel { header, census, .. } = kernel;
    KernelOrigin { source: file_name(path), grid: header.grid, block: header.block, memory: census.spaces }
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

impl Program for NvbitProgram {
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
        &self.infos
    }

    fn commands(&self) -> &[Command] {
        &self.commands
    }

    fn setup(&self) -> &HostPhase {
        &self.setup
    }

    fn results(&self) -> &HostPhase {
        &self.results
    }

    fn cta(&self, kernel: u32, cta: u32, into: &mut CtaStream) -> Result<(), StreamError> {
        let found = self.kernels.get(kernel as usize).filter(|found| cta < found.header.blocks());
        let Some(found) = found else {
            return Err(StreamError { message: format!("{} has no thread block {cta} of kernel {kernel}", self.name) });
        };
        let Some(place) = found.place(cta) else {
            into.clear();
            into.warps.resize(found.header.warps() as usize, 0..0);
            return Ok(());
        };
        let bytes = &self.encoded.bytes()[place.offset as usize..(place.offset + place.length) as usize];
        decode(bytes, into).map(|_| ())
    }
}
