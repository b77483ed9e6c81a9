//! A figure: chart area, numbers, and the paper's values.

use super::{Charts, chart};
use crate::document::{ChartKind, Document, Figure};
use crate::drawing::{self, Surface};
use crate::number::{number, quantity};
use maud::{Markup, PreEscaped, html};
use tombolo_metrics::Metric;

/// Shows a figure in a document: title, caption, chart, remarks and tables.
pub(super) fn section(document: &Document, figure: &Figure, charts: Charts) -> Markup {
    let drawn = drawing::is_drawn(figure);
    let is_live = charts == Charts::Live && chart::is_live(figure);
    html! {
        section.figure id=(super::part(document, &figure.id)) {
            div.drawing {
                h3 { (figure.title) }
                @if !figure.caption.is_empty() { p.caption { (figure.caption) } }
                @if !figure.left_out.is_empty() { p.caption { (figure.left_out) } }
                @if !figure.has_numbers() {
                    p.remark { "There is nothing to draw: no point of this figure has a result." }
                } @else if drawn {
                    @if is_live {
                        div.legend role="group" aria-label="What is drawn" {}
                        div.scroll { div.chart tabindex="0" role="group" aria-roledescription="chart" aria-label=(spoken(figure)) {} }
                        p.unseen.reading aria-live="polite" {}
                    } @else {
                        (still(document, figure))
                    }
                }
                (remarks(figure))
            }
            @if !figure.rows.is_empty() {
                details open[!drawn] {
                    summary { "Numbers" @if !figure.chart.unit.is_empty() { " in " (figure.chart.unit) } }
                    (table(document, figure))
                }
                @if charts == Charts::Live { button.download type="button" hidden { "Download CSV" } }
            }
            @if !figure.published.is_empty() { (published(figure)) }
        }
    }
}

/// Shows the chart as a drawing, whose marks link to their runs.
fn still(document: &Document, figure: &Figure) -> Markup {
    let anchor = |run: usize| super::run(document, run).map(|name| format!("#{name}"));
    let svg = drawing::svg(figure, Surface::Page, &anchor).unwrap_or_default();
    html! { div.scroll.still tabindex="0" role="region" aria-label={ "Chart of " (figure.title) } { (PreEscaped(svg)) } }
}

/// Explains whiskers and daggers under the chart.
fn remarks(figure: &Figure) -> Markup {
    let evidence = &figure.evidence;
    let label = |row: &usize| figure.rows.get(*row).map_or("", |row| row.label.as_str());
    html! {
        @if !evidence.repeated.is_empty() {
            p.caption { "Whiskers: the least and the greatest over " (evidence.repeated) "." }
        }
        @for (text, rows) in evidence.distinct_remarks() {
            p.caption { "† " (rows.iter().map(label).collect::<Vec<_>>().join(", ")) ": " (text) }
        }
    }
}

/// Returns the text for a screen reader about the chart.
fn spoken(figure: &Figure) -> String {
    format!(
        "{}. {} over {}. Arrow keys read one value after another; all are in the table below.",
        figure.title,
        column(&figure.chart.y),
        column(&figure.chart.x)
    )
}

/// Returns the header text for a column: a counter by name and unit, and any different header unchanged.
pub(crate) fn column(head: &str) -> String {
    tombolo_metrics::find(head).map_or_else(|| head.to_owned(), Metric::label)
}

fn table(document: &Document, figure: &Figure) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label={ "Numbers of " (figure.title) } {
            table.numbers {
                thead {
                    tr {
                        @for head in &figure.columns {
                            th scope="col" title=[tombolo_metrics::find(head).map(|metric| &metric.about)] { (column(head)) }
                        }
                    }
                }
                tbody { @for row in 0..figure.rows.len() { (line(document, figure, row)) } }
            }
        }
    }
}

fn line(document: &Document, figure: &Figure, at: usize) -> Markup {
    let row = &figure.rows[at];
    html! {
        tr.summary[row.summary] {
            th scope="row" { (row.label) @if figure.evidence.is_flagged(at) { " †" } }
            @for (index, column) in figure.series().iter().enumerate() {
                td {
                    @match figure.evidence.run(at, index).and_then(|run| super::run(document, run)) {
                        Some(run) => a href={ "#" (run) } { (number(row.value(index))) },
                        None => (number(row.value(index))),
                    }
                    @for stated in figure.published_at(&row.label, column) {
                        " " span.stated title=(stated.source) { "◇ " (number(Some(stated.value))) }
                    }
                    @if let Some([low, high]) = figure.evidence.range(at, index) {
                        " " span.stated { (number(Some(low))) " to " (number(Some(high))) }
                    }
                }
            }
        }
    }
}

/// Shows the paper's values next to ours.
fn published(figure: &Figure) -> Markup {
    let number_column = |name: &str| figure.series().iter().position(|column| column == name);
    let ours = |row: &str, name: &str| {
        let row = figure.rows.iter().find(|candidate| candidate.label == row)?;
        row.value(number_column(name)?)
    };
    html! {
        details open[figure.chart.kind != ChartKind::Table] {
            summary { "What the paper states" }
            div.scroll tabindex="0" role="region" aria-label={ "What the paper states of " (figure.title) } {
                table.plain {
                    thead {
                        tr {
                            th scope="col" { (figure.columns.first().map_or("Row", |head| head.as_str())) }
                            th scope="col" { "Column" }
                            th.n scope="col" { "Paper" }
                            th.n scope="col" { "Ours" }
                            th scope="col" { "Where the paper states it" }
                        }
                    }
                    tbody {
                        @for stated in &figure.published {
                            tr {
                                th scope="row" { (stated.row) }
                                td { (column(&stated.column)) }
                                td.n { "◇ " (quantity(Some(stated.value), &figure.chart.unit)) }
                                td.n { (quantity(ours(&stated.row, &stated.column), &figure.chart.unit)) }
                                td.words { (stated.source) }
                            }
                        }
                    }
                }
            }
        }
    }
}
