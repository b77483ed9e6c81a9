//! Implementation of the protocol's host interface ([`tombolo_protocol::host`]) on a slice's lines, misses and queues.

use super::fill::FillData;
use super::{Miss, Slice, SliceRequest, Waiter};
use crate::front_end::boundaries::reaches;
use crate::l2::cache::BulkClass;
use crate::l2::departure::Departure;
use crate::l2::mshr::{EntryId, FreedEntry};
use crate::l2::outstanding::Tickets;
use crate::module::context::SliceContext;
use crate::observe::value_probe::Contents;
use std::collections::VecDeque;
use tombolo_protocol::coherence::InvalidationCause;
use tombolo_protocol::elision::LineSet;
use tombolo_protocol::host::{
    Admission, Arrival, AwaitingRead, Backlog, Bulk, DeferringL2, FillTarget, MissCompletion, Region, StepOutcome,
    WriteBack,
};
use tombolo_protocol::{Class, ClassSet, Coherence, L2Event, LineSlot, Pending, Sharers};
use tombolo_types::{Line, Mask, Ps};

/// Slice together with the current event's context.
pub(super) struct SliceWithContext<'s, 'a, 'o, C, D: Contents> {
    pub(super) slice: &'s mut Slice<D>,
    pub(super) context: &'s mut SliceContext<'a, 'o, C, D>,
}

/// Arriving or retried request.
pub(super) struct RequestAttempt<'s, 'a, 'o, C, D: Contents> {
    pub(super) here: SliceWithContext<'s, 'a, 'o, C, D>,
    pub(super) item: &'s SliceRequest<D>,
    /// Arrival time of the complete request.
    pub(super) ready: Ps,
    /// MSHR with a pending miss on the request's line, if any.
    pub(super) entry: Option<EntryId>,
    /// On a retry: true if an older store in the request's lane still waits for a credit. `None` on arrival.
    pub(super) follows: Option<bool>,
}

/// Refusal: no MSHR is available for the request.
pub(super) struct NoMshr;

impl<C: Coherence, D: Contents> Arrival for RequestAttempt<'_, '_, '_, C, D> {
    type MissingResource = NoMshr;

    #[inline]
    fn is_read(&self) -> bool {
        self.item.is_read()
    }

    #[inline]
    fn follows_waiting(&self) -> bool {
        self.follows.unwrap_or_else(|| self.here.slice.follows_waiting(self.item, self.here.context))
    }

    #[inline]
    fn has_credit(&self) -> bool {
        self.item.credit_left(self.here.context)
    }

    #[inline]
    fn has_parked(&self) -> bool {
        self.entry.is_some_and(|entry| self.here.slice.mshr.has_parked(entry))
    }

    fn park(&mut self) {
        let entry = self.entry.expect("a protocol stalls only on a pending miss");
        self.here.slice.park(entry, *self.item, self.here.context);
    }

    #[inline]
    fn run(&mut self) -> Result<StepOutcome, NoMshr> {
        let SliceWithContext { slice, context } = &mut self.here;
        if context.uncore.publisher.is_some()
            && let Some(tried) = slice.before_l2(self.item, self.ready, context)
        {
            return Ok(tried);
        }
        if self.entry.is_none() && slice.lacks_register(self.item, context) {
            slice.starved[self.item.level()] = Some(self.item.body.line);
            return Err(NoMshr);
        }
        slice.run(self.item, self.entry, self.ready, context)
    }
}

/// Input queue of a level, offered requests that are complete at `ready`.
pub(super) struct InputQueue<'s, 'a, 'o, C, D: Contents> {
    pub(super) here: SliceWithContext<'s, 'a, 'o, C, D>,
    pub(super) level: usize,
    pub(super) ready: Ps,
}

impl<C: Coherence, D: Contents> DeferringL2 for InputQueue<'_, '_, '_, C, D> {
    type Item = SliceRequest<D>;

    #[inline]
    fn backlog(&mut self) -> &mut Backlog<SliceRequest<D>> {
        &mut self.here.slice.queues[self.level]
    }

    #[inline]
    fn take(&mut self, item: &SliceRequest<D>) -> bool {
        self.here.slice.take(item, self.ready, self.here.context) == super::Admission::Accepted
    }
}

impl AwaitingRead for Waiter {
    #[inline]
    fn mask(&self) -> Mask {
        self.mask
    }

    #[inline]
    fn for_bytes(self, mask: Mask) -> Waiter {
        Waiter { mask, ..self }
    }
}

/// Fill in progress: bytes that have arrived for a pending miss.
pub(super) struct SliceFill<'s, 'a, 'o, C, D: Contents> {
    pub(super) here: SliceWithContext<'s, 'a, 'o, C, D>,
    /// MSHR with the pending miss.
    pub(super) entry: EntryId,
    /// Line and arrived bytes; the slot is updated when the bytes are installed.
    pub(super) filled: FillData<D>,
    /// Set after the first waiting read has been served.
    pub(super) served: bool,
}

