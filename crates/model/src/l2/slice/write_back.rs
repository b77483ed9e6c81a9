//! Line changes at a slice: installation, eviction, and write-back of dirty bytes.

use super::host::{LineFlush, SliceWithContext};
use super::{Slice, keeps_to_edges};
use crate::fabric::packet::Packet;
use crate::front_end::boundaries::reaches;
use crate::l2::cache::BulkClass;
use crate::l2::departure::Departure;
use crate::l2::mshr::EntryId;
use crate::l2::outstanding::Tickets;
use crate::message::{Flag, LineRequest, ReplyDestination};
use crate::module::actions::Actions;
use crate::module::context::SliceContext;
use crate::observe::value_probe::Contents;
use tombolo_protocol::elision::LineSet;
use tombolo_protocol::host::{self, StepOutcome};
use tombolo_protocol::{Class, ClassSet, Coherence, Homes, L2Event, LineSlot, LineState, Refusal, Request};
use tombolo_types::{Line, Mask, Ps, SmId};

impl<D: Contents> Slice<D> {
    /// Writes all dirty lines in the given classes and extent back to the next level. Returns the time at which memory
    /// has accepted the written bytes.
    pub(crate) fn flush<C: Coherence>(
        &mut self,
        classes: ClassSet,
        extent: Option<&LineSet>,
        here: &mut SliceContext<'_, '_, C, D>,
    ) -> Ps {
        let mut taken = here.out.now();
        if !self.has_dirty(classes) {
            return taken;
        }
        let protocol = &here.config.protocol;
        let mut lines = self.lines_where(|class, state| classes.contains(class) && !state.dirty.is_empty());
        lines.retain(|line| reaches(extent, *line));
        for line in lines {
            let mut flushing = LineFlush { here: SliceWithContext { slice: self, context: here }, line, taken };
            host::flush(protocol, &mut flushing);
            taken = flushing.taken;
        }
        taken
    }

    /// Number of valid lines, and how many are dirty.
    pub(crate) fn held(&mut self) -> (u32, u32) {
        (self.lines_where(|_, _| true).len() as u32, self.dirty.iter().sum())
    }

    /// True if a line in these classes is dirty.
    pub(super) fn has_dirty(&self, classes: ClassSet) -> bool {
        Class::ALL.into_iter().any(|class| classes.contains(class) && self.dirty[class as usize] > 0)
    }

    /// Valid lines for which `wanted` returns true.
    pub(super) fn lines_where(&mut self, wanted: impl Fn(Class, &LineState<D>) -> bool) -> Vec<Line> {
        let mut lines = Vec::new();
        self.cache.for_each_valid(|line, class, state| {
            if wanted(Class::ALL[usize::from(class.id())], state) {
                lines.push(line);
            }
        });
        lines
    }

    /// Writes a line back unless its miss is pending. Also returns the time at which memory has accepted the bytes.
    /// `tickets`: credits acquired earlier for this write-back; these credits come back in any case, used or unused.
    pub(super) fn flush_line<C: Coherence>(
        &mut self,
        line: Line,
        tickets: Option<Tickets>,
        here: &mut SliceContext<'_, '_, C, D>,
    ) -> (StepOutcome, Ps) {
        let now = here.out.now();
        let miss = self.mshr.find(line);
        let before = self.view_line(line, here.config.homes(line), miss);
        let (mut slot, mut actions) = (before, Actions::default());
        match here.config.protocol.step(&here.config.map, here.config.module, &mut slot, L2Event::Flush, &mut actions) {
            Ok(()) => {}
            Err(Refusal::Stall) => return (StepOutcome::Stalled, now),
            Err(Refusal::Unexpected(why)) => panic!("{}, {line}: {why}", here.config.module),
        }
        debug_assert!(keeps_to_edges(&before, &actions, here), "{}, {line}: a write-back", here.config.module);
        let leaves = self.read_out(&actions, here);
        self.keep_line(&before, &slot, leaves, here);
        let (unused, left) = self.send_written_back((line, tickets), &actions, leaves, here);
        let taken = if actions.write.is_some() { left } else { now };
        if let Some(tickets) = unused {
            // The fill's waiters left nothing to write back: the release continues when memory has accepted earlier
            // bytes.
            here.withdraw(line, tickets, taken);
        }
        (StepOutcome::Accepted, taken)
    }

    /// Invalidates a line during a bulk invalidation. Returns the time at which memory or the port has accepted the
    /// dirty bytes.
    pub(super) fn invalidate_line<C: Coherence>(&mut self, line: Line, here: &mut SliceContext<'_, '_, C, D>) -> Ps {
        let miss = self.mshr.find(line);
        let before = self.view_line(line, here.config.homes(line), miss);
        let mut slot = before;
        let actions = self.step(&mut slot, L2Event::InvalidateLine, here);
        let leaves = self.read_out(&actions, here);
        self.keep_line(&before, &slot, leaves, here);
        self.send_written_back((line, None), &actions, leaves, here).1
    }

