// SPDX-License-Identifier: MIT OR Apache-2.0
// Managed memory: faults of the GPU and of the host, one by one and many at once, prefetches; and one simple program with its
// data pinned on the host, copied, and managed, part by part.
#pragma once

#include "measure.cuh"

// One word of each `stride` bytes, each load waiting for the one before.
__global__ void walk(const char* memory, u64 stride, u32 steps, u64* out) {
    __shared__ u32 slot;
    u64 from = now_ns();
    u32 value = 0;
    for (u32 i = 0; i < steps; i++) {
        value = word<false>(memory + i * stride + (value & 1) * 4);
        settle(value, &slot);
    }
    out[0] = now_ns() - from;
}

// Each thread one word of the `stride` bytes that are its.
__global__ void touch(const char* memory, u64 stride, u32 count, u32* sink) {
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count && word<false>(memory + i * stride) == 0x9e3779b9) *sink = i;
}

__global__ void add(const float* a, const float* b, float* c, u32 elements) {
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < elements) c[i] = a[i] + b[i];
}

// The same with 32 elements of a row of `pitch` elements: a line of each page.
__global__ void add_sparse(const float* a, const float* b, float* c, u32 elements, u32 pitch) {
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    u64 at = static_cast<u64>(i / 32) * pitch + i % 32;
    if (i < elements) c[at] = a[at] + b[at];
}

inline double since(std::chrono::steady_clock::time_point from) {
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - from).count();
}

inline char* managed_memory(u64 bytes) {
    char* memory = nullptr;
    CHECK(cudaMallocManaged(reinterpret_cast<void**>(&memory), bytes));
    return memory;
}

// All of it is the host's again, written.
inline void give_to_host(char* memory, u64 bytes) {
    CHECK(cudaDeviceSynchronize());
    for (u64 i = 0; i < bytes; i += 4) *reinterpret_cast<volatile u32*>(memory + i) = static_cast<u32>(i) & ~1u;
}

void faults_of_gpu(Gpu& gpu) {
    constexpr u64 BYTES = 256 * MIB;
    char* memory = managed_memory(BYTES);
    for (u64 stride : {4 * KIB, 64 * KIB, 2 * MIB}) {
        u32 steps = static_cast<u32>(std::min<u64>(64, BYTES / stride));
        Values ns;
        for (int i = 0; i < 5; i++) {
            give_to_host(memory, BYTES);
            launch(walk, 1, 1, memory, stride, steps, gpu.words);
            CHECK(cudaDeviceSynchronize());
            ns.push_back(static_cast<double>(gpu.fetch(gpu.words, 1)[0]) / steps);
        }
        row("managed_fault", say("of=gpu;one by one;stride=%s;steps=%u", size(stride).c_str(), steps), ns, "ns/access");
    }
    for (u64 stride : {4 * KIB, 64 * KIB, 2 * MIB}) {
        u32 count = static_cast<u32>(BYTES / stride);
        Values us;
        for (int i = 0; i < 5; i++) {
            give_to_host(memory, BYTES);
            auto from = std::chrono::steady_clock::now();
            launch(touch, (count + 255) / 256, 256, memory, stride, count, gpu.sink);
            CHECK(cudaDeviceSynchronize());
            us.push_back(since(from));
        }
        row("managed_fault", say("of=gpu;all at once;stride=%s;accesses=%u;clock=host", size(stride).c_str(), count), us, "us");
    }
    for (u64 bytes : {MIB, 16 * MIB, 256 * MIB}) {
        Values us;
        for (int i = 0; i < 5; i++) {
            give_to_host(memory, bytes);
            auto from = std::chrono::steady_clock::now();
            launch(read_all, gpu.sms * 2, 1024, reinterpret_cast<uint4*>(memory), bytes / 16, gpu.sink);
            CHECK(cudaDeviceSynchronize());
            us.push_back(since(from));
        }
        row("managed_read", say("by=gpu;bytes=%llu;clock=host", bytes), us, "us");
    }
    CHECK(cudaFree(memory));
}

void faults_of_host(Gpu& gpu) {
    constexpr u64 BYTES = 64 * MIB;
    char* memory = managed_memory(BYTES);
    auto bring = [&] {
        launch(fill_random, gpu.sms * 2, 1024, reinterpret_cast<u32*>(memory), BYTES / 4, ~0u);
        CHECK(cudaDeviceSynchronize());
    };
    for (u64 stride : {4 * KIB, 64 * KIB, 2 * MIB}) {
        u32 steps = static_cast<u32>(std::min<u64>(512, BYTES / stride));
        Values first, each;
        for (int i = 0; i < 5; i++) {
            bring();
            auto from = std::chrono::steady_clock::now();
            volatile u32 sum = *reinterpret_cast<volatile u32*>(memory);
            first.push_back(since(from));
            for (u32 step = 1; step < steps; step++) sum = sum + *reinterpret_cast<volatile u32*>(memory + step * stride);
            each.push_back((since(from) - first.back()) / (steps - 1));
        }
        row("managed_fault", say("of=host;first;stride=%s", size(stride).c_str()), first, "us");
        row("managed_fault", say("of=host;one by one;stride=%s;steps=%u", size(stride).c_str(), steps), each, "us/access");
    }
    Values us;
    for (int i = 0; i < 3; i++) {
        bring();
        auto from = std::chrono::steady_clock::now();
        volatile u32 sum = 0;
        for (u64 at = 0; at < BYTES; at += 64) sum = sum + *reinterpret_cast<volatile u32*>(memory + at);
        us.push_back(since(from));
    }
    row("managed_read", say("by=host;bytes=%llu;a word of each 64;clock=host", BYTES), us, "us");
    CHECK(cudaFree(memory));
}

