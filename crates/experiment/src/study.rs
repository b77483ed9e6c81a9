//! Runs `reproduce` and `sweep`: the points in several experiments, each once, and the resulting document.

use crate::campaign::{Results, Watcher, run_points};
use crate::claim::{judge, undrawn};
use crate::configuration::configurations;
use crate::error::{SpecError, StoreError};
use crate::evidence::Register;
use crate::export::{Export, speedups};
use crate::grid::{Change, Numbers, PlannedPoint};
use crate::plan::{ExperimentPlan, ScaleChoice};
use crate::point::Point;
use crate::preset;
use crate::readings::DEFAULT;
use crate::repeat::repetitions;
use crate::request::ExperimentRequest;
use crate::store::{Store, write_whole};
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};
use tombolo_report::Document;
use tombolo_report::document::{Failure, Figure, Provenance, SourceFile};
use tombolo_system::TimeChoice;
use tombolo_types::StopFlag;

/// Experiments combined in a report.
pub struct Study {
    title: String,
    paper: String,
    /// Figure id, if the study covers a single figure of a paper.
    figure: Option<String>,
    /// Applied set of the paper's readings; empty for the default.
    readings: String,
    notes: Vec<String>,
    plans: Vec<ExperimentPlan>,
    /// Figures left out from the study.
    undrawn: Vec<ExperimentPlan>,
    choice: ScaleChoice,
}

/// Part of the points, for several machines that share a folder; all parts are equally large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Index from 0.
    pub index: usize,
    /// Number of parts, at least 1.
    pub of: usize,
}

impl Shard {
    /// Returns the range of points in this part, among `points` points.
    fn part(self, points: usize) -> Range<usize> {
        let cut = |index: usize| (points as u128 * index as u128 / self.of as u128) as usize;
        cut(self.index)..cut(self.index + 1)
    }
}

/// File name for page and document.
const REPORT: &str = "report";
/// File names of the tables.
const TABLES: [&str; 5] = ["results", "kernels", "gpus", "modules", "links"];

/// Options for running a study.
pub struct StudyOptions<'a> {
    /// Output folder for results, tables and the report.
    pub out: &'a Path,
    /// Maximum number of threads.
    pub threads: usize,
    /// True to also run long repetitions.
    pub robust: bool,
    /// Runs only a part of the points, and writes no document.
    pub shard: Option<Shard>,
    /// Program and host for the document's provenance; seeds and experiments are added.
    pub provenance: Provenance,
    /// Receiver of progress reports.
    pub watcher: &'a dyn Watcher,
}

/// Reason for a missing document.
#[derive(Debug, thiserror::Error)]
pub enum StudyError {
    /// An experiment is invalid.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// Results cannot be stored.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The calling thread's [`StopFlag`] was set.
    #[error("stopped; what is finished is in {}", .0.display())]
    Stopped(PathBuf),
}

/// Points required for the figures in a study.
struct StudyPoints {
    /// Points to run, each once.
    points: Vec<Point>,
    /// Table rows: each point once per name used by cells, plus points used by no cell.
    rows: Vec<Point>,
    /// Impossible points, with reasons.
    failures: Vec<Failure>,
}

/// Result of running a study.
#[derive(Clone, Debug)]
pub enum StudyOutcome {
    /// The report.
    Whole(Box<Document>),
    /// Points without a result, for a shard.
    Shard(Vec<Failure>),
}

impl Study {
    /// Loads the experiments in a paper, or the experiment called `figure`.
    ///
    /// # Errors
    /// Returns an error if no such paper or figure ships.
    pub fn of_paper(name: &str, figure: Option<&str>, choice: ScaleChoice) -> Result<Study, SpecError> {
        Study::of_paper_under(name, figure, DEFAULT, choice)
    }

