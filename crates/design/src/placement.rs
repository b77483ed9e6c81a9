//! Placement axis: the module whose memory holds a page, and the events that move the page.

use crate::DesignConfig;
use crate::axis::{axis, option};
use crate::subscriptions::ManualSubscriptions;
use tombolo_machine::{Conflict, MachineConfig, choice};
use tombolo_protocol::Class;
use tombolo_protocol::copies::Copies;
use tombolo_protocol::options::Choice;
use tombolo_protocol::paging::{Paging, Start, pages_may_move_under};
use tombolo_protocol::publication::Publication;
use tombolo_types::Promise;

axis! {
    /// Module that holds a page, and events that move it.
    pub enum Placement {
        FirstTouch, InterleavedLine, InterleavedPage, UnifiedMemory, UnifiedMemoryHints, Duplicated, RemoteDemandLoads,
        PublishedPages, PinnedOnHost, CachedInGpus, CopiedFromHost, UnifiedMemoryCuda6
    } refused by conflict
}

option! {
    /// The first touching SM's module. Source: HMG, section VI.
    pub struct FirstTouch = "first-touch" {
        /// Module with a page that several touch first, at one logical time. Source of the default: assumed; no
        /// paper specifies the winner, and a fixed winner would own all shared pages.
        ties: Ties = Ties::Fair,
    }
}

option! {
    /// Lines round robin over all modules; with a directory, regions of its entries.
    pub struct InterleavedLine = "interleaved-line" {}
}

option! {
    /// Pages round robin over all modules.
    pub struct InterleavedPage = "interleaved-page" {}
}

option! {
    /// First toucher's GPU memory; then each later toucher's, moved by a fault. Source: GPS, section 6.
    pub struct UnifiedMemory = "unified-memory" {
        /// Readers get copies of their own until somebody writes. Source: CUDA's read-mostly advice.
        read_mostly: bool = false,
        /// A thrashing page stays in its place for a certain time. Source: NVIDIA's open driver,
        /// uvm_perf_thrashing.c.
        pinning: bool = false,
        /// The host takes part: pages start in host memory, and the host faults as GPUs do. Source: Landaverde et
        /// al., "An Investigation of Unified Memory Access Performance in CUDA", HPEC 2014.
        host: bool = false,
        /// Like `first-touch`.
        ties: Ties = Ties::Fair,
    }
}

option! {
    /// The writing GPU's memory; other GPUs access it remotely, or it moves before a kernel. Source: GPS,
    /// section 6.
    pub struct UnifiedMemoryHints = "unified-memory-hints" {
        /// Pages move before a kernel to their only user or writer.
        prefetch: bool = true,
        /// Like `first-touch`.
        ties: Ties = Ties::Fair,
    }
}

option! {
    /// Every GPU has a full copy of memory, and sends its writes after each kernel. Source: GPS, section 6.
    pub struct Duplicated = "duplicated" {
        /// Data sent.
        copied: CopyContents = CopyContents::Hull,
        /// A GPU sends as soon as its own part of a kernel has ended, while others still run.
        overlap: bool = false,
    }
}

option! {
    /// The latest writer's GPU, as of the previous kernel. Source: GPS, section 6.
    pub struct RemoteDemandLoads = "remote-demand-loads" {
        /// Like `first-touch`.
        ties: Ties = Ties::Fair,
    }
}

option! {
    /// Every subscriber's memory: loads are local, stores go to all subscribers. Source: GPS, section 3.2.
    pub struct PublishedPages = "published" {
        /// Subscribers.
        subscriptions: Subscriptions = Subscriptions::Automatic,
        /// For `manual`: arrays, or byte ranges in arrays, with the GPUs that subscribe to their pages. All other
        /// pages are unpublished, at their first touch. Source: GPS, section 4: cuMemAdvise.
        by_hand: ManualSubscriptions = ManualSubscriptions::NOTHING,
        /// Iterations with tracked accesses, including all work before the first. An iteration is the shortest
        /// stretch of launches that repeats over at least half of the program. Source of the default: GPS, section
        /// 4, Listing 1.
        profiled: u32 = 1,
        /// Published data is also allocated in a subscriber's L2 if the L2 does not hold the line.
        allocates: bool = false,
        /// Like `first-touch`.
        ties: Ties = Ties::Fair,
    }
}

