//! Effects collected from one protocol step for a block.

use super::{BlockContents, MessageOf};
use crate::observe::value_probe::Contents;
use tombolo_protocol::client_home::{Answer, ClientHomeTypes, Hold, HomeMemoryAccess, Node, Nodes};
use tombolo_protocol::effects::Effects;

/// Effects that a single protocol step has produced, each list in issue order.
pub(super) struct StepEffects<N: Nodes, D: Contents> {
    /// Messages to other nodes.
    pub(super) messages: Vec<(Node, MessageOf<N, D>)>,
    /// Reply to the current request, if any.
    pub(super) answer: Option<Answer<BlockContents<D>>>,
    /// Memory accesses requested in this step.
    pub(super) memory: Vec<HomeMemoryAccess<BlockContents<D>>>,
    /// Set if the current request has started a transaction and waits for it.
    pub(super) parks: bool,
}

impl<N: Nodes, D: Contents> Default for StepEffects<N, D> {
    fn default() -> StepEffects<N, D> {
        StepEffects { messages: Vec::new(), answer: None, memory: Vec::new(), parks: false }
    }
}

impl<N: Nodes, D: Contents> Effects<ClientHomeTypes<N>, BlockContents<D>> for StepEffects<N, D> {
    fn send(&mut self, to: Node, message: MessageOf<N, D>) {
        self.messages.push((to, message));
    }

    fn answer(&mut self, answer: Answer<BlockContents<D>>) {
        self.answer = Some(answer);
    }

    fn memory(&mut self, access: HomeMemoryAccess<BlockContents<D>>) {
        self.memory.push(access);
    }

    fn hold(&mut self, how: Hold) {
        match how {
            Hold::Park => self.parks = true,
        }
    }
}
