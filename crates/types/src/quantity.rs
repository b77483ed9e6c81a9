//! Text form of values in a file: a parser and a printer for each type in a configuration.

pub use crate::Clock;
use crate::{Attojoules, Bytes, LineSize, Ps, Rate};
use std::fmt;

/// A value in the form used by records and files; reading this form returns the same value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordValue {
    /// A count, or a size in bytes.
    Number(u64),
    /// Yes or no.
    Flag(bool),
    /// A number with its unit, or a word.
    Text(String),
    /// Several words.
    List(Vec<&'static str>),
}

/// The form accepted by a setting.
impl fmt::Display for RecordValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecordValue::Number(number) => number.fmt(f),
            RecordValue::Flag(flag) => flag.fmt(f),
            RecordValue::Text(text) => text.fmt(f),
            RecordValue::List(words) => words.join(",").fmt(f),
        }
    }
}

/// A measure's units, each with its size in the smallest unit.
type Units = &'static [(&'static str, u64)];

/// The schema form for a value: the permitted contents, as far as they do not depend on other values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueForm {
    /// Unspecified.
    Any,
    /// A single line of text.
    Text,
    /// True or false.
    Flag,
    /// A whole number from 1 to this maximum.
    Count(u32),
    /// A word from this list.
    Words(&'static [&'static str]),
    /// A number above zero: a decimal number, or a fraction as text.
    Fraction,
    /// A number with a unit, as text; the empty unit also stands for a plain number.
    Measure {
        /// Permitted units.
        units: Units,
        /// The base unit for tables, with its size in the smallest unit.
        base: (&'static str, u64),
        /// Units that need the clock.
        cycles: &'static [&'static str],
        /// Words accepted instead of a number.
        words: &'static [&'static str],
    },
}

impl ValueForm {
    /// A measure accepted only in `units`, with `base` as the base unit for tables.
    const fn units(units: Units, base: (&'static str, u64)) -> ValueForm {
        ValueForm::Measure { units, base, cycles: &[], words: &[] }
    }

    /// True if values in this form are numbers, with or without a unit.
    pub fn is_number(self) -> bool {
        match self {
            ValueForm::Any | ValueForm::Text | ValueForm::Flag | ValueForm::Words(_) => false,
            ValueForm::Count(_) | ValueForm::Fraction | ValueForm::Measure { .. } => true,
        }
    }

    /// The number represented by `text`, in the base unit: bytes, bytes per second, seconds, hertz, picojoules or a
    /// plain count. `None` if the text represents no number, for example a list word or `none`. `clock` converts
    /// cycles.
    pub fn number(self, text: &str, clock: Clock) -> Option<f64> {
        match self {
            ValueForm::Any | ValueForm::Text | ValueForm::Flag | ValueForm::Words(_) => None,
            ValueForm::Count(_) => text.parse::<u32>().ok().map(f64::from),
            ValueForm::Fraction => {
                let Fraction { numerator, denominator } = Fraction::from_text(text)?;
                Some(f64::from(numerator) / f64::from(denominator))
            }
            ValueForm::Measure { words, .. } if words.contains(&text) => (text == INFINITE).then_some(f64::INFINITY),
            ValueForm::Measure { units, base: (_, base), .. } => {
                let (Decimal { digits, decimals }, unit) = measure(text)?;
                let number = digits as f64 / 10_f64.powi(decimals as i32);
                let factor = units.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor as f64);
                // Cycles become a time, and bytes per cycle become bytes per second.
                let smallest = factor.map(|factor| number * factor).or_else(|| match unit {
                    "B/cycle" => Some(number * clock.hz() as f64),
                    "cycle" | "cycles" => Some(number * TIME_LIMIT as f64 / clock.hz() as f64),
                    _ => None,
                })?;
                Some(smallest / base as f64)
            }
        }
    }
}

/// The word for a rate without a limit.
const INFINITE: &str = "infinite";

/// A type that a key in a configuration file can hold.
pub trait Quantity: Sized {
    /// The permitted text, for error messages and help.
    const EXPECTED: &'static str;

