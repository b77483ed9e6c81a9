//! The explored machine: all data that stays constant while a program runs, and the initial state.

use super::MAX_MODULES;
use super::boundaries::{BoundaryPlanner, BoundarySteps};
use super::config::{Config, Start, UnrequestedChanges};
use super::edges::MessageEdges;
use super::layout::ProgramLayout;
use super::pages::{self, PageState};
use super::probe::ProbedAssumptions;
use super::reduce::{RemainingActions, remaining, syncs};
use super::scene::Scene;
use super::sm::SmHost;
use super::state::{L2Slot, MachineState, PostedRequest, RequestSource, SlotSet};
use super::values::{Values, WHOLE_LINE};
use crate::litmus::{FinalState, Instruction, Location, Program, Thread, Value};
use tombolo_protocol::coherence::Channels;
use tombolo_protocol::effects::Delivery;
use tombolo_protocol::paging::{Holder, Paging};
use tombolo_protocol::{BrokenRule, Class, Coherence, Homes, ModuleSet, Request, Topology};
use tombolo_types::{ModuleId, Scope};

/// A program laid out on a machine that runs a protocol.
pub(super) struct Machine<'a, P> {
    pub(super) protocol: P,
    pub(super) scene: Scene<'a>,
    pub(super) config: &'a Config,
    /// Rules for pages, if pages move or are published.
    pub(super) paging: Option<Paging>,
    pub(super) regions: usize,
    /// Set if some thread has a loop.
    pub(super) loops: bool,
    /// Remaining effects of each thread, per instruction.
    pub(super) remaining: Vec<Vec<RemainingActions>>,
    /// Set if no step happens at a slot while its miss is in flight.
    pub(super) plain_misses: bool,
    /// Set if an L1 discards the data for a miss that a later access has passed.
    pub(super) plain_fills: bool,
    /// Homes, indexed by module × lines + line.
    homes: Vec<Homes>,
    /// Class of each line in each L2, indexed by module × lines + line.
    classes: Vec<Class>,
    /// Message edges between modules.
    pub(super) edges: MessageEdges,
    /// Region of each line.
    region_of: Vec<u8>,
    /// Lines of each region: a bit per line.
    pub(super) region_lines: Vec<SlotSet>,
    /// Directory entries of each region in all modules: a bit for each [`Machine::entry_index`].
    pub(super) region_entries: Vec<SlotSet>,
    /// Actions at each kernel boundary.
    pub(super) boundaries: Vec<BoundarySteps>,
}

