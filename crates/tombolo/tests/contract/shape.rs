//! Shape of JSON documents: all paths, each with the value types seen.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Maps with data as keys, identified by the map's path below the document's head.
const MAPS: [&str; 13] = [
    "benchmarks",
    "blocks.states",
    "designs[].tests[].outcomes[]",
    "geometric_mean_errors",
    "geometric_means",
    "link_bytes",
    "outcomes[].values",
    "publication.subscribers",
    "speedup_errors",
    "speedup_errors.{}",
    "speedups",
    "speedups.{}",
    "timed[].reached",
];

/// Keys whose values are words from a fixed list, independent of the run.
const WORDS: [&str; 6] = ["event", "expected", "kind", "quantity", "start", "verdict"];

/// Paths with their types; for words, the observed words.
#[derive(Default)]
pub(crate) struct Shape(BTreeMap<String, BTreeSet<String>>);

impl Shape {
    /// Adds the paths and types in a document.
    pub(crate) fn add(&mut self, value: &Value) {
        self.add_at(value, "");
    }

    fn add_at(&mut self, value: &Value, path: &str) {
        let kind = match value {
            Value::Null => "null".to_owned(),
            Value::Bool(_) => "boolean".to_owned(),
            Value::Number(number) if number.is_f64() => "number".to_owned(),
            Value::Number(_) => "integer".to_owned(),
            Value::String(word) if is_word(path) => format!("{word:?}"),
            Value::String(_) => "string".to_owned(),
            Value::Array(entries) => {
                entries.iter().for_each(|entry| self.add_at(entry, &format!("{path}[]")));
                "array".to_owned()
            }
            Value::Object(fields) => {
                for (key, value) in fields {
                    let key = if is_map(path) { "{}" } else { key };
                    let below = if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
                    self.add_at(value, &below);
                }
                "object".to_owned()
            }
        };
        self.0.entry(path.to_owned()).or_default().insert(kind);
    }

    /// Formats a line per path; lists and tables that are never empty are represented by their entries.
    pub(crate) fn lines(&self) -> BTreeSet<String> {
        let holds = |path: &str| {
            let below = |mark: &str| {
                let start = format!("{path}{mark}");
                self.0.range(start.clone()..).next().is_some_and(|(found, _)| found.starts_with(&start))
            };
            path.is_empty() || below(".") || below("[]")
        };
        let line = |(path, kinds): (&String, &BTreeSet<String>)| {
            let plain = |kind: &&String| !holds(path) || !["array", "object"].contains(&&***kind);
            let kinds: Vec<&str> = kinds.iter().filter(plain).map(String::as_str).collect();
            (!kinds.is_empty() && !path.is_empty()).then(|| format!("{path}: {}", kinds.join(", ")))
        };
        self.0.iter().filter_map(line).collect()
    }
}

/// True if the keys of the map at `path` are data.
fn is_map(path: &str) -> bool {
    MAPS.iter().any(|map| path == *map || path.ends_with(&format!(".{map}")))
}

fn is_word(path: &str) -> bool {
    WORDS.contains(&path.rsplit('.').next().unwrap_or(path))
}