    /// The permitted text, for schemas.
    const FORM: ValueForm = ValueForm::Any;

    /// Parses a value's text; returns `None` if it does not match [`Quantity::EXPECTED`]. `clock` converts cycles.
    fn parse(text: &str, clock: Clock) -> Option<Self>;

    /// The value in the largest exact unit.
    fn print(&self) -> RecordValue;
}

/// A small exact number in lowest terms, for example the cycles for which an instruction occupies a pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fraction {
    /// The numerator: 1 to 65535.
    pub numerator: u32,
    /// The denominator: 1 to 65535.
    pub denominator: u32,
}

/// Declares a word chosen from a list: an enum whose variants are the available options. With `: Default`, the first
/// option is the default.
#[macro_export]
macro_rules! choice {
    ($(#[doc = $about:literal])* pub enum $Name:ident $(: $Default:ident)? {
        $( $(#[doc = $doc:literal])+ $Variant:ident = $word:literal ),+ $(,)?
    }) => {
        $(#[doc = $about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $Name { $( $(#[doc = $doc])+ $Variant ),+ }

        impl $Name {
            /// Every option, in the order used by the documentation.
            pub const ALL: &'static [$Name] = &[$($Name::$Variant),+];

            /// The word used in a file.
            pub const fn word(self) -> &'static str {
                match self { $($Name::$Variant => $word),+ }
            }

            /// A one-line description for lists.
            pub const fn about(self) -> &'static str {
                match self { $($Name::$Variant => concat!($($doc),+).trim_ascii_start()),+ }
            }
        }

        $(impl $Default for $Name {
            fn default() -> $Name {
                $Name::ALL[0]
            }
        })?

        impl $crate::quantity::Quantity for $Name {
            const EXPECTED: &'static str = {
                let list = concat!("one of" $(, " \"", $word, "\",")+);
                list.split_at(list.len() - 1).0
            };

            const FORM: $crate::quantity::ValueForm = $crate::quantity::ValueForm::Words(&[$($word),+]);

            fn parse(text: &str, _: $crate::quantity::Clock) -> Option<$Name> {
                $Name::ALL.iter().copied().find(|option| option.word() == text)
            }

            fn print(&self) -> $crate::quantity::RecordValue {
                $crate::quantity::RecordValue::Text(self.word().to_owned())
            }
        }
    };
}
pub use choice;

/// Digits with an optional decimal point, as `digits / 10^decimals`.
struct Decimal {
    digits: u128,
    decimals: u32,
}

impl Decimal {
    /// Accepts at most 18 digits in total, because products with any unit must fit into 128 bits.
    fn parse(text: &str) -> Option<Decimal> {
        let (whole, part) = text.split_once('.').unwrap_or((text, ""));
        let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || !all_digits(whole) || !all_digits(part) || whole.len() + part.len() > 18 {
            return None;
        }
        let digits = format!("{whole}{part}").parse().ok()?;
        Some(Decimal { digits, decimals: part.len() as u32 })
    }

    /// `self × unit`, if the product is a whole number up to `limit`.
    fn times(&self, unit: u64, limit: u64) -> Option<u64> {
        let product = self.digits * u128::from(unit);
        let divisor = 10_u128.pow(self.decimals);
        let whole = product.is_multiple_of(divisor).then_some(product / divisor)?;
        u64::try_from(whole).ok().filter(|whole| *whole <= limit)
    }

    /// The duration of this many cycles, if at most a second, rounded down to whole picoseconds like
    /// [`Clock::span`].
    fn cycles(&self, clock: Clock) -> Option<Ps> {
        let a_second = 10_u128.pow(self.decimals) * u128::from(clock.hz());
        let time = self.digits * u128::from(TIME_LIMIT) / a_second;
        (self.digits <= a_second).then_some(Ps(u64::try_from(time).ok()?))
    }
}

/// Splits `12.5 GB/s` into the number and the unit.
fn measure(text: &str) -> Option<(Decimal, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    Some((Decimal::parse(&text[..end])?, text[end..].trim_start()))
}

