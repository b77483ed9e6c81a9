//! DRAM channel tests with predicted results: bandwidth, latency, rows and turnarounds.

use super::*;
use crate::front_end::page_table::PageTable;
use crate::l2::address_map::AddressMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

const LINE: Bytes = Bytes(128);

/// Timings similar to HBM2's, rounded: tests need closed forms rather than a real part.
const CONFIG: DramConfig = DramConfig {
    rate: Rate(256_000_000_000),
    channels: 8,
    banks: 16,
    bank_groups: 1,
    line: LineSize::B128,
    row: Bytes(2048),
    burst: Bytes(32),
    atom: Bytes(32),
    t_cas: Ps::from_ns(14),
    t_cwl: Ps::from_ns(14),
    t_ccd_l: Ps::ZERO,
    t_rcd: Ps::from_ns(15),
    t_rp: Ps::from_ns(16),
    t_ras: Ps::from_ns(33),
    t_rrd_s: Ps::ZERO,
    t_rrd_l: Ps::ZERO,
    t_faw: Ps::from_ns(16),
    t_rtp: Ps::from_ns(1),
    t_wr: Ps::ZERO,
    t_turn: Ps::from_ns(20),
    refresh: RefreshScope::Channel,
    t_refi: Ps::ZERO,
    t_rfc: Ps::ZERO,
    write_queue: 64,
};

/// Transfer time for a line on a channel: 32 GB/s.
const LINE_TIME: Ps = Ps::from_ns(4);
const ROW_CYCLE: Ps = Ps::from_ns(33 + 16);

/// Returns the first `count` rows in the first bank, each with its lines.
fn rows_of_one_bank(count: usize) -> Vec<Vec<Line>> {
    let dram = Dram::new(CONFIG);
    let places = (0..).map(|line| (Line(line), dram.locate(Line(line))));
    let mut in_bank = places.filter(|(_, (_, bank, _))| *bank == 0).map(|(line, (_, _, row))| (line, row));
    let lines_per_row = (CONFIG.row.0 / LINE.0) as usize;
    let rows: Vec<Vec<_>> = (0..count).map(|_| in_bank.by_ref().take(lines_per_row).collect()).collect();
    assert!(rows.iter().all(|row| row.iter().all(|(_, number)| *number == row[0].1)), "rows are whole");
    rows.into_iter().map(|row| row.into_iter().map(|(line, _)| line).collect()).collect()
}

/// Returns a line from each of the first `count` rows in the first bank.
fn one_bank(count: usize) -> impl Iterator<Item = Line> {
    rows_of_one_bank(count).into_iter().map(|row| row[0])
}

/// Runs `accesses` with at most `outstanding` in flight, and returns the last completion time.
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

/// Mean time per channel during which any access waited for earlier accesses.
fn queued(dram: &Dram, until: Ps) -> Ps {
    Ps(dram.waited_until(until).0 / u64::from(CONFIG.channels))
}

fn read(dram: &mut Dram, now: Ps, line: Line) -> Ps {
    dram.read(AccessTiming::at(now), line, Mask::ALL)
}

fn percent_of_rate(lines: u64, time: Ps) -> u64 {
    lines * LINE.0 * 100 * 1_000_000 / (CONFIG.rate.0 / 1_000_000 * time.0)
}

/// Scattered lines from a multiplicative hash, identical in every run.
fn scattered(count: u64) -> impl Iterator<Item = Line> {
    (0..count).map(|i| Line((i + 1).wrapping_mul(0xd134_2543_de82_ef95) >> 30))
}

#[test]
fn an_idle_read_takes_what_its_row_costs() {
    let mut dram = Dram::new(CONFIG);
    let rows: Vec<Line> = one_bank(2).collect();
    let hit = CONFIG.t_cas + LINE_TIME;
    let closed = hit + CONFIG.t_rcd;
    assert_eq!(dram.read(AccessTiming::at(Ps(1_000_001)), rows[0], Mask::ALL), Ps(1_000_001) + closed);
    assert_eq!(dram.read(AccessTiming::at(Ps(2_000_000)), rows[0], Mask::ALL), Ps(2_000_000) + hit);
    assert_eq!(dram.read(AccessTiming::at(Ps(3_000_000)), rows[1], Mask::ALL), Ps(3_000_000) + closed + CONFIG.t_rp);
    let DramStats { row_hits, row_misses, row_conflicts, queueing, .. } = *dram.stats();
    assert_eq!((row_hits, row_misses, row_conflicts, queueing), (1, 1, 1, Ps::ZERO));
}

