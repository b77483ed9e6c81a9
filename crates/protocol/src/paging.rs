//! Page migration between memories: the steps, and their order, that precede a change of home.
//!
//! A page has a single home, whose bytes are authoritative. A module may use a page at its home, wherever that is,
//! as allowed by its [`Mapping`]; any other access is a fault. The fault handler (the driver when timing, a step
//! when exploring) calls [`Paging::change`] and runs the resulting [`ChangeStep`]s in order. Each step starts when the
//! previous step is done everywhere:
//! 1. [`ChangeStep::Unmap`]: modules refuse the page, and wait until their accesses in flight to it are done
//!    ([`Unmapping`]).
//! 2. [`ChangeStep::WriteBack`]: L2s write the page's dirty bytes to memory and drop its lines.
//! 3. [`ChangeStep::Copy`]: its bytes move from memory to memory. The receiver then sees itself as home
//!    ([`Paging::arrived`]).
//! 4. [`ChangeStep::Map`]: each module learns its new mapping, independently. Waiting accesses resume. When all modules
//!    have acknowledged, the page's next change may begin. A published page's home learns the mapping before all
//!    other modules: see the section on published pages.
//!
//! While no module has a request in flight to a page, no message exists that a change could overtake. A request
//! therefore carries no translation. This holds if an L2 keeps only lines from its own module's memory
//! ([`pages_may_move`]). If an L2 could hold remote lines, the page would have to be unmapped, drained and dropped
//! there too; no design here does so.
//!
//! L1s keep their lines: an L1 line is never older than its SM's last acquire, wherever its home is.
//!
//! Read-only copies: with [`Paging::duplicates`] readers get their own copy, and no module may write until a write
//! moves the page to a single module. Source: CUDA's read-mostly advice (GPS, section 2.1).
//!
//! Copies of a *published* page may be written: [`crate::publication`] describes the agreement between its
//! subscribers, who have a copy each. Every module uses such a page, so every module unmaps it when its subscribers
//! change. At this point all old subscribers have received all publications, and no module publishes to the new
//! subscribers yet. Source: GPS, sections 3 and 5. The home also publishes for other modules: the values of their
//! atomics. It is therefore told about the new subscribers before any module may send it an atomic.

mod broken;
mod published;
#[cfg(test)]
mod tests;

pub use broken::BrokenPaging;
pub use published::Start;

use crate::catalogue::{UnknownProtocol, facts};
use crate::coherence::{Coherence, OrderingPoint};
use crate::options::ProtocolOptions;
use crate::topology::{Class, ModuleSet};
use tombolo_types::ModuleId;

/// A possible location of a page's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Holder {
    /// A module's memory.
    Module(ModuleId),
    /// The host's memory.
    Host,
}

impl Holder {
    /// The module, if the holder is a module.
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

/// The accesses a module may make to a page without a fault.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PagePermission {
    /// No access.
    #[default]
    None,
    /// Loads.
    Read,
    /// Loads from the page, stores to it, and atomics on it.
    Write,
}

/// An access attempted by a module, in ascending order of required rights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AttemptedAccess {
    /// A load.
    Load,
    /// A store or an atomic.
    Store,
    /// A store or an atomic at `.sys` scope: it requires a page with a single copy. Source: GPS, section 5.3.
    SystemStore,
}

/// A module's view of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mapping {
    /// The module that receives the accesses.
    pub home: ModuleId,
    /// The permitted accesses.
    pub access: PagePermission,
    /// The page's subscribers, who receive this module's published stores. Empty for an unpublished page.
    pub subscribers: ModuleSet,
}

/// A page's location and its users.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Residence {
    /// The holder with the authoritative bytes.
    pub home: Holder,
    /// Modules with their own copy. While copies exist no module may write, unless the page is published.
    pub copies: ModuleSet,
    /// Modules that may use the page: through their copy if they have a copy, else at its home.
    pub mapped: ModuleSet,
    /// Set when stores to the page are published: to its home and to all modules with a copy.
    pub published: bool,
}

