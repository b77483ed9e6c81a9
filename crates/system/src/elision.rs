//! Kernel boundaries in a run: labels given to the command processor, operations performed and elided, and operations
//! that an oracle needs.
//!
//! [`BoundaryRecord`] is one boundary in `run --boundaries`; [`ElisionRecord`] sums them.

use crate::labels::{KernelLabels, LabelConfig, LabelError, Labels};
use crate::oracle::{NeededOperations, Oracle, UserAccesses};
use crate::placement::place_beside;
use crate::run::{RunError, RunSpec};
use crate::survey::survey;
use crate::uses::{KernelUses, UseFinder};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use tombolo_design::elision::{Cpelide, ElisionChoice};
use tombolo_design::scheduling::MachineShape;
use tombolo_design::{Elision, ModelInput};
pub use tombolo_metrics::ElisionRecord;
use tombolo_model::front_end::{
    Boundaries, BoundariesConfig, BoundaryLogEntry, BoundaryPosition, LabelSource, PageTable, UnlabelledProgram,
};
use tombolo_protocol::boundary::reach;
use tombolo_protocol::elision::{
    self, AccessMode, Account, DecisionReason, KernelId, LineRange, LineSet, Packet, ReleaseTime, RetainedLines,
    StructureState,
};
use tombolo_types::array::lines_of;
use tombolo_types::stream::{Command, Program};
use tombolo_types::{LineSize, ModuleId};

/// A single boundary.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BoundaryRecord {
    /// Kind of boundary: before or after `launch`, `host`, `copy`, `kernel-end` or `program-end`.
    pub at: &'static str,
    /// The kernel; null if none is launched or ends.
    pub kernel: Option<String>,
    /// Seconds from the start of the run to the start of the boundary's operations.
    pub start_s: f64,
    /// Seconds from the start of the run to the end of the operations; equal to `start_s` if there are none.
    pub end_s: f64,
    /// Table rows in use after the boundary.
    pub rows: u64,
    /// Operations on each module's L2.
    pub modules: Vec<ModuleBoundary>,
}

/// Operations on a module at a boundary.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ModuleBoundary {
    /// Module name, for example `module0`.
    pub module: String,
    /// True if the module's L2 is invalidated.
    pub invalidate: bool,
    /// True if the module's L2 is flushed.
    pub flush: bool,
    /// True if an oracle would have invalidated; null if unknown.
    pub needed_invalidate: Option<bool>,
    /// True if an oracle would have flushed; null if unknown.
    pub needed_flush: Option<bool>,
    /// Dirty lines written to memory.
    pub flushed_lines: u64,
    /// Lines dropped.
    pub dropped_lines: u64,
    /// Reasons, by array.
    pub why: Vec<WhyRecord>,
}

/// The table's decision for a row at a module; without a table, the decision for the whole cache.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WhyRecord {
    /// The row's arrays; null for the whole cache.
    pub arrays: Option<Vec<String>>,
    /// Access mode for the launch on this module: `R`, `R/W` or null.
    pub local: Option<&'static str>,
    /// Access mode by remote users for the lines that this module holds.
    pub remote: Option<&'static str>,
    /// The state before: `NP`, `V`, `D`, `S` or `B`.
    pub before: &'static str,
    /// The state after.
    pub after: &'static str,
    /// Reason for invalidating or not.
    pub invalidate: String,
    /// Reason for flushing or not.
    pub flush: String,
}

/// Array uses and page homes in a program on a machine.
pub(crate) struct ProgramUses {
    uses: KernelUses,
    pages: Arc<PageTable>,
}