option! {
    /// Host memory, for good: GPUs load and store its lines (zero-copy). Source: UMH, section 1.
    pub struct PinnedOnHost = "pinned-on-host" {}
}

option! {
    /// Host memory, with blocks cached in GPU memory. Source: UMH, section 3.
    pub struct CachedInGpus = "cached-in-gpus" {}
}

option! {
    /// A single GPU's: the program copies host writes there, and back for host reads. Source: UMH, section 1.
    pub struct CopiedFromHost = "copied-from-host" {
        /// Assignment of pages to GPUs. Source of the default: UMH, section 6.1.1: remote ranges are accessed
        /// remotely.
        ranges: Ranges = Ranges::Contiguous,
        /// Location of arrays only read by kernels. Source of the default: UMH, section 6.1.1, as for ranges.
        inputs: Inputs = Inputs::Divided,
    }
}

option! {
    /// GPU 0's: all arrays go there before a kernel and back before the host works. Source: UMH, section 1,
    /// Figure 3.
    pub struct UnifiedMemoryCuda6 = "unified-memory-cuda6" {}
}

choice! {
    /// The winning module, if several touch a page first at one logical time.
    pub enum Ties {
        /// The winner is chosen by a hash of page and module.
        Fair = "fair",
        /// The winner is the module with the smallest number.
        FirstSocket = "first-socket",
    }
}

choice! {
    /// The assignment of pages to GPU memories, for data copied from the host.
    pub enum Ranges {
        /// Each array is split by whole pages into a part per GPU; GPU `i` has the `i`-th part.
        Contiguous = "contiguous",
        /// Pages are distributed round robin.
        Interleaved = "interleaved",
    }
}

choice! {
    /// The location of input arrays, which kernels only read, for data copied from the host.
    pub enum Inputs {
        /// Input arrays are divided into parts, like all arrays.
        Divided = "divided",
        /// Input arrays are whole in each GPU's memory: each GPU is a copy target. Pages shared with another array
        /// are excluded.
        Replicated = "replicated",
    }
}

choice! {
    /// The subscribers to published pages.
    pub enum Subscriptions {
        /// Everybody, until a page's users are known: from then on only the users subscribe. Source: GPS, section
        /// 3.2, subscribed by default.
        Automatic = "automatic",
        /// The first toucher, and each GPU that loads from the page, from its first load on. Source: GPS, section
        /// 3.2, unsubscribed by default.
        OnRead = "on-read",
        /// Everybody, permanently. Source: GPS, section 7.3, without subscription tracking.
        All = "all",
        /// The GPUs named in `by_hand`. Source: GPS, section 3.2, manual tracking.
        Manual = "manual",
    }
}

choice! {
    /// The data sent after a kernel between GPUs with full copies of memory.
    pub enum CopyContents {
        /// For each array, all bytes between the first and the last byte written by the GPU, to every other GPU.
        /// Source: GPS, section 6.
        Hull = "hull",
        /// The pages written by the GPU among those that another GPU accesses at any time in the program, to every other
        /// GPU. Source: GPS, 7.2: memcpy "copies all shared data exactly once"; Figure 9, shared application pages.
        SharedPages = "shared-pages",
        /// The lines written by the GPU in these pages, to every other GPU: two ranges in an array share a call as for
        /// `needed`. Source: assumed; GPS does not state the grain of a copy.
        SharedLines = "shared-lines",
        /// The bytes that other GPUs read before the next write, as sent by a programmer who knows the halos: two
        /// ranges in an array share a call if carrying the gap between them takes less time than a call.
        Needed = "needed",
        /// Nothing, in no time: an upper bound with wrong values. Source: GPS, section 6, infinite bandwidth.
        Nothing = "nothing",
    }
}

/// The data copied between a host and GPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostCopies {
    /// Data written by the host and read by kernels, and data written by kernels and read by the host.
    Needed,
    /// Every array.
    Everything,
}

