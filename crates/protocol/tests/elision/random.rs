//! Longer random programs: up to eight modules, many structures, small tables, concurrent kernels, overstated
//! labels. The same seed gives the same program on every platform.

use crate::cases::{AnyElision, Kind};
use crate::kernel::{Kernel, Labelling, OwnedLabel, is_race_free};
use crate::search::{Order, ends, perform};
use crate::truth::{Access, Machine, RemoteAccess, Violation, World};
use tombolo_protocol::elision::{
    AccessMode, Account, BoundaryOperations, BrokenElision, Elision, KernelId, LineRange, OperationGranularity,
    ReleaseTime, StructureUse, TableConfig, User,
};
use tombolo_types::{Line, ModuleId};

/// Pseudo-random numbers. Source: SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
struct RandomSource(u64);

impl RandomSource {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// A number from `first` up to `last`.
    fn from(&mut self, first: usize, last: usize) -> usize {
        first + (self.next() % (last - first + 1) as u64) as usize
    }

    fn percent(&mut self, chance: usize) -> bool {
        self.from(1, 100) <= chance
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.from(0, from.len() - 1)]
    }

    fn shuffle<T>(&mut self, all: &mut [T]) {
        (1..all.len()).for_each(|at| all.swap(at, self.from(0, at)));
    }
}

/// Number of operations required, and number performed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    launches: usize,
    needed: usize,
    done: usize,
}

struct RandomProgram {
    dice: RandomSource,
    machine: Machine,
    structures: Vec<LineRange>,
    /// Percentage of structures used by a kernel.
    used: usize,
}

impl RandomProgram {
    fn new(seed: u64, reading: RemoteAccess) -> RandomProgram {
        let mut dice = RandomSource(seed);
        let modules = dice.pick(&[2, 2, 3, 3, 4, 6, 8]);
        let mut structures = Vec::new();
        let mut next = 0;
        for _ in 0..dice.from(1, 9) {
            let length = dice.from(1, 4) as u64;
            structures.push(LineRange::new(Line(next), Line(next + length)));
            // Some structures are contiguous.
            next += length + dice.from(0, 2) as u64;
        }
        let homes = (0..next).map(|_| ModuleId(dice.from(0, usize::from(modules) - 1) as u8)).collect();
        let store_fetches = dice.percent(50);
        let machine = Machine { reading, modules, homes, grains: 2, store_fetches, fault: None };
        let used = dice.pick(&[15, 30, 60]);
        RandomProgram { dice, machine, structures, used }
    }

    fn config(&mut self) -> TableConfig {
        TableConfig {
            rows: self.dice.pick(&[1, 2, 3, 4, 8, 64]),
            structures: self.dice.pick(&[1, 2, 3, 8]),
            ranges: self.dice.pick(&[1, 1, 2, 4]),
            operations: self.dice.pick(&[OperationGranularity::Cache, OperationGranularity::Range]),
            sharing: 1,
        }
    }

    /// Draws a race-free kernel, in which most users have a part in most structures.
    fn kernel(&mut self, plain: bool) -> Kernel {
        let RandomProgram { dice, machine, structures, used } = self;
        let host = dice.percent(10);
        let users: Vec<User> = match host {
            true => vec![User::Host],
            false => (0..machine.modules).filter(|_| dice.percent(60)).map(|at| User::Module(ModuleId(at))).collect(),
        };
        let mut accesses: Vec<Access> = Vec::new();
        for structure in structures.iter().filter(|_| dice.percent(*used)).collect::<Vec<_>>() {
            let (first, end) = (structure.first.0 as usize * 2, structure.end.0 as usize * 2);
            for &user in &users {
                let from = dice.from(first, end - 1);
                let write = dice.percent(45);
                for grain in from..=dice.from(from, end - 1) {
                    let write = if dice.percent(20) { !write } else { write };
                    accesses.push(Access { user, grain, write });
                    if !is_race_free(&accesses) {
                        accesses.pop();
                    }
                }
            }
        }
        dice.shuffle(&mut accesses);
        let labelling = dice.pick(&[Labelling::Exact, Labelling::Exact, Labelling::OneMode, Labelling::Modes]);
        let mut kernel = Kernel::labelled(machine, structures, accesses, labelling);
        if !host && !plain && dice.percent(10) {
            kernel.labels = None;
        }
        kernel.labels.iter_mut().flatten().for_each(|label| self.overstate(label));
        kernel
    }

