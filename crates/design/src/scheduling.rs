//! Scheduling axis: the module that runs a CTA.

use crate::axis::{axis, option};
use crate::placement::Movement;
use crate::{DesignConfig, Elision};
use tombolo_machine::{Conflict, MachineConfig};
use tombolo_types::stream::KernelInfo;
use tombolo_types::{LaunchDevices, ModuleId};

axis! {
    /// Module that runs a CTA.
    pub enum Scheduling { Contiguous, Interleaved, VirtualGpu, VirtualGpuDynamic, Programmed } refused by conflict
}

option! {
    /// A block of neighbouring CTAs per module. Source: HMG, section VI.
    pub struct Contiguous = "contiguous" {}
}

option! {
    /// Some neighbouring CTAs for each module in turn. Source: NUMA-GPU, section 3.
    pub struct Interleaved = "interleaved" {
        /// Neighbouring CTAs per turn. Source of the default: NUMA-GPU, section 3; UMH, section 6 (SKE): one at a
        /// time.
        cta_chunk: u32 = 1,
    }
}

option! {
    /// The machine as a single GPU with the SMs of all modules, numbered module after module: CTA `g` belongs to the module
    /// of SM `g` modulo all SMs. Source: UMH, section 6 ("a single virtual GPU", compute units numbered over the GPUs in
    /// Figure 5); Multi2Sim 4.2, which gives work-groups round robin to compute units.
    pub struct VirtualGpu = "virtual-gpu" {}
}

option! {
    /// As `virtual-gpu` for the CTAs that fit at once. Each later CTA, in ascending order, goes to the SM that has room
    /// first. An SM asks the command processor, and its room stays empty until the answer arrives. Source: assumed, as a
    /// single GPU's dispatcher.
    pub struct VirtualGpuDynamic = "virtual-gpu-dynamic" {}
}

option! {
    /// Each GPU runs the CTA block that the program gives it, and its modules equal parts; equal blocks if the
    /// program gives none. Source: GPS, section 6 (programs written for several GPUs).
    pub struct Programmed = "program" {}
}

/// The ordered assignment of a kernel's CTAs to modules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CtaDistribution {
    /// A block of neighbouring CTAs.
    Contiguous,
    /// A chunk of neighbouring CTAs, then an equal chunk for every remaining module in turn.
    Interleaved {
        /// CTAs per chunk, at least 1.
        chunk: u32,
    },
    /// The CTAs that fit at once in chunks of neighbours, as under `Interleaved`. Each later one goes to the module that
    /// has room first; its shares then state the assignment that analyses before a run assume.
    Dynamic {
        /// CTAs per chunk, at least 1.
        chunk: u32,
    },
    /// An equal part of the program's block for the module's GPU.
    Program,
}

/// A launch's CTAs for a single module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CtaShare {
    /// The first CTA.
    pub first: u32,
    /// Length of a chunk, in consecutive CTAs.
    pub chunk: u32,
    /// Distance from the first CTA in a chunk to the first CTA in the next chunk.
    pub step: u32,
    /// End of the share, past the last CTA.
    pub end: u32,
}

impl CtaShare {
    /// Number of CTAs.
    pub fn ctas(&self) -> u32 {
        let (all, step) = (self.end.saturating_sub(self.first), self.step.max(1));
        all / step * self.chunk + (all % step).min(self.chunk)
    }

    /// The CTA that follows `cta`.
    pub fn after(&self, cta: u32) -> u32 {
        let next = cta + 1;
        if (next - self.first) % self.step < self.chunk { next } else { (next - self.chunk).saturating_add(self.step) }
    }

    /// All CTAs, in order.
    pub fn iter(self) -> impl Iterator<Item = u32> {
        std::iter::successors(Some(self.first), move |cta| Some(self.after(*cta)))
            .take_while(move |cta| *cta < self.end)
    }
}

/// A machine's number of GPUs and modules per GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MachineShape {
    /// Number of GPUs.
    pub gpus: u8,
    /// Number of modules per GPU.
    pub modules_per_gpu: u8,
}

impl MachineShape {
    /// The shape of a machine.
    pub fn of(machine: &MachineConfig) -> MachineShape {
        MachineShape { gpus: machine.topology.gpus, modules_per_gpu: machine.topology.modules_per_gpu }
    }

    /// A single GPU with `modules` modules.
    pub fn one_gpu(modules: u8) -> MachineShape {
        MachineShape { gpus: 1, modules_per_gpu: modules }
    }

