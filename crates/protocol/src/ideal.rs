//! Caching without coherence: HMG's loose upper bound (sections VI and VII).
//!
//! Requests go to the GPU home and on to the system home, as in HMG. L1s behave as in HMG. No directory exists, and no
//! message or acquire invalidates an L2. The design promises no memory model ([`Promise::Nothing`]): the explorer must
//! find executions that the PTX memory model forbids.

use crate::elision::RetainedLines;
use crate::plan::{Phase, Sync};
use crate::software_hierarchical::hierarchical_release;
use crate::topology::Class;
use crate::vi::{Choice, ProtocolOptions, Rules, Vi};
use tombolo_types::Promise;

/// The rules for the ideal design.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct IdealRules;

/// Caching without coherence.
pub type Ideal<const BREAKABLE: bool = true> = Vi<IdealRules, BREAKABLE>;

impl Rules for IdealRules {
    const HIERARCHICAL: bool = true;
    const DIRECTORY: bool = false;
    const PROMISE: Promise = Promise::Nothing;
    const ABOUT: &'static str = "Hierarchical routing, L2 caches that nothing invalidates. Source: HMG, section VI.";
    const CHOICES: &'static [Choice] = &[Choice::L1Coherent];

    fn caches(_: Class, _: &ProtocolOptions) -> bool {
        true
    }

    fn holds(_: &ProtocolOptions) -> RetainedLines {
        RetainedLines::All
    }

    fn acquire(_: Sync, _: &ProtocolOptions) -> &'static [Phase] {
        &[]
    }

    fn release(sync: Sync, options: &ProtocolOptions) -> &'static [Phase] {
        hierarchical_release(sync, options.write)
    }
}
