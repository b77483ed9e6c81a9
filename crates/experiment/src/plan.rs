//! A resolved experiment: machines, designs, workloads and steps are looked up, and every name is checked.

use crate::error::SpecError;
use crate::grid::Inputs;
use crate::hardware;
use crate::layout::{FigureLayout, completed};
use crate::point_result::{HARDWARE, Pass, pass_of};
use crate::preset;
use crate::reader::File;
use crate::scales::ScaleRequest;
use crate::spec::{
    Axis, Baseline, Dimension, Experiment, Metric, PublishedIterations, StatedWorkload, Step, SuiteWorkload, Text,
    WorkloadInputs,
};
use crate::systems::Systems;
use crate::workload::{SEED, WorkloadChoice, only};
use std::path::Path;
use std::sync::Arc;
use tombolo_design::DesignConfig;
use tombolo_machine::error::near;
use tombolo_machine::{ConfigError, Description, MachineConfig, MachineScale};
use tombolo_system::TimeChoice;

/// Maximum number of step combinations over all axes. Source: assumed, a hundred times more than anybody would wait
/// for.
const MOST_STEPS: usize = 100_000;

/// Scale requested by the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScaleChoice {
    /// Each experiment's default scale.
    Quick,
    /// The paper's scale: 1.
    Paper,
    /// A fixed scale for all experiments.
    Fixed(MachineScale),
}

impl std::fmt::Display for ScaleChoice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ScaleChoice::Quick => f.write_str("quick"),
            ScaleChoice::Paper => f.write_str("paper"),
            ScaleChoice::Fixed(scale) => scale.fmt(f),
        }
    }
}

/// A machine or a design, with its name in the file.
pub(crate) struct NamedDescription<T> {
    pub(crate) name: String,
    /// First place in the file with this name.
    written: Text,
    pub(crate) description: Description<T>,
}

/// A combination of steps, with one step per axis.
#[derive(Clone, Debug, Default)]
pub(crate) struct PlannedStep {
    pub(crate) label: String,
    /// Index for a machine or design used in place of the figure's own.
    pub(crate) machine: Option<usize>,
    pub(crate) design: Option<usize>,
    pub(crate) set: Vec<String>,
}

/// A workload at its scale.
#[derive(Clone)]
pub(crate) struct PlannedWorkload {
    pub(crate) label: String,
    pub(crate) choice: Arc<WorkloadChoice>,
    /// The workload with the parameters for scale 1, if this run uses different parameters.
    pub(crate) whole: Option<Arc<WorkloadChoice>>,
    /// The workload with the second parameters for quick scale, if this run has quick scale and second parameters
    /// exist.
    pub(crate) second: Option<Arc<WorkloadChoice>>,
    pub(crate) scale: MachineScale,
    /// Reason for this scale and these parameters.
    pub(crate) reason: String,
    /// Relative difference between its speed-ups at this scale and at larger scales; `None` if not measured.
    pub(crate) error: Option<f64>,
    /// Number of iterations in the published program.
    pub(crate) iterations: Option<PublishedIterations>,
}

impl PlannedWorkload {
    /// Returns the workload with the given inputs, or `None` if the workload has only its own inputs.
    pub(crate) fn inputs(&self, inputs: Inputs) -> Option<&Arc<WorkloadChoice>> {
        match inputs {
            Inputs::Own => None,
            Inputs::Whole => self.whole.as_ref(),
            Inputs::Second => self.second.as_ref(),
        }
    }
}

/// Baseline point relative to a value's point, by index; `None` keeps the value's own choice.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PlannedBaseline {
    pub(crate) machine: Option<usize>,
    pub(crate) design: Option<usize>,
    /// Outer: `Some` if a step differs from the value's own. Inner: the step index, or `None` for no step.
    pub(crate) step: Option<Option<usize>>,
}

/// Source for a metric's numbers.
#[derive(Clone, Debug)]
pub(crate) enum MetricSource {
    /// Computed from the machine alone.
    Hardware,
    /// Read from the results of a pass.
    Results(Pass),
}

