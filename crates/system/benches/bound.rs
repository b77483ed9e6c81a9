//! Upper bound for the speedup of a run on several threads over one thread, derived from the times of the run's events.
//!
//! `cargo bench -p tombolo-system --bench bound [stream|gather|remote]` prints a table for each case. The rows are
//! divisions of the machine into parts; each part runs its events sequentially. The rows contain the current
//! partitions, and finer partitions that would require a model without shared state within a module.
//!
//! Time is divided into windows, no longer than the least latency between two parts. Within a window, parts run
//! concurrently, and a barrier ends the window. On T threads a window takes max(events in its largest part, events / T)
//! plus a barrier, all measured in events. The bound is the number of all events divided by the sum over windows. The
//! bound assumes equal cost for every event, and free message exchange: an actual threaded run stays below it.

mod programs;

use std::sync::{Arc, Mutex};
use tombolo_machine::MachineConfig;
use tombolo_model::fabric::Direction;
use tombolo_model::layout::{ComponentKind, Unit};
use tombolo_model::message::Message;
use tombolo_model::observe::{Contents, NoteValue, ValueProbe};
use tombolo_protocol::Data;
use tombolo_system::{BrokenRules, run_watched};
use tombolo_types::{GpuId, Mask, ModuleId, Ps};

/// Cost of a barrier, in events. Source: measured on two cores, some 2 us at 0.2 us per event.
const BARRIER: f64 = 10.0;

/// Thread counts.
const THREADS: [u32; 4] = [2, 8, 16, 64];

/// Component that an event belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Component {
    Sm(ModuleId, u16),
    Slice(ModuleId, u16),
    /// A module's controller and copy engine.
    Controller(ModuleId),
    /// A GPU's port at the switch, in a single direction.
    GpuPort(GpuId, Direction),
    /// Further components between GPUs; the command processor; the driver.
    Beside,
}

/// Empty line contents, for a run with events reported to a [`Census`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct EmptyContents;

impl Data for EmptyContents {
    type Update = ();

    fn merge(&mut self, _: EmptyContents, _: Mask) {}

    fn update(&mut self, (): (), _: Mask) -> EmptyContents {
        EmptyContents
    }
}

impl Contents for EmptyContents {
    type Probe = Census;
    const BREAKABLE: bool = false;
    type Note<T: NoteValue> = ();

    fn exchange(self, _: Mask) {}
}

/// Window and component for each event.
#[derive(Clone)]
struct Census {
    window: Ps,
    events: Arc<Mutex<Vec<(u32, Component)>>>,
}

impl Census {
    fn note(&self, now: Ps, component: Component) {
        let window = u32::try_from(now.0 / self.window.0).expect("a benchmark is short");
        self.events.lock().expect("nobody panics while holding it").push((window, component));
    }
}

impl ValueProbe<EmptyContents> for Census {
    fn handles(&self, now: Ps, module: ModuleId, unit: Unit, _: &Message<EmptyContents>) {
        let component = match unit {
            Unit::Sm(sm) => Component::Sm(module, sm.0),
            Unit::Slice(slice) => Component::Slice(module, slice),
            Unit::Controller | Unit::CopyEngine => Component::Controller(module),
        };
        self.note(now, component);
    }

    fn hub_event(&self, now: Ps, place: ComponentKind, _: &Message<EmptyContents>) {
        let component =
            if let ComponentKind::GpuPort(gpu, way) = place { Component::GpuPort(gpu, way) } else { Component::Beside };
        self.note(now, component);
    }
}

/// A part of the machine that runs its events sequentially.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum SequentialPart {
    Hub,
    Gpu(u8),
    Module(ModuleId),
    One(Component),
}

/// Possible divisions of a machine.
#[derive(Clone, Copy, Debug)]
enum Division {
    /// GPUs with their ports, and the hub.
    Gpus,
    /// Modules, ports, and the hub: the current partitions.
    Modules,
    /// SMs, slices, controllers, ports.
    Components,
}

impl Division {
    const ALL: [(Division, &str); 3] =
        [(Division::Gpus, "GPUs"), (Division::Modules, "modules alone"), (Division::Components, "SMs and slices")];

    /// The part that handles a component's events.
    fn part(self, component: Component, modules_per_gpu: u8) -> SequentialPart {
        let module = match component {
            Component::Sm(module, _) | Component::Slice(module, _) | Component::Controller(module) => module,
            Component::GpuPort(gpu, _) if matches!(self, Division::Gpus) => return SequentialPart::Gpu(gpu.0),
            Component::GpuPort(..) => return SequentialPart::One(component),
            Component::Beside => return SequentialPart::Hub,
        };
        match self {
            Division::Gpus => SequentialPart::Gpu(module.0 / modules_per_gpu),
            Division::Modules => SequentialPart::Module(module),
            Division::Components => SequentialPart::One(component),
        }
    }
}

/// Speedup bound for each thread count: total events on one thread divided by the estimated time.
fn bounds(events: &[(u32, Component)], cut: Division, modules_per_gpu: u8) -> [f64; THREADS.len()] {
    let mut taken = [0.0; THREADS.len()];
    for window in events.chunk_by(|a, b| a.0 == b.0) {
        let part = |same: &[(u32, Component)]| (cut.part(same[0].1, modules_per_gpu), same.len());
        let mut parts: Vec<(SequentialPart, usize)> = window.chunk_by(|a, b| a.1 == b.1).map(part).collect();
        parts.sort_unstable();
        let sizes = parts.chunk_by(|a, b| a.0 == b.0).map(|same| same.iter().map(|(_, events)| events).sum());
        let sizes: Vec<usize> = sizes.collect();
        let (largest, all) = (sizes.iter().copied().max().unwrap_or(0) as f64, sizes.iter().sum::<usize>() as f64);
        for (taken, threads) in taken.iter_mut().zip(THREADS) {
            *taken += largest.max(all / f64::from(threads)) + BARRIER;
        }
    }
    taken.map(|taken| events.len() as f64 / taken)
}

/// Window length: at most the least latency between SMs and slices, and between modules.
fn window(machine: &MachineConfig) -> Ps {
    let crossbar = machine.crossbar.latency;
    if machine.topology.modules() > 1 { crossbar.min(machine.module_link.latency) } else { crossbar }
}

fn print(case: &str) {
    let spec = programs::spec("hmg", case);
    let census = Census { window: window(&spec.machine), events: Arc::default() };
    run_watched::<EmptyContents>(&spec, &census, BrokenRules::default()).expect("a sound program runs");
    let mut events = census.events.lock().expect("the run has ended");
    events.sort_unstable();
    let windows = events.chunk_by(|a, b| a.0 == b.0).count();
    let (machine, nanoseconds, mean) =
        (&spec.machine.name, census.window.0 as f64 / 1e3, events.len() / windows.max(1));
    println!("{case} on {machine}: {mean} events in a window of {nanoseconds:.1} ns");
    println!("{:24}{}", "", THREADS.map(|threads| format!("{:>8}", format!("T={threads}"))).concat());
    for (cut, name) in Division::ALL {
        let bounds = bounds(&events, cut, spec.machine.topology.modules_per_gpu);
        println!("{name:24}{}", bounds.map(|bound| format!("{bound:>8.2}")).concat());
    }
}

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    for case in ["stream", "gather", "remote"] {
        if wanted.is_empty() || wanted.iter().any(|arg| arg == case) {
            print(case);
        }
    }
}
