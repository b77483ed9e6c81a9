//! The probe of a run whose lines carry versions: a checker, observers of a user, both or neither.

use crate::checker::{Checker, Version, Versions};
use crate::observer::ObserverSet;
use std::sync::Arc;
use tombolo_model::layout::Unit;
use tombolo_model::message::{Flag, Message};
use tombolo_model::observe::{ValueProbe, WarpSlot};
use tombolo_model::sm::KernelSlot;
use tombolo_types::{Line, Mask, ModuleId, Ps, Scope};

/// Passes each event on to the checker and to the observers.
#[derive(Clone, Default)]
pub struct VersionProbe {
    pub(crate) checker: Option<Arc<Checker>>,
    pub(crate) observers: Option<Arc<ObserverSet>>,
}

impl ValueProbe<Versions> for VersionProbe {
    fn kernel(&self, launch: u32, slot: KernelSlot) {
        self.checker.kernel(launch, slot);
        self.observers.iter().for_each(|observers| observers.kernel(launch, slot));
    }

    fn host(&self, core: WarpSlot) {
        self.checker.host(core);
    }

    fn warp(&self, slot: WarpSlot, index: u32) {
        self.checker.warp(slot, index);
    }

    fn cta(&self, one: WarpSlot, slots: u64, kernel: KernelSlot) {
        self.checker.cta(one, slots, kernel);
        self.observers.iter().for_each(|observers| observers.cta(one, slots, kernel));
    }

    fn barrier(&self, one: WarpSlot, slots: u64) {
        self.checker.barrier(one, slots);
    }

    fn released(&self, warp: WarpSlot, scope: Scope) {
        self.checker.released(warp, scope);
        self.observers.iter().for_each(|observers| observers.released(warp, scope));
    }

    fn flag_found(&self, warp: WarpSlot, result: u8, flag: Flag) {
        self.checker.flag_found(warp, result, flag);
    }

    fn acquired(&self, warp: WarpSlot, scope: Scope) {
        self.checker.acquired(warp, scope);
        self.observers.iter().for_each(|observers| observers.acquired(warp, scope));
    }

    fn load(&self, warp: WarpSlot, result: u8) {
        self.checker.load(warp, result);
    }

    fn loaded(&self, now: Ps, warp: WarpSlot, result: u8, line: Line, mask: Mask, data: Versions) {
        self.checker.loaded(now, warp, result, line, mask, data);
        self.observers.iter().for_each(|observers| observers.loaded(now, warp, line, mask));
    }

    fn store(&self, warp: WarpSlot, line: Line, mask: Mask, flag: Flag) -> Versions {
        self.observers.iter().for_each(|observers| observers.store(warp, line, mask));
        self.checker.store(warp, line, mask, flag)
    }

    fn atomic(&self, warp: WarpSlot, line: Line, mask: Mask, flag: Flag) -> Version {
        self.observers.iter().for_each(|observers| observers.atomic(warp, line, mask));
        self.checker.atomic(warp, line, mask, flag)
    }

    fn host_reads(&self, number: u32) -> bool {
        self.checker.host_reads(number)
    }

    fn host_read(&self, now: Ps, number: u32, line: Line, mask: Mask, data: Versions) {
        self.checker.host_read(now, number, line, mask, data);
    }

    fn host_writes(&self, line: Line, mask: Mask) -> Option<Versions> {
        self.checker.host_writes(line, mask)
    }

    fn handles(&self, now: Ps, _: ModuleId, _: Unit, message: &Message<Versions>) {
        self.observers.iter().for_each(|observers| observers.handles(now, message));
    }
}
