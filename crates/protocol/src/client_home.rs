//! Interface to protocols whose caches answer each other: clients, which hold blocks with many lines, and block
//! homes.
//!
//! A protocol owns the slot that a node keeps for a block, and the messages between nodes. A host keeps a slot for
//! each block and node, hands it to [`Nodes::step`] with an event, and carries out the effects. The host's duties:
//!
//! 1. Messages in a [`MessageClass`] between two nodes keep the order declared by [`Nodes::CHANNELS`], per block. Except
//!    for requests, every message is accepted immediately, regardless of other waiting work. A step never refuses
//!    it, and no request is queued ahead.
//! 2. An event refused with [`Refusal::Stall`] has changed nothing. The host retries it after the block's
//!    transaction at this node has ended ([`Nodes::is_busy`]). A step may refuse only while a transaction is under
//!    way; only client requests and requests to a home are ever refused. A host that checks first need not copy the
//!    state it passes.
//! 3. A request held by a step ([`Hold::Park`]) has started a transaction at its client. As soon as the client is
//!    idle, the request runs again, ahead of any other request for the block. The host reissues it from scratch:
//!    the step has stored nothing about it.
//! 4. A home's memory read ([`HomeMemoryAccess::Read`]) returns as [`BlockEvent::Read`], after the home's earlier writes.
//! 5. Host accesses have `.sys` scope ([`ON_HOST`](crate::front::ON_HOST)). The same scope applies to a store that
//!    covers less than one mask byte.
//! 6. If queues have a limited capacity, a step runs only when every message it may send has room. Messages
//!    triggered by a reply or a peer's block wait in the transaction that the reply ends: replies are accepted
//!    regardless of queue occupancy.
//! 7. A client runs a block's requests in arrival order. This includes requests that wait for the block's
//!    transaction and requests that lack a host resource: [`host`](crate::host) keeps this order.
//! 8. A plan's [`Action::Merge`](crate::plan::Action::Merge) becomes [`BlockEvent::Merge`] for each block in a client.
//!    It completes when no block [owes](Nodes::owes) anything.

use crate::block::BlockData;
use crate::coherence::{Protocol, Refusal};
use crate::effects::{Delivery, Effects, Types};
use std::fmt::{Debug, Display};
use std::hash::Hash;
use std::marker::PhantomData;
use tombolo_types::{ModuleId, ModuleSet, Scope};

/// A participant in a block's coherence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Node {
    /// A cache with a directory for its own blocks. It belongs to a GPU, or it is the host's last-level cache,
    /// numbered after all GPU clients.
    Client(ModuleId),
    /// The directory next to the memory that holds the block.
    Home,
}

/// A block request from a client's own SMs or cores, for bytes in a single line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlockRequest<B: BlockData> {
    /// A read.
    Read {
        /// Requested bytes.
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
        /// Set when the requester needs the old value.
        returns: bool,
    },
}

/// A client's reply to a [`BlockRequest`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer<B: BlockData> {
    /// The bytes for a read.
    Fill {
        /// Bytes returned.
        set: B::Set,
        /// Contents in `set`.
        data: B,
    },
    /// The bytes before an atomic.
    Old {
        /// Contents in the request's set.
        data: B,
    },
}

/// An event at a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlockEvent<M, B: BlockData> {
    /// A client's own SMs or cores request bytes in the block.
    Request(BlockRequest<B>),
    /// A message from another node arrives.
    Message {
        /// The sender.
        from: Node,
        /// The message.
        message: M,
    },
    /// The block's contents as read from memory.
    Read(B),
    /// The cache above a client's memory evicts these bytes.
    EvictAbove(B::Set),
    /// The block must be evicted.
    Evict,
    /// A release, or a launch with a deferred release: bytes possibly unseen by other nodes are merged.
    Merge {
        /// Set when blocks held by no other client are written back too.
        all: bool,
    },
}

/// Message classes, by sender and receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MessageClass {
    /// Client to home; accepted by the home when the block has no transaction there.
    Request,
    /// Home to client: grants, acknowledgments, and requests to a client that holds the block.
    Down,
    /// Client to home, within the transaction it belongs to.
    Answer,
    /// Client to client.
    Peer,
}

/// The delivery order between two nodes, for each message class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Channels {
    /// [`MessageClass::Request`].
    pub request: Delivery,
    /// [`MessageClass::Down`].
    pub down: Delivery,
    /// [`MessageClass::Answer`].
    pub answer: Delivery,
    /// [`MessageClass::Peer`].
    pub peer: Delivery,
}

impl Channels {
    /// True if messages in this class keep an order.
    pub fn keep_order(&self, class: MessageClass) -> bool {
        let delivery = match class {
            MessageClass::Request => self.request,
            MessageClass::Down => self.down,
            MessageClass::Answer => self.answer,
            MessageClass::Peer => self.peer,
        };
        match delivery {
            Delivery::Fifo | Delivery::FifoPerLine | Delivery::FifoPerRegion => true,
            Delivery::Unordered => false,
        }
    }
}

