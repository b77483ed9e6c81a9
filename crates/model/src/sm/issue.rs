//! Issue loop: each memory instruction is a simulation event, while arithmetic only advances the sub-core's time.

use super::arithmetic::ArithmeticRun;
use super::ready::SLOTS;
use super::stalls::StallCause;
use super::sub_core::SubCore;
use super::{Cta, Sm};
use crate::message::Message;
use crate::module::context::SmContext;
use crate::observe::stall::Stall;
use crate::observe::value_probe::{Contents, ValueProbe};
use crate::sm::warp::WaitReason;
use tombolo_protocol::front::{self, Stage, ThreadOperation};
use tombolo_protocol::sm_rules::SmRules;
use tombolo_types::stream::{ChainLinks, ComputeClass, Op};
use tombolo_types::{Order, Ps};

/// Outcome of an instruction executed at the event's own time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// Issued; the next instruction may follow.
    Done,
    /// The warp waits and will retry the instruction.
    Blocked,
}

/// Next action in the issue loop.
enum NextAction {
    /// Continue with the current warp.
    Continue,
    /// Switch to another warp: this warp waits or has ended.
    Switch,
    /// Stop: the warp's next instruction must execute in an event at its own time.
    Later,
}

impl<D: Contents> Sm<D> {
    /// Handles a sub-core's issue event.
    pub(crate) fn issue(&mut self, sub_core: u8, here: &mut SmContext<'_, '_, D>) {
        let index = usize::from(sub_core);
        let now = here.out.now();
        self.stats.issues += 1;
        if self.sub_cores[index].next != now {
            self.stats.stale_issues += 1;
            return;
        }
        self.sub_cores[index].next = Ps::NEVER;
        let mut at = now.max(self.sub_cores[index].free_at);
        let next = loop {
            let SubCore { slots, current, .. } = self.sub_cores[index];
            let Some((due, slot)) = self.ready.next(slots, current, at) else { break None };
            if due > now {
                break Some((due, slot));
            }
            self.sub_cores[index].current = slot;
            self.run(slot, index, &mut at, here);
        };
        self.sub_cores[index].free_at = at;
        if let Some((due, slot)) = next {
            self.schedule(index, slot, due, here.out);
        }
    }

    /// Runs a warp's instructions from `at` on, until the warp or its sub-core has to wait.
    fn run(&mut self, slot: usize, index: usize, at: &mut Ps, here: &mut SmContext<'_, '_, D>) {
        self.counts.turn_to(self.warps[slot].kernel, &self.stats, &self.stalls.times);
        let ready = self.ready.at(slot);
        self.count_stall(slot, ready, *at);
        self.lag = at.saturating_sub(ready);
        loop {
            match self.instruction(slot, index, at, here) {
                NextAction::Continue => continue,
                NextAction::Switch => {}
                NextAction::Later => self.pause(slot, *at, Stall::Issue),
            }
            return self.stalls.count_from(slot, *at);
        }
    }

    /// Runs a warp's next instruction at `at`, and advances `at` by the issue time.
    fn instruction(&mut self, slot: usize, index: usize, at: &mut Ps, here: &mut SmContext<'_, '_, D>) -> NextAction {
        let warp = &self.warps[slot];
        if warp.pc == warp.end {
            self.end_warp(slot, *at, here);
            return NextAction::Switch;
        }
        let op = self.op(slot);
        if warp.computes && self.awaits_arithmetic(slot, op, *at) {
            return NextAction::Switch;
        }
        match op {
            Op::Use { distance: 0 } => self.advance(slot),
            Op::Use { distance } => self.use_result(slot, distance, *at),
            Op::Compute { .. } if here.config.machine.sm.shared_blocks && self.warps[slot].shared_at > *at => {
                self.pause(slot, self.warps[slot].shared_at, Stall::Scratchpad);
                NextAction::Switch
            }
            Op::Compute { class, count, chain, links } => {
                *at = self.compute((slot, index), *at, (class, count), (chain, links));
                self.advance(slot)
            }
            Op::Shared { passes } => {
                let passes = u64::from(passes);
                let end = self.scratchpad.reserve(here.out.now(), *at, passes);
                self.warps[slot].shared_at = end + here.config.machine.sm.shared_latency;
                let start = (*at).max(end.saturating_sub(self.scratchpad.span(passes)));
                self.stalls.times.add(Stall::Scratchpad, start - *at);
                *at = self.spend(index, start, (self.costs.slot, 1), Stall::Issue);
                self.stats.warp_instructions += 1;
                self.stats.scratchpad_passes += passes;
                self.advance(slot)
            }
            Op::Barrier if self.barrier_awaits(slot, &here.config.sm_rules) => {
                self.block(slot, WaitReason::AllResults);
                NextAction::Switch
            }
            Op::Barrier => {
                *at = self.spend(index, *at, (self.costs.slot, 1), Stall::Issue);
                self.stats.warp_instructions += 1;
                self.barrier(slot, at, here)
            }
            Op::Signal { .. } => self.advance(slot),
            Op::Load { .. } | Op::Store { .. } | Op::Atomic { .. } | Op::Fence { .. } | Op::WaitUntil { .. } => {
                if *at > here.out.now() {
                    return NextAction::Later;
                }
                match self.memory_instruction(slot, op, here) {
                    Progress::Done => {
                        *at = self.finish_memory_instruction(slot, index, *at, op);
                        NextAction::Continue
                    }
                    Progress::Blocked => NextAction::Switch,
                }
            }
        }
    }

