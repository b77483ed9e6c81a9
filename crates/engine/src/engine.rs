//! The engine: partitions, event queues, and the windows in which partitions run side by side.

use crate::event::Event;
use crate::lane::PartitionLane;
use crate::lookahead::Lookahead;
use crate::parallel;
use crate::partition::Partition;
use crate::run_threads::{RunThreads, ThreadPool};
use crate::share::{Ownership, Share};
use crate::stopwatch::Stopwatch;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use tombolo_types::{ComponentId, Ps, StopFlag};

/// The end of time, 281 s: leaves 16 spare bits for a model's computations. Events due at or after this time are never
/// handled.
pub const HORIZON: Ps = Ps(1 << 48);

/// Partitions with their waiting events.
///
/// Time advances in windows. Each window begins at the earliest waiting event and lasts for the lookahead, the least
/// delay between two groups of partitions. Within a window no group can receive messages from another group, so all
/// groups run side by side. Each group has shorter windows inside, in which each partition handles its events in their
/// total order.
pub struct Engine<P: Partition> {
    partitions: Vec<P>,
    lanes: Vec<PartitionLane<P::Message>>,
    home: Vec<u16>,
    lookahead: Lookahead,
    /// Set while a run has begun and not ended: it is in progress, it was stopped, or a handler panicked.
    unfinished: bool,
    /// Set if runs keep their threads even on a busy host.
    ignores_load: bool,
}

/// Statistics for one run. All fields except `threads` and `windows` are equal for every number of threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EngineStats {
    /// Events handled in this run.
    pub events: u64,
    /// Windows in this run: the number of message exchanges between partition groups; larger if threads share a group.
    pub windows: u64,
    /// Time of the last event handled, in this run or before.
    pub last_event: Ps,
    /// Threads that took part in most windows: at most one per partition, and only if all speed up the run.
    pub threads: usize,
    /// True if events due at or after [`HORIZON`] are left.
    pub beyond: bool,
    /// True if the calling thread's [`StopFlag`] ended the run early.
    pub stopped: bool,
}

impl<P: Partition> Engine<P> {
    /// An engine at time zero. `home[c]` is the index in `partitions` of component `c`'s partition.
    ///
    /// # Panics
    /// If there is no partition, or more than 2^16. If a component's home does not exist. If the lookahead describes a
    /// different number of partitions, is zero between several partitions, or is larger within groups than between
    /// groups.
    pub fn new(partitions: Vec<P>, home: Vec<u16>, lookahead: Lookahead) -> Self {
        let count = partitions.len();
        assert!((1..=1 << 16).contains(&count), "an engine has 1 to 2^16 partitions, not {count}");
        assert!(home.len() <= 1 << 16, "an engine has at most 2^16 components, not {}", home.len());
        lookahead.check(count);
        for (component, &home) in home.iter().enumerate() {
            assert!(usize::from(home) < count, "component {component} has partition {home} of {count} as its home");
        }
        let lanes = (0..count).map(|partition| PartitionLane::new(partition, &home)).collect();
        Engine { partitions, lanes, home, lookahead, unfinished: false, ignores_load: false }
    }

    /// Makes runs keep all threads even if foreign processes occupy the cores, for tests that predict each partition's
    /// thread.
    pub fn ignoring_load(mut self) -> Self {
        self.ignores_load = true;
        self
    }

    /// Schedules `message` from `from` to `to` at `at`, from outside a run; counts as sent by `from`.
    ///
    /// # Panics
    /// If `at` lies before [`Engine::now`] or is [`Ps::NEVER`]; if `from` or `to` is no component of the engine; if
    /// `from` has sent 2^32 events.
    pub fn schedule(&mut self, at: Ps, from: ComponentId, to: ComponentId, message: P::Message) {
        let now = self.now();
        assert!(at >= now, "component {} is sent an event at {at}, in the past: it is {now}", to.0);
        assert!(at != Ps::NEVER, "component {} is sent an event at a time that never comes", to.0);
        let stop = StopFlag::current();
        let map = Ownership { home: &self.home, lookahead: &self.lookahead, stop: &stop };
        let (source, home) = (usize::from(map.home_of(from)), usize::from(map.home_of(to)));
        let sequence = self.lanes[source].next_sequence(from);
        self.lanes[home].queue.push(Event { time: at, to, from, sequence, message });
    }

    /// Handles events until none is left before [`HORIZON`], on up to `threads` threads including the caller's. Threads
    /// that do not speed up the run stay unused. May be called again after more events have been scheduled, unless the
    /// calling thread's [`StopFlag`] ended the run.
    ///
    /// # Panics
    /// With a handler's panic. If several partitions panic in the same window, the first group's panic is reported. If
    /// threads share a group, windows are shorter, and a different panic may be reported. All threads first finish
    /// their window. The partitions remain accessible, but a further run panics.
    // A separate function in the compiled code: a profiler recognises simulation by its symbol.
    #[inline(never)]
    pub fn run(&mut self, threads: usize) -> EngineStats {
        let more = threads.max(1) - 1;
        self.run_with(&ThreadPool::new(more), more)
    }

