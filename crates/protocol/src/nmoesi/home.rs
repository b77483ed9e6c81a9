//! A home: a block's holders, the block's owner, and the backing memory.

use super::broken::BrokenNmoesi;
use super::{Message, Nmoesi};
use crate::block::{BlockData, ByteSet};
use crate::client_home::{BlockEvent, ClientHomeTypes, HomeMemoryAccess, Node};
use crate::coherence::Refusal;
use crate::effects::Effects;
use tombolo_types::{ModuleId, ModuleSet};

/// A home's directory entry for a block.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct HomeEntry<B: BlockData> {
    /// Clients that hold the block, or have left silently.
    pub holders: ModuleSet,
    /// The client that owns the block, if any.
    pub owner: Option<ModuleId>,
    /// The transaction under way.
    pub transaction: Option<Transaction<B>>,
}

/// Bytes in a block.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct DirtyBytes<B: BlockData> {
    /// The set of bytes.
    pub set: B::Set,
    /// Contents in `set`.
    pub data: B,
}

impl<B: BlockData> DirtyBytes<B> {
    fn put(&mut self, top: &DirtyBytes<B>) {
        self.data.merge(&top.data, &top.set);
        self.set.add(&top.set);
    }
}

/// A home's transaction.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Transaction<B: BlockData> {
    /// Memory is read for a client.
    Reading {
        /// The client.
        to: ModuleId,
        /// Set when the client receives exclusive access.
        alone: bool,
    },
    /// The owner sends down the bytes that memory lacks, for a client to read.
    Sharing {
        /// The client.
        to: ModuleId,
    },
    /// The owner sends the block to a client.
    Forwarding {
        /// The client.
        to: ModuleId,
    },
    /// Clients give up the block.
    Recalling(Recall<B>),
}

/// A transaction in which clients give up a block.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Recall<B: BlockData> {
    /// The purpose.
    pub goal: RecallPurpose,
    /// Clients without a reply so far.
    pub from: ModuleSet,
    /// The owner's bytes.
    pub of_owner: DirtyBytes<B>,
    /// The remaining clients' bytes, merged on top of the owner's.
    pub of_others: DirtyBytes<B>,
    /// Bytes from the client that writes back, merged on top of all.
    pub own: DirtyBytes<B>,
    /// Set when some reply carried bytes that memory lacked.
    pub had_bytes: bool,
    /// Clients to notify when all have replied.
    pub waiting: ModuleSet,
}

/// The reason for which clients give up a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RecallPurpose {
    /// A client receives exclusive access.
    Alone {
        /// The client.
        to: ModuleId,
        /// Set when the client lacks only the bytes written by the remaining clients.
        holds: bool,
    },
    /// A client's written-back bytes are merged with the remaining clients' bytes.
    Merged {
        /// The client that writes back.
        from: ModuleId,
        /// Set when the client would keep the block.
        keep: bool,
    },
}

pub(super) fn step<const BREAKABLE: bool, B: BlockData>(
    protocol: &Nmoesi<BREAKABLE>,
    entry: &mut HomeEntry<B>,
    event: BlockEvent<Message<B>, B>,
    effects: &mut impl Effects<ClientHomeTypes<Nmoesi<BREAKABLE>>, B>,
) -> Result<(), Refusal> {
    let mut home = Home { protocol, entry, effects };
    match event {
        BlockEvent::Message { from: Node::Client(from), message } => home.on_message(from, message),
        BlockEvent::Read(data) => home.on_memory_read(data),
        BlockEvent::Message { from: Node::Home, .. }
        | BlockEvent::Request(_)
        | BlockEvent::EvictAbove(_)
        | BlockEvent::Evict
        | BlockEvent::Merge { .. } => Err(Refusal::Unexpected("a home met what happens at clients")),
    }
}

struct Home<'a, E, B: BlockData, const BREAKABLE: bool> {
    protocol: &'a Nmoesi<BREAKABLE>,
    entry: &'a mut HomeEntry<B>,
    effects: &'a mut E,
}

