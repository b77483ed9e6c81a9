// SPDX-License-Identifier: MIT OR Apache-2.0
// Bandwidths: streams within each level and mixed ones of memory, random and strided reads, atomics.
#pragma once

#include "measure.cuh"

enum class Stream { Read, Write, Copy, Triad };

constexpr u32 ONWARD = 37;  // Parts by which a CTA goes on with each pass; a prime, as Tombolo's `bandwidth`.

__device__ inline void put(void* p, uint4 v) {
    asm volatile("st.global.v4.u32 [%0], {%1,%2,%3,%4};" ::"l"(p), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w) : "memory");
}

__device__ inline uint4 operator^(uint4 a, uint4 b) { return make_uint4(a.x ^ b.x, a.y ^ b.y, a.z ^ b.z, a.w ^ b.w); }

// Each CTA goes through a part of `part` vectors, a multiple of 1024, and with each pass through one `onward` further.
// The arrays follow each other in memory, `bytes` apart.
template <Stream STREAM, bool L1>
__global__ void __launch_bounds__(1024, 2)
    stream(char* memory, u64 bytes, u32 part, u32 onward, u32 passes, Span* spans, u32* sink) {
    constexpr u32 AT_ONCE = STREAM == Stream::Triad ? 2 : 4;
    uint4 sum = make_uint4(threadIdx.x, 0, 0, 0);
    u64 from = now();
    u32 place = blockIdx.x;
    for (u32 pass = 0; pass < passes; pass++) {
        char* a = memory + (static_cast<u64>(place) * part + threadIdx.x) * 16;
        place += onward;
        if (place >= gridDim.x) place -= gridDim.x;
        for (u32 i = 0; i < part; i += AT_ONCE * 1024, a += AT_ONCE * 16 * KIB) {
            uint4 v[AT_ONCE];
#pragma unroll
            for (u32 k = 0; k < AT_ONCE; k++) {
                char* p = a + k * 16 * KIB;
                if (i + k * 1024 >= part) break;
                if (STREAM == Stream::Read || STREAM == Stream::Copy) v[k] = vector<L1>(p);
                if (STREAM == Stream::Triad) v[k] = vector<L1>(p) ^ vector<L1>(p + bytes);
            }
#pragma unroll
            for (u32 k = 0; k < AT_ONCE; k++) {
                char* p = a + k * 16 * KIB;
                if (i + k * 1024 >= part) break;
                if (STREAM == Stream::Read) sum = sum ^ v[k];
                if (STREAM == Stream::Write) put(p, sum);
                if (STREAM == Stream::Copy) put(p + bytes, v[k]);
                if (STREAM == Stream::Triad) put(p + 2 * bytes, v[k]);
            }
        }
    }
    if ((sum.x ^ sum.y ^ sum.z ^ sum.w) == 0x9e3779b9) *sink = sum.x;
    if (threadIdx.x % 32 == 0) spans[(blockIdx.x * blockDim.x + threadIdx.x) / 32] = {from, now()};
}

// Gigabytes a second, read and written together, of streams through `bytes` in `ctas` parts.
template <Stream STREAM, bool L1>
void streams(Gpu& gpu, const char* level, u64 bytes, u32 ctas, u32 passes, Before before) {
    u64 arrays = STREAM == Stream::Triad ? 3 : STREAM == Stream::Copy ? 2 : 1;
    u32 part = static_cast<u32>(bytes / ctas / (16 * KIB) * 1024);
    u64 whole = static_cast<u64>(part) * 16 * ctas;
    u32 onward = L1 ? 0 : ONWARD % ctas;
    Values us = timed(gpu, 7, before, [&] {
        launch(stream<STREAM, L1>, ctas, 1024, gpu.memory, whole, part, onward, passes, gpu.spans, gpu.sink);
    });
    const char* names[] = {"read", "write", "copy", "triad"};
    const char* name = names[static_cast<int>(STREAM)];
    std::string variant =
        say("level=%s;stream=%s;bytes=%llu;ctas=%u;threads=1024;passes=%u", level, name, whole, ctas, passes);
    row("bandwidth", variant, rates(static_cast<double>(whole * arrays * passes), us), "GB/s");
    double moved = static_cast<double>(whole) * arrays * passes / ctas;
    Values cycles = gpu.cta_cycles(ctas, 32);
    for (double& value : cycles) value = moved / value;
    row("bandwidth", variant, cycles, "B/cycle/CTA");
}

