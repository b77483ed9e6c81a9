//! Quantity of a figure: counters, their normalisation, and the times of more iterations than ran.

use super::Text;
use serde::Deserialize;

/// A metric: `factor × sum of value ÷ sum of per`, then normalised.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Metric {
    /// Label of the value in the figure.
    pub name: String,
    /// Counter paths, summed: from a run's record (`time_s`, `coherence.stores_on_shared`), the sharing pass
    /// (`sharing.inter_gpu_loads`), the array pass (`arrays.written_bytes`) or the machine
    /// (`hardware.directory_bits_per_entry`). In a normalised metric, `time_s` is the time chosen with `--time`. By
    /// default this is the region from the first kernel to the end of the last. `time.region_s`, `time.kernels_s` and
    /// `time.whole_s` do not depend on the choice.
    pub value: Vec<Text>,
    /// Counters to divide by; summed.
    #[serde(default)]
    pub per: Vec<Text>,
    /// Value for a zero divisor; none if absent.
    #[serde(default)]
    pub empty: Option<f64>,
    /// Factor, for units.
    #[serde(default)]
    pub factor: Option<f64>,
    /// Divides by the scale: for absolute rates.
    #[serde(default)]
    pub per_scale: bool,
    /// Normalisation; measured values if absent.
    #[serde(default)]
    pub relative: Option<Relative>,
    /// Baseline of the normalisation.
    #[serde(default)]
    pub to: Option<Baseline>,
    /// Counters for the baseline point, if different from `value`; summed.
    #[serde(default)]
    pub to_value: Vec<Text>,
    /// For a workload with published iterations, replaces `value` by the time of all of them. The baseline is replaced too.
    #[serde(default)]
    pub extrapolate: Option<Extrapolation>,
}

impl Metric {
    /// All counter paths that the metric reads.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &Text> {
        let further = self.extrapolate.iter().flat_map(|more| more.first.iter().chain(&more.further));
        self.value.iter().chain(&self.per).chain(&self.to_value).chain(further)
    }
}

/// Time of N iterations from a run of fewer: `first + (N - 1) × further`.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Extrapolation {
    /// Counters of the first iteration, summed.
    pub first: Vec<Text>,
    /// Counters of each further iteration, summed.
    pub further: Vec<Text>,
}

impl Extrapolation {
    /// Time of `count` iterations, from the time of the first and of each further one.
    pub(crate) fn total(count: u32, first: f64, further: f64) -> f64 {
        first + f64::from(count.saturating_sub(1)) * further
    }
}

/// Normalisation of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum Relative {
    /// Baseline ÷ value: for times.
    #[serde(rename = "speed-up")]
    SpeedUp,
    /// Value ÷ baseline.
    #[serde(rename = "ratio")]
    Ratio,
}

impl Relative {
    /// Normalises a value by the given baseline.
    pub(crate) fn of(self, value: f64, baseline: f64) -> f64 {
        match self {
            Relative::SpeedUp => baseline / value,
            Relative::Ratio => value / baseline,
        }
    }
}

/// A point relative to a value's point, for example its baseline: absent fields keep the value's own choice.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Baseline {
    /// Machine of the point, not necessarily in `machines`.
    #[serde(default)]
    pub machine: Option<Text>,
    /// Design of the point, not necessarily in `designs`.
    #[serde(default)]
    pub design: Option<Text>,
    /// Label of the point's step, or `none` for a point without any axis setting.
    #[serde(default)]
    pub step: Option<Text>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn further_iterations_are_one_fewer_than_all() {
        let total = |count| Extrapolation::total(count, 10.0, 3.0);
        assert_eq!((total(1), total(2), total(500)), (10.0, 13.0, 1507.0));
    }

    #[test]
    fn a_metric_reads_the_counters_of_its_extrapolation_too() {
        let metric: Metric = toml::from_str(
            "name = \"speed-up\"\nvalue = [\"time_s\"]\nextrapolate = { first = [\"a\"], further = [\"b\", \"c\"] }\n",
        )
        .expect("a metric");
        assert_eq!(metric.paths().map(Text::get).collect::<Vec<_>>(), ["time_s", "a", "b", "c"]);
    }
}
