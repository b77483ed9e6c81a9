//! Whether loads of a timing run return what the memory model allows: lines carry versions, and every load is held to
//! what must have been visible to it.
//!
//! A load is wrong when the store that it returns was overwritten by a later one that happens before the load. What
//! happens before a load:
//! - earlier stores of its own warp, and those before a barrier of its CTA;
//! - stores that a release and an acquire of wide enough scopes put before it, through a flag;
//! - all stores of kernels before its own: of its stream, or before what the host waited for (`order`);
//! - what the host wrote before its kernel, by copies and by its code.
//!
//! The host's own reads are loads like others: a copy from the device, or a read of its code, returns what kernels before it
//! and the host itself have stored. Where memories have replicas of a line, or pages move, its reads are not judged.
//!
//! A load is wrong, too, when the store that it returns happens after it, was issued by nobody or went to other bytes. A
//! poll that passes on a flag returns the flag's store or a later one. Where stores of an earlier kernel raced, all loads
//! of later ones return the same of them.
//!
//! Stores that race, and those of kernels side by side, are never held against a load, so a run that is reported wrong is wrong. What is not seen:
//! synchronisation through values other than flags, what atomics return, grains of lines that more than some dozens
//! of stores race on.
//!
//! - `versions`: what lines carry. `order`: which kernels come before which. `knowledge`: what happens before what. `history`: the stores to a line. `verdict`: what
//!   of them a load must not return.

mod history;
mod knowledge;
mod order;
#[cfg(test)]
mod tests;
mod verdict;
mod versions;

use history::History;
use knowledge::{Knowledge, Moment};
pub use order::LaunchOrder;
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tombolo_model::kernel_slot::{KernelSlot, entry};
use tombolo_model::message::Flag;
use tombolo_model::watch::{WarpSlot, Watch};
use tombolo_types::{ArrayInfo, Line, LineSize, Mask, ModuleId, Ps, Scope};
use verdict::Wrong;
use versions::Version;
pub use versions::Versions;

/// A load that returned what it must not.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Violation {
    /// When it returned, in picoseconds.
    pub time_ps: u64,
    /// Where it was issued, such as `module3 sm1 warp 17`.
    pub by: String,
    /// Kernel, counted from 0 in the order of launches.
    pub launch: u32,
    /// Address of the first byte, as the program has it.
    pub address: u64,
    /// In which way it is wrong.
    pub kind: Kind,
    /// What it returned, and why it must not.
    pub why: String,
}

/// In which way a load is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Kind {
    /// It returned what had been overwritten before it.
    #[serde(rename = "old")]
    Old,
    /// It returned a store that happens after it, or that nobody had issued.
    #[serde(rename = "future")]
    Future,
    /// It returned a store to other bytes.
    #[serde(rename = "misplaced")]
    Misplaced,
    /// A poll passed on its flag and returned bytes older than the store that leaves the flag.
    #[serde(rename = "early-flag")]
    EarlyFlag,
}

/// What a checked run found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Checked {
    /// Line transactions of loads whose result was checked.
    pub loads: u64,
    /// Line transactions of stores and atomics that were numbered.
    pub stores: u64,
    /// Loads that returned what they must not.
    pub violations: u64,
    /// The first of them by time.
    pub first: Vec<Violation>,
    /// All of them by launch, module and array, in this order: the first hundred places.
    pub places: Vec<Place>,
}

/// Loads of one array by one module in one launch that returned what they must not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Place {
    /// The array; null of addresses that are in none.
    pub array: Option<String>,
    /// The module that loaded, such as `module3`.
    pub module: String,
    /// Kernel, counted from 0 in the order of launches.
    pub launch: u32,
    /// From the first to one past the last, in the array, of the first wrong bytes of these loads; of no array, addresses.
    pub bytes: [u64; 2],
    /// How many loads.
    pub violations: u64,
}

/// Places that are told.
const PLACES_TOLD: usize = 100;

/// Violations that are told in full.
const TOLD: usize = 20;

/// Checks one run. Shared by its partitions.
pub struct Checker {
    state: Mutex<State>,
    line: LineSize,
    /// In order of address.
    arrays: Vec<ArrayInfo>,
}

