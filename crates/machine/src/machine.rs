//! The machine: what hardware there is, how much of it, and how fast. Integers only, resolved and checked.
//!
//! Capacities are in bytes, times in picoseconds ([`Ps`]), rates in bytes a second ([`Rate`]; infinite where
//! the file says so). "A module" is the NUMA unit inside a GPU; where a GPU is not divided it is the GPU.

pub use crate::caches::{AllocateOnStore, DirectoryConfig, DirectoryTracks, L1Config, L2Config, SetIndex};
use crate::coherent_host::{
    CoherentHost, CpuConfig, HostDirectoryConfig, HostLinkConfig, LlcConfig, OPTIONAL_SECTIONS, StackConfig,
};
use crate::description::{Described, NO_DESCRIPTION, OptionalSection};
pub use crate::energy::EnergyConfig;
use crate::error::ConfigError;
pub use crate::fabric::{FabricConfig, FabricShape};
pub use crate::memory::{DramConfig, MemoryCacheConfig};
use crate::preset::{MACHINES, Preset};
use crate::quantity::{Fraction, Quantity, choice};
use crate::scale::Scale;
use crate::section::{Key, Reader, Section, section};
use crate::sharing::{CopyConfig, PagingConfig, PublicationConfig};
use crate::tree::Table;
use serde::ser::SerializeStruct;
use tombolo_types::stream::ComputeClass;
use tombolo_types::{Bytes, Clock, GpuId, LineSize, ModuleId, Ps, Rate};

/// A whole machine, resolved and checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineConfig {
    /// Name of the preset, or of the user's file.
    pub name: String,
    /// One line for lists.
    pub description: String,
    /// Cache line of every cache.
    pub line: LineSize,
    /// Bytes of a page: the grain of placement and translation. A power of two, at least a directory region.
    pub page_bytes: u64,
    /// GPUs, modules, SMs.
    pub topology: Topology,
    /// One SM.
    pub sm: SmConfig,
    /// The L1 cache of an SM.
    pub l1: L1Config,
    /// The L2 cache of a module.
    pub l2: L2Config,
    /// The coherence directory of a module. Present on every machine, used by the designs that have one.
    pub directory: DirectoryConfig,
    /// Inside a module, between its SMs and its L2 slices.
    pub crossbar: CrossbarConfig,
    /// Between the modules of a GPU: `rate` is that of a module's port each way; `latency` is from port to port.
    pub module_link: LinkConfig,
    /// Between GPUs, through the switch: `rate` is that of a GPU's port each way; `latency` is from port to
    /// port, switch included. What crosses from a module to another GPU's module also pays
    /// `module_link.latency` once at each end, to and from its GPU's port.
    pub gpu_link: GpuLinkConfig,
    /// What joins the links of the GPUs.
    pub fabric: FabricConfig,
    /// The DRAM of a module.
    pub dram: DramConfig,
    /// The memory-side cache of a module, where there is one.
    pub memory_cache: MemoryCacheConfig,
    /// Address translation.
    pub tlb: TlbConfig,
    /// What launches kernels and copies memory.
    pub host: HostConfig,
    /// Sizes of the messages on links.
    pub messages: MessageConfig,
    /// Pages that move.
    pub paging: PagingConfig,
    /// Copies from GPU to GPU.
    pub copy: CopyConfig,
    /// What publishes stores.
    pub publication: PublicationConfig,
    /// What moving data takes, by component.
    pub energy: EnergyConfig,
    /// The host's CPU, where its memory is modelled; it and the four sections that follow come together.
    pub cpu: Option<CpuConfig>,
    /// The last-level cache of the CPU.
    pub llc: Option<LlcConfig>,
    /// The memory of the host, all of it together.
    pub host_memory: Option<DramConfig>,
    /// The directories in front of the host's memory.
    pub host_directory: Option<HostDirectoryConfig>,
    /// Between the host and the GPUs.
    pub host_link: Option<HostLinkConfig>,
    /// The memory of a GPU as a cache of the host's.
    pub stack: Option<StackConfig>,
    /// The fraction of the described machine that this one is.
    pub scale: Scale,
}

