//! The explorer's L1 and L2 state, as hosts for [`tombolo_protocol::host`].

use super::l2::CurrentRequest;
use super::machine::Machine;
use super::state::{HeldRequest, HoldReason, L1Slot, MachineState, PostedRequest, RegisterState, ThreadSet};
use super::values::{Values, mask_of};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::vec::IntoIter;
use tombolo_protocol::coherence;
use tombolo_protocol::drain::Wait;
use tombolo_protocol::host::{
    Admission, Arrival, AwaitingRead, Bulk, FillTarget, MissCompletion, Region, StepOutcome, WriteBack,
};
use tombolo_protocol::{ClassSet, Coherence, L2Event, Pending, Protocol, Refusal, Request, l1};
use tombolo_types::{Line, Mask, ModuleId, Scope};

/// A line at an L2.
pub(super) struct L2Line<'a, 'm, P> {
    pub(super) machine: &'a Machine<'m, P>,
    pub(super) state: &'a mut MachineState,
    pub(super) at: ModuleId,
    pub(super) line: u8,
}

impl<P: Coherence> L2Line<'_, '_, P> {
    fn is_here(&self, held: &HeldRequest) -> bool {
        held.module == self.at && held.line == self.line
    }

    fn hold(&mut self, held: HeldRequest) {
        self.state.held.push(held);
    }

    fn try_step(&mut self, event: L2Event<Values>, hand: Option<CurrentRequest>) -> StepOutcome {
        match self.machine.step(self.state, self.at, self.line, event, hand) {
            Err(Refusal::Stall) => StepOutcome::Stalled,
            Ok(()) | Err(Refusal::Unexpected(_)) => StepOutcome::Accepted,
        }
    }

    fn must_step(&mut self, event: L2Event<Values>, hand: Option<CurrentRequest>) {
        self.machine.must_step(self.state, self.at, self.line, event, hand);
    }
}

/// A request that arrives at an L2.
pub(super) struct L2Arrival<'a, 'm, P> {
    pub(super) l2: L2Line<'a, 'm, P>,
    pub(super) hand: CurrentRequest,
}

impl<P: Coherence> Arrival for L2Arrival<'_, '_, P> {
    type MissingResource = Infallible;

    fn is_read(&self) -> bool {
        matches!(self.hand.posted.request, Request::Read { .. })
    }

    // A store without a credit stays in the channel, and its followers with it: see `Machine::overtakes`.
    fn follows_waiting(&self) -> bool {
        false
    }

    fn has_credit(&self) -> bool {
        true
    }

    fn has_parked(&self) -> bool {
        let L2Line { machine, at, line, .. } = self.l2;
        let from = machine.requester(at, self.hand.source);
        if coherence::bypasses_l2(&machine.protocol, at, machine.homes_now(self.l2.state, at, line), from) {
            return false;
        }
        let parked = |held: &HeldRequest| self.l2.is_here(held) && matches!(held.how, HoldReason::Park(_));
        self.l2.state.held.iter().any(parked)
    }

    fn park(&mut self) {
        let L2Line { at: module, line, .. } = self.l2;
        let CurrentRequest { source, posted } = self.hand;
        self.l2.hold(HeldRequest { module, line, source, how: HoldReason::Park(posted) });
    }

    fn run(&mut self) -> Result<StepOutcome, Infallible> {
        let CurrentRequest { source, posted } = self.hand;
        let L2Line { machine, at, line, .. } = self.l2;
        let from = machine.requester(at, source);
        let held = self.l2.state.held.len();
        let tried = self.l2.try_step(L2Event::Request { from, request: posted.request }, Some(self.hand));
        // A request that waits for its line's fill runs again.
        if tried == StepOutcome::Accepted && self.l2.state.held.len() == held {
            machine.note_taken(self.l2.state, at, line, &self.hand);
        }
        Ok(tried)
    }
}

/// A read held at an L2.
#[derive(Clone, Copy)]
pub(super) struct WaitingRead {
    held: HeldRequest,
    mask: Mask,
}

impl AwaitingRead for WaitingRead {
    fn mask(&self) -> Mask {
        self.mask
    }

    fn for_bytes(self, mask: Mask) -> WaitingRead {
        WaitingRead { mask, ..self }
    }
}

/// Miss data arriving at an L2.
pub(super) struct L2Fill<'a, 'm, P> {
    pub(super) l2: L2Line<'a, 'm, P>,
    pub(super) mask: Mask,
    pub(super) data: Values,
}

