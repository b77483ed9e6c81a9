// SPDX-License-Identifier: MIT OR Apache-2.0
// Times of simple programs. `tombolo=` names the workload of Tombolo that launches the same CTAs and does the same
// accesses.
#pragma once

#include <cmath>

#include "measure.cuh"

constexpr int TIMES = 7, RUNS = 2 * (TIMES + 1);

// Each program cold, behind reads of other memory, and again and again: RUNS in all.
template <typename F>
void program(Gpu& gpu, const std::string& variant, F work) {
    row("program", variant + ";state=cold", timed(gpu, TIMES, Before::Flush, work), "us");
    row("program", variant + ";state=again", timed(gpu, TIMES, Before::Wait, work), "us");
}

// A word that a program left in memory.
template <typename T>
T left(Gpu& gpu, const T* at) {
    return gpu.fetch(at, 1)[0];
}

void expect(const char* what, double found, double expected) {
    bool near = std::fabs(found - expected) <= 1e-5 * std::fabs(expected) + 1e-30;
    printf("# check %s: %s\n", what, near ? "right" : say("%.9g instead of %.9g", found, expected).c_str());
}

__host__ __device__ inline float number(u64 i) { return static_cast<float>(mix(i) >> 40) / (1 << 24); }

__global__ void fill(float* to, u64 count) {
    u64 step = static_cast<u64>(gridDim.x) * blockDim.x;
    for (u64 i = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) to[i] = number(i);
}

__global__ void fill_double(double* to, u64 count) {
    u64 step = static_cast<u64>(gridDim.x) * blockDim.x;
    for (u64 i = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) to[i] = number(i);
}

__global__ void vector_add(const float* a, const float* b, float* sum, u32 count) {
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) sum[i] = a[i] + b[i];
}

__global__ void triad_double(double* a, const double* b, const double* c, u32 count) {
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) a[i] = b[i] + 0.4 * c[i];
}

// Tiles of 32 x 8 in rows, a thread a point.
__global__ void stencil_5(const float* from, float* to, int columns, int rows) {
    int tiles = (columns + 31) / 32, x = threadIdx.x % 32 + blockIdx.x % tiles * 32,
        y = threadIdx.x / 32 + blockIdx.x / tiles * 8;
    int at = y * columns + x;
    if (x < 1 || x >= columns - 1 || y < 1 || y >= rows - 1) return;
    to[at] = from[at] * 0.25f + (from[at - columns] + from[at + columns] + from[at - 1] + from[at + 1]) * 0.15f;
}

// Rows of a warp become columns. CTAs of 32 x 8 threads.
__global__ void transpose_naive(const float* input, float* output, u32 side) {
    u32 tiles = side / 32, x = threadIdx.x % 32 + blockIdx.x % tiles * 32,
        y = threadIdx.x / 32 + blockIdx.x / tiles * 8;
    output[static_cast<u64>(x) * side + y] = input[static_cast<u64>(y) * side + x];
}

// Tiles of 64 x 64 along diagonals, vectors of four; as Tombolo's `matrixtranspose`.
__global__ void transpose_tiled(const float4* input, float4* output, u32 side) {
    __shared__ float4 tile[64 * 16];
    u32 tiles = side / 64, row_vectors = side / 4, row_tile = blockIdx.x % tiles,
        column_tile = (blockIdx.x % tiles + blockIdx.x / tiles) % tiles;
    u32 x = threadIdx.x % 16, y = threadIdx.x / 16;
    float4 rows[4];
    for (u32 r = 0; r < 4; r++)
        rows[r] = input[static_cast<u64>(y * 4 + r + 64 * row_tile) * row_vectors + x + 16 * column_tile];
    for (u32 r = 0; r < 4; r++) tile[(y * 4 + r) * 16 + x] = rows[r];
    __syncthreads();
    float4 block[4];
    for (u32 r = 0; r < 4; r++) block[r] = tile[(x * 4 + r) * 16 + y];
    float4 columns[4] = {make_float4(block[0].x, block[1].x, block[2].x, block[3].x),
                         make_float4(block[0].y, block[1].y, block[2].y, block[3].y),
                         make_float4(block[0].z, block[1].z, block[2].z, block[3].z),
                         make_float4(block[0].w, block[1].w, block[2].w, block[3].w)};
    for (u32 r = 0; r < 4; r++)
        output[static_cast<u64>(y * 4 + r + 64 * column_tile) * row_vectors + x + 16 * row_tile] = columns[r];
}

