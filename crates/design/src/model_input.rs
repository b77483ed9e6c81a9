//! The input for building a model: a design on a machine, with every option resolved.

use crate::DesignConfig;
use crate::Elision;
use crate::capacity::CapacityPolicy;
use crate::elision::ElisionChoice;
use crate::links::TurningTimes;
use crate::placement::{Movement, Sharing};
use crate::scheduling::CtaDistribution;
use std::sync::Arc;
use tombolo_machine::MachineConfig;
use tombolo_protocol::Sharers;
use tombolo_protocol::boundary::{Reach, reach};
use tombolo_protocol::options::{ProtocolOptions, WritePolicy};
use tombolo_types::Sectors;

/// The input for building a model.
#[derive(Clone, Debug)]
pub struct ModelInput {
    /// The machine, with links adapted to the design.
    pub machine: Arc<MachineConfig>,
    /// The protocol's name in the catalogue.
    pub protocol: &'static str,
    /// The protocol's options, without a broken rule.
    pub options: ProtocolOptions,
    /// Write policy for the cache in front of memory.
    pub l3_write: WritePolicy,
    /// The policy for sharing ways between local and remote lines.
    pub capacity: Arc<dyn CapacityPolicy>,
    /// The turning times for lanes; `None` if no lane turns.
    pub turning: Option<TurningTimes>,
    /// The distribution of a grid's CTAs over the modules.
    pub cut: CtaDistribution,
    /// The decision maker for operations at kernel boundaries.
    pub boundaries: ElisionChoice,
    /// The sharing scheme for memory between GPUs.
    pub sharing: Sharing,
    /// Set when the host takes part: its core runs the host program, and GPUs can access its memory.
    pub host: bool,
    /// Set when the GPUs' memory caches blocks from host memory.
    pub blocks: bool,
}

/// The reason for which a design does not fit a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BuildError {
    /// Lanes cannot turn on this machine, for the given reason.
    Links(&'static str),
    /// The host takes part, but the machine has none.
    Host,
    /// The host takes part as an additional module, but no module ids are left for it.
    HostIds {
        /// The machine's number of modules.
        modules: usize,
    },
    /// GPU memories cache blocks from host memory, but the machine's GPU memories have no directories.
    Stack,
    /// A slice has fewer consecutive bytes than a block, and the number of slices does not divide blocks evenly.
    Interleave,
    /// A block directory names GPUs, but the machine's GPUs have several modules.
    Blocks,
    /// Pages move between GPUs, but a GPU with several modules would have to share them internally.
    Pages,
    /// A directory entry cannot name every module.
    Directory {
        /// Maximum number of modules per entry.
        most: usize,
        /// The machine's number of modules.
        modules: usize,
    },
}

impl DesignConfig {
    /// The protocol's options, as far as the design decides their values.
    pub fn options(&self) -> ProtocolOptions {
        ProtocolOptions { write: self.l2_write, polls: self.polls, ..self.coherence.options() }
    }

    /// True if the host takes part: only machines with a host can be timed under this design.
    pub fn has_host(&self) -> bool {
        self.placement.has_host()
    }

    /// Builds the input for a model of `machine` under this design.
    ///
    /// # Errors
    /// Fails if the machine cannot provide the features required by the design.
    pub fn build(&self, machine: &MachineConfig) -> Result<ModelInput, BuildError> {
        if let Some(reason) = self.links.refused_by(machine) {
            return Err(BuildError::Links(reason));
        }
        let blocks = self.coherence.facts().host;
        if self.has_host() && machine.coherent_host().is_none() {
            return Err(BuildError::Host);
        }
        if blocks && machine.stack.is_none() {
            return Err(BuildError::Stack);
        }
        if blocks && spreads_unevenly(machine) {
            return Err(BuildError::Interleave);
        }
        if blocks && machine.topology.modules_per_gpu > 1 {
            return Err(BuildError::Blocks);
        }
        let modules = machine.topology.modules();
        if self.coherence.facts().directory && modules > Sharers::CAPACITY {
            return Err(BuildError::Directory { most: Sharers::CAPACITY, modules });
        }
        if self.has_host() && !machine.has_ids_for_host() {
            return Err(BuildError::HostIds { modules });
        }
        if self.placement.sharing().movement != Movement::Placed && machine.topology.modules_per_gpu > 1 {
            return Err(BuildError::Pages);
        }
        let (stores, tracks) = (machine.directory.allocate_on_store, machine.directory.tracks);
        let sectors = Sectors::new((machine.l1.sector_bytes / machine.line.grain()) as u32);
        let fetched = machine.l2.fetch_bytes.map_or(machine.l1.sector_bytes, u64::from);
        let fetches = Sectors::new((fetched / machine.line.grain()) as u32);
        Ok(ModelInput {
            machine: Arc::new(self.links.of_machine(machine)),
            protocol: self.coherence.protocol(),
            options: ProtocolOptions { stores, tracks, sectors, fetches, ..self.options() },
            l3_write: self.l3_write,
            capacity: self.capacity.policy(),
            turning: self.links.times(machine),
            cut: self.scheduling.cut(machine),
            boundaries: self.boundaries(machine),
            sharing: self.placement.sharing(),
            host: self.has_host(),
            blocks,
        })
    }

    /// The decision maker for kernel boundaries on a machine.
    fn boundaries(&self, machine: &MachineConfig) -> ElisionChoice {
        let Elision::Cpelide(cpelide) = self.elision else { return ElisionChoice::Never(self.boundary) };
        let (options, topology) = (self.options(), &machine.topology);
        let sharing = match reach(topology.gpus, self.coherence.facts(), &options) {
            Reach::Module | Reach::Gpu => 1,
            Reach::GpuShares => topology.modules_per_gpu,
        };
        let holds = (self.coherence.facts().holds)(&options);
        ElisionChoice::Table { cpelide, config: cpelide.config(sharing), holds }
    }
}

/// True if blocks are spread over slices, in the GPUs or the host, whose number is not a power of two.
fn spreads_unevenly(machine: &MachineConfig) -> bool {
    let is_spread = machine.stack.as_ref().is_some_and(|stack| stack.interleave() < stack.block_bytes);
    let of_host = machine.coherent_host().map_or(1, |host| host.directory.controllers);
    is_spread && ![machine.l2.slices, of_host].into_iter().all(u16::is_power_of_two)
}
