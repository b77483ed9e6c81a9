//! The outcome of an experiment as data: what a report shows, and what `report` reads back from a folder.

use crate::drawing::LOOKS;
use crate::evidence::{Evidence, Runs};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Everything one report shows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Document {
    /// Heading, such as `HMG, HPCA 2020`.
    pub title: String,
    /// Paper's short name as on the command line, or the sweep's name.
    pub paper: String,
    /// Set of the paper's readings that was applied; empty for the default.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub readings: String,
    /// Scale that was realised, in words, such as `1/16`.
    pub scale: String,
    /// Which time of runs speed-ups are of: `region`, `kernels` or `whole`; empty where none is compared.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub time: String,
    /// Version of the simulator.
    pub tombolo: String,
    /// Command that makes this document again.
    pub command: String,
    /// Claims, in the order of the paper.
    pub claims: Vec<Claim>,
    /// Figures, in the order of the paper.
    pub figures: Vec<Figure>,
    /// Machines and designs as used, one table each, and the workloads as run.
    pub configurations: Vec<Configuration>,
    /// Points that failed: what was to run, and why it did not.
    #[serde(default)]
    pub failures: Vec<Failure>,
    /// Remarks on the whole: approximations, what was left out.
    #[serde(default)]
    pub notes: Vec<String>,
    /// What made the document, and where; `None` of one that an earlier version wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provenance: Option<Provenance>,
    /// The runs behind its figures.
    #[serde(default, skip_serializing_if = "Runs::is_empty")]
    pub runs: Runs,
}

/// What made a document, and where. Differs from run to run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Provenance {
    /// Version of the simulator.
    pub tombolo: String,
    /// Commit that it is built from; `unknown` where it is not built from a repository.
    pub commit: String,
    /// Day of that commit.
    pub commit_date: String,
    /// Hash of the sources that decide what a run gives.
    pub model: String,
    /// Day on which the document was made, in UTC.
    pub date: String,
    /// Operating system of the host.
    pub os: String,
    /// Its processors.
    pub architecture: String,
    /// Cores that it offered.
    pub cores: usize,
    /// Threads, at most. No result depends on them.
    pub threads: usize,
    /// Seeds of generated inputs; empty where nothing is generated.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seeds: Vec<u64>,
    /// The command as given.
    pub command: String,
    /// The experiments, as files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub experiments: Vec<SourceFile>,
}

/// A file as read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SourceFile {
    /// What messages call it.
    pub name: String,
    /// All of it.
    pub text: String,
}

impl Provenance {
    /// What is told of it beside version and command: what, and its value.
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

/// A figure: a table of numbers, how to draw it, and what the paper states of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Such as `figure-8`.
    pub id: String,
    /// Such as `Figure 8: performance of five configurations`.
    pub title: String,
    /// What is shown, how it is normalised, and how to read it.
    pub caption: String,
    /// Which rows its means leave out, and why; empty where they leave out none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub left_out: String,
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
    /// The runs, ranges and remarks behind its numbers.
    #[serde(default, skip_serializing_if = "Evidence::is_empty")]
    pub evidence: Evidence,
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
    /// Number that the row is of, in its base unit, such as a swept rate in bytes a second. Lines have it in its place along
    /// their horizontal axis. None: rows stand side by side.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<f64>,
}

/// How a figure is drawn.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Chart {
    /// Shape.
    pub kind: ChartKind,
    /// What the horizontal axis shows.
    pub x: String,
    /// What the vertical axis shows; of a heat map, what its cells do.
    pub y: String,
    /// What the columns are where their heads do not say: the second axis of a sweep, or the vertical axis of a heat map.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub series: String,
    /// Unit of the vertical axis; empty for a ratio.
    #[serde(default)]
    pub unit: String,
    /// Whether the vertical axis is logarithmic.
    #[serde(default)]
    pub log_y: bool,
    /// Value of the vertical axis to mark with a line, such as 1 for a speed-up; of a heat map, where its colours turn.
    #[serde(default)]
    pub reference: Option<f64>,
    /// By series, which colour and hatch it has, counted from 0, so that series of one name look alike in several figures.
    /// Empty: as they stand in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub looks: Vec<usize>,
}

