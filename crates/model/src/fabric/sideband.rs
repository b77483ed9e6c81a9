//! Side data for lines in transit between memories, too large for a message: the flags visible on the lines and, if
//! data is modelled, their contents.
//!
//! The store is shared by a run's partitions. The sender of a chunk loads it before the message leaves, and the
//! receiver unloads it, and all partitions see equal contents at every thread count. The store also holds the host's
//! memory: pages moved to the host stay in the store until fetched.

use crate::fabric::packet::CopyName;
use crate::observe::value_probe::Contents;
use crate::sm::flags::VisibleFlag;
use rustc_hash::FxHashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tombolo_types::{Line, Mask, Page};

/// Side data of some lines.
#[derive(Clone, Debug, Default)]
pub(crate) struct SideData<D> {
    /// Lines, a mask of the affected bytes, and their contents. Empty if data is not modelled.
    pub(crate) lines: Vec<(Line, Mask, D)>,
    /// Flags visible on the lines.
    pub(crate) flags: Vec<VisibleFlag>,
}

#[derive(Debug, Default)]
struct SideDataStore<D> {
    /// Indexed by copy and first line.
    chunks: FxHashMap<(CopyName, Line), SideData<D>>,
    host: FxHashMap<Page, SideData<D>>,
}

/// Contents in transit between memories.
#[derive(Debug, Default)]
pub struct Sideband<D>(Arc<Mutex<SideDataStore<D>>>);

impl<D> Clone for Sideband<D> {
    fn clone(&self) -> Self {
        Sideband(Arc::clone(&self.0))
    }
}

impl<D: Contents> Sideband<D> {
    fn hold(&self) -> MutexGuard<'_, SideDataStore<D>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores the side data for a copy's chunk with first line `first`.
    pub(crate) fn load(&self, copy: CopyName, first: Line, load: SideData<D>) {
        if !load.lines.is_empty() || !load.flags.is_empty() {
            self.hold().chunks.insert((copy, first), load);
        }
    }

    /// Removes and returns the side data of the chunk.
    pub(crate) fn unload(&self, copy: CopyName, first: Line) -> SideData<D> {
        self.hold().chunks.remove(&(copy, first)).unwrap_or_default()
    }

    /// Adds part of a page to the host's memory.
    pub(crate) fn keep(&self, page: Page, load: SideData<D>) {
        let mut hold = self.hold();
        let kept = hold.host.entry(page).or_default();
        kept.lines.extend(load.lines);
        kept.flags.extend(load.flags);
    }

    /// The host writes part of a line. Ignored if the host does not hold this page.
    pub(crate) fn write(&self, page: Page, part: (Line, Mask, D)) {
        if let Some(kept) = self.hold().host.get_mut(&page) {
            kept.lines.push(part);
        }
    }

    /// Removes a page from the host's memory and returns its contents.
    pub(crate) fn give(&self, page: Page) -> SideData<D> {
        self.hold().host.remove(&page).unwrap_or_default()
    }
}
