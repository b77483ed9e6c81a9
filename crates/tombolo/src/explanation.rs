//! Output of `explain`: stacks side by side, and the largest differences.

use crate::table::{Cell, Look, Table};
use serde::Serialize;
use tombolo_experiment::explain::{Difference, differences, percent, shares, words};
use tombolo_report::count;
use tombolo_system::latency::{LatencyRecord, ServedRecord};
use tombolo_system::stalls::{SMALLEST_SHOWN_SHARE, StallRecord};
use tombolo_system::{RunRecord, TimeChoice, TimeRecord};

/// Maximum number of differences printed for a design. Source: assumed; the document contains all.
const MOST: usize = 6;

/// Threshold for printing a path segment, in nanoseconds: the smallest time visible with a single decimal.
const NOTICED: f64 = 0.05;

/// Inputs of the explanation.
pub(crate) struct ExplanationRequest {
    pub(crate) machine: String,
    pub(crate) scale: String,
    pub(crate) set: Vec<String>,
    pub(crate) workload: String,
    pub(crate) time: TimeChoice,
}

/// Explanation of a single design.
#[derive(Debug, Serialize)]
struct DesignExplanation {
    design: String,
    /// Warp-slot cycles over the whole run.
    stalls: StallRecord,
    time: TimeRecord,
    /// Load latencies; absent unless requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    latency: Option<LatencyRecord>,
    /// Time by class in stack order, as shares of the first design's time.
    #[serde(skip)]
    shares: Vec<(&'static str, f64)>,
}

/// A difference between a design and the first design.
#[derive(Debug, Serialize)]
struct DifferenceRow {
    /// Name of the design.
    design: String,
    /// Class of time.
    class: &'static str,
    /// Share under the first design, relative to its time.
    from: f64,
    /// Share under this design, relative to the first design's time.
    to: f64,
    /// Path of the counter behind the difference; null if none is known.
    counter: Option<&'static str>,
    /// The whole difference in a line of text.
    text: String,
}

/// Complete document, printed by `explain --json`.
#[derive(Debug, Serialize)]
pub(crate) struct Explanation {
    tombolo: &'static str,
    machine: String,
    scale: String,
    workload: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    set: Vec<String>,
    /// Run time used for the shares.
    of: TimeChoice,
    designs: Vec<DesignExplanation>,
    /// Differences by design, largest first.
    differences: Vec<DifferenceRow>,
    notes: Vec<String>,
}

impl Explanation {
    /// Builds the explanation for several runs with a common program. The first run is the reference for the remaining
    /// runs.
    pub(crate) fn of(asked: ExplanationRequest, runs: &[RunRecord]) -> Explanation {
        let ExplanationRequest { machine, scale, set, workload, time } = asked;
        let first = &runs[0];
        let explained = |run: &RunRecord| DesignExplanation {
            design: run.design.clone(),
            stalls: run.stalls,
            time: run.time,
            latency: run.latency,
            shares: shares(run, first, time),
        };
        let rows = |run: &RunRecord| {
            let told = differences(&[(first, run)], time).into_iter().filter(Difference::is_shown);
            told.map(|one| DifferenceRow::of(&run.design, &one)).collect::<Vec<_>>()
        };
        let mut notes: Vec<String> = Vec::new();
        for note in runs.iter().flat_map(|run| &run.notes) {
            if !notes.contains(note) {
                notes.push(note.clone());
            }
        }
        Explanation {
            tombolo: env!("CARGO_PKG_VERSION"),
            machine,
            scale,
            workload,
            set,
            of: time,
            designs: runs.iter().map(explained).collect(),
            differences: runs[1..].iter().flat_map(rows).collect(),
            notes,
        }
    }

