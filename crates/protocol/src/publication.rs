//! Pages published to their subscribers (GPS, sections 3 and 5): each subscriber has a replica, loads find it there, and what
//! anybody stores is sent to all.
//!
//! - Home: a subscriber is the home of its own replica, as it sees the page. To the others one subscriber is, always the same:
//!   two that took turns would be read in another order than they were written.
//! - Store of a subscriber: its L2 takes it, which orders the stores of its GPU; behind that it is added to the *queue* of the
//!   GPU, at its line's entry. Store of another: the queue alone takes it.
//! - Queue: an entry a line, with a mask, for other GPUs may write other bytes of the line. An entry may be sent at any time, to
//!   every other subscriber; it is gone then.
//! - Load of a module without a replica: the queue has all of its bytes, and answers; or some, and their entry is sent first,
//!   so that the load follows it to the home on the way of their line; or none.
//! - Atomic: its line's entry is sent first. The value that it left is sent to every other subscriber: were the operation sent,
//!   replicas could come to hold what nobody has written, where others store to it at the same time. One of a module without
//!   a replica and without a result is sent as an operation, for it is performed nowhere before. One with a result of a module without a replica acts at the page's home to that
//!   module, which sends the value to the others, and answers when they have it. That value goes another way than what the
//!   module itself publishes of the line: so the atomic waits until all of that is taken, and other stores and atomics of its
//!   module to the line wait ahead of the queue for the answer. An entry can then always be sent.
//! - Release beyond the GPU: sends the queue's entries, and waits until every subscriber has taken them. A `.gpu` release
//!   leaves the queue as it is.
//!
//! Channels: what is sent of a line arrives in order, at each subscriber. No order between lines is asked for.
//!
//! Store or atomic at `.sys` scope: it asks for a page of one copy, so a published page collapses before it. A load at `.sys`
//! scope is as any other: behind the L1, in the module's own replica or at the page's home.
//!
//! Not here: how subscribers change and a page collapses ([`crate::paging`]); GPUs of several modules.

use crate::coherence::Request;
use crate::data::Data;
use crate::plan::Action;
use crate::topology::ModuleSet;
use std::fmt;
use tombolo_types::{Mask, ModuleId, Scope};

/// Modules with a replica of a page: at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Subscribers(ModuleSet);

impl Subscribers {
    /// These; `None` where there is none.
    pub fn new(modules: ModuleSet) -> Option<Subscribers> {
        (!modules.is_empty()).then_some(Subscribers(modules))
    }

    /// These.
    pub fn modules(self) -> ModuleSet {
        self.0
    }

    /// Whether `module` has a replica.
    pub fn contains(self, module: ModuleId) -> bool {
        self.0.contains(module)
    }

    /// Whether there is more than one: what is stored to a page of one goes to its home, as to any page.
    pub fn are_several(self) -> bool {
        self.0.count() > 1
    }

    /// All but `module`: to whom it publishes.
    pub fn others(self, module: ModuleId) -> ModuleSet {
        self.0.without(ModuleSet::only(module))
    }

    /// The one that serves those without a replica.
    pub fn server(self) -> ModuleId {
        self.0.lowest().expect("there is at least one")
    }

    /// The home of the page as `at` sees it.
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

/// What a module's queue has of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Entry<D> {
    /// Bytes that were stored.
    pub mask: Mask,
    /// Contents.
    pub data: D,
}

/// What a load of a module without a replica finds in its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found<D> {
    /// None of its bytes.
    Nothing,
    /// Some.
    Part,
    /// All.
    All(D),
}

/// What a module has under way of a line of a published page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Publishing<D> {
    /// What its queue has.
    pub entry: Option<Entry<D>>,
    /// Whether something that it has published is not taken by all yet.
    pub under_way: bool,
    /// Whether an atomic that it has sent to the page's home is not answered yet.
    pub unanswered: bool,
}

/// What becomes of a request of a module's own SMs before its L2 sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Before<D> {
    /// The L2 takes it.
    Passes,
    /// The line's entry is sent, then the L2 takes it.
    PassesBehindEntry,
    /// It is added to the queue, and done.
    IsAdded,
    /// It was added when it was issued, and is done.
    WasAdded,
    /// The queue has its bytes.
    Answered(D),
    /// It is sent to every subscriber, and done.
    IsSent {
        /// Behind the line's entry.
        behind_entry: bool,
    },
    /// It waits, and what follows it of its line; the line's entry is sent as soon as it may be.
    Waits,
}

