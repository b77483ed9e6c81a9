//! Observer for a run: receives loaded values, and supplies the values to store.

use crate::chart::SequenceChart;
use crate::script::{MissingResult, Results, Script};
use crate::setup::{Setup, SlowPort, SmSlot};
use crate::staging::{LitmusStreams, ThreadBinding, WarpId, WarpOp};
use crate::values::{AtomicUpdate, CellOffsets};
use rustc_hash::FxHashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tombolo_check::litmus::{FinalState, Instruction, Location, Value};
use tombolo_model::fabric::Packet;
use tombolo_model::layout::Unit;
use tombolo_model::message::{Flag, Message};
use tombolo_model::observe::{ValueProbe, WarpSlot};
use tombolo_model::sm::KernelSlot;
use tombolo_types::{Line, Mask, ModuleId, Ps, SmId};

/// Result slots per warp.
const RESULTS: usize = 64;

/// Immutable data, readable by every callback.
struct ObserverContext {
    setup: Setup,
    scripts: Vec<Script>,
    parts: FxHashMap<WarpId, ThreadBinding>,
    /// The host's operations, in order.
    hosted: Vec<ThreadBinding>,
}

/// A resident warp of the test.
struct ResidentWarp {
    part: ThreadBinding,
    /// Index of the warp's next operation.
    next: usize,
    /// By result slot: index of the instruction, or the location's index for the reader.
    bound: [Option<usize>; RESULTS],
}

/// Observes a single run.
pub struct Observer {
    context: ObserverContext,
    state: Mutex<ObserverState>,
}

#[derive(Default)]
struct ObserverState {
    launch: Option<u32>,
    /// Operations begun by the host.
    hosted: usize,
    /// By module: number of CTAs started in the current kernel.
    started: FxHashMap<ModuleId, u32>,
    /// Warps of the next CTA to start on each SM.
    coming: Vec<(WarpSlot, u32)>,
    warps: FxHashMap<WarpSlot, ResidentWarp>,
    /// By thread: results returned up to this point.
    results: Vec<Results>,
    /// By location: values at the end.
    memory: Vec<Option<Value>>,
    /// First use of a register before the value's arrival: thread and load.
    early: Option<(usize, MissingResult)>,
    chart: Option<SequenceChart>,
}

impl Observer {
    /// Creates an observer for a run of `setup`; `charted`: record a message chart.
    pub(crate) fn new(setup: &Setup, scripts: Vec<Script>, staging: &LitmusStreams, charted: bool) -> Arc<Observer> {
        let state = ObserverState {
            results: scripts.iter().map(|script| vec![None; script.code.len()]).collect(),
            memory: vec![None; setup.program.locations.len()],
            chart: charted.then(|| SequenceChart::new(setup)),
            ..ObserverState::default()
        };
        let context = ObserverContext {
            setup: setup.clone(),
            scripts,
            parts: staging.parts.clone(),
            hosted: staging.hosted.clone(),
        };
        Arc::new(Observer { context, state: Mutex::new(state) })
    }

    fn state(&self) -> MutexGuard<'_, ObserverState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Contents of registers and memory after the run, or a result missing at the time of need.
    ///
    /// # Errors
    /// The thread, and its load or atomic.
    pub(crate) fn ending(&self) -> Result<FinalState, (usize, MissingResult)> {
        let state = self.state();
        if let Some(early) = state.early {
            return Err(early);
        }
        let ending =
            |(thread, script): (usize, &Script)| script.ending(&state.results[thread]).map_err(|early| (thread, early));
        let registers: Vec<Vec<Value>> =
            self.context.scripts.iter().enumerate().map(ending).collect::<Result<_, _>>()?;
        let missing = |at| (self.context.scripts.len(), MissingResult(at));
        let memory: Vec<Value> =
            state.memory.iter().enumerate().map(|(at, value)| value.ok_or(missing(at))).collect::<Result<_, _>>()?;
        Ok(self.context.setup.program.final_state(&registers, &memory))
    }

    /// The recorded message chart, if recording was enabled.
    pub(crate) fn chart(&self) -> String {
        self.state().chart.as_ref().map(SequenceChart::text).unwrap_or_default()
    }
}

impl ObserverContext {
    fn initial(&self, location: Location) -> Value {
        self.setup.program.locations[usize::from(location.0)].initial
    }

    /// The location that an instruction accesses.
    fn location(&self, thread: usize, at: usize) -> Location {
        match self.scripts.get(thread) {
            Some(script) => script.code[at].location().expect("only accesses return values"),
            None => Location(at as u16),
        }
    }
}

impl ObserverState {
    /// Records a result's arrival in a slot of a test warp.
    fn returned(&mut self, context: &ObserverContext, slot: WarpSlot, result: u8, data: CellOffsets) {
        let Some(warp) = self.warps.get(&slot) else { return };
        let Some(at) = warp.bound[usize::from(result)] else { return };
        let thread = warp.part.thread;
        let location = context.location(thread, at);
        let value = data.value(context.setup.address(location).cell, context.initial(location));
        match self.results.get_mut(thread) {
            Some(results) => results[at] = Some(value),
            None => self.memory[at] = Some(value),
        }
        if let Some(chart) = &mut self.chart {
            chart.returned(slot, thread, at, value);
        }
    }

    /// Advances a test warp: returns the instruction issued at this point.
    fn issue(&mut self, slot: WarpSlot) -> Option<(usize, WarpOp)> {
        let warp = self.warps.get_mut(&slot)?;
        let act = *warp.part.operations.get(warp.next)?;
        warp.next += usize::from(!matches!(act, WarpOp::Polls(_)));
        Some((warp.part.thread, act))
    }

