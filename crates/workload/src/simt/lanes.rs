//! Values in a warp: an element per lane, with the loads on which the elements depend.

use super::deps::Deps;
use super::memory::Element;
use std::array::from_fn;
use std::ops::{Add, BitAnd, BitOr, Div, Mul, Not, Rem, Sub};

/// Number of lanes in a value: the widest warp (AMD's wavefront of 64).
pub const MAX_LANES: usize = 64;

/// An element per lane. Inactive lanes hold arbitrary values.
#[derive(Clone, Copy, Debug)]
pub struct Lanes<T> {
    pub(crate) values: [T; MAX_LANES],
    pub(crate) deps: Deps,
}

/// Numbers with the hardware's arithmetic: integers wrap around, and division by zero gives zero instead of a trap.
pub trait Number: Element {
    /// Sum.
    fn plus(self, other: Self) -> Self;
    /// Difference.
    fn minus(self, other: Self) -> Self;
    /// Product.
    fn times(self, other: Self) -> Self;
    /// Quotient.
    fn over(self, other: Self) -> Self;
    /// Remainder.
    fn rest(self, other: Self) -> Self;
}

macro_rules! numbers {
    ($($integer:ty),*; $($float:ty),*) => {
        $(impl Number for $integer {
            #[inline]
            fn plus(self, other: $integer) -> $integer { self.wrapping_add(other) }
            #[inline]
            fn minus(self, other: $integer) -> $integer { self.wrapping_sub(other) }
            #[inline]
            fn times(self, other: $integer) -> $integer { self.wrapping_mul(other) }
            #[inline]
            fn over(self, other: $integer) -> $integer { self.checked_div(other).unwrap_or_default() }
            #[inline]
            fn rest(self, other: $integer) -> $integer { self.checked_rem(other).unwrap_or_default() }
        })*
        $(impl Number for $float {
            #[inline]
            fn plus(self, other: $float) -> $float { self + other }
            #[inline]
            fn minus(self, other: $float) -> $float { self - other }
            #[inline]
            fn times(self, other: $float) -> $float { self * other }
            #[inline]
            fn over(self, other: $float) -> $float { self / other }
            #[inline]
            fn rest(self, other: $float) -> $float { self % other }
        })*
    };
}

numbers! { u8, i32, u32, i64, u64; f32, f64 }

/// Conversion between element types with the meaning of Rust's `as`.
pub trait Cast<U> {
    /// Converts the value to a `U`.
    fn cast(self) -> U;
}

macro_rules! casts {
    ($($from:ty => $($to:ty),*;)*) => {
        $($(impl Cast<$to> for $from {
            #[inline]
            #[allow(clippy::cast_lossless, reason = "one body for widening and narrowing conversions")]
            fn cast(self) -> $to { self as $to }
        })*)*
    };
}

casts! {
    bool => u8, i32, u32, i64, u64;
    u8 => i32, u32, i64, u64, f32, f64;
    i32 => u8, u32, i64, u64, f32, f64;
    u32 => u8, i32, i64, u64, f32, f64;
    i64 => i32, u32, u64, f32, f64;
    u64 => i32, u32, i64, f32, f64;
    f32 => i32, u32, i64, u64, f64;
    f64 => i32, u32, i64, u64, f32;
}

/// Types that can index an array.
pub trait Index: Copy {
    /// The indexed element; a negative index refers to an element beyond every array.
    fn element(self) -> u64;
}

macro_rules! indices {
    ($($type:ty),*) => {$(
        impl Index for $type {
            #[inline]
            fn element(self) -> u64 { i64::from(self) as u64 }
        }
    )*};
}

indices! { i32, u32, i64 }

impl<T: Copy> Lanes<T> {
    /// The same value in every lane.
    #[inline]
    pub fn all(value: T) -> Lanes<T> {
        Lanes { values: [value; MAX_LANES], deps: Deps::NONE }
    }

