//! Rows, columns and panels of an experiment's figures, and the defaults for keys absent from its file.

use crate::error::SpecError;
use crate::export::setting_number;
use crate::grid::Coordinate;
use crate::plan::{ExperimentPlan, ScaleChoice, with_alternatives};
use crate::reader::File;
use crate::spec::{Axis, Baseline, Chart, Dimension, Experiment, Mean, Metric, Relative, Shape, Step, Text, Vary};

/// Name of the step without any axis setting.
pub(crate) const NO_STEP: &str = "none";
/// Prefix before the name of an axis.
const AXIS: &str = "axis:";
/// Dimensions other than axes, by name.
const WORDS: [(&str, Dimension); 5] = [
    ("workload", Dimension::Workload),
    ("design", Dimension::Design),
    ("machine", Dimension::Machine),
    ("step", Dimension::Step),
    ("metric", Dimension::Metric),
];

/// Dimensions of the figures' rows and columns, and the dimensions with a figure per value.
#[derive(Clone, Debug)]
pub(crate) struct FigureLayout {
    pub(crate) rows: Dimension,
    pub(crate) columns: Dimension,
    pub(crate) panels: Vec<Dimension>,
}

impl Default for FigureLayout {
    fn default() -> FigureLayout {
        FigureLayout { rows: Dimension::Workload, columns: Dimension::Design, panels: Vec::new() }
    }
}

/// Selects a figure: the value index of each panel dimension. The default has no panel dimension.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Panel(pub(crate) Vec<(Dimension, usize)>);

impl FigureLayout {
    /// Returns the layout of `plan`, whose steps are known: the layout from the file, or a default derived from the
    /// sweep.
    pub(crate) fn of(plan: &ExperimentPlan) -> Result<FigureLayout, SpecError> {
        let spec = &plan.spec;
        let dimension = |key, text: &Option<Text>| text.as_ref().map(|text| plan.dimension(key, text)).transpose();
        let (rows, columns) = (dimension("rows", &spec.rows)?, dimension("columns", &spec.columns)?);
        let panels = spec.panels.iter().map(|text| plan.dimension("panels", text)).collect::<Result<Vec<_>, _>>()?;
        let is_silent = rows.is_none() && columns.is_none() && panels.is_empty();
        let rows = rows.unwrap_or_else(|| {
            let is_swept = !spec.axis.is_empty() && columns != Some(Dimension::Step);
            let first = if is_swept { Dimension::Axis(0) } else { Dimension::Workload };
            if columns == Some(first) { Dimension::Design } else { first }
        });
        let columns = columns.unwrap_or_else(|| plan.beside(rows));
        let layout = FigureLayout { rows, columns, panels };
        if !is_silent {
            return Ok(layout);
        }
        let panels = plan.hidden(&layout).filter(|one| plan.labels(*one).len() > 1 && !plan.is_averaged(*one, &layout));
        Ok(FigureLayout { panels: panels.collect(), ..layout })
    }

    /// Returns the dimensions in rows, columns and panels.
    pub(crate) fn shown(&self) -> impl Iterator<Item = Dimension> + '_ {
        [self.rows, self.columns].into_iter().chain(self.panels.iter().copied())
    }
}

impl ExperimentPlan {
    fn dimension(&self, key: &'static str, text: &Text) -> Result<Dimension, SpecError> {
        let words = WORDS.iter().map(|(word, dimension)| ((*word).to_owned(), *dimension));
        let axes = self.spec.axis.iter().enumerate().map(|(at, axis)| (format!("{AXIS}{}", axis.name), at));
        let all: Vec<(String, Dimension)> = words.chain(axes.map(|(word, at)| (word, Dimension::Axis(at)))).collect();
        let found = all.iter().find(|(word, _)| word == text.get());
        found.map(|(_, dimension)| *dimension).ok_or_else(|| {
            let known: Vec<String> = all.iter().map(|(word, _)| word.clone()).collect();
            self.file.refuse(key, text, with_alternatives("it is not there", text.get(), &known))
        })
    }

    /// Returns the default column dimension for the given rows: the next axis, or designs. With a single design over an
    /// axis, the columns are workloads.
    fn beside(&self, rows: Dimension) -> Dimension {
        let several = |dimension| self.labels(dimension).len() > 1;
        match rows {
            Dimension::Axis(0) if self.spec.axis.len() > 1 => Dimension::Axis(1),
            Dimension::Axis(_) | Dimension::Step if !several(Dimension::Design) && several(Dimension::Workload) => {
                Dimension::Workload
            }
            Dimension::Design => Dimension::Workload,
            _ => Dimension::Design,
        }
    }

