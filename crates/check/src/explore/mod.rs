//! The explorer: every interleaving of a small program on a small machine, driven by the very functions of
//! [`tombolo_protocol`] that the timing model drives.
//!
//! [`run`] lays a [`Program`] out on a machine ([`Layout`]), lets a protocol named by a [`Config`] run it in
//! every way that channels, caches and threads allow, and says which final states it reached and whether
//! anything went wrong; [`layouts`] enumerates where threads and homes may be.
//!
//! - `state` is what a state holds, `machine` where it starts, `step` what can happen next.
//! - `sm` hosts threads and L1s, `sync` their acquires and releases, `l2` the L2s, directories, memories
//!   and links: the duties listed in [`tombolo_protocol::coherence`].
//! - `reduce` leaves out steps that lose no outcome; `property` is what must hold besides outcomes;
//!   `search` visits, `chart` prints the way to a violation.
//!
//! Modelled: any capacity of caches and directories (whatever may be evicted is, in some branch), any
//! latency of every message and memory access within the order its channel keeps. Not modelled: bounded
//! queues (a message waits in its channel as long as it likes), translation, kernels' boundaries.

mod chart;
mod config;
mod l2;
mod layout;
mod machine;
mod property;
mod reduce;
mod search;
mod sm;
mod state;
mod step;
mod sync;
mod values;

pub use config::{Config, Evictions, Reductions, Start};
pub use layout::{Layout, RegionHomes, Shape, Sharing, Sm, layouts};
pub use state::Violation;

use crate::litmus::{FinalState, Program};
use machine::Machine;
use std::collections::BTreeSet;
use tombolo_protocol::Coherence;
use tombolo_protocol::hmg::Hmg;
use tombolo_protocol::ideal::Ideal;
use tombolo_protocol::nhcc::Nhcc;
use tombolo_protocol::no_remote_caching::NoRemoteCaching;
use tombolo_protocol::software_flat::SoftwareFlat;
use tombolo_protocol::software_hierarchical::SoftwareHierarchical;

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
    /// The shortest way to the violation, as a message sequence chart.
    pub trace: Option<String>,
}

/// A protocol that [`Config`] names no type for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no protocol is named {name:?}; there are {}", PROTOCOLS.join(", "))]
pub struct UnknownProtocol {
    /// The name given.
    pub name: String,
}

/// The protocols by name: a new one is one line.
macro_rules! protocols {
    ($($name:literal => $protocol:ident),+ $(,)?) => {
        /// Names of the protocols that can be explored.
        pub const PROTOCOLS: &[&str] = &[$($name),+];

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
            match config.protocol {
                $($name => Ok(explore($protocol::new(config.options), program, layout, config, forbidden)),)+
                name => Err(UnknownProtocol { name: name.to_owned() }),
            }
        }
    };
}

protocols! {
    "no-remote-caching" => NoRemoteCaching,
    "software-flat" => SoftwareFlat,
    "software-hierarchical" => SoftwareHierarchical,
    "nhcc" => Nhcc,
    "hmg" => Hmg,
    "ideal" => Ideal,
}

fn explore<P: Coherence>(
    protocol: P,
    program: &Program,
    layout: &Layout,
    config: &Config,
    forbidden: &dyn Fn(&FinalState) -> bool,
) -> Report {
    let machine = Machine::new(protocol, program, layout, config);
    let found = search::search(&machine, forbidden);
    let verdict = match &found.violation {
        Some((violation, _)) => Verdict::Violated(*violation),
        None if found.bounded => Verdict::Bounded,
        None => Verdict::Clean,
    };
    let trace = found.violation.map(|(violation, steps)| chart::chart(&machine, &steps, violation));
    Report { outcomes: found.outcomes, states: found.states, verdict, trace }
}