/// Requests held at an L2: waiting reads, releases that write the line back, parked requests.
pub(super) struct L2HeldRequests {
    waiting: IntoIter<WaitingRead>,
    flushes: Vec<ThreadSet>,
    parked: IntoIter<CurrentRequest>,
}

impl<P: Coherence> FillTarget for L2Fill<'_, '_, P> {
    type Waiter = WaitingRead;
    type Detached = L2HeldRequests;

    fn install(&mut self) -> bool {
        self.l2.must_step(L2Event::Fill { mask: self.mask, data: self.data }, None);
        self.l2.state.l2[self.l2.machine.l2_index(self.l2.at, self.l2.line)].pending.is_none()
    }

    fn release(&mut self, over: bool) -> L2HeldRequests {
        let (mut waiting, mut flushes, mut parked) = (Vec::new(), Vec::new(), Vec::new());
        let (at, line) = (self.l2.at, self.l2.line);
        self.l2.state.held.retain(|&held| {
            if held.module != at || held.line != line {
                return true;
            }
            match held.how {
                HoldReason::Wait(mask) => waiting.push(WaitingRead { held, mask }),
                HoldReason::Flush(threads) if over => flushes.push(threads),
                HoldReason::Park(posted) if over => parked.push(CurrentRequest { source: held.source, posted }),
                HoldReason::Flush(_) | HoldReason::Park(_) => return true,
            }
            false
        });
        L2HeldRequests { waiting: waiting.into_iter(), flushes, parked: parked.into_iter() }
    }

    fn next_waiter(&mut self, held: &mut L2HeldRequests) -> Option<WaitingRead> {
        held.waiting.next()
    }

    fn serve(&mut self, WaitingRead { held, mask }: WaitingRead, _: bool) {
        let from = self.l2.machine.requester(self.l2.at, held.source);
        let request = Request::Read { mask, scope: Scope::Cta };
        let hand = CurrentRequest {
            source: held.source,
            posted: PostedRequest { request, result: None, passed: None, watched: 0, published: false },
        };
        self.l2.must_step(L2Event::Serve { from, mask, data: self.data }, Some(hand));
    }

    fn wait(&mut self, WaitingRead { held, mask }: WaitingRead) {
        self.l2.hold(HeldRequest { how: HoldReason::Wait(mask), ..held });
    }
}

impl<P: Coherence> MissCompletion for L2Line<'_, '_, P> {
    type Detached = L2HeldRequests;
    type Item = CurrentRequest;

    fn flush(&mut self, held: &mut L2HeldRequests) {
        for threads in std::mem::take(&mut held.flushes) {
            self.machine.flush_line(self.state, self.at, self.line, threads);
        }
    }

    fn next_parked(&mut self, held: &mut L2HeldRequests) -> Option<CurrentRequest> {
        held.parked.next()
    }

    fn keep_order(&self, one: &CurrentRequest, other: &CurrentRequest) -> bool {
        one.source == other.source
    }

    fn take(&mut self, hand: &CurrentRequest, _: bool) -> Option<Admission> {
        self.machine.take_posted(self.state, self.at, self.line, hand.source, hand.posted);
        Some(Admission::Admitted)
    }

    fn wait_first(&mut self, _: VecDeque<CurrentRequest>) {
        unreachable!("a request that has arrived has its credit");
    }

    fn defer(&mut self, _: VecDeque<CurrentRequest>) {
        unreachable!("nothing is lacking here: queues are the timing model's");
    }
}

impl<P: Coherence> Region for L2Line<'_, '_, P> {
    fn step(&mut self) {
        self.must_step(L2Event::InvalidateRegion, None);
    }

    fn drop_line(&mut self, line: Line) {
        let line = line.0 as u8;
        if self.state.l2[self.machine.l2_index(self.at, line)].line.is_some() {
            self.machine.must_step(self.state, self.at, line, L2Event::InvalidateLine, None);
        }
    }
}

/// A region with a directory entry under replacement at an L2.
pub(super) struct EntryReplacement<'a, 'm, P>(pub(super) L2Line<'a, 'm, P>);

impl<P: Coherence> Region for EntryReplacement<'_, '_, P> {
    fn step(&mut self) {
        self.0.must_step(L2Event::ReplaceEntry, None);
    }

    fn drop_line(&mut self, line: Line) {
        let L2Line { machine, at, .. } = self.0;
        // A line with a pending miss stays.
        machine.evict(self.0.state, at, line.0 as u8);
    }
}