/// A resolved experiment.
pub struct ExperimentPlan {
    /// The experiment from the file, with defaults filled in.
    pub spec: Experiment,
    /// Rows, columns and panels of the figures.
    pub(crate) layout: FigureLayout,
    pub(crate) file: File,
    pub(crate) choice: ScaleChoice,
    /// Requested scale, before rounding to whole SMs.
    pub(crate) requested_scale: ScaleChoice,
    /// True for a shipped experiment of a paper, false for a user's own.
    pub(crate) ships: bool,
    /// Run time that comparisons use.
    pub(crate) time: TimeChoice,
    /// Time compared by the paper's default readings, or by the requested set of readings.
    pub(crate) default_time: TimeChoice,
    /// Name of the applied set of readings; empty for the paper's default.
    pub(crate) readings: String,
    /// True if runs that only provide times are sampled.
    pub(crate) sampled: bool,
    /// Machines from the file, followed by machines used only in steps and baselines.
    pub(crate) machines: Vec<NamedDescription<MachineConfig>>,
    /// Designs, ordered like `machines`.
    pub(crate) designs: Vec<NamedDescription<DesignConfig>>,
    pub(crate) steps: Vec<PlannedStep>,
    pub(crate) workloads: Vec<PlannedWorkload>,
    /// The paper's statements about the workloads in the suite.
    pub(crate) stated: Vec<StatedWorkload>,
    /// Baseline per metric in the figure, followed by the metrics for left-out workloads.
    pub(crate) baselines: Vec<PlannedBaseline>,
    /// Number source per metric, ordered like `baselines`.
    pub(crate) origins: Vec<MetricSource>,
    /// Points whose numbers decide the left-out workloads, in file order.
    pub(crate) left_out_at: Vec<PlannedBaseline>,
    /// Machines and designs of the points built up to now.
    pub(crate) systems: Systems,
}

impl ExperimentPlan {
    /// Reads the experiment at `path`.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, or contains an unknown name or an unsuitable value.
    pub fn open(path: &Path, choice: ScaleChoice) -> Result<ExperimentPlan, SpecError> {
        let file = File::open(path)?;
        let spec = file.read()?;
        ExperimentPlan::new(file, spec, choice)
    }

    /// Resolves an experiment at a scale.
    ///
    /// # Errors
    /// Returns an error if the experiment contains an unknown name or an unsuitable value.
    pub fn new(file: File, spec: Experiment, choice: ScaleChoice) -> Result<ExperimentPlan, SpecError> {
        let spec = completed(&file, spec)?;
        let machines = described(&file, "machines", &spec.machines, tombolo_machine::machine)?;
        let asked = choice;
        let choice = with_whole_sms(asked, &machines);
        let mut plan = ExperimentPlan {
            layout: FigureLayout::default(),
            machines,
            designs: described(&file, "designs", &spec.designs, tombolo_design::design)?,
            steps: Vec::new(),
            workloads: workloads(&file, &spec, choice)?,
            stated: stated(&spec),
            baselines: Vec::new(),
            origins: Vec::new(),
            left_out_at: Vec::new(),
            systems: Systems::default(),
            spec,
            file,
            choice,
            requested_scale: asked,
            ships: false,
            time: TimeChoice::default(),
            default_time: TimeChoice::default(),
            readings: String::new(),
            sampled: false,
        };
        plan.check_lists()?;
        plan.steps = plan.all_steps()?;
        plan.layout = FigureLayout::of(&plan)?;
        let left_out = plan.spec.left_out.clone();
        for metric in plan.spec.metric.clone().iter().chain(left_out.iter().map(|one| &one.metric)) {
            let (origin, baseline) = (plan.origin(metric)?, plan.baseline(metric)?);
            plan.origins.push(origin);
            plan.baselines.push(baseline);
        }
        for one in left_out {
            let at = plan.point_beside(one.at, ["left_out.at.machine", "left_out.at.design", "left_out.at.step"])?;
            plan.left_out_at.push(at);
        }
        plan.check_settings()?;
        plan.check_scales()?;
        plan.check_shape()?;
        plan.check_left_out()?;
        plan.check_labels()?;
        plan.check_repeats()?;
        Ok(plan)
    }

