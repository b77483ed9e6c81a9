//! Message sequence chart for the path to a violation, in text form.

use super::copies::LineCopy;
use super::machine::Machine;
use super::paging::PageStep;
use super::search::World;
use super::sm::SmHost;
use super::state::{Channel, ChannelMessage, MachineState, MessageBody, Violation};
use super::step::Step;
use super::values::{Values, mask_of};
use crate::litmus::{Assignments, Location, Program};
use std::collections::BTreeSet;
use std::fmt::Write;
use tombolo_protocol::front::Stage;
use tombolo_protocol::paging::{ChangeStep as Phase, Holder};
use tombolo_protocol::{Action, Coherence, Request};
use tombolo_types::{Mask, ModuleId};

/// Columns per lifeline.
const WIDTH: usize = 8;

/// A world with printable steps.
pub(super) trait ChartableWorld: World {
    /// Describes the placement of threads, locations and pages.
    fn heading(&self) -> String;

    /// Names of the lifelines: SMs, then the components below the SMs.
    fn lifelines(&self) -> Vec<String>;

    /// Start and end lifelines for a step's arrow, and the arrow's label.
    fn describe(&self, state: &Self::State, step: Self::Step) -> (usize, usize, String);

    /// Executes a single step without its forced successors.
    fn execute_single(&self, step: Self::Step, state: &mut Self::State) -> bool;

    /// The step that follows another automatically, without being chosen.
    fn forced_next(&self, state: &mut Self::State) -> Option<Self::Step>;

    /// Puts unordered elements into a canonical order.
    fn put_in_order(&self, state: &mut Self::State);

    /// The program.
    fn program(&self) -> &Program;
}

/// Renders the steps from the initial state to the violation, a row per step, under a lifeline for each SM and L2.
pub(super) fn chart<W: ChartableWorld>(world: &W, steps: &[W::Step], violation: Violation) -> String {
    let mut text = String::new();
    let mut state = world.initial();
    let lifelines = world.lifelines();
    let _ = writeln!(text, "{}", world.heading());
    for name in &lifelines {
        let _ = write!(text, "{name:^WIDTH$}");
    }
    text.push('\n');
    let mut row = |state: &mut W::State, step| {
        let (from, to, label) = world.describe(state, step);
        let _ = writeln!(text, "{}  {label}", lane(lifelines.len(), from, to));
        world.execute_single(step, state)
    };
    for step in steps {
        if !row(&mut state, *step) {
            break;
        }
        while let Some(step) = world.forced_next(&mut state) {
            row(&mut state, step);
        }
        world.put_in_order(&mut state);
    }
    let _ = write!(text, "{violation}");
    if violation == Violation::Forbidden {
        let seen: BTreeSet<_> = world.final_states(&state).into_iter().collect();
        let said = seen.iter().map(|state| Assignments { program: world.program(), state }.to_string());
        let _ = write!(text, ": {}", said.collect::<Vec<_>>().join(" or "));
    }
    text.push('\n');
    text
}

impl<P: Coherence> ChartableWorld for Machine<'_, P> {
    fn heading(&self) -> String {
        self.scene.layout.to_string()
    }

    fn lifelines(&self) -> Vec<String> {
        lifelines(self)
    }

    fn describe(&self, state: &MachineState, step: Step) -> (usize, usize, String) {
        describe(self, state, step)
    }

    fn execute_single(&self, step: Step, state: &mut MachineState) -> bool {
        self.execute_step(step, state)
    }

    fn forced_next(&self, state: &mut MachineState) -> Option<Step> {
        self.forced_step(state, &mut Vec::new())
    }

    fn put_in_order(&self, state: &mut MachineState) {
        state.canonicalise();
    }

    fn program(&self) -> &Program {
        self.scene.program
    }
}

fn lifelines<P: Coherence>(machine: &Machine<'_, P>) -> Vec<String> {
    let sms = machine.scene.sms.iter().map(|sm| format!("m{}.sm{}", sm.module.0, sm.index));
    sms.chain(machine.modules().map(|module| format!("L2 m{}", module.0))).collect()
}

/// Renders a row: lifelines with an arrow between two lifelines, or a mark on a single lifeline.
fn lane(columns: usize, from: usize, to: usize) -> String {
    let at = |column: usize| column * WIDTH + WIDTH / 2;
    let mut row = vec![b' '; columns * WIDTH];
    for column in 0..columns {
        row[at(column)] = b'|';
    }
    let (left, right) = (at(from.min(to)), at(from.max(to)));
    for cell in &mut row[left + 1..right.max(left + 1)] {
        *cell = b'-';
    }
    match from.cmp(&to) {
        std::cmp::Ordering::Less => row[right - 1] = b'>',
        std::cmp::Ordering::Greater => row[left + 1] = b'<',
        std::cmp::Ordering::Equal => row[left] = b'*',
    }
    String::from_utf8(row).expect("a row holds ASCII only")
}

