//! What CTAs take of an SM, and what is left of it.

use tombolo_machine::MachineConfig;
use tombolo_types::stream::KernelInfo;

/// What an SM has, by name.
const WHAT: [&str; 5] = ["warps", "threads", "scratchpad bytes", "registers", "CTAs"];

/// Warps, threads, scratchpad bytes, registers and CTAs: of an SM, or of one CTA.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Room([u64; WHAT.len()]);

impl Room {
    /// All of an SM.
    pub fn of_sm(machine: &MachineConfig) -> Room {
        let sm = &machine.sm;
        Room([sm.warps.into(), sm.threads.into(), sm.shared_bytes, sm.registers.into(), sm.ctas.into()])
    }

    /// What a CTA of a kernel takes, recorded with warps of `warp_width` lanes. A warp takes the slot and the registers of
    /// one of the machine's, whose lanes it may leave idle.
    pub fn of_cta(machine: &MachineConfig, kernel: &KernelInfo, warp_width: u32) -> Room {
        let warps = u64::from(kernel.warps(warp_width));
        let registers = u64::from(kernel.registers) * warps * u64::from(machine.sm.warp_width);
        Room([warps, kernel.threads_per_cta.into(), kernel.shared_bytes.into(), registers, 1])
    }

    /// Whether `needs` fits.
    #[inline]
    pub fn fits(&self, needs: &Room) -> bool {
        self.0.iter().zip(needs.0).all(|(has, needs)| *has >= needs)
    }

    /// A CTA takes its place: it must fit.
    pub fn take(&mut self, needs: &Room) {
        self.0.iter_mut().zip(needs.0).for_each(|(has, needs)| *has -= needs);
    }

    /// A CTA has ended.
    pub fn give_back(&mut self, needs: &Room) {
        self.0.iter_mut().zip(needs.0).for_each(|(has, needs)| *has += needs);
    }
}

/// CTAs of a kernel, recorded with warps of `warp_width` lanes, that one SM holds at once where it holds no others.
///
/// # Errors
/// Says which limit a single CTA exceeds.
pub fn residency(machine: &MachineConfig, kernel: &KernelInfo, warp_width: u32) -> Result<u32, String> {
    let (sm, cta) = (Room::of_sm(machine), Room::of_cta(machine, kernel, warp_width));
    let mut resident = u64::MAX;
    for (what, (has, needs)) in WHAT.into_iter().zip(sm.0.into_iter().zip(cta.0)) {
        if needs > has {
            return Err(format!("kernel {}: a CTA needs {needs} {what}, an SM has {has}", kernel.name));
        }
        resident = resident.min(has.checked_div(needs).unwrap_or(u64::MAX));
    }
    Ok(resident as u32)
}
