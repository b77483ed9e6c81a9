//! Copies between GPUs behind kernels, by the rules in [`tombolo_protocol::copies`].
//!
//! Each module has its own memory for every line. Behind a kernel, each module sends the lines to which it has stored to
//! every other module, or to modules whose code reads these bytes later. Reads at the sender and arrivals at the
//! receiver happen in any order.

use super::config::ReplicaUpdate;
use super::machine::Machine;
use super::state::{MachineState, Violation};
use super::values::{CELLS, Values, cells};
use crate::litmus::{Instruction, Location, Program};
use tombolo_protocol::copies::{ArrivalStep, loads_from};
use tombolo_protocol::paging::Holder;
use tombolo_protocol::{Coherence, Data, Topology};
use tombolo_types::{Mask, ModuleId};

/// A copy of a line to a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct LineCopy {
    pub(super) line: u8,
    pub(super) from: ModuleId,
    pub(super) to: ModuleId,
    /// Bytes that the sender has written in the kernel.
    written: Mask,
    /// Contents, after the sender has read them.
    pub(super) sent: Option<Values>,
}

/// Stores and copies of all modules; empty if nothing is copied.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Copying {
    /// Bytes stored in the current kernel: module × lines + line.
    written: Vec<Mask>,
    /// Module of the last store to each cell: line × cells + cell.
    last: Vec<ModuleId>,
    /// The latest writer of each page in earlier kernels.
    latest: Vec<ModuleId>,
    /// Copies that are not in memory.
    pub(super) copies: Vec<LineCopy>,
    /// Number of kernels whose copies have started.
    started: u8,
}

