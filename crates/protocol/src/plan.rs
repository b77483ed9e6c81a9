//! Acquires and releases beyond the SM, as data: phases run in sequence by a single controller, each at several L2s
//! at once.
//!
//! A controller (in the issuing module, or the command processor at a kernel boundary) sends the phase's actions to
//! its members, collects an acknowledgment from each, then starts the next phase. Each member performs an action:
//!
//! - [`Action::Invalidate`]: bulk invalidation for the named classes; pending misses in these classes become stale.
//!   The member's resulting writes to its module's memory must be accepted there first.
//! - [`Action::DrainStores`]: writes back dirty bytes; waits until every store and atomic *sent so far* by the
//!   member is acknowledged at the scope. Stores parked on their path count as unacknowledged.
//! - [`Action::ForwardStores`]: the same, but only for stores to other GPUs, both on the member's own account and as
//!   a GPU home.
//! - [`Action::Flush`]: used if memory is the ordering point. It writes back every line's dirty bytes, including
//!   lines homed at this module, and keeps the lines as clean. It waits until memory has accepted this data and
//!   every store and atomic *sent so far* by the member.
//! - [`Action::AwaitStores`]: writes nothing back; waits until every store and atomic *sent so far* by the member
//!   is acknowledged at the end of its path. With boundary elision, every kernel ends with this action, so
//!   written-through data has arrived.
//! - [`Action::Merge`]: for a block client: merges blocks that other clients may hold without its bytes; waits for
//!   completion.
//! - [`Action::DrainInvalidations`]: waits until every invalidation *sent so far* by the member is acknowledged at
//!   the scope.
//!
//! Acknowledged *at `.gpu`*: by the first L2 on the path. Traffic that has left the GPU is not awaited.
//! Acknowledged *at `.sys`*: a store by its system home, including the store that an atomic turned into on the
//! path. An invalidation is acknowledged by its last target. A GPU home answers an invalidation from another GPU
//! only after its own invalidations for the region are all acknowledged. Besides forwarded invalidations this
//! covers an entry replaced a moment before, whose invalidations may still be in flight although no sharer is left
//! to forward to. A GPU home that keeps a store's bytes dirty also acknowledges it at `.sys`: the write-back is the
//! home's own duty then, in a later phase.
//!
//! Only an invalidation's sender can report its arrival: invalidations travel from home to sharer, so a marker from
//! a release's issuer would order nothing behind them.

use crate::broken_rule::BrokenRule;
use crate::topology::{ClassSet, ModuleSet, Topology};
use tombolo_types::{ModuleId, Scope};

/// Kinds of synchronisation distinguished by a protocol's plans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync {
    /// By a single thread, at this scope.
    Thread(Scope),
    /// At a kernel boundary, for the whole machine at once.
    Kernel,
}

/// The L2s that take part in a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Members {
    /// The issuer's L2.
    Own,
    /// All L2s in the issuer's GPU except the issuer's.
    OthersOfGpu,
    /// All L2s in the issuer's GPU.
    Gpu,
    /// All L2s.
    All,
}

impl Members {
    /// True if module `member` takes part in a phase started by `issuer`.
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

/// A phase member's action before its acknowledgment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Drops the member's lines in these classes.
    Invalidate(ClassSet),
    /// Writes back dirty bytes and waits until the member's sent stores are acknowledged at this scope, beyond the
    /// CTA.
    DrainStores(Scope),
    /// Writes back dirty bytes held as a GPU home, and waits for stores to remote GPUs.
    ForwardStores,
    /// Waits until the member's sent invalidations are acknowledged at this scope, beyond the CTA.
    DrainInvalidations(Scope),
    /// Writes back dirty bytes in its own lines too, and waits until memory has accepted all sent data.
    Flush,
    /// Waits until all sent stores are acknowledged at the end of their path; dirty bytes stay.
    AwaitStores,
    /// Merges blocks that other clients may hold without the member's bytes ([`crate::client_home`]), and waits for
    /// completion.
    Merge {
        /// Set when blocks held by no other client are written back too.
        all: bool,
    },
}

impl Action {
    /// The line classes whose dirty bytes the action writes back, and whose write-backs it awaits.
    pub fn writes_back(self) -> ClassSet {
        match self {
            Action::DrainStores(Scope::Sys) => ClassSet::NOT_OWN,
            Action::DrainStores(Scope::Cta | Scope::Gpu) => ClassSet::NOT_GPU_HOME,
            Action::ForwardStores => ClassSet::GPU_HOME,
            Action::Flush => ClassSet::ALL,
            Action::Invalidate(_) | Action::DrainInvalidations(_) | Action::AwaitStores | Action::Merge { .. } => {
                ClassSet::NONE
            }
        }
    }

    /// True if the action waits for a member's traffic inside its GPU, or (`beyond`) for traffic to another GPU.
    pub fn awaits(self, beyond: bool) -> bool {
        match self {
            Action::DrainStores(scope) | Action::DrainInvalidations(scope) => !beyond || scope == Scope::Sys,
            Action::ForwardStores => beyond,
            Action::Flush | Action::AwaitStores => true,
            Action::Invalidate(_) | Action::Merge { .. } => false,
        }
    }

