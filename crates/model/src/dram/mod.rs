//! DRAM model for a module, or for a slice group ([`crate::group`]): channels with banks, open rows, and a shared bus
//! per channel.
//!
//! A group's lines are interleaved over its channels. Each channel in the module contributes a row to a stretch of
//! lines. The stretch length equals the total length of these rows. A stream therefore opens a row in each channel
//! once per stretch, with or without groups.
//!
//! An access computes its completion time on issue, in the event at `now`, although the access may become `ready`
//! later; nothing is queued as an event. The gains from FR-FCFS scheduling (first-ready, first-come first-served) are
//! modelled as follows:
//! - A bank remembers the last eight intervals in which a row was or will be open. A request joins such an interval as
//!   a row hit if its row is open, or will be opened for an earlier request. It overtakes older requests for different
//!   rows.
//! - Otherwise the row is opened after everything scheduled in the bank, while the remaining banks work.
//! - The bus is a [`Calendar`] of bursts: data is transferred when ready, independent of request order.
//! - Writes wait in a queue per channel. When the queue is half full, this half drains in a batch sorted by bank and
//!   row. The bus turns around once in each direction if it has read since the previous batch.
//! - A write to a line with a waiting write in the gathering half merges with this write: both use a single entry, and
//!   their bytes are written together. Source: the write queues in gem5 (`mergedWrBursts`) and DRAMsim3.
//! - All banks in a channel are refreshed together, and this closes their rows. A due refresh is postponed until the
//!   channel is idle for the refresh time. Up to eight refreshes stay postponed; any further refresh blocks the
//!   channel.
//!
//! Approximations: a request that joins a row takes bus time but does not keep the row open past a precharge already
//! scheduled. Reads pass between the writes in a batch. A read to a line in the write queue accesses the bank. The
//! hash over slices decides how many lines from a stretch fall into a group's row: `row` on average. Writes use the
//! timings given for reads. An access that arrives while an idle channel is refreshed does not wait. Not modelled:
//! bank groups, write recovery, ECC, power states, closing idle rows, refreshes per bank.

use crate::calendar::{Calendar, FRACTION};
use crate::group::GroupIndex;
use crate::set_index::SetIndex;
use tombolo_engine::prefetch;
use tombolo_metrics::DramRecord;
use tombolo_types::{Bytes, Line, LineSize, Mask, Ps, Rate};

/// Shape and timings of a module's DRAM. All times are spans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DramConfig {
    /// Total bandwidth over all channels.
    pub rate: Rate,
    /// Number of channels in the module, at least 1.
    pub channels: u32,
    /// Number of banks per channel, at least 1.
    pub banks: u32,
    /// Line size.
    pub line: LineSize,
    /// Row size per bank: a power of two, in lines.
    pub row: Bytes,
    /// Smallest transfer; accesses are rounded up to complete bursts.
    pub burst: Bytes,
    /// Column access latency (CL): from a read command to its first data.
    pub t_cas: Ps,
    /// Activate to column access (tRCD): from opening a row to its first column access.
    pub t_rcd: Ps,
    /// Precharge (tRP): from closing a row to opening the next.
    pub t_rp: Ps,
    /// Minimum time from opening a row to closing it (tRAS). `t_ras + t_rp` is tRC, the distance between two rows in a
    /// bank.
    pub t_ras: Ps,
    /// Window for four activations per channel (tFAW), modelled as a single activation per quarter; zero for no limit.
    pub t_faw: Ps,
    /// Bus idle time per write batch after reads, both turnarounds together; rounded up to bursts.
    pub t_turn: Ps,
    /// Refresh interval per channel (tREFI); zero disables refresh.
    pub t_refi: Ps,
    /// Refresh time (tRFC).
    pub t_rfc: Ps,
    /// Write queue capacity per channel, at least 2: half the writes gather while the remaining half drains.
    pub write_queue: u32,
}

/// DRAM counters for a module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DramStats {
    /// Read accesses.
    pub reads: u64,
    /// Write accesses, excluding writes merged with a waiting write.
    pub writes: u64,
    /// Bytes read, in complete bursts.
    pub read_bytes: u64,
    /// Bytes written, in complete bursts.
    pub write_bytes: u64,
    /// Row hits: accesses to a row that is open or about to be opened.
    pub row_hits: u64,
    /// Row misses: accesses to a bank without an open row.
    pub row_misses: u64,
    /// Row conflicts: accesses to a bank with another row open.
    pub row_conflicts: u64,
    /// Bus busy time, turnarounds included, summed over channels.
    pub busy: Ps,
    /// Queueing time: read latency beyond the latency on idle memory with an equal row state, summed.
    pub queueing: Ps,
}

