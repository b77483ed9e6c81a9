//! Placement: which module a page's memory is on, and what moves it.

use crate::DesignConfig;
use crate::axis::{axis, option};
use crate::subscribed::Subscribed;
use tombolo_machine::{Conflict, MachineConfig, choice};
use tombolo_protocol::Class;
use tombolo_protocol::options::Choice;
use tombolo_protocol::paging::{Paging, Start, pages_may_move_under};
use tombolo_protocol::publication::Publication;
use tombolo_types::Promise;

axis! {
    /// Which module a page's memory is on, and what moves it.
    pub enum Placement {
        FirstTouch, InterleavedLine, InterleavedPage, UnifiedMemory, UnifiedMemoryHints, Duplicated, RemoteDemandLoads,
        Published, PinnedOnHost, CachedInGpus, CopiedFromHost, UnifiedMemoryCuda6
    } refused by conflict
}

option! {
    /// That of the first SM to touch it. Source: HMG, section VI.
    pub struct FirstTouch = "first-touch" {
        /// Module that has a page which several touch first, at one logical time. Source of the default: assumed; no paper says
        /// who wins such a race, and a fixed winner would have all that modules share.
        ties: Ties = Ties::Fair,
    }
}

option! {
    /// Lines round robin over all modules; with a directory, the regions of its entries.
    pub struct InterleavedLine = "interleaved-line" {}
}

option! {
    /// Pages round robin over all modules.
    pub struct InterleavedPage = "interleaved-page" {}
}

option! {
    /// That of the first GPU to touch it; then that of whoever touches it, by a fault. Source: GPS, section 6.
    pub struct UnifiedMemory = "unified-memory" {
        /// Whether readers get copies of their own until somebody writes. Source: CUDA's read-mostly advice.
        read_mostly: bool = false,
        /// Whether a page that thrashes stays where it is for a while. Source: NVIDIA's open driver, uvm_perf_thrashing.c.
        pinning: bool = false,
        /// Whether the host takes part: pages are in its memory at first, and it faults as GPUs do. Source: Landaverde et al.,
        /// "An Investigation of Unified Memory Access Performance in CUDA", HPEC 2014.
        host: bool = false,
        /// As under `first-touch`.
        ties: Ties = Ties::Fair,
    }
}

option! {
    /// That of the GPU that writes it; others use it from afar, or have it moved before a kernel. Source: GPS, section 6.
    pub struct UnifiedMemoryHints = "unified-memory-hints" {
        /// Whether pages move before a kernel to its only user or writer.
        prefetch: bool = true,
        /// As under `first-touch`.
        ties: Ties = Ties::Fair,
    }
}

option! {
    /// Every GPU has a copy of all, and sends what it has written behind each kernel. Source: GPS, section 6.
    pub struct Duplicated = "duplicated" {
        /// What is sent.
        copied: Copied = Copied::Hull,
        /// Whether a GPU sends as soon as its own part of a kernel has ended, while others still run.
        overlap: bool = false,
    }
}

option! {
    /// That of the GPU that wrote it last, as of the kernel before. Source: GPS, section 6.
    pub struct RemoteDemandLoads = "remote-demand-loads" {
        /// As under `first-touch`.
        ties: Ties = Ties::Fair,
    }
}

option! {
    /// In the memory of every subscriber: loads find it there, and what is stored is sent to all. Source: GPS, section 3.
    pub struct Published = "published" {
        /// Who subscribes.
        subscriptions: Subscriptions = Subscriptions::Automatic,
        /// Of `manual`: arrays, or bytes of them, with the GPUs that subscribe to their pages. All other pages are where they
        /// are first touched, as without publishing. Source: GPS, section 4: cuMemAdvise.
        by_hand: Subscribed = Subscribed::NOTHING,
        /// Iterations in which accesses are tracked, with what comes before the first. An iteration is the shortest stretch of
        /// launches that repeats over half of the program or more. Source of the default: GPS, section 4, Listing 1.
        profiled: u32 = 1,
        /// Whether what is published takes a place in the L2 of a subscriber that does not hold its line.
        allocates: bool = false,
        /// As under `first-touch`.
        ties: Ties = Ties::Fair,
    }
}

option! {
    /// The host's, for good: GPUs load and store lines of it (zero-copy). Source: UMH, section 1.
    pub struct PinnedOnHost = "pinned-on-host" {}
}

option! {
    /// The host's, blocks of which the memories of GPUs cache. Source: UMH, section 3.
    pub struct CachedInGpus = "cached-in-gpus" {}
}

option! {
    /// That of one GPU: the program copies what its host has written there, and back what its host reads. Source: UMH, section 1.
    pub struct CopiedFromHost = "copied-from-host" {
        /// Which GPU has which page. Source of the default: UMH, section 6.1.1: ranges of the other GPUs are used from afar.
        ranges: Ranges = Ranges::Contiguous,
        /// Where arrays are that kernels only read. Source of the default: UMH, section 6.1.1, as for ranges.
        inputs: Inputs = Inputs::Divided,
    }
}

