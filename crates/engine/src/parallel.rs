//! The windows of a run on several threads.
//!
//! Each thread keeps its share of the partitions from window to window, because its cache holds them and
//! because messages between them need no exchange. Where each has whole groups of them, windows are as long as groups are
//! apart. The last thread to finish a window decides on the next one. Now and then the shares are dealt anew, where some
//! threads have had more to do than others, or another number of threads is better. Who runs a partition changes nothing
//! in what it does.

use crate::balance;
use crate::barrier::{Barrier, Line};
use crate::engine::{HORIZON, Windows};
use crate::exchange::Exchange;
use crate::lane::Lane;
use crate::partition::Partition;
use crate::share::{Ownership, Share};
use crate::staff::Staff;
use crate::stopwatch::{Presence, Stopwatch};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use tombolo_types::Ps;

/// The end of a window that never begins: the run is over, or goes on with another number of threads.
const OVER: u64 = 0;

/// Windows after which the shares are looked at. Source: assumed; long enough that the few microseconds
/// that this takes do not count, short against the phases of a workload.
pub(crate) const REVIEW: u64 = 512;

/// Time after which the shares are looked at, however many windows have passed: where other processes have the cores, a window
/// may last as long as they are left running. Source: assumed; some hundred times what a review takes.
const LONGEST: Duration = Duration::from_millis(10);

/// What the threads of a run share.
struct Crew<'a, 's, P: Partition> {
    map: Ownership<'a>,
    table: Mutex<Table<'a, 's, P>>,
    exchange: Exchange<P::Message>,
    /// By thread: the earliest event that waits in its queues or that it sent in its last window.
    earliest: Vec<Line<AtomicU64>>,
    /// End of the present window, or `OVER`.
    end: Line<AtomicU64>,
    /// Whether the shares are looked at before the next window, though [`REVIEW`] windows have not passed.
    early: AtomicBool,
    /// Windows so far.
    windows: AtomicU64,
    /// Windows of the run before.
    before: u64,
    barrier: Barrier,
}

/// A partition with its lane.
type Seat<'a, P> = (&'a mut P, Lane<<P as Partition>::Message>);

/// What is taken from and put back rarely, with a lock that nobody holds while a handler runs.
struct Table<'a, 's, P: Partition> {
    /// By partition; empty while a thread has it.
    seats: Vec<Option<Seat<'a, P>>>,
    /// Thread of each partition.
    owners: Vec<u16>,
    /// Whether each group of partitions is on one thread.
    whole: bool,
    staff: &'a mut Staff<'s>,
    /// Of the last review.
    reviewed: Instant,
    /// Of all threads since then.
    presence: Presence,
    /// Whether the run goes on with another number of threads.
    changes: bool,
    /// The panic of the first partition, by index, of those that panicked in the present window.
    panic: Option<(u16, Box<dyn Any + Send>)>,
}

/// Runs all partitions on the threads of `staff` until no event is left or their number changes; returns whether none is
/// left. The panic of a handler goes on from here, when all is back in its place.
pub(crate) fn run<P: Partition>(
    partitions: &mut [P],
    lanes: &mut Vec<Lane<P::Message>>,
    map: Ownership<'_>,
    staff: &mut Staff<'_>,
    windows: &mut Windows,
) -> bool {
    let start = lanes.iter().map(Lane::due).min().unwrap_or(Ps::NEVER);
    let threads = staff.threads();
    let crew = Crew::new(partitions, std::mem::take(lanes), map, staff, windows.all());
    let parties = thread::scope(|scope| {
        let crew = &crew;
        let spawn = |&worker: &usize| thread::Builder::new().spawn_scoped(scope, move || crew.work(worker)).is_ok();
        // Where the host refuses a thread, the run goes on with fewer.
        let parties = 1 + (1..threads).take_while(spawn).count();
        crew.table().begin(&map.lookahead.groups, parties);
        crew.plan(start);
        crew.barrier.open(parties);
        crew.work(0);
        parties
    });
    windows.add(parties, crew.windows.into_inner());
    let table = crew.table.into_inner().unwrap_or_else(PoisonError::into_inner);
    lanes.extend(table.seats.into_iter().map(|seat| seat.expect("every thread has put its partitions back").1));
    if let Some((_, panic)) = table.panic {
        resume_unwind(panic);
    }
    !table.changes
}

impl<'a, 's, P: Partition> Crew<'a, 's, P> {
    fn new(
        partitions: &'a mut [P],
        lanes: Vec<Lane<P::Message>>,
        map: Ownership<'a>,
        staff: &'a mut Staff<'s>,
        before: u64,
    ) -> Self {
        let threads = staff.threads();
        let seats = partitions.iter_mut().zip(lanes).map(Some).collect();
        Crew {
            map,
            table: Mutex::new(Table {
                seats,
                owners: Vec::new(),
                whole: false,
                staff,
                reviewed: Instant::now(),
                presence: Presence::default(),
                changes: false,
                panic: None,
            }),
            exchange: Exchange::new(threads),
            earliest: (0..threads).map(|_| Line(AtomicU64::new(Ps::NEVER.0))).collect(),
            end: Line(AtomicU64::new(OVER)),
            early: AtomicBool::new(false),
            windows: AtomicU64::new(0),
            before,
            barrier: Barrier::new(threads),
        }
    }

