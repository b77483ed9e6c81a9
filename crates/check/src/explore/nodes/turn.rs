//! Requests of a client in their turn, as [`tombolo_protocol::host`] sees them.

use super::NodeMachine;
use super::state::{Asked, NodeState};
use std::collections::VecDeque;
use tombolo_protocol::Request;
use tombolo_protocol::host::{self, Arrival, Backlog, Backlogged, Resuming, Taken, Tried};
use tombolo_protocol::nodes::Nodes;

/// A resource that a request lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lack {
    /// A miss register.
    Register,
    /// A place: every block that has one has something under way.
    Place,
}

/// One client.
struct AtClient<'a, 'm, P: Nodes> {
    machine: &'a NodeMachine<'m, P>,
    state: &'a mut NodeState<P>,
    client: u8,
}

impl<P: Nodes> Backlogged for AtClient<'_, '_, P> {
    type Item = Asked;

    fn backlog(&mut self) -> &mut Backlog<Asked> {
        &mut self.state.backlogs[self.client as usize]
    }

    fn take(&mut self, asked: &Asked) -> bool {
        match self.machine.take_asked(self.state, self.client, asked, false) {
            Ok(()) => true,
            Err(Lack::Register) => false,
            Err(Lack::Place) => {
                let block = self.machine.block(asked.line);
                self.machine.await_place(self.state, self.client, block, VecDeque::from([*asked]));
                true
            }
        }
    }
}

/// A request that arrives, or runs again.
struct Arriving<'a, 'm, P: Nodes> {
    at: AtClient<'a, 'm, P>,
    asked: &'a Asked,
    again: bool,
}

impl<P: Nodes> Arriving<'_, '_, P> {
    fn index(&self) -> usize {
        self.at.machine.client_index(self.at.client, self.at.machine.block(self.asked.line))
    }
}

impl<P: Nodes> Arrival for Arriving<'_, '_, P> {
    type Lack = Lack;

    fn is_read(&self) -> bool {
        matches!(self.asked.request, Request::Read { .. })
    }

    // A client's stores go nowhere: none needs a credit.
    fn follows_waiting(&self) -> bool {
        false
    }

    fn has_credit(&self) -> bool {
        true
    }

    fn has_parked(&self) -> bool {
        // Those that are parked while one runs again came after it.
        !self.again && !self.at.state.held[self.index()].is_empty()
    }

    fn park(&mut self) {
        let index = self.index();
        self.at.state.held[index].push_back(*self.asked);
    }

    fn run(&mut self) -> Result<Tried, Lack> {
        let index = self.index();
        let AtClient { machine, state, client } = &mut self.at;
        if !P::is_busy(&state.slots[index]) {
            machine.make_room(state, *client, self.asked)?;
        }
        Ok(if machine.run_asked(state, *client, *self.asked) { Tried::Taken } else { Tried::Stalled })
    }
}

/// A block with nothing under way, whose parked requests run again.
struct Idle<'a, 'm, P: Nodes> {
    at: AtClient<'a, 'm, P>,
    block: usize,
    /// What the first that could not run lacks.
    lack: Option<Lack>,
    /// Requests that lack a register.
    queue: &'a mut VecDeque<Asked>,
}

impl<P: Nodes> Resuming for Idle<'_, '_, P> {
    type Held = ();
    type Item = Asked;

    // A merge waits until the block's requests have run.
    fn flush(&mut self, (): &mut ()) {}

    /// The first of the block; behind one that has started a transaction the others stay as they are.
    fn next_parked(&mut self, (): &mut ()) -> Option<Asked> {
        let index = self.at.machine.client_index(self.at.client, self.block);
        if P::is_busy(&self.at.state.slots[index]) { None } else { self.at.state.held[index].pop_front() }
    }

    fn keep_order(&self, _: &Asked, _: &Asked) -> bool {
        true
    }

    fn take(&mut self, asked: &Asked, _: bool) -> Option<Taken> {
        let AtClient { machine, state, client } = &mut self.at;
        match machine.take_asked(state, *client, asked, true) {
            Ok(()) => Some(Taken::Yes),
            Err(lack) => {
                self.lack = Some(lack);
                None
            }
        }
    }

