//! A home: who holds a block, who answers for it, and the memory that it comes from.

use super::broken::BrokenNmoesi;
use super::{Message, Nmoesi};
use crate::coherence::Refusal;
use crate::data::Data;
use crate::node::Effects;
use crate::nodes::{Access, Event, Node, Of};
use tombolo_types::{Mask, ModuleId};

/// What a home knows of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Entry<D> {
    /// Clients that hold it, or have left without a word: bit `i` is client `i`.
    pub holders: u32,
    /// Who answers for it.
    pub owner: Option<ModuleId>,
    /// The transaction under way.
    pub transaction: Option<Transaction<D>>,
}

/// Bytes of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Bytes<D> {
    /// Which.
    pub mask: Mask,
    /// Contents in `mask`.
    pub data: D,
}

impl<D: Data> Bytes<D> {
    fn put(&mut self, top: Bytes<D>) {
        self.data.merge(top.data, top.mask);
        self.mask |= top.mask;
    }
}

/// What a home is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Transaction<D> {
    /// Memory is read for a client.
    Reading {
        /// Which.
        to: ModuleId,
        /// Whether it is to have the block alone.
        alone: bool,
    },
    /// The owner sends down what memory lacks, for a client to read.
    Sharing {
        /// Which.
        to: ModuleId,
    },
    /// The owner sends the block to a client.
    Forwarding {
        /// Which.
        to: ModuleId,
    },
    /// Clients give up the block.
    Taking {
        /// For what.
        goal: Goal,
        /// Those that have not answered.
        from: u32,
        /// What the owner had.
        of_owner: Bytes<D>,
        /// What the others had, on top.
        of_others: Bytes<D>,
        /// What the client had whose bytes go back, on top of all.
        own: Bytes<D>,
        /// Whether one that has answered had bytes that memory lacked.
        had_bytes: bool,
        /// Those that are to hear when all have answered.
        waiting: u32,
    },
}

/// Why clients give up a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Goal {
    /// A client is to have it alone.
    Alone {
        /// Which.
        to: ModuleId,
        /// Whether it lacks only what they have written.
        holds: bool,
    },
    /// Bytes of a client are merged with theirs.
    Merged {
        /// Whose.
        from: ModuleId,
        /// Whether it would keep the block.
        keep: bool,
    },
}

fn bit(client: ModuleId) -> u32 {
    1 << client.0
}

/// The clients of a set.
fn clients(set: u32) -> impl Iterator<Item = ModuleId> {
    (0..u32::BITS as u8).map(ModuleId).filter(move |client| set & bit(*client) != 0)
}

pub(super) fn step<const BREAKABLE: bool, D: Data>(
    protocol: &Nmoesi<BREAKABLE>,
    entry: &mut Entry<D>,
    event: Event<Message<D>, D>,
    effects: &mut impl Effects<Of<Nmoesi<BREAKABLE>>, D>,
) -> Result<(), Refusal> {
    let mut home = Home { protocol, entry, effects };
    match event {
        Event::Told { from: Node::Client(from), message } => home.told(from, message),
        Event::Read(data) => home.read(data),
        Event::Told { from: Node::Home, .. }
        | Event::Asked(_)
        | Event::EvictAbove(_)
        | Event::Evict
        | Event::Merge { .. } => Err(Refusal::Unexpected("a home met what happens at clients")),
    }
}

struct Home<'a, E, D, const BREAKABLE: bool> {
    protocol: &'a Nmoesi<BREAKABLE>,
    entry: &'a mut Entry<D>,
    effects: &'a mut E,
}

