//! Command processor: executes the program's commands, and the protocol's plans at kernel boundaries.
//!
//! Commands in a stream run in order, and streams run concurrently; host synchronization waits for all streams and
//! blocks all streams (`streams`). A running command has a slot, which messages name (`slots`), and passes through the
//! `CommandStage`s. Each stage starts when the previous stage has completed.
//!
//! [`Boundaries`] decides the operations at each boundary. Without elision, a kernel's start is an acquire and its end
//! a release, on the kernel's modules, once per cache (`side`). If a decision depends on earlier decisions, boundaries
//! run serially. If a host core is modelled, it executes the program's host phases, including initialization before
//! the first command and result reads after the last (`core`). Otherwise host phases take no time beyond their
//! boundary operations, and modules are notified of the host's reads and writes (`transfers`).
//!
//! The command processor reads a kernel's packet before any boundary operation starts (`host.packet_latency`),
//! serially. If an elision table decides, it takes `host.table_latency` per packet; `host.table_exposed` states which
//! kernels wait for it (`packets`).
//!
//! Launch latency is the host's: the full latency for the first launch in a stream. The acquire runs in parallel. If
//! the acquire lasts longer than the launch latency, the remainder delays the kernel and counts as kernel time, just
//! like the release.

mod command_latency;
mod core;
mod driver_waits;
mod grids;
mod packets;
mod side;
mod slots;
mod streams;
mod times;
mod transfers;

use crate::front_end::boundaries::{Boundaries, Decision};
use crate::front_end::cpu::HostWork;
use crate::front_end::schedule::Schedule;
use crate::front_end::transfer::Transfers;
use crate::l2::backend::{L2Design, L2Slice};
use crate::layout::ComponentLayout;
use crate::message::{LinkEvent, Message, Out};
use crate::observe::value_probe::Contents;
use crate::sm::kernel_slot::KernelSlot;
use command_latency::CommandLatency;
use core::HostProgram;
pub use driver_waits::{CommandWait, DriverOperation};
use grids::Grids;
use packets::PacketReader;
use side::BoundarySide;
use slots::CommandSlots;
use std::collections::VecDeque;
use std::sync::Arc;
use streams::{NextCommand, StreamLaunch, Streams};
use times::time_range;
pub use times::{KernelTime, TimeRange};
use tombolo_design::scheduling::CtaDistribution;
use tombolo_machine::MachineConfig;
use tombolo_protocol::Topology;
use tombolo_protocol::elision::KernelId;
use tombolo_types::stream::{Command, Program};
use tombolo_types::{Bytes, ModuleId, Ps, Serializer, SmId};

/// Command in flight.
struct ActiveCommand {
    what: CommandKind,
    stage: CommandStage,
    /// Packet number in [`Boundaries`].
    packet: KernelId,
    /// Start time for the command, or for a kernel the time when its packet had been read.
    started: Ps,
    /// Start time of the driver operations scheduled before or after this command.
    tasks_start: Ps,
    /// Boundary side in progress.
    side: Option<BoundarySide>,
    /// Number of modules still running the kernel.
    running: u8,
}

/// Kind and parameters for a command in flight.
#[derive(Clone, Copy, Debug)]
enum CommandKind {
    /// Kernel launch.
    Launch(StreamLaunch),
    /// Host command: command index, and number of copied bytes; `None` if the host works on memory directly.
    Host(usize, Option<u64>),
    /// Host core work before the first command, or after the last.
    Core(HostWork),
    /// Program end.
    ProgramEnds,
}

/// Stages of a command, in order. A stage without work completes immediately.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CommandStage {
    /// Reads the packet and queries the elision table.
    Read,
    /// Runs the boundary operations before the command.
    Acquire,
    /// Runs the driver operations scheduled before the command: page migrations, host copies.
    Before,
    /// Executes the command: a kernel's CTAs, or a copy.
    Run,
    /// Runs the boundary operations after the command.
    Release,
    /// Runs the driver operations scheduled after the command.
    Behind,
    /// The command has ended.
    End,
}

