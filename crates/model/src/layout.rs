//! Numbering of components. Modules come first: for each module the SMs, then the L2 slices, then the controller and
//! the copy engine. A coherent host follows the GPUs' modules. The switch, the command processor and the driver come
//! next, then the ports of each GPU if they are components. A component keeps its id in every partition.
//!
//! A coherent host is an additional module in a separate GPU: the last-level cache is an L2, and the core takes the
//! position of SM 0.

use crate::fabric::turning_link::Direction;
use tombolo_types::{ComponentId, GpuId, ModuleId, SmId};

/// Numbering for the components in a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ComponentLayout {
    /// Number of modules in all GPUs together.
    pub modules: u8,
    /// Set if the host is one more module.
    pub host: bool,
    /// SMs per module.
    pub sms: u16,
    /// Maximum L2 slice count per module.
    pub slices: u16,
    /// GPUs whose output and input ports are components (`gpu_port`), counting a host in the same fabric. Zero
    /// if a single component joins the GPUs.
    pub gpu_ports: u8,
}

/// A component inside a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// An SM with its L1.
    Sm(SmId),
    /// An L2 slice with the corresponding part of the directory.
    Slice(u16),
    /// Controller: runs a module's synchronisation and dispatches its CTAs.
    Controller,
    /// Copy engine: copies memory from and to further modules.
    CopyEngine,
}

/// A component's identity in the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComponentKind {
    /// Part of a module.
    Module(ModuleId, Unit),
    /// Connection between the GPUs, if modelled by a single component, and a host's separate links.
    Switch,
    /// A port of a GPU, output or input.
    GpuPort(GpuId, Direction),
    /// The command processor.
    CommandProcessor,
    /// The driver, which serves faults.
    Driver,
}

impl ComponentLayout {
    /// Number of components per module.
    pub(crate) fn stride(self) -> u16 {
        self.sms + self.slices + 2
    }

    /// Number of modules in the GPUs, plus one for a host module.
    pub fn all_modules(self) -> u8 {
        self.modules + u8::from(self.host)
    }

    /// The host, if modelled by a module.
    pub fn host(self) -> Option<ModuleId> {
        self.host.then_some(ModuleId(self.modules))
    }

    /// First component number after the modules.
    fn beside(self) -> u16 {
        u16::from(self.all_modules()) * self.stride()
    }

    /// Total number of components.
    pub(crate) fn count(self) -> usize {
        usize::from(self.beside()) + 3 + 2 * usize::from(self.gpu_ports)
    }

    /// First component number in a module, its SM 0.
    pub(crate) fn base(self, module: ModuleId) -> u16 {
        u16::from(module.0) * self.stride()
    }

    /// Id of an SM.
    pub(crate) fn sm(self, module: ModuleId, sm: SmId) -> ComponentId {
        ComponentId(self.base(module) + sm.0)
    }

    /// Id of an L2 slice.
    pub(crate) fn slice(self, module: ModuleId, slice: u16) -> ComponentId {
        ComponentId(self.base(module) + self.sms + slice)
    }

    /// Id for a module's controller.
    pub(crate) fn controller(self, module: ModuleId) -> ComponentId {
        ComponentId(self.base(module) + self.sms + self.slices)
    }

    /// Id for a module's copy engine.
    pub(crate) fn copy_engine(self, module: ModuleId) -> ComponentId {
        ComponentId(self.base(module) + self.sms + self.slices + 1)
    }

    /// Id for a GPU's port, among the [`ComponentLayout::gpu_ports`] GPUs.
    pub(crate) fn gpu_port(self, gpu: GpuId, direction: Direction) -> ComponentId {
        ComponentId(self.beside() + 3 + 2 * u16::from(gpu.0) + direction as u16)
    }

    /// Id of the switch.
    pub(crate) fn switch(self) -> ComponentId {
        ComponentId(self.beside())
    }

    /// Id of the command processor.
    pub fn command_processor(self) -> ComponentId {
        ComponentId(self.beside() + 1)
    }

    /// Id of the driver.
    pub(crate) fn driver(self) -> ComponentId {
        ComponentId(self.beside() + 2)
    }

    /// Identity of a component.
    pub(crate) fn kind(self, component: ComponentId) -> ComponentKind {
        if component == self.switch() {
            return ComponentKind::Switch;
        }
        if component == self.command_processor() {
            return ComponentKind::CommandProcessor;
        }
        if component == self.driver() {
            return ComponentKind::Driver;
        }
        if let Some(index) = component.0.checked_sub(self.beside() + 3) {
            return ComponentKind::GpuPort(GpuId((index / 2) as u8), Direction::BOTH[usize::from(index % 2)]);
        }
        let (module, within) = (component.0 / self.stride(), component.0 % self.stride());
        let unit = match within.checked_sub(self.sms) {
            None => Unit::Sm(SmId(within)),
            Some(slice) if slice < self.slices => Unit::Slice(slice),
            Some(slice) if slice == self.slices => Unit::Controller,
            Some(_) => Unit::CopyEngine,
        };
        ComponentKind::Module(ModuleId(module as u8), unit)
    }

    /// Identity for each component, indexed by id.
    pub fn kinds(self) -> Vec<ComponentKind> {
        (0..self.count() as u16).map(|id| self.kind(ComponentId(id))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_id_names_one_component() {
        for host in [false, true] {
            for gpu_ports in [0, 4] {
                names_one_component(ComponentLayout { modules: 3, host, sms: 4, slices: 2, gpu_ports });
            }
        }
    }

    fn names_one_component(layout: ComponentLayout) {
        for (id, place) in (0..).map(ComponentId).zip(layout.kinds()) {
            let back = match place {
                ComponentKind::Module(module, Unit::Sm(sm)) => layout.sm(module, sm),
                ComponentKind::Module(module, Unit::Slice(slice)) => layout.slice(module, slice),
                ComponentKind::Module(module, Unit::Controller) => layout.controller(module),
                ComponentKind::Module(module, Unit::CopyEngine) => layout.copy_engine(module),
                ComponentKind::Switch => layout.switch(),
                ComponentKind::GpuPort(gpu, direction) => layout.gpu_port(gpu, direction),
                ComponentKind::CommandProcessor => layout.command_processor(),
                ComponentKind::Driver => layout.driver(),
            };
            assert_eq!(back, id);
        }
    }
}