option! {
    /// That of GPU 0: all arrays go there before a kernel and back before the host works. Source: UMH, section 1, Figure 3.
    pub struct UnifiedMemoryCuda6 = "unified-memory-cuda6" {}
}

choice! {
    /// Winner among modules that touch a page first at one logical time.
    pub enum Ties {
        /// One by a hash of page and module.
        Fair = "fair",
        /// The one with the smallest number.
        FirstSocket = "first-socket",
    }
}

choice! {
    /// Which GPU's memory has which page of what is copied from the host.
    pub enum Ranges {
        /// Of each array, by whole pages, GPU `i` the `i`-th part of as many as there are GPUs.
        Contiguous = "contiguous",
        /// Pages round robin.
        Interleaved = "interleaved",
    }
}

choice! {
    /// Where arrays are that kernels only read, of what is copied from the host.
    pub enum Inputs {
        /// In parts, as all arrays.
        Divided = "divided",
        /// Whole in each GPU's memory: each is a target of the copy. Pages that hold lines of another array are not.
        Replicated = "replicated",
    }
}

choice! {
    /// Who subscribes to published pages.
    pub enum Subscriptions {
        /// Everybody, until it is known who accesses a page: they are its subscribers from then on. Source: GPS, section 3.2,
        /// subscribed by default.
        Automatic = "automatic",
        /// Who touches a page first, and who loads from it, from its first load on. Source: GPS, section 3.2, unsubscribed by
        /// default.
        OnRead = "on-read",
        /// Everybody. Source: GPS, section 7.3, without subscription tracking.
        All = "all",
        /// Whom `by_hand` names. Source: GPS, section 3.2, manual tracking.
        Manual = "manual",
    }
}

choice! {
    /// What GPUs with copies of all memory send each other behind a kernel.
    pub enum Copied {
        /// Of each array, all between the first and the last byte that the GPU has written, to every other. Source: GPS,
        /// section 6.
        Hull = "hull",
        /// What others read before it is written again, as a programmer who knows the halos would: two ranges of an array in
        /// one call where carrying what lies between takes less than a call.
        Needed = "needed",
        /// Nothing, in no time: a bound, whose values are wrong. Source: GPS, section 6, infinite bandwidth.
        Nothing = "nothing",
    }
}

/// What is copied between a host and GPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostCopies {
    /// What the host has written and kernels read, and what kernels have written and the host reads.
    Needed,
    /// Every array.
    Everything,
}

/// What moves pages, or what they hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Movement {
    /// Nothing: a page stays where it was placed.
    Placed,
    /// Faults.
    Faults,
    /// Advice, taken before kernels where `prefetch` says so.
    Hints {
        /// Whether pages move before a kernel.
        prefetch: bool,
    },
    /// Copies behind kernels, or (`overlap`) behind each GPU's part of one.
    Copies {
        /// What is sent.
        copied: Copied,
        /// Whether each GPU sends for itself.
        overlap: bool,
    },
    /// Copies from the host before kernels, and back before it works.
    HostCopies(HostCopies),
    /// The last writer, before each kernel.
    LatestWriter,
    /// Subscriptions: what is stored goes to all who have one.
    Published {
        /// Who subscribes.
        subscriptions: Subscriptions,
        /// Iterations in which accesses are tracked.
        profiled: u32,
    },
}

/// How pages are published, as a model is built from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Publishes {
    /// The rules of published pages.
    pub rules: Publication,
    /// Whether what is published takes a place in a subscriber's L2.
    pub allocates: bool,
}

/// How memory is shared, as a model is built from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sharing {
    /// What moves pages.
    pub movement: Movement,
    /// The rules of pages that move.
    pub paging: Paging,
    /// Whether pages that thrash are pinned.
    pub pins: bool,
    /// How pages are published, where they are.
    pub publishes: Option<Publishes>,
}

impl Sharing {
    /// Whether GPUs see what others write before the kernel has ended.
    pub fn shows_at_once(&self) -> bool {
        match self.movement {
            Movement::Placed
            | Movement::Faults
            | Movement::Hints { .. }
            | Movement::HostCopies(_)
            | Movement::Published { .. } => true,
            Movement::Copies { .. } | Movement::LatestWriter => false,
        }
    }

    /// Whether the host has a memory of its own that the GPUs do not reach, and copies go to and fro.
    pub fn copies_with_host(&self) -> bool {
        matches!(self.movement, Movement::HostCopies(_))
    }

    /// Whether a module's view of pages changes.
    pub fn moves(&self) -> bool {
        match self.movement {
            Movement::Placed | Movement::Copies { .. } | Movement::HostCopies(_) => false,
            Movement::Faults | Movement::Hints { .. } | Movement::LatestWriter | Movement::Published { .. } => true,
        }
    }
}

