//! Valid/invalid L2 caches: the flow of loads, stores, atomics and invalidations shared by most protocols in this
//! crate (HMG, sections IV-B and V-B).
//!
//! A request climbs from the L2 in its SM's module to the GPU home (hierarchical protocols), to the system home, to
//! memory. Each L2 on the path may serve the request, merge it, or forward it. Transient states do not exist: a
//! line with a pending miss accepts mergeable reads, and every other request waits for the fill.
//!
//! If memory is the ordering point ([`OrderingPoint::Memory`]), each L2 lies in front of memory, including the
//! home's L2. Accesses beyond `.cta` then continue to memory, a bulk invalidation leaves dirty bytes in place, and
//! a release writes them back to memory.
//!
//! A protocol is a [`Rules`] value: the caches a line may live in, hierarchical or flat routing, directory
//! tracking, and the actions of acquire and release.

mod at_memory;
mod sharing;

use crate::broken_rule::BrokenRule;
use crate::coherence::{
    Coherence, Hold, InvalidationCause, L2Event, L2Message, LineSlot, LineState, MemoryAccess, OrderingPoint, Pending,
    Protocol, Refusal, Reply, Request, Requester, ValidInvalid,
};
use crate::data::Data;
use crate::directory::{DirectoryAccess, Sharers};
use crate::effects::Effects;
use crate::elision::RetainedLines;
pub use crate::options::{
    BulkInvalidation, Choice, HomeL2, Polls, ProtocolFacts, ProtocolOptions, Remote, StoreAllocation, StoreMiss,
    Tracks, WritePolicy,
};
use crate::paging::pages_may_move;
use crate::plan::{Phase, Sync};
use crate::topology::{Class, Topology};
use tombolo_types::{Mask, ModuleId, Promise, Scope};

/// The rules that distinguish valid/invalid protocols from each other.
pub trait Rules: Copy + Send + std::marker::Sync + 'static {
    /// True if requests route through the GPU home.
    const HIERARCHICAL: bool;
    /// True if directories track sharers.
    const DIRECTORY: bool;
    /// The guaranteed memory-model promise.
    const PROMISE: Promise;
    /// A one-line description for lists.
    const ABOUT: &'static str;
    /// The [`ProtocolOptions`] that a user may choose.
    const CHOICES: &'static [Choice];

    /// True if lines in this class may live in an L2.
    fn caches(class: Class, options: &ProtocolOptions) -> bool;
    /// Dirty or stale contents possible in a module's L2 at a kernel boundary.
    fn holds(options: &ProtocolOptions) -> RetainedLines;
    /// True if reads of uncacheable lines bypass the L2 without leaving state there, and are answered by their
    /// home.
    fn passes_reads(_: &ProtocolOptions) -> bool {
        false
    }
    /// The point at which accesses by several modules to a line meet.
    fn ordering_point(_: &ProtocolOptions) -> OrderingPoint {
        OrderingPoint::HomeL2
    }
    /// True if a flush also writes back the dirty bytes of a home that is the ordering point.
    fn flushes_home(_: &ProtocolOptions) -> bool {
        false
    }
    /// The acquire plan, if an L2 obeys bulk invalidations.
    fn acquire(sync: Sync, options: &ProtocolOptions) -> &'static [Phase];
    /// The release plan.
    fn release(sync: Sync, options: &ProtocolOptions) -> &'static [Phase];
}

/// A valid/invalid protocol. Without `BREAKABLE` it has no broken rule, and L2s have no code for broken rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Vi<R, const BREAKABLE: bool = true> {
    options: ProtocolOptions,
    rules: std::marker::PhantomData<fn() -> R>,
}

impl<R: Rules> Vi<R> {
    /// Creates the protocol with the given options, which may include a broken rule.
    pub fn new(options: ProtocolOptions) -> Vi<R> {
        Vi::with(options)
    }
}

impl<R: Rules, const BREAKABLE: bool> Vi<R, BREAKABLE> {
    /// Creates the protocol with the given options.
    pub(crate) fn with(options: ProtocolOptions) -> Vi<R, BREAKABLE> {
        assert!(BREAKABLE || options.broken_rule.is_none(), "a protocol that cannot break has no broken rule");
        Vi { options, rules: std::marker::PhantomData }
    }
}

impl<R: Rules, const BREAKABLE: bool> Protocol for Vi<R, BREAKABLE> {
    type Types = ValidInvalid;

