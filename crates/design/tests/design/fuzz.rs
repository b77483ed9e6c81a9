//! Damaged designs: the result is always a value or an error, never a panic; every accepted design can be
//! serialised.

use proptest::prelude::*;
use tombolo_design::DesignConfig;
use tombolo_machine::Description;

const DESIGNS: [&str; 3] = [
    include_str!("../../presets/hmg.toml"),
    include_str!("../../presets/numa-static-halves.toml"),
    "base = \"numa-coherent\"\n[links]\nkind = \"turning\"\nsample_time = 9\n[capacity]\nkind = \"numa-aware\"\nreset = false\n",
];

/// Values of all types, and option words.
const VALUES: [&str; 16] = [
    "0",
    "1",
    "5000",
    "4294967296",
    "-1",
    "0.5",
    "true",
    "false",
    "[]",
    "[1, \"a\"]",
    "\"hmg\"",
    "\"turning\"",
    "\"static\"",
    "\"numa-aware\"",
    "\"back\"",
    "{ kind = \"static\" }",
];

/// A single change to a text.
#[derive(Clone, Debug)]
enum Damage {
    /// Replaces the value on a line by an element of `VALUES`.
    Value { line: usize, value: usize },
    /// Removes a line from the text.
    Drop { line: usize },
    /// Replaces a byte in the text.
    Byte { at: usize, byte: u8 },
}

fn damage() -> impl Strategy<Value = Damage> {
    prop_oneof![
        6 => (any::<usize>(), 0..VALUES.len()).prop_map(|(line, value)| Damage::Value { line, value }),
        1 => any::<usize>().prop_map(|line| Damage::Drop { line }),
        2 => (any::<usize>(), any::<u8>()).prop_map(|(at, byte)| Damage::Byte { at, byte }),
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
            Damage::Drop { .. } => {}
            Damage::Byte { at, byte } => {
                let mut bytes = text.into_bytes();
                let length = bytes.len().max(1);
                if let Some(place) = bytes.get_mut(at % length) {
                    *place = byte;
                }
                return String::from_utf8_lossy(&bytes).into_owned();
            }
        }
        lines.join("\n")
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_damaged_design_is_refused_or_whole(which in 0..3_usize, damages in prop::collection::vec(damage(), 1..4)) {
        let text = damaged(DESIGNS[which], &damages);
        match Description::<DesignConfig>::parse("fuzzed", &text).and_then(|description| description.check()) {
            Err(error) => prop_assert!(!error.to_string().is_empty()),
            Ok(design) => drop(serde_json::to_string(&design).unwrap()),
        }
    }

    #[test]
    fn any_setting_gets_an_answer(path in "[a-z0-9_.]{0,20}", axis in 0..8_usize, text in ".{0,24}") {
        let mut description = tombolo_design::design("numa-aware").unwrap();
        if let Err(error) = description.set(&path, &text) {
            prop_assert!(error.to_string().starts_with("setting "));
        }
        description.set(tombolo_design::AXES[axis], &text).unwrap();
        if let Err(error) = description.check() {
            prop_assert!(!error.to_string().is_empty());
        }
    }
}
