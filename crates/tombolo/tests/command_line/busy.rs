//! Runs next to processes that occupy all cores: the default number of threads costs hardly more than one thread.

use crate::{json, small_run};
use std::process::{Child, Command, Stdio};

/// Child processes that keep cores busy, until this value is dropped.
struct Busy(Vec<Child>);

impl Busy {
    fn start(processes: usize) -> Busy {
        let spin = |_| {
            let mut shell = Command::new("sh");
            shell.args(["-c", "while :; do :; done"]).stdin(Stdio::null());
            shell.spawn().expect("a shell starts")
        };
        Busy((0..processes).map(spin).collect())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        for process in &mut self.0 {
            // Errors are ignored, because an already finished process needs no kill.
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

/// Returns the median of five wall-time ratios: the default number of threads over one thread, in consecutive runs.
fn median_ratio() -> f64 {
    let wall = |more: &[&str]| {
        let pathfinder = ["--design", "hmg", "--workload", "pathfinder", "--json"];
        json(&small_run(&[&pathfinder, more].concat()))["host"]["wall_s"].as_f64().expect("a time")
    };
    let mut ratios: Vec<f64> = (0..5).map(|_| wall(&[]) / wall(&["--threads", "1"])).collect();
    ratios.sort_by(f64::total_cmp);
    println!("{ratios:.2?}");
    ratios[2]
}

#[test]
#[ignore = "deep: ten runs, a tenth of the machine for each"]
fn threads_beside_busy_processes_cost_little() {
    let _busy = Busy::start(8);
    let ratio = median_ratio();
    assert!(ratio <= 1.2, "{ratio}");
}
