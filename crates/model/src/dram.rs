//! The DRAM of one module: channels of banks with open rows behind a shared bus each.
//!
//! An access computes when it is done as it arrives; nothing is queued as an event. What FR-FCFS scheduling
//! (first-ready, first-come first-served) gains is kept like this:
//! - A bank remembers the last eight times a row was or will be open. A request whose row is open, or will be
//!   opened for one that asked before, joins it as a row hit, ahead of older requests for other rows.
//! - Otherwise its row is opened after everything scheduled in the bank, while other banks work.
//! - The bus is a [`Calendar`] of bursts: data goes when it is ready, whoever asked first.
//! - Writes wait in a queue for each channel. When it is half full that half goes in one batch, sorted by bank
//!   and row, and the bus turns round once there and back.
//!
//! Approximations: a request that joins a row takes its share of the bus but does not keep the row open past a
//! precharge already scheduled; reads pass between the writes of a batch; a read of a line in the write queue
//! goes to the bank; writes take the timings of reads. Not modelled: refresh, bank groups, write recovery, ECC,
//! power states, closing idle rows.

use crate::calendar::{Calendar, FRACTION};
use crate::set_index::SetIndex;
use tombolo_types::{Bytes, Line, LineSize, Ps, Rate};

/// Shape and timings of one module's DRAM. Times are spans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DramConfig {
    /// Bandwidth of all channels together.
    pub rate: Rate,
    /// Channels, at least 1. Lines are interleaved over them.
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
    /// The bus idles for this span for each batch of writes, both turns together; rounded up to bursts.
    pub t_turn: Ps,
    /// Writes that a channel can hold, at least 2: half of them gather while the other half drain.
    pub write_queue: u32,
}

/// Counters of one module's DRAM.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DramStats {
    /// Read accesses.
    pub reads: u64,
    /// Write accesses.
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