impl<const BREAKABLE: bool, D: Data, E: Effects<Of<Nmoesi<BREAKABLE>>, D>> Home<'_, E, D, BREAKABLE> {
    fn is_broken(&self, rule: BrokenNmoesi) -> bool {
        self.protocol.is_broken(rule)
    }

    fn told(&mut self, from: ModuleId, message: Message<D>) -> Result<(), Refusal> {
        match (message, self.entry.transaction) {
            (Message::Read | Message::Write { .. } | Message::Back { .. }, Some(_)) => return Err(Refusal::Stall),
            (Message::Read, None) => self.wanted(from),
            (Message::Write { holds }, None) => self.wanted_alone(from, holds),
            (Message::Back { mask, data, keep }, None) => self.comes_back(from, Bytes { mask, data }, keep),
            (Message::Bytes { mask, data, waits, .. }, Some(Transaction::Taking { .. })) => {
                self.given_up(from, Bytes { mask, data }, waits);
            }
            (Message::Bytes { mask, data, stays, .. }, Some(Transaction::Sharing { to })) => {
                self.write(Bytes { mask, data });
                self.entry.owner = None;
                if !stays {
                    self.forget(from);
                }
                self.supply(to);
            }
            (Message::Sent { owns }, Some(Transaction::Forwarding { to })) => {
                self.entry.transaction = None;
                if !self.is_broken(BrokenNmoesi::HolderNotRecorded) {
                    self.entry.holders |= bit(to);
                }
                if !owns && !self.is_broken(BrokenNmoesi::OwnerKeptWhenShared) {
                    self.entry.owner = None;
                }
            }
            (Message::Refused, Some(Transaction::Forwarding { to })) => {
                self.forget(from);
                self.supply(to);
            }
            (Message::Bytes { .. } | Message::Sent { .. } | Message::Refused, _) => {
                return Err(Refusal::Unexpected("a home was answered what it has not asked"));
            }
            (
                Message::Peer { .. }
                | Message::Shared { .. }
                | Message::Exclusive { .. }
                | Message::Taken { .. }
                | Message::Merged
                | Message::Take
                | Message::Share
                | Message::Forward { .. },
                _,
            ) => return Err(Refusal::Unexpected("a home was told what clients are told")),
        }
        Ok(())
    }

    /// It has left, with or without a word.
    fn forget(&mut self, client: ModuleId) {
        self.entry.holders &= !bit(client);
        if self.entry.owner == Some(client) {
            self.entry.owner = None;
        }
    }

    fn wanted(&mut self, by: ModuleId) {
        // Who asks holds nothing: it has left without a word if it is named.
        self.forget(by);
        match self.entry.owner {
            Some(_) if self.is_broken(BrokenNmoesi::HomeSuppliesOverOwner) => self.supply(by),
            Some(owner) if self.protocol.nmoesi().peer_transfer => {
                self.entry.transaction = Some(Transaction::Forwarding { to: by });
                self.effects.send(Node::Client(owner), Message::Forward { to: by });
            }
            Some(owner) => {
                self.entry.transaction = Some(Transaction::Sharing { to: by });
                self.effects.send(Node::Client(owner), Message::Share);
            }
            None => self.supply(by),
        }
    }

    /// Memory supplies: alone where nobody else may hold the block.
    fn supply(&mut self, to: ModuleId) {
        let alone = self.entry.holders == 0 || self.is_broken(BrokenNmoesi::SharedGrantedAlone);
        self.entry.transaction = Some(Transaction::Reading { to, alone });
        self.effects.memory(Access::Read);
    }

    fn read(&mut self, data: D) -> Result<(), Refusal> {
        let Some(Transaction::Reading { to, alone }) = self.entry.transaction else {
            return Err(Refusal::Unexpected("a home that has asked nothing of its memory was answered"));
        };
        self.entry.transaction = None;
        if !self.is_broken(BrokenNmoesi::HolderNotRecorded) {
            self.entry.holders |= bit(to);
        }
        let message = if alone {
            self.entry.owner = Some(to);
            Message::Exclusive { mask: Mask::ALL, data }
        } else {
            Message::Shared { data }
        };
        self.effects.send(Node::Client(to), message);
        Ok(())
    }

    fn wanted_alone(&mut self, by: ModuleId, holds: bool) {
        // One that has been taken from since it asked lacks everything.
        let holds = holds && self.entry.holders & bit(by) != 0;
        let mut others = self.entry.holders & !bit(by);
        if self.is_broken(BrokenNmoesi::TakesOwnerAlone) {
            others &= self.entry.owner.map_or(0, bit);
        }
        self.take(Goal::Alone { to: by, holds }, others, Bytes::default(), Bytes::default());
    }

    fn comes_back(&mut self, from: ModuleId, bytes: Bytes<D>, keep: bool) {
        let is_named = self.entry.holders & bit(from) != 0 || self.is_broken(BrokenNmoesi::StaleWriteBackCounts);
        if !is_named {
            self.effects.send(Node::Client(from), Message::Taken { kept: false });
            return;
        }
        let is_owner = self.entry.owner == Some(from);
        let others = self.entry.holders & !bit(from);
        let others = if bytes.mask.is_empty() || self.is_broken(BrokenNmoesi::MergeKeepsSharers) { 0 } else { others };
        let none = Bytes::default();
        let (of_owner, own) = if is_owner { (bytes, none) } else { (none, bytes) };
        self.take(Goal::Merged { from, keep }, others, of_owner, own);
    }

    fn take(&mut self, goal: Goal, others: u32, of_owner: Bytes<D>, own: Bytes<D>) {
        let of_others = Bytes::default();
        let taking = Transaction::Taking { goal, from: others, of_owner, of_others, own, had_bytes: false, waiting: 0 };
        self.entry.transaction = Some(taking);
        for client in clients(others) {
            self.effects.send(Node::Client(client), Message::Take);
        }
        let at_once = matches!(goal, Goal::Alone { .. }) && self.is_broken(BrokenNmoesi::GrantedBeforeGivenUp);
        if others == 0 || at_once {
            self.taken();
        }
    }

    fn given_up(&mut self, by: ModuleId, bytes: Bytes<D>, waits: bool) {
        let is_owner = self.entry.owner == Some(by);
        self.forget(by);
        let last = self.is_broken(BrokenNmoesi::OwnerMergedLast);
        if let Some(Transaction::Taking { from, of_owner, of_others, had_bytes, waiting, .. }) =
            &mut self.entry.transaction
        {
            *from &= !bit(by);
            *waiting |= if waits { bit(by) } else { 0 };
            *had_bytes |= !bytes.mask.is_empty();
            if is_owner && !last {
                of_owner.put(bytes);
            } else {
                of_others.put(bytes);
            }
            if *from != 0 {
                return;
            }
        }
        self.taken();
    }

    /// All have answered.
    fn taken(&mut self) {
        let Some(Transaction::Taking { goal, of_owner, of_others, own, had_bytes, waiting, .. }) =
            self.entry.transaction
        else {
            return;
        };
        for client in clients(waiting) {
            self.effects.send(Node::Client(client), Message::Merged);
        }
        let mut merged = of_owner;
        merged.put(of_others);
        merged.put(own);
        self.write(merged);
        match goal {
            Goal::Alone { to, holds: true } => {
                self.entry.transaction = None;
                self.entry.owner = Some(to);
                let Bytes { mask, data } = merged;
                self.effects.send(Node::Client(to), Message::Exclusive { mask, data });
            }
            Goal::Alone { to, holds: false } => {
                self.forget(to);
                self.entry.transaction = Some(Transaction::Reading { to, alone: true });
                self.effects.memory(Access::Read);
            }
            Goal::Merged { from, keep } => {
                self.entry.transaction = None;
                let kept = keep && (!had_bytes || self.is_broken(BrokenNmoesi::MergeKeepsOwnCopy));
                if self.entry.owner == Some(from) {
                    self.entry.owner = None;
                }
                if !kept {
                    self.forget(from);
                }
                self.effects.send(Node::Client(from), Message::Taken { kept });
            }
        }
    }

    fn write(&mut self, bytes: Bytes<D>) {
        if bytes.mask.is_empty() {
            return;
        }
        let mask = if self.is_broken(BrokenNmoesi::MergeIgnoresMask) { Mask::ALL } else { bytes.mask };
        self.effects.memory(Access::Write { mask, data: bytes.data });
    }
}
