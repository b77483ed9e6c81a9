//! Coherence axis: the protocol from the catalogue, with its user-selectable options.

use crate::DesignConfig;
use crate::axis::DesignAxis;
use std::hash::{Hash, Hasher};
use tombolo_machine::quantity::{Quantity, RecordValue};
use tombolo_machine::section::Reader;
use tombolo_machine::spelling::OptionInfo;
use tombolo_machine::{ConfigError, Conflict, Key, choice};
use tombolo_protocol::catalogue::{self, PROTOCOLS};
use tombolo_protocol::nmoesi::{self, NmoesiOptions};
use tombolo_protocol::options::{self, BulkInvalidation, Choice, ProtocolFacts};

choice! {
    /// The L2 lines dropped by a software bulk invalidation.
    pub enum Invalidate {
        /// All of them.
        All = "all",
        /// Lines homed elsewhere.
        Remote = "remote",
        /// No lines, and nothing is released either: an upper bound without any promise. Source: NUMA-GPU,
        /// figure 9.
        None = "none",
    }
}

choice! {
    /// The place for reads and writes to remote modules' lines, if memory is the ordering point.
    pub enum Remote {
        /// At their home's memory, bypassing every L2. Source: CPElide, section V: remote reads are not cached.
        Memory = "memory",
        /// In the own L2, then in the home's. Source: CPElide's public simulator.
        Cached = "cached",
    }
}

choice! {
    /// The treatment applied to bytes written by a kernel to host-memory blocks.
    pub enum KernelEnd {
        /// The next launch merges blocks shared by several GPUs; host code synchronises block by block. Source:
        /// UMH, 4.2.1.
        MergeShared = "merge-shared",
        /// The kernel's end writes them all back. Source: UMH, section 4.2, figure 6a.
        FlushAll = "flush-all",
    }
}

/// The coherence protocol, together with its user-selectable options.
#[derive(Clone, Copy, Debug)]
pub struct Coherence {
    protocol: &'static str,
    facts: &'static ProtocolFacts,
    /// The lines dropped from an L2 by a bulk invalidation.
    pub invalidate: Invalidate,
    /// Set when an L2 notifies the home after evicting the last clean line in a region.
    pub downgrade: bool,
    /// Set when L1 caches obey acquires.
    pub l1_coherent: bool,
    /// The place for reads and writes to remote modules' lines.
    pub remote: Remote,
    /// Set when an owner sends a block directly to the requesting client, bypassing its home.
    pub peer_transfer: bool,
    /// Set when clean blocks are evicted without a message to their home.
    pub silent_eviction: bool,
    /// The treatment of bytes written by a kernel.
    pub kernel_end: KernelEnd,
}

impl PartialEq for Coherence {
    fn eq(&self, other: &Coherence) -> bool {
        self.written() == other.written()
    }
}

impl Eq for Coherence {}

impl Hash for Coherence {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.protocol, self.invalidate, self.downgrade, self.l1_coherent, self.remote).hash(state);
        (self.peer_transfer, self.silent_eviction, self.kernel_end).hash(state);
    }
}

/// The keys for all protocols, each with its related protocol choice.
const KEYS: [(Choice, Key); 7] = [
    (
        Choice::BulkInvalidation,
        Key::optional::<Invalidate>("invalidate", "Which lines of an L2 a bulk invalidation drops.", || {
            Some(Invalidate::All.print())
        }),
    ),
    (
        Choice::Downgrade,
        Key::optional::<bool>(
            "downgrade",
            "Whether an L2 tells the home when it evicts the last clean line of a region.",
            || Some(false.print()),
        ),
    ),
    (
        Choice::KeepL1,
        Key::optional::<bool>("l1_coherent", "Whether L1 caches obey acquires as under HMG.", || Some(true.print())),
    ),
    (
        Choice::Remote,
        Key::optional::<Remote>(
            "remote",
            "Where lines of other modules are read and written: at their home's memory, or in L2 caches.",
            || Some(Remote::Memory.print()),
        ),
    ),
    (
        Choice::PeerTransfer,
        Key::optional::<bool>(
            "peer_transfer",
            "Whether an owner sends a block to the GPU or host that asked for it, past its home.",
            || Some(true.print()),
        ),
    ),
    (
        Choice::SilentEviction,
        Key::optional::<bool>("silent_eviction", "Whether clean blocks leave without a word to their home.", || {
            Some(true.print())
        }),
    ),
    (
        Choice::KernelEnd,
        Key::optional::<KernelEnd>(
            "kernel_end",
            "What becomes of what a kernel wrote: the next launch merges what GPUs share, or all is written back.",
            || Some(KernelEnd::MergeShared.print()),
        ),
    ),
];

