//! GPUs with peer access to each other's memory and private L2 contents: L2 caches next to memory, whose `.gpu`
//! synchronisation stays inside the GPU (GPS, section 2.1: conventional GPUs with peer access).
//!
//! - As under [`crate::memory_side`], an L2 holds only lines from its own module's memory, and is never stale. L1s
//!   may hold any line; software keeps them coherent.
//! - Requests route through the GPU home, in order per line: data sent there by a GPU's thread is visible to the
//!   GPU's remaining threads, wherever the line's memory is.
//! - Acquire: the L1 only. Release `.gpu`: waits until the GPU homes have accepted every store from the module;
//!   stores that have left the GPU are not awaited. Release `.sys`: waits until the system homes have accepted the
//!   whole GPU's stores. The release is cumulative, because another thread's `.gpu` release stopped at the GPU
//!   home.

use crate::elision::RetainedLines;
use crate::memory_side::MemorySideRules;
use crate::plan::{Phase, Sync};
use crate::software_hierarchical::hierarchical_release;
use crate::topology::Class;
use crate::vi::{Choice, ProtocolOptions, Rules, Vi};
use tombolo_types::Promise;

/// The rules for GPUs with peer access.
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

    fn caches(class: Class, options: &ProtocolOptions) -> bool {
        MemorySideRules::caches(class, options)
    }

    fn passes_reads(options: &ProtocolOptions) -> bool {
        MemorySideRules::passes_reads(options)
    }

    fn holds(options: &ProtocolOptions) -> RetainedLines {
        MemorySideRules::holds(options)
    }

    fn acquire(sync: Sync, options: &ProtocolOptions) -> &'static [Phase] {
        MemorySideRules::acquire(sync, options)
    }

    fn release(sync: Sync, options: &ProtocolOptions) -> &'static [Phase] {
        hierarchical_release(sync, options.write)
    }
}
