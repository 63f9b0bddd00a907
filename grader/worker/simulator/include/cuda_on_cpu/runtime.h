// The calls of the CUDA runtime that a launcher makes. Host and device memory are one; everything is synchronous.
#pragma once
#pragma GCC system_header

#include <stdlib.h>

#include "launch.h"

enum cudaMemcpyKind {
    cudaMemcpyHostToHost,
    cudaMemcpyHostToDevice,
    cudaMemcpyDeviceToHost,
    cudaMemcpyDeviceToDevice,
    cudaMemcpyDefault,
};
enum cudaDeviceAttr {
    cudaDevAttrMaxThreadsPerBlock = 1,
    cudaDevAttrMaxSharedMemoryPerBlock = 8,
    cudaDevAttrWarpSize = 10,
    cudaDevAttrMultiProcessorCount = 16,
    cudaDevAttrMaxThreadsPerMultiProcessor = 39,
    cudaDevAttrComputeCapabilityMajor = 75,
    cudaDevAttrComputeCapabilityMinor,
    cudaDevAttrMaxSharedMemoryPerMultiprocessor = 81,
    cudaDevAttrMaxSharedMemoryPerBlockOptin = 97,
};
struct cudaDeviceProp {  // the limits are a compute capability 9.0's
    char name[256] = "the CPU";
    int multiProcessorCount = cuda_on_cpu::multiprocessors, warpSize = 32, maxThreadsPerBlock = cuda_on_cpu::max_threads;
    int major = 9, minor = 0, concurrentKernels = 1, regsPerBlock = 65536, regsPerMultiprocessor = 65536;
    int maxThreadsPerMultiProcessor = 2048, maxBlocksPerMultiProcessor = 32, memoryBusWidth = 0, l2CacheSize = 50 << 20;
    int maxThreadsDim[3] = {1024, 1024, 64}, maxGridSize[3] = {0x7fffffff, 65535, 65535};
    size_t totalGlobalMem = 1ul << 30, totalConstMem = 64 << 10, sharedMemPerBlock = cuda_on_cpu::default_shared_bytes;
    size_t sharedMemPerBlockOptin = cuda_on_cpu::max_shared_bytes, sharedMemPerMultiprocessor = 228 << 10;
};
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8, cudaFuncAttributePreferredSharedMemoryCarveout };
enum { cudaSharedmemCarveoutDefault = -1, cudaSharedmemCarveoutMaxShared = 100, cudaSharedmemCarveoutMaxL1 = 0 };

[[maybe_unused]] static cudaError_t cudaDeviceSynchronize() {
    cuda_on_cpu::all_done();
    cuda_on_cpu::host_waits();
    return cudaGetLastError();
}
[[maybe_unused]] static cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
    cuda_on_cpu::all_done();
    cuda_on_cpu::seen_by_host.add(cuda_on_cpu::seen_by(stream));
    return cudaGetLastError();
}

// Launchers size their grids by the number of SMs: as many as an H100 has, so that a grid of some blocks for each has more
// blocks than a block has threads.
[[maybe_unused]] static cudaError_t cudaGetDevice(int* device) { return *device = 0, cudaSuccess; }
[[maybe_unused]] static cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr which, int) {
    const cudaDeviceProp limits;
    switch (which) {
        case cudaDevAttrMaxThreadsPerBlock: return *value = limits.maxThreadsPerBlock, cudaSuccess;
        case cudaDevAttrMaxSharedMemoryPerBlock: return *value = limits.sharedMemPerBlock, cudaSuccess;
        case cudaDevAttrWarpSize: return *value = limits.warpSize, cudaSuccess;
        case cudaDevAttrMultiProcessorCount: return *value = limits.multiProcessorCount, cudaSuccess;
        case cudaDevAttrMaxThreadsPerMultiProcessor: return *value = limits.maxThreadsPerMultiProcessor, cudaSuccess;
        case cudaDevAttrComputeCapabilityMajor: return *value = limits.major, cudaSuccess;
        case cudaDevAttrComputeCapabilityMinor: return *value = limits.minor, cudaSuccess;
        case cudaDevAttrMaxSharedMemoryPerMultiprocessor: return *value = limits.sharedMemPerMultiprocessor, cudaSuccess;
        case cudaDevAttrMaxSharedMemoryPerBlockOptin: return *value = limits.sharedMemPerBlockOptin, cudaSuccess;
    }
    return cudaErrorInvalidValue;
}
[[maybe_unused]] static cudaError_t cudaGetDeviceProperties(cudaDeviceProp* found, int) {
    *found = cudaDeviceProp{};
    return cudaSuccess;
}

