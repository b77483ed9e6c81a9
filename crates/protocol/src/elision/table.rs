//! The rows of a chiplet coherence table, and the three passes over them at a launch (see [`super::chiplet_table`]).
//!
//! - A row is a structure, or several that became one: rows share no line. A structure that a kernel names anew takes
//!   up all rows it overlaps.
//! - Rows are kept in the order in which launches last named them. Where a launch needs more entries than there are,
//!   the one longest unnamed leaves: its modules are invalidated and flushed. What that flush leaves clean no row
//!   names any longer, so the module is invalidated again before it next uses anything ([`Table::untracked`]).
//! - A row that a running kernel uses never leaves. A launch that finds no room is treated as one without labels.
//! - A launch without labels invalidates and flushes all modules and is flushed again at its end. It may leave copies
//!   of anything anywhere: all rows go, and every module is untracked.

use super::touch::{Touch, touches};
use super::{
    Account, Boundary, BrokenElision, Extent, KernelId, LineSet, Lines, Mode, ModuleSet, Operation, Operations, Packet,
    State, Turn, Why,
};
use tombolo_types::ModuleId;

/// Sizes of a table, and what its operations reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TableConfig {
    /// Entries.
    pub rows: u16,
    /// Structures a kernel may have; more are combined.
    pub structures: u16,
    /// Ranges that a row may have of each module; of more, those closest to each other become one. A row takes an
    /// entry for each. With at most `rows / structures` every kernel finds room in an empty table.
    pub ranges: u16,
    /// What an operation reaches.
    pub operations: Operations,
}

/// CPElide's table: 8 structures of each of 8 kernels. Source: CPElide, III-A, "Sizing Chiplet Coherence Table". One
/// range a module: 28 bytes an entry are four chiplets' two bounds of 28 bits (III-A; the division is ours).
impl Default for TableConfig {
    fn default() -> TableConfig {
        TableConfig { rows: 64, structures: 8, ranges: 1, operations: Operations::Cache }
    }
}

/// Whose L2s may hold a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Reach {
    /// That of every module that uses it.
    Every,
    /// That of its home alone.
    Home,
}

/// What one module's L2 may hold of one structure.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Cell {
    state: State,
    /// None where the state is [`State::NotPresent`].
    lines: LineSet,
}

/// One structure.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Row {
    structure: Lines,
    /// By module.
    cells: Vec<Cell>,
}

/// A kernel that has been launched and has not ended.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Running {
    kernel: KernelId,
    on: ModuleSet,
    /// What it touches; `None` where that may be anything.
    touches: Option<Vec<Touch>>,
}

/// What pass 1 finds for one cell.
#[derive(Clone, Copy)]
struct Finding {
    before: State,
    local: Option<Mode>,
    remote: Option<Mode>,
    invalidate: Why,
    flush: Why,
}

/// The table.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Table {
    config: TableConfig,
    reach: Reach,
    broken: Option<BrokenElision>,
    modules: u8,
    /// The row that launches have named least recently first.
    rows: Vec<Row>,
    /// Modules whose L2 may hold old copies of lines that no row names for them.
    untracked: ModuleSet,
    /// In the order of their launches.
    running: Vec<Running>,
}

impl Table {
    pub(super) fn new(config: TableConfig, reach: Reach, modules: u8, broken: Option<BrokenElision>) -> Table {
        Table { config, reach, broken, modules, rows: Vec::new(), untracked: ModuleSet::NONE, running: Vec::new() }
    }

    /// Entries in use.
    pub(super) fn entries(&self) -> usize {
        self.rows.iter().map(|row| row.entries()).sum()
    }

    /// What is done before a kernel is enabled.
    pub(super) fn launch(&mut self, packet: &Packet<'_>, why: &mut dyn FnMut(&Account)) -> Boundary {
        let Some(labels) = packet.labels else { return self.launch_unlabelled(packet, why) };
        let touches = touches(labels, self.config, self.reach, self.modules, self.broken);
        let Some(evicted) = self.make_room(&touches) else { return self.launch_unlabelled(packet, why) };
        let before = self.broken == Some(BrokenElision::TransitionBeforeColumns);
        let findings = self.findings(&touches);
        let boundary = self.asked(&touches, &findings, &evicted, why);
        if before {
            self.transition(&touches);
        }
        self.perform(&boundary, &findings);
        self.leave(evicted, &boundary, why);
        if !before {
            self.transition(&touches);
        }
        self.report(&findings, why);
        self.tidy();
        self.running.push(Running { kernel: packet.kernel, on: packet.on, touches: Some(touches) });
        boundary
    }

