//! `show readings`: the readings of a paper beside its default one.

use crate::failure::Failure;
use crate::output::show;
use crate::table::{Cell, Look, Table};
use serde::Serialize;
use tombolo_experiment::preset::readings;
use tombolo_experiment::readings::{DEFAULT, DEFAULT_DESCRIPTION};
use tombolo_experiment::spec::Reading;

/// Which.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Paper: hmg, numa-gpu, cpelide, gps or umh
    paper: String,
    /// Prints one JSON document instead of text
    #[arg(long = "json")]
    json: bool,
}

/// A reading.
#[derive(Serialize)]
struct Entry {
    name: String,
    description: String,
    /// The figure that draws it, of one that `--readings` does not take.
    #[serde(skip_serializing_if = "Option::is_none")]
    figure: Option<String>,
    /// Time that it compares, where it is not the default.
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<String>,
    settings: Vec<Setting>,
}

/// A setting with its source.
#[derive(Serialize)]
struct Setting {
    /// `path=value`, or the parameters of a workload behind its label.
    set: String,
    source: String,
}

impl Arguments {
    /// Prints them.
    pub(super) fn execute(&self) -> Result<(), Failure> {
        let (_, known) = readings(&self.paper)?;
        let default = Entry {
            name: DEFAULT.to_owned(),
            description: DEFAULT_DESCRIPTION.to_owned(),
            figure: None,
            time: None,
            settings: Vec::new(),
        };
        let entries: Vec<Entry> = std::iter::once(default).chain(known.reading.iter().map(Entry::of)).collect();
        show(self.json, &entries, |colours| text(&entries, colours))
    }
}

impl Entry {
    fn of(reading: &Reading) -> Entry {
        let word = |text: &tombolo_experiment::spec::Text| text.get().to_owned();
        let settings = reading.setting.iter().map(|one| Setting { set: word(&one.set), source: one.source.clone() });
        let inputs = reading.inputs.iter().map(|one| Setting {
            set: format!("{}: {}", one.workload.get(), one.parameters.get()),
            source: one.source.clone(),
        });
        Entry {
            name: word(&reading.name),
            description: reading.description.clone(),
            figure: reading.figure.as_ref().map(word),
            time: reading.time.as_ref().map(word),
            settings: settings.chain(inputs).collect(),
        }
    }
}

fn text(entries: &[Entry], colours: bool) -> String {
    let mut table = Table::new(2);
    for entry in entries {
        let figure = entry.figure.iter().map(|figure| format!(" (--figure {figure})"));
        let time = entry.time.iter().map(|time| format!(" (--time {time})"));
        let about: String = std::iter::once(entry.description.clone()).chain(figure).chain(time).collect();
        table.row(vec![Cell::new(&entry.name, Look::Strong), Cell::plain(&about)]);
        for setting in &entry.settings {
            let told = format!("{}  # {}", setting.set, setting.source);
            table.row(vec![Cell::plain(""), Cell::plain(&told)]);
        }
    }
    table.render(colours)
}