    /// Returns the dimensions that appear in neither rows nor columns nor panels.
    fn hidden(&self, layout: &FigureLayout) -> impl Iterator<Item = Dimension> {
        let shown: Vec<Dimension> = layout.shown().collect();
        let is_by_axis = shown.iter().any(|one| matches!(one, Dimension::Axis(_)));
        let axes = (0..if is_by_axis { self.spec.axis.len() } else { 0 }).map(Dimension::Axis);
        let steps = (!is_by_axis).then_some(Dimension::Step);
        let others = [Dimension::Workload, Dimension::Design, Dimension::Machine, Dimension::Metric];
        axes.chain(steps).chain(others).filter(move |one| !shown.contains(one))
    }

    fn is_averaged(&self, dimension: Dimension, layout: &FigureLayout) -> bool {
        dimension == Dimension::Workload
            && self.spec.mean.is_some()
            && layout.shown().all(|shown| shown != Dimension::Workload)
    }

    /// Checks that every value of every dimension has exactly one place.
    pub(crate) fn check_layout(&self) -> Result<(), SpecError> {
        let shape = |key, reason: String| Err(self.file.misshapen(key, reason));
        let shown: Vec<Dimension> = self.layout.shown().collect();
        if shown.iter().enumerate().any(|(at, one)| shown[..at].contains(one)) {
            return shape("columns", "rows, columns and panels must differ".into());
        }
        let is_by_axis = shown.iter().any(|one| matches!(one, Dimension::Axis(_)));
        if is_by_axis && shown.contains(&Dimension::Step) {
            return shape("columns", "`step` is all axes together: it does not go with one of them".into());
        }
        if is_by_axis && !self.spec.quick.steps.is_empty() && self.choice == ScaleChoice::Quick {
            return shape("quick.steps", "it goes with rows or columns of `step` alone".into());
        }
        for hidden in self.hidden(&self.layout) {
            let count = self.labels(hidden).len();
            if count > 1 && !self.is_averaged(hidden, &self.layout) {
                let name = self.name_of(hidden);
                let reason =
                    format!("{count} of {name} are neither rows, columns nor panels; only workloads have a mean");
                return shape("rows", reason);
            }
        }
        let is_of_one = !self.spec.claim.is_empty() || !self.spec.published.is_empty();
        if is_of_one && !self.layout.panels.is_empty() {
            return shape("panels", "claims and published values are of one figure: they do not go with panels".into());
        }
        let several = self.spec.axis.iter().filter(|axis| axis.step.len() > 1).count() > 1;
        if self.shape() == Shape::Lines && self.layout.rows == Dimension::Step && several {
            let reason = "a line would join points that differ in several axes: make rows of one, such as axis:NAME";
            return shape("chart.kind", reason.into());
        }
        Ok(())
    }

    /// Returns the dimension's name for messages.
    fn name_of(&self, dimension: Dimension) -> String {
        match dimension {
            Dimension::Axis(axis) => format!("{AXIS}{}", self.spec.axis[axis].name),
            other => WORDS.iter().find(|(_, one)| *one == other).map_or("", |(word, _)| word).to_owned(),
        }
    }

    /// Returns the chart shape of the figures.
    pub(crate) fn shape(&self) -> Shape {
        let several = self.spec.axis.len() > 1;
        let default = match self.layout.rows {
            Dimension::Axis(_) => Shape::Lines,
            Dimension::Step if !several => Shape::Lines,
            _ => Shape::Bars,
        };
        self.spec.chart.as_ref().and_then(|chart| chart.kind).unwrap_or(default)
    }

    /// Returns the number set by each value of a dimension, in its base unit. Only an axis with one numeric setting per
    /// step has numbers. Empty if the dimension has no numbers.
    pub(crate) fn numbers(&self, dimension: Dimension) -> Vec<Option<f64>> {
        let axis = match (dimension, &self.spec.axis[..]) {
            (Dimension::Axis(axis), axes) => &axes[axis],
            (Dimension::Step, [axis]) if axis.step.len() == self.steps.len() => axis,
            _ => return Vec::new(),
        };
        // Cycles are converted with the first machine's clock.
        let machine = self.machines.first().and_then(|machine| machine.description.check().ok());
        let Some(clock) = machine.map(|machine| machine.sm.clock) else { return Vec::new() };
        let number = |step: &Step| match &step.set[..] {
            [setting] => setting_number(setting.get(), clock),
            _ => None,
        };
        axis.step.iter().map(number).collect()
    }