    /// One thread's part of the run.
    fn work(&self, worker: usize) {
        let parties = self.barrier.wait_to_open();
        let mut share = self.take_share(worker, parties);
        let mut spare = Vec::new();
        let mut stopwatch = Stopwatch::start();
        for window in 1.. {
            let end = self.end.0.load(Ordering::Relaxed);
            if end == OVER {
                break;
            }
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| share.run_window(Ps(end)))) {
                self.record(share.running(), panic);
            }
            self.earliest[worker].0.store(share.earliest().0, Ordering::Relaxed);
            for to in 0..parties {
                share.dispatch(to, |events| self.exchange.put(window, worker, to, events));
            }
            self.barrier.meet(|| self.plan(self.start()));
            self.exchange.collect(window, worker, &mut spare, |event| share.receive(event));
            if window % REVIEW == 0 || self.early.load(Ordering::Relaxed) {
                self.put_back(share);
                self.table().presence.add(stopwatch.read());
                self.barrier.meet(|| self.review());
                share = self.take_share(worker, parties);
                stopwatch = Stopwatch::start();
            }
        }
        self.put_back(share);
    }

    /// The earliest event that waits anywhere.
    fn start(&self) -> Ps {
        let earliest = self.earliest.iter().map(|earliest| earliest.0.load(Ordering::Relaxed));
        earliest.min().map_or(Ps::NEVER, Ps)
    }

    /// Sets the next window, which begins at `start`, while no other thread runs.
    fn plan(&self, start: Ps) {
        let table = self.table();
        let over = start >= HORIZON || table.panic.is_some();
        let end = if over { OVER } else { self.map.window_end(start, table.whole).0 };
        self.end.0.store(end, Ordering::Relaxed);
        let is_long = !table.staff.ignores_load() && table.reviewed.elapsed() > LONGEST;
        self.early.store(is_long, Ordering::Relaxed);
        self.windows.fetch_add(u64::from(!over), Ordering::Relaxed);
    }

    /// Deals the partitions anew, before a window that is planned already: it ends where the new shares allow. It does not
    /// begin where the number of threads changes.
    fn review(&self) {
        if self.end.0.load(Ordering::Relaxed) == OVER {
            return;
        }
        let mut table = self.table();
        let windows = self.windows.load(Ordering::Relaxed) - 1;
        if table.review(&self.map.lookahead.groups, self.before + windows) {
            self.windows.store(windows, Ordering::Relaxed);
            self.end.0.store(OVER, Ordering::Relaxed);
        } else {
            self.end.0.store(self.map.window_end(self.start(), table.whole).0, Ordering::Relaxed);
        }
    }

    /// Takes the partitions of thread `worker` from the table.
    fn take_share(&self, worker: usize, parties: usize) -> Share<'a, P> {
        let mut table = self.table();
        let Table { seats, owners, .. } = &mut *table;
        let mut share = Share::new(worker as u16, owners, parties, self.map);
        for (index, seat) in seats.iter_mut().enumerate() {
            if usize::from(owners[index]) == worker {
                let (partition, lane) = seat.take().expect("a partition belongs to one thread");
                share.seat(index, partition, lane);
            }
        }
        share
    }

    /// Puts a share back on the table.
    fn put_back(&self, share: Share<'a, P>) {
        let mut table = self.table();
        for (index, partition, lane) in share.into_seats() {
            table.seats[usize::from(index)] = Some((partition, lane));
        }
    }

    /// Keeps the panic of the first partition: the one that a run on a single thread ends with.
    fn record(&self, index: u16, panic: Box<dyn Any + Send>) {
        let first = &mut self.table().panic;
        if first.as_ref().is_none_or(|&(other, _)| index < other) {
            *first = Some((index, panic));
        }
    }

    fn table(&self) -> MutexGuard<'_, Table<'a, 's, P>> {
        // No handler runs while the table is held.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<P: Partition> Table<'_, '_, P> {
    /// Deals the partitions to the threads that there are.
    fn begin(&mut self, groups: &[u16], parties: usize) {
        if parties < self.staff.threads() {
            self.staff.refused_all_but(parties);
        }
        let owners = self.staff.owners(groups, parties);
        self.give(owners, groups);
    }

    /// Deals the partitions, all of which are on the table, by what each had to do since the last review. `windows`: of the
    /// run so far. Returns whether it goes on with another number of threads instead.
    fn review(&mut self, groups: &[u16], windows: u64) -> bool {
        let lanes = self.seats.iter().map(|seat| &seat.as_ref().expect("all threads have put theirs back").1);
        let events = lanes.map(|lane| lane.events).collect();
        let presence = std::mem::take(&mut self.presence).percent();
        self.changes = self.staff.review(events, windows, groups, presence);
        self.reviewed = Instant::now();
        if !self.changes {
            let owners = self.staff.deal(groups, std::mem::take(&mut self.owners));
            self.give(owners, groups);
        }
        self.changes
    }

    /// Says which thread has which partition.
    fn give(&mut self, owners: Vec<u16>, groups: &[u16]) {
        self.whole = !balance::splits(groups, &owners);
        self.owners = owners;
    }
}