    /// What is done before a kernel is enabled that may access anything.
    fn launch_unlabelled(&mut self, packet: &Packet<'_>, why: &mut dyn FnMut(&Account)) -> Boundary {
        if self.broken == Some(BrokenElision::UnlabelledDoesNothing) {
            self.running.push(Running { kernel: packet.kernel, on: packet.on, touches: Some(Vec::new()) });
            return Boundary::nothing(self.modules);
        }
        let every =
            |module| Operation { invalidate: Some(Extent::Cache), flush: Some(Extent::Cache), turn: self.turn(module) };
        let boundary = Boundary { modules: self.modules().map(every).collect() };
        let ask = |state| (None, Why::Unlabelled, Why::Unlabelled, state);
        self.modules().for_each(|module| why(&account(None, module, ask(State::NotPresent))));
        let findings = self.with(|_, _, cell| Finding {
            before: cell.state,
            local: None,
            remote: None,
            invalidate: Why::Unlabelled,
            flush: Why::Unlabelled,
        });
        self.perform(&boundary, &findings);
        self.untracked = ModuleSet::first(self.modules);
        let idle = |table: &Table, row: &Row| table.modules().all(|module| !table.busy(row, module));
        let gone: Vec<bool> = self.rows.iter().map(|row| idle(self, row)).collect();
        self.running.push(Running { kernel: packet.kernel, on: packet.on, touches: None });
        self.transition(&[]);
        self.clear(&gone);
        self.report(&findings, why);
        self.tidy();
        boundary
    }

    /// What is done at a kernel's end.
    pub(super) fn finish(&mut self, kernel: KernelId, why: &mut dyn FnMut(&Account)) -> Boundary {
        let at = self.running.iter().position(|running| running.kernel == kernel);
        let ended = self.running.remove(at.unwrap_or_else(|| panic!("{kernel:?} ends and was not running")));
        let mut boundary = Boundary::nothing(self.modules);
        if ended.touches.is_some() {
            return boundary;
        }
        self.untracked = ModuleSet::first(self.modules);
        if self.broken != Some(BrokenElision::UnlabelledNotReleased) {
            for module in self.modules().filter(|&module| ended.on.contains(module)) {
                boundary.modules[usize::from(module.0)].flush = Some(Extent::Cache);
                why(&account(None, module, (None, Why::Clean, Why::UnlabelledEnds, State::NotPresent)));
            }
        }
        let findings = self.with(|_, module, cell| Finding {
            before: cell.state,
            local: None,
            remote: None,
            invalidate: Why::StaleUnused,
            flush: if ended.on.contains(module) { Why::UnlabelledEnds } else { Why::NotShared },
        });
        self.perform(&boundary, &findings);
        boundary
    }

    /// What is done at the end of the program.
    pub(super) fn end(&mut self, why: &mut dyn FnMut(&Account)) -> Boundary {
        assert!(self.running.is_empty(), "the program ends while {:?} run", self.running);
        let mut boundary = Boundary::nothing(self.modules);
        if self.broken == Some(BrokenElision::FinalReleaseMissing) {
            return boundary;
        }
        let findings = self.with(|_, _, cell| Finding {
            before: cell.state,
            local: None,
            remote: None,
            invalidate: cell.state.invalidation(None),
            flush: if cell.state.is_dirty() { Why::ProgramEnds } else { cell.state.flush(None, None) },
        });
        self.ask(&mut boundary, &findings);
        self.perform(&boundary, &findings);
        self.report(&findings, why);
        boundary
    }

    fn modules(&self) -> impl Iterator<Item = ModuleId> + use<> {
        (0..self.modules).map(ModuleId)
    }

