//! Shipped names: machines, designs, workloads with their parameters, experiments, suites, mechanisms, broken rules.

use crate::Section;
use std::collections::BTreeSet;
use tombolo_programs::{aliases, suite};
use tombolo_protocol::BrokenRule;
use tombolo_protocol::nmoesi::BrokenNmoesi;
use tombolo_workload::bench::Workload;

/// Returns a section per kind of name.
pub(crate) fn sections() -> Vec<Section> {
    let machines = tombolo_machine::list_machines();
    let designs = tombolo_design::list_designs();
    let experiments = tombolo_experiment::preset::list();
    let mechanisms = tombolo_experiment::mechanism::list();
    let rules = BrokenRule::ALL.map(BrokenRule::name).into_iter().chain(BrokenNmoesi::ALL.map(BrokenNmoesi::name));
    vec![
        of("machines", machines.iter().map(|listed| listed.name)),
        of("designs", designs.iter().map(|listed| listed.name)),
        workloads(),
        of("papers and their experiments", experiments.iter().map(|listed| &*listed.name)),
        of("suites", tombolo_experiment::preset::suites()),
        of("mechanisms", mechanisms.iter().map(|mechanism| mechanism.name)),
        of("benchmarks of validate", tombolo_validation::suite::names()),
        of("broken rules of check", rules),
    ]
}

fn of<'a>(heading: &str, names: impl IntoIterator<Item = &'a str>) -> Section {
    (heading.to_owned(), names.into_iter().map(str::to_owned).collect())
}

/// Returns a line per workload, with its aliases and its suite, and a line per parameter, with its accepted values.
fn workloads() -> Section {
    let mut lines = BTreeSet::new();
    for workload in tombolo_programs::list() {
        let workload: &dyn Workload = *workload;
        let names: Vec<&str> = std::iter::once(workload.name()).chain(aliases(workload)).collect();
        lines.insert(format!("{} (suite {})", names.join(" | "), suite(workload)));
        let parameters = workload.parameters().iter();
        lines.extend(parameters.map(|one| format!("{},{}: {}", workload.name(), one.name, one.kind)));
    }
    ("workloads and their parameters".to_owned(), lines)
}
