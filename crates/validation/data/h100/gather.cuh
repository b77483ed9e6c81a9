// SPDX-License-Identifier: MIT OR Apache-2.0
// Loads whose lanes diverge: rate and latency by the lines, banks and sectors that they meet; and first touches.
#pragma once

#include "measure.cuh"

enum class Level { L1, L2, Shared };

constexpr u32 LOADS = 16;
constexpr u32 RANGE = 32 * KIB;  // All of a table's offsets are below.

template <Level LEVEL>
__device__ inline u32 at(const char* p, u32 shared) {
    u32 value;
    if (LEVEL == Level::L1) asm volatile("ld.global.u32 %0, [%1];" : "=r"(value) : "l"(p) : "memory");
    if (LEVEL == Level::L2) asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(p) : "memory");
    if (LEVEL == Level::Shared) asm volatile("ld.volatile.shared.u32 %0, [%1];" : "=r"(value) : "r"(shared) : "memory");
    return value;
}

// Each warp loads from LOADS offsets for each lane, again and again. All words are 0: where loads DEPEND, each address
// has what the load before it returned added.
template <Level LEVEL, bool DEPEND>
__global__ void __launch_bounds__(1024, 1)
    gather(const char* memory, const u32* table, int rounds, Span* spans, u32* sink) {
    __shared__ u32 pool[LEVEL == Level::Shared ? RANGE / 4 : 1024];
    for (u32 i = threadIdx.x; i < sizeof pool / 4; i += blockDim.x) pool[i] = 0;
    __syncthreads();
    u32 base = static_cast<u32>(__cvta_generic_to_shared(pool)), sum = 0;
    const char* pointers[LOADS];
    u32 offsets[LOADS];
#pragma unroll
    for (int k = 0; k < LOADS; k++) {
        u32 offset = table[k * 32 + threadIdx.x % 32];
        pointers[k] = memory + offset, offsets[k] = base + offset;
        sum ^= at<LEVEL>(pointers[k], offsets[k]);
    }
    settle(sum, pool + threadIdx.x);
    __syncthreads();
    u64 from = now();
    for (int round = 0; round < rounds; round++) {
        __syncwarp();  // Or the assembler would load once for all rounds.
#pragma unroll
        for (int k = 0; k < LOADS; k++) {
            u32 more = DEPEND ? sum : 0;
            u32 value = at<LEVEL>(pointers[k] + more, offsets[k] + more);
            sum = DEPEND ? value : sum ^ value;
        }
    }
    settle(sum, pool + threadIdx.x);
    u64 to = now();
    if (threadIdx.x % 32 == 0) spans[threadIdx.x / 32] = {from, to};
    if (sum) *sink = sum;
}

// Offsets in bytes of load k of a lane.
template <typename F>
std::vector<u32> table(F offset) {
    std::vector<u32> offsets;
    for (u32 k = 0; k < LOADS; k++) {
        for (u32 lane = 0; lane < 32; lane++) offsets.push_back(offset(k, lane) % RANGE / 4 * 4);
    }
    return offsets;
}

template <Level LEVEL>
void gathers_of(Gpu& gpu, const char* level, const std::string& pattern, const std::vector<u32>& offsets) {
    u32* device = reinterpret_cast<u32*>(gpu.words);
    gpu.send(device, offsets);
    for (u32 warps : {1u, 4u, 32u}) {
        constexpr int ROUNDS = 32;
        Values cycles = repeat(5, [&] {
            launch(gather<LEVEL, false>, 1, warps * 32, gpu.memory, device, ROUNDS, gpu.spans, gpu.sink);
            return gpu.cta_cycles(1, warps)[0] / (ROUNDS * LOADS * warps);
        });
        row("gather", say("level=%s;%s;warps=%u", level, pattern.c_str(), warps), cycles, "cycles/load/SM");
    }
    Values cycles = repeat(5, [&] {
        launch(gather<LEVEL, true>, 1, 32, gpu.memory, device, 32, gpu.spans, gpu.sink);
        return gpu.cta_cycles(1, 1)[0] / (32 * LOADS);
    });
    row("gather_latency", say("level=%s;%s;warps=1", level, pattern.c_str()), cycles, "cycles/load");
}

