//! A module's part of the move of a page, as the driver orders it. What each order means for values
//! [`tombolo_protocol::paging`] says.
//!
//! A page is unmapped: TLBs forget it, L1s drop all that they hold (one epoch costs nothing where 512 lines in 80 L1s would),
//! loads under way to it are answered, and every store that the module has sent is taken. That waits for stores to other
//! pages too. A host's core has all that it has outstanding answered. The L2 drops its lines one by one.

use crate::below::{Below, L2};
use crate::controller::Controller;
use crate::message::{Message, PagingOrder};
use crate::parts::Parts;
use crate::posted::Drainer;
use crate::watch::Contents;
use tombolo_protocol::paging::Access;
use tombolo_types::{Page, Ps};

/// Does what the driver orders. The module's map has been told already.
pub(crate) fn obey<C: Below<D>, D: Contents>(page: Page, order: PagingOrder, parts: &mut Parts<'_, '_, C, D>) {
    match order {
        PagingOrder::Unmap => unmap(page, parts),
        PagingOrder::WriteBack => {
            let taken = write_back(page, parts);
            answer(page, taken, parts);
        }
        PagingOrder::Map(mapping) => {
            forget(page, parts);
            if mapping.is_some_and(|mapping| mapping.access > Access::None) {
                for (sm, warp) in parts.sm_side.shared.pages.wake(page) {
                    match parts.sm_side.core {
                        Some(_) => parts.at_core(|core, here| core.page_mapped(here)),
                        None => parts.at_sm(usize::from(sm.0), |sm, here| sm.page_mapped(warp, here)),
                    }
                }
            }
            answer(page, parts.out.now(), parts);
        }
    }
}

fn unmap<C: Below<D>, D: Contents>(page: Page, parts: &mut Parts<'_, '_, C, D>) {
    let (rules, controller) = (parts.site.paging.unmapping(), parts.site.layout.controller(parts.site.module));
    forget(page, parts);
    let waits_for_loads = rules.awaits_loads && parts.sm_side.shared.pages.has_loads(page);
    let sms = if rules.awaits_stores { u32::from(parts.sms()) } else { 0 };
    let core = u32::from(parts.sm_side.core.is_some());
    // One more for this event: what is over at once is told behind it.
    parts.sm_side.shared.pages.unmap(page, 1 + u32::from(waits_for_loads) + sms + core);
    parts.out.send(parts.out.now() + Ps(1), controller, controller, Message::PageQuiet { page });
    if sms > 0 {
        parts.tell_sms(parts.out.now(), controller, Message::Drain(Drainer::Page(page)));
    }
    parts.at_core(|core, here| core.drain(page, here));
}

/// A part of a page's unmapping is over.
pub(crate) fn quiet<C: Below<D>, D: Contents>(
    page: Page,
    controller: &mut Controller,
    parts: &mut Parts<'_, '_, C, D>,
) {
    if !parts.sm_side.shared.pages.part_ends(page) {
        return;
    }
    if parts.site.paging.unmapping().awaits_stores {
        let number = parts.sm_side.shared.pages.drains(page);
        controller.await_stores(number, parts);
    } else {
        answer(page, parts.out.now(), parts);
    }
}

/// Translations of a page are forgotten, and what L1s hold of it with all else.
fn forget<C: Below<D>, D: Contents>(page: Page, parts: &mut Parts<'_, '_, C, D>) {
    parts.sm_side.forget_page(page);
    let bank = parts.site.tlb_bank(page);
    parts.slice_side.bank(bank).forget(page);
    if let Some(publisher) = &mut parts.uncore.publisher {
        publisher.forget(page);
    }
}

/// The L2 writes a page's dirty bytes to memory and drops its lines. Returns when memory has taken them.
pub(crate) fn write_back<C: Below<D>, D: Contents>(page: Page, parts: &mut Parts<'_, '_, C, D>) -> Ps {
    let mut taken = parts.out.now();
    for line in parts.site.map.page_lines(page) {
        let slice = parts.site.map.slice(line);
        taken = taken.max(parts.at_slice(slice, |slice, here| slice.give_up(line, here)));
    }
    taken
}

/// Tells the driver that the module's part is done at `at`.
pub(crate) fn answer<C: Below<D>, D: Contents>(page: Page, at: Ps, parts: &mut Parts<'_, '_, C, D>) {
    let layout = parts.site.layout;
    let at = at.max(parts.out.now()) + crate::convert::host_latency(&parts.site.machine);
    parts.out.send(at, layout.controller(parts.site.module), layout.driver(), Message::PagingDone { page });
}
