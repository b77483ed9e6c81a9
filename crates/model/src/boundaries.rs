//! What the command processor decides at the boundaries of kernels, and what came of it.
//!
//! The decision is [`tombolo_protocol::elision`]'s, asked at each command, at each kernel's end and at the end of the
//! program. Here: who tells it what a command uses ([`Packets`]), which steps follow ([`Steps`]), which lines an operation
//! reaches ([`Extents`]), and a log of all ([`Logged`]).

use std::sync::{Arc, PoisonError, RwLock};
use tombolo_design::scheduling::Shape;
use tombolo_protocol::Action;
use tombolo_protocol::boundary::{Reach, Steps};
use tombolo_protocol::elision::{Account, Boundary, Elision, Extent, KernelId, LineSet, ModuleSet, Packet};
use tombolo_protocol::topology::Topology;
use tombolo_types::stream::{Command, Program};
use tombolo_types::{Line, ModuleId, On, Ps};

/// Says what each command of a program uses.
pub trait Packets: Send + Sync {
    /// Shows `then` command number `index` as the command processor reads it, under the name `kernel`.
    fn show(&self, index: usize, kernel: KernelId, then: &mut dyn FnMut(&Packet<'_>));
}

/// A program of whose kernels nothing is known but where they run.
pub struct Unlabelled {
    program: Arc<dyn Program>,
    shape: Shape,
}

impl Unlabelled {
    /// On a machine of this shape.
    pub fn new(program: Arc<dyn Program>, shape: Shape) -> Unlabelled {
        Unlabelled { program, shape }
    }
}

/// Modules of a launch on a machine of this shape.
pub fn modules_of(on: On, shape: Shape) -> ModuleSet {
    (0..shape.modules()).map(ModuleId).filter(|&module| on.has(module, shape.modules_per_gpu)).collect()
}

impl Packets for Unlabelled {
    fn show(&self, index: usize, kernel: KernelId, then: &mut dyn FnMut(&Packet<'_>)) {
        let on = match self.program.commands()[index] {
            Command::Launch { on, .. } => modules_of(on, self.shape),
            Command::Copy { .. } | Command::Host { .. } | Command::Barrier => ModuleSet::NONE,
        };
        then(&Packet { kernel, on, labels: None });
    }
}

/// Which lines an operation reaches, by a number that messages carry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExtentId(u32);

impl ExtentId {
    /// Every line.
    pub const CACHE: ExtentId = ExtentId(0);
}

/// The sets of lines of a run's ranged operations. Shared by its partitions; the command processor adds one before it sends
/// its number, so all read the same.
#[derive(Clone, Debug, Default)]
pub struct Extents(Arc<RwLock<Vec<Arc<LineSet>>>>);

impl Extents {
    fn add(&self, lines: &LineSet) -> ExtentId {
        let mut sets = self.0.write().unwrap_or_else(PoisonError::into_inner);
        sets.push(Arc::new(lines.clone()));
        ExtentId(u32::try_from(sets.len()).expect("a run has fewer operations than that"))
    }

    /// The lines; `None` where it is every line.
    pub fn lines(&self, id: ExtentId) -> Option<Arc<LineSet>> {
        let sets = self.0.read().unwrap_or_else(PoisonError::into_inner);
        (id != ExtentId::CACHE).then(|| Arc::clone(&sets[id.0 as usize - 1]))
    }
}

/// Whether `extent`, `None` for every line, has `line`.
pub fn reaches(extent: Option<&LineSet>, line: Line) -> bool {
    extent.is_none_or(|lines| {
        let ranges = lines.ranges();
        let at = ranges.partition_point(|range| range.end <= line);
        ranges.get(at).is_some_and(|range| range.first <= line)
    })
}

/// What a module's L2 lost by operations of boundaries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// Dirty lines written to memory and kept.
    pub flushed: u32,
    /// Lines dropped.
    pub dropped: u32,
}

impl Lost {
    /// That of both.
    #[must_use]
    pub fn and(self, other: Lost) -> Lost {
        Lost { flushed: self.flushed + other.flushed, dropped: self.dropped + other.dropped }
    }
}

/// What a boundary is before or behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Before the command of the program with this index.
    Before(usize),
    /// Behind the kernel that it launched.
    After(usize),
    /// The end of the program.
    ProgramEnds,
}

/// One boundary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Logged {
    /// Where in the program.
    pub moment: Moment,
    /// What was decided.
    pub boundary: Boundary,
    /// Why, by row and module.
    pub accounts: Vec<Account>,
    /// Rows of the table in use behind it.
    pub rows: usize,
    /// When its operations began and had ended; the same where there were none.
    pub start: Ps,
    /// See `start`.
    pub end: Ps,
    /// By module.
    pub lost: Vec<Lost>,
}

