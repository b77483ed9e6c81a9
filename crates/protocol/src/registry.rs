//! Protocols of a program that uses this library, beside those of the [catalogue](crate::catalogue).
//!
//! The code of a simulator, or of an explorer, is compiled for each protocol. Code for a registered protocol is compiled
//! in the program that registers it, and found by the protocol's name: each crate with an action on protocols adds the
//! function that performs it ([`add`]), and looks it up ([`function`]).

use crate::coherence::Coherence;
use crate::options::{ProtocolFacts, ProtocolOptions};
use crate::vi::{Rules, Vi};
use std::any::Any;
use std::sync::{PoisonError, RwLock};

/// A protocol between the modules' L2 caches that can be built from options. Every type with [`Rules`] is one.
pub trait ProtocolFamily: 'static {
    /// The protocol without code for broken rules.
    type Whole: Coherence;
    /// The protocol that may have a broken rule. It may be the same type, if the protocol reads no broken rule.
    type Breakable: Coherence;

    /// Builds the protocol with options that include no broken rule.
    fn whole(options: ProtocolOptions) -> Self::Whole;

    /// Builds the protocol with options that may include a broken rule.
    fn breakable(options: ProtocolOptions) -> Self::Breakable;
}

impl<R: Rules> ProtocolFamily for R {
    type Whole = Vi<R, false>;
    type Breakable = Vi<R, true>;

    fn whole(options: ProtocolOptions) -> Self::Whole {
        Vi::with(options)
    }

    fn breakable(options: ProtocolOptions) -> Self::Breakable {
        Vi::with(options)
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
    let facts: &'static ProtocolFacts = &<F::Breakable as crate::coherence::Protocol>::FACTS;
    let expected = format!("{}, {name:?}", crate::catalogue::expected()).leak();
    PROTOCOLS.write().unwrap_or_else(PoisonError::into_inner).push(Registered { name, facts, expected });
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
