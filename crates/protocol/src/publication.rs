//! Pages published to their subscribers (GPS, sections 3 and 5): each subscriber has a replica for its loads, and
//! every store is sent to all replicas.
//!
//! - Home: a subscriber is the home for its own replica, as it sees the page. For all other modules a fixed
//!   subscriber is the home: two alternating homes would be read in a different order than they were written.
//! - Store by a subscriber: its L2 accepts the store, which orders its GPU's stores; afterwards the store joins the
//!   GPU's *queue*, at its line's entry. Store by a non-subscriber: only the queue accepts it.
//! - Queue: an entry per line, with a mask, because other GPUs may write different bytes in the line. An entry may
//!   be sent at any time, to every remaining subscriber; sending removes it.
//! - Load by a module without a replica: if the queue has all its bytes, the queue replies. If it has some, their
//!   entry is sent first, so the load follows the entry to the home on the line's ordered path. If it has none, the
//!   load just goes to the home.
//! - Atomic: its line's entry is sent first. The resulting value is sent to every remaining subscriber. If the
//!   operation were sent instead, replicas could end up with a value that no module wrote, when other modules store
//!   concurrently.
//! - Atomic without a result, by a module without a replica: it is sent as an operation, because it is not
//!   performed anywhere before.
//! - Atomic with a result, by a module without a replica: it is performed at the page's home for this module, which
//!   sends the value to the remaining subscribers, and replies after their acknowledgments. The value takes a
//!   different path than the module's own publications for the line. The atomic therefore waits until all these
//!   publications are acknowledged, and the module's later stores and atomics to the line wait ahead of the queue
//!   for the reply. An entry can then always be sent.
//! - Release beyond the GPU: sends the queue's entries, and waits until every subscriber has acknowledged them. A
//!   `.gpu` release leaves the queue unchanged.
//!
//! Channels: publications for a line arrive in order at each subscriber. No order between lines is required.
//!
//! Store or atomic at `.sys` scope: it requires a page with a single copy, so a published page collapses first. A
//! `.sys` load behaves like any other load: after the L1, it reads the module's own replica or the page's home.
//!
//! Not modelled here: subscriber changes and page collapse ([`crate::paging`]); GPUs with several modules.

use crate::coherence::Request;
use crate::data::Data;
use crate::plan::Action;
use crate::topology::ModuleSet;
use std::fmt;
use tombolo_types::{Mask, ModuleId, Scope};

/// Modules with a replica of a page: at least a single module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Subscribers(ModuleSet);

impl Subscribers {
    /// A set from these modules; `None` if the set is empty.
    pub fn new(modules: ModuleSet) -> Option<Subscribers> {
        (!modules.is_empty()).then_some(Subscribers(modules))
    }

    /// The modules in the set.
    pub fn modules(self) -> ModuleSet {
        self.0
    }

    /// True if `module` has a replica.
    pub fn contains(self, module: ModuleId) -> bool {
        self.0.contains(module)
    }

    /// True if the page has more than a single subscriber: with a single subscriber, stores go to the home like for
    /// any page.
    #[inline]
    pub fn are_several(self) -> bool {
        self.0.are_several()
    }

    /// All subscribers except `module`: the receivers of its publications.
    pub fn others(self, module: ModuleId) -> ModuleSet {
        self.0.difference(ModuleSet::only(module))
    }

    /// The subscriber that serves modules without a replica.
    pub fn server(self) -> ModuleId {
        self.0.lowest().expect("there is at least one")
    }

    /// The page's home as seen by `at`.
    pub fn home(self, at: ModuleId) -> ModuleId {
        if self.contains(at) { at } else { self.server() }
    }
}

impl fmt::Display for Subscribers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = self.0.iter().map(|module| format!("m{}", module.0)).collect();
        f.write_str(&names.join("+"))
    }
}

/// A module's queue entry for a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PublicationEntry<D> {
    /// Bytes stored.
    pub mask: Mask,
    /// Contents.
    pub data: D,
}

/// A queue lookup's result, for a load by a module without a replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum QueueLookup<D> {
    /// No requested byte is in the queue.
    Nothing,
    /// Some requested bytes are in the queue.
    Part,
    /// All requested bytes are in the queue.
    All(D),
}

/// A module's pending publications for a line in a published page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PendingPublications<D> {
    /// The queue's entry.
    pub entry: Option<PublicationEntry<D>>,
    /// Set when some publication is not yet acknowledged by all subscribers.
    pub under_way: bool,
    /// Set when an atomic sent to the page's home has no reply yet.
    pub unanswered: bool,
}

