//! Paging orders issued by the driver in a single event.
//!
//! Identical orders for consecutive pages are merged into a single message per module. Without this merging, the end
//! of access tracking would send a message per page, and a program with gigabytes of data has very many pages.

use crate::front_end::page_run::PageRun;
use crate::layout::ComponentLayout;
use crate::message::{Message, Out, PagingOrder};
use crate::observe::value_probe::Contents;
use tombolo_types::{ModuleId, Page, Ps};

/// Order for a module.
#[derive(Clone, Copy, Debug)]
struct IssuedOrder {
    module: ModuleId,
    pages: PageRun,
    order: PagingOrder,
}

/// Orders issued but not sent.
#[derive(Clone, Debug)]
pub(super) struct Orders {
    /// Orders in issue order.
    issued: Vec<IssuedOrder>,
    /// Index of the latest order in `given`, per module.
    latest: Vec<Option<usize>>,
    /// Pages whose shootdown starts.
    shot_down: Vec<PageRun>,
}

impl Orders {
    /// Creates an empty set of orders for `modules` modules.
    pub(super) fn new(modules: u8) -> Orders {
        Orders { issued: Vec::new(), latest: vec![None; usize::from(modules)], shot_down: Vec::new() }
    }

    /// Issues an order about a page to a module, merged with the module's latest order if possible.
    pub(super) fn give(&mut self, module: ModuleId, page: Page, order: PagingOrder) {
        let latest = &mut self.latest[usize::from(module.0)];
        if let Some(IssuedOrder { pages, order: before, .. }) = latest.map(|index| &mut self.issued[index])
            && *before == order
            && pages.extend(page)
        {
            return;
        }
        *latest = Some(self.issued.len());
        self.issued.push(IssuedOrder { module, pages: PageRun::of(page), order });
    }

    /// Starts the shootdown for a page.
    pub(super) fn shoot_down(&mut self, page: Page) {
        if !self.shot_down.last_mut().is_some_and(|pages| pages.extend(page)) {
            self.shot_down.push(PageRun::of(page));
        }
    }

    /// Sends all orders: modules receive them at `heard`, and shootdowns are prepared at `prepared`.
    pub(super) fn send<D: Contents>(
        &mut self,
        (heard, prepared): (Ps, Ps),
        layout: ComponentLayout,
        out: &mut Out<'_, D>,
    ) {
        let driver = layout.driver();
        for IssuedOrder { module, pages, order } in self.issued.drain(..) {
            self.latest[usize::from(module.0)] = None;
            out.send(heard, driver, layout.controller(module), Message::Paging { pages, order });
        }
        for pages in self.shot_down.drain(..) {
            out.send(prepared, driver, driver, Message::Shootdown { pages });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Issued orders as module, pages, and true for an unmap.
    fn issued(orders: &Orders) -> Vec<(u8, Vec<u64>, bool)> {
        let told = |one: &IssuedOrder| {
            (one.module.0, one.pages.pages().map(|page| page.0).collect(), one.order == PagingOrder::Unmap)
        };
        orders.issued.iter().map(told).collect()
    }

    #[test]
    fn alike_orders_about_pages_in_a_row_are_one_to_each_module() {
        let mut orders = Orders::new(2);
        for page in [4, 5, 6] {
            (0..2).for_each(|module| orders.give(ModuleId(module), Page(page), PagingOrder::Unmap));
        }
        assert_eq!(issued(&orders), [(0, vec![4, 5, 6], true), (1, vec![4, 5, 6], true)]);
    }

    #[test]
    fn what_differs_or_lies_apart_is_told_in_its_order() {
        let mut orders = Orders::new(1);
        let all =
            [(4, PagingOrder::Unmap), (5, PagingOrder::WriteBack), (6, PagingOrder::Unmap), (8, PagingOrder::Unmap)];
        all.into_iter().for_each(|(page, order)| orders.give(ModuleId(0), Page(page), order));
        assert_eq!(issued(&orders), [(0, vec![4], true), (0, vec![5], false), (0, vec![6], true), (0, vec![8], true)]);
    }
}