impl ProgramUses {
    /// Finds uses and homes; pages are placed if the caller has not placed them.
    pub(crate) fn find(spec: &RunSpec) -> Result<ProgramUses, RunError> {
        let modules = spec.machine.topology.modules() as u8;
        let mut uses = UseFinder::new(&*spec.program, modules);
        let pages = match &spec.pages {
            Some(pages) => {
                let shape = MachineShape::of(&spec.machine);
                survey(&*spec.program, spec.design.scheduling.cut(&spec.machine), shape, &mut [&mut uses])?;
                Arc::clone(pages)
            }
            None => place_beside(&spec.machine, &spec.design, &*spec.program, &mut [&mut uses])?,
        };
        Ok(ProgramUses { uses: uses.finish(), pages })
    }

    pub(crate) fn pages(&self) -> &Arc<PageTable> {
        &self.pages
    }
}

/// A program's labels, in the form that the command processor reads.
struct LabelPackets {
    program: Arc<dyn Program>,
    labels: Labels,
}

impl LabelSource for LabelPackets {
    fn show(&self, index: usize, kernel: KernelId, then: &mut dyn FnMut(&Packet<'_>)) {
        let said: &KernelLabels = self.labels.of(&self.program.commands()[index]);
        let labels = self.labels.packet(said);
        then(&Packet { kernel, modules: said.on, labels: labels.as_deref() });
    }
}

/// The boundaries for a run that is about to begin. `known`: present if a log is requested.
pub(crate) fn boundaries(
    spec: &RunSpec,
    built: &ModelInput,
    known: Option<&ProgramUses>,
) -> Result<Boundaries, LabelError> {
    let modules = built.machine.topology.modules() as u8;
    let packets: Arc<dyn LabelSource> = match (&built.boundaries, known) {
        (ElisionChoice::Table { cpelide, .. }, Some(known)) => {
            let config = LabelConfig { labelling: cpelide.labels, drop: cpelide.drop.name() };
            let program = Arc::clone(&spec.program);
            let labels = Labels::derive(&*program, &known.uses, &known.pages, modules, &config)?;
            Arc::new(LabelPackets { program, labels })
        }
        (ElisionChoice::Never(_) | ElisionChoice::Table { .. }, _) => {
            Arc::new(UnlabelledProgram::new(Arc::clone(&spec.program), MachineShape::of(&built.machine)))
        }
    };
    let facts = spec.design.coherence.facts();
    let elides = matches!(built.boundaries, ElisionChoice::Table { .. });
    Ok(Boundaries::new(BoundariesConfig {
        elision: built.boundaries.new_table(modules),
        packets,
        reach: reach(built.machine.topology.gpus, facts, &built.options),
        modules,
        elides,
        // A launch merges blocks instead of invalidating lines.
        invalidates: built.blocks || (facts.holds)(&spec.design.options()) != RetainedLines::Nothing,
        defers: elides || matches!(built.boundaries, ElisionChoice::Never(ReleaseTime::Launch)),
        logs: known.is_some(),
    }))
}

/// Reads a run's boundary log.
pub(crate) struct BoundaryLogReader<'a> {
    pub(crate) spec: &'a RunSpec,
    pub(crate) known: &'a ProgramUses,
    pub(crate) log: &'a [BoundaryLogEntry],
}

