//! The synchronisation scope of a benchmark, chosen by a parameter.

use tombolo_types::Scope;
use tombolo_workload::parameter::{Parameter, ParameterKind, ParameterValues};

/// Scope of synchronisation in a program written for a single GPU.
pub(crate) const SCOPE: Parameter = Parameter {
    name: "scope",
    kind: ParameterKind::Choice(&["gpu", "sys"]),
    default: "gpu",
    about: "scope of flags, fences and counters: the program is written for one GPU; only sys orders CTAs of several",
    source: "HMG VI: cuSolver, namd2.10 and mst use .gpu-scoped synchronization explicitly",
};

/// Converts the value of a scope parameter to a scope.
pub(crate) fn scope(values: &ParameterValues, name: &str) -> Scope {
    if values.text(name) == "gpu" { Scope::Gpu } else { Scope::Sys }
}
