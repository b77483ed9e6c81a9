//! L2 caches on the memory's side (NUMA-GPU, Table 1 and Figure 7a): the baseline of that paper.
//!
//! - An L2 holds only lines of its own module's memory, whoever asks for them. It is never stale, so nothing is
//!   invalidated in it and nothing need be written back from it, at an acquire or at a kernel's boundary.
//! - Loads of other modules' lines go straight to the system home. L1s may hold any line; software keeps these
//!   coherent.
//! - Acquire: a load that comes after it may not share the answer to one that was sent before: misses on their way
//!   to other modules become stale. Release: waits until the homes have taken every store of the module.

use crate::coherence::{Promise, Sync};
use crate::plan::{Action, Members, Phase};
use crate::software_flat::flat_release;
use crate::topology::{Class, ClassSet};
use crate::vi::{BulkInvalidation, Rules, Vi};
use tombolo_types::Scope;

/// The rules of L2 caches beside memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MemorySideRules;

/// L2 caches beside memory.
pub type MemorySide = Vi<MemorySideRules>;

impl Rules for MemorySideRules {
    const HIERARCHICAL: bool = false;
    const DIRECTORY: bool = false;
    const PROMISE: Promise = Promise::Ptx;

    fn caches(class: Class) -> bool {
        match class {
            Class::Own => true,
            Class::GpuHome | Class::GpuRemote | Class::SystemRemote => false,
        }
    }

    fn acquire(sync: Sync, _: BulkInvalidation) -> &'static [Phase] {
        // No line is of these classes: only misses on their way are.
        const OWN: [Phase; 1] = [Phase::new(Members::Own, Action::Invalidate(ClassSet::NOT_OWN))];
        match sync {
            Sync::Thread(Scope::Gpu | Scope::Sys) => &OWN,
            // Between kernels nothing is on its way.
            Sync::Thread(Scope::Cta) | Sync::Kernel => &[],
        }
    }

    fn release(sync: Sync) -> &'static [Phase] {
        flat_release(sync)
    }
}
