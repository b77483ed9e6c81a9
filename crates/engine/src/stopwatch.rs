//! Fraction of the time spent by a thread on a core. The fraction is below 100 % if foreign processes also use the
//! core.

use std::time::{Duration, Instant};

/// Measures elapsed time, and the CPU time for the thread where the stopwatch was started.
pub(crate) struct Stopwatch {
    start: Instant,
    /// CPU time of the thread at the start; `None` if the host does not provide it.
    cpu_time: Option<Duration>,
}

/// Times summed over threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Presence {
    /// Time on a core.
    pub(crate) running: Duration,
    /// Total elapsed time.
    pub(crate) elapsed: Duration,
}

impl Stopwatch {
    pub(crate) fn start() -> Stopwatch {
        Stopwatch { start: Instant::now(), cpu_time: cpu_time() }
    }

    /// Times since the start, on the thread that started the stopwatch. If the host provides no CPU time, the thread
    /// counts as running.
    pub(crate) fn read(&self) -> Presence {
        let elapsed = self.start.elapsed();
        let running = self.cpu_time.zip(cpu_time()).map(|(then, now)| now.saturating_sub(then));
        Presence { running: running.unwrap_or(elapsed), elapsed }
    }
}

impl Presence {
    pub(crate) fn add(&mut self, other: Presence) {
        self.running += other.running;
        self.elapsed += other.elapsed;
    }

    /// Percentage of the time spent on a core; 100 if no time has passed.
    pub(crate) fn percent(self) -> u64 {
        let percent = self.running.as_nanos() * 100 / self.elapsed.as_nanos().max(1);
        if self.elapsed.is_zero() { 100 } else { percent as u64 }
    }
}

/// CPU time of this thread.
#[cfg(target_os = "linux")]
fn cpu_time() -> Option<Duration> {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Some(Duration::new(time.tv_sec.try_into().ok()?, time.tv_nsec.try_into().ok()?))
}

/// Not implemented on other hosts.
#[cfg(not(target_os = "linux"))]
fn cpu_time() -> Option<Duration> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn a_thread_that_sleeps_is_not_on_a_core() {
        let stopwatch = Stopwatch::start();
        std::thread::sleep(Duration::from_millis(50));
        let presence = stopwatch.read();
        assert!(presence.elapsed >= Duration::from_millis(50) && presence.percent() < 50, "{presence:?}");
    }

    #[test]
    fn shares_are_of_all_threads_together() {
        let of = |running, elapsed| Presence {
            running: Duration::from_millis(running),
            elapsed: Duration::from_millis(elapsed),
        };
        let mut all = of(10, 10);
        all.add(of(2, 10));
        assert_eq!((all.percent(), Presence::default().percent()), (60, 100));
    }
}
