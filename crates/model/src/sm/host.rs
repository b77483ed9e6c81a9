//! Implementation of the protocol's host interface ([`tombolo_protocol::host`]) on an SM's L1 and MSHRs.

use super::latency::LoadLatency;
use super::stalls::StallCause;
use super::{FillMessage, Miss, Sm, Waiter};
use crate::l2::cache::BulkClass;
use crate::l2::mshr::FreedEntry;
use crate::module::context::SmContext;
use crate::observe::latency::Stamp;
use crate::observe::value_probe::{Contents, ValueProbe};
use tombolo_protocol::Pending;
use tombolo_protocol::host::{AwaitingRead, Bulk, FillTarget};
use tombolo_protocol::l1;
use tombolo_types::Mask;

impl AwaitingRead for Waiter {
    #[inline]
    fn mask(&self) -> Mask {
        self.mask
    }

    #[inline]
    fn for_bytes(self, mask: Mask) -> Waiter {
        Waiter { mask, ..self }
    }
}

/// Fill in progress: arrived bytes for a pending miss, with the context to install and serve.
pub(super) struct SmFill<'s, 'a, 'o, D: Contents> {
    pub(super) sm: &'s mut Sm<D>,
    pub(super) here: &'s mut SmContext<'a, 'o, D>,
    pub(super) fill: FillMessage<D>,
    /// Stall category for all waits ended by this fill.
    pub(super) answered: StallCause,
    /// Latency record for the fill's request.
    pub(super) load_latency: LoadLatency,
    /// Total latency over all completed loads, in picoseconds.
    pub(super) waited: u64,
}

impl<D: Contents> FillTarget for SmFill<'_, '_, '_, D> {
    type Waiter = Waiter;
    type Detached = FreedEntry<Miss, Waiter>;

    fn install(&mut self) -> bool {
        let FillMessage { register, line, mask, data, .. } = self.fill;
        let pending = self.sm.mshr.get(register).pending;
        let before = self.sm.l1.peek(line).copied();
        let mut after = before;
        let left = l1::fill(&self.here.config.sm_rules, &mut after, pending, mask, data);
        self.sm.keep_line(line, before, after, self.here);
        if let Some(left) = left {
            self.sm.mshr.get_mut(register).pending = left;
        }
        left.is_none()
    }

    fn release(&mut self, over: bool) -> FreedEntry<Miss, Waiter> {
        let register = self.fill.register;
        if over { self.sm.mshr.free(register) } else { self.sm.mshr.detach(register) }
    }

    #[inline]
    fn next_waiter(&mut self, held: &mut FreedEntry<Miss, Waiter>) -> Option<Waiter> {
        self.sm.mshr.next_waiter(held)
    }

    fn serve(&mut self, Waiter { warp, result, polls, mask, since }: Waiter, complete: bool) {
        let (config, FillMessage { line, data, seen, .. }) = (self.here.config, self.fill);
        let loader = config.warp_slot(self.sm.sm, usize::from(warp));
        config.probe.loaded(self.here.out.now(), loader, result, line, mask, data);
        if complete {
            if config.follows_loads() {
                let time = u64::from(Stamp::of(self.here.out.now()).since(since));
                self.waited += time;
                self.here.shared.latencies.add(self.load_latency.served, time);
            }
            self.sm.result(usize::from(warp), (result, self.answered), polls && seen, self.here.out);
        }
    }

    fn wait(&mut self, waiter: Waiter) {
        self.sm.mshr.attach(self.fill.register, waiter);
    }
}

impl<D: Contents> Bulk for Sm<D> {
    fn drop_lines(&mut self) {
        self.l1.invalidate_class(BulkClass::new(0));
    }

    fn each_miss(&mut self, mut change: impl FnMut(&mut Pending)) {
        let entries: Vec<_> = self.mshr.entries().collect();
        for entry in entries {
            change(&mut self.mshr.get_mut(entry).pending.miss);
        }
    }
}