/// Parses a number with a unit from `units`, as a multiple of the smallest unit.
fn in_units(text: &str, units: &[(&str, u64)], limit: u64) -> Option<u64> {
    let (number, unit) = measure(text)?;
    let (_, factor) = units.iter().find(|(name, _)| *name == unit)?;
    number.times(*factor, limit)
}

/// Prints `value` in the first unit (largest first) without a remainder.
fn print_in(value: u64, units: &[(&str, u64)]) -> RecordValue {
    let exact = units.iter().find(|(_, factor)| value.is_multiple_of(*factor));
    let (name, factor) = exact.expect("the last unit of every list is 1");
    RecordValue::Text(format!("{}{name}", value / factor))
}

/// Sizes are binary. Source: JEDEC Standard 100B.01 defines K, M and G as powers of 1024 for semiconductor storage,
/// and GPU papers use the same convention for cache sizes.
const SIZES: &[(&str, u64)] = &[
    ("", 1),
    ("B", 1),
    ("KB", 1 << 10),
    ("KiB", 1 << 10),
    ("MB", 1 << 20),
    ("MiB", 1 << 20),
    ("GB", 1 << 30),
    ("GiB", 1 << 30),
    ("TB", 1 << 40),
    ("TiB", 1 << 40),
];
/// Largest size, in bytes. Source: a 49-bit virtual address (GPS, Table 1).
const SIZE_LIMIT: u64 = 1 << 49;

/// Rates are decimal, in bytes per second, as in datasheets for links and memories.
const RATES: &[(&str, u64)] =
    &[("TB/s", 1_000_000_000_000), ("GB/s", 1_000_000_000), ("MB/s", 1_000_000), ("KB/s", 1_000), ("B/s", 1)];
/// Largest rate, in bytes per second: assumed, a thousand times any package's rate.
const RATE_LIMIT: u64 = 10_000_000_000_000_000;

/// Times in picoseconds.
const TIMES: &[(&str, u64)] =
    &[("s", 1_000_000_000_000), ("ms", 1_000_000_000), ("us", 1_000_000), ("ns", 1_000), ("ps", 1)];
/// Largest time, in picoseconds: one second, assumed, beyond any latency in a machine. Also the base unit for
/// tables.
const TIME_LIMIT: u64 = 1_000_000_000_000;

/// Frequencies in hertz; a [`Clock`] holds whole kilohertz.
const FREQUENCIES: &[(&str, u64)] = &[("GHz", 1_000_000_000), ("MHz", 1_000_000), ("kHz", 1_000)];
/// Largest frequency, in hertz: assumed, beyond any silicon; a cycle remains at least 10 ps.
const FREQUENCY_LIMIT: u64 = 100_000_000_000;

/// Energies in attojoules.
const ENERGIES: &[(&str, u64)] = &[("nJ", 1_000_000_000), ("pJ", 1_000_000), ("fJ", 1_000), ("aJ", 1)];
/// Largest energy, in attojoules: a microjoule, assumed, beyond any access.
const ENERGY_LIMIT: u64 = 1_000_000_000_000;

macro_rules! count {
    ($Type:ty, $expected:literal) => {
        impl Quantity for $Type {
            const EXPECTED: &'static str = $expected;

            const FORM: ValueForm = ValueForm::Count(<$Type>::MAX as u32);

            fn parse(text: &str, _: Clock) -> Option<$Type> {
                let (number, unit) = measure(text)?;
                let whole = unit.is_empty().then(|| number.times(1, u64::from(<$Type>::MAX)))??;
                <$Type>::try_from(whole).ok().filter(|count| *count > 0)
            }

            fn print(&self) -> RecordValue {
                RecordValue::Number(u64::from(*self))
            }
        }
    };
}
count!(u8, "a whole number from 1 to 255");
count!(u16, "a whole number from 1 to 65535");
count!(u32, "a whole number from 1 to 4294967295");

/// A number or its absence.
impl Quantity for Option<u32> {
    const EXPECTED: &'static str = "a whole number from 1 to 4294967295, or \"none\"";

