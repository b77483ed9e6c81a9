//! Checks the types of accesses: each location has a unique size, and every value fits.

use super::error::LitmusError;
use super::parser::{ONE_VALUE, Parser};
use super::program::{Location, Operand, Value};
use super::value_type::{AtomicKind, Sign, ValueType};

/// Constants and atomics in the text, checked after all accesses are parsed.
#[derive(Default)]
pub(super) struct Typing {
    constants: Vec<Constant>,
    atomics: Vec<Atomic>,
}

/// A constant written to a location.
struct Constant {
    location: Location,
    value: Value,
    /// Index of the constant's token.
    at: usize,
}

/// An atomic or a reduction.
struct Atomic {
    location: Location,
    kind: AtomicKind,
    /// Token index for the operation's name.
    at: usize,
}

/// Reason why a value outside the type's range is rejected.
const FITS: &str = "a value must read alike by every type that accesses its location";

impl Parser {
    /// Assigns to `location` the type at token `at`, if any.
    pub(super) fn give_type(
        &mut self,
        location: Location,
        written: Option<ValueType>,
        at: usize,
    ) -> Result<(), LitmusError> {
        let Some(written) = written else { return Ok(()) };
        let known = self.value_type(location).unwrap_or(ValueType { sign: Sign::Open, ..written });
        let shared = known.shared(written);
        let shared = shared.ok_or_else(|| self.unsupported(at, &format!(".{}", written.name()), ONE_VALUE))?;
        *self.value_type_mut(location) = Some(shared);
        Ok(())
    }

    /// Records a constant at token `at` that is written to `location`.
    pub(super) fn note_value(&mut self, location: Location, given: Operand, at: usize) {
        if let Operand::Value(value) = given {
            self.typing.constants.push(Constant { location, value, at });
        }
    }

    /// Records an atomic on `location`; its operation is at token `at`.
    pub(super) fn note_atomic(&mut self, location: Location, kind: AtomicKind, at: usize) {
        self.typing.atomics.push(Atomic { location, kind, at });
    }

    /// Parses the type at token `at` of an atomic with operation `kind`. The type determines the location's size, and
    /// the sign only if the operation compares values.
    pub(super) fn atomic_type(&mut self, kind: AtomicKind) -> Result<Option<ValueType>, LitmusError> {
        let at = self.at;
        let Some(written) = self.optional_type() else { return Ok(None) };
        if !kind.types().contains(&written.name()) {
            return Err(self.illegal(at, &format!(".{}", written.name()), &types_of(kind)));
        }
        Ok(Some(if kind.compares_values() { written } else { ValueType { sign: Sign::Open, ..written } }))
    }

    /// Checks every constant and every atomic against the location's type.
    pub(super) fn check_types(&self) -> Result<(), LitmusError> {
        for Constant { location, value, at } in &self.typing.constants {
            if self.value_type(*location).is_some_and(|known| !known.holds(*value)) {
                return Err(self.unsupported(*at, &value.to_string(), FITS));
            }
        }
        for Atomic { location, kind, at } in &self.typing.atomics {
            let Some(known) = self.value_type(*location) else { continue };
            if kind.type_of(known).is_none() {
                return Err(self.illegal(*at, &format!("atomic of {} bits", known.bits), &types_of(*kind)));
            }
        }
        Ok(())
    }
}

/// Type names allowed for an operation, for messages.
fn types_of(kind: AtomicKind) -> String {
    let dotted: Vec<String> = kind.types().iter().map(|name| format!(".{name}")).collect();
    format!("integers of this operation are {}", dotted.join(", "))
}
