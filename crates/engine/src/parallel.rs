//! Windows in a run on several threads.
//!
//! Each thread keeps a share of the partitions from window to window: the thread's cache holds these partitions, and
//! messages inside the share need no exchange. If every share consists of whole groups, a window lasts for the delay
//! between groups. The last thread to finish a window plans the next one. At intervals, partitions are redistributed if
//! the load is uneven, or the number of threads is changed. Simulation results are independent from the assignment to
//! threads.

use crate::balance;
use crate::barrier::{Barrier, CachePadded};
use crate::engine::{HORIZON, WindowCounts};
use crate::lane::PartitionLane;
use crate::mailbox_grid::MailboxGrid;
use crate::partition::Partition;
use crate::run_threads::RunThreads;
use crate::share::{Ownership, Share};
use crate::stopwatch::{Presence, Stopwatch};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use tombolo_types::Ps;

/// End time that stands for no further window: the run is over, or continues with another number of threads.
const OVER: u64 = 0;

/// Number of windows between two share reviews. Source: assumed; long enough to make a review's few microseconds
/// negligible, short against the phases of a workload.
pub(crate) const REVIEW: u64 = 512;

/// Time after which the shares are reviewed, regardless of the number of windows: if foreign processes occupy the
/// cores, a window may last until they yield. Source: assumed; some hundred times the duration of a review.
const LONGEST: Duration = Duration::from_millis(10);

/// State shared between the threads in a run: the mailboxes, the current window, and the partitions that no thread
/// owns.
struct Workers<'a, 's, P: Partition> {
    map: Ownership<'a>,
    shared: Mutex<SharedState<'a, 's, P>>,
    exchange: MailboxGrid<P::Message>,
    /// Earliest event by thread, waiting in its queues or sent in the last window.
    earliest: Vec<CachePadded<AtomicU64>>,
    /// End of the current window, or `OVER`.
    end: CachePadded<AtomicU64>,
    /// Set if the shares are reviewed before the next window, although [`REVIEW`] windows have not passed.
    early: AtomicBool,
    /// Windows so far.
    windows: AtomicU64,
    /// Windows before this section of the whole run.
    before: u64,
    barrier: Barrier,
}

/// A partition with its lane.
type PartitionSlot<'a, P> = (&'a mut P, PartitionLane<<P as Partition>::Message>);

/// Rarely accessed shared state; its lock is never held while a handler runs.
struct SharedState<'a, 's, P: Partition> {
    /// Seats by partition; empty while a thread owns the partition.
    seats: Vec<Option<PartitionSlot<'a, P>>>,
    /// Thread of each partition.
    owners: Vec<u16>,
    /// True if each group has all partitions on one thread.
    whole: bool,
    run_threads: &'a mut RunThreads<'s>,
    /// Time of the last review.
    reviewed: Instant,
    /// Presence of all threads since the last review.
    presence: Presence,
    /// Set if the run continues with another number of threads.
    changes: bool,
    /// Panic from the partition with the lowest index, among all panics in the present window.
    panic: Option<(u16, Box<dyn Any + Send>)>,
}

/// Runs all partitions on the threads of `run_threads` until no event is left or the number of threads changes. Returns
/// true if no event is left. A handler's panic continues from here, after all lanes are restored.
pub(crate) fn run<P: Partition>(
    partitions: &mut [P],
    lanes: &mut Vec<PartitionLane<P::Message>>,
    map: Ownership<'_>,
    run_threads: &mut RunThreads<'_>,
    windows: &mut WindowCounts,
) -> bool {
    let start = lanes.iter().map(PartitionLane::due).min().unwrap_or(Ps::NEVER);
    let threads = run_threads.threads();
    let workers = Workers::new(partitions, std::mem::take(lanes), map, run_threads, windows.all());
    let parties = thread::scope(|scope| {
        let workers = &workers;
        let spawn = |&worker: &usize| thread::Builder::new().spawn_scoped(scope, move || workers.work(worker)).is_ok();
        // If the host refuses a thread, the run continues with fewer threads.
        let parties = 1 + (1..threads).take_while(spawn).count();
        workers.shared().begin(&map.lookahead.groups, parties);
        workers.plan(start);
        workers.barrier.open(parties);
        workers.work(0);
        parties
    });
    windows.add(parties, workers.windows.into_inner());
    let shared = workers.shared.into_inner().unwrap_or_else(PoisonError::into_inner);
    lanes.extend(shared.seats.into_iter().map(|seat| seat.expect("every thread has put its partitions back").1));
    if let Some((_, panic)) = shared.panic {
        resume_unwind(panic);
    }
    !shared.changes
}

