//! Draws a single run from a seed.

use crate::host;
use crate::machine::{SettingsDraw, logarithmic};
use crate::pages;
use crate::setup::{Address, MachineShape, Noise, NoiseOp, Pacing, PacketClass, Setup, Skew, SlowPort, SmSlot};
use crate::values::{CELLS, LineCell, UNUSED};
use tombolo_check::litmus::{Instruction, Location, Program, ThreadPlacement};
use tombolo_check::random::Dice;
use tombolo_design::DesignConfig;
use tombolo_design::placement::Movement;
use tombolo_types::{GpuId, Line, Mask, ModuleId, Order, Ps, Scope, Semantics};

/// Distinguishes this random stream from streams for different purposes with an equal seed.
const PURPOSE: u64 = 0x6174_7461_636b;
/// Maximum pages for the test's locations, at most a page each: more than any test has.
const TEST_PAGES: u64 = 8;
/// Total number of pages.
const PAGES: u64 = 14;
/// Maximum number of additional warps in a run.
const NOISE: usize = 8;

/// Focus of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RunFocus {
    /// Crowding: every size is small, and much additional traffic runs.
    Crowd,
    /// A race between two messages: warm copies, late writers, polling readers, a single packet class delayed.
    Race,
}

impl Setup {
    /// Draws the run for `seed`, with `program` under `design`.
    pub fn draw(program: &Program, design: &DesignConfig, seed: u64) -> Setup {
        let mut dice = Dice::new(seed, PURPOSE);
        let dice = &mut dice;
        let aim = dice.pick(&[RunFocus::Crowd, RunFocus::Crowd, RunFocus::Race, RunFocus::Race, RunFocus::Race]);
        let shape = shape(program, design, dice);
        let percent = if aim == RunFocus::Race { dice.pick(&[0, 0, 25]) } else { dice.pick(&[0, 25, 60, 90]) };
        let mut settings = SettingsDraw::settings(dice, design, percent);
        SettingsDraw::fetches(&mut settings, percent, seed);
        let region = dice.pick(&[1, 2, 4, 4]);
        let page_bytes = if dice.percent(50) { 128 * region } else { 4096 };
        let homes = homes(usize::from(shape.gpus * shape.modules), dice);
        let mut setup = Setup {
            program: program.clone(),
            shape,
            page_bytes,
            region,
            has_host: false,
            settings,
            homes,
            subscribers: None,
            addresses: Vec::new(),
            slots: Vec::new(),
            pacings: Vec::new(),
            ranks: Vec::new(),
            lead: usize::from(dice.percent(60)),
            noise: Vec::new(),
            skews: Vec::new(),
            slow: Vec::new(),
        };
        if design.has_host() {
            host::add(&mut setup, percent, seed);
        }
        pages::add(&mut setup, design, percent, seed);
        setup.addresses = addresses(&setup, dice);
        pages::subscribe(&mut setup, design, seed);
        setup.slots = slots(&setup, dice);
        setup.ranks = ranks(program, dice);
        setup.pacings = pacings(&setup, aim, dice);
        setup.noise = noise(&setup, aim, dice);
        setup.noise.extend(warmers(&setup, aim, dice));
        setup.skews = skews(&setup, aim, dice);
        setup.slow = slow(&setup, aim, dice);
        setup
    }
}

/// Draws few GPUs and modules in most cases, but at least the number of GPUs named in the test. GPUs that share pages,
/// or a host, have a single module.
fn shape(program: &Program, design: &DesignConfig, dice: &mut Dice) -> MachineShape {
    let needed = Setup::gpus(program).len();
    let gpus = needed.max(dice.pick(&[1, 1, 2, 2, 3, 4]));
    let modules = if gpus > 2 { dice.pick(&[1, 2, 2, 3, 4]) } else { dice.pick(&[1, 2, 2, 3, 3, 3, 4, 4]) };
    let has_modules = design.placement.sharing().movement == Movement::Placed && !design.has_host();
    let modules = if has_modules { modules } else { 1 };
    MachineShape { gpus: gpus as u8, modules, sms: dice.pick(&[1, 2, 2, 2, 3]) }
}

