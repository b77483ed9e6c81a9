// SPDX-License-Identifier: MIT OR Apache-2.0
// Variants of programs of the suite whose times Tombolo is far from: the same work without one of its habits. Rows are
// `cause,BENCHMARK;size=SIZE;variant=VARIANT`.
#pragma once

#include "suite.cuh"

// Coefficients in registers, samples a line apart, or both as they are.
template <bool LOADS, int STEP>
__global__ void cause_fir(const float* input, float* output, const float* coefficients, u32 taps) {
    u32 t = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    for (u32 tap = 0; tap < taps; tap++) {
        float coefficient = LOADS ? coefficients[tap] : static_cast<float>(tap);
        sum += coefficient * input[t + STEP * tap];
    }
    output[t] = sum;
}

// Loops over rows and columns of the filter in place of divisions.
__global__ void cause_im2col(const float* input, float* columns, u32 side, u32 filter, u32 field) {
    u32 p = blockIdx.x * blockDim.x + threadIdx.x, places = field * field;
    if (p >= places) return;
    u32 row = p / field, column = p % field;
    for (u32 y = 0; y < filter; y++)
        for (u32 x = 0; x < filter; x++)
            columns[p + (y * filter + x) * places] = input[(row + y) * side + column + x];
}

// Reads and writes as the stencil's, without the tile.
__global__ void cause_copy(const float* from, float* to, u32 rows, u32 pitch) {
    u32 down = rows / 16, top = blockIdx.x % down * 16, left = blockIdx.x / down * 64, x = threadIdx.x;
    for (u32 row = 1; row <= 16; row++) {
        u32 at = (top + row) * pitch + left + x + 1;
        to[at] = from[at];
    }
}

template <typename F>
void cause_row(Gpu& gpu, const char* benchmark, const std::string& size, const char* variant, F work) {
    row("cause", say("%s;size=%s;variant=%s", benchmark, size.c_str(), variant),
        timed(gpu, SUITE_TIMES, Before::Wait, work), "us");
}

void causes(Gpu& gpu) {
    gpu.reserve(16 * GIB, 0);
    float *a = reinterpret_cast<float*>(gpu.memory), *b = reinterpret_cast<float*>(gpu.memory + 9 * GIB),
          *c = reinterpret_cast<float*>(gpu.memory + 5 * GIB);
    launch(fill, 1024, 256, a, 3 * GIB / 4);
    launch(fill, 1024, 256, b, 2 * GIB / 4);
    u32 samples = 1 << 24, taps = 32, ctas = samples / 256;
    std::string size = say("%u_taps%u", samples, taps);
    cause_row(gpu, "fir", size, "its own", [&] { launch(suite_fir, ctas, 256, a, c, b, b + 1024, taps); });
    cause_row(gpu, "fir", size, "no history", [&] { launch(cause_fir<true, 1>, ctas, 256, a, c, b, taps); });
    cause_row(gpu, "fir", size, "lines apart", [&] { launch(cause_fir<true, 32>, ctas, 256, a, c, b, taps); });
    cause_row(gpu, "fir", size, "no coefficients", [&] { launch(cause_fir<false, 1>, ctas, 256, a, c, b, taps); });
    cause_row(gpu, "fir", size, "lines apart; no coefficients",
              [&] { launch(cause_fir<false, 32>, ctas, 256, a, c, b, taps); });
    for (u32 side : {512u, 2048u}) {
        u32 filter = 7, field = side - filter + 1, ctas = (field * field + 255) / 256;
        size = say("N1_C1_%ux%u_k%ux%u", side, side, filter, filter);
        cause_row(gpu, "im2col", size, "its own", [&] { launch(suite_im2col, ctas, 256, a, c, side, filter, field); });
        cause_row(gpu, "im2col", size, "no divisions",
                  [&] { launch(cause_im2col, ctas, 256, a, c, side, filter, field); });
    }
    for (u32 side : {3072u, 6144u}) {
        u32 pitch = side + 32, ctas = side / 64 * (side / 16);
        size = say("%ux%u", side, side);
        auto both = [&](const char* tile, const char* copy, float* from, float* to) {
            cause_row(gpu, "stencil2d", size, tile, [&] { launch(suite_stencil, ctas, 64, from, to, side, pitch); });
            cause_row(gpu, "stencil2d", size, copy, [&] { launch(cause_copy, ctas, 64, from, to, side, pitch); });
        };
        both("rows of whole lines", "the same; copied alone", a, c);
        both("rows of whole lines that begin one", "the same; copied alone", a + 31, c + 31);
    }
    // Copies by what they touch: 25 MB are half of the L2.
    for (u32 mib = 8; mib <= 64; mib += 4) {
        u32 vectors = mib << 15;
        cause_row(gpu, "memcopy_d2d", say("%u MiB in all", mib), "its own", [&] {
            launch(suite_copy, vectors / 256, 256, reinterpret_cast<float4*>(a), reinterpret_cast<float4*>(c),
                   vectors);
        });
    }
}
