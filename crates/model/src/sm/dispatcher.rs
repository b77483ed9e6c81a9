//! Dispatcher of a module: runs kernels side by side, and decides which CTA starts next on each SM.
//!
//! Kernels share SMs: a CTA starts on an SM with enough free warps, threads, scratchpad bytes, registers and a CTA
//! slot. The kernel launched first has priority; CTAs of the next kernel start on the remaining resources when all
//! earlier CTAs have started. Source: CPElide (MICRO 2024), section II-B: work-groups of one kernel are issued "before
//! switching to another kernel". All modules launch kernels in the same order. Kernels whose CTAs wait for each other
//! therefore become resident in sequence, and none waits for a later kernel.
//!
//! Under dynamic assignment the module's share is its part of the first wave, that is of the CTAs that fit on the launch's
//! modules at once. For each later CTA an SM with room asks the command processor, and holds the room until the answer.
//!
//! A launch invalidates the L1s in all participating modules, even while further kernels run on these modules: their
//! lines are fetched again. A kernel is complete on a module when all its CTAs have ended there and every store they
//! posted has been acknowledged.

use crate::l2::backend::L2Design;
use crate::message::Message;
use crate::module::parts::Parts;
use crate::observe::value_probe::{Contents, ValueProbe};
use crate::sm::kernel_slot::KernelSlot;
use crate::sm::kernel_stats::LaunchTimes;
use crate::sm::residency::{SmResources, first_wave};
use std::sync::Arc;
use tombolo_design::scheduling::{CtaDistribution, CtaShare, MachineShape};
use tombolo_machine::MachineConfig;
use tombolo_types::stream::{Command, Program};
use tombolo_types::{ComponentId, Ps, SmId};

/// A kernel in progress on the module.
#[derive(Clone, Copy, Debug)]
struct ResidentKernel {
    slot: KernelSlot,
    launch: u32,
    index: u32,
    /// SM resources needed by each CTA.
    needs: SmResources,
    next: u32,
    share: CtaShare,
    /// CTAs in the module's share, or expected of it under dynamic assignment, and the number already started.
    ctas: u32,
    started: u32,
    running: u32,
    /// True while the command processor may have further CTAs, under dynamic assignment.
    asks: bool,
    /// CTAs asked for and not yet answered.
    asked: u32,
    /// CTAs started whose posted stores are not all acknowledged.
    draining: u32,
}

impl ResidentKernel {
    /// True if further CTAs of the module's own share are to start.
    fn has_own(&self) -> bool {
        self.next < self.share.end
    }
}

/// A launch sent by the command processor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KernelLaunch {
    /// Command index in the program.
    pub(crate) command: u32,
    /// Launch number within the program.
    pub(crate) launch: u32,
    /// Slot of the running command.
    pub(crate) slot: KernelSlot,
}

/// Dispatcher of a module.
pub struct Dispatcher {
    id: ComponentId,
    cut: CtaDistribution,
    program: Arc<dyn Program>,
    /// Kernels in launch order.
    kernels: Vec<ResidentKernel>,
    /// Free resources, by SM.
    free: Vec<SmResources>,
    /// Earliest time for the next dispatch.
    dispatch_at: Ps,
    /// The module's part of each launch, by launch number in the program.
    paces: Vec<LaunchTimes>,
    /// Set when a CTA could not be decoded.
    failed: bool,
}

impl Dispatcher {
    /// An idle dispatcher, part of controller `id` in a module with `sms` SMs.
    pub(crate) fn new(
        id: ComponentId,
        cut: CtaDistribution,
        program: Arc<dyn Program>,
        (machine, sms): (&MachineConfig, u16),
    ) -> Dispatcher {
        Dispatcher {
            id,
            cut,
            program,
            kernels: Vec::new(),
            free: vec![SmResources::of_sm(machine); usize::from(sms)],
            dispatch_at: Ps::ZERO,
            paces: Vec::new(),
            failed: false,
        }
    }

    /// The module's part of each launch, by launch number in the program, up to the last launch seen here.
    pub fn paces(&self) -> &[LaunchTimes] {
        &self.paces
    }

