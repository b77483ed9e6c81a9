//! A hand-made machine: clients, a single home, a single block with four bytes.

use crate::client_home::{Answer, BlockEvent, BlockRequest, ClientHomeTypes, Hold, HomeMemoryAccess, Node, Nodes};
use crate::data::Data;
use crate::effects::Effects;
use crate::nmoesi::{BrokenNmoesi, ClientBlock, ClientState, HomeEntry, Message, Nmoesi, NmoesiOptions, Slot};
use crate::options::ProtocolOptions;
use crate::plan::{Action, Members, Phase, Sync};
use crate::{Protocol, Refusal};
use std::collections::VecDeque;
use tombolo_types::{Mask, ModuleId, Scope};

/// Number of bytes in the block.
pub(super) const BYTES: usize = 4;

/// Block contents: byte `i` is bit `i` in a mask.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct TestBytes(pub(super) [u8; BYTES]);

/// Indices of the block's bytes named by a mask.
fn named(mask: Mask) -> impl Iterator<Item = usize> {
    (0..BYTES).filter(move |byte| mask.0 >> byte & 1 != 0)
}

/// Number of the block's bytes named by a mask.
pub(super) fn count(mask: Mask) -> usize {
    named(mask).count()
}

impl Data for TestBytes {
    /// The amount added by the atomic.
    type Update = u8;

    fn merge(&mut self, from: TestBytes, mask: Mask) {
        named(mask).for_each(|byte| self.0[byte] = from.0[byte]);
    }

    fn update(&mut self, add: u8, mask: Mask) -> TestBytes {
        let before = *self;
        named(mask).for_each(|byte| self.0[byte] += add);
        before
    }
}

/// A GPU's weak load from a single byte.
pub(super) fn load(byte: usize) -> BlockRequest<TestBytes> {
    BlockRequest::Read { set: Mask(1 << byte), scope: Scope::Cta }
}

/// The host's load from a single byte, or a `.sys` load.
pub(super) fn coherent_load(byte: usize) -> BlockRequest<TestBytes> {
    BlockRequest::Read { set: Mask(1 << byte), scope: Scope::Sys }
}

fn write(byte: usize, value: u8, scope: Scope) -> BlockRequest<TestBytes> {
    BlockRequest::Write { set: Mask(1 << byte), scope, data: TestBytes([value; BYTES]) }
}

/// A GPU's weak store to a single byte: the paper's n-store.
pub(super) fn store(byte: usize, value: u8) -> BlockRequest<TestBytes> {
    write(byte, value, Scope::Cta)
}

/// The host's store to a single byte, or a `.sys` store.
pub(super) fn coherent_store(byte: usize, value: u8) -> BlockRequest<TestBytes> {
    write(byte, value, Scope::Sys)
}

/// An atomic add to a single byte.
pub(super) fn atomic(byte: usize, add: u8) -> BlockRequest<TestBytes> {
    BlockRequest::Atomic { set: Mask(1 << byte), scope: Scope::Sys, update: add, returns: true }
}

/// The effects requested by a single protocol step.
#[derive(Default)]
pub(super) struct StepEffects {
    pub(super) sent: Vec<(Node, Message<TestBytes>)>,
    pub(super) answer: Option<Answer<TestBytes>>,
    pub(super) accesses: Vec<HomeMemoryAccess<TestBytes>>,
    pub(super) is_held: bool,
}

impl Effects<ClientHomeTypes<Nmoesi>, TestBytes> for StepEffects {
    fn send(&mut self, to: Node, message: Message<TestBytes>) {
        self.sent.push((to, message));
    }

    fn answer(&mut self, answer: Answer<TestBytes>) {
        self.answer = Some(answer);
    }

    fn memory(&mut self, access: HomeMemoryAccess<TestBytes>) {
        self.accesses.push(access);
    }

    fn hold(&mut self, _: Hold) {
        self.is_held = true;
    }
}

pub(super) fn client(client: usize) -> Node {
    Node::Client(ModuleId(client as u8))
}

/// The options with and without transfers between peers.
pub(super) fn with_and_without_peers() -> [NmoesiOptions; 2] {
    [true, false].map(|peer_transfer| NmoesiOptions { peer_transfer, ..NmoesiOptions::default() })
}

pub(super) fn broken(rule: BrokenNmoesi) -> NmoesiOptions {
    NmoesiOptions { broken: Some(rule), ..NmoesiOptions::default() }
}

pub(super) fn rules(options: NmoesiOptions) -> Nmoesi {
    Nmoesi::new(ProtocolOptions { nmoesi: options, ..ProtocolOptions::default() })
}

