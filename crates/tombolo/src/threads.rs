//! Thread count, and parallel execution for work items. No result depends on the number.

use crate::failure::CommandFailure;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use tombolo_types::StopFlag;

/// Command-line flag for the number of threads.
#[derive(Clone, Copy, clap::Args)]
pub(crate) struct ThreadsArgument {
    /// Threads; results do not depend on the number [default: the number of cores]
    #[arg(long = "threads", value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024), allow_negative_numbers = true)]
    threads: Option<u16>,
}

impl ThreadsArgument {
    /// Returns the requested number of threads, or by default the number of available cores.
    pub(crate) fn count(self) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        self.threads.map_or_else(cores, usize::from)
    }
}

/// Runs `work` on each item with up to `threads` threads, one item per thread at a time. Returns the results in item
/// order. The last item starts first, because tables list large items after small ones. After an error, no new item
/// starts. With several errors, the reported error may depend on the threads. Fails if the calling thread's [`StopFlag`]
/// is set.
pub(crate) fn each<T: Sync, R: Send>(
    items: &[T],
    threads: usize,
    work: impl Fn(&T) -> Result<R, CommandFailure> + Sync,
) -> Result<Vec<R>, CommandFailure> {
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<Option<R>>> = Mutex::new(items.iter().map(|_| None).collect());
    let error = OnceLock::new();
    let stop = StopFlag::current();
    let worker = || {
        while !stop.is_set()
            && error.get().is_none()
            && let Some(index) = items.len().checked_sub(next.fetch_add(1, Ordering::Relaxed) + 1)
        {
            match work(&items[index]) {
                Ok(result) => done.lock().unwrap_or_else(PoisonError::into_inner)[index] = Some(result),
                // An error from a different thread may already be set.
                Err(failure) => _ = error.set(failure),
            }
        }
    };
    std::thread::scope(|scope| {
        (1..threads.min(items.len())).for_each(|_| _ = scope.spawn(|| stop.during(worker)));
        worker();
    });
    if let Some(failure) = error.into_inner() {
        return Err(failure);
    }
    if stop.is_set() {
        return Err(CommandFailure::Stopped);
    }
    let done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(done.into_iter().map(|result| result.expect("every item was taken by a worker")).collect())
}
