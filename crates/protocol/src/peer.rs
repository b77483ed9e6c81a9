//! GPUs that reach each other's memory and keep to themselves what is theirs: L2 caches beside memory whose `.gpu`
//! synchronisation stays inside the GPU (GPS, section 2.1: conventional GPUs with peer access).
//!
//! - As under [`crate::memory_side`] an L2 holds only lines of its own module's memory, and is never stale. L1s may hold any
//!   line; software keeps these coherent.
//! - Requests go by the GPU home, in the order of their lines: what one thread of a GPU has sent there another of it finds,
//!   wherever the line's memory is.
//! - Acquire: the L1 only. Release `.gpu`: waits until the GPU homes have every store of the module; what has left the GPU
//!   is not waited for. Release `.sys`: waits until the system homes have taken the stores of the whole GPU, for it is
//!   cumulative: another thread's `.gpu` release stopped at the GPU home.

use crate::elision::Holds;
use crate::memory_side::MemorySideRules;
use crate::plan::{Phase, Sync};
use crate::software_hierarchical::hierarchical_release;
use crate::topology::Class;
use crate::vi::{BulkInvalidation, Choice, Options, Rules, Vi, WritePolicy};
use tombolo_types::Promise;

/// The rules of GPUs with peer access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PeerRules;

/// GPUs with peer access.
pub type Peer<const BREAKABLE: bool = true> = Vi<PeerRules, BREAKABLE>;

impl Rules for PeerRules {
    const HIERARCHICAL: bool = true;
    const DIRECTORY: bool = false;
    const PROMISE: Promise = Promise::Ptx;
    const ABOUT: &'static str = "An L2 caches its own module's memory; .gpu synchronisation stays inside the GPU. Source: \
                                 GPS, section 2.1.";
    const CHOICES: &'static [Choice] = &[Choice::WriteBack];

    fn caches(class: Class, options: &Options) -> bool {
        MemorySideRules::caches(class, options)
    }

    fn passes_reads(options: &Options) -> bool {
        MemorySideRules::passes_reads(options)
    }

    fn holds(options: &Options) -> Holds {
        MemorySideRules::holds(options)
    }

    fn acquire(sync: Sync, bulk: BulkInvalidation) -> &'static [Phase] {
        MemorySideRules::acquire(sync, bulk)
    }

    fn release(sync: Sync, write: WritePolicy) -> &'static [Phase] {
        hierarchical_release(sync, write)
    }
}
