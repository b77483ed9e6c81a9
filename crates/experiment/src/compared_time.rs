//! Selects the run time compared by a metric, among all times in a run's record.

use crate::plan::ExperimentPlan;
use crate::spec::Metric;

/// Path of the whole run's time. In a normalised metric, this path stands for the chosen time.
const TIME: &str = "time_s";

impl ExperimentPlan {
    /// Returns the path of a metric's counter in a run's record. In a normalised metric, `time_s` maps to the path for
    /// the chosen time.
    pub(crate) fn path<'a>(&self, metric: &Metric, path: &'a str) -> &'a str {
        if metric.relative.is_some() && path == TIME { self.time.path() } else { path }
    }

    /// True if any metric in the plan, including metrics for left-out workloads, compares the chosen time.
    pub(crate) fn compares_times(&self) -> bool {
        let mut metrics = self.spec.metric.iter().chain(self.spec.left_out.iter().map(|one| &one.metric));
        metrics.any(is_of_time)
    }
}

/// True if a metric is normalised and compares the chosen time.
pub(crate) fn is_of_time(metric: &Metric) -> bool {
    let mut paths = metric.paths();
    metric.relative.is_some() && paths.any(|path| path.get() == TIME)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::ScaleChoice;
    use crate::preset;
    use tombolo_system::TimeChoice;

    #[test]
    fn a_normalised_time_is_the_one_that_was_chosen_and_a_pinned_one_stays() {
        let (_, experiments) = preset::paper("hmg").unwrap();
        let plan = |id: &str| {
            let (file, spec) = experiments.iter().find(|(_, spec)| spec.id == id).unwrap();
            ExperimentPlan {
                time: TimeChoice::Kernels,
                ..ExperimentPlan::new(file.clone(), spec.clone(), ScaleChoice::Quick).unwrap()
            }
        };
        let (speedups, rates) = (plan("figure-8"), plan("figure-11"));
        let path = |plan: &ExperimentPlan, path: &str| plan.path(plan.metric(0), path).to_owned();
        assert_eq!((path(&speedups, "time_s").as_str(), speedups.compares_times()), ("time.kernels_s", true));
        assert_eq!(path(&speedups, "time.whole_s"), "time.whole_s");
        assert_eq!((path(&rates, "time_s").as_str(), rates.compares_times()), ("time_s", false));
    }
}
