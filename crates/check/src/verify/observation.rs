//! Hardware observations, checked against the model's answers.

use super::answer::ModelOutcomes;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Columns that an observation table must have, in any order, among further columns.
const COLUMNS: [&str; 4] = ["test", "placement", "outcome", "count"];

/// Table of outcomes from a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observations {
    /// Name of the file.
    pub file: String,
    rows: Vec<ObservationRow>,
}

/// Row of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ObservationRow {
    line: usize,
    test: String,
    placement: String,
    outcome: Vec<(String, i64)>,
    count: u64,
}

/// Reason why an observation table cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ObservationError {
    /// The file cannot be read.
    #[error("{}: cannot be read: {source}", path.display())]
    Unreadable {
        /// The file, as given.
        path: PathBuf,
        /// Error from the system.
        source: std::io::Error,
    },
    /// The first line lacks a column.
    #[error("{file}:1: expected the columns {}, found no column {missing}", COLUMNS.join(", "))]
    Column {
        /// The file.
        file: String,
        /// The column.
        missing: &'static str,
    },
    /// A cell has invalid content.
    #[error("{file}:{line}: expected {expected}, found {found:?}")]
    Cell {
        /// The file.
        file: String,
        /// The line, from 1.
        line: usize,
        /// Content allowed in the cell.
        expected: String,
        /// The cell.
        found: String,
    },
}

impl Observations {
    /// Reads a table of comma-separated values with a heading.
    ///
    /// # Errors
    /// If the file cannot be read, a column is missing, or a cell has invalid content.
    pub fn read(path: &Path) -> Result<Observations, ObservationError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| ObservationError::Unreadable { path: path.to_owned(), source })?;
        Observations::parse(&path.display().to_string(), &text)
    }

    /// Parses a table from `text`, which errors name `file`.
    ///
    /// # Errors
    /// If a column is missing, or a cell has invalid content.
    pub fn parse(file: &str, text: &str) -> Result<Observations, ObservationError> {
        let mut lines = text.strip_prefix('\u{feff}').unwrap_or(text).lines().enumerate();
        let heading = lines.next().map(|(_, line)| cells(line)).unwrap_or_default();
        let place = |column: &'static str| {
            let found = heading.iter().position(|cell| *cell == column);
            found.ok_or(ObservationError::Column { file: file.to_owned(), missing: column })
        };
        let [test, placement, outcome, count] =
            [place(COLUMNS[0])?, place(COLUMNS[1])?, place(COLUMNS[2])?, place(COLUMNS[3])?];
        let mut rows = Vec::new();
        for (index, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
            let (line_number, cells) = (index + 1, cells(line));
            let wrong = |expected: String, found: &str| ObservationError::Cell {
                file: file.to_owned(),
                line: line_number,
                expected,
                found: found.to_owned(),
            };
            if cells.len() != heading.len() {
                return Err(wrong(format!("{} cells", heading.len()), line));
            }
            let assigned = |word| assignment(word).ok_or_else(|| wrong(ASSIGNMENT.to_owned(), word));
            let words = cells[outcome].split([' ', ';']).filter(|word| !word.is_empty());
            rows.push(ObservationRow {
                line: line_number,
                test: cells[test].to_owned(),
                placement: cells[placement].to_owned(),
                outcome: words.map(assigned).collect::<Result<_, _>>()?,
                count: cells[count].parse().map_err(|_| wrong("a count of 0 or more".to_owned(), cells[count]))?,
            });
        }
        Ok(Observations { file: file.to_owned(), rows })
    }

    fn wrong(&self, line: usize, expected: String, found: &str) -> ObservationError {
        ObservationError::Cell { file: self.file.clone(), line, expected, found: found.to_owned() }
    }
}

/// Cells on a line, quoted or plain; no cell in an observation table contains a comma.
fn cells(line: &str) -> Vec<&str> {
    line.split(',').map(|cell| cell.trim().trim_matches('"').trim()).collect()
}

/// Content of an outcome cell, for messages.
const ASSIGNMENT: &str = "registers and locations with their values (P1:r0=1 [x]=2)";

