//! Translations of an SM: its TLB, and what waits for those that its module's L2 TLB has been asked for.
//!
//! Only a transaction waits for its translation: others of its warp and of the SM go on (hit under miss). A request leaves, and
//! a hit is read, as the translation comes. Requests of one page keep their order.

use super::Sm;
use super::latency::{Asked, Departs};
use crate::context::SmContext;
use crate::message::{LineRequest, Message};
use crate::mshr::EntryId;
use crate::stall::Stall;
use crate::watch::Contents;
use tombolo_protocol::Protocol;
use tombolo_types::{Line, Page, Ps};

/// A page whose translation is asked for.
pub(super) struct Awaited<D: Contents> {
    page: Page,
    /// When the L2 TLB answers.
    earliest: Ps,
    /// What waits for it, in order.
    held: Vec<Held<D>>,
}

/// What waits for a translation.
enum Held<D: Contents> {
    /// A request to the slices.
    Request {
        body: LineRequest<D>,
        departs: Departs,
        /// Of a read: when its load was made.
        since: Option<Ps>,
        /// The warp that counts the wait as its own.
        warp: Option<usize>,
    },
    /// A load that has hit.
    Hit {
        warp: usize,
        result: u8,
        /// When its bytes are read.
        read: Ps,
        since: Ps,
        /// Whether it is a poll that has seen its flag.
        seen: bool,
    },
}

/// When a translation is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Translation {
    /// Then.
    At(Ps),
    /// The L2 TLB has been asked, and says so no earlier than then.
    Awaited(Ps),
}

impl Translation {
    /// When it is there, at the earliest.
    #[inline]
    pub(super) fn earliest(self) -> Ps {
        match self {
            Translation::At(at) | Translation::Awaited(at) => at,
        }
    }
}

impl<D: Contents> Sm<D> {
    /// Translates a line's page.
    #[inline]
    pub(super) fn translate<C: Protocol>(&mut self, line: Line, here: &mut SmContext<'_, '_, C, D>) -> Translation {
        let now = here.out.now();
        let page = self.page(line);
        match self.tlb.lookup(now, page) {
            Some(ready) if ready > now => match self.answered(page) {
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

    /// When the L2 TLB answers for a page that it has been asked for.
    fn answered(&self, page: Page) -> Option<Ps> {
        self.awaited.iter().find(|awaited| awaited.page == page).map(|awaited| awaited.earliest)
    }

    /// Asks the page's bank of the L2 TLB.
    #[cold]
    fn ask_l2_tlb<C: Protocol>(&mut self, page: Page, here: &mut SmContext<'_, '_, C, D>) -> Translation {
        let (now, machine) = (here.out.now(), &here.site.machine);
        self.stats.tlb_misses += 1;
        let asked = self.answered(page);
        let earliest = asked.unwrap_or(now + machine.tlb.l2_latency);
        // What comes at the same time as the answer waits for it.
        self.tlb.fill(page, earliest + Ps(1));
        if asked.is_none() {
            self.awaited.push(Awaited { page, earliest, held: Vec::new() });
            let bank = here.site.layout.slice(here.site.module, here.site.tlb_bank(page));
            let at = now + crate::convert::to_l2_tlb(machine);
            here.out.send(at, self.id, bank, Message::Translate { sm: self.sm, page });
        }
        Translation::Awaited(earliest)
    }

    /// Sends a request as it departs, or once its translation is there. `since`: of a read, when its load was made; `warp`: who
    /// counts the wait for the translation as its own.
    #[inline]
    pub(super) fn send_translated<C: Protocol>(
        &mut self,
        body: LineRequest<D>,
        (departs, translation): (Departs, Translation),
        (since, warp): (Option<Ps>, Option<usize>),
        here: &mut SmContext<'_, '_, C, D>,
    ) {
        match translation {
            Translation::At(_) => self.send(body, departs.reaches(), here),
            Translation::Awaited(_) => self.hold(body.line, Held::Request { body, departs, since, warp }),
        }
    }

    /// A hit waits for its translation.
    pub(super) fn hold_hit(&mut self, line: Line, (warp, result): (usize, u8), (since, read): (Ps, Ps), seen: bool) {
        self.hold(line, Held::Hit { warp, result, read, since, seen });
    }

    #[cold]
    fn hold(&mut self, line: Line, held: Held<D>) {
        let page = self.page(line);
        let awaited = self.awaited.iter_mut().find(|awaited| awaited.page == page);
        awaited.expect("the page has just been found to be awaited").held.push(held);
    }

    /// The L2 TLB has answered: the translation of `page` is there at `ready`.
    pub fn translated<C: Protocol>(
        &mut self,
        (page, ready, walked): (Page, Ps, bool),
        here: &mut SmContext<'_, '_, C, D>,
    ) {
        self.stats.tlb_walks += u64::from(walked);
        self.tlb.set_ready(page, ready);
        let place = self.awaited.iter().position(|awaited| awaited.page == page);
        let Awaited { held, .. } = self.awaited.swap_remove(place.expect("an SM gets the translations it asks for"));
        for held in held {
            match held {
                Held::Request { body, departs, since, warp } => {
                    let departs = Departs { translated: ready, ..departs };
                    let register = body.origin.register;
                    if let Some(since) = since
                        && here.site.follows_loads()
                    {
                        self.asked.set(register, Asked::new(since, departs));
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
                Held::Hit { warp, result, read, since, seen } => {
                    self.await_translation(warp, None::<EntryId>, (read, ready));
                    let at = self.hit_at((since, read, ready), here);
                    self.warps[warp].hit_at = self.warps[warp].hit_at.max(at);
                    self.result(warp, (result, Stall::L1.into()), seen, here.out);
                }
            }
        }
    }

    /// When a hit has its bytes, which were read at `read` and are translated at `translated`.
    #[inline]
    pub(super) fn hit_at<C: Protocol>(
        &self,
        (since, read, translated): (Ps, Ps, Ps),
        here: &mut SmContext<'_, '_, C, D>,
    ) -> Ps {
        let at = read.max(translated) + here.site.machine.l1.hit_latency;
        if here.site.follows_loads() {
            let tlb = translated.saturating_sub(read);
            here.shared.latencies.add_hit(tlb.0, (at - since - tlb).0);
        }
        at
    }
}
