//! A request to stop long work early.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A flag that asks work to stop. Clones share the flag.
///
/// Work belongs to the flag of its thread ([`StopFlag::current`]). A loop that may take long looks at this flag, and ends
/// with an error or an unfinished result. A thread that helps another one adopts its flag with [`StopFlag::during`].
#[derive(Clone, Debug, Default)]
pub struct StopFlag(Arc<AtomicBool>);

thread_local! {
    static CURRENT: RefCell<StopFlag> = RefCell::default();
}

impl StopFlag {
    /// A flag that is not set.
    pub fn new() -> StopFlag {
        StopFlag::default()
    }

    /// The flag of the calling thread's work. Outside [`StopFlag::during`], nobody sets it.
    pub fn current() -> StopFlag {
        CURRENT.with_borrow(StopFlag::clone)
    }

    /// Asks the work to stop. Cannot be undone.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// True if the work is to stop.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Runs `work` on the calling thread with this flag as the current one.
    pub fn during<T>(&self, work: impl FnOnce() -> T) -> T {
        let _restored = Restored(CURRENT.replace(self.clone()));
        work()
    }
}

/// Makes a former flag current again, also after a panic.
struct Restored(StopFlag);

impl Drop for Restored {
    fn drop(&mut self) {
        CURRENT.set(std::mem::take(&mut self.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_sees_the_flag_of_its_thread_and_the_former_one_returns() {
        let flag = StopFlag::new();
        let seen = flag.during(|| {
            flag.set();
            let helper = StopFlag::current();
            std::thread::scope(|scope| scope.spawn(|| helper.during(|| StopFlag::current().is_set())).join())
        });
        assert!(seen.is_ok_and(|is_set| is_set));
        assert!(!StopFlag::current().is_set());
        let panicked = std::panic::catch_unwind(|| flag.during(|| panic!("the work fails")));
        assert!(panicked.is_err() && !StopFlag::current().is_set());
    }
}
