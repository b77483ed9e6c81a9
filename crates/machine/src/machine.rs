//! The machine: hardware components, their number and their speed. Values are integers, resolved and checked.
//!
//! Capacities are in bytes, times in picoseconds ([`Ps`]), rates in bytes per second ([`Rate`]; infinite if the
//! file says so). "A module" is the NUMA unit inside a GPU; in an undivided GPU it is the GPU itself.

pub use crate::caches::{DirectoryConfig, L1Config, L2Config, SetIndex};
use crate::coherent_host::{
    CoherentHost, CpuConfig, HostDirectoryConfig, HostLinkConfig, LlcConfig, OPTIONAL_SECTIONS, StackConfig,
};
use crate::description::{DescriptionKind, NO_DESCRIPTION, OptionalSection};
pub use crate::energy::EnergyConfig;
use crate::error::ConfigError;
pub use crate::fabric::{FabricConfig, FabricShape, LinkList, ListedLink};
pub use crate::memory::{DramConfig, MemoryCacheConfig, RefreshScope};
use crate::preset::{MACHINES, Preset};
use crate::quantity::{Fraction, Quantity, choice};
use crate::record::SerializedValue;
use crate::scale::MachineScale;
use crate::section::{Key, Reader, Section, section};
use crate::sharing::{CopyConfig, PagingConfig, PublicationConfig};
use crate::tree::ConfigTable;
use serde::ser::SerializeStruct;
use tombolo_types::stream::ComputeClass;
use tombolo_types::{Bytes, Clock, GpuId, LineSize, ModuleId, Ps, Rate};

/// A whole machine, resolved and checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineConfig {
    /// Name of the preset, or of the user's file.
    pub name: String,
    /// A one-line description for lists.
    pub description: String,
    /// Line size for every cache.
    pub line: LineSize,
    /// Page size in bytes: the granularity for placement and translation. A power of two, at least a directory
    /// region.
    pub page_bytes: u64,
    /// The numbers of GPUs, modules and SMs.
    pub topology: Topology,
    /// A single SM.
    pub sm: SmConfig,
    /// An SM's L1 cache.
    pub l1: L1Config,
    /// A module's L2 cache.
    pub l2: L2Config,
    /// A module's coherence directory. Present on every machine, but used only by designs that have directories.
    pub directory: DirectoryConfig,
    /// The crossbar inside a module, between SMs and L2 slices.
    pub crossbar: CrossbarConfig,
    /// The links between a GPU's modules: `rate` applies to a module's port in each direction; `latency` is from
    /// port to port.
    pub module_link: LinkConfig,
    /// The links between GPUs, through the switch: `rate` applies to a GPU's port in each direction; `latency` is
    /// from port to port, switch included. A packet between modules in different GPUs also pays
    /// `module_link.latency` at each end, to and from its GPU's port.
    pub gpu_link: GpuLinkConfig,
    /// The fabric joining the GPUs' links.
    pub fabric: FabricConfig,
    /// A module's DRAM.
    pub dram: DramConfig,
    /// The memory-side cache in a module, if the machine has such caches.
    pub memory_cache: MemoryCacheConfig,
    /// Address translation.
    pub tlb: TlbConfig,
    /// The host parameters for kernel launches and memory copies.
    pub host: HostConfig,
    /// Message sizes on links.
    pub messages: MessageConfig,
    /// Page migration.
    pub paging: PagingConfig,
    /// Copies from GPU to GPU.
    pub copy: CopyConfig,
    /// The publication units for stores.
    pub publication: PublicationConfig,
    /// The energy for data movement, by component.
    pub energy: EnergyConfig,
    /// The host's CPU, if host memory is modelled; the next four sections are present if and only if this one is.
    pub cpu: Option<CpuConfig>,
    /// The CPU's last-level cache.
    pub llc: Option<LlcConfig>,
    /// The host's memory, described as a whole.
    pub host_memory: Option<DramConfig>,
    /// The directories in front of the host's memory.
    pub host_directory: Option<HostDirectoryConfig>,
    /// The links between the host and the GPUs.
    pub host_link: Option<HostLinkConfig>,
    /// The parameters for a GPU's memory when it is used as a cache for host memory.
    pub stack: Option<StackConfig>,
    /// This machine's scale relative to the described machine.
    pub scale: MachineScale,
}

