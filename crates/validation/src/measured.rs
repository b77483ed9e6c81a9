//! Tables of measured kernel times.

use crate::estimate::SEED;
use crate::suite::{self, Case};
use std::collections::BTreeMap;
use thiserror::Error;
use tombolo_programs::find;
use tombolo_workload::bench::{Request, WorkloadError};
use tombolo_workload::scale::Scale;

/// A shipped table: see `data/README.md` for its source and licence.
pub struct ShippedTable {
    /// Machine on which the times were measured.
    pub machine: &'static str,
    /// Design that describes the machine's caches.
    pub design: &'static str,
    /// File name for error messages.
    file: &'static str,
    text: &'static str,
    /// Rows that a second run by the table's source does not reproduce.
    unsound: &'static str,
}

/// The shipped tables.
pub static SHIPPED: [ShippedTable; 2] = [
    ShippedTable { machine: "mi300a", design: "mi300a", file: MI300A_NAME, text: MI300A, unsound: UNSOUND },
    ShippedTable {
        machine: "h100-sxm",
        design: "h100",
        file: "h100-sxm.csv",
        text: include_str!("../data/h100-sxm.csv"),
        unsound: "",
    },
];

const MI300A: &str = include_str!("../data/mi300a.csv");
/// Maximum rows per size for which a table is assumed to keep every second measured row: the first and third, like the
/// shipped table, or the omitted ones, if the shipped table contains this size with different times.
const HALF: usize = 2;
const UNSOUND: &str = include_str!("../data/unsound.csv");
const MI300A_NAME: &str = "mi300a.csv";

/// Columns that a table must have. The compared time is the smallest repetition, for every benchmark alike: single host
/// stalls reach milliseconds in some rows but do not affect the minimum.
const COLUMNS: [&str; 3] = ["kernel_name", "problem_size", "min_ms"];

/// A measured time.
#[derive(Clone, Debug)]
pub struct Measurement {
    /// Benchmark, such as `vectoradd`.
    pub benchmark: String,
    /// Size in the table's spelling, for example `1024x1024_mask3`.
    pub size: String,
    /// Milliseconds.
    pub measured_ms: f64,
    /// The executed case.
    pub case: Case,
    /// Set if only the row's position among rows with an equal size identifies the case.
    pub by_place: bool,
    /// Set unless the table's source measured the row again with a different result.
    pub sound: bool,
}

/// Error for an unreadable table.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{file}:{line}: {message}")]
pub struct MeasuredError {
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The error, and the expected content.
    pub message: String,
}

/// The shipped table for `machine`, if any.
pub fn shipped(machine: &str) -> Option<&'static ShippedTable> {
    SHIPPED.iter().find(|table| table.machine == machine)
}

impl ShippedTable {
    /// The rows of the table.
    ///
    /// # Errors
    /// Never, as verified by the tests.
    pub fn rows(&self) -> Result<Vec<Measurement>, MeasuredError> {
        let mut rows = read(self.file, self.text)?;
        for row in &mut rows {
            let named = |line: &str| line.split_once(',') == Some((&row.benchmark, &row.size));
            row.sound = !self.unsound.lines().any(named);
        }
        Ok(rows)
    }
}

/// Reads a table of comma-separated values with a heading, cells quoted or plain; no name or number contains a comma.
/// `file` is its name in errors.
///
/// # Errors
/// If a column is missing, a line has a different width, a benchmark is unknown, a size is invalid for it, or a time is
/// not above zero. The error states the line and the expected content.
pub fn read(file: &str, text: &str) -> Result<Vec<Measurement>, MeasuredError> {
    let (all, shipped) = (lines(file, text)?, lines(MI300A_NAME, MI300A)?);
    let measurement = |(row, (place, by_place)): (&TableRow<'_>, (usize, bool))| {
        let TableRow { line, benchmark, size, measured_ms } = *row;
        let wrong = |message| MeasuredError { file: file.to_owned(), line, message };
        let case = suite::case(benchmark, size, place).map_err(wrong)?;
        let refused = |error: WorkloadError| wrong(format!("{benchmark} {size}: {error}"));
        let workload = find(case.workload).map_err(refused)?;
        Request::new(workload, Scale::FULL, &case.parameters, SEED).map_err(refused)?;
        let (benchmark, size) = (benchmark.to_owned(), size.to_owned());
        Ok(Measurement { benchmark, size, measured_ms, case, by_place, sound: true })
    };
    all.iter().zip(places_in_sizes(&all, &shipped)).map(measurement).collect()
}

/// A table row in text form.
#[derive(Clone, Copy)]
struct TableRow<'a> {
    line: usize,
    benchmark: &'a str,
    size: &'a str,
    measured_ms: f64,
}

fn lines<'a>(file: &str, text: &'a str) -> Result<Vec<TableRow<'a>>, MeasuredError> {
    let fail = |line: usize, message: String| MeasuredError { file: file.to_owned(), line, message };
    let mut lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    let (first, heading) =
        lines.next().ok_or_else(|| fail(1, format!("it is empty; expected {}", COLUMNS.join(","))))?;
    let heading = cells(heading.trim_start_matches('\u{feff}'));
    let mut places = [0; COLUMNS.len()];
    for (place, column) in places.iter_mut().zip(COLUMNS) {
        *place = heading.iter().position(|name| *name == column).ok_or_else(|| {
            fail(first, format!("there is no column {column}; expected at least {}", COLUMNS.join(", ")))
        })?;
    }
    let mut all = Vec::new();
    for (line, text) in lines {
        let cells = cells(text);
        if cells.len() != heading.len() {
            return Err(fail(line, format!("{} cells; the heading has {}", cells.len(), heading.len())));
        }
        let [benchmark, size, time] = places.map(|place| cells[place]);
        let measured_ms = time.parse().ok().filter(|time: &f64| time.is_finite() && *time > 0.0);
        let measured_ms = measured_ms
            .ok_or_else(|| fail(line, format!("min_ms is {time:?}; expected a time above 0 in milliseconds")))?;
        all.push(TableRow { line, benchmark, size, measured_ms });
    }
    if all.is_empty() {
        return Err(fail(first, "there is no row below the heading".to_owned()));
    }
    Ok(all)
}

