//! Scopes and semantics of the PTX memory model.

use std::fmt;

/// The set of threads that an operation synchronises with. Source: PTX ISA, memory consistency model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// Threads of the same CTA.
    #[default]
    Cta,
    /// Threads of the same GPU.
    Gpu,
    /// All threads of the system.
    Sys,
}

/// What an access or a fence orders. Source: PTX ISA, memory consistency model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Semantics {
    /// Plain access: no scope.
    #[default]
    Weak,
    /// Strong, orders nothing else.
    Relaxed,
    /// Later operations stay behind it.
    Acquire,
    /// Earlier operations stay ahead of it.
    Release,
    /// Both.
    AcquireRelease,
    /// Fences only: `fence.sc`, also an acquire-release fence.
    SequentiallyConsistent,
}

impl Semantics {
    /// Whether later operations of the thread wait for it.
    pub fn acquires(self) -> bool {
        matches!(self, Semantics::Acquire | Semantics::AcquireRelease | Semantics::SequentiallyConsistent)
    }

    /// Whether it waits for earlier operations of the thread.
    pub fn releases(self) -> bool {
        matches!(self, Semantics::Release | Semantics::AcquireRelease | Semantics::SequentiallyConsistent)
    }
}

/// Semantics and scope of one operation. A weak operation has scope `Cta` by convention.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Order {
    /// What it orders.
    pub semantics: Semantics,
    /// With whom.
    pub scope: Scope,
}

impl Order {
    /// A plain access.
    pub const WEAK: Order = Order { semantics: Semantics::Weak, scope: Scope::Cta };

    /// An operation of the given semantics and scope.
    pub const fn new(semantics: Semantics, scope: Scope) -> Order {
        Order { semantics, scope }
    }

    /// A relaxed access of the given scope.
    pub const fn relaxed(scope: Scope) -> Order {
        Order::new(Semantics::Relaxed, scope)
    }

    /// An acquire of the given scope.
    pub const fn acquire(scope: Scope) -> Order {
        Order::new(Semantics::Acquire, scope)
    }

    /// A release of the given scope.
    pub const fn release(scope: Scope) -> Order {
        Order::new(Semantics::Release, scope)
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Scope::Cta => "cta",
            Scope::Gpu => "gpu",
            Scope::Sys => "sys",
        })
    }
}

impl fmt::Display for Semantics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Semantics::Weak => "weak",
            Semantics::Relaxed => "relaxed",
            Semantics::Acquire => "acquire",
            Semantics::Release => "release",
            Semantics::AcquireRelease => "acq_rel",
            Semantics::SequentiallyConsistent => "sc",
        })
    }
}
