//! Stages of memory instructions: the actions and waits defined in the protocol's front end, in order.

use super::Sm;
use super::issue::Progress;
use super::warp::WaitReason;
use crate::l2::posted::Drainer;
use crate::message::{Message, Out, SyncKind};
use crate::module::context::SmContext;
use crate::observe::stall::Stall;
use crate::observe::value_probe::{Contents, ValueProbe};
use tombolo_protocol::front::{self, Stage, ThreadOperation};
use tombolo_protocol::l1;
use tombolo_types::stream::{AtomicResult, Op};
use tombolo_types::{Order, Ps, Scope};

impl<D: Contents> Sm<D> {
    /// Runs the current instruction `op` until it completes or blocks.
    #[inline]
    pub(super) fn memory_instruction(&mut self, slot: usize, op: Op, here: &mut SmContext<'_, '_, D>) -> Progress {
        let (operation, order) = describe(op);
        if front::only_issues(operation, order) {
            return self.access(slot, op, order.scope, here);
        }
        self.run_stages(slot, op, here)
    }

    /// Runs an instruction's remaining stages until it completes or blocks.
    #[inline(never)]
    fn run_stages(&mut self, slot: usize, op: Op, here: &mut SmContext<'_, '_, D>) -> Progress {
        let (operation, order) = describe(op);
        let stages = front::stages(&here.config.sm_rules, operation, order);
        while let Some(stage) = stages.get(usize::from(self.warps[slot].stage)) {
            if self.stage(slot, op, stage, here) == Progress::Blocked {
                return Progress::Blocked;
            }
            self.warps[slot].stage += 1;
        }
        self.warps[slot].stage = 0;
        Progress::Done
    }

    fn stage(&mut self, slot: usize, op: Op, stage: Stage, here: &mut SmContext<'_, '_, D>) -> Progress {
        match stage {
            Stage::AwaitLoads => {
                if self.warps[slot].pending == 0 {
                    return Progress::Done;
                }
                self.block(slot, WaitReason::AllResults);
                Progress::Blocked
            }
            Stage::Issue => {
                let (_, order) = describe(op);
                self.access(slot, op, order.scope, here)
            }
            Stage::AwaitResult => self.await_result(slot, op, here),
            Stage::Release(scope) => self.release(slot, scope, here),
            Stage::Acquire(scope) => self.acquire(slot, scope, here),
        }
    }

    fn await_result(&mut self, slot: usize, op: Op, here: &mut SmContext<'_, '_, D>) -> Progress {
        let warp = &self.warps[slot];
        let result = warp.current_slot();
        let polls = matches!(op, Op::WaitUntil { .. });
        if warp.is_pending(result) {
            self.block(slot, WaitReason::Result(result));
            if polls {
                self.warps[slot].stall = Stall::Acquire;
            }
            return Progress::Blocked;
        }
        if warp.hit_at > here.out.now() {
            self.pause(slot, warp.hit_at, if polls { Stall::Acquire } else { Stall::L1 });
            return Progress::Blocked;
        }
        if polls {
            // The poll's result has been consumed: later instructions do not count it.
            self.warps[slot].forget_latest_result();
            if !self.warps[slot].flag_seen {
                // The poll failed: return to the access stage.
                if l1::failed_poll_invalidates(&here.config.sm_rules, describe(op).1) {
                    self.invalidate_l1();
                }
                self.warps[slot].stage -= 1;
                self.poll_again(slot, here.out);
                return Progress::Blocked;
            }
            here.config.probe.flag_found(here.config.warp_slot(self.sm, slot), result, self.flag(slot, op));
        }
        self.warps[slot].polls = 0;
        Progress::Done
    }

    fn release(&mut self, slot: usize, scope: Scope, here: &mut SmContext<'_, '_, D>) -> Progress {
        if std::mem::take(&mut self.warps[slot].synced) {
            here.config.probe.released(here.config.warp_slot(self.sm, slot), scope);
            return Progress::Done;
        }
        self.block(slot, WaitReason::Drain);
        self.drain(Drainer::Warp { warp: slot as u8, scope }, here);
        Progress::Blocked
    }

