//! Polls: L1 caches under an acquiring poll that has not found its flag.

use crate::axis::{axis, option};
use tombolo_protocol::options;

axis! {
    /// State of an L1 behind a failed poll.
    pub enum Polls { KeepL1, DropL1 }
}

option! {
    /// Kept: only the poll that finds the flag acquires. Source: assumed for the papers' protocols, which say nothing of failed polls.
    pub struct KeepL1 = "keep-l1" {}
}

option! {
    /// Dropped by every acquiring poll beyond `.cta`. Source: SASS of an H100, where CCTL.IVALL stands in the loop, as in grid.sync().
    pub struct DropL1 = "drop-l1" {}
}

impl Polls {
    /// The protocol's word for it.
    pub(crate) fn of_protocol(self) -> options::Polls {
        match self {
            Polls::KeepL1(_) => options::Polls::KeepL1,
            Polls::DropL1(_) => options::Polls::DropL1,
        }
    }
}