impl<'a, 's, P: Partition> Workers<'a, 's, P> {
    fn new(
        partitions: &'a mut [P],
        lanes: Vec<PartitionLane<P::Message>>,
        map: Ownership<'a>,
        run_threads: &'a mut RunThreads<'s>,
        before: u64,
    ) -> Self {
        let threads = run_threads.threads();
        let seats = partitions.iter_mut().zip(lanes).map(Some).collect();
        Workers {
            map,
            shared: Mutex::new(SharedState {
                seats,
                owners: Vec::new(),
                whole: false,
                run_threads,
                reviewed: Instant::now(),
                presence: Presence::default(),
                changes: false,
                panic: None,
            }),
            exchange: MailboxGrid::new(threads),
            earliest: (0..threads).map(|_| CachePadded(AtomicU64::new(Ps::NEVER.0))).collect(),
            end: CachePadded(AtomicU64::new(OVER)),
            early: AtomicBool::new(false),
            windows: AtomicU64::new(0),
            before,
            barrier: Barrier::new(threads),
        }
    }

    /// Part of the run for one thread: takes a share, executes window after window, and returns the share.
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
                self.shared().presence.add(stopwatch.read());
                self.barrier.meet(|| self.review());
                share = self.take_share(worker, parties);
                stopwatch = Stopwatch::start();
            }
        }
        self.put_back(share);
    }

    /// Time of the earliest waiting event.
    fn start(&self) -> Ps {
        let earliest = self.earliest.iter().map(|earliest| earliest.0.load(Ordering::Relaxed));
        earliest.min().map_or(Ps::NEVER, Ps)
    }

    /// Plans the next window, which begins at `start`, while all other threads wait.
    fn plan(&self, start: Ps) {
        let shared = self.shared();
        let over = start >= HORIZON || shared.panic.is_some() || self.map.stop.is_set();
        let end = if over { OVER } else { self.map.window_end(start, shared.whole).0 };
        self.end.0.store(end, Ordering::Relaxed);
        let is_long = !shared.run_threads.ignores_load() && shared.reviewed.elapsed() > LONGEST;
        self.early.store(is_long, Ordering::Relaxed);
        self.windows.fetch_add(u64::from(!over), Ordering::Relaxed);
    }

    /// Redistributes the partitions before a window that is already planned; its end is adapted to the new shares. If
    /// the number of threads changes, the window is cancelled.
    fn review(&self) {
        if self.end.0.load(Ordering::Relaxed) == OVER {
            return;
        }
        let mut shared = self.shared();
        let windows = self.windows.load(Ordering::Relaxed) - 1;
        if shared.review(&self.map.lookahead.groups, self.before + windows) {
            self.windows.store(windows, Ordering::Relaxed);
            self.end.0.store(OVER, Ordering::Relaxed);
        } else {
            self.end.0.store(self.map.window_end(self.start(), shared.whole).0, Ordering::Relaxed);
        }
    }

    /// Removes the partitions of thread `worker` from the shared state.
    fn take_share(&self, worker: usize, parties: usize) -> Share<'a, P> {
        let mut shared = self.shared();
        let SharedState { seats, owners, .. } = &mut *shared;
        let mut share = Share::new(worker as u16, owners, parties, self.map);
        for (index, seat) in seats.iter_mut().enumerate() {
            if usize::from(owners[index]) == worker {
                let (partition, lane) = seat.take().expect("a partition belongs to one thread");
                share.seat(index, partition, lane);
            }
        }
        share
    }

    /// Returns a share to the shared state.
    fn put_back(&self, share: Share<'a, P>) {
        let mut shared = self.shared();
        for (index, partition, lane) in share.into_seats() {
            shared.seats[usize::from(index)] = Some((partition, lane));
        }
    }

    /// Keeps the panic from the first partition, the one that would end a run on a single thread.
    fn record(&self, index: u16, panic: Box<dyn Any + Send>) {
        let first = &mut self.shared().panic;
        if first.as_ref().is_none_or(|&(other, _)| index < other) {
            *first = Some((index, panic));
        }
    }

    fn shared(&self) -> MutexGuard<'_, SharedState<'a, 's, P>> {
        // No handler runs while the shared state is locked.
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<P: Partition> SharedState<'_, '_, P> {
    /// Assigns the partitions to the available threads.
    fn begin(&mut self, groups: &[u16], parties: usize) {
        if parties < self.run_threads.threads() {
            self.run_threads.refused_all_but(parties);
        }
        let owners = self.run_threads.owners(groups, parties);
        self.give(owners, groups);
    }

    /// Redistributes the partitions, all returned to the shared state, by load since the last review. `windows`: total
    /// for the run so far. Returns true if the run continues with a different thread count instead.
    fn review(&mut self, groups: &[u16], windows: u64) -> bool {
        let lanes = self.seats.iter().map(|seat| &seat.as_ref().expect("all threads have put theirs back").1);
        let events = lanes.map(|lane| lane.events).collect();
        let presence = std::mem::take(&mut self.presence).percent();
        self.changes = self.run_threads.review(events, windows, groups, presence);
        self.reviewed = Instant::now();
        if !self.changes {
            let owners = self.run_threads.rebalance(groups, std::mem::take(&mut self.owners));
            self.give(owners, groups);
        }
        self.changes
    }

    /// Sets the thread for each partition.
    fn give(&mut self, owners: Vec<u16>, groups: &[u16]) {
        self.whole = !balance::splits_group(groups, &owners);
        self.owners = owners;
    }
}
