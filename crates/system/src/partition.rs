//! How the machine is cut for the engine: each module a partition, and each way of a GPU at a switch; those of a GPU are a
//! group. What else is between GPUs and the command processor together are another. Where modules are so close that windows
//! would be too short to be worth a barrier, those of a GPU, or all, share one; a single module has nobody to run beside.

use std::sync::Arc;
use tombolo_design::Built;
use tombolo_engine::{Event, Lookahead, Outbox, Partition};
use tombolo_machine::MachineConfig;
use tombolo_model::below::Below;
use tombolo_model::command_processor::CommandProcessor;
use tombolo_model::convert::{self, broadcast_latency, host_latency, host_way};
use tombolo_model::driver::Driver;
use tombolo_model::fabric::Fabric;
use tombolo_model::gpu_way::GpuWay;
use tombolo_model::layout::{Layout, Place};
use tombolo_model::map::Map;
use tombolo_model::message::Message;
use tombolo_model::module::Module;
use tombolo_model::stats::Digest;
use tombolo_model::turning_link::Way;
use tombolo_model::watch::{Contents, Watch};
use tombolo_types::{GpuId, ModuleId, Ps};

/// Windows shorter than this cost more in barriers than they win. Assumed: a window of a few events.
const SHORTEST_WINDOW: Ps = Ps::from_ns(4);

/// What stands beside the modules.
pub struct Hub<C, D: Contents> {
    /// Between GPUs, but for their ways at a switch.
    pub fabric: Fabric<D>,
    /// Runs the program's commands.
    pub command_processor: CommandProcessor,
    /// Serves faults, and moves what the schedule says.
    pub driver: Driver,
    protocol: C,
    map: Map,
    watch: D::Watch,
}

impl<C: Below<D>, D: Contents> Hub<C, D> {
    /// A hub of these.
    pub fn new(
        fabric: Fabric<D>,
        command_processor: CommandProcessor,
        driver: Driver,
        (protocol, map): (C, Map),
        watch: D::Watch,
    ) -> Hub<C, D> {
        Hub { fabric, command_processor, driver, protocol, map, watch }
    }

    /// Handles an event of one of its components.
    fn handle(&mut self, place: Place, event: &Event<Message<D>>, out: &mut Outbox<'_, Message<D>>) {
        self.watch.beside(event.time, place, &event.message);
        match place {
            Place::Switch => match event.message {
                Message::Cross { route, packet } => self.fabric.cross(route, packet, out),
                Message::Link(event) => self.fabric.handle(event, out),
                other => panic!("the switch got {other:?}"),
            },
            Place::Driver => self.driver.handle(event.message, out),
            Place::CommandProcessor => self.command_processor.handle(event.message, &self.protocol, &self.map, out),
            Place::Module(..) | Place::Way(..) => panic!("the hub got an event of {place:?}"),
        }
    }
}

/// Neighbouring modules, ways of GPUs, or the hub, or all of them.
pub struct Part<C: Below<D>, D: Contents> {
    /// What each component of the machine is, by id.
    places: Arc<[Place]>,
    first: u8,
    /// Its modules, ascending from `first`.
    pub modules: Vec<Module<C, D>>,
    first_way: usize,
    /// Its ways of GPUs, by GPU and [`Way`], from `first_way` on.
    pub ways: Vec<GpuWay>,
    watch: D::Watch,
    /// The hub, in one part of the machine.
    pub hub: Option<Hub<C, D>>,
    /// Of everything handled here.
    pub digest: Digest,
    /// Whether its events are to be shown to it ahead of time.
    hints: bool,
}

impl<C: Below<D>, D: Contents> Partition for Part<C, D> {
    type Message = Message<D>;

    fn handle(&mut self, event: &Event<Message<D>>, out: &mut Outbox<'_, Message<D>>) {
        let place = self.places[usize::from(event.to.0)];
        self.digest.event(event.time, place);
        match place {
            Place::Module(module, unit) => {
                let index = self.module(module);
                self.modules[index].handle(unit, event, out);
            }
            Place::Way(gpu, way) => {
                self.watch.beside(event.time, place, &event.message);
                match event.message {
                    Message::Cross { route, packet } => {
                        self.ways[index(gpu, way) - self.first_way].cross(route, packet, out);
                    }
                    other => panic!("a way of {gpu} got {other:?}"),
                }
            }
            Place::Switch | Place::Driver | Place::CommandProcessor => {
                let hub = self.hub.as_mut().expect("events of the hub's components go to its partition");
                hub.handle(place, event, out);
            }
        }
    }