// To the first GPU, or to the host. The call has a place in it from CUDA 13 on.
inline void prefetch(char* memory, u64 bytes, bool to_gpu) {
#if CUDART_VERSION >= 13000
    cudaMemLocation place = {};
    place.type = to_gpu ? cudaMemLocationTypeDevice : cudaMemLocationTypeHost;
    CHECK(cudaMemPrefetchAsync(memory, bytes, place, 0));
#else
    CHECK(cudaMemPrefetchAsync(memory, bytes, to_gpu ? 0 : cudaCpuDeviceId));
#endif
    CHECK(cudaDeviceSynchronize());
}

void prefetches(Gpu& gpu) {
    constexpr u64 BYTES = 256 * MIB;
    char* memory = managed_memory(BYTES);
    for (u64 bytes : {64 * KIB, MIB, 16 * MIB, 256 * MIB}) {
        Values there, back;
        for (int i = 0; i < 5; i++) {
            give_to_host(memory, bytes);
            auto from = std::chrono::steady_clock::now();
            prefetch(memory, bytes, true);
            there.push_back(since(from));
            launch(read_all, gpu.sms * 2, 1024, reinterpret_cast<uint4*>(memory), bytes / 16, gpu.sink);
            CHECK(cudaDeviceSynchronize());
            from = std::chrono::steady_clock::now();
            prefetch(memory, bytes, false);
            back.push_back(since(from));
        }
        row("managed_prefetch", say("to=gpu;bytes=%llu;clock=host", bytes), there, "us");
        row("managed_prefetch", say("to=host;bytes=%llu;clock=host", bytes), back, "us");
    }
    CHECK(cudaFree(memory));
}

enum class Keeps { Pinned, Copied, Managed };

// c = a + b, of arrays that the host writes before, and reads after. `pitch`: elements of a row of which 32 are used, or 0.
void ways_to_keep_data(Gpu& gpu) {
    for (u32 pitch : {0u, 1024u}) {
        for (u32 used : {1u << 18, 1u << 20, 1u << 22}) {
            u64 elements = pitch ? static_cast<u64>(used / 32) * pitch : used;
            if (elements > (1u << 25)) continue;
            u64 bytes = elements * sizeof(float);
            for (Keeps keeps : {Keeps::Pinned, Keeps::Copied, Keeps::Managed}) {
                float *host[3], *device[3];
                for (int i = 0; i < 3; i++) {
                    auto at = reinterpret_cast<void**>(&host[i]);
                    if (keeps == Keeps::Managed) CHECK(cudaMallocManaged(at, bytes));
                    else CHECK(cudaHostAlloc(at, bytes, cudaHostAllocDefault));
                    device[i] = host[i];
                    if (keeps == Keeps::Copied) CHECK(cudaMalloc(reinterpret_cast<void**>(&device[i]), bytes));
                    std::fill(host[i], host[i] + elements, 0.f);
                }
                Values parts[5];
                for (int turn = 0; turn < 6; turn++) {
                    auto from = std::chrono::steady_clock::now();
                    for (u64 i = 0; i < elements; i++) host[0][i] = static_cast<float>(i & 255), host[1][i] = 1.f;
                    double set_up = since(from);
                    from = std::chrono::steady_clock::now();
                    if (keeps == Keeps::Copied)
                        for (int i = 0; i < 2; i++) CHECK(cudaMemcpy(device[i], host[i], bytes, cudaMemcpyHostToDevice));
                    double in = since(from);
                    from = std::chrono::steady_clock::now();
                    if (pitch) launch(add_sparse, used / 256, 256, device[0], device[1], device[2], used, pitch);
                    else launch(add, used / 256, 256, device[0], device[1], device[2], used);
                    CHECK(cudaDeviceSynchronize());
                    double kernel = since(from);
                    from = std::chrono::steady_clock::now();
                    if (keeps == Keeps::Copied) CHECK(cudaMemcpy(host[2], device[2], bytes, cudaMemcpyDeviceToHost));
                    volatile float sum = host[2][0];
                    double first = since(from);
                    bool right = true;
                    u64 step = pitch ? pitch : 1;
                    for (u64 i = 0; i < elements; i += step) {
                        float value = *reinterpret_cast<volatile float*>(&host[2][i]);
                        right = right && value == static_cast<float>(i & 255) + 1.f;
                    }
                    sum = sum + 1.f;
                    double last = since(from);
                    if (!right) printf("# add: wrong\n");
                    if (turn == 0) continue;
                    double times[5] = {set_up, in, kernel, first, last};
                    for (int i = 0; i < 5; i++) parts[i].push_back(times[i]);
                }
                const char* names[5] = {"host writes", "copies in", "kernel", "first value", "last value"};
                const char* way = keeps == Keeps::Pinned ? "pinned" : keeps == Keeps::Copied ? "copied" : "managed";
                for (int i = 0; i < 5; i++)
                    row("keep_data", say("way=%s;elements=%u;pitch=%u;part=%s;clock=host", way, used, pitch, names[i]), parts[i], "us");
                for (int i = 0; i < 3; i++) {
                    if (keeps == Keeps::Managed) CHECK(cudaFree(host[i]));
                    else CHECK(cudaFreeHost(host[i]));
                    if (keeps == Keeps::Copied) CHECK(cudaFree(device[i]));
                }
            }
        }
    }
}

void managed(Gpu& gpu) {
    faults_of_gpu(gpu);
    faults_of_host(gpu);
    prefetches(gpu);
    ways_to_keep_data(gpu);
}
