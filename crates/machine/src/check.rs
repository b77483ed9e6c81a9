//! Consistency rules that must hold between a machine's values.

use crate::error::ConfigError;
use crate::machine::{DramConfig, FabricShape, MachineConfig, SetIndex};
use crate::tree::ConfigTable;
use std::collections::BTreeSet;
use tombolo_types::Ps;

/// A value in conflict with other values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The key's dotted path.
    pub key: &'static str,
    /// The reason, and the permitted values.
    pub reason: String,
}

impl Conflict {
    /// The error, with the key's place and value in `tree`.
    pub fn at(self, tree: &ConfigTable) -> ConfigError {
        let node = tree.find(self.key);
        ConfigError::Refused {
            place: node.map_or(&tree.place, |node| node.place()).clone(),
            key: crate::spelling::shown(self.key).to_owned(),
            value: node.map_or("(absent)", |node| node.text()).to_owned(),
            reason: self.reason,
        }
    }
}

/// Component ids have 16 bits; a module uses an id for each SM and slice, and this many for the rest (directory,
/// DRAM, translation, ports).
const OTHER_COMPONENTS: u64 = 8;

/// Maximum number of modules: an id has 8 bits, and a single value is reserved for "none".
const MODULES: u64 = 255;

/// Number of component ids: an id has 16 bits.
const COMPONENTS: u64 = 1 << 16;
/// Maximum number of lines in all caches of a kind, and of entries in all directories: assumed, 16 GB in 128-byte
/// lines, whose tags would fill the simulating machine's memory.
pub(crate) const LINES_LIMIT: u64 = 1 << 27;
/// Maximum associativity for a cache, a directory or a TLB: the number of ways that the model's tag array searches
/// at once.
pub(crate) const WAYS_LIMIT: u64 = 32;
/// Maximum number of lanes per link and direction: assumed, twice the number in the widest PCI Express link.
const LANES_LIMIT: u64 = 64;
/// Maximum number of uplinks in a tree: they are numbered like GPUs.
const UPLINKS_LIMIT: usize = 255;
/// Maximum number of bytes per message part: assumed, sixteen times the largest line. A whole message, with header,
/// mask and line in whole flits, then stays below 64 KB, the limit for the model's counters.
const MESSAGE_LIMIT: u64 = 4096;
/// Maximum bytes moved by a copy at a time: half the model's limit per message, which leaves space for the headers.
const CHUNK_LIMIT: u64 = 1 << 15;
/// Maximum number of entries in a queue or a buffer within a unit: assumed, far beyond hardware.
pub(crate) const QUEUE_LIMIT: u64 = 1 << 16;
/// Maximum number of entries in a module's TLB: assumed, enough to cover 16 GB with 64 KB pages.
const TLB_LIMIT: u64 = 1 << 18;
/// Maximum number of miss registers in a cache, and maximum number of requests waiting on a register: the model has
/// this many names.
pub const MISS_LIMIT: u64 = (1 << 16) - 1;

/// Levels of requests at an L2 slice. Each level must find a miss register that the remaining levels leave free.
pub const MISS_LEVELS: u32 = 3;

/// The key paths in a section that describes a memory.
pub(crate) struct MemoryKeys {
    pub(crate) bytes: &'static str,
    pub(crate) channels: &'static str,
    pub(crate) banks: &'static str,
    pub(crate) row_bytes: &'static str,
    pub(crate) bank_groups: &'static str,
    pub(crate) burst_bytes: &'static str,
    pub(crate) atom_bytes: &'static str,
    pub(crate) write_queue: &'static str,
    pub(crate) refresh: &'static str,
}

/// The key paths for a module's memory.
const DRAM_KEYS: MemoryKeys = MemoryKeys {
    bytes: "dram.bytes",
    channels: "dram.channels",
    banks: "dram.banks",
    row_bytes: "dram.row_bytes",
    bank_groups: "dram.bank_groups",
    burst_bytes: "dram.burst_bytes",
    atom_bytes: "dram.atom_bytes",
    write_queue: "dram.write_queue",
    refresh: "dram.refresh",
};