    /// Returns the figures in order; a single default panel if no panels are declared.
    pub(crate) fn panels(&self) -> Vec<Panel> {
        let mut all = vec![Panel::default()];
        for dimension in &self.layout.panels {
            let indices = 0..self.labels(*dimension).len();
            let longer = |panel: &Panel, index| Panel([&panel.0[..], &[(*dimension, index)]].concat());
            all = all.iter().flat_map(|panel| indices.clone().map(move |index| longer(panel, index))).collect();
        }
        all
    }

    /// Returns the label of a panel, for example `hmg, directory.entries 3072`; empty without panels.
    pub(crate) fn label_of(&self, panel: &Panel) -> String {
        let word = |(dimension, index): &(Dimension, usize)| {
            let value = self.labels(*dimension).swap_remove(*index);
            match dimension {
                Dimension::Axis(axis) => format!("{} {value}", self.spec.axis[*axis].name),
                _ => value,
            }
        };
        panel.0.iter().map(word).collect::<Vec<_>>().join(", ")
    }

    /// Returns `at` with a new value for a dimension. A change to an axis keeps the steps of all remaining axes.
    pub(crate) fn with(&self, mut at: Coordinate, dimension: Dimension, index: usize) -> Coordinate {
        match dimension {
            Dimension::Workload => at.workload = index,
            Dimension::Design => at.design = index,
            Dimension::Machine => at.machine = index,
            Dimension::Step => at.step = Some(index),
            Dimension::Metric => at.metric = index,
            Dimension::Axis(axis) => {
                let steps = |axis: &Axis| axis.step.len();
                let stride: usize = self.spec.axis[axis + 1..].iter().map(steps).product();
                let (step, count) = (at.step.unwrap_or(0), steps(&self.spec.axis[axis]));
                at.step = Some(step - step / stride % count * stride + index * stride);
            }
        }
        at
    }
}

/// Returns `spec` with every implied field filled in: axes for varied paths, the metric, and the mean. Repeated
/// application changes nothing.
pub(crate) fn completed(file: &File, mut spec: Experiment) -> Result<Experiment, SpecError> {
    let mut varied: Vec<Axis> = Vec::new();
    for one in std::mem::take(&mut spec.vary) {
        if varied.iter().any(|axis| axis.name == one.set.get()) {
            return Err(file.refuse("vary.set", &one.set, "it is varied twice"));
        }
        varied.push(axis(&one));
    }
    spec.axis.splice(0..0, varied);
    if spec.metric.is_empty() {
        let Some(first) = spec.designs.first() else {
            return Err(file.misshapen("metric", "without designs to compare it must say what is measured"));
        };
        let step = (!spec.axis.is_empty()).then(|| Text::assumed(NO_STEP));
        let to = Baseline { machine: None, design: Some(first.clone()), step };
        spec.metric.push(speed_up(to));
        spec.mean = spec.mean.or(Some(Mean::Geometric));
    }
    Ok(spec)
}

fn axis(vary: &Vary) -> Axis {
    let step = |value: &Text| Step {
        label: value.get().to_owned(),
        machine: None,
        design: None,
        set: vec![Text::at(value, format!("{}={}", vary.set.get(), value.get()))],
    };
    Axis { name: vary.set.get().to_owned(), step: vary.to.iter().map(step).collect() }
}

/// Returns `text` with an upper-case first letter.
fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn speed_up(to: Baseline) -> Metric {
    Metric {
        name: "speed-up".to_owned(),
        value: vec![Text::assumed("time_s")],
        per: Vec::new(),
        empty: None,
        factor: None,
        per_scale: false,
        relative: Some(Relative::SpeedUp),
        to: Some(to),
        to_value: Vec::new(),
        extrapolate: None,
    }
}

