//! The DRAM of one module, or of one group of its slices ([`crate::group`]): channels of banks with open rows behind a shared
//! bus each.
//!
//! Lines of a group are interleaved over its channels. All channels of the module have one row each of a stretch of lines that is
//! as long as these rows together. A stream so opens a row of each channel once a stretch, in groups as without.
//!
//! An access computes when it is done as it is asked for, in the event at `now`, although it may be `ready` only later;
//! nothing is queued as an event. What FR-FCFS scheduling
//! (first-ready, first-come first-served) gains is kept like this:
//! - A bank remembers the last eight times a row was or will be open. A request whose row is open, or will be
//!   opened for one that asked before, joins it as a row hit, ahead of older requests for other rows.
//! - Otherwise its row is opened after everything scheduled in the bank, while other banks work.
//! - The bus is a [`Calendar`] of bursts: data goes when it is ready, whoever asked first.
//! - Writes wait in a queue for each channel. When it is half full that half goes in one batch, sorted by bank
//!   and row, and the bus turns round once there and back where it has read since the batch before.
//! - A write of a line that waits in the half that gathers joins it: both take one place, and their bytes go together. Source:
//!   the write queues of gem5 (`mergedWrBursts`) and DRAMsim3, which do the same.
//! - All banks of a channel are refreshed together, which closes their rows. A refresh that is due is postponed until the
//!   channel is idle for as long as it takes. Of those that do not fit eight stay postponed, and one more holds the channel up.
//!
//! Approximations: a request that joins a row takes its share of the bus but does not keep the row open past a
//! precharge already scheduled. Reads pass between the writes of a batch. A read of a line in the write queue goes to
//! the bank. A row in a group has as many lines of its stretch as the hash over slices gives it: `row` on average.
//! Writes take the timings of reads. An access that comes while an idle channel is refreshed does not wait. Not modelled: bank
//! groups, write recovery, ECC, power states, closing idle rows, refreshes of single banks.

use crate::calendar::{Calendar, FRACTION};
use crate::group::GroupIndex;
use crate::set_index::SetIndex;
use tombolo_engine::prefetch;
use tombolo_types::{Bytes, Line, LineSize, Mask, Ps, Rate};

/// Shape and timings of one module's DRAM. Times are spans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DramConfig {
    /// Bandwidth of all channels together.
    pub rate: Rate,
    /// Channels of the module, at least 1.
    pub channels: u32,
    /// Banks of a channel, at least 1.
    pub banks: u32,
    /// Line size.
    pub line: LineSize,
    /// Row of one bank: a power of two of lines.
    pub row: Bytes,
    /// Smallest transfer; an access is rounded up to whole bursts.
    pub burst: Bytes,
    /// Column access: from a read command to its first data.
    pub t_cas: Ps,
    /// From opening a row to its first column access.
    pub t_rcd: Ps,
    /// From closing a row to opening the next.
    pub t_rp: Ps,
    /// From opening a row to closing it, at least. `t_ras + t_rp` is tRC, between two rows of a bank.
    pub t_ras: Ps,
    /// A channel opens four rows in this span, kept as one in each quarter of it; zero for no such limit.
    pub t_faw: Ps,
    /// The bus idles for this span for each batch of writes behind reads, both turns together; rounded up to bursts.
    pub t_turn: Ps,
    /// From one refresh of a channel to its next (tREFI); zero where there is none.
    pub t_refi: Ps,
    /// What a refresh takes (tRFC).
    pub t_rfc: Ps,
    /// Writes that a channel can hold, at least 2: half of them gather while the other half drain.
    pub write_queue: u32,
}

/// Counters of one module's DRAM.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DramStats {
    /// Read accesses.
    pub reads: u64,
    /// Write accesses, without those that joined one that waited.
    pub writes: u64,
    /// Bytes read, in whole bursts.
    pub read_bytes: u64,
    /// Bytes written, in whole bursts.
    pub write_bytes: u64,
    /// Accesses to a row that is open or about to be.
    pub row_hits: u64,
    /// Accesses to a bank with no row open.
    pub row_misses: u64,
    /// Accesses to a bank with another row open.
    pub row_conflicts: u64,
    /// Time the buses were in use, turns included, summed over channels.
    pub busy: Ps,
    /// Time reads took beyond what their row's state costs on idle memory, summed.
    pub queueing: Ps,
}

