//! An experiment's outcome in the form of data: the contents of a report, and the format that `report` reads back from
//! a folder.

use crate::drawing::LOOKS;
use crate::evidence::{Evidence, Runs};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Contents of a report.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Document {
    /// Heading, for example `HMG, HPCA 2020`.
    pub title: String,
    /// Short name of the paper on the command line, or the name of the sweep.
    pub paper: String,
    /// Applied set of the paper's readings; empty for the default.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub readings: String,
    /// Realised scale in words, for example `1/16`.
    pub scale: String,
    /// Run time used for speed-ups: `region`, `kernels` or `whole`; empty if no times are compared.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub time: String,
    /// Version of the simulator.
    pub tombolo: String,
    /// Command that reproduces this document.
    pub command: String,
    /// Claims, in the order of the paper.
    pub claims: Vec<Claim>,
    /// Figures, in the order of the paper.
    pub figures: Vec<Figure>,
    /// Machines and designs used, one table each, and the workloads run.
    pub configurations: Vec<Configuration>,
    /// Failed points, with reasons.
    #[serde(default)]
    pub failures: Vec<Failure>,
    /// Remarks on the whole report: approximations, omissions.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Program and host that made the document; `None` for a document from an earlier version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provenance: Option<Provenance>,
    /// Runs behind the figures.
    #[serde(default, skip_serializing_if = "Runs::is_empty")]
    pub runs: Runs,
}

/// Program and host that made a document. Differs from run to run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Provenance {
    /// Version of the simulator.
    pub tombolo: String,
    /// Commit of the build; `unknown` if the build has no repository.
    pub commit: String,
    /// Date of the commit.
    pub commit_date: String,
    /// Hash over the sources that decide a run's result.
    pub model: String,
    /// Creation date of the document, in UTC.
    pub date: String,
    /// Operating system of the host.
    pub os: String,
    /// Processor architecture of the host.
    pub architecture: String,
    /// Cores available on the host.
    pub cores: usize,
    /// Maximum number of threads. No result depends on the number.
    pub threads: usize,
    /// Seeds for generated inputs; empty if no inputs are generated.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seeds: Vec<u64>,
    /// Command line given by the user.
    pub command: String,
    /// Experiment files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub experiments: Vec<SourceFile>,
}

/// A file with its contents.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SourceFile {
    /// File name in messages.
    pub name: String,
    /// Complete text.
    pub text: String,
}

impl Provenance {
    /// Returns facts to show next to version and command: label and value.
    pub fn facts(&self) -> Vec<(&'static str, String)> {
        let seeds = self.seeds.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
        let host = format!("{} on {}, {} cores", self.os, self.architecture, self.cores);
        let facts = [
            ("Commit", format!("{} of {}", self.commit, self.commit_date)),
            ("Model", self.model.clone()),
            ("Made", self.date.clone()),
            ("Host", host),
            ("Threads", self.threads.to_string()),
            ("Seeds", seeds),
        ];
        facts.into_iter().filter(|(_, value)| !value.is_empty()).collect()
    }
}

/// A figure: a table with numbers, its drawing, and the paper's values.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Id, for example `figure-8`.
    pub id: String,
    /// Title, for example `Figure 8: performance of five configurations`.
    pub title: String,
    /// Caption: contents, normalisation, and reading advice.
    pub caption: String,
    /// Rows left out from its means, with the reason; empty if means cover all rows.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub left_out: String,
    /// Drawing of the figure.
    pub chart: Chart,
    /// Column headers; the first header describes the row labels (workload, or the swept value).
    pub columns: Vec<String>,
    /// Rows, one per workload or swept value: a label, then a number for each further column; `None` if the point
    /// failed.
    pub rows: Vec<FigureRow>,
    /// Values stated in the paper's text.
    #[serde(default)]
    pub published: Vec<PublishedNumber>,
    /// Runs, ranges and remarks behind the numbers.
    #[serde(default, skip_serializing_if = "Evidence::is_empty")]
    pub evidence: Evidence,
}

