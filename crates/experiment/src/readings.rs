//! Readings of a paper: the claims that belong to the default reading, and named sets of settings for alternative
//! readings.
//!
//! A verdict belongs to the default reading and the default clock, which are decided before the first run. A claim
//! measured under a different reading is called `STATEMENT@READING`. Such a claim is shown next to the default claim,
//! and never judged.

use crate::claim::with_reading;
use crate::error::SpecError;
use crate::plan::{ExperimentPlan, ScaleChoice};
use crate::preset;
use crate::reader::File;
use crate::spec::{self, Experiment, Kind, Reading, Text, WorkloadInputs};
use tombolo_report::document::{AND, AT};
use tombolo_system::TimeChoice;

/// Name of the default set: the paper's text. If the text is silent, the shipped machines and designs supply the
/// values.
pub const DEFAULT: &str = "text";

/// Description of the default set.
pub const DEFAULT_DESCRIPTION: &str = "The paper's text as read here: the default, which decides verdicts";

impl Reading {
    /// True if `--readings` can apply this reading. A reading with only a figure has nothing to apply.
    pub fn is_set(&self) -> bool {
        self.time.is_some() || !self.setting.is_empty() || !self.inputs.is_empty()
    }

    /// Returns the run time that the reading compares.
    pub(crate) fn time(&self, file: &File) -> Result<TimeChoice, SpecError> {
        let Some(text) = &self.time else { return Ok(TimeChoice::default()) };
        TimeChoice::ALL.into_iter().find(|choice| choice.word() == text.get()).ok_or_else(|| {
            let known = TimeChoice::ALL.map(TimeChoice::word).join(", ");
            file.refuse("reading.time", text, format!("no such time; there are {known}"))
        })
    }

    /// Returns the settings in the reading, spelled for a command line.
    pub fn words(&self) -> Vec<String> {
        let settings = self.setting.iter().map(|setting| setting.set.get().to_owned());
        let inputs = self.inputs.iter().map(|one| format!("{}: {}", one.workload.get(), one.parameters.get()));
        let time = self.time.iter().map(|time| format!("time {}", time.get()));
        settings.chain(inputs).chain(time).collect()
    }

    /// True if `plan` sweeps a value set by this reading: one step stands for the default value, whose label would then
    /// be wrong, or a step sets a key of the default value, such as `scheduling.cta_chunk` of `scheduling`.
    fn is_swept_by(&self, plan: &ExperimentPlan) -> bool {
        let sets = |set: &[Text], path: &str| set.iter().any(|setting| path_of(setting.get()) == path);
        let sets_key_of = |set: &[Text], path: &str| {
            let is_key = |rest: &str| rest.starts_with('.');
            set.iter().any(|setting| path_of(setting.get()).strip_prefix(path).is_some_and(is_key))
        };
        self.setting.iter().map(|setting| path_of(setting.set.get())).any(|path| {
            plan.spec.axis.iter().any(|axis| {
                let set = axis.step.iter().filter(|step| sets(&step.set, path)).count();
                set > 0 && set < axis.step.len() || axis.step.iter().any(|step| sets_key_of(&step.set, path))
            })
        })
    }

    /// Returns `spec` with every part of this reading used by the `plan`. The experiment's own settings and steps come
    /// later, so that a swept value remains swept.
    fn applied(&self, plan: &ExperimentPlan, mut spec: Experiment) -> Experiment {
        let read = self.setting.iter().filter(|setting| plan.reads(setting.set.get()));
        let settings: Vec<Text> = read.map(|setting| Text::assumed(setting.set.get())).collect();
        spec.set.splice(0..0, settings);
        let has = |label: &str| plan.workloads.iter().any(|one| one.label == label);
        let inputs = self.inputs.iter().filter(|one| has(one.workload.get())).map(|one| WorkloadInputs {
            workload: Text::assumed(one.workload.get()),
            parameters: Text::assumed(one.parameters.get()),
        });
        spec.inputs.extend(inputs);
        // A value stated by the reading is no longer assumed: half the value may be impossible.
        let is_stated = |path: &Text| self.setting.iter().any(|one| path_of(one.set.get()) == path_of(path.get()));
        spec.repeat.iter_mut().for_each(|repeat| repeat.assumed.retain(|path| !is_stated(path)));
        spec
    }
}