/// Start and end lifelines for a step's arrow, and the arrow's label.
fn describe<P: Coherence>(machine: &Machine<'_, P>, state: &MachineState, step: Step) -> (usize, usize, String) {
    let l2 = |module: ModuleId| machine.scene.sms.len() + module.0 as usize;
    match step {
        Step::Thread { thread, evict_first } => {
            let index = thread as usize;
            let sm = machine.scene.sm_of[index] as usize;
            let note = if evict_first { " (L1 has evicted the line)" } else { "" };
            let code = &machine.scene.program.threads[index];
            let what = match (machine.stage(state, index), machine.instruction(state, index)) {
                (Some(Stage::Acquire(_)), _) => "invalidates its L1".to_owned(),
                (_, Some(instruction)) => machine.scene.program.instruction(code, instruction).to_string(),
                (_, None) => String::new(),
            };
            (sm, sm, format!("P{}: {what}{note}", code.number))
        }
        Step::Evict { module, line } => (l2(module), l2(module), format!("evicts {}", names(machine, line))),
        Step::Page(step) => describe_page_step(machine, state, step),
        Step::Copy { index } => {
            let LineCopy { line, from, to, sent, .. } = state.copying.copies[usize::from(index)];
            match sent {
                None => (l2(from), l2(from), format!("reads {} for a copy", names(machine, line))),
                Some(_) => (l2(from), l2(to), format!("copy of {}", names(machine, line))),
            }
        }
        Step::Replace { module, line } => {
            (l2(module), l2(module), format!("replaces the directory entry of {}", names(machine, line)))
        }
        Step::Deliver { channel, evict_first, replace_first } => {
            let (from, to) = channel_ends(machine, state, channel);
            let message = state.messages.iter().find(|message| message.channel == channel);
            let what = message.map(|message| message_label(machine, message)).unwrap_or_default();
            let evicts = if evict_first { " (line evicted before)" } else { "" };
            let replaces = if replace_first { " (directory entry replaced before)" } else { "" };
            (from, to, format!("{what}{evicts}{replaces}"))
        }
        Step::Overtake { channel } => {
            let (from, to) = channel_ends(machine, state, channel);
            let mut messages = state.messages.iter().filter(|message| message.channel == channel);
            let what = messages.nth(1).map(|message| message_label(machine, message)).unwrap_or_default();
            (from, to, format!("{what} (ahead of a store without a credit)"))
        }
    }
}

/// Start and end lifelines and the label for a step in a page change.
fn describe_page_step<P: Coherence>(
    machine: &Machine<'_, P>,
    state: &MachineState,
    step: PageStep,
) -> (usize, usize, String) {
    let l2 = |module: ModuleId| machine.scene.sms.len() + module.0 as usize;
    let name = |page: u8| {
        let lines = (0..machine.scene.lines as u8).filter(|line| machine.region(*line) == page);
        lines.map(|line| names(machine, line)).collect::<Vec<_>>().join(",")
    };
    let place = |holder: Holder| holder.module().map_or_else(|| "the host".to_owned(), |module| module.to_string());
    match step {
        PageStep::Fault { thread } => {
            let sm = machine.scene.sm_of[thread as usize] as usize;
            (sm, sm, format!("P{}: its fault is served", machine.scene.program.threads[thread as usize].number))
        }
        PageStep::Move { page, to } => {
            let home = state.pages[page as usize].now.home.module().map_or(0, l2);
            (home, to.module().map_or(home, l2), format!("the page of {} is to be at {}", name(page), place(to)))
        }
        PageStep::Subscribe { page, module } => {
            (l2(module), l2(module), format!("is to subscribe to the page of {}", name(page)))
        }
        PageStep::Leave { page, module, ends } => {
            let then = if ends { ", which is then published no more" } else { "" };
            (l2(module), l2(module), format!("is to leave the page of {}{then}", name(page)))
        }
        PageStep::Receive { page, module } => {
            let what = match state.pages[page as usize].phase() {
                Some(Phase::Unmap(_)) => "unmaps",
                Some(Phase::WriteBack(_)) => "writes back",
                Some(Phase::Map { .. }) => "is told how it sees",
                Some(Phase::Copy { .. }) | None => "hears nothing of",
            };
            (l2(module), l2(module), format!("{what} the page of {}", name(page)))
        }
        PageStep::ReceiveLate { page, module } => {
            (l2(module), l2(module), format!("is told late how it sees the page of {}", name(page)))
        }
        PageStep::Publish { module, line } => (l2(module), l2(module), format!("publishes {}", names(machine, line))),
        PageStep::Copy { line } => {
            let ends = match state.pages[machine.region(line) as usize].phase() {
                Some(Phase::Copy { from, to }) => (from, to),
                Some(Phase::Unmap(_) | Phase::WriteBack(_) | Phase::Map { .. }) | None => (Holder::Host, Holder::Host),
            };
            let bytes = state.memory[machine.memory_index(ends.0, line)];
            let column = |holder: Holder| holder.module().or(ends.0.module()).or(ends.1.module()).map_or(0, l2);
            let what = contents(machine, line, Mask::ALL, bytes);
            (column(ends.0), column(ends.1), format!("copy {what} to {}", place(ends.1)))
        }
    }
}

