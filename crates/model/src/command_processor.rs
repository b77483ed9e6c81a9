//! The command processor: runs the program's commands in order, and the protocol's plans at the boundaries
//! of kernels.
//!
//! What is done at a boundary [`Boundaries`] decides: without elision a kernel's start is an acquire and its end a release,
//! of the whole machine at once, once per cache. One kernel runs at a time: streams of the host program are serialised.
//! What the host does to arrays between commands takes no time but that of the operations which it needs.
//!
//! A packet of the program is read before anything of its boundary begins (`host.packet_latency`). Where a table decides,
//! its work comes on top (`host.table_latency`). It is hidden where the packet is queued while the kernel before runs: where
//! nothing of the host's lies between.
//!
//! The launch latency is the host's. The acquire runs beside it; what of the acquire is left when the latency is over
//! delays the kernel and is part of the kernel's time, as its release is.

use crate::boundaries::Boundaries;
use crate::layout::Layout;
use crate::message::{LinkEvent, Message, Out};
use crate::schedule::Schedule;
use std::sync::Arc;
use tombolo_machine::MachineConfig;
use tombolo_protocol::boundary::Steps;
use tombolo_protocol::{Action, Coherence, Collector, Data, Topology};
use tombolo_types::stream::{Command, Program};
use tombolo_types::{Bytes, ModuleId, Ps, Serializer};

/// What it is doing.
#[derive(Clone, Copy, Debug)]
enum State {
    /// Between commands.
    Idle,
    /// Reading the packet of a kernel, and asking the table.
    Reading(Launch),
    /// The steps of a boundary.
    Boundary(Side, Then),
    /// What the schedule puts before or behind a kernel, begun at this time.
    Around(Launch, Ps, bool),
    /// A kernel; how many modules still run it.
    Running(Launch, u8),
}

/// What follows the steps of a boundary.
#[derive(Clone, Copy, Debug)]
enum Then {
    /// A kernel.
    Launch(Launch),
    /// The end of a kernel.
    Ended(Launch),
    /// What the host does, begun at this time.
    Host(HostCommand, Ps),
    /// The end of the program, begun at this time.
    ProgramEnds(Ps),
}

/// What the host does, by the number of its command.
#[derive(Clone, Copy, Debug)]
struct HostCommand {
    command: usize,
    /// Bytes that it copies; `None` where it works on memory itself.
    copies: Option<u64>,
}

/// One side of a boundary being run: its steps, the plan at hand and its place among them.
#[derive(Clone, Copy, Debug)]
struct Side {
    steps: Steps,
    index: u8,
    collector: Option<Collector>,
}

impl Side {
    fn new(steps: Steps, protocol: &impl Coherence) -> Side {
        Side { steps, index: 0, collector: collector(steps, 0, protocol) }
    }

    /// Starts the next phase, of the plan at hand or of one after it: calls `send` for each member and returns true; false
    /// when all have run.
    fn begin_phase(
        &mut self,
        protocol: &impl Coherence,
        topology: &impl Topology,
        mut send: impl FnMut(ModuleId, Action),
    ) -> bool {
        while let Some(collector_at_hand) = &mut self.collector {
            if collector_at_hand.begin_phase(topology, &mut send) {
                return true;
            }
            self.index += 1;
            self.collector = collector(self.steps, self.index, protocol);
        }
        false
    }

    /// Takes one acknowledgment; true when the phase is complete.
    fn acknowledge(&mut self) -> bool {
        self.collector.as_mut().expect("an acknowledgment of a phase").acknowledge()
    }

    /// Acknowledgments that it lacks.
    fn missing(&self) -> u8 {
        self.collector.map_or(0, |collector| collector.missing())
    }
}

/// The plan at `index` of `steps`, about to run.
fn collector(steps: Steps, index: u8, protocol: &impl Coherence) -> Option<Collector> {
    steps.plan(protocol, index).map(|plan| Collector::new(plan, ModuleId(0)))
}

/// A kernel as the program launches it, by the number of its command.
#[derive(Clone, Copy, Debug)]
struct Launch {
    command: usize,
    kernel: u32,
    stream: u32,
}

/// When one kernel was open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelTime {
    /// Index of the kernel.
    pub kernel: u32,
    /// Stream of the host program.
    pub stream: u32,
    /// End of its launch latency.
    pub start: Ps,
    /// End of its release.
    pub end: Ps,
}

