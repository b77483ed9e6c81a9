//! Valid/invalid L2 caches: the flow of loads, stores, atomics and invalidations that every protocol of
//! this crate shares (HMG, sections IV-B and V-B).
//!
//! A request climbs from the L2 of its SM's module to the GPU home (hierarchical protocols) to the system
//! home to memory. Each L2 it passes may serve it, merge it, or send it on. There are no transient states:
//! a line with a miss pending takes reads that may merge, and everything else waits for the fill.
//!
//! Where memory is the ordering point ([`OrderingPoint::Memory`]) each L2 is below it, that of the home too: accesses
//! beyond `.cta` go on to memory, a bulk invalidation leaves dirty bytes and a release writes them to memory.
//!
//! A protocol is a [`Rules`] value: where lines may live, whether routing is hierarchical, whether
//! directories track sharers, what acquire and release do.

mod at_memory;
mod sharing;

use crate::broken_rule::BrokenRule;
use crate::coherence::{
    Cause, Coherence, Event, Hold, LineState, MemoryAccess, Message, OrderingPoint, Pending, Protocol, Refusal, Reply,
    Request, Requester, Slot, ValidInvalid,
};
use crate::data::Data;
use crate::directory::{Access, Sharers};
use crate::elision::Holds;
use crate::node::Effects;
pub use crate::options::{
    BulkInvalidation, Choice, Facts, Options, Polls, Remote, StoreAllocation, Tracks, WritePolicy,
};
use crate::plan::{Phase, Sync};
use crate::topology::{Class, Topology};
use tombolo_types::{Mask, ModuleId, Promise, Scope};

/// What tells one valid/invalid protocol from another.
pub trait Rules: Copy + Send + std::marker::Sync + 'static {
    /// Whether requests go by the GPU home.
    const HIERARCHICAL: bool;
    /// Whether directories track sharers.
    const DIRECTORY: bool;
    /// What it guarantees.
    const PROMISE: Promise;
    /// One line for lists.
    const ABOUT: &'static str;
    /// What may be chosen of [`Options`].
    const CHOICES: &'static [Choice];

    /// Whether lines of this class may live in an L2.
    fn caches(class: Class, options: &Options) -> bool;
    /// What a module's L2 may hold dirty or stale at a kernel's boundary.
    fn holds(options: &Options) -> Holds;
    /// Whether reads of lines that an L2 may not hold leave nothing there, and are answered by their home.
    fn passes_reads(_: &Options) -> bool {
        false
    }
    /// Where the accesses of several modules to one line meet.
    fn ordering_point(_: &Options) -> OrderingPoint {
        OrderingPoint::HomeL2
    }
    /// The acquire plan where an L2 obeys bulk invalidations; `bulk` as in [`Options`].
    fn acquire(sync: Sync, bulk: BulkInvalidation) -> &'static [Phase];
    /// The release plan; `write` as in [`Options`].
    fn release(sync: Sync, write: WritePolicy) -> &'static [Phase];
}

/// A valid/invalid protocol. One that is not `BREAKABLE` has no broken rule, and nothing of them in its code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Vi<R, const BREAKABLE: bool = true> {
    options: Options,
    rules: std::marker::PhantomData<fn() -> R>,
}

impl<R: Rules> Vi<R> {
    /// The protocol with the given options, which may have a broken rule.
    pub fn new(options: Options) -> Vi<R> {
        Vi::with(options)
    }
}

impl<R: Rules, const BREAKABLE: bool> Vi<R, BREAKABLE> {
    /// The protocol with the given options.
    pub(crate) fn with(options: Options) -> Vi<R, BREAKABLE> {
        assert!(BREAKABLE || options.broken_rule.is_none(), "a protocol that cannot break has no broken rule");
        Vi { options, rules: std::marker::PhantomData }
    }
}

impl<R: Rules, const BREAKABLE: bool> Protocol for Vi<R, BREAKABLE> {
    type Types = ValidInvalid;

    const FACTS: Facts = Facts {
        about: R::ABOUT,
        promise: R::PROMISE,
        directory: R::DIRECTORY,
        host: false,
        hierarchical: R::HIERARCHICAL,
        caches: R::caches,
        holds: R::holds,
        choices: R::CHOICES,
    };

    const BREAKABLE: bool = BREAKABLE;

    fn options(&self) -> &Options {
        &self.options
    }

