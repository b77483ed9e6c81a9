//! Progress on standard error: a bar on a terminal, otherwise a line at the start and a line per minute.

use crate::output::complain;
use crate::session::{self, SessionSink};
use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tombolo_experiment::campaign::Watcher;

/// Interval between bar updates.
const TICK: Duration = Duration::from_millis(200);
/// Interval between lines if no bar is shown.
const LINE_PERIOD: Duration = Duration::from_secs(60);

/// Progress of a command: number of finished runs or tests, the current runs, and an estimate for the remaining time.
pub(crate) struct Progress {
    bar: ProgressBar,
    running: Arc<Mutex<CurrentRuns>>,
    lines: Option<LinePrinter>,
    /// The session that shows the progress instead.
    session: Option<Arc<SessionSink>>,
}

/// Names of the current runs, and the remaining time if the runner estimates it.
#[derive(Default)]
struct CurrentRuns {
    names: Vec<String>,
    left: Option<Duration>,
}

/// Thread printing a line per period, until the sender is dropped.
struct LinePrinter {
    stop: Sender<()>,
    thread: JoinHandle<()>,
}

impl LinePrinter {
    fn start(period: Duration, mut print: impl FnMut() + Send + 'static) -> LinePrinter {
        let (stop, stopped) = channel();
        let thread = std::thread::spawn(move || {
            while stopped.recv_timeout(period) == Err(RecvTimeoutError::Timeout) {
                print();
            }
        });
        LinePrinter { stop, thread }
    }

    fn end(self) {
        drop(self.stop);
        // A line that cannot be printed ends the thread, without further effects.
        let _ = self.thread.join();
    }
}

/// Formats a progress line, for example `3 of 12 runs done, 9 left, about 2 minutes to go: bfs hmg`.
fn line(bar: &ProgressBar, noun: &str, running: &CurrentRuns) -> String {
    let (done, all) = (bar.position(), bar.length().unwrap_or(0));
    let left = all.saturating_sub(done);
    // Without an estimate from the runner, remaining runs are assumed to take the average time of the finished runs.
    let average = (done > 0).then(|| bar.elapsed().mul_f64(left as f64 / done as f64));
    let to_go = running.left.or(average).map(|time| format!(", about {} to go", HumanDuration(time)));
    let names = if running.names.is_empty() { String::new() } else { format!(": {}", running.names.join("; ")) };
    format!("{done} of {all} {noun} done, {left} left{}{names}", to_go.unwrap_or_default())
}

impl Progress {
    /// Creates a bar over `runs` runs.
    pub(crate) fn new(runs: usize) -> Progress {
        Progress::over(runs, "runs")
    }

    /// Creates a bar over `count` items called `noun`.
    pub(crate) fn over(count: usize, noun: &str) -> Progress {
        let session = session::current();
        let shown = session.is_none() && std::io::stderr().is_terminal();
        let draw = if shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(count as u64), draw);
        // The `{prefix}` holds the time estimate.
        let look = format!("{{bar:30}} {{pos}}/{{len}} {noun}, {{elapsed}}{{prefix}}: {{wide_msg}}");
        let style = ProgressStyle::with_template(&look);
        bar.set_style(style.expect("the template names only keys that exist"));
        let running = Arc::new(Mutex::new(CurrentRuns::default()));
        if shown {
            bar.enable_steady_tick(TICK);
            return Progress { bar, running, lines: None, session };
        }
        if let Some(session) = session {
            session.watcher().begins(count, 0);
            return Progress { bar, running, lines: None, session: Some(session) };
        }
        complain(&format!("{count} {} to go", if count == 1 { noun.trim_end_matches('s') } else { noun }));
        let (of_thread, shared, noun) = (bar.clone(), Arc::clone(&running), noun.to_owned());
        let lines = LinePrinter::start(LINE_PERIOD, move || {
            let running = shared.lock().unwrap_or_else(PoisonError::into_inner);
            complain(&line(&of_thread, &noun, &running));
        });
        Progress { bar, running, lines: Some(lines), session: None }
    }

    /// Shows `what` during the execution of `work`.
    pub(crate) fn during<T>(&self, what: &str, work: impl FnOnce() -> T) -> T {
        self.started(what);
        let result = work();
        self.ended(what);
        result
    }

    fn change(&self, with: impl FnOnce(&mut Vec<String>)) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        with(&mut running.names);
        self.bar.set_message(running.names.join("; "));
    }
}

impl Watcher for Progress {
    fn begins(&self, points: usize, finished: usize) {
        self.session.iter().for_each(|session| session.watcher().begins(points, finished));
        self.bar.set_length((points + finished) as u64);
        self.bar.set_position(finished as u64);
    }

    fn started(&self, what: &str) {
        self.session.iter().for_each(|session| session.watcher().started(what));
        self.change(|names| names.push(what.to_owned()));
    }

    fn ended(&self, what: &str) {
        self.session.iter().for_each(|session| session.watcher().ended(what));
        self.change(|names| {
            if let Some(place) = names.iter().position(|name| name == what) {
                names.remove(place);
            }
        });
    }

    fn advanced(&self, points: usize, left: Option<Duration>) {
        self.session.iter().for_each(|session| session.watcher().advanced(points, left));
        self.bar.inc(points as u64);
        self.running.lock().unwrap_or_else(PoisonError::into_inner).left = left;
        let left = left.map(|left| format!(", about {} left", HumanDuration(left)));
        self.bar.set_prefix(left.unwrap_or_default());
    }

    fn warn(&self, text: &str) {
        match &self.session {
            Some(session) => session.message(format!("warning: {text}")),
            None => self.bar.suspend(|| complain(&format!("warning: {text}"))),
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
        if let Some(lines) = self.lines.take() {
            lines.end();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hidden(length: u64, position: u64) -> ProgressBar {
        let bar = ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::hidden());
        bar.set_position(position);
        bar
    }

    #[test]
    fn a_line_has_runs_done_and_left_the_time_to_go_and_what_runs() {
        let running =
            CurrentRuns { names: vec!["bfs hmg".into(), "nw nhcc".into()], left: Some(Duration::from_secs(120)) };
        let told = line(&hidden(12, 3), "runs", &running);
        assert_eq!(told, "3 of 12 runs done, 9 left, about 2 minutes to go: bfs hmg; nw nhcc");
        assert_eq!(line(&hidden(1, 0), "runs", &CurrentRuns::default()), "0 of 1 runs done, 1 left");
        let average = line(&hidden(4, 2), "tests", &CurrentRuns::default());
        assert!(average.starts_with("2 of 4 tests done, 2 left, about 0 seconds to go"), "{average}");
    }

    #[test]
    fn lines_come_every_period_until_the_end() {
        let (heard, all) = channel();
        let lines = LinePrinter::start(Duration::from_millis(1), move || heard.send(()).expect("the test listens"));
        (0..3).for_each(|_| all.recv_timeout(Duration::from_secs(60)).expect("a line a millisecond"));
        lines.end();
        while all.try_recv().is_ok() {}
        assert!(all.recv().is_err(), "the thread has ended");
    }
}
