//! Delivery in edge cases: no events, long delays, violated rules, handlers that panic.

use std::panic::{AssertUnwindSafe, catch_unwind};
use tombolo_engine::{Engine, Event, HORIZON, Lookahead, Outbox, Partition};
use tombolo_types::{ComponentId, Ps};

const LOOKAHEAD: Ps = Ps(1_000);

/// Action that a component performs on a message.
#[derive(Clone, Copy, Default)]
enum Order {
    /// Does nothing.
    #[default]
    Rest,
    /// Sends an order to `to`, `delay` later; repeats the order `repeats` times in sequence.
    Send { to: u16, delay: u64, repeats: u32 },
    /// Panics.
    Panic,
}

/// A component with a log: time and sender for each message.
#[derive(Default)]
struct Recorder(Vec<(Ps, u16)>);

impl Partition for Recorder {
    type Message = Order;
    fn handle(&mut self, event: &Event<Order>, out: &mut Outbox<'_, Order>) {
        self.0.push((event.time, event.from.0));
        match event.message {
            Order::Rest => (),
            Order::Panic => panic!("component {} was told to panic", event.to.0),
            Order::Send { to, delay, repeats } => {
                out.send(event.time + Ps(delay), event.to, ComponentId(to), Order::Rest);
                if repeats > 0 {
                    let again = Order::Send { to, delay, repeats: repeats - 1 };
                    out.send(event.time + Ps(delay), event.to, event.to, again);
                }
            }
        }
    }
}

/// Four partitions, each with a single component.
fn recorders() -> Engine<Recorder> {
    Engine::new((0..4).map(|_| Recorder::default()).collect(), vec![0, 1, 2, 3], Lookahead::even(4, LOOKAHEAD))
}

fn tell(engine: &mut Engine<Recorder>, at: u64, to: u16, order: Order) {
    engine.schedule(Ps(at), ComponentId(to), ComponentId(to), order);
}

/// Message in the panic raised by `call`.
fn panic_of<T>(call: impl FnOnce() -> T) -> String {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(_) => "no panic".to_owned(),
        Err(panic) => panic
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| panic.downcast_ref().map(|&text: &&str| text.to_owned()))
            .expect("panics carry text"),
    }
}

#[test]
fn an_empty_engine_has_nothing_to_do() {
    for threads in [1, 2, 8] {
        let stats = recorders().run(threads);
        assert_eq!((stats.events, stats.windows, stats.last_event), (0, 0, Ps::ZERO));
    }
}

#[test]
fn what_is_due_at_the_horizon_is_left() {
    let alone = || Engine::new(vec![Recorder::default()], vec![0; 4], Lookahead::even(1, LOOKAHEAD));
    for (threads, engine) in [(1, recorders as fn() -> Engine<Recorder>), (3, recorders), (1, alone)] {
        let mut engine = engine();
        for delay in [HORIZON.0 - 1, HORIZON.0] {
            tell(&mut engine, 0, 1, Order::Send { to: 2, delay, repeats: 0 });
        }
        let stats = engine.run(threads);
        assert_eq!((stats.events, stats.last_event, stats.beyond), (3, HORIZON - Ps(1), true), "{threads} threads");
    }
    assert!(!recorders().run(1).beyond, "nothing is left of nothing");
}

#[test]
fn messages_fly_over_many_windows_and_idle_time_costs_none() {
    for threads in [1, 2, 4] {
        let mut engine = recorders();
        // Arrives long after component 0 has filled the windows in between, and after a long silence.
        tell(&mut engine, 0, 3, Order::Send { to: 2, delay: 1_000_500, repeats: 0 });
        tell(&mut engine, 0, 3, Order::Send { to: 1, delay: 900_000_000_000, repeats: 0 });
        tell(&mut engine, 0, 0, Order::Send { to: 1, delay: 1_000, repeats: 1_999 });
        let stats = engine.run(threads);
        let [_, first, second, _] = engine.partitions() else { panic!("there are four") };
        assert_eq!(second.0, [(Ps(1_000_500), 3)]);
        assert_eq!(first.0.len(), 2_001);
        assert_eq!(first.0[1_999..], [(Ps(2_000_000), 0), (Ps(900_000_000_000), 3)]);
        assert_eq!((stats.windows, engine.now()), (2_002, Ps(900_000_000_000)), "{threads} threads");
    }
}