// The scratchpad of each SM, by vectors of 16 bytes or words.
template <bool VECTOR>
__global__ void __launch_bounds__(1024) shared_reads(int rounds, Span* spans, u32* sink) {
    __shared__ uint4 pool[2048];
    pool[threadIdx.x] = pool[threadIdx.x + 1024] = make_uint4(threadIdx.x, 1, 2, 3);
    __syncthreads();
    u32 base = static_cast<u32>(__cvta_generic_to_shared(pool)), sum = 0;
    u64 from = now();
    for (int round = 0; round < rounds; round++) {
#pragma unroll
        for (u32 k = 0; k < 8; k++) {
            uint4 v = make_uint4(0, 0, 0, 0);
            if (VECTOR) {
                u32 p = base + threadIdx.x * 16 + k % 2 * 16384;
                asm volatile("ld.volatile.shared.v4.u32 {%0,%1,%2,%3}, [%4];"
                             : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                             : "r"(p));
            } else {
                u32 p = base + threadIdx.x * 4 + k * 4096;
                asm volatile("ld.volatile.shared.u32 %0, [%1];" : "=r"(v.x) : "r"(p));
            }
            sum ^= v.x ^ v.y ^ v.z ^ v.w;
        }
    }
    sink[blockIdx.x * 1024 + threadIdx.x] = sum;
    u64 to = now();
    if (threadIdx.x % 32 == 0) spans[threadIdx.x / 32] = {from, to};
}

void scratchpad(Gpu& gpu) {
    for (bool vectors : {true, false}) {
        Values bytes = repeat(5, [&] {
            launch(vectors ? shared_reads<true> : shared_reads<false>, 1, 1024, 256, gpu.spans, gpu.sink);
            return 256.0 * 8 * 1024 * (vectors ? 16 : 4) / gpu.cta_cycles(1, 32)[0];
        });
        row("bandwidth", say("level=shared;stream=read;width=%uB;ctas=1;threads=1024", vectors ? 16 : 4), bytes,
            "B/cycle/SM");
    }
}

// One SM or all: each warp has PARALLEL loads of whole lines under way, none of them in its L1.
template <int PARALLEL>
__global__ void __launch_bounds__(1024) in_flight(const char* memory, u32 mask, int rounds, Span* spans, u32* sink) {
    __shared__ u32 scratch[1024];
    u32 warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, line = warp * rounds * PARALLEL, sum = 0;
    memory += threadIdx.x % 32 * 4;
    __syncthreads();
    u64 from = now();
    for (int round = 0; round < rounds; round++) {
        u32 v[PARALLEL];
#pragma unroll
        for (int k = 0; k < PARALLEL; k++, line++)
            v[k] = word<false>(memory + static_cast<u64>((line * 4099 + sum) & mask) * LINE);
#pragma unroll
        for (int k = 0; k < PARALLEL; k++) sum |= v[k];
    }
    settle(sum, scratch + threadIdx.x);
    u64 to = now();
    if (threadIdx.x % 32 == 0) spans[warp] = {from, to};
    if (sum) *sink = sum;
}

template <int PARALLEL>
void parallelism(Gpu& gpu, u64 footprint) {
    for (u32 ctas : {1u, gpu.sms}) {
        for (u32 warps : {1u, 4u, 16u, 32u}) {
            constexpr int ROUNDS = 64;
            Values bytes = repeat(5, [&] {
                if (footprint > 64 * MIB) prepare(gpu, Before::Flush);
                launch(in_flight<PARALLEL>, ctas, warps * 32, gpu.memory, footprint / LINE - 1, ROUNDS, gpu.spans,
                       gpu.sink);
                Values cycles = gpu.cta_cycles(ctas, warps);
                std::sort(cycles.begin(), cycles.end());
                return static_cast<double>(ROUNDS) * PARALLEL * warps * LINE / cycles[cycles.size() / 2];
            });
            row("in_flight",
                say("footprint=%s;sms=%u;warps=%u;loads=%d", size(footprint).c_str(), ctas, warps, PARALLEL), bytes,
                "B/cycle/SM");
        }
    }
}

// Reads of `granule` bytes at random places: `lanes` of a warp read words of one granule.
__global__ void random_reads(const char* memory, u32 mask, u32 granule, u32 lanes, u32 reads, u32* sink) {
    u32 thread = blockIdx.x * blockDim.x + threadIdx.x, group = thread / lanes, sum = 0;
    const char* own = memory + thread % lanes * (granule / lanes);
#pragma unroll 8
    for (u32 k = 0; k < reads; k++)
        sum ^= word<false>(own + static_cast<u64>(mix_short(group * reads + k + 1) & mask) * granule);
    if (sum == 0x9e3779b9) *sink = sum;
}

