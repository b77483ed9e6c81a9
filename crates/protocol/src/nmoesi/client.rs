//! A client: an L2 above a memory that caches blocks of the host's.

use super::broken::BrokenNmoesi;
use super::{Message, Nmoesi};
use crate::coherence::{Refusal, Reply, Request};
use crate::data::Data;
use crate::node::Effects;
use crate::nodes::{Event, Hold, Node, Of, Standing};
use tombolo_types::{Mask, ModuleId, Scope};

/// How a client holds a block. Source: UMH, section 4.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum State {
    /// Not at all.
    #[default]
    I,
    /// As others may, clean.
    S,
    /// Alone, clean.
    E,
    /// As others may; it answers for bytes that memory lacks.
    O,
    /// Alone, with bytes that memory lacks.
    M,
    /// As others may, with bytes that it alone has written.
    N,
}

/// What a client waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Waiting {
    /// The block.
    Read {
        /// Whether the home has taken it away since: what a peer sends is not to be kept.
        overtaken: bool,
    },
    /// The block, alone.
    Write,
    /// Word that what went back has been taken.
    Back,
}

/// A block at a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Block<D> {
    /// How it is held.
    pub state: State,
    /// The transaction under way.
    pub waiting: Option<Waiting>,
    /// What memory here holds of it: all of it, unless the state is I.
    pub data: D,
    /// Bytes of these that the host's memory lacks.
    pub dirty: Mask,
    /// Bytes in the L2.
    pub above: Mask,
    /// Bytes of these that memory here lacks.
    pub fresh: Mask,
    /// What the L2 holds.
    pub l2: D,
    /// Whether bytes that it has given up may be lacking in others' copies still.
    pub given: bool,
}

impl<D: Data> Block<D> {
    fn answers(&self) -> bool {
        matches!(self.state, State::M | State::O | State::E)
    }

    /// Brings memory here up to date: every answer looks up the L2's lines of the block.
    fn settle(&mut self) {
        self.data.merge(self.l2, self.fresh);
        self.dirty |= self.fresh;
        self.fresh = Mask::NONE;
    }

    /// Gives up the block, and its lines in the L2 with it.
    fn leave<const BREAKABLE: bool>(&mut self, protocol: &Nmoesi<BREAKABLE>) {
        let keeps_l2 = protocol.is_broken(BrokenNmoesi::InvalidationMissesL2);
        let (above, l2) = if keeps_l2 { (self.above, self.l2) } else { Default::default() };
        *self = Block { waiting: self.waiting, above, l2, given: self.given, ..Block::default() };
    }

    /// The block as it is told to be, in the place of whatever was here.
    fn install<const BREAKABLE: bool>(&mut self, state: State, data: D, protocol: &Nmoesi<BREAKABLE>) {
        self.leave(protocol);
        *self = Block { state, data, waiting: None, ..*self };
    }

    /// Has these bytes in the L2.
    fn raise(&mut self, mask: Mask) {
        self.l2.merge(self.data, mask & !self.above);
        self.above |= mask;
    }

    fn put(&mut self, mask: Mask, data: D) {
        self.l2.merge(data, mask);
        self.above |= mask;
        self.fresh |= mask;
    }

    /// Whether a release has bytes of it to merge: others may hold the block without them.
    pub(super) fn owes<const BREAKABLE: bool>(&self, protocol: &Nmoesi<BREAKABLE>) -> bool {
        match self.state {
            State::N => true,
            State::O => !protocol.is_broken(BrokenNmoesi::MergeSkipsOwned),
            State::I | State::S | State::E | State::M => {
                self.given && !protocol.is_broken(BrokenNmoesi::GivenNotAwaited)
            }
        }
    }

    /// What it holds, whichever of the two has it.
    pub(super) fn contents(&self) -> D {
        let mut data = self.data;
        data.merge(self.l2, self.fresh);
        data
    }

    pub(super) fn standing(&self) -> Standing {
        let excludes = matches!(self.state, State::E | State::M);
        let holds = self.state != State::I;
        let valid = if holds { Mask::ALL } else { Mask::NONE };
        Standing { holds, excludes, owns: self.answers(), valid, dirty: self.dirty | self.fresh, above: self.above }
    }
}