    /// Like [`Study::of_paper`], under the set of the paper's readings called `readings`.
    ///
    /// # Errors
    /// Returns an error if no such paper, figure or set ships.
    pub fn of_paper_under(
        name: &str,
        figure: Option<&str>,
        readings: &str,
        choice: ScaleChoice,
    ) -> Result<Study, SpecError> {
        let (about, mut experiments) = preset::paper(name)?;
        let reading = preset::set(name, readings)?;
        if let Some(id) = figure {
            let known: Vec<String> = experiments.iter().map(|(_, spec)| spec.id.clone()).collect();
            // Accepts the name from `list experiments`, the name from the report, or the figure number.
            let short = id.strip_prefix(name).and_then(|rest| rest.strip_prefix('/')).unwrap_or(id);
            let wanted = match short.chars().all(|c| c.is_ascii_digit()) {
                true => format!("figure-{short}"),
                false => short.to_owned(),
            };
            experiments.retain(|(_, spec)| spec.id == wanted);
            if experiments.is_empty() {
                return Err(preset::unknown("figure", id, known));
            }
        }
        let figure = figure.map(|_| experiments[0].1.id.clone());
        let (mut plans, mut swept) = (Vec::new(), Vec::new());
        for (file, spec) in experiments {
            match ExperimentPlan::of_paper(file, spec, choice, reading.as_ref())? {
                Ok(plan) => plans.push(plan),
                Err(id) => swept.push(id),
            }
        }
        if let (Some((file, reading)), Some(figure), false) = (&reading, &figure, swept.is_empty()) {
            let reason = format!("figure {figure} sweeps a value that it sets: leave --readings out");
            return Err(file.refuse("reading.name", &reading.name, reason));
        }
        let is_left_out =
            |plan: &ExperimentPlan| plan.spec.on_request && figure.is_none() && choice == ScaleChoice::Quick;
        let (undrawn, plans): (Vec<ExperimentPlan>, Vec<ExperimentPlan>) = plans.into_iter().partition(is_left_out);
        let mut notes = about.notes;
        if !undrawn.is_empty() {
            let ids: Vec<&str> = undrawn.iter().map(|plan| plan.spec.id.as_str()).collect();
            notes.push(format!("Left out at quick scale, and run with --figure: {}.", ids.join(", ")));
        }
        let readings = reading.map_or_else(String::new, |(_, reading)| {
            notes.insert(0, format!("Readings {}: {}.", reading.name.get(), reading.description));
            notes.insert(1, format!("They set {}, where a figure reads it.", reading.words().join(", ")));
            if !swept.is_empty() {
                notes.insert(2, format!("Left out, for they sweep a value of these: {}.", swept.join(", ")));
            }
            reading.name.get().to_owned()
        });
        Ok(Study { title: about.title, paper: name.to_owned(), figure, readings, notes, plans, undrawn, choice })
    }

    /// Loads a user's own experiment.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, or contains an unknown name or an unsuitable value.
    pub fn of_file(path: &Path, choice: ScaleChoice) -> Result<Study, SpecError> {
        Ok(Study::of_plan(ExperimentPlan::open(path, choice)?))
    }

    /// Builds the experiment described by command-line arguments.
    ///
    /// # Errors
    /// Returns an error for an unknown name or an unsuitable value; messages name the key from [`ExperimentRequest::file`].
    pub fn of_request(ask: &ExperimentRequest, choice: ScaleChoice) -> Result<Study, SpecError> {
        let file = ask.file();
        let spec = file.read()?;
        Ok(Study::of_plan(ExperimentPlan::new(file, spec, choice)?))
    }

    fn of_plan(plan: ExperimentPlan) -> Study {
        let (title, paper) = (plan.heading(), plan.spec.id.clone());
        let choice = plan.choice;
        let (figure, readings, notes, undrawn) = (None, String::new(), Vec::new(), Vec::new());
        Study { title, paper, figure, readings, notes, plans: vec![plan], undrawn, choice }
    }

    /// Selects the run time for speed-ups.
    pub fn with_time(mut self, time: TimeChoice) -> Study {
        self.plans.iter_mut().for_each(|plan| plan.time = time);
        self
    }

    /// Enables sampling for runs whose number in a figure is a time, provided sampling applies.
    pub fn sampled(mut self, sampled: bool) -> Study {
        self.plans.iter_mut().for_each(|plan| plan.sampled = sampled);
        self
    }

    /// Returns the short name: the paper's, or the experiment's.
    pub fn name(&self) -> &str {
        &self.paper
    }

    /// Returns the file name of the page.
    pub fn page(&self) -> String {
        format!("{}.html", self.file(REPORT))
    }

