//! Runs many points in parallel. Each recording is made once and shared between points, and so is each page placement.
//!
//! Workers run ready points while any exist. Otherwise a single worker at a time records the next workload. The number
//! of recordings in memory is therefore at most the number of running points plus one. The longest points run first, by
//! the duration of their previous run. Points without a previous run come before them, sorted by array bytes. Idle
//! threads join running points. The result of a point does not depend on the worker that runs the point, on the number
//! of threads, or on the order.

use crate::clock::Stopwatch;
use crate::error::{PointError, StoreError};
use crate::point::{Key, Point};
use crate::point_result::{Pass, PointResult};
use crate::sampling::DemandCache;
use crate::store::{Lookup, Store};
use crate::workload::PreparedProgram;
use std::cmp::Ordering;
use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tombolo_design::{DesignConfig, Placement, Scheduling};
use tombolo_machine::MachineConfig;
use tombolo_model::front_end::PageTable;
use tombolo_system::arrays::arrays_used;
use tombolo_system::sharing::inter_gpu_sharing;
use tombolo_system::{
    KernelDemands, Observed, RunError, RunRecord, RunSpec, SharedObserver, Simulation, ThreadPool, place, run_sampled,
};
use tombolo_types::StopFlag;

/// Result per point, or the reason for a missing result.
pub type Results = BTreeMap<Key, Result<Arc<PointResult>, String>>;

/// Receives progress reports and warnings from a campaign.
pub trait Watcher: Sync {
    /// Called once at the start: `points` remain to be run and `finished` were stored before.
    fn begins(&self, points: usize, finished: usize);
    /// Called when work on `what` starts.
    fn started(&self, what: &str);
    /// Called when work on `what` ends.
    fn ended(&self, what: &str);
    /// Called when `points` more points are done. `left` estimates the time for the remaining points.
    fn advanced(&self, points: usize, left: Option<Duration>);
    /// Passes on a notice that needs no action but may interest a user.
    fn warn(&self, text: &str);
}

/// Watcher that ignores every report.
pub struct SilentWatcher;

impl Watcher for SilentWatcher {
    fn begins(&self, _: usize, _: usize) {}
    fn started(&self, _: &str) {}
    fn ended(&self, _: &str) {}
    fn advanced(&self, _: usize, _: Option<Duration>) {}
    fn warn(&self, _: &str) {}
}

/// Runs every point once with up to `threads` threads. Results present in `store` are reused, and new results are saved
/// to the store. A failing point does not stop the rest. If the calling thread's [`StopFlag`] is set, running points end
/// without a result, and waiting points are absent from the results.
///
/// # Errors
/// Returns an error if the store cannot be read or written. Running points then finish, and no new points start.
pub fn run_points(
    points: &[Point],
    store: Option<&Store>,
    threads: usize,
    watcher: &dyn Watcher,
) -> Result<Results, StoreError> {
    let mut finished = Results::new();
    let mut groups: Vec<RecordingGroup> = Vec::new();
    for point in points {
        if finished.contains_key(point.key()) || groups.iter().any(|group| group.has(point)) {
            continue;
        }
        match store.map_or(Ok(Lookup::Nothing), |store| store.load(point.key()))? {
            Lookup::Result(outcome) => _ = finished.insert(point.key().clone(), Ok(Arc::from(outcome))),
            Lookup::Nothing => RecordingGroup::add(&mut groups, point),
            Lookup::Damaged(text) => {
                watcher.warn(&text);
                RecordingGroup::add(&mut groups, point);
            }
        }
    }
    let known = store.map(Store::costs).unwrap_or_default();
    groups.iter_mut().for_each(|group| group.order(&known));
    groups.sort_by(|a, b| b.length.total_cmp(&a.length));
    let waiting = groups.iter().map(|group| group.points.len()).sum();
    watcher.begins(waiting, finished.len());
    let campaign = Campaign::new(groups, store, (threads, waiting), known, watcher, finished);
    campaign.run()
}

/// Points that share a recording.
struct RecordingGroup {
    recording: String,
    points: Vec<Point>,
    /// Expected length of the group's longest point.
    length: ExpectedTime,
}

/// Expected run time for a point.
#[derive(Clone, Copy, Debug, PartialEq)]
enum ExpectedTime {
    /// For a point that never ran: total bytes in its arrays, or `None` if they are not known before recording.
    New(Option<u64>),
    /// Seconds taken by the point's last run, or the mean over points with the same recording.
    Seconds(f64),
}

