//! The memcpy paradigm between a host and GPUs: each has a private memory, and copies transfer writes in both
//! directions.
//!
//! | variant | before a launch, to the GPUs | before host work, and at the end, to the host |
//! | --- | --- | --- |
//! | needed | in each array that this or a later kernel reads, host writes since the last copy to the GPUs | in each array, kernel writes since the last copy that the host reads |
//! | everything | all arrays, if the host has worked since | all arrays, if a kernel has run since |
//!
//! The variant `needed` copies as a programmer would: in each array, from the first such line to the last. Bytes in
//! between that the sender has not written are carried and dropped. Each GPU's part of an array, as determined by page
//! homes, is a separate call. For lines outside every array, runs of pages are treated like arrays. Host accesses come
//! from the program's declarations; if there are none, nothing is copied.

use super::copies::array_lines;
use super::{Movement, bytes, pages_of};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::sync::Arc;
use tombolo_model::front_end::{CommandTasks, PageTable, PeerCopy, Schedule, WrittenBytes};
use tombolo_protocol::elision::{LineRange, LineSet};
use tombolo_types::stream::{Command, Program};
use tombolo_types::{HostAccessKind, HostPhase, Line, Mask, ModuleId};

/// Finds the copies between a host and GPUs.
pub(crate) struct HostCopier<'a> {
    /// The program.
    pub(crate) program: &'a dyn Program,
    /// Page homes in GPU memories.
    pub(crate) pages: &'a PageTable,
    /// The host.
    pub(crate) host: ModuleId,
}

/// Direction of a copy.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CopyDirection {
    ToGpus,
    ToHost,
}

/// Bytes that the host and kernels have written and not yet copied.
#[derive(Default)]
struct PendingWrites {
    host: WrittenBytes,
    kernels: WrittenBytes,
}

