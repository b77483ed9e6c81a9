//! Pages that move: the driver that serves faults and wishes, and what modules do at each step of a change, by the very
//! rules of [`tombolo_protocol::paging`].
//!
//! Each module sees a page as it was told last, and each is told by a message of its own: at any time, in any order.
//! A change goes on as soon as its step is done everywhere; what is under way may be late. One change of a page runs at a
//! time, and a fault is served by where the page is then. A thread whose module may not make the access at hand waits.

use super::l2::is_awaited;
use super::layout::Layout;
use super::machine::Machine;
use super::reduce::LineSet;
use super::state::{Awaited, Body, Channel, Held, Hold, Message, Source, State, Violation};
use super::values::Values;
use crate::litmus::Instruction;
use tombolo_protocol::front::Stage;
use tombolo_protocol::paging::{Access, Change, Holder, Mapping, Paging, Residence, Step as Phase, Wanted, Wish};
use tombolo_protocol::{Coherence, Homes, LineState, ModuleSet, Topology};
use tombolo_types::{Mask, ModuleId};

/// Most modules of a machine whose pages move.
pub(super) const MODULES: usize = 4;

/// What memory holds where no page has been: no test has it.
pub(super) const NOTHING: Values = Values([-99; super::values::CELLS]);

/// A page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct PageState {
    /// Where it is, but for the change at hand.
    pub(super) now: Residence,
    /// Where it was before its last change, for a fault that was made then; forgotten while the rules are whole.
    before: Residence,
    /// How each module sees it.
    pub(super) seen: [Mapping; MODULES],
    /// What is being done to it.
    pub(super) change: Option<Changing>,
    /// Where it came to be by the change before, and modules that have not heard of that: none while the rules are whole.
    late: Option<(Residence, ModuleSet)>,
}

/// A change at hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Changing {
    change: Change,
    /// The step at hand.
    step: u8,
    /// Modules that have not heard of it yet.
    asked: ModuleSet,
    /// Modules that have not acknowledged it.
    owed: ModuleSet,
    /// Lines that have not been copied.
    left: LineSet,
}

/// A step of what moves pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum PageStep {
    /// The fault of a thread is served.
    Fault {
        /// Which.
        thread: u8,
    },
    /// A page is to be elsewhere.
    Move {
        /// Which.
        page: u8,
        /// Where.
        to: Holder,
    },
    /// A module hears of the step at hand.
    Hear {
        /// Of which page.
        page: u8,
        /// Which module.
        module: ModuleId,
    },
    /// A module hears of a change that is over.
    HearLate {
        /// Of which page.
        page: u8,
        /// Which module.
        module: ModuleId,
    },
    /// A line is copied.
    Copy {
        /// Which.
        line: u8,
    },
}

impl PageState {
    /// A page before the program, at a module.
    fn at(home: ModuleId, rules: &Paging, modules: u8) -> PageState {
        let now = rules.placed(home, modules);
        let sees = |module: usize| {
            let sees = now.mapping(ModuleId(module as u8));
            sees.unwrap_or_else(|| Mapping::at(home, Access::None))
        };
        PageState { now, before: now, seen: std::array::from_fn(sees), change: None, late: None }
    }

    /// The step of the change at hand.
    pub(super) fn phase(&self) -> Option<Phase> {
        self.change.and_then(|changing| changing.change.step(changing.step))
    }
}

/// A module hears how it sees a page since the change before.
fn hear_late(page: &mut PageState, module: ModuleId) {
    let Some((after, modules)) = page.late else { return };
    let seen = &mut page.seen[module.0 as usize];
    *seen = seen.told(after.mapping(module));
    let left = modules.without(ModuleSet::only(module));
    page.late = (left != ModuleSet::NONE).then_some((after, left));
}

/// Every page of a layout.
pub(super) fn pages(layout: &Layout, rules: &Paging) -> Vec<PageState> {
    assert!(usize::from(layout.modules()) <= MODULES, "{} modules; at most {MODULES}", layout.modules());
    layout.regions.iter().map(|homes| PageState::at(homes.system, rules, layout.modules())).collect()
}

