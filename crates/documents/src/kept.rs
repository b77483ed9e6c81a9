//! Kept results: claims and figures from a report, the basis for tables and numbers in documents.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use tombolo_report::Document;
use tombolo_report::document::{ClaimKind, Figure, FigureRow, Verdict};

/// Significant digits kept. More than any document shows, fewer than the platform-dependent last bits in a host's
/// `exp`.
const DIGITS: usize = 6;

/// Suffix for figures that split times into warp stall classes.
const STACKS: &str = "-stalls";

/// A report without its runs, drawings and configurations.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct KeptReport {
    /// Commands that rebuild the report.
    pub(crate) commands: Vec<String>,
    /// Version of the simulator.
    pub(crate) tombolo: String,
    /// Commit from which the simulator was built.
    pub(crate) commit: String,
    /// Short name for the paper or the study.
    pub(crate) paper: String,
    pub(crate) claims: Vec<KeptClaim>,
    pub(crate) figures: Vec<KeptFigure>,
}

/// A claim with its measured value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct KeptClaim {
    pub(crate) id: String,
    pub(crate) kind: ClaimKind,
    pub(crate) verdict: Verdict,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) paper: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) measured: Option<f64>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) unit: String,
    pub(crate) text: String,
}

/// The numbers in a figure.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct KeptFigure {
    pub(crate) id: String,
    /// Headings of the number columns.
    pub(crate) columns: Vec<String>,
    pub(crate) rows: Vec<KeptRow>,
}

/// A row in a figure.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct KeptRow {
    pub(crate) label: String,
    /// True for a row that summarises the others.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) summary: bool,
    /// A value for each column; `None` if the point failed.
    pub(crate) values: Vec<Option<f64>>,
}

impl KeptReport {
    /// Extracts the kept part from a report written by `commands`.
    pub(crate) fn of(document: &Document, commands: &str) -> KeptReport {
        let made = document.provenance.as_ref();
        KeptReport {
            commands: commands.lines().map(str::to_owned).collect(),
            tombolo: document.tombolo.clone(),
            commit: made.map_or_else(String::new, |made| made.commit.clone()),
            paper: document.paper.clone(),
            claims: document.claims.iter().map(claim).collect(),
            figures: document.figures.iter().filter(is_kept).map(figure).collect(),
        }
    }

    /// True if both contain equal results, regardless of the simulator version.
    pub(crate) fn agrees(&self, other: &KeptReport) -> bool {
        let unversioned =
            |kept: &KeptReport| KeptReport { tombolo: String::new(), commit: String::new(), ..kept.clone() };
        unversioned(self) == unversioned(other)
    }

    /// Results that differ from `old`, one line each.
    pub(crate) fn differences(&self, old: &KeptReport) -> Vec<String> {
        let mut told = Vec::new();
        for claim in self.claims.iter().filter(|claim| !old.claims.contains(claim)) {
            let before = old.claims.iter().find(|before| before.id == claim.id);
            let before = before.map_or_else(|| "nothing".to_owned(), |before| format!("{:?}", before.measured));
            told.push(format!("claim {}: {:?}, kept {before}", claim.id, claim.measured));
        }
        for figure in &self.figures {
            let before = old.figures.iter().find(|before| before.id == figure.id);
            if before.is_none_or(|before| before.columns != figure.columns || before.rows.len() != figure.rows.len()) {
                told.push(format!("figure {}: other rows or columns than those kept", figure.id));
            } else if let Some(before) = before {
                let rows = figure.rows.iter().zip(&before.rows).filter(|(new, old)| new != old);
                told.extend(rows.map(|(new, old)| {
                    format!("figure {}, {}: {:?}, kept {:?}", figure.id, new.label, new.values, old.values)
                }));
            }
        }
        if told.is_empty() && !self.agrees(old) {
            told.push("other commands, claims or figures than those kept".to_owned());
        }
        told
    }