/// Decides, and keeps the log.
pub struct Boundaries {
    elision: Box<dyn Elision + Send>,
    said: Arc<dyn Packets>,
    reach: Reach,
    modules: u8,
    /// Whether a table decides.
    elides: bool,
    /// Whether L2s hold anything that an invalidation is for: where a directory keeps them current none is sent.
    invalidates: bool,
    /// Whether a kernel's end releases nothing: then it waits for stores that went through.
    defers: bool,
    extents: Extents,
    /// `None` where nobody reads it.
    log: Option<Vec<Logged>>,
    /// Packets so far.
    packets: u32,
}

/// What was decided at one boundary, while it runs.
#[derive(Clone, Debug)]
pub struct Decision {
    /// What runs.
    pub(crate) steps: Steps,
    boundary: Boundary,
    /// Its place in the log, where one is kept.
    logged: usize,
}

/// What [`Boundaries`] is made of.
pub struct BoundariesConfig {
    /// Who decides.
    pub elision: Box<dyn Elision + Send>,
    /// Who says what commands use.
    pub packets: Arc<dyn Packets>,
    /// What an operation on one module must reach.
    pub reach: Reach,
    /// Modules of the machine.
    pub modules: u8,
    /// Whether a table decides: it takes the command processor time.
    pub elides: bool,
    /// Whether L2s hold anything that an invalidation is for.
    pub invalidates: bool,
    /// Whether a kernel's end may release nothing.
    pub defers: bool,
    /// Whether to keep a log.
    pub logs: bool,
}

