//! Message sequence chart of the messages about a test's lines, in the explorer's format.

use crate::setup::{Address, Setup, SmSlot};
use crate::values::CellOffsets;
use std::fmt::Write;
use tombolo_check::litmus::Value;
use tombolo_model::fabric::Packet;
use tombolo_model::layout::Unit;
use tombolo_model::message::{LineRequest, Message};
use tombolo_model::observe::WarpSlot;
use tombolo_protocol::{Action, Request};
use tombolo_types::{Line, Mask, ModuleId, Ps};

/// Columns per lifeline.
const WIDTH: usize = 8;
/// Maximum number of recorded rows: in a minimised run the decisive messages come early.
const ROWS: usize = 120;

/// A row: an arrow between two lifelines, or a mark on a single lifeline.
struct ChartRow {
    at: Ps,
    from: usize,
    to: usize,
    label: String,
}

/// Messages recorded up to this point.
pub(crate) struct SequenceChart {
    setup: Setup,
    /// Lifelines: test SMs, then the L2 in each module.
    sms: Vec<SmSlot>,
    rows: Vec<ChartRow>,
    now: Ps,
}

impl SequenceChart {
    pub(crate) fn new(setup: &Setup) -> SequenceChart {
        let mut sms: Vec<SmSlot> = setup.slots.iter().flatten().copied().collect();
        sms.sort_unstable_by_key(|slot| (slot.module, slot.sm));
        sms.dedup();
        SequenceChart { setup: setup.clone(), sms, rows: Vec::new(), now: Ps::ZERO }
    }

    fn l2(&self, module: ModuleId) -> usize {
        self.sms.len() + usize::from(module.0)
    }

    /// The lifeline of an SM; the module's L2 if no test thread runs on the SM.
    fn sm(&self, module: ModuleId, sm: u16) -> usize {
        self.sms.iter().position(|slot| *slot == SmSlot { module, sm }).unwrap_or(self.l2(module))
    }

    fn push(&mut self, from: usize, to: usize, label: String) {
        if self.rows.len() < ROWS {
            self.rows.push(ChartRow { at: self.now, from, to, label });
        }
    }

    fn by_warp(&mut self, slot: WarpSlot, thread: usize, what: &str) {
        let lifeline = self.sm(slot.module, slot.sm.0);
        let who = self.setup.program.threads.get(thread).map_or("reader".to_owned(), |one| format!("P{}", one.number));
        self.push(lifeline, lifeline, format!("{who}: {what}"));
    }

    fn instruction(&self, thread: usize, at: usize) -> String {
        let program = &self.setup.program;
        match program.threads.get(thread) {
            Some(thread) => program.instruction(thread, &thread.code[at]).to_string(),
            None => format!("ld.relaxed.sys {}", program.locations[at].name),
        }
    }

    /// A test warp issues an instruction.
    pub(crate) fn issued(&mut self, slot: WarpSlot, thread: usize, at: usize) {
        let what = self.instruction(thread, at);
        self.by_warp(slot, thread, &what);
    }

    /// A test warp issues a store.
    pub(crate) fn stored(&mut self, slot: WarpSlot, thread: usize, at: usize, value: Value) {
        let what = format!("{} (writes {value})", self.instruction(thread, at));
        self.by_warp(slot, thread, &what);
    }

    /// A test instruction receives its result.
    pub(crate) fn returned(&mut self, slot: WarpSlot, thread: usize, at: usize, value: Value) {
        let what = format!("{} has {value}", self.instruction(thread, at));
        self.by_warp(slot, thread, &what);
    }

    /// A component handles a message. Only messages about the test's regions are recorded.
    pub(crate) fn handles(&mut self, now: Ps, module: ModuleId, unit: Unit, message: &Message<CellOffsets>) {
        self.now = now;
        let (own, sm) = (self.l2(module), self.at(module, unit));
        match *message {
            Message::Local(body) if self.shows(body.line) => {
                let from = self.sm(module, body.origin.sm.0);
                self.push(from, own, self.request(&body));
            }
            Message::Memory { line, .. } if self.shows(line) => {
                self.push(own, own, format!("memory answers {}", self.names(line)));
            }
            Message::BypassReply { packet, .. } => {
                if let Some(label) = self.packet(&packet) {
                    self.push(own, own, format!("memory answers: {label}"));
                }
            }
            Message::Fill { line, mask, data, .. } if self.shows(line) => {
                self.push(own, sm, format!("fill {}", self.contents(line, mask, data)));
            }
            Message::Arrive { route, packet } => {
                if let Some(label) = self.packet(&packet) {
                    self.push(self.l2(route.source), sm, label);
                }
            }
            Message::Sync { sm, kind, scope, .. } => {
                self.push(self.sm(module, sm.0), own, format!("{kind:?}.{scope}"));
            }
            _ => {}
        }
    }

    fn at(&self, module: ModuleId, unit: Unit) -> usize {
        match unit {
            Unit::Sm(sm) => self.sm(module, sm.0),
            Unit::Slice(_) | Unit::Controller | Unit::CopyEngine => self.l2(module),
        }
    }

