//! Page changes: pages move, subscribers come and go, or publications collapse. Contains the driver for faults and
//! wishes, and the modules' actions at each step in a change, by the rules in [`tombolo_protocol::paging`].
//!
//! Each module receives its new mapping by a separate message, at any time and in any order. A change continues
//! immediately after the current step is complete everywhere; messages in flight may be late. Each page undergoes a
//! single change at a time, and a fault is served according to the page's residence at that time. A thread waits if its
//! module's mapping does not permit the current access.
//!
//! A module that unmaps a page sends the page's queue entries like any entry: at any time.

use super::config::UnrequestedChanges;
use super::l2::is_awaited;
use super::machine::Machine;
use super::pages::PageState;
use super::reduce::LineSet;
use super::sm::SmHost;
use super::state::{
    AwaitedResult, Channel, ChannelMessage, HeldRequest, HoldReason, MachineState, MessageBody, PostedRequest,
    RequestSource, Violation,
};
use tombolo_protocol::front::Stage;
use tombolo_protocol::paging::{ChangeReason, ChangeStep as Phase, Holder, PageTransition, Paging};
use tombolo_protocol::{Coherence, LineState, ModuleSet, Topology};
use tombolo_types::{Mask, ModuleId};

/// A change in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct PageChange {
    pub(super) change: PageTransition,
    /// Index of the current step.
    pub(super) step: u8,
    /// Modules that have not received the current step yet.
    contacted: ModuleSet,
    /// Modules that have not acknowledged the current step.
    owed: ModuleSet,
    /// Lines that have not been copied.
    left: LineSet,
}

/// A step in the machinery that moves pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum PageStep {
    /// The driver serves a thread's fault.
    Fault {
        /// The faulting thread.
        thread: u8,
    },
    /// The driver starts to move a page to another holder.
    Move {
        /// The moved page.
        page: u8,
        /// The new holder.
        to: Holder,
    },
    /// A module subscribes to a published page.
    Subscribe {
        /// The page.
        page: u8,
        /// The new subscriber.
        module: ModuleId,
    },
    /// A subscriber leaves a published page.
    Leave {
        /// The page.
        page: u8,
        /// The leaving subscriber.
        module: ModuleId,
        /// Set if publication ends when a single subscriber remains.
        ends: bool,
    },
    /// A module receives the current step of a change.
    Receive {
        /// The changing page.
        page: u8,
        /// The receiving module.
        module: ModuleId,
    },
    /// A module receives the mapping after an already completed change.
    ReceiveLate {
        /// The changed page.
        page: u8,
        /// The receiving module.
        module: ModuleId,
    },
    /// A line is copied.
    Copy {
        /// The copied line.
        line: u8,
    },
    /// A module publishes its queue entry for a line.
    Publish {
        /// The module that owns the queue.
        module: ModuleId,
        /// The line.
        line: u8,
    },
}

/// A module receives its mapping from the previous change.
fn receive_late_mapping(page: &mut PageState, module: ModuleId) {
    let Some((after, modules)) = page.late else { return };
    let seen = &mut page.seen[module.0 as usize];
    *seen = seen.updated(after.mapping(module));
    let left = modules.difference(ModuleSet::only(module));
    page.late = (!left.is_empty()).then_some((after, left));
}

