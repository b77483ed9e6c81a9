// SPDX-License-Identifier: MIT OR Apache-2.0
// What all groups of probes share: checked calls, rows, clocks, events, and the caches' state before a measurement.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include <cuda_runtime.h>

typedef unsigned int u32;
typedef unsigned long long u64;
typedef std::vector<double> Values;

constexpr u64 KIB = 1 << 10, MIB = 1 << 20, GIB = 1 << 30;
constexpr u32 LINE = 128;  // Bytes. Source: CUDA C Programming Guide, compute capability 9.0.

#define CHECK(call) check((call), #call, __FILE__, __LINE__)

inline void check(cudaError_t error, const char* call, const char* file, int line) {
    if (error == cudaSuccess) return;
    printf("# failed: %s: %s (%s:%d)\n", call, cudaGetErrorString(error), file, line);
    fflush(stdout);
    exit(1);
}

// Text as by printf.
__attribute__((format(printf, 1, 2))) inline std::string say(const char* format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return text;
}

// Bytes with their largest whole unit.
inline std::string size(u64 bytes) {
    if (bytes >= GIB && bytes % GIB == 0) return say("%lluGiB", bytes / GIB);
    if (bytes >= MIB && bytes % MIB == 0) return say("%lluMiB", bytes / MIB);
    if (bytes >= KIB && bytes % KIB == 0) return say("%lluKiB", bytes / KIB);
    return say("%lluB", bytes);
}

// One row of the table: the median of `values` with their number, least and most.
inline void row(const char* probe, const std::string& variant, Values values, const char* unit) {
    if (values.empty()) {
        printf("# %s %s: nothing was measured\n", probe, variant.c_str());
        return;
    }
    std::sort(values.begin(), values.end());
    size_t n = values.size();
    double median = (values[(n - 1) / 2] + values[n / 2]) / 2;
    printf("%s,%s,%.6g,%s,%zu,%.6g,%.6g\n", probe, variant.c_str(), median, unit, n, values.front(), values.back());
    fflush(stdout);
}

inline Values each(Values values, double factor) {
    for (double& value : values) value *= factor;
    return values;
}

// Gigabytes a second, or billions of operations, of `amount` in each of these microseconds.
inline Values rates(double amount, Values us) {
    for (double& value : us) value = amount / value / 1e3;
    return us;
}

// ---- On the device.

__device__ inline u64 now() {  // Cycles of this SM.
    u64 cycles;
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(cycles)::"memory");
    return cycles;
}

__device__ inline u64 now_ns() {  // Nanoseconds, the same for all SMs, in steps of the row `timer_step`.
    u64 ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns)::"memory");
    return ns;
}

__device__ inline u32 sm() {
    u32 id;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(id));
    return id;
}

// Waits for `value`, which a store to the scratchpad needs: what follows in program order is issued behind it.
__device__ inline void settle(u32 value, u32* slot) {
    u32 address = static_cast<u32>(__cvta_generic_to_shared(slot));
    asm volatile("st.volatile.shared.u32 [%0], %1;" ::"r"(address), "r"(value) : "memory");
}

// Words and vectors, as programs load them, which the L1 may hold; or past the L1. The assembler merges loads of the
// first kind that have one address and no barrier between them, and drops those whose value is not used.
template <bool L1>
__device__ inline u32 word(const void* p) {
    u32 value;
    if (L1) asm volatile("ld.global.u32 %0, [%1];" : "=r"(value) : "l"(p) : "memory");
    else asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(p) : "memory");
    return value;
}

