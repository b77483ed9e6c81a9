//! Latencies from the command processor to the modules.

use tombolo_machine::MachineConfig;
use tombolo_types::Ps;

/// Command latencies from the command processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CommandLatency {
    /// Number of modules reachable by commands.
    modules: u8,
    /// Latency to a single module.
    pub(super) one: Ps,
    /// Latency for a broadcast to all modules.
    all: Ps,
    /// Crossbar share of these latencies: from a module's controller to its SMs and slices.
    crossbar: Ps,
}

impl CommandLatency {
    /// Creates the latencies for a machine that runs kernels on `modules` modules.
    pub(super) fn new(machine: &MachineConfig, modules: u8) -> CommandLatency {
        CommandLatency {
            modules,
            one: crate::convert::host_latency(machine),
            all: crate::convert::broadcast_latency(machine),
            crossbar: crate::convert::to_controller(machine),
        }
    }

    /// Latency to `members` modules.
    pub(super) fn to(&self, members: usize) -> Ps {
        if members == usize::from(self.modules) { self.all } else { self.one }
    }

    /// Arrival time at a controller, later than `now`, for a message due at the controller's SMs or slices at `at`.
    pub(super) fn at_controller(&self, at: Ps, now: Ps) -> Ps {
        at.saturating_sub(self.crossbar).max(now + Ps(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_controller_has_what_it_passes_on_a_crossbar_ahead() {
        let latency = CommandLatency { modules: 4, one: Ps(100), all: Ps(150), crossbar: Ps(30) };
        assert_eq!((latency.to(1), latency.to(4)), (Ps(100), Ps(150)));
        assert_eq!(latency.at_controller(Ps(1000), Ps(900)), Ps(970));
        assert_eq!(latency.at_controller(Ps(910), Ps(900)), Ps(901), "a crossbar longer than the way");
    }
}
