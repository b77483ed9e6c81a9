//! Types of accesses: the size of a location and the integer interpretation of stored values.

use super::program::{Arithmetic, Update, Value};

/// Integer interpretation of a location's bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sign {
    /// Every load and store is `.s`.
    Signed,
    /// Every load and store is `.u`.
    Unsigned,
    /// Loads or stores are `.b`, or differ: only values with equal signed and unsigned interpretation are allowed.
    Either,
    /// Only atomics access the location; their types determine a size. Treated like [`Sign::Either`].
    Open,
}

/// Size and interpretation of the values in a location with typed accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ValueType {
    /// Number of bits: 8, 16, 32 or 64.
    pub bits: u32,
    /// Interpretation of these bits.
    pub sign: Sign,
}

impl ValueType {
    /// Names of integer types with their types. Source: PTX ISA, section 5.2.1, fundamental types.
    const NAMES: [(&'static str, ValueType); 12] = [
        ("b8", ValueType { bits: 8, sign: Sign::Either }),
        ("b16", ValueType { bits: 16, sign: Sign::Either }),
        ("b32", ValueType { bits: 32, sign: Sign::Either }),
        ("b64", ValueType { bits: 64, sign: Sign::Either }),
        ("s8", ValueType { bits: 8, sign: Sign::Signed }),
        ("s16", ValueType { bits: 16, sign: Sign::Signed }),
        ("s32", ValueType { bits: 32, sign: Sign::Signed }),
        ("s64", ValueType { bits: 64, sign: Sign::Signed }),
        ("u8", ValueType { bits: 8, sign: Sign::Unsigned }),
        ("u16", ValueType { bits: 16, sign: Sign::Unsigned }),
        ("u32", ValueType { bits: 32, sign: Sign::Unsigned }),
        ("u64", ValueType { bits: 64, sign: Sign::Unsigned }),
    ];

    /// Type called `name`, if an integer type of at most 64 bits has this name.
    pub(super) fn named(name: &str) -> Option<ValueType> {
        ValueType::NAMES.iter().find(|(known, _)| *known == name).map(|(_, found)| *found)
    }

    /// Name of the type for loads and stores to the location.
    pub(super) fn name(self) -> &'static str {
        let written = if self.sign == Sign::Open { ValueType { sign: Sign::Either, ..self } } else { self };
        let known = ValueType::NAMES.iter().find(|(_, known)| *known == written);
        known.expect("bits are those of a name").0
    }

    /// Common location type for accesses with types `self` and `other`; `None` if their sizes differ.
    pub(super) fn shared(self, other: ValueType) -> Option<ValueType> {
        let sign = match (self.sign, other.sign) {
            (Sign::Open, sign) | (sign, Sign::Open) => sign,
            (one, another) if one == another => one,
            (Sign::Signed | Sign::Unsigned | Sign::Either, Sign::Signed | Sign::Unsigned | Sign::Either) => {
                Sign::Either
            }
        };
        (self.bits == other.bits).then_some(ValueType { sign, ..self })
    }

    /// True if every access reads `value` exactly in the written form.
    pub fn holds(self, value: Value) -> bool {
        // All bits except the sign bit. Litmus values are signed, therefore an unsigned 64-bit type has no larger
        // range.
        let positive = Value::MAX >> (Value::BITS - self.bits);
        match self.sign {
            Sign::Signed => (-positive - 1..=positive).contains(&value),
            Sign::Unsigned if self.bits < Value::BITS => (0..=2 * positive + 1).contains(&value),
            Sign::Unsigned | Sign::Either | Sign::Open => (0..=positive).contains(&value),
        }
    }
}

/// Operation class of an atomic, for type checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AtomicKind {
    Add,
    /// `and`, `or`, `xor`, `exch`.
    Bits,
    CompareAndSwap,
    /// `min`, `max`.
    MinMax,
    /// `inc`, `dec`.
    IncDec,
}

impl AtomicKind {
    pub(super) fn of(update: Update) -> AtomicKind {
        match update {
            Update::Apply(operation, _) => AtomicKind::of_operation(operation),
            Update::Exchange(_) => AtomicKind::Bits,
            Update::CompareAndSwap { .. } => AtomicKind::CompareAndSwap,
        }
    }

    pub(super) fn of_operation(operation: Arithmetic) -> AtomicKind {
        match operation {
            Arithmetic::Min | Arithmetic::Max => AtomicKind::MinMax,
            Arithmetic::Increment | Arithmetic::Decrement => AtomicKind::IncDec,
            Arithmetic::And | Arithmetic::Or | Arithmetic::Xor => AtomicKind::Bits,
            Arithmetic::Add | Arithmetic::Sub | Arithmetic::Mul | Arithmetic::Div => AtomicKind::Add,
        }
    }

    /// Integer types allowed for the operation. Source: PTX ISA, atom and red; ptxas 13.5 accepts exactly this list
    /// among the types up to 64 bits.
    pub(super) fn types(self) -> &'static [&'static str] {
        match self {
            AtomicKind::Add => &["u32", "s32", "u64"],
            AtomicKind::Bits => &["b32", "b64"],
            AtomicKind::CompareAndSwap => &["b16", "b32", "b64"],
            AtomicKind::MinMax => &["u32", "s32", "u64", "s64"],
            AtomicKind::IncDec => &["u32"],
        }
    }

    /// Name of the operation's type for a location of type `location`, if the operation allows a type with this size.
    pub(super) fn type_of(self, location: ValueType) -> Option<&'static str> {
        let sized = |name: &&&str| ValueType::named(name).is_some_and(|known| known.bits == location.bits);
        let exact = self.types().iter().filter(sized).find(|name| ValueType::named(name) == Some(location));
        exact.or_else(|| self.types().iter().find(sized)).copied()
    }

    /// True if the operation compares values, so that the sign of its type matters.
    pub(super) fn compares_values(self) -> bool {
        self == AtomicKind::MinMax
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(name: &str, value: Value) -> bool {
        ValueType::named(name).expect("a type").holds(value)
    }

    #[test]
    fn a_type_holds_what_all_its_accesses_read_alike() {
        for (name, least, most) in [
            ("s8", -128, 127),
            ("u8", 0, 255),
            ("b8", 0, 127),
            ("u16", 0, 65_535),
            ("s32", -(1 << 31), (1 << 31) - 1),
            ("u32", 0, (1 << 32) - 1),
            ("b32", 0, (1 << 31) - 1),
        ] {
            assert!(holds(name, least) && holds(name, most), "{name}");
            assert!(!holds(name, least - 1) && !holds(name, most + 1), "{name}");
        }
        assert!(holds("s64", Value::MIN) && holds("u64", Value::MAX) && !holds("u64", -1) && !holds("b64", -1));
    }

    #[test]
    fn accesses_of_one_size_share_a_type() {
        let shared = |one: &str, other: &str| {
            let [one, other] = [one, other].map(|name| ValueType::named(name).expect("a type"));
            one.shared(other).map(ValueType::name)
        };
        assert_eq!(shared("u32", "u32"), Some("u32"));
        assert_eq!(shared("u32", "s32"), Some("b32"));
        assert_eq!(shared("s64", "b64"), Some("b64"));
        assert_eq!(shared("u32", "u64"), None);
    }
}
