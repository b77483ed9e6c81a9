//! Events per second for the whole engine, on one thread and on two. Seventeen partitions (sixteen modules and a
//! switch) have handlers that work for about 100 ns, with many and with few events per window. Without work, the
//! benchmark measures the bare cost per window. All messages together are in flight from the start, and each passes a
//! fixed number of hops.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use std::time::Duration;
use tombolo_engine::{Engine, Event, Lookahead, Outbox, Partition};
use tombolo_types::{ComponentId, Ps};

const PARTITIONS: u16 = 17;
const LOOKAHEAD: u64 = 50_000;

/// A message passed from component to component `hops` times; its event has 40 bytes.
#[derive(Clone, Copy, Default)]
struct Token {
    hops: u64,
    random: u64,
    data: u64,
}

/// A component with state to work on, on separate cache lines like any real component.
#[repr(align(128))]
struct Station {
    data: u64,
    /// Length of the dependent multiplication chain per event.
    work: u32,
}

impl Partition for Station {
    type Message = Token;
    fn handle(&mut self, event: &Event<Token>, out: &mut Outbox<'_, Token>) {
        for _ in 0..self.work {
            self.data = black_box(self.data.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ event.message.data);
        }
        let Token { hops, random, .. } = event.message;
        if hops == 0 {
            return;
        }
        let random = (random ^ random >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        // Half the messages stay; delays are one to three lookaheads, two on average.
        let to = if random >> 63 == 0 { event.to } else { ComponentId((random >> 40) as u16 % PARTITIONS) };
        let delay = LOOKAHEAD + (random >> 8) % (2 * LOOKAHEAD);
        out.send(event.time + Ps(delay), event.to, to, Token { hops: hops - 1, random, data: self.data });
    }
}

/// Load on the engine: number of messages in flight, hops per message, and work per hop.
#[derive(Clone, Copy)]
struct Load {
    tokens: u64,
    hops: u64,
    work: u32,
}

impl Load {
    fn engine(self) -> Engine<Station> {
        let stations = (0..PARTITIONS).map(|data| Station { data: u64::from(data), work: self.work }).collect();
        let lookahead = Lookahead::even(usize::from(PARTITIONS), Ps(LOOKAHEAD));
        Engine::new(stations, (0..PARTITIONS).collect(), lookahead)
    }

    /// Runs the load from the first event to the last; returns events and windows.
    fn run(self, engine: &mut Engine<Station>, threads: usize) -> (u64, u64) {
        let now = engine.now();
        for token in 0..self.tokens {
            let to = ComponentId((token % u64::from(PARTITIONS)) as u16);
            let message = Token { hops: self.hops, random: token * 77 + 1, data: 0 };
            engine.schedule(now + Ps(token * LOOKAHEAD / self.tokens), to, to, message);
        }
        let stats = engine.run(threads);
        (stats.events, stats.windows)
    }
}

/// Steps that take about 100 ns on a 3 GHz core: measured by the difference between `work100ns` and `work0ns` on one
/// thread.
const WORK_100_NS: u32 = 64;

fn loads(criterion: &mut Criterion) {
    for (name, work) in [("work100ns", WORK_100_NS), ("work0ns", 0)] {
        let mut group = criterion.benchmark_group(name);
        for (events_a_window, tokens, hops) in [(200, 400, 500), (20, 40, 5_000), (1, 1, 50_000)] {
            let load = Load { tokens, hops, work };
            let (events, windows) = load.run(&mut load.engine(), 1);
            println!("{events} events in {windows} windows");
            group.throughput(Throughput::Elements(events));
            for threads in [1, 2] {
                let id = BenchmarkId::new(format!("window{events_a_window}"), format!("threads{threads}"));
                let mut engine = load.engine();
                group.bench_function(id, |bencher| bencher.iter(|| load.run(&mut engine, threads)));
            }
        }
        group.finish();
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(2))
        .sample_size(15);
    targets = loads
}
criterion_main!(benches);
