//! Checker for kernels declared independent: tracks the accessing CTAs and access kinds for each element.

use super::atomic::Reduction;
use super::fault::Fault;
use super::launch::Launch;
use super::memory::Array;
use rustc_hash::FxHashMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

/// The set of CTAs that performed a given kind of access to an element.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum AccessorSet {
    #[default]
    Nobody,
    One(u32),
    Many,
}

impl AccessorSet {
    fn and(self, cta: u32) -> AccessorSet {
        match self {
            AccessorSet::Nobody => AccessorSet::One(cta),
            AccessorSet::One(other) if other == cta => self,
            AccessorSet::One(_) | AccessorSet::Many => AccessorSet::Many,
        }
    }

    /// True if the set contains any CTA besides `cta`.
    fn beyond(self, cta: u32) -> bool {
        self != AccessorSet::Nobody && self != AccessorSet::One(cta)
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct ElementAccesses {
    loaded: AccessorSet,
    stored: AccessorSet,
    reduced: AccessorSet,
    /// The reduction used by the CTAs in `reduced`.
    reduction: Option<Reduction>,
}

/// All accesses by a kernel's CTAs. Slow: for tests and small inputs.
#[derive(Default)]
pub(crate) struct IndependenceChecker {
    touched: Mutex<FxHashMap<(u32, u64), ElementAccesses>>,
}

impl IndependenceChecker {
    /// Notes a load by CTA `cta`: no further CTA may write the element.
    pub(super) fn load<T>(&self, launch: &Launch<'_>, array: Array<T>, element: u64, cta: u32) {
        self.touch(launch, array, element, cta, &"loads", |touched| {
            touched.loaded = touched.loaded.and(cta);
            touched.stored.beyond(cta) || touched.reduced.beyond(cta)
        });
    }

    /// Notes a store by CTA `cta`: no further CTA may access the element.
    pub(super) fn store<T>(&self, launch: &Launch<'_>, array: Array<T>, element: u64, cta: u32) {
        self.touch(launch, array, element, cta, &"stores to", |touched| {
            touched.stored = touched.stored.and(cta);
            touched.loaded.beyond(cta) || touched.stored.beyond(cta) || touched.reduced.beyond(cta)
        });
    }

    /// Notes a reduction by CTA `cta`: further CTAs may only perform the same reduction on the element.
    pub(super) fn reduce<T>(&self, launch: &Launch<'_>, array: Array<T>, element: u64, cta: u32, reduction: Reduction) {
        self.touch(launch, array, element, cta, &"reduces into", |touched| {
            touched.reduced = touched.reduced.and(cta);
            let same = touched.reduction.is_none_or(|before| before == reduction);
            touched.reduction = Some(reduction);
            touched.loaded.beyond(cta) || touched.stored.beyond(cta) || (!same && touched.reduced.beyond(cta))
        });
    }

    fn touch<T>(
        &self,
        launch: &Launch<'_>,
        array: Array<T>,
        element: u64,
        cta: u32,
        does: &dyn fmt::Display,
        conflicts: impl FnOnce(&mut ElementAccesses) -> bool,
    ) {
        let mut map = self.touched.lock().unwrap_or_else(PoisonError::into_inner);
        let touched = map.entry((array.id, element)).or_default();
        if conflicts(touched) {
            let (name, others) = (launch.memory.name(array), *touched);
            drop(map);
            Fault::raise(cta, format!("declared independent, but {does} {name}[{element}], touched by {others:?}"));
        }
    }
}