    /// Remaining work of each kernel, for the deadlock report.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = String> + '_ {
        self.kernels.iter().map(|kernel| {
            let ResidentKernel { launch, ctas, started, running, .. } = kernel;
            format!("launch {launch} has {running} CTAs here, and {} to start", ctas.saturating_sub(*started))
        })
    }

    /// Starts a kernel.
    pub(crate) fn launch<C: L2Design<D>, D: Contents>(
        &mut self,
        KernelLaunch { command, launch, slot }: KernelLaunch,
        parts: &mut Parts<'_, '_, C, D>,
    ) {
        let (config, now) = (parts.config, parts.out.now());
        config.probe.kernel(launch, slot);
        let queued = if parts.uncore.ways.is_fixed() { Ps::ZERO } else { parts.slice_side.queued_until(now) };
        parts.uncore.begin_kernel(now, queued);
        parts.update_l1_ways();
        parts.send_to_sms(now, self.id, Message::Begin { slot, launch });
        parts.send_to_groups(self.id, Message::Begin { slot, launch });
        let Command::Launch { kernel: index, on, .. } = self.program.commands()[command as usize] else {
            panic!("command {command} launches no kernel")
        };
        let info = &self.program.kernels()[index as usize];
        let shape = MachineShape::of(&config.machine);
        let mut share = self.cut.share(info, on, config.module, shape).expect("it is launched where it runs");
        let ctas = share.ctas();
        let mut asks = false;
        if let CtaDistribution::Dynamic { .. } = self.cut {
            let modules = on.rank(config.module, shape.gpus, shape.modules_per_gpu).map_or(0, |rank| rank.modules);
            let wave = first_wave(&config.machine, info, self.program.warp_width(), modules);
            asks = wave < info.ctas;
            share.end = share.end.min(wave);
        }
        let needs = SmResources::of_cta(&config.machine, info, self.program.warp_width());
        if self.kernels.is_empty() {
            self.dispatch_at = now;
        }
        self.kernels.push(ResidentKernel {
            slot,
            launch,
            index,
            needs,
            next: share.first,
            share,
            ctas,
            started: 0,
            running: 0,
            asks,
            asked: 0,
            draining: 0,
        });
        let launch = launch as usize;
        self.paces.resize(self.paces.len().max(launch + 1), LaunchTimes::default());
        self.paces[launch] = LaunchTimes::new(parts.to_sm(now));
        self.fill(parts);
        self.report_completed(parts.to_sm(now), parts);
    }

    /// Starts CTAs on all SMs in turn while any SM has room.
    fn fill<C: L2Design<D>, D: Contents>(&mut self, parts: &mut Parts<'_, '_, C, D>) {
        let mut starts = true;
        while std::mem::take(&mut starts) {
            for sm in 0..parts.sms() {
                starts |= self.dispatch(SmId(sm), parts);
            }
        }
    }

    /// An SM has ended a CTA, or failed to start a CTA: dispatches new CTAs to this SM.
    pub(crate) fn refill<C: L2Design<D>, D: Contents>(
        &mut self,
        (sm, slot, failed): (SmId, KernelSlot, bool),
        parts: &mut Parts<'_, '_, C, D>,
    ) {
        self.failed |= failed;
        let at = parts.departure_at_sm(parts.out.now());
        let kernel = self.running(slot);
        kernel.running -= 1;
        let ResidentKernel { launch, needs, .. } = *kernel;
        self.paces[launch as usize].end(at);
        self.free[usize::from(sm.0)].give_back(&needs);
        while self.dispatch(sm, parts) {}
    }

    /// All stores posted by an SM before a CTA's end have been acknowledged.
    pub(crate) fn drained<C: L2Design<D>, D: Contents>(&mut self, slot: KernelSlot, parts: &mut Parts<'_, '_, C, D>) {
        self.running(slot).draining -= 1;
        self.report_completed(parts.departure_at_sm(parts.out.now()), parts);
    }

    /// The kernel running in a slot.
    fn running(&mut self, slot: KernelSlot) -> &mut ResidentKernel {
        let kernel = self.kernels.iter_mut().find(|kernel| kernel.slot == slot);
        kernel.expect("a kernel is the module's until its CTAs have ended")
    }

    /// Starts the module's next CTA on an SM, or asks for one, if any is left and fits.
    fn dispatch<C: L2Design<D>, D: Contents>(&mut self, sm: SmId, parts: &mut Parts<'_, '_, C, D>) -> bool {
        let Some(place) = self.kernels.iter().position(|kernel| kernel.has_own() || kernel.asks) else { return false };
        let kernel = &mut self.kernels[place];
        let free = &mut self.free[usize::from(sm.0)];
        if self.failed || !free.fits(&kernel.needs) {
            return false;
        }
        free.take(&kernel.needs);
        if kernel.has_own() {
            let cta = kernel.next;
            kernel.next = kernel.share.after(cta);
            self.start(place, (sm, cta), parts);
            return true;
        }
        kernel.asked += 1;
        let wanted = Message::CtaWanted { module: parts.config.module, sm, slot: kernel.slot };
        let at = parts.to_command_processor(parts.departure_at_sm(parts.out.now()));
        parts.out.send(at, self.id, parts.config.layout.command_processor(), wanted);
        true
    }

    /// The command processor's answer for room on an SM: a CTA starts there, or none is left.
    pub(crate) fn assigned<C: L2Design<D>, D: Contents>(
        &mut self,
        (sm, slot, cta): (SmId, KernelSlot, Option<u32>),
        parts: &mut Parts<'_, '_, C, D>,
    ) {
        let place = self.kernels.iter().position(|kernel| kernel.slot == slot);
        let place = place.expect("a kernel is the module's while it waits for CTAs");
        let kernel = &mut self.kernels[place];
        kernel.asked -= 1;
        match cta {
            Some(cta) if !self.failed => self.start(place, (sm, cta), parts),
            Some(_) | None => {
                kernel.asks = false;
                let needs = kernel.needs;
                self.free[usize::from(sm.0)].give_back(&needs);
                self.fill(parts);
                self.report_completed(parts.departure_at_sm(parts.out.now()), parts);
            }
        }
    }

    /// Starts a CTA of the kernel at `place` on an SM whose room has been taken.
    fn start<C: L2Design<D>, D: Contents>(
        &mut self,
        place: usize,
        (sm, cta): (SmId, u32),
        parts: &mut Parts<'_, '_, C, D>,
    ) {
        let kernel = &mut self.kernels[place];
        let start = Message::Start { slot: kernel.slot, kernel: kernel.index, cta };
        kernel.running += 1;
        kernel.draining += 1;
        let at = self.dispatch_at.max(parts.out.now());
        self.dispatch_at = at + parts.config.machine.host.dispatch_interval;
        let at = parts.to_sm(at);
        let quarter = (u64::from(kernel.started) * 4 / u64::from(kernel.ctas.max(1))).min(3) as usize;
        self.paces[kernel.launch as usize].start(at, quarter);
        kernel.started += 1;
        parts.out.send(at, self.id, parts.config.layout.sm(parts.config.module, sm), start);
    }

    /// Reports each kernel without remaining CTAs to the command processor. The acknowledgment for the last posted
    /// store came at `over`.
    fn report_completed<C: L2Design<D>, D: Contents>(&mut self, over: Ps, parts: &mut Parts<'_, '_, C, D>) {
        let left = |kernel: &ResidentKernel| (kernel.has_own() || kernel.asks) && !self.failed || kernel.asked > 0;
        while let Some(place) = self.kernels.iter().position(|kernel| kernel.draining == 0 && !left(kernel)) {
            let ResidentKernel { slot, launch, started, .. } = self.kernels.remove(place);
            self.paces[launch as usize].drain((started > 0).then_some(over));
            parts.uncore.end_kernel(parts.out.now(), self.kernels.is_empty());
            let at = parts.to_command_processor(over);
            let done = Message::KernelDone { module: parts.config.module, slot };
            parts.out.send(at, self.id, parts.config.layout.command_processor(), done);
        }
    }
}
