//! Properties that hold for every shipped design.

use serde_json::Value;
use std::path::PathBuf;
use tombolo_design::{AXES, DesignConfig, Polls, design, list_designs};
use tombolo_machine::{Description, DescriptionKind};

fn designs() -> Vec<DesignConfig> {
    list_designs().iter().map(|listed| design(listed.name).unwrap().check().unwrap()).collect()
}

fn preset_files() -> Vec<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("presets");
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn every_preset_loads_under_its_own_name_with_a_line_for_lists_and_no_note() {
    for (config, listed) in designs().iter().zip(list_designs()) {
        assert_eq!((config.name.as_str(), &config.description), (listed.name, &listed.description));
        assert!(!listed.description.is_empty(), "{}", listed.name);
        assert!(design(listed.name).unwrap().notes().is_empty(), "{} has an earlier spelling", listed.name);
    }
}

#[test]
fn every_file_in_the_folder_is_listed() {
    let listed: Vec<&str> = list_designs().iter().map(|listed| listed.name).collect();
    assert_eq!(preset_files().len(), listed.len());
    for file in preset_files() {
        let name = file.file_stem().unwrap().to_str().unwrap();
        assert!(listed.contains(&name), "{name} ships but is not listed");
    }
}

#[test]
fn every_value_of_every_preset_states_its_source() {
    for file in preset_files() {
        for (number, line) in std::fs::read_to_string(&file).unwrap().lines().enumerate() {
            let is_value = line.contains('=') && !line.starts_with('#');
            let source = line.split_once("# Source: ").map_or("", |(_, source)| source.trim());
            assert!(!is_value || source.len() > 2, "{}:{}: no source: {line}", file.display(), number + 1);
        }
    }
}

#[test]
fn a_design_written_down_reads_back_as_itself() {
    for config in designs() {
        let record = serde_json::to_value(&config).unwrap();
        assert_eq!(Description::<DesignConfig>::parse("x", &toml_of(&record)).unwrap().check().unwrap(), config);
    }
}

/// A record as TOML: values first, then sections.
fn toml_of(record: &Value) -> String {
    let object = record.as_object().unwrap();
    let (sections, values): (Vec<_>, Vec<_>) = object.iter().partition(|(_, value)| value.is_object());
    let mut text: String = values.iter().map(|(key, value)| format!("{key} = {value}\n")).collect();
    for (name, section) in sections {
        text += &format!("[{name}]\n");
        text += &section.as_object().unwrap().iter().map(|(k, v)| format!("{k} = {v}\n")).collect::<String>();
    }
    text
}

#[test]
fn every_key_is_documented_and_every_key_of_an_axis_is_read_by_an_option() {
    let axes = DesignConfig::axes();
    assert_eq!(axes.iter().map(|axis| axis.name).collect::<Vec<_>>(), AXES);
    for (section, keys) in DesignConfig::sections() {
        for key in keys {
            assert!(key.doc.len() > 3 && key.expected.len() > 3, "{section}.{} is not documented", key.name);
            let Some(axis) = axes.iter().find(|axis| axis.name == section) else { continue };
            let is_read = axis.options.iter().any(|option| option.keys.contains(&key.name));
            assert!(key.name == "kind" || is_read, "{section}.{} is read by no option", key.name);
        }
    }
}

#[test]
fn one_gpu_keeps_its_way_to_a_host_in_the_fabric_and_no_other() {
    let built = |name: &str, links: &str| {
        let mut description = design("numa-memory-side").unwrap();
        description.set("links", links).unwrap();
        let machine = tombolo_machine::machine(name).unwrap().check().unwrap();
        description.check().unwrap().build(&machine).unwrap().machine
    };
    let link = |name, links| built(name, links).gpu_link.clone();
    assert_eq!(link("umh-1-pcie", "static"), tombolo_machine::machine("umh-1-pcie").unwrap().check().unwrap().gpu_link);
    assert!(link("umh-1-pcie", "infinite").rate.is_infinite() && link("gh200", "static").rate.is_infinite());
    let to_host = |links| built("gh200", links).host_link.clone().unwrap();
    assert!(!to_host("static").rate.is_infinite() && to_host("infinite").rate.is_infinite());
}

#[test]
fn failed_polls_drop_l1s_under_designs_of_hardware_and_of_its_libraries_alone() {
    let drops = |config: &DesignConfig| matches!(config.polls, Polls::DropL1);
    let names: Vec<String> = designs().into_iter().filter(drops).map(|config| config.name).collect();
    let families = ["v100", "h100", "peer", "unified-memory", "memcpy", "gps"];
    for listed in list_designs() {
        let expected =
            families.iter().any(|family| listed.name == *family || listed.name.starts_with(&format!("{family}-")));
        assert_eq!(names.iter().any(|name| name == listed.name), expected, "{}", listed.name);
    }
}