section! {
    /// The numbers of GPUs, modules and SMs.
    pub struct Topology {
        /// GPUs of the machine.
        gpus: u8,
        /// Modules per GPU.
        modules_per_gpu: u8,
        /// SMs per module.
        sms_per_module: u16,
    }
}

choice! {
    /// The selection policy for the next warp that issues.
    pub enum Scheduler {
        /// The same warp while it is ready, then the longest-resident warp.
        GreedyOldest = "greedy-oldest",
        /// The same warp while it is ready, then the next ready warp in turn.
        GreedyRoundRobin = "greedy-round-robin",
    }
}

section! {
    /// A single SM (AMD: compute unit).
    pub struct SmConfig {
        /// Core clock: for SMs, L1, crossbar and L2, and for every `cycles` in the file.
        clock: Clock,
        /// Lanes per warp: 32 or 64.
        warp_width: u32,
        /// Maximum resident warps; a multiple of `sub_cores`.
        warps: u32,
        /// Maximum resident threads.
        threads: u32,
        /// Maximum resident CTAs.
        ctas: u32,
        /// Schedulers, each with a share of the warps and its own pipelines, each issuing one warp instruction a
        /// cycle.
        sub_cores: u32,
        /// 32-bit registers, shared among the resident threads.
        registers: u32,
        /// Scratchpad ("shared memory", LDS) shared among the resident CTAs, in bytes.
        shared_bytes: u64,
        /// Policy for the next warp a sub-core issues.
        scheduler: Scheduler,
        /// Outstanding loads and returning atomics per warp, at most: 1 to 64.
        pending_loads: u32,
        /// Stores sent by the SM and not yet acknowledged, at most, in line transactions.
        posted_stores: u32,
        /// Issue cycles per warp instruction on one sub-core: single precision.
        fp32_cycles: Fraction,
        /// Issue cycles per warp instruction on one sub-core: integer.
        int_cycles: Fraction,
        /// Issue cycles per warp instruction on one sub-core: double precision.
        fp64_cycles: Fraction,
        /// Issue cycles per warp instruction on one sub-core: transcendentals.
        special_cycles: Fraction,
        /// Issue cycles per warp instruction on one sub-core: matrix units.
        tensor_cycles: Fraction,
        /// Issue cycles per warp instruction on one sub-core: control flow and the rest.
        other_cycles: Fraction,
        /// Cycles from a single-precision instruction's issue to a dependent instruction's issue. 1: equal to the
        /// issue time.
        fp32_latency_cycles: u32 = 1,
        /// The same, integer.
        int_latency_cycles: u32 = 1,
        /// The same, double precision.
        fp64_latency_cycles: u32 = 1,
        /// The same, transcendentals.
        special_latency_cycles: u32 = 1,
        /// The same, matrix units.
        tensor_latency_cycles: u32 = 1,
        /// Minimum cycles between two instructions from one warp, for a sub-core that gets rare turns at shared
        /// issue logic; other warps of the sub-core issue meanwhile. 1 if each sub-core issues every cycle.
        turn_cycles: u32 = 1,
        /// Scratchpad access: issue to result, without conflicts.
        shared_latency: Ps,
        /// Arithmetic waits for the scratchpad accesses that its warp has issued before. Otherwise accesses are
        /// assumed to be scheduled far enough ahead that none waits; a barrier waits for them in any case.
        shared_blocks: bool = false,
        /// Cycles that the SM's scratchpad is busy per conflict-free pass.
        shared_pass_cycles: Fraction,
    }
}