/// When something ran outside any kernel: a copy between host and device memory, or operations of a boundary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// Its start.
    pub start: Ps,
    /// Its end.
    pub end: Ps,
}

/// The command processor.
pub struct CommandProcessor {
    layout: Layout,
    program: Arc<dyn Program>,
    next: usize,
    state: State,
    boundaries: Boundaries,
    /// Packets that [`Boundaries`] has been asked about.
    packets: u32,
    /// Whether the next packet was there while the kernel before ran.
    is_queued: bool,
    packet_latency: Ps,
    table_latency: Ps,
    /// Whether the next command comes at once.
    goes_on: bool,
    /// Whether the program's last release has run.
    released: bool,
    /// Operations for what the host does.
    hosted: Vec<Stretch>,
    /// Operations at the end of the program.
    ending: Option<Stretch>,
    /// Latency to one controller.
    latency: Ps,
    /// Latency to all controllers at once.
    broadcast: Ps,
    launch_latency: Ps,
    dependent_launch_latency: Ps,
    copy_latency: Ps,
    copies: Serializer,
    /// Whether the links are told of kernels.
    links_turn: bool,
    /// When the launch latency of the kernel at hand began.
    started: Ps,
    copied: Vec<Stretch>,
    kernels: Vec<KernelTime>,
    schedule: Arc<Schedule>,
    exposed: Ps,
}

impl CommandProcessor {
    /// A command processor about to run `program`; links whose lanes turn are told of its kernels.
    pub fn new(
        machine: &MachineConfig,
        layout: Layout,
        program: Arc<dyn Program>,
        boundaries: Boundaries,
        schedule: Arc<Schedule>,
        links_turn: bool,
    ) -> CommandProcessor {
        CommandProcessor {
            layout,
            program,
            next: 0,
            state: State::Idle,
            packets: 0,
            is_queued: false,
            packet_latency: machine.host.packet_latency,
            table_latency: if boundaries.elides() { machine.host.table_latency } else { Ps::ZERO },
            goes_on: false,
            released: false,
            hosted: Vec::new(),
            ending: None,
            boundaries,
            latency: crate::convert::host_latency(machine),
            broadcast: crate::convert::broadcast_latency(machine),
            launch_latency: machine.host.launch_latency,
            dependent_launch_latency: machine.host.dependent_launch_latency,
            copy_latency: machine.host.copy_latency,
            copies: Serializer::new(machine.host.copy_rate),
            links_turn,
            started: Ps::ZERO,
            copied: Vec::new(),
            kernels: Vec::new(),
            schedule,
            exposed: Ps::ZERO,
        }
    }

    /// Handles an event.
    pub fn handle<C: Coherence, D: Data>(
        &mut self,
        message: Message<D>,
        protocol: &C,
        topology: &impl Topology,
        out: &mut Out<'_, D>,
    ) {
        match message {
            Message::Next => match self.state {
                State::Reading(launch) => {
                    self.started = out.now();
                    self.begin(Then::Launch(launch), protocol, topology, out);
                }
                _ => {
                    self.goes_on = true;
                    self.go_on(protocol, topology, out);
                }
            },
            Message::KernelDone => {
                let State::Running(launch, left) = &mut self.state else {
                    panic!("a kernel ended that was not running")
                };
                *left -= 1;
                if *left == 0 {
                    let launch = *launch;
                    let steps = self.boundaries.after(launch.command, self.packets - 1, topology, out.now());
                    self.run(steps, Then::Ended(launch), protocol, topology, out);
                }
            }
            Message::AroundDone { .. } => {
                let State::Around(launch, since, behind) = self.state else { panic!("nothing was around a command") };
                self.exposed += out.now() - since;
                self.copied.push(Stretch { start: since, end: out.now() });
                if behind { self.kernel_ended(out) } else { self.launch(launch, out) }
            }
            Message::PhaseDone { module, lost } => {
                self.boundaries.acted(module, lost);
                let State::Boundary(side, _) = &mut self.state else { panic!("an acknowledgment of no phase") };
                if side.acknowledge() {
                    self.phase(protocol, topology, out);
                    self.go_on(protocol, topology, out);
                }
            }
            other => panic!("the command processor got {other:?}"),
        }
    }

    /// Whether every command has been run, and the release at the end.
    pub fn is_done(&self) -> bool {
        matches!(self.state, State::Idle) && self.released
    }

    /// What was decided at boundaries.
    pub fn boundaries(&self) -> &Boundaries {
        &self.boundaries
    }