template <bool L1>
__device__ inline uint4 vector(const void* p) {
    uint4 v;
    if (L1) asm volatile("ld.global.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p));
    else
        asm volatile("ld.relaxed.gpu.global.v4.u32 {%0,%1,%2,%3}, [%4];"
                     : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                     : "l"(p));
    return v;
}

// A well-mixed number. Source: the finaliser of MurmurHash3 (public domain).
__host__ __device__ inline u64 mix(u64 x) {
    x = (x ^ x >> 33) * 0xff51afd7ed558ccdull;
    x = (x ^ x >> 33) * 0xc4ceb9fe1a85ec53ull;
    return x ^ x >> 33;
}

// The same in 32 bits, by fewer instructions. Source: C. Wellons, hash-prospector, lowbias32 (public domain).
__device__ inline u32 mix_short(u32 x) {
    x = (x ^ x >> 16) * 0x7feb352du;
    x = (x ^ x >> 15) * 0x846ca68bu;
    return x ^ x >> 16;
}

// When a warp began and ended, in cycles of its SM.
struct Span {
    u64 from, to;
};

// A time, the same for all CTAs, that lies 100 us ahead of the first. All of them must be resident; `meeting` is 0.
__device__ inline u64 rendezvous(u64* meeting) {
    __shared__ u64 at;
    if (threadIdx.x == 0) {
        if (blockIdx.x == 0) atomicExch(meeting, now_ns() + 100000);
        do at = *reinterpret_cast<volatile u64*>(meeting);
        while (at == 0);
    }
    __syncthreads();
    return at;
}

__device__ inline void wait_until(u64 ns) {
    while (now_ns() < ns) {
    }
}

__global__ void spin(u64 cycles) {
    u64 from = now();
    while (now() - from < cycles) {
    }
}

__global__ void read_all(const uint4* memory, u64 vectors, u32* sink) {
    u32 sum = 0;
    u64 step = static_cast<u64>(gridDim.x) * blockDim.x;
    for (u64 i = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x; i < vectors; i += step) {
        uint4 v = vector<false>(memory + i);
        sum ^= v.x ^ v.y ^ v.z ^ v.w;
    }
    if (sum == 0x9e3779b9) *sink = sum;
}

__global__ void fill_random(u32* to, u64 count, u32 mask) {
    u64 step = static_cast<u64>(gridDim.x) * blockDim.x;
    for (u64 i = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step)
        to[i] = static_cast<u32>(mix(i + 1) >> 20) & mask;
}

// All SMs compute for some time, so that clocks rise.
__global__ void busy(u64 ns, float* sink) {
    u64 until = now_ns() + ns;
    float x = threadIdx.x;
    while (now_ns() < until) {
        for (int i = 0; i < 256; i++) asm volatile("fma.rn.f32 %0, %0, %0, %0;" : "+f"(x));
    }
    if (x == 1.5f) *sink = x;
}

// Cycles and nanoseconds of about 2 ms, from one step of the timer to another; and the smallest step.
__global__ void clock_rate(u64* out) {
    u64 last = now_ns(), next, least = ~0ull;
    while ((next = now_ns()) == last) {
    }
    u64 from = now(), start = next;
    for (last = start; next - start < 2000000;) {
        next = now_ns();
        if (next != last) {
            least = next - last < least ? next - last : least;
            last = next;
        }
    }
    while ((next = now_ns()) == last) {
    }
    out[0] = now() - from, out[1] = next - start, out[2] = least;
}

// ---- On the host.

struct Gpu {
    u32 sms = 0;
    char* memory = nullptr;  // What the group asked for, or less.
    u64 bytes = 0;
    char* flushed = nullptr;  // FLUSH bytes that nothing else touches.
    u32* sink = nullptr;
    u64* words = nullptr;   // Small results, 1 MiB.
    Span* spans = nullptr;  // One for each warp of a measurement.
    cudaEvent_t from, to;
    static constexpr u64 FLUSH = 256 * MIB, SPANS = 1 << 16;

    Gpu() {
        cudaDeviceProp properties;
        CHECK(cudaSetDevice(0));
        CHECK(cudaGetDeviceProperties(&properties, 0));
        sms = properties.multiProcessorCount;
        CHECK(cudaMalloc(&flushed, FLUSH));
        CHECK(cudaMemset(flushed, 1, FLUSH));
        CHECK(cudaMalloc(&sink, MIB));
        CHECK(cudaMalloc(&words, MIB));
        CHECK(cudaMalloc(&spans, SPANS * sizeof(Span)));
        CHECK(cudaEventCreate(&from));
        CHECK(cudaEventCreate(&to));
    }

    // Memory for a group: `wanted` bytes, or half of it as often as there is not as much. The first `zeroed` are 0.
    void reserve(u64 wanted, u64 zeroed) {
        size_t free, all;
        CHECK(cudaMemGetInfo(&free, &all));
        for (bytes = wanted; bytes + GIB / 2 > free;) bytes /= 2;
        CHECK(cudaMalloc(&memory, bytes));
        CHECK(cudaMemset(memory, 0, std::min(zeroed, bytes)));
        CHECK(cudaDeviceSynchronize());
        if (bytes < wanted) printf("# memory: %s instead of %s\n", size(bytes).c_str(), size(wanted).c_str());
    }

    void clear(void* at, u64 count) { CHECK(cudaMemset(at, 0, count)); }

    template <typename T>
    std::vector<T> fetch(const T* at, size_t count) {
        std::vector<T> values(count);
        CHECK(cudaMemcpy(values.data(), at, count * sizeof(T), cudaMemcpyDeviceToHost));
        return values;
    }

    template <typename T>
    void send(T* at, const std::vector<T>& values) {
        CHECK(cudaMemcpy(at, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
    }

    // Cycles of each of the first spans.
    Values lengths(u32 count) {
        Values cycles;
        for (const Span& span : fetch(spans, count)) cycles.push_back(static_cast<double>(span.to - span.from));
        return cycles;
    }

    // Cycles of each CTA of the last launch, from its first warp's start to its last warp's end.
    Values cta_cycles(u32 ctas, u32 warps) {
        std::vector<Span> all = fetch(spans, ctas * warps);
        Values cycles;
        for (u32 cta = 0; cta < ctas; cta++) {
            u64 first = ~0ull, last = 0;
            for (u32 warp = 0; warp < warps; warp++) {
                first = std::min(first, all[cta * warps + warp].from);
                last = std::max(last, all[cta * warps + warp].to);
            }
            cycles.push_back(static_cast<double>(last - first));
        }
        return cycles;
    }
};

template <typename... P, typename... A>
void launch(void (*kernel)(P...), dim3 grid, dim3 block, A... arguments) {
    kernel<<<grid, block>>>(static_cast<P>(arguments)...);
    CHECK(cudaGetLastError());
}

// Asks for the largest L1 beside the scratchpad.
template <typename... P>
void prefer_l1(void (*kernel)(P...)) {
    const void* entry = reinterpret_cast<const void*>(kernel);
    CHECK(cudaFuncSetAttribute(entry, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxL1));
}

template <typename F>
Values repeat(int times, F measure) {
    Values values;
    for (int i = 0; i < times; i++) values.push_back(measure());
    return values;
}

// What the GPU does before a measurement: wait until the host has queued a launch or hundreds, or read other memory, so
// that the L2 holds none of what is measured.
enum class Before { Wait, WaitLong, Flush };

inline void prepare(Gpu& gpu, Before before) {
    if (before == Before::Flush)
        launch(read_all, gpu.sms * 2, 1024, reinterpret_cast<uint4*>(gpu.flushed), Gpu::FLUSH / 16, gpu.sink);
    launch(spin, 1, 1, before == Before::WaitLong ? 3000000 : 60000);
}

// Microseconds between events around what `work` queues, after one more that does not count.
template <typename F>
Values timed(Gpu& gpu, int times, Before before, F work) {
    Values us;
    for (int i = 0; i <= times; i++) {
        prepare(gpu, before);
        CHECK(cudaEventRecord(gpu.from));
        work();
        CHECK(cudaEventRecord(gpu.to));
        CHECK(cudaEventSynchronize(gpu.to));
        float ms = 0;
        CHECK(cudaEventElapsedTime(&ms, gpu.from, gpu.to));
        if (i) us.push_back(ms * 1e3);
    }
    return us;
}

// Microseconds of the host's clock that `work` takes, after one more that does not count.
template <typename F>
Values host_timed(int times, F work) {
    Values us;
    for (int i = 0; i <= times; i++) {
        auto from = std::chrono::steady_clock::now();
        work();
        std::chrono::duration<double, std::micro> passed = std::chrono::steady_clock::now() - from;
        if (i) us.push_back(passed.count());
    }
    return us;
}

// The SMs' clock as it is now, and the step of the timer.
inline void clocks(Gpu& gpu, const char* group, const char* when) {
    Values megahertz, step;
    for (int i = 0; i < 3; i++) {
        launch(clock_rate, 1, 1, gpu.words);
        auto out = gpu.fetch(gpu.words, 3);
        megahertz.push_back(1e3 * out[0] / out[1]);
        step.push_back(out[2]);
    }
    row("sm_clock", say("group=%s;at=%s", group, when), megahertz, "MHz");
    row("timer_step", say("group=%s;at=%s", group, when), step, "ns");
}
