//! Programs written for several GPUs. Their exchanges match their structure, and loads return allowed values under
//! every sharing policy that promises this.

use crate::common::ways::{SHARING_POLICIES, SharingPolicy, assert_right};
use std::collections::BTreeMap;
use std::sync::Arc;
use tombolo_design::scheduling::CtaDistribution;
use tombolo_programs::{find, list};
use tombolo_system::movement::Movement;
use tombolo_system::placement::TouchOrder;
use tombolo_types::stream::Program;
use tombolo_workload::bench::{Mode, Request, record};
use tombolo_workload::record::RecordOptions;
use tombolo_workload::scale::Scale;

/// Bytes exchanged between GPUs per iteration.
enum Exchange {
    /// Bytes for a pair, given writer, reader and number of GPUs.
    Pair(fn(u64, u64, u64) -> u64),
    /// Bytes for all pairs together, given the number of GPUs, with the range for the measured share: random links omit
    /// lines, and blocks that do not end at a line boundary share a line.
    All(fn(u64) -> u64, [f64; 2]),
}

/// The remaining policies that `share` ranks, GPUs with peer access, and publishing variants. Their page handling does
/// not depend on the GPU count; a test with a single count suffices.
const PEERS: [SharingPolicy; 8] = [
    ("numa-memory-side", AS_CUT),
    ("peer", AS_CUT),
    ("software-flat", AS_CUT),
    ("nhcc", AS_CUT),
    ("hmg", AS_CUT),
    ("gps", &["placement.allocates=true"]),
    ("gps-all-to-all", &[]),
    ("gps-on-read", &[]),
];

/// Settings with which `share` runs the policies.
const AS_CUT: &[&str] = &["scheduling=program"];

/// Parameters in command-line form.
type ParameterList = &'static [(&'static str, &'static str)];