    /// Whether a running kernel uses the row on the module.
    fn busy(&self, row: &Row, module: ModuleId) -> bool {
        self.running.iter().any(|running| match &running.touches {
            Some(touches) => touches.iter().any(|touch| touch.is_local(module) && row.has(touch)),
            None => running.on.contains(module),
        })
    }

    /// When the module is invalidated.
    fn turn(&self, module: ModuleId) -> Turn {
        let runs = self.running.iter().any(|running| running.on.contains(module));
        match self.broken {
            Some(BrokenElision::RunningInvalidatedFirst) => Turn::BeforeFlushes,
            Some(_) | None if runs => Turn::AfterFlushes,
            Some(_) | None => Turn::BeforeFlushes,
        }
    }

    /// Whether a kernel without labels is running.
    fn is_unlabelled(&self) -> bool {
        self.running.iter().any(|running| running.touches.is_none())
    }
}

/// Rows: room for new ones, and those that leave.
impl Table {
    /// Gives each structure touched one row, the most recent. Returns rows that left for that; `None` where there is
    /// no room.
    fn make_room(&mut self, touches: &[Touch]) -> Option<Vec<Row>> {
        for touch in touches {
            let named = |row: &mut Row| row.has(touch);
            let mut row = Row::new(touch.structure, self.modules);
            let before = self.rows.len();
            self.rows.extract_if(.., named).for_each(|older| row.take_up(older));
            let is_new = self.rows.len() == before;
            if !is_new || self.modules().any(|module| touch.is_local(module)) {
                self.rows.push(row);
            }
        }
        let mut evicted = Vec::new();
        while self.entries_with(touches) > usize::from(self.config.rows) {
            let ignores_busy = self.broken == Some(BrokenElision::BusyRowEvicted);
            let may_leave = |row: &Row| {
                let is_busy = self.modules().any(|module| self.busy(row, module));
                !touches.iter().any(|touch| row.has(touch)) && (ignores_busy || !is_busy)
            };
            let oldest = self.rows.iter().position(may_leave)?;
            evicted.push(self.rows.remove(oldest));
        }
        Some(evicted)
    }