impl DramStats {
    /// Counters in a run's record.
    pub fn record(&self) -> DramRecord {
        let DramStats { read_bytes, write_bytes, row_hits, row_misses, row_conflicts, .. } = *self;
        DramRecord { read_bytes, write_bytes, row_hits, row_misses, row_conflicts }
    }

    /// Adds another module's counters.
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

/// Number of row intervals remembered per bank.
const OPENINGS: usize = 8;

/// Issue time and memory arrival time of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessTiming {
    /// Event time: no later call has an earlier time.
    pub issued: Ps,
    /// Arrival time at memory, `now` or later.
    pub ready: Ps,
}

impl AccessTiming {
    /// Creates an access that is ready when issued.
    pub fn at(now: Ps) -> AccessTiming {
        AccessTiming { issued: now, ready: now }
    }
}

/// Bank state: past, current and scheduled row intervals. Index [`Bank::newest`] is the last row opened; it stays open
/// until another row is needed.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Bank {
    /// Row numbers; [`Bank::NONE`] marks an unused entry.
    rows: [u64; OPENINGS],
    /// First possible column access per interval.
    opens: [Ps; OPENINGS],
    /// Precharge time per interval.
    closes: [Ps; OPENINGS],
    newest: usize,
    /// Activation time of the newest row.
    activated: Ps,
    /// End time of all column accesses scheduled on the newest row.
    busy: Ps,
    /// Number of channel refreshes already applied to this bank.
    refreshes: u64,
}

/// Row state found by an access in its bank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RowState {
    Hit,
    Closed,
    Conflict,
}

/// Row interval usable for an access: index in the bank, row state found, and earliest possible column access.
#[derive(Clone, Copy, Debug)]
struct RowInterval {
    at: usize,
    state: RowState,
    column: Ps,
}

impl Bank {
    const NONE: u64 = u64::MAX;
    /// Row number without any line.
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

    /// Applies channel refreshes, `refreshes` in total since the start: all rows are closed.
    #[inline]
    fn refresh(&mut self, refreshes: u64) {
        if self.refreshes != refreshes {
            self.refreshes = refreshes;
            self.rows = [Bank::NONE; OPENINGS];
        }
    }

    /// Prevents requests from joining any row opened so far.
    fn forget_rows(&mut self) {
        for row in self.rows.iter_mut().filter(|row| **row != Bank::NONE) {
            *row = Bank::USELESS;
        }
    }

    /// Returns the open interval for `row` that a request at `ready` can join.
    #[inline]
    fn joinable(&self, row: u64, ready: Ps) -> Option<RowInterval> {
        let open = |at: &usize| self.rows[*at] == row && ready < self.closes[*at];
        let at = std::iter::once(self.newest).chain(0..OPENINGS).find(open)?;
        Some(RowInterval { at, state: RowState::Hit, column: self.opens[at].max(ready) })
    }

    /// Opens `row` after everything scheduled in the bank, for an access in the event at `timing.issued`.
    #[inline]
    fn open(&mut self, row: u64, timing: AccessTiming, config: &DramConfig, activations: &mut Calendar) -> RowInterval {
        let closed = self.rows[self.newest] == Bank::NONE;
        let may_close = timing.ready.max(self.busy).max(self.activated + config.t_ras);
        let earliest = if closed { timing.ready } else { may_close + config.t_rp };
        let activate = activations.reserve(timing.issued, earliest, 1) - activations.span(1);
        if !closed {
            self.closes[self.newest] = activate - config.t_rp;
        }
        self.newest = (self.newest + 1) % OPENINGS;
        let (at, column) = (self.newest, activate + config.t_rcd);
        (self.rows[at], self.opens[at], self.closes[at]) = (row, column, Ps::NEVER);
        (self.activated, self.busy) = (activate, column);
        RowInterval { at, state: if closed { RowState::Closed } else { RowState::Conflict }, column }
    }
}

/// Accumulated wait intervals, added approximately in order of start time; overlapping intervals count once.
#[derive(Clone, Copy, Debug, Default)]
struct WaitAccumulator {
    /// Total time, without overlaps.
    total: Ps,
    /// Start of the gap-free interval before `until`.
    since: Ps,
    /// End time of the latest wait.
    until: Ps,
}

impl WaitAccumulator {
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

    /// Waiting time before `at`, ignoring gaps after `at`. Monotonic in time.
    fn before(&self, at: Ps) -> Ps {
        self.total - self.until.saturating_sub(at.max(self.since))
    }
}

