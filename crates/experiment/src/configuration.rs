//! Lists machines, designs and workloads for a report: every value, together with the value's source.

use crate::plan::{ExperimentPlan, NamedDescription, PlannedWorkload};
use crate::spec::PublishedIterations;
use tombolo_machine::DescriptionKind;
use tombolo_report::document::{Configuration, ConfigurationValue};

/// Returns each machine and design in the plans once, in plan order, with their described values before any axis step.
/// The workloads follow.
pub(crate) fn configurations(plans: &[ExperimentPlan]) -> Vec<Configuration> {
    let mut all: Vec<Configuration> = Vec::new();
    let machines = plans.iter().flat_map(|plan| plan.machines.iter().map(configuration));
    let designs = plans.iter().flat_map(|plan| plan.designs.iter().map(configuration));
    for one in machines.chain(designs) {
        if all.iter().all(|known| known.title != one.title) {
            all.push(one);
        }
    }
    all.extend(programs(plans));
    all
}

/// Returns each workload run, with its parameters, its scale and the reason for the scale; `None` if no workload runs.
fn programs(plans: &[ExperimentPlan]) -> Option<Configuration> {
    let mut entries: Vec<ConfigurationValue> = Vec::new();
    for entry in plans.iter().filter(|plan| plan.is_run()).flat_map(|plan| plan.workloads.iter().map(program)) {
        if !entries.contains(&entry) {
            entries.push(entry);
        }
    }
    (!entries.is_empty()).then(|| Configuration { title: "workloads as run".to_owned(), entries })
}

fn program(one: &PlannedWorkload) -> ConfigurationValue {
    let value = format!("{} at {}", one.choice.label, one.scale);
    let iterations = one
        .iterations
        .iter()
        .map(|PublishedIterations { count, source }| format!("figures of all iterations: {count} of them ({source})"));
    let stated = [&one.reason].into_iter().filter(|reason| !reason.is_empty()).cloned();
    let source = stated.chain(iterations).collect::<Vec<_>>().join("; ");
    ConfigurationValue { key: one.label.clone(), value, source }
}

fn configuration<T: DescriptionKind>(named: &NamedDescription<T>) -> Configuration {
    let values = named.description.values().into_iter().filter(|value| value.path != "name");
    Configuration {
        title: format!("{} {}", T::KIND, named.name),
        entries: values.map(|one| ConfigurationValue { key: one.path, value: one.value, source: one.source }).collect(),
    }
}