/// The lifelines at the two ends of a channel.
fn channel_ends<P: Coherence>(machine: &Machine<'_, P>, state: &MachineState, channel: Channel) -> (usize, usize) {
    let l2 = |module: ModuleId| machine.scene.sms.len() + module.0 as usize;
    let own = |sm: u8| l2(machine.scene.sms[sm as usize].module);
    match channel {
        Channel::ToL2 { sm, .. } => (sm as usize, own(sm)),
        Channel::Up { from, to, .. } | Channel::Down { from, to, .. } => (l2(from), l2(to)),
        Channel::ToSm { sm, line } => {
            (l2(machine.answering_module(state, machine.scene.sms[sm as usize].module, line)), sm as usize)
        }
        Channel::Memory { module, .. } => (l2(module), l2(module)),
        Channel::Result { register } => {
            let thread = machine.scene.register_base.partition_point(|&base| base <= register) - 1;
            let sm = machine.scene.sm_of[thread];
            (sm as usize, sm as usize)
        }
        Channel::Plan { thread, module } => (machine.scene.sm_of[thread as usize] as usize, l2(module)),
    }
}

fn message_label<P: Coherence>(machine: &Machine<'_, P>, message: &ChannelMessage) -> String {
    let line = message.line;
    match message.body {
        MessageBody::Request(posted) => match posted.request {
            Request::Read { scope, .. } => format!("read.{scope} {}", names(machine, line)),
            Request::Write { scope, data, mask, .. } => {
                format!("write.{scope} {}", contents(machine, line, mask, data))
            }
            Request::Atomic { scope, .. } => format!("atomic.{scope} {}", names(machine, line)),
        },
        MessageBody::Downgrade => format!("downgrade {}", names(machine, line)),
        MessageBody::Fill { mask, data } => match message.channel {
            Channel::Memory { .. } => format!("memory: {}", contents(machine, line, mask, data)),
            _ => format!("fill {}", contents(machine, line, mask, data)),
        },
        MessageBody::Invalidate { .. } => format!("invalidate {}", names(machine, line)),
        MessageBody::Old(data) => format!("result {}", contents(machine, line, Mask::ALL, data)),
        MessageBody::Act(Action::Invalidate(_)) => "acquire: invalidate".to_owned(),
        MessageBody::Act(Action::DrainStores(scope)) => format!("release: drain stores.{scope}"),
        MessageBody::Act(Action::ForwardStores) => "release: pass on stores".to_owned(),
        MessageBody::Act(Action::Flush) => "release: flush".to_owned(),
        MessageBody::Act(Action::AwaitStores) => "release: await stores".to_owned(),
        MessageBody::Act(Action::Merge { .. }) => "release: merge".to_owned(),
        MessageBody::Act(Action::DrainInvalidations(scope)) => format!("release: drain invalidations.{scope}"),
    }
}

/// The locations on a line with their cells.
fn on_line<'a, P: Coherence>(
    machine: &'a Machine<'_, P>,
    line: u8,
) -> impl Iterator<Item = (u8, &'a str)> + use<'a, P> {
    machine.scene.program.locations.iter().enumerate().filter_map(move |(index, location)| {
        let cell = machine.scene.layout.cell(Location(index as u16));
        (cell.line == line).then_some((cell.cell, location.name.as_str()))
    })
}

fn names<P: Coherence>(machine: &Machine<'_, P>, line: u8) -> String {
    on_line(machine, line).map(|(_, name)| name).collect::<Vec<_>>().join(",")
}

fn contents<P: Coherence>(machine: &Machine<'_, P>, line: u8, mask: Mask, data: Values) -> String {
    let named = on_line(machine, line).filter(|(cell, _)| mask.overlaps(mask_of(*cell)));
    let shown = named.map(|(cell, name)| format!("{name}={}", data.0[cell as usize]));
    shown.collect::<Vec<_>>().join(",")
}