    /// Returns the labels along a dimension, in order.
    pub(crate) fn labels(&self, dimension: Dimension) -> Vec<String> {
        match dimension {
            Dimension::Workload => self.workloads.iter().map(|one| one.label.clone()).collect(),
            Dimension::Design => self.spec.designs.iter().map(|one| one.get().to_owned()).collect(),
            Dimension::Machine => self.spec.machines.iter().map(|one| one.get().to_owned()).collect(),
            Dimension::Step => self.steps.iter().map(|one| one.label.clone()).collect(),
            Dimension::Metric => self.spec.metric.iter().map(|one| one.name.clone()).collect(),
            Dimension::Axis(axis) => self.spec.axis[axis].step.iter().map(|one| one.label.clone()).collect(),
        }
    }

    /// Returns a metric by index: first the figure's metrics, then the metrics for left-out workloads.
    pub(crate) fn metric(&self, index: usize) -> &Metric {
        let own = &self.spec.metric;
        own.get(index).unwrap_or_else(|| &self.spec.left_out[index - own.len()].metric)
    }

    /// True if the experiment simulates anything. Metrics computed from the machine alone need no run, and use scale 1.
    pub(crate) fn is_run(&self) -> bool {
        self.origins.iter().any(|origin| matches!(origin, MetricSource::Results(_)))
    }

    /// True if every cell is a mean over workloads.
    pub(crate) fn is_mean_of_workloads(&self) -> bool {
        self.spec.mean.is_some() && !self.layout.shown().any(|shown| shown == Dimension::Workload)
    }

    /// True if a machine or a design in this experiment reads `setting`.
    pub(crate) fn reads(&self, setting: &str) -> bool {
        let path = setting.split('=').next().unwrap_or_default().trim();
        let mut designs: Vec<_> = self.designs.iter().map(|design| design.description.clone()).collect();
        let is_known = self.machines.iter().all(|machine| {
            let mut machine = machine.description.clone();
            tombolo_design::apply(&[setting], &mut machine, &mut designs.clone()).is_ok()
        });
        is_known && (designs.is_empty() || designs.iter_mut().any(|design| !design.drop_if_unread(path)))
    }

    fn check_settings(&self) -> Result<(), SpecError> {
        let of_steps = self.spec.axis.iter().flat_map(|axis| &axis.step).flat_map(|step| &step.set);
        self.spec.set.iter().chain(of_steps).try_for_each(|setting| self.check_setting("set", setting.get(), setting))
    }

    /// Returns an error if `setting` names no key in a machine or design, or if its key cannot take the value.
    /// `written` is the place in the file. A setting that contradicts different settings fails later, at its point.
    fn check_setting(&self, key: &'static str, setting: &str, written: &Text) -> Result<(), SpecError> {
        let refuse = |error: ConfigError| self.file.refuse(key, written, error.to_string());
        for machine in &self.machines {
            let mut machine = machine.description.clone();
            let mut designs: Vec<_> = self.designs.iter().map(|design| design.description.clone()).collect();
            tombolo_design::apply(&[setting], &mut machine, &mut designs).map_err(refuse)?;
            let unfit = designs.iter().filter_map(|design| design.check().err()).chain(machine.check().err());
            if let Some(error) = unfit.into_iter().find(|error| matches!(error, ConfigError::Value { .. })) {
                return Err(refuse(error));
            }
        }
        Ok(())
    }

    /// Checks every machine at every scale in use, before steps change the machine.
    fn check_scales(&self) -> Result<(), SpecError> {
        for named in &self.machines {
            let written = &named.written;
            let refuse = |error: ConfigError| self.file.refuse("machines", written, error.to_string());
            let machine = named.description.check().map_err(refuse)?;
            self.workloads.iter().try_for_each(|one| machine.scaled(one.scale).map(drop).map_err(refuse))?;
        }
        Ok(())
    }

