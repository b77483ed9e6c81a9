//! Hints for the host's caches: what an SM is about to look at. They change nothing that is simulated.

use super::{Cta, Sm};
use crate::message::Message;
use crate::mshr::EntryId;
use crate::watch::Contents;
use std::collections::VecDeque;
use tombolo_engine::prefetch;
use tombolo_types::Line;

impl<D: Contents> Sm<D> {
    /// Starts to load what an event will look at first into the host's caches.
    #[inline]
    pub fn prefetch(&self, message: &Message<D>) {
        match message {
            Message::Issue { sub_core, likely } => self.prefetch_warp(*sub_core, *likely),
            Message::Fill { register, line, .. } => self.prefetch_fill(*register, *line),
            _ => {}
        }
    }

    /// Starts to load what an event finds by what [`Sm::prefetch`] has loaded.
    #[inline]
    pub fn prefetch_found(&self, message: &Message<D>) {
        match message {
            Message::Issue { likely, .. } => self.prefetch_issue(*likely),
            Message::Fill { register, line, .. } => self.prefetch_waiter(*register, *line),
            _ => {}
        }
    }

    /// Starts to load what a fill of `line` will read.
    #[inline]
    fn prefetch_fill(&self, register: EntryId, line: Line) {
        // Few fills find their line held: its slot is not worth a search.
        self.l1.prefetch_fill(line);
        self.mshr.prefetch(line);
        self.mshr.prefetch_entry(register);
    }

    /// Starts to load the place of `line` and the warp that waits for its miss register; reads what [`Sm::prefetch_fill`]
    /// has loaded.
    #[inline]
    fn prefetch_waiter(&self, register: EntryId, line: Line) {
        self.l1.prefetch_held(line);
        self.mshr.prefetch_waiting(register);
        if let Some(waiter) = self.mshr.first_waiter(register) {
            let slot = usize::from(waiter.warp);
            prefetch(&self.warps[slot]);
            prefetch(&self.outstanding[slot][usize::from(waiter.result)]);
        }
    }

    /// Starts to load what the warps of a queue will look up when they are called up, step by step: the front one has just
    /// been. A step for each load whose place the one before has to bring: the warp, its instruction, what that looks up.
    #[inline]
    pub(super) fn prefetch_queue(&self, queue: &VecDeque<u8>) {
        if !self.hints {
            return;
        }
        if let Some(&slot) = queue.get(2) {
            prefetch(&self.warps[usize::from(slot)]);
        }
        if let Some(&slot) = queue.get(1) {
            self.prefetch_stream(usize::from(slot));
        }
        if let Some(&slot) = queue.front() {
            self.prefetch_waiting(usize::from(slot));
        }
    }

    /// Starts to load what a warp will issue next.
    #[inline]
    pub(super) fn prefetch_stream(&self, slot: usize) {
        if !self.hints {
            return;
        }
        let warp = &self.warps[slot];
        if let Some(Cta { stream, .. }) = &self.ctas[usize::from(warp.cta)] {
            if let Some(op) = stream.ops.get(warp.pc as usize) {
                prefetch(op);
            }
            let next = warp.next_access as usize + usize::from(warp.issued);
            // The one that it waits with, and the one after.
            for access in stream.accesses.get(next..).unwrap_or_default().iter().take(2) {
                prefetch(access);
            }
        }
    }

    /// Starts to load a sub-core and the warp that it is likely to issue.
    #[inline]
    fn prefetch_warp(&self, sub_core: u8, likely: u8) {
        prefetch(&self.sub_cores[usize::from(sub_core)]);
        prefetch(&self.warps[usize::from(likely)]);
    }

    /// Starts to load what the warp that is likely to issue does next, and what its next transaction will look up; reads
    /// what [`Sm::prefetch_warp`] has loaded.
    #[inline]
    fn prefetch_issue(&self, likely: u8) {
        let slot = usize::from(likely);
        self.prefetch_stream(slot);
        self.prefetch_lookup(slot);
    }

    /// Starts to load what the next transaction of a warp will look up.
    #[inline]
    fn prefetch_lookup(&self, slot: usize) {
        let warp = &self.warps[slot];
        if let Some(Cta { stream, .. }) = &self.ctas[usize::from(warp.cta)]
            && let Some(access) = stream.accesses.get(warp.next_access as usize)
        {
            self.mshr.prefetch_new(access.line);
            self.l1.prefetch_held(access.line);
        }
    }

    /// Starts to load what the transaction that a warp waits with will look up, and the one after, which it will wait with
    /// then.
    #[inline]
    fn prefetch_waiting(&self, slot: usize) {
        let warp = &self.warps[slot];
        if let Some(Cta { stream, .. }) = &self.ctas[usize::from(warp.cta)] {
            let next = warp.next_access as usize + usize::from(warp.issued);
            for access in stream.accesses.get(next..).unwrap_or_default().iter().take(2) {
                self.prefetch_access(access.line);
            }
        }
    }

    /// Starts to load what a transaction for `line` will look up first.
    #[inline]
    pub(super) fn prefetch_access(&self, line: Line) {
        if !self.hints {
            return;
        }
        self.mshr.prefetch_new(line);
        self.l1.prefetch_fill(line);
    }
}
