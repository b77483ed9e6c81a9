//! Directed programs: written warp by warp, so that bytes, hits and invalidations can be predicted in closed form.

use std::ops::Range;
use std::sync::Arc;
use tombolo_types::stream::{
    Access, Accesses, AtomicResult, ChainLinks, Command, ComputeClass, CtaStream, KernelClass, KernelInfo, Op, Program,
    StreamError, Token,
};
use tombolo_types::{ArrayInfo, HostPhase, LaunchDevices, Line, LineSize, Mask, Order};

/// A CTA under construction.
#[derive(Clone, Default)]
pub struct CtaBuilder {
    stream: CtaStream,
}

impl CtaBuilder {
    /// A CTA without warps.
    pub fn new() -> CtaBuilder {
        CtaBuilder::default()
    }

    /// A CTA with `warps` warps that divide `lines` into stretches of equal length; `each` adds a warp's instructions
    /// for one line. Remaining lines at the end are left out if the division is uneven.
    pub fn sharing(lines: Range<u64>, warps: u64, each: impl Fn(&mut WarpBuilder<'_>, u64)) -> CtaBuilder {
        let part = (lines.end - lines.start) / warps;
        (0..warps).fold(CtaBuilder::new(), |cta, warp| {
            let start = lines.start + warp * part;
            cta.warp(|w| (start..start + part).for_each(|line| each(w, line)))
        })
    }

    /// True if the CTA waits for a flag.
    fn waits(&self) -> bool {
        self.stream.ops.iter().any(|op| matches!(op, Op::WaitUntil { .. }))
    }

    /// Adds a warp.
    pub fn warp(mut self, write: impl FnOnce(&mut WarpBuilder<'_>)) -> CtaBuilder {
        let start = self.stream.ops.len() as u32;
        write(&mut WarpBuilder { stream: &mut self.stream });
        let end = self.stream.ops.len() as u32;
        self.stream.warps.push(start..end);
        self
    }
}

/// A warp under construction. Each method adds one instruction.
pub struct WarpBuilder<'a> {
    stream: &'a mut CtaStream,
}

impl WarpBuilder<'_> {
    fn accesses(&mut self, lines: impl IntoIterator<Item = u64>, mask: Mask) -> Accesses {
        let start = self.stream.accesses.len() as u32;
        self.stream.accesses.extend(lines.into_iter().map(|line| Access { line: Line(line), mask }));
        Accesses { start, len: (self.stream.accesses.len() as u32 - start) as u8 }
    }

    /// A weak load from whole lines, and a use of the result.
    pub fn read(&mut self, lines: impl IntoIterator<Item = u64>) -> &mut Self {
        self.load(lines, Order::WEAK).use_result(1)
    }

    /// A weak load from parts of lines, and a use of the result.
    pub fn read_part(&mut self, lines: impl IntoIterator<Item = u64>, mask: Mask) -> &mut Self {
        self.load_part(lines, mask, Order::WEAK).use_result(1)
    }

    /// A load from whole lines.
    pub fn load(&mut self, lines: impl IntoIterator<Item = u64>, order: Order) -> &mut Self {
        self.load_part(lines, Mask::ALL, order)
    }

    /// A load from part of each line.
    pub fn load_part(&mut self, lines: impl IntoIterator<Item = u64>, mask: Mask, order: Order) -> &mut Self {
        let accesses = self.accesses(lines, mask);
        self.stream.ops.push(Op::Load { order: order.into(), accesses });
        self
    }

    /// A weak load from parts of lines, each with its own mask; at most 255 lines.
    pub fn load_parts(&mut self, parts: impl IntoIterator<Item = (u64, Mask)>) -> &mut Self {
        self.load_parts_in(parts, Order::WEAK)
    }

    /// A load from parts of lines, each with its own mask; at most 255 lines.
    pub fn load_parts_in(&mut self, parts: impl IntoIterator<Item = (u64, Mask)>, order: Order) -> &mut Self {
        let start = self.stream.accesses.len() as u32;
        self.stream.accesses.extend(parts.into_iter().map(|(line, mask)| Access { line: Line(line), mask }));
        let accesses = Accesses { start, len: (self.stream.accesses.len() as u32 - start) as u8 };
        self.stream.ops.push(Op::Load { order: order.into(), accesses });
        self
    }

    /// Loads `lines` `passes` times, eight lines per instruction, without waiting for any result.
    pub fn sweep(&mut self, lines: Range<u64>, passes: u64) -> &mut Self {
        for _ in 0..passes {
            for first in lines.clone().step_by(8) {
                self.load(first..lines.end.min(first + 8), Order::WEAK);
            }
        }
        self
    }

    /// Waits for the result `distance` results ago.
    pub fn use_result(&mut self, distance: u8) -> &mut Self {
        self.stream.ops.push(Op::Use { distance });
        self
    }

    /// A weak store to whole lines.
    pub fn write(&mut self, lines: impl IntoIterator<Item = u64>) -> &mut Self {
        self.store(lines, Mask::ALL, Order::WEAK)
    }

