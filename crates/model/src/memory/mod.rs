//! A module's memory, split by slice group: DRAM, an optional cache in front, and line contents.

pub(crate) mod dram;
pub(crate) mod memory_cache;
pub(crate) mod write_queue;

pub use dram::{AccessTiming, Dram, DramConfig, DramStats, RefreshScope};

use crate::l2::departure::Departure;
use crate::l2::group::GroupIndex;
use crate::memory::memory_cache::{MemoryCache, MemoryCacheConfig};
use crate::observe::latency::{ModuleLatency, short};
use crate::observe::value_probe::Contents;
use rustc_hash::FxHashMap;
use tombolo_metrics::MemoryCacheRecord;
use tombolo_types::{Line, Mask, Ps};

/// Shape of the memory in a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MemoryConfig {
    /// The DRAM.
    pub(crate) dram: DramConfig,
    /// Round-trip latency to the banks, if there is no cache in front.
    pub(crate) latency: Ps,
    /// The cache in front.
    pub(crate) cache: Option<MemoryCacheConfig>,
}

/// Result of a memory read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MemoryRead {
    /// Time when the bytes are available.
    pub(crate) done: Ps,
    /// Time spent waiting for earlier accesses.
    pub(crate) queued: Ps,
}

impl MemoryRead {
    /// Latency since the request at `requested`, split into queueing and access time.
    #[inline]
    pub(crate) fn time(self, requested: Ps) -> ModuleLatency {
        let (whole, queued) = (short(self.done.saturating_sub(requested)), short(self.queued));
        let dram_queue = queued.min(whole);
        ModuleLatency { dram_queue, bank: whole - dram_queue, ..ModuleLatency::default() }
    }
}

/// Memory for one group of a module's slices: timing and, if data is modelled, contents.
pub struct Memory<D: Contents> {
    latency: Ps,
    dram: Dram,
    cache: Option<MemoryCache>,
    /// Line contents, if data is modelled.
    contents: FxHashMap<Line, D>,
}

impl<D: Contents> Memory<D> {
    /// Idle memory for a slice group.
    pub(crate) fn new(config: MemoryConfig, group: GroupIndex) -> Memory<D> {
        Memory {
            latency: config.latency,
            dram: Dram::of_group(config.dram, group),
            cache: config.cache.map(|cache| MemoryCache::of_group(cache, group)),
            contents: FxHashMap::default(),
        }
    }

    /// Reads bytes of `line` for a request with departure `departs`; returns when the bytes are available.
    pub(crate) fn fetch(&mut self, now: Ps, departs: Departure, line: Line, mask: Mask) -> MemoryRead {
        match &mut self.cache {
            Some(cache) => cache.read(now, departs, (line, mask), &mut self.dram),
            None => {
                let timing = AccessTiming { issued: now, ready: departs.time() };
                let (done, queued) = self.dram.read_behind(timing, line, mask);
                MemoryRead { done: done + self.latency, queued }
            }
        }
    }

    /// Writes bytes in `line` with departure `departs`; returns when memory has accepted all bytes.
    pub(crate) fn store(&mut self, now: Ps, departs: Departure, line: Line, mask: Mask) -> Ps {
        match &mut self.cache {
            Some(cache) => cache.write(now, departs, (line, mask), &mut self.dram),
            None => self.dram.write(AccessTiming { issued: now, ready: departs.time() }, line, mask),
        }
    }

    /// Makes the next access to the bank with `line` open a separate row; see [`Dram::close_row`].
    pub(crate) fn close_row(&mut self, line: Line) {
        self.dram.close_row(line);
    }

    /// Prefetches into the host's caches the data read by a fetch for `line`.
    #[inline]
    pub(crate) fn prefetch(&self, line: Line) {
        self.dram.prefetch(line);
    }

    /// Installs a line in the cache in front of memory, as if left there by an earlier program.
    pub(crate) fn warm(&mut self, line: Line, dirty: bool) {
        if let Some(cache) = &mut self.cache {
            cache.warm(line, dirty);
        }
    }

    /// Reads the line's contents.
    pub(crate) fn read(&self, line: Line) -> D {
        if size_of::<D>() == 0 { D::default() } else { self.contents.get(&line).copied().unwrap_or_default() }
    }

    /// Writes the line's contents.
    pub(crate) fn write(&mut self, line: Line, mask: Mask, data: D) {
        if size_of::<D>() != 0 {
            self.contents.entry(line).or_default().merge(data, mask);
        }
    }

    /// Updates the line's contents; returns the previous contents.
    pub(crate) fn update(&mut self, line: Line, mask: Mask, update: D::Update) -> D {
        if size_of::<D>() == 0 { D::default() } else { self.contents.entry(line).or_default().update(update, mask) }
    }

    /// Total queueing time of requests up to `at`, summed over channels.
    pub(crate) fn waited_until(&self, at: Ps) -> Ps {
        self.dram.waited_until(at)
    }

    /// Busy time per DRAM channel.
    pub fn busy(&self) -> impl Iterator<Item = Ps> {
        self.dram.busy()
    }

    /// Counters of the DRAM.
    pub(crate) fn dram(&self) -> &DramStats {
        self.dram.stats()
    }

    /// Counters for the cache in front of the DRAM; zeros without a cache.
    pub fn cache(&self) -> MemoryCacheRecord {
        self.cache.as_ref().map(|cache| *cache.stats()).unwrap_or_default()
    }
}
