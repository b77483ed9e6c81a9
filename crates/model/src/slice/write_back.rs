//! What becomes of a slice's lines: stored, evicted, and their dirty bytes written back.

use super::Slice;
use crate::cache::Class as CacheClass;
use crate::departure::Departure;
use crate::message::{Flag, LineRequest, Origin, Out, Packet};
use crate::mshr::EntryId;
use crate::outcome::Outcome;
use crate::outstanding::Tickets;
use crate::uncore::Uncore;
use crate::watch::Contents;
use tombolo_protocol::{Class, ClassSet, Coherence, Event, Homes, LineState, Request, Slot};
use tombolo_types::{Line, Mask, Ps, SmId};

impl<D: Contents> Slice<D> {
    /// Writes dirty lines of these classes, none homed here, back one level up.
    pub fn flush<C: Coherence>(&mut self, classes: ClassSet, uncore: &mut Uncore<C, D>, out: &mut Out<'_, D>) {
        if !self.has_dirty(classes) {
            return;
        }
        for line in self.lines_where(|class, state| classes.contains(class) && !state.dirty.is_empty()) {
            match self.mshr.find(line) {
                Some(entry) => {
                    let miss = self.mshr.get_mut(entry);
                    if !std::mem::replace(&mut miss.flushes, true) {
                        let target = uncore.site.next_home(line);
                        self.flushes.insert(line, uncore.post(line, uncore.site.module, Tickets::default(), target));
                    }
                }
                None => self.flush_line(line, None, uncore, out),
            }
        }
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

    /// Writes one line back. `tickets`: credits taken for it before, which come back in any case.
    pub(super) fn flush_line<C: Coherence>(
        &mut self,
        line: Line,
        tickets: Option<Tickets>,
        uncore: &mut Uncore<C, D>,
        out: &mut Out<'_, D>,
    ) {
        let before = self.view_line(line, uncore.site.homes(line), None);
        let mut slot = before;
        let outcome = self.step(&mut slot, Event::Flush, uncore);
        let leaves = self.read_out(&outcome, uncore, out);
        self.keep_line(&before, &slot, leaves, uncore, out);
        let (unused, _) = self.send_written_back(line, &outcome, tickets, leaves, uncore, out);
        if let Some(tickets) = unused {
            // The fill's waiters left nothing to write: the release goes on.
            uncore.withdraw(line, tickets, out, self.id);
        }
    }

    /// Invalidates one line in bulk; returns when what it wrote back has left, taken by memory or the port.
    pub(super) fn invalidate_line<C: Coherence>(
        &mut self,
        line: Line,
        uncore: &mut Uncore<C, D>,
        out: &mut Out<'_, D>,
    ) -> Ps {
        let miss = self.mshr.find(line);
        let before = self.view_line(line, uncore.site.homes(line), miss);
        let mut slot = before;
        let outcome = self.step(&mut slot, Event::InvalidateLine, uncore);
        let leaves = self.read_out(&outcome, uncore, out);
        self.keep_line(&before, &slot, leaves, uncore, out);
        self.send_written_back(line, &outcome, None, leaves, uncore, out).1
    }

    /// The slice's port is busy with the bytes that a step writes back; returns when they leave.
    fn read_out<C: Coherence>(&mut self, outcome: &Outcome<D>, uncore: &Uncore<C, D>, out: &Out<'_, D>) -> Departure {
        let sent = outcome.forwards.iter().flatten().filter_map(|(_, request)| match *request {
            Request::Write { mask, .. } => Some(mask),
            Request::Read { .. } | Request::Atomic { .. } => None,
        });
        let grains = sent.chain(outcome.write.map(|(mask, _)| mask)).map(Mask::grains).sum::<u32>();
        if grains == 0 {
            return Departure::at(out.now());
        }
        self.occupy(out.now(), out.now(), u64::from(grains) * uncore.site.machine.line.grain(), uncore)
    }

    /// Stores what became of the line; returns when what had to make room for it has left, taken by memory or the port.
    pub(super) fn keep_line<C: Coherence>(
        &mut self,
        before: &Slot<D>,
        after: &Slot<D>,
        leaves: Departure,
        uncore: &mut Uncore<C, D>,
        out: &mut Out<'_, D>,
    ) -> Ps {
        let line = after.line_id;
        self.count_dirty(after.homes, before.line, after.line, uncore);
        match (before.line, after.line) {
            (None, None) => Ps::ZERO,
            (Some(old), Some(new)) => {
                if old != new {
                    *self.cache.peek_mut(line).expect("the line was just looked up") = new;
                }
                Ps::ZERO
            }
            (Some(_), None) => {
                self.cache.remove(line);
                Ps::ZERO
            }
            (None, Some(new)) => {
                self.feed(line);
                let class = Class::of(&uncore.site.map, uncore.site.module, after.homes);
                let inserted = self.cache.insert(line, CacheClass::new(class as u8), new, uncore.l2_ways(class));
                // Where misses of their own pin every line of the set, the new one is the one that goes.
                let victim = inserted
                    .map_or(Some((line, new)), |inserted| inserted.victim.map(|victim| (victim.line, victim.state)));
                victim.map_or(Ps::ZERO, |(victim, state)| self.evict(victim, state, leaves, uncore, out))
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
        uncore: &Uncore<C, D>,
    ) {
        if !uncore.site.protocol.writes_back() {
            return;
        }
        let dirty = |line: Option<LineState<D>>| line.is_some_and(|line| !line.dirty.is_empty());
        let (was, is) = (dirty(before), dirty(after));
        if was != is {
            let class = Class::of(&uncore.site.map, uncore.site.module, homes);
            let count = &mut self.dirty[class as usize];
            *count = *count + u32::from(is) - u32::from(was);
        }
    }

    /// Evicts a line; returns when its dirty bytes have left.
    pub(super) fn evict<C: Coherence>(
        &mut self,
        line: Line,
        state: LineState<D>,
        leaves: Departure,
        uncore: &mut Uncore<C, D>,
        out: &mut Out<'_, D>,
    ) -> Ps {
        uncore.stats.evictions += 1;
        // Its step would ask for nothing.
        if state.dirty.is_empty() && !uncore.site.protocol.downgrades() {
            return Ps::ZERO;
        }
        let asks = uncore.site.protocol.has_directory();
        let last_of_region = asks
            && !uncore
                .site
                .map
                .region_lines(line)
                .any(|other| self.cache.peek(other).is_some() || self.mshr.find(other).is_some());
        let homes = uncore.site.homes(line);
        self.count_dirty(homes, Some(state), None, uncore);
        let entry = if asks { self.directory.peek(line).copied() } else { None };
        let mut slot = Slot { line_id: line, homes, line: Some(state), pending: None, entry };
        let outcome = self.step(&mut slot, Event::Evict { last_of_region }, uncore);
        let (_, left) = self.send_written_back(line, &outcome, None, leaves, uncore, out);
        if let Some(home) = outcome.downgrade {
            uncore.send(leaves, home, Packet::Downgrade { line }, out, self.id);
        }
        left
    }

    /// Sends dirty bytes up on this module's own account. `tickets`: credits taken for them before; returned
    /// where nothing was sent with them. Returns also when the bytes have left, taken by memory or the port.
    pub(super) fn send_written_back<C: Coherence>(
        &mut self,
        line: Line,
        outcome: &Outcome<D>,
        mut tickets: Option<Tickets>,
        leaves: Departure,
        uncore: &mut Uncore<C, D>,
        out: &mut Out<'_, D>,
    ) -> (Option<Tickets>, Ps) {
        let mut left = out.now();
        let nobody = EntryId::default();
        let origin = Origin { module: uncore.site.module, sm: SmId(0), warp: 0, result: 0, register: nobody };
        for &(target, request) in outcome.forwards.iter().flatten() {
            uncore.stats.writebacks += 1;
            let tickets = tickets.take();
            let tickets = tickets.unwrap_or_else(|| uncore.post(line, origin.module, Tickets::default(), target));
            let body = LineRequest { line, request, origin, flag: Flag::NONE, tickets, asker: nobody };
            left = left.max(uncore.send(leaves, target, Packet::Request(body), out, self.id));
        }
        if let Some((mask, data)) = outcome.write {
            uncore.stats.writebacks += 1;
            left = left.max(self.write_memory(line, (mask, data), leaves, uncore, out));
        }
        (tickets, left)
    }
}
