//! A point's result, with counters by path.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use tombolo_system::RunRecord;
use tombolo_system::arrays::ArraysRecord;
use tombolo_system::sharing::SharingRecord;

/// Kind of work done for a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Pass {
    /// Simulates the point.
    #[serde(rename = "simulation")]
    Simulation,
    /// Counts shared lines in the streams.
    #[serde(rename = "sharing")]
    Sharing,
    /// Counts array lines in the streams.
    #[serde(rename = "arrays")]
    Arrays,
}

impl Pass {
    /// Returns the pass name used in files.
    pub fn word(self) -> &'static str {
        match self {
            Pass::Simulation => "simulation",
            Pass::Sharing => "sharing",
            Pass::Arrays => "arrays",
        }
    }
}

/// Result of a point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum PointResult {
    /// Result of a simulation.
    #[serde(rename = "simulation")]
    Simulation(Box<RunRecord>),
    /// Result of the sharing pass.
    #[serde(rename = "sharing")]
    Sharing(SharingRecord),
    /// Result of the array pass.
    #[serde(rename = "arrays")]
    Arrays(ArraysRecord),
}

/// A counter, or a word, for example a digest.
#[derive(Clone, Debug, PartialEq)]
pub enum Counter {
    /// A count.
    Whole(u64),
    /// A measured value.
    Real(f64),
    /// A word.
    Word(String),
}

impl Counter {
    /// Returns the numeric value, or `None` for a word.
    pub fn number(&self) -> Option<f64> {
        match self {
            Counter::Whole(count) => Some(*count as f64),
            Counter::Real(value) => Some(*value),
            Counter::Word(_) => None,
        }
    }
}

/// Path prefix for values computed from the machine alone.
pub(crate) const HARDWARE: &str = "hardware.";

/// Lists in a record whose members depend on the machine: path, and name patterns. The member's number appears between
/// the two words.
type MemberPatterns = (&'static str, &'static [(&'static str, &'static str)]);

const MEMBERS: [MemberPatterns; 3] = [
    ("links.", &[("gpu", ".in"), ("gpu", ".out"), ("module", ".out")]),
    ("gpus.", &[("gpu", "")]),
    ("modules.", &[("module", "")]),
];

/// Records of a run that a sweep's point lacks: data on the host, and load latencies.
const NOT_IN_POINTS: [&str; 2] = ["host.", "latency."];

/// Record fields that are not counters: host data, notes for people, or histories.
const NO_COUNTERS: [&str; 4] = ["host", "notes", "check", "local_ways"];

/// Path prefix for pages by number of subscribing GPUs; the number follows.
const SUBSCRIBERS: &str = "publication.subscribers.";
/// Maximum number of GPUs in a paper's machine. Source: GPS, section 7.3.
const MOST_SUBSCRIBERS: usize = 16;

/// Returns the paths for page counts by number of subscribers, on `gpus` GPUs.
fn subscribers(gpus: usize) -> impl Iterator<Item = String> {
    (1..=gpus).map(|count| format!("{SUBSCRIBERS}{count}"))
}

impl PointResult {
    /// Returns every host-independent counter by path, for example `l2.hits` or `links.gpu0.out.bytes`.
    pub fn counters(&self) -> BTreeMap<String, Counter> {
        let mut counters = BTreeMap::new();
        match self {
            PointResult::Simulation(record) => {
                let value = serde_json::to_value(record).expect("its keys are strings");
                let fields = value.as_object().expect("a record is an object");
                let simulated = fields.iter().filter(|(name, _)| !NO_COUNTERS.contains(&name.as_str()));
                simulated.for_each(|(name, value)| flatten(name, value, &mut counters));
                // A record holds nonzero counts only; absent paths are added with zero.
                if record.publication.is_some() {
                    let absent = |path| _ = counters.entry(path).or_insert(Counter::Whole(0));
                    subscribers(record.gpus.len()).for_each(absent);
                }
            }
            PointResult::Sharing(record) => {
                flatten("sharing", &serde_json::to_value(record).expect("its keys are strings"), &mut counters);
            }
            PointResult::Arrays(record) => {
                flatten("arrays", &serde_json::to_value(record).expect("its keys are strings"), &mut counters);
            }
        }
        counters
    }

    /// Returns the notes of a simulated run.
    pub fn notes(&self) -> &[String] {
        match self {
            PointResult::Simulation(record) => &record.notes,
            PointResult::Sharing(_) | PointResult::Arrays(_) => &[],
        }
    }
}

/// Returns the numbers and words in a record by path, for example `stalls.issue`.
pub(crate) fn fields(record: &impl Serialize) -> BTreeMap<String, Counter> {
    let mut counters = BTreeMap::new();
    let value = serde_json::to_value(record).expect("its keys are strings");
    let members = value.as_object().expect("a record is an object");
    members.iter().for_each(|(name, value)| flatten(name, value, &mut counters));
    counters
}