pub(super) fn step<const BREAKABLE: bool, D: Data>(
    protocol: &Nmoesi<BREAKABLE>,
    block: &mut Block<D>,
    event: Event<Message<D>, D>,
    effects: &mut impl Effects<Of<Nmoesi<BREAKABLE>>, D>,
) -> Result<(), Refusal> {
    let mut client = Client { protocol, block, effects };
    match event {
        Event::Asked(_) | Event::Evict | Event::Merge { .. } if client.block.waiting.is_some() => Err(Refusal::Stall),
        Event::Asked(Request::Read { mask, scope }) => client.load(mask, scope),
        Event::Asked(Request::Write { mask, scope, data, .. }) => client.store(mask, scope, data),
        Event::Asked(Request::Atomic { mask, update, returns, .. }) => client.atomic(mask, update, returns),
        Event::EvictAbove(mask) => {
            client.evict_above(mask);
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
        Event::Told { message, .. } => client.told(message),
        Event::Read(_) => Err(Refusal::Unexpected("a client that has asked no memory of the host's was answered")),
    }
}

struct Client<'a, E, D, const BREAKABLE: bool> {
    protocol: &'a Nmoesi<BREAKABLE>,
    block: &'a mut Block<D>,
    effects: &'a mut E,
}

impl<const BREAKABLE: bool, D: Data, E: Effects<Of<Nmoesi<BREAKABLE>>, D>> Client<'_, E, D, BREAKABLE> {
    fn is_broken(&self, rule: BrokenNmoesi) -> bool {
        self.protocol.is_broken(rule)
    }

    fn load(&mut self, mask: Mask, scope: Scope) -> Result<(), Refusal> {
        let coherent = scope == Scope::Sys && !self.is_broken(BrokenNmoesi::CoherentLoadHitsShared);
        match (self.block.state, coherent) {
            (State::I, false) => self.ask(Message::Read, Waiting::Read { overtaken: false }),
            (State::I | State::S | State::N | State::O, true) => self.ask_alone(),
            (State::S | State::N | State::O, false) | (State::E | State::M, _) => {
                self.block.raise(mask);
                self.effects.answer(Reply::Fill { mask, data: self.block.l2 });
                Ok(())
            }
        }
    }

    fn store(&mut self, mask: Mask, scope: Scope, data: D) -> Result<(), Refusal> {
        let coherent = scope != Scope::Cta && !self.is_broken(BrokenNmoesi::CoherentStoreShares);
        let state = match (self.block.state, coherent) {
            (State::I, false) => return self.ask(Message::Read, Waiting::Read { overtaken: false }),
            (State::I | State::S | State::N | State::O, true) => return self.ask_alone(),
            (State::S | State::N, false) => State::N,
            (State::O, false) => State::O,
            (State::E, false) if self.is_broken(BrokenNmoesi::StoreKeepsExclusive) => State::E,
            (State::E | State::M, _) => State::M,
        };
        self.block.state = state;
        self.block.put(mask, data);
        Ok(())
    }

    fn atomic(&mut self, mask: Mask, update: D::Update, returns: bool) -> Result<(), Refusal> {
        let state = match self.block.state {
            State::E | State::M => State::M,
            State::S | State::N if self.is_broken(BrokenNmoesi::AtomicShares) => State::N,
            State::I | State::S | State::N | State::O => return self.ask_alone(),
        };
        self.block.state = state;
        self.block.raise(mask);
        let data = self.block.l2.update(update, mask);
        self.block.fresh |= mask;
        if returns {
            self.effects.answer(Reply::Old { data });
        }
        Ok(())
    }

    /// Asks the home, and holds the request at hand until it answers.
    fn ask(&mut self, message: Message<D>, waiting: Waiting) -> Result<(), Refusal> {
        self.block.waiting = Some(waiting);
        self.effects.send(Node::Home, message);
        self.effects.hold(Hold::Park);
        Ok(())
    }

    fn ask_alone(&mut self) -> Result<(), Refusal> {
        self.ask(Message::Write { holds: self.block.state != State::I }, Waiting::Write)
    }

    fn evict_above(&mut self, mask: Mask) {
        let written = self.block.fresh & mask;
        self.block.data.merge(self.block.l2, written);
        self.block.dirty |= written;
        self.block.fresh = self.block.fresh & !mask;
        self.block.above = self.block.above & !mask;
    }

    fn evict(&mut self) {
        let silent = self.protocol.nmoesi().silent_eviction;
        match self.block.state {
            State::I => {}
            State::E | State::S if silent => self.block.leave(self.protocol),
            State::N if self.is_broken(BrokenNmoesi::SharedBytesEvictedSilently) => self.block.leave(self.protocol),
            State::M if self.is_broken(BrokenNmoesi::DirtyEvictedSilently) => self.block.leave(self.protocol),
            State::E | State::S | State::N | State::M | State::O => self.send_back(false),
        }
    }

    fn merge(&mut self, all: bool) {
        match self.block.state {
            State::M if all => self.send_back(true),
            State::N | State::O if self.block.owes(self.protocol) => self.send_back(true),
            State::I | State::S | State::E | State::M | State::N | State::O => {}
        }
    }

    fn send_back(&mut self, keep: bool) {
        self.block.settle();
        let Block { dirty: mask, data, .. } = *self.block;
        self.block.waiting = Some(Waiting::Back);
        self.effects.send(Node::Home, Message::Back { mask, data, keep });
    }

    fn told(&mut self, message: Message<D>) -> Result<(), Refusal> {
        match (message, self.block.waiting) {
            (Message::Shared { data }, Some(Waiting::Read { .. })) => {
                self.block.install(State::S, data, self.protocol);
            }
            (Message::Exclusive { data, .. }, Some(Waiting::Read { .. })) => {
                self.block.install(State::E, data, self.protocol);
            }
            (Message::Exclusive { mask, data }, Some(Waiting::Write)) => self.is_alone(mask, data),
            (Message::Peer { data }, Some(Waiting::Read { overtaken })) => {
                if overtaken && !self.is_broken(BrokenNmoesi::PeerOvertakenInstalls) {
                    self.block.waiting = None;
                } else {
                    self.block.install(State::S, data, self.protocol);
                }
            }
            (Message::Taken { kept }, Some(Waiting::Back)) => self.sent_back(kept),
            (Message::Merged, _) => self.block.given = false,
            (Message::Take, _) => self.take(),
            (Message::Share | Message::Forward { .. }, _) if matches!(self.block.state, State::S | State::N) => {
                return Err(Refusal::Unexpected("a client that only shares a block was asked for it as its owner"));
            }
            (Message::Share, _) => self.share(),
            (Message::Forward { to }, _) => self.forward(to),
            (
                Message::Shared { .. } | Message::Exclusive { .. } | Message::Peer { .. } | Message::Taken { .. },
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

    /// The block is this client's alone: what others have written goes below its own bytes in N, on top of them in O.
    fn is_alone(&mut self, mask: Mask, data: D) {
        self.block.settle();
        let own = match self.block.state {
            State::N if self.is_broken(BrokenNmoesi::OthersOverOwn) => Mask::NONE,
            State::N => self.block.dirty,
            State::I | State::S | State::E | State::M | State::O => Mask::NONE,
        };
        let theirs = mask & !own;
        self.block.data.merge(data, theirs);
        self.block.dirty = self.block.dirty & !theirs;
        // What the L2 holds of these is older now.
        self.block.above = self.block.above & !theirs;
        self.block.state = if self.block.dirty.is_empty() { State::E } else { State::M };
        self.block.waiting = None;
    }

    fn sent_back(&mut self, kept: bool) {
        self.block.waiting = None;
        if kept && self.block.state != State::I {
            self.block.state = State::S;
            self.block.dirty = Mask::NONE;
        } else {
            self.block.leave(self.protocol);
        }
    }

    fn take(&mut self) {
        let misses_l2 = self.is_broken(BrokenNmoesi::InvalidationMissesL2);
        if !misses_l2 && self.block.state != State::E {
            self.block.settle();
        }
        let gone = self.block.waiting == Some(Waiting::Back) && self.is_broken(BrokenNmoesi::SentBackAnswersNothing);
        let (mask, data) = if gone { (Mask::NONE, D::default()) } else { (self.block.dirty, self.block.data) };
        if let Some(Waiting::Read { overtaken }) = &mut self.block.waiting {
            *overtaken = true;
        }
        let waits = matches!(self.block.state, State::N | State::O);
        self.block.given |= waits;
        self.block.leave(self.protocol);
        self.effects.send(Node::Home, Message::Bytes { mask, data, stays: false, waits });
    }

    fn share(&mut self) {
        self.block.settle();
        let (mask, data) = (self.block.dirty, self.block.data);
        let stays = self.block.answers() && self.block.waiting != Some(Waiting::Back);
        if stays {
            self.block.state = State::S;
            self.block.dirty = Mask::NONE;
        } else {
            self.block.leave(self.protocol);
        }
        self.effects.send(Node::Home, Message::Bytes { mask, data, stays, waits: false });
    }

    fn forward(&mut self, to: ModuleId) {
        let gone = self.block.waiting == Some(Waiting::Back) && self.is_broken(BrokenNmoesi::SentBackAnswersNothing);
        let invents = !self.block.answers() && self.is_broken(BrokenNmoesi::ForwardAnsweredWithoutBlock);
        if (!self.block.answers() || gone) && !invents {
            self.effects.send(Node::Home, Message::Refused);
            return;
        }
        if self.block.state != State::E {
            self.block.settle();
        }
        self.effects.send(Node::Client(to), Message::Peer { data: self.block.data });
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
