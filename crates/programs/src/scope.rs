//! The synchronisation scope of a benchmark, chosen by a parameter.

use tombolo_workload::prelude::*;

parameters! {
    /// scope of flags, fences and counters: the program is written for one GPU; only sys orders CTAs of several
    pub(crate) const SCOPE = scope: choice("gpu", "sys") = "gpu",
        "HMG VI: cuSolver, namd2.10 and mst use .gpu-scoped synchronization explicitly";
}

/// Converts the value of a scope parameter to a scope.
pub(crate) fn scope(values: &ParameterValues, name: &str) -> Scope {
    if values.text(name) == "gpu" { Scope::Gpu } else { Scope::Sys }
}
