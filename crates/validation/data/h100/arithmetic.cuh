// SPDX-License-Identifier: MIT OR Apache-2.0
// Chains of arithmetic instructions by 1 to 32 warps of one SM: a chain's latency, and the rate of many.
#pragma once

#include "measure.cuh"

// Each operation: its type, and one instruction whose result the next one needs.
#define OPERATION(NAME, TYPE, TEXT, CONSTRAINT)                                    \
    struct NAME {                                                                  \
        typedef TYPE T;                                                            \
        static constexpr const char* name = #NAME;                                 \
        static __device__ T start() { return static_cast<T>(threadIdx.x + 1); }    \
        static __device__ void step(T& x, T y, T z) {                              \
            asm volatile(TEXT : "+" CONSTRAINT(x) : CONSTRAINT(y), CONSTRAINT(z)); \
        }                                                                          \
    };

namespace op {
OPERATION(fadd, float, "add.rn.f32 %0, %0, %1;", "f")
OPERATION(fmul, float, "mul.rn.f32 %0, %0, %1;", "f")
OPERATION(ffma, float, "fma.rn.f32 %0, %0, %1, %2;", "f")
OPERATION(iadd3, u32, "{ .reg .u32 t; add.u32 t, %0, %1; add.u32 %0, t, %2; }",
          "r")  // One instruction of three inputs.
OPERATION(imad, u32, "mad.lo.u32 %0, %0, %1, %2;", "r")
OPERATION(shift, u32, "shf.l.wrap.b32 %0, %0, %1, %2;", "r")
OPERATION(popc, u32, "popc.b32 %0, %0;", "r")
OPERATION(dadd, double, "add.rn.f64 %0, %0, %1;", "d")
OPERATION(dfma, double, "fma.rn.f64 %0, %0, %1, %2;", "d")
OPERATION(mufu_ex2, float, "ex2.approx.ftz.f32 %0, %0;", "f")
OPERATION(mufu_rsq, float, "rsqrt.approx.ftz.f32 %0, %0;", "f")
OPERATION(shuffle, u32, "shfl.sync.bfly.b32 %0, %0, %1, 31, 0xffffffff;", "r")

// A matrix product of half precision with sums in single: 16 x 8 x 16.
struct hmma_16816 {
    typedef float4 T;
    static constexpr const char* name = "hmma_16816";
    static __device__ T start() { return make_float4(threadIdx.x, 1, 2, 3); }
    static __device__ void step(T& x, T y, T z) {
        asm volatile(
            "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
            : "+f"(x.x), "+f"(x.y), "+f"(x.z), "+f"(x.w)
            : "r"(__float_as_uint(y.x)), "r"(__float_as_uint(y.y)), "r"(__float_as_uint(y.z)),
              "r"(__float_as_uint(y.w)), "r"(__float_as_uint(z.x)), "r"(__float_as_uint(z.y)));
    }
};

}  // namespace op

// CHAINS chains side by side, of UNROLLED instructions in a round together.
template <typename O, int CHAINS>
__global__ void __launch_bounds__(1024)
    chain(int rounds, const typename O::T* inputs, Span* spans, typename O::T* sink) {
    constexpr int UNROLLED = 128;
    typename O::T x[CHAINS], y = inputs[0], z = inputs[1];
    for (int i = 0; i < CHAINS; i++) x[i] = O::start();
    __syncthreads();
    u64 from = now();
    for (int round = 0; round < rounds; round++) {
#pragma unroll
        for (int k = 0; k < UNROLLED / CHAINS; k++) {
#pragma unroll
            for (int i = 0; i < CHAINS; i++) O::step(x[i], y, z);
        }
    }
    for (int i = 0; i < CHAINS; i++) sink[threadIdx.x + i * blockDim.x] = x[i];
    u64 to = now();
    if (threadIdx.x % 32 == 0) spans[threadIdx.x / 32] = {from, to};
}

template <typename O, int CHAINS>
void chains(Gpu& gpu) {
    typedef typename O::T T;
    constexpr int ROUNDS = 64;
    T* inputs = reinterpret_cast<T*>(gpu.words);
    T* sink = reinterpret_cast<T*>(gpu.words) + 8;
    for (u32 warps = 1; warps <= 32; warps *= 2) {
        Values cycles = repeat(5, [&] {
            launch(chain<O, CHAINS>, 1, warps * 32, ROUNDS, inputs, gpu.spans, sink);
            return gpu.cta_cycles(1, warps)[0] / (128.0 * ROUNDS * warps);
        });
        row("arithmetic", say("op=%s;chains=%d;warps=%u", O::name, CHAINS, warps), cycles, "cycles/instruction/SM");
    }
}

template <typename O>
void operation(Gpu& gpu) {
    chains<O, 1>(gpu);
    chains<O, 4>(gpu);
}

void arithmetic(Gpu& gpu) {
    CHECK(cudaMemset(gpu.words, 0x3f, MIB));  // Numbers of every type that are neither 0 nor 1.
    operation<op::fadd>(gpu);
    operation<op::fmul>(gpu);
    operation<op::ffma>(gpu);
    operation<op::iadd3>(gpu);
    operation<op::imad>(gpu);
    operation<op::shift>(gpu);
    operation<op::popc>(gpu);
    operation<op::dadd>(gpu);
    operation<op::dfma>(gpu);
    operation<op::mufu_ex2>(gpu);
    operation<op::mufu_rsq>(gpu);
    operation<op::shuffle>(gpu);
    operation<op::hmma_16816>(gpu);
}
