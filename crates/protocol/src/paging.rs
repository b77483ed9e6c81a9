//! Pages that move between memories: what is done, and in which order, before a page has another home.
//!
//! A page has one home, whose bytes count. A module may use a page at its home, wherever that is, as its [`Mapping`] says;
//! what it may not do is a fault. Somebody who serves faults (the driver when timing, a step when exploring) asks
//! [`Paging::change`] what is to be done and runs its [`Step`]s in order, each when the one before is done everywhere:
//! 1. [`Step::Unmap`]: modules refuse the page, and wait until what they have under way to it is over ([`Unmapping`]).
//! 2. [`Step::WriteBack`]: what L2s hold of it goes to memory, and its lines are dropped.
//! 3. [`Step::Copy`]: its bytes go from one memory to another. Who has them sees itself as their home ([`Paging::arrived`]).
//! 4. [`Step::Map`]: modules learn how they see it now, each by itself. Who waits goes on. When all have heard, the next
//!    change of the page may begin. The home of a published page learns it before the others: see there.
//!
//! While nobody has a request under way to a page, it has no message that a change could overtake: so a request carries no
//! translation. That holds where an L2 keeps lines of its own module's memory alone ([`pages_may_move`]). Where others' lines
//! live in an L2 the page would have to be unmapped, drained and dropped there too, which no design here does.
//!
//! L1s keep what they hold: a line in one is no older than its SM's last acquire, wherever its home is.
//!
//! Read-only copies: with [`Paging::duplicates`] readers get a copy of their own, and nobody may write until a write
//! gives the page to one of them alone. Source: CUDA's read-mostly advice (GPS, section 2.1).
//!
//! Copies of a *published* page may be written: [`crate::publication`] says how its subscribers, who have one each, agree.
//! Every module uses such a page, so every module unmaps it when its subscribers change: what it has published has been taken
//! by all of the old ones then, and nobody publishes to the new ones yet. Source: GPS, sections 3 and 5. Its home publishes for
//! others too: the values of their atomics. So it is told of the new subscribers before anybody may ask it for that.

mod broken;
mod published;
#[cfg(test)]
mod tests;

pub use broken::BrokenPaging;
pub use published::Start;

use crate::catalogue::{UnknownProtocol, Visitor, choose};
use crate::coherence::{Coherence, OrderingPoint};
use crate::options::Options;
use crate::topology::{Class, ModuleSet};
use tombolo_types::ModuleId;

/// Who can hold a page's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Holder {
    /// The memory of a module.
    Module(ModuleId),
    /// The host's memory.
    Host,
}

impl Holder {
    /// The module, where it is one.
    pub fn module(self) -> Option<ModuleId> {
        match self {
            Holder::Module(module) => Some(module),
            Holder::Host => None,
        }
    }

    fn set(self) -> ModuleSet {
        self.module().map_or(ModuleSet::NONE, ModuleSet::only)
    }
}

/// What a module may do with a page without a fault.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Access {
    /// Nothing.
    #[default]
    None,
    /// Load from it.
    Read,
    /// Load from it, store to it, and perform atomics on it.
    Write,
}

/// An access that a module wants to make, the one that asks least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Wanted {
    /// A load.
    Load,
    /// A store or an atomic.
    Store,
    /// One of these at `.sys` scope: it asks for a page that has one copy. Source: GPS, section 5.3.
    SystemStore,
}

/// How one module sees a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mapping {
    /// Where its accesses go.
    pub home: ModuleId,
    /// Which it may make.
    pub access: Access,
    /// To whom it publishes what it stores: the page's subscribers. Of a page that is not published none.
    pub subscribers: ModuleSet,
}

/// Where a page is, and who may use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Residence {
    /// Whose bytes count.
    pub home: Holder,
    /// Modules with a copy of their own. While there are any nobody may write, unless it is published.
    pub copies: ModuleSet,
    /// Modules that may use it: in their copy where they have one, else at its home.
    pub mapped: ModuleSet,
    /// Whether what is stored to it is published: to its home and to all with a copy.
    pub published: bool,
}