section! {
    /// A module's crossbar, between SMs and L2 slices.
    pub struct CrossbarConfig {
        /// One way, without queueing.
        latency: Ps,
        /// An SM's port, each way.
        rate: Rate,
    }
}

section! {
    /// The links between a GPU's modules.
    pub struct LinkConfig {
        /// One port, each way.
        rate: Rate,
        /// One way from port to port, without queueing or serialisation.
        latency: Ps,
    }
}

section! {
    /// Each GPU's link to the switch between them.
    pub struct GpuLinkConfig {
        /// One port, each way.
        rate: Rate,
        /// Lanes per port, each way; bytes are striped over them. Lanes of turning links can change direction.
        lanes: u32 = 1,
        /// One way from port to port, switch included, without queueing or serialisation.
        latency: Ps,
    }
}

choice! {
    /// The contents of TLBs at program start.
    pub enum TlbStart {
        /// The TLBs are empty.
        Cold = "cold",
        /// The TLBs hold pages from the program's arrays, as if each TLB had walked all pages in ascending order.
        /// Beyond the capacity, the least recently walked pages in a set are evicted. For a program without named
        /// arrays, they hold the pages accessed by its kernels.
        Warm = "warm",
    }
}

choice! {
    /// The location of bytes that the host has copied to a GPU before the first kernel.
    pub enum HostCopies {
        /// The bytes are in memory only.
        Past = "past",
        /// The bytes are also in the L2 at their home, clean, as if written there in copy order: each set holds the
        /// latest bytes.
        L2 = "l2",
    }
}

choice! {
    /// The kernels that wait for the table of a design that elides boundaries.
    pub enum TableExposure {
        /// The first kernel in the program: the host enqueues further packets early enough.
        First = "first",
        /// Kernels whose packets the table has not handled yet: it handles packets one after the other, from when the host
        /// enqueued them, each for `table_latency`.
        Queued = "queued",
        /// Each kernel whose packet was not in the queue while the previous kernel ran: the first, and the first after
        /// the host has waited.
        Host = "host",
    }
}

section! {
    /// Address translation, at the machine's page size.
    pub struct TlbConfig {
        /// Entries in an SM's fully associative TLB.
        l1_entries: u32,
        /// Entries in a module's TLB.
        l2_entries: u32,
        /// Entries per set in the module's TLB.
        l2_ways: u32,
        /// Time added to an access on an SM TLB miss that hits the module's.
        l2_latency: Ps,
        /// Added after `l2_latency` on a miss in both.
        walk_latency: Ps,
        /// Page walks in flight per module, at most.
        walkers: u32,
        /// TLB contents at program start.
        start: TlbStart = TlbStart::Cold,
    }
}

section! {
    /// Kernel launches and memory copies.
    pub struct HostConfig {
        /// Between the command processor and a module, each way; intermediate links come on top.
        command_latency: Ps,
        /// To or from one module, in place of `command_latency` and the links, if the command processor and the
        /// modules have a crossbar of their own. 0 if they have none.
        unicast_latency: Ps = Ps::ZERO,
        /// The same, to all modules at once. 0 for an equal duration.
        broadcast_latency: Ps = Ps::ZERO,
        /// Time for the command processor to read a packet from the program, before its boundary's operations
        /// begin.
        packet_latency: Ps = Ps::ZERO,
        /// Time for the table in a design that elides boundaries to handle a packet. Source of the default: CPElide,
        /// section IV-B.
        table_latency: Ps = Ps::from_ns(6000),
        /// The kernels that wait for this table. Source of the default: CPElide, section IV-B ("usually hidden for all
        /// but the first kernel").
        table_exposed: TableExposure = TableExposure::First,
        /// Launch on an idle machine to the dispatch of its first CTA.
        launch_latency: Ps,
        /// End of a kernel to the first dispatch of a dependent kernel already in the queue.
        dependent_launch_latency: Ps,
        /// Between two CTA dispatches in a module.
        dispatch_interval: Ps,
        /// Start of a copy to its first byte.
        copy_latency: Ps,
        /// Copies between host and one GPU, each way.
        copy_rate: Rate,
        /// Location of bytes copied before the first kernel, at its start.
        copies: HostCopies = HostCopies::Past,
    }
}

