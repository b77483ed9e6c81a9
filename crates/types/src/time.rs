//! Simulated time in picoseconds, and the clocks that convert cycles to time.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

/// A point in simulated time, or a time span, in picoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ps(pub u64);

impl Ps {
    /// Time zero.
    pub const ZERO: Ps = Ps(0);
    /// Later than any event.
    pub const NEVER: Ps = Ps(u64::MAX);

    /// A span of `ns` nanoseconds.
    pub const fn from_ns(ns: u64) -> Ps {
        Ps(ns * 1000)
    }

    /// The span as a floating-point number of seconds.
    pub fn seconds(self) -> f64 {
        self.0 as f64 * 1e-12
    }

    /// `self - other`, or zero if `other` is later.
    pub const fn saturating_sub(self, other: Ps) -> Ps {
        Ps(self.0.saturating_sub(other.0))
    }
}

impl Add for Ps {
    type Output = Ps;
    fn add(self, other: Ps) -> Ps {
        Ps(self.0 + other.0)
    }
}

impl AddAssign for Ps {
    fn add_assign(&mut self, other: Ps) {
        self.0 += other.0;
    }
}

impl Sub for Ps {
    type Output = Ps;
    fn sub(self, other: Ps) -> Ps {
        Ps(self.0 - other.0)
    }
}

impl fmt::Display for Ps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03} ns", self.0 / 1000, self.0 % 1000)
    }
}

/// A clock with a stated frequency. Edges are computed from the cycle number, so a period with a fractional number of
/// picoseconds (1.3 GHz) does not drift.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    khz: u64,
}

impl Clock {
    /// A clock with frequency `hz`, rounded to kilohertz. Panics on a frequency below one kilohertz.
    pub fn from_hz(hz: u64) -> Clock {
        let khz = (hz + 500) / 1000;
        assert!(khz > 0, "a clock of {hz} Hz is below the resolution of one kHz");
        Clock { khz }
    }

    /// Frequency in hertz.
    pub fn hz(self) -> u64 {
        self.khz * 1000
    }

    /// Time of clock edge `cycle`, rounded down to a picosecond.
    pub fn edge(self, cycle: u64) -> Ps {
        // 10^9 ps per ms; a kHz is one cycle per ms.
        match cycle.checked_mul(1_000_000_000) {
            Some(scaled) => Ps(scaled / self.khz),
            None => Ps((u128::from(cycle) * 1_000_000_000 / u128::from(self.khz)) as u64),
        }
    }

    /// Span of `cycles` cycles, rounded down to a picosecond.
    pub fn span(self, cycles: u64) -> Ps {
        self.edge(cycles)
    }

    /// Number of the first edge at or after `at`.
    pub fn cycle_at_or_after(self, at: Ps) -> u64 {
        let scaled = u128::from(at.0) * u128::from(self.khz);
        let cycle = scaled.div_ceil(1_000_000_000) as u64;
        // `edge` rounds down, so the previous edge may already be at `at`.
        if cycle > 0 && self.edge(cycle - 1) >= at { cycle - 1 } else { cycle }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_of_1_3_ghz_does_not_drift() {
        let clock = Clock::from_hz(1_300_000_000);
        assert_eq!(clock.edge(1_300_000_000), Ps(1_000_000_000_000));
        assert_eq!(clock.edge(1), Ps(769));
        assert_eq!(clock.edge(2), Ps(1538));
    }

    #[test]
    fn cycle_at_or_after_inverts_edge() {
        let clock = Clock::from_hz(1_300_000_000);
        for cycle in [0, 1, 2, 3, 1000, 123_456_789] {
            assert_eq!(clock.cycle_at_or_after(clock.edge(cycle)), cycle);
            assert_eq!(clock.cycle_at_or_after(clock.edge(cycle) + Ps(1)), cycle + 1);
        }
    }
}
