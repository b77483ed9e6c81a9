//! Value probe: the interface through which a run reports load values to a checker. It costs nothing if lines carry no
//! values.
//!
//! The line contents are a type parameter for all code that moves lines. With `()` a run only takes time. With real
//! contents, every store requests its value from the [`ValueProbe`], and every load reports its result, together with the
//! synchronisation that determines the allowed results.

use crate::fabric::packet::Packet;
use crate::layout::{ComponentKind, Unit};
use crate::message::{Flag, Message};
use crate::observe::latency::{Note, NoteValue};
use crate::sm::kernel_slot::KernelSlot;
use tombolo_protocol::Data;
use tombolo_types::{GpuId, Line, Mask, ModuleId, Ps, Scope, SmId};

/// Contents of the lines in a timing run: nothing, or values for a checker.
pub trait Contents: Data + Sync {
    /// The observer.
    type Probe: ValueProbe<Self>;
    /// True if a run's protocols may have a broken rule. If false, L2s have no code for broken rules.
    const BREAKABLE: bool = true;
    /// True if a run's loads can be followed (`observe/latency.rs`). If false, no code for this is compiled in.
    const FOLLOWS: bool = false;
    /// Latency note in a message: [`StoredNote`](crate::observe::latency::StoredNote) if loads can be followed, otherwise `()`.
    type Note<T: NoteValue>: Note<T>;

    /// An atomic that replaces the bytes in `mask` by `self`, regardless of the previous contents.
    fn exchange(self, mask: Mask) -> Self::Update;
}

impl Contents for () {
    type Probe = ();
    const BREAKABLE: bool = false;
    type Note<T: NoteValue> = ();

    fn exchange(self, _: Mask) {}
}

/// A warp slot in the machine, identified by its position. The host counts as a warp slot, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WarpSlot {
    /// GPU number.
    pub gpu: GpuId,
    /// Module number, over all GPUs.
    pub module: ModuleId,
    /// SM number in the module.
    pub sm: SmId,
    /// Warp slot in the SM.
    pub slot: u8,
}

impl WarpSlot {
    /// The host, in a run without its core. The module number is unused in every machine.
    pub const HOST: WarpSlot = WarpSlot { gpu: GpuId(u8::MAX), module: ModuleId(u8::MAX), sm: SmId(0), slot: 0 };
}

/// Observer of a run's events, in an order consistent with cause and effect at every thread count. By default, all
/// methods do nothing.
pub trait ValueProbe<D: Contents>: Clone + Send + Sync + 'static {
    /// The `launch`th kernel (from 0, in program order) starts on one more module, in this slot. All warps have ended
    /// in the kernels it waits for, and in the slot's previous kernel.
    fn kernel(&self, launch: u32, slot: KernelSlot) {
        let _ = (launch, slot);
    }

    /// The host's core begins a piece of work: no kernel runs, and all earlier work is complete.
    fn host(&self, core: WarpSlot) {
        let _ = core;
    }

    /// Warp `index` occupies this slot, in the next CTA to start on the SM.
    fn warp(&self, slot: WarpSlot, index: u32) {
        let _ = (slot, index);
    }

    /// A kernel's CTA starts on the warp slots set in `slots` on an SM; `one` is any slot in this set.
    fn cta(&self, one: WarpSlot, slots: u64, kernel: KernelSlot) {
        let _ = (one, slots, kernel);
    }

    /// The CTA's warps set in `slots` pass a barrier together; `one` is any slot on their SM.
    fn barrier(&self, one: WarpSlot, slots: u64) {
        let _ = (one, slots);
    }

    /// A warp has made its knowledge visible at a scope: a release stage is complete.
    fn released(&self, warp: WarpSlot, scope: Scope) {
        let _ = (warp, scope);
    }

    /// A warp's poll, whose load returned into a result slot, has found a flag set.
    fn flag_found(&self, warp: WarpSlot, result: u8, flag: Flag) {
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

    /// A transaction of a load returns, at `now`, the contents for the bytes in `mask`.
    fn loaded(&self, now: Ps, warp: WarpSlot, result: u8, line: Line, mask: Mask, data: D) {
        let _ = (now, warp, result, line, mask, data);
    }

    /// Returns the value that a warp stores to the bytes in `mask`; the store leaves `flag`.
    fn store(&self, warp: WarpSlot, line: Line, mask: Mask, flag: Flag) -> D {
        let _ = (warp, line, mask, flag);
        D::default()
    }

    /// Returns the update that a warp's atomic applies to the bytes in `mask`; the atomic leaves `flag`.
    fn atomic(&self, warp: WarpSlot, line: Line, mask: Mask, flag: Flag) -> D::Update {
        let _ = (warp, line, mask, flag);
        D::Update::default()
    }

    /// The host, in a run without its core, begins to read between kernels, as transfer `number`. Returns true to
    /// receive the values through [`ValueProbe::host_read`].
    fn host_reads(&self, number: u32) -> bool {
        let _ = number;
        false
    }

    /// A host read in transfer `number` returns, at `now`, the contents for the bytes in `mask`.
    fn host_read(&self, now: Ps, number: u32, line: Line, mask: Mask, data: D) {
        let _ = (now, number, line, mask, data);
    }

    /// Contents that the host, in a run without its core, writes between kernels to the bytes in `mask`; `None` if the
    /// bytes stay unchanged.
    fn host_writes(&self, line: Line, mask: Mask) -> Option<D> {
        let _ = (line, mask);
        None
    }

    /// A component in `module` is about to handle a message, at `now`. Called for every event of the module's
    /// components.
    fn handles(&self, now: Ps, module: ModuleId, unit: Unit, message: &Message<D>) {
        let _ = (now, module, unit, message);
    }

    /// The switch, a GPU port, the command processor or the driver is about to handle a message, at `now`.
    fn hub_event(&self, now: Ps, place: ComponentKind, message: &Message<D>) {
        let _ = (now, place, message);
    }

    /// Additional delay for a packet beyond its link latency. Packets on a channel keep their order nevertheless.
    fn delay(&self, source: ModuleId, target: ModuleId, packet: &Packet<D>) -> Ps {
        let _ = (source, target, packet);
        Ps::ZERO
    }

    /// Additional delay beyond the crossbar latency for deliveries from source `source` in a module (a slice, or a last
    /// number for all remaining components) to an SM. The delay is constant during a run, so the order is preserved.
    fn delivery(&self, module: ModuleId, source: usize, sm: SmId) -> Ps {
        let _ = (module, source, sm);
        Ps::ZERO
    }
}

