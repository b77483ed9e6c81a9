//! Measures the processor time used by a thread.

use std::time::Duration;

/// Stopwatch for the starting thread.
pub(crate) struct Stopwatch(Duration);

impl Stopwatch {
    pub(crate) fn start() -> Stopwatch {
        Stopwatch(now())
    }

    /// Seconds of processor time used by this thread since the start. Time while different threads held the core does
    /// not count.
    pub(crate) fn seconds(&self) -> f64 {
        now().saturating_sub(self.0).as_secs_f64()
    }
}

/// Returns the processor time used by this thread.
#[cfg(unix)]
fn now() -> Duration {
    use rustix::time::{ClockId, clock_gettime};
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}

/// Returns the wall-clock time since a fixed moment, for systems without a per-thread processor clock.
#[cfg(not(unix))]
fn now() -> Duration {
    use std::sync::OnceLock;
    use std::time::Instant;
    static BEGAN: OnceLock<Instant> = OnceLock::new();
    BEGAN.get_or_init(Instant::now).elapsed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_thread_that_sleeps_is_not_busy() {
        let watch = Stopwatch::start();
        std::thread::sleep(Duration::from_millis(50));
        assert!(watch.seconds() < 0.04, "{} s", watch.seconds());
        let mut sum = 0_u64;
        while watch.seconds() < 0.002 {
            sum = std::hint::black_box(sum + 1);
        }
        assert!(sum > 0);
    }
}
