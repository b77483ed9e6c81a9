//! The rows of a chiplet coherence table, and the three passes over them at a launch (see
//! [`super::chiplet_table`]).
//!
//! `row`: a single row. `allocation`: allocation and eviction of rows. `passes`: the three passes.
//!
//! - A row is a structure, or several combined structures: rows share no line. A structure newly named by a kernel
//!   absorbs all rows it overlaps.
//! - Rows are ordered by the launch that last named them. If a launch needs more entries than available, the least
//!   recently named row is evicted: its modules are invalidated and flushed. No row tracks the clean lines left by
//!   this flush, so the module is invalidated again before its next use of anything ([`CoherenceTable::untracked`]).
//! - A row used by a running kernel is never evicted. A launch that finds no space is treated like a launch without
//!   labels.
//! - A launch without labels invalidates and flushes all modules, and is flushed again at its end. It may leave
//!   copies of anything anywhere: all rows are cleared, and every module is untracked.

mod allocation;
mod passes;
mod row;

use self::passes::Finding;
use self::row::TableRow;
use super::touch::{Touch, touches};
use super::{
    Account, BoundaryOperations, BrokenElision, DecisionReason, Extent, InvalidationTurn, KernelId, L2Operation,
    ModuleSet, OperationGranularity, Packet, StructureState,
};
use tombolo_types::ModuleId;

/// Table sizes, and the reach of its operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TableConfig {
    /// Number of entries.
    pub rows: u16,
    /// Maximum number of structures per kernel; further structures are combined.
    pub structures: u16,
    /// Maximum number of ranges per row and module; beyond it, the closest ranges are combined. A row uses an entry
    /// for each range. With at most `rows / structures`, every kernel fits into an empty table.
    pub ranges: u16,
    /// The reach of an operation.
    pub operations: OperationGranularity,
    /// Number of modules in a GPU whose L2s also hold lines used by each other; 1 if each L2 holds only its own
    /// module's lines.
    pub sharing: u8,
}

/// CPElide's table: 8 structures for each of 8 kernels. Source: CPElide, III-A, "Sizing Chiplet Coherence Table".
/// The default is a single range per module: 28 bytes per entry are two 28-bit bounds for four chiplets (III-A; the
/// division is ours).
impl Default for TableConfig {
    fn default() -> TableConfig {
        TableConfig { rows: 64, structures: 8, ranges: 1, operations: OperationGranularity::Cache, sharing: 1 }
    }
}

/// The L2s that may hold a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum LineHolders {
    /// The L2 in every module that uses the line.
    Every,
    /// The L2 at the line's home only.
    Home,
}

/// A kernel that has been launched and has not ended yet.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct RunningKernel {
    kernel: KernelId,
    on: ModuleSet,
    /// The kernel's touches; `None` if it may access anything.
    touches: Option<Vec<Touch>>,
}

/// The chiplet coherence table.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct CoherenceTable {
    config: TableConfig,
    reach: LineHolders,
    broken: Option<BrokenElision>,
    modules: u8,
    /// The rows, ordered by last naming launch, least recent first.
    rows: Vec<TableRow>,
    /// Modules whose L2 may hold outdated copies of lines that no row tracks for them.
    untracked: ModuleSet,
    /// Running kernels, in launch order.
    running: Vec<RunningKernel>,
}

impl CoherenceTable {
    pub(super) fn new(
        config: TableConfig,
        reach: LineHolders,
        modules: u8,
        broken: Option<BrokenElision>,
    ) -> CoherenceTable {
        CoherenceTable {
            config,
            reach,
            broken,
            modules,
            rows: Vec::new(),
            untracked: ModuleSet::NONE,
            running: Vec::new(),
        }
    }

    /// Number of entries in use.
    pub(super) fn entries(&self) -> usize {
        self.rows.iter().map(|row| row.entries()).sum()
    }

    /// The boundary before a kernel is enabled.
    pub(super) fn launch(&mut self, packet: &Packet<'_>, why: &mut dyn FnMut(&Account)) -> BoundaryOperations {
        let Some(labels) = packet.labels else { return self.launch_unlabelled(packet, why) };
        let touches = touches(labels, self.config, self.reach, self.modules, self.broken);
        let Some(evicted) = self.make_room(&touches) else { return self.launch_unlabelled(packet, why) };
        let before = self.broken == Some(BrokenElision::TransitionBeforeColumns);
        let findings = self.findings(&touches);
        let boundary = self.requested_boundary(&touches, &findings, &evicted, why);
        if before {
            self.transition(&touches);
        }
        self.perform(&boundary, &findings);
        self.record_evictions(evicted, &boundary, why);
        if !before {
            self.transition(&touches);
        }
        self.report(&findings, why);
        self.remove_empty_rows();
        self.running.push(RunningKernel { kernel: packet.kernel, on: packet.modules, touches: Some(touches) });
        boundary
    }

