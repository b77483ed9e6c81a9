//! The command processor: runs the program's commands in order, and the protocol's plans at the boundaries
//! of kernels.
//!
//! A kernel's start is an acquire and its end a release, of the whole machine at once, once per cache. One
//! kernel runs at a time: streams of the host program are serialised. What the host does to arrays between commands
//! takes no time.
//!
//! The launch latency is the host's. The acquire runs beside it; what of the acquire is left when the latency is over
//! delays the kernel and is part of the kernel's time, as its release is.

use crate::layout::Layout;
use crate::message::{LinkEvent, Message, Out};
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
    /// The steps of the end of a kernel.
    Ending(Side),
    /// The steps of the launch of a kernel.
    Launching(Side, Launch),
    /// A kernel; how many modules still run it.
    Running(u8),
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

/// A kernel as the program launches it.
#[derive(Clone, Copy, Debug)]
struct Launch {
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

/// When one copy between host and device memory ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyTime {
    /// When the command processor came to it.
    pub start: Ps,
    /// When its last byte arrived.
    pub end: Ps,
}

/// The command processor.
pub struct CommandProcessor {
    layout: Layout,
    program: Arc<dyn Program>,
    next: usize,
    state: State,
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
    copied: Vec<CopyTime>,
    kernels: Vec<KernelTime>,
}

impl CommandProcessor {
    /// A command processor about to run `program`; links whose lanes turn are told of its kernels.
    pub fn new(
        machine: &MachineConfig,
        layout: Layout,
        program: Arc<dyn Program>,
        links_turn: bool,
    ) -> CommandProcessor {
        CommandProcessor {
            layout,
            program,
            next: 0,
            state: State::Idle,
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
            Message::Next => self.next_command(protocol, topology, out),
            Message::KernelDone => {
                let State::Running(left) = &mut self.state else { panic!("a kernel ended that was not running") };
                *left -= 1;
                if *left == 0 {
                    self.state = State::Ending(Side::new(Steps::END, protocol));
                    self.phase(protocol, topology, out);
                }
            }
            Message::PhaseDone => {
                let (State::Ending(side) | State::Launching(side, _)) = &mut self.state else {
                    panic!("an acknowledgment of no phase");
                };
                if side.acknowledge() {
                    self.phase(protocol, topology, out);
                }
            }
            other => panic!("the command processor got {other:?}"),
        }
    }

    /// Whether every command has been run.
    pub fn is_done(&self) -> bool {
        matches!(self.state, State::Idle) && self.next >= self.program.commands().len()
    }

    /// When each kernel was open, in order.
    pub fn kernels(&self) -> &[KernelTime] {
        &self.kernels
    }

    /// When each copy ran, in order.
    pub fn copies(&self) -> &[CopyTime] {
        &self.copied
    }

    /// When the last command ended: a kernel with its release, or a copy.
    pub fn ended(&self) -> Ps {
        let (kernel, copy) = (self.kernels.last(), self.copied.last());
        kernel.map_or(Ps::ZERO, |kernel| kernel.end).max(copy.map_or(Ps::ZERO, |copy| copy.end))
    }

    /// What it waits for, for a report of who waits for whom.
    pub fn waiting(&self) -> String {
        match self.state {
            State::Idle => format!("the command processor is before command {}", self.next),
            State::Ending(side) => format!("the end of a kernel lacks {} acknowledgments", side.missing()),
            State::Launching(side, Launch { kernel, .. }) => {
                format!("the launch of kernel {kernel} lacks {} acknowledgments", side.missing())
            }
            State::Running(left) => format!("{left} modules have not ended their kernel"),
        }
    }

    fn next_command<C: Coherence, D: Data>(&mut self, protocol: &C, topology: &impl Topology, out: &mut Out<'_, D>) {
        let commands = self.program.commands();
        while let Some(Command::Host { .. }) = commands.get(self.next) {
            self.next += 1;
        }
        let Some(command) = commands.get(self.next) else { return };
        self.next += 1;
        match command {
            Command::Host { .. } => {}
            Command::Copy { bytes, .. } => {
                let done = self.copies.send(out.now() + self.copy_latency, Bytes(*bytes));
                self.copied.push(CopyTime { start: out.now(), end: done });
                self.later(done, out);
            }
            Command::Launch { kernel, stream } => {
                self.started = out.now();
                let launch = Launch { kernel: *kernel, stream: *stream };
                self.state = State::Launching(Side::new(Steps::LAUNCH, protocol), launch);
                self.phase(protocol, topology, out);
            }
        }
    }

    fn later<D: Data>(&self, at: Ps, out: &mut Out<'_, D>) {
        let id = self.layout.command_processor();
        out.send(at.max(out.now() + Ps(1)), id, id, Message::Next);
    }

    /// Starts the next phase of the plan at hand, or what follows it.
    fn phase<D: Data>(&mut self, protocol: &impl Coherence, topology: &impl Topology, out: &mut Out<'_, D>) {
        let id = self.layout.command_processor();
        let (State::Ending(side) | State::Launching(side, _)) = &mut self.state else {
            panic!("a phase outside a boundary");
        };
        let mut members = Vec::new();
        let more = side.begin_phase(protocol, topology, |member, action| members.push((member, action)));
        let all = members.len() == usize::from(self.layout.modules);
        let at = out.now() + if all { self.broadcast } else { self.latency };
        for (member, action) in members {
            out.send(at, id, self.layout.controller(member), Message::Phase { action });
        }
        if more {
            return;
        }
        match self.state {
            State::Launching(_, launch) => self.launch(launch, out),
            State::Ending(_) => {
                let kernel = self.kernels.last_mut().expect("a kernel was launched before it ended");
                kernel.end = out.now();
                self.state = State::Idle;
                self.tell_links(out.now() + Ps(1), LinkEvent::End, out);
                self.later(out.now(), out);
            }
            State::Idle | State::Running(_) => {}
        }
    }

    fn tell_links<D: Data>(&self, at: Ps, event: LinkEvent, out: &mut Out<'_, D>) {
        if self.links_turn {
            out.send(at, self.layout.command_processor(), self.layout.switch(), Message::Link(event));
        }
    }

    fn launch<D: Data>(&mut self, Launch { kernel, stream }: Launch, out: &mut Out<'_, D>) {
        let delay = if self.kernels.is_empty() { self.launch_latency } else { self.dependent_launch_latency };
        let opened = self.started + delay;
        let at = opened.max(out.now() + self.broadcast);
        for module in (0..self.layout.modules).map(ModuleId) {
            out.send(at, self.layout.command_processor(), self.layout.controller(module), Message::Launch { kernel });
        }
        self.tell_links(at, LinkEvent::Launch, out);
        self.kernels.push(KernelTime { kernel, stream, start: opened, end: at });
        self.state = State::Running(self.layout.modules);
    }
}
