//! Tables and numbers that are built from kept results.

use crate::kept::{KeptFigure, KeptReport, KeptRow, Results};
use crate::marker::Marker;
use regex::{Captures, Regex};
use tombolo_report::document::{ClaimKind, Verdict};

/// Placeholder for a missing number.
const MISSING: &str = "–";
/// Separator between the parts of a source: figure, row, column.
const PART: &str = " > ";
/// Separator between columns for which the maximum is shown.
const OR: &str = " | ";
/// Separator between two sources for which the ratio is shown.
const OVER: &str = " / ";
/// A number in the text with a link to the kept result behind it: number, folder, name, source.
const LINK: &str = r#"\[([^\[\]]*)\]\(([^()" ]*results/)([a-z0-9-]+)\.json "([^"]*)"\)"#;

/// A result, or the name of the kept results that are missing.
pub(crate) enum KeptLookup<T> {
    Whole(T),
    Lacks(String),
}

/// Builds the rows for the table below a marker.
///
/// # Errors
///
/// Figures, columns or claims that are not kept.
pub(crate) fn rows(marker: &Marker, results: &Results) -> Result<KeptLookup<Vec<String>>, String> {
    let names: &[String] = match marker {
        Marker::Table { name, .. } | Marker::Columns { name, .. } | Marker::Claims { name, .. } => {
            std::slice::from_ref(name)
        }
        Marker::Verdicts { names } => names,
        Marker::Run { .. } | Marker::File { .. } | Marker::Keep { .. } => &[],
    };
    let mut kept = Vec::new();
    for name in names {
        match results.get(name)? {
            Some(one) => kept.push(one),
            None => return Ok(KeptLookup::Lacks(name.clone())),
        }
    }
    Ok(KeptLookup::Whole(match marker {
        Marker::Table { digits, sources, .. } => {
            let label = |row: &KeptRow| if row.summary { format!("**{}**", row.label) } else { row.label.clone() };
            let rows = first(&kept[0], sources)?.rows.iter().map(|row| (label(row), SourcePart::Row(&row.label)));
            table(&kept[0], *digits, sources, rows.collect())?
        }
        Marker::Columns { digits, sources, .. } => {
            let columns = &first(&kept[0], sources)?.columns;
            let rows = columns.iter().map(|column| (column.clone(), SourcePart::Column(column)));
            table(&kept[0], *digits, sources, rows.collect())?
        }
        Marker::Claims { digits, ids, .. } => claims(&kept[0], *digits, ids)?,
        _ => kept.iter().map(verdicts).collect(),
    }))
}

/// The part of a source that a table row supplies.
#[derive(Clone, Copy)]
enum SourcePart<'a> {
    /// Sources are `FIGURE > COLUMN`.
    Row(&'a str),
    /// Sources are `FIGURE > ROW`.
    Column(&'a str),
    /// Sources are `FIGURE > ROW > COLUMN`.
    Whole,
}

/// The figure named by the first source.
fn first<'a>(kept: &'a KeptReport, sources: &[String]) -> Result<&'a KeptFigure, String> {
    kept.figure(sources.first().and_then(|source| source.split(PART).next()).unwrap_or_default())
}

