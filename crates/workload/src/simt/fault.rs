//! Errors inside a kernel: an error leaves the kernel's Rust code by unwinding and becomes a [`Fault`] again at the
//! kernel's launch.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// A CTA's violation of a language rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) cta: u32,
    pub(crate) message: String,
}

impl Fault {
    /// Leaves the kernel. Unlike a panic, a fault prints nothing: the recording reports an error.
    pub(crate) fn raise(cta: u32, message: String) -> ! {
        resume_unwind(Box::new(Fault { cta, message }))
    }
}

/// Runs a piece of a kernel and returns the fault, if any. Other panics pass through.
pub(crate) fn guarded<R>(run: impl FnOnce() -> R) -> Result<R, Fault> {
    catch_unwind(AssertUnwindSafe(run)).map_err(|payload| match payload.downcast::<Fault>() {
        Ok(fault) => *fault,
        Err(other) => resume_unwind(other),
    })
}