impl ValueProbe<()> for () {}

/// An optional observer.
impl<D: Contents, W: ValueProbe<D>> ValueProbe<D> for Option<W> {
    fn kernel(&self, launch: u32, slot: KernelSlot) {
        self.iter().for_each(|probe| probe.kernel(launch, slot));
    }

    fn host(&self, core: WarpSlot) {
        self.iter().for_each(|probe| probe.host(core));
    }

    fn warp(&self, slot: WarpSlot, index: u32) {
        self.iter().for_each(|probe| probe.warp(slot, index));
    }

    fn cta(&self, one: WarpSlot, slots: u64, kernel: KernelSlot) {
        self.iter().for_each(|probe| probe.cta(one, slots, kernel));
    }

    fn barrier(&self, one: WarpSlot, slots: u64) {
        self.iter().for_each(|probe| probe.barrier(one, slots));
    }

    fn released(&self, warp: WarpSlot, scope: Scope) {
        self.iter().for_each(|probe| probe.released(warp, scope));
    }

    fn flag_found(&self, warp: WarpSlot, result: u8, flag: Flag) {
        self.iter().for_each(|probe| probe.flag_found(warp, result, flag));
    }

    fn acquired(&self, warp: WarpSlot, scope: Scope) {
        self.iter().for_each(|probe| probe.acquired(warp, scope));
    }

    fn load(&self, warp: WarpSlot, result: u8) {
        self.iter().for_each(|probe| probe.load(warp, result));
    }

    fn loaded(&self, now: Ps, warp: WarpSlot, result: u8, line: Line, mask: Mask, data: D) {
        self.iter().for_each(|probe| probe.loaded(now, warp, result, line, mask, data));
    }

    fn store(&self, warp: WarpSlot, line: Line, mask: Mask, flag: Flag) -> D {
        self.as_ref().map_or_else(D::default, |probe| probe.store(warp, line, mask, flag))
    }

    fn atomic(&self, warp: WarpSlot, line: Line, mask: Mask, flag: Flag) -> D::Update {
        self.as_ref().map_or_else(D::Update::default, |probe| probe.atomic(warp, line, mask, flag))
    }

    fn host_reads(&self, number: u32) -> bool {
        self.as_ref().is_some_and(|probe| probe.host_reads(number))
    }

    fn host_read(&self, now: Ps, number: u32, line: Line, mask: Mask, data: D) {
        self.iter().for_each(|probe| probe.host_read(now, number, line, mask, data));
    }

    fn host_writes(&self, line: Line, mask: Mask) -> Option<D> {
        self.as_ref().and_then(|probe| probe.host_writes(line, mask))
    }

    fn handles(&self, now: Ps, module: ModuleId, unit: Unit, message: &Message<D>) {
        self.iter().for_each(|probe| probe.handles(now, module, unit, message));
    }

    fn hub_event(&self, now: Ps, place: ComponentKind, message: &Message<D>) {
        self.iter().for_each(|probe| probe.hub_event(now, place, message));
    }

    fn delay(&self, source: ModuleId, target: ModuleId, packet: &Packet<D>) -> Ps {
        self.as_ref().map_or(Ps::ZERO, |probe| probe.delay(source, target, packet))
    }

    fn delivery(&self, module: ModuleId, source: usize, sm: SmId) -> Ps {
        self.as_ref().map_or(Ps::ZERO, |probe| probe.delivery(module, source, sm))
    }
}