impl BoundaryLogReader<'_> {
    fn modules(&self) -> u8 {
        self.spec.machine.topology.modules() as u8
    }

    /// The boundaries, in order.
    pub(crate) fn records(&self) -> Vec<BoundaryRecord> {
        let needed = self.needed();
        let names = ArrayNames::of(&*self.spec.program);
        let record = |(at, logged): (usize, &BoundaryLogEntry)| {
            let needed = needed.as_ref().map(|needed| &needed[at]);
            self.record(logged, needed.map(Vec::as_slice), &names)
        };
        self.log.iter().enumerate().map(record).collect()
    }

    fn record(
        &self,
        logged: &BoundaryLogEntry,
        needed: Option<&[NeededOperations]>,
        names: &ArrayNames,
    ) -> BoundaryRecord {
        let kernel = match logged.moment {
            BoundaryPosition::Before(index) | BoundaryPosition::After(index) => self.kernel(index),
            BoundaryPosition::ProgramEnds => None,
        };
        let module = |(module, operation): (ModuleId, &elision::L2Operation)| {
            let index = usize::from(module.0);
            let lost = logged.lost[index];
            let accounts = logged.accounts.iter().filter(|account| account.module == module);
            ModuleBoundary {
                module: module.to_string(),
                invalidate: operation.invalidate.is_some(),
                flush: operation.flush.is_some(),
                needed_invalidate: needed.map(|needed| needed[index].invalidate),
                needed_flush: needed.map(|needed| needed[index].flush),
                flushed_lines: lost.flushed.into(),
                dropped_lines: lost.dropped.into(),
                why: accounts.map(|account| names.why(account)).collect(),
            }
        };
        BoundaryRecord {
            at: self.word(logged.moment),
            kernel: kernel.map(|kernel| self.spec.program.kernels()[kernel as usize].name.clone()),
            start_s: logged.start.seconds(),
            end_s: logged.end.seconds(),
            rows: logged.rows as u64,
            modules: logged.boundary.iter().map(module).collect(),
        }
    }

    fn word(&self, moment: BoundaryPosition) -> &'static str {
        match moment {
            BoundaryPosition::Before(index) => match self.spec.program.commands()[index] {
                Command::Launch { .. } => LAUNCH,
                Command::Host { .. } | Command::Barrier => "host",
                Command::Copy { .. } => "copy",
            },
            BoundaryPosition::After(_) => "kernel-end",
            BoundaryPosition::ProgramEnds => PROGRAM_END,
        }
    }

    fn kernel(&self, index: usize) -> Option<u32> {
        self.spec.program.commands()[index].kernel()
    }

    /// Operations that an oracle needs at each logged boundary, by module; `None` if a kernel touches lines outside
    /// every array.
    fn needed(&self) -> Option<Vec<Vec<NeededOperations>>> {
        let (program, uses) = (&*self.spec.program, &self.known.uses);
        if program.arrays().is_empty() || uses.values().any(|used| used.elsewhere) {
            return None;
        }
        let size = program.line_size();
        let arrays: Vec<_> = program.arrays().iter().map(|array| array.lines(size)).collect();
        let holds = (self.spec.design.coherence.facts().holds)(&self.spec.design.options());
        let mut oracle = Oracle::new(&arrays, &self.known.pages, self.modules(), holds);
        let needed = self.log.iter().map(|logged| match logged.moment {
            BoundaryPosition::Before(index) => oracle.launch(&self.command_accesses(&program.commands()[index])),
            BoundaryPosition::After(_) => vec![NeededOperations::default(); usize::from(self.modules())],
            BoundaryPosition::ProgramEnds => oracle.end(),
        });
        Some(needed.collect())
    }

    fn command_accesses(&self, command: &Command) -> Vec<UserAccesses> {
        let program = &*self.spec.program;
        let size = program.line_size();
        let host = |reads: &[std::ops::Range<u64>], writes: &[std::ops::Range<u64>]| {
            let written = lines(writes, size);
            let mut touched = lines(reads, size);
            touched.add(&written);
            vec![UserAccesses { user: elision::User::Host, touched, written }]
        };
        match *command {
            Command::Launch { kernel, on, .. } => {
                UserAccesses::of_kernel(&self.known.uses[&(kernel, on)], self.modules())
            }
            Command::Barrier => Vec::new(),
            Command::Host { phase } => {
                let phase = &program.host_phases()[phase as usize];
                host(&phase.reads, &phase.writes)
            }
            Command::Copy { address, bytes, to_device } => {
                let moved = address..address.saturating_add(bytes);
                let moved = std::slice::from_ref(&moved);
                if to_device { host(&[], moved) } else { host(moved, &[]) }
            }
        }
    }

    /// Sums over `records`, which belong to this log.
    pub(crate) fn sum(&self, records: &[BoundaryRecord]) -> ElisionRecord {
        let [labels, operations, table] = match self.spec.design.elision {
            Elision::Never(_) => ["none"; 3],
            Elision::Cpelide(Cpelide { labels, operations, table, .. }) => {
                [labels.word(), operations.word(), table.word()]
            }
        };
        let [labels, operations, table] = [labels, operations, table].map(str::to_owned);
        let elides = matches!(self.spec.design.elision, Elision::Cpelide(_));
        let mut sum = ElisionRecord { labels, operations, table, ..ElisionRecord::default() };
        (sum.needed_flushes, sum.needed_invalidations) = (Some(0), Some(0));
        for record in records {
            sum.boundaries += u64::from(record.at == LAUNCH || record.at == PROGRAM_END);
            sum.rows_peak = sum.rows_peak.max(record.rows);
            for one in &record.modules {
                sum.flushes += u64::from(one.flush);
                sum.invalidations += u64::from(one.invalidate);
                add(&mut sum.needed_flushes, one.needed_flush);
                add(&mut sum.needed_invalidations, one.needed_invalidate);
                sum.flushed_lines += one.flushed_lines;
                sum.dropped_lines += one.dropped_lines;
            }
        }
        let modules = u64::from(self.modules());
        let [flushes, invalidations] = [sum.boundaries, sum.boundaries.saturating_sub(1)].map(|slots| slots * modules);
        if elides {
            sum.elided_flushes = flushes.saturating_sub(sum.flushes);
            sum.elided_invalidations = invalidations.saturating_sub(sum.invalidations);
        }
        sum.elidable_flushes = sum.needed_flushes.map(|needed| flushes.saturating_sub(needed));
        sum.elidable_invalidations = sum.needed_invalidations.map(|needed| invalidations.saturating_sub(needed));
        sum
    }
}

