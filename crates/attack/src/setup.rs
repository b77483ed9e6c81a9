//! All that one run is made of, as plain data: drawn from a seed, run, and made smaller where it fails.

use crate::values::Cell;
use std::sync::Arc;
use tombolo_check::litmus::{Location, Placement, Program};
use tombolo_design::DesignConfig;
use tombolo_machine::{ConfigError, Description, MachineConfig, machine};
use tombolo_model::packet::{Packet, Told};
use tombolo_model::page_table::PageTable;
use tombolo_model::watch::Contents;
use tombolo_protocol::Request;
use tombolo_protocol::nodes::Class;
use tombolo_types::{GpuId, Line, Mask, ModuleId, Order, Page, Ps};

/// The machine whose values hold where nothing was drawn.
pub const BASE: &str = "hmg-4x4";
/// The same with a host, as a file of the repository.
pub const HOST_BASE: &str = "crates/attack/src/host.toml";

/// A setting of the machine: its path, and its value as `--set` takes it.
pub type Setting = (&'static str, String);

/// GPUs, modules and SMs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// GPUs of the machine.
    pub gpus: u8,
    /// Modules of a GPU.
    pub modules: u8,
    /// SMs of a module.
    pub sms: u16,
}

/// An SM of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Post {
    /// Its module.
    pub module: ModuleId,
    /// Its number in the module.
    pub sm: u16,
}

/// Where a location is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spot {
    /// The line.
    pub line: Line,
    /// The place in it.
    pub cell: Cell,
}

/// How a thread comes to one of its instructions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Manner {
    /// Arithmetic instructions before it.
    pub delay: u32,
    /// Whether a strong load polls until a store of another thread is seen, where there is one that it can wait for.
    pub polls: bool,
}

/// One instruction of a warp that belongs to no test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoiseOp {
    /// A load, whose result nobody uses.
    Load(Line, Mask, Order),
    /// A store of bytes that no location is in.
    Store(Line, Mask, Order),
    /// An atomic on bytes that no location is in.
    Atomic(Line, Order),
    /// A fence.
    Fence(Order),
    /// Waits for the latest load.
    Use,
    /// So many arithmetic instructions.
    Delay(u32),
}

/// A warp that belongs to no test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Noise {
    /// Its kernel, counted over all of the run.
    pub kernel: usize,
    /// Where it runs, in a CTA of its own.
    pub post: Post,
    /// What it does.
    pub ops: Vec<NoiseOp>,
}

/// A class of packets between modules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketClass {
    /// Every packet.
    All,
    /// Reads on their way to a home.
    Reads,
    /// Stores and atomics on their way to a home.
    Writes,
    /// Answers to reads.
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

    /// Whether it holds a packet.
    pub fn holds<D: Contents>(self, packet: &Packet<D>) -> bool {
        let class = match packet {
            Packet::Request(body) if matches!(body.request, Request::Read { .. }) => PacketClass::Reads,
            Packet::Request(_) | Packet::Downgrade { .. } => PacketClass::Writes,
            Packet::Fill { .. } | Packet::Answer { .. } | Packet::Flag { .. } | Packet::Old { .. } => {
                PacketClass::Fills
            }
            Packet::Invalidate { .. } => PacketClass::Invalidations,
            Packet::Told(told) => PacketClass::of_blocks(told),
            // A copy is part of a plan: what follows it waits for its end.
            Packet::Act { .. } | Packet::Acted { .. } | Packet::Chunk(_) => PacketClass::Plans,
        };
        self == PacketClass::All || self == class
    }

    /// Of what is said of a block. What asks for something is a read, what brings bytes home a write; what a home or a peer
    /// sends with bytes is a fill, and what a home asks or has heard an invalidation.
    fn of_blocks(told: &Told) -> PacketClass {
        match (told.class, told.grains > 0) {
            (Class::Request, false) => PacketClass::Reads,
            (Class::Request, true) | (Class::Answer, _) => PacketClass::Writes,
            (Class::Down, true) | (Class::Peer, _) => PacketClass::Fills,
            (Class::Down, false) => PacketClass::Invalidations,
        }
    }
}

/// Packets that come later than the links have them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Skew {
    /// From this module, or from any.
    pub source: Option<ModuleId>,
    /// To this module, or to any.
    pub target: Option<ModuleId>,
    /// Which.
    pub class: PacketClass,
    /// By how much.
    pub late: Ps,
}

/// A slice whose answers come late to an SM of its module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlowPort {
    /// The SM.
    pub post: Post,
    /// The slice, counted in the module.
    pub slice: usize,
    /// By how much.
    pub late: Ps,
}

