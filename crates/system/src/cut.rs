//! Cuts the machine into partitions for the engine. Each module is a partition, and so is each direction of a GPU's
//! port at a switch; a GPU's partitions form a group. All further components between GPUs, together with the command
//! processor, form another partition, the hub. If there is a single GPU module, the hub shares this module's partition.
//! On several threads, SMs leave their module's partition and are spread over several partitions; a lone module's
//! slices do the same. If modules are so close that windows would be too short to be worth a barrier, the modules in a
//! GPU, or all modules, share one partition.

use crate::partition::{Hub, MachinePart, SplitComponents, layout, port_index};
use std::sync::Arc;
use tombolo_design::ModelInput;
use tombolo_engine::Lookahead;
use tombolo_machine::MachineConfig;
use tombolo_model::convert::{
    broadcast_latency, host_latency, host_latency_one_way, latency_beyond_controller, slice_groups,
};
use tombolo_model::fabric::{Direction, GpuPort};
use tombolo_model::l2::{L2Design, least_delay};
use tombolo_model::layout::{ComponentKind, ComponentLayout, Unit};
use tombolo_model::module::Module;
use tombolo_model::observe::{ComponentMark, Contents};
use tombolo_types::{GpuId, ModuleId, Ps};

/// Windows shorter than this cost more in barriers than they gain. Assumed: a window with a few events.
const SHORTEST_WINDOW: Ps = Ps::from_ns(4);

/// Partitions for SMs, and for slices, per thread, so that work can be shared evenly. Measured: a single partition per
/// thread gives a speedup between 1.5 and 1.6 on two threads in the throughput benchmark's streaming case; two
/// partitions per thread give 1.75.
const PARTS_PER_THREAD: usize = 2;

/// Contents of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PartitionContents {
    /// Neighbouring modules, named by the first.
    Modules(ModuleId),
    /// Part number `.1` of a module's SMs, if these are split off from the module.
    Sms(ModuleId, u16),
    /// Part number `.1` of a module's slices, if these are split off from the module.
    Slices(ModuleId, u16),
    /// A GPU's port in one direction.
    GpuPort(GpuId, Direction),
    /// The hub.
    Hub,
}

/// Number of parts into which a module is split, or may be split.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SplitCounts {
    /// Parts for its SMs; 0: the SMs stay with the module.
    pub sms: u16,
    /// Parts for its slices; 0: the slices stay with the module.
    pub slices: u16,
}

impl SplitCounts {
    /// Maximum number of parts into which each module in `modules` may be split.
    pub(crate) fn most<C: L2Design<D>, D: Contents>(modules: &[Module<C, D>], layout: ComponentLayout) -> SplitCounts {
        let sms = if modules.iter().all(Module::may_part) { layout.sms } else { 0 };
        SplitCounts { sms, slices: modules.iter().map(Module::apart_slices).min().unwrap_or(0) }
    }

    /// Limits both counts to `most`.
    fn limited(self, most: usize) -> SplitCounts {
        let most = u16::try_from(most).unwrap_or(u16::MAX);
        SplitCounts { sms: self.sms.min(most), slices: self.slices.min(most) }
    }
}

/// Index of the part that contains member `index`, when `members` are split into `parts` nearly equal parts.
fn part_of(index: u16, members: u16, parts: u16) -> Option<u16> {
    let first = |part: u16| u32::from(part) * u32::from(members) / u32::from(parts);
    (0..parts).rev().find(|part| first(*part) <= index.into())
}

/// Number of neighbouring modules per partition, the components split off from modules, and the latencies between
/// partitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MachineCut {
    /// Modules per partition.
    pub modules: u8,
    /// True if GPU ports and the hub join the modules in a single partition.
    pub whole: bool,
    /// Components split off from each module. If any are, no two modules share a partition.
    pub parts: SplitCounts,
    /// Smallest latency between two partitions in a GPU.
    pub within: Ps,
    /// Smallest latency between two partitions in different GPUs, or to the hub.
    pub between: Ps,
}