    /// Describes the files left by a run: page, document, and tables.
    pub fn files(&self) -> String {
        let report = self.file(REPORT);
        let tables: Vec<String> = TABLES.iter().map(|name| self.file(name)).collect();
        format!("{report}.html, {report}.json; {} as .csv and .parquet", tables.join(", "))
    }

    /// Returns a file's name without extension. Files for a single figure have the figure's name, to be stored next to
    /// the report on the whole paper.
    fn file(&self, name: &str) -> String {
        match &self.figure {
            Some(figure) if [REPORT, TABLES[0]].contains(&name) => figure.clone(),
            Some(figure) => format!("{figure}-{name}"),
            None => name.to_owned(),
        }
    }

    /// Returns the number of points to run.
    ///
    /// # Errors
    /// Returns an error if a repetition is not possible.
    pub fn count(&self, robust: bool) -> Result<usize, SpecError> {
        Ok(self.points(robust)?.points.len())
    }

    /// Describes the impossible points, each with the reason.
    ///
    /// # Errors
    /// Returns an error if a repetition is not possible.
    pub fn impossible(&self, robust: bool) -> Result<Vec<String>, SpecError> {
        let failures = self.points(robust)?.failures.into_iter();
        Ok(failures.map(|failure| format!("{}: {}", failure.point, failure.error)).collect())
    }

    /// Runs the unfinished points, and writes tables and document into the folder. For a shard, only runs its points.
    ///
    /// # Errors
    /// Returns an error if results cannot be stored. Finished results are kept and not computed again.
    pub fn run(&self, options: &StudyOptions<'_>) -> Result<StudyOutcome, StudyError> {
        self.run_and_keep(options).map(|(finished, _)| finished)
    }

    /// Like [`Study::run`], and also returns the result of each point.
    ///
    /// # Errors
    /// Returns the errors of [`Study::run`].
    pub fn run_and_keep(&self, options: &StudyOptions<'_>) -> Result<(StudyOutcome, Results), StudyError> {
        let StudyPoints { points, rows, mut failures } = self.points(options.robust)?;
        let store = Store::open(options.out)?;
        let part = options.shard.map_or(0..points.len(), |shard| shard.part(points.len()));
        let results = run_points(&points[part], Some(&store), options.threads, options.watcher)?;
        if StopFlag::current().is_set() {
            return Err(StudyError::Stopped(options.out.to_owned()));
        }
        if options.shard.is_some_and(|shard| shard.index > 0) {
            // Only the first shard reports impossible points.
            failures.clear();
        }
        failures.extend(points.iter().filter_map(|point| {
            let error = results.get(point.key())?.as_ref().err()?;
            Some(Failure { point: point.label(), error: error.clone() })
        }));
        if options.shard.is_some() {
            return Ok((StudyOutcome::Shard(failures), results));
        }
        let mut document = self.document(options, &results, failures)?;
        document.provenance = Some(self.provenance(options, &points));
        let speedups = speedups(&self.plans, options.robust, &mut Numbers::new(&results))?;
        for sheet in Export::of(&rows, &results, &speedups).sheets() {
            let name = self.file(sheet.name);
            let parquet = sheet.parquet().expect("a table in memory has a schema of its own columns");
            write_whole(&options.out.join(format!("{name}.csv")), sheet.csv().as_bytes())?;
            write_whole(&options.out.join(format!("{name}.parquet")), &parquet)?;
        }
        let json = serde_json::to_vec_pretty(&document).expect("its keys are strings");
        let report = self.file(REPORT);
        write_whole(&options.out.join(format!("{report}.json")), &json)?;
        // The page is written last: a page implies complete results.
        let html = tombolo_report::html(&document);
        write_whole(&options.out.join(format!("{report}.html")), html.as_bytes())?;
        Ok((StudyOutcome::Whole(Box::new(document)), results))
    }

