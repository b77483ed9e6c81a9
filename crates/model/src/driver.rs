//! The driver: serves faults and moves pages, one batch of faults after the other.
//!
//! A fault that finds it idle starts a service. At the end of that time it takes what faults have come until then, up to a
//! batch, and begins the change that each asks for. Changes of one batch run side by side. When all are over it goes on with
//! the next batch. What a change is, and in which order its steps run, [`tombolo_protocol::paging`] says: a step begins
//! when the one before it is done everywhere. Every shootdown takes the driver a time of its own, beside its messages. What
//! it orders at one time of pages that follow each other goes by one message (`orders.rs`).
//!
//! It also does what the program's schedule puts around commands: moves of pages, which need no service, and copies.
//!
//! A module holds as many pages as its memory has room for. Where it is full, the page that was mapped there longest ago goes to
//! the host first. A host that takes part is a holder as GPUs are, with room for every page, and its core faults as SMs do. Not
//! modelled: pages that fault in neighbours (the driver's prefetcher), access counters.

mod errands;
mod orders;

use self::orders::Orders;
use crate::kernel_slot::KernelSlot;
use crate::layout::Layout;
use crate::message::{Message, Out, PagingOrder};
use crate::packet::CopyName;
use crate::page_table::PageTable;
use crate::schedule::Schedule;
use crate::watch::Contents;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::sync::Arc;
use tombolo_machine::MachineConfig;
use tombolo_machine::sharing::PagingConfig;
use tombolo_protocol::paging::{Change, Holder, OnFault, Paging, Residence, Step, Wish};
use tombolo_protocol::topology::ModuleSet;
use tombolo_types::{ModuleId, Page, Ps};

/// Counters of the driver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PagingStats {
    /// Faults that modules have told of: one a page and module at a time.
    pub faults: u64,
    /// Those of them that a host that takes part has told of.
    pub host_faults: u64,
    /// Services of a batch.
    pub batches: u64,
    /// Pages that a fault has moved or copied to another memory.
    pub migrations: u64,
    /// Pages that the schedule has moved.
    pub prefetches: u64,
    /// Times that a page was unmapped.
    pub shootdowns: u64,
    /// Pages that went to the host to make room.
    pub evictions: u64,
    /// Times that a page that thrashed was pinned.
    pub pins: u64,
    /// How long faults were being served, with the changes that they asked for.
    pub busy: Ps,
    /// Published pages of which a store of the system has left one copy.
    pub collapses: u64,
}

/// Why a page changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    Fault,
    Schedule,
    /// To make room for another.
    Room,
}

/// A change under way.
#[derive(Clone, Copy, Debug)]
struct Running {
    change: Change,
    cause: Cause,
    step: u8,
    /// Parts of the step that are not done.
    missing: u32,
}

/// A change that waits.
#[derive(Clone, Copy, Debug)]
struct Asked {
    page: Page,
    wish: Wish,
    cause: Cause,
    /// Where the page was as it was asked for.
    then: Residence,
}

/// How often a page has moved of late.
#[derive(Clone, Copy, Debug, Default)]
struct Thrash {
    moves: u32,
    since: Ps,
    /// Until when it stays where it is.
    pinned: Ps,
}

/// What is done around a command.
#[derive(Clone, Copy, Debug)]
struct Errand {
    slot: KernelSlot,
    command: u32,
    behind: bool,
    left: u32,
}

/// What the driver is made of.
pub struct DriverConfig<'a> {
    /// The machine.
    pub machine: &'a MachineConfig,
    /// Its components.
    pub layout: Layout,
    /// The rules of pages.
    pub paging: Paging,
    /// Whether pages that thrash are pinned.
    pub pins: bool,
    /// Where pages are before the run.
    pub pages: Arc<PageTable>,
    /// What is done around commands.
    pub schedule: Arc<Schedule>,
    /// Pages that are published by hand, to whom.
    pub subscribed: Vec<(Page, ModuleSet)>,
}

