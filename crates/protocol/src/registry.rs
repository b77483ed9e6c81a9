//! Protocols of a program that uses this library, beside those of the [catalogue](crate::catalogue).
//!
//! The code of a simulator, or of an explorer, is compiled for each protocol. Code for a registered protocol is compiled
//! in the program that registers it, and found by the protocol's name: each crate with an action on protocols adds the
//! function that performs it ([`add`]), and looks it up ([`function`]).

use crate::catalogue::Visitor;
use crate::client_home::Nodes;
use crate::coherence::Protocol;
use crate::options::{ProtocolFacts, ProtocolOptions};
use crate::vi::{Rules, Vi};
use std::any::Any;
use std::marker::PhantomData;
use std::sync::{PoisonError, RwLock};

/// A protocol that can be built from options. Every type with [`Rules`] is one, and so is [`ClientHome`].
pub trait ProtocolFamily: 'static {
    /// Static facts.
    const FACTS: &'static ProtocolFacts;

    /// Passes the protocol to `visitor`, with options that include no broken rule. Code for broken rules may be missing.
    fn whole<V: Visitor>(options: ProtocolOptions, visitor: V) -> V::Output;

    /// Passes the protocol to `visitor`, with options that may include a broken rule.
    fn breakable<V: Visitor>(options: ProtocolOptions, visitor: V) -> V::Output;
}

impl<R: Rules> ProtocolFamily for R {
    const FACTS: &'static ProtocolFacts = &<Vi<R, true> as Protocol>::FACTS;

    fn whole<V: Visitor>(options: ProtocolOptions, visitor: V) -> V::Output {
        visitor.visit(Vi::<R, false>::with(options))
    }

    fn breakable<V: Visitor>(options: ProtocolOptions, visitor: V) -> V::Output {
        visitor.visit(Vi::<R, true>::with(options))
    }
}

/// The family of `P`, a protocol between clients and homes.
#[derive(Clone, Copy, Debug)]
pub struct ClientHome<P>(PhantomData<P>);

impl<P: Nodes + From<ProtocolOptions>> ProtocolFamily for ClientHome<P> {
    const FACTS: &'static ProtocolFacts = &<P as Protocol>::FACTS;

    fn whole<V: Visitor>(options: ProtocolOptions, visitor: V) -> V::Output {
        visitor.visit_nodes(P::from(options))
    }

    fn breakable<V: Visitor>(options: ProtocolOptions, visitor: V) -> V::Output {
        visitor.visit_nodes(P::from(options))
    }
}

/// A registered protocol, as far as no code is compiled for it.
#[derive(Clone, Copy)]
pub(crate) struct Registered {
    pub(crate) name: &'static str,
    pub(crate) facts: &'static ProtocolFacts,
    /// All names up to this one, formatted for an error message.
    pub(crate) expected: &'static str,
}

/// Registered protocols, in the order of their registration.
static PROTOCOLS: RwLock<Vec<Registered>> = RwLock::new(Vec::new());

/// Functions for registered protocols, each with the protocol's name. Their types tell them apart.
static FUNCTIONS: RwLock<Vec<(&'static str, Box<dyn Any + Send + Sync>)>> = RwLock::new(Vec::new());

/// The name of a new protocol is taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameTaken {
    /// The name.
    pub name: &'static str,
}

impl std::fmt::Display for NameTaken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "a protocol called {:?} is there already", self.name)
    }
}

impl std::error::Error for NameTaken {}

/// Makes the protocol `F` known by its name. Its code is added by [`add`].
///
/// # Errors
/// Fails if a protocol has this name already.
pub fn register<F: ProtocolFamily>(name: &'static str) -> Result<(), NameTaken> {
    if crate::catalogue::facts(name).is_some() {
        return Err(NameTaken { name });
    }
    let expected = format!("{}, {name:?}", crate::catalogue::expected()).leak();
    PROTOCOLS.write().unwrap_or_else(PoisonError::into_inner).push(Registered { name, facts: F::FACTS, expected });
    Ok(())
}

/// Adds the function of this type for the registered protocol called `name`.
pub fn add<T: Any + Send + Sync>(name: &'static str, function: T) {
    FUNCTIONS.write().unwrap_or_else(PoisonError::into_inner).push((name, Box::new(function)));
}

/// The function of this type for the registered protocol called `name`, if one was added.
pub fn function<T: Any + Copy>(name: &str) -> Option<T> {
    let functions = FUNCTIONS.read().unwrap_or_else(PoisonError::into_inner);
    functions.iter().filter(|(of, _)| *of == name).find_map(|(_, function)| function.downcast_ref().copied())
}

/// All registered protocols.
pub(crate) fn registered() -> Vec<Registered> {
    PROTOCOLS.read().unwrap_or_else(PoisonError::into_inner).clone()
}
