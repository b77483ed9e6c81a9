//! What a slice makes of transfers of the host.

use super::Slice;
use crate::context::SliceContext;
use crate::departure::Departure;
use crate::memory::Memory;
use crate::site::Site;
use crate::watch::Contents;
use std::ops::Range;
use tombolo_protocol::{Coherence, transfer};
use tombolo_types::Line;
use tombolo_types::host::mask_within;

/// Lines of a transfer up to which each is looked up; of more, the slice's own lines are walked. Changes no result.
const FEW: u64 = 1024;

impl<D: Contents> Slice<D> {
    /// The host has written these addresses: ranges that ascend and do not overlap.
    pub fn host_wrote<C: Coherence>(&mut self, ranges: &[Range<u64>], here: &mut SliceContext<'_, '_, C, D>) {
        let (size, protocol) = (here.site.machine.line, &here.site.protocol);
        for line in self.lines_within(ranges, here) {
            let miss = self.mshr.find(line);
            let before = self.view_line(line, here.site.homes(line), miss);
            let mut slot = before;
            transfer::write(protocol, here.site.module, &mut slot, mask_within(ranges, line, size));
            if let (Some(entry), Some(pending)) = (miss, slot.pending) {
                self.mshr.get_mut(entry).set_pending(pending);
            }
            self.keep_line(&before, &slot, Departure::at(here.out.now()), here);
        }
    }

    /// Lines present or on their way here that have a byte in some range, ascending.
    fn lines_within<C: Coherence>(&mut self, ranges: &[Range<u64>], here: &SliceContext<'_, '_, C, D>) -> Vec<Line> {
        let size = here.site.machine.line;
        let lines = |range: &Range<u64>| size.line_of(range.start).0..size.line_of(range.end - 1).0 + 1;
        let count = ranges.iter().map(|range| lines(range).end - lines(range).start).sum::<u64>();
        let mut found: Vec<Line> = if count <= FEW {
            let mine = |line: &Line| usize::from(here.site.map.slice(*line)) == self.index;
            let is_here = |line: &Line| self.cache.peek(*line).is_some() || self.mshr.find(*line).is_some();
            ranges.iter().flat_map(lines).map(Line).filter(mine).filter(is_here).collect()
        } else {
            let missing: Vec<Line> = self.mshr.entries().map(|entry| self.mshr.line(entry)).collect();
            let held = self.lines_where(|_, _| true);
            held.into_iter().chain(missing).collect()
        };
        found.retain(|line| !mask_within(ranges, *line, size).is_empty());
        found.sort_unstable();
        found.dedup();
        found
    }

    /// The contents of a line of its module's memory, as the host reads them.
    pub fn host_reads<C: Coherence>(&self, line: Line, memory: &Memory<D>, site: &Site<C, D>) -> D {
        transfer::read(&site.protocol, memory.read(line), self.cache.peek(line))
    }
}