impl Mapping {
    /// At this home alone.
    pub fn at(home: ModuleId, access: Access) -> Mapping {
        Mapping { home, access, subscribers: ModuleSet::NONE }
    }

    /// What it becomes as its module unmaps the page: what is on its way still finds its home.
    pub fn refused(self) -> Mapping {
        Mapping { access: Access::None, ..self }
    }

    /// What it becomes as its module is told [`Residence::mapping`].
    pub fn told(self, mapping: Option<Mapping>) -> Mapping {
        mapping.unwrap_or_else(|| self.refused())
    }
}

impl Residence {
    /// At one home, used by `mapped`.
    pub fn at(home: Holder, mapped: ModuleSet) -> Residence {
        Residence { home, copies: ModuleSet::NONE, mapped, published: false }
    }

    /// Published to `subscribers`, of whom `home` serves those without a copy; used by all of `modules` modules.
    pub fn published(home: ModuleId, subscribers: ModuleSet, modules: u8) -> Residence {
        let copies = subscribers.without(ModuleSet::only(home));
        Residence { home: Holder::Module(home), copies, mapped: ModuleSet::first(modules), published: true }
    }

    /// Who has its bytes.
    pub fn holders(&self) -> ModuleSet {
        self.home.set().and(self.copies)
    }

    /// To whom what is stored to it is published.
    pub fn subscribers(&self) -> ModuleSet {
        if self.published { self.holders() } else { ModuleSet::NONE }
    }

    /// What a module may do.
    pub fn access(&self, module: ModuleId) -> Access {
        if !self.mapped.contains(module) {
            Access::None
        } else if self.published || self.copies.is_empty() {
            Access::Write
        } else {
            Access::Read
        }
    }

    /// How a module sees it; `None` where the page is the host's.
    pub fn mapping(&self, module: ModuleId) -> Option<Mapping> {
        let home = if self.copies.contains(module) { Some(module) } else { self.home.module() };
        home.map(|home| Mapping { home, access: self.access(module), subscribers: self.subscribers() })
    }
}

/// Why a page is to change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wish {
    /// A module has made an access that it may not make.
    Fault {
        /// Which.
        module: ModuleId,
        /// What it was.
        wanted: Wanted,
    },
    /// It is to be elsewhere: prefetched, or evicted to the host.
    Move {
        /// Where.
        to: Holder,
    },
    /// A module is to have a copy of a published page: its program asks for that, or a profile of it.
    Subscribe {
        /// Which.
        module: ModuleId,
    },
    /// Subscribers of a published page give up their copies. One remains: where all would leave, its home.
    Leave {
        /// Who.
        modules: ModuleSet,
        /// Whether a page with one subscriber left is published no more.
        ends: bool,
    },
}

/// What a fault does to a page that another module holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnFault {
    /// It moves to whom it misses.
    #[default]
    Migrate,
    /// Whom it misses uses it where it is: CUDA's accessed-by advice, and pinning.
    MapRemotely,
}

/// One thing to be done, by all of a set at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// These modules unmap the page as [`Paging::unmapping`] says.
    Unmap(ModuleSet),
    /// The L2s of these modules write the page's dirty bytes to memory and drop its lines.
    WriteBack(ModuleSet),
    /// The page's bytes are copied.
    Copy {
        /// From this memory.
        from: Holder,
        /// To this one.
        to: Holder,
    },
    /// These modules see it so.
    Map {
        /// Where it is, and who may use it.
        after: Residence,
        /// Who is told.
        modules: ModuleSet,
    },
}

/// What a module does to unmap a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Unmapping {
    /// It refuses accesses from now on, and forgets translations.
    pub refuses: bool,
    /// It waits until its loads and atomics under way to the page have been answered.
    pub awaits_loads: bool,
    /// It waits until the home has taken its stores under way.
    pub awaits_stores: bool,
    /// It sends what its queue has of the page, and waits until that has no more of it.
    pub empties_queue: bool,
    /// It waits until subscribers have taken what it has published.
    pub awaits_publications: bool,
}

