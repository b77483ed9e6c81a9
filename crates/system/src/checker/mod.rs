//! Checks that loads in a timing run return values that the memory model allows. Lines carry versions, and every load
//! is compared with the stores that must have been visible to it.
//!
//! A load is wrong if the returned store has been overwritten by a later store, and the later store happens before the
//! load. The following happen before a load:
//! - earlier stores by its own warp, and stores before a barrier in its CTA;
//! - stores that a release and an acquire with sufficient scopes order before it, through a flag;
//! - all stores by earlier kernels: in its stream, or before a host synchronisation (`order`);
//! - host writes before its kernel, by copies and by host code.
//!
//! Host reads are checked like device loads. A copy from the device, or a read by host code, must return the values
//! stored by the host and by earlier kernels. If memories have replicas for a line, or if pages move, host reads are
//! not checked.
//!
//! A load is also wrong if the returned store happens after the load, was never issued, or went to different bytes. A
//! poll that passes on a flag returns the flag's store or a later one. If stores in an earlier kernel raced, all loads
//! in later kernels must agree on the winning store.
//!
//! Racing stores, and stores by concurrent kernels, never make a load wrong, so every reported violation is real. Not
//! detected: synchronisation through values instead of flags, atomics' return values, and grains on which more than a
//! few dozen stores race.
//!
//! - `versions`: line contents. `order`: kernel order. `vector_clock`: the happens-before relation. `history`: the stores
//!   to a line. `verdict`: the versions that a load must not return.

mod history;
mod order;
#[cfg(test)]
mod tests;
mod vector_clock;
mod verdict;
mod versions;

use history::LineHistory;
pub use order::LaunchOrder;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
pub use tombolo_metrics::{CheckReport, Violation, ViolationKind, ViolationSite};
use tombolo_model::message::Flag;
use tombolo_model::observe::{ValueProbe, WarpSlot};
use tombolo_model::sm::{KernelSlot, entry};
use tombolo_types::{ArrayInfo, Line, LineSize, Mask, ModuleId, Ps, Scope};
use vector_clock::{Moment, VectorClock};
use verdict::Mismatch;
pub(crate) use versions::Version;
pub use versions::Versions;

/// Maximum number of reported places.
const MOST_PLACES: usize = 100;

/// Maximum number of violations reported in full.
const MOST_VIOLATIONS: usize = 20;

/// Checks one run. Shared by the run's partitions.
pub struct Checker {
    state: Mutex<CheckerState>,
    line: LineSize,
    /// Arrays, sorted by address.
    arrays: Vec<ArrayInfo>,
}

/// A store in the current window.
struct Store {
    launch: u32,
    at: Moment,
    knows: VectorClock,
    by: WarpSlot,
    line: Line,
    mask: Mask,
}

/// A load in flight or returned.
#[derive(Clone, Default)]
struct Load {
    launch: u32,
    at: Moment,
    knows: VectorClock,
    returned: Option<LoadResult>,
}

/// Data returned by a load transaction: for a poll with its single transaction, the whole result.
#[derive(Clone, Copy)]
struct LoadResult {
    at: Ps,
    line: Line,
    mask: Mask,
    data: Versions,
}

/// Stores that set a flag, and the release before these stores.
#[derive(Default)]
struct FlagState {
    /// Stores that set the flag.
    stores: Vec<Version>,
    /// Knowledge that the storing warp had released.
    released: Option<Release>,
}

/// A release: the releasing warp, its scope, and the knowledge made visible.
#[derive(Clone)]
struct Release {
    by: WarpSlot,
    cta: u32,
    scope: Scope,
    knows: VectorClock,
}

/// State for the warp in a slot.
#[derive(Default)]
struct WarpState {
    launch: u32,
    number: u32,
    cta: u32,
    sequence: u32,
    knows: VectorClock,
    released: Option<Release>,
    found: Vec<Release>,
    /// Loads, indexed by result slot.
    loads: Vec<Load>,
}

impl WarpState {
    fn now(&self) -> Moment {
        Moment { warp: self.number, sequence: self.sequence }
    }

    /// Knowledge including the warp's own current moment.
    fn all(&self) -> VectorClock {
        self.knows.with(self.now())
    }
}

#[derive(Default)]
struct CheckerState {
    order: LaunchOrder,
    /// Current window: odd numbers denote kernel windows, the next even number denotes host activity after them.
    window: Option<u32>,
    /// Last kernel started in each slot, indexed by slot.
    launches: Vec<Option<u32>>,
    /// First version in the current window.
    first: Version,
    /// Stores in the current window, indexed by version.
    stores: Vec<Store>,
    warps: FxHashMap<WarpSlot, WarpState>,
    started: u32,
    ctas: u32,
    lines: FxHashMap<Line, LineHistory>,
    flags: FxHashMap<Flag, FlagState>,
    /// Host reads in flight, by transfer number, each with its window.
    host_loads: FxHashMap<u32, (u32, Load)>,
    loads: u64,
    stores_in_all: u64,
    violations: u64,
    told: BTreeSet<Violation>,
    /// Wrong loads by launch, module and array.
    places: BTreeMap<(u32, ModuleId, Option<usize>), WrongLoads>,
}

/// Wrong loads in one place.
#[derive(Clone, Copy)]
struct WrongLoads {
    from: u64,
    to: u64,
    loads: u64,
}

impl CheckerState {
    fn window(&self) -> u32 {
        self.window.unwrap_or(0)
    }