/// The treatment of a request from a module's own SMs, ahead of the L2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueDecision<D> {
    /// The L2 accepts it.
    Passes,
    /// The line's entry is sent, then the L2 accepts the request.
    PassesBehindEntry,
    /// The request joins the queue, and is done.
    IsAdded,
    /// The request joined the queue when issued, and is done.
    WasAdded,
    /// The queue has its bytes and replies.
    Answered(D),
    /// The request is sent to every subscriber, and is done.
    IsSent {
        /// Set when the line's entry is sent first.
        behind_entry: bool,
    },
    /// The request waits, with all later requests for its line; the line's entry is sent as soon as possible.
    Waits,
}

/// The treatment of a request after a subscriber's L2 has accepted it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PublicationDecision {
    /// Nothing further happens.
    Nothing,
    /// The request joins the queue.
    IsAdded,
    /// The request is sent to every remaining subscriber.
    IsSent {
        /// Set when the line's entry is sent first.
        behind_entry: bool,
        /// Set when its reply waits until all subscribers have acknowledged the publication.
        answer_waits: bool,
    },
}

/// A broken rule for published pages. The explorer must catch each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BrokenPublication {
    /// A release leaves the queue unchanged.
    QueueNotEmptied,
    /// A release waits until entries are sent, but not until they are acknowledged.
    DeliveryNotAwaited,
    /// An entry stays open after it is sent, and is sent again.
    EntryKept,
    /// A line is published as a whole, including bytes that other modules may have written since.
    WholeLine,
    /// A store joins the queue before the L2 accepts it: stores by two SMs may be published in the reverse of their
    /// L2 order.
    AddedBeforeOrder,
    /// An atomic is published before the queued stores to its line.
    AtomicPassesEntry,
    /// A subscriber's store is sent to the remaining subscribers, but not written to its own replica.
    ReplicaNotWritten,
    /// A load by a module without a replica does not look into the queue.
    LoadIgnoresQueue,
    /// A load reads some bytes from the queue, and the remaining bytes from the values that the entry happens to
    /// hold outside its mask.
    PartTaken,
    /// A load that finds some bytes in the queue overtakes their entry.
    LoadPassesEntry,
    /// A subscriber is left out when an entry is sent.
    SubscriberForgotten,
    /// An atomic goes to the page's home while its module's stores to the line are in flight to other subscribers.
    AtomicPassesPublication,
    /// A store joins the queue, or an atomic without a result is sent, while the module's atomic on the line has no
    /// reply. A release, a load or a full queue may then send bytes ahead of the atomic's value.
    StorePassesAtomic,
    /// A page's home replies to an atomic before the remaining subscribers have its value.
    AnsweredEarly,
}

impl BrokenPublication {
    /// All variants.
    pub const ALL: [BrokenPublication; 14] = [
        BrokenPublication::QueueNotEmptied,
        BrokenPublication::DeliveryNotAwaited,
        BrokenPublication::EntryKept,
        BrokenPublication::WholeLine,
        BrokenPublication::AddedBeforeOrder,
        BrokenPublication::AtomicPassesEntry,
        BrokenPublication::ReplicaNotWritten,
        BrokenPublication::LoadIgnoresQueue,
        BrokenPublication::PartTaken,
        BrokenPublication::LoadPassesEntry,
        BrokenPublication::SubscriberForgotten,
        BrokenPublication::AtomicPassesPublication,
        BrokenPublication::StorePassesAtomic,
        BrokenPublication::AnsweredEarly,
    ];
}

/// The rules for published pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Publication {
    /// The broken rule, if any.
    pub broken: Option<BrokenPublication>,
}

impl<D: Data> PublicationEntry<D> {
    /// The queue's entry for a line after adding `store` with these bytes.
    pub fn added(earlier: Option<PublicationEntry<D>>, mask: Mask, store: D) -> PublicationEntry<D> {
        let PublicationEntry { mask: before, mut data } =
            earlier.unwrap_or(PublicationEntry { mask: Mask::NONE, data: D::default() });
        data.merge(store, mask);
        PublicationEntry { mask: before | mask, data }
    }
}