impl HostCopier<'_> {
    /// Copies data written by either side and read by the opposite side. `movement`: the kernels' accesses.
    pub(crate) fn needed(&self, movement: &Movement) -> (Schedule, Vec<String>) {
        let (program, allocations) = (self.program, self.allocations(movement));
        let kernels = KernelTotals::of(movement);
        let last_reads = self.last_reads(movement, &kernels, &allocations);
        let (mut pending, mut copies) = (PendingWrites::default(), Vec::new());
        record_write(&mut pending.host, &mut pending.kernels, &touched(program, program.setup()).1);
        let mut around = Vec::new();
        for (index, command) in program.commands().iter().enumerate() {
            let ahead = match *command {
                Command::Launch { kernel, on, .. } => {
                    let read_later = allocations.iter().zip(&last_reads);
                    let read_later = read_later.filter(|(_, last)| last.is_some_and(|last| last >= index));
                    let hulls = read_later.filter_map(|(lines, _)| hull(&pending.host.lines, *lines)).collect();
                    let ahead = self.carry(CopyDirection::ToGpus, hulls, &mut pending.host, &mut copies);
                    let written = &kernels.0[movement.number(kernel, on) as usize].1;
                    record_write(&mut pending.kernels, &mut pending.host, written);
                    ahead
                }
                Command::Host { phase } => {
                    let phase = &program.host_phases()[phase as usize];
                    self.before_host(phase, &allocations, &mut pending, &mut copies)
                }
                Command::Copy { .. } | Command::Barrier => Vec::new(),
            };
            around.push(CommandTasks { ahead, ..CommandTasks::default() });
        }
        let ahead = self.before_host(program.results(), &allocations, &mut pending, &mut copies);
        around.push(CommandTasks { ahead, ..CommandTasks::default() });
        let notes = if copies.is_empty() { vec![NOTHING_COPIED.to_owned()] } else { Vec::new() };
        (Schedule { tasks: around, copies, overlaps: false }, notes)
    }

    /// Copies all arrays, in both directions.
    pub(crate) fn everything(&self) -> (Schedule, Vec<String>) {
        let (program, mut copies) = (self.program, Vec::new());
        let arrays: Vec<LineRange> = array_lines(program).into_iter().flatten().collect();
        let all = Arc::new(WrittenBytes { lines: arrays.iter().copied().collect(), partly: FxHashMap::default() });
        let ways = [CopyDirection::ToGpus, CopyDirection::ToHost].map(|way| {
            let calls = arrays.iter().flat_map(|lines| self.call(way, *lines, &all, &mut copies));
            calls.collect::<Vec<u32>>()
        });
        let mut is_on_gpus = false;
        let mut ahead = |to_gpus: bool| {
            let moves = std::mem::replace(&mut is_on_gpus, to_gpus) != to_gpus;
            let ahead = if moves { ways[usize::from(!to_gpus)].clone() } else { Vec::new() };
            CommandTasks { ahead, ..CommandTasks::default() }
        };
        let mut around: Vec<CommandTasks> = Vec::new();
        for command in program.commands() {
            around.push(match *command {
                Command::Launch { .. } => ahead(true),
                Command::Host { phase } if !program.host_phases()[phase as usize].is_empty() => ahead(false),
                Command::Host { .. } | Command::Copy { .. } | Command::Barrier => CommandTasks::default(),
            });
        }
        around.push(ahead(false));
        let notes = if arrays.is_empty() { vec![NO_ARRAYS.to_owned()] } else { Vec::new() };
        (Schedule { tasks: around, copies, overlaps: false }, notes)
    }

    /// Copies required before the host works.
    fn before_host(
        &self,
        phase: &HostPhase,
        allocations: &[LineRange],
        pending: &mut PendingWrites,
        copies: &mut Vec<PeerCopy>,
    ) -> Vec<u32> {
        let (read, written) = touched(self.program, phase);
        let wanted = bytes::common(&read, &pending.kernels);
        let hulls = allocations.iter().filter_map(|lines| hull(&wanted, *lines)).collect();
        let ahead = self.carry(CopyDirection::ToHost, hulls, &mut pending.kernels, copies);
        record_write(&mut pending.host, &mut pending.kernels, &written);
        ahead
    }

    /// Copies the given ranges from the pending bytes, and removes these bytes from the pending set.
    fn carry(
        &self,
        way: CopyDirection,
        hulls: Vec<LineRange>,
        pending: &mut WrittenBytes,
        copies: &mut Vec<PeerCopy>,
    ) -> Vec<u32> {
        if hulls.is_empty() {
            return Vec::new();
        }
        let written = Arc::new(pending.clone());
        let calls = hulls.iter().flat_map(|lines| self.call(way, *lines, &written, copies)).collect();
        let carried = WrittenBytes { lines: hulls.into_iter().collect(), partly: FxHashMap::default() };
        bytes::RemovedBytes::new(carried).remove_from(pending);
        calls
    }

    /// Copies for a range: one call for each GPU that holds any part. Kernels never write replicated pages, so that no
    /// replicated page is copied to the host.
    fn call(
        &self,
        way: CopyDirection,
        lines: LineRange,
        written: &Arc<WrittenBytes>,
        copies: &mut Vec<PeerCopy>,
    ) -> Vec<u32> {
        let mut parts: BTreeMap<ModuleId, Vec<LineRange>> = BTreeMap::new();
        let together = self.pages.lines_together();
        let mut first = lines.first;
        while first < lines.end {
            let end = Line((first.0 / together + 1) * together).min(lines.end);
            // Every GPU is a home for a replicated page.
            let homes = (0..self.host.0).map(ModuleId).filter(|&gpu| self.pages.home(gpu, first) == Some(gpu));
            for gpu in homes {
                let ranges = parts.entry(gpu).or_default();
                match ranges.last_mut() {
                    Some(last) if last.end == first => last.end = end,
                    Some(_) | None => ranges.push(LineRange::new(first, end)),
                }
            }
            first = end;
        }
        let mut calls = Vec::new();
        for (gpu, ranges) in parts {
            let (from, to) = if way == CopyDirection::ToGpus { (self.host, gpu) } else { (gpu, self.host) };
            for (place, lines) in ranges.into_iter().enumerate() {
                calls.push(copies.len() as u32);
                copies.push(PeerCopy { from, to, lines, written: Arc::clone(written), continues: place > 0 });
            }
        }
        calls
    }

    /// The lines in each array; outside every array, runs of touched pages, each from the first to the last line.
    fn allocations(&self, movement: &Movement) -> Vec<LineRange> {
        let arrays: Vec<LineRange> = array_lines(self.program).into_iter().flatten().collect();
        let of_kernels = movement.kernels.iter().flatten();
        let of_kernels = of_kernels.flat_map(|one| one.read.ranges().iter().chain(one.written.lines.ranges()));
        let phases = self.program.host_phases().iter().chain([self.program.setup(), self.program.results()]);
        let of_host = phases.flat_map(|phase| phase.accesses(self.program.line_size()));
        let of_host = of_host.map(|access| LineRange::new(access.line, Line(access.line.0 + 1)));
        let touched: LineSet = of_kernels.copied().chain(of_host).collect();
        let elsewhere = touched.without(&arrays.iter().copied().collect());
        let runs = pages_of(&elsewhere, movement.lines_per_page).into_iter();
        let runs = runs.map(|pages| [pages.start, pages.end].map(|page| Line(page * movement.lines_per_page)));
        let runs = runs.filter_map(|[first, end]| hull(&elsewhere, LineRange::new(first, end)));
        arrays.iter().copied().chain(runs).collect()
    }

    /// For each allocation, the last command that launches a kernel reading any part.
    fn last_reads(&self, movement: &Movement, kernels: &KernelTotals, allocations: &[LineRange]) -> Vec<Option<usize>> {
        let mut last_reads = vec![None; allocations.len()];
        for (index, command) in self.program.commands().iter().enumerate() {
            let Command::Launch { kernel, on, .. } = *command else { continue };
            let read = &kernels.0[movement.number(kernel, on) as usize].0;
            for (last, lines) in last_reads.iter_mut().zip(allocations) {
                if read.overlaps(&(*lines).into()) {
                    *last = Some(index);
                }
            }
        }
        last_reads
    }
}

