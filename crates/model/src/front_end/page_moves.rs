//! A module's part in page moves, as ordered by the driver. [`tombolo_protocol::paging`] defines the effect of each
//! order on values.
//!
//! Consecutive pages with the same change share a message. Each page is handled separately; replies with the same time
//! are sent together.
//!
//! To unmap a page, the module proceeds as follows. TLBs forget the page, and L1s drop all lines (one epoch costs
//! nothing, whereas 512 lines in 80 L1s would). Loads and atomics in flight to the page are answered, and every store
//! sent by the module is acknowledged, including stores to other pages. The home of a published page answers an atomic
//! after publication: an acknowledgement alone leaves publications in flight that no other module awaits. A host's core
//! completes all outstanding accesses. The L2 drops the page's lines individually.

use crate::front_end::page_run::PageRun;
use crate::l2::backend::{L2Design, L2Slice};
use crate::l2::posted::Drainer;
use crate::message::{Message, PagingOrder};
use crate::module::controller::Controller;
use crate::module::parts::Parts;
use crate::observe::value_probe::Contents;
use tombolo_protocol::paging::PagePermission;
use tombolo_types::{Page, Ps};

/// Carries out a driver's order. The module's address map has been updated already.
pub(crate) fn obey<C: L2Design<D>, D: Contents>(pages: PageRun, order: PagingOrder, parts: &mut Parts<'_, '_, C, D>) {
    match order {
        PagingOrder::Unmap => unmap(pages, parts),
        PagingOrder::WriteBack => write_back_all(pages, parts),
        PagingOrder::Map(mapping) => {
            let wakes = mapping.is_some_and(|mapping| mapping.access > PagePermission::None);
            for page in pages.pages() {
                forget(page, parts);
                if wakes {
                    wake(page, parts);
                }
            }
            answer(pages, parts.out.now(), parts);
        }
    }
}

/// Wakes warps that have waited for a page, or the host's core, to retry.
fn wake<C: L2Design<D>, D: Contents>(page: Page, parts: &mut Parts<'_, '_, C, D>) {
    for (sm, warp) in parts.sm_side.shared.pages.wake(page) {
        match parts.sm_side.core {
            Some(_) => parts.at_core(|core, here| core.page_mapped(here)),
            None => parts.at_sm(usize::from(sm.0), |sm, here| sm.page_mapped(warp, here)),
        }
    }
}

fn unmap<C: L2Design<D>, D: Contents>(pages: PageRun, parts: &mut Parts<'_, '_, C, D>) {
    let (rules, controller) = (parts.config.paging.unmapping(), parts.config.layout.controller(parts.config.module));
    let sms = if rules.awaits_stores { u32::from(parts.sms()) } else { 0 };
    let core = u32::from(parts.sm_side.core.is_some());
    for page in pages.pages() {
        forget(page, parts);
        let waits_for_loads = rules.awaits_loads && parts.sm_side.shared.pages.has_loads(page);
        // The extra part for this event defers the report until after the event, even if all parts are complete at
        // once.
        parts.sm_side.shared.pages.unmap(page, 1 + u32::from(waits_for_loads) + sms + core);
    }
    parts.out.send(parts.out.now() + Ps(1), controller, controller, Message::PageQuiet { pages });
    if sms > 0 {
        parts.send_to_sms(parts.out.now(), controller, Message::Drain(Drainer::Pages(pages)));
    }
    parts.at_core(|core, here| core.drain(pages, here));
}

/// A part in the unmapping of each page is complete.
pub(crate) fn quiet<C: L2Design<D>, D: Contents>(
    pages: PageRun,
    controller: &mut Controller,
    parts: &mut Parts<'_, '_, C, D>,
) {
    let rules = parts.config.paging.unmapping();
    let ended: Vec<Page> = pages.pages().filter(|page| parts.sm_side.shared.pages.part_ends(*page)).collect();
    // The SMs' atomics have left for the home by now.
    let waits = |page: &Page| rules.awaits_loads && has_unanswered(*page, parts);
    let (unanswered, over): (Vec<Page>, Vec<Page>) = ended.into_iter().partition(waits);
    unanswered.into_iter().for_each(|page| parts.sm_side.shared.pages.await_answers(page));
    for pages in PageRun::all(over) {
        if rules.awaits_stores {
            let number = parts.sm_side.shared.pages.drains(pages);
            controller.await_stores(pages, number, parts);
        } else {
            answer(pages, parts.out.now(), parts);
        }
    }
}

/// True if an atomic of this module to a page has not been answered by the page's home.
pub(crate) fn has_unanswered<C: L2Design<D>, D: Contents>(page: Page, parts: &Parts<'_, '_, C, D>) -> bool {
    let map = &parts.config.map;
    parts.uncore.publisher.as_ref().is_some_and(|publisher| publisher.has_unanswered(|line| map.page(line) == page))
}

/// The L2 gives up pages one after the other. Pages completed at the same time share a reply.
fn write_back_all<C: L2Design<D>, D: Contents>(pages: PageRun, parts: &mut Parts<'_, '_, C, D>) {
    let mut done: Vec<(Ps, PageRun)> = Vec::new();
    for page in pages.pages() {
        let taken = write_back(page, parts);
        if !done.last_mut().is_some_and(|(at, before)| *at == taken && before.extend(page)) {
            done.push((taken, PageRun::of(page)));
        }
    }
    for (taken, pages) in done {
        answer(pages, taken, parts);
    }
}

/// Drops a page's translations in all TLBs of the module, and the contents of all L1s.
fn forget<C: L2Design<D>, D: Contents>(page: Page, parts: &mut Parts<'_, '_, C, D>) {
    parts.sm_side.forget_page(page);
    let bank = parts.config.tlb_bank(page);
    parts.slice_side.bank(bank).forget(page);
    if let Some(publisher) = &mut parts.uncore.publisher {
        publisher.forget(page);
    }
}

/// Makes the L2 write a page's dirty bytes to memory and drop its lines. Returns when memory has accepted the bytes.
pub(crate) fn write_back<C: L2Design<D>, D: Contents>(page: Page, parts: &mut Parts<'_, '_, C, D>) -> Ps {
    let mut taken = parts.out.now();
    for line in parts.config.map.page_lines(page) {
        let slice = parts.config.map.slice(line);
        taken = taken.max(parts.at_slice(slice, |slice, here| slice.release_line(line, here)));
    }
    taken
}

/// Reports to the driver that the module's part is complete at `at`.
pub(crate) fn answer<C: L2Design<D>, D: Contents>(pages: PageRun, at: Ps, parts: &mut Parts<'_, '_, C, D>) {
    let layout = parts.config.layout;
    let at = at.max(parts.out.now()) + crate::convert::host_latency(&parts.config.machine);
    parts.out.send(at, layout.controller(parts.config.module), layout.driver(), Message::PagingDone { pages });
}