impl Sharing {
    /// The rules of moving pages that explain what its programs may see; `None` where pages stay. An error where what moves
    /// has no rules that are explored.
    ///
    /// # Errors
    /// Says what moves.
    pub fn explored(&self) -> Result<Option<Paging>, &'static str> {
        match self.movement {
            Movement::Placed => Ok(None),
            Movement::Faults | Movement::Hints { .. } => Ok(Some(self.paging)),
            // By hand a page has any subscribers: those of a page of all, some of whom leave.
            Movement::Published { subscriptions: Subscriptions::Manual, .. } => {
                Ok(Some(Paging { start: Start::PublishedToAll, ..self.paging }))
            }
            Movement::Published { .. } => Ok(Some(self.paging)),
            Movement::Copies { .. } => Err("copies behind kernels"),
            Movement::HostCopies(_) => Err("copies between a host and GPUs"),
            Movement::LatestWriter => Err("pages that are found at their latest writer"),
        }
    }
}

impl Placement {
    /// Whether a host takes part whose memory has the data, or a copy of it.
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
            | Placement::Published(_) => false,
        }
    }

    /// Winner of first touches at one logical time, where a first touch decides anything.
    pub fn ties(&self) -> Ties {
        match *self {
            Placement::FirstTouch(FirstTouch { ties })
            | Placement::UnifiedMemory(UnifiedMemory { ties, .. })
            | Placement::UnifiedMemoryHints(UnifiedMemoryHints { ties, .. })
            | Placement::RemoteDemandLoads(RemoteDemandLoads { ties })
            | Placement::Published(Published { ties, .. }) => ties,
            Placement::InterleavedLine(_)
            | Placement::InterleavedPage(_)
            | Placement::Duplicated(_)
            | Placement::PinnedOnHost(_)
            | Placement::CachedInGpus(_)
            | Placement::CopiedFromHost(_)
            | Placement::UnifiedMemoryCuda6(_) => Ties::Fair,
        }
    }

    /// How memory is shared.
    pub fn sharing(&self) -> Sharing {
        let of = |movement, paging, pins| Sharing { movement, paging, pins, publishes: None };
        // Whom all pages are mapped for never faults.
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
            Placement::Published(Published { subscriptions, profiled, allocates, by_hand: _, ties: _ }) => {
                let (start, subscribes) = match subscriptions {
                    Subscriptions::Automatic | Subscriptions::All => (Start::PublishedToAll, false),
                    Subscriptions::OnRead => (Start::PublishedToHome, true),
                    Subscriptions::Manual => (Start::OneCopy, false),
                };
                let (rules, movement) = (Publication::default(), Movement::Published { subscriptions, profiled });
                let publishes = Some(Publishes { rules, allocates });
                Sharing { publishes, ..of(movement, Paging { start, subscribes, ..afar }, false) }
            }
        }
    }

    /// The most that can be promised with it, and why no more.
    pub(crate) fn promise(&self) -> (Promise, &'static str) {
        match self {
            Placement::FirstTouch(_)
            | Placement::InterleavedLine(_)
            | Placement::InterleavedPage(_)
            | Placement::PinnedOnHost(_)
            | Placement::CachedInGpus(_)
            | Placement::CopiedFromHost(_)
            | Placement::UnifiedMemoryCuda6(_) => (Promise::Ptx, ""),
            Placement::UnifiedMemory(_) | Placement::UnifiedMemoryHints(_) | Placement::Published(_) => {
                (Promise::Ptx, "")
            }
            Placement::Duplicated(Duplicated { copied: Copied::Hull | Copied::Needed, .. }) => {
                (Promise::KernelBoundary, "copies bring what others have written behind a kernel alone")
            }
            Placement::Duplicated(Duplicated { copied: Copied::Nothing, .. }) => {
                (Promise::Nothing, "nobody gets what others have written")
            }
            Placement::RemoteDemandLoads(_) => {
                (Promise::Nothing, "of a page that two GPUs have written one finds its own bytes alone")
            }
        }
    }
}

/// Pages move, or are in several memories, only where an L2 holds lines of its own memory alone: nobody drops them elsewhere.
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

/// Copies write memory behind the back of caches: what an L2 holds of another GPU's memory has to go before each kernel.
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
    /// Lines that are placed together on a machine, at least: a page, or, where lines are interleaved, one line. Where
    /// there is a directory it is one of its regions, for an entry needs one home.
    pub fn lines_together(&self, machine: &MachineConfig) -> u64 {
        let lines_per_page = machine.page_bytes / machine.line.bytes();
        match self.placement {
            Placement::FirstTouch(_)
            | Placement::InterleavedPage(_)
            | Placement::UnifiedMemory(_)
            | Placement::UnifiedMemoryHints(_)
            | Placement::Duplicated(_)
            | Placement::RemoteDemandLoads(_)
            | Placement::Published(_)
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