/// The mechanism that moves pages, or their contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Movement {
    /// None: a page stays where it was placed.
    Placed,
    /// Page faults.
    Faults,
    /// Advice, with moves before kernels if `prefetch` is set.
    Hints {
        /// Set when pages move before a kernel.
        prefetch: bool,
    },
    /// Copies after kernels, or (`overlap`) after each GPU's part of a kernel.
    Copies {
        /// The data sent.
        copied: CopyContents,
        /// Set when each GPU sends independently.
        overlap: bool,
    },
    /// Copies from the host before kernels, and back before the host works.
    HostCopies(HostCopies),
    /// The last writer, before each kernel.
    LatestWriter,
    /// Subscriptions: every store is sent to all the page's subscribers.
    Published {
        /// The subscribers.
        subscriptions: Subscriptions,
        /// Number of iterations with tracked accesses.
        profiled: u32,
    },
}

/// The publication settings for pages, as used to build a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublicationSettings {
    /// The rules for published pages.
    pub rules: Publication,
    /// Set when published data is allocated in a subscriber's L2.
    pub allocates: bool,
}

/// The sharing of memory, as used to build a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sharing {
    /// The mechanism that moves pages.
    pub movement: Movement,
    /// The rules for migrating pages.
    pub paging: Paging,
    /// Set when thrashing pages are pinned.
    pub pins: bool,
    /// Publication settings, if pages are published.
    pub publishes: Option<PublicationSettings>,
    /// The rules for copies between GPUs.
    pub copies: Copies,
}

/// The part of a memory's sharing that decides the values visible to programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExploredSharing {
    /// Memory stays in place.
    Placed,
    /// Pages move or are published.
    Pages(Paging),
    /// Each GPU has its own copy of all memory, and these bytes are copied behind kernels.
    Copied(CopyContents),
    /// Each GPU has its own copy of all memory, and loads go to the copy of a page's latest writer.
    LatestWriter,
}

impl Sharing {
    /// True if GPUs see other GPUs' writes before the kernel has ended.
    pub fn is_visible_at_once(&self) -> bool {
        match self.movement {
            Movement::Placed
            | Movement::Faults
            | Movement::Hints { .. }
            | Movement::HostCopies(_)
            | Movement::Published { .. } => true,
            Movement::Copies { .. } | Movement::LatestWriter => false,
        }
    }

    /// True if the host has its own memory, which GPUs cannot access, with copies in both directions.
    pub fn copies_with_host(&self) -> bool {
        matches!(self.movement, Movement::HostCopies(_))
    }

    /// True if a module's view of pages changes over time.
    pub fn moves(&self) -> bool {
        match self.movement {
            Movement::Placed | Movement::Copies { .. } | Movement::HostCopies(_) => false,
            Movement::Faults | Movement::Hints { .. } | Movement::LatestWriter | Movement::Published { .. } => true,
        }
    }
}

impl Sharing {
    /// The mechanism that the explorer does not cover, if any.
    pub fn unexplored(&self) -> Option<&'static str> {
        match self.movement {
            Movement::Copies { overlap: true, .. } => Some("copies that overlap with kernels"),
            Movement::Copies { overlap: false, .. }
            | Movement::Placed
            | Movement::Faults
            | Movement::Hints { .. }
            | Movement::HostCopies(_)
            | Movement::LatestWriter
            | Movement::Published { .. } => None,
        }
    }

    /// The rules that explain the values visible to programs without host threads. Copies between a host and GPUs have
    /// placed all data before the first kernel.
    pub fn explored(&self) -> ExploredSharing {
        match self.movement {
            Movement::Placed | Movement::HostCopies(_) => ExploredSharing::Placed,
            Movement::Faults | Movement::Hints { .. } => ExploredSharing::Pages(self.paging),
            // Manual subscriptions allow any subscriber set: model them as a page published to all, with leaving
            // subscribers.
            Movement::Published { subscriptions: Subscriptions::Manual, .. } => {
                ExploredSharing::Pages(Paging { start: Start::PublishedToAll, ..self.paging })
            }
            Movement::Published { .. } => ExploredSharing::Pages(self.paging),
            Movement::Copies { copied, .. } => ExploredSharing::Copied(copied),
            Movement::LatestWriter => ExploredSharing::LatestWriter,
        }
    }
}