// A word every `stride` bytes.
__global__ void strided_reads(const char* memory, u64 stride, u32 reads, u32* sink) {
    u64 thread = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x,
        threads = static_cast<u64>(gridDim.x) * blockDim.x;
    u32 sum = 0;
#pragma unroll 8
    for (u32 k = 0; k < reads; k++) sum ^= word<false>(memory + (thread + k * threads) * stride);
    if (sum == 0x9e3779b9) *sink = sum;
}

void scattered(Gpu& gpu) {
    struct Reads {
        u32 granule, lanes;
    };
    for (u64 footprint : {32 * MIB, 256 * MIB, GIB, 8 * GIB, 32 * GIB, 64 * GIB}) {
        if (footprint > gpu.bytes) continue;
        for (Reads reads : {Reads{32, 1}, {32, 8}, {64, 16}, {128, 32}}) {
            u32 count = 128, ctas = gpu.sms * 2;
            Values us = timed(gpu, 5, footprint > 64 * MIB ? Before::Flush : Before::Wait, [&] {
                launch(random_reads, ctas, 1024, gpu.memory, footprint / reads.granule - 1, reads.granule, reads.lanes,
                       count, gpu.sink);
            });
            double bytes = 1024.0 * ctas * count / reads.lanes * reads.granule;
            row("random_reads",
                say("footprint=%s;granule=%uB;lanes=%u;ctas=%u;threads=1024", size(footprint).c_str(), reads.granule,
                    reads.lanes, ctas),
                rates(bytes, us), "GB/s");
        }
    }
    for (u64 stride = 32; stride <= 8192; stride *= 2) {
        u32 count = 32, ctas = 128;
        if (stride * count * ctas * 1024 > gpu.bytes) continue;
        Values us = timed(gpu, 5, Before::Flush,
                          [&] { launch(strided_reads, ctas, 1024, gpu.memory, stride, count, gpu.sink); });
        row("strided_reads", say("stride=%lluB;reads=%u;ctas=%u;threads=1024", stride, count * ctas * 1024, ctas),
            rates(32.0 * count * ctas * 1024, us), "GB/s of sectors");
    }
}

// Where atomics go: bytes from warp to warp and from lane to lane, or at random below a number of bytes; lanes that
// take part.
struct Targets {
    const char* name;
    u64 warp_step, lane_step;
    u32 random;
    u32 lanes;
};

template <bool RESULT>
__global__ void atomics(char* memory, Targets targets, u32 rounds, u32* sink) {
    u32 thread = blockIdx.x * blockDim.x + threadIdx.x, lane = thread % 32;
    if (lane >= targets.lanes) return;
    char* own = memory + thread / 32 * targets.warp_step + lane * targets.lane_step;
    u32 sum = 0;
    for (u32 k = 0; k < rounds; k++) {
        char* p = targets.random
                      ? memory + static_cast<u64>(mix_short(thread * rounds + k + 1) & (targets.random / 4 - 1)) * 4
                      : own;
        u32 value = thread + k, old = 0;
        if (RESULT) asm volatile("atom.global.add.u32 %0, [%1], %2;" : "=r"(old) : "l"(p), "r"(value) : "memory");
        else asm volatile("red.global.add.u32 [%0], %1;" ::"l"(p), "r"(value) : "memory");
        sum ^= old;
    }
    if (sum == 0x9e3779b9) *sink = sum;
}

template <bool RESULT>
void atomic_rates(Gpu& gpu) {
    const Targets all[] = {
        {"one word;lanes=1", 0, 0, 0, 1},
        {"one word;lanes=32", 0, 0, 0, 32},
        {"words of one line;lanes=32", 0, 4, 0, 32},
        {"a word a warp;lanes=32", LINE, 0, 0, 32},
        {"a line a warp;lanes=32", LINE, 4, 0, 32},
        {"a sector a lane;lanes=32", 32 * 32, 32, 0, 32},
        {"a line a lane;lanes=32", 32 * LINE, LINE, 0, 32},
        {"random words below 16 MiB;lanes=32", 0, 0, 16 << 20, 32},
        {"random words below 1 GiB;lanes=32", 0, 0, 1 << 30, 32},
    };
    for (const Targets& targets : all) {
        u32 ctas = gpu.sms * 2, rounds = 16;
        Values us = timed(gpu, 5, Before::Wait,
                          [&] { launch(atomics<RESULT>, ctas, 1024, gpu.memory, targets, rounds, gpu.sink); });
        double operations = 32.0 * ctas * targets.lanes * rounds;
        row("atomic_rate",
            say("op=add;result=%s;to=%s;ctas=%u;threads=1024", RESULT ? "used" : "none", targets.name, ctas),
            rates(operations, us), "G/s");
    }
}

