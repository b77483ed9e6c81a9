//! L2 caches on the memory's side (NUMA-GPU, Table 1 and Figure 7a): the baseline of that paper.
//!
//! - An L2 holds only lines of its own module's memory, whoever asks for them. It is never stale, so nothing is
//!   invalidated in it and nothing need be written back from it, at an acquire or at a kernel's boundary.
//! - Loads of other modules' lines pass this L2 and are answered by the L2 beside the line's memory: two loads of one
//!   line cross twice. L1s may hold any line; software keeps these coherent.
//! - Acquire: the L1 only. Release: waits until the homes have taken every store of the module.

use crate::elision::Holds;
use crate::plan::{Phase, Sync};
use crate::software_flat::flat_release;
use crate::topology::Class;
use crate::vi::{BulkInvalidation, Choice, Options, Rules, Vi, WritePolicy};
use tombolo_types::Promise;

/// The rules of L2 caches beside memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MemorySideRules;

/// L2 caches beside memory.
pub type MemorySide<const BREAKABLE: bool = true> = Vi<MemorySideRules, BREAKABLE>;

impl Rules for MemorySideRules {
    const HIERARCHICAL: bool = false;
    const DIRECTORY: bool = false;
    const PROMISE: Promise = Promise::Ptx;
    const ABOUT: &'static str =
        "An L2 caches its own module's memory, for everybody, and nothing else. Source: NUMA-GPU, figure 7a.";
    const CHOICES: &'static [Choice] = &[Choice::WriteBack];

    fn caches(class: Class, _: &Options) -> bool {
        match class {
            Class::Own => true,
            Class::GpuHome | Class::GpuRemote | Class::SystemRemote => false,
        }
    }

    fn passes_reads(_: &Options) -> bool {
        true
    }

    fn holds(_: &Options) -> Holds {
        Holds::Nothing
    }

    fn acquire(_: Sync, _: BulkInvalidation) -> &'static [Phase] {
        &[]
    }

    fn release(sync: Sync, _: WritePolicy) -> &'static [Phase] {
        flat_release(sync)
    }
}