/// The driver.
pub struct Driver {
    layout: Layout,
    paging: Paging,
    costs: PagingConfig,
    /// What it takes to read what was accessed.
    stop: Ps,
    pins: bool,
    latency: Ps,
    /// Pages that a module has room for.
    room: usize,
    table: Arc<PageTable>,
    schedule: Arc<Schedule>,
    /// Pages that are not as they were placed.
    pages: FxHashMap<Page, Residence>,
    /// By module: pages that it holds, the one mapped longest ago first. Empty where every page has room anyway.
    held: Vec<VecDeque<Page>>,
    /// Pages that modules have left and that are still in `held`: taken out of it together.
    left: FxHashMap<Page, ModuleSet>,
    faults: VecDeque<Asked>,
    /// Since when a service is under way, or changes of its batch are.
    serving: Option<Ps>,
    /// Changes that the batch at hand waits for.
    batch: u32,
    running: FxHashMap<Page, Running>,
    /// Changes of a page that has one under way.
    later: FxHashMap<Page, VecDeque<Asked>>,
    /// Changes that wait for room.
    crowded: VecDeque<Asked>,
    thrash: FxHashMap<Page, Thrash>,
    errand: Option<Errand>,
    /// By page: who has accessed it while accesses were tracked.
    accessed: FxHashMap<Page, ModuleSet>,
    /// Modules that have not told yet what they have accessed.
    untold: u8,
    /// Those that wait for it.
    errands: VecDeque<Errand>,
    /// What it orders while it handles an event.
    orders: Orders,
    /// Counters.
    pub stats: PagingStats,
}

impl Driver {
    /// An idle driver.
    pub fn new(config: DriverConfig<'_>) -> Driver {
        let DriverConfig { machine, layout, paging, pins, pages, schedule, subscribed } = config;
        let mut driver = Driver {
            layout,
            paging,
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
            errand: None,
            accessed: FxHashMap::default(),
            untold: 0,
            errands: VecDeque::new(),
            orders: Orders::new(layout.all_modules()),
            stats: PagingStats::default(),
        };
        driver.publish(&subscribed);
        driver.hold_placed();
        driver
    }

    /// Pages that are published by hand have these subscribers, of whom the lowest serves the others.
    fn publish(&mut self, subscribed: &[(Page, ModuleSet)]) {
        let is_used = |page: Page| self.table.home(ModuleId(0), self.table.first_line(page)).is_some();
        for &(page, subscribers) in subscribed.iter().filter(|(page, _)| is_used(*page)) {
            let home = subscribers.lowest().expect("a part names a GPU");
            self.pages.insert(page, Residence::published(home, subscribers, self.layout.modules));
        }
    }

    /// Modules hold the pages placed there, the lowest first, and those published to them; what has no room is the host's.
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

