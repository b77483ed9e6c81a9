// SPDX-License-Identifier: MIT OR Apache-2.0
// The link to the host: copies of pinned memory by size, what a call costs, and loads and stores of the host's memory.
#pragma once

#include "bandwidth.cuh"
#include "latency.cuh"

void copies(Gpu& gpu, char* host) {
    struct Way {
        const char* name;
        cudaMemcpyKind kind;
    };
    for (Way way : {Way{"to device", cudaMemcpyHostToDevice}, {"to host", cudaMemcpyDeviceToHost}}) {
        bool to_device = way.kind == cudaMemcpyHostToDevice;
        char *to = to_device ? gpu.memory : host, *from = to_device ? host : gpu.memory;
        for (u64 bytes = 4 * KIB; bytes <= 256 * MIB; bytes *= 4) {
            int times = bytes > 8 * MIB ? 5 : 21;
            auto copy = [&] { CHECK(cudaMemcpyAsync(to, from, bytes, way.kind)); };
            row("copy", say("way=%s;bytes=%llu;clock=events", way.name, bytes), timed(gpu, times, Before::Wait, copy),
                "us");
            row("copy", say("way=%s;bytes=%llu;clock=host", way.name, bytes),
                host_timed(times, [&] { CHECK(cudaMemcpy(to, from, bytes, way.kind)); }), "us");
        }
        for (u64 bytes : {u64(4), 4 * KIB, 64 * KIB}) {
            Values calls = host_timed(100, [&] { CHECK(cudaMemcpyAsync(to, from, bytes, way.kind)); });
            CHECK(cudaDeviceSynchronize());
            row("copy_call", say("way=%s;bytes=%llu;cudaMemcpyAsync", way.name, bytes), calls, "us");
        }
    }
    for (u64 bytes : {4 * KIB, 4 * MIB, 256 * MIB}) {
        auto copy = [&] {
            CHECK(cudaMemcpyAsync(gpu.memory + 256 * MIB, gpu.memory, bytes, cudaMemcpyDeviceToDevice));
        };
        row("copy", say("way=within device;bytes=%llu;clock=events", bytes), timed(gpu, 7, Before::Wait, copy), "us");
        auto set = [&] { CHECK(cudaMemsetAsync(gpu.memory, 0, bytes)); };
        row("copy", say("way=memset;bytes=%llu;clock=events", bytes), timed(gpu, 7, Before::Wait, set), "us");
    }
}

void both_ways(Gpu& gpu, char* host) {
    constexpr u64 BYTES = 128 * MIB;
    cudaStream_t streams[2];
    for (cudaStream_t& stream : streams) CHECK(cudaStreamCreate(&stream));
    Values us = host_timed(5, [&] {
        CHECK(cudaMemcpyAsync(gpu.memory, host, BYTES, cudaMemcpyHostToDevice, streams[0]));
        CHECK(cudaMemcpyAsync(host + BYTES, gpu.memory + BYTES, BYTES, cudaMemcpyDeviceToHost, streams[1]));
        CHECK(cudaDeviceSynchronize());
    });
    row("copy", "way=both at once;bytes=134217728 each;clock=host", us, "us");
    for (cudaStream_t stream : streams) CHECK(cudaStreamDestroy(stream));
}

// Loads and stores of the host's pinned memory by kernels.
void zero_copy(Gpu& gpu, char* host) {
    constexpr u32 ELEMENTS = 1 << 16;  // 64 MiB, with a line of every 1 KiB.
    constexpr u64 STRIDE = KIB;
    std::vector<u32> order(ELEMENTS);
    for (u32 i = 0; i < ELEMENTS; i++) order[i] = i;
    std::mt19937 random(2);
    std::shuffle(order.begin(), order.end(), random);
    for (u32 i = 0; i < ELEMENTS; i++) {
        *reinterpret_cast<char**>(host + slot(order[i], STRIDE)) = host + slot(order[(i + 1) % ELEMENTS], STRIDE);
    }
    Values cycles, ns;
    for (int i = 0; i < 3; i++) {
        // No element but the first is touched before.
        launch(chase<false>, 1, 32, host, 1, STRIDE, 64, gpu.words);
        auto out = gpu.fetch(gpu.words, 2);
        cycles.push_back(static_cast<double>(out[0]) / STEPS), ns.push_back(static_cast<double>(out[1]) / STEPS);
    }
    row("zero_copy_latency", "ring=64MiB of the host", cycles, "cycles/load");
    row("zero_copy_latency", "ring=64MiB of the host", ns, "ns/load");
    for (u32 ctas : {1u, 8u, gpu.sms, gpu.sms * 2}) {
        u32 part = static_cast<u32>(64 * MIB / ctas / (16 * KIB) * 1024), passes = 1;
        u64 whole = static_cast<u64>(part) * 16 * ctas;
        auto way = [&](auto kernel, const char* name) {
            Values us = timed(gpu, 3, Before::Flush,
                              [&] { launch(kernel, ctas, 1024, host, whole, part, 0, passes, gpu.spans, gpu.sink); });
            row("zero_copy", say("stream=%s;bytes=%llu;ctas=%u;threads=1024", name, whole, ctas),
                rates(static_cast<double>(whole), us), "GB/s");
        };
        way(stream<Stream::Read, false>, "read");
        way(stream<Stream::Write, false>, "write");
    }
    for (u32 granule : {32u, 128u}) {
        u32 ctas = gpu.sms, count = 4;
        Values us = timed(gpu, 3, Before::Flush, [&] {
            launch(random_reads, ctas, 1024, host, 256 * MIB / granule - 1, granule, granule / 4, count, gpu.sink);
        });
        double bytes = 1024.0 * ctas * count * 4;
        row("zero_copy", say("random granule=%uB;ctas=%u;threads=1024", granule, ctas), rates(bytes, us), "GB/s");
    }
}

void host_link(Gpu& gpu) {
    gpu.reserve(512 * MIB, 512 * MIB);
    char* host = nullptr;
    CHECK(cudaHostAlloc(reinterpret_cast<void**>(&host), 256 * MIB, cudaHostAllocDefault));
    for (u64 i = 0; i < 256 * MIB; i += 4) *reinterpret_cast<u32*>(host + i) = static_cast<u32>(mix(i));
    copies(gpu, host);
    both_ways(gpu, host);
    zero_copy(gpu, host);
    CHECK(cudaFreeHost(host));
}