    /// The number in a figure's row and column; `None` if the point failed or the row does not exist.
    ///
    /// # Errors
    ///
    /// An unknown figure or column, with the list of kept names.
    pub(crate) fn cell(&self, figure: &str, row: &str, column: &str) -> Result<Option<f64>, String> {
        let figure = self.figure(figure)?;
        let index = figure.columns.iter().position(|known| known == column).ok_or_else(|| {
            format!("{} has no column `{column}`: expected one of `{}`", figure.id, figure.columns.join("`, `"))
        })?;
        Ok(figure.rows.iter().find(|known| known.label == row).and_then(|row| row.values.get(index).copied().flatten()))
    }

    /// Finds a figure by its name.
    ///
    /// # Errors
    ///
    /// An unknown figure, with the list of kept figures.
    pub(crate) fn figure(&self, id: &str) -> Result<&KeptFigure, String> {
        self.figures.iter().find(|known| known.id == id).ok_or_else(|| {
            let known: Vec<&str> = self.figures.iter().map(|known| known.id.as_str()).collect();
            format!("no figure `{id}` is kept: expected one of `{}`", known.join("`, `"))
        })
    }

    /// JSON with one line per claim and per row, so that differences are easy to read.
    pub(crate) fn text(&self) -> String {
        let lines = |indent: &str, items: Vec<String>| {
            let inner: Vec<String> = items.iter().map(|item| format!("\n{indent}  {item}")).collect();
            if inner.is_empty() { "[]".to_owned() } else { format!("[{}\n{indent}]", inner.join(",")) }
        };
        let figure = |figure: &KeptFigure| {
            let rows = lines("    ", figure.rows.iter().map(json).collect());
            format!("{{ \"id\": {}, \"columns\": {}, \"rows\": {rows} }}", json(&figure.id), json(&figure.columns))
        };
        let members = [
            ("commands", lines("  ", self.commands.iter().map(json).collect())),
            ("tombolo", json(&self.tombolo)),
            ("commit", json(&self.commit)),
            ("paper", json(&self.paper)),
            ("claims", lines("  ", self.claims.iter().map(json).collect())),
            ("figures", lines("  ", self.figures.iter().map(figure).collect())),
        ];
        let members: Vec<String> = members.iter().map(|(key, value)| format!("  \"{key}\": {value}")).collect();
        format!("{{\n{}\n}}\n", members.join(",\n"))
    }
}

/// True for figures with numbers, except for warp slot cycles, which take as much space as everything else together.
fn is_kept(figure: &&Figure) -> bool {
    figure.has_numbers() && !figure.id.ends_with(STACKS)
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("its keys are strings")
}

fn claim(claim: &tombolo_report::document::Claim) -> KeptClaim {
    KeptClaim {
        id: claim.id.clone(),
        kind: claim.kind,
        verdict: claim.verdict,
        paper: claim.paper,
        measured: rounded(claim.measured),
        unit: claim.unit.clone(),
        text: claim.text.clone(),
    }
}

fn figure(figure: &Figure) -> KeptFigure {
    let row = |row: &FigureRow| KeptRow {
        label: row.label.clone(),
        summary: row.summary,
        values: (0..figure.series().len()).map(|column| rounded(row.value(column))).collect(),
    };
    KeptFigure { id: figure.id.clone(), columns: figure.series().to_vec(), rows: figure.rows.iter().map(row).collect() }
}

fn rounded(value: Option<f64>) -> Option<f64> {
    let value = value.filter(|value| value.is_finite())?;
    format!("{value:.*e}", DIGITS - 1).parse().ok()
}

/// Kept results in a folder, one file each.
pub(crate) struct Results {
    pub(crate) folder: PathBuf,
}

