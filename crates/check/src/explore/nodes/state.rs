//! One state of a machine of clients and homes.

use super::super::state::{FlatRegister, Fronts, ThreadSet, Violation};
use super::super::values::{CELLS, Cells, Values};
use std::collections::VecDeque;
use std::hash::{Hash, Hasher};
use tombolo_protocol::Request;
use tombolo_protocol::host::Backlog;
use tombolo_protocol::nodes::{Class, Node, Nodes};
use tombolo_types::Mask;

/// Lines of a block at most.
const LINES_OF_BLOCK: usize = 2;
/// Locations that a block can hold.
pub(super) const CELLS_OF_BLOCK: usize = LINES_OF_BLOCK * CELLS;

/// The contents of a block.
pub(super) type BlockValues = Cells<CELLS_OF_BLOCK>;

/// The line of a block that begins at cell `first`.
pub(super) fn line_of(block: &BlockValues, first: usize) -> Values {
    let mut line = Values::default();
    line.0.copy_from_slice(&block.0[first..first + CELLS]);
    line
}

/// A block with `line` from cell `first` on.
pub(super) fn block_with(line: Values, first: usize) -> BlockValues {
    let mut block = BlockValues::default();
    block.0[first..first + CELLS].copy_from_slice(&line.0);
    block
}

/// A request of a line and who waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Asked {
    /// The SM; none where the caches are being warmed.
    pub(super) sm: Option<u8>,
    pub(super) line: u8,
    pub(super) request: Request<Values>,
    /// Where the result of an atomic goes.
    pub(super) result: Option<FlatRegister>,
    /// Threads whose release waits until it is taken.
    pub(super) watched: ThreadSet,
}

/// What is under way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Body<M> {
    /// From an SM to its client.
    Asked(Asked),
    /// Between nodes.
    Told { from: Node, to: Node, block: u8, message: M },
    /// From a client to an SM.
    Fill { sm: u8, line: u8, mask: Mask, data: Values },
}

/// The contents of a merge under way for a thread's plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Merge {
    pub(super) thread: u8,
    pub(super) client: u8,
    pub(super) block: u8,
    /// Whether what no other holds goes back too.
    pub(super) all: bool,
}

/// One state.
pub(in crate::explore) struct NodeState<P: Nodes> {
    pub(super) fronts: Fronts,
    /// Client × blocks + block, then the homes by block.
    pub(super) slots: Vec<P::Slot<BlockValues>>,
    /// Requests that wait for the transaction of their block at a client, or for a place, in order. The first may have started
    /// the transaction: client × blocks + block.
    pub(super) held: Vec<VecDeque<Asked>>,
    /// Requests that lack a miss register, by client.
    pub(super) backlogs: Vec<Backlog<Asked>>,
    /// Blocks whose requests wait for a place, by client, in order.
    pub(super) crowded: Vec<VecDeque<u8>>,
    /// Blocks that a client asks its home for, by bit: client × blocks + block.
    pub(super) asks: u64,
    /// Blocks that have a place where these are limited, as `asks`.
    pub(super) places: u64,
    /// The host's memory by block.
    pub(super) memory: Vec<BlockValues>,
    /// In the order sent among those of one channel.
    pub(super) messages: Vec<Body<P::Message<BlockValues>>>,
    /// Merges that plans wait for.
    pub(super) merges: Vec<Merge>,
    pub(super) broken: Option<Violation>,
}

impl<P: Nodes> Default for NodeState<P> {
    fn default() -> NodeState<P> {
        NodeState {
            fronts: Fronts::default(),
            slots: Vec::new(),
            held: Vec::new(),
            backlogs: Vec::new(),
            crowded: Vec::new(),
            asks: 0,
            places: 0,
            memory: Vec::new(),
            messages: Vec::new(),
            merges: Vec::new(),
            broken: None,
        }
    }
}

impl<P: Nodes> Clone for NodeState<P> {
    fn clone(&self) -> NodeState<P> {
        NodeState {
            fronts: self.fronts.clone(),
            slots: self.slots.clone(),
            held: self.held.clone(),
            backlogs: self.backlogs.clone(),
            crowded: self.crowded.clone(),
            asks: self.asks,
            places: self.places,
            memory: self.memory.clone(),
            messages: self.messages.clone(),
            merges: self.merges.clone(),
            broken: self.broken,
        }
    }

    fn clone_from(&mut self, from: &NodeState<P>) {
        self.fronts.clone_from(&from.fronts);
        self.slots.clone_from(&from.slots);
        self.held.clone_from(&from.held);
        self.backlogs.clone_from(&from.backlogs);
        self.crowded.clone_from(&from.crowded);
        self.asks = from.asks;
        self.places = from.places;
        self.memory.clone_from(&from.memory);
        self.messages.clone_from(&from.messages);
        self.merges.clone_from(&from.merges);
        self.broken = from.broken;
    }
}

impl<P: Nodes> Hash for NodeState<P> {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.fronts.hash(hasher);
        self.slots.hash(hasher);
        self.held.hash(hasher);
        self.backlogs.hash(hasher);
        self.crowded.hash(hasher);
        self.asks.hash(hasher);
        self.places.hash(hasher);
        self.memory.hash(hasher);
        self.messages.hash(hasher);
        self.merges.hash(hasher);
        self.broken.hash(hasher);
    }
}

/// Which messages keep an order with one another, as a number to sort by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Channel {
    /// From an SM to its client, per line.
    ToClient { sm: u8, line: u8 },
    /// Between nodes, per block and class; those of a class without order each go their own way.
    Between { from: Node, to: Node, block: u8, class: Class },
    /// From a client to an SM, per line.
    ToSm { sm: u8, line: u8 },
}

impl<M> Body<M> {
    pub(super) fn channel<P: Nodes<Message<BlockValues> = M>>(&self) -> Channel {
        match *self {
            Body::Asked(Asked { sm, line, .. }) => Channel::ToClient { sm: sm.unwrap_or(u8::MAX), line },
            Body::Told { from, to, block, ref message } => {
                Channel::Between { from, to, block, class: P::class::<BlockValues>(message) }
            }
            Body::Fill { sm, line, .. } => Channel::ToSm { sm, line },
        }
    }
}

impl<P: Nodes> NodeState<P> {
    /// Puts what has no order into one order, so that equal states are equal.
    pub(super) fn canonicalise(&mut self) {
        self.messages.sort_by_key(|message| message.channel::<P>());
        self.merges.sort_unstable();
    }

    /// Requests that wait at clients.
    pub(super) fn waiting(&self) -> impl Iterator<Item = &Asked> {
        self.held.iter().flatten().chain(self.backlogs.iter().flat_map(Backlog::iter))
    }

    /// The same, to be changed in place, and the messages under way.
    pub(super) fn waiting_mut(&mut self) -> (impl Iterator<Item = &mut Asked>, &mut [Body<P::Message<BlockValues>>]) {
        let queued = self.backlogs.iter_mut().flat_map(Backlog::iter_mut);
        (self.held.iter_mut().flatten().chain(queued), &mut self.messages)
    }

    pub(super) fn break_with(&mut self, violation: Violation) {
        self.broken.get_or_insert(violation);
    }
}
