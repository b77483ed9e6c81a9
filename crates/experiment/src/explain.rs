//! Explains why a design's time differs from the previous design: its time by class of warp-slot cycles, and the
//! counter behind each difference.
//!
//! A run's time has three parts. Outside kernels no work runs: `idle`. At boundaries no kernel work runs yet, or no
//! longer: `kernel_boundary`. The rest is divided among the remaining classes in proportion to their cycles, over all
//! slots with a warp. Empty slots next to them explain no difference: they are present for the same time as the busy
//! slots. Times are expressed in shares of the first design's time. The classes of a design then add up to its time
//! relative to the first design's time. Class differences likewise add up to the difference between the two times.
//!
//! A single table lists the counters that may explain each class, in two groups. *Measures* count the awaited events,
//! for example loads to a different GPU. *Causes* count the events that bring a wait about, for example lines
//! invalidated by a directory eviction. All counters are events; bytes are converted to lines. The measure for a
//! difference is the first that changed in the direction of the difference. The cause is the counter with the largest
//! change. The cause is reported if it accounts for most of the change in the measure. A counter is not reported if its
//! change has too few events to account for most of the class's cycles. Each event costs at most `CYCLES_OF_AN_EVENT`,
//! except in the classes `MACHINE_WIDE`, in which a single event may stall the whole machine.

use serde_json::Value;
use std::fmt;
use tombolo_report::{bytes, count};
use tombolo_system::stalls::{SMALLEST_SHOWN_SHARE, StallRecord};
use tombolo_system::{RunRecord, TimeChoice};

/// A class of time with a difference between two designs.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// Class name, spelled like in a record.
    pub class: &'static str,
    /// Share under the first design, relative to its own time: 0 to 1.
    pub from: f64,
    /// Share under the second design, relative to the first design's time; may exceed 1.
    pub to: f64,
    /// Counter behind the difference, or `None` if no candidate changed in this direction.
    pub counter: Option<CounterChange>,
}

impl Difference {
    /// Growth of the class; negative if it shrank.
    pub fn growth(&self) -> f64 {
        self.to - self.from
    }

    /// True if the difference is visible in percent with a single decimal.
    pub fn is_shown(&self) -> bool {
        self.growth().abs() >= SMALLEST_SHOWN_SHARE
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} -> {}", words(self.class), percent(self.from), percent(self.to))?;
        match &self.counter {
            Some(change) => write!(f, ": {change}"),
            None => Ok(()),
        }
    }
}

/// Returns a class name in words.
pub fn words(class: &str) -> String {
    class.replace('_', " ")
}

/// Formats a share for people.
pub fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// Values of a counter under two designs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CounterChange {
    /// Counter path in a record.
    pub path: &'static str,
    /// Value under the first design.
    pub from: u64,
    /// Value under the second design.
    pub to: u64,
}

impl CounterChange {
    /// Returns the change relative to the larger value.
    fn part(&self) -> f64 {
        self.from.abs_diff(self.to) as f64 / self.from.max(self.to).max(1) as f64
    }
}

impl fmt::Display for CounterChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = tombolo_metrics::find(self.path).expect("counters behind classes are in the table");
        let [from, to] = [self.from, self.to].map(|value| if known.unit == "B" { bytes(value) } else { count(value) });
        write!(f, "{} {from} -> {to}", known.name)
    }
}

/// Bytes counted as a single event. Source: assumed, the line size of most machines.
const BYTES_OF_AN_EVENT: f64 = 128.0;

/// Upper bound on the warp-slot cycles per event. Source: assumed, a load with a latency of 2,048 cycles for which all
/// 32 warps in a CTA wait.
const CYCLES_OF_AN_EVENT: f64 = 65_536.0;

/// Classes in which a single event may stall all warp slots: a boundary, a copy, or a page or block awaited by all.
const MACHINE_WIDE: [&str; 4] = ["kernel_boundary", "idle", "page", "host"];

/// A cause accounts for a class's measure if its change is at least this fraction of the measure's change. Source:
/// assumed, most of it.
const MOST: f64 = 0.5;

/// A measure counts as unchanged below this relative change. Source: assumed, a difference that a person would ignore.
const NOTICED: f64 = 0.01;

/// Candidate counters for the explanation of a class, in two groups.
struct ClassCounters {
    class: &'static str,
    causes: &'static [&'static str],
    /// Measures, from the closest to the class.
    measures: &'static [&'static str],
}

/// Lines removed from caches before their next use.
const LOST: &[&str] = &[
    "coherence.lines_invalidated_by_eviction",
    "coherence.lines_invalidated_by_store",
    "coherence.bulk_invalidations",
];

