//! Sizes in bytes, rates in bytes a second, and the serialisation of one through the other.

use crate::time::Ps;
use std::fmt;
use std::ops::{Add, AddAssign};

/// A number of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

impl Add for Bytes {
    type Output = Bytes;
    fn add(self, other: Bytes) -> Bytes {
        Bytes(self.0 + other.0)
    }
}

impl AddAssign for Bytes {
    fn add_assign(&mut self, other: Bytes) {
        self.0 += other.0;
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(u64, &str); 3] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
        match UNITS.iter().find(|(unit, _)| self.0 >= *unit) {
            Some((unit, name)) => write!(f, "{:.2} {name}", self.0 as f64 / *unit as f64),
            None => write!(f, "{} B", self.0),
        }
    }
}

/// A bandwidth in bytes a second. Zero means infinite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rate(pub u64);

impl Rate {
    /// No limit: serialising takes no time.
    pub const INFINITE: Rate = Rate(0);

    /// Whether the rate sets no limit.
    pub fn is_infinite(self) -> bool {
        self.0 == 0
    }
}

/// Serialises bytes at a rate and carries the remainder of each division, so that many small packets take
/// exactly as long as one large one.
///
/// The resource is busy until [`Serializer::free_at`]; a request that arrives earlier queues behind it.
#[derive(Clone, Debug)]
pub struct Serializer {
    rate: Rate,
    free_at: Ps,
    /// Remainder of the last division, in units of `1 / rate` picoseconds (0 to `rate - 1`).
    carry: u64,
}

impl Serializer {
    /// An idle serialiser of the given rate.
    pub fn new(rate: Rate) -> Serializer {
        Serializer { rate, free_at: Ps::ZERO, carry: 0 }
    }

    /// Occupies the resource with `bytes` at or after `now`, in call order; returns when the last byte has
    /// passed.
    pub fn send(&mut self, now: Ps, bytes: Bytes) -> Ps {
        if self.rate.is_infinite() {
            return now;
        }
        if now > self.free_at {
            self.free_at = now;
            self.carry = 0;
        }
        let scaled = u128::from(bytes.0) * 1_000_000_000_000 + u128::from(self.carry);
        let (span, carry) = match u64::try_from(scaled) {
            Ok(small) => (small / self.rate.0, small % self.rate.0),
            Err(_) => ((scaled / u128::from(self.rate.0)) as u64, (scaled % u128::from(self.rate.0)) as u64),
        };
        self.carry = carry;
        self.free_at += Ps(span);
        self.free_at
    }

    /// When everything accepted so far has passed.
    pub fn free_at(&self) -> Ps {
        self.free_at
    }

    /// The rate it serialises at.
    pub fn rate(&self) -> Rate {
        self.rate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_packets_take_as_long_as_one_large_one() {
        let mut link = Serializer::new(Rate(450_000_000_000));
        for _ in 0..45_000 {
            link.send(Ps::ZERO, Bytes(64));
        }
        assert_eq!(link.free_at(), Ps(6_400_000), "45,000 packets of 64 B at 450 GB/s are 6.4 us");
    }

    #[test]
    fn an_idle_gap_is_not_saved_up() {
        let mut link = Serializer::new(Rate(1_000_000_000_000));
        assert_eq!(link.send(Ps(100), Bytes(10)), Ps(110));
        assert_eq!(link.send(Ps(1000), Bytes(10)), Ps(1010));
        assert_eq!(link.send(Ps(1000), Bytes(10)), Ps(1020));
    }

    #[test]
    fn an_infinite_rate_takes_no_time() {
        assert_eq!(Serializer::new(Rate::INFINITE).send(Ps(7), Bytes(1 << 40)), Ps(7));
    }
}
