//! The boundary of protocols whose caches answer each other: clients, which hold blocks of lines, and the homes of blocks.
//!
//! A protocol owns the slot that a node has of a block, and the messages between nodes. A host keeps a slot for each
//! block and node, hands it to [`Nodes::step`] with an event, and carries out the effects. The host's duties:
//!
//! 1. Messages of a [`Class`] between two nodes keep the order that [`Nodes::CHANNELS`] declares, among those of one block.
//!    All but requests are taken whatever else waits: a step never refuses them, and no request stands before them.
//! 2. An event refused with [`Refusal::Stall`] has changed nothing. It runs again when its block has no transaction under
//!    way there ([`Nodes::is_busy`]). Only where one is under way may a step refuse: what asks a client, and requests to a
//!    home. A host that asks before need not keep a copy of what it hands over.
//! 3. A request that a step has held ([`Hold::Park`]) has started a transaction at its client. It runs again, before any
//!    other request of the block, as soon as the client is not busy. The host makes it anew: the step has kept nothing of it.
//! 4. What a home reads of its memory ([`Access::Read`]) comes back as [`Event::Read`], behind what it has written before.
//! 5. What the host accesses is of `.sys` scope ([`ON_HOST`](crate::front::ON_HOST)). So is a store that covers less than a byte of the
//!    masks.
//! 6. Where queues have so many slots, a step is taken when there is room for all that it sends. What an answer or a block of a
//!    peer makes a node say waits in the transaction that it ends: answers are taken whatever the queues hold.
//! 7. Requests of a block run at a client in the order of their arrival, those that wait for its transaction and those that lack
//!    a resource of the host among them: [`host`](crate::host) has that order.
//! 8. A plan's [`Action::Merge`](crate::plan::Action::Merge) is [`Event::Merge`] for each block of a client. It is done
//!    when no block [owes](Nodes::owes) anything.

use crate::block::BlockData;
use crate::coherence::{Protocol, Refusal};
use crate::node::{Delivery, Effects, Types};
use std::fmt::{Debug, Display};
use std::hash::Hash;
use std::marker::PhantomData;
use tombolo_types::{ModuleId, ModuleSet, Scope};

/// Who takes part in the coherence of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Node {
    /// A cache with a directory of its own blocks: of a GPU, or the last-level cache of the host, which has the number
    /// behind those of the GPUs.
    Client(ModuleId),
    /// The directory beside the memory that holds the block.
    Home,
}

/// What a client's own SMs or cores ask of a block: bytes of one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request<B: BlockData> {
    /// Bytes wanted.
    Read {
        /// Which.
        set: B::Set,
        /// `Cta` for a weak load.
        scope: Scope,
    },
    /// A store.
    Write {
        /// Bytes written.
        set: B::Set,
        /// `Cta` for a weak store.
        scope: Scope,
        /// Contents in `set`.
        data: B,
    },
    /// A read-modify-write.
    Atomic {
        /// Bytes updated.
        set: B::Set,
        /// Scope.
        scope: Scope,
        /// The operation.
        update: B::Update,
        /// Whether the old value is wanted.
        returns: bool,
    },
}

/// What a client answers to a [`Request`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer<B: BlockData> {
    /// The bytes of a read.
    Fill {
        /// Which.
        set: B::Set,
        /// Contents in `set`.
        data: B,
    },
    /// The bytes of an atomic as they were.
    Old {
        /// Contents in the set of the request.
        data: B,
    },
}

/// What happens at a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event<M, B: BlockData> {
    /// A client's own SMs or cores ask for bytes of the block.
    Asked(Request<B>),
    /// Another node says something.
    Told {
        /// Who.
        from: Node,
        /// What.
        message: M,
    },
    /// The block as memory holds it.
    Read(B),
    /// These bytes make room in the cache that is above a client's memory.
    EvictAbove(B::Set),
    /// The block must make room.
    Evict,
    /// A release, or a launch that owes it: what others may not have seen is merged.
    Merge {
        /// Whether what no other holds goes back too.
        all: bool,
    },
}

/// The classes of messages: who sends them to whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// A client to a home, which takes it when nothing of the block is under way there.
    Request,
    /// A home to a client: grants, acknowledgments, and what it asks of one that holds the block.
    Down,
    /// A client to a home, within what that is about.
    Answer,
    /// A client to a client.
    Peer,
}

/// The order that messages of each class keep between two nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Channels {
    /// [`Class::Request`].
    pub request: Delivery,
    /// [`Class::Down`].
    pub down: Delivery,
    /// [`Class::Answer`].
    pub answer: Delivery,
    /// [`Class::Peer`].
    pub peer: Delivery,
}

impl Channels {
    /// Whether messages of this class keep an order.
    pub fn keep_order(&self, class: Class) -> bool {
        let delivery = match class {
            Class::Request => self.request,
            Class::Down => self.down,
            Class::Answer => self.answer,
            Class::Peer => self.peer,
        };
        match delivery {
            Delivery::Fifo | Delivery::FifoPerLine | Delivery::FifoPerRegion => true,
            Delivery::Unordered => false,
        }
    }
}

