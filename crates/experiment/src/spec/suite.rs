//! Workloads of a paper, with the scales and parameters of their quick runs.

use super::Text;
use serde::Deserialize;

/// A list of workloads, each with a scale and parameters.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Suite {
    /// Description on a single line.
    pub description: String,
    /// Smallest scale allowed by the reading of the paper.
    pub least: Text,
    /// Workloads, in order.
    pub workload: Vec<SuiteWorkload>,
    /// The paper's statements about its workloads, by label: all workloads, including workloads absent from this suite.
    #[serde(default)]
    pub stated: Vec<StatedWorkload>,
}

/// A paper's statements about a workload.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct StatedWorkload {
    /// Workload name in the paper.
    pub label: String,
    /// CTAs in its kernels, averaged over time.
    pub ctas: u64,
    /// Footprint, in MB.
    pub footprint_mb: u64,
}

/// A workload in a suite.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SuiteWorkload {
    /// Workload spelled for the command line, for example `nw,length=4096`.
    pub workload: Text,
    /// Label in figures; defaults to its name.
    #[serde(default)]
    pub label: Option<String>,
    /// Fraction run at quick scale.
    pub scale: Text,
    /// Smallest scale, if different from the suite's.
    #[serde(default)]
    pub least: Option<Text>,
    /// Relative error of speed-ups at quick scale from larger scales, measured with `tombolo scale`.
    #[serde(default)]
    pub error: Option<f64>,
    /// Parameters for quick scale only, for example `sweeps=1`: less work, with an unchanged kind of work.
    #[serde(default)]
    pub quick: Option<Text>,
    /// Parameters for a second size at quick scale, which replace the first: directions are repeated with them.
    #[serde(default)]
    pub second: Option<Text>,
    /// Reason for the scale and the parameters, shown in reports.
    #[serde(default)]
    pub reason: String,
    /// Number of iterations in the published program, for metrics that extrapolate. Absent if iterations differ.
    #[serde(default)]
    pub iterations: Option<PublishedIterations>,
}

/// Number of iterations in a published program.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PublishedIterations {
    /// Number of iterations, in the repetitions that a run's record counts.
    pub count: u32,
    /// Source of the number.
    pub source: String,
}
