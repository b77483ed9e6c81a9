//! A machine made by hand: clients, one home, one block of four bytes.

use crate::data::Data;
use crate::nmoesi::{Block, BrokenNmoesi, Entry, Message, Nmoesi, NmoesiOptions, Slot, State};
use crate::node::Effects;
use crate::nodes::{Access, Answer, Event, Hold, Node, Nodes, Of, Request};
use crate::options::Options;
use crate::plan::{Action, Members, Phase, Sync};
use crate::{Protocol, Refusal};
use std::collections::VecDeque;
use tombolo_types::{Mask, ModuleId, Scope};

/// Bytes of the block.
pub(super) const BYTES: usize = 4;

/// A block: byte `i` is bit `i` of a mask.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Bytes(pub(super) [u8; BYTES]);

/// The bytes of the block that a mask names.
fn named(mask: Mask) -> impl Iterator<Item = usize> {
    (0..BYTES).filter(move |byte| mask.0 >> byte & 1 != 0)
}

/// How many bytes of the block a mask names.
pub(super) fn count(mask: Mask) -> usize {
    named(mask).count()
}

impl Data for Bytes {
    /// What is added.
    type Update = u8;

    fn merge(&mut self, from: Bytes, mask: Mask) {
        named(mask).for_each(|byte| self.0[byte] = from.0[byte]);
    }

    fn update(&mut self, add: u8, mask: Mask) -> Bytes {
        let before = *self;
        named(mask).for_each(|byte| self.0[byte] += add);
        before
    }
}

/// A weak load of one byte by a GPU.
pub(super) fn load(byte: usize) -> Request<Bytes> {
    Request::Read { set: Mask(1 << byte), scope: Scope::Cta }
}

/// A load of one byte by the host, or one of `.sys` scope.
pub(super) fn coherent_load(byte: usize) -> Request<Bytes> {
    Request::Read { set: Mask(1 << byte), scope: Scope::Sys }
}

fn write(byte: usize, value: u8, scope: Scope) -> Request<Bytes> {
    Request::Write { set: Mask(1 << byte), scope, data: Bytes([value; BYTES]) }
}

/// A weak store of one byte by a GPU: the paper's n-store.
pub(super) fn store(byte: usize, value: u8) -> Request<Bytes> {
    write(byte, value, Scope::Cta)
}

/// A store of one byte by the host, or one of `.sys` scope.
pub(super) fn coherent_store(byte: usize, value: u8) -> Request<Bytes> {
    write(byte, value, Scope::Sys)
}

/// An atomic add to one byte.
pub(super) fn atomic(byte: usize, add: u8) -> Request<Bytes> {
    Request::Atomic { set: Mask(1 << byte), scope: Scope::Sys, update: add, returns: true }
}

/// What one step has asked for.
#[derive(Default)]
pub(super) struct Done {
    pub(super) sent: Vec<(Node, Message<Bytes>)>,
    pub(super) answer: Option<Answer<Bytes>>,
    pub(super) accesses: Vec<Access<Bytes>>,
    pub(super) is_held: bool,
}

impl Effects<Of<Nmoesi>, Bytes> for Done {
    fn send(&mut self, to: Node, message: Message<Bytes>) {
        self.sent.push((to, message));
    }

    fn answer(&mut self, answer: Answer<Bytes>) {
        self.answer = Some(answer);
    }

    fn memory(&mut self, access: Access<Bytes>) {
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
    Nmoesi::new(Options { nmoesi: options, ..Options::default() })
}

/// A message under way.
#[derive(Clone, Debug)]
pub(super) struct UnderWay {
    pub(super) from: Node,
    pub(super) to: Node,
    pub(super) message: Message<Bytes>,
}

/// GPUs, and the host behind them. Memory holds nought.
pub(super) struct World {
    rules: Nmoesi,
    clients: Vec<Block<Bytes>>,
    held: Vec<Option<Request<Bytes>>>,
    answers: Vec<Option<Answer<Bytes>>>,
    home: Entry<Bytes>,
    pub(super) memory: Bytes,
    pub(super) under_way: VecDeque<UnderWay>,
    /// Every message taken, in order.
    pub(super) taken: Vec<UnderWay>,
    /// Blocks read of memory.
    pub(super) reads: usize,
}

impl World {
    pub(super) fn new(gpus: usize, options: NmoesiOptions) -> World {
        World {
            rules: rules(options),
            clients: vec![Block::default(); gpus + 1],
            held: vec![None; gpus + 1],
            answers: vec![None; gpus + 1],
            home: Entry::default(),
            memory: Bytes::default(),
            under_way: VecDeque::new(),
            taken: Vec::new(),
            reads: 0,
        }
    }

    pub(super) fn gpus(&self) -> usize {
        self.clients.len() - 1
    }

    pub(super) fn host(&self) -> usize {
        self.gpus()
    }

    /// The states of all clients, the host's last.
    pub(super) fn states(&self) -> Vec<State> {
        self.clients.iter().map(|block| block.state).collect()
    }

    /// Whether a release of a client has something to wait for.
    pub(super) fn owes(&self, client: usize) -> bool {
        self.clients[client].owes(&self.rules)
    }

    pub(super) fn owner(&self) -> Option<usize> {
        self.home.owner.map(|owner| usize::from(owner.0))
    }

