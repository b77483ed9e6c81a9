//! A module's crossbar. SM requests meet at the slices' ports, and slice replies meet at each SM's own port. A port
//! passes packets in sequence, in arrival order. Not modelled: contention inside the crossbar.

use crate::message::Message;
use crate::observe::latency::{Note, ReplyLatency, short};
use crate::observe::value_probe::Contents;
use std::collections::VecDeque;
use tombolo_types::{Bytes, Ps, Rate, Serializer};

/// Rounding difference between two serialisers.
const ROUNDED: Ps = Ps(1);

/// Ingress port to an SM, at the end of the crossbar.
#[derive(Clone, Debug)]
pub struct SmPort<D: Contents> {
    port: Serializer,
    /// Queued messages, each with the time when the port has received the message completely.
    waiting: VecDeque<(Ps, Message<D>)>,
}

impl<D: Contents> SmPort<D> {
    /// An idle port.
    pub(crate) fn new(rate: Rate) -> SmPort<D> {
        SmPort { port: Serializer::new(rate), waiting: VecDeque::new() }
    }

    /// Accepts a message that an idle port would have received completely at `now`. Returns `Ok` with the message if
    /// the port is idle; otherwise queues the message until [`SmPort::pass`]. The error is the time for the next call
    /// to `pass`, or `None` if a call is scheduled.
    pub(crate) fn take(&mut self, now: Ps, message: Message<D>, bytes: Bytes) -> Result<Message<D>, Option<Ps>> {
        let begins = now.saturating_sub(self.port.span(bytes));
        let inside = self.port.send(begins, bytes);
        if inside <= now + ROUNDED && self.waiting.is_empty() {
            return Ok(message);
        }
        let inside = inside.max(now);
        let first = self.waiting.is_empty();
        self.waiting.push_back((inside, held_up(message, inside - now)));
        Err(first.then_some(inside))
    }

    /// Returns the message received completely by now, and the time for the next message.
    pub(crate) fn pass(&mut self) -> (Message<D>, Option<Ps>) {
        let (_, message) = self.waiting.pop_front().expect("somebody waits whose turn it is");
        (message, self.waiting.front().map(|(at, _)| *at))
    }

    /// Total time during which the port was in use.
    pub fn busy(&self) -> Ps {
        self.port.busy()
    }
}

/// Adds the delay `by` to the reply's recorded crossbar latency.
fn held_up<D: Contents>(mut message: Message<D>, by: Ps) -> Message<D> {
    if let Message::Fill { latency: time, .. } = &mut message {
        let noted = time.read();
        *time = D::Note::of(ReplyLatency { crossbar: noted.crossbar.saturating_add(short(by)), ..noted });
    }
    message
}

/// Arrival times at each SM in a module, for messages from some slices and from the controller in their place. Keeps
/// messages on a channel in order.
#[derive(Clone, Debug)]
pub(crate) struct Deliveries {
    first: usize,
    slices: usize,
    sms: usize,
    /// Latest arrival, indexed by slice, with the controller last, then by SM.
    latest: Vec<Ps>,
}

impl Deliveries {
    /// State without deliveries, for slices from `first` on.
    pub(crate) fn new((first, slices): (usize, usize), sms: usize) -> Deliveries {
        Deliveries { first, slices, sms, latest: vec![Ps::ZERO; (slices + 1) * sms] }
    }

    /// Arrival time for a message that would arrive at `at` if alone on the channel. `source`: number of a slice in the
    /// module, or any further number for the controller.
    #[inline]
    pub(crate) fn in_order(&mut self, (source, sm): (usize, usize), at: Ps) -> Ps {
        let channel = source.wrapping_sub(self.first).min(self.slices);
        crate::fabric::port::in_order(&mut self.latest[channel * self.sms + sm], at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: Message<()> =
        Message::AtomicResult { warp: 0, result: 0, data: (), responder: tombolo_types::ModuleId(0) };

    /// A port that passes ten bytes per nanosecond.
    fn port() -> SmPort<()> {
        SmPort::new(Rate(10_000_000_000))
    }

    #[test]
    fn what_meets_nobody_is_inside_as_it_arrives() {
        let mut port = port();
        assert_eq!(port.take(Ps(5000), OLD, Bytes(10)), Ok(OLD));
        assert_eq!(port.take(Ps(6000), OLD, Bytes(10)), Ok(OLD));
    }

    #[test]
    fn what_arrives_together_passes_one_after_the_other() {
        let mut port = port();
        assert_eq!(port.take(Ps(5000), OLD, Bytes(10)), Ok(OLD));
        assert_eq!(port.take(Ps(5000), OLD, Bytes(10)), Err(Some(Ps(6000))));
        assert_eq!(port.take(Ps(5500), OLD, Bytes(10)), Err(None));
        assert_eq!(port.pass(), (OLD, Some(Ps(7000))));
        assert_eq!(port.pass(), (OLD, None));
        assert_eq!(port.busy(), Ps(3000));
    }

    #[test]
    fn a_channel_is_not_overtaken_and_others_are() {
        let mut deliveries = Deliveries::new((4, 2), 3);
        assert_eq!(deliveries.in_order((5, 2), Ps(100)), Ps(100));
        assert_eq!(deliveries.in_order((5, 2), Ps(50)), Ps(100));
        assert_eq!(deliveries.in_order((5, 1), Ps(50)), Ps(50));
        assert_eq!(deliveries.in_order((4, 2), Ps(50)), Ps(50));
        assert_eq!(deliveries.in_order((8, 2), Ps(50)), Ps(50));
    }
}