impl<P: Coherence> Machine<'_, P> {
    /// The state before the first instruction.
    pub(super) fn nothing_stored(&self) -> Copying {
        let lines = self.config.copies.map_or(0, |_| self.scene.lines);
        let modules = usize::from(self.scene.layout.modules());
        let (written, last) = (vec![Mask::NONE; modules * lines], vec![ModuleId(0); lines * CELLS]);
        let pages = self.config.copies.map_or(0, |_| self.regions);
        Copying { written, last, latest: vec![ModuleId(0); pages], ..Copying::default() }
    }

    /// Maps each page for kernel `kernel`, if loads go to the latest writer. Among several writers in a kernel, the last
    /// module counts.
    pub(super) fn map_latest(&self, state: &mut MachineState, kernel: usize) {
        if !matches!(self.config.copies, Some((_, ReplicaUpdate::LatestWriter))) {
            return;
        }
        for page in 0..state.pages.len() as u8 {
            let written = |module: &ModuleId| {
                self.lines_of_page(page).any(|line| !state.copying.written[self.l2_index(*module, line)].is_empty())
            };
            if let Some(writer) = self.modules().filter(written).last() {
                state.copying.latest[usize::from(page)] = writer;
            }
            for module in self.modules() {
                let stores = self.stores_in(kernel, module, page);
                let home = loads_from(module, stores, state.copying.latest[usize::from(page)]);
                state.pages[usize::from(page)].seen[usize::from(module.0)].home = home;
            }
        }
    }

    /// True if code of `module` in a kernel stores to a page.
    fn stores_in(&self, kernel: usize, module: ModuleId, page: u8) -> bool {
        let stores = |instruction: &Instruction| {
            instruction.stores_to().is_some_and(|at| self.region(self.scene.layout.cell(at).line) == page)
        };
        let mut threads = (0..self.scene.program.threads.len()).filter(|&thread| self.module_of(thread) == module);
        threads.any(|thread| of_kernel(self.scene.program, thread, kernel).iter().any(stores))
    }

    /// A thread in `module` stores to a line.
    pub(super) fn note_stored(&self, state: &mut MachineState, module: ModuleId, line: u8, mask: Mask) {
        if self.config.copies.is_some() {
            let written = &mut state.copying.written[self.l2_index(module, line)];
            *written |= mask;
            cells(mask).for_each(|cell| state.copying.last[usize::from(line) * CELLS + cell] = module);
        }
    }

    /// Takes the stores of the kernel that has ended, as copies.
    fn copies_behind(&self, state: &mut MachineState, kernel: usize, bytes: ReplicaUpdate) -> Vec<LineCopy> {
        let mut copies = Vec::new();
        for from in self.modules() {
            for line in 0..self.scene.lines as u8 {
                let written = std::mem::take(&mut state.copying.written[self.l2_index(from, line)]);
                for to in self.modules().filter(|to| *to != from) {
                    let sent = |cell: &usize| match bytes {
                        ReplicaUpdate::Written => true,
                        ReplicaUpdate::Needed => self.reads_later(kernel, to, (line, *cell)),
                        ReplicaUpdate::Nothing | ReplicaUpdate::LatestWriter => false,
                    };
                    let written = cells(written).filter(sent).fold(Mask::NONE, |mask, cell| mask | Mask(1 << cell));
                    if !written.is_empty() {
                        copies.push(LineCopy { line, from, to, written, sent: None });
                    }
                }
            }
        }
        copies
    }

    /// True if code of `module` reads a cell behind `kernel`, in a kernel up to the next that stores to it. In a program
    /// with branches, every later kernel counts.
    fn reads_later(&self, kernel: usize, module: ModuleId, (line, cell): (u8, usize)) -> bool {
        let program = self.scene.program;
        let at_cell = |location: Location| {
            let at = self.scene.layout.cell(location);
            (at.line, usize::from(at.cell)) == (line, cell)
        };
        let reads = |instruction: &Instruction| instruction.loads_from().is_some_and(at_cell);
        let stores = |instruction: &Instruction| instruction.stores_to().is_some_and(at_cell);
        let branches = program.threads.iter().flat_map(|thread| &thread.code).any(|one| one.target().is_some());
        let threads = || 0..program.threads.len();
        for later in kernel + 1..=program.boundaries() {
            let of_module = threads().filter(|&thread| self.module_of(thread) == module);
            if of_module.into_iter().any(|thread| of_kernel(program, thread, later).iter().any(reads)) {
                return true;
            }
            if !branches && threads().any(|thread| of_kernel(program, thread, later).iter().any(stores)) {
                return false;
            }
        }
        false
    }

    /// Advances the copies at kernel boundary `number`; returns true if they do not hold up the next launch.
    pub(super) fn run_copies(&self, state: &mut MachineState, number: usize) -> bool {
        let Some((rules, bytes)) = self.config.copies else { return true };
        if usize::from(state.copying.started) == number {
            state.copying.started += 1;
            self.map_latest(state, number + 1);
            let copies = self.copies_behind(state, number, bytes);
            state.copying.copies.extend(copies);
        }
        state.copying.copies.is_empty() || !rules.launch_waits()
    }

    /// The sender of copy `index` reads the line, or the line arrives at the receiver.
    pub(super) fn take_copy_step(&self, state: &mut MachineState, index: u8) {
        let Some((rules, _)) = self.config.copies else { return };
        let Some(copy) = state.copying.copies.get(usize::from(index)).copied() else {
            state.break_with(Violation::Unexpected("a step of a copy that is over"));
            return;
        };
        let LineCopy { line, from, to, written, sent } = copy;
        let Some(data) = sent else {
            let memory = state.memory[self.memory_index(Holder::Module(from), line)];
            let cached = state.l2[self.l2_index(from, line)].line.map(|line| (line.valid, line.data));
            state.copying.copies[usize::from(index)].sent = Some(rules.sent(memory, cached));
            return;
        };
        let (memory, slot) = (self.memory_index(Holder::Module(to), line), self.l2_index(to, line));
        for step in rules.arrival() {
            match step {
                ArrivalStep::DropLine => {
                    if let Some(dropped) = state.l2[slot].line.take() {
                        state.memory[memory].merge(dropped.data, dropped.dirty);
                    }
                }
                ArrivalStep::Write => state.memory[memory].merge(data, rules.carried(written)),
            }
        }
        state.copying.copies.remove(usize::from(index));
    }

    /// Contents of a line at program end, for `cell`: the copy of the last module with a store to the cell counts.
    pub(super) fn copied_contents(&self, state: &MachineState, line: u8, cell: u8) -> Values {
        let writer = state.copying.last[usize::from(line) * CELLS + usize::from(cell)];
        self.contents_at(state, Holder::Module(writer), line)
    }
}

/// Code of a thread in kernel `kernel`.
fn of_kernel(program: &Program, thread: usize, kernel: usize) -> &[Instruction] {
    let mut kernels = program.threads[thread].code.split(|instruction| *instruction == Instruction::KernelBoundary);
    kernels.nth(kernel).unwrap_or_default()
}