/// A row in a figure.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename = "Row")]
pub struct FigureRow {
    /// Workload or swept value.
    pub label: String,
    /// Numbers, one for each column after the first.
    pub values: Vec<Option<f64>>,
    /// True if this row summarises the remaining rows (a mean), and is drawn apart.
    #[serde(default)]
    pub summary: bool,
    /// Number that the row represents, in base units, for example a swept rate in bytes per second. Line charts place
    /// the row at this number on their horizontal axis. `None`: rows are placed side by side.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<f64>,
}

/// Drawing of a figure: shape and axes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Chart {
    /// Shape.
    pub kind: ChartKind,
    /// Quantity on the horizontal axis.
    pub x: String,
    /// Quantity on the vertical axis; for a heat map, the quantity in its cells.
    pub y: String,
    /// Quantity that distinguishes the columns, if the headers do not say: the second axis of a sweep, or the vertical
    /// axis of a heat map.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub series: String,
    /// Unit on the vertical axis; empty for a ratio.
    #[serde(default)]
    pub unit: String,
    /// True for a logarithmic vertical axis.
    #[serde(default)]
    pub log_y: bool,
    /// Value marked with a line on the vertical axis, for example 1 for a speed-up. In a heat map, the value at which
    /// colours change sides.
    #[serde(default)]
    pub reference: Option<f64>,
    /// Look per series (colour and hatch), counted from 0, so that series with equal names look alike in several
    /// figures. Empty: looks follow the series order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub looks: Vec<usize>,
}

/// Possible shapes for the drawing of a figure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ChartKind {
    /// A group of bars per row, with one bar per column; points replace bars on a logarithmic axis.
    #[default]
    #[serde(rename = "bars")]
    Bars,
    /// A line per column, over the rows in order.
    #[serde(rename = "lines")]
    Lines,
    /// A bar per row, with a segment per column.
    #[serde(rename = "stacked")]
    Stacked,
    /// A point per row: the second column over the first number, on equal scales.
    #[serde(rename = "scatter")]
    Scatter,
    /// A cell per row and column, coloured by its value: rows along the horizontal axis, columns along the vertical.
    #[serde(rename = "heat")]
    Heat,
    /// No drawing.
    #[serde(rename = "table")]
    Table,
}

/// A value stated in the paper's text or tables.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename = "Published")]
pub struct PublishedNumber {
    /// Row label.
    pub row: String,
    /// Column header.
    pub column: String,
    /// The value, in the figure's unit.
    pub value: f64,
    /// Place in the paper.
    pub source: String,
}

/// A claim from a paper, with its outcome.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Claim {
    /// Id, for example `fig8-hmg-over-nhcc`.
    pub id: String,
    /// Claim kind. The kind decides the verdict's meaning.
    pub kind: ClaimKind,
    /// The claim in words.
    pub text: String,
    /// Number stated in the paper; `None` if the paper states only a direction.
    pub paper: Option<f64>,
    /// Closed-form prediction for a directed program, or a number derived from different numbers in the paper; `None`
    /// without a prediction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicted: Option<f64>,
    /// Measured number; `None` if a required point failed.
    pub measured: Option<f64>,
    /// Unit of all three numbers; empty for a ratio or a count.
    pub unit: String,
    /// Verdict on the claim.
    pub verdict: Verdict,
    /// Reason for a failing claim, from the counters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// Repetitions of a direction: alternative seeds, a second scale, assumed parameters halved and doubled.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repetitions: Vec<Repetition>,
    /// True if a possible failure was announced before the first run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub foretold: bool,
    /// Reading or clock for the measurement, several joined by `+`. Such a claim is shown and never judged, and its id
    /// ends in `@` and the reading. Empty for the paper's default, the only reading that decides a verdict.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reading: String,
}

/// Separator between the statement and the reading in a claim's id.
pub const AT: char = '@';

/// Separator between readings combined in a claim.
pub const AND: &str = "+";

/// Remark on a claim whose possible failure was announced.
pub const FORETOLD: &str = "said before the first run: this may fail";

