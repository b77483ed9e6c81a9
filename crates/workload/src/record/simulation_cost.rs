//! Simulation cost of a CTA, used to size samples.

use tombolo_types::stream::CtaStream;

/// Simulation cost for a CTA, or for several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SimulationCost {
    /// Instructions plus line transactions.
    pub(crate) all: u64,
    /// Line transactions only.
    pub(crate) lines: u64,
}

impl SimulationCost {
    pub(crate) fn of(stream: &CtaStream) -> SimulationCost {
        let lines = stream.accesses.len() as u64;
        SimulationCost { all: stream.ops.len() as u64 + lines, lines }
    }

    /// Scales the work by `count / of`.
    pub(crate) fn share(self, count: u64, of: u64) -> SimulationCost {
        SimulationCost { all: self.all * count / of, lines: self.lines * count / of }
    }
}
