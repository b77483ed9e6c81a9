//! Departure time for the effects of an access, from the component where the access was made.
//!
//! A port serves requests in the order in which events run, each from its own time on. Work that proceeds in parallel
//! with other accesses, for example a tag lookup, delays only the result. If the port were reserved at the end of the
//! lookup, data that is ready immediately would queue behind accesses that have just begun. A departure therefore keeps
//! both delays apart until all ports inside the component are passed.
//!
//! A departing packet may thereby overtake earlier reservations; the sender keeps each channel in order.

use tombolo_types::{Bytes, Interval, Ps, Serializer};

/// Maximum lead time for handling an access at a backlogged port, with delayed effects. A longer wait takes an
/// additional event at the later time. Otherwise earlier accesses would see the changes too soon, and its reservations
/// would hold them up. Assumed: the time for a few packets on a port, so the event is paid only at a backlogged port.
pub(crate) const SOON: Ps = Ps::from_ns(8);

/// Departure time in two parts. Ports are reserved for the first part only; the second part delays the departing packet
/// without occupying any port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// Time when all ports so far are passed.
    passed: Ps,
    /// Latency spent without delay to other accesses.
    latency: Ps,
}

impl Departure {
    /// Departure for data ready at `at`.
    pub(crate) fn at(at: Ps) -> Departure {
        Departure { passed: at, latency: Ps::ZERO }
    }

    /// The same departure, delayed further by `latency`.
    #[must_use]
    pub(crate) fn after(self, latency: Ps) -> Departure {
        Departure { latency: self.latency + latency, ..self }
    }

    /// Departure after `bytes` have passed `port`, reserved from `now` on: the time of the current event, which never
    /// decreases. The bytes pass no earlier than alone on the port.
    #[inline]
    #[must_use]
    pub(crate) fn through(self, now: Ps, port: &mut Serializer, bytes: Bytes) -> Departure {
        let turn = port.send(now, bytes);
        Departure { passed: turn.max(self.passed + port.span(bytes)), ..self }
    }

    /// Like [`Departure::through`], for bytes that take `span` to pass once their turn comes. The port is one of
    /// several in parallel; it accepts the next bytes only after their time at the port's own rate.
    #[inline]
    #[must_use]
    pub(crate) fn through_one_of(self, now: Ps, port: &mut Serializer, bytes: Bytes, span: Ps) -> Departure {
        let begins = port.send(now, bytes) - port.span(bytes);
        Departure { passed: begins.max(self.passed) + span, ..self }
    }

    /// Like [`Departure::through`], for a request that occupies the port for at least `least`, however few its bytes.
    #[inline]
    #[must_use]
    pub(crate) fn through_for(self, now: Ps, port: &mut Serializer, bytes: Bytes, least: Interval) -> Departure {
        let turn = port.send_for(now, bytes, least);
        Departure { passed: turn.max(self.passed + port.span(bytes).max(least.time())), ..self }
    }

    /// Time when all ports are passed, if too far ahead of `now` for the event at `now`.
    #[inline]
    pub(crate) fn later(self, now: Ps) -> Option<Ps> {
        (self.passed > now + SOON).then_some(self.passed)
    }

    /// Total departure time.
    pub(crate) fn time(self) -> Ps {
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
