//! Boundary: when the stores of a kernel are released, where no boundary is elided.

use crate::axis::{axis, option};
use tombolo_protocol::elision::When;

axis! {
    /// When a kernel's stores are released, where nothing is elided.
    pub enum Boundary { EndThenLaunch, AtLaunch }
}

option! {
    /// At its end; the next launch acquires. Source: CPElide, section I.
    pub struct EndThenLaunch = "end-then-launch" {}
}

option! {
    /// At the next launch, behind its acquire, and at the end of the program. Source: CPElide's public simulator.
    pub struct AtLaunch = "launch" {}
}

impl Boundary {
    /// The protocol's word for it.
    pub(crate) fn when(self) -> When {
        match self {
            Boundary::EndThenLaunch(_) => When::EndThenLaunch,
            Boundary::AtLaunch(_) => When::Launch,
        }
    }
}