void gathers(Gpu& gpu, const std::string& pattern, const std::vector<u32>& offsets) {
    gathers_of<Level::L1>(gpu, "l1", pattern, offsets);
    gathers_of<Level::L2>(gpu, "l2", pattern, offsets);
    gathers_of<Level::Shared>(gpu, "shared", pattern, offsets);
}

void patterns(Gpu& gpu) {
    prefer_l1(gather<Level::L1, false>);
    prefer_l1(gather<Level::L1, true>);
    for (u32 lines = 1; lines <= 32; lines *= 2) {
        auto line = [=](u32 k, u32 lane) { return (k * lines + lane % lines) * LINE; };
        gathers(gpu, say("pattern=lines;lines=%u;banks=all", lines),
                table([&](u32 k, u32 lane) { return line(k, lane) + lane * 4; }));
        gathers(gpu, say("pattern=lines;lines=%u;banks=%u", lines, 32 / lines),
                table([&](u32 k, u32 lane) { return line(k, lane) + lane / lines * 4; }));
    }
    gathers(gpu, "pattern=random words",
            table([](u32 k, u32 lane) { return static_cast<u32>(mix(k * 32 + lane + 1)); }));
    for (u32 stride : {2, 3, 4, 8, 16, 31, 33, 64}) {
        gathers(gpu, say("pattern=stride;words=%u", stride),
                table([=](u32 k, u32 lane) { return k * 2048 + lane * stride * 4; }));
    }
    gathers(gpu, "pattern=one word", table([](u32 k, u32) { return k * LINE; }));
    gathers(gpu, "pattern=one sector", table([](u32 k, u32 lane) { return k * LINE + lane % 8 * 4; }));
}

// First touches. In each of `trials`, TRIAL bytes apart, each thread loads from LOADS offsets of its own; then the
// cycles until all have come, for each warp. Another line of the page is touched before, for its translation.
constexpr u64 TRIAL = 64 * KIB;
constexpr u32 TRIALS = 64;

template <int PER_THREAD>
__global__ void first_touch(const char* memory, const u32* offsets, u64* meeting, Span* spans) {
    __shared__ u32 scratch[1024];
    u32 threads = gridDim.x * blockDim.x, thread = blockIdx.x * blockDim.x + threadIdx.x;
    u32 own[PER_THREAD];
    for (int k = 0; k < PER_THREAD; k++) own[k] = offsets[k * threads + thread];
    u64 start = rendezvous(meeting);
#pragma unroll 1
    for (u32 trial = 0; trial < TRIALS; trial++) {
        const char* base = memory + trial * TRIAL;
        settle(word<false>(base + TRIAL - LINE), scratch + threadIdx.x);
        __syncthreads();
        wait_until(start + trial * 20000);
        u64 from = now();
        u32 sum = 0;
#pragma unroll
        for (int k = 0; k < PER_THREAD; k++) sum ^= word<true>(base + own[k]);
        settle(sum, scratch + threadIdx.x);
        u64 to = now();
        if (threadIdx.x % 32 == 0) spans[trial * (threads / 32) + thread / 32] = {from, to};
        __syncthreads();
    }
}

template <int PER_THREAD, typename F>
void touches(Gpu& gpu, const std::string& pattern, u32 ctas, u32 warps, F offset) {
    u32 threads = ctas * warps * 32;
    std::vector<u32> offsets;
    for (u32 k = 0; k < PER_THREAD; k++) {
        for (u32 thread = 0; thread < threads; thread++) offsets.push_back(offset(k, thread));
    }
    u32* device = reinterpret_cast<u32*>(gpu.words) + 64;
    for (bool cold : {true, false}) {
        gpu.send(device, offsets);
        gpu.clear(gpu.words, 8);
        if (cold) prepare(gpu, Before::Flush);
        launch(first_touch<PER_THREAD>, ctas, warps * 32, gpu.memory, device, gpu.words, gpu.spans);
        Values all = gpu.lengths(TRIALS * ctas * warps);
        Values slowest;
        for (u32 trial = 0; trial < TRIALS; trial++) {
            auto first = all.begin() + trial * ctas * warps;
            slowest.push_back(*std::max_element(first, first + ctas * warps));
        }
        const char* state = cold ? "memory" : "l2";
        row("first_touch", say("%s;sms=%u;warps=%u;from=%s", pattern.c_str(), ctas, warps, state), slowest, "cycles");
    }
}

