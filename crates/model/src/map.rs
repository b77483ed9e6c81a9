//! Where a line lives: its slice, its region, its homes.

use crate::page_table::PageTable;
use std::sync::Arc;
use tombolo_machine::MachineConfig;
use tombolo_protocol::Topology;
use tombolo_types::{GpuId, Line, ModuleId};

/// The homes of all lines of a run. Cheap to clone: the page table is shared.
#[derive(Clone, Debug)]
pub struct Map {
    gpus: u8,
    modules_per_gpu: u8,
    /// 2^16 divided by it, plus one: a module's number times this, over 2^16, is its GPU's, exact below 2^8.
    gpus_per_module: u32,
    slices: u16,
    /// Binary logarithm of the lines of a directory region.
    region_shift: u32,
    pages: Arc<PageTable>,
}

/// Spreads neighbouring numbers over 64 bits. The multiplier is the 64-bit golden ratio, odd.
fn spread(number: u64) -> u64 {
    let mixed = (number ^ number >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ mixed >> 29
}

/// `hash` scaled to `0..count`.
fn scale(hash: u64, count: u64) -> u64 {
    ((u128::from(hash) * u128::from(count)) >> 64) as u64
}

impl Map {
    /// The map of `machine` with pages placed as `pages` says.
    pub fn new(machine: &MachineConfig, pages: Arc<PageTable>) -> Map {
        Map {
            gpus: machine.topology.gpus,
            modules_per_gpu: machine.topology.modules_per_gpu,
            gpus_per_module: (1 << 16) / u32::from(machine.topology.modules_per_gpu) + 1,
            slices: machine.l2.slices,
            region_shift: machine.directory.lines_per_entry.trailing_zeros(),
            pages,
        }
    }

    /// The directory region of a line.
    pub fn region(&self, line: Line) -> u64 {
        line.0 >> self.region_shift
    }

    /// Lines of a region.
    pub fn lines_per_region(&self) -> u64 {
        1 << self.region_shift
    }

    /// The lines of the region that holds `line`.
    pub fn region_lines(&self, line: Line) -> impl Iterator<Item = Line> + use<> {
        let first = self.region(line) << self.region_shift;
        (first..first + self.lines_per_region()).map(Line)
    }

    /// The slice of a module that holds `line`: all lines of a region share one, as their directory entry.
    pub fn slice(&self, line: Line) -> u16 {
        scale(spread(self.region(line)), u64::from(self.slices)) as u16
    }
}

impl Topology for Map {
    fn gpus(&self) -> u8 {
        self.gpus
    }

    fn modules_per_gpu(&self) -> u8 {
        self.modules_per_gpu
    }

    #[inline]
    fn gpu_of(&self, module: ModuleId) -> GpuId {
        GpuId(((u32::from(module.0) * self.gpus_per_module) >> 16) as u8)
    }

    #[inline]
    fn system_home(&self, line: Line) -> ModuleId {
        self.pages.home(line).unwrap_or_else(|| panic!("{line} is on a page that nobody placed"))
    }

    #[inline]
    fn remote_gpu_home(&self, gpu: GpuId, line: Line) -> ModuleId {
        // Hashed apart from the slice, or a GPU home would use only some of its slices.
        let hash = spread(spread(self.region(line)).rotate_left(32));
        ModuleId(gpu.0 * self.modules_per_gpu + scale(hash, u64::from(self.modules_per_gpu)) as u8)
    }
}
