//! `show readings`: prints the default and the alternative readings of a paper.

use crate::failure::CommandFailure;
use crate::output::show;
use crate::table::{Cell, Look, Table};
use serde::Serialize;
use tombolo_experiment::preset::readings;
use tombolo_experiment::readings::{DEFAULT, DEFAULT_DESCRIPTION};
use tombolo_experiment::spec::Reading;

/// Arguments for `show readings`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Paper: hmg, numa-gpu, cpelide, gps or umh
    paper: String,
    /// Prints a JSON document instead of text
    #[arg(long = "json")]
    json: bool,
}

/// A reading.
#[derive(Serialize)]
struct ReadingDetails {
    name: String,
    description: String,
    /// Figure that shows the reading, for a reading not accepted by `--readings`.
    #[serde(skip_serializing_if = "Option::is_none")]
    figure: Option<String>,
    /// Run time compared by the reading, if not the default.
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<String>,
    settings: Vec<Setting>,
}

/// A setting with its source.
#[derive(Serialize)]
struct Setting {
    /// Text `path=value`, or a workload's label followed by its parameters.
    set: String,
    source: String,
}

impl Arguments {
    /// Prints the readings.
    pub(super) fn execute(&self) -> Result<(), CommandFailure> {
        let (_, known) = readings(&self.paper)?;
        let default = ReadingDetails {
            name: DEFAULT.to_owned(),
            description: DEFAULT_DESCRIPTION.to_owned(),
            figure: None,
            time: None,
            settings: Vec::new(),
        };
        let entries: Vec<ReadingDetails> =
            std::iter::once(default).chain(known.reading.iter().map(ReadingDetails::of)).collect();
        show(self.json, &entries, |colours| text(&entries, colours))
    }
}

impl ReadingDetails {
    fn of(reading: &Reading) -> ReadingDetails {
        let word = |text: &tombolo_experiment::spec::Text| text.get().to_owned();
        let settings = reading.setting.iter().map(|one| Setting { set: word(&one.set), source: one.source.clone() });
        let inputs = reading.inputs.iter().map(|one| Setting {
            set: format!("{}: {}", one.workload.get(), one.parameters.get()),
            source: one.source.clone(),
        });
        ReadingDetails {
            name: word(&reading.name),
            description: reading.description.clone(),
            figure: reading.figure.as_ref().map(word),
            time: reading.time.as_ref().map(word),
            settings: settings.chain(inputs).collect(),
        }
    }
}

fn text(entries: &[ReadingDetails], colours: bool) -> String {
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
