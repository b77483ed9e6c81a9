//! Ordered service for a client's requests, implemented by [`tombolo_protocol::host`].

use super::NodeMachine;
use super::state::{ClientRequest, NodeState};
use std::collections::VecDeque;
use tombolo_protocol::Request;
use tombolo_protocol::client_home::Nodes;
use tombolo_protocol::host::{self, Admission, Arrival, Backlog, DeferringL2, MissCompletion, StepOutcome};

/// A resource that a request lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MissingResource {
    /// A miss register.
    Register,
    /// A way: every block that occupies a way is busy.
    Way,
}

/// A single client.
struct ClientHost<'a, 'm, P: Nodes> {
    machine: &'a NodeMachine<'m, P>,
    state: &'a mut NodeState<P>,
    client: u8,
}

impl<P: Nodes> DeferringL2 for ClientHost<'_, '_, P> {
    type Item = ClientRequest;

    fn backlog(&mut self) -> &mut Backlog<ClientRequest> {
        &mut self.state.backlogs[self.client as usize]
    }

    fn take(&mut self, asked: &ClientRequest) -> bool {
        match self.machine.serve_request(self.state, self.client, asked, false) {
            Ok(()) => true,
            Err(MissingResource::Register) => false,
            Err(MissingResource::Way) => {
                let block = self.machine.block(asked.line);
                self.machine.await_way(self.state, self.client, block, VecDeque::from([*asked]));
                true
            }
        }
    }
}

/// A request that arrives, or is retried.
struct ClientArrival<'a, 'm, P: Nodes> {
    at: ClientHost<'a, 'm, P>,
    asked: &'a ClientRequest,
    again: bool,
}

impl<P: Nodes> ClientArrival<'_, '_, P> {
    fn index(&self) -> usize {
        self.at.machine.client_index(self.at.client, self.at.machine.block(self.asked.line))
    }
}

impl<P: Nodes> Arrival for ClientArrival<'_, '_, P> {
    type MissingResource = MissingResource;

    fn is_read(&self) -> bool {
        matches!(self.asked.request, Request::Read { .. })
    }

    // A client's stores travel no further, therefore none needs a credit.
    fn follows_waiting(&self) -> bool {
        false
    }

    fn has_credit(&self) -> bool {
        true
    }

    fn has_parked(&self) -> bool {
        // Requests parked behind a retried request arrived later.
        !self.again && !self.at.state.held[self.index()].is_empty()
    }

    fn park(&mut self) {
        let index = self.index();
        self.at.state.held[index].push_back(*self.asked);
    }

    fn run(&mut self) -> Result<StepOutcome, MissingResource> {
        let index = self.index();
        let ClientHost { machine, state, client } = &mut self.at;
        if !P::is_busy(&state.slots[index]) {
            machine.make_room(state, *client, self.asked)?;
        }
        Ok(if machine.run_request(state, *client, *self.asked) { StepOutcome::Accepted } else { StepOutcome::Stalled })
    }
}

/// An idle block, with parked requests to retry.
struct IdleBlock<'a, 'm, P: Nodes> {
    at: ClientHost<'a, 'm, P>,
    block: usize,
    /// The resource missing for the first request that could not run.
    lack: Option<MissingResource>,
    /// Requests that lack a register.
    queue: &'a mut VecDeque<ClientRequest>,
}

impl<P: Nodes> MissCompletion for IdleBlock<'_, '_, P> {
    type Detached = ();
    type Item = ClientRequest;

    // A merge waits until the block's requests have run.
    fn flush(&mut self, (): &mut ()) {}

    /// Next parked request of the block; if an earlier request has started a transaction, the remaining ones stay
    /// parked.
    fn next_parked(&mut self, (): &mut ()) -> Option<ClientRequest> {
        let index = self.at.machine.client_index(self.at.client, self.block);
        if P::is_busy(&self.at.state.slots[index]) { None } else { self.at.state.held[index].pop_front() }
    }

    fn keep_order(&self, _: &ClientRequest, _: &ClientRequest) -> bool {
        true
    }

    fn take(&mut self, asked: &ClientRequest, _: bool) -> Option<Admission> {
        let ClientHost { machine, state, client } = &mut self.at;
        match machine.serve_request(state, *client, asked, true) {
            Ok(()) => Some(Admission::Admitted),
            Err(lack) => {
                self.lack = Some(lack);
                None
            }
        }
    }

    fn wait_first(&mut self, _: VecDeque<ClientRequest>) {
        unreachable!("a client's requests need no credit");
    }