#[test]
fn a_queue_is_seen_where_accesses_wait_for_others() {
    let mut busy = Dram::new(CONFIG);
    let end = run(&mut busy, 512, (0..20_000).map(Line), read);
    let half = Ps(end.0 / 2);
    assert!(queued(&busy, end).0 * 100 >= end.0 * 99, "saturated: {} of {end}", queued(&busy, end));
    assert!(queued(&busy, half).0 <= queued(&busy, end).0);
    let mut idle = Dram::new(CONFIG);
    let end = run(&mut idle, 1, scattered(1000), read);
    assert_eq!(queued(&idle, end), Ps::ZERO, "one at a time waits for nobody");
    let mut half_loaded = Dram::new(CONFIG);
    let each = Ps(LINE.0 * 2 * 1_000_000 / (CONFIG.rate.0 / 1_000_000));
    (0..20_000).for_each(|i| _ = half_loaded.read(AccessTiming::at(Ps(i * each.0)), Line(i), Mask::ALL));
    let end = Ps(20_000 * each.0);
    let waited = queued(&half_loaded, end);
    assert!(waited.0 * 2 < end.0, "half the rate: {waited} of {end}");
}

#[test]
fn waits_that_overlap_count_once_and_those_to_come_not_yet() {
    let mut waits = WaitAccumulator::default();
    [(10, 20), (15, 30), (12, 18), (40, 40), (50, 60)].into_iter().for_each(|(a, b)| waits.add(Ps(a), Ps(b)));
    assert_eq!((waits.before(Ps(100)), waits.before(Ps(55)), waits.before(Ps(45))), (Ps(30), Ps(25), Ps(20)));
}

#[test]
fn a_sector_takes_a_sector_of_the_bus() {
    let mut dram = Dram::new(CONFIG);
    let done = dram.read(AccessTiming::at(Ps::ZERO), Line(0), Mask(0b1_1111));
    assert_eq!(done, CONFIG.t_rcd + CONFIG.t_cas + Ps::from_ns(1), "one burst of 32 B");
    assert_eq!(dram.stats().read_bytes, 32);
}

#[test]
fn an_infinite_rate_leaves_the_latencies() {
    let mut dram = Dram::new(DramConfig { rate: Rate::INFINITE, ..CONFIG });
    assert_eq!(dram.read(AccessTiming::at(Ps(7)), Line(0), Mask::ALL), Ps(7) + CONFIG.t_rcd + CONFIG.t_cas);
    assert_eq!(dram.write(AccessTiming::at(Ps(8)), Line(0), Mask::ALL), Ps(8));
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
            dram.read(AccessTiming::at(Ps::ZERO), row[at], Mask::ALL);
        }
    }
    let DramStats { row_hits, row_misses, row_conflicts, .. } = *dram.stats();
    assert_eq!((row_hits, row_misses, row_conflicts), (60, 1, 3), "four streams take turns in one bank");
}

#[test]
fn a_row_stays_open_for_what_is_queued_on_it() {
    let mut dram = Dram::new(CONFIG);
    let rows = rows_of_one_bank(2);
    let last = rows[0].iter().map(|&line| dram.read(AccessTiming::at(Ps::ZERO), line, Mask::ALL)).last().unwrap();
    assert_eq!(last, CONFIG.t_rcd + CONFIG.t_cas + Ps(16 * LINE_TIME.0));
    let last_column = last - CONFIG.t_cas;
    let next = last_column + CONFIG.t_rp + CONFIG.t_rcd + CONFIG.t_cas + LINE_TIME;
    assert_eq!(dram.read(AccessTiming::at(Ps::ZERO), rows[1][0], Mask::ALL), next);
}

