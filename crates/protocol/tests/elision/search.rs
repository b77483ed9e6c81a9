//! All kernel sequences, with unlimited length: a breadth-first search over the combined states of reference and
//! table.

use crate::kernel::Kernel;
use crate::truth::{Access, Machine, Violation, World};
use std::collections::HashSet;
use std::hash::Hash;
use std::rc::Rc;
use tombolo_protocol::elision::{Elision, KernelId, ModuleSet};

/// The input for a search: a machine, its kernels and the search options.
#[derive(Clone, Debug)]
pub(crate) struct Scenario {
    pub(crate) machine: Machine,
    pub(crate) kernels: Vec<Kernel>,
    /// Maximum number of concurrent kernels.
    pub(crate) streams: usize,
    /// Set when a missing required operation counts as a failure, even before a load exposes it.
    pub(crate) oracle: bool,
}

/// The shortest failing sequence found by a search.
#[derive(Clone, Debug)]
pub(crate) struct Trace {
    /// Kernels launched, in order.
    pub(crate) launches: Vec<usize>,
    pub(crate) wrong: Violation,
}

/// A search result.
#[derive(Clone, Debug)]
pub(crate) struct SearchResult {
    pub(crate) states: usize,
    /// Set when all states were visited.
    pub(crate) complete: bool,
    pub(crate) trace: Option<Trace>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct SearchState<E> {
    world: World,
    elision: E,
    running: Vec<usize>,
}

/// The order of a kernel's accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    LoadsFirst,
    StoresFirst,
}

/// The distinct orders for a kernel.
fn orders(kernel: &Kernel) -> &'static [Order] {
    let stores = kernel.accesses.iter().filter(|access| access.write).count();
    let mixed = stores > 0 && stores < kernel.accesses.len();
    if mixed { &[Order::LoadsFirst, Order::StoresFirst] } else { &[Order::LoadsFirst] }
}

#[derive(Clone, Copy, Debug)]
enum Event {
    /// A kernel runs alone, from launch to end.
    Run(usize, Order),
    /// A kernel starts. If the flag is set, running kernels access their lines between the boundary's operations.
    Launch(usize, bool),
    /// A kernel performs its accesses again and ends.
    Finish(usize),
}

/// Searches until a failure occurs or all states are visited.
pub(crate) fn search<E: Elision + Clone + Eq + Hash>(scenario: &Scenario, empty: E, most: usize) -> SearchResult {
    let start = Rc::new(SearchState { world: World::new(&scenario.machine), elision: empty, running: Vec::new() });
    let mut seen = HashSet::from([Rc::clone(&start)]);
    let mut reached = vec![(start, None::<(usize, Event)>)];
    let mut next = 0;
    while next < reached.len() && reached.len() < most {
        let state = Rc::clone(&reached[next].0);
        for event in events(scenario, &state.running) {
            let mut after = SearchState::clone(&state);
            if let Err(wrong) = step(scenario, &mut after, event) {
                let launches = launches(&reached, next, event);
                return SearchResult { states: reached.len(), complete: false, trace: Some(Trace { launches, wrong }) };
            }
            let after = Rc::new(after);
            if !seen.insert(Rc::clone(&after)) {
                continue;
            }
            let idle = after.running.is_empty();
            let whole = if idle { ends(&scenario.machine, &after.world, &after.elision) } else { Ok(()) };
            if let Err(wrong) = whole {
                let launches = launches(&reached, next, event);
                return SearchResult { states: reached.len(), complete: false, trace: Some(Trace { launches, wrong }) };
            }
            reached.push((after, Some((next, event))));
        }
        next += 1;
    }
    SearchResult { states: reached.len(), complete: next == reached.len(), trace: None }
}

fn events(scenario: &Scenario, running: &[usize]) -> Vec<Event> {
    let all = 0..scenario.kernels.len();
    if scenario.streams == 1 {
        return all
            .flat_map(|kernel| orders(&scenario.kernels[kernel]).iter().map(move |&o| Event::Run(kernel, o)))
            .collect();
    }
    let mut events: Vec<Event> = running.iter().map(|&kernel| Event::Finish(kernel)).collect();
    if running.len() < scenario.streams {
        let apart = |&kernel: &usize| {
            !running
                .iter()
                .any(|&other| other == kernel || scenario.kernels[kernel].conflicts(&scenario.kernels[other]))
        };
        events.extend(all.filter(apart).flat_map(|kernel| [false, true].map(|between| Event::Launch(kernel, between))));
    }
    events
}

