//! Random programs: warps in all modules load, store and add to few lines, and exchange flags.

use std::sync::Arc;
use tombolo_system::directed::{CtaBuilder, DirectedProgram, WarpBuilder};
use tombolo_types::stream::AtomicResult;
use tombolo_types::{Mask, Order, Scope};

/// CTAs in a kernel: two per module, in module order.
const CTAS: usize = 32;
/// Warps per CTA.
const WARPS: usize = 2;
/// Lines in a 4 KB page.
const PAGE: u64 = 32;
/// Pages that hold the lines, each on a different module.
const PAGES: u64 = 16;
/// Steps in a kernel, over all its warps together.
const STEPS: usize = 900;

/// Pseudorandom numbers: SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) % limit
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }
}

/// Instruction that sets a flag.
#[derive(Clone, Copy)]
enum FlagInstruction {
    Store,
    Atomic,
    Reduction,
}

/// A step in a warp: an instruction or a wait.
#[derive(Clone, Copy)]
enum Step {
    Load { line: u64, mask: Mask, order: Order },
    Use,
    Store { line: u64, mask: Mask },
    Add { line: u64, order: Order, result: AtomicResult },
    Compute(u16),
    Barrier,
    Signal { line: u64, token: u32, scope: Scope, by: FlagInstruction },
    Await { line: u64, token: u32, scope: Scope, by_fence: bool },
}

impl Step {
    fn write(self, warp: &mut WarpBuilder<'_>) {
        match self {
            Step::Load { line, mask, order } => warp.load_part([line], mask, order),
            Step::Use => warp.use_result(1),
            Step::Store { line, mask } => warp.store([line], mask, Order::WEAK),
            Step::Add { line, order, result } => warp.atomic([line], order, result),
            Step::Compute(count) => warp.compute(count),
            Step::Barrier => warp.barrier(),
            Step::Signal { line, token, scope, by } => {
                let order = Order::release(scope);
                match by {
                    FlagInstruction::Store => warp.store([line], Mask(1), order),
                    FlagInstruction::Atomic => warp.atomic([line], order, AtomicResult::Returned),
                    FlagInstruction::Reduction => warp.atomic([line], order, AtomicResult::Discarded),
                };
                warp.signal(token)
            }
            Step::Await { line, token, scope, by_fence: false } => warp.wait_until(line, token, Order::acquire(scope)),
            Step::Await { line, token, scope, by_fence: true } => {
                warp.wait_until(line, token, Order::relaxed(scope)).fence(Order::acquire(scope))
            }
        };
    }
}

/// A flag that a warp sets, with the data needed to wait for it.
#[derive(Clone, Copy)]
struct FlagWrite {
    cta: usize,
    line: u64,
    token: u32,
    scope: Scope,
    /// The last line that the warp has loaded or stored.
    near: u64,
}

/// A kernel under construction. Steps are drawn in a valid sequential order, so that every awaited flag is eventually
/// set.
struct Kernel {
    random: Random,
    steps: Vec<Vec<Step>>,
    flags: Vec<FlagWrite>,
}

impl Kernel {
    fn new(random: Random) -> Kernel {
        let mut kernel = Kernel { random, steps: vec![Vec::new(); CTAS * WARPS], flags: Vec::new() };
        for _ in 0..STEPS {
            kernel.draw();
        }
        kernel
    }

    /// A line with many users: on a random home, in a random region.
    fn line(&mut self) -> u64 {
        self.random.of(&[0, 5, 6, 11]) * PAGE + self.random.below(6)
    }

    fn mask(&mut self) -> Mask {
        self.random.of(&[Mask::ALL, Mask(0xff), Mask(0xff00), Mask(0xff_0000), Mask(1), Mask(0x180)])
    }