    fn origin(&self, metric: &Metric) -> Result<MetricSource, SpecError> {
        let mut origins = Vec::new();
        for path in metric.paths() {
            origins.push(match path.get().strip_prefix(HARDWARE) {
                Some(hardware::OF_WORKLOADS) if self.stated.is_empty() => {
                    let reason = "it needs a suite whose workloads the paper states";
                    return Err(self.file.refuse("metric.value", path, reason));
                }
                Some(name) if hardware::NAMES.contains(&name) => None,
                Some(_) => {
                    let known: Vec<String> = hardware::NAMES.iter().map(|name| format!("{HARDWARE}{name}")).collect();
                    return Err(self.no_counter(path, &known));
                }
                None => Some(pass_of(path.get()).map_err(|known| self.no_counter(path, &known))?),
            });
        }
        let Some(first) = origins.first().copied() else {
            return Err(self.file.misshapen("metric.value", format!("{} has no counter", metric.name)));
        };
        if origins.iter().any(|origin| *origin != first) {
            let reason = "counters of a run, of a pass over streams and of the machine cannot be mixed";
            return Err(self.file.refuse("metric.value", &metric.value[0], reason));
        }
        Ok(first.map_or(MetricSource::Hardware, MetricSource::Results))
    }

    fn no_counter(&self, path: &Text, known: &[String]) -> SpecError {
        self.file.refuse("metric.value", path, with_alternatives("no counter has this path", path.get(), known))
    }

    fn baseline(&mut self, metric: &Metric) -> Result<PlannedBaseline, SpecError> {
        if metric.relative.is_some() != metric.to.is_some() {
            return Err(self.file.misshapen("metric.to", "`relative` and `to` go together"));
        }
        if !metric.to_value.is_empty() && metric.to.is_none() {
            return Err(self.file.misshapen("metric.to_value", "it needs `to`"));
        }
        let to = metric.to.clone().unwrap_or_default();
        self.point_beside(to, ["metric.to.machine", "metric.to.design", "metric.to.step"])
    }

