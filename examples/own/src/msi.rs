//! MSI between the GPUs' caches for host memory: a block has one writer or any number of readers. The home, a directory
//! next to host memory, takes one request for a block at a time.
//!
//! | state | load | store, atomic | eviction | read by another client | write by another client |
//! | --- | --- | --- | --- | --- | --- |
//! | M | hit | hit | writes back, I | sends its bytes, S | sends its bytes, I |
//! | S | hit | requests M | I | - | I |
//! | I | requests S | requests M | - | - | - |
//!
//! Every copy is current at all times, so that neither an acquire nor a release moves anything below the L1.

use std::fmt;
use std::mem;
use tombolo::protocol::client_home::{
    Answer, BlockEvent, BlockRequest, Carried, Channels, ClientHomeTypes, ClientView, Hold, HomeMemoryAccess, HomeView,
    MessageClass, Node, Nodes,
};
use tombolo::protocol::{
    BlockData, ByteSet, Choice, Delivery, Effects, ModuleId, ModuleSet, Phase, Promise, Protocol, ProtocolFacts,
    ProtocolOptions, Refusal, RetainedLines, Sync,
};

#[derive(Clone, Copy)]
pub(crate) struct Msi(ProtocolOptions);

impl From<ProtocolOptions> for Msi {
    fn from(options: ProtocolOptions) -> Msi {
        Msi(options)
    }
}

/// A client's right to a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum State {
    /// Not held.
    #[default]
    I,
    /// May be read; memory has the same bytes.
    S,
    /// May be written; memory may lack bytes, and no other client holds the block.
    M,
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// The reply that a client waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Wait {
    Block,
    Acknowledgment,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Client<B: BlockData> {
    state: State,
    wait: Option<Wait>,
    /// Contents of the client's memory: the whole block unless the state is I.
    data: B,
    /// Bytes of `data` absent from host memory.
    dirty: B::Set,
    /// Bytes present in the L2 above the client's memory.
    above: B::Set,
    /// Subset of `above` absent from the client's memory.
    fresh: B::Set,
    /// Contents of the L2.
    l2: B,
}

/// A home's transaction: a client reads or writes the block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Transaction {
    to: ModuleId,
    state: State,
    /// The client holds the block: no bytes are sent.
    upgrade: bool,
    /// Clients that have not answered yet.
    recalled: ModuleSet,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Home {
    /// Clients that hold the block, or have left S without a message.
    holders: ModuleSet,
    /// The client in M.
    owner: Option<ModuleId>,
    transaction: Option<Transaction>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Slot<B: BlockData> {
    Client(Client<B>),
    Home(Home),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Message<B: BlockData> {
    /// Client to home: requests the block in this state. `holds`: the client is in S.
    Get { state: State, holds: bool },
    /// Client to home: writes bytes back, and leaves M.
    WriteBack { set: B::Set, data: B },
    /// Home to client: keep this state at most.
    Recall { keep: State },
    /// Client to home: the reply, with the bytes that memory lacks.
    Bytes { set: B::Set, data: B },
    /// Home to client: the block.
    Grant { state: State, data: B },
    /// Home to client: M for a block that it holds.
    Upgrade,
    /// Home to client: a write-back has arrived.
    Acknowledgment,
}

impl Protocol for Msi {
    type Types = ClientHomeTypes<Msi>;

    const FACTS: ProtocolFacts = ProtocolFacts {
        about: "Host memory cached in GPU memory: one writer or many readers of a block",
        promise: Promise::Ptx,
        directory: true,
        host: true,
        hierarchical: false,
        caches: |_, _| true,
        pages_may_move: |_| false,
        holds: |_| RetainedLines::Nothing,
        // The L2 above a client's memory writes back.
        choices: &[Choice::WriteBack],
    };

    const BREAKABLE: bool = true;

    fn options(&self) -> &ProtocolOptions {
        &self.0
    }

    fn acquire(&self, _: Sync) -> &'static [Phase] {
        &[]
    }

    fn release(&self, _: Sync) -> &'static [Phase] {
        &[]
    }
}