impl DramStats {
    /// Adds the counters of another module.
    pub fn merge(&mut self, other: &DramStats) {
        self.reads += other.reads;
        self.writes += other.writes;
        self.read_bytes += other.read_bytes;
        self.write_bytes += other.write_bytes;
        self.row_hits += other.row_hits;
        self.row_misses += other.row_misses;
        self.row_conflicts += other.row_conflicts;
        self.busy += other.busy;
        self.queueing += other.queueing;
    }
}

/// How many openings of rows a bank remembers.
const OPENINGS: usize = 8;

/// When an access is asked for, and when it reaches memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The time of the event: nobody will ask for anything earlier.
    pub now: Ps,
    /// When the access is there, `now` or later.
    pub ready: Ps,
}

impl Asked {
    /// An access that is there as it is asked for.
    pub fn at(now: Ps) -> Asked {
        Asked { now, ready: now }
    }
}

/// One bank: when rows were, are and will be open. Index [`Bank::newest`] is the row open last; it stays open
/// until another is needed.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Bank {
    /// [`Bank::NONE`] where nothing is remembered.
    rows: [u64; OPENINGS],
    /// First column access of each.
    opens: [Ps; OPENINGS],
    /// Precharge of each.
    closes: [Ps; OPENINGS],
    newest: usize,
    /// When the newest row was or will be opened.
    activated: Ps,
    /// When the column accesses scheduled on the newest row are over.
    busy: Ps,
    /// Refreshes of its channel that it has seen.
    refreshes: u64,
}

/// What an access meets in its bank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RowState {
    Hit,
    Closed,
    Conflict,
}

/// A row that an access can use: its index in the bank, what it was, and the first column access possible.
#[derive(Clone, Copy, Debug)]
struct Opened {
    at: usize,
    state: RowState,
    column: Ps,
}

impl Bank {
    const NONE: u64 = u64::MAX;
    /// No line is in this row.
    const USELESS: u64 = u64::MAX - 1;

    fn new() -> Bank {
        Bank {
            rows: [Bank::NONE; OPENINGS],
            opens: [Ps::ZERO; OPENINGS],
            closes: [Ps::ZERO; OPENINGS],
            newest: 0,
            activated: Ps::ZERO,
            busy: Ps::ZERO,
            refreshes: 0,
        }
    }

    /// Its channel has been refreshed since, so many times in all: its rows are closed.
    #[inline]
    fn refresh(&mut self, refreshes: u64) {
        if self.refreshes != refreshes {
            self.refreshes = refreshes;
            self.rows = [Bank::NONE; OPENINGS];
        }
    }

    /// No request joins a row that has been opened so far.
    fn forget_rows(&mut self) {
        for row in self.rows.iter_mut().filter(|row| **row != Bank::NONE) {
            *row = Bank::USELESS;
        }
    }

    /// The opening of `row` that a request at `ready` can join.
    #[inline]
    fn joinable(&self, row: u64, ready: Ps) -> Option<Opened> {
        let open = |at: &usize| self.rows[*at] == row && ready < self.closes[*at];
        let at = std::iter::once(self.newest).chain(0..OPENINGS).find(open)?;
        Some(Opened { at, state: RowState::Hit, column: self.opens[at].max(ready) })
    }

    /// Opens `row` after everything scheduled, for an access of the event at `asked.now`.
    #[inline]
    fn open(&mut self, row: u64, asked: Asked, config: &DramConfig, activations: &mut Calendar) -> Opened {
        let closed = self.rows[self.newest] == Bank::NONE;
        let may_close = asked.ready.max(self.busy).max(self.activated + config.t_ras);
        let earliest = if closed { asked.ready } else { may_close + config.t_rp };
        let activate = activations.reserve(asked.now, earliest, 1) - activations.span(1);
        if !closed {
            self.closes[self.newest] = activate - config.t_rp;
        }
        self.newest = (self.newest + 1) % OPENINGS;
        let (at, column) = (self.newest, activate + config.t_rcd);
        (self.rows[at], self.opens[at], self.closes[at]) = (row, column, Ps::NEVER);
        (self.activated, self.busy) = (activate, column);
        Opened { at, state: if closed { RowState::Closed } else { RowState::Conflict }, column }
    }
}

