//! Renders documents to a single HTML file without dependencies. Its charts are drawings, and no script runs. With
//! [`Charts::Live`], a script and a chart library draw the charts from equal numbers. Tables show the numbers in either
//! case.
//!
//! - [`claims`], [`figure`], [`runs`], [`configuration`]: parts of a page. [`chart`]: input of the drawing script.
//! - [`asset`]: the style, the script and the chart library, as files.
//!
//! Every string in a document is escaped at output. The page's own policy admits no script except the two in [`asset`].

mod asset;
mod chart;
mod claims;
mod configuration;
mod figure;
mod runs;

pub(crate) use figure::column;

use crate::document::{Document, Failure, Figure};
use crate::drawing::{self, Surface};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use std::collections::BTreeSet;

/// Drawing method for the charts of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Charts {
    /// Static drawings inside the page.
    Still,
    /// Charts drawn by a script, which reacts to the pointer and to keys.
    Live,
}

/// Returns a self-contained page that shows `documents` in order.
pub(crate) fn page(documents: &[Document], charts: Charts) -> String {
    let title = title(documents);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(asset::policy(charts));
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                style { (PreEscaped(asset::STYLE)) @if charts == Charts::Live { (PreEscaped(asset::LIVE_STYLE)) } }
            }
            body {
                a.skip href="#content" { "Skip to content" }
                (contents(documents))
                main #content {
                    @match charts {
                        Charts::Still => (hatches(documents)),
                        Charts::Live => noscript { p.remark { "Charts need JavaScript. Every number is in the tables." } }
                    }
                    @for document in documents { (article(document, documents.len() > 1, charts)) }
                    footer { "Made by Tombolo. This file needs no network." }
                }
                @if charts == Charts::Live {
                    script type="application/json" #charts { (PreEscaped(chart::data(documents))) }
                    script { (PreEscaped(asset::ECHARTS)) }
                    script { (PreEscaped(asset::SCRIPT)) }
                }
            }
        }
    };
    page.into_string()
}

/// Returns the hatch patterns for bars, defined once for all drawings on the page.
fn hatches(documents: &[Document]) -> Markup {
    let figures = documents.iter().flat_map(|document| &document.figures);
    let looks: BTreeSet<usize> = figures.flat_map(Figure::looks).collect();
    let looks: Vec<usize> = looks.into_iter().collect();
    html! { svg.unseen aria-hidden="true" { (PreEscaped(drawing::patterns(Surface::Page, &looks))) } }
}

fn title(documents: &[Document]) -> String {
    match documents {
        [one] => one.title.clone(),
        several => format!("{} reports", several.len()),
    }
}

/// Shows the navigation links at the side of the page.
fn contents(documents: &[Document]) -> Markup {
    html! {
        nav.contents aria-label="Contents" {
            p.brand { "Tombolo" }
            @for document in documents {
                a.document href={ "#" (anchor(&document.paper)) } { (document.title) }
                ul {
                    @for (name, there) in parts(document) {
                        @if there { li { a href={ "#" (part(document, name)) } { (name) } } }
                        @if name == "Claims" {
                            @for figure in &document.figures {
                                li { a href={ "#" (part(document, &figure.id)) } { (figure.title) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Heading of the runs.
const RUNS: &str = "Runs";

/// Returns the headings of a document's parts, each with a flag for its presence; figures follow the claims.
fn parts(document: &Document) -> [(&'static str, bool); 6] {
    [
        ("Claims", !document.claims.is_empty()),
        ("Failures", !document.failures.is_empty()),
        (RUNS, !document.runs.is_empty()),
        ("Machines, designs, workloads", !document.configurations.is_empty()),
        ("How to repeat it", true),
        ("Notes", has_notes(document)),
    ]
}

fn article(document: &Document, one_of_several: bool, charts: Charts) -> Markup {
    html! {
        article id=(anchor(&document.paper)) {
            header {
                @if one_of_several { h2.title { (document.title) } } @else { h1.title { (document.title) } }
                dl.facts {
                    div { dt { "Name" } dd { code { (document.paper) } } }
                    @if !document.readings.is_empty() { div { dt { "Readings" } dd { (document.readings) } } }
                    div { dt { "Scale" } dd { (document.scale) } }
                    div { dt { "Tombolo" } dd { (document.tombolo) } }
                }
                (claims::tally(&document.claims))
                @if !document.failures.is_empty() {
                    p.remark {
                        @match document.failures.len() { 1 => "One point failed", many => { (many) " points failed" } }
                        ": figures and claims lack what failed. "
                        a href={ "#" (part(document, "Failures")) } { "What failed and why" }
                    }
                }
            }
            @if !document.claims.is_empty() { (section(document, "Claims", &claims::table(&document.claims))) }
            @for figure in &document.figures { (figure::section(document, figure, charts)) }
            @if !document.failures.is_empty() { (section(document, "Failures", &failures(&document.failures))) }
            @if !document.runs.is_empty() { (section(document, RUNS, &runs::table(document))) }
            @if !document.configurations.is_empty() {
                (section(document, "Machines, designs, workloads", &configuration::list(&document.configurations)))
            }
            (section(document, "How to repeat it", &repeat(document)))
            @if has_notes(document) {
                (section(document, "Notes", &html! { ul { @for note in notes(document) { li { (note) } } } }))
            }
        }
    }
}

fn section(document: &Document, heading: &str, body: &Markup) -> Markup {
    html! {
        section id=(part(document, heading)) {
            h3 { (heading) }
            (body)
        }
    }
}

/// Returns the notes that do not already appear as a remark under a figure.
fn notes(document: &Document) -> impl Iterator<Item = &String> {
    let remarks: BTreeSet<&str> = document
        .figures
        .iter()
        .flat_map(|figure| &figure.evidence.remarks)
        .map(|remark| remark.text.as_str())
        .collect();
    document.notes.iter().filter(move |note| note.split_once(": ").is_none_or(|(_, text)| !remarks.contains(text)))
}

fn has_notes(document: &Document) -> bool {
    notes(document).next().is_some()
}

fn failures(failures: &[Failure]) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label="Failures" {
            table.plain {
                thead { tr { th scope="col" { "Point" } th scope="col" { "Why it has no result" } } }
                tbody { @for failure in failures { tr { th scope="row" { (failure.point) } td.words { (failure.error) } } } }
            }
        }
    }
}

fn repeat(document: &Document) -> Markup {
    html! {
        p { "With Tombolo " (document.tombolo) ", the same command gives the same numbers at any number of threads:" }
        pre tabindex="0" { code { (document.command) } }
        @if let Some(provenance) = &document.provenance {
            p { "What made it, and where:" }
            dl.facts { @for (what, value) in provenance.facts() { div { dt { (what) } dd { (value) } } } }
            @for file in &provenance.experiments {
                details.configuration {
                    summary { (file.name) }
                    pre tabindex="0" { code { (file.text) } }
                }
            }
        }
    }
}

/// Returns the anchor of a part in a document.
fn part(document: &Document, name: &str) -> String {
    format!("{}-{}", anchor(&document.paper), anchor(name))
}

/// Returns the anchor of a run's row; `None` if the document lacks the run.
fn run(document: &Document, index: usize) -> Option<String> {
    document.runs.rows.get(index).map(|_| format!("{}-r{}", anchor(&document.paper), index + 1))
}

/// Returns `name` in a form suitable for an address: lower case, with a hyphen for every character except letters and
/// digits.
pub(crate) fn anchor(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' }).collect()
}