section! {
    /// How many of each.
    pub struct Topology {
        /// GPUs of the machine.
        gpus: u8,
        /// Modules of a GPU.
        modules_per_gpu: u8,
        /// SMs of a module.
        sms_per_module: u16,
    }
}

choice! {
    /// Which ready warp issues next.
    pub enum Scheduler {
        /// The same warp while it is ready, then the one resident longest.
        GreedyOldest = "greedy-oldest",
        /// The same warp while it is ready, then the next in turn.
        GreedyRoundRobin = "greedy-round-robin",
    }
}

section! {
    /// One SM (AMD: compute unit).
    pub struct SmConfig {
        /// Core clock: that of SMs, L1, crossbar and L2, and of every `cycles` in the file.
        clock: Clock,
        /// Lanes of a warp: 32 or 64.
        warp_width: u32,
        /// Resident warps, at most; a multiple of `sub_cores`.
        warps: u32,
        /// Resident threads, at most.
        threads: u32,
        /// Resident CTAs, at most.
        ctas: u32,
        /// Schedulers, each with its share of the warps and its own pipelines, each issuing one warp
        /// instruction a cycle.
        sub_cores: u32,
        /// 32-bit registers, shared among the resident threads.
        registers: u32,
        /// Scratchpad ("shared memory", LDS) shared among the resident CTAs, in bytes.
        shared_bytes: u64,
        /// Which ready warp of a sub-core issues next.
        scheduler: Scheduler,
        /// Loads and returning atomics of a warp whose result is outstanding, at most: 1 to 64.
        pending_loads: u32,
        /// Stores of the SM sent and not yet acknowledged, at most, in line transactions.
        posted_stores: u32,
        /// Issue cycles of a warp instruction on one sub-core: single precision.
        fp32_cycles: Fraction,
        /// Issue cycles of a warp instruction on one sub-core: integer.
        int_cycles: Fraction,
        /// Issue cycles of a warp instruction on one sub-core: double precision.
        fp64_cycles: Fraction,
        /// Issue cycles of a warp instruction on one sub-core: transcendentals.
        special_cycles: Fraction,
        /// Issue cycles of a warp instruction on one sub-core: matrix units.
        tensor_cycles: Fraction,
        /// Issue cycles of a warp instruction on one sub-core: control flow and the rest.
        other_cycles: Fraction,
        /// Cycles from the issue of a single-precision instruction to that of one that needs its result. 1: as long as it
        /// takes to issue.
        fp32_latency_cycles: u32 = 1,
        /// Likewise, integer.
        int_latency_cycles: u32 = 1,
        /// Likewise, double precision.
        fp64_latency_cycles: u32 = 1,
        /// Likewise, transcendentals.
        special_latency_cycles: u32 = 1,
        /// Likewise, matrix units.
        tensor_latency_cycles: u32 = 1,
        /// Cycles between two instructions of one warp, at least, where a sub-core gets its turn at shared issue logic
        /// so seldom; other warps of the sub-core issue meanwhile. 1 where each sub-core issues every cycle.
        turn_cycles: u32 = 1,
        /// Scratchpad access: issue to result, without conflicts.
        shared_latency: Ps,
        /// Whether arithmetic waits for the scratchpad accesses that its warp has issued before it. Where not, they
        /// are taken to be scheduled so far ahead that none waits; a barrier waits for them in any case.
        shared_blocks: bool = false,
        /// Cycles that the SM's one scratchpad is busy for each conflict-free pass.
        shared_pass_cycles: Fraction,
    }
}

section! {
    /// Inside a module, between its SMs and its L2 slices.
    pub struct CrossbarConfig {
        /// One way, without queueing.
        latency: Ps,
        /// An SM's port, each way.
        rate: Rate,
    }
}

section! {
    /// Between the modules of a GPU.
    pub struct LinkConfig {
        /// One port, each way.
        rate: Rate,
        /// One way from port to port, without queueing or serialisation.
        latency: Ps,
    }
}

