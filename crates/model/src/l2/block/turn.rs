//! Request scheduling at a client, implemented on [`tombolo_protocol::host`]: requests run, wait for a transaction on
//! their block, or queue for an MSHR or a frame.

use super::frames::FrameAllocation;
use super::{Block, BlockDesign, BlockSlice};
use crate::message::LineRequest;
use crate::module::context::SliceContext;
use crate::observe::value_probe::Contents;
use std::collections::VecDeque;
use tombolo_protocol::client_home::Nodes;
use tombolo_protocol::coherence;
use tombolo_protocol::host::{self, Admission, Arrival, Backlog, DeferringL2, MissCompletion, StepOutcome};
use tombolo_types::ModuleId;

/// Resource that a stalled request needs before execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MissingResource {
    /// An MSHR.
    Register,
    /// A frame in this set: every block in it has a transaction in flight or parked requests.
    Place(u64),
}

/// Slice together with the current event's context.
struct ClientWithContext<'s, 'a, 'o, N: Nodes, D: Contents> {
    slice: &'s mut BlockSlice<N, D>,
    context: &'s mut SliceContext<'a, 'o, BlockDesign<N>, D>,
}

impl<N: Nodes, D: Contents> DeferringL2 for ClientWithContext<'_, '_, '_, N, D> {
    type Item = LineRequest<D>;

    fn backlog(&mut self) -> &mut Backlog<LineRequest<D>> {
        &mut self.slice.client.queue
    }

    fn take(&mut self, body: &LineRequest<D>) -> bool {
        let block = self.slice.geometry.block(body.line);
        match self.slice.take(block, body, None, self.context) {
            Ok(()) => true,
            Err(MissingResource::Register) => false,
            Err(MissingResource::Place(set)) => {
                self.slice.await_place(block, set, VecDeque::from([*body]));
                true
            }
        }
    }
}

/// Request that arrives at the client, or is retried after a wait.
struct RequestAttempt<'s, 'a, 'o, N: Nodes, D: Contents> {
    at: ClientWithContext<'s, 'a, 'o, N, D>,
    block: Block,
    body: &'s LineRequest<D>,
    /// On a retry: the module that caused the wait.
    by: Option<ModuleId>,
}

impl<N: Nodes, D: Contents> Arrival for RequestAttempt<'_, '_, '_, N, D> {
    type MissingResource = MissingResource;

    fn is_read(&self) -> bool {
        matches!(self.body.request, coherence::Request::Read { .. })
    }

    // Client stores are not forwarded, so they need no credit.
    fn follows_waiting(&self) -> bool {
        false
    }

    fn has_credit(&self) -> bool {
        true
    }

    fn has_parked(&self) -> bool {
        // During a retry, parked requests are younger than the current request.
        self.by.is_none() && self.at.slice.client.blocks.get(&self.block).is_some_and(|cell| !cell.parked.is_empty())
    }

    fn park(&mut self) {
        self.at.slice.client.cell(self.block).parked.push_back(*self.body);
    }

    fn run(&mut self) -> Result<StepOutcome, MissingResource> {
        let ClientWithContext { slice, context } = &mut self.at;
        if N::is_busy(&slice.client.cell(self.block).slot) {
            return Ok(StepOutcome::Stalled);
        }
        if slice.client.outstanding >= slice.client.most_outstanding && slice.needs_home(self.block, self.body, context)
        {
            return Err(MissingResource::Register);
        }
        match slice.place(self.block, context) {
            FrameAllocation::Here => {
                slice.run(self.body, self.by.unwrap_or(context.config.module), context);
                Ok(StepOutcome::Accepted)
            }
            FrameAllocation::Crowded(set) => Err(MissingResource::Place(set)),
        }
    }
}

/// Block without a transaction in flight, whose parked requests are retried.
struct IdleBlock<'s, 'a, 'o, N: Nodes, D: Contents> {
    at: ClientWithContext<'s, 'a, 'o, N, D>,
    block: Block,
    /// Module that caused the wait.
    by: ModuleId,
    /// Resource missing for the first request that could not run.
    lack: Option<MissingResource>,
    /// Requests without a free MSHR, collected during the retry and queued afterwards.
    queue: &'s mut VecDeque<LineRequest<D>>,
}

