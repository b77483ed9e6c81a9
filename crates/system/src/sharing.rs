//! What the modules of a GPU load from other GPUs in common: a pass over a program's streams and the placement of
//! its pages, without simulating. Source: HMG, figure 3.
//!
//! Counted are line transactions as they leave the coalescers: no cache is in front, so that the answer is the
//! program's and the placement's alone.

use crate::survey::{Launch, Reader, Touch, survey, touches};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use tombolo_design::DesignConfig;
use tombolo_design::scheduling::Shape;
use tombolo_machine::MachineConfig;
use tombolo_model::page_table::PageTable;
use tombolo_types::stream::{CtaStream, Program, StreamError};
use tombolo_types::{Line, ModuleId};

/// Loads between GPUs, and how many of them are to lines that another module of the loading GPU also touches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharingRecord {
    /// Loads, as line transactions.
    pub loads: u64,
    /// Of these, of lines whose home is on another GPU.
    pub inter_gpu_loads: u64,
    /// Of these, of lines that another module of the loading GPU loads or stores at any time of the program.
    pub inter_gpu_loads_shared: u64,
}

/// What one GPU does with one line of another GPU.
#[derive(Clone, Copy, Default)]
struct Use {
    loads: u64,
    /// The first module to touch it, and whether another has.
    module: Option<ModuleId>,
    shared: bool,
}

/// Counts the loads of `program` on `machine`, its pages placed as `pages`.
///
/// # Errors
/// The recording is damaged.
pub fn inter_gpu_sharing(
    machine: &MachineConfig,
    design: &DesignConfig,
    program: &dyn Program,
    pages: &PageTable,
) -> Result<SharingRecord, StreamError> {
    let mut tally = Tally { machine, pages, record: SharingRecord::default(), uses: FxHashMap::default() };
    survey(program, design.scheduling.cut(), Shape::of(machine), &mut [&mut tally])?;
    let Tally { mut record, uses, .. } = tally;
    record.inter_gpu_loads = uses.values().map(|line| line.loads).sum();
    record.inter_gpu_loads_shared = uses.values().filter(|line| line.shared).map(|line| line.loads).sum();
    Ok(record)
}

struct Tally<'a> {
    machine: &'a MachineConfig,
    pages: &'a PageTable,
    record: SharingRecord,
    /// By GPU and line: lines of other GPUs alone.
    uses: FxHashMap<(u8, Line), Use>,
}

impl Reader for Tally<'_> {
    /// Every launch counts, of whatever kernel.
    fn launch(&mut self, _: Launch) -> bool {
        true
    }

    fn cta(&mut self, module: ModuleId, _: u32, stream: &CtaStream) {
        let topology = &self.machine.topology;
        let gpu = topology.gpu_of(module);
        for (touch, line) in touches(stream) {
            let load = u64::from(touch == Touch::Load);
            self.record.loads += load;
            if self.pages.home(module, line).is_none_or(|home| topology.gpu_of(home) == gpu) {
                continue;
            }
            let line = self.uses.entry((gpu.0, line)).or_default();
            line.loads += load;
            line.shared |= line.module.is_some_and(|first| first != module);
            line.module.get_or_insert(module);
        }
    }
}
