//! Exploration settings: protocol, options, initial cache contents, evictions, reductions, budget.

use super::boundaries::BoundaryPolicy;
use tombolo_protocol::BrokenRule;
use tombolo_protocol::copies::Copies;
use tombolo_protocol::elision::BrokenElision;
use tombolo_protocol::paging::{self, OnFault, Paging};
use tombolo_protocol::publication::Publication;
use tombolo_protocol::vi::{ProtocolOptions, WritePolicy};

/// Default rules for published pages: every module uses a page.
const OF_PUBLISHED: Paging = Paging {
    on_fault: OnFault::Migrate,
    duplicates: false,
    everybody: true,
    start: paging::Start::OneCopy,
    subscribes: false,
    broken: None,
};

/// Cache contents before the first instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Start {
    /// Empty caches.
    #[default]
    Cold,
    /// Every line in every cache that may hold it, installed by the protocol.
    Warm,
}

/// Times at which caches and directories evict. Both settings cover caches with any capacity: the additional accesses
/// that a program would need to force an eviction are omitted, but the eviction itself happens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Evictions {
    /// Never.
    Never,
    /// Evicts a line just before a request that the eviction affects, and a directory entry just before a store or an
    /// atomic. Evictions with messages visible to other caches may also happen at any time.
    #[default]
    AtAccess,
    /// At any time.
    Spontaneous,
}

/// Techniques to visit fewer states without hiding a forbidden outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Reductions {
    /// Forget copies that no remaining access can see. The search then merges states that differ only in such copies.
    pub forget: bool,
    /// Execute a step immediately if it commutes with every possible earlier step, without exploring alternative orders.
    pub eager: bool,
    /// Leave a request in the channel if delivery would only park it, and forward a read immediately. The request is
    /// delivered after the obstacle is gone.
    pub postpone: bool,
    /// Execute the steps in a region before steps in other regions if no interaction is possible. The remaining orders
    /// are equivalent and need no visit.
    pub partial_order: bool,
    /// Execute all steps in a page change at once, after its modules have released the page. No state with a half
    /// completed change is then visited.
    pub pages: bool,
}

impl Reductions {
    /// All reductions.
    pub const ALL: Reductions =
        Reductions { forget: true, eager: true, postpone: true, partial_order: true, pages: true };
    /// No reductions: for validating the others.
    pub const NONE: Reductions =
        Reductions { forget: false, eager: false, postpone: false, partial_order: false, pages: false };
}

/// Limited resources per block client. A request that lacks a resource waits at the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClientResources {
    /// Maximum number of outstanding block requests from a client to homes. A further request for a new block waits
    /// until a reply arrives.
    pub registers: u8,
    /// Maximum number of blocks in a client; `None` means unlimited. The first idle block is evicted.
    pub ways: Option<u8>,
}

/// Budget for page changes without a requesting access.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct UnrequestedChanges {
    /// Moves of unpublished pages to a different home: prefetches and evictions.
    pub moves: u8,
    /// Subscriptions to a published page by a module.
    pub subscribes: u8,
    /// Departures of a subscriber from a published page, and ends to a page's publication.
    pub leaves: u8,
}

/// Updates of the modules' copies of memory behind a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReplicaUpdate {
    /// Each module sends all bytes that it has written to every other module.
    Written,
    /// Each module sends the written bytes that the receiver reads later, before a further kernel writes them.
    Needed,
    /// No module sends anything.
    Nothing,
    /// No module sends anything; loads go to the copy of the page's latest writer in earlier kernels, by
    /// [`tombolo_protocol::copies::loads_from`].
    LatestWriter,
}

/// Configuration of an exploration.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Name of the protocol, from [`super::PROTOCOLS`].
    pub protocol: &'static str,
    /// Protocol options, including the broken rule if any.
    pub options: ProtocolOptions,
    /// Policy for the actions at kernel boundaries.
    pub boundary_policy: BoundaryPolicy,
    /// Broken rule in an eliding table, if any.
    pub broken_elision: Option<BrokenElision>,
    /// Rules for page moves, if pages move.
    pub paging: Option<Paging>,
    /// Rules for published pages, if the layout has subscribers.
    pub publication: Option<Publication>,
    /// Rules for copies behind kernels, and their contents, if each module has its own copy of all memory. Pages are
    /// then published to all modules, without rules for their publication.
    pub copies: Option<(Copies, ReplicaUpdate)>,
    /// Budget for page changes without a requesting access, at any time during a run.
    pub unrequested: UnrequestedChanges,
    /// Cache contents at the start: empty if boundaries are elided.
    pub start: Start,
    /// Times at which caches and directories evict.
    pub evictions: Evictions,
    /// Maximum number of in-flight messages per class between two nodes, if limited; only for clients and homes.
    pub slots: Option<u8>,
    /// Limited resources of clients; only for clients and homes, with unbounded queues.
    pub room: Option<ClientResources>,
    /// Reductions that save states.
    pub reductions: Reductions,
    /// State count after which the search gives up.
    pub max_states: usize,
    /// Random executions drawn step by step after the search has given up; each runs to the end.
    pub walks: usize,
}

impl Config {
    /// The protocol with default options, cold caches, evictions at access, all reductions, a million states, no random
    /// walks.
    pub fn new(protocol: &'static str) -> Config {
        Config {
            protocol,
            options: ProtocolOptions::default(),
            boundary_policy: BoundaryPolicy::default(),
            broken_elision: None,
            paging: None,
            publication: None,
            copies: None,
            unrequested: UnrequestedChanges { moves: 2, subscribes: 0, leaves: 0 },
            start: Start::Cold,
            evictions: Evictions::AtAccess,
            slots: None,
            room: None,
            reductions: Reductions::ALL,
            max_states: 1_000_000,
            walks: 0,
        }
    }

    /// Returns the configuration with a broken rule added.
    pub fn with_broken_rule(mut self, rule: BrokenRule) -> Config {
        self.options.broken_rule = Some(rule);
        self
    }

    /// Reductions in effect. If pages move, all but the last assume atomic page moves while no request is in flight,
    /// and a broken rule takes effect within a move. The last reduction assumes fixed line homes.
    pub(super) fn used_reductions(&self) -> Reductions {
        let is_broken = self.paging.is_some_and(|rules| rules.broken.is_some())
            || self.publication.is_some_and(|rules| rules.broken.is_some());
        if self.copies.is_some() {
            // The reductions know no steps of copies.
            return Reductions::NONE;
        }
        match (self.paging, self.publication) {
            (None, None) => self.reductions,
            // Published data goes to slots that the other reductions assume untouched.
            (_, Some(_)) => Reductions { pages: self.reductions.pages && !is_broken, ..Reductions::NONE },
            (Some(_), None) if is_broken || !self.reductions.pages => Reductions::NONE,
            (Some(_), None) => Reductions { partial_order: false, ..self.reductions },
        }
    }

    /// Rules for pages, if pages move or are published.
    pub(super) fn rules_of_pages(&self) -> Option<Paging> {
        self.paging.or_else(|| self.publication.map(|_| OF_PUBLISHED))
    }

    /// True if L2s keep dirty bytes.
    pub(super) fn writes_back(&self) -> bool {
        self.options.write == WritePolicy::Back
    }
}
