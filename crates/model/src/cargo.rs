//! What goes with lines on their way between memories and has no room in a message: the flags that they show and, where data
//! is modelled, what they hold.
//!
//! Shared by a run's partitions: who sends a chunk loads it before the message leaves, and who gets the message unloads it.
//! So all see the same at every thread count. The host's memory is here, too: pages that it holds stay until they are taken.

use crate::flags::Shown;
use crate::packet::CopyName;
use crate::watch::Contents;
use rustc_hash::FxHashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tombolo_types::{Line, Mask, Page};

/// What goes with some lines.
#[derive(Clone, Debug, Default)]
pub struct Load<D> {
    /// Lines, which of their bytes are meant, and what they hold. Empty where data is not modelled.
    pub lines: Vec<(Line, Mask, D)>,
    /// The flags that lines show.
    pub flags: Vec<Shown>,
}

#[derive(Debug, Default)]
struct Hold<D> {
    /// By copy and first line.
    chunks: FxHashMap<(CopyName, Line), Load<D>>,
    host: FxHashMap<Page, Load<D>>,
}

/// Contents on their way.
#[derive(Debug, Default)]
pub struct Cargo<D>(Arc<Mutex<Hold<D>>>);

impl<D> Clone for Cargo<D> {
    fn clone(&self) -> Self {
        Cargo(Arc::clone(&self.0))
    }
}

impl<D: Contents> Cargo<D> {
    fn hold(&self) -> MutexGuard<'_, Hold<D>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a chunk of a copy that begins at `first` takes along.
    pub fn load(&self, copy: CopyName, first: Line, load: Load<D>) {
        if !load.lines.is_empty() || !load.flags.is_empty() {
            self.hold().chunks.insert((copy, first), load);
        }
    }

    /// What the chunk has taken along.
    pub fn unload(&self, copy: CopyName, first: Line) -> Load<D> {
        self.hold().chunks.remove(&(copy, first)).unwrap_or_default()
    }

    /// The host gets part of a page.
    pub fn keep(&self, page: Page, load: Load<D>) {
        let mut hold = self.hold();
        let kept = hold.host.entry(page).or_default();
        kept.lines.extend(load.lines);
        kept.flags.extend(load.flags);
    }

    /// The host writes part of a line. Nothing where it does not hold the page.
    pub fn write(&self, page: Page, part: (Line, Mask, D)) {
        if let Some(kept) = self.hold().host.get_mut(&page) {
            kept.lines.push(part);
        }
    }

    /// The host gives a page away.
    pub fn give(&self, page: Page) -> Load<D> {
        self.hold().host.remove(&page).unwrap_or_default()
    }
}
