//! The crossbar of a module, from its slices to its SMs: each SM's port, which takes what all send one after the other. Not
//! modelled: contention of the SMs' requests at the slices, whose ports they meet.

use crate::departure::Departure;
use tombolo_engine::prefetch;
use tombolo_types::{Bytes, Ps, Rate, Serializer};

/// Shape of a crossbar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CrossbarConfig {
    /// To one SM.
    pub rate: Rate,
    /// From the last byte's departure to its arrival.
    pub latency: Ps,
    /// Components that send on channels of their own.
    pub sources: usize,
}

/// An SM's port at its module's crossbar.
#[derive(Clone, Debug)]
pub struct SmPort {
    latency: Ps,
    /// Of what all sources send.
    port: Serializer,
    /// Arrival time of the last delivery by [`Site::source`](crate::site::Site::source).
    delivered: Vec<Ps>,
}

impl SmPort {
    /// An idle port.
    pub fn new(config: CrossbarConfig) -> SmPort {
        SmPort {
            latency: config.latency,
            port: Serializer::new(config.rate),
            delivered: vec![Ps::ZERO; config.sources],
        }
    }

    /// Takes `bytes` of a source as they depart from there; returns the arrival, never before that of what the source sent
    /// earlier.
    pub fn take(&mut self, now: Ps, departs: Departure, source: usize, bytes: Bytes) -> Ps {
        let passed = departs.through(now, &mut self.port, bytes);
        crate::port::in_order(&mut self.delivered[source], passed.after(self.latency).time())
    }

    /// How long it was in use.
    pub fn busy(&self) -> Ps {
        self.port.busy()
    }

    /// Starts to load what a delivery will change into the host's caches.
    #[inline]
    pub fn prefetch(&self, source: usize) {
        prefetch(&self.port);
        prefetch(&self.delivered[source]);
    }
}
