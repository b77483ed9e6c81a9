//! Execution of a boundary side: its steps, plan by plan and phase by phase.

use crate::front_end::boundaries::Decision;
use tombolo_protocol::boundary::Steps;
use tombolo_protocol::{Action, Collector, Protocol, Topology};
use tombolo_types::ModuleId;

/// Boundary side in progress: the decision, the current plan's index, and the acknowledgement collector for this plan.
#[derive(Clone, Debug)]
pub(super) struct BoundarySide {
    pub(super) decision: Decision,
    index: u8,
    collector: Option<Collector>,
}

impl BoundarySide {
    pub(super) fn new(decision: Decision, protocol: &impl Protocol) -> BoundarySide {
        let collector = collector(decision.steps, 0, protocol);
        BoundarySide { decision, index: 0, collector }
    }

    /// Starts the next phase in the current plan or a later plan: calls `send` for each member and returns true.
    /// Returns false if all phases have run.
    pub(super) fn begin_phase(
        &mut self,
        protocol: &impl Protocol,
        topology: &impl Topology,
        mut send: impl FnMut(ModuleId, Action),
    ) -> bool {
        while let Some(collector_at_hand) = &mut self.collector {
            if collector_at_hand.begin_phase(topology, &mut send) {
                return true;
            }
            self.index += 1;
            self.collector = collector(self.decision.steps, self.index, protocol);
        }
        false
    }

    /// Records an acknowledgement; returns true if the phase is complete.
    pub(super) fn acknowledge(&mut self) -> bool {
        self.collector.as_mut().expect("an acknowledgment of a phase").acknowledge()
    }

    /// Number of outstanding acknowledgements.
    pub(super) fn missing(&self) -> u8 {
        self.collector.map_or(0, |collector| collector.missing())
    }
}

/// Collector for the plan at `index` in `steps`, before its first phase.
fn collector(steps: Steps, index: u8, protocol: &impl Protocol) -> Option<Collector> {
    steps.plan(protocol, index).map(|plan| Collector::new(plan, ModuleId(0)))
}
