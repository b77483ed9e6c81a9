//! What becomes of a slice's lines: stored, evicted, and their dirty bytes written back.

use super::host::{Flushing, Here};
use super::{Slice, keeps_to_edges};
use crate::actions::Actions;
use crate::boundaries::reaches;
use crate::cache::BulkClass;
use crate::context::SliceContext;
use crate::departure::Departure;
use crate::message::{Flag, LineRequest, Origin};
use crate::mshr::EntryId;
use crate::outstanding::Tickets;
use crate::packet::Packet;
use crate::watch::Contents;
use tombolo_protocol::elision::LineSet;
use tombolo_protocol::host::{self, Tried};
use tombolo_protocol::{Class, ClassSet, Coherence, Event, Homes, LineState, Refusal, Request, Slot};
use tombolo_types::{Line, Mask, Ps, SmId};

impl<D: Contents> Slice<D> {
    /// Writes dirty lines of these classes and this extent back one level up. Returns when memory has taken what was written
    /// to it.
    pub fn flush<C: Coherence>(
        &mut self,
        classes: ClassSet,
        extent: Option<&LineSet>,
        here: &mut SliceContext<'_, '_, C, D>,
    ) -> Ps {
        let mut taken = here.out.now();
        if !self.has_dirty(classes) {
            return taken;
        }
        let protocol = &here.site.protocol;
        let mut lines = self.lines_where(|class, state| classes.contains(class) && !state.dirty.is_empty());
        lines.retain(|line| reaches(extent, *line));
        for line in lines {
            let mut flushing = Flushing { here: Here { slice: self, context: here }, line, taken };
            host::flush(protocol, &mut flushing);
            taken = flushing.taken;
        }
        taken
    }

    /// Lines that it holds, and those of them that are dirty.
    pub fn held(&mut self) -> (u32, u32) {
        (self.lines_where(|_, _| true).len() as u32, self.dirty.iter().sum())
    }

    /// Whether a line of these classes is dirty.
    pub(super) fn has_dirty(&self, classes: ClassSet) -> bool {
        Class::ALL.into_iter().any(|class| classes.contains(class) && self.dirty[class as usize] > 0)
    }

    /// Its lines that `wanted` says yes to.
    pub(super) fn lines_where(&mut self, wanted: impl Fn(Class, &LineState<D>) -> bool) -> Vec<Line> {
        let mut lines = Vec::new();
        self.cache.for_each_valid(|line, class, state| {
            if wanted(Class::ALL[usize::from(class.id())], state) {
                lines.push(line);
            }
        });
        lines
    }

    /// Writes one line back, unless its miss is pending; returns also when memory has taken what was written to it.
    /// `tickets`: credits taken for it before, which come back in any case.
    pub(super) fn flush_line<C: Coherence>(
        &mut self,
        line: Line,
        tickets: Option<Tickets>,
        here: &mut SliceContext<'_, '_, C, D>,
    ) -> (Tried, Ps) {
        let now = here.out.now();
        let miss = self.mshr.find(line);
        let before = self.view_line(line, here.site.homes(line), miss);
        let (mut slot, mut actions) = (before, Actions::default());
        match here.site.protocol.step(&here.site.map, here.site.module, &mut slot, Event::Flush, &mut actions) {
            Ok(()) => {}
            Err(Refusal::Stall) => return (Tried::Stalled, now),
            Err(Refusal::Unexpected(why)) => panic!("{}, {line}: {why}", here.site.module),
        }
        debug_assert!(keeps_to_edges(&before, &actions, here), "{}, {line}: a write-back", here.site.module);
        let leaves = self.read_out(&actions, here);
        self.keep_line(&before, &slot, leaves, here);
        let (unused, left) = self.send_written_back((line, tickets), &actions, leaves, here);
        let taken = if actions.write.is_some() { left } else { now };
        if let Some(tickets) = unused {
            // The fill's waiters left nothing to send: the release goes on when memory has taken what it has.
            here.withdraw(line, tickets, taken);
        }
        (Tried::Taken, taken)
    }

