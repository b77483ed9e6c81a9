//! Footprints and CTA counts of those workloads of NUMA-GPU that HMG, Lonestar, CORAL and others share.
//!
//! CTA counts are averages over launches, weighted by warp instructions.

use super::*;
use tombolo_types::stream::{Command, CtaStream, Program};

/// Parameters as a user gives them.
type Given = &'static [(&'static str, &'static str)];

/// Name and parameters here, time-weighted average number of CTAs, footprint in MB.
type Row = (&'static str, Given, u64, u64);

/// Workloads whose grids follow the scale, and the part of their size at which they are measured.
/// Source: NUMA-GPU, Table 2.
const SCALED: [(Row, u64); 14] = [
    (("bfs", &[("nodes", "1000000"), ("degree", "6"), ("threads", "512")], 1954, 38), 16),
    (("dmr", &[], 82, 248), 64),
    (("hpgmg", &[("z", "288"), ("planes", "6")], 10506, 1571), 64),
    (("hpgmg", &[("z", "368"), ("planes", "8")], 10436, 1975), 64),
    (("mcb", &[], 5001, 162), 16),
    (("mst", &[("network", "random"), ("nodes", "860000"), ("threads", "1024"), ("ctas", "512")], 770, 86), 16),
    (("mst", &[("network", "mesh"), ("nodes", "1000000"), ("threads", "768"), ("ctas", "320")], 895, 75), 16),
    (("pathfinder", &[("columns", "1000000"), ("rows", "410")], 4630, 1570), 64),
    (("rabbitct", &[], 131_072, 524), 64),
    (("raytracing", &[], 3072, 87), 64),
    (("rsbench", &[], 7813, 19), 64),
    (("snap", &[("side", "31"), ("angles", "16"), ("groups", "12"), ("threads", "512")], 200, 744), 12),
    (("sp", &[], 75, 8), 1),
    (("sssp", &[], 1046, 38), 16),
];

/// Workloads of one kernel, whose launches are listed without running it. Source: NUMA-GPU, Table 2.
const ONE_KERNEL: [Row; 6] = [
    ("alexnet-conv2", &[("batch", "864"), ("launches", "8")], 1250, 832),
    ("alexnet-conv2", ALEXNET_CONVNET2, 6075, 97),
    ("alexnet-conv4", &[("tile", "64x64")], 1014, 32),
    ("googlenet-conv2", &[("launches", "3"), ("tile", "128x128")], 6272, 1205),
    ("overfeat-layer3", &[("launches", "2")], 1800, 388),
    ("triad", &[("elements", "134217728"), ("threads", "192"), ("iterations", "2")], 699_051, 3146),
];

/// The second layer of AlexNet in one column. Source: Krizhevsky, arXiv:1404.5997, 2014.
const ALEXNET_CONVNET2: Given =
    &[("groups", "1"), ("inputs", "64"), ("outputs", "192"), ("batch", "128"), ("tile", "48x64")];

/// Workloads whose grids follow the planes along z, the parameters of a thin part, and how many of these make the whole.
/// Source: NUMA-GPU, Table 2.
const THIN: [(Row, Given, u64); 2] = [
    (("comd", &[("threads", "480")], 3588, 319), &[("z", "5")], 10),
    (("comd", &[("mapping", "thread"), ("x", "56"), ("y", "56"), ("z", "56")], 5724, 393), &[("z", "4")], 17),
];

fn request((name, given, ..): Row, thin: Given, scale: Scale) -> Request {
    let kept = given.iter().filter(|(key, _)| thin.iter().all(|(other, _)| other != key));
    let given: Vec<_> = kept.chain(thin).map(|(key, value)| (key.to_string(), value.to_string())).collect();
    Request::new(find(name).unwrap(), scale, &given, 7).unwrap()
}

/// All rows.
fn rows() -> Vec<Row> {
    let (scaled, thin) = (SCALED.iter().map(|(row, _)| *row), THIN.iter().map(|(row, ..)| *row));
    scaled.chain(ONE_KERNEL).chain(thin).collect()
}

#[test]
fn footprints_are_those_of_table_2() {
    for row in rows() {
        let arrays = footprint(find(row.0).unwrap(), &request(row, &[], Scale::FULL)).unwrap();
        let found: u64 = arrays.iter().map(|array| array.bytes).sum();
        println!("{} {:?}: {} MiB of {}", row.0, row.1, found >> 20, row.3);
        let right = (row.3 << 20) * 90 / 100..=(row.3 << 20) * 105 / 100;
        assert!(right.contains(&found), "{} {:?}: {} MiB of {}", row.0, row.1, found >> 20, row.3);
    }
}

/// CTAs of a launch, weighted by warp instructions.
fn average(recording: &Recording) -> f64 {
    let mut stream = CtaStream::default();
    let mut each = Vec::new();
    for (kernel, info) in (0..).zip(recording.kernels()) {
        let instructions = |cta| {
            recording.cta(kernel, cta, &mut stream).unwrap();
            stream.instructions()
        };
        each.push((0..info.ctas).map(instructions).sum::<u64>() as f64);
    }
    let (mut sum, mut weight) = (0.0, 0.0);
    for command in recording.commands() {
        if let Command::Launch { kernel, .. } = command {
            let kernel = *kernel as usize;
            sum += each[kernel] * f64::from(recording.kernels()[kernel].ctas);
            weight += each[kernel];
        }
    }
    sum / weight
}

fn assert_near(row: Row, found: f64) {
    println!("{} {:?}: {found:.1} CTAs of {}", row.0, row.1, row.2);
    assert!((found / row.2 as f64 - 1.0).abs() < 0.05, "{} {:?}: {found:.1} CTAs of {}", row.0, row.1, row.2);
}

#[test]
fn ctas_of_scaled_runs_are_those_of_table_2() {
    for (row, parts) in SCALED {
        let request = request(row, &[], Scale::new(1, parts).unwrap());
        let recording = record(find(row.0).unwrap(), &request, &RecordOptions::default(), Mode::Auto).unwrap();
        assert_near(row, average(&recording) * parts as f64);
    }
}

#[test]
fn ctas_of_thin_runs_are_those_of_table_2() {
    for (row, thin, parts) in THIN {
        let request = request(row, thin, Scale::FULL);
        let recording = record(find(row.0).unwrap(), &request, &RecordOptions::default(), Mode::Auto).unwrap();
        assert_near(row, average(&recording) * parts as f64);
    }
}

#[test]
fn grids_of_single_kernels_are_those_of_table_2() {
    for row in ONE_KERNEL {
        let launches = plan(find(row.0).unwrap(), &request(row, &[], Scale::FULL)).unwrap();
        let ctas: u64 = launches.iter().map(|kernel| u64::from(kernel.ctas)).sum();
        assert_near(row, ctas as f64 / launches.len() as f64);
    }
}