    /// True if a line belongs to the test's regions.
    fn shows(&self, line: Line) -> bool {
        self.setup.addresses.iter().any(|address| address.line.0 / self.setup.region == line.0 / self.setup.region)
    }

    fn request(&self, body: &LineRequest<CellOffsets>) -> String {
        match body.request {
            Request::Read { scope, .. } => format!("read.{scope} {}", self.names(body.line)),
            Request::Write { scope, mask, data, .. } => {
                format!("write.{scope} {}", self.contents(body.line, mask, data))
            }
            Request::Atomic { scope, .. } => format!("atomic.{scope} {}", self.names(body.line)),
        }
    }

    fn packet(&self, packet: &Packet<CellOffsets>) -> Option<String> {
        let (line, label) = match packet {
            Packet::Request(body) => (body.line, self.request(body)),
            Packet::Fill { line, mask, data, .. } | Packet::Answer { line, mask, data, .. } => {
                (*line, format!("fill {}", self.contents(*line, *mask, *data)))
            }
            Packet::Invalidate { line, .. } => (*line, format!("invalidate {}", self.names(*line))),
            Packet::Downgrade { line } => (*line, format!("downgrade {}", self.names(*line))),
            Packet::AtomicResult { line, data, .. } => {
                (*line, format!("result {}", self.contents(*line, Mask::ALL, *data)))
            }
            Packet::Flag { .. } => return None,
            Packet::Act { action, .. } => return Some(of_plan(*action)),
            Packet::PhaseDone { .. } => return Some("done".to_owned()),
            Packet::BlockMessage(told) => (told.line, format!("{:?}, {} grains", told.class, told.grains)),
            Packet::Chunk(chunk) => (chunk.first, format!("{} lines copied", chunk.lines)),
        };
        self.shows(line).then_some(label)
    }

    fn on_line(&self, line: Line) -> impl Iterator<Item = (&str, Value, Address)> + '_ {
        let all = self.setup.program.locations.iter().zip(&self.setup.addresses);
        all.filter(move |(_, address)| address.line == line)
            .map(|(one, address)| (one.name.as_str(), one.initial, *address))
    }

    fn names(&self, line: Line) -> String {
        let names: Vec<&str> = self.on_line(line).map(|(name, ..)| name).collect();
        if names.is_empty() { format!("{line}") } else { names.join(",") }
    }

    fn contents(&self, line: Line, mask: Mask, data: CellOffsets) -> String {
        let within = self.on_line(line).filter(|(_, _, address)| mask.overlaps(address.cell.mask()));
        let shown: Vec<String> =
            within.map(|(name, initial, address)| format!("{name}={}", data.value(address.cell, initial))).collect();
        if shown.is_empty() { format!("other bytes of {}", self.names(line)) } else { shown.join(",") }
    }

    /// The complete chart.
    pub(crate) fn text(&self) -> String {
        let modules = usize::from(self.setup.modules() + u8::from(self.setup.has_host));
        let columns = self.sms.len() + modules;
        let mut text = format!("{:>14}", "ns");
        for slot in &self.sms {
            let _ = write!(text, "{:^WIDTH$}", format!("m{}.sm{}", slot.module.0, slot.sm));
        }
        for module in 0..modules {
            let _ = write!(text, "{:^WIDTH$}", format!("L2 m{module}"));
        }
        text.push('\n');
        for ChartRow { at, from, to, label } in &self.rows {
            let _ = writeln!(text, "{:>14.3}{}  {label}", at.0 as f64 / 1000.0, lane(columns, *from, *to));
        }
        text
    }
}

fn of_plan(action: Action) -> String {
    match action {
        Action::Invalidate(_) => "acquire: invalidate".to_owned(),
        Action::DrainStores(scope) => format!("release: drain stores.{scope}"),
        Action::ForwardStores => "release: pass on stores".to_owned(),
        Action::Flush => "release: flush".to_owned(),
        Action::AwaitStores => "release: await stores".to_owned(),
        Action::Merge { .. } => "release: merge".to_owned(),
        Action::DrainInvalidations(scope) => format!("release: drain invalidations.{scope}"),
    }
}

/// Renders a row: lifelines with an arrow between two lifelines, or a mark on a single lifeline.
fn lane(columns: usize, from: usize, to: usize) -> String {
    let at = |column: usize| column * WIDTH + WIDTH / 2;
    let (left, right) = (at(from.min(to)), at(from.max(to)));
    let cell = |place: usize| match place {
        _ if place == left && from == to => '*',
        _ if from < to && place + 1 == right => '>',
        _ if from > to && place == left + 1 => '<',
        _ if place > left && place < right => '-',
        _ if place % WIDTH == WIDTH / 2 => '|',
        _ => ' ',
    };
    (0..columns * WIDTH).map(cell).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arrow_runs_from_its_sender_to_its_receiver() {
        assert_eq!(lane(2, 0, 1), "    |------>|   ");
        assert_eq!(lane(2, 1, 0), "    |<------|   ");
        assert_eq!(lane(2, 1, 1), "    |       *   ");
    }
}