    /// Adds unnecessary users, lines and modes to a label.
    fn overstate(&mut self, label: &mut OwnedLabel) {
        let dice = &mut self.dice;
        let structure = label.structure;
        let some = |dice: &mut RandomSource| {
            let first = structure.first.0 + dice.from(0, (structure.end.0 - structure.first.0) as usize - 1) as u64;
            LineRange::new(Line(first), Line(first + 1)).into()
        };
        for used in &mut label.uses {
            if dice.percent(15) {
                used.lines.add(&some(dice));
            }
            if dice.percent(10) {
                used.mode = AccessMode::ReadWrite;
            }
        }
        if dice.percent(10) {
            let user = User::Module(ModuleId(dice.from(0, usize::from(self.machine.modules) - 1) as u8));
            if label.uses.iter().all(|used| used.user != user) {
                label.uses.push(StructureUse { user, mode: AccessMode::Read, lines: some(dice) });
            }
        }
    }
}

/// A running kernel, with the accesses that it still has to perform.
struct RunningKernel {
    id: KernelId,
    kernel: Kernel,
    left: Vec<Access>,
}

/// Performs some of the remaining accesses by running kernels.
fn some(
    dice: &mut RandomSource,
    machine: &Machine,
    world: &mut World,
    running: &mut [RunningKernel],
) -> Result<(), Violation> {
    for RunningKernel { left, .. } in running {
        let keeps = dice.from(0, left.len());
        perform(machine, world, &left.split_off(keeps), Order::LoadsFirst)?;
    }
    Ok(())
}

/// The configuration for random programs.
#[derive(Clone, Copy, Debug)]
struct RunOptions {
    reading: RemoteAccess,
    kind: Kind,
    /// Maximum number of concurrent kernels.
    streams: usize,
    /// If set, CPElide's table and labelled kernels only; else small tables, and kernels without labels.
    plain: bool,
    broken: Option<BrokenElision>,
}

/// A running program, with its reference machine and its table.
struct RandomRun {
    draft: RandomProgram,
    config: TableConfig,
    elision: AnyElision,
    world: World,
    running: Vec<RunningKernel>,
    counts: Counts,
    /// Set when no rule is broken.
    whole: bool,
}

/// Runs a random program.
fn run(seed: u64, how: RunOptions) -> Result<Counts, Violation> {
    let mut draft = RandomProgram::new(seed, how.reading);
    let drawn = draft.config();
    let config = if how.plain { TableConfig::default() } else { drawn };
    let elision = AnyElision::new(how.kind, config, &draft.machine, how.broken);
    let world = World::new(&draft.machine);
    let (running, counts, whole) = (Vec::new(), Counts::default(), how.broken.is_none());
    let mut run = RandomRun { draft, config, elision, world, running, counts, whole };
    for launch in 0..run.draft.dice.from(6, 40) {
        while run.running.len() >= run.draft.dice.from(1, how.streams) {
            run.finish()?;
        }
        let kernel = run.draft.kernel(how.plain);
        if !run.running.iter().any(|other| kernel.conflicts(&other.kernel)) {
            run.launch(KernelId(launch as u32), kernel)?;
        }
    }
    while !run.running.is_empty() {
        run.finish()?;
    }
    Ok(run.counts)
}

/// True if each operation has a reason, and each reason an operation.
fn is_accounted_for(boundary: &BoundaryOperations, accounts: &[Account]) -> bool {
    boundary.iter().all(|(module, operation)| {
        let mut said = (false, false);
        for account in accounts.iter().filter(|account| account.module == module) {
            said = (said.0 || account.invalidate.is_done(), said.1 || account.flush.is_done());
        }
        said == (operation.invalidate.is_some(), operation.flush.is_some())
    })
}

impl RandomRun {
    /// Ends a random running kernel.
    fn finish(&mut self) -> Result<(), Violation> {
        let RandomRun { draft: RandomProgram { dice, machine, .. }, elision, world, running, .. } = self;
        let ended = running.remove(dice.from(0, running.len() - 1));
        perform(machine, world, &ended.left, Order::LoadsFirst)?;
        let boundary = elision.finish(ended.id, &mut |_| {});
        world.perform(machine, &boundary, |world| some(dice, machine, world, running))?;
        if running.is_empty() { ends(machine, world, elision) } else { Ok(()) }
    }

