//! Baseline without remote GPUs' data in any L2 (HMG's baseline in Figures 2 and 8).
//!
//! - Loads go from the local L2 to the system home. A line from another GPU never stays in an L2 on this GPU.
//!   Caching between a GPU's modules remains allowed, and software keeps these copies coherent, as on conventional
//!   GPUs. L1s may hold any line.
//! - Acquire and release match flat software coherence.

use crate::elision::RetainedLines;
use crate::plan::{Phase, Sync};
use crate::software_flat::{flat_acquire, flat_release};
use crate::topology::Class;
use crate::vi::{Choice, ProtocolOptions, Rules, Vi};
use tombolo_types::Promise;

/// The rules for the baseline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NoRemoteCachingRules;

/// HMG's baseline.
pub type NoRemoteCaching<const BREAKABLE: bool = true> = Vi<NoRemoteCachingRules, BREAKABLE>;

impl Rules for NoRemoteCachingRules {
    const HIERARCHICAL: bool = false;
    const DIRECTORY: bool = false;
    const PROMISE: Promise = Promise::Ptx;
    const ABOUT: &'static str =
        "Data of another GPU is cached in no L2 of the requesting GPU. Source: HMG, baseline of figure 8.";
    const CHOICES: &'static [Choice] = &[Choice::BulkInvalidation, Choice::WriteBack];

    fn caches(class: Class, _: &ProtocolOptions) -> bool {
        match class {
            Class::Own | Class::GpuRemote => true,
            Class::GpuHome | Class::SystemRemote => false,
        }
    }

    fn holds(_: &ProtocolOptions) -> RetainedLines {
        RetainedLines::All
    }

    fn acquire(sync: Sync, options: &ProtocolOptions) -> &'static [Phase] {
        flat_acquire(sync, options.bulk)
    }

    fn release(sync: Sync, _: &ProtocolOptions) -> &'static [Phase] {
        flat_release(sync)
    }
}