impl MachineCut {
    /// Cuts a machine with component numbering `layout`, for up to `threads` threads; `most` limits the parts split off
    /// from a module. A coherent host counts as an extra GPU with one module.
    pub(crate) fn of(
        machine: &MachineConfig,
        layout: ComponentLayout,
        threads: usize,
        most: SplitCounts,
    ) -> MachineCut {
        let topology = &machine.topology;
        let (module_link, gpu_link) = (machine.module_link.latency, machine.gpu_link.latency);
        // Components without a link between them are infinitely far apart.
        let hop = if topology.modules_per_gpu > 1 { module_link } else { Ps::NEVER };
        let to_port = if topology.modules_per_gpu > 1 { module_link } else { Ps::ZERO };
        let (near, cross) = match GpuPort::distances(machine, layout) {
            Some(apart) => (apart.modules, apart.ports),
            None if topology.gpus > 1 => (Ps::NEVER, to_port + Ps(gpu_link.0 / 2)),
            None => (Ps::NEVER, Ps::NEVER),
        };
        let by_hub = layout.host && layout.gpu_ports <= topology.gpus;
        let to_host = host_latency_one_way(machine).filter(|_| by_hub).map_or(Ps::NEVER, |way| to_port + Ps(way.0 / 2));
        // A lone module's controller and the command processor share a partition.
        let way = host_latency(machine).min(broadcast_latency(machine));
        let to_hub = if layout.modules == 1 { way } else { latency_beyond_controller(way, machine) };
        let beyond = cross.min(to_host).min(to_hub);
        let alone = layout.all_modules() == 1;
        if most.sms > 0 && threads > 1 {
            let parts = most.limited((threads * PARTS_PER_THREAD).div_ceil(usize::from(layout.all_modules())));
            let within = hop.min(near).min(beyond).min(least_delay(machine));
            if within >= SHORTEST_WINDOW {
                return MachineCut { modules: 1, whole: false, parts, within, between: beyond };
            }
        }
        for (modules, within) in [(1, hop.min(near)), (topology.modules_per_gpu, near)] {
            let within = within.min(beyond);
            if !alone && within >= SHORTEST_WINDOW {
                return MachineCut { modules, whole: false, parts: SplitCounts::default(), within, between: beyond };
            }
        }
        MachineCut {
            modules: layout.all_modules(),
            whole: true,
            parts: SplitCounts::default(),
            within: Ps::NEVER,
            between: Ps::NEVER,
        }
    }

    /// Latencies between the partitions for the engine: a GPU's partitions form a group, and the hub forms another
    /// group.
    pub(crate) fn lookahead(&self, machine: &MachineConfig, layout: ComponentLayout) -> Lookahead {
        let groups = self.partition_contents(machine, layout).into_iter().map(|(group, _)| group).collect();
        Lookahead { groups, within: self.within, between: self.between }
    }

    /// Partition index for each component.
    pub(crate) fn homes(&self, machine: &MachineConfig, layout: ComponentLayout) -> Vec<u16> {
        let partition_contents = self.partition_contents(machine, layout);
        let home = |place| {
            let contents = match place {
                _ if self.whole => return 0,
                ComponentKind::Module(module, unit) if self.is_split_off(unit) => {
                    self.split_partition(module, unit, machine, layout)
                }
                ComponentKind::Module(module, _) => {
                    PartitionContents::Modules(ModuleId(module.0 / self.modules * self.modules))
                }
                ComponentKind::GpuPort(gpu, direction) => PartitionContents::GpuPort(gpu, direction),
                ComponentKind::Switch | ComponentKind::CommandProcessor | ComponentKind::Driver
                    if layout.modules == 1 =>
                {
                    PartitionContents::Modules(ModuleId(0))
                }
                ComponentKind::Switch | ComponentKind::CommandProcessor | ComponentKind::Driver => {
                    PartitionContents::Hub
                }
            };
            partition_contents.iter().position(|(_, other)| *other == contents).expect("each component has a partition")
                as u16
        };
        layout.kinds().into_iter().map(home).collect()
    }

    /// True if a module's component is in a separate partition.
    fn is_split_off(&self, unit: Unit) -> bool {
        match unit {
            Unit::Sm(_) => self.parts.sms > 0,
            Unit::Slice(_) => self.parts.slices > 0,
            Unit::Controller | Unit::CopyEngine => false,
        }
    }

    /// Partition contents for a component that is in a separate partition.
    fn split_partition(
        &self,
        module: ModuleId,
        unit: Unit,
        machine: &MachineConfig,
        layout: ComponentLayout,
    ) -> PartitionContents {
        let whole = PartitionContents::Modules(module);
        match unit {
            Unit::Sm(sm) => {
                part_of(sm.0, layout.sms, self.parts.sms).map_or(whole, |part| PartitionContents::Sms(module, part))
            }
            Unit::Slice(slice) => {
                let groups = slice_groups(machine);
                let group = slice / (layout.slices / groups);
                part_of(group, groups, self.parts.slices).map_or(whole, |part| PartitionContents::Slices(module, part))
            }
            Unit::Controller | Unit::CopyEngine => whole,
        }
    }