/// The lines in certain classes at an L2.
pub(super) struct L2Classes<'a, 'm, P> {
    pub(super) machine: &'a Machine<'m, P>,
    pub(super) state: &'a mut MachineState,
    pub(super) at: ModuleId,
    pub(super) classes: ClassSet,
}

impl<P: Coherence> L2Classes<'_, '_, P> {
    fn lines(&self) -> impl Iterator<Item = u8> + use<P> {
        let (machine, at, classes) = (self.machine, self.at, self.classes);
        let meant: Vec<u8> =
            (0..machine.scene.lines as u8).filter(|&line| classes.contains(machine.class(at, line))).collect();
        meant.into_iter()
    }
}

impl<P: Coherence> Bulk for L2Classes<'_, '_, P> {
    fn drop_lines(&mut self) {
        for line in self.lines() {
            let (machine, at) = (self.machine, self.at);
            L2Line { machine, state: self.state, at, line }.drop_line(Line(u64::from(line)));
        }
    }

    fn each_miss(&mut self, mut change: impl FnMut(&mut Pending)) {
        for line in self.lines() {
            let index = self.machine.l2_index(self.at, line);
            self.state.l2[index].pending.iter_mut().for_each(&mut change);
        }
    }
}

/// A line at an L2 that the releases by some threads write back.
pub(super) struct L2Flush<'a, 'm, P> {
    pub(super) l2: L2Line<'a, 'm, P>,
    pub(super) threads: ThreadSet,
}

impl<P: Coherence> WriteBack for L2Flush<'_, '_, P> {
    fn write_back(&mut self) -> StepOutcome {
        let tried = self.l2.try_step(L2Event::Flush, None);
        if tried == StepOutcome::Accepted {
            let wait = Wait::WrittenBack { at: self.l2.at, line: u64::from(self.l2.line) };
            self.l2.machine.wait(self.l2.state, self.threads, wait);
        }
        tried
    }

    fn write_back_later(&mut self) {
        let L2Line { at: module, line, .. } = self.l2;
        let source = super::state::RequestSource::Module(module);
        self.l2.hold(HeldRequest { module, line, source, how: HoldReason::Flush(self.threads) });
    }
}

/// The slots of an L1.
pub(super) struct L1Slots<'a>(pub(super) &'a mut [L1Slot]);

impl Bulk for L1Slots<'_> {
    fn drop_lines(&mut self) {
        self.0.iter_mut().for_each(|slot| slot.line = None);
    }

    fn each_miss(&mut self, mut change: impl FnMut(&mut Pending)) {
        for slot in self.0.iter_mut() {
            slot.pending.iter_mut().for_each(|pending| change(&mut pending.miss));
        }
    }
}

/// A register that waits for a cell in a line.
#[derive(Clone, Copy)]
pub(super) struct WaitingRegister {
    register: usize,
    cell: u8,
}

impl AwaitingRead for WaitingRegister {
    fn mask(&self) -> Mask {
        mask_of(self.cell)
    }

    fn for_bytes(self, _: Mask) -> WaitingRegister {
        self
    }
}

/// Miss data arriving at an L1.
pub(super) struct L1Fill<'a, P> {
    pub(super) protocol: &'a P,
    pub(super) slot: &'a mut L1Slot,
    pub(super) registers: &'a mut [RegisterState],
    /// Registers in the SM with a pending load from the line.
    pub(super) waiting: Vec<WaitingRegister>,
    pub(super) pending: l1::L1Pending,
    pub(super) mask: Mask,
    pub(super) data: Values,
}

impl WaitingRegister {
    pub(super) fn new(register: usize, cell: u8) -> WaitingRegister {
        WaitingRegister { register, cell }
    }
}

impl<P: Protocol> FillTarget for L1Fill<'_, P> {
    type Waiter = WaitingRegister;
    type Detached = IntoIter<WaitingRegister>;

    fn install(&mut self) -> bool {
        self.slot.pending = l1::fill(self.protocol, &mut self.slot.line, self.pending, self.mask, self.data);
        self.slot.pending.is_none()
    }

    fn release(&mut self, _: bool) -> IntoIter<WaitingRegister> {
        std::mem::take(&mut self.waiting).into_iter()
    }

    fn next_waiter(&mut self, held: &mut IntoIter<WaitingRegister>) -> Option<WaitingRegister> {
        held.next()
    }

    fn serve(&mut self, WaitingRegister { register, cell }: WaitingRegister, _: bool) {
        self.registers[register] = RegisterState { value: self.data.0[cell as usize], awaits: None };
    }

    fn wait(&mut self, _: WaitingRegister) {
        // The register's state still records the awaited cell.
    }
}
