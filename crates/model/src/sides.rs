//! The two sides of a module's crossbar: SMs with their ports, and L2 slices with memory behind them. Nothing that changes is
//! in both. What a controller asks of all of a side at once is a method here.

use crate::below::{Below, L2};
use crate::context::{SliceShared, SmShared};
use crate::cpu::Cpu;
use crate::crossbar::SmPort;
use crate::kernel_slot::KernelSlot;
use crate::pace::KernelStats;
use crate::sm::Sm;
use crate::watch::Contents;
use tombolo_types::Page;

/// The SMs of a module, or the core of the host.
pub struct SmSide<D: Contents> {
    /// Its SMs; none where there is a core.
    pub sms: Vec<Sm<D>>,
    /// What they share.
    pub shared: SmShared,
    /// Their ports at the crossbar, by SM; the core has the first.
    pub ports: Vec<SmPort>,
    /// The core of the host.
    pub core: Option<Cpu>,
}

impl<D: Contents> SmSide<D> {
    /// A kernel starts in a slot, whose flags are new. `invalidates`: and what L1s hold is dropped.
    pub fn begin_kernel(&mut self, slot: KernelSlot, invalidates: bool) {
        for sm in &mut self.sms {
            sm.forget_flags(slot);
            if invalidates {
                sm.invalidate_l1();
            }
        }
    }

    /// What the SMs have counted of a kernel that has ended.
    pub fn take_counted(&mut self, slot: KernelSlot) -> KernelStats {
        let counted = self.sms.iter_mut().map(|sm| sm.take_counted(slot));
        counted.fold(KernelStats::default(), |sum, sm| sum.and(&sm))
    }

    /// Translations of a page are forgotten, and what L1s hold of it with all else.
    pub fn forget_page(&mut self, page: Page) {
        self.shared.translation.forget(page);
        for sm in &mut self.sms {
            sm.forget_page(page);
        }
    }
}

/// The L2 slices of a module, and its memory.
pub struct SliceSide<C: Below<D>, D: Contents> {
    /// The slices.
    pub slices: Vec<C::Slice>,
    /// What they share.
    pub shared: SliceShared<D>,
}

impl<C: Below<D>, D: Contents> SliceSide<C, D> {
    /// Lines that the slices hold, and those of them that are dirty.
    pub fn held(&mut self) -> (u32, u32) {
        let slices = self.slices.iter_mut().map(|slice| slice.held());
        slices.fold((0, 0), |(valid, dirty), (more, more_dirty)| (valid + more, dirty + more_dirty))
    }
}