    /// Pages that have no room where they were placed, and where they are before the run.
    pub fn displaced(&self) -> impl Iterator<Item = (Page, Residence)> + '_ {
        self.pages.iter().map(|(page, residence)| (*page, *residence))
    }

    /// Pages by the number of modules that hold them, in the end: none at the index 0.
    pub fn holders(&self) -> Vec<u64> {
        let mut pages = vec![0; usize::from(self.layout.modules) + 1];
        for (page, _) in self.table.placed() {
            pages[self.residence(page).holders().count() as usize] += 1;
        }
        pages
    }

    /// Whose memory has what no GPU has room for: that of a host that takes part, which its core uses, or one that nobody uses.
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
                let asked = self.asked(page, Wish::Fault { module, wanted }, Cause::Fault);
                self.faults.push_back(asked);
                self.serve(out);
            }
            Message::Serviced => self.take_batch(out),
            Message::Accessed { pages, module } => {
                pages.pages().for_each(|page| self.accessed.entry(page).or_default().add(module));
            }
            Message::AccessesTold => self.accesses_told(out),
            Message::TrackingEnds => self.end_tracking(out),
            Message::Shootdown { pages } => pages.pages().for_each(|page| self.unmap(page)),
            Message::PagingDone { pages } => pages.pages().for_each(|page| self.part_done(page, out)),
            Message::Copied { copy: CopyName::Page(page) } => self.part_done(page, out),
            Message::Copied { copy: CopyName::Listed(_) } => self.errand_part_done(out),
            Message::Sends { slot, command, module } => self.send_part((slot, command), module, out),
            Message::Around { slot, command, behind: true } if self.schedule.overlaps => {
                // All parts have been sent for; the errand waits for this word alone, and for what is under way.
                assert!(
                    self.errand.is_some_and(|errand| (errand.slot, errand.command) == (slot, command)),
                    "its parts"
                );
                self.errand_part_done(out);
            }
            Message::Around { slot, command, behind } => {
                // One more than what there is to do, so that it is not over before all has begun.
                self.errands.push_back(Errand { slot, command, behind, left: 1 });
                self.begin_errand(out);
            }
            other => panic!("the driver got {other:?}"),
        }
    }

    /// Whether it waits for nothing.
    pub fn is_idle(&self) -> bool {
        self.serving.is_none() && self.running.is_empty() && self.errand.is_none()
    }

    /// What it waits for, for a report of who waits for whom.
    pub fn waiting(&self) -> impl Iterator<Item = String> + '_ {
        let changes = self.running.iter().map(|(page, running)| {
            let step = running.change.step(running.step);
            format!("the driver: {page:?} lacks {} parts of {step:?}", running.missing)
        });
        let crowded = self.crowded.iter().map(|asked| format!("the driver: {:?} waits for room", asked.page));
        changes.chain(crowded)
    }

    /// Starts a service where faults wait and none is under way.
    fn serve<D: Contents>(&mut self, out: &mut Out<'_, D>) {
        if self.serving.is_some() || self.faults.is_empty() {
            return;
        }
        self.serving = Some(out.now());
        let id = self.layout.driver();
        out.send(out.now() + self.costs.service.max(Ps(1)), id, id, Message::Serviced);
    }

    /// The driver's work on a batch is over: what its faults ask for begins.
    fn take_batch<D: Contents>(&mut self, out: &mut Out<'_, D>) {
        self.stats.batches += 1;
        // One more, so that the batch is not over before all its changes have begun.
        self.batch = 1;
        let count = self.faults.len().min(self.costs.batch as usize);
        for fault in self.faults.drain(..count).collect::<Vec<_>>() {
            self.batch += 1;
            self.ask(fault, out);
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

    /// Begins a change, unless one of the page is under way: then it comes again as a fault, or behind that.
    fn ask<D: Contents>(&mut self, asked: Asked, out: &mut Out<'_, D>) {
        let Asked { page, wish, cause, then } = asked;
        if self.running.contains_key(&page) {
            match cause {
                Cause::Fault => {
                    self.faults.push_back(asked);
                    self.batch_part_done(out);
                }
                Cause::Schedule | Cause::Room => self.later.entry(page).or_default().push_back(asked),
            }
            return;
        }
        let now = self.paging.served_by(then, self.residence(page));
        let rules = self.rules_for(page, &now, wish, out.now());
        let Some(change) = rules.change(&now, wish, self.layout.all_modules()) else {
            return self.over(cause, out);
        };
        if let Some(module) = comes_to(&change)
            && !self.make_room(module, asked, out)
        {
            return;
        }
        self.count(&change, page, cause);
        self.running.insert(page, Running { change, cause, step: 0, missing: 0 });
        self.begin_step(page, out);
    }

    fn asked(&self, page: Page, wish: Wish, cause: Cause) -> Asked {
        Asked { page, wish, cause, then: self.residence(page) }
    }

    /// Where a page is, and who may use it.
    fn residence(&self, page: Page) -> Residence {
        self.pages.get(&page).copied().unwrap_or_else(|| {
            let placed = self.table.home(ModuleId(0), self.table.first_line(page));
            self.paging.placed(placed.expect("only pages that were placed are touched"), self.layout.all_modules())
        })
    }

    /// The rules for a page: one that thrashes stays where it is for a while.
    fn rules_for(&mut self, page: Page, now: &Residence, wish: Wish, at: Ps) -> Paging {
        let remote = Paging { on_fault: OnFault::MapRemotely, ..self.paging };
        if !self.pins || !matches!((wish, now.home), (Wish::Fault { .. }, Holder::Module(_))) {
            return self.paging;
        }
        let costs = &self.costs;
        let thrash = self.thrash.entry(page).or_default();
        if at < thrash.pinned {
            return remote;
        }
        if at > thrash.since + costs.thrashing_time {
            *thrash = Thrash { moves: 0, since: at, pinned: Ps::ZERO };
        }
        thrash.moves += 1;
        if thrash.moves < costs.thrashing_moves {
            return self.paging;
        }
        *thrash = Thrash { moves: 0, since: at, pinned: at + costs.pinned_time };
        self.stats.pins += 1;
        remote
    }

    /// Whether a module has room for one page more; where not, one goes to the host, and the change waits for that.
    fn make_room<D: Contents>(&mut self, module: ModuleId, asked: Asked, out: &mut Out<'_, D>) -> bool {
        self.forget_left();
        let held = &self.held[usize::from(module.0)];
        if held.len() < self.room || self.layout.host() == Some(module) {
            return true;
        }
        let oldest = held.iter().copied().find(|page| !self.running.contains_key(page) && *page != asked.page);
        self.crowded.push_back(asked);
        if let Some(page) = oldest {
            self.stats.evictions += 1;
            // A copy among others is given up; the last one goes to the host.
            let wish = match self.residence(page) {
                now if now.published && now.holders().count() > 1 => {
                    Wish::Leave { modules: ModuleSet::only(module), ends: false }
                }
                _ => Wish::Move { to: self.host() },
            };
            self.ask(self.asked(page, wish, Cause::Room), out);
        }
        false
    }

    fn count(&mut self, change: &Change, page: Page, cause: Cause) {
        let ended = self.residence(page).published && !change.after.published;
        self.stats.collapses += u64::from(ended && cause == Cause::Fault);
        for step in change.steps() {
            match step {
                Step::Copy { .. } => match cause {
                    Cause::Fault => self.stats.migrations += 1,
                    Cause::Schedule => self.stats.prefetches += 1,
                    Cause::Room => {}
                },
                Step::Unmap(_) => self.stats.shootdowns += 1,
                Step::WriteBack(_) | Step::Map { .. } => {}
            }
        }
        if let Some(module) = comes_to(change) {
            self.forget_left();
            self.held[usize::from(module.0)].push_back(page);
        }
    }

    /// Begins the step at hand of a page's change, or ends the change.
    fn begin_step<D: Contents>(&mut self, page: Page, out: &mut Out<'_, D>) {
        let running = self.running.get_mut(&page).expect("a change under way");
        let (id, copy) = (self.layout.driver(), CopyName::Page(page));
        match running.change.step(running.step) {
            Some(Step::Unmap(_)) => self.orders.shoot_down(page),
            Some(Step::WriteBack(modules)) => {
                running.missing = modules.count();
                self.order_all(modules, page, PagingOrder::WriteBack);
            }
            Some(Step::Copy { from: Holder::Module(from), to }) => {
                running.missing = 1;
                let message = Message::Copy { copy, to: to.module() };
                out.send(out.now() + self.latency, id, self.layout.copy_engine(from), message);
            }
            Some(Step::Copy { from: Holder::Host, to }) => {
                running.missing = 1;
                let to = to.module().expect("the host gives pages to modules");
                out.send(out.now() + self.latency, id, self.layout.copy_engine(to), Message::TakePage { page });
            }
            Some(Step::Map { after, modules: told }) => {
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

    /// The shootdown of a page has been prepared: modules unmap it.
    fn unmap(&mut self, page: Page) {
        let running = self.running.get_mut(&page).expect("a change under way");
        let Some(Step::Unmap(modules)) = running.change.step(running.step) else { panic!("{page:?} is not unmapped") };
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

    /// A part of a step is done.
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

    /// A change is over: what waited for it goes on.
    fn end<D: Contents>(&mut self, page: Page, out: &mut Out<'_, D>) {
        let Running { change, cause, .. } = self.running.remove(&page).expect("a change under way");
        self.let_go(page, &change);
        self.over(cause, out);
        let later = self.later.remove(&page).unwrap_or_default();
        for asked in later.into_iter().chain(std::mem::take(&mut self.crowded)) {
            self.ask(asked, out);
        }
    }

    /// Modules that a page has left hold it no more.
    fn let_go(&mut self, page: Page, change: &Change) {
        let left = ModuleSet::first(self.layout.all_modules()).without(change.after.holders());
        let before = self.left.entry(page).or_default();
        *before = before.and(left);
    }

    /// Takes what modules have left out of what they hold, before anybody looks or more is added.
    fn forget_left(&mut self) {
        let left = std::mem::take(&mut self.left);
        if left.is_empty() {
            return;
        }
        for (module, held) in (0..=u8::MAX).map(ModuleId).zip(&mut self.held) {
            held.retain(|page| !left.get(page).is_some_and(|modules| modules.contains(module)));
        }
    }

    fn over<D: Contents>(&mut self, cause: Cause, out: &mut Out<'_, D>) {
        match cause {
            Cause::Fault => self.batch_part_done(out),
            Cause::Schedule => self.errand_part_done(out),
            Cause::Room => {}
        }
    }
}

/// The module whose memory a change brings a page to.
fn comes_to(change: &Change) -> Option<ModuleId> {
    change.steps().find_map(|step| match step {
        Step::Copy { to, .. } => to.module(),
        Step::Unmap(_) | Step::WriteBack(_) | Step::Map { .. } => None,
    })
}