impl<'a, P: Coherence> Machine<'a, P> {
    pub(super) fn new(
        protocol: P,
        program: &'a Program,
        layout: &'a ProgramLayout,
        config: &'a Config,
        assumptions: ProbedAssumptions,
    ) -> Machine<'a, P> {
        let scene = Scene::new(&protocol, program, layout);
        let lines = scene.lines;
        let regions = layout.regions.len();
        assert!(layout.modules() <= MAX_MODULES, "{} modules; at most {MAX_MODULES}", layout.modules());
        let Channels { down, control, .. } = protocol.channels();
        assert_eq!((down, control), (Delivery::FifoPerRegion, Delivery::Unordered), "what the explorer delivers");
        let line_of = |instruction: &Instruction| instruction.location().map(|location| layout.cell(location).line);
        let syncs = |instruction: &Instruction| syncs(&protocol, instruction, 0);
        let of_thread = |thread: &Thread| remaining(&thread.code, line_of, syncs);
        let remaining = program.threads.iter().map(of_thread).collect();
        let loops = program.has_loop();
        let slots = (0..layout.modules()).flat_map(|module| (0..lines).map(move |line| (ModuleId(module), line)));
        let homes: Vec<Homes> = slots.map(|(module, line)| layout.homes_of(module, line)).collect();
        // On machines with moving pages, an L2 holds only lines from its own memory.
        let paging = config.rules_of_pages();
        let class = |(index, homes): (usize, &Homes)| match paging {
            None => Class::of(layout, ModuleId((index / lines) as u8), *homes),
            Some(_) => Class::Own,
        };
        let classes = homes.iter().enumerate().map(class).collect();
        let edges = MessageEdges::new(&protocol, layout, lines, paging.is_some());
        let Config { boundary_policy, broken_elision: broken, ref options, start, .. } = *config;
        assert!(
            start == Start::Cold || !boundary_policy.elides(),
            "a table takes the L2s to hold nothing at the start"
        );
        let boundaries =
            BoundaryPlanner { policy: boundary_policy, broken, facts: &P::FACTS, options }.boundaries(program, layout);
        let in_region = |region| (0..lines).filter(move |line| layout.region(*line) == region);
        let modules = usize::from(layout.modules());
        // A request left in the channel blocks all later requests there, exactly as a parked request does.
        let park_in_order = !protocol.broken(BrokenRule::RequestPassesParked);
        Machine {
            protocol,
            scene,
            config,
            paging,
            regions,
            loops,
            remaining,
            plain_misses: park_in_order && assumptions.plain_misses,
            plain_fills: assumptions.plain_fills,
            homes,
            classes,
            edges,
            region_of: (0..lines).map(|line| layout.region(line) as u8).collect(),
            region_lines: (0..regions).map(|region| in_region(region).fold(0, |set, line| set | 1 << line)).collect(),
            region_entries: (0..regions)
                .map(|region| (0..modules).fold(0, |set, module| set | 1 << (module * regions + region)))
                .collect(),
            boundaries,
        }
    }

    /// The state before the first instruction.
    pub(super) fn start(&self) -> MachineState {
        let modules = self.scene.layout.modules() as usize;
        let pages = pages::pages(self.scene.layout, self.config);
        let mut state = MachineState {
            fronts: self.scene.initial(),
            l2: vec![L2Slot::default(); modules * self.scene.lines],
            entries: vec![None; modules * self.regions],
            memory: self.initial_memory(&pages),
            pages,
            unrequested: if self.config.paging.is_some() {
                self.config.unrequested
            } else {
                UnrequestedChanges::default()
            },
            queues: Vec::new(),
            copying: self.nothing_stored(),
            held: Vec::new(),
            messages: Vec::new(),
            broken: None,
        };
        self.map_latest(&mut state, 0);
        if self.config.start == Start::Warm {
            self.warm(&mut state);
        }
        self.settle(&mut state);
        if self.config.reductions.forget {
            self.forget(&mut state);
        }
        state.canonicalise();
        state
    }

    fn initial_memory(&self, pages: &[PageState]) -> Vec<Values> {
        let memories = if self.paging.is_some() { self.scene.layout.modules() as usize + 1 } else { 1 };
        let mut memory =
            vec![if memories == 1 { Values::default() } else { pages::NOTHING }; memories * self.scene.lines];
        for (index, location) in self.scene.program.locations.iter().enumerate() {
            let cell = self.scene.layout.cell(Location(index as u16));
            // Every replica starts with the initial contents: host copies have placed them there.
            let first = |module| self.homes_of(module, cell.line).system;
            let holders: ModuleSet = match pages.get(self.region(cell.line) as usize) {
                Some(page) => page.now.holders(),
                None => self.modules().map(first).collect(),
            };
            for module in self.modules().filter(|module| holders.contains(*module)) {
                memory[self.memory_index(Holder::Module(module), cell.line)].0[cell.cell as usize] = location.initial;
            }
        }
        memory
    }

    /// Fills every cache with every line through the protocol itself: prefetches run to completion in sequence.
    fn warm(&self, state: &mut MachineState) {
        let request = Request::Read { mask: WHOLE_LINE, scope: Scope::Cta };
        let read = PostedRequest { request, result: None, passed: None, watched: 0, published: false };
        for line in 0..self.scene.lines {
            for module in self.modules() {
                self.take_posted(state, module, line as u8, RequestSource::Prefetch, read);
                self.run_down(state);
            }
            for sm in 0..self.scene.sms.len() {
                self.prefetch_l1(state, sm as u8, line as u8);
            }
        }
    }

    /// Delivers every in-flight message, in some order.
    pub(super) fn run_down(&self, state: &mut MachineState) {
        while let Some(message) = state.messages.first().copied() {
            self.deliver(state, message.channel);
        }
    }

    /// Cells of a line at the home or in memory. At the end of a run, if memory is the ordering point, memory holds
    /// every cell.
    pub(super) fn home_contents(&self, state: &MachineState, line: u8) -> Values {
        let holder = self.holder(state, line);
        if self.protocol.ordering_point().is_memory() {
            return state.memory[self.memory_index(holder, line)];
        }
        self.contents_at(state, holder, line)
    }

    /// Final state shown by a state without successors, as read from memory by `observer`.
    pub(super) fn final_state(&self, state: &MachineState, observer: ModuleId) -> FinalState {
        let memory: Vec<Value> = (0..self.scene.program.locations.len())
            .map(|location| {
                let cell = self.scene.layout.cell(Location(location as u16));
                let contents = match self.config.copies {
                    Some(_) => self.copied_contents(state, cell.line, cell.cell),
                    None => self.seen_by(state, observer, cell.line),
                };
                contents.0[cell.cell as usize]
            })
            .collect();
        self.scene.final_state(&state.fronts, &memory)
    }

    /// The homes of `line` in module `at`'s view.
    pub(super) fn homes_of(&self, at: ModuleId, line: u8) -> Homes {
        self.homes[at.0 as usize * self.scene.lines + line as usize]
    }

    /// The L2 that serves reads from an SM in `module`.
    pub(super) fn answering_module(&self, state: &MachineState, module: ModuleId, line: u8) -> ModuleId {
        let homes = self.homes_now(state, module, line);
        if self.protocol.forwards_reads(Class::of(self.scene.layout, module, homes)) { homes.system } else { module }
    }

    /// Class of a line in the L2 in `at`.
    pub(super) fn class(&self, at: ModuleId, line: u8) -> Class {
        self.classes[self.l2_index(at, line)]
    }

    /// Region of a line.
    pub(super) fn region(&self, line: u8) -> u8 {
        self.region_of[line as usize]
    }
}