    fn draw(&mut self) {
        let warp = self.random.below((CTAS * WARPS) as u64) as usize;
        let (cta, line, mask) = (warp / WARPS, self.line(), self.mask());
        let scope = self.random.of(&[Scope::Gpu, Scope::Sys]);
        match self.random.below(20) {
            0..7 => self.load(warp, line, mask),
            7..10 => self.steps[warp].push(Step::Store { line, mask }),
            10 => {
                let result = self.random.of(&[AtomicResult::Returned, AtomicResult::Discarded]);
                self.steps[warp].push(Step::Add { line, order: Order::relaxed(scope), result });
            }
            11 => {
                let count = self.random.of(&[100, 300, 1000, 3000]);
                self.steps[warp].push(Step::Compute(count));
            }
            12 => (0..WARPS).for_each(|mate| self.steps[cta * WARPS + mate].push(Step::Barrier)),
            13..16 => self.signal(warp, scope),
            _ => self.wait(warp),
        }
    }

    fn load(&mut self, warp: usize, line: u64, mask: Mask) {
        let order = self.random.of(&[Order::WEAK, Order::WEAK, Order::relaxed(Scope::Gpu), Order::relaxed(Scope::Sys)]);
        self.steps[warp].push(Step::Load { line, mask, order });
        if self.random.below(3) > 0 {
            self.steps[warp].push(Step::Use);
        }
    }

    fn signal(&mut self, warp: usize, scope: Scope) {
        let token = self.flags.len() as u32;
        let line = self.random.below(PAGES) * PAGE + 8 + u64::from(token) % 24;
        let (near, mask) = (self.line(), self.mask());
        match self.random.below(2) {
            0 => self.steps[warp].push(Step::Store { line: near, mask }),
            _ => self.steps[warp].push(Step::Load { line: near, mask, order: Order::WEAK }),
        }
        self.flags.push(FlagWrite { cta: warp / WARPS, line, token, scope, near });
        let by = self.random.of(&[
            FlagInstruction::Store,
            FlagInstruction::Store,
            FlagInstruction::Atomic,
            FlagInstruction::Reduction,
        ]);
        self.steps[warp].push(Step::Signal { line, token, scope, by });
    }

    /// Waits for a flag that another warp has set recently, at a scope that covers both, and uses the other warp's
    /// line.
    fn wait(&mut self, warp: usize) {
        let cta = warp / WARPS;
        let within = |set: &&FlagWrite| set.cta / 8 == cta / 8 || set.scope == Scope::Sys;
        let recent: Vec<FlagWrite> = self.flags.iter().rev().filter(within).take(6).copied().collect();
        if recent.is_empty() {
            return;
        }
        let FlagWrite { line, token, scope, near, .. } = self.random.of(&recent);
        let by_fence = self.random.below(2) == 0;
        self.steps[warp].push(Step::Await { line, token, scope, by_fence });
        for line in [near, self.line()] {
            let mask = self.mask();
            match self.random.below(3) {
                0 => self.steps[warp].push(Step::Store { line, mask }),
                _ => self.load(warp, line, mask),
            }
        }
    }

    fn ctas(&self) -> Vec<CtaBuilder> {
        let cta = |of: &[Vec<Step>]| {
            of.iter()
                .fold(CtaBuilder::new(), |cta, steps| cta.warp(|warp| steps.iter().for_each(|step| step.write(warp))))
        };
        self.steps.chunks(WARPS).map(cta).collect()
    }
}

/// Three random kernels, after a kernel that places each page at a different module.
pub(crate) fn program(seed: u64) -> Arc<DirectedProgram> {
    let place = (0..CTAS as u64).map(|cta| {
        CtaBuilder::new().warp(|warp| {
            if cta % 2 == 0 {
                (0..PAGE).for_each(|line| _ = warp.read([cta / 2 * PAGE + line]));
            }
        })
    });
    let kernels = (0..3).map(|kernel| Kernel::new(Random(seed << 8 | kernel)).ctas());
    DirectedProgram::new(std::iter::once(place.collect()).chain(kernels).collect())
}