impl<P: Coherence> Machine<'_, P> {
    /// The homes of `line` as module `at` sees them now.
    pub(super) fn homes_now(&self, state: &State, at: ModuleId, line: u8) -> Homes {
        match state.pages.get(self.region(line) as usize) {
            None => self.homes_of(at, line),
            Some(page) => {
                let home = page.seen[at.0 as usize].home;
                Homes { system: home, gpu: home }
            }
        }
    }

    /// Where a line's bytes are in [`State::memory`], as `holder` has them.
    pub(super) fn memory_index(&self, holder: Holder, line: u8) -> usize {
        if self.config.paging.is_none() && self.config.publication.is_none() {
            return line as usize;
        }
        let memory = holder.module().map_or(self.layout.modules(), |module| module.0);
        memory as usize * self.lines + line as usize
    }

    /// Who has the bytes of `line` that count.
    pub(super) fn holder(&self, state: &State, line: u8) -> Holder {
        match state.pages.get(self.region(line) as usize) {
            None => Holder::Module(self.homes_of(ModuleId(0), line).system),
            Some(page) => page.now.home,
        }
    }

    /// Whether the module of `thread` may make the access at hand.
    pub(super) fn may_access(&self, state: &State, thread: usize) -> bool {
        let Some((page, wanted)) = self.wanted(state, thread) else { return true };
        let at = self.module_of(thread);
        let rules = self.config.paging.unwrap_or_default();
        rules.allows(at, state.pages[page as usize].seen[at.0 as usize], wanted)
    }

    /// The page of the access at hand and what its module must be allowed; `None` where pages do not move.
    fn wanted(&self, state: &State, thread: usize) -> Option<(u8, Wanted)> {
        let instruction = self.instruction(state, thread)?;
        let page = self.region(self.layout.cell(instruction.location()?).line);
        let wanted = if matches!(instruction, Instruction::Load { .. }) { Wanted::Load } else { Wanted::Store };
        (!state.pages.is_empty()).then_some((page, wanted))
    }

    /// What may happen to pages.
    pub(super) fn page_steps(&self, state: &State, steps: &mut Vec<super::step::Step>) {
        let mut add = |step| steps.push(super::step::Step::Page(step));
        for (number, page) in (0..).zip(&state.pages) {
            let late = page.late.map_or(ModuleSet::NONE, |(_, modules)| modules);
            self.modules().filter(|module| late.contains(*module)).for_each(|module| {
                add(PageStep::HearLate { page: number, module });
            });
            let Some(changing) = page.change else { continue };
            self.modules().filter(|module| changing.asked.contains(*module)).for_each(|module| {
                add(PageStep::Hear { page: number, module });
            });
            (0..self.lines as u8).filter(|line| changing.left >> line & 1 != 0).for_each(|line| {
                add(PageStep::Copy { line });
            });
        }
        for thread in 0..state.threads.len() {
            if self.fault(state, thread).is_some() {
                add(PageStep::Fault { thread: thread as u8 });
            }
        }
        for (number, page) in (0..).zip(&state.pages) {
            if state.moves == 0 || page.change.is_some() {
                continue;
            }
            let holders = self.modules().map(Holder::Module).chain([Holder::Host]);
            holders.filter(|to| *to != page.now.home).for_each(|to| add(PageStep::Move { page: number, to }));
        }
    }

    /// The change that the fault of a thread starts.
    fn fault(&self, state: &State, thread: usize) -> Option<(u8, Change)> {
        let rules = self.config.paging?;
        if self.stage(state, thread) != Some(Stage::Issue) || !self.can_issue(state, thread) {
            return None;
        }
        let (page, wanted) = self.wanted(state, thread)?;
        let PageState { now, before, change, .. } = state.pages[page as usize];
        if change.is_some() || self.may_access(state, thread) {
            return None;
        }
        let wish = Wish::Fault { module: self.module_of(thread), wanted };
        let by = rules.served_by(before, now);
        let change = rules.change(&by, wish, self.layout.modules());
        // What would be no change then is one now.
        let change = change.or_else(|| rules.change(&now, wish, self.layout.modules()));
        change.map(|change| (page, change))
    }

    /// Takes a step. False where it must wait.
    pub(super) fn take_page_step(&self, state: &mut State, step: PageStep) -> bool {
        match step {
            PageStep::Fault { thread } => {
                let Some((page, change)) = self.fault(state, thread as usize) else { return false };
                self.begin_change(state, page, change)
            }
            PageStep::Move { page, to } => {
                let Some(rules) = self.config.paging else { return false };
                let now = state.pages[page as usize].now;
                let Some(change) = rules.change(&now, Wish::Move { to }, self.layout.modules()) else { return false };
                state.moves -= 1;
                self.begin_change(state, page, change)
            }
            PageStep::Hear { page, module } => {
                self.hear(state, page, module);
                true
            }
            PageStep::HearLate { page, module } => {
                hear_late(&mut state.pages[page as usize], module);
                true
            }
            PageStep::Copy { line } => {
                self.copy(state, line);
                true
            }
        }
    }

    /// Starts a change. Where its steps are taken at once, it must wait until its modules have let go of the page.
    fn begin_change(&self, state: &mut State, page: u8, change: Change) -> bool {
        let none = ModuleSet::NONE;
        state.pages[page as usize].change = Some(Changing { change, step: 0, asked: none, owed: none, left: 0 });
        self.begin_phase_of(state, page);
        !self.config.reductions.pages || self.finish_change(state, page)
    }

    /// Takes all steps of a change. False where something that it waits for is under way.
    fn finish_change(&self, state: &mut State, page: u8) -> bool {
        loop {
            self.go_on(state, page);
            let Some(changing) = state.pages[page as usize].change else { return true };
            if let Some(module) = self.modules().find(|module| changing.asked.contains(*module)) {
                self.hear(state, page, module);
            } else if changing.left != 0 {
                self.copy(state, changing.left.trailing_zeros() as u8);
            } else {
                return false;
            }
        }
    }

    /// Sends the messages of the step at hand.
    fn begin_phase_of(&self, state: &mut State, page: u8) {
        let (phase, lines) = (state.pages[page as usize].phase(), self.lines_of_page(page));
        let PageState { now, change: Some(changing), .. } = &mut state.pages[page as usize] else { return };
        match phase {
            Some(Phase::Unmap(modules)) => (changing.asked, changing.owed) = (modules, modules),
            Some(Phase::WriteBack(modules)) => changing.asked = modules,
            Some(Phase::Copy { .. }) => changing.left = lines.fold(0, |set, line| set | 1 << line),
            Some(Phase::Map(after)) => changing.asked = now.mapped.and(after.mapped),
            None => {}
        }
    }

    /// Lets every change go on as far as it may.
    pub(super) fn settle_pages(&self, state: &mut State) {
        for page in 0..state.pages.len() as u8 {
            self.go_on(state, page);
        }
    }

    /// Goes from step to step of a page's change as long as nothing is lacking.
    fn go_on(&self, state: &mut State, page: u8) {
        while let Some(changing) = self.collect(state, page) {
            let lacking = changing.owed.and(changing.asked);
            let PageState { now, before, change, late, .. } = &mut state.pages[page as usize];
            let rules = self.config.paging.unwrap_or_default();
            let is_last = changing.change.step(changing.step + 1).is_none();
            if lacking == ModuleSet::NONE && changing.left == 0 && is_last {
                *before = rules.served_by(*now, changing.change.after);
                (*now, *change) = (changing.change.after, None);
            } else if lacking == ModuleSet::NONE && changing.left == 0 {
                *change = Some(Changing { step: changing.step + 1, ..changing });
                self.begin_phase_of(state, page);
            } else if is_last && late.is_none() && !rules.awaits_map() {
                *before = changing.change.after;
                (*now, *change, *late) = (changing.change.after, None, Some((changing.change.after, lacking)));
            } else {
                return;
            }
        }
    }

    /// Collects acknowledgments of a page's change.
    fn collect(&self, state: &mut State, page: u8) -> Option<Changing> {
        let changing = state.pages[page as usize].change?;
        let awaited = changing.owed.without(changing.asked);
        let over = |module: &ModuleId| awaited.contains(*module) && self.is_over(state, page, *module);
        let over = self.modules().filter(over).fold(ModuleSet::NONE, |set, module| set.and(ModuleSet::only(module)));
        let changing = Changing { owed: changing.owed.without(over), ..changing };
        state.pages[page as usize].change = Some(changing);
        Some(changing)
    }

    /// A module hears of the step at hand.
    fn hear(&self, state: &mut State, page: u8, module: ModuleId) {
        let Some(rules) = self.config.paging else { return };
        let phase = state.pages[page as usize].phase();
        let PageState { seen, change: Some(changing), .. } = &mut state.pages[page as usize] else { return };
        changing.asked = changing.asked.without(ModuleSet::only(module));
        let seen = &mut seen[module.0 as usize];
        match phase {
            Some(Phase::Unmap(_)) if rules.unmapping().refuses => *seen = seen.refused(),
            Some(Phase::Map(after)) => *seen = seen.told(after.mapping(module)),
            Some(Phase::WriteBack(_)) => self.write_back_page(state, page, module, &rules),
            Some(Phase::Unmap(_) | Phase::Copy { .. }) | None => {}
        }
    }

    /// What an L2 holds of a page goes to memory, and its lines are dropped.
    fn write_back_page(&self, state: &mut State, page: u8, module: ModuleId, rules: &Paging) {
        for line in self.lines_of_page(page) {
            let index = self.l2_index(module, line);
            let Some(held) = state.l2[index].line else { continue };
            if rules.writes_back() {
                // Nobody uses it, so no miss is pending that would keep it here, but where a rule is broken.
                if !self.evict(state, module, line) && rules.broken.is_none() {
                    state.break_with(Violation::Unexpected("a page in use is written back"));
                }
            } else {
                state.l2[index].line = None;
            }
            if !rules.drops_lines() {
                state.l2[index].line = Some(LineState { dirty: Mask::NONE, ..held });
            }
        }
    }

    /// A line goes from one memory to another.
    fn copy(&self, state: &mut State, line: u8) {
        let page = &mut state.pages[self.region(line) as usize];
        let (Some(Phase::Copy { from, to }), Some(changing)) = (page.phase(), &mut page.change) else { return };
        changing.left &= !(1 << line);
        if let (0, Some(to), Some(rules)) = (changing.left, to.module(), self.config.paging) {
            let seen = &mut page.seen[to.0 as usize];
            *seen = rules.arrived(to, *seen);
        }
        state.memory[self.memory_index(to, line)] = state.memory[self.memory_index(from, line)];
    }

    fn lines_of_page(&self, page: u8) -> impl Iterator<Item = u8> + use<P> {
        let lines: Vec<u8> = (0..self.lines as u8).filter(|line| self.region(*line) == page).collect();
        lines.into_iter()
    }

    /// Whether a module that unmaps a page has nothing under way to it any more that it waits for.
    fn is_over(&self, state: &State, page: u8, module: ModuleId) -> bool {
        let unmapping = self.config.paging.unwrap_or_default().unmapping();
        !(unmapping.awaits_loads && self.has_loads(state, page, module)
            || unmapping.awaits_stores && self.has_stores(state, page, module))
    }

    /// Whether a load or an atomic of `module` on a page lacks its result.
    fn has_loads(&self, state: &State, page: u8, module: ModuleId) -> bool {
        let here = (0..state.threads.len()).filter(|&thread| self.module_of(thread) == module);
        here.flat_map(|thread| self.registers_of(thread)).any(|register| match state.registers[register].awaits {
            Some(Awaited::Load { line, .. } | Awaited::Atomic { line, .. }) => self.region(line) == page,
            None => false,
        })
    }

    /// Whether a store or an atomic of `module` on a page has not been taken by its home.
    fn has_stores(&self, state: &State, page: u8, module: ModuleId) -> bool {
        let of_module = |source: Source| match source {
            Source::Sm(sm) => self.sms[sm as usize].module == module,
            Source::Module(from) => from == module,
            Source::Prefetch => false,
        };
        let sent = |message: &Message| match (message.channel, &message.body) {
            (Channel::ToL2 { sm, line }, Body::Posted(posted)) => {
                of_module(Source::Sm(sm)) && self.region(line) == page && is_awaited(posted)
            }
            (Channel::Up { from, .. }, Body::Posted(posted)) => {
                from == module && self.region(message.line) == page && is_awaited(posted)
            }
            _ => false,
        };
        let parked = |held: &Held| match &held.how {
            Hold::Park(posted) => of_module(held.source) && self.region(held.line) == page && is_awaited(posted),
            Hold::Wait(_) | Hold::Flush(_) => false,
        };
        state.messages.iter().any(sent) || state.held.iter().any(parked)
    }

    /// The bytes of a line as `holder` has them: in its memory, and in its L2 where that is newer.
    pub(super) fn contents_at(&self, state: &State, holder: Holder, line: u8) -> Values {
        let mut values = state.memory[self.memory_index(holder, line)];
        if let Some(present) = holder.module().and_then(|module| state.l2[self.l2_index(module, line)].line) {
            tombolo_protocol::Data::merge(&mut values, present.data, present.valid);
        }
        values
    }

    /// A copy of a page that differs from its home, at rest.
    pub(super) fn copy_that_differs(&self, state: &State) -> Option<(ModuleId, u8)> {
        let lines = || 0..self.lines as u8;
        let copies = |line: u8| {
            let page = state.pages.get(self.region(line) as usize).filter(|page| page.change.is_none());
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
