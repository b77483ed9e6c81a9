// SPDX-License-Identifier: MIT OR Apache-2.0
// Microbenchmarks of one NVIDIA GPU: what Tombolo's machines describe and its probes model. `probes` names the groups;
// `probes GROUP` measures one and prints rows of `probe,variant,value,unit,repeats,min,max`, `value` being the median.
// Lines that begin with # are comments. A variant has no comma.

#include <cstring>

#include "arithmetic.cuh"
#include "bandwidth.cuh"
#include "causes.cuh"
#include "gather.cuh"
#include "host.cuh"
#include "latency.cuh"
#include "launches.cuh"
#include "managed.cuh"
#include "measure.cuh"
#include "order.cuh"
#include "programs.cuh"
#include "suite.cuh"

struct Group {
    const char* name;
    void (*measure)(Gpu&);
};

const Group GROUPS[] = {
    {"latency", latency}, {"arithmetic", arithmetic}, {"gather", gather_probes}, {"bandwidth", bandwidth},
    {"order", order},     {"launches", launches},     {"host", host_link},       {"managed", managed},
    {"programs", programs}, {"suite", suite},         {"causes", causes},
};

void device() {
    cudaDeviceProp properties;
    CHECK(cudaGetDeviceProperties(&properties, 0));
    auto attribute = [](cudaDeviceAttr which) {
        int value = 0;
        CHECK(cudaDeviceGetAttribute(&value, which, 0));
        return value;
    };
    int driver = 0, runtime = 0;
    CHECK(cudaDriverGetVersion(&driver));
    CHECK(cudaRuntimeGetVersion(&runtime));
    printf("# device: %s, compute capability %d.%d, %d SMs\n", properties.name, properties.major, properties.minor,
           properties.multiProcessorCount);
    printf("# memory: %zu bytes, bus %d bits, ECC %s\n", properties.totalGlobalMem, properties.memoryBusWidth,
           properties.ECCEnabled ? "on" : "off");
    printf("# L2: %d bytes; scratchpad of an SM: %zu bytes\n", properties.l2CacheSize,
           properties.sharedMemPerMultiprocessor);
    printf("# clocks at most: SMs %d kHz, memory %d kHz\n", attribute(cudaDevAttrClockRate),
           attribute(cudaDevAttrMemoryClockRate));
    printf("# CUDA: driver %d, runtime %d, compiler %d.%d\n", driver, runtime, __CUDACC_VER_MAJOR__,
           __CUDACC_VER_MINOR__);
}

int main(int count, char** arguments) {
    if (count != 2) {
        for (const Group& group : GROUPS) printf("%s\n", group.name);
        return 0;
    }
    if (!strcmp(arguments[1], "device")) {
        device();
        return 0;
    }
    for (const Group& group : GROUPS) {
        if (strcmp(arguments[1], group.name)) continue;
        auto start = std::chrono::steady_clock::now();
        Gpu gpu;
        launch(busy, gpu.sms * 2, 1024, 200000000ull, reinterpret_cast<float*>(gpu.sink));
        clocks(gpu, group.name, "start");
        group.measure(gpu);
        clocks(gpu, group.name, "end");
        std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
        printf("# %s took %.1f s\n", group.name, passed.count());
        return 0;
    }
    fprintf(stderr, "%s: no group is called that\n", arguments[1]);
    return 2;
}
