//! What a run tells whoever checks the values its loads return. Nothing, at no cost, when lines carry no values.
//!
//! The contents of lines are a type parameter of everything that moves them. With `()` a run only takes time; with
//! contents of one's own, every store asks its [`Watch`] what it writes, and every load shows it what it returned,
//! together with the synchronisation that decides what it might have.

use crate::kernel_slot::KernelSlot;
use crate::latency::{Note, Noted};
use crate::layout::{Place, Unit};
use crate::message::{Flag, Message};
use crate::packet::Packet;
use tombolo_protocol::Data;
use tombolo_types::{GpuId, Line, Mask, ModuleId, Ps, Scope, SmId};

/// What the lines of a timing run carry.
pub trait Contents: Data + Sync {
    /// Who is told of it.
    type Watch: Watch<Self>;
    /// Whether protocols of a run may have a broken rule. Where they may not, nothing of those is in its code.
    const BREAKABLE: bool = true;
    /// Whether loads of a run can be followed ([`crate::latency`]). Where they cannot, nothing of that is in its code.
    const FOLLOWS: bool = false;
    /// What a message notes of a load's way: [`Kept`](crate::latency::Kept) where loads can be followed, otherwise `()`.
    type Note<T: Noted>: Note<T>;

    /// An atomic that leaves these contents of the bytes of `mask`, whatever was there.
    fn exchange(self, mask: Mask) -> Self::Update;
}

impl Contents for () {
    type Watch = ();
    const BREAKABLE: bool = false;
    type Note<T: Noted> = ();

    fn exchange(self, _: Mask) {}
}

/// A warp slot of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WarpSlot {
    /// GPU.
    pub gpu: GpuId,
    /// Module, over all GPUs.
    pub module: ModuleId,
    /// SM of the module.
    pub sm: SmId,
    /// Warp slot of the SM.
    pub slot: u8,
}

impl WarpSlot {
    /// The host, in a run without its core. No machine has so many modules.
    pub const HOST: WarpSlot = WarpSlot { gpu: GpuId(u8::MAX), module: ModuleId(u8::MAX), sm: SmId(0), slot: 0 };
}

/// Hears what happens, in an order that agrees with cause and effect at every thread count. All methods do nothing
/// unless they are overridden.
pub trait Watch<D: Contents>: Clone + Send + Sync + 'static {
    /// The `launch`th kernel (from 0, in the order of the program) starts on one more module, in this slot. No warp is left
    /// of the kernels that it waits for, nor of the one that was in the slot before.
    fn kernel(&self, launch: u32, slot: KernelSlot) {
        let _ = (launch, slot);
    }

    /// The host's core begins something: no kernel runs, and all before it has been done.
    fn host(&self, core: WarpSlot) {
        let _ = core;
    }

    /// Warp `index` of the CTA that starts next on its SM takes this slot.
    fn warp(&self, slot: WarpSlot, index: u32) {
        let _ = (slot, index);
    }

    /// A CTA of a kernel starts on the warp slots of an SM whose bits are set in `slots`; `one` is any of them.
    fn cta(&self, one: WarpSlot, slots: u64, kernel: KernelSlot) {
        let _ = (one, slots, kernel);
    }

    /// The warps of a CTA whose bits are set in `slots` pass a barrier together; `one` is any slot of their SM.
    fn barrier(&self, one: WarpSlot, slots: u64) {
        let _ = (one, slots);
    }

    /// A warp has made what it knows visible at a scope: the stage of a release is over.
    fn released(&self, warp: WarpSlot, scope: Scope) {
        let _ = (warp, scope);
    }

    /// A warp's poll, whose load returned into a result slot, has found a flag set.
    fn found(&self, warp: WarpSlot, result: u8, flag: Flag) {
        let _ = (warp, result, flag);
    }

    /// A warp has acquired, at a scope, through the flags it has found.
    fn acquired(&self, warp: WarpSlot, scope: Scope) {
        let _ = (warp, scope);
    }

    /// A warp issues a load into a result slot.
    fn load(&self, warp: WarpSlot, result: u8) {
        let _ = (warp, result);
    }

    /// One transaction of a load returns, at `now`, the contents of the bytes of `mask`.
    fn loaded(&self, now: Ps, warp: WarpSlot, result: u8, line: Line, mask: Mask, data: D) {
        let _ = (now, warp, result, line, mask, data);
    }

    /// What a warp stores to the bytes of `mask`, leaving `flag` behind.
    fn store(&self, warp: WarpSlot, line: Line, mask: Mask, flag: Flag) -> D {
        let _ = (warp, line, mask, flag);
        D::default()
    }

    /// What a warp's atomic does to the bytes of `mask`, leaving `flag` behind.
    fn atomic(&self, warp: WarpSlot, line: Line, mask: Mask, flag: Flag) -> D::Update {
        let _ = (warp, line, mask, flag);
        D::Update::default()
    }

    /// The host, in a run without its core, begins to read between kernels, as transfer `number`. Whether it is to be told of
    /// what it reads: [`Watch::host_read`].
    fn host_reads(&self, number: u32) -> bool {
        let _ = number;
        false
    }

    /// A read of the host, of transfer `number`, returns at `now` the contents of the bytes of `mask`.
    fn host_read(&self, now: Ps, number: u32, line: Line, mask: Mask, data: D) {
        let _ = (now, number, line, mask, data);
    }

    /// The contents that the host, in a run without its core, writes between kernels to the bytes of `mask`; `None` where these
    /// stay as they were.
    fn host_writes(&self, line: Line, mask: Mask) -> Option<D> {
        let _ = (line, mask);
        None
    }

    /// A component of `module` is about to handle a message, at `now`.
    fn handles(&self, now: Ps, module: ModuleId, unit: Unit, message: &Message<D>) {
        let _ = (now, module, unit, message);
    }

    /// The switch, a way of a GPU, the command processor or the driver is about to handle a message, at `now`.
    fn beside(&self, now: Ps, place: Place, message: &Message<D>) {
        let _ = (now, place, message);
    }

    /// How much later than the links have it a packet arrives. Packets of a channel keep their order all the same.
    fn delay(&self, source: ModuleId, target: ModuleId, packet: &Packet<D>) -> Ps {
        let _ = (source, target, packet);
        Ps::ZERO
    }

    /// How much later than the crossbar has it what source `source` of a module (a slice, or one more for all else) sends
    /// an SM arrives: the same throughout a run, so that order is kept.
    fn delivery(&self, module: ModuleId, source: usize, sm: SmId) -> Ps {
        let _ = (module, source, sm);
        Ps::ZERO
    }
}