#[test]
fn a_message_may_take_exactly_the_lookahead_but_not_less() {
    for threads in [1, 2] {
        let mut engine = recorders();
        tell(&mut engine, 500, 0, Order::Send { to: 2, delay: 1_000, repeats: 0 });
        engine.run(threads);
        assert_eq!(engine.partitions()[2].0, [(Ps(1_500), 0)]);
        tell(&mut engine, 2_000, 0, Order::Send { to: 2, delay: 999, repeats: 0 });
        assert_eq!(
            panic_of(|| engine.run(threads)),
            "component 0 of partition 0 sends to component 2 of partition 2 at 2.999 ns, but it is 2.000 ns and \
             messages between these two take at least 1.000 ns"
        );
    }
}

#[test]
fn messages_within_a_group_may_take_less_than_those_between_groups() {
    let lookahead = Lookahead { groups: vec![0, 0, 1, 1], within: LOOKAHEAD, between: Ps(3_000) };
    for threads in [1, 2, 4] {
        let mut engine =
            Engine::new((0..4).map(|_| Recorder::default()).collect(), vec![0, 1, 2, 3], lookahead.clone());
        tell(&mut engine, 0, 0, Order::Send { to: 1, delay: 1_000, repeats: 1_000 });
        tell(&mut engine, 500, 2, Order::Send { to: 0, delay: 3_000, repeats: 1_000 });
        engine.run(threads);
        let [first, second, ..] = engine.partitions() else { panic!("there are four") };
        assert_eq!((first.0.len(), second.0.len()), (2_002, 1_001), "{threads} threads");
        tell(&mut engine, 10_000_000, 0, Order::Send { to: 2, delay: 2_999, repeats: 0 });
        assert_eq!(
            panic_of(|| engine.run(threads)),
            "component 0 of partition 0 sends to component 2 of partition 2 at 10002.999 ns, but it is 10000.000 ns and \
             messages between these two take at least 3.000 ns"
        );
    }
}

#[test]
#[should_panic(expected = "the partitions of a group are adjacent")]
fn groups_are_not_interleaved() {
    let lookahead = Lookahead { groups: vec![0, 1, 0], within: LOOKAHEAD, between: LOOKAHEAD };
    Engine::new((0..3).map(|_| Recorder::default()).collect(), vec![0, 1, 2], lookahead);
}

#[test]
fn a_panic_ends_the_run_with_that_of_the_first_partition() {
    for threads in [1, 2, 4, 8] {
        let mut engine = recorders();
        tell(&mut engine, 0, 1, Order::Send { to: 0, delay: 1_000, repeats: 1_000_000 });
        tell(&mut engine, 50_900, 3, Order::Panic);
        tell(&mut engine, 50_950, 2, Order::Panic);
        tell(&mut engine, 60_000, 1, Order::Panic);
        assert_eq!(panic_of(|| engine.run(threads)), "component 2 was told to panic", "{threads} threads");
        assert_eq!(engine.partitions()[2].0, [(Ps(50_950), 2)], "what happened can be looked at");
        assert_eq!(
            panic_of(|| engine.run(threads)),
            "a run that was stopped, or ended in a panic, cannot be continued"
        );
    }
}

#[test]
fn a_run_may_be_continued_but_not_in_the_past() {
    let mut engine = recorders();
    tell(&mut engine, 5_000, 1, Order::Rest);
    assert_eq!(engine.run(2).events, 1);
    tell(&mut engine, 5_000, 1, Order::Rest);
    assert_eq!(engine.run(1).events, 1, "events of the earlier run are not counted again");
    let message = panic_of(|| tell(&mut engine, 4_999, 1, Order::Rest));
    assert_eq!(message, "component 1 is sent an event at 4.999 ns, in the past: it is 5.000 ns");
}

#[test]
#[should_panic(expected = "component 4 is not one of the 4 of this engine")]
fn an_unknown_component_is_refused() {
    let mut engine = recorders();
    tell(&mut engine, 0, 0, Order::Send { to: 4, delay: 1_000, repeats: 0 });
    engine.run(1);
}

#[test]
#[should_panic(expected = "component 0 is sent an event at a time that never comes")]
fn an_event_at_no_time_is_refused() {
    tell(&mut recorders(), Ps::NEVER.0, 0, Order::Rest);
}

#[test]
#[should_panic(expected = "2 partitions need a lookahead above zero")]
fn several_partitions_need_a_lookahead() {
    Engine::new(vec![Recorder::default(), Recorder::default()], vec![0, 1], Lookahead::even(2, Ps::ZERO));
}

#[test]
#[should_panic(expected = "component 1 has partition 2 of 2 as its home")]
fn a_home_must_exist() {
    Engine::new(vec![Recorder::default(), Recorder::default()], vec![0, 2], Lookahead::even(2, LOOKAHEAD));
}
