//! Runs behind the figures: the command and selected counters for each run.

use super::figure::column;
use crate::document::Document;
use crate::number::number;
use maud::{Markup, html};

/// Shows a row per run, with the anchor targeted by chart links.
pub(super) fn table(document: &Document) -> Markup {
    html! {
        p.caption { "Each command makes one run again, with all its counters." }
        div.scroll tabindex="0" role="region" aria-label="Runs" {
            table.numbers.runs {
                thead {
                    tr {
                        th scope="col" { "Run" }
                        @for path in &document.runs.counters {
                            th scope="col" title=[tombolo_metrics::find(path).map(|metric| &metric.about)] { (column(path)) }
                        }
                    }
                }
                tbody {
                    @for (index, run) in document.runs.rows.iter().enumerate() {
                        tr id=[super::run(document, index)] {
                            th scope="row" { code { (run.command) } }
                            @for value in &run.values { td { (number(*value)) } }
                        }
                    }
                }
            }
        }
    }
}
