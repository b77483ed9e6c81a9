//! The outcome of an experiment as data: what a report shows, and what `report` reads back from a folder.

use serde::{Deserialize, Serialize};

/// Everything one report shows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Document {
    /// Heading, such as `HMG, HPCA 2020`.
    pub title: String,
    /// Paper's short name as on the command line, or the sweep's name.
    pub paper: String,
    /// Scale that was realised, in words, such as `1/16`.
    pub scale: String,
    /// Version of the simulator.
    pub tombolo: String,
    /// Command that makes this document again.
    pub command: String,
    /// Claims, in the order of the paper.
    pub claims: Vec<Claim>,
    /// Figures, in the order of the paper.
    pub figures: Vec<Figure>,
    /// Machines and designs as used: one table each.
    pub configurations: Vec<Configuration>,
    /// Points that failed: what was to run, and why it did not.
    #[serde(default)]
    pub failures: Vec<Failure>,
    /// Remarks on the whole: approximations, what was left out.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// A figure: a table of numbers, how to draw it, and what the paper states of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Such as `figure-8`.
    pub id: String,
    /// Such as `Figure 8: performance of five configurations`.
    pub title: String,
    /// What is shown, how it is normalised, and how to read it.
    pub caption: String,
    /// How to draw it.
    pub chart: Chart,
    /// Heads of the columns; the first names the rows (workload, or the swept value).
    pub columns: Vec<String>,
    /// One row a workload or swept value: its label, then a number for each further column; `None` where the point
    /// failed.
    pub rows: Vec<Row>,
    /// The paper's values where its text states them.
    #[serde(default)]
    pub published: Vec<Published>,
}

/// A row of a figure.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Workload or swept value.
    pub label: String,
    /// One number for each column after the first.
    pub values: Vec<Option<f64>>,
    /// Whether this row sums up the others (a mean), and is drawn apart.
    #[serde(default)]
    pub summary: bool,
}

/// How a figure is drawn.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Chart {
    /// Shape.
    pub kind: ChartKind,
    /// What the horizontal axis shows.
    pub x: String,
    /// What the vertical axis shows.
    pub y: String,
    /// Unit of the vertical axis; empty for a ratio.
    #[serde(default)]
    pub unit: String,
    /// Whether the vertical axis is logarithmic.
    #[serde(default)]
    pub log_y: bool,
    /// Value of the vertical axis to mark with a line, such as 1 for a speed-up.
    #[serde(default)]
    pub reference: Option<f64>,
}

/// Shapes a figure may take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChartKind {
    /// One group of bars a row, one bar a column.
    #[default]
    Bars,
    /// One line a column, over the rows in order.
    Lines,
    /// One bar a row, one part a column.
    Stacked,
    /// One point a row: the second column over the first number, on equal scales.
    Scatter,
    /// No drawing.
    Table,
}

/// A value that the paper's text or tables state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Published {
    /// Row it belongs to.
    pub row: String,
    /// Column it belongs to.
    pub column: String,
    /// The value, in the figure's unit.
    pub value: f64,
    /// Where the paper states it.
    pub source: String,
}

/// A claim of a paper and what came out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Claim {
    /// Such as `fig8-hmg-over-nhcc`.
    pub id: String,
    /// What kind of claim it is, which decides what its verdict means.
    pub kind: ClaimKind,
    /// The claim in words.
    pub text: String,
    /// What the paper states; `None` where it states a direction alone.
    pub paper: Option<f64>,
    /// What was measured; `None` where a point it needs failed.
    pub measured: Option<f64>,
    /// Unit of both; empty for a ratio or a count.
    pub unit: String,
    /// What came of it.
    pub verdict: Verdict,
    /// For a claim that fails, why, from the counters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// The repetitions of a direction: other seeds, another scale, assumed parameters halved and doubled.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repetitions: Vec<Repetition>,
}

/// The four kinds of claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimKind {
    /// Arithmetic of the paper: must match exactly.
    Identity,
    /// A closed-form prediction of a directed workload: must pass.
    Mechanism,
    /// One ahead of another, or a trend.
    Direction,
    /// A ratio, printed beside ours.
    Magnitude,
}

/// What came of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Verdict {
    /// It came out.
    #[serde(rename = "holds")]
    Holds,
    /// It did not.
    #[serde(rename = "fails")]
    Fails,
    /// Its sign flips between repetitions.
    #[serde(rename = "not robust")]
    NotRobust,
    /// A magnitude: shown, never judged.
    #[serde(rename = "shown")]
    Shown,
}

/// A direction measured once more under a change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Repetition {
    /// What was changed, such as `seed 2` or `fabric.latency × 2`.
    pub change: String,
    /// What was measured.
    pub measured: Option<f64>,
    /// Whether the direction came out.
    pub holds: bool,
}

/// A machine or a design as used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Configuration {
    /// Such as `machine hmg-4x4`.
    pub title: String,
    /// Its values in full.
    pub entries: Vec<Entry>,
}

/// A value of a machine or design.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Path, such as `module.l2.size`.
    pub key: String,
    /// Value with its unit.
    pub value: String,
    /// Where it comes from; empty where the description gives no source.
    #[serde(default)]
    pub source: String,
}

/// A point that could not be run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    /// Machine, design, workload, and what was set.
    pub point: String,
    /// Why.
    pub error: String,
}