/// A message in flight.
#[derive(Clone, Debug)]
pub(super) struct InFlight {
    pub(super) from: Node,
    pub(super) to: Node,
    pub(super) message: Message<TestBytes>,
}

/// GPUs, followed by the host. Memory starts as zero.
pub(super) struct World {
    rules: Nmoesi,
    clients: Vec<ClientBlock<TestBytes>>,
    held: Vec<Option<BlockRequest<TestBytes>>>,
    answers: Vec<Option<Answer<TestBytes>>>,
    home: HomeEntry<TestBytes>,
    pub(super) memory: TestBytes,
    pub(super) in_flight: VecDeque<InFlight>,
    /// Every delivered message, in order.
    pub(super) delivered: Vec<InFlight>,
    /// Number of times the block was read from memory.
    pub(super) reads: usize,
}

impl World {
    pub(super) fn new(gpus: usize, options: NmoesiOptions) -> World {
        World {
            rules: rules(options),
            clients: vec![ClientBlock::default(); gpus + 1],
            held: vec![None; gpus + 1],
            answers: vec![None; gpus + 1],
            home: HomeEntry::default(),
            memory: TestBytes::default(),
            in_flight: VecDeque::new(),
            delivered: Vec::new(),
            reads: 0,
        }
    }

    pub(super) fn gpus(&self) -> usize {
        self.clients.len() - 1
    }

    pub(super) fn host(&self) -> usize {
        self.gpus()
    }

    /// The states of all clients, the host last.
    pub(super) fn states(&self) -> Vec<ClientState> {
        self.clients.iter().map(|block| block.state).collect()
    }

    /// True if a client's release has something to wait for.
    pub(super) fn owes(&self, client: usize) -> bool {
        self.clients[client].owes(&self.rules)
    }

    pub(super) fn owner(&self) -> Option<usize> {
        self.home.owner.map(|owner| usize::from(owner.0))
    }

    /// Runs a step at a node and puts its messages in flight. Returns false, without any change, if the step
    /// stalls.
    fn step(&mut self, at: Node, event: BlockEvent<Message<TestBytes>, TestBytes>) -> bool {
        let before = match at {
            Node::Client(client) => Slot::Client(self.clients[usize::from(client.0)].clone()),
            Node::Home => Slot::Home(self.home.clone()),
        };
        let (mut slot, mut done) = (before.clone(), StepEffects::default());
        match self.rules.step(at, &mut slot, event.clone(), &mut done) {
            Ok(()) => {}
            Err(Refusal::Stall) => {
                assert!(slot == before && done.sent.is_empty(), "a refusal changes nothing");
                return false;
            }
            Err(Refusal::Unexpected(what)) => panic!("{at:?}: {what}: {event:?}"),
        }
        match (at, slot) {
            (Node::Client(client), Slot::Client(block)) => {
                let client = usize::from(client.0);
                self.clients[client] = block;
                if let BlockEvent::Request(request) = event {
                    self.held[client] = done.is_held.then_some(request);
                }
                if done.answer.is_some() {
                    self.answers[client] = done.answer;
                }
            }
            (Node::Home, Slot::Home(entry)) => self.home = entry,
            (Node::Client(_) | Node::Home, Slot::Client(_) | Slot::Home(_)) => panic!("a slot changes its kind"),
        }
        self.in_flight.extend(done.sent.into_iter().map(|(to, message)| InFlight { from: at, to, message }));
        for access in done.accesses {
            self.access(&access);
        }
        true
    }

    fn access(&mut self, access: &HomeMemoryAccess<TestBytes>) {
        match access {
            HomeMemoryAccess::Write { set, data } => self.memory.merge(*data, *set),
            HomeMemoryAccess::WriteAll { data } => self.memory = *data,
            HomeMemoryAccess::Read => {
                self.reads += 1;
                assert!(self.step(Node::Home, BlockEvent::Read(self.memory)), "memory's answer waits for nothing");
            }
        }
    }

    /// Runs an event at a client that can accept it.
    fn at_client(&mut self, client: usize, event: BlockEvent<Message<TestBytes>, TestBytes>) {
        assert!(self.step(self::client(client), event), "client {client} is busy");
    }

    /// Starts a request at a client; its messages stay in flight.
    pub(super) fn begin(&mut self, client: usize, request: BlockRequest<TestBytes>) {
        self.answers[client] = None;
        self.at_client(client, BlockEvent::Request(request));
    }

    /// Starts the eviction of the block at a client.
    pub(super) fn begin_eviction(&mut self, client: usize) {
        self.at_client(client, BlockEvent::Evict);
    }

