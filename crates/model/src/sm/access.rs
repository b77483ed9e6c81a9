//! Loads, stores and atomics in an SM, from issue through the L1.

use super::issue::Progress;
use super::latency::{DepartureTimes, RequestLatency};
use super::translate::Translation;
use super::warp::{RESULTS, WaitReason};
use super::{MOST_POLLS, Miss, POLL_INTERVAL, Sm, Waiter};
use crate::l2::credits::Generation;
use crate::l2::mshr::EntryId;
use crate::l2::outstanding::Tickets;
use crate::message::{Flag, LineRequest, Message, Out, ReplyDestination};
use crate::module::context::SmContext;
use crate::observe::latency::Stamp;
use crate::observe::stall::Stall;
use crate::observe::value_probe::{Contents, ValueProbe};
use tombolo_protocol::Request;
use tombolo_protocol::l1::{self, L1Pending, Load};
use tombolo_protocol::sm_rules::SmRules;
use tombolo_types::stream::{Access, Accesses, AtomicResult, Op};
use tombolo_types::{Bytes, Line, Mask, Ps, Scope};

/// Prefetch distance in transactions: a line's lookup data is loaded into the host's caches this many transactions
/// ahead. Assumed: a transaction takes about a hundred nanoseconds on the host, similar to its memory latency; no
/// other value was tried.
const AHEAD: usize = 4;

/// Line transaction issued by the current instruction.
#[derive(Clone, Copy)]
struct Transaction {
    slot: usize,
    line: Line,
    mask: Mask,
    scope: Scope,
    flag: Flag,
    /// True if the transaction returns a result.
    returns: bool,
    /// Result slot that receives the data.
    result: u8,
    /// True unless a single transaction delivers the result: outstanding transactions must be counted then.
    several: bool,
}

/// Outcome of an attempt to issue a transaction.
enum IssueOutcome {
    Yes,
    /// Not issued: the warp waits for this event, then repeats the transaction.
    Waits(WaitReason),
}

/// Returns a memory instruction's transactions, and true if it returns a result; `None` for other instructions.
fn accesses(op: Op) -> Option<(Accesses, bool)> {
    match op {
        Op::Load { accesses, .. } => Some((accesses, true)),
        Op::WaitUntil { access, .. } => Some((Accesses { start: access, len: 1 }, true)),
        Op::Atomic { accesses, result, .. } => Some((accesses, result == AtomicResult::Returned)),
        Op::Store { accesses, .. } => Some((accesses, false)),
        Op::Compute { .. }
        | Op::Fence { .. }
        | Op::Shared { .. }
        | Op::Barrier
        | Op::Use { .. }
        | Op::Signal { .. } => None,
    }
}

impl<D: Contents> Sm<D> {
    /// Issues the transactions of the current memory instruction `op`, from the first transaction not yet issued.
    pub(super) fn access(&mut self, slot: usize, op: Op, scope: Scope, here: &mut SmContext<'_, '_, D>) -> Progress {
        let (accesses, returns) = accesses(op).expect("only memory instructions access memory");
        if returns && !self.warps[slot].has_slot {
            if !self.take_slot(slot, accesses.len, here) {
                return Progress::Blocked;
            }
            here.config.probe.load(here.config.warp_slot(self.sm, slot), self.warps[slot].current_slot());
        }
        let flag = self.flag(slot, op);
        let result = self.warps[slot].current_slot();
        let several = accesses.len != 1;
        let mut issued = self.warps[slot].issued;
        self.banks.begin();
        // Addresses were generated before a wait, so a resumed instruction does not occupy the address unit again.
        let resumed = issued != 0;
        let start = here.out.now().max(self.l1_free);
        self.first_request = None;
        if self.hints && issued == 0 && several {
            for access in self.cta(slot).stream.accesses[accesses.range()].iter().take(AHEAD).skip(1) {
                self.prefetch_access(access.line);
            }
        }
        while issued < accesses.len {
            let rest = &self.cta(slot).stream.accesses[accesses.range()][usize::from(issued)..];
            let Access { line, mask } = rest[0];
            let later = if self.hints { rest.get(AHEAD).map(|later| later.line) } else { None };
            let transaction = Transaction { slot, line, mask, scope, flag, returns, result, several };
            let sent = match op {
                _ if here.config.map.moves() && self.faults(slot, (accesses, issued), op, here) => {
                    IssueOutcome::Waits(WaitReason::Page)
                }
                Op::Store { .. } => self.store(transaction, here),
                Op::Atomic { .. } => self.atomic(transaction, here),
                _ => self.load(transaction, here),
            };
            if let IssueOutcome::Waits(wait) = sent {
                self.stats.parks += 1;
                self.warps[slot].issued = issued;
                self.block(slot, wait);
                return Progress::Blocked;
            }
            self.stats.transactions += 1;
            issued += 1;
            // The freed resource has been used or was not needed: the next transaction queues behind waiting warps.
            self.warps[slot].has_priority = false;
            // Prefetch only after a successful send: a blocked transaction is repeated and would prefetch twice. Warps
            // that wait for an MSHR prefetch when they reach the head of the queue.
            if let Some(later) = later
                && !self.mshr.has_backlog()
            {
                self.prefetch_access(later);
            }
        }
        if matches!(op, Op::Store { .. } | Op::Atomic { .. }) {
            // Publish the flag for all lines at once: a poll may hit a line whose store has not been issued yet.
            self.flags.add(flag);
        }
        if !resumed {
            self.l1_free = self.l1_free.max(start + self.costs.instruction);
        }
        if let Some(first) = self.first_request {
            self.request_free = self.request_free.max(first + self.costs.request_instruction);
        }
        self.warps[slot].next_access = accesses.start + u32::from(accesses.len);
        self.finish_access(slot, result, returns && several);
        Progress::Done
    }

