// SPDX-License-Identifier: MIT OR Apache-2.0
// What launches cost: in a stream, in a graph, seen from the host, by the size of the grid, and behind dirty lines.
#pragma once

#include "measure.cuh"

__global__ void empty() {}

__global__ void raise(u32* flag, u32 value) {
    *reinterpret_cast<volatile u32*>(flag) = value;
    __threadfence_system();
}

__global__ void write_all(uint4* memory, u64 vectors) {
    u64 step = static_cast<u64>(gridDim.x) * blockDim.x;
    for (u64 i = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x; i < vectors; i += step)
        memory[i] = make_uint4(i, 1, 2, 3);
}

// When a kernel ended and the next began, by the timer that all SMs share: one CTA an SM.
__global__ void first_and_last(u64* first, u64* last) {
    if (threadIdx.x) return;
    atomicMin(first, now_ns());
    atomicMax(last, now_ns());
}

// A graph of what `work` queues in a stream.
template <typename F>
cudaGraphExec_t graph_of(cudaStream_t stream, F work) {
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    work();
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&executable, graph, 0));
    CHECK(cudaGraphDestroy(graph));
    return executable;
}

// Microseconds between events in the default stream around a graph.
Values graph_timed(Gpu& gpu, int times, cudaGraphExec_t graph) {
    return timed(gpu, times, Before::WaitLong, [&] { CHECK(cudaGraphLaunch(graph, cudaStreamLegacy)); });
}

void in_a_row(Gpu& gpu, u32 ctas) {
    constexpr int COUNT = 200;
    auto all = [&](cudaStream_t stream) {
        for (int i = 0; i < COUNT; i++) {
            empty<<<ctas, 256, 0, stream>>>();
            CHECK(cudaGetLastError());
        }
    };
    std::string shape = say("ctas=%u;threads=256", ctas);
    row("launch", say("in=stream;kernels=%d;%s", COUNT, shape.c_str()),
        each(timed(gpu, 7, Before::WaitLong, [&] { all(0); }), 1.0 / COUNT), "us/kernel");
    row("launch", say("in=stream;kernels=1;%s", shape.c_str()),
        timed(gpu, 21, Before::Wait, [&] { launch(empty, ctas, 256); }), "us");
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    cudaGraphExec_t graph = graph_of(stream, [&] { all(stream); });
    row("launch", say("in=graph;kernels=%d;%s", COUNT, shape.c_str()), each(graph_timed(gpu, 7, graph), 1.0 / COUNT),
        "us/kernel");
    CHECK(cudaGraphExecDestroy(graph));
    CHECK(cudaStreamDestroy(stream));
}

// The timer's time from the last CTA's end to the first one's start of the next kernel.
void between_kernels(Gpu& gpu) {
    constexpr u32 KERNELS = 64;
    u64 *first = gpu.words, *last = gpu.words + KERNELS;
    CHECK(cudaMemset(first, 0xff, KERNELS * 8));
    gpu.clear(last, KERNELS * 8);
    prepare(gpu, Before::WaitLong);
    for (u32 i = 0; i < KERNELS; i++) launch(first_and_last, gpu.sms, 32, first + i, last + i);
    auto times = gpu.fetch(first, 2 * KERNELS);
    Values gaps, lengths;
    for (u32 i = 1; i < KERNELS; i++) {
        gaps.push_back(static_cast<double>(times[i]) - static_cast<double>(times[KERNELS + i - 1]));
        lengths.push_back(static_cast<double>(times[KERNELS + i] - times[i]));
    }
    row("kernel_gap", "from=last CTA;to=first CTA of the next;in=stream", gaps, "ns");
    row("kernel_gap", "from=first CTA;to=last CTA;in=stream", lengths, "ns");
}

void from_the_host(Gpu& gpu) {
    row("launch_host", "call alone", host_timed(200, [&] { launch(empty, 1, 32); }), "us");
    CHECK(cudaDeviceSynchronize());
    row("launch_host", "launch and synchronise",
        host_timed(200,
                   [&] {
                       launch(empty, 1, 32);
                       CHECK(cudaDeviceSynchronize());
                   }),
        "us");
    row("launch_host", "synchronise alone", host_timed(200, [&] { CHECK(cudaDeviceSynchronize()); }), "us");
    u32* flag = nullptr;
    CHECK(cudaHostAlloc(reinterpret_cast<void**>(&flag), 4096, cudaHostAllocDefault));
    *flag = 0;
    u32 value = 0;
    Values seen = host_timed(200, [&] {
        launch(raise, 1, 1, flag, ++value);
        auto limit = std::chrono::steady_clock::now() + std::chrono::milliseconds(5);
        while (*reinterpret_cast<volatile u32*>(flag) != value && std::chrono::steady_clock::now() < limit) {
        }
    });
    CHECK(cudaDeviceSynchronize());
    row("launch_host", "launch until the host sees a kernel's store", seen, "us");
    CHECK(cudaFreeHost(flag));
}

void grids(Gpu& gpu) {
    for (u32 threads : {32u, 256u, 1024u}) {
        for (u32 ctas : {1u, gpu.sms, 10 * gpu.sms, 100 * gpu.sms, 1000 * gpu.sms}) {
            row("grid", say("ctas=%u;threads=%u", ctas, threads),
                timed(gpu, 7, Before::Wait, [&] { launch(empty, ctas, threads); }), "us");
        }
    }
}

// A kernel that writes or reads, and the same with an empty one behind it.
void behind_dirty_lines(Gpu& gpu) {
    for (u64 mib : {4, 32, 64}) {
        u64 vectors = mib * MIB / 16;
        uint4* memory = reinterpret_cast<uint4*>(gpu.memory);
        auto write = [&] { launch(write_all, gpu.sms * 2, 1024, memory, vectors); };
        auto read = [&] { launch(read_all, gpu.sms * 2, 1024, memory, vectors, gpu.sink); };
        auto followed = [&](auto work, int empties) {
            return each(timed(gpu, 11, Before::WaitLong,
                              [&] {
                                  for (int i = 0; i < 10; i++) {
                                      work();
                                      for (int k = 0; k < empties; k++) launch(empty, 1, 32);
                                  }
                              }),
                        0.1);
        };
        for (int empties : {0, 1, 2}) {
            row("boundary", say("kernel=write;bytes=%s;empty kernels behind=%d", size(mib * MIB).c_str(), empties),
                followed(write, empties), "us");
            row("boundary", say("kernel=read;bytes=%s;empty kernels behind=%d", size(mib * MIB).c_str(), empties),
                followed(read, empties), "us");
        }
    }
}

void launches(Gpu& gpu) {
    gpu.reserve(64 * MIB, 64 * MIB);
    row("events", "nothing between", timed(gpu, 21, Before::Wait, [] {}), "us");
    for (u32 ctas : {1u, gpu.sms}) in_a_row(gpu, ctas);
    between_kernels(gpu);
    from_the_host(gpu);
    grids(gpu);
    behind_dirty_lines(gpu);
}