    /// The boundary before a kernel without labels is enabled, which may access anything.
    fn launch_unlabelled(&mut self, packet: &Packet<'_>, why: &mut dyn FnMut(&Account)) -> BoundaryOperations {
        if self.broken == Some(BrokenElision::UnlabelledDoesNothing) {
            self.running.push(RunningKernel { kernel: packet.kernel, on: packet.modules, touches: Some(Vec::new()) });
            return BoundaryOperations::nothing(self.modules);
        }
        let every = |module| L2Operation {
            invalidate: Some(Extent::Cache),
            flush: Some(Extent::Cache),
            turn: self.turn(module),
        };
        let boundary = BoundaryOperations { modules: self.modules().map(every).collect() };
        self.modules()
            .for_each(|module| why(&Account::of_cache(module, DecisionReason::Unlabelled, DecisionReason::Unlabelled)));
        let findings = self.cell_findings(|_, _, cell| {
            Finding::idle(cell.state, DecisionReason::Unlabelled, DecisionReason::Unlabelled)
        });
        self.perform(&boundary, &findings);
        self.forget_idle_rows();
        self.untracked = ModuleSet::first(self.modules);
        self.running.push(RunningKernel { kernel: packet.kernel, on: packet.modules, touches: None });
        self.transition(&[]);
        self.report(&findings, why);
        self.remove_empty_rows();
        boundary
    }

    /// The boundary at a kernel's end.
    pub(super) fn finish(&mut self, kernel: KernelId, why: &mut dyn FnMut(&Account)) -> BoundaryOperations {
        let at = self.running.iter().position(|running| running.kernel == kernel);
        let RunningKernel { on, touches, .. } =
            self.running.remove(at.unwrap_or_else(|| panic!("{kernel:?} ends and was not running")));
        let mut boundary = BoundaryOperations::nothing(self.modules);
        if touches.is_some() {
            return boundary;
        }
        self.untracked = ModuleSet::first(self.modules);
        if self.broken != Some(BrokenElision::UnlabelledNotReleased) {
            for module in self.modules().filter(|&module| on.contains(module)) {
                boundary.modules[usize::from(module.0)].flush = Some(Extent::Cache);
                why(&Account::of_cache(module, DecisionReason::StaleUnused, DecisionReason::UnlabelledEnds));
            }
        }
        let flush =
            |module| if on.contains(module) { DecisionReason::UnlabelledEnds } else { DecisionReason::NotShared };
        let findings =
            self.cell_findings(|_, module, cell| Finding::idle(cell.state, DecisionReason::StaleUnused, flush(module)));
        self.perform(&boundary, &findings);
        self.report(&findings, why);
        boundary
    }

    /// The boundary at the end of the program.
    pub(super) fn end(&mut self, why: &mut dyn FnMut(&Account)) -> BoundaryOperations {
        assert!(self.running.is_empty(), "the program ends while {:?} run", self.running);
        let mut boundary = BoundaryOperations::nothing(self.modules);
        if self.broken == Some(BrokenElision::FinalReleaseMissing) {
            return boundary;
        }
        let flush = |state: StructureState| {
            if state.is_dirty() { DecisionReason::ProgramEnds } else { state.flush(None, None) }
        };
        let findings = self
            .cell_findings(|_, _, cell| Finding::idle(cell.state, cell.state.invalidation(None), flush(cell.state)));
        self.add_requests(&mut boundary, &findings);
        self.perform(&boundary, &findings);
        self.report(&findings, why);
        boundary
    }

    fn modules(&self) -> impl Iterator<Item = ModuleId> + use<> {
        (0..self.modules).map(ModuleId)
    }

    /// True if a running kernel uses the row on the module.
    fn busy(&self, row: &TableRow, module: ModuleId) -> bool {
        self.running.iter().any(|running| match &running.touches {
            Some(touches) => touches.iter().any(|touch| touch.is_local(module) && row.has(touch)),
            None => running.on.contains(module),
        })
    }

    /// The turn of the module's invalidation.
    fn turn(&self, module: ModuleId) -> InvalidationTurn {
        let runs = self.running.iter().any(|running| running.on.contains(module));
        match self.broken {
            Some(BrokenElision::RunningInvalidatedFirst) => InvalidationTurn::BeforeFlushes,
            Some(_) | None if runs => InvalidationTurn::AfterFlushes,
            Some(_) | None => InvalidationTurn::BeforeFlushes,
        }
    }

    /// True if a kernel without labels is running.
    fn is_unlabelled(&self) -> bool {
        self.running.iter().any(|running| running.touches.is_none())
    }
}

impl RunningKernel {
    /// True if the kernel may write anything, from modules other than `module`.
    fn may_write_beside(&self, module: ModuleId) -> bool {
        self.touches.is_none() && self.on != ModuleSet::only(module)
    }
}
