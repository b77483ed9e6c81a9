//! The design: a memory system as one option on each axis. The options that exist are the enums below;
//! adding one is one variant, and a rule in [`DesignConfig`]'s checks where it does not fit everything.

use crate::check::Conflict;
use crate::description::{Described, NO_DESCRIPTION};
use crate::error::ConfigError;
use crate::preset::{DESIGNS, Preset};
use crate::quantity::{Plain, Quantity, choice};
use crate::section::{Key, Reader, Section, names, section};
use crate::tree::Table;
use tombolo_types::{Clock, Promise};

choice! {
    /// Who keeps caches coherent, and how.
    pub enum Coherence {
        /// Data of another GPU is cached in no L2 of the requesting GPU. Source: HMG, baseline of figure 8.
        NoRemoteCaching = "no-remote-caching",
        /// An L2 caches its own module's memory, for everybody, and nothing else. Source: NUMA-GPU, figure 7a.
        MemorySide = "memory-side",
        /// Bulk invalidation between an SM and the system home, every module alike. Source: HMG, section VI.
        SoftwareFlat = "software-flat",
        /// Bulk invalidation between an SM and the home of the scope. Source: HMG, section VI.
        SoftwareHierarchical = "software-hierarchical",
        /// A flat directory at the system home. Source: HMG, section IV.
        Nhcc = "nhcc",
        /// Directories at GPU homes and system homes. Source: HMG, section V.
        Hmg = "hmg",
        /// Hierarchical routing, L2 caches that nothing invalidates. Source: HMG, section VI.
        Ideal = "ideal",
    }
}

choice! {
    /// Who removes needless synchronisation at kernel boundaries.
    pub enum Elision {
        /// Nobody.
        None = "none",
    }
}

choice! {
    /// When a cache passes a store on.
    pub enum WritePolicy {
        /// At once; its lines stay clean.
        Through = "through",
        /// On eviction or release; its lines may be dirty.
        Back = "back",
    }
}

choice! {
    /// How an L2's ways are shared between data of its own module and of others.
    pub enum L2Capacity {
        /// One LRU order for all.
        Shared = "shared",
        /// Half of the ways to each. Source: NUMA-GPU, figure 7b.
        StaticHalves = "static-halves",
        /// Shifted, in L1 caches too, by whether memory or the link is saturated. Source: NUMA-GPU, figure 7d.
        NumaAware = "numa-aware",
    }
}

choice! {
    /// Which module a page's memory is on.
    pub enum Placement {
        /// That of the first SM to touch it. Source: HMG, section VI.
        FirstTouch = "first-touch",
        /// Lines round robin over all modules; with a directory, the regions of its entries.
        InterleavedLine = "interleaved-line",
        /// Pages round robin over all modules.
        InterleavedPage = "interleaved-page",
    }
}

choice! {
    /// Which module runs a CTA.
    pub enum CtaScheduling {
        /// Each module a block of neighbouring CTAs. Source: HMG, section VI.
        Contiguous = "contiguous",
        /// CTA by CTA over all modules. Source: NUMA-GPU, section 3.
        Interleaved = "interleaved",
    }
}

choice! {
    /// What the links between modules and GPUs can do.
    pub enum Links {
        /// The machine's rate each way.
        Static = "static",
        /// Lanes between GPUs and their switch turn toward the way that is saturated. Source: NUMA-GPU, section 4.
        Turning = "turning",
        /// No limit of rate; latencies stay.
        Infinite = "infinite",
    }
}

choice! {
    /// Which lines of an L2 a software bulk invalidation drops.
    pub enum Invalidate {
        /// All of them.
        All = "all",
        /// Those homed elsewhere.
        Remote = "remote",
        /// None of them, nor is anything released: an upper bound that promises nothing. Source: NUMA-GPU, figure 9.
        None = "none",
    }
}

/// The promises of a design: at least one, none twice; `nothing` stands alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Promises(Vec<Promise>);

impl Promises {
    /// Whether `promise` is among them.
    pub fn contains(&self, promise: Promise) -> bool {
        self.0.contains(&promise)
    }

    /// The most that is promised.
    pub fn strongest(&self) -> Promise {
        self.iter().max().unwrap_or(Promise::Nothing)
    }

    /// All, in the order of the file.
    pub fn iter(&self) -> impl Iterator<Item = Promise> + '_ {
        self.0.iter().copied()
    }
}

impl Quantity for Promises {
    const EXPECTED: &'static str = "a list of \"ptx\" and \"kernel-boundary\", each at most once, or of \"nothing\" alone (--set promises=ptx,kernel-boundary)";

    fn parse(text: &str, _: Clock) -> Option<Promises> {
        let words = text.split(',').map(|word| Promise::of(word.trim()));
        let promises = words.collect::<Option<Vec<Promise>>>()?;
        let repeated = promises.iter().enumerate().any(|(at, promise)| promises[..at].contains(promise));
        let contradictory = promises.len() > 1 && promises.contains(&Promise::Nothing);
        (!repeated && !contradictory).then_some(Promises(promises))
    }

    fn print(&self) -> Plain {
        Plain::List(self.0.iter().map(|promise| promise.word()).collect())
    }
}

/// Cycles between two samples of NUMA-aware capacity. Source: NUMA-GPU, section 5.1: a 5K cycles period.
const SAMPLE_CYCLES: u32 = 5_000;