    /// Releases a line whose page moves away: its dirty bytes are written to memory, and the line is dropped. Returns
    /// the time at which memory has accepted the bytes.
    pub(crate) fn give_up<C: Coherence>(&mut self, line: Line, here: &mut SliceContext<'_, '_, C, D>) -> Ps {
        let rules = here.config.paging;
        if self.cache.peek(line).is_none() {
            return here.out.now();
        }
        if !rules.writes_back() {
            let before = self.view_line(line, here.config.homes(line), None);
            let now = here.out.now();
            return self.keep_line(&before, &LineSlot { line: None, ..before }, Departure::at(now), here).max(now);
        }
        let state = self.cache.peek(line).copied();
        let left = self.invalidate_line(line, here);
        if !rules.drops_lines() {
            let before = self.view_line(line, here.config.homes(line), None);
            let kept = state.map(|state| LineState { dirty: Mask::NONE, ..state });
            self.keep_line(&before, &LineSlot { line: kept, ..before }, Departure::at(left), here);
        }
        left
    }

    /// Reads a line for a copy: valid bytes, contents and departure time; `None` if the line is absent.
    pub(crate) fn copied_from<C: Coherence>(
        &mut self,
        line: Line,
        here: &mut SliceContext<'_, '_, C, D>,
    ) -> Option<(Mask, D, Departure)> {
        let state = *self.cache.peek(line)?;
        let (now, bytes) = (here.out.now(), u64::from(state.valid.grains()) * here.config.machine.line.grain());
        Some((state.valid, state.data, self.occupy(now, now, bytes, here)))
    }

    /// Invalidates a line that a copy overwrites in memory, because its cached bytes are outdated.
    pub(crate) fn copied_to<C: Coherence>(&mut self, line: Line, here: &mut SliceContext<'_, '_, C, D>) {
        if self.cache.peek(line).is_some() {
            self.invalidate_line(line, here);
        }
    }

    /// Occupies the slice's port with a step's written-back bytes; returns their departure time.
    fn read_out<C: Coherence>(&mut self, actions: &Actions<D>, here: &SliceContext<'_, '_, C, D>) -> Departure {
        let bytes = written_back(actions, here);
        if bytes == 0 {
            return Departure::at(here.out.now());
        }
        self.occupy(here.out.now(), here.out.now(), bytes, here)
    }

    /// Stores a changed line after a protocol step. Returns the time at which memory or the port has accepted the
    /// victim's dirty bytes.
    #[inline]
    pub(super) fn keep_line<C: Coherence>(
        &mut self,
        before: &LineSlot<D>,
        after: &LineSlot<D>,
        leaves: Departure,
        here: &mut SliceContext<'_, '_, C, D>,
    ) -> Ps {
        if before.line == after.line { Ps::ZERO } else { self.change_line(before, after, leaves, here) }
    }

    #[inline(never)]
    fn change_line<C: Coherence>(
        &mut self,
        before: &LineSlot<D>,
        after: &LineSlot<D>,
        leaves: Departure,
        here: &mut SliceContext<'_, '_, C, D>,
    ) -> Ps {
        let line = after.line_id;
        self.count_dirty(after.homes, before.line, after.line, here);
        match (before.line, after.line) {
            (None, None) => Ps::ZERO,
            (Some(_), Some(new)) => {
                *self.cache.peek_mut(line).expect("the line was just looked up") = new;
                Ps::ZERO
            }
            (Some(_), None) => {
                self.cache.remove(line);
                Ps::ZERO
            }
            (None, Some(new)) => {
                self.clear_stall(line);
                let class = Class::of(&here.config.map, here.config.module, after.homes);
                let inserted = self.cache.insert(line, BulkClass::new(class as u8), new, here.l2_ways(class));
                // If pending misses pin every line in the set, the new line itself is the victim.
                let victim = inserted
                    .map_or(Some((line, new)), |inserted| inserted.victim.map(|victim| (victim.line, victim.state)));
                victim.map_or(Ps::ZERO, |(victim, state)| self.evict(victim, state, leaves, here))
            }
        }
    }

    /// Updates the number of dirty lines per class.
    #[inline]
    fn count_dirty<C: Coherence>(
        &mut self,
        homes: Homes,
        before: Option<LineState<D>>,
        after: Option<LineState<D>>,
        here: &SliceContext<'_, '_, C, D>,
    ) {
        if !here.config.protocol.writes_back() {
            return;
        }
        let dirty = |line: Option<LineState<D>>| line.is_some_and(|line| !line.dirty.is_empty());
        let (was, is) = (dirty(before), dirty(after));
        if was != is {
            let class = Class::of(&here.config.map, here.config.module, homes);
            let count = &mut self.dirty[class as usize];
            *count = *count + u32::from(is) - u32::from(was);
        }
    }