    /// True if the action follows an awaited store past its first acknowledgment, up to the end of its path.
    pub fn awaits_to_the_end(self) -> bool {
        match self {
            Action::DrainStores(scope) | Action::DrainInvalidations(scope) => scope == Scope::Sys,
            Action::ForwardStores | Action::Flush | Action::AwaitStores => true,
            Action::Invalidate(_) | Action::Merge { .. } => false,
        }
    }

    /// True if a plan restricted to some modules runs the action only at modules whose stores are released. An
    /// invalidation caused by a store belongs to the line's home, which may be any module.
    fn is_of_writer(self) -> bool {
        !matches!(self, Action::DrainInvalidations(_))
    }
}

/// A single step in an acquire or a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Phase {
    /// The participating L2s.
    pub members: Members,
    /// The members' action.
    pub action: Action,
    /// Set when members other than the issuer only forward the bytes they hold as GPU homes.
    pub others_forward: bool,
}

impl Phase {
    /// A phase in which all members perform the same action.
    pub const fn new(members: Members, action: Action) -> Phase {
        Phase { members, action, others_forward: false }
    }

    /// The same phase, with [`Action::ForwardStores`] for all members except the issuer.
    pub const fn others_forward(self) -> Phase {
        Phase { others_forward: true, ..self }
    }

    /// The action for `member` in this phase, if `issuer` started it. `None` if the member takes no part or has
    /// nothing to do: on a single GPU nothing is forwarded.
    fn action_of(&self, topology: &impl Topology, issuer: ModuleId, member: ModuleId) -> Option<Action> {
        let passes_on = self.others_forward && member != issuer;
        let idle = passes_on && topology.gpus() == 1;
        let action = if passes_on { Action::ForwardStores } else { self.action };
        (self.members.includes(topology, issuer, member) && !idle).then_some(action)
    }
}

/// Phases to run in sequence, each at all its members or only at some modules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PhasePlan {
    phases: &'static [Phase],
    only: Option<ModuleSet>,
}

impl PhasePlan {
    /// The same phases, restricted to members in `set`; waits for invalidations remain at all members.
    pub fn only(self, set: ModuleSet) -> PhasePlan {
        PhasePlan { only: Some(set), ..self }
    }

    /// The phase at `index`.
    fn phase(&self, index: u8) -> Option<&'static Phase> {
        self.phases.get(usize::from(index))
    }

    /// The action for `member` in `phase`, if `issuer` started it.
    fn action_of(&self, phase: &Phase, topology: &impl Topology, issuer: ModuleId, member: ModuleId) -> Option<Action> {
        let takes_part = !phase.action.is_of_writer() || self.only.is_none_or(|only| only.contains(member));
        if takes_part { phase.action_of(topology, issuer, member) } else { None }
    }
}

impl From<&'static [Phase]> for PhasePlan {
    fn from(phases: &'static [Phase]) -> PhasePlan {
        PhasePlan { phases, only: None }
    }
}

/// A running plan: the current phase, and the number of missing acknowledgments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Collector {
    plan: PhasePlan,
    issuer: ModuleId,
    current: u8,
    missing: u8,
}

impl Collector {
    /// A plan about to start at `issuer`: call [`Collector::begin_phase`] next.
    pub fn new(plan: impl Into<PhasePlan>, issuer: ModuleId) -> Collector {
        Collector { plan: plan.into(), issuer, current: 0, missing: 0 }
    }

    /// Starts the current phase: calls `send` for each member and returns true, or returns false when all phases
    /// are done. Phases without members are skipped.
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

    /// Records an acknowledgment; returns true when the phase is complete and the next must begin.
    pub fn acknowledge(&mut self) -> bool {
        assert!(self.missing > 0, "an acknowledgment nobody waits for reached {}", self.issuer);
        self.missing -= 1;
        if self.missing == 0 {
            self.current += 1;
        }
        self.missing == 0
    }

    /// The current phase; `None` when all are done.
    pub fn phase(&self) -> Option<&'static Phase> {
        self.plan.phase(self.current)
    }

    /// Acknowledgments still missing in the current phase.
    pub fn missing(&self) -> u8 {
        self.missing
    }

    /// The module that collects acknowledgments.
    pub fn issuer(&self) -> ModuleId {
        self.issuer
    }
}

/// Applies a broken rule to the acquire. Given two phases that drop the GPU's other L2s and then the own L2, the
/// broken acquire drops them at once or in reverse order.
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

/// Applies a broken rule to the release.
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
        // An issuer can mark only its own outgoing channels.
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
    use crate::vi::{BulkInvalidation, ProtocolOptions};

    #[test]
    fn without_a_directory_there_is_no_wait_for_invalidations_to_break() {
        let whole = SoftwareHierarchical::new(ProtocolOptions::default());
        for rule in [BrokenRule::ReleaseMarkedByIssuer, BrokenRule::ReleaseSkipsInvalidations] {
            let broken =
                SoftwareHierarchical::new(ProtocolOptions { broken_rule: Some(rule), ..ProtocolOptions::default() });
            for sync in [Sync::Thread(Scope::Gpu), Sync::Thread(Scope::Sys), Sync::Kernel] {
                assert_eq!(broken.release(sync), whole.release(sync), "{rule:?} {sync:?}");
            }
        }
    }

    #[test]
    fn a_broken_acquire_drops_the_gpu_at_once_or_the_own_l2_first() {
        let members = |bulk, broken_rule, sync| {
            let protocol =
                SoftwareHierarchical::new(ProtocolOptions { bulk, broken_rule, ..ProtocolOptions::default() });
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