    /// Returns the points required for the figures; points with a common recording are adjacent.
    fn points(&self, robust: bool) -> Result<StudyPoints, SpecError> {
        let mut asked: Vec<(PlannedPoint, bool)> = Vec::new();
        for plan in &self.plans {
            asked.extend(plan.cells_and_bases(&Change::default()));
            for change in plan.changes(robust)? {
                asked.extend(plan.cells_and_bases(&change));
            }
        }
        let (mut points, mut rows, mut failures) = (Vec::new(), Vec::new(), Vec::new());
        let (mut seen, mut labelled, mut of_cells) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for (one, is_cell) in asked {
            match one {
                Ok(point) => {
                    if is_cell && labelled.insert((point.key().clone(), point.label())) {
                        of_cells.insert(point.key().clone());
                        rows.push(point.clone());
                    }
                    if seen.insert(point.key().clone()) {
                        points.push(point);
                    }
                }
                Err(failure) if failures.contains(&failure) => {}
                Err(failure) => failures.push(failure),
            }
        }
        rows.extend(points.iter().filter(|point| !of_cells.contains(point.key())).cloned());
        points.sort_by_cached_key(Point::recording);
        rows.sort_by_cached_key(Point::recording);
        Ok(StudyPoints { points, rows, failures })
    }

    fn document(
        &self,
        options: &StudyOptions<'_>,
        results: &Results,
        mut failures: Vec<Failure>,
    ) -> Result<Document, SpecError> {
        let mut numbers = Numbers::new(results);
        let (mut claims, mut figures) = (Vec::new(), Vec::new());
        let mut register = Register::new(self.plans.first().map(|plan| plan.time).unwrap_or_default());
        for plan in &self.plans {
            let tables = plan.tables(&mut numbers);
            let changes = plan.changes(options.robust)?;
            let repeated = repetitions(plan, &changes, &mut numbers);
            claims.extend(judge(plan, &tables[0], &repeated, &mut numbers));
            for table in &tables {
                let evidence = plan.evidence(table, &changes, &mut numbers, &mut register);
                figures.push(Figure { evidence, ..plan.figure(table) });
            }
            figures.extend(plan.stacks(&mut numbers, &mut register));
            failures.extend(plan.incomparable(&mut numbers));
        }
        claims.extend(self.undrawn.iter().flat_map(undrawn));
        Ok(Document {
            title: self.title.clone(),
            paper: self.paper.clone(),
            readings: self.readings.clone(),
            scale: self.scale(),
            time: self
                .plans
                .iter()
                .find(|plan| plan.compares_times())
                .map_or(String::new(), |plan| plan.time.to_string()),
            tombolo: options.provenance.tombolo.clone(),
            command: options.provenance.command.clone(),
            claims,
            figures,
            configurations: configurations(&self.plans),
            failures,
            notes: self.notes.iter().cloned().chain(self.own_scales(options.robust)?).chain(noted(results)).collect(),
            runs: register.into_runs(),
            provenance: None,
        })
    }

    fn provenance(&self, options: &StudyOptions<'_>, points: &[Point]) -> Provenance {
        let seeds: BTreeSet<u64> = points.iter().map(|point| point.workload.seed).collect();
        let file = |plan: &ExperimentPlan| SourceFile { name: plan.file.name.clone(), text: plan.file.text.clone() };
        Provenance {
            seeds: seeds.into_iter().collect(),
            experiments: self.plans.iter().map(file).collect(),
            ..options.provenance.clone()
        }
    }

    /// Returns notes about repetitions omitted because the second scale is the run's own scale.
    fn own_scales(&self, robust: bool) -> Result<BTreeSet<String>, SpecError> {
        let mut notes = BTreeSet::new();
        for plan in &self.plans {
            if !plan.changes(robust)?.is_empty() {
                notes.extend(plan.own_scales());
            }
        }
        Ok(notes)
    }

    /// Returns the requested scale, and the scales actually run.
    fn scale(&self) -> String {
        let all = self.plans.iter().filter(|plan| plan.is_run()).flat_map(|plan| &plan.workloads);
        let mut scales: Vec<_> = all.map(|one| (one.scale.numerator(), one.scale.denominator())).collect();
        scales.sort_by(|a, b| (b.0 * a.1).cmp(&(a.0 * b.1)));
        scales.dedup();
        let words: Vec<String> = scales
            .iter()
            .map(|(above, below)| if *below == 1 { above.to_string() } else { format!("{above}/{below}") })
            .collect();
        match self.choice {
            ScaleChoice::Fixed(scale) => scale.to_string(),
            choice if words.is_empty() => choice.to_string(),
            choice => format!("{choice} ({})", words.join(", ")),
        }
    }
}

