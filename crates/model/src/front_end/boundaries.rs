//! Decisions of the command processor at kernel boundaries, and their effects.
//!
//! [`tombolo_protocol::elision`] makes the decision at each command, at each kernel's end and at the end of the
//! program. This file holds the source of the commands' labels ([`LabelSource`]), the resulting steps ([`Steps`]), the
//! lines that an operation reaches ([`Extents`]), and a log of all decisions ([`BoundaryLogEntry`]).

use std::sync::{Arc, PoisonError, RwLock};
use tombolo_design::scheduling::MachineShape;
use tombolo_protocol::Action;
use tombolo_protocol::boundary::{Reach, Steps};
use tombolo_protocol::elision::{Account, BoundaryOperations, Elision, Extent, KernelId, LineSet, ModuleSet, Packet};
use tombolo_protocol::topology::Topology;
use tombolo_types::stream::{Command, Program};
use tombolo_types::{LaunchDevices, Line, ModuleId, Ps};

/// Source for the data use by each command in a program.
pub trait LabelSource: Send + Sync {
    /// Calls `then` with command number `index` in the form that the command processor reads, under the name `kernel`.
    fn show(&self, index: usize, kernel: KernelId, then: &mut dyn FnMut(&Packet<'_>));
}

/// A program without labels: for each kernel, only the participating modules are known.
pub struct UnlabelledProgram {
    program: Arc<dyn Program>,
    shape: MachineShape,
}

impl UnlabelledProgram {
    /// Wraps `program` for a machine of shape `shape`.
    pub fn new(program: Arc<dyn Program>, shape: MachineShape) -> UnlabelledProgram {
        UnlabelledProgram { program, shape }
    }
}

/// Modules that run a launch on a machine with shape `shape`.
pub(crate) fn modules_of(on: LaunchDevices, shape: MachineShape) -> ModuleSet {
    (0..shape.modules()).map(ModuleId).filter(|&module| on.contains(module, shape.modules_per_gpu)).collect()
}

impl LabelSource for UnlabelledProgram {
    fn show(&self, index: usize, kernel: KernelId, then: &mut dyn FnMut(&Packet<'_>)) {
        let on = match self.program.commands()[index] {
            Command::Launch { on, .. } => modules_of(on, self.shape),
            Command::Copy { .. } | Command::Host { .. } | Command::Barrier => ModuleSet::NONE,
        };
        then(&Packet { kernel, modules: on, labels: None });
    }
}

/// Number for the set of lines reached by an operation. Messages carry the number instead of the set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExtentId(u32);

impl ExtentId {
    /// The whole cache: every line.
    pub(crate) const CACHE: ExtentId = ExtentId(0);
}

/// Line sets for the ranged operations in a run, shared by all partitions. The command processor adds a set before the
/// number is sent, so every partition reads the same set.
#[derive(Clone, Debug, Default)]
pub struct Extents(Arc<RwLock<Vec<Arc<LineSet>>>>);

impl Extents {
    fn add(&self, lines: &LineSet) -> ExtentId {
        let mut sets = self.0.write().unwrap_or_else(PoisonError::into_inner);
        sets.push(Arc::new(lines.clone()));
        ExtentId(u32::try_from(sets.len()).expect("a run has fewer operations than that"))
    }

    /// Lines of the set; `None` if the operation reaches every line.
    pub(crate) fn lines(&self, id: ExtentId) -> Option<Arc<LineSet>> {
        let sets = self.0.read().unwrap_or_else(PoisonError::into_inner);
        (id != ExtentId::CACHE).then(|| Arc::clone(&sets[id.0 as usize - 1]))
    }
}

/// True if `extent` contains `line`; `None` contains every line.
pub fn reaches(extent: Option<&LineSet>, line: Line) -> bool {
    extent.is_none_or(|lines| {
        let ranges = lines.ranges();
        let at = ranges.partition_point(|range| range.end <= line);
        ranges.get(at).is_some_and(|range| range.first <= line)
    })
}

/// Lines lost from a module's L2 by boundary operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LostLines {
    /// Dirty lines written to memory and kept.
    pub flushed: u32,
    /// Lines dropped.
    pub dropped: u32,
}

impl LostLines {
    /// Sum of both counts.
    #[must_use]
    pub(crate) fn and(self, other: LostLines) -> LostLines {
        LostLines { flushed: self.flushed + other.flushed, dropped: self.dropped + other.dropped }
    }
}

/// Position of a boundary relative to the program's commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoundaryPosition {
    /// Before the program's command with this index.
    Before(usize),
    /// After the kernel launched by the command with this index.
    After(usize),
    /// After the last command, when the program ends.
    ProgramEnds,
}

/// A boundary in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoundaryLogEntry {
    /// Position in the program.
    pub moment: BoundaryPosition,
    /// The decision.
    pub boundary: BoundaryOperations,
    /// Reasons for the decision, by table row and module.
    pub accounts: Vec<Account>,
    /// Table rows in use after the boundary.
    pub rows: usize,
    /// Start and end times of the boundary's operations; both are equal if no operation was necessary.
    pub start: Ps,
    /// See `start`.
    pub end: Ps,
    /// Lost lines, indexed by module.
    pub lost: Vec<LostLines>,
}