/// Returns the path of a setting, without a `machine.` or `design.` prefix.
fn path_of(setting: &str) -> &str {
    let path = setting.split('=').next().unwrap_or_default().trim();
    path.strip_prefix("machine.").or_else(|| path.strip_prefix("design.")).unwrap_or(path)
}

impl ExperimentPlan {
    /// Resolves a paper's experiment under a set of readings. The inner error is the experiment's id if it sweeps a
    /// value in the set.
    pub(crate) fn of_paper(
        file: File,
        spec: Experiment,
        choice: ScaleChoice,
        reading: Option<&(File, Reading)>,
    ) -> Result<Result<ExperimentPlan, String>, SpecError> {
        let Some((of, reading)) = reading else {
            return Ok(Ok(ExperimentPlan { ships: true, ..ExperimentPlan::new(file, spec, choice)? }));
        };
        let plain = ExperimentPlan::new(file.clone(), spec.clone(), choice)?;
        if reading.is_swept_by(&plain) {
            return Ok(Err(spec.id));
        }
        let time = reading.time(of)?;
        Ok(Ok(ExperimentPlan {
            ships: true,
            time,
            default_time: time,
            readings: reading.name.get().to_owned(),
            ..ExperimentPlan::new(file, reading.applied(&plain, spec), choice)?
        }))
    }

    /// Returns the readings under which a claim is measured in this plan, joined: the claim's own, the applied set, and
    /// the requested time. Empty if all are the paper's default.
    pub(crate) fn reading_of(&self, claim: &spec::Claim) -> String {
        let is_other_time = self.ships && self.time != self.default_time && self.compares_times();
        let time = (is_other_time && claim.mechanism.is_none()).then(|| self.time.word());
        let own = self.spec.reading_of(claim).map(Text::get);
        let set = (!self.readings.is_empty()).then_some(self.readings.as_str());
        own.into_iter().chain(set).chain(time).collect::<Vec<_>>().join(AND)
    }

    /// Checks that the id of a claim with a reading ends with `@` and the reading, and that an id without a reading has
    /// no `@`.
    pub(crate) fn check_reading(&self, claim: &spec::Claim) -> Result<(), SpecError> {
        let refuse = |reason: String| Err(self.file.refuse("claim.id", &claim.id, reason));
        let id = claim.id.get();
        let (statement, named) = id.split_once(AT).map_or((id, None), |(statement, named)| (statement, Some(named)));
        let Some(reading) = self.spec.reading_of(claim) else {
            return match named {
                None => Ok(()),
                Some(named) => refuse(format!("it names the reading {named:?}: say `reading = {named:?}` too")),
            };
        };
        if named != Some(reading.get()) {
            let wanted = with_reading(statement, reading.get());
            return refuse(format!("its reading is {:?}: call it {wanted:?}", reading.get()));
        }
        let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let names = || reading.get().split(AND);
        if statement.is_empty() || names().any(|name| name.is_empty() || !name.chars().all(is_word)) {
            return refuse(
                "it is STATEMENT@READING, of lower-case letters, digits and -; several readings are joined by +".into(),
            );
        }
        if names().any(|name| name == DEFAULT) {
            return refuse(format!("{DEFAULT:?} is the default reading, which no id names"));
        }
        if claim.cause.is_some() || claim.foretold {
            return refuse("a claim of another reading is not judged: it has no `cause` and is not `foretold`".into());
        }
        Ok(())
    }
}

