//! A module's counters at the end of a run, independent from the types for protocol and line contents. The code that
//! builds records from these counters is compiled once instead of once per protocol.

use tombolo_metrics::MemoryCacheRecord;
use tombolo_model::fabric::{LevelTraffic, Port, SmPort};
use tombolo_model::front_end::{CopyEngine, Cpu};
use tombolo_model::l2::{BlockStats, L2Design, L2Slice, PublicationStats, WayPartition};
use tombolo_model::memory::DramStats;
use tombolo_model::module::{Controller, Module, SmShared};
use tombolo_model::observe::{Activity, Contents, L2Stats, Sample, SmStats, StallTimes};
use tombolo_model::sm::{KernelStats, Sm, TlbStats};
use tombolo_types::{ModuleId, Ps};

/// Counters for an SM.
pub(crate) struct SmCounters<'a> {
    pub(crate) stats: &'a SmStats,
    pub(crate) stalls: &'a StallTimes,
    /// Number of warp slots.
    pub(crate) slots: u64,
    /// Time during which the SM's port was sending.
    pub(crate) busy: Ps,
}

/// Counters for an L2 slice.
pub(crate) struct SliceCounters {
    /// Time during which the slice's port was in use.
    pub(crate) busy: Ps,
    /// Block counters, and the number of blocks held in each state; `None` for a line-based slice.
    pub(crate) blocks: Option<(BlockStats, Vec<(String, u64)>)>,
}

/// Counters for the memory behind the slices.
pub(crate) struct MemoryCounters {
    pub(crate) traffic: LevelTraffic,
    /// Counters for each memory-side cache.
    pub(crate) caches: Vec<MemoryCacheRecord>,
    /// Time during which each channel was in use.
    pub(crate) channels: Vec<Ps>,
}

/// Counters for a publisher.
pub(crate) struct PublicationCounters {
    pub(crate) stats: PublicationStats,
    /// Counters for the subscribers' TLB.
    pub(crate) tlb: TlbStats,
    /// Bytes published and never loaded.
    pub(crate) useless_bytes: u64,
}

/// Read access to a module's counters.
pub(crate) trait ModuleCounters {
    fn id(&self) -> ModuleId;
    /// Error message if a stream could not be read.
    fn failure(&self) -> Option<&str>;
    /// The host's core; `None` for a GPU module.
    fn cpu(&self) -> Option<&Cpu>;
    fn controller(&self) -> &Controller;
    fn copy_engine(&self) -> &CopyEngine;
    fn sm_shared(&self) -> &SmShared;
    fn ways(&self) -> &WayPartition;
    fn port(&self) -> &Port;
    /// Samples over time; `None` if the run has no timeline.
    fn activity(&self) -> Option<&Activity>;
    fn sample(&self, now: Ps) -> Sample;
    /// Counters for one launch.
    fn counted(&self, launch: usize) -> KernelStats;
    fn l2_stats(&self) -> L2Stats;
    fn dram(&self) -> DramStats;
    fn memory(&self) -> MemoryCounters;
    fn sms(&self) -> Vec<SmCounters<'_>>;
    fn slices(&self) -> Vec<SliceCounters>;
    /// Time during which the crossbar was sending to each SM.
    fn busy_to_sms(&self) -> Vec<Ps>;
    /// The publisher's counters; `None` if the module has no publisher. `grain`: bytes per grain.
    fn publication(&self, grain: u64) -> Option<PublicationCounters>;
    /// The module's lines in the deadlock report.
    fn waiting(&self) -> Vec<String>;
}

impl<C: L2Design<D>, D: Contents> ModuleCounters for Module<C, D> {
    fn id(&self) -> ModuleId {
        self.id()
    }

    fn failure(&self) -> Option<&str> {
        self.failure()
    }

    fn cpu(&self) -> Option<&Cpu> {
        self.cpu()
    }

    fn controller(&self) -> &Controller {
        self.controller()
    }

    fn copy_engine(&self) -> &CopyEngine {
        self.copy_engine()
    }

    fn sm_shared(&self) -> &SmShared {
        self.sm_shared()
    }

    fn ways(&self) -> &WayPartition {
        &self.uncore().ways
    }

    fn port(&self) -> &Port {
        &self.uncore().port
    }

    fn activity(&self) -> Option<&Activity> {
        self.uncore().activity()
    }

    fn sample(&self, now: Ps) -> Sample {
        self.sample(now)
    }

    fn counted(&self, launch: usize) -> KernelStats {
        self.counted(launch)
    }

    fn l2_stats(&self) -> L2Stats {
        self.l2_stats()
    }

    fn dram(&self) -> DramStats {
        self.slice_side().dram()
    }

    fn memory(&self) -> MemoryCounters {
        let mut sum = MemoryCounters { traffic: LevelTraffic::default(), caches: Vec::new(), channels: Vec::new() };
        for shared in self.slice_side().shared() {
            sum.traffic.merge(shared.traffic);
            sum.caches.push(shared.memory.cache());
            sum.channels.extend(shared.memory.busy());
        }
        sum
    }

    fn sms<'a>(&'a self) -> Vec<SmCounters<'a>> {
        let of = |sm: &'a Sm<D>| SmCounters {
            stats: &sm.stats,
            stalls: sm.stalls(),
            slots: sm.slots() as u64,
            busy: sm.busy(),
        };
        self.sms().iter().map(of).collect()
    }

    fn slices(&self) -> Vec<SliceCounters> {
        let of = |slice: &C::Slice| SliceCounters { busy: slice.busy(), blocks: slice.blocks() };
        self.slice_side().slices().map(of).collect()
    }

    fn busy_to_sms(&self) -> Vec<Ps> {
        self.sm_ports().iter().map(SmPort::busy).collect()
    }

    fn publication(&self, grain: u64) -> Option<PublicationCounters> {
        self.uncore().publisher.as_deref().map(|publisher| PublicationCounters {
            stats: publisher.stats,
            tlb: *publisher.tlb(),
            useless_bytes: publisher.useless_bytes(grain),
        })
    }

    fn waiting(&self) -> Vec<String> {
        let name = self.id();
        let mut lines: Vec<String> = self.controller().waiting().map(|line| format!("{name}: {line}")).collect();
        let publisher = self.uncore().publisher.iter().flat_map(|publisher| publisher.waiting());
        lines.extend(publisher.map(|line| format!("{name}: {line}")));
        lines.extend(self.cpu().and_then(Cpu::waiting).map(|line| format!("the host's core: {line}")));
        lines.extend(self.sms().iter().flat_map(|sm| sm.waiting()).map(|line| format!("{name} {line}")));
        for (index, slice) in self.slice_side().slices().enumerate() {
            lines.extend(slice.waiting().map(|(what, line)| format!("{name} slice{index}: {line} in {what}")));
        }
        lines
    }
}
