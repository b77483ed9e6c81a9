//! `show schema`: every shipped file matches its schema, and files refused by the reader do not.

use crate::json;
use regex::Regex;
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Returns the reasons why `value` does not match `schema`; empty for a match. Supports the part of the schema language
/// used by our schemas.
fn faults(schema: &Value, value: &Value, at: &str) -> Vec<String> {
    let mut faults = Vec::new();
    for (word, said) in schema.as_object().expect("a schema is an object") {
        let number = || said.as_f64().expect("a number");
        let list = || said.as_array().expect("a list");
        let holds = match word.as_str() {
            "$schema" | "title" | "description" | "default" | "deprecated" | "then" | "additionalProperties" => true,
            "type" => match said.as_str().expect("a word") {
                "object" => value.is_object(),
                "string" => value.is_string(),
                "boolean" => value.is_boolean(),
                "integer" => value.is_u64() || value.is_i64(),
                "number" => value.is_number(),
                other => panic!("type {other}"),
            },
            "enum" => list().contains(value),
            "minLength" => value.as_str().is_none_or(|text| text.len() as f64 >= number()),
            "minimum" => value.as_f64().is_none_or(|value| value >= number()),
            "maximum" => value.as_f64().is_none_or(|value| value <= number()),
            "pattern" => {
                let pattern = Regex::new(said.as_str().expect("text")).expect("a pattern");
                value.as_str().is_none_or(|text| pattern.is_match(text))
            }
            "anyOf" => list().iter().any(|one| self::faults(one, value, at).is_empty()),
            "not" => !self::faults(said, value, at).is_empty(),
            "required" => {
                !value.is_object() || list().iter().all(|key| value.get(key.as_str().expect("a key")).is_some())
            }
            "dependentRequired" => {
                let needed = said.as_object().into_iter().flatten().filter(|(key, _)| value.get(key).is_some());
                let mut needed = needed.flat_map(|(_, keys)| keys.as_array().expect("a list"));
                needed.all(|key| value.get(key.as_str().expect("a key")).is_some())
            }
            "if" => {
                let then = if self::faults(said, value, at).is_empty() { &schema["then"] } else { &Value::Bool(true) };
                if then.is_object() {
                    faults.extend(self::faults(then, value, at));
                }
                true
            }
            "properties" => {
                for (key, value) in value.as_object().into_iter().flatten() {
                    match said.get(key) {
                        Some(schema) => faults.extend(self::faults(schema, value, &format!("{at}.{key}"))),
                        None if schema["additionalProperties"] == false => faults.push(format!("{at}.{key} is no key")),
                        None => {}
                    }
                }
                true
            }
            other => panic!("no test knows what {other} says"),
        };
        if !holds {
            faults.push(format!("{at} = {value}: {word} {said}"));
        }
    }
    faults
}

fn of_text(kind: &str, text: &str) -> Vec<String> {
    let value: Value = toml::from_str(text).expect("TOML");
    faults(&json(&["show", "schema", kind]), &value, "")
}

#[test]
fn every_file_that_ships_is_what_its_schema_says() {
    for kind in ["machine", "design"] {
        let schema = json(&["show", "schema", kind]);
        let listed = json(&["list", &format!("{kind}s"), "--json"]);
        for name in listed.as_array().expect("a list").iter().filter_map(|one| one["name"].as_str()) {
            let found = json(&["show", kind, name, "--json"]);
            let files = found["values"].as_array().expect("a list").iter().filter_map(|one| one["from"].as_str());
            let file = files.filter_map(|from| from.strip_prefix("preset ")?.rsplit_once(':')).map(|(file, _)| file);
            for file in file.collect::<std::collections::BTreeSet<_>>() {
                let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
                let path = match file.strip_prefix("designs/") {
                    Some(design) => folder.join("design/presets").join(design),
                    None => folder.join("machine/presets").join(file),
                };
                let value: Value = toml::from_str(&fs::read_to_string(path).expect("it ships")).expect("TOML");
                assert_eq!(faults(&schema, &value, ""), Vec::<String>::new(), "{file}");
            }
        }
    }
}

#[test]
fn values_in_any_unit_are_what_the_schema_says() {
    let text = "base = \"hmg-4x4\"\npage_bytes = 4096\n[l2]\nbytes = \"1.5 MB\"\nrate = \"64B/cycle\"\nrequest_cycles = 0.5\n\
                [gpu_link]\nrate = \"infinite\"\nlatency = \"12.5 cycles\"\n[sm]\nclock = \"1380MHz\"\nfp32_cycles = \"1/2\"\n";
    assert_eq!(of_text("machine", text), Vec::<String>::new());
}

#[test]
fn sections_of_a_host_come_together_in_a_file_that_builds_on_none() {
    let whole = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../machine/presets/machines/hmg-4x4.toml"));
    let whole = whole.expect("it ships");
    assert_eq!(of_text("machine", &whole), Vec::<String>::new());
    let of_cpu = "[cpu]\nclock = \"3GHz\"\nissue_cycles = 1\n";
    let faults = of_text("machine", &format!("{whole}{of_cpu}"));
    assert!(faults.len() == 1 && faults[0].contains("dependentRequired"), "{faults:?}");
    assert_eq!(
        of_text("machine", &format!("base = \"hmg-4x4\"\n{of_cpu}")),
        Vec::<String>::new(),
        "a base may have it"
    );
}

#[test]
fn what_the_reader_refuses_is_not_what_the_schema_says() {
    for (kind, text) in [
        ("machine", "base = \"hmg-4x4\"\n[l2]\nbites = 3\n"),
        ("machine", "base = \"hmg-4x4\"\n[l2]\nways = \"many\"\n"),
        ("machine", "base = \"hmg-4x4\"\n[l2]\nways = 0\n"),
        ("machine", "base = \"hmg-4x4\"\n[l2]\nbytes = \"3 megabytes\"\n"),
        ("machine", "base = \"hmg-4x4\"\n[gpu_link]\nlatency = \"3MB\"\n"),
        ("machine", "base = \"hmg-4x4\"\n[sm]\nscheduler = \"fair\"\n"),
        ("machine", "base = \"hmg-4x4\"\nl2 = 3\n"),
        ("machine", "line = 128\npage_bytes = 4096\n"),
        ("design", "base = \"hmg\"\ncoherence = \"mesi\"\n"),
        ("design", "base = \"hmg\"\n[links]\nkind = \"rubber\"\n"),
        ("design", "base = \"hmg\"\n[links]\nsample_tim = 5\n"),
        ("design", "description = \"of nothing\"\n"),
    ] {
        assert!(!of_text(kind, text).is_empty(), "{text}");
    }
}
