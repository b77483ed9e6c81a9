//! Format of an experiment file. The doc comments are also the descriptions in the editor schema.

mod metric;
mod suite;

pub use metric::{Baseline, Extrapolation, Metric, Relative};
use serde::{Deserialize, Serialize};
pub use suite::{PublishedIterations, StatedWorkload, Suite, SuiteWorkload};

/// Text that knows its position in the experiment file.
#[derive(Clone, Debug, Deserialize)]
#[serde(transparent)]
pub struct Text(toml::Spanned<String>);

impl Text {
    /// Returns `text` with the position of `place`.
    pub(crate) fn at(place: &Text, text: String) -> Text {
        Text(toml::Spanned::new(place.0.span(), text))
    }

    /// Returns `text` without a position, for text not present in any file.
    pub(crate) fn assumed(text: &str) -> Text {
        Text(toml::Spanned::new(0..0, text.to_owned()))
    }

    /// Returns the text.
    pub fn get(&self) -> &str {
        self.0.get_ref()
    }

    /// Returns the byte offset of the text in the file.
    pub fn offset(&self) -> usize {
        self.0.span().start
    }
}

/// A figure: the points to run, the normalisation and drawing of the results, the paper's published values, and the
/// claims.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// Short name, for example `figure-8`.
    pub id: String,
    /// Heading of the figure; if absent, a heading made from metrics, machines and axes.
    #[serde(default)]
    pub title: String,
    /// Caption: contents, normalisation, and reading advice.
    #[serde(default)]
    pub caption: String,
    /// Machines: names from `list machines`, or paths to .toml files.
    pub machines: Vec<Text>,
    /// Designs: names from `list designs`, or paths to .toml files.
    #[serde(default)]
    pub designs: Vec<Text>,
    /// Workloads spelled for the command line, for example `triad,elements=4096`.
    #[serde(default)]
    pub workloads: Vec<Text>,
    /// Name of a shipped suite, whose workloads follow `workloads`.
    #[serde(default)]
    pub suite: Option<Text>,
    /// Labels of suite workloads to leave out. The caption says why.
    #[serde(default)]
    pub except: Vec<Text>,
    /// Settings applied to every point, for example `l2.bytes=6MB`.
    #[serde(default)]
    pub set: Vec<Text>,
    /// Workload parameters that replace a workload's own.
    #[serde(default)]
    pub inputs: Vec<WorkloadInputs>,
    /// Fraction of machine and input to run, for workloads without a scale from a suite; default 1.
    #[serde(default)]
    pub scale: Option<Text>,
    /// Seed for generated inputs.
    #[serde(default = "one")]
    pub seed: u64,
    /// Set if a whole paper at quick scale leaves the experiment out. The experiment then runs only on request by name,
    /// or at larger scales. Its claims are shown until then.
    #[serde(default)]
    pub on_request: bool,
    /// Differences between quick scale and larger scales.
    #[serde(default)]
    pub quick: Quick,
    /// Swept settings, each an axis with its own name: short form for an `axis` whose steps set a single path.
    #[serde(default)]
    pub vary: Vec<Vary>,
    /// Swept values: every combination with a single step from each axis is run.
    #[serde(default)]
    pub axis: Vec<Axis>,
    /// Dimension along the figure's rows: `workload`, `design`, `machine`, `metric`, `axis:NAME`, or `step` for the
    /// step combinations of all axes. Default: the first axis, or workloads without a sweep.
    #[serde(default)]
    pub rows: Option<Text>,
    /// Dimension along the columns, like `rows`. Default: the second axis, or designs; workloads if there is a single
    /// design.
    #[serde(default)]
    pub columns: Option<Text>,
    /// Dimensions with a separate figure per value, like `rows`. Default if `rows` and `columns` are also absent: the
    /// remaining dimensions.
    #[serde(default)]
    pub panels: Vec<Text>,
    /// Mean over workloads: in a last row, or in every cell if neither rows nor columns are workloads.
    #[serde(default)]
    pub mean: Option<Mean>,
    /// Second mean over workloads, in a row below the first.
    #[serde(default)]
    pub mean_beside: Option<Mean>,
    /// Workloads left out from means, selected by a metric per workload: the union over all lists. Their rows remain.
    #[serde(default)]
    pub left_out: Vec<LeftOut>,
    /// Metrics: a single metric, or a metric per metric row or column. Default: the speed-up over the first design,
    /// without any axis step.
    #[serde(default)]
    pub metric: Vec<Metric>,
    /// Chart: by default lines over an axis, and bars otherwise.
    #[serde(default)]
    pub chart: Option<Chart>,
    /// Values stated in the paper's text or tables.
    #[serde(default)]
    pub published: Vec<PublishedNumber>,
    /// Reading or clock for all claims, if not the paper's default: see `claim.reading`.
    #[serde(default)]
    pub reading: Option<Text>,
    /// Claims about this figure.
    #[serde(default)]
    pub claim: Vec<Claim>,
    /// Repetitions of the directions, required before a direction is called robust.
    #[serde(default)]
    pub repeat: Vec<Repeat>,
}