    const FORM: ValueForm = ValueForm::Measure { units: &[("", 1)], base: ("", 1), cycles: &[], words: &["none"] };

    fn parse(text: &str, clock: Clock) -> Option<Option<u32>> {
        if text == "none" { Some(None) } else { u32::parse(text, clock).map(Some) }
    }

    fn print(&self) -> RecordValue {
        self.map_or_else(|| RecordValue::Text("none".to_owned()), |count| count.print())
    }
}

/// A size, at least one byte.
impl Quantity for u64 {
    const EXPECTED: &'static str = "a size from 1 byte to 512 TB, such as 128, \"64KB\" or \"3MB\" (1 KB = 1024 B)";

    const FORM: ValueForm = ValueForm::units(SIZES, ("B", 1));

    fn parse(text: &str, _: Clock) -> Option<u64> {
        in_units(text, SIZES, SIZE_LIMIT).filter(|size| *size > 0)
    }

    fn print(&self) -> RecordValue {
        RecordValue::Number(*self)
    }
}

/// A size, possibly zero.
impl Quantity for Bytes {
    const EXPECTED: &'static str = "a size from 0 bytes to 512 TB, such as 0, 16 or \"1KB\" (1 KB = 1024 B)";

    const FORM: ValueForm = ValueForm::units(SIZES, ("B", 1));

    fn parse(text: &str, _: Clock) -> Option<Bytes> {
        in_units(text, SIZES, SIZE_LIMIT).map(Bytes)
    }

    fn print(&self) -> RecordValue {
        RecordValue::Number(self.0)
    }
}

impl Quantity for LineSize {
    const EXPECTED: &'static str = "32, 64, 128 or 256 bytes";

    const FORM: ValueForm = ValueForm::units(SIZES, ("B", 1));

    fn parse(text: &str, _: Clock) -> Option<LineSize> {
        in_units(text, SIZES, SIZE_LIMIT).and_then(LineSize::new)
    }

    fn print(&self) -> RecordValue {
        RecordValue::Number(self.bytes())
    }
}

impl Quantity for Rate {
    const EXPECTED: &'static str = "a rate above zero and at most 10000 TB/s, such as \"512GB/s\" (10^9 bytes a second), \"2TB/s\" or \"64B/cycle\", or \"infinite\"";

    const FORM: ValueForm =
        ValueForm::Measure { units: RATES, base: ("B/s", 1), cycles: &["B/cycle"], words: &[INFINITE] };

    fn parse(text: &str, clock: Clock) -> Option<Rate> {
        if text == INFINITE {
            return Some(Rate::INFINITE);
        }
        let rate = in_units(text, RATES, RATE_LIMIT).or_else(|| {
            let (bytes, unit) = measure(text)?;
            (unit == "B/cycle").then(|| bytes.times(clock.hz(), RATE_LIMIT))?
        });
        rate.filter(|rate| *rate > 0).map(Rate)
    }

    fn print(&self) -> RecordValue {
        if self.is_infinite() { RecordValue::Text(INFINITE.to_owned()) } else { print_in(self.0, RATES) }
    }
}

impl Quantity for Ps {
    const EXPECTED: &'static str =
        "a time of at most one second, such as \"12.5ns\", \"2us\", \"28 cycles\" or \"0.5 cycles\"";

    const FORM: ValueForm =
        ValueForm::Measure { units: TIMES, base: ("s", TIME_LIMIT), cycles: &["cycle", "cycles"], words: &[] };

    fn parse(text: &str, clock: Clock) -> Option<Ps> {
        if let Some(time) = in_units(text, TIMES, TIME_LIMIT) {
            return Some(Ps(time));
        }
        let (number, unit) = measure(text)?;
        matches!(unit, "cycle" | "cycles").then(|| number.cycles(clock))?
    }

    fn print(&self) -> RecordValue {
        print_in(self.0, TIMES)
    }
}

impl Quantity for Clock {
    const EXPECTED: &'static str = "a frequency from 1 kHz to 100 GHz in whole kHz, such as \"1.3GHz\" or \"1380MHz\"";