/// Describes faults in a paper's claims under alternative readings. Each must have a reading declared for the paper. If
/// a default claim with this statement exists, both must have equal kinds and equal numbers.
///
/// # Errors
/// Returns an error if no such paper ships.
pub fn faults(paper: &str) -> Result<Vec<String>, SpecError> {
    let (_, experiments) = preset::paper(paper)?;
    let (_, readings) = preset::readings(paper)?;
    let declared = |name: &str| readings.reading.iter().any(|reading| reading.name.get() == name);
    let claims: Vec<(&spec::Claim, Option<&Text>)> = experiments
        .iter()
        .flat_map(|(_, spec)| spec.claim.iter().map(|claim| (claim, spec.reading_of(claim))))
        .collect();
    let mut faults = Vec::new();
    for (claim, reading) in &claims {
        let (Some(reading), id) = (reading, claim.id.get()) else { continue };
        faults.extend(
            reading.get().split(AND).filter(|name| !declared(name)).map(|name| format!("{id}: no reading {name}")),
        );
        let statement = id.split(AT).next().unwrap_or_default();
        let Some((default, _)) = claims.iter().find(|(other, _)| other.id.get() == statement) else { continue };
        if kind(default) != kind(claim) {
            faults.push(format!("{id}: its default claim is of another kind"));
        }
        if claim.paper.is_some() && claim.paper != default.paper {
            faults.push(format!("{id}: the paper states another number of its default claim"));
        }
    }
    Ok(faults)
}

