//! Events and the total order in which partitions handle events.

use tombolo_types::{ComponentId, Ps};

/// A message in flight to a component.
///
/// Events are totally ordered by (`time`, `to`, `from`, `sequence`). No two events in an engine are equal in this
/// order, because a source numbers its messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event<M> {
    /// Time at which the handler runs.
    pub time: Ps,
    /// Component that handles the event.
    pub to: ComponentId,
    /// Component that sent the event.
    pub from: ComponentId,
    /// Number of events sent earlier by `from`.
    pub sequence: u32,
    /// Content of the event.
    pub message: M,
}

impl<M> Event<M> {
    /// Key for the total order: time in picoseconds, then `to`, `from` and `sequence` packed into one word (16, 16 and
    /// 32 bits). Comparing two events thus compares two integers.
    pub fn key(&self) -> (u64, u64) {
        let tie = u64::from(self.to.0) << 48 | u64::from(self.from.0) << 32 | u64::from(self.sequence);
        (self.time.0, tie)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(time: u64, to: u16, from: u16, sequence: u32) -> Event<()> {
        Event { time: Ps(time), to: ComponentId(to), from: ComponentId(from), sequence, message: () }
    }

    #[test]
    fn keys_order_by_time_then_destination_then_source_then_sequence() {
        let ordered = [
            event(1, u16::MAX, u16::MAX, u32::MAX),
            event(2, 0, 0, 0),
            event(2, 0, 0, u32::MAX),
            event(2, 0, 1, 0),
            event(2, 1, 0, 0),
        ];
        assert!(ordered.windows(2).all(|pair| pair[0].key() < pair[1].key()));
    }
}
