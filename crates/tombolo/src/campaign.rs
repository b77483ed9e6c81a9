//! Many runs side by side: every workload recorded and placed once and shared by all designs.
//!
//! Workers take runs as long as there are any and record the next workload otherwise, one at a time, so that
//! no more recordings are held than have runs under way, and one. What a run gives does not depend on who
//! runs it, nor when.

use crate::failure::Failure;
use crate::hardware::Hardware;
use crate::progress::Progress;
use crate::source::{Source, Target, WorkloadChoice};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use tombolo_machine::DesignConfig;
use tombolo_machine::design::{CtaScheduling, Placement};
use tombolo_model::page_table::PageTable;
use tombolo_system::{RunRecord, RunSpec, place, run};

/// The result of each run, by workload, then by design.
pub(crate) type Results = Vec<Vec<Result<RunRecord, String>>>;

/// Runs every workload under every design with up to `threads` threads.
pub(crate) fn run_all(hardware: &Hardware, workloads: &[WorkloadChoice], threads: usize) -> Results {
    let runs = workloads.len() * hardware.designs.len();
    let workers = threads.min(runs).max(1);
    let campaign = Campaign {
        hardware,
        workloads,
        threads,
        threads_per_run: threads / workers,
        progress: Progress::new(runs),
        queue: Mutex::new(Queue {
            next: 0,
            recording: false,
            ready: VecDeque::new(),
            results: workloads.iter().map(|_| hardware.designs.iter().map(|_| None).collect()).collect(),
        }),
        changed: Condvar::new(),
    };
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| campaign.work());
        }
    });
    let queue = campaign.queue.into_inner().unwrap_or_else(PoisonError::into_inner);
    let done = |result: Option<_>| result.expect("workers leave when every run has its result");
    queue.results.into_iter().map(|row| row.into_iter().map(done).collect()).collect()
}

/// A recorded workload under one design.
struct Ready {
    workload: usize,
    design: usize,
    source: Arc<Source>,
    pages: Arc<PageTable>,
}

/// What is left to do, and what came of the rest.
struct Queue {
    /// First workload not yet recorded.
    next: usize,
    /// Whether one is being recorded.
    recording: bool,
    ready: VecDeque<Ready>,
    results: Vec<Vec<Option<Result<RunRecord, String>>>>,
}

/// What a worker does next.
enum Task {
    Record(usize),
    Run(Ready),
}

struct Campaign<'a> {
    hardware: &'a Hardware,
    workloads: &'a [WorkloadChoice],
    threads: usize,
    threads_per_run: usize,
    progress: Progress,
    queue: Mutex<Queue>,
    changed: Condvar,
}

impl Campaign<'_> {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        while let Some(task) = self.task() {
            match task {
                Task::Record(workload) => self.record(workload),
                Task::Run(ready) => self.run(&ready),
            }
        }
    }

    /// The next task; `None` when there will be no more.
    fn task(&self) -> Option<Task> {
        let mut queue = self.lock();
        loop {
            if let Some(ready) = queue.ready.pop_front() {
                return Some(Task::Run(ready));
            }
            if !queue.recording {
                let workload = queue.next;
                if workload == self.workloads.len() {
                    return None;
                }
                queue.next += 1;
                queue.recording = true;
                return Some(Task::Record(workload));
            }
            queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn record(&self, workload: usize) {
        let label = &self.workloads[workload].label;
        let recorded =
            self.progress.during(&format!("recording {label}"), || unbroken(label, || self.record_and_place(workload)));
        let mut queue = self.lock();
        queue.recording = false;
        match recorded {
            Ok(ready) => queue.ready.extend(ready),
            Err(failure) => {
                let message = failure.to_string();
                queue.results[workload].fill_with(|| Some(Err(message.clone())));
                self.progress.advance(self.hardware.designs.len());
            }
        }
        drop(queue);
        self.changed.notify_all();
    }

    /// The runs of a workload. Its pages are placed once for each way of placing.
    fn record_and_place(&self, workload: usize) -> Result<Vec<Ready>, Failure> {
        let Hardware { machine, designs } = self.hardware;
        let source = Arc::new(self.workloads[workload].record(Target::of(machine), self.threads)?);
        let mut placed: Vec<((Placement, CtaScheduling), Arc<PageTable>)> = Vec::new();
        let mut runs = Vec::new();
        for (index, design) in designs.iter().enumerate() {
            let way = (design.placement, design.cta_scheduling);
            let pages = match placed.iter().find(|(known, _)| *known == way) {
                Some((_, pages)) => Arc::clone(pages),
                None => {
                    let pages = place(machine, design, &*source.program)
                        .map_err(|error| Failure::Stream { label: source.label.clone(), error })?;
                    placed.push((way, Arc::clone(&pages)));
                    pages
                }
            };
            runs.push(Ready { workload, design: index, source: Arc::clone(&source), pages });
        }
        Ok(runs)
    }

    fn run(&self, ready: &Ready) {
        let design = &self.hardware.designs[ready.design];
        let label = format!("{} under {}", ready.source.label, design.name);
        let result = self.progress.during(&label, || {
            let pages = Some(Arc::clone(&ready.pages));
            run_one(self.hardware, design, &ready.source, pages, self.threads_per_run)
        });
        self.progress.advance(1);
        self.lock().results[ready.workload][ready.design] = Some(result.map_err(|failure| failure.to_string()));
    }
}

/// Runs `source` under `design`. A broken invariant of the simulator is an error here, so that other runs go on.
pub(crate) fn run_one(
    hardware: &Hardware,
    design: &DesignConfig,
    source: &Source,
    pages: Option<Arc<PageTable>>,
    threads: usize,
) -> Result<RunRecord, Failure> {
    let machine = Arc::clone(&hardware.machine);
    let label = format!("{} on {} under {}", source.label, machine.name, design.name);
    let spec = RunSpec { machine, design: design.clone(), program: Arc::clone(&source.program), pages, threads };
    let mut record = unbroken(&label, || run(&spec).map_err(|error| Failure::Run { label: label.clone(), error }))?;
    record.workload.clone_from(&source.label);
    record.notes.extend(source.notes.iter().cloned());
    Ok(record)
}

/// The result of `work`, or a failure where it panics.
pub(crate) fn unbroken<T>(label: &str, work: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let message = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message").to_owned();
        Err(Failure::Broken { label: label.to_owned(), message })
    })
}