impl CommandStage {
    fn next(self) -> CommandStage {
        match self {
            CommandStage::Read => CommandStage::Acquire,
            CommandStage::Acquire => CommandStage::Before,
            CommandStage::Before => CommandStage::Run,
            CommandStage::Run => CommandStage::Release,
            CommandStage::Release => CommandStage::Behind,
            CommandStage::Behind | CommandStage::End => CommandStage::End,
        }
    }
}

/// Command processor state.
pub struct CommandProcessor {
    layout: ComponentLayout,
    program: Arc<dyn Program>,
    streams: Streams,
    slots: CommandSlots,
    boundaries: Boundaries,
    /// Command whose boundary is running, if boundaries run serially, and commands queued for their boundary.
    operating: Option<KernelSlot>,
    waiting: VecDeque<KernelSlot>,
    packets: PacketReader,
    /// Set if further commands may begin in this event.
    goes_on: bool,
    /// Set when the program's final release has begun.
    released: bool,
    /// Progress of the host program, if a host core is modelled.
    host_program: Option<HostProgram>,
    /// Busy intervals of this core.
    core: Vec<TimeRange>,
    /// Intervals of boundary operations for host commands.
    hosted: Vec<TimeRange>,
    /// Interval of the boundary operations at the program's end.
    ending: Option<TimeRange>,
    command_latency: CommandLatency,
    grids: Grids,
    /// Number of host transfers already announced to modules.
    transfers: u32,
    launch_latency: Ps,
    dependent_launch_latency: Ps,
    copy_latency: Ps,
    copies: Serializer,
    /// True if links are notified of kernels.
    links_turn: bool,
    /// Number of kernels launched and not yet ended.
    open: u32,
    copied: Vec<TimeRange>,
    /// Kernel intervals, indexed by launch number.
    kernels: Vec<KernelTime>,
    /// Number of modules per GPU.
    modules_per_gpu: u8,
    /// Driver operations scheduled before and after commands.
    schedule: Arc<Schedule>,
    /// Intervals in which commands waited for scheduled driver operations.
    waits: Vec<CommandWait>,
}

impl CommandProcessor {
    /// Creates a command processor that will run `program`. `links_turn`: true if links reverse lanes and need kernel
    /// notifications.
    pub fn new(
        (machine, distribution): (&MachineConfig, CtaDistribution),
        layout: ComponentLayout,
        program: Arc<dyn Program>,
        boundaries: Boundaries,
        schedule: Arc<Schedule>,
        links_turn: bool,
    ) -> CommandProcessor {
        CommandProcessor {
            layout,
            program,
            streams: Streams::default(),
            slots: CommandSlots::default(),
            operating: None,
            waiting: VecDeque::new(),
            packets: PacketReader::new(machine, boundaries.elides()),
            goes_on: false,
            released: false,
            host_program: layout.host().map(|host| HostProgram::Setup { core: layout.sm(host, SmId(0)), began: false }),
            core: Vec::new(),
            hosted: Vec::new(),
            ending: None,
            boundaries,
            command_latency: CommandLatency::new(machine, layout.modules),
            grids: Grids::new(machine, distribution),
            transfers: 0,
            launch_latency: machine.host.launch_latency,
            dependent_launch_latency: machine.host.dependent_launch_latency,
            copy_latency: machine.host.copy_latency,
            copies: Serializer::new(machine.host.copy_rate),
            links_turn,
            open: 0,
            copied: Vec::new(),
            kernels: Vec::new(),
            modules_per_gpu: machine.topology.modules_per_gpu,
            schedule,
            waits: Vec::new(),
        }
    }

