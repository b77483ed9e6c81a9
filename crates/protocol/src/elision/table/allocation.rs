//! Allocation and eviction of rows: space for a launch's touches.

use super::row::{TableCell, TableRow};
use super::{CoherenceTable, Touch};
use crate::elision::{Account, BoundaryOperations, BrokenElision, DecisionReason, ModuleSet, StructureState};

impl CoherenceTable {
    /// Gives each touched structure a single row, as the most recent. Returns the rows evicted for it; `None` if
    /// the table has no space.
    pub(super) fn make_room(&mut self, touches: &[Touch]) -> Option<Vec<TableRow>> {
        for touch in touches {
            let named = |row: &mut TableRow| row.has(touch);
            let mut row = TableRow::new(touch.structure, self.modules);
            let before = self.rows.len();
            self.rows.extract_if(.., named).for_each(|older| row.absorb(older));
            let is_new = self.rows.len() == before;
            if !is_new || self.modules().any(|module| touch.is_local(module)) {
                self.rows.push(row);
            }
        }
        let mut evicted = Vec::new();
        while self.max_entries_with(touches) > usize::from(self.config.rows) {
            let ignores_busy = self.broken == Some(BrokenElision::BusyRowEvicted);
            let may_leave = |row: &TableRow| {
                let is_busy = self.modules().any(|module| self.busy(row, module));
                !touches.iter().any(|touch| row.has(touch)) && (ignores_busy || !is_busy)
            };
            let oldest = self.rows.iter().position(may_leave)?;
            evicted.push(self.rows.remove(oldest));
        }
        Some(evicted)
    }

    /// Upper bound on the number of entries used by the rows, including the touched lines.
    fn max_entries_with(&self, touches: &[Touch]) -> usize {
        let most = |row: &TableRow| {
            let cells = self.modules().map(|module| {
                let new = row.local(touches, module).limited(usize::from(self.config.ranges));
                let mut all = row.cell(module).lines.clone();
                all.add(&new);
                new.ranges().len().max(all.limited(usize::from(self.config.ranges)).ranges().len())
            });
            cells.max().unwrap_or(0).max(1)
        };
        self.rows.iter().map(most).sum()
    }

    /// Records the remains of the evicted rows: modules that still hold copies become untracked.
    pub(super) fn record_evictions(
        &mut self,
        evicted: Vec<TableRow>,
        boundary: &BoundaryOperations,
        why: &mut dyn FnMut(&Account),
    ) {
        for row in evicted {
            for (module, operation) in boundary.iter() {
                let before = row.cell(module).state;
                let invalidated = if operation.invalidate.is_some() { before.invalidated() } else { before };
                let after = if operation.flush.is_some() { invalidated.flushed() } else { invalidated };
                let forgets = [Some(BrokenElision::EvictionSilent), Some(BrokenElision::EvictionLeavesCopies)];
                if after != StructureState::NotPresent && !forgets.contains(&self.broken) {
                    self.untracked = self.untracked.union(ModuleSet::only(module));
                }
                if before != StructureState::NotPresent {
                    let flush = if before.is_dirty() { DecisionReason::Evicted } else { DecisionReason::Clean };
                    let cache = Account::of_cache(module, DecisionReason::Evicted, flush);
                    why(&Account { structure: Some(row.structure), before, after, ..cache });
                }
            }
        }
    }

    /// Clears the contents of rows that no running kernel uses.
    pub(super) fn forget_idle_rows(&mut self) {
        let idle = |row: &TableRow| self.modules().all(|module| !self.busy(row, module));
        let idle: Vec<bool> = self.rows.iter().map(idle).collect();
        for (row, _) in self.rows.iter_mut().zip(idle).filter(|(_, idle)| *idle) {
            row.cells.fill(TableCell::default());
        }
    }

    /// Removes rows without contents in any module (III-C, "Removing Entries").
    pub(super) fn remove_empty_rows(&mut self) {
        let broken = self.broken == Some(BrokenElision::LiveRowRemoved);
        let stays = |state: StructureState| if broken { state.is_dirty() } else { state != StructureState::NotPresent };
        self.rows.retain(|row| row.cells.iter().any(|cell| stays(cell.state)));
    }
}
