//! Kernel-boundary elision: selection of the modules whose L2s are invalidated and flushed when a kernel is
//! launched.
//!
//! Only values appear here: a table and a launch produce a [`BoundaryOperations`]. Time, messages and acknowledgments belong
//! to the host, which at a launch
//! 1. invalidates the L2s that the boundary names with [`InvalidationTurn::BeforeFlushes`]. An invalidation drops each
//!    line's clean bytes and keeps its dirty bytes.
//! 2. flushes the L2s it names. A flush writes dirty bytes to memory and leaves them clean. Invalid bytes stay
//!    invalid.
//! 3. invalidates the L2s named with [`InvalidationTurn::AfterFlushes`];
//! 4. waits for all acknowledgments, then enables the kernel.
//!
//! L1s are invalidated at every launch and write-throughs awaited at every end: no table elides these actions.
//! Explicit synchronisation inside a kernel does not change the table (CPElide, III-B).
//!
//! - [`Never`]: no elision. [`chiplet_table`]: CPElide's table. [`home_aware`]: the same table with known page
//!   homes.
//! - `table`: the three passes over the rows, for both tables. `touch`: conversion from labels to table inputs.
//! - [`lines`]: ranges of lines. [`broken`]: broken rules that the tests against ground truth must catch.
//!
//! Read [`chiplet_table`] first.

pub mod broken;
pub mod chiplet_table;
pub mod home_aware;
pub mod lines;
pub mod never;
mod table;
mod touch;

pub use crate::topology::ModuleSet;
pub use broken::BrokenElision;
pub use chiplet_table::{ChipletTable, StructureState};
pub use home_aware::{HomeAware, NotHomeAware};
pub use lines::{LineRange, LineSet};
pub use never::{Never, ReleaseTime};
pub use table::TableConfig;

use std::fmt;
use tombolo_types::{ModuleId, choice};

/// A kernel's access mode for a structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AccessMode {
    /// Read only: R.
    Read,
    /// Possible reads and writes: R/W. Atomics have this mode.
    ReadWrite,
}

/// A user of lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum User {
    /// The kernel's part on this module.
    Module(ModuleId),
    /// The host. Host writes reach memory immediately, and the host keeps no copy.
    Host,
}

/// A launch among all unfinished launches, as numbered by the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KernelId(pub u32);

/// A single user's possible accesses to a structure within a single kernel.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StructureUse {
    /// The user.
    pub user: User,
    /// The access mode.
    pub mode: AccessMode,
    /// The lines: at least the lines accessed, or a value may be stale.
    pub lines: LineSet,
}

/// A kernel's declaration for a structure (an array).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label<'a> {
    /// All lines in the structure: its identity. Two structures share no line.
    pub structure: LineRange,
    /// Lines homed at each module, indexed by module. Only [`HomeAware`] reads this field.
    pub homes: &'a [LineSet],
    /// Set when the program asserts that no boundary matters to the structure: all operations for it are elided,
    /// right or wrong.
    pub asserted: bool,
    /// A use for each user; a user without a use does not access the structure.
    pub uses: &'a [StructureUse],
}

/// A launch as read by the command processor: a kernel, or the host's actions between kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// The launch.
    pub kernel: KernelId,
    /// The modules it runs on; empty for the host.
    pub modules: ModuleSet,
    /// A label for each accessed structure; `None` without labels: the launch may access anything.
    pub labels: Option<&'a [Label<'a>]>,
}

/// The reach of an operation on an L2.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Extent {
    /// Every line in the L2.
    Cache,
    /// The given lines.
    Lines(LineSet),
}

/// The order of an invalidation and the flushes within a boundary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum InvalidationTurn {
    /// Before: lines cleaned by the module's own flush stay (CPElide, III-B, "Lazy Acquire/Release").
    #[default]
    BeforeFlushes,
    /// After all flushes: another kernel runs on the module and would refetch unflushed lines between the two.
    AfterFlushes,
}

