//! `show workload`: prints a workload's description, parameters, and memory footprint.

use super::launches::OnMachine;
use crate::failure::CommandFailure;
use crate::hardware::scaled;
use crate::output::show;
use crate::table::{Cell, Look, Table};
use serde::Serialize;
use tombolo_experiment::workload::{WorkloadChoice, only};
use tombolo_programs::aliases;
use tombolo_report::clean;
use tombolo_workload::bench::Workload;
use tombolo_workload::scale::Scale;
use tombolo_workload::simt::{ArrayInfo, Scaling};

/// Arguments for `show workload`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Workload from `list workloads`, with or without parameters: triad,elements=4096
    #[arg(value_name = "W[,KEY=VALUE…]")]
    name: String,
    /// Also shows its arrays at this input fraction, like 1/16
    #[arg(long = "scale", value_name = "F", default_value = "1", allow_negative_numbers = true)]
    scale: Scale,
    /// Also shows its demands on this machine at the scale: footprint over L2, waves of CTAs
    #[arg(long = "machine", value_name = "M")]
    machine: Option<String>,
    /// Prints a JSON document instead of text
    #[arg(long = "json")]
    json: bool,
}

/// A workload.
#[derive(Serialize)]
struct WorkloadDetails {
    name: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    aliases: Vec<&'static str>,
    suite: &'static str,
    description: &'static str,
    source: &'static str,
    /// True if work does not follow footprint: a scaled run then answers a different question.
    nonlinear: bool,
    /// True if the workload is written for several GPUs, and divides its grids by their number.
    cut_by_gpus: bool,
    parameters: Vec<ParameterDetails>,
    /// Footprint with default parameters, then the requested footprint if different.
    footprints: Vec<Footprint>,
    #[serde(skip_serializing_if = "Option::is_none")]
    on_machine: Option<OnMachine>,
}

#[derive(Serialize)]
struct ParameterDetails {
    name: &'static str,
    default: &'static str,
    allowed: String,
    description: &'static str,
    source: &'static str,
}

/// Arrays of the workload at a given size.
#[derive(Serialize)]
struct Footprint {
    workload: String,
    scale: String,
    bytes: u64,
    arrays: Vec<ArrayDetails>,
}

#[derive(Serialize)]
struct ArrayDetails {
    name: String,
    bytes: u64,
    /// True if the array's size follows the scale.
    scales: bool,
}

impl Arguments {
    /// Prints the workload.
    pub(super) fn execute(&self) -> Result<(), CommandFailure> {
        let asked = only(&self.name)?;
        let Some(workload) = asked.shipped() else {
            let reason = "a trace has no parameters and no arrays; `tombolo trace info` says what it holds".to_owned();
            return Err(CommandFailure::Argument { flag: "workload", value: self.name.clone(), reason });
        };
        let plain = only(workload.name())?;
        let mut footprints = vec![Footprint::of(&plain, Scale::FULL)?];
        if asked.has_parameters() || self.scale != Scale::FULL {
            footprints.push(Footprint::of(&asked, self.scale)?);
        }
        let on_machine = self.machine.as_ref().map(|machine| self.on(machine, &asked)).transpose()?;
        let shown = WorkloadDetails::of(workload, footprints, on_machine);
        show(self.json, &shown, |colours| shown.text(colours))
    }

    fn on(&self, machine: &str, asked: &WorkloadChoice) -> Result<OnMachine, CommandFailure> {
        let whole = tombolo_machine::machine(machine)?.check()?;
        OnMachine::of(asked, &scaled(self.scale.to_string().parse()?, &whole)?)
    }
}

impl Footprint {
    fn of(choice: &WorkloadChoice, scale: Scale) -> Result<Footprint, CommandFailure> {
        let array = |(array, scaling): (ArrayInfo, Scaling)| ArrayDetails {
            name: array.name,
            bytes: array.bytes,
            scales: scaling != Scaling::Fixed,
        };
        let arrays: Vec<ArrayDetails> = choice.arrays(scale, 1)?.into_iter().map(array).collect();
        let bytes = arrays.iter().map(|array| array.bytes).sum();
        Ok(Footprint { workload: choice.label.clone(), scale: scale.to_string(), bytes, arrays })
    }
}

impl WorkloadDetails {
    fn of(
        workload: &'static dyn Workload,
        footprints: Vec<Footprint>,
        on_machine: Option<OnMachine>,
    ) -> WorkloadDetails {
        let parameter = |parameter: &tombolo_workload::parameter::Parameter| ParameterDetails {
            name: parameter.name,
            default: parameter.default,
            allowed: parameter.kind.to_string(),
            description: parameter.about,
            source: parameter.source,
        };
        WorkloadDetails {
            name: workload.name(),
            aliases: aliases(workload).collect(),
            suite: tombolo_programs::suite(workload),
            description: workload.about(),
            source: workload.source(),
            nonlinear: workload.nonlinear(),
            cut_by_gpus: workload.partitioned_by_gpus(),
            parameters: workload.parameters().iter().map(parameter).collect(),
            footprints,
            on_machine,
        }
    }

    fn text(&self, colours: bool) -> String {
        let names = std::iter::once(self.name).chain(self.aliases.iter().copied()).collect::<Vec<_>>().join(", ");
        let mut text = format!("{} ({}): {}\n", Look::Strong.paint(&names, colours), self.suite, self.description);
        text += &format!("Source: {}\n", self.source);
        if self.nonlinear {
            text += "Its work does not follow its footprint: a scaled run answers another question.\n";
        }
        if self.cut_by_gpus {
            text += "It is written for several GPUs: it cuts its work by those of the machine.\n";
        }
        let mut table = Table::new(5).with_headings(["parameter", "default", "takes", "meaning", "source"]);
        for one in &self.parameters {
            let default = if one.default.is_empty() { "none" } else { one.default };
            let cells = [default, one.allowed.as_str(), one.description, one.source].map(Cell::plain);
            table.row(std::iter::once(Cell::new(one.name, Look::Strong)).chain(cells).collect());
        }
        text += &format!("\n{}", table.render(colours));
        self.footprints.iter().for_each(|footprint| text += &footprint.text(colours));
        text += &self.on_machine.as_ref().map_or_else(String::new, |on| on.text(colours));
        text
    }
}

impl Footprint {
    fn text(&self, colours: bool) -> String {
        let heading = format!("arrays of {} at scale {}", clean(&self.workload), self.scale);
        let mut table = Table::new(1).with_headings([heading.as_str(), "bytes", ""]);
        let size = |name: &str, bytes: u64, look| {
            vec![Cell::new(name, look), Cell::new(bytes.to_string(), look), Cell::new(binary(bytes), look)]
        };
        self.arrays.iter().for_each(|array| table.row(size(&array.name, array.bytes, Look::Plain)));
        table.row(size("all", self.bytes, Look::Strong));
        format!("\n{}", table.render(colours))
    }
}

/// Formats a size in the binary units used for machines: 1 KB is 1024 bytes.
fn binary(bytes: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "KB")];
    match UNITS.iter().find(|(size, _)| bytes >= *size) {
        Some((size, unit)) => format!("{:.1} {unit}", bytes as f64 / *size as f64),
        None => format!("{bytes} B"),
    }
}