    /// Entries that the rows take at most with what is touched in them.
    fn entries_with(&self, touches: &[Touch]) -> usize {
        let most = |row: &Row| {
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

    /// What the rows evicted leave behind.
    fn leave(&mut self, evicted: Vec<Row>, boundary: &Boundary, why: &mut dyn FnMut(&Account)) {
        for row in evicted {
            for (module, operation) in boundary.iter() {
                let before = row.cell(module).state;
                let invalidated = if operation.invalidate.is_some() { before.invalidated() } else { before };
                let after = if operation.flush.is_some() { invalidated.flushed() } else { invalidated };
                let forgets = [Some(BrokenElision::EvictionSilent), Some(BrokenElision::EvictionLeavesCopies)];
                if after != State::NotPresent && !forgets.contains(&self.broken) {
                    self.untracked = self.untracked.and(ModuleSet::only(module));
                }
                if before != State::NotPresent {
                    let flush = if before.is_dirty() { Why::Evicted } else { Why::Clean };
                    why(&account(Some((row.structure, before)), module, (None, Why::Evicted, flush, after)));
                }
            }
        }
    }

    /// Removes what the rows marked say.
    fn clear(&mut self, gone: &[bool]) {
        for (row, _) in self.rows.iter_mut().zip(gone).filter(|(_, gone)| **gone) {
            row.cells.fill(Cell::default());
        }
    }

    /// Removes rows of which no module holds anything (III-C, "Removing Entries").
    fn tidy(&mut self) {
        let broken = self.broken == Some(BrokenElision::LiveRowRemoved);
        let stays = |state: State| if broken { state.is_dirty() } else { state != State::NotPresent };
        self.rows.retain(|row| row.cells.iter().any(|cell| stays(cell.state)));
    }
}

/// The three passes.
impl Table {
    /// A finding for each row and module.
    fn with(&self, finding: impl Fn(&Row, ModuleId, &Cell) -> Finding) -> Vec<Vec<Finding>> {
        let of_row = |row: &Row| self.modules().map(|module| finding(row, module, row.cell(module))).collect();
        self.rows.iter().map(of_row).collect()
    }

    /// Pass 1: what each row asks for.
    fn findings(&self, touches: &[Touch]) -> Vec<Vec<Finding>> {
        self.with(|row, module, cell| {
            let (local, remote) = self.accesses(row, module, touches);
            let asserted = touches.iter().any(|touch| touch.asserted && row.has(touch));
            let reason = |why: Why| if asserted && why.is_done() { Why::Asserted } else { why };
            let (invalidate, flush) = (cell.state.invalidation(local), cell.state.flush(local, remote));
            let (invalidate, flush) = match (self.broken, invalidate, flush) {
                (Some(BrokenElision::StaleTakenAsValid), Why::StaleUsed, flush) => (Why::Current, flush),
                (Some(BrokenElision::SharedDirtyKept), invalidate, Why::DirtyShared) => (invalidate, Why::NotShared),
                (Some(_) | None, invalidate, flush) => (invalidate, flush),
            };
            Finding { before: cell.state, local, remote, invalidate: reason(invalidate), flush: reason(flush) }
        })
    }

    /// How the launch uses the row on the module, and how anybody else uses the lines that it holds or is to use.
    fn accesses(&self, row: &Row, module: ModuleId, touches: &[Touch]) -> (Option<Mode>, Option<Mode>) {
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
        (local, if unlabelled && counts { Some(Mode::ReadWrite) } else { remote })
    }

    /// The boundary that a launch asks for.
    fn asked(
        &self,
        touches: &[Touch],
        findings: &[Vec<Finding>],
        evicted: &[Row],
        why: &mut dyn FnMut(&Account),
    ) -> Boundary {
        let mut boundary = Boundary::nothing(self.modules);
        self.ask(&mut boundary, findings);
        for module in self.modules() {
            let operation = &mut boundary.modules[usize::from(module.0)];
            for cell in evicted.iter().map(|row| row.cell(module)).filter(|cell| cell.state != State::NotPresent) {
                if self.broken != Some(BrokenElision::EvictionSilent) {
                    self.reach(&mut operation.invalidate, &cell.lines);
                    if cell.state.is_dirty() {
                        self.reach(&mut operation.flush, &cell.lines);
                    }
                }
            }
            if self.untracked.contains(module) && touches.iter().any(|touch| touch.is_local(module)) {
                operation.invalidate = Some(Extent::Cache);
                why(&account(None, module, (None, Why::Untracked, Why::Clean, State::NotPresent)));
            }
        }
        boundary
    }

    /// Adds the operations that findings ask for.
    fn ask(&self, boundary: &mut Boundary, findings: &[Vec<Finding>]) {
        for (row, findings) in self.rows.iter().zip(findings) {
            for (module, finding) in self.modules().zip(findings) {
                let operation = &mut boundary.modules[usize::from(module.0)];
                operation.turn = self.turn(module);
                if finding.invalidate.is_done() {
                    self.reach(&mut operation.invalidate, &row.cell(module).lines);
                }
                if finding.flush.is_done() {
                    self.reach(&mut operation.flush, &row.cell(module).lines);
                }
            }
        }
    }

    /// Extends an operation to `lines`.
    fn reach(&self, extent: &mut Option<Extent>, lines: &LineSet) {
        match (self.config.operations, extent) {
            (Operations::Range, Some(Extent::Lines(reached))) => reached.add(lines),
            (Operations::Range, extent @ None) => *extent = Some(Extent::Lines(lines.clone())),
            (Operations::Range, Some(Extent::Cache)) => {}
            (Operations::Cache, extent) => *extent = Some(Extent::Cache),
        }
    }

    /// Pass 2: what the operations do to the rows of each module, but those that a running kernel uses there.
    fn perform(&mut self, boundary: &Boundary, findings: &[Vec<Finding>]) {
        let cleans_busy = self.broken == Some(BrokenElision::BusyRowCleaned);
        let busy = |row: &Row| self.modules().map(|module| !cleans_busy && self.busy(row, module)).collect();
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
                    if cell.state == State::NotPresent {
                        cell.lines = LineSet::default();
                    }
                }
            }
            if operation.invalidate == Some(Extent::Cache) && !self.is_unlabelled() {
                self.untracked = self.untracked.without(ModuleSet::only(module));
            }
        }
    }

    /// Pass 3: the launch's own transition.
    fn transition(&mut self, touches: &[Touch]) {
        let accesses = |row: &Row| self.modules().map(|module| self.accesses(row, module, touches)).collect();
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

    /// Tells of every row and module. The rows are those of the findings.
    fn report(&self, findings: &[Vec<Finding>], why: &mut dyn FnMut(&Account)) {
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

impl Row {
    fn new(structure: Lines, modules: u8) -> Row {
        Row { structure, cells: vec![Cell::default(); usize::from(modules)] }
    }

    fn cell(&self, module: ModuleId) -> &Cell {
        &self.cells[usize::from(module.0)]
    }

    fn entries(&self) -> usize {
        self.cells.iter().map(|cell| cell.lines.ranges().len()).max().unwrap_or(0).max(1)
    }

    /// Whether the touch is of this row's structure.
    fn has(&self, touch: &Touch) -> bool {
        self.structure.overlaps(touch.structure)
    }

    /// The lines of this row that a launch uses on the module.
    fn local(&self, touches: &[Touch], module: ModuleId) -> LineSet {
        let mut lines = LineSet::default();
        let local = touches.iter().filter(|touch| touch.is_local(module) && self.has(touch));
        local.for_each(|touch| lines.add(&touch.lines));
        lines
    }

    /// Becomes one row with another.
    fn take_up(&mut self, other: Row) {
        self.structure = self.structure.hull(other.structure);
        for (cell, other) in self.cells.iter_mut().zip(other.cells) {
            cell.state = cell.state.joined(other.state);
            cell.lines.add(&other.lines);
        }
    }
}

impl Running {
    /// Whether it may write anything, and not from `module` alone.
    fn may_write_beside(&self, module: ModuleId) -> bool {
        self.touches.is_none() && self.on != ModuleSet::only(module)
    }
}

/// What is told of a structure with its state before, or of a whole cache.
fn account(
    row: Option<(Lines, State)>,
    module: ModuleId,
    (local, invalidate, flush, after): (Option<Mode>, Why, Why, State),
) -> Account {
    let before = row.map_or(State::NotPresent, |(_, before)| before);
    Account { structure: row.map(|(lines, _)| lines), module, local, remote: None, before, after, invalidate, flush }
}

/// Whether an operation of this extent reaches the lines of a row that asked for it, or did not, for this reason.
fn reaches(extent: Option<&Extent>, asked: Why, broken: Option<BrokenElision>) -> bool {
    match extent {
        None => false,
        Some(Extent::Cache) => broken != Some(BrokenElision::ColumnsOfAskingRows) || asked.is_done(),
        Some(Extent::Lines(_)) => asked.is_done(),
    }
}

/// [`State::flushed`] with a broken rule in it.
fn flushed(state: State, broken: Option<BrokenElision>) -> State {
    match broken {
        Some(BrokenElision::ReleaseSetsNotPresent) if state.is_dirty() => State::NotPresent,
        Some(_) | None => state.flushed(),
    }
}

/// [`State::launched`] with a broken rule in it.
fn launched(state: State, local: Option<Mode>, remote: Option<Mode>, broken: Option<BrokenElision>) -> State {
    let by_local = |state: State| state.launched(local, None);
    // A remote write flushes, then marks as stale.
    let by_remote = |state: State| match (remote, state) {
        (Some(Mode::ReadWrite), State::Valid | State::Dirty | State::Stale | State::DirtyStale) => State::Stale,
        (Some(Mode::ReadWrite), State::NotPresent) => State::NotPresent,
        (None | Some(Mode::Read), state) => state,
    };
    match broken {
        Some(BrokenElision::LocalBeforeRemote) => by_remote(by_local(state)),
        Some(BrokenElision::RemoteBeforeLocal) => by_local(by_remote(state)),
        Some(BrokenElision::RemoteWriteLeavesValid) if state == State::Valid && local.is_none() => state,
        Some(BrokenElision::StaleBytesForgotten) if state.launched(local, remote) == State::DirtyStale => State::Dirty,
        Some(_) | None => state.launched(local, remote),
    }
}
