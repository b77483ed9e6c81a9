//! Capacity: how the ways of caches are shared between lines of a module's own memory and lines of others'.
//!
//! An option is a file: its keys, and a [`CapacityPolicy`] that says how many ways are local. The model asks it when a
//! kernel starts and, where it samples, at the end of each window. Adding one is a file and a line in the table below.

use crate::DesignConfig;
use std::fmt::Debug;
use std::sync::Arc;
use tombolo_machine::Conflict;
use tombolo_protocol::Class;

/// A cache whose ways are shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Of an SM.
    L1,
    /// Of a module.
    L2,
}

/// What was saturated in a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The link, in the direction of the module.
    pub link: bool,
    /// The module's memory.
    pub memory: bool,
}

/// Decides how many ways of a cache are for lines of the module's own memory; the rest are for others' lines.
pub trait CapacityPolicy: Debug + Send + Sync {
    /// Local ways of a cache of `ways` ways when a kernel starts, at least 1 and fewer than all; `None`: not split.
    fn start(&self, level: Level, ways: u32) -> Option<u32>;

    /// Whether the two sides are caches of their own: a line takes no empty way of the other side.
    fn is_strict(&self) -> bool {
        false
    }

    /// Cycles of the SM clock between two samples; `None`: nothing shifts.
    fn sample_cycles(&self) -> Option<u32> {
        None
    }

    /// Whether each kernel starts as the first one does.
    fn resets(&self) -> bool {
        true
    }

    /// Local ways of a split cache of `ways` ways, `local` of them local before, after `window`.
    fn shift(&self, local: u32, ways: u32, window: Window) -> u32 {
        let _ = (ways, window);
        local
    }
}

/// Declares the options: the file, and the struct in it.
macro_rules! policies {
    ($($file:ident: $Option:ident),+ $(,)?) => {
        $(mod $file; pub use $file::$Option;)+

        crate::axis::axis! {
            /// How an L2's ways are shared between data of its own module and of others.
            pub enum Capacity { $($Option),+ } refused by conflict
        }

        impl Capacity {
            /// What decides for a module.
            pub fn policy(self) -> Arc<dyn CapacityPolicy> {
                match self { $(Capacity::$Option(policy) => Arc::new(policy)),+ }
            }
        }
    };
}

policies! {
    shared: Shared,
    static_halves: StaticHalves,
    numa_aware: NumaAware,
}

/// A split needs lines of others to share with.
fn conflict(capacity: &Capacity, _: &'static str, design: &DesignConfig) -> Option<Conflict> {
    let is_split = capacity.policy().start(Level::L2, 2).is_some();
    let caches_others = (design.coherence.facts().caches)(Class::SystemRemote, &design.options());
    (is_split && !caches_others).then(|| Conflict {
        key: "capacity.kind",
        reason: format!("{} keeps no remote data in L2 caches to share them with", design.coherence.protocol()),
    })
}
