//! Watcher for the host program's accesses to arrays before the first command and between commands.
//!
//! Only addresses are noted, regardless of array contents, so that a recording has the same phases with or without
//! contents.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tombolo_types::HostPhase;
use tombolo_types::array::merge_ranges;

/// Minimum number of ranges before noted ranges are united: elements arrive individually, and mostly in order.
const MANY: usize = 1 << 12;

/// Number of recent ranges that an access may extend: a host may set several arrays alternately, element by element.
/// Source: assumed, equal to the number of arrays that `comd` sets.
const RECENT: usize = 8;

/// Notes the host's accesses while switched on.
#[derive(Default)]
pub(crate) struct HostWatch {
    on: AtomicBool,
    phase: Mutex<HostPhase>,
}

impl HostWatch {
    /// Switches the watcher on or off; returns the previous state.
    pub(crate) fn switch(&self, on: bool) -> bool {
        self.on.swap(on, Ordering::Relaxed)
    }

    /// Notes a host read from the given addresses.
    #[inline]
    pub(crate) fn reads(&self, addresses: impl FnOnce() -> Range<u64>) {
        if self.on.load(Ordering::Relaxed) {
            note(&mut self.phase().reads, addresses());
        }
    }

    /// Notes a host write to the given addresses.
    #[inline]
    pub(crate) fn writes(&self, addresses: impl FnOnce() -> Range<u64>) {
        if self.on.load(Ordering::Relaxed) {
            note(&mut self.phase().writes, addresses());
        }
    }

    /// Returns all accesses noted since the last call.
    pub(crate) fn take(&self) -> HostPhase {
        let mut phase = std::mem::take(&mut *self.phase());
        merge_ranges(&mut phase.reads);
        merge_ranges(&mut phase.writes);
        phase
    }

    fn phase(&self) -> MutexGuard<'_, HostPhase> {
        self.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn note(ranges: &mut Vec<Range<u64>>, addresses: Range<u64>) {
    let goes_on = |range: &Range<u64>| range.start <= addresses.start && addresses.start <= range.end;
    if let Some(range) = ranges.iter_mut().rev().take(RECENT).find(|range| goes_on(range)) {
        range.end = range.end.max(addresses.end);
        return;
    }
    // The buffer is full, and a push would double it. It is doubled only if more than half remains after uniting, so
    // that ranges are seldom united.
    if ranges.len() >= MANY && ranges.len() == ranges.capacity() {
        merge_ranges(ranges);
        ranges.reserve(ranges.len());
    }
    ranges.push(addresses);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_noted_is_united_and_taken_once() {
        let watch = HostWatch::default();
        watch.reads(|| 0..4);
        assert!(watch.take().is_empty(), "it was off");
        assert!(!watch.switch(true));
        [4, 0, 8, 100, 0].into_iter().for_each(|at| watch.reads(|| at..at + 4));
        watch.writes(|| 7..7);
        assert_eq!(watch.take(), HostPhase { reads: vec![0..12, 100..104], writes: vec![] });
        assert!(watch.take().is_empty());
    }

    #[test]
    fn arrays_that_are_set_side_by_side_take_a_range_each() {
        let watch = HostWatch::default();
        watch.switch(true);
        for element in 0..100 {
            (0..RECENT as u64).map(|array| 1000 * array + 4 * element).for_each(|at| watch.writes(|| at..at + 4));
        }
        assert_eq!(watch.phase().writes.len(), RECENT);
        assert_eq!(watch.take().writes[RECENT - 1], 7000..7400);
    }

    #[test]
    fn many_scattered_elements_take_no_more_than_their_ranges() {
        let watch = HostWatch::default();
        watch.switch(true);
        for at in 0..8 * MANY as u64 {
            watch.writes(|| 8 * (at % 64)..8 * (at % 64) + 4);
        }
        assert!(watch.phase().writes.capacity() <= 2 * MANY);
        assert_eq!(watch.take().writes.len(), 64);
    }
}
