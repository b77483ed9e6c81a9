//! The three passes over all rows at a launch: requested operations, their effects, and the launch's own effect.

use super::row::{TableCell, TableRow};
use super::{CoherenceTable, Touch};
use crate::elision::{
    AccessMode, Account, BoundaryOperations, BrokenElision, DecisionReason, Extent, LineSet, ModuleSet,
    OperationGranularity, StructureState,
};
use tombolo_types::ModuleId;

/// Pass 1's finding for a single cell: its accesses, and the decisions with their reasons.
#[derive(Clone, Copy)]
pub(super) struct Finding {
    before: StructureState,
    local: Option<AccessMode>,
    remote: Option<AccessMode>,
    invalidate: DecisionReason,
    flush: DecisionReason,
}

impl Finding {
    /// The finding for a cell without accesses.
    pub(super) fn idle(before: StructureState, invalidate: DecisionReason, flush: DecisionReason) -> Finding {
        Finding { before, local: None, remote: None, invalidate, flush }
    }
}

impl CoherenceTable {
    /// A finding for each row and module.
    pub(super) fn cell_findings(
        &self,
        finding: impl Fn(&TableRow, ModuleId, &TableCell) -> Finding,
    ) -> Vec<Vec<Finding>> {
        let of_row = |row: &TableRow| self.modules().map(|module| finding(row, module, row.cell(module))).collect();
        self.rows.iter().map(of_row).collect()
    }

    /// Pass 1: the operations requested by each row.
    pub(super) fn findings(&self, touches: &[Touch]) -> Vec<Vec<Finding>> {
        self.cell_findings(|row, module, cell| {
            let (local, remote) = self.accesses(row, module, touches);
            let asserted = touches.iter().any(|touch| touch.asserted && row.has(touch));
            let reason = |why: DecisionReason| if asserted && why.is_done() { DecisionReason::Asserted } else { why };
            let (invalidate, flush) = (cell.state.invalidation(local), cell.state.flush(local, remote));
            let (invalidate, flush) = match (self.broken, invalidate, flush) {
                (Some(BrokenElision::StaleTakenAsValid), DecisionReason::StaleUsed, flush) => {
                    (DecisionReason::Current, flush)
                }
                (Some(BrokenElision::SharedDirtyKept), invalidate, DecisionReason::DirtyShared) => {
                    (invalidate, DecisionReason::NotShared)
                }
                (Some(_) | None, invalidate, flush) => (invalidate, flush),
            };
            Finding { before: cell.state, local, remote, invalidate: reason(invalidate), flush: reason(flush) }
        })
    }

    /// The launch's access mode for the row on the module, and any other user's mode for lines that the module
    /// holds or is about to use.
    fn accesses(
        &self,
        row: &TableRow,
        module: ModuleId,
        touches: &[Touch],
    ) -> (Option<AccessMode>, Option<AccessMode>) {
        let local = touches.iter().filter(|touch| touch.is_local(module) && row.has(touch)).map(|touch| touch.mode);
        let local = local.max();
        let mut range = row.cell(module).lines.clone();
        range.add(&row.local(touches, module));
        if range.is_empty() || self.broken == Some(BrokenElision::OverlapTakenAsDisjoint) {
            return (local, None);
        }
        let counts = self.broken != Some(BrokenElision::RunningForgotten);
        let running = self.running.iter().filter(|_| counts);
        let running = running.flat_map(|running| running.touches.iter().flatten());
        let others = touches.iter().chain(running).filter(|touch| touch.is_remote(module) && row.has(touch));
        let remote = others.filter(|touch| touch.lines.overlaps(&range)).map(|touch| touch.mode).max();
        let unlabelled = self.running.iter().any(|running| running.may_write_beside(module));
        (local, if unlabelled && counts { Some(AccessMode::ReadWrite) } else { remote })
    }

    /// The boundary requested by a launch.
    pub(super) fn requested_boundary(
        &self,
        touches: &[Touch],
        findings: &[Vec<Finding>],
        evicted: &[TableRow],
        why: &mut dyn FnMut(&Account),
    ) -> BoundaryOperations {
        let mut boundary = BoundaryOperations::nothing(self.modules);
        self.add_requests(&mut boundary, findings);
        for module in self.modules() {
            let operation = &mut boundary.modules[usize::from(module.0)];
            operation.turn = self.turn(module);
            for cell in
                evicted.iter().map(|row| row.cell(module)).filter(|cell| cell.state != StructureState::NotPresent)
            {
                if self.broken != Some(BrokenElision::EvictionSilent) {
                    self.extend_to(&mut operation.invalidate, &cell.lines);
                    if cell.state.is_dirty() {
                        self.extend_to(&mut operation.flush, &cell.lines);
                    }
                }
            }
            if self.untracked.contains(module) && touches.iter().any(|touch| touch.is_local(module)) {
                operation.invalidate = Some(Extent::Cache);
                why(&Account::of_cache(module, DecisionReason::Untracked, DecisionReason::Clean));
            }
        }
        boundary
    }

    /// Adds to `boundary` the operations that the findings request.
    pub(super) fn add_requests(&self, boundary: &mut BoundaryOperations, findings: &[Vec<Finding>]) {
        for (row, findings) in self.rows.iter().zip(findings) {
            for (module, finding) in self.modules().zip(findings) {
                let operation = &mut boundary.modules[usize::from(module.0)];
                if finding.invalidate.is_done() {
                    self.extend_to(&mut operation.invalidate, &row.cell(module).lines);
                }
                if finding.flush.is_done() {
                    self.extend_to(&mut operation.flush, &row.cell(module).lines);
                }
            }
        }
    }

