//! Machines with caches that exchange data directly: clients with blocks, and block homes next to the host's memory.
//!
//! Hosts any [`Nodes`] protocol, by the duties listed in [`tombolo_protocol::client_home`]. Each GPU is a client, below the
//! SMs with its threads. The host is another client; its core has at most a single access in flight and no L1.
//!
//! - `state` defines a state, `host` carries out protocol steps, `step` enumerates the possible successors. `turn`
//!   executes a client's requests in order.
//! - `memory_system` connects clients to the threads above them. `property` checks the invariants at every state.
//!
//! | aspect | explored |
//! | --- | --- |
//! | block | two lines with two locations each; a block per location, two lines per block, or two locations per line |
//! | requests to a home | ordered per client and block; all messages from a home to a client likewise; replies and peer blocks unordered |
//! | miss registers and ways | as many as blocks; tests limit registers to one to three ([`ClientResources`](super::ClientResources)) |
//! | queues | unlimited; tests limit them to a slot per pair of nodes and class |
//! | start | cold; or host writes to every block, then reads by every GPU, so that memory has only outdated data |
//! | values | every byte, at two levels in a client and in host memory; racing bytes merge in every order |
//!
//! A final state is host memory after write-backs from every client: the owner's bytes first, the remaining clients'
//! bytes on top in any order. The only reduction executes commuting messages at once: replies to a home, and a home's
//! messages to a waiting client.
//!
//! Modelled: any latency for every message within the order declared for its class; eviction of a block or an L2 line
//! at any time; queues with unlimited length, or with a given number of slots. Not modelled: memory latency.

mod chart;
mod host;
mod memory_system;
mod property;
mod state;
mod step;
mod turn;

use super::Report;
use super::boundaries::has_launch;
use super::config::{Config, Start};
use super::layout::ProgramLayout;
use super::scene::Scene;
use super::search::World;
use crate::litmus::{FinalState, Location, Program};
use state::{BlockValues, CELLS_OF_BLOCK, NodeState};
use std::collections::VecDeque;
use tombolo_protocol::client_home::{Node, Nodes};
use tombolo_protocol::host::Backlog;
use tombolo_protocol::{PhasePlan, plan};
use tombolo_types::ModuleId;

/// A program laid out on clients and homes.
pub(super) struct NodeMachine<'a, P> {
    pub(super) protocol: P,
    pub(super) scene: Scene<'a>,
    pub(super) config: &'a Config,
    /// Number of clients: a client per GPU, followed by the host.
    clients: u8,
    /// Blocks occupied by the program's lines.
    blocks: usize,
    /// Plans for each kernel boundary, in order.
    boundaries: Vec<Vec<PhasePlan>>,
}

/// Explores `program` on clients and homes. Used for protocols with block clients, in place of the explorer for line
/// L2s.
pub(super) fn explore<P: Nodes>(
    protocol: P,
    program: &Program,
    layout: &ProgramLayout,
    config: &Config,
    forbidden: &dyn Fn(&FinalState) -> bool,
) -> Report {
    super::report(&NodeMachine::new(protocol, program, layout, config), forbidden)
}

