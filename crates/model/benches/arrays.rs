//! Host time of the arrays on the hot path, in nanoseconds an operation.

use criterion::{Criterion, criterion_group, criterion_main};
use std::hint::black_box;
use tombolo_model::cache::{Cache, CacheConfig, Class, Replacement, Ways};
use tombolo_model::mshr::{Mshr, MshrConfig};
use tombolo_types::Line;

/// The same scattered numbers in every run.
fn scatter(i: u64) -> u64 {
    (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20) ^ i
}

/// 3 MB of 128 B lines in 16 ways, as an L2.
fn l2() -> Cache<u64> {
    Cache::new(CacheConfig { sets: 1536, ways: 16, replacement: Replacement::LeastRecentlyUsed })
}

fn insert(cache: &mut Cache<u64>, line: u64) -> bool {
    let inserted = cache.insert(Line(line), Class::new(0), line, Ways::ALL);
    inserted.is_some_and(|inserted| inserted.victim.is_some())
}

fn caches(c: &mut Criterion) {
    let mut cache = l2();
    let lines = cache.capacity();
    for line in 0..lines {
        insert(&mut cache, line);
    }
    let mut i = 0;
    c.bench_function("cache/lookup resident", |b| {
        b.iter(|| {
            i += 1;
            black_box(cache.lookup(Line(scatter(i) % lines)).is_some())
        });
    });
    c.bench_function("cache/lookup absent", |b| {
        b.iter(|| {
            i += 1;
            black_box(cache.lookup(Line(lines + scatter(i) % lines)).is_some())
        });
    });
    c.bench_function("cache/lookup and insert, thrashing", |b| {
        b.iter(|| {
            i += 1;
            let line = (1 << 30) + scatter(i);
            black_box(cache.lookup(Line(line)).is_some() || insert(&mut cache, line))
        });
    });
}

/// Sixty-four L2s, more than the host's own caches hold.
fn many_caches(c: &mut Criterion) {
    let mut caches: Vec<_> = (0..64).map(|_| l2()).collect();
    let lines = caches[0].capacity();
    for cache in &mut caches {
        for line in 0..lines {
            insert(cache, line);
        }
    }
    let mut i = 0;
    c.bench_function("cache/lookup resident, 64 caches", |b| {
        b.iter(|| {
            i += 1;
            black_box(caches[i as usize % 64].lookup(Line(scatter(i) % lines)).is_some())
        });
    });
}

fn mshrs(c: &mut Criterion) {
    let mut mshr = Mshr::<u64, u64, u64>::new(MshrConfig { entries: 256, merges: 8 });
    let mut i = 0;
    c.bench_function("mshr/allocate, two waiters, free; half full", |b| {
        b.iter(|| {
            i += 1;
            let line = Line(scatter(i));
            if mshr.find(line).is_none()
                && let Some(id) = mshr.allocate(line, i)
            {
                mshr.push_waiter(id, i);
                mshr.push_waiter(id, i);
            }
            if i > 128
                && let Some(id) = mshr.find(Line(scatter(i - 128)))
            {
                let mut freed = mshr.free(id);
                while let Some(waiter) = mshr.next_waiter(&mut freed) {
                    black_box(waiter);
                }
            }
        });
    });
}

criterion_group!(benches, caches, many_caches, mshrs);
criterion_main!(benches);