    /// Handles an event addressed to the command processor.
    pub fn handle<C: L2Design<D>, D: Contents>(
        &mut self,
        message: Message<D>,
        (protocol, topology): (&C, &impl Topology),
        (probe, transfers): (&D::Probe, &Transfers<D>),
        out: &mut Out<'_, D>,
    ) {
        let here = &mut CommandContext { protocol, topology, probe, transfers, out };
        match message {
            Message::Next => self.goes_on = true,
            Message::Due { slot } => {
                self.core_worked(slot, here.out.now());
                self.go_through(slot, here);
            }
            Message::ScheduledTasksDone { slot } => {
                self.tasks_done(slot, here.out.now());
                self.go_through(slot, here);
            }
            Message::KernelDone { module, slot } => {
                self.part_ended(slot, module, here.out);
                let work = self.slots.get(slot);
                work.running -= 1;
                if work.running == 0 {
                    self.go_through(slot, here);
                }
            }
            Message::CtaWanted { module, sm, slot } => {
                let (now, id) = (here.out.now(), self.layout.command_processor());
                let at = self.command_latency.at_controller(now + self.command_latency.one, now);
                let assigned = Message::CtaAssigned { sm, slot, cta: self.grids.assign(slot) };
                here.out.send(at, id, self.layout.controller(module), assigned);
            }
            Message::PhaseDone { slot, module, lost } => {
                let side = self.slots.get(slot).side.as_mut().expect("an acknowledgment of a phase");
                self.boundaries.acted(&side.decision, module, lost);
                if side.acknowledge() && self.phase(slot, here) {
                    self.operated(slot, here);
                }
            }
            other => panic!("the command processor got {other:?}"),
        }
        while std::mem::take(&mut self.goes_on) {
            self.begin_next(here);
        }
    }

    /// True if every command and the final release have completed.
    pub fn is_done(&self) -> bool {
        let reads_results = matches!(self.host_program, Some(HostProgram::Setup { .. } | HostProgram::Commands { .. }));
        self.released && self.slots.is_idle() && !reads_results
    }

    /// Decisions made at boundaries.
    pub fn boundaries(&self) -> &Boundaries {
        &self.boundaries
    }

    /// Busy intervals of the host core, in order; empty if no core is modelled.
    pub fn core(&self) -> &[TimeRange] {
        &self.core
    }

    /// Intervals of boundary operations for host commands, in order.
    pub fn host_releases(&self) -> &[TimeRange] {
        &self.hosted
    }

    /// Interval of the boundary operations at the program's end.
    pub fn final_releases(&self) -> Option<&TimeRange> {
        self.ending.as_ref()
    }

    /// Kernel intervals, indexed by launch number.
    pub fn kernels(&self) -> &[KernelTime] {
        &self.kernels
    }

    /// Intervals in which commands waited for scheduled driver operations, ordered by end time.
    pub fn around_commands(&self) -> &[CommandWait] {
        &self.waits
    }

    /// Copy intervals, in order.
    pub fn copies(&self) -> &[TimeRange] {
        &self.copied
    }

    /// End time of the last command: a kernel including its release, a copy, or the final release.
    pub fn ended(&self) -> Ps {
        let kernels = self.kernels.iter().map(|kernel| kernel.end);
        let tasks = self.waits.last().map(|wait| &wait.time);
        let waits = [self.copied.last(), tasks, self.hosted.last(), self.core.last(), self.ending.as_ref()];
        let waits = waits.into_iter().flatten();
        waits.map(|wait| wait.end).chain(kernels).max().unwrap_or_default()
    }

    /// Describes the awaited conditions for the deadlock report.
    pub fn waiting(&self) -> String {
        let told: Vec<String> = self.slots.iter().map(ActiveCommand::waiting).collect();
        if told.is_empty() {
            return format!("the command processor is before command {}", self.streams.next_command());
        }
        told.join("\n")
    }

    /// Starts all commands that may begin: host initialization first, then commands from the streams, while slots are
    /// available.
    fn begin_next<C: L2Design<D>, T: Topology, D: Contents>(&mut self, here: &mut CommandContext<'_, '_, C, T, D>) {
        if self.sets_up(here) {
            return;
        }
        while !self.released && self.slots.has_room() {
            let Some(next) = self.streams.begin(self.program.commands()) else { return };
            let what = match next {
                NextCommand::Launch(launch) => CommandKind::Launch(launch),
                NextCommand::Host(index) => {
                    let copies = match self.program.commands()[index] {
                        // If a host core runs the program, its memory system's copies are in the schedule.
                        Command::Copy { .. } if self.host_program.is_some() => None,
                        Command::Copy { bytes, .. } => Some(bytes),
                        Command::Host { .. } => None,
                        Command::Launch { .. } | Command::Barrier => unreachable!("the host does not wait to do it"),
                    };
                    CommandKind::Host(index, copies)
                }
                NextCommand::End => {
                    self.released = true;
                    CommandKind::ProgramEnds
                }
            };
            self.begin_work(what, here);
        }
    }