/// One run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    /// The test.
    pub program: Program,
    /// Its machine, beside `settings`.
    pub shape: Shape,
    /// Bytes of a page.
    pub page_bytes: u64,
    /// Lines of a directory's region.
    pub region: u64,
    /// Whether the machine has a host, where all pages are.
    pub has_host: bool,
    /// What else was drawn of the machine.
    pub settings: Vec<Setting>,
    /// By page: its home.
    pub homes: Vec<ModuleId>,
    /// By location.
    pub spots: Vec<Spot>,
    /// By kernel of the test, then CTA of it ([`Setup::ctas`]): where it runs.
    pub posts: Vec<Vec<Post>>,
    /// By thread, then instruction.
    pub manners: Vec<Vec<Manner>>,
    /// Threads by number: one polls only for stores of those with a smaller rank, so that none waits in a circle.
    pub ranks: Vec<usize>,
    /// Kernels that come before those of the test.
    pub lead: usize,
    /// Other warps.
    pub noise: Vec<Noise>,
    /// Late packets.
    pub skews: Vec<Skew>,
    /// Late answers.
    pub slow: Vec<SlowPort>,
}

impl Setup {
    /// The CTAs of a program, each with its GPU before it.
    pub fn ctas(program: &Program) -> Vec<(GpuId, u16)> {
        let cta = |placement| match placement {
            Placement::Cta { gpu, cta } => Some((gpu, cta)),
            Placement::Host => None,
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

    /// Every setting of the machine, in the order in which they are made.
    pub fn machine_settings(&self) -> Vec<Setting> {
        let Shape { gpus, modules, sms } = self.shape;
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

    /// The machine.
    ///
    /// # Errors
    /// Where the settings do not go together.
    pub fn machine(&self) -> Result<MachineConfig, ConfigError> {
        let mut description =
            if self.has_host { Description::parse("host", include_str!("host.toml"))? } else { machine(BASE)? };
        self.machine_settings().iter().try_for_each(|(path, value)| description.set(path, value))?;
        description.check()
    }

    /// Modules of all GPUs: behind them stands the host's, where there is one.
    pub fn modules(&self) -> u8 {
        self.shape.gpus * self.shape.modules
    }

    /// Where its pages are.
    pub fn pages(&self) -> Arc<PageTable> {
        if self.has_host {
            return Arc::new(PageTable::at(ModuleId(self.modules()), self.page_bytes / 128));
        }
        let touches = (0..).map(Page).zip(self.homes.iter().copied());
        Arc::new(PageTable::from_first_touch(touches, self.page_bytes / 128))
    }

    /// Kernels of the whole run: before the test, of the test, and the one that reads memory.
    pub fn kernels(&self) -> usize {
        self.lead + self.posts.len() + 1
    }

    /// Where a location is.
    pub fn spot(&self, location: Location) -> Spot {
        self.spots[usize::from(location.0)]
    }

    /// By how much a packet is late.
    pub fn late<D: Contents>(&self, source: ModuleId, target: ModuleId, packet: &Packet<D>) -> Ps {
        let fits = |skew: &&Skew| {
            skew.source.is_none_or(|one| one == source)
                && skew.target.is_none_or(|one| one == target)
                && skew.class.holds(packet)
        };
        Ps(self.skews.iter().filter(fits).map(|skew| skew.late.0).sum())
    }

    /// The setup in words: placement, skews, settings.
    pub fn describe(&self, design: &DesignConfig) -> String {
        let Shape { gpus, modules, sms } = self.shape;
        let mut text = format!("{gpus} GPUs of {modules} modules of {sms} SMs, design {}\n", design.name);
        for (kernel, posts) in self.posts.iter().enumerate() {
            for ((gpu, cta), post) in Setup::ctas(&self.program).iter().zip(posts) {
                text += &format!(
                    "kernel {}: cta {} of gpu {} on module {} sm {}\n",
                    kernel + self.lead,
                    cta,
                    gpu.0,
                    post.module.0,
                    post.sm
                );
            }
        }
        for (location, spot) in self.program.locations.iter().zip(&self.spots) {
            let home = self.homes[(spot.line.0 * 128 / self.page_bytes) as usize];
            text += &format!("{} in {}, cell {}, home module {}\n", location.name, spot.line, spot.cell.0, home.0);
        }
        self.describe_extras(&mut text);
        let settings: Vec<String> =
            self.machine_settings().iter().map(|(path, value)| format!("--set {path}={value}")).collect();
        let base = if self.has_host { HOST_BASE } else { BASE };
        text + &format!("--machine {base} {}\n", settings.join(" "))
    }

    fn describe_extras(&self, text: &mut String) {
        for (thread, manners) in self.manners.iter().enumerate() {
            for (at, Manner { delay, polls }) in
                manners.iter().enumerate().filter(|(_, one)| **one != Manner::default())
            {
                let polls = if *polls { ", polls" } else { "" };
                *text += &format!("thread {thread}, instruction {at}: {delay} arithmetic instructions before{polls}\n");
            }
        }
        for Noise { kernel, post, ops } in &self.noise {
            *text += &format!("another warp in kernel {kernel} on module {} sm {}: {ops:?}\n", post.module.0, post.sm);
        }
        for skew in &self.skews {
            *text += &format!("late packets: {skew:?}\n");
        }
        for slow in &self.slow {
            *text += &format!("late answers: {slow:?}\n");
        }
    }
}
