//! All parameters for a run, as plain data: drawn from a seed, executed, and minimised if the run fails.

use crate::values::LineCell;
use std::sync::Arc;
use tombolo_check::litmus::{Location, Program, ThreadPlacement};
use tombolo_design::placement::Subscriptions;
use tombolo_design::subscriptions::ManualSubscriptions;
use tombolo_design::{DesignConfig, Placement};
use tombolo_machine::quantity::Quantity;
use tombolo_machine::{ConfigError, Description, MachineConfig, machine};
use tombolo_model::fabric::{BlockMessage, Packet};
use tombolo_model::front_end::PageTable;
use tombolo_model::observe::Contents;
use tombolo_protocol::Request;
use tombolo_protocol::client_home::MessageClass;
use tombolo_types::{Clock, GpuId, Line, Mask, ModuleId, Order, Page, Ps};

/// Base machine: supplies the values for settings that are not drawn.
pub const BASE: &str = "hmg-4x4";
/// Base machine with a host, as a file in the repository.
pub const HOST_BASE: &str = "crates/attack/src/host.toml";

/// A setting of the machine: the path, and the value in `--set` syntax.
pub type Setting = (&'static str, String);

/// Numbers of GPUs, modules and SMs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MachineShape {
    /// GPUs in the machine.
    pub gpus: u8,
    /// Modules per GPU.
    pub modules: u8,
    /// SMs per module.
    pub sms: u16,
}

/// An SM of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SmSlot {
    /// Module that contains the SM.
    pub module: ModuleId,
    /// Number of the SM in the module.
    pub sm: u16,
}

/// Address of a location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    /// The line.
    pub line: Line,
    /// The cell within the line.
    pub cell: LineCell,
}

/// Pacing of an instruction in a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pacing {
    /// Arithmetic instructions executed before the instruction.
    pub delay: u32,
    /// Set if a strong load polls until another thread's store is visible, provided a suitable store exists.
    pub polls: bool,
}

/// An instruction of a warp outside the test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoiseOp {
    /// A load with an unused result.
    Load(Line, Mask, Order),
    /// A store to bytes outside every location.
    Store(Line, Mask, Order),
    /// An atomic on bytes outside every location.
    Atomic(Line, Order),
    /// A fence.
    Fence(Order),
    /// Waits for the latest load.
    Use,
    /// A given number of arithmetic instructions.
    Delay(u32),
}

/// A warp outside the test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Noise {
    /// Kernel of the warp, counted over the whole run.
    pub kernel: usize,
    /// SM of the warp, in a separate CTA.
    pub slot: SmSlot,
    /// Instructions of the warp.
    pub ops: Vec<NoiseOp>,
}

/// A class of packets between modules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketClass {
    /// Every packet.
    All,
    /// Reads in flight to a home.
    Reads,
    /// Stores and atomics in flight to a home.
    Writes,
    /// Replies to reads.
    Fills,
    /// Invalidations.
    Invalidations,
    /// Phases of acquires and releases, and their acknowledgments.
    Plans,
}

impl PacketClass {
    /// Every class.
    pub const ALL: [PacketClass; 6] = [
        PacketClass::All,
        PacketClass::Reads,
        PacketClass::Writes,
        PacketClass::Fills,
        PacketClass::Invalidations,
        PacketClass::Plans,
    ];

    /// True if the class contains a packet.
    pub fn holds<D: Contents>(self, packet: &Packet<D>) -> bool {
        let class = match packet {
            Packet::Request(body) if matches!(body.request, Request::Read { .. }) => PacketClass::Reads,
            Packet::Request(_) | Packet::Downgrade { .. } => PacketClass::Writes,
            Packet::Fill { .. } | Packet::Answer { .. } | Packet::Flag { .. } | Packet::AtomicResult { .. } => {
                PacketClass::Fills
            }
            Packet::Invalidate { .. } => PacketClass::Invalidations,
            Packet::BlockMessage(told) => PacketClass::of_blocks(told),
            // A copy belongs to a plan: later phases wait for its end.
            Packet::Act { .. } | Packet::PhaseDone { .. } | Packet::Chunk(_) => PacketClass::Plans,
        };
        self == PacketClass::All || self == class
    }

