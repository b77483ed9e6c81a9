//! A client: an L2 above a memory that caches the host's blocks.

use super::broken::BrokenNmoesi;
use super::{Message, Nmoesi};
use crate::block::{BlockData, ByteSet};
use crate::coherence::Refusal;
use crate::node::Effects;
use crate::nodes::{Answer, Event, Hold, Node, Of, Request, Standing};
use std::fmt;
use std::mem;
use tombolo_types::{ModuleId, Scope};

/// A client's state for a block. Source: UMH, section 4.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum State {
    /// Invalid: not held.
    #[default]
    I,
    /// Shared with other clients, clean.
    S,
    /// Exclusive, clean.
    E,
    /// Possibly shared; this client owns the block and answers for bytes that memory lacks.
    O,
    /// Exclusive, with bytes that memory lacks.
    M,
    /// Possibly shared, with bytes that only this client has written.
    N,
}

impl State {
    /// Every state, in Table II's order.
    pub const ALL: [State; 6] = [State::N, State::M, State::O, State::E, State::S, State::I];
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            State::I => "I",
            State::S => "S",
            State::E => "E",
            State::O => "O",
            State::M => "M",
            State::N => "N",
        })
    }
}

/// A client's pending transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PendingTransaction {
    /// Waits for the block.
    Read {
        /// Set when the home has taken the block away since: a peer's copy must not be kept.
        overtaken: bool,
    },
    /// Waits for the block with exclusive access.
    Write,
    /// Waits for the acknowledgment of a write-back.
    Back,
}

/// A block at a client.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ClientBlock<B: BlockData> {
    /// The block's state.
    pub state: State,
    /// The transaction under way.
    pub waiting: Option<PendingTransaction>,
    /// The block's contents in this client's memory: complete unless the state is I.
    pub data: B,
    /// Subset of `data` that host memory lacks.
    pub dirty: B::Set,
    /// Bytes present in the L2.
    pub above: B::Set,
    /// Subset of `above` that this client's memory lacks.
    pub fresh: B::Set,
    /// The L2's contents.
    pub l2: B,
    /// Set when other clients' copies may still lack bytes that this client has given up.
    pub given: bool,
}

impl<B: BlockData> ClientBlock<B> {
    fn owns_block(&self) -> bool {
        matches!(self.state, State::M | State::O | State::E)
    }

    /// Brings this client's memory up to date: every reply includes the block's lines in the L2.
    fn merge_l2_bytes(&mut self) {
        let fresh = mem::take(&mut self.fresh);
        self.data.merge(&self.l2, &fresh);
        self.dirty.add(&fresh);
    }

    /// Gives up the block, including its lines in the L2.
    fn give_up<const BREAKABLE: bool>(&mut self, protocol: &Nmoesi<BREAKABLE>) {
        let ClientBlock { waiting, given, above, l2, .. } = mem::take(self);
        let keeps_l2 = protocol.is_broken(BrokenNmoesi::InvalidationMissesL2);
        let (above, l2) = if keeps_l2 { (above, l2) } else { Default::default() };
        *self = ClientBlock { waiting, given, above, l2, ..ClientBlock::default() };
    }

    /// Installs the block as granted, replacing any previous copy.
    fn install<const BREAKABLE: bool>(&mut self, state: State, data: B, protocol: &Nmoesi<BREAKABLE>) {
        self.give_up(protocol);
        self.state = state;
        self.data = data;
        self.waiting = None;
    }

    /// Raises these bytes into the L2.
    fn raise_to_l2(&mut self, set: &B::Set) {
        let lacking = set.without(&self.above);
        self.l2.merge(&self.data, &lacking);
        self.above.add(&lacking);
    }

    fn put(&mut self, set: &B::Set, data: &B) {
        self.l2.merge(data, set);
        self.above.add(set);
        self.fresh.add(set);
    }

    /// True if a release has bytes in this block to merge: other clients may hold the block without them.
    pub(super) fn owes<const BREAKABLE: bool>(&self, protocol: &Nmoesi<BREAKABLE>) -> bool {
        match self.state {
            State::N => true,
            State::O => !protocol.is_broken(BrokenNmoesi::MergeSkipsOwned),
            State::I | State::S | State::E | State::M => {
                self.given && !protocol.is_broken(BrokenNmoesi::GivenNotAwaited)
            }
        }
    }

