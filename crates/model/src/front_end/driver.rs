//! The driver serves faults and moves pages, one batch of faults after the other.
//!
//! A fault that finds the driver idle starts a service. At the end of the service time the driver collects all faults
//! that have arrived, up to a batch, and begins the requested changes. Changes in a batch run side by side. When all
//! are complete, the driver starts the next batch. [`tombolo_protocol::paging`] defines each change and the order of
//! steps within: a step begins when all modules have finished the previous one. Every shootdown takes additional driver
//! time, besides its messages. Simultaneous orders for consecutive pages share a message (`orders.rs`).
//!
//! The driver also carries out the program's scheduled operations around commands: page moves, which need no service,
//! and copies.
//!
//! A module's memory limits the number of resident pages. If it is full, the page mapped there longest ago is first
//! evicted to the host. A coherent host holds pages like a GPU, with room for every page, and its core faults like an
//! SM. A page that has moved too often lately can be pinned: further faults then map the page remotely for a while. Not
//! modelled: prefetching of neighbouring pages by the driver, access counters.

mod orders;
mod scheduled_tasks;

use self::orders::Orders;
use crate::fabric::packet::CopyName;
use crate::front_end::page_table::PageTable;
use crate::front_end::schedule::Schedule;
use crate::layout::ComponentLayout;
use crate::message::{Message, Out, PagingOrder};
use crate::observe::value_probe::Contents;
use crate::sm::kernel_slot::KernelSlot;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::sync::Arc;
use tombolo_machine::MachineConfig;
use tombolo_machine::sharing::PagingConfig;
use tombolo_protocol::copies::Copies;
use tombolo_protocol::paging::{ChangeReason, ChangeStep, Holder, OnFault, PageTransition, Paging, Residence};
use tombolo_protocol::topology::ModuleSet;
use tombolo_types::{ModuleId, Page, Ps};

/// Counters of the driver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PagingStats {
    /// Faults reported by modules: one per page and module at a time.
    pub faults: u64,
    /// Faults reported by a coherent host, a subset of `faults`.
    pub host_faults: u64,
    /// Batches serviced.
    pub batches: u64,
    /// Pages moved or copied to another memory after a fault.
    pub migrations: u64,
    /// Pages moved by the schedule.
    pub prefetches: u64,
    /// Number of times a page has been unmapped by the driver.
    pub shootdowns: u64,
    /// Pages evicted to the host to make room.
    pub evictions: u64,
    /// Number of times a thrashing page was pinned.
    pub pins: u64,
    /// Total time spent serving faults, including their page changes.
    pub busy: Ps,
    /// Published pages reduced to one copy by a system-scope store.
    pub collapses: u64,
}

/// Reason for a page change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChangeOrigin {
    Fault,
    Schedule,
    /// Makes room for another page.
    Room,
}

/// A page change in progress.
#[derive(Clone, Copy, Debug)]
struct RunningChange {
    change: PageTransition,
    cause: ChangeOrigin,
    step: u8,
    /// Unfinished parts of the step.
    missing: u32,
}

/// A requested page change that has not begun, because of its service time, another change to the page, or missing
/// room.
#[derive(Clone, Copy, Debug)]
struct ChangeRequest {
    page: Page,
    reason: ChangeReason,
    cause: ChangeOrigin,
    /// Location of the page when the request was made.
    then: Residence,
}

/// Recent moves of a page.
#[derive(Clone, Copy, Debug, Default)]
struct ThrashRecord {
    moves: u32,
    since: Ps,
    /// End time of its pinning.
    pinned: Ps,
}

/// Scheduled operations around a command.
#[derive(Clone, Copy, Debug)]
struct ScheduledTask {
    slot: KernelSlot,
    command: u32,
    behind: bool,
    left: u32,
}

/// Components and options for the driver.
pub struct DriverConfig<'a> {
    /// The machine.
    pub machine: &'a MachineConfig,
    /// Component ids of the machine.
    pub layout: ComponentLayout,
    /// Paging rules.
    pub paging: Paging,
    /// Rules for copies between GPUs.
    pub copies: Copies,
    /// Set if thrashing pages are pinned.
    pub pins: bool,
    /// Initial locations of pages.
    pub pages: Arc<PageTable>,
    /// Operations scheduled around commands.
    pub schedule: Arc<Schedule>,
    /// Pages published by hand, each with its subscribers.
    pub subscribed: Vec<(Page, ModuleSet)>,
}