fn keys_of(facts: &ProtocolFacts) -> impl Iterator<Item = &'static str> {
    KEYS.iter().filter(|(choice, _)| facts.offers(*choice)).map(|(_, key)| key.name)
}

impl Coherence {
    /// The protocol's name in the catalogue.
    pub fn protocol(&self) -> &'static str {
        self.protocol
    }

    /// Static facts about the protocol.
    pub fn facts(&self) -> &'static ProtocolFacts {
        self.facts
    }

    /// The reason for which the protocol cannot promise more.
    pub(crate) fn weakness(&self) -> String {
        if self.invalidate == Invalidate::None {
            return "L2 caches that ignore bulk invalidations keep stale lines".to_owned();
        }
        format!("{} gives no stronger guarantee", self.protocol)
    }

    /// The bulk invalidation option in the protocol crate that corresponds to this key.
    pub(crate) fn bulk(&self) -> BulkInvalidation {
        match self.invalidate {
            Invalidate::All => BulkInvalidation::All,
            Invalidate::Remote => BulkInvalidation::Remote,
            Invalidate::None => BulkInvalidation::None,
        }
    }

    /// The corresponding option in the protocol crate for accesses to other modules' lines.
    pub(crate) fn remote(&self) -> options::Remote {
        match self.remote {
            Remote::Memory => options::Remote::Memory,
            Remote::Cached => options::Remote::Cached,
        }
    }

    /// The corresponding NMOESI options in the protocol crate.
    pub(crate) fn nmoesi(&self) -> NmoesiOptions {
        let kernel_end = match self.kernel_end {
            KernelEnd::MergeShared => nmoesi::KernelEnd::MergeShared,
            KernelEnd::FlushAll => nmoesi::KernelEnd::FlushAll,
        };
        let Coherence { peer_transfer, silent_eviction, .. } = *self;
        NmoesiOptions { peer_transfer, silent_eviction, kernel_end, broken: None }
    }

    fn value(&self, key: &str) -> RecordValue {
        match key {
            "invalidate" => self.invalidate.print(),
            "downgrade" => self.downgrade.print(),
            "l1_coherent" => self.l1_coherent.print(),
            "remote" => self.remote.print(),
            "peer_transfer" => self.peer_transfer.print(),
            "silent_eviction" => self.silent_eviction.print(),
            "kernel_end" => self.kernel_end.print(),
            other => panic!("coherence has no key {other}"),
        }
    }
}

impl DesignAxis for Coherence {
    fn options() -> Vec<OptionInfo> {
        let option = |(word, facts): (&&'static str, &ProtocolFacts)| OptionInfo {
            word,
            about: facts.about,
            keys: keys_of(facts).collect(),
        };
        PROTOCOLS.iter().zip(catalogue::FACTS).map(option).collect()
    }

    fn keys() -> Vec<Key> {
        KEYS.iter().map(|(_, key)| *key).collect()
    }

    fn expected() -> &'static str {
        catalogue::EXPECTED
    }

    fn read(word: &str, reader: &Reader<'_>) -> Result<Option<Coherence>, ConfigError> {
        let Some(protocol) = PROTOCOLS.iter().find(|protocol| **protocol == word) else { return Ok(None) };
        let facts = catalogue::facts(protocol).expect("it is one of the catalogue");
        let coherence = Coherence {
            protocol,
            facts,
            invalidate: reader.get("invalidate", Some(Invalidate::All))?,
            downgrade: reader.get("downgrade", Some(false))?,
            l1_coherent: reader.get("l1_coherent", Some(true))?,
            remote: reader.get("remote", Some(Remote::Memory))?,
            peer_transfer: reader.get("peer_transfer", Some(true))?,
            silent_eviction: reader.get("silent_eviction", Some(true))?,
            kernel_end: reader.get("kernel_end", Some(KernelEnd::MergeShared))?,
        };
        Ok(Some(coherence))
    }

    fn written(&self) -> (&'static str, Vec<(&'static str, RecordValue)>) {
        (self.protocol, keys_of(self.facts).map(|key| (key, self.value(key))).collect())
    }

    fn conflict(&self, _: &'static str, _: &DesignConfig) -> Option<Conflict> {
        None
    }
}