impl Mapping {
    /// A mapping to this home alone.
    pub fn at(home: ModuleId, access: PagePermission) -> Mapping {
        Mapping { home, access, subscribers: ModuleSet::NONE }
    }

    /// The mapping after its module has unmapped the page: messages in flight still find their home.
    pub fn unmapped(self) -> Mapping {
        Mapping { access: PagePermission::None, ..self }
    }

    /// The mapping after its module has received [`Residence::mapping`].
    pub fn updated(self, mapping: Option<Mapping>) -> Mapping {
        mapping.unwrap_or_else(|| self.unmapped())
    }
}

impl Residence {
    /// A residence at a single home, used by `mapped`.
    pub fn at(home: Holder, mapped: ModuleSet) -> Residence {
        Residence { home, copies: ModuleSet::NONE, mapped, published: false }
    }

    /// A page published to `subscribers`. Its `home` serves modules without a copy; all modules in a machine with
    /// `modules` modules use it.
    pub fn published(home: ModuleId, subscribers: ModuleSet, modules: u8) -> Residence {
        let copies = subscribers.difference(ModuleSet::only(home));
        Residence { home: Holder::Module(home), copies, mapped: ModuleSet::first(modules), published: true }
    }

    /// The modules that hold the page's bytes.
    pub fn holders(&self) -> ModuleSet {
        self.home.set().union(self.copies)
    }

    /// The modules that receive published stores.
    pub fn subscribers(&self) -> ModuleSet {
        if self.published { self.holders() } else { ModuleSet::NONE }
    }

    /// The accesses permitted to a module.
    pub fn access(&self, module: ModuleId) -> PagePermission {
        if !self.mapped.contains(module) {
            PagePermission::None
        } else if self.published || self.copies.is_empty() {
            PagePermission::Write
        } else {
            PagePermission::Read
        }
    }

    /// A module's view of the page; `None` if the page is at the host.
    pub fn mapping(&self, module: ModuleId) -> Option<Mapping> {
        let home = if self.copies.contains(module) { Some(module) } else { self.home.module() };
        home.map(|home| Mapping { home, access: self.access(module), subscribers: self.subscribers() })
    }
}

/// The reason for a page's change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChangeReason {
    /// A module has attempted an access without permission.
    Fault {
        /// The module.
        module: ModuleId,
        /// The access.
        wanted: AttemptedAccess,
    },
    /// The page is to be moved: prefetched, or evicted to the host.
    Move {
        /// The destination.
        to: Holder,
    },
    /// A module is to receive a copy of a published page, as requested by its program or by a profile.
    Subscribe {
        /// The module.
        module: ModuleId,
    },
    /// Subscribers to a published page give up their copies. At least a single copy remains: if all would leave,
    /// the home's.
    Leave {
        /// The leaving subscribers.
        modules: ModuleSet,
        /// Set when a page with a single remaining subscriber is unpublished.
        ends: bool,
    },
}

/// The effect of a fault on a page held by another module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnFault {
    /// The page moves to the faulting module.
    #[default]
    Migrate,
    /// The faulting module maps the page remotely: CUDA's accessed-by advice, and pinning.
    MapRemotely,
}

/// A single step, performed by a set of modules at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChangeStep {
    /// These modules unmap the page according to [`Paging::unmapping`].
    Unmap(ModuleSet),
    /// The L2s in these modules write the page's dirty bytes to memory and drop its lines.
    WriteBack(ModuleSet),
    /// The page's bytes are copied.
    Copy {
        /// The source memory.
        from: Holder,
        /// The destination memory.
        to: Holder,
    },
    /// These modules receive their new mapping.
    Map {
        /// The page's new location and users.
        after: Residence,
        /// The modules to notify.
        modules: ModuleSet,
    },
}

/// A module's actions when it unmaps a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Unmapping {
    /// Refuses accesses from this moment on, and forgets translations.
    pub refuses: bool,
    /// Waits until its loads and atomics in flight to the page have been answered.
    pub awaits_loads: bool,
    /// Waits until the home has acknowledged its stores in flight.
    pub awaits_stores: bool,
    /// Sends its queue's entries for the page, and waits until the queue has no more of them.
    pub empties_queue: bool,
    /// Waits until subscribers have acknowledged its publications.
    pub awaits_publications: bool,
}