    fn defer(&mut self, deferred: VecDeque<ClientRequest>) {
        match self.lack.expect("a request is deferred for what it lacks") {
            MissingResource::Register => self.queue.extend(deferred),
            MissingResource::Way => self.at.machine.await_way(self.at.state, self.at.client, self.block, deferred),
        }
    }
}

impl<P: Nodes> NodeMachine<'_, P> {
    /// A request from the client's own SMs arrives. Requests without a register wait in the client's backlog.
    pub(super) fn offer(&self, state: &mut NodeState<P>, client: u8, asked: ClientRequest) {
        host::offer(&mut ClientHost { machine: self, state, client }, asked);
    }

    /// A client serves a request in order; `again` is set on retry.
    fn serve_request(
        &self,
        state: &mut NodeState<P>,
        client: u8,
        asked: &ClientRequest,
        again: bool,
    ) -> Result<(), MissingResource> {
        let at = ClientHost { machine: self, state, client };
        match host::take(&self.protocol, &mut ClientArrival { at, asked, again })? {
            Admission::Admitted => Ok(()),
            Admission::AwaitsCredit => unreachable!("a client's requests need no credit"),
        }
    }

    /// Ensures that a request finds a register, if required, and a way.
    fn make_room(&self, state: &mut NodeState<P>, client: u8, asked: &ClientRequest) -> Result<(), MissingResource> {
        let Some(room) = self.config.room else { return Ok(()) };
        let of_client = |bits: u64| bits >> self.client_index(client, 0) & ((1 << self.blocks) - 1);
        if of_client(state.outstanding).count_ones() >= u32::from(room.registers)
            && self.starts_transaction(state, client, asked)
        {
            return Err(MissingResource::Register);
        }
        let (Some(ways), block) = (room.ways, self.block(asked.line)) else { return Ok(()) };
        let occupied_ways = of_client(state.occupied_ways);
        if occupied_ways >> block & 1 == 0 && occupied_ways.count_ones() >= u32::from(ways) {
            let is_idle = |other: &usize| {
                let index = self.client_index(client, *other);
                occupied_ways >> other & 1 != 0 && !P::is_busy(&state.slots[index]) && state.held[index].is_empty()
            };
            let victim = (0..self.blocks).find(is_idle).ok_or(MissingResource::Way)?;
            self.evict(state, client, victim);
        }
        state.occupied_ways |= 1 << self.client_index(client, block);
        Ok(())
    }

    /// Lets all waiting requests for a block wait for a way.
    fn await_way(&self, state: &mut NodeState<P>, client: u8, block: usize, requests: VecDeque<ClientRequest>) {
        state.held[self.client_index(client, block)].extend(requests);
        state.awaiting_way[client as usize].push_back(block as u8);
    }

    /// Continues after a block's transaction may have ended: waiting requests run.
    pub(super) fn settle_block(&self, state: &mut NodeState<P>, client: u8, block: usize) {
        let index = self.client_index(client, block);
        if !P::is_busy(&state.slots[index]) {
            state.outstanding &= !(1 << index);
            if !state.awaiting_way[client as usize].contains(&(block as u8)) {
                self.resume(state, client, [block as u8]);
            }
        }
        self.leave_if_gone(state, client, block);
        host::serve(&mut ClientHost { machine: self, state, client });
    }

    /// A block without any data at a client frees its way. Requests waiting for a way are retried.
    pub(super) fn leave_if_gone(&self, state: &mut NodeState<P>, client: u8, block: usize) {
        let index = self.client_index(client, block);
        if P::is_busy(&state.slots[index]) {
            return;
        }
        if !P::holds(&state.slots[index]) && state.held[index].is_empty() {
            state.occupied_ways &= !(1 << index);
        }
        let awaiting_way = std::mem::take(&mut state.awaiting_way[client as usize]);
        self.resume(state, client, awaiting_way);
    }

    /// Retries the parked requests of several blocks, block by block. Requests that still lack a register return to the
    /// backlog.
    fn resume(&self, state: &mut NodeState<P>, client: u8, blocks: impl IntoIterator<Item = u8>) {
        let mut queue = VecDeque::new();
        for block in blocks {
            let at = ClientHost { machine: self, state, client };
            host::resume(&mut IdleBlock { at, block: block as usize, lack: None, queue: &mut queue }, ());
        }
        state.backlogs[client as usize].defer(&self.protocol, queue.into_iter());
    }
}