/// The rules of a design whose pages move.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Paging {
    /// What a fault does.
    pub on_fault: OnFault,
    /// Whether a load that faults leaves the page where it is and gets a copy.
    pub duplicates: bool,
    /// Whether every module may use a page wherever it is: then a move maps it for all, and nobody faults.
    pub everybody: bool,
    /// How pages are shared at first.
    pub start: Start,
    /// Whether a module that loads from a published page without a copy of its own subscribes to it.
    pub subscribes: bool,
    /// The broken rule, if any.
    pub broken: Option<BrokenPaging>,
}

/// Steps that a change has at most.
const STEPS: usize = 5;

/// A [`Step`] of a change that knows the page behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Work {
    Unmap(ModuleSet),
    WriteBack(ModuleSet),
    Copy { from: Holder, to: Holder },
    Map(ModuleSet),
}

/// What is to be done to a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Change {
    steps: [Option<Work>; STEPS],
    /// The page behind it.
    pub after: Residence,
}

impl Change {
    /// The steps, in order.
    pub fn steps(&self) -> impl Iterator<Item = Step> + '_ {
        self.steps.iter().flatten().map(|work| match *work {
            Work::Unmap(modules) => Step::Unmap(modules),
            Work::WriteBack(modules) => Step::WriteBack(modules),
            Work::Copy { from, to } => Step::Copy { from, to },
            Work::Map(modules) => Step::Map { after: self.after, modules },
        })
    }

    /// Step number `index`; `None` behind the last.
    pub fn step(&self, index: u8) -> Option<Step> {
        self.steps().nth(usize::from(index))
    }

    /// Whether bytes move between memories.
    pub fn copies(&self) -> bool {
        self.steps().any(|step| matches!(step, Step::Copy { .. }))
    }
}

impl Paging {
    /// Of a machine of `modules` modules: who may use a page that comes to be at `home`.
    pub fn mapped(&self, home: Holder, modules: u8) -> ModuleSet {
        match home {
            Holder::Host => ModuleSet::NONE,
            Holder::Module(_) if self.everybody => ModuleSet::first(modules),
            Holder::Module(_) => home.set(),
        }
    }

    /// A page that was placed at `home` and to which nothing has happened yet.
    pub fn placed(&self, home: ModuleId, modules: u8) -> Residence {
        match self.start {
            Start::OneCopy => {
                let home = Holder::Module(home);
                Residence::at(home, self.mapped(home, modules))
            }
            Start::PublishedToHome => Residence::published(home, ModuleSet::only(home), modules),
            Start::PublishedToAll => Residence::published(ModuleId(0), ModuleSet::first(modules), modules),
        }
    }

    /// Whether a module that sees a page so may make an access: where not, that is a fault.
    #[inline]
    pub fn allows(&self, module: ModuleId, sees: Mapping, wanted: Wanted) -> bool {
        let is_published = !sees.subscribers.is_empty();
        match wanted {
            Wanted::Load if is_published && self.subscribes => {
                sees.access >= Access::Read && sees.subscribers.contains(module)
            }
            Wanted::Load => sees.access >= Access::Read,
            Wanted::Store => sees.access == Access::Write,
            Wanted::SystemStore => {
                let is_alone = !is_published || self.is_broken(BrokenPaging::SystemStorePublished);
                sees.access == Access::Write && is_alone
            }
        }
    }

