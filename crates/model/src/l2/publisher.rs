//! State for published pages next to a module's L2: the write queue, the subscriber TLB behind it, publications in
//! flight to subscribers, and received updates (GPS, section 5).
//!
//! - An entry leaves when the queue is at its watermark, ahead of an atomic or a load to its line, and at a release.
//!   The page's subscribers are looked up at this time. Each subscriber gets a copy, in a store to the subscriber's
//!   home, and acknowledges the store.
//! - A module at the limit for stores in flight keeps entries beyond the watermark. If the queue is full, a store
//!   waits; stores to different lines, and loads, overtake this store.
//! - Additional counters: bytes published and never read before being overwritten, or never read at all; unwritten
//!   bytes in transferred lines; lines published twice between two releases.
//!
//! [`tombolo_protocol::publication`] makes all decisions. Not here: the choice of subscribers, made by the driver. A
//! page is published if several modules subscribe to its updates and hold replicas.

use crate::memory::write_queue::WriteQueue;
use crate::message::ReplyDestination;
use crate::observe::value_probe::Contents;
use crate::sm::flags::Flags;
use crate::sm::tlb::{Tlb, TlbConfig, TlbStats, Walkers, WalkersConfig};
use rustc_hash::{FxHashMap, FxHashSet};
use tombolo_protocol::publication::{PendingPublications, Publication};
use tombolo_types::{Line, Mask, Page, Ps};

/// Reason why an entry leaves the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DrainCause {
    /// The queue has reached the watermark.
    Watermark,
    /// A release beyond the GPU, a kernel's end, or a page change.
    Release,
    /// A load by a module without a replica needs unwritten bytes of the line.
    Load,
    /// An atomic to the line.
    Atomic,
}

/// Counters for published pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PublicationStats {
    /// Stores to published pages.
    pub stores: u64,
    /// Stores whose line was already in the queue.
    pub queue_hits: u64,
    /// Atomics to published pages.
    pub atomics: u64,
    /// Lines sent, counted per subscriber.
    pub published_lines: u64,
    /// Bytes in line and atomic packets, headers included.
    pub published_bytes: u64,
    /// Unwritten bytes in the lines sent.
    pub unwritten_bytes: u64,
    /// Lines sent again after an earlier send since the last release.
    pub republished_lines: u64,
    /// Bytes received again before the earlier ones were read.
    pub(crate) useless_bytes: u64,
    /// Entries removed from the queue, indexed by [`DrainCause`].
    pub drains: [u64; 4],
    /// Loads answered from the queue, by a module without a replica.
    pub forwards: u64,
    /// Loads sent to a subscriber, by a module without a replica.
    pub remote_loads: u64,
}

impl PublicationStats {
    /// Adds another module's counters.
    pub fn merge(&mut self, other: &PublicationStats) {
        self.stores += other.stores;
        self.queue_hits += other.queue_hits;
        self.atomics += other.atomics;
        self.published_lines += other.published_lines;
        self.published_bytes += other.published_bytes;
        self.unwritten_bytes += other.unwritten_bytes;
        self.republished_lines += other.republished_lines;
        self.useless_bytes += other.useless_bytes;
        self.drains.iter_mut().zip(other.drains).for_each(|(mine, theirs)| *mine += theirs);
        self.forwards += other.forwards;
        self.remote_loads += other.remote_loads;
    }
}

/// Shape of a publisher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PublisherConfig {
    /// Lines in the queue.
    pub(crate) entries: u32,
    /// The subscriber TLB.
    pub(crate) tlb: TlbConfig,
    /// Walkers behind the TLB.
    pub(crate) walkers: WalkersConfig,
    /// Set if an update allocates a line in a subscriber's L2 when the line is absent.
    pub(crate) allocates: bool,
}

/// Result of an atomic, held back until all subscribers have received the new value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeldReply<D> {
    /// Line of the atomic.
    pub(crate) line: Line,
    /// Requester.
    pub(crate) origin: ReplyDestination,
    /// Previous contents.
    pub(crate) data: D,
}

/// A module's state for published pages.
#[derive(Clone)]
pub struct Publisher<D: Contents> {
    /// Publication rules.
    pub(crate) rules: Publication,
    /// Stores waiting to be sent.
    pub(crate) queue: WriteQueue<D>,
    /// Set if updates from other modules allocate lines in this L2.
    pub(crate) allocates: bool,
    tlb: Tlb,
    walkers: Walkers,
    /// Publications not yet acknowledged by all subscribers, by line.
    under_way: FxHashMap<Line, u32>,
    /// Atomics not yet answered by the page's home, by line.
    unanswered: FxHashMap<Line, u32>,
    /// Results that wait until their value has been accepted.
    held: Vec<HeldReply<D>>,
    /// Bytes received and not yet read.
    unread: FxHashMap<Line, Mask>,
    /// Lines sent since the last release.
    sent: FxHashSet<Line>,
    /// Number of lines and atomics sent, accepted, asked and answered.
    changes: u64,
    /// Flags known to the module. All leave with publications, regardless of the slice.
    pub(crate) flags: Flags,
    /// Counters.
    pub stats: PublicationStats,
}

impl<D: Contents> Publisher<D> {
    /// State with nothing in flight.
    pub(crate) fn new(config: PublisherConfig, rules: Publication) -> Publisher<D> {
        Publisher {
            rules,
            queue: WriteQueue::new(config.entries),
            allocates: config.allocates,
            tlb: Tlb::new(config.tlb),
            walkers: Walkers::new(config.walkers),
            under_way: FxHashMap::default(),
            unanswered: FxHashMap::default(),
            held: Vec::new(),
            unread: FxHashMap::default(),
            sent: FxHashSet::default(),
            changes: 0,
            flags: Flags::default(),
            stats: PublicationStats::default(),
        }
    }

