//! A cache on the memory's side: lines of one module's DRAM, whoever asks for them. No protocol sees it, for
//! nothing reaches that DRAM around it.
//!
//! A miss fills, a write allocates without reading, a dirty line is written when it goes. Approximations: a line
//! counts as whole however little of it was written; a miss under way is not merged with, for the L2s above do
//! that.

use crate::cache::{BulkClass, Cache, CacheConfig, Index, Replacement, Ways};
use crate::departure::Departure;
use crate::dram::{Asked, Dram};
use tombolo_types::{Bytes, Line, LineSize, Ps, Rate, Serializer};

/// Shape of one module's memory-side cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryCacheConfig {
    /// Sets: any number from 1.
    pub sets: u32,
    /// Ways of a set.
    pub ways: u32,
    /// Line size.
    pub line: LineSize,
    /// Bytes read and written, both together.
    pub rate: Rate,
    /// From a request to its first byte, or to its miss leaving for DRAM.
    pub hit_latency: Ps,
    /// To the DRAM's banks and back: controller, queues and wires.
    pub miss_latency: Ps,
}

/// Counters of one memory-side cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryCacheStats {
    /// Reads that found their line.
    pub read_hits: u64,
    /// Reads that did not.
    pub read_misses: u64,
    /// Dirty lines that went to DRAM.
    pub write_backs: u64,
}

/// One module's memory-side cache. A line's state is whether it is dirty.
#[derive(Clone)]
pub struct MemoryCache {
    config: MemoryCacheConfig,
    lines: Cache<bool>,
    port: Serializer,
    stats: MemoryCacheStats,
}

impl MemoryCache {
    /// An empty cache.
    pub fn new(config: MemoryCacheConfig) -> MemoryCache {
        let shape = CacheConfig {
            sets: config.sets,
            ways: config.ways,
            replacement: Replacement::LeastRecentlyUsed,
            index: Index::Hashed,
        };
        let port = Serializer::new(config.rate);
        MemoryCache { config, lines: Cache::new(shape), port, stats: MemoryCacheStats::default() }
    }

    /// Puts a line there, as an earlier program would have left it.
    pub fn warm(&mut self, line: Line, dirty: bool) {
        self.lines.store(line, BulkClass::new(0), dirty, Ways::ALL);
    }

    /// Reads `bytes` of `line` for a request of the event at `now` that departs as told; returns when the last byte is
    /// there.
    pub fn read(&mut self, now: Ps, departs: Departure, (line, bytes): (Line, Bytes), dram: &mut Dram) -> Ps {
        let out = departs.through(now, &mut self.port, bytes).after(self.config.hit_latency).time();
        if self.lines.lookup(line).is_some() {
            self.stats.read_hits += 1;
            return out;
        }
        self.stats.read_misses += 1;
        let done =
            dram.read(Asked { now, ready: out }, line, Bytes(self.config.line.bytes())) + self.config.miss_latency;
        // The victim makes room as the miss leaves: written when the line comes, it would reserve the banks ahead of all
        // who ask until then.
        self.install(Asked { now, ready: out }, line, false, dram);
        done
    }

    /// Writes `bytes` of `line` that depart as told in the event at `now`; returns when they are taken.
    pub fn write(&mut self, now: Ps, departs: Departure, (line, bytes): (Line, Bytes), dram: &mut Dram) -> Ps {
        let taken = departs.through(now, &mut self.port, bytes).time();
        match self.lines.lookup(line) {
            Some(dirty) => {
                *dirty = true;
                taken
            }
            None => self.install(Asked { now, ready: taken }, line, true, dram),
        }
    }

    /// Counters so far.
    pub fn stats(&self) -> &MemoryCacheStats {
        &self.stats
    }

    /// Takes a line in; returns when DRAM has taken the dirty line that had to go, if one had to.
    fn install(&mut self, asked: Asked, line: Line, dirty: bool, dram: &mut Dram) -> Ps {
        let inserted = self.lines.insert(line, BulkClass::new(0), dirty, Ways::ALL).expect("no line is pinned");
        match inserted.victim {
            Some(victim) if victim.state => {
                self.stats.write_backs += 1;
                dram.write(asked, victim.line, Bytes(self.config.line.bytes()))
            }
            Some(_) | None => asked.ready,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dram::DramConfig;

    fn config() -> DramConfig {
        DramConfig {
            rate: Rate::INFINITE,
            channels: 1,
            banks: 1,
            line: LineSize::B128,
            row: Bytes(1024),
            burst: Bytes(64),
            t_cas: Ps::from_ns(10),
            t_rcd: Ps::from_ns(20),
            t_rp: Ps::from_ns(20),
            t_ras: Ps::from_ns(40),
            t_faw: Ps::ZERO,
            t_turn: Ps::ZERO,
            write_queue: 2,
        }
    }

    fn dram() -> Dram {
        Dram::new(config())
    }

    /// A cache of two lines in one set that moves 128 bytes in a nanosecond.
    fn cache() -> MemoryCache {
        MemoryCache::new(MemoryCacheConfig {
            sets: 1,
            ways: 2,
            line: LineSize::B128,
            rate: Rate(128_000_000_000),
            hit_latency: Ps::from_ns(5),
            miss_latency: Ps::from_ns(7),
        })
    }

    const LINE: Bytes = Bytes(128);

    fn read(cache: &mut MemoryCache, now: Ps, line: Line, dram: &mut Dram) -> Ps {
        cache.read(now, Departure::at(now), (line, LINE), dram)
    }

    fn write(cache: &mut MemoryCache, now: Ps, line: Line, dram: &mut Dram) -> Ps {
        cache.write(now, Departure::at(now), (line, LINE), dram)
    }

    #[test]
    fn a_miss_goes_to_dram_and_a_hit_does_not() {
        let (mut cache, mut dram) = (cache(), dram());
        assert_eq!(read(&mut cache, Ps::ZERO, Line(1), &mut dram), Ps::from_ns(1 + 5 + 30 + 7));
        assert_eq!(read(&mut cache, Ps::from_ns(100), Line(1), &mut dram), Ps::from_ns(106));
        assert_eq!((dram.stats().reads, cache.stats().read_hits, cache.stats().read_misses), (1, 1, 1));
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
        // A burst takes a nanosecond, and what misses is half a microsecond under way.
        let mut dram = Dram::new(DramConfig { rate: Rate(64_000_000_000), banks: 16, ..config() });
        let mut cache = cache();
        cache.config.miss_latency = Ps::from_ns(500);
        [Line(1), Line(2)].into_iter().for_each(|line| cache.warm(line, true));
        assert!(read(&mut cache, Ps::from_ns(1000), Line(1 << 10), &mut dram) > Ps::from_ns(1500));
        assert_eq!(dram.stats().writes, 1);
        assert!(dram.read(Asked::at(Ps::from_ns(1010)), Line(1 << 20), LINE) < Ps::from_ns(1200));
    }

    #[test]
    fn the_port_is_shared_by_reads_and_writes() {
        let (mut cache, mut dram) = (cache(), dram());
        cache.warm(Line(7), false);
        (0..9).for_each(|_| _ = write(&mut cache, Ps::ZERO, Line(7), &mut dram));
        assert_eq!(read(&mut cache, Ps::ZERO, Line(7), &mut dram), Ps::from_ns(10 + 5));
    }
}