/// A home's access to its memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HomeMemoryAccess<B: BlockData> {
    /// Reads the whole block.
    Read,
    /// Writes these bytes.
    Write {
        /// Bytes written.
        set: B::Set,
        /// Contents in `set`.
        data: B,
    },
    /// Writes the whole block. Only broken rules use it.
    WriteAll {
        /// Contents.
        data: B,
    },
}

/// A message's payload on a link, besides its kind and its block's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carried<'a, S> {
    /// No payload.
    Nothing,
    /// The whole block, without a mask.
    Block,
    /// At least one byte, with masks that locate the bytes in their lines.
    Masked(&'a S),
}

/// The reason for holding the current request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// Parked until the transaction started by the request is done.
    Park,
}

/// The types for a protocol between clients and homes.
#[derive(Clone, Copy, Debug)]
pub struct ClientHomeTypes<P>(PhantomData<fn() -> P>);

impl<P: Nodes, B: BlockData> Types<B> for ClientHomeTypes<P> {
    type Node = Node;
    type Message = P::Message<B>;
    type Answer = Answer<B>;
    type Access = HomeMemoryAccess<B>;
    type Hold = Hold;
}

/// A client's relation to a block, for properties that every protocol in this family must satisfy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientView<S> {
    /// Set when the client may read every byte in the block.
    pub holds: bool,
    /// Set when no other client may hold the block.
    pub excludes: bool,
    /// Set when the client owns the block and answers for it.
    pub owns: bool,
    /// Bytes missing from the home's memory.
    pub dirty: S,
}

/// A home's view: the clients that hold a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HomeView {
    /// Clients that may hold the block.
    pub holders: ModuleSet,
    /// The client that owns the block, if any.
    pub owner: Option<ModuleId>,
}

/// A protocol between clients that hold blocks, and the blocks' homes.
pub trait Nodes: Protocol<Types = ClientHomeTypes<Self>> {
    /// A node's state for a block.
    type Slot<B: BlockData>: Clone + Eq + Hash + Debug + Send;
    /// A message between nodes.
    type Message<B: BlockData>: Clone + Eq + Hash + Debug + Send;
    /// A client's state for a block. Reports print its name.
    type State: Copy + Eq + Hash + Debug + Display + Send + Sync + 'static;
    /// Every state, in report order.
    const STATES: &'static [Self::State];
    /// The message order required by the protocol.
    const CHANNELS: Channels;

    /// The slot for a node without any knowledge about a block.
    fn empty<B: BlockData>(at: Node) -> Self::Slot<B>;

    /// Performs a single block transition at a node.
    ///
    /// # Errors
    /// [`Refusal::Stall`] leaves the slot unchanged.
    fn step<B: BlockData>(
        &self,
        at: Node,
        slot: &mut Self::Slot<B>,
        event: BlockEvent<Self::Message<B>, B>,
        effects: &mut impl Effects<ClientHomeTypes<Self>, B>,
    ) -> Result<(), Refusal>;

    /// The message's class.
    fn class<B: BlockData>(message: &Self::Message<B>) -> MessageClass;

    /// The message's payload on a link.
    fn carries<B: BlockData>(message: &Self::Message<B>) -> Carried<'_, B::Set>;

    /// True if the message changes only the set of events that a release at its receiver waits for.
    fn only_notifies<B: BlockData>(message: &Self::Message<B>) -> bool;

    /// True while a transaction is under way.
    fn is_busy<B: BlockData>(slot: &Self::Slot<B>) -> bool;

    /// True if a release at this client still has to merge the block, or to wait for its merge.
    fn owes<B: BlockData>(&self, slot: &Self::Slot<B>) -> bool;

    /// True if a release waits for its merges.
    fn awaits_merges(&self) -> bool;

    /// True if the client evicts its copy without a message.
    fn evicts_silently<B: BlockData>(&self, slot: &Self::Slot<B>) -> bool;

    /// A client's state for the block; `None` for a home.
    fn state<B: BlockData>(slot: &Self::Slot<B>) -> Option<Self::State>;

    /// Bytes in the cache above a client's memory; `None` for a home, which lacks this cache.
    fn above<B: BlockData>(slot: &Self::Slot<B>) -> Option<&B::Set>;

    /// The subset of [`above`](Nodes::above) that the client's memory lacks; `None` for a home.
    fn fresh<B: BlockData>(slot: &Self::Slot<B>) -> Option<&B::Set>;

    /// True if the client may read the block.
    fn holds<B: BlockData>(slot: &Self::Slot<B>) -> bool;

    /// True if the client has bytes that the home's memory lacks.
    fn is_dirty<B: BlockData>(slot: &Self::Slot<B>) -> bool;

    /// The client's relation to the block, valid while it has no transaction under way.
    fn client_view<B: BlockData>(slot: &Self::Slot<B>) -> ClientView<B::Set>;

    /// A client's block contents, merged with the cache above its memory.
    fn contents<B: BlockData>(slot: &Self::Slot<B>) -> B;

    /// A home's view of the block, valid while no transaction is under way.
    fn known<B: BlockData>(slot: &Self::Slot<B>) -> HomeView;
}