/// Shapes a figure may take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ChartKind {
    /// One group of bars a row, one bar a column; points in their place on a logarithmic axis.
    #[default]
    #[serde(rename = "bars")]
    Bars,
    /// One line a column, over the rows in order.
    #[serde(rename = "lines")]
    Lines,
    /// One bar a row, one part a column.
    #[serde(rename = "stacked")]
    Stacked,
    /// One point a row: the second column over the first number, on equal scales.
    #[serde(rename = "scatter")]
    Scatter,
    /// One cell a row and column, coloured by its value: rows along the horizontal axis, columns along the vertical.
    #[serde(rename = "heat")]
    Heat,
    /// No drawing.
    #[serde(rename = "table")]
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
    /// What a closed form predicts of a directed program, or what follows from other numbers of the paper; `None` where
    /// nothing is predicted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicted: Option<f64>,
    /// What was measured; `None` where a point it needs failed.
    pub measured: Option<f64>,
    /// Unit of all three; empty for a ratio or a count.
    pub unit: String,
    /// What came of it.
    pub verdict: Verdict,
    /// For a claim that fails, why, from the counters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// The repetitions of a direction: other seeds, another scale, assumed parameters halved and doubled.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repetitions: Vec<Repetition>,
    /// Whether it was said before the first run that it may fail.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub foretold: bool,
    /// Reading or clock that it was measured under, several joined by `+`: such a claim is shown and never judged, and its
    /// id ends in `@` and the reading. Empty for the paper's default, which alone decides a verdict.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reading: String,
}

/// Mark between the statement and the reading of a claim's id.
pub const AT: char = '@';

/// Mark between readings that a claim is measured under together.
pub const AND: &str = "+";

/// What is said of a claim that was foretold to fail.
pub const FORETOLD: &str = "said before the first run: this may fail";

/// The four kinds of claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ClaimKind {
    /// Arithmetic of the paper: must match exactly.
    #[serde(rename = "identity")]
    Identity,
    /// A closed-form prediction of a directed workload: must pass.
    #[serde(rename = "mechanism")]
    Mechanism,
    /// One ahead of another, or a trend.
    #[serde(rename = "direction")]
    Direction,
    /// A ratio, printed beside ours.
    #[serde(rename = "magnitude")]
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
    /// A magnitude, or a claim of another reading: shown, never judged.
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
    /// What the same workloads give without the change.
    pub unchanged: Option<f64>,
    /// Whether the direction came out, or not, as it does without the change. `None` where it does not come out on these
    /// workloads either way though it does on all: they say nothing of it.
    pub agrees: Option<bool>,
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

/// The claims of each kind, the strictest first. One of another reading stands behind the default claim of its statement.
pub(crate) fn by_kind(claims: &[Claim]) -> Vec<(ClaimKind, Vec<&Claim>)> {
    let mut first = BTreeMap::new();
    for (at, claim) in claims.iter().enumerate() {
        let place = first.entry((claim.kind, claim.statement())).or_insert((at, claim.is_default()));
        // Another reading may stand in an earlier figure than the default one.
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
    /// What the text lacks or has wrong, with its line, or the row of a figure whose numbers do not match its columns.
    pub fn from_json(text: &str) -> Result<Document, Malformed> {
        let document: Document = serde_json::from_str(text)?;
        document.figures.iter().try_for_each(Figure::check)?;
        Ok(document)
    }
}

/// Why a text is not a document.
#[derive(Debug, thiserror::Error)]
pub enum Malformed {
    /// It is not JSON, or a key is missing or has a value of another type.
    #[error("not a report's document: {0}")]
    Json(#[from] serde_json::Error),
    /// A row does not fit its figure.
    #[error(
        "figure {figure:?}, row {row:?}: {values} numbers, but its {columns} columns after the first want one each"
    )]
    Row {
        /// Id of the figure.
        figure: String,
        /// Label of the row.
        row: String,
        /// Numbers it has.
        values: usize,
        /// Columns that want one.
        columns: usize,
    },
    /// A scatter has nothing to put on one of its axes.
    #[error("figure {figure:?}: a scatter wants two columns of numbers, and has {columns}")]
    Scatter {
        /// Id of the figure.
        figure: String,
        /// Columns of numbers it has.
        columns: usize,
    },
}