#[test]
fn a_batch_of_writes_opens_each_row_once() {
    let mut dram = Dram::new(CONFIG);
    let in_bank = |bank| (0..).map(Line).filter(move |&line| Dram::new(CONFIG).locate(line).1 == bank);
    let rows: Vec<Vec<Line>> = (0..16).map(|bank| in_bank(bank).take(2).collect()).collect();
    for at in 0..2 {
        rows.iter().for_each(|row| assert_eq!(dram.write(AccessTiming::at(Ps::ZERO), row[at], Mask::ALL), Ps::ZERO));
    }
    assert_eq!(dram.stats().row_hits, 16, "32 writes to 16 banks, asked for in turn");
}

#[test]
fn writes_that_a_bank_cannot_start_in_time_wait_for_a_later_batch() {
    let mut dram = Dram::new(CONFIG);
    let rows = rows_of_one_bank(32);
    for row in &rows {
        assert_eq!(dram.write(AccessTiming::at(Ps::ZERO), row[0], Mask::ALL), Ps::ZERO);
    }
    let DramStats { row_hits, row_misses, row_conflicts, .. } = *dram.stats();
    assert_eq!((row_hits, row_misses, row_conflicts), (0, 1, 0), "a row of the bank");
}

/// Checks the time for a line stream: transfer time plus `turns` bus turnarounds, given the batch count. In each
/// channel every `reads_each`-th line is read, and all remaining lines are written.
fn written(reads_each: u64, turns: impl Fn(u64) -> u64) {
    let mut dram = Dram::new(CONFIG);
    let (count, channels) = (16_000_u64, u64::from(CONFIG.channels));
    let time = run(&mut dram, 256, (0..count).map(Line), |dram, now, line| {
        let reads = (line.0 / channels).is_multiple_of(reads_each);
        if reads { read(dram, now, line) } else { dram.write(AccessTiming::at(now), line, Mask::ALL) }
    });
    let per_channel = count / channels;
    let writes = per_channel - per_channel.div_ceil(reads_each);
    let turns = turns(writes / u64::from(CONFIG.write_queue / 2));
    let bus = Ps(per_channel * LINE_TIME.0 + turns * CONFIG.t_turn.0);
    assert!(time.0 * 100 > bus.0 * 93 && time.0 * 100 < bus.0 * 103, "{time}, the bus needs {bus}");
    assert!(dram.stats().busy <= Ps(bus.0 * channels));
}

#[test]
fn a_batch_of_writes_behind_reads_turns_the_bus_once() {
    written(2, |batches| batches);
}

#[test]
fn batches_of_writes_that_follow_each_other_do_not_turn_the_bus() {
    written(u64::MAX, |_| 1);
}

/// Refresh configuration: 400 ns every 4 us, a tenth of total time.
const REFRESHED: DramConfig = DramConfig { t_refi: Ps::from_ns(4000), t_rfc: Ps::from_ns(400), ..CONFIG };

#[test]
fn a_stream_is_held_up_by_every_refresh_of_its_channel() {
    let of = |config: DramConfig| run(&mut Dram::new(config), 512, (0..64_000).map(Line), read);
    let (alone, time) = (of(CONFIG), of(REFRESHED));
    let held_up = time.0 / REFRESHED.t_refi.0 * REFRESHED.t_rfc.0;
    let expected = (alone.0 + held_up) as f64;
    assert!((time.0 as f64 / expected - 1.0).abs() < 0.02, "{time}, expected {expected} ps");
}

#[test]
fn refreshes_of_single_banks_hold_up_a_stream_less() {
    let of = |config: DramConfig| run(&mut Dram::new(config), 512, (0..64_000).map(Line), read);
    let (alone, together) = (of(CONFIG), of(REFRESHED));
    let single = of(DramConfig { refresh: RefreshScope::Bank, t_rfc: Ps::from_ns(200), ..REFRESHED });
    assert!(single >= alone && single.0 - alone.0 < (together.0 - alone.0) / 2, "{alone}, {single}, {together}");
}

