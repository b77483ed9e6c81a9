//! The explorer: every interleaving of a small program on a small machine, driven by exactly the functions in
//! [`tombolo_protocol`] that the timing model also drives.
//!
//! [`run`] lays a [`Program`] out on a machine ([`ProgramLayout`]) and executes it under a protocol named by a
//! [`Config`], for every interleaving that channels, caches and threads allow. It reports the final states reached and
//! any violation. [`layouts`] enumerates the placements of threads and homes.
//!
//! - `state` defines a state, `machine` the initial state, `step` the possible successors.
//! - `scene` is a program with its layout. `sm` hosts threads and L1s, `sync` their acquires and releases. Both are
//!   independent from the `memory_system` below the L1s.
//! - `l2` hosts valid/invalid L2s, directories, memories and links: the duties listed in
//!   [`tombolo_protocol::coherence`]. `plans` connects these duties to the threads above.
//! - `nodes` is the second machine: clients and homes with direct transfers between caches.
//! - `boundaries` decides the actions between kernels, with the tables also used by the command processor.
//! - `pages` records page locations and each module's mappings. `paging` changes mappings and `publication` sends
//!   stores to modules with a copy, by the rules that the driver and the L2s use.
//! - `probe` tests a protocol for the assumptions behind the reductions; `edges` contains the declared message edges.
//! - `reduce` and `persistent` leave out steps that hide no forbidden outcome; `property` contains invariants beyond
//!   outcomes; `search` visits states, `chart` prints the path to a violation.
//!
//! Coverage:
//!
//! | aspect | explored |
//! | --- | --- |
//! | interleavings | all, for threads and messages |
//! | channels | the order declared by the protocol: requests to a home per line (per region if L2s send downgrades), fills and invalidations per region, no order otherwise |
//! | latency | any, for each message and each memory access |
//! | capacity | any: before a request that finds a line, branches with and without its eviction ([`Evictions`]) |
//! | placement | threads on SMs and modules, system homes, GPU homes ([`layouts`]) |
//! | sharing | locations on lines, sectors, regions, pages ([`Sharing`]), in pairs by declaration order; a location does not fill its sector |
//! | start | cold caches, warm caches ([`Start`]) |
//!
//! Kernel boundary: a wait for every thread's arrival and every SM's store acknowledgments, then the plans for
//! `Sync::Kernel` like in the command processor, then L1 invalidation. A thread without an instruction before its
//! boundary runs only in the later kernel: a CTA in the next kernel may be on any SM. A barrier waits for no thread
//! at a boundary.
//!
//! Modelled: any capacity of caches and directories (each possible eviction happens in some branch), any latency for
//! every message and memory access within the order its channel keeps. Not modelled: bounded queues (a message waits in
//! the channel for an arbitrary time), translation.

#[cfg(test)]
mod altered_hmg;
mod boundaries;
mod chart;
mod config;
mod copies;
mod edges;
mod host;
mod l2;
mod layout;
mod machine;
mod memory_system;
mod nodes;
mod pages;
mod paging;
mod persistent;
mod plans;
mod probe;
mod property;
mod publication;
mod reduce;
mod scene;
mod search;
mod sm;
mod state;
mod step;
mod sync;
mod trial;
mod values;

pub use boundaries::BoundaryPolicy;
pub use config::{ClientResources, Config, Evictions, Reductions, ReplicaUpdate, Start, UnrequestedChanges};
pub(crate) use layout::drawn_layout;
pub use layout::{PlacementParameters, ProgramLayout, RegionHomes, Sharing, Sm, gpus_of, layouts, possible_layouts};
pub use state::Violation;

use crate::litmus::{FinalState, Program};
use machine::Machine;
use probe::ProbedAssumptions;
use std::collections::BTreeSet;
use tombolo_protocol::Coherence;
use tombolo_protocol::catalogue::{Visitor, choose, facts};
use tombolo_protocol::client_home::Nodes;
use tombolo_protocol::registry::{self, ProtocolFamily};
use tombolo_protocol::vi::ProtocolOptions;

pub use tombolo_protocol::PROTOCOLS;
pub use tombolo_protocol::catalogue::UnknownProtocol;

/// Result of an exploration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExplorationVerdict {
    /// Every state was visited without a violation.
    Clean,
    /// A violation occurred: the violation reached in the fewest steps.
    Violated(Violation),
    /// The budget ended the exploration before any violation.
    Bounded,
}

/// Findings of an exploration.
#[derive(Clone, Debug)]
pub struct Report {
    /// Final states reached.
    pub outcomes: BTreeSet<FinalState>,
    /// States visited.
    pub states: usize,
    /// Result of the exploration.
    pub verdict: ExplorationVerdict,
    /// Path to the violation as a message sequence chart; the shortest path unless it was found on a random walk.
    pub trace: Option<String>,
}

/// GPUs in the largest machine explored.
pub const MAX_GPUS: u8 = 4;
/// Maximum number of modules in a machine: module sets have this many bits, and L2 line sets have eight times this
/// number.
pub const MAX_MODULES: u8 = 16;
/// Maximum number of threads in a program: thread sets have this many bits.
const MAX_THREADS: usize = u8::BITS as usize;
/// Maximum number of locations in a program: line sets have this many bits.
const MAX_LOCATIONS: usize = u8::BITS as usize;
/// Maximum number of instructions per thread. Long runs without memory accesses and deeply nested values stay far from
/// their limits. Source: assumed; a litmus test has a dozen.
const MAX_INSTRUCTIONS: usize = 500;
/// Maximum register count over all threads, far below the range for register numbers. Source: assumed.
const MAX_REGISTERS: usize = 4096;