    /// Evicts a line after its directory entry was replaced, if present and without a pending miss.
    pub(super) fn evict_with_entry<C: Coherence>(
        &mut self,
        line: Line,
        leaves: Departure,
        here: &mut SliceContext<'_, '_, C, D>,
    ) {
        if self.cache.peek(line).is_none() {
            return;
        }
        let last_of_region = !here.config.map.region_lines(line).any(|other| other != line && self.is_in_use(other));
        let before = self.view_line(line, here.config.homes(line), self.mshr.find(line));
        let (mut slot, mut actions) = (before, Actions::default());
        let event = L2Event::Evict { last_of_region };
        match here.config.protocol.step(&here.config.map, here.config.module, &mut slot, event, &mut actions) {
            Ok(()) => {}
            Err(Refusal::Stall) => return,
            Err(Refusal::Unexpected(why)) => panic!("{}, {line}: {why}", here.config.module),
        }
        debug_assert!(keeps_to_edges(&before, &actions, here), "{}, {line}: an eviction", here.config.module);
        here.shared.stats.lines_invalidated_by_eviction += 1;
        self.keep_line(&before, &slot, leaves, here);
        self.send_evicted(line, &actions, leaves, here);
    }

    /// Evicts a line; returns the departure time for dirty bytes.
    pub(super) fn evict<C: Coherence>(
        &mut self,
        line: Line,
        state: LineState<D>,
        leaves: Departure,
        here: &mut SliceContext<'_, '_, C, D>,
    ) -> Ps {
        here.shared.stats.evictions += 1;
        // The protocol step would have no effect.
        if state.dirty.is_empty() && !here.config.protocol.downgrades() {
            return Ps::ZERO;
        }
        let asks = here.config.protocol.has_directory();
        let last_of_region = asks && !here.config.map.region_lines(line).any(|other| self.is_in_use(other));
        let homes = here.config.homes(line);
        self.count_dirty(homes, Some(state), None, here);
        let entry = if asks { self.directory.peek(line).copied() } else { None };
        let mut slot = LineSlot { line_id: line, homes, line: Some(state), pending: None, entry };
        let actions = self.step(&mut slot, L2Event::Evict { last_of_region }, here);
        self.send_evicted(line, &actions, leaves, here)
    }

    /// True if a line is present or pending.
    fn is_in_use(&self, line: Line) -> bool {
        self.cache.peek(line).is_some() || self.mshr.find(line).is_some()
    }

    /// Sends the messages for a line's eviction; returns the departure time for dirty bytes.
    fn send_evicted<C: Coherence>(
        &mut self,
        line: Line,
        actions: &Actions<D>,
        leaves: Departure,
        here: &mut SliceContext<'_, '_, C, D>,
    ) -> Ps {
        let (_, left) = self.send_written_back((line, None), actions, leaves, here);
        if let Some(home) = actions.downgrade {
            here.send(leaves, home, Packet::Downgrade { line });
        }
        left
    }

    /// Writes dirty bytes back on this module's own behalf. `tickets`: credits acquired earlier; returned if left
    /// unused. Also returns the time at which memory or the port has accepted the bytes.
    pub(super) fn send_written_back<C: Coherence>(
        &mut self,
        (line, mut tickets): (Line, Option<Tickets>),
        actions: &Actions<D>,
        leaves: Departure,
        here: &mut SliceContext<'_, '_, C, D>,
    ) -> (Option<Tickets>, Ps) {
        let mut left = here.out.now();
        here.shared.stats.write_back_bytes += written_back(actions, here);
        let nobody = EntryId::default();
        let origin = ReplyDestination { module: here.config.module, sm: SmId(0), warp: 0, result: 0, register: nobody };
        for &(target, request) in actions.forwards.iter().flatten() {
            here.shared.stats.writebacks += 1;
            let tickets = tickets.take();
            let tickets = tickets.unwrap_or_else(|| here.post(line, origin.module, Tickets::default()));
            let body = LineRequest {
                line,
                request,
                origin,
                flag: Flag::NONE,
                tickets,
                requester_mshr: nobody,
                is_published: false,
            };
            left = left.max(here.send(leaves, target, Packet::Request(body)));
        }
        if let Some((mask, data)) = actions.write {
            here.shared.stats.writebacks += 1;
            left = left.max(self.write_memory(line, (mask, data), leaves, here));
        }
        (tickets, left)
    }
}

/// Number of dirty bytes forwarded or written to memory in a protocol step.
fn written_back<C: Coherence, D: Contents>(actions: &Actions<D>, here: &SliceContext<'_, '_, C, D>) -> u64 {
    let sent = actions.forwards.iter().flatten().filter_map(|(_, request)| match *request {
        Request::Write { mask, .. } => Some(mask),
        Request::Read { .. } | Request::Atomic { .. } => None,
    });
    let grains = sent.chain(actions.write.map(|(mask, _)| mask)).map(Mask::grains).sum::<u32>();
    u64::from(grains) * here.config.machine.line.grain()
}