/// The driver.
pub struct Driver {
    layout: ComponentLayout,
    paging: Paging,
    copies: Copies,
    costs: PagingConfig,
    /// Time to read the access records.
    stop: Ps,
    pins: bool,
    latency: Ps,
    /// Pages that fit into a module's memory.
    room: usize,
    table: Arc<PageTable>,
    schedule: Arc<Schedule>,
    /// Pages whose location differs from their initial placement.
    pages: FxHashMap<Page, Residence>,
    /// Resident pages by module, the page mapped longest ago first. Not needed, hence empty, if every page has room
    /// anyway.
    held: Vec<VecDeque<Page>>,
    /// Modules left by a page while `held` still lists the page; removed in batches.
    left: FxHashMap<Page, ModuleSet>,
    faults: VecDeque<ChangeRequest>,
    /// Start time of the service or page changes in progress.
    serving: Option<Ps>,
    /// Unfinished changes in the current batch.
    batch: u32,
    running: FxHashMap<Page, RunningChange>,
    /// Queued requests for a page with a change in progress.
    later: FxHashMap<Page, VecDeque<ChangeRequest>>,
    /// Requested changes waiting for room in a module's memory.
    crowded: VecDeque<ChangeRequest>,
    thrash: FxHashMap<Page, ThrashRecord>,
    task: Option<ScheduledTask>,
    /// Modules that have accessed a page while accesses were tracked, by page.
    accessed: FxHashMap<Page, ModuleSet>,
    /// Number of modules whose access report is missing.
    missing_reports: u8,
    /// Tasks waiting for the current task or for these reports.
    tasks: VecDeque<ScheduledTask>,
    /// Orders collected while an event is handled.
    orders: Orders,
    /// Counters.
    pub stats: PagingStats,
}

impl Driver {
    /// An idle driver.
    pub fn new(config: DriverConfig<'_>) -> Driver {
        let DriverConfig { machine, layout, paging, copies, pins, pages, schedule, subscribed } = config;
        let mut driver = Driver {
            layout,
            paging,
            copies,
            costs: machine.paging.clone(),
            stop: machine.publication.stop,
            pins,
            latency: crate::convert::host_latency(machine),
            room: usize::try_from(machine.dram.bytes / machine.page_bytes).unwrap_or(usize::MAX),
            table: pages,
            schedule,
            pages: FxHashMap::default(),
            held: vec![VecDeque::new(); usize::from(layout.all_modules())],
            left: FxHashMap::default(),
            faults: VecDeque::new(),
            serving: None,
            batch: 0,
            running: FxHashMap::default(),
            later: FxHashMap::default(),
            crowded: VecDeque::new(),
            thrash: FxHashMap::default(),
            task: None,
            accessed: FxHashMap::default(),
            missing_reports: 0,
            tasks: VecDeque::new(),
            orders: Orders::new(layout.all_modules()),
            stats: PagingStats::default(),
        };
        driver.publish(&subscribed);
        driver.hold_placed();
        driver
    }

    /// Publishes pages by hand: the lowest subscriber is the home and serves the others.
    fn publish(&mut self, subscribed: &[(Page, ModuleSet)]) {
        let is_used = |page: Page| self.table.home(ModuleId(0), self.table.first_line(page)).is_some();
        for &(page, subscribers) in subscribed.iter().filter(|(page, _)| is_used(*page)) {
            let home = subscribers.lowest().expect("a part names a GPU");
            self.pages.insert(page, Residence::published(home, subscribers, self.layout.modules));
        }
    }

    /// Fills modules with the pages placed or published there, lowest page first. Pages without room go to the host.
    fn hold_placed(&mut self) {
        let modules = self.layout.modules;
        let placed: Vec<Page> = self.table.placed().map(|(page, _)| page).collect();
        for page in placed {
            let holders = self.residence(page).holders();
            let has_room =
                |module: &ModuleId| holders.contains(*module) && self.held[usize::from(module.0)].len() < self.room;
            let with_room: Vec<ModuleId> = (0..modules).map(ModuleId).filter(has_room).collect();
            for module in &with_room {
                self.held[usize::from(module.0)].push_back(page);
            }
            if with_room.len() < holders.count() as usize {
                let residence = match with_room.first() {
                    Some(&home) => Residence::published(home, with_room.iter().copied().collect(), modules),
                    None => Residence::at(Holder::Host, ModuleSet::NONE),
                };
                self.pages.insert(page, residence);
            }
        }
    }