    /// Publication state of a line.
    pub(crate) fn publishing(&self, line: Line) -> PendingPublications<D> {
        PendingPublications {
            entry: self.queue.get(line),
            under_way: self.under_way.contains_key(&line),
            unanswered: self.unanswered.contains_key(&line),
        }
    }

    /// Number of changes so far to the publication state of all lines ([`Publisher::publishing`]).
    pub(crate) fn changes(&self) -> u64 {
        self.changes + self.queue.changes()
    }

    /// Time when a page's subscribers are known after a lookup at `now`.
    pub(crate) fn look_up(&mut self, page: Page, now: Ps) -> Ps {
        self.tlb.lookup(now, page).unwrap_or_else(|| {
            let ready = self.walkers.walk(now);
            self.tlb.fill(page, ready);
            ready
        })
    }

    /// Forgets a page's subscribers.
    pub(crate) fn forget(&mut self, page: Page) {
        self.tlb.invalidate(page);
    }

    /// Counters for the subscriber TLB.
    pub fn tlb(&self) -> &TlbStats {
        self.tlb.stats()
    }

    /// Counts a line sent to one subscriber. `unwritten`: bytes in the line that were never written; `bytes`: size of
    /// the packet, including its header.
    pub(crate) fn line_sent(&mut self, line: Line, unwritten: u64, bytes: u64) {
        self.changes += 1;
        *self.under_way.entry(line).or_default() += 1;
        self.stats.published_lines += 1;
        self.stats.published_bytes += bytes;
        self.stats.unwritten_bytes += unwritten;
    }

    /// Counts a removed entry; if the line was sent before, counts the `copies` as sent again.
    pub(crate) fn entry_left(&mut self, line: Line, cause: DrainCause, copies: u32) {
        self.stats.drains[cause as usize] += 1;
        if !self.sent.insert(line) {
            self.stats.republished_lines += u64::from(copies);
        }
    }

    /// A release has sent all entries.
    pub(crate) fn released(&mut self) {
        self.sent.clear();
    }

    /// Counts an atomic, or the resulting value, sent to a subscriber.
    pub(crate) fn atomic_sent(&mut self, line: Line, bytes: u64) {
        self.changes += 1;
        *self.under_way.entry(line).or_default() += 1;
        self.stats.published_bytes += bytes;
    }

    /// A subscriber has accepted an update to a line. Returns true if no more are in flight.
    pub(crate) fn taken(&mut self, line: Line) -> bool {
        self.changes += 1;
        let left = self.under_way.get_mut(&line).expect("what is taken was sent");
        *left -= 1;
        let over = *left == 0;
        if over {
            self.under_way.remove(&line);
        }
        over
    }

    /// True if an atomic to one of the lines chosen by `on_page` has not been answered by the page's home.
    pub(crate) fn has_unanswered(&self, on_page: impl Fn(Line) -> bool) -> bool {
        self.unanswered.keys().any(|line| on_page(*line))
    }

    /// Counts an atomic on a line sent to the page's home.
    pub(crate) fn asks(&mut self, line: Line) {
        self.changes += 1;
        *self.unanswered.entry(line).or_default() += 1;
    }

    /// The result of an atomic on a line has arrived.
    pub(crate) fn answered(&mut self, line: Line) {
        self.changes += 1;
        if let Some(left) = self.unanswered.get_mut(&line) {
            *left -= 1;
            if *left == 0 {
                self.unanswered.remove(&line);
            }
        }
    }

    /// Holds back a result until no publication of its line is in flight: then every subscriber has the new value.
    pub(crate) fn hold(&mut self, answer: HeldReply<D>) {
        self.held.push(answer);
    }

    /// Releases and returns the held results for a line.
    pub(crate) fn let_go(&mut self, line: Line) -> Vec<HeldReply<D>> {
        if self.held.is_empty() {
            return Vec::new();
        }
        let (free, held) = std::mem::take(&mut self.held).into_iter().partition(|answer| answer.line == line);
        self.held = held;
        free
    }

    /// Records published bytes received for a line; `grain`: bytes per mask bit.
    pub(crate) fn received(&mut self, line: Line, mask: Mask, grain: u64) {
        let unread = self.unread.entry(line).or_default();
        self.stats.useless_bytes += u64::from((*unread & mask).grains()) * grain;
        *unread |= mask;
    }

    /// Records a read by an SM in this module, for bytes in a line.
    pub(crate) fn read(&mut self, line: Line, mask: Mask) {
        if let Some(unread) = self.unread.get_mut(&line) {
            *unread = *unread & !mask;
            if unread.is_empty() {
                self.unread.remove(&line);
            }
        }
    }

    /// Useless bytes: received bytes never read, plus bytes received again before a read.
    pub fn useless_bytes(&self, grain: u64) -> u64 {
        let unread: u64 = self.unread.values().map(|mask| u64::from(mask.grains()) * grain).sum();
        self.stats.useless_bytes + unread
    }

    /// Queued and in-flight publications, for the deadlock report.
    pub fn waiting(&self) -> impl Iterator<Item = String> + '_ {
        let entries = (!self.queue.is_empty()).then(|| format!("{} lines are in the write queue", self.queue.len()));
        let under_way =
            self.under_way.iter().map(|(line, count)| format!("{count} publications of {line} are under way"));
        entries.into_iter().chain(under_way)
    }
}
