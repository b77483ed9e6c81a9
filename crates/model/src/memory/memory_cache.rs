//! A memory-side cache, the last level (L3): holds lines from one module's DRAM, for every requester. No protocol sees
//! the cache, because no access bypasses it to reach the DRAM.
//!
//! | | line absent | rest of the line absent | line in flight | line present |
//! | --- | --- | --- | --- | --- |
//! | read of stored bytes | | hit | hit | hit |
//! | read of other bytes | miss: DRAM reads the line | miss: DRAM reads the rest | merge: waits for the arrival | hit |
//! | store | allocates a line, reads nothing | adds its bytes | adds its bytes | adds its bytes |
//!
//! A partial store records the bytes written; a later read fetches the rest from DRAM. A program that writes whole
//! lines in parts therefore reads nothing. Source: assumed; CPElide (MICRO 2024) states no policy. If partial stores
//! bypassed the cache, write-back would behave like write-through for every program without whole-line writes.
//!
//! With write-back, stored bytes go to DRAM when their line is evicted. With write-through, stored bytes enter the DRAM
//! write queue immediately; the queue combines waiting stores to a line. The line is allocated in both cases (assumed),
//! so the policies differ only in the time when DRAM is written.
//!
//! Each slice group in the module has a share of the sets, and an equal share of the rate, for the group's lines alone.
//!
//! Approximations: data from DRAM does not occupy the cache's port; a line evicted while in flight still serves its
//! waiting requests.

use crate::l2::cache::{BulkClass, Cache, CacheConfig, IndexFunction, Replacement, Ways};
use crate::l2::departure::Departure;
use crate::l2::group::GroupIndex;
use crate::memory::MemoryRead;
use crate::memory::dram::{AccessTiming, Dram};
use tombolo_metrics::MemoryCacheRecord;
use tombolo_protocol::options::WritePolicy;
use tombolo_types::{Bytes, Line, LineSize, Mask, Ps, Rate, Serializer};

/// Shape of a module's memory-side cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MemoryCacheConfig {
    /// Number of sets, from 1.
    pub(crate) sets: u32,
    /// Ways per set.
    pub(crate) ways: u32,
    /// Line size.
    pub(crate) line: LineSize,
    /// Rate for bytes read and written together.
    pub(crate) rate: Rate,
    /// Latency from a request to the first byte, or until the miss leaves for DRAM.
    pub(crate) hit_latency: Ps,
    /// Round-trip latency to the DRAM banks: controller, queues and wires.
    pub(crate) miss_latency: Ps,
    /// Policy that decides when stored bytes go to DRAM.
    pub(crate) write: WritePolicy,
}

/// State of a line in the cache: which bytes were stored here, and when the rest arrives from DRAM.
#[derive(Clone, Copy, Debug, Default)]
struct MemoryCacheLine {
    /// Bytes stored since the line was allocated; dirty under write-back.
    stored: Mask,
    /// Arrival time for all remaining bytes; [`Ps::NEVER`] before any request to DRAM.
    arrival: Ps,
}

/// Memory-side cache for a module, or the part that belongs to a slice group.
#[derive(Clone)]
pub(crate) struct MemoryCache {
    config: MemoryCacheConfig,
    lines: Cache<MemoryCacheLine>,
    port: Serializer,
    /// Number of parts in the module's cache, counting this part.
    parts: u64,
    stats: MemoryCacheRecord,
}

impl MemoryCache {
    /// An empty cache.
    pub(crate) fn new(config: MemoryCacheConfig) -> MemoryCache {
        MemoryCache::part(config, (config.sets, 1), IndexFunction::Hashed)
    }

