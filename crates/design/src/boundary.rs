//! Boundary axis: the time at which a kernel's stores are released, if no boundary is elided.

use crate::axis::{axis, option};
use tombolo_protocol::elision::ReleaseTime;

axis! {
    /// Release time for a kernel's stores, if nothing is elided.
    pub enum Boundary { EndThenLaunch, AtLaunch }
}

option! {
    /// At its end; the next launch acquires. Source: CPElide, section I.
    pub struct EndThenLaunch = "end-then-launch" {}
}

option! {
    /// At the next launch, after its acquire, and at the program's end. Source: CPElide's public simulator.
    pub struct AtLaunch = "launch" {}
}

impl Boundary {
    /// The corresponding option in the protocol crate.
    pub(crate) fn when(self) -> ReleaseTime {
        match self {
            Boundary::EndThenLaunch(_) => ReleaseTime::EndThenLaunch,
            Boundary::AtLaunch(_) => ReleaseTime::Launch,
        }
    }
}