    /// Resolves a baseline to indices. `keys` are the key names for its machine, design and step.
    fn point_beside(&mut self, point: Baseline, keys: [&'static str; 3]) -> Result<PlannedBaseline, SpecError> {
        let machine = point.machine.map(|name| self.machine(keys[0], &name)).transpose()?;
        let step = match point.step {
            Some(label) if label.get() == crate::layout::NO_STEP => Some(None),
            Some(label) => Some(Some(self.index(keys[2], &label, Dimension::Step)?)),
            None => None,
        };
        let design = point.design.map(|name| self.design(keys[1], &name)).transpose()?;
        Ok(PlannedBaseline { machine, design, step })
    }

    /// Returns the index of a machine, and adds the machine if the file's list lacks it.
    fn machine(&mut self, key: &'static str, name: &Text) -> Result<usize, SpecError> {
        if let Some(index) = self.machines.iter().position(|machine| machine.name == name.get()) {
            return Ok(index);
        }
        self.machines.extend(described(&self.file, key, std::slice::from_ref(name), tombolo_machine::machine)?);
        Ok(self.machines.len() - 1)
    }

    /// Returns the index of a design, and adds the design if the file's list lacks it.
    fn design(&mut self, key: &'static str, name: &Text) -> Result<usize, SpecError> {
        if let Some(index) = self.designs.iter().position(|design| design.name == name.get()) {
            return Ok(index);
        }
        self.designs.extend(described(&self.file, key, std::slice::from_ref(name), tombolo_design::design)?);
        Ok(self.designs.len() - 1)
    }

    /// Returns every combination of steps; a single step without settings if there is no axis.
    fn all_steps(&mut self) -> Result<Vec<PlannedStep>, SpecError> {
        let mut steps = vec![PlannedStep::default()];
        for axis in self.spec.axis.clone() {
            let mut longer = Vec::new();
            for (before, next) in steps.iter().flat_map(|step| axis.step.iter().map(move |next| (step, next))) {
                longer.push(self.joined(before, next)?);
            }
            steps = longer;
        }
        if self.choice == ScaleChoice::Quick && !self.spec.quick.steps.is_empty() {
            let known: Vec<String> = steps.iter().map(|step| step.label.clone()).collect();
            refuse_unknown(&self.file, "quick.steps", &self.spec.quick.steps, &known)?;
            steps.retain(|step| self.spec.quick.steps.iter().any(|label| label.get() == step.label));
        }
        Ok(steps)
    }

    /// Joins a step from the next axis to the combined step from earlier axes.
    fn joined(&mut self, before: &PlannedStep, next: &Step) -> Result<PlannedStep, SpecError> {
        let gap = if before.label.is_empty() { "" } else { ", " };
        let machine = next.machine.as_ref().map(|name| self.machine("axis.step.machine", name)).transpose()?;
        let design = next.design.as_ref().map(|name| self.design("axis.step.design", name)).transpose()?;
        let set = next.set.iter().map(|setting| setting.get().to_owned());
        Ok(PlannedStep {
            label: format!("{}{gap}{}", before.label, next.label),
            machine: machine.or(before.machine),
            design: design.or(before.design),
            set: before.set.iter().cloned().chain(set).collect(),
        })
    }

    pub(crate) fn index(&self, key: &'static str, label: &Text, of: Dimension) -> Result<usize, SpecError> {
        let labels = self.labels(of);
        labels
            .iter()
            .position(|known| known == label.get())
            .ok_or_else(|| self.file.refuse(key, label, with_alternatives("it is not there", label.get(), &labels)))
    }

    /// Checks that every list used for cells is non-empty, and that the axes have at most [`MOST_STEPS`] combinations.
    fn check_lists(&self) -> Result<(), SpecError> {
        let spec = &self.spec;
        let steps = |axis: &Axis| axis.step.len();
        let empty = [
            ("machines", spec.machines.is_empty()),
            ("metric", spec.metric.is_empty()),
            ("axis.step", spec.axis.iter().any(|axis| steps(axis) == 0)),
        ];
        if let Some((key, _)) = empty.into_iter().find(|(_, empty)| *empty) {
            return Err(self.file.misshapen(key, "at least one is needed"));
        }
        let all = spec.axis.iter().map(steps).try_fold(1, usize::checked_mul);
        if all.is_none_or(|all| all > MOST_STEPS) {
            return Err(self.file.misshapen("axis", format!("more than {MOST_STEPS} combinations of steps")));
        }
        Ok(())
    }

    fn check_shape(&self) -> Result<(), SpecError> {
        let shape = |key, reason: String| Err(self.file.misshapen(key, reason));
        if self.is_run() && (self.spec.designs.is_empty() || self.workloads.is_empty()) {
            return shape("designs", "what is measured needs at least one design and one workload".into());
        }
        self.check_layout()?;
        let named = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let id = &self.spec.id;
        if id.is_empty() || id.starts_with('.') || !id.chars().all(named) {
            return shape("id", format!("{id:?} names a folder: letters, digits, -, _ and . inside"));
        }
        for shown in self.layout.shown().chain([Dimension::Workload]) {
            let labels = self.labels(shown);
            if let Some(twice) = labels.iter().enumerate().find(|(at, label)| labels[..*at].contains(label)) {
                return shape("rows", format!("{:?} stands for two", twice.1));
            }
        }
        Ok(())
    }
}

/// Appends similar names and all known names to `reason`.
pub(crate) fn with_alternatives(reason: &str, name: &str, known: &[String]) -> String {
    let hint = crate::error::suggestion(&near(name, known.iter().map(String::as_str)));
    format!("{reason}{hint}; there are {}", known.join(", "))
}

fn described<T>(
    file: &File,
    key: &'static str,
    names: &[Text],
    find: impl Fn(&str) -> Result<Description<T>, ConfigError>,
) -> Result<Vec<NamedDescription<T>>, SpecError> {
    let one = |name: &Text| {
        let description = find(name.get()).map_err(|error| file.refuse(key, name, error.to_string()))?;
        Ok(NamedDescription { name: name.get().to_owned(), written: name.clone(), description })
    };
    names.iter().map(one).collect()
}

/// Returns the paper's statements about the suite's workloads; empty without a suite, or for a suite that does not
/// ship.
fn stated(spec: &Experiment) -> Vec<StatedWorkload> {
    let suite = spec.suite.as_ref().and_then(|name| preset::suite(name.get()).ok());
    suite.map(|(_, suite)| suite.stated).unwrap_or_default()
}

fn refuse_unknown(file: &File, key: &'static str, labels: &[Text], known: &[String]) -> Result<(), SpecError> {
    let stranger = labels.iter().find(|label| known.iter().all(|known| known != label.get()));
    stranger
        .map_or(Ok(()), |label| Err(file.refuse(key, label, with_alternatives("it is not there", label.get(), known))))
}

fn scale(file: &File, key: &'static str, text: &Text) -> Result<MachineScale, SpecError> {
    text.get().parse().map_err(|error: ConfigError| file.refuse(key, text, error.to_string()))
}

/// Returns the requested scale, or the nearest scale that leaves the modules of all `machines` with whole SMs. An
/// invalid machine is ignored and refused later.
fn with_whole_sms(choice: ScaleChoice, machines: &[NamedDescription<MachineConfig>]) -> ScaleChoice {
    let ScaleChoice::Fixed(scale) = choice else { return choice };
    let checked = machines.iter().filter_map(|named| named.description.check().ok());
    ScaleChoice::Fixed(scale.with_whole_sms(checked.map(|machine| machine.topology.sms_per_module)))
}

fn workloads(file: &File, spec: &Experiment, choice: ScaleChoice) -> Result<Vec<PlannedWorkload>, SpecError> {
    let common = spec.scale.as_ref().map_or(Ok(MachineScale::FULL), |text| scale(file, "scale", text))?;
    let mut planned = Vec::new();
    for text in &spec.workloads {
        let plain = workload(file, text, text.get(), None, (common, spec.seed))?;
        let word = with_inputs(text.get(), &spec.inputs, &plain.label);
        planned.push(match word == text.get() {
            true => plain,
            false => workload(file, text, &word, Some(plain.label), (common, spec.seed))?,
        });
    }
    if let Some(name) = &spec.suite {
        let (of, suite) = preset::suite(name.get()).map_err(|error| file.refuse("suite", name, error.to_string()))?;
        for one in &suite.workload {
            planned.push(of_suite(&of, one, choice, spec.seed, &spec.inputs)?);
            refuse_unstated(&of, one, &suite.stated)?;
        }
    }
    let known: Vec<String> = planned.iter().map(|one| one.label.clone()).collect();
    refuse_unknown(file, "except", &spec.except, &known)?;
    let labels: Vec<Text> = spec.inputs.iter().map(|one| one.workload.clone()).collect();
    refuse_unknown(file, "inputs.workload", &labels, &known)?;
    planned.retain(|one| spec.except.iter().all(|label| label.get() != one.label));
    match choice {
        ScaleChoice::Quick => {
            let known: Vec<String> = planned.iter().map(|one| one.label.clone()).collect();
            let only = &spec.quick.only;
            refuse_unknown(file, "quick.only", only, &known)?;
            planned.retain(|one| only.is_empty() || only.iter().any(|label| label.get() == one.label));
            if let Some(text) = &spec.quick.scale {
                let scale = scale(file, "quick.scale", text)?;
                planned.iter_mut().for_each(|one| one.scale = scale);
            }
        }
        ScaleChoice::Paper => planned.iter_mut().for_each(|one| one.scale = MachineScale::FULL),
        ScaleChoice::Fixed(scale) => planned.iter_mut().for_each(|one| one.scale = scale),
    }
    Ok(planned)
}

fn of_suite(
    file: &File,
    one: &SuiteWorkload,
    choice: ScaleChoice,
    seed: u64,
    inputs: &[WorkloadInputs],
) -> Result<PlannedWorkload, SpecError> {
    let own = scale(file, "scale", &one.scale)?;
    let label = one.label.clone().unwrap_or_else(|| one.workload.get().to_owned());
    // Parameters written in the file are checked at every scale, although only quick scale uses them.
    let planned = |text, word: &str| {
        let word = with_inputs(word, inputs, &label);
        workload(file, text, &word, Some(label.clone()), (own, seed))
    };
    let iterations = one.iterations.clone();
    let plain = PlannedWorkload { iterations, ..planned(&one.workload, one.workload.get())? };
    let quick = one.quick.as_ref().map(|more| (more, replaced(one.workload.get(), more.get())));
    let lighter = quick.as_ref().map(|(more, word)| planned(more, word)).transpose()?;
    let first = quick.as_ref().map_or(one.workload.get(), |(_, word)| word);
    let second = one.second.as_ref().map(|more| planned(more, &replaced(first, more.get()))).transpose()?;
    if choice != ScaleChoice::Quick {
        return Ok(plain);
    }
    let (second, reason, error) = (second.map(|second| second.choice), one.reason.clone(), one.error);
    Ok(match lighter {
        Some(lighter) => {
            let (whole, iterations) = (Some(plain.choice), plain.iterations);
            PlannedWorkload { whole, second, reason, error, iterations, ..lighter }
        }
        None => PlannedWorkload { second, reason, error, ..plain },
    })
}

/// Returns the workloads in the suite called `name`, prepared for a search over their scales.
pub(crate) fn scale_requests(name: &str) -> Result<Vec<ScaleRequest>, SpecError> {
    let (file, suite) = preset::suite(name)?;
    let one = |one: &SuiteWorkload| {
        let planned = of_suite(&file, one, ScaleChoice::Quick, SEED, &[])?;
        let least = scale(&file, "least", one.least.as_ref().unwrap_or(&suite.least))?;
        Ok(ScaleRequest { label: planned.label, workload: planned.choice, least })
    };
    suite.workload.iter().map(one).collect()
}

/// Returns the workload's word with `more` parameters added, which replace parameters with equal names.
pub(crate) fn replaced(word: &str, more: &str) -> String {
    let name = |part: &str| part.split('=').next().unwrap_or_default().trim().to_owned();
    let kept = word.split(',').filter(|part| more.split(',').all(|new| name(new) != name(part)));
    kept.chain(more.split(',')).collect::<Vec<_>>().join(",")
}

/// Returns the workload's word with the `inputs` given for its label.
fn with_inputs(word: &str, inputs: &[WorkloadInputs], label: &str) -> String {
    let of_it = inputs.iter().filter(|one| one.workload.get() == label);
    of_it.fold(word.to_owned(), |word, one| replaced(&word, one.parameters.get()))
}

/// Returns an error if the paper has statements about its workloads and this workload's label is not among them.
fn refuse_unstated(file: &File, one: &SuiteWorkload, stated: &[StatedWorkload]) -> Result<(), SpecError> {
    let label = one.label.as_deref().unwrap_or(one.workload.get());
    if stated.is_empty() || stated.iter().any(|known| known.label == label) {
        return Ok(());
    }
    let known: Vec<String> = stated.iter().map(|known| known.label.clone()).collect();
    Err(file.refuse(
        "workload.label",
        &one.workload,
        with_alternatives("the paper states nothing of it", label, &known),
    ))
}

/// Builds the workload called `word`, located at `text` in the file.
fn workload(
    file: &File,
    text: &Text,
    word: &str,
    label: Option<String>,
    (scale, seed): (MachineScale, u64),
) -> Result<PlannedWorkload, SpecError> {
    let refuse = |error: crate::error::PointError| file.refuse("workloads", text, error.to_string());
    let mut choice = only(word).map_err(refuse)?;
    choice.check_parameters().map_err(refuse)?;
    choice.seed = seed;
    let label = label.unwrap_or_else(|| choice.label.clone());
    let (choice, reason) = (Arc::new(choice), String::new());
    Ok(PlannedWorkload { label, choice, whole: None, second: None, scale, reason, error: None, iterations: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_of_the_quick_scale_replace_and_add() {
        assert_eq!(replaced("hpgmg,z=384,smooths=3", "smooths=1"), "hpgmg,z=384,smooths=1");
        assert_eq!(replaced("nw", "length=64"), "nw,length=64");
    }
}
