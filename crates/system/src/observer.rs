//! Observers that users write. A run reports launches, memory accesses, synchronisation and packet arrivals to each
//! observer, and takes the same time as without observers.
//!
//! [`Simulation::observe`](crate::Simulation::observe) adds an [`Observer`] to a run. The order of reports is consistent
//! with cause and effect. Independent events in different modules may be reported in another order at another number of
//! threads: counts, sums and largest values do not depend on this order.

use crate::checker::bits;
use rustc_hash::FxHashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tombolo_model::message::Message;
use tombolo_model::observe::{Contents, WarpSlot};
use tombolo_model::sm::{KernelSlot, entry};
use tombolo_types::{GpuId, Line, LineSize, Mask, ModuleId, Ps, Scope, SmId};

/// A warp, by its place in the machine, or the host's core.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WarpPlace {
    /// GPU number; the number after the last GPU is the host.
    pub gpu: GpuId,
    /// Module number, over all GPUs.
    pub module: ModuleId,
    /// SM number in the module.
    pub sm: SmId,
    /// Warp slot in the SM.
    pub slot: u8,
    /// Launch that the warp belongs to, from 0 in program order; `None` for the host.
    pub launch: Option<u32>,
}

/// Bytes of a line that a warp accesses in one transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LineAccess {
    /// Address of the line's first byte.
    pub address: u64,
    /// Accessed parts of the line: bit `i` is its `i`th 32nd.
    pub mask: Mask,
    /// Accessed bytes, in whole 32nds of the line.
    pub bytes: u32,
}

/// A packet that arrives at a module over the links.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PacketArrival {
    /// Sending module.
    pub source: ModuleId,
    /// Receiving module.
    pub target: ModuleId,
    /// Bytes that the packet occupies on each link of its path, header included.
    pub bytes: u32,
}

/// An observer of a run. By default, all methods do nothing.
pub trait Observer: Send {
    /// Launch `launch`, from 0 in program order, starts on its first module.
    fn kernel_started(&mut self, launch: u32) {
        let _ = launch;
    }

    /// A CTA of `warps` warps starts; `first` is its first warp.
    fn cta_started(&mut self, first: WarpPlace, warps: u32) {
        let _ = (first, warps);
    }

    /// A transaction of a load returns to its warp, at `now`.
    fn loaded(&mut self, now: Ps, by: WarpPlace, access: LineAccess) {
        let _ = (now, by, access);
    }

    /// A warp issues a transaction of a store.
    fn stored(&mut self, by: WarpPlace, access: LineAccess) {
        let _ = (by, access);
    }

    /// A warp issues a transaction of an atomic.
    fn updated(&mut self, by: WarpPlace, access: LineAccess) {
        let _ = (by, access);
    }

    /// A warp's release at a scope is complete.
    fn released(&mut self, by: WarpPlace, scope: Scope) {
        let _ = (by, scope);
    }

    /// A warp has acquired at a scope.
    fn acquired(&mut self, by: WarpPlace, scope: Scope) {
        let _ = (by, scope);
    }

    /// A packet has arrived at a module, at `now`, before it passes the module's ingress.
    fn packet_arrived(&mut self, now: Ps, packet: PacketArrival) {
        let _ = (now, packet);
    }
}

/// An observer shared between a run and its owner, who reads it when the run has ended.
pub type SharedObserver = Arc<Mutex<dyn Observer>>;

/// The observers of a run.
pub(crate) struct ObserverSet {
    line: LineSize,
    state: Mutex<ObservedWarps>,
    observers: Vec<SharedObserver>,
}

/// Launches in progress.
#[derive(Default)]
struct ObservedWarps {
    /// Launch by kernel slot.
    launches: Vec<Option<u32>>,
    /// Launch by warp slot.
    of_warp: FxHashMap<WarpSlot, u32>,
}

impl ObserverSet {
    pub(crate) fn new(line: LineSize, observers: Vec<SharedObserver>) -> ObserverSet {
        ObserverSet { line, state: Mutex::default(), observers }
    }

    fn state(&self) -> MutexGuard<'_, ObservedWarps> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn each(&self, tell: impl Fn(&mut dyn Observer)) {
        self.observers.iter().for_each(|observer| tell(&mut *observer.lock().unwrap_or_else(PoisonError::into_inner)));
    }

    fn place(&self, slot: WarpSlot) -> WarpPlace {
        let launch = self.state().of_warp.get(&slot).copied();
        WarpPlace { gpu: slot.gpu, module: slot.module, sm: slot.sm, slot: slot.slot, launch }
    }

    fn access(&self, line: Line, mask: Mask) -> LineAccess {
        LineAccess { address: self.line.address_of(line), mask, bytes: mask.grains() * self.line.grain() as u32 }
    }

    pub(crate) fn kernel(&self, launch: u32, slot: KernelSlot) {
        if entry(&mut self.state().launches, slot).replace(launch) != Some(launch) {
            self.each(|observer| observer.kernel_started(launch));
        }
    }

    pub(crate) fn cta(&self, one: WarpSlot, slots: u64, kernel: KernelSlot) {
        {
            let state = &mut *self.state();
            let launch = entry(&mut state.launches, kernel).expect("a kernel starts before its CTAs");
            state.of_warp.extend(bits(slots).map(|slot| (WarpSlot { slot, ..one }, launch)));
        }
        let first = self.place(WarpSlot { slot: slots.trailing_zeros() as u8, ..one });
        self.each(|observer| observer.cta_started(first, slots.count_ones()));
    }

    pub(crate) fn loaded(&self, now: Ps, by: WarpSlot, line: Line, mask: Mask) {
        let (by, access) = (self.place(by), self.access(line, mask));
        self.each(|observer| observer.loaded(now, by, access));
    }

    pub(crate) fn store(&self, by: WarpSlot, line: Line, mask: Mask) {
        let (by, access) = (self.place(by), self.access(line, mask));
        self.each(|observer| observer.stored(by, access));
    }

    pub(crate) fn atomic(&self, by: WarpSlot, line: Line, mask: Mask) {
        let (by, access) = (self.place(by), self.access(line, mask));
        self.each(|observer| observer.updated(by, access));
    }

    pub(crate) fn released(&self, by: WarpSlot, scope: Scope) {
        let by = self.place(by);
        self.each(|observer| observer.released(by, scope));
    }

    pub(crate) fn acquired(&self, by: WarpSlot, scope: Scope) {
        let by = self.place(by);
        self.each(|observer| observer.acquired(by, scope));
    }

    pub(crate) fn handles<D: Contents>(&self, now: Ps, message: &Message<D>) {
        if let Message::Arrive { route, .. } = message {
            let packet = PacketArrival { source: route.source, target: route.target, bytes: u32::from(route.bytes) };
            self.each(|observer| observer.packet_arrived(now, packet));
        }
    }
}
