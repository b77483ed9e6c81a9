//! Pages: locations, copies, and each module's page mapping. [`super::paging`] changes mappings, [`super::publication`]
//! sends stores to modules with a copy.
//!
//! Each module keeps the most recently received mapping: the target of its accesses, its permissions, and the
//! subscribers for its publications.

use super::config::Config;
use super::layout::{ProgramLayout, RegionHomes};
use super::machine::Machine;
use super::paging::PageChange;
use super::sm::SmHost;
use super::state::{Channel, MachineState};
use super::values::Values;
use crate::litmus::Instruction;
use tombolo_protocol::paging::{
    AttemptedAccess, ChangeStep as Phase, Holder, Mapping, PagePermission, Residence, Start,
};
use tombolo_protocol::{Coherence, Homes, ModuleSet, Topology};
use tombolo_types::{ModuleId, Order, Scope, Semantics};

/// Maximum number of modules in a machine with pages.
pub(super) const MODULES: usize = 4;

/// Memory contents in places without a page: no test uses this value.
pub(super) const NOTHING: Values = super::values::Cells([-99; super::values::CELLS]);

/// State of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct PageState {
    /// Current residence, before the effect of a change in progress.
    pub(super) now: Residence,
    /// Residence before the last change, for faults raised at that time; forgotten while the rules are whole.
    pub(super) before: Residence,
    /// The page mapping in each module.
    pub(super) seen: [Mapping; MODULES],
    /// Change in progress.
    pub(super) change: Option<PageChange>,
    /// Residence after the previous change, and the modules that have not received this mapping yet: none while the
    /// rules are whole.
    pub(super) late: Option<(Residence, ModuleSet)>,
}

impl PageState {
    /// Initial state for a page placed at a module.
    fn at(home: ModuleId, now: Residence) -> PageState {
        let sees = |module: usize| {
            let sees = now.mapping(ModuleId(module as u8));
            sees.unwrap_or_else(|| Mapping::at(home, PagePermission::None))
        };
        PageState { now, before: now, seen: std::array::from_fn(sees), change: None, late: None }
    }

    /// Current step of the change in progress.
    pub(super) fn phase(&self) -> Option<Phase> {
        self.change.and_then(|changing| changing.change.step(changing.step))
    }
}

/// All pages of a layout; empty if pages are fixed and not published.
pub(super) fn pages(layout: &ProgramLayout, config: &Config) -> Vec<PageState> {
    let (Some(rules), modules) = (config.rules_of_pages(), layout.modules()) else { return Vec::new() };
    assert!(usize::from(modules) <= MODULES, "{modules} modules; at most {MODULES}");
    let page = |(region, homes): (usize, &RegionHomes)| {
        let subscribers = layout.subscribers.get(region);
        let home = subscribers.map_or(homes.system, |subscribers| subscribers.server());
        let now = match subscribers {
            Some(subscribers) if subscribers.are_several() || rules.start != Start::OneCopy => {
                Residence::published(home, subscribers.modules(), modules)
            }
            Some(_) | None => rules.placed(home, modules),
        };
        PageState::at(home, now)
    };
    layout.regions.iter().enumerate().map(page).collect()
}

