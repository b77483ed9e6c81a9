//! Decides which versions a load must not return.

use super::history::LineHistory;
use super::vector_clock::{Moment, VectorClock};
use super::versions::Version;
use super::{CheckerState, LaunchOrder, Load, LoadResult, Store, ViolationKind, name};
use tombolo_model::message::Flag;
use tombolo_types::Line;

/// A violation found in a load.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mismatch {
    /// First grain that shows the violation.
    pub(super) grain: u32,
    /// The violated rule.
    pub(super) kind: ViolationKind,
    /// The returned store, and the reason for the violation.
    pub(super) why: String,
}

/// Kind and reason for a wrong version.
type Reason = (ViolationKind, String);

/// True if `earlier` happens before `later` in the same kernel, given the later warp's knowledge.
fn precedes(earlier: Moment, later: Moment, knows: &VectorClock) -> bool {
    if earlier.warp == later.warp { earlier.sequence < later.sequence } else { knows.covers(earlier) }
}

impl Store {
    /// True if this store happens before a load.
    fn precedes(&self, load: &Load, order: &LaunchOrder) -> bool {
        if self.launch == load.launch {
            precedes(self.at, load.at, &load.knows)
        } else {
            order.precedes(self.launch, load.launch)
        }
    }

    /// True if this store happens before `later`.
    fn is_before(&self, later: &Store, order: &LaunchOrder) -> bool {
        if self.launch == later.launch {
            precedes(self.at, later.at, &later.knows)
        } else {
            order.precedes(self.launch, later.launch)
        }
    }

    /// True if this store happens after a load.
    fn follows(&self, load: &Load, order: &LaunchOrder) -> bool {
        if self.launch == load.launch {
            precedes(load.at, self.at, &self.knows)
        } else {
            order.precedes(load.launch, self.launch)
        }
    }
}

impl CheckerState {
    /// True if a version belongs to the current window.
    fn is_current(&self, version: Version) -> bool {
        version != 0 && version >= self.first
    }

    /// A store in the current window; `None` if no warp has issued it.
    fn issued(&self, version: Version) -> Option<&Store> {
        self.stores.get((version - self.first) as usize)
    }

    fn known(&self, version: Version) -> &Store {
        self.issued(version).expect("a history holds stores that were issued")
    }

    /// True if one store in the current window happens before another.
    pub(super) fn is_before(&self, earlier: Version, later: Version) -> bool {
        self.known(earlier).is_before(self.known(later), &self.order)
    }

    /// Checks the data that a transaction returned for a load. If stores in earlier kernels raced, the first load also
    /// settles the last store: all later loads must return the same.
    pub(super) fn load(&mut self, load: &Load, returned: &LoadResult) -> Option<Mismatch> {
        let &LoadResult { line, mask, data, .. } = returned;
        let window = self.window();
        if let Some(history) = self.lines.get_mut(&line) {
            history.advance(window);
        }
        let nothing = LineHistory::default();
        let history = self.lines.get(&line).unwrap_or(&nothing);
        let wrong = data.grains(mask).find_map(|(grain, version)| {
            let reason = self.verdict(history, (line, grain), version, load);
            reason.map(|(kind, why)| Mismatch { grain, kind, why })
        });
        if wrong.is_none() && history.older.is_open(mask) {
            let first = self.first;
            let older = &mut self.lines.entry(line).or_default().older;
            let left = data.grains(mask).filter(|&(_, version)| version < first);
            left.for_each(|(grain, version)| older.settle(grain, version));
        }
        wrong
    }

    /// Reason for which a load must not return this version, if any.
    fn verdict(
        &self,
        history: &LineHistory,
        (line, grain): (Line, u32),
        version: Version,
        load: &Load,
    ) -> Option<Reason> {
        let current = self.is_current(version);
        if current && let Some(reason) = self.impossible((line, grain), version, load) {
            return Some(reason);
        }
        let newer = history.newer.to(grain)?;
        let before = |store: Version| self.known(store).precedes(load, &self.order);
        let mut overwriting = newer.filter(|&store| store != version && before(store));
        if let Some(store) = overwriting.find(|&store| !current || self.is_before(version, store)) {
            let own = current && self.known(version).launch == load.launch;
            let was = if own { "an earlier store of its kernel" } else { "what an earlier kernel or the host left" };
            let by = name(self.known(store).by);
            return Some((ViolationKind::Old, format!("it returned {was}, which {by} had overwritten before it")));
        }
        if current {
            return None;
        }
        let mut left = history.older.to(grain)?.peekable();
        let fits = if left.peek().is_none() { version == 0 } else { left.any(|store| store == version) };
        (!fits)
            .then(|| (ViolationKind::Old, "it returned what an earlier kernel or the host had overwritten".to_owned()))
    }

    /// Reason for which a load cannot have returned this version from the current window, under any store order.
    fn impossible(&self, (line, grain): (Line, u32), version: Version, load: &Load) -> Option<Reason> {
        let Some(store) = self.issued(version) else {
            return Some((ViolationKind::Future, "it returned a store that nobody had issued".to_owned()));
        };
        let by = name(store.by);
        if store.line != line || store.mask.0 >> grain & 1 == 0 {
            return Some((ViolationKind::Misplaced, format!("it returned a store of {by} to other bytes")));
        }
        let after = store.follows(load, &self.order);
        after.then(|| (ViolationKind::Future, format!("it returned a store of {by} that happens after it")))
    }

    /// Checks the data returned by a poll that found `flag`: bytes written by the flag's store must come from this
    /// store or a later one.
    pub(super) fn poll(&self, flag: Flag, returned: &LoadResult) -> Option<Mismatch> {
        let left = self.flags.get(&flag)?;
        returned.data.grains(returned.mask).find_map(|(grain, version)| {
            let here = |store: &Store| store.line == returned.line && store.mask.0 >> grain & 1 != 0;
            let older = |store: Version| !self.is_current(version) || self.is_before(version, store);
            let store = left.stores.iter().find(|&&store| here(self.known(store)) && older(store))?;
            let (flag, by) = (flag.number() - 1, name(self.known(*store).by));
            let why =
                format!("it passed on flag {flag} and returned bytes older than the store of {by} that leaves it");
            Some(Mismatch { grain, kind: ViolationKind::EarlyFlag, why })
        })
    }
}