section! {
    /// A memory system, checked.
    pub struct DesignConfig {
        /// Name of the preset, or of the user's file.
        name: String,
        /// One line for lists.
        description: String = NO_DESCRIPTION.to_owned(),
        /// Who keeps caches coherent.
        coherence: Coherence,
        /// Who removes needless synchronisation at kernel boundaries.
        elision: Elision,
        /// When an L1 passes a store on.
        l1_write: WritePolicy,
        /// When an L2 passes a store on.
        l2_write: WritePolicy,
        /// How an L2's ways are shared.
        l2_capacity: L2Capacity,
        /// Which module a page's memory is on.
        placement: Placement,
        /// Which module runs a CTA.
        cta_scheduling: CtaScheduling,
        /// What the links can do.
        links: Links,
        /// Turning links: cycles of the SM clock between two looks at a link. Source of the default: NUMA-GPU,
        /// section 4.1.
        sample_time: u32 = 5000,
        /// Turning links: cycles of the SM clock that a lane takes to turn once its packets have drained. Source of
        /// the default: NUMA-GPU, section 4.1.
        switch_time: u32 = 100,
        /// What a program may rely on.
        promises: Promises,
        /// Software coherence: which lines of an L2 a bulk invalidation drops.
        invalidate: Invalidate = Invalidate::All,
        /// NUMA-aware capacity: cycles of the SM clock between two samples.
        partition_sample: u32 = SAMPLE_CYCLES,
        /// NUMA-aware capacity: whether each kernel starts with half of the ways to each.
        partition_reset: bool = true,
        /// Directory coherence: whether an L2 tells the home when it evicts the last clean line of a region.
        downgrade: bool = false,
        /// Ideal coherence: whether L1 caches obey acquires as under HMG. Always so in other designs.
        l1_coherent: bool = true,
    }
}

impl Coherence {
    /// Whether homes keep a directory of sharers.
    pub fn has_directory(self) -> bool {
        matches!(self, Coherence::Nhcc | Coherence::Hmg)
    }

    /// Whether an acquire may invalidate an L2 in bulk.
    pub fn has_bulk_invalidation(self) -> bool {
        matches!(self, Coherence::NoRemoteCaching | Coherence::SoftwareFlat | Coherence::SoftwareHierarchical)
    }
}

impl L2Capacity {
    /// What of its settings has no meaning beside the rest of a design.
    fn conflict(self, design: &DesignConfig) -> Option<(&'static str, String)> {
        let (coherence, capacity) = (design.coherence.word(), self.word());
        let sampled = design.partition_sample != SAMPLE_CYCLES;
        let unused = |key| {
            let reason = format!("{capacity} capacity samples nothing and shifts nothing; only \"numa-aware\" does");
            Some((key, reason))
        };
        match (self, design.coherence) {
            (L2Capacity::StaticHalves | L2Capacity::NumaAware, Coherence::MemorySide | Coherence::NoRemoteCaching) => {
                let reason = format!("{coherence} keeps no remote data in L2 caches to share them with");
                Some(("l2_capacity", reason))
            }
            (L2Capacity::Shared | L2Capacity::StaticHalves, _) if sampled => unused("partition_sample"),
            (L2Capacity::Shared | L2Capacity::StaticHalves, _) if !design.partition_reset => unused("partition_reset"),
            _ => None,
        }
    }
}

impl DesignConfig {
    /// The first combination that makes no sense, with the reason.
    fn conflict(&self) -> Option<Conflict> {
        let coherence = self.coherence.word();
        let rules = [
            (
                self.l1_write == WritePolicy::Back,
                "l1_write",
                "an L1 that keeps dirty bytes would hide them from its own module; only \"through\" is allowed".into(),
            ),
            (
                self.l2_write == WritePolicy::Back && self.coherence == Coherence::Ideal,
                "l2_write",
                "the ideal is HMG's caches without their coherence, and those write through; any other coherence \
                 may write \"back\""
                    .into(),
            ),
            (
                self.downgrade && !self.coherence.has_directory(),
                "downgrade",
                format!("{coherence} has no directory to remove a sharer from; it needs nhcc or hmg"),
            ),
            (
                self.invalidate != Invalidate::All && !self.coherence.has_bulk_invalidation(),
                "invalidate",
                format!("{coherence} never invalidates an L2 in bulk; only software coherence does"),
            ),
            (
                !self.l1_coherent && self.coherence != Coherence::Ideal,
                "l1_coherent",
                format!("{coherence} is a coherence protocol; only ideal may leave its L1 caches incoherent"),
            ),
            (
                self.coherence == Coherence::Ideal && !self.promises.contains(Promise::Nothing),
                "promises",
                "ideal caches are never invalidated; it can promise \"nothing\"".into(),
            ),
            (
                self.invalidate == Invalidate::None && !self.promises.contains(Promise::Nothing),
                "promises",
                "L2 caches that ignore bulk invalidations keep stale lines; it can promise \"nothing\"".into(),
            ),
        ];
        let broken = rules.into_iter().find(|(broken, ..)| *broken).map(|(_, key, reason)| (key, reason));
        broken.or_else(|| self.l2_capacity.conflict(self)).map(|(key, reason)| Conflict { key, reason })
    }
}

impl Described for DesignConfig {
    const KIND: &'static str = "design";

    fn sections() -> Vec<(&'static str, &'static [Key])> {
        vec![("", <DesignConfig as Section>::KEYS)]
    }

    fn presets() -> &'static [Preset] {
        DESIGNS
    }

    fn read(tree: &Table) -> Result<DesignConfig, ConfigError> {
        // No key of a design is a time.
        let reader = Reader { table: tree, section: "", clock: Clock::from_hz(1_000_000_000) };
        reader.refuse_unknown(&names(<DesignConfig as Section>::KEYS))?;
        let design = <DesignConfig as Section>::read(&reader)?;
        design.conflict().map_or(Ok(design), |conflict| Err(conflict.at(tree)))
    }
}
