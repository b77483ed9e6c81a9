//! Configuration that no event changes and all components of a module read: the module's position, and the machine
//! around it.

use crate::fabric::packet::Receiver;
use crate::fabric::packet_size::PacketSizes;
use crate::fabric::sideband::Sideband;
use crate::front_end::boundaries::Extents;
use crate::front_end::schedule::Schedule;
use crate::front_end::transfer::Transfers;
use crate::l2::address_map::AddressMap;
use crate::layout::ComponentLayout;
use crate::observe::unloaded_latency::UnloadedLatencies;
use crate::observe::value_probe::{Contents, WarpSlot};
use crate::sm::translation::bank_of;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use tombolo_machine::{MachineConfig, Routes};
use tombolo_protocol::Coherence;
use tombolo_protocol::copies::Copies;
use tombolo_protocol::drain::StoreRoute;
use tombolo_protocol::paging::Paging;
use tombolo_protocol::sm_rules::SmRules;
use tombolo_protocol::{Homes, Topology};
use tombolo_types::{ComponentId, Line, Mask, ModuleId, Page, Ps, SmId};

/// Protocol properties that determine message routing between modules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Routing {
    /// True if requests are routed through the GPU home.
    pub hierarchical: bool,
    /// True if an invalidation never overtakes a fill sent before it.
    pub(crate) fills_stay_ahead: bool,
}

/// A module's position in the machine, and the machine around it: all that does not depend on the protocol's type.
pub struct ModuleSite<D: Contents> {
    /// Id of the module.
    pub module: ModuleId,
    /// Rules of the protocol for the module's SMs.
    pub sm_rules: SmRules,
    /// Routing rules for the protocol's messages.
    pub routing: Routing,
    /// Numbering for components.
    pub layout: ComponentLayout,
    /// The machine.
    pub machine: Arc<MachineConfig>,
    /// Address map with the line homes.
    pub map: AddressMap,
    /// Number of L2 TLB banks.
    pub tlb_banks: u16,
    /// Set if data for upcoming events is prefetched into the host's caches.
    pub hints: bool,
    /// Packet sizes on links.
    pub packet_sizes: PacketSizes,
    /// Zero-load trip latencies between modules, if loads are followed (`observe/latency.rs`).
    pub unloaded_latencies: Option<Arc<UnloadedLatencies>>,
    /// Paths between GPUs that pass packets on; `None` in other fabrics.
    pub routes: Option<Arc<Routes>>,
    /// Probe that checks load values.
    pub probe: D::Probe,
    /// Line sets for ranged operations at boundaries.
    pub extents: Extents,
    /// Operations scheduled around the program's commands.
    pub schedule: Arc<Schedule>,
    /// Rules for moving pages.
    pub paging: Paging,
    /// Rules for copies between GPUs.
    pub copies: Copies,
    /// Line contents in transit between memories.
    pub sideband: Sideband<D>,
    /// Host transfers in flight.
    pub transfers: Transfers<D>,
}

/// A module's site, with the protocol under test.
pub struct ModuleConfig<C, D: Contents> {
    /// The protocol under test.
    pub protocol: C,
    /// The module's position in the machine.
    pub site: ModuleSite<D>,
}

impl<C, D: Contents> Deref for ModuleConfig<C, D> {
    type Target = ModuleSite<D>;

    #[inline]
    fn deref(&self) -> &ModuleSite<D> {
        &self.site
    }
}

impl<C, D: Contents> DerefMut for ModuleConfig<C, D> {
    #[inline]
    fn deref_mut(&mut self) -> &mut ModuleSite<D> {
        &mut self.site
    }
}

impl<C: Copy, D: Contents> ModuleConfig<C, D> {
    /// Copy for slices that run in a separate partition. The map must not change afterwards.
    pub(crate) fn again(&self) -> ModuleConfig<C, D> {
        ModuleConfig { protocol: self.protocol, site: self.site.again() }
    }
}

impl<C: Coherence, D: Contents> ModuleConfig<C, D> {
    /// True if this module, the home of `line`, answers a read sent by module `sender` at the issuing SM.
    #[inline]
    pub(crate) fn answers_issuer(&self, sender: ModuleId, line: Line) -> bool {
        self.protocol.answers_issuer(&self.map, self.module, sender, line)
    }
}

impl<D: Contents> ModuleSite<D> {
    /// Copy for a part of the module that runs in a separate partition. The map must not change afterwards.
    pub(crate) fn again(&self) -> ModuleSite<D> {
        ModuleSite {
            map: self.map.clone(),
            machine: Arc::clone(&self.machine),
            packet_sizes: self.packet_sizes.clone(),
            unloaded_latencies: self.unloaded_latencies.clone(),
            routes: self.routes.clone(),
            probe: self.probe.clone(),
            extents: self.extents.clone(),
            schedule: Arc::clone(&self.schedule),
            sideband: self.sideband.clone(),
            transfers: self.transfers.clone(),
            ..*self
        }
    }