impl ExpectedTime {
    /// Orders lengths; an unknown length counts as the longest.
    fn total_cmp(&self, other: &ExpectedTime) -> Ordering {
        match (self, other) {
            (ExpectedTime::Seconds(seconds), ExpectedTime::Seconds(others)) => seconds.total_cmp(others),
            (ExpectedTime::New(bytes), ExpectedTime::New(others)) => {
                (bytes.is_none(), bytes).cmp(&(others.is_none(), others))
            }
            (ExpectedTime::New(_), ExpectedTime::Seconds(_)) => Ordering::Greater,
            (ExpectedTime::Seconds(_), ExpectedTime::New(_)) => Ordering::Less,
        }
    }
}

impl RecordingGroup {
    fn add(groups: &mut Vec<RecordingGroup>, point: &Point) {
        let recording = point.recording();
        match groups.iter_mut().find(|group| group.recording == recording) {
            Some(group) => group.points.push(point.clone()),
            None => {
                groups.push(RecordingGroup { recording, points: vec![point.clone()], length: ExpectedTime::New(None) })
            }
        }
    }

    fn has(&self, point: &Point) -> bool {
        self.points.iter().any(|known| known.key() == point.key())
    }

    /// Puts the longest point first. `known`: seconds by recording, and by point.
    fn order(&mut self, known: &BTreeMap<String, f64>) {
        let of_all = known.get(&self.recording).copied().map(ExpectedTime::Seconds);
        let of_all = of_all.unwrap_or_else(|| ExpectedTime::New(bytes(&self.points[0])));
        let length = |point: &Point| known.get(&point.run()).map_or(of_all, |seconds| ExpectedTime::Seconds(*seconds));
        self.points.sort_by(|a, b| length(b).total_cmp(&length(a)));
        self.length = length(&self.points[0]);
    }
}

/// Returns the total bytes in a point's arrays, if the layout is known without a run.
fn bytes(point: &Point) -> Option<u64> {
    let (target, gpus) = (point.target(), point.machine.topology.gpus);
    let arrays = point.workload.arrays(target.scale(), gpus).ok()?;
    let bytes = arrays.iter().map(|(array, _)| array.bytes).sum();
    (!point.workload.is_trace()).then_some(bytes)
}

/// A point with its recording and page placement, ready to run.
struct ReadyPoint {
    point: Point,
    recording: usize,
    source: Arc<PreparedProgram>,
    pages: Arc<PageTable>,
    /// Sampling demands, for a sampled point.
    demands: Option<Arc<KernelDemands>>,
}

/// Remaining work and the results so far.
struct Queue {
    /// Index of the first group not yet recorded.
    next: usize,
    /// True while a worker records a group.
    recording: bool,
    ready: VecDeque<ReadyPoint>,
    /// Unfinished points per group.
    left: Vec<usize>,
    results: Results,
    /// Total seconds and finished points, by recording.
    spent: BTreeMap<String, (f64, usize)>,
    /// Busy seconds of each finished point's own thread.
    each: BTreeMap<String, f64>,
    /// Store error, which ends the whole campaign.
    broken: Option<StoreError>,
}

/// Next task for a worker.
enum Task {
    Record(usize),
    Run(Box<ReadyPoint>),
}

struct Campaign<'a> {
    groups: Vec<RecordingGroup>,
    store: Option<&'a Store>,
    threads: usize,
    workers: usize,
    /// Threads without a point, free to join running points.
    spare: ThreadPool,
    known: BTreeMap<String, f64>,
    watcher: &'a dyn Watcher,
    stop: StopFlag,
    queue: Mutex<Queue>,
    changed: Condvar,
}

