//! A client: an L2 above a memory that caches the host's blocks.

use super::broken::BrokenNmoesi;
use super::{Message, Nmoesi};
use crate::block::{BlockData, ByteSet};
use crate::client_home::{Answer, BlockEvent, BlockRequest, ClientHomeTypes, ClientView, Hold, Node};
use crate::coherence::Refusal;
use crate::effects::Effects;
use std::fmt;
use std::mem;
use tombolo_types::{ModuleId, Scope};

/// A client's state for a block. Source: UMH, section 4.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ClientState {
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

impl ClientState {
    /// Every state, in Table II's order.
    pub const ALL: [ClientState; 6] =
        [ClientState::N, ClientState::M, ClientState::O, ClientState::E, ClientState::S, ClientState::I];
}

impl fmt::Display for ClientState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ClientState::I => "I",
            ClientState::S => "S",
            ClientState::E => "E",
            ClientState::O => "O",
            ClientState::M => "M",
            ClientState::N => "N",
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
    pub state: ClientState,
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
        matches!(self.state, ClientState::M | ClientState::O | ClientState::E)
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
    fn install<const BREAKABLE: bool>(&mut self, state: ClientState, data: B, protocol: &Nmoesi<BREAKABLE>) {
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
            ClientState::N => true,
            ClientState::O => !protocol.is_broken(BrokenNmoesi::MergeSkipsOwned),
            ClientState::I | ClientState::S | ClientState::E | ClientState::M => {
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

    pub(super) fn standing(&self) -> ClientView<B::Set> {
        let excludes = matches!(self.state, ClientState::E | ClientState::M);
        let mut dirty = self.dirty.clone();
        dirty.add(&self.fresh);
        ClientView { holds: self.state != ClientState::I, excludes, owns: self.owns_block(), dirty }
    }
}

pub(super) fn step<const BREAKABLE: bool, B: BlockData>(
    protocol: &Nmoesi<BREAKABLE>,
    block: &mut ClientBlock<B>,
    event: BlockEvent<Message<B>, B>,
    effects: &mut impl Effects<ClientHomeTypes<Nmoesi<BREAKABLE>>, B>,
) -> Result<(), Refusal> {
    let mut client = Client { protocol, block, effects };
    match event {
        BlockEvent::Request(_) | BlockEvent::Evict | BlockEvent::Merge { .. } if client.block.waiting.is_some() => {
            Err(Refusal::Stall)
        }
        BlockEvent::Request(BlockRequest::Read { set, scope }) => client.load(set, scope),
        BlockEvent::Request(BlockRequest::Write { set, scope, data }) => client.store(&set, scope, &data),
        BlockEvent::Request(BlockRequest::Atomic { set, update, returns, scope: _ }) => {
            client.atomic(&set, update, returns)
        }
        BlockEvent::EvictAbove(set) => {
            client.evict_above(&set);
            Ok(())
        }
        BlockEvent::Evict => {
            client.evict();
            Ok(())
        }
        BlockEvent::Merge { all } => {
            client.merge(all);
            Ok(())
        }
        BlockEvent::Message { message, .. } => client.on_message(message),
        BlockEvent::Read(_) => Err(Refusal::Unexpected("a client that has asked no memory of the host's was answered")),
    }
}

struct Client<'a, E, B: BlockData, const BREAKABLE: bool> {
    protocol: &'a Nmoesi<BREAKABLE>,
    block: &'a mut ClientBlock<B>,
    effects: &'a mut E,
}