    /// Invalidates one line in bulk; returns when what it wrote back has left, taken by memory or the port.
    pub(super) fn invalidate_line<C: Coherence>(&mut self, line: Line, here: &mut SliceContext<'_, '_, C, D>) -> Ps {
        let miss = self.mshr.find(line);
        let before = self.view_line(line, here.site.homes(line), miss);
        let mut slot = before;
        let actions = self.step(&mut slot, Event::InvalidateLine, here);
        let leaves = self.read_out(&actions, here);
        self.keep_line(&before, &slot, leaves, here);
        self.send_written_back((line, None), &actions, leaves, here).1
    }

    /// The page of a line goes elsewhere: its dirty bytes go to memory, and it is dropped. Returns when memory has taken them.
    pub fn give_up<C: Coherence>(&mut self, line: Line, here: &mut SliceContext<'_, '_, C, D>) -> Ps {
        let rules = here.site.paging;
        if self.cache.peek(line).is_none() {
            return here.out.now();
        }
        if !rules.writes_back() {
            let before = self.view_line(line, here.site.homes(line), None);
            let now = here.out.now();
            return self.keep_line(&before, &Slot { line: None, ..before }, Departure::at(now), here).max(now);
        }
        let state = self.cache.peek(line).copied();
        let left = self.invalidate_line(line, here);
        if !rules.drops_lines() {
            let before = self.view_line(line, here.site.homes(line), None);
            let kept = state.map(|state| LineState { dirty: Mask::NONE, ..state });
            self.keep_line(&before, &Slot { line: kept, ..before }, Departure::at(left), here);
        }
        left
    }

    /// What a copy finds of a line here, and when that leaves; `None` where the line is not here.
    pub fn copied_from<C: Coherence>(
        &mut self,
        line: Line,
        here: &mut SliceContext<'_, '_, C, D>,
    ) -> Option<(Mask, D, Departure)> {
        let state = *self.cache.peek(line)?;
        let (now, bytes) = (here.out.now(), u64::from(state.valid.grains()) * here.site.machine.line.grain());
        Some((state.valid, state.data, self.occupy(now, now, bytes, here)))
    }

    /// A copy writes the line to memory: what is here of it is old.
    pub fn copied_to<C: Coherence>(&mut self, line: Line, here: &mut SliceContext<'_, '_, C, D>) {
        if self.cache.peek(line).is_some() {
            self.invalidate_line(line, here);
        }
    }

    /// The slice's port is busy with the bytes that a step writes back; returns when they leave.
    fn read_out<C: Coherence>(&mut self, actions: &Actions<D>, here: &SliceContext<'_, '_, C, D>) -> Departure {
        let bytes = written_back(actions, here);
        if bytes == 0 {
            return Departure::at(here.out.now());
        }
        self.occupy(here.out.now(), here.out.now(), bytes, here)
    }

    /// Stores what became of the line; returns when what had to make room for it has left, taken by memory or the port.
    #[inline]
    pub(super) fn keep_line<C: Coherence>(
        &mut self,
        before: &Slot<D>,
        after: &Slot<D>,
        leaves: Departure,
        here: &mut SliceContext<'_, '_, C, D>,
    ) -> Ps {
        if before.line == after.line { Ps::ZERO } else { self.change_line(before, after, leaves, here) }
    }