/// Parses `P1:r0=1`, `1:r0=1`, `[x]=2` or `x=2`, and normalises the name to the spelling in answers.
fn assignment(word: &str) -> Option<(String, i64)> {
    let (name, value) = word.split_once('=')?;
    let is_plain = |name: &str| name.chars().all(|character| character.is_ascii_alphanumeric() || character == '_');
    let name = match name.split_once(':') {
        Some((thread, register)) => format!("P{}:{register}", thread.strip_prefix('P').unwrap_or(thread)),
        None if name.starts_with('[') => name.to_owned(),
        None if is_plain(name) && !name.is_empty() => format!("[{name}]"),
        None => return None,
    };
    Some((name, value.parse().ok()?))
}

/// Observations in comparison with the outcomes allowed by the model.
#[derive(Clone, Debug, Serialize)]
pub struct ObservationComparison {
    /// The table.
    pub file: String,
    /// Number of tests with table rows and an answer.
    pub tests: usize,
    /// Distinct outcomes observed in the compared tests.
    pub outcomes: usize,
    /// Observation count over all compared tests.
    pub observations: u64,
    /// Outcomes that were observed but are not allowed.
    pub not_allowed: Vec<ObservedOutcome>,
    /// Outcomes that are allowed but were not observed, for tests with observations.
    pub not_observed: Vec<UnobservedOutcome>,
    /// Rows without a matching answer.
    pub left_out: Vec<UnmatchedTest>,
    /// Tests that have an answer but no row.
    pub without_rows: Vec<String>,
}

/// Outcome that was observed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ObservedOutcome {
    /// The test's name in the table.
    pub test: String,
    /// The placement's name in the table.
    pub placement: String,
    /// The outcome, restricted to the table's names.
    pub outcome: String,
    /// Number of observations.
    pub count: u64,
}

/// Outcome that was not observed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UnobservedOutcome {
    /// The test's name in the table.
    pub test: String,
    /// The placement's name in the table.
    pub placement: String,
    /// The outcome, restricted to the table's names.
    pub outcome: String,
    /// True if the outcome is sequentially consistent; `None` if there are too many interleavings.
    pub sequential: Option<bool>,
}

/// Test in the table without an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UnmatchedTest {
    /// The test's name in the table.
    pub test: String,
    /// The placement's name in the table.
    pub placement: String,
    /// Reason for the missing answer.
    pub reason: String,
}

/// Compares `observed` with `answers`. Rows belong to the file `TEST@PLACEMENT.litmus`, or `TEST.litmus` if the
/// placement is empty; in file names `_` replaces `:` and `/`. Tests without an answer and answers without rows are
/// listed separately.
///
/// # Errors
/// If a row names a register or location that its test lacks, or its names differ from the test's other rows.
pub fn compare(answers: &[ModelOutcomes], observed: &Observations) -> Result<ObservationComparison, ObservationError> {
    let mut groups: BTreeMap<(&str, &str), Vec<&ObservationRow>> = BTreeMap::new();
    for row in &observed.rows {
        groups.entry((&row.test, &row.placement)).or_default().push(row);
    }
    let mut comparison = ObservationComparison {
        file: observed.file.clone(),
        tests: 0,
        outcomes: 0,
        observations: 0,
        not_allowed: Vec::new(),
        not_observed: Vec::new(),
        left_out: Vec::new(),
        without_rows: Vec::new(),
    };
    let mut with_rows = BTreeSet::new();
    for ((test, placement), rows) in groups {
        let left_out =
            |reason: String| UnmatchedTest { test: test.to_owned(), placement: placement.to_owned(), reason };
        let name = file_name(test, placement);
        let Some((index, answer)) = answers.iter().enumerate().find(|(_, answer)| answer.stem() == name) else {
            comparison.left_out.push(left_out(format!("there is no file {name}.litmus")));
            continue;
        };
        with_rows.insert(index);
        if let Some(reason) = &answer.reason {
            comparison.left_out.push(left_out(format!("{}: {reason}", answer.verdict.word())));
            continue;
        }
        comparison.add(answer, &TestRows { observed, test, placement, rows })?;
    }
    let without =
        answers.iter().enumerate().filter(|(index, answer)| answer.is_complete() && !with_rows.contains(index));
    comparison.without_rows = without.map(|(_, answer)| answer.stem().to_owned()).collect();
    Ok(comparison)
}