/// Resources for an access. Ordered by bank, then row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct BankAccess {
    bank: usize,
    row: u64,
    bursts: u64,
}

/// Queued write in the gathering batch.
#[derive(Clone, Copy, Debug)]
struct QueuedWrite {
    line: Line,
    /// Union of the bytes from every write merged into this entry.
    mask: Mask,
    access: BankAccess,
}

#[derive(Clone, Debug)]
struct Channel {
    bus: Calendar,
    /// Bus busy time, turnarounds included.
    busy: Ps,
    activations: Calendar,
    /// Intervals in which accesses waited for earlier accesses.
    waits: WaitAccumulator,
    /// Gathering batch of writes.
    writes: Vec<QueuedWrite>,
    /// Completion time of the last write batch.
    written: Ps,
    /// True if bytes were read since the last write batch.
    has_read: bool,
    /// Earliest time at which the gathering batch can accept another write, because an earlier batch has drained.
    room_at: Ps,
    refresh: Refresh,
}

/// Maximum number of postponed refreshes per channel. Source: JESD79-3 and JESD79-4, refresh command: at most eight
/// may be postponed; assumed for HBM2 as well.
const POSTPONED: u64 = 8;

/// Refresh state for a channel, up to the latest access.
#[derive(Clone, Copy, Debug)]
struct Refresh {
    /// Time at which the next refresh is due.
    due: Ps,
    /// Number of refreshes due but not done.
    owed: u64,
    /// Number of refreshes done.
    done: u64,
    /// End time of all issued accesses.
    idle: Ps,
}

impl Refresh {
    /// Creates the state for channel `index` among `count` channels: their first refreshes are spread over an
    /// interval.
    fn new(config: &DramConfig, index: u32, count: u32) -> Refresh {
        let due = match config.t_refi {
            Ps::ZERO => Ps::NEVER,
            interval => Ps(interval.0 / u64::from(count) * u64::from(index + 1)),
        };
        Refresh { due, owed: 0, done: 0, idle: Ps::ZERO }
    }

    /// Performs due refreshes during the idle time since the previous access, limited by the available time; refreshes
    /// that can no longer be postponed occupy the bus. Returns the time at which the access may start.
    #[inline]
    fn advance(&mut self, timing: AccessTiming, config: &DramConfig, bus: &mut Calendar) -> Ps {
        if timing.ready >= self.due {
            let more = (timing.ready - self.due).0 / config.t_refi.0 + 1;
            self.owed += more;
            self.due += Ps(more * config.t_refi.0);
        }
        if self.owed == 0 {
            return timing.ready;
        }
        let fit = self.owed.min(timing.ready.saturating_sub(self.idle).0 / config.t_rfc.0.max(1));
        self.owed -= fit;
        self.done += fit;
        let forced = self.owed.saturating_sub(POSTPONED);
        if forced == 0 {
            return timing.ready;
        }
        self.owed -= forced;
        self.done += forced;
        let span = Ps(forced * config.t_rfc.0);
        bus.reserve(timing.issued, timing.ready, bus.units(span));
        timing.ready + span
    }
}

/// DRAM state for a module, or for a slice group.
#[derive(Clone, Debug)]
pub struct Dram {
    config: DramConfig,
    /// Interleaving over the module's channels: the quotient determines the row.
    over_module: SetIndex,
    /// Interleaving over this instance's channels.
    over_channels: SetIndex,
    over_banks: SetIndex,
    /// Binary logarithm of lines per row.
    row_shift: u32,
    /// Binary logarithm of the burst size. Sizes must be a power of two.
    burst_shift: u32,
    /// Bus turnaround in both directions, in bursts.
    turn: u64,
    /// Number of writes per batch.
    batch: usize,
    channels: Vec<Channel>,
    /// Banks in channel-major order: bank `b` in channel `c` is `c * banks + b`.
    banks: Vec<Bank>,
    stats: DramStats,
}

impl Dram {
    /// Creates idle memory with every row closed, for all channels. Panics on a shape outside the limits in
    /// [`DramConfig`].
    pub fn new(config: DramConfig) -> Dram {
        Dram::of_group(config, GroupIndex::ONLY)
    }

    /// Creates the channels for one slice group. `config` describes all groups together, with equal channel counts.
    /// Panics on a shape outside the limits in [`DramConfig`].
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
            waits: WaitAccumulator::default(),
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

    /// Reads `bytes` (at most a line) from `line`; returns the arrival time for the last byte.
    #[inline]
    pub fn read(&mut self, timing: AccessTiming, line: Line, bytes: Bytes) -> Ps {
        self.read_behind(timing, line, bytes).0
    }