/// Note for a program that needs no copies.
const NOTHING_COPIED: &str =
    "the host writes nothing that kernels read, and reads nothing that they write: nothing is copied";

/// Note for a program without arrays.
const NO_ARRAYS: &str = "the program names no arrays: nothing is allocated, and nothing is copied";

/// Lines read and bytes written by all modules together, indexed by kernel number.
struct KernelTotals(Vec<(LineSet, WrittenBytes)>);

impl KernelTotals {
    fn of(movement: &Movement) -> KernelTotals {
        let total = |modules: &Vec<super::ModuleMovement>| {
            let read = modules.iter().flat_map(|module| module.read.ranges()).copied().collect();
            let mut written = WrittenBytes::default();
            modules.iter().for_each(|module| bytes::add(&mut written, &module.written));
            (read, written)
        };
        KernelTotals(movement.kernels.iter().map(total).collect())
    }
}

/// Records a write by one side: the written bytes become the newest, and the opposite side's copies become outdated.
fn record_write(own: &mut WrittenBytes, other: &mut WrittenBytes, written: &WrittenBytes) {
    if written.lines.is_empty() {
        return;
    }
    bytes::add(own, written);
    if !other.lines.is_empty() {
        bytes::RemovedBytes::new(written.clone()).remove_from(other);
    }
}

/// The smallest range that covers all lines from `lines` inside `within`.
fn hull(lines: &LineSet, within: LineRange) -> Option<LineRange> {
    let inside = lines.intersection(&within.into());
    let [first, ..] = inside.ranges() else { return None };
    inside.ranges().last().map(|last| first.hull(*last))
}

/// Bytes read by a host phase, and bytes written by a host phase.
fn touched(program: &dyn Program, phase: &HostPhase) -> (WrittenBytes, WrittenBytes) {
    let of = |kind: HostAccessKind| {
        let accesses = || phase.accesses(program.line_size()).filter(move |access| access.kind == kind);
        let lines = accesses().map(|access| LineRange::new(access.line, Line(access.line.0 + 1))).collect();
        let partly = accesses().filter(|access| access.mask != Mask::ALL).map(|access| (access.line, access.mask));
        WrittenBytes { lines, partly: partly.collect() }
    };
    (of(HostAccessKind::Read), of(HostAccessKind::Write))
}