/// File name for a test, without extension.
fn file_name(test: &str, placement: &str) -> String {
    let whole = if placement.is_empty() { test.to_owned() } else { format!("{test}@{placement}") };
    whole.replace([':', '/'], "_")
}

/// Rows for a test and a placement.
struct TestRows<'a> {
    observed: &'a Observations,
    test: &'a str,
    placement: &'a str,
    /// At least a single row.
    rows: Vec<&'a ObservationRow>,
}

impl TestRows<'_> {
    /// Names to which every row assigns a value. Reports an error for unknown names and for differing rows.
    fn names(&self, answer: &ModelOutcomes) -> Result<Vec<&str>, ObservationError> {
        let names: Vec<&str> = self.rows[0].outcome.iter().map(|(name, _)| name.as_str()).collect();
        let known = answer.outcomes.first().map(|outcome| &outcome.values);
        if let Some(stranger) = names.iter().find(|name| known.is_some_and(|known| !known.contains_key(**name))) {
            let listed: Vec<&str> = known.into_iter().flatten().map(|(name, _)| name.as_str()).collect();
            let expected = format!("registers and locations of {} ({})", self.test, listed.join(", "));
            return Err(self.observed.wrong(self.rows[0].line, expected, stranger));
        }
        let differs = |row: &&&ObservationRow| row.outcome.iter().map(|(name, _)| name).ne(names.iter());
        if let Some(row) = self.rows.iter().find(differs) {
            let expected = format!("values of {}, as in line {}", names.join(", "), self.rows[0].line);
            return Err(self.observed.wrong(row.line, expected, &shown(&row.outcome)));
        }
        Ok(names)
    }

    fn observation(&self, outcome: String, count: u64) -> ObservedOutcome {
        ObservedOutcome { test: self.test.to_owned(), placement: self.placement.to_owned(), outcome, count }
    }

    fn unobserved(&self, outcome: String, sequential: Option<bool>) -> UnobservedOutcome {
        UnobservedOutcome { test: self.test.to_owned(), placement: self.placement.to_owned(), outcome, sequential }
    }
}

impl ObservationComparison {
    fn add(&mut self, answer: &ModelOutcomes, group: &TestRows<'_>) -> Result<(), ObservationError> {
        let names = group.names(answer)?;
        let mut counts: BTreeMap<Vec<i64>, u64> = BTreeMap::new();
        for row in group.rows.iter().filter(|row| row.count > 0) {
            let count = counts.entry(row.outcome.iter().map(|(_, value)| *value).collect()).or_default();
            *count = count.saturating_add(row.count);
        }
        // Several outcomes may agree on the table's names; a single sequential outcome is enough.
        let mut allowed: BTreeMap<Vec<i64>, Option<bool>> = BTreeMap::new();
        for outcome in &answer.outcomes {
            let values = names.iter().map(|name| outcome.values[*name]).collect();
            let known = allowed.entry(values).or_insert(outcome.sequential);
            *known = known.zip(outcome.sequential).map(|(one, other)| one || other);
        }
        let line = |values: &[i64]| {
            let words: Vec<String> = names.iter().zip(values).map(|(name, value)| format!("{name}={value}")).collect();
            words.join(" ")
        };
        self.tests += 1;
        self.outcomes += counts.len();
        self.observations = counts.values().fold(self.observations, |sum, count| sum.saturating_add(*count));
        let strange = counts.iter().filter(|(values, _)| !allowed.contains_key(*values));
        self.not_allowed.extend(strange.map(|(values, count)| group.observation(line(values), *count)));
        let unseen = allowed.iter().filter(|(values, _)| !counts.contains_key(*values));
        self.not_observed.extend(unseen.map(|(values, sequential)| group.unobserved(line(values), *sequential)));
        Ok(())
    }
}

