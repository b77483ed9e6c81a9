//! Wires a machine, a design and a workload into a run.
