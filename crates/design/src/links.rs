//! Links axis: abilities of the links between modules and GPUs.

use crate::axis::{axis, option};
use tombolo_machine::MachineConfig;
use tombolo_machine::machine::FabricShape;
use tombolo_types::{Ps, Rate};

axis! {
    /// Ability of links between modules and GPUs.
    pub enum Links { Static, Turning, Infinite }
}

option! {
    /// The machine's rate each way.
    pub struct Static = "static" {}
}

/// Cycles between two successive samples of a link. Source: NUMA-GPU, section 4.1: a moderate 5K cycles.
pub const SAMPLE_TIME: u32 = 5_000;
/// Cycles needed by a lane to turn. Source: NUMA-GPU, section 4.1: a pessimistic 100 cycles.
const SWITCH_TIME: u32 = 100;

option! {
    /// Lanes between GPUs and their switch turn toward the saturated direction. Source: NUMA-GPU, section 4.
    pub struct Turning = "turning" {
        /// Cycles of the SM clock between two link samples. Source of the default: NUMA-GPU, section 4.1.
        sample_time: u32 = SAMPLE_TIME,
        /// Cycles of the SM clock for a lane to turn after its packets have drained. Source of the default:
        /// NUMA-GPU, section 4.1.
        switch_time: u32 = SWITCH_TIME,
    }
}

option! {
    /// No limit of rate; latencies stay.
    pub struct Infinite = "infinite" {}
}

/// The times for turning lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TurningTimes {
    /// Time between two samples of a link, above zero.
    pub sample_time: Ps,
    /// Time from the end of a lane's drain to its first packet in the opposite direction.
    pub switch_time: Ps,
}

impl Links {
    /// True if lanes turn.
    pub fn turn(self) -> bool {
        matches!(self, Links::Turning(_))
    }

    /// Cycles of the SM clock between two link samples; for links without samples, the default for turning links.
    pub fn sample_time(self) -> u32 {
        match self {
            Links::Turning(turning) => turning.sample_time,
            Links::Static(_) | Links::Infinite(_) => SAMPLE_TIME,
        }
    }

    /// The turning times on `machine`; `None` if lanes do not turn, or if the machine has no switch at which to
    /// turn.
    pub(crate) fn times(self, machine: &MachineConfig) -> Option<TurningTimes> {
        let Links::Turning(turning) = self else { return None };
        let cycles = |count: u32| machine.sm.clock.span(count.into());
        (machine.topology.gpus > 1).then(|| TurningTimes {
            sample_time: cycles(turning.sample_time),
            switch_time: cycles(turning.switch_time),
        })
    }

    /// The reason why the links in `machine` lack these abilities, if any.
    pub(crate) fn refused_by(self, machine: &MachineConfig) -> Option<&'static str> {
        let link = &machine.gpu_link;
        if !self.turn() || machine.topology.gpus == 1 {
            return None;
        }
        match machine.fabric.shape {
            FabricShape::Switch => {}
            FabricShape::Tree => return Some("fabric.shape is a tree, whose uplinks keep their lanes"),
            FabricShape::Shared => {
                return Some("fabric.shape is one medium for all, which has no lanes of one GPU to turn");
            }
            FabricShape::Pairs => return Some("fabric.shape is links from each GPU to each, which no switch watches"),
            FabricShape::Ring | FabricShape::Torus | FabricShape::Links => {
                return Some("fabric.shape is links between GPUs, which no switch watches");
            }
        }
        match (link.lanes, link.rate.is_infinite()) {
            (1, _) => Some("gpu_link.lanes is 1, and each way keeps one"),
            (_, true) => Some("gpu_link.rate is infinite, and no way is ever saturated"),
            (_, false) => None,
        }
    }

    /// `machine` with these links applied, and without links to nowhere.
    pub(crate) fn of_machine(self, machine: &MachineConfig) -> MachineConfig {
        let mut machine = machine.clone();
        if matches!(self, Links::Infinite(_)) {
            machine.module_link.rate = Rate::INFINITE;
            machine.gpu_link.rate = Rate::INFINITE;
            machine.fabric.uplink_rate = Rate::INFINITE;
            machine.fabric.links = machine.fabric.links.at(|_| Rate::INFINITE);
            if let Some(link) = &mut machine.host_link {
                link.rate = Rate::INFINITE;
            }
        }
        if machine.topology.modules_per_gpu == 1 {
            (machine.module_link.rate, machine.module_link.latency) = (Rate::INFINITE, Ps::ZERO);
        }
        if !machine.crosses_fabric() {
            (machine.gpu_link.rate, machine.gpu_link.latency) = (Rate::INFINITE, Ps::ZERO);
        }
        machine
    }
}
