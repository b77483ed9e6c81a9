//! Thread count for a run: all threads that help, borrowed from a pool shared between concurrent runs.

use crate::balance::{self, WindowLoads};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Minimum presence on a core, in percent of the time, for a run to keep more than one thread. Below this limit,
/// threads wait for each other at the end of each window while a foreign process occupies the core. Source: assumed.
const PRESENT: u64 = 90;

/// Initial number of reviews on half the threads after a run has found its cores occupied. The number doubles each
/// further time, up to [`MAX_REVIEWS_SHARED`]. Source: assumed.
const REVIEWS_SHARED: u64 = 4;
/// Upper limit for these reviews. Source: assumed; half a million windows, about a second of a run.
const MAX_REVIEWS_SHARED: u64 = 1024;

/// Pool with threads unused by any run at present. A run borrows helpful threads at intervals and returns all other
/// threads.
#[derive(Debug, Default)]
pub struct ThreadPool(AtomicUsize);

impl ThreadPool {
    /// A pool with `threads` threads.
    pub fn new(threads: usize) -> ThreadPool {
        ThreadPool(AtomicUsize::new(threads))
    }

    /// Adds threads to the pool.
    pub fn add(&self, threads: usize) {
        self.0.fetch_add(threads, Ordering::Relaxed);
    }

    /// Number of threads now in the pool.
    pub fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// Removes up to `most` threads; returns the number removed.
    fn take(&self, most: usize) -> usize {
        let rest = |spare: usize| Some(spare - spare.min(most));
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, rest).map_or(0, |spare| spare.min(most))
    }
}

/// Threads of one run. All except the calling thread return to the pool when the run ends.
pub(crate) struct RunThreads<'a> {
    spare: &'a ThreadPool,
    /// Number of threads in the run, including the calling thread.
    threads: usize,
    /// Maximum thread count for the run: limited by the partitions, and by the host.
    limit: usize,
    /// Events handled by each partition up to the last review; empty before the first.
    events: Vec<u64>,
    /// Windows before the last review.
    windows: u64,
    /// Events in each partition between the last two reviews; empty before the first.
    loads: Vec<u64>,
    /// Maximum thread count while foreign processes occupy the cores.
    share: usize,
    /// Number of further reviews for which this maximum applies.
    shared: u64,
    /// Number of reviews for which the maximum will apply when the cores are found occupied again.
    shared_next: u64,
    /// Set if the run keeps all threads regardless of the host's load.
    ignores_load: bool,
}

