//! Conversion from the machine's description to component configurations.

use crate::fabric::turning_link::Direction;
use crate::fabric::{link, port, switch, tree};
use crate::l2::cache::{CacheConfig, IndexFunction, Replacement};
use crate::l2::mshr::MshrConfig;
use crate::l2::way_partition::WayPartitionConfig;
use crate::l2::{directory, drains, posted, publisher};
use crate::layout::ComponentLayout;
use crate::memory::{self, dram, memory_cache};
use crate::sm::{tlb, translation};
use std::sync::Arc;
use tombolo_design::Capacity;
use tombolo_design::capacity::{CapacityPolicy, Shared};
use tombolo_machine::coherent_host::HostPath;
use tombolo_machine::quantity::Fraction;
use tombolo_machine::{MISS_LEVELS, MachineConfig, machine};
use tombolo_protocol::options::WritePolicy;
use tombolo_types::{Bytes, GpuId, Interval, Ps, Rate, Sectors, Serializer};

/// Sectors per line in the caches.
pub(crate) fn sectors(machine: &MachineConfig) -> Sectors {
    Sectors::new((machine.l1.sector_bytes / machine.line.grain()) as u32)
}

/// Tag array of an L1.
pub fn l1(machine: &MachineConfig) -> CacheConfig {
    let lines = machine.l1.bytes / machine.line.bytes();
    CacheConfig {
        sets: (lines / u64::from(machine.l1.ways)) as u32,
        ways: machine.l1.ways,
        replacement: Replacement::LeastRecentlyUsed,
        index: index(machine.l1.set_index),
    }
}

/// Tag array for one L2 slice. A module's sets are divided evenly among the slices, rounded down.
pub fn l2_slice(machine: &MachineConfig) -> CacheConfig {
    let lines = machine.l2.bytes / machine.line.bytes() / u64::from(machine.l2.slices);
    CacheConfig {
        sets: ((lines / u64::from(machine.l2.ways)) as u32).max(1),
        ways: machine.l2.ways,
        replacement: Replacement::LeastRecentlyUsed,
        index: index(machine.l2.set_index),
    }
}

fn index(word: machine::SetIndex) -> IndexFunction {
    match word {
        machine::SetIndex::Hashed => IndexFunction::Hashed,
        machine::SetIndex::LowBits => IndexFunction::LowBits,
    }
}

/// Directory of one L2 slice.
pub fn directory_slice(machine: &MachineConfig) -> directory::DirectoryConfig {
    let entries = machine.directory.entries / u32::from(machine.l2.slices);
    directory::DirectoryConfig {
        sets: (entries / machine.directory.ways).max(1),
        ways: machine.directory.ways,
        lines_per_entry: machine.directory.lines_per_entry,
    }
}

/// Miss levels served by a slice: requests from SMs in the module, from other modules to a GPU home, and to a system
/// home.
pub(crate) fn miss_levels(machine: &MachineConfig) -> [bool; MISS_LEVELS as usize] {
    let topology = &machine.topology;
    [true, topology.gpus > 1 && topology.modules_per_gpu > 1, topology.modules() > 1]
}

/// Minimum time that a request occupies a slice's port.
pub(crate) fn request_interval(machine: &MachineConfig) -> Interval {
    let cycles = machine.l2.request_cycles;
    Interval::cycles(machine.sm.clock.span(1 << 20), (cycles.numerator, cycles.denominator))
}

/// MSHRs in an L1. A line's merge limit scales with its number of sectors.
pub(crate) fn l1_mshr(machine: &MachineConfig) -> MshrConfig {
    let sectors = (machine.line.bytes() / machine.l1.sector_bytes) as u32;
    MshrConfig { entries: machine.l1.mshrs, merges: machine.l1.merges * sectors }
}

/// Duration of a walk over a module's L2. All slices are walked in parallel.
pub(crate) fn walk(machine: &MachineConfig) -> Ps {
    Serializer::new(machine.l2.walk_rate).span(Bytes(machine.l2.bytes / u64::from(machine.l2.slices)))
}

