//! Papers, experiments and suites shipped with the program: files below `presets`, embedded in the binary. Adding an
//! experiment is adding a file.

use crate::error::SpecError;
use crate::plan::replaced;
use crate::reader::File;
use crate::readings::{DEFAULT, DEFAULT_DESCRIPTION};
use crate::spec::{Experiment, Paper, Reading, Readings, Suite, SuiteWorkload};
use tombolo_machine::error::near;
use tombolo_report::document::AT;

/// A shipped file.
struct Preset {
    /// Folder name: a paper, or `suites`.
    group: &'static str,
    /// File name without extension.
    name: &'static str,
    text: &'static str,
}

static PRESETS: &[Preset] = include!(concat!(env!("OUT_DIR"), "/presets.rs"));

/// File in a paper's folder with the paper's description.
const ABOUT: &str = "paper";
/// Folder with suites.
const SUITES: &str = "suites";
/// Folder with readings, one file per paper.
const READINGS: &str = "readings";

impl Preset {
    fn file(&self) -> File {
        File { name: format!("preset {}/{}.toml", self.group, self.name), text: self.text.to_owned() }
    }
}

/// A line in a list.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct PresetEntry {
    /// Name, for example `hmg`, `hmg@each-way` or `hmg/figure-8`.
    pub name: String,
    /// Description on a single line.
    pub description: String,
}

/// Returns the papers with shipped experiments, sorted by name.
pub fn papers() -> Vec<&'static str> {
    PRESETS.iter().filter(|preset| preset.name == ABOUT).map(|preset| preset.group).collect()
}

/// Returns the shipped workload suites, sorted by name.
pub fn suites() -> Vec<&'static str> {
    PRESETS.iter().filter(|preset| preset.group == SUITES).map(|preset| preset.name).collect()
}

/// Returns the shipped files for `paper`: the description, and the experiments in the paper's order.
///
/// # Errors
/// Returns an error if no such paper ships, or if a shipped file is invalid, which a test excludes.
pub fn paper(name: &str) -> Result<(Paper, Vec<(File, Experiment)>), SpecError> {
    let about = PRESETS.iter().find(|preset| preset.group == name && preset.name == ABOUT);
    let about = about.ok_or_else(|| unknown("paper", name, papers().into_iter().map(str::to_owned).collect()))?;
    let files = PRESETS.iter().filter(|preset| preset.group == name && preset.name != ABOUT);
    let experiments = files.map(|preset| preset.file()).map(|file| file.read().map(|spec| (file, spec)));
    Ok((about.file().read()?, experiments.collect::<Result<_, _>>()?))
}

/// Returns the alternative readings of `paper`, with their file.
///
/// # Errors
/// Returns an error if no such paper ships.
pub fn readings(paper: &str) -> Result<(File, Readings), SpecError> {
    let found = PRESETS.iter().find(|preset| preset.group == READINGS && preset.name == paper);
    let found = found.ok_or_else(|| unknown("paper", paper, papers().into_iter().map(str::to_owned).collect()))?;
    let file = found.file();
    let readings = file.read()?;
    Ok((file, readings))
}

/// Returns the names of the reading sets that `reproduce --readings` applies to `paper`, default first.
///
/// # Errors
/// Returns an error if no such paper ships.
pub fn sets(paper: &str) -> Result<Vec<String>, SpecError> {
    let (_, readings) = readings(paper)?;
    let others = readings.reading.iter().filter(|reading| reading.is_set());
    Ok(std::iter::once(DEFAULT).chain(others.map(|reading| reading.name.get())).map(str::to_owned).collect())
}

/// Returns the reading set of `paper` called `name`, or `None` for the default, which changes nothing.
///
/// # Errors
/// Returns an error if no such paper ships, or if the paper has no such set.
pub(crate) fn set(paper: &str, name: &str) -> Result<Option<(File, Reading)>, SpecError> {
    if name == DEFAULT {
        return Ok(None);
    }
    let (file, readings) = readings(paper)?;
    let found = readings.reading.into_iter().find(|reading| reading.is_set() && reading.name.get() == name);
    match found {
        Some(reading) => Ok(Some((file, reading))),
        None => Err(unknown("set of readings", name, sets(paper)?)),
    }
}