    /// Sets each lane, 0 to 63, to `value(lane)`.
    #[inline]
    pub fn by_lane(mut value: impl FnMut(u32) -> T) -> Lanes<T> {
        Lanes { values: from_fn(|lane| value(lane as u32)), deps: Deps::NONE }
    }

    /// Applies `function` to each lane's value.
    #[inline]
    pub fn map<U: Copy>(self, mut function: impl FnMut(T) -> U) -> Lanes<U> {
        Lanes { values: from_fn(|lane| function(self.values[lane])), deps: self.deps }
    }

    /// Applies `function` to both values, lane by lane; the result depends on the loads of both operands.
    #[inline]
    pub fn zip<U: Copy, V: Copy>(self, other: Lanes<U>, mut function: impl FnMut(T, U) -> V) -> Lanes<V> {
        let values = from_fn(|lane| function(self.values[lane], other.values[lane]));
        Lanes { values, deps: self.deps.unite(other.deps) }
    }

    /// The value in a single lane, for code outside the warp's instructions (a reference, a test).
    #[inline]
    pub fn lane(&self, lane: u32) -> T {
        self.values[lane as usize]
    }

    /// Converts to another element type.
    pub fn cast<U: Copy>(self) -> Lanes<U>
    where
        T: Cast<U>,
    {
        self.map(Cast::cast)
    }
}

impl<I: Index> Lanes<I> {
    /// Looks up each lane's index in a table of per-CTA registers; zero beyond the table's end.
    pub fn pick<T: Element>(self, table: &[T]) -> Lanes<T> {
        self.map(|index| table.get(index.element() as usize).copied().unwrap_or_default())
    }
}

impl<T: Copy + PartialOrd> Lanes<T> {
    /// Minimum, lane by lane.
    pub fn min(self, other: Lanes<T>) -> Lanes<T> {
        self.zip(other, |a, b| if b < a { b } else { a })
    }

    /// Maximum, lane by lane.
    pub fn max(self, other: Lanes<T>) -> Lanes<T> {
        self.zip(other, |a, b| if b > a { b } else { a })
    }

    /// Compares lane by lane: `self < other`.
    pub fn lt(self, other: impl Into<Lanes<T>>) -> Lanes<bool> {
        self.zip(other.into(), |a, b| a < b)
    }

    /// Compares lane by lane: `self <= other`.
    pub fn le(self, other: impl Into<Lanes<T>>) -> Lanes<bool> {
        self.zip(other.into(), |a, b| a <= b)
    }

    /// Compares lane by lane: `self > other`.
    pub fn gt(self, other: impl Into<Lanes<T>>) -> Lanes<bool> {
        self.zip(other.into(), |a, b| a > b)
    }

    /// Compares lane by lane: `self >= other`.
    pub fn ge(self, other: impl Into<Lanes<T>>) -> Lanes<bool> {
        self.zip(other.into(), |a, b| a >= b)
    }

    /// Compares lane by lane: `self == other`.
    pub fn eq(self, other: impl Into<Lanes<T>>) -> Lanes<bool> {
        self.zip(other.into(), |a, b| a == b)
    }

    /// Compares lane by lane: `self != other`.
    pub fn ne(self, other: impl Into<Lanes<T>>) -> Lanes<bool> {
        self.zip(other.into(), |a, b| a != b)
    }
}

impl Lanes<bool> {
    /// Selects `yes` in lanes with true, `no` in all other lanes. A select, not a branch: the result depends on all
    /// three values.
    #[inline]
    pub fn select<T: Copy>(self, yes: Lanes<T>, no: Lanes<T>) -> Lanes<T> {
        let either = yes.zip(no, |yes, no| (yes, no));
        self.zip(either, |choice, (yes, no)| if choice { yes } else { no })
    }

    /// Bit mask of the lanes that hold true.
    #[inline]
    pub(crate) fn bits(&self) -> u64 {
        self.values.iter().enumerate().fold(0, |bits, (lane, &value)| bits | u64::from(value) << lane)
    }
}

