//! JSON schemas for machine and design files, for editors, generated from the reader's own keys.
//!
//! Constraints that a schema cannot express, for example between two values, are reported by `tombolo show` on the
//! file.

use serde_json::{Map, Value, json};
use tombolo_machine::record::SerializedValue;
use tombolo_machine::spelling::KIND;
use tombolo_machine::{DescriptionKind, Key, ValueForm};

/// Returns the schema for the files of a kind.
pub(crate) fn schema<T: DescriptionKind>() -> Value {
    let kind = T::KIND;
    let base = "A preset, or the path of a .toml file from this one's folder, that this file builds on.";
    let mut properties = Map::from_iter([("base".to_owned(), json!({ "type": "string", "description": base }))]);
    let (mut required, mut inner, mut together) = (Vec::new(), Map::new(), Map::new());
    for (section, keys) in T::sections() {
        // Without an explicit name, a file is named by its preset or its path.
        let needed: Vec<&str> =
            keys.iter().filter(|key| (key.default)().is_none() && key.name != "name").map(|key| key.name).collect();
        let of_keys = keys.iter().map(|key| (key.name.to_owned(), of_key(key)));
        if section.is_empty() {
            properties.extend(of_keys);
            required.extend(needed);
        } else {
            let table = object(&of_keys.collect());
            let of_axis = |kind: &Key| json!({ "anyOf": [of_key(kind), table.clone()] });
            let kind = keys.iter().find(|key| key.name == KIND && T::axes().iter().any(|axis| axis.name == section));
            properties.insert(section.to_owned(), kind.map_or_else(|| table.clone(), of_axis));
            let optional = T::optional_sections().iter().find(|optional| optional.name == section);
            together.extend(optional.map(|optional| (section.to_owned(), json!(optional.needs))));
            if !needed.is_empty() {
                required.extend(optional.is_none().then_some(section));
                inner.insert(section.to_owned(), json!({ "required": needed }));
            }
        }
    }
    for (earlier, today) in T::aliases() {
        let note = format!("An earlier name of {today}.");
        properties.insert((*earlier).to_owned(), json!({ "description": note, "deprecated": true }));
    }
    let Value::Object(mut schema) = object(&properties) else { unreachable!("it is made as an object") };
    schema.extend([
        ("$schema".to_owned(), json!("https://json-schema.org/draft/2020-12/schema")),
        ("title".to_owned(), json!(format!("A {kind} of Tombolo"))),
        ("if".to_owned(), json!({ "not": { "required": ["base"] } })),
        ("then".to_owned(), json!({ "required": required, "properties": inner, "dependentRequired": together })),
    ]);
    Value::Object(schema)
}

/// Returns an object schema with exactly these keys.
fn object(properties: &Map<String, Value>) -> Value {
    json!({ "type": "object", "properties": properties, "additionalProperties": false })
}

fn of_key(key: &Key) -> Value {
    let Value::Object(mut schema) = of_form(key.form) else { unreachable!("it is made as an object") };
    schema.insert("description".to_owned(), json!(format!("{} Takes {}.", key.doc, key.expected)));
    if let Some(default) = (key.default)() {
        schema.insert("default".to_owned(), serde_json::to_value(SerializedValue(default)).expect("a plain value"));
    }
    Value::Object(schema)
}

fn of_form(form: ValueForm) -> Value {
    match form {
        ValueForm::Any => json!({}),
        ValueForm::Text => json!({ "type": "string", "minLength": 1 }),
        ValueForm::Flag => json!({ "type": "boolean" }),
        ValueForm::Count(most) => json!({ "type": "integer", "minimum": 1, "maximum": most }),
        ValueForm::Words(words) => json!({ "enum": words }),
        ValueForm::Fraction => number_or(r"^[0-9]+(\.[0-9]*)?( */ *[0-9]+(\.[0-9]*)?)?$"),
        ValueForm::Measure { units, cycles, words, .. } => {
            let names: Vec<&str> = units.iter().map(|(name, _)| *name).chain(cycles.iter().copied()).collect();
            let words: String = words.iter().map(|word| format!("|{word}")).collect();
            let pattern = format!(r"^([0-9]+(\.[0-9]*)? *({}){words})$", names.join("|"));
            if names.contains(&"") { number_or(&pattern) } else { json!({ "type": "string", "pattern": pattern }) }
        }
    }
}

/// Returns a schema for a number from zero, or for text with the given pattern.
fn number_or(pattern: &str) -> Value {
    json!({ "anyOf": [{ "type": "number", "minimum": 0 }, { "type": "string", "pattern": pattern }] })
}
