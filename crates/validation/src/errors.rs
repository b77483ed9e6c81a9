//! Deviations between simulated and measured times.

use serde::Serialize;
use std::collections::BTreeMap;

/// A measured time and the corresponding simulated time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TimeComparison {
    /// Benchmark.
    pub benchmark: String,
    /// Size, as given in the table.
    pub size: String,
    /// Measured, in milliseconds.
    pub measured_ms: f64,
    /// Simulated, in milliseconds.
    pub simulated_ms: f64,
    /// Set if a simulated sample represents the whole.
    pub sampled: bool,
    /// Estimated sampling error in milliseconds, derived from the difference between halves of the sample; 0 for
    /// complete runs.
    pub sampling_error_ms: f64,
    /// Set if no evidence contradicts the measurement.
    pub sound: bool,
}

/// Error statistics over several rows. Fractions, not percentages: 0.15 is 15 %.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Errors {
    /// Number of rows.
    pub rows: usize,
    /// Sum of absolute errors over total measured time.
    pub weighted: f64,
    /// Mean of |simulated - measured| over the smaller time.
    pub mean_symmetric: f64,
    /// Slope of the least-squares line through simulated over measured times, for the half of the rows with the longest
    /// measured times; absent if their measured times are all equal.
    pub slope: Option<f64>,
    /// Largest symmetric error of a row.
    pub worst: f64,
    /// Name of this row: the size, preceded by the benchmark's name if there are several.
    pub worst_row: String,
}

/// Error statistics for all rows, and for each benchmark.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Summary {
    /// All rows.
    pub overall: Errors,
    /// Rows with sound measurements; `None` if all rows are sound.
    pub sound: Option<Errors>,
    /// By benchmark.
    pub benchmarks: BTreeMap<String, Errors>,
}

impl TimeComparison {
    /// |simulated - measured| over the smaller time.
    pub fn symmetric(&self) -> f64 {
        (self.simulated_ms - self.measured_ms).abs() / self.simulated_ms.min(self.measured_ms)
    }
}

impl Errors {
    /// Computes the error statistics for `rows`.
    pub fn of<'a>(rows: impl IntoIterator<Item = &'a TimeComparison>) -> Errors {
        let rows: Vec<&TimeComparison> = rows.into_iter().collect();
        let measured: f64 = rows.iter().map(|row| row.measured_ms).sum();
        let apart: f64 = rows.iter().map(|row| (row.simulated_ms - row.measured_ms).abs()).sum();
        let symmetric: f64 = rows.iter().map(|row| row.symmetric()).sum();
        let worst = rows.iter().max_by(|a, b| a.symmetric().total_cmp(&b.symmetric()));
        let one = rows.iter().all(|row| row.benchmark == rows[0].benchmark);
        let named =
            |row: &&TimeComparison| if one { row.size.clone() } else { format!("{} {}", row.benchmark, row.size) };
        Errors {
            worst: worst.map_or(0.0, |row| row.symmetric()),
            worst_row: worst.map_or_else(String::new, named),
            rows: rows.len(),
            weighted: apart / measured,
            mean_symmetric: symmetric / rows.len() as f64,
            slope: slope(rows),
        }
    }
}

/// Slope of simulated over measured times, for the longer half of `rows` by measured time.
fn slope(mut rows: Vec<&TimeComparison>) -> Option<f64> {
    rows.sort_by(|a, b| a.measured_ms.total_cmp(&b.measured_ms));
    let long = &rows[rows.len() / 2..];
    let mean = |of: fn(&TimeComparison) -> f64| long.iter().map(|row| of(row)).sum::<f64>() / long.len() as f64;
    let (measured, simulated) = (mean(|row| row.measured_ms), mean(|row| row.simulated_ms));
    let spread: f64 = long.iter().map(|row| (row.measured_ms - measured).powi(2)).sum();
    let along: f64 = long.iter().map(|row| (row.measured_ms - measured) * (row.simulated_ms - simulated)).sum();
    (spread > 0.0).then(|| along / spread)
}

impl Summary {
    /// Computes the error summary for `rows`.
    pub fn of(rows: &[TimeComparison]) -> Summary {
        let mut benchmarks: BTreeMap<String, Vec<&TimeComparison>> = BTreeMap::new();
        for row in rows {
            benchmarks.entry(row.benchmark.clone()).or_default().push(row);
        }
        let benchmarks = benchmarks.into_iter().map(|(name, rows)| (name, Errors::of(rows))).collect();
        let sound = rows.iter().filter(|row| row.sound);
        let some_are_not = sound.clone().count() < rows.len();
        Summary { overall: Errors::of(rows), sound: some_are_not.then(|| Errors::of(sound)), benchmarks }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(benchmark: &str, measured_ms: f64, simulated_ms: f64) -> TimeComparison {
        TimeComparison {
            benchmark: benchmark.into(),
            size: format!("{measured_ms}"),
            measured_ms,
            simulated_ms,
            sampled: false,
            sampling_error_ms: 0.0,
            sound: true,
        }
    }

    #[test]
    fn twice_as_fast_and_twice_as_slow_are_alike() {
        assert_eq!(row("a", 2.0, 1.0).symmetric(), 1.0);
        assert_eq!(row("a", 1.0, 2.0).symmetric(), 1.0);
    }

    #[test]
    fn long_rows_weigh_more() {
        let errors = Errors::of(&[row("a", 9.0, 9.0), row("a", 1.0, 2.0)]);
        assert_eq!((errors.weighted, errors.mean_symmetric, errors.rows), (0.1, 0.5, 2));
    }

    #[test]
    fn the_slope_leaves_fixed_costs_out() {
        let rows = [row("a", 1.0, 0.1), row("a", 1.0, 0.1), row("a", 2.0, 8.0), row("a", 3.0, 11.0)];
        assert_eq!(Errors::of(&rows).slope, Some(3.0));
        assert_eq!(Errors::of(&rows[..1]).slope, None);
    }

    #[test]
    fn benchmarks_are_judged_apart() {
        let summary = Summary::of(&[row("a", 1.0, 1.0), row("b", 1.0, 3.0)]);
        assert_eq!(summary.benchmarks["a"].weighted, 0.0);
        assert_eq!(summary.benchmarks["b"].weighted, 2.0);
        assert_eq!(summary.overall.weighted, 1.0);
    }

    #[test]
    fn the_worst_row_is_named_with_its_benchmark_where_there_are_several() {
        let rows = [row("a", 1.0, 1.5), row("a", 2.0, 1.0), row("b", 3.0, 3.0)];
        assert_eq!((Errors::of(&rows).worst, Errors::of(&rows).worst_row), (1.0, "a 2".to_owned()));
        assert_eq!(Errors::of(&rows[..2]).worst_row, "2");
    }

    #[test]
    fn unsound_rows_are_judged_with_and_without() {
        let unsound = TimeComparison { sound: false, ..row("a", 1.0, 9.0) };
        let summary = Summary::of(&[row("a", 1.0, 1.0), unsound]);
        assert_eq!((summary.overall.mean_symmetric, summary.sound.map(|of| of.mean_symmetric)), (4.0, Some(0.0)));
        assert_eq!(Summary::of(&[row("a", 1.0, 1.0)]).sound, None);
    }
}
