//! Counts loads from remote GPUs that several modules in a GPU have in common. This is a pass over a program's streams
//! and its page placement, without simulation. Source: HMG, figure 3.
//!
//! Line transactions are counted as they leave the coalescers, with no cache in front. The result therefore depends
//! only on the program and the placement.

use crate::survey::{Reader, SurveyedLaunch, Touch, survey, touches};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use tombolo_design::DesignConfig;
use tombolo_design::scheduling::MachineShape;
use tombolo_machine::MachineConfig;
use tombolo_model::front_end::PageTable;
use tombolo_types::stream::{CtaStream, Program, StreamError};
use tombolo_types::{Line, ModuleId};

/// Loads between GPUs, and how many go to lines that another module in the loading GPU also touches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharingRecord {
    /// Loads, counted as line transactions.
    pub loads: u64,
    /// Loads to lines with a home on another GPU.
    pub inter_gpu_loads: u64,
    /// Inter-GPU loads to lines that another module in the loading GPU loads or stores at any time in the program.
    pub inter_gpu_loads_shared: u64,
}

/// Accesses by a GPU to a line on another GPU.
#[derive(Clone, Copy, Default)]
struct RemoteLineUse {
    loads: u64,
    /// First module to touch the line; `shared` is set when a second module touches it.
    module: Option<ModuleId>,
    shared: bool,
}

/// Counts the loads in `program` on `machine`, with pages placed according to `pages`.
///
/// # Errors
/// The recording is damaged.
pub fn inter_gpu_sharing(
    machine: &MachineConfig,
    design: &DesignConfig,
    program: &dyn Program,
    pages: &PageTable,
) -> Result<SharingRecord, StreamError> {
    let mut tally = SharingTally { machine, pages, record: SharingRecord::default(), uses: FxHashMap::default() };
    survey(program, design.scheduling.cut(machine), MachineShape::of(machine), &mut [&mut tally])?;
    let SharingTally { mut record, uses, .. } = tally;
    record.inter_gpu_loads = uses.values().map(|line| line.loads).sum();
    record.inter_gpu_loads_shared = uses.values().filter(|line| line.shared).map(|line| line.loads).sum();
    Ok(record)
}

struct SharingTally<'a> {
    machine: &'a MachineConfig,
    pages: &'a PageTable,
    record: SharingRecord,
    /// Uses by GPU and line; only lines on remote GPUs.
    uses: FxHashMap<(u8, Line), RemoteLineUse>,
}

impl Reader for SharingTally<'_> {
    /// Every launch counts, including repeated launches.
    fn launch(&mut self, _: SurveyedLaunch) -> bool {
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
