//! How many threads to use, and work for them. No result depends on it.

use crate::failure::Failure;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

/// The flag.
#[derive(Clone, Copy, clap::Args)]
pub(crate) struct ThreadsArgument {
    /// Threads; results do not depend on it [default: as many as there are cores]
    #[arg(long = "threads", value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024), allow_negative_numbers = true)]
    threads: Option<u16>,
}

impl ThreadsArgument {
    /// As asked, or one a core.
    pub(crate) fn count(self) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        self.threads.map_or_else(cores, usize::from)
    }
}

/// What `work` makes of each item, in the order of the items, with up to `threads` threads: an item each. The last item
/// begins first, for tables put what is large behind what is small. After an error nothing more is begun;
/// which of several is told may depend on the threads.
pub(crate) fn each<T: Sync, R: Send>(
    items: &[T],
    threads: usize,
    work: impl Fn(&T) -> Result<R, Failure> + Sync,
) -> Result<Vec<R>, Failure> {
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<Option<R>>> = Mutex::new(items.iter().map(|_| None).collect());
    let error = OnceLock::new();
    let worker = || {
        while error.get().is_none()
            && let Some(index) = items.len().checked_sub(next.fetch_add(1, Ordering::Relaxed) + 1)
        {
            match work(&items[index]) {
                Ok(result) => done.lock().unwrap_or_else(PoisonError::into_inner)[index] = Some(result),
                // Another thread's may have come first.
                Err(failure) => _ = error.set(failure),
            }
        }
    };
    std::thread::scope(|scope| {
        (1..threads.min(items.len())).for_each(|_| _ = scope.spawn(worker));
        worker();
    });
    if let Some(failure) = error.into_inner() {
        return Err(failure);
    }
    let done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(done.into_iter().map(|result| result.expect("every item was taken by a worker")).collect())
}