const LAUNCH: &str = "launch";
const PROGRAM_END: &str = "program-end";

/// Adds one to the sum if the operation is needed; the sum becomes unknown if the need is unknown.
fn add(sum: &mut Option<u64>, needed: Option<bool>) {
    *sum = sum.zip(needed).map(|(sum, needed)| sum + u64::from(needed));
}

fn lines(addresses: &[std::ops::Range<u64>], size: LineSize) -> LineSet {
    let lines = addresses.iter().map(|range| lines_of(range, size)).filter(|lines| !lines.is_empty());
    lines.map(|lines| LineRange::new(lines.start, lines.end)).collect()
}

/// Arrays by their first line, in address order.
struct ArrayNames(BTreeMap<u64, (u64, String)>);

impl ArrayNames {
    fn of(program: &dyn Program) -> ArrayNames {
        let size = program.line_size();
        let named = program.arrays().iter().map(|array| {
            let lines = array.lines(size);
            (lines.start.0, (lines.end.0, array.name.clone()))
        });
        ArrayNames(named.collect())
    }

    /// Arrays that begin within `structure`.
    fn within(&self, structure: LineRange) -> Vec<String> {
        let starting = self.0.range(structure.first.0..structure.end.0);
        starting.map(|(_, (_, name))| name.clone()).collect()
    }

    fn why(&self, account: &Account) -> WhyRecord {
        let mode = |mode: Option<AccessMode>| {
            mode.map(|mode| match mode {
                AccessMode::Read => "R",
                AccessMode::ReadWrite => "R/W",
            })
        };
        let state = |state: StructureState| match state {
            StructureState::NotPresent => "NP",
            StructureState::Valid => "V",
            StructureState::Dirty => "D",
            StructureState::Stale => "S",
            StructureState::DirtyStale => "B",
        };
        let why = |why: DecisionReason| why.to_string();
        WhyRecord {
            arrays: account.structure.map(|structure| self.within(structure)),
            local: mode(account.local),
            remote: mode(account.remote),
            before: state(account.before),
            after: state(account.after),
            invalidate: why(account.invalidate),
            flush: why(account.flush),
        }
    }
}
