//! Who sends to whom, as the protocol declares it: the edges that reductions rest on. Each step of an L2 is held to them.

use super::layout::Layout;
use super::machine::Machine;
use super::state::{SlotSet, State};
use tombolo_protocol::{Coherence, ModuleSet, Topology};
use tombolo_types::{Line, ModuleId};

/// The edges of each line, by module × lines + line.
pub(super) struct Edges {
    /// What a request of an SM of the module may pass: a bit for each [`Machine::l2_index`].
    lines: Vec<SlotSet>,
    /// The same: a bit for each [`Machine::entry_index`].
    regions: Vec<SlotSet>,
}

impl Edges {
    /// Of `lines` lines. `anywhere`: their homes may change, to any module.
    pub(super) fn new(protocol: &impl Coherence, layout: &Layout, lines: usize, anywhere: bool) -> Edges {
        let all = ModuleSet::first(layout.modules());
        let above = |module, line| {
            if anywhere {
                return all;
            }
            let homes = layout.homes_of(module, line);
            let (above, both) = (protocol.above(module, homes), [homes.gpu, homes.system].into_iter().collect());
            assert!(above.without(both).is_empty(), "requests of line {line} go from {module} to no home of it");
            above
        };
        let slots = |passed: ModuleSet, per_module: usize, index: usize| {
            passed.iter().fold(0, |slots, module| slots | 1 << (usize::from(module.0) * per_module + index))
        };
        let mut edges = Edges { lines: Vec::new(), regions: Vec::new() };
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

/// All modules that those of `set` lead to, and these themselves.
fn closed(mut set: ModuleSet, above: impl Fn(ModuleId) -> ModuleSet) -> ModuleSet {
    loop {
        let further = set.iter().fold(set, |all, module| all.and(above(module)));
        if further == set {
            return set;
        }
        set = further;
    }
}

impl<P: Coherence> Machine<'_, P> {
    /// The slots of lines that a request of `line` from `module` may pass: a bit for each [`Machine::l2_index`].
    pub(super) fn path_of(&self, module: ModuleId, line: u8) -> SlotSet {
        self.edges.lines[self.l2_index(module, line)]
    }

    /// The slots of regions that it may pass: a bit for each [`Machine::entry_index`].
    pub(super) fn region_path_of(&self, module: ModuleId, line: u8) -> SlotSet {
        self.edges.regions[self.l2_index(module, line)]
    }

    /// Whether a request of `line` that is at `from` reaches `module`, sooner or later.
    pub(super) fn passes(&self, from: ModuleId, module: ModuleId, line: u8) -> bool {
        self.path_of(from, line) >> self.l2_index(module, line) & 1 != 0
    }

    /// Whom the L2 of `home` may invalidate for `line` now.
    pub(super) fn named(&self, state: &State, home: ModuleId, line: u8) -> ModuleSet {
        let Some(entry) = state.entries[self.entry_index(home, line)] else { return ModuleSet::NONE };
        self.protocol.named(self.scene.layout, home, Line(u64::from(line)), entry)
    }
}

#[cfg(test)]
mod tests {
    use super::super::crooked::{Crooked, machine};
    use super::super::{Config, PROTOCOLS, Shape, Sharing, Verdict, Violation, explore, layouts};
    use super::*;
    use crate::verify::shapes;
    use tombolo_protocol::catalogue::{Visitor, choose};
    use tombolo_protocol::nodes::Nodes;
    use tombolo_protocol::vi::Options;

    /// The modules that a request of line 0 passes, by the module of its SM.
    struct Paths;

    impl Visitor for Paths {
        type Output = Option<(bool, Vec<SlotSet>)>;

        fn visit<P: Coherence>(self, protocol: P) -> Self::Output {
            Some((protocol.is_hierarchical(), Edges::new(&protocol, &machine(), 1, false).lines))
        }

        fn visit_nodes<P: Nodes>(self, _: P) -> Self::Output {
            None
        }
    }

    #[test]
    fn requests_climb_to_their_system_home_by_the_gpu_home_where_there_is_one() {
        for protocol in PROTOCOLS {
            let paths = choose(protocol, Options::default(), Paths).expect("it is listed");
            // Clients and homes have no L2s on the way.
            let Some((hierarchical, paths)) = paths else { continue };
            let by_gpu_home = if hierarchical { 0b010000 } else { 0 };
            let homes = [0b000001, 0b000001, 0b000001, 1 | by_gpu_home, 0b010001, 1 | by_gpu_home];
            let expected: Vec<SlotSet> = (0..6).map(|module| homes[module] | 1 << module).collect();
            assert_eq!(paths, expected, "{protocol}");
        }
    }

    /// The first violation of message passing on some layout of two GPUs of two modules.
    fn violation(protocol: Crooked) -> Option<Violation> {
        let program = shapes::mp("sys").program;
        let shape = Shape {
            gpus: 2,
            modules_per_gpu: 2,
            sharing: Sharing::Apart,
            gpu_homes: true,
            shared_sms: false,
            host_memory: false,
        };
        layouts(&program, shape).iter().find_map(|layout| {
            match explore(protocol, &program, layout, &Config::new("hmg"), &|_| false).verdict {
                Verdict::Violated(violation) => Some(violation),
                Verdict::Clean | Verdict::Bounded => None,
            }
        })
    }

    #[test]
    fn a_protocol_that_sends_to_whom_it_does_not_declare_is_found() {
        let declares = Crooked::at(|_| false);
        assert_eq!(violation(declares), None);
        let request = violation(Crooked { above: |_| ModuleSet::NONE, ..declares });
        assert_eq!(request, Some(Violation::Unexpected("a request to a module that is not the next level up")));
        let invalidation = violation(Crooked { named: |_| ModuleSet::NONE, ..declares });
        let what = "an invalidation to a module that the directory does not name";
        assert_eq!(invalidation, Some(Violation::Unexpected(what)));
    }
}
