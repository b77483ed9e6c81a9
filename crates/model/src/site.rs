//! What no event changes and every component of a module reads: where it is, and of which machine.

use crate::boundaries::Extents;
use crate::cargo::Cargo;
use crate::layout::Layout;
use crate::map::Map;
use crate::packet::Receiver;
use crate::schedule::Schedule;
use crate::transfer::Transfers;
use crate::translation::bank_of;
use crate::watch::{Contents, WarpSlot};
use crate::weight::Weights;
use crate::wires::Wires;
use std::sync::Arc;
use tombolo_machine::MachineConfig;
use tombolo_protocol::drain::Leg;
use tombolo_protocol::paging::Paging;
use tombolo_protocol::{Homes, Topology};
use tombolo_types::{ComponentId, Line, Mask, ModuleId, Page, Ps, SmId};

/// What of a protocol decides how its messages travel between modules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Routing {
    /// Whether requests go by the GPU home.
    pub hierarchical: bool,
    /// Whether an invalidation never passes a fill that was sent before it.
    pub fills_stay_ahead: bool,
}

/// A module's place in the machine.
pub struct Site<C, D: Contents> {
    /// Which module.
    pub module: ModuleId,
    /// The protocol under test.
    pub protocol: C,
    /// How its messages travel.
    pub routing: Routing,
    /// Numbering of components.
    pub layout: Layout,
    /// The machine.
    pub machine: Arc<MachineConfig>,
    /// Homes of lines.
    pub map: Map,
    /// Banks of the L2 TLB.
    pub tlb_banks: u16,
    /// Whether what components are about to look at is to be brought into the host's caches ahead of time.
    pub hints: bool,
    /// Bytes of packets on links.
    pub weights: Weights,
    /// Where loads are followed ([`crate::latency`]): what idle trips between modules take.
    pub wires: Option<Arc<Wires>>,
    /// Who checks what loads return.
    pub watch: D::Watch,
    /// The lines of ranged operations at boundaries.
    pub extents: Extents,
    /// What is done around the program's commands.
    pub schedule: Arc<Schedule>,
    /// The rules of pages that move.
    pub paging: Paging,
    /// Contents of lines on their way between memories.
    pub cargo: Cargo<D>,
    /// Transfers of the host on their way.
    pub transfers: Transfers<D>,
}

impl<C: Copy, D: Contents> Site<C, D> {
    /// The same place, for a part of its module that stands apart. Nothing changes its map from then on.
    pub(crate) fn again(&self) -> Site<C, D> {
        Site {
            map: self.map.clone(),
            machine: Arc::clone(&self.machine),
            weights: self.weights.clone(),
            wires: self.wires.clone(),
            watch: self.watch.clone(),
            extents: self.extents.clone(),
            schedule: Arc::clone(&self.schedule),
            cargo: self.cargo.clone(),
            transfers: self.transfers.clone(),
            ..*self
        }
    }
}

impl<C, D: Contents> Site<C, D> {
    /// Whether what loads take is counted.
    #[inline]
    pub fn follows_loads(&self) -> bool {
        D::FOLLOWS && self.wires.is_some()
    }

    /// What an idle trip takes from this module to another and back, or between two others, in picoseconds.
    #[inline]
    pub fn trip(&self, from: ModuleId, to: ModuleId, mask: Mask) -> u32 {
        self.wires.as_ref().map_or(0, |wires| wires.trip(from, to, mask))
    }

    /// The name of a warp slot for those who watch.
    pub fn warp_slot(&self, sm: SmId, slot: usize) -> WarpSlot {
        WarpSlot { gpu: self.map.gpu_of(self.module), module: self.module, sm, slot: slot as u8 }
    }

    /// Homes of a line as this module sees them.
    #[inline]
    pub fn homes(&self, line: Line) -> Homes {
        self.map.homes(self.module, line)
    }

    /// Whether a line's memory is this module's.
    #[inline]
    pub fn is_home(&self, line: Line) -> bool {
        self.map.home(self.module, line) == self.module
    }

    /// Whether a module is of another GPU.
    pub fn is_beyond(&self, module: ModuleId) -> bool {
        self.map.gpu_of(module) != self.map.gpu_of(self.module)
    }

    /// Channel index of a component of this module: its slices first, all others share the last.
    pub fn source(&self, from: ComponentId) -> usize {
        let slice = from.0.wrapping_sub(self.layout.slice(self.module, 0).0);
        usize::from(slice.min(self.layout.slices))
    }

    /// The component of `target` that receives a packet.
    pub fn component(&self, target: ModuleId, receiver: Receiver) -> ComponentId {
        match receiver {
            Receiver::Slice(line) => self.slice_of(target, line),
            Receiver::Origin(origin, line) if origin.module != target => self.slice_of(target, line),
            // Over the crossbar, from there.
            Receiver::Origin(..) | Receiver::Sm(_) => self.layout.controller(target),
            Receiver::Controller => self.layout.controller(target),
            Receiver::CopyEngine => self.layout.copy_engine(target),
        }
    }

    /// The slice of a module that holds a line.
    pub fn slice_of(&self, module: ModuleId, line: Line) -> ComponentId {
        self.layout.slice(module, self.map.slice_of(module, line))
    }

    /// The slice with whose group the bank of a page stands, the first of it.
    #[inline]
    pub fn tlb_bank(&self, page: Page) -> u16 {
        self.first_slice_of_bank(bank_of(page, self.tlb_banks))
    }

    /// The same, by the bank.
    #[inline]
    pub fn first_slice_of_bank(&self, bank: u16) -> u16 {
        bank * (self.machine.l2.slices / self.tlb_banks)
    }

    /// How long a notice without weight takes to another module: flow control rides on other packets.
    pub fn notice_latency(&self, target: ModuleId) -> Ps {
        let hop = self.machine.module_link.latency;
        if !self.is_beyond(target) {
            return hop;
        }
        let host = self.layout.host();
        if let Some(way) = crate::convert::host_way(&self.machine)
            && host.is_some_and(|host| host == target || host == self.module)
        {
            return hop + way;
        }
        let [from, to] = [self.module, target].map(|module| self.machine.topology.gpu_of(module));
        hop + hop + self.machine.gpu_link.latency + self.machine.fabric.detour(from, to)
    }

    /// Where the result of an atomic on a line goes from here on its way to the module that issued it: back as the
    /// atomic came. Source: HMG, section V-B: as load responses.
    pub fn next_back(&self, line: Line, origin: ModuleId) -> ModuleId {
        let homes = self.map.homes(origin, line);
        let first = homes.next(origin, self.routing.hierarchical);
        first.filter(|&home| home != self.module && home != origin).unwrap_or(origin)
    }

    /// How a store of `origin` to a line leaves this module.
    pub fn leg(&self, line: Line, origin: ModuleId) -> Leg {
        Leg::of(&self.map, self.routing.hierarchical, (self.module, origin), self.homes(line))
    }
}
