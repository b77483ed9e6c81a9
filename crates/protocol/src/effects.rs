//! Common ground for all protocols: nodes, protocol-owned types, four effects, and channels with a declared order.
//!
//! A protocol names its [`Types`]. A host keeps its nodes' state, hands a single slot together with an event to a
//! step, and carries out the resulting [`Effects`] in order. The host never inspects the protocol's identity.

use std::fmt::Debug;
use std::hash::Hash;

/// The types owned by a family of protocols, with contents `D`: line contents or block contents.
///
/// Messages may be large and need not be [`Copy`].
pub trait Types<D>: Copy + Send + Sync + 'static {
    /// A participant in the protocol's messages.
    type Node: Copy + Eq + Hash + Debug;
    /// A message between nodes.
    type Message: Clone + Eq + Debug;
    /// A node's reply to the requester whose event is being processed.
    type Answer: Clone + Eq + Debug;
    /// A node's access to its own memory.
    type Access: Clone + Eq + Debug;
    /// The way in which the current request is held back.
    type Hold: Copy + Eq + Debug;
}

/// Effects a step requests from its host, in this order.
pub trait Effects<T: Types<D>, D> {
    /// Sends a message to another node.
    fn send(&mut self, to: T::Node, message: T::Message);

    /// Answers the current request.
    fn answer(&mut self, answer: T::Answer);

    /// Reads or writes this node's memory.
    fn memory(&mut self, access: T::Access);

    /// Holds the current request.
    fn hold(&mut self, how: T::Hold);
}

/// Delivery order for messages in a class between two nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Delivery {
    /// Send order among all messages, regardless of the line.
    Fifo,
    /// Send order among messages for a common line.
    FifoPerLine,
    /// Send order among messages for a common directory region or block.
    FifoPerRegion,
    /// Any order at all.
    Unordered,
}
