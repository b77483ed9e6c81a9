//! The rows of a chiplet coherence table, and the three passes over them at a launch (see [`super::chiplet_table`]).
//!
//! `row`: one row. `room`: rows that come and go. `passes`: the three passes.
//!
//! - A row is a structure, or several that became one: rows share no line. A structure that a kernel names anew takes
//!   up all rows it overlaps.
//! - Rows are kept in the order in which launches last named them. Where a launch needs more entries than there are,
//!   the one longest unnamed leaves: its modules are invalidated and flushed. What that flush leaves clean no row
//!   names any longer, so the module is invalidated again before it next uses anything ([`Table::untracked`]).
//! - A row that a running kernel uses never leaves. A launch that finds no room is treated as one without labels.
//! - A launch without labels invalidates and flushes all modules and is flushed again at its end. It may leave copies
//!   of anything anywhere: all rows go, and every module is untracked.

mod passes;
mod room;
mod row;

use self::passes::Finding;
use self::row::Row;
use super::touch::{Touch, touches};
use super::{
    Account, Boundary, BrokenElision, Extent, KernelId, ModuleSet, Operation, Operations, Packet, State, Turn, Why,
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
    /// Modules of a GPU that hold in their L2s what one of them uses; 1 where each holds what it uses itself.
    pub sharing: u8,
}

/// CPElide's table: 8 structures of each of 8 kernels. Source: CPElide, III-A, "Sizing Chiplet Coherence Table". One
/// range a module: 28 bytes an entry are four chiplets' two bounds of 28 bits (III-A; the division is ours).
impl Default for TableConfig {
    fn default() -> TableConfig {
        TableConfig { rows: 64, structures: 8, ranges: 1, operations: Operations::Cache, sharing: 1 }
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

/// A kernel that has been launched and has not ended.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Running {
    kernel: KernelId,
    on: ModuleSet,
    /// What it touches; `None` where that may be anything.
    touches: Option<Vec<Touch>>,
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
        self.modules().for_each(|module| why(&Account::of_cache(module, Why::Unlabelled, Why::Unlabelled)));
        let findings = self.with(|_, _, cell| Finding::idle(cell.state, Why::Unlabelled, Why::Unlabelled));
        self.perform(&boundary, &findings);
        self.forget_idle_rows();
        self.untracked = ModuleSet::first(self.modules);
        self.running.push(Running { kernel: packet.kernel, on: packet.on, touches: None });
        self.transition(&[]);
        self.report(&findings, why);
        self.tidy();
        boundary
    }

    /// What is done at a kernel's end.
    pub(super) fn finish(&mut self, kernel: KernelId, why: &mut dyn FnMut(&Account)) -> Boundary {
        let at = self.running.iter().position(|running| running.kernel == kernel);
        let Running { on, touches, .. } =
            self.running.remove(at.unwrap_or_else(|| panic!("{kernel:?} ends and was not running")));
        let mut boundary = Boundary::nothing(self.modules);
        if touches.is_some() {
            return boundary;
        }
        self.untracked = ModuleSet::first(self.modules);
        if self.broken != Some(BrokenElision::UnlabelledNotReleased) {
            for module in self.modules().filter(|&module| on.contains(module)) {
                boundary.modules[usize::from(module.0)].flush = Some(Extent::Cache);
                why(&Account::of_cache(module, Why::StaleUnused, Why::UnlabelledEnds));
            }
        }
        let flush = |module| if on.contains(module) { Why::UnlabelledEnds } else { Why::NotShared };
        let findings = self.with(|_, module, cell| Finding::idle(cell.state, Why::StaleUnused, flush(module)));
        self.perform(&boundary, &findings);
        self.report(&findings, why);
        boundary
    }

    /// What is done at the end of the program.
    pub(super) fn end(&mut self, why: &mut dyn FnMut(&Account)) -> Boundary {
        assert!(self.running.is_empty(), "the program ends while {:?} run", self.running);
        let mut boundary = Boundary::nothing(self.modules);
        if self.broken == Some(BrokenElision::FinalReleaseMissing) {
            return boundary;
        }
        let flush = |state: State| if state.is_dirty() { Why::ProgramEnds } else { state.flush(None, None) };
        let findings =
            self.with(|_, _, cell| Finding::idle(cell.state, cell.state.invalidation(None), flush(cell.state)));
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

impl Running {
    /// Whether it may write anything, and not from `module` alone.
    fn may_write_beside(&self, module: ModuleId) -> bool {
        self.touches.is_none() && self.on != ModuleSet::only(module)
    }
}