    fn wait_first(&mut self, _: VecDeque<Asked>) {
        unreachable!("a client's requests need no credit");
    }

    fn defer(&mut self, deferred: VecDeque<Asked>) {
        match self.lack.expect("a request is deferred for what it lacks") {
            Lack::Register => self.queue.extend(deferred),
            Lack::Place => self.at.machine.await_place(self.at.state, self.at.client, self.block, deferred),
        }
    }
}

impl<P: Nodes> NodeMachine<'_, P> {
    /// A request of its own SMs arrives at a client.
    pub(super) fn offer(&self, state: &mut NodeState<P>, client: u8, asked: Asked) {
        host::offer(&mut AtClient { machine: self, state, client }, asked);
    }

    /// A client takes a request in its turn; `again`: one that has waited there.
    fn take_asked(&self, state: &mut NodeState<P>, client: u8, asked: &Asked, again: bool) -> Result<(), Lack> {
        let at = AtClient { machine: self, state, client };
        match host::take(&self.protocol, &mut Arriving { at, asked, again })? {
            Taken::Yes => Ok(()),
            Taken::Waits => unreachable!("a client's requests need no credit"),
        }
    }

    /// Sees to it that a request finds a register, if it needs one, and a place.
    fn make_room(&self, state: &mut NodeState<P>, client: u8, asked: &Asked) -> Result<(), Lack> {
        let Some(room) = self.config.room else { return Ok(()) };
        let of_client = |bits: u64| bits >> self.client_index(client, 0) & ((1 << self.blocks) - 1);
        if of_client(state.asks).count_ones() >= u32::from(room.registers) && self.must_ask(state, client, asked) {
            return Err(Lack::Register);
        }
        let (Some(ways), block) = (room.ways, self.block(asked.line)) else { return Ok(()) };
        let places = of_client(state.places);
        if places >> block & 1 == 0 && places.count_ones() >= u32::from(ways) {
            let is_idle = |other: &usize| {
                let index = self.client_index(client, *other);
                places >> other & 1 != 0 && !P::is_busy(&state.slots[index]) && state.held[index].is_empty()
            };
            let victim = (0..self.blocks).find(is_idle).ok_or(Lack::Place)?;
            self.evict(state, client, victim);
        }
        state.places |= 1 << self.client_index(client, block);
        Ok(())
    }

    /// Requests of a block, all that wait for it, wait for a place.
    fn await_place(&self, state: &mut NodeState<P>, client: u8, block: usize, requests: VecDeque<Asked>) {
        state.held[self.client_index(client, block)].extend(requests);
        state.crowded[client as usize].push_back(block as u8);
    }

    /// What follows at a client from a block whose transaction may be over: requests that waited run.
    pub(super) fn settle_block(&self, state: &mut NodeState<P>, client: u8, block: usize) {
        let index = self.client_index(client, block);
        if !P::is_busy(&state.slots[index]) {
            state.asks &= !(1 << index);
            if !state.crowded[client as usize].contains(&(block as u8)) {
                self.resume(state, client, [block as u8]);
            }
        }
        self.leave_if_gone(state, client, block);
        host::serve(&mut AtClient { machine: self, state, client });
    }

    /// A block of which a client has nothing leaves its place. Those that waited for one try again.
    pub(super) fn leave_if_gone(&self, state: &mut NodeState<P>, client: u8, block: usize) {
        let index = self.client_index(client, block);
        if P::is_busy(&state.slots[index]) {
            return;
        }
        if !P::holds(&state.slots[index]) && state.held[index].is_empty() {
            state.places &= !(1 << index);
        }
        let crowded = std::mem::take(&mut state.crowded[client as usize]);
        self.resume(state, client, crowded);
    }

    /// The parked requests of blocks run again, block by block.
    fn resume(&self, state: &mut NodeState<P>, client: u8, blocks: impl IntoIterator<Item = u8>) {
        let mut queue = VecDeque::new();
        for block in blocks {
            let at = AtClient { machine: self, state, client };
            host::resume(&mut Idle { at, block: block as usize, lack: None, queue: &mut queue }, ());
        }
        state.backlogs[client as usize].defer(&self.protocol, queue.into_iter());
    }
}