impl Results {
    /// Path of a kept result.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.json"))
    }

    /// Reads a kept result; `None` if it was never made.
    ///
    /// # Errors
    ///
    /// A file that cannot be read, or that contains no kept result.
    pub(crate) fn get(&self, name: &str) -> Result<Option<KeptReport>, String> {
        let path = self.path(name);
        if !path.exists() {
            return Ok(None);
        }
        let told = |fault: String| format!("{}: {fault}", path.display());
        let text = std::fs::read_to_string(&path).map_err(|error| told(error.to_string()))?;
        serde_json::from_str(&text).map(Some).map_err(|error| told(error.to_string()))
    }

    /// Writes a kept result.
    ///
    /// # Errors
    ///
    /// The file system's error.
    pub(crate) fn keep(&self, name: &str, kept: &KeptReport) -> Result<(), String> {
        let told = |error: std::io::Error| format!("{}: {error}", self.path(name).display());
        std::fs::create_dir_all(&self.folder).map_err(told)?;
        std::fs::write(self.path(name), kept.text()).map_err(told)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Two figures and two claims.
    pub(crate) fn kept() -> KeptReport {
        let row = |label: &str, summary, values: [f64; 2]| FigureRow {
            label: label.to_owned(),
            values: values.map(Some).to_vec(),
            summary,
            at: None,
        };
        let figure = |id: &str, rows| Figure {
            id: id.to_owned(),
            columns: ["workload", "nhcc", "hmg"].map(str::to_owned).to_vec(),
            rows,
            ..Figure::default()
        };
        let claim = |id: &str, kind, verdict, measured| tombolo_report::document::Claim {
            id: id.to_owned(),
            kind,
            text: format!("text of {id}"),
            paper: Some(1.18),
            predicted: None,
            measured: Some(measured),
            unit: String::new(),
            verdict,
            cause: None,
            repetitions: Vec::new(),
            foretold: false,
            reading: String::new(),
        };
        let document = Document {
            paper: "hmg".to_owned(),
            tombolo: "0.1.0".to_owned(),
            claims: vec![
                claim("over-nhcc", ClaimKind::Direction, Verdict::Holds, 1.078_461_1),
                claim("ideal", ClaimKind::Magnitude, Verdict::Shown, 0.937_5),
            ],
            figures: vec![
                figure("figure-8", vec![row("bfs", false, [8.0, 10.0]), row("mean", true, [1.25, 1.5])]),
                figure("figure-9", vec![row("bfs", false, [0.5, 2.0])]),
                figure("figure-9-stalls", vec![row("bfs", false, [30.0, 70.0])]),
            ],
            ..Document::default()
        };
        KeptReport::of(&document, "tombolo reproduce hmg\n")
    }

    #[test]
    fn what_is_written_is_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let results = Results { folder: folder.path().join("results") };
        assert_eq!(results.get("hmg"), Ok(None));
        results.keep("hmg", &kept()).unwrap();
        assert_eq!(results.get("hmg"), Ok(Some(kept())));
    }

    #[test]
    fn numbers_have_six_digits() {
        assert_eq!(
            [1.078_461_149, 1e-9 / 3.0, 0.0].map(|value| rounded(Some(value)).unwrap()),
            [1.07846, 3.33333e-10, 0.0]
        );
        assert_eq!(rounded(Some(f64::NAN)), None);
    }

    #[test]
    fn results_of_another_version_agree_and_other_numbers_do_not() {
        let (old, mut new) = (kept(), KeptReport { tombolo: "0.2.0".to_owned(), ..kept() });
        assert!(new.agrees(&old) && new.differences(&old).is_empty());
        new.figures[1].rows[0].values[1] = Some(2.5);
        assert!(!new.agrees(&old));
        assert_eq!(
            new.differences(&old),
            ["figure figure-9, bfs: [Some(0.5), Some(2.5)], kept [Some(0.5), Some(2.0)]"]
        );
    }

    #[test]
    fn a_name_that_is_not_kept_is_told_with_those_that_are() {
        assert_eq!(kept().cell("figure-8", "bfs", "hmg"), Ok(Some(10.0)));
        assert_eq!(kept().cell("figure-8", "mst", "hmg"), Ok(None));
        assert!(kept().cell("figure-8", "bfs", "gps").unwrap_err().contains("`nhcc`, `hmg`"));
        assert!(kept().cell("figure-7", "bfs", "hmg").unwrap_err().contains("`figure-8`, `figure-9`"));
    }
}