impl Boundaries {
    /// At the start of a program.
    pub fn new(config: BoundariesConfig) -> Boundaries {
        let BoundariesConfig { elision, packets, reach, modules, elides, invalidates, defers, logs } = config;
        Boundaries {
            elision,
            said: packets,
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

    /// The lines of ranged operations.
    pub fn extents(&self) -> &Extents {
        &self.extents
    }

    /// Whether a table decides.
    pub fn elides(&self) -> bool {
        self.elides
    }

    /// Whether what operations do is counted.
    pub fn logs(&self) -> bool {
        self.log.is_some()
    }

    /// The log; empty where none is kept.
    pub fn log(&self) -> &[Logged] {
        self.log.as_deref().unwrap_or_default()
    }

    /// Whether a decision rests on the operations of those before it having run: then one boundary runs at a time. Where
    /// every launch invalidates and every end flushes, each does what its own kernel needs.
    pub(crate) fn one_at_a_time(&self) -> bool {
        self.defers
    }

    /// What is done before command number `index`, whose packet gets the number that is returned.
    pub(crate) fn before(&mut self, index: usize, topology: &impl Topology, now: Ps) -> (KernelId, Decision) {
        let kernel = KernelId(self.packets);
        self.packets += 1;
        let mut accounts = Vec::new();
        let mut boundary = Boundary::nothing(self.modules);
        let said = Arc::clone(&self.said);
        said.show(index, kernel, &mut |packet| {
            boundary = self.elision.launch(packet, &mut |account| accounts.push(*account));
        });
        (kernel, self.decided(boundary, Moment::Before(index), accounts, topology, now))
    }

    /// What is done behind it, when its stores have been taken by L2s.
    pub(crate) fn after(&mut self, index: usize, kernel: KernelId, topology: &impl Topology, now: Ps) -> Decision {
        let mut accounts = Vec::new();
        let boundary = self.elision.finish(kernel, &mut |account| accounts.push(*account));
        let decision = self.decided(boundary, Moment::After(index), accounts, topology, now);
        if self.defers { Decision { steps: decision.steps.awaiting(None), ..decision } } else { decision }
    }

    /// What the host did has ended: it holds no copies, so nothing is owed.
    pub(crate) fn host_is_done(&mut self, index: usize, kernel: KernelId) {
        let owed = self.elision.finish(kernel, &mut |_| ());
        assert!(owed.flushes() + owed.invalidations() == 0, "command {index}, of the host, leaves something to do");
    }

    /// What is done at the end of the program.
    pub(crate) fn end(&mut self, topology: &impl Topology, now: Ps) -> Decision {
        let mut accounts = Vec::new();
        let boundary = self.elision.end(&mut |account| accounts.push(*account));
        self.decided(boundary, Moment::ProgramEnds, accounts, topology, now)
    }

    fn decided(
        &mut self,
        mut boundary: Boundary,
        moment: Moment,
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
            let lost = vec![Lost::default(); usize::from(self.modules)];
            log.push(Logged { moment, boundary: boundary.clone(), accounts, rows, start: now, end: now, lost });
        }
        Decision { steps: Steps::of(&boundary, topology, self.reach), boundary, logged }
    }

    /// The lines that a member's part of a decision reaches.
    pub(crate) fn extent(&self, decision: &Decision, member: ModuleId, action: Action) -> ExtentId {
        let operation = &decision.boundary.modules[usize::from(member.0)];
        let extent = match action {
            Action::Invalidate(_) => operation.invalidate.as_ref(),
            Action::DrainStores(_) | Action::PassOnStores | Action::Flush => operation.flush.as_ref(),
            Action::DrainInvalidations(_) | Action::AwaitStores | Action::Merge { .. } => None,
        };
        match (extent, self.reach) {
            (Some(Extent::Lines(lines)), Reach::Module) => self.extents.add(lines),
            // What others of the GPU act for has no ranges here.
            (Some(Extent::Lines(_)), Reach::Gpu | Reach::GpuShares) | (Some(Extent::Cache) | None, _) => {
                ExtentId::CACHE
            }
        }
    }

    /// A module has done its part of a phase of a decision.
    pub(crate) fn acted(&mut self, decision: &Decision, member: ModuleId, lost: Lost) {
        if let Some(log) = &mut self.log {
            let logged = &mut log[decision.logged];
            let of_module = &mut logged.lost[usize::from(member.0)];
            of_module.flushed += lost.flushed;
            of_module.dropped += lost.dropped;
        }
    }

    /// The steps of a decision have run.
    pub(crate) fn ran(&mut self, decision: &Decision, now: Ps) {
        if let Some(log) = &mut self.log {
            log[decision.logged].end = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tombolo_protocol::elision::Lines;

    #[test]
    fn an_extent_has_the_lines_of_its_ranges() {
        let set: LineSet =
            [(3, 5), (8, 9)].map(|(first, end)| Lines::new(Line(first), Line(end))).into_iter().collect();
        let within = |line| reaches(Some(&set), Line(line));
        assert_eq!([2, 3, 4, 5, 7, 8, 9].map(within), [false, true, true, false, false, true, false]);
        assert!(reaches(None, Line(7)));
    }

    #[test]
    fn extents_are_read_by_the_number_that_they_were_given() {
        let extents = Extents::default();
        let sets: [LineSet; 2] = [Lines::new(Line(0), Line(4)).into(), Lines::new(Line(9), Line(10)).into()];
        let ids = sets.each_ref().map(|set| extents.add(set));
        assert_eq!(ids.map(|id| extents.lines(id).expect("a set")), sets.map(Arc::new));
        assert_eq!(extents.lines(ExtentId::CACHE), None);
    }
}
