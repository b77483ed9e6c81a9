//! `list`: prints the available choices, one per line. `show` prints details about a single choice.

use crate::failure::CommandFailure;
use crate::output::show;
use crate::table::{Cell, Look, Table};
use serde::Serialize;
use std::process::ExitCode;
use tombolo_design::list_designs;
use tombolo_machine::list_machines;
use tombolo_programs::{aliases, all, suite};
use tombolo_workload::bench::Workload;

/// Arguments for `list`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Kind of entries to list
    #[arg(value_enum)]
    what: ListKind,
    /// Prints a JSON document instead of text
    #[arg(long = "json")]
    json: bool,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum ListKind {
    #[value(name = "machines")]
    Machines,
    #[value(name = "designs")]
    Designs,
    #[value(name = "workloads")]
    Workloads,
    #[value(name = "experiments")]
    Experiments,
}

/// An entry in a printed list.
#[derive(Serialize)]
struct ListEntry {
    name: String,
    /// Workloads only: alternative names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    aliases: Vec<&'static str>,
    /// Workloads only: the suite that contains the workload.
    #[serde(skip_serializing_if = "Option::is_none")]
    suite: Option<&'static str>,
    description: String,
    /// Workloads only: source of the shape.
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<String>,
    /// Workloads only: parameters allowed after the workload's name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parameters: Vec<ListedParameter>,
}

/// A parameter of a workload.
#[derive(Serialize)]
struct ListedParameter {
    name: &'static str,
    default: &'static str,
    description: &'static str,
    source: &'static str,
}

impl Arguments {
    /// Prints the list to standard output.
    pub(crate) fn execute(&self) -> Result<ExitCode, CommandFailure> {
        let preset = |listed: tombolo_machine::PresetSummary| ListEntry {
            name: listed.name.to_owned(),
            aliases: Vec::new(),
            suite: None,
            description: listed.description,
            source: None,
            parameters: Vec::new(),
        };
        let listed: Vec<ListEntry> = match self.what {
            ListKind::Machines => list_machines().into_iter().map(preset).collect(),
            ListKind::Designs => list_designs().into_iter().map(preset).collect(),
            ListKind::Workloads => all().map(of_workload).collect(),
            ListKind::Experiments => tombolo_experiment::preset::list().into_iter().map(of_experiment).collect(),
        };
        show(self.json, &listed, |colours| text(&listed, colours))?;
        Ok(ExitCode::SUCCESS)
    }
}

fn of_experiment(listed: tombolo_experiment::preset::PresetEntry) -> ListEntry {
    let (name, description) = (listed.name, listed.description);
    ListEntry { name, aliases: Vec::new(), suite: None, description, source: None, parameters: Vec::new() }
}

fn of_workload(workload: &dyn Workload) -> ListEntry {
    let parameter = |parameter: &tombolo_workload::parameter::Parameter| ListedParameter {
        name: parameter.name,
        default: parameter.default,
        description: parameter.about,
        source: parameter.source,
    };
    ListEntry {
        name: workload.name().to_owned(),
        aliases: aliases(workload).collect(),
        suite: Some(suite(workload)),
        description: workload.about().to_owned(),
        source: Some(workload.source().to_owned()),
        parameters: workload.parameters().iter().map(parameter).collect(),
    }
}

fn text(listed: &[ListEntry], colours: bool) -> String {
    let mut table = Table::new(3);
    for one in listed {
        let names = std::iter::once(one.name.as_str()).chain(one.aliases.iter().copied());
        let names = names.collect::<Vec<_>>().join(", ");
        let words = one.suite.into_iter().chain([one.description.as_str()]).map(Cell::plain);
        table.row(std::iter::once(Cell::new(&names, Look::Strong)).chain(words).collect());
    }
    table.render(colours)
}