/// A row for each label and place, a cell for each source.
fn table(
    kept: &KeptReport,
    digits: usize,
    sources: &[String],
    rows: Vec<(String, SourcePart<'_>)>,
) -> Result<Vec<String>, String> {
    let row = |(label, place): (String, SourcePart<'_>)| {
        let cell = |source: &String| {
            let value = value(kept, source, place)?;
            Ok(value.map_or_else(|| MISSING.to_owned(), |value| format!("{value:.digits$}")))
        };
        let cells: Result<Vec<String>, String> = sources.iter().map(cell).collect();
        Ok(line(&[vec![label], cells?].concat()))
    };
    rows.into_iter().map(row).collect()
}

/// A row for each claim: its text, the measured value, the paper's value.
fn claims(kept: &KeptReport, digits: usize, ids: &[String]) -> Result<Vec<String>, String> {
    let row = |id: &String| {
        let claim = kept.claims.iter().find(|claim| claim.id == *id);
        let claim = claim.ok_or_else(|| {
            let known: Vec<&str> = kept.claims.iter().map(|claim| claim.id.as_str()).collect();
            format!("no claim `{id}` is kept: expected one of `{}`", known.join("`, `"))
        })?;
        let unit = if claim.unit.is_empty() { String::new() } else { format!(" {}", claim.unit) };
        let measured = claim.measured.map(|measured| format!("{measured:.digits$}{unit}"));
        let stated = claim.paper.map(|paper| format!("{paper}{unit}")).unwrap_or_default();
        Ok(line(&[claim.text.clone(), measured.unwrap_or_else(|| MISSING.to_owned()), stated]))
    };
    ids.iter().map(row).collect()
}

/// Number of direction claims in a reproduction, by verdict.
fn verdicts(kept: &KeptReport) -> String {
    let count = |verdict| {
        let directions = kept.claims.iter().filter(|claim| claim.kind == ClaimKind::Direction);
        directions.filter(|claim| claim.verdict == verdict).count().to_string()
    };
    let counts = [Verdict::Holds, Verdict::Fails, Verdict::NotRobust].map(count);
    line(&[vec![kept.paper.clone()], counts.to_vec()].concat())
}

fn line(cells: &[String]) -> String {
    format!("| {} |", cells.join(" | "))
}

/// The value of a source: a cell, the maximum over several cells, or the ratio between two.
fn value(kept: &KeptReport, source: &str, place: SourcePart<'_>) -> Result<Option<f64>, String> {
    let cell = |source: &str| {
        let parts: Vec<&str> = source.split(PART).map(str::trim).collect();
        let (figure, row, columns) = match (&parts[..], place) {
            ([figure, columns], SourcePart::Row(row)) => (figure, row, *columns),
            ([figure, row], SourcePart::Column(column)) => (figure, *row, column),
            ([figure, row, columns], SourcePart::Whole) => (figure, *row, *columns),
            (_, SourcePart::Row(_)) => return Err(format!("`{source}`: expected `FIGURE > COLUMN`")),
            (_, SourcePart::Column(_)) => return Err(format!("`{source}`: expected `FIGURE > ROW`")),
            (_, SourcePart::Whole) => return Err(format!("`{source}`: expected `FIGURE > ROW > COLUMN`")),
        };
        let values: Result<Vec<_>, String> = columns.split(OR).map(|column| kept.cell(figure, row, column)).collect();
        // A failed point may have been the maximum.
        let values: Option<Vec<f64>> = values?.into_iter().collect();
        Ok(values.and_then(|values| values.into_iter().reduce(f64::max)))
    };
    match source.split_once(OVER) {
        None => cell(source),
        Some((above, below)) => Ok(cell(above)?.zip(cell(below)?).map(|(above, below)| above / below)),
    }
}

/// Updates all numbers in a text line that link to kept results, or reports the missing results.
///
/// # Errors
///
/// Sources that are not kept, and linked text that is not a number.
pub(crate) fn numbers(text: &str, results: &Results) -> Result<KeptLookup<String>, String> {
    if !text.contains(".json \"") {
        return Ok(KeptLookup::Whole(text.to_owned()));
    }
    let link = Regex::new(LINK).expect("a pattern that was tried");
    let mut made = String::new();
    let mut at = 0;
    for found in link.captures_iter(text) {
        let whole = found.get(0).expect("a match has a whole");
        let Some(kept) = results.get(&found[3])? else { return Ok(KeptLookup::Lacks(found[3].to_owned())) };
        made += &text[at..whole.start()];
        made += &number(&found, &kept)?;
        at = whole.end();
    }
    Ok(KeptLookup::Whole(made + &text[at..]))
}

/// A link with the number from its source, in the number of digits and the unit as written.
fn number(link: &Captures<'_>, kept: &KeptReport) -> Result<String, String> {
    let (shown, source) = (&link[1], &link[4]);
    let (digits, factor, unit) = match shown.strip_suffix(" %") {
        Some(digits) => (digits, 100.0, " %"),
        None => (shown, 1.0, ""),
    };
    if digits.parse::<f64>().is_err() {
        return Err(format!("`{shown}`: expected a number, such as `1.05` or `5 %`"));
    }
    let decimals = digits.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    let value = value(kept, source, SourcePart::Whole)?.ok_or_else(|| format!("`{source}` has no number"))?;
    Ok(format!("[{:.decimals$}{unit}]({}{}.json \"{source}\")", value * factor, &link[2], &link[3]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kept::tests::kept;

    fn results(test: impl FnOnce(&Results)) {
        let folder = tempfile::tempdir().unwrap();
        let results = Results { folder: folder.path().to_owned() };
        results.keep("hmg", &kept()).unwrap();
        test(&results);
    }

    fn rows_of(marker: &str) -> Result<Vec<String>, String> {
        let mut made = Ok(Vec::new());
        let marker = Marker::parse(marker).unwrap().unwrap();
        results(|results| {
            made = rows(&marker, results).map(|made| match made {
                KeptLookup::Whole(rows) => rows,
                KeptLookup::Lacks(name) => vec![format!("lacks {name}")],
            });
        });
        made
    }

    fn text_of(text: &str) -> Result<String, String> {
        let mut made = Ok(String::new());
        results(|results| {
            made = numbers(text, results).map(|made| match made {
                KeptLookup::Whole(text) => text,
                KeptLookup::Lacks(name) => format!("lacks {name}"),
            });
        });
        made
    }

    #[test]
    fn a_table_has_a_row_for_each_of_its_first_figure() {
        let rows = rows_of("table hmg 2: figure-8 > hmg; figure-8 > hmg / figure-8 > nhcc; figure-9 > hmg");
        assert_eq!(rows.unwrap(), ["| bfs | 10.00 | 1.25 | 2.00 |", "| **mean** | 1.50 | 1.20 | – |"]);
    }

    #[test]
    fn columns_of_a_figure_may_be_rows() {
        let rows = rows_of("columns hmg 1: figure-8 > mean; figure-8 > bfs; figure-9 > bfs");
        assert_eq!(rows.unwrap(), ["| nhcc | 1.2 | 8.0 | 0.5 |", "| hmg | 1.5 | 10.0 | 2.0 |"]);
        assert!(rows_of("columns hmg 1: figure-8").unwrap_err().contains("`FIGURE > ROW`"));
    }

    #[test]
    fn the_greatest_of_several_columns_is_one_cell() {
        let rows = rows_of("table hmg 1: figure-8 > nhcc | hmg; figure-9 > hmg | nhcc");
        assert_eq!(rows.unwrap(), ["| bfs | 10.0 | 2.0 |", "| **mean** | 1.5 | – |"]);
    }

    #[test]
    fn claims_have_a_row_each() {
        let rows = rows_of("claims hmg 3: ideal over-nhcc");
        assert_eq!(rows.unwrap(), ["| text of ideal | 0.938 | 1.18 |", "| text of over-nhcc | 1.078 | 1.18 |"]);
        assert!(rows_of("claims hmg 3: other").unwrap_err().contains("`over-nhcc`, `ideal`"));
    }

    #[test]
    fn directions_alone_are_counted_by_verdict() {
        assert_eq!(rows_of("verdicts: hmg").unwrap(), ["| hmg | 1 | 0 | 0 |"]);
    }

    #[test]
    fn what_was_never_kept_is_told() {
        assert_eq!(rows_of("verdicts: hmg gps").unwrap(), ["lacks gps"]);
        assert_eq!(text_of("[1](results/gps.json \"f > r > c\")").unwrap(), "lacks gps");
    }

    #[test]
    fn a_number_has_the_digits_and_the_unit_that_are_written() {
        let text = "at [9.9](docs/results/hmg.json \"figure-8 > bfs > hmg\") and [1 %](results/hmg.json \"figure-8 > mean > nhcc / figure-8 > mean > hmg\").";
        let made = "at [10.0](docs/results/hmg.json \"figure-8 > bfs > hmg\") and [83 %](results/hmg.json \"figure-8 > mean > nhcc / figure-8 > mean > hmg\").";
        assert_eq!(text_of(text).unwrap(), made);
    }

    #[test]
    fn a_link_that_names_no_number_is_refused() {
        assert!(text_of("[ten](results/hmg.json \"figure-8 > bfs > hmg\")").unwrap_err().contains("`ten`"));
        assert!(text_of("[1](results/hmg.json \"figure-8 > hmg\")").unwrap_err().contains("FIGURE > ROW > COLUMN"));
        assert!(text_of("[1](results/hmg.json \"figure-8 > mst > hmg\")").unwrap_err().contains("no number"));
    }
}