/// Returns the distinct notes over all results.
fn noted(results: &Results) -> BTreeSet<String> {
    results.values().flatten().flat_map(|outcome| outcome.notes().iter().cloned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim::cause;

    /// Returns the cause in the file for a claim about HMG's figure 8, and the reported causes for two failing claims:
    /// this claim, and a claim without a known cause.
    fn causes(study: &Study) -> (Option<String>, [Option<String>; 2]) {
        let plan = study.plans.iter().find(|plan| plan.spec.id == "figure-8").unwrap();
        let claims = ["fig8-mst-loses-to-false-sharing", "fig8-hmg-ahead-of-nhcc"]
            .map(|id| plan.spec.claim.iter().find(|claim| claim.id.get() == id).unwrap());
        assert!(claims[0].cause.is_some() && claims[1].cause.is_none());
        (claims[0].cause.clone(), claims.map(|claim| cause(plan, claim)))
    }

    #[test]
    fn a_cause_that_ships_is_told_at_the_scale_at_which_it_was_found() {
        let (written, [known, unknown]) = causes(&Study::of_paper("hmg", Some("8"), ScaleChoice::Quick).unwrap());
        assert_eq!(known, written);
        assert_eq!(unknown.as_deref(), Some("not looked into"));
        for choice in [ScaleChoice::Paper, ScaleChoice::Fixed("1/8".parse().unwrap())] {
            let (_, [known, unknown]) = causes(&Study::of_paper("hmg", Some("8"), choice).unwrap());
            assert_eq!(known.as_deref(), Some("not looked into at this scale"), "{choice}");
            assert_eq!(unknown.as_deref(), Some("not looked into"), "{choice}");
        }
    }

    #[test]
    fn a_cause_of_a_user_s_own_file_is_told_at_every_scale() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("own.toml");
        let (_, experiments) = preset::paper("hmg").unwrap();
        let (file, _) = experiments.iter().find(|(_, spec)| spec.id == "figure-8").unwrap();
        std::fs::write(&path, &file.text).unwrap();
        for choice in [ScaleChoice::Quick, ScaleChoice::Paper] {
            let (written, [known, unknown]) = causes(&Study::of_file(&path, choice).unwrap());
            assert_eq!(known, written, "{choice}");
            assert_eq!(unknown, None, "{choice}");
        }
    }

    /// Returns the study, and the settings and workload for every point in a figure under a set of readings.
    fn under(paper: &str, figure: &str, readings: &str) -> (Study, Vec<(String, String)>) {
        let study = Study::of_paper_under(paper, Some(figure), readings, ScaleChoice::Quick).unwrap();
        let plan = &study.plans[0];
        let points = plan.points(&Change::default()).into_iter().map(|asked| asked.unwrap());
        let points = points.map(|point| (point.settings.join(" "), point.workload.label.clone())).collect();
        (study, points)
    }

    #[test]
    fn a_set_of_readings_reaches_every_point_and_leaves_swept_values_alone() {
        let rates = "gpu_link.rate=200GB/s module_link.rate=512GB/s";
        let (study, points) = under("hmg", "8", "each-way");
        assert!(!points.is_empty() && points.iter().all(|(settings, _)| settings == rates));
        assert!(study.plans[0].spec.claim.iter().all(|claim| study.plans[0].reading_of(claim) == "each-way"));
        assert!(study.notes[0].contains("each-way") && study.notes[1].contains("gpu_link.rate=200GB/s"));
        let (_, swept) = under("hmg", "12", "each-way");
        assert!(swept.iter().any(|(settings, _)| *settings == format!("{rates} gpu_link.rate=50GB/s")));
        let (_, default) = under("hmg", "8", DEFAULT);
        assert!(default.iter().all(|(settings, _)| settings.is_empty()));
    }

    #[test]
    fn a_figure_that_sweeps_a_value_of_the_set_is_left_out() {
        let study = |figure| Study::of_paper_under("numa-gpu", figure, "links-192", ScaleChoice::Quick);
        let whole = study(None).unwrap();
        assert!(whole.plans.iter().all(|plan| plan.spec.id != "figure-6"), "its 128 GB/s are called twice the rate");
        assert!(whole.notes[2].contains("figure-6, "), "{}", whole.notes[2]);
        let refused = study(Some("6")).err().unwrap().to_string();
        assert!(refused.contains("links-192") && refused.contains("figure figure-6 sweeps"), "{refused}");
    }

    #[test]
    fn a_set_of_readings_reaches_inputs_and_the_clock() {
        let (_, points) = under("gps", "9", "iterations");
        let with = |iterations: &str| points.iter().any(|(_, workload)| workload.contains(iterations));
        assert!(with("jacobi,columns=10240,rows=16384,iterations=20"), "{points:?}");
        assert!(with("als,items=1777,users=48019,ratings=9907211,features=100,iterations=3"), "{points:?}");
        let (study, _) = under("cpelide", "8", "artifact");
        assert_eq!(study.plans[0].time, TimeChoice::Ctas);
        let study = study.with_time(TimeChoice::Region);
        assert_eq!(study.plans[0].reading_of(&study.plans[0].spec.claim[0]), "artifact+region");
    }

    #[test]
    fn another_clock_is_another_reading_of_what_compares_times() {
        let readings = |time| {
            let study = Study::of_paper("hmg", Some("8"), ScaleChoice::Quick).unwrap().with_time(time);
            let plan = &study.plans[0];
            let claim = |id: &str| plan.spec.claim.iter().find(|claim| claim.id.get() == id).unwrap();
            ["fig8-hmg-ahead-of-nhcc", "shared-array-crosses-once"].map(|id| plan.reading_of(claim(id)))
        };
        assert_eq!(readings(TimeChoice::Region), ["", ""]);
        assert_eq!(readings(TimeChoice::Kernels), ["kernels", ""], "a directed program has no clock");
    }

    #[test]
    fn an_unknown_set_of_readings_is_refused_with_those_there_are() {
        let refused = |set| Study::of_paper_under("hmg", None, set, ScaleChoice::Quick).err().unwrap().to_string();
        assert!(refused("each-wey").contains("did you mean each-way?); there are text, each-way, invalidate-remote"));
        let of_figure = Study::of_paper_under("gps", None, "steady", ScaleChoice::Quick).err().unwrap().to_string();
        assert!(of_figure.contains("no set of readings is called \"steady\""), "{of_figure}");
    }

    #[test]
    fn a_figure_of_machines_alone_has_the_scale_of_no_workload() {
        let scale = |figure| Study::of_paper("numa-gpu", Some(figure), ScaleChoice::Paper).unwrap().scale();
        assert_eq!((scale("2").as_str(), scale("9").as_str()), ("paper", "paper (1)"));
    }

    #[test]
    fn shards_share_all_points_however_many_there_are() {
        let all: Vec<usize> = (0..5).flat_map(|index| Shard { index, of: 5 }.part(12)).collect();
        assert_eq!(all, (0..12).collect::<Vec<_>>());
        assert_eq!(Shard { index: 0, of: usize::MAX }.part(12), 0..0);
        assert_eq!(Shard { index: usize::MAX - 1, of: usize::MAX }.part(12), 11..12);
    }

    #[test]
    fn a_scale_that_is_the_run_s_own_is_noted_and_not_repeated() {
        let notes = |choice| Study::of_paper("numa-gpu", Some("9"), choice).unwrap().own_scales(false).unwrap();
        let half = notes(ScaleChoice::Fixed("1/2".parse().unwrap()));
        assert_eq!(half.len(), 1, "{half:?}");
        let note = half.first().expect("one note");
        assert!(note.ends_with("directions are not repeated at a second scale, 1/2 is the run's own."), "{note}");
        assert!(notes(ScaleChoice::Quick).is_empty());
    }

    #[test]
    fn a_figure_has_files_of_its_own_beside_those_of_its_paper() {
        let files = |figure| Study::of_paper("hmg", figure, ScaleChoice::Quick).unwrap().files();
        assert_eq!(
            files(None),
            "report.html, report.json; results, kernels, gpus, modules, links as .csv and .parquet"
        );
        assert!(
            files(Some("8")).starts_with("figure-8.html, figure-8.json; figure-8, figure-8-kernels, figure-8-gpus")
        );
    }
}