impl<'a> RunThreads<'a> {
    /// The calling thread, and up to `more` threads from the pool. `events`: number handled by each partition before.
    pub(crate) fn new(spare: &'a ThreadPool, more: usize, events: Vec<u64>, ignores_load: bool) -> RunThreads<'a> {
        let limit = events.len();
        let threads = 1 + spare.take(more.min(limit - 1));
        RunThreads {
            spare,
            threads,
            limit,
            events,
            windows: 0,
            loads: Vec::new(),
            share: limit,
            shared: 0,
            shared_next: REVIEWS_SHARED,
            ignores_load,
        }
    }

    /// Current number of threads in the run.
    pub(crate) fn threads(&self) -> usize {
        self.threads
    }

    /// True if the run keeps its threads even on a busy host.
    pub(crate) fn ignores_load(&self) -> bool {
        self.ignores_load
    }

    /// True if a review may find another number of threads better.
    pub(crate) fn may_change(&self) -> bool {
        self.threads > 1 || self.limit > 1 && self.spare.count() > 0
    }

    /// Notes that the host has refused all but `threads` threads.
    pub(crate) fn refused_all_but(&mut self, threads: usize) {
        self.limit = threads;
        self.change(threads);
    }

    /// Reviews the partitions' work: `events` per partition and `windows` in total, since the run began. `presence`:
    /// percentage of the time since the last review during which the run's threads were on a core. Returns true if the
    /// number of threads changes.
    pub(crate) fn review(&mut self, events: Vec<u64>, windows: u64, groups: &[u16], presence: u64) -> bool {
        let most = (self.threads + self.spare.count()).min(self.limit_by(presence));
        self.loads = events.iter().zip(&self.events).map(|(now, then)| now - then).collect();
        let work = WindowLoads { loads: &self.loads, groups, windows: windows - self.windows };
        let wanted = balance::fewest(work, most);
        (self.events, self.windows) = (events, windows);
        let before = self.threads;
        self.change(wanted);
        self.threads != before
    }

    /// Maximum number of threads until the next review, given the load from other processes on the cores.
    fn limit_by(&mut self, presence: u64) -> usize {
        let taken = presence < PRESENT && !self.ignores_load;
        if taken && self.threads > 1 {
            (self.share, self.shared) = (self.threads / 2, self.shared_next);
            self.shared_next = (2 * self.shared_next).min(MAX_REVIEWS_SHARED);
            return self.share;
        }
        if self.shared == 0 {
            if self.threads > 1 {
                self.shared_next = (self.shared_next / 2).max(REVIEWS_SHARED);
            }
            return self.limit;
        }
        // A thread without a full core to itself would find no second core.
        self.shared -= u64::from(!taken);
        self.share
    }

    /// Initial thread for each partition, when `threads` threads begin.
    pub(crate) fn owners(&self, groups: &[u16], threads: usize) -> Vec<u16> {
        if self.loads.is_empty() {
            return balance::initial_owners(groups, threads);
        }
        balance::best(&self.loads, groups, threads)
    }

    /// Thread for each partition, after the last review.
    pub(crate) fn rebalance(&self, groups: &[u16], owners: Vec<u16>) -> Vec<u16> {
        balance::rebalance(&self.loads, groups, owners, self.threads)
    }

    fn change(&mut self, wanted: usize) {
        match wanted.checked_sub(self.threads) {
            Some(more) => self.threads += self.spare.take(more),
            None => {
                self.spare.add(self.threads - wanted);
                self.threads = wanted;
            }
        }
    }
}

impl Drop for RunThreads<'_> {
    fn drop(&mut self) {
        self.spare.add(self.threads - 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GROUPS: [u16; 4] = [0, 1, 2, 3];

    #[test]
    fn threads_without_work_go_back_and_come_again() {
        let spare = ThreadPool::new(3);
        let mut run_threads = RunThreads::new(&spare, 3, vec![0; 4], false);
        assert_eq!((run_threads.threads(), spare.count()), (4, 0));
        assert!(run_threads.review(vec![9000, 0, 0, 0], 100, &GROUPS, 100), "one partition alone has work");
        assert_eq!((run_threads.threads(), spare.count()), (1, 3));
        assert!(run_threads.review(vec![18_000, 9000, 0, 0], 200, &GROUPS, 100));
        assert_eq!((run_threads.threads(), spare.count()), (2, 2));
        assert!(run_threads.review(vec![27_000, 18_000, 9000, 9000], 300, &GROUPS, 100));
        assert_eq!((run_threads.threads(), spare.count()), (4, 0));
        drop(run_threads);
        assert_eq!(spare.count(), 3);
    }

    /// Thread count after each review in a run that starts on `threads`. Four partitions have equal loads; `presences`
    /// are given per review.
    fn threads_of(threads: usize, presences: &[u64]) -> Vec<usize> {
        let spare = ThreadPool::new(threads - 1);
        let mut run_threads = RunThreads::new(&spare, threads - 1, vec![0; 4], false);
        let mut after = Vec::new();
        for (at, presence) in presences.iter().enumerate() {
            let periods = at as u64 + 1;
            run_threads.review(vec![9000 * periods; 4], 100 * periods, &GROUPS, *presence);
            after.push(run_threads.threads());
        }
        after
    }

    #[test]
    fn a_run_whose_cores_are_taken_goes_on_alone_and_comes_back_later_each_time() {
        assert_eq!(threads_of(2, &[100, 100]), [2, 2]);
        let (taken, free) = (30, 100);
        // Four reviews on a free core, and the review that ends the restriction.
        let first = [vec![taken], vec![free; 5]].concat();
        assert_eq!(threads_of(2, &first), [1, 1, 1, 1, 1, 2]);
        let second = [first, vec![taken], vec![free; 9]].concat();
        assert_eq!(threads_of(2, &second)[6..], [1, 1, 1, 1, 1, 1, 1, 1, 1, 2]);
        let shared = [vec![taken; 20], vec![free; 5]].concat();
        assert_eq!(threads_of(2, &shared)[18..], [1, 1, 1, 1, 1, 1, 2], "the run waits for a core to itself");
        let presences = [vec![taken], vec![free; 4]].concat();
        assert_eq!(threads_of(4, &presences), [2, 2, 2, 2, 2], "half of the threads have cores");
    }

    #[test]
    fn runs_share_a_pool() {
        let spare = ThreadPool::new(2);
        let first = RunThreads::new(&spare, 1, vec![0; 4], false);
        let second = RunThreads::new(&spare, 3, vec![0; 4], false);
        assert_eq!((first.threads(), second.threads(), spare.count()), (2, 2, 0));
        assert!(first.may_change(), "it may return its thread");
        drop(first);
        assert_eq!(spare.count(), 1);
    }

    #[test]
    fn more_threads_than_partitions_are_not_taken() {
        let spare = ThreadPool::new(7);
        assert_eq!(RunThreads::new(&spare, 7, vec![0; 4], false).threads(), 4);
        let alone = RunThreads::new(&spare, 7, vec![0], false);
        assert_eq!((alone.threads(), alone.may_change()), (1, false));
    }
}