/// One bank: when rows were, are and will be open. Index [`Bank::newest`] is the row open last; it stays open
/// until another is needed.
#[derive(Clone, Copy, Debug)]
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

    fn new() -> Bank {
        Bank {
            rows: [Bank::NONE; OPENINGS],
            opens: [Ps::ZERO; OPENINGS],
            closes: [Ps::ZERO; OPENINGS],
            newest: 0,
            activated: Ps::ZERO,
            busy: Ps::ZERO,
        }
    }

    /// The opening of `row` that a request at `now` can join.
    #[inline]
    fn joinable(&self, row: u64, now: Ps) -> Option<Opened> {
        let open = |at: &usize| self.rows[*at] == row && now < self.closes[*at];
        let at = std::iter::once(self.newest).chain(0..OPENINGS).find(open)?;
        Some(Opened { at, state: RowState::Hit, column: self.opens[at].max(now) })
    }

    /// Opens `row` after everything scheduled.
    #[inline]
    fn open(&mut self, row: u64, now: Ps, config: &DramConfig, activations: &mut Calendar) -> Opened {
        let closed = self.rows[self.newest] == Bank::NONE;
        let may_close = now.max(self.busy).max(self.activated + config.t_ras);
        let earliest = if closed { now } else { may_close + config.t_rp };
        let activate = activations.reserve(now, earliest, 1) - activations.span(1);
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

#[derive(Clone, Debug)]
struct Channel {
    bus: Calendar,
    activations: Calendar,
    /// When accesses waited for others.
    waits: Waits,
    /// The batch that gathers.
    writes: Vec<Access>,
    /// When the last batch of writes is done.
    written: Ps,
}

/// The DRAM of one module.
#[derive(Clone, Debug)]
pub struct Dram {
    config: DramConfig,
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
    /// Idle memory with every row closed. Panics on a shape outside what [`DramConfig`] allows.
    pub fn new(config: DramConfig) -> Dram {
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
        let channel = Channel {
            bus: Calendar::new(burst_time as u64),
            activations: Calendar::new((config.t_faw.0 << FRACTION) / 4),
            waits: Waits::default(),
            writes: Vec::with_capacity(batch),
            written: Ps::ZERO,
        };
        Dram {
            config,
            over_channels: SetIndex::new(config.channels),
            over_banks: SetIndex::new(config.banks),
            row_shift: lines_per_row.trailing_zeros(),
            burst_shift: config.burst.0.trailing_zeros(),
            turn: if burst_time == 0 { 0 } else { (config.t_turn.0 << FRACTION).div_ceil(burst_time as u64) },
            batch,
            channels: vec![channel; config.channels as usize],
            banks: vec![Bank::new(); config.channels as usize * config.banks as usize],
            stats: DramStats::default(),
        }
    }

    /// Reads `bytes` (at most a line) of `line` at `now`; returns when the last byte is there.
    #[inline]
    pub fn read(&mut self, now: Ps, line: Line, bytes: Bytes) -> Ps {
        let (channel, bank, row) = self.locate(line);
        let bursts = self.bursts(bytes);
        self.stats.reads += 1;
        self.stats.read_bytes += bursts << self.burst_shift;
        let (done, waited) = self.access(channel, now, Access { bank, row, bursts });
        self.stats.queueing += waited;
        done
    }

    /// Writes `bytes` (at most a line) of `line` at `now`; returns when the write queue has taken them: `now`,
    /// or later where both halves of it are full.
    #[inline]
    pub fn write(&mut self, now: Ps, line: Line, bytes: Bytes) -> Ps {
        let (channel, bank, row) = self.locate(line);
        let bursts = self.bursts(bytes);
        self.stats.writes += 1;
        self.stats.write_bytes += bursts << self.burst_shift;
        let queue = &mut self.channels[channel];
        queue.writes.push(Access { bank, row, bursts });
        if queue.writes.len() < self.batch {
            return now;
        }
        let accepted = now.max(queue.written);
        self.drain(channel, now);
        accepted
    }

    /// How long, up to `at`, a channel had an access waiting for others: the mean of all channels.
    pub fn queued_until(&self, at: Ps) -> Ps {
        let waited: u64 = self.channels.iter().map(|channel| channel.waits.before(at).0).sum();
        Ps(waited / self.channels.len() as u64)
    }

    /// Counters so far.
    pub fn stats(&self) -> &DramStats {
        &self.stats
    }

    /// Channel, bank (over all channels) and row of `line`.
    #[inline]
    fn locate(&self, line: Line) -> (usize, usize, u64) {
        let (in_channel, channel) = self.over_channels.place(line.0);
        let (row, bank) = self.over_banks.place(in_channel >> self.row_shift);
        (channel, channel * self.config.banks as usize + bank, row)
    }

    #[inline]
    fn bursts(&self, bytes: Bytes) -> u64 {
        (bytes.0 + self.config.burst.0 - 1) >> self.burst_shift
    }

    /// Schedules one access; returns its end, and how long it waited for others.
    #[inline]
    fn access(&mut self, channel: usize, now: Ps, access: Access) -> (Ps, Ps) {
        let channel = &mut self.channels[channel];
        let bank = &mut self.banks[access.bank];
        let opened = match bank.joinable(access.row, now) {
            Some(opened) => opened,
            None => bank.open(access.row, now, &self.config, &mut channel.activations),
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
        let done = channel.bus.reserve(now, opened.column + self.config.t_cas, access.bursts);
        self.stats.busy += work;
        if opened.at == bank.newest {
            bank.busy = bank.busy.max(done - self.config.t_cas);
        }
        let (ready, starts) = (now + opening + self.config.t_cas, done - work);
        channel.waits.add(ready, starts);
        (done, starts.saturating_sub(ready))
    }

    /// Schedules the gathered writes of a channel as one batch. Their rows may open while the batch ahead is
    /// still on the bus.
    fn drain(&mut self, channel: usize, now: Ps) {
        let mut writes = std::mem::take(&mut self.channels[channel].writes);
        writes.sort_unstable();
        let bus = &mut self.channels[channel].bus;
        let turned = bus.reserve(now, now, self.turn);
        self.stats.busy += bus.span(self.turn);
        let ends = writes.iter().map(|&write| self.access(channel, now, write).0);
        let written = ends.fold(turned, Ps::max);
        writes.clear();
        let channel = &mut self.channels[channel];
        (channel.writes, channel.written) = (writes, written);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;

    const LINE: Bytes = Bytes(128);

    /// Timings of the order of HBM2's, rounded: tests need closed forms, not a part.
    const CONFIG: DramConfig = DramConfig {
        rate: Rate(256_000_000_000),
        channels: 8,
        banks: 16,
        line: LineSize::B128,
        row: Bytes(2048),
        burst: Bytes(32),
        t_cas: Ps::from_ns(14),
        t_rcd: Ps::from_ns(15),
        t_rp: Ps::from_ns(16),
        t_ras: Ps::from_ns(33),
        t_faw: Ps::from_ns(16),
        t_turn: Ps::from_ns(20),
        write_queue: 64,
    };

    /// A line on one of the channels: 32 GB/s.
    const LINE_TIME: Ps = Ps::from_ns(4);
    const ROW_CYCLE: Ps = Ps::from_ns(33 + 16);

    /// The first `count` rows of the first bank, each with its lines.
    fn rows_of_one_bank(count: usize) -> Vec<Vec<Line>> {
        let dram = Dram::new(CONFIG);
        let places = (0..).map(|line| (Line(line), dram.locate(Line(line))));
        let mut in_bank = places.filter(|(_, (_, bank, _))| *bank == 0).map(|(line, (_, _, row))| (line, row));
        let lines_per_row = (CONFIG.row.0 / LINE.0) as usize;
        let rows: Vec<Vec<_>> = (0..count).map(|_| in_bank.by_ref().take(lines_per_row).collect()).collect();
        assert!(rows.iter().all(|row| row.iter().all(|(_, number)| *number == row[0].1)), "rows are whole");
        rows.into_iter().map(|row| row.into_iter().map(|(line, _)| line).collect()).collect()
    }

    /// A line of each of the first `count` rows of the first bank.
    fn one_bank(count: usize) -> impl Iterator<Item = Line> {
        rows_of_one_bank(count).into_iter().map(|row| row[0])
    }

    /// Runs `accesses` with at most `outstanding` at a time, and returns when the last is done.
    fn run(
        dram: &mut Dram,
        outstanding: usize,
        accesses: impl Iterator<Item = Line>,
        access: impl Fn(&mut Dram, Ps, Line) -> Ps,
    ) -> Ps {
        let (mut now, mut last, mut inflight) = (Ps::ZERO, Ps::ZERO, BinaryHeap::new());
        for line in accesses {
            if inflight.len() == outstanding {
                let Reverse(done) = inflight.pop().unwrap();
                now = now.max(done);
            }
            let done = access(dram, now, line);
            last = last.max(done);
            inflight.push(Reverse(done));
        }
        last
    }

    fn read(dram: &mut Dram, now: Ps, line: Line) -> Ps {
        dram.read(now, line, LINE)
    }

    fn percent_of_rate(lines: u64, time: Ps) -> u64 {
        lines * LINE.0 * 100 * 1_000_000 / (CONFIG.rate.0 / 1_000_000 * time.0)
    }

    /// The same scattered lines in every run.
    fn scattered(count: u64) -> impl Iterator<Item = Line> {
        (0..count).map(|i| Line((i + 1).wrapping_mul(0xd134_2543_de82_ef95) >> 30))
    }

    #[test]
    fn an_idle_read_takes_what_its_row_costs() {
        let mut dram = Dram::new(CONFIG);
        let rows: Vec<Line> = one_bank(2).collect();
        let hit = CONFIG.t_cas + LINE_TIME;
        let closed = hit + CONFIG.t_rcd;
        assert_eq!(dram.read(Ps(1_000_001), rows[0], LINE), Ps(1_000_001) + closed);
        assert_eq!(dram.read(Ps(2_000_000), rows[0], LINE), Ps(2_000_000) + hit);
        assert_eq!(dram.read(Ps(3_000_000), rows[1], LINE), Ps(3_000_000) + closed + CONFIG.t_rp);
        let DramStats { row_hits, row_misses, row_conflicts, queueing, .. } = *dram.stats();
        assert_eq!((row_hits, row_misses, row_conflicts, queueing), (1, 1, 1, Ps::ZERO));
    }

    #[test]
    fn a_queue_is_seen_where_accesses_wait_for_others() {
        let mut busy = Dram::new(CONFIG);
        let end = run(&mut busy, 512, (0..20_000).map(Line), read);
        let half = Ps(end.0 / 2);
        assert!(busy.queued_until(end).0 * 100 >= end.0 * 99, "saturated: {} of {end}", busy.queued_until(end));
        assert!(busy.queued_until(half).0 <= busy.queued_until(end).0);
        let mut idle = Dram::new(CONFIG);
        let end = run(&mut idle, 1, scattered(1000), read);
        assert_eq!(idle.queued_until(end), Ps::ZERO, "one at a time waits for nobody");
        let mut half_loaded = Dram::new(CONFIG);
        let each = Ps(LINE.0 * 2 * 1_000_000 / (CONFIG.rate.0 / 1_000_000));
        (0..20_000).for_each(|i| _ = half_loaded.read(Ps(i * each.0), Line(i), LINE));
        let (end, queued) = (Ps(20_000 * each.0), half_loaded.queued_until(Ps(20_000 * each.0)));
        assert!(queued.0 * 2 < end.0, "half the rate: {queued} of {end}");
    }

    #[test]
    fn waits_that_overlap_count_once_and_those_to_come_not_yet() {
        let mut waits = Waits::default();
        [(10, 20), (15, 30), (12, 18), (40, 40), (50, 60)].into_iter().for_each(|(a, b)| waits.add(Ps(a), Ps(b)));
        assert_eq!((waits.before(Ps(100)), waits.before(Ps(55)), waits.before(Ps(45))), (Ps(30), Ps(25), Ps(20)));
    }

    #[test]
    fn a_sector_takes_a_sector_of_the_bus() {
        let mut dram = Dram::new(CONFIG);
        let done = dram.read(Ps::ZERO, Line(0), Bytes(20));
        assert_eq!(done, CONFIG.t_rcd + CONFIG.t_cas + Ps::from_ns(1), "one burst of 32 B");
        assert_eq!(dram.stats().read_bytes, 32);
    }

    #[test]
    fn an_infinite_rate_leaves_the_latencies() {
        let mut dram = Dram::new(DramConfig { rate: Rate::INFINITE, ..CONFIG });
        assert_eq!(dram.read(Ps(7), Line(0), LINE), Ps(7) + CONFIG.t_rcd + CONFIG.t_cas);
        assert_eq!(dram.write(Ps(8), Line(0), LINE), Ps(8));
    }

    #[test]
    fn a_sequential_stream_reaches_the_stated_rate() {
        let mut dram = Dram::new(CONFIG);
        let time = run(&mut dram, 256, (0..20_000).map(Line), read);
        let reached = percent_of_rate(20_000, time);
        assert!((95..=100).contains(&reached), "{reached} %");
        assert!(dram.stats().row_hits > 18_000);
    }

    #[test]
    fn a_pointer_chase_through_one_bank_pays_for_a_row_each_time() {
        let mut dram = Dram::new(CONFIG);
        let time = run(&mut dram, 1, one_bank(100), read);
        let miss = CONFIG.t_rp + CONFIG.t_rcd + CONFIG.t_cas + LINE_TIME;
        assert_eq!(time, Ps(100 * miss.0 - CONFIG.t_rp.0), "the first finds the bank closed");
    }

    #[test]
    fn one_bank_opens_one_row_a_row_cycle() {
        let mut dram = Dram::new(CONFIG);
        let time = run(&mut dram, 64, one_bank(500), read);
        let expected = Ps(499 * ROW_CYCLE.0) + CONFIG.t_rcd + CONFIG.t_cas + LINE_TIME;
        assert_eq!(time, expected);
    }

    #[test]
    fn banks_open_rows_side_by_side() {
        let mut dram = Dram::new(CONFIG);
        let time = run(&mut dram, 512, scattered(20_000), read);
        let reached = percent_of_rate(20_000, time);

        assert!((85..=100).contains(&reached), "{reached} %: 16 banks open a row each 49 ns, a line takes 4");
        assert!(dram.stats().row_conflicts > 19_000);
    }

    #[test]
    fn the_window_of_four_activations_bounds_random_reads() {
        let mut dram = Dram::new(DramConfig { t_faw: Ps::from_ns(64), ..CONFIG });
        let time = run(&mut dram, 512, scattered(20_000), read);
        let reached = percent_of_rate(20_000, time);
        assert!((20..=25).contains(&reached), "{reached} %: a row each 16 ns, a line takes 4");
    }

    #[test]
    fn requests_join_a_row_that_others_wait_for() {
        let mut dram = Dram::new(CONFIG);
        let rows = rows_of_one_bank(4);
        for at in 0..rows[0].len() {
            for row in &rows {
                dram.read(Ps::ZERO, row[at], LINE);
            }
        }
        let DramStats { row_hits, row_misses, row_conflicts, .. } = *dram.stats();
        assert_eq!((row_hits, row_misses, row_conflicts), (60, 1, 3), "four streams take turns in one bank");
    }

    #[test]
    fn a_row_stays_open_for_what_is_queued_on_it() {
        let mut dram = Dram::new(CONFIG);
        let rows = rows_of_one_bank(2);
        let last = rows[0].iter().map(|&line| dram.read(Ps::ZERO, line, LINE)).last().unwrap();
        assert_eq!(last, CONFIG.t_rcd + CONFIG.t_cas + Ps(16 * LINE_TIME.0));
        let last_column = last - CONFIG.t_cas;
        let next = last_column + CONFIG.t_rp + CONFIG.t_rcd + CONFIG.t_cas + LINE_TIME;
        assert_eq!(dram.read(Ps::ZERO, rows[1][0], LINE), next);
    }

    #[test]
    fn a_batch_of_writes_opens_each_row_once() {
        let mut dram = Dram::new(CONFIG);
        let rows = rows_of_one_bank(16);
        for at in 0..2 {
            rows.iter().for_each(|row| assert_eq!(dram.write(Ps::ZERO, row[at], LINE), Ps::ZERO));
        }
        assert_eq!(dram.stats().row_hits, 16, "32 writes to 16 rows, asked for in turn");
    }

    #[test]
    fn a_batch_of_writes_turns_the_bus_once() {
        let mut dram = Dram::new(CONFIG);
        let (count, batch) = (16_000_u64, u64::from(CONFIG.write_queue / 2));
        let time = run(&mut dram, 256, (0..count).map(Line), |dram, now, line| dram.write(now, line, LINE));
        let per_channel = count / u64::from(CONFIG.channels);
        let bus = Ps(per_channel * LINE_TIME.0 + per_channel / batch * CONFIG.t_turn.0);
        assert!(time.0 * 100 > bus.0 * 93 && time.0 * 100 < bus.0 * 103, "{time}, the bus needs {bus}");
        assert!(dram.stats().busy <= Ps(bus.0 * u64::from(CONFIG.channels)));
    }

    #[test]
    fn a_write_is_accepted_at_once_until_the_queue_is_full() {
        let mut dram = Dram::new(DramConfig { channels: 1, write_queue: 4, ..CONFIG });
        let accepted: Vec<Ps> = (0..4).map(|line| dram.write(Ps::ZERO, Line(line), LINE)).collect();
        assert_eq!(accepted[..3], [Ps::ZERO; 3]);
        assert!(accepted[3] > CONFIG.t_turn, "the batch ahead has to leave: {}", accepted[3]);
    }

    #[test]
    fn reads_and_writes_share_the_bus() {
        let mut dram = Dram::new(CONFIG);
        let time = run(&mut dram, 256, (0..20_000).map(Line), |dram, now, line| match line.0 / 8 % 2 {
            0 => dram.read(now, line, LINE),
            _ => dram.write(now, Line(line.0 + (1 << 24)), LINE),
        });
        let reached = percent_of_rate(20_000, time);
        assert!((85..=97).contains(&reached), "{reached} %: a turn of 20 ns for each 32 reads and 32 writes");
        let DramStats { reads, writes, read_bytes, write_bytes, .. } = *dram.stats();
        assert_eq!((reads, writes, read_bytes, write_bytes), (10_000, 10_000, 1_280_000, 1_280_000));
    }

    #[test]
    fn strides_spread_over_channels_and_banks() {
        for stride in [8, 16, 128, 256, 2048, 1 << 14] {
            let dram = Dram::new(CONFIG);
            let mut count = vec![0; dram.banks.len()];
            (0..4096).for_each(|i| count[dram.locate(Line(i * stride)).1] += 1);
            let most = count.into_iter().max().unwrap();
            assert!(most <= 32 * 4, "stride {stride}: {most} in one bank, 32 on average");
        }
    }
}
