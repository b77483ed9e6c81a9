//! When what an access causes leaves the component where it was made.
//!
//! A port serves in the order in which events run, each from its own time on. What passes beside other accesses, as
//! the lookup of a tag array does, delays the result alone: were a port reserved at the lookup's end, what is ready at
//! once would queue behind accesses that have just begun. So a departure keeps the two apart until all ports on its
//! way inside the component are behind it.
//!
//! What leaves may thereby overtake what was reserved before it; who sends keeps each channel in order.

use tombolo_types::{Bytes, Interval, Ps, Serializer};

/// How long ahead of its time an access is handled that waits for a backlogged port, with what it causes delayed. Beyond
/// it an event more waits for that time, for what the access changes would be seen too soon by those who come before it,
/// and what it reserves would hold them up. Assumed: a few packets' time on a port, so that the event is paid only where a
/// port is backlogged.
pub const SOON: Ps = Ps::from_ns(8);

/// When something leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// When it is past the ports so far.
    passed: Ps,
    /// Spent on its way without holding up anything else.
    latency: Ps,
}

impl Departure {
    /// What is there at `at`.
    pub fn at(at: Ps) -> Departure {
        Departure { passed: at, latency: Ps::ZERO }
    }

    /// The same, `latency` later.
    #[must_use]
    pub fn after(self, latency: Ps) -> Departure {
        Departure { latency: self.latency + latency, ..self }
    }

    /// The same once `bytes` of it have passed `port`, which is reserved from `now` on: the time of the event, which
    /// never falls. It passes no earlier than its own bytes would have alone.
    #[inline]
    #[must_use]
    pub fn through(self, now: Ps, port: &mut Serializer, bytes: Bytes) -> Departure {
        let turn = port.send(now, bytes);
        Departure { passed: turn.max(self.passed + port.span(bytes)), ..self }
    }

    /// [`Departure::through`] of bytes that pass in `span` once it is their turn, where the port is one of several that work side
    /// by side and takes what comes next only after their time at its own rate.
    #[inline]
    #[must_use]
    pub fn through_one_of(self, now: Ps, port: &mut Serializer, bytes: Bytes, span: Ps) -> Departure {
        let begins = port.send(now, bytes) - port.span(bytes);
        Departure { passed: begins.max(self.passed) + span, ..self }
    }

    /// [`Departure::through`] of a request that occupies the port for `least`, however few its bytes.
    #[inline]
    #[must_use]
    pub fn through_for(self, now: Ps, port: &mut Serializer, bytes: Bytes, least: Interval) -> Departure {
        let turn = port.send_for(now, bytes, least);
        Departure { passed: turn.max(self.passed + port.span(bytes).max(least.time())), ..self }
    }

    /// When it is past the ports so far, where that is too far ahead of `now` to be handled in the event at `now`.
    #[inline]
    pub fn later(self, now: Ps) -> Option<Ps> {
        (self.passed > now + SOON).then_some(self.passed)
    }

    /// When it leaves.
    pub fn time(self) -> Ps {
        self.passed + self.latency
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tombolo_types::Rate;

    /// A port that passes ten bytes in a nanosecond.
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
