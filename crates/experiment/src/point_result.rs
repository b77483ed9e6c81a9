//! A point's result, with counters by path.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use tombolo_model::stats::{L2Stats, SmStats};
use tombolo_system::RunRecord;
use tombolo_system::arrays::ArraysRecord;
use tombolo_system::elision::ElisionRecord;
use tombolo_system::host::{BlocksRecord, PhasesRecord};
use tombolo_system::sharing::SharingRecord;
use tombolo_system::stalls::StallRecord;

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

/// A list in a record whose members depend on the machine.
struct MemberCounters {
    path: &'static str,
    /// Name patterns: the member's number appears between the two words.
    names: &'static [(&'static str, &'static str)],
    counters: &'static [&'static str],
}

const MEMBERS: [MemberCounters; 5] = [
    MemberCounters {
        path: "links.",
        names: &[("gpu", ".in"), ("gpu", ".out"), ("module", ".out")],
        counters: &["bytes", "data_bytes", "utilization", "busy_s", "lanes", "lanes_turned"],
    },
    MemberCounters { path: "gpus.", names: &[("gpu", "")], counters: &["busy_s", "transactions", "link_bytes"] },
    MemberCounters { path: "gpus.", names: &[("gpu", ".stalls")], counters: StallRecord::NAMES },
    MemberCounters {
        path: "modules.",
        names: &[("module", "")],
        counters: &[
            "transactions",
            "l1_loads",
            "l1_load_hits",
            "l2_loads",
            "l2_hits",
            "l2_remote_loads",
            "dram_read_bytes",
            "dram_write_bytes",
            "sent_bytes",
        ],
    },
    MemberCounters { path: "modules.", names: &[("module", ".stalls")], counters: StallRecord::NAMES },
];

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

impl MemberCounters {
    /// True if `path` is a counter of a member.
    fn has(&self, path: &str) -> bool {
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let named = |member: &str| {
            let inner = |(word, end): &(&str, &str)| member.strip_prefix(word)?.strip_suffix(end).map(is_number);
            self.names.iter().any(|name| inner(name) == Some(true))
        };
        let parts = path.strip_prefix(self.path).and_then(|member| member.rsplit_once('.'));
        parts.is_some_and(|(member, counter)| named(member) && self.counters.contains(&counter))
    }

    /// Returns every counter path, with N in place of a member's number.
    fn paths(&self) -> impl Iterator<Item = String> {
        let path = self.path;
        let names = self.names.iter().flat_map(|name| self.counters.iter().map(move |counter| (name, counter)));
        names.map(move |((word, end), counter)| format!("{path}{word}N{end}.{counter}"))
    }
}

/// Returns the pass for the counter `path`. The error lists all known paths; paths with links and GPUs have N in place
/// of a number.
pub(crate) fn pass_of(path: &str) -> Result<Pass, Vec<String>> {
    if MEMBERS.iter().any(|members| members.has(path)) {
        return Ok(Pass::Simulation);
    }
    let sharing = PointResult::Sharing(SharingRecord::default()).counters();
    let arrays = PointResult::Arrays(ArraysRecord::default()).counters();
    for (counters, pass) in [(&sharing, Pass::Sharing), (&arrays, Pass::Arrays)] {
        if counters.contains_key(path) {
            return Ok(pass);
        }
    }
    let run: Vec<String> = run_paths().into_iter().chain(subscribers(MOST_SUBSCRIBERS)).collect();
    if run.iter().any(|known| known == path) {
        return Ok(Pass::Simulation);
    }
    let of_members = MEMBERS.iter().flat_map(MemberCounters::paths);
    Err(run.into_iter().chain(sharing.into_keys()).chain(arrays.into_keys()).chain(of_members).collect())
}

/// Returns the paths of all numbers in a run's record.
fn run_paths() -> Vec<String> {
    let named = |names: Vec<(&'static str, u64)>| names.into_iter().map(|(name, _)| (name.to_owned(), 0)).collect();
    let record = RunRecord {
        tombolo: String::new(),
        machine: String::new(),
        design: String::new(),
        workload: String::new(),
        scale: String::new(),
        time_s: 0.0,
        time: Default::default(),
        cycles: 0,
        kernel_launches: 0,
        warp_instructions: 0,
        memory_instructions: 0,
        transactions: 0,
        l1: Default::default(),
        l2: Default::default(),
        links: Vec::new(),
        gpus: Vec::new(),
        modules: Vec::new(),
        utilization: Default::default(),
        inter_gpu_bytes: 0,
        dram: Default::default(),
        memory_cache: Default::default(),
        traffic_flits: Some(Default::default()),
        elision: Some(ElisionRecord {
            needed_flushes: Some(0),
            needed_invalidations: Some(0),
            elidable_flushes: Some(0),
            elidable_invalidations: Some(0),
            ..Default::default()
        }),
        iteration: Some(Default::default()),
        paging: Some(Default::default()),
        publication: Some(Default::default()),
        copies: Some(Default::default()),
        phases: Some(PhasesRecord { first_value_s: Some(0.0), last_value_s: Some(0.0), ..Default::default() }),
        host_memory: Some(Default::default()),
        blocks: Some(BlocksRecord::of_no_block()),
        coherence: named(L2Stats::default().named().collect()),
        stalls: Default::default(),
        latency: None,
        sampling: Some(Default::default()),
        sm: named(SmStats::default().named().collect()),
        ways: Default::default(),
        local_ways: Vec::new(),
        energy_pj: Default::default(),
        digest: String::new(),
        statistics_digest: String::new(),
        kernels: Vec::new(),
        check: None,
        notes: Vec::new(),
        host: Default::default(),
    };
    let counters = PointResult::Simulation(Box::new(record)).counters();
    counters.into_iter().filter(|(_, counter)| counter.number().is_some()).map(|(path, _)| path).collect()
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
