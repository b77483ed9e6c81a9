//! The streams for a run, and the assignment of threads to warps. Also generates the phases for host threads, and the
//! final kernel for reading memory.

use crate::script::Script;
use crate::setup::{Address, Noise, NoiseOp, Pacing, Setup, SmSlot};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use tombolo_check::litmus::{Instruction, Location, ThreadPlacement};
use tombolo_design::scheduling::CtaDistribution;
use tombolo_types::stream::{
    Access, Accesses, AtomicResult, Command, ComputeClass, CtaStream, KernelClass, KernelInfo, Op, Program,
    StreamError, Token,
};
use tombolo_types::{ArrayInfo, HostPhase, Line, LineSize, Mask, ModuleId, Order, Scope, Semantics};

/// Operation of a test warp, in the timing model's request order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WarpOp {
    /// A load by the instruction at this index.
    Load(usize),
    /// Loads by the instruction at this index, until a load sees its flag.
    Polls(usize),
    /// A store.
    Store(usize),
    /// An atomic.
    Atomic(usize),
}

/// A test warp in a kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ThreadBinding {
    /// Thread of the warp; for the warp that reads final memory, the total number of threads.
    pub(crate) thread: usize,
    /// Warp operations.
    pub(crate) operations: Vec<WarpOp>,
}

/// Identifies a warp: kernel, module, rank of the CTA within the module, index within the CTA.
pub(crate) type WarpId = (usize, ModuleId, u32, u32);

/// Line size of the machine.
const LINE: LineSize = LineSize::B128;

/// The streams of a run. Each line forms a separate array.
pub(crate) struct LitmusStreams {
    kernels: Vec<KernelInfo>,
    commands: Vec<Command>,
    /// By kernel, then by CTA in the grid.
    ctas: Vec<Vec<CtaStream>>,
    /// Each accessed line. This list describes the program's data to the timing model.
    arrays: Vec<ArrayInfo>,
    /// Bindings of test warps to threads.
    pub(crate) parts: FxHashMap<WarpId, ThreadBinding>,
    /// The host's phases, one per host-thread instruction.
    phases: Vec<HostPhase>,
    /// By phase: the instruction's thread and operation.
    pub(crate) hosted: Vec<ThreadBinding>,
}

/// A warp under construction.
#[derive(Default)]
struct WarpBuilder {
    ops: Vec<Op>,
    accesses: Vec<Access>,
    tokens: Vec<Token>,
    part: Option<ThreadBinding>,
    /// Loads and returning atomics up to this point, by instruction. Polls do not count. Their order determines the
    /// distance operand in a use instruction.
    results: Vec<usize>,
}

/// A CTA under construction: its SM and its warps.
struct CtaBuilder {
    slot: SmSlot,
    warps: Vec<WarpBuilder>,
}

impl WarpBuilder {
    fn accesses(&mut self, line: Line, mask: Mask) -> Accesses {
        let start = self.accesses.len() as u32;
        self.accesses.push(Access { line, mask });
        Accesses { start, len: 1 }
    }

    fn token(&mut self, token: u32) -> u16 {
        self.tokens.push(Token(token));
        (self.tokens.len() - 1) as u16
    }

    fn delay(&mut self, mut count: u32) {
        while count > 0 {
            let part = count.min(u32::from(u16::MAX));
            self.ops.push(Op::occupy(ComputeClass::Fp32, part as u16));
            count -= part;
        }
    }

    /// Waits for the result from the instruction at `at`, if a result exists in this kernel.
    fn await_result(&mut self, at: usize) {
        if let Some(place) = self.results.iter().position(|one| *one == at) {
            self.ops.push(Op::Use { distance: (self.results.len() - place) as u8 });
        }
    }

    fn act(&mut self, act: WarpOp) {
        self.part.get_or_insert_default().operations.push(act);
    }

