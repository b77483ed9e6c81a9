//! The barrier at the end of a window: threads spin for a moment, then yield, and never park.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;

/// Number of polls before a thread begins to yield, if each thread has its own core. The polls last some microseconds,
/// the imbalance of a window with some hundred events. Source: assumed; a pause takes 10 to 50 ns.
const SPINS: u32 = 256;

/// A barrier at which the last thread to arrive runs a closure before any thread continues.
///
/// All memory effects before a thread's arrival are visible to every thread after the barrier.
pub(crate) struct Barrier {
    /// Number of participating threads. Zero until [`Barrier::open`].
    parties: AtomicUsize,
    spins: u32,
    arrived: CachePadded<AtomicUsize>,
    /// Number of times the barrier has let threads pass.
    generation: CachePadded<AtomicU64>,
}

/// A value on a separate cache line: waiting for the value does not slow down any neighbours.
#[repr(align(128))]
pub(crate) struct CachePadded<T>(pub(crate) T);

impl Barrier {
    /// A barrier for at most `threads` threads, closed for all until [`Barrier::open`].
    pub(crate) fn new(threads: usize) -> Barrier {
        // With more threads than cores, a spinning thread prevents the awaited thread from running.
        let cores = thread::available_parallelism().map_or(1, usize::from);
        Barrier {
            parties: AtomicUsize::new(0),
            spins: if threads > cores { 0 } else { SPINS },
            arrived: CachePadded(AtomicUsize::new(0)),
            generation: CachePadded(AtomicU64::new(0)),
        }
    }

    /// Lets `parties` threads begin.
    pub(crate) fn open(&self, parties: usize) {
        self.parties.store(parties, Ordering::Relaxed);
        self.generation.0.store(1, Ordering::Release);
    }

    /// Waits until the barrier is open; returns the participating thread count.
    pub(crate) fn wait_to_open(&self) -> usize {
        self.wait_for(1);
        self.parties.load(Ordering::Relaxed)
    }

    /// Waits for all participating threads; the last to arrive calls `last` while the rest wait.
    pub(crate) fn meet(&self, last: impl FnOnce()) {
        // The generation cannot advance before this thread has arrived.
        let generation = self.generation.0.load(Ordering::Relaxed);
        let arrived = self.arrived.0.fetch_add(1, Ordering::AcqRel) + 1;
        if arrived < self.parties.load(Ordering::Relaxed) {
            return self.wait_for(generation + 1);
        }
        self.arrived.0.store(0, Ordering::Relaxed);
        last();
        self.generation.0.store(generation + 1, Ordering::Release);
    }

    fn wait_for(&self, generation: u64) {
        let mut spins = self.spins;
        while self.generation.0.load(Ordering::Acquire) < generation {
            if spins > 0 {
                spins -= 1;
                spin_loop();
            } else {
                thread::yield_now();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Number of rounds with an error. A panic in this function would leave the remaining threads waiting forever.
    fn faults(threads: usize) -> usize {
        let barrier = Barrier::new(threads);
        let [entered, rounds, faults] = [const { AtomicUsize::new(0) }; 3];
        let expect = |holds: bool| {
            faults.fetch_add(usize::from(!holds), Ordering::Relaxed);
        };
        thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    expect(barrier.wait_to_open() == threads);
                    for round in 0..500 {
                        entered.fetch_add(1, Ordering::Relaxed);
                        barrier.meet(|| {
                            expect(entered.swap(0, Ordering::Relaxed) == threads);
                            rounds.fetch_add(1, Ordering::Relaxed);
                        });
                        expect(rounds.load(Ordering::Relaxed) == round + 1);
                        barrier.meet(|| ());
                    }
                });
            }
            barrier.open(threads);
        });
        expect(rounds.into_inner() == 500);
        faults.into_inner()
    }

    #[test]
    fn the_last_thread_acts_alone_and_all_see_it() {
        for threads in [1, 2, 5] {
            assert_eq!(faults(threads), 0, "{threads} threads");
        }
    }
}