#[test]
fn a_busy_bank_is_refreshed_alone_before_its_next_refresh_is_due() {
    let config = DramConfig { channels: 1, refresh: RefreshScope::Bank, t_rfc: Ps::from_ns(200), ..REFRESHED };
    let mut dram = Dram::new(config);
    let of_bank = |dram: &Dram, bank| (0..).map(Line).find(|&line| dram.locate(line).1 == bank).expect("it has lines");
    let (first, second) = (of_bank(&dram, 0), of_bank(&dram, 1));
    let open = CONFIG.t_cas + dram.burst_time.span(4);
    // The first refresh of the first bank is due at a sixteenth of 4 us. A read every 150 ns leaves no time for any.
    let latency = |dram: &mut Dram, at: u64, line| read(dram, Ps::from_ns(at), line) - Ps::from_ns(at);
    let waits: Vec<u64> = (1..230).filter(|&i| latency(&mut dram, i * 150, first) > open).map(|i| i * 150).collect();
    assert_eq!(waits[..5], [150, 4_350, 4_500, 8_250, 8_400], "due every 4 us; the read behind waits too");
    assert_eq!(latency(&mut dram, 34_500, second), open + CONFIG.t_rcd, "all refreshes of an idle bank are done");
}

#[test]
fn a_refresh_in_idle_time_closes_rows_and_holds_up_nobody() {
    let mut dram = Dram::new(DramConfig { channels: 1, ..REFRESHED });
    let open = REFRESHED.t_cas + dram.burst_time.span(4);
    let closed = open + REFRESHED.t_rcd;
    for (at, costs) in [(0, closed), (3_900, open), (4_450, closed), (4_000_000, closed + Ps::from_ns(416))] {
        let at = Ps::from_ns(at);
        assert_eq!(read(&mut dram, at, Line(0)), at + costs, "{at}");
    }
}

/// Four bank groups, with twice the distance between column commands.
const GROUPED: DramConfig = DramConfig { bank_groups: 4, t_ccd_l: Ps::from_ns(2), ..CONFIG };

#[test]
fn column_commands_to_a_bank_group_keep_their_distance() {
    let row = rows_of_one_bank(1).remove(0);
    let mut dram = Dram::new(GROUPED);
    let last = row.iter().map(|&line| read(&mut dram, Ps::ZERO, line)).last().expect("a row has lines");
    let bursts = 4 * row.len() as u64;
    assert_eq!(last, CONFIG.t_rcd + CONFIG.t_cas + Ps((2 * bursts - 1) * 1000), "a burst takes 1 ns");
}

#[test]
fn streams_through_several_bank_groups_reach_the_stated_rate() {
    let time = run(&mut Dram::new(GROUPED), 256, (0..20_000).map(Line), read);
    let reached = percent_of_rate(20_000, time);
    assert!((95..=100).contains(&reached), "{reached} %");
}

#[test]
fn activations_of_a_bank_group_keep_their_distance() {
    let reached = |t_rrd_l| {
        let config = DramConfig { channels: 1, banks: 4, bank_groups: 4, t_faw: Ps::from_ns(32), t_rrd_l, ..CONFIG };
        let one_group = |dram: &Dram, line: Line| dram.locate(line).1 == 0;
        let mut dram = Dram::new(DramConfig { t_ras: Ps::from_ns(1), t_rp: Ps::from_ns(1), ..config });
        let lines: Vec<Line> = (0..).map(|i| Line(i * 16)).filter(|&line| one_group(&dram, line)).take(500).collect();
        run(&mut dram, 64, lines.into_iter(), read)
    };
    assert!(reached(Ps::from_ns(96)) > Ps::from_ns(500 * 95), "a row each 96 ns");
    assert!(reached(Ps::ZERO) < Ps::from_ns(500 * 60));
}

