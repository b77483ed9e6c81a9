//! What becomes of a slice's lines: stored, evicted, and their dirty bytes written back.

use super::Slice;
use crate::cache::{Class as CacheClass, Ways};
use crate::credits::Generation;
use crate::message::{Flag, LineRequest, Message, Origin, Packet};
use crate::outcome::Outcome;
use crate::uncore::{Out, Uncore};
use crate::watch::Contents;
use tombolo_protocol::{Class, Coherence, Event, LineState, Slot, Topology};
use tombolo_types::{Line, Ps, SmId};

impl<D: Contents> Slice<D> {
    /// Writes dirty lines back one level up.
    pub fn flush<C: Coherence>(&mut self, uncore: &mut Uncore<C, D>, out: &mut Out<'_, D>) {
        if !uncore.protocol.writes_back() {
            return;
        }
        let mut dirty = Vec::new();
        self.cache.for_each_valid(|line, _, state| {
            if !state.dirty.is_empty() {
                dirty.push(line);
            }
        });
        for line in dirty {
            match self.mshr.find(line) {
                Some(entry) => {
                    let flush = &mut self.mshr.get_mut(entry).flush;
                    flush.get_or_insert_with(|| uncore.own_stores.credits.take());
                }
                None => self.flush_line(line, None, uncore, out),
            }
        }
    }

    /// Writes one line back. `ticket`: a credit taken for it before, which comes back in any case.
    pub(super) fn flush_line<C: Coherence>(
        &mut self,
        line: Line,
        ticket: Option<Generation>,
        uncore: &mut Uncore<C, D>,
        out: &mut Out<'_, D>,
    ) {
        let before = self.view_line(line, None, uncore);
        let mut slot = before;
        let outcome = self.step(&mut slot, Event::Flush, uncore);
        self.keep_line(&before, &slot, out.now(), uncore, out);
        let unused = self.send_written_back(line, &outcome, ticket, out.now(), uncore, out);
        if let Some(ticket) = unused {
            // The fill's waiters left nothing to write: the release goes on.
            let to = uncore.layout.controller(uncore.module);
            out.send(out.now() + Ps(1), self.id, to, Message::Taken { ticket, forwarded: false });
        }
    }

    /// Stores what became of the line.
    pub(super) fn keep_line<C: Coherence>(
        &mut self,
        before: &Slot<D>,
        after: &Slot<D>,
        leaves: Ps,
        uncore: &mut Uncore<C, D>,
        out: &mut Out<'_, D>,
    ) {
        let line = after.line_id;
        match (before.line, after.line) {
            (None, None) => {}
            (Some(old), Some(new)) => {
                if old != new {
                    *self.cache.peek_mut(line).expect("the line was just looked up") = new;
                }
            }
            (Some(_), None) => {
                self.cache.remove(line);
            }
            (None, Some(new)) => {
                let class = Class::of(&uncore.map, uncore.module, after.homes);
                let inserted = self.cache.insert(line, CacheClass::new(class as u8), new, Ways::ALL);
                // Where misses of their own pin every line of the set, the new one is the one that goes.
                let victim = inserted
                    .map_or(Some((line, new)), |inserted| inserted.victim.map(|victim| (victim.line, victim.state)));
                if let Some((victim, state)) = victim {
                    self.evict(victim, state, leaves, uncore, out);
                }
            }
        }
    }

    pub(super) fn evict<C: Coherence>(
        &mut self,
        line: Line,
        state: LineState<D>,
        leaves: Ps,
        uncore: &mut Uncore<C, D>,
        out: &mut Out<'_, D>,
    ) {
        uncore.stats.evictions += 1;
        let asks = uncore.protocol.has_directory() && (uncore.protocol.downgrades() || !state.dirty.is_empty());
        let last_of_region = asks
            && !uncore
                .map
                .region_lines(line)
                .any(|other| self.cache.peek(other).is_some() || self.mshr.find(other).is_some());
        let homes = uncore.map.homes(uncore.module, line);
        let entry = if asks { self.directory.peek(line).copied() } else { None };
        let mut slot = Slot { line_id: line, homes, line: Some(state), pending: None, entry };
        let outcome = self.step(&mut slot, Event::Evict { last_of_region }, uncore);
        self.send_written_back(line, &outcome, None, leaves, uncore, out);
        if let Some(home) = outcome.downgrade {
            uncore.send(leaves, home, Packet::Downgrade { line }, out, self.id);
        }
    }

    /// Sends dirty bytes up on this module's own account. `ticket`: a credit taken for them before; returned
    /// where nothing was sent with it.
    pub(super) fn send_written_back<C: Coherence>(
        &mut self,
        line: Line,
        outcome: &Outcome<D>,
        mut ticket: Option<Generation>,
        leaves: Ps,
        uncore: &mut Uncore<C, D>,
        out: &mut Out<'_, D>,
    ) -> Option<Generation> {
        let origin = Origin { module: uncore.module, sm: SmId(0), warp: 0, result: 0 };
        for &(target, request) in outcome.forwards.iter().flatten() {
            uncore.stats.writebacks += 1;
            let ticket = ticket.take().unwrap_or_else(|| uncore.own_stores.credits.take());
            let body = LineRequest { line, request, origin, flag: Flag::NONE, ticket };
            uncore.send(leaves, target, Packet::Request(body), out, self.id);
        }
        if let Some((mask, data)) = outcome.write {
            uncore.stats.writebacks += 1;
            self.write_memory(line, mask, data, leaves, uncore);
        }
        ticket
    }
}