impl<B: BlockData> Client<B> {
    /// Brings the client's memory up to date with the L2.
    fn settle(&mut self, set: &B::Set) {
        self.data.merge(&self.l2, set);
        self.fresh.remove(set);
        self.dirty.add(set);
    }

    /// Leaves the block, but for a transaction under way.
    fn drop_block(&mut self) {
        *self = Client { wait: self.wait, ..Client::default() };
    }

    /// Reads bytes into the L2.
    fn raise(&mut self, set: &B::Set) {
        let lacking = set.without(&self.above);
        self.l2.merge(&self.data, &lacking);
        self.above.add(&lacking);
    }

    /// The bytes that host memory lacks, with their contents.
    fn written(&mut self) -> (B::Set, B) {
        self.settle(&self.fresh.clone());
        let set = mem::take(&mut self.dirty);
        let data = self.data.only(&set);
        (set, data)
    }

    fn request(&mut self, request: BlockRequest<B>, effects: &mut impl Effects<ClientHomeTypes<Msi>, B>) {
        let needed = if matches!(request, BlockRequest::Read { .. }) { State::S } else { State::M };
        let holds = self.state == State::S;
        if self.state == State::I || (holds && needed == State::M) {
            self.wait = Some(Wait::Block);
            effects.send(Node::Home, Message::Get { state: needed, holds });
            effects.hold(Hold::Park);
            return;
        }
        match request {
            BlockRequest::Read { set, .. } => {
                self.raise(&set);
                let data = self.l2.only(&set);
                effects.answer(Answer::Fill { set, data });
            }
            BlockRequest::Write { set, data, .. } => {
                self.l2.merge(&data, &set);
                self.above.add(&set);
                self.fresh.add(&set);
            }
            BlockRequest::Atomic { set, update, returns, .. } => {
                self.raise(&set);
                let data = self.l2.update(update, &set);
                self.fresh.add(&set);
                if returns {
                    effects.answer(Answer::Old { data });
                }
            }
        }
    }

    fn evict(&mut self, effects: &mut impl Effects<ClientHomeTypes<Msi>, B>) {
        match self.state {
            State::I => {}
            State::S => self.drop_block(),
            State::M => {
                // The home may recall the block before it has seen these bytes: they stay until the acknowledgment.
                self.settle(&self.fresh.clone());
                let (set, data) = (self.dirty.clone(), self.data.only(&self.dirty));
                self.wait = Some(Wait::Acknowledgment);
                effects.send(Node::Home, Message::WriteBack { set, data });
            }
        }
    }

    fn receive(
        &mut self,
        message: Message<B>,
        effects: &mut impl Effects<ClientHomeTypes<Msi>, B>,
    ) -> Result<(), Refusal> {
        match (message, self.wait) {
            (Message::Grant { state, data }, Some(Wait::Block)) => {
                *self = Client { state, data, ..Client::default() };
            }
            (Message::Upgrade, Some(Wait::Block)) if self.state == State::S => {
                (self.state, self.wait) = (State::M, None)
            }
            (Message::Acknowledgment, Some(Wait::Acknowledgment)) => *self = Client::default(),
            (Message::Recall { keep }, wait) => {
                let (set, data) = self.written();
                if keep == State::S && wait.is_none() && self.state == State::M {
                    self.state = State::S;
                } else {
                    self.drop_block();
                }
                effects.send(Node::Home, Message::Bytes { set, data });
            }
            _ => return Err(Refusal::Unexpected("a client did not wait for this message")),
        }
        Ok(())
    }
}

