//! A machine in miniature: the same ratios of footprint to capacity and of compute to bandwidth, sooner.

use crate::quantity::Fraction;
use std::fmt;

/// The fraction of a machine that is simulated: above 0, at most 1, in lowest terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale(Fraction);

impl Scale {
    /// The whole machine.
    pub const FULL: Scale = Scale(Fraction { numerator: 1, denominator: 1 });

    /// `numerator / denominator`, or `None` unless above 0 and at most 1, with parts up to 65535.
    pub fn new(numerator: u64, denominator: u64) -> Option<Scale> {
        Fraction::new(numerator, denominator).filter(|f| f.numerator <= f.denominator).map(Scale)
    }

    /// Above the line.
    pub fn numerator(self) -> u64 {
        u64::from(self.0.numerator)
    }

    /// Below the line.
    pub fn denominator(self) -> u64 {
        u64::from(self.0.denominator)
    }
}

impl fmt::Display for Scale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
