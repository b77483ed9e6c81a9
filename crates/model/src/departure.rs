//! Departure time of an access's effects from the component that made the access.
//!
//! A port serves requests in the order in which events run, each from its own time on. Work that proceeds in parallel
//! with other accesses, for example a tag lookup, delays only the result. If the port were reserved at the end of the
//! lookup, data that is ready immediately would queue behind accesses that have just begun. A departure therefore keeps
//! both delays apart until all ports inside the component are passed.
//!
//! A departing packet may thereby overtake earlier reservations; the sender keeps each channel in order.

use tombolo_types::{Bytes, Interval, Ps, Serializer};

/// How far ahead of time an access that waits for a backlogged port may be handled, with its effects delayed. A longer
/// wait takes an additional event at the later time. Otherwise earlier accesses would see the changes too soon, and its
/// reservations would hold them up. Assumed: the time of a few packets on a port, so that only a backlogged port costs
/// the event.
pub const SOON: Ps = Ps::from_ns(8);

/// Departure time in two parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// Time at which all ports so far are passed.
    passed: Ps,
    /// Latency spent without holding up other accesses.
    latency: Ps,
}

impl Departure {
    /// Departure of data that is ready at `at`.
    pub fn at(at: Ps) -> Departure {
        Departure { passed: at, latency: Ps::ZERO }
    }

    /// The same departure, `latency` later.
    #[must_use]
    pub fn after(self, latency: Ps) -> Departure {
        Departure { latency: self.latency + latency, ..self }
    }

    /// Departure after `bytes` have passed `port`, reserved from `now` on: the time of the current event, which never
    /// decreases. The bytes pass no earlier than they would pass alone.
    #[inline]
    #[must_use]
    pub fn through(self, now: Ps, port: &mut Serializer, bytes: Bytes) -> Departure {
        let turn = port.send(now, bytes);
        Departure { passed: turn.max(self.passed + port.span(bytes)), ..self }
    }

    /// Like [`Departure::through`], for bytes that pass in `span` when their turn comes. The port is one of several
    /// that work in parallel; it accepts the next bytes only after their time at its own rate.
    #[inline]
    #[must_use]
    pub fn through_one_of(self, now: Ps, port: &mut Serializer, bytes: Bytes, span: Ps) -> Departure {
        let begins = port.send(now, bytes) - port.span(bytes);
        Departure { passed: begins.max(self.passed) + span, ..self }
    }

    /// Like [`Departure::through`], for a request that occupies the port for at least `least`, however few its bytes.
    #[inline]
    #[must_use]
    pub fn through_for(self, now: Ps, port: &mut Serializer, bytes: Bytes, least: Interval) -> Departure {
        let turn = port.send_for(now, bytes, least);
        Departure { passed: turn.max(self.passed + port.span(bytes).max(least.time())), ..self }
    }

    /// Time at which all ports are passed, if it is too far ahead of `now` to be handled in the event at `now`.
    #[inline]
    pub fn later(self, now: Ps) -> Option<Ps> {
        (self.passed > now + SOON).then_some(self.passed)
    }

    /// Total departure time.
    pub fn time(self) -> Ps {
        self.passed + self.latency
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tombolo_types::Rate;

    /// A port that passes ten bytes per nanosecond.
    fn port() -> Serializer {
        Serializer::new(Rate(10_000_000_000))
    }

    #[test]
    fn ports_one_after_the_other_and_what_passes_beside_them_add_up() {
        let (mut first, mut second) = (port(), port());
        let departure = Departure::at(Ps(100)).through(Ps(100), &mut first, Bytes(10)).after(Ps(50_000));
        assert_eq!(departure.through(Ps(100), &mut second, Bytes(20)).time(), Ps(100 + 1000 + 50_000 + 2000));
    }

    #[test]
    fn what_is_ready_now_does_not_wait_for_what_is_still_looked_up() {
        let mut port = port();
        let hit = Departure::at(Ps(0)).after(Ps(65_000)).through(Ps(0), &mut port, Bytes(10));
        let fill = Departure::at(Ps(10)).through(Ps(10), &mut port, Bytes(10));
        assert_eq!((hit.time(), fill.time()), (Ps(66_000), Ps(2000)));
    }

    #[test]
    fn a_port_passes_no_more_than_its_rate() {
        let mut port = port();
        let last = (0..100).map(|_| Departure::at(Ps(0)).after(Ps(7)).through(Ps(0), &mut port, Bytes(10))).last();
        assert_eq!(last.map(Departure::time), Some(Ps(100_007)));
    }
}