#[test]
fn memory_moves_whole_atoms() {
    let mut dram = Dram::new(DramConfig { atom: Bytes(64), ..CONFIG });
    let done = dram.read(AccessTiming::at(Ps::ZERO), Line(0), Mask(0b1));
    assert_eq!(done, CONFIG.t_rcd + CONFIG.t_cas + Ps::from_ns(2), "two bursts for a sector");
    dram.read(AccessTiming::at(Ps::ZERO), Line(0), Mask(0b1_0000_0001));
    assert_eq!(dram.stats().read_bytes, 128, "both sectors lie in one atom");
    dram.read(AccessTiming::at(Ps::ZERO), Line(0), Mask(1 << 8 | 1 << 16));
    assert_eq!(dram.stats().read_bytes, 256, "the sectors lie in two atoms");
}

#[test]
fn a_row_closes_after_its_write_recovery() {
    let config = DramConfig { t_wr: Ps::from_ns(15), t_cwl: Ps::from_ns(7), write_queue: 2, ..CONFIG };
    let mut dram = Dram::new(config);
    let rows: Vec<Line> = one_bank(2).collect();
    dram.write(AccessTiming::at(Ps::ZERO), rows[0], Mask::ALL);
    let written = config.t_rcd + config.t_cwl + LINE_TIME;
    let next = written + config.t_wr + config.t_rp + config.t_rcd + config.t_cas + LINE_TIME;
    assert_eq!(read(&mut dram, Ps::ZERO, rows[1]), next);
}

#[test]
fn a_batch_of_writes_has_the_bus_to_itself() {
    let config = DramConfig { channels: 1, write_queue: 8, ..CONFIG };
    let mut dram = Dram::new(config);
    (0..4).for_each(|line| _ = dram.write(AccessTiming::at(Ps::ZERO), Line(line), Mask::ALL));
    let written = config.t_rcd + config.t_cwl + Ps(4 * dram.burst_time.span(4).0);
    assert_eq!(read(&mut dram, Ps::ZERO, Line(4)), written + config.t_turn + dram.burst_time.span(4));
}

#[test]
fn a_write_is_accepted_at_once_until_the_queue_is_full() {
    let mut dram = Dram::new(DramConfig { channels: 1, write_queue: 4, ..CONFIG });
    let accepted: Vec<Ps> = (0..8).map(|line| dram.write(AccessTiming::at(Ps::ZERO), Line(line), Mask::ALL)).collect();
    assert_eq!(accepted[..4], [Ps::ZERO; 4]);
    let leaves: Vec<Ps> = accepted[4..].windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(leaves, [dram.burst_time.span(4); 3], "a place is free when a write has left");
    assert_eq!(accepted[4], CONFIG.t_rcd + CONFIG.t_cwl + dram.burst_time.span(4));
}

#[test]
fn writes_of_a_line_that_wait_go_as_one() {
    let mut dram = Dram::new(DramConfig { channels: 1, write_queue: 4, ..CONFIG });
    let mut write = |line, mask| dram.write(AccessTiming::at(Ps::ZERO), Line(line), Mask(mask));
    assert!((0..1000).all(|_| write(0, 0xff) == Ps::ZERO), "one place serves all of them");
    write(0, 0xff00);
    write(1, 0xff);
    assert_eq!((dram.stats().writes, dram.stats().write_bytes), (2, 64 + 32));
    assert_eq!(dram.stats().busy, dram.burst_time.span(3), "three bursts have gone");
    dram.write(AccessTiming::at(Ps::ZERO), Line(0), Mask(0xff));
    assert_eq!(dram.stats().writes, 3, "what has gone combines with nothing");
}