/// A program at test sizes.
struct App {
    name: &'static str,
    /// Parameters for runs.
    small: ParameterList,
    /// Parameters for the exchange analysis.
    given: ParameterList,
    /// The parameter for the number of iterations, and a count from which on all iterations are alike.
    iterations: (&'static str, u64),
    /// The only array to examine; `None` for all arrays.
    array: Option<&'static str>,
    /// GPU counts for which lines are not shared across part boundaries.
    gpus: &'static [u8],
    exchange: Exchange,
}

impl App {
    /// Examines all arrays, on any number of GPUs.
    const fn new(name: &'static str, given: ParameterList, iterations: &'static str, exchange: Exchange) -> App {
        App { name, small: given, given, iterations: (iterations, 2), array: None, gpus: &[2, 4, 16], exchange }
    }
}

/// Bytes per line.
const LINE: u64 = 128;

const APPS: [App; 10] = [
    App::new(
        "jacobi",
        &[("columns", "96"), ("rows", "66")],
        "iterations",
        Exchange::Pair(|writer, reader, gpus| {
            // A row with 96 floats for each of the two borders at which the reader adjoins the writer on the ring.
            let borders = [1, gpus - 1].into_iter().filter(|step| (writer + step) % gpus == reader).count();
            borders as u64 * 96 * 4
        }),
    ),
    App::new(
        "diffusion",
        &[("columns", "70"), ("rows", "13"), ("planes", "40")],
        "iterations",
        Exchange::Pair(|writer, reader, _| {
            // Three times two planes with seven inner rows; cells from the second to the second to last are read.
            let lines = (8 * (70 - 4) + 7) / LINE + 1;
            if writer.abs_diff(reader) == 1 { 3 * 2 * (13 - 6) * lines * LINE } else { 0 }
        }),
    ),
    App::new(
        "eqwp",
        &[("x", "60"), ("y", "12"), ("z", "34")],
        "iterations",
        Exchange::Pair(|writer, reader, gpus| {
            // Six fields in two planes next to the cut. The ground is surrounded by a frame two cells wide.
            let (wide, high) = (60 + 4, 12 + 4);
            let lines = |plane: u64| {
                let at = |row: u64, cell: u64| 4 * (((plane + 2) * high + row) * wide + cell) / LINE;
                at(12 + 1, 60 + 1) - at(2, 2) + 1
            };
            let cut = 34 * writer.max(reader) / gpus;
            let planes = if reader > writer { [cut - 2, cut - 1] } else { [cut, cut + 1] };
            if writer.abs_diff(reader) == 1 { 6 * planes.map(lines).iter().sum::<u64>() * LINE } else { 0 }
        }),
    ),
    App::new(
        "pagerank-edges",
        &[("nodes", "1024")],
        "iterations",
        // Ranks with 8 bytes, and a line for each GPU's part in their sum.
        Exchange::All(|gpus| (gpus - 1) * (1024 * 8 + gpus * LINE), [0.98, 1.0]),
    ),
    App::new(
        "sssp-owners",
        &[("nodes", "1024")],
        "rounds",
        // During iterations in which every line of distances still changes.
        Exchange::All(|gpus| (gpus - 1) * 1024 * 4, [0.98, 1.0]),
    ),
    App::new(
        "als",
        &[("items", "64"), ("users", "256"), ("ratings", "8192"), ("features", "20")],
        "iterations",
        // Factors for both matrices, 80 bytes each.
        Exchange::All(|gpus| (gpus - 1) * (64 + 256) * 80, [0.95, 1.2]),
    ),
    App {
        small: &[("side", "32"), ("depth", "8")],
        gpus: &[2, 4],
        iterations: ("steps", 1),
        ..App::new(
            "hit",
            &[("side", "64"), ("depth", "16")],
            "steps",
            // 27 transforms; in each, the reader's rows from the writer's part, in complex floats.
            Exchange::Pair(|_, _, gpus| 27 * (64 / gpus).pow(2) * (16 / 2 + 1) * 8),
        )
    },
    App {
        small: &[("side", "32"), ("views", "32"), ("channels", "40"), ("radius", "3")],
        iterations: ("iterations", 1),
        array: Some("differences"),
        ..App::new(
            "mbir",
            &[("side", "48"), ("views", "64"), ("channels", "96"), ("radius", "4")],
            "iterations",
            // Four colours with 16 supervoxels; in each, the reader's views on a band with 24 channels.
            Exchange::Pair(|_, _, gpus| 4 * (16 / gpus) * (64 / gpus) * 24 * 4),
        )
    },
    App {
        small: &[("x", "4"), ("y", "3"), ("z", "48")],
        ..App::new(
            "jacobi-banded",
            &[("x", "16"), ("y", "8"), ("z", "32")],
            "iterations",
            Exchange::Pair(|writer, reader, _| {
                // Doubles of a half-band, from a cut that is at a line boundary.
                let half_band: u64 = 16 * 8 + 16 + 1;
                if writer.abs_diff(reader) == 1 { (8 * half_band).next_multiple_of(LINE) } else { 0 }
            }),
        )
    },
    App {
        small: &[("x", "8"), ("y", "4"), ("z", "16")],
        ..App::new(
            "hit-halo",
            &[("x", "32"), ("y", "8"), ("z", "48")],
            "steps",
            Exchange::Pair(|writer, reader, gpus| {
                // Three times three planes of four fields, for each of the two borders on the ring.
                let borders = [1, gpus - 1].into_iter().filter(|step| (writer + step) % gpus == reader).count();
                borders as u64 * 3 * 3 * 4 * (32 * 8 * 4)
            }),
        )
    },
];

impl App {
    fn record(&self, given: ParameterList, gpus: u8, iterations: u64) -> Arc<dyn Program> {
        let workload = find(self.name).expect("a workload");
        let given = given.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        let given: Vec<_> = given.chain([(self.iterations.0.to_owned(), iterations.to_string())]).collect();
        let request = Request::new(workload, Scale::FULL, &given, 1).unwrap_or_else(|error| panic!("{error}"));
        let program = record(workload, &request.with_gpus(gpus), &RecordOptions::default(), Mode::Verify);
        Arc::new(program.unwrap_or_else(|error| panic!("{} on {gpus} GPUs: {error}", self.name)))
    }

