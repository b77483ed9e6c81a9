//! Driver tasks scheduled before or after program commands: page migrations, copies, and the end of access tracking.

use super::{ChangeOrigin, Driver, ScheduledTask};
use crate::fabric::packet::CopyName;
use crate::message::{Message, Out};
use crate::observe::value_probe::Contents;
use crate::sm::kernel_slot::KernelSlot;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use tombolo_protocol::paging::{ChangeReason, Holder};
use tombolo_protocol::topology::ModuleSet;
use tombolo_types::{ModuleId, Page, Ps};

impl Driver {
    /// Starts the next task if none is in progress. Tasks run serially.
    pub(super) fn begin_errand<D: Contents>(&mut self, out: &mut Out<'_, D>) {
        if self.task.is_some() {
            return;
        }
        let Some(mut task) = self.tasks.pop_front() else { return };
        let schedule = Arc::clone(&self.schedule);
        let tasks = schedule.tasks_of(task.command as usize).expect("only what has something to do is asked for");
        let copies = if task.behind { &tasks.copies } else { &tasks.ahead };
        let others = if task.behind { usize::from(tasks.stops_tracking) } else { tasks.moves.len() };
        let awaited = if self.copies.launch_waits() { copies.len() } else { 0 };
        task.left += (awaited + others) as u32;
        self.task = Some(task);
        if task.behind {
            if tasks.stops_tracking {
                self.ask_accesses(out);
            }
        } else {
            for one in &tasks.moves {
                let wish = ChangeReason::Move { to: Holder::Module(one.to) };
                self.begin_change(self.request_change(one.page, wish, ChangeOrigin::Schedule), out);
            }
        }
        for &index in copies {
            let copy = &schedule.copies[index as usize];
            let message = Message::Copy { copy: CopyName::Listed(index), to: Some(copy.to) };
            out.send(out.now() + self.latency, self.layout.driver(), self.layout.copy_engine(copy.from), message);
        }
        self.errand_part_done(out);
    }

    /// Requests from every module the pages accessed since the program began.
    pub(super) fn ask_accesses<D: Contents>(&mut self, out: &mut Out<'_, D>) {
        self.missing_reports = self.layout.modules;
        for module in (0..self.layout.modules).map(ModuleId) {
            let to = self.layout.controller(module);
            out.send(out.now() + self.latency, self.layout.driver(), to, Message::AskAccesses);
        }
    }

    /// Handles a module's completed access report; after the last report, the driver starts reading the results.
    pub(super) fn accesses_reported<D: Contents>(&mut self, out: &mut Out<'_, D>) {
        self.missing_reports -= 1;
        if self.missing_reports == 0 {
            let id = self.layout.driver();
            out.send(out.now() + self.stop.max(Ps(1)), id, id, Message::TrackingEnds);
        }
    }

    /// Ends access tracking after the driver has read all accesses: each module loses its mapping for pages without an
    /// access from this module.
    pub(super) fn end_tracking<D: Contents>(&mut self, out: &mut Out<'_, D>) {
        let pages: Vec<Page> = self.table.placed().map(|(page, _)| page).collect();
        for page in pages {
            let accessed = self.accessed.get(&page).copied().unwrap_or_default();
            let modules = ModuleSet::first(self.layout.modules).difference(accessed);
            self.task.as_mut().expect("the program waits").left += 1;
            let wish = ChangeReason::Leave { modules, ends: true };
            self.begin_change(self.request_change(page, wish, ChangeOrigin::Schedule), out);
        }
        self.accessed = FxHashMap::default();
        self.errand_part_done(out);
    }

    /// Starts a module's transfers after a command, while other modules may still run the command. Kernels run
    /// serially in this mode, and the current task therefore belongs to this command.
    pub(super) fn send_part<D: Contents>(
        &mut self,
        (slot, command): (KernelSlot, u32),
        module: ModuleId,
        out: &mut Out<'_, D>,
    ) {
        let schedule = Arc::clone(&self.schedule);
        let tasks = schedule.tasks_of(command as usize).expect("only what has something to do is asked for");
        let task = self.task.get_or_insert(ScheduledTask { slot, command, behind: true, left: 1 });
        for &index in &tasks.copies {
            let copy = &schedule.copies[index as usize];
            if copy.from == module {
                task.left += u32::from(self.copies.launch_waits());
                let message = Message::Copy { copy: CopyName::Listed(index), to: Some(copy.to) };
                out.send(out.now() + self.latency, self.layout.driver(), self.layout.copy_engine(module), message);
            }
        }
    }

    pub(super) fn errand_part_done<D: Contents>(&mut self, out: &mut Out<'_, D>) {
        let task = self.task.as_mut().expect("an errand is under way");
        task.left -= 1;
        if task.left == 0 {
            let slot = task.slot;
            self.task = None;
            let (id, to) = (self.layout.driver(), self.layout.command_processor());
            out.send(out.now() + Ps(1), id, to, Message::ScheduledTasksDone { slot });
            self.begin_errand(out);
        }
    }
}
