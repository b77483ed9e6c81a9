//! What is under way, on standard error, and only where that is a terminal.

use crate::output::complain;
use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;
use tombolo_experiment::campaign::Watcher;

/// Between two pictures of the bar.
const TICK: Duration = Duration::from_millis(200);

/// One bar: how many runs, or tests, are done, which are under way, and how long the rest will take.
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
        // `{prefix}` is the estimate.
        let look = format!("{{bar:30}} {{pos}}/{{len}} {noun}, {{elapsed}}{{prefix}}: {{wide_msg}}");
        let style = ProgressStyle::with_template(&look);
        bar.set_style(style.expect("the template names only keys that exist"));
        if shown {
            bar.enable_steady_tick(TICK);
        }
        Progress { bar, under_way: Mutex::default() }
    }

    /// Shows `what` while `work` is done.
    pub(crate) fn during<T>(&self, what: &str, work: impl FnOnce() -> T) -> T {
        self.started(what);
        let result = work();
        self.ended(what);
        result
    }

    fn change(&self, with: impl FnOnce(&mut Vec<String>)) {
        let mut names = self.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        with(&mut names);
        self.bar.set_message(names.join("; "));
    }
}

impl Watcher for Progress {
    fn begins(&self, points: usize, finished: usize) {
        self.bar.set_length((points + finished) as u64);
        self.bar.set_position(finished as u64);
    }

    fn started(&self, what: &str) {
        self.change(|names| names.push(what.to_owned()));
    }

    fn ended(&self, what: &str) {
        self.change(|names| {
            if let Some(place) = names.iter().position(|name| name == what) {
                names.remove(place);
            }
        });
    }

    fn advanced(&self, points: usize, left: Option<Duration>) {
        self.bar.inc(points as u64);
        let left = left.map(|left| format!(", about {} left", HumanDuration(left)));
        self.bar.set_prefix(left.unwrap_or_default());
    }

    fn warn(&self, text: &str) {
        self.bar.suspend(|| complain(&format!("warning: {text}")));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