impl<'a> Campaign<'a> {
    fn new(
        groups: Vec<RecordingGroup>,
        store: Option<&'a Store>,
        (threads, waiting): (usize, usize),
        known: BTreeMap<String, f64>,
        watcher: &'a dyn Watcher,
        results: Results,
    ) -> Campaign<'a> {
        let queue = Queue {
            next: 0,
            recording: false,
            ready: VecDeque::new(),
            left: groups.iter().map(|group| group.points.len()).collect(),
            results,
            spent: BTreeMap::new(),
            each: BTreeMap::new(),
            broken: None,
        };
        let workers = threads.min(waiting).max(1);
        let (spare, changed) = (ThreadPool::new(threads.saturating_sub(workers)), Condvar::new());
        let (stop, queue) = (StopFlag::current(), Mutex::new(queue));
        Campaign { groups, store, threads, workers, spare, known, watcher, stop, queue, changed }
    }

    fn run(self) -> Result<Results, StoreError> {
        std::thread::scope(|scope| {
            for _ in 0..self.workers {
                scope.spawn(|| self.stop.during(|| self.work()));
            }
        });
        let queue = self.queue.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(error) = queue.broken {
            return Err(error);
        }
        if let (Some(store), false) = (self.store, queue.spent.is_empty()) {
            let mut costs = self.known;
            costs.extend(queue.spent.into_iter().map(|(name, (seconds, points))| (name, seconds / points as f64)));
            costs.extend(queue.each);
            store.save_costs(&costs)?;
        }
        Ok(queue.results)
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        while let Some(task) = self.task() {
            match task {
                Task::Record(group) => self.record(group),
                Task::Run(ready) => self.point(&ready),
            }
        }
        self.spare.add(1);
    }

    /// Returns the next task, or `None` if no more tasks will come.
    fn task(&self) -> Option<Task> {
        let mut queue = self.lock();
        loop {
            if queue.broken.is_some() || self.stop.is_set() {
                return None;
            }
            if let Some(ready) = queue.ready.pop_front() {
                return Some(Task::Run(Box::new(ready)));
            }
            if !queue.recording {
                let group = queue.next;
                if group == self.groups.len() {
                    return None;
                }
                queue.next += 1;
                queue.recording = true;
                return Some(Task::Record(group));
            }
            queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn record(&self, index: usize) {
        let group = &self.groups[index];
        let label = &group.points[0].workload.label;
        let what = format!("recording {label}");
        self.watcher.started(&what);
        let recorded = unbroken(label, || self.record_and_place(index));
        self.watcher.ended(&what);
        let mut queue = self.lock();
        queue.recording = false;
        match recorded {
            Ok(ready) => queue.ready.extend(ready),
            Err(failure) => {
                let message = failure.to_string();
                queue.left[index] = 0;
                queue.results.extend(group.points.iter().map(|point| (point.key().clone(), Err(message.clone()))));
                self.watcher.advanced(group.points.len(), self.time_left(&queue));
            }
        }
        drop(queue);
        self.changed.notify_all();
    }

    /// Records a group and returns its ready points. Pages are placed once per distinct placement key.
    fn record_and_place(&self, index: usize) -> Result<Vec<ReadyPoint>, PointError> {
        let group = &self.groups[index];
        let first = &group.points[0];
        let source = Arc::new(first.workload.record(first.target(), self.threads)?);
        let mut placed: Vec<(PlacementKey, Arc<PageTable>)> = Vec::new();
        let mut asked = DemandCache::default();
        let mut ready = Vec::new();
        for point in &group.points {
            let key = PlacementKey::of(point);
            let pages = match placed.iter().find(|(known, _)| *known == key) {
                Some((_, pages)) => Arc::clone(pages),
                None => {
                    let pages = place(&point.machine, &point.design, &*source.program)
                        .map_err(|error| PointError::Stream { label: source.label.clone(), error })?;
                    placed.push((key, Arc::clone(&pages)));
                    pages
                }
            };
            let demands = asked.of(point, &source)?;
            ready.push(ReadyPoint {
                point: point.clone(),
                recording: index,
                source: Arc::clone(&source),
                pages,
                demands,
            });
        }
        Ok(ready)
    }

    fn point(&self, ready: &ReadyPoint) {
        let point = &ready.point;
        let label = point.label();
        self.watcher.started(&label);
        let (began, busy) = (Instant::now(), Stopwatch::start());
        let result = self.outcome(ready);
        let (seconds, busy) = (began.elapsed().as_secs_f64(), busy.seconds());
        self.watcher.ended(&label);
        let mut queue = self.lock();
        queue.left[ready.recording] -= 1;
        match result {
            Ok(PointOutcome { result, made }) => {
                if made && result.is_ok() {
                    let spent = queue.spent.entry(self.groups[ready.recording].recording.clone()).or_default();
                    *spent = (spent.0 + seconds, spent.1 + 1);
                    queue.each.insert(point.run(), busy);
                }
                queue.results.insert(point.key().clone(), result);
            }
            Err(error) => _ = queue.broken.get_or_insert(error),
        }
        self.watcher.advanced(1, self.time_left(&queue));
        let broken = queue.broken.is_some();
        drop(queue);
        if broken {
            self.changed.notify_all();
        }
    }

    /// Returns a point's result: loaded if a different process stored a result meanwhile, otherwise simulated and
    /// saved.
    fn outcome(&self, ready: &ReadyPoint) -> Result<PointOutcome, StoreError> {
        let point = &ready.point;
        if let Some(store) = self.store
            && let Lookup::Result(outcome) = store.load(point.key())?
        {
            return Ok(PointOutcome { result: Ok(Arc::from(outcome)), made: false });
        }
        let made = unbroken(&point.label(), || self.make(ready));
        let outcome = match made {
            Ok(outcome) => outcome,
            Err(failure) => return Ok(PointOutcome { result: Err(failure.to_string()), made: true }),
        };
        if let Some(store) = self.store {
            store.save(point, &outcome)?;
        }
        Ok(PointOutcome { result: Ok(Arc::new(outcome)), made: true })
    }

    fn make(&self, ready: &ReadyPoint) -> Result<PointResult, PointError> {
        let ReadyPoint { point, source, pages, demands, .. } = ready;
        let damaged = |error| PointError::Stream { label: source.label.clone(), error };
        let outcome = match point.pass {
            Pass::Simulation => {
                let pages = Arc::clone(pages);
                let record = self.simulated(point, source, pages, demands.as_deref())?;
                PointResult::Simulation(Box::new(record))
            }
            Pass::Sharing => PointResult::Sharing(
                inter_gpu_sharing(&point.machine, &point.design, &*source.program, pages).map_err(damaged)?,
            ),
            Pass::Arrays => PointResult::Arrays(arrays_used(&*source.program).map_err(damaged)?),
        };
        point.workload.refuse_changes()?;
        Ok(outcome)
    }

    /// Returns a point's record. The simulation runs on one thread, and threads from `spare` join if they help.
    fn simulated(
        &self,
        point: &Point,
        source: &PreparedProgram,
        pages: Arc<PageTable>,
        demands: Option<&KernelDemands>,
    ) -> Result<RunRecord, PointError> {
        let (machine, program) = (Arc::clone(&point.machine), Arc::clone(&source.program));
        let spec = RunSpec { machine, design: (*point.design).clone(), program, pages: Some(pages), threads: 1 };
        let mut record = guarded(&spec, source, || match demands {
            Some(demands) => run_sampled(&spec, Some(demands), Some(&self.spare)),
            None => Ok(Simulation::new(&spec).spare(&self.spare).run()?.record),
        })?;
        name(&mut record, source, &point.machine);
        Ok(record)
    }

    /// Estimates the remaining time; `None` if no point of this run or a previous run gives a basis.
    fn time_left(&self, queue: &Queue) -> Option<Duration> {
        let (seconds, points) = queue.spent.values().fold((0.0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        let mean = (points > 0).then(|| seconds / points as f64);
        let mut left = 0.0;
        for (group, waiting) in self.groups.iter().zip(&queue.left).filter(|(_, waiting)| **waiting > 0) {
            let measured = queue.spent.get(&group.recording).map(|(seconds, points)| seconds / *points as f64);
            let each = measured.or_else(|| self.known.get(&group.recording).copied()).or(mean)?;
            left += each * *waiting as f64;
        }
        Duration::try_from_secs_f64(left / self.workers as f64).ok()
    }
}

/// Result for a point, and a flag for new results.
struct PointOutcome {
    result: Result<Arc<PointResult>, String>,
    /// True if this process ran the point.
    made: bool,
}

/// Key of a page placement: everything besides the program that decides page locations.
#[derive(Clone, Copy, PartialEq, Eq)]
struct PlacementKey {
    placement: Placement,
    scheduling: Scheduling,
    modules: usize,
    page_bytes: u64,
    lines_together: u64,
}

impl PlacementKey {
    fn of(point: &Point) -> PlacementKey {
        PlacementKey {
            placement: point.design.placement,
            scheduling: point.design.scheduling,
            modules: point.machine.topology.modules(),
            page_bytes: point.machine.page_bytes,
            lines_together: point.design.lines_together(&point.machine),
        }
    }
}

/// Optional observations of a run. They combine freely, and change no time.
#[derive(Clone, Default)]
pub struct Observers {
    /// Lines carry versions, and every load is checked against the memory model.
    pub check: bool,
    /// Load latencies are measured, by serving component and path segment.
    pub latency: bool,
    /// Link, module and GPU activity over time, in windows of the design's sample time.
    pub timeline: bool,
    /// The actions at each kernel boundary.
    pub boundaries: bool,
    /// Observers that a user has written.
    pub own: Vec<SharedObserver>,
}

/// Runs `source` on `machine` under `design`. A broken simulator invariant is returned as an error, and the remaining
/// runs continue.
///
/// # Errors
/// Returns an error if the run gives no result.
pub fn run_one(
    machine: &Arc<MachineConfig>,
    design: &DesignConfig,
    source: &PreparedProgram,
    threads: usize,
) -> Result<RunRecord, PointError> {
    Ok(run_one_observed(machine, design, source, threads, Observers::default())?.record)
}

/// Like [`run_one`], with these observations.
///
/// # Errors
/// Returns an error if the run gives no result.
pub fn run_one_observed(
    machine: &Arc<MachineConfig>,
    design: &DesignConfig,
    source: &PreparedProgram,
    threads: usize,
    observers: Observers,
) -> Result<Observed, PointError> {
    let spec = spec_of(machine, design, source, threads);
    let mut simulation = Simulation::new(&spec);
    if observers.check {
        simulation = simulation.check();
    }
    if observers.latency {
        simulation = simulation.latency();
    }
    if observers.timeline {
        simulation = simulation.timeline(machine.sm.clock.span(design.links.sample_time().into()));
    }
    if observers.boundaries {
        simulation = simulation.boundaries();
    }
    simulation = observers.own.into_iter().fold(simulation, Simulation::observe);
    let mut observed = guarded(&spec, source, || simulation.run())?;
    name(&mut observed.record, source, machine);
    Ok(observed)
}

/// Like [`run_one`], but samples the run if a sample is possible.
///
/// # Errors
/// Returns an error if the run gives no result.
pub fn run_one_sampled(
    machine: &Arc<MachineConfig>,
    design: &DesignConfig,
    source: &PreparedProgram,
    threads: usize,
) -> Result<RunRecord, PointError> {
    let spec = spec_of(machine, design, source, threads);
    let mut record = guarded(&spec, source, || run_sampled(&spec, None, None))?;
    name(&mut record, source, machine);
    Ok(record)
}

fn spec_of(machine: &Arc<MachineConfig>, design: &DesignConfig, source: &PreparedProgram, threads: usize) -> RunSpec {
    let program = Arc::clone(&source.program);
    RunSpec { machine: Arc::clone(machine), design: design.clone(), program, pages: None, threads }
}

/// Returns the result of `simulate`; errors and panics are labelled with the run.
fn guarded<T>(
    spec: &RunSpec,
    source: &PreparedProgram,
    simulate: impl FnOnce() -> Result<T, RunError>,
) -> Result<T, PointError> {
    let label = format!("{} on {} under {}", source.label, spec.machine.name, spec.design.name);
    let failed = |error| PointError::Run { label: label.clone(), error: Box::new(error) };
    unbroken(&label, || simulate().map_err(failed))
}

/// Gives a record the user's name for its program, and adds the notes.
fn name(record: &mut RunRecord, source: &PreparedProgram, machine: &MachineConfig) {
    record.workload.clone_from(&source.label);
    record.notes.extend(record.sampling_note().map(|note| format!("{}: {note}", source.label)));
    record.notes.extend(source.too_large(machine));
    record.notes.extend(source.notes.iter().cloned());
}

/// Returns the result of `work`, or an error if it panics.
///
/// # Errors
/// Returns the errors of `work`, and [`PointError::Broken`] for a panic.
pub fn unbroken<T, E: From<PointError>>(label: &str, work: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let message = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message").to_owned();
        Err(PointError::Broken { label: label.to_owned(), message }.into())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_take_longest_comes_first() {
        let mut lengths = [
            ExpectedTime::Seconds(2.0),
            ExpectedTime::New(Some(10)),
            ExpectedTime::Seconds(30.0),
            ExpectedTime::New(None),
            ExpectedTime::New(Some(4000)),
        ];
        lengths.sort_by(|a, b| b.total_cmp(a));
        let sorted = [
            ExpectedTime::New(None),
            ExpectedTime::New(Some(4000)),
            ExpectedTime::New(Some(10)),
            ExpectedTime::Seconds(30.0),
            ExpectedTime::Seconds(2.0),
        ];
        assert_eq!(lengths, sorted);
    }
}