    /// A step at a node; what it sends is under way. False, with nothing changed, where it must wait.
    fn step(&mut self, at: Node, event: Event<Message<Bytes>, Bytes>) -> bool {
        let before = match at {
            Node::Client(client) => Slot::Client(self.clients[usize::from(client.0)].clone()),
            Node::Home => Slot::Home(self.home.clone()),
        };
        let (mut slot, mut done) = (before.clone(), Done::default());
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
                if let Event::Asked(request) = event {
                    self.held[client] = done.is_held.then_some(request);
                }
                if done.answer.is_some() {
                    self.answers[client] = done.answer;
                }
            }
            (Node::Home, Slot::Home(entry)) => self.home = entry,
            (Node::Client(_) | Node::Home, Slot::Client(_) | Slot::Home(_)) => panic!("a slot changes its kind"),
        }
        self.under_way.extend(done.sent.into_iter().map(|(to, message)| UnderWay { from: at, to, message }));
        for access in done.accesses {
            self.access(&access);
        }
        true
    }

    fn access(&mut self, access: &Access<Bytes>) {
        match access {
            Access::Write { set, data } => self.memory.merge(*data, *set),
            Access::WriteAll { data } => self.memory = *data,
            Access::Read => {
                self.reads += 1;
                assert!(self.step(Node::Home, Event::Read(self.memory)), "memory's answer waits for nothing");
            }
        }
    }

    /// An event at a client, which can take it.
    fn at_client(&mut self, client: usize, event: Event<Message<Bytes>, Bytes>) {
        assert!(self.step(self::client(client), event), "client {client} is busy");
    }

    /// A request begins; what it sends stays under way.
    pub(super) fn begin(&mut self, client: usize, request: Request<Bytes>) {
        self.answers[client] = None;
        self.at_client(client, Event::Asked(request));
    }

    /// A block begins to make room.
    pub(super) fn begin_eviction(&mut self, client: usize) {
        self.at_client(client, Event::Evict);
    }

    /// The first message from one node to another arrives. False where it must wait.
    pub(super) fn deliver(&mut self, from: Node, to: Node) -> bool {
        let at = self.under_way.iter().position(|one| one.from == from && one.to == to);
        let at = at.unwrap_or_else(|| panic!("nothing is under way from {from:?} to {to:?}"));
        self.deliver_at(at)
    }

    fn deliver_at(&mut self, at: usize) -> bool {
        let one = self.under_way[at].clone();
        let is_taken = self.step(one.to, Event::Told { from: one.from, message: one.message.clone() });
        if is_taken {
            // What the step has sent is behind.
            self.under_way.remove(at);
            let to = one.to;
            self.taken.push(one);
            self.resume(to);
        }
        is_taken
    }

    /// The request that has started a transaction runs again where that is done.
    fn resume(&mut self, at: Node) {
        let Node::Client(id) = at else { return };
        let client = usize::from(id.0);
        if self.clients[client].waiting.is_none()
            && let Some(request) = self.held[client].take()
        {
            self.at_client(client, Event::Asked(request));
        }
    }

    /// Everything under way arrives: each time the first that can.
    pub(super) fn run(&mut self) {
        while !self.under_way.is_empty() {
            let taken = (0..self.under_way.len()).any(|at| self.deliver_at(at));
            assert!(taken, "nothing can arrive: {:?}", self.under_way);
        }
    }

    pub(super) fn ask(&mut self, client: usize, request: Request<Bytes>) {
        self.begin(client, request);
        self.run();
    }

    /// The value that the last load or atomic of a client has found.
    pub(super) fn found(&self, client: usize, byte: usize) -> u8 {
        match &self.answers[client] {
            Some(Answer::Fill { set, data }) if set.0 >> byte & 1 != 0 => data.0[byte],
            Some(Answer::Old { data }) => data.0[byte],
            Some(Answer::Fill { .. }) | None => panic!("client {client} has not found byte {byte}"),
        }
    }

    /// A weak load of a GPU, or a load of the host.
    pub(super) fn read(&mut self, client: usize, byte: usize) -> u8 {
        let request = if client == self.host() { coherent_load(byte) } else { load(byte) };
        self.ask(client, request);
        self.found(client, byte)
    }

    /// A weak store of a GPU, or a store of the host.
    pub(super) fn write(&mut self, client: usize, byte: usize, value: u8) {
        let request = if client == self.host() { coherent_store(byte, value) } else { store(byte, value) };
        self.ask(client, request);
    }

    /// A weak store of a GPU to every byte, or one of the host.
    pub(super) fn write_all(&mut self, client: usize, value: u8) {
        (0..BYTES).for_each(|byte| self.write(client, byte, value));
    }

    pub(super) fn evict(&mut self, client: usize) {
        self.begin_eviction(client);
        self.run();
    }

    /// How many messages that carry bytes to the home have been taken, and how many bytes of the block these carried.
    pub(super) fn carried(&self) -> (usize, usize) {
        let carried = self.taken.iter().filter_map(|one| {
            let (Message::Back { set, .. } | Message::Bytes { set, .. }) = one.message else { return None };
            Some(count(set)).filter(|count| *count > 0)
        });
        carried.fold((0, 0), |(messages, bytes), more| (messages + 1, bytes + more))
    }

    /// A client merges what others share, before any other does.
    pub(super) fn merge(&mut self, client: usize) {
        self.at_client(client, Event::Merge { all: false });
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
            members.for_each(|client| self.at_client(client, Event::Merge { all }));
            self.run();
        }
    }

    /// A kernel has ended; host code may follow.
    pub(super) fn end_kernel(&mut self) {
        self.phases(self.rules.release(Sync::Kernel), 0);
    }

    /// A kernel is launched.
    pub(super) fn launch(&mut self) {
        self.phases(self.rules.acquire(Sync::Kernel), 0);
    }

    /// A release of `.sys` scope by a thread of a GPU.
    pub(super) fn release(&mut self, gpu: usize) {
        self.phases(self.rules.release(Sync::Thread(Scope::Sys)), gpu);
    }
}