/// Configuration for a link direction.
pub(crate) fn link(config: &machine::LinkConfig) -> link::LinkConfig {
    link::LinkConfig { rate: config.rate, latency: config.latency }
}

/// Output ports on the switches in a tree; the input ports are links with equal rates.
pub(crate) fn switch(machine: &MachineConfig) -> switch::SwitchConfig {
    switch::SwitchConfig {
        ports: u32::from(machine.topology.gpus),
        rate: machine.gpu_link.rate,
        flit: Bytes(machine.messages.flit_bytes),
        crossing: Ps::ZERO,
    }
}

/// Uplinks between the switches in a tree.
pub(crate) fn tree(machine: &MachineConfig) -> tree::TreeConfig {
    let fabric = &machine.fabric;
    let of_gpus = switch(machine);
    let uplinks = u32::from(machine.topology.gpus / fabric.gpus_per_leaf) * u32::from(fabric.uplinks);
    tree::TreeConfig {
        gpus_per_leaf: fabric.gpus_per_leaf,
        per_leaf: fabric.uplinks,
        uplinks: switch::SwitchConfig { rate: fabric.uplink_rate, ports: of_gpus.ports.max(uplinks), ..of_gpus },
        latency: fabric.uplink_latency,
    }
}

/// Number of GPUs whose output and input ports at the switch are separate components. `host` includes a coherent host
/// attached to the switch. Zero if the GPUs share a medium or tree uplinks, have a link per pair, pass packets on, or turn
/// lanes (`turns`), or if no packet crosses the switch.
pub fn gpu_ports(machine: &MachineConfig, host: bool, turns: bool) -> u8 {
    let inside = machine.coherent_host().is_some_and(|config| host && config.link.through == HostPath::Fabric);
    let members = machine.topology.gpus + u8::from(inside);
    let apart = machine.fabric.shape == machine::FabricShape::Switch && !turns && members > 1;
    if apart { members } else { 0 }
}

/// Latency between a module and its GPU's switch port, in addition to the module link. Both together make a quarter of
/// the inter-GPU latency, unless the module link alone is slower.
pub(crate) fn port_latency(machine: &MachineConfig, module_link: Ps) -> Ps {
    Ps(machine.gpu_link.latency.0 / 4).saturating_sub(module_link)
}

/// Port for a module in `gpu`, towards the other modules.
pub(crate) fn port(machine: &MachineConfig, layout: ComponentLayout, gpu: GpuId) -> port::PortConfig {
    let exit = |apart: bool, latency: Ps| {
        if apart {
            let at = layout.gpu_port(gpu, Direction::Out);
            return port::PortExit { at, latency: port_latency(machine, machine.module_link.latency) };
        }
        port::PortExit { at: layout.switch(), latency: Ps(latency.0 / 2) }
    };
    let host = machine.topology.gpus;
    port::PortConfig {
        link: link(&machine.module_link),
        to_gpus: exit(layout.gpu_ports > 0, machine.gpu_link.latency),
        to_host: exit(layout.gpu_ports > host, host_latency_one_way(machine).unwrap_or(Ps::ZERO)),
        sources: sources(layout),
        modules: usize::from(layout.all_modules()),
    }
}

/// Latency between an SM and the module's controller, in either direction: the crossbar latency, at least one
/// picosecond.
pub(crate) fn to_controller(machine: &MachineConfig) -> Ps {
    machine.crossbar.latency.max(Ps(1))
}

/// Latency from an SM's TLB miss to the L2 TLB: half of the configured latency. The return path takes the second half.
pub(crate) fn to_l2_tlb(machine: &MachineConfig) -> Ps {
    Ps(machine.tlb.l2_latency.0 / 2)
}

/// Number of components per module with separate send channels: each slice, and all remaining components together.
pub(crate) fn sources(layout: ComponentLayout) -> usize {
    usize::from(layout.slices) + 1
}