namespace cuda_on_cpu {
template <class T>
CUDA_ON_CPU_UNSEEN static cudaError_t allocate(T** pointer, size_t bytes, Space space, const char* name) {
    constexpr size_t guard = 4096;
    auto* memory = static_cast<char*>(aligned_alloc(256, 2 * guard + (bytes + 255) / 256 * 256));
    *pointer = nullptr;
    if (!memory) return cudaErrorMemoryAllocation;
    *pointer = reinterpret_cast<T*>(memory + guard);
    cuda_on_cpu::forget(*pointer, bytes);
    const auto begin = reinterpret_cast<uintptr_t>(*pointer);
    unsigned item = 1;
    if constexpr (std::is_object<T>::value) item = sizeof(T);
    add_region({begin, begin + bytes, guard, guard, name, "", item, 0, 0, 0, space, false});
    return cudaSuccess;
}
}  // namespace cuda_on_cpu

namespace cuda_on_cpu {
// Lists a call for which the host waits.
CUDA_ON_CPU_UNSEEN static void waiting(const char* name, int line) {
    if (traffic.counts) list("wait %d %s\n", line, name);
}
}  // namespace cuda_on_cpu

template <class T>
static cudaError_t cudaMalloc(T** pointer, size_t bytes, int line = __builtin_LINE()) {
    cuda_on_cpu::waiting("cudaMalloc", line);
    return cuda_on_cpu::allocate(pointer, bytes, cuda_on_cpu::Space::allocated, "cudaMalloc's memory");
}
[[maybe_unused]] static cudaError_t cudaFree(void* pointer, int line = __builtin_LINE()) {
    if (!pointer) return cudaSuccess;
    cuda_on_cpu::waiting("cudaFree", line);
    cuda_on_cpu::all_done();
    cuda_on_cpu::host_waits();
    using cuda_on_cpu::Space;
    for (Space space : {Space::allocated, Space::managed, Space::pinned})
        cuda_on_cpu::remove_regions(space, reinterpret_cast<uintptr_t>(pointer));
    free(static_cast<char*>(pointer) - 4096);
    return cudaSuccess;
}
[[maybe_unused]] CUDA_ON_CPU_UNSEEN static cudaError_t cudaMemset(void* to, int value, size_t bytes) {
    if (cuda_on_cpu::traffic.plans) return cudaSuccess;
    cuda_on_cpu::seen_by(nullptr);  // work on the default stream
    memset(to, value, bytes);
    return cudaSuccess;
}
[[maybe_unused]] static cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream = nullptr,
                                                    int line = __builtin_LINE()) {
    if (cuda_on_cpu::traffic.plans) return cudaSuccess;
    const cuda_on_cpu::Region* region = cuda_on_cpu::region_at(reinterpret_cast<uintptr_t>(to));
    cuda_on_cpu::queue(stream, region && is_output(*region), line);
    memset(to, value, bytes);
    return cudaSuccess;
}
[[maybe_unused]] CUDA_ON_CPU_UNSEEN static cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                                                                  int line = __builtin_LINE()) {
    if (kind != cudaMemcpyDeviceToDevice) cuda_on_cpu::waiting("cudaMemcpy", line);
    if (cuda_on_cpu::traffic.plans) return cudaSuccess;
    cuda_on_cpu::all_done();
    cuda_on_cpu::seen_by_host.add(cuda_on_cpu::seen_by(nullptr));
    memmove(to, from, bytes);
    return cudaSuccess;
}
// With pinned memory it ends later; with other memory of the host it ends before it returns.
[[maybe_unused]] CUDA_ON_CPU_UNSEEN static cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind,
                                                                       cudaStream_t stream = nullptr, int line = __builtin_LINE()) {
    if (cuda_on_cpu::traffic.plans) return cudaSuccess;
    const cuda_on_cpu::Region* written = cuda_on_cpu::region_at(reinterpret_cast<uintptr_t>(to));
    cuda_on_cpu::queue(stream, written && is_output(*written), line);
    if (!written) cuda_on_cpu::seen_by_host.add(cuda_on_cpu::seen_by(stream));  // it returns when the host has it
    memmove(to, from, bytes);
    for (const void* each : {static_cast<const void*>(to), from})
        if (cuda_on_cpu::Region* region = cuda_on_cpu::region_at(reinterpret_cast<uintptr_t>(each))) {
            region->busy = line;
            if (each == to) region->changed = line;
        }
    return cudaSuccess;
}
template <class T>
CUDA_ON_CPU_UNSEEN static cudaError_t cudaMemcpyToSymbol(T& symbol, const void* from, size_t bytes, size_t offset = 0,
                                      cudaMemcpyKind = cudaMemcpyHostToDevice) {
    if (offset + bytes > sizeof symbol) return cudaErrorInvalidValue;
    cuda_on_cpu::seen_by(nullptr);
    memcpy(reinterpret_cast<char*>(const_cast<typename std::remove_const<T>::type*>(&symbol)) + offset, from, bytes);
    return cudaSuccess;
}
template <class T>
CUDA_ON_CPU_UNSEEN static cudaError_t cudaMemcpyFromSymbol(void* to, const T& symbol, size_t bytes, size_t offset = 0,
                                        cudaMemcpyKind = cudaMemcpyDeviceToHost) {
    if (offset + bytes > sizeof symbol) return cudaErrorInvalidValue;
    cuda_on_cpu::all_done();
    cuda_on_cpu::seen_by_host.add(cuda_on_cpu::seen_by(nullptr));
    memcpy(to, reinterpret_cast<const char*>(&symbol) + offset, bytes);
    return cudaSuccess;
}
template <class T, class Symbol>
static cudaError_t cudaGetSymbolAddress(T** pointer, Symbol& symbol) {
    return *pointer = reinterpret_cast<T*>(&const_cast<typename std::remove_cv<Symbol>::type&>(symbol)), cudaSuccess;
}
template <class Kernel>
static cudaError_t cudaFuncSetAttribute(Kernel*, cudaFuncAttribute which, int bytes) {
    if (which == cudaFuncAttributePreferredSharedMemoryCarveout) return cudaSuccess;
    if (bytes < 0 || static_cast<size_t>(bytes) > cuda_on_cpu::max_shared_bytes) return cudaErrorInvalidValue;
    cuda_on_cpu::allowed_shared_bytes = max(cuda_on_cpu::default_shared_bytes, static_cast<size_t>(bytes));
    return cudaSuccess;
}

// The address of the kernel has its type here: `translate` removes a cast to `void*`.
template <class... Parameters>
static cudaError_t cudaLaunchKernel(void (*kernel)(Parameters...), dim3 grid, dim3 block, void** arguments, size_t shared = 0,
                                    cudaStream_t stream = nullptr, int line = __builtin_LINE()) {
    const cuda_on_cpu::Config config(grid, block, shared, stream, line);
    cuda_on_cpu::enter_with(kernel, config, arguments, std::index_sequence_for<Parameters...>());
    return cudaPeekAtLastError();
}
[[maybe_unused]] static cudaError_t cudaLaunchKernel(const void*, dim3, dim3, void**, size_t = 0, cudaStream_t = nullptr,
                                                     int line = __builtin_LINE()) {
    cuda_on_cpu::lacks("`cudaLaunchKernel` for a kernel that is stored as a `void*`", line);
    return cudaErrorLaunchFailure;
}