    /// The block's contents, merged from memory and L2.
    pub(super) fn contents(&self) -> B {
        let mut data = self.data.clone();
        data.merge(&self.l2, &self.fresh);
        data
    }

    /// True if the block has bytes that host memory lacks.
    pub(super) fn is_dirty(&self) -> bool {
        !self.dirty.is_empty() || !self.fresh.is_empty()
    }

    pub(super) fn standing(&self) -> Standing<B::Set> {
        let excludes = matches!(self.state, State::E | State::M);
        let mut dirty = self.dirty.clone();
        dirty.add(&self.fresh);
        Standing { holds: self.state != State::I, excludes, owns: self.owns_block(), dirty }
    }
}

pub(super) fn step<const BREAKABLE: bool, B: BlockData>(
    protocol: &Nmoesi<BREAKABLE>,
    block: &mut ClientBlock<B>,
    event: Event<Message<B>, B>,
    effects: &mut impl Effects<Of<Nmoesi<BREAKABLE>>, B>,
) -> Result<(), Refusal> {
    let mut client = Client { protocol, block, effects };
    match event {
        Event::Asked(_) | Event::Evict | Event::Merge { .. } if client.block.waiting.is_some() => Err(Refusal::Stall),
        Event::Asked(Request::Read { set, scope }) => client.load(set, scope),
        Event::Asked(Request::Write { set, scope, data }) => client.store(&set, scope, &data),
        Event::Asked(Request::Atomic { set, update, returns, scope: _ }) => client.atomic(&set, update, returns),
        Event::EvictAbove(set) => {
            client.evict_above(&set);
            Ok(())
        }
        Event::Evict => {
            client.evict();
            Ok(())
        }
        Event::Merge { all } => {
            client.merge(all);
            Ok(())
        }
        Event::Told { message, .. } => client.on_message(message),
        Event::Read(_) => Err(Refusal::Unexpected("a client that has asked no memory of the host's was answered")),
    }
}

struct Client<'a, E, B: BlockData, const BREAKABLE: bool> {
    protocol: &'a Nmoesi<BREAKABLE>,
    block: &'a mut ClientBlock<B>,
    effects: &'a mut E,
}

