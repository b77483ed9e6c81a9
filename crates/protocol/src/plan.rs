//! Acquires and releases beyond the SM, as data: phases that one controller runs one after the other, each
//! at several L2s at once.
//!
//! A controller (of the issuing module, or the command processor at a kernel's boundary) sends the phase's
//! action to every member, collects an acknowledgment from each, then starts the next phase. What each
//! member does:
//!
//! - [`Action::Invalidate`]: bulk invalidation of the classes named; misses pending in them become stale. What is
//!   written to this module's memory by it must have been taken there.
//! - [`Action::DrainStores`]: writes back dirty bytes; waits until every store and atomic *it has sent so
//!   far* has been taken by the module it was sent to. Stores that are parked there count as not taken.
//! - [`Action::DrainInvalidations`]: waits until every invalidation *it has sent so far* has been taken.
//!
//! Only the sender of an invalidation can say that it has arrived: invalidations travel from home to
//! sharer, so a marker from the issuer of a release would order nothing behind them.

use crate::coherence::Sync;
use crate::fault::Fault;
use crate::topology::{ClassSet, Topology};
use tombolo_types::{ModuleId, Scope};

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
    /// Writes back dirty bytes and waits for the stores it has sent.
    DrainStores,
    /// Waits for the invalidations it has sent.
    DrainInvalidations,
}

/// One step of an acquire or a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Phase {
    /// Who takes part.
    pub members: Members,
    /// What they do.
    pub action: Action,
    /// Whether it follows what the phase before has moved no further than the edge of a GPU: on one GPU nothing.
    pub second_hop: bool,
}

impl Phase {
    /// A phase.
    pub const fn new(members: Members, action: Action) -> Phase {
        Phase { members, action, second_hop: false }
    }

    /// The same phase again, for what went from GPU homes to system homes, or the other way.
    pub const fn again_beyond_gpu(self) -> Phase {
        Phase { second_hop: true, ..self }
    }

    /// Whether the phase has nothing to do on this machine.
    fn is_void(self, topology: &impl Topology) -> bool {
        self.second_hop && topology.gpus() == 1
    }
}

/// A plan being run: which phase, and how many acknowledgments it still lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Collector {
    phases: &'static [Phase],
    issuer: ModuleId,
    current: u8,
    missing: u8,
}

impl Collector {
    /// A plan about to start at `issuer`: call [`Collector::begin_phase`] next.
    pub fn new(phases: &'static [Phase], issuer: ModuleId) -> Collector {
        Collector { phases, issuer, current: 0, missing: 0 }
    }

    /// Starts the current phase: calls `send` for each member and returns true; false when all are done.
    /// Phases without members are passed over.
    pub fn begin_phase(&mut self, topology: &impl Topology, mut send: impl FnMut(ModuleId, Action)) -> bool {
        while let Some(phase) = self.phases.get(self.current as usize) {
            let takes_part =
                |&member: &ModuleId| !phase.is_void(topology) && phase.members.includes(topology, self.issuer, member);
            for member in (0..topology.modules()).map(ModuleId).filter(takes_part) {
                self.missing += 1;
                send(member, phase.action);
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

    /// Acknowledgments that the current phase lacks.
    pub fn missing(&self) -> u8 {
        self.missing
    }

    /// The module that collects.
    pub fn issuer(&self) -> ModuleId {
        self.issuer
    }
}

/// The plan with a broken rule in it.
pub(crate) fn with_fault(plan: &'static [Phase], sync: Sync, fault: Option<Fault>) -> &'static [Phase] {
    const OWN_STORES: Phase = Phase::new(Members::Own, Action::DrainStores);
    const GPU_STORES: Phase = Phase::new(Members::Gpu, Action::DrainStores);
    const ALL_STORES: Phase = Phase::new(Members::All, Action::DrainStores);
    const OWN_INVALIDATIONS: Phase = Phase::new(Members::Own, Action::DrainInvalidations);
    const ALL_INVALIDATIONS: Phase = Phase::new(Members::All, Action::DrainInvalidations);
    match fault {
        Some(Fault::ReleaseSkipsStores) => &[ALL_INVALIDATIONS, ALL_INVALIDATIONS],
        Some(Fault::ReleaseSkipsInvalidations) if sync == Sync::Kernel => &[ALL_STORES, ALL_STORES],
        Some(Fault::ReleaseSkipsInvalidations) => &[OWN_STORES, GPU_STORES, GPU_STORES],
        // An issuer can mark only the channels it sends on itself.
        Some(Fault::ReleaseMarkedByIssuer) => &[OWN_STORES, GPU_STORES, GPU_STORES, OWN_INVALIDATIONS],
        Some(Fault::SystemReleaseDrainsOwnModuleOnly) if sync == Sync::Thread(Scope::Sys) => {
            &[OWN_STORES, ALL_INVALIDATIONS, ALL_INVALIDATIONS]
        }
        Some(_) | None => plan,
    }
}
