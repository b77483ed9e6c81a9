//! The windows of a run on several threads.
//!
//! Each partition with an event in the window is claimed by one thread: its own thread by preference, whose
//! cache still holds it, or one that has run out of partitions of its own. Who claims it changes nothing in
//! what it does. The last thread to finish decides on the next window.

use crate::barrier::{Barrier, Line};
use crate::engine::window_end;
use crate::event::Event;
use crate::exchange::Exchange;
use crate::lane::Lane;
use crate::partition::{Map, Others, Outbox, Partition};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread;
use tombolo_types::Ps;

/// The end of a window that never begins: the run is over.
const OVER: u64 = 0;

/// What the threads of a run share.
struct Crew<'a, P: Partition> {
    map: Map<'a>,
    /// The partitions. Locked only to claim one, by whoever finds it free: no thread ever waits for one.
    seats: Vec<Mutex<Seat<'a, P>>>,
    /// Time of each partition's first event that no thread has set out to handle, in its queue or in its
    /// mail.
    due: Vec<AtomicU64>,
    exchange: Exchange<P::Message>,
    /// End of the present window, or `OVER`.
    end: Line<AtomicU64>,
    windows: AtomicU64,
    /// The panic of the first partition, by index, of those that panicked in the present window.
    panic: Mutex<Option<(usize, Box<dyn Any + Send>)>>,
    barrier: Barrier,
}

/// A partition with its lane.
struct Seat<'a, P: Partition> {
    partition: &'a mut P,
    lane: &'a mut Lane<P::Message>,
}

/// Runs all partitions on up to `threads` threads until no event is left; returns the number of windows and
/// of threads.
pub(crate) fn run<P: Partition>(
    partitions: &mut [P],
    lanes: &mut [Lane<P::Message>],
    map: Map<'_>,
    threads: usize,
) -> (u64, usize) {
    let count = lanes.len();
    let due = lanes.iter().map(|lane| AtomicU64::new(lane.due().0)).collect();
    let seats = partitions.iter_mut().zip(lanes).map(|(partition, lane)| Mutex::new(Seat { partition, lane }));
    let crew = Crew {
        map,
        seats: seats.collect(),
        due,
        exchange: Exchange::new(count),
        end: Line(AtomicU64::new(OVER)),
        windows: AtomicU64::new(0),
        panic: Mutex::new(None),
        barrier: Barrier::new(threads),
    };
    let parties = thread::scope(|scope| {
        let crew = &crew;
        let spawn = |&worker: &usize| thread::Builder::new().spawn_scoped(scope, move || crew.work(worker)).is_ok();
        // Where the host refuses a thread, the run goes on with fewer.
        let parties = 1 + (1..threads).take_while(spawn).count();
        crew.plan();
        crew.barrier.open(parties);
        crew.work(0);
        parties
    });
    if let Some((_, panic)) = crew.panic.into_inner().unwrap_or_else(PoisonError::into_inner) {
        resume_unwind(panic);
    }
    (crew.windows.into_inner(), parties)
}

impl<'a, P: Partition> Crew<'a, P> {
    /// One thread's part of the run.
    fn work(&self, worker: usize) {
        let order = visiting_order(worker, self.barrier.wait_to_open(), self.seats.len());
        let mut spare = Vec::new();
        loop {
            let end = self.end.0.load(Ordering::Relaxed);
            if end == OVER {
                return;
            }
            for &index in &order {
                let Some(mut seat) = self.claim(index, end) else { continue };
                let window = AssertUnwindSafe(|| self.run_window(index, &mut seat, Ps(end), &mut spare));
                if let Err(panic) = catch_unwind(window) {
                    self.record(index, panic);
                }
            }
            self.barrier.meet(|| self.plan());
        }
    }

    /// Takes partition `index` if it has something to do before `end` and no thread has begun with it.
    fn claim(&self, index: usize, end: u64) -> Option<MutexGuard<'_, Seat<'a, P>>> {
        let has_work = || self.due[index].load(Ordering::Relaxed) < end;
        if !has_work() {
            return None;
        }
        let seat = match self.seats[index].try_lock() {
            Ok(seat) => seat,
            Err(TryLockError::WouldBlock) => return None,
            // A panic is caught before the seat is given back.
            Err(TryLockError::Poisoned(seat)) => seat.into_inner(),
        };
        // Another thread may have been through with it since.
        has_work().then_some(seat)
    }

    /// Takes a partition through the present window.
    fn run_window(&self, index: usize, seat: &mut Seat<'a, P>, end: Ps, spare: &mut Vec<Event<P::Message>>) {
        // From here on others see a partition without work. In this order: whoever leaves mail sets `due`
        // after it, so mail whose time this erases is collected below.
        self.due[index].swap(Ps::NEVER.0, Ordering::AcqRel);
        let Seat { partition, lane } = seat;
        self.exchange.collect(index, spare, |event| lane.queue.push(event));
        let mut outbox =
            Outbox { now: Ps::ZERO, partition: index as u16, lane, map: self.map, others: Others::Parcels };
        outbox.run(*partition, end);
        lane.dispatch(|to, parcel| {
            self.exchange.put(index, to, &mut parcel.events);
            self.due[to].fetch_min(parcel.earliest.0, Ordering::AcqRel);
        });
        self.due[index].fetch_min(lane.due().0, Ordering::AcqRel);
    }

    /// Decides on the next window, while no other thread runs.
    fn plan(&self) {
        let failed = self.panic.lock().unwrap_or_else(PoisonError::into_inner).is_some();
        let start = self.due.iter().map(|due| due.load(Ordering::Relaxed)).min().unwrap_or(Ps::NEVER.0);
        let over = failed || start == Ps::NEVER.0;
        let end = if over { OVER } else { window_end(Ps(start), self.map, self.seats.len()).0 };
        self.windows.fetch_add(u64::from(!over), Ordering::Relaxed);
        self.end.0.store(end, Ordering::Relaxed);
    }

    /// Keeps the panic of the first partition: the one that a run on a single thread ends with.
    fn record(&self, index: usize, panic: Box<dyn Any + Send>) {
        let mut first = self.panic.lock().unwrap_or_else(PoisonError::into_inner);
        if first.as_ref().is_none_or(|&(other, _)| index < other) {
            *first = Some((index, panic));
        }
    }
}

/// The order in which a thread looks for work: first its own share of the partitions, then those of the
/// others from behind, where their owners come last.
fn visiting_order(worker: usize, workers: usize, partitions: usize) -> Vec<usize> {
    let (begin, end) = (worker * partitions / workers, (worker + 1) * partitions / workers);
    (begin..end).chain((0..begin).rev()).chain((end..partitions).rev()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_thread_visits_every_partition_and_begins_with_its_own() {
        let orders: Vec<_> = (0..3).map(|worker| visiting_order(worker, 3, 8)).collect();
        assert_eq!(orders[0], [0, 1, 7, 6, 5, 4, 3, 2]);
        assert_eq!(orders[1], [2, 3, 4, 1, 0, 7, 6, 5]);
        assert_eq!(orders[2], [5, 6, 7, 4, 3, 2, 1, 0]);
    }
}