    fn noise(ops: &[NoiseOp]) -> WarpBuilder {
        let mut warp = WarpBuilder::default();
        let mut loads = false;
        for op in ops {
            match *op {
                NoiseOp::Load(line, mask, order) => {
                    let accesses = warp.accesses(line, mask);
                    warp.ops.push(Op::Load { order: order.into(), accesses });
                    loads = true;
                }
                NoiseOp::Store(line, mask, order) => {
                    let accesses = warp.accesses(line, mask);
                    warp.ops.push(Op::Store { order: order.into(), accesses });
                }
                NoiseOp::Atomic(line, order) => {
                    let accesses = warp.accesses(line, crate::values::UNUSED);
                    warp.ops.push(Op::Atomic { order: order.into(), result: AtomicResult::Discarded, accesses });
                }
                NoiseOp::Fence(order) => warp.ops.push(Op::Fence { order: order.into() }),
                NoiseOp::Use if loads => warp.ops.push(Op::Use { distance: 1 }),
                NoiseOp::Use => {}
                NoiseOp::Delay(count) => warp.delay(count),
            }
        }
        warp
    }
}

/// A store for which a polling load waits: thread index, and instruction index within the thread.
type Awaited = (usize, usize);

/// Generates the streams of a setup.
struct StreamWriter<'a> {
    setup: &'a Setup,
    scripts: &'a [Script],
    /// By thread: the kernel of each instruction.
    kernels: Vec<Vec<usize>>,
    /// By thread, then instruction: the store for which a load polls.
    awaited: Vec<Vec<Option<Awaited>>>,
}