    /// Issues a run of arithmetic from `at` on. Returns the time when the sub-core accepts the next instruction.
    #[inline]
    fn compute(
        &mut self,
        (slot, index): (usize, usize),
        at: Ps,
        (class, count): (ComputeClass, u16),
        (chain, links): (u16, ChainLinks),
    ) -> Ps {
        let pace = self.costs.compute[class as usize];
        let end = self.spend(index, at, (pace.issue, count.into()), Stall::Arithmetic);
        self.stats.warp_instructions += u64::from(count);
        if chain > 0 || self.warps[slot].computes {
            let path = &mut self.paths[slot % SLOTS];
            path.run(pace, ArithmeticRun { from: at.saturating_sub(self.lag), count, chain, links });
            self.warps[slot].computes = path.result > end;
        }
        end
    }

    /// True if a warp with unfinished arithmetic at `at` must wait before it issues `op`, in program order.
    fn awaits_arithmetic(&mut self, slot: usize, op: Op, at: Ps) -> bool {
        let path = &mut self.paths[slot % SLOTS];
        match op {
            Op::Use { distance: 0 } => path.next = path.result,
            Op::Compute { .. } | Op::Use { .. } | Op::Signal { .. } => {}
            Op::Load { .. }
            | Op::Store { .. }
            | Op::Atomic { .. }
            | Op::Fence { .. }
            | Op::WaitUntil { .. }
            | Op::Shared { .. }
            | Op::Barrier => {
                let next = path.next;
                self.warps[slot].computes = path.result > at;
                if next > at {
                    self.pause(slot, next, Stall::Arithmetic);
                    return true;
                }
            }
        }
        false
    }

    /// Completes a memory instruction with issue start at `at`. Returns the time when the sub-core accepts the next
    /// instruction.
    fn finish_memory_instruction(&mut self, slot: usize, index: usize, at: Ps, op: Op) -> Ps {
        self.warps[slot].pc += 1;
        self.stats.warp_instructions += 1;
        self.stats.memory_instructions += u64::from(!matches!(op, Op::Fence { .. }));
        let issued = self.spend(index, at, (self.costs.slot, 1), Stall::Issue);
        let next = issued.max(self.l1_free.max(self.banks.free()).saturating_sub(self.costs.backlog));
        self.stalls.times.add(Stall::L1, next - issued);
        next
    }

    /// Occupies a sub-core from `at` on for `count` instructions at a cost of `cost` each. Returns the time when the
    /// sub-core is free.
    #[inline]
    fn spend(&mut self, index: usize, at: Ps, (cost, count): (u64, u64), stall: Stall) -> Ps {
        let free = self.sub_cores[index].spend(at, cost, count);
        self.stalls.times.add(stall, free - at);
        free
    }

    /// Resumes a warp whose memory instruction lacked a resource that is now available. The instruction was already
    /// issued by its sub-core, and therefore continues immediately. `waited`: the stall category for this wait.
    pub(super) fn resume(&mut self, slot: usize, waited: StallCause, here: &mut SmContext<'_, '_, D>) {
        self.counts.turn_to(self.warps[slot].kernel, &self.stats, &self.stalls.times);
        let now = here.out.now();
        self.warps[slot].stall = waited.stall;
        self.count_queued(slot, waited, now);
        self.count_stall(slot, now, now);
        self.stalls.count_from(slot, now);
        let warp = &mut self.warps[slot];
        warp.wait = WaitReason::Nothing;
        warp.has_priority = true;
        let op = self.op(slot);
        let progress = self.memory_instruction(slot, op, here);
        self.warps[slot].has_priority = false;
        let index = usize::from(self.warps[slot].sub_core);
        match progress {
            Progress::Done => {
                let free = self.sub_cores[index].free_at.max(now);
                let at = self.finish_memory_instruction(slot, index, free, op);
                self.sub_cores[index].free_at = at;
                self.stalls.times.add(Stall::Issue, free - now);
                self.stalls.count_from(slot, at);
                self.warps[slot].stall = Stall::Issue;
                self.wake(slot, at, here.out);
            }
            Progress::Blocked if self.ready.at(slot) < Ps::NEVER => self.wake(slot, self.ready.at(slot), here.out),
            Progress::Blocked => {}
        }
    }

    /// Returns a warp's current instruction.
    pub(super) fn op(&self, slot: usize) -> Op {
        let warp = &self.warps[slot];
        self.cta(slot).stream.ops[warp.pc as usize]
    }

