//! CPU of the host: a single core issues the host program's line accesses in order to the last-level cache, with a
//! bounded number outstanding.
//!
//! The command processor tells the core its work ([`HostWork`]) and is notified when the last access is answered. The
//! accesses have `.sys` scope ([`tombolo_protocol::front::ON_HOST`]). If pages move, a disallowed access is a fault:
//! the core issues nothing until the driver has mapped the page. Modelled: issue rate, outstanding accesses. Not
//! modelled: arithmetic, private caches above the last level, several cores, translation.

use crate::front_end::page_run::PageRun;
use crate::l2::credits::Generation;
use crate::l2::mshr::EntryId;
use crate::l2::outstanding::Tickets;
use crate::message::{Flag, LineRequest, Message, ReplyDestination};
use crate::module::context::SmContext;
use crate::observe::value_probe::{Contents, ValueProbe, WarpSlot};
use crate::sm::kernel_slot::KernelSlot;
use std::collections::VecDeque;
use std::sync::Arc;
use tombolo_machine::coherent_host::{CpuConfig, HostOrder};
use tombolo_protocol::Request;
use tombolo_protocol::front::ON_HOST;
use tombolo_protocol::paging::AttemptedAccess;
use tombolo_types::stream::Program;
use tombolo_types::{ComponentId, HostAccess, HostAccessKind, HostPhase, Interval, LineSize, Mask, Ps, SmId};

/// A piece of the host's work in the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostWork {
    /// Work before the first command.
    Setup,
    /// A host phase of the program, between commands.
    Phase(u32),
    /// Work after the last command.
    Results,
}

impl HostWork {
    /// Data accessed in this piece of work.
    pub(crate) fn phase(self, program: &dyn Program) -> &HostPhase {
        match self {
            HostWork::Setup => program.setup(),
            HostWork::Phase(index) => &program.host_phases()[index as usize],
            HostWork::Results => program.results(),
        }
    }
}

/// Times for a piece of host work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostRun {
    /// The piece of work.
    pub work: HostWork,
    /// Start time.
    pub start: Ps,
    /// Time when the first load was answered; `None` without loads.
    pub first_load: Option<Ps>,
    /// Time at which the last access was answered.
    pub end: Ps,
    /// Number of line accesses.
    pub(crate) accesses: u64,
}

/// The work in progress.
#[derive(Debug)]
struct RunningWork {
    slot: KernelSlot,
    run: HostRun,
    left: VecDeque<HostAccess>,
}

/// The host's core.
pub struct Cpu {
    id: ComponentId,
    core: WarpSlot,
    program: Arc<dyn Program>,
    line: LineSize,
    order: HostOrder,
    running: Option<RunningWork>,
    most: u32,
    outstanding: u32,
    /// Names of unused loads: each names a result slot and an MSHR.
    free: Vec<u8>,
    /// Bytes still missing from a load, indexed by name. If some are in flight for other requests, the fill arrives in
    /// parts.
    missing: Vec<Mask>,
    /// Minimum time between two accesses.
    interval: Ps,
    /// Time at which the next access may be issued.
    free_at: Ps,
    /// Set when an issue event is scheduled for `free_at`.
    is_called: bool,
    /// Set when the core waits for a page.
    is_parked: bool,
    /// Pages whose unmapping waits until no access is outstanding. The core issues nothing meanwhile.
    unmapped: Vec<PageRun>,
    done: Vec<HostRun>,
}

impl Cpu {
    /// An idle core in the position of a module's SM 0.
    pub(crate) fn new(id: ComponentId, core: WarpSlot, config: &CpuConfig, program: Arc<dyn Program>) -> Cpu {
        let cycles = (config.issue_cycles.numerator, config.issue_cycles.denominator);
        Cpu {
            id,
            core,
            line: program.line_size(),
            order: config.order,
            program,
            running: None,
            most: config.outstanding,
            outstanding: 0,
            free: (0..config.outstanding as u8).rev().collect(),
            missing: vec![Mask::NONE; config.outstanding as usize],
            interval: Interval::cycles(config.clock.span(1 << 20), cycles).time(),
            free_at: Ps::ZERO,
            is_called: false,
            is_parked: false,
            unmapped: Vec::new(),
            done: Vec::new(),
        }
    }

    /// Completed work, in order.
    pub fn done(&self) -> &[HostRun] {
        &self.done
    }

    /// The resource that the core waits for, for the deadlock report.
    pub fn waiting(&self) -> Option<String> {
        let RunningWork { run, left, .. } = self.running.as_ref()?;
        let page = if self.is_parked { ", which wait for a page" } else { "" };
        Some(format!("{:?}: {} accesses outstanding, {} to come{page}", run.work, self.outstanding, left.len()))
    }

    /// Handles a message.
    pub(crate) fn handle<D: Contents>(&mut self, message: &Message<D>, here: &mut SmContext<'_, '_, D>) {
        match *message {
            Message::HostWork { slot, work } => self.begin(slot, work, here),
            Message::HostIssue => {
                self.is_called = false;
                self.issue(here);
            }
            Message::Fill { register, line, mask, data, .. } => {
                let name = register.number();
                here.config.probe.loaded(here.out.now(), self.core, name, line, mask, data);
                let missing = &mut self.missing[usize::from(name)];
                *missing = *missing & !mask;
                if missing.is_empty() {
                    self.free.push(name);
                    self.answered(true, here);
                }
            }
            Message::StoreAccepted { .. } => self.answered(false, here),
            other => panic!("the host's core got {other:?}"),
        }
    }