    /// Allocates the current instruction's result slot. Returns false if none is free; the warp then waits.
    fn take_slot(&mut self, slot: usize, transactions: u8, here: &SmContext<'_, '_, D>) -> bool {
        let limit = here.config.machine.sm.pending_loads;
        let warp = &mut self.warps[slot];
        if warp.pending.count_ones() >= limit || warp.is_pending(warp.next_result % RESULTS) {
            self.block(slot, WaitReason::AnyResult);
            return false;
        }
        let result = warp.next_result % RESULTS;
        warp.next_result = warp.next_result.wrapping_add(1);
        warp.has_slot = true;
        warp.flag_seen = false;
        warp.pending |= 1 << result;
        warp.several &= !(1 << result);
        if transactions != 1 {
            warp.several |= 1 << result;
            // Counts one above the issued transactions until all have been issued.
            self.outstanding[slot][usize::from(result)] = 1;
        }
        true
    }

    /// Registers an outstanding transaction for its result slot.
    fn add_outstanding(&mut self, transaction: Transaction) {
        if transaction.several {
            self.outstanding[transaction.slot][usize::from(transaction.result)] += 1;
        }
    }

    /// Completes an instruction after its last transaction. `counted`: true if outstanding transactions are counted
    /// for its result.
    fn finish_access(&mut self, slot: usize, result: u8, counted: bool) {
        let warp = &mut self.warps[slot];
        warp.issued = 0;
        warp.has_slot = false;
        if counted {
            let left = &mut self.outstanding[slot][usize::from(result)];
            *left -= 1;
            if *left == 0 {
                warp.pending &= !(1 << result);
            }
        }
    }

    /// Returns the flag that the current instruction `op` sets or polls.
    #[inline]
    pub(super) fn flag(&self, slot: usize, op: Op) -> Flag {
        let next = self.warps[slot].pc + 1;
        let token = match op {
            Op::WaitUntil { token, .. } => token,
            Op::Store { .. } | Op::Atomic { .. } if next < self.warps[slot].end => {
                match self.cta(slot).stream.ops[next as usize] {
                    Op::Signal { token } => token,
                    _ => return Flag::NONE,
                }
            }
            _ => return Flag::NONE,
        };
        Flag::of(self.warps[slot].kernel, self.cta(slot).stream.tokens[usize::from(token)])
    }

    /// Schedules a store's or an atomic's departure to the slices with `bytes` of data, and occupies the L1's lookup.
    fn depart(&mut self, line: Line, bytes: u64, here: &mut SmContext<'_, '_, D>) -> (DepartureTimes, Translation) {
        let translation = self.translate(line, here);
        let found = self.look_up(here.out.now(), self.costs.transaction) + here.config.machine.l1.hit_latency;
        let sent = self.port.send(found, Bytes(bytes));
        let translated = translation.earliest();
        (DepartureTimes { found, sent, translated, crossing: here.config.machine.crossbar.latency }, translation)
    }

