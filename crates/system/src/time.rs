//! Splits a run's time into kernels, copies, the host and launches.
//!
//! If several activities overlap, the first in this order counts, so that the four parts add up to the whole. If no
//! activity is in progress, the host and the driver are launching the next command. All times are whole picoseconds.

pub use tombolo_metrics::{TimeChoice, TimeRecord};
use tombolo_types::Ps;

/// An interval in which an activity was in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Start of the interval.
    pub start: Ps,
    /// End of the interval, never before `start`.
    pub end: Ps,
}

/// A run's time, in parts that never overlap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeSplit {
    /// Time while a kernel was open.
    pub kernels: Ps,
    /// Remaining time while a copy between host and device memory ran.
    pub copies: Ps,
    /// Remaining time while the host program worked on memory.
    pub host: Ps,
    /// The rest: launch latencies.
    pub launches: Ps,
    /// From the first kernel's start to the last kernel's end; zero without kernels.
    pub region: Ps,
    /// While CTAs were present.
    pub ctas: Ps,
    /// While CTAs were present or their stores were under way.
    pub drained: Ps,
}

impl TimeSplit {
    /// Splits a run with length `whole`, given the spans for each activity.
    pub fn of(kernels: &[Span], copies: &[Span], host: &[Span], whole: Ps) -> TimeSplit {
        let mut spans = Vec::new();
        let mut covered = Ps::ZERO;
        let [kernel, copy, host] = [kernels, copies, host].map(|more| {
            spans.extend_from_slice(more);
            let before = std::mem::replace(&mut covered, union(&mut spans));
            covered - before
        });
        let opened = kernels.iter().map(|span| span.start).min().unwrap_or_default();
        let ended = kernels.iter().map(|span| span.end).max().unwrap_or_default();
        TimeSplit {
            kernels: kernel,
            copies: copy,
            host,
            launches: whole - covered,
            region: ended - opened,
            ..TimeSplit::default()
        }
    }
}

/// Time covered by at least one span; overlapping spans count once. Sorts the spans by start.
pub(crate) fn union(spans: &mut [Span]) -> Ps {
    spans.sort_by_key(|span| span.start);
    let (mut covered, mut until) = (Ps::ZERO, Ps::ZERO);
    for span in spans {
        covered += span.end.saturating_sub(span.start.max(until));
        until = until.max(span.end);
    }
    covered
}

impl TimeSplit {
    /// The parts in seconds, for a run that took `whole`.
    pub(crate) fn record(&self, whole: Ps) -> TimeRecord {
        TimeRecord {
            kernels_s: self.kernels.seconds(),
            copies_s: self.copies.seconds(),
            host_s: self.host.seconds(),
            launches_s: self.launches.seconds(),
            region_s: self.region.seconds(),
            ctas_s: self.ctas.seconds(),
            drained_s: self.drained.seconds(),
            whole_s: whole.seconds(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(start: u64, end: u64) -> Span {
        Span { start: Ps(start), end: Ps(end) }
    }

    fn parts(split: TimeSplit) -> [u64; 5] {
        [split.kernels, split.copies, split.host, split.launches, split.region].map(|part| part.0)
    }

    #[test]
    fn what_overlaps_counts_as_the_first_of_kernels_copies_and_host() {
        let split =
            TimeSplit::of(&[span(20, 50), span(60, 80)], &[span(10, 30), span(45, 65)], &[span(0, 100)], Ps(110));
        assert_eq!(parts(split), [50, 10 + 10, 10 + 20, 10, 60]);
    }

    #[test]
    fn kernels_side_by_side_count_once() {
        let split = TimeSplit::of(&[span(30, 60), span(10, 40), span(15, 20)], &[], &[], Ps(60));
        assert_eq!(parts(split), [50, 0, 0, 10, 50]);
    }

    #[test]
    fn a_program_without_kernels_has_no_region() {
        assert_eq!(parts(TimeSplit::of(&[], &[span(5, 9)], &[], Ps(9))), [0, 4, 0, 5, 0]);
    }

    #[test]
    fn the_four_parts_add_up_to_the_whole_however_they_overlap() {
        let mut seed = 1_u64;
        let mut random = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % below
        };
        for _ in 0..200 {
            let mut spans = || -> Vec<Span> {
                let count = random(5);
                let one = |_| {
                    let start = random(90);
                    span(start, start + random(10))
                };
                (0..count).map(one).collect()
            };
            let [kernels, copies, host] = [spans(), spans(), spans()];
            let [kernel, copy, on_host, launches, _] = parts(TimeSplit::of(&kernels, &copies, &host, Ps(100)));
            assert_eq!(kernel + copy + on_host + launches, 100, "{kernels:?} {copies:?} {host:?}");
            let open = |at: u64| kernels.iter().any(|span| (span.start.0..span.end.0).contains(&at));
            assert_eq!(kernel, (0..100).filter(|at| open(*at)).count() as u64);
        }
    }
}
