//! Tables for the machines, designs and workloads used.

use crate::document::Configuration;
use maud::{Markup, html};

/// Shows a collapsed table for each configuration.
pub(super) fn list(configurations: &[Configuration]) -> Markup {
    html! {
        @for configuration in configurations {
            details.configuration {
                summary { (configuration.title) " " span.count { (configuration.entries.len()) " values" } }
                div.scroll tabindex="0" role="region" aria-label=(configuration.title) { (table(configuration)) }
            }
        }
    }
}

fn table(configuration: &Configuration) -> Markup {
    html! {
        table.configuration {
            thead { tr { th scope="col" { "Key" } th scope="col" { "Value" } th scope="col" { "Source" } } }
            tbody {
                @for entry in &configuration.entries {
                    tr { th scope="row" { (entry.key) } td { (entry.value) } td { (entry.source) } }
                }
            }
        }
    }
}