/// What becomes of a request that the L2 of a subscriber has taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behind {
    /// Nothing.
    Nothing,
    /// It is added to the queue.
    IsAdded,
    /// It is sent to every other subscriber.
    IsSent {
        /// Behind the line's entry.
        behind_entry: bool,
        /// Whether its answer waits until all have taken that.
        answer_waits: bool,
    },
}

/// A broken rule of published pages. The explorer must catch each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BrokenPublication {
    /// A release leaves the queue as it is.
    QueueNotEmptied,
    /// A release waits until entries are sent, not until they are taken.
    DeliveryNotAwaited,
    /// An entry stays open when it is sent, and is sent again.
    EntryKept,
    /// A line is published as a whole, with bytes that others may have written since.
    WholeLine,
    /// A store is added to the queue before the L2 takes it: stores of two SMs may be published in the other order.
    AddedBeforeOrder,
    /// An atomic is published before the stores to its line that are in the queue.
    AtomicPassesEntry,
    /// What a subscriber stores is sent to the others, and not written to its own replica.
    ReplicaNotWritten,
    /// A load of a module without a replica does not look into the queue.
    LoadIgnoresQueue,
    /// A load takes some of its bytes from the queue, and for the others what the line of an entry holds there.
    PartTaken,
    /// A load that finds some of its bytes in the queue goes ahead of their entry.
    LoadPassesEntry,
    /// One subscriber is left out where an entry is sent.
    SubscriberForgotten,
    /// An atomic goes to the page's home while stores of its module to the line are on their way to other subscribers.
    AtomicPassesPublication,
    /// A store is added to the queue, or an atomic without a result sent, while an atomic of its module on the line is not
    /// answered. A release, a load or a full queue may then send what the value of the atomic comes behind.
    StorePassesAtomic,
    /// The home of a page answers an atomic before the others have its value.
    AnsweredEarly,
}

impl BrokenPublication {
    /// Every one.
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

/// The rules of published pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Publication {
    /// The broken rule, if any.
    pub broken: Option<BrokenPublication>,
}

impl<D: Data> Entry<D> {
    /// What the queue has of a line once `store`, of these bytes, is added.
    pub fn added(earlier: Option<Entry<D>>, mask: Mask, store: D) -> Entry<D> {
        let Entry { mask: before, mut data } = earlier.unwrap_or(Entry { mask: Mask::NONE, data: D::default() });
        data.merge(store, mask);
        Entry { mask: before | mask, data }
    }
}

impl Publication {
    /// What becomes of a request of an SM of `at` before the L2 there sees it.
    pub fn before<D: Data>(
        &self,
        subscribers: Subscribers,
        at: ModuleId,
        request: &Request<D>,
        line: &Publishing<D>,
    ) -> Before<D> {
        if subscribers.contains(at) {
            let skips =
                matches!(request, Request::Write { .. }) && self.is_broken(BrokenPublication::ReplicaNotWritten);
            return if skips { Before::IsAdded } else { Before::Passes };
        }
        let behind_entry = !self.is_broken(BrokenPublication::AtomicPassesEntry);
        match *request {
            Request::Read { mask, .. } => match self.find(line.entry, mask) {
                Found::Nothing => Before::Passes,
                Found::Part => Before::PassesBehindEntry,
                Found::All(data) => Before::Answered(data),
            },
            Request::Write { .. } if self.is_broken(BrokenPublication::AddedBeforeOrder) => Before::WasAdded,
            Request::Write { .. } | Request::Atomic { returns: false, .. } if self.awaits_answer(line) => Before::Waits,
            Request::Write { .. } => Before::IsAdded,
            Request::Atomic { returns: false, .. } => Before::IsSent { behind_entry },
            Request::Atomic { returns: true, .. } => {
                let waits = !self.is_broken(BrokenPublication::AtomicPassesPublication);
                match (waits && (line.entry.is_some() || line.under_way), behind_entry) {
                    (true, _) => Before::Waits,
                    (false, true) => Before::PassesBehindEntry,
                    (false, false) => Before::Passes,
                }
            }
        }
    }

