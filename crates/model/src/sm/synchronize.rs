//! The stages of memory instructions: what the protocol's front end says they do and wait for, in order.

use super::Sm;
use super::issue::Progress;
use super::warp::Wait;
use crate::message::{Message, Out, SyncKind};
use crate::posted::Drainer;
use crate::uncore::Uncore;
use crate::watch::{Contents, Watch};
use tombolo_protocol::front::{self, Operation, Stage};
use tombolo_protocol::plan::Sync;
use tombolo_protocol::{Coherence, l1};
use tombolo_types::stream::{AtomicResult, Op};
use tombolo_types::{Order, Ps, Scope};

impl<D: Contents> Sm<D> {
    /// Runs the instruction at hand, `op`, as far as it goes.
    #[inline]
    pub(super) fn memory_instruction<C: Coherence>(
        &mut self,
        slot: usize,
        op: Op,
        uncore: &mut Uncore<C, D>,
        out: &mut Out<'_, D>,
    ) -> Progress {
        let (operation, order) = describe(op);
        if front::only_issues(operation, order) {
            return self.access(slot, op, order.scope, uncore, out);
        }
        self.run_stages(slot, op, uncore, out)
    }

    /// Runs those stages of an instruction that are left, as far as it goes.
    #[inline(never)]
    fn run_stages<C: Coherence>(
        &mut self,
        slot: usize,
        op: Op,
        uncore: &mut Uncore<C, D>,
        out: &mut Out<'_, D>,
    ) -> Progress {
        let (operation, order) = describe(op);
        let stages = front::stages(operation, order);
        while let Some(stage) = stages.get(usize::from(self.warps[slot].stage)) {
            if self.stage(slot, op, stage, uncore, out) == Progress::Blocked {
                return Progress::Blocked;
            }
            self.warps[slot].stage += 1;
        }
        self.warps[slot].stage = 0;
        Progress::Done
    }

    fn stage<C: Coherence>(
        &mut self,
        slot: usize,
        op: Op,
        stage: Stage,
        uncore: &mut Uncore<C, D>,
        out: &mut Out<'_, D>,
    ) -> Progress {
        match stage {
            Stage::AwaitLoads => {
                if self.warps[slot].pending == 0 {
                    return Progress::Done;
                }
                self.block(slot, Wait::AllResults);
                Progress::Blocked
            }
            Stage::Issue => {
                let (_, order) = describe(op);
                self.access(slot, op, order.scope, uncore, out)
            }
            Stage::AwaitResult => self.await_result(slot, op, uncore, out),
            Stage::Release(scope) => self.release(slot, scope, uncore, out),
            Stage::Acquire(scope) => self.acquire(slot, scope, uncore, out),
        }
    }

    fn await_result<C: Coherence>(
        &mut self,
        slot: usize,
        op: Op,
        uncore: &Uncore<C, D>,
        out: &mut Out<'_, D>,
    ) -> Progress {
        let warp = &self.warps[slot];
        let result = warp.current_slot();
        if warp.is_pending(result) {
            self.block(slot, Wait::Result(result));
            return Progress::Blocked;
        }
        if warp.hit_at > out.now() {
            self.ready.set(slot, warp.hit_at);
            return Progress::Blocked;
        }
        if matches!(op, Op::WaitUntil { .. }) {
            // A poll's result has been looked at here: later instructions count past it.
            self.warps[slot].forget_latest_result();
            if !self.warps[slot].flag_seen {
                // Back to the access itself: the poll failed.
                self.warps[slot].stage -= 1;
                self.poll_again(slot, out);
                return Progress::Blocked;
            }
        }
        self.warps[slot].polls = 0;
        uncore.site.watch.found(uncore.site.warp_slot(self.sm, slot), self.flag(slot, op));
        Progress::Done
    }

    fn release<C: Coherence>(
        &mut self,
        slot: usize,
        scope: Scope,
        uncore: &mut Uncore<C, D>,
        out: &mut Out<'_, D>,
    ) -> Progress {
        if std::mem::take(&mut self.warps[slot].synced) {
            uncore.site.watch.released(uncore.site.warp_slot(self.sm, slot), scope);
            return Progress::Done;
        }
        self.block(slot, Wait::Drain);
        let index = usize::from(self.sm.0);
        uncore.posted[index].drain(Drainer::Warp { warp: slot as u8, scope });
        uncore.finish_drains(self.sm, out, self.id);
        Progress::Blocked
    }

    /// What was posted before a release has been taken: now its plan runs.
    pub fn drained<C: Coherence>(&mut self, warp: u8, scope: Scope, uncore: &Uncore<C, D>, out: &mut Out<'_, D>) {
        let slot = usize::from(warp);
        if uncore.site.protocol.release(Sync::Thread(scope)).is_empty() {
            self.synced(warp, out);
        } else {
            self.ask(slot, SyncKind::Release, scope, uncore, out);
        }
    }

    fn acquire<C: Coherence>(
        &mut self,
        slot: usize,
        scope: Scope,
        uncore: &mut Uncore<C, D>,
        out: &mut Out<'_, D>,
    ) -> Progress {
        let done = std::mem::take(&mut self.warps[slot].synced);
        if !done && !uncore.site.protocol.acquire(Sync::Thread(scope)).is_empty() {
            self.ask(slot, SyncKind::Acquire, scope, uncore, out);
            return Progress::Blocked;
        }
        if l1::acquire_invalidates(&uncore.site.protocol, scope) {
            self.invalidate_l1();
        }
        uncore.site.watch.acquired(uncore.site.warp_slot(self.sm, slot), scope);
        Progress::Done
    }

    /// Has the controller run a plan for a warp.
    fn ask<C: Coherence>(
        &mut self,
        slot: usize,
        kind: SyncKind,
        scope: Scope,
        uncore: &Uncore<C, D>,
        out: &mut Out<'_, D>,
    ) {
        self.block(slot, Wait::Sync);
        let to = uncore.site.layout.controller(uncore.site.module);
        let at = out.now() + uncore.site.machine.crossbar.latency.max(Ps(1));
        out.send(at, self.id, to, Message::Sync { sm: self.sm, warp: slot as u8, kind, scope });
    }

    /// The controller has run the plan.
    pub fn synced(&mut self, warp: u8, out: &mut Out<'_, D>) {
        let slot = usize::from(warp);
        self.warps[slot].synced = true;
        self.wake(slot, out.now(), out);
    }
}

/// What kind of operation an instruction is for the front end.
fn describe(op: Op) -> (Operation, Order) {
    match op {
        Op::Load { order, .. } => (Operation::Load, order.order()),
        Op::Store { order, .. } => (Operation::Store, order.order()),
        Op::Atomic { order, result: AtomicResult::Returned, .. } => (Operation::Atomic, order.order()),
        Op::Atomic { order, result: AtomicResult::Discarded, .. } => (Operation::Reduction, order.order()),
        Op::Fence { order } => (Operation::Fence, order.order()),
        Op::WaitUntil { order, .. } => (Operation::Wait, order.order()),
        Op::Compute { .. } | Op::Shared { .. } | Op::Barrier | Op::Use { .. } | Op::Signal { .. } => {
            unreachable!("{op:?} is no memory instruction")
        }
    }
}