// Sums through shuffles, one atomic for each warp.
__global__ void reduction(const float4* from, u32 vectors, float* sum) {
    float own = 0;
    for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < vectors; i += gridDim.x * blockDim.x) {
        float4 v = from[i];
        own += v.x + v.y + v.z + v.w;
    }
    for (u32 distance = 16; distance; distance /= 2) own += __shfl_down_sync(~0u, own, distance);
    if (threadIdx.x % 32 == 0) atomicAdd(sum, own);
}

// 256 bins: each CTA counts in its scratchpad, or all in memory.
template <bool SHARED>
__global__ void histogram(const u32* from, u32 count, u32* bins) {
    __shared__ u32 own[256];
    own[threadIdx.x] = 0;
    __syncthreads();
    u32* to = SHARED ? own : bins;
    for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
        atomicAdd(to + (from[i] & 255), 1);
    __syncthreads();
    if (SHARED) atomicAdd(bins + threadIdx.x, own[threadIdx.x]);
}

__global__ void csr(u32* offsets, u32* columns, u32 rows, u32 entries, bool band) {
    u32 r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r > rows) return;
    offsets[r] = r * entries;
    if (r == rows) return;
    for (u32 j = 0; j < entries; j++)
        columns[r * entries + j] = band ? (r + j) % rows : static_cast<u32>(mix(r * entries + j + 1) >> 20) % rows;
}

__global__ void spmv(const u32* offsets, const u32* columns, const float* values, const float* vector, float* output,
                     u32 rows) {
    u32 r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows) return;
    float sum = 0;
    for (u32 at = offsets[r]; at < offsets[r + 1]; at++) sum += values[at] * vector[columns[at]];
    output[r] = sum;
}

__global__ void gather_words(const u32* indices, const float* from, float* to, u32 count) {
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) to[i] = from[indices[i]];
}

// Four fields of structs of 128 bytes, each in a sector of its own.
__global__ void structs(const float* from, float* to, u32 count) {
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) to[i] = from[i * 32ull] + from[i * 32ull + 8] + from[i * 32ull + 16] + from[i * 32ull + 24];
}

void streaming_programs(Gpu& gpu) {
    float *a = reinterpret_cast<float*>(gpu.memory), *b = reinterpret_cast<float*>(gpu.memory + GIB),
          *c = reinterpret_cast<float*>(gpu.memory + 2 * GIB);
    launch(fill, 1024, 256, a, 3 * GIB / 4);
    for (u32 count = 1 << 20; count <= 1 << 26; count *= 2) {
        std::string variant = say("vector add;elements=%u;type=float;ctas=%u;threads=256;tombolo=vectoradd elements=%u",
                                  count, count / 256, count);
        program(gpu, variant, [&] { launch(vector_add, count / 256, 256, a, b, c, count); });
        expect("vector add", left(gpu, c + count - 3),
               static_cast<double>(left(gpu, a + count - 3)) + left(gpu, b + count - 3));
    }
    launch(fill_double, 1024, 256, reinterpret_cast<double*>(gpu.memory), 3 * GIB / 8);
    for (u32 count = 1 << 22; count <= 1 << 26; count *= 2) {
        double *x = reinterpret_cast<double*>(a), *y = reinterpret_cast<double*>(b), *z = reinterpret_cast<double*>(c);
        program(gpu,
                say("triad;elements=%u;type=double;ctas=%u;threads=1024;tombolo=triad elements=%u iterations=1", count,
                    count / 1024, count),
                [&] { launch(triad_double, count / 1024, 1024, x, y, z, count); });
        expect("triad", left(gpu, x + count - 3), left(gpu, y + count - 3) + 0.4 * left(gpu, z + count - 3));
    }
    for (u32 count : {1u << 22, 1u << 26}) {
        launch(fill, 1024, 256, a, GIB / 4);
        u32 ctas = gpu.sms * 4;
        CHECK(cudaMemset(b, 0, 4));
        program(gpu, say("reduction;elements=%u;type=float4;ctas=%u;threads=512", count, ctas),
                [&] { launch(reduction, ctas, 512, reinterpret_cast<float4*>(a), count / 4, b); });
        expect("reduction", std::round(left(gpu, b) / RUNS / count * 100) / 100, 0.5);
    }
    u32 count = 1 << 22;
    launch(fill, 1024, 256, a, GIB / 4);
    program(gpu, say("structs of 128 bytes;elements=%u;ctas=%u;threads=256", count, count / 256),
            [&] { launch(structs, count / 256, 256, a, b, count); });
}

