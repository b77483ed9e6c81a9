//! Documents as one HTML file that needs nothing else: what a reader without scripts needs is in the page as tables,
//! and a script draws the charts from the same numbers.
//!
//! - [`claims`], [`figure`], [`configuration`]: the parts of a page. [`chart`]: what the script is given to draw.
//! - [`asset`]: the style, the script and the chart library, as files.
//!
//! Every string of a document is escaped where it is written, and the page's own policy lets no script run but
//! the two of [`asset`].

mod asset;
mod chart;
mod claims;
mod configuration;
mod figure;

pub(crate) use figure::column;

use crate::document::{Document, Failure};
use maud::{DOCTYPE, Markup, PreEscaped, html};

/// One self-contained page that shows `documents` in their order.
pub(crate) fn page(documents: &[Document]) -> String {
    let title = title(documents);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(asset::policy());
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                style { (PreEscaped(asset::STYLE)) }
            }
            body {
                a.skip href="#content" { "Skip to content" }
                (contents(documents))
                main #content {
                    noscript { p.remark { "Charts need JavaScript. Every number is in the tables." } }
                    @for document in documents { (article(document, documents.len() > 1)) }
                    footer { "Made by Tombolo. This file needs no network." }
                }
                script type="application/json" #charts { (PreEscaped(chart::data(documents))) }
                script { (PreEscaped(asset::ECHARTS)) }
                script { (PreEscaped(asset::SCRIPT)) }
            }
        }
    };
    page.into_string()
}

fn title(documents: &[Document]) -> String {
    match documents {
        [one] => one.title.clone(),
        several => format!("{} reports", several.len()),
    }
}

/// The list of links beside the page.
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

/// Headings of a document's parts and whether it has each; its figures stand after its claims.
fn parts(document: &Document) -> [(&'static str, bool); 5] {
    [
        ("Claims", !document.claims.is_empty()),
        ("Failures", !document.failures.is_empty()),
        ("Machines, designs, workloads", !document.configurations.is_empty()),
        ("How to repeat it", true),
        ("Notes", !document.notes.is_empty()),
    ]
}

fn article(document: &Document, one_of_several: bool) -> Markup {
    html! {
        article id=(anchor(&document.paper)) {
            header {
                @if one_of_several { h2.title { (document.title) } } @else { h1.title { (document.title) } }
                dl.facts {
                    div { dt { "Name" } dd { code { (document.paper) } } }
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
            @for figure in &document.figures { (figure::section(figure, &part(document, &figure.id))) }
            @if !document.failures.is_empty() { (section(document, "Failures", &failures(&document.failures))) }
            @if !document.configurations.is_empty() {
                (section(document, "Machines, designs, workloads", &configuration::list(&document.configurations)))
            }
            (section(document, "How to repeat it", &repeat(document)))
            @if !document.notes.is_empty() {
                (section(document, "Notes", &html! { ul { @for note in &document.notes { li { (note) } } } }))
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

/// The anchor of a part of a document.
fn part(document: &Document, name: &str) -> String {
    format!("{}-{}", anchor(&document.paper), anchor(name))
}

/// `name` as it may stand in an address: lower case, and hyphens for all that is no letter or digit.
fn anchor(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' }).collect()
}