    /// What becomes of a request that the L2 of the subscriber `at` has taken, from an SM of its `own` or from another module.
    /// What was published ends there. Of an atomic the value is sent that it has left.
    pub fn behind<D: Data>(&self, own: bool, request: &Request<D>) -> Behind {
        match request {
            Request::Read { .. } => Behind::Nothing,
            Request::Write { .. } => {
                let adds = own && !self.is_broken(BrokenPublication::AddedBeforeOrder);
                if adds { Behind::IsAdded } else { Behind::Nothing }
            }
            Request::Atomic { .. } => Behind::IsSent {
                behind_entry: !self.is_broken(BrokenPublication::AtomicPassesEntry),
                answer_waits: !own && !self.is_broken(BrokenPublication::AnsweredEarly),
            },
        }
    }

    /// Whether a store is added to the queue when it is issued: only where a rule is broken.
    pub fn adds_at_issue(&self) -> bool {
        self.is_broken(BrokenPublication::AddedBeforeOrder)
    }

    /// Whether a store or an atomic without a result, of a module without a replica, waits for the answer to an atomic. It would
    /// reach subscribers on another way than the value of that atomic, and ahead of it.
    fn awaits_answer<D>(&self, line: &Publishing<D>) -> bool {
        line.unanswered && !self.is_broken(BrokenPublication::StorePassesAtomic)
    }

    /// To whom `from` sends what it publishes of a page.
    pub fn targets(&self, subscribers: Subscribers, from: ModuleId) -> ModuleSet {
        let all = subscribers.others(from);
        if self.is_broken(BrokenPublication::SubscriberForgotten) {
            return all.highest().map_or(all, |last| all.without(ModuleSet::only(last)));
        }
        all
    }

    /// What is sent of an entry of a line that its own replica `holds`, where there is one.
    pub fn sent<D: Data>(&self, entry: Entry<D>, whole: Mask, holds: Option<D>) -> Entry<D> {
        match holds {
            Some(mut data) if self.is_broken(BrokenPublication::WholeLine) => {
                data.merge(entry.data, entry.mask);
                Entry { mask: whole, data }
            }
            Some(_) | None => entry,
        }
    }

    /// Whether an entry is gone when it is sent.
    pub fn closes(&self) -> bool {
        !self.is_broken(BrokenPublication::EntryKept)
    }

    /// What a load of these bytes finds in the queue of a module without a replica.
    fn find<D: Data>(&self, entry: Option<Entry<D>>, mask: Mask) -> Found<D> {
        let Some(entry) = entry.filter(|_| !self.is_broken(BrokenPublication::LoadIgnoresQueue)) else {
            return Found::Nothing;
        };
        if entry.mask.contains(mask) {
            Found::All(entry.data)
        } else if (entry.mask & mask).is_empty() {
            Found::Nothing
        } else if self.is_broken(BrokenPublication::PartTaken) {
            Found::All(entry.data)
        } else if self.is_broken(BrokenPublication::LoadPassesEntry) {
            Found::Nothing
        } else {
            Found::Part
        }
    }

    /// Whether an action of a release sends all that the queue of its member has.
    pub fn empties_queue(&self, action: Action) -> bool {
        let beyond = match action {
            Action::DrainStores(scope) => scope == Scope::Sys,
            Action::PassOnStores | Action::Flush | Action::AwaitStores => true,
            Action::Invalidate(_) | Action::DrainInvalidations(_) | Action::Merge { .. } => false,
        };
        beyond && !self.is_broken(BrokenPublication::QueueNotEmptied)
    }

    /// Whether a release waits until subscribers have taken what is sent to them.
    pub fn awaits_delivery(&self) -> bool {
        !self.is_broken(BrokenPublication::DeliveryNotAwaited)
    }

