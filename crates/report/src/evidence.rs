//! What stands behind the numbers of a figure: the run of each, its range over repetitions, and remarks on its row.

use serde::{Deserialize, Serialize};

/// What stands behind the numbers of a figure.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// What ranges are over, such as `seed 2, seed 3, scale 1/8`; empty where there are none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub repeated: String,
    /// One for each number that has a run or a range.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cells: Vec<Cell>,
    /// Remarks on rows, such as that the work of a workload does not follow its footprint.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<Remark>,
}

/// What stands behind one number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Its row, from 0.
    pub row: usize,
    /// Its column of numbers, from 0.
    pub column: usize,
    /// Its run, by index into the document's; `None` of a number that sums up several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<usize>,
    /// The least and the greatest of itself and its repetitions, in the figure's unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<[f64; 2]>,
}

/// A remark on a row.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remark {
    /// The row, from 0.
    pub row: usize,
    /// What is said of it.
    pub text: String,
}

/// The runs behind the figures of a document.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Runs {
    /// Paths of the counters that are shown of each.
    pub counters: Vec<String>,
    /// One row a run, in the order in which figures name them.
    pub rows: Vec<Run>,
}

/// A run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Workload, machine, design and settings.
    pub label: String,
    /// Command that makes this run alone.
    pub command: String,
    /// One number a counter, in its unit; `None` where the run has none.
    pub values: Vec<Option<f64>>,
}

impl Evidence {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        *self == Evidence::default()
    }

    fn cell(&self, row: usize, column: usize) -> Option<&Cell> {
        self.cells.iter().find(|cell| (cell.row, cell.column) == (row, column))
    }

    /// The run behind a number.
    pub fn run(&self, row: usize, column: usize) -> Option<usize> {
        self.cell(row, column)?.run
    }

    /// The range of a number over its repetitions, where it has one.
    pub fn range(&self, row: usize, column: usize) -> Option<[f64; 2]> {
        self.cell(row, column)?.range.filter(|range| range.iter().all(|end| end.is_finite()) && range[0] < range[1])
    }

    /// Whether a row has a remark.
    pub fn is_flagged(&self, row: usize) -> bool {
        self.remarks.iter().any(|remark| remark.row == row)
    }

    /// Each remark once, with the rows that it is made on.
    pub fn told(&self) -> Vec<(&str, Vec<usize>)> {
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
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}
