//! Splits a run's time into kernels, copies, the host and launches.
//!
//! If several activities overlap, the first in this order counts, so that the four parts add up to the whole. If no
//! activity is in progress, the host and the driver are launching the next command. All times are whole picoseconds.

use serde::{Deserialize, Serialize};
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
        TimeSplit { kernels: kernel, copies: copy, host, launches: whole - covered, region: ended - opened }
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

/// A run's time in seconds: four parts that add up to the whole, and the region.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TimeRecord {
    /// Time while a kernel was open: between the end of the launch latency and the end of the release.
    pub kernels_s: f64,
    /// Remaining time while a copy between host and device memory ran.
    pub copies_s: f64,
    /// Remaining time while the host program worked on memory.
    pub host_s: f64,
    /// The rest: launch latencies.
    pub launches_s: f64,
    /// From the first kernel's start to the last kernel's end, including gaps and copies in between and transfers to
    /// further GPUs that a design adds after the last kernel; 0 without kernels.
    pub region_s: f64,
    /// From the program's start to the last command's end.
    pub whole_s: f64,
}

impl TimeRecord {
    /// Converts the parts into seconds, for a run that took `whole`.
    pub(crate) fn new(split: &TimeSplit, whole: Ps) -> TimeRecord {
        TimeRecord {
            kernels_s: split.kernels.seconds(),
            copies_s: split.copies.seconds(),
            host_s: split.host.seconds(),
            launches_s: split.launches.seconds(),
            region_s: split.region.seconds(),
            whole_s: whole.seconds(),
        }
    }

    /// Adds `kernels_s` seconds in kernels and `launches_s` seconds in launches that were not simulated.
    pub(crate) fn with(self, kernels_s: f64, launches_s: f64) -> TimeRecord {
        TimeRecord {
            kernels_s: self.kernels_s + kernels_s,
            launches_s: self.launches_s + launches_s,
            region_s: self.region_s + kernels_s + launches_s,
            whole_s: self.whole_s + kernels_s + launches_s,
            ..self
        }
    }

    /// The time selected by `choice`.
    pub fn of(&self, choice: TimeChoice) -> f64 {
        match choice {
            TimeChoice::Region => self.region_s,
            TimeChoice::Kernels => self.kernels_s,
            TimeChoice::Whole => self.whole_s,
        }
    }
}

/// The time by which tables and figures compare runs, chosen by the user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum TimeChoice {
    /// From the first kernel's start to the last kernel's end.
    #[default]
    #[serde(rename = "region")]
    Region,
    /// While a kernel was open.
    #[serde(rename = "kernels")]
    Kernels,
    /// From the program's start to the last command's end.
    #[serde(rename = "whole")]
    Whole,
}

impl TimeChoice {
    /// Every choice, in the order of the enum.
    pub const ALL: [TimeChoice; 3] = [TimeChoice::Region, TimeChoice::Kernels, TimeChoice::Whole];

    /// The choice's keyword.
    pub fn word(self) -> &'static str {
        match self {
            TimeChoice::Region => "region",
            TimeChoice::Kernels => "kernels",
            TimeChoice::Whole => "whole",
        }
    }

    /// The choice's path in a record.
    pub fn path(self) -> &'static str {
        match self {
            TimeChoice::Region => "time.region_s",
            TimeChoice::Kernels => "time.kernels_s",
            TimeChoice::Whole => "time.whole_s",
        }
    }

    /// Description for the title of a table or a figure.
    pub fn title(self) -> &'static str {
        match self {
            TimeChoice::Region => "of the region from the first kernel to the end of the last",
            TimeChoice::Kernels => "of the kernels alone",
            TimeChoice::Whole => "of the whole program",
        }
    }
}

impl std::fmt::Display for TimeChoice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.word())
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

    #[test]
    fn every_choice_has_the_path_of_its_value() {
        let record = TimeRecord { region_s: 1.0, kernels_s: 2.0, whole_s: 3.0, ..TimeRecord::default() };
        let value = serde_json::json!({ "time": record });
        for choice in TimeChoice::ALL {
            let at = value.pointer(&format!("/{}", choice.path().replace('.', "/")));
            assert_eq!(at.and_then(serde_json::Value::as_f64), Some(record.of(choice)), "{choice}");
        }
    }
}
