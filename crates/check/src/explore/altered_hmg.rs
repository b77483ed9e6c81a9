//! A protocol violating the assumptions behind the reductions, for tests of reductions and checks.

use super::layout::{ProgramLayout, RegionHomes, Sharing};
use tombolo_protocol::coherence::OrderingPoint;
use tombolo_protocol::directory::{Sharer, Sharers};
use tombolo_protocol::hmg::Hmg;
use tombolo_protocol::plan::{Phase, Sync};
use tombolo_protocol::vi::{ProtocolOptions, WritePolicy};
use tombolo_protocol::{
    Class, Coherence, Data, Effects, Homes, L2Event, LineSlot, ModuleSet, Protocol, Refusal, Request, Requester,
    Topology, ValidInvalid,
};
use tombolo_types::{Line, Mask, ModuleId, Scope};

/// Two GPUs with three modules each; a region with the system home in the first module of the first GPU, and the GPU
/// home in the fifth module, in the second GPU.
pub(super) fn machine() -> ProgramLayout {
    let homes = RegionHomes { system: ModuleId(0), gpus: vec![ModuleId(0), ModuleId(4)] };
    let regions = vec![homes];
    ProgramLayout {
        gpus: 2,
        modules_per_gpu: 3,
        threads: Vec::new(),
        sharing: Sharing::Apart,
        regions,
        subscribers: Vec::new(),
    }
}

/// Circumstances under which a request meets a pending miss.
pub(super) struct Meeting {
    pub(super) is_local: bool,
    pub(super) is_read: bool,
    pub(super) mask: Mask,
    pub(super) scope: Scope,
    pub(super) valid: Mask,
    pub(super) dirty: Mask,
}

/// HMG with altered behaviour at selected meetings between a request and a miss, and with altered declarations.
#[derive(Clone, Copy)]
pub(super) struct AlteredHmg {
    pub(super) whole: Hmg,
    /// Selects the meetings at which the protocol serves a request immediately and records a sharer.
    pub(super) at: fn(&Meeting) -> bool,
    /// Alters the declared set of modules above, compared with HMG.
    pub(super) above: fn(ModuleSet) -> ModuleSet,
    pub(super) named: fn(ModuleSet) -> ModuleSet,
}

impl AlteredHmg {
    pub(super) fn at(at: fn(&Meeting) -> bool) -> AlteredHmg {
        let whole = Hmg::new(ProtocolOptions { write: WritePolicy::Back, ..ProtocolOptions::default() });
        AlteredHmg { whole, at, above: |modules| modules, named: |modules| modules }
    }
}

fn meeting<D: Data>(slot: &LineSlot<D>, event: &L2Event<D>) -> Option<Meeting> {
    let L2Event::Request { from, request } = *event else { return None };
    let (is_read, mask, scope) = match request {
        Request::Read { mask, scope } => (true, mask, scope),
        Request::Write { mask, scope, .. } | Request::Atomic { mask, scope, .. } => (false, mask, scope),
    };
    let line = slot.line.unwrap_or_default();
    let (valid, dirty) = (line.valid, line.dirty);
    let is_local = from == Requester::Local;
    slot.pending.map(|_| Meeting { is_local, is_read, mask, scope, valid, dirty })
}

impl Protocol for AlteredHmg {
    type Types = ValidInvalid;

    const FACTS: tombolo_protocol::options::ProtocolFacts = <Hmg as Protocol>::FACTS;

    const BREAKABLE: bool = <Hmg as Protocol>::BREAKABLE;

    fn options(&self) -> &ProtocolOptions {
        self.whole.options()
    }

    fn acquire(&self, sync: Sync) -> &'static [Phase] {
        self.whole.acquire(sync)
    }

    fn release(&self, sync: Sync) -> &'static [Phase] {
        self.whole.release(sync)
    }
}

impl Coherence for AlteredHmg {
    fn step<D: Data>(
        &self,
        topology: &impl Topology,
        at: ModuleId,
        slot: &mut LineSlot<D>,
        event: L2Event<D>,
        effects: &mut impl Effects<ValidInvalid, D>,
    ) -> Result<(), Refusal> {
        if meeting(slot, &event).is_some_and(|meeting| (self.at)(&meeting)) {
            slot.entry = Some(Sharers::only(Sharer::Module(ModuleId(2))));
            return Ok(());
        }
        self.whole.step(topology, at, slot, event, effects)
    }

    fn caches(&self, class: Class) -> bool {
        self.whole.caches(class)
    }

    fn passes_reads(&self) -> bool {
        self.whole.passes_reads()
    }

    fn ordering_point(&self) -> OrderingPoint {
        self.whole.ordering_point()
    }

    fn is_hierarchical(&self) -> bool {
        self.whole.is_hierarchical()
    }

    fn has_directory(&self) -> bool {
        self.whole.has_directory()
    }

    fn tracks_own(&self) -> bool {
        self.whole.tracks_own()
    }

    fn writes_back(&self) -> bool {
        self.whole.writes_back()
    }

    fn downgrades(&self) -> bool {
        self.whole.downgrades()
    }

    fn next_level(&self, at: ModuleId, homes: Homes) -> ModuleSet {
        (self.above)(self.whole.next_level(at, homes))
    }

    fn invalidation_targets(&self, topology: &impl Topology, at: ModuleId, line: Line, entry: Sharers) -> ModuleSet {
        (self.named)(self.whole.invalidation_targets(topology, at, line, entry))
    }
}
