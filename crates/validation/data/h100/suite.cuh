// SPDX-License-Identifier: MIT OR Apache-2.0
// The benchmarks of `tombolo validate` whose body is kernels alone, written from Tombolo's workloads of the same names:
// the same CTAs, threads and accesses. Rows are `suite,BENCHMARK;size=SIZE`, as `validate --measured` names both. A run
// follows the one before, whose lines the caches still have.
#pragma once

#include "programs.cuh"

__global__ void suite_relu(const float* input, float* output, u32 count) {
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) output[i] = input[i] > 0 ? input[i] : 0;
}

__global__ void suite_copy(const float4* from, float4* to, u32 vectors) {
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < vectors) to[i] = from[i];
}

__global__ void suite_fir(const float* input, float* output, const float* coefficients, const float* history,
                          u32 taps) {
    u32 t = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    for (u32 tap = 0; tap < taps; tap++) {
        float sample = t >= tap ? input[t - tap] : history[taps - tap + t];
        sum += coefficients[tap] * sample;
    }
    output[t] = sum;
}

__global__ void suite_convolution(const u32* input, const float* mask, int* output, u32 side, u32 width) {
    u32 t = blockIdx.x * blockDim.x + threadIdx.x, x = t % side, y = t / side, padded = side + width - 1;
    float sum = 0;
    for (u32 m = 0; m < width; m++)
        for (u32 n = 0; n < width; n++)
            sum += static_cast<float>(input[(y + m) * padded + x + n]) * mask[m * width + n];
    output[t] = static_cast<int>(sum + 0.5f);
}

__global__ void suite_kmeans(const float* features, const float* centroids, int* membership, u32 points,
                             u32 dimensions, u32 clusters) {
    u32 p = blockIdx.x * blockDim.x + threadIdx.x;
    if (p >= points) return;
    float least = 3.4e38f;
    int nearest = 0;
    for (u32 cluster = 0; cluster < clusters; cluster++) {
        float distance = 0;
        for (u32 feature = 0; feature < dimensions; feature++) {
            float apart = features[p + feature * points] - centroids[cluster * dimensions + feature];
            distance += apart * apart;
        }
        if (distance < least) least = distance, nearest = static_cast<int>(cluster);
    }
    membership[p] = nearest;
}

// A row or a column of the matrix for each thread. The result is stored after every term: it may alias what is read.
template <bool CLEARS>
__global__ void suite_products(const float* matrix, const float* by, float* to, u32 results, u32 terms, u32 along,
                               u32 across) {
    u32 t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= results) return;
    if (CLEARS) to[t] = 0;
    for (u32 i = 0; i < terms; i++) to[t] += matrix[t * across + i * along] * by[i];
}

// Nine points. A CTA of one column a thread loads 18 rows of 66 columns and owns the 16 x 64 inside.
__global__ void suite_stencil(const float* from, float* to, u32 rows, u32 pitch) {
    constexpr u32 OWNED = 16, COLUMNS = 64, HEIGHT = OWNED + 2, WIDTH = COLUMNS + 2;
    __shared__ float tile[HEIGHT * WIDTH];
    u32 down = rows / OWNED, top = blockIdx.x % down * OWNED, left = blockIdx.x / down * COLUMNS, x = threadIdx.x;
    for (u32 row = 0; row < HEIGHT; row++) tile[row * WIDTH + x + 1] = from[(top + row) * pitch + left + x + 1];
    if (x == 0)
        for (u32 row = 0; row < HEIGHT; row++) tile[row * WIDTH] = from[(top + row) * pitch + left];
    if (x == COLUMNS - 1)
        for (u32 row = 0; row < HEIGHT; row++) tile[row * WIDTH + x + 2] = from[(top + row) * pitch + left + x + 2];
    __syncthreads();
    for (u32 row = 1; row <= OWNED; row++) {
        const float* at = tile + row * WIDTH + x + 1;
        float cardinal = at[-static_cast<int>(WIDTH)] + at[WIDTH] + at[-1] + at[1];
        float diagonal = at[-static_cast<int>(WIDTH) - 1] + at[-static_cast<int>(WIDTH) + 1] + at[WIDTH - 1] +
                         at[WIDTH + 1];
        to[(top + row) * pitch + left + x + 1] = at[0] * 0.25f + cardinal * 0.15f + diagonal * 0.05f;
    }
}

__device__ inline float2 suite_times(float2 a, float2 b) {
    return make_float2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}

__device__ inline void suite_sum(float2& a, float2& b) {  // Their sum and difference.
    float2 difference = make_float2(a.x - b.x, a.y - b.y);
    a = make_float2(a.x + b.x, a.y + b.y);
    b = difference;
}

