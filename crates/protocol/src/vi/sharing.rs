//! Directory actions at a home: sharer recording and invalidation.

use super::{L2Transition, Rules};
use crate::broken_rule::BrokenRule;
use crate::coherence::{Coherence, InvalidationCause, L2Message, Requester, ValidInvalid};
use crate::data::Data;
use crate::directory::{self, DirectoryAccess, EntrySet, Sharer, Sharers};
use crate::effects::Effects;
use crate::topology::Topology;
use tombolo_types::ModuleId;

impl<R: Rules, T: Topology, D: Data, E: Effects<ValidInvalid, D>, const BREAKABLE: bool>
    L2Transition<'_, R, T, D, E, BREAKABLE>
{
    /// A home's view of a sender: a module in its own GPU, or (hierarchical) the whole GPU.
    pub(super) fn sharer(&self, from: ModuleId) -> Sharer {
        let gpu = self.topology.gpu_of(from);
        if R::HIERARCHICAL && gpu != self.topology.gpu_of(self.at) { Sharer::Gpu(gpu) } else { Sharer::Module(from) }
    }

    /// Records the sender of a read as a sharer. A sender whose L2 forwarded the read keeps neither the line nor a miss that
    /// later reads join.
    pub(super) fn record(&mut self, from: Requester) {
        if let Requester::Module(module) = from
            && !self.protocol.answers_issuer(self.topology, self.at, module, self.slot.line_id)
            && !self.broken(BrokenRule::SharerNotRecorded)
        {
            let access = DirectoryAccess::RemoteLoad(self.sharer(module));
            self.update_directory(access, InvalidationCause::Store);
        }
    }

    /// The directory action for a store or an atomic.
    pub(super) fn invalidate_others(&mut self, from: Requester, tracked: bool) {
        let access = match from {
            Requester::Local => DirectoryAccess::LocalStore,
            Requester::Module(module) if tracked => DirectoryAccess::RemoteStore(self.sharer(module)),
            Requester::Module(module) => DirectoryAccess::UntrackedStore(self.sharer(module)),
        };
        self.update_directory(access, InvalidationCause::Store);
    }

    /// The directory action after an access that found or left a line here, if the directory also tracks its own
    /// L2's lines.
    pub(super) fn track_line(&mut self) {
        if self.protocol.tracks_own() && self.slot.line.is_some() {
            self.update_directory(DirectoryAccess::LineHere, InvalidationCause::Store);
        }
    }

    /// Performs a single Table I transition at a home, and sends its invalidations.
    pub(super) fn update_directory(&mut self, access: DirectoryAccess, cause: InvalidationCause) {
        if !R::DIRECTORY || !self.is_home() {
            return;
        }
        let (entry, invalidated) = directory::transition(self.protocol.options.tracks, self.slot.entry, access);
        self.slot.entry = entry;
        let silent = match cause {
            InvalidationCause::Store => BrokenRule::StoreKeepsSharers,
            InvalidationCause::DirectoryEviction => BrokenRule::SilentDirectoryEviction,
            InvalidationCause::Forwarded => BrokenRule::InvalidationNotForwarded,
        };
        if !self.broken(silent) {
            self.send_invalidations(self.without_forgotten(access, invalidated), cause);
        }
    }

    /// The sharers to invalidate, minus the sharers forgotten by a broken rule.
    fn without_forgotten(&self, access: DirectoryAccess, sharers: Sharers) -> Sharers {
        match access {
            DirectoryAccess::RemoteStore(Sharer::Module(_)) if self.broken(BrokenRule::StoreKeepsSiblings) => {
                Sharers { modules: EntrySet::NONE, ..sharers }
            }
            DirectoryAccess::Invalidation if self.broken(BrokenRule::InvalidationForwardedOnce) => {
                sharers.iter().next().map(Sharers::only).unwrap_or_default()
            }
            DirectoryAccess::LocalLoad
            | DirectoryAccess::LineHere
            | DirectoryAccess::LocalStore
            | DirectoryAccess::RemoteLoad(_)
            | DirectoryAccess::RemoteStore(_)
            | DirectoryAccess::UntrackedStore(_)
            | DirectoryAccess::Replace
            | DirectoryAccess::Invalidation
            | DirectoryAccess::Downgrade(_) => sharers,
        }
    }

    fn send_invalidations(&mut self, sharers: Sharers, cause: InvalidationCause) {
        for sharer in sharers.iter() {
            let module = sharer.module(self.topology, self.at, self.slot.line_id);
            self.effects.send(module, L2Message::Invalidate(cause));
        }
    }

    /// The directory action for an invalidation from the home above: Table I's extra transition.
    pub(super) fn invalidate_region(&mut self) {
        if R::HIERARCHICAL {
            self.update_directory(DirectoryAccess::Invalidation, InvalidationCause::Forwarded);
        }
    }

    pub(super) fn replace_entry(&mut self) {
        self.update_directory(DirectoryAccess::Replace, InvalidationCause::DirectoryEviction);
    }
}
