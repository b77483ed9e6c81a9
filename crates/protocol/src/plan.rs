//! Acquires and releases beyond the SM, as data: phases that one controller runs one after the other, each
//! at several L2s at once.
//!
//! A controller (of the issuing module, or the command processor at a kernel's boundary) sends the phase's
//! actions to its members, collects an acknowledgment from each, then starts the next phase. What each
//! member does:
//!
//! - [`Action::Invalidate`]: bulk invalidation of the classes named; misses pending in them become stale. What is
//!   written to this module's memory by it must have been taken there.
//! - [`Action::DrainStores`]: writes back dirty bytes; waits until every store and atomic *it has sent so
//!   far* has been taken at the scope. Stores that are parked on their way count as not taken.
//! - [`Action::PassOnStores`]: the same of what it has sent to other GPUs only, on its own account and as a GPU home.
//! - [`Action::Flush`]: where memory is the ordering point: writes back the dirty bytes of every line, those homed at
//!   this module to its memory, and keeps them clean; waits until these, and every store and atomic *it has sent so
//!   far*, have been taken by memory.
//! - [`Action::AwaitStores`]: writes nothing back; waits until every store and atomic *it has sent so far* has been taken
//!   at the end of its way. Where boundaries are elided, every kernel ends with it: what was written through has arrived.
//! - [`Action::Merge`]: of a client of blocks: merges those that others may hold without its bytes; waits until that is done.
//! - [`Action::DrainInvalidations`]: waits until every invalidation *it has sent so far* has been taken at the scope.
//!
//! Taken *at `.gpu`*: by the first L2 it was sent to. What has left the GPU is not waited for. Taken *at `.sys`*: a
//! store by its system home, and what an atomic on its way there has become as well. An invalidation is taken by the
//! last of those it concerns: a GPU home answers one from another GPU when every invalidation that it has itself sent
//! of the region has been taken. These are not only those it forwards: an entry replaced a moment before has left none to
//! forward, and its invalidations may still be on their way. A GPU home that keeps a store's bytes dirty takes it at
//! `.sys` too: to write it back is its own part then, in a later phase.
//!
//! Only the sender of an invalidation can say that it has arrived: invalidations travel from home to
//! sharer, so a marker from the issuer of a release would order nothing behind them.

use crate::broken_rule::BrokenRule;
use crate::topology::{ClassSet, ModuleSet, Topology};
use tombolo_types::{ModuleId, Scope};

/// A synchronisation, as the plans of a protocol distinguish it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync {
    /// By one thread, at this scope.
    Thread(Scope),
    /// At a kernel's boundary, of the whole machine at once.
    Kernel,
}

/// Which L2s take part in a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Members {
    /// The issuer's.
    Own,
    /// Those of the issuer's GPU but the issuer's.
    OthersOfGpu,
    /// Those of the issuer's GPU.
    Gpu,
    /// All.
    All,
}

impl Members {
    /// Whether module `member` takes part in a phase that `issuer` started.
    pub fn includes(self, topology: &impl Topology, issuer: ModuleId, member: ModuleId) -> bool {
        let same_gpu = topology.gpu_of(issuer) == topology.gpu_of(member);
        match self {
            Members::Own => member == issuer,
            Members::OthersOfGpu => same_gpu && member != issuer,
            Members::Gpu => same_gpu,
            Members::All => true,
        }
    }
}

/// What a member of a phase does before it acknowledges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Drops its lines of these classes.
    Invalidate(ClassSet),
    /// Writes back dirty bytes and waits until the stores it has sent are taken at this scope: beyond the CTA.
    DrainStores(Scope),
    /// Writes back what it holds dirty as a GPU home and waits for the stores that it has sent to other GPUs.
    PassOnStores,
    /// Waits until the invalidations it has sent are taken at this scope: beyond the CTA.
    DrainInvalidations(Scope),
    /// Writes back dirty bytes of its own lines too, and waits until what it has sent is taken by memory.
    Flush,
    /// Waits until what it has sent is taken at the end of its way; its dirty bytes stay.
    AwaitStores,
    /// Merges the blocks that others may hold without its bytes ([`crate::nodes`]), and waits until that is done.
    Merge {
        /// Whether what no other holds goes back too.
        all: bool,
    },
}