    /// Contents of each partition, preceded by its group number.
    fn partition_contents(&self, machine: &MachineConfig, layout: ComponentLayout) -> Vec<(u16, PartitionContents)> {
        if self.whole {
            return vec![(0, PartitionContents::Modules(ModuleId(0)))];
        }
        let topology = &machine.topology;
        let gpus = topology.gpus + u8::from(layout.host);
        let mut partition_contents = Vec::new();
        for gpu in 0..gpus {
            let modules = (0..layout.all_modules()).step_by(usize::from(self.modules));
            let own = modules.filter(|first| first / topology.modules_per_gpu == gpu);
            for first in own.map(ModuleId) {
                partition_contents.push((u16::from(gpu), PartitionContents::Modules(first)));
                let sms = (0..self.parts.sms).map(|part| PartitionContents::Sms(first, part));
                let apart = sms.chain((0..self.parts.slices).map(|part| PartitionContents::Slices(first, part)));
                partition_contents.extend(apart.map(|contents| (u16::from(gpu), contents)));
            }
            let ways = Direction::BOTH.into_iter().filter(|_| gpu < layout.gpu_ports);
            partition_contents.extend(ways.map(|way| (u16::from(gpu), PartitionContents::GpuPort(GpuId(gpu), way))));
        }
        if layout.modules > 1 {
            partition_contents.push((u16::from(gpus), PartitionContents::Hub));
        }
        partition_contents
    }

    /// Moves the modules, the GPU ports and the hub into their partitions. `hints`: if true, events are announced to
    /// the partitions ahead of time.
    pub(crate) fn partitions<C: L2Design<D>, D: Contents>(
        &self,
        built: &ModelInput,
        modules: Vec<Module<C, D>>,
        (ways, hub): (Vec<GpuPort>, Hub<C, D>),
        hints: bool,
    ) -> Vec<MachinePart<C, D>> {
        let layout = layout(built);
        let places: Arc<[(ComponentKind, ComponentMark)]> =
            layout.kinds().into_iter().map(|place| (place, ComponentMark::of(place))).collect();
        let (watch, mut hub) = (hub.watch.clone(), Some(hub));
        let (mut modules, mut ways) = (modules.into_iter(), ways.into_iter());
        let mut apart = Vec::new().into_iter();
        let mut parts = Vec::new();
        for (_, contents) in self.partition_contents(&built.machine, layout) {
            let mut part = MachinePart::new(Arc::clone(&places), watch.clone(), hints);
            match contents {
                PartitionContents::Modules(first) => {
                    part.first = first.0;
                    part.modules.extend(modules.by_ref().take(usize::from(self.modules)));
                    if first == ModuleId(0) && (self.whole || layout.modules == 1) {
                        part.hub = hub.take();
                    }
                    if self.parts != SplitCounts::default() {
                        apart = self.apart(&mut part.modules[0], built).into_iter();
                    }
                }
                PartitionContents::Sms(..) | PartitionContents::Slices(..) => part.apart = apart.next(),
                PartitionContents::GpuPort(gpu, direction) => {
                    part.first_port = port_index(gpu, direction);
                    part.ports.extend(ways.next());
                }
                PartitionContents::Hub => part.hub = hub.take(),
            }
            parts.push(part);
        }
        if self.whole {
            parts[0].ports.extend(ways);
        }
        parts
    }

    /// Splits off a module's separate components, in partition order.
    fn apart<C: L2Design<D>, D: Contents>(
        &self,
        module: &mut Module<C, D>,
        built: &ModelInput,
    ) -> Vec<SplitComponents<C, D>> {
        let sms = module.split_sms(self.parts.sms).into_iter().map(|sms| SplitComponents::Sms(Box::new(sms)));
        let slices = module.split_slices(self.parts.slices, built).into_iter();
        sms.chain(slices.map(|slices| SplitComponents::Slices(Box::new(slices)))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_of_a_gpu_are_nearer_to_each_other_than_to_others() {
        let machine = tombolo_machine::machine("hmg-4x4").expect("a preset").check().expect("a preset is sound");
        let layout = ComponentLayout { modules: 16, host: false, sms: 1, slices: 1, gpu_ports: 4 };
        let Lookahead { groups, within, between } =
            MachineCut::of(&machine, layout, 1, SplitCounts::default()).lookahead(&machine, layout);
        let gpus = (0..4).flat_map(|gpu| [gpu; 6]);
        assert_eq!(groups, gpus.chain([4]).collect::<Vec<u16>>(), "four modules and two ways each, and the hub");
        assert_eq!((within, between), (Ps::from_ns(32), Ps::from_ns(128)), "a hop; the way between GPUs");
    }
}
