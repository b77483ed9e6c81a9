//! SM resources used by CTAs, and the amounts left.

use tombolo_machine::MachineConfig;
use tombolo_types::stream::KernelInfo;

/// Names for the resources in an SM.
const RESOURCE_NAMES: [&str; 5] = ["warps", "threads", "scratchpad bytes", "registers", "CTAs"];

/// Amounts of warps, threads, scratchpad bytes, registers and CTAs: per SM, or per CTA.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SmResources([u64; RESOURCE_NAMES.len()]);

impl SmResources {
    /// All resources of an SM.
    pub(crate) fn of_sm(machine: &MachineConfig) -> SmResources {
        let sm = &machine.sm;
        SmResources([sm.warps.into(), sm.threads.into(), sm.shared_bytes, sm.registers.into(), sm.ctas.into()])
    }

    /// Resources used by a CTA in a kernel recorded with `warp_width` lanes per warp. Each warp uses the slot and
    /// registers of a full hardware warp; some lanes may stay idle.
    pub(crate) fn of_cta(machine: &MachineConfig, kernel: &KernelInfo, warp_width: u32) -> SmResources {
        let warps = u64::from(kernel.warps(warp_width));
        let registers = u64::from(kernel.registers) * warps * u64::from(machine.sm.warp_width);
        SmResources([warps, kernel.threads_per_cta.into(), kernel.shared_bytes.into(), registers, 1])
    }

    /// True if `needs` fits.
    #[inline]
    pub(crate) fn fits(&self, needs: &SmResources) -> bool {
        self.0.iter().zip(needs.0).all(|(has, needs)| *has >= needs)
    }

    /// Subtracts a CTA's resources, which must fit.
    pub(crate) fn take(&mut self, needs: &SmResources) {
        self.0.iter_mut().zip(needs.0).for_each(|(has, needs)| *has -= needs);
    }

    /// Returns an ended CTA's resources.
    pub(crate) fn give_back(&mut self, needs: &SmResources) {
        self.0.iter_mut().zip(needs.0).for_each(|(has, needs)| *has += needs);
    }
}

/// Number of CTAs held at once by an otherwise empty SM. The kernel is recorded with `warp_width` lanes per warp.
///
/// # Errors
/// Names the limit exceeded by a single CTA.
pub fn residency(machine: &MachineConfig, kernel: &KernelInfo, warp_width: u32) -> Result<u32, String> {
    let (sm, cta) = (SmResources::of_sm(machine), SmResources::of_cta(machine, kernel, warp_width));
    let mut resident = u64::MAX;
    for (what, (has, needs)) in RESOURCE_NAMES.into_iter().zip(sm.0.into_iter().zip(cta.0)) {
        if needs > has {
            return Err(format!("kernel {}: a CTA needs {needs} {what}, an SM has {has}", kernel.name));
        }
        resident = resident.min(has.checked_div(needs).unwrap_or(u64::MAX));
    }
    Ok(resident as u32)
}

/// Number of a launch's CTAs that `modules` otherwise empty modules hold at once, at most all.
pub(crate) fn first_wave(machine: &MachineConfig, kernel: &KernelInfo, warp_width: u32, modules: u32) -> u32 {
    let an_sm = residency(machine, kernel, warp_width).unwrap_or(0);
    let room = u64::from(an_sm) * u64::from(machine.topology.sms_per_module) * u64::from(modules);
    room.min(kernel.ctas.into()) as u32
}