    /// When operations ran for what the host does, in order.
    pub fn hosted(&self) -> &[Stretch] {
        &self.hosted
    }

    /// When operations ran at the end of the program.
    pub fn ending(&self) -> Option<&Stretch> {
        self.ending.as_ref()
    }

    /// When each kernel was open, in order.
    pub fn kernels(&self) -> &[KernelTime] {
        &self.kernels
    }

    /// How long the program has waited for what its schedule does around commands.
    pub fn exposed(&self) -> Ps {
        self.exposed
    }

    /// When each copy ran, in order.
    pub fn copies(&self) -> &[Stretch] {
        &self.copied
    }

    /// When the last command ended: a kernel with its release, a copy, or the release at the end.
    pub fn ended(&self) -> Ps {
        let kernel = self.kernels.last().map(|kernel| kernel.end);
        let waits = [self.copied.last(), self.hosted.last(), self.ending.as_ref()].into_iter().flatten();
        waits.map(|wait| wait.end).chain(kernel).max().unwrap_or_default()
    }

    /// What it waits for, for a report of who waits for whom.
    pub fn waiting(&self) -> String {
        match self.state {
            State::Idle => format!("the command processor is before command {}", self.next),
            State::Reading(Launch { kernel, .. }) => format!("the packet of kernel {kernel} is being read"),
            State::Boundary(side, then) => {
                let whose = match then {
                    Then::Launch(Launch { kernel, .. }) => format!("the launch of kernel {kernel}"),
                    Then::Ended(_) => "the end of a kernel".to_owned(),
                    Then::Host(HostCommand { command, .. }, _) => format!("command {command}, of the host,"),
                    Then::ProgramEnds(_) => "the end of the program".to_owned(),
                };
                format!("{whose} lacks {} acknowledgments", side.missing())
            }
            State::Around(launch, ..) => format!("what is around kernel {} is under way", launch.kernel),
            State::Running(_, left) => format!("{left} modules have not ended their kernel"),
        }
    }

    /// Runs commands as long as the next one comes at once.
    fn go_on<C: Coherence, D: Data>(&mut self, protocol: &C, topology: &impl Topology, out: &mut Out<'_, D>) {
        while std::mem::take(&mut self.goes_on) {
            self.next_command(protocol, topology, out);
        }
    }

    fn next_command<C: Coherence, D: Data>(&mut self, protocol: &C, topology: &impl Topology, out: &mut Out<'_, D>) {
        let index = self.next;
        let Some(command) = self.program.commands().get(index) else {
            if !self.released {
                self.released = true;
                let steps = self.boundaries.end(topology, out.now());
                self.run(steps, Then::ProgramEnds(out.now()), protocol, topology, out);
            }
            return;
        };
        self.next += 1;
        let host = |copies| Then::Host(HostCommand { command: index, copies }, out.now());
        match *command {
            Command::Host { .. } => self.begin(host(None), protocol, topology, out),
            Command::Copy { bytes, .. } => self.begin(host(Some(bytes)), protocol, topology, out),
            Command::Launch { kernel, stream } => {
                let launch = Launch { command: index, kernel, stream };
                let read = out.now() + self.packet_latency;
                let asked = if self.is_queued { read } else { read + self.table_latency };
                if asked > out.now() {
                    self.state = State::Reading(launch);
                    self.later(asked, out);
                } else {
                    self.started = out.now();
                    self.begin(Then::Launch(launch), protocol, topology, out);
                }
            }
        }
    }

    /// Decides what comes before a command, and runs it.
    fn begin<C: Coherence, D: Data>(
        &mut self,
        then: Then,
        protocol: &C,
        topology: &impl Topology,
        out: &mut Out<'_, D>,
    ) {
        let (Then::Launch(Launch { command, .. }) | Then::Host(HostCommand { command, .. }, _)) = then else {
            panic!("only a command is begun");
        };
        let steps = self.boundaries.before(command, self.packets, topology, out.now());
        self.packets += 1;
        self.run(steps, then, protocol, topology, out);
    }

    fn run<C: Coherence, D: Data>(
        &mut self,
        steps: Steps,
        then: Then,
        protocol: &C,
        topology: &impl Topology,
        out: &mut Out<'_, D>,
    ) {
        self.state = State::Boundary(Side::new(steps, protocol), then);
        self.phase(protocol, topology, out);
    }

    fn later<D: Data>(&self, at: Ps, out: &mut Out<'_, D>) {
        let id = self.layout.command_processor();
        out.send(at.max(out.now() + Ps(1)), id, id, Message::Next);
    }

