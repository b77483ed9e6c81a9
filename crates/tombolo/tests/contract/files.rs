//! Keys in TOML files, each with its accepted values, and words of trace tables.

use crate::Section;
use serde_json::Value;
use std::collections::BTreeSet;
use tombolo_design::DesignConfig;
use tombolo_machine::{DescriptionKind, Key, MachineConfig, ValueForm};

/// Schemas of experiment files, by kind of file.
const SCHEMAS: [(&str, &str); 2] = [
    ("experiment", include_str!("../../../experiment/schema/experiment.json")),
    ("suite", include_str!("../../../experiment/schema/suite.json")),
];

/// Returns a section per kind of file.
pub(crate) fn sections() -> Vec<Section> {
    let described = [described::<MachineConfig>(), described::<DesignConfig>()];
    let schemas = SCHEMAS.map(|(kind, text)| {
        let schema: Value = serde_json::from_str(text).expect("a schema is JSON");
        let mut lines = BTreeSet::new();
        walk(&schema, &schema, "", &mut lines);
        (heading(kind), lines)
    });
    let (columns, operations) = tombolo_workload::trace::table_spellings();
    let listed = |words: Vec<&str>| words.into_iter().map(str::to_owned).collect();
    let tables = [("columns of trace tables", columns), ("operations of trace tables", operations)];
    let tables = tables.map(|(heading, words)| (heading.to_owned(), listed(words)));
    described.into_iter().chain(schemas).chain(tables).collect()
}

fn heading(kind: &str) -> String {
    format!("keys of {kind} files")
}

/// Returns the keys of a machine or a design; a key on an axis is listed with each option that reads the key.
fn described<T: DescriptionKind>() -> Section {
    let mut lines = BTreeSet::from(["base: a preset, or the path of a file".to_owned()]);
    let axes = T::axes();
    for (section, keys) in T::sections() {
        let axis = axes.iter().find(|axis| axis.name == section);
        let Some(axis) = axis else {
            lines.extend(keys.iter().map(|key| format!("{}: {}", key.path(section), form(key))));
            continue;
        };
        for option in &axis.options {
            lines.insert(format!("{section} = {:?}", option.word));
            let read = keys.iter().filter(|key| option.keys.contains(&key.name));
            lines
                .extend(read.map(|key| format!("{section} = {:?}, {}: {}", option.word, key.path(section), form(key))));
        }
    }
    lines.extend(T::aliases().iter().map(|(earlier, today)| format!("{earlier}: as {today}")));
    (heading(T::KIND), lines)
}

/// Formats the values of a key in a line.
fn form(key: &Key) -> String {
    match key.form {
        ValueForm::Any | ValueForm::Text | ValueForm::Count(_) | ValueForm::Fraction => key.expected.to_owned(),
        ValueForm::Flag => "true, false".to_owned(),
        ValueForm::Words(words) => quoted(words.iter().copied()),
        ValueForm::Measure { units, cycles, words, .. } => {
            let units = units.iter().map(|(unit, _)| *unit).chain(cycles.iter().copied());
            let words =
                if words.is_empty() { String::new() } else { format!(", or {}", quoted(words.iter().copied())) };
            format!("a number in {}{words}", quoted(units))
        }
    }
}

fn quoted<'a>(words: impl Iterator<Item = &'a str>) -> String {
    words.map(|word| format!("{word:?}")).collect::<Vec<_>>().join(", ")
}

/// Adds a line for each key in `schema`, a part of `whole`.
fn walk(whole: &Value, schema: &Value, path: &str, lines: &mut BTreeSet<String>) {
    let schema = resolved(whole, schema);
    let parts = ["anyOf", "oneOf", "allOf"].iter().filter_map(|of| schema[*of].as_array()).flatten();
    parts.for_each(|part| walk(whole, part, path, lines));
    if schema["items"].is_object() {
        walk(whole, &schema["items"], &format!("{path}[]"), lines);
    }
    for (key, value) in schema["properties"].as_object().into_iter().flatten() {
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        lines.insert(format!("{path}: {}", kinds(whole, value).into_iter().collect::<Vec<_>>().join(", ")));
        walk(whole, value, &path, lines);
    }
}

/// Returns the types allowed by a schema, and its possible words in quotes.
fn kinds(whole: &Value, schema: &Value) -> BTreeSet<String> {
    let schema = resolved(whole, schema);
    let parts = ["anyOf", "oneOf", "allOf"].iter().filter_map(|of| schema[*of].as_array()).flatten();
    let mut kinds: BTreeSet<String> = parts.flat_map(|part| kinds(whole, part)).collect();
    let words = schema["enum"].as_array().into_iter().flatten().chain(schema.get("const"));
    let words: Vec<String> = words.map(Value::to_string).collect();
    if words.is_empty() {
        let types = schema["type"].as_array().cloned().unwrap_or_else(|| vec![schema["type"].clone()]);
        kinds.extend(types.iter().filter_map(Value::as_str).map(str::to_owned));
    }
    kinds.extend(words);
    kinds
}

/// Returns the schema behind a reference.
fn resolved<'a>(whole: &'a Value, schema: &'a Value) -> &'a Value {
    let pointer = schema["$ref"].as_str().and_then(|reference| reference.strip_prefix('#'));
    pointer.map_or(schema, |pointer| whole.pointer(pointer).expect("a definition of the schema"))
}