    /// A store to part of each line.
    pub fn store(&mut self, lines: impl IntoIterator<Item = u64>, mask: Mask, order: Order) -> &mut Self {
        let accesses = self.accesses(lines, mask);
        self.stream.ops.push(Op::Store { order: order.into(), accesses });
        self
    }

    /// A four-byte atomic on the first word in each line.
    pub fn atomic(&mut self, lines: impl IntoIterator<Item = u64>, order: Order, result: AtomicResult) -> &mut Self {
        let accesses = self.accesses(lines, Mask(1));
        self.stream.ops.push(Op::Atomic { order: order.into(), result, accesses });
        self
    }

    /// A fence.
    pub fn fence(&mut self, order: Order) -> &mut Self {
        self.stream.ops.push(Op::Fence { order: order.into() });
        self
    }

    /// Arithmetic with a result that nothing waits for.
    pub fn compute(&mut self, count: u16) -> &mut Self {
        self.stream.ops.push(Op::occupy(ComputeClass::Fp32, count));
        self
    }

    /// `count` instructions from `class` in `ilp` parallel chains; the next non-arithmetic instruction needs the
    /// results. `ilp` is at least 1.
    pub fn chains(&mut self, class: ComputeClass, count: u16, ilp: u16) -> &mut Self {
        let links = ChainLinks { joins: false, awaited: true };
        self.stream.ops.push(Op::Compute { class, count, chain: count.div_ceil(ilp), links });
        self
    }

    /// An access to the scratchpad.
    pub fn scratchpad(&mut self, passes: u16) -> &mut Self {
        self.stream.ops.push(Op::Shared { passes });
        self
    }

    /// A CTA barrier.
    pub fn barrier(&mut self) -> &mut Self {
        self.stream.ops.push(Op::Barrier);
        self
    }

    /// The preceding store sets flag `token`.
    pub fn signal(&mut self, token: u32) -> &mut Self {
        let token = self.token(token);
        self.stream.ops.push(Op::Signal { token });
        self
    }

    /// Spins on `line` until flag `token` is visible.
    pub fn wait_until(&mut self, line: u64, token: u32, order: Order) -> &mut Self {
        let access = self.accesses([line], Mask(1)).start;
        let token = self.token(token);
        self.stream.ops.push(Op::WaitUntil { order: order.into(), access, token });
        self
    }

    fn token(&mut self, token: u32) -> u16 {
        self.stream.tokens.push(Token(token));
        (self.stream.tokens.len() - 1) as u16
    }
}

/// Lines that the host touches between kernels.
#[derive(Clone, Debug)]
pub enum HostLines {
    /// The host reads these lines.
    Read(Range<u64>),
    /// The host writes these lines.
    Written(Range<u64>),
}

/// A program with kernels launched in order, unless specified otherwise.
#[derive(Clone)]
pub struct DirectedProgram {
    kernels: Vec<KernelInfo>,
    commands: Vec<Command>,
    ctas: Vec<Vec<CtaBuilder>>,
    line: LineSize,
    arrays: Vec<ArrayInfo>,
    host: Vec<HostPhase>,
    setup: HostPhase,
    results: HostPhase,
}

impl DirectedProgram {
    /// A program with one kernel per list of CTAs.
    pub fn new(kernels: Vec<Vec<CtaBuilder>>) -> Arc<DirectedProgram> {
        DirectedProgram::with_copies(kernels, &[])
    }

    /// Like [`DirectedProgram::new`], for a machine with a line size different from 128 bytes.
    pub fn of_lines(line: LineSize, kernels: Vec<Vec<CtaBuilder>>) -> Arc<DirectedProgram> {
        Arc::new(DirectedProgram { line, ..DirectedProgram::build(kernels, &[]) })
    }

    /// Like [`DirectedProgram::new`], with lines in named arrays, sorted by address.
    pub fn with_arrays(kernels: Vec<Vec<CtaBuilder>>, arrays: &[(&str, Range<u64>)]) -> Arc<DirectedProgram> {
        DirectedProgram::of_arrays(LineSize::B128, kernels, arrays, &[])
    }

    /// Like [`DirectedProgram::with_arrays`], for a given line size, with host reads and writes: each entry names lines
    /// and the kernel before which the host touches them.
    pub fn of_arrays(
        line: LineSize,
        kernels: Vec<Vec<CtaBuilder>>,
        arrays: &[(&str, Range<u64>)],
        host: &[(u32, HostLines)],
    ) -> Arc<DirectedProgram> {
        let bytes = line.bytes();
        let array = |(name, lines): &(&str, Range<u64>)| ArrayInfo {
            name: (*name).to_owned(),
            base: lines.start * bytes,
            bytes: (lines.end - lines.start) * bytes,
            element: None,
        };
        let arrays = arrays.iter().map(array).collect();
        let program = DirectedProgram::build(kernels, &[]);
        let phases = |kernel: u32| (0..).zip(host).filter(move |(_, (before, _))| *before == kernel);
        let commands = (0..=program.kernels.len() as u32).flat_map(|kernel| {
            let host = phases(kernel).map(|(phase, _)| Command::Host { phase });
            let launch = (kernel < program.kernels.len() as u32).then_some(Command::launch(kernel, 0));
            host.chain(launch)
        });
        let commands = commands.collect();
        let addresses = |lines: &Range<u64>| lines.start * bytes..lines.end * bytes;
        let phase = |(_, touched): &(u32, HostLines)| match touched {
            HostLines::Read(lines) => HostPhase { reads: vec![addresses(lines)], writes: Vec::new() },
            HostLines::Written(lines) => HostPhase { reads: Vec::new(), writes: vec![addresses(lines)] },
        };
        Arc::new(DirectedProgram { arrays, line, commands, host: host.iter().map(phase).collect(), ..program })
    }