void first_touches(Gpu& gpu) {
    auto lane = [](u32 thread) { return thread % 32; };
    auto warp = [](u32 thread) { return thread / 32; };
    touches<1>(gpu, "pattern=one sector", 1, 1, [&](u32, u32 t) { return lane(t) % 8 * 4; });
    touches<1>(gpu, "pattern=one line", 1, 1, [&](u32, u32 t) { return lane(t) * 4; });
    touches<1>(gpu, "pattern=a sector a warp;of=one line", 1, 4,
               [&](u32, u32 t) { return warp(t) * 32 + lane(t) % 8 * 4; });
    touches<1>(gpu, "pattern=a sector a warp;of=own lines", 1, 4,
               [&](u32, u32 t) { return warp(t) * LINE + lane(t) % 8 * 4; });
    touches<1>(gpu, "pattern=a sector an SM;of=one line", 4, 1,
               [&](u32, u32 t) { return warp(t) * 32 + lane(t) % 8 * 4; });
    touches<1>(gpu, "pattern=a sector an SM;of=own lines", 4, 1,
               [&](u32, u32 t) { return warp(t) * LINE + lane(t) % 8 * 4; });
    for (u32 warps : {8u, 32u}) {
        touches<1>(gpu, "pattern=all warps one line", 1, warps, [&](u32, u32 t) { return lane(t) * 4; });
        touches<1>(gpu, "pattern=a line a warp", 1, warps, [&](u32, u32 t) { return t * 4; });
    }
    touches<1>(gpu, "pattern=all SMs one line", gpu.sms, 1, [&](u32, u32 t) { return lane(t) * 4; });
    touches<1>(gpu, "pattern=a line an SM", gpu.sms, 1, [&](u32, u32 t) { return t * 4; });
    touches<1>(gpu, "pattern=32 lines;loads=1", 1, 1, [&](u32, u32 t) { return lane(t) * LINE; });
    touches<4>(gpu, "pattern=structs of 128 bytes;loads=4", 1, 1,
               [&](u32 k, u32 t) { return lane(t) * LINE + k * 32; });
    touches<4>(gpu, "pattern=4 lines;loads=4", 1, 1, [&](u32 k, u32 t) { return k * LINE + lane(t) * 4; });
}

// All SMs read the same 256 lines: each warp all of them.
template <bool L1>
__global__ void broadcast(const char* memory, u64* meeting, Span* spans) {
    __shared__ u32 scratch[256];
    u32 sum = 0;
    u64 start = rendezvous(meeting);
    settle(word<false>(memory + MIB), scratch + threadIdx.x);  // For the page's translation.
    wait_until(start);
    u64 from = now();
#pragma unroll 8
    for (u32 line = 0; line < 256; line++) sum ^= word<L1>(memory + line * LINE + threadIdx.x % 32 * 4);
    settle(sum, scratch + threadIdx.x);
    u64 to = now();
    if (threadIdx.x % 32 == 0) spans[(blockIdx.x * blockDim.x + threadIdx.x) / 32] = {from, to};
}

template <bool L1>
void broadcasts(Gpu& gpu, u32 ctas, u32 warps) {
    for (bool cold : {true, false}) {
        Values slowest = repeat(7, [&] {
            gpu.clear(gpu.words, 8);
            if (cold) prepare(gpu, Before::Flush);
            launch(broadcast<L1>, ctas, warps * 32, gpu.memory, gpu.words, gpu.spans);
            Values cycles = gpu.cta_cycles(ctas, warps);
            return *std::max_element(cycles.begin(), cycles.end());
        });
        const char* path = L1 ? "l1" : "l2";
        row("broadcast", say("lines=256;sms=%u;warps=%u;path=%s;from=%s", ctas, warps, path, cold ? "memory" : "l2"),
            slowest, "cycles");
    }
}

void gather_probes(Gpu& gpu) {
    gpu.reserve(64 * MIB, 64 * MIB);
    patterns(gpu);
    first_touches(gpu);
    for (u32 ctas : {1u, gpu.sms}) {
        for (u32 warps : {1u, 8u}) {
            broadcasts<true>(gpu, ctas, warps);
            broadcasts<false>(gpu, ctas, warps);
        }
    }
}
