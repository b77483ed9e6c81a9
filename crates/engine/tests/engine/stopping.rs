//! A run ends early when its thread's flag is set.

use tombolo_engine::{Engine, Event, HORIZON, Lookahead, Outbox, Partition};
use tombolo_types::{ComponentId, Ps, StopFlag};

/// Delay between partitions.
const LOOKAHEAD: Ps = Ps(1000);

/// Sends itself a message for ever, and sets the flag at an event.
struct Endless {
    events: u64,
    stop: StopFlag,
}

/// The event that sets the flag.
const STOPS: u64 = 5000;

impl Partition for Endless {
    type Message = ();
    fn handle(&mut self, event: &Event<()>, out: &mut Outbox<'_, ()>) {
        self.events += 1;
        if self.events == STOPS {
            self.stop.set();
        }
        out.send(event.time + LOOKAHEAD, event.to, event.to, ());
    }
}

#[test]
fn a_run_of_one_or_several_partitions_and_threads_stops_soon_and_cannot_go_on() {
    for (partitions, threads) in [(1_u16, 1), (4, 1), (4, 2)] {
        let stop = StopFlag::new();
        let parts = (0..partitions).map(|_| Endless { events: 0, stop: stop.clone() }).collect();
        let lookahead = Lookahead::even(partitions.into(), LOOKAHEAD);
        let mut engine = Engine::new(parts, (0..partitions).collect(), lookahead).ignoring_load();
        for component in (0..partitions).map(ComponentId) {
            engine.schedule(Ps::ZERO, component, component, ());
        }
        let stats = stop.during(|| engine.run(threads));
        assert!(stats.stopped && stats.last_event < HORIZON);
        let events = stats.events;
        // Each partition may handle some windows more.
        assert!((STOPS..STOPS * u64::from(partitions) + 100).contains(&events), "{partitions} {threads}: {events}");
        let again = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| engine.run(threads)));
        assert!(again.is_err(), "events of an unfinished window are lost");
    }
}
