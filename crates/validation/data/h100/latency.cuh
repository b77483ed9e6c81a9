// SPDX-License-Identifier: MIT OR Apache-2.0
// Latencies of loads and atomics, by chains: a load's address is what the one before it returned.
#pragma once

#include "measure.cuh"

constexpr u32 STEPS = 4096;

// Where element `i` lies: on a line, chosen at random, of its own `stride` bytes, a power of two.
__host__ __device__ inline u64 slot(u64 i, u64 stride) { return i * stride + (mix(i) & (stride / LINE - 1)) * LINE; }

template <bool L1>
__device__ inline char* follow(const char* p) {
    u64 next;
    if (L1) asm volatile("ld.global.u64 %0, [%1];" : "=l"(next) : "l"(p) : "memory");
    else asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(next) : "l"(p) : "memory");
    return reinterpret_cast<char*>(next);
}

// Makes a ring of elements in `order`; of each element one of itself if there is no order.
__global__ void tie(char* ring, const u32* order, u32 elements, u64 stride) {
    for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < elements; i += gridDim.x * blockDim.x) {
        u32 at = order ? order[i] : i, next = order ? order[i + 1 == elements ? 0 : i + 1] : i;
        *reinterpret_cast<char**>(ring + slot(at, stride)) = ring + slot(next, stride);
    }
}

// All threads touch all elements, then one follows the ring: `ahead` loads that do not count, then STEPS.
template <bool L1>
__global__ void chase(const char* ring, u32 elements, u64 stride, u32 ahead, u64* out) {
    u64 sum = 0;
    for (u32 i = threadIdx.x; i < elements; i += blockDim.x)
        sum ^= reinterpret_cast<u64>(follow<L1>(ring + slot(i, stride)));
    if (sum == 1) *out = sum;
    __syncthreads();
    if (threadIdx.x) return;
    const char* p = ring + slot(0, stride);
    for (u32 i = 0; i < ahead; i++) p = follow<L1>(p);
    u64 ns = now_ns(), from = now();
#pragma unroll 16
    for (u32 i = 0; i < STEPS; i++) p = follow<L1>(p);
    out[0] = now() - from, out[1] = now_ns() - ns, out[2] = reinterpret_cast<u64>(p);
}

template <bool L1>
void ring(Gpu& gpu, const char* probe, const std::string& variant, u64 footprint, u64 stride) {
    static std::mt19937 random(1);
    u32 elements = static_cast<u32>(footprint / stride);
    std::vector<u32> order(elements);
    for (u32 i = 0; i < elements; i++) order[i] = i;
    std::shuffle(order.begin(), order.end(), random);
    u32* device = nullptr;
    CHECK(cudaMalloc(&device, elements * sizeof(u32)));
    gpu.send(device, order);
    launch(tie, 256, 256, gpu.memory, device, elements, stride);
    prefer_l1(chase<L1>);
    u32 ahead = std::max(std::min(elements, 16384u), 2048u);
    Values cycles, ns;
    for (int i = 0; i < 5; i++) {
        launch(chase<L1>, 1, 1024, gpu.memory, elements, stride, ahead, gpu.words);
        auto out = gpu.fetch(gpu.words, 2);
        cycles.push_back(static_cast<double>(out[0]) / STEPS), ns.push_back(static_cast<double>(out[1]) / STEPS);
    }
    CHECK(cudaFree(device));
    row(probe, variant, cycles, "cycles/load");
    row(probe, variant, ns, "ns/load");
}

// The same words by the scratchpad's own addresses.
__global__ void shared_chase(u64* out) {
    __shared__ u32 words[1024];
    u32 base = static_cast<u32>(__cvta_generic_to_shared(words));
    for (u32 i = threadIdx.x; i < 1024; i += blockDim.x) words[i] = base + 4 * ((i + 397) % 1024);
    __syncthreads();
    u32 at = base;
    u64 from = now();
#pragma unroll 16
    for (u32 i = 0; i < STEPS; i++) asm volatile("ld.shared.u32 %0, [%0];" : "+r"(at)::"memory");
    if (threadIdx.x == 0) out[0] = now() - from, out[1] = at;
}

