//! Where a kernel runs.

use crate::id::{GpuId, ModuleId};

/// A set of GPUs or of modules: bit `i` is number `i`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Devices(pub u64);

impl Devices {
    /// Devices that a set can tell apart.
    pub const MOST: u8 = 64;

    /// Only this one.
    ///
    /// # Panics
    /// Where it is beyond [`Devices::MOST`].
    pub fn only(device: u8) -> Devices {
        assert!(device < Devices::MOST, "device {device}, but a set tells {} apart", Devices::MOST);
        Devices(1 << device)
    }

    /// Whether it holds `device`.
    pub fn contains(self, device: u8) -> bool {
        device < Devices::MOST && self.0 >> device & 1 != 0
    }

    /// How many are in it.
    pub fn count(self) -> u32 {
        self.0.count_ones()
    }

    /// Those of it that come before `device`.
    fn before(self, device: u8) -> u32 {
        let below = if device < Devices::MOST { (1 << device) - 1 } else { u64::MAX };
        (self.0 & below).count_ones()
    }

    /// The last of it; `None` where it is empty.
    fn last(self) -> Option<u8> {
        (self.0 != 0).then(|| self.0.ilog2() as u8)
    }
}

/// Where a launch runs: what `cudaSetDevice` says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum On {
    /// On the whole machine, as if it were one GPU.
    #[default]
    All,
    /// On all modules of these GPUs.
    Gpus(Devices),
    /// On these modules, numbered over all GPUs: a chiplet that programs see as a device.
    Modules(Devices),
}

/// A module among those that a launch runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rank {
    /// How many of them come before it.
    pub module: u32,
    /// How many they are.
    pub modules: u32,
}

impl On {
    /// One GPU.
    pub fn gpu(gpu: GpuId) -> On {
        On::Gpus(Devices::only(gpu.0))
    }

    /// One module.
    pub fn module(module: ModuleId) -> On {
        On::Modules(Devices::only(module.0))
    }

    /// Whether it is on `module` of a machine with so many modules a GPU.
    pub fn has(self, module: ModuleId, modules_per_gpu: u8) -> bool {
        match self {
            On::All => true,
            On::Gpus(gpus) => gpus.contains(module.0 / modules_per_gpu),
            On::Modules(modules) => modules.contains(module.0),
        }
    }

    /// Which of its modules `module` is, on a machine of so many GPUs and modules a GPU; `None` where it is not on it.
    pub fn rank(self, module: ModuleId, gpus: u8, modules_per_gpu: u8) -> Option<Rank> {
        if !self.has(module, modules_per_gpu) {
            return None;
        }
        let each = u32::from(modules_per_gpu);
        Some(match self {
            On::All => Rank { module: u32::from(module.0), modules: u32::from(gpus) * each },
            On::Gpus(set) => {
                let (gpu, own) = (module.0 / modules_per_gpu, u32::from(module.0 % modules_per_gpu));
                Rank { module: set.before(gpu) * each + own, modules: set.count() * each }
            }
            On::Modules(set) => Rank { module: set.before(module.0), modules: set.count() },
        })
    }

    /// Why a machine of so many GPUs and modules a GPU has no such place, where it has none.
    pub fn defect(self, gpus: u8, modules_per_gpu: u8) -> Option<String> {
        let (what, set, has) = match self {
            On::All => return None,
            On::Gpus(set) => ("GPU", set, u32::from(gpus)),
            On::Modules(set) => ("module", set, u32::from(gpus) * u32::from(modules_per_gpu)),
        };
        match set.last() {
            None => Some(format!("on no {what}")),
            Some(last) if u32::from(last) >= has => Some(format!("on {what} {last} of {has}")),
            Some(_) => None,
        }
    }

    /// The GPU, where it is on one alone of a machine of so many.
    pub fn single_gpu(self, gpus: u8, modules_per_gpu: u8) -> Option<GpuId> {
        let mut on = (0..gpus).filter(|gpu| {
            (0..modules_per_gpu).any(|own| self.has(ModuleId(gpu * modules_per_gpu + own), modules_per_gpu))
        });
        let first = on.next()?;
        on.next().is_none().then_some(GpuId(first))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranks(on: On) -> Vec<Option<(u32, u32)>> {
        (0..6).map(|module| on.rank(ModuleId(module), 3, 2).map(|rank| (rank.module, rank.modules))).collect()
    }

    #[test]
    fn modules_of_a_launch_are_counted_in_order() {
        assert_eq!(ranks(On::All), (0..6).map(|module| Some((module, 6))).collect::<Vec<_>>());
        let outer = On::Gpus(Devices(0b101));
        assert_eq!(ranks(outer), [Some((0, 4)), Some((1, 4)), None, None, Some((2, 4)), Some((3, 4))]);
        let some = On::Modules(Devices(0b10_0010));
        assert_eq!(ranks(some), [None, Some((0, 2)), None, None, None, Some((1, 2))]);
    }

    #[test]
    fn a_launch_on_one_gpu_or_its_modules_has_that_gpu() {
        let single = |on: On| on.single_gpu(3, 2).map(|gpu| gpu.0);
        assert_eq!(single(On::gpu(GpuId(2))), Some(2));
        assert_eq!(single(On::Modules(Devices(0b1100))), Some(1));
        assert_eq!(single(On::Modules(Devices(0b0110))), None);
        assert_eq!((single(On::All), On::All.single_gpu(1, 2)), (None, Some(GpuId(0))));
    }

    #[test]
    fn devices_that_a_machine_lacks_are_told() {
        assert_eq!(On::gpu(GpuId(3)).defect(3, 2), Some("on GPU 3 of 3".to_owned()));
        assert_eq!(On::module(ModuleId(6)).defect(3, 2), Some("on module 6 of 6".to_owned()));
        assert_eq!(On::Gpus(Devices(0)).defect(3, 2), Some("on no GPU".to_owned()));
        assert_eq!([On::All, On::gpu(GpuId(2)), On::module(ModuleId(5))].map(|on| on.defect(3, 2)), [None, None, None]);
    }
}