    const FORM: ValueForm = ValueForm::units(FREQUENCIES, ("Hz", 1));

    fn parse(text: &str, _: Clock) -> Option<Clock> {
        let hz = in_units(text, FREQUENCIES, FREQUENCY_LIMIT)?;
        (hz > 0 && hz.is_multiple_of(1000)).then(|| Clock::from_hz(hz))
    }

    fn print(&self) -> RecordValue {
        print_in(self.hz(), FREQUENCIES)
    }
}

impl Quantity for Attojoules {
    const EXPECTED: &'static str = "an energy from 0 to 1000 nJ, such as \"3.92pJ\", \"540fJ\" or \"0pJ\"";

    const FORM: ValueForm = ValueForm::units(ENERGIES, ("pJ", 1_000_000));

    fn parse(text: &str, _: Clock) -> Option<Attojoules> {
        in_units(text, ENERGIES, ENERGY_LIMIT).map(Attojoules)
    }

    fn print(&self) -> RecordValue {
        print_in(self.0, ENERGIES)
    }
}

impl Fraction {
    /// The fraction 1/1.
    pub const ONE: Fraction = Fraction { numerator: 1, denominator: 1 };

    /// `numerator / denominator` in lowest terms; `None` unless both then lie in 1 to 65535.
    pub fn new(numerator: u64, denominator: u64) -> Option<Fraction> {
        if numerator == 0 || denominator == 0 {
            return None;
        }
        let divisor = greatest_common_divisor(numerator, denominator);
        let small = |part: u64| u16::try_from(part / divisor).ok().map(u32::from);
        Some(Fraction { numerator: small(numerator)?, denominator: small(denominator)? })
    }

    /// Parses `3`, `0.0625` or `1/16`.
    pub fn from_text(text: &str) -> Option<Fraction> {
        let whole = |text: &str| Decimal::parse(text.trim());
        match text.split_once('/') {
            Some((above, below)) => Fraction::new(whole(above)?.times(1, u64::MAX)?, whole(below)?.times(1, u64::MAX)?),
            None => {
                let Decimal { digits, decimals } = whole(text)?;
                Fraction::new(u64::try_from(digits).ok()?, 10_u64.checked_pow(decimals)?)
            }
        }
    }
}

impl std::fmt::Display for Fraction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.denominator {
            1 => write!(f, "{}", self.numerator),
            below => write!(f, "{}/{below}", self.numerator),
        }
    }
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

impl Quantity for Fraction {
    const EXPECTED: &'static str = "a number above zero, of whole numbers up to 65535, such as 2, 0.5 or \"1/2\"";

    const FORM: ValueForm = ValueForm::Fraction;

    fn parse(text: &str, _: Clock) -> Option<Fraction> {
        Fraction::from_text(text)
    }

    fn print(&self) -> RecordValue {
        RecordValue::Text(self.to_string())
    }
}

impl Quantity for bool {
    const EXPECTED: &'static str = "true or false";

    const FORM: ValueForm = ValueForm::Flag;

    fn parse(text: &str, _: Clock) -> Option<bool> {
        text.parse().ok()
    }

    fn print(&self) -> RecordValue {
        RecordValue::Flag(*self)
    }
}

impl Quantity for String {
    const EXPECTED: &'static str = "one line of text";

    const FORM: ValueForm = ValueForm::Text;

    fn parse(text: &str, _: Clock) -> Option<String> {
        (!text.is_empty() && !text.contains(char::is_control)).then(|| text.to_owned())
    }

