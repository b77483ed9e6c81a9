//! Scheduling: which module runs a CTA.

use crate::axis::{axis, option};

axis! {
    /// Which module runs a CTA.
    pub enum Scheduling { Contiguous, Interleaved }
}

option! {
    /// Each module a block of neighbouring CTAs. Source: HMG, section VI.
    pub struct Contiguous = "contiguous" {}
}

option! {
    /// CTA by CTA over all modules. Source: NUMA-GPU, section 3.
    pub struct Interleaved = "interleaved" {}
}

/// Which CTAs of a kernel a module runs, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CtaCut {
    /// A block of neighbours.
    Contiguous,
    /// One CTA, then one from every other module.
    Interleaved,
}

impl Scheduling {
    /// How a grid is cut over the modules.
    pub fn cut(self) -> CtaCut {
        match self {
            Scheduling::Contiguous(_) => CtaCut::Contiguous,
            Scheduling::Interleaved(_) => CtaCut::Interleaved,
        }
    }
}

impl CtaCut {
    /// The first CTA of module `module` of `modules`, the step to the next, and one past the last.
    pub fn of(self, ctas: u32, module: u32, modules: u32) -> (u32, u32, u32) {
        let cut = |index: u32| (u64::from(ctas) * u64::from(index) / u64::from(modules)) as u32;
        match self {
            CtaCut::Contiguous => (cut(module), 1, cut(module + 1)),
            CtaCut::Interleaved => (module.min(ctas), modules, ctas),
        }
    }
}
