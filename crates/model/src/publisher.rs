//! What a module has beside its L2 for published pages: the write queue, the TLB of subscribers behind it, what is under way
//! to subscribers, and what it has received (GPS, section 5).
//!
//! - An entry leaves when the queue is at its watermark, ahead of an atomic or a load of its line, and at a release. Its page's
//!   subscribers are looked up then, and a copy goes to each, as a store at its home there, which acknowledges it.
//! - A module that has as many stores under way as it may keeps entries beyond the watermark. Where the queue is full, a store
//!   waits; those of other lines, and loads, pass it.
//! - Counted beside: bytes that were published and never read before they were written again, or at all; bytes of lines that
//!   crossed and that nobody had written; lines published twice between two releases.
//!
//! What is decided [`tombolo_protocol::publication`] decides. Not here: who subscribes (the driver).

use crate::flags::Flags;
use crate::message::Origin;
use crate::tlb::{Tlb, TlbConfig, TlbStats, Walkers, WalkersConfig};
use crate::watch::Contents;
use crate::write_queue::WriteQueue;
use rustc_hash::{FxHashMap, FxHashSet};
use tombolo_protocol::publication::{Publication, Publishing};
use tombolo_types::{Line, Mask, Page, Ps};

/// Why an entry leaves the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drained {
    /// The queue is at its watermark.
    Watermark,
    /// A release beyond the GPU, the end of a kernel, a page that changes.
    Release,
    /// A load of its line by a module without a replica needs other bytes of it.
    Load,
    /// An atomic of its line.
    Atomic,
}

/// Counters of published pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PublicationStats {
    /// Stores to published pages.
    pub stores: u64,
    /// Of these, stores whose line was in the queue.
    pub queue_hits: u64,
    /// Atomics to published pages.
    pub atomics: u64,
    /// Lines sent, once a subscriber.
    pub published_lines: u64,
    /// Bytes of packets of lines and atomics, headers included.
    pub published_bytes: u64,
    /// Bytes of these lines that nobody had written.
    pub unwritten_bytes: u64,
    /// Of the lines sent, those that had been sent since the last release.
    pub republished_lines: u64,
    /// Bytes received and not read before they were received again.
    pub useless_bytes: u64,
    /// Entries that left, by [`Drained`].
    pub drains: [u64; 4],
    /// Loads of a module without a replica that the queue answered.
    pub forwards: u64,
    /// Those that went to a subscriber.
    pub remote_loads: u64,
}

impl PublicationStats {
    /// Adds those of another module.
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

/// Shape of what publishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublisherConfig {
    /// Lines of the queue.
    pub entries: u32,
    /// The TLB of subscribers.
    pub tlb: TlbConfig,
    /// The walkers behind it.
    pub walkers: WalkersConfig,
    /// Whether what is published takes a place in the L2 of a subscriber that does not hold its line.
    pub allocates: bool,
}

/// The result of an atomic that its issuer gets when all subscribers have the value that it left.
#[derive(Clone, Copy, Debug)]
pub struct HeldAnswer<D> {
    /// Its line.
    pub line: Line,
    /// Who has issued it.
    pub origin: Origin,
    /// What was there before.
    pub data: D,
}

/// What a module has for published pages.
#[derive(Clone)]
pub struct Publisher<D: Contents> {
    /// The rules.
    pub rules: Publication,
    /// What waits to be sent.
    pub queue: WriteQueue<D>,
    /// Whether what others publish takes a place in this L2.
    pub allocates: bool,
    tlb: Tlb,
    walkers: Walkers,
    /// By line: publications that not all have taken yet.
    under_way: FxHashMap<Line, u32>,
    /// By line: atomics that the page's home has not answered yet.
    unanswered: FxHashMap<Line, u32>,
    /// Results that wait for the value to be taken.
    held: Vec<HeldAnswer<D>>,
    /// Bytes received and not read yet.
    unread: FxHashMap<Line, Mask>,
    /// Lines sent since the last release.
    sent: FxHashSet<Line>,
    /// Flags known to the module: they leave with publications, whichever slice has these leave.
    pub flags: Flags,
    /// Counters.
    pub stats: PublicationStats,
}