impl<'a> StreamWriter<'a> {
    fn new(setup: &'a Setup, scripts: &'a [Script]) -> StreamWriter<'a> {
        let kernels = scripts.iter().map(Script::kernels).collect();
        let mut writer = StreamWriter { setup, scripts, kernels, awaited: Vec::new() };
        let of = |thread: usize| (0..scripts[thread].code.len()).map(|at| writer.awaited(thread, at)).collect();
        writer.awaited = (0..scripts.len()).map(of).collect();
        writer
    }

    /// The store for which the load at `at` polls: the load must eventually see this store, and the storing thread must
    /// not in turn wait for the loading thread.
    fn awaited(&self, thread: usize, at: usize) -> Option<Awaited> {
        let Instruction::Load { order, location, .. } = self.scripts[thread].code[at] else { return None };
        let strong = matches!(order.semantics, Semantics::Relaxed | Semantics::Acquire);
        let mut code = self.scripts.iter().flat_map(|script| &script.code);
        if !self.setup.pacings[thread][at].polls
            || !strong
            || code.any(|instruction| matches!(instruction, Instruction::Barrier { .. }))
        {
            return None;
        }
        let others = (0..self.scripts.len()).filter(|other| self.setup.ranks[*other] < self.setup.ranks[thread]);
        others
            .flat_map(|other| (0..self.scripts[other].code.len()).map(move |place| (other, place)))
            .find(|awaited| self.is_seen(*awaited, location, (thread, at), order.scope))
    }

    /// True if a load of `location` with `scope` must eventually see this store.
    fn is_seen(&self, (other, place): Awaited, location: Location, (thread, at): (usize, usize), scope: Scope) -> bool {
        let (Instruction::Store { order, location: stored, .. } | Instruction::Atomic { order, location: stored, .. }) =
            self.scripts[other].code[place]
        else {
            return false;
        };
        let threads = &self.setup.program.threads;
        let (here, there) = (threads[thread].placement, threads[other].placement);
        stored == location
            && order.semantics != Semantics::Weak
            && here.reaches(scope, there)
            && there.reaches(order.scope, here)
            && self.kernels[thread][at] == self.kernels[other][place]
    }

    /// The flag signalled by a store, if any load polls for it.
    fn flag(&self, store: Awaited) -> Option<u32> {
        let before = |thread: usize| self.scripts[..thread].iter().map(|script| script.code.len()).sum::<usize>();
        let polled = self.awaited.iter().flatten().any(|awaited| *awaited == Some(store));
        polled.then(|| (before(store.0) + store.1) as u32)
    }

    /// Stream of a thread in a test kernel.
    fn warp(&self, thread: usize, kernel: usize) -> WarpBuilder {
        let part = ThreadBinding { thread, operations: Vec::new() };
        let mut warp = WarpBuilder { part: Some(part), ..WarpBuilder::default() };
        for at in 0..self.scripts[thread].code.len() {
            if self.kernels[thread][at] == kernel {
                self.instruction(&mut warp, thread, at);
            }
        }
        warp
    }

    fn instruction(&self, warp: &mut WarpBuilder, thread: usize, at: usize) {
        let Pacing { delay, .. } = self.setup.pacings[thread][at];
        warp.delay(delay);
        self.scripts[thread].needs(at).into_iter().for_each(|needed| warp.await_result(needed));
        match self.scripts[thread].code[at] {
            Instruction::Load { order, location, .. } => self.load(warp, (thread, at), order, location),
            Instruction::Store { order, location, .. } => {
                let accesses = self.access(warp, location);
                warp.ops.push(Op::Store { order: order.into(), accesses });
                warp.act(WarpOp::Store(at));
                self.signal(warp, (thread, at));
            }
            Instruction::Atomic { order, into, location, .. } => {
                let accesses = self.access(warp, location);
                let result = if into.is_some() { AtomicResult::Returned } else { AtomicResult::Discarded };
                warp.ops.push(Op::Atomic { order: order.into(), result, accesses });
                warp.act(WarpOp::Atomic(at));
                warp.results.extend(into.map(|_| at));
                self.signal(warp, (thread, at));
            }
            Instruction::Fence { order } => warp.ops.push(Op::Fence { order: order.into() }),
            Instruction::Barrier { .. } => warp.ops.push(Op::Barrier),
            Instruction::Move { .. }
            | Instruction::Compute { .. }
            | Instruction::KernelBoundary
            | Instruction::Branch { .. }
            | Instruction::Jump { .. } => {}
        }
    }

    /// Signals the flag after a store or an atomic, if any load polls for it.
    fn signal(&self, warp: &mut WarpBuilder, store: Awaited) {
        if let Some(flag) = self.flag(store) {
            let token = warp.token(flag);
            warp.ops.push(Op::Signal { token });
        }
    }

    fn load(&self, warp: &mut WarpBuilder, (thread, at): (usize, usize), order: Order, location: Location) {
        let accesses = self.access(warp, location);
        if let Some(store) = self.awaited[thread][at] {
            let token = warp.token(self.flag(store).expect("it is polled for here"));
            warp.ops.push(Op::WaitUntil { order: order.into(), access: accesses.start, token });
            warp.act(WarpOp::Polls(at));
        } else {
            warp.ops.push(Op::Load { order: order.into(), accesses });
            warp.act(WarpOp::Load(at));
            warp.results.push(at);
        }
    }

    fn access(&self, warp: &mut WarpBuilder, location: Location) -> Accesses {
        let address = self.setup.address(location);
        warp.accesses(address.line, address.cell.mask())
    }

    /// Reads every location at run end.
    fn reader(&self) -> WarpBuilder {
        let part = ThreadBinding { thread: self.scripts.len(), operations: Vec::new() };
        let mut warp = WarpBuilder { part: Some(part), ..WarpBuilder::default() };
        for location in 0..self.setup.program.locations.len() {
            let accesses = self.access(&mut warp, Location(location as u16));
            warp.ops.push(Op::Load { order: Order::relaxed(Scope::Sys).into(), accesses });
            warp.act(WarpOp::Load(location));
        }
        warp
    }

    /// Host-thread instructions before a kernel of the run, in order.
    fn host(&self, kernel: usize) -> Vec<(ThreadBinding, HostPhase)> {
        let Some(of_test) = kernel.checked_sub(self.setup.lead) else { return Vec::new() };
        let threads = (0..self.scripts.len()).filter(|thread| self.is_host(*thread));
        let all = threads.flat_map(|thread| (0..self.scripts[thread].code.len()).map(move |at| (thread, at)));
        all.filter(|(thread, at)| self.kernels[*thread][*at] == of_test).filter_map(|one| self.phase(one)).collect()
    }

    fn is_host(&self, thread: usize) -> bool {
        self.setup.program.threads[thread].placement == ThreadPlacement::Host
    }

    /// Host phase for a thread's instruction, if it accesses memory.
    fn phase(&self, (thread, at): (usize, usize)) -> Option<(ThreadBinding, HostPhase)> {
        let bytes = |location: Location| {
            let Address { line, cell } = self.setup.address(location);
            let first = line.0 * LINE.bytes() + u64::from(cell.mask().0.trailing_zeros()) * LINE.grain();
            std::iter::once(first..first + LINE.grain()).collect()
        };
        let (act, phase) = match self.scripts[thread].code[at] {
            Instruction::Load { location, .. } => {
                (WarpOp::Load(at), HostPhase { reads: bytes(location), ..HostPhase::default() })
            }
            Instruction::Store { location, .. } => {
                (WarpOp::Store(at), HostPhase { writes: bytes(location), ..HostPhase::default() })
            }
            _ => return None,
        };
        Some((ThreadBinding { thread, operations: vec![act] }, phase))
    }

    /// The CTAs for a kernel of the run.
    fn ctas(&self, kernel: usize) -> Vec<CtaBuilder> {
        let noise = self.setup.noise.iter().filter(|noise| noise.kernel == kernel);
        let others =
            noise.map(|Noise { slot, ops, .. }| CtaBuilder { slot: *slot, warps: vec![WarpBuilder::noise(ops)] });
        let mut ctas: Vec<CtaBuilder> = Vec::new();
        let of_test = kernel.checked_sub(self.setup.lead);
        if let Some(slots) = of_test.and_then(|of_test| self.setup.slots.get(of_test)) {
            let threads = &self.setup.program.threads;
            for ((gpu, cta), slot) in Setup::ctas(&self.setup.program).into_iter().zip(slots) {
                let placement = ThreadPlacement::Cta { gpu, cta };
                let own = (0..threads.len()).filter(|thread| threads[*thread].placement == placement);
                let warps = own.map(|thread| self.warp(thread, of_test.unwrap_or_default())).collect();
                ctas.push(CtaBuilder { slot: *slot, warps });
            }
        } else if of_test.is_some() {
            ctas.push(CtaBuilder { slot: SmSlot { module: ModuleId(0), sm: 0 }, warps: vec![self.reader()] });
        }
        ctas.extend(others);
        ctas
    }
}