// Eight points, in three stages; results in natural order.
__device__ inline void suite_butterfly(float2 (&v)[8]) {
    const float HALF = 0.70710678f;
#pragma unroll
    for (int i = 0; i < 4; i++) suite_sum(v[i], v[i + 4]);
    v[5] = suite_times(v[5], make_float2(HALF, -HALF));
    v[6] = make_float2(v[6].y, -v[6].x);
    v[7] = suite_times(v[7], make_float2(-HALF, -HALF));
#pragma unroll
    for (int half = 0; half < 8; half += 4) {
        suite_sum(v[half], v[half + 2]);
        suite_sum(v[half + 1], v[half + 3]);
        v[half + 3] = make_float2(v[half + 3].y, -v[half + 3].x);
        suite_sum(v[half], v[half + 1]);
        suite_sum(v[half + 2], v[half + 3]);
    }
    float2 natural[8] = {v[0], v[4], v[2], v[6], v[1], v[5], v[3], v[7]};
#pragma unroll
    for (int k = 0; k < 8; k++) v[k] = natural[k];
}

__device__ inline void suite_twiddle(float2 (&v)[8], double turns) {
#pragma unroll
    for (int k = 1; k < 8; k++) {
        float sine, cosine;
        sincosf(static_cast<float>(-6.283185307179586 * k * turns), &sine, &cosine);
        v[k] = suite_times(v[k], make_float2(cosine, sine));
    }
}

// Words of the scratchpad are those of (high, low, k) by their factors; real parts, then imaginary parts.
__device__ inline void suite_exchange(float2 (&v)[8], float* words, int3 write, int3 read, bool closes) {
    int high = threadIdx.x / 8, low = threadIdx.x % 8;
#pragma unroll
    for (int part = 0; part < 2; part++) {
#pragma unroll
        for (int k = 0; k < 8; k++) words[high * write.x + low * write.y + k * write.z] = part ? v[k].y : v[k].x;
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 8; k++) (part ? v[k].y : v[k].x) = words[high * read.x + low * read.y + k * read.z];
        if (part == 0 || closes) __syncthreads();
    }
}

// Transforms of 512 points, one for each CTA of 64 threads, in place.
__global__ void suite_fft(float2* values) {
    __shared__ float words[576];
    float2* own = values + blockIdx.x * 512ull + threadIdx.x;
    float2 v[8];
#pragma unroll
    for (int k = 0; k < 8; k++) v[k] = own[64 * k];
    suite_butterfly(v);
    suite_twiddle(v, threadIdx.x / 512.0);
    suite_exchange(v, words, make_int3(8, 1, 66), make_int3(1, 66, 8), true);
    suite_butterfly(v);
    suite_twiddle(v, threadIdx.x / 8 / 64.0);
    suite_exchange(v, words, make_int3(8, 1, 72), make_int3(72, 1, 8), false);
    suite_butterfly(v);
#pragma unroll
    for (int k = 0; k < 8; k++) own[64 * k] = v[k];
}

__global__ void suite_im2col(const float* input, float* columns, u32 side, u32 filter, u32 field) {
    u32 p = blockIdx.x * blockDim.x + threadIdx.x, places = field * field;
    if (p >= places) return;
    u32 row = p / field, column = p % field;
    for (u32 q = 0; q < filter * filter; q++)
        columns[p + q * places] = input[(row + q / filter) * side + column + q % filter];
}

// A tile of 16 columns of the product of three channels of weights with the unfolded image.
__global__ void suite_layer(const float* weights, const float* bias, const float* columns, float* output, u32 terms,
                            u32 places) {
    constexpr u32 TILE = 16, CHANNELS = 3;
    __shared__ float a[TILE * TILE], b[TILE * TILE];
    u32 first = blockIdx.x * TILE, x = threadIdx.x % TILE, y = threadIdx.x / TILE;
    if (x + first < places) output[y * places + x + first] = 0;
    float sum = 0;
    for (u32 base = 0; base < terms; base += TILE) {
        a[y * TILE + x] = y < CHANNELS && x < terms - base ? weights[y * terms + x + base] : 0;
        b[y * TILE + x] = y < terms - base && x < places - first ? columns[(y + base) * places + x + first] : 0;
        __syncthreads();
        for (u32 k = 0; k < min(TILE, terms - base); k++) sum += a[y * TILE + k] * b[x + k * TILE];
        __syncthreads();
    }
    if (x + first < places && y < CHANNELS) output[y * places + x + first] = sum + bias[y];
}

constexpr int SUITE_TIMES = 21;

template <typename F>
void suite_row(Gpu& gpu, const char* benchmark, const std::string& size, F work) {
    row("suite", say("%s;size=%s", benchmark, size.c_str()), timed(gpu, SUITE_TIMES, Before::Wait, work), "us");
}

