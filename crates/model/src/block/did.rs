//! What one step of a block asked for.

use super::{Held, MessageOf};
use crate::watch::Contents;
use tombolo_protocol::node::Effects;
use tombolo_protocol::nodes::{Access, Answer, Hold, Node, Nodes, Of};

/// The effects of one step, in order.
pub(super) struct Did<N: Nodes, D: Contents> {
    /// What other nodes are told.
    pub(super) told: Vec<(Node, MessageOf<N, D>)>,
    /// What the request at hand is answered.
    pub(super) answer: Option<Answer<Held<D>>>,
    /// What is wanted of memory.
    pub(super) memory: Vec<Access<Held<D>>>,
    /// Whether the request at hand waits for a transaction that it has started.
    pub(super) parks: bool,
}

impl<N: Nodes, D: Contents> Default for Did<N, D> {
    fn default() -> Did<N, D> {
        Did { told: Vec::new(), answer: None, memory: Vec::new(), parks: false }
    }
}

impl<N: Nodes, D: Contents> Effects<Of<N>, Held<D>> for Did<N, D> {
    fn send(&mut self, to: Node, message: MessageOf<N, D>) {
        self.told.push((to, message));
    }

    fn answer(&mut self, answer: Answer<Held<D>>) {
        self.answer = Some(answer);
    }

    fn memory(&mut self, access: Access<Held<D>>) {
        self.memory.push(access);
    }

    fn hold(&mut self, how: Hold) {
        match how {
            Hold::Park => self.parks = true,
        }
    }
}