/// Places each page at a random module; in a sixth of the runs all pages share a module.
fn homes(modules: usize, dice: &mut Dice) -> Vec<ModuleId> {
    let one = dice.percent(16).then(|| dice.below(modules));
    (0..PAGES).map(|_| ModuleId(one.unwrap_or_else(|| dice.below(modules)) as u8)).collect()
}

fn shuffled(count: usize, dice: &mut Dice) -> Vec<usize> {
    let mut all: Vec<usize> = (0..count).collect();
    (1..count).for_each(|last| all.swap(last, dice.below(last + 1)));
    all
}

/// Places each location on a separate page, or in the region, line or sector with an earlier location.
fn addresses(setup: &Setup, dice: &mut Dice) -> Vec<Address> {
    let together = dice.pick(&[0, 40, 80]);
    let mut addresses: Vec<Address> = Vec::new();
    for page in 0..setup.program.locations.len() as u64 {
        let alone = Address { line: first_line(setup, page, dice), cell: LineCell(dice.below(CELLS) as u8) };
        let near_earlier = |dice: &mut Dice| {
            let Address { line, .. } = addresses[dice.below(addresses.len())];
            let first = line.0 - line.0 % setup.region;
            let line = if dice.percent(40) { line } else { Line(first + dice.below(setup.region as usize) as u64) };
            Address { line, cell: LineCell(dice.below(CELLS) as u8) }
        };
        let address = if !addresses.is_empty() && dice.percent(together) { near_earlier(dice) } else { alone };
        addresses.push(if addresses.contains(&address) { alone } else { address });
    }
    addresses
}

/// A line in a page: mostly in its first region, therefore sets and slices often coincide.
fn first_line(setup: &Setup, page: u64, dice: &mut Dice) -> Line {
    let lines = setup.page_bytes / 128;
    let within = if dice.percent(70) { setup.region } else { lines };
    Line((page % TEST_PAGES) * lines + dice.below(within as usize) as u64)
}

/// SM for each CTA in each kernel: any SM of its GPU.
fn slots(setup: &Setup, dice: &mut Dice) -> Vec<Vec<SmSlot>> {
    let program = &setup.program;
    let boundary = |instruction: &&Instruction| matches!(instruction, Instruction::KernelBoundary);
    let kernels = program.threads.iter().map(|thread| thread.code.iter().filter(boundary).count()).max().unwrap_or(0);
    let (named, actual) = (Setup::gpus(program), shuffled(usize::from(setup.shape.gpus), dice));
    let place = |gpu: GpuId, dice: &mut Dice| {
        let index = named.iter().position(|one| *one == gpu).expect("every GPU of a thread is named");
        any_post(setup, actual[index] as u8, dice)
    };
    (0..=kernels).map(|_| Setup::ctas(program).iter().map(|(gpu, _)| place(*gpu, dice)).collect()).collect()
}

fn any_post(setup: &Setup, gpu: u8, dice: &mut Dice) -> SmSlot {
    let module = ModuleId(gpu * setup.shape.modules + dice.below(usize::from(setup.shape.modules)) as u8);
    SmSlot { module, sm: dice.below(usize::from(setup.shape.sms)) as u16 }
}

