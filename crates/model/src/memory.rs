//! A module's memory, by group of its slices: DRAM, the cache in front of it where the machine has one, and what lines hold.

use crate::departure::Departure;
use crate::dram::{Asked, Dram, DramConfig, DramStats};
use crate::group::GroupIndex;
use crate::latency::{Inside, short};
use crate::memory_cache::{MemoryCache, MemoryCacheConfig, MemoryCacheStats};
use crate::watch::Contents;
use rustc_hash::FxHashMap;
use tombolo_types::{Bytes, Line, LineSize, Mask, Ps};

/// Shape of a module's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryConfig {
    /// The DRAM.
    pub dram: DramConfig,
    /// To its banks and back, where no cache stands before it.
    pub latency: Ps,
    /// The cache in front of it.
    pub cache: Option<MemoryCacheConfig>,
}

/// A read of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryRead {
    /// When its bytes are there.
    pub done: Ps,
    /// How long it waited for other accesses.
    pub queued: Ps,
}

impl MemoryRead {
    /// What it took from `asked` on.
    #[inline]
    pub fn time(self, asked: Ps) -> Inside {
        let (whole, queued) = (short(self.done.saturating_sub(asked)), short(self.queued));
        let dram_queue = queued.min(whole);
        Inside { dram_queue, bank: whole - dram_queue, ..Inside::default() }
    }
}

/// The memory of one group of a module's slices.
pub struct Memory<D: Contents> {
    latency: Ps,
    line: LineSize,
    dram: Dram,
    cache: Option<MemoryCache>,
    /// Contents, where data is modelled.
    contents: FxHashMap<Line, D>,
}

impl<D: Contents> Memory<D> {
    /// Idle memory of the slices of one group.
    pub fn new(config: MemoryConfig, group: GroupIndex) -> Memory<D> {
        Memory {
            latency: config.latency,
            line: config.dram.line,
            dram: Dram::of_group(config.dram, group),
            cache: config.cache.map(|cache| MemoryCache::of_group(cache, group)),
            contents: FxHashMap::default(),
        }
    }

    /// Has memory read bytes of `line` for a request that departs as told; returns when they are there.
    pub fn fetch(&mut self, now: Ps, departs: Departure, line: Line, mask: Mask) -> MemoryRead {
        let bytes = self.bytes(mask);
        match &mut self.cache {
            Some(cache) => cache.read(now, departs, (line, mask), &mut self.dram),
            None => {
                let asked = Asked { now, ready: departs.time() };
                let (done, queued) = self.dram.read_behind(asked, line, bytes);
                MemoryRead { done: done + self.latency, queued }
            }
        }
    }

    /// Has memory write bytes of `line` that depart as told; returns when they are taken.
    pub fn store(&mut self, now: Ps, departs: Departure, line: Line, mask: Mask) -> Ps {
        match &mut self.cache {
            Some(cache) => cache.write(now, departs, (line, mask), &mut self.dram),
            None => self.dram.write(Asked { now, ready: departs.time() }, line, mask),
        }
    }

    /// The next access to the bank of `line` opens a row of its own; [`Dram::close_row`].
    pub fn close_row(&mut self, line: Line) {
        self.dram.close_row(line);
    }

    fn bytes(&self, mask: Mask) -> Bytes {
        Bytes(u64::from(mask.grains()) * self.line.grain())
    }

    /// Starts to load what a fetch of `line` will read into the host's caches.
    #[inline]
    pub fn prefetch(&self, line: Line) {
        self.dram.prefetch(line);
    }

    /// Puts a line into the cache in front of memory, as an earlier program would have left it.
    pub fn warm(&mut self, line: Line, dirty: bool) {
        if let Some(cache) = &mut self.cache {
            cache.warm(line, dirty);
        }
    }

    /// Reads the contents.
    pub fn read(&self, line: Line) -> D {
        if size_of::<D>() == 0 { D::default() } else { self.contents.get(&line).copied().unwrap_or_default() }
    }

    /// Writes the contents.
    pub fn write(&mut self, line: Line, mask: Mask, data: D) {
        if size_of::<D>() != 0 {
            self.contents.entry(line).or_default().merge(data, mask);
        }
    }

    /// Updates the contents; returns what they were.
    pub fn update(&mut self, line: Line, mask: Mask, update: D::Update) -> D {
        if size_of::<D>() == 0 { D::default() } else { self.contents.entry(line).or_default().update(update, mask) }
    }

    /// How long requests have queued until `at`, summed over channels.
    pub fn waited_until(&self, at: Ps) -> Ps {
        self.dram.waited_until(at)
    }

    /// How long each channel of the DRAM was in use.
    pub fn busy(&self) -> impl Iterator<Item = Ps> {
        self.dram.busy()
    }

    /// Counters of the DRAM.
    pub fn dram(&self) -> &DramStats {
        self.dram.stats()
    }

    /// Counters of the cache in front of it; zeros where there is none.
    pub fn cache(&self) -> MemoryCacheStats {
        self.cache.as_ref().map(|cache| *cache.stats()).unwrap_or_default()
    }
}