impl Placement {
    /// True if a host takes part whose memory has the data, or a copy.
    pub fn has_host(&self) -> bool {
        match self {
            Placement::PinnedOnHost(_)
            | Placement::CachedInGpus(_)
            | Placement::CopiedFromHost(_)
            | Placement::UnifiedMemoryCuda6(_) => true,
            Placement::UnifiedMemory(UnifiedMemory { host, .. }) => *host,
            Placement::FirstTouch(_)
            | Placement::InterleavedLine(_)
            | Placement::InterleavedPage(_)
            | Placement::UnifiedMemoryHints(_)
            | Placement::Duplicated(_)
            | Placement::RemoteDemandLoads(_)
            | Placement::PublishedPages(_) => false,
        }
    }

    /// Winner for first touches at one logical time, if a first touch decides anything.
    pub fn ties(&self) -> Ties {
        match *self {
            Placement::FirstTouch(FirstTouch { ties })
            | Placement::UnifiedMemory(UnifiedMemory { ties, .. })
            | Placement::UnifiedMemoryHints(UnifiedMemoryHints { ties, .. })
            | Placement::RemoteDemandLoads(RemoteDemandLoads { ties })
            | Placement::PublishedPages(PublishedPages { ties, .. }) => ties,
            Placement::InterleavedLine(_)
            | Placement::InterleavedPage(_)
            | Placement::Duplicated(_)
            | Placement::PinnedOnHost(_)
            | Placement::CachedInGpus(_)
            | Placement::CopiedFromHost(_)
            | Placement::UnifiedMemoryCuda6(_) => Ties::Fair,
        }
    }

    /// The sharing of memory.
    pub fn sharing(&self) -> Sharing {
        let of =
            |movement, paging, pins| Sharing { movement, paging, pins, publishes: None, copies: Copies::default() };
        // A module never faults if all pages are mapped for it.
        let afar = Paging { everybody: true, ..Paging::default() };
        match *self {
            Placement::FirstTouch(_)
            | Placement::InterleavedLine(_)
            | Placement::InterleavedPage(_)
            | Placement::PinnedOnHost(_)
            | Placement::CachedInGpus(_) => of(Movement::Placed, Paging::default(), false),
            Placement::UnifiedMemory(UnifiedMemory { read_mostly, pinning, host: _, ties: _ }) => {
                of(Movement::Faults, Paging { duplicates: read_mostly, ..Paging::default() }, pinning)
            }
            Placement::UnifiedMemoryHints(UnifiedMemoryHints { prefetch, ties: _ }) => {
                of(Movement::Hints { prefetch }, afar, false)
            }
            Placement::Duplicated(Duplicated { copied, overlap }) => {
                of(Movement::Copies { copied, overlap }, Paging::default(), false)
            }
            Placement::CopiedFromHost(_) => of(Movement::HostCopies(HostCopies::Needed), Paging::default(), false),
            Placement::UnifiedMemoryCuda6(_) => {
                of(Movement::HostCopies(HostCopies::Everything), Paging::default(), false)
            }
            Placement::RemoteDemandLoads(_) => of(Movement::LatestWriter, afar, false),
            Placement::PublishedPages(PublishedPages { subscriptions, profiled, allocates, by_hand: _, ties: _ }) => {
                let (start, subscribes) = match subscriptions {
                    Subscriptions::Automatic | Subscriptions::All => (Start::PublishedToAll, false),
                    Subscriptions::OnRead => (Start::PublishedToHome, true),
                    Subscriptions::Manual => (Start::OneCopy, false),
                };
                let (rules, movement) = (Publication::default(), Movement::Published { subscriptions, profiled });
                let publishes = Some(PublicationSettings { rules, allocates });
                Sharing { publishes, ..of(movement, Paging { start, subscribes, ..afar }, false) }
            }
        }
    }

    /// The strongest possible promise, and the reason for its limit.
    pub(crate) fn promise(&self) -> (Promise, &'static str) {
        match self {
            Placement::FirstTouch(_)
            | Placement::InterleavedLine(_)
            | Placement::InterleavedPage(_)
            | Placement::PinnedOnHost(_)
            | Placement::CachedInGpus(_)
            | Placement::CopiedFromHost(_)
            | Placement::UnifiedMemoryCuda6(_) => (Promise::Ptx, ""),
            Placement::UnifiedMemory(_) | Placement::UnifiedMemoryHints(_) | Placement::PublishedPages(_) => {
                (Promise::Ptx, "")
            }
            Placement::Duplicated(Duplicated {
                copied:
                    CopyContents::Hull | CopyContents::SharedPages | CopyContents::SharedLines | CopyContents::Needed,
                ..
            }) => (Promise::KernelBoundary, "copies bring what others have written behind a kernel alone"),
            Placement::Duplicated(Duplicated { copied: CopyContents::Nothing, .. }) => {
                (Promise::Nothing, "nobody gets what others have written")
            }
            Placement::RemoteDemandLoads(_) => {
                (Promise::Nothing, "of a page that two GPUs have written one finds its own bytes alone")
            }
        }
    }
}