section! {
    /// The link of each GPU to the switch between them.
    pub struct GpuLinkConfig {
        /// One port, each way.
        rate: Rate,
        /// Lanes of a port, each way; bytes are striped over them. Those of links that turn can change their way.
        lanes: u32 = 1,
        /// One way from port to port, switch included, without queueing or serialisation.
        latency: Ps,
    }
}

choice! {
    /// What TLBs hold as a program begins.
    pub enum TlbStart {
        /// Nothing.
        Cold = "cold",
        /// The pages of the program's arrays, as if each TLB had walked all of them in ascending order: where it has no room for
        /// all, the least recently walked of a set went. Of a program that names no arrays, the pages that its kernels access.
        Warm = "warm",
    }
}

choice! {
    /// Where bytes are that the host has copied to a GPU before the first kernel.
    pub enum HostCopies {
        /// In memory alone.
        Past = "past",
        /// Also in the L2 of their home, clean, as if they had been written there in the order of the copies: of a set, the
        /// latest are there.
        L2 = "l2",
    }
}

section! {
    /// Address translation, at the machine's page size.
    pub struct TlbConfig {
        /// Entries of an SM's fully associative TLB.
        l1_entries: u32,
        /// Entries of a module's TLB.
        l2_entries: u32,
        /// Entries of a set of the module's TLB.
        l2_ways: u32,
        /// A miss of the SM's TLB that hits the module's: added to the access.
        l2_latency: Ps,
        /// A miss of both: added on top of `l2_latency`.
        walk_latency: Ps,
        /// Page walks of a module in flight, at most.
        walkers: u32,
        /// What TLBs hold as a program begins.
        start: TlbStart = TlbStart::Cold,
    }
}

section! {
    /// What launches kernels and copies memory.
    pub struct HostConfig {
        /// Between the command processor and a module, each way; links that lie between come on top.
        command_latency: Ps,
        /// In place of `command_latency` and the links, where the command processor and the modules have a crossbar of their
        /// own: to or from one module. 0 where they have none.
        unicast_latency: Ps = Ps::ZERO,
        /// Likewise, to all modules at once. 0 for as long as to one.
        broadcast_latency: Ps = Ps::ZERO,
        /// What the command processor takes to read a packet of the program, before anything of its boundary begins.
        packet_latency: Ps = Ps::ZERO,
        /// What it takes for the table of a design that elides boundaries; hidden where the packet is queued while the
        /// kernel before runs. Source of the default: CPElide, section IV-B.
        table_latency: Ps = Ps::from_ns(6000),
        /// Launch on an idle machine to the dispatch of its first CTA.
        launch_latency: Ps,
        /// End of a kernel to the first dispatch of one that depends on it and was already queued.
        dependent_launch_latency: Ps,
        /// Between two CTA dispatches of a module.
        dispatch_interval: Ps,
        /// Start of a copy to its first byte.
        copy_latency: Ps,
        /// Copies between host and one GPU, each way.
        copy_rate: Rate,
        /// Where the bytes of copies before the first kernel are when it begins.
        copies: HostCopies = HostCopies::Past,
    }
}

section! {
    /// Sizes of messages on the links between modules and between GPUs. The crossbar carries data alone.
    pub struct MessageConfig {
        /// Added to the data of a message that carries some.
        header_bytes: Bytes,
        /// A load request, whole.
        request_bytes: Bytes,
        /// An invalidation, acknowledgment, marker or release request, whole.
        control_bytes: Bytes,
        /// Byte enables, added to a store that covers part of what it carries.
        mask_bytes: Bytes,
        /// A message takes a multiple of this on a link.
        flit_bytes: u64,
    }
}

impl Topology {
    /// Modules of the whole machine. At most 256 once checked.
    pub fn modules(&self) -> usize {
        usize::from(self.gpus) * usize::from(self.modules_per_gpu)
    }

    /// SMs of the whole machine.
    pub fn sms(&self) -> usize {
        self.modules() * usize::from(self.sms_per_module)
    }

    /// The GPU that holds `module`.
    pub fn gpu_of(&self, module: ModuleId) -> GpuId {
        GpuId(module.0 / self.modules_per_gpu)
    }
}