    /// Total number of modules.
    pub fn modules(self) -> u8 {
        self.gpus * self.modules_per_gpu
    }
}

impl Scheduling {
    /// The distribution of a grid over a machine's modules.
    pub fn cut(self, machine: &MachineConfig) -> CtaDistribution {
        match self {
            Scheduling::Contiguous(_) => CtaDistribution::Contiguous,
            Scheduling::Interleaved(Interleaved { cta_chunk }) => CtaDistribution::Interleaved { chunk: cta_chunk },
            Scheduling::VirtualGpu(_) => CtaDistribution::Interleaved { chunk: machine.topology.sms_per_module.into() },
            Scheduling::VirtualGpuDynamic(_) => {
                CtaDistribution::Dynamic { chunk: machine.topology.sms_per_module.into() }
            }
            Scheduling::Programmed(_) => CtaDistribution::Program,
        }
    }
}

impl CtaDistribution {
    /// The share for module `module` among `modules`, if the program does not cut the grid.
    pub fn of(self, ctas: u32, module: u32, modules: u32) -> CtaShare {
        let cut = |index: u32| (u64::from(ctas) * u64::from(index) / u64::from(modules)) as u32;
        match self {
            CtaDistribution::Contiguous | CtaDistribution::Program => {
                CtaShare { first: cut(module), chunk: 1, step: 1, end: cut(module + 1) }
            }
            CtaDistribution::Interleaved { chunk } | CtaDistribution::Dynamic { chunk } => {
                let first = module.saturating_mul(chunk).min(ctas);
                CtaShare { first, chunk, step: modules.saturating_mul(chunk), end: ctas }
            }
        }
    }

    /// The share for `module` in a launch of `kernel`; `None` if the launch does not include the module.
    pub fn share(
        self,
        kernel: &KernelInfo,
        on: LaunchDevices,
        module: ModuleId,
        shape: MachineShape,
    ) -> Option<CtaShare> {
        let rank = on.rank(module, shape.gpus, shape.modules_per_gpu)?;
        if self != CtaDistribution::Program || kernel.parts.is_empty() {
            return Some(self.of(kernel.ctas, rank.module, rank.modules));
        }
        let each = rank.modules / devices(on, shape);
        let device = (rank.module / each) as usize;
        let first = kernel.parts[device];
        let end = kernel.parts.get(device + 1).copied().unwrap_or(kernel.ctas);
        let share = self.of(end - first, rank.module % each, each);
        Some(CtaShare { first: first + share.first, end: first + share.end, ..share })
    }

    /// The reason for which a launch of `kernel` cannot be cut in this way, if any.
    pub fn defect(self, kernel: &KernelInfo, on: LaunchDevices, shape: MachineShape) -> Option<String> {
        let parts = &kernel.parts;
        if self != CtaDistribution::Program || parts.is_empty() {
            return None;
        }
        let (has, devices) = (parts.len(), devices(on, shape));
        if has != devices as usize {
            return Some(format!("the program cuts its grid for {has} devices, and launches it on {devices}"));
        }
        let ascends = parts[0] == 0 && parts.is_sorted() && parts.last().is_some_and(|last| *last <= kernel.ctas);
        (!ascends).then(|| format!("its parts {parts:?} do not ascend from 0 to its {} CTAs", kernel.ctas))
    }
}

/// Dynamic assignment suits designs in which nothing depends on the module that runs a CTA.
fn conflict(chosen: &Scheduling, key: &'static str, design: &DesignConfig) -> Option<Conflict> {
    if !matches!(chosen, Scheduling::VirtualGpuDynamic(_)) {
        return None;
    }
    let reason = match (design.placement.sharing().movement, design.elision) {
        (Movement::Hints { .. } | Movement::Copies { .. } | Movement::LatestWriter | Movement::Published { .. }, _) => {
            "pages are moved, copied or published for the modules that a launch's CTAs are known to run on"
        }
        (_, Elision::Cpelide(_)) => "the elision table is told which module accesses what",
        (Movement::Placed | Movement::Faults | Movement::HostCopies(_), Elision::Never(_)) => return None,
    };
    Some(Conflict { key, reason: format!("{reason}; \"virtual-gpu\" is permitted") })
}