/// Limits on operations that a module's L2 may have in flight.
pub(crate) fn drains(machine: &MachineConfig) -> drains::DrainsConfig {
    drains::DrainsConfig { stores: machine.l2.posted_stores }
}

/// Limits on stores that an SM may have posted.
pub(crate) fn posted(machine: &MachineConfig) -> posted::PostedConfig {
    posted::PostedConfig { stores: machine.sm.posted_stores }
}

/// Number of slice groups per module: the greatest common divisor between the numbers of slices and DRAM channels. The
/// host's slices are directories.
pub fn slice_groups(machine: &MachineConfig) -> u16 {
    common_divisor(machine.l2.slices.into(), machine.dram.channels.into()) as u16
}

/// Number of L2 TLB banks in a module. Each bank owns a share of the walkers and belongs to a slice group. The number
/// is the greatest common divisor of groups, walkers and sets. A machine with a walker per slice has a bank per group.
pub fn tlb_banks(machine: &MachineConfig) -> u16 {
    let sets = machine.tlb.l2_entries / machine.tlb.l2_ways;
    common_divisor(common_divisor(slice_groups(machine).into(), machine.tlb.walkers), sets) as u16
}

fn common_divisor(mut one: u32, mut other: u32) -> u32 {
    while other > 0 {
        (one, other) = (other, one % other);
    }
    one
}

/// A module's memory; `write`: policy for stores that pass the cache in front.
pub(crate) fn memory(machine: &MachineConfig, write: WritePolicy) -> memory::MemoryConfig {
    memory::MemoryConfig {
        dram: dram(machine),
        latency: machine.dram.base_latency,
        cache: memory_cache(machine, write),
    }
}

/// DRAM of a module.
pub fn dram(machine: &MachineConfig) -> dram::DramConfig {
    let dram = &machine.dram;
    dram::DramConfig {
        rate: dram.rate,
        channels: u32::from(dram.channels),
        banks: dram.banks,
        // The largest power of two that divides the banks too.
        bank_groups: dram.bank_groups.min(1 << dram.banks.trailing_zeros()),
        line: machine.line,
        row: Bytes(dram.row_bytes),
        burst: Bytes(dram.burst_bytes),
        atom: Bytes(dram.atom_bytes.map_or(dram.burst_bytes, u64::from)),
        t_cas: dram.column,
        t_cwl: dram.t_cwl,
        t_ccd_l: dram.t_ccd_l,
        t_rcd: dram.activate,
        t_rp: dram.precharge,
        t_ras: dram.row_active,
        t_rrd_s: dram.t_rrd_s,
        t_rrd_l: dram.t_rrd_l,
        t_faw: dram.t_faw,
        t_rtp: dram.t_rtp,
        t_wr: dram.t_wr,
        t_turn: dram.turn,
        refresh: dram.refresh_scope,
        t_refi: dram.refresh_interval,
        t_rfc: dram.refresh,
        write_queue: dram.write_queue.max(2),
    }
}

/// Memory-side cache in a module, if present. The number of sets is rounded down.
pub(crate) fn memory_cache(machine: &MachineConfig, write: WritePolicy) -> Option<memory_cache::MemoryCacheConfig> {
    let cache = &machine.memory_cache;
    let sets = cache.bytes.0 / machine.line.bytes() / u64::from(cache.ways);
    (sets > 0).then_some(memory_cache::MemoryCacheConfig {
        sets: sets as u32,
        ways: cache.ways,
        line: machine.line,
        rate: cache.rate,
        hit_latency: cache.hit_latency,
        miss_latency: machine.dram.base_latency,
        write,
    })
}

