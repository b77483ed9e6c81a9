//! Memory-sharing policies to compare: designs by name, in a programmer's usual order of discovery.

use tombolo_design::list_designs;

/// Programming model of a policy: the programmer's own work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    /// Managed memory: pages migrate on faults or on hints.
    Managed,
    /// Loads and stores to remote GPU memory, uncached or kept coherent by hardware.
    Peer,
    /// A copy on each GPU, updated between kernels by explicit transfers.
    Copies,
    /// A replica on each GPU that uses a page; hardware sends remote stores to the replicas.
    Published,
}

/// A memory-sharing policy in the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SharingPolicy {
    /// Design of the policy.
    pub(crate) design: &'static str,
    /// Short description of the policy for people.
    pub(crate) is: &'static str,
    /// Programming model required for this policy.
    pub(crate) family: Family,
    /// True if the policy is a bound that cannot be realised.
    pub(crate) bound: bool,
}

const fn policy(design: &'static str, is: &'static str, family: Family) -> SharingPolicy {
    SharingPolicy { design, is, family, bound: false }
}

/// The plain design, also used for the reference run on one GPU.
pub(crate) const PLAIN: &str = "numa-memory-side";

/// The bound: copies without any transfer time.
const BOUND: SharingPolicy =
    SharingPolicy { bound: true, ..policy("infinite-bandwidth", "copies that take no time", Family::Copies) };

/// All policies, before the check against shipped designs.
const POLICIES: [SharingPolicy; 11] = [
    policy("unified-memory", "pages move on faults", Family::Managed),
    policy("unified-memory-hints", "pages move before kernels, others reach them", Family::Managed),
    policy(PLAIN, "peer loads, first touch", Family::Peer),
    policy("remote-demand-loads", "peer loads, from the latest writer", Family::Peer),
    policy("memcpy", "all that was written is copied to all", Family::Copies),
    policy("memcpy-needed", "what is read elsewhere is copied", Family::Copies),
    policy("gps", "pages published to the GPUs that use them", Family::Published),
    policy("software-flat", "peer loads, cached until the next kernel", Family::Peer),
    policy("nhcc", "coherent caches, one directory", Family::Peer),
    policy("hmg", "coherent caches, directories in two levels", Family::Peer),
    BOUND,
];

/// Returns the policies whose designs ship with this program.
pub(crate) fn policies() -> Vec<SharingPolicy> {
    let known = list_designs();
    POLICIES.into_iter().filter(|policy| known.iter().any(|listed| listed.name == policy.design)).collect()
}
