//! `scale`: finds each workload's smallest scale with the design comparison of the next larger scale.

use crate::WRONG_INPUT;
use crate::failure::{CommandFailure, did_you_mean};
use crate::hardware::{baseline, print_notes, refuse_twice};
use crate::output::{complain, show};
use crate::progress::Progress;
use crate::study::tell_when_interrupted;
use crate::table::{Cell, Look, Table, small};
use crate::threads::ThreadsArgument;
use crate::time_argument::TimeArgument;
use serde::Serialize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use tombolo_design::{DesignConfig, apply, design};
use tombolo_experiment::scales::{
    Baseline, ScaleOutcome, ScaleRequest, ScaleSearch, ScalesError, StopReason, is_off, of_suite,
};
use tombolo_experiment::workload::{WorkloadChoice, workloads};
use tombolo_machine::error::near;
use tombolo_machine::{MachineConfig, MachineScale, machine};
use tombolo_system::TimeChoice;

/// Arguments for `scale`: designs to compare, and the required agreement.
#[derive(clap::Args)]
#[command(group(clap::ArgGroup::new("programs").required(true).args(["workload", "suite"])))]
pub(crate) struct Arguments {
    /// Machine: a name from `list machines`, or the path to a .toml file
    #[arg(long = "machine", value_name = "M")]
    machine: String,
    /// Replaces a value of the machine or the designs, like l2.bytes=6MB; may be repeated
    #[arg(long = "set", value_name = "PATH=VALUE")]
    settings: Vec<String>,
    /// Designs: names from `list designs`, or paths to .toml files
    #[arg(long = "designs", value_name = "A,B,…", required = true, num_args = 1.., value_delimiter = ',')]
    designs: Vec<String>,
    /// Workloads from `list workloads` with parameters: triad,elements=4096
    #[arg(long = "workload", value_name = "W[,KEY=VALUE…]", num_args = 1..)]
    workload: Vec<String>,
    /// Or a paper's workloads, with the parameters of their quick scale: hmg, numa-gpu
    #[arg(long = "suite", value_name = "NAME")]
    suite: Option<String>,
    /// Restricts the suite to the named workloads
    #[arg(long = "only", value_name = "LABEL,…", value_delimiter = ',', requires = "suite")]
    only: Vec<String>,
    /// Baseline design for speed-ups [default: the first]
    #[arg(long = "baseline", value_name = "A")]
    baseline: Option<String>,
    /// Another machine for the baseline, scaled alike, like one socket or one GPU: --baseline may then name any design
    #[arg(long = "baseline-machine", value_name = "M", requires = "baseline")]
    baseline_machine: Option<String>,
    /// Smallest scale to try [default: the suite's limit from its paper's reading, otherwise 1/32]
    #[arg(long = "least", value_name = "F")]
    least: Option<MachineScale>,
    /// Largest difference of a speed-up from the next larger scale, in percent
    #[arg(long = "within", value_name = "PERCENT", default_value = "5", value_parser = percentage)]
    within: f64,
    /// Core seconds allowed per run: if larger scales take longer, the largest scale within the limit is chosen
    #[arg(long = "limit", value_name = "SECONDS", default_value = "240", value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// Core seconds allowed per run at scales that only measure the error of smaller scales [default: as --limit]
    #[arg(long = "compare-limit", value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..))]
    compare_limit: Option<u32>,
    #[command(flatten)]
    time: TimeArgument,
    #[command(flatten)]
    threads: ThreadsArgument,
    /// Prints a JSON document instead of text
    #[arg(long = "json")]
    json: bool,
    /// Folder for results; finished runs are reused
    #[arg(long = "out", value_name = "DIR", default_value = "tombolo-scale")]
    out: PathBuf,
}

/// Result of the command, printed in text or JSON.
#[derive(Serialize)]
struct Scales {
    tombolo: &'static str,
    machine: String,
    designs: Vec<String>,
    baseline: String,
    /// Machine of the baseline, if another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    baseline_machine: Option<String>,
    time: TimeChoice,
    /// Relative difference between agreeing speed-ups, in fractions of 1.
    within: f64,
    limit_s: f64,
    compare_limit_s: f64,
    workloads: Vec<ScaleOutcome>,
}

