//! Clients, a single home and a single block with any contents, under any client-home protocol.

use std::collections::VecDeque;
use tombolo_protocol::client_home::{
    Answer, BlockEvent, BlockRequest, Carried, ClientHomeTypes, Hold, HomeMemoryAccess, MessageClass, Node, Nodes,
};
use tombolo_protocol::{BlockData, Effects};
use tombolo_types::{ModuleId, Scope};

/// Number of bytes per block in random runs.
pub(super) const BYTES: usize = 32;

/// Maximum number of bytes named by a request: a line's bytes.
const LINE: usize = 4;

/// Contents and byte sets that a test can inspect.
pub(super) trait Bytewise: BlockData<Update = u8> {
    fn set(bytes: &[usize]) -> Self::Set;
    fn bytes(set: &Self::Set) -> Vec<usize>;
    fn filled(value: u8) -> Self;
    fn byte(&self, byte: usize) -> u8;
}

/// The observable events in a run, independent of the contents type.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Observation {
    /// Bytes and the values found there.
    Found(Vec<(usize, u8)>),
    /// A message and its carried bytes; `None` for a whole block, whose bytes are not compared.
    Sent(Node, Node, MessageClass, Option<Vec<usize>>),
    /// The final state for each client, and memory's final contents.
    End(Vec<String>, Vec<u8>),
}

struct StepEffects<P: Nodes, B: BlockData> {
    sent: Vec<(Node, P::Message<B>)>,
    answer: Option<Answer<B>>,
    accesses: Vec<HomeMemoryAccess<B>>,
    is_held: bool,
}

impl<P: Nodes, B: BlockData> Effects<ClientHomeTypes<P>, B> for StepEffects<P, B> {
    fn send(&mut self, to: Node, message: P::Message<B>) {
        self.sent.push((to, message));
    }

    fn answer(&mut self, answer: Answer<B>) {
        self.answer = Some(answer);
    }

    fn memory(&mut self, access: HomeMemoryAccess<B>) {
        self.accesses.push(access);
    }

    fn hold(&mut self, how: Hold) {
        match how {
            Hold::Park => self.is_held = true,
        }
    }
}

struct InFlight<M> {
    from: Node,
    to: Node,
    message: M,
}

pub(super) struct World<P: Nodes, B: BlockData> {
    protocol: P,
    /// The clients' slots, followed by the home's slot.
    slots: Vec<P::Slot<B>>,
    held: Vec<Option<BlockRequest<B>>>,
    memory: B,
    in_flight: VecDeque<InFlight<P::Message<B>>>,
    seen: Vec<Observation>,
}

impl<P: Nodes, B: Bytewise> World<P, B> {
    pub(super) fn new(protocol: P, clients: usize, memory: B) -> World<P, B> {
        let slots = (0..clients).map(client).chain([Node::Home]).map(P::empty).collect();
        World { protocol, slots, held: vec![None; clients], memory, in_flight: VecDeque::new(), seen: Vec::new() }
    }

    fn index(&self, at: Node) -> usize {
        match at {
            Node::Client(client) => usize::from(client.0),
            Node::Home => self.held.len(),
        }
    }

    pub(super) fn slot(&self, client: usize) -> &P::Slot<B> {
        &self.slots[client]
    }

    /// Runs a step that must not stall. Returns true if its request is held.
    fn step(&mut self, at: Node, event: BlockEvent<P::Message<B>, B>) -> bool {
        let index = self.index(at);
        let mut done = StepEffects { sent: Vec::new(), answer: None, accesses: Vec::new(), is_held: false };
        let result = self.protocol.step::<B>(at, &mut self.slots[index], event, &mut done);
        assert_eq!(result, Ok(()), "a step refuses only where a transaction is under way");
        for (to, message) in done.sent {
            let carried = match P::carries(&message) {
                Carried::Nothing => Some(Vec::new()),
                Carried::Masked(set) => Some(B::bytes(set)),
                Carried::Block => None,
            };
            self.seen.push(Observation::Sent(at, to, P::class(&message), carried));
            self.in_flight.push_back(InFlight { from: at, to, message });
        }
        if let Some(Answer::Fill { set, data }) = done.answer {
            let found = B::bytes(&set).into_iter().map(|byte| (byte, data.byte(byte)));
            self.seen.push(Observation::Found(found.collect()));
        }
        for access in done.accesses {
            match access {
                HomeMemoryAccess::Read => {
                    self.step(at, BlockEvent::Read(self.memory.clone()));
                }
                HomeMemoryAccess::Write { set, data } => self.memory.merge(&data, &set),
                HomeMemoryAccess::WriteAll { .. } => panic!("no broken rule is here"),
            }
        }
        done.is_held
    }

    fn is_busy(&self, at: Node) -> bool {
        P::is_busy(&self.slots[self.index(at)])
    }

