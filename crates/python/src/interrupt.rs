//! Long work without the interpreter lock, which Ctrl-C ends.

use pyo3::prelude::*;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;
use tombolo_types::StopFlag;

/// Interval at which signals are looked at.
pub(crate) const INTERVAL: Duration = Duration::from_millis(100);

/// Runs `work` on a thread of its own, without the interpreter lock. After a signal, the work is asked to stop, and the
/// signal's exception is returned once the thread has ended.
pub(crate) fn interruptible<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    let stop = StopFlag::new();
    std::thread::scope(|scope| {
        let (sender, mut result) = sync_channel(1);
        let flag = stop.clone();
        let thread = scope.spawn(move || {
            // The receiver waits until the work is done.
            let _ = sender.send(flag.during(work));
        });
        let mut signal = Ok(());
        loop {
            let receiver = &mut result;
            match py.detach(move || receiver.recv_timeout(INTERVAL)) {
                Ok(done) => return signal.map(|()| done),
                Err(RecvTimeoutError::Disconnected) => {
                    let panic = thread.join().expect_err("a thread without a result has panicked");
                    std::panic::resume_unwind(panic);
                }
                Err(RecvTimeoutError::Timeout) if signal.is_ok() => {
                    signal = py.check_signals();
                    if signal.is_err() {
                        stop.set();
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    })
}
