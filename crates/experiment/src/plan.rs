//! An experiment resolved: machines, designs, workloads and steps found, every name in it checked.

use crate::error::SpecError;
use crate::grid::Inputs;
use crate::hardware;
use crate::layout::{Layout, completed};
use crate::point_result::{HARDWARE, Pass, pass_of};
use crate::preset;
use crate::reader::File;
use crate::scales::Wanted;
use crate::spec::{
    Axis, Baseline, Dimension, Experiment, Metric, StatedWorkload, Step, SuiteWorkload, Text, WorkloadInputs,
};
use crate::systems::Systems;
use crate::workload::{SEED, WorkloadChoice, only};
use std::path::Path;
use std::sync::Arc;
use tombolo_design::DesignConfig;
use tombolo_machine::error::near;
use tombolo_machine::{ConfigError, Description, MachineConfig, Scale};
use tombolo_system::TimeChoice;

/// Most combinations of steps of all axes. Source: assumed, a hundred times what anybody would wait for.
const MOST_STEPS: usize = 100_000;

/// The scale that a user asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScaleChoice {
    /// Each experiment's own.
    Quick,
    /// The paper's: 1.
    Paper,
    /// This one for all.
    Fixed(Scale),
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

/// A machine or a design by its name in the file.
pub(crate) struct Named<T> {
    pub(crate) name: String,
    /// Where it is named first.
    written: Text,
    pub(crate) description: Description<T>,
}

/// A combination of steps of all axes.
#[derive(Clone, Debug, Default)]
pub(crate) struct PlannedStep {
    pub(crate) label: String,
    /// Another machine or design than the figure's, by index.
    pub(crate) machine: Option<usize>,
    pub(crate) design: Option<usize>,
    pub(crate) set: Vec<String>,
}

/// A workload at its scale.
#[derive(Clone)]
pub(crate) struct PlannedWorkload {
    pub(crate) label: String,
    pub(crate) choice: Arc<WorkloadChoice>,
    /// With the parameters of scale 1, where those of this run are others.
    pub(crate) whole: Option<Arc<WorkloadChoice>>,
    /// With the second parameters of quick scale, where this run is of that scale and has them.
    pub(crate) second: Option<Arc<WorkloadChoice>>,
    pub(crate) scale: Scale,
    /// Why at this scale and with these parameters.
    pub(crate) reason: String,
    /// By what share its speed-ups may differ from those of larger scales; none where nobody measured it.
    pub(crate) error: Option<f64>,
}

impl PlannedWorkload {
    /// The workload with these inputs; `None` where it has no others than its own.
    pub(crate) fn inputs(&self, inputs: Inputs) -> Option<&Arc<WorkloadChoice>> {
        match inputs {
            Inputs::Own => None,
            Inputs::Whole => self.whole.as_ref(),
            Inputs::Second => self.second.as_ref(),
        }
    }
}

/// A point beside that of a value, by index; `None` is as in the value's own.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PlannedBaseline {
    pub(crate) machine: Option<usize>,
    pub(crate) design: Option<usize>,
    /// Outer: whether another step than the value's own. Inner: none, or which.
    pub(crate) step: Option<Option<usize>>,
}

/// Where a metric's numbers come from.
#[derive(Clone, Debug)]
pub(crate) enum Origin {
    /// The machine alone.
    Hardware,
    /// Results of a pass.
    Results(Pass),
}