    /// Opens a window; the previous window's stores, warps and flags are discarded.
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
    /// Creates a checker for a run with the given line size, for a program with launches in `order` and with `arrays`
    /// sorted by address.
    pub fn new(line: LineSize, order: LaunchOrder, arrays: &[ArrayInfo]) -> Checker {
        let state = CheckerState { first: 1, order, ..CheckerState::default() };
        Checker { state: Mutex::new(state), line, arrays: arrays.to_vec() }
    }

    /// Index of the array around an address.
    fn array(&self, address: u64) -> Option<usize> {
        let at = self.arrays.partition_point(|array| array.base <= address).checked_sub(1)?;
        self.arrays[at].addresses().contains(&address).then_some(at)
    }

    /// Places with wrong loads, as reported.
    fn places(&self, state: &CheckerState) -> Vec<ViolationSite> {
        let place = |(&(launch, module, array), wrong): (&(u32, ModuleId, Option<usize>), &WrongLoads)| {
            let base = array.map_or(0, |array| self.arrays[array].base);
            ViolationSite {
                array: array.map(|array| self.arrays[array].name.clone()),
                module: if module == WarpSlot::HOST.module { HOST.to_owned() } else { module.to_string() },
                launch,
                bytes: [wrong.from - base, wrong.to - base],
                violations: wrong.loads,
            }
        };
        state.places.iter().take(MOST_PLACES).map(place).collect()
    }

    fn state(&self) -> MutexGuard<'_, CheckerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Result up to this moment.
    pub fn checked(&self) -> CheckReport {
        let state = self.state();
        let first = state.told.iter().cloned().collect();
        let places = self.places(&state);
        CheckReport { loads: state.loads, stores: state.stores_in_all, violations: state.violations, first, places }
    }

    fn report(
        &self,
        state: &mut CheckerState,
        (slot, launch): (WarpSlot, u32),
        (at, line): (Ps, Line),
        wrong: Mismatch,
    ) {
        let Mismatch { grain, kind, why } = wrong;
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
        let wrongs = state.places.entry(place).or_insert(WrongLoads { from, to, loads: 0 });
        *wrongs = WrongLoads { from: wrongs.from.min(from), to: wrongs.to.max(to), loads: wrongs.loads + 1 };
        state.told.insert(violation);
        if state.told.len() > MOST_VIOLATIONS {
            state.told.pop_last();
        }
    }
}

impl ValueProbe<Versions> for std::sync::Arc<Checker> {
    fn kernel(&self, launch: u32, slot: KernelSlot) {
        let state = &mut *self.state();
        if entry(&mut state.launches, slot).replace(launch) == Some(launch) {
            return;
        }
        let window = 2 * state.order.window(launch) + 1;
        if state.window == Some(window) {
            // The kernel takes over a slot from a kernel that has ended.
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
        state.warps.insert(core, WarpState { launch, number: state.started, ..WarpState::default() });
        state.started += 1;
    }

    fn cta(&self, one: WarpSlot, slots: u64, kernel: KernelSlot) {
        let state = &mut *self.state();
        state.ctas += 1;
        let launch = entry(&mut state.launches, kernel).expect("a kernel starts before its CTAs");
        for slot in bits(slots) {
            let warp = WarpState { launch, number: state.started, cta: state.ctas, ..WarpState::default() };
            state.started += 1;
            state.warps.insert(WarpSlot { slot, ..one }, warp);
        }
    }

    fn barrier(&self, one: WarpSlot, slots: u64) {
        let state = &mut *self.state();
        let warps = || bits(slots).map(|slot| WarpSlot { slot, ..one });
        let known = |slot: WarpSlot| state.warps.get(&slot).map(WarpState::all);
        let all = warps().filter_map(known).reduce(|all, one| all.join(&one)).unwrap_or_default();
        for slot in warps() {
            if let Some(warp) = state.warps.get_mut(&slot) {
                warp.knows = all.clone();
            }
        }
    }

    fn released(&self, slot: WarpSlot, scope: Scope) {
        if let Some(warp) = self.state().warps.get_mut(&slot) {
            warp.released = Some(Release { by: slot, cta: warp.cta, scope, knows: warp.all() });
        }
    }

    fn flag_found(&self, slot: WarpSlot, result: u8, flag: Flag) {
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
        let returned = LoadResult { at: now, line, mask, data };
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
        // Reads from earlier windows have returned.
        state.host_loads.retain(|_, (of, _)| *of == window);
        state.host_loads.insert(number, (window, load));
        true
    }

    fn host_read(&self, now: Ps, number: u32, line: Line, mask: Mask, data: Versions) {
        let state = &mut *self.state();
        state.loads += 1;
        let (window, load) = state.host_loads.get(&number).expect("a read of the host has begun").clone();
        // If a kernel has begun in the meantime, the read's result can no longer be attributed to earlier stores.
        if window != state.window() {
            return;
        }
        if let Some(wrong) = state.load(&load, &LoadResult { at: now, line, mask, data }) {
            self.report(state, (WarpSlot::HOST, load.launch), (now, line), wrong);
        }
    }

    fn host_writes(&self, line: Line, mask: Mask) -> Option<Versions> {
        self.host(WarpSlot::HOST);
        Some(Versions::of(self.state().store(WarpSlot::HOST, line, mask, Flag::NONE)))
    }
}

/// The host's name in reports when no host core is modelled.
const HOST: &str = "host";

/// A warp slot's name in reports.
fn name(slot: WarpSlot) -> String {
    if slot == WarpSlot::HOST {
        return format!("the {HOST}");
    }
    format!("{} {} warp {}", slot.module, slot.sm, slot.slot)
}

/// Indices of set bits.
pub(crate) fn bits(word: u64) -> impl Iterator<Item = u8> {
    (0..64).filter(move |bit| word >> bit & 1 != 0)
}