impl Action {
    /// The classes of lines whose dirty bytes it writes back: those that it then waits for.
    pub fn writes_back(self) -> ClassSet {
        match self {
            Action::DrainStores(Scope::Sys) => ClassSet::NOT_OWN,
            Action::DrainStores(Scope::Cta | Scope::Gpu) => ClassSet::NOT_GPU_HOME,
            Action::PassOnStores => ClassSet::GPU_HOME,
            Action::Flush => ClassSet::ALL,
            Action::Invalidate(_) | Action::DrainInvalidations(_) | Action::AwaitStores | Action::Merge { .. } => {
                ClassSet::NONE
            }
        }
    }

    /// Whether it waits for what a member has sent inside its GPU, or (`beyond`) to another one.
    pub fn awaits(self, beyond: bool) -> bool {
        match self {
            Action::DrainStores(scope) | Action::DrainInvalidations(scope) => !beyond || scope == Scope::Sys,
            Action::PassOnStores => beyond,
            Action::Flush | Action::AwaitStores => true,
            Action::Invalidate(_) | Action::Merge { .. } => false,
        }
    }

    /// Whether it waits for what becomes of the awaited where it has been taken, up to the end of its way.
    pub fn awaits_to_the_end(self) -> bool {
        match self {
            Action::DrainStores(scope) | Action::DrainInvalidations(scope) => scope == Scope::Sys,
            Action::PassOnStores | Action::Flush | Action::AwaitStores => true,
            Action::Invalidate(_) | Action::Merge { .. } => false,
        }
    }

    /// Whether only the module whose stores are released takes part where a plan is for some modules alone. Invalidations
    /// that a store has caused are its home's, whichever module that is.
    fn is_of_writer(self) -> bool {
        !matches!(self, Action::DrainInvalidations(_))
    }
}

/// One step of an acquire or a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Phase {
    /// Who takes part.
    pub members: Members,
    /// What they do.
    pub action: Action,
    /// Whether members other than the issuer only pass on what they hold as GPU homes.
    pub others_pass_on: bool,
}

impl Phase {
    /// A phase in which all members do the same.
    pub const fn new(members: Members, action: Action) -> Phase {
        Phase { members, action, others_pass_on: false }
    }

    /// The same phase, in which members other than the issuer do [`Action::PassOnStores`].
    pub const fn others_pass_on(self) -> Phase {
        Phase { others_pass_on: true, ..self }
    }

    /// What `member` does in it where `issuer` has started it; `None` where it takes no part, or has nothing to do: on
    /// one GPU nothing passes on.
    fn action_of(&self, topology: &impl Topology, issuer: ModuleId, member: ModuleId) -> Option<Action> {
        let passes_on = self.others_pass_on && member != issuer;
        let idle = passes_on && topology.gpus() == 1;
        let action = if passes_on { Action::PassOnStores } else { self.action };
        (self.members.includes(topology, issuer, member) && !idle).then_some(action)
    }
}

/// Phases to run one after the other, each at its members or only at some of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Plan {
    phases: &'static [Phase],
    only: Option<ModuleSet>,
}

impl Plan {
    /// The same phases at the members that are in `set`; waits for invalidations stay at all.
    pub fn only(self, set: ModuleSet) -> Plan {
        Plan { only: Some(set), ..self }
    }

    /// The phase at `index`.
    fn phase(&self, index: u8) -> Option<&'static Phase> {
        self.phases.get(usize::from(index))
    }

    /// What `member` does in `phase` where `issuer` has started it.
    fn action_of(&self, phase: &Phase, topology: &impl Topology, issuer: ModuleId, member: ModuleId) -> Option<Action> {
        let takes_part = !phase.action.is_of_writer() || self.only.is_none_or(|only| only.contains(member));
        if takes_part { phase.action_of(topology, issuer, member) } else { None }
    }
}

impl From<&'static [Phase]> for Plan {
    fn from(phases: &'static [Phase]) -> Plan {
        Plan { phases, only: None }
    }
}

/// A plan being run: which phase, and how many acknowledgments it still lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Collector {
    plan: Plan,
    issuer: ModuleId,
    current: u8,
    missing: u8,
}

