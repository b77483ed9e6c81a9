//! What an experiment file holds. The doc comments are also the descriptions of the editor schema.

use serde::{Deserialize, Serialize};

/// Text that knows where in its file it stands.
#[derive(Clone, Debug, Deserialize)]
#[serde(transparent)]
pub struct Text(toml::Spanned<String>);

impl Text {
    /// `text` at the place of another.
    pub(crate) fn at(place: &Text, text: String) -> Text {
        Text(toml::Spanned::new(place.0.span(), text))
    }

    /// `text` that stands in no file.
    pub(crate) fn assumed(text: &str) -> Text {
        Text(toml::Spanned::new(0..0, text.to_owned()))
    }

    /// The text.
    pub fn get(&self) -> &str {
        self.0.get_ref()
    }

    /// Offset of its first byte in the file.
    pub fn offset(&self) -> usize {
        self.0.span().start
    }
}

/// One figure: what to run, how to normalise it, how to draw it, what the paper states, and what is claimed.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// Short name, such as `figure-8`.
    pub id: String,
    /// Heading of the figure; made of what is measured, where and over what, where absent.
    #[serde(default)]
    pub title: String,
    /// What is shown, how it is normalised, how to read it.
    #[serde(default)]
    pub caption: String,
    /// Machines: names of `list machines`, or paths of .toml files.
    pub machines: Vec<Text>,
    /// Designs: names of `list designs`, or paths of .toml files.
    #[serde(default)]
    pub designs: Vec<Text>,
    /// Workloads as on the command line, such as `triad,elements=4096`.
    #[serde(default)]
    pub workloads: Vec<Text>,
    /// Name of a suite that ships, whose workloads follow `workloads`.
    #[serde(default)]
    pub suite: Option<Text>,
    /// Workloads of the suite that are left out, by label. The caption says why.
    #[serde(default)]
    pub except: Vec<Text>,
    /// Settings of every point, such as `l2.bytes=6MB`.
    #[serde(default)]
    pub set: Vec<Text>,
    /// Parameters of workloads in place of their own.
    #[serde(default)]
    pub inputs: Vec<WorkloadInputs>,
    /// Fraction of machine and input to run, for workloads whose suite states none; 1 where nothing is stated.
    #[serde(default)]
    pub scale: Option<Text>,
    /// Seed of generated inputs.
    #[serde(default = "one")]
    pub seed: u64,
    /// Whether a whole paper at quick scale leaves it out: it runs where it is asked for by name, and at other scales. Its
    /// claims are shown until then.
    #[serde(default)]
    pub on_request: bool,
    /// What is different at quick scale.
    #[serde(default)]
    pub quick: Quick,
    /// Swept settings, each an axis of its name: short for `axis` where a step is one value of one path.
    #[serde(default)]
    pub vary: Vec<Vary>,
    /// Swept values: every combination of a step of each axis is run.
    #[serde(default)]
    pub axis: Vec<Axis>,
    /// What the rows of the figure are: `workload`, `design`, `machine`, `metric`, `axis:NAME`, or `step` for the
    /// combinations of steps of all axes. Where absent: the first axis, or workloads where nothing is swept.
    #[serde(default)]
    pub rows: Option<Text>,
    /// What its columns are, likewise. Where absent: the second axis, or designs; workloads of one design.
    #[serde(default)]
    pub columns: Option<Text>,
    /// What has a figure for each of its values, likewise. Where `rows` and `columns` are absent too: the rest.
    #[serde(default)]
    pub panels: Vec<Text>,
    /// How workloads are summed up: in a last row, or in every cell where neither rows nor columns are workloads.
    #[serde(default)]
    pub mean: Option<Mean>,
    /// A second mean over workloads, in a row below the first.
    #[serde(default)]
    pub mean_beside: Option<Mean>,
    /// Workloads that means leave out, told by a number of each: those of any of these. Their rows stay.
    #[serde(default)]
    pub left_out: Vec<LeftOut>,
    /// What is measured: one, or as many as there are rows or columns of metrics. Where absent: the speed-up over the
    /// first design, without any step of an axis.
    #[serde(default)]
    pub metric: Vec<Metric>,
    /// How to draw it: where absent, lines over an axis and bars over all else.
    #[serde(default)]
    pub chart: Option<Chart>,
    /// Values that the paper's text or tables state.
    #[serde(default)]
    pub published: Vec<Published>,
    /// Reading or clock of all claims, where it is not the paper's default: see `claim.reading`.
    #[serde(default)]
    pub reading: Option<Text>,
    /// Claims about this figure.
    #[serde(default)]
    pub claim: Vec<Claim>,
    /// How its directions are repeated before they are called robust.
    #[serde(default)]
    pub repeat: Vec<Repeat>,
}

