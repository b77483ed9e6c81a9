//! The crossbar of a module. Requests of SMs meet at the slices' ports, answers of slices at each SM's own port: what comes
//! there passes one after the other, in the order of arrival. Not modelled: contention in its middle.

use crate::latency::{Answered, Note, short};
use crate::message::Message;
use crate::watch::Contents;
use std::collections::VecDeque;
use tombolo_engine::prefetch;
use tombolo_types::{Bytes, Ps, Rate, Serializer};

/// Rounding of two serialisers against each other.
const ROUNDED: Ps = Ps(1);

/// Where what the crossbar brings comes into an SM.
#[derive(Clone, Debug)]
pub struct SmPort<D: Contents> {
    port: Serializer,
    /// What waits for its turn, and when that is.
    waiting: VecDeque<(Ps, Message<D>)>,
}

impl<D: Contents> SmPort<D> {
    /// An idle port.
    pub fn new(rate: Rate) -> SmPort<D> {
        SmPort { port: Serializer::new(rate), waiting: VecDeque::new() }
    }

    /// Takes what would be wholly inside at `now`, were the port idle. Returns it where it was; keeps it where not, until
    /// [`SmPort::pass`]. The time is when to call that, where nobody has been told to yet.
    pub fn take(&mut self, now: Ps, message: Message<D>, bytes: Bytes) -> Result<Message<D>, Option<Ps>> {
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

    /// What is wholly inside now, and when the next will be.
    pub fn pass(&mut self) -> (Message<D>, Option<Ps>) {
        let (_, message) = self.waiting.pop_front().expect("somebody waits whose turn it is");
        (message, self.waiting.front().map(|(at, _)| *at))
    }

    /// How long it was in use.
    pub fn busy(&self) -> Ps {
        self.port.busy()
    }

    /// Starts to load what a delivery will change into the host's caches.
    #[inline]
    pub fn prefetch(&self) {
        prefetch(&self.port);
    }
}

/// The same answer, which notes that the crossbar took so much more.
fn held_up<D: Contents>(mut message: Message<D>, by: Ps) -> Message<D> {
    if let Message::Fill { time, .. } = &mut message {
        let noted = time.read();
        *time = D::Note::of(Answered { crossbar: noted.crossbar.saturating_add(short(by)), ..noted });
    }
    message
}

/// When what some slices of a module, and its controller in their place, have sent each of its SMs arrives, so that no channel is
/// overtaken.
#[derive(Clone, Debug)]
pub struct Deliveries {
    first: usize,
    slices: usize,
    sms: usize,
    /// By slice, the controller last, then by SM: the latest arrival.
    latest: Vec<Ps>,
}

impl Deliveries {
    /// None yet, of slices from `first` on.
    pub fn new((first, slices): (usize, usize), sms: usize) -> Deliveries {
        Deliveries { first, slices, sms, latest: vec![Ps::ZERO; (slices + 1) * sms] }
    }

    /// The arrival of what would arrive at `at`, were it alone on its channel. `source`: a slice by its number in the module, or
    /// another number for its controller.
    #[inline]
    pub fn in_order(&mut self, (source, sm): (usize, usize), at: Ps) -> Ps {
        let channel = source.wrapping_sub(self.first).min(self.slices);
        crate::port::in_order(&mut self.latest[channel * self.sms + sm], at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: Message<()> = Message::Old { warp: 0, result: 0, data: (), by: tombolo_types::ModuleId(0) };

    /// A port that passes ten bytes in a nanosecond.
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