const CLASS_COUNTERS: [ClassCounters; 16] = [
    ClassCounters { class: "issue", causes: &[], measures: &["sm.failed_polls", "l1.hits", "warp_instructions"] },
    ClassCounters { class: "arithmetic", causes: &[], measures: &["warp_instructions"] },
    ClassCounters { class: "scratchpad", causes: &[], measures: &["sm.scratchpad_passes"] },
    ClassCounters { class: "l1", causes: &[], measures: &["l1.hits"] },
    ClassCounters {
        class: "own_l2",
        causes: &["sm.l1_invalidations", LOST[0], LOST[1]],
        measures: &["l2.hits", "dram.read_bytes", "l2.loads"],
    },
    ClassCounters { class: "module", causes: LOST, measures: &["l2.remote_loads"] },
    ClassCounters { class: "gpu", causes: LOST, measures: &["coherence.inter_gpu_loads", "inter_gpu_bytes"] },
    ClassCounters {
        class: "host",
        causes: &["blocks.evicted", "blocks.merged", "paging.evictions"],
        measures: &["blocks.fetched", "host_memory.read_bytes", "inter_gpu_bytes"],
    },
    ClassCounters { class: "tlb", causes: &["paging.shootdowns"], measures: &["sm.tlb_walks", "sm.tlb_misses"] },
    ClassCounters { class: "page", causes: &[], measures: &["paging.faults", "sm.page_waits"] },
    ClassCounters {
        class: "store_credit",
        causes: &[
            "coherence.directory_evictions_shared",
            "coherence.invalidations_by_eviction",
            "coherence.invalidations_by_store",
            "publication.published_lines",
        ],
        measures: &["inter_gpu_bytes", "dram.write_bytes", "coherence.writes"],
    },
    ClassCounters {
        class: "barrier",
        causes: &[LOST[0], LOST[1], LOST[2], "paging.faults"],
        measures: &["coherence.inter_gpu_loads", "inter_gpu_bytes", "dram.read_bytes"],
    },
    ClassCounters {
        class: "acquire",
        causes: &["coherence.bulk_invalidations"],
        measures: &["sm.failed_polls", "coherence.phases"],
    },
    ClassCounters {
        class: "release",
        causes: &["coherence.invalidations_by_store", "coherence.writebacks", "publication.drains.release"],
        measures: &["coherence.phases", "inter_gpu_bytes"],
    },
    ClassCounters {
        class: "kernel_boundary",
        causes: &[
            "elision.flushed_lines",
            "coherence.writebacks",
            "copies.bytes",
            "paging.prefetched_bytes",
            "coherence.bulk_invalidations",
            "publication.drains.release",
            "sm.l1_invalidations",
            "elision.flushes",
            "elision.invalidations",
            "elision.dropped_lines",
        ],
        measures: &[
            "coherence.phases",
            "elision.boundaries",
            "coherence.writes",
            "inter_gpu_bytes",
            "dram.write_bytes",
        ],
    },
    ClassCounters {
        class: "idle",
        causes: &["copies.bytes", "paging.faults", "paging.prefetched_bytes"],
        measures: &["copies.calls"],
    },
];

/// Returns a run's time by class, in shares of the time of `first`.
pub fn shares(run: &RunRecord, first: &RunRecord, time: TimeChoice) -> Vec<(&'static str, f64)> {
    let [whole, own] = [run.time.whole_s, run.time.of(time)].map(|time| time.max(f64::MIN_POSITIVE));
    let StallRecord { kernel_boundary, idle, warp_slot_cycles, .. } = run.stalls;
    let outside = ((own - run.time.kernels_s) / own).clamp(0.0, 1.0);
    let of_slots = warp_slot_cycles.max(1) as f64 * own / whole;
    let boundary = (kernel_boundary as f64 / of_slots).min(1.0 - outside);
    let held = warp_slot_cycles - kernel_boundary - idle;
    let rest = 1.0 - outside - boundary;
    let relative = own / first.time.of(time);
    let share = |(class, cycles)| {
        let share = match class {
            // If no slot held a warp, the run consisted of boundaries only.
            "kernel_boundary" if held == 0 => boundary + rest,
            "kernel_boundary" => boundary,
            "idle" => outside,
            _ => rest * cycles as f64 / held.max(1) as f64,
        };
        (class, share * relative)
    };
    run.stalls.named().into_iter().map(share).collect()
}

/// Returns the class differences between two designs over one or more workloads, largest first. Each pair holds two
/// runs of a workload, with the reference run first. Shares are averaged over workloads, and counters are summed.
pub fn differences(pairs: &[(&RunRecord, &RunRecord)], time: TimeChoice) -> Vec<Difference> {
    let value = |run: &RunRecord| serde_json::to_value(run).expect("its keys are strings");
    let values: [Vec<Value>; 2] =
        [pairs.iter().map(|(first, _)| value(first)).collect(), pairs.iter().map(|(_, other)| value(other)).collect()];
    let sides = pairs.iter().map(|(first, other)| [shares(first, first, time), shares(other, first, time)]);
    let sides: Vec<_> = sides.collect();
    let mean = |class: usize, side: usize| {
        sides.iter().map(|sides| sides[side][class].1).sum::<f64>() / pairs.len().max(1) as f64
    };
    let classes = CLASS_COUNTERS.iter().enumerate().map(|(at, behind)| (at, behind.class));
    let mut differences: Vec<Difference> = classes
        .map(|(at, class)| {
            let [from, to] = [0, 1].map(|side| mean(at, side));
            let cycles = pairs
                .iter()
                .map(|(first, other)| other.stalls.named()[at].1 as f64 - first.stalls.named()[at].1 as f64);
            Difference { class, from, to, counter: behind(class, to > from, cycles.sum::<f64>().abs(), &values) }
        })
        .collect();
    differences.sort_by(|one, another| another.growth().abs().total_cmp(&one.growth().abs()));
    differences
}