impl<N: Nodes, D: Contents> MissCompletion for IdleBlock<'_, '_, '_, N, D> {
    type Detached = ();
    type Item = LineRequest<D>;

    // A merge waits until the block's parked requests have run.
    fn flush(&mut self, (): &mut ()) {}

    /// Oldest parked request; none if an earlier retry has started a transaction: younger requests stay parked then.
    fn next_parked(&mut self, (): &mut ()) -> Option<LineRequest<D>> {
        let cell = self.at.slice.client.cell(self.block);
        if N::is_busy(&cell.slot) { None } else { cell.parked.pop_front() }
    }

    fn keep_order(&self, _: &LineRequest<D>, _: &LineRequest<D>) -> bool {
        true
    }

    fn take(&mut self, body: &LineRequest<D>, _: bool) -> Option<Admission> {
        let ClientWithContext { slice, context } = &mut self.at;
        match slice.take(self.block, body, Some(self.by), context) {
            Ok(()) => Some(Admission::Admitted),
            Err(lack) => {
                self.lack = Some(lack);
                None
            }
        }
    }

    fn wait_first(&mut self, _: VecDeque<LineRequest<D>>) {
        unreachable!("a client's requests need no credit");
    }

    fn defer(&mut self, deferred: VecDeque<LineRequest<D>>) {
        match self.lack.expect("a request is deferred for what it lacks") {
            MissingResource::Register => self.queue.extend(deferred),
            MissingResource::Place(set) => self.at.slice.await_place(self.block, set, deferred),
        }
    }
}

impl<N: Nodes, D: Contents> BlockSlice<N, D> {
    /// Accepts a request from this module's SMs, or from the host's core.
    pub(super) fn offer(&mut self, body: LineRequest<D>, here: &mut SliceContext<'_, '_, BlockDesign<N>, D>) {
        if host::offer(&mut ClientWithContext { slice: self, context: here }, body) {
            here.shared.stats.queued += 1;
        }
    }

    /// Retries the queued requests, in order, while an MSHR is free.
    pub(super) fn serve(&mut self, here: &mut SliceContext<'_, '_, BlockDesign<N>, D>) {
        host::serve(&mut ClientWithContext { slice: self, context: here });
    }

    /// Runs a request, or parks the request at its block. `by`: on a retry, the module that caused the wait.
    fn take(
        &mut self,
        block: Block,
        body: &LineRequest<D>,
        by: Option<ModuleId>,
        here: &mut SliceContext<'_, '_, BlockDesign<N>, D>,
    ) -> Result<(), MissingResource> {
        let config = here.config;
        let at = ClientWithContext { slice: self, context: here };
        match host::take(&config.protocol, &mut RequestAttempt { at, block, body, by })? {
            Admission::Admitted => Ok(()),
            Admission::AwaitsCredit => unreachable!("a client's requests need no credit"),
        }
    }

    /// Parks all waiting requests for a block until a frame in `set` is free.
    fn await_place(&mut self, block: Block, set: u64, requests: VecDeque<LineRequest<D>>) {
        let cell = self.client.cell(block);
        cell.parked.extend(requests);
        cell.is_crowded_out = true;
        self.client.crowded.entry(set).or_default().push_back(block);
    }

    /// Retries the parked requests of an idle block. If the block still waits for a frame, its requests stay parked.
    pub(super) fn resume(&mut self, block: Block, here: &mut SliceContext<'_, '_, BlockDesign<N>, D>) {
        if !self.client.cell(block).is_crowded_out {
            let mut queue = VecDeque::new();
            self.resume_into(block, &mut queue, here);
            self.client.queue.defer(&here.config.protocol, queue.into_iter());
        }
    }

    /// Retries blocks that wait for a frame in `set`, in arrival order, after a frame may have become free.
    pub(super) fn resume_crowded(&mut self, set: u64, here: &mut SliceContext<'_, '_, BlockDesign<N>, D>) {
        let Some(crowded) = self.client.crowded.remove(&set) else { return };
        let mut queue = VecDeque::new();
        for block in crowded {
            self.client.cell(block).is_crowded_out = false;
            self.resume_into(block, &mut queue, here);
        }
        self.client.queue.defer(&here.config.protocol, queue.into_iter());
    }

    fn resume_into(
        &mut self,
        block: Block,
        queue: &mut VecDeque<LineRequest<D>>,
        here: &mut SliceContext<'_, '_, BlockDesign<N>, D>,
    ) {
        let by = self.client.cell(block).by.unwrap_or(here.config.module);
        let at = ClientWithContext { slice: self, context: here };
        host::resume(&mut IdleBlock { at, block, by, lack: None, queue }, ());
    }
}