    /// An empty part of a module's cache, for one slice group; `config` describes the whole cache. Group shares of the
    /// sets differ by at most one set, and each group has a set. The port has an equal share of the rate: a transfer
    /// takes equally long on the whole port, and the next transfer waits for the time at the reduced rate.
    pub(crate) fn of_group(config: MemoryCacheConfig, group: GroupIndex) -> MemoryCache {
        if group.groups == 1 {
            return MemoryCache::new(config);
        }
        let sets = group.part(config.sets).max(1);
        MemoryCache::part(config, (sets, group.groups.into()), IndexFunction::HashedWithinSlices)
    }

    fn part(config: MemoryCacheConfig, (sets, parts): (u32, u64), index: IndexFunction) -> MemoryCache {
        let shape = CacheConfig { sets, ways: config.ways, replacement: Replacement::LeastRecentlyUsed, index };
        let port = Serializer::new(Rate(config.rate.0 / parts));
        MemoryCache { config, lines: Cache::new(shape), port, parts, stats: MemoryCacheRecord::default() }
    }

    /// Installs a line, as if left by an earlier program. With write-through, no line is dirty.
    pub(crate) fn warm(&mut self, line: Line, dirty: bool) {
        let stored = if dirty { Mask::ALL } else { Mask::NONE };
        self.lines.store(line, BulkClass::new(0), MemoryCacheLine { stored, arrival: Ps::ZERO }, Ways::ALL);
    }

    /// Reads bytes of a line in the event at `now`, for a request that departs at `departs`; returns when the last byte
    /// is available. The latency includes the wait for the port and, on a miss, for the DRAM.
    pub(crate) fn read(
        &mut self,
        now: Ps,
        departs: Departure,
        (line, mask): (Line, Mask),
        dram: &mut Dram,
    ) -> MemoryRead {
        let alone = departs.time() + self.span(self.bytes(mask)) + self.config.hit_latency;
        let out = self.pass(now, departs, mask).after(self.config.hit_latency).time();
        let queued = out.saturating_sub(alone);
        self.stats.accesses += 1;
        self.stats.reads += 1;
        let (timing, held) = (AccessTiming { issued: now, ready: out }, self.lines.lookup(line).copied());
        match held {
            Some(MemoryCacheLine { stored, arrival }) if stored.contains(mask) || arrival <= out => {
                self.stats.hits += 1;
                MemoryRead { done: out, queued }
            }
            Some(MemoryCacheLine { arrival, .. }) if arrival != Ps::NEVER => {
                self.stats.merges += 1;
                MemoryRead { done: arrival, queued }
            }
            Some(MemoryCacheLine { stored, .. }) => {
                let (arrival, behind) = self.read_dram(timing, (line, !stored), dram);
                *self.lines.peek_mut(line).expect("the line was just looked up") = MemoryCacheLine { stored, arrival };
                MemoryRead { done: arrival, queued: queued + behind }
            }
            None => {
                let (arrival, behind) = self.read_dram(timing, (line, Mask::ALL), dram);
                // The victim is written back when the miss leaves. A write-back at the fill would reserve DRAM banks
                // ahead of all requests until then.
                self.install(timing, line, MemoryCacheLine { stored: Mask::NONE, arrival }, dram);
                MemoryRead { done: arrival, queued: queued + behind }
            }
        }
    }

    /// Stores bytes that depart at `departs`, in the event at `now`. Returns when they are accepted, with write-through
    /// also by DRAM. With write-back, the time depends only on the port, and on a dirty victim if a line must be
    /// allocated.
    pub(crate) fn write(&mut self, now: Ps, departs: Departure, (line, mask): (Line, Mask), dram: &mut Dram) -> Ps {
        let taken = self.pass(now, departs, mask).time();
        let timing = AccessTiming { issued: now, ready: taken };
        self.stats.accesses += 1;
        self.stats.writes += 1;
        let placed = match self.lines.lookup(line) {
            Some(held) => {
                held.stored |= mask;
                taken
            }
            None => self.install(timing, line, MemoryCacheLine { stored: mask, arrival: Ps::NEVER }, dram),
        };
        match self.config.write {
            WritePolicy::Back => placed,
            WritePolicy::Through => placed.max(dram.write(timing, line, mask)),
        }
    }