fn kind(claim: &spec::Claim) -> (Kind, bool) {
    (claim.kind, claim.mechanism.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::campaign::Results;
    use crate::claim::judge;
    use crate::grid::{Change, Numbers};
    use crate::plan::MetricSource;
    use tombolo_report::document::{Claim, Verdict};

    /// A machine table with a single direction claim.
    fn text(id: &str, more: &str, of_file: &str) -> String {
        format!(
            "id = 'cost'\nmachines = ['hmg-4x4']\nrows = 'metric'\ncolumns = 'machine'\n{of_file}\n\
             [[metric]]\nname = 'bits'\nvalue = ['hardware.directory_bits_per_entry']\n\
             [[claim]]\nid = '{id}'\nkind = 'direction'\ntext = 'An entry has few bits'\nbelow = 2.0\n\
             of = [{{ row = 'bits', columns = ['hmg-4x4'] }}]\n{more}\n"
        )
    }

    fn plan(text: String) -> Result<ExperimentPlan, String> {
        let file = File { name: "x.toml".into(), text };
        let spec = file.read().map_err(|error| error.to_string())?;
        ExperimentPlan::new(file, spec, ScaleChoice::Quick).map_err(|error| error.to_string())
    }

    fn judged(text: String) -> Claim {
        let (plan, results) = (plan(text).unwrap(), Results::default());
        let mut numbers = Numbers::new(&results);
        let tables = plan.tables(&mut numbers);
        judge(&plan, &tables[0], &[], &mut numbers).remove(0)
    }

    #[test]
    fn an_id_has_the_reading_that_its_claim_or_its_file_states() {
        for (id, more, of_file) in [
            ("few-bits", "", ""),
            ("few-bits@wide", "reading = 'wide'", ""),
            ("few-bits@wide", "", "reading = 'wide'"),
            ("few-bits@wide+4k", "reading = 'wide+4k'", "reading = 'wide'"),
        ] {
            assert_eq!(plan(text(id, more, of_file)).map(drop), Ok(()), "{id}");
        }
        for (id, more, of_file, told) in [
            ("few-bits@wide", "", "", "say `reading = \"wide\"` too"),
            ("few-bits", "reading = 'wide'", "", "call it \"few-bits@wide\""),
            ("few-bits", "", "reading = 'wide'", "call it \"few-bits@wide\""),
            ("few-bits@narrow", "reading = 'wide'", "", "call it \"few-bits@wide\""),
            ("@wide", "reading = 'wide'", "", "it is STATEMENT@READING"),
            ("few-bits@Wide", "reading = 'Wide'", "", "of lower-case letters"),
            ("few-bits@wide+", "reading = 'wide+'", "", "it is STATEMENT@READING"),
            ("few-bits@text", "reading = 'text'", "", "\"text\" is the default reading"),
            ("few-bits@wide", "reading = 'wide'\nforetold = true", "", "is not judged"),
            ("few-bits@wide", "reading = 'wide'\ncause = 'none'", "", "is not judged"),
        ] {
            let refused = plan(text(id, more, of_file)).err().unwrap_or_else(|| panic!("{id} {more} is refused"));
            assert!(refused.contains(told) && refused.starts_with("x.toml:"), "{refused}");
        }
    }

    #[test]
    fn the_default_reading_decides_a_verdict_and_another_one_is_shown() {
        let default = judged(text("few-bits", "", ""));
        assert_eq!((default.verdict, default.is_default(), default.measured), (Verdict::Fails, true, Some(55.0)));
        let other = judged(text("few-bits@wide", "", "reading = 'wide'"));
        assert_eq!((other.verdict, other.reading.as_str(), other.measured), (Verdict::Shown, "wide", Some(55.0)));
        assert_eq!((other.id.as_str(), other.statement(), &other.cause), ("few-bits@wide", "few-bits", &None));
    }

    #[test]
    fn under_a_set_every_claim_has_its_name() {
        let under = |id: &str, more: &str| {
            let plan = plan(text(id, more, "")).unwrap();
            let plan = ExperimentPlan { readings: "artifact".into(), ..plan };
            plan.reading_of(&plan.spec.claim[0])
        };
        assert_eq!(under("few-bits", ""), "artifact");
        assert_eq!(under("few-bits@wide", "reading = 'wide'"), "wide+artifact");
    }

    fn plans(paper: &str) -> Vec<ExperimentPlan> {
        let (_, experiments) = preset::paper(paper).unwrap();
        experiments
            .into_iter()
            .map(|(file, spec)| ExperimentPlan::new(file, spec, ScaleChoice::Quick).unwrap())
            .collect()
    }

    #[test]
    fn all_that_a_reading_sets_is_read_by_a_figure_of_its_paper() {
        for paper in preset::papers() {
            let (file, readings) = preset::readings(paper).unwrap();
            let plans = plans(paper);
            let labels: Vec<&str> =
                plans.iter().flat_map(|plan| &plan.workloads).map(|one| one.label.as_str()).collect();
            for reading in &readings.reading {
                let name = format!("{paper}@{}", reading.name.get());
                assert!(reading.time(&file).is_ok(), "{name}");
                for setting in &reading.setting {
                    let is_read = plans.iter().filter(|plan| plan.is_run()).any(|plan| plan.reads(setting.set.get()));
                    assert!(is_read, "{name}: {}", setting.set.get());
                }
                for one in &reading.inputs {
                    assert!(labels.contains(&one.workload.get()), "{name}: {}", one.workload.get());
                }
                let figures: Vec<&str> = plans.iter().map(|plan| plan.spec.id.as_str()).collect();
                let is_figure = reading.figure.as_ref().map(|figure| figures.contains(&figure.get()));
                assert_eq!(
                    is_figure,
                    (!reading.is_set()).then_some(true),
                    "{name}: a set, or else a figure that exists"
                );
            }
        }
    }

    #[test]
    fn a_set_leaves_out_figures_that_sweep_its_value_or_a_key_of_it() {
        let left_out = |paper: &str, set: &str, figure: &str| {
            let (_, experiments) = preset::paper(paper).unwrap();
            let (file, spec) = experiments.into_iter().find(|(_, spec)| spec.id == figure).unwrap();
            let reading = preset::set(paper, set).unwrap();
            ExperimentPlan::of_paper(file, spec, ScaleChoice::Quick, reading.as_ref()).unwrap().err()
        };
        assert_eq!(left_out("cpelide", "home-l2", "labels").as_deref(), Some("labels"), "a step sets elision.table");
        assert_eq!(left_out("umh", "virtual-gpu", "cta-chunk").as_deref(), Some("cta-chunk"), "a key of scheduling");
        assert_eq!(left_out("cpelide", "home-l2", "figure-8"), None);
    }

    #[test]
    fn a_figure_can_be_run_under_every_set_that_it_reads() {
        figures_can_be_run_under_sets(1);
    }

    #[test]
    #[ignore = "deep: every figure under every set that it reads"]
    fn every_figure_can_be_run_under_every_set_that_it_reads() {
        figures_can_be_run_under_sets(usize::MAX);
    }

    /// Checks up to `most` figures for each set.
    fn figures_can_be_run_under_sets(most: usize) {
        let mut refused = Vec::new();
        for paper in preset::papers() {
            let (of, readings) = preset::readings(paper).unwrap();
            let (plain, (_, experiments)) = (plans(paper), preset::paper(paper).unwrap());
            for reading in readings.reading.into_iter().filter(Reading::is_set) {
                let is_read =
                    |plan: &ExperimentPlan| reading.setting.iter().any(|setting| plan.reads(setting.set.get()));
                let read = plain.iter().zip(&experiments).filter(|(plan, _)| plan.is_run() && is_read(plan)).take(most);
                let set = Some((of.clone(), reading.clone()));
                for (_, (file, spec)) in read {
                    let plan =
                        ExperimentPlan::of_paper(file.clone(), spec.clone(), ScaleChoice::Quick, set.as_ref()).unwrap();
                    let Ok(plan) = plan else { continue };
                    // Settings interact with machines, designs and steps, but not with workloads: a single workload is
                    // enough.
                    let first = Change { only: Some(vec![0]), ..Change::default() };
                    for at in plan.coordinates(&first).into_iter().flat_map(|at| [at, plan.base(at)]) {
                        if let (MetricSource::Results(_), Err(failure)) =
                            (&plan.origins[at.metric], plan.point(at, &first))
                        {
                            refused.push(format!("{paper}@{}, {}: {failure:?}", reading.name.get(), plan.spec.id));
                        }
                    }
                }
            }
        }
        assert!(refused.is_empty(), "{}", refused.join("\n"));
    }

    #[test]
    fn what_a_reading_states_is_not_halved_and_doubled() {
        let assumes = |set: &str| {
            let (_, experiments) = preset::paper("numa-gpu").unwrap();
            let (file, spec) = experiments.into_iter().find(|(_, spec)| spec.id == "figure-8").unwrap();
            let reading = preset::set("numa-gpu", set).unwrap();
            let plan = ExperimentPlan::of_paper(file, spec, ScaleChoice::Quick, reading.as_ref()).unwrap().unwrap();
            plan.spec.repeat.iter().flat_map(|repeat| &repeat.assumed).any(|path| path.get() == "page_bytes")
        };
        assert_eq!([DEFAULT, "pages-2mb"].map(assumes), [true, false]);
    }

    #[test]
    fn inputs_of_a_workload_replace_its_own_and_keep_its_label() {
        let with = |workload: &str| {
            let inputs = format!("[[inputs]]\nworkload = '{workload}'\nparameters = 'elements=4096'");
            let of_file = format!("designs = ['hmg']\nworkloads = ['triad,elements=65536']\n{inputs}");
            plan(text("few-bits", "", &of_file))
        };
        let planned = with("triad,elements=65536").unwrap();
        let triad = &planned.workloads[0];
        assert_eq!(
            (triad.label.as_str(), triad.choice.label.as_str()),
            ("triad,elements=65536", "triad,elements=4096")
        );
        let refused = with("stream").err().unwrap();
        assert!(refused.contains("inputs.workload = \"stream\"") && refused.contains("triad"), "{refused}");
    }

    #[test]
    fn a_setting_that_no_design_of_a_figure_reads_is_left_out_there() {
        let plan = plan(text("few-bits", "", "designs = ['hmg']\nworkloads = ['triad']")).unwrap();
        assert!(plan.reads("gpu_link.rate=200GB/s") && plan.reads("directory.tracks=all"));
        assert!(!plan.reads("coherence.invalidate=remote"), "HMG invalidates no cache in bulk");
        assert!(!plan.reads("elision.labels=asserted") && !plan.reads("no.such=1"));
    }
}