fn one() -> u64 {
    1
}

impl Experiment {
    /// Returns the reading for a claim: its own, or the file's; `None` for the paper's default.
    pub(crate) fn reading_of<'a>(&'a self, claim: &'a Claim) -> Option<&'a Text> {
        claim.reading.as_ref().or(self.reading.as_ref())
    }
}

/// Workload parameters that replace the workload's own.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct WorkloadInputs {
    /// Label of the affected workload.
    pub workload: Text,
    /// Parameters, for example `iterations=20`, which replace parameters with equal names at every scale.
    pub parameters: Text,
}

/// Differences between quick scale and larger scales.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Quick {
    /// Replaces the scale for every workload.
    #[serde(default)]
    pub scale: Option<Text>,
    /// Labels of the only workloads to run.
    #[serde(default)]
    pub only: Vec<Text>,
    /// Labels of the only axis steps to run.
    #[serde(default)]
    pub steps: Vec<Text>,
    /// Reason for the selection, shown in reports.
    #[serde(default)]
    pub reason: String,
}

/// A swept value.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Axis {
    /// Name of the swept quantity, used in labels.
    pub name: String,
    /// Values on the axis, in order.
    pub step: Vec<Step>,
}

/// A swept setting.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Vary {
    /// Path in a machine or a design, for example `l2.bytes`.
    pub set: Text,
    /// Values on the axis, in order.
    pub to: Vec<Text>,
}

/// A value on an axis, with all settings for the value.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Label of the value in the figure.
    pub label: String,
    /// Machine used in place of the figure's own machine.
    #[serde(default)]
    pub machine: Option<Text>,
    /// Design used in place of the figure's own design.
    #[serde(default)]
    pub design: Option<Text>,
    /// Settings, for example `gpu_link.rate=100GB/s`.
    #[serde(default)]
    pub set: Vec<Text>,
}

/// Dimension for rows, columns or panels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dimension {
    /// Workloads.
    Workload,
    /// Designs.
    Design,
    /// Machines.
    Machine,
    /// Combinations of axis steps.
    Step,
    /// Metrics.
    Metric,
    /// Steps on an axis, by the axis's position in the file.
    Axis(usize),
}

/// A mean over workloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum Mean {
    /// For ratios, for example speed-ups.
    #[serde(rename = "geometric")]
    Geometric,
    /// For counts and shares, for example hit rates.
    #[serde(rename = "arithmetic")]
    Arithmetic,
}

/// Workloads selected by a number: excluded from means, and from claims over all rows. Repetitions exclude the
/// workloads excluded in the figure itself.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct LeftOut {
    /// Name of the selection, for example `the grey set`.
    pub name: String,
    /// Point for the deciding number. Absent fields mean the figure's first machine or design, or no step.
    #[serde(default)]
    pub at: Baseline,
    /// Metric for the deciding number in each workload.
    pub metric: Metric,
    /// Lower bound: a workload is selected if its number is at least this value.
    pub at_least: f64,
}

