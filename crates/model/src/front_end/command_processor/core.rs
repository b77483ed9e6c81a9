//! Host core attached to the command processor: progress in the host program, work commands and busy intervals.

use super::{ActiveCommand, CommandContext, CommandKind, CommandProcessor, CommandStage, TimeRange};
use crate::front_end::cpu::HostWork;
use crate::l2::backend::L2Design;
use crate::message::{Message, Out};
use crate::observe::value_probe::Contents;
use crate::sm::kernel_slot::KernelSlot;
use tombolo_protocol::Topology;
use tombolo_types::{ComponentId, Ps};

/// Progress of the host program on a modelled core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HostProgram {
    /// The core initializes arrays.
    Setup {
        /// Host core.
        core: ComponentId,
        /// True if initialization has started.
        began: bool,
    },
    /// The program's commands run.
    Commands {
        /// Host core.
        core: ComponentId,
    },
    /// The core reads results, or has already read all results.
    Results,
}

impl CommandProcessor {
    /// True while the host initializes arrays, before the first command. Starts the initialization on the first call.
    pub(super) fn sets_up<C: L2Design<D>, T: Topology, D: Contents>(
        &mut self,
        here: &mut CommandContext<'_, '_, C, T, D>,
    ) -> bool {
        let Some(HostProgram::Setup { core, began }) = self.host_program else { return false };
        if !began {
            self.host_program = Some(HostProgram::Setup { core, began: true });
            self.begin_work(CommandKind::Core(HostWork::Setup), here);
        }
        true
    }

    /// Ends a command's wait; records the work interval if the host core worked for this command.
    pub(super) fn core_worked(&mut self, slot: KernelSlot, now: Ps) {
        let ActiveCommand { what, stage, .. } = *self.slots.get(slot);
        let works = self.host_program.is_some() && stage == CommandStage::Run;
        if let (true, CommandKind::Core(_) | CommandKind::Host(..), Some(last)) = (works, what, self.core.last_mut()) {
            last.end = now;
        }
    }

    /// Starts work on the host core if a core is modelled. Returns true if the work completes immediately, that is
    /// without a core or without accesses.
    pub(super) fn work_of_core<D: Contents>(&mut self, slot: KernelSlot, work: HostWork, out: &mut Out<'_, D>) -> bool {
        let Some(HostProgram::Setup { core, .. } | HostProgram::Commands { core }) = self.host_program else {
            return true;
        };
        if work.phase(&*self.program).is_empty() {
            return true;
        }
        self.core.push(TimeRange { start: out.now(), end: out.now() });
        let at = out.now() + self.command_latency.one;
        out.send(at, self.layout.command_processor(), core, Message::HostWork { slot, work });
        false
    }
}
