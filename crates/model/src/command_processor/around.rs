//! What the schedule puts around a command: the driver does it, and the command waits.

use super::{CommandProcessor, Launch, Stage, Stretch, What, Work, stretch};
use crate::kernel_slot::KernelSlot;
use crate::message::{Message, Out};
use crate::watch::Contents;
use tombolo_types::{ModuleId, Ps};

/// What a command waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaited {
    /// Before a kernel: pages that move.
    Pages,
    /// Before a kernel: copies from the host.
    FromHost,
    /// Before the host works, or at the end of the program: copies to the host.
    ToHost,
    /// Behind a kernel: what GPUs send each other, and what the driver reads of them.
    Behind,
}

/// When a command waited for what the schedule puts before it or behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// For what.
    pub awaited: Awaited,
    /// From when to when.
    pub time: Stretch,
}

impl CommandProcessor {
    /// A module's part of a kernel has ended: where copies overlap it sends what it is to send behind.
    pub(super) fn part_ended<D: Contents>(&mut self, slot: KernelSlot, module: ModuleId, out: &mut Out<'_, D>) {
        let What::Launch(launch) = self.slots.get(slot).what else { return };
        let around = self.schedule.around(launch.command).filter(|around| !around.copies.is_empty());
        if self.schedule.overlaps && around.is_some() {
            let command = launch.command as u32;
            let message = Message::Sends { slot, command, module };
            out.send(out.now() + Ps(1), self.layout.command_processor(), self.layout.driver(), message);
        }
    }

    /// The operations that a command needs have run: has the driver do what the schedule puts before it. Returns whether there
    /// is nothing.
    pub(super) fn before<D: Contents>(&mut self, slot: KernelSlot, out: &mut Out<'_, D>) -> bool {
        let Work { what, started, .. } = *self.slots.get(slot);
        let operated = stretch(started, out.now());
        let command = match what {
            What::Launch(Launch { command, .. }) => {
                // Its own operations are told of with it, unless the host's copies stand between.
                if self.is_copied_ahead(command) {
                    self.hosted.extend(operated);
                }
                command
            }
            What::Host(command, _) => {
                self.hosted.extend(operated);
                command
            }
            What::ProgramEnds => {
                self.ending = operated;
                self.program.commands().len()
            }
            What::Core(_) => return true,
        };
        self.around(slot, command, false, out)
    }

    /// Has the driver do what the schedule puts before or behind a command; returns whether there is nothing.
    pub(super) fn around<D: Contents>(
        &mut self,
        slot: KernelSlot,
        command: usize,
        behind: bool,
        out: &mut Out<'_, D>,
    ) -> bool {
        let around = self.schedule.around(command);
        let has = around.is_some_and(|one| if behind { one.is_followed() } else { one.is_preceded() });
        if has {
            self.slots.get(slot).around = out.now();
            let (id, command) = (self.layout.command_processor(), command as u32);
            let message = Message::Around { slot, command, behind };
            out.send(out.now() + Ps(1), id, self.layout.driver(), message);
        }
        !has
    }

    /// The driver has done it.
    pub(super) fn around_done(&mut self, slot: KernelSlot, now: Ps) {
        let Work { what, stage, around, .. } = *self.slots.get(slot);
        let awaited = match what {
            What::Launch(_) if stage == Stage::Behind => Awaited::Behind,
            What::Launch(Launch { command, .. }) if self.is_copied_ahead(command) => {
                // The host launches the kernel when its copies are over.
                self.slots.get(slot).started = now;
                Awaited::FromHost
            }
            What::Launch(_) => Awaited::Pages,
            What::Host(..) | What::Core(_) | What::ProgramEnds => Awaited::ToHost,
        };
        self.around.push(Wait { awaited, time: Stretch { start: around, end: now } });
    }

    /// Whether the host copies before a command.
    fn is_copied_ahead(&self, command: usize) -> bool {
        self.schedule.around(command).is_some_and(|around| !around.ahead.is_empty())
    }
}