    /// Delivers the oldest message between two nodes. Returns false if it must wait.
    pub(super) fn deliver(&mut self, from: Node, to: Node) -> bool {
        let at = self.in_flight.iter().position(|one| one.from == from && one.to == to);
        let at = at.unwrap_or_else(|| panic!("nothing is under way from {from:?} to {to:?}"));
        self.deliver_at(at)
    }

    fn deliver_at(&mut self, at: usize) -> bool {
        let one = self.in_flight[at].clone();
        let is_taken = self.step(one.to, BlockEvent::Message { from: one.from, message: one.message.clone() });
        if is_taken {
            // Messages sent by the step are behind this index.
            self.in_flight.remove(at);
            let to = one.to;
            self.delivered.push(one);
            self.resume(to);
        }
        is_taken
    }

    /// Retries the request that started a transaction, once the transaction is done.
    fn resume(&mut self, at: Node) {
        let Node::Client(id) = at else { return };
        let client = usize::from(id.0);
        if self.clients[client].waiting.is_none()
            && let Some(request) = self.held[client].take()
        {
            self.at_client(client, BlockEvent::Request(request));
        }
    }

    /// Delivers all messages in flight: repeatedly the first that can be delivered.
    pub(super) fn run(&mut self) {
        while !self.in_flight.is_empty() {
            let taken = (0..self.in_flight.len()).any(|at| self.deliver_at(at));
            assert!(taken, "nothing can arrive: {:?}", self.in_flight);
        }
    }

    pub(super) fn ask(&mut self, client: usize, request: BlockRequest<TestBytes>) {
        self.begin(client, request);
        self.run();
    }

    /// The value found in a byte by a client's last load or atomic.
    pub(super) fn found(&self, client: usize, byte: usize) -> u8 {
        match &self.answers[client] {
            Some(Answer::Fill { set, data }) if set.0 >> byte & 1 != 0 => data.0[byte],
            Some(Answer::Old { data }) => data.0[byte],
            Some(Answer::Fill { .. }) | None => panic!("client {client} has not found byte {byte}"),
        }
    }

    /// Performs a GPU's weak load, or the host's coherent load, and returns the value.
    pub(super) fn read(&mut self, client: usize, byte: usize) -> u8 {
        let request = if client == self.host() { coherent_load(byte) } else { load(byte) };
        self.ask(client, request);
        self.found(client, byte)
    }

    /// Performs a GPU's weak store, or the host's coherent store.
    pub(super) fn write(&mut self, client: usize, byte: usize, value: u8) {
        let request = if client == self.host() { coherent_store(byte, value) } else { store(byte, value) };
        self.ask(client, request);
    }

    /// Performs a GPU's weak stores, or the host's coherent stores, to every byte.
    pub(super) fn write_all(&mut self, client: usize, value: u8) {
        (0..BYTES).for_each(|byte| self.write(client, byte, value));
    }

    pub(super) fn evict(&mut self, client: usize) {
        self.begin_eviction(client);
        self.run();
    }

    /// Number of delivered messages with bytes for the home, and the number of block bytes they carried.
    pub(super) fn carried(&self) -> (usize, usize) {
        let carried = self.delivered.iter().filter_map(|one| {
            let (Message::Back { set, .. } | Message::Bytes { set, .. }) = one.message else { return None };
            Some(count(set)).filter(|count| *count > 0)
        });
        carried.fold((0, 0), |(messages, bytes), more| (messages + 1, bytes + more))
    }

    /// A client merges shared blocks, ahead of all other clients.
    pub(super) fn merge(&mut self, client: usize) {
        self.at_client(client, BlockEvent::Merge { all: false });
        self.run();
    }

    fn phases(&mut self, phases: &[Phase], issuer: usize) {
        for phase in phases {
            let Action::Merge { all } = phase.action else { panic!("{:?} is no action of clients", phase.action) };
            let members = match phase.members {
                Members::Gpu => issuer..issuer + 1,
                Members::All => 0..self.gpus(),
                Members::Own | Members::OthersOfGpu => panic!("a GPU is one client"),
            };
            members.for_each(|client| self.at_client(client, BlockEvent::Merge { all }));
            self.run();
        }
    }

    /// Ends a kernel on all GPUs; host code may follow.
    pub(super) fn end_kernel(&mut self) {
        self.phases(self.rules.release(Sync::Kernel), 0);
    }

    /// Launches a kernel on all GPUs.
    pub(super) fn launch(&mut self) {
        self.phases(self.rules.acquire(Sync::Kernel), 0);
    }

    /// Performs a `.sys` release by a GPU's thread.
    pub(super) fn release(&mut self, gpu: usize) {
        self.phases(self.rules.release(Sync::Thread(Scope::Sys)), gpu);
    }
}
