//! Memory-side L2 caches (NUMA-GPU, Table 1 and Figure 7a): the baseline in that paper.
//!
//! - An L2 holds only lines from its own module's memory, for any requester. It is never stale, so an acquire or a
//!   kernel boundary neither invalidates the L2 nor forces a write-back from it.
//! - Loads from other modules' lines bypass the local L2 and are answered by the L2 next to the line's memory: two
//!   loads from the same line cross the link twice. L1s may hold any line; software keeps them coherent.
//! - Acquire: the L1 only. Release: waits until the homes have accepted every store from the module.

use crate::elision::RetainedLines;
use crate::plan::{Phase, Sync};
use crate::software_flat::flat_release;
use crate::topology::Class;
use crate::vi::{Choice, ProtocolOptions, Rules, Vi};
use tombolo_types::Promise;

/// The rules for memory-side L2 caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MemorySideRules;

/// Memory-side L2 caches, next to their module's memory.
pub type MemorySide<const BREAKABLE: bool = true> = Vi<MemorySideRules, BREAKABLE>;

impl Rules for MemorySideRules {
    const HIERARCHICAL: bool = false;
    const DIRECTORY: bool = false;
    const PROMISE: Promise = Promise::Ptx;
    const ABOUT: &'static str =
        "An L2 caches its own module's memory, for everybody, and nothing else. Source: NUMA-GPU, figure 7a.";
    const CHOICES: &'static [Choice] = &[Choice::WriteBack];

    fn caches(class: Class, _: &ProtocolOptions) -> bool {
        match class {
            Class::Own => true,
            Class::GpuHome | Class::GpuRemote | Class::SystemRemote => false,
        }
    }

    fn passes_reads(_: &ProtocolOptions) -> bool {
        true
    }

    fn holds(_: &ProtocolOptions) -> RetainedLines {
        RetainedLines::Nothing
    }

    fn acquire(_: Sync, _: &ProtocolOptions) -> &'static [Phase] {
        &[]
    }

    fn release(sync: Sync, _: &ProtocolOptions) -> &'static [Phase] {
        flat_release(sync)
    }
}