__global__ void clock_reads(u64* out) {
    u64 from = now(), to = now();
    out[0] = to - from;
}

// On the SM `chosen`: 16 loads of each line by its own address, past the L1.
__global__ void line_by_line(const char* memory, u32 lines, u32 chosen, Span* spans) {
    __shared__ u32 scratch;
    if (sm() != chosen || threadIdx.x) return;
#pragma unroll 1
    for (u32 i = 0; i < lines; i++) {
        const char* p = memory + slot(i, 32 * LINE);
        for (int k = 0; k < 2; k++) p = follow<false>(p);
        settle(static_cast<u32>(reinterpret_cast<u64>(p)), &scratch);
        u64 from = now();
#pragma unroll
        for (int k = 0; k < 16; k++) p = follow<false>(p);
        settle(static_cast<u32>(reinterpret_cast<u64>(p)), &scratch);
        spans[i] = {from, now()};
    }
}

void lines_of_l2(Gpu& gpu) {
    constexpr u32 LINES = 4096;
    launch(tie, 256, 256, gpu.memory, static_cast<u32*>(nullptr), LINES, 32 * LINE);
    for (u32 part = 0; part < 8; part++) {
        u32 chosen = part * (gpu.sms - 1) / 7;
        gpu.clear(gpu.spans, LINES * sizeof(Span));
        launch(line_by_line, gpu.sms, 32, gpu.memory, LINES, chosen, gpu.spans);
        Values cycles;
        for (double sum : gpu.lengths(LINES)) {
            if (sum > 0) cycles.push_back(sum / 16);
        }
        row("l2_line", say("sm=%u", chosen), cycles, "cycles/load");
        std::sort(cycles.begin(), cycles.end());
        for (u32 percent : {10u, 25u, 75u, 90u}) {
            if (!cycles.empty()) {
                row("l2_line", say("sm=%u;percentile=%u", chosen, percent), {cycles[cycles.size() * percent / 100]},
                    "cycles/load");
            }
        }
        for (u32 bin = 0; part == 0 && bin < 1000; bin += 10) {
            auto within = [&](double value) { return value >= bin && value < bin + 10; };
            auto count = std::count_if(cycles.begin(), cycles.end(), within);
            if (count)
                row("l2_line_bin", say("sm=%u;from=%u;below=%u", chosen, bin, bin + 10), {static_cast<double>(count)},
                    "lines");
        }
    }
}

enum class Atomic { Add, Exchange, CompareSwap };

// `lane_step` is 0, which the compiler cannot know: it would make one atomic of a warp's.
template <Atomic KIND>
__global__ void atomic_chain(char* memory, u64 cta_step, u64 lane_step, u32 steps, Span* spans, u32* sink) {
    char* p = memory + cta_step * blockIdx.x + lane_step * threadIdx.x;
    u32 value = threadIdx.x + 1;
    u64 from = now();
#pragma unroll 8
    for (u32 i = 0; i < steps; i++) {
        if (KIND == Atomic::Add) asm volatile("atom.global.add.u32 %0, [%1], %0;" : "+r"(value) : "l"(p) : "memory");
        if (KIND == Atomic::Exchange)
            asm volatile("atom.global.exch.b32 %0, [%1], %0;" : "+r"(value) : "l"(p) : "memory");
        if (KIND == Atomic::CompareSwap)
            asm volatile("atom.global.cas.b32 %0, [%1], %0, %0;" : "+r"(value) : "l"(p) : "memory");
    }
    sink[threadIdx.x] = value;
    if (threadIdx.x == 0) spans[blockIdx.x] = {from, now()};
}

__global__ void shared_atomic_chain(u32 lane_step, u32 steps, Span* spans, u32* sink) {
    __shared__ u32 counter;
    if (threadIdx.x == 0) counter = 0;
    __syncthreads();
    u32 at = static_cast<u32>(__cvta_generic_to_shared(&counter)) + lane_step * threadIdx.x, value = threadIdx.x + 1;
    u64 from = now();
#pragma unroll 8
    for (u32 i = 0; i < steps; i++)
        asm volatile("atom.shared.add.u32 %0, [%1], %0;" : "+r"(value) : "r"(at) : "memory");
    sink[threadIdx.x] = value;
    if (threadIdx.x == 0) spans[0] = {from, now()};
}

