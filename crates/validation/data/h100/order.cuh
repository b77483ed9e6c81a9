// SPDX-License-Identifier: MIT OR Apache-2.0
// Stores to lines that SMs share, how many stores a warp has under way, fences, and words handed from SM to SM.
#pragma once

#include "latency.cuh"

__device__ inline void store(void* p, u32 value) {
    asm volatile("st.global.u32 [%0], %1;" ::"l"(p), "r"(value) : "memory");
}

// Each warp stores whole lines in turn: of the first `lines` from `cta_step` times its CTA's number on.
__global__ void line_stores(char* memory, u64 cta_step, u32 lines, u32 rounds) {
    char* own = memory + blockIdx.x * cta_step + threadIdx.x % 32 * 4;
    for (u32 k = 0, line = threadIdx.x / 32 * 7 % lines; k < rounds; k++) {
        store(own + line * LINE, k);
        line = line + 1 == lines ? 0 : line + 1;
    }
}

void shared_lines(Gpu& gpu) {
    struct Lines {
        const char* name;
        u64 step;
        u32 lines;
    };
    for (Lines to : {Lines{"all SMs the same", 0, 1},
                     {"all SMs the same", 0, 256},
                     {"own lines", MIB, 1},
                     {"own lines", MIB, 256}}) {
        for (u32 ctas : {1u, gpu.sms}) {
            u32 rounds = ctas == 1 ? 4096 : 256;
            Values us = timed(gpu, 5, Before::Wait,
                              [&] { launch(line_stores, ctas, 1024, gpu.memory, to.step, to.lines, rounds); });
            row("line_stores", say("to=%s;lines=%u;ctas=%u;threads=1024", to.name, to.lines, ctas),
                rates(32.0 * LINE * ctas * rounds, us), "GB/s");
        }
    }
}

enum class Fence { None, Gpu, GpuSequential, SystemAcqRel, System };

template <Fence FENCE>
__device__ inline void fence() {
    if (FENCE == Fence::Gpu) asm volatile("fence.acq_rel.gpu;" ::: "memory");
    if (FENCE == Fence::GpuSequential) __threadfence();
    if (FENCE == Fence::SystemAcqRel) asm volatile("fence.acq_rel.sys;" ::: "memory");
    if (FENCE == Fence::System) __threadfence_system();
}

constexpr u32 TURNS = 64;

// One warp: `stores` of whole lines that nobody else uses, then a fence. Cycles of each turn.
template <Fence FENCE>
__global__ void fenced(char* memory, u32 stores, Span* spans) {
    char* p = memory + threadIdx.x * 4;
#pragma unroll 1
    for (u32 turn = 0; turn < TURNS; turn++) {
        __syncwarp();
        u64 from = now();
        for (u32 k = 0; k < stores; k++, p += LINE) store(p, turn);
        fence<FENCE>();
        u64 to = now();
        if (threadIdx.x == 0) spans[turn] = {from, to};
        __threadfence();
        wait_until(now_ns() + 2000);
    }
}

template <Fence FENCE>
void fences(Gpu& gpu, const char* name) {
    for (u32 stores : {0u, 1u, 4u, 16u, 64u, 256u, 1024u}) {
        for (u32 lanes : {1u, 32u}) {
            launch(fenced<FENCE>, 1, lanes, gpu.memory, stores, gpu.spans);
            row("fence", say("kind=%s;stores=%u;lanes=%u", name, stores, lanes), gpu.lengths(TURNS), "cycles");
        }
    }
}

// A load that the L1 holds, then the same load behind a fence, an acquire of another word, or a store to its sector.
// Each line has its own address in it.
enum class Then { Nothing, Acquire, Store };

template <Fence FENCE, Then THEN>
__global__ void after_fence(const char* memory, Span* spans) {
    __shared__ u32 scratch;
    auto load = [&](const char* p) {
        p = follow<true>(p);
        settle(static_cast<u32>(reinterpret_cast<u64>(p)), &scratch);
        return p;
    };
#pragma unroll 1
    for (u32 turn = 0; turn < TURNS; turn++) {
        const char* p = memory + slot(turn, 4 * LINE);
        for (int i = 0; i < 3; i++) p = load(p);
        u64 from = now();
        p = load(p);
        u64 between = now();
        fence<FENCE>();
        if (THEN == Then::Store) store(const_cast<char*>(p) + 8, turn);
        if (THEN == Then::Acquire) {
            u32 value;
            asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(memory + MIB) : "memory");
            settle(value, &scratch);
        }
        u64 behind = now();
        p = load(p);
        u64 to = now();
        spans[turn] = {from, between}, spans[TURNS + turn] = {behind, to};
    }
}

