//! Damaged descriptions: the result is always a value or an error, never a panic; every accepted description can be
//! scaled and written.

use proptest::prelude::*;
use tombolo_machine::{Description, MachineConfig, MachineScale};

const MACHINES: [&str; 3] = [
    include_str!("../../presets/machines/hmg-4x4.toml"),
    include_str!("../../presets/machines/v100.toml"),
    include_str!("../../presets/machines/umh-4-pcie.toml"),
];

/// Numbers, units and words that reach the limits of every key.
const VALUES: [&str; 28] = [
    "0",
    "1",
    "2",
    "3",
    "63",
    "255",
    "256",
    "65535",
    "65536",
    "4294967295",
    "18446744073709551615",
    "-1",
    "0.5",
    "\"1/65535\"",
    "\"65535/1\"",
    "\"512TB\"",
    "\"524288GB\"",
    "\"10000TB/s\"",
    "\"1B/s\"",
    "\"infinite\"",
    "\"1000ms\"",
    "\"0ps\"",
    "\"100GHz\"",
    "\"1kHz\"",
    "true",
    "[]",
    "[1, \"a\"]",
    "\"hashed\"",
];

/// A single change to a text.
#[derive(Clone, Debug)]
enum Damage {
    /// Replaces a line's value by an element of `VALUES`.
    Value { line: usize, value: usize },
    /// Removes a line.
    Drop { line: usize },
    /// Duplicates a line.
    Repeat { line: usize },
    /// Replaces a byte.
    Byte { at: usize, byte: u8 },
    /// Truncates the text.
    Cut { at: usize },
}

fn damage() -> impl Strategy<Value = Damage> {
    prop_oneof![
        8 => (any::<usize>(), 0..VALUES.len()).prop_map(|(line, value)| Damage::Value { line, value }),
        1 => any::<usize>().prop_map(|line| Damage::Drop { line }),
        1 => any::<usize>().prop_map(|line| Damage::Repeat { line }),
        2 => (any::<usize>(), any::<u8>()).prop_map(|(at, byte)| Damage::Byte { at, byte }),
        1 => any::<usize>().prop_map(|at| Damage::Cut { at }),
    ]
}

fn damaged(text: &str, damages: &[Damage]) -> String {
    damages.iter().fold(text.to_owned(), |text, damage| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let count = lines.len().max(1);
        match *damage {
            Damage::Value { line, value } => {
                if let Some(line) = lines.get_mut(line % count)
                    && let Some((key, _)) = line.clone().split_once('=')
                {
                    *line = format!("{key}= {}", VALUES[value]);
                }
            }
            Damage::Drop { line } if !lines.is_empty() => drop(lines.remove(line % count)),
            Damage::Repeat { line } if !lines.is_empty() => lines.push(lines[line % count].clone()),
            Damage::Drop { .. } | Damage::Repeat { .. } => {}
            Damage::Byte { at, byte } => {
                let mut bytes = text.into_bytes();
                let length = bytes.len().max(1);
                if let Some(place) = bytes.get_mut(at % length) {
                    *place = byte;
                }
                return String::from_utf8_lossy(&bytes).into_owned();
            }
            Damage::Cut { at } => {
                let end = at % (text.len() + 1);
                return String::from_utf8_lossy(&text.as_bytes()[..end]).into_owned();
            }
        }
        lines.join("\n")
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_damaged_machine_is_refused_or_whole(which in 0..MACHINES.len(), damages in prop::collection::vec(damage(), 1..6)) {
        let text = damaged(MACHINES[which], &damages);
        match Description::<MachineConfig>::parse("fuzzed", &text).and_then(|description| description.check()) {
            Err(error) => prop_assert!(!error.to_string().is_empty()),
            Ok(machine) => {
                serde_json::to_string(&machine).unwrap();
                let smallest = machine.allowed_scales()[0];
                for scale in [smallest, MachineScale::new(1, 2).unwrap(), MachineScale::FULL] {
                    if let Err(error) = machine.scaled(scale) {
                        prop_assert!(!error.to_string().is_empty());
                    }
                }
                prop_assert!(machine.directory_storage_bytes() > 0);
                prop_assert_eq!(machine.stack_directory_cost().is_some(), machine.stack.is_some());
                prop_assert!(machine.host_directory_cost(true).is_none_or(|cost| cost.bytes() > 0));
                prop_assert!(machine.llc_directory_cost().is_none_or(|cost| cost.bytes() > 0));
            }
        }
    }

    #[test]
    fn any_setting_gets_an_answer(path in "[a-z0-9_.]{0,20}", key in 0..200_usize, text in ".{0,24}") {
        let mut description = tombolo_machine::machine("hmg-4x4").unwrap();
        if let Err(error) = description.set(&path, &text) {
            prop_assert!(error.to_string().starts_with("setting "));
        }
        let known: Vec<String> = <MachineConfig as tombolo_machine::DescriptionKind>::sections()
            .into_iter()
            .filter(|(section, _)| description.has_section(section))
            .flat_map(|(section, keys)| keys.iter().map(move |key| format!("{section}.{}", key.name)))
            .filter(|path| !path.starts_with('.'))
            .collect();
        description.set(&known[key % known.len()], &text).unwrap();
        if let Err(error) = description.check() {
            prop_assert!(!error.to_string().is_empty());
        }
    }
}
