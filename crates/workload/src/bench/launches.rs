//! Launches of the programs of CPElide, Table II, at its inputs.

use super::*;
use crate::record::RecordOptions;
use tombolo_types::stream::{Command, Program};

/// Parameters as a user gives them.
type Given = &'static [(&'static str, &'static str)];

/// Name and parameters here, launches, CTAs of the largest launch, footprint in KiB.
type Row = (&'static str, Given, usize, u32, u64);

/// Programs whose launches are known without running them. Source of launches: CPElide, IV-D names 510 as the most; those
/// of the others follow from inputs and the sources that the programs name.
const PLANNED: [Row; 11] = [
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

fn request(name: &str, given: &[(&str, &str)], scale: &str) -> Request {
    let given: Vec<_> = given.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
    Request::new(find(name).unwrap(), scale.parse().unwrap(), &given, 7).unwrap()
}

fn kibibytes(name: &str, request: &Request) -> u64 {
    let arrays = footprint(find(name).unwrap(), request).unwrap();
    arrays.iter().map(|array| array.bytes).sum::<u64>() >> 10
}

#[test]
fn programs_of_cpelide_launch_as_often_as_their_sources() {
    let found = PLANNED.map(|(name, given, ..)| {
        let request = request(name, given, "1");
        let launches = plan(find(name).unwrap(), &request).unwrap();
        let most = launches.iter().map(|kernel| kernel.ctas).max().unwrap();
        (name, given, launches.len(), most, kibibytes(name, &request))
    });
    assert_eq!(found, PLANNED);
}

/// The kernels in the order in which they are launched.
fn launched(name: &str, scale: &str) -> Vec<(String, u32)> {
    let recording = record(find(name).unwrap(), &request(name, &[], scale), &RecordOptions::default(), Mode::Auto);
    let recording = recording.unwrap();
    let kernel = |command: &Command| match command {
        Command::Launch { kernel, .. } => Some(&recording.kernels()[*kernel as usize]),
        Command::Copy { .. } | Command::Host { .. } => None,
    };
    recording.commands().iter().filter_map(kernel).map(|kernel| (kernel.name.clone(), kernel.ctas)).collect()
}

#[test]
fn a_tree_is_searched_by_two_launches() {
    let launch = |name: &str, ctas| (name.to_owned(), ctas);
    assert_eq!(launched("btree", "1/100"), [launch("find-range", 60), launch("find-key", 100)]);
    assert_eq!(kibibytes("btree", &request("btree", &[], "1")), 20_323);
}

#[test]
fn a_level_of_rodinias_search_is_two_launches() {
    let levels = launched("rodinia-bfs", "1/16");
    let pair = [("expand".to_owned(), 16), ("advance".to_owned(), 16)];
    assert!(levels.chunks(2).all(|level| level == pair), "{levels:?}");
    // The farthest node is seven arcs away, and one more level finds nothing.
    assert_eq!(levels.len(), 2 * 8);
    assert_eq!(kibibytes("rodinia-bfs", &request("rodinia-bfs", &[], "1")), 6 << 10);
}
