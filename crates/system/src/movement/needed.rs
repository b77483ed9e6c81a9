//! Finds the bytes that each module needs: bytes with a later read by the module, before any user writes to the bytes
//! again.
//!
//! The analysis runs from a program's end to its start. Reads are counted by whole lines, writes by bytes: if a module
//! has written part of a line, the remaining bytes still come from their own writer. Within a kernel, writes follow all
//! reads, because no CTA sees another CTA's writes in the same kernel.

use super::bytes::{self, RemovedBytes};
use super::{ModuleMovement, Movement};
use std::ops::Range;
use tombolo_model::front_end::WrittenBytes;
use tombolo_protocol::elision::{LineRange, LineSet};
use tombolo_types::stream::{Command, Program};
use tombolo_types::{Line, LineSize};

/// Bytes that modules need after a command in the program.
pub(super) struct NeededBytes<'a> {
    movement: &'a Movement,
    program: &'a dyn Program,
    /// Needed bytes, indexed by module.
    needed: Vec<WrittenBytes>,
    /// Bytes that any module writes, indexed by kernel; `None` until first used.
    gone: Vec<Option<RemovedBytes>>,
}

impl<'a> NeededBytes<'a> {
    /// The state after the last command: no bytes are needed.
    pub(super) fn new(movement: &'a Movement, program: &'a dyn Program) -> NeededBytes<'a> {
        let modules = movement.kernels.iter().map(Vec::len).max().unwrap_or_default();
        let gone = movement.kernels.iter().map(|_| None).collect();
        NeededBytes { movement, program, needed: vec![WrittenBytes::default(); modules], gone }
    }

    /// Lines that module `from` writes in `kernel`, the current command, and module `to` needs.
    pub(super) fn of(&self, kernel: u32, from: usize, to: usize) -> LineSet {
        bytes::common(&self.movement.kernel(kernel)[from].written, &self.needed[to])
    }

    /// Steps back to the state before `command`.
    pub(super) fn before(&mut self, command: &Command) {
        match *command {
            Command::Launch { kernel, on, .. } => {
                let kernel = self.movement.number(kernel, on);
                let modules = self.movement.kernel(kernel);
                let gone = self.gone[kernel as usize].get_or_insert_with(|| RemovedBytes::new(written(modules)));
                for (needed, module) in self.needed.iter_mut().zip(modules) {
                    gone.remove_from(needed);
                    bytes::add_lines(needed, &module.read);
                }
            }
            Command::Copy { address, bytes, to_device: true } => {
                self.host_writes(std::iter::once(&(address..address.saturating_add(bytes))));
            }
            Command::Copy { to_device: false, .. } | Command::Barrier => {}
            Command::Host { phase } => {
                let program = self.program;
                self.host_writes(program.host_phases()[phase as usize].writes.iter());
            }
        }
    }

    /// Host writes reach every module, which then needs no earlier value.
    fn host_writes<'r>(&mut self, addresses: impl Iterator<Item = &'r Range<u64>>) {
        let size = self.program.line_size();
        let lines = addresses.filter_map(|range| inside(range, size)).collect();
        let gone = RemovedBytes::new(WrittenBytes { lines, ..WrittenBytes::default() });
        self.needed.iter_mut().for_each(|needed| gone.remove_from(needed));
    }
}

/// Bytes that any module writes in a kernel.
fn written(modules: &[ModuleMovement]) -> WrittenBytes {
    let mut all = WrittenBytes::default();
    modules.iter().for_each(|module| bytes::add(&mut all, &module.written));
    all
}

/// Lines that lie wholly in `bytes`.
fn inside(bytes: &Range<u64>, size: LineSize) -> Option<LineRange> {
    let (first, end) = (bytes.start.div_ceil(size.bytes()), bytes.end / size.bytes());
    (first < end).then(|| LineRange::new(Line(first), Line(end)))
}
