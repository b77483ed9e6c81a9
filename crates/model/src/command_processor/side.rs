//! One side of a boundary being run: its steps, plan by plan and phase by phase.

use crate::boundaries::Decision;
use tombolo_protocol::boundary::Steps;
use tombolo_protocol::{Action, Collector, Protocol, Topology};
use tombolo_types::ModuleId;

/// One side of a boundary being run: what was decided, the plan at hand and its place among them.
#[derive(Clone, Debug)]
pub(super) struct Side {
    pub(super) decision: Decision,
    index: u8,
    collector: Option<Collector>,
}

impl Side {
    pub(super) fn new(decision: Decision, protocol: &impl Protocol) -> Side {
        let collector = collector(decision.steps, 0, protocol);
        Side { decision, index: 0, collector }
    }

    /// Starts the next phase, of the plan at hand or of one after it: calls `send` for each member and returns true; false
    /// when all have run.
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

    /// Takes one acknowledgment; true when the phase is complete.
    pub(super) fn acknowledge(&mut self) -> bool {
        self.collector.as_mut().expect("an acknowledgment of a phase").acknowledge()
    }

    /// Acknowledgments that it lacks.
    pub(super) fn missing(&self) -> u8 {
        self.collector.map_or(0, |collector| collector.missing())
    }
}

/// The plan at `index` of `steps`, about to run.
fn collector(steps: Steps, index: u8, protocol: &impl Protocol) -> Option<Collector> {
    steps.plan(protocol, index).map(|plan| Collector::new(plan, ModuleId(0)))
}
