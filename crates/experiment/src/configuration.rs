//! Machines and designs as a report shows them: every value, and where it comes from.

use crate::plan::{Named, Plan};
use tombolo_machine::Described;
use tombolo_report::document::{Configuration, Entry};

/// Each machine and design of the plans once, in their order: as described, before any step of an axis.
pub(crate) fn configurations(plans: &[Plan]) -> Vec<Configuration> {
    let mut all: Vec<Configuration> = Vec::new();
    let machines = plans.iter().flat_map(|plan| plan.machines.iter().map(configuration));
    let designs = plans.iter().flat_map(|plan| plan.designs.iter().map(configuration));
    for one in machines.chain(designs) {
        if all.iter().all(|known| known.title != one.title) {
            all.push(one);
        }
    }
    all
}

fn configuration<T: Described>(named: &Named<T>) -> Configuration {
    let values = named.description.values().into_iter().filter(|value| value.path != "name");
    Configuration {
        title: format!("{} {}", T::KIND, named.name),
        entries: values.map(|one| Entry { key: one.path, value: one.value, source: one.source }).collect(),
    }
}
