//! Traces of NVIDIA GPUs recorded with NVBit by Accel-Sim's tracer, versions 3 to 6.
//!
//! Each kernel file is read once, when the trace is opened; its CTAs are kept encoded and decoded when the
//! machine asks. Reading order: [`kernelslist`], [`header`], [`kernel`], [`instruction`], [`opcode`],
//! [`warp`] with [`scoreboard`] and [`coalescer`].
//!
//! Not in these traces: what one CTA waits for another to do (a spinning load is as many loads as it was on
//! the traced machine), the addresses of texture fetches and of bulk copies, and which of its named barriers
//! a warp waits at.

mod coalescer;
mod cursor;
mod header;
mod instruction;
mod kernel;
mod kernelslist;
mod opcode;
mod scoreboard;
mod spill;
mod warp;

use super::error::TraceError;
use super::info::{KernelOrigin, OpcodeCount, Origin};
use crate::encode::decode;
use kernel::Kernel;
use kernelslist::Entry;
use spill::{Spill, Spilled};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tombolo_types::LineSize;
use tombolo_types::stream::{Command, CtaStream, KernelClass, KernelInfo, Program, StreamError};

/// Lanes of a warp of every NVBit trace.
pub(super) const WARP_WIDTH: u32 = opcode::LANES;

/// The kernels' files that `list` names; none where it cannot be read.
pub(super) fn kernel_files(list: &Path) -> Vec<PathBuf> {
    let entries = kernelslist::read(list).unwrap_or_default().into_iter();
    entries.filter_map(|entry| if let Entry::Kernel { path } = entry { Some(path) } else { None }).collect()
}

/// An opened NVBit trace.
pub(super) struct NvbitProgram {
    name: String,
    line_size: LineSize,
    infos: Vec<KernelInfo>,
    commands: Vec<Command>,
    kernels: Vec<Kernel>,
    paths: Vec<PathBuf>,
    encoded: Spilled,
}

impl NvbitProgram {
    /// Reads the trace whose list of kernels is at `list`, for lines of `line_size`.
    pub(super) fn open(list: &Path, name: String, line_size: LineSize) -> Result<NvbitProgram, TraceError> {
        let entries = kernelslist::read(list)?;
        let mut reading = Reading::default();
        let mut spill = Spill::new();
        for entry in &entries {
            if let Entry::Kernel { path } = entry {
                reading.kernel(path, line_size, &mut spill)?;
            }
        }
        let commands = reading.commands(&entries);
        let encoded = spill.finish().map_err(TraceError::io(&std::env::temp_dir(), "store decoded CTAs"))?;
        let infos = reading.kernels.iter().zip(&reading.paths).map(|(kernel, path)| info(kernel, path)).collect();
        let Reading { kernels, paths, .. } = reading;
        Ok(NvbitProgram { name, line_size, infos, commands, kernels, paths, encoded })
    }

    /// What the trace says beyond its streams.
    pub(super) fn origin(&self) -> Origin {
        let mut unknown: BTreeMap<&str, u64> = BTreeMap::new();
        let mut notes = vec![
            "NVBit traces record no synchronisation between CTAs: a load that spun on a flag is replayed as it \
             was recorded, and waits for nobody"
                .to_owned(),
        ];
        let mut totals = [0_u64; 4];
        for Kernel { census, .. } in &self.kernels {
            for (name, count) in &census.unknown {
                *unknown.entry(name).or_default() += count;
            }
            let counts = [census.addressless, census.unresolved, census.blind_waits, census.unnamed];
            totals.iter_mut().zip(counts).for_each(|(total, more)| *total += more);
        }
        let [addressless, unresolved, blind_waits, unnamed] = totals;
        for (count, what) in [
            (addressless, "memory instructions come without addresses: their traffic is not simulated"),
            (unresolved, "generic accesses were taken as global: a kernel's header lacks base addresses"),
            (
                blind_waits,
                "waits for copies to the scratchpad wait for all of them: this tracer does not say for how many",
            ),
            (unnamed, "executions of further unknown opcodes are not listed by name"),
        ] {
            if count > 0 {
                notes.push(format!("{count} {what}"));
            }
        }
        let unknown_opcodes =
            unknown.into_iter().map(|(name, count)| OpcodeCount { name: name.to_owned(), count }).collect();
        let kernels = self.kernels.iter().zip(&self.paths).map(|(kernel, path)| kernel_origin(kernel, path)).collect();
        let tracer_version = self.kernels.iter().map(|kernel| kernel.header.version).max();
        Origin { format: "NVBit".to_owned(), tracer_version, kernels, unknown_opcodes, notes }
    }
}

/// Kernels as they are read.
#[derive(Default)]
struct Reading {
    kernels: Vec<Kernel>,
    paths: Vec<PathBuf>,
    index: BTreeMap<PathBuf, u32>,
    /// Stream handles, in order of appearance.
    streams: Vec<u64>,
}

impl Reading {
    /// Reads the kernel at `path` unless it was read for an earlier launch.
    fn kernel(&mut self, path: &Path, line_size: LineSize, spill: &mut Spill) -> Result<(), TraceError> {
        if self.index.contains_key(path) {
            return Ok(());
        }
        let streams = &mut self.streams;
        let slot = |header: &header::Header| {
            let known = streams.iter().position(|handle| *handle == header.stream);
            known.unwrap_or_else(|| {
                streams.push(header.stream);
                streams.len() - 1
            }) as u64
        };
        let kernel = kernel::read(path, line_size, slot, spill)?;
        self.index.insert(path.to_owned(), self.kernels.len() as u32);
        self.kernels.push(kernel);
        self.paths.push(path.to_owned());
        Ok(())
    }

    /// The commands of the host. Stream handles that are no small numbers are numbered by appearance.
    fn commands(&self, entries: &[Entry]) -> Vec<Command> {
        let small = self.streams.iter().all(|handle| u32::try_from(*handle).is_ok());
        let stream = |handle: u64| {
            let slot = self.streams.iter().position(|other| *other == handle);
            if small { handle as u32 } else { slot.expect("every kernel's stream was numbered") as u32 }
        };
        entries
            .iter()
            .map(|entry| match entry {
                Entry::Copy { address, bytes, to_device } => {
                    Command::Copy { address: *address, bytes: *bytes, to_device: *to_device }
                }
                Entry::Kernel { path } => {
                    let kernel = self.index[path];
                    Command::Launch { kernel, stream: stream(self.kernels[kernel as usize].header.stream) }
                }
            })
            .collect()
    }
}

fn info(kernel: &Kernel, path: &Path) -> KernelInfo {
    let Kernel { header, .. } = kernel;
    let name = if header.name.is_empty() { file_name(path) } else { header.name.clone() };
    KernelInfo {
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

    fn cta(&self, kernel: u32, cta: u32, into: &mut CtaStream) -> Result<(), StreamError> {
        let place = self.kernels.get(kernel as usize).and_then(|kernel| kernel.places.get(cta as usize));
        let Some(place) = place else {
            return Err(StreamError { message: format!("{} has no thread block {cta} of kernel {kernel}", self.name) });
        };
        let bytes = &self.encoded.bytes()[place.offset as usize..(place.offset + place.length) as usize];
        decode(bytes, into).map(|_| ())
    }
}