impl ExperimentPlan {
    /// Returns the heading for the figures: the title from the file, or the metrics, machines and axes.
    pub(crate) fn heading(&self) -> String {
        if !self.spec.title.is_empty() {
            return self.spec.title.clone();
        }
        let metrics: Vec<String> = self
            .spec
            .metric
            .iter()
            .map(|metric| {
                let over = metric.to.as_ref().map(|to| self.name_of_base(to)).filter(|name| !name.is_empty());
                over.map_or_else(|| metric.name.clone(), |over| format!("{} over {over}", metric.name))
            })
            .collect();
        let on = self.labels(Dimension::Machine).join(", ");
        let axes: Vec<&str> = self.spec.axis.iter().map(|axis| axis.name.as_str()).collect();
        let by = match &axes[..] {
            [] => String::new(),
            [one] => format!(" by {one}"),
            [first @ .., last] => format!(" by {} and {last}", first.join(", ")),
        };
        capital(&format!("{} on {on}{by}", metrics.join(", ")))
    }

    fn name_of_base(&self, to: &Baseline) -> String {
        let names = [&to.design, &to.machine].into_iter().flatten().map(Text::get);
        names.collect::<Vec<_>>().join(" on ")
    }

    /// Returns the caption for the figures: the text from the file, or a description of the normalisation.
    pub(crate) fn legend(&self) -> String {
        if !self.spec.caption.is_empty() {
            return self.spec.caption.trim().to_owned();
        }
        let relative =
            self.spec.metric.iter().filter_map(|metric| Some((metric, metric.relative?, metric.to.as_ref()?)));
        let sentences: Vec<String> = relative
            .map(|(metric, relative, to)| {
                let base = match self.name_of_base(to) {
                    name if name.is_empty() => "its base".to_owned(),
                    name => name,
                };
                let is_plain = to.step.as_ref().is_some_and(|step| step.get() == NO_STEP);
                let name = capital(&metric.name);
                let without = if is_plain { ", nothing swept being set" } else { "" };
                match relative {
                    Relative::SpeedUp => {
                        format!("{name}: time under {base}{without}, over the time of the run.")
                    }
                    Relative::Ratio => format!("{name}: by that of {base}{without}."),
                }
            })
            .collect();
        let mean = match self.spec.mean {
            Some(mean) if self.is_mean_of_workloads() && self.workloads.len() > 1 => {
                format!(" Each value is the {} of {} workloads.", crate::figure::summary(mean), self.workloads.len())
            }
            Some(_) | None => String::new(),
        };
        let set: Vec<&str> = self.spec.set.iter().map(Text::get).collect();
        let set = if set.is_empty() { String::new() } else { format!(" Everywhere: {}.", set.join(", ")) };
        format!("{}{mean}{set}", sentences.join(" ")).trim().to_owned()
    }

    /// Returns the complete chart description: names absent from the file come from axes and metrics.
    pub(crate) fn drawn(&self) -> Chart {
        let mut chart = self.spec.chart.clone().unwrap_or_default();
        chart.kind = Some(self.shape());
        if chart.x.is_empty() {
            chart.x = self.head(self.layout.rows);
        }
        if let [metric] = &self.spec.metric[..] {
            if chart.y.is_empty() {
                chart.y = metric.name.clone();
            }
            if self.spec.chart.is_none() && metric.relative.is_some() {
                chart.reference = Some(1.0);
            }
        }
        chart
    }

