//! Operations around a program's commands in addition to its kernels: page moves, and memory copies between GPUs, or
//! between the host and GPUs.
//!
//! The schedule is made before the run from a program and a design; no program knows a design. The operations are
//! exposed: those before a command end before the command begins, and those after a command end before the next command
//! begins.

use rustc_hash::FxHashMap;
use std::sync::Arc;
use tombolo_protocol::elision::{LineRange, LineSet};
use tombolo_types::{Line, Mask, ModuleId, Page};

/// A page to move, with its destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageMove {
    /// The page.
    pub page: Page,
    /// Destination module.
    pub to: ModuleId,
}

/// A new home for a page, as one module sees it. No bytes move; the module only sends its later accesses elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remap {
    /// The module.
    pub at: ModuleId,
    /// The page.
    pub page: Page,
    /// The page's home for this module.
    pub home: ModuleId,
}

/// Bytes written by a module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WrittenBytes {
    /// Lines with at least a single written byte.
    pub lines: LineSet,
    /// Masks with the bytes written, for partially written lines.
    pub partly: FxHashMap<Line, Mask>,
}

impl WrittenBytes {
    /// Written bytes of a line.
    pub fn mask(&self, line: Line) -> Mask {
        let is_written = crate::front_end::boundaries::reaches(Some(&self.lines), line);
        if is_written { self.partly.get(&line).copied().unwrap_or(Mask::ALL) } else { Mask::NONE }
    }
}

/// A call to copy a memory range to equal addresses in another module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerCopy {
    /// Sending module: a GPU's module, or the host's.
    pub from: ModuleId,
    /// Destination.
    pub to: ModuleId,
    /// Lines carried.
    pub lines: LineRange,
    /// Bytes written by the sender, which replace bytes at the receiver. Bytes between them are carried and dropped,
    /// because the receiver's may be newer.
    pub written: Arc<WrittenBytes>,
    /// Set if the copy continues the call with the previous copy between these modules.
    pub continues: bool,
}

/// Operations around one command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandTasks {
    /// Before the command: pages that move concurrently. All must arrive before the command begins.
    pub moves: Vec<PageMove>,
    /// At the launch: pages with a new home. Takes no time.
    pub remaps: Vec<Remap>,
    /// Before the command: copies between the host and GPUs, by index into [`Schedule::copies`]. Copies for one GPU run
    /// in sequence, GPUs in parallel.
    pub ahead: Vec<u32>,
    /// After the command: copies by index into [`Schedule::copies`]. Copies from one sender run in sequence, senders in
    /// parallel.
    pub copies: Vec<u32>,
    /// After the command: the driver reads the pages accessed by each module so far, and cancels its subscription to
    /// all remaining pages.
    pub stops_tracking: bool,
}

impl CommandTasks {
    /// True if nothing is done before, at or after the command.
    pub(crate) fn is_empty(&self) -> bool {
        !self.is_preceded() && self.remaps.is_empty() && !self.is_followed()
    }

    /// True if the driver has operations before the command.
    pub(crate) fn is_preceded(&self) -> bool {
        !self.moves.is_empty() || !self.ahead.is_empty()
    }

    /// True if the driver has operations after the command.
    pub(crate) fn is_followed(&self) -> bool {
        !self.copies.is_empty() || self.stops_tracking
    }
}

/// Operations around all commands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    /// Operations by command in the program, with a last entry for the program's end; shorter or empty if nothing is
    /// ever done.
    pub tasks: Vec<CommandTasks>,
    /// Every copy.
    pub copies: Vec<PeerCopy>,
    /// Set if the copies after a command begin module by module, each when its own part of the kernel ends. No other
    /// module then reads the sent data in this kernel: kernels whose CTAs see each other's writes are refused.
    pub overlaps: bool,
}

impl Schedule {
    /// True if accesses are tracked from the start.
    pub(crate) fn tracks(&self) -> bool {
        self.tasks.iter().any(|tasks| tasks.stops_tracking)
    }

    /// Operations around command number `index`; `None` if there are none.
    pub fn tasks_of(&self, index: usize) -> Option<&CommandTasks> {
        self.tasks.get(index).filter(|tasks| !tasks.is_empty())
    }
}