/// Delays before some instructions, with a common scale per run from a few cycles to tens of microseconds; some loads
/// poll. In a race the thread without a thread to wait for may begin late, after copies have been cached.
fn pacings(setup: &Setup, aim: RunFocus, dice: &mut Dice) -> Vec<Vec<Pacing>> {
    let scale = logarithmic(dice, 1, if aim == RunFocus::Race { 8 } else { 14 }) as usize;
    let delayed = dice.pick(&[10, 40, 80]);
    let polls = if aim == RunFocus::Race { dice.pick(&[80, 100]) } else { dice.pick(&[0, 70]) };
    let late = if aim == RunFocus::Race && dice.percent(80) { logarithmic(dice, 1_024, 5) as u32 } else { 0 };
    let pacing = |dice: &mut Dice| Pacing {
        delay: if dice.percent(delayed) { dice.below(scale + 1) as u32 } else { 0 },
        polls: dice.percent(polls),
    };
    let mut all: Vec<Vec<Pacing>> =
        setup.program.threads.iter().map(|thread| thread.code.iter().map(|_| pacing(dice)).collect()).collect();
    let first = all.iter_mut().zip(&setup.ranks).find(|(_, rank)| **rank == 0);
    if let Some(pacing) = first.and_then(|(pacings, _)| pacings.first_mut()) {
        pacing.delay += late;
    }
    all
}

/// Draws several orders for waiting threads, and returns the order with most loads able to poll for another thread's
/// store.
fn ranks(program: &Program, dice: &mut Dice) -> Vec<usize> {
    let drawn: Vec<Vec<usize>> = (0..4).map(|_| shuffled(program.threads.len(), dice)).collect();
    drawn.into_iter().max_by_key(|ranks| messages(program, ranks)).expect("some are drawn")
}

/// Counts pairs with a strong load and a matching write by a thread with a smaller rank.
fn messages(program: &Program, ranks: &[usize]) -> usize {
    let accesses = || {
        let ranked = program.threads.iter().zip(ranks);
        ranked.flat_map(|(thread, rank)| {
            thread.code.iter().filter_map(move |one| one.location().map(|location| (rank, location, one)))
        })
    };
    let strong =
        |one: &Instruction| matches!(one, Instruction::Load { order, .. } if order.semantics != Semantics::Weak);
    let loads = accesses().filter(|(_, _, one)| strong(one));
    loads
        .map(|(rank, location, _)| {
            let writes = accesses().filter(|(_, _, one)| !matches!(one, Instruction::Load { .. }));
            writes.filter(|(other, stored, _)| *stored == location && *other < rank).count()
        })
        .sum()
}

/// In most races and some further runs: warps for loading every test line. They run before the test or in the test
/// kernel, on the test's SMs, once or repeatedly.
fn warmers(setup: &Setup, aim: RunFocus, dice: &mut Dice) -> Vec<Noise> {
    if !dice.percent(if aim == RunFocus::Race { 80 } else { 40 }) {
        return Vec::new();
    }
    let kernel = dice.below(setup.lead + 1);
    let scope = dice.pick(&Scope::ALL);
    let order = if dice.percent(50) { Order::WEAK } else { Order::relaxed(scope) };
    let (times, pause) = (dice.pick(&[1, 1, 4, 16]), logarithmic(dice, 1, 10) as u32);
    let once = |address: &Address| [NoiseOp::Load(address.line, Mask::ALL, order), NoiseOp::Delay(pause)];
    let mut ops: Vec<NoiseOp> = (0..times).flat_map(|_| setup.addresses.iter().flat_map(once)).collect();
    if dice.percent(25) {
        // Lines in other pages: their directory entries evict the entries of the test's lines.
        let other = |page: u64| NoiseOp::Load(Line(page * (setup.page_bytes / 128)), Mask::ALL, order);
        ops.extend((TEST_PAGES..PAGES).map(other));
    }
    let mut slots = setup.slots[0].clone();
    // A miss from another SM is in flight to the shared L2.
    if dice.percent(40) {
        slots.iter_mut().for_each(|slot| slot.sm = dice.below(usize::from(setup.shape.sms)) as u16);
    }
    slots.sort_unstable_by_key(|slot| (slot.module, slot.sm));
    slots.dedup();
    slots.into_iter().map(|slot| Noise { kernel, slot, ops: ops.clone() }).collect()
}