impl<T: Copy> From<T> for Lanes<T> {
    fn from(value: T) -> Lanes<T> {
        Lanes::all(value)
    }
}

macro_rules! operators {
    ($($operator:ident, $method:ident, $function:ident;)*) => {$(
        impl<T: Number> $operator for Lanes<T> {
            type Output = Lanes<T>;
            #[inline]
            fn $method(self, other: Lanes<T>) -> Lanes<T> { self.zip(other, Number::$function) }
        }
        impl<T: Number> $operator<T> for Lanes<T> {
            type Output = Lanes<T>;
            #[inline]
            fn $method(self, other: T) -> Lanes<T> { self.map(|value| value.$function(other)) }
        }
    )*};
}

operators! { Add, add, plus; Sub, sub, minus; Mul, mul, times; Div, div, over; Rem, rem, rest; }

impl BitAnd for Lanes<bool> {
    type Output = Lanes<bool>;
    #[inline]
    fn bitand(self, other: Lanes<bool>) -> Lanes<bool> {
        self.zip(other, |a, b| a & b)
    }
}

impl BitOr for Lanes<bool> {
    type Output = Lanes<bool>;
    #[inline]
    fn bitor(self, other: Lanes<bool>) -> Lanes<bool> {
        self.zip(other, |a, b| a | b)
    }
}

impl Not for Lanes<bool> {
    type Output = Lanes<bool>;
    #[inline]
    fn not(self) -> Lanes<bool> {
        self.map(|value| !value)
    }
}

/// Operand of an instruction: lanes, nothing, several values, or an array of values.
pub trait Value {
    /// Calls `visit` with the loads on which each part depends, and lets `visit` clear them.
    #[doc(hidden)]
    fn visit(&mut self, visit: &mut dyn FnMut(&mut AwaitedLoads<'_>));
}

/// The loads on which a value depends, opaque outside the language.
#[doc(hidden)]
pub struct AwaitedLoads<'a>(pub(crate) &'a mut Deps);

impl Value for () {
    fn visit(&mut self, _: &mut dyn FnMut(&mut AwaitedLoads<'_>)) {}
}

impl<T> Value for Lanes<T> {
    fn visit(&mut self, visit: &mut dyn FnMut(&mut AwaitedLoads<'_>)) {
        visit(&mut AwaitedLoads(&mut self.deps));
    }
}

impl<A: Value, B: Value> Value for (A, B) {
    fn visit(&mut self, visit: &mut dyn FnMut(&mut AwaitedLoads<'_>)) {
        self.0.visit(visit);
        self.1.visit(visit);
    }
}

impl<A: Value, const N: usize> Value for [A; N] {
    fn visit(&mut self, visit: &mut dyn FnMut(&mut AwaitedLoads<'_>)) {
        self.iter_mut().for_each(|part| part.visit(visit));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_wrap_and_division_by_zero_does_not_trap() {
        let top = Lanes::all(i32::MAX);
        assert_eq!((top + 1).lane(0), i32::MIN);
        assert_eq!((top / 0).lane(5), 0);
        assert_eq!((Lanes::all(i32::MIN) % Lanes::all(-1)).lane(5), 0);
    }

    #[test]
    fn a_selection_waits_for_everything() {
        let (a, b) = (Deps::of(0, false), Deps::of(1, false));
        let yes = Lanes { deps: a, ..Lanes::all(1) };
        let no = Lanes { deps: b, ..Lanes::all(2) };
        let chosen = Lanes::by_lane(|lane| lane == 3).select(yes, no);
        assert_eq!((chosen.lane(3), chosen.lane(4), chosen.deps), (1, 2, a.unite(b)));
    }

    #[test]
    fn a_negative_index_is_beyond_every_array() {
        assert_eq!((-1_i32).element(), u64::MAX);
        assert_eq!(u32::MAX.element(), u64::from(u32::MAX));
    }
}
