// kernel<<<grid, block, bytes, stream>>>(…): what the rewritten call does, and the memory that a block shares.
#pragma once
#pragma GCC system_header

#include <pthread.h>
#include <stdlib.h>

#include <utility>

#include "accesses.h"
#include "heap.h"
#include "joins.h"
#include "scheduler.h"

namespace cuda_on_cpu {

constexpr size_t default_shared_bytes = 48 * 1024, max_shared_bytes = 227 * 1024, canary_bytes = 4096;
constexpr unsigned char canary = 0xA5;

alignas(128) static unsigned char dynamic_shared[max_shared_bytes + canary_bytes];
CUDA_ON_CPU_STATE size_t allowed_shared_bytes = default_shared_bytes;
CUDA_ON_CPU_STATE unsigned long launches = 0;
CUDA_ON_CPU_STATE pthread_mutex_t launching = PTHREAD_MUTEX_INITIALIZER;  // ctypes lets go of Python's lock

struct Config {
    dim3 grid, block;
    size_t shared;
    int line;
    cudaStream_t stream;
    Config(dim3 grid, dim3 block, size_t shared = 0, cudaStream_t stream = nullptr, int line = __builtin_LINE())
        : grid(grid), block(block), shared(shared), line(line), stream(stream) {}

    bool accepted() const {
        const unsigned long long threads = 1ull * block.x * block.y * block.z;
        const cudaError_t invalid = cudaErrorInvalidConfiguration;
        errors.reason[0] = 0;
        if (!grid.x || !grid.y || !grid.z) return refuse(invalid, "a grid must have at least one block");
        if (!threads) return refuse(invalid, "a block must have at least one thread");
        if (threads > max_threads)
            return refuse(invalid, "a block has %s threads; 1,024 are the limit", threads);
        if (block.z > 64) return refuse(invalid, "a block is %s threads deep in z; 64 are the limit", block.z);
        if (grid.x > 0x7fffffffu) return refuse(invalid, "the grid has %s blocks in x; 2,147,483,647 are the limit", grid.x);
        if (grid.y > 65535) return refuse(invalid, "the grid has %s blocks in y; 65,535 are the limit", grid.y);
        if (grid.z > 65535) return refuse(invalid, "the grid has %s blocks in z; 65,535 are the limit", grid.z);
        if (shared > max_shared_bytes)
            return refuse(cudaErrorInvalidValue, "a block asks for %s bytes of dynamic shared memory; 232,448 are the limit", shared);
        if (shared > allowed_shared_bytes)
            return refuse(cudaErrorInvalidValue,
                          "a block asks for %s bytes of dynamic shared memory; 49,152 are the limit without cudaFuncSetAttribute", shared);
        return true;
    }