/// Delays for one or two packet classes between some modules; in a race long enough for all other packets to overtake.
fn skews(setup: &Setup, aim: RunFocus, dice: &mut Dice) -> Vec<Skew> {
    if aim == RunFocus::Race {
        return (0..dice.pick(&[1, 1, 2])).map(|_| racing_skew(setup, dice)).collect();
    }
    (0..dice.pick(&[0, 0, 1, 2, 3]))
        .map(|_| Skew {
            source: dice.percent(40).then(|| any_module(setup, dice)),
            target: dice.percent(60).then(|| any_module(setup, dice)),
            class: dice.pick(&PacketClass::ALL),
            late: Ps(logarithmic(dice, 20_000, 11)),
        })
        .collect()
}

/// In a third of the races, a slice with slow replies to an SM in the test.
fn slow(setup: &Setup, aim: RunFocus, dice: &mut Dice) -> Vec<SlowPort> {
    if aim != RunFocus::Race || !dice.percent(33) {
        return Vec::new();
    }
    let slot = dice.pick(&setup.slots[setup.slots.len() - 1]);
    vec![SlowPort { slot, slice: dice.below(4), late: Ps(logarithmic(dice, 1_000_000, 5)) }]
}

/// Delays messages awaited by a release, or messages for removing copies before an acquire.
fn racing_skew(setup: &Setup, dice: &mut Dice) -> Skew {
    let (reader, location) = if dice.percent(75) { victim(setup, dice) } else { any_load(setup, dice) };
    let address = setup.address(location);
    let home = setup.homes[(address.line.0 * 128 / setup.page_bytes) as usize];
    let reader = module_of(setup, reader);
    if setup.subscribers.is_some() && dice.percent(50) {
        return late_publication(setup, reader, dice);
    }
    let other = module_of(setup, dice.below(setup.program.threads.len()));
    let (source, target, class) = match dice.below(20) {
        0..7 => (None, dice.percent(70).then_some(reader), PacketClass::Invalidations),
        7..12 => (Some(home), dice.percent(70).then_some(reader), PacketClass::Fills),
        12..15 => (dice.percent(70).then_some(other), dice.percent(50).then_some(home), PacketClass::Writes),
        15..18 => (dice.percent(50).then(|| any_module(setup, dice)), Some(home), PacketClass::Writes),
        _ => (Some(any_module(setup, dice)), dice.percent(50).then(|| any_module(setup, dice)), PacketClass::All),
    };
    Skew { source, target, class, late: Ps(logarithmic(dice, 4_000_000, 4)) }
}

/// Delays publications to the reader's module: its replica stays old, while other modules go on.
fn late_publication(setup: &Setup, reader: ModuleId, dice: &mut Dice) -> Skew {
    let source = dice.percent(70).then(|| any_module(setup, dice));
    let late = Ps(logarithmic(dice, 4_000_000, 4));
    Skew { source, target: Some(reader), class: PacketClass::Writes, late }
}

/// Candidate for a stale read, as thread and location: a weak load after a strong load in the thread, if any.
fn victim(setup: &Setup, dice: &mut Dice) -> (usize, Location) {
    let mut all: Vec<(usize, Location)> = Vec::new();
    for (thread, one) in setup.program.threads.iter().enumerate() {
        let mut strong = false;
        for instruction in &one.code {
            match *instruction {
                Instruction::Load { order: Order::WEAK, location, .. } if strong => all.push((thread, location)),
                Instruction::Load { order, .. } | Instruction::Fence { order } => strong |= order != Order::WEAK,
                _ => {}
            }
        }
    }
    if all.is_empty() { any_load(setup, dice) } else { all[dice.below(all.len())] }
}

/// Any thread and any location.
fn any_load(setup: &Setup, dice: &mut Dice) -> (usize, Location) {
    let location = dice.below(setup.addresses.len()) as u16;
    (dice.below(setup.program.threads.len()), Location(location))
}

