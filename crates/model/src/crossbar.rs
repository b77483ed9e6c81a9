//! The crossbar of a module, from its slices to its SMs. Not modelled: contention of the SMs' requests at the slices, whose
//! ports they meet.

use crate::departure::Departure;
use tombolo_engine::prefetch;
use tombolo_types::{Bytes, Ps, Rate, Serializer, SmId};

/// Shape of a crossbar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CrossbarConfig {
    /// To one SM.
    pub rate: Rate,
    /// From the last byte's departure to its arrival.
    pub latency: Ps,
    /// SMs.
    pub sms: usize,
    /// Components that send on channels of their own.
    pub sources: usize,
}

/// The way from a module's slices to its SMs.
#[derive(Clone, Debug)]
pub struct Crossbar {
    config: CrossbarConfig,
    /// By SM.
    to_sm: Vec<Serializer>,
    /// Arrival time of the last delivery per channel: by SM, then [`Site::source`](crate::site::Site::source).
    delivered: Vec<Ps>,
}

impl Crossbar {
    /// An idle crossbar.
    pub fn new(config: CrossbarConfig) -> Crossbar {
        Crossbar {
            to_sm: vec![Serializer::new(config.rate); config.sms],
            delivered: vec![Ps::ZERO; config.sms * config.sources],
            config,
        }
    }

    /// Delivers `bytes` from a source to an SM as they depart; returns the arrival, never before that of what the source
    /// sent it earlier.
    pub fn deliver(&mut self, now: Ps, departs: Departure, (source, sm): (usize, SmId), bytes: u64) -> Ps {
        let passed = departs.through(now, &mut self.to_sm[usize::from(sm.0)], Bytes(bytes));
        let channel = self.channel(source, sm);
        crate::port::in_order(&mut self.delivered[channel], passed.after(self.config.latency).time())
    }

    /// How long the way to each SM was in use.
    pub fn busy(&self) -> impl Iterator<Item = Ps> {
        self.to_sm.iter().map(Serializer::busy)
    }

    /// Starts to load what a delivery will change into the host's caches.
    #[inline]
    pub fn prefetch(&self, source: usize, sm: SmId) {
        prefetch(&self.to_sm[usize::from(sm.0)]);
        prefetch(&self.delivered[self.channel(source, sm)]);
    }

    /// Index of the channel to an SM from a source.
    fn channel(&self, source: usize, sm: SmId) -> usize {
        usize::from(sm.0) * self.config.sources + source
    }
}
