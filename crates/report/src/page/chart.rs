//! Input for the page script: the figures to draw, embedded in the page in JSON form.

use super::figure::column;
use crate::document::{ChartKind, Document, Figure};
use crate::drawing::is_drawn;
use crate::number::quantity;
use serde::Serialize;

/// True if the script draws `figure`. Heat maps are excluded, because their cells already hold their numbers.
pub(super) fn is_live(figure: &Figure) -> bool {
    is_drawn(figure) && figure.chart.kind != ChartKind::Heat
}

/// A figure for the script. Figures without a drawing are also included, because readers can download their tables.
#[derive(Serialize)]
struct Drawing<'a> {
    /// Name of the file for a downloaded table, without extension.
    file: String,
    drawn: bool,
    kind: ChartKind,
    x: String,
    y: String,
    log: bool,
    reference: Option<f64>,
    /// Column headers from the document, for the downloaded file.
    columns: &'a [String],
    /// Headers of the numeric columns, for people.
    series: Vec<String>,
    labels: Vec<&'a str>,
    /// Row indices of the summary rows.
    summaries: Vec<usize>,
    /// Numbers by row, one per series.
    values: Vec<Vec<Option<f64>>>,
    stated: Vec<PublishedValue<'a>>,
    /// Address of the run behind each number, if the page shows the run.
    runs: Vec<Vec<Option<String>>>,
}

/// A value from the paper with a position among the numbers.
#[derive(Serialize)]
struct PublishedValue<'a> {
    row: usize,
    series: usize,
    value: f64,
    /// The value with unit, formatted for people.
    text: String,
    source: &'a str,
}

/// Returns the JSON for all figures with a table in `documents`, in page order.
pub(super) fn data(documents: &[Document]) -> String {
    let figures = documents.iter().flat_map(|document| document.figures.iter().map(move |figure| (document, figure)));
    let drawings: Vec<_> = figures.map(|(document, figure)| drawing(document, figure)).collect();
    let json = serde_json::to_string(&drawings).expect("keys are strings and nothing else can fail");
    // Inside a script element, only this character could end the element or begin a comment; in JSON it occurs only in
    // strings.
    json.replace('<', "\\u003c")
}

fn drawing<'a>(document: &Document, figure: &'a Figure) -> Drawing<'a> {
    let unit = &figure.chart.unit;
    let y = column(&figure.chart.y);
    let of = if figure.chart.series.is_empty() { String::new() } else { format!("{} ", figure.chart.series) };
    Drawing {
        file: format!("{}-{}", super::anchor(&document.paper), super::anchor(&figure.id)),
        drawn: is_live(figure),
        kind: match figure.chart.kind {
            // In place of a heat map, a line chart shows equal numbers with a line per column.
            ChartKind::Heat => ChartKind::Lines,
            kind => kind,
        },
        x: column(&figure.chart.x),
        y: if unit.is_empty() { y } else { format!("{y} ({unit})") },
        log: figure.chart.log_y,
        reference: figure.chart.reference.filter(|value| value.is_finite()),
        columns: &figure.columns,
        series: figure.series().iter().map(|head| format!("{of}{}", column(head))).collect(),
        labels: figure.rows.iter().map(|row| row.label.as_str()).collect(),
        summaries: (0..figure.rows.len()).filter(|row| figure.rows[*row].summary).collect(),
        values: figure
            .rows
            .iter()
            .map(|row| (0..figure.series().len()).map(|index| row.value(index)).collect())
            .collect(),
        stated: stated(figure),
        runs: runs(document, figure),
    }
}

fn runs(document: &Document, figure: &Figure) -> Vec<Vec<Option<String>>> {
    let run = |row, column| super::run(document, figure.evidence.run(row, column)?);
    let of_row = |row| (0..figure.series().len()).map(|column| run(row, column)).collect();
    if figure.evidence.cells.is_empty() { Vec::new() } else { (0..figure.rows.len()).map(of_row).collect() }
}

fn stated(figure: &Figure) -> Vec<PublishedValue<'_>> {
    let place = |published: &crate::document::PublishedNumber| {
        let row = figure.rows.iter().position(|row| row.label == published.row)?;
        let series = figure.series().iter().position(|column| *column == published.column)?;
        published.value.is_finite().then_some((row, series))
    };
    let placed = figure.published.iter().filter_map(|published| Some((place(published)?, published)));
    placed
        .map(|((row, series), published)| PublishedValue {
            row,
            series,
            value: published.value,
            text: quantity(Some(published.value), &figure.chart.unit),
            source: &published.source,
        })
        .collect()
}