    fn begin<D: Contents>(&mut self, slot: KernelSlot, work: HostWork, here: &mut SmContext<'_, '_, D>) {
        let start = here.out.now();
        let mut accesses: Vec<HostAccess> = work.phase(&*self.program).accesses(self.line).collect();
        if self.order == HostOrder::ReadsFirst {
            accesses.sort_by_key(|access| access.kind);
        }
        let left = VecDeque::from(accesses);
        let run = HostRun { work, start, first_load: None, end: start, accesses: left.len() as u64 };
        assert!(self.running.is_none(), "the host program does one thing at a time");
        self.running = Some(RunningWork { slot, run, left });
        here.config.probe.host(self.core);
        self.issue(here);
    }

    /// Issues all accesses that may be issued now.
    fn issue<D: Contents>(&mut self, here: &mut SmContext<'_, '_, D>) {
        let now = here.out.now();
        while let Some(running) = &mut self.running {
            if running.left.is_empty() {
                if self.outstanding == 0 {
                    self.end(here);
                }
                return;
            }
            if self.outstanding == self.most || self.is_parked || !self.unmapped.is_empty() {
                return;
            }
            if self.free_at > now {
                if !std::mem::replace(&mut self.is_called, true) {
                    here.out.send(self.free_at, self.id, self.id, Message::HostIssue);
                }
                return;
            }
            let Some(access) = running.left.front().copied() else { return };
            if self.faults(access, here) {
                return;
            }
            if let Some(running) = &mut self.running {
                running.left.pop_front();
            }
            self.free_at = now + self.interval;
            self.outstanding += 1;
            self.send(access, here);
        }
    }

    /// True if the host may not make an access: the core then parks until the page is mapped, and notifies the driver.
    fn faults<D: Contents>(&mut self, access: HostAccess, here: &mut SmContext<'_, '_, D>) -> bool {
        let (map, module) = (&here.config.map, here.config.module);
        let wanted = match access.kind {
            HostAccessKind::Read => AttemptedAccess::Load,
            HostAccessKind::Write => AttemptedAccess::SystemStore,
        };
        if map.allows(module, here.config.paging, access.line, wanted) {
            return false;
        }
        let page = map.page(access.line);
        self.is_parked = true;
        here.shared.pages.park(page, (SmId(0), 0));
        if here.shared.pages.ask(page, wanted) {
            let at = here.out.now() + crate::convert::host_latency(&here.config.machine);
            here.out.send(at, self.id, here.config.layout.driver(), Message::Fault { page, module, wanted });
        }
        true
    }

    /// The page that the core waits for has been mapped for the host.
    pub(crate) fn page_mapped<D: Contents>(&mut self, here: &mut SmContext<'_, '_, D>) {
        self.is_parked = false;
        self.issue(here);
    }

    /// Pages are being unmapped: notifies the controller when no access is outstanding.
    pub(crate) fn drain<D: Contents>(&mut self, pages: PageRun, here: &mut SmContext<'_, '_, D>) {
        self.unmapped.push(pages);
        self.report_drained(here);
    }

    fn report_drained<D: Contents>(&mut self, here: &mut SmContext<'_, '_, D>) {
        if self.outstanding > 0 {
            return;
        }
        let controller = here.config.layout.controller(here.config.module);
        for pages in self.unmapped.drain(..) {
            here.out.send(here.out.now() + Ps(1), self.id, controller, Message::PageQuiet { pages });
        }
    }

    fn send<D: Contents>(&mut self, access: HostAccess, here: &mut SmContext<'_, '_, D>) {
        let HostAccess { line, mask, kind } = access;
        let (probe, scope) = (&here.config.probe, ON_HOST.scope);
        let result = match kind {
            HostAccessKind::Read => self.free.pop().expect("as many names as outstanding accesses"),
            HostAccessKind::Write => 0,
        };
        let register = EntryId::numbered(result);
        let request = match kind {
            HostAccessKind::Read => {
                probe.load(self.core, result);
                self.missing[usize::from(result)] = mask;
                Request::Read { mask, scope }
            }
            HostAccessKind::Write => {
                let data = probe.store(self.core, line, mask, Flag::NONE);
                Request::Write { mask, scope, data, tracked: true }
            }
        };
        let origin = ReplyDestination { module: here.config.module, sm: SmId(0), warp: 0, result, register };
        let tickets = Tickets { hop: Generation::default(), ..Tickets::default() };
        let body = LineRequest {
            line,
            request,
            origin,
            flag: Flag::NONE,
            tickets,
            requester_mshr: register,
            is_published: false,
        };
        let to = here.config.layout.slice(here.config.module, here.config.map.slice(line));
        here.out.send(here.out.now() + Ps(1), self.id, to, Message::Local(body));
    }

    /// An access has been answered.
    fn answered<D: Contents>(&mut self, is_load: bool, here: &mut SmContext<'_, '_, D>) {
        self.outstanding -= 1;
        let now = here.out.now();
        if let Some(RunningWork { run, .. }) = &mut self.running {
            run.end = now;
            if is_load && run.first_load.is_none() {
                run.first_load = Some(now);
            }
        }
        self.report_drained(here);
        self.issue(here);
    }

    /// All accesses are answered: the command processor continues.
    fn end<D: Contents>(&mut self, here: &mut SmContext<'_, '_, D>) {
        let Some(RunningWork { slot, run, .. }) = self.running.take() else { return };
        self.done.push(run);
        let at = here.out.now() + crate::convert::host_latency(&here.config.machine);
        here.out.send(at, self.id, here.config.layout.command_processor(), Message::Due { slot });
    }
}
