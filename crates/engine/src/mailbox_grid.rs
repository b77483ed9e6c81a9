//! Message exchange between threads at the end of a window: one mailbox per pair.
//!
//! A mailbox is locked only while the buffer is swapped for another, by one thread at a time, and no thread ever waits
//! for the lock. The buffers circulate between sender and receiver: in a steady state nothing is allocated.

use crate::event::Event;
use crate::prefetch::prefetch;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Prefetch distance, in events. Loading a line written by another core takes some hundred nanoseconds; the distance
/// matches the number of outstanding misses supported by a core's cache.
const AHEAD: usize = 16;

/// Mailboxes for all pairs of threads. Mailboxes from a thread to itself stay unused.
pub(crate) struct MailboxGrid<M> {
    threads: usize,
    /// Mailboxes indexed by parity of the window, sender and receiver. While one window's messages are still being
    /// collected, the next window's messages go to the second half.
    mailboxes: Vec<Mailbox<M>>,
}

/// Messages from one thread to another. Aligned to separate cache lines, because neighbouring mailboxes belong to
/// different threads.
#[repr(align(128))]
struct Mailbox<M>(Mutex<Vec<Event<M>>>);

impl<M: Copy> MailboxGrid<M> {
    /// Empty mailboxes between `threads` threads.
    pub(crate) fn new(threads: usize) -> MailboxGrid<M> {
        let mailbox = || Mailbox(Mutex::new(Vec::new()));
        MailboxGrid { threads, mailboxes: std::iter::repeat_with(mailbox).take(2 * threads * threads).collect() }
    }

    /// Leaves `events` from thread `from` for thread `to` in window `window`; `events` is empty afterwards.
    pub(crate) fn put(&self, window: u64, from: usize, to: usize, events: &mut Vec<Event<M>>) {
        let mut mailbox = self.mailbox(window, from, to);
        debug_assert!(mailbox.is_empty(), "mail is collected before the window after the next");
        std::mem::swap(&mut *mailbox, events);
    }

    /// Passes all events left for thread `to` in window `window` to `receive`. `spare` is an empty buffer, before and
    /// after the call.
    pub(crate) fn collect(&self, window: u64, to: usize, spare: &mut Vec<Event<M>>, mut receive: impl FnMut(Event<M>)) {
        for from in (0..self.threads).filter(|&from| from != to) {
            std::mem::swap(&mut *self.mailbox(window, from, to), spare);
            spare.iter().take(AHEAD).for_each(prefetch);
            for (index, event) in spare.iter().enumerate() {
                spare.get(index + AHEAD).into_iter().for_each(prefetch);
                receive(*event);
            }
            spare.clear();
        }
    }

    fn mailbox(&self, window: u64, from: usize, to: usize) -> MutexGuard<'_, Vec<Event<M>>> {
        let half = (window % 2) as usize * self.threads * self.threads;
        let mailbox = &self.mailboxes[half + from * self.threads + to];
        // No code panics while a mailbox is locked.
        mailbox.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tombolo_types::{ComponentId, Ps};

    fn collected(exchange: &MailboxGrid<u32>, window: u64, to: usize) -> Vec<u32> {
        let mut received = Vec::new();
        exchange.collect(window, to, &mut Vec::new(), |event| received.push(event.message));
        received
    }

    #[test]
    fn mail_is_collected_once_by_its_receiver_in_its_window() {
        let exchange = MailboxGrid::new(3);
        for (window, from, to, message) in [(0, 0, 1, 1), (0, 2, 1, 2), (1, 2, 1, 3), (1, 1, 0, 4)] {
            let event = Event { time: Ps(1), to: ComponentId(0), from: ComponentId(0), sequence: 0, message };
            let mut parcel = vec![event];
            exchange.put(window, from, to, &mut parcel);
            assert!(parcel.is_empty());
        }
        assert_eq!(collected(&exchange, 0, 1), [1, 2]);
        assert!(collected(&exchange, 0, 1).is_empty() && collected(&exchange, 0, 0).is_empty());
        assert_eq!(collected(&exchange, 1, 1), [3]);
        assert_eq!(collected(&exchange, 1, 0), [4]);
    }
}