    /// Schedules the departure of a load's request for a line, and occupies the L1's lookup.
    fn depart_request(&mut self, line: Line, here: &mut SmContext<'_, '_, D>) -> (DepartureTimes, Translation) {
        let translation = self.translate(line, here);
        let found = self.look_up(here.out.now(), self.costs.miss) + here.config.machine.l1.hit_latency;
        let leaves = found.max(self.request_free);
        self.request_free = leaves + self.costs.request_interval;
        self.first_request.get_or_insert(leaves);
        let sent = self.port.send(leaves, Bytes(0));
        let translated = translation.earliest();
        (DepartureTimes { found, sent, translated, crossing: here.config.machine.crossbar.latency }, translation)
    }

    /// Reserves the next L1 lookup, which takes `span`, and returns its time. Lookups are serial.
    fn look_up(&mut self, now: Ps, span: Ps) -> Ps {
        let at = now.max(self.l1_free);
        self.l1_free = at + span;
        at
    }

    fn load(&mut self, transaction: Transaction, here: &mut SmContext<'_, '_, D>) -> IssueOutcome {
        let Transaction { slot, line, scope, .. } = transaction;
        let mask = self.costs.sectors.widen(transaction.mask);
        let before = self.l1.lookup(line).copied();
        let mut after = before;
        let mut entry = None;
        let pending = || {
            entry = self.mshr.find(line);
            entry.map(|entry| self.mshr.get(entry).pending)
        };
        match l1::load(&here.config.sm_rules, &mut after, pending, mask, scope) {
            Load::Hit(data) => self.hit(transaction, data, here),
            Load::Stall => return self.stall(slot, entry),
            Load::Wait { .. } if self.is_another_poll(transaction, entry) => return self.stall(slot, entry),
            Load::Wait { here: present, data, asked } => {
                let entry = match self.join(transaction, entry, (asked, present), here) {
                    Ok(entry) => entry,
                    Err(wait) => return IssueOutcome::Waits(wait),
                };
                self.keep_line(line, before, after, here);
                self.report_loaded(transaction, present, data, here);
                self.add_outstanding(transaction);
                self.send_for(transaction, asked, entry, here);
            }
        }
        self.stats.l1_loads += 1;
        IssueOutcome::Yes
    }

    /// Parks a warp until the pending miss on its line completes.
    fn stall(&mut self, slot: usize, entry: Option<EntryId>) -> IssueOutcome {
        self.mshr.park(entry.expect("a load stalls on a pending miss"), slot as u8);
        IssueOutcome::Waits(WaitReason::Line)
    }

    /// True if a poll meets a pending miss for no flag or for another flag. A reply reports only the flag named in its
    /// request.
    fn is_another_poll(&self, Transaction { flag, .. }: Transaction, entry: Option<EntryId>) -> bool {
        flag != Flag::NONE && entry.is_some_and(|entry| self.mshr.get(entry).flag != flag)
    }

    /// Completes a load whose bytes are all present.
    fn hit(&mut self, transaction: Transaction, data: D, here: &mut SmContext<'_, '_, D>) {
        let Transaction { slot, line, mask, flag, result, several, .. } = transaction;
        self.report_loaded(transaction, mask, data, here);
        let translation = self.translate(line, here);
        let now = here.out.now();
        let looked_up = self.look_up(now, self.costs.transaction);
        let read = self.banks.read(looked_up, line, mask);
        let seen = self.flags.has(flag);
        self.stats.l1_hits += 1;
        self.await_translation(slot, None, (read, translation.earliest()));
        let translated = match translation {
            Translation::At(translated) => translated,
            Translation::Awaited(_) => {
                self.add_outstanding(transaction);
                return self.hold_hit(line, (slot, result), (now, read), seen);
            }
        };
        let at = self.hit_at((now, read, translated), here);
        let warp = &mut self.warps[slot];
        warp.hit_at = warp.hit_at.max(at);
        warp.flag_seen |= seen;
        if !several {
            warp.pending &= !(1 << result);
        }
    }

    /// Reports the bytes found in the L1 (`present`) to the value probe.
    fn report_loaded(&self, transaction: Transaction, present: Mask, data: D, here: &SmContext<'_, '_, D>) {
        let Transaction { slot, line, mask, result, .. } = transaction;
        let found = mask & present;
        if !found.is_empty() {
            here.config.probe.loaded(here.out.now(), here.config.warp_slot(self.sm, slot), result, line, found, data);
        }
    }

