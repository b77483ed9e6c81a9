//! Figures as files for papers: a drawing, its numbers, and the source of a drawing made with LaTeX.

use crate::document::{Document, Figure};
use crate::drawing::{self, Surface};
use crate::page;
use crate::tex;

/// Marker for a missing number, recognised by spreadsheets, `pandas` and `pgfplots`.
const MISSING: &str = "nan";

/// A figure in the form of several files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FigureFiles {
    /// File name without extension, common to all files.
    pub name: String,
    /// SVG drawing, with the width of a column (3.3 inches) or of both columns (7 inches), and text with 8 points.
    pub svg: String,
    /// Numbers in CSV: see [`csv`].
    pub csv: String,
    /// Source for `pgfplots`, which reads the numbers from the adjacent `.csv` file.
    pub tex: String,
}

/// Returns a document's short name, usable for a folder.
pub fn folder_name(document: &Document) -> String {
    page::anchor(&document.paper)
}

/// Returns the files for the drawn figures in a document, in order. File names are unique.
pub fn figures(document: &Document) -> Vec<FigureFiles> {
    let mut taken: Vec<String> = Vec::new();
    let files = |figure: &Figure| {
        let id = page::anchor(&figure.id);
        let mut names = std::iter::once(id.clone()).chain((2..).map(|count| format!("{id}-{count}")));
        let name = names.find(|name| !taken.contains(name)).expect("there is always a further number");
        taken.push(name.clone());
        let svg = drawing::svg(figure, Surface::Paper, &|_| None)?;
        let tex = tex::source(figure, &format!("{name}.csv"));
        Some(FigureFiles {
            name,
            svg: format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{svg}\n"),
            csv: csv(figure),
            tex,
        })
    };
    document.figures.iter().filter_map(files).collect()
}

/// Formats the numbers in a figure with full precision, a line per row. A line holds the row's label and a number per
/// column. For each column with ranges or paper values, the ends of the ranges and the paper's value follow, and
/// finally the remarks on the row. Missing numbers are `nan`. Cells contain no commas or quotes, and every reader
/// accepts them: semicolons and apostrophes replace them.
pub fn csv(figure: &Figure) -> String {
    let mut columns = figure.columns.iter().map(|head| cell(&page::column(head))).collect::<Vec<_>>();
    let mut lines: Vec<Vec<String>> = figure.rows.iter().map(|row| vec![cell(&row.label)]).collect();
    let mut add = |head: Option<String>, number: &dyn Fn(usize) -> Option<f64>| {
        columns.extend(head);
        for (row, line) in lines.iter_mut().enumerate() {
            line.push(number(row).map_or_else(|| MISSING.to_owned(), |value| value.to_string()));
        }
    };
    for series in 0..figure.series().len() {
        add(None, &|row| figure.rows[row].value(series));
    }
    for column in beside(figure) {
        add(Some(cell(&column.head)), &|row| column.values[row]);
    }
    if !figure.evidence.remarks.is_empty() {
        columns.push("remarks".to_owned());
        for (row, line) in lines.iter_mut().enumerate() {
            let texts = figure.evidence.remarks.iter().filter(|remark| remark.row == row).map(|remark| &*remark.text);
            line.push(cell(&texts.collect::<Vec<_>>().join("; ")));
        }
    }
    let all = std::iter::once(columns).chain(lines);
    all.map(|line| format!("{}\r\n", line.join(","))).collect()
}

/// Contents of an additional column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ColumnKind {
    /// Lower ends of ranges.
    Least,
    /// Upper ends of ranges.
    Greatest,
    /// Values stated by the paper.
    Stated,
}

/// An additional column next to a figure's own columns.
pub(crate) struct Column {
    pub(crate) series: usize,
    pub(crate) holds: ColumnKind,
    pub(crate) head: String,
    /// Values, one per row.
    pub(crate) values: Vec<Option<f64>>,
}

/// Returns the additional columns of a figure, in file order.
pub(crate) fn beside(figure: &Figure) -> Vec<Column> {
    let mut columns = Vec::new();
    for (series, head) in figure.series().iter().enumerate() {
        let stated = |row: usize| {
            let mut values = figure.published_at(&figure.rows[row].label, head).map(|stated| stated.value);
            values.find(|value| value.is_finite())
        };
        let range = |row: usize, end: usize| figure.evidence.range(row, series).map(|range| range[end]);
        for (holds, name) in [
            (ColumnKind::Least, "least"),
            (ColumnKind::Greatest, "greatest"),
            (ColumnKind::Stated, "stated by the paper"),
        ] {
            let value = |row: usize| match holds {
                ColumnKind::Least => range(row, 0),
                ColumnKind::Greatest => range(row, 1),
                ColumnKind::Stated => stated(row),
            };
            let values: Vec<Option<f64>> = (0..figure.rows.len()).map(value).collect();
            if values.iter().any(Option::is_some) {
                columns.push(Column { series, holds, head: format!("{} ({name})", page::column(head)), values });
            }
        }
    }
    columns
}

/// Replaces characters in a cell that some readers do not accept.
fn cell(text: &str) -> String {
    let plain = |c: char| match c {
        ',' => ';',
        '"' => '\'',
        c if c.is_control() => ' ',
        c => c,
    };
    text.chars().map(plain).collect()
}