/// Module on which a thread runs in the test's last kernel; host threads run at the host's module.
fn module_of(setup: &Setup, thread: usize) -> ModuleId {
    let placement = setup.program.threads[thread].placement;
    if placement == ThreadPlacement::Host {
        return ModuleId(setup.modules());
    }
    let of_thread = |(gpu, cta): (GpuId, u16)| placement == ThreadPlacement::Cta { gpu, cta };
    let cta = Setup::ctas(&setup.program).into_iter().position(of_thread).expect("a stream is a CTA's");
    setup.slots[setup.slots.len() - 1][cta].module
}

/// Any module, including the host's module if a host exists.
fn any_module(setup: &Setup, dice: &mut Dice) -> ModuleId {
    ModuleId(dice.below(usize::from(setup.modules() + u8::from(setup.has_host))) as u8)
}

/// Draws warps outside the test: none, a few, or many. In a race noise would evict the copies intended to become stale.
fn noise(setup: &Setup, aim: RunFocus, dice: &mut Dice) -> Vec<Noise> {
    let most = if aim == RunFocus::Race { dice.pick(&[0, 0, 0, 2, 4]) } else { dice.pick(&[0, 2, 4, NOISE]) };
    let length = dice.pick(&[2, 6, 24]);
    let scale = logarithmic(dice, 1, 11) as usize;
    (0..dice.below(most + 1))
        .map(|_| {
            let kernel = dice.below(setup.lead + setup.slots.len());
            let ops = (0..1 + dice.below(length)).map(|_| noise_op(setup, scale, dice)).collect();
            Noise { kernel, slot: noise_post(setup, kernel, dice), ops }
        })
        .collect()
}

/// SM for a noise warp; in many cases an SM that also runs a test CTA.
fn noise_post(setup: &Setup, kernel: usize, dice: &mut Dice) -> SmSlot {
    let beside = kernel.checked_sub(setup.lead).filter(|_| dice.percent(60));
    match beside {
        Some(kernel) => dice.pick(&setup.slots[kernel]),
        None => {
            let gpu = dice.below(usize::from(setup.shape.gpus)) as u8;
            any_post(setup, gpu, dice)
        }
    }
}

fn noise_op(setup: &Setup, scale: usize, dice: &mut Dice) -> NoiseOp {
    let line = noise_line(setup, dice);
    let scope = dice.pick(&[Scope::Cta, Scope::Gpu, Scope::Gpu, Scope::Sys]);
    let relaxed = if dice.percent(60) { Order::WEAK } else { Order::relaxed(scope) };
    match dice.below(20) {
        0..9 => NoiseOp::Load(line, dice.pick(&[Mask(0xff), Mask(0xff00), Mask::ALL]), relaxed),
        9..13 => NoiseOp::Store(line, UNUSED, relaxed),
        13 => NoiseOp::Atomic(line, Order::relaxed(scope)),
        14 => NoiseOp::Load(line, Mask(0xff), Order::acquire(scope)),
        15 => NoiseOp::Fence(Order::new(
            dice.pick(&[Semantics::AcquireRelease, Semantics::SequentiallyConsistent]),
            scope,
        )),
        16 | 17 => NoiseOp::Use,
        _ => NoiseOp::Delay(dice.below(scale + 1) as u32),
    }
}

/// A test line, a line in the test's regions, or any other line.
fn noise_line(setup: &Setup, dice: &mut Dice) -> Line {
    let Address { line, .. } = setup.addresses[dice.below(setup.addresses.len())];
    let lines = setup.page_bytes / 128;
    match dice.below(10) {
        0..4 => line,
        4..6 => Line(line.0 - line.0 % setup.region + dice.below(setup.region as usize) as u64),
        _ => Line(dice.below(PAGES as usize) as u64 * lines + dice.below(setup.region as usize) as u64),
    }
}