/// Makes the decisions at kernel boundaries and keeps the log.
pub struct Boundaries {
    elision: Box<dyn Elision + Send>,
    packet_source: Arc<dyn LabelSource>,
    reach: Reach,
    modules: u8,
    /// Set when a table makes the decisions.
    elides: bool,
    /// Set when L2s may hold lines that an invalidation is meant for. If a directory keeps them current, no
    /// invalidation is sent.
    invalidates: bool,
    /// Set when a kernel's end may release nothing. The boundary then waits for stores that were written through.
    defers: bool,
    extents: Extents,
    /// The log; `None` in runs without a log.
    log: Option<Vec<BoundaryLogEntry>>,
    /// Packets numbered so far.
    packets: u32,
}

/// A decision at a boundary, while the steps run.
#[derive(Clone, Debug)]
pub(crate) struct Decision {
    /// Steps to run.
    pub(crate) steps: Steps,
    boundary: BoundaryOperations,
    /// Index of the boundary in the log, if a log is kept.
    logged: usize,
}

/// Components and options of [`Boundaries`].
pub struct BoundariesConfig {
    /// The elision algorithm, which makes the decisions.
    pub elision: Box<dyn Elision + Send>,
    /// Source for the labels of commands.
    pub packets: Arc<dyn LabelSource>,
    /// Caches to reach by an operation on one module.
    pub reach: Reach,
    /// Number of modules in the whole machine.
    pub modules: u8,
    /// Set when a table makes the decisions, which costs the command processor time.
    pub elides: bool,
    /// Set when L2s may hold lines that an invalidation is meant for.
    pub invalidates: bool,
    /// Set when a kernel's end may release nothing.
    pub defers: bool,
    /// Set to keep a log.
    pub logs: bool,
}

impl Boundaries {
    /// State before a program starts.
    pub fn new(config: BoundariesConfig) -> Boundaries {
        let BoundariesConfig { elision, packets, reach, modules, elides, invalidates, defers, logs } = config;
        Boundaries {
            elision,
            packet_source: packets,
            reach,
            modules,
            elides,
            invalidates,
            defers,
            extents: Extents::default(),
            log: logs.then(Vec::new),
            packets: 0,
        }
    }

    /// Line sets for the ranged operations.
    pub fn extents(&self) -> &Extents {
        &self.extents
    }

    /// True if a table makes the decisions.
    pub(crate) fn elides(&self) -> bool {
        self.elides
    }

    /// True if the effects of operations are logged.
    pub(crate) fn logs(&self) -> bool {
        self.log.is_some()
    }

    /// The log; empty if none is kept.
    pub fn log(&self) -> &[BoundaryLogEntry] {
        self.log.as_deref().unwrap_or_default()
    }

    /// True if a decision relies on completed operations from earlier decisions, so only a single boundary runs at a
    /// time. If every launch invalidates and every end flushes, each boundary does all work for its own kernel.
    pub(crate) fn one_at_a_time(&self) -> bool {
        self.defers
    }

    /// Decides on the operations before command number `index`. Returns the kernel number for the command's packet, and
    /// the decision.
    pub(crate) fn before(&mut self, index: usize, topology: &impl Topology, now: Ps) -> (KernelId, Decision) {
        let kernel = KernelId(self.packets);
        self.packets += 1;
        let mut accounts = Vec::new();
        let mut boundary = BoundaryOperations::nothing(self.modules);
        let packet_source = Arc::clone(&self.packet_source);
        packet_source.show(index, kernel, &mut |packet| {
            boundary = self.elision.launch(packet, &mut |account| accounts.push(*account));
        });
        (kernel, self.make_decision(boundary, BoundaryPosition::Before(index), accounts, topology, now))
    }