void plane_programs(Gpu& gpu) {
    float *a = reinterpret_cast<float*>(gpu.memory), *b = reinterpret_cast<float*>(gpu.memory + GIB);
    launch(fill, 1024, 256, a, 2 * GIB / 4);
    for (u32 side : {2048u, 8192u}) {
        u64 at = 5 * side + 7;
        u32 ctas = side / 32 * (side / 8);
        program(gpu,
                say("stencil;points=5;side=%u;ctas=%u;threads=256;tombolo=stencil2d columns=%u rows=%u iterations=1",
                    side, ctas, side, side),
                [&] { launch(stencil_5, ctas, 256, a, b, side, side); });
        double around = static_cast<double>(number(at - side)) + number(at + side) + number(at - 1) + number(at + 1);
        expect("stencil", left(gpu, b + at), 0.25 * number(at) + 0.15 * around);
        program(gpu, say("transpose;kind=naive;side=%u;ctas=%u;threads=256", side, ctas),
                [&] { launch(transpose_naive, ctas, 256, a, b, side); });
        expect("naive transpose", left(gpu, b + at), number(7ull * side + 5));
        CHECK(cudaMemset(b, 0, GIB));
        u32 tiles = side / 64 * (side / 64);
        program(
            gpu,
            say("transpose;kind=tiled;side=%u;ctas=%u;threads=256;tombolo=matrixtranspose side=%u", side, tiles, side),
            [&] {
                launch(transpose_tiled, tiles, 256, reinterpret_cast<float4*>(a), reinterpret_cast<float4*>(b), side);
            });
        expect("tiled transpose", left(gpu, b + at), number(7ull * side + 5));
    }
}

void irregular_programs(Gpu& gpu) {
    u32 *indices = reinterpret_cast<u32*>(gpu.memory), *bins = reinterpret_cast<u32*>(gpu.memory + 3 * GIB),
        count = 1 << 26;
    float *from = reinterpret_cast<float*>(gpu.memory + GIB), *to = reinterpret_cast<float*>(gpu.memory + 2 * GIB);
    launch(fill, 1024, 256, from, GIB / 4);
    for (u32 table : {1u << 20, 1u << 26}) {
        launch(fill_random, 1024, 256, indices, count, table - 1);
        program(gpu, say("gather;elements=%u;from=%u words at random;ctas=%u;threads=256", count, table, count / 256),
                [&] { launch(gather_words, count / 256, 256, indices, from, to, count); });
        expect("gather", left(gpu, to + 9), number(left(gpu, indices + 9)));
    }
    for (bool shared : {true, false}) {
        u32 ctas = gpu.sms * 8;
        CHECK(cudaMemset(bins, 0, 1024));
        program(gpu,
                say("histogram;bins=256;atomics=%s;elements=%u;ctas=%u;threads=256", shared ? "shared" : "global",
                    count, ctas),
                [&] { launch(shared ? histogram<true> : histogram<false>, ctas, 256, indices, count, bins); });
        double sum = 0;
        for (u32 bin : gpu.fetch(bins, 256)) sum += bin;
        expect("histogram", sum, static_cast<double>(RUNS) * count);
    }
    constexpr u32 ROWS = 1 << 20, ENTRIES = 16;
    u32 *offsets = indices, *columns = indices + 2 * ROWS;
    float *values = from, *vector = from + ROWS * ENTRIES;
    for (bool band : {true, false}) {
        launch(csr, ROWS / 256 + 1, 256, offsets, columns, ROWS, ENTRIES, band);
        const char* tombolo = band ? ";tombolo=spmv rows=1048576 entries=16" : "";
        program(gpu,
                say("spmv;rows=%u;entries=%u;columns=%s;ctas=%u;threads=256%s", ROWS, ENTRIES, band ? "band" : "random",
                    ROWS / 256, tombolo),
                [&] { launch(spmv, ROWS / 256, 256, offsets, columns, values, vector, to, ROWS); });
        double sum = 0;
        for (u32 j = 0; j < ENTRIES; j++)
            sum += static_cast<double>(left(gpu, values + 9 * ENTRIES + j)) *
                   left(gpu, vector + left(gpu, columns + 9 * ENTRIES + j));
        expect("spmv", left(gpu, to + 9), sum);
    }
}

void programs(Gpu& gpu) {
    gpu.reserve(4 * GIB, 0);
    streaming_programs(gpu);
    plane_programs(gpu);
    irregular_programs(gpu);
}