    /// Like [`Dram::read`]; also returns the time spent waiting for earlier accesses.
    #[inline]
    pub fn read_behind(&mut self, timing: AccessTiming, line: Line, bytes: Bytes) -> (Ps, Ps) {
        let (channel, bank, row) = self.locate(line);
        let bursts = self.bursts(bytes);
        self.stats.reads += 1;
        self.stats.read_bytes += bursts << self.burst_shift;
        self.channels[channel].has_read = true;
        let (done, waited) = self.access(channel, timing, BankAccess { bank, row, bursts });
        self.stats.queueing += waited;
        (done, waited)
    }

    /// Writes bytes of `line`. Returns the time at which the write queue has accepted the write: immediately when
    /// ready, or later if both halves are full.
    #[inline]
    pub fn write(&mut self, timing: AccessTiming, line: Line, mask: Mask) -> Ps {
        let (channel, bank, row) = self.locate(line);
        let bursts_of = |mask: Mask| self.bursts(Bytes(u64::from(mask.grains()) * self.config.line.grain()));
        let queue = &self.channels[channel];
        let accepted = timing.ready.max(queue.room_at);
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
        queue.writes.push(QueuedWrite { line, mask, access: BankAccess { bank, row, bursts: more } });
        if queue.writes.len() == self.batch {
            // The next batch gathers in the half released by the previous batch.
            queue.room_at = queue.written;
            self.drain(channel, AccessTiming { ready: accepted, ..timing });
        }
        accepted
    }

    /// Makes the open row in the bank of `line` useless for later accesses, whichever row they need.
    pub fn close_row(&mut self, line: Line) {
        let (_, bank, _) = self.locate(line);
        self.banks[bank].forget_rows();
    }

    /// Prefetches the data that an access to `line` will read into the host's caches.
    #[inline]
    pub fn prefetch(&self, line: Line) {
        let bank = &self.banks[self.locate(line).1];
        prefetch(&bank.rows);
        prefetch(&bank.opens);
        prefetch(&bank.closes);
        prefetch(&bank.newest);
    }

    /// Time until `at` during which channels had a waiting access, summed over channels.
    pub fn waited_until(&self, at: Ps) -> Ps {
        Ps(self.channels.iter().map(|channel| channel.waits.before(at).0).sum())
    }

    /// Bus busy time per channel, turnarounds included.
    pub fn busy(&self) -> impl Iterator<Item = Ps> {
        self.channels.iter().map(|channel| channel.busy)
    }

    /// Returns the counters accumulated since the start.
    pub fn stats(&self) -> &DramStats {
        &self.stats
    }

    /// Channel, bank (numbered over all channels in this instance) and row of `line`.
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

    /// Schedules an access on its bank and bus; returns the end time, and the time spent waiting for earlier accesses.
    #[inline]
    fn access(&mut self, channel: usize, timing: AccessTiming, access: BankAccess) -> (Ps, Ps) {
        let channel = &mut self.channels[channel];
        let bank = &mut self.banks[access.bank];
        let came = timing.ready;
        let timing = AccessTiming { ready: channel.refresh.advance(timing, &self.config, &mut channel.bus), ..timing };
        bank.refresh(channel.refresh.done);
        let opened = match bank.joinable(access.row, timing.ready) {
            Some(opened) => opened,
            None => bank.open(access.row, timing, &self.config, &mut channel.activations),
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
        let done = channel.bus.reserve(timing.issued, opened.column + self.config.t_cas, access.bursts);
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

    /// Schedules a channel's gathered writes as a batch. Their rows may open while the previous batch still occupies
    /// the bus.
    fn drain(&mut self, channel: usize, timing: AccessTiming) {
        let mut writes = std::mem::take(&mut self.channels[channel].writes);
        writes.sort_unstable_by_key(|write| write.access);
        // Consecutive batches need no bus turnaround in between.
        let turn = if std::mem::take(&mut self.channels[channel].has_read) { self.turn } else { 0 };
        let Channel { bus, busy, .. } = &mut self.channels[channel];
        let turned = bus.reserve(timing.issued, timing.ready, turn);
        self.stats.busy += bus.span(turn);
        *busy += bus.span(turn);
        let ends = writes.iter().map(|&write| self.access(channel, timing, write.access).0);
        let written = ends.fold(turned, Ps::max);
        writes.clear();
        let channel = &mut self.channels[channel];
        (channel.writes, channel.written) = (writes, written);
    }
}

#[cfg(test)]
mod tests;