/// The cells of a line, without quotes.
fn cells(line: &str) -> Vec<&str> {
    line.split(',').map(|cell| cell.trim().trim_matches('"')).collect()
}

/// For each row in `rows`: its index among the measured rows with an equal size, and a flag for the presence of further
/// rows with this size. Groups with few rows are matched against the shipped table.
fn places_in_sizes(rows: &[TableRow<'_>], shipped: &[TableRow<'_>]) -> Vec<(usize, bool)> {
    let mut groups: BTreeMap<(&str, &str), Vec<usize>> = BTreeMap::new();
    for (index, row) in rows.iter().enumerate() {
        groups.entry((row.benchmark, row.size)).or_default().push(index);
    }
    let mut places = vec![(0, false); rows.len()];
    for ((benchmark, size), members) in groups {
        let times =
            || shipped.iter().filter(|row| (row.benchmark, row.size) == (benchmark, size)).map(|row| row.measured_ms);
        let is_shipped = |index: &usize| times().any(|time| time == rows[*index].measured_ms);
        let left_out = times().count() > 1 && !members.iter().any(is_shipped);
        let (first, step) = if members.len() <= HALF { (usize::from(left_out), 2) } else { (0, 1) };
        let several = members.len() > 1;
        (first..).step_by(step).zip(members).for_each(|(place, index)| places[index] = (place, several));
    }
    places
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    const HEADING: &str = "kernel_name,problem_size,min_ms";

    fn error(text: &str) -> String {
        read("t.csv", text).unwrap_err().to_string()
    }

    #[test]
    fn every_table_that_ships_is_of_a_machine_and_a_design() {
        for table in &SHIPPED {
            assert!(!table.rows().unwrap().is_empty(), "{}", table.machine);
            tombolo_machine::machine(table.machine).unwrap();
            tombolo_design::design(table.design).unwrap();
        }
        assert!(shipped("h100").is_none());
    }

    #[test]
    fn the_table_of_the_mi300a_has_every_benchmark() {
        let rows = shipped("mi300a").unwrap().rows().unwrap();
        let benchmarks: BTreeSet<&str> = rows.iter().map(|row| row.benchmark.as_str()).collect();
        assert_eq!((rows.len(), benchmarks.len()), (229, suite::names().count()));
    }

    #[test]
    fn every_row_named_unsound_is_one_of_the_table() {
        let unsound = shipped("mi300a").unwrap().rows().unwrap().iter().filter(|row| !row.sound).count();
        assert_eq!(unsound, UNSOUND.lines().count() - 1);
    }

    #[test]
    fn rows_of_one_size_are_told_apart_by_their_order_and_number() {
        let degrees = |rows: usize| -> Vec<String> {
            let rows = read("t.csv", &format!("{HEADING}\n{}", "bfs,nodes1024,0.2\n".repeat(rows))).unwrap();
            rows.into_iter().map(|row| row.case.parameters[1].1.clone()).collect()
        };
        assert_eq!(degrees(2), ["8", "32"], "those that the shipped table, whose times are others, leaves out");
        assert_eq!(degrees(4), ["4", "8", "16", "32"]);
        let shipped = shipped("mi300a").unwrap().rows().unwrap().into_iter().filter(|row| row.size == "nodes1024");
        let shipped: Vec<String> = shipped.map(|row| row.case.parameters[1].1.clone()).collect();
        assert_eq!(shipped, ["4", "16"]);
        let other = read("t.csv", &format!("{HEADING}\nbfs,nodes2048,0.2\nbfs,nodes2048,0.3\n")).unwrap();
        assert_eq!(other[1].case.parameters[1].1, "16", "a size that the shipped table does not have");
        let named = read("t.csv", &format!("{HEADING}\nbfs,nodes1024_degree8,0.2\n")).unwrap();
        assert!(other[0].by_place && !named[0].by_place);
    }

    #[test]
    fn columns_may_stand_in_any_order() {
        let rows =
            read("t.csv", "\u{feff}min_ms,avg_ms,\"problem_size\",kernel_name\n0.5,0.7,1024,\"relu\"\n").unwrap();
        assert_eq!((rows[0].benchmark.as_str(), rows[0].measured_ms), ("relu", 0.5));
    }

    #[test]
    fn an_error_names_line_and_expectation() {
        assert_eq!(
            error("kernel_name,min_ms\nrelu,1\n"),
            "t.csv:1: there is no column problem_size; expected at least kernel_name, problem_size, min_ms"
        );
        assert!(
            error(&format!("{HEADING}\nrelu,64,1\nrula,64,1\n")).starts_with("t.csv:3: no benchmark is called rula")
        );
        assert_eq!(
            error(&format!("{HEADING}\nrelu,64,-1\n")),
            "t.csv:2: min_ms is \"-1\"; expected a time above 0 in milliseconds"
        );
        assert_eq!(error(&format!("{HEADING}\nrelu,64\n")), "t.csv:2: 2 cells; the heading has 3");
        assert!(error(&format!("{HEADING}\natax,48x49,1\n")).contains("t.csv:2: a size of atax is NxN, not 48x49"));
        assert_eq!(error(HEADING), "t.csv:1: there is no row below the heading");
        assert!(error("").starts_with("t.csv:1: it is empty"));
    }
}
