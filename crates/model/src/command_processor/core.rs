//! The host's core beside the command processor: what it is told to do, and when it worked.

use super::{Beside, CommandProcessor, Stage, Stretch, What, Work};
use crate::below::Below;
use crate::cpu::HostWork;
use crate::kernel_slot::KernelSlot;
use crate::message::{Message, Out};
use crate::watch::Contents;
use tombolo_protocol::Topology;
use tombolo_types::{ComponentId, Ps};

/// How far the host program is, where a core runs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HostProgram {
    /// Its core sets arrays up.
    Setup {
        /// The core.
        core: ComponentId,
        /// Whether it has been told to.
        began: bool,
    },
    /// Its commands run.
    Commands {
        /// The core.
        core: ComponentId,
    },
    /// Its core has read results, or reads them.
    Results,
}

impl CommandProcessor {
    /// Whether the host still sets arrays up, before the first command. It is told to where it has not been.
    pub(super) fn sets_up<C: Below<D>, T: Topology, D: Contents>(
        &mut self,
        here: &mut Beside<'_, '_, C, T, D>,
    ) -> bool {
        let Some(HostProgram::Setup { core, began }) = self.host_program else { return false };
        if !began {
            self.host_program = Some(HostProgram::Setup { core, began: true });
            self.begin_work(What::Core(HostWork::Setup), here);
        }
        true
    }

    /// What a command waited for is over; of one that the host's core worked for, its work.
    pub(super) fn core_worked(&mut self, slot: KernelSlot, now: Ps) {
        let Work { what, stage, .. } = *self.slots.get(slot);
        let works = self.host_program.is_some() && stage == Stage::Run;
        if let (true, What::Core(_) | What::Host(..), Some(last)) = (works, what, self.core.last_mut()) {
            last.end = now;
        }
    }

    /// Has the core of the host work, where there is one; returns whether that is over at once.
    pub(super) fn work_of_core<D: Contents>(&mut self, slot: KernelSlot, work: HostWork, out: &mut Out<'_, D>) -> bool {
        let Some(HostProgram::Setup { core, .. } | HostProgram::Commands { core }) = self.host_program else {
            return true;
        };
        if work.phase(&*self.program).is_empty() {
            return true;
        }
        self.core.push(Stretch { start: out.now(), end: out.now() });
        let at = out.now() + self.ways.one;
        out.send(at, self.layout.command_processor(), core, Message::HostWork { slot, work });
        false
    }
}