impl<D: Contents> Publisher<D> {
    /// Nothing is under way.
    pub fn new(config: PublisherConfig, rules: Publication) -> Publisher<D> {
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
            flags: Flags::default(),
            stats: PublicationStats::default(),
        }
    }

    /// What it has under way of a line.
    pub fn publishing(&self, line: Line) -> Publishing<D> {
        Publishing {
            entry: self.queue.get(line),
            under_way: self.under_way.contains_key(&line),
            unanswered: self.unanswered.contains_key(&line),
        }
    }

    /// When the subscribers of a page are known that are looked up at `now`.
    pub fn look_up(&mut self, page: Page, now: Ps) -> Ps {
        self.tlb.lookup(now, page).unwrap_or_else(|| {
            let ready = self.walkers.walk(now);
            self.tlb.fill(page, ready);
            ready
        })
    }

    /// Forgets the subscribers of a page.
    pub fn forget(&mut self, page: Page) {
        self.tlb.invalidate(page);
    }

    /// Counters of the TLB of subscribers.
    pub fn tlb(&self) -> &TlbStats {
        self.tlb.stats()
    }

    /// A line is sent to one subscriber, of which these bytes were written: `bytes` with its header.
    pub fn line_sent(&mut self, line: Line, unwritten: u64, bytes: u64) {
        *self.under_way.entry(line).or_default() += 1;
        self.stats.published_lines += 1;
        self.stats.published_bytes += bytes;
        self.stats.unwritten_bytes += unwritten;
    }

    /// An entry has left: counts its lines as sent again where they are, `copies` of them.
    pub fn entry_left(&mut self, line: Line, cause: Drained, copies: u32) {
        self.stats.drains[cause as usize] += 1;
        if !self.sent.insert(line) {
            self.stats.republished_lines += u64::from(copies);
        }
    }

    /// A release has sent all.
    pub fn released(&mut self) {
        self.sent.clear();
    }

    /// An atomic, or its value, is sent to one subscriber.
    pub fn atomic_sent(&mut self, line: Line, bytes: u64) {
        *self.under_way.entry(line).or_default() += 1;
        self.stats.published_bytes += bytes;
    }

    /// A subscriber has taken something of a line. Returns whether nothing of it is under way any more.
    pub fn taken(&mut self, line: Line) -> bool {
        let left = self.under_way.get_mut(&line).expect("what is taken was sent");
        *left -= 1;
        let over = *left == 0;
        if over {
            self.under_way.remove(&line);
        }
        over
    }

    /// An atomic on a line goes to the page's home.
    pub fn asks(&mut self, line: Line) {
        *self.unanswered.entry(line).or_default() += 1;
    }

    /// The result of an atomic on a line has come.
    pub fn answered(&mut self, line: Line) {
        if let Some(left) = self.unanswered.get_mut(&line) {
            *left -= 1;
            if *left == 0 {
                self.unanswered.remove(&line);
            }
        }
    }

    /// Holds a result back until nothing of its line is under way.
    pub fn hold(&mut self, answer: HeldAnswer<D>) {
        self.held.push(answer);
    }

    /// Results of a line that are held back no longer.
    pub fn let_go(&mut self, line: Line) -> Vec<HeldAnswer<D>> {
        if self.held.is_empty() {
            return Vec::new();
        }
        let (free, held) = std::mem::take(&mut self.held).into_iter().partition(|answer| answer.line == line);
        self.held = held;
        free
    }

    /// Bytes of a line that another has published are here; `grain`: bytes of a bit of the mask.
    pub fn received(&mut self, line: Line, mask: Mask, grain: u64) {
        let unread = self.unread.entry(line).or_default();
        self.stats.useless_bytes += u64::from((*unread & mask).grains()) * grain;
        *unread |= mask;
    }

    /// An SM of this module reads bytes of a line.
    pub fn read(&mut self, line: Line, mask: Mask) {
        if let Some(unread) = self.unread.get_mut(&line) {
            *unread = *unread & !mask;
            if unread.is_empty() {
                self.unread.remove(&line);
            }
        }
    }

    /// Bytes received that nobody has read, with those that were received again.
    pub fn useless_bytes(&self, grain: u64) -> u64 {
        let unread: u64 = self.unread.values().map(|mask| u64::from(mask.grains()) * grain).sum();
        self.stats.useless_bytes + unread
    }

    /// What waits here, for a report of who waits for whom.
    pub fn waiting(&self) -> impl Iterator<Item = String> + '_ {
        let entries = (!self.queue.is_empty()).then(|| format!("{} lines are in the write queue", self.queue.len()));
        let under_way =
            self.under_way.iter().map(|(line, count)| format!("{count} publications of {line} are under way"));
        entries.into_iter().chain(under_way)
    }
}
