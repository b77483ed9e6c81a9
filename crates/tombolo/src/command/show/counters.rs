//! `show counters`: prints the counters in a record.

use crate::failure::CommandFailure;
use crate::output::show;
use crate::table::{Cell, Look, Table};
use serde::Serialize;
use tombolo_metrics::{Metric, table};

/// Arguments for `show counters`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Selects counters by a part of the path, like l2.hits or links.gpu0.out.bytes, or the name [default: all]
    name: Option<String>,
    /// Prints a JSON document instead of text
    #[arg(long = "json")]
    json: bool,
}

/// A counter.
#[derive(Serialize)]
struct CounterDetails {
    path: &'static str,
    name: &'static str,
    unit: &'static str,
    about: &'static str,
}

impl Arguments {
    /// Prints the selected counters.
    pub(super) fn execute(&self) -> Result<(), CommandFailure> {
        let told: Vec<CounterDetails> =
            table().iter().filter(|counter| self.asks(counter)).map(CounterDetails::of).collect();
        if told.is_empty() {
            let reason = "no counter has it in its path or its name; without it, all are shown".to_owned();
            return Err(CommandFailure::Argument {
                flag: "counter",
                value: self.name.clone().unwrap_or_default(),
                reason,
            });
        }
        show(self.json, &told, |colours| text(&told, colours))
    }

    fn asks(&self, counter: &Metric) -> bool {
        let Some(part) = self.name.as_deref().map(str::to_lowercase) else { return true };
        counter.path.contains(&part) || counter.name.to_lowercase().contains(&part) || is_member(&counter.path, &part)
    }
}

/// True if `path`, with a member name from sweeps (`links.gpu0.out.bytes`), matches the counter at `pattern`.
fn is_member(pattern: &str, path: &str) -> bool {
    let ends = pattern.split_once('*').and_then(|(before, after)| path.strip_prefix(before)?.strip_suffix(after));
    ends.is_some_and(|member| !member.is_empty())
}

impl CounterDetails {
    fn of(counter: &'static Metric) -> CounterDetails {
        let Metric { path, name, unit, about } = counter;
        CounterDetails { path, name, unit, about }
    }
}

fn text(told: &[CounterDetails], colours: bool) -> String {
    let mut table = Table::new(4);
    for one in told {
        let cells = [one.name, one.unit, one.about].map(Cell::plain);
        table.row(std::iter::once(Cell::new(one.path, Look::Strong)).chain(cells).collect());
    }
    table.render(colours)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_of_a_member_is_found_by_the_name_that_sweeps_give_it() {
        assert!(is_member("links.*.bytes", "links.gpu0.out.bytes") && is_member("gpus.*.busy_s", "gpus.gpu1.busy_s"));
        assert!(!is_member("links.*.bytes", "links.bytes") && !is_member("l2.hits", "l2.hits.more"));
    }
}
