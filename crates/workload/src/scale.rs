//! The scale of a run: an exact fraction, which keeps sizes independent of floating-point rounding.

use std::fmt;
use std::str::FromStr;

/// A factor F = `numerator / denominator` by which a run's inputs (and its machine) shrink or grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    numerator: u64,
    denominator: u64,
}

/// Numerator and denominator stay below this limit, and F below [`LARGEST`], which keeps sizes within 64 bits.
const LIMIT: u64 = 1 << 20;
/// Largest F. Source: assumed; inputs 64 times larger than a paper's no longer fit in a host.
const LARGEST: u64 = 64;

impl Scale {
    /// The paper's size: F = 1.
    pub const FULL: Scale = Scale { numerator: 1, denominator: 1 };

    /// `numerator / denominator`, or `None` unless both are 1 to 2^20 and F is at most 64.
    pub const fn new(numerator: u64, denominator: u64) -> Option<Scale> {
        if numerator == 0
            || denominator == 0
            || numerator > LIMIT
            || denominator > LIMIT
            || numerator > LARGEST * denominator
        {
            return None;
        }
        Some(Scale { numerator, denominator })
    }

    /// `size × F`, rounded to the nearest integer, at least 1.
    pub fn of(self, size: u64) -> u64 {
        let scaled = u128::from(size) * u128::from(self.numerator) + u128::from(self.denominator / 2);
        ((scaled / u128::from(self.denominator)) as u64).max(1)
    }

    /// `size × √F`, rounded to the nearest integer, at least 1: the side length for arrays scaled in two dimensions.
    pub fn side_of(self, size: u64) -> u64 {
        let square = u128::from(size) * u128::from(size) * u128::from(self.numerator) / u128::from(self.denominator);
        let root = square.isqrt();
        let up = square - root * root > root;
        (root as u64 + u64::from(up)).max(1)
    }
}

impl FromStr for Scale {
    type Err = String;

    /// Parses a decimal (`0.25`) or a fraction (`1/16`).
    fn from_str(text: &str) -> Result<Scale, String> {
        let allowed = || format!("`{text}` is no scale: a decimal (0.25) or a fraction (1/16) above 0, at most 64");
        let (numerator, denominator) = match text.split_once('/') {
            Some((above, below)) => (above.parse().map_err(|_| allowed())?, below.parse().map_err(|_| allowed())?),
            None => {
                let (whole, part) = text.split_once('.').unwrap_or((text, ""));
                let digits = part.len() <= 6 && (whole.to_owned() + part).bytes().all(|byte| byte.is_ascii_digit());
                let number: u64 = (whole.to_owned() + part).parse().map_err(|_| allowed())?;
                if !digits {
                    return Err(allowed());
                }
                (number, 10_u64.pow(part.len() as u32))
            }
        };
        let divisor = gcd(numerator, denominator).max(1);
        Scale::new(numerator / divisor, denominator / divisor).ok_or_else(allowed)
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

impl fmt::Display for Scale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.denominator {
            1 => write!(f, "{}", self.numerator),
            below => write!(f, "{}/{below}", self.numerator),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scale_is_read_as_a_decimal_or_a_fraction() {
        for (text, numerator, denominator) in [("1", 1, 1), ("1/16", 1, 16), ("0.25", 1, 4), ("1.5", 3, 2)] {
            assert_eq!(text.parse(), Ok(Scale { numerator, denominator }), "{text}");
        }
        for text in
            ["0", "", "/", "1/0", "-1", "x", "1.2.3", "0.00000001", "1e3", ".", "65", "1000/2", "99999999999999999999"]
        {
            assert!(text.parse::<Scale>().is_err(), "{text}");
        }
    }

    #[test]
    fn sides_scale_by_the_root() {
        let sixteenth = Scale::new(1, 16).unwrap();
        assert_eq!((sixteenth.of(1 << 20), sixteenth.side_of(1 << 10)), (1 << 16, 1 << 8));
        assert_eq!((sixteenth.of(1), sixteenth.side_of(1)), (1, 1));
        assert_eq!(Scale::new(1, 2).unwrap().side_of(100), 71);
    }
}
