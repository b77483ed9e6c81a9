//! Cache hints for the simulation host: prefetch instructions for data soon needed by a slice. No effect on simulated
//! results.

use super::Slice;
use crate::l2::mshr::EntryId;
use crate::message::{LineRequest, Message};
use crate::module::context::SliceView;
use crate::observe::value_probe::Contents;
use tombolo_engine::prefetch;
use tombolo_protocol::host::Backlog;
use tombolo_protocol::{Coherence, Request, Requester};
use tombolo_types::Line;

/// Distance in the queue, in requests, between a prefetch for a request's lookup and its own turn. Assumed.
const NEXT: usize = 2;

impl<D: Contents> Slice<D> {
    /// Prefetches the data that an event reads first into the host's caches.
    #[inline]
    pub(crate) fn prefetch<C: Coherence>(&self, message: &Message<D>, view: SliceView<'_, C, D>) {
        if let Some((line, register)) = message.slice_fill() {
            self.prefetch_fill(line, register, view);
        } else if let Some((request, local)) = message.request()
            && self.runs(local)
        {
            self.prefetch_look_up(request.line, local, view);
        }
    }

    /// Prefetches the data reached through the data that [`Slice::prefetch`] has loaded.
    #[inline]
    pub(crate) fn prefetch_found<C: Coherence>(&self, message: &Message<D>, view: SliceView<'_, C, D>) {
        if let Some((line, register)) = message.slice_fill() {
            self.prefetch_place(line, register, view);
        } else if let Some((request, local)) = message.request()
            && self.runs(local)
        {
            self.prefetch_answer(request, local, view);
        }
    }

    /// Prefetches the first data needed in a fill for `line`. `register`: the MSHR that waits for the fill.
    #[inline]
    fn prefetch_fill<C: Coherence>(&self, line: Line, register: EntryId, view: SliceView<'_, C, D>) {
        self.mshr.prefetch(line);
        self.mshr.prefetch_entry(register);
        self.cache.prefetch(line);
        if view.config.protocol.has_directory() {
            self.directory.prefetch(line);
        }
    }

    /// Prefetches the cache slot for a fill to `line`, and the state changed in the first waiter's reply. Reads the
    /// data that [`Slice::prefetch_fill`] has loaded.
    #[inline]
    fn prefetch_place<C: Coherence>(&self, line: Line, register: EntryId, view: SliceView<'_, C, D>) {
        self.cache.prefetch_slot(line);
        self.mshr.prefetch_waiting(register);
        if self.mshr.first_waiter(register).is_some_and(|waiter| waiter.from != Requester::Local) {
            self.prefetch_peer(line, view);
        }
    }

    /// Prefetches the lookups for requests near the front of a queue, each once, after the front request has been
    /// removed.
    #[inline]
    pub(super) fn prefetch_queue<C: Coherence>(&self, level: usize, view: SliceView<'_, C, D>) {
        if !view.config.hints {
            return;
        }
        let queue = &self.queues[level];
        if let Some(item) = queue.get(2 * NEXT) {
            prefetch(item);
            prefetch(&item.body.requester_mshr);
        }
        if let Some(item) = queue.get(NEXT) {
            self.prefetch_look_up(item.body.line, level == 0, view);
        }
        if let Some(item) = queue.get(1) {
            view.prefetch_memory(item.body.line);
        }
    }

    /// Prefetches the lookup for a request to `line`. `local`: true if this module's SMs sent it, false for another
    /// module.
    #[inline]
    fn prefetch_look_up<C: Coherence>(&self, line: Line, local: bool, view: SliceView<'_, C, D>) {
        self.mshr.prefetch_new(line);
        self.cache.prefetch(line);
        if !local && view.config.protocol.has_directory() {
            self.directory.prefetch(line);
        }
    }

    /// Prefetches the data reached by a request through the data that [`Slice::prefetch_look_up`] has loaded.
    #[inline]
    fn prefetch_answer<C: Coherence>(&self, request: &LineRequest<D>, local: bool, view: SliceView<'_, C, D>) {
        let line = request.line;
        match request.request {
            Request::Read { .. } => {
                if !self.cache.prefetch_held(line) {
                    view.prefetch_memory(line);
                }
            }
            Request::Write { .. } | Request::Atomic { .. } => self.cache.prefetch_slot(line),
        }
        if local {
            view.uncore.port.prefetch(self.index);
        } else {
            self.prefetch_peer(line, view);
        }
    }

    /// Prefetches the state that a reply to a remote request changes: the directory entry for `line`, and the
    /// channels.
    #[inline]
    fn prefetch_peer<C: Coherence>(&self, line: Line, view: SliceView<'_, C, D>) {
        if view.config.protocol.has_directory() {
            self.directory.prefetch_slot(line);
        }
        view.uncore.port.prefetch(self.index);
    }

    /// True if a request would run on arrival because no older request waits. `local`: true for a request from this
    /// module's SMs, false for another module.
    #[inline]
    fn runs(&self, local: bool) -> bool {
        let levels = if local { &self.queues[..1] } else { &self.queues[1..] };
        levels.iter().all(Backlog::is_empty)
    }
}