impl Publication {
    /// The treatment of a request from an SM in `at`, ahead of the L2.
    pub fn before<D: Data>(
        &self,
        subscribers: Subscribers,
        at: ModuleId,
        request: &Request<D>,
        line: &PendingPublications<D>,
    ) -> QueueDecision<D> {
        if subscribers.contains(at) {
            let skips =
                matches!(request, Request::Write { .. }) && self.is_broken(BrokenPublication::ReplicaNotWritten);
            return if skips { QueueDecision::IsAdded } else { QueueDecision::Passes };
        }
        let behind_entry = !self.is_broken(BrokenPublication::AtomicPassesEntry);
        match *request {
            Request::Read { mask, .. } => match self.look_up(line.entry, mask) {
                QueueLookup::Nothing => QueueDecision::Passes,
                QueueLookup::Part => QueueDecision::PassesBehindEntry,
                QueueLookup::All(data) => QueueDecision::Answered(data),
            },
            Request::Write { .. } if self.is_broken(BrokenPublication::AddedBeforeOrder) => QueueDecision::WasAdded,
            Request::Write { .. } | Request::Atomic { returns: false, .. } if self.awaits_answer(line) => {
                QueueDecision::Waits
            }
            Request::Write { .. } => QueueDecision::IsAdded,
            Request::Atomic { returns: false, .. } => QueueDecision::IsSent { behind_entry },
            Request::Atomic { returns: true, .. } => {
                let waits = !self.is_broken(BrokenPublication::AtomicPassesPublication);
                match (waits && (line.entry.is_some() || line.under_way), behind_entry) {
                    (true, _) => QueueDecision::Waits,
                    (false, true) => QueueDecision::PassesBehindEntry,
                    (false, false) => QueueDecision::Passes,
                }
            }
        }
    }

    /// The treatment of a request accepted by a subscriber's L2, from its `own` SM or from another module. A
    /// received publication ends there. For an atomic, the resulting value is sent.
    pub fn behind<D: Data>(&self, own: bool, request: &Request<D>) -> PublicationDecision {
        match request {
            Request::Read { .. } => PublicationDecision::Nothing,
            Request::Write { .. } => {
                let adds = own && !self.is_broken(BrokenPublication::AddedBeforeOrder);
                if adds { PublicationDecision::IsAdded } else { PublicationDecision::Nothing }
            }
            Request::Atomic { .. } => PublicationDecision::IsSent {
                behind_entry: !self.is_broken(BrokenPublication::AtomicPassesEntry),
                answer_waits: !own && !self.is_broken(BrokenPublication::AnsweredEarly),
            },
        }
    }

    /// True if a store joins the queue when issued: only under a broken rule.
    pub fn adds_at_issue(&self) -> bool {
        self.is_broken(BrokenPublication::AddedBeforeOrder)
    }

    /// True if a store, or an atomic without a result, by a module without a replica must wait for an atomic's
    /// reply. It would reach subscribers on a different path than the atomic's value, and ahead of it.
    fn awaits_answer<D>(&self, line: &PendingPublications<D>) -> bool {
        line.unanswered && !self.is_broken(BrokenPublication::StorePassesAtomic)
    }

    /// The receivers for publications sent by `from`.
    pub fn targets(&self, subscribers: Subscribers, from: ModuleId) -> ModuleSet {
        let all = subscribers.others(from);
        if self.is_broken(BrokenPublication::SubscriberForgotten) {
            return all.highest().map_or(all, |last| all.difference(ModuleSet::only(last)));
        }
        all
    }

    /// The bytes sent for an entry, given the contents `holds` in the module's own replica, if any.
    pub fn sent<D: Data>(&self, entry: PublicationEntry<D>, whole: Mask, holds: Option<D>) -> PublicationEntry<D> {
        match holds {
            Some(mut data) if self.is_broken(BrokenPublication::WholeLine) => {
                data.merge(entry.data, entry.mask);
                PublicationEntry { mask: whole, data }
            }
            Some(_) | None => entry,
        }
    }

    /// True if an entry is removed when sent.
    pub fn closes(&self) -> bool {
        !self.is_broken(BrokenPublication::EntryKept)
    }

    /// Looks up a load's bytes in the queue of a module without a replica.
    fn look_up<D: Data>(&self, entry: Option<PublicationEntry<D>>, mask: Mask) -> QueueLookup<D> {
        let Some(entry) = entry.filter(|_| !self.is_broken(BrokenPublication::LoadIgnoresQueue)) else {
            return QueueLookup::Nothing;
        };
        if entry.mask.contains(mask) {
            QueueLookup::All(entry.data)
        } else if (entry.mask & mask).is_empty() {
            QueueLookup::Nothing
        } else if self.is_broken(BrokenPublication::PartTaken) {
            QueueLookup::All(entry.data)
        } else if self.is_broken(BrokenPublication::LoadPassesEntry) {
            QueueLookup::Nothing
        } else {
            QueueLookup::Part
        }
    }

    /// True if a release's action sends all entries in its member's queue.
    pub fn empties_queue(&self, action: Action) -> bool {
        let beyond = match action {
            Action::DrainStores(scope) => scope == Scope::Sys,
            Action::ForwardStores | Action::Flush | Action::AwaitStores => true,
            Action::Invalidate(_) | Action::DrainInvalidations(_) | Action::Merge { .. } => false,
        };
        beyond && !self.is_broken(BrokenPublication::QueueNotEmptied)
    }