/// Way partition in a module. A single module has no remote lines, so all ways are shared.
pub(crate) fn way_partition(machine: &MachineConfig, policy: &Arc<dyn CapacityPolicy>) -> WayPartitionConfig {
    let alone = machine.topology.modules() == 1;
    let policy = if alone { Capacity::Shared(Shared {}).policy() } else { Arc::clone(policy) };
    WayPartitionConfig {
        sample: policy.sample_cycles().map(|cycles| machine.sm.clock.span(cycles.into())),
        policy,
        l1_ways: machine.l1.ways,
        l2_ways: machine.l2.ways,
        incoming: incoming(machine, machine.gpu_link.lanes),
    }
}

/// Rate at which data can enter a module while the GPU's link has `lanes` incoming lanes: the port's rate or the
/// module's share of the link, whichever is less. With several links per GPU, all links of the GPU with the slowest ones
/// count. A shared medium counts with the rate that a single GPU gets alone.
pub(crate) fn incoming(machine: &MachineConfig, lanes: u32) -> Rate {
    let (topology, link) = (&machine.topology, &machine.gpu_link);
    let crosses = topology.gpus > 1 && !link.rate.is_infinite();
    let all = match machine.fabric.shape {
        machine::FabricShape::Switch | machine::FabricShape::Tree | machine::FabricShape::Shared => link.rate.0.into(),
        machine::FabricShape::Pairs => u128::from(link.rate.0) * u128::from(topology.gpus.saturating_sub(1)),
        machine::FabricShape::Ring | machine::FabricShape::Torus | machine::FabricShape::Links => {
            machine.routes().map_or(u64::MAX, |routes| routes.least_incoming().0).into()
        }
    };
    let of_lanes = all * u128::from(lanes) / u128::from(link.lanes);
    let share = Rate(u64::try_from(of_lanes).expect("lanes are a few dozen") / u64::from(topology.modules_per_gpu));
    match machine.module_link.rate {
        port if !crosses => port,
        port if port.is_infinite() => share,
        port => Rate(port.0.min(share.0)),
    }
}

/// A bank in a module's address translation, behind the SMs' TLBs.
pub(crate) fn translation(machine: &MachineConfig) -> translation::TranslationConfig {
    let banks = u32::from(tlb_banks(machine));
    let (whole, walkers) = (l2_tlb(machine), walkers(machine));
    translation::TranslationConfig {
        tlb: tlb::TlbConfig { entries: whole.entries / banks, ..whole },
        latency: machine.tlb.l2_latency,
        walkers: tlb::WalkersConfig { walkers: walkers.walkers / banks, ..walkers },
    }
}

/// TLB of an SM.
pub(crate) fn l1_tlb(machine: &MachineConfig) -> tlb::TlbConfig {
    tlb::TlbConfig { entries: machine.tlb.l1_entries, ways: machine.tlb.l1_entries }
}

/// L2 TLB of a module.
pub(crate) fn l2_tlb(machine: &MachineConfig) -> tlb::TlbConfig {
    tlb::TlbConfig { entries: machine.tlb.l2_entries, ways: machine.tlb.l2_ways }
}

/// Page walkers of a module.
pub(crate) fn walkers(machine: &MachineConfig) -> tlb::WalkersConfig {
    tlb::WalkersConfig { walkers: machine.tlb.walkers, latency: machine.tlb.walk_latency }
}

/// Publisher of stores; `allocates`: set if published bytes allocate a line in a subscriber's L2.
pub(crate) fn publisher(machine: &MachineConfig, allocates: bool) -> publisher::PublisherConfig {
    let config = &machine.publication;
    publisher::PublisherConfig {
        entries: config.entries,
        tlb: tlb::TlbConfig { entries: config.tlb_entries, ways: config.tlb_ways },
        walkers: tlb::WalkersConfig { walkers: config.walkers, latency: config.walk_latency },
        allocates,
    }
}

/// One-way latency between a GPU and a coherent host, from port to port.
pub fn host_latency_one_way(machine: &MachineConfig) -> Option<Ps> {
    let link = machine.coherent_host()?.link;
    Some(match link.through {
        HostPath::Own => link.latency,
        HostPath::Fabric => machine.gpu_link.latency,
    })
}

