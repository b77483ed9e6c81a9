//! Capacity axis: division of cache ways between lines from a module's own memory and remote lines.
//!
//! An option is a file: its keys, and a [`CapacityPolicy`] that gives the number of local ways. The model queries
//! the policy when a kernel starts and, if it samples, at the end of each window. A new policy needs a file and a
//! line in the table `policies!`.

use crate::DesignConfig;
use std::fmt::Debug;
use std::sync::Arc;
use tombolo_machine::Conflict;
use tombolo_protocol::Class;

/// A cache level with divided ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheLevel {
    /// An SM's cache.
    L1,
    /// A module's cache.
    L2,
}

/// The resources saturated during a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Set when the link toward the module was saturated.
    pub link: bool,
    /// Set when the module's memory was saturated.
    pub memory: bool,
}

/// Decides the number of ways for lines from the module's own memory; the remaining ways are for remote lines.
pub trait CapacityPolicy: Debug + Send + Sync {
    /// Number of local ways in a cache with `ways` ways when a kernel starts, at least 1 and fewer than all;
    /// `None`: not split.
    fn start(&self, level: CacheLevel, ways: u32) -> Option<u32>;

    /// True if the two sides act as separate caches: a line never takes an empty way from the other side.
    fn is_strict(&self) -> bool {
        false
    }

    /// Cycles of the SM clock between two samples; `None`: no shifts.
    fn sample_cycles(&self) -> Option<u32> {
        None
    }

    /// True if each kernel starts with the initial split.
    fn resets(&self) -> bool {
        true
    }

    /// Number of local ways in a split cache with `ways` ways after `window`, given `local` local ways before.
    fn shift(&self, local: u32, ways: u32, window: Window) -> u32 {
        let _ = (ways, window);
        local
    }
}

/// Declares the options, each with its file and its struct.
macro_rules! policies {
    ($($file:ident: $Option:ident),+ $(,)?) => {
        $(mod $file; pub use $file::$Option;)+

        crate::axis::axis! {
            /// Division of an L2's ways between local data and remote data.
            pub enum Capacity { $($Option),+ } refused by conflict
        }

        impl Capacity {
            /// The policy object for a module.
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

/// A split needs remote lines to share the cache with.
fn conflict(capacity: &Capacity, _: &'static str, design: &DesignConfig) -> Option<Conflict> {
    let is_split = capacity.policy().start(CacheLevel::L2, 2).is_some();
    let caches_others = (design.coherence.facts().caches)(Class::SystemRemote, &design.options());
    (is_split && !caches_others).then(|| Conflict {
        key: "capacity.kind",
        reason: format!("{} keeps no remote data in L2 caches to share them with", design.coherence.protocol()),
    })
}
