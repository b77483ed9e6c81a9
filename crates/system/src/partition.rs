//! A part of the machine in the engine's view (`cut.rs` lists the parts), and the hub: the components outside the
//! modules.

use std::sync::Arc;
use tombolo_design::ModelInput;
use tombolo_engine::{Event, Outbox, Partition};
use tombolo_model::convert;
use tombolo_model::fabric::{Direction, Fabric, GpuPort};
use tombolo_model::front_end::{CommandProcessor, Driver, Transfers};
use tombolo_model::l2::{AddressMap, L2Design, SlicePartition, SmPartition};
use tombolo_model::layout::{ComponentKind, ComponentLayout, Unit};
use tombolo_model::message::Message;
use tombolo_model::module::Module;
use tombolo_model::observe::{ComponentMark, Contents, Digest, ValueProbe};
use tombolo_types::{GpuId, ModuleId};

/// Components outside the modules.
pub struct Hub<C, D: Contents> {
    /// Network between GPUs, except for the GPU ports at a switch.
    pub fabric: Fabric<D>,
    /// Runs the program's commands.
    pub command_processor: CommandProcessor,
    /// Serves faults, and performs the schedule's page movements.
    pub driver: Driver,
    protocol: C,
    map: AddressMap,
    pub(crate) watch: D::Probe,
    transfers: Transfers<D>,
}

impl<C: L2Design<D>, D: Contents> Hub<C, D> {
    /// Creates a hub from its components.
    pub fn new(
        fabric: Fabric<D>,
        command_processor: CommandProcessor,
        driver: Driver,
        (protocol, map): (C, AddressMap),
        (watch, transfers): (D::Probe, Transfers<D>),
    ) -> Hub<C, D> {
        Hub { fabric, command_processor, driver, protocol, map, watch, transfers }
    }

    /// Handles an event for one component in the hub.
    fn handle(&mut self, place: ComponentKind, event: &Event<Message<D>>, out: &mut Outbox<'_, Message<D>>) {
        self.watch.hub_event(event.time, place, &event.message);
        match place {
            ComponentKind::Switch => match event.message {
                Message::Cross { route, packet } => self.fabric.cross(route, packet, out),
                Message::Link(event) => self.fabric.handle(event, out),
                other => panic!("the switch got {other:?}"),
            },
            ComponentKind::Driver => self.driver.handle(event.message, out),
            ComponentKind::CommandProcessor => {
                let beside = ((&self.protocol, &self.map), (&self.watch, &self.transfers));
                self.command_processor.handle(event.message, beside.0, beside.1, out);
            }
            ComponentKind::Module(..) | ComponentKind::GpuPort(..) => panic!("the hub got an event of {place:?}"),
        }
    }
}

/// The machine's hub, found in its partitions.
pub(crate) fn hub<C: L2Design<D>, D: Contents>(parts: &[MachinePart<C, D>]) -> &Hub<C, D> {
    parts.iter().find_map(|part| part.hub.as_ref()).expect("one partition holds the hub")
}

/// Components split off from a module into a separate partition.
pub enum SplitComponents<C: L2Design<D>, D: Contents> {
    /// SMs.
    Sms(Box<SmPartition<D>>),
    /// Groups of slices.
    Slices(Box<SlicePartition<C, D>>),
}

/// A partition: neighbouring modules, GPU ports or the hub, or all three; or components split off from a module.
pub struct MachinePart<C: L2Design<D>, D: Contents> {
    /// Kind and digest mark for each component in the machine, indexed by component id.
    places: Arc<[(ComponentKind, ComponentMark)]>,
    /// Id of the first module in the partition.
    pub(crate) first: u8,
    /// The partition's modules, in ascending order from `first`.
    pub modules: Vec<Module<C, D>>,
    /// Components split off from their module into this partition.
    pub(crate) apart: Option<SplitComponents<C, D>>,
    /// Index of the first GPU port in the partition, numbered by [`way_index`].
    pub(crate) first_port: usize,
    /// The partition's GPU ports, by GPU and [`Direction`], in ascending order from `first_way`.
    pub ports: Vec<GpuPort>,
    watch: D::Probe,
    /// The hub; present in exactly one partition.
    pub hub: Option<Hub<C, D>>,
    /// Digest over all events handled in this partition.
    pub digest: Digest,
    /// True if the engine should announce events to this partition ahead of time.
    hints: bool,
}

impl<C: L2Design<D>, D: Contents> Partition for MachinePart<C, D> {
    type Message = Message<D>;

