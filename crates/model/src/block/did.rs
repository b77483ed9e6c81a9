//! Effects collected from one protocol step for a block.

use super::{Held, MessageOf};
use crate::watch::Contents;
use tombolo_protocol::node::Effects;
use tombolo_protocol::nodes::{Access, Answer, Hold, Node, Nodes, Of};

/// Effects that a single protocol step has produced, each list in issue order.
pub(super) struct Did<N: Nodes, D: Contents> {
    /// Messages to other nodes.
    pub(super) told: Vec<(Node, MessageOf<N, D>)>,
    /// Reply to the current request, if any.
    pub(super) answer: Option<Answer<Held<D>>>,
    /// Memory accesses requested in this step.
    pub(super) memory: Vec<Access<Held<D>>>,
    /// Set if the current request has started a transaction and waits for it.
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
