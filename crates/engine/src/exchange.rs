//! What partitions on several threads have for each other: one mailbox for each pair.
//!
//! A mailbox is locked only while a buffer is swapped or emptied into it, never while anything is handled,
//! and its buffers go round between the two sides: in a steady state nothing is allocated. Mail may lie until
//! its receiver has something to do, and may be fetched in the very window it was sent in: it is never due
//! before the next one.

use crate::event::Event;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The mailboxes of all pairs of partitions.
pub(crate) struct Exchange<M> {
    partitions: usize,
    /// By sender, then receiver.
    mailboxes: Vec<Mutex<Vec<Event<M>>>>,
    /// For each receiver, which senders may have left something: a bit each, in words of 64.
    senders: Vec<AtomicU64>,
}

impl<M> Exchange<M> {
    /// Empty mailboxes between so many partitions.
    pub(crate) fn new(partitions: usize) -> Exchange<M> {
        let words = partitions * partitions.div_ceil(64);
        Exchange {
            partitions,
            mailboxes: (0..partitions * partitions).map(|_| Mutex::new(Vec::new())).collect(),
            senders: (0..words).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// Leaves `events` of partition `from` for partition `to`; they are empty afterwards.
    pub(crate) fn put(&self, from: usize, to: usize, events: &mut Vec<Event<M>>) {
        let mut mailbox = self.mailbox(from, to);
        if mailbox.is_empty() {
            std::mem::swap(&mut *mailbox, events);
        } else {
            mailbox.append(events);
        }
        drop(mailbox);
        let word = to * self.partitions.div_ceil(64) + from / 64;
        self.senders[word].fetch_or(1 << (from % 64), Ordering::Release);
    }

    /// Gives all that has been left for partition `to` to `receive`. `spare` is an empty buffer, before and
    /// after.
    pub(crate) fn collect(&self, to: usize, spare: &mut Vec<Event<M>>, mut receive: impl FnMut(Event<M>)) {
        let words = self.partitions.div_ceil(64);
        for word in 0..words {
            let senders = &self.senders[to * words + word];
            if senders.load(Ordering::Relaxed) == 0 {
                continue;
            }
            let mut bits = senders.swap(0, Ordering::Acquire);
            while bits != 0 {
                let from = word * 64 + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                std::mem::swap(&mut *self.mailbox(from, to), spare);
                spare.drain(..).for_each(&mut receive);
            }
        }
    }

    fn mailbox(&self, from: usize, to: usize) -> MutexGuard<'_, Vec<Event<M>>> {
        let mailbox = &self.mailboxes[from * self.partitions + to];
        // Nothing panics while it holds a mailbox, short of running out of memory.
        mailbox.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tombolo_types::{ComponentId, Ps};

    fn collected(exchange: &Exchange<u32>, to: usize) -> Vec<u32> {
        let mut received = Vec::new();
        exchange.collect(to, &mut Vec::new(), |event| received.push(event.message));
        received
    }

    fn event(message: u32) -> Event<u32> {
        Event { time: Ps(1), to: ComponentId(0), from: ComponentId(0), sequence: message, message }
    }

    #[test]
    fn what_is_left_is_collected_once_by_its_receiver() {
        let exchange = Exchange::new(130);
        for (from, message) in [(0, 1), (63, 2), (64, 3), (129, 4), (63, 5)] {
            let mut parcel = vec![event(message)];
            exchange.put(from, 129, &mut parcel);
            assert!(parcel.is_empty());
        }
        assert!(collected(&exchange, 128).is_empty());
        assert_eq!(collected(&exchange, 129), [1, 2, 5, 3, 4], "by sender, each in its order");
        assert!(collected(&exchange, 129).is_empty());
    }
}
