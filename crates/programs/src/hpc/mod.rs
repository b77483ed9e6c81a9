//! Programs and proxy applications in high-performance computing (CORAL, Mantevo, ExMatEx and more): one file for each.

pub(super) mod amg;
pub(super) mod comd;
pub(super) mod cusolver;
pub(super) mod hacc;
pub(super) mod hpgmg;
pub(super) mod lulesh;
pub(super) mod mcb;
pub(super) mod miniamr;
pub(super) mod minicontact;
pub(super) mod namd;
pub(super) mod nekbone;
pub(super) mod pennant;
pub(super) mod rabbitct;
pub(super) mod rsbench;
pub(super) mod snap;
