//! Evidence behind the numbers in a figure: the run for each number, its range over repetitions, and remarks on its
//! row.

use serde::{Deserialize, Serialize};

/// Evidence behind the numbers in a figure.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// Description of the repetitions covered by ranges, for example `seed 2, seed 3, scale 1/8`; empty without ranges.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub repeated: String,
    /// Evidence cells, one for each number with a run or a range.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cells: Vec<CellEvidence>,
    /// Remarks on rows, for example about a workload whose work does not follow its footprint.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<Remark>,
}

/// Evidence behind a single number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CellEvidence {
    /// Row index, from 0.
    pub row: usize,
    /// Numeric column index, from 0.
    pub column: usize,
    /// Index of the run in the document; `None` for a number that summarises several runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<usize>,
    /// Least and greatest value over the number itself and all repetitions, in the figure's unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<[f64; 2]>,
}

/// A remark on a figure's row.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remark {
    /// Row index, from 0.
    pub row: usize,
    /// Text of the remark.
    pub text: String,
}

/// Runs behind the figures in a document.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Runs {
    /// Paths of the counters shown for each run.
    pub counters: Vec<String>,
    /// Rows with a run each, in the order used by the figures.
    pub rows: Vec<Run>,
}

/// A run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Workload, machine, design and settings.
    pub label: String,
    /// Command that repeats only this run.
    pub command: String,
    /// Numbers per counter, in the counter's unit; `None` if the run lacks the counter.
    pub values: Vec<Option<f64>>,
}

impl Evidence {
    /// True if no evidence exists.
    pub fn is_empty(&self) -> bool {
        *self == Evidence::default()
    }

    fn cell(&self, row: usize, column: usize) -> Option<&CellEvidence> {
        self.cells.iter().find(|cell| (cell.row, cell.column) == (row, column))
    }

    /// Returns the run behind a number.
    pub fn run(&self, row: usize, column: usize) -> Option<usize> {
        self.cell(row, column)?.run
    }

    /// Returns a number's range over all repetitions, if any.
    pub fn range(&self, row: usize, column: usize) -> Option<[f64; 2]> {
        self.cell(row, column)?.range.filter(|range| range.iter().all(|end| end.is_finite()) && range[0] < range[1])
    }

    /// True if a row has a remark.
    pub fn is_flagged(&self, row: usize) -> bool {
        self.remarks.iter().any(|remark| remark.row == row)
    }

    /// Returns each distinct remark, with its rows.
    pub fn distinct_remarks(&self) -> Vec<(&str, Vec<usize>)> {
        let mut told: Vec<(&str, Vec<usize>)> = Vec::new();
        for Remark { row, text } in &self.remarks {
            match told.iter_mut().find(|(known, _)| known == text) {
                Some((_, rows)) => rows.push(*row),
                None => told.push((text, vec![*row])),
            }
        }
        told
    }
}

impl Runs {
    /// True if no runs exist.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}
