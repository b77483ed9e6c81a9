//! Write queue for a module's stores to published pages: one entry per line, with a mask (GPS, section 5.2).
//!
//! The queue is fully associative. An entry is added once and keeps the position, regardless of later writes: the entry
//! that leaves first is the least recently *added*. [`tombolo_protocol::publication`] decides on each request, for
//! [`crate::l2::publisher`].

use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use tombolo_protocol::Data;
use tombolo_protocol::publication::PublicationEntry;
use tombolo_types::{Line, Mask};

/// An entry with its serial number among all additions.
#[derive(Clone, Copy, Debug)]
struct NumberedEntry<D> {
    entry: PublicationEntry<D>,
    number: u64,
}

/// Write queue of a module.
#[derive(Clone, Debug)]
pub(crate) struct WriteQueue<D> {
    capacity: usize,
    entries: FxHashMap<Line, NumberedEntry<D>>,
    /// Lines with serial numbers, in the order of their addition. A pair is stale if the line's current entry has
    /// another number.
    order: VecDeque<(Line, u64)>,
    additions: u64,
    removals: u64,
}

impl<D: Data> WriteQueue<D> {
    /// An empty queue for `capacity` lines, at least two.
    pub(crate) fn new(capacity: u32) -> WriteQueue<D> {
        let capacity = capacity as usize;
        WriteQueue { capacity, entries: FxHashMap::default(), order: VecDeque::new(), additions: 0, removals: 0 }
    }

    /// Entry for a line, if present.
    pub(crate) fn get(&self, line: Line) -> Option<PublicationEntry<D>> {
        self.entries.get(&line).map(|added| added.entry)
    }

    /// True if a store to a line finds room.
    pub(crate) fn has_room(&self, line: Line) -> bool {
        self.entries.len() < self.capacity || self.entries.contains_key(&line)
    }

    /// True if an entry must leave: the queue is full except for one entry, or completely full.
    pub(crate) fn is_at_watermark(&self) -> bool {
        self.entries.len() + 1 >= self.capacity
    }

    /// Adds a store. Returns true if its line was already present.
    pub(crate) fn add(&mut self, line: Line, mask: Mask, data: D) -> bool {
        let earlier = self.entries.get_mut(&line);
        let entry = PublicationEntry::added(earlier.as_ref().map(|added| added.entry), mask, data);
        if let Some(added) = earlier {
            added.entry = entry;
            return true;
        }
        self.additions += 1;
        self.entries.insert(line, NumberedEntry { entry, number: self.additions });
        self.order.push_back((line, self.additions));
        false
    }

    /// Removes and returns a line's entry.
    pub(crate) fn remove(&mut self, line: Line) -> Option<PublicationEntry<D>> {
        let removed = self.entries.remove(&line).map(|added| added.entry);
        self.removals += u64::from(removed.is_some());
        // Stale pairs are dropped when they reach the front; if many entries leave out of order, all stale pairs are
        // dropped here.
        if self.order.len() > 2 * self.capacity.max(self.entries.len()) {
            let entries = &self.entries;
            self.order.retain(|(line, number)| entries.get(line).is_some_and(|added| added.number == *number));
        }
        removed
    }

    /// The line with the least recent addition.
    pub(crate) fn oldest(&mut self) -> Option<Line> {
        while let Some(&(line, number)) = self.order.front() {
            if self.entries.get(&line).is_some_and(|added| added.number == number) {
                return Some(line);
            }
            self.order.pop_front();
        }
        None
    }

    /// Number of entries added or removed so far.
    pub(crate) fn changes(&self) -> u64 {
        self.additions + self.removals
    }

    /// Number of lines in the queue now.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// True if the queue is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(capacity: u32, lines: impl Iterator<Item = u64>) -> WriteQueue<()> {
        let mut queue = WriteQueue::new(capacity);
        lines.for_each(|line| {
            queue.add(Line(line), Mask(1), ());
        });
        queue
    }

    #[test]
    fn the_511th_line_of_512_is_one_too_many() {
        assert!(!queue(512, 0..510).is_at_watermark());
        assert!(queue(512, 0..511).is_at_watermark());
        assert!(queue(512, 0..512).has_room(Line(5)) && !queue(512, 0..512).has_room(Line(512)));
    }

    #[test]
    fn the_least_recently_added_leaves_first_however_often_it_is_written() {
        let mut queue = queue(8, [1, 2, 3, 1, 1].into_iter());
        assert_eq!((queue.oldest(), queue.len()), (Some(Line(1)), 3));
        assert_eq!(queue.remove(Line(1)).map(|entry| entry.mask), Some(Mask(1)));
        assert!(!queue.add(Line(1), Mask(2), ()), "added again, behind the remaining entries");
        assert_eq!(queue.oldest(), Some(Line(2)));
        queue.remove(Line(2));
        queue.remove(Line(3));
        assert_eq!(queue.oldest(), Some(Line(1)));
        queue.remove(Line(1));
        assert!(queue.oldest().is_none() && queue.is_empty());
    }

    #[test]
    fn stores_of_a_line_merge_and_keep_what_they_wrote_apart() {
        let mut queue = WriteQueue::<()>::new(4);
        assert!(!queue.add(Line(7), Mask(0b0011), ()) && queue.add(Line(7), Mask(0b0110), ()));
        assert_eq!(queue.get(Line(7)).map(|entry| entry.mask), Some(Mask(0b0111)));
    }

    #[test]
    fn what_leaves_out_of_order_takes_no_room_for_ever() {
        let mut queue = WriteQueue::<()>::new(4);
        queue.add(Line(0), Mask(1), ());
        for line in 1..1000 {
            queue.add(Line(line), Mask(1), ());
            queue.remove(Line(line));
        }
        assert!(queue.order.len() <= 9 && queue.oldest() == Some(Line(0)));
    }
}