/// Maximum number of misses of `bytes` that an L2 slice may have in flight beyond its GPU; `None` without a port to a
/// coherent host.
pub(crate) fn outgoing_misses(machine: &MachineConfig, bytes: u64) -> Option<u32> {
    let link = machine.coherent_host()?.link;
    let requests = link.outstanding / u32::from(machine.l2.slices);
    Some((requests / bytes.div_ceil(link.request_bytes) as u32).max(1))
}

/// Rate of copies from a coherent host to a GPU: of their link, or of the requests that the GPU's port has in flight over
/// an idle link and host memory.
pub(crate) fn rate_from_host(machine: &MachineConfig) -> Rate {
    let rate = host_rate(machine);
    let (Some(host), Some(latency)) = (machine.coherent_host(), host_latency_one_way(machine)) else { return rate };
    let window = u128::from(host.link.outstanding) * u128::from(host.link.request_bytes);
    let memory = &host.memory;
    let round_trip = latency + latency + memory.base_latency + memory.activate + memory.column;
    let of_window = (window * 1_000_000_000_000).checked_div(round_trip.0.into()).unwrap_or(u128::MAX);
    Rate(rate.0.min(u64::try_from(of_window).unwrap_or(u64::MAX)))
}

/// Link rate between a GPU and a coherent host, in each direction.
pub(crate) fn host_rate(machine: &MachineConfig) -> Rate {
    let own = machine.coherent_host().map(|host| host.link).filter(|link| link.through == HostPath::Own);
    own.map_or(machine.gpu_link.rate, |link| link.rate)
}

/// The machine seen from the host's module: its L2 is the last-level cache, with a slice for each directory of host
/// memory, and its memory is the host's memory. `None` if the machine has no coherent host.
pub fn host_machine(machine: &MachineConfig) -> Option<MachineConfig> {
    let host = machine.coherent_host()?;
    let mut seen = machine.clone();
    seen.l2.bytes = host.llc.bytes;
    seen.l2.ways = host.llc.ways;
    seen.l2.slices = host.directory.controllers;
    seen.l2.hit_latency = host.llc.hit_latency;
    seen.l2.rate = Rate(host.llc.rate.0 / u64::from(host.directory.controllers));
    seen.l2.request_cycles = Fraction { numerator: 0, denominator: 1 };
    seen.l2.mshrs = host.directory.outstanding;
    seen.dram = host.memory.clone();
    seen.memory_cache.bytes = Bytes(0);
    // The host's links are the GPU links.
    seen.module_link = machine::LinkConfig { rate: Rate::INFINITE, latency: Ps::ZERO };
    seen.crossbar.latency = Ps::ZERO;
    seen.crossbar.rate = Rate::INFINITE;
    Some(seen)
}

/// Latency between the command processor and a module's controller: the unicast latency for a dedicated crossbar,
/// otherwise the command latency plus the latency on the links in between.
pub fn host_latency(machine: &MachineConfig) -> Ps {
    let (topology, mut latency) = (&machine.topology, machine.host.command_latency);
    if machine.host.unicast_latency > Ps::ZERO {
        return machine.host.unicast_latency;
    }
    if topology.gpus > 1 {
        latency += machine.gpu_link.latency;
    }
    if topology.modules_per_gpu > 1 {
        latency += machine.module_link.latency;
    }
    latency
}

/// Remaining latency beyond the controller on a path between the command processor and SMs or slices. The crossbar is
/// the last hop from the command processor, and the first hop back.
pub fn latency_beyond_controller(latency: Ps, machine: &MachineConfig) -> Ps {
    latency.saturating_sub(to_controller(machine)).max(Ps(1))
}

/// Latency for a broadcast from the command processor to the controllers in all modules.
pub fn broadcast_latency(machine: &MachineConfig) -> Ps {
    let broadcast = machine.host.broadcast_latency;
    if broadcast > Ps::ZERO && machine.topology.modules() > 1 { broadcast } else { host_latency(machine) }
}