    fn print(&self) -> RecordValue {
        RecordValue::Text(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock() -> Clock {
        Clock::from_hz(1_300_000_000)
    }

    fn printed<T: Quantity>(text: &str) -> Option<RecordValue> {
        T::parse(text, clock()).map(|value| value.print())
    }

    fn text(words: &str) -> Option<RecordValue> {
        Some(RecordValue::Text(words.to_owned()))
    }

    #[test]
    fn sizes_are_binary_and_rates_decimal() {
        assert_eq!(u64::parse("1.5KB", clock()), Some(1536));
        assert_eq!(u64::parse("3 MB", clock()), u64::parse("3MiB", clock()));
        assert_eq!(Rate::parse("62.5GB/s", clock()), Some(Rate(62_500_000_000)));
        assert_eq!(Rate::parse("64B/cycle", clock()), Some(Rate(83_200_000_000)));
    }

    #[test]
    fn fractional_units_are_refused_instead_of_rounded() {
        assert_eq!(u64::parse("1.0001KB", clock()), None);
        assert_eq!(Ps::parse("0.0005ns", clock()), None);
        assert_eq!(Rate::parse("0.5B/s", clock()), None);
        assert_eq!(Clock::parse("1.0000005GHz", clock()), None);
        assert_eq!(Attojoules::parse("0.0005fJ", clock()), None);
    }

    #[test]
    fn cycles_may_be_fractions() {
        let halves = |text: &str| Ps::parse(text, Clock::from_hz(1_000_000_000));
        assert_eq!(halves("0.5 cycles"), Some(Ps(500)));
        assert_eq!(halves("2.25cycles"), Some(Ps(2250)));
        assert_eq!(halves("28.0 cycles"), halves("28 cycles"));
        assert_eq!(halves("1000000000 cycles"), Some(Ps(TIME_LIMIT)));
        assert_eq!(halves("1000000000.5 cycles"), None, "longer than a second");
        assert_eq!(Ps::parse("1.5 cycles", clock()), Some(Ps(1153)), "1153.8 ps at 1.3 GHz");
    }

    #[test]
    fn values_print_in_the_largest_exact_unit() {
        assert_eq!(printed::<Rate>("2048GB/s"), text("2048GB/s"));
        assert_eq!(printed::<Rate>("2TB/s"), text("2TB/s"));
        assert_eq!(printed::<Rate>("infinite"), text("infinite"));
        assert_eq!(printed::<Ps>("28 cycles"), text("21538ps"));
        assert_eq!(printed::<Ps>("0.128us"), text("128ns"));
        assert_eq!(printed::<Clock>("1.3GHz"), text("1300MHz"));
        assert_eq!(printed::<Attojoules>("3.92pJ"), text("3920fJ"));
        assert_eq!(printed::<Fraction>("0.5"), text("1/2"));
        assert_eq!(printed::<u64>("3MB"), Some(RecordValue::Number(3 << 20)));
    }

    #[test]
    fn numbers_of_any_length_get_an_answer() {
        for length in [1, 17, 18, 19, 40, 1000] {
            let number = "9".repeat(length);
            assert_eq!(u32::parse(&number, clock()).is_some(), length < 10);
            assert!(Rate::parse(&format!("{number}TB/s"), clock()).is_none_or(|_| length < 5));
            assert_eq!(Ps::parse(&format!("0.{number}ns"), clock()).is_some(), length == 1);
        }
    }

    #[test]
    fn a_value_is_a_number_in_its_base_unit() {
        let clock = Clock::from_hz(2_000_000_000);
        let of = |form: ValueForm, text| form.number(text, clock);
        assert_eq!([of(u64::FORM, "3MB"), of(Bytes::FORM, "0")], [Some(3_145_728.0), Some(0.0)]);
        assert_eq!([of(Rate::FORM, "50GB/s"), of(Rate::FORM, "64B/cycle")], [Some(5e10), Some(1.28e11)]);
        assert_eq!(of(Rate::FORM, "infinite"), Some(f64::INFINITY));
        assert_eq!([of(Ps::FORM, "500 ns"), of(Ps::FORM, "28 cycles")], [Some(5e-7), Some(1.4e-8)]);
        assert_eq!([of(Clock::FORM, "1.3GHz"), of(Attojoules::FORM, "540fJ")], [Some(1.3e9), Some(0.54)]);
        assert_eq!([of(u8::FORM, "16"), of(Fraction::FORM, "1/16")], [Some(16.0), Some(0.0625)]);
        assert_eq!([of(Option::<u32>::FORM, "none"), of(bool::FORM, "true"), of(u64::FORM, "3XB")], [None; 3]);
    }
}
