//! Small machines with kernels, for an exhaustive search over all sequences.

use crate::kernel::{Kernel, Labelling, accesses, is_race_free};
use crate::search::{Scenario, SearchResult, search};
use crate::truth::{Access, Machine, RemoteAccess};
use tombolo_protocol::elision::{
    Account, BoundaryOperations, BrokenElision, ChipletTable, Elision, HomeAware, KernelId, LineRange, Never,
    OperationGranularity, Packet, ReleaseTime, RetainedLines, TableConfig, User,
};
use tombolo_types::{Line, ModuleId};

/// The deciding elision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Chiplet,
    Home,
    Never(ReleaseTime),
}

/// Any supported elision.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum AnyElision {
    Chiplet(ChipletTable),
    Home(HomeAware),
    Never(Never),
}

impl AnyElision {
    pub(crate) fn new(kind: Kind, config: TableConfig, machine: &Machine, broken: Option<BrokenElision>) -> AnyElision {
        let holds = match machine.reading {
            RemoteAccess::HomeMemory => RetainedLines::Own,
            RemoteAccess::Cached => RetainedLines::All,
        };
        match kind {
            Kind::Chiplet => AnyElision::Chiplet(ChipletTable::new(config, machine.modules, broken)),
            Kind::Home => {
                AnyElision::Home(HomeAware::new(config, machine.modules, holds, broken).expect("it is sound here"))
            }
            Kind::Never(when) => AnyElision::Never(Never::new(when, machine.modules)),
        }
    }

    pub(crate) fn rows(&self) -> usize {
        match self {
            AnyElision::Chiplet(table) => table.rows(),
            AnyElision::Home(table) => table.rows(),
            AnyElision::Never(_) => 0,
        }
    }

    fn inner(&mut self) -> &mut dyn Elision {
        match self {
            AnyElision::Chiplet(table) => table,
            AnyElision::Home(table) => table,
            AnyElision::Never(never) => never,
        }
    }
}

impl Elision for AnyElision {
    fn launch(&mut self, packet: &Packet<'_>, why: &mut dyn FnMut(&Account)) -> BoundaryOperations {
        self.inner().launch(packet, why)
    }

    fn finish(&mut self, kernel: KernelId, why: &mut dyn FnMut(&Account)) -> BoundaryOperations {
        self.inner().finish(kernel, why)
    }

    fn end(&mut self, why: &mut dyn FnMut(&Account)) -> BoundaryOperations {
        self.inner().end(why)
    }
}

/// A user's possible accesses in a kernel: grains read, grains written.
pub(crate) type GrainUse = (&'static [usize], &'static [usize]);

/// A small machine with its kernels and its elision.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) scenario: Scenario,
    pub(crate) kind: Kind,
    pub(crate) config: TableConfig,
}

impl Case {
    pub(crate) fn search(&self, broken: Option<BrokenElision>, most: usize) -> SearchResult {
        search(&self.scenario, AnyElision::new(self.kind, self.config, &self.scenario.machine, broken), most)
    }
}

/// Three modules, and two-grain lines with these homes.
pub(crate) fn machine(reading: RemoteAccess, homes: &[u8]) -> Machine {
    let homes = homes.iter().map(|&home| ModuleId(home)).collect();
    Machine { reading, modules: 3, homes, grains: 2, store_fetches: false, fault: None }
}

/// Structures with these line counts, stored back to back.
pub(crate) fn structures(lengths: &[u64]) -> Vec<LineRange> {
    let mut next = 0;
    let one = |&length: &u64| {
        next += length;
        LineRange::new(Line(next - length), Line(next))
    };
    lengths.iter().map(one).collect()
}

pub(crate) fn module(module: u8) -> User {
    User::Module(ModuleId(module))
}

fn of(user: User, (reads, writes): GrainUse) -> Vec<Access> {
    [accesses(user, reads.iter().copied(), false), accesses(user, writes.iter().copied(), true)].concat()
}

/// All race-free combinations in which each module performs an element of `parts`, with at most `most` active
/// modules.
pub(crate) fn combinations(modules: u8, parts: &[GrainUse], most: usize) -> Vec<Vec<Access>> {
    let mut kernels: Vec<(usize, Vec<Access>)> = vec![(0, Vec::new())];
    for user in 0..modules {
        let longer = |(active, kernel): &(usize, Vec<Access>)| {
            let with = parts.iter().map(|&part| (active + 1, [kernel.as_slice(), &of(module(user), part)].concat()));
            let with = with.filter(|(active, kernel)| *active <= most && is_race_free(kernel));
            with.chain([(*active, kernel.clone())]).collect::<Vec<_>>()
        };
        kernels = kernels.iter().flat_map(longer).collect();
    }
    kernels.into_iter().map(|(_, kernel)| kernel).filter(|kernel| !kernel.is_empty()).collect()
}