    /// Formats the stacks, followed by the largest differences.
    pub(crate) fn text(&self, colours: bool) -> String {
        let strong = |text: &str| format!("{}\n", Look::Strong.paint(text, colours));
        let Explanation { machine, scale, workload, of, designs, .. } = self;
        let first = &designs[0].design;
        let mut text = strong(&format!("{workload} on {machine} at scale {scale}"));
        text.push_str(&format!("Time by what warps did, in percent of that of {first}: {}\n", of.title()));
        text.push_str(&self.stacks().render(colours));
        let followed: Vec<LatencyRecord> = designs.iter().filter_map(|one| one.latency).collect();
        if !followed.is_empty() {
            text.push_str(&format!("\n{}", self.served(&followed).render(colours)));
            text.push_str(&format!("\n{}", self.legs(&followed).render(colours)));
        }
        for design in &designs[1..] {
            text.push('\n');
            text.push_str(&strong(&format!("{} against {first}", design.design)));
            let rows = self.differences.iter().filter(|row| row.design == design.design);
            let mut rows = rows.take(MOST).peekable();
            if rows.peek().is_none() {
                text.push_str("no class differs by a tenth of a percent of the time\n");
            }
            rows.for_each(|row| text.push_str(&format!("{}\n", row.text)));
        }
        for note in &self.notes {
            text.push_str(&format!("note: {note}\n"));
        }
        text
    }

    /// Builds a table with a column for each design.
    fn table(&self, heading: &str) -> Table {
        Table::new(1).with_headings(std::iter::once(heading).chain(self.designs.iter().map(|one| &*one.design)))
    }

    /// Builds the table of loads by serving component: their number and mean latency.
    fn served(&self, followed: &[LatencyRecord]) -> Table {
        let mut table = self.table("loads served by");
        for (index, (name, _)) in followed[0].named().into_iter().enumerate() {
            let served: Vec<ServedRecord> = followed.iter().map(|one| one.named()[index].1).collect();
            if served.iter().any(|one| one.count > 0) {
                let cell = |one: &ServedRecord| match one.count {
                    0 => "-".to_owned(),
                    loads => format!("{} in {:.0} ns", count(loads), one.mean_ns),
                };
                let cells = std::iter::once(words(name)).chain(served.iter().map(cell));
                table.row(cells.map(Cell::plain).collect());
            }
        }
        table
    }

    /// Builds the table of path segments for the mean load; the segments add up to its latency.
    fn legs(&self, followed: &[LatencyRecord]) -> Table {
        let mut table = self.table("leg of the mean load (ns)");
        let mut sums = vec![0.0; followed.len()];
        for (index, (name, _)) in followed[0].legs_ns().into_iter().enumerate() {
            let means: Vec<f64> = followed.iter().map(|one| one.legs_ns()[index].1).collect();
            sums.iter_mut().zip(&means).for_each(|(sum, mean)| *sum += mean);
            if means.iter().any(|mean| *mean >= NOTICED) {
                table.row(std::iter::once(words(name)).chain(means.iter().map(nanoseconds)).map(Cell::plain).collect());
            }
        }
        table.row(std::iter::once("all".to_owned()).chain(sums.iter().map(nanoseconds)).map(Cell::plain).collect());
        table
    }

    fn stacks(&self) -> Table {
        let mut table = self.table("class");
        let mut add = |name: String, values: Vec<f64>| {
            let cells = values.into_iter().map(|value| Cell::plain(percent(value)));
            table.row(std::iter::once(Cell::plain(name)).chain(cells).collect());
        };
        for (index, (class, _)) in self.designs[0].shares.iter().enumerate() {
            let values: Vec<f64> = self.designs.iter().map(|one| one.shares[index].1).collect();
            if values.iter().any(|value| *value >= SMALLEST_SHOWN_SHARE) {
                add(words(class), values);
            }
        }
        let sums = self.designs.iter().map(|one| one.shares.iter().map(|(_, share)| share).sum()).collect();
        add("all".to_owned(), sums);
        table
    }
}

fn nanoseconds(time: &f64) -> String {
    format!("{time:.1}")
}

impl DifferenceRow {
    fn of(design: &str, difference: &Difference) -> DifferenceRow {
        let Difference { class, from, to, ref counter } = *difference;
        let counter = counter.as_ref().map(|one| one.path);
        DifferenceRow { design: design.to_owned(), class, from, to, counter, text: difference.to_string() }
    }
}