/// Pages may move, or reside in several memories, only if an L2 holds lines from its own memory alone: remote
/// copies would not be dropped.
fn conflict(placement: &Placement, key: &'static str, design: &DesignConfig) -> Option<Conflict> {
    let (caches_blocks, protocol) = (design.coherence.facts().host, design.coherence.protocol());
    if caches_blocks != matches!(placement, Placement::CachedInGpus(_)) {
        let reason = if caches_blocks {
            format!("{protocol:?} caches blocks of host memory, and needs placement = \"cached-in-gpus\"")
        } else {
            format!("{:?} asks for a protocol that caches blocks of host memory, as \"nmoesi\" does", placement.word())
        };
        return Some(Conflict { key, reason });
    }
    match placement.sharing().movement {
        Movement::Placed => return None,
        Movement::HostCopies(_) => {
            let reason = copies_conflict(placement, design)?;
            return Some(Conflict { key, reason });
        }
        Movement::Faults
        | Movement::Hints { .. }
        | Movement::Copies { .. }
        | Movement::LatestWriter
        | Movement::Published { .. } => {}
    }
    let may_move = pages_may_move_under(design.coherence.protocol(), design.options());
    let reason = if may_move != Ok(true) {
        format!(
            "{:?} asks for L2s that hold lines of their own memory alone, as coherence = \"memory-side\" has them; under {:?} \
             a page that moves would leave lines in other L2s",
            placement.word(),
            design.coherence.protocol()
        )
    } else if !matches!(design.elision, crate::Elision::Never(_)) {
        format!("{:?} says where pages are kernel by kernel, and a table of elision would not know", placement.word())
    } else {
        return None;
    };
    Some(Conflict { key, reason })
}

/// Copies write memory without the caches' knowledge: L2 lines from another GPU's memory must therefore be dropped
/// before each kernel.
fn copies_conflict(placement: &Placement, design: &DesignConfig) -> Option<String> {
    let (facts, word) = (design.coherence.facts(), placement.word());
    let keeps_others = (facts.caches)(Class::SystemRemote, &design.options());
    if keeps_others && !facts.offers(Choice::BulkInvalidation) {
        return Some(format!(
            "{word:?} writes memory by copies before kernels, and under {:?} L2s keep lines of other GPUs' memory through a \
             kernel's start; coherence = \"software-flat\" drops them",
            design.coherence.protocol()
        ));
    }
    (!matches!(design.elision, crate::Elision::Never(_)))
        .then(|| format!("{word:?} writes memory by copies before kernels, and a table of elision would not know"))
}

impl DesignConfig {
    /// Minimum number of lines placed together on a machine: a page or, with interleaved lines, a single line. With
    /// a directory, the minimum is a directory region, because an entry needs a single home.
    pub fn lines_together(&self, machine: &MachineConfig) -> u64 {
        let lines_per_page = machine.page_bytes / machine.line.bytes();
        match self.placement {
            Placement::FirstTouch(_)
            | Placement::InterleavedPage(_)
            | Placement::UnifiedMemory(_)
            | Placement::UnifiedMemoryHints(_)
            | Placement::Duplicated(_)
            | Placement::RemoteDemandLoads(_)
            | Placement::PublishedPages(_)
            | Placement::PinnedOnHost(_)
            | Placement::CachedInGpus(_)
            | Placement::CopiedFromHost(_)
            | Placement::UnifiedMemoryCuda6(_) => lines_per_page,
            Placement::InterleavedLine(_) if self.coherence.facts().directory => {
                u64::from(machine.directory.lines_per_entry).min(lines_per_page)
            }
            Placement::InterleavedLine(_) => 1,
        }
    }
}
