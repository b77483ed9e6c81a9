//! Elision: who leaves out synchronisation at kernel boundaries that nothing needs.

use crate::DesignConfig;
use crate::axis::{axis, option};
use std::collections::BTreeSet;
use std::sync::{LazyLock, Mutex, PoisonError};
use tombolo_machine::quantity::{Plain, Quantity};
use tombolo_machine::{Conflict, choice};
use tombolo_protocol::elision::{self, HomeAware, Operations, TableConfig};
use tombolo_types::Clock;

axis! {
    /// Who removes needless synchronisation at kernel boundaries.
    pub enum Elision { Never, Cpelide } refused by conflict
}

option! {
    /// Nobody: every boundary synchronises.
    pub struct Never = "none" {}
}

option! {
    /// The command processor, by a table of what each module's L2 may hold of each array. Source: CPElide, section III.
    pub struct Cpelide = "cpelide" {
        /// What a kernel tells the command processor of the arrays it uses.
        labels: Labelling = Labelling::Ranges,
        /// What an operation on an L2 reaches.
        operations: Reached = Reached::Cache,
        /// What the table knows.
        table: Table = Table::Cpelide,
        /// Rows of the table. Source of the default: CPElide, section III-A: eight structures of eight kernels.
        entries: u16 = 64,
        /// Arrays of a kernel that have rows of their own; more are combined. Source of the default: CPElide, section III-A.
        structures: u16 = 8,
        /// Ranges that a row may have of each module. Source of the default: assumed, see the chiplet table.
        ranges: u16 = 1,
        /// An array that labels leave out, to see a wrong label caught.
        drop: ArrayName = ArrayName(None),
    }
}

choice! {
    /// What kernels are labelled with. `modes`, `ranges` and `exact` are sound.
    pub enum Labelling {
        /// Each array's mode. Source: CPElide, listing 1.
        Modes = "modes",
        /// And the range that each module uses. Source: CPElide, listing 2.
        Ranges = "ranges",
        /// And the lines that each module uses.
        Exact = "exact",
        /// And an equal part for each module, whatever it uses: wrong where there are halos.
        Split = "split",
        /// Each array's mode, and that no boundary matters. Source: CPElide's public simulator.
        Asserted = "asserted",
    }
}

choice! {
    /// What an operation on an L2 reaches.
    pub enum Reached {
        /// The whole cache. Source: CPElide, section III.
        Cache = "cache",
        /// The lines of the rows that ask for it. Source: CPElide, section VI.
        Range = "range",
    }
}

choice! {
    /// What a table knows.
    pub enum Table {
        /// Which module uses what. Source: CPElide, section III.
        Cpelide = "cpelide",
        /// And where pages are homed: an L2 that holds lines of its own module only is touched for no others.
        HomeAware = "home-aware",
    }
}

/// The name of an array of a program, or of none. Names are kept for the life of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ArrayName(Option<&'static str>);

/// The word for no array.
const NO_ARRAY: &str = "none";

impl ArrayName {
    /// The name; none where nothing is named.
    pub fn name(self) -> Option<&'static str> {
        self.0
    }
}

impl Quantity for ArrayName {
    const EXPECTED: &'static str = "the name of an array, or \"none\"";

    fn parse(text: &str, clock: Clock) -> Option<ArrayName> {
        static NAMES: LazyLock<Mutex<BTreeSet<&'static str>>> = LazyLock::new(Mutex::default);
        let text = String::parse(text, clock)?;
        if text == NO_ARRAY {
            return Some(ArrayName(None));
        }
        let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
        let known = names.get(&*text).copied();
        let name = known.unwrap_or_else(|| text.leak());
        names.insert(name);
        Some(ArrayName(Some(name)))
    }

    fn print(&self) -> Plain {
        Plain::Text(self.0.unwrap_or(NO_ARRAY).to_owned())
    }
}

impl Cpelide {
    /// The sizes of the table. `sharing`: see [`TableConfig::sharing`].
    pub fn config(&self, sharing: u8) -> TableConfig {
        let operations = match self.operations {
            Reached::Cache => Operations::Cache,
            Reached::Range => Operations::Range,
        };
        TableConfig { rows: self.entries, structures: self.structures, ranges: self.ranges, operations, sharing }
    }
}

/// What a table takes an L2 to hold must be what the protocol's L2s do.
fn conflict(chosen: &Elision, _: &'static str, design: &DesignConfig) -> Option<Conflict> {
    let Elision::Cpelide(cpelide) = chosen else { return None };
    let facts = design.coherence.facts();
    let holds = (facts.holds)(&design.options());
    if cpelide.table == Table::HomeAware
        && let Err(reason) = HomeAware::new(cpelide.config(1), 1, holds, None)
    {
        let reason = format!("{reason} (coherence = {:?})", design.coherence.protocol());
        return Some(Conflict { key: "elision.table", reason });
    }
    None
}

/// What decides at a machine's boundaries.
#[derive(Clone, Debug)]
pub enum Decider {
    /// Nobody elides; when stores are released.
    Never(elision::When),
    /// A table.
    Table {
        /// Its options.
        cpelide: Cpelide,
        /// Its sizes.
        config: TableConfig,
        /// What an L2 may hold at a boundary.
        holds: elision::Holds,
    },
}

impl Decider {
    /// One at the start of a program, for a machine of `modules` modules.
    pub fn new_table(&self, modules: u8) -> Box<dyn elision::Elision + Send> {
        match self {
            Decider::Never(when) => Box::new(elision::Never::new(*when, modules)),
            Decider::Table { cpelide, config, holds } => match cpelide.table {
                Table::Cpelide => Box::new(elision::ChipletTable::new(*config, modules, None)),
                Table::HomeAware => {
                    let table = HomeAware::new(*config, modules, *holds, None);
                    Box::new(table.unwrap_or_else(|reason| panic!("a checked design: {reason}")))
                }
            },
        }
    }
}