/// The rules for a design with migrating pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Paging {
    /// The effect of a fault.
    pub on_fault: OnFault,
    /// Set when a faulting load leaves the page in place and receives a copy.
    pub duplicates: bool,
    /// Set when every module may use a page at any location: a move then maps it for all modules, and no access
    /// faults.
    pub everybody: bool,
    /// The initial sharing of pages.
    pub start: Start,
    /// Set when a module that loads from a published page without its own copy subscribes to the page.
    pub subscribes: bool,
    /// The broken rule, if any.
    pub broken: Option<BrokenPaging>,
}

/// Maximum number of steps in a change.
const STEPS: usize = 5;

/// A [`ChangeStep`] without the resulting page state, which the change stores once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum PlannedStep {
    Unmap(ModuleSet),
    WriteBack(ModuleSet),
    Copy { from: Holder, to: Holder },
    Map(ModuleSet),
}

/// A change to a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PageTransition {
    steps: [Option<PlannedStep>; STEPS],
    /// The page's state after the change.
    pub after: Residence,
}

impl PageTransition {
    /// The steps, in order.
    pub fn steps(&self) -> impl Iterator<Item = ChangeStep> + '_ {
        self.steps.iter().flatten().map(|work| match *work {
            PlannedStep::Unmap(modules) => ChangeStep::Unmap(modules),
            PlannedStep::WriteBack(modules) => ChangeStep::WriteBack(modules),
            PlannedStep::Copy { from, to } => ChangeStep::Copy { from, to },
            PlannedStep::Map(modules) => ChangeStep::Map { after: self.after, modules },
        })
    }

    /// Step number `index`; `None` after the last.
    pub fn step(&self, index: u8) -> Option<ChangeStep> {
        self.steps().nth(usize::from(index))
    }

    /// True if bytes move between memories.
    pub fn copies(&self) -> bool {
        self.steps().any(|step| matches!(step, ChangeStep::Copy { .. }))
    }
}

impl Paging {
    /// On a machine with `modules` modules: the modules that may use a page newly located at `home`.
    pub fn mapped(&self, home: Holder, modules: u8) -> ModuleSet {
        match home {
            Holder::Host => ModuleSet::NONE,
            Holder::Module(_) if self.everybody => ModuleSet::first(modules),
            Holder::Module(_) => home.set(),
        }
    }

    /// The initial state of a page placed at `home`, before any event has changed it.
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

    /// True if a module with this view of a page may make an access; if false, the access faults.
    #[inline]
    pub fn allows(&self, module: ModuleId, sees: Mapping, wanted: AttemptedAccess) -> bool {
        let is_published = !sees.subscribers.is_empty();
        match wanted {
            AttemptedAccess::Load if is_published && self.subscribes => {
                sees.access >= PagePermission::Read && sees.subscribers.contains(module)
            }
            AttemptedAccess::Load => sees.access >= PagePermission::Read,
            AttemptedAccess::Store => sees.access == PagePermission::Write,
            AttemptedAccess::SystemStore => {
                let is_alone = !is_published || self.is_broken(BrokenPaging::SystemStorePublished);
                sees.access == PagePermission::Write && is_alone
            }
        }
    }

