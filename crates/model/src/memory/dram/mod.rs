//! DRAM model for a module, or for a slice group ([`crate::l2::group`]): channels with banks, open rows, and a command
//! scheduler per channel.
//!
//! A group's lines are interleaved over its channels. Each channel in the module contributes a row to a stretch of
//! lines. The stretch length equals the total length of these rows. A stream therefore opens a row in each channel
//! once per stretch, with or without groups.
//!
//! An access computes its completion time on issue, in the event at `now`, although the access may become `ready`
//! later; nothing is queued as an event. A channel reserves its commands in two calendars, in any order of time:
//! - Column commands, each with a burst on the data bus: a burst apart (tCCD_S), and tCCD_L apart inside a bank group.
//! - Activations: tRRD_S apart, and tRRD_L apart inside a bank group. The window for four activations (tFAW) is
//!   modelled as an activation per quarter.
//!
//! The gains from FR-FCFS scheduling (first-ready, first-come first-served) are modelled as follows:
//! - A bank remembers the last eight intervals in which a row was or will be open. A request joins such an interval as
//!   a row hit if its row is open, or will be opened for an earlier request. It overtakes older requests for different
//!   rows.
//! - Otherwise the row is opened after everything scheduled in the bank, while the remaining banks work.
//! - Writes wait in a queue per channel. With the queue half full, a batch drains: the writes whose banks are ready, in
//!   the order of banks and rows. The batch takes the data bus as soon as the reads already scheduled leave room. Later
//!   reads follow after the batch and the turnaround time.
//! - A write to a line with a waiting write in the gathering half merges with this write: both use a single entry, and
//!   their bytes are written together. Source: the write queues in gem5 (`mergedWrBursts`) and DRAMsim3.
//! - Refreshes close rows when due ([`RefreshScope`]).
//!
//! Memory moves aligned atoms: an access takes the bursts for every atom with a requested byte.
//!
//! Approximations: a request that joins a row takes bus time but does not keep the row open past a precharge already
//! scheduled. A read to a line in the write queue accesses the bank. The hash over slices decides how many lines from a
//! stretch fall into a group's row: `row` on average. Not modelled: refreshes of a whole channel
//! that are postponed, ECC, power states, closing idle
//! rows, reads in a partially written atom.

mod bank;

use crate::calendar::{Calendar, Distances, FRACTION};
use crate::l2::group::GroupIndex;
use crate::l2::set_index::SetIndex;
use bank::{Bank, ChannelRefresh, RowState};
use std::collections::VecDeque;
use std::mem::take;
use tombolo_engine::prefetch;
use tombolo_metrics::DramRecord;
use tombolo_types::{Bytes, Line, LineSize, Mask, Ps, Rate, Sectors};

pub use tombolo_machine::machine::RefreshScope;

/// Shape and timings of a module's DRAM. All times are spans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DramConfig {
    /// Total bandwidth over all channels.
    pub rate: Rate,
    /// Number of channels in the module, at least 1.
    pub channels: u32,
    /// Number of banks per channel, at least 1.
    pub banks: u32,
    /// Number of bank groups per channel, a power of two: bank `b` belongs to group `b % bank_groups`.
    pub bank_groups: u32,
    /// Line size.
    pub line: LineSize,
    /// Row size per bank: a power of two, in lines.
    pub row: Bytes,
    /// Bytes per column command: a power of two.
    pub burst: Bytes,
    /// Smallest aligned access: a power of two, from a burst to a line.
    pub atom: Bytes,
    /// Column access latency (CL): from a read command to its first data.
    pub t_cas: Ps,
    /// Write latency (CWL): from a write command to its first data.
    pub t_cwl: Ps,
    /// Minimum distance between column commands to a bank group (tCCD_L), rounded to half bursts.
    pub t_ccd_l: Ps,
    /// Activate to column access (tRCD): from opening a row to its first column access.
    pub t_rcd: Ps,
    /// Precharge (tRP): from closing a row to opening the next.
    pub t_rp: Ps,
    /// Minimum time from opening a row to closing it (tRAS). `t_ras + t_rp` is tRC, the distance between two rows in a
    /// bank.
    pub t_ras: Ps,
    /// Minimum distance between activations in a channel (tRRD_S).
    pub t_rrd_s: Ps,
    /// Minimum distance between activations in a bank group (tRRD_L).
    pub t_rrd_l: Ps,
    /// Window for four activations per channel (tFAW), modelled as a single activation per quarter; zero for no limit.
    pub t_faw: Ps,
    /// Read command to precharge (tRTP).
    pub t_rtp: Ps,
    /// Write recovery (tWR): from the last written data to precharge.
    pub t_wr: Ps,
    /// Bus idle time between written data and the next read data.
    pub t_turn: Ps,
    /// Banks that are refreshed together.
    pub refresh: RefreshScope,
    /// Refresh interval for a bank (tREFI); zero disables refresh.
    pub t_refi: Ps,
    /// Refresh time (tRFC).
    pub t_rfc: Ps,
    /// Write queue capacity per channel, at least 2: half the writes gather while the remaining half drains.
    pub write_queue: u32,
}

