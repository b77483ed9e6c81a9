//! The time of a whole program from a run of the part of it that was recorded.

use crate::record::{KernelRecord, RunRecord};
use std::sync::Arc;
use tombolo_design::DesignConfig;
use tombolo_design::scheduling::CtaCut;
use tombolo_design::write_policy::WritePolicy;
use tombolo_machine::MachineConfig;
use tombolo_model::residency::residency;
use tombolo_types::stream::KernelInfo;
use tombolo_workload::record::{Part, Projection, Sample, Spent};

/// A sample for `machine` under `design`, of programs recorded with its warps. A kernel that no SM holds counts as one CTA;
/// running it is refused.
pub fn sample(machine: &MachineConfig, design: &DesignConfig) -> Sample {
    let blocks = match design.scheduling.cut() {
        CtaCut::Contiguous | CtaCut::Program => machine.topology.modules() as u64,
        CtaCut::Interleaved { .. } => 1,
    };
    let held_back = match design.l2_write {
        WritePolicy::Back(_) => {
            // With stores that are on their way.
            let (modules, sms) = (machine.topology.modules() as u64, machine.topology.sms() as u64);
            let lines = machine.l2.bytes / machine.line.bytes() + u64::from(machine.l2.posted_stores);
            lines * modules + u64::from(machine.sm.posted_stores) * sms
        }
        WritePolicy::Through(_) => 0,
    };
    let machine = machine.clone();
    let (sms, width) = (machine.topology.sms() as u64, machine.sm.warp_width);
    let at_once = Arc::new(move |kernel: &KernelInfo| sms * u64::from(residency(&machine, kernel, width).unwrap_or(1)));
    Sample::new(at_once, blocks).holding_back(held_back)
}

/// What was recorded of a program.
#[derive(Clone, Debug, PartialEq)]
pub struct SampleInfo {
    /// By launch recorded: how it counts in the whole.
    pub parts: Vec<Part>,
    /// Launches of the whole program.
    pub launches: u64,
}

/// Replaces the times of `record` by those of the whole program, and returns how far they may be off: the projected times
/// of its launches, the copies and gaps between those that were run, and a gap for each launch that was not.
///
/// Panics where `record` is of another program than `sample`.
pub fn project(record: &mut RunRecord, sample: &SampleInfo, machine: &MachineConfig) -> Projection {
    let spent: Vec<Spent> = record.kernels.iter().map(KernelRecord::spent).collect();
    let Projection { time_s, error_s } = Projection::of(&sample.parts, &spent);
    let running: f64 = spent.iter().map(|spent| spent.total_s).sum();
    let gap = machine.host.dependent_launch_latency.seconds();
    let gaps = (sample.launches as f64 - sample.parts.len() as f64) * gap;
    record.time = record.time.with(time_s - running, gaps);
    record.time_s = record.time.whole_s;
    Projection { time_s: record.time_s, error_s }
}