/// Reason why a program exceeds the explorer's limits: the quantity that is too large. `None` if the program fits.
pub fn too_large(program: &Program) -> Option<String> {
    let longest = program.threads.iter().map(|thread| thread.code.len()).max().unwrap_or(0);
    let registers = program.threads.iter().map(|thread| thread.registers.len()).sum();
    let parts = [
        ("threads", program.threads.len(), MAX_THREADS),
        ("locations", program.locations.len(), MAX_LOCATIONS),
        ("GPUs", gpus_of(program) as usize, MAX_GPUS as usize),
        ("instructions in a thread", longest, MAX_INSTRUCTIONS),
        ("registers", registers, MAX_REGISTERS),
    ];
    parts.iter().find(|(_, has, most)| has > most).map(|(what, has, most)| format!("{has} {what}; at most {most}"))
}

/// Reason why the machine for `protocol` cannot run a program with any size: a thread needs a missing component. `None`
/// if the machine can run it.
pub fn refuses(program: &Program, protocol: &str) -> Option<String> {
    let has_host = facts(protocol).is_some_and(|facts| facts.host);
    let lacks_host = program.has_host() && !has_host;
    lacks_host.then(|| format!("it has host threads, and the machine of {protocol} has no host to run them"))
}

/// True if the configured protocol routes requests through GPU homes, hence their placement matters.
///
/// # Errors
/// If the configuration names an unknown protocol.
pub fn is_hierarchical(config: &Config) -> Result<bool, UnknownProtocol> {
    let unknown = || UnknownProtocol { name: config.protocol.to_owned() };
    Ok(facts(config.protocol).ok_or_else(unknown)?.hierarchical)
}

/// Explores `program` laid out as `layout`; `forbidden` selects the final states that must not be reached. The report
/// contains all final states reached, and a chart if a violation was found.
///
/// # Errors
/// If the configuration names an unknown protocol.
pub fn run(
    program: &Program,
    layout: &ProgramLayout,
    config: &Config,
    forbidden: &dyn Fn(&FinalState) -> bool,
) -> Result<Report, UnknownProtocol> {
    let options = ProtocolOptions { sectors: layout.sectors(), ..config.options };
    choose(config.protocol, options, Exploration { program, layout, config, options, forbidden })
}

/// An exploration without its protocol.
struct Exploration<'a> {
    program: &'a Program,
    layout: &'a ProgramLayout,
    config: &'a Config,
    /// Options of the protocol: those of the configuration, with the sectors of the layout.
    options: ProtocolOptions,
    forbidden: &'a dyn Fn(&FinalState) -> bool,
}

impl Visitor for Exploration<'_> {
    type Output = Report;

    fn visit<P: Coherence>(self, protocol: P) -> Report {
        let Exploration { program, layout, config, options, forbidden } = self;
        let lines = layout.lines(program.locations.len());
        let assumptions = probe::remembered(config.protocol, &options, &protocol, layout, lines);
        explore(protocol, program, layout, config, assumptions, forbidden)
    }

    fn visit_nodes<P: Nodes>(self, protocol: P) -> Report {
        nodes::explore(protocol, self.program, self.layout, self.config, self.forbidden)
    }

    fn registered(name: &str) -> Option<fn(Self, ProtocolOptions) -> Report> {
        registry::function::<RegisteredExplorer>(name).map(|explorer| explorer as fn(Self, ProtocolOptions) -> Report)
    }
}

/// The explorer, compiled for a registered protocol.
type RegisteredExplorer = for<'a> fn(Exploration<'a>, ProtocolOptions) -> Report;

/// Compiles the explorer for the registered protocol called `name`.
pub fn register<F: ProtocolFamily>(name: &'static str) {
    let explorer: RegisteredExplorer = |exploration, options| F::breakable(options, exploration);
    registry::add(name, explorer);
}

fn explore<P: Coherence>(
    protocol: P,
    program: &Program,
    layout: &ProgramLayout,
    config: &Config,
    assumptions: ProbedAssumptions,
    forbidden: &dyn Fn(&FinalState) -> bool,
) -> Report {
    // An overtaking request commutes with fewer steps than the reductions assume.
    let overtakes = tombolo_protocol::host::passes_waiting(&protocol, true);
    let used = config.used_reductions();
    let reductions = if overtakes { Reductions { forget: used.forget, ..Reductions::NONE } } else { used };
    let config = Config { reductions, ..*config };
    report(&Machine::new(protocol, program, layout, &config, assumptions), forbidden)
}

/// Searches a world, and charts the path to a violation.
fn report<W: chart::ChartableWorld>(world: &W, forbidden: &dyn Fn(&FinalState) -> bool) -> Report {
    let found = search::search(world, forbidden);
    let verdict = match &found.violation {
        Some((violation, _)) => ExplorationVerdict::Violated(*violation),
        None if found.bounded => ExplorationVerdict::Bounded,
        None => ExplorationVerdict::Clean,
    };
    let trace = found.violation.map(|(violation, steps)| chart::chart(world, &steps, violation));
    Report { outcomes: found.outcomes, states: found.states, verdict, trace }
}