    fn begin_work<C: L2Design<D>, T: Topology, D: Contents>(
        &mut self,
        what: CommandKind,
        here: &mut CommandContext<'_, '_, C, T, D>,
    ) {
        let (stage, packet) = (CommandStage::Read, KernelId(0));
        let started = here.out.now();
        let slot = self.slots.add(ActiveCommand {
            what,
            stage,
            packet,
            started,
            tasks_start: started,
            side: None,
            running: 0,
        });
        if self.begin_stage(slot, here) {
            self.go_through(slot, here);
        }
    }

    /// Advances a command after its current stage has completed: starts the next stage, and further stages while each
    /// completes immediately.
    fn go_through<C: L2Design<D>, T: Topology, D: Contents>(
        &mut self,
        slot: KernelSlot,
        here: &mut CommandContext<'_, '_, C, T, D>,
    ) {
        loop {
            let work = self.slots.get(slot);
            work.stage = work.stage.next();
            if work.stage == CommandStage::End {
                return self.end(slot, here);
            }
            if !self.begin_stage(slot, here) {
                return;
            }
        }
    }

    /// Starts a command's current stage; returns true if it completes immediately.
    fn begin_stage<C: L2Design<D>, T: Topology, D: Contents>(
        &mut self,
        slot: KernelSlot,
        here: &mut CommandContext<'_, '_, C, T, D>,
    ) -> bool {
        let ActiveCommand { what, stage, .. } = *self.slots.get(slot);
        match (stage, what) {
            (CommandStage::Read, CommandKind::Launch(launch)) => self.read(slot, launch, here.out),
            (CommandStage::Acquire, CommandKind::Launch(_) | CommandKind::Host(..) | CommandKind::ProgramEnds)
            | (CommandStage::Release, CommandKind::Launch(_)) => self.operate(slot, here),
            (CommandStage::Before, CommandKind::Launch(_) | CommandKind::Host(..) | CommandKind::ProgramEnds) => {
                self.before(slot, here.out)
            }
            (CommandStage::Behind, CommandKind::Launch(launch)) => {
                self.kernels[launch.launch as usize].end = here.out.now();
                self.start_tasks(slot, launch.command, true, here.out)
            }
            (CommandStage::Run, CommandKind::Launch(launch)) => self.launch(slot, launch, here.out),
            (CommandStage::Run, CommandKind::Host(index, copies)) => {
                self.transfer(index, here);
                self.host(slot, index, copies, here.out)
            }
            (CommandStage::Run, CommandKind::Core(work)) => self.work_of_core(slot, work, here.out),
            (
                CommandStage::Read
                | CommandStage::Acquire
                | CommandStage::Before
                | CommandStage::Release
                | CommandStage::Behind
                | CommandStage::End,
                CommandKind::Core(_),
            ) => true,
            (
                CommandStage::Read | CommandStage::Release | CommandStage::Behind,
                CommandKind::Host(..) | CommandKind::ProgramEnds,
            )
            | (CommandStage::Run, CommandKind::ProgramEnds)
            | (CommandStage::End, CommandKind::Launch(_) | CommandKind::Host(..) | CommandKind::ProgramEnds) => true,
        }
    }

    /// Reads a launch's packet, after all earlier packets have been read.
    fn read<D: Contents>(&mut self, slot: KernelSlot, launch: StreamLaunch, out: &mut Out<'_, D>) -> bool {
        let read = self.packets.read(out.now(), &launch);
        let is_over = read == out.now();
        if !is_over {
            self.due(slot, read, out);
        }
        is_over
    }

