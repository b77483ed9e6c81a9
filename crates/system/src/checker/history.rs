//! The stores to one line that a load may still return.

use super::versions::Version;
use tombolo_types::Mask;

/// Stores kept in a list before grains are given up, as happens for a counter incremented by thousands of warps.
/// Assumed: more than race on any line that is no counter.
const MOST: usize = 64;

/// Stores, each with the grains it wrote.
#[derive(Clone, Debug, Default)]
pub(super) struct Stores {
    list: Vec<(Version, Mask)>,
    /// Grains with dropped stores, because the list was full: the checker makes no claim about these grains.
    given_up: Mask,
}

impl Stores {
    fn push(&mut self, version: Version, mask: Mask) {
        if self.list.len() == MOST {
            self.given_up |= self.list.remove(0).1;
        }
        self.list.push((version, mask));
    }

    /// All grains written.
    fn written(&self) -> Mask {
        self.list.iter().fold(self.given_up, |all, (_, mask)| Mask(all.0 | mask.0))
    }

    fn forget(&mut self, mask: Mask) {
        self.given_up.0 &= !mask.0;
        self.list.iter_mut().for_each(|(_, of)| of.0 &= !mask.0);
        self.list.retain(|(_, of)| !of.is_empty());
    }

    /// True if, for any grain in `mask`, several stores remain candidates for the last store.
    pub(super) fn is_open(&self, mask: Mask) -> bool {
        let mut seen = Mask::NONE;
        self.list.iter().any(|(_, of)| {
            let again = seen & *of & mask;
            seen |= *of;
            !again.is_empty()
        })
    }

    /// Records `last` as the final store to a grain and drops the grain from all competing stores.
    pub(super) fn settle(&mut self, grain: u32, last: Version) {
        let bit = Mask(1 << grain);
        if self.list.iter().any(|(version, mask)| *version == last && mask.overlaps(bit)) {
            self.list.iter_mut().filter(|(version, _)| *version != last).for_each(|(_, mask)| *mask = *mask & !bit);
            self.list.retain(|(_, mask)| !mask.is_empty());
        }
    }

    /// Stores to a grain; `None` if the grain was given up.
    pub(super) fn to(&self, grain: u32) -> Option<impl Iterator<Item = Version> + '_> {
        let has = move |mask: Mask| mask.0 >> grain & 1 != 0;
        let stores = self.list.iter().filter(move |(_, mask)| has(*mask)).map(|(version, _)| *version);
        (!has(self.given_up)).then_some(stores)
    }
}

/// The stores to one line.
#[derive(Clone, Debug, Default)]
pub(super) struct LineHistory {
    window: u32,
    /// Stores from the latest window in which a kernel wrote the line, without stores overwritten in program order.
    pub(super) newer: Stores,
    /// Stores from earlier windows: for each grain, the stores from the last window with a store to the grain.
    pub(super) older: Stores,
}

impl LineHistory {
    /// Moves to window `window`; stores from the previous window become older.
    pub(super) fn advance(&mut self, window: u32) {
        if self.window == window {
            return;
        }
        self.window = window;
        let newer = std::mem::take(&mut self.newer);
        self.older.forget(newer.written());
        self.older.given_up |= newer.given_up;
        self.older.list.extend(newer.list);
    }

    /// Adds a store in the current window; `is_overwritten` returns true for each store that happens before `version`.
    pub(super) fn store(&mut self, version: Version, mask: Mask, is_overwritten: impl Fn(Version) -> bool) {
        for (earlier, of) in &mut self.newer.list {
            if of.overlaps(mask) && is_overwritten(*earlier) {
                of.0 &= !mask.0;
            }
        }
        self.newer.list.retain(|(_, of)| !of.is_empty());
        self.newer.push(version, mask);
    }
}