impl DramConfig {
    /// Minimum distance between activations in a channel: the larger of tRRD_S and a quarter of tFAW.
    fn activation_gap(&self) -> Ps {
        self.t_rrd_s.max(Ps(self.t_faw.0.div_ceil(4)))
    }

    /// Distance between two rows in a bank that are written, without the time for data.
    fn write_cycle(&self) -> Ps {
        (self.t_ras + self.t_rp).max(self.t_rcd + self.t_cwl + self.t_wr + self.t_rp)
    }
}

/// DRAM counters for a module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DramStats {
    /// Read accesses.
    pub reads: u64,
    /// Write accesses, excluding writes merged with a waiting write.
    pub writes: u64,
    /// Bytes read, in complete atoms.
    pub read_bytes: u64,
    /// Bytes written, in complete atoms.
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
    pub(crate) fn merge(&mut self, other: &DramStats) {
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

/// Issue time and memory arrival time of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessTiming {
    /// Event time: no later call has an earlier time.
    pub(crate) issued: Ps,
    /// Arrival time at memory, `now` or later.
    pub(crate) ready: Ps,
}

impl AccessTiming {
    /// Creates an access that is ready when issued.
    pub fn at(now: Ps) -> AccessTiming {
        AccessTiming { issued: now, ready: now }
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

/// Direction of an access on the data bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Read,
    /// Write in a batch, with data at this time at the earliest.
    Write {
        from: Ps,
    },
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

/// Rows in a bank selected for a batch of writes.
#[derive(Clone, Copy, Debug, Default)]
struct Selected {
    rows: u32,
    /// The last row, if any.
    row: u64,
}

/// Number of reserved units in a word of the bus calendar, below which a batch of writes starts among the last reads.
/// Source: fitted, with the quarter in [`Dram::select`], to mixes of reads and writes in DRAMsim3 and Ramulator 2
/// (`tests/data/dram.csv`).
const SPARSE: u32 = 40;

#[derive(Clone, Debug)]
struct Channel {
    /// Column commands, by the first unit of their bursts on the data bus.
    columns: Calendar,
    activations: Calendar,
    /// Bus busy time, turnarounds included.
    busy: Ps,
    /// Intervals in which accesses waited for earlier accesses.
    waits: WaitAccumulator,
    /// Gathering writes, oldest first.
    writes: Vec<QueuedWrite>,
    /// Writes of the current batch; empty between batches.
    batch: Vec<BankAccess>,
    /// Completion time of the last write batch.
    written: Ps,
    /// Start of the last write batch, if no read was scheduled since: the bus has not turned yet.
    writing: Option<Ps>,
    /// End of all scheduled accesses.
    end: Ps,
    /// Times at which scheduled writes leave the queue, in order.
    leaving: VecDeque<Ps>,
    refresh: ChannelRefresh,
}

impl Channel {
    /// Time from which the write queue, with `capacity` entries, has room for another write.
    #[inline]
    fn room(&mut self, now: Ps, capacity: usize) -> Ps {
        while self.leaving.front().is_some_and(|&leaves| leaves <= now) {
            self.leaving.pop_front();
        }
        if self.writes.len() + self.leaving.len() < capacity {
            return Ps::ZERO;
        }
        self.leaving.pop_front().unwrap_or_default()
    }

    /// Turns the bus to reads, after the last write batch.
    #[cold]
    fn turn(&mut self, now: Ps, turn: Ps, stats: &mut DramStats) {
        self.columns.open_window(now, self.written, self.written + turn);
        self.busy += turn;
        stats.busy += turn;
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
    /// Atoms of a line.
    atoms: Sectors,
    /// Binary logarithm of bursts per grain, and of grains per burst; one of them is 0.
    bursts_per_grain: u32,
    grains_per_burst: u32,
    /// Binary logarithm of the burst size.
    burst_shift: u32,
    /// Time of a burst on the data bus.
    burst_time: BurstTime,
    /// Number of gathered writes that start a batch.
    batch: usize,
    /// Rows selected for a batch, by bank in a channel.
    selected: Vec<Selected>,
    channels: Vec<Channel>,
    /// Banks in channel-major order: bank `b` in channel `c` is `c * banks + b`.
    banks: Vec<Bank>,
    stats: DramStats,
}

/// Duration of a burst, in 2^-16 ps.
#[derive(Clone, Copy, Debug)]
struct BurstTime(u64);

impl BurstTime {
    fn new(config: &DramConfig) -> BurstTime {
        let fraction = (u128::from(config.burst.0 * u64::from(config.channels)) * 1_000_000_000_000) << FRACTION;
        BurstTime(fraction.checked_div(config.rate.0.into()).unwrap_or(0) as u64)
    }

    #[inline]
    fn span(self, bursts: u64) -> Ps {
        Ps((bursts * self.0) >> FRACTION)
    }

    /// Calendar for column commands: tCCD_L in units of a burst, or of half a burst if this is closer.
    fn columns(self, config: &DramConfig) -> Calendar {
        let halves = ((config.t_ccd_l.0 << FRACTION) * 2 + self.0 / 2).checked_div(self.0).unwrap_or(2);
        let halves = if config.bank_groups == 1 { 2 } else { halves.clamp(2, 32) };
        let (parts, any, group) = if halves % 2 == 0 { (1, 1, halves / 2) } else { (2, 2, halves) };
        Calendar::with_distances(self.0 / parts, Distances { groups: config.bank_groups, any, group })
    }
}

/// Calendar for activations.
fn activations(config: &DramConfig) -> Calendar {
    let unit = config.activation_gap().0;
    let group = if config.bank_groups == 1 { 1 } else { config.t_rrd_l.0.div_ceil(unit.max(1)).clamp(1, 32) };
    Calendar::with_distances(unit << FRACTION, Distances { groups: config.bank_groups, any: 1, group })
}

impl Dram {
    /// Creates idle memory with every row closed, for all channels. Panics on a shape outside the limits in
    /// [`DramConfig`].
    pub fn new(config: DramConfig) -> Dram {
        Dram::of_group(config, GroupIndex::ONLY)
    }

    /// Creates the channels for one slice group. `config` describes all groups together, with equal channel counts.
    /// Panics on a shape outside the limits in [`DramConfig`].
    pub(crate) fn of_group(config: DramConfig, group: GroupIndex) -> Dram {
        assert!(
            config.channels.is_multiple_of(group.groups),
            "{} groups of {} channels",
            group.groups,
            config.channels
        );
        let channels = config.channels / group.groups;
        let first = group.index * channels;
        let lines_per_row = config.row.0 / config.line.bytes();
        let (line, grain) = (config.line.bytes(), config.line.grain());
        assert!(lines_per_row.is_power_of_two(), "a row of {} is no power of two of lines", config.row);
        assert!(config.burst.0.is_power_of_two(), "a burst of {} is no power of two", config.burst);
        let atom = config.atom.0.clamp(config.burst.0, line.max(config.burst.0));
        assert!(atom.is_power_of_two(), "an atom of {} is no power of two", config.atom);
        assert!(config.bank_groups.is_power_of_two(), "{} bank groups are no power of two", config.bank_groups);
        assert!(config.write_queue >= 2, "a write queue needs two places");
        let burst_time = BurstTime::new(&config);
        let (columns, activations) = (burst_time.columns(&config), activations(&config));
        let batch = config.write_queue as usize / 2;
        let channel = |index: u32| Channel {
            columns: columns.clone(),
            activations: activations.clone(),
            busy: Ps::ZERO,
            waits: WaitAccumulator::default(),
            writes: Vec::with_capacity(batch),
            batch: Vec::with_capacity(batch),
            written: Ps::ZERO,
            writing: None,
            end: Ps::ZERO,
            leaving: VecDeque::with_capacity(config.write_queue as usize),
            refresh: ChannelRefresh::new(&config, index),
        };
        let (burst_log, grain_log) = (config.burst.0.trailing_zeros(), grain.trailing_zeros());
        Dram {
            config,
            over_module: SetIndex::new(config.channels),
            over_channels: if group.groups == 1 { SetIndex::new(channels) } else { SetIndex::within_slices(channels) },
            over_banks: SetIndex::new(config.banks),
            row_shift: lines_per_row.trailing_zeros(),
            atoms: Sectors::new((atom.min(line) / grain).max(1) as u32),
            bursts_per_grain: grain_log.saturating_sub(burst_log),
            grains_per_burst: burst_log.saturating_sub(grain_log),
            burst_shift: burst_log,
            burst_time,
            batch,
            selected: vec![Selected::default(); config.banks as usize],
            channels: (first..first + channels).map(channel).collect(),
            banks: (0..channels * config.banks).map(|bank| Bank::new(&config, bank % config.banks)).collect(),
            stats: DramStats::default(),
        }
    }

    /// Reads the bytes `mask` of `line`; returns the arrival time for the last byte.
    #[inline]
    pub fn read(&mut self, timing: AccessTiming, line: Line, mask: Mask) -> Ps {
        self.read_behind(timing, line, mask).0
    }

    /// Like [`Dram::read`]; also returns the time spent waiting for earlier accesses.
    #[inline]
    pub(crate) fn read_behind(&mut self, timing: AccessTiming, line: Line, mask: Mask) -> (Ps, Ps) {
        let (channel, bank, row) = self.locate(line);
        let bursts = self.bursts(mask);
        self.stats.reads += 1;
        self.stats.read_bytes += bursts << self.burst_shift;
        let (done, waited) = self.access(channel, timing, BankAccess { bank, row, bursts }, Direction::Read);
        self.stats.queueing += waited;
        (done, waited)
    }

    /// Writes bytes of `line`. Returns the time at which the write queue has accepted the write: immediately when
    /// ready, or later if both halves are full.
    #[inline]
    pub fn write(&mut self, timing: AccessTiming, line: Line, mask: Mask) -> Ps {
        let (channel, bank, row) = self.locate(line);
        let queue = &self.channels[channel];
        let waiting = queue.writes.iter().rposition(|write| write.line == line);
        let before = waiting.map_or(Mask::NONE, |at| queue.writes[at].mask);
        let (mask, more) = (before | mask, self.bursts(before | mask) - self.bursts(before));
        self.stats.write_bytes += more << self.burst_shift;
        let queue = &mut self.channels[channel];
        if let Some(at) = waiting {
            let write = &mut queue.writes[at];
            write.mask = mask;
            write.access.bursts += more;
            return timing.ready;
        }
        self.stats.writes += 1;
        let accepted = timing.ready.max(queue.room(timing.issued, self.config.write_queue as usize));
        queue.writes.push(QueuedWrite { line, mask, access: BankAccess { bank, row, bursts: more } });
        if queue.writes.len() >= self.batch {
            self.drain(channel, AccessTiming { ready: accepted, ..timing });
        }
        accepted
    }

    /// Makes the open row in the bank of `line` useless for later accesses, whichever row they need.
    pub(crate) fn close_row(&mut self, line: Line) {
        let (_, bank, _) = self.locate(line);
        self.banks[bank].forget_rows();
    }

    /// Prefetches the data that an access to `line` will read into the host's caches.
    #[inline]
    pub(crate) fn prefetch(&self, line: Line) {
        let bank = &self.banks[self.locate(line).1];
        prefetch(&bank.rows);
        prefetch(&bank.opens);
        prefetch(&bank.closes);
        prefetch(&bank.newest);
    }

    /// Time until `at` during which channels had a waiting access, summed over channels.
    pub(crate) fn waited_until(&self, at: Ps) -> Ps {
        Ps(self.channels.iter().map(|channel| channel.waits.before(at).0).sum())
    }

    /// Bus busy time per channel, turnarounds included.
    pub(crate) fn busy(&self) -> impl Iterator<Item = Ps> {
        self.channels.iter().map(|channel| channel.busy)
    }

    /// Returns the counters accumulated since the start.
    pub(crate) fn stats(&self) -> &DramStats {
        &self.stats
    }

    /// Channel, bank (numbered over all channels in this instance) and row of `line`.
    #[inline]
    pub fn locate(&self, line: Line) -> (usize, usize, u64) {
        let channel = self.over_channels.index(line.0);
        let (in_channel, _) = self.over_module.split(line.0);
        let (row, bank) = self.over_banks.place(in_channel >> self.row_shift);
        (channel, channel * self.config.banks as usize + bank, row)
    }

    /// Number of bursts for all atoms with a byte in `mask`.
    #[inline]
    fn bursts(&self, mask: Mask) -> u64 {
        let grains = u64::from(self.atoms.widen(mask).grains());
        ((grains << self.bursts_per_grain) + (1 << self.grains_per_burst) - 1) >> self.grains_per_burst
    }

    /// Schedules an access on its bank and bus; returns the end time, and the time spent waiting for earlier accesses.
    #[inline]
    fn access(&mut self, channel: usize, timing: AccessTiming, access: BankAccess, direction: Direction) -> (Ps, Ps) {
        let group = (access.bank - channel * self.config.banks as usize) as u32 & (self.config.bank_groups - 1);
        let channel = &mut self.channels[channel];
        let bank = &mut self.banks[access.bank];
        channel.refresh.advance(timing.ready, channel.end, &self.config);
        bank.refresh(&channel.refresh, timing.ready, &self.config);
        let opened = match bank.joinable(access.row, timing.ready) {
            Some(opened) => opened,
            None => bank.open(access.row, timing, &self.config, (&mut channel.activations, group)),
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
        let (latency, from) = match direction {
            Direction::Read => {
                if channel.writing.take().is_some() {
                    channel.turn(timing.issued, self.config.t_turn, &mut self.stats);
                }
                (self.config.t_cas, Ps::ZERO)
            }
            Direction::Write { from } => (self.config.t_cwl, from),
        };
        let earliest = (opened.column + latency).max(from);
        let done = match direction {
            Direction::Read => channel.columns.reserve_in(group, timing.issued, earliest, access.bursts),
            Direction::Write { .. } => channel.columns.reserve_in_window(group, timing.issued, earliest, access.bursts),
        };
        channel.end = channel.end.max(done);
        let work = self.burst_time.span(access.bursts);
        self.stats.busy += work;
        channel.busy += work;
        match direction {
            Direction::Read => {
                let command = done.saturating_sub(latency + self.burst_time.span(1));
                bank.hold(opened.at, command + self.config.t_rtp);
            }
            Direction::Write { .. } => bank.hold(opened.at, done + self.config.t_wr),
        }
        let (ready, starts) = (timing.ready + opening + latency, done - channel.columns.idle_span(access.bursts));
        channel.waits.add(ready, starts);
        (done, starts.saturating_sub(ready))
    }

    /// Schedules a channel's gathered writes as a batch. Their rows may open while reads still occupy the bus.
    fn drain(&mut self, channel: usize, timing: AccessTiming) {
        let Channel { columns, writes, batch, leaving, writing, .. } = &mut self.channels[channel];
        let from = match *writing {
            Some(started) => started.max(timing.ready),
            None => columns.sparse_from(timing.issued, timing.ready, SPARSE),
        };
        let (mut writes, mut batch, mut leaving) = (take(writes), take(batch), take(leaving));
        self.select(from, &mut writes, &mut batch);
        batch.sort_unstable();
        leaving.extend(batch.iter().map(|&write| self.access(channel, timing, write, Direction::Write { from }).0));
        leaving.make_contiguous().sort_unstable();
        let written = leaving.back().copied().unwrap_or(from);
        batch.clear();
        let channel = &mut self.channels[channel];
        channel.columns.open_window(timing.issued, from, written);
        (channel.writes, channel.batch, channel.leaving) = (writes, batch, leaving);
        (channel.written, channel.writing) = (written.max(channel.written), Some(from));
    }

    /// Moves gathered writes into a batch with its first data at `from`, oldest first: those that their banks can start
    /// during the first quarter of the time for all, or all if there are none.
    fn select(&mut self, from: Ps, writes: &mut Vec<QueuedWrite>, batch: &mut Vec<BankAccess>) {
        let bursts = writes.iter().map(|write| write.access.bursts).sum();
        let commands = Ps(self.config.activation_gap().0 * writes.len() as u64);
        let until = from + Ps(self.burst_time.span(bursts).max(commands).0 / 4);
        let cycle = self.config.write_cycle();
        self.selected.fill(Selected::default());
        let Dram { banks, selected, config, .. } = self;
        writes.retain(|write| {
            let access = write.access;
            let Selected { rows, row } = &mut selected[access.bank % config.banks as usize];
            let is_open = *rows > 0 && *row == access.row;
            let fits = is_open || banks[access.bank].busy().max(from) + Ps(cycle.0 * u64::from(*rows)) < until;
            if fits {
                *rows += u32::from(!is_open);
                *row = access.row;
                batch.push(access);
            }
            !fits
        });
        if batch.is_empty() {
            batch.extend(writes.drain(..).map(|write| write.access));
        }
    }
}

#[cfg(test)]
mod tests;
