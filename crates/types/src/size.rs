//! Sizes in bytes, rates in bytes per second, and the serialisation of bytes at a rate.

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

/// A bandwidth in bytes per second. Zero means infinite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rate(pub u64);

impl Rate {
    /// No limit: serialising takes no time.
    pub const INFINITE: Rate = Rate(0);

    /// True if the rate sets no limit.
    pub fn is_infinite(self) -> bool {
        self.0 == 0
    }
}

/// Fractional bits in the fixed-point picoseconds used by a [`Serializer`].
const FRACTION: u32 = 32;

/// Serialises bytes at a rate. The fraction of a picosecond left by each packet is carried over: the time for many
/// small packets is exactly the time for a large packet. No division is necessary: the time per byte is stored in fixed
/// point, rounded up by less than 2^-32 ps.
///
/// The resource is busy until [`Serializer::free_at`]; a request with an earlier arrival must queue.
#[derive(Clone, Debug)]
pub struct Serializer {
    rate: Rate,
    /// Time per byte, in 2^-32 ps; 0 if the rate is infinite.
    byte: u64,
    free_at: Ps,
    /// Remainder of the last packet's time beyond `free_at`, in 2^-32 ps, below 1 ps.
    carry: u64,
    /// Total time occupied, including accepted bytes that have not yet passed.
    busy: Ps,
}

impl Serializer {
    /// An idle serialiser with the given rate.
    pub fn new(rate: Rate) -> Serializer {
        let byte = if rate.is_infinite() { 0 } else { (1_000_000_000_000_u128 << FRACTION).div_ceil(rate.0.into()) };
        // All rates below some 233 B/s are treated alike.
        let byte = u64::try_from(byte).unwrap_or(u64::MAX);
        Serializer { rate, byte, free_at: Ps::ZERO, carry: 0, busy: Ps::ZERO }
    }

    /// Occupies the resource with `bytes` at or after `now`, in call order; returns when the last byte has passed.
    #[inline]
    pub fn send(&mut self, now: Ps, bytes: Bytes) -> Ps {
        if self.byte == 0 {
            return now;
        }
        if now > self.free_at {
            self.free_at = now;
            self.carry = 0;
        }
        self.occupy(u128::from(bytes.0) * u128::from(self.byte))
    }

    /// Like [`Serializer::send`], for a request that occupies the resource for at least `least`, however few its bytes.
    #[inline]
    pub fn send_for(&mut self, now: Ps, bytes: Bytes, least: Interval) -> Ps {
        if now > self.free_at {
            self.free_at = now;
            self.carry = 0;
        }
        self.occupy((u128::from(bytes.0) * u128::from(self.byte)).max(u128::from(least.0)))
    }

    /// Extends the occupied time by `span`, in 2^-32 ps; returns its end.
    #[inline]
    fn occupy(&mut self, span: u128) -> Ps {
        let span = span + u128::from(self.carry);
        self.carry = span as u64 & ((1 << FRACTION) - 1);
        let time = Ps((span >> FRACTION) as u64);
        self.busy += time;
        self.free_at += time;
        self.free_at
    }

    /// Time for `bytes` without any queueing.
    #[inline]
    pub fn span(&self, bytes: Bytes) -> Ps {
        Ps(((u128::from(bytes.0) * u128::from(self.byte)) >> FRACTION) as u64)
    }

    /// Time when all bytes accepted so far have passed.
    pub fn free_at(&self) -> Ps {
        self.free_at
    }

    /// Total time occupied, including accepted bytes that have not yet passed; zero at an infinite rate.
    pub fn busy(&self) -> Ps {
        self.busy
    }

    /// The serialiser's rate.
    pub fn rate(&self) -> Rate {
        self.rate
    }
}

/// A time finer than a picosecond, in 2^-32 ps, to keep sums of clock cycles exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interval(u64);

impl Interval {
    /// Interval for `cycles.0 / cycles.1` cycles of a clock; `span` is the time for 2^20 cycles.
    pub fn cycles(span: Ps, cycles: (u32, u32)) -> Interval {
        let whole = (u128::from(span.0) * u128::from(cycles.0)) << (FRACTION - 20);
        Interval(u64::try_from(whole / u128::from(cycles.1)).unwrap_or(u64::MAX))
    }

    /// The interval in whole picoseconds.
    pub fn time(self) -> Ps {
        Ps(self.0 >> FRACTION)
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
    fn a_terabyte_takes_its_time() {
        let mut link = Serializer::new(Rate(15_750_000_000));
        assert_eq!(link.send(Ps::ZERO, Bytes(15_750_000_000)).0 / 1_000, 1_000_000_000, "a second, to the nanosecond");
    }

    #[test]
    fn a_request_takes_its_time_however_few_its_bytes() {
        let nanosecond = Interval::cycles(Ps(1000 << 20), (1, 1));
        let mut port = Serializer::new(Rate(64_000_000_000));
        let ends = [0, 4, 64, 128].map(|bytes| port.send_for(Ps::ZERO, Bytes(bytes), nanosecond));
        assert_eq!(ends, [Ps(1000), Ps(2000), Ps(3000), Ps(5000)]);
        let mut infinite = Serializer::new(Rate::INFINITE);
        assert_eq!([64, 64].map(|bytes| infinite.send_for(Ps(7), Bytes(bytes), nanosecond)), [Ps(1007), Ps(2007)]);
    }

    #[test]
    fn cycles_of_1380_mhz_add_up() {
        let cycle = Interval::cycles(crate::Clock::from_hz(1_380_000_000).span(1 << 20), (1, 1));
        let mut port = Serializer::new(Rate::INFINITE);
        let last = (0..13_800).map(|_| port.send_for(Ps::ZERO, Bytes(0), cycle)).last();
        assert_eq!(last.map(|end| (end.0 + 500) / 1000), Some(10_000), "10 us, to the nanosecond");
    }

    #[test]
    fn gaps_are_not_busy() {
        let mut link = Serializer::new(Rate(1_000_000_000_000));
        link.send(Ps(100), Bytes(10));
        link.send(Ps(1000), Bytes(10));
        link.send(Ps(1000), Bytes(10));
        assert_eq!(link.busy(), Ps(30));
        link.send_for(Ps(5000), Bytes(0), Interval(7 << FRACTION));
        assert_eq!(link.busy(), Ps(37));
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
