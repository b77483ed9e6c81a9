//! Labels for steps of clients and homes in a message sequence chart.

use super::super::chart::ChartableWorld;
use super::super::sm::SmHost;
use super::NodeMachine;
use super::state::{ClientRequest, NodeMessage, NodeState};
use super::step::{DeliveryEviction, NodeStep};
use crate::litmus::{Location, Program};
use tombolo_protocol::Request;
use tombolo_protocol::client_home::{Node, Nodes};
use tombolo_protocol::front::Stage;

impl<P: Nodes> NodeMachine<'_, P> {
    fn lifeline(&self, node: Node) -> usize {
        let sms = self.scene.sms.len();
        match node {
            Node::Client(client) => sms + client.0 as usize,
            Node::Home => sms + self.clients as usize,
        }
    }

    /// Names of the locations on the lines selected by `chosen`.
    fn names(&self, chosen: impl Fn(u8) -> bool) -> String {
        let named = self.scene.program.locations.iter().enumerate();
        let named = named.filter(|(index, _)| chosen(self.scene.layout.cell(Location(*index as u16)).line));
        named.map(|(_, location)| location.name.as_str()).collect::<Vec<_>>().join(",")
    }

    fn names_of_block(&self, block: u8) -> String {
        self.names(|line| self.block(line) == block as usize)
    }

    fn of_thread(&self, state: &NodeState<P>, thread: u8, evict_first: bool) -> (usize, usize, String) {
        let index = thread as usize;
        let sm = self.scene.sm_of[index] as usize;
        let note = if evict_first { " (L1 has evicted the line)" } else { "" };
        let code = &self.scene.program.threads[index];
        let what = match (self.stage(state, index), self.instruction(state, index)) {
            (Some(Stage::Acquire(_)), _) => "invalidates its L1".to_owned(),
            (_, Some(instruction)) => self.scene.program.instruction(code, instruction).to_string(),
            (_, None) => String::new(),
        };
        (sm, sm, format!("P{}: {what}{note}", code.number))
    }

    fn of_message(&self, state: &NodeState<P>, at: usize) -> (usize, usize, String) {
        match state.messages[at] {
            NodeMessage::Request(ClientRequest { sm, line, request, .. }) => {
                let sm = sm.unwrap_or(0);
                let what = match request {
                    Request::Read { scope, .. } => format!("read.{scope}"),
                    Request::Write { scope, .. } => format!("write.{scope}"),
                    Request::Atomic { scope, .. } => format!("atomic.{scope}"),
                };
                let client = Node::Client(self.scene.sms[sm as usize].module);
                (sm as usize, self.lifeline(client), format!("{what} {}", self.names(|of| of == line)))
            }
            NodeMessage::Between { from, to, block, ref message } => {
                (self.lifeline(from), self.lifeline(to), format!("{message:?} {}", self.names_of_block(block)))
            }
            NodeMessage::Fill { sm, line, data, .. } => {
                let client = Node::Client(self.scene.sms[sm as usize].module);
                let what = format!("fill {} {:?}", self.names(|of| of == line), data.0);
                (self.lifeline(client), sm as usize, what)
            }
        }
    }
}

impl<P: Nodes> ChartableWorld for NodeMachine<'_, P> {
    fn heading(&self) -> String {
        self.scene.layout.to_string()
    }

    fn lifelines(&self) -> Vec<String> {
        let name = |sm: u8| if self.is_host(sm) { "core".to_owned() } else { format!("g{}.sm", self.client_of(sm)) };
        let sms = (0..self.scene.sms.len() as u8).map(name);
        let client = |client| if client == self.scene.layout.gpus { "host".to_owned() } else { format!("g{client}") };
        sms.chain((0..self.clients).map(client)).chain(["home".to_owned()]).collect()
    }

    fn describe(&self, state: &NodeState<P>, step: NodeStep) -> (usize, usize, String) {
        match step {
            NodeStep::Thread { thread, evict_first } => self.of_thread(state, thread, evict_first),
            NodeStep::Deliver { at, first } => {
                let (from, to, what) = self.of_message(state, at as usize);
                let note = match first {
                    DeliveryEviction::Nothing => "",
                    DeliveryEviction::Above => " (the L2 has made room)",
                    DeliveryEviction::Block => " (the block has made room)",
                };
                (from, to, format!("{what}{note}"))
            }
            NodeStep::Evict { client, block } => {
                let at = self.scene.sms.len() + client as usize;
                (at, at, format!("evicts the block of {}", self.names_of_block(block)))
            }
        }
    }

    fn execute_single(&self, step: NodeStep, state: &mut NodeState<P>) -> bool {
        let taken = self.execute_step(step, state);
        state.canonicalise();
        taken
    }

    fn forced_next(&self, state: &mut NodeState<P>) -> Option<NodeStep> {
        self.eager_step(state)
    }

    fn put_in_order(&self, state: &mut NodeState<P>) {
        state.canonicalise();
    }

    fn program(&self) -> &Program {
        self.scene.program
    }
}