/// A single structure with two lines: partial lines, both lines, and a write next to a halo.
const ONE: [GrainUse; 6] =
    [(&[0], &[]), (&[], &[0]), (&[], &[1]), (&[0, 1, 2, 3], &[]), (&[], &[0, 1, 2, 3]), (&[1, 2], &[3])];

/// A smaller selection for L2s that cache remote lines, because the state space is much larger.
const ONE_CACHED: [GrainUse; 4] = [(&[], &[0]), (&[], &[1]), (&[0, 1, 2, 3], &[]), (&[1, 2], &[3])];

/// Two structures with a single line each.
const TWO: [GrainUse; 5] = [(&[0, 1], &[]), (&[], &[0]), (&[], &[1]), (&[2], &[]), (&[1], &[2])];

const TWO_CACHED: [GrainUse; 3] = [(&[0], &[]), (&[], &[1]), (&[], &[2])];

const DEFAULT: TableConfig =
    TableConfig { rows: 64, structures: 8, ranges: 1, operations: OperationGranularity::Cache, sharing: 1 };
const RANGED: TableConfig = TableConfig { operations: OperationGranularity::Range, ..DEFAULT };
const TIGHT: TableConfig = TableConfig { rows: 1, ..DEFAULT };
const COARSE: TableConfig = TableConfig { structures: 1, ..DEFAULT };

fn case(
    name: &'static str,
    machine: &Machine,
    lengths: &[u64],
    kernels: Vec<Vec<Access>>,
    labelling: Labelling,
    (kind, config): (Kind, TableConfig),
) -> Case {
    let structures = structures(lengths);
    let labelled = |accesses| Kernel::labelled(machine, &structures, accesses, labelling);
    let kernels = kernels.into_iter().map(labelled).collect();
    Case { name, scenario: Scenario { machine: machine.clone(), kernels, streams: 1, oracle: true }, kind, config }
}

/// Every case in which kernels run one after another.
pub(crate) fn one_stream() -> Vec<Case> {
    use Kind::{Chiplet, Home, Never};
    use Labelling::{Exact, Modes, OneMode};
    let h = |homes| machine(RemoteAccess::HomeMemory, homes);
    let p = |homes| machine(RemoteAccess::Cached, homes);
    let (one, one_cached) = (combinations(3, &ONE, 3), combinations(3, &ONE_CACHED, 3));
    let (two, two_cached) = (combinations(3, &TWO, 2), combinations(3, &TWO_CACHED, 2));
    let mut cases = vec![
        case("one structure", &h(&[0, 1]), &[2], one.clone(), Exact, (Chiplet, DEFAULT)),
        case("one structure, homes", &h(&[0, 1]), &[2], one.clone(), Exact, (Home, DEFAULT)),
        case("one structure, one mode", &h(&[1, 1]), &[2], one_cached.clone(), OneMode, (Chiplet, DEFAULT)),
        case("one structure, modes", &h(&[0, 1]), &[2], one.clone(), Modes, (Chiplet, DEFAULT)),
        case("one structure, ranged", &h(&[0, 1]), &[2], one_cached.clone(), Exact, (Chiplet, RANGED)),
        case("one structure, cached", &p(&[0, 1]), &[2], one_cached, Exact, (Chiplet, DEFAULT)),
        case("two structures", &h(&[0, 1]), &[1, 1], two.clone(), Exact, (Chiplet, DEFAULT)),
        case("two structures, homes", &h(&[0, 0]), &[1, 1], two.clone(), Exact, (Home, DEFAULT)),
        case("two structures, cached", &p(&[0, 1]), &[1, 1], two_cached.clone(), Exact, (Chiplet, DEFAULT)),
        case("two structures, ranged", &h(&[0, 0]), &[1, 1], two_cached.clone(), Exact, (Chiplet, RANGED)),
        case("tight", &h(&[0, 0]), &[1, 1], two.clone(), Exact, (Chiplet, TIGHT)),
        case("tight, cached", &p(&[0, 1]), &[1, 1], two_cached.clone(), Exact, (Chiplet, TIGHT)),
        case("coarse", &h(&[0, 0]), &[1, 1], two.clone(), Exact, (Chiplet, COARSE)),
        case("coarse, homes", &h(&[0, 1]), &[1, 1], two, Exact, (Home, COARSE)),
        case("no elision", &h(&[0, 1]), &[2], one.clone(), Exact, (Never(ReleaseTime::EndThenLaunch), DEFAULT)),
        case("no elision, launch", &h(&[0, 1]), &[2], one, Exact, (Never(ReleaseTime::Launch), DEFAULT)),
        case("no elision, cached", &p(&[0, 1]), &[1, 1], two_cached, Exact, (Never(ReleaseTime::Launch), DEFAULT)),
    ];
    cases[5].scenario.machine.store_fetches = true;
    for (name, reading, config) in [
        ("host", RemoteAccess::HomeMemory, DEFAULT),
        ("host, cached", RemoteAccess::Cached, DEFAULT),
        ("host, homes", RemoteAccess::HomeMemory, DEFAULT),
    ] {
        let machine = machine(reading, &[0, 1]);
        let mut kernels = combinations(3, &[(&[0, 1], &[]), (&[], &[0]), (&[], &[2])], 2);
        kernels.extend(
            [(&[0][..], &[][..]), (&[0, 1, 2, 3], &[]), (&[], &[1]), (&[], &[0, 1, 2, 3])].map(|p| of(User::Host, p)),
        );
        let kind = if name == "host, homes" { Home } else { Chiplet };
        cases.push(case(name, &machine, &[1, 1], kernels, Exact, (kind, config)));
    }
    for (name, reading) in [("unlabelled", RemoteAccess::HomeMemory), ("unlabelled, cached", RemoteAccess::Cached)] {
        let machine = machine(reading, &[0, 1]);
        let mut with = case(name, &machine, &[1, 1], combinations(3, &TWO_CACHED, 2), Exact, (Chiplet, DEFAULT));
        with.scenario.kernels.iter_mut().step_by(3).for_each(|kernel| kernel.labels = None);
        cases.push(with);
    }
    cases
}

