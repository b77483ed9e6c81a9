//! Error bounds on speed-ups and geometric means, for a comparison with sampled runs.

use super::Comparison;
use std::collections::BTreeMap;
use tombolo_experiment::SAMPLES;
use tombolo_report::evidence::{CellEvidence, Evidence};
use tombolo_system::TimeEstimate;

/// Error bounds by design name; `None` if the error is unbounded.
pub(super) type Errors = BTreeMap<String, Option<f64>>;

impl Comparison {
    /// Computes the error bounds on speed-ups and means; nothing is added if no run was sampled.
    pub(super) fn measure_errors(&mut self) {
        if !self.runs.iter().any(|run| run.sampling.is_some()) {
            return;
        }
        for workload in &self.workloads {
            let row = self.designs.iter().filter_map(|design| {
                let ends = self.speedup_range(workload, design)?;
                Some((design.clone(), furthest(self.speedups[workload][design]?, ends)))
            });
            self.speedup_errors.insert(workload.clone(), row.collect());
        }
        for design in &self.designs {
            let Some(mean) = self.geometric_means[design] else { continue };
            let ends = self.workloads.iter().map(|workload| self.speedup_range(workload, design));
            let Some(ends) = ends.collect::<Option<Vec<_>>>() else { continue };
            let mean_of =
                |end: usize| super::geometric_mean(ends.iter().map(|ends| Some(ends[end]))).unwrap_or(f64::NAN);
            self.geometric_mean_errors.insert(design.clone(), furthest(mean, [mean_of(0), mean_of(1)]));
        }
    }

    /// Returns the range of a speed-up if both runs deviate by their full error. The baseline has speed-up 1 over
    /// itself, without error.
    fn speedup_range(&self, workload: &str, design: &str) -> Option<[f64; 2]> {
        if design == self.baseline {
            return Some([1.0; 2]);
        }
        let told = |design| self.run(workload, design).map(|run| TimeEstimate::of(run, self.time));
        Some(told(&self.baseline)?.over(told(design)?))
    }

    /// Returns the ranges of speed-ups and means, in the form of evidence for a figure.
    pub(super) fn evidence(&self) -> Evidence {
        let rows =
            self.workloads.iter().map(|workload| (self.speedups.get(workload), self.speedup_errors.get(workload)));
        let means = (Some(&self.geometric_means), Some(&self.geometric_mean_errors));
        let mut cells = Vec::new();
        for (row, (values, errors)) in rows.chain([means]).enumerate() {
            for (column, design) in self.designs.iter().enumerate() {
                let value = values.and_then(|values| values.get(design).copied().flatten());
                let error = errors.and_then(|errors| errors.get(design).copied().flatten());
                if let (Some(value), Some(error)) = (value, error.filter(|error| *error > 0.0)) {
                    cells.push(CellEvidence { row, column, run: None, range: Some([value - error, value + error]) });
                }
            }
        }
        let repeated = if cells.is_empty() { "" } else { SAMPLES };
        Evidence { repeated: repeated.to_owned(), cells, remarks: Vec::new() }
    }
}

/// Returns the distance from a value to the more distant of two range ends; `None` if infinite.
fn furthest(value: f64, [low, high]: [f64; 2]) -> Option<f64> {
    let furthest = (value - low).max(high - value);
    furthest.is_finite().then_some(furthest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_has_both_ends() {
        assert_eq!(furthest(2.0, [1.5, 3.0]), Some(1.0));
        assert_eq!(furthest(2.0, [0.5, 3.0]), Some(1.5));
        assert_eq!(furthest(2.0, [0.5, f64::INFINITY]), None);
    }
}