/// Parses a percentage above 0 and returns the fraction.
fn percentage(text: &str) -> Result<f64, String> {
    let value = text.trim_end_matches('%').trim().parse::<f64>().ok().filter(|value| *value > 0.0 && *value <= 100.0);
    value
        .map(|value| value / 100.0)
        .ok_or_else(|| "expected a percentage above 0 and at most 100, such as 5".to_owned())
}

impl Arguments {
    /// Searches each workload's scale and prints the results. Returns status 2 if a run gave no result; the remaining
    /// results are printed.
    pub(crate) fn execute(&self) -> Result<ExitCode, CommandFailure> {
        let (machine, designs) = self.hardware()?;
        let names: Vec<String> = designs.iter().map(|design| design.name.clone()).collect();
        let other = self.other()?;
        let (baseline, named) = match &other {
            Some((machine, design)) => (Baseline::Other(machine, Arc::clone(design)), design.name.clone()),
            None => {
                let index = baseline(self.baseline.as_deref(), &self.designs, &names)?;
                (Baseline::Listed(index), names[index].clone())
            }
        };
        let wanted = self.scale_requests()?;
        let search = ScaleSearch {
            machine: &machine,
            designs: &designs,
            baseline,
            time: self.time.choice(),
            within: self.within,
            limit_s: f64::from(self.limit),
            compare_limit_s: f64::from(self.compare_limit.unwrap_or(self.limit)),
            threads: self.threads.count(),
        };
        tell_when_interrupted(&self.out);
        let mut found = Vec::new();
        for one in &wanted {
            let progress = Progress::new(designs.len());
            match search.run(one, &self.out, &progress) {
                Ok(one) => found.push(one),
                Err(ScalesError::Store(error)) => return Err(error.into()),
                Err(error) => complain(&format!("error: {error}")),
            }
        }
        let whole = found.len() == wanted.len();
        let scales = Scales {
            tombolo: env!("CARGO_PKG_VERSION"),
            machine: machine.name.clone(),
            baseline: named,
            baseline_machine: other.as_ref().map(|(machine, _)| machine.name.clone()),
            designs: names,
            time: self.time.choice(),
            within: self.within,
            limit_s: f64::from(self.limit),
            compare_limit_s: f64::from(self.compare_limit.unwrap_or(self.limit)),
            workloads: found,
        };
        show(self.json, &scales, |colours| scales.text(colours))?;
        Ok(if whole { ExitCode::SUCCESS } else { ExitCode::from(WRONG_INPUT) })
    }

    /// Returns the machine at scale 1 and the designs, after all settings.
    fn hardware(&self) -> Result<(MachineConfig, Vec<Arc<DesignConfig>>), CommandFailure> {
        let mut machine = machine(&self.machine)?;
        let mut described = self.designs.iter().map(|name| design(name)).collect::<Result<Vec<_>, _>>()?;
        apply(&self.settings, &mut machine, &mut described)?;
        let designs = described.iter().map(|one| one.check().map(Arc::new)).collect::<Result<Vec<_>, _>>()?;
        refuse_twice("--designs", designs.iter().map(|one| one.name.as_str()))?;
        print_notes(&described);
        Ok((machine.check()?, designs))
    }

    /// Returns the machine and the design of a baseline on another machine, after all settings.
    fn other(&self) -> Result<Option<(MachineConfig, Arc<DesignConfig>)>, CommandFailure> {
        let (Some(named), Some(base)) = (&self.baseline_machine, &self.baseline) else { return Ok(None) };
        let (mut machine, mut described) = (machine(named)?, [design(base)?]);
        apply(&self.settings, &mut machine, &mut described)?;
        Ok(Some((machine.check()?, Arc::new(described[0].check()?))))
    }

