//! CTAs of running kernels that the command processor assigns one by one, under dynamic assignment.
//!
//! An SM with room asks for a CTA. CTAs are assigned in ascending order to requests in order of arrival; requests that
//! arrive at the same time are served by module number.

use crate::sm::kernel_slot::{KernelSlot, entry};
use crate::sm::residency::first_wave;
use std::ops::Range;
use tombolo_design::scheduling::CtaDistribution;
use tombolo_machine::MachineConfig;
use tombolo_types::stream::KernelInfo;

/// CTAs left to assign, by the kernel's slot.
#[derive(Clone, Debug)]
pub(super) struct Grids {
    /// The machine, under dynamic assignment.
    machine: Option<MachineConfig>,
    left: Vec<Range<u32>>,
}

impl Grids {
    /// No kernel runs.
    pub(super) fn new(machine: &MachineConfig, distribution: CtaDistribution) -> Grids {
        let is_dynamic = matches!(distribution, CtaDistribution::Dynamic { .. });
        Grids { machine: is_dynamic.then(|| machine.clone()), left: Vec::new() }
    }

    /// A kernel, recorded with `warp_width` lanes per warp, is launched on `modules` modules.
    pub(super) fn launch(&mut self, slot: KernelSlot, (kernel, warp_width): (&KernelInfo, u32), modules: u32) {
        let Some(machine) = &self.machine else { return };
        *entry(&mut self.left, slot) = first_wave(machine, kernel, warp_width, modules)..kernel.ctas;
    }

    /// The next CTA; `None` if all have been assigned.
    pub(super) fn assign(&mut self, slot: KernelSlot) -> Option<u32> {
        self.left[slot.index()].next()
    }
}
