//! The ways to share memory that are compared: designs by name, in the order in which programmers meet them.

use tombolo_design::list_designs;

/// What a programmer does for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    /// Managed memory: pages move.
    Managed,
    /// Loads and stores of other GPUs' memory, as it is or kept coherent by hardware.
    Peer,
    /// A copy on each GPU, brought up to date between kernels.
    Copies,
    /// A replica on each GPU that uses a page, to which hardware sends what others store.
    Published,
}

/// A way to share memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Way {
    /// Its design.
    pub(crate) design: &'static str,
    /// What it is, for people.
    pub(crate) is: &'static str,
    /// What a programmer does for it.
    pub(crate) family: Family,
    /// Whether nobody can build it.
    pub(crate) bound: bool,
}

const fn way(design: &'static str, is: &'static str, family: Family) -> Way {
    Way { design, is, family, bound: false }
}

/// The plain design: that of the one GPU that speed-ups are over, too.
pub(crate) const PLAIN: &str = "numa-memory-side";

/// The bound.
const BOUND: Way = Way { bound: true, ..way("infinite-bandwidth", "copies that take no time", Family::Copies) };

/// All of them.
const WAYS: [Way; 11] = [
    way("unified-memory", "pages move on faults", Family::Managed),
    way("unified-memory-hints", "pages move before kernels, others reach them", Family::Managed),
    way(PLAIN, "peer loads, first touch", Family::Peer),
    way("remote-demand-loads", "peer loads, from the latest writer", Family::Peer),
    way("memcpy", "all that was written is copied to all", Family::Copies),
    way("memcpy-needed", "what is read elsewhere is copied", Family::Copies),
    way("gps", "pages published to the GPUs that use them", Family::Published),
    way("software-flat", "peer loads, cached until the next kernel", Family::Peer),
    way("nhcc", "coherent caches, one directory", Family::Peer),
    way("hmg", "coherent caches, directories in two levels", Family::Peer),
    BOUND,
];

/// Those that this program has a design for.
pub(crate) fn ways() -> Vec<Way> {
    let known = list_designs();
    WAYS.into_iter().filter(|way| known.iter().any(|listed| listed.name == way.design)).collect()
}