    /// Decides the operations for a boundary side and starts them, or queues the command if another boundary is
    /// running.
    fn operate<C: L2Design<D>, T: Topology, D: Contents>(
        &mut self,
        slot: KernelSlot,
        here: &mut CommandContext<'_, '_, C, T, D>,
    ) -> bool {
        let now = here.out.now();
        let work = self.slots.get(slot);
        if work.stage == CommandStage::Acquire {
            work.started = now;
        }
        if self.boundaries.one_at_a_time() && self.operating.is_some() {
            self.waiting.push_back(slot);
            return false;
        }
        self.decide(slot, here);
        let is_over = self.phase(slot, here);
        self.operating = (!is_over).then_some(slot);
        is_over
    }

    /// Decides the operations for the boundary side that a command has reached.
    fn decide<C: L2Design<D>, T: Topology, D: Contents>(
        &mut self,
        slot: KernelSlot,
        here: &CommandContext<'_, '_, C, T, D>,
    ) {
        let now = here.out.now();
        let work = self.slots.get(slot);
        let (command, is_after) = match work.what {
            CommandKind::Launch(launch) => (launch.command, work.stage == CommandStage::Release),
            CommandKind::Host(command, _) => (command, false),
            CommandKind::Core(_) => unreachable!("what the core does of itself is no boundary"),
            CommandKind::ProgramEnds => {
                let decision = self.boundaries.end(here.topology, now);
                work.side = Some(BoundarySide::new(decision, here.protocol));
                return;
            }
        };
        let decision: Decision = if is_after {
            self.boundaries.after(command, work.packet, here.topology, now)
        } else {
            let (packet, decision) = self.boundaries.before(command, here.topology, now);
            work.packet = packet;
            decision
        };
        work.side = Some(BoundarySide::new(decision, here.protocol));
    }

    /// Starts the next phase of a boundary side; returns true if all phases have run.
    fn phase<C: L2Design<D>, T: Topology, D: Contents>(
        &mut self,
        slot: KernelSlot,
        here: &mut CommandContext<'_, '_, C, T, D>,
    ) -> bool {
        let id = self.layout.command_processor();
        let mut side = self.slots.get(slot).side.take().expect("a side was decided");
        let mut members = Vec::new();
        let more = side.begin_phase(here.protocol, here.topology, |member, action| members.push((member, action)));
        let now = here.out.now();
        let at = now + self.command_latency.to(members.len());
        let counted = self.boundaries.logs();
        for (member, action) in members {
            let at = if C::Slice::is_walked(here.protocol, action) {
                self.command_latency.at_controller(at, now)
            } else {
                at
            };
            let extent = self.boundaries.extent(&side.decision, member, action);
            here.out.send(at, id, self.layout.controller(member), Message::Phase { slot, action, extent, counted });
        }
        if more {
            self.slots.get(slot).side = Some(side);
        } else {
            self.boundaries.ran(&side.decision, here.out.now());
        }
        !more
    }

    /// Continues a command after its boundary operations, and starts queued commands' boundaries.
    fn operated<C: L2Design<D>, T: Topology, D: Contents>(
        &mut self,
        slot: KernelSlot,
        here: &mut CommandContext<'_, '_, C, T, D>,
    ) {
        self.operating = None;
        self.go_through(slot, here);
        while self.operating.is_none()
            && let Some(next) = self.waiting.pop_front()
        {
            self.decide(next, here);
            if self.phase(next, here) {
                self.go_through(next, here);
            } else {
                self.operating = Some(next);
            }
        }
    }

