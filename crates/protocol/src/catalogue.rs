//! Every protocol by its name: the single table used by both the timing model and the explorer. A new protocol
//! needs a file in this folder and a line in this table; a protocol of another crate is [registered](crate::registry).

use crate::client_home::Nodes;
use crate::coherence::{Coherence, Protocol};
use crate::options::{ProtocolFacts, ProtocolOptions};
use crate::registry::registered;

/// An action performed on a protocol chosen by name.
pub trait Visitor: Sized {
    /// The action's result.
    type Output;

    /// Performs the action on a protocol with valid/invalid L2 lines.
    fn visit<P: Coherence>(self, protocol: P) -> Self::Output;

    /// Performs the action on a protocol between clients and homes.
    fn visit_nodes<P: Nodes>(self, protocol: P) -> Self::Output;

    /// The function that performs the action on the [registered](crate::registry) protocol called `name`. An action that
    /// covers registered protocols looks the function up by [`registry::function`](crate::registry::function).
    fn registered(_name: &str) -> Option<fn(Self, ProtocolOptions) -> Self::Output> {
        None
    }
}

/// A name that is neither in [`PROTOCOLS`] nor registered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownProtocol {
    /// The given name.
    pub name: String,
}

impl std::fmt::Display for UnknownProtocol {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "no protocol is named {:?}; there are {}", self.name, names().join(", "))
    }
}

impl std::error::Error for UnknownProtocol {}

macro_rules! protocols {
    ($($name:literal => $protocol:ident of $module:ident by $visit:ident),+ $(,)?) => {
        /// Names of all protocols of this crate.
        pub const PROTOCOLS: &[&str] = &[$($name),+];

        /// The names in [`PROTOCOLS`], formatted for an error message.
        const EXPECTED: &str = {
            let list = concat!("one of" $(, " \"", $name, "\",")+);
            list.split_at(list.len() - 1).0
        };

        /// Each protocol's static facts, in the order of [`PROTOCOLS`].
        pub const FACTS: &[ProtocolFacts] = &[$(<crate::$module::$protocol::<false> as Protocol>::FACTS),+];

        /// Passes the protocol called `name` to `visitor`, with these options, which may include a broken rule.
        ///
        /// # Errors
        /// Fails if no protocol has that name.
        pub fn choose<V: Visitor>(name: &str, options: ProtocolOptions, visitor: V) -> Result<V::Output, UnknownProtocol> {
            choose_of::<V, true>(name, options, visitor)
        }

        /// Like [`choose`], but for options without a broken rule: code for broken rules is compiled out of the
        /// protocol given to `visitor`.
        ///
        /// # Errors
        /// Fails if no protocol has that name.
        pub fn choose_whole<V: Visitor>(
            name: &str,
            options: ProtocolOptions,
            visitor: V,
        ) -> Result<V::Output, UnknownProtocol> {
            choose_of::<V, false>(name, options, visitor)
        }

        fn choose_of<V: Visitor, const BREAKABLE: bool>(
            name: &str,
            options: ProtocolOptions,
            visitor: V,
        ) -> Result<V::Output, UnknownProtocol> {
            $(
                if name == $name {
                    return Ok(visitor.$visit(crate::$module::$protocol::<BREAKABLE>::with(options)));
                }
            )+
            let action = V::registered(name).ok_or_else(|| UnknownProtocol { name: name.to_owned() })?;
            Ok(action(visitor, options))
        }
    };
}

protocols! {
    "no-remote-caching" => NoRemoteCaching of no_remote_caching by visit,
    "memory-side" => MemorySide of memory_side by visit,
    "peer" => Peer of peer by visit,
    "software-flat" => SoftwareFlat of software_flat by visit,
    "software-hierarchical" => SoftwareHierarchical of software_hierarchical by visit,
    "nhcc" => Nhcc of nhcc by visit,
    "hmg" => Hmg of hmg by visit,
    "viper" => Viper of viper by visit,
    "ideal" => Ideal of ideal by visit,
    "nmoesi" => Nmoesi of nmoesi by visit_nodes,
}

/// All protocols with their static facts: the protocols of this crate, then registered protocols.
pub fn all() -> Vec<(&'static str, &'static ProtocolFacts)> {
    let added = registered().into_iter().map(|protocol| (protocol.name, protocol.facts));
    PROTOCOLS.iter().copied().zip(FACTS).chain(added).collect()
}

/// Names of all protocols, registered ones last.
pub fn names() -> Vec<&'static str> {
    all().into_iter().map(|(name, _)| name).collect()
}

/// The names of all protocols, formatted for an error message.
pub fn expected() -> &'static str {
    registered().last().map_or(EXPECTED, |protocol| protocol.expected)
}

/// True if the protocol called `name` belongs to the program that uses this library.
pub fn is_registered(name: &str) -> bool {
    registered().iter().any(|protocol| protocol.name == name)
}

/// Static facts about the protocol called `name`.
pub fn facts(name: &str) -> Option<&'static ProtocolFacts> {
    all().into_iter().find(|(known, _)| *known == name).map(|(_, facts)| facts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elision::RetainedLines;
    use crate::options::WritePolicy;
    use crate::plan::Sync;
    use tombolo_types::Promise;

    struct PromiseOf;

    impl Visitor for PromiseOf {
        type Output = Promise;

        fn visit<P: Coherence>(self, protocol: P) -> Self::Output {
            protocol.promise()
        }

        fn visit_nodes<P: Nodes>(self, protocol: P) -> Self::Output {
            protocol.promise()
        }
    }

    /// Tests for an empty invalidation plan before a kernel.
    struct InvalidatesNothing;

    impl Visitor for InvalidatesNothing {
        type Output = bool;

        fn visit<P: Coherence>(self, protocol: P) -> bool {
            protocol.acquire(Sync::Kernel).is_empty()
        }

        /// A merge at launch is not an invalidation.
        fn visit_nodes<P: Nodes>(self, _: P) -> bool {
            true
        }
    }

    #[test]
    fn a_protocol_whose_l2s_hold_nothing_stale_invalidates_nothing_before_a_kernel() {
        for (name, facts) in PROTOCOLS.iter().zip(FACTS) {
            for write in [WritePolicy::Through, WritePolicy::Back] {
                let options = ProtocolOptions { write, ..ProtocolOptions::default() };
                let nothing = choose(name, options, InvalidatesNothing).expect("it is listed");
                assert!(nothing || (facts.holds)(&options) != RetainedLines::Nothing, "{name} with {write:?}");
            }
        }
    }

    #[test]
    fn every_name_finds_its_protocol_and_others_are_refused() {
        for name in PROTOCOLS {
            let nothing = choose(name, ProtocolOptions::default(), PromiseOf) == Ok(Promise::Nothing);
            assert_eq!(nothing, *name == "ideal");
        }
        let refusal = choose("mesi", ProtocolOptions::default(), PromiseOf).unwrap_err().to_string();
        assert!(refusal.contains("\"mesi\"") && refusal.contains("nhcc"), "{refusal}");
    }
}