/// Detached waiters of a miss.
pub(super) type DetachedMiss = FreedEntry<Miss, Waiter>;

impl<C: Coherence, D: Contents> FillTarget for SliceFill<'_, '_, '_, C, D> {
    type Waiter = Waiter;
    type Detached = DetachedMiss;

    fn install(&mut self) -> bool {
        let SliceWithContext { slice, context } = &mut self.here;
        let before = self.filled.slot;
        let event = L2Event::Fill { mask: self.filled.mask, data: self.filled.data };
        slice.step(&mut self.filled.slot, event, context);
        slice.keep_line(&before, &self.filled.slot, self.filled.leaves, context);
        let line = before.line_id;
        match self.filled.slot.pending {
            Some(pending) => {
                slice.mshr.get_mut(self.entry).set_pending(pending);
                slice.cache.set_pinned(line, true);
                false
            }
            None => {
                if before.line.is_some() {
                    slice.cache.set_pinned(line, false);
                }
                true
            }
        }
    }

    fn release(&mut self, over: bool) -> DetachedMiss {
        let slice = &mut *self.here.slice;
        if !over {
            return slice.mshr.detach(self.entry);
        }
        let freed = slice.mshr.free(self.entry);
        slice.registers.give_back(usize::from(freed.payload.level));
        slice.outgoing.end(self.here.context.config.is_beyond(freed.payload.homes.system));
        freed
    }

    #[inline]
    fn next_waiter(&mut self, held: &mut DetachedMiss) -> Option<Waiter> {
        self.here.slice.mshr.next_waiter(held)
    }

    fn serve(&mut self, waiter: Waiter, _: bool) {
        let SliceWithContext { slice, context } = &mut self.here;
        if std::mem::replace(&mut self.served, true) {
            // The first reply uses the bytes as they are written. Each further reply reads them again, serially.
            self.filled.leaves = slice.read_again(self.filled.leaves, waiter.mask, context);
        }
        slice.serve(waiter, &self.filled, context);
    }

    fn wait(&mut self, waiter: Waiter) {
        self.here.slice.mshr.attach(self.entry, waiter);
    }
}

/// Completed miss, whose parked requests are retried.
pub(super) struct CompletedMiss<'s, 'a, 'o, C, D: Contents> {
    pub(super) here: SliceWithContext<'s, 'a, 'o, C, D>,
    pub(super) line: Line,
    pub(super) ready: Ps,
}

impl<C: Coherence, D: Contents> MissCompletion for CompletedMiss<'_, '_, '_, C, D> {
    type Detached = DetachedMiss;
    type Item = SliceRequest<D>;

    fn flush(&mut self, held: &mut DetachedMiss) {
        if held.payload.flushes {
            let slice = &mut *self.here.slice;
            let tickets = slice.flushes.remove(&self.line);
            slice.flush_line(self.line, tickets, self.here.context);
        }
    }

    #[inline]
    fn next_parked(&mut self, held: &mut DetachedMiss) -> Option<SliceRequest<D>> {
        self.here.slice.mshr.next_parked(held)
    }

    // All parked requests belong to the same line, so only levels matter.
    #[inline]
    fn keep_order(&self, one: &SliceRequest<D>, other: &SliceRequest<D>) -> bool {
        one.level() == other.level()
    }

    fn take(&mut self, item: &SliceRequest<D>, follows: bool) -> Option<Admission> {
        self.here.slice.arrive_at_l2(item, self.ready, Some(follows), self.here.context).ok()
    }

    fn wait_first(&mut self, waiting: VecDeque<SliceRequest<D>>) {
        self.here.slice.wait_first(waiting, self.here.context);
    }

    fn defer(&mut self, deferred: VecDeque<SliceRequest<D>>) {
        self.here.slice.requeue_first(&deferred, self.here.context);
    }
}

/// Region invalidated by its home.
pub(super) struct InvalidatedRegion<'s, 'a, 'o, C, D: Contents> {
    pub(super) here: SliceWithContext<'s, 'a, 'o, C, D>,
    pub(super) line: Line,
    /// Original cause for the invalidation.
    pub(super) cause: InvalidationCause,
    pub(super) leaves: Departure,
}

