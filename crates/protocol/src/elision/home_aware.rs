//! The chiplet table for a command processor that knows the pages' homes. This is our extension, not CPElide's.
//!
//! Consider an L2 that holds only lines homed at its own module. A module's use of remote lines leaves no copy in
//! its own L2. For a module's row, only the part homed at the module matters: a halo read across modules makes no
//! copy stale. States and passes match [`super::chiplet_table`].
//!
//! Sound only under a coherence protocol with this property: [`RetainedLines::Own`].

use super::table::{CoherenceTable, LineHolders, TableConfig};
use super::{Account, BoundaryOperations, BrokenElision, Elision, KernelId, Packet, RetainedLines};
use std::fmt;

/// The home-aware table.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HomeAware(CoherenceTable);

/// The reason for which a coherence protocol cannot use the home-aware table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotHomeAware {
    /// An L2 holds lines from other homes.
    HoldsOtherHomes,
    /// An L2 holds nothing that an operation would affect; the replacement for a flush there is not proved.
    HoldsNothing,
}

impl fmt::Display for NotHomeAware {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NotHomeAware::HoldsOtherHomes => {
                "the home-aware table needs L2s that hold lines of their own module only; here they hold others, too"
            }
            NotHomeAware::HoldsNothing => {
                "the home-aware table needs L2s with dirty or stale lines at boundaries; here they have none"
            }
        })
    }
}

impl std::error::Error for NotHomeAware {}

impl HomeAware {
    /// An empty table for a machine with `modules` modules whose L2s hold `holds`.
    ///
    /// # Errors
    /// Fails if the table would be unsound, or has nothing to elide.
    pub fn new(
        config: TableConfig,
        modules: u8,
        holds: RetainedLines,
        broken: Option<BrokenElision>,
    ) -> Result<HomeAware, NotHomeAware> {
        match (holds, broken) {
            (RetainedLines::Own, _) | (RetainedLines::All, Some(BrokenElision::HomesIgnored)) => {
                Ok(HomeAware(CoherenceTable::new(config, LineHolders::Home, modules, broken)))
            }
            (RetainedLines::All, _) => Err(NotHomeAware::HoldsOtherHomes),
            (RetainedLines::Nothing, _) => Err(NotHomeAware::HoldsNothing),
        }
    }
}

impl Elision for HomeAware {
    fn launch(&mut self, packet: &Packet<'_>, why: &mut dyn FnMut(&Account)) -> BoundaryOperations {
        self.0.launch(packet, why)
    }

    fn finish(&mut self, kernel: KernelId, why: &mut dyn FnMut(&Account)) -> BoundaryOperations {
        self.0.finish(kernel, why)
    }

    fn end(&mut self, why: &mut dyn FnMut(&Account)) -> BoundaryOperations {
        self.0.end(why)
    }

    /// Number of entries: per row, the ranges of the module with the most ranges; at most [`TableConfig::rows`].
    fn rows(&self) -> usize {
        self.0.entries()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_l2s_that_hold_their_own_lines_may_use_the_home_aware_table() {
        let made = |holds| HomeAware::new(TableConfig::default(), 4, holds, None).map(|table| table.rows());
        assert_eq!(made(RetainedLines::Own), Ok(0));
        assert_eq!(made(RetainedLines::All), Err(NotHomeAware::HoldsOtherHomes));
        assert_eq!(made(RetainedLines::Nothing), Err(NotHomeAware::HoldsNothing));
        assert!(NotHomeAware::HoldsOtherHomes.to_string().contains("they hold others"));
    }
}