impl Collector {
    /// A plan about to start at `issuer`: call [`Collector::begin_phase`] next.
    pub fn new(plan: impl Into<Plan>, issuer: ModuleId) -> Collector {
        Collector { plan: plan.into(), issuer, current: 0, missing: 0 }
    }

    /// Starts the current phase: calls `send` for each member and returns true; false when all are done.
    /// Phases without members are passed over.
    pub fn begin_phase(&mut self, topology: &impl Topology, mut send: impl FnMut(ModuleId, Action)) -> bool {
        while let Some(phase) = self.plan.phase(self.current) {
            for member in (0..topology.modules()).map(ModuleId) {
                if let Some(action) = self.plan.action_of(phase, topology, self.issuer, member) {
                    self.missing += 1;
                    send(member, action);
                }
            }
            if self.missing > 0 {
                return true;
            }
            self.current += 1;
        }
        false
    }

    /// Takes one acknowledgment; true when the phase is complete and the next must begin.
    pub fn acknowledge(&mut self) -> bool {
        assert!(self.missing > 0, "an acknowledgment nobody waits for reached {}", self.issuer);
        self.missing -= 1;
        if self.missing == 0 {
            self.current += 1;
        }
        self.missing == 0
    }

    /// The phase under way; `None` when all are done.
    pub fn phase(&self) -> Option<&'static Phase> {
        self.plan.phase(self.current)
    }

    /// Acknowledgments that the current phase lacks.
    pub fn missing(&self) -> u8 {
        self.missing
    }

    /// The module that collects.
    pub fn issuer(&self) -> ModuleId {
        self.issuer
    }
}

/// The acquire with a broken rule in it: of two phases that drop the other L2s of the GPU and then the own one, at once or in
/// the other order.
pub(crate) fn acquire_with_broken_rule(
    plan: &'static [Phase],
    sync: Sync,
    rule: Option<BrokenRule>,
) -> &'static [Phase] {
    const ALL: Action = Action::Invalidate(ClassSet::ALL);
    const SPARING: Action = Action::Invalidate(ClassSet::NOT_OWN);
    const AT_ONCE: [Phase; 1] = [Phase::new(Members::Gpu, ALL)];
    const AT_ONCE_SPARING: [Phase; 1] = [Phase::new(Members::Gpu, SPARING)];
    const OWN_FIRST: [Phase; 2] = [Phase::new(Members::Own, ALL), Phase::new(Members::OthersOfGpu, ALL)];
    const OWN_FIRST_SPARING: [Phase; 2] =
        [Phase::new(Members::Own, SPARING), Phase::new(Members::OthersOfGpu, SPARING)];
    let [Phase { members: Members::OthersOfGpu, action: Action::Invalidate(classes), .. }, _] = plan else {
        return plan;
    };
    match (rule, sync, *classes == ClassSet::ALL) {
        (Some(BrokenRule::AcquireDropsGpuAtOnce), Sync::Thread(_), true) => &AT_ONCE,
        (Some(BrokenRule::AcquireDropsGpuAtOnce), Sync::Thread(_), false) => &AT_ONCE_SPARING,
        (Some(BrokenRule::AcquireDropsOwnFirst), Sync::Thread(_), true) => &OWN_FIRST,
        (Some(BrokenRule::AcquireDropsOwnFirst), Sync::Thread(_), false) => &OWN_FIRST_SPARING,
        (Some(_) | None, _, _) => plan,
    }
}

