//! Kernel-boundary elision: which modules' L2s are invalidated and flushed when a kernel is launched.
//!
//! Values only: a table and a launch give a [`Boundary`]. Time, messages and acknowledgments belong to the
//! host, which for a launch
//! 1. invalidates the L2s that the boundary names with [`Turn::BeforeFlushes`]. An invalidation drops each
//!    line's clean bytes and keeps its dirty ones.
//! 2. flushes the L2s it names. A flush writes dirty bytes to memory and leaves them clean. Bytes that were
//!    not valid stay so.
//! 3. invalidates those with [`Turn::AfterFlushes`];
//! 4. waits for all acknowledgments, then enables the kernel.
//!
//! L1s are invalidated at every launch and write-throughs awaited at every end: no table elides these.
//! Explicit synchronisation inside a kernel leaves the table alone (CPElide, III-B).
//!
//! - [`Never`]: no elision. [`chiplet_table`]: CPElide's table. [`home_aware`]: the same where homes are known.
//! - `table`: the three passes over the rows, for both tables. `touch`: from labels to what a table looks at.
//! - [`lines`]: ranges of lines. [`broken`]: broken rules that the tests against truth must catch.
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
pub use chiplet_table::{ChipletTable, State};
pub use home_aware::{HomeAware, NotHomeAware};
pub use lines::{LineSet, Lines};
pub use never::{Never, When};
pub use table::TableConfig;

use std::fmt;
use tombolo_types::ModuleId;

/// How a kernel uses a structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    /// It only reads it: R.
    Read,
    /// It may read and write it: R/W. Atomics are of this mode.
    ReadWrite,
}

/// Who uses lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum User {
    /// The part of a kernel that runs on this module.
    Module(ModuleId),
    /// The host. Its writes reach memory at once and it keeps no copy.
    Host,
}

/// A launch among those that have not ended, as its host numbers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KernelId(pub u32);

/// What one user may do to one structure in one kernel.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Use {
    /// Who.
    pub user: User,
    /// How.
    pub mode: Mode,
    /// Which lines: at least those that it accesses, or a value may be stale.
    pub lines: LineSet,
}

/// What a kernel says of one structure (an array).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label<'a> {
    /// All lines of the structure: its identity. Two structures share no line.
    pub structure: Lines,
    /// Lines of it that are homed at each module, by module. Only [`HomeAware`] reads it.
    pub homes: &'a [LineSet],
    /// Whether the program asserts that no boundary matters to it: nothing is done for it, right or wrong.
    pub asserted: bool,
    /// A use for each user; one without a use does not access it.
    pub uses: &'a [Use],
}

/// A launch as the command processor reads it: of a kernel, or of what the host does between kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// The launch.
    pub kernel: KernelId,
    /// The modules it runs on; none for the host.
    pub on: ModuleSet,
    /// A label for each structure it accesses; `None` where it has no labels: it may access anything.
    pub labels: Option<&'a [Label<'a>]>,
}

/// What an operation on an L2 reaches.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Extent {
    /// Every line of it.
    Cache,
    /// These lines.
    Lines(LineSet),
}

/// Whether an invalidation comes before the flushes of its boundary or after them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Turn {
    /// Before: lines that the module's own flush cleans stay (CPElide, III-B, "Lazy Acquire/Release").
    #[default]
    BeforeFlushes,
    /// After all of them: another kernel runs on the module and would fetch unflushed lines again between the two.
    AfterFlushes,
}

/// What one module's L2 does at a boundary.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Operation {
    /// Drops clean bytes: an acquire.
    pub invalidate: Option<Extent>,
    /// Writes dirty bytes to memory and keeps them clean: a release.
    pub flush: Option<Extent>,
    /// When it invalidates.
    pub turn: Turn,
}

/// What the L2s do at a boundary.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Boundary {
    /// By module.
    pub modules: Vec<Operation>,
}

impl Boundary {
    /// Nothing.
    pub fn nothing(modules: u8) -> Boundary {
        Boundary { modules: vec![Operation::default(); usize::from(modules)] }
    }

    /// Invalidations sent: one a module, however many ranges it carries.
    pub fn invalidations(&self) -> usize {
        self.modules.iter().filter(|operation| operation.invalidate.is_some()).count()
    }

    /// Flushes sent: one a module, however many ranges it carries.
    pub fn flushes(&self) -> usize {
        self.modules.iter().filter(|operation| operation.flush.is_some()).count()
    }

    /// Each module with what it does.
    pub fn iter(&self) -> impl Iterator<Item = (ModuleId, &Operation)> {
        (0..=u8::MAX).map(ModuleId).zip(&self.modules)
    }
}