/// A module's L2 operations at a boundary.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct L2Operation {
    /// Drops clean bytes: an acquire.
    pub invalidate: Option<Extent>,
    /// Writes dirty bytes to memory and keeps them clean: a release.
    pub flush: Option<Extent>,
    /// The invalidation's turn.
    pub turn: InvalidationTurn,
}

/// The L2s' operations at a boundary.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BoundaryOperations {
    /// Operations, indexed by module.
    pub modules: Vec<L2Operation>,
}

impl BoundaryOperations {
    /// A boundary without operations.
    pub fn nothing(modules: u8) -> BoundaryOperations {
        BoundaryOperations { modules: vec![L2Operation::default(); usize::from(modules)] }
    }

    /// Number of invalidations sent: a single message per module, even with several ranges.
    pub fn invalidations(&self) -> usize {
        self.modules.iter().filter(|operation| operation.invalidate.is_some()).count()
    }

    /// Number of flushes sent: a single message per module, even with several ranges.
    pub fn flushes(&self) -> usize {
        self.modules.iter().filter(|operation| operation.flush.is_some()).count()
    }

    /// Each module with its operation.
    pub fn iter(&self) -> impl Iterator<Item = (ModuleId, &L2Operation)> {
        (0..=u8::MAX).map(ModuleId).zip(&self.modules)
    }
}

choice! {
    /// The granularity of operations: the lines in the requesting rows, or the whole cache.
    pub enum OperationGranularity: Default {
        /// The whole cache. Source: CPElide, section III.
        Cache = "cache",
        /// Only the lines in the rows that request the operation. Source: CPElide, section VI.
        Range = "range",
    }
}

choice! {
    /// The information available to a table.
    pub enum TableKind {
        /// The modules using each array. Source: CPElide, section III.
        Cpelide = "cpelide",
        /// In addition, the homes of pages: if L2s hold only local lines, an operation targets only the lines'
        /// homes.
        HomeAware = "home-aware",
    }
}

impl TableKind {
    /// A table for the start of a program, on a machine with `modules` modules.
    ///
    /// # Errors
    /// Fails if the table would be unsound under a protocol whose L2s retain `holds`, or has nothing to elide.
    pub fn build(
        self,
        config: TableConfig,
        modules: u8,
        holds: RetainedLines,
        broken: Option<BrokenElision>,
    ) -> Result<Box<dyn Elision + Send>, NotHomeAware> {
        Ok(match self {
            TableKind::Cpelide => Box::new(ChipletTable::new(config, modules, broken)),
            TableKind::HomeAware => Box::new(HomeAware::new(config, modules, holds, broken)?),
        })
    }
}

/// Dirty or stale contents possible in a module's L2 at a kernel boundary: a property of a coherence protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RetainedLines {
    /// Lines homed at the module.
    Own,
    /// Any line.
    All,
    /// None: stores are written through and copies are invalidated.
    Nothing,
}

/// The reason for performing or eliding an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DecisionReason {
    /// Elided: the module holds no lines from the structure.
    NotPresent,
    /// No flush: the module's lines are clean.
    Clean,
    /// No invalidation: the module's lines are current.
    Current,
    /// No flush: the lines are dirty, and unused by all other users.
    NotShared,
    /// No invalidation: lines may be stale but the module does not use the structure.
    StaleUnused,
    /// Elided although needed: the program asserts that the operation does not matter.
    Asserted,
    /// Invalidation: lines may be stale and the module uses the structure.
    StaleUsed,
    /// Flush: the lines are dirty and another user accesses them.
    DirtyShared,
    /// Flush: the lines are dirty, their clean bytes may be stale, and the module uses the structure.
    DirtyStaleUsed,
    /// The row was evicted from the table.
    Evicted,
    /// Invalidation: copies no longer named by any row may be stale.
    Untracked,
    /// The kernel has no labels, or its rows did not fit into the table.
    Unlabelled,
    /// Flush: the kernel that has ended had no labels.
    UnlabelledEnds,
    /// Flush: the program ends.
    ProgramEnds,
    /// Without a table, every boundary performs the operation.
    Always,
}