void suite_streams(Gpu& gpu, float* a, float* b, float* c) {
    for (u32 count = 1 << 18; count <= 1 << 28; count *= 4) {
        suite_row(gpu, "vectoradd", say("%u", count),
                  [&] { launch(vector_add, count / 256, 256, a, b, c, count); });
        suite_row(gpu, "relu", say("%u", count), [&] { launch(suite_relu, count / 256, 256, a, c, count); });
        expect("relu", left(gpu, c + count - 3), left(gpu, a + count - 3));
    }
    for (u32 mib = 1; mib <= 1024; mib *= 4) {
        u32 vectors = mib << 16;
        suite_row(gpu, "memcopy_d2d", say("%uMB", mib), [&] {
            launch(suite_copy, vectors / 256, 256, reinterpret_cast<float4*>(a), reinterpret_cast<float4*>(c),
                   vectors);
        });
        expect("copy", left(gpu, c + 4 * vectors - 3), left(gpu, a + 4 * vectors - 3));
    }
    for (u32 samples = 1 << 16; samples <= 1 << 26; samples *= 4)
        for (u32 taps : {8u, 32u}) {
            suite_row(gpu, "fir", say("%u_taps%u", samples, taps),
                      [&] { launch(suite_fir, samples / 256, 256, a, c, b, b + 1024, taps); });
            double sum = 0;
            for (u32 tap = 0; tap < taps; tap++)
                sum += static_cast<double>(left(gpu, b + tap)) * left(gpu, a + 9999 - tap);
            expect("fir", left(gpu, c + 9999), sum);
        }
    for (u32 elements = 1 << 15; elements <= 1 << 27; elements *= 4)
        suite_row(gpu, "fft1D_512", say("%u_elements", elements),
                  [&] { launch(suite_fft, elements / 512, 64, reinterpret_cast<float2*>(c)); });
    // Of an impulse at point 1: turns of the unit circle.
    CHECK(cudaMemset(c, 0, 4096));
    float one = 1;
    CHECK(cudaMemcpy(c + 2, &one, 4, cudaMemcpyHostToDevice));
    launch(suite_fft, 1, 64, reinterpret_cast<float2*>(c));
    for (u32 k : {3u, 100u, 300u}) {
        expect("fft", left(gpu, c + 2 * k), std::cos(2 * 3.141592653589793 * k / 512));
        expect("fft", left(gpu, c + 2 * k + 1), -std::sin(2 * 3.141592653589793 * k / 512));
    }
}

void suite_planes(Gpu& gpu, float* a, float* b, float* c) {
    u32* pixels = reinterpret_cast<u32*>(gpu.memory + 3 * GIB);
    launch(fill_random, 1024, 256, pixels, 1 << 27, 255);
    for (u32 side = 256; side <= 8192; side *= 2)
        for (u32 width : {3u, 7u}) {
            int* output = reinterpret_cast<int*>(c);
            suite_row(gpu, "simpleconvolution", say("%ux%u_mask%u", side, side, width),
                      [&] { launch(suite_convolution, side * side / 64, 64, pixels, b, output, side, width); });
            double sum = 0.5;
            for (u32 m = 0; m < width * width; m++)
                sum += static_cast<double>(left(gpu, b + m)) *
                       left(gpu, pixels + (5 + m / width) * (side + width - 1) + 9 + m % width);
            expect("convolution", left(gpu, output + 5 * side + 9), std::floor(sum));
        }
    for (u32 side = 768; side <= 24576; side *= 2) {
        u32 tiles = side / 64 * (side / 64);
        suite_row(gpu, "matrixtranspose", say("%ux%u", side, side), [&] {
            launch(transpose_tiled, tiles, 256, reinterpret_cast<float4*>(a), reinterpret_cast<float4*>(c), side);
        });
        expect("transpose", left(gpu, c + 5 * side + 7), left(gpu, a + 7 * side + 5));
        u32 pitch = side + 16, ctas = side / 64 * (side / 16);
        suite_row(gpu, "stencil2d", say("%ux%u", side, side),
                  [&] { launch(suite_stencil, ctas, 64, a, c, side, pitch); });
        const float* at = a + 40 * pitch + 70;
        auto near = [&](int down, int right) { return static_cast<double>(left(gpu, at + down * int(pitch) + right)); };
        expect("stencil", left(gpu, c + 40 * pitch + 70),
               0.25 * near(0, 0) + 0.15 * (near(-1, 0) + near(1, 0) + near(0, -1) + near(0, 1)) +
                   0.05 * (near(-1, -1) + near(-1, 1) + near(1, -1) + near(1, 1)));
    }
    for (u32 side = 128; side <= 2048; side *= 2)
        for (u32 filter : {3u, 7u}) {
            u32 field = side - filter + 1, places = field * field, ctas = (places + 255) / 256;
            auto unfold = [&] { launch(suite_im2col, ctas, 256, a, c, side, filter, field); };
            suite_row(gpu, "im2col", say("N1_C1_%ux%u_k%ux%u", side, side, filter, filter), unfold);
            expect("im2col", left(gpu, c + places * 5 + 3 * field + 2),
                   left(gpu, a + (3 + 5 / filter) * side + 2 + 5 % filter));
            float* output = reinterpret_cast<float*>(gpu.memory + 8 * GIB);
            u32 terms = filter * filter;
            suite_row(gpu, "conv2d", say("N1_C1_%ux%u_k%ux%u_OC3", side, side, filter, filter), [&] {
                unfold();
                launch(suite_layer, (places + 15) / 16, 256, b, b + 4096, c, output, terms, places);
            });
            double sum = left(gpu, b + 4096 + 2);
            for (u32 k = 0; k < terms; k++)
                sum += static_cast<double>(left(gpu, b + 2 * terms + k)) * left(gpu, c + k * places + 33);
            expect("conv2d", left(gpu, output + 2 * places + 33), sum);
        }
}

