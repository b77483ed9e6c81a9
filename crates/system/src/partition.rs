//! How the machine is cut for the engine: each module a partition, those of a GPU a group; the fabric between GPUs and the
//! command processor together another. Where modules are so close that windows would be too short to be worth a
//! barrier, those of a GPU, or all, share one; a single module has nobody to run beside.

use std::sync::Arc;
use tombolo_design::Built;
use tombolo_engine::{Event, Lookahead, Outbox, Partition};
use tombolo_machine::MachineConfig;
use tombolo_model::below::Below;
use tombolo_model::command_processor::CommandProcessor;
use tombolo_model::convert::{broadcast_latency, host_latency, host_way};
use tombolo_model::driver::Driver;
use tombolo_model::fabric::Fabric;
use tombolo_model::layout::{Layout, Place};
use tombolo_model::map::Map;
use tombolo_model::message::Message;
use tombolo_model::module::Module;
use tombolo_model::stats::{Digest, Mark};
use tombolo_model::watch::{Contents, Watch};
use tombolo_types::{ModuleId, Ps};

/// Windows shorter than this cost more in barriers than they win. Assumed: a window of a few events.
const SHORTEST_WINDOW: Ps = Ps::from_ns(4);

/// What stands beside the modules.
pub struct Hub<C, D: Contents> {
    /// Between GPUs.
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
            Place::Module(module, _) => panic!("the hub got an event of {module}"),
        }
    }
}

/// Neighbouring modules, or the hub, or both.
pub struct Part<C: Below<D>, D: Contents> {
    /// What each component of the machine is, by id, and what stands for it in the digest.
    places: Arc<[(Place, Mark)]>,
    first: u8,
    /// Its modules, ascending from `first`.
    pub modules: Vec<Module<C, D>>,
    /// The hub, in one part of the machine.
    pub hub: Option<Hub<C, D>>,
    /// Of everything handled here.
    pub digest: Digest,
    /// Whether its events are to be shown to it ahead of time.
    hints: bool,
}

impl<C: Below<D>, D: Contents> Partition for Part<C, D> {
    type Message = Message<D>;

    #[inline]
    fn handle(&mut self, event: &Event<Message<D>>, out: &mut Outbox<'_, Message<D>>) {
        let (place, mark) = self.places[usize::from(event.to.0)];
        self.digest.event(event.time, mark);
        match place {
            Place::Module(module, unit) => {
                let index = self.module(module);
                self.modules[index].handle(unit, event, out);
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
        if let (Place::Module(module, unit), _) = self.places[usize::from(event.to.0)] {
            self.modules[self.module(module)].prefetch(unit, &event.message);
        }
    }

    #[inline]
    fn prefetch_found(&self, event: &Event<Message<D>>) {
        if let (Place::Module(module, unit), _) = self.places[usize::from(event.to.0)] {
            self.modules[self.module(module)].prefetch_found(unit, &event.message);
        }
    }
}

impl<C: Below<D>, D: Contents> Part<C, D> {
    #[inline]
    fn module(&self, module: ModuleId) -> usize {
        usize::from(module.0 - self.first)
    }
}

/// How many neighbouring modules share a partition, and how far apart partitions are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Modules of a partition.
    pub modules: u8,
    /// Whether the hub stands with them, all in one partition.
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
        let cross = if topology.gpus > 1 { to_port + Ps(gpu_link.0 / 2) } else { Ps::NEVER };
        let to_host = host_way(machine).filter(|_| layout.host).map_or(Ps::NEVER, |way| to_port + Ps(way.0 / 2));
        let beyond = cross.min(to_host).min(host_latency(machine)).min(broadcast_latency(machine));
        let alone = layout.all_modules() == 1;
        if !alone && hop.min(beyond) >= SHORTEST_WINDOW {
            return Cut { modules: 1, whole: false, within: hop.min(beyond), between: beyond };
        }
        if !alone && beyond >= SHORTEST_WINDOW {
            return Cut { modules: topology.modules_per_gpu, whole: false, within: beyond, between: beyond };
        }
        Cut { modules: layout.all_modules(), whole: true, within: Ps::NEVER, between: Ps::NEVER }
    }

    /// How far apart its partitions are: those of a GPU are a group, and the hub is another.
    pub fn lookahead(&self, machine: &MachineConfig, layout: Layout) -> Lookahead {
        let Cut { modules, whole, within, between } = *self;
        let topology = &machine.topology;
        let gpus = (0..layout.all_modules()).step_by(usize::from(modules));
        let gpus = gpus.map(|first| u16::from(first / topology.modules_per_gpu));
        let hub = (!whole).then_some(u16::from(topology.gpus) + u16::from(layout.host));
        Lookahead { groups: gpus.chain(hub).collect(), within, between }
    }

    /// The partition of each component.
    pub fn homes(&self, layout: Layout) -> Vec<u16> {
        let hub = if self.whole { 0 } else { u16::from(layout.all_modules().div_ceil(self.modules)) };
        let home = |place| match place {
            Place::Module(module, _) => u16::from(module.0 / self.modules),
            Place::Switch | Place::CommandProcessor | Place::Driver => hub,
        };
        layout.places().into_iter().map(home).collect()
    }

    /// Puts the modules and the hub into their partitions. `hints`: whether events are to be shown to them ahead of time.
    pub fn partitions<C: Below<D>, D: Contents>(
        &self,
        layout: Layout,
        modules: Vec<Module<C, D>>,
        hub: Hub<C, D>,
        hints: bool,
    ) -> Vec<Part<C, D>> {
        let places: Arc<[(Place, Mark)]> = layout.places().into_iter().map(|place| (place, Mark::of(place))).collect();
        let digest = Digest::default();
        let part = |first, hub| Part { places: Arc::clone(&places), first, modules: Vec::new(), hub, digest, hints };
        let mut parts: Vec<Part<C, D>> = Vec::new();
        for (index, module) in modules.into_iter().enumerate() {
            let index = index as u8;
            if index.is_multiple_of(self.modules) {
                parts.push(part(index, None));
            }
            parts.last_mut().expect("the first module opens a partition").modules.push(module);
        }
        if self.whole {
            parts[0].hub = Some(hub);
        } else {
            parts.push(part(layout.all_modules(), Some(hub)));
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
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_of_a_gpu_are_nearer_to_each_other_than_to_others() {
        let machine = tombolo_machine::machine("hmg-4x4").expect("a preset").check().expect("a preset is sound");
        let layout = Layout { modules: 16, host: false, sms: 1, slices: 1 };
        let Lookahead { groups, within, between } = Cut::of(&machine, layout).lookahead(&machine, layout);
        assert_eq!(groups, [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4]);
        assert_eq!(
            (within, between),
            (Ps::from_ns(32), Ps::from_ns(96)),
            "a hop; a hop and half of the way between GPUs"
        );
    }
}
