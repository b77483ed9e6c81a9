//! Side table with values indexed by MSHR.

use super::EntryId;

/// Value per MSHR in a table, stored up to the highest index set so far. Tables allocate their entries in ascending
/// order, and few tables are ever full, so the list stays short.
#[derive(Clone, Debug, Default)]
pub(crate) struct PerEntry<T>(Vec<T>);

impl<T: Copy + Default> PerEntry<T> {
    /// Returns an entry's value, or the default if none was set.
    #[inline]
    pub(crate) fn get(&self, id: EntryId) -> T {
        self.0.get(id.index()).copied().unwrap_or_default()
    }

    /// Sets the value of an entry.
    #[inline]
    pub(crate) fn set(&mut self, id: EntryId, value: T) {
        match self.0.get_mut(id.index()) {
            Some(known) => *known = value,
            None => self.add(id, value),
        }
    }

    #[cold]
    #[inline(never)]
    fn add(&mut self, id: EntryId, value: T) {
        self.0.resize(id.index(), T::default());
        self.0.push(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_has_the_value_set_last() {
        let (mut values, id) = (PerEntry::default(), EntryId::numbered);
        values.set(id(2), 7);
        values.set(id(0), 5);
        values.set(id(2), 8);
        assert_eq!([0, 1, 2, 3].map(|entry| values.get(id(entry))), [5, 0, 8, 0]);
    }
}