/// Number of parts in a program's launch: GPUs, or modules if its devices are modules.
fn devices(on: LaunchDevices, shape: MachineShape) -> u32 {
    match on {
        LaunchDevices::All => u32::from(shape.gpus),
        LaunchDevices::Gpus(set) => set.count(),
        LaunchDevices::Modules(set) => set.count(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tombolo_types::{GpuSet, ModuleSet};

    const SHAPE: MachineShape = MachineShape { gpus: 2, modules_per_gpu: 2 };

    fn shares(cut: CtaDistribution, parts: &[u32], on: LaunchDevices) -> Vec<Option<(u32, u32)>> {
        let kernel = KernelInfo { ctas: 10, parts: parts.to_vec(), ..KernelInfo::default() };
        let share = |module| cut.share(&kernel, on, ModuleId(module), SHAPE).map(|share| (share.first, share.end));
        (0..4).map(share).collect()
    }

    #[test]
    fn a_program_cuts_by_gpu_and_its_modules_share_equally() {
        let all = shares(CtaDistribution::Program, &[0, 8], LaunchDevices::All);
        assert_eq!(all, [Some((0, 4)), Some((4, 8)), Some((8, 9)), Some((9, 10))]);
        assert_eq!(
            shares(CtaDistribution::Program, &[], LaunchDevices::All),
            shares(CtaDistribution::Contiguous, &[0, 8], LaunchDevices::All)
        );
    }

    #[test]
    fn neighbours_of_a_turn_stay_together() {
        let kernel = KernelInfo { ctas: 11, ..KernelInfo::default() };
        let ctas = |chunk, module| {
            let share = CtaDistribution::Interleaved { chunk }
                .share(&kernel, LaunchDevices::All, ModuleId(module), SHAPE)
                .expect("it runs");
            assert_eq!(share.iter().count(), share.ctas() as usize);
            share.iter().collect::<Vec<_>>()
        };
        assert_eq!([ctas(1, 0), ctas(1, 3)], [vec![0, 4, 8], vec![3, 7]]);
        assert_eq!([ctas(2, 0), ctas(2, 1), ctas(2, 3)], [vec![0, 1, 8, 9], vec![2, 3, 10], vec![6, 7]]);
        assert_eq!([ctas(5, 1), ctas(5, 2), ctas(5, 3)], [vec![5, 6, 7, 8, 9], vec![10], vec![]]);
    }

    #[test]
    fn dynamic_assignment_is_refused_where_a_run_is_planned_ahead() {
        let dynamic = Scheduling::VirtualGpuDynamic(VirtualGpuDynamic {});
        let reason = |preset: &str| {
            let shipped = crate::design(preset).and_then(|design| design.check()).expect("it ships");
            let design = DesignConfig { scheduling: dynamic, ..shipped };
            conflict(&design.scheduling, "scheduling", &design).map(|conflict| conflict.reason)
        };
        for permitted in ["umh", "zero-copy", "memcpy-host", "unified-memory-host", "hmg"] {
            assert_eq!(reason(permitted), None, "{permitted}");
        }
        for refused in ["gps", "memcpy", "unified-memory-hints", "infinite-bandwidth"] {
            assert!(reason(refused).expect(refused).contains("are known to run on"), "{refused}");
        }
        assert!(reason("cpelide").expect("a table").contains("elision table"));
    }

    #[test]
    fn a_launch_on_some_modules_is_distributed_over_these_modules() {
        let second = shares(CtaDistribution::Contiguous, &[], LaunchDevices::Gpus(GpuSet::from_bits(0b10)));
        assert_eq!(second, [None, None, Some((0, 5)), Some((5, 10))]);
        let outer = shares(CtaDistribution::Program, &[0, 3], LaunchDevices::Modules(ModuleSet::from_bits(0b1001)));
        assert_eq!(outer, [Some((0, 3)), None, None, Some((3, 10))]);
    }

    #[test]
    fn a_grid_cut_for_other_gpus_is_refused() {
        let kernel = |parts: &[u32]| KernelInfo { ctas: 10, parts: parts.to_vec(), ..KernelInfo::default() };
        let defect = |parts: &[u32]| CtaDistribution::Program.defect(&kernel(parts), LaunchDevices::All, SHAPE);
        assert_eq!((defect(&[]), defect(&[0, 10])), (None, None));
        assert!(defect(&[0, 3, 6]).expect("three for two").contains("for 3 devices"));
        assert!(defect(&[1, 3]).expect("not from 0").contains("do not ascend"));
        assert_eq!(CtaDistribution::Contiguous.defect(&kernel(&[0, 3, 6]), LaunchDevices::All, SHAPE), None);
    }
}