/// Returns the counter behind a class that grew or shrank by `cycles` warp-slot cycles.
fn behind(class: &str, grew: bool, cycles: f64, values: &[Vec<Value>; 2]) -> Option<CounterChange> {
    let behind = CLASS_COUNTERS.iter().find(|behind| behind.class == class)?;
    let can_explain = |(_, events): &(CounterChange, f64)| {
        MACHINE_WIDE.contains(&class) || events * CYCLES_OF_AN_EVENT >= MOST * cycles
    };
    let [causes, mut measures] = [behind.causes, behind.measures]
        .map(|paths| changes(paths, grew, values).filter(can_explain).collect::<Vec<_>>().into_iter());
    let cause = causes.reduce(|best, next| if next.1 > best.1 { next } else { best });
    let measure = measures.find(|(change, _)| change.part() >= NOTICED);
    match (cause, measure) {
        (Some((cause, by)), Some((_, measured))) if by >= MOST * measured => Some(cause),
        (Some((cause, _)), None) => Some(cause),
        (_, measure) => measure.map(|(change, _)| change),
    }
}

/// Returns the counters among `paths` that changed in the given direction, each with its number of events.
fn changes(
    paths: &'static [&'static str],
    grew: bool,
    values: &[Vec<Value>; 2],
) -> impl Iterator<Item = (CounterChange, f64)> {
    paths.iter().filter_map(move |path| {
        let sum = |values: &Vec<Value>| values.iter().map(|value| read(value, path)).sum::<u64>();
        let [from, to] = values.each_ref().map(sum);
        let growth = to as f64 - from as f64;
        let events = if path.ends_with("bytes") { BYTES_OF_AN_EVENT } else { 1.0 };
        let by = if grew { growth } else { -growth } / events;
        (by > 0.0).then_some((CounterChange { path, from, to }, by))
    })
}

/// Returns the counter at a path, or 0 if the record has none.
fn read(value: &Value, path: &str) -> u64 {
    let place = path.split('.').try_fold(value, |value, name| value.get(name));
    place.and_then(Value::as_u64).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_of_a_record_has_its_counters() {
        let classes: Vec<&str> = StallRecord::default().named().iter().map(|(class, _)| *class).collect();
        assert_eq!(CLASS_COUNTERS.iter().map(|behind| behind.class).collect::<Vec<_>>(), classes);
        for path in CLASS_COUNTERS.iter().flat_map(|behind| behind.causes.iter().chain(behind.measures)) {
            assert!(tombolo_metrics::find(path).is_some(), "{path}");
        }
    }

    #[test]
    fn a_cause_is_named_where_it_accounts_for_most() {
        let values = |evictions: u64, loads: u64| {
            let coherence = serde_json::json!({ "lines_invalidated_by_eviction": evictions, "inter_gpu_loads": loads });
            vec![serde_json::json!({ "coherence": coherence })]
        };
        let named =
            |evictions| behind("gpu", true, 1e6, &[values(0, 100), values(evictions, 300)]).map(|change| change.path);
        assert_eq!(named(150), Some("coherence.lines_invalidated_by_eviction"));
        assert_eq!(named(50), Some("coherence.inter_gpu_loads"));
        let fell = behind("gpu", false, 1e6, &[values(9, 300), values(0, 100)]);
        assert_eq!(fell, Some(CounterChange { path: "coherence.inter_gpu_loads", from: 300, to: 100 }));
        assert_eq!(behind("gpu", false, 1e6, &[values(0, 100), values(0, 100)]), None);
    }

    #[test]
    fn events_that_are_too_few_for_the_cycles_explain_nothing() {
        let hits = |hits: u64| vec![serde_json::json!({ "l1": { "hits": hits } })];
        let few = |cycles| behind("l1", true, cycles, &[hits(0), hits(16)]).map(|change| change.path);
        assert_eq!((few(2e6), few(3e6)), (Some("l1.hits"), None));
        let phases = |phases: u64| vec![serde_json::json!({ "coherence": { "phases": phases } })];
        let boundary = behind("kernel_boundary", true, 1e9, &[phases(4), phases(8)]);
        assert_eq!(boundary.map(|change| change.path), Some("coherence.phases"), "a phase holds the machine");
    }

    #[test]
    fn a_difference_is_told_with_its_counter() {
        let counter = Some(CounterChange { path: "coherence.directory_evictions", from: 0, to: 4_700_000 });
        let difference = Difference { class: "store_credit", from: 0.04, to: 0.18, counter };
        assert_eq!(difference.to_string(), "store credit 4.0 % -> 18.0 %: directory evictions 0 -> 4.70 M");
        let without = Difference { counter: None, ..difference };
        assert_eq!(without.to_string(), "store credit 4.0 % -> 18.0 %");
    }
}