impl Home {
    fn receive<B: BlockData>(
        &mut self,
        from: ModuleId,
        message: Message<B>,
        effects: &mut impl Effects<ClientHomeTypes<Msi>, B>,
    ) -> Result<(), Refusal> {
        match (message, self.transaction) {
            (Message::Get { .. } | Message::WriteBack { .. }, Some(_)) => return Err(Refusal::Stall),
            (Message::Get { state, holds }, None) => {
                let upgrade = holds && self.holders.contains(from);
                // Without an upgrade the client has nothing: if it is named, it has left S without a message.
                self.holders.remove(from);
                let recalled = match state {
                    State::M => self.holders,
                    State::S | State::I => self.owner.into_iter().collect(),
                };
                let keep = if state == State::M { State::I } else { State::S };
                recalled.iter().for_each(|client| effects.send(Node::Client(client), Message::Recall { keep }));
                self.transaction = Some(Transaction { to: from, state, upgrade, recalled });
                self.proceed(effects);
            }
            (Message::WriteBack { set, data }, None) => {
                // A client that is no longer named has sent its bytes with its reply to a recall.
                if self.owner == Some(from) {
                    self.owner = None;
                    write(set, data, effects);
                }
                self.holders.remove(from);
                effects.send(Node::Client(from), Message::Acknowledgment);
            }
            (Message::Bytes { set, data }, Some(Transaction { state, .. })) => {
                write(set, data, effects);
                if self.owner == Some(from) {
                    self.owner = None;
                }
                if state == State::M {
                    self.holders.remove(from);
                }
                self.transaction.as_mut().expect("it is under way").recalled.remove(from);
                self.proceed(effects);
            }
            _ => return Err(Refusal::Unexpected("a home did not wait for this message")),
        }
        Ok(())
    }

    /// Continues the transaction when all recalled clients have answered.
    fn proceed<B: BlockData>(&mut self, effects: &mut impl Effects<ClientHomeTypes<Msi>, B>) {
        let Some(Transaction { to, upgrade, recalled, .. }) = self.transaction else { return };
        if !recalled.is_empty() {
            return;
        }
        if upgrade {
            self.grant();
            effects.send(Node::Client(to), Message::Upgrade);
        } else {
            effects.memory(HomeMemoryAccess::Read);
        }
    }

    /// Ends the transaction. Returns its client, and the client's new state.
    fn grant(&mut self) -> Option<(ModuleId, State)> {
        let Transaction { to, state, .. } = self.transaction.take()?;
        self.holders.add(to);
        if state == State::M {
            self.owner = Some(to);
        }
        Some((to, state))
    }
}

fn write<B: BlockData>(set: B::Set, data: B, effects: &mut impl Effects<ClientHomeTypes<Msi>, B>) {
    if !set.is_empty() {
        effects.memory(HomeMemoryAccess::Write { set, data });
    }
}

impl Nodes for Msi {
    type Slot<B: BlockData> = Slot<B>;
    type Message<B: BlockData> = Message<B>;
    type State = State;

    const STATES: &'static [State] = &[State::M, State::S, State::I];

    /// A recall never overtakes an earlier grant.
    const CHANNELS: Channels = Channels {
        request: Delivery::FifoPerRegion,
        down: Delivery::FifoPerRegion,
        answer: Delivery::Unordered,
        peer: Delivery::Unordered,
    };

    fn empty<B: BlockData>(at: Node) -> Slot<B> {
        match at {
            Node::Client(_) => Slot::Client(Client::default()),
            Node::Home => Slot::Home(Home::default()),
        }
    }