impl<const BREAKABLE: bool, B: BlockData, E: Effects<Of<Nmoesi<BREAKABLE>>, B>> Client<'_, E, B, BREAKABLE> {
    fn is_broken(&self, rule: BrokenNmoesi) -> bool {
        self.protocol.is_broken(rule)
    }

    fn load(&mut self, set: B::Set, scope: Scope) -> Result<(), Refusal> {
        let coherent = scope == Scope::Sys && !self.is_broken(BrokenNmoesi::CoherentLoadHitsShared);
        match (self.block.state, coherent) {
            (State::I, false) => self.request(Message::Read, PendingTransaction::Read { overtaken: false }),
            (State::I | State::S | State::N | State::O, true) => self.request_exclusive(),
            (State::S | State::N | State::O, false) | (State::E | State::M, _) => {
                self.block.raise_to_l2(&set);
                let data = self.block.l2.only(&set);
                self.effects.answer(Answer::Fill { set, data });
                Ok(())
            }
        }
    }

    fn store(&mut self, set: &B::Set, scope: Scope, data: &B) -> Result<(), Refusal> {
        let coherent = scope != Scope::Cta && !self.is_broken(BrokenNmoesi::CoherentStoreShares);
        let state = match (self.block.state, coherent) {
            (State::I, false) => return self.request(Message::Read, PendingTransaction::Read { overtaken: false }),
            (State::I | State::S | State::N | State::O, true) => return self.request_exclusive(),
            (State::S | State::N, false) => State::N,
            (State::O, false) => State::O,
            (State::E, false) if self.is_broken(BrokenNmoesi::StoreKeepsExclusive) => State::E,
            (State::E | State::M, _) => State::M,
        };
        self.block.state = state;
        self.block.put(set, data);
        Ok(())
    }

    fn atomic(&mut self, set: &B::Set, update: B::Update, returns: bool) -> Result<(), Refusal> {
        let state = match self.block.state {
            State::E | State::M => State::M,
            State::S | State::N if self.is_broken(BrokenNmoesi::AtomicShares) => State::N,
            State::I | State::S | State::N | State::O => return self.request_exclusive(),
        };
        self.block.state = state;
        self.block.raise_to_l2(set);
        let data = self.block.l2.update(update, set);
        self.block.fresh.add(set);
        if returns {
            self.effects.answer(Answer::Old { data });
        }
        Ok(())
    }

    /// Sends a request to the home, and holds the current request until the reply.
    fn request(&mut self, message: Message<B>, waiting: PendingTransaction) -> Result<(), Refusal> {
        self.block.waiting = Some(waiting);
        self.effects.send(Node::Home, message);
        self.effects.hold(Hold::Park);
        Ok(())
    }

    fn request_exclusive(&mut self) -> Result<(), Refusal> {
        self.request(Message::Write { holds: self.block.state != State::I }, PendingTransaction::Write)
    }

    /// Requests the block again, with exclusive access, so that the home itself replies and nothing overtakes it. A
    /// request served by a peer might be overtaken forever.
    fn request_exclusive_from_home(&mut self) {
        self.block.waiting = Some(PendingTransaction::Write);
        self.effects.send(Node::Home, Message::Write { holds: false });
    }

    fn evict_above(&mut self, set: &B::Set) {
        let written = set.within(&self.block.fresh);
        self.block.data.merge(&self.block.l2, &written);
        self.block.dirty.add(&written);
        self.block.fresh.remove(&written);
        self.block.above.remove(set);
    }

    fn evict(&mut self) {
        let silent = self.protocol.nmoesi().silent_eviction;
        match self.block.state {
            State::I => {}
            State::E | State::S if silent => self.block.give_up(self.protocol),
            State::N if self.is_broken(BrokenNmoesi::SharedBytesEvictedSilently) => self.block.give_up(self.protocol),
            State::M if self.is_broken(BrokenNmoesi::DirtyEvictedSilently) => self.block.give_up(self.protocol),
            State::E | State::S | State::N | State::M | State::O => self.write_back(false),
        }
    }

    fn merge(&mut self, all: bool) {
        match self.block.state {
            State::M if all => self.write_back(true),
            State::N | State::O if self.block.owes(self.protocol) => self.write_back(true),
            State::I | State::S | State::E | State::M | State::N | State::O => {}
        }
    }

    fn write_back(&mut self, keep: bool) {
        self.block.merge_l2_bytes();
        self.block.waiting = Some(PendingTransaction::Back);
        let set = self.block.dirty.clone();
        let data = self.block.data.only(&set);
        self.effects.send(Node::Home, Message::Back { set, data, keep });
    }

    fn on_message(&mut self, message: Message<B>) -> Result<(), Refusal> {
        match (message, self.block.waiting) {
            (Message::Shared { data }, Some(PendingTransaction::Read { .. })) => {
                self.block.install(State::S, data, self.protocol);
            }
            (Message::Exclusive { data }, Some(PendingTransaction::Read { .. })) => {
                self.block.install(State::E, data, self.protocol);
            }
            (Message::Exclusive { data }, Some(PendingTransaction::Write)) => self.install_exclusive(data),
            (Message::Alone { set, data }, Some(PendingTransaction::Write)) => self.upgrade_to_exclusive(set, &data),
            (Message::Peer { data }, Some(PendingTransaction::Read { overtaken })) => {
                if overtaken && !self.is_broken(BrokenNmoesi::PeerOvertakenInstalls) {
                    self.request_exclusive_from_home();
                } else {
                    self.block.install(State::S, data, self.protocol);
                }
            }
            (Message::Taken { kept }, Some(PendingTransaction::Back)) => self.on_write_back_ack(kept),
            (Message::Merged, _) => self.block.given = false,
            (Message::Take, _) => self.on_take(),
            (Message::Share | Message::Forward { .. }, _) if matches!(self.block.state, State::S | State::N) => {
                return Err(Refusal::Unexpected("a client that only shares a block was asked for it as its owner"));
            }
            (Message::Share, _) => self.on_share(),
            (Message::Forward { to }, _) => self.on_forward(to),
            (
                Message::Shared { .. }
                | Message::Exclusive { .. }
                | Message::Alone { .. }
                | Message::Peer { .. }
                | Message::Taken { .. },
                Some(_) | None,
            ) => return Err(Refusal::Unexpected("a client was answered what it has not asked")),
            (
                Message::Read
                | Message::Write { .. }
                | Message::Back { .. }
                | Message::Bytes { .. }
                | Message::Sent { .. }
                | Message::Refused,
                _,
            ) => return Err(Refusal::Unexpected("a client was told what homes are told")),
        }
        Ok(())
    }

    /// True if the client's own bytes stay on top of other clients' bytes: in N, and not in O.
    fn keeps_own(&self) -> bool {
        self.block.state == State::N && !self.is_broken(BrokenNmoesi::OthersOverOwn)
    }

    /// Installs a whole block with exclusive access.
    fn install_exclusive(&mut self, mut data: B) {
        self.block.merge_l2_bytes();
        let own = mem::take(&mut self.block.dirty);
        let own = if self.keeps_own() { own } else { B::Set::default() };
        data.merge(&self.block.data, &own);
        self.block.data = data;
        // The L2's remaining bytes are older now.
        self.block.above = self.block.above.within(&own);
        self.block.dirty = own;
        self.set_exclusive();
    }

    /// Installs exclusive access together with the bytes written by other clients.
    fn upgrade_to_exclusive(&mut self, set: B::Set, data: &B) {
        self.block.merge_l2_bytes();
        let theirs = if self.keeps_own() { set.without(&self.block.dirty) } else { set };
        self.block.data.merge(data, &theirs);
        self.block.dirty.remove(&theirs);
        // The L2's copy of these bytes is older now.
        self.block.above.remove(&theirs);
        self.set_exclusive();
    }

    fn set_exclusive(&mut self) {
        self.block.state = if self.block.dirty.is_empty() { State::E } else { State::M };
        self.block.waiting = None;
    }

    fn on_write_back_ack(&mut self, kept: bool) {
        self.block.waiting = None;
        if kept && self.block.state != State::I {
            self.block.state = State::S;
            self.block.dirty = B::Set::default();
        } else {
            self.block.give_up(self.protocol);
        }
    }

    fn on_take(&mut self) {
        let misses_l2 = self.is_broken(BrokenNmoesi::InvalidationMissesL2);
        if !misses_l2 && self.block.state != State::E {
            self.block.merge_l2_bytes();
        }
        let gone = self.block.waiting == Some(PendingTransaction::Back)
            && self.is_broken(BrokenNmoesi::SentBackAnswersNothing);
        let held = (mem::take(&mut self.block.dirty), mem::take(&mut self.block.data));
        let (set, data) = if gone { Default::default() } else { held };
        if let Some(PendingTransaction::Read { overtaken }) = &mut self.block.waiting {
            *overtaken = true;
        }
        let waits = matches!(self.block.state, State::N | State::O);
        self.block.given |= waits;
        self.block.give_up(self.protocol);
        self.effects.send(Node::Home, Message::Bytes { set, data, stays: false, waits });
    }

    fn on_share(&mut self) {
        self.block.merge_l2_bytes();
        let set = mem::take(&mut self.block.dirty);
        let data = self.block.data.only(&set);
        let stays = self.block.owns_block() && self.block.waiting != Some(PendingTransaction::Back);
        if stays {
            self.block.state = State::S;
        } else {
            self.block.give_up(self.protocol);
        }
        self.effects.send(Node::Home, Message::Bytes { set, data, stays, waits: false });
    }

    fn on_forward(&mut self, to: ModuleId) {
        let gone = self.block.waiting == Some(PendingTransaction::Back)
            && self.is_broken(BrokenNmoesi::SentBackAnswersNothing);
        let invents = !self.block.owns_block() && self.is_broken(BrokenNmoesi::ForwardAnsweredWithoutBlock);
        if (!self.block.owns_block() || gone) && !invents {
            self.effects.send(Node::Home, Message::Refused);
            return;
        }
        if self.block.state != State::E {
            self.block.merge_l2_bytes();
        }
        self.effects.send(Node::Client(to), Message::Peer { data: self.block.data.clone() });
        self.block.state = match self.block.state {
            State::M | State::O => State::O,
            State::E => State::S,
            State::I | State::S | State::N => self.block.state,
        };
        if self.is_broken(BrokenNmoesi::RefusedAndSent) {
            self.effects.send(Node::Home, Message::Refused);
        }
        let owns = self.block.state == State::O;
        self.effects.send(Node::Home, Message::Sent { owns });
    }
}