/// A store of the current window.
struct Store {
    launch: u32,
    at: Moment,
    knows: Knowledge,
    by: WarpSlot,
    line: Line,
    mask: Mask,
}

/// A load.
#[derive(Clone, Default)]
struct Load {
    launch: u32,
    at: Moment,
    knows: Knowledge,
    returned: Option<Returned>,
}

/// What a transaction of a load has returned: for a poll, which has one, all of it.
#[derive(Clone, Copy)]
struct Returned {
    at: Ps,
    line: Line,
    mask: Mask,
    data: Versions,
}

/// What a flag stands for.
#[derive(Default)]
struct Left {
    /// The stores that leave it.
    stores: Vec<Version>,
    /// What their warp had made visible.
    released: Option<Released>,
}

/// What a warp had made visible when it released.
#[derive(Clone)]
struct Released {
    by: WarpSlot,
    cta: u32,
    scope: Scope,
    knows: Knowledge,
}

/// The warp in a slot.
#[derive(Default)]
struct Warp {
    launch: u32,
    number: u32,
    cta: u32,
    sequence: u32,
    knows: Knowledge,
    released: Option<Released>,
    found: Vec<Released>,
    /// By result slot.
    loads: Vec<Load>,
}

impl Warp {
    fn now(&self) -> Moment {
        Moment { warp: self.number, sequence: self.sequence }
    }

    /// What it knows, itself included.
    fn all(&self) -> Knowledge {
        self.knows.with(self.now())
    }
}

#[derive(Default)]
struct State {
    order: LaunchOrder,
    /// The window at hand: odd numbers are those of kernels, the even one behind is what the host does there.
    window: Option<u32>,
    /// By slot: the kernel that started there last.
    launches: Vec<Option<u32>>,
    /// First version of the current window.
    first: Version,
    /// Stores of the current window, by version.
    stores: Vec<Store>,
    warps: FxHashMap<WarpSlot, Warp>,
    started: u32,
    ctas: u32,
    lines: FxHashMap<Line, History>,
    flags: FxHashMap<Flag, Left>,
    /// Reads of the host, by their transfer, with the window of each.
    host_loads: FxHashMap<u32, (u32, Load)>,
    loads: u64,
    stores_in_all: u64,
    violations: u64,
    told: BTreeSet<Violation>,
    /// By launch, module and array.
    places: BTreeMap<(u32, ModuleId, Option<usize>), Wrongs>,
}

/// Wrong loads of one place.
#[derive(Clone, Copy)]
struct Wrongs {
    from: u64,
    to: u64,
    loads: u64,
}

impl State {
    fn window(&self) -> u32 {
        self.window.unwrap_or(0)
    }

    /// A window begins: all of those before it is done.
    fn open(&mut self, window: u32) {
        self.window = Some(window);
        self.first += self.stores.len() as Version;
        self.stores.clear();
        self.warps.clear();
        self.flags.clear();
        self.started = 0;
    }

    fn store(&mut self, slot: WarpSlot, line: Line, mask: Mask, flag: Flag) -> Version {
        self.stores_in_all += 1;
        let warp = self.warps.get_mut(&slot).expect("a warp that stores has been started");
        warp.sequence += 1;
        let (launch, at, knows) = (warp.launch, warp.now(), warp.knows.clone());
        let version = self.first + self.stores.len() as Version;
        if flag != Flag::NONE {
            let left = self.flags.entry(flag).or_default();
            left.stores.push(version);
            left.released.clone_from(&warp.released);
        }
        self.stores.push(Store { launch, at, knows, by: slot, line, mask });
        let mut history = self.lines.remove(&line).unwrap_or_default();
        history.advance(self.window());
        history.store(version, mask, |earlier| self.is_before(earlier, version));
        self.lines.insert(line, history);
        version
    }
}

impl Checker {
    /// A checker of a run with lines of this size, of a program whose launches have this order, with these arrays in order
    /// of address.
    pub fn new(line: LineSize, order: LaunchOrder, arrays: &[ArrayInfo]) -> Checker {
        let state = State { first: 1, order, ..State::default() };
        Checker { state: Mutex::new(state), line, arrays: arrays.to_vec() }
    }

    /// The array that holds an address.
    fn array(&self, address: u64) -> Option<usize> {
        let at = self.arrays.partition_point(|array| array.base <= address).checked_sub(1)?;
        self.arrays[at].addresses().contains(&address).then_some(at)
    }