/// Returns a conflict unless `holds`.
pub(crate) fn demand(holds: bool, key: &'static str, reason: impl FnOnce() -> String) -> Option<Conflict> {
    (!holds).then(|| Conflict { key, reason: reason() })
}

pub(crate) fn at_most(value: u64, limit: u64, key: &'static str) -> Option<Conflict> {
    demand(value <= limit, key, || format!("at most {limit} is supported"))
}

pub(crate) fn power_of_two(value: u64, key: &'static str) -> Option<Conflict> {
    demand(value.is_power_of_two(), key, || "it must be a power of two".to_owned())
}

/// Checks the sets in `caches` caches with `bytes` each, divided into `parts` equal parts with `ways` ways; returns
/// the first conflict.
pub(crate) fn sets(
    keys: [&'static str; 3],
    (caches, bytes): (u64, u64),
    (parts, ways, line): (u64, u64, u64),
    index: SetIndex,
) -> Option<Conflict> {
    let [key, ways_key, index_key] = keys;
    let grain = parts * ways * line;
    at_most(ways, WAYS_LIMIT, ways_key)
        .or_else(|| at_most(bytes, LINES_LIMIT / caches * line, key))
        .or_else(|| {
            demand(bytes.is_multiple_of(grain), key, || {
                format!("it must be a multiple of {grain} bytes ({parts} slices × {ways} ways × {line}-byte lines)")
            })
        })
        .or_else(|| {
            let sets = bytes / grain;
            demand(index == SetIndex::Hashed || sets.is_power_of_two(), index_key, || {
                format!("{sets} sets are no power of two; use \"hashed\"")
            })
        })
}

/// Longest instruction latency, in cycles: 65,535 successive instructions then stay below the end of simulated
/// time. Assumed, far above any real latency.
const LONGEST_LATENCY: u64 = 65_535;

impl MachineConfig {
    /// The first value in conflict with other values, with the reason.
    pub(crate) fn conflict(&self) -> Option<Conflict> {
        self.topology_conflict()
            .or_else(|| self.sm_conflict())
            .or_else(|| self.cache_conflict())
            .or_else(|| self.sector_conflict())
            .or_else(|| self.l1_conflict())
            .or_else(|| self.directory_conflict())
            .or_else(|| self.network_conflict())
            .or_else(|| self.dram_conflict())
            .or_else(|| self.queue_conflict())
            .or_else(|| self.host_conflict())
    }

    fn topology_conflict(&self) -> Option<Conflict> {
        let modules = self.topology.modules() as u64;
        let units = self.units(self.l2.slices);
        demand(modules <= MODULES, "topology.modules_per_gpu", || {
            format!("{} GPUs of as many make {modules} modules; at most {MODULES} have ids", self.topology.gpus)
        })
        .or_else(|| {
            demand(modules * units < COMPONENTS, "topology.sms_per_module", || {
                let all = modules * units;
                format!("with {} L2 slices in each of {modules} modules this makes {all} components; fewer than 65536 have ids", self.l2.slices)
            })
        })
    }

    /// Maximum number of components in a module with `slices` slices.
    fn units(&self, slices: u16) -> u64 {
        u64::from(self.topology.sms_per_module) + u64::from(slices) + OTHER_COMPONENTS
    }

    /// True if ids are left for a host that takes part as an additional module. All modules are numbered as if each
    /// had the largest number of slices in any module.
    pub fn has_ids_for_host(&self) -> bool {
        let modules = self.topology.modules() as u64 + 1;
        let slices = self.coherent_host().map_or(0, |host| host.directory.controllers).max(self.l2.slices);
        modules <= MODULES && modules * self.units(slices) < COMPONENTS
    }

    fn sm_conflict(&self) -> Option<Conflict> {
        let sm = &self.sm;
        demand(matches!(sm.warp_width, 32 | 64), "sm.warp_width", || "a warp has 32 or 64 lanes".into())
            .or_else(|| at_most(sm.warps.into(), 64, "sm.warps"))
            .or_else(|| {
                demand(sm.warps.is_multiple_of(sm.sub_cores), "sm.sub_cores", || {
                    format!("{} warps cannot be shared equally", sm.warps)
                })
            })
            .or_else(|| {
                let lanes = sm.warps * sm.warp_width;
                demand(sm.threads >= sm.warp_width && sm.threads <= lanes, "sm.threads", || {
                    format!("expected {} (one warp) to {lanes} ({} warps)", sm.warp_width, sm.warps)
                })
            })
            .or_else(|| {
                demand(sm.ctas <= sm.warps, "sm.ctas", || {
                    format!("a CTA has at least one warp, and {} warps fit", sm.warps)
                })
            })
            .or_else(|| at_most(sm.pending_loads.into(), 64, "sm.pending_loads"))
            .or_else(|| self.arithmetic_conflict())
    }

    fn arithmetic_conflict(&self) -> Option<Conflict> {
        let sm = &self.sm;
        let latencies = [
            ("sm.fp32_latency_cycles", sm.fp32_latency_cycles, sm.fp32_cycles),
            ("sm.int_latency_cycles", sm.int_latency_cycles, sm.int_cycles),
            ("sm.fp64_latency_cycles", sm.fp64_latency_cycles, sm.fp64_cycles),
            ("sm.special_latency_cycles", sm.special_latency_cycles, sm.special_cycles),
            ("sm.tensor_latency_cycles", sm.tensor_latency_cycles, sm.tensor_cycles),
        ];
        latencies.into_iter().find_map(|(key, latency, issue)| {
            let enough = latency == 1 || u64::from(latency) * u64::from(issue.denominator) >= issue.numerator.into();
            demand(enough, key, || format!("expected 1, or at least the {issue} cycles that it takes to issue"))
                .or_else(|| at_most(latency.into(), LONGEST_LATENCY, key))
        })
    }

    fn l1_conflict(&self) -> Option<Conflict> {
        let l1 = &self.l1;
        let lines = l1.lookups_per_cycle;
        let most = u64::from(lines.numerator).div_ceil(lines.denominator.into());
        at_most(most, 64, "l1.lookups_per_cycle")
            .or_else(|| at_most(l1.banks.unwrap_or(1).into(), 64, "l1.banks"))
            .or_else(|| power_of_two(l1.banks.unwrap_or(1).into(), "l1.banks"))
            .or_else(|| at_most(l1.instruction_cycles.unwrap_or(1).into(), 64, "l1.instruction_cycles"))
            .or_else(|| {
                let waiting = u64::from(l1.merges) * (self.line.bytes() / l1.sector_bytes);
                at_most(waiting, MISS_LIMIT, "l1.merges")
            })
    }

    fn cache_conflict(&self) -> Option<Conflict> {
        let line = self.line.bytes();
        let (l1, l2) = (&self.l1, &self.l2);
        let (sms, modules) = (self.topology.sms() as u64, self.topology.modules() as u64);
        let shape = (1, l1.ways.into(), line);
        sets(["l1.bytes", "l1.ways", "l1.set_index"], (sms, l1.bytes), shape, l1.set_index).or_else(|| {
            let shape = (l2.slices.into(), l2.ways.into(), line);
            sets(["l2.bytes", "l2.ways", "l2.set_index"], (modules, l2.bytes), shape, l2.set_index)
        })
    }

    fn sector_conflict(&self) -> Option<Conflict> {
        let (line, grain) = (self.line.bytes(), self.line.grain());
        let bytes = self.l1.sector_bytes;
        demand(bytes.is_power_of_two() && (grain..=line).contains(&bytes), "l1.sector_bytes", || {
            format!("expected a power of two from {grain} to the line of {line} bytes")
        })
        .or_else(|| {
            let fetched = self.l2.fetch_bytes.map_or(bytes, u64::from);
            demand(fetched.is_power_of_two() && (bytes..=line).contains(&fetched), "l2.fetch_bytes", || {
                format!("expected a power of two from the sector of {bytes} bytes to the line of {line}")
            })
        })
    }

    fn directory_conflict(&self) -> Option<Conflict> {
        let directory = &self.directory;
        let limit = LINES_LIMIT / self.topology.modules() as u64;
        at_most(directory.ways.into(), WAYS_LIMIT, "directory.ways")
            .or_else(|| at_most(directory.entries.into(), limit, "directory.entries"))
            .or_else(|| {
                demand(directory.entries.is_multiple_of(directory.ways), "directory.entries", || {
                    format!("it must be a multiple of the {} ways", directory.ways)
                })
            })
            .or_else(|| power_of_two(directory.lines_per_entry.into(), "directory.lines_per_entry"))
            .or_else(|| at_most(directory.lines_per_entry.into(), 64, "directory.lines_per_entry"))
            .or_else(|| at_most(directory.tag_bits.into(), 64, "directory.tag_bits"))
            .or_else(|| power_of_two(self.page_bytes, "page_bytes"))
            .or_else(|| {
                demand(self.page_bytes >= self.region_bytes(), "page_bytes", || {
                    format!("a directory entry tracks {} bytes, which must have one home", self.region_bytes())
                })
            })
    }

    /// Partitions run in parallel for the duration of the shortest latency between them: no latency may be zero.
    fn network_conflict(&self) -> Option<Conflict> {
        let positive = |needed: bool, latency: Ps, key: &'static str| {
            demand(!needed || latency > Ps::ZERO, key, || "a message between components takes time".to_owned())
        };
        positive(true, self.crossbar.latency, "crossbar.latency")
            .or_else(|| positive(true, self.host.command_latency, "host.command_latency"))
            .or_else(|| positive(self.topology.modules_per_gpu > 1, self.module_link.latency, "module_link.latency"))
            .or_else(|| positive(self.crosses_fabric(), self.gpu_link.latency, "gpu_link.latency"))
            .or_else(|| at_most(self.gpu_link.lanes.into(), LANES_LIMIT, "gpu_link.lanes"))
            .or_else(|| self.fabric_conflict())
            .or_else(|| self.message_conflict())
    }

    fn fabric_conflict(&self) -> Option<Conflict> {
        let (gpus, fabric) = (self.topology.gpus, &self.fabric);
        let divides = fabric.gpus_per_leaf > 0 && gpus.is_multiple_of(fabric.gpus_per_leaf);
        let ports = usize::from(gpus / fabric.gpus_per_leaf.max(1)) * usize::from(fabric.uplinks);
        demand(fabric.shape != FabricShape::Tree || divides, "fabric.gpus_per_leaf", || {
            format!("{gpus} GPUs cannot be shared equally among leaves of as many")
        })
        .or_else(|| {
            demand(fabric.shape != FabricShape::Tree || ports <= UPLINKS_LIMIT, "fabric.uplinks", || {
                format!("a tree has at most {UPLINKS_LIMIT} uplinks in all, and this one would have {ports}")
            })
        })
        .or_else(|| {
            let divides = gpus == 1 || gpus.is_multiple_of(fabric.columns);
            demand(fabric.shape != FabricShape::Torus || divides, "fabric.columns", || {
                format!("{gpus} GPUs cannot stand in rows of as many")
            })
        })
        .or_else(|| self.links_conflict())
    }

    /// Reason why the fabric's listed links cannot be used, or leave a GPU out.
    fn links_conflict(&self) -> Option<Conflict> {
        let (gpus, list) = (self.topology.gpus, &self.fabric.links.0);
        if self.fabric.shape != FabricShape::Links || gpus == 1 {
            return None;
        }
        let mut pairs = BTreeSet::new();
        let wrong = list.iter().find_map(|link| {
            let (one, other) = link.ends;
            if one == other {
                Some(format!("a link joins two GPUs, and this one has {one} at both ends"))
            } else if one.max(other).0 >= gpus {
                Some(format!("{} is none of {gpus} GPUs", one.max(other)))
            } else if !pairs.insert((one.min(other), one.max(other))) {
                Some(format!("{one} and {other} have one link at most"))
            } else if link.latency < self.gpu_link.latency {
                Some(format!("{one} to {other} takes less than gpu_link.latency, which must be the least of all"))
            } else {
                None
            }
        });
        let unreachable = || self.find_routes()?.err().map(|pair| format!("{} cannot reach {}", pair.from, pair.to));
        wrong.or_else(unreachable).map(|reason| Conflict { key: "fabric.links", reason })
    }

    fn message_conflict(&self) -> Option<Conflict> {
        let sizes = &self.messages;
        [
            ("messages.header_bytes", sizes.header_bytes.0),
            ("messages.request_bytes", sizes.request_bytes.0),
            ("messages.control_bytes", sizes.control_bytes.0),
            ("messages.mask_bytes", sizes.mask_bytes.0),
            ("messages.flit_bytes", sizes.flit_bytes),
        ]
        .into_iter()
        .find_map(|(key, bytes)| at_most(bytes, MESSAGE_LIMIT, key))
        .or_else(|| self.copy_conflict())
    }

    fn copy_conflict(&self) -> Option<Conflict> {
        let (copy, line) = (&self.copy, self.line.bytes());
        demand(copy.payload.0 >= line, "copy.payload", || format!("a packet carries a line of {line} bytes at least"))
            .or_else(|| {
                let whole = copy.chunk.0 >= line && copy.chunk.0.is_multiple_of(line);
                demand(whole, "copy.chunk", || format!("it must be whole lines of {line} bytes"))
            })
            .or_else(|| at_most(copy.chunk.0, CHUNK_LIMIT, "copy.chunk"))
            .or_else(|| {
                let bytes = copy.chunk.0 + copy.chunk.0.div_ceil(copy.payload.0) * self.messages.header_bytes.0;
                demand(bytes < CHUNK_LIMIT * 2, "copy.chunk", || {
                    format!("with its headers it has {bytes} bytes; fewer than {} can be counted", CHUNK_LIMIT * 2)
                })
            })
            .or_else(|| demand(self.paging.batch > 0, "paging.batch", || "a batch has a fault".to_owned()))
            .or_else(|| self.publication_conflict())
    }

    fn publication_conflict(&self) -> Option<Conflict> {
        let publication = &self.publication;
        let (entries, ways) = (publication.tlb_entries, publication.tlb_ways);
        demand(publication.entries > 1, "publication.entries", || "one less than its lines must be some".to_owned())
            .or_else(|| demand(publication.walkers > 0, "publication.walkers", || "a walk takes a walker".to_owned()))
            .or_else(|| {
                let whole = (1..=WAYS_LIMIT).contains(&u64::from(ways)) && entries > 0 && entries.is_multiple_of(ways);
                demand(whole, "publication.tlb_ways", || {
                    format!("expected 1 to {WAYS_LIMIT} ways of whole sets; there are {entries} entries")
                })
            })
    }

    fn dram_conflict(&self) -> Option<Conflict> {
        let (line, modules) = (self.line.bytes(), self.topology.modules() as u64);
        self.memory_conflict(&self.dram, &DRAM_KEYS)
            .or_else(|| at_most(self.memory_cache.ways.into(), WAYS_LIMIT, "memory_cache.ways"))
            .or_else(|| at_most(self.memory_cache.bytes.0, LINES_LIMIT / modules * line, "memory_cache.bytes"))
            // An SM's TLB is fully associative: as many ways as entries.
            .or_else(|| at_most(self.tlb.l1_entries.into(), WAYS_LIMIT, "tlb.l1_entries"))
            .or_else(|| at_most(self.tlb.l2_ways.into(), WAYS_LIMIT, "tlb.l2_ways"))
            .or_else(|| {
                demand(self.tlb.l2_entries.is_multiple_of(self.tlb.l2_ways), "tlb.l2_entries", || {
                    format!("it must be a multiple of the {} ways", self.tlb.l2_ways)
                })
            })
    }

    /// The first conflict in a memory whose keys are `keys`.
    pub(crate) fn memory_conflict(&self, memory: &DramConfig, keys: &MemoryKeys) -> Option<Conflict> {
        let line = self.line.bytes();
        demand(memory.row_bytes.is_power_of_two() && memory.row_bytes >= line, keys.row_bytes, || {
            format!("expected a power of two, at least the line of {line} bytes")
        })
        .or_else(|| {
            demand(memory.burst_bytes.is_power_of_two() && memory.burst_bytes <= line, keys.burst_bytes, || {
                format!("expected a power of two, at most the line of {line} bytes")
            })
        })
        .or_else(|| {
            demand(memory.bytes.is_multiple_of(self.page_bytes), keys.bytes, || {
                format!("it must hold whole pages of {} bytes", self.page_bytes)
            })
        })
        .or_else(|| {
            let atom = memory.atom_bytes.map_or(memory.burst_bytes, u64::from);
            demand(atom.is_power_of_two() && (memory.burst_bytes..=line).contains(&atom), keys.atom_bytes, || {
                format!("expected a power of two, from the burst of {} bytes to the line of {line}", memory.burst_bytes)
            })
        })
        .or_else(|| power_of_two(memory.bank_groups.into(), keys.bank_groups))
        .or_else(|| at_most(memory.channels.into(), 1024, keys.channels))
        .or_else(|| at_most(memory.banks.into(), 1024, keys.banks))
        .or_else(|| at_most(memory.write_queue.into(), QUEUE_LIMIT, keys.write_queue))
        .or_else(|| {
            let refreshes = memory.refresh_interval > Ps::ZERO;
            let fits = if refreshes { memory.refresh < memory.refresh_interval } else { memory.refresh == Ps::ZERO };
            demand(fits, keys.refresh, || "a refresh takes less than the time from one to the next".into())
        })
    }

    fn queue_conflict(&self) -> Option<Conflict> {
        let misses = [
            ("l1.mshrs", self.l1.mshrs),
            ("l1.merges", self.l1.merges),
            ("l2.mshrs", self.l2.mshrs),
            ("l2.merges", self.l2.merges),
        ];
        let queues = [
            ("sm.posted_stores", self.sm.posted_stores),
            ("l2.posted_stores", self.l2.posted_stores),
            ("tlb.l1_entries", self.tlb.l1_entries),
            ("tlb.walkers", self.tlb.walkers),
        ];
        let too_many = |limit| move |(key, value): (_, u32)| at_most(value.into(), limit, key);
        misses
            .into_iter()
            .find_map(too_many(MISS_LIMIT))
            .or_else(|| queues.into_iter().find_map(too_many(QUEUE_LIMIT)))
            .or_else(|| at_most(self.tlb.l2_entries.into(), TLB_LIMIT, "tlb.l2_entries"))
            .or_else(|| {
                demand(self.l2.mshrs >= MISS_LEVELS, "l2.mshrs", || {
                    format!("at least {MISS_LEVELS}: requests of SMs, of other modules and at a home each need one")
                })
            })
            .or_else(|| self.host_queue_conflict())
    }

    fn host_queue_conflict(&self) -> Option<Conflict> {
        let host = self.coherent_host()?;
        let (key, misses, line) = ("host_directory.outstanding", host.directory.outstanding, self.line.bytes());
        at_most(misses.into(), MISS_LIMIT, key)
            .or_else(|| {
                demand(misses >= MISS_LEVELS, key, || {
                    format!(
                        "at least {MISS_LEVELS}: the host's requests, those of GPUs and those at a home each need one"
                    )
                })
            })
            .or_else(|| {
                demand(host.link.request_bytes >= line, "host_link.request_bytes", || {
                    format!("a request carries a line of {line} bytes at least")
                })
            })
    }
}