    #[inline]
    fn handle(&mut self, event: &Event<Message<D>>, out: &mut Outbox<'_, Message<D>>) {
        let (place, mark) = self.places[usize::from(event.to.0)];
        // Reads for observation leave the digest unchanged, so that a checked run equals a run without values.
        if size_of::<D>() == 0 || !matches!(event.message, Message::Transfer { is_read: true, .. }) {
            self.digest.event(event.time, mark);
        }
        match place {
            ComponentKind::Module(module, unit) => match (&mut self.apart, unit) {
                (Some(SplitComponents::Sms(sms)), Unit::Sm(sm)) => sms.handle(sm, event, out),
                (Some(SplitComponents::Slices(slices)), Unit::Slice(slice)) => slices.handle(slice, event, out),
                _ => {
                    let index = self.module(module);
                    self.modules[index].handle(unit, event, out);
                }
            },
            ComponentKind::GpuPort(gpu, direction) => {
                self.watch.hub_event(event.time, place, &event.message);
                match event.message {
                    Message::Cross { route, packet } => {
                        self.ports[port_index(gpu, direction) - self.first_port].cross(route, packet, out);
                    }
                    other => panic!("a way of {gpu} got {other:?}"),
                }
            }
            ComponentKind::Switch | ComponentKind::Driver | ComponentKind::CommandProcessor => {
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
        if let (ComponentKind::Module(module, unit), _) = self.places[usize::from(event.to.0)] {
            match (&self.apart, unit) {
                (Some(SplitComponents::Sms(sms)), Unit::Sm(sm)) => sms.prefetch(sm, &event.message),
                (Some(SplitComponents::Slices(slices)), Unit::Slice(slice)) => slices.prefetch(slice, &event.message),
                _ => self.modules[self.module(module)].prefetch(unit, &event.message),
            }
        }
    }

    #[inline]
    fn prefetch_found(&self, event: &Event<Message<D>>) {
        if let (ComponentKind::Module(module, unit), _) = self.places[usize::from(event.to.0)] {
            match (&self.apart, unit) {
                (Some(SplitComponents::Sms(sms)), Unit::Sm(sm)) => sms.prefetch_found(sm, &event.message),
                (Some(SplitComponents::Slices(slices)), Unit::Slice(slice)) => {
                    slices.prefetch_found(slice, &event.message)
                }
                _ => self.modules[self.module(module)].prefetch_found(unit, &event.message),
            }
        }
    }
}

impl<C: L2Design<D>, D: Contents> MachinePart<C, D> {
    /// An empty partition.
    pub(crate) fn new(
        places: Arc<[(ComponentKind, ComponentMark)]>,
        watch: D::Probe,
        hints: bool,
    ) -> MachinePart<C, D> {
        MachinePart {
            places,
            first: 0,
            modules: Vec::new(),
            apart: None,
            first_port: 0,
            ports: Vec::new(),
            watch,
            hub: None,
            digest: Digest::default(),
            hints,
        }
    }

    #[inline]
    fn module(&self, module: ModuleId) -> usize {
        usize::from(module.0 - self.first)
    }
}

/// Index for a GPU's port in direction `way`, among the ports of all GPUs.
pub(crate) fn port_index(gpu: GpuId, direction: Direction) -> usize {
    2 * usize::from(gpu.0) + direction as usize
}

/// Returns split-off components to their modules. The digests stay in their partitions.
pub fn join<C: L2Design<D>, D: Contents>(parts: &mut [MachinePart<C, D>]) {
    let mut module = 0;
    for index in 0..parts.len() {
        match parts[index].apart.take() {
            Some(SplitComponents::Sms(sms)) => parts[module].modules[0].rejoin_sms(*sms),
            Some(SplitComponents::Slices(slices)) => parts[module].modules[0].rejoin_slices(*slices),
            None if parts[index].modules.is_empty() => {}
            None => module = index,
        }
    }
}

/// The numbering of a machine's components.
pub fn layout(built: &ModelInput) -> ComponentLayout {
    let machine = &built.machine;
    let host = machine.coherent_host().filter(|_| built.host);
    ComponentLayout {
        modules: machine.topology.modules() as u8,
        host: host.is_some(),
        sms: machine.topology.sms_per_module,
        slices: host.map_or(0, |host| host.directory.controllers).max(machine.l2.slices),
        gpu_ports: convert::gpu_ports(machine, host.is_some(), built.turning.is_some()),
    }
}