    /// The change required for a page in state `now`; `None` if the wish is already fulfilled.
    pub fn change(&self, now: &Residence, wish: ChangeReason, modules: u8) -> Option<PageTransition> {
        match wish {
            ChangeReason::Fault { module, wanted } => {
                if now.mapping(module).is_some_and(|sees| self.allows(module, sees, wanted)) {
                    return None;
                }
                if let (true, Holder::Module(home)) = (now.published, now.home) {
                    return Some(match wanted {
                        AttemptedAccess::SystemStore => self.collapse_change(now, module, modules),
                        AttemptedAccess::Load | AttemptedAccess::Store => self.subscribe_change(now, home, module),
                    });
                }
                let writes = wanted != AttemptedAccess::Load;
                Some(match (now.home, self.on_fault) {
                    (Holder::Host, _) => self.move_change(now, Holder::Module(module), modules),
                    (Holder::Module(_), OnFault::MapRemotely) if now.copies.is_empty() => PageTransition::new(
                        now,
                        &[],
                        Residence { mapped: now.mapped.union(ModuleSet::only(module)), ..*now },
                        None,
                    ),
                    (Holder::Module(home), OnFault::Migrate) if self.duplicates && !writes => {
                        self.copy_change(now, home, module)
                    }
                    (Holder::Module(_), OnFault::Migrate | OnFault::MapRemotely) => {
                        self.move_change(now, Holder::Module(module), modules)
                    }
                })
            }
            ChangeReason::Move { to } => (now.home != to).then(|| self.move_change(now, to, modules)),
            ChangeReason::Subscribe { module } => match now.home {
                Holder::Module(home) if now.published && !now.subscribers().contains(module) => {
                    Some(self.subscribe_change(now, home, module))
                }
                Holder::Module(_) | Holder::Host => None,
            },
            ChangeReason::Leave { modules, ends } => self.leave_change(now, modules, ends),
        }
    }

    /// Moves the page to `to` alone: all copies are given up. If `to` already has the page's bytes it keeps using
    /// them: they are current, because no module writes while copies exist.
    fn move_change(&self, now: &Residence, to: Holder, modules: u8) -> PageTransition {
        let keeps = to.module().filter(|&module| now.copies.contains(module) || now.home == to);
        let copies = if self.is_broken(BrokenPaging::CopyLinesKept) { ModuleSet::NONE } else { now.copies };
        let given_up = now.home.set().union(copies);
        let (unmaps, written) = match keeps {
            Some(module) => {
                let others = ModuleSet::only(module);
                (now.mapped.difference(others), given_up.difference(others))
            }
            None => (now.mapped, given_up),
        };
        let unmaps = if self.is_broken(BrokenPaging::ReadersKept) { unmaps.difference(now.copies) } else { unmaps };
        let copy = keeps.is_none().then_some(PlannedStep::Copy { from: now.home, to });
        let after = Residence::at(to, self.mapped(to, modules));
        let ordered = [Some(PlannedStep::Unmap(unmaps)), Some(PlannedStep::WriteBack(written)), copy];
        self.ordered_change(now, ordered, after)
    }

    /// Gives a reader a copy. Modules that might write lose their write access first.
    fn copy_change(&self, now: &Residence, home: ModuleId, reader: ModuleId) -> PageTransition {
        let writers = if now.copies.is_empty() { now.mapped } else { ModuleSet::NONE };
        let writers = if self.is_broken(BrokenPaging::WritersKept) { ModuleSet::NONE } else { writers };
        let with = ModuleSet::only(reader);
        let after = Residence { copies: now.copies.union(with), mapped: now.mapped.union(with), ..*now };
        let copy = PlannedStep::Copy { from: now.home, to: Holder::Module(reader) };
        let written = if now.copies.is_empty() { ModuleSet::only(home) } else { ModuleSet::NONE };
        let ordered = [Some(PlannedStep::Unmap(writers)), Some(PlannedStep::WriteBack(written)), Some(copy)];
        self.ordered_change(now, ordered, after)
    }

    fn ordered_change(
        &self,
        now: &Residence,
        [unmap, written, copy]: [Option<PlannedStep>; 3],
        after: Residence,
    ) -> PageTransition {
        let early = self.is_broken(BrokenPaging::CopiedEarly);
        let steps = if early { [copy, unmap, written] } else { [unmap, written, copy] };
        let first = if self.is_broken(BrokenPaging::HomeToldWithOthers) {
            None
        } else {
            published::home_told_first(now, &after)
        };
        let mut change = PageTransition::new(now, &steps, after, first);
        if self.is_broken(BrokenPaging::MappedEarly)
            && let Some(place) = change.steps.iter().position(|step| matches!(step, Some(PlannedStep::Copy { .. })))
        {
            change.steps[place..].rotate_left(1);
        }
        change
    }

