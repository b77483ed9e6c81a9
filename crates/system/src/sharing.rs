//! What the modules of a GPU load from other GPUs in common: a pass over a program's streams and the placement of
//! its pages, without simulating. Source: HMG, figure 3.
//!
//! Counted are line transactions as they leave the coalescers: no cache is in front, so that the answer is the
//! program's and the placement's alone.

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use tombolo_design::DesignConfig;
use tombolo_machine::MachineConfig;
use tombolo_model::page_table::PageTable;
use tombolo_types::stream::{Accesses, Command, CtaStream, Op, Program, StreamError};
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
    let modules = machine.topology.modules() as u32;
    let mut stream = CtaStream::default();
    let mut tally = Tally { machine, pages, record: SharingRecord::default(), uses: FxHashMap::default() };
    for command in program.commands() {
        let Command::Launch { kernel, .. } = *command else { continue };
        let ctas = program.kernels()[kernel as usize].ctas;
        for module in 0..modules {
            let (first, step, end) = design.scheduling.cut().of(ctas, module, modules);
            for cta in (first..end).step_by(step as usize) {
                program.cta(kernel, cta, &mut stream)?;
                tally.cta(ModuleId(module as u8), &stream);
            }
        }
    }
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

impl Tally<'_> {
    fn cta(&mut self, module: ModuleId, stream: &CtaStream) {
        for op in &stream.ops {
            match *op {
                Op::Load { accesses, .. } => self.touch(module, stream, accesses, true),
                Op::Store { accesses, .. } | Op::Atomic { accesses, .. } => {
                    self.touch(module, stream, accesses, false);
                }
                Op::WaitUntil { access, .. } => {
                    self.touch(module, stream, Accesses { start: access, len: 1 }, true);
                }
                Op::Compute { .. }
                | Op::Fence { .. }
                | Op::Shared { .. }
                | Op::Barrier
                | Op::Use { .. }
                | Op::Signal { .. } => {}
            }
        }
    }

    fn touch(&mut self, module: ModuleId, stream: &CtaStream, accesses: Accesses, load: bool) {
        let topology = &self.machine.topology;
        let gpu = topology.gpu_of(module);
        for access in &stream.accesses[accesses.range()] {
            self.record.loads += u64::from(load);
            if self.pages.home(access.line).is_none_or(|home| topology.gpu_of(home) == gpu) {
                continue;
            }
            let line = self.uses.entry((gpu.0, access.line)).or_default();
            line.loads += u64::from(load);
            line.shared |= line.module.is_some_and(|first| first != module);
            line.module.get_or_insert(module);
        }
    }
}