/// A state, and the predecessor and event that first reached it.
type VisitedState<E> = (Rc<SearchState<E>>, Option<(usize, Event)>);

fn launches<E>(reached: &[VisitedState<E>], mut at: usize, last: Event) -> Vec<usize> {
    let launched = |event| match event {
        Event::Run(kernel, _) | Event::Launch(kernel, _) => Some(kernel),
        Event::Finish(_) => None,
    };
    let mut launches: Vec<usize> = launched(last).into_iter().collect();
    while let Some((before, event)) = reached[at].1 {
        launches.extend(launched(event));
        at = before;
    }
    launches.reverse();
    launches
}

fn step<E: Elision + Clone>(scenario: &Scenario, state: &mut SearchState<E>, event: Event) -> Result<(), Violation> {
    match event {
        Event::Run(kernel, order) => {
            launch(scenario, state, kernel, false, order)?;
            finish(scenario, state, kernel)?;
        }
        Event::Launch(kernel, between) => {
            launch(scenario, state, kernel, between, Order::LoadsFirst)?;
            state.running.push(kernel);
        }
        Event::Finish(kernel) => {
            perform(&scenario.machine, &mut state.world, &scenario.kernels[kernel].accesses, Order::StoresFirst)?;
            state.running.retain(|&running| running != kernel);
            finish(scenario, state, kernel)?;
        }
    }
    Ok(())
}

fn launch<E: Elision>(
    scenario: &Scenario,
    state: &mut SearchState<E>,
    kernel: usize,
    between: bool,
    order: Order,
) -> Result<(), Violation> {
    let Scenario { machine, kernels, .. } = scenario;
    let id = KernelId(kernel as u32);
    let boundary = kernels[kernel].with_packet(id, |packet| state.elision.launch(packet, &mut |_| {}));
    let accesses = &kernels[kernel].accesses;
    let (invalidate, flush) = state.world.needed(machine, accesses);
    for (module, operation) in boundary.iter() {
        let lacks = |needed: ModuleSet, done: bool| needed.contains(module) && !done;
        let lacks_any = lacks(invalidate, operation.invalidate.is_some()) || lacks(flush, operation.flush.is_some());
        if scenario.oracle && lacks_any {
            return Err(Violation::NotDone(module));
        }
    }
    let running = state.running.iter().filter(|_| between);
    let others: Vec<&[Access]> = running.map(|&other| kernels[other].accesses.as_slice()).collect();
    state.world.perform(machine, &boundary, |world| {
        others.iter().try_for_each(|accesses| perform(machine, world, accesses, Order::LoadsFirst))
    })?;
    perform(machine, &mut state.world, accesses, order)
}

fn finish<E: Elision>(scenario: &Scenario, state: &mut SearchState<E>, kernel: usize) -> Result<(), Violation> {
    let boundary = state.elision.finish(KernelId(kernel as u32), &mut |_| {});
    state.world.perform(&scenario.machine, &boundary, |_| Ok(()))
}

/// Performs a kernel's accesses.
pub(crate) fn perform(
    machine: &Machine,
    world: &mut World,
    accesses: &[Access],
    order: Order,
) -> Result<(), Violation> {
    let first = match order {
        Order::LoadsFirst => false,
        Order::StoresFirst => true,
    };
    let ordered = accesses.iter().filter(|access| access.write == first);
    ordered.chain(accesses.iter().filter(|access| access.write != first)).try_for_each(|&a| world.access(machine, a))
}

/// Checks that nothing would be lost if the program ended in this state.
pub(crate) fn ends<E: Elision + Clone>(machine: &Machine, world: &World, elision: &E) -> Result<(), Violation> {
    let mut world = world.clone();
    let boundary = elision.clone().end(&mut |_| {});
    world.perform(machine, &boundary, |_| Ok(()))?;
    world.is_whole()
}