/// The release with a broken rule in it.
pub(crate) fn release_with_broken_rule(
    plan: &'static [Phase],
    sync: Sync,
    rule: Option<BrokenRule>,
) -> &'static [Phase] {
    const OWN_STORES: Phase = Phase::new(Members::Own, Action::DrainStores(Scope::Sys));
    const OWN_STORES_IN_GPU: Phase = Phase::new(Members::Own, Action::DrainStores(Scope::Gpu));
    const ALL_STORES_IN_GPU: Phase = Phase::new(Members::All, Action::DrainStores(Scope::Gpu));
    const ALL_STORES: Phase = Phase::new(Members::All, Action::DrainStores(Scope::Sys));
    const GPU_STORES: Phase = Phase::new(Members::Gpu, Action::DrainStores(Scope::Sys));
    const OWN_INVALIDATIONS: Phase = Phase::new(Members::Own, Action::DrainInvalidations(Scope::Sys));
    const ALL_INVALIDATIONS: Phase = Phase::new(Members::All, Action::DrainInvalidations(Scope::Sys));
    let drains_invalidations = |phase: &Phase| matches!(phase.action, Action::DrainInvalidations(_));
    let (stores, invalidations) = plan.split_at(plan.iter().take_while(|phase| !drains_invalidations(phase)).count());
    let flushes = plan.iter().any(|phase| phase.action == Action::Flush);
    match (rule, sync) {
        (Some(BrokenRule::ReleaseSkipsStores), _) => invalidations,
        (Some(BrokenRule::ReleaseKeepsOwnDirty), Sync::Thread(_)) if flushes => &[OWN_STORES],
        (Some(BrokenRule::ReleaseKeepsOwnDirty), Sync::Kernel) if flushes => &[ALL_STORES],
        (Some(BrokenRule::ReleaseSkipsInvalidations), _) => stores,
        (Some(BrokenRule::ReleaseMarkedByIssuer), _) if invalidations.is_empty() => plan,
        // An issuer can mark only the channels it sends on itself.
        (Some(BrokenRule::ReleaseMarkedByIssuer), Sync::Thread(_)) => &[GPU_STORES, OWN_INVALIDATIONS],
        (Some(BrokenRule::ReleaseMarkedByIssuer), Sync::Kernel) => &[ALL_STORES, OWN_INVALIDATIONS],
        (Some(BrokenRule::SystemReleaseDrainsOwnModuleOnly), Sync::Thread(Scope::Sys)) => {
            &[OWN_STORES, ALL_INVALIDATIONS]
        }
        (Some(BrokenRule::SystemReleaseStopsAtGpuHome), Sync::Thread(Scope::Sys)) => {
            &[OWN_STORES_IN_GPU, ALL_INVALIDATIONS]
        }
        (Some(BrokenRule::SystemReleaseStopsAtGpuHome), Sync::Kernel) => &[ALL_STORES_IN_GPU, ALL_INVALIDATIONS],
        (Some(_) | None, _) => plan,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coherence::Protocol;
    use crate::software_hierarchical::SoftwareHierarchical;
    use crate::vi::{BulkInvalidation, Options};

    #[test]
    fn without_a_directory_there_is_no_wait_for_invalidations_to_break() {
        let whole = SoftwareHierarchical::new(Options::default());
        for rule in [BrokenRule::ReleaseMarkedByIssuer, BrokenRule::ReleaseSkipsInvalidations] {
            let broken = SoftwareHierarchical::new(Options { broken_rule: Some(rule), ..Options::default() });
            for sync in [Sync::Thread(Scope::Gpu), Sync::Thread(Scope::Sys), Sync::Kernel] {
                assert_eq!(broken.release(sync), whole.release(sync), "{rule:?} {sync:?}");
            }
        }
    }

    #[test]
    fn a_broken_acquire_drops_the_gpu_at_once_or_the_own_l2_first() {
        let members = |bulk, broken_rule, sync| {
            let protocol = SoftwareHierarchical::new(Options { bulk, broken_rule, ..Options::default() });
            protocol.acquire(sync).iter().map(|phase| (phase.members, phase.action)).collect::<Vec<_>>()
        };
        let system = Sync::Thread(Scope::Sys);
        for (bulk, classes) in [(BulkInvalidation::All, ClassSet::ALL), (BulkInvalidation::Remote, ClassSet::NOT_OWN)] {
            let drop = Action::Invalidate(classes);
            let at_once = Some(BrokenRule::AcquireDropsGpuAtOnce);
            let own_first = Some(BrokenRule::AcquireDropsOwnFirst);
            assert_eq!(members(bulk, None, system), [(Members::OthersOfGpu, drop), (Members::Own, drop)]);
            assert_eq!(members(bulk, at_once, system), [(Members::Gpu, drop)]);
            assert_eq!(members(bulk, own_first, system), [(Members::Own, drop), (Members::OthersOfGpu, drop)]);
            for others in [Sync::Thread(Scope::Gpu), Sync::Kernel] {
                assert_eq!(members(bulk, at_once, others), members(bulk, None, others));
            }
        }
    }
}