    pub(super) fn cta(&self, slot: usize) -> &Cta {
        let cta = self.ctas[usize::from(self.warps[slot].cta)].as_ref();
        cta.expect("a resident warp belongs to a resident CTA")
    }

    fn advance(&mut self, slot: usize) -> NextAction {
        self.warps[slot].pc += 1;
        NextAction::Continue
    }

    /// Waits for a result needed by the next instruction, or advances if available.
    fn use_result(&mut self, slot: usize, distance: u8, at: Ps) -> NextAction {
        let warp = &self.warps[slot];
        let result = warp.slot(distance);
        if warp.is_pending(result) {
            self.block(slot, WaitReason::Result(result));
            return NextAction::Switch;
        }
        if warp.hit_at > at {
            self.pause(slot, warp.hit_at, Stall::L1);
            return NextAction::Switch;
        }
        // A dependent instruction could not issue before the hit's data was available.
        self.lag = self.lag.min(at - warp.hit_at);
        self.advance(slot)
    }

    /// True if a warp must wait for its loads before arrival at a barrier.
    fn barrier_awaits(&self, slot: usize, rules: &SmRules) -> bool {
        let first = front::stages(rules, ThreadOperation::Barrier, Order::WEAK).get(0);
        first == Some(Stage::AwaitLoads) && self.warps[slot].pending != 0
    }

    fn barrier(&mut self, slot: usize, at: &mut Ps, here: &mut SmContext<'_, '_, D>) -> NextAction {
        self.warps[slot].pc += 1;
        let index = usize::from(self.warps[slot].cta);
        let cta = self.ctas[index].as_mut().expect("a resident warp belongs to a resident CTA");
        cta.latest = cta.latest.max((*at).max(self.warps[slot].shared_at));
        if front::barrier_opens(&here.config.sm_rules, cta.at_barrier + 1, None, cta.alive) {
            // The last warp to arrive continues after all scratchpad accesses in its CTA have finished.
            let latest = cta.latest;
            self.open_barrier(index, Some(slot), here);
            if latest <= *at {
                return NextAction::Continue;
            }
            self.pause(slot, latest, Stall::Barrier);
            return NextAction::Switch;
        }
        cta.at_barrier += 1;
        self.block(slot, WaitReason::Barrier);
        NextAction::Switch
    }

    /// Releases a CTA's warps from the barrier. `last`: the warp that arrived last and never waited.
    fn open_barrier(&mut self, index: usize, last: Option<usize>, here: &mut SmContext<'_, '_, D>) {
        let cta = self.ctas[index].as_mut().expect("a barrier belongs to a resident CTA");
        if std::mem::take(&mut cta.at_barrier) == 0 {
            return;
        }
        let latest = cta.latest;
        let mut passing = last.map_or(0, |slot| 1 << slot);
        for slot in 0..self.warps.len() {
            let warp = &self.warps[slot];
            if self.alive >> slot & 1 != 0 && usize::from(warp.cta) == index && warp.wait == WaitReason::Barrier {
                passing |= 1 << slot;
                self.wake(slot, latest.max(here.out.now()), here.out);
            }
        }
        here.config.probe.barrier(here.config.warp_slot(self.sm, 0), passing);
    }

    fn end_warp(&mut self, slot: usize, at: Ps, here: &mut SmContext<'_, '_, D>) {
        let warp = &self.warps[slot];
        if warp.pending != 0 {
            // The slot stays allocated until unused results have arrived too.
            self.block(slot, WaitReason::AllResults);
            return;
        }
        let index = usize::from(warp.cta);
        let result = if warp.computes { self.paths[slot % SLOTS].result } else { at };
        let end = at.max(warp.hit_at).max(warp.shared_at).max(result);
        self.count_end(slot, at, end);
        self.ready.set(slot, Ps::NEVER);
        self.set_alive(slot, false);
        let cta = self.ctas[index].as_mut().expect("a resident warp belongs to a resident CTA");
        cta.alive -= 1;
        cta.latest = cta.latest.max(end);
        if cta.alive == 0 {
            self.end_cta(index as u8, here);
        } else if front::barrier_opens(&here.config.sm_rules, cta.at_barrier, None, cta.alive) {
            self.open_barrier(index, None, here);
        }
    }

    /// Frees a CTA's slot and notifies the controller. If arithmetic is unfinished, schedules another attempt at its
    /// end.
    pub(crate) fn end_cta(&mut self, index: u8, here: &mut SmContext<'_, '_, D>) {
        let place = &mut self.ctas[usize::from(index)];
        let end = place.as_ref().expect("a CTA ends once").latest;
        if end > here.out.now() {
            return here.out.send(end, self.id, self.id, Message::CtaOver { cta: index });
        }
        let Cta { mut stream, kernel, slots, .. } = place.take().expect("a CTA ends once");
        self.taken &= !slots;
        stream.clear();
        self.spare.push(stream);
        self.cta_ended(kernel, false, here);
    }
}