/// What a home wants of its memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access<B: BlockData> {
    /// The whole block.
    Read,
    /// These bytes are written.
    Write {
        /// Which.
        set: B::Set,
        /// Contents in `set`.
        data: B,
    },
    /// The whole block is written. Only broken rules ask for it.
    WriteAll {
        /// Contents.
        data: B,
    },
}

/// What a message takes across a link, besides its kind and its block's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carried<'a, S> {
    /// Nothing.
    Nothing,
    /// The whole block. No mask is needed.
    Block,
    /// These bytes, at least one, and masks that say which of their lines they are.
    Masked(&'a S),
}

/// How the request at hand is held back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// Until the transaction that it has started is done.
    Park,
}

/// The types of a protocol of clients and homes.
#[derive(Clone, Copy, Debug)]
pub struct Of<P>(PhantomData<fn() -> P>);

impl<P: Nodes, B: BlockData> Types<B> for Of<P> {
    type Node = Node;
    type Message = P::Message<B>;
    type Answer = Answer<B>;
    type Access = Access<B>;
    type Hold = Hold;
}

/// How a client stands to a block, for the properties that hold of every such protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standing<S> {
    /// Whether it may read the block: every byte of it.
    pub holds: bool,
    /// Whether no other client may hold it.
    pub excludes: bool,
    /// Whether it answers for the block.
    pub owns: bool,
    /// Bytes that the home's memory lacks.
    pub dirty: S,
}

/// What a home takes the clients of a block to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// Clients that may hold it.
    pub holders: ModuleSet,
    /// Who answers for it.
    pub owner: Option<ModuleId>,
}

/// A protocol between clients that hold blocks, and the homes of the blocks.
pub trait Nodes: Protocol<Types = Of<Self>> {
    /// What a node holds of a block.
    type Slot<B: BlockData>: Clone + Eq + Hash + Debug + Send;
    /// What nodes tell each other.
    type Message<B: BlockData>: Clone + Eq + Hash + Debug + Send;
    /// How a client holds a block. Reports print its name.
    type State: Copy + Eq + Hash + Debug + Display + Send + Sync + 'static;
    /// Every state, in the order of reports.
    const STATES: &'static [Self::State];
    /// The order that its messages need.
    const CHANNELS: Channels;

    /// The slot of a node that knows nothing of a block.
    fn empty<B: BlockData>(at: Node) -> Self::Slot<B>;

    /// One transition of a block at a node.
    ///
    /// # Errors
    /// [`Refusal::Stall`] leaves everything as it was.
    fn step<B: BlockData>(
        &self,
        at: Node,
        slot: &mut Self::Slot<B>,
        event: Event<Self::Message<B>, B>,
        effects: &mut impl Effects<Of<Self>, B>,
    ) -> Result<(), Refusal>;

    /// The class of a message.
    fn class<B: BlockData>(message: &Self::Message<B>) -> Class;

    /// What a message takes across a link.
    fn carries<B: BlockData>(message: &Self::Message<B>) -> Carried<'_, B::Set>;

    /// Whether it changes nothing but what a release of its receiver waits for.
    fn only_tells<B: BlockData>(message: &Self::Message<B>) -> bool;

    /// Whether a transaction is under way.
    fn is_busy<B: BlockData>(slot: &Self::Slot<B>) -> bool;

    /// Whether a release of this client still has to merge the block, or to wait for it.
    fn owes<B: BlockData>(&self, slot: &Self::Slot<B>) -> bool;

    /// Whether a release waits for what it merges.
    fn awaits_merges(&self) -> bool;

    /// Whether the client's copy goes unseen when it makes room.
    fn leaves_silently<B: BlockData>(&self, slot: &Self::Slot<B>) -> bool;

    /// How a client holds the block; `None` of a home.
    fn state<B: BlockData>(slot: &Self::Slot<B>) -> Option<Self::State>;

    /// Bytes in the cache above a client's memory; `None` of a home, which has no such cache.
    fn above<B: BlockData>(slot: &Self::Slot<B>) -> Option<&B::Set>;

    /// Those of them that the client's memory lacks; `None` of a home.
    fn fresh<B: BlockData>(slot: &Self::Slot<B>) -> Option<&B::Set>;

    /// Whether a client may read the block.
    fn holds<B: BlockData>(slot: &Self::Slot<B>) -> bool;

    /// Whether a client has bytes that the home's memory lacks.
    fn is_dirty<B: BlockData>(slot: &Self::Slot<B>) -> bool;

    /// How a client stands to the block, where no transaction of its own is under way.
    fn standing<B: BlockData>(slot: &Self::Slot<B>) -> Standing<B::Set>;

    /// What a client holds of the block, with what the cache above its memory has.
    fn contents<B: BlockData>(slot: &Self::Slot<B>) -> B;

    /// What a home knows, where no transaction is under way.
    fn known<B: BlockData>(slot: &Self::Slot<B>) -> Known;
}
