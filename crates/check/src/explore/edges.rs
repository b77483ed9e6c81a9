//! Message edges between modules in the protocol's declaration, the basis for the reductions. Each L2 step is checked
//! against the declaration.

use super::layout::ProgramLayout;
use super::machine::Machine;
use super::state::{MachineState, SlotSet};
use tombolo_protocol::{Coherence, ModuleSet, Topology};
use tombolo_types::{Line, ModuleId};

/// Edges for each line, indexed by module × lines + line.
pub(super) struct MessageEdges {
    /// L2 slots on the path for a request from an SM in the module: a bit for each [`Machine::l2_index`].
    lines: Vec<SlotSet>,
    /// Directory entries on this path: a bit for each [`Machine::entry_index`].
    regions: Vec<SlotSet>,
}

impl MessageEdges {
    /// Builds the edges for `lines` lines. `anywhere`: line homes may change, to any module.
    pub(super) fn new(protocol: &impl Coherence, layout: &ProgramLayout, lines: usize, anywhere: bool) -> MessageEdges {
        let all = ModuleSet::first(layout.modules());
        let above = |module, line| {
            if anywhere {
                return all;
            }
            let homes = layout.homes_of(module, line);
            let (above, both) = (protocol.next_level(module, homes), [homes.gpu, homes.system].into_iter().collect());
            assert!(above.difference(both).is_empty(), "requests of line {line} go from {module} to no home of it");
            above
        };
        let slots = |passed: ModuleSet, per_module: usize, index: usize| {
            passed.iter().fold(0, |slots, module| slots | 1 << (usize::from(module.0) * per_module + index))
        };
        let mut edges = MessageEdges { lines: Vec::new(), regions: Vec::new() };
        for module in (0..layout.modules()).map(ModuleId) {
            for line in 0..lines {
                let passed = closed(ModuleSet::only(module), |module| above(module, line));
                edges.lines.push(slots(passed, lines, line));
                edges.regions.push(slots(passed, layout.regions.len(), layout.region(line)));
            }
        }
        edges
    }
}

/// All modules reachable from the modules in `set`, including `set` itself.
fn closed(mut set: ModuleSet, above: impl Fn(ModuleId) -> ModuleSet) -> ModuleSet {
    loop {
        let further = set.iter().fold(set, |all, module| all.union(above(module)));
        if further == set {
            return set;
        }
        set = further;
    }
}

impl<P: Coherence> Machine<'_, P> {
    /// Line slots on the path for a request for `line` from `module`: a bit for each [`Machine::l2_index`].
    pub(super) fn path_of(&self, module: ModuleId, line: u8) -> SlotSet {
        self.edges.lines[self.l2_index(module, line)]
    }

    /// Region slots on this path: a bit for each [`Machine::entry_index`].
    pub(super) fn region_path_of(&self, module: ModuleId, line: u8) -> SlotSet {
        self.edges.regions[self.l2_index(module, line)]
    }

    /// True if a request for `line` located at `from` eventually reaches `module`.
    pub(super) fn passes(&self, from: ModuleId, module: ModuleId, line: u8) -> bool {
        self.path_of(from, line) >> self.l2_index(module, line) & 1 != 0
    }

    /// Modules that the L2 in `home` may invalidate for `line` in the current state.
    pub(super) fn named(&self, state: &MachineState, home: ModuleId, line: u8) -> ModuleSet {
        let Some(entry) = state.entries[self.entry_index(home, line)] else { return ModuleSet::NONE };
        self.protocol.invalidation_targets(self.scene.layout, home, Line(u64::from(line)), entry)
    }
}

#[cfg(test)]
mod tests {
    use super::super::altered_hmg::{AlteredHmg, machine};
    use super::super::probe::ProbedAssumptions;
    use super::super::{
        Config, ExplorationVerdict, PROTOCOLS, PlacementParameters, Sharing, Violation, explore, layouts,
    };
    use super::*;
    use crate::verify::shapes;
    use tombolo_protocol::catalogue::{Visitor, choose};
    use tombolo_protocol::client_home::Nodes;
    use tombolo_protocol::vi::ProtocolOptions;

    /// Computes the modules on the path for a request for line 0, per module of the requesting SM.
    struct Paths;

    impl Visitor for Paths {
        type Output = Option<(bool, Vec<SlotSet>)>;

        fn visit<P: Coherence>(self, protocol: P) -> Self::Output {
            Some((protocol.is_hierarchical(), MessageEdges::new(&protocol, &machine(), 1, false).lines))
        }

        fn visit_nodes<P: Nodes>(self, _: P) -> Self::Output {
            None
        }
    }

    #[test]
    fn requests_climb_to_their_system_home_by_the_gpu_home_where_there_is_one() {
        for protocol in PROTOCOLS {
            let paths = choose(protocol, ProtocolOptions::default(), Paths).expect("it is listed");
            // Machines with clients and homes have no intermediate L2s.
            let Some((hierarchical, paths)) = paths else { continue };
            let by_gpu_home = if hierarchical { 0b010000 } else { 0 };
            let homes = [0b000001, 0b000001, 0b000001, 1 | by_gpu_home, 0b010001, 1 | by_gpu_home];
            let expected: Vec<SlotSet> = (0..6).map(|module| homes[module] | 1 << module).collect();
            assert_eq!(paths, expected, "{protocol}");
        }
    }

    /// The first violation of message passing on some layout with two GPUs and two modules each.
    fn violation(protocol: AlteredHmg) -> Option<Violation> {
        let program = shapes::mp("sys").program;
        let shape = PlacementParameters {
            gpus: 2,
            modules_per_gpu: 2,
            sharing: Sharing::Apart,
            gpu_homes: true,
            shared_sms: false,
            host_memory: false,
        };
        layouts(&program, shape).iter().find_map(|layout| {
            let assumptions = ProbedAssumptions::of(&protocol, layout, layout.lines(program.locations.len()));
            match explore(protocol, &program, layout, &Config::new("hmg"), assumptions, &|_| false).verdict {
                ExplorationVerdict::Violated(violation) => Some(violation),
                ExplorationVerdict::Clean | ExplorationVerdict::Bounded => None,
            }
        })
    }

    #[test]
    fn a_protocol_that_sends_to_whom_it_does_not_declare_is_found() {
        let declares = AlteredHmg::at(|_| false);
        assert_eq!(violation(declares), None);
        let request = violation(AlteredHmg { above: |_| ModuleSet::NONE, ..declares });
        assert_eq!(request, Some(Violation::Unexpected("a request to a module that is not the next level up")));
        let invalidation = violation(AlteredHmg { named: |_| ModuleSet::NONE, ..declares });
        let what = "an invalidation to a module that the directory does not name";
        assert_eq!(invalidation, Some(Violation::Unexpected(what)));
    }
}
