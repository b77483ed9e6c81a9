//! What is done around the commands of a program beside its kernels: pages moved, memory copied from GPU to GPU, or between
//! the host and GPUs.
//!
//! It is made before the run from a program and a design; no program knows a design. A command's tasks are exposed: what
//! comes before a command has ended before the command begins, and what comes behind it before the next command begins.

use rustc_hash::FxHashMap;
use std::sync::Arc;
use tombolo_protocol::elision::{LineSet, Lines};
use tombolo_types::{Line, Mask, ModuleId, Page};

/// A page that is to be elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageMove {
    /// Which.
    pub page: Page,
    /// Where.
    pub to: ModuleId,
}

/// A page that one module finds elsewhere from now on. No byte moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remap {
    /// The module.
    pub at: ModuleId,
    /// Which page.
    pub page: Page,
    /// Where.
    pub home: ModuleId,
}

/// Bytes that a module has written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Lines of which it has written any byte.
    pub lines: LineSet,
    /// Of those that it has not wholly written: which bytes.
    pub partly: FxHashMap<Line, Mask>,
}

impl Written {
    /// The bytes of a line.
    pub fn mask(&self, line: Line) -> Mask {
        let is_written = crate::boundaries::reaches(Some(&self.lines), line);
        if is_written { self.partly.get(&line).copied().unwrap_or(Mask::ALL) } else { Mask::NONE }
    }
}

/// One call that copies a range of memory to the same addresses of another module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerCopy {
    /// Whose bytes: those of a GPU's module, or of the host's.
    pub from: ModuleId,
    /// Who gets them.
    pub to: ModuleId,
    /// Which lines are carried.
    pub lines: Lines,
    /// What the sender has written: the bytes that change at the receiver. Bytes between are carried and dropped, for what
    /// the receiver has there may be newer.
    pub written: Arc<Written>,
    /// Whether it is of one call with the copy before it from the same sender to the same module.
    pub continues: bool,
}

/// What is done around one command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Around {
    /// Before it: pages that move at once. All have come before the command begins.
    pub moves: Vec<PageMove>,
    /// As it is launched: pages that are found elsewhere. Takes no time.
    pub remaps: Vec<Remap>,
    /// Before it: copies between the host and GPUs by index into [`Schedule::copies`]. Those of one GPU run one after the other,
    /// GPUs side by side.
    pub ahead: Vec<u32>,
    /// Behind it: copies by index into [`Schedule::copies`]. Those of one sender run one after the other, senders side by
    /// side.
    pub copies: Vec<u32>,
    /// Behind it: the driver reads which pages each module has accessed so far, and those that it has not lose its subscription.
    pub stops_tracking: bool,
}

impl Around {
    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        !self.is_preceded() && self.remaps.is_empty() && !self.is_followed()
    }

    /// Whether the driver does something before it.
    pub fn is_preceded(&self) -> bool {
        !self.moves.is_empty() || !self.ahead.is_empty()
    }

    /// Whether the driver does something behind it.
    pub fn is_followed(&self) -> bool {
        !self.copies.is_empty() || self.stops_tracking
    }
}

/// What is done around all commands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    /// By command of the program, and one more for its end; shorter or empty where nothing is ever done.
    pub around: Vec<Around>,
    /// Every copy.
    pub copies: Vec<PeerCopy>,
    /// Whether the copies behind a command begin module by module, each when its own part of the kernel has ended. Then no
    /// other module reads in that kernel what is sent: kernels whose CTAs see each other's writes are refused.
    pub overlaps: bool,
}

impl Schedule {
    /// Whether accesses are tracked, from the start on.
    pub fn tracks(&self) -> bool {
        self.around.iter().any(|around| around.stops_tracking)
    }

    /// What is done around command number `index`; `None` for nothing.
    pub fn around(&self, index: usize) -> Option<&Around> {
        self.around.get(index).filter(|around| !around.is_empty())
    }
}