    const FACTS: ProtocolFacts = ProtocolFacts {
        about: R::ABOUT,
        promise: R::PROMISE,
        directory: R::DIRECTORY,
        host: false,
        hierarchical: R::HIERARCHICAL,
        caches: R::caches,
        pages_may_move: |options| pages_may_move(&Vi::<R>::with(options)),
        holds: R::holds,
        choices: R::CHOICES,
    };

    const BREAKABLE: bool = BREAKABLE;

    fn options(&self) -> &ProtocolOptions {
        &self.options
    }

    fn acquire(&self, sync: Sync) -> &'static [Phase] {
        let ignored = self.options.bulk == BulkInvalidation::None || self.broken(BrokenRule::AcquireKeepsL2);
        let plan = if ignored { &[] } else { R::acquire(sync, &self.options) };
        crate::plan::acquire_with_broken_rule(plan, sync, self.broken_rule())
    }

    fn release(&self, sync: Sync) -> &'static [Phase] {
        let options = self.options;
        // Caches that ignore synchronisation also keep dirty bytes until eviction.
        let plan = if options.bulk == BulkInvalidation::None { &[] } else { R::release(sync, &options) };
        crate::plan::release_with_broken_rule(plan, sync, self.broken_rule())
    }
}

impl<R: Rules, const BREAKABLE: bool> Coherence for Vi<R, BREAKABLE> {
    fn step<D: Data>(
        &self,
        topology: &impl Topology,
        at: ModuleId,
        slot: &mut LineSlot<D>,
        event: L2Event<D>,
        effects: &mut impl Effects<ValidInvalid, D>,
    ) -> Result<(), Refusal> {
        let mut visit = L2Transition { protocol: self, topology, at, slot, effects };
        match event {
            L2Event::Request { from: Requester::Module(_), request } if visit.is_memory_next() => {
                visit.pass_to_memory(request)
            }
            L2Event::Request { from: Requester::Module(_), request } if visit.is_snooped() => {
                visit.pass_by_snooped(request)
            }
            L2Event::Request { from, request: Request::Read { mask, scope } } => visit.read(from, mask, scope),
            L2Event::Request { from, request: Request::Write { mask, scope, data, tracked } } => {
                visit.write(from, mask, scope, data, tracked)
            }
            L2Event::Request { from, request: Request::Atomic { mask, scope, update, returns } } => {
                visit.atomic(from, AtomicOperands { mask, scope, update, returns })
            }
            L2Event::Fill { mask, data } => visit.fill(mask, data),
            L2Event::Serve { from, mask, data } => {
                visit.serve(from, mask, data);
                Ok(())
            }
            L2Event::InvalidateRegion => {
                visit.invalidate_region();
                Ok(())
            }
            L2Event::InvalidateLine => {
                visit.invalidate_line();
                Ok(())
            }
            L2Event::Evict { last_of_region } => visit.evict(last_of_region),
            L2Event::ReplaceEntry => {
                visit.replace_entry();
                Ok(())
            }
            L2Event::Downgrade { from } => {
                visit.update_directory(
                    DirectoryAccess::Downgrade(visit.sharer(from)),
                    InvalidationCause::DirectoryEviction,
                );
                Ok(())
            }
            L2Event::Flush => visit.flush(),
        }
    }

    fn caches(&self, class: Class) -> bool {
        R::caches(class, &self.options)
    }

    fn passes_reads(&self) -> bool {
        R::passes_reads(&self.options)
    }

    fn ordering_point(&self) -> OrderingPoint {
        R::ordering_point(&self.options)
    }

    fn is_hierarchical(&self) -> bool {
        R::HIERARCHICAL
    }

    fn has_directory(&self) -> bool {
        R::DIRECTORY
    }

    fn tracks_own(&self) -> bool {
        R::DIRECTORY && self.options.tracks == Tracks::All
    }

    fn writes_back(&self) -> bool {
        self.options.write == WritePolicy::Back
    }

    fn downgrades(&self) -> bool {
        self.options.downgrade && R::DIRECTORY
    }
}

/// The operands for an atomic request.
#[derive(Clone, Copy)]
struct AtomicOperands<D: Data> {
    mask: Mask,
    scope: Scope,
    update: D::Update,
    returns: bool,
}

/// A single event at a single L2.
struct L2Transition<'a, R, T, D: Data, E, const BREAKABLE: bool> {
    protocol: &'a Vi<R, BREAKABLE>,
    topology: &'a T,
    at: ModuleId,
    slot: &'a mut LineSlot<D>,
    effects: &'a mut E,
}

