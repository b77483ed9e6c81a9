//! What is under way, on standard error, and only where that is a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

/// Between two pictures of the bar.
const TICK: Duration = Duration::from_millis(200);

/// One bar: how many runs, or tests, are done, and which are under way.
pub(crate) struct Progress {
    bar: ProgressBar,
    under_way: Mutex<Vec<String>>,
}

impl Progress {
    /// A bar over `runs` runs.
    pub(crate) fn new(runs: usize) -> Progress {
        Progress::over(runs, "runs")
    }

    /// A bar over `count` things called `noun`.
    pub(crate) fn over(count: usize, noun: &str) -> Progress {
        let shown = std::io::stderr().is_terminal();
        let draw = if shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(count as u64), draw);
        let style =
            ProgressStyle::with_template(&format!("{{bar:30}} {{pos}}/{{len}} {noun}, {{elapsed}}: {{wide_msg}}"));
        bar.set_style(style.expect("the template names only keys that exist"));
        if shown {
            bar.enable_steady_tick(TICK);
        }
        Progress { bar, under_way: Mutex::default() }
    }

    /// Shows `what` while `work` is done.
    pub(crate) fn during<T>(&self, what: &str, work: impl FnOnce() -> T) -> T {
        self.begin(what.to_owned());
        let result = work();
        self.end(what);
        result
    }

    /// Shows `what` from now on.
    pub(crate) fn begin(&self, what: String) {
        self.change(|names| names.push(what));
    }

    /// Shows `what` no longer.
    pub(crate) fn end(&self, what: &str) {
        self.change(|names| {
            if let Some(place) = names.iter().position(|name| name == what) {
                names.remove(place);
            }
        });
    }

    /// `runs` more are done.
    pub(crate) fn advance(&self, runs: usize) {
        self.bar.inc(runs as u64);
    }

    fn change(&self, with: impl FnOnce(&mut Vec<String>)) {
        let mut names = self.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        with(&mut names);
        self.bar.set_message(names.join("; "));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