/// An experiment, resolved.
pub struct Plan {
    /// As read, and where it is silent, what that means.
    pub spec: Experiment,
    /// Rows, columns and panels of its figures.
    pub(crate) layout: Layout,
    pub(crate) file: File,
    pub(crate) choice: ScaleChoice,
    /// The scale that was asked for, which machines round.
    pub(crate) asked: ScaleChoice,
    /// Whether it is one of a paper's that ship, and not a user's own.
    pub(crate) ships: bool,
    /// Which time of runs is compared.
    pub(crate) time: TimeChoice,
    /// Time that the paper's readings, or the set of them that is asked for, compare.
    pub(crate) default_time: TimeChoice,
    /// Name of the set of readings that is applied; empty for the paper's default.
    pub(crate) readings: String,
    /// Whether runs that give times alone are sampled.
    pub(crate) sampled: bool,
    /// Those of the file, then those of steps and baselines beside them.
    pub(crate) machines: Vec<Named<MachineConfig>>,
    /// As `machines`.
    pub(crate) designs: Vec<Named<DesignConfig>>,
    pub(crate) steps: Vec<PlannedStep>,
    pub(crate) workloads: Vec<PlannedWorkload>,
    /// What the paper states of the workloads of the suite.
    pub(crate) stated: Vec<StatedWorkload>,
    /// Of each metric of the figure, then of what is left out.
    pub(crate) baselines: Vec<PlannedBaseline>,
    /// As `baselines`.
    pub(crate) origins: Vec<Origin>,
    /// Where the number that tells what is left out is taken, as in the file.
    pub(crate) left_out_at: Vec<PlannedBaseline>,
    /// Machines and designs of the points built so far.
    pub(crate) systems: Systems,
}

impl Plan {
    /// Reads the experiment at `path`.
    ///
    /// # Errors
    /// The file cannot be read, or has something that does not exist or does not fit.
    pub fn open(path: &Path, choice: ScaleChoice) -> Result<Plan, SpecError> {
        let file = File::open(path)?;
        let spec = file.read()?;
        Plan::new(file, spec, choice)
    }