    /// What is to be done to a page at `now`; `None` where the wish is fulfilled.
    pub fn change(&self, now: &Residence, wish: Wish, modules: u8) -> Option<Change> {
        match wish {
            Wish::Fault { module, wanted } => {
                if now.mapping(module).is_some_and(|sees| self.allows(module, sees, wanted)) {
                    return None;
                }
                if let (true, Holder::Module(home)) = (now.published, now.home) {
                    return Some(match wanted {
                        Wanted::SystemStore => self.collapsed(now, module, modules),
                        Wanted::Load | Wanted::Store => self.subscribed(now, home, module),
                    });
                }
                let writes = wanted != Wanted::Load;
                Some(match (now.home, self.on_fault) {
                    (Holder::Host, _) => self.moved(now, Holder::Module(module), modules),
                    (Holder::Module(_), OnFault::MapRemotely) if now.copies.is_empty() => Change::new(
                        now,
                        &[],
                        Residence { mapped: now.mapped.and(ModuleSet::only(module)), ..*now },
                        None,
                    ),
                    (Holder::Module(home), OnFault::Migrate) if self.duplicates && !writes => {
                        self.duplicated(now, home, module)
                    }
                    (Holder::Module(_), OnFault::Migrate | OnFault::MapRemotely) => {
                        self.moved(now, Holder::Module(module), modules)
                    }
                })
            }
            Wish::Move { to } => (now.home != to).then(|| self.moved(now, to, modules)),
            Wish::Subscribe { module } => match now.home {
                Holder::Module(home) if now.published && !now.subscribers().contains(module) => {
                    Some(self.subscribed(now, home, module))
                }
                Holder::Module(_) | Holder::Host => None,
            },
            Wish::Leave { modules, ends } => self.left(now, modules, ends),
        }
    }

    /// The page goes to `to`, and to nobody else: copies are given up. Where `to` has its bytes it goes on using them: they
    /// are current, for nobody writes while there are copies.
    fn moved(&self, now: &Residence, to: Holder, modules: u8) -> Change {
        let keeps = to.module().filter(|&module| now.copies.contains(module) || now.home == to);
        let copies = if self.is_broken(BrokenPaging::CopyLinesKept) { ModuleSet::NONE } else { now.copies };
        let given_up = now.home.set().and(copies);
        let (unmaps, written) = match keeps {
            Some(module) => {
                let others = ModuleSet::only(module);
                (now.mapped.without(others), given_up.without(others))
            }
            None => (now.mapped, given_up),
        };
        let unmaps = if self.is_broken(BrokenPaging::ReadersKept) { unmaps.without(now.copies) } else { unmaps };
        let copy = keeps.is_none().then_some(Work::Copy { from: now.home, to });
        let after = Residence::at(to, self.mapped(to, modules));
        let ordered = [Some(Work::Unmap(unmaps)), Some(Work::WriteBack(written)), copy];
        self.ordered(now, ordered, after)
    }

    /// A reader gets a copy. Who might write gives that up first.
    fn duplicated(&self, now: &Residence, home: ModuleId, reader: ModuleId) -> Change {
        let writers = if now.copies.is_empty() { now.mapped } else { ModuleSet::NONE };
        let writers = if self.is_broken(BrokenPaging::WritersKept) { ModuleSet::NONE } else { writers };
        let with = ModuleSet::only(reader);
        let after = Residence { copies: now.copies.and(with), mapped: now.mapped.and(with), ..*now };
        let copy = Work::Copy { from: now.home, to: Holder::Module(reader) };
        let written = if now.copies.is_empty() { ModuleSet::only(home) } else { ModuleSet::NONE };
        let ordered = [Some(Work::Unmap(writers)), Some(Work::WriteBack(written)), Some(copy)];
        self.ordered(now, ordered, after)
    }

    fn ordered(&self, now: &Residence, [unmap, written, copy]: [Option<Work>; 3], after: Residence) -> Change {
        let early = self.is_broken(BrokenPaging::CopiedEarly);
        let steps = if early { [copy, unmap, written] } else { [unmap, written, copy] };
        let first = if self.is_broken(BrokenPaging::HomeToldWithOthers) {
            None
        } else {
            published::home_told_first(now, &after)
        };
        let mut change = Change::new(now, &steps, after, first);
        if self.is_broken(BrokenPaging::MappedEarly)
            && let Some(place) = change.steps.iter().position(|step| matches!(step, Some(Work::Copy { .. })))
        {
            change.steps[place..].rotate_left(1);
        }
        change
    }