impl LitmusStreams {
    /// The streams for a setup, under a design with the grid distribution `cut`.
    pub(crate) fn new(setup: &Setup, scripts: &[Script], cut: CtaDistribution) -> LitmusStreams {
        let writer = StreamWriter::new(setup, scripts);
        let mut staging = LitmusStreams {
            kernels: Vec::new(),
            commands: Vec::new(),
            ctas: Vec::new(),
            arrays: Vec::new(),
            parts: FxHashMap::default(),
            phases: Vec::new(),
            hosted: Vec::new(),
        };
        for kernel in 0..setup.kernels() {
            for (part, phase) in writer.host(kernel) {
                staging.commands.push(Command::Host { phase: staging.phases.len() as u32 });
                staging.phases.push(phase);
                staging.hosted.push(part);
            }
            staging.add(setup, writer.ctas(kernel), cut);
            staging.commands.push(Command::launch(kernel as u32, 0));
        }
        let accesses = staging.ctas.iter().flatten().flat_map(|stream| &stream.accesses);
        let lines: BTreeSet<Line> = accesses.map(|access| access.line).collect();
        let bytes = LINE.bytes();
        let array = |line: Line| ArrayInfo {
            name: format!("line{}", line.0),
            base: line.0 * bytes,
            bytes,
            element: Some(LINE.grain() as u32),
        };
        staging.arrays = lines.into_iter().map(array).collect();
        staging
    }