    #[inline]
    fn wants_hints(&self) -> bool {
        self.hints
    }

    #[inline]
    fn prefetch(&self, event: &Event<Message<D>>) {
        if let Place::Module(module, unit) = self.places[usize::from(event.to.0)] {
            self.modules[self.module(module)].prefetch(unit, &event.message);
        }
    }

    #[inline]
    fn prefetch_found(&self, event: &Event<Message<D>>) {
        if let Place::Module(module, unit) = self.places[usize::from(event.to.0)] {
            self.modules[self.module(module)].prefetch_found(unit, &event.message);
        }
    }
}

impl<C: Below<D>, D: Contents> Part<C, D> {
    fn module(&self, module: ModuleId) -> usize {
        usize::from(module.0 - self.first)
    }
}

/// Which of the ways of all GPUs it is.
fn index(gpu: GpuId, way: Way) -> usize {
    2 * usize::from(gpu.0) + way as usize
}

/// What a partition has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seat {
    /// Neighbouring modules, by the first.
    Modules(ModuleId),
    /// A way of a GPU.
    Way(GpuId, Way),
    /// The hub.
    Hub,
}

/// How many neighbouring modules share a partition, and how far apart partitions are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Modules of a partition.
    pub modules: u8,
    /// Whether ways and the hub stand with them, all in one partition.
    pub whole: bool,
    /// Smallest latency between two partitions of a GPU.
    pub within: Ps,
    /// Smallest latency between two partitions of different GPUs, or to the hub.
    pub between: Ps,
}

impl Cut {
    /// The cut of a machine whose components are numbered so. A host that takes part is one more GPU of one module.
    pub fn of(machine: &MachineConfig, layout: Layout) -> Cut {
        let topology = &machine.topology;
        let (module_link, gpu_link) = (machine.module_link.latency, machine.gpu_link.latency);
        // What no link joins is as far apart as can be.
        let hop = if topology.modules_per_gpu > 1 { module_link } else { Ps::NEVER };
        let to_port = if topology.modules_per_gpu > 1 { module_link } else { Ps::ZERO };
        let (near, cross) = match GpuWay::apart(machine, layout) {
            Some(apart) => (apart.modules, apart.ways),
            None if topology.gpus > 1 => (Ps::NEVER, to_port + Ps(gpu_link.0 / 2)),
            None => (Ps::NEVER, Ps::NEVER),
        };
        let by_hub = layout.host && layout.ways <= topology.gpus;
        let to_host = host_way(machine).filter(|_| by_hub).map_or(Ps::NEVER, |way| to_port + Ps(way.0 / 2));
        let beyond = cross.min(to_host).min(host_latency(machine)).min(broadcast_latency(machine));
        let alone = layout.all_modules() == 1;
        for (modules, within) in [(1, hop.min(near)), (topology.modules_per_gpu, near)] {
            let within = within.min(beyond);
            if !alone && within >= SHORTEST_WINDOW {
                return Cut { modules, whole: false, within, between: beyond };
            }
        }
        Cut { modules: layout.all_modules(), whole: true, within: Ps::NEVER, between: Ps::NEVER }
    }

    /// How far apart its partitions are: those of a GPU are a group, and the hub is another.
    pub fn lookahead(&self, machine: &MachineConfig, layout: Layout) -> Lookahead {
        let groups = self.seats(machine, layout).into_iter().map(|(group, _)| group).collect();
        Lookahead { groups, within: self.within, between: self.between }
    }