/// Drawing of a figure: shape and axes.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Chart {
    /// Shape: by default lines over an axis, and bars otherwise.
    #[serde(default)]
    pub kind: Option<Shape>,
    /// Quantity on the horizontal axis.
    #[serde(default)]
    pub x: String,
    /// Quantity on the vertical axis.
    #[serde(default)]
    pub y: String,
    /// Unit on the vertical axis; empty for a ratio.
    #[serde(default)]
    pub unit: String,
    /// True for a logarithmic vertical axis.
    #[serde(default)]
    pub log_y: bool,
    /// Value marked with a line on the vertical axis.
    #[serde(default)]
    pub reference: Option<f64>,
}

/// Possible shapes for the drawing of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum Shape {
    /// A bar group per row.
    #[serde(rename = "bars")]
    Bars,
    /// A line per column.
    #[serde(rename = "lines")]
    Lines,
    /// A bar per row, with a segment per column.
    #[serde(rename = "stacked")]
    Stacked,
    /// A point per row.
    #[serde(rename = "scatter")]
    Scatter,
    /// A cell per row and column, coloured by its value.
    #[serde(rename = "heat")]
    Heat,
    /// No drawing.
    #[serde(rename = "table")]
    Table,
}

/// A value stated in the paper.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename = "Published", deny_unknown_fields)]
pub struct PublishedNumber {
    /// Row in the figure.
    pub row: Text,
    /// Column in the figure.
    pub column: Text,
    /// The value, in the figure's unit.
    pub value: f64,
    /// Place in the paper.
    pub source: String,
}

/// Kinds of claims, from strict arithmetic to plain comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum Kind {
    /// Arithmetic from the paper: the measured value must equal `paper`, or otherwise `predicted`, to the stated
    /// precision.
    #[serde(rename = "identity")]
    Identity,
    /// A closed-form prediction for a directed program: must pass.
    #[serde(rename = "mechanism")]
    Mechanism,
    /// An ordering between two values, or a trend; repeated before it is called robust.
    #[serde(rename = "direction")]
    Direction,
    /// Shown next to the paper's value, never judged.
    #[serde(rename = "magnitude")]
    Magnitude,
}

/// A claim: `product of the cells in of ÷ product of the cells in to`, 1 for an empty list, and the required result.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Short name, unique among all claims in the paper. A claim under an alternative reading or clock is called
    /// `STATEMENT@READING`, with the statement of the default claim if present.
    pub id: Text,
    /// Reading or clock for the measurement, if not the paper's default; several are joined by `+`. Such a claim is
    /// shown and never judged, because only the default decides a verdict.
    #[serde(default)]
    pub reading: Option<Text>,
    /// Kind of the claim.
    pub kind: Kind,
    /// Statement in words.
    pub text: String,
    /// Number stated in the paper, if any.
    #[serde(default)]
    pub paper: Option<f64>,
    /// Number derived from different numbers in the paper, if the paper does not state this number.
    #[serde(default)]
    pub predicted: Option<f64>,
    /// Unit of all three numbers.
    #[serde(default)]
    pub unit: String,
    /// Directed program for a mechanism's measurement.
    #[serde(default)]
    pub mechanism: Option<Text>,
    /// Cells in the numerator.
    #[serde(default)]
    pub of: Vec<Cell>,
    /// Cells in the denominator.
    #[serde(default)]
    pub to: Vec<Cell>,
    /// Evaluates every row except the summary and excluded rows: cells name no row, and this function combines the
    /// results.
    #[serde(default)]
    pub each_row: Option<Take>,
    /// Lower bound: the value must be above.
    #[serde(default)]
    pub above: Option<f64>,
    /// Upper bound: the value must be below.
    #[serde(default)]
    pub below: Option<f64>,
    /// Allowed deviation for an identity: half a unit in the last digit stated by the paper.
    #[serde(default)]
    pub tolerance: f64,
    /// True if a possible failure was announced before the first run.
    #[serde(default)]
    pub foretold: bool,
    /// Reason for a failure. For a shipped experiment the reason is reported only at quick scale, the scale of its
    /// investigation.
    #[serde(default)]
    pub cause: Option<String>,
}

/// A cell in the figure, or several cells in a row combined.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Cell {
    /// Label of the row; `mean` for the summary row, `mean-beside` for the second summary, `mean-of-all` for the mean
    /// that includes left-out workloads, `first` and `last` for the ends of the remaining rows.
    #[serde(default)]
    pub row: Option<Text>,
    /// Labels of the columns.
    pub columns: Vec<Text>,
    /// Function that combines several columns.
    #[serde(default)]
    pub take: Option<Take>,
}