    /// Pages that found no room at their initial place, with their location before the run.
    pub fn displaced(&self) -> impl Iterator<Item = (Page, Residence)> + '_ {
        self.pages.iter().map(|(page, residence)| (*page, *residence))
    }

    /// Final number of pages per holder count; index 0, for pages held by no module, stays at zero.
    pub fn holders(&self) -> Vec<u64> {
        let mut pages = vec![0; usize::from(self.layout.modules) + 1];
        for (page, _) in self.table.placed() {
            pages[self.residence(page).holders().count() as usize] += 1;
        }
        pages
    }

    /// Holder for pages without room on any GPU: a coherent host, whose core uses them, or a plain host memory that no
    /// component accesses.
    fn host(&self) -> Holder {
        self.layout.host().map_or(Holder::Host, Holder::Module)
    }

    /// Handles a message.
    pub fn handle<D: Contents>(&mut self, message: Message<D>, out: &mut Out<'_, D>) {
        self.take(message, out);
        self.forget_left();
        let times = (out.now() + self.latency, out.now() + self.costs.shootdown.max(Ps(1)));
        self.orders.send(times, self.layout, out);
    }

    fn take<D: Contents>(&mut self, message: Message<D>, out: &mut Out<'_, D>) {
        match message {
            Message::Fault { page, module, wanted } => {
                self.stats.faults += 1;
                self.stats.host_faults += u64::from(self.layout.host() == Some(module));
                let request = self.request_change(page, ChangeReason::Fault { module, wanted }, ChangeOrigin::Fault);
                self.faults.push_back(request);
                self.serve(out);
            }
            Message::Serviced => self.take_batch(out),
            Message::Accessed { pages, module } => {
                pages.pages().for_each(|page| self.accessed.entry(page).or_default().add(module));
            }
            Message::AccessesReported => self.accesses_reported(out),
            Message::TrackingEnds => self.end_tracking(out),
            Message::Shootdown { pages } => pages.pages().for_each(|page| self.unmap(page)),
            Message::PagingDone { pages } => pages.pages().for_each(|page| self.part_done(page, out)),
            Message::Copied { copy: CopyName::Page(page) } => self.part_done(page, out),
            Message::Copied { copy: CopyName::Listed(_) } if self.copies.launch_waits() => self.errand_part_done(out),
            Message::Copied { copy: CopyName::Listed(_) } => {}
            Message::ModuleTransfers { slot, command, module } => self.send_part((slot, command), module, out),
            Message::ScheduledTasks { slot, command, behind: true } if self.schedule.overlaps => {
                // All parts have been requested; the task waits only for this message and the operations in flight.
                assert!(self.task.is_some_and(|task| (task.slot, task.command) == (slot, command)), "its parts");
                self.errand_part_done(out);
            }
            Message::ScheduledTasks { slot, command, behind } => {
                // The extra count keeps the task open until all operations have begun.
                self.tasks.push_back(ScheduledTask { slot, command, behind, left: 1 });
                self.begin_errand(out);
            }
            other => panic!("the driver got {other:?}"),
        }
    }

    /// Outstanding page changes, for the deadlock report.
    pub fn waiting(&self) -> impl Iterator<Item = String> + '_ {
        let changes = self.running.iter().map(|(page, running)| {
            let step = running.change.step(running.step);
            format!("the driver: {page:?} lacks {} parts of {step:?}", running.missing)
        });
        let crowded = self.crowded.iter().map(|request| format!("the driver: {:?} waits for room", request.page));
        changes.chain(crowded)
    }

    /// Starts a service if faults wait and none is in progress. The service takes the driver's time before its batch is
    /// formed.
    fn serve<D: Contents>(&mut self, out: &mut Out<'_, D>) {
        if self.serving.is_some() || self.faults.is_empty() {
            return;
        }
        self.serving = Some(out.now());
        let id = self.layout.driver();
        out.send(out.now() + self.costs.service.max(Ps(1)), id, id, Message::Serviced);
    }

    /// The service time for a batch is over: begins the changes requested by the faults.
    fn take_batch<D: Contents>(&mut self, out: &mut Out<'_, D>) {
        self.stats.batches += 1;
        // The extra count keeps the batch open until all its changes have begun.
        self.batch = 1;
        let count = self.faults.len().min(self.costs.batch as usize);
        for fault in self.faults.drain(..count).collect::<Vec<_>>() {
            self.batch += 1;
            self.begin_change(fault, out);
        }
        self.batch_part_done(out);
    }

    fn batch_part_done<D: Contents>(&mut self, out: &mut Out<'_, D>) {
        self.batch -= 1;
        if self.batch == 0 {
            let since = self.serving.take().expect("a batch is served");
            self.stats.busy += out.now() - since;
            self.serve(out);
        }
    }

    /// Begins a change. If another change to the page is in progress, the request is queued again as a fault, or behind
    /// this change.
    fn begin_change<D: Contents>(&mut self, request: ChangeRequest, out: &mut Out<'_, D>) {
        let ChangeRequest { page, reason: wish, cause, then } = request;
        if self.running.contains_key(&page) {
            match cause {
                ChangeOrigin::Fault => {
                    self.faults.push_back(request);
                    self.batch_part_done(out);
                }
                ChangeOrigin::Schedule | ChangeOrigin::Room => self.later.entry(page).or_default().push_back(request),
            }
            return;
        }
        let now = self.paging.served_by(then, self.residence(page));
        let rules = self.rules_for(page, &now, wish, out.now());
        let Some(change) = rules.change(&now, wish, self.layout.all_modules()) else {
            return self.over(cause, out);
        };
        if let Some(module) = comes_to(&change)
            && !self.make_room(module, request, out)
        {
            return;
        }
        self.count(&change, page, cause);
        self.running.insert(page, RunningChange { change, cause, step: 0, missing: 0 });
        self.begin_step(page, out);
    }

    fn request_change(&self, page: Page, wish: ChangeReason, cause: ChangeOrigin) -> ChangeRequest {
        ChangeRequest { page, reason: wish, cause, then: self.residence(page) }
    }

    /// Location of a page, and the set of modules allowed to use the page.
    fn residence(&self, page: Page) -> Residence {
        self.pages.get(&page).copied().unwrap_or_else(|| {
            let placed = self.table.home(ModuleId(0), self.table.first_line(page));
            self.paging.placed(placed.expect("only pages that were placed are touched"), self.layout.all_modules())
        })
    }

    /// Paging rules for a page: a thrashing page is pinned for a while.
    fn rules_for(&mut self, page: Page, now: &Residence, wish: ChangeReason, at: Ps) -> Paging {
        let remote = Paging { on_fault: OnFault::MapRemotely, ..self.paging };
        if !self.pins || !matches!((wish, now.home), (ChangeReason::Fault { .. }, Holder::Module(_))) {
            return self.paging;
        }
        let costs = &self.costs;
        let thrash = self.thrash.entry(page).or_default();
        if at < thrash.pinned {
            return remote;
        }
        if at > thrash.since + costs.thrashing_time {
            *thrash = ThrashRecord { moves: 0, since: at, pinned: Ps::ZERO };
        }
        thrash.moves += 1;
        if thrash.moves < costs.thrashing_moves {
            return self.paging;
        }
        *thrash = ThrashRecord { moves: 0, since: at, pinned: at + costs.pinned_time };
        self.stats.pins += 1;
        remote
    }

    /// True if a module has room for one more page. Otherwise the oldest page without a change in progress is evicted
    /// to the host, and the requested change waits.
    fn make_room<D: Contents>(&mut self, module: ModuleId, request: ChangeRequest, out: &mut Out<'_, D>) -> bool {
        self.forget_left();
        let held = &self.held[usize::from(module.0)];
        if held.len() < self.room || self.layout.host() == Some(module) {
            return true;
        }
        let oldest = held.iter().copied().find(|page| !self.running.contains_key(page) && *page != request.page);
        self.crowded.push_back(request);
        if let Some(page) = oldest {
            self.stats.evictions += 1;
            // A published page with several copies loses this copy; the last copy goes to the host.
            let wish = match self.residence(page) {
                now if now.published && now.holders().count() > 1 => {
                    ChangeReason::Leave { modules: ModuleSet::only(module), ends: false }
                }
                _ => ChangeReason::Move { to: self.host() },
            };
            self.begin_change(self.request_change(page, wish, ChangeOrigin::Room), out);
        }
        false
    }

    fn count(&mut self, change: &PageTransition, page: Page, cause: ChangeOrigin) {
        let ended = self.residence(page).published && !change.after.published;
        self.stats.collapses += u64::from(ended && cause == ChangeOrigin::Fault);
        for step in change.steps() {
            match step {
                ChangeStep::Copy { .. } => match cause {
                    ChangeOrigin::Fault => self.stats.migrations += 1,
                    ChangeOrigin::Schedule => self.stats.prefetches += 1,
                    ChangeOrigin::Room => {}
                },
                ChangeStep::Unmap(_) => self.stats.shootdowns += 1,
                ChangeStep::WriteBack(_) | ChangeStep::Map { .. } => {}
            }
        }
        if let Some(module) = comes_to(change) {
            self.forget_left();
            self.held[usize::from(module.0)].push_back(page);
        }
    }

    /// Begins the current step of a page's change, or ends the change.
    fn begin_step<D: Contents>(&mut self, page: Page, out: &mut Out<'_, D>) {
        let running = self.running.get_mut(&page).expect("a change under way");
        let (id, copy) = (self.layout.driver(), CopyName::Page(page));
        match running.change.step(running.step) {
            Some(ChangeStep::Unmap(_)) => self.orders.shoot_down(page),
            Some(ChangeStep::WriteBack(modules)) => {
                running.missing = modules.count();
                self.order_all(modules, page, PagingOrder::WriteBack);
            }
            Some(ChangeStep::Copy { from: Holder::Module(from), to }) => {
                running.missing = 1;
                let message = Message::Copy { copy, to: to.module() };
                out.send(out.now() + self.latency, id, self.layout.copy_engine(from), message);
            }
            Some(ChangeStep::Copy { from: Holder::Host, to }) => {
                running.missing = 1;
                let to = to.module().expect("the host gives pages to modules");
                out.send(out.now() + self.latency, id, self.layout.copy_engine(to), Message::TakePage { page });
            }
            Some(ChangeStep::Map { after, modules: told }) => {
                self.map(page, after, told);
                let running = self.running.get_mut(&page).expect("a change under way");
                running.missing = if self.paging.awaits_map() { told.count() } else { 0 };
                if running.missing == 0 {
                    self.end_step(page, out);
                }
            }
            None => self.end(page, out),
        }
    }

    /// The shootdown for a page is prepared: modules unmap the page.
    fn unmap(&mut self, page: Page) {
        let running = self.running.get_mut(&page).expect("a change under way");
        let Some(ChangeStep::Unmap(modules)) = running.change.step(running.step) else {
            panic!("{page:?} is not unmapped")
        };
        running.missing = modules.count();
        self.order_all(modules, page, PagingOrder::Unmap);
    }

    fn map(&mut self, page: Page, after: Residence, told: ModuleSet) {
        self.pages.insert(page, after);
        for module in told {
            self.orders.give(module, page, PagingOrder::Map(after.mapping(module)));
        }
    }

    fn order_all(&mut self, modules: ModuleSet, page: Page, order: PagingOrder) {
        for module in modules {
            self.orders.give(module, page, order);
        }
    }

    /// A part of a step has completed.
    fn part_done<D: Contents>(&mut self, page: Page, out: &mut Out<'_, D>) {
        let Some(running) = self.running.get_mut(&page) else {
            return assert!(!self.paging.awaits_map(), "{page:?}: nobody waits for that");
        };
        running.missing -= 1;
        if running.missing == 0 {
            self.end_step(page, out);
        }
    }

    fn end_step<D: Contents>(&mut self, page: Page, out: &mut Out<'_, D>) {
        let running = self.running.get_mut(&page).expect("a change under way");
        running.step += 1;
        self.begin_step(page, out);
    }

    /// A change is complete: waiting requests resume.
    fn end<D: Contents>(&mut self, page: Page, out: &mut Out<'_, D>) {
        let RunningChange { change, cause, .. } = self.running.remove(&page).expect("a change under way");
        self.let_go(page, &change);
        self.over(cause, out);
        let later = self.later.remove(&page).unwrap_or_default();
        for request in later.into_iter().chain(std::mem::take(&mut self.crowded)) {
            self.begin_change(request, out);
        }
    }

    /// Notes the modules that no longer hold a page after a change.
    fn let_go(&mut self, page: Page, change: &PageTransition) {
        let left = ModuleSet::first(self.layout.all_modules()).difference(change.after.holders());
        let before = self.left.entry(page).or_default();
        *before = before.union(left);
    }

    /// Removes pages from the lists of modules they have left, before a list is read or extended. Removal in batches
    /// avoids a search per page.
    fn forget_left(&mut self) {
        let left = std::mem::take(&mut self.left);
        if left.is_empty() {
            return;
        }
        for (module, held) in (0..=u8::MAX).map(ModuleId).zip(&mut self.held) {
            held.retain(|page| !left.get(page).is_some_and(|modules| modules.contains(module)));
        }
    }

    fn over<D: Contents>(&mut self, cause: ChangeOrigin, out: &mut Out<'_, D>) {
        match cause {
            ChangeOrigin::Fault => self.batch_part_done(out),
            ChangeOrigin::Schedule => self.errand_part_done(out),
            ChangeOrigin::Room => {}
        }
    }
}

/// Module whose memory receives the page in a change.
fn comes_to(change: &PageTransition) -> Option<ModuleId> {
    change.steps().find_map(|step| match step {
        ChangeStep::Copy { to, .. } => to.module(),
        ChangeStep::Unmap(_) | ChangeStep::WriteBack(_) | ChangeStep::Map { .. } => None,
    })
}