// Atomics of one SM's scratchpad, 1024 threads.
__global__ void shared_atomics(u32 lane_step, u32 warp_step, u32 rounds, Span* spans, u32* sink) {
    __shared__ u32 bins[2048];
    bins[threadIdx.x] = bins[threadIdx.x + 1024] = 0;
    __syncthreads();
    u32 index = (threadIdx.x % 32 * lane_step + threadIdx.x / 32 * warp_step) % 2048;
    u32 p = static_cast<u32>(__cvta_generic_to_shared(bins + index));
    u64 from = now();
#pragma unroll 8
    for (u32 k = 0; k < rounds; k++)
        asm volatile("red.shared.add.u32 [%0], %1;" ::"r"(p), "r"(threadIdx.x + k) : "memory");
    __syncthreads();
    u64 to = now();
    sink[threadIdx.x] = bins[threadIdx.x];
    if (threadIdx.x % 32 == 0) spans[threadIdx.x / 32] = {from, to};
}

void shared_atomic_rates(Gpu& gpu) {
    struct Steps {
        const char* name;
        u32 lane, warp;
    };
    for (Steps steps :
         {Steps{"one word", 0, 0}, {"a word a warp", 0, 1}, {"a word a lane", 1, 0}, {"own words", 1, 32}}) {
        Values cycles = repeat(5, [&] {
            launch(shared_atomics, 1, 1024, steps.lane, steps.warp, 64, gpu.spans, gpu.sink);
            return gpu.cta_cycles(1, 32)[0] / (64 * 32);
        });
        row("atomic_rate", say("op=shared add;result=none;to=%s;ctas=1;threads=1024", steps.name), cycles,
            "cycles/instruction/SM");
    }
}

void bandwidth(Gpu& gpu) {
    gpu.reserve(64 * GIB, 0);
    u32 two = gpu.sms * 2;
    launch(fill_random, 1024, 256, reinterpret_cast<u32*>(gpu.memory), std::min(gpu.bytes, 8 * GIB) / 4, ~0u);
    prefer_l1(stream<Stream::Read, true>);
    streams<Stream::Read, true>(gpu, "l1", gpu.sms * 64 * KIB, gpu.sms, 512, Before::Wait);
    streams<Stream::Read, true>(gpu, "l1", 64 * KIB, 1, 512, Before::Wait);
    scratchpad(gpu);
    for (u32 steps : {1u, 4u, 6u, 8u, 10u, 12u, 16u}) {  // On 132 SMs from 4.1 MiB to 66 MiB.
        streams<Stream::Read, false>(gpu, "l2", steps * two * 16 * KIB, two, 960 / steps, Before::Wait);
        streams<Stream::Write, false>(gpu, "l2", steps * two * 16 * KIB, two, 480 / steps, Before::Wait);
    }
    streams<Stream::Copy, false>(gpu, "l2", two * 64 * KIB, two, 128, Before::Wait);
    for (u32 ctas : {1u, 2u, 4u, 8u, 16u, 32u, 66u, gpu.sms}) {
        streams<Stream::Read, false>(gpu, "l2", 16 * MIB, ctas, 2 * ctas, Before::Wait);
        streams<Stream::Write, false>(gpu, "l2", 16 * MIB, ctas, 2 * ctas, Before::Wait);
    }
    for (u64 mib : {192, 2048}) {
        streams<Stream::Read, false>(gpu, "memory", mib * MIB, two, 1, Before::Flush);
        streams<Stream::Write, false>(gpu, "memory", mib * MIB, two, 1, Before::Flush);
        streams<Stream::Copy, false>(gpu, "memory", mib * MIB, two, 1, Before::Flush);
        streams<Stream::Triad, false>(gpu, "memory", mib * MIB, two, 1, Before::Flush);
    }
    for (u64 footprint : {16 * MIB, 512 * MIB}) {
        gpu.clear(gpu.memory, footprint);  // Sums of what is read must stay 0.
        parallelism<1>(gpu, footprint);
        parallelism<4>(gpu, footprint);
        parallelism<16>(gpu, footprint);
    }
    scattered(gpu);
    atomic_rates<false>(gpu);
    atomic_rates<true>(gpu);
    shared_atomic_rates(gpu);
}
