//! What every protocol is made of: nodes, types of its own, four effects, channels with a declared order.
//!
//! A protocol names its [`Types`]. A host keeps what its nodes hold, hands one slot with an event to a step, and carries
//! out the [`Effects`]. It never asks which protocol it hosts.

use std::fmt::Debug;
use std::hash::Hash;

/// The types that a family of protocols owns, where contents are `D`: of lines or of blocks.
///
/// Messages may be large, and need not be [`Copy`].
pub trait Types<D>: Copy + Send + Sync + 'static {
    /// Who takes part.
    type Node: Copy + Eq + Hash + Debug;
    /// What nodes tell each other.
    type Message: Clone + Eq + Debug;
    /// What a node answers to who asked for the event at hand.
    type Answer: Clone + Eq + Debug;
    /// What a node wants of its memory.
    type Access: Clone + Eq + Debug;
    /// How the request at hand is held back.
    type Hold: Copy + Eq + Debug;
}

/// What a step asks its host to do, in this order.
pub trait Effects<T: Types<D>, D> {
    /// Sends a message to another node.
    fn send(&mut self, to: T::Node, message: T::Message);

    /// Answers the request at hand.
    fn answer(&mut self, answer: T::Answer);

    /// Reads or writes the memory of this node.
    fn memory(&mut self, access: T::Access);

    /// Holds the request at hand back.
    fn hold(&mut self, how: T::Hold);
}

/// How messages of a class between two nodes must be delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Delivery {
    /// In the order sent, whatever the line.
    Fifo,
    /// In the order sent among messages of one line.
    FifoPerLine,
    /// In the order sent among messages of one directory region or block.
    FifoPerRegion,
    /// In any order.
    Unordered,
}