    /// An event that the client accepts immediately and without sending messages.
    pub(super) fn at_client(&mut self, client: usize, event: BlockEvent<P::Message<B>, B>) {
        assert!(!self.step(self::client(client), event) && self.in_flight.is_empty());
    }

    fn begin(&mut self, client: usize, request: BlockRequest<B>) {
        if self.step(self::client(client), BlockEvent::Request(request.clone())) {
            self.held[client] = Some(request);
        }
    }

    /// Runs a request to completion.
    pub(super) fn ask(&mut self, client: usize, request: BlockRequest<B>) {
        self.begin(client, request);
        while self.deliver(0) {}
    }

    /// Deliverable messages: the first for each sender, receiver and class, except requests to a busy home.
    fn ready(&self) -> Vec<usize> {
        let channel = |at: usize| {
            let InFlight { from, to, message } = &self.in_flight[at];
            (*from, *to, P::class(message))
        };
        let can_arrive = |&at: &usize| {
            let own = channel(at);
            let waits = own.2 == MessageClass::Request && self.is_busy(own.1);
            !waits && (0..at).all(|earlier| channel(earlier) != own)
        };
        (0..self.in_flight.len()).filter(can_arrive).collect()
    }

    /// Delivers a deliverable message. Returns false if none exists.
    fn deliver(&mut self, which: usize) -> bool {
        let ready = self.ready();
        if ready.is_empty() {
            assert!(self.in_flight.is_empty(), "nothing can arrive");
            return false;
        }
        let at = ready[which % ready.len()];
        let InFlight { from, to, message } = self.in_flight.remove(at).expect("it is under way");
        self.step(to, BlockEvent::Message { from, message });
        if let Node::Client(id) = to
            && !self.is_busy(to)
            && let Some(request) = self.held[usize::from(id.0)].take()
        {
            self.begin(usize::from(id.0), request);
        }
        true
    }

    /// Delivers all messages, evicts the block from every client, and records the final memory contents.
    fn end(mut self) -> Vec<Observation> {
        while self.deliver(0) {}
        for client in 0..self.held.len() {
            self.step(self::client(client), BlockEvent::Evict);
            while self.deliver(0) {}
        }
        let states = self.slots.iter().filter_map(|slot| P::state(slot)).map(|state| state.to_string());
        let memory = (0..BYTES).map(|byte| self.memory.byte(byte));
        self.seen.push(Observation::End(states.collect(), memory.collect()));
        self.seen
    }
}

fn client(client: usize) -> Node {
    Node::Client(ModuleId(client as u8))
}

/// Seeded random numbers. Source: Marsaglia, "Xorshift RNGs", 2003, 64 bits, shifts 13, 7, 17.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize % end
    }

    /// A random byte selection within a single line.
    fn bytes(&mut self) -> Vec<usize> {
        let (line, bits) = (self.below(BYTES / LINE), self.below((1 << LINE) - 1) + 1);
        (0..LINE).filter(|at| bits >> at & 1 != 0).map(|at| line * LINE + at).collect()
    }

    fn event<M, B: Bytewise>(&mut self) -> BlockEvent<M, B> {
        let (bytes, value) = (self.bytes(), self.below(100) as u8);
        let (set, scope) = (B::set(&bytes), [Scope::Cta, Scope::Cta, Scope::Sys][self.below(3)]);
        match self.below(10) {
            0..3 => BlockEvent::Request(BlockRequest::Read { set, scope }),
            3..6 => BlockEvent::Request(BlockRequest::Write { data: B::filled(value).only(&set), set, scope }),
            6 => BlockEvent::Request(BlockRequest::Atomic { set, scope, update: value, returns: true }),
            7 => BlockEvent::EvictAbove(set),
            8 => BlockEvent::Evict,
            9.. => BlockEvent::Merge { all: value % 2 == 0 },
        }
    }
}

/// Number of clients in random runs.
const CLIENTS: usize = 3;

/// Number of events in a random run.
const EVENTS: usize = 300;

/// The observable results from random client events, with messages delivered in random order in between.
pub(super) fn random_run<P: Nodes, B: Bytewise>(protocol: P, seed: u64) -> Vec<Observation> {
    let (mut world, mut random) = (World::<P, B>::new(protocol, CLIENTS, B::filled(0)), Random(seed));
    for _ in 0..EVENTS {
        let (at, event) = (random.below(CLIENTS), random.event());
        match event {
            BlockEvent::EvictAbove(_) => {
                world.step(client(at), event);
            }
            _ if world.is_busy(client(at)) => {}
            BlockEvent::Request(request) => world.begin(at, request),
            BlockEvent::Evict | BlockEvent::Merge { .. } | BlockEvent::Message { .. } | BlockEvent::Read(_) => {
                world.step(client(at), event);
            }
        }
        for _ in 0..random.below(4) {
            let which = random.below(CLIENTS * CLIENTS);
            world.deliver(which);
        }
    }
    world.end()
}
