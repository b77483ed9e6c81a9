//! The table of metrics, composed from the declarations: label, unit and description for axes, column headers and
//! tooltips.

use crate::run::RunRecord;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Text about a counter in a run's record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metric {
    /// Path in the record, for example `l2.hits`; `*` represents each member in a list.
    pub path: String,
    /// Name for people, for example `L2 hits`.
    pub name: String,
    /// Unit; empty for a plain count.
    pub unit: &'static str,
    /// Meaning of the counter, in a single sentence for tooltips.
    pub about: String,
}

impl Metric {
    /// Name with its unit, for an axis or a column header: `simulated time (s)`.
    pub fn label(&self) -> String {
        if self.unit.is_empty() { self.name.clone() } else { format!("{} ({})", self.name, self.unit) }
    }
}

/// Record type with metrics.
pub(crate) trait Metrics {
    /// Appends each metric, in the order of the fields.
    fn append(at: &Prefix, table: &mut Vec<Metric>);
}

/// Value that components add up to.
pub(crate) trait Sum {
    /// Adds another value.
    fn add(&mut self, other: &Self);
}

impl Sum for u64 {
    fn add(&mut self, other: &u64) {
        *self += other;
    }
}

impl<T: Sum + Clone> Sum for Option<T> {
    fn add(&mut self, other: &Option<T>) {
        match (self, other) {
            (Some(sum), Some(other)) => sum.add(other),
            (sum @ None, other) => sum.clone_from(other),
            (Some(_), None) => {}
        }
    }
}

impl<T: Metrics> Metrics for Option<T> {
    fn append(at: &Prefix, table: &mut Vec<Metric>) {
        T::append(at, table);
    }
}

impl<T: Metrics> Metrics for Vec<T> {
    fn append(at: &Prefix, table: &mut Vec<Metric>) {
        T::append(&at.members(), table);
    }
}

/// Counts by key. The words list the metrics: key, label, unit and description for each.
impl Metrics for BTreeMap<String, u64> {
    fn append(at: &Prefix, table: &mut Vec<Metric>) {
        let (metrics, _) = at.words.as_chunks::<4>();
        table.extend(metrics.iter().map(|[key, texts @ ..]| at.metric(key, *texts)));
    }
}

/// Path of a record inside the run's record, with the words for the texts in its metrics.
pub(crate) struct Prefix {
    path: String,
    pub(crate) words: Vec<&'static str>,
}

impl Prefix {
    /// Prefix for a record at `path`, without words.
    pub(crate) fn at(path: &str) -> Prefix {
        Prefix { path: path.to_owned(), words: Vec::new() }
    }

    /// Path of a field.
    pub(crate) fn join(&self, field: &str) -> String {
        if self.path.is_empty() { field.to_owned() } else { format!("{}.{field}", self.path) }
    }

    /// Prefix for a record in a field. A word `{0}` stands for the first word of this prefix, and so on.
    pub(crate) fn below(&self, field: &str, words: &[&'static str]) -> Prefix {
        let position = |word: &str| word.strip_prefix('{')?.strip_suffix('}')?.parse::<usize>().ok();
        let words = words.iter().map(|word| position(word).map_or(*word, |position| self.words[position]));
        Prefix { path: self.join(field), words: words.collect() }
    }

    /// Prefix for the members of a list.
    fn members(&self) -> Prefix {
        Prefix { path: self.join("*"), words: self.words.clone() }
    }

    /// Metric in a field, from its label, unit and description.
    pub(crate) fn metric(&self, field: &str, [name, unit, about]: [&'static str; 3]) -> Metric {
        Metric { path: self.join(field), name: self.filled(name), unit, about: self.filled(about) }
    }

    fn filled(&self, text: &str) -> String {
        let words = self.words.iter().enumerate();
        words.fold(text.to_owned(), |text, (position, word)| text.replace(&format!("{{{position}}}"), word))
    }
}

/// Order of the table. Each path ranks the metrics in it; of several paths, the longest decides.
const ORDER: &[&str] = &[
    "time_s",
    "time",
    "cycles",
    "kernel_launches",
    "warp_instructions",
    "memory_instructions",
    "transactions",
    "inter_gpu_bytes",
    "l1",
    "l2",
    "links",
    "gpus",
    "modules",
    "dram",
    "utilization",
    "memory_cache",
    "sampling",
    "elision",
    "phases",
    "host_memory",
    "blocks",
    "paging",
    "iteration",
    "publication",
    "publication.collapses",
    "copies",
    "traffic_flits",
    "coherence",
    "ways",
    "stalls",
    "gpus.*.stalls",
    "modules.*.stalls",
    "gpus.*.stalls.queued",
    "modules.*.stalls.queued",
    "latency",
    "sm",
    "energy_pj",
    "host",
];

fn rank(path: &str) -> Option<usize> {
    let contains =
        |prefix: &&str| path.strip_prefix(*prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    (0..ORDER.len()).filter(|at| contains(&ORDER[*at])).max_by_key(|at| ORDER[*at].len())
}

static TABLE: LazyLock<Vec<Metric>> = LazyLock::new(|| {
    let mut table = Vec::new();
    RunRecord::append(&Prefix::at(""), &mut table);
    table.sort_by_key(|metric| rank(&metric.path).unwrap_or(ORDER.len()));
    table
});

/// Metrics for every number in a run's record.
pub fn table() -> &'static [Metric] {
    &TABLE
}

/// Returns the metric at `path`; list members are given by index or by `*`.
pub fn find(path: &str) -> Option<&'static Metric> {
    table().iter().find(|metric| matches(&metric.path, path))
}

fn matches(pattern: &str, path: &str) -> bool {
    let mut parts = path.split('.');
    let same = |part: &str| {
        parts
            .next()
            .is_some_and(|given| given == part || part == "*" && given.bytes().all(|byte| byte.is_ascii_digit()))
    };
    pattern.split('.').all(same) && parts.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_of_lists_are_found_by_index() {
        assert_eq!(find("links.12.bytes").map(|metric| metric.name.as_str()), Some("link traffic"));
        assert_eq!(find("links.*.bytes").map(|metric| metric.name.as_str()), Some("link traffic"));
        for path in ["links.bytes", "links.x.bytes", "links.1.bytes.more", "links.1", ""] {
            assert_eq!(find(path), None, "{path}");
        }
    }

    #[test]
    fn a_label_carries_the_unit_where_there_is_one() {
        let label = |path| find(path).expect("in the table").label();
        assert_eq!((label("time_s").as_str(), label("l2.hits").as_str()), ("simulated time (s)", "L2 hits"));
    }

    #[test]
    fn every_metric_is_declared_once_in_a_sentence() {
        for (index, metric) in table().iter().enumerate() {
            assert!(table()[..index].iter().all(|other| other.path != metric.path), "{} twice", metric.path);
            assert!(metric.about.ends_with('.') && !metric.name.is_empty(), "{}", metric.path);
            assert!(!metric.about.contains('{') && !metric.name.contains('{'), "{} lacks a word", metric.path);
        }
    }

    #[test]
    fn the_order_of_the_table_names_each_metric() {
        assert_eq!(table().iter().find(|metric| rank(&metric.path).is_none()), None);
    }
}