impl SmConfig {
    /// Cycles that one sub-core is busy issuing a warp instruction of `class`.
    pub fn cycles(&self, class: ComputeClass) -> Fraction {
        match class {
            ComputeClass::Fp32 => self.fp32_cycles,
            ComputeClass::Int => self.int_cycles,
            ComputeClass::Fp64 => self.fp64_cycles,
            ComputeClass::Special => self.special_cycles,
            ComputeClass::Tensor => self.tensor_cycles,
            ComputeClass::Other => self.other_cycles,
        }
    }

    /// Cycles from the issue of a warp instruction of `class` to that of one that needs its result.
    pub fn latency_cycles(&self, class: ComputeClass) -> Fraction {
        let latency = match class {
            ComputeClass::Fp32 => self.fp32_latency_cycles,
            ComputeClass::Int => self.int_latency_cycles,
            ComputeClass::Fp64 => self.fp64_latency_cycles,
            ComputeClass::Special => self.special_latency_cycles,
            ComputeClass::Tensor => self.tensor_latency_cycles,
            ComputeClass::Other => 1,
        };
        if latency == 1 { self.cycles(class) } else { Fraction { numerator: latency, denominator: 1 } }
    }
}

impl MachineConfig {
    /// The host and its memory, where the machine describes them.
    pub fn coherent_host(&self) -> Option<CoherentHost<'_>> {
        Some(CoherentHost {
            cpu: self.cpu.as_ref()?,
            llc: self.llc.as_ref()?,
            memory: self.host_memory.as_ref()?,
            directory: self.host_directory.as_ref()?,
            link: self.host_link.as_ref()?,
        })
    }

    /// Bytes that one directory entry tracks.
    pub fn region_bytes(&self) -> u64 {
        self.line.bytes() * u64::from(self.directory.lines_per_entry)
    }

    /// Bytes of data that the directory of a module can track.
    pub fn directory_reach_bytes(&self) -> u64 {
        self.region_bytes() * u64::from(self.directory.entries)
    }

    /// Sharers that an entry of a hierarchical directory distinguishes: the other modules of its GPU and the
    /// other GPUs. Source: HMG, section V-A (M + N - 2).
    pub fn directory_sharers(&self) -> u32 {
        u32::from(self.topology.modules_per_gpu) + u32::from(self.topology.gpus) - 2
    }

    /// Bits of a hierarchical directory entry: tag, one bit of state (valid or invalid), sharers. Source:
    /// HMG, section VII-C.
    pub fn directory_bits_per_entry(&self) -> u32 {
        self.directory.tag_bits + 1 + self.directory_sharers()
    }

    /// Bytes of storage of a module's directory, whole bytes an entry: 12K entries of 55 bits are the paper's 84 KB, of
    /// 1024 bytes as its other sizes are. Source: HMG, section VII-C.
    pub fn directory_storage_bytes(&self) -> u64 {
        u64::from(self.directory.entries) * u64::from(self.directory_bits_per_entry().div_ceil(8))
    }
}

/// Keys outside any section. `base` is resolved while a file is read.
const OWN_KEYS: &[Key] = &[
    Key::required::<String>("name", "What reports call the machine."),
    Key::optional::<String>("description", "One line for lists.", || Some(NO_DESCRIPTION.to_owned().print())),
    Key::required::<LineSize>("line", "Cache line of every cache."),
    Key::required::<u64>("page_bytes", "Bytes of a page, a power of two."),
];

/// Applies `$each` to every section of a machine: its name and its type.
macro_rules! sections {
    ($each:ident) => {
        $each! {
            topology: Topology, sm: SmConfig, l1: L1Config, l2: L2Config, directory: DirectoryConfig,
            crossbar: CrossbarConfig, module_link: LinkConfig, gpu_link: GpuLinkConfig, fabric: FabricConfig,
            dram: DramConfig, memory_cache: MemoryCacheConfig, tlb: TlbConfig, host: HostConfig, messages: MessageConfig,
            paging: PagingConfig, copy: CopyConfig, publication: PublicationConfig, energy: EnergyConfig,
        }
    };
}