/// Kinds of claims, from strict arithmetic to plain comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ClaimKind {
    /// Arithmetic from the paper: must match exactly.
    #[serde(rename = "identity")]
    Identity,
    /// A closed-form prediction for a directed workload: must pass.
    #[serde(rename = "mechanism")]
    Mechanism,
    /// An ordering between two values, or a trend.
    #[serde(rename = "direction")]
    Direction,
    /// A ratio, printed next to ours.
    #[serde(rename = "magnitude")]
    Magnitude,
}

/// Outcome of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Verdict {
    /// The claim holds.
    #[serde(rename = "holds")]
    Holds,
    /// The claim does not hold.
    #[serde(rename = "fails")]
    Fails,
    /// The sign flips between repetitions.
    #[serde(rename = "not robust")]
    NotRobust,
    /// A magnitude, or a claim under an alternative reading: shown, never judged.
    #[serde(rename = "shown")]
    Shown,
}

/// A direction measured again under a change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Repetition {
    /// Description of the change, for example `seed 2` or `fabric.latency × 2`.
    pub change: String,
    /// Measured number under the change.
    pub measured: Option<f64>,
    /// True if the direction holds under the change.
    pub holds: bool,
    /// Number measured on these workloads without the change.
    pub unchanged: Option<f64>,
    /// True if the direction has the same outcome with and without the change. `None` if these workloads do not show
    /// the direction either way, although all workloads together do: the repetition gives no information.
    pub agrees: Option<bool>,
}

/// A machine or a design used in the report.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Configuration {
    /// Title, for example `machine hmg-4x4`.
    pub title: String,
    /// All values.
    pub entries: Vec<ConfigurationValue>,
}

/// A value in a machine or design.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ConfigurationValue {
    /// Path, for example `module.l2.size`.
    pub key: String,
    /// Value with its unit.
    pub value: String,
    /// Source of the value; empty if the description gives no source.
    #[serde(default)]
    pub source: String,
}

/// A point that could not be run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    /// Machine, design, workload and settings.
    pub point: String,
    /// Reason.
    pub error: String,
}

/// Groups claims by kind, strictest kind first. A claim under an alternative reading follows the default claim with its
/// statement.
pub(crate) fn by_kind(claims: &[Claim]) -> Vec<(ClaimKind, Vec<&Claim>)> {
    let mut first = BTreeMap::new();
    for (at, claim) in claims.iter().enumerate() {
        let place = first.entry((claim.kind, claim.statement())).or_insert((at, claim.is_default()));
        // An alternative reading may appear in an earlier figure than the default reading.
        if claim.is_default() && !place.1 {
            *place = (at, true);
        }
    }
    let of = |kind| {
        let mut claims: Vec<&Claim> = claims.iter().filter(|claim| claim.kind == kind).collect();
        claims.sort_by_key(|claim| (first[&(kind, claim.statement())].0, !claim.is_default()));
        (kind, claims)
    };
    ClaimKind::ALL.map(of).into_iter().filter(|(_, claims): &(_, Vec<_>)| !claims.is_empty()).collect()
}

impl Document {
    /// Reads a document from JSON.
    ///
    /// # Errors
    ///
    /// Describes a missing or invalid value with its line, or a figure's row whose numbers do not match its columns.
    pub fn from_json(text: &str) -> Result<Document, DocumentError> {
        let document: Document = serde_json::from_str(text)?;
        document.figures.iter().try_for_each(Figure::check)?;
        Ok(document)
    }
}

/// Reason for rejecting a text as a document.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    /// The text is not JSON, or a key is missing or has a value with a wrong type.
    #[error("not a report's document: {0}")]
    Json(#[from] serde_json::Error),
    /// A row does not match its figure.
    #[error(
        "figure {figure:?}, row {row:?}: {values} numbers, but its {columns} columns after the first want one each"
    )]
    Row {
        /// Id of the figure.
        figure: String,
        /// Label of the row.
        row: String,
        /// Number count in the row.
        values: usize,
        /// Count of columns with a required number.
        columns: usize,
    },
    /// A scatter plot lacks the numbers for an axis.
    #[error("figure {figure:?}: a scatter wants two columns of numbers, and has {columns}")]
    Scatter {
        /// Id of the figure.
        figure: String,
        /// Count of columns with numbers.
        columns: usize,
    },
}

