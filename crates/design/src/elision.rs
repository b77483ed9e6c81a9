//! Elision: who leaves out synchronisation at kernel boundaries that nothing needs.

use crate::axis::{axis, option};

axis! {
    /// Who removes needless synchronisation at kernel boundaries.
    pub enum Elision { Never }
}

option! {
    /// Nobody: every boundary synchronises.
    pub struct Never = "none" {}
}