impl<'a, P: Nodes> NodeMachine<'a, P> {
    fn new(protocol: P, program: &'a Program, layout: &'a ProgramLayout, config: &'a Config) -> NodeMachine<'a, P> {
        let scene = Scene::new(&protocol, program, layout);
        // A host without threads still holds the data that it wrote earlier.
        let clients = layout.gpus + 1;
        let blocks = (0..scene.lines).map(|line| layout.region(line) + 1).max().unwrap_or(0);
        let boundaries = program.boundaries();
        let boundaries = (0..boundaries).map(|number| {
            let end = PhasePlan::from(protocol.release(plan::Sync::Kernel));
            let launch = PhasePlan::from(protocol.acquire(plan::Sync::Kernel));
            if has_launch(program, number) { vec![end, launch] } else { vec![end] }
        });
        let boundaries = boundaries.collect();
        assert!(
            config.room.is_none() || config.slots.is_none(),
            "few resources are explored with queues of any length"
        );
        assert!(clients as usize * blocks <= u64::BITS as usize, "a bit for each block of each client");
        NodeMachine { protocol, scene, config, clients, blocks, boundaries }
    }

    fn start(&self) -> NodeState<P> {
        let client = |client| P::empty(Node::Client(ModuleId(client)));
        let of_clients = (0..self.clients).flat_map(|number| (0..self.blocks).map(move |_| client(number)));
        let of_home = (0..self.blocks).map(|_| P::empty(Node::Home));
        let mut state = NodeState {
            fronts: self.scene.initial(),
            slots: of_clients.chain(of_home).collect(),
            held: vec![VecDeque::new(); self.clients as usize * self.blocks],
            backlogs: vec![Backlog::default(); self.clients as usize],
            awaiting_way: vec![VecDeque::new(); self.clients as usize],
            outstanding: 0,
            occupied_ways: 0,
            memory: vec![BlockValues::default(); self.blocks],
            messages: Vec::new(),
            merges: Vec::new(),
            broken: None,
        };
        for (index, location) in self.scene.program.locations.iter().enumerate() {
            let at = self.scene.layout.cell(Location(index as u16));
            state.memory[self.block(at.line)].0[self.first_cell(at.line) + at.cell as usize] = location.initial;
        }
        if self.config.start == Start::Warm {
            self.warm(&mut state);
        }
        self.settle_all(&mut state);
        state.canonicalise();
        state
    }

    /// Index of the block for a given line.
    fn block(&self, line: u8) -> usize {
        self.scene.layout.region(line as usize)
    }

    /// First cell of a line within the block.
    fn first_cell(&self, line: u8) -> usize {
        let block = self.block(line);
        (0..line).filter(|earlier| self.block(*earlier) == block).count() * super::values::CELLS
    }

    /// The client below an SM.
    fn client_of(&self, sm: u8) -> u8 {
        self.scene.sms[sm as usize].module.0
    }

    /// True if an SM represents the host's core.
    fn is_host(&self, sm: u8) -> bool {
        self.client_of(sm) == self.scene.layout.gpus
    }

    fn client_index(&self, client: u8, block: usize) -> usize {
        client as usize * self.blocks + block
    }

    fn home_index(&self, block: usize) -> usize {
        self.clients as usize * self.blocks + block
    }

    /// Index of a node's slot.
    fn index(&self, node: Node, block: usize) -> usize {
        match node {
            Node::Client(client) => self.client_index(client.0, block),
            Node::Home => self.home_index(block),
        }
    }
}

/// Maximum number of values in a block.
const _: () = assert!(CELLS_OF_BLOCK <= 32, "a mask has a bit for each");

impl<P: Nodes> World for NodeMachine<'_, P> {
    type State = NodeState<P>;
    type Step = step::NodeStep;

    fn initial(&self) -> NodeState<P> {
        self.start()
    }

    fn list_steps(&self, state: &NodeState<P>, steps: &mut Vec<step::NodeStep>) {
        *steps = self.possible(state);
    }

    fn take(&self, step: step::NodeStep, state: &mut NodeState<P>) -> bool {
        if !self.execute_step(step, state) {
            return false;
        }
        while let Some(step) = self.eager_step(state) {
            if !self.execute_step(step, state) {
                state.break_with(super::Violation::Unexpected("a step that cannot wait was refused"));
            }
        }
        state.canonicalise();
        true
    }

    fn violation(&self, state: &NodeState<P>, is_final: bool) -> Option<super::Violation> {
        self.violation_in(state, is_final)
    }

    fn final_states(&self, state: &NodeState<P>) -> Vec<FinalState> {
        self.endings(state)
    }

    fn max_states(&self) -> usize {
        self.config.max_states
    }

    fn walks(&self) -> usize {
        self.config.walks
    }
}
