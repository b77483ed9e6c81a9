//! Renders the outcome of experiments.
//!
//! - [`document`]: contents to show: figures as tables of numbers with the published values, claims with their
//!   verdicts, machines and designs used. No knowledge about experiments, machines or designs.
//! - [`html()`], [`html_all`], [`interactive`]: a single HTML file with charts, without network access. [`text()`]:
//!   output for a terminal. [`figures`]: figures as SVG, CSV and source for LaTeX. `drawing`: the charts for pages and
//!   papers.
//! - [`evidence`]: runs, ranges and remarks behind the numbers in a figure.
//!
//! Not rendered: the start and end of each kernel.
//!
//! Read [`document`] next.

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

/// Returns a single self-contained HTML file that shows `document`.
///
/// The file loads no external resources and runs no script. All charts are drawings, and every number also appears in a
/// table. All strings in `document` are shown as text, whatever their contents.
pub fn html(document: &Document) -> String {
    html_all(std::slice::from_ref(document))
}

/// Returns a single self-contained HTML file that shows `documents` in sequence.
pub fn html_all(documents: &[Document]) -> String {
    page::page(documents, page::Charts::Still)
}

/// Like [`html_all`], with charts that react to the pointer and to keys. They are drawn by a script and a chart library
/// inside the file, which make the file about 700 KB larger.
pub fn interactive(documents: &[Document]) -> String {
    page::page(documents, page::Charts::Live)
}

/// Formats `document` in plain text with lines of at most `width` columns (at least 40): claims, then figures, in
/// aligned tables.
pub fn text(document: &Document, width: usize) -> String {
    text::text(document, width)
}
