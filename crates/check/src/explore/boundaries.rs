//! The command processor's actions at each kernel boundary of a program, decided before the program runs: thread
//! placements and accessed locations are known, and only a single kernel runs at a time.

use super::layout::ProgramLayout;
use crate::litmus::{Instruction, Program};
use std::collections::BTreeMap;
use tombolo_protocol::Topology;
use tombolo_protocol::boundary::{Reach, Steps, reach};
use tombolo_protocol::elision::{
    AccessMode, BrokenElision, Elision, KernelId, Label, LineRange, LineSet, Never, Packet, ReleaseTime, StructureUse,
    TableConfig, TableKind, User,
};
use tombolo_protocol::options::{ProtocolFacts, ProtocolOptions};
use tombolo_types::{Line, ModuleId};

/// Policy for the actions at kernel boundaries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BoundaryPolicy {
    /// No elision; a kernel's stores are released at this time.
    Release(ReleaseTime),
    /// A table that elides boundaries.
    Table(TableKind),
}

impl Default for BoundaryPolicy {
    fn default() -> BoundaryPolicy {
        BoundaryPolicy::Release(ReleaseTime::default())
    }
}

impl BoundaryPolicy {
    /// True if the policy assumes empty L2s at the start.
    pub fn elides(self) -> bool {
        matches!(self, BoundaryPolicy::Table(_))
    }
}

/// A single boundary: the steps that end a kernel, and the steps before the next launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BoundarySteps {
    pub(super) end: Steps,
    pub(super) launch: Steps,
}

/// Inputs for boundary decisions under a protocol.
#[derive(Clone, Copy, Debug)]
pub(super) struct BoundaryPlanner<'a> {
    pub(super) policy: BoundaryPolicy,
    pub(super) broken: Option<BrokenElision>,
    pub(super) facts: &'a ProtocolFacts,
    pub(super) options: &'a ProtocolOptions,
}

impl BoundaryPlanner<'_> {
    /// The boundaries in `program`, in order. Each line forms a separate structure, and a kernel's label lists the
    /// lines accessible to the kernel's threads.
    pub(super) fn boundaries(&self, program: &Program, layout: &ProgramLayout) -> Vec<BoundarySteps> {
        let modules = layout.modules();
        let kernels = kernels(program, layout);
        if self.policy == BoundaryPolicy::Release(ReleaseTime::EndThenLaunch) {
            return vec![BoundarySteps { end: Steps::END, launch: Steps::LAUNCH }; kernels.len() - 1];
        }
        let reach = match self.policy {
            BoundaryPolicy::Table(_) => reach(layout.gpus, self.facts, self.options),
            BoundaryPolicy::Release(_) => Reach::Module,
        };
        let sharing = if reach == Reach::GpuShares { layout.modules_per_gpu } else { 1 };
        let config = TableConfig { sharing, ..TableConfig::default() };
        let mut elision: Box<dyn Elision> = match self.policy {
            BoundaryPolicy::Release(time) => Box::new(Never::new(time, modules)),
            BoundaryPolicy::Table(kind) => {
                let table = kind.build(config, modules, (self.facts.holds)(self.options), self.broken);
                table.unwrap_or_else(|reason| panic!("{reason}"))
            }
        };
        let launch = |elision: &mut dyn Elision, number: usize| {
            let labels: Vec<Label<'_>> = kernels[number].iter().map(Structure::label).collect();
            let on = kernels[number].iter().flat_map(|structure| &structure.uses);
            let on = on.filter_map(|used| if let User::Module(module) = used.user { Some(module) } else { None });
            let packet = Packet { kernel: KernelId(number as u32), modules: on.collect(), labels: Some(&labels) };
            Steps::of(&elision.launch(&packet, &mut |_| ()), layout, reach)
        };
        // No boundary precedes the first launch, therefore its steps are dropped.
        launch(&mut *elision, 0);
        let boundary = |number: usize| {
            let ended = elision.finish(KernelId(number as u32 - 1), &mut |_| ());
            let end = Steps::of(&ended, layout, reach).awaiting(self.broken);
            BoundarySteps { end, launch: launch(&mut *elision, number) }
        };
        (1..kernels.len()).map(boundary).collect()
    }
}

/// True if a kernel is launched behind boundary `number` in a program: some GPU thread has an instruction in that
/// kernel.
pub(super) fn has_launch(program: &Program, number: usize) -> bool {
    let of_gpus = program.threads.iter().filter(|thread| !thread.placement.is_host());
    let mut parts = of_gpus.map(|thread| {
        let mut parts = thread.code.split(|instruction| *instruction == Instruction::KernelBoundary);
        parts.nth(number + 1)
    });
    parts.any(|part| part.is_some_and(|part| !part.is_empty()))
}

/// A line that a kernel accesses.
struct Structure {
    lines: LineRange,
    homes: Vec<LineSet>,
    uses: Vec<StructureUse>,
}

impl Structure {
    fn label(&self) -> Label<'_> {
        Label { structure: self.lines, homes: &self.homes, asserted: false, uses: &self.uses }
    }
}

/// Per kernel in `program`: the accessed structures.
fn kernels(program: &Program, layout: &ProgramLayout) -> Vec<Vec<Structure>> {
    let mut modes: Vec<BTreeMap<(u8, ModuleId), AccessMode>> = vec![BTreeMap::new()];
    for (thread, sm) in program.threads.iter().zip(&layout.threads) {
        let parts = thread.code.split(|instruction| *instruction == Instruction::KernelBoundary);
        for (number, part) in parts.enumerate() {
            if modes.len() <= number {
                modes.push(BTreeMap::new());
            }
            for instruction in part {
                let Some(location) = instruction.location() else { continue };
                let is_load = matches!(instruction, Instruction::Load { .. });
                let mode = if is_load { AccessMode::Read } else { AccessMode::ReadWrite };
                let used = modes[number].entry((layout.cell(location).line, sm.module)).or_insert(mode);
                *used = mode.max(*used);
            }
        }
    }
    modes.iter().map(|modes| structures(modes, layout)).collect()
}

fn structures(modes: &BTreeMap<(u8, ModuleId), AccessMode>, layout: &ProgramLayout) -> Vec<Structure> {
    let mut structures: Vec<Structure> = Vec::new();
    for (&(line, module), &mode) in modes {
        let (line, next) = (Line(line.into()), Line(u64::from(line) + 1));
        let lines = LineRange::new(line, next);
        if structures.last().is_none_or(|structure| structure.lines != lines) {
            let mut homes = vec![LineSet::default(); usize::from(layout.modules())];
            homes[usize::from(layout.home(ModuleId(0), line).0)] = lines.into();
            structures.push(Structure { lines, homes, uses: Vec::new() });
        }
        let structure = structures.last_mut().expect("one was pushed");
        structure.uses.push(StructureUse { user: User::Module(module), mode, lines: lines.into() });
    }
    structures
}