/// Returns the suite called `name`.
///
/// # Errors
/// Returns an error if no such suite ships.
pub(crate) fn suite(name: &str) -> Result<(File, Suite), SpecError> {
    let known = || suites().into_iter().map(str::to_owned).collect();
    let found = PRESETS.iter().find(|preset| preset.group == SUITES && preset.name == name);
    let found = found.ok_or_else(|| unknown("suite", name, known()))?;
    let file = found.file();
    let suite = file.read()?;
    Ok((file, suite))
}

/// Returns the workloads in the suite called `name`, spelled for the command line. `quick` selects the parameters for
/// quick scale.
///
/// # Errors
/// Returns an error if no such suite ships.
pub fn workloads_of(name: &str, quick: bool) -> Result<Vec<String>, SpecError> {
    let word = |one: &SuiteWorkload| match one.quick.as_ref().filter(|_| quick) {
        Some(more) => replaced(one.workload.get(), more.get()),
        None => one.workload.get().to_owned(),
    };
    Ok(suite(name)?.1.workload.iter().map(word).collect())
}

/// Returns every paper, followed by the paper's reading sets and experiments.
pub fn list() -> Vec<PresetEntry> {
    let mut listed = Vec::new();
    for name in papers() {
        let (about, experiments) = paper(name).expect("a test reads all that ships");
        listed.push(PresetEntry { name: name.to_owned(), description: about.description });
        let (_, readings) = readings(name).expect("a test reads all that ships");
        let line = |set: &str, description: &str| PresetEntry {
            name: format!("{name}{AT}{set}"),
            description: format!("Readings: {description}"),
        };
        listed.push(line(DEFAULT, DEFAULT_DESCRIPTION));
        let sets = readings.reading.iter().filter(|reading| reading.is_set());
        listed.extend(sets.map(|reading| line(reading.name.get(), &reading.description)));
        let line = |spec: Experiment| PresetEntry { name: format!("{name}/{}", spec.id), description: spec.title };
        listed.extend(experiments.into_iter().map(|(_, spec)| line(spec)));
    }
    listed
}

/// Returns an error about a name missing from `known`.
pub(crate) fn unknown(kind: &'static str, name: &str, known: Vec<String>) -> SpecError {
    let near = near(name, known.iter().map(String::as_str));
    SpecError::UnknownName { kind, name: name.to_owned(), near, known }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tombolo_programs::find;
    use tombolo_workload::bench::{Request, footprint};
    use tombolo_workload::scale::Scale;

    /// Returns the size of a workload at scale 1, in MiB.
    fn mebibytes(word: &str) -> f64 {
        let mut parts = word.split(',');
        let workload = find(parts.next().expect("a name")).expect("a workload that ships");
        let pairs = parts.map(|part| part.split_once('=').expect("a parameter"));
        let given: Vec<_> = pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        let request = Request::new(workload, Scale::FULL, &given, 1).expect("its parameters");
        let arrays = footprint(workload, &request).expect("a shape that fits");
        arrays.iter().map(|array| array.bytes as f64).sum::<f64>() / f64::from(1 << 20)
    }

    /// Workloads of another size than stated, each with the reason.
    const OF_ANOTHER_SIZE: [(&str, &str); 2] = [
        ("Lonestar-SSSP-Wln", "two lists of LonestarGPU 2.0, each with an entry an arc"),
        ("Lonestar-SSSP-Wlc", "two lists of LonestarGPU 2.0, for two entries an arc; the paper states no size"),
    ];

    #[test]
    fn workloads_have_the_footprints_that_the_paper_states_of_them() {
        for name in suites() {
            let (_, suite) = suite(name).expect("readable");
            let mut wrong = Vec::new();
            for one in &suite.workload {
                let Some(label) = &one.label else { continue };
                let stated = suite.stated.iter().find(|stated| stated.label == *label);
                let Some(stated) = stated.map(|stated| stated.footprint_mb as f64) else { continue };
                if OF_ANOTHER_SIZE.iter().any(|(other, _)| other == label) {
                    continue;
                }
                let found = mebibytes(one.workload.get());
                if !(0.9..=1.05).contains(&(found / stated)) {
                    wrong.push(format!("{label}: {found:.0} of {stated} MiB"));
                }
            }
            assert!(wrong.is_empty(), "{name}: {wrong:#?}");
        }
    }
}
