//! VIPER for a GPU's chiplets (CPElide, sections II-B and IV-C): write-back L2 caches kept coherent by software
//! alone. Modules meet at memory, with the L3 next to it; each L2 lies in front of memory, including the L2 at a
//! line's home.
//!
//! | | `remote = "memory"` (the paper's text) | `remote = "cached"` (its public simulator) | `remote = "home"` (a bound) |
//! | --- | --- | --- | --- |
//! | an L2 holds | lines from its own module | lines touched by its SMs | lines from its own module |
//! | a read from another module's line | served by the home's memory; leaves no L2 copy | own L2; then the home's L2 if it has all bytes; then memory | served by the home's L2; leaves no copy in the own L2 |
//! | a store to it | goes through to the home's memory; the home's L2 keeps its copy | stays in the own L2; written back through the home's L2, which updates its clean bytes and keeps its dirty bytes | goes through to the home's L2 |
//! | an atomic | at the home's memory; the own L2 sends the line's dirty bytes ahead and drops it | likewise; the home's L2 also drops its clean bytes | at the home's L2 |
//!
//! - Loads beyond `.cta` are answered by memory, after the line's own dirty bytes; stores beyond `.cta` go through.
//!   Atomics with any scope are performed at memory: the paper states this for device scope, and a single place is
//!   enough.
//! - Acquire: the L1 and the own L2, which drops its clean bytes and keeps its dirty bytes. Release: the own L2
//!   writes all its dirty bytes to memory and keeps them as clean bytes. It waits until memory has accepted this
//!   data and every written-through store. A flush leaves exactly the previously valid bytes valid.
//! - Kernel boundary: the same actions in all L2s, the release at its end and the acquire at the next launch.
//! - With `remote = "home"` a line has a single L2, so that no L2 is ever stale and no boundary needs an operation, but
//!   kernel boundaries act as above. Inside a kernel an acquire drops no L2 line, and a release waits for written-through
//!   stores.
//! - All modules are alike, whatever their GPU: the paper has a single GPU.

use crate::coherence::OrderingPoint;
use crate::elision::RetainedLines;
use crate::plan::{Action, Members, Phase, Sync};
use crate::software_flat::{flat_acquire, flat_release};
use crate::topology::Class;
use crate::vi::{BulkInvalidation, Choice, ProtocolOptions, Remote, Rules, Vi};
use tombolo_types::{Promise, Scope};

/// The rules for VIPER.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ViperRules;

/// The VIPER protocol.
pub type Viper<const BREAKABLE: bool = true> = Vi<ViperRules, BREAKABLE>;

impl Rules for ViperRules {
    const HIERARCHICAL: bool = false;
    const DIRECTORY: bool = false;
    const PROMISE: Promise = Promise::Ptx;
    const ABOUT: &'static str =
        "L2 caches below memory, flushed and invalidated by software. Source: CPElide, section IV-C.";
    const CHOICES: &'static [Choice] = &[Choice::Remote, Choice::WriteBack];

    fn caches(class: Class, options: &ProtocolOptions) -> bool {
        match options.remote {
            Remote::Memory | Remote::Home => class == Class::Own,
            Remote::Cached => true,
        }
    }

    fn passes_reads(options: &ProtocolOptions) -> bool {
        options.remote != Remote::Cached
    }

    fn ordering_point(options: &ProtocolOptions) -> OrderingPoint {
        match options.remote {
            Remote::Memory => OrderingPoint::Memory { by_home_l2: false },
            Remote::Cached => OrderingPoint::Memory { by_home_l2: true },
            Remote::Home => OrderingPoint::HomeL2,
        }
    }

    fn holds(options: &ProtocolOptions) -> RetainedLines {
        match options.remote {
            Remote::Memory => RetainedLines::Own,
            Remote::Cached => RetainedLines::All,
            Remote::Home => RetainedLines::Nothing,
        }
    }

    fn flushes_home(options: &ProtocolOptions) -> bool {
        options.remote == Remote::Home
    }

    fn acquire(sync: Sync, options: &ProtocolOptions) -> &'static [Phase] {
        match (sync, options.remote) {
            (Sync::Thread(_), Remote::Home) => &[],
            (Sync::Thread(_) | Sync::Kernel, _) => flat_acquire(sync, BulkInvalidation::All),
        }
    }

    fn release(sync: Sync, options: &ProtocolOptions) -> &'static [Phase] {
        const OWN: Phase = Phase::new(Members::Own, Action::Flush);
        const ALL: Phase = Phase::new(Members::All, Action::Flush);
        match sync {
            Sync::Thread(_) if options.remote == Remote::Home => flat_release(sync),
            Sync::Thread(Scope::Cta) => &[],
            Sync::Thread(Scope::Gpu | Scope::Sys) => &[OWN],
            Sync::Kernel => &[ALL],
        }
    }
}
