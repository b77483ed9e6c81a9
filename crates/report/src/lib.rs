//! Renders the outcome of experiments.
//!
//! - [`document`]: what there is to show: figures as tables of numbers, the published values beside them, claims
//!   with their verdicts, machines and designs as used. Knows no experiment, no machine and no design.
//! - [`html()`], [`html_all`], [`interactive`]: one HTML file with charts that needs no network. [`text()`]: the same for a
//!   terminal. [`figures`]: figures as SVG, CSV and source for LaTeX. `drawing`: the charts of pages and papers.
//! - [`evidence`]: the runs, ranges and remarks behind the numbers of a figure.
//! - [`counter`]: names, units and meanings of the counters of a run record.
//!
//! Not rendered: when each kernel ran.
//!
//! Read [`document`] next.

pub mod counter;
pub mod document;
mod drawing;
pub mod evidence;
mod files;
mod number;
mod page;
mod tex;
mod text;

pub use document::Document;
pub use files::{FigureFiles, csv, figures, folder_name};
pub use number::{bytes, count};
pub use text::clean;

/// One self-contained HTML file that shows `document`.
///
/// It loads nothing from anywhere and runs no script; its charts are drawings, and every number is in its tables
/// too. Whatever the strings of `document` contain is shown as text.
pub fn html(document: &Document) -> String {
    html_all(std::slice::from_ref(document))
}

/// One self-contained HTML file that shows `documents` one after the other.
pub fn html_all(documents: &[Document]) -> String {
    page::page(documents, page::Charts::Still)
}

/// The same with charts that answer to the pointer and to keys: a script and a chart library draw them, which are in the
/// file and make it some 700 KB larger.
pub fn interactive(documents: &[Document]) -> String {
    page::page(documents, page::Charts::Live)
}

/// `document` as plain text in lines of at most `width` columns (at least 40): claims, then figures, as aligned
/// tables.
pub fn text(document: &Document, width: usize) -> String {
    text::text(document, width)
}