    /// Like [`Engine::run`], on the calling thread. Threads from `spare` join from time to time if they help, and are
    /// returned when they do not.
    ///
    /// # Panics
    /// Like [`Engine::run`].
    pub fn run_beside(&mut self, spare: &ThreadPool) -> EngineStats {
        self.run_with(spare, 0)
    }

    fn run_with(&mut self, spare: &ThreadPool, at_once: usize) -> EngineStats {
        assert!(!self.unfinished, "a run that was stopped, or ended in a panic, cannot be continued");
        self.unfinished = true;
        let before: Vec<u64> = self.lanes.iter().map(|lane| lane.events).collect();
        let stop = StopFlag::current();
        let map = Ownership { home: &self.home, lookahead: &self.lookahead, stop: &stop };
        let mut windows = WindowCounts(vec![0; self.partitions.len()]);
        let mut run_threads = RunThreads::new(spare, at_once, before.clone(), self.ignores_load);
        loop {
            let (partitions, lanes) = (&mut self.partitions, &mut self.lanes);
            let is_over = match run_threads.threads() {
                1 => run_alone(partitions, lanes, map, &mut run_threads, &mut windows),
                _ => parallel::run(partitions, lanes, map, &mut run_threads, &mut windows),
            };
            if is_over {
                break;
            }
        }
        let stopped = stop.is_set();
        self.unfinished = stopped;
        let events = self.lanes.iter().map(|lane| lane.events).sum::<u64>() - before.iter().sum::<u64>();
        let beyond = self.lanes.iter().any(|lane| !lane.queue.is_empty());
        let threads = windows.threads();
        EngineStats { events, windows: windows.all(), last_event: self.now(), threads, beyond, stopped }
    }

    /// Time of the last handled event; zero before the first.
    pub fn now(&self) -> Ps {
        self.lanes.iter().map(|lane| lane.last_event).max().unwrap_or(Ps::ZERO)
    }

    /// The partitions, in the order given to [`Engine::new`].
    pub fn partitions(&self) -> &[P] {
        &self.partitions
    }

    /// The partitions, for changes between runs.
    pub fn partitions_mut(&mut self) -> &mut [P] {
        &mut self.partitions
    }

    /// The partitions, without the engine.
    pub fn into_partitions(self) -> Vec<P> {
        self.partitions
    }
}

/// Windows in a run, by thread count, starting with one.
pub(crate) struct WindowCounts(Vec<u64>);

impl WindowCounts {
    /// Counts windows executed on `threads` threads.
    pub(crate) fn add(&mut self, threads: usize, windows: u64) {
        self.0[threads - 1] += windows;
    }

    /// Total over all thread counts.
    pub(crate) fn all(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Thread count used by most windows.
    fn threads(&self) -> usize {
        let most = self.0.iter().max();
        1 + self.0.iter().position(|windows| Some(windows) == most).unwrap_or(0)
    }
}

/// Runs all partitions on the calling thread, window by window, without any synchronisation, until no event is left or
/// threads join. Returns true if none is left. A handler's panic continues from here, after all lanes are restored.
fn run_alone<P: Partition>(
    partitions: &mut [P],
    lanes: &mut Vec<PartitionLane<P::Message>>,
    map: Ownership<'_>,
    run_threads: &mut RunThreads<'_>,
    windows: &mut WindowCounts,
) -> bool {
    let count = partitions.len();
    let mut share = Share::new(0, &vec![0; count], 1, map);
    for (index, (partition, lane)) in partitions.iter_mut().zip(lanes.drain(..)).enumerate() {
        share.seat(index, partition, lane);
    }
    let run = AssertUnwindSafe(|| {
        let mut stopwatch = Stopwatch::start();
        loop {
            let start = share.earliest();
            if start >= HORIZON || map.stop.is_set() {
                return true;
            }
            windows.add(1, 1);
            share.run_window(map.window_end(start, true));
            let all = windows.all();
            if !all.is_multiple_of(parallel::REVIEW) || !run_threads.may_change() {
                continue;
            }
            let presence = stopwatch.read().percent();
            if run_threads.review(share.events(), all, &map.lookahead.groups, presence) {
                return false;
            }
            stopwatch = Stopwatch::start();
        }
    });
    let outcome = catch_unwind(run);
    lanes.extend(share.into_seats().map(|(_, _, lane)| lane));
    outcome.unwrap_or_else(|panic| resume_unwind(panic))
}