impl Figure {
    /// Columns that hold numbers: all but the first.
    pub fn series(&self) -> &[String] {
        self.columns.get(1..).unwrap_or(&[])
    }

    /// The look of a series, counted from 0 over those that are drawn.
    pub(crate) fn look(&self, series: usize) -> usize {
        self.chart.looks.get(series).copied().unwrap_or(series) % LOOKS
    }

    /// All looks that its drawing needs.
    pub(crate) fn looks(&self) -> BTreeSet<usize> {
        (0..self.series().len()).map(|series| self.look(series)).collect()
    }

    /// Whether there is a number to show.
    pub fn has_numbers(&self) -> bool {
        self.rows.iter().any(|row| (0..self.series().len()).any(|column| row.value(column).is_some()))
    }

    /// What the paper states of a row and a column, by their names.
    pub fn published_at<'a>(&'a self, row: &'a str, column: &'a str) -> impl Iterator<Item = &'a Published> {
        self.published.iter().filter(move |published| published.row == row && published.column == column)
    }

    fn check(&self) -> Result<(), Malformed> {
        let (figure, columns) = (self.id.clone(), self.series().len());
        if self.chart.kind == ChartKind::Scatter && columns < 2 {
            return Err(Malformed::Scatter { figure, columns });
        }
        match self.rows.iter().find(|row| row.values.len() != columns) {
            None => Ok(()),
            Some(row) => Err(Malformed::Row { figure, row: row.label.clone(), values: row.values.len(), columns }),
        }
    }
}

impl Row {
    /// The number in a column of numbers, counted from zero; `None` where there is none.
    pub fn value(&self, column: usize) -> Option<f64> {
        self.values.get(column).copied().flatten().filter(|value| value.is_finite())
    }
}

impl Claim {
    /// Whether its verdict counts: it is of the paper's default reading and clock.
    pub fn is_default(&self) -> bool {
        self.reading.is_empty()
    }

    /// Its id without the reading.
    pub fn statement(&self) -> &str {
        self.id.split(AT).next().unwrap_or_default()
    }

    /// What was measured as a multiple of what the paper states.
    pub fn measured_over_paper(&self) -> Option<f64> {
        let (measured, paper) = (self.measured?, self.paper?);
        Some(measured / paper).filter(|ratio| ratio.is_finite())
    }
}

impl ClaimKind {
    /// All kinds, the strictest first.
    pub const ALL: [ClaimKind; 4] =
        [ClaimKind::Identity, ClaimKind::Mechanism, ClaimKind::Direction, ClaimKind::Magnitude];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            ClaimKind::Identity => "Identity",
            ClaimKind::Mechanism => "Mechanism",
            ClaimKind::Direction => "Direction",
            ClaimKind::Magnitude => "Magnitude",
        }
    }

    /// What a claim of this kind is, and what its verdict means.
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

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::Fails => "fails",
            Verdict::NotRobust => "not robust",
            Verdict::Shown => "shown",
        }
    }

    /// Its name after a number of claims: `1 holds`, `2 hold`.
    pub fn name_of(self, count: usize) -> &'static str {
        match self {
            Verdict::Holds if count != 1 => "hold",
            Verdict::Fails if count != 1 => "fail",
            _ => self.name(),
        }
    }
}
