//! The event queue compared with a binary heap: a pop and a push at a steady number of waiting events.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::hint::black_box;
use tombolo_engine::{Event, EventQueue};
use tombolo_types::{ComponentId, Ps};

/// A message that makes an event 40 bytes, like in the model.
type Message = [u64; 3];

/// Interface shared by both queues.
trait Queue: Default {
    fn push(&mut self, event: Event<Message>);
    fn pop(&mut self) -> Option<Event<Message>>;
}

impl Queue for EventQueue<Message> {
    fn push(&mut self, event: Event<Message>) {
        EventQueue::push(self, event);
    }
    fn pop(&mut self) -> Option<Event<Message>> {
        EventQueue::pop(self)
    }
}

/// Wrapper that reverses the order of events: the largest is handled first.
struct ReversedEvent(Event<Message>);

impl PartialEq for ReversedEvent {
    fn eq(&self, other: &Self) -> bool {
        self.0.key() == other.0.key()
    }
}
impl Eq for ReversedEvent {}
impl PartialOrd for ReversedEvent {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for ReversedEvent {
    fn cmp(&self, other: &Self) -> Ordering {
        other.0.key().cmp(&self.0.key())
    }
}

impl Queue for BinaryHeap<ReversedEvent> {
    fn push(&mut self, event: Event<Message>) {
        BinaryHeap::push(self, ReversedEvent(event));
    }
    fn pop(&mut self) -> Option<Event<Message>> {
        BinaryHeap::pop(self).map(|latest| latest.0)
    }
}

/// A pseudo-random number sequence (splitmix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }
    fn within(&mut self, from: u64, to: u64) -> u64 {
        from + self.next() % (to - from)
    }
}

/// Delay between an event and the event sent by its handler, in picoseconds.
type Delay = fn(&mut Random) -> u64;

const DELAYS: [(&str, Delay); 4] = [
    ("100ns", |random| random.within(99_000, 101_000)),
    ("cycle", |random| random.within(0, 1_538)),
    ("uniform1us", |random| random.within(0, 1_000_000)),
    ("mixed", |random| match random.next() % 100 {
        0..80 => random.within(700, 50_000),
        80..95 => random.within(200_000, 600_000),
        _ => random.within(1_000_000, 10_000_000),
    }),
];

/// The steady state: a random later event replaces each popped event.
struct Steady<Q> {
    queue: Q,
    random: Random,
    delay: Delay,
    sent: u32,
}

impl<Q: Queue> Steady<Q> {
    fn new(waiting: u64, delay: Delay) -> Self {
        let mut steady = Steady { queue: Q::default(), random: Random(1), delay, sent: 0 };
        (0..waiting).for_each(|_| steady.push(0));
        (0..waiting * 20).for_each(|_| steady.step());
        steady
    }
    fn push(&mut self, now: u64) {
        let time = Ps(now + (self.delay)(&mut self.random));
        let to = ComponentId((self.random.0 % 64) as u16);
        self.sent = self.sent.wrapping_add(1);
        let message = [now, u64::from(self.sent), 7];
        self.queue.push(Event { time, to, from: ComponentId(0), sequence: self.sent, message });
    }
    fn step(&mut self) {
        let event = self.queue.pop().expect("a popped event is always replaced");
        self.push(black_box(event).time.0);
    }
}

fn steady<Q: Queue>(criterion: &mut Criterion, name: &str) {
    let mut group = criterion.benchmark_group(name);
    group.throughput(Throughput::Elements(1));
    for (delay_name, delay) in DELAYS {
        for waiting in [300, 1_000, 10_000, 100_000] {
            let mut steady = Steady::<Q>::new(waiting, delay);
            group.bench_function(BenchmarkId::new(delay_name, waiting), |bencher| bencher.iter(|| steady.step()));
        }
    }
    group.finish();
}

fn queues(criterion: &mut Criterion) {
    steady::<EventQueue<Message>>(criterion, "wheel");
    steady::<BinaryHeap<ReversedEvent>>(criterion, "heap");
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .warm_up_time(std::time::Duration::from_millis(200))
        .measurement_time(std::time::Duration::from_secs(1))
        .sample_size(20);
    targets = queues
}
criterion_main!(benches);