    /// True if a release waits until subscribers have acknowledged its publications.
    pub fn awaits_delivery(&self) -> bool {
        !self.is_broken(BrokenPublication::DeliveryNotAwaited)
    }

    /// True if the given rule is broken.
    fn is_broken(&self, rule: BrokenPublication) -> bool {
        self.broken == Some(rule)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::test_bytes::Bytes;

    const RULES: Publication = Publication { broken: None };

    fn subscribers(modules: u64) -> Subscribers {
        Subscribers::new(ModuleSet::from_bits(modules)).unwrap()
    }

    #[test]
    fn a_subscriber_is_its_own_home_and_one_subscriber_serves_non_subscribers() {
        let page = subscribers(0b0110);
        assert_eq!([0, 1, 2, 3].map(|at| page.home(ModuleId(at)).0), [1, 1, 2, 1]);
        assert_eq!(RULES.targets(page, ModuleId(2)), ModuleSet::from_bits(0b0010));
        assert_eq!(RULES.targets(page, ModuleId(0)), ModuleSet::from_bits(0b0110));
        assert!(page.are_several() && !subscribers(1).are_several() && Subscribers::new(ModuleSet::NONE).is_none());
    }

    #[test]
    fn a_lookup_finds_all_some_or_none_of_the_queued_bytes() {
        let first = PublicationEntry::added(None, Mask(0b0011), Bytes([1, 2, 9, 9]));
        let both = PublicationEntry::added(Some(first), Mask(0b0110), Bytes([9, 3, 4, 9]));
        assert_eq!(both, PublicationEntry { mask: Mask(0b0111), data: Bytes([1, 3, 4, 0]) });
        assert_eq!(RULES.look_up(Some(both), Mask(0b0101)), QueueLookup::All(both.data));
        assert_eq!(RULES.look_up(Some(both), Mask(0b1100)), QueueLookup::Part);
        assert_eq!(RULES.look_up(Some(both), Mask(0b1000)), QueueLookup::Nothing);
        assert_eq!(RULES.look_up::<Bytes>(None, Mask(1)), QueueLookup::Nothing);
    }

    #[test]
    fn an_atomic_with_a_result_waits_for_its_line_and_the_line_for_its_answer() {
        let (page, away) = (subscribers(0b0110), ModuleId(0));
        let atomic = |returns| Request::<Bytes>::Atomic { mask: Mask(1), scope: Scope::Gpu, update: (), returns };
        let idle = PendingPublications { entry: None, under_way: false, unanswered: false };
        let before = |request, line| RULES.before(page, away, &request, &line);
        assert_eq!(before(atomic(true), idle), QueueDecision::PassesBehindEntry);
        assert_eq!(before(atomic(true), PendingPublications { under_way: true, ..idle }), QueueDecision::Waits);
        assert_eq!(before(atomic(false), idle), QueueDecision::IsSent { behind_entry: true });
        assert_eq!(before(atomic(false), PendingPublications { unanswered: true, ..idle }), QueueDecision::Waits);
        assert_eq!(RULES.before(page, ModuleId(1), &atomic(true), &idle), QueueDecision::Passes);
        let answered_late = PublicationDecision::IsSent { behind_entry: true, answer_waits: true };
        assert_eq!(RULES.behind(false, &atomic(true)), answered_late);
    }

    #[test]
    fn a_store_behind_an_unanswered_atomic_of_its_line_waits_ahead_of_the_queue() {
        let (page, away) = (subscribers(0b0110), ModuleId(0));
        let store = Request::Write { mask: Mask(1), scope: Scope::Gpu, data: Bytes([9; 4]), tracked: false };
        let line = |unanswered| PendingPublications { entry: None, under_way: false, unanswered };
        assert_eq!(RULES.before(page, away, &store, &line(true)), QueueDecision::Waits);
        assert_eq!(RULES.before(page, away, &store, &line(false)), QueueDecision::IsAdded);
        assert_eq!(
            RULES.before(page, ModuleId(1), &store, &line(true)),
            QueueDecision::Passes,
            "a replica orders them"
        );
        let load = Request::Read { mask: Mask(1), scope: Scope::Gpu };
        assert_eq!(
            RULES.before(page, away, &load, &line(true)),
            QueueDecision::Passes,
            "it follows the atomic to the home"
        );
    }

    #[test]
    fn only_releases_beyond_the_gpu_empty_the_queue() {
        assert!(RULES.empties_queue(Action::DrainStores(Scope::Sys)) && RULES.empties_queue(Action::AwaitStores));
        assert!(!RULES.empties_queue(Action::DrainStores(Scope::Gpu)));
        assert!(!RULES.empties_queue(Action::DrainInvalidations(Scope::Sys)));
    }
}