    /// Sends a kernel to its modules.
    fn launch<D: Contents>(&mut self, slot: KernelSlot, launch: StreamLaunch, out: &mut Out<'_, D>) -> bool {
        let StreamLaunch { command, launch: number, kernel, on, stream, is_first, .. } = launch;
        let modules =
            (0..self.layout.modules).map(ModuleId).filter(|&module| on.contains(module, self.modules_per_gpu));
        let count = modules.clone().count();
        let delay = if is_first { self.launch_latency } else { self.dependent_launch_latency };
        let opened = self.slots.get(slot).started + delay;
        let begins = opened.max(out.now() + self.command_latency.to(count));
        let message = Message::Launch { command: command as u32, launch: number, slot };
        let at = self.command_latency.at_controller(begins, out.now());
        let remaps = self.schedule.tasks_of(command).is_some_and(|tasks| !tasks.remaps.is_empty());
        for module in modules {
            if remaps {
                let remap = Message::Remap { command: command as u32 };
                out.send(at, self.layout.command_processor(), self.layout.controller(module), remap);
            }
            out.send(at, self.layout.command_processor(), self.layout.controller(module), message);
        }
        if let Some(host) = self.layout.host() {
            let message = Message::KernelBegins { slot, launch: number };
            let at = at.max(out.now() + self.command_latency.one);
            out.send(at, self.layout.command_processor(), self.layout.controller(host), message);
        }
        self.slots.get(slot).running = count as u8;
        let info = &self.program.kernels()[kernel as usize];
        self.grids.launch(slot, (info, self.program.warp_width()), count as u32);
        self.tell_links(begins, LinkEvent::Launch, out);
        self.open += 1;
        let number = number as usize;
        self.kernels.resize(self.kernels.len().max(number + 1), KernelTime::default());
        self.kernels[number] = KernelTime { kernel, stream, on, start: opened, end: begins };
        false
    }

    /// Executes a host command, after its boundary operations. The host leaves no copies in caches, so nothing is owed
    /// afterwards.
    fn host<D: Contents>(
        &mut self,
        slot: KernelSlot,
        command: usize,
        copies: Option<u64>,
        out: &mut Out<'_, D>,
    ) -> bool {
        let packet = self.slots.get(slot).packet;
        self.boundaries.host_is_done(command, packet);
        let Some(bytes) = copies else {
            return match self.program.commands()[command] {
                Command::Host { phase } => self.work_of_core(slot, HostWork::Phase(phase), out),
                Command::Copy { .. } | Command::Launch { .. } | Command::Barrier => true,
            };
        };
        let done = self.copies.send(out.now() + self.copy_latency, Bytes(bytes));
        self.copied.push(TimeRange { start: out.now(), end: done });
        self.due(slot, done, out);
        false
    }

    /// Handles a command's end, after its last stage has completed.
    fn end<C: L2Design<D>, T: Topology, D: Contents>(
        &mut self,
        slot: KernelSlot,
        here: &mut CommandContext<'_, '_, C, T, D>,
    ) {
        let now = here.out.now();
        let what = self.slots.remove(slot).what;
        match what {
            CommandKind::Launch(StreamLaunch { stream, .. }) => {
                self.streams.ended(stream);
                here.transfers.clear();
                self.open -= 1;
                if self.open == 0 {
                    self.tell_links(now + Ps(1), LinkEvent::End, here.out);
                }
                let id = self.layout.command_processor();
                here.out.send(now + Ps(1), id, id, Message::Next);
            }
            CommandKind::Host(..) => {
                self.streams.host_ended();
                self.goes_on = true;
            }
            CommandKind::ProgramEnds => {
                if self.host_program.is_some() {
                    self.begin_work(CommandKind::Core(HostWork::Results), here);
                }
            }
            CommandKind::Core(HostWork::Setup) => {
                if let Some(HostProgram::Setup { core, .. }) = self.host_program {
                    self.host_program = Some(HostProgram::Commands { core });
                }
                self.goes_on = true;
            }
            CommandKind::Core(HostWork::Phase(_) | HostWork::Results) => self.host_program = Some(HostProgram::Results),
        }
    }

    /// Schedules the end of a command's current stage at `at`.
    fn due<D: Contents>(&self, slot: KernelSlot, at: Ps, out: &mut Out<'_, D>) {
        let id = self.layout.command_processor();
        out.send(at.max(out.now() + Ps(1)), id, id, Message::Due { slot });
    }

    fn tell_links<D: Contents>(&self, at: Ps, event: LinkEvent, out: &mut Out<'_, D>) {
        if self.links_turn {
            out.send(at, self.layout.command_processor(), self.layout.switch(), Message::Link(event));
        }
    }
}

/// References that an event needs in addition to the command processor.
struct CommandContext<'a, 'o, C, T, D: Contents> {
    protocol: &'a C,
    topology: &'a T,
    probe: &'a D::Probe,
    transfers: &'a Transfers<D>,
    out: &'a mut Out<'o, D>,
}
