//! The explorer: every interleaving of a small program on a small machine, driven by the very functions of
//! [`tombolo_protocol`] that the timing model drives.
//!
//! [`run`] lays a [`Program`] out on a machine ([`Layout`]) and lets a protocol named by a [`Config`] run it in
//! every way that channels, caches and threads allow. It says which final states were reached and whether anything
//! went wrong. [`layouts`] enumerates where threads and homes may be.
//!
//! - `state` is what a state holds, `machine` where it starts, `step` what can happen next.
//! - `scene` is a program laid out. `sm` hosts threads and L1s, `sync` their acquires and releases, above whatever is
//!   `below` the L1s.
//! - `l2` hosts valid/invalid L2s, directories, memories and links: the duties listed in [`tombolo_protocol::coherence`].
//!   `plans` is what they are to the threads above.
//! - `nodes` is the other machine: clients and homes whose caches answer each other.
//! - `boundaries` decides what happens between kernels, by the very tables that the command processor asks.
//! - `pages` is where pages are and how modules see them; `paging` changes that and `publication` sends what is stored to
//!   those with a copy, by the very rules that the driver and the L2s ask.
//! - `probe` asks a protocol for what reductions rest on; `edges` is who sends to whom, as it declares.
//! - `reduce` and `persistent` leave out steps that hide no forbidden outcome; `property` is what must hold besides
//!   outcomes; `search` visits, `chart` prints the way to a violation.
//!
//! Modelled: any capacity of caches and directories (whatever may be evicted is, in some branch), any
//! latency of every message and memory access within the order its channel keeps. Not modelled: bounded
//! queues (a message waits in its channel as long as it likes), translation.

mod below;
mod boundaries;
mod chart;
mod config;
#[cfg(test)]
mod crooked;
mod edges;
mod host;
mod l2;
mod layout;
mod machine;
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

pub use boundaries::Decides;
pub use config::{Config, Evictions, Reductions, Room, Start, Wishes};
pub(crate) use layout::drawn_layout;
pub use layout::{Layout, RegionHomes, Shape, Sharing, Sm, gpus_of, layouts, possible_layouts};
pub use state::Violation;

use crate::litmus::{FinalState, Program};
use machine::Machine;
use std::collections::BTreeSet;
use tombolo_protocol::Coherence;
use tombolo_protocol::catalogue::{Visitor, choose, facts};
use tombolo_protocol::nodes::Nodes;
use tombolo_protocol::vi::Options;

pub use tombolo_protocol::PROTOCOLS;
pub use tombolo_protocol::catalogue::UnknownProtocol;

/// How an exploration ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Every state was visited and none was wrong.
    Clean,
    /// Something went wrong: the first in number of steps.
    Violated(Violation),
    /// The budget ended it before anything went wrong.
    Bounded,
}

/// What an exploration found.
#[derive(Clone, Debug)]
pub struct Report {
    /// Final states reached.
    pub outcomes: BTreeSet<FinalState>,
    /// States visited.
    pub states: usize,
    /// How it ended.
    pub verdict: Verdict,
    /// The way to the violation, the shortest unless it was found on a walk, as a message sequence chart.
    pub trace: Option<String>,
}

/// GPUs of the largest machine explored.
pub const MAX_GPUS: u8 = 4;
/// Most modules of a machine: sets of them have as many bits, and sets of lines in their L2s eight times as
/// many.
pub const MAX_MODULES: u8 = 16;
/// Most threads of a program: sets of them have as many bits.
const MAX_THREADS: usize = u8::BITS as usize;
/// Most locations of a program: sets of lines have as many bits.
const MAX_LOCATIONS: usize = u8::BITS as usize;
/// Most instructions of a thread: what it runs without memory at a time, and how deep its values nest, stay far from their
/// limits. Source: assumed; a litmus test has a dozen.
const MAX_INSTRUCTIONS: usize = 500;
/// Most registers of all threads, far fewer than have numbers. Source: assumed.
const MAX_REGISTERS: usize = 4096;

/// Why the explorer does not take a program: what there is too much of. `None` where it does.
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

/// Why the machine of `protocol` does not run a program, whatever its size: a thread is on what that machine lacks. `None`
/// where it runs it.
pub fn refuses(program: &Program, protocol: &str) -> Option<String> {
    let has_host = facts(protocol).is_some_and(|facts| facts.host);
    let lacks_host = program.has_host() && !has_host;
    lacks_host.then(|| format!("it has host threads, and the machine of {protocol} has no host to run them"))
}

/// Whether the protocol of a configuration sends requests by GPU homes, so that it matters where these are.
///
/// # Errors
/// Where the configuration names no protocol there is.
pub fn is_hierarchical(config: &Config) -> Result<bool, UnknownProtocol> {
    struct Asked;
    impl Visitor for Asked {
        type Output = bool;

        fn visit<P: Coherence>(self, protocol: P) -> bool {
            protocol.is_hierarchical()
        }

        fn visit_nodes<P: Nodes>(self, _: P) -> bool {
            false
        }
    }
    choose(config.protocol, config.options, Asked)
}

/// Explores `program` laid out as `layout`; `forbidden` says which final states must not be reached.
///
/// # Errors
/// Where the configuration names no protocol there is.
pub fn run(
    program: &Program,
    layout: &Layout,
    config: &Config,
    forbidden: &dyn Fn(&FinalState) -> bool,
) -> Result<Report, UnknownProtocol> {
    let options = Options { sectors: layout.sectors(), ..config.options };
    choose(config.protocol, options, Exploration { program, layout, config, forbidden })
}

/// An exploration that lacks its protocol.
struct Exploration<'a> {
    program: &'a Program,
    layout: &'a Layout,
    config: &'a Config,
    forbidden: &'a dyn Fn(&FinalState) -> bool,
}

impl Visitor for Exploration<'_> {
    type Output = Report;

    fn visit<P: Coherence>(self, protocol: P) -> Report {
        explore(protocol, self.program, self.layout, self.config, self.forbidden)
    }

    fn visit_nodes<P: Nodes>(self, protocol: P) -> Report {
        nodes::explore(protocol, self.program, self.layout, self.config, self.forbidden)
    }
}

fn explore<P: Coherence>(
    protocol: P,
    program: &Program,
    layout: &Layout,
    config: &Config,
    forbidden: &dyn Fn(&FinalState) -> bool,
) -> Report {
    // A request that overtakes commutes with less than the reductions rely on.
    let overtakes = tombolo_protocol::host::passes_waiting(&protocol, true);
    let used = config.used_reductions();
    let reductions = if overtakes { Reductions { forget: used.forget, ..Reductions::NONE } } else { used };
    let config = Config { reductions, ..*config };
    report(&Machine::new(protocol, program, layout, &config), forbidden)
}

/// Searches a world, and charts the way to what is wrong with it.
fn report<W: chart::Charted>(world: &W, forbidden: &dyn Fn(&FinalState) -> bool) -> Report {
    let found = search::search(world, forbidden);
    let verdict = match &found.violation {
        Some((violation, _)) => Verdict::Violated(*violation),
        None if found.bounded => Verdict::Bounded,
        None => Verdict::Clean,
    };
    let trace = found.violation.map(|(violation, steps)| chart::chart(world, &steps, violation));
    Report { outcomes: found.outcomes, states: found.states, verdict, trace }
}
