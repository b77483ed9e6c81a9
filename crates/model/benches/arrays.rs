//! Host time per operation, in nanoseconds, for the arrays on the hot path.

use criterion::{Criterion, criterion_group, criterion_main};
use std::collections::VecDeque;
use std::hint::black_box;
use tombolo_model::fabric::{Link, LinkConfig, Traffic};
use tombolo_model::front_end::PageTable;
use tombolo_model::l2::{BulkClass, Cache, CacheConfig, Credits, IndexFunction, Mshr, MshrConfig, Replacement, Ways};
use tombolo_model::memory::{AccessTiming, Dram, DramConfig, RefreshScope};
use tombolo_model::sm::{Tlb, TlbConfig};
use tombolo_types::{Bytes, Line, LineSize, Mask, ModuleId, Page, Ps, Rate};

/// Scattered numbers, identical in every run.
fn scatter(i: u64) -> u64 {
    (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20) ^ i
}

/// L2-sized cache: 3 MB with 128 B lines and 16 ways.
fn l2() -> Cache<u64> {
    Cache::new(CacheConfig {
        sets: 1536,
        ways: 16,
        replacement: Replacement::LeastRecentlyUsed,
        index: IndexFunction::Hashed,
    })
}

fn insert(cache: &mut Cache<u64>, line: u64) -> bool {
    let inserted = cache.insert(Line(line), BulkClass::new(0), line, Ways::ALL);
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

/// Benchmarks sixty-four L2s, more than fit in the host's own caches.
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

fn drams(c: &mut Criterion) {
    // HBM2-like configuration; the host's time hardly depends on it.
    let config = DramConfig {
        rate: Rate(256_000_000_000),
        channels: 8,
        banks: 16,
        bank_groups: 1,
        line: LineSize::B128,
        row: Bytes(2048),
        burst: Bytes(32),
        atom: Bytes(32),
        t_cas: Ps::from_ns(14),
        t_cwl: Ps::from_ns(14),
        t_ccd_l: Ps::ZERO,
        t_rcd: Ps::from_ns(14),
        t_rp: Ps::from_ns(14),
        t_ras: Ps::from_ns(33),
        t_rrd_s: Ps::ZERO,
        t_rrd_l: Ps::ZERO,
        t_faw: Ps::from_ns(16),
        t_rtp: Ps::ZERO,
        t_wr: Ps::ZERO,
        t_turn: Ps::from_ns(20),
        refresh: RefreshScope::Channel,
        t_refi: Ps::ZERO,
        t_rfc: Ps::ZERO,
        write_queue: 64,
    };
    // A line every 520 ps is 246 GB/s of the 256 GB/s. Random rows allow less, so the scattered benchmark uses half
    // the rate.
    let mut dram = Dram::new(config);
    let (mut i, mut now) = (0, 0);
    c.bench_function("dram/read, sequential", |b| {
        b.iter(|| {
            (i, now) = (i + 1, now + 520);
            black_box(dram.read(AccessTiming::at(Ps(now)), Line(i), Mask::ALL))
        });
    });
    let mut dram = Dram::new(config);
    let (mut i, mut now) = (0, 0);
    c.bench_function("dram/read, scattered", |b| {
        b.iter(|| {
            (i, now) = (i + 1, now + 1040);
            black_box(dram.read(AccessTiming::at(Ps(now)), Line(scatter(i)), Mask::ALL))
        });
    });
    let mut dram = Dram::new(config);
    let (mut i, mut now) = (0, 0);
    c.bench_function("dram/write, sequential", |b| {
        b.iter(|| {
            (i, now) = (i + 1, now + 580);
            black_box(dram.write(AccessTiming::at(Ps(now)), Line(i), Mask::ALL))
        });
    });
}

fn flows(c: &mut Criterion) {
    let mut link = Link::new(LinkConfig { rate: Rate(200_000_000_000), latency: Ps::from_ns(300) });
    let mut credits = Credits::new(64);
    let mut now = 0;
    c.bench_function("link/send", |b| {
        b.iter(|| {
            now += 700;
            black_box(link.send(Ps(now), Traffic::Data { grains: 32 }, Bytes(144)))
        });
    });
    let mut out = VecDeque::new();
    c.bench_function("credits/take, or give the oldest back", |b| {
        b.iter(|| {
            if let Some(generation) = credits.try_take() {
                out.push_back(generation);
            } else if let Some(generation) = out.pop_front() {
                credits.give_back(generation);
            }
        });
    });
}

fn translation(c: &mut Criterion) {
    let pages = (0..4).flat_map(|array| (0..1024).map(move |page| (array << 20) + page));
    let table = PageTable::from_first_touch(pages.map(|page| (Page(page), ModuleId(page as u8 % 16))), 1 << 14);
    let mut tlb = Tlb::new(TlbConfig { entries: 32, ways: 32 });
    (0..32).for_each(|page| tlb.fill(Page(page), Ps::ZERO));
    let mut i = 0;
    c.bench_function("page_table/home", |b| {
        b.iter(|| {
            i += 1;
            let page = (i % 4) << 20 | (scatter(i) % 1024);
            black_box(table.home(ModuleId(0), Line(page << 14)))
        });
    });
    c.bench_function("tlb/lookup, 32 entries resident", |b| {
        b.iter(|| {
            i += 1;
            black_box(tlb.lookup(Ps(i), Page(scatter(i) % 32)))
        });
    });
}

criterion_group!(benches, caches, many_caches, mshrs, drams, flows, translation);
criterion_main!(benches);
