//! Commands in flight, indexed by the slot that messages name.

use super::streams::StreamLaunch;
use super::{ActiveCommand, CommandKind, CommandStage};
use crate::sm::kernel_slot::KernelSlot;

/// Slots of the commands in flight.
#[derive(Default)]
pub(super) struct CommandSlots {
    works: Vec<Option<ActiveCommand>>,
    latest: KernelSlot,
}

impl CommandSlots {
    /// True if another command can be in flight.
    pub(super) fn has_room(&self) -> bool {
        self.works.len() < usize::from(KernelSlot::MAX) || self.works.iter().any(Option::is_none)
    }

    /// True if no command is in flight.
    pub(super) fn is_idle(&self) -> bool {
        self.works.iter().all(Option::is_none)
    }

    /// Allocates a slot for a command: slot 0 if no other command is in flight, else the next free slot in round-robin
    /// order. A flag can travel with a line shared between kernels and so outlive its own kernel, and slots are
    /// therefore reused as late as possible.
    pub(super) fn add(&mut self, work: ActiveCommand) -> KernelSlot {
        let most = KernelSlot::MAX;
        let place = if self.is_idle() {
            0
        } else {
            let later = (1..=most).map(|turn| (self.latest.0 + turn) % most);
            let is_free = |place: &u8| self.works.get(usize::from(*place)).is_none_or(Option::is_none);
            later.into_iter().find(is_free).expect("a slot is free where there is room")
        };
        self.latest = KernelSlot(place);
        *crate::sm::kernel_slot::entry(&mut self.works, self.latest) = Some(work);
        self.latest
    }

    /// Returns the command in a slot.
    pub(super) fn get(&mut self, slot: KernelSlot) -> &mut ActiveCommand {
        let work = self.works.get_mut(slot.index()).and_then(Option::as_mut);
        work.expect("messages name commands that are under way")
    }

    /// Removes a command that has ended.
    pub(super) fn remove(&mut self, slot: KernelSlot) -> ActiveCommand {
        self.works[slot.index()].take().expect("a command ends once")
    }

    /// Iterates over all commands in slot order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &ActiveCommand> {
        self.works.iter().flatten()
    }
}

impl ActiveCommand {
    /// Describes the awaited condition for the deadlock report.
    pub(super) fn waiting(&self) -> String {
        let whose = match self.what {
            CommandKind::Launch(StreamLaunch { kernel, launch, .. }) => format!("launch {launch}, of kernel {kernel},"),
            CommandKind::Host(command, _) => format!("command {command}, of the host,"),
            CommandKind::Core(work) => format!("{work:?}, of the host's core,"),
            CommandKind::ProgramEnds => "the end of the program".to_owned(),
        };
        match (self.stage, &self.side) {
            (CommandStage::Read, _) => format!("{whose} waits for its packet to be read"),
            (CommandStage::Acquire | CommandStage::Release, Some(side)) => {
                format!("{whose} lacks {} acknowledgments", side.missing())
            }
            (CommandStage::Acquire | CommandStage::Release, None) => format!("{whose} waits for another boundary"),
            (CommandStage::Before | CommandStage::Behind, _) => {
                format!("{whose} waits for what the schedule puts around it")
            }
            (CommandStage::Run | CommandStage::End, _) => format!("{whose} runs on {} modules", self.running),
        }
    }
}