    // Always false. `reason` has at most one `%s`, for the number.
    bool refuse(cudaError_t code, const char* reason, unsigned long long number = 0) const {
        char text[40];
        const int digits = snprintf(text, sizeof text, "%llu", number);
        char grouped[60];
        int to = 0;
        for (int i = 0; i <= digits; ++i) {
            if (i && i < digits && (digits - i) % 3 == 0) grouped[to++] = ',';
            grouped[to++] = text[i];
        }
        snprintf(errors.reason, sizeof errors.reason, reason, grouped);
        fail(code, false,
             "The launch on line %d was refused (%s): %s. It asked for a grid of (%u, %u, %u) blocks of (%u, %u, %u) "
             "threads and %zu bytes of dynamic shared memory.",
             line, code == cudaErrorInvalidValue ? "invalid argument" : "invalid configuration argument", errors.reason, grid.x,
             grid.y, grid.z, block.x, block.y, block.z, shared);
        return false;
    }
};

CUDA_ON_CPU_STATE const Config* launched = nullptr;  // the launch that runs

// Called first in each kernel.
CUDA_ON_CPU_UNSEEN static inline void entered(const char* kernel) { traffic.kernel = kernel; }

// `__launch_bounds__(most, …)` of the kernel that runs: a launch with larger blocks is refused.
template <class... Others>
CUDA_ON_CPU_UNSEEN static inline void keep_bounds(unsigned most, Others...) {
    const unsigned threads = blockDim.x * blockDim.y * blockDim.z;
    if (threads <= most) return;
    char text[160];
    snprintf(text, sizeof text, "a block has %u threads; `__launch_bounds__` of the kernel allows %u", threads, most);
    launched->refuse(cudaErrorInvalidValue, text);
    stop();
}

CUDA_ON_CPU_UNSEEN static inline bool first_in_block(unsigned long& seen) {
    if (seen == block.serial) return false;
    seen = block.serial;
    return true;
}

constexpr size_t shared_guard_bytes = 4096;  // around each declaration of shared memory

// A variable that the block uses for the first time: CUDA leaves it undefined.
template <class T>
CUDA_ON_CPU_UNSEEN static void shared(T& object, const char* name, int line = __builtin_LINE()) {
    Region region = region_of(object, name, __PRETTY_FUNCTION__, line, Space::shared);
    region.before = region.after = shared_guard_bytes;
    if (!region_at(region.begin)) add_region(region);
    forget(const_cast<void*>(static_cast<const volatile void*>(&object)), sizeof object);
    block.static_shared += sizeof object;
    if (block.static_shared <= default_shared_bytes) return;
    fail(cudaErrorLaunchFailure, true, "The kernel declares %zu bytes of `__shared__` memory; 49,152 are the limit. Beyond it, "
         "shared memory must be dynamic: `extern __shared__`.", block.static_shared);
    stop();
}

// A variable that is shared although it is declared outside of a kernel. Every launch gives each block one, used or not.
CUDA_ON_CPU_STATE struct FileShared {
    void (*renew)();
} file_shared[32];
CUDA_ON_CPU_STATE int file_shared_count = 0;
struct SharedVariable {
    CUDA_ON_CPU_UNSEEN explicit SharedVariable(void (*renew)()) {
        if (file_shared_count < 32) file_shared[file_shared_count++] = {renew};
    }
};

// The part of the launching thread's stack that is in use, which holds the arguments. What lies further down is not
// asked about: without a limit on the stack, the C library counts all memory down to the last mapping as its own.
constexpr uintptr_t deepest_bytes = 256 * 1024;  // of the scheduler's own calls below the launch
CUDA_ON_CPU_UNSEEN static void note_stack() {
    static pthread_t noted;
    static uintptr_t end = 0;
    if (!end || !pthread_equal(noted, pthread_self())) {
        pthread_attr_t attributes;
        if (pthread_getattr_np(pthread_self(), &attributes)) return;
        void* low;
        size_t bytes;
        if (!pthread_attr_getstack(&attributes, &low, &bytes)) {
            end = reinterpret_cast<uintptr_t>(low) + bytes, noted = pthread_self();
        }
        pthread_attr_destroy(&attributes);
    }
    host_stack = reinterpret_cast<uintptr_t>(__builtin_frame_address(0)) - deepest_bytes;
    host_stack_bytes = end > host_stack ? end - host_stack : 0;
}

CUDA_ON_CPU_STATE bool launch_writes_output = false;  // perhaps: the launch has a pointer to one

template <class T>
static constexpr bool may_hold_pointers() {
    using Bare = typename std::remove_cv<T>::type;
    if constexpr (std::is_class<Bare>::value) return alignof(Bare) >= alignof(void*) && !IsVector<Bare>::value;
    else return std::is_pointer<Bare>::value;
}

// Each pointer among the arguments, so that an address can be told by the argument that led to it.
template <class T>
CUDA_ON_CPU_UNSEEN static void note_argument(const T& value, int number, int line) {
    if constexpr (std::is_pointer<T>::value) {
        using Item = typename std::remove_pointer<T>::type;
        unsigned item = 1;
        if constexpr (std::is_object<Item>::value) item = sizeof(Item);
        const auto address = reinterpret_cast<uintptr_t>(value);
        Region* region = region_at(address);
        if (address && !region) all_known = false;
        if (may_hold_pointers<Item>()) all_known = false;
        const bool is_data = std::is_object<Item>::value || std::is_void<Item>::value;
        if (address - host_stack < host_stack_bytes || (is_data && !region && in_library(address)))
            fail(cudaErrorLaunchFailure, true, "Host: the launch on line %d passes the address of a variable of the host as argument %d.",
                 line, number);
        if (!region && is_of_host(address))
            fail(cudaErrorLaunchFailure, true, "Host: the launch on line %d passes memory that the host allocated as argument %d.",
                 line, number);
        if (region) region->busy = line;
        if (region && is_output(*region) && !std::is_const<Item>::value) launch_writes_output = true;
        if (pointer_count < 16) pointers[pointer_count++] = {address, item, number};
    } else if constexpr (std::is_class<T>::value) {
        all_known = false;
    }
}

CUDA_ON_CPU_UNSEEN static bool wrote_past(size_t shared) {
    for (size_t i = shared; i < shared + canary_bytes; ++i)
        if (dynamic_shared[i] != canary) return true;
    return false;
}

CUDA_ON_CPU_STATE bool one_block_told = false;
constexpr unsigned long most_listed_launches = 16;

CUDA_ON_CPU_UNSEEN static void list_launch(const Config& config, size_t shared) {
    if (++traffic.launches <= most_listed_launches) {
        list("kernel %s\n", traffic.kernel);
        list("launch %d %u %u %u %u %zu %lu %lu %lu %lu\n", config.line, config.grid.x, config.grid.y, config.grid.z,
             config.block.x * config.block.y * config.block.z, shared, traffic.atomics, traffic.most, traffic.total, traffic.alone);
    }
    traffic.kernel = "";
    traffic.most = traffic.total = traffic.alone = 0;
}

CUDA_ON_CPU_UNSEEN static void run(const Config& config, Body body) {
    launched = &config;
    launch_line = config.line;
    gridDim = config.grid;
    blockDim = config.block;
    const int threads = config.block.x * config.block.y * config.block.z;
    memset(dynamic_shared + config.shared, canary, canary_bytes);
    remove_regions(Space::dynamic);
    const auto begin = reinterpret_cast<uintptr_t>(dynamic_shared);
    add_region({begin, begin + config.shared, 0, sizeof dynamic_shared - config.shared, "", "", 1, 0, 0, config.line,
                Space::dynamic, false});
    begin_launch_clocks();
    note_launch(clocks.launch, config.stream, config.line);
    traffic.on = threads >= lanes;
    pages_of_launch = 0;
    // Every second block runs its threads from the last to the first: a result that hangs on their order shows.
    bool backwards = launches++ & 1;
    for (blockIdx.z = 0; blockIdx.z < gridDim.z; ++blockIdx.z)
        for (blockIdx.y = 0; blockIdx.y < gridDim.y; ++blockIdx.y)
            for (blockIdx.x = 0; blockIdx.x < gridDim.x; ++blockIdx.x, backwards = !backwards) {
                forget(dynamic_shared, config.shared);
                for (int i = 0; i < file_shared_count; ++i) file_shared[i].renew();
                if (!run_block(body, threads, backwards)) return void(traffic.on = false);
                if (traffic.on) judge_traffic();
                if (traffic.counts) end_of_block(threads);
                traffic.on = false;
                if (!wrote_past(config.shared)) continue;
                return fail(cudaErrorLaunchFailure, true,
                            "The kernel launched on line %d wrote past its dynamic shared memory: the launch gives it %zu bytes, "
                            "as the third value between <<< and >>>.",
                            config.line, config.shared);
            }
    settle_launch();
    if (traffic.counts) list_launch(config, config.shared + block.static_shared);
    traffic.atomics = 0;
    if (config.grid.x * config.grid.y * config.grid.z == 1 && pages_of_launch > most_pages_of_a_block && !one_block_told) {
        one_block_told = true;
        remark(config.line, "This launch has one block, and goes through %d KiB of memory: on a GPU one of %d SMs works, and the others "
               "wait. Launch more blocks.", pages_of_launch * int(page_bytes / 1024), multiprocessors);
    }
}

// Ends a kernel that needs what is not simulated: the sentence of lacks.py, which also reads it.
[[maybe_unused]] static void lacks(const char* what, int line = __builtin_LINE()) {
    fail(cudaErrorLaunchFailure, true,
         "The simulator has no %s (line %d); on a GPU it will be judged; this says nothing about your work.", what, line);
    stop();
}

template <class Kernel, class... Arguments>
CUDA_ON_CPU_UNSEEN static void launch(Kernel kernel, Config config, Arguments... arguments) {
    if (block.running >= 0) return lacks("launches from a kernel", config.line);
    pthread_mutex_lock(&launching);
    if (traffic.plans && config.accepted()) {
        list_launch(config, config.shared);
    } else if (!errors.broken && config.accepted()) {
        all_known = regions_complete;
        int number = pointer_count = 0;
        launch_writes_output = false;
        note_stack();
        (note_argument(arguments, ++number, config.line), ...);
        auto call = [&]() CUDA_ON_CPU_UNSEEN { kernel(arguments...); };
        queue(config.stream, launch_writes_output, config.line);
        if (!errors.broken) run(config, {&call, [](void* object) { (*static_cast<decltype(call)*>(object))(); }});
        fflush(stdout);
    }
    pthread_mutex_unlock(&launching);
}

// The same for arguments in braces, whose types only the kernel's parameters tell.
template <class Kernel, class... Parameters>
struct Launch {
    Kernel kernel;
    Config config;
    CUDA_ON_CPU_UNSEEN void operator()(Parameters... arguments) const { launch(kernel, config, arguments...); }
};
template <class Kernel, class... Parameters>
static Launch<Kernel, Parameters...> launcher(void (*)(Parameters...), Kernel kernel, Config config) {
    return {kernel, config};
}

// The same for the addresses of the arguments.
template <class... Parameters, size_t... At>
static void enter_with(void (*kernel)(Parameters...), const Config& config, void** arguments, std::index_sequence<At...>) {
    launch([=](Parameters... values) { kernel(values...); }, config, *static_cast<Parameters*>(arguments[At])...);
}

CUDA_ON_CPU_UNSEEN static void trap(const char* what, int line) {
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
