//! Invariants for every protocol, in addition to program outcomes.

use super::machine::Machine;
use super::sm::SmHost;
use super::state::{MachineState, Violation};
use super::values::cells;
use tombolo_protocol::{Class, Coherence, Topology};
use tombolo_types::{Mask, ModuleId};

impl<P: Coherence> Machine<'_, P> {
    /// Finds a violation in `state`. Copies are compared only at rest, with no in-flight message.
    pub(super) fn violation_in(&self, state: &MachineState, is_final: bool) -> Option<Violation> {
        if state.broken.is_some() {
            return state.broken;
        }
        if !state.messages.is_empty() {
            return is_final.then_some(Violation::Deadlock);
        }
        if is_final {
            if state.pages.iter().any(|page| page.change.is_some()) {
                return Some(Violation::Deadlock);
            }
            let done = (0..state.fronts.threads.len()).all(|thread| self.instruction(state, thread).is_none());
            if !done
                || !state.held.is_empty()
                || !state.queues.is_empty()
                || state.fronts.registers.iter().any(|register| register.awaits.is_some())
            {
                return Some(Violation::Deadlock);
            }
        }
        if self.protocol.has_directory() {
            self.copies(state).or_else(|| self.lines_without_entry(state))
        } else if state.held.is_empty() {
            self.copy_that_differs(state).map(|(module, line)| Violation::Stale { module, line })
        } else {
            None
        }
    }

    /// For directories that track their own L2: finds a line at a home while its region has no entry. Skipped if lines
    /// are written back, because dirty bytes outlive the entry, and if entries are forgotten.
    fn lines_without_entry(&self, state: &MachineState) -> Option<Violation> {
        let kept = self.protocol.tracks_own() && !self.protocol.writes_back() && !self.config.reductions.forget;
        if !kept || !state.held.is_empty() {
            return None;
        }
        let lines = || 0..self.scene.lines as u8;
        let mut slots = self.modules().flat_map(|module| lines().map(move |line| (module, line)));
        let lacks = |&(module, line): &(ModuleId, u8)| {
            let homes = self.homes_of(module, line);
            let is_home = module == homes.system || self.protocol.is_hierarchical() && module == homes.gpu;
            let is_here = state.l2[self.l2_index(module, line)].line.is_some();
            is_home && is_here && state.entries[self.entry_index(module, line)].is_none()
        };
        slots.find(lacks).map(|(module, line)| Violation::Untracked { module, line })
    }

    /// Checks every readable copy in an L2 below its system home.
    fn copies(&self, state: &MachineState) -> Option<Violation> {
        if !state.held.is_empty() {
            return None;
        }
        for module in self.modules() {
            for line in 0..self.scene.lines as u8 {
                let Some(copy) = state.l2[self.l2_index(module, line)].line else { continue };
                let clean = copy.valid & !copy.dirty;
                if self.class(module, line) == Class::Own || clean.is_empty() {
                    continue;
                }
                if !self.is_tracked(state, module, line, clean) {
                    return Some(Violation::Untracked { module, line });
                }
                let dirty_elsewhere = self.is_dirty_somewhere(state, line);
                let home = self.home_contents(state, line);
                if !dirty_elsewhere && cells(clean).any(|cell| copy.data.0[cell] != home.0[cell]) {
                    return Some(Violation::Stale { module, line });
                }
            }
        }
        None
    }

    /// True if some L2 below the system home still has to write back: until then copies may differ.
    fn is_dirty_somewhere(&self, state: &MachineState, line: u8) -> bool {
        self.modules()
            .any(|module| self.class(module, line) != Class::Own && !self.dirty(state, module, line).is_empty())
    }

    fn dirty(&self, state: &MachineState, module: ModuleId, line: u8) -> Mask {
        state.l2[self.l2_index(module, line)].line.map_or(Mask::NONE, |line| line.dirty)
    }

    /// True if the directories between the system home and the copy know about a copy of the bytes `clean`. A GPU home
    /// with dirty copies of these bytes makes its GPU known at write-back.
    fn is_tracked(&self, state: &MachineState, module: ModuleId, line: u8, clean: Mask) -> bool {
        let homes = self.homes_of(module, line);
        let entry = |home: ModuleId| state.entries[self.entry_index(home, line)].unwrap_or_default();
        let as_module = |home: ModuleId| entry(home).modules.contains(module);
        let as_gpu = entry(homes.system).gpus.contains(self.scene.layout.gpu_of(module))
            || self.dirty(state, homes.gpu, line).contains(clean);
        as_module(homes.system) || (as_gpu && (module == homes.gpu || as_module(homes.gpu)))
    }
}