    /// Starts the next phase of the plan at hand, or what follows it.
    fn phase<C: Coherence, D: Data>(&mut self, protocol: &C, topology: &impl Topology, out: &mut Out<'_, D>) {
        let id = self.layout.command_processor();
        let State::Boundary(side, then) = &mut self.state else { panic!("a phase outside a boundary") };
        let mut members = Vec::new();
        let more = side.begin_phase(protocol, topology, |member, action| members.push((member, action)));
        let all = members.len() == usize::from(self.layout.modules);
        let at = out.now() + if all { self.broadcast } else { self.latency };
        let counted = self.boundaries.logs();
        for (member, action) in members {
            let extent = self.boundaries.extent(member, action);
            out.send(at, id, self.layout.controller(member), Message::Phase { action, extent, counted });
        }
        if more {
            return;
        }
        self.boundaries.ran(out.now());
        match *then {
            Then::Launch(launch) => {
                if !self.around(launch, false, out) {
                    self.launch(launch, out);
                }
            }
            Then::Ended(launch) => {
                let kernel = self.kernels.last_mut().expect("a kernel was launched before it ended");
                kernel.end = out.now();
                if !self.around(launch, true, out) {
                    self.kernel_ended(out);
                }
            }
            Then::Host(command, start) => self.host(command, start, out),
            Then::ProgramEnds(start) => {
                self.state = State::Idle;
                self.ending = stretch(start, out.now());
            }
        }
    }

    /// What the host does, once the operations that it needs have run. Nothing is owed behind it: it leaves no copies.
    fn host<D: Data>(&mut self, HostCommand { command, copies }: HostCommand, start: Ps, out: &mut Out<'_, D>) {
        self.state = State::Idle;
        self.is_queued = false;
        self.hosted.extend(stretch(start, out.now()));
        self.boundaries.host_is_done(command, self.packets - 1);
        match copies {
            None => self.goes_on = true,
            Some(bytes) => {
                let done = self.copies.send(out.now() + self.copy_latency, Bytes(bytes));
                self.copied.push(Stretch { start: out.now(), end: done });
                self.later(done, out);
            }
        }
    }

    /// Has the driver do what the schedule puts before or behind a command, where there is any.
    fn around<D: Data>(&mut self, launch: Launch, behind: bool, out: &mut Out<'_, D>) -> bool {
        let around = self.schedule.around(launch.command);
        let has = around.is_some_and(|one| if behind { !one.copies.is_empty() } else { !one.moves.is_empty() });
        if has {
            let command = launch.command as u32;
            let at = out.now() + Ps(1);
            out.send(at, self.layout.command_processor(), self.layout.driver(), Message::Around { command, behind });
            self.state = State::Around(launch, out.now(), behind);
        }
        has
    }

    fn kernel_ended<D: Data>(&mut self, out: &mut Out<'_, D>) {
        self.state = State::Idle;
        self.tell_links(out.now() + Ps(1), LinkEvent::End, out);
        self.later(out.now(), out);
    }

    fn tell_links<D: Data>(&self, at: Ps, event: LinkEvent, out: &mut Out<'_, D>) {
        if self.links_turn {
            out.send(at, self.layout.command_processor(), self.layout.switch(), Message::Link(event));
        }
    }

    fn launch<D: Data>(&mut self, launch: Launch, out: &mut Out<'_, D>) {
        let Launch { kernel, stream, .. } = launch;
        let delay = if self.kernels.is_empty() { self.launch_latency } else { self.dependent_launch_latency };
        let opened = self.started + delay;
        let at = opened.max(out.now() + self.broadcast);
        let remaps = self.schedule.around(launch.command).is_some_and(|around| !around.remaps.is_empty());
        for module in (0..self.layout.modules).map(ModuleId) {
            if remaps {
                let to = self.layout.controller(module);
                out.send(at, self.layout.command_processor(), to, Message::Remap { command: launch.command as u32 });
            }
            out.send(at, self.layout.command_processor(), self.layout.controller(module), Message::Launch { kernel });
        }
        self.tell_links(at, LinkEvent::Launch, out);
        self.kernels.push(KernelTime { kernel, stream, start: opened, end: at });
        self.is_queued = true;
        self.state = State::Running(launch, self.layout.modules);
    }
}

/// A wait, where there was one.
fn stretch(start: Ps, end: Ps) -> Option<Stretch> {
    (end > start).then_some(Stretch { start, end })
}