/// Applies `$each` to every section that a machine may leave out: its name and its type.
macro_rules! optional_sections {
    ($each:ident) => {
        $each! {
            cpu: CpuConfig, llc: LlcConfig, host_memory: DramConfig, host_directory: HostDirectoryConfig,
            host_link: HostLinkConfig, stack: StackConfig,
        }
    };
}

/// Earlier spellings of keys.
const ALIASES: &[(&str, &str)] = &[
    ("sm.coalescer_lines_per_cycle", "l1.lookups_per_cycle"),
    ("dram.queue_depth", "dram.write_queue"),
    ("host_memory.queue_depth", "host_memory.write_queue"),
];

impl Described for MachineConfig {
    const KIND: &'static str = "machine";

    fn sections() -> Vec<(&'static str, &'static [Key])> {
        let mut all: Vec<(&'static str, &'static [Key])> = vec![("", OWN_KEYS)];
        macro_rules! listed {
            ($($name:ident: $Type:ty,)+) => { all.extend([$((stringify!($name), <$Type>::KEYS)),+]) };
        }
        sections!(listed);
        optional_sections!(listed);
        all
    }

    fn optional_sections() -> &'static [OptionalSection] {
        OPTIONAL_SECTIONS
    }

    fn aliases() -> &'static [(&'static str, &'static str)] {
        ALIASES
    }

    fn presets() -> &'static [Preset] {
        MACHINES
    }

    fn read(tree: &Table) -> Result<MachineConfig, ConfigError> {
        // Any clock will do to read the clock.
        let first = Reader { table: tree, section: "", clock: Clock::from_hz(1_000_000_000) };
        let mut known: Vec<&str> = OWN_KEYS.iter().map(|key| key.name).collect();
        known.extend(Self::sections().iter().skip(1).map(|(name, _)| *name));
        first.refuse_unknown(&known)?;
        let sm: SmConfig = first.section("sm")?;
        let reader = Reader { clock: sm.clock, ..first };
        macro_rules! read_all {
            ($($name:ident: $Type:ty,)+) => {
                MachineConfig {
                    name: reader.get("name", None)?,
                    description: reader.get("description", Some(NO_DESCRIPTION.to_owned()))?,
                    line: reader.get("line", None)?,
                    page_bytes: reader.get("page_bytes", None)?,
                    $($name: reader.section::<$Type>(stringify!($name))?,)+
                    cpu: reader.optional_section("cpu")?,
                    llc: reader.optional_section("llc")?,
                    host_memory: reader.optional_section("host_memory")?,
                    host_directory: reader.optional_section("host_directory")?,
                    host_link: reader.optional_section("host_link")?,
                    stack: reader.optional_section("stack")?,
                    scale: Scale::FULL,
                }
            };
        }
        let machine = sections!(read_all);
        machine.conflict().map_or(Ok(machine), |conflict| Err(conflict.at(tree)))
    }
}

impl serde::Serialize for MachineConfig {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        macro_rules! absent {
            ($($name:ident: $Type:ty,)+) => { [$(self.$name.is_none()),+].into_iter().filter(|absent| *absent).count() };
        }
        let sections = Self::sections().len() - 1 - optional_sections!(absent);
        let mut fields = serializer.serialize_struct("MachineConfig", OWN_KEYS.len() + sections + 1)?;
        fields.serialize_field("name", &self.name)?;
        fields.serialize_field("description", &self.description)?;
        fields.serialize_field("line", &self.line.print())?;
        fields.serialize_field("page_bytes", &self.page_bytes.print())?;
        macro_rules! write_all {
            ($($name:ident: $Type:ty,)+) => { $(fields.serialize_field(stringify!($name), &self.$name)?;)+ };
        }
        sections!(write_all);
        macro_rules! write_present {
            ($($name:ident: $Type:ty,)+) => { $(match &self.$name {
                Some(section) => fields.serialize_field(stringify!($name), section)?,
                None => fields.skip_field(stringify!($name))?,
            })+ };
        }
        optional_sections!(write_present);
        fields.serialize_field("scale", &self.scale.to_string())?;
        fields.end()
    }
}