impl<const BREAKABLE: bool, B: BlockData, E: Effects<ClientHomeTypes<Nmoesi<BREAKABLE>>, B>> Home<'_, E, B, BREAKABLE> {
    fn is_broken(&self, rule: BrokenNmoesi) -> bool {
        self.protocol.is_broken(rule)
    }

    fn on_message(&mut self, from: ModuleId, message: Message<B>) -> Result<(), Refusal> {
        match (message, self.entry.transaction.as_ref()) {
            (Message::Read | Message::Write { .. } | Message::Back { .. }, Some(_)) => return Err(Refusal::Stall),
            (Message::Read, None) => self.on_read_request(from),
            (Message::Write { holds }, None) => self.on_exclusive_request(from, holds),
            (Message::Back { set, data, keep }, None) => self.on_write_back(from, DirtyBytes { set, data }, keep),
            (Message::Bytes { set, data, waits, .. }, Some(Transaction::Recalling(_))) => {
                self.on_recall_reply(from, &DirtyBytes { set, data }, waits);
            }
            (Message::Bytes { set, data, stays, .. }, Some(&Transaction::Sharing { to })) => {
                self.write(DirtyBytes { set, data });
                self.entry.owner = None;
                if !stays {
                    self.remove_client(from);
                }
                self.supply(to);
            }
            (Message::Sent { owns }, Some(&Transaction::Forwarding { to })) => {
                self.entry.transaction = None;
                if !self.is_broken(BrokenNmoesi::HolderNotRecorded) {
                    self.entry.holders.add(to);
                }
                if !owns && !self.is_broken(BrokenNmoesi::OwnerKeptWhenShared) {
                    self.entry.owner = None;
                }
            }
            (Message::Refused, Some(&Transaction::Forwarding { to })) => {
                self.remove_client(from);
                self.supply(to);
            }
            (Message::Bytes { .. } | Message::Sent { .. } | Message::Refused, _) => {
                return Err(Refusal::Unexpected("a home was answered what it has not asked"));
            }
            (
                Message::Peer { .. }
                | Message::Shared { .. }
                | Message::Exclusive { .. }
                | Message::Alone { .. }
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

    /// Removes a client that has left, silently or with a message.
    fn remove_client(&mut self, client: ModuleId) {
        self.entry.holders.remove(client);
        if self.entry.owner == Some(client) {
            self.entry.owner = None;
        }
    }

    fn on_read_request(&mut self, by: ModuleId) {
        // The requester holds nothing: if the entry names it, it has left silently.
        self.remove_client(by);
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

    /// Memory supplies the block: with exclusive access if no further client may hold it.
    fn supply(&mut self, to: ModuleId) {
        let alone = self.entry.holders.is_empty() || self.is_broken(BrokenNmoesi::SharedGrantedAlone);
        self.entry.transaction = Some(Transaction::Reading { to, alone });
        self.effects.memory(HomeMemoryAccess::Read);
    }

    fn on_memory_read(&mut self, data: B) -> Result<(), Refusal> {
        let Some(Transaction::Reading { to, alone }) = self.entry.transaction else {
            return Err(Refusal::Unexpected("a home that has asked nothing of its memory was answered"));
        };
        self.entry.transaction = None;
        if !self.is_broken(BrokenNmoesi::HolderNotRecorded) {
            self.entry.holders.add(to);
        }
        let message = if alone {
            self.entry.owner = Some(to);
            Message::Exclusive { data }
        } else {
            Message::Shared { data }
        };
        self.effects.send(Node::Client(to), message);
        Ok(())
    }

    fn on_exclusive_request(&mut self, by: ModuleId, holds: bool) {
        // A client whose copy was taken after its request lacks everything.
        let holds = holds && self.entry.holders.contains(by);
        let mut others = self.entry.holders.difference(ModuleSet::only(by));
        if self.is_broken(BrokenNmoesi::TakesOwnerAlone) {
            others = others.intersection(self.entry.owner.into_iter().collect());
        }
        self.start_recall(RecallPurpose::Alone { to: by, holds }, others, DirtyBytes::default(), DirtyBytes::default());
    }

    fn on_write_back(&mut self, from: ModuleId, bytes: DirtyBytes<B>, keep: bool) {
        let is_named = self.entry.holders.contains(from) || self.is_broken(BrokenNmoesi::StaleWriteBackCounts);
        if !is_named {
            self.effects.send(Node::Client(from), Message::Taken { kept: false });
            return;
        }
        let is_owner = self.entry.owner == Some(from);
        let others = self.entry.holders.difference(ModuleSet::only(from));
        let others = if bytes.set.is_empty() || self.is_broken(BrokenNmoesi::MergeKeepsSharers) {
            ModuleSet::NONE
        } else {
            others
        };
        let none = DirtyBytes::default();
        let (of_owner, own) = if is_owner { (bytes, none) } else { (none, bytes) };
        self.start_recall(RecallPurpose::Merged { from, keep }, others, of_owner, own);
    }

    fn start_recall(&mut self, goal: RecallPurpose, others: ModuleSet, of_owner: DirtyBytes<B>, own: DirtyBytes<B>) {
        let of_others = DirtyBytes::default();
        let recall =
            Recall { goal, from: others, of_owner, of_others, own, had_bytes: false, waiting: ModuleSet::NONE };
        for client in others {
            self.effects.send(Node::Client(client), Message::Take);
        }
        let at_once = matches!(goal, RecallPurpose::Alone { .. }) && self.is_broken(BrokenNmoesi::GrantedBeforeGivenUp);
        if others.is_empty() || at_once {
            self.finish_recall(recall);
        } else {
            self.entry.transaction = Some(Transaction::Recalling(recall));
        }
    }

    fn on_recall_reply(&mut self, by: ModuleId, bytes: &DirtyBytes<B>, waits: bool) {
        let is_owner = self.entry.owner == Some(by);
        self.remove_client(by);
        let last = self.is_broken(BrokenNmoesi::OwnerMergedLast);
        let Some(Transaction::Recalling(recall)) = &mut self.entry.transaction else { return };
        recall.from.remove(by);
        if waits {
            recall.waiting.add(by);
        }
        recall.had_bytes |= !bytes.set.is_empty();
        let level = if is_owner && !last { &mut recall.of_owner } else { &mut recall.of_others };
        level.put(bytes);
        if recall.from.is_empty()
            && let Some(Transaction::Recalling(recall)) = self.entry.transaction.take()
        {
            self.finish_recall(recall);
        }
    }

    /// Completes the transaction after all replies.
    fn finish_recall(&mut self, recall: Recall<B>) {
        let Recall { goal, of_owner: mut merged, of_others, own, had_bytes, waiting, .. } = recall;
        for client in waiting {
            self.effects.send(Node::Client(client), Message::Merged);
        }
        merged.put(&of_others);
        merged.put(&own);
        match goal {
            RecallPurpose::Alone { to, holds: true } => {
                self.write(merged.clone());
                self.entry.owner = Some(to);
                let DirtyBytes { set, data } = merged;
                self.effects.send(Node::Client(to), Message::Alone { set, data });
            }
            RecallPurpose::Alone { to, holds: false } => {
                self.write(merged);
                self.remove_client(to);
                self.entry.transaction = Some(Transaction::Reading { to, alone: true });
                self.effects.memory(HomeMemoryAccess::Read);
            }
            RecallPurpose::Merged { from, keep } => {
                self.write(merged);
                let kept = keep && (!had_bytes || self.is_broken(BrokenNmoesi::MergeKeepsOwnCopy));
                if self.entry.owner == Some(from) {
                    self.entry.owner = None;
                }
                if !kept {
                    self.remove_client(from);
                }
                self.effects.send(Node::Client(from), Message::Taken { kept });
            }
        }
    }

    fn write(&mut self, bytes: DirtyBytes<B>) {
        let DirtyBytes { set, data } = bytes;
        if set.is_empty() {
            return;
        }
        let ignores_mask = self.is_broken(BrokenNmoesi::MergeIgnoresMask);
        self.effects.memory(if ignores_mask {
            HomeMemoryAccess::WriteAll { data }
        } else {
            HomeMemoryAccess::Write { set, data }
        });
    }
}
