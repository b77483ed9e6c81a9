//! What a model is built from: a design on a machine, every option resolved.

use crate::DesignConfig;
use crate::Elision;
use crate::capacity::CapacityPolicy;
use crate::elision::Decider;
use crate::links::TurningTimes;
use crate::placement::{Movement, Sharing};
use crate::scheduling::CtaCut;
use std::sync::Arc;
use tombolo_machine::MachineConfig;
use tombolo_machine::machine::{AllocateOnStore, DirectoryTracks};
use tombolo_protocol::Sharers;
use tombolo_protocol::boundary::{Reach, reach};
use tombolo_protocol::options::{Options, StoreAllocation, Tracks, WritePolicy};
use tombolo_types::Sectors;

/// What a model is built from.
#[derive(Clone, Debug)]
pub struct Built {
    /// The machine, its links as the design has them.
    pub machine: Arc<MachineConfig>,
    /// Name of the protocol in the catalogue.
    pub protocol: &'static str,
    /// The protocol's options, without a broken rule.
    pub options: Options,
    /// When the cache in front of memory passes a store on.
    pub l3_write: WritePolicy,
    /// What decides how ways are shared.
    pub capacity: Arc<dyn CapacityPolicy>,
    /// How lanes turn; `None` where none do.
    pub turning: Option<TurningTimes>,
    /// How a grid is cut over the modules.
    pub cut: CtaCut,
    /// Who decides what happens at the boundaries of kernels.
    pub boundaries: Decider,
    /// How memory is shared between GPUs.
    pub sharing: Sharing,
    /// Whether the host takes part: its core runs the host program, and its memory is within reach of the GPUs.
    pub host: bool,
    /// Whether the GPUs' memory caches blocks of the host's.
    pub blocks: bool,
}

/// Why a design does not fit a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// Lanes cannot turn there; why not.
    Links(&'static str),
    /// The host takes part, and the machine has none.
    Host,
    /// The host takes part as one module more, and there are no ids for it.
    HostIds {
        /// Modules of the machine.
        modules: usize,
    },
    /// GPU memories cache blocks of the host's, and those of the machine have no directories.
    Stack,
    /// Slices have fewer neighbouring bytes than a block, and blocks cannot be shared evenly among so many slices.
    Interleave,
    /// A directory of blocks names GPUs, and those of the machine have several modules.
    Blocks,
    /// Pages move between GPUs, and one of several modules would have to share them inside.
    Pages,
    /// A directory entry cannot name every module.
    Directory {
        /// Modules that an entry names at most.
        most: usize,
        /// Modules of the machine.
        modules: usize,
    },
}

impl DesignConfig {
    /// The options of the protocol, as far as the design decides them.
    pub fn options(&self) -> Options {
        Options {
            write: self.l2_write.of_protocol(),
            downgrade: self.coherence.downgrade,
            bulk: self.coherence.bulk(),
            keep_l1: !self.coherence.l1_coherent,
            stores: StoreAllocation::Literal,
            tracks: Tracks::Shared,
            remote: self.coherence.remote(),
            sectors: Sectors::default(),
            nmoesi: self.coherence.nmoesi(),
            polls: self.polls.of_protocol(),
            broken_rule: None,
            broken_transfer: None,
        }
    }

    /// Whether the host takes part: only machines that have one can be timed under it.
    pub fn has_host(&self) -> bool {
        self.placement.has_host()
    }

    /// What a model of `machine` under this design is built from.
    ///
    /// # Errors
    /// The machine cannot do what the design asks of it.
    pub fn build(&self, machine: &MachineConfig) -> Result<Built, Unfit> {
        if let Some(reason) = self.links.refused_by(machine) {
            return Err(Unfit::Links(reason));
        }
        let blocks = self.coherence.facts().host;
        if self.has_host() && machine.coherent_host().is_none() {
            return Err(Unfit::Host);
        }
        if blocks && machine.stack.is_none() {
            return Err(Unfit::Stack);
        }
        if blocks && spreads_unevenly(machine) {
            return Err(Unfit::Interleave);
        }
        if blocks && machine.topology.modules_per_gpu > 1 {
            return Err(Unfit::Blocks);
        }
        let modules = machine.topology.modules();
        if self.coherence.facts().directory && modules > Sharers::MOST {
            return Err(Unfit::Directory { most: Sharers::MOST, modules });
        }
        if self.has_host() && !machine.has_ids_for_host() {
            return Err(Unfit::HostIds { modules });
        }
        if self.placement.sharing().movement != Movement::Placed && machine.topology.modules_per_gpu > 1 {
            return Err(Unfit::Pages);
        }
        let stores = match machine.directory.allocate_on_store {
            AllocateOnStore::Literal => StoreAllocation::Literal,
            AllocateOnStore::SharersOnly => StoreAllocation::SharersOnly,
        };
        let tracks = match machine.directory.tracks {
            DirectoryTracks::Shared => Tracks::Shared,
            DirectoryTracks::All => Tracks::All,
        };
        let sectors = Sectors::new((machine.l1.sector_bytes / machine.line.grain()) as u32);
        Ok(Built {
            machine: Arc::new(self.links.of_machine(machine)),
            protocol: self.coherence.protocol(),
            options: Options { stores, tracks, sectors, ..self.options() },
            l3_write: self.l3_write.of_protocol(),
            capacity: self.capacity.policy(),
            turning: self.links.times(machine),
            cut: self.scheduling.cut(),
            boundaries: self.boundaries(machine),
            sharing: self.placement.sharing(),
            host: self.has_host(),
            blocks,
        })
    }

    /// Who decides at the boundaries of a machine.
    fn boundaries(&self, machine: &MachineConfig) -> Decider {
        let Elision::Cpelide(cpelide) = self.elision else { return Decider::Never(self.boundary.when()) };
        let (options, topology) = (self.options(), &machine.topology);
        let sharing = match reach(topology.gpus, self.coherence.facts(), &options) {
            Reach::Module | Reach::Gpu => 1,
            Reach::GpuShares => topology.modules_per_gpu,
        };
        let holds = (self.coherence.facts().holds)(&options);
        Decider::Table { cpelide, config: cpelide.config(sharing), holds }
    }
}

/// Whether blocks are spread over slices of the GPUs or of the host whose number is no power of two.
fn spreads_unevenly(machine: &MachineConfig) -> bool {
    let is_spread = machine.stack.as_ref().is_some_and(|stack| stack.interleave() < stack.block_bytes);
    let of_host = machine.coherent_host().map_or(1, |host| host.directory.controllers);
    is_spread && ![machine.l2.slices, of_host].into_iter().all(u16::is_power_of_two)
}