    /// Where loads went wrong.
    fn places(&self, state: &State) -> Vec<Place> {
        let place = |(&(launch, module, array), wrong): (&(u32, ModuleId, Option<usize>), &Wrongs)| {
            let base = array.map_or(0, |array| self.arrays[array].base);
            Place {
                array: array.map(|array| self.arrays[array].name.clone()),
                module: if module == WarpSlot::HOST.module { HOST.to_owned() } else { module.to_string() },
                launch,
                bytes: [wrong.from - base, wrong.to - base],
                violations: wrong.loads,
            }
        };
        state.places.iter().take(PLACES_TOLD).map(place).collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What has been found.
    pub fn checked(&self) -> Checked {
        let state = self.state();
        let first = state.told.iter().cloned().collect();
        let places = self.places(&state);
        Checked { loads: state.loads, stores: state.stores_in_all, violations: state.violations, first, places }
    }

    fn report(&self, state: &mut State, (slot, launch): (WarpSlot, u32), (at, line): (Ps, Line), wrong: Wrong) {
        let Wrong { grain, kind, why } = wrong;
        state.violations += 1;
        let violation = Violation {
            time_ps: at.0,
            by: name(slot),
            launch,
            address: line.0 * self.line.bytes() + u64::from(grain) * self.line.grain(),
            kind,
            why,
        };
        let (from, to) = (violation.address, violation.address + self.line.grain());
        let place = (violation.launch, slot.module, self.array(from));
        let wrongs = state.places.entry(place).or_insert(Wrongs { from, to, loads: 0 });
        *wrongs = Wrongs { from: wrongs.from.min(from), to: wrongs.to.max(to), loads: wrongs.loads + 1 };
        state.told.insert(violation);
        if state.told.len() > TOLD {
            state.told.pop_last();
        }
    }
}

impl Watch<Versions> for std::sync::Arc<Checker> {
    fn kernel(&self, launch: u32, slot: KernelSlot) {
        let state = &mut *self.state();
        if entry(&mut state.launches, slot).replace(launch) == Some(launch) {
            return;
        }
        let window = 2 * state.order.window(launch) + 1;
        if state.window == Some(window) {
            // It has the slot of one that has ended.
            state.flags.retain(|flag, _| flag.kernel() != slot);
            return;
        }
        state.open(window);
    }

    fn host(&self, core: WarpSlot) {
        let state = &mut *self.state();
        let window = match state.window {
            None => 0,
            Some(window) if window % 2 == 0 => return,
            Some(window) => window + 1,
        };
        state.open(window);
        let launch = state.launches.iter().flatten().copied().max().unwrap_or_default();
        state.warps.insert(core, Warp { launch, number: state.started, ..Warp::default() });
        state.started += 1;
    }

    fn cta(&self, one: WarpSlot, slots: u64, kernel: KernelSlot) {
        let state = &mut *self.state();
        state.ctas += 1;
        let launch = entry(&mut state.launches, kernel).expect("a kernel starts before its CTAs");
        for slot in bits(slots) {
            let warp = Warp { launch, number: state.started, cta: state.ctas, ..Warp::default() };
            state.started += 1;
            state.warps.insert(WarpSlot { slot, ..one }, warp);
        }
    }

    fn barrier(&self, one: WarpSlot, slots: u64) {
        let state = &mut *self.state();
        let warps = || bits(slots).map(|slot| WarpSlot { slot, ..one });
        let known = |slot: WarpSlot| state.warps.get(&slot).map(Warp::all);
        let all = warps().filter_map(known).reduce(|all, one| all.join(&one)).unwrap_or_default();
        for slot in warps() {
            if let Some(warp) = state.warps.get_mut(&slot) {
                warp.knows = all.clone();
            }
        }
    }

    fn released(&self, slot: WarpSlot, scope: Scope) {
        if let Some(warp) = self.state().warps.get_mut(&slot) {
            warp.released = Some(Released { by: slot, cta: warp.cta, scope, knows: warp.all() });
        }
    }

