//! What to explore: protocol, options, caches at the start, evictions, reductions, budget.

use super::boundaries::Decides;
use tombolo_protocol::BrokenRule;
use tombolo_protocol::elision::BrokenElision;
use tombolo_protocol::paging::{self, OnFault, Paging};
use tombolo_protocol::publication::Publication;
use tombolo_protocol::vi::{Options, WritePolicy};

/// The rules of published pages where none are given: every module uses a page.
const OF_PUBLISHED: Paging = Paging {
    on_fault: OnFault::Migrate,
    duplicates: false,
    everybody: true,
    start: paging::Start::OneCopy,
    subscribes: false,
    broken: None,
};

/// What the caches hold before the first instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Start {
    /// Nothing.
    #[default]
    Cold,
    /// Every line in every cache that may hold it, put there by the protocol itself.
    Warm,
}

/// When caches and directories make room. Both cover caches of any size: whatever else a program would
/// have to touch for a line to be evicted is left out, the eviction is not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Evictions {
    /// Never.
    Never,
    /// A line just before a request that it makes a difference to, a directory entry just before a store or an
    /// atomic; and at any time where the eviction itself sends something that others can see.
    #[default]
    AtAccess,
    /// At any time.
    Spontaneous,
}

/// Ways to visit fewer states without hiding a forbidden outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Reductions {
    /// Forget copies that no remaining access can see.
    pub forget: bool,
    /// Take a step at once that commutes with every other one that can still come before it.
    pub eager: bool,
    /// Leave a request in its channel that would only be held where it goes, and send a read on at once.
    pub postpone: bool,
    /// Take steps of one region before those of others where nothing can come between.
    pub partial_order: bool,
    /// Take all steps of a page's change at once, when its modules have let go of the page.
    pub pages: bool,
}

impl Reductions {
    /// All of them.
    pub const ALL: Reductions =
        Reductions { forget: true, eager: true, postpone: true, partial_order: true, pages: true };
    /// None: for validating the others.
    pub const NONE: Reductions =
        Reductions { forget: false, eager: false, postpone: false, partial_order: false, pages: false };
}

/// Resources of each client of blocks, where they are few. A request that lacks one waits at the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Room {
    /// Blocks that a client may ask its home for at a time.
    pub registers: u8,
    /// Blocks that a client may hold; any number where there is none. The first that is idle makes room.
    pub ways: Option<u8>,
}

/// How many changes of pages may happen that no access asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Wishes {
    /// A page that is not published goes elsewhere: prefetches and evictions.
    pub moves: u8,
    /// A module subscribes to a published page.
    pub subscribes: u8,
    /// A subscriber leaves a published page, or a page that has one is published no more.
    pub leaves: u8,
}

/// What to explore.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Name of the protocol, one of [`super::PROTOCOLS`].
    pub protocol: &'static str,
    /// Its options, with the broken rule if there is one.
    pub options: Options,
    /// Who decides what happens at kernel boundaries.
    pub decides: Decides,
    /// The broken rule of a table that elides, if there is one.
    pub broken_elision: Option<BrokenElision>,
    /// The rules of pages, where they change.
    pub paging: Option<Paging>,
    /// The rules of published pages, where the layout has subscribers.
    pub publication: Option<Publication>,
    /// Changes of pages that no access asks for, at any time of a run.
    pub wishes: Wishes,
    /// What the caches hold at the start: nothing, where boundaries are elided.
    pub start: Start,
    /// When they make room.
    pub evictions: Evictions,
    /// Messages of a class that may be on their way between two nodes, where that is limited; of clients and homes alone.
    pub slots: Option<u8>,
    /// Resources of clients, where they are limited; of clients and homes alone, with queues of any length.
    pub room: Option<Room>,
    /// How states are saved.
    pub reductions: Reductions,
    /// States after which the search gives up.
    pub max_states: usize,
    /// Executions drawn step by step where the search has given up: they go to the end.
    pub walks: usize,
}

impl Config {
    /// The protocol with its default options, cold, evictions at access, all reductions, a million states, no
    /// walks.
    pub fn new(protocol: &'static str) -> Config {
        Config {
            protocol,
            options: Options::default(),
            decides: Decides::Never,
            broken_elision: None,
            paging: None,
            publication: None,
            wishes: Wishes { moves: 2, subscribes: 0, leaves: 0 },
            start: Start::Cold,
            evictions: Evictions::AtAccess,
            slots: None,
            room: None,
            reductions: Reductions::ALL,
            max_states: 1_000_000,
            walks: 0,
        }
    }

    /// The same with a broken rule.
    pub fn with_broken_rule(mut self, rule: BrokenRule) -> Config {
        self.options.broken_rule = Some(rule);
        self
    }

    /// The reductions that are used. Where pages move all but the last take them to move in one step, when nothing is under
    /// way; a broken rule is broken in between. The last takes a line's home to stay.
    pub(super) fn used_reductions(&self) -> Reductions {
        let is_broken = self.paging.is_some_and(|rules| rules.broken.is_some())
            || self.publication.is_some_and(|rules| rules.broken.is_some());
        match (self.paging, self.publication) {
            (None, None) => self.reductions,
            // What is published goes to slots that the others take it not to.
            (_, Some(_)) => Reductions { pages: self.reductions.pages && !is_broken, ..Reductions::NONE },
            (Some(_), None) if is_broken || !self.reductions.pages => Reductions::NONE,
            (Some(_), None) => Reductions { partial_order: false, ..self.reductions },
        }
    }

    /// The rules of pages, where they move or are published.
    pub(super) fn rules_of_pages(&self) -> Option<Paging> {
        self.paging.or_else(|| self.publication.map(|_| OF_PUBLISHED))
    }

    /// Whether L2s keep dirty bytes.
    pub(super) fn writes_back(&self) -> bool {
        self.options.write == WritePolicy::Back
    }
}
