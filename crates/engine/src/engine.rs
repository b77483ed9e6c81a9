//! The engine: partitions, their queues, and the windows in which they run side by side.

use crate::event::Event;
use crate::lane::Lane;
use crate::lookahead::Lookahead;
use crate::parallel;
use crate::partition::Partition;
use crate::share::{Ownership, Share};
use crate::staff::{Spare, Staff};
use crate::stopwatch::Stopwatch;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use tombolo_types::{ComponentId, Ps};

/// The end of time, 281 s: models may compute with 16 more bits than it has. What is due then or later is never handled.
pub const HORIZON: Ps = Ps(1 << 48);

/// Partitions with the events that wait for them.
///
/// Time goes in windows: each begins at the earliest event that waits anywhere and lasts for the lookahead,
/// the least delay between two groups of partitions. Within it no group can hear from another, so all of them run
/// side by side; and each group has shorter windows of its own, in which each of its partitions goes through its events in
/// their total order.
pub struct Engine<P: Partition> {
    partitions: Vec<P>,
    lanes: Vec<Lane<P::Message>>,
    home: Vec<u16>,
    lookahead: Lookahead,
    /// A run has begun and not come to its end: it is going on, or a handler panicked.
    unfinished: bool,
    /// Runs keep their threads however busy the host is.
    ignores_load: bool,
}

/// What one run did. All but `threads` and `windows` is the same for every number of threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EngineStats {
    /// Events handled in this run.
    pub events: u64,
    /// Windows of this run: how often the groups of partitions exchanged messages; more where threads share a group.
    pub windows: u64,
    /// Time of the last event handled, in this run or before it.
    pub last_event: Ps,
    /// Threads that took part, in most of the windows: no more than there are partitions, nor than help.
    pub threads: usize,
    /// Whether events are left that are due at or after [`HORIZON`].
    pub beyond: bool,
}

impl<P: Partition> Engine<P> {
    /// An engine at time zero. `home[c]` is the partition of component `c`, by its index in `partitions`.
    ///
    /// # Panics
    /// When there is no partition, or more than 2^16; when a component's home is none of them; when the
    /// lookahead is of other partitions, or zero and there are several, or larger within groups than between them.
    pub fn new(partitions: Vec<P>, home: Vec<u16>, lookahead: Lookahead) -> Self {
        let count = partitions.len();
        assert!((1..=1 << 16).contains(&count), "an engine has 1 to 2^16 partitions, not {count}");
        assert!(home.len() <= 1 << 16, "an engine has at most 2^16 components, not {}", home.len());
        lookahead.check(count);
        for (component, &home) in home.iter().enumerate() {
            assert!(usize::from(home) < count, "component {component} has partition {home} of {count} as its home");
        }
        let lanes = (0..count).map(|partition| Lane::new(partition, &home)).collect();
        Engine { partitions, lanes, home, lookahead, unfinished: false, ignores_load: false }
    }

    /// The same engine, whose runs keep their threads where other processes take the cores: to tell which thread runs what.
    pub fn ignoring_load(mut self) -> Self {
        self.ignores_load = true;
        self
    }

    /// Schedules `message` from `from` to `to` at `at`, from outside a run; counts as sent by `from`.
    ///
    /// # Panics
    /// When `at` lies before [`Engine::now`] or is [`Ps::NEVER`]; when `from` or `to` is no component of the
    /// engine; when `from` has sent 2^32 events.
    pub fn schedule(&mut self, at: Ps, from: ComponentId, to: ComponentId, message: P::Message) {
        let now = self.now();
        assert!(at >= now, "component {} is sent an event at {at}, in the past: it is {now}", to.0);
        assert!(at != Ps::NEVER, "component {} is sent an event at a time that never comes", to.0);
        let map = Ownership { home: &self.home, lookahead: &self.lookahead };
        let (source, home) = (usize::from(map.home_of(from)), usize::from(map.home_of(to)));
        let sequence = self.lanes[source].next_sequence(from);
        self.lanes[home].queue.push(Event { time: at, to, from, sequence, message });
    }

