//! Grids that programs of CPElide's Table II launch at its inputs, and how often.

use super::*;
use crate::record::RecordOptions;
use crate::scale::Scale;
use tombolo_types::stream::{Command, KernelInfo, Program};

/// Name and parameters here; `launches x kernel, CTAs x threads` of each grid, in order of their first launches.
type Row = (&'static str, &'static [(&'static str, &'static str)], &'static [&'static str]);

/// Source: CPElide, Table II, and the loops of the programs that its authors publish. Rounds of color-max and pannotia-sssp
/// are those of the generated network; Alaska's own takes 10 and 12. Leaves of hacc are those of generated balls.
const TABLE_II: [Row; 10] = [
    ("hacc", &[], &["54 x step10, 51 x 128", "69 x step10, 34 x 128", "2 x step10, 17 x 128"]),
    (
        "pennant",
        &[],
        &[
            "1 x inv-map, 188 x 64",
            "10 x main1, 49 x 64",
            "10 x main2, 188 x 64",
            "10 x main3, 49 x 64",
            "10 x main4, 188 x 64",
            "10 x main5, 47 x 64",
        ],
    ),
    ("pannotia-fw", &[], &["15 x floydwarshall, 1024 x 256"]),
    ("color-max", &[], &["10 x color1, 270 x 256", "10 x color2, 270 x 256"]),
    (
        "pannotia-sssp",
        &[],
        &[
            "1 x vector-init, 1080 x 64",
            "18 x vector-assign, 1080 x 64",
            "18 x min-plus, 1080 x 64",
            "18 x vector-diff, 1080 x 64",
        ],
    ),
    (
        "gru",
        &[],
        &[
            "1 x input-product, 6 x 128",
            "1 x first-output, 4 x 256",
            "1 x state-product, 24 x 128",
            "1 x output, 4 x 256",
        ],
    ),
    (
        "gru",
        LARGER,
        &[
            "1 x input-product, 12 x 128",
            "1 x first-output, 32 x 256",
            "3 x state-product, 48 x 128",
            "3 x output, 32 x 256",
        ],
    ),
    (
        "lstm-layer2",
        &[("hidden", "256"), ("batch", "4"), ("steps", "2")],
        &["1 x input-product, 8 x 128", "1 x first-cell, 4 x 256", "1 x state-product, 32 x 128", "1 x cell, 4 x 256"],
    ),
    (
        "lstm-layer2",
        LARGER,
        &[
            "1 x input-product, 16 x 128",
            "1 x first-cell, 32 x 256",
            "3 x state-product, 64 x 128",
            "3 x cell, 32 x 256",
        ],
    ),
    (
        "cnn",
        &[],
        &[
            "1 x convolution, 512 x 128",
            "1 x max-pooling, 1985 x 256",
            "1 x fully-connected, 128 x 128",
            "1 x fully-connected-sum, 1 x 256",
        ],
    ),
];

/// The larger input of the recurrent layers.
const LARGER: &[(&str, &str)] = &[("hidden", "512"), ("batch", "16"), ("steps", "4")];

/// The kernels that a program launches, in order.
fn launched(name: &str, given: &[(&str, &str)]) -> Vec<KernelInfo> {
    let given: Vec<_> = given.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
    let workload = find(name).unwrap();
    let request = Request::new(workload, Scale::FULL, &given, 1).unwrap();
    if workload.address_only() {
        return plan(workload, &request).unwrap();
    }
    let recording = record(workload, &request, &RecordOptions::default(), Mode::Auto).unwrap();
    let kernel = |command: &Command| match command {
        Command::Launch { kernel, .. } => Some(recording.kernels()[*kernel as usize].clone()),
        Command::Copy { .. } | Command::Host { .. } => None,
    };
    recording.commands().iter().filter_map(kernel).collect()
}

/// Each grid with how often it is launched.
fn told(launches: &[KernelInfo]) -> Vec<String> {
    let one = |kernel: &KernelInfo| format!("{}, {} x {}", kernel.name, kernel.ctas, kernel.threads_per_cta);
    let mut counts: Vec<(String, usize)> = Vec::new();
    for launch in launches.iter().map(one) {
        match counts.iter_mut().find(|(known, _)| *known == launch) {
            Some((_, count)) => *count += 1,
            None => counts.push((launch, 1)),
        }
    }
    counts.into_iter().map(|(launch, count)| format!("{count} x {launch}")).collect()
}

#[test]
fn grids_are_those_of_cpelides_inputs() {
    let mut wrong = Vec::new();
    for (name, given, expected) in TABLE_II {
        let found = told(&launched(name, given));
        if found != expected {
            wrong.push(format!("{name} {given:?}: {found:#?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