    /// Like [`DirectedProgram::new`], followed by copies from the device; `copies` gives the bytes per copy.
    pub fn with_copies(kernels: Vec<Vec<CtaBuilder>>, copies: &[u64]) -> Arc<DirectedProgram> {
        Arc::new(DirectedProgram::build(kernels, copies))
    }

    /// Replaces the program's commands.
    pub fn with_commands(self: Arc<DirectedProgram>, commands: Vec<Command>) -> Arc<DirectedProgram> {
        Arc::new(DirectedProgram { commands, ..Arc::unwrap_or_clone(self) })
    }

    /// Launches the program's kernels in the given order, each after the end of the previous kernel.
    pub fn with_launch_order(self: Arc<DirectedProgram>, order: &[u32]) -> Arc<DirectedProgram> {
        let commands =
            order.iter().map(|&kernel| Command::Launch { kernel, stream: 0, on: LaunchDevices::All }).collect();
        self.with_commands(commands)
    }

    /// Adds host work: `setup` before the first command, and `results` after the last.
    pub fn with_host_phases(self: Arc<DirectedProgram>, setup: HostPhase, results: HostPhase) -> Arc<DirectedProgram> {
        Arc::new(DirectedProgram { setup, results, ..Arc::unwrap_or_clone(self) })
    }

    /// Cuts kernel `kernel` over the GPUs: `parts` holds the first CTA for each GPU.
    pub fn cut(self: Arc<DirectedProgram>, kernel: u32, parts: &[u32]) -> Arc<DirectedProgram> {
        let mut program = Arc::unwrap_or_clone(self);
        program.kernels[kernel as usize].parts = parts.to_vec();
        Arc::new(program)
    }

    fn build(kernels: Vec<Vec<CtaBuilder>>, copies: &[u64]) -> DirectedProgram {
        let info = |ctas: &Vec<CtaBuilder>| KernelInfo {
            name: "directed".into(),
            ctas: ctas.len() as u32,
            threads_per_cta: 32 * ctas.iter().map(|cta| cta.stream.warps.len()).max().unwrap_or(1) as u32,
            shared_bytes: 0,
            registers: 16,
            class: if ctas.iter().any(CtaBuilder::waits) { KernelClass::Cooperative } else { KernelClass::Independent },
            parts: Vec::new(),
        };
        let launches = (0..kernels.len() as u32).map(|kernel| Command::launch(kernel, 0));
        let copies = copies.iter().map(|&bytes| Command::Copy { address: 0, bytes, to_device: false });
        let commands = launches.chain(copies).collect();
        let kernels_info = kernels.iter().map(info).collect();
        DirectedProgram {
            kernels: kernels_info,
            commands,
            ctas: kernels,
            line: LineSize::B128,
            arrays: Vec::new(),
            host: Vec::new(),
            setup: HostPhase::default(),
            results: HostPhase::default(),
        }
    }
}

impl Program for DirectedProgram {
    fn name(&self) -> &str {
        "directed"
    }

    fn line_size(&self) -> LineSize {
        self.line
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

    fn arrays(&self) -> &[ArrayInfo] {
        &self.arrays
    }

    fn host_phases(&self) -> &[HostPhase] {
        &self.host
    }

    fn setup(&self) -> &HostPhase {
        &self.setup
    }

    fn results(&self) -> &HostPhase {
        &self.results
    }

    fn cta(&self, kernel: u32, cta: u32, into: &mut CtaStream) -> Result<(), StreamError> {
        into.clone_from(&self.ctas[kernel as usize][cta as usize].stream);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directed_program_may_state_what_its_host_does_at_its_ends() {
        let silent = DirectedProgram::new(vec![vec![CtaBuilder::new()]]);
        assert!(silent.setup().is_empty() && silent.results().is_empty());
        let (inputs, outputs) = (std::iter::once(0..128).collect(), std::iter::once(128..256).collect());
        let setup = HostPhase { reads: Vec::new(), writes: inputs };
        let results = HostPhase { reads: outputs, writes: Vec::new() };
        let stating = Arc::clone(&silent).with_host_phases(setup.clone(), results.clone());
        assert_eq!((stating.setup(), stating.results()), (&setup, &results));
        assert_eq!(stating.commands(), silent.commands());
    }
}