    fn acquire(&self, sync: Sync) -> &'static [Phase] {
        let ignored = self.options.bulk == BulkInvalidation::None || self.broken(BrokenRule::AcquireKeepsL2);
        let plan = if ignored { &[] } else { R::acquire(sync, self.options.bulk) };
        crate::plan::acquire_with_broken_rule(plan, sync, self.broken_rule())
    }

    fn release(&self, sync: Sync) -> &'static [Phase] {
        let options = self.options;
        // Caches that ignore synchronisation keep what is dirty, too, until it is evicted.
        let plan = if options.bulk == BulkInvalidation::None { &[] } else { R::release(sync, options.write) };
        crate::plan::release_with_broken_rule(plan, sync, self.broken_rule())
    }
}

impl<R: Rules, const BREAKABLE: bool> Coherence for Vi<R, BREAKABLE> {
    fn step<D: Data>(
        &self,
        topology: &impl Topology,
        at: ModuleId,
        slot: &mut Slot<D>,
        event: Event<D>,
        effects: &mut impl Effects<ValidInvalid, D>,
    ) -> Result<(), Refusal> {
        let mut visit = Visit { protocol: self, topology, at, slot, effects };
        match event {
            Event::Request { from: Requester::Module(_), request } if visit.is_memory_next() => {
                visit.pass_home(request)
            }
            Event::Request { from, request: Request::Read { mask, scope } } => visit.read(from, mask, scope),
            Event::Request { from, request: Request::Write { mask, scope, data, tracked } } => {
                visit.write(from, mask, scope, data, tracked)
            }
            Event::Request { from, request: Request::Atomic { mask, scope, update, returns } } => {
                visit.atomic(from, Operation { mask, scope, update, returns })
            }
            Event::Fill { mask, data } => visit.fill(mask, data),
            Event::Serve { from, mask, data } => {
                visit.serve(from, mask, data);
                Ok(())
            }
            Event::InvalidateRegion => {
                visit.invalidate_region();
                Ok(())
            }
            Event::InvalidateLine => {
                visit.invalidate_line();
                Ok(())
            }
            Event::Evict { last_of_region } => visit.evict(last_of_region),
            Event::ReplaceEntry => {
                visit.replace_entry();
                Ok(())
            }
            Event::Downgrade { from } => {
                visit.table(Access::Downgrade(visit.sharer(from)), Cause::DirectoryEviction);
                Ok(())
            }
            Event::Flush => visit.flush(),
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

/// The operand of an atomic request.
#[derive(Clone, Copy)]
struct Operation<D: Data> {
    mask: Mask,
    scope: Scope,
    update: D::Update,
    returns: bool,
}

/// One event at one L2.
struct Visit<'a, R, T, D: Data, E, const BREAKABLE: bool> {
    protocol: &'a Vi<R, BREAKABLE>,
    topology: &'a T,
    at: ModuleId,
    slot: &'a mut Slot<D>,
    effects: &'a mut E,
}

impl<R: Rules, T: Topology, D: Data, E: Effects<ValidInvalid, D>, const BREAKABLE: bool>
    Visit<'_, R, T, D, E, BREAKABLE>
{
    fn broken(&self, rule: BrokenRule) -> bool {
        self.protocol.broken(rule)
    }

    fn is_system_home(&self) -> bool {
        self.at == self.slot.homes.system
    }

    /// Whether this L2 keeps a directory entry for the line.
    fn is_home(&self) -> bool {
        self.is_system_home() || (R::HIERARCHICAL && self.at == self.slot.homes.gpu)
    }

    /// The next level up; `None` at the system home, where memory is next.
    fn next(&self) -> Option<ModuleId> {
        self.slot.homes.next(self.at, R::HIERARCHICAL)
    }

    /// The L2 at or beyond which an operation of this scope is coherent.
    fn scope_home(&self, scope: Scope) -> ModuleId {
        match scope {
            Scope::Cta | Scope::Gpu if R::HIERARCHICAL => self.slot.homes.gpu,
            Scope::Cta | Scope::Gpu | Scope::Sys => self.slot.homes.system,
        }
    }

    /// Whether this L2 is its line's system home, and the accesses of several modules meet behind it.
    fn is_memory_next(&self) -> bool {
        self.is_system_home() && self.protocol.ordering_point().is_memory()
    }

    /// Whether this L2 is at or beyond the home of the scope, and may keep the line. None is where memory is.
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
        if self.protocol.passes_reads()
            && !self.cached()
            && let Some(home) = self.next()
        {
            self.effects.send(home, Message::Passed(Request::Read { mask, scope }));
            return Ok(());
        }
        let line = self.slot.line.filter(|_| self.may_hit(scope)).unwrap_or_default();
        let missing = self.protocol.options.sectors.widen(mask & !line.valid);
        if !missing.is_empty() {
            self.send_for(missing, scope)?;
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

    /// Has a read wait for the bytes `missing`: sends for those of them that are not on their way.
    fn send_for(&mut self, missing: Mask, scope: Scope) -> Result<(), Refusal> {
        let pending = self.slot.pending.unwrap_or_default();
        let asked = missing & !pending.mask;
        if !self.may_merge(pending, missing & pending.mask, scope) {
            return Err(Refusal::Stall);
        }
        if asked.is_empty() {
            return Ok(());
        }
        if !self.may_hit(scope) && self.slot.line.is_some_and(|line| !line.dirty.is_empty()) {
            // As for a release: the miss was read before these bytes arrive there.
            if self.slot.pending.is_some() {
                return Err(Refusal::Stall);
            }
            self.write_back();
        }
        self.miss(asked, scope);
        Ok(())
    }

    /// Whether a read may wait for these bytes of the miss on its way.
    fn may_merge(&self, pending: Pending, mask: Mask, scope: Scope) -> bool {
        let fresh = (pending.stale & mask).is_empty() || self.broken(BrokenRule::LoadMergesAcrossAcquire);
        mask.is_empty() || fresh && pending.scope >= scope
    }

    fn miss(&mut self, mask: Mask, scope: Scope) {
        self.slot.pending = Some(Pending::and(self.slot.pending, mask, scope));
        match self.next() {
            Some(home) => self.effects.send(home, Message::Request(Request::Read { mask, scope })),
            None => self.effects.memory(MemoryAccess::Read(mask)),
        }
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
        self.slot.pending = pending.without(mask);
        Ok(())
    }

    /// Sends the bytes down; a home records the sharer now, as they leave.
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
        // Merged with the miss, it would be read by loads that came before it: by its own thread's, too.
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
        }
        self.track_line();
        Ok(())
    }

    /// Whether the bytes of a store that goes on stay here too.
    fn store_stays(&self) -> bool {
        match self.protocol.options.stores {
            StoreAllocation::Literal => true,
            StoreAllocation::SharersOnly => self.is_system_home() || self.slot.line.is_some(),
        }
    }

    /// Whether homes record the sender of an atomic, which has dropped its copy.
    fn records_atomics(&self) -> bool {
        self.protocol.options.stores == StoreAllocation::Literal
    }

    /// Sends written bytes one level up.
    fn send_up(&mut self, mask: Mask, scope: Scope, data: D, tracked: bool) {
        match self.next() {
            Some(home) => self.effects.send(home, Message::Request(Request::Write { mask, scope, data, tracked })),
            None => self.effects.memory(MemoryAccess::Write(mask, data)),
        }
    }

    /// Sends the line's dirty bytes one level up and keeps them, clean.
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

    fn atomic(&mut self, from: Requester, operation: Operation<D>) -> Result<(), Refusal> {
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
                // It runs again, as it came, when its sectors are here.
                self.miss(self.protocol.options.sectors.widen(operation.mask), Scope::Cta);
                self.effects.hold(Hold::Park);
            }
        }
        Ok(())
    }

    /// An atomic on its way to its home: no copy on the way stays current.
    fn pass_atomic(&mut self, from: Requester, operation: Operation<D>) {
        let Operation { mask, scope, update, returns } = operation;
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
            Some(home) => self.effects.send(home, Message::Request(request)),
            None => self.effects.memory(MemoryAccess::Request(request)),
        }
    }

    fn perform(&mut self, from: Requester, operation: Operation<D>, mut line: LineState<D>) {
        let Operation { mask, update, returns, .. } = operation;
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

    /// Drops the line. Its dirty bytes are the only current copy: at a home that is the ordering point they are written
    /// to memory; elsewhere they stay until a release writes them back. They stay too while a fill is on its way, which
    /// was read before them and serves those who wait.
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
        // A GPU home whose modules hold copies still stands for them at the system home.
        let drops_region = last_of_region && self.slot.entry.is_none_or(Sharers::is_empty);
        if !line.dirty.is_empty() && !self.broken(BrokenRule::DirtyEvictionLost) {
            self.send_up(line.dirty, Scope::Cta, line.data, !drops_region);
        }
        if drops_region
            && self.protocol.downgrades()
            && let Some(home) = self.next()
        {
            self.effects.send(home, Message::Downgrade);
        }
        Ok(())
    }

    /// The part of a release that this line takes: dirty bytes go one level up.
    fn flush(&mut self) -> Result<(), Refusal> {
        let dirty = self.slot.line.is_some_and(|line| !line.dirty.is_empty());
        let is_end = self.is_system_home() && !self.is_memory_next();
        if is_end || !dirty {
            return Ok(());
        }
        if self.slot.pending.is_some() {
            // Its fill was read before these bytes arrive there, and only dirty bytes are kept from it.
            return Err(Refusal::Stall);
        }
        self.write_back();
        Ok(())
    }
}