    /// The partition of each component.
    pub fn homes(&self, machine: &MachineConfig, layout: Layout) -> Vec<u16> {
        let seats = self.seats(machine, layout);
        let home = |place| {
            let seat = match place {
                _ if self.whole => return 0,
                Place::Module(module, _) => Seat::Modules(ModuleId(module.0 / self.modules * self.modules)),
                Place::Way(gpu, way) => Seat::Way(gpu, way),
                Place::Switch | Place::CommandProcessor | Place::Driver => Seat::Hub,
            };
            seats.iter().position(|(_, other)| *other == seat).expect("each component has a partition") as u16
        };
        layout.places().into_iter().map(home).collect()
    }

    /// What its partitions have, each behind the number of its group.
    fn seats(&self, machine: &MachineConfig, layout: Layout) -> Vec<(u16, Seat)> {
        if self.whole {
            return vec![(0, Seat::Modules(ModuleId(0)))];
        }
        let topology = &machine.topology;
        let gpus = topology.gpus + u8::from(layout.host);
        let mut seats = Vec::new();
        for gpu in 0..gpus {
            let modules = (0..layout.all_modules()).step_by(usize::from(self.modules));
            let own = modules.filter(|first| first / topology.modules_per_gpu == gpu);
            seats.extend(own.map(|first| (u16::from(gpu), Seat::Modules(ModuleId(first)))));
            let ways = Way::BOTH.into_iter().filter(|_| gpu < layout.ways);
            seats.extend(ways.map(|way| (u16::from(gpu), Seat::Way(GpuId(gpu), way))));
        }
        seats.push((u16::from(gpus), Seat::Hub));
        seats
    }

    /// Puts the modules, the ways of the GPUs and the hub into their partitions. `hints`: whether events are to be shown to
    /// them ahead of time.
    pub fn partitions<C: Below<D>, D: Contents>(
        &self,
        machine: &MachineConfig,
        layout: Layout,
        modules: Vec<Module<C, D>>,
        (ways, hub): (Vec<GpuWay>, Hub<C, D>),
        hints: bool,
    ) -> Vec<Part<C, D>> {
        let places: Arc<[Place]> = layout.places().into();
        let (watch, mut hub) = (hub.watch.clone(), Some(hub));
        let (mut modules, mut ways) = (modules.into_iter(), ways.into_iter());
        let part = |(_, seat)| {
            let mut part = Part {
                places: Arc::clone(&places),
                first: 0,
                modules: Vec::new(),
                first_way: 0,
                ways: Vec::new(),
                watch: watch.clone(),
                hub: None,
                digest: Digest::default(),
                hints,
            };
            match seat {
                Seat::Modules(first) => {
                    part.first = first.0;
                    part.modules.extend(modules.by_ref().take(usize::from(self.modules)));
                }
                Seat::Way(gpu, way) => {
                    part.first_way = index(gpu, way);
                    part.ways.extend(ways.next());
                }
                Seat::Hub => part.hub = hub.take(),
            }
            part
        };
        let mut parts: Vec<Part<C, D>> = self.seats(machine, layout).into_iter().map(part).collect();
        if self.whole {
            parts[0].ways.extend(ways);
            parts[0].hub = hub;
        }
        parts
    }
}

/// The numbering of a machine's components.
pub fn layout(built: &Built) -> Layout {
    let machine = &built.machine;
    let host = machine.coherent_host().filter(|_| built.host);
    Layout {
        modules: machine.topology.modules() as u8,
        host: host.is_some(),
        sms: machine.topology.sms_per_module,
        slices: host.map_or(0, |host| host.directory.controllers).max(machine.l2.slices),
        ways: convert::ways(machine, host.is_some(), built.turning.is_some()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_of_a_gpu_are_nearer_to_each_other_than_to_others() {
        let machine = tombolo_machine::machine("hmg-4x4").expect("a preset").check().expect("a preset is sound");
        let layout = Layout { modules: 16, host: false, sms: 1, slices: 1, ways: 4 };
        let Lookahead { groups, within, between } = Cut::of(&machine, layout).lookahead(&machine, layout);
        let gpus = (0..4).flat_map(|gpu| [gpu; 6]);
        assert_eq!(groups, gpus.chain([4]).collect::<Vec<u16>>(), "four modules and two ways each, and the hub");
        assert_eq!((within, between), (Ps::from_ns(32), Ps::from_ns(128)), "a hop; the way between GPUs");
    }
}