    /// Decides on the operations after a command, once the L2s have accepted its kernel's stores.
    pub(crate) fn after(&mut self, index: usize, kernel: KernelId, topology: &impl Topology, now: Ps) -> Decision {
        let mut accounts = Vec::new();
        let boundary = self.elision.finish(kernel, &mut |account| accounts.push(*account));
        let decision = self.make_decision(boundary, BoundaryPosition::After(index), accounts, topology, now);
        if self.defers { Decision { steps: decision.steps.awaiting(None), ..decision } } else { decision }
    }

    /// Ends a host command. The host holds no copies, so the end must not require any operation.
    pub(crate) fn host_is_done(&mut self, index: usize, kernel: KernelId) {
        let owed = self.elision.finish(kernel, &mut |_| ());
        assert!(owed.flushes() + owed.invalidations() == 0, "command {index}, of the host, leaves something to do");
    }

    /// Decides on the operations at the end of the program.
    pub(crate) fn end(&mut self, topology: &impl Topology, now: Ps) -> Decision {
        let mut accounts = Vec::new();
        let boundary = self.elision.end(&mut |account| accounts.push(*account));
        self.make_decision(boundary, BoundaryPosition::ProgramEnds, accounts, topology, now)
    }

    fn make_decision(
        &mut self,
        mut boundary: BoundaryOperations,
        moment: BoundaryPosition,
        accounts: Vec<Account>,
        topology: &impl Topology,
        now: Ps,
    ) -> Decision {
        if !self.invalidates {
            boundary.modules.iter_mut().for_each(|operation| operation.invalidate = None);
        }
        let logged = self.log().len();
        let rows = self.elision.rows();
        if let Some(log) = &mut self.log {
            let lost = vec![LostLines::default(); usize::from(self.modules)];
            log.push(BoundaryLogEntry {
                moment,
                boundary: boundary.clone(),
                accounts,
                rows,
                start: now,
                end: now,
                lost,
            });
        }
        Decision { steps: Steps::of(&boundary, topology, self.reach), boundary, logged }
    }

    /// Lines reached by the action of module `member` in a decision.
    pub(crate) fn extent(&self, decision: &Decision, member: ModuleId, action: Action) -> ExtentId {
        let operation = &decision.boundary.modules[usize::from(member.0)];
        let extent = match action {
            Action::Invalidate(_) => operation.invalidate.as_ref(),
            Action::DrainStores(_) | Action::ForwardStores | Action::Flush => operation.flush.as_ref(),
            Action::DrainInvalidations(_) | Action::AwaitStores | Action::Merge { .. } => None,
        };
        match (extent, self.reach) {
            (Some(Extent::Lines(lines)), Reach::Module) => self.extents.add(lines),
            // Operations on behalf of other modules in the GPU have no ranges here.
            (Some(Extent::Lines(_)), Reach::Gpu | Reach::GpuShares) | (Some(Extent::Cache) | None, _) => {
                ExtentId::CACHE
            }
        }
    }

    /// Adds the lines lost in a module, after its part in a phase.
    pub(crate) fn acted(&mut self, decision: &Decision, member: ModuleId, lost: LostLines) {
        if let Some(log) = &mut self.log {
            let logged = &mut log[decision.logged];
            let of_module = &mut logged.lost[usize::from(member.0)];
            of_module.flushed += lost.flushed;
            of_module.dropped += lost.dropped;
        }
    }

    /// Notes that all steps for a decision have run.
    pub(crate) fn ran(&mut self, decision: &Decision, now: Ps) {
        if let Some(log) = &mut self.log {
            log[decision.logged].end = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tombolo_protocol::elision::LineRange;

    #[test]
    fn an_extent_has_the_lines_of_its_ranges() {
        let set: LineSet =
            [(3, 5), (8, 9)].map(|(first, end)| LineRange::new(Line(first), Line(end))).into_iter().collect();
        let within = |line| reaches(Some(&set), Line(line));
        assert_eq!([2, 3, 4, 5, 7, 8, 9].map(within), [false, true, true, false, false, true, false]);
        assert!(reaches(None, Line(7)));
    }

    #[test]
    fn extents_are_read_by_the_number_that_they_were_given() {
        let extents = Extents::default();
        let sets: [LineSet; 2] = [LineRange::new(Line(0), Line(4)).into(), LineRange::new(Line(9), Line(10)).into()];
        let ids = sets.each_ref().map(|set| extents.add(set));
        assert_eq!(ids.map(|id| extents.lines(id).expect("a set")), sets.map(Arc::new));
        assert_eq!(extents.lines(ExtentId::CACHE), None);
    }
}