void suite_rows(Gpu& gpu, float* a, float* b, float* c) {
    for (u32 points = 1 << 14; points <= 1 << 22; points *= 4)
        for (u32 dimensions : {8u, 32u}) {
            int* membership = reinterpret_cast<int*>(c);
            suite_row(gpu, "kmeans", say("pts%u_feat%u_clus5", points, dimensions),
                      [&] { launch(suite_kmeans, points / 256, 256, a, b, membership, points, dimensions, 5u); });
            double least = 1e30, nearest = 0;
            for (u32 cluster = 0; cluster < 5; cluster++) {
                double distance = 0;
                for (u32 f = 0; f < dimensions; f++) {
                    double apart = left(gpu, a + 77 + f * points) - left(gpu, b + cluster * dimensions + f);
                    distance += apart * apart;
                }
                if (distance < least) least = distance, nearest = cluster;
            }
            expect("kmeans", left(gpu, membership + 77), nearest);
        }
    for (u32 side = 384; side <= 12288; side *= 2) {
        u32 ctas = (side + 255) / 256;
        float *x = b, *product = c, *y = c + 65536;
        suite_row(gpu, "atax", say("%ux%u", side, side), [&] {
            CHECK(cudaMemsetAsync(product, 0, 4 * side));
            CHECK(cudaMemsetAsync(y, 0, 4 * side));
            launch(suite_products<false>, ctas, 256, a, x, product, side, side, 1u, side);
            launch(suite_products<false>, ctas, 256, a, product, y, side, side, side, 1u);
        });
        suite_row(gpu, "bicg", say("%ux%u", side, side), [&] {
            launch(suite_products<true>, ctas, 256, a, x, product, side, side, 1u, side);
            launch(suite_products<true>, ctas, 256, a, x + 65536, y, side, side, side, 1u);
        });
        std::vector<float> row = gpu.fetch(a + 9 * side, side), by = gpu.fetch(x, side);
        double sum = 0;
        for (u32 i = 0; i < side; i++) sum += static_cast<double>(row[i]) * by[i];
        expect("bicg", std::round(left(gpu, product + 9) / sum * 1e4) / 1e4, 1);
    }
    u32 *offsets = reinterpret_cast<u32*>(gpu.memory + 3 * GIB),
        *columns = reinterpret_cast<u32*>(gpu.memory + 4 * GIB);
    for (u32 rows = 1 << 14; rows <= 1 << 22; rows *= 4)
        for (u32 entries : {4u, 16u}) {
            launch(csr, rows / 256 + 1, 256, offsets, columns, rows, entries, true);
            suite_row(gpu, "spmv_csr_scalar", say("%ux%u_nnz%u", rows, rows, rows * entries),
                      [&] { launch(spmv, rows / 256, 256, offsets, columns, a, b, c, rows); });
            double sum = 0;
            for (u32 j = 0; j < entries; j++)
                sum += static_cast<double>(left(gpu, a + 9 * entries + j)) * left(gpu, b + 9 + j);
            expect("spmv", left(gpu, c + 9), sum);
        }
}

void suite(Gpu& gpu) {
    gpu.reserve(16 * GIB, 0);
    float *a = reinterpret_cast<float*>(gpu.memory), *b = reinterpret_cast<float*>(gpu.memory + 9 * GIB),
          *c = reinterpret_cast<float*>(gpu.memory + 5 * GIB);
    launch(fill, 1024, 256, a, 3 * GIB / 4);
    launch(fill, 1024, 256, b, 2 * GIB / 4);
    launch(fill, 1024, 256, c, 3 * GIB / 4);
    suite_streams(gpu, a, b, c);
    launch(fill, 1024, 256, c, 3 * GIB / 4);
    suite_planes(gpu, a, b, c);
    suite_rows(gpu, a, b, c);
}
