//! Host reads and writes between kernels, without a modelled host core: modules are notified of each.
//!
//! The notification takes no simulated time: each module receives it before the next kernel's first request. Before
//! the first launch no module is notified, because no kernel has read memory yet and so no cache holds previous
//! contents.

use super::{CommandContext, CommandProcessor};
use crate::front_end::transfer::Transfer;
use crate::l2::backend::L2Design;
use crate::message::Message;
use crate::observe::value_probe::{Contents, ValueProbe};
use std::ops::Range;
use tombolo_protocol::Topology;
use tombolo_types::stream::{Command, Program};
use tombolo_types::{HostPhase, ModuleId};

/// Addresses that the host reads and writes in a command.
fn touched(program: &dyn Program, command: usize) -> HostPhase {
    match program.commands()[command] {
        Command::Copy { address, bytes, to_device } => {
            let moved = address..address.saturating_add(bytes);
            let moved: Vec<Range<u64>> = std::iter::once(moved).filter(|range| !range.is_empty()).collect();
            let (reads, writes) = if to_device { (Vec::new(), moved) } else { (moved, Vec::new()) };
            HostPhase { reads, writes }
        }
        Command::Host { phase } => program.host_phases()[phase as usize].clone(),
        Command::Launch { .. } | Command::Barrier => HostPhase::default(),
    }
}

impl CommandProcessor {
    /// Notifies modules about the host's reads, and then about the host's writes, in a command.
    pub(super) fn transfer<C: L2Design<D>, T: Topology, D: Contents>(
        &mut self,
        command: usize,
        here: &mut CommandContext<'_, '_, C, T, D>,
    ) {
        if self.host_program.is_some() || self.kernels.is_empty() {
            return;
        }
        let HostPhase { reads, writes } = touched(&*self.program, command);
        if !reads.is_empty() && here.probe.host_reads(self.transfers) {
            self.tell(true, Transfer { ranges: reads, contents: Vec::new() }, here);
        }
        if !writes.is_empty() {
            let writing = HostPhase { reads: Vec::new(), writes };
            let accesses = writing.accesses(self.program.line_size());
            let written = accesses.map_while(|access| {
                let data = here.probe.host_writes(access.line, access.mask)?;
                Some((access.line, access.mask, data))
            });
            let contents = written.collect();
            self.tell(false, Transfer { ranges: writing.writes, contents }, here);
        }
    }

    fn tell<C, T, D: Contents>(
        &mut self,
        is_read: bool,
        transfer: Transfer<D>,
        here: &mut CommandContext<'_, '_, C, T, D>,
    ) {
        let number = self.transfers;
        self.transfers += 1;
        here.transfers.add(number, transfer);
        let (now, id) = (here.out.now(), self.layout.command_processor());
        let at = self.command_latency.at_controller(now + self.command_latency.one, now);
        for module in (0..self.layout.modules).map(ModuleId) {
            here.out.send(at, id, self.layout.controller(module), Message::Transfer { number, is_read });
        }
    }
}