    /// Handles events until none is left before [`HORIZON`], on up to `threads` threads, the calling one among them. One that
    /// does not help is not used. May be called again after more has been scheduled.
    ///
    /// # Panics
    /// With the panic of a handler; where several partitions panic in the same window, with that of the first group's, which
    /// may be another's where threads share a group, for windows are shorter then. Other threads finish their window before.
    /// The partitions can still be looked at, but a further run panics.
    // A function of its own where it is compiled: a profiler tells by its symbol what is simulation.
    #[inline(never)]
    pub fn run(&mut self, threads: usize) -> EngineStats {
        let more = threads.max(1) - 1;
        self.run_with(&Spare::new(more), more)
    }

    /// The same on the calling thread, which those of `spare` join, now and then, where they help. It gives back what
    /// does not.
    ///
    /// # Panics
    /// As [`Engine::run`].
    pub fn run_beside(&mut self, spare: &Spare) -> EngineStats {
        self.run_with(spare, 0)
    }

    fn run_with(&mut self, spare: &Spare, at_once: usize) -> EngineStats {
        assert!(!self.unfinished, "a run that ended in a panic cannot be continued");
        self.unfinished = true;
        let before: Vec<u64> = self.lanes.iter().map(|lane| lane.events).collect();
        let map = Ownership { home: &self.home, lookahead: &self.lookahead };
        let mut windows = Windows(vec![0; self.partitions.len()]);
        let mut staff = Staff::new(spare, at_once, before.clone(), self.ignores_load);
        loop {
            let (partitions, lanes) = (&mut self.partitions, &mut self.lanes);
            let is_over = match staff.threads() {
                1 => run_alone(partitions, lanes, map, &mut staff, &mut windows),
                _ => parallel::run(partitions, lanes, map, &mut staff, &mut windows),
            };
            if is_over {
                break;
            }
        }
        self.unfinished = false;
        let events = self.lanes.iter().map(|lane| lane.events).sum::<u64>() - before.iter().sum::<u64>();
        let beyond = self.lanes.iter().any(|lane| !lane.queue.is_empty());
        let threads = windows.threads();
        EngineStats { events, windows: windows.all(), last_event: self.now(), threads, beyond }
    }

    /// Time of the last event handled; zero before the first.
    pub fn now(&self) -> Ps {
        self.lanes.iter().map(|lane| lane.last_event).max().unwrap_or(Ps::ZERO)
    }

    /// The partitions, in the order given to [`Engine::new`].
    pub fn partitions(&self) -> &[P] {
        &self.partitions
    }

    /// The partitions, to change them between runs.
    pub fn partitions_mut(&mut self) -> &mut [P] {
        &mut self.partitions
    }

    /// The partitions, without the engine.
    pub fn into_partitions(self) -> Vec<P> {
        self.partitions
    }
}

/// Windows of a run, by the number of threads, from one.
pub(crate) struct Windows(Vec<u64>);

impl Windows {
    /// Counts windows on so many threads.
    pub(crate) fn add(&mut self, threads: usize, windows: u64) {
        self.0[threads - 1] += windows;
    }

    /// On whatever number.
    pub(crate) fn all(&self) -> u64 {
        self.0.iter().sum()
    }

    /// The number of threads of most of them.
    fn threads(&self) -> usize {
        let most = self.0.iter().max();
        1 + self.0.iter().position(|windows| Some(windows) == most).unwrap_or(0)
    }
}

/// Runs all partitions on the calling thread, window by window, without any synchronisation, until no event is left or
/// others join; returns whether none is left. The panic of a handler goes on from here, when all is back in its place.
fn run_alone<P: Partition>(
    partitions: &mut [P],
    lanes: &mut Vec<Lane<P::Message>>,
    map: Ownership<'_>,
    staff: &mut Staff<'_>,
    windows: &mut Windows,
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
            if start >= HORIZON {
                return true;
            }
            windows.add(1, 1);
            share.run_window(map.window_end(start, true));
            let all = windows.all();
            if !all.is_multiple_of(parallel::REVIEW) || !staff.may_change() {
                continue;
            }
            let presence = stopwatch.read().percent();
            if staff.review(share.events(), all, &map.lookahead.groups, presence) {
                return false;
            }
            stopwatch = Stopwatch::start();
        }
    });
    let outcome = catch_unwind(run);
    lanes.extend(share.into_seats().map(|(_, _, lane)| lane));
    outcome.unwrap_or_else(|panic| resume_unwind(panic))
}