    /// Adds a load to its line's pending miss, or starts a miss. `asked`: bytes newly requested; `present`: bytes
    /// found in the L1. Returns the resource to wait for if the load does not fit.
    #[inline]
    fn join(
        &mut self,
        transaction: Transaction,
        entry: Option<EntryId>,
        (asked, present): (Mask, Mask),
        here: &mut SmContext<'_, '_, D>,
    ) -> Result<EntryId, WaitReason> {
        let Transaction { slot, line, mask, scope, flag, result, .. } = transaction;
        let since = Stamp::of(here.out.now());
        let waiter = Waiter { warp: slot as u8, result, polls: flag != Flag::NONE, mask: mask & !present, since };
        let Some(entry) = entry else {
            if !self.has_mshr(slot) {
                return Err(WaitReason::MissRegister);
            }
            let miss = Miss { pending: L1Pending::of(asked, scope), flag };
            let entry = self.mshr.allocate_for(line, miss, waiter);
            if here.config.map.moves() {
                here.shared.pages.load_begins(here.config.map.page(line));
            }
            return Ok(entry.expect("a register was kept for it"));
        };
        if self.is_crowded(entry, waiter.mask) || !self.mshr.push_waiter(entry, waiter) {
            self.mshr.park(entry, slot as u8);
            return Err(WaitReason::Line);
        }
        if !asked.is_empty() {
            let pending = &mut self.mshr.get_mut(entry).pending;
            *pending = L1Pending::and(Some(*pending), asked, scope);
        }
        Ok(entry)
    }

    /// True if a required sector already has the maximum number of waiting loads.
    fn is_crowded(&self, entry: EntryId, mask: Mask) -> bool {
        let most = self.costs.merges;
        if self.mshr.waiting(entry) < most {
            return false;
        }
        let mut left = self.costs.sectors.widen(mask);
        while !left.is_empty() {
            let sector = self.costs.sectors.widen(Mask(left.0 & left.0.wrapping_neg()));
            let waiting = self.mshr.waiters(entry).filter(|one| one.mask.overlaps(sector)).count();
            if waiting as u32 >= most {
                return true;
            }
            left = left & !sector;
        }
        false
    }

    /// True if an MSHR is available to a warp; parks the warp otherwise.
    fn has_mshr(&mut self, slot: usize) -> bool {
        let called = std::mem::take(&mut self.warps[slot].has_priority);
        let free = !self.mshr.is_full() && (called || !self.mshr.has_backlog());
        if !free {
            self.stats.retries += u64::from(called);
            self.mshr.park_for_room(slot as u8);
        }
        free
    }

    /// Sends a read for the bytes not yet in flight, if there are any. A load without such bytes merges into the
    /// pending miss.
    #[inline]
    fn send_for(&mut self, transaction: Transaction, asked: Mask, entry: EntryId, here: &mut SmContext<'_, '_, D>) {
        if asked.is_empty() {
            self.look_up(here.out.now(), self.costs.miss);
            self.share_translation(transaction.slot, entry, here.out.now());
            self.stats.l1_merges += 1;
            return;
        }
        let (departs, translation) = self.depart_request(transaction.line, here);
        let now = here.out.now();
        if here.config.follows_loads() {
            self.request_latencies.set(entry, RequestLatency::new(now, departs));
        }
        self.await_translation(transaction.slot, Some(entry), departs.translation());
        let request = Request::Read { mask: asked, scope: transaction.scope };
        let body = self.body(transaction, request, Generation::default(), entry);
        self.send_translated(body, (departs, translation), (Some(now), Some(transaction.slot)), here);
    }

    /// Builds a transaction's request. `ticket`: the store credit, for a store or an atomic; `register`: the MSHR, for
    /// a read.
    fn body(
        &self,
        transaction: Transaction,
        request: Request<D>,
        ticket: Generation,
        register: EntryId,
    ) -> LineRequest<D> {
        let Transaction { slot, line, flag, result, .. } = transaction;
        let origin = ReplyDestination { module: self.module, sm: self.sm, warp: slot as u8, result, register };
        let tickets = Tickets { hop: ticket, ..Tickets::default() };
        LineRequest { line, request, origin, flag, tickets, requester_mshr: EntryId::default(), is_published: false }
    }