    /// Classifies block messages. A request without data is a read, a message that carries bytes home is a write. A
    /// message with bytes from a home or a peer is a fill. A home's request or acknowledgment without bytes is an
    /// invalidation.
    fn of_blocks(told: &BlockMessage) -> PacketClass {
        match (told.class, told.grains > 0) {
            (MessageClass::Request, false) => PacketClass::Reads,
            (MessageClass::Request, true) | (MessageClass::Answer, _) => PacketClass::Writes,
            (MessageClass::Down, true) | (MessageClass::Peer, _) => PacketClass::Fills,
            (MessageClass::Down, false) => PacketClass::Invalidations,
        }
    }
}

/// Packets that are delayed beyond the links' latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Skew {
    /// Sender module, or `None` for any.
    pub source: Option<ModuleId>,
    /// Receiver module, or `None` for any.
    pub target: Option<ModuleId>,
    /// Packet class.
    pub class: PacketClass,
    /// Additional delay.
    pub late: Ps,
}

/// A slice with delayed replies to an SM in its module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlowPort {
    /// The SM.
    pub slot: SmSlot,
    /// The slice, numbered within the module.
    pub slice: usize,
    /// Additional delay.
    pub late: Ps,
}

/// A single run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    /// The test.
    pub program: Program,
    /// Shape of the machine, complemented by `settings`.
    pub shape: MachineShape,
    /// Bytes per page.
    pub page_bytes: u64,
    /// Lines per directory region.
    pub region: u64,
    /// Set if the machine has a host, which then holds all pages.
    pub has_host: bool,
    /// Further drawn settings of the machine.
    pub settings: Vec<Setting>,
    /// By page: its home.
    pub homes: Vec<ModuleId>,
    /// Subscribers of single pages, as the value of `placement.by_hand`; `None`: those of the design.
    pub subscribers: Option<String>,
    /// By location: its address.
    pub addresses: Vec<Address>,
    /// By kernel of the test, then by CTA ([`Setup::ctas`]): the SM for each CTA.
    pub slots: Vec<Vec<SmSlot>>,
    /// By thread, then instruction: its pacing.
    pub pacings: Vec<Vec<Pacing>>,
    /// Rank by thread: a thread polls only for stores by threads with a smaller rank, therefore no wait cycle arises.
    pub ranks: Vec<usize>,
    /// Kernels executed before the test's kernels.
    pub lead: usize,
    /// Additional warps.
    pub noise: Vec<Noise>,
    /// Delayed packets.
    pub skews: Vec<Skew>,
    /// Delayed replies.
    pub slow: Vec<SlowPort>,
}

impl Setup {
    /// The CTAs in a program, each preceded by the GPU.
    pub fn ctas(program: &Program) -> Vec<(GpuId, u16)> {
        let cta = |placement| match placement {
            ThreadPlacement::Cta { gpu, cta } => Some((gpu, cta)),
            ThreadPlacement::Host => None,
        };
        let mut ctas: Vec<(GpuId, u16)> = program.threads.iter().filter_map(|thread| cta(thread.placement)).collect();
        ctas.sort_unstable();
        ctas.dedup();
        ctas
    }

    /// GPUs that a program names.
    pub fn gpus(program: &Program) -> Vec<GpuId> {
        let mut gpus: Vec<GpuId> = program.threads.iter().filter_map(|thread| thread.placement.gpu()).collect();
        gpus.sort_unstable();
        gpus.dedup();
        gpus
    }

    /// Every machine setting, in assignment order.
    pub fn machine_settings(&self) -> Vec<Setting> {
        let MachineShape { gpus, modules, sms } = self.shape;
        let mut all: Vec<Setting> =
            crate::machine::SMALL.iter().map(|(path, value)| (*path, (*value).to_owned())).collect();
        all.extend([
            ("topology.gpus", gpus.to_string()),
            ("topology.modules_per_gpu", modules.to_string()),
            ("topology.sms_per_module", sms.to_string()),
            ("page_bytes", format!("{}B", self.page_bytes)),
            ("directory.lines_per_entry", self.region.to_string()),
        ]);
        all.extend(self.settings.iter().cloned());
        all
    }

    /// Builds the machine.
    ///
    /// # Errors
    /// If the settings are inconsistent.
    pub fn machine(&self) -> Result<MachineConfig, ConfigError> {
        let mut description =
            if self.has_host { Description::parse("host", include_str!("host.toml"))? } else { machine(BASE)? };
        self.machine_settings().iter().try_for_each(|(path, value)| description.set(path, value))?;
        description.check()
    }

