//! What `explain` prints: stacks side by side, and what they differ in most.

use crate::table::{Cell, Look, Table};
use serde::Serialize;
use tombolo_experiment::explain::{Difference, differences, percent, shares, words};
use tombolo_report::count;
use tombolo_system::latency::{LatencyRecord, ServedRecord};
use tombolo_system::stalls::{SHOWN, StallRecord};
use tombolo_system::{RunRecord, TimeChoice, TimeRecord};

/// Differences that a person is told of a design, at most. Source: assumed; all are in the document.
const MOST: usize = 6;

/// Legs from this one on are shown, in nanoseconds: those that a decimal tells from none.
const NOTICED: f64 = 0.05;

/// What was asked.
pub(crate) struct Asked {
    pub(crate) machine: String,
    pub(crate) scale: String,
    pub(crate) set: Vec<String>,
    pub(crate) workload: String,
    pub(crate) time: TimeChoice,
}

/// One design.
#[derive(Debug, Serialize)]
struct Explained {
    design: String,
    /// Cycles of its warp slots over the whole run.
    stalls: StallRecord,
    time: TimeRecord,
    /// What loads took; absent where that was not asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    latency: Option<LatencyRecord>,
    /// Its time by class, in shares of the first design's, in the order of the stack.
    #[serde(skip)]
    shares: Vec<(&'static str, f64)>,
}

/// What a design differs in from the first.
#[derive(Debug, Serialize)]
struct DifferenceRow {
    /// Which design.
    design: String,
    /// Class of time.
    class: &'static str,
    /// Under the first design, as a share of its time.
    from: f64,
    /// Under this one, as a share of the same time.
    to: f64,
    /// The counter behind it, by its path; null where none is.
    counter: Option<&'static str>,
    /// All of this, in a line.
    text: String,
}

/// One document with everything; `explain --json` prints it.
#[derive(Debug, Serialize)]
pub(crate) struct Explanation {
    tombolo: &'static str,
    machine: String,
    scale: String,
    workload: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    set: Vec<String>,
    /// Which time of each run shares are of.
    of: TimeChoice,
    designs: Vec<Explained>,
    /// By design, the largest first.
    differences: Vec<DifferenceRow>,
    notes: Vec<String>,
}

impl Explanation {
    /// Of runs of one program, the first of which the others are held to.
    pub(crate) fn of(asked: Asked, runs: &[RunRecord]) -> Explanation {
        let Asked { machine, scale, set, workload, time } = asked;
        let first = &runs[0];
        let explained = |run: &RunRecord| Explained {
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

    /// The stacks, and under them what differs most.
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

    /// A table with a column for each design.
    fn table(&self, heading: &str) -> Table {
        Table::new(1).with_headings(std::iter::once(heading).chain(self.designs.iter().map(|one| &*one.design)))
    }

    /// How many loads who has served, and in which mean time.
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

    /// The legs of the mean load, which add up to it.
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
            if values.iter().any(|value| *value >= SHOWN) {
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
