//! Page faults at an SM: an access without a valid mapping in its module waits until the driver has mapped the page.

use super::Sm;
use crate::front_end::page_run::PageRun;
use crate::message::Message;
use crate::module::context::SmContext;
use crate::observe::stall::Stall;
use crate::observe::value_probe::Contents;
use tombolo_protocol::paging::AttemptedAccess;
use tombolo_types::stream::{Accesses, Op, PackedOrder};
use tombolo_types::{Line, Page, Ps, Scope, Semantics};

impl<D: Contents> Sm<D> {
    /// True if the next access by a warp's instruction `op` faults: access number `issued` in `accesses`. The warp is
    /// resumed when the page is mapped. Each missing page in the instruction is reported to the driver once, after its
    /// walk found no mapping.
    pub(super) fn faults(
        &mut self,
        slot: usize,
        (accesses, issued): (Accesses, u8),
        op: Op,
        here: &mut SmContext<'_, '_, D>,
    ) -> bool {
        let wanted = wanted(op);
        let (map, rules) = (&here.config.map, here.config.paging);
        let first = self.next_line(slot, (accesses, issued));
        if map.allows(self.module, rules, first, wanted) {
            return false;
        }
        self.stats.page_waits += 1;
        here.shared.pages.park(map.page(first), (self.sm, slot as u8));
        for index in issued..accesses.len {
            let line = self.next_line(slot, (accesses, index));
            if !map.allows(self.module, rules, line, wanted) && here.shared.pages.ask(map.page(line), wanted) {
                self.report_fault(map.page(line), wanted, here);
            }
        }
        true
    }

    fn next_line(&self, slot: usize, (accesses, index): (Accesses, u8)) -> Line {
        self.cta(slot).stream.accesses[accesses.range()][usize::from(index)].line
    }

    fn report_fault(&self, page: Page, wanted: AttemptedAccess, here: &mut SmContext<'_, '_, D>) {
        let at = here.out.now() + crate::convert::to_l2_tlb(&here.config.machine);
        let bank = here.config.layout.slice(self.module, here.config.tlb_bank(page));
        here.out.send(at, self.id, bank, Message::Walk { page, wanted });
    }

    /// Resumes a warp after its page has been mapped for this module.
    pub(crate) fn page_mapped(&mut self, warp: u8, here: &mut SmContext<'_, '_, D>) {
        self.resume(usize::from(warp), Stall::Page.into(), here);
    }

    /// Removes a page's translation from the TLB and invalidates the L1, after the module lost its mapping.
    pub(crate) fn forget_page(&mut self, page: Page) {
        self.tlb.invalidate(page);
        self.invalidate_l1();
    }

    /// Ends a miss on a line whose page can move; notifies the controller when the page has no misses left.
    pub(super) fn miss_ends(&mut self, line: Line, here: &mut SmContext<'_, '_, D>) {
        let page = here.config.map.page(line);
        if here.shared.pages.load_ends(page) {
            let controller = here.config.layout.controller(here.config.module);
            here.out.send(here.out.now() + Ps(1), self.id, controller, Message::PageQuiet { pages: PageRun::of(page) });
        }
    }
}

/// Returns the access right required by an instruction on its pages.
fn wanted(op: Op) -> AttemptedAccess {
    match op {
        Op::Store { order, .. } | Op::Atomic { order, .. } if is_of_the_system(order) => AttemptedAccess::SystemStore,
        Op::Store { .. } | Op::Atomic { .. } => AttemptedAccess::Store,
        _ => AttemptedAccess::Load,
    }
}

fn is_of_the_system(order: PackedOrder) -> bool {
    let order = order.order();
    order.scope == Scope::Sys && order.semantics != Semantics::Weak
}