    #[inline(never)]
    fn change_line<C: Coherence>(
        &mut self,
        before: &Slot<D>,
        after: &Slot<D>,
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
                self.feed(line);
                let class = Class::of(&here.site.map, here.site.module, after.homes);
                let inserted = self.cache.insert(line, BulkClass::new(class as u8), new, here.l2_ways(class));
                // Where misses of their own pin every line of the set, the new one is the one that goes.
                let victim = inserted
                    .map_or(Some((line, new)), |inserted| inserted.victim.map(|victim| (victim.line, victim.state)));
                victim.map_or(Ps::ZERO, |(victim, state)| self.evict(victim, state, leaves, here))
            }
        }
    }

    /// Keeps count of dirty lines.
    #[inline]
    fn count_dirty<C: Coherence>(
        &mut self,
        homes: Homes,
        before: Option<LineState<D>>,
        after: Option<LineState<D>>,
        here: &SliceContext<'_, '_, C, D>,
    ) {
        if !here.site.protocol.writes_back() {
            return;
        }
        let dirty = |line: Option<LineState<D>>| line.is_some_and(|line| !line.dirty.is_empty());
        let (was, is) = (dirty(before), dirty(after));
        if was != is {
            let class = Class::of(&here.site.map, here.site.module, homes);
            let count = &mut self.dirty[class as usize];
            *count = *count + u32::from(is) - u32::from(was);
        }
    }

    /// Evicts a line whose directory entry has been replaced, if it is here, unless its miss is pending.
    pub(super) fn evict_with_entry<C: Coherence>(
        &mut self,
        line: Line,
        leaves: Departure,
        here: &mut SliceContext<'_, '_, C, D>,
    ) {
        if self.cache.peek(line).is_none() {
            return;
        }
        let last_of_region = !here.site.map.region_lines(line).any(|other| other != line && self.is_in_use(other));
        let before = self.view_line(line, here.site.homes(line), self.mshr.find(line));
        let (mut slot, mut actions) = (before, Actions::default());
        let event = Event::Evict { last_of_region };
        match here.site.protocol.step(&here.site.map, here.site.module, &mut slot, event, &mut actions) {
            Ok(()) => {}
            Err(Refusal::Stall) => return,
            Err(Refusal::Unexpected(why)) => panic!("{}, {line}: {why}", here.site.module),
        }
        debug_assert!(keeps_to_edges(&before, &actions, here), "{}, {line}: an eviction", here.site.module);
        here.shared.stats.lines_invalidated_by_eviction += 1;
        self.keep_line(&before, &slot, leaves, here);
        self.send_evicted(line, &actions, leaves, here);
    }

    /// Evicts a line; returns when its dirty bytes have left.
    pub(super) fn evict<C: Coherence>(
        &mut self,
        line: Line,
        state: LineState<D>,
        leaves: Departure,
        here: &mut SliceContext<'_, '_, C, D>,
    ) -> Ps {
        here.shared.stats.evictions += 1;
        // Its step would ask for nothing.
        if state.dirty.is_empty() && !here.site.protocol.downgrades() {
            return Ps::ZERO;
        }
        let asks = here.site.protocol.has_directory();
        let last_of_region = asks && !here.site.map.region_lines(line).any(|other| self.is_in_use(other));
        let homes = here.site.homes(line);
        self.count_dirty(homes, Some(state), None, here);
        let entry = if asks { self.directory.peek(line).copied() } else { None };
        let mut slot = Slot { line_id: line, homes, line: Some(state), pending: None, entry };
        let actions = self.step(&mut slot, Event::Evict { last_of_region }, here);
        self.send_evicted(line, &actions, leaves, here)
    }

    /// Whether a line is here or on its way here.
    fn is_in_use(&self, line: Line) -> bool {
        self.cache.peek(line).is_some() || self.mshr.find(line).is_some()
    }

    /// Sends what the eviction of a line asks for; returns when its dirty bytes have left.
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

    /// Sends dirty bytes up on this module's own account. `tickets`: credits taken for them before; returned
    /// where nothing was sent with them. Returns also when the bytes have left, taken by memory or the port.
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
        let origin = Origin { module: here.site.module, sm: SmId(0), warp: 0, result: 0, register: nobody };
        for &(target, request) in actions.forwards.iter().flatten() {
            here.shared.stats.writebacks += 1;
            let tickets = tickets.take();
            let tickets = tickets.unwrap_or_else(|| here.post(line, origin.module, Tickets::default()));
            let body =
                LineRequest { line, request, origin, flag: Flag::NONE, tickets, asker: nobody, is_published: false };
            left = left.max(here.send(leaves, target, Packet::Request(body)));
        }
        if let Some((mask, data)) = actions.write {
            here.shared.stats.writebacks += 1;
            left = left.max(self.write_memory(line, (mask, data), leaves, here));
        }
        (tickets, left)
    }
}

/// Dirty bytes that a step sends up or to memory.
fn written_back<C: Coherence, D: Contents>(actions: &Actions<D>, here: &SliceContext<'_, '_, C, D>) -> u64 {
    let sent = actions.forwards.iter().flatten().filter_map(|(_, request)| match *request {
        Request::Write { mask, .. } => Some(mask),
        Request::Read { .. } | Request::Atomic { .. } => None,
    });
    let grains = sent.chain(actions.write.map(|(mask, _)| mask)).map(Mask::grains).sum::<u32>();
    u64::from(grains) * here.site.machine.line.grain()
}