    fn launch(&mut self, id: KernelId, kernel: Kernel) -> Result<(), Violation> {
        let RandomRun { draft: RandomProgram { dice, machine, .. }, config, elision, world, running, counts, whole } =
            self;
        let mut accounts = Vec::new();
        let mut why = |account: &Account| accounts.push(*account);
        let boundary = kernel.with_packet(id, |packet| elision.launch(packet, &mut why));
        assert!(!*whole || is_accounted_for(&boundary, &accounts), "{boundary:?} of {accounts:?}");
        assert!(elision.rows() <= usize::from(config.rows), "{} rows of {config:?}", elision.rows());
        let (invalidate, flush) = world.needed(machine, &kernel.accesses);
        for (module, operation) in boundary.iter() {
            let lacks_invalidation = invalidate.contains(module) && operation.invalidate.is_none();
            if lacks_invalidation || flush.contains(module) && operation.flush.is_none() {
                return Err(Violation::NotDone(module));
            }
        }
        counts.launches += 1;
        counts.needed += (invalidate.count() + flush.count()) as usize;
        counts.done += boundary.flushes() + boundary.invalidations();
        world.perform(machine, &boundary, |world| some(dice, machine, world, running))?;
        // Each access is performed twice, to cover early and late fetches and writes.
        let mut left = [kernel.accesses.as_slice(), &kernel.accesses].concat();
        dice.shuffle(&mut left);
        running.push(RunningKernel { id, kernel, left });
        some(dice, machine, world, running)
    }
}

const EVERY: [(RemoteAccess, Kind); 5] = [
    (RemoteAccess::HomeMemory, Kind::Chiplet),
    (RemoteAccess::Cached, Kind::Chiplet),
    (RemoteAccess::HomeMemory, Kind::Home),
    (RemoteAccess::HomeMemory, Kind::Never(ReleaseTime::EndThenLaunch)),
    (RemoteAccess::Cached, Kind::Never(ReleaseTime::Launch)),
];

/// The first failing program among the first `programs` seeds.
fn first_wrong(programs: u64, how: RunOptions) -> Option<(u64, Violation)> {
    (0..programs).find_map(|seed| run(seed, how).err().map(|wrong| (seed, wrong)))
}

fn none_is_wrong(streams: usize) {
    for (reading, kind) in EVERY {
        let how = RunOptions { reading, kind, streams, plain: false, broken: None };
        assert_eq!(first_wrong(3000, how), None, "{how:?}");
    }
}

#[test]
fn random_programs_never_read_old_values() {
    none_is_wrong(1);
}

#[test]
fn random_programs_of_several_streams_never_read_old_values() {
    none_is_wrong(3);
}

#[test]
fn random_programs_catch_broken_rules() {
    // The first rule is sound. The second must be observed between two operations: the searches detect it. The
    // third concerns messages in flight: the explorer detects it.
    let not_here =
        [BrokenElision::ColumnsOfAskingRows, BrokenElision::RunningInvalidatedFirst, BrokenElision::StoresNotAwaited];
    for broken in BrokenElision::ALL.into_iter().filter(|broken| !not_here.contains(broken)) {
        let kind = if broken == BrokenElision::HomesIgnored { Kind::Home } else { Kind::Chiplet };
        let how = RunOptions { reading: RemoteAccess::Cached, kind, streams: 3, plain: false, broken: Some(broken) };
        let first = first_wrong(3000, how);
        println!("{broken:?}: {first:?}");
        assert!(first.is_some(), "{broken:?}");
    }
}

#[test]
fn a_table_does_less_than_none_and_one_that_knows_homes_less_again() {
    let total = |kind| {
        let how = RunOptions { reading: RemoteAccess::HomeMemory, kind, streams: 1, plain: true, broken: None };
        let programs = (0..500).map(|seed| run(seed, how).expect("it is sound"));
        programs.fold(Counts::default(), |sum, one| Counts {
            launches: sum.launches + one.launches,
            needed: sum.needed + one.needed,
            done: sum.done + one.done,
        })
    };
    let (never, chiplet, home) = (total(Kind::Never(ReleaseTime::Launch)), total(Kind::Chiplet), total(Kind::Home));
    println!("never {never:?}, chiplet {chiplet:?}, home {home:?}");
    assert!(never.launches == chiplet.launches && chiplet.launches == home.launches);
    assert!(never.done > chiplet.done && chiplet.done > home.done);
    assert!(home.done >= home.needed && chiplet.done >= chiplet.needed);
}
