//! Tests for the launches of CPElide's Table II programs at the paper's inputs: their number, grids and footprint.

use super::*;
use tombolo_types::stream::{Command, KernelInfo, Program};
use tombolo_workload::bench::{Mode, Request, footprint, plan, record};
use tombolo_workload::record::RecordOptions;

/// Parameters as given by a user.
type GivenParameters = &'static [(&'static str, &'static str)];

/// Workload name and parameters, number of launches, CTAs in the largest launch, footprint in KiB.
type ExpectedLaunches = (&'static str, GivenParameters, usize, u32, u64);

/// Programs whose launches are known without running. Source of launches: CPElide, IV-D names a maximum of 510; all
/// other numbers follow from inputs and the sources named by the programs.
const PLANNED: [ExpectedLaunches; 11] = [
    ("babelstream", &[], 4, 2048, 6 << 10),
    ("backprop", &[("hidden", "16")], 2, 4096, 9 << 10),
    ("dwt2d", &[], 10, 65536, 432 << 10),
    ("gaussian", &[("size", "256"), ("steps", "255"), ("tile", "16")], 510, 256, 513),
    ("hotspot3d", &[], 20, 1024, 24 << 10),
    ("hotspot", &[("columns", "512"), ("rows", "512"), ("pyramid", "2"), ("steps", "20")], 10, 361, 3 << 10),
    ("lud", &[], 94, 961, 1 << 10),
    ("nw", &[("length", "8192"), ("tile", "64")], 255, 128, 524_416),
    ("pathfinder", &[("columns", "200000")], 5, 926, 78_906),
    ("square", &[], 2, 2048, 4 << 10),
    ("srad", &[], 4, 16384, 96 << 10),
];

/// Programs whose grids are checked individually: workload name and parameters, then `launches x kernel, CTAs x
/// threads` for each grid, in order of first launch, at seed 1. Source: CPElide, Table II, and the loops in the
/// programs published by its authors. Rounds for color-max and pannotia-sssp belong to the generated network; Alaska's
/// own network takes 10 and 12. Leaves for hacc belong to generated balls.
const GRIDS: [(&str, GivenParameters, &[&str]); 10] = [
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

/// The larger input for the recurrent layers.
const LARGER: GivenParameters = &[("hidden", "512"), ("batch", "16"), ("steps", "4")];

/// A request with the scale and seed given in the last argument.
fn request(name: &str, given: &[(&str, &str)], (scale, seed): (&str, u64)) -> Request {
    let given: Vec<_> = given.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
    Request::new(find(name).unwrap(), scale.parse().unwrap(), &given, seed).unwrap()
}

fn kibibytes(name: &str, request: &Request) -> u64 {
    let arrays = footprint(find(name).unwrap(), request).unwrap();
    arrays.iter().map(|array| array.bytes).sum::<u64>() >> 10
}

#[test]
fn programs_of_cpelide_launch_as_often_as_their_sources() {
    let found = PLANNED.map(|(name, given, ..)| {
        let request = request(name, given, ("1", 7));
        let launches = launched(name, given, ("1", 7));
        let most = launches.iter().map(|kernel| kernel.ctas).max().unwrap();
        (name, given, launches.len(), most, kibibytes(name, &request))
    });
    assert_eq!(found, PLANNED);
}

/// Kernels launched by a program, in order: planned if addresses do not depend on data, else recorded.
fn launched(name: &str, given: &[(&str, &str)], run: (&str, u64)) -> Vec<KernelInfo> {
    let (workload, request) = (find(name).unwrap(), request(name, given, run));
    if workload.data_independent() {
        return plan(workload, &request).unwrap();
    }
    let recording = record(workload, &request, &RecordOptions::default(), Mode::Auto).unwrap();
    let kernel = |command: &Command| match command {
        Command::Launch { kernel, .. } => Some(recording.kernels()[*kernel as usize].clone()),
        Command::Copy { .. } | Command::Host { .. } | Command::Barrier => None,
    };
    recording.commands().iter().filter_map(kernel).collect()
}

/// Distinct grids, each with a launch count.
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
    let found = |(name, given, expected): (&str, GivenParameters, &[&str])| {
        let found = told(&launched(name, given, ("1", 1)));
        (found != expected).then(|| format!("{name} {given:?}: {found:#?}"))
    };
    let wrong: Vec<String> = GRIDS.into_iter().filter_map(found).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Kernel name and number of CTAs for each launch.
fn names(name: &str, scale: &str) -> Vec<(String, u32)> {
    launched(name, &[], (scale, 7)).into_iter().map(|kernel| (kernel.name, kernel.ctas)).collect()
}

#[test]
fn a_tree_is_searched_by_two_launches() {
    let launch = |name: &str, ctas| (name.to_owned(), ctas);
    assert_eq!(names("btree", "1/100"), [launch("find-range", 60), launch("find-key", 100)]);
    assert_eq!(kibibytes("btree", &request("btree", &[], ("1", 7))), 20_323);
}

#[test]
fn a_level_of_rodinias_search_is_two_launches() {
    let levels = names("rodinia-bfs", "1/16");
    let pair = [("expand".to_owned(), 16), ("advance".to_owned(), 16)];
    assert!(levels.chunks(2).all(|level| level == pair), "{levels:?}");
    // The farthest node is seven arcs away, and an additional level finds nothing.
    assert_eq!(levels.len(), 2 * 8);
    assert_eq!(kibibytes("rodinia-bfs", &request("rodinia-bfs", &[], ("1", 7))), 4992);
}
