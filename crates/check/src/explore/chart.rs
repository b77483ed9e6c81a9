//! A message sequence chart of the way to a violation, as text.

use super::machine::Machine;
use super::state::{Body, Channel, State, Violation};
use super::step::Step;
use std::fmt::Write;
use tombolo_protocol::front::Stage;
use tombolo_protocol::{Coherence, Request};

/// Columns of one lifeline.
const WIDTH: usize = 8;

pub(super) fn chart<P: Coherence>(machine: &Machine<'_, P>, steps: &[Step], violation: Violation) -> String {
    let mut text = String::new();
    let mut state = machine.initial();
    let columns = machine.sms.len() + machine.modules().count();
    let _ = writeln!(text, "{}", machine.layout);
    for name in lifelines(machine) {
        let _ = write!(text, "{name:^WIDTH$}");
    }
    text.push('\n');
    for step in steps {
        let Some(next) = machine.after(&state, *step) else { break };
        let (from, to, label) = describe(machine, &state, *step);
        let _ = writeln!(text, "{}  {label}", lane(columns, from, to));
        state = next;
    }
    let _ = writeln!(text, "{violation}");
    text
}

fn lifelines<P: Coherence>(machine: &Machine<'_, P>) -> Vec<String> {
    let sms = machine.sms.iter().map(|sm| format!("m{}.sm{}", sm.module.0, sm.index));
    sms.chain(machine.modules().map(|module| format!("L2 m{}", module.0))).collect()
}

/// One row: lifelines with an arrow between two of them, or a mark on one.
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

/// Where a step's arrow starts and ends, and what it says.
fn describe<P: Coherence>(machine: &Machine<'_, P>, state: &State, step: Step) -> (usize, usize, String) {
    let l2 = |module: tombolo_types::ModuleId| machine.sms.len() + module.0 as usize;
    match step {
        Step::Thread { thread, evict_first } => {
            let sm = machine.sm_of[thread as usize] as usize;
            let note = if evict_first { "L1 evicts, then " } else { "" };
            let what = match machine.stage(state, thread as usize) {
                Some(Stage::Acquire(scope)) => format!("completes its acquire.{scope}"),
                _ => format!("issues {:?}", machine.instruction(state, thread as usize)),
            };
            (sm, sm, format!("{note}P{thread} {what}"))
        }
        Step::Evict { module, line } => (l2(module), l2(module), format!("evicts line {line}")),
        Step::Replace { module, line } => (l2(module), l2(module), format!("replaces the entry of line {line}")),
        Step::Deliver { channel, evict_first, replace_first } => {
            let (from, to) = match channel {
                Channel::ToL2 { sm, .. } => (sm as usize, l2(machine.sms[sm as usize].module)),
                Channel::Up { from, to, .. } | Channel::Down { from, to } => (l2(from), l2(to)),
                Channel::ToSm { sm } => (l2(machine.sms[sm as usize].module), sm as usize),
                Channel::Memory { module, .. } => (l2(module), l2(module)),
                Channel::Result { register } => {
                    let thread = machine.register_base.partition_point(|&base| base <= register) - 1;
                    let sm = machine.sm_of[thread] as usize;
                    (sm, sm)
                }
                Channel::Plan { thread, module } => (machine.sm_of[thread as usize] as usize, l2(module)),
            };
            let message = state.messages.iter().find(|message| message.channel == channel);
            let what = message.map(|message| format!("{} of line {}", say(message.body), message.line));
            let evicts = if evict_first { " (line evicted before)" } else { "" };
            let replaces = if replace_first { " (entry replaced before)" } else { "" };
            (from, to, format!("{}{evicts}{replaces}", what.unwrap_or_default()))
        }
    }
}

fn say(body: Body) -> String {
    match body {
        Body::Order(order) => match order.request {
            Request::Read { scope, .. } => format!("read.{scope}"),
            Request::Write { scope, data, mask, .. } => format!("write.{scope} {:?} in {:#b}", data.0, mask.0),
            Request::Atomic { scope, update, .. } => format!("atomic.{scope} {update:?}"),
        },
        Body::Downgrade => "downgrade".to_owned(),
        Body::Fill { data, .. } => format!("fill {:?}", data.0),
        Body::Invalidate { .. } => "invalidation".to_owned(),
        Body::Old(data) => format!("old value {:?}", data.0),
        Body::Act(action) => format!("{action:?}"),
    }
}