template <Atomic KIND>
void atomic_latency(Gpu& gpu, const char* name, u32 ctas, u32 lanes, bool same) {
    constexpr u32 COUNT = 1024;
    Values cycles;
    for (int i = 0; i < 5; i++) {
        gpu.clear(gpu.memory, MIB);
        launch(atomic_chain<KIND>, ctas, lanes, gpu.memory, same ? 0 : 4 * KIB, 0, COUNT, gpu.spans, gpu.sink);
        Values ctas_cycles = each(gpu.cta_cycles(ctas, 1), 1.0 / COUNT);
        cycles.push_back(*std::max_element(ctas_cycles.begin(), ctas_cycles.end()));
    }
    row("atomic_latency", say("op=%s;sms=%u;lanes=%u;word=%s", name, ctas, lanes, same ? "same" : "own"), cycles,
        "cycles/instruction");
}

void latency(Gpu& gpu) {
    gpu.reserve(64 * GIB, GIB);
    auto one = [&](auto kernel, u32 threads, double steps) {
        return repeat(5, [&] {
            launch(kernel, 1, threads, gpu.words);
            return gpu.fetch(gpu.words, 1)[0] / steps;
        });
    };
    row("clock_read", "two in a row", one(clock_reads, 1, 1), "cycles");
    row("shared_latency", "lanes=1", one(shared_chase, 1, STEPS), "cycles/load");
    row("shared_latency", "lanes=32;word=same", one(shared_chase, 32, STEPS), "cycles/load");
    for (u64 kib : {4,     16,    64,    128,   160,   192,    208,    224,    240,    256,   384,
                    512,   1024,  2048,  4096,  8192,  12288,  16384,  20480,  24576,  28672, 32768,
                    40960, 49152, 57344, 65536, 98304, 131072, 262144, 524288, 1048576}) {
        ring<true>(gpu, "chase", say("path=l1;stride=128B;footprint=%s", size(kib * KIB).c_str()), kib * KIB, LINE);
    }
    for (u64 kib : {64, 512, 4096, 16384, 131072, 1048576}) {
        ring<false>(gpu, "chase", say("path=l2;stride=128B;footprint=%s", size(kib * KIB).c_str()), kib * KIB, LINE);
    }
    for (u64 stride : {64 * KIB, 2 * MIB, 32 * MIB}) {
        u64 most = std::min(gpu.bytes, stride * 65536);
        for (u64 footprint = 16 * stride; footprint <= most; footprint *= 2) {
            ring<false>(gpu, "tlb", say("stride=%s;footprint=%s", size(stride).c_str(), size(footprint).c_str()),
                        footprint, stride);
        }
    }
    lines_of_l2(gpu);
    for (bool same : {true, false}) {
        for (u32 ctas : {1u, 2u, 8u, 32u, gpu.sms}) atomic_latency<Atomic::Add>(gpu, "add", ctas, 1, same);
    }
    atomic_latency<Atomic::Add>(gpu, "add", 1, 32, true);
    atomic_latency<Atomic::Add>(gpu, "add", gpu.sms, 32, true);
    atomic_latency<Atomic::Exchange>(gpu, "exchange", 1, 1, true);
    atomic_latency<Atomic::Exchange>(gpu, "exchange", gpu.sms, 1, true);
    atomic_latency<Atomic::CompareSwap>(gpu, "compare-swap", 1, 1, true);
    atomic_latency<Atomic::CompareSwap>(gpu, "compare-swap", gpu.sms, 1, true);
    for (u32 lanes : {1u, 32u}) {
        Values cycles = repeat(5, [&] {
            launch(shared_atomic_chain, 1, lanes, 0, 1024, gpu.spans, gpu.sink);
            return gpu.cta_cycles(1, 1)[0] / 1024;
        });
        row("atomic_latency", say("op=shared add;sms=1;lanes=%u;word=same", lanes), cycles, "cycles/instruction");
    }
}