impl<const BREAKABLE: bool, B: BlockData, E: Effects<ClientHomeTypes<Nmoesi<BREAKABLE>>, B>>
    Client<'_, E, B, BREAKABLE>
{
    fn is_broken(&self, rule: BrokenNmoesi) -> bool {
        self.protocol.is_broken(rule)
    }

    fn load(&mut self, set: B::Set, scope: Scope) -> Result<(), Refusal> {
        let coherent = scope == Scope::Sys && !self.is_broken(BrokenNmoesi::CoherentLoadHitsShared);
        match (self.block.state, coherent) {
            (ClientState::I, false) => self.request(Message::Read, PendingTransaction::Read { overtaken: false }),
            (ClientState::I | ClientState::S | ClientState::N | ClientState::O, true) => self.request_exclusive(),
            (ClientState::S | ClientState::N | ClientState::O, false) | (ClientState::E | ClientState::M, _) => {
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
            (ClientState::I, false) => {
                return self.request(Message::Read, PendingTransaction::Read { overtaken: false });
            }
            (ClientState::I | ClientState::S | ClientState::N | ClientState::O, true) => {
                return self.request_exclusive();
            }
            (ClientState::S | ClientState::N, false) => ClientState::N,
            (ClientState::O, false) => ClientState::O,
            (ClientState::E, false) if self.is_broken(BrokenNmoesi::StoreKeepsExclusive) => ClientState::E,
            (ClientState::E | ClientState::M, _) => ClientState::M,
        };
        self.block.state = state;
        self.block.put(set, data);
        Ok(())
    }

    fn atomic(&mut self, set: &B::Set, update: B::Update, returns: bool) -> Result<(), Refusal> {
        let state = match self.block.state {
            ClientState::E | ClientState::M => ClientState::M,
            ClientState::S | ClientState::N if self.is_broken(BrokenNmoesi::AtomicShares) => ClientState::N,
            ClientState::I | ClientState::S | ClientState::N | ClientState::O => return self.request_exclusive(),
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
        self.request(Message::Write { holds: self.block.state != ClientState::I }, PendingTransaction::Write)
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
            ClientState::I => {}
            ClientState::E | ClientState::S if silent => self.block.give_up(self.protocol),
            ClientState::N if self.is_broken(BrokenNmoesi::SharedBytesEvictedSilently) => {
                self.block.give_up(self.protocol)
            }
            ClientState::M if self.is_broken(BrokenNmoesi::DirtyEvictedSilently) => self.block.give_up(self.protocol),
            ClientState::E | ClientState::S | ClientState::N | ClientState::M | ClientState::O => {
                self.write_back(false)
            }
        }
    }

    fn merge(&mut self, all: bool) {
        match self.block.state {
            ClientState::M if all => self.write_back(true),
            ClientState::N | ClientState::O if self.block.owes(self.protocol) => self.write_back(true),
            ClientState::I | ClientState::S | ClientState::E | ClientState::M | ClientState::N | ClientState::O => {}
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
                self.block.install(ClientState::S, data, self.protocol);
            }
            (Message::Exclusive { data }, Some(PendingTransaction::Read { .. })) => {
                self.block.install(ClientState::E, data, self.protocol);
            }
            (Message::Exclusive { data }, Some(PendingTransaction::Write)) => self.install_exclusive(data),
            (Message::Alone { set, data }, Some(PendingTransaction::Write)) => self.upgrade_to_exclusive(set, &data),
            (Message::Peer { data }, Some(PendingTransaction::Read { overtaken })) => {
                if overtaken && !self.is_broken(BrokenNmoesi::PeerOvertakenInstalls) {
                    self.request_exclusive_from_home();
                } else {
                    self.block.install(ClientState::S, data, self.protocol);
                }
            }
            (Message::Taken { kept }, Some(PendingTransaction::Back)) => self.on_write_back_ack(kept),
            (Message::Merged, _) => self.block.given = false,
            (Message::Take, _) => self.on_take(),
            (Message::Share | Message::Forward { .. }, _)
                if matches!(self.block.state, ClientState::S | ClientState::N) =>
            {
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
        self.block.state == ClientState::N && !self.is_broken(BrokenNmoesi::OthersOverOwn)
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
        self.block.state = if self.block.dirty.is_empty() { ClientState::E } else { ClientState::M };
        self.block.waiting = None;
    }

    fn on_write_back_ack(&mut self, kept: bool) {
        self.block.waiting = None;
        if kept && self.block.state != ClientState::I {
            self.block.state = ClientState::S;
            self.block.dirty = B::Set::default();
        } else {
            self.block.give_up(self.protocol);
        }
    }

    fn on_take(&mut self) {
        let misses_l2 = self.is_broken(BrokenNmoesi::InvalidationMissesL2);
        if !misses_l2 && self.block.state != ClientState::E {
            self.block.merge_l2_bytes();
        }
        let gone = self.block.waiting == Some(PendingTransaction::Back)
            && self.is_broken(BrokenNmoesi::SentBackAnswersNothing);
        let held = (mem::take(&mut self.block.dirty), mem::take(&mut self.block.data));
        let (set, data) = if gone { Default::default() } else { held };
        if let Some(PendingTransaction::Read { overtaken }) = &mut self.block.waiting {
            *overtaken = true;
        }
        let waits = matches!(self.block.state, ClientState::N | ClientState::O);
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
            self.block.state = ClientState::S;
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
        if self.block.state != ClientState::E {
            self.block.merge_l2_bytes();
        }
        self.effects.send(Node::Client(to), Message::Peer { data: self.block.data.clone() });
        self.block.state = match self.block.state {
            ClientState::M | ClientState::O => ClientState::O,
            ClientState::E => ClientState::S,
            ClientState::I | ClientState::S | ClientState::N => self.block.state,
        };
        if self.is_broken(BrokenNmoesi::RefusedAndSent) {
            self.effects.send(Node::Home, Message::Refused);
        }
        let owns = self.block.state == ClientState::O;
        self.effects.send(Node::Home, Message::Sent { owns });
    }
}
