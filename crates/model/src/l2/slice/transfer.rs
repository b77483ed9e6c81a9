//! Host transfers at a slice: reads and writes by the host between kernels.

use super::Slice;
use crate::l2::departure::Departure;
use crate::memory::Memory;
use crate::module::config::ModuleConfig;
use crate::module::context::SliceContext;
use crate::observe::value_probe::Contents;
use std::ops::Range;
use tombolo_protocol::{Coherence, transfer};
use tombolo_types::Line;
use tombolo_types::host::mask_within;

/// Up to this number of lines per transfer, each line is looked up individually; larger transfers walk the slice's
/// lines. No effect on results.
const FEW: u64 = 1024;

impl<D: Contents> Slice<D> {
    /// Handles host writes to these address ranges, ascending and without overlap.
    pub(crate) fn host_wrote<C: Coherence>(&mut self, ranges: &[Range<u64>], here: &mut SliceContext<'_, '_, C, D>) {
        let (size, protocol) = (here.config.machine.line, &here.config.protocol);
        for line in self.lines_within(ranges, here) {
            let miss = self.mshr.find(line);
            let before = self.view_line(line, here.config.homes(line), miss);
            let mut slot = before;
            transfer::write(protocol, here.config.module, &mut slot, mask_within(ranges, line, size));
            if let (Some(entry), Some(pending)) = (miss, slot.pending) {
                self.mshr.get_mut(entry).set_pending(pending);
            }
            self.keep_line(&before, &slot, Departure::at(here.out.now()), here);
        }
    }

    /// Present or pending lines in this slice with a byte in some range, in ascending order.
    fn lines_within<C: Coherence>(&mut self, ranges: &[Range<u64>], here: &SliceContext<'_, '_, C, D>) -> Vec<Line> {
        let size = here.config.machine.line;
        let lines = |range: &Range<u64>| size.line_of(range.start).0..size.line_of(range.end - 1).0 + 1;
        let count = ranges.iter().map(|range| lines(range).end - lines(range).start).sum::<u64>();
        let mut found: Vec<Line> = if count <= FEW {
            let mine = |line: &Line| usize::from(here.config.map.slice(*line)) == self.index;
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

    /// Line contents as the host reads them, for a line in this module's memory.
    pub(crate) fn host_reads<C: Coherence>(&self, line: Line, memory: &Memory<D>, config: &ModuleConfig<C, D>) -> D {
        transfer::read(&config.protocol, memory.read(line), self.cache.peek(line))
    }
}