    fn found(&self, slot: WarpSlot, result: u8, flag: Flag) {
        let state = &mut *self.state();
        let Some(warp) = state.warps.get_mut(&slot) else { return };
        if let Some(released) = state.flags.get(&flag).and_then(|left| left.released.as_ref()) {
            warp.found.push(released.clone());
        }
        let Some(returned) = warp.loads.get(usize::from(result)).and_then(|load| load.returned) else { return };
        let launch = warp.launch;
        if let Some(wrong) = state.poll(flag, &returned) {
            self.report(state, (slot, launch), (returned.at, returned.line), wrong);
        }
    }

    fn acquired(&self, slot: WarpSlot, scope: Scope) {
        let state = &mut *self.state();
        let Some(warp) = state.warps.get_mut(&slot) else { return };
        for released in std::mem::take(&mut warp.found) {
            let within = |scope: Scope| match scope {
                Scope::Cta => released.cta == warp.cta,
                Scope::Gpu => released.by.gpu == slot.gpu,
                Scope::Sys => true,
            };
            if within(scope) && within(released.scope) {
                warp.knows = warp.knows.join(&released.knows);
            }
        }
    }

    fn load(&self, slot: WarpSlot, result: u8) {
        let state = &mut *self.state();
        let warp = state.warps.get_mut(&slot).expect("a warp that loads has been started");
        warp.sequence += 1;
        let load = Load { launch: warp.launch, at: warp.now(), knows: warp.knows.clone(), returned: None };
        let index = usize::from(result);
        if warp.loads.len() <= index {
            warp.loads.resize(index + 1, Load::default());
        }
        warp.loads[index] = load;
    }

    fn loaded(&self, now: Ps, slot: WarpSlot, result: u8, line: Line, mask: Mask, data: Versions) {
        let state = &mut *self.state();
        state.loads += 1;
        let warp = state.warps.get_mut(&slot).expect("a warp that loads has been started");
        let load = &mut warp.loads[usize::from(result)];
        let returned = Returned { at: now, line, mask, data };
        load.returned = Some(returned);
        let load = load.clone();
        if let Some(wrong) = state.load(&load, &returned) {
            self.report(state, (slot, load.launch), (now, line), wrong);
        }
    }

    fn store(&self, slot: WarpSlot, line: Line, mask: Mask, flag: Flag) -> Versions {
        Versions::of(self.state().store(slot, line, mask, flag))
    }

    fn atomic(&self, slot: WarpSlot, line: Line, mask: Mask, flag: Flag) -> Version {
        self.state().store(slot, line, mask, flag)
    }

    fn host_reads(&self, number: u32) -> bool {
        self.host(WarpSlot::HOST);
        let state = &mut *self.state();
        let window = state.window();
        let warp = state.warps.get_mut(&WarpSlot::HOST).expect("the host has begun");
        warp.sequence += 1;
        let load = Load { launch: warp.launch, at: warp.now(), knows: warp.knows.clone(), returned: None };
        // Those of windows before have returned.
        state.host_loads.retain(|_, (of, _)| *of == window);
        state.host_loads.insert(number, (window, load));
        true
    }

    fn host_read(&self, now: Ps, number: u32, line: Line, mask: Mask, data: Versions) {
        let state = &mut *self.state();
        state.loads += 1;
        let (window, load) = state.host_loads.get(&number).expect("a read of the host has begun").clone();
        // Where a kernel has begun meanwhile, what it found is no longer told from what came before.
        if window != state.window() {
            return;
        }
        if let Some(wrong) = state.load(&load, &Returned { at: now, line, mask, data }) {
            self.report(state, (WarpSlot::HOST, load.launch), (now, line), wrong);
        }
    }

    fn host_writes(&self, line: Line, mask: Mask) -> Option<Versions> {
        self.host(WarpSlot::HOST);
        Some(Versions::of(self.state().store(WarpSlot::HOST, line, mask, Flag::NONE)))
    }
}

/// The host, as a report names it where no core of it is modelled.
const HOST: &str = "host";

/// A warp slot, as a report names it.
fn name(slot: WarpSlot) -> String {
    if slot == WarpSlot::HOST {
        return format!("the {HOST}");
    }
    format!("{} {} warp {}", slot.module, slot.sm, slot.slot)
}

/// The numbers of the bits that are set.
fn bits(word: u64) -> impl Iterator<Item = u8> {
    (0..64).filter(move |bit| word >> bit & 1 != 0)
}