impl Figure {
    /// Returns the columns with numbers: all except the first.
    pub fn series(&self) -> &[String] {
        self.columns.get(1..).unwrap_or(&[])
    }

    /// Returns the look of a series, counted from 0 over the drawn series.
    pub(crate) fn look(&self, series: usize) -> usize {
        self.chart.looks.get(series).copied().unwrap_or(series) % LOOKS
    }

    /// Returns all looks used by the drawing.
    pub(crate) fn looks(&self) -> BTreeSet<usize> {
        (0..self.series().len()).map(|series| self.look(series)).collect()
    }

    /// True if at least one number can be shown.
    pub fn has_numbers(&self) -> bool {
        self.rows.iter().any(|row| (0..self.series().len()).any(|column| row.value(column).is_some()))
    }

    /// Returns the paper's values for a row and a column, by name.
    pub fn published_at<'a>(&'a self, row: &'a str, column: &'a str) -> impl Iterator<Item = &'a PublishedNumber> {
        self.published.iter().filter(move |published| published.row == row && published.column == column)
    }

    fn check(&self) -> Result<(), DocumentError> {
        let (figure, columns) = (self.id.clone(), self.series().len());
        if self.chart.kind == ChartKind::Scatter && columns < 2 {
            return Err(DocumentError::Scatter { figure, columns });
        }
        match self.rows.iter().find(|row| row.values.len() != columns) {
            None => Ok(()),
            Some(row) => Err(DocumentError::Row { figure, row: row.label.clone(), values: row.values.len(), columns }),
        }
    }
}

impl FigureRow {
    /// Returns the number in a numeric column, counted from zero; `None` if absent.
    pub fn value(&self, column: usize) -> Option<f64> {
        self.values.get(column).copied().flatten().filter(|value| value.is_finite())
    }
}

impl Claim {
    /// True if the verdict counts: the claim uses the paper's default reading and clock.
    pub fn is_default(&self) -> bool {
        self.reading.is_empty()
    }

    /// Returns the id without the reading.
    pub fn statement(&self) -> &str {
        self.id.split(AT).next().unwrap_or_default()
    }

    /// Returns the measured number relative to the paper's number.
    pub fn measured_over_paper(&self) -> Option<f64> {
        let (measured, paper) = (self.measured?, self.paper?);
        Some(measured / paper).filter(|ratio| ratio.is_finite())
    }
}

impl ClaimKind {
    /// All kinds, strictest first.
    pub const ALL: [ClaimKind; 4] =
        [ClaimKind::Identity, ClaimKind::Mechanism, ClaimKind::Direction, ClaimKind::Magnitude];

    /// Returns the kind's name.
    pub fn name(self) -> &'static str {
        match self {
            ClaimKind::Identity => "Identity",
            ClaimKind::Mechanism => "Mechanism",
            ClaimKind::Direction => "Direction",
            ClaimKind::Magnitude => "Magnitude",
        }
    }

    /// Describes claims with this kind, and the meaning of their verdicts.
    pub fn meaning(self) -> &'static str {
        match self {
            ClaimKind::Identity => "Arithmetic of the paper: must match exactly.",
            ClaimKind::Mechanism => "A closed-form prediction of a directed workload: must pass.",
            ClaimKind::Direction => {
                "One ahead of another, or a trend; not robust where other seeds, another scale or assumed values change it."
            }
            ClaimKind::Magnitude => "A ratio, printed beside ours: shown, never judged.",
        }
    }
}

impl Verdict {
    /// All verdicts.
    pub const ALL: [Verdict; 4] = [Verdict::Holds, Verdict::Fails, Verdict::NotRobust, Verdict::Shown];

    /// Returns the verdict's name.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::Fails => "fails",
            Verdict::NotRobust => "not robust",
            Verdict::Shown => "shown",
        }
    }

    /// Returns the name after a number of claims: `1 holds`, `2 hold`.
    pub fn name_of(self, count: usize) -> &'static str {
        match self {
            Verdict::Holds if count != 1 => "hold",
            Verdict::Fails if count != 1 => "fail",
            _ => self.name(),
        }
    }
}