    /// True if load latencies are recorded.
    #[inline]
    pub(crate) fn follows_loads(&self) -> bool {
        D::FOLLOWS && self.unloaded_latencies.is_some()
    }

    /// Zero-load round-trip latency in picoseconds, from this module to another or between two others.
    #[inline]
    pub(crate) fn trip(&self, from: ModuleId, to: ModuleId, mask: Mask) -> u32 {
        self.unloaded_latencies.as_ref().map_or(0, |latencies| latencies.trip(from, to, mask))
    }

    /// Name of a warp slot for the value probe.
    pub(crate) fn warp_slot(&self, sm: SmId, slot: usize) -> WarpSlot {
        WarpSlot { gpu: self.map.gpu_of(self.module), module: self.module, sm, slot: slot as u8 }
    }

    /// Homes of a line from this module's viewpoint.
    #[inline]
    pub(crate) fn homes(&self, line: Line) -> Homes {
        self.map.homes(self.module, line)
    }

    /// True if a line's memory belongs to this module.
    #[inline]
    pub(crate) fn is_home(&self, line: Line) -> bool {
        self.map.home(self.module, line) == self.module
    }

    /// True if a module belongs to another GPU, so that packets to it cross the links between GPUs.
    pub(crate) fn is_beyond(&self, module: ModuleId) -> bool {
        self.map.gpu_of(module) != self.map.gpu_of(self.module)
    }

    /// Channel index for a component in this module: slices come first, all remaining components share the last
    /// channel.
    pub(crate) fn source(&self, from: ComponentId) -> usize {
        let slice = from.0.wrapping_sub(self.layout.slice(self.module, 0).0);
        usize::from(slice.min(self.layout.slices))
    }

    /// Receiving component in `target` for a packet.
    pub(crate) fn component(&self, target: ModuleId, receiver: Receiver) -> ComponentId {
        match receiver {
            Receiver::Slice(line) => self.slice_of(target, line),
            Receiver::Origin(origin, line) if origin.module != target => self.slice_of(target, line),
            // The controller forwards it over the crossbar.
            Receiver::Origin(..) | Receiver::Sm(_) => self.layout.controller(target),
            Receiver::Controller => self.layout.controller(target),
            Receiver::CopyEngine => self.layout.copy_engine(target),
        }
    }

    /// Slice in a module that holds a line.
    pub(crate) fn slice_of(&self, module: ModuleId, line: Line) -> ComponentId {
        self.layout.slice(module, self.map.slice_of(module, line))
    }

    /// First slice in the group with the TLB bank for a page.
    #[inline]
    pub(crate) fn tlb_bank(&self, page: Page) -> u16 {
        self.first_slice_of_bank(bank_of(page, self.tlb_banks))
    }

    /// First slice in the group with the given TLB bank.
    #[inline]
    pub(crate) fn first_slice_of_bank(&self, bank: u16) -> u16 {
        bank * (self.machine.l2.slices / self.tlb_banks)
    }

    /// Latency for a notice without size to another module: flow control is piggybacked on existing packets.
    pub(crate) fn notice_latency(&self, target: ModuleId) -> Ps {
        let hop = self.machine.module_link.latency;
        if !self.is_beyond(target) {
            return hop;
        }
        let host = self.layout.host();
        if let Some(way) = crate::convert::host_latency_one_way(&self.machine)
            && host.is_some_and(|host| host == target || host == self.module)
        {
            return hop + way;
        }
        let [from, to] = [self.module, target].map(|module| self.machine.topology.gpu_of(module));
        let between = match &self.routes {
            Some(routes) => routes.latency(from, to),
            None => self.machine.gpu_link.latency + self.machine.fabric.detour(from, to),
        };
        hop + hop + between
    }

    /// Next module on the reply path for an atomic's result, along the request's path in reverse. Source: HMG, section
    /// V-B: as load responses.
    pub(crate) fn next_back(&self, line: Line, origin: ModuleId) -> ModuleId {
        let homes = self.map.homes(origin, line);
        let first = homes.next(origin, self.routing.hierarchical);
        first.filter(|&home| home != self.module && home != origin).unwrap_or(origin)
    }

    /// Leg by which a store from `origin` to a line leaves this module.
    pub(crate) fn leg(&self, line: Line, origin: ModuleId) -> StoreRoute {
        StoreRoute::of(&self.map, self.routing.hierarchical, (self.module, origin), self.homes(line))
    }
}