/// The times at which somebody waited, one wait after the other added by when it began or nearly so.
#[derive(Clone, Copy, Debug, Default)]
struct Waits {
    /// Together, without what overlaps.
    total: Ps,
    /// Since when there was no gap up to `until`.
    since: Ps,
    /// End of the latest.
    until: Ps,
}

impl Waits {
    #[inline]
    fn add(&mut self, from: Ps, until: Ps) {
        if until > self.until && until > from {
            if from > self.until {
                self.since = from;
            }
            self.total += until - from.max(self.until);
            self.until = until;
        }
    }

    /// What lies before `at`, but for gaps after `at`. Never falls as time goes on.
    fn before(&self, at: Ps) -> Ps {
        self.total - self.until.saturating_sub(at.max(self.since))
    }
}

/// What an access needs. Ordered by bank, then row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Access {
    bank: usize,
    row: u64,
    bursts: u64,
}

/// A write in the batch that gathers.
#[derive(Clone, Copy, Debug)]
struct QueuedWrite {
    line: Line,
    /// Bytes of all writes of the line that joined.
    mask: Mask,
    access: Access,
}

#[derive(Clone, Debug)]
struct Channel {
    bus: Calendar,
    /// How long it was in use, turns included.
    busy: Ps,
    activations: Calendar,
    /// When accesses waited for others.
    waits: Waits,
    /// The batch that gathers.
    writes: Vec<QueuedWrite>,
    /// When the last batch of writes is done.
    written: Ps,
    /// Whether bytes were read since.
    has_read: bool,
    /// When the batch that gathers has room.
    room_at: Ps,
    refresh: Refresh,
}

/// Refreshes that a channel may owe. Source: JESD79-3 and JESD79-4, refresh command: at most eight may be postponed; assumed of HBM2
/// likewise.
const POSTPONED: u64 = 8;

/// Refreshes of a channel, up to the latest access.
#[derive(Clone, Copy, Debug)]
struct Refresh {
    /// When the next is due.
    due: Ps,
    /// How many are due and not done.
    owed: u64,
    /// How many are done.
    done: u64,
    /// When all that was asked for is over.
    idle: Ps,
}

impl Refresh {
    /// Of the channel `index` of `count`: all have their first within one interval.
    fn new(config: &DramConfig, index: u32, count: u32) -> Refresh {
        let due = match config.t_refi {
            Ps::ZERO => Ps::NEVER,
            interval => Ps(interval.0 / u64::from(count) * u64::from(index + 1)),
        };
        Refresh { due, owed: 0, done: 0, idle: Ps::ZERO }
    }

    /// What has become due when an access is ready is done in the time since the one before it, as far as it fits; the bus
    /// gives time for what must not be postponed any more. Returns when the access may begin.
    #[inline]
    fn advance(&mut self, asked: Asked, config: &DramConfig, bus: &mut Calendar) -> Ps {
        if asked.ready >= self.due {
            let more = (asked.ready - self.due).0 / config.t_refi.0 + 1;
            self.owed += more;
            self.due += Ps(more * config.t_refi.0);
        }
        if self.owed == 0 {
            return asked.ready;
        }
        let fit = self.owed.min(asked.ready.saturating_sub(self.idle).0 / config.t_rfc.0.max(1));
        self.owed -= fit;
        self.done += fit;
        let forced = self.owed.saturating_sub(POSTPONED);
        if forced == 0 {
            return asked.ready;
        }
        self.owed -= forced;
        self.done += forced;
        let span = Ps(forced * config.t_rfc.0);
        bus.reserve(asked.now, asked.ready, bus.units(span));
        asked.ready + span
    }
}

/// The DRAM of one module, or of one group of its slices.
#[derive(Clone, Debug)]
pub struct Dram {
    config: DramConfig,
    /// Over the channels of the module: the quotient tells the row.
    over_module: SetIndex,
    /// Over the channels that are here.
    over_channels: SetIndex,
    over_banks: SetIndex,
    /// Binary logarithm of lines in a row.
    row_shift: u32,
    /// Binary logarithm of the burst where it is a power of two, as it must be.
    burst_shift: u32,
    /// Turning the bus there and back, in bursts.
    turn: u64,
    /// Writes of a batch.
    batch: usize,
    channels: Vec<Channel>,
    /// Channel-major: bank `b` of channel `c` is `c * banks + b`.
    banks: Vec<Bank>,
    stats: DramStats,
}