    /// The design of the run: `design`, with the drawn subscribers.
    ///
    /// # Errors
    /// If no text names the drawn subscribers.
    pub fn design(&self, design: &DesignConfig) -> Result<DesignConfig, String> {
        let mut design = design.clone();
        if let Some(text) = &self.subscribers
            && let Placement::PublishedPages(published) = &mut design.placement
        {
            // The text has no times, which a clock would convert.
            let by_hand = ManualSubscriptions::parse(text, Clock::from_hz(1_000_000_000));
            published.subscriptions = Subscriptions::Manual;
            published.by_hand = by_hand.ok_or_else(|| format!("{text}: {}", ManualSubscriptions::EXPECTED))?;
        }
        Ok(design)
    }

    /// Number of modules over all GPUs; the host's module follows them, if a host exists.
    pub fn modules(&self) -> u8 {
        self.shape.gpus * self.shape.modules
    }

    /// Page table with the home of each page.
    pub fn pages(&self) -> Arc<PageTable> {
        if self.has_host {
            return Arc::new(PageTable::at(ModuleId(self.modules()), self.page_bytes / 128));
        }
        let touches = (0..).map(Page).zip(self.homes.iter().copied());
        Arc::new(PageTable::from_first_touch(touches, self.page_bytes / 128))
    }

    /// Number of kernels in the whole run: before the test, the test's kernels, and the final kernel that reads memory.
    pub fn kernels(&self) -> usize {
        self.lead + self.slots.len() + 1
    }

    /// Address of a location.
    pub fn address(&self, location: Location) -> Address {
        self.addresses[usize::from(location.0)]
    }

    /// Total additional delay for a packet.
    pub fn late<D: Contents>(&self, source: ModuleId, target: ModuleId, packet: &Packet<D>) -> Ps {
        let fits = |skew: &&Skew| {
            skew.source.is_none_or(|one| one == source)
                && skew.target.is_none_or(|one| one == target)
                && skew.class.holds(packet)
        };
        Ps(self.skews.iter().filter(fits).map(|skew| skew.late.0).sum())
    }

    /// Describes the setup in words: placement, skews, settings.
    pub fn describe(&self, design: &DesignConfig) -> String {
        let MachineShape { gpus, modules, sms } = self.shape;
        let mut text = format!("{gpus} GPUs of {modules} modules of {sms} SMs, design {}\n", design.name);
        for (kernel, slots) in self.slots.iter().enumerate() {
            for ((gpu, cta), slot) in Setup::ctas(&self.program).iter().zip(slots) {
                text += &format!(
                    "kernel {}: cta {} of gpu {} on module {} sm {}\n",
                    kernel + self.lead,
                    cta,
                    gpu.0,
                    slot.module.0,
                    slot.sm
                );
            }
        }
        for (location, address) in self.program.locations.iter().zip(&self.addresses) {
            let home = self.homes[(address.line.0 * 128 / self.page_bytes) as usize];
            text +=
                &format!("{} in {}, cell {}, home module {}\n", location.name, address.line, address.cell.0, home.0);
        }
        self.describe_extras(&mut text);
        let settings: Vec<String> =
            self.machine_settings().iter().map(|(path, value)| format!("--set {path}={value}")).collect();
        if let Some(subscribers) = &self.subscribers {
            text += &format!("--set placement.subscriptions=manual --set 'placement.by_hand={subscribers}'\n");
        }
        let base = if self.has_host { HOST_BASE } else { BASE };
        text + &format!("--machine {base} {}\n", settings.join(" "))
    }

    fn describe_extras(&self, text: &mut String) {
        for (thread, pacings) in self.pacings.iter().enumerate() {
            for (at, Pacing { delay, polls }) in
                pacings.iter().enumerate().filter(|(_, one)| **one != Pacing::default())
            {
                let polls = if *polls { ", polls" } else { "" };
                *text += &format!("thread {thread}, instruction {at}: {delay} arithmetic instructions before{polls}\n");
            }
        }
        for Noise { kernel, slot, ops } in &self.noise {
            *text += &format!("another warp in kernel {kernel} on module {} sm {}: {ops:?}\n", slot.module.0, slot.sm);
        }
        for skew in &self.skews {
            *text += &format!("late packets: {skew:?}\n");
        }
        for SlowPort { slot: SmSlot { module, sm }, slice, late } in &self.slow {
            *text += "late answers: SlowPort { post: Post { ";
            *text += &format!("module: {module:?}, sm: {sm} }}, slice: {slice}, late: {late:?} }}\n");
        }
    }
}
