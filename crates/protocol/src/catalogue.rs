//! Every protocol by its name: the single table used by both the timing model and the explorer. A new protocol
//! needs a file in this folder and a line in this table.

use crate::client_home::Nodes;
use crate::coherence::{Coherence, Protocol};
use crate::options::{ProtocolFacts, ProtocolOptions};

/// An action performed on a protocol chosen by name.
pub trait Visitor {
    /// The action's result.
    type Output;

    /// Performs the action on a protocol with valid/invalid L2 lines.
    fn visit<P: Coherence>(self, protocol: P) -> Self::Output;

    /// Performs the action on a protocol between clients and homes.
    fn visit_nodes<P: Nodes>(self, protocol: P) -> Self::Output;
}

/// A name missing from [`PROTOCOLS`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownProtocol {
    /// The given name.
    pub name: String,
}

impl std::fmt::Display for UnknownProtocol {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "no protocol is named {:?}; there are {}", self.name, PROTOCOLS.join(", "))
    }
}

impl std::error::Error for UnknownProtocol {}

macro_rules! protocols {
    ($($name:literal => $protocol:ident of $module:ident by $visit:ident),+ $(,)?) => {
        /// Names of all protocols.
        pub const PROTOCOLS: &[&str] = &[$($name),+];

        /// The names, formatted for an error message.
        pub const EXPECTED: &str = {
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
            match name {
                $($name => Ok(visitor.$visit(crate::$module::$protocol::<BREAKABLE>::with(options))),)+
                _ => Err(UnknownProtocol { name: name.to_owned() }),
            }
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

/// Static facts about the protocol called `name`.
pub fn facts(name: &str) -> Option<&'static ProtocolFacts> {
    PROTOCOLS.iter().position(|known| *known == name).map(|at| &FACTS[at])
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