    /// Notifies `drainer` when all stores posted so far by this SM have been acknowledged.
    pub(crate) fn drain(&mut self, drainer: Drainer, here: &mut SmContext<'_, '_, D>) {
        self.posted.drain(drainer);
        self.finish_drains(here);
    }

    /// Notifies every drainer whose drain has completed.
    pub(super) fn finish_drains(&mut self, here: &mut SmContext<'_, '_, D>) {
        while let Some(drainer) = self.posted.pop_drained() {
            let controller = here.config.layout.controller(here.config.module);
            let (now, controller_latency) = (here.out.now(), crate::convert::to_controller(&here.config.machine));
            let (at, to, message) = match drainer {
                Drainer::Warp { warp, scope } => (now + Ps(1), self.id, Message::Drained { warp, scope }),
                Drainer::Cta(slot) => {
                    here.shared.count(slot, self.counts.take(slot, &self.stats, &self.stalls.times));
                    (now + controller_latency, controller, Message::CtaDrained { slot })
                }
                Drainer::Pages(pages) => (now + controller_latency, controller, Message::PageQuiet { pages }),
            };
            here.out.send(at, self.id, to, message);
        }
    }

    /// Continues a release whose earlier stores have all been acknowledged: runs the release plan.
    pub(crate) fn drained(&mut self, warp: u8, scope: Scope, here: &mut SmContext<'_, '_, D>) {
        let slot = usize::from(warp);
        if here.config.sm_rules.release_ends_in_sm(scope) {
            self.synced(warp, here.out);
        } else {
            self.ask(slot, SyncKind::Release, scope, here);
        }
    }

    fn acquire(&mut self, slot: usize, scope: Scope, here: &mut SmContext<'_, '_, D>) -> Progress {
        let done = std::mem::take(&mut self.warps[slot].synced);
        if !done && !here.config.sm_rules.acquire_ends_in_sm(scope) {
            self.ask(slot, SyncKind::Acquire, scope, here);
            return Progress::Blocked;
        }
        if l1::acquire_invalidates(&here.config.sm_rules, scope) {
            self.invalidate_l1();
        }
        here.config.probe.acquired(here.config.warp_slot(self.sm, slot), scope);
        Progress::Done
    }

    /// Requests an acquire or release plan from the controller, on behalf of a warp.
    fn ask(&mut self, slot: usize, kind: SyncKind, scope: Scope, here: &mut SmContext<'_, '_, D>) {
        self.block(slot, WaitReason::Sync);
        self.warps[slot].stall = match kind {
            SyncKind::Acquire => Stall::Acquire,
            SyncKind::Release => Stall::Release,
        };
        let to = here.config.layout.controller(here.config.module);
        let at = here.out.now() + crate::convert::to_controller(&here.config.machine);
        here.out.send(at, self.id, to, Message::Sync { sm: self.sm, warp: slot as u8, kind, scope });
    }

    /// Resumes a warp after the controller has completed its plan.
    pub(crate) fn synced(&mut self, warp: u8, out: &mut Out<'_, D>) {
        let slot = usize::from(warp);
        self.warps[slot].synced = true;
        self.wake(slot, out.now(), out);
    }
}

/// Classifies an instruction for the front end.
fn describe(op: Op) -> (ThreadOperation, Order) {
    match op {
        Op::Load { order, .. } => (ThreadOperation::Load, order.order()),
        Op::Store { order, .. } => (ThreadOperation::Store, order.order()),
        Op::Atomic { order, result: AtomicResult::Returned, .. } => (ThreadOperation::Atomic, order.order()),
        Op::Atomic { order, result: AtomicResult::Discarded, .. } => (ThreadOperation::Reduction, order.order()),
        Op::Fence { order } => (ThreadOperation::Fence, order.order()),
        Op::WaitUntil { order, .. } => (ThreadOperation::Wait, order.order()),
        Op::Compute { .. } | Op::Shared { .. } | Op::Barrier | Op::Use { .. } | Op::Signal { .. } => {
            unreachable!("{op:?} is no memory instruction")
        }
    }
}