    /// Resolves an experiment at a scale.
    ///
    /// # Errors
    /// It names something that does not exist or does not fit.
    pub fn new(file: File, spec: Experiment, choice: ScaleChoice) -> Result<Plan, SpecError> {
        let spec = completed(&file, spec)?;
        let machines = described(&file, "machines", &spec.machines, tombolo_machine::machine)?;
        let asked = choice;
        let choice = with_whole_sms(asked, &machines);
        let mut plan = Plan {
            layout: Layout::default(),
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
            asked,
            ships: false,
            time: TimeChoice::default(),
            default_time: TimeChoice::default(),
            readings: String::new(),
            sampled: false,
        };
        plan.check_lists()?;
        plan.steps = plan.all_steps()?;
        plan.layout = Layout::of(&plan)?;
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

    /// Labels of what rows or columns may be, in order.
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

    /// A metric of the figure, or of what is left out behind them.
    pub(crate) fn metric(&self, index: usize) -> &Metric {
        let own = &self.spec.metric;
        own.get(index).unwrap_or_else(|| &self.spec.left_out[index - own.len()].metric)
    }

    /// Whether anything runs: what machines alone say is computed, at scale 1.
    pub(crate) fn is_run(&self) -> bool {
        self.origins.iter().any(|origin| matches!(origin, Origin::Results(_)))
    }

    /// Whether every cell is a mean over workloads.
    pub(crate) fn is_mean_of_workloads(&self) -> bool {
        self.spec.mean.is_some() && !self.layout.shown().any(|shown| shown == Dimension::Workload)
    }

    /// Whether a machine or a design of this experiment reads `setting`.
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

    /// An error where `setting`, which stands for `written`, names nothing of a machine or a design, or a value that its
    /// key cannot take. One that does not fit beside the others fails at its point.
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

    /// Every machine must be as described at every scale before steps change it.
    fn check_scales(&self) -> Result<(), SpecError> {
        for named in &self.machines {
            let written = &named.written;
            let refuse = |error: ConfigError| self.file.refuse("machines", written, error.to_string());
            let machine = named.description.check().map_err(refuse)?;
            self.workloads.iter().try_for_each(|one| machine.scaled(one.scale).map(drop).map_err(refuse))?;
        }
        Ok(())
    }

    fn origin(&self, metric: &Metric) -> Result<Origin, SpecError> {
        let mut origins = Vec::new();
        for path in metric.value.iter().chain(&metric.per).chain(&metric.to_value) {
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
        Ok(first.map_or(Origin::Hardware, Origin::Results))
    }

    fn no_counter(&self, path: &Text, known: &[String]) -> SpecError {
        self.file.refuse("metric.value", path, told("no counter has this path", path.get(), known))
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

    /// A point by index. `keys` are those of its machine, its design and its step.
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

    /// The index of a machine, which may be beside those of the file.
    fn machine(&mut self, key: &'static str, name: &Text) -> Result<usize, SpecError> {
        if let Some(index) = self.machines.iter().position(|machine| machine.name == name.get()) {
            return Ok(index);
        }
        self.machines.extend(described(&self.file, key, std::slice::from_ref(name), tombolo_machine::machine)?);
        Ok(self.machines.len() - 1)
    }

    /// The index of a design, which may be beside those of the file.
    fn design(&mut self, key: &'static str, name: &Text) -> Result<usize, SpecError> {
        if let Some(index) = self.designs.iter().position(|design| design.name == name.get()) {
            return Ok(index);
        }
        self.designs.extend(described(&self.file, key, std::slice::from_ref(name), tombolo_design::design)?);
        Ok(self.designs.len() - 1)
    }

    /// Every combination of steps: one without settings where there is no axis.
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

    /// A step of further axes after those of earlier ones.
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
            .ok_or_else(|| self.file.refuse(key, label, told("it is not there", label.get(), &labels)))
    }

    /// Every list that cells are taken from must hold something, and all axes together not too much.
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

/// `reason`, what looks alike, and all there is.
pub(crate) fn told(reason: &str, name: &str, known: &[String]) -> String {
    let hint = crate::error::suggestion(&near(name, known.iter().map(String::as_str)));
    format!("{reason}{hint}; there are {}", known.join(", "))
}

fn described<T>(
    file: &File,
    key: &'static str,
    names: &[Text],
    find: impl Fn(&str) -> Result<Description<T>, ConfigError>,
) -> Result<Vec<Named<T>>, SpecError> {
    let one = |name: &Text| {
        let description = find(name.get()).map_err(|error| file.refuse(key, name, error.to_string()))?;
        Ok(Named { name: name.get().to_owned(), written: name.clone(), description })
    };
    names.iter().map(one).collect()
}

/// What the paper states of the workloads of the suite; nothing where there is none, or one that does not ship.
fn stated(spec: &Experiment) -> Vec<StatedWorkload> {
    let suite = spec.suite.as_ref().and_then(|name| preset::suite(name.get()).ok());
    suite.map(|(_, suite)| suite.stated).unwrap_or_default()
}

fn refuse_unknown(file: &File, key: &'static str, labels: &[Text], known: &[String]) -> Result<(), SpecError> {
    let stranger = labels.iter().find(|label| known.iter().all(|known| known != label.get()));
    stranger.map_or(Ok(()), |label| Err(file.refuse(key, label, told("it is not there", label.get(), known))))
}

fn scale(file: &File, key: &'static str, text: &Text) -> Result<Scale, SpecError> {
    text.get().parse().map_err(|error: ConfigError| file.refuse(key, text, error.to_string()))
}

/// A scale that was asked for, or the nearest at which modules of all `machines` keep whole SMs. A machine that is not as it
/// must be is refused later.
fn with_whole_sms(choice: ScaleChoice, machines: &[Named<MachineConfig>]) -> ScaleChoice {
    let ScaleChoice::Fixed(scale) = choice else { return choice };
    let checked = machines.iter().filter_map(|named| named.description.check().ok());
    ScaleChoice::Fixed(scale.with_whole_sms(checked.map(|machine| machine.topology.sms_per_module)))
}

fn workloads(file: &File, spec: &Experiment, choice: ScaleChoice) -> Result<Vec<PlannedWorkload>, SpecError> {
    let common = spec.scale.as_ref().map_or(Ok(Scale::FULL), |text| scale(file, "scale", text))?;
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
        ScaleChoice::Paper => planned.iter_mut().for_each(|one| one.scale = Scale::FULL),
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
    // Written parameters are checked at every scale, though only the quick one has them.
    let planned = |text, word: &str| {
        let word = with_inputs(word, inputs, &label);
        workload(file, text, &word, Some(label.clone()), (own, seed))
    };
    let plain = planned(&one.workload, one.workload.get())?;
    let quick = one.quick.as_ref().map(|more| (more, replaced(one.workload.get(), more.get())));
    let lighter = quick.as_ref().map(|(more, word)| planned(more, word)).transpose()?;
    let first = quick.as_ref().map_or(one.workload.get(), |(_, word)| word);
    let second = one.second.as_ref().map(|more| planned(more, &replaced(first, more.get()))).transpose()?;
    if choice != ScaleChoice::Quick {
        return Ok(plain);
    }
    let (second, reason, error) = (second.map(|second| second.choice), one.reason.clone(), one.error);
    Ok(match lighter {
        Some(lighter) => PlannedWorkload { whole: Some(plain.choice), second, reason, error, ..lighter },
        None => PlannedWorkload { second, reason, error, ..plain },
    })
}

/// The workloads of the suite called `name` as a search of their scales wants them.
pub(crate) fn wanted(name: &str) -> Result<Vec<Wanted>, SpecError> {
    let (file, suite) = preset::suite(name)?;
    let one = |one: &SuiteWorkload| {
        let planned = of_suite(&file, one, ScaleChoice::Quick, SEED, &[])?;
        let least = scale(&file, "least", one.least.as_ref().unwrap_or(&suite.least))?;
        Ok(Wanted { label: planned.label, workload: planned.choice, least })
    };
    suite.workload.iter().map(one).collect()
}

/// A workload's word with `more` parameters, which replace those of the same name.
pub(crate) fn replaced(word: &str, more: &str) -> String {
    let name = |part: &str| part.split('=').next().unwrap_or_default().trim().to_owned();
    let kept = word.split(',').filter(|part| more.split(',').all(|new| name(new) != name(part)));
    kept.chain(more.split(',')).collect::<Vec<_>>().join(",")
}

/// A workload's word with the `inputs` of its label.
fn with_inputs(word: &str, inputs: &[WorkloadInputs], label: &str) -> String {
    let of_it = inputs.iter().filter(|one| one.workload.get() == label);
    of_it.fold(word.to_owned(), |word, one| replaced(&word, one.parameters.get()))
}

/// Where the paper states something of its workloads, each has a label that is among them.
fn refuse_unstated(file: &File, one: &SuiteWorkload, stated: &[StatedWorkload]) -> Result<(), SpecError> {
    let label = one.label.as_deref().unwrap_or(one.workload.get());
    if stated.is_empty() || stated.iter().any(|known| known.label == label) {
        return Ok(());
    }
    let known: Vec<String> = stated.iter().map(|known| known.label.clone()).collect();
    Err(file.refuse("workload.label", &one.workload, told("the paper states nothing of it", label, &known)))
}

/// The workload called `word`, which stands at `text`.
fn workload(
    file: &File,
    text: &Text,
    word: &str,
    label: Option<String>,
    (scale, seed): (Scale, u64),
) -> Result<PlannedWorkload, SpecError> {
    let refuse = |error: crate::error::PointError| file.refuse("workloads", text, error.to_string());
    let mut choice = only(word).map_err(refuse)?;
    choice.check_parameters().map_err(refuse)?;
    choice.seed = seed;
    let label = label.unwrap_or_else(|| choice.label.clone());
    let (choice, reason) = (Arc::new(choice), String::new());
    Ok(PlannedWorkload { label, choice, whole: None, second: None, scale, reason, error: None })
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
