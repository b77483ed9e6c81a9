//! Elision axis: the component that elides needless synchronisation at kernel boundaries.

use crate::DesignConfig;
use crate::axis::{axis, option};
use std::collections::BTreeSet;
use std::sync::{LazyLock, Mutex, PoisonError};
use tombolo_machine::quantity::{Quantity, RecordValue};
use tombolo_machine::{Conflict, choice};
use tombolo_protocol::elision::{self, OperationGranularity, TableConfig, TableKind};
use tombolo_types::Clock;

axis! {
    /// Removal of needless synchronisation at kernel boundaries.
    pub enum Elision { Never, Cpelide } refused by conflict
}

option! {
    /// None: every boundary synchronises.
    pub struct Never = "none" {}
}

option! {
    /// The command processor, with a table of each L2's possible contents for each array. Source: CPElide, section
    /// III.
    pub struct Cpelide = "cpelide" {
        /// Kernels' statements to the command processor on their arrays.
        labels: Labelling = Labelling::Ranges,
        /// Reach of an L2 operation.
        operations: OperationGranularity = OperationGranularity::Cache,
        /// Table's knowledge.
        table: TableKind = TableKind::Cpelide,
        /// Rows of the table. Source of the default: CPElide, section III-A: eight structures of eight kernels.
        entries: u16 = 64,
        /// Arrays per kernel with rows of their own; more are combined. Source of the default: CPElide, section
        /// III-A.
        structures: u16 = 8,
        /// Ranges per row and module. Source of the default: assumed, explained in the chiplet table.
        ranges: u16 = 1,
        /// An array omitted from labels, to see a wrong label caught.
        drop: ArrayName = ArrayName(None),
    }
}

choice! {
    /// Contents of the labels on kernels. The options `modes`, `ranges` and `exact` are sound.
    pub enum Labelling {
        /// Each array's access mode. Source: CPElide, listing 1.
        Modes = "modes",
        /// In addition, the range used by each module. Source: CPElide, listing 2.
        Ranges = "ranges",
        /// In addition, the exact lines used by each module.
        Exact = "exact",
        /// In addition, an equal part for each module, regardless of actual use: wrong if kernels access halos.
        Split = "split",
        /// Each array's access mode, and an assertion that no boundary matters. Source: CPElide's public simulator.
        Asserted = "asserted",
    }
}

/// The name of an array in a program, or no name. Names are kept for the lifetime of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ArrayName(Option<&'static str>);

/// The word for no array.
const NO_ARRAY: &str = "none";

impl ArrayName {
    /// The array's name; `None` if the value names no array.
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

    fn print(&self) -> RecordValue {
        RecordValue::Text(self.0.unwrap_or(NO_ARRAY).to_owned())
    }
}

impl Cpelide {
    /// The table's sizes. `sharing`: see [`TableConfig::sharing`].
    pub fn config(&self, sharing: u8) -> TableConfig {
        let Cpelide { entries: rows, structures, ranges, operations, .. } = *self;
        TableConfig { rows, structures, ranges, operations, sharing }
    }
}

/// A table's assumption about L2 contents must match the protocol's L2s.
fn conflict(chosen: &Elision, _: &'static str, design: &DesignConfig) -> Option<Conflict> {
    let Elision::Cpelide(cpelide) = chosen else { return None };
    let facts = design.coherence.facts();
    let holds = (facts.holds)(&design.options());
    if let Err(reason) = cpelide.table.build(cpelide.config(1), 1, holds, None) {
        let reason = format!("{reason} (coherence = {:?})", design.coherence.protocol());
        return Some(Conflict { key: "elision.table", reason });
    }
    None
}

/// The decision maker for a machine's kernel boundaries.
#[derive(Clone, Debug)]
pub enum ElisionChoice {
    /// No elision, with the given release time for stores.
    Never(elision::ReleaseTime),
    /// A table.
    Table {
        /// The table's options.
        cpelide: Cpelide,
        /// The table's sizes.
        config: TableConfig,
        /// An L2's possible contents at a boundary.
        holds: elision::RetainedLines,
    },
}

impl ElisionChoice {
    /// A new decision maker for the start of a program, on a machine with `modules` modules.
    pub fn new_table(&self, modules: u8) -> Box<dyn elision::Elision + Send> {
        match self {
            ElisionChoice::Never(when) => Box::new(elision::Never::new(*when, modules)),
            ElisionChoice::Table { cpelide, config, holds } => {
                let table = cpelide.table.build(*config, modules, *holds, None);
                table.unwrap_or_else(|reason| panic!("a checked design: {reason}"))
            }
        }
    }
}