    /// Returns a dimension's name for a column header or an axis.
    pub(crate) fn head(&self, dimension: Dimension) -> String {
        match dimension {
            Dimension::Workload | Dimension::Design | Dimension::Machine | Dimension::Metric => self.name_of(dimension),
            Dimension::Step => self.spec.axis.iter().map(|axis| axis.name.as_str()).collect::<Vec<_>>().join(", "),
            Dimension::Axis(axis) => self.spec.axis[axis].name.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::FigureTable;
    use crate::grid::Change;
    use tombolo_report::document::ChartKind;

    /// Common start for every text below: two designs, two workloads, two axes with two steps each.
    const SPEC: &str = r#"
        id = "x"
        machines = ["hmg-4x4"]
        designs = ["nhcc", "hmg"]
        workloads = ["triad", "bfs"]
    "#;
    const TWO: &str = r#"
        [[vary]]
        set = "l2.bytes"
        to = ["3MB", "6MB"]
        [[vary]]
        set = "gpu_link.rate"
        to = ["100GB/s", "200GB/s"]
    "#;

    fn plan(more: &str) -> Result<ExperimentPlan, SpecError> {
        let file = File { name: "x.toml".into(), text: format!("{SPEC}{more}") };
        let spec = file.read()?;
        ExperimentPlan::new(file, spec, ScaleChoice::Paper)
    }

    fn refusal(more: &str) -> String {
        plan(more).map(drop).expect_err("it is refused").to_string()
    }

    #[test]
    fn without_an_axis_workloads_stand_over_designs_with_their_mean() {
        let plan = plan("").unwrap();
        let figure = plan.figure(&FigureTable::default());
        assert_eq!((figure.chart.kind, figure.chart.reference), (ChartKind::Bars, Some(1.0)));
        assert_eq!(figure.title, "Speed-up over nhcc on hmg-4x4 (time: region)");
        assert_eq!((plan.layout.rows, plan.layout.columns), (Dimension::Workload, Dimension::Design));
        assert_eq!(plan.summaries().len(), 1);
    }

    #[test]
    fn points_of_a_line_differ_in_the_axis_alone() {
        let plan = plan(TWO).unwrap();
        let figure = plan.figure(&FigureTable::default());
        assert_eq!((figure.chart.kind, &*figure.chart.x), (ChartKind::Lines, "l2.bytes"));
        assert_eq!(figure.chart.series, "gpu_link.rate");
        let panels = plan.panels();
        assert_eq!(panels.iter().map(|panel| plan.label_of(panel)).collect::<Vec<_>>(), ["nhcc", "hmg"]);
        for column in 0..2 {
            let steps = [0, 1].map(|row| plan.cell(&panels[1], row, column).step.unwrap());
            let sets = steps.map(|step| plan.steps[step].set.clone());
            let rate = ["gpu_link.rate=100GB/s", "gpu_link.rate=200GB/s"][column];
            assert_eq!(sets, [["l2.bytes=3MB", rate], ["l2.bytes=6MB", rate]]);
        }
    }

    #[test]
    fn every_combination_has_one_cell_of_one_figure() {
        let third = "[[vary]]\nset = \"directory.entries\"\nto = [\"12288\", \"24576\", \"49152\"]\n";
        let plan = plan(&format!("{TWO}{third}")).unwrap();
        assert_eq!(plan.panels().len(), 6, "three sizes of the directory, two designs");
        let mut seen: Vec<_> =
            plan.coordinates(&Change::default()).iter().map(|at| (at.workload, at.design, at.step)).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 2 * 2 * 12);
    }

    #[test]
    fn a_file_chooses_rows_columns_and_panels() {
        let chosen =
            "rows = \"axis:gpu_link.rate\"\ncolumns = \"design\"\npanels = [\"workload\", \"axis:l2.bytes\"]\n";
        let plan = plan(&format!("{chosen}chart = {{ kind = \"heat\" }}{TWO}")).unwrap();
        let figure = plan.figure(&FigureTable::default());
        assert_eq!((figure.chart.kind, figure.chart.series.as_str()), (ChartKind::Heat, "design"));
        assert_eq!(plan.label_of(&plan.panels()[3]), "bfs, l2.bytes 6MB");
    }

    #[test]
    fn what_has_no_place_or_two_is_refused() {
        let unknown = refusal(&format!("rows = \"axis:l3\"\n{TWO}"));
        assert!(unknown.contains("x.toml:6: rows = \"axis:l3\"") && unknown.contains("axis:l2.bytes"), "{unknown}");
        let hidden = refusal(&format!("rows = \"axis:l2.bytes\"\ncolumns = \"design\"\n{TWO}"));
        assert!(hidden.contains("2 of axis:gpu_link.rate are neither rows, columns nor panels"), "{hidden}");
        let joined = refusal(&format!("rows = \"step\"\nchart = {{ kind = \"lines\" }}\n{TWO}"));
        assert!(joined.contains("differ in several axes"), "{joined}");
        let both = refusal(&format!("rows = \"step\"\ncolumns = \"axis:l2.bytes\"\n{TWO}"));
        assert!(both.contains("does not go with one of them"), "{both}");
        let twice = refusal(&format!("{TWO}[[vary]]\nset = \"l2.bytes\"\nto = [\"6MB\"]\n"));
        assert!(twice.contains("varied twice"), "{twice}");
        let claimed = "[[claim]]\nid = \"a\"\nkind = \"magnitude\"\ntext = \"a\"\nof = [{ row = \"3MB\", columns = [\"100GB/s\"] }]\n";
        assert!(refusal(&format!("{TWO}{claimed}")).contains("do not go with panels"));
    }
}