    pub(super) fn send(&self, body: LineRequest<D>, at: Ps, here: &mut SmContext<'_, '_, D>) {
        let to = here.config.layout.slice(here.config.module, here.config.map.slice(body.line));
        here.out.send(at, self.id, to, Message::Local(body));
    }

    fn store(&mut self, transaction: Transaction, here: &mut SmContext<'_, '_, D>) -> IssueOutcome {
        let Transaction { slot, line, mask, scope, flag, .. } = transaction;
        let Some(ticket) = self.credit(slot) else {
            return IssueOutcome::Waits(WaitReason::StoreCredit);
        };
        let data = here.config.probe.store(here.config.warp_slot(self.sm, slot), line, mask, flag);
        self.change_line(line, |protocol, present, pending| l1::store(protocol, present, pending, mask, data), here);
        let departs = self.depart(line, self.bytes(mask, here), here);
        let request = Request::Write { mask, scope, data, tracked: true };
        let body = self.body(transaction, request, ticket, EntryId::default());
        self.send_translated(body, departs, (None, None), here);
        IssueOutcome::Yes
    }

    fn atomic(&mut self, transaction: Transaction, here: &mut SmContext<'_, '_, D>) -> IssueOutcome {
        let Transaction { slot, line, mask, scope, flag, returns, .. } = transaction;
        let Some(ticket) = self.credit(slot) else {
            return IssueOutcome::Waits(WaitReason::StoreCredit);
        };
        self.change_line(line, |protocol, present, pending| l1::atomic(protocol, present, pending, mask), here);
        if returns {
            self.add_outstanding(transaction);
        }
        let departs = self.depart(line, self.bytes(mask, here), here);
        if returns {
            self.await_translation(slot, None, departs.0.translation());
        }
        let update = here.config.probe.atomic(here.config.warp_slot(self.sm, slot), line, mask, flag);
        let request = Request::Atomic { mask, scope, update, returns };
        let body = self.body(transaction, request, ticket, EntryId::default());
        self.send_translated(body, departs, (None, returns.then_some(slot)), here);
        IssueOutcome::Yes
    }

    fn bytes(&self, mask: Mask, here: &SmContext<'_, '_, D>) -> u64 {
        u64::from(mask.grains()) * here.config.machine.line.grain()
    }

    /// Applies a store's or an atomic's effect to its line and to the pending miss on this line.
    fn change_line(
        &mut self,
        line: Line,
        change: impl FnOnce(&SmRules, &mut Option<l1::L1Line<D>>, &mut Option<L1Pending>),
        here: &SmContext<'_, '_, D>,
    ) {
        let before = self.l1.lookup(line).copied();
        let mut after = before;
        let entry = self.mshr.find(line);
        let mut pending = entry.map(|entry| self.mshr.get(entry).pending);
        change(&here.config.sm_rules, &mut after, &mut pending);
        self.keep_line(line, before, after, here);
        if let (Some(entry), Some(pending)) = (entry, pending) {
            self.mshr.get_mut(entry).pending = pending;
        }
    }

    /// Takes a store credit for a warp, or queues the warp if no credit is left.
    fn credit(&mut self, slot: usize) -> Option<Generation> {
        let called = std::mem::take(&mut self.warps[slot].has_priority);
        if (called || self.credit_queue.is_empty())
            && let Some(credit) = self.posted.try_take()
        {
            return Some(credit);
        }
        self.stats.retries += u64::from(called);
        self.credit_queue.push_back(slot as u8);
        None
    }

    /// Returns a store credit after an acknowledged store, then resumes the longest-waiting warps in the credit queue.
    pub(crate) fn store_taken(&mut self, credit: Generation, here: &mut SmContext<'_, '_, D>) {
        self.posted.give_back(credit);
        while self.posted.has_room()
            && let Some(slot) = self.credit_queue.pop_front()
        {
            self.prefetch_queue(&self.credit_queue);
            self.resume(usize::from(slot), Stall::StoreCredit.into(), here);
        }
        self.finish_drains(here);
    }

    /// Schedules another poll after a failed poll. A warp that has polled too often is blocked for good.
    pub(super) fn poll_again(&mut self, slot: usize, out: &Out<'_, D>) {
        self.stats.failed_polls += 1;
        self.warps[slot].polls += 1;
        if self.warps[slot].polls == MOST_POLLS {
            self.block(slot, WaitReason::Flag);
            return;
        }
        self.pause(slot, out.now() + POLL_INTERVAL, Stall::Acquire);
    }
}
