//! Driver operations scheduled before or after a command, and the command's wait for them.

use super::{ActiveCommand, CommandKind, CommandProcessor, CommandStage, StreamLaunch, TimeRange, time_range};
use crate::message::{Message, Out};
use crate::observe::value_probe::Contents;
use crate::sm::kernel_slot::KernelSlot;
use tombolo_types::{ModuleId, Ps};

/// Driver operation that a command waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DriverOperation {
    /// Before a kernel: page migrations.
    Pages,
    /// Before a kernel: copies from the host.
    FromHost,
    /// Before host work, or at the program's end: copies to the host.
    ToHost,
    /// After a kernel: transfers between GPUs, and reads by the driver.
    Behind,
}

/// Interval in which a command waited for a scheduled driver operation, before or after its execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandWait {
    /// Reason for the wait.
    pub operation: DriverOperation,
    /// Start and end of the wait.
    pub time: TimeRange,
}

impl CommandProcessor {
    /// Handles the end of a module's part in a kernel: if copies overlap with kernels, the driver starts the module's
    /// transfers.
    pub(super) fn part_ended<D: Contents>(&mut self, slot: KernelSlot, module: ModuleId, out: &mut Out<'_, D>) {
        let CommandKind::Launch(launch) = self.slots.get(slot).what else { return };
        let tasks = self.schedule.tasks_of(launch.command).filter(|tasks| !tasks.copies.is_empty());
        if self.schedule.overlaps && tasks.is_some() {
            let command = launch.command as u32;
            let message = Message::ModuleTransfers { slot, command, module };
            out.send(out.now() + Ps(1), self.layout.command_processor(), self.layout.driver(), message);
        }
    }

    /// Starts the driver operations scheduled before a command, after the command's boundary operations have
    /// completed. Returns true if nothing is scheduled.
    pub(super) fn before<D: Contents>(&mut self, slot: KernelSlot, out: &mut Out<'_, D>) -> bool {
        let ActiveCommand { what, started, .. } = *self.slots.get(slot);
        let operated = time_range(started, out.now());
        let command = match what {
            CommandKind::Launch(StreamLaunch { command, .. }) => {
                // A kernel's boundary operations are reported together with the kernel, unless host copies lie in
                // between.
                if self.is_copied_ahead(command) {
                    self.hosted.extend(operated);
                }
                command
            }
            CommandKind::Host(command, _) => {
                self.hosted.extend(operated);
                command
            }
            CommandKind::ProgramEnds => {
                self.ending = operated;
                self.program.commands().len()
            }
            CommandKind::Core(_) => return true,
        };
        self.start_tasks(slot, command, false, out)
    }

    /// Starts the driver operations scheduled before or after a command; returns true if nothing is scheduled.
    pub(super) fn start_tasks<D: Contents>(
        &mut self,
        slot: KernelSlot,
        command: usize,
        behind: bool,
        out: &mut Out<'_, D>,
    ) -> bool {
        let tasks = self.schedule.tasks_of(command);
        let has = tasks.is_some_and(|one| if behind { one.is_followed() } else { one.is_preceded() });
        if has {
            self.slots.get(slot).tasks_start = out.now();
            let (id, command) = (self.layout.command_processor(), command as u32);
            let message = Message::ScheduledTasks { slot, command, behind };
            out.send(out.now() + Ps(1), id, self.layout.driver(), message);
        }
        !has
    }

    /// Records the end of a command's driver operations.
    pub(super) fn tasks_done(&mut self, slot: KernelSlot, now: Ps) {
        let ActiveCommand { what, stage, tasks_start: tasks, .. } = *self.slots.get(slot);
        let operation = match what {
            CommandKind::Launch(_) if stage == CommandStage::Behind => DriverOperation::Behind,
            CommandKind::Launch(StreamLaunch { command, .. }) if self.is_copied_ahead(command) => {
                // The host launches the kernel after its copies have completed.
                self.slots.get(slot).started = now;
                DriverOperation::FromHost
            }
            CommandKind::Launch(_) => DriverOperation::Pages,
            CommandKind::Host(..) | CommandKind::Core(_) | CommandKind::ProgramEnds => DriverOperation::ToHost,
        };
        self.waits.push(CommandWait { operation, time: TimeRange { start: tasks, end: now } });
    }

    /// True if host copies are scheduled before a command.
    fn is_copied_ahead(&self, command: usize) -> bool {
        self.schedule.tasks_of(command).is_some_and(|tasks| !tasks.ahead.is_empty())
    }
}