impl<C: Coherence, D: Contents> Region for InvalidatedRegion<'_, '_, '_, C, D> {
    fn step(&mut self) {
        let SliceWithContext { slice, context } = &mut self.here;
        let before = slice.view(self.line, context);
        let mut slot = before;
        let mut actions = slice.step(&mut slot, L2Event::InvalidateRegion, context);
        slice.keep_entry(&before, &slot, self.leaves, context);
        actions.original = Some(self.cause);
        slice.send_invalidations(self.line, &actions, self.leaves, context);
    }

    fn drop_line(&mut self, line: Line) {
        let SliceWithContext { slice, context } = &mut self.here;
        if slice.cache.peek(line).is_none() {
            return;
        }
        let before = slice.view(line, context);
        let mut slot = before;
        slice.step(&mut slot, L2Event::InvalidateLine, context);
        if slot.line.is_none() {
            match self.cause {
                InvalidationCause::Store | InvalidationCause::Forwarded => {
                    context.shared.stats.lines_invalidated_by_store += 1
                }
                InvalidationCause::DirectoryEviction => context.shared.stats.lines_invalidated_by_eviction += 1,
            }
        }
        slice.keep_line(&before, &slot, self.leaves, context);
    }
}

/// Region whose directory entry was evicted.
pub(super) struct ReplacedEntry<'s, 'a, 'o, C, D: Contents> {
    pub(super) here: SliceWithContext<'s, 'a, 'o, C, D>,
    pub(super) line: Line,
    /// Sharers recorded in the evicted entry.
    pub(super) sharers: Sharers,
    pub(super) leaves: Departure,
}

impl<C: Coherence, D: Contents> Region for ReplacedEntry<'_, '_, '_, C, D> {
    fn step(&mut self) {
        let SliceWithContext { slice, context } = &mut self.here;
        let homes = context.config.homes(self.line);
        let mut slot = LineSlot { line_id: self.line, homes, line: None, pending: None, entry: Some(self.sharers) };
        let actions = slice.step(&mut slot, L2Event::ReplaceEntry, context);
        slice.send_invalidations(self.line, &actions, self.leaves, context);
    }

    fn drop_line(&mut self, line: Line) {
        let SliceWithContext { slice, context } = &mut self.here;
        slice.evict_with_entry(line, self.leaves, context);
    }
}

/// Bulk invalidation of line classes.
pub(super) struct ClassInvalidation<'s, 'a, 'o, C, D: Contents> {
    pub(super) here: SliceWithContext<'s, 'a, 'o, C, D>,
    pub(super) classes: ClassSet,
    /// Affected lines; `None` for every line.
    pub(super) extent: Option<&'s LineSet>,
    /// Time at which memory has accepted all written-back bytes.
    pub(super) taken: Ps,
}

impl<C: Coherence, D: Contents> Bulk for ClassInvalidation<'_, '_, '_, C, D> {
    fn drop_lines(&mut self) {
        let SliceWithContext { slice, context } = &mut self.here;
        let (classes, extent) = (self.classes, self.extent);
        if extent.is_some() || slice.has_dirty(classes) {
            // Invalidate line by line: dirty bytes must be written back, and lines outside the extent must stay.
            let mut lines = slice.lines_where(|class, _| classes.contains(class));
            lines.retain(|line| reaches(extent, *line));
            for line in lines {
                self.taken = self.taken.max(slice.invalidate_line(line, context));
            }
            return;
        }
        // Under every protocol, the step for a clean line drops it without further action.
        for class in Class::ALL.into_iter().filter(|class| classes.contains(*class)) {
            slice.cache.invalidate_class(BulkClass::new(class as u8));
        }
    }

    fn each_miss(&mut self, mut change: impl FnMut(&mut Pending)) {
        let entries: Vec<EntryId> = self.here.slice.mshr.entries().collect();
        for entry in entries {
            let line = self.here.slice.mshr.line(entry);
            let miss = self.here.slice.mshr.get_mut(entry);
            if self.classes.contains(miss.class) && reaches(self.extent, line) {
                let mut pending = miss.pending();
                change(&mut pending);
                miss.set_pending(pending);
            }
        }
    }
}

/// Dirty line written back for a release.
pub(super) struct LineFlush<'s, 'a, 'o, C, D: Contents> {
    pub(super) here: SliceWithContext<'s, 'a, 'o, C, D>,
    pub(super) line: Line,
    /// Time at which memory has accepted all written-back bytes.
    pub(super) taken: Ps,
}

impl<C: Coherence, D: Contents> WriteBack for LineFlush<'_, '_, '_, C, D> {
    fn write_back(&mut self) -> StepOutcome {
        let (tried, taken) = self.here.slice.flush_line(self.line, None, self.here.context);
        self.taken = self.taken.max(taken);
        tried
    }

    fn write_back_later(&mut self) {
        let SliceWithContext { slice, context } = &mut self.here;
        let entry = slice.mshr.find(self.line).expect("a protocol stalls only on a pending miss");
        if !std::mem::replace(&mut slice.mshr.get_mut(entry).flushes, true) {
            let tickets = context.post(self.line, context.config.module, Tickets::default());
            slice.flushes.insert(self.line, tickets);
        }
    }
}
