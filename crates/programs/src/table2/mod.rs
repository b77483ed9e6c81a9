//! Footprints and CTA counts for the NUMA-GPU workloads. This module has the workloads whose launches are known without
//! a run; `parts` has the workloads measured on parts of their runs.

mod parts;

use super::*;
use std::collections::BTreeMap;
use tombolo_types::stream::{CtaStream, Program};
use tombolo_workload::bench::{Mode, Request, footprint, plan, record};
use tombolo_workload::record::RecordOptions;
use tombolo_workload::scale::Scale;

/// Parameters in the form given by a user.
type GivenParameters = &'static [(&'static str, &'static str)];

/// Workload name and parameters, time-weighted average number of CTAs, footprint in MiB.
type TableRow = (&'static str, GivenParameters, u64, u64);

/// Source: NUMA-GPU, Table 2.
const RODINIA_AND_MESHES: [TableRow; 8] = [
    ("amg", &[], 241_549, 3744),
    ("backprop", &[], 4096, 160),
    ("bitcoin", &[], 60, 5898),
    ("euler3d", &[], 1008, 25),
    ("gaussian", &[], 2599, 78),
    ("hotspot", &[], 7396, 64),
    ("kmeans", &[("points", "819200"), ("features", "34"), ("program", "rodinia")], 3249, 221),
    ("srad", &[], 16384, 98),
];

/// Builds a request for a row's workload at a scale, with some parameters replaced.
fn request((name, given, ..): TableRow, replaced: GivenParameters, scale: &str) -> Request {
    let kept = given.iter().filter(|(key, _)| replaced.iter().all(|(other, _)| other != key));
    let given: Vec<_> = kept.chain(replaced).map(|(key, value)| (key.to_string(), value.to_string())).collect();
    Request::new(find(name).unwrap(), scale.parse().unwrap(), &given, 7).unwrap()
}

#[test]
fn footprints_at_scale_one_are_those_of_table_2() {
    let mut wrong = Vec::new();
    for row in RODINIA_AND_MESHES.into_iter().chain(parts::rows()) {
        let arrays = footprint(find(row.0).unwrap(), &request(row, &[], "1")).unwrap();
        let found: u64 = arrays.iter().map(|array| array.bytes).sum();
        let right = (row.3 << 20) * 90 / 100..=(row.3 << 20) * 105 / 100;
        if !right.contains(&found) {
            wrong.push(format!("{} {:?}: {} MiB of {}", row.0, row.1, found >> 20, row.3));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Returns a message if a CTA count deviates from the table.
fn deviation(row: TableRow, found: f64) -> Option<String> {
    let near = (found / row.2 as f64 - 1.0).abs() < 0.05;
    (!near).then(|| format!("{} {:?}: {found:.1} CTAs of {}", row.0, row.1, row.2))
}

/// Mean number of warp instructions per CTA, by kernel.
fn instructions(row: TableRow) -> BTreeMap<String, f64> {
    let recording =
        record(find(row.0).unwrap(), &request(row, &[], "1/64"), &RecordOptions::default(), Mode::Auto).unwrap();
    let mut sums = BTreeMap::<String, (u64, u64)>::new();
    let mut stream = CtaStream::default();
    for (kernel, info) in (0..).zip(recording.kernels()) {
        for cta in 0..info.ctas {
            recording.cta(kernel, cta, &mut stream).unwrap();
            let sum = sums.entry(info.name.clone()).or_default();
            *sum = (sum.0 + stream.instructions(), sum.1 + 1);
        }
    }
    sums.into_iter().map(|(name, (sum, ctas))| (name, sum as f64 / ctas as f64)).collect()
}

/// Kernels are weighted by their warp instructions; the count per CTA is measured in a small run.
#[test]
fn ctas_at_scale_one_are_those_of_table_2() {
    let mut wrong = Vec::new();
    for row in RODINIA_AND_MESHES {
        let (each, launches) = (instructions(row), plan(find(row.0).unwrap(), &request(row, &[], "1")).unwrap());
        let weights = launches.iter().map(|kernel| (each[&kernel.name] * f64::from(kernel.ctas), kernel.ctas));
        let (sum, weight) =
            weights.fold((0.0, 0.0), |sums, (weight, ctas)| (sums.0 + weight * f64::from(ctas), sums.1 + weight));
        wrong.extend(deviation(row, sum / weight));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn launches_that_may_depend_on_data_are_not_planned() {
    let workload = find("bfs").unwrap();
    let request = Request::new(workload, Scale::FULL, &[], 7).unwrap();
    assert_eq!(plan(workload, &request).unwrap_err().to_string(), "lonestar-bfs: its launches may depend on its data");
}