section! {
    /// Message sizes on links between modules and between GPUs. The crossbar carries data without headers.
    pub struct MessageConfig {
        /// Added to the data in each message with data.
        header_bytes: Bytes,
        /// A load request, whole.
        request_bytes: Bytes,
        /// An invalidation, acknowledgment, marker or release request, whole.
        control_bytes: Bytes,
        /// Byte enables, added to a store with partial coverage of its data.
        mask_bytes: Bytes,
        /// Unit of a message's size on a link.
        flit_bytes: u64,
    }
}

impl Topology {
    /// The whole machine's number of modules. At most 256 once checked.
    pub fn modules(&self) -> usize {
        usize::from(self.gpus) * usize::from(self.modules_per_gpu)
    }

    /// The whole machine's number of SMs.
    pub fn sms(&self) -> usize {
        self.modules() * usize::from(self.sms_per_module)
    }

    /// The GPU that contains `module`.
    pub fn gpu_of(&self, module: ModuleId) -> GpuId {
        GpuId(module.0 / self.modules_per_gpu)
    }
}

impl SmConfig {
    /// Cycles for which a sub-core is busy issuing a warp instruction in `class`.
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

    /// Cycles from the issue of a warp instruction in `class` to the issue of a dependent instruction.
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
    /// The host and its memory, if the machine has the sections for a host.
    pub fn coherent_host(&self) -> Option<CoherentHost<'_>> {
        Some(CoherentHost {
            cpu: self.cpu.as_ref()?,
            llc: self.llc.as_ref()?,
            memory: self.host_memory.as_ref()?,
            directory: self.host_directory.as_ref()?,
            link: self.host_link.as_ref()?,
        })
    }

    /// Number of bytes tracked by a directory entry.
    pub fn region_bytes(&self) -> u64 {
        self.line.bytes() * u64::from(self.directory.lines_per_entry)
    }

    /// Number of data bytes within reach of a module's directory.
    pub fn directory_reach_bytes(&self) -> u64 {
        self.region_bytes() * u64::from(self.directory.entries)
    }

    /// Number of sharers distinguished by a hierarchical directory entry: the remaining modules in its GPU, plus
    /// the remote GPUs. Source: HMG, section V-A (M + N - 2).
    pub fn directory_sharers(&self) -> u32 {
        u32::from(self.topology.modules_per_gpu) + u32::from(self.topology.gpus) - 2
    }

    /// Bits per hierarchical directory entry: tag, one state bit (valid or invalid), sharers. Source: HMG, section
    /// VII-C.
    pub fn directory_bits_per_entry(&self) -> u32 {
        self.directory.tag_bits + 1 + self.directory_sharers()
    }

    /// Storage bytes for a module's directory, with whole bytes per entry: 12K entries with 55 bits each are the
    /// paper's 84 KB, in units of 1024 bytes like its other sizes. Source: HMG, section VII-C.
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

/// Applies `$each` to every section in a machine: its name and its type.
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

/// Applies `$each` to every optional section in a machine: its name and its type.
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

impl DescriptionKind for MachineConfig {
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

    fn read(tree: &ConfigTable) -> Result<MachineConfig, ConfigError> {
        // Any clock suffices to read the clock itself.
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
                    scale: MachineScale::FULL,
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
        fields.serialize_field("line", &SerializedValue(self.line.print()))?;
        fields.serialize_field("page_bytes", &SerializedValue(self.page_bytes.print()))?;
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
