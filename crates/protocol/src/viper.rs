//! VIPER for the chiplets of a GPU (CPElide, sections II-B and IV-C): L2 caches that write back and that only software keeps
//! coherent. Memory, with the L3 beside it, is where modules meet; each L2 is below it, that of a line's home too.
//!
//! | | `remote = "memory"` (the paper's text) | `remote = "cached"` (its public simulator) |
//! | --- | --- | --- |
//! | an L2 holds | lines of its own module | what its SMs touch |
//! | a read of another module's line | at the home's memory; leaves nothing in any L2 | own L2; then the home's L2 where it has all its bytes; then memory |
//! | a store to it | through to the home's memory; the home's L2 keeps what it has | stays in the own L2; written back through the home's L2, whose clean bytes take it over and whose dirty ones stay |
//! | an atomic | at the home's memory; the own L2 sends the line's dirty bytes ahead and drops it | the same; the home's L2 drops its clean bytes of it |
//!
//! - Loads beyond `.cta` are answered by memory, behind the line's own dirty bytes; stores beyond it go through. Atomics
//!   of every scope act at memory: the paper says so of device scope, and one place is enough.
//! - Acquire: the L1 and the own L2, which drops its clean bytes and keeps its dirty ones. Release: the own L2 writes all its
//!   dirty bytes to memory, keeps them clean, and waits until memory has taken them and every store that went through. A
//!   flush leaves valid exactly the bytes that were valid.
//! - A kernel's boundary: the same of all L2s, the release at its end and the acquire at the next launch.
//! - All modules are alike, whichever GPU they are of: the paper has one GPU.

use crate::coherence::OrderingPoint;
use crate::elision::Holds;
use crate::plan::{Action, Members, Phase, Sync};
use crate::software_flat::flat_acquire;
use crate::topology::Class;
use crate::vi::{BulkInvalidation, Choice, Options, Remote, Rules, Vi, WritePolicy};
use tombolo_types::{Promise, Scope};

/// The rules of VIPER.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ViperRules;

/// VIPER.
pub type Viper<const BREAKABLE: bool = true> = Vi<ViperRules, BREAKABLE>;

impl Rules for ViperRules {
    const HIERARCHICAL: bool = false;
    const DIRECTORY: bool = false;
    const PROMISE: Promise = Promise::Ptx;
    const ABOUT: &'static str =
        "L2 caches below memory, flushed and invalidated by software. Source: CPElide, section IV-C.";
    const CHOICES: &'static [Choice] = &[Choice::Remote, Choice::WriteBack];

    fn caches(class: Class, options: &Options) -> bool {
        match options.remote {
            Remote::Memory => class == Class::Own,
            Remote::Cached => true,
        }
    }

    fn passes_reads(options: &Options) -> bool {
        options.remote == Remote::Memory
    }

    fn ordering_point(options: &Options) -> OrderingPoint {
        OrderingPoint::Memory { by_home_l2: options.remote == Remote::Cached }
    }

    fn holds(options: &Options) -> Holds {
        match options.remote {
            Remote::Memory => Holds::Own,
            Remote::Cached => Holds::All,
        }
    }

    fn acquire(sync: Sync, _: BulkInvalidation) -> &'static [Phase] {
        flat_acquire(sync, BulkInvalidation::All)
    }

    fn release(sync: Sync, _: WritePolicy) -> &'static [Phase] {
        const OWN: Phase = Phase::new(Members::Own, Action::Flush);
        const ALL: Phase = Phase::new(Members::All, Action::Flush);
        match sync {
            Sync::Thread(Scope::Cta) => &[],
            Sync::Thread(Scope::Gpu | Scope::Sys) => &[OWN],
            Sync::Kernel => &[ALL],
        }
    }
}