impl<R: Rules, T: Topology, D: Data, E: Effects<ValidInvalid, D>, const BREAKABLE: bool>
    L2Transition<'_, R, T, D, E, BREAKABLE>
{
    fn broken(&self, rule: BrokenRule) -> bool {
        self.protocol.broken(rule)
    }

    fn is_system_home(&self) -> bool {
        self.at == self.slot.homes.system
    }

    /// True if this L2 keeps a directory entry for the line.
    fn is_home(&self) -> bool {
        self.is_system_home() || (R::HIERARCHICAL && self.at == self.slot.homes.gpu)
    }

    /// The next level up; `None` at the system home, because memory is next.
    fn next(&self) -> Option<ModuleId> {
        self.slot.homes.next(self.at, R::HIERARCHICAL)
    }

    /// The L2 at or beyond which an operation with this scope is coherent.
    fn scope_home(&self, scope: Scope) -> ModuleId {
        match scope {
            Scope::Cta | Scope::Gpu if R::HIERARCHICAL => self.slot.homes.gpu,
            Scope::Cta | Scope::Gpu | Scope::Sys => self.slot.homes.system,
        }
    }

    /// True if this L2 is its line's system home, and the ordering point is the memory behind it.
    fn is_memory_next(&self) -> bool {
        self.is_system_home() && self.protocol.ordering_point().is_memory()
    }

    /// True if this L2 is its line's system home, and other modules' requests go on to the memory behind it.
    fn is_snooped(&self) -> bool {
        self.is_system_home() && self.protocol.home_is_snooped()
    }

    /// True if this L2 is at or beyond the scope's home, and may keep the line. Always false if the ordering point
    /// is memory.
    fn serves(&self, scope: Scope) -> bool {
        let is_there = self.is_system_home() || self.at == self.scope_home(scope) && self.cached();
        is_there && !self.protocol.ordering_point().is_memory()
    }

    fn may_hit(&self, scope: Scope) -> bool {
        scope == Scope::Cta || self.serves(scope) || self.broken(BrokenRule::LoadIgnoresScope)
    }

    fn cached(&self) -> bool {
        self.protocol.caches(Class::of(self.topology, self.at, self.slot.homes))
    }

    fn read(&mut self, from: Requester, mask: Mask, scope: Scope) -> Result<(), Refusal> {
        let class = Class::of(self.topology, self.at, self.slot.homes);
        if self.protocol.forwards_reads(class)
            && let Some(home) = self.next()
        {
            self.effects.send(home, L2Message::Bypassed(Request::Read { mask, scope }));
            return Ok(());
        }
        let line = self.slot.line.filter(|_| self.may_hit(scope)).unwrap_or_default();
        let missing = self.protocol.options.sectors.widen(mask & !line.valid);
        if !missing.is_empty() {
            self.request_missing(missing, scope)?;
        }
        let here = mask & !missing;
        if !here.is_empty() {
            self.serve(from, here, line.data);
        }
        if !missing.is_empty() {
            self.effects.hold(Hold::Wait(missing));
        }
        if self.broken(BrokenRule::SharerRecordedAtRequest) {
            self.record(from);
        }
        Ok(())
    }

    /// Makes a read wait for the bytes in `missing`: requests the subset not yet in flight.
    fn request_missing(&mut self, missing: Mask, scope: Scope) -> Result<(), Refusal> {
        let pending = self.slot.pending.unwrap_or_default();
        let asked = missing & !pending.mask;
        if !self.may_merge(pending, missing & pending.mask, scope) {
            return Err(Refusal::Stall);
        }
        if asked.is_empty() {
            return Ok(());
        }
        if !self.may_hit(scope) && self.slot.line.is_some_and(|line| !line.dirty.is_empty()) {
            // The rule matches a release's: the miss was read before these bytes arrive there.
            if self.slot.pending.is_some() {
                return Err(Refusal::Stall);
            }
            self.write_back();
        }
        self.send_miss(asked, scope);
        Ok(())
    }

    /// True if a read may wait for these bytes in the pending miss.
    fn may_merge(&self, pending: Pending, mask: Mask, scope: Scope) -> bool {
        let fresh = (pending.stale & mask).is_empty() || self.broken(BrokenRule::LoadMergesAcrossAcquire);
        mask.is_empty() || fresh && pending.scope >= scope
    }

    fn send_miss(&mut self, mask: Mask, scope: Scope) {
        let mask = if self.next().is_none() { self.with_neighbours(mask) } else { mask };
        self.slot.pending = Some(Pending::extended(self.slot.pending, mask, scope));
        match self.next() {
            Some(home) => self.effects.send(home, L2Message::Request(Request::Read { mask, scope })),
            None => self.effects.memory(MemoryAccess::Read(mask)),
        }
    }

    /// The bytes that memory is asked for: those in `mask`, and the rest of their parts that is neither here nor in flight.
    fn with_neighbours(&self, mask: Mask) -> Mask {
        if !self.cached() {
            return mask;
        }
        let valid = self.slot.line.map_or(Mask::NONE, |line| line.valid);
        let awaited = self.slot.pending.map_or(Mask::NONE, |pending| pending.mask);
        mask | (self.protocol.options.fetches.widen(mask) & !(valid | awaited))
    }

    fn fill(&mut self, mask: Mask, data: D) -> Result<(), Refusal> {
        let Some(pending) = self.slot.pending.filter(|pending| pending.mask.contains(mask)) else {
            return Err(Refusal::Unexpected("a fill without a miss"));
        };
        let stale = if self.broken(BrokenRule::FillSurvivesAcquire) { Mask::NONE } else { pending.stale };
        let fresh = mask & !stale;
        if !fresh.is_empty() && self.cached() {
            let line = self.slot.line.get_or_insert_with(LineState::default);
            line.data.merge(data, fresh & !line.dirty);
            line.valid |= fresh;
        }
        self.slot.pending = pending.remaining(mask);
        Ok(())
    }

    /// Sends the bytes down; a home records the sharer at this moment, as the data leaves.
    fn serve(&mut self, from: Requester, mask: Mask, fill: D) {
        let mut data = fill;
        if let Some(line) = self.slot.line {
            data.merge(line.data, line.dirty);
        }
        self.effects.answer(Reply::Fill { mask, data });
        if !self.broken(BrokenRule::SharerRecordedAtRequest) {
            self.record(from);
        }
        self.track_line();
    }

    fn write(&mut self, from: Requester, mask: Mask, scope: Scope, data: D, tracked: bool) -> Result<(), Refusal> {
        // Once merged into the miss, the store would be visible to earlier loads, even by its own thread.
        if self.slot.pending.is_some() && !self.broken(BrokenRule::StorePassesMiss) {
            return Err(Refusal::Stall);
        }
        self.invalidate_others(from, tracked);
        let keeps = self.protocol.options.write == WritePolicy::Back && (scope == Scope::Cta || self.serves(scope));
        let stays = self.cached() && (keeps || self.store_stays());
        if stays {
            let line = self.slot.line.get_or_insert_with(LineState::default);
            line.data.merge(data, mask);
            line.valid |= mask;
            line.dirty = if keeps { line.dirty | mask } else { line.dirty & !mask };
        }
        if !(keeps && self.cached()) {
            self.send_up(mask, scope, data, stays);
        } else if self.protocol.options.store_miss == StoreMiss::Fetch {
            self.fetch_rest(mask);
        }
        self.track_line();
        Ok(())
    }

    /// Requests the sectors of `mask` in which a written line lacks bytes. The written bytes are dirty, and the fill leaves
    /// them unchanged.
    fn fetch_rest(&mut self, mask: Mask) {
        let valid = self.slot.line.map_or(Mask::NONE, |line| line.valid);
        let sectors = self.protocol.options.sectors;
        let lacking = sectors.widen(sectors.widen(mask) & !valid);
        if !lacking.is_empty() {
            self.send_miss(lacking, Scope::Cta);
        }
    }

    /// True if a forwarded store's bytes also stay here.
    fn store_stays(&self) -> bool {
        match self.protocol.options.stores {
            StoreAllocation::Literal => true,
            StoreAllocation::SharersOnly => self.is_system_home() || self.slot.line.is_some(),
        }
    }

    /// True if homes record an atomic's sender, which has dropped its copy.
    fn records_atomics(&self) -> bool {
        self.protocol.options.stores == StoreAllocation::Literal
    }

    /// Sends written bytes to the next level up.
    fn send_up(&mut self, mask: Mask, scope: Scope, data: D, tracked: bool) {
        match self.next() {
            Some(home) => self.effects.send(home, L2Message::Request(Request::Write { mask, scope, data, tracked })),
            None => self.effects.memory(MemoryAccess::Write(mask, data)),
        }
    }

    /// Sends the line's dirty bytes to the next level up and keeps the line, clean.
    fn write_back(&mut self) {
        if let Some(line) = &mut self.slot.line
            && !line.dirty.is_empty()
        {
            let (mask, data) = (line.dirty, line.data);
            line.dirty = Mask::NONE;
            if self.protocol.broken(BrokenRule::FlushFillsLine) {
                line.valid |= self.protocol.options.sectors.widen(mask);
            }
            self.send_up(mask, Scope::Cta, data, true);
        }
    }

    fn atomic(&mut self, from: Requester, operation: AtomicOperands<D>) -> Result<(), Refusal> {
        if self.slot.pending.is_some() {
            return Err(Refusal::Stall);
        }
        if !self.serves(operation.scope) && !self.broken(BrokenRule::AtomicBelowHome) {
            self.pass_atomic(from, operation);
            return Ok(());
        }
        match self.slot.line {
            Some(line) if line.valid.contains(operation.mask) => self.perform(from, operation, line),
            Some(_) | None => {
                // The request runs again, unchanged, when its sectors have arrived.
                self.send_miss(self.protocol.options.sectors.widen(operation.mask), Scope::Cta);
                self.effects.hold(Hold::Park);
            }
        }
        Ok(())
    }

    /// Forwards an atomic toward its home: no copy on the path stays current.
    fn pass_atomic(&mut self, from: Requester, operation: AtomicOperands<D>) {
        let AtomicOperands { mask, scope, update, returns } = operation;
        if !self.broken(BrokenRule::AtomicLosesDirty) {
            self.write_back();
        }
        if !self.broken(BrokenRule::AtomicKeepsL2) {
            self.slot.line = None;
        }
        if !self.broken(BrokenRule::AtomicPassesSharers) {
            self.invalidate_others(from, self.records_atomics());
        }
        let request = Request::Atomic { mask, scope, update, returns };
        match self.next() {
            Some(home) => self.effects.send(home, L2Message::Request(request)),
            None => self.effects.memory(MemoryAccess::Request(request)),
        }
    }

    fn perform(&mut self, from: Requester, operation: AtomicOperands<D>, mut line: LineState<D>) {
        let AtomicOperands { mask, update, returns, .. } = operation;
        self.invalidate_others(from, self.records_atomics());
        let data = line.data.update(update, mask);
        let keeps = self.protocol.options.write == WritePolicy::Back;
        line.dirty = if keeps { line.dirty | mask } else { line.dirty & !mask };
        self.slot.line = Some(line);
        self.track_line();
        if !keeps {
            // The result travels on as a value (V-B).
            self.send_up(mask, Scope::Cta, line.data, true);
        }
        if returns {
            self.effects.answer(Reply::Old { data });
        }
    }

    /// Drops the line. Its dirty bytes are the only current copy. At a home that is the ordering point they are
    /// written back to memory; elsewhere they stay until a release writes them back. They also stay while a fill is
    /// in flight: the fill was read before them and serves its waiters.
    fn invalidate_line(&mut self) {
        if self.broken(BrokenRule::DirtyInvalidationLost) {
            self.slot.line = None;
            return;
        }
        if self.is_system_home() && !self.is_memory_next() && self.slot.pending.is_none() {
            self.write_back();
        }
        if let Some(line) = &mut self.slot.line {
            line.valid = line.dirty;
            if line.valid.is_empty() {
                self.slot.line = None;
            }
        }
    }

    fn evict(&mut self, last_of_region: bool) -> Result<(), Refusal> {
        if self.slot.pending.is_some() {
            // The fill may be older than the line's dirty bytes, and makes this L2 a sharer again.
            return Err(Refusal::Stall);
        }
        let Some(line) = self.slot.line.take() else { return Ok(()) };
        // A GPU home whose modules hold copies still represents them at the system home.
        let drops_region = last_of_region && self.slot.entry.is_none_or(Sharers::is_empty);
        if !line.dirty.is_empty() && !self.broken(BrokenRule::DirtyEvictionLost) {
            self.send_up(line.dirty, Scope::Cta, line.data, !drops_region);
        }
        if drops_region
            && self.protocol.downgrades()
            && let Some(home) = self.next()
        {
            self.effects.send(home, L2Message::Downgrade);
        }
        Ok(())
    }

    /// A release's action on this line: dirty bytes go to the next level up.
    fn flush(&mut self) -> Result<(), Refusal> {
        let dirty = self.slot.line.is_some_and(|line| !line.dirty.is_empty());
        let is_end = self.is_system_home() && !self.is_memory_next();
        let stays = is_end && !R::flushes_home(&self.protocol.options);
        if stays || !dirty {
            return Ok(());
        }
        if self.slot.pending.is_some() {
            // The fill was read before these bytes arrive there, and only dirty bytes are protected from the fill.
            return Err(Refusal::Stall);
        }
        self.write_back();
        Ok(())
    }
}