fn flatten(path: &str, value: &Value, into: &mut BTreeMap<String, Counter>) {
    let below = |fields: &Map<String, Value>, into: &mut BTreeMap<String, Counter>| {
        fields.iter().for_each(|(name, value)| flatten(&format!("{path}.{name}"), value, into));
    };
    match value {
        Value::Object(fields) => below(fields, into),
        Value::Array(list) => list.iter().filter_map(Value::as_object).for_each(|fields| {
            let name = fields.get("name").and_then(Value::as_str).unwrap_or_default();
            let rest = fields.iter().filter(|(key, _)| *key != "name");
            rest.for_each(|(key, value)| flatten(&format!("{path}.{name}.{key}"), value, into));
        }),
        Value::Number(number) => {
            let real = || Counter::Real(number.as_f64().unwrap_or(f64::NAN));
            into.insert(path.to_owned(), number.as_u64().map_or_else(real, Counter::Whole));
        }
        Value::String(word) => _ = into.insert(path.to_owned(), Counter::Word(word.clone())),
        Value::Bool(_) | Value::Null => {}
    }
}

/// Metrics in a point's record. Queues are not included: they need load latencies.
fn metrics() -> impl Iterator<Item = &'static str> {
    let paths = tombolo_metrics::table().iter().map(|metric| metric.path.as_str());
    paths.filter(|path| !path.contains(".queued.") && !NOT_IN_POINTS.iter().any(|record| path.starts_with(record)))
}

/// Counters of the members in the list at `path`, for example `stalls.issue`.
fn member_counters(path: &str) -> impl Iterator<Item = &'static str> {
    metrics().filter_map(move |metric| metric.strip_prefix(path)?.strip_prefix("*."))
}

/// True if `path` is a counter of a list's member.
fn is_member_counter(path: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    MEMBERS.iter().any(|(list, names)| {
        let Some(member) = path.strip_prefix(list) else { return false };
        let name = |counter| member.strip_suffix(counter)?.strip_suffix('.');
        let is_named = |member: &str| {
            let number = |(word, end): &(&str, &str)| member.strip_prefix(word)?.strip_suffix(end).map(is_number);
            names.iter().any(|name| number(name) == Some(true))
        };
        member_counters(list).filter_map(name).any(is_named)
    })
}

/// Returns every counter path of the lists' members, with N in place of a member's number.
fn member_paths() -> impl Iterator<Item = String> {
    MEMBERS.iter().flat_map(|(list, names)| {
        let named = names.iter().flat_map(|name| member_counters(list).map(move |counter| (name, counter)));
        named.map(move |((word, end), counter)| format!("{list}{word}N{end}.{counter}"))
    })
}

/// Returns the pass for the counter `path`. The error lists all known paths; paths with links and GPUs have N in place
/// of a number.
pub(crate) fn pass_of(path: &str) -> Result<Pass, Vec<String>> {
    if is_member_counter(path) {
        return Ok(Pass::Simulation);
    }
    let sharing = PointResult::Sharing(SharingRecord::default()).counters();
    let arrays = PointResult::Arrays(ArraysRecord::default()).counters();
    for (counters, pass) in [(&sharing, Pass::Sharing), (&arrays, Pass::Arrays)] {
        if counters.contains_key(path) {
            return Ok(pass);
        }
    }
    let run: BTreeSet<String> = metrics().filter(|path| !path.contains('*')).map(str::to_owned).collect();
    let run: Vec<String> = run.into_iter().chain(subscribers(MOST_SUBSCRIBERS)).collect();
    if run.iter().any(|known| known == path) {
        return Ok(Pass::Simulation);
    }
    Err(run.into_iter().chain(sharing.into_keys()).chain(arrays.into_keys()).chain(member_paths()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_counter_has_a_path_and_belongs_to_a_pass() {
        assert_eq!(pass_of("time_s"), Ok(Pass::Simulation));
        assert_eq!(pass_of("coherence.stores_on_shared"), Ok(Pass::Simulation));
        assert_eq!(pass_of("links.gpu0.out.bytes"), Ok(Pass::Simulation));
        assert_eq!(pass_of("links.module12.out.utilization"), Ok(Pass::Simulation));
        assert_eq!(pass_of("gpus.gpu3.busy_s"), Ok(Pass::Simulation));
        assert_eq!(pass_of("time.region_s"), Ok(Pass::Simulation));
        assert_eq!(pass_of("stalls.store_credit"), Ok(Pass::Simulation));
        assert_eq!(pass_of("gpus.gpu0.stalls.idle"), Ok(Pass::Simulation));
        assert!(pass_of("gpus.gpu0.in.link_bytes").is_err_and(|known| known.contains(&"gpus.gpuN.busy_s".to_owned())));
        for wrong in ["links.gpu0.out.byte", "links.gpu.out.bytes", "links.gpu0.up.bytes", "links.module1.in.bytes"] {
            assert!(pass_of(wrong).is_err_and(|known| known.contains(&"links.gpuN.out.bytes".to_owned())), "{wrong}");
        }
        assert_eq!(pass_of("publication.subscribers.4"), Ok(Pass::Simulation));
        assert_eq!(pass_of("sharing.inter_gpu_loads"), Ok(Pass::Sharing));
        assert_eq!(pass_of("arrays.read_only_bytes"), Ok(Pass::Arrays));
        let known = pass_of("l2.hit").unwrap_err();
        assert!(known.contains(&"l2.hits".to_owned()));
        assert!(!known.contains(&"digest".to_owned()), "a word is no counter");
    }
}
