//! Holds GPS's quick inputs to the ratio of exchange to work that the programs have at full size.
//!
//! Forms give, for an iteration on four GPUs, the bytes that a GPU's port carries at least, and the work of one GPU: bytes of its
//! memory or instructions, whichever binds. Constants that both sizes share are left out. The link, the memory and the SMs of a
//! machine scale alike, so that only the forms decide.

use crate::plan::replaced;
use crate::preset;
use std::collections::HashMap;
use tombolo_workload::scale::Scale;

/// Parameters of a program: the user's, or the defaults.
struct Parameters(HashMap<String, String>);

impl Parameters {
    fn of(word: &str) -> Parameters {
        let mut parts = word.split(',');
        let workload = tombolo_programs::find(parts.next().expect("a name")).expect("it ships");
        let mut values: HashMap<String, String> =
            workload.parameters().iter().map(|one| (one.name.to_owned(), one.default.to_owned())).collect();
        values.extend(
            parts.filter_map(|part| part.split_once('=')).map(|(key, value)| (key.to_owned(), value.to_owned())),
        );
        Parameters(values)
    }

    fn get(&self, key: &str) -> f64 {
        self.0[key].parse().expect("a number")
    }

    /// A parameter that scales, or scales by the root.
    fn scaled(&self, key: &str, of: impl Fn(u64) -> u64) -> f64 {
        of(self.get(key) as u64) as f64
    }
}

/// Bytes that a GPU's port carries in an iteration, over the work of one GPU.
fn ratio(name: &str, input: &Parameters, scale: Scale) -> f64 {
    let (get, share) = (|key| input.get(key), |key| input.scaled(key, |size| scale.of(size)));
    let side = |key| input.scaled(key, |size| scale.side_of(size));
    let (exchanged, work) = match name {
        // A row to either neighbour; each point is read and written.
        "jacobi" => (2.0 * share("columns"), share("columns") * get("rows")),
        // Two planes to either neighbour; all cells of padded rows.
        "diffusion" => {
            let plane = (side("columns") / 64.0).ceil() * 64.0 * side("rows");
            (4.0 * plane, plane * get("planes"))
        }
        // Planes with frames of two cells.
        "eqwp" => {
            let plane = (share("x") + 4.0) * (get("y") + 4.0);
            (4.0 * plane, plane * get("z"))
        }
        // All factors to all others; each rating is multiplied with half of a square of factors.
        "als" => {
            let (rows, features) = (share("items") + share("users"), get("features"));
            (rows * features, share("ratings") * features * features)
        }
        // A supervoxel's band of channels, in each view; a column of the matrix for each voxel.
        "mbir" => {
            let (side, views, width) = (get("side"), share("views"), 2.0 * get("radius") + 1.0);
            let supervoxels = (side / width).powi(2);
            let band = width * get("channels") / side;
            (supervoxels * views * band, side * side * views * get("channels") / side)
        }
        // A half-band to either neighbour; 27 diagonals of each row.
        "jacobi-banded" => {
            let line = share("x");
            let plane = line * get("y");
            (2.0 * (plane + line + 1.0), 27.0 * plane * get("z"))
        }
        // Three planes of four fields to either neighbour; all points.
        "hit-halo" => {
            let plane = share("x") * get("y");
            (2.0 * 3.0 * 4.0 * plane, plane * get("z"))
        }
        // The ranks within reach of either border; three values of each arc.
        "pagerank-edges" if input.0["graph"] == "ring" => (2.0 * share("reach"), share("nodes") * get("degree")),
        // A value of each node; three values of each arc. Partners of communities do not depend on the size.
        "pagerank-edges" | "sssp-owners" => {
            let nodes = share("nodes");
            (nodes, nodes * get("degree"))
        }
        other => panic!("{other} has no form"),
    };
    exchanged / work
}

/// Programs without a form. Three quarters of a field cross in each transposition of HIT, and its kernels pass over whole
/// fields: the ratio is the same at any size.
const SAME_AT_ANY_SIZE: [&str; 1] = ["hit"];

/// For each other workload of a suite: its label, and its ratio at quick scale over that at full size.
fn quick_over_full(suite: &str) -> Vec<(String, f64)> {
    let (_, suite) = preset::suite(suite).expect("it ships");
    let one = |one: &crate::spec::SuiteWorkload| {
        let whole = one.workload.get();
        let quick = one.quick.as_ref().map_or_else(|| whole.to_owned(), |more| replaced(whole, more.get()));
        let name = whole.split(',').next().expect("a name");
        if SAME_AT_ANY_SIZE.contains(&name) {
            return None;
        }
        let scale: Scale = one.scale.get().parse().expect("a scale");
        let full = ratio(name, &Parameters::of(whole), Scale::FULL);
        Some((one.label.clone().expect("a label"), ratio(name, &Parameters::of(&quick), scale) / full))
    };
    suite.workload.iter().filter_map(one).collect()
}

#[test]
fn quick_inputs_of_gps_exchange_as_much_of_their_work_as_at_full_size() {
    for (label, ratio) in ["gps", "gps-half", "gps-table2"].into_iter().flat_map(quick_over_full) {
        println!("{label}: {ratio:.2}");
        assert!((0.8..=1.2).contains(&ratio), "{label}: {ratio:.2} times the ratio at full size");
    }
}