impl DecisionReason {
    /// True if the operation is performed.
    pub fn is_done(self) -> bool {
        match self {
            DecisionReason::NotPresent
            | DecisionReason::Clean
            | DecisionReason::Current
            | DecisionReason::NotShared
            | DecisionReason::StaleUnused
            | DecisionReason::Asserted => false,
            DecisionReason::StaleUsed
            | DecisionReason::DirtyShared
            | DecisionReason::DirtyStaleUsed
            | DecisionReason::Evicted
            | DecisionReason::Untracked => true,
            DecisionReason::Unlabelled
            | DecisionReason::UnlabelledEnds
            | DecisionReason::ProgramEnds
            | DecisionReason::Always => true,
        }
    }
}

impl fmt::Display for DecisionReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DecisionReason::NotPresent => "elided: nothing of it here",
            DecisionReason::Clean => "elided: nothing dirty",
            DecisionReason::Current => "elided: nothing stale",
            DecisionReason::NotShared => "elided: dirty, and nobody else uses it",
            DecisionReason::StaleUnused => "elided: stale, and not used here",
            DecisionReason::Asserted => "elided: asserted not to matter",
            DecisionReason::StaleUsed => "stale and used here",
            DecisionReason::DirtyShared => "dirty and used elsewhere",
            DecisionReason::DirtyStaleUsed => "dirty beside stale bytes, and used here",
            DecisionReason::Evicted => "the row made room",
            DecisionReason::Untracked => "copies that no row names",
            DecisionReason::Unlabelled => "the kernel has no labels",
            DecisionReason::UnlabelledEnds => "a kernel without labels ends",
            DecisionReason::ProgramEnds => "the program ends",
            DecisionReason::Always => "no elision",
        })
    }
}

/// A boundary's action for a structure at a module, with its reason: a line printed by `--boundaries`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Account {
    /// The row's structure (the hull for combined structures); `None` for an action on the whole cache.
    pub structure: Option<LineRange>,
    /// The module.
    pub module: ModuleId,
    /// The launch's access mode on this module.
    pub local: Option<AccessMode>,
    /// The access mode of other users, in this launch or in running kernels, for lines held by this module.
    pub remote: Option<AccessMode>,
    /// The state before the boundary.
    pub before: StructureState,
    /// The state after the boundary.
    pub after: StructureState,
    /// The invalidation decision, with its reason.
    pub invalidate: DecisionReason,
    /// The flush decision, with its reason.
    pub flush: DecisionReason,
}

impl Account {
    /// An account for a whole cache, independent of its contents.
    fn of_cache(module: ModuleId, invalidate: DecisionReason, flush: DecisionReason) -> Account {
        let state = StructureState::NotPresent;
        Account { structure: None, module, local: None, remote: None, before: state, after: state, invalidate, flush }
    }
}

/// Decides the operations at a kernel's boundaries. The value is its entire state.
pub trait Elision {
    /// The L2 operations before the kernel in `packet` is enabled. `why` receives an account for every row and
    /// module.
    fn launch(&mut self, packet: &Packet<'_>, why: &mut dyn FnMut(&Account)) -> BoundaryOperations;

    /// The L2 operations once all stores by `kernel` are acknowledged, before its end is reported.
    ///
    /// # Panics
    /// Panics if `kernel` is not running.
    fn finish(&mut self, kernel: KernelId, why: &mut dyn FnMut(&Account)) -> BoundaryOperations;

    /// The L2 operations at the end of the program: a release of all dirty data.
    ///
    /// # Panics
    /// Panics if a kernel is running.
    fn end(&mut self, why: &mut dyn FnMut(&Account)) -> BoundaryOperations;

    /// Number of entries in use.
    fn rows(&self) -> usize {
        0
    }
}
