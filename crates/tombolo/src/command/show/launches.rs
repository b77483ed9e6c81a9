//! Requirements of a workload on a machine: its footprint relative to the L2s, and waves of CTAs per SM for each
//! kernel.

use crate::failure::CommandFailure;
use crate::table::{Cell, Table};
use serde::Serialize;
use tombolo_design::scheduling::{CtaDistribution, MachineShape};
use tombolo_experiment::workload::{Target, WorkloadChoice};
use tombolo_machine::MachineConfig;
use tombolo_model::sm::residency;
use tombolo_types::stream::KernelInfo;
use tombolo_types::{LaunchDevices, ModuleId};

/// A workload on a machine.
#[derive(Debug, Serialize)]
pub(super) struct OnMachine {
    machine: String,
    scale: String,
    gpus: u8,
    /// Total bytes in all arrays.
    footprint_bytes: u64,
    /// L2 bytes on each GPU.
    l2_bytes: u64,
    /// Footprint per GPU, relative to its L2.
    footprint_over_l2: f64,
    kernels: Vec<KernelLaunches>,
}

/// A kernel with grid size and launch count.
#[derive(Debug, Serialize)]
struct KernelLaunches {
    name: String,
    launches: u64,
    ctas: u32,
    threads_per_cta: u32,
    /// CTAs resident on an SM at once.
    resident: u32,
    /// Waves in the module with the most CTAs: the number of times all SMs are filled. The last wave may be partial.
    waves: u32,
}

impl OnMachine {
    /// Computes the requirements of the workload on `machine`, with the input at the machine's scale.
    pub(super) fn of(choice: &WorkloadChoice, machine: &MachineConfig) -> Result<OnMachine, CommandFailure> {
        let target = Target::of(machine);
        let arrays = choice.arrays(target.scale(), machine.topology.gpus)?;
        let footprint_bytes = arrays.iter().map(|(array, _)| array.bytes).sum();
        let l2_bytes = machine.l2.bytes * u64::from(machine.topology.modules_per_gpu);
        let mut kinds: Vec<(KernelInfo, u64)> = Vec::new();
        for kernel in choice.launches(target)? {
            match kinds.iter_mut().find(|(kind, _)| *kind == kernel) {
                Some((_, launches)) => *launches += 1,
                None => kinds.push((kernel, 1)),
            }
        }
        let kernels = kinds.iter().map(|(kernel, launches)| KernelLaunches::of(machine, kernel, *launches));
        let kernels = kernels.collect::<Result<_, _>>()?;
        Ok(OnMachine {
            machine: machine.name.clone(),
            scale: machine.scale.to_string(),
            gpus: machine.topology.gpus,
            footprint_bytes,
            l2_bytes,
            footprint_over_l2: footprint_bytes as f64 / f64::from(machine.topology.gpus) / l2_bytes as f64,
            kernels,
        })
    }

    /// Formats the result for people.
    pub(super) fn text(&self, colours: bool) -> String {
        let OnMachine { machine, scale, gpus, footprint_over_l2, .. } = self;
        let part = if *gpus == 1 { "its arrays are" } else { "a GPU's part of its arrays is" };
        let mut text = format!("\non {machine} at scale {scale} {part} {footprint_over_l2:.1} times the L2 of a GPU\n");
        let headings = ["kernel", "launches", "CTAs", "threads of a CTA", "CTAs an SM holds", "waves"];
        let mut table = Table::new(1).with_headings(headings);
        for KernelLaunches { name, launches, ctas, threads_per_cta, resident, waves } in &self.kernels {
            let numbers = [*launches, (*ctas).into(), (*threads_per_cta).into(), (*resident).into(), (*waves).into()];
            let cells = numbers.iter().map(|number| Cell::plain(number.to_string()));
            table.row(std::iter::once(Cell::plain(name)).chain(cells).collect());
        }
        text += &table.render(colours);
        text
    }
}

impl KernelLaunches {
    fn of(machine: &MachineConfig, kernel: &KernelInfo, launches: u64) -> Result<KernelLaunches, CommandFailure> {
        let resident = residency(machine, kernel, machine.sm.warp_width).map_err(|message| {
            CommandFailure::Argument { flag: "--machine", value: machine.name.clone(), reason: message }
        })?;
        let shape = MachineShape::of(machine);
        let share = |module| CtaDistribution::Program.share(kernel, LaunchDevices::All, ModuleId(module), shape);
        let most = (0..shape.modules()).filter_map(share).map(|share| share.ctas()).max().unwrap_or_default();
        Ok(KernelLaunches {
            name: kernel.name.clone(),
            launches,
            ctas: kernel.ctas,
            threads_per_cta: kernel.threads_per_cta,
            resident,
            waves: most.div_ceil(u32::from(machine.topology.sms_per_module) * resident),
        })
    }
}