fn one() -> u64 {
    1
}

impl Experiment {
    /// The reading of a claim: its own, else the file's; `None` for the paper's default.
    pub(crate) fn reading_of<'a>(&'a self, claim: &'a Claim) -> Option<&'a Text> {
        claim.reading.as_ref().or(self.reading.as_ref())
    }
}

/// Parameters of one workload in place of its own.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct WorkloadInputs {
    /// Its label.
    pub workload: Text,
    /// Parameters such as `iterations=20`, which replace those of the same name at every scale.
    pub parameters: Text,
}

/// What is different at quick scale.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Quick {
    /// Replaces the scale of every workload.
    #[serde(default)]
    pub scale: Option<Text>,
    /// Runs these workloads alone: labels.
    #[serde(default)]
    pub only: Vec<Text>,
    /// Runs these steps of the axis alone: labels.
    #[serde(default)]
    pub steps: Vec<Text>,
    /// Why these. A report shows it.
    #[serde(default)]
    pub reason: String,
}

/// A list of workloads with the scale of each.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Suite {
    /// One line.
    pub description: String,
    /// The smallest scale that the reading of the paper allows.
    pub least: Text,
    /// The workloads, in order.
    pub workload: Vec<SuiteWorkload>,
    /// What the paper states of its workloads, by label: all of them, also any that is not here.
    #[serde(default)]
    pub stated: Vec<StatedWorkload>,
}

/// What a paper states of a workload.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct StatedWorkload {
    /// What the paper calls it.
    pub label: String,
    /// CTAs of its kernels, averaged over time.
    pub ctas: u64,
    /// Footprint, in MB.
    pub footprint_mb: u64,
}

/// A workload of a suite.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SuiteWorkload {
    /// As on the command line, such as `nw,length=4096`.
    pub workload: Text,
    /// What figures call it; its name where absent.
    #[serde(default)]
    pub label: Option<String>,
    /// Its quick scale.
    pub scale: Text,
    /// Its smallest scale, where that is not the suite's.
    #[serde(default)]
    pub least: Option<Text>,
    /// By what share speed-ups at its quick scale may differ from those of larger ones, as `tombolo scale` measures it.
    #[serde(default)]
    pub error: Option<f64>,
    /// Parameters of the quick scale alone, such as `sweeps=1`: less of the same kind.
    #[serde(default)]
    pub quick: Option<Text>,
    /// Parameters of a second size of the quick scale, which replace those of the first: directions are repeated at it.
    #[serde(default)]
    pub second: Option<Text>,
    /// Why this scale and these parameters. A report shows it.
    #[serde(default)]
    pub reason: String,
}

/// A swept value.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Axis {
    /// What is swept.
    pub name: String,
    /// Its values, in order.
    pub step: Vec<Step>,
}

/// A swept setting.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Vary {
    /// Path of a machine or a design, such as `l2.bytes`.
    pub set: Text,
    /// Its values, in order.
    pub to: Vec<Text>,
}

/// One value of an axis.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// What the figure calls it.
    pub label: String,
    /// Another machine than the figure's.
    #[serde(default)]
    pub machine: Option<Text>,
    /// Another design than the figure's.
    #[serde(default)]
    pub design: Option<Text>,
    /// Settings, such as `gpu_link.rate=100GB/s`.
    #[serde(default)]
    pub set: Vec<Text>,
}

/// What rows, columns or panels may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dimension {
    /// Workloads.
    Workload,
    /// Designs.
    Design,
    /// Machines.
    Machine,
    /// Combinations of steps of the axes.
    Step,
    /// Metrics.
    Metric,
    /// Steps of one axis, by its place in the file.
    Axis(usize),
}

/// A mean over workloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum Mean {
    /// Of ratios.
    #[serde(rename = "geometric")]
    Geometric,
    /// Of counts and shares.
    #[serde(rename = "arithmetic")]
    Arithmetic,
}

/// Workloads that are told by a number: left out of means, and of what is claimed of all rows. Repetitions leave out
/// those that the figure itself does.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct LeftOut {
    /// What they are called, such as `the grey set`.
    pub name: String,
    /// The point whose number tells: what is absent is the figure's first machine or design, or no step.
    #[serde(default)]
    pub at: Baseline,
    /// The number.
    pub metric: Metric,
    /// They are those whose number is this or more.
    pub at_least: f64,
}