    fn scale_requests(&self) -> Result<Vec<ScaleRequest>, CommandFailure> {
        let mut wanted = match &self.suite {
            Some(name) => of_suite(name)?,
            None => {
                let chosen = workloads(&self.workload)?;
                refuse_twice("--workload", chosen.iter().map(|choice| choice.label.as_str()))?;
                let least = MachineScale::new(1, 32).expect("a fraction");
                let one = |choice: WorkloadChoice| {
                    choice.check_parameters()?;
                    Ok::<_, CommandFailure>(ScaleRequest {
                        label: choice.label.clone(),
                        workload: Arc::new(choice),
                        least,
                    })
                };
                chosen.into_iter().map(one).collect::<Result<_, _>>()?
            }
        };
        if let Some(unknown) = self.only.iter().find(|label| wanted.iter().all(|one| one.label != **label)) {
            let hint = did_you_mean(&near(unknown, wanted.iter().map(|one| one.label.as_str())));
            let reason = format!("the suite has no such workload{hint}");
            return Err(CommandFailure::Argument { flag: "--only", value: unknown.clone(), reason });
        }
        if !self.only.is_empty() {
            wanted.retain(|one| self.only.contains(&one.label));
        }
        if let Some(least) = self.least {
            wanted.iter_mut().for_each(|one| one.least = least);
        }
        Ok(wanted)
    }
}

impl Scales {
    fn text(&self, colours: bool) -> String {
        let mut table = Table::new(1).with_headings(
            ["workload", "scale", "seconds"].into_iter().chain(self.designs.iter().map(String::as_str)).chain([
                "differs",
                "most under",
                "active set",
            ]),
        );
        for found in &self.workloads {
            for (at, tried) in found.tried.iter().enumerate() {
                let look = if tried.scale == found.scale { Look::Strong } else { Look::Plain };
                let name = if at == 0 { found.workload.as_str() } else { "" };
                let mut cells =
                    vec![Cell::plain(name), Cell::new(tried.scale.clone(), look), Cell::plain(small(tried.seconds))];
                cells.extend(tried.speedups.iter().map(|speedup| Cell::plain(format!("{speedup:.3}"))));
                if let Some(difference) = &tried.difference {
                    cells.push(Cell::plain(format!("{:.1} %", 100.0 * difference.share)));
                    cells.push(Cell::plain(difference.design.clone()));
                    cells.extend(tried.active_set.map(|ratio| Cell::plain(format!("× {ratio:.2}"))));
                }
                table.row(cells);
            }
        }
        let within = 100.0 * self.within;
        let heading = format!(
            "{}: speed-ups over {}{}, and how much they differ from those at the next larger scale; the active set over \
             capacity, relative to scale 1\n\n",
            self.machine,
            self.baseline,
            self.baseline_machine.as_ref().map_or(String::new(), |machine| format!(" on {machine}"))
        );
        let lines = self.workloads.iter().map(|found| {
            let error = found.error.map_or(String::new(), |error| format!(", error {:.1} %", 100.0 * error));
            let why = match found.ended {
                StopReason::Alike => format!("alike within {within} %"),
                StopReason::Whole => "no smaller one is alike".to_owned(),
                StopReason::Long => format!("larger ones take longer than {} s", self.limit_s),
            };
            let refused = found.refused.iter().map(|one| {
                format!(
                    "  {} refused: footprint over capacity is {:.1} times that at scale 1\n",
                    one.scale, one.footprint
                )
            });
            let off = found.tried.iter().find(|one| one.scale == found.scale).and_then(|one| one.active_set);
            let off = off.filter(|ratio| is_off(*ratio)).map_or(String::new(), |ratio| {
                format!("  at that scale the active set over capacity is {ratio:.1} times that at scale 1\n")
            });
            format!("{}: {}{error} ({why})\n{off}{}", found.workload, found.scale, refused.collect::<String>())
        });
        format!("{heading}{}\n{}", table.render(colours), lines.collect::<String>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_are_read() {
        assert_eq!((percentage("5"), percentage("2.5 %")), (Ok(0.05), Ok(0.025)));
        assert!(["0", "-1", "x", "101", ""].iter().all(|text| percentage(text).is_err()));
    }
}