#[test]
fn reads_and_writes_share_the_bus() {
    let mut dram = Dram::new(CONFIG);
    let time = run(&mut dram, 256, (0..20_000).map(Line), |dram, now, line| match line.0 / 8 % 2 {
        0 => dram.read(AccessTiming::at(now), line, Mask::ALL),
        _ => dram.write(AccessTiming::at(now), Line(line.0 + (1 << 24)), Mask::ALL),
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

#[test]
fn what_is_there_later_holds_up_nobody_who_is_there_before() {
    let mut dram = Dram::new(CONFIG);
    let of_bank = |bank| (0..).map(Line).find(|&line| dram.locate(line).1 == bank).expect("every bank has lines");
    let (first, second) = (of_bank(0), of_bank(1));
    let late = AccessTiming { issued: Ps::ZERO, ready: Ps::from_ns(1000) };
    let alone = CONFIG.t_rcd + CONFIG.t_cas + LINE_TIME;
    assert_eq!(dram.read(late, first, Mask::ALL), late.ready + alone);
    assert_eq!(read(&mut dram, Ps::from_ns(10), second), Ps::from_ns(10) + alone);
}

/// Module with a configurable number of slices and channels, including the line mapping.
struct GroupedModule {
    map: AddressMap,
    slices: u32,
    channels: u32,
    groups: u32,
    drams: Vec<Dram>,
}

impl GroupedModule {
    fn new(slices: u16, channels: u16) -> GroupedModule {
        let mut machine = tombolo_machine::machine("v100").and_then(|described| described.check()).expect("it ships");
        (machine.l2.slices, machine.dram.channels) = (slices, channels);
        let (config, groups) = (crate::convert::dram(&machine), u32::from(crate::convert::slice_groups(&machine)));
        let pages = Arc::new(PageTable::interleaved_by_page(1, machine.page_bytes / LINE.0));
        GroupedModule {
            map: AddressMap::new(&machine, pages),
            slices: slices.into(),
            channels: channels.into(),
            groups,
            drams: GroupIndex::all(groups).map(|group| Dram::of_group(config, group)).collect(),
        }
    }

    /// Reads lines serially; returns the number of reads per channel.
    fn read(&mut self, lines: impl Iterator<Item = Line>) -> Vec<u64> {
        let each = (self.channels / self.groups) as usize;
        let mut counts = vec![0; self.channels as usize];
        for line in lines {
            let group = (u32::from(self.map.slice(line)) / (self.slices / self.groups)) as usize;
            read(&mut self.drams[group], Ps::ZERO, line);
            counts[group * each + self.drams[group].locate(line).0] += 1;
        }
        counts
    }

    /// Row hits per thousand accesses.
    fn row_hits(&self) -> u64 {
        let mut sum = DramStats::default();
        self.drams.iter().for_each(|dram| sum.merge(dram.stats()));
        sum.row_hits * 1000 / sum.reads
    }
}

/// Test shapes as (slices, channels): equal numbers, multiples, neither, and without a common divisor.
const SHAPES: [(u16, u16); 8] = [(64, 64), (32, 64), (4, 64), (64, 16), (6, 4), (4, 6), (112, 64), (16, 21)];

#[test]
fn groups_are_as_many_as_slices_and_channels_can_be_divided_into() {
    let groups = SHAPES.map(|(slices, channels)| GroupedModule::new(slices, channels).groups);
    assert_eq!(groups, [64, 32, 4, 16, 2, 2, 16, 1]);
}

#[test]
fn lines_use_the_channels_of_their_groups_evenly() {
    for (slices, channels) in SHAPES {
        for stride in [1, 4, 16, 64, 512, 4096, 1 << 14] {
            let counts =
                GroupedModule::new(slices, channels).read((0..1000 * u64::from(channels)).map(|i| Line(i * stride)));
            let even = counts.iter().all(|count| (940..1060).contains(count));
            assert!(even, "{slices} slices, {channels} channels, stride {stride}: {counts:?}, 1000 are even");
        }
    }
}

#[test]
fn a_stream_finds_as_many_rows_open_as_without_groups() {
    for (slices, channels) in SHAPES {
        let (mut stream, mut random) = (GroupedModule::new(slices, channels), GroupedModule::new(slices, channels));
        stream.read((0..64_000).map(Line));
        random.read(scattered(64_000));
        let hits = (stream.row_hits(), random.row_hits());
        assert!((874..=876).contains(&hits.0) && hits.1 == 0, "{slices} slices, {channels} channels: {hits:?}");
    }
}

#[test]
fn a_channel_of_a_group_has_the_rate_that_it_has_of_the_module() {
    let mut part = Dram::of_group(CONFIG, GroupIndex { index: 3, groups: 4 });
    let time = run(&mut part, 256, (0..20_000).map(Line), read);
    let reached = percent_of_rate(20_000, time);
    assert!((24..=25).contains(&reached), "{reached} %: two of eight channels");
}
