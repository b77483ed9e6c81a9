//! Scopes and semantics in the PTX memory model.

use std::fmt;

/// Set of threads that an operation synchronises with. Source: PTX ISA, memory consistency model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// Threads in the same CTA.
    #[default]
    Cta,
    /// Threads in the same GPU.
    Gpu,
    /// All threads in the system.
    Sys,
}

impl Scope {
    /// All scopes, from the narrowest to the widest: a scope's number is its index.
    pub const ALL: [Scope; 3] = [Scope::Cta, Scope::Gpu, Scope::Sys];
}

/// Ordering effect of an access or a fence. Source: PTX ISA, memory consistency model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Semantics {
    /// Plain access: no scope.
    #[default]
    Weak,
    /// Strong, orders nothing else.
    Relaxed,
    /// Later operations stay behind this operation.
    Acquire,
    /// Earlier operations stay ahead of this operation.
    Release,
    /// Acquire and release.
    AcquireRelease,
    /// Fences only: `fence.sc`, also an acquire-release fence.
    SequentiallyConsistent,
}

impl Semantics {
    /// True if later operations in the thread wait for this one.
    pub fn acquires(self) -> bool {
        matches!(self, Semantics::Acquire | Semantics::AcquireRelease | Semantics::SequentiallyConsistent)
    }

    /// True if this operation waits for earlier operations in the thread.
    pub fn releases(self) -> bool {
        matches!(self, Semantics::Release | Semantics::AcquireRelease | Semantics::SequentiallyConsistent)
    }
}

/// Semantics and scope for an operation. A weak operation has scope `Cta` by convention.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Order {
    /// Ordering effect.
    pub semantics: Semantics,
    /// Scope of the effect.
    pub scope: Scope,
}

impl Order {
    /// A plain access.
    pub const WEAK: Order = Order { semantics: Semantics::Weak, scope: Scope::Cta };

    /// An operation with the given semantics and scope.
    pub const fn new(semantics: Semantics, scope: Scope) -> Order {
        Order { semantics, scope }
    }

    /// A relaxed access with the given scope.
    pub const fn relaxed(scope: Scope) -> Order {
        Order::new(Semantics::Relaxed, scope)
    }

    /// An acquire with the given scope.
    pub const fn acquire(scope: Scope) -> Order {
        Order::new(Semantics::Acquire, scope)
    }

    /// A release with the given scope.
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
