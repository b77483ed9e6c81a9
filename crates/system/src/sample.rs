//! The time of a whole program from a run of the part of it that was recorded.

use crate::record::RunRecord;
use std::sync::Arc;
use tombolo_machine::MachineConfig;
use tombolo_model::controller::residency;
use tombolo_workload::record::Sample;

/// A sample for `machine`. A kernel that no SM holds counts as one CTA; running it is refused.
pub fn sample(machine: &MachineConfig) -> Sample {
    let machine = machine.clone();
    let sms = machine.topology.sms() as u64;
    Sample::new(Arc::new(move |kernel| sms * u64::from(residency(&machine, kernel).unwrap_or(1))))
}

/// What was recorded of a program.
#[derive(Clone, Debug, PartialEq)]
pub struct SampleInfo {
    /// By launch recorded: how often its time counts in the whole.
    pub weights: Vec<f64>,
    /// Launches of the whole program.
    pub launches: u64,
}

/// The seconds that the whole program takes: the weighted times of the launches that were run, the copies and gaps
/// between them, and a gap for each launch that was not.
///
/// Panics where `record` is of another program than `sample`.
pub fn project(record: &RunRecord, sample: &SampleInfo, machine: &MachineConfig) -> f64 {
    assert_eq!(record.kernels.len(), sample.weights.len(), "a run has the launches that were recorded");
    let gap = machine.host.dependent_launch_latency.seconds();
    let beyond = record.kernels.iter().zip(&sample.weights);
    let running: f64 = beyond.map(|(kernel, weight)| (weight - 1.0) * (kernel.end_s - kernel.start_s)).sum();
    record.time_s + running + (sample.launches as f64 - sample.weights.len() as f64) * gap
}