    /// Bytes exchanged in the given number of iterations, by writer and reader.
    fn exchanged(&self, gpus: u8, iterations: u64) -> BTreeMap<(u8, u8), u64> {
        let program = self.record(self.given, gpus, iterations);
        let name = |array: u32| program.arrays()[array as usize].name.as_str();
        let counts = |array: Option<u32>| self.array.is_none_or(|only| array.map(name) == Some(only));
        let movement =
            Movement::find(&*program, CtaDistribution::Program, TouchOrder::new(gpus, 32)).expect("it decodes");
        let mut bytes = BTreeMap::new();
        for one in movement.exchanges(&*program).into_iter().filter(|one| counts(one.array)) {
            *bytes.entry((one.writer.0, one.reader.0)).or_default() += one.bytes;
        }
        bytes
    }
}

#[test]
fn every_program_for_several_gpus_is_here() {
    let of_suite = list().iter().filter(|workload| tombolo_programs::suite(**workload) == "multigpu");
    let shipped = of_suite.map(|workload| workload.name());
    assert_eq!(shipped.collect::<Vec<_>>(), APPS.map(|app| app.name));
}

#[test]
fn an_iteration_exchanges_what_the_structure_of_the_program_says() {
    exchanges(|gpus| gpus == 2);
}

#[test]
#[ignore = "deep: records programs for sixteen GPUs, half a minute"]
fn an_iteration_exchanges_what_the_structure_of_the_program_says_on_four_and_on_sixteen_gpus() {
    exchanges(|gpus| gpus > 2);
}

fn exchanges(counts: impl Fn(u8) -> bool) {
    for app in &APPS {
        for &gpus in app.gpus.iter().filter(|&&gpus| counts(gpus)) {
            let [before, after] = [0, 1].map(|more| app.exchanged(gpus, app.iterations.1 + more));
            let pairs = (0..gpus).flat_map(|one| (0..gpus).map(move |other| (one, other)));
            let of = |run: &BTreeMap<(u8, u8), u64>, pair| run.get(&pair).copied().unwrap_or_default();
            let found: BTreeMap<_, _> = pairs.map(|pair| (pair, of(&after, pair) - of(&before, pair))).collect();
            match app.exchange {
                Exchange::Pair(form) => found.iter().for_each(|(&(writer, reader), found)| {
                    let said = if writer == reader { 0 } else { form(writer.into(), reader.into(), gpus.into()) };
                    assert_eq!(*found, said, "{} on {gpus} GPUs: {reader} of {writer}", app.name);
                }),
                Exchange::All(form, [least, most]) => {
                    let (found, said) = (found.values().sum::<u64>(), form(gpus.into()));
                    let share = found as f64 / said as f64;
                    assert!((least..=most).contains(&share), "{} on {gpus} GPUs: {found} of {said}", app.name);
                }
            }
        }
    }
}

/// Runs every program on the given numbers of GPUs under `ways`, and checks that no load returns a forbidden value.
fn assert_all_right(counts: &[u8], ways: &[SharingPolicy]) {
    for (app, &gpus) in APPS.iter().flat_map(|app| counts.iter().map(move |gpus| (app, gpus))) {
        let program = app.record(app.small, gpus, app.iterations.1);
        ways.iter().for_each(|way| assert_right(app.name, &program, gpus, *way));
    }
}

#[test]
fn programs_for_several_gpus_find_what_they_must() {
    let (gps, others) = SHARING_POLICIES.split_last().expect("a list of policies");
    let every_second: Vec<SharingPolicy> = others.iter().step_by(2).chain([gps]).copied().collect();
    assert_all_right(&[4], &every_second);
}

#[test]
#[ignore = "deep: half a minute"]
fn programs_for_several_gpus_find_what_they_must_with_peer_access() {
    assert_all_right(&[4], &PEERS);
}

#[test]
#[ignore = "deep: runs on sixteen GPUs, a minute and a half"]
fn programs_for_several_gpus_find_what_they_must_on_one_four_and_sixteen() {
    assert_all_right(&[1, 4, 16], &SHARING_POLICIES);
}