fn shown(outcome: &[(String, i64)]) -> String {
    outcome.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::super::Case;
    use super::*;

    const STORES: &str = "PTX SB {x=0; y=0;} P0@cta 0,gpu 0 | P1@cta 1,gpu 0 ; st.weak x,1 | st.weak y,1 ;
        fence.sc.gpu | fence.sc.gpu ; ld.weak r0,y | ld.weak r0,x ; exists (P0:r0 = 0 /\\ P1:r0 = 0)";

    fn compared(rows: &str) -> Result<ObservationComparison, ObservationError> {
        let answers = [Case::parse("f/shapes_SB@far.litmus", STORES), Case::parse("f/Looping.litmus", "")];
        let answers = answers.map(|case| case.answer());
        let table = Observations::parse("seen.csv", &format!("placement,count,test,mode,outcome\n{rows}"))?;
        compare(&answers, &table)
    }

    #[test]
    fn outcomes_are_listed_where_model_and_device_differ() {
        let rows = "far,7,shapes:SB,plain,P0:r0=1 P1:r0=1 [x]=1 [y]=1\nfar,2,shapes:SB,warm,P0:r0=1 P1:r0=1 [x]=1 [y]=1\n\
            far,1,shapes:SB,plain,P0:r0=0 P1:r0=0 [x]=1 [y]=1\nfar,0,shapes:SB,plain,P0:r0=0 P1:r0=1 [x]=1 [y]=1\n";
        let comparison = compared(rows).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((comparison.tests, comparison.outcomes, comparison.observations), (1, 2, 10));
        let (test, placement) = ("shapes:SB".to_owned(), "far".to_owned());
        let outcome = "P0:r0=0 P1:r0=0 [x]=1 [y]=1".to_owned();
        assert_eq!(comparison.not_allowed, [ObservedOutcome { test, placement, outcome, count: 1 }]);
        let unseen: Vec<_> = comparison.not_observed.iter().map(|one| (one.outcome.as_str(), one.sequential)).collect();
        let seen = Some(true);
        assert_eq!(unseen, [("P0:r0=0 P1:r0=1 [x]=1 [y]=1", seen), ("P0:r0=1 P1:r0=0 [x]=1 [y]=1", seen)]);
    }

    #[test]
    fn a_table_may_name_a_part_of_the_outcome_and_write_it_otherwise() {
        let comparison = compared("far,3,shapes/SB,a,0:r0=1; 1:r0=1\n").unwrap_or_else(|error| panic!("{error}"));
        assert!(comparison.not_allowed.is_empty());
        let comparison = compared("far,3,shapes:SB,a,\"x=2 [y]=1\"\n").unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(comparison.not_allowed[0].outcome, "[x]=2 [y]=1");
        assert_eq!(comparison.not_observed[0].outcome, "[x]=1 [y]=1");
    }

    #[test]
    fn rows_and_tests_without_each_other_are_named() {
        let comparison = compared("near,1,SB,a,x=1\n,1,Looping,a,x=1\n").unwrap_or_else(|error| panic!("{error}"));
        let reasons: Vec<&str> = comparison.left_out.iter().map(|one| one.reason.as_str()).collect();
        assert!(
            reasons[0].starts_with("unreadable: ") && reasons[1] == "there is no file SB@near.litmus",
            "{reasons:?}"
        );
        assert_eq!((comparison.tests, &comparison.without_rows[..]), (0, &["shapes_SB@far".to_owned()][..]));
    }

    #[test]
    fn an_error_names_line_content_and_what_is_allowed() {
        let error = |rows: &str| compared(rows).expect_err(rows).to_string();
        assert_eq!(error("far,-1,shapes:SB,a,x=1\n"), "seen.csv:2: expected a count of 0 or more, found \"-1\"");
        assert!(error("far,1,shapes:SB,a,x\n").starts_with("seen.csv:2: expected registers and locations with"));
        assert_eq!(error("far,1,shapes:SB,a\n"), "seen.csv:2: expected 5 cells, found \"far,1,shapes:SB,a\"");
        let unknown =
            "seen.csv:2: expected registers and locations of shapes:SB (P0:r0, P1:r0, [x], [y]), found \"[z]\"";
        assert_eq!(error("far,1,shapes:SB,a,z=1\n"), unknown);
        let other = "seen.csv:3: expected values of [x], as in line 2, found \"[y]=1\"";
        assert_eq!(error("far,1,shapes:SB,a,x=1\nfar,1,shapes:SB,a,y=1\n"), other);
        let error = Observations::parse("seen.csv", "test,placement,outcome\n").unwrap_err();
        assert!(error.to_string().ends_with("found no column count"), "{error}");
    }
}