impl Watch<()> for () {}

/// Somebody, or nobody.
impl<D: Contents, W: Watch<D>> Watch<D> for Option<W> {
    fn kernel(&self, launch: u32, slot: KernelSlot) {
        self.iter().for_each(|watch| watch.kernel(launch, slot));
    }

    fn host(&self, core: WarpSlot) {
        self.iter().for_each(|watch| watch.host(core));
    }

    fn warp(&self, slot: WarpSlot, index: u32) {
        self.iter().for_each(|watch| watch.warp(slot, index));
    }

    fn cta(&self, one: WarpSlot, slots: u64, kernel: KernelSlot) {
        self.iter().for_each(|watch| watch.cta(one, slots, kernel));
    }

    fn barrier(&self, one: WarpSlot, slots: u64) {
        self.iter().for_each(|watch| watch.barrier(one, slots));
    }

    fn released(&self, warp: WarpSlot, scope: Scope) {
        self.iter().for_each(|watch| watch.released(warp, scope));
    }

    fn found(&self, warp: WarpSlot, result: u8, flag: Flag) {
        self.iter().for_each(|watch| watch.found(warp, result, flag));
    }

    fn acquired(&self, warp: WarpSlot, scope: Scope) {
        self.iter().for_each(|watch| watch.acquired(warp, scope));
    }

    fn load(&self, warp: WarpSlot, result: u8) {
        self.iter().for_each(|watch| watch.load(warp, result));
    }

    fn loaded(&self, now: Ps, warp: WarpSlot, result: u8, line: Line, mask: Mask, data: D) {
        self.iter().for_each(|watch| watch.loaded(now, warp, result, line, mask, data));
    }

    fn store(&self, warp: WarpSlot, line: Line, mask: Mask, flag: Flag) -> D {
        self.as_ref().map_or_else(D::default, |watch| watch.store(warp, line, mask, flag))
    }

    fn atomic(&self, warp: WarpSlot, line: Line, mask: Mask, flag: Flag) -> D::Update {
        self.as_ref().map_or_else(D::Update::default, |watch| watch.atomic(warp, line, mask, flag))
    }

    fn host_reads(&self, number: u32) -> bool {
        self.as_ref().is_some_and(|watch| watch.host_reads(number))
    }

    fn host_read(&self, now: Ps, number: u32, line: Line, mask: Mask, data: D) {
        self.iter().for_each(|watch| watch.host_read(now, number, line, mask, data));
    }

    fn host_writes(&self, line: Line, mask: Mask) -> Option<D> {
        self.as_ref().and_then(|watch| watch.host_writes(line, mask))
    }

    fn handles(&self, now: Ps, module: ModuleId, unit: Unit, message: &Message<D>) {
        self.iter().for_each(|watch| watch.handles(now, module, unit, message));
    }

    fn beside(&self, now: Ps, place: Place, message: &Message<D>) {
        self.iter().for_each(|watch| watch.beside(now, place, message));
    }

    fn delay(&self, source: ModuleId, target: ModuleId, packet: &Packet<D>) -> Ps {
        self.as_ref().map_or(Ps::ZERO, |watch| watch.delay(source, target, packet))
    }

    fn delivery(&self, module: ModuleId, source: usize, sm: SmId) -> Ps {
        self.as_ref().map_or(Ps::ZERO, |watch| watch.delivery(module, source, sm))
    }
}