/// What is measured: `factor × sum of value ÷ sum of per`, then normalised.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Metric {
    /// What the figure calls it.
    pub name: String,
    /// Counters of a run's record by path (`time_s`, `coherence.stores_on_shared`), of the sharing pass
    /// (`sharing.inter_gpu_loads`), of the pass of arrays (`arrays.written_bytes`) or of the machine
    /// (`hardware.directory_bits_per_entry`); summed. Where the metric is
    /// normalised, `time_s` is the time that `--time` chooses, by default that of the region from the first kernel to the
    /// end of the last; `time.region_s`, `time.kernels_s` and `time.whole_s` are the same whatever is chosen.
    pub value: Vec<Text>,
    /// Counters to divide by; summed.
    #[serde(default)]
    pub per: Vec<Text>,
    /// The value where the divisor is zero; none where absent.
    #[serde(default)]
    pub empty: Option<f64>,
    /// Factor, for units.
    #[serde(default)]
    pub factor: Option<f64>,
    /// Divides by the scale: for absolute rates.
    #[serde(default)]
    pub per_scale: bool,
    /// How it is normalised; as measured where absent.
    #[serde(default)]
    pub relative: Option<Relative>,
    /// To what it is normalised.
    #[serde(default)]
    pub to: Option<Baseline>,
    /// Counters of the point that it is normalised to, where they are not those of `value`; summed.
    #[serde(default)]
    pub to_value: Vec<Text>,
}

/// How a value is normalised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum Relative {
    /// Baseline ÷ value: of times.
    #[serde(rename = "speed-up")]
    SpeedUp,
    /// Value ÷ baseline.
    #[serde(rename = "ratio")]
    Ratio,
}

impl Relative {
    /// A value by its baseline.
    pub(crate) fn of(self, value: f64, baseline: f64) -> f64 {
        match self {
            Relative::SpeedUp => baseline / value,
            Relative::Ratio => value / baseline,
        }
    }
}

/// A point beside that of a value, such as the one it is normalised to: what is absent is as in the value's own.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Baseline {
    /// Its machine, which need not be one of `machines`.
    #[serde(default)]
    pub machine: Option<Text>,
    /// Its design, which need not be one of `designs`.
    #[serde(default)]
    pub design: Option<Text>,
    /// Its step of the axes: the label of one, or `none` for a point without any of their settings.
    #[serde(default)]
    pub step: Option<Text>,
}

/// How a figure is drawn.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Chart {
    /// Shape: where absent, lines over an axis and bars over all else.
    #[serde(default)]
    pub kind: Option<Shape>,
    /// What the horizontal axis shows.
    #[serde(default)]
    pub x: String,
    /// What the vertical axis shows.
    #[serde(default)]
    pub y: String,
    /// Unit of the vertical axis; empty for a ratio.
    #[serde(default)]
    pub unit: String,
    /// Whether the vertical axis is logarithmic.
    #[serde(default)]
    pub log_y: bool,
    /// Value of the vertical axis to mark with a line.
    #[serde(default)]
    pub reference: Option<f64>,
}

/// Shapes of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum Shape {
    /// A group of bars a row.
    #[serde(rename = "bars")]
    Bars,
    /// A line a column.
    #[serde(rename = "lines")]
    Lines,
    /// A bar a row, a part a column.
    #[serde(rename = "stacked")]
    Stacked,
    /// A point a row.
    #[serde(rename = "scatter")]
    Scatter,
    /// A cell a row and column, coloured by its value.
    #[serde(rename = "heat")]
    Heat,
    /// No drawing.
    #[serde(rename = "table")]
    Table,
}

/// A value that the paper states.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// Row of the figure.
    pub row: Text,
    /// Column of the figure.
    pub column: Text,
    /// The value, in the figure's unit.
    pub value: f64,
    /// Where the paper states it.
    pub source: String,
}

/// The four kinds of claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum Kind {
    /// Arithmetic of the paper: measured must equal `paper`, or else `predicted`, as precisely as that is stated.
    #[serde(rename = "identity")]
    Identity,
    /// A closed-form prediction of a directed program: must pass.
    #[serde(rename = "mechanism")]
    Mechanism,
    /// One ahead of another, or a trend; repeated before it is called robust.
    #[serde(rename = "direction")]
    Direction,
    /// Shown beside the paper's value, never judged.
    #[serde(rename = "magnitude")]
    Magnitude,
}

