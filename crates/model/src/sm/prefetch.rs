//! Cache hints for the simulation host: prefetch instructions for data soon needed by an SM. No effect on simulated
//! results.

use super::{Cta, Sm};
use crate::l2::mshr::EntryId;
use crate::message::Message;
use crate::observe::value_probe::Contents;
use std::collections::VecDeque;
use tombolo_engine::prefetch;
use tombolo_types::Line;

impl<D: Contents> Sm<D> {
    /// Prefetches the data that an event reads first into the host's caches.
    #[inline]
    pub(crate) fn prefetch(&self, message: &Message<D>) {
        match message {
            Message::Issue { sub_core, likely } => self.prefetch_warp(*sub_core, *likely),
            Message::Fill { register, line, .. } => self.prefetch_fill(*register, *line),
            _ => {}
        }
    }

    /// Prefetches the data reached through the data that [`Sm::prefetch`] has loaded.
    #[inline]
    pub(crate) fn prefetch_found(&self, message: &Message<D>) {
        match message {
            Message::Issue { likely, .. } => self.prefetch_issue(*likely),
            Message::Fill { register, line, .. } => self.prefetch_waiter(*register, *line),
            _ => {}
        }
    }

    /// Prefetches the data needed in a fill for `line`: its set in the L1, its place in the MSHR index, and the MSHR
    /// `register`.
    #[inline]
    fn prefetch_fill(&self, register: EntryId, line: Line) {
        // Few fills find their line present: searching for its slot is not worthwhile.
        self.l1.prefetch_fill(line);
        self.mshr.prefetch(line);
        self.mshr.prefetch_entry(register);
    }

    /// Prefetches `line`'s cache slot and the warp waiting in its MSHR. Reads the data that [`Sm::prefetch_fill`] has
    /// loaded.
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

    /// Prefetches the lookups of queued warps in stages, after the front warp has been resumed. Each stage depends on
    /// data loaded in the previous stage: first the warp, then its instruction, then the lookup for its line.
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

    /// Prefetches a warp's next instruction and next accesses from its CTA's stream.
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
            // The access that the warp waits for, and the following access.
            for access in stream.accesses.get(next..).unwrap_or_default().iter().take(2) {
                prefetch(access);
            }
        }
    }

    /// Prefetches a sub-core together with the `likely` next warp.
    #[inline]
    fn prefetch_warp(&self, sub_core: u8, likely: u8) {
        prefetch(&self.sub_cores[usize::from(sub_core)]);
        prefetch(&self.warps[usize::from(likely)]);
    }

    /// Prefetches the likely warp's next instruction and the lookup for its next transaction. Reads the data that
    /// [`Sm::prefetch_warp`] has loaded.
    #[inline]
    fn prefetch_issue(&self, likely: u8) {
        let slot = usize::from(likely);
        self.prefetch_stream(slot);
        self.prefetch_lookup(slot);
    }

    /// Prefetches the lookup for a warp's next transaction: the MSHR index and the L1 set.
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

    /// Prefetches the lookups for the transaction a warp waits for, and for the next transaction, because the warp may
    /// have to wait for this as well.
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

    /// Prefetches the first lookup for a transaction to `line`, if hints are enabled.
    #[inline]
    pub(super) fn prefetch_access(&self, line: Line) {
        if !self.hints {
            return;
        }
        self.mshr.prefetch_new(line);
        self.l1.prefetch_fill(line);
    }
}