/// Function that combines several numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum Take {
    /// The least number.
    #[serde(rename = "least")]
    Least,
    /// The lowest tenth: a tenth of the numbers lie below.
    #[serde(rename = "lowest-tenth")]
    LowestTenth,
    /// The greatest number.
    #[serde(rename = "greatest")]
    Greatest,
    /// The number in the middle; the mean if two are in the middle.
    #[serde(rename = "median")]
    Median,
}

/// Repetitions of a figure's directions, each under a single change.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Repeat {
    /// Runs only on request (`--robust`), because the repetition takes long. At paper scale this applies to every
    /// repetition.
    #[serde(default)]
    pub on_request: bool,
    /// Alternative seeds for generated inputs.
    #[serde(default)]
    pub seeds: Vec<u64>,
    /// Alternative scales for machine and input.
    #[serde(default)]
    pub scales: Vec<Text>,
    /// Inputs from scale 1, if quick scale has smaller inputs: for machines that are never scaled.
    #[serde(default)]
    pub whole_inputs: bool,
    /// Second inputs from quick scale: for machines that are never scaled.
    #[serde(default)]
    pub second_inputs: bool,
    /// Assumed machine values: each is halved and doubled.
    #[serde(default)]
    pub assumed: Vec<Text>,
    /// Labels of the workloads; all workloads in the figure if absent. Named in the caption.
    #[serde(default)]
    pub only: Vec<Text>,
}

/// Description of a paper, from the paper's folder.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Paper {
    /// Heading of the report.
    pub title: String,
    /// Description on a single line.
    pub description: String,
    /// Remarks on the whole report.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// Alternative readings of a paper.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Readings {
    /// All alternative readings, in order.
    pub reading: Vec<Reading>,
}

/// An alternative reading of a paper, or a different clock: a set of settings that `reproduce --readings` applies to
/// every figure, or a separate figure.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Reading {
    /// Name, for example `artifact`.
    pub name: Text,
    /// The difference from the default reading, in one line.
    pub description: String,
    /// Figure for a reading not expressible with settings.
    #[serde(default)]
    pub figure: Option<Text>,
    /// Time used for speed-ups, if not the default: `region`, `kernels` or `whole`.
    #[serde(default)]
    pub time: Option<Text>,
    /// Settings for machines and designs. A figure applies only settings used by its machines or designs.
    #[serde(default)]
    pub setting: Vec<ReadingSetting>,
    /// Workload parameters. A figure applies the parameters for its own workloads.
    #[serde(default)]
    pub inputs: Vec<ReadingInputs>,
}

/// A setting applied by a reading.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ReadingSetting {
    /// Setting, for example `gpu_link.rate=200GB/s`.
    pub set: Text,
    /// Sentence or artifact in support of this choice.
    pub source: String,
}

/// Workload parameters under a reading.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ReadingInputs {
    /// Label of the affected workload.
    pub workload: Text,
    /// Parameters, which replace parameters with equal names.
    pub parameters: Text,
    /// Sentence or artifact in support of this choice.
    pub source: String,
}

#[cfg(test)]
impl schemars::JsonSchema for Text {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Text".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        String::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// Checks that the editor schema matches the types. `UPDATE_SCHEMA=1 cargo test` writes the schema.
    #[test]
    fn the_editor_schemas_are_up_to_date() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("schema");
        let schemas = [
            ("experiment", schemars::schema_for!(Experiment)),
            ("suite", schemars::schema_for!(Suite)),
            ("readings", schemars::schema_for!(Readings)),
        ];
        for (name, schema) in schemas {
            let text = serde_json::to_string_pretty(&schema).expect("its keys are strings") + "\n";
            let path = folder.join(format!("{name}.json"));
            if std::env::var_os("UPDATE_SCHEMA").is_some() {
                std::fs::write(&path, &text).expect("written");
            }
            let found = std::fs::read_to_string(&path).unwrap_or_default();
            assert!(found == text, "{} differs; UPDATE_SCHEMA=1 cargo test writes it", path.display());
        }
    }
}
