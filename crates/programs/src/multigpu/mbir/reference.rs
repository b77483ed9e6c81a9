//! Plain reference reconstruction in double precision: each supervoxel works on a separate sinogram copy, without bands
//! or pieces.

use super::kernels::{NEIGHBOURS, coefficient};
use super::{LARGEST, Reconstruction, START, UNITS};
use crate::prelude::*;

/// Tolerance per iteration for a voxel, whose values are near 1. Source: assumed, about a hundred single-precision
/// rounding errors.
const VOXEL: f64 = 2e-5;
/// Tolerance per iteration for an error. Source: assumed, the combined tolerance of a ray's voxels, most of them far
/// smaller.
const ERROR: f64 = 1e-3;

struct ReferenceReconstruction<'a> {
    run: &'a Reconstruction,
    image: Vec<f64>,
    /// Errors in sinogram units.
    errors: Vec<i64>,
}

impl ReferenceReconstruction<'_> {
    /// Entry and sinogram index for every ray through a voxel.
    fn rays(&self, voxel: [i32; 2]) -> Vec<(f64, usize)> {
        let scan = &self.run.scan;
        let of_view = |view: i32| {
            let start = scan.start(voxel, view);
            (start..start + scan.shadow()).filter(|channel| *channel < scan.channels).map(move |channel| {
                let entry = f64::from(scan.entry(voxel, view, channel)) * LARGEST / 255.0;
                (entry, (view * scan.row() + channel) as usize)
            })
        };
        (0..scan.views).flat_map(of_view).collect()
    }

    fn update(&mut self, [x, y]: [i32; 2], errors: &mut [f64]) {
        let scan = &self.run.scan;
        let own = (y * scan.side + x) as usize;
        let rays = self.rays([x, y]);
        let (mut first, mut second) = (0.0, 0.0);
        for (entry, at) in &rays {
            let weight = f64::from(self.run.weight(*at as i32));
            first += entry * weight * errors[*at];
            second += entry * entry * weight;
        }
        for (step, weight) in NEIGHBOURS {
            let difference = self.image[own] - self.image[scan.neighbour([x, y], step) as usize];
            let curve = f64::from(weight) * f64::from(coefficient(difference as f32));
            first -= curve * difference;
            second += curve;
        }
        let new = (self.image[own] + f64::from(scan.damping()) * first / second).max(0.0);
        rays.iter().for_each(|(entry, at)| errors[*at] -= entry * (new - self.image[own]));
        self.image[own] = new;
    }

    fn iterate(&mut self) {
        let run = self.run;
        for colour in &run.colours {
            let before: Vec<f64> = self.errors.iter().map(|units| *units as f64 / UNITS).collect();
            for supervoxel in &colour.supervoxels {
                let mut errors = before.clone();
                for voxel in run.order(*supervoxel).iter().filter_map(|place| run.scan.voxel(*supervoxel, *place)) {
                    self.update(voxel, &mut errors);
                }
                for (sum, (new, old)) in self.errors.iter_mut().zip(errors.iter().zip(&before)) {
                    *sum += ((new - old) * UNITS).round() as i64;
                }
            }
        }
    }

    /// Squared errors, weighted and summed over all errors.
    fn residual(&self, errors: impl Iterator<Item = f64>) -> f64 {
        (0..).zip(errors).map(|(at, error)| f64::from(self.run.weight(at)) * error * error).sum()
    }
}

/// Returns `Err` with the first value that deviates from the expected value by more than the tolerance.
fn near(what: &str, found: &[f64], expected: &[f64], tolerance: f64) -> Result<(), String> {
    let is_near = |(found, expected): (&f64, &f64)| (found - expected).abs() <= tolerance;
    match found.iter().zip(expected).position(|pair| !is_near(pair)) {
        Some(at) => Err(format!("{what} {at} is {}, expected {}", found[at], expected[at])),
        None => Ok(()),
    }
}

/// Compares image and errors, and checks that errors have decreased.
pub(super) fn verify(run: &Reconstruction, memory: &Memory) -> Result<(), String> {
    let first = run.first_errors();
    let image = vec![START; (run.scan.side * run.scan.side) as usize];
    let mut solver =
        ReferenceReconstruction { run, image, errors: first.iter().map(|units| i64::from(*units)).collect() };
    (0..run.iterations).for_each(|_| solver.iterate());
    let found: Vec<f64> = memory.to_vec(run.image).into_iter().map(f64::from).collect();
    near("voxel", &found, &solver.image, VOXEL * run.iterations as f64)?;
    let in_units = |units: &i32| f64::from(*units) / UNITS;
    let errors: Vec<f64> = memory.to_vec(run.errors).iter().map(in_units).collect();
    let expected: Vec<f64> = solver.errors.iter().map(|units| *units as f64 / UNITS).collect();
    near("error", &errors, &expected, ERROR * run.iterations as f64)?;
    let (before, after) = (solver.residual(first.iter().map(in_units)), solver.residual(errors.iter().copied()));
    if after < before { Ok(()) } else { Err(format!("errors came from {before} to {after}")) }
}
