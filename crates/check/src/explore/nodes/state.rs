//! State of the explored machine for NMOESI protocols: a block client per GPU, a client for the host, and a home per
//! block.

use super::super::state::{FlatRegister, FrontEnds, ThreadSet, Violation};
use super::super::values::{CELLS, Cells, Values};
use std::collections::VecDeque;
use std::hash::{Hash, Hasher};
use tombolo_protocol::Request;
use tombolo_protocol::client_home::{MessageClass, Node, Nodes};
use tombolo_protocol::host::Backlog;
use tombolo_types::Mask;

/// Maximum number of lines in a block.
const LINES_OF_BLOCK: usize = 2;
/// Maximum number of cells in a block. A cell holds one location of the litmus test.
pub(super) const CELLS_OF_BLOCK: usize = LINES_OF_BLOCK * CELLS;

/// Contents of a block, by cell.
pub(super) type BlockValues = Cells<CELLS_OF_BLOCK>;

/// The block's line with first cell `first`.
pub(super) fn line_of(block: &BlockValues, first: usize) -> Values {
    let mut line = Values::default();
    line.0.copy_from_slice(&block.0[first..first + CELLS]);
    line
}

/// A block with `line` placed at cell `first`.
pub(super) fn block_with(line: Values, first: usize) -> BlockValues {
    let mut block = BlockValues::default();
    block.0[first..first + CELLS].copy_from_slice(&line.0);
    block
}

/// A request for a line, with its requester.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ClientRequest {
    /// The requesting SM; `None` for a request that warms the caches before the program.
    pub(super) sm: Option<u8>,
    pub(super) line: u8,
    pub(super) request: Request<Values>,
    /// Destination register for the result of an atomic.
    pub(super) result: Option<FlatRegister>,
    /// Threads with releases that wait until the request is served.
    pub(super) watched: ThreadSet,
}

/// An in-flight message.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum NodeMessage<M> {
    /// A request from an SM to the client of its GPU.
    Request(ClientRequest),
    /// A protocol message between two nodes: clients, or a client and the home.
    Between { from: Node, to: Node, block: u8, message: M },
    /// Bytes of a line from a client to an SM.
    Fill { sm: u8, line: u8, mask: Mask, data: Values },
}

/// An unfinished merge of a block at a client, an action in a thread's plan at a release or a kernel boundary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Merge {
    pub(super) thread: u8,
    pub(super) client: u8,
    pub(super) block: u8,
    /// Set if blocks held by no other client are written back too.
    pub(super) all: bool,
}

/// One state in the search.
pub(in crate::explore) struct NodeState<P: Nodes> {
    pub(super) fronts: FrontEnds,
    /// Protocol state of a block at each node. Index: client × blocks + block; behind the clients the homes, by block.
    pub(super) slots: Vec<P::Slot<BlockValues>>,
    /// Requests that wait at a client for their block's transaction or for a way, in order. The first request may have
    /// started the transaction. Index: client × blocks + block.
    pub(super) held: Vec<VecDeque<ClientRequest>>,
    /// Requests that wait for a free miss register, by client.
    pub(super) backlogs: Vec<Backlog<ClientRequest>>,
    /// Blocks with requests that wait for a way, by client, in order.
    pub(super) awaiting_way: Vec<VecDeque<u8>>,
    /// Blocks with an outstanding request from a client to the home, by bit: client × blocks + block.
    pub(super) outstanding: u64,
    /// Blocks that occupy a way if ways are limited, indexed like `outstanding`.
    pub(super) occupied_ways: u64,
    /// The host's memory by block.
    pub(super) memory: Vec<BlockValues>,
    /// Messages in flight; within a channel in send order.
    pub(super) messages: Vec<NodeMessage<P::Message<BlockValues>>>,
    /// Unfinished merges; plans wait for their completion.
    pub(super) merges: Vec<Merge>,
    pub(super) broken: Option<Violation>,
}

impl<P: Nodes> Default for NodeState<P> {
    fn default() -> NodeState<P> {
        NodeState {
            fronts: FrontEnds::default(),
            slots: Vec::new(),
            held: Vec::new(),
            backlogs: Vec::new(),
            awaiting_way: Vec::new(),
            outstanding: 0,
            occupied_ways: 0,
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
            awaiting_way: self.awaiting_way.clone(),
            outstanding: self.outstanding,
            occupied_ways: self.occupied_ways,
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
        self.awaiting_way.clone_from(&from.awaiting_way);
        self.outstanding = from.outstanding;
        self.occupied_ways = from.occupied_ways;
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
        self.awaiting_way.hash(hasher);
        self.outstanding.hash(hasher);
        self.occupied_ways.hash(hasher);
        self.memory.hash(hasher);
        self.messages.hash(hasher);
        self.merges.hash(hasher);
        self.broken.hash(hasher);
    }
}

/// Ordered message channel, as a sort key: messages in a channel stay in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum NodeChannel {
    /// From an SM to its client, per line.
    ToClient { sm: u8, line: u8 },
    /// Between nodes, per block and class; messages in an unordered class travel independently.
    Between { from: Node, to: Node, block: u8, class: MessageClass },
    /// From a client to an SM, per line.
    ToSm { sm: u8, line: u8 },
}

impl<M> NodeMessage<M> {
    pub(super) fn channel<P: Nodes<Message<BlockValues> = M>>(&self) -> NodeChannel {
        match *self {
            NodeMessage::Request(ClientRequest { sm, line, .. }) => {
                NodeChannel::ToClient { sm: sm.unwrap_or(u8::MAX), line }
            }
            NodeMessage::Between { from, to, block, ref message } => {
                NodeChannel::Between { from, to, block, class: P::class::<BlockValues>(message) }
            }
            NodeMessage::Fill { sm, line, .. } => NodeChannel::ToSm { sm, line },
        }
    }
}

impl<P: Nodes> NodeState<P> {
    /// Sorts lists whose order has no meaning, so that equivalent states compare equal.
    pub(super) fn canonicalise(&mut self) {
        self.messages.sort_by_key(|message| message.channel::<P>());
        self.merges.sort_unstable();
    }

    /// Requests that wait at clients.
    pub(super) fn waiting(&self) -> impl Iterator<Item = &ClientRequest> {
        self.held.iter().flatten().chain(self.backlogs.iter().flat_map(Backlog::iter))
    }

    /// Mutable access to the waiting requests, and to the messages in flight.
    pub(super) fn waiting_mut(
        &mut self,
    ) -> (impl Iterator<Item = &mut ClientRequest>, &mut [NodeMessage<P::Message<BlockValues>>]) {
        let queued = self.backlogs.iter_mut().flat_map(Backlog::iter_mut);
        (self.held.iter_mut().flatten().chain(queued), &mut self.messages)
    }

    pub(super) fn break_with(&mut self, violation: Violation) {
        self.broken.get_or_insert(violation);
    }
}
