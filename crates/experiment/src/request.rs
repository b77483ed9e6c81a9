//! Builds an experiment from command-line arguments without a file, and writes the equivalent experiment file.

use crate::reader::File;
use crate::spec::Shape;
use serde::Serialize;

/// File name used in messages about an [`ExperimentRequest`].
pub const NAME: &str = "the command line";

/// Machine, designs, workloads and swept values. All remaining keys have the defaults of an experiment file.
#[derive(Clone, Debug, Default)]
pub struct ExperimentRequest {
    /// Short name, for example `sweep`.
    pub id: String,
    /// Machine, by name or path.
    pub machine: String,
    /// Designs, by name or path.
    pub designs: Vec<String>,
    /// Workloads with their parameters, each spelled like a command-line argument.
    pub workloads: Vec<String>,
    /// Fraction of the machine and input to run. If absent, the caller that runs the file decides.
    pub scale: Option<String>,
    /// Settings applied to every point.
    pub set: Vec<String>,
    /// Swept setting paths with their values: an axis per path.
    pub vary: Vec<(String, Vec<String>)>,
    /// Baseline design for speed-ups, among `designs`; if absent, the first design.
    pub baseline: Option<String>,
    /// Chart shape; chosen automatically if absent.
    pub chart: Option<Shape>,
}

#[derive(Serialize)]
struct Form<'a> {
    id: &'a str,
    machines: [&'a str; 1],
    designs: &'a [String],
    workloads: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    scale: Option<&'a str>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    set: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    mean: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    chart: Option<ChartForm>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    metric: Vec<SpeedUpForm<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    vary: Vec<VaryForm<'a>>,
}

#[derive(Serialize)]
struct ChartForm {
    kind: Shape,
    reference: f64,
}

#[derive(Serialize)]
struct SpeedUpForm<'a> {
    name: &'static str,
    value: [&'static str; 1],
    relative: &'static str,
    to: BaseForm<'a>,
}

#[derive(Serialize)]
struct BaseForm<'a> {
    design: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<&'static str>,
}

#[derive(Serialize)]
struct VaryForm<'a> {
    set: &'a str,
    to: &'a [String],
}

impl SpeedUpForm<'_> {
    fn over<'a>(design: &'a str, step: Option<&'static str>) -> SpeedUpForm<'a> {
        SpeedUpForm { name: "speed-up", value: ["time_s"], relative: "speed-up", to: BaseForm { design, step } }
    }
}

impl ExperimentRequest {
    /// Returns the equivalent experiment file.
    pub fn file(&self) -> File {
        let step = (!self.vary.is_empty()).then_some(crate::layout::NO_STEP);
        let form = Form {
            id: &self.id,
            machines: [&self.machine],
            designs: &self.designs,
            workloads: &self.workloads,
            scale: self.scale.as_deref(),
            set: &self.set,
            mean: self.baseline.is_some().then_some("geometric"),
            chart: self.chart.map(|kind| ChartForm { kind, reference: 1.0 }),
            metric: self.baseline.iter().map(|design| SpeedUpForm::over(design, step)).collect(),
            vary: self.vary.iter().map(|(set, to)| VaryForm { set, to }).collect(),
        };
        let text = toml::to_string(&form).expect("its keys are words, and tables follow values");
        File { name: NAME.to_owned(), text }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{ExperimentPlan, ScaleChoice};

    #[test]
    fn the_file_of_a_command_line_asks_the_same() {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let ask = ExperimentRequest {
            id: "sweep".into(),
            machine: "hmg-4x4".into(),
            designs: words(&["nhcc", "hmg"]),
            workloads: words(&["triad,elements=64", "bfs"]),
            scale: Some("1/16".into()),
            set: words(&["l2.ways=8"]),
            vary: vec![("gpu_link.rate".into(), words(&["100GB/s", "200GB/s"]))],
            baseline: Some("hmg".into()),
            chart: Some(Shape::Heat),
        };
        let file = ask.file();
        let plan = ExperimentPlan::new(file.clone(), file.read().unwrap(), ScaleChoice::Quick).unwrap();
        assert_eq!(plan.workloads[0].label, "triad,elements=64");
        assert_eq!(plan.workloads[0].scale.to_string(), "1/16");
        assert_eq!(
            (plan.steps[1].set.as_slice(), plan.spec.set[0].get()),
            (&words(&["gpu_link.rate=200GB/s"])[..], "l2.ways=8")
        );
        assert_eq!((plan.baselines[0].design, plan.baselines[0].step), (Some(1), Some(None)));
        assert_eq!(plan.shape(), Shape::Heat);
    }
}
