//! Address translation in an SM: the L1 TLB, and accesses waiting for a reply from the module's L2 TLB.
//!
//! Only the affected transaction waits for the translation; other transactions in the warp and in the SM continue (hit
//! under miss). When the translation arrives, waiting requests leave for the slices, and waiting L1 hits complete.
//! Requests to the same page stay in order.

use super::Sm;
use super::latency::{DepartureTimes, RequestLatency};
use crate::l2::mshr::EntryId;
use crate::message::{LineRequest, Message};
use crate::module::context::SmContext;
use crate::observe::stall::Stall;
use crate::observe::value_probe::Contents;
use tombolo_types::{Line, Page, Ps};

/// Page with a translation request in flight.
pub(super) struct PendingTranslation<D: Contents> {
    page: Page,
    /// Earliest time at which the L2 TLB can reply: the reply to a hit.
    earliest: Ps,
    /// Waiting accesses, in order.
    held: Vec<WaitingAccess<D>>,
}

/// Access waiting for a translation.
enum WaitingAccess<D: Contents> {
    /// Request to the slices.
    Request {
        body: LineRequest<D>,
        departs: DepartureTimes,
        /// Issue time, for a read.
        since: Option<Ps>,
        /// Warp whose stall time includes this wait.
        warp: Option<usize>,
    },
    /// Load with a hit in the L1.
    Hit {
        warp: usize,
        result: u8,
        /// Time at which the data banks deliver the bytes.
        read: Ps,
        since: Ps,
        /// True for a poll that has found its flag set.
        seen: bool,
    },
}

/// Result of a translation lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Translation {
    /// In the L1 TLB, and available at this time.
    At(Ps),
    /// Requested from the L2 TLB, which replies no earlier than this time.
    Awaited(Ps),
}

impl Translation {
    /// Earliest possible time for the translation's arrival.
    #[inline]
    pub(super) fn earliest(self) -> Ps {
        match self {
            Translation::At(at) | Translation::Awaited(at) => at,
        }
    }
}

impl<D: Contents> Sm<D> {
    /// Translates a line's page: a TLB lookup, followed by a request to the L2 TLB on a miss.
    #[inline]
    pub(super) fn translate(&mut self, line: Line, here: &mut SmContext<'_, '_, D>) -> Translation {
        let now = here.out.now();
        let page = self.page(line);
        match self.tlb.lookup(now, page) {
            Some(ready) if ready > now => match self.pending_reply(page) {
                Some(earliest) => Translation::Awaited(earliest),
                None => Translation::At(ready),
            },
            Some(ready) => Translation::At(ready),
            None => self.ask_l2_tlb(page, here),
        }
    }

    fn page(&self, line: Line) -> Page {
        Page(line.0 >> self.costs.lines_per_page_shift)
    }

    /// Earliest reply time for a page already requested from the L2 TLB.
    fn pending_reply(&self, page: Page) -> Option<Ps> {
        self.awaited.iter().find(|awaited| awaited.page == page).map(|awaited| awaited.earliest)
    }

    /// Requests a translation from the page's L2 TLB bank.
    #[cold]
    fn ask_l2_tlb(&mut self, page: Page, here: &mut SmContext<'_, '_, D>) -> Translation {
        let (now, machine) = (here.out.now(), &here.config.machine);
        self.stats.tlb_misses += 1;
        let asked = self.pending_reply(page);
        let earliest = asked.unwrap_or(now + machine.tlb.l2_latency);
        // Ready just after the earliest reply: an access at exactly this time still finds the reply missing, and waits.
        self.tlb.fill(page, earliest + Ps(1));
        if asked.is_none() {
            self.awaited.push(PendingTranslation { page, earliest, held: Vec::new() });
            let bank = here.config.layout.slice(here.config.module, here.config.tlb_bank(page));
            let at = now + crate::convert::to_l2_tlb(machine);
            here.out.send(at, self.id, bank, Message::Translate { sm: self.sm, page });
        }
        Translation::Awaited(earliest)
    }

    /// Sends a request to its slice, or holds the request until its translation arrives. `since`: the issue time, for a
    /// read. `warp`: the warp whose stall time includes the wait.
    #[inline]
    pub(super) fn send_translated(
        &mut self,
        body: LineRequest<D>,
        (departs, translation): (DepartureTimes, Translation),
        (since, warp): (Option<Ps>, Option<usize>),
        here: &mut SmContext<'_, '_, D>,
    ) {
        match translation {
            Translation::At(_) => self.send(body, departs.reaches(), here),
            Translation::Awaited(_) => self.hold(body.line, WaitingAccess::Request { body, departs, since, warp }),
        }
    }

    /// Delays a hit until its translation arrives.
    pub(super) fn hold_hit(&mut self, line: Line, (warp, result): (usize, u8), (since, read): (Ps, Ps), seen: bool) {
        self.hold(line, WaitingAccess::Hit { warp, result, read, since, seen });
    }

    #[cold]
    fn hold(&mut self, line: Line, held: WaitingAccess<D>) {
        let page = self.page(line);
        let awaited = self.awaited.iter_mut().find(|awaited| awaited.page == page);
        awaited.expect("the page has just been found to be awaited").held.push(held);
    }

    /// Handles an L2 TLB reply: the translation for `page` is available at `ready`. `walked`: set after a page walk.
    /// Releases all accesses waiting for the page.
    pub(crate) fn translated(&mut self, (page, ready, walked): (Page, Ps, bool), here: &mut SmContext<'_, '_, D>) {
        self.stats.tlb_walks += u64::from(walked);
        self.tlb.set_ready(page, ready);
        let place = self.awaited.iter().position(|awaited| awaited.page == page);
        let PendingTranslation { held, .. } =
            self.awaited.swap_remove(place.expect("an SM gets the translations it asks for"));
        for held in held {
            match held {
                WaitingAccess::Request { body, departs, since, warp } => {
                    let departs = DepartureTimes { translated: ready, ..departs };
                    let register = body.origin.register;
                    if let Some(since) = since
                        && here.config.follows_loads()
                    {
                        self.request_latencies.set(register, RequestLatency::new(since, departs));
                    }
                    let entry = since.is_some().then_some(register);
                    if let Some(warp) = warp {
                        self.await_translation(warp, entry, departs.translation());
                    }
                    if let Some(entry) = entry {
                        self.prolong_translation(entry, ready);
                    }
                    self.send(body, departs.reaches(), here);
                }
                WaitingAccess::Hit { warp, result, read, since, seen } => {
                    self.await_translation(warp, None::<EntryId>, (read, ready));
                    let at = self.hit_at((since, read, ready), here);
                    self.warps[warp].hit_at = self.warps[warp].hit_at.max(at);
                    self.result(warp, (result, Stall::L1.into()), seen, here.out);
                }
            }
        }
    }

    /// Completion time of an L1 hit issued at `since`: the data banks deliver the bytes at `read`, and the address is
    /// translated at `translated`.
    #[inline]
    pub(super) fn hit_at(&self, (since, read, translated): (Ps, Ps, Ps), here: &mut SmContext<'_, '_, D>) -> Ps {
        let at = read.max(translated) + here.config.machine.l1.hit_latency;
        if here.config.follows_loads() {
            let tlb = translated.saturating_sub(read);
            here.shared.latencies.add_hit(tlb.0, (at - since - tlb).0);
        }
        at
    }
}
