//! Chooses the part to record from each launch, for a machine and a design, if part of a launch represents all of it:
//! see [`tombolo_workload::record::Sample`].

use std::sync::Arc;
use tombolo_design::scheduling::CtaDistribution;
use tombolo_design::{DesignConfig, WritePolicy};
use tombolo_machine::MachineConfig;
use tombolo_model::sm::residency;
use tombolo_types::stream::KernelInfo;
use tombolo_workload::record::Sample;

/// A sample for `machine` under `design`, for programs recorded with the machine's warp width. A kernel too large for
/// every SM counts as a single CTA; a run refuses this kernel.
pub fn sample(machine: &MachineConfig, design: &DesignConfig) -> Sample {
    let blocks = match design.scheduling.cut(machine) {
        CtaDistribution::Contiguous | CtaDistribution::Program => machine.topology.modules() as u64,
        CtaDistribution::Interleaved { .. } | CtaDistribution::Dynamic { .. } => 1,
    };
    let held_back = match design.l2_write {
        WritePolicy::Back => {
            // Includes stores in flight.
            let (modules, sms) = (machine.topology.modules() as u64, machine.topology.sms() as u64);
            let lines = machine.l2.bytes / machine.line.bytes() + u64::from(machine.l2.posted_stores);
            lines * modules + u64::from(machine.sm.posted_stores) * sms
        }
        WritePolicy::Through => 0,
    };
    let machine = machine.clone();
    let (sms, width) = (machine.topology.sms() as u64, machine.sm.warp_width);
    let at_once = Arc::new(move |kernel: &KernelInfo| sms * u64::from(residency(&machine, kernel, width).unwrap_or(1)));
    Sample::new(at_once, blocks).holding_back(held_back)
}