    /// Adds a kernel. A module's CTAs are assigned to its SMs round-robin, therefore idle CTAs fill the gaps.
    fn add(&mut self, setup: &Setup, ctas: Vec<CtaBuilder>, cut: CtaDistribution) {
        let (modules, sms) = (u32::from(setup.shape.gpus * setup.shape.modules), u32::from(setup.shape.sms));
        let mut taken: FxHashMap<(ModuleId, u16), u32> = FxHashMap::default();
        let mut ranked: Vec<(ModuleId, u32, CtaBuilder)> = Vec::new();
        for cta in ctas {
            let turn = taken.entry((cta.slot.module, cta.slot.sm)).or_default();
            ranked.push((cta.slot.module, *turn * sms + u32::from(cta.slot.sm), cta));
            *turn += 1;
        }
        let each = taken.values().max().copied().unwrap_or(1) * sms;
        // Rounds up to an equal number per module, for any number of neighbouring CTAs in a turn.
        let each = each.next_multiple_of(cut.of(modules, 0, modules).chunk);
        let warps = ranked.iter().map(|(_, _, cta)| cta.warps.len()).max().unwrap_or(1);
        let mut grid = vec![idle(); (each * modules) as usize];
        for (module, rank, cta) in ranked {
            let share = cut.of(each * modules, u32::from(module.0), modules);
            let place = share.iter().nth(rank as usize).expect("each module has as many");
            grid[place as usize] = self.seat(cta, (module, rank));
        }
        self.kernels.push(KernelInfo {
            name: format!("kernel{}", self.kernels.len()),
            ctas: each * modules,
            threads_per_cta: 32 * warps as u32,
            shared_bytes: 0,
            registers: 16,
            class: KernelClass::Independent,
            parts: Vec::new(),
        });
        self.ctas.push(grid);
    }

    fn seat(&mut self, cta: CtaBuilder, (module, rank): (ModuleId, u32)) -> CtaStream {
        let kernel = self.kernels.len();
        let mut stream = CtaStream::default();
        for (index, warp) in (0..).zip(cta.warps) {
            let (start, accesses, tokens) =
                (stream.ops.len() as u32, stream.accesses.len() as u32, stream.tokens.len());
            let moved = |op| shifted(op, accesses, tokens as u16);
            stream.ops.extend(warp.ops.into_iter().map(moved));
            stream.accesses.extend(warp.accesses);
            stream.tokens.extend(warp.tokens);
            stream.warps.push(start..stream.ops.len() as u32);
            if let Some(part) = warp.part {
                self.parts.insert((kernel, module, rank, index), part);
            }
        }
        stream
    }
}

/// An idle warp.
fn idle() -> CtaStream {
    let ops = vec![Op::occupy(ComputeClass::Other, 1)];
    CtaStream { ops, warps: std::iter::once(0..1).collect(), ..CtaStream::default() }
}

/// An instruction with accesses and tokens shifted by the given offsets.
fn shifted(op: Op, before: u32, tokens: u16) -> Op {
    let later = |accesses: Accesses| Accesses { start: accesses.start + before, len: accesses.len };
    match op {
        Op::Load { order, accesses } => Op::Load { order, accesses: later(accesses) },
        Op::Store { order, accesses } => Op::Store { order, accesses: later(accesses) },
        Op::Atomic { order, result, accesses } => Op::Atomic { order, result, accesses: later(accesses) },
        Op::WaitUntil { order, access, token } => {
            Op::WaitUntil { order, access: access + before, token: token + tokens }
        }
        Op::Signal { token } => Op::Signal { token: token + tokens },
        Op::Compute { .. } | Op::Fence { .. } | Op::Shared { .. } | Op::Barrier | Op::Use { .. } => op,
    }
}

impl Program for LitmusStreams {
    fn name(&self) -> &str {
        "litmus"
    }

    fn line_size(&self) -> LineSize {
        LINE
    }

    fn arrays(&self) -> &[ArrayInfo] {
        &self.arrays
    }

    fn warp_width(&self) -> u32 {
        32
    }

    fn kernels(&self) -> &[KernelInfo] {
        &self.kernels
    }

    fn commands(&self) -> &[Command] {
        &self.commands
    }

    fn host_phases(&self) -> &[HostPhase] {
        &self.phases
    }

    fn cta(&self, kernel: u32, cta: u32, into: &mut CtaStream) -> Result<(), StreamError> {
        into.clone_from(&self.ctas[kernel as usize][cta as usize]);
        Ok(())
    }
}