    /// Counters so far.
    pub(crate) fn stats(&self) -> &MemoryCacheRecord {
        &self.stats
    }

    /// Passes bytes through the port.
    fn pass(&mut self, now: Ps, departs: Departure, mask: Mask) -> Departure {
        let bytes = self.bytes(mask);
        let span = self.span(bytes);
        departs.through_one_of(now, &mut self.port, bytes, span)
    }

    /// Time for bytes to pass the port once their turn comes.
    fn span(&self, bytes: Bytes) -> Ps {
        Ps(self.port.span(bytes).0 / self.parts)
    }

    fn bytes(&self, mask: Mask) -> Bytes {
        Bytes(u64::from(mask.grains()) * self.config.line.grain())
    }

    /// Reads bytes in a line from DRAM; returns the arrival time, and the wait for earlier accesses.
    fn read_dram(&mut self, timing: AccessTiming, (line, mask): (Line, Mask), dram: &mut Dram) -> (Ps, Ps) {
        self.stats.misses += 1;
        let (done, behind) = dram.read_behind(timing, line, mask);
        (done + self.config.miss_latency, behind)
    }

    /// Allocates a line and evicts a victim if necessary; returns when DRAM has accepted the victim's dirty bytes, if
    /// there are any.
    fn install(&mut self, timing: AccessTiming, line: Line, held: MemoryCacheLine, dram: &mut Dram) -> Ps {
        let inserted = self.lines.insert(line, BulkClass::new(0), held, Ways::ALL).expect("no line is pinned");
        let Some(victim) = inserted.victim else { return timing.ready };
        self.stats.evictions += 1;
        let dirty = match self.config.write {
            WritePolicy::Back => victim.state.stored,
            WritePolicy::Through => Mask::NONE,
        };
        if dirty.is_empty() {
            return timing.ready;
        }
        self.stats.write_backs += 1;
        dram.write(timing, victim.line, dirty)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::dram::{DramConfig, RefreshScope};

    fn config() -> DramConfig {
        DramConfig {
            rate: Rate::INFINITE,
            channels: 1,
            banks: 1,
            bank_groups: 1,
            line: LineSize::B128,
            row: Bytes(1024),
            burst: Bytes(64),
            atom: Bytes(64),
            t_cas: Ps::from_ns(10),
            t_cwl: Ps::from_ns(10),
            t_ccd_l: Ps::ZERO,
            t_rcd: Ps::from_ns(20),
            t_rp: Ps::from_ns(20),
            t_ras: Ps::from_ns(40),
            t_rrd_s: Ps::ZERO,
            t_rrd_l: Ps::ZERO,
            t_faw: Ps::ZERO,
            t_rtp: Ps::ZERO,
            t_wr: Ps::ZERO,
            t_turn: Ps::ZERO,
            refresh: RefreshScope::Channel,
            t_refi: Ps::ZERO,
            t_rfc: Ps::ZERO,
            write_queue: 2,
        }
    }

    fn dram() -> Dram {
        Dram::new(config())
    }

    /// A cache with a single set of two lines, moving 128 bytes per nanosecond.
    fn cache() -> MemoryCache {
        MemoryCache::new(MemoryCacheConfig {
            sets: 1,
            ways: 2,
            line: LineSize::B128,
            rate: Rate(128_000_000_000),
            hit_latency: Ps::from_ns(5),
            miss_latency: Ps::from_ns(7),
            write: WritePolicy::Back,
        })
    }

    /// First and second half line.
    const HALVES: [Mask; 2] = [Mask(0xffff), Mask(0xffff_0000)];

    fn read(cache: &mut MemoryCache, now: Ps, line: Line, dram: &mut Dram) -> Ps {
        cache.read(now, Departure::at(now), (line, Mask::ALL), dram).done
    }

    fn write(cache: &mut MemoryCache, now: Ps, line: Line, dram: &mut Dram) -> Ps {
        write_part(cache, now, (line, Mask::ALL), dram)
    }

    fn write_part(cache: &mut MemoryCache, now: Ps, part: (Line, Mask), dram: &mut Dram) -> Ps {
        cache.write(now, Departure::at(now), part, dram)
    }

    #[test]
    fn a_miss_goes_to_dram_and_a_hit_does_not() {
        let (mut cache, mut dram) = (cache(), dram());
        assert_eq!(read(&mut cache, Ps::ZERO, Line(1), &mut dram), Ps::from_ns(1 + 5 + 30 + 7));
        assert_eq!(read(&mut cache, Ps::from_ns(100), Line(1), &mut dram), Ps::from_ns(106));
        assert_eq!((dram.stats().reads, cache.stats().hits, cache.stats().misses), (1, 1, 1));
    }

    #[test]
    fn a_line_that_is_there_from_before_is_a_hit() {
        let (mut cache, mut dram) = (cache(), dram());
        cache.warm(Line(7), false);
        assert_eq!(read(&mut cache, Ps::ZERO, Line(7), &mut dram), Ps::from_ns(6));
    }

    #[test]
    fn a_written_line_reaches_dram_when_it_goes() {
        let (mut cache, mut dram) = (cache(), dram());
        write(&mut cache, Ps::ZERO, Line(1), &mut dram);
        write(&mut cache, Ps::ZERO, Line(2), &mut dram);
        assert_eq!(dram.stats().writes, 0);
        read(&mut cache, Ps::ZERO, Line(3), &mut dram);
        assert_eq!((dram.stats().writes, cache.stats().write_backs), (1, 1));
    }

    #[test]
    fn a_victim_holds_up_nobody_who_asks_before_its_successor_has_come() {
        // A burst takes a nanosecond, and a miss is in flight for half a microsecond.
        let mut dram = Dram::new(DramConfig { rate: Rate(64_000_000_000), banks: 16, ..config() });
        let mut cache = cache();
        cache.config.miss_latency = Ps::from_ns(500);
        [Line(1), Line(2)].into_iter().for_each(|line| cache.warm(line, true));
        assert!(read(&mut cache, Ps::from_ns(1000), Line(1 << 10), &mut dram) > Ps::from_ns(1500));
        assert_eq!(dram.stats().writes, 1);
        assert!(dram.read(AccessTiming::at(Ps::from_ns(1010)), Line(1 << 20), Mask::ALL) < Ps::from_ns(1200));
    }

    #[test]
    fn groups_hold_together_what_the_cache_holds_and_share_its_rate() {
        let whole = MemoryCacheConfig { sets: 10, ..cache().config };
        let (mut held, mut dram) = (0, dram());
        for mut part in GroupIndex::all(4).map(|group| MemoryCache::of_group(whole, group)) {
            (0..1000).for_each(|line| part.warm(Line(line), false));
            held += (0..1000).filter(|&line| part.lines.peek(Line(line)).is_some()).count();
            let reads = [(); 3].map(|()| read(&mut part, Ps::ZERO, Line(999), &mut dram));
            assert_eq!(reads, [1, 4 + 1, 8 + 1].map(|passed| Ps::from_ns(passed + 5)), "a line every four nanoseconds");
        }
        assert_eq!(held, 20, "ten sets of two ways");
        let few = MemoryCacheConfig { sets: 3, ..whole };
        let mut least = MemoryCache::of_group(few, GroupIndex { index: 0, groups: 4 });
        (0..1000).for_each(|line| least.warm(Line(line), false));
        assert!(least.lines.peek(Line(999)).is_some(), "each has at least one set");
    }

    #[test]
    fn the_port_is_shared_by_reads_and_writes() {
        let (mut cache, mut dram) = (cache(), dram());
        cache.warm(Line(7), false);
        (0..9).for_each(|_| _ = write(&mut cache, Ps::ZERO, Line(7), &mut dram));
        assert_eq!(read(&mut cache, Ps::ZERO, Line(7), &mut dram), Ps::from_ns(10 + 5));
    }

    #[test]
    fn a_line_on_its_way_is_waited_for() {
        let (mut cache, mut dram) = (cache(), dram());
        let arrival = read(&mut cache, Ps::ZERO, Line(1), &mut dram);
        assert_eq!(read(&mut cache, Ps::from_ns(2), Line(1), &mut dram), arrival);
        assert_eq!((dram.stats().reads, cache.stats().merges, cache.stats().hits), (1, 1, 0));
        assert_eq!(read(&mut cache, arrival, Line(1), &mut dram), arrival + Ps::from_ns(6), "then it hits");
    }

    #[test]
    fn a_line_stored_in_parts_is_never_read_from_dram() {
        let (mut cache, mut dram) = (cache(), dram());
        HALVES.into_iter().for_each(|half| _ = write_part(&mut cache, Ps::ZERO, (Line(1), half), &mut dram));
        assert_eq!(read(&mut cache, Ps::from_ns(100), Line(1), &mut dram), Ps::from_ns(106));
        assert_eq!((dram.stats().reads, cache.stats().writes, cache.stats().hits), (0, 2, 1));
    }

    #[test]
    fn the_rest_of_a_line_is_fetched_when_somebody_reads_it() {
        let (mut cache, mut dram) = (cache(), dram());
        write_part(&mut cache, Ps::ZERO, (Line(1), HALVES[0]), &mut dram);
        let stored = cache.read(Ps::ZERO, Departure::at(Ps::ZERO), (Line(1), HALVES[0]), &mut dram).done;
        assert_eq!((stored, dram.stats().reads), (Ps::from_ns(1 + 5), 0), "stored bytes are there");
        read(&mut cache, Ps::from_ns(100), Line(1), &mut dram);
        assert_eq!((dram.stats().read_bytes, cache.stats().misses), (64, 1));
        [Line(2), Line(3)].into_iter().for_each(|line| _ = read(&mut cache, Ps::from_ns(200), line, &mut dram));
        assert_eq!((dram.stats().write_bytes, cache.stats().write_backs), (64, 1), "only stored bytes are dirty");
    }

    #[test]
    fn stores_of_a_line_written_through_share_a_place_in_the_write_queue() {
        let (mut cache, mut dram) = (cache(), Dram::new(DramConfig { write_queue: 64, ..config() }));
        cache.config.write = WritePolicy::Through;
        (0..1000).for_each(|_| _ = write_part(&mut cache, Ps::ZERO, (Line(1), HALVES[0]), &mut dram));
        assert_eq!((dram.stats().writes, dram.stats().write_bytes, cache.stats().writes), (1, 64, 1000));
        write_part(&mut cache, Ps::ZERO, (Line(1), HALVES[1]), &mut dram);
        assert_eq!((dram.stats().writes, dram.stats().write_bytes), (1, 128));
    }

    #[test]
    fn stores_written_through_reach_dram_at_once_and_leave_nothing_dirty() {
        let (mut cache, mut dram) = (cache(), dram());
        cache.config.write = WritePolicy::Through;
        write(&mut cache, Ps::ZERO, Line(1), &mut dram);
        write(&mut cache, Ps::ZERO, Line(1), &mut dram);
        assert_eq!((dram.stats().writes, dram.stats().reads), (2, 0));
        assert_eq!(read(&mut cache, Ps::from_ns(100), Line(1), &mut dram), Ps::from_ns(106), "the copy is kept");
        [Line(2), Line(3)].into_iter().for_each(|line| _ = read(&mut cache, Ps::from_ns(200), line, &mut dram));
        assert_eq!((cache.stats().evictions, cache.stats().write_backs), (1, 0));
    }
}