impl<P: Coherence> Machine<'_, P> {
    /// The homes of `line` under module `at`'s current mapping. If pages are fixed, the layout's homes apply.
    pub(super) fn homes_now(&self, state: &MachineState, at: ModuleId, line: u8) -> Homes {
        match self.sees(state, at, line) {
            None => self.homes_of(at, line),
            Some(Mapping { home, .. }) => Homes { system: home, gpu: home },
        }
    }

    /// Current mapping of the page with `line` at module `at`; `None` if pages are fixed and not published.
    pub(super) fn sees(&self, state: &MachineState, at: ModuleId, line: u8) -> Option<Mapping> {
        let page = state.pages.get(self.region(line) as usize)?;
        Some(page.seen[at.0 as usize])
    }

    /// Index in [`MachineState::memory`] for a line's bytes in the memory of `holder`.
    pub(super) fn memory_index(&self, holder: Holder, line: u8) -> usize {
        if self.paging.is_none() {
            return line as usize;
        }
        let memory = holder.module().map_or(self.scene.layout.modules(), |module| module.0);
        memory as usize * self.scene.lines + line as usize
    }

    /// Holder of the authoritative bytes for `line`.
    pub(super) fn holder(&self, state: &MachineState, line: u8) -> Holder {
        match state.pages.get(self.region(line) as usize) {
            None => Holder::Module(self.homes_of(ModuleId(0), line).system),
            Some(page) => page.now.home,
        }
    }

    /// True if the mapping of the thread's module permits the current access. Always true on machines with fixed,
    /// unpublished pages.
    pub(super) fn may_access(&self, state: &MachineState, thread: usize) -> bool {
        if self.config.copies.is_some() {
            return true;
        }
        let (Some(rules), Some((page, wanted))) = (self.paging, self.wanted(state, thread)) else { return true };
        let at = self.module_of(thread);
        rules.allows(at, state.pages[page as usize].seen[at.0 as usize], wanted)
    }

    /// Page and kind of the current access.
    pub(super) fn wanted(&self, state: &MachineState, thread: usize) -> Option<(u8, AttemptedAccess)> {
        let instruction = self.instruction(state, thread)?;
        let page = self.region(self.scene.layout.cell(instruction.location()?).line);
        let store = |order: Order| {
            let is_of_the_system = order.scope == Scope::Sys && order.semantics != Semantics::Weak;
            if is_of_the_system { AttemptedAccess::SystemStore } else { AttemptedAccess::Store }
        };
        let wanted = match *instruction {
            Instruction::Store { order, .. } | Instruction::Atomic { order, .. } => store(order),
            Instruction::Load { .. }
            | Instruction::Fence { .. }
            | Instruction::Move { .. }
            | Instruction::Compute { .. }
            | Instruction::Barrier { .. }
            | Instruction::KernelBoundary
            | Instruction::Branch { .. }
            | Instruction::Jump { .. } => AttemptedAccess::Load,
        };
        Some((page, wanted))
    }

    /// True if the first message of a channel waits for published stores.
    pub(super) fn waits_for_publication(&self, state: &MachineState, channel: Channel) -> bool {
        self.awaits_value(state, channel) || self.waits_before_l2(state, channel)
    }

    pub(super) fn lines_of_page(&self, page: u8) -> impl Iterator<Item = u8> + use<P> {
        let lines: Vec<u8> = (0..self.scene.lines as u8).filter(|line| self.region(*line) == page).collect();
        lines.into_iter()
    }

    /// Bytes of a line at `holder`: in memory, or in the L2 if the cached copy is newer.
    pub(super) fn contents_at(&self, state: &MachineState, holder: Holder, line: u8) -> Values {
        let mut values = state.memory[self.memory_index(holder, line)];
        if let Some(present) = holder.module().and_then(|module| state.l2[self.l2_index(module, line)].line) {
            tombolo_protocol::Data::merge(&mut values, present.data, present.valid);
        }
        values
    }

    /// Modules with possibly different views of final memory.
    pub(super) fn observers(&self) -> Vec<ModuleId> {
        if self.config.publication.is_some() { self.modules().collect() } else { vec![ModuleId(0)] }
    }

    /// Cells of a line in the view of `observer`, at run end.
    pub(super) fn seen_by(&self, state: &MachineState, observer: ModuleId, line: u8) -> Values {
        match self.sees(state, observer, line) {
            Some(Mapping { home, subscribers, .. }) if !subscribers.is_empty() => {
                self.contents_at(state, Holder::Module(home), line)
            }
            Some(_) | None => self.home_contents(state, line),
        }
    }

    /// Finds a page copy different from the home's contents, at rest. Copies of published pages may differ: stores to
    /// such a page may race.
    pub(super) fn copy_that_differs(&self, state: &MachineState) -> Option<(ModuleId, u8)> {
        let lines = || 0..self.scene.lines as u8;
        let copies = |line: u8| {
            let page = state.pages.get(self.region(line) as usize);
            let page = page.filter(|page| page.change.is_none() && !page.now.published);
            let copies = page.map_or(ModuleSet::NONE, |page| page.now.copies);
            self.modules().filter(move |module| copies.contains(*module)).map(move |module| (module, line))
        };
        let differs = |&(module, line): &(ModuleId, u8)| {
            let home = self.contents_at(state, self.holder(state, line), line);
            self.contents_at(state, Holder::Module(module), line) != home
        };
        lines().flat_map(copies).find(differs)
    }
}