/// Whether an operation reaches the lines of the rows that need it or the whole cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Operations {
    /// The whole cache: CPElide.
    #[default]
    Cache,
    /// Ranges of lines: the extension of CPElide, section VI.
    Range,
}

/// What a module's L2 may hold dirty or stale at a kernel's boundary: a property of a coherence protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Holds {
    /// Lines homed at the module.
    Own,
    /// Any line.
    All,
    /// None: stores go through and copies are invalidated.
    Nothing,
}

/// Why an operation is done or elided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Why {
    /// Elided: the module holds nothing of the structure.
    NotPresent,
    /// No flush: nothing of it is dirty.
    Clean,
    /// No invalidation: nothing of it is stale.
    Current,
    /// No flush: the lines are dirty and nobody else uses them.
    NotShared,
    /// No invalidation: lines may be stale and the module does not use the structure.
    StaleUnused,
    /// Elided although needed: the program asserts that it does not matter.
    Asserted,
    /// Invalidation: lines may be stale and the module uses the structure.
    StaleUsed,
    /// Flush: the lines are dirty and somebody else uses them.
    DirtyShared,
    /// Flush: the lines are dirty, their clean bytes may be stale, and the module uses the structure.
    DirtyStaleUsed,
    /// The row made room for others.
    Evicted,
    /// Invalidation: copies may be stale that no row names any longer.
    Untracked,
    /// The kernel has no labels, or none of its rows found room.
    Unlabelled,
    /// Flush: the kernel that has ended had no labels.
    UnlabelledEnds,
    /// Flush: the program ends.
    ProgramEnds,
    /// No table: every boundary does it.
    Always,
}

impl Why {
    /// Whether the operation is done.
    pub fn is_done(self) -> bool {
        match self {
            Why::NotPresent | Why::Clean | Why::Current | Why::NotShared | Why::StaleUnused | Why::Asserted => false,
            Why::StaleUsed | Why::DirtyShared | Why::DirtyStaleUsed | Why::Evicted | Why::Untracked => true,
            Why::Unlabelled | Why::UnlabelledEnds | Why::ProgramEnds | Why::Always => true,
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Why::NotPresent => "elided: nothing of it here",
            Why::Clean => "elided: nothing dirty",
            Why::Current => "elided: nothing stale",
            Why::NotShared => "elided: dirty, and nobody else uses it",
            Why::StaleUnused => "elided: stale, and not used here",
            Why::Asserted => "elided: asserted not to matter",
            Why::StaleUsed => "stale and used here",
            Why::DirtyShared => "dirty and used elsewhere",
            Why::DirtyStaleUsed => "dirty beside stale bytes, and used here",
            Why::Evicted => "the row made room",
            Why::Untracked => "copies that no row names",
            Why::Unlabelled => "the kernel has no labels",
            Why::UnlabelledEnds => "a kernel without labels ends",
            Why::ProgramEnds => "the program ends",
            Why::Always => "no elision",
        })
    }
}

/// What a boundary did for one structure at one module, and why: a line of `--boundaries`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Account {
    /// The row's structure, of several combined the hull; `None` for what concerns the whole cache.
    pub structure: Option<Lines>,
    /// The module.
    pub module: ModuleId,
    /// How the launch uses it on this module.
    pub local: Option<Mode>,
    /// How other users of the launch, or of kernels that still run, use the lines that this module holds.
    pub remote: Option<Mode>,
    /// The state before the boundary.
    pub before: State,
    /// The state after it.
    pub after: State,
    /// Whether it asks for an invalidation, and why.
    pub invalidate: Why,
    /// Whether it asks for a flush, and why.
    pub flush: Why,
}

impl Account {
    /// What is done for a whole cache, whatever it holds.
    fn of_cache(module: ModuleId, invalidate: Why, flush: Why) -> Account {
        let state = State::NotPresent;
        Account { structure: None, module, local: None, remote: None, before: state, after: state, invalidate, flush }
    }
}

/// Decides what a kernel's boundaries do. Its value is the whole of its state.
pub trait Elision {
    /// What the L2s do before the kernel of `packet` is enabled. `why` is told of every row and module.
    fn launch(&mut self, packet: &Packet<'_>, why: &mut dyn FnMut(&Account)) -> Boundary;

    /// What the L2s do when all stores of `kernel` have been acknowledged, before its end is reported.
    ///
    /// # Panics
    /// Where `kernel` is not running.
    fn finish(&mut self, kernel: KernelId, why: &mut dyn FnMut(&Account)) -> Boundary;

    /// What the L2s do at the end of the program: a release of all that is dirty.
    ///
    /// # Panics
    /// Where a kernel is running.
    fn end(&mut self, why: &mut dyn FnMut(&Account)) -> Boundary;

    /// Entries in use.
    fn rows(&self) -> usize {
        0
    }
}