    /// Result of a computation; 0 if an input was missing, which is recorded.
    fn value_or_default<T: Default>(&mut self, thread: usize, value: Result<T, MissingResult>) -> T {
        value.unwrap_or_else(|early| {
            self.early.get_or_insert((thread, early));
            T::default()
        })
    }
}

impl ValueProbe<CellOffsets> for Arc<Observer> {
    fn kernel(&self, launch: u32, _: KernelSlot) {
        let mut state = self.state();
        if state.launch != Some(launch) {
            state.launch = Some(launch);
            state.started.clear();
            state.warps.clear();
        }
    }

    fn host(&self, core: WarpSlot) {
        let state = &mut *self.state();
        let part = self.context.hosted[state.hosted].clone();
        state.hosted += 1;
        state.warps.insert(core, ResidentWarp { part, next: 0, bound: [None; RESULTS] });
    }

    fn warp(&self, slot: WarpSlot, index: u32) {
        self.state().coming.push((slot, index));
    }

    fn cta(&self, one: WarpSlot, _slots: u64, _: KernelSlot) {
        let state = &mut *self.state();
        let rank = state.started.entry(one.module).or_default();
        let (kernel, own) = (state.launch.unwrap_or_default() as usize, *rank);
        *rank += 1;
        let (here, elsewhere): (Vec<_>, Vec<_>) = std::mem::take(&mut state.coming)
            .into_iter()
            .partition(|(slot, _)| (slot.module, slot.sm) == (one.module, one.sm));
        state.coming = elsewhere;
        for (slot, index) in here {
            match self.context.parts.get(&(kernel, one.module, own, index)) {
                Some(part) => {
                    state.warps.insert(slot, ResidentWarp { part: part.clone(), next: 0, bound: [None; RESULTS] });
                }
                None => {
                    state.warps.remove(&slot);
                }
            }
        }
    }

    fn flag_found(&self, slot: WarpSlot, _: u8, flag: Flag) {
        if flag == Flag::NONE {
            return;
        }
        if let Some(warp) = self.state().warps.get_mut(&slot)
            && let Some(WarpOp::Polls(_)) = warp.part.operations.get(warp.next)
        {
            warp.next += 1;
        }
    }

    fn load(&self, slot: WarpSlot, result: u8) {
        let state = &mut *self.state();
        // An atomic reserves its result slot at this call; its update is requested later.
        let Some(warp) = state.warps.get_mut(&slot) else { return };
        let at = match warp.part.operations.get(warp.next) {
            Some(WarpOp::Load(at) | WarpOp::Polls(at) | WarpOp::Atomic(at)) => *at,
            Some(WarpOp::Store(_)) | None => return,
        };
        warp.bound[usize::from(result)] = Some(at);
        if !matches!(warp.part.operations[warp.next], WarpOp::Atomic(_)) {
            state.issue(slot);
        }
    }

    fn loaded(&self, _now: Ps, slot: WarpSlot, result: u8, _line: Line, _mask: Mask, data: CellOffsets) {
        self.state().returned(&self.context, slot, result, data);
    }

    fn store(&self, slot: WarpSlot, _line: Line, _mask: Mask, _flag: Flag) -> CellOffsets {
        let state = &mut *self.state();
        let Some((thread, WarpOp::Store(at))) = state.issue(slot) else { return CellOffsets::default() };
        let script = &self.context.scripts[thread];
        let Instruction::Store { value, location, .. } = script.code[at] else { return CellOffsets::default() };
        let value = script.value(at, value, &state.results[thread]);
        let value = state.value_or_default(thread, value);
        if let Some(chart) = &mut state.chart {
            chart.stored(slot, thread, at, value);
        }
        CellOffsets::of(value, self.context.initial(location))
    }

    fn atomic(&self, slot: WarpSlot, _line: Line, _mask: Mask, _flag: Flag) -> AtomicUpdate {
        let state = &mut *self.state();
        let Some((thread, WarpOp::Atomic(at))) = state.issue(slot) else { return AtomicUpdate::default() };
        let script = &self.context.scripts[thread];
        let Instruction::Atomic { update, location, .. } = script.code[at] else { return AtomicUpdate::default() };
        let update = script.update(at, update, &state.results[thread]);
        let update = state.value_or_default(thread, update);
        if let Some(chart) = &mut state.chart {
            chart.issued(slot, thread, at);
        }
        AtomicUpdate { update, initial: self.context.initial(location) }
    }

    fn handles(&self, now: Ps, module: ModuleId, unit: Unit, message: &Message<CellOffsets>) {
        let old = match (unit, message) {
            (Unit::Sm(sm), Message::AtomicResult { warp, result, data, .. }) => Some((sm, *warp, *result, *data)),
            _ => None,
        };
        let state = &mut *self.state();
        if let Some(chart) = &mut state.chart {
            chart.handles(now, module, unit, message);
        }
        if let Some((sm, warp, result, data)) = old {
            let slot = self.slot(module, sm, warp);
            state.returned(&self.context, slot, result, data);
        }
    }

    fn delay(&self, source: ModuleId, target: ModuleId, packet: &Packet<CellOffsets>) -> Ps {
        self.context.setup.late(source, target, packet)
    }

    fn delivery(&self, module: ModuleId, source: usize, sm: SmId) -> Ps {
        let slot = SmSlot { module, sm: sm.0 };
        let fits = |slow: &&SlowPort| slow.slot == slot && slow.slice == source;
        Ps(self.context.setup.slow.iter().filter(fits).map(|slow| slow.late.0).sum())
    }
}

impl Observer {
    fn slot(&self, module: ModuleId, sm: SmId, slot: u8) -> WarpSlot {
        let gpu = tombolo_types::GpuId(module.0 / self.context.setup.shape.modules);
        WarpSlot { gpu, module, sm, slot }
    }
}