template <Fence FENCE, Then THEN>
void l1_behind(Gpu& gpu, const char* name) {
    prefer_l1(after_fence<FENCE, THEN>);
    launch(tie, 1, 64, gpu.memory, static_cast<u32*>(nullptr), TURNS, 4 * LINE);
    launch(after_fence<FENCE, THEN>, 1, 1, gpu.memory, gpu.spans);
    Values all = gpu.lengths(2 * TURNS);
    row("l1_load", say("before=%s", name), Values(all.begin(), all.begin() + TURNS), "cycles");
    row("l1_load", say("behind=%s", name), Values(all.begin() + TURNS, all.end()), "cycles");
}

enum class Order { Relaxed, Gpu, System };

template <Order ORDER>
__device__ inline void give(u32* p, u32 value) {
    if (ORDER == Order::Relaxed) asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(p), "r"(value) : "memory");
    if (ORDER == Order::Gpu) asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(p), "r"(value) : "memory");
    if (ORDER == Order::System) asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(p), "r"(value) : "memory");
}

template <Order ORDER>
__device__ inline u32 take(const u32* p) {
    u32 value;
    if (ORDER == Order::Relaxed) asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(p) : "memory");
    if (ORDER == Order::Gpu) asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(p) : "memory");
    if (ORDER == Order::System) asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(p) : "memory");
    return value;
}

// CTA 0 and `partner` hand a number forth and back, and with it `lines` words of payload on lines of their own.
template <Order ORDER>
__global__ void ping_pong(u32 partner, u32 rounds, char* memory, u32 lines, u64* out) {
    bool first = blockIdx.x == 0;
    if (threadIdx.x || (!first && blockIdx.x != partner)) return;
    u32 *forth = reinterpret_cast<u32*>(memory), *back = reinterpret_cast<u32*>(memory + 4 * LINE), sum = 0;
    char* payload = memory + MIB;
    out[first ? 1 : 2] = sm();
    u64 from = 0;
    for (u32 round = 1; round <= 2 * rounds; round++) {
        if (round == rounds + 1) from = now();
        if (!first) {
            while (take<ORDER>(forth) != round) {
            }
            for (u32 k = 0; k < lines; k++) sum += word<true>(payload + k * LINE);
        }
        for (u32 k = 0; k < lines; k++) store(payload + (first ? 0 : MIB) + k * LINE, round);
        give<ORDER>(first ? forth : back, round);
        if (first) {
            while (take<ORDER>(back) != round) {
            }
            for (u32 k = 0; k < lines; k++) sum += word<true>(payload + MIB + k * LINE);
        }
    }
    if (first) out[0] = now() - from;
    out[first ? 3 : 4] = sum;
}

template <Order ORDER>
void hand_over(Gpu& gpu, const char* name) {
    constexpr u32 ROUNDS = 500;
    for (u32 partner : {1u, 2u, 8u, 33u, 66u, gpu.sms - 1}) {
        if (partner >= gpu.sms) continue;
        for (u32 lines : {0u, 4u}) {
            u64 first = 0, second = 0, wanted = 0, found = 0;
            Values cycles = repeat(3, [&] {
                gpu.clear(gpu.memory, 4 * MIB);
                launch(ping_pong<ORDER>, gpu.sms, 32, partner, ROUNDS, gpu.memory, lines, gpu.words);
                auto out = gpu.fetch(gpu.words, 5);
                first = out[1], second = out[2], found = out[3];
                wanted = static_cast<u64>(lines) * ROUNDS * (2 * ROUNDS + 1);
                return static_cast<double>(out[0]) / (2 * ROUNDS);
            });
            if (ORDER != Order::Relaxed && found != wanted)
                printf("# hand_over %s: payload sums to %llu, not %llu\n", name, found, wanted);
            row("hand_over", say("order=%s;sms=%llu and %llu;payload_lines=%u", name, first, second, lines), cycles,
                "cycles one way");
        }
    }
}

void order(Gpu& gpu) {
    gpu.reserve(256 * MIB, 256 * MIB);
    shared_lines(gpu);
    fences<Fence::None>(gpu, "none");
    fences<Fence::Gpu>(gpu, "fence.acq_rel.gpu");
    fences<Fence::GpuSequential>(gpu, "__threadfence");
    fences<Fence::SystemAcqRel>(gpu, "fence.acq_rel.sys");
    fences<Fence::System>(gpu, "__threadfence_system");
    l1_behind<Fence::None, Then::Nothing>(gpu, "nothing");
    l1_behind<Fence::None, Then::Store>(gpu, "a store to its sector");
    l1_behind<Fence::None, Then::Acquire>(gpu, "ld.acquire.gpu");
    l1_behind<Fence::Gpu, Then::Nothing>(gpu, "fence.acq_rel.gpu");
    l1_behind<Fence::GpuSequential, Then::Nothing>(gpu, "__threadfence");
    l1_behind<Fence::System, Then::Nothing>(gpu, "__threadfence_system");
    hand_over<Order::Relaxed>(gpu, "relaxed.gpu");
    hand_over<Order::Gpu>(gpu, "release-acquire.gpu");
    hand_over<Order::System>(gpu, "release-acquire.sys");
}