impl Dram {
    /// Idle memory with every row closed, all channels. Panics on a shape outside what [`DramConfig`] allows.
    pub fn new(config: DramConfig) -> Dram {
        Dram::of_group(config, GroupIndex::ONLY)
    }

    /// The channels of one group of a module's slices; `config`: those of all groups, which have as many each. Panics on a
    /// shape outside what [`DramConfig`] allows.
    pub fn of_group(config: DramConfig, group: GroupIndex) -> Dram {
        assert!(
            config.channels.is_multiple_of(group.groups),
            "{} groups of {} channels",
            group.groups,
            config.channels
        );
        let channels = config.channels / group.groups;
        let first = group.index * channels;
        let lines_per_row = config.row.0 / config.line.bytes();
        assert!(lines_per_row.is_power_of_two(), "a row of {} is no power of two of lines", config.row);
        assert!(config.burst.0.is_power_of_two(), "a burst of {} is no power of two", config.burst);
        assert!(config.write_queue >= 2, "a write queue needs two places");
        let burst_time = match config.rate.0 {
            0 => 0,
            rate => {
                ((u128::from(config.burst.0 * u64::from(config.channels)) * 1_000_000_000_000) << FRACTION)
                    / u128::from(rate)
            }
        };
        let batch = config.write_queue as usize / 2;
        let bus = Calendar::new(burst_time as u64);
        let channel = |index: u32| Channel {
            bus: bus.clone(),
            busy: Ps::ZERO,
            activations: Calendar::new((config.t_faw.0 << FRACTION) / 4),
            waits: Waits::default(),
            writes: Vec::with_capacity(batch),
            written: Ps::ZERO,
            has_read: false,
            room_at: Ps::ZERO,
            refresh: Refresh::new(&config, index, config.channels),
        };
        Dram {
            config,
            over_module: SetIndex::new(config.channels),
            over_channels: if group.groups == 1 { SetIndex::new(channels) } else { SetIndex::within_slices(channels) },
            over_banks: SetIndex::new(config.banks),
            row_shift: lines_per_row.trailing_zeros(),
            burst_shift: config.burst.0.trailing_zeros(),
            turn: bus.units(config.t_turn),
            batch,
            channels: (first..first + channels).map(channel).collect(),
            banks: vec![Bank::new(); channels as usize * config.banks as usize],
            stats: DramStats::default(),
        }
    }

    /// Reads `bytes` (at most a line) of `line`; returns when the last byte is there.
    #[inline]
    pub fn read(&mut self, asked: Asked, line: Line, bytes: Bytes) -> Ps {
        self.read_behind(asked, line, bytes).0
    }

    /// [`Dram::read`]; returns also how long it waited for other accesses.
    #[inline]
    pub fn read_behind(&mut self, asked: Asked, line: Line, bytes: Bytes) -> (Ps, Ps) {
        let (channel, bank, row) = self.locate(line);
        let bursts = self.bursts(bytes);
        self.stats.reads += 1;
        self.stats.read_bytes += bursts << self.burst_shift;
        self.channels[channel].has_read = true;
        let (done, waited) = self.access(channel, asked, Access { bank, row, bursts });
        self.stats.queueing += waited;
        (done, waited)
    }

    /// Writes bytes of `line`; returns when the write queue has taken them: as they are there, or later where both halves of it
    /// are full.
    #[inline]
    pub fn write(&mut self, asked: Asked, line: Line, mask: Mask) -> Ps {
        let (channel, bank, row) = self.locate(line);
        let bursts_of = |mask: Mask| self.bursts(Bytes(u64::from(mask.grains()) * self.config.line.grain()));
        let queue = &self.channels[channel];
        let accepted = asked.ready.max(queue.room_at);
        let waiting = queue.writes.iter().rposition(|write| write.line == line);
        let before = waiting.map_or(Mask::NONE, |at| queue.writes[at].mask);
        let (mask, more) = (before | mask, bursts_of(before | mask) - bursts_of(before));
        self.stats.write_bytes += more << self.burst_shift;
        let queue = &mut self.channels[channel];
        if let Some(at) = waiting {
            let write = &mut queue.writes[at];
            write.mask = mask;
            write.access.bursts += more;
            return accepted;
        }
        self.stats.writes += 1;
        queue.writes.push(QueuedWrite { line, mask, access: Access { bank, row, bursts: more } });
        if queue.writes.len() == self.batch {
            // The next batch gathers in the half that the one ahead leaves.
            queue.room_at = queue.written;
            self.drain(channel, Asked { ready: accepted, ..asked });
        }
        accepted
    }

