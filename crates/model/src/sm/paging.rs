//! Pages that move, as an SM meets them: an access that its module may not make waits until the driver has mapped the page.

use super::Sm;
use crate::context::SmContext;
use crate::message::Message;
use crate::page_run::PageRun;
use crate::stall::Stall;
use crate::watch::Contents;
use tombolo_protocol::Protocol;
use tombolo_protocol::paging::Wanted;
use tombolo_types::stream::{Accesses, Op, PackedOrder};
use tombolo_types::{Line, Page, Ps, Scope, Semantics};

impl<D: Contents> Sm<D> {
    /// Whether the module may not make the next access of a warp's instruction `op`, number `issued` of `accesses`. Then the
    /// warp is called when the page is mapped. The driver is told of every page of the instruction that is missing, once a
    /// page: the walks have found no mapping.
    pub(super) fn faults<C: Protocol>(
        &mut self,
        slot: usize,
        (accesses, issued): (Accesses, u8),
        op: Op,
        here: &mut SmContext<'_, '_, C, D>,
    ) -> bool {
        let wanted = wanted(op);
        let (map, rules) = (&here.site.map, here.site.paging);
        let first = self.next_line(slot, (accesses, issued));
        if map.allows(self.module, rules, first, wanted) {
            return false;
        }
        self.stats.page_waits += 1;
        here.shared.pages.park(map.page(first), (self.sm, slot as u8));
        for index in issued..accesses.len {
            let line = self.next_line(slot, (accesses, index));
            if !map.allows(self.module, rules, line, wanted) && here.shared.pages.ask(map.page(line), wanted) {
                self.tell_driver(map.page(line), wanted, here);
            }
        }
        true
    }

    fn next_line(&self, slot: usize, (accesses, index): (Accesses, u8)) -> Line {
        self.cta(slot).stream.accesses[accesses.range()][usize::from(index)].line
    }

    fn tell_driver<C: Protocol>(&self, page: Page, wanted: Wanted, here: &mut SmContext<'_, '_, C, D>) {
        let at = here.out.now() + crate::convert::to_l2_tlb(&here.site.machine);
        let bank = here.site.layout.slice(self.module, here.site.tlb_bank(page));
        here.out.send(at, self.id, bank, Message::Walk { page, wanted });
    }

    /// The module may use a page: a warp that has waited for it tries again.
    pub fn page_mapped<C: Protocol>(&mut self, warp: u8, here: &mut SmContext<'_, '_, C, D>) {
        self.resume(usize::from(warp), Stall::Page.into(), here);
    }

    /// The module is not to use a page as it did.
    pub fn forget_page(&mut self, page: Page) {
        self.tlb.invalidate(page);
        self.invalidate_l1();
    }

    /// The miss of a line is over.
    pub(super) fn miss_ends<C: Protocol>(&mut self, line: Line, here: &mut SmContext<'_, '_, C, D>) {
        let page = here.site.map.page(line);
        if here.shared.pages.load_ends(page) {
            let controller = here.site.layout.controller(here.site.module);
            here.out.send(here.out.now() + Ps(1), self.id, controller, Message::PageQuiet { pages: PageRun::of(page) });
        }
    }
}

/// What an instruction asks of the pages that it accesses.
fn wanted(op: Op) -> Wanted {
    match op {
        Op::Store { order, .. } | Op::Atomic { order, .. } if is_of_the_system(order) => Wanted::SystemStore,
        Op::Store { .. } | Op::Atomic { .. } => Wanted::Store,
        _ => Wanted::Load,
    }
}

fn is_of_the_system(order: PackedOrder) -> bool {
    let order = order.order();
    order.scope == Scope::Sys && order.semantics != Semantics::Weak
}