    fn step<B: BlockData>(
        &self,
        _: Node,
        slot: &mut Slot<B>,
        event: BlockEvent<Message<B>, B>,
        effects: &mut impl Effects<ClientHomeTypes<Msi>, B>,
    ) -> Result<(), Refusal> {
        match (slot, event) {
            (Slot::Client(client), BlockEvent::Request(_) | BlockEvent::Evict) if client.wait.is_some() => {
                return Err(Refusal::Stall);
            }
            (Slot::Client(client), BlockEvent::Request(request)) => client.request(request, effects),
            (Slot::Client(client), BlockEvent::Evict) => client.evict(effects),
            (Slot::Client(client), BlockEvent::EvictAbove(set)) => {
                client.settle(&set.within(&client.fresh));
                client.above.remove(&set);
            }
            // Nothing is ever merged: a block has one writer.
            (Slot::Client(_), BlockEvent::Merge { .. }) => {}
            (Slot::Client(client), BlockEvent::Message { message, .. }) => return client.receive(message, effects),
            (Slot::Home(home), BlockEvent::Message { from: Node::Client(from), message }) => {
                return home.receive(from, message, effects);
            }
            (Slot::Home(home), BlockEvent::Read(data)) => {
                let Some((to, state)) = home.grant() else {
                    return Err(Refusal::Unexpected("a home had not read its memory"));
                };
                effects.send(Node::Client(to), Message::Grant { state, data });
            }
            _ => return Err(Refusal::Unexpected("an event of another kind of node")),
        }
        Ok(())
    }

    fn class<B: BlockData>(message: &Message<B>) -> MessageClass {
        match message {
            Message::Get { .. } | Message::WriteBack { .. } => MessageClass::Request,
            Message::Bytes { .. } => MessageClass::Answer,
            Message::Recall { .. } | Message::Grant { .. } | Message::Upgrade | Message::Acknowledgment => {
                MessageClass::Down
            }
        }
    }

    fn carries<B: BlockData>(message: &Message<B>) -> Carried<'_, B::Set> {
        match message {
            Message::Grant { .. } => Carried::Block,
            Message::WriteBack { set, .. } | Message::Bytes { set, .. } if !set.is_empty() => Carried::Masked(set),
            _ => Carried::Nothing,
        }
    }

    fn only_notifies<B: BlockData>(_: &Message<B>) -> bool {
        false
    }

    fn is_busy<B: BlockData>(slot: &Slot<B>) -> bool {
        match slot {
            Slot::Client(client) => client.wait.is_some(),
            Slot::Home(home) => home.transaction.is_some(),
        }
    }

    fn owes<B: BlockData>(&self, _: &Slot<B>) -> bool {
        false
    }

    fn awaits_merges(&self) -> bool {
        false
    }

    fn evicts_silently<B: BlockData>(&self, slot: &Slot<B>) -> bool {
        Self::state(slot) == Some(State::S)
    }

    fn state<B: BlockData>(slot: &Slot<B>) -> Option<State> {
        client(slot).map(|client| client.state)
    }

    fn above<B: BlockData>(slot: &Slot<B>) -> Option<&B::Set> {
        client(slot).map(|client| &client.above)
    }

    fn fresh<B: BlockData>(slot: &Slot<B>) -> Option<&B::Set> {
        client(slot).map(|client| &client.fresh)
    }

    fn holds<B: BlockData>(slot: &Slot<B>) -> bool {
        client(slot).is_some_and(|client| client.state != State::I)
    }

    fn is_dirty<B: BlockData>(slot: &Slot<B>) -> bool {
        client(slot).is_some_and(|client| !client.dirty.is_empty() || !client.fresh.is_empty())
    }

    fn client_view<B: BlockData>(slot: &Slot<B>) -> ClientView<B::Set> {
        let Some(client) = client(slot) else { return ClientView::default() };
        let mut dirty = client.dirty.clone();
        dirty.add(&client.fresh);
        let writes = client.state == State::M;
        ClientView { holds: client.state != State::I, excludes: writes, owns: writes, dirty }
    }

    fn contents<B: BlockData>(slot: &Slot<B>) -> B {
        let Some(client) = client(slot) else { return B::default() };
        let mut data = client.data.clone();
        data.merge(&client.l2, &client.fresh);
        data
    }

    fn known<B: BlockData>(slot: &Slot<B>) -> HomeView {
        match slot {
            Slot::Client(_) => HomeView::default(),
            Slot::Home(home) => HomeView { holders: home.holders, owner: home.owner },
        }
    }
}

fn client<B: BlockData>(slot: &Slot<B>) -> Option<&Client<B>> {
    match slot {
        Slot::Client(client) => Some(client),
        Slot::Home(_) => None,
    }
}
