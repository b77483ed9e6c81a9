//! Devices on which a kernel runs: the whole machine, some GPUs, or some modules.

use crate::device_set::{DeviceId, DeviceSet, GpuSet, ModuleSet};
use crate::id::{GpuId, ModuleId};

/// Devices used by a launch, selected by `cudaSetDevice` in the host program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LaunchDevices {
    /// The whole machine, treated like a single GPU.
    #[default]
    All,
    /// All modules in these GPUs.
    Gpus(GpuSet),
    /// These modules, numbered over all GPUs: chiplets that programs treat like devices.
    Modules(ModuleSet),
}

/// A module's position among the modules in a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rank {
    /// Number of participating modules before this module.
    pub module: u32,
    /// Total number of these modules.
    pub modules: u32,
}

impl LaunchDevices {
    /// Launch on one GPU.
    pub fn gpu(gpu: GpuId) -> LaunchDevices {
        LaunchDevices::Gpus(GpuSet::only(gpu))
    }

    /// Launch on one module.
    pub fn module(module: ModuleId) -> LaunchDevices {
        LaunchDevices::Modules(ModuleSet::only(module))
    }

    /// True if the launch uses `module` on a machine with `modules_per_gpu` modules per GPU.
    pub fn contains(self, module: ModuleId, modules_per_gpu: u8) -> bool {
        match self {
            LaunchDevices::All => true,
            LaunchDevices::Gpus(gpus) => gpus.contains(GpuId(module.0 / modules_per_gpu)),
            LaunchDevices::Modules(modules) => modules.contains(module),
        }
    }

    /// Rank of `module` in the launch, on a machine with `gpus` GPUs and `modules_per_gpu` modules each; `None` if the
    /// launch does not use it.
    pub fn rank(self, module: ModuleId, gpus: u8, modules_per_gpu: u8) -> Option<Rank> {
        if !self.contains(module, modules_per_gpu) {
            return None;
        }
        let each = u32::from(modules_per_gpu);
        Some(match self {
            LaunchDevices::All => Rank { module: u32::from(module.0), modules: u32::from(gpus) * each },
            LaunchDevices::Gpus(set) => {
                let (gpu, own) = (module.0 / modules_per_gpu, u32::from(module.0 % modules_per_gpu));
                Rank { module: set.before(GpuId(gpu)) * each + own, modules: set.count() * each }
            }
            LaunchDevices::Modules(set) => Rank { module: set.before(module), modules: set.count() },
        })
    }

    /// Reason why a machine with `gpus` GPUs and `modules_per_gpu` modules each lacks these devices, if it does.
    pub fn defect(self, gpus: u8, modules_per_gpu: u8) -> Option<String> {
        match self {
            LaunchDevices::All => None,
            LaunchDevices::Gpus(set) => missing(set, u32::from(gpus)),
            LaunchDevices::Modules(set) => missing(set, u32::from(gpus) * u32::from(modules_per_gpu)),
        }
    }

    /// The GPU, if the launch uses only one GPU on a machine with `gpus` GPUs.
    pub fn single_gpu(self, gpus: u8, modules_per_gpu: u8) -> Option<GpuId> {
        let mut on = (0..gpus).filter(|gpu| {
            (0..modules_per_gpu).any(|own| self.contains(ModuleId(gpu * modules_per_gpu + own), modules_per_gpu))
        });
        let first = on.next()?;
        on.next().is_none().then_some(GpuId(first))
    }
}

/// Reason why a machine with `has` devices cannot run a launch on this set, if it cannot.
fn missing<I: DeviceId, const WORDS: usize>(set: DeviceSet<I, WORDS>, has: u32) -> Option<String> {
    match set.highest().map(I::number) {
        None => Some(format!("on no {}", I::KIND)),
        Some(last) if u32::from(last) >= has => Some(format!("on {} {last} of {has}", I::KIND)),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranks(on: LaunchDevices) -> Vec<Option<(u32, u32)>> {
        (0..6).map(|module| on.rank(ModuleId(module), 3, 2).map(|rank| (rank.module, rank.modules))).collect()
    }

    #[test]
    fn modules_of_a_launch_are_counted_in_order() {
        assert_eq!(ranks(LaunchDevices::All), (0..6).map(|module| Some((module, 6))).collect::<Vec<_>>());
        let outer = LaunchDevices::Gpus(GpuSet::from_bits(0b101));
        assert_eq!(ranks(outer), [Some((0, 4)), Some((1, 4)), None, None, Some((2, 4)), Some((3, 4))]);
        let some = LaunchDevices::Modules(ModuleSet::from_bits(0b10_0010));
        assert_eq!(ranks(some), [None, Some((0, 2)), None, None, None, Some((1, 2))]);
    }

    #[test]
    fn a_launch_on_one_gpu_or_its_modules_has_that_gpu() {
        let single = |on: LaunchDevices| on.single_gpu(3, 2).map(|gpu| gpu.0);
        assert_eq!(single(LaunchDevices::gpu(GpuId(2))), Some(2));
        assert_eq!(single(LaunchDevices::Modules(ModuleSet::from_bits(0b1100))), Some(1));
        assert_eq!(single(LaunchDevices::Modules(ModuleSet::from_bits(0b0110))), None);
        assert_eq!((single(LaunchDevices::All), LaunchDevices::All.single_gpu(1, 2)), (None, Some(GpuId(0))));
    }

    #[test]
    fn devices_that_a_machine_lacks_are_told() {
        assert_eq!(LaunchDevices::gpu(GpuId(3)).defect(3, 2), Some("on GPU 3 of 3".to_owned()));
        assert_eq!(LaunchDevices::module(ModuleId(6)).defect(3, 2), Some("on module 6 of 6".to_owned()));
        assert_eq!(LaunchDevices::Gpus(GpuSet::from_bits(0)).defect(3, 2), Some("on no GPU".to_owned()));
        assert_eq!(
            [LaunchDevices::All, LaunchDevices::gpu(GpuId(2)), LaunchDevices::module(ModuleId(5))]
                .map(|on| on.defect(3, 2)),
            [None, None, None]
        );
    }
}
