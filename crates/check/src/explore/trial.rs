//! Predicts the effects of a request at an L2: runs a step on a slot copy, and records the effects without performing
//! them.

use super::machine::Machine;
use super::state::{
    Channel, ChannelMessage, HeldRequest, HoldReason, MachineState, MessageBody, PostedRequest, RequestSource,
};
use super::values::Values;
use rustc_hash::FxHasher;
use std::hash::{Hash, Hasher};
use tombolo_protocol::coherence::{self, MemoryAccess};
use tombolo_protocol::{Coherence, Effects, L2Event, LineSlot, Refusal, Reply, Request, ValidInvalid};
use tombolo_types::{Line, Mask, ModuleId};

/// The recorded effects of a step.
#[derive(Default)]
pub(super) struct RecordedEffects {
    /// Digest over all effects in order.
    digest: FxHasher,
    /// Number of messages between modules.
    sent: u32,
    /// Set if memory is written.
    written: bool,
    /// Set if memory performs the request.
    pub(super) passed_to_memory: bool,
    /// Module to which a read is forwarded.
    reads_at: Option<ModuleId>,
    /// Set if the request received a reply.
    pub(super) replied: bool,
}

impl RecordedEffects {
    fn note(&mut self, effect: impl Hash) {
        effect.hash(&mut self.digest);
    }
}

impl Effects<ValidInvalid, Values> for RecordedEffects {
    fn send(&mut self, to: ModuleId, message: coherence::L2Message<Values>) {
        self.sent += 1;
        match message {
            coherence::L2Message::Request(request) | coherence::L2Message::Bypassed(request) => {
                if matches!(request, Request::Read { .. }) {
                    self.reads_at = Some(to);
                }
                self.note((to, request));
            }
            // The reason for an invalidation has no observable effect.
            coherence::L2Message::Invalidate(_) => self.note((7, to)),
            coherence::L2Message::Downgrade => self.note((8, to)),
        }
    }

    fn answer(&mut self, reply: Reply<Values>) {
        self.replied = true;
        match reply {
            Reply::Fill { mask, data } => self.note((3, mask, data)),
            Reply::Old { data } => self.note((4, data)),
        }
    }

    fn memory(&mut self, access: MemoryAccess<Values>) {
        match access {
            MemoryAccess::Read(mask) => self.note((1, mask)),
            MemoryAccess::Write(mask, data) => {
                self.written = true;
                self.note((2, mask, data));
            }
            MemoryAccess::Request(request) => {
                self.passed_to_memory = true;
                self.note((9, request));
            }
        }
    }

    fn hold(&mut self, how: coherence::Hold) {
        match how {
            coherence::Hold::Wait(mask) => self.note((5, mask)),
            coherence::Hold::Park => self.note(6),
        }
    }
}

/// Predicted result of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RequestPrediction {
    /// Set if the request would have to wait for its line's pending miss.
    refused: bool,
    /// Digest over all effects in order.
    effects: u64,
    /// Dirty bytes in the slot afterwards.
    dirty: Mask,
    /// Destination module for the forwarded request, if the request is a read with a miss.
    pub(super) reads_at: Option<ModuleId>,
}

impl<P: Coherence> Machine<'_, P> {
    /// Predicts the effects of `posted` from `source` at the slot for `line` in `module`. If `emptied`, the slot's copy
    /// is removed first.
    fn trial(
        &self,
        state: &MachineState,
        (module, line): (ModuleId, u8),
        source: RequestSource,
        posted: &PostedRequest,
        emptied: bool,
    ) -> RequestPrediction {
        let mut slot = self.slot_of(state, module, line);
        if emptied {
            slot.line = None;
        }
        let mut notes = RecordedEffects::default();
        let event = L2Event::Request { from: self.requester(module, source), request: posted.request };
        let result = self.protocol.step(self.scene.layout, module, &mut slot, event, &mut notes);
        RequestPrediction {
            refused: result == Err(Refusal::Stall),
            effects: notes.digest.finish(),
            dirty: slot.line.map_or(Mask::NONE, |line| line.dirty),
            reads_at: notes.reads_at,
        }
    }

    /// Predicts the effects of the first request in `channel` at the destination.
    pub(super) fn trial_of(&self, state: &MachineState, channel: Channel, emptied: bool) -> Option<RequestPrediction> {
        let at = self.visits(state, channel)?;
        let message = state.messages.iter().find(|message| message.channel == channel)?;
        let MessageBody::Request(posted) = &message.body else { return None };
        let source = match channel {
            Channel::ToL2 { sm, .. } => RequestSource::Sm(sm),
            Channel::Up { from, .. } => posted.passed.unwrap_or(RequestSource::Module(from)),
            _ => return None,
        };
        Some(self.trial(state, at, source, posted, emptied))
    }

    /// True if evicting a present line would send a message, or change data visible to other modules.
    pub(super) fn eviction_is_seen(&self, state: &MachineState, module: ModuleId, line: u8) -> bool {
        let mut slot = self.slot_of(state, module, line);
        let mut notes = RecordedEffects::default();
        let event = L2Event::Evict { last_of_region: true };
        let result = self.protocol.step(self.scene.layout, module, &mut slot, event, &mut notes);
        let is_read = notes.written && self.protocol.memory_answers();
        result.is_err() || notes.sent > 0 || is_read
    }

    fn slot_of(&self, state: &MachineState, module: ModuleId, line: u8) -> LineSlot<Values> {
        let at = state.l2[self.l2_index(module, line)];
        LineSlot {
            line_id: Line(u64::from(line)),
            homes: self.homes_now(state, module, line),
            line: at.line,
            pending: at.pending,
            entry: state.entries[self.entry_index(module, line)],
        }
    }

    /// True if the first request in `channel` may be delivered immediately. A request with no effect beyond being held
    /// stays in the channel, likewise a read without immediate forwarding.
    pub(super) fn admits(&self, state: &MachineState, channel: Channel, evict_first: bool) -> bool {
        let Some((module, line)) = self.visits(state, channel) else { return true };
        let here =
            |held: &HeldRequest| held.module == module && held.line == line && matches!(held.how, HoldReason::Park(_));
        if state.held.iter().any(here) {
            return false;
        }
        let lane = self.lane(line);
        let goes_up = |message: &ChannelMessage| match message.channel {
            Channel::Up { from, to, lane: taken } => (from == module && taken == lane).then_some(to),
            _ => None,
        };
        let waits_in_lane = self.runs_through() && state.messages.iter().any(|message| goes_up(message).is_some());
        if state.l2[self.l2_index(module, line)].pending.is_none() && !waits_in_lane {
            return true;
        }
        let Some(trial) = self.trial_of(state, channel, evict_first) else { return true };
        let blocks = |to: ModuleId| state.messages.iter().any(|message| goes_up(message) == Some(to));
        let is_blocked = waits_in_lane && trial.reads_at.is_some_and(blocks);
        !trial.refused && !is_blocked
    }

    /// True if evicting the line before the first request in `channel` has an observable effect.
    pub(super) fn eviction_matters(&self, state: &MachineState, channel: Channel, module: ModuleId, line: u8) -> bool {
        let slot = state.l2[self.l2_index(module, line)];
        if slot.line.is_none() || slot.pending.is_some() {
            return false;
        }
        self.eviction_is_seen(state, module, line)
            || self.trial_of(state, channel, false) != self.trial_of(state, channel, true)
    }
}