    /// Extends an operation to `lines`.
    fn extend_to(&self, extent: &mut Option<Extent>, lines: &LineSet) {
        match (self.config.operations, extent) {
            (OperationGranularity::Range, Some(Extent::Lines(reached))) => reached.add(lines),
            (OperationGranularity::Range, extent @ None) => *extent = Some(Extent::Lines(lines.clone())),
            (OperationGranularity::Range, Some(Extent::Cache)) => {}
            (OperationGranularity::Cache, extent) => *extent = Some(Extent::Cache),
        }
    }

    /// Pass 2: the operations' effects on each module's rows, except rows used there by a running kernel.
    pub(super) fn perform(&mut self, boundary: &BoundaryOperations, findings: &[Vec<Finding>]) {
        let cleans_busy = self.broken == Some(BrokenElision::BusyRowCleaned);
        let busy = |row: &TableRow| self.modules().map(|module| !cleans_busy && self.busy(row, module)).collect();
        let busy: Vec<Vec<bool>> = self.rows.iter().map(busy).collect();
        for (module, operation) in boundary.iter() {
            let index = usize::from(module.0);
            let changed = if self.broken == Some(BrokenElision::ColumnsOfModuleZero) { 0 } else { index };
            for ((row, findings), busy) in self.rows.iter_mut().zip(findings).zip(&busy) {
                if !busy[changed] {
                    let finding = findings[index];
                    let cell = &mut row.cells[changed];
                    if reaches(operation.invalidate.as_ref(), finding.invalidate, self.broken) {
                        cell.state = cell.state.invalidated();
                    }
                    if reaches(operation.flush.as_ref(), finding.flush, self.broken) {
                        cell.state = flushed(cell.state, self.broken);
                    }
                    if cell.state == StructureState::NotPresent {
                        cell.lines = LineSet::default();
                    }
                }
            }
            if operation.invalidate == Some(Extent::Cache) && !self.is_unlabelled() {
                self.untracked = self.untracked.difference(ModuleSet::only(module));
            }
        }
    }

    /// Pass 3: the launch's own transition.
    pub(super) fn transition(&mut self, touches: &[Touch]) {
        let accesses = |row: &TableRow| self.modules().map(|module| self.accesses(row, module, touches)).collect();
        let accesses: Vec<Vec<_>> = self.rows.iter().map(accesses).collect();
        for (row, accesses) in self.rows.iter_mut().zip(accesses) {
            for (module, (local, remote)) in (0..self.modules).map(ModuleId).zip(accesses) {
                let new = row.local(touches, module);
                let cell = &mut row.cells[usize::from(module.0)];
                cell.state = launched(cell.state, local, remote, self.broken);
                if self.broken == Some(BrokenElision::RangeReplaced) && !new.is_empty() {
                    cell.lines = LineSet::default();
                }
                cell.lines.add(&new);
                cell.lines = std::mem::take(&mut cell.lines).limited(usize::from(self.config.ranges));
            }
        }
    }

    /// Reports every row and module to `why`. The rows must match the findings.
    pub(super) fn report(&self, findings: &[Vec<Finding>], why: &mut dyn FnMut(&Account)) {
        for (row, findings) in self.rows.iter().zip(findings) {
            for (module, finding) in self.modules().zip(findings) {
                let &Finding { before, local, remote, invalidate, flush } = finding;
                let after = row.cell(module).state;
                why(&Account {
                    structure: Some(row.structure),
                    module,
                    local,
                    remote,
                    before,
                    after,
                    invalidate,
                    flush,
                });
            }
        }
    }
}

/// True if an operation with this extent reaches a row's lines, given the row's own reason for or against the
/// operation.
fn reaches(extent: Option<&Extent>, asked: DecisionReason, broken: Option<BrokenElision>) -> bool {
    match extent {
        None => false,
        Some(Extent::Cache) => broken != Some(BrokenElision::ColumnsOfAskingRows) || asked.is_done(),
        Some(Extent::Lines(_)) => asked.is_done(),
    }
}

/// [`StructureState::flushed`] with broken rules applied.
fn flushed(state: StructureState, broken: Option<BrokenElision>) -> StructureState {
    match broken {
        Some(BrokenElision::ReleaseSetsNotPresent) if state.is_dirty() => StructureState::NotPresent,
        Some(_) | None => state.flushed(),
    }
}

/// [`StructureState::launched`] with broken rules applied.
fn launched(
    state: StructureState,
    local: Option<AccessMode>,
    remote: Option<AccessMode>,
    broken: Option<BrokenElision>,
) -> StructureState {
    let by_local = |state: StructureState| state.launched(local, None);
    // A remote write flushes, then marks as stale.
    let by_remote = |state: StructureState| match (remote, state) {
        (
            Some(AccessMode::ReadWrite),
            StructureState::Valid | StructureState::Dirty | StructureState::Stale | StructureState::DirtyStale,
        ) => StructureState::Stale,
        (Some(AccessMode::ReadWrite), StructureState::NotPresent) => StructureState::NotPresent,
        (None | Some(AccessMode::Read), state) => state,
    };
    match broken {
        Some(BrokenElision::LocalBeforeRemote) => by_remote(by_local(state)),
        Some(BrokenElision::RemoteBeforeLocal) => by_local(by_remote(state)),
        Some(BrokenElision::RemoteWriteLeavesValid) if state == StructureState::Valid && local.is_none() => state,
        Some(BrokenElision::StaleBytesForgotten) if state.launched(local, remote) == StructureState::DirtyStale => {
            StructureState::Dirty
        }
        Some(_) | None => state.launched(local, remote),
    }
}