impl<P: Coherence> Machine<'_, P> {
    /// Enumerates the possible page steps.
    pub(super) fn page_steps(&self, state: &MachineState, steps: &mut Vec<super::step::Step>) {
        let mut add = |step| steps.push(super::step::Step::Page(step));
        for (number, page) in (0..).zip(&state.pages) {
            let late = page.late.map_or(ModuleSet::NONE, |(_, modules)| modules);
            self.modules().filter(|module| late.contains(*module)).for_each(|module| {
                add(PageStep::ReceiveLate { page: number, module });
            });
            let Some(changing) = page.change else { continue };
            self.modules().filter(|module| changing.contacted.contains(*module)).for_each(|module| {
                add(PageStep::Receive { page: number, module });
            });
            (0..self.scene.lines as u8).filter(|line| changing.left >> line & 1 != 0).for_each(|line| {
                add(PageStep::Copy { line });
            });
        }
        for thread in 0..state.fronts.threads.len() {
            if self.fault(state, thread).is_some() {
                add(PageStep::Fault { thread: thread as u8 });
            }
        }
        for (number, page) in (0..).zip(&state.pages).filter(|(_, page)| page.change.is_none()) {
            let wishes = self.wishes(state, number, page).into_iter();
            wishes.filter(|step| self.wish(state, *step).is_some()).for_each(&mut add);
        }
        self.queue_steps(state, steps);
    }

    /// Enumerates the wishes for a page, independent from any access, including those without effect.
    fn wishes(&self, state: &MachineState, page: u8, of: &PageState) -> Vec<PageStep> {
        let (UnrequestedChanges { moves, subscribes, leaves }, modules) = (state.unrequested, || self.modules());
        if !of.now.published {
            let holders = modules().map(Holder::Module).chain([Holder::Host]).filter(|_| moves > 0);
            return holders.map(|to| PageStep::Move { page, to }).collect();
        }
        let subscribing = modules().filter(|_| subscribes > 0).map(|module| PageStep::Subscribe { page, module });
        let subscribers = of.now.subscribers();
        let leaving = modules().filter(|module| leaves > 0 && subscribers.contains(*module));
        // If more than two subscribers exist, the flag `ends` makes no difference.
        let ends = [false, true].into_iter().filter(|ends| !ends || subscribers.count() <= 2);
        let leaves_so = |module| ends.clone().map(move |ends| PageStep::Leave { page, module, ends });
        subscribing.chain(leaving.flat_map(leaves_so)).collect()
    }

    /// The change that a wish starts, if any.
    fn wish(&self, state: &MachineState, step: PageStep) -> Option<(u8, PageTransition)> {
        let (page, wish) = match step {
            PageStep::Move { page, to } => (page, ChangeReason::Move { to }),
            PageStep::Subscribe { page, module } => (page, ChangeReason::Subscribe { module }),
            PageStep::Leave { page, module, ends } => {
                (page, ChangeReason::Leave { modules: ModuleSet::only(module), ends })
            }
            PageStep::Fault { .. }
            | PageStep::Receive { .. }
            | PageStep::ReceiveLate { .. }
            | PageStep::Copy { .. }
            | PageStep::Publish { .. } => return None,
        };
        let now = state.pages[page as usize].now;
        self.paging?.change(&now, wish, self.scene.layout.modules()).map(|change| (page, change))
    }

    /// The change that a thread's fault starts.
    fn fault(&self, state: &MachineState, thread: usize) -> Option<(u8, PageTransition)> {
        let rules = self.paging.filter(|_| self.config.copies.is_none())?;
        if self.stage(state, thread) != Some(Stage::Issue) || !self.can_issue(state, thread) {
            return None;
        }
        let (page, wanted) = self.wanted(state, thread)?;
        let PageState { now, before, change, .. } = state.pages[page as usize];
        // A raised fault is served regardless of later changes to the page.
        let (module, by) = (self.module_of(thread), rules.served_by(before, now));
        let may_access = by.mapping(module).is_some_and(|sees| rules.allows(module, sees, wanted));
        if change.is_some() || self.may_access(state, thread) && may_access {
            return None;
        }
        let wish = ChangeReason::Fault { module, wanted };
        let change = rules.change(&by, wish, self.scene.layout.modules());
        // A fault without effect at that residence may still require a change at the current residence.
        let change = change.or_else(|| rules.change(&now, wish, self.scene.layout.modules()));
        change.map(|change| (page, change))
    }

    /// Executes a step. Returns false if it must wait.
    pub(super) fn take_page_step(&self, state: &mut MachineState, step: PageStep) -> bool {
        match step {
            PageStep::Fault { thread } => {
                let Some((page, change)) = self.fault(state, thread as usize) else { return false };
                self.begin_change(state, page, change)
            }
            PageStep::Move { .. } => self.fulfil(state, step, |wishes| &mut wishes.moves),
            PageStep::Subscribe { .. } => self.fulfil(state, step, |wishes| &mut wishes.subscribes),
            PageStep::Leave { .. } => self.fulfil(state, step, |wishes| &mut wishes.leaves),
            PageStep::Receive { page, module } => {
                self.receive_step(state, page, module);
                true
            }
            PageStep::ReceiveLate { page, module } => {
                receive_late_mapping(&mut state.pages[page as usize], module);
                true
            }
            PageStep::Copy { line } => {
                self.copy(state, line);
                true
            }
            PageStep::Publish { module, line } => {
                self.send_entry(state, module, line);
                true
            }
        }
    }

    /// Begins the change for a wish, and decrements the budget for this kind of wish.
    fn fulfil(
        &self,
        state: &mut MachineState,
        wish: PageStep,
        left: impl Fn(&mut UnrequestedChanges) -> &mut u8,
    ) -> bool {
        let Some((page, change)) = self.wish(state, wish) else { return false };
        *left(&mut state.unrequested) -= 1;
        self.begin_change(state, page, change)
    }

    /// Starts a change. If the steps are executed at once, returns false until all involved modules have released the
    /// page.
    fn begin_change(&self, state: &mut MachineState, page: u8, change: PageTransition) -> bool {
        let none = ModuleSet::NONE;
        state.pages[page as usize].change = Some(PageChange { change, step: 0, contacted: none, owed: none, left: 0 });
        self.begin_phase_of(state, page);
        !self.config.reductions.pages || self.finish_change(state, page)
    }

    /// Executes all steps of a change. Returns false if an awaited message is in flight.
    fn finish_change(&self, state: &mut MachineState, page: u8) -> bool {
        loop {
            self.advance_change(state, page);
            let Some(changing) = state.pages[page as usize].change else { return true };
            if let Some(module) = self.modules().find(|module| changing.contacted.contains(*module)) {
                self.receive_step(state, page, module);
            } else if changing.left != 0 {
                self.copy(state, changing.left.trailing_zeros() as u8);
            } else {
                return false;
            }
        }
    }

    /// Sends the messages for the current step.
    fn begin_phase_of(&self, state: &mut MachineState, page: u8) {
        let (phase, lines) = (state.pages[page as usize].phase(), self.lines_of_page(page));
        let PageState { change: Some(changing), .. } = &mut state.pages[page as usize] else { return };
        match phase {
            Some(Phase::Unmap(modules)) => (changing.contacted, changing.owed) = (modules, modules),
            Some(Phase::WriteBack(modules)) => changing.contacted = modules,
            Some(Phase::Copy { .. }) => changing.left = lines.fold(0, |set, line| set | 1 << line),
            Some(Phase::Map { modules, .. }) => changing.contacted = modules,
            None => {}
        }
    }

    /// Advances every change to the furthest possible step.
    pub(super) fn settle_pages(&self, state: &mut MachineState) {
        for page in 0..state.pages.len() as u8 {
            self.advance_change(state, page);
        }
    }

    /// Advances a page's change from step to step while no acknowledgment or copy is missing.
    fn advance_change(&self, state: &mut MachineState, page: u8) {
        while let Some(changing) = self.collect(state, page) {
            let lacking = changing.owed.union(changing.contacted);
            let PageState { now, before, change, late, .. } = &mut state.pages[page as usize];
            let rules = self.paging.unwrap_or_default();
            let is_last = changing.change.step(changing.step + 1).is_none();
            if lacking.is_empty() && changing.left == 0 && is_last {
                *before = rules.served_by(*now, changing.change.after);
                (*now, *change) = (changing.change.after, None);
            } else if lacking.is_empty() && changing.left == 0 {
                *change = Some(PageChange { step: changing.step + 1, ..changing });
                self.begin_phase_of(state, page);
            } else if is_last && late.is_none() && !rules.awaits_map() {
                *before = changing.change.after;
                (*now, *change, *late) = (changing.change.after, None, Some((changing.change.after, lacking)));
            } else {
                return;
            }
        }
    }

    /// Collects acknowledgments for a page's change.
    fn collect(&self, state: &mut MachineState, page: u8) -> Option<PageChange> {
        let changing = state.pages[page as usize].change?;
        let awaited = changing.owed.difference(changing.contacted);
        let over = |module: &ModuleId| awaited.contains(*module) && self.is_over(state, page, *module);
        let over: ModuleSet = self.modules().filter(over).collect();
        let changing = PageChange { owed: changing.owed.difference(over), ..changing };
        state.pages[page as usize].change = Some(changing);
        Some(changing)
    }

    /// A module receives the current step.
    fn receive_step(&self, state: &mut MachineState, page: u8, module: ModuleId) {
        let Some(rules) = self.paging else { return };
        let phase = state.pages[page as usize].phase();
        let PageState { seen, change: Some(changing), .. } = &mut state.pages[page as usize] else { return };
        changing.contacted = changing.contacted.difference(ModuleSet::only(module));
        let seen = &mut seen[module.0 as usize];
        match phase {
            Some(Phase::Unmap(_)) if rules.unmapping().refuses => *seen = seen.unmapped(),
            Some(Phase::Map { after, .. }) => *seen = seen.updated(after.mapping(module)),
            Some(Phase::WriteBack(_)) => self.write_back_page(state, page, module, &rules),
            Some(Phase::Unmap(_) | Phase::Copy { .. }) | None => {}
        }
    }

    /// Writes an L2's contents of a page back to memory, and drops the lines.
    fn write_back_page(&self, state: &mut MachineState, page: u8, module: ModuleId, rules: &Paging) {
        for line in self.lines_of_page(page) {
            let index = self.l2_index(module, line);
            let Some(held) = state.l2[index].line else { continue };
            if rules.writes_back() {
                // No module uses the page, therefore no pending miss can keep the line, except under a broken rule.
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

    /// Copies a line between two memories.
    fn copy(&self, state: &mut MachineState, line: u8) {
        let page = &mut state.pages[self.region(line) as usize];
        let (Some(Phase::Copy { from, to }), Some(changing)) = (page.phase(), &mut page.change) else { return };
        changing.left &= !(1 << line);
        if let (0, Some(to), Some(rules)) = (changing.left, to.module(), self.paging) {
            let seen = &mut page.seen[to.0 as usize];
            *seen = rules.arrived(to, *seen);
        }
        state.memory[self.memory_index(to, line)] = state.memory[self.memory_index(from, line)];
    }

    /// True if no access that an unmapping module must await is still in flight.
    fn is_over(&self, state: &MachineState, page: u8, module: ModuleId) -> bool {
        let unmapping = self.paging.unwrap_or_default().unmapping();
        !(unmapping.awaits_loads && self.has_loads(state, page, module)
            || unmapping.awaits_stores && self.has_stores(state, page, module, false)
            || unmapping.empties_queue && self.has_entries(state, page, module)
            || unmapping.awaits_publications && self.has_stores(state, page, module, true))
    }

    /// True if a load or an atomic from `module` to a page still lacks its result.
    fn has_loads(&self, state: &MachineState, page: u8, module: ModuleId) -> bool {
        let here = (0..state.fronts.threads.len()).filter(|&thread| self.module_of(thread) == module);
        here.flat_map(|thread| self.scene.registers_of(thread)).any(|register| {
            match state.fronts.registers[register].awaits {
                Some(AwaitedResult::Load { line, .. } | AwaitedResult::Atomic { line, .. }) => {
                    self.region(line) == page
                }
                None => false,
            }
        })
    }

    /// True if a store or an atomic from `module` to a page, or a publication from it, has not been served at the
    /// destination.
    fn has_stores(&self, state: &MachineState, page: u8, module: ModuleId, published: bool) -> bool {
        let is_meant = |posted: &PostedRequest| is_awaited(posted) && posted.published == published;
        let of_module = |source: RequestSource| match source {
            RequestSource::Sm(sm) => self.scene.sms[sm as usize].module == module,
            RequestSource::Module(from) => from == module,
            RequestSource::Prefetch => false,
        };
        let sent = |message: &ChannelMessage| match (message.channel, &message.body) {
            (Channel::ToL2 { sm, line }, MessageBody::Request(posted)) => {
                of_module(RequestSource::Sm(sm)) && self.region(line) == page && is_meant(posted)
            }
            (Channel::Up { from, .. }, MessageBody::Request(posted)) => {
                from == module && self.region(message.line) == page && is_meant(posted)
            }
            _ => false,
        };
        let parked = |held: &HeldRequest| match &held.how {
            HoldReason::Park(posted) => of_module(held.source) && self.region(held.line) == page && is_meant(posted),
            HoldReason::Wait(_) | HoldReason::Flush(_) => false,
        };
        state.messages.iter().any(sent) || state.held.iter().any(parked)
    }
}