    /// A module's actions when it unmaps a page.
    pub fn unmapping(&self) -> Unmapping {
        Unmapping {
            refuses: !self.is_broken(BrokenPaging::TranslationKept),
            awaits_loads: !self.is_broken(BrokenPaging::LoadsNotAwaited),
            awaits_stores: !self.is_broken(BrokenPaging::StoresNotAwaited),
            empties_queue: !self.is_broken(BrokenPaging::QueueKept),
            awaits_publications: !self.is_broken(BrokenPaging::PublicationsNotAwaited),
        }
    }

    /// True if dirty bytes go to memory when a page's lines are dropped.
    pub fn writes_back(&self) -> bool {
        !self.is_broken(BrokenPaging::NotWrittenBack)
    }

    /// True if a page's lines are dropped when it leaves.
    pub fn drops_lines(&self) -> bool {
        !self.is_broken(BrokenPaging::LinesKept)
    }

    /// Mapping at the page's new home `to`, from the arrival of its last byte on; `saw` is the module's previous
    /// mapping. The module acts as home for modules that receive their mapping and send requests before its own
    /// mapping arrives. Its access rights still follow with the regular map step.
    pub fn arrived(&self, to: ModuleId, saw: Mapping) -> Mapping {
        if self.is_broken(BrokenPaging::ArrivalUnknown) { saw } else { Mapping { home: to, ..saw } }
    }

    /// True if a change ends only after every module has acknowledged its new mapping, so that the next change
    /// starts later. Ordered messages are not enough: news about an older change could reach a new home after the
    /// bytes that made it home.
    pub fn awaits_map(&self) -> bool {
        !self.is_broken(BrokenPaging::MapNotAwaited)
    }

    /// The residence used to serve a fault that was raised in state `then`: the current state `now`.
    pub fn served_by(&self, then: Residence, now: Residence) -> Residence {
        if self.is_broken(BrokenPaging::ServedAsFaulted) { then } else { now }
    }

    /// True if the given rule is broken.
    fn is_broken(&self, rule: BrokenPaging) -> bool {
        self.broken == Some(rule)
    }
}

impl PageTransition {
    /// Builds a change from the steps that have participants, followed by the mapping step. A single module may be
    /// notified `first`.
    fn new(
        now: &Residence,
        steps: &[Option<PlannedStep>],
        after: Residence,
        first: Option<ModuleId>,
    ) -> PageTransition {
        let takes_part = |step: &PlannedStep| match step {
            PlannedStep::Unmap(modules) | PlannedStep::WriteBack(modules) => !modules.is_empty(),
            PlannedStep::Copy { from, to } => from != to,
            PlannedStep::Map(modules) => now != &after && !modules.is_empty(),
        };
        let first = first.map_or(ModuleSet::NONE, ModuleSet::only);
        let others = now.mapped.union(after.mapped).difference(first);
        let told = [first, others].map(PlannedStep::Map);
        let mut all = steps.iter().copied().flatten().chain(told).filter(takes_part);
        let mut steps = [None; STEPS];
        steps.iter_mut().zip(&mut all).for_each(|(place, step)| *place = Some(step));
        PageTransition { steps, after }
    }
}

/// True if pages may move under a protocol: an L2 holds only lines from its own module's memory, and all accesses
/// to these lines meet there.
pub fn pages_may_move(protocol: &impl Coherence) -> bool {
    let holds_own = Class::ALL.into_iter().all(|class| protocol.caches(class) == (class == Class::Own));
    holds_own && protocol.passes_reads() && protocol.ordering_point() == OrderingPoint::HomeL2
}

/// Like [`pages_may_move`], for the protocol called `name` with these options.
///
/// # Errors
/// Fails if no protocol has that name.
pub fn pages_may_move_under(name: &str, options: ProtocolOptions) -> Result<bool, UnknownProtocol> {
    let facts = facts(name).ok_or_else(|| UnknownProtocol { name: name.to_owned() })?;
    Ok((facts.pages_may_move)(options))
}
