//! Polls axis: L1 state after an acquiring poll that has not found its flag.

use crate::axis::{axis, option};
use tombolo_protocol::options;

axis! {
    /// L1 state after a failed poll.
    pub enum Polls { KeepL1, DropL1 }
}

option! {
    /// Kept: only the poll that finds the flag acquires. Source: assumed for the papers' protocols; no paper covers
    /// failed polls.
    pub struct KeepL1 = "keep-l1" {}
}

option! {
    /// Dropped by every acquiring poll beyond `.cta`. Source: SASS of an H100, with CCTL.IVALL in the loop, as in
    /// grid.sync().
    pub struct DropL1 = "drop-l1" {}
}

impl Polls {
    /// The corresponding option in the protocol crate.
    pub(crate) fn of_protocol(self) -> options::Polls {
        match self {
            Polls::KeepL1(_) => options::Polls::KeepL1,
            Polls::DropL1(_) => options::Polls::DropL1,
        }
    }
}
