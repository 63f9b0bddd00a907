// kernel<<<grid, block, bytes, stream>>>(…): what the rewritten call does, and the memory that a block shares.
#pragma once
#pragma GCC system_header

#include <pthread.h>
#include <stdlib.h>

#include "scheduler.h"

typedef struct CUstream_st* cudaStream_t;

namespace cuda_on_cpu {

constexpr size_t default_shared_bytes = 48 * 1024, max_shared_bytes = 227 * 1024, canary_bytes = 4096;
constexpr unsigned char canary = 0xA5;

alignas(128) static unsigned char dynamic_shared[max_shared_bytes + canary_bytes];
static size_t allowed_shared_bytes = default_shared_bytes;
static unsigned long launches = 0;
static pthread_mutex_t launching = PTHREAD_MUTEX_INITIALIZER;  // ctypes lets go of Python's lock

struct Config {
    dim3 grid, block;
    size_t shared;
    int line;
    Config(dim3 grid, dim3 block, size_t shared = 0, cudaStream_t = nullptr, int line = __builtin_LINE())
        : grid(grid), block(block), shared(shared), line(line) {}

    bool accepted() const {
        const unsigned long long threads = 1ull * block.x * block.y * block.z;
        const auto refuse = [&](cudaError_t code, const char* name, const char* reason) {
            fail(code, false,
                 "The launch on line %d was refused (%s): %s. It asked for a grid of (%u, %u, %u) blocks of (%u, %u, %u) "
                 "threads and %zu bytes of dynamic shared memory.",
                 line, name, reason, grid.x, grid.y, grid.z, block.x, block.y, block.z, shared);
            return false;
        };
        const auto invalid = [&](const char* reason) {
            return refuse(cudaErrorInvalidConfiguration, "invalid configuration argument", reason);
        };
        if (!grid.x || !grid.y || !grid.z) return invalid("a grid must have at least one block");
        if (!threads) return invalid("a block must have at least one thread");
        if (block.x > 1024 || block.y > 1024 || threads > max_threads)
            return invalid("a block may have at most 1024 threads");
        if (block.z > 64) return invalid("a block may be at most 64 threads deep in z");
        if (grid.x > 0x7fffffffu || grid.y > 65535 || grid.z > 65535)
            return invalid("a grid may have at most 2147483647 × 65535 × 65535 blocks");
        if (shared > allowed_shared_bytes)
            return refuse(cudaErrorInvalidValue, "invalid argument", "that is more shared memory than a block may have");
        return true;
    }
};

// CUDA leaves shared memory undefined.
template <class... T>
static void poison(T&... objects) {
    (forget(const_cast<void*>(static_cast<const volatile void*>(&objects)), sizeof objects), ...);
}

static inline bool first_in_block(unsigned long& seen) {
    if (seen == block.serial) return false;
    seen = block.serial;
    return true;
}

static bool wrote_past(size_t shared) {
    for (size_t i = shared; i < shared + canary_bytes; ++i)
        if (dynamic_shared[i] != canary) return true;
    return false;
}

static void run(const Config& config, Body body) {
    gridDim = config.grid;
    blockDim = config.block;
    const int threads = config.block.x * config.block.y * config.block.z;
    memset(dynamic_shared + config.shared, canary, canary_bytes);
    // Every second block runs its threads from the last to the first: a result that hangs on their order shows.
    bool backwards = launches++ & 1;
    for (blockIdx.z = 0; blockIdx.z < gridDim.z; ++blockIdx.z)
        for (blockIdx.y = 0; blockIdx.y < gridDim.y; ++blockIdx.y)
            for (blockIdx.x = 0; blockIdx.x < gridDim.x; ++blockIdx.x, backwards = !backwards) {
                forget(dynamic_shared, config.shared);
                if (!run_block(body, threads, backwards)) return;
                if (!wrote_past(config.shared)) continue;
                return fail(cudaErrorLaunchFailure, true,
                            "The kernel launched on line %d wrote past its dynamic shared memory: the launch gives it %zu bytes, "
                            "as the third value between <<< and >>>.",
                            config.line, config.shared);
            }
}

// Ends a kernel that needs what is not simulated: the sentence of lacks.py, which also reads it.
[[maybe_unused]] static void lacks(const char* what, int line = __builtin_LINE()) {
    fail(cudaErrorLaunchFailure, true,
         "The simulator has no %s (line %d); on a GPU it will be judged; this says nothing about your work.", what, line);
    stop();
}

template <class Kernel, class... Arguments>
static void launch(Kernel kernel, Config config, Arguments... arguments) {
    if (block.running >= 0) return lacks("launches from a kernel", config.line);
    pthread_mutex_lock(&launching);
    if (!errors.broken && config.accepted()) {
        auto call = [&] { kernel(arguments...); };
        run(config, {&call, [](void* object) { (*static_cast<decltype(call)*>(object))(); }});
        fflush(stdout);
    }
    pthread_mutex_unlock(&launching);
}

static void trap(const char* what, int line) {
    if (block.running < 0) {
        fprintf(stderr, "%s, line %d\n", what, line);
        abort();
    }
    fail(cudaErrorLaunchFailure, true, "Thread (%u, %u, %u) of block (%u, %u, %u) stopped the kernel: %s, line %d.", threadIdx.x,
         threadIdx.y, threadIdx.z, blockIdx.x, blockIdx.y, blockIdx.z, what, line);
    stop();
}

}  // namespace cuda_on_cpu

[[maybe_unused]] static void __trap(int line = __builtin_LINE()) { cuda_on_cpu::trap("__trap()", line); }