    /// Whether a rule is broken so.
    fn is_broken(&self, rule: BrokenPublication) -> bool {
        self.broken == Some(rule)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line of four bytes.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    struct Bytes([u8; 4]);

    impl Data for Bytes {
        type Update = ();

        fn merge(&mut self, from: Bytes, mask: Mask) {
            (0..4).filter(|byte| mask.0 >> byte & 1 != 0).for_each(|byte| self.0[byte] = from.0[byte]);
        }

        fn update(&mut self, (): (), _: Mask) -> Bytes {
            *self
        }
    }

    const RULES: Publication = Publication { broken: None };

    fn subscribers(modules: u64) -> Subscribers {
        Subscribers::new(ModuleSet::from_bits(modules)).unwrap()
    }

    #[test]
    fn a_subscriber_is_its_own_home_and_one_serves_the_others() {
        let page = subscribers(0b0110);
        assert_eq!([0, 1, 2, 3].map(|at| page.home(ModuleId(at)).0), [1, 1, 2, 1]);
        assert_eq!(RULES.targets(page, ModuleId(2)), ModuleSet::from_bits(0b0010));
        assert_eq!(RULES.targets(page, ModuleId(0)), ModuleSet::from_bits(0b0110));
        assert!(page.are_several() && !subscribers(1).are_several() && Subscribers::new(ModuleSet::NONE).is_none());
    }

    #[test]
    fn a_load_finds_all_part_or_nothing_of_what_was_added() {
        let first = Entry::added(None, Mask(0b0011), Bytes([1, 2, 9, 9]));
        let both = Entry::added(Some(first), Mask(0b0110), Bytes([9, 3, 4, 9]));
        assert_eq!(both, Entry { mask: Mask(0b0111), data: Bytes([1, 3, 4, 0]) });
        assert_eq!(RULES.find(Some(both), Mask(0b0101)), Found::All(both.data));
        assert_eq!(RULES.find(Some(both), Mask(0b1100)), Found::Part);
        assert_eq!(RULES.find(Some(both), Mask(0b1000)), Found::Nothing);
        assert_eq!(RULES.find::<Bytes>(None, Mask(1)), Found::Nothing);
    }

    #[test]
    fn an_atomic_with_a_result_waits_for_its_line_and_the_line_for_its_answer() {
        let (page, away) = (subscribers(0b0110), ModuleId(0));
        let atomic = |returns| Request::<Bytes>::Atomic { mask: Mask(1), scope: Scope::Gpu, update: (), returns };
        let idle = Publishing { entry: None, under_way: false, unanswered: false };
        let before = |request, line| RULES.before(page, away, &request, &line);
        assert_eq!(before(atomic(true), idle), Before::PassesBehindEntry);
        assert_eq!(before(atomic(true), Publishing { under_way: true, ..idle }), Before::Waits);
        assert_eq!(before(atomic(false), idle), Before::IsSent { behind_entry: true });
        assert_eq!(before(atomic(false), Publishing { unanswered: true, ..idle }), Before::Waits);
        assert_eq!(RULES.before(page, ModuleId(1), &atomic(true), &idle), Before::Passes);
        let answered_late = Behind::IsSent { behind_entry: true, answer_waits: true };
        assert_eq!(RULES.behind(false, &atomic(true)), answered_late);
    }

    #[test]
    fn a_store_behind_an_unanswered_atomic_of_its_line_waits_ahead_of_the_queue() {
        let (page, away) = (subscribers(0b0110), ModuleId(0));
        let store = Request::Write { mask: Mask(1), scope: Scope::Gpu, data: Bytes([9; 4]), tracked: false };
        let line = |unanswered| Publishing { entry: None, under_way: false, unanswered };
        assert_eq!(RULES.before(page, away, &store, &line(true)), Before::Waits);
        assert_eq!(RULES.before(page, away, &store, &line(false)), Before::IsAdded);
        assert_eq!(RULES.before(page, ModuleId(1), &store, &line(true)), Before::Passes, "a replica orders them");
        let load = Request::Read { mask: Mask(1), scope: Scope::Gpu };
        assert_eq!(RULES.before(page, away, &load, &line(true)), Before::Passes, "it follows the atomic to the home");
    }

    #[test]
    fn what_leaves_the_gpu_empties_the_queue_and_what_stays_inside_does_not() {
        assert!(RULES.empties_queue(Action::DrainStores(Scope::Sys)) && RULES.empties_queue(Action::AwaitStores));
        assert!(!RULES.empties_queue(Action::DrainStores(Scope::Gpu)));
        assert!(!RULES.empties_queue(Action::DrainInvalidations(Scope::Sys)));
    }
}