    /// What a module does to unmap a page.
    pub fn unmapping(&self) -> Unmapping {
        Unmapping {
            refuses: !self.is_broken(BrokenPaging::TranslationKept),
            awaits_loads: !self.is_broken(BrokenPaging::LoadsNotAwaited),
            awaits_stores: !self.is_broken(BrokenPaging::StoresNotAwaited),
            empties_queue: !self.is_broken(BrokenPaging::QueueKept),
            awaits_publications: !self.is_broken(BrokenPaging::PublicationsNotAwaited),
        }
    }

    /// Whether dirty bytes go to memory when a page's lines are dropped.
    pub fn writes_back(&self) -> bool {
        !self.is_broken(BrokenPaging::NotWrittenBack)
    }

    /// Whether a page's lines are dropped when it leaves.
    pub fn drops_lines(&self) -> bool {
        !self.is_broken(BrokenPaging::LinesKept)
    }

    /// How module `to`, to whom all of a page has been copied, sees it from then on, who `saw` it so: as its home, for whoever
    /// is told of that before it asks there. What it may do it is told with the others.
    pub fn arrived(&self, to: ModuleId, saw: Mapping) -> Mapping {
        if self.is_broken(BrokenPaging::ArrivalUnknown) { saw } else { Mapping { home: to, ..saw } }
    }

    /// Whether a change is over when every module has heard how it sees the page now: only then another may begin. Messages
    /// in order are not enough: news of an older change could reach a new home behind the bytes that made it one.
    pub fn awaits_map(&self) -> bool {
        !self.is_broken(BrokenPaging::MapNotAwaited)
    }

    /// By which residence a fault is served that was made while the page was as at `then`: as the page is `now`.
    pub fn served_by(&self, then: Residence, now: Residence) -> Residence {
        if self.is_broken(BrokenPaging::ServedAsFaulted) { then } else { now }
    }

    /// Whether a rule is broken so.
    fn is_broken(&self, rule: BrokenPaging) -> bool {
        self.broken == Some(rule)
    }
}

impl Change {
    /// Of steps that somebody takes part in, and the mapping behind them, of which one module may be told `first`.
    fn new(now: &Residence, steps: &[Option<Work>], after: Residence, first: Option<ModuleId>) -> Change {
        let takes_part = |step: &Work| match step {
            Work::Unmap(modules) | Work::WriteBack(modules) => !modules.is_empty(),
            Work::Copy { from, to } => from != to,
            Work::Map(modules) => now != &after && !modules.is_empty(),
        };
        let first = first.map_or(ModuleSet::NONE, ModuleSet::only);
        let others = now.mapped.and(after.mapped).without(first);
        let told = [first, others].map(Work::Map);
        let mut all = steps.iter().copied().flatten().chain(told).filter(takes_part);
        let mut steps = [None; STEPS];
        steps.iter_mut().zip(&mut all).for_each(|(place, step)| *place = Some(step));
        Change { steps, after }
    }
}

/// Whether pages may move under a protocol: an L2 holds lines of its own module's memory alone, where all accesses to them
/// meet.
pub fn pages_may_move(protocol: &impl Coherence) -> bool {
    let holds_own = Class::ALL.into_iter().all(|class| protocol.caches(class) == (class == Class::Own));
    holds_own && protocol.passes_reads() && protocol.ordering_point() == OrderingPoint::HomeL2
}

/// The same of the protocol called `name`, with these options.
///
/// # Errors
/// Where no protocol has that name.
pub fn pages_may_move_under(name: &str, options: Options) -> Result<bool, UnknownProtocol> {
    struct MayMove;

    impl Visitor for MayMove {
        type Output = bool;

        fn visit<P: Coherence>(self, protocol: P) -> bool {
            pages_may_move(&protocol)
        }

        /// The host's memory holds every page.
        fn visit_nodes<P: crate::nodes::Nodes>(self, _: P) -> bool {
            false
        }
    }

    choose(name, options, MayMove)
}