    /// The row that is open in the bank of `line` is of no use to whoever comes next, whatever row that wants.
    pub fn close_row(&mut self, line: Line) {
        let (_, bank, _) = self.locate(line);
        self.banks[bank].forget_rows();
    }

    /// Starts to load what an access to `line` will read into the host's caches.
    #[inline]
    pub fn prefetch(&self, line: Line) {
        let bank = &self.banks[self.locate(line).1];
        prefetch(&bank.rows);
        prefetch(&bank.opens);
        prefetch(&bank.closes);
        prefetch(&bank.newest);
    }

    /// How long, up to `at`, channels had an access waiting for others: the sum over channels.
    pub fn waited_until(&self, at: Ps) -> Ps {
        Ps(self.channels.iter().map(|channel| channel.waits.before(at).0).sum())
    }

    /// How long the bus of each channel was in use, turns included.
    pub fn busy(&self) -> impl Iterator<Item = Ps> {
        self.channels.iter().map(|channel| channel.busy)
    }

    /// Counters so far.
    pub fn stats(&self) -> &DramStats {
        &self.stats
    }

    /// Channel, bank (over all channels that are here) and row of `line`.
    #[inline]
    fn locate(&self, line: Line) -> (usize, usize, u64) {
        let channel = self.over_channels.index(line.0);
        let (in_channel, _) = self.over_module.split(line.0);
        let (row, bank) = self.over_banks.place(in_channel >> self.row_shift);
        (channel, channel * self.config.banks as usize + bank, row)
    }

    #[inline]
    fn bursts(&self, bytes: Bytes) -> u64 {
        (bytes.0 + self.config.burst.0 - 1) >> self.burst_shift
    }

    /// Schedules one access; returns its end, and how long it waited for others.
    #[inline]
    fn access(&mut self, channel: usize, asked: Asked, access: Access) -> (Ps, Ps) {
        let channel = &mut self.channels[channel];
        let bank = &mut self.banks[access.bank];
        let came = asked.ready;
        let asked = Asked { ready: channel.refresh.advance(asked, &self.config, &mut channel.bus), ..asked };
        bank.refresh(channel.refresh.done);
        let opened = match bank.joinable(access.row, asked.ready) {
            Some(opened) => opened,
            None => bank.open(access.row, asked, &self.config, &mut channel.activations),
        };
        let opening = match opened.state {
            RowState::Hit => {
                self.stats.row_hits += 1;
                Ps::ZERO
            }
            RowState::Closed => {
                self.stats.row_misses += 1;
                self.config.t_rcd
            }
            RowState::Conflict => {
                self.stats.row_conflicts += 1;
                self.config.t_rcd + self.config.t_rp
            }
        };
        let work = channel.bus.span(access.bursts);
        let done = channel.bus.reserve(asked.now, opened.column + self.config.t_cas, access.bursts);
        self.stats.busy += work;
        channel.busy += work;
        if opened.at == bank.newest {
            bank.busy = bank.busy.max(done - self.config.t_cas);
        }
        channel.refresh.idle = channel.refresh.idle.max(done);
        let (ready, starts) = (came + opening + self.config.t_cas, done - work);
        channel.waits.add(ready, starts);
        (done, starts.saturating_sub(ready))
    }

    /// Schedules the gathered writes of a channel as one batch. Their rows may open while the batch ahead is
    /// still on the bus.
    fn drain(&mut self, channel: usize, asked: Asked) {
        let mut writes = std::mem::take(&mut self.channels[channel].writes);
        writes.sort_unstable_by_key(|write| write.access);
        // Batches that follow each other go the same way.
        let turn = if std::mem::take(&mut self.channels[channel].has_read) { self.turn } else { 0 };
        let Channel { bus, busy, .. } = &mut self.channels[channel];
        let turned = bus.reserve(asked.now, asked.ready, turn);
        self.stats.busy += bus.span(turn);
        *busy += bus.span(turn);
        let ends = writes.iter().map(|&write| self.access(channel, asked, write.access).0);
        let written = ends.fold(turned, Ps::max);
        writes.clear();
        let channel = &mut self.channels[channel];
        (channel.writes, channel.written) = (writes, written);
    }
}

#[cfg(test)]
mod tests;