/// Every case in which two kernels may run concurrently.
pub(crate) fn two_streams() -> Vec<Case> {
    use Kind::{Chiplet, Home, Never};
    let parts: [GrainUse; 5] = [(&[0], &[]), (&[], &[0]), (&[], &[1]), (&[1, 2], &[]), (&[], &[3])];
    let mut cases = Vec::new();
    for (name, reading, lengths, kind, config) in [
        ("streams", RemoteAccess::HomeMemory, &[2][..], Chiplet, DEFAULT),
        ("streams, cached", RemoteAccess::Cached, &[2], Chiplet, DEFAULT),
        ("streams, homes", RemoteAccess::HomeMemory, &[2], Home, DEFAULT),
        ("streams, two structures", RemoteAccess::HomeMemory, &[1, 1], Chiplet, DEFAULT),
        ("streams, tight", RemoteAccess::HomeMemory, &[1, 1], Chiplet, TIGHT),
        ("streams, tight, cached", RemoteAccess::Cached, &[1, 1], Chiplet, TIGHT),
        ("streams, ranged", RemoteAccess::HomeMemory, &[1, 1], Chiplet, RANGED),
        ("streams, unlabelled", RemoteAccess::HomeMemory, &[1, 1], Chiplet, DEFAULT),
        ("streams, no elision", RemoteAccess::HomeMemory, &[2], Never(ReleaseTime::EndThenLaunch), DEFAULT),
        ("streams, no elision, launch", RemoteAccess::Cached, &[2], Never(ReleaseTime::Launch), DEFAULT),
    ] {
        let mut machine = machine(reading, &[0, 0]);
        machine.modules = 2;
        let kernels = combinations(2, &parts, 1);
        let mut with = case(name, &machine, lengths, kernels, Labelling::Exact, (kind, config));
        with.scenario.streams = 2;
        if name == "streams, unlabelled" {
            with.scenario.kernels.iter_mut().step_by(3).for_each(|kernel| kernel.labels = None);
        }
        cases.push(with);
    }
    // The home neither writes nor reads: a write-back passes no copy.
    let third = machine(RemoteAccess::Cached, &[2]);
    let kernels = combinations(2, &[(&[0], &[]), (&[1], &[]), (&[], &[1])], 1);
    let mut with = case("streams, cached, third home", &third, &[1], kernels, Labelling::Exact, (Chiplet, DEFAULT));
    with.scenario.streams = 2;
    cases.push(with);
    cases
}

/// A home-aware table although L2s hold remote lines. Only a broken rule allows its construction.
pub(crate) fn homes_where_all_is_cached() -> Case {
    let machine = machine(RemoteAccess::Cached, &[0, 1]);
    let kernels = combinations(3, &ONE_CACHED, 2);
    case("homes, cached", &machine, &[2], kernels, Labelling::Exact, (Kind::Home, DEFAULT))
}