/// A claim: `product of the cells in of ÷ product of the cells in to`, 1 where there are none, and what it must be.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Short name, unique among the claims of a paper. That of another reading or clock is `STATEMENT@READING`, with the
    /// statement of the default claim where there is one.
    pub id: Text,
    /// Reading or clock that it is measured under, where it is not the paper's default; several are joined by `+`. Such a
    /// claim is shown and never judged, for the default alone decides a verdict.
    #[serde(default)]
    pub reading: Option<Text>,
    /// Its kind.
    pub kind: Kind,
    /// In words.
    pub text: String,
    /// What the paper states, where it states a number.
    #[serde(default)]
    pub paper: Option<f64>,
    /// What follows from other numbers of the paper, where it does not state this one.
    #[serde(default)]
    pub predicted: Option<f64>,
    /// Unit of all three.
    #[serde(default)]
    pub unit: String,
    /// The directed program that measures a mechanism.
    #[serde(default)]
    pub mechanism: Option<Text>,
    /// Cells above the line.
    #[serde(default)]
    pub of: Vec<Cell>,
    /// Cells below the line.
    #[serde(default)]
    pub to: Vec<Cell>,
    /// For every row but the summary and those left out: cells name no row, and the results are taken together this way.
    #[serde(default)]
    pub each_row: Option<Take>,
    /// It must be above this.
    #[serde(default)]
    pub above: Option<f64>,
    /// It must be below this.
    #[serde(default)]
    pub below: Option<f64>,
    /// An identity may differ by this: half a unit of the last digit that the paper states.
    #[serde(default)]
    pub tolerance: f64,
    /// Whether it was said before the first run that it may fail.
    #[serde(default)]
    pub foretold: bool,
    /// Why, if it does not hold. Of an experiment that ships it is told at quick scale alone, where it was found.
    #[serde(default)]
    pub cause: Option<String>,
}

/// A cell of the figure, or several of one row taken together.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Cell {
    /// Label of its row; `mean` for the summary row, `mean-beside` for the second one, `mean-of-all` for that with the
    /// workloads that means leave out, `first` and `last` for the ends of the others.
    #[serde(default)]
    pub row: Option<Text>,
    /// Labels of its columns.
    pub columns: Vec<Text>,
    /// How several columns are taken together.
    #[serde(default)]
    pub take: Option<Take>,
}

/// How several numbers become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum Take {
    /// The least.
    #[serde(rename = "least")]
    Least,
    /// The one below which a tenth of them lie.
    #[serde(rename = "lowest-tenth")]
    LowestTenth,
    /// The greatest.
    #[serde(rename = "greatest")]
    Greatest,
    /// The one in the middle; of two in the middle their mean.
    #[serde(rename = "median")]
    Median,
}

/// Repetitions of the directions of a figure, each under one change.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Repeat {
    /// Runs only where it is asked for (`--robust`), because it takes long. At paper scale every repetition does.
    #[serde(default)]
    pub on_request: bool,
    /// Other seeds.
    #[serde(default)]
    pub seeds: Vec<u64>,
    /// Other scales.
    #[serde(default)]
    pub scales: Vec<Text>,
    /// The inputs of scale 1, where quick scale has smaller ones: for machines that are never scaled.
    #[serde(default)]
    pub whole_inputs: bool,
    /// The second inputs of quick scale: for machines that are never scaled.
    #[serde(default)]
    pub second_inputs: bool,
    /// Values of the machine that are assumed: each is halved and doubled.
    #[serde(default)]
    pub assumed: Vec<Text>,
    /// Workloads, by label; all of the figure where absent. Named in the caption.
    #[serde(default)]
    pub only: Vec<Text>,
}

/// What a paper's folder says of the paper.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Paper {
    /// Heading of the report.
    pub title: String,
    /// One line.
    pub description: String,
    /// Remarks on the whole.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// The readings of a paper beside its default one.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Readings {
    /// The readings, in order.
    pub reading: Vec<Reading>,
}

/// Another reading of a paper, or another clock: a set of settings that `reproduce --readings` applies to every figure,
/// or a figure of its own.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Reading {
    /// Name, such as `artifact`.
    pub name: Text,
    /// What is read otherwise, in one line.
    pub description: String,
    /// The figure that draws it, where no settings can.
    #[serde(default)]
    pub figure: Option<Text>,
    /// Time that speed-ups are of, where it is not the default: `region`, `kernels` or `whole`.
    #[serde(default)]
    pub time: Option<Text>,
    /// Settings of machines and designs. A figure takes those that a machine or a design of it reads.
    #[serde(default)]
    pub setting: Vec<ReadingSetting>,
    /// Parameters of workloads. A figure takes those of the workloads that it has.
    #[serde(default)]
    pub inputs: Vec<ReadingInputs>,
}

/// A setting of a reading.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ReadingSetting {
    /// Setting, such as `gpu_link.rate=200GB/s`.
    pub set: Text,
    /// Sentence or artifact that supports it.
    pub source: String,
}

/// Parameters of one workload under a reading.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ReadingInputs {
    /// Label of the workload.
    pub workload: Text,
    /// Parameters, which replace those of the same name.
    pub parameters: Text,
    /// Sentence or artifact that supports them.
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

    /// The schema that editors read must be that of the types. `UPDATE_SCHEMA=1 cargo test` writes it.
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
