// Streams, events and clocks. Every call has ended when it returns, so that waiting only counts, in joins.h.
#pragma once
#pragma GCC system_header

#include <time.h>

#include "runtime.h"

typedef struct CUevent_st {
    double seconds;
    cuda_on_cpu::Seen seen;
}* cudaEvent_t;
enum { cudaStreamDefault, cudaStreamNonBlocking };
enum { cudaEventDefault, cudaEventBlockingSync, cudaEventDisableTiming };
enum { cudaHostRegisterDefault, cudaHostRegisterPortable, cudaHostRegisterMapped };
enum { cudaHostAllocDefault, cudaHostAllocPortable, cudaHostAllocMapped, cudaHostAllocWriteCombined = 4 };
#define cudaStreamLegacy (reinterpret_cast<cudaStream_t>(1))
#define cudaStreamPerThread (reinterpret_cast<cudaStream_t>(2))
enum { cudaMemAttachGlobal = 1, cudaMemAttachHost };
enum cudaFuncCache { cudaFuncCachePreferNone, cudaFuncCachePreferShared, cudaFuncCachePreferL1, cudaFuncCachePreferEqual };

namespace cuda_on_cpu {
static inline double now_s() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}
}  // namespace cuda_on_cpu

[[maybe_unused]] static long long clock64() { return static_cast<long long>(1e9 * cuda_on_cpu::now_s()); }

[[maybe_unused]] static cudaError_t cudaStreamCreate(cudaStream_t* stream) { return *stream = cuda_on_cpu::new_stream(true), cudaSuccess; }
[[maybe_unused]] static cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
    return *stream = cuda_on_cpu::new_stream(!(flags & cudaStreamNonBlocking)), cudaSuccess;
}
[[maybe_unused]] static cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }
[[maybe_unused]] static cudaError_t cudaStreamQuery(cudaStream_t stream) { return cudaStreamSynchronize(stream); }
[[maybe_unused]] CUDA_ON_CPU_UNSEEN static cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned = 0) {
    if (!event) return cudaErrorInvalidValue;
    cuda_on_cpu::seen_by(stream).add(event->seen);
    return cudaSuccess;
}

[[maybe_unused]] static cudaError_t cudaEventCreate(cudaEvent_t* event) { return *event = new CUevent_st{}, cudaSuccess; }
[[maybe_unused]] static cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) { return cudaEventCreate(event); }
[[maybe_unused]] static cudaError_t cudaEventDestroy(cudaEvent_t event) {
    delete event;
    return cudaSuccess;
}
[[maybe_unused]] static cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream = nullptr) {
    if (!event) return cudaErrorInvalidValue;
    event->seconds = cuda_on_cpu::now_s();
    event->seen = cuda_on_cpu::seen_by(stream);
    return cudaSuccess;
}
[[maybe_unused]] static cudaError_t cudaEventSynchronize(cudaEvent_t event) {
    if (!event) return cudaErrorInvalidValue;
    cuda_on_cpu::all_done();
    cuda_on_cpu::seen_by_host.add(event->seen);
    return cudaGetLastError();
}
[[maybe_unused]] static cudaError_t cudaEventQuery(cudaEvent_t event) { return cudaEventSynchronize(event); }
[[maybe_unused]] static cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t start, cudaEvent_t end) {
    *ms = static_cast<float>(1e3 * (end->seconds - start->seconds));
    return cudaSuccess;
}

[[maybe_unused]] static cudaError_t cudaGetDeviceCount(int* count) { return *count = 1, cudaSuccess; }
[[maybe_unused]] static cudaError_t cudaSetDevice(int device) { return device ? cudaErrorInvalidValue : cudaSuccess; }
template <class T>
static cudaError_t cudaMallocManaged(T** pointer, size_t bytes, unsigned = cudaMemAttachGlobal) {
    return cuda_on_cpu::allocate(pointer, bytes, cuda_on_cpu::Space::managed, "cudaMallocManaged's memory");
}
template <class T>
static cudaError_t cudaMallocHost(T** pointer, size_t bytes, unsigned = 0) {
    return cuda_on_cpu::allocate(pointer, bytes, cuda_on_cpu::Space::pinned, "cudaMallocHost's memory");
}
template <class T>
static cudaError_t cudaHostAlloc(T** pointer, size_t bytes, unsigned) {
    return cuda_on_cpu::allocate(pointer, bytes, cuda_on_cpu::Space::pinned, "cudaHostAlloc's memory");
}
[[maybe_unused]] static cudaError_t cudaHostRegister(void* memory, size_t bytes, unsigned) {
    const auto begin = reinterpret_cast<uintptr_t>(memory);
    cuda_on_cpu::add_region({begin, begin + bytes, 0, 0, "cudaHostRegister's memory", "", 1, 0, 0, 0, cuda_on_cpu::Space::pinned, false});
    return cudaSuccess;
}
[[maybe_unused]] static cudaError_t cudaHostUnregister(void* memory) {
    cuda_on_cpu::all_done();
    cuda_on_cpu::remove_regions(cuda_on_cpu::Space::pinned, reinterpret_cast<uintptr_t>(memory));
    return cudaSuccess;
}
template <class T>
static cudaError_t cudaHostGetDevicePointer(T** pointer, void* of_host, unsigned) {
    return *pointer = static_cast<T*>(of_host), cudaSuccess;
}
template <class T>
static cudaError_t cudaMallocAsync(T** pointer, size_t bytes, cudaStream_t) { return cudaMalloc(pointer, bytes); }
[[maybe_unused]] static cudaError_t cudaFreeHost(void* pointer) { return cudaFree(pointer); }
[[maybe_unused]] static cudaError_t cudaFreeAsync(void* pointer, cudaStream_t) { return cudaFree(pointer); }
[[maybe_unused]] CUDA_ON_CPU_UNSEEN static cudaError_t cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                                                 size_t height, cudaMemcpyKind) {
    cuda_on_cpu::seen_by_host.add(cuda_on_cpu::seen_by(nullptr));
    for (size_t row = 0; row < height; ++row)
        memmove(static_cast<char*>(to) + row * to_pitch, static_cast<const char*>(from) + row * from_pitch, width);
    return cudaSuccess;
}
[[maybe_unused]] CUDA_ON_CPU_UNSEEN static cudaError_t cudaMemset2D(void* to, size_t pitch, int value, size_t width, size_t height) {
    cuda_on_cpu::seen_by(nullptr);
    for (size_t row = 0; row < height; ++row) memset(static_cast<char*>(to) + row * pitch, value, width);
    return cudaSuccess;
}
template <class T>
static cudaError_t cudaMallocPitch(T** pointer, size_t* pitch, size_t width, size_t height) {
    *pitch = (width + 511) / 512 * 512;
    return cudaMalloc(pointer, *pitch * height);
}
template <class Kernel>
static cudaError_t cudaFuncSetCacheConfig(Kernel*, cudaFuncCache) { return cudaSuccess; }
// As many blocks as their threads allow: what registers and shared memory allow is not known here.
template <class Kernel>
static cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, Kernel*, int threads, size_t) {
    const cudaDeviceProp limits;
    if (threads <= 0 || threads > limits.maxThreadsPerBlock) return cudaErrorInvalidValue;
    *blocks = min(limits.maxThreadsPerMultiProcessor / threads, limits.maxBlocksPerMultiProcessor);
    return cudaSuccess;
}
template <class Kernel>
static cudaError_t cudaOccupancyMaxPotentialBlockSize(int* blocks, int* threads, Kernel*, size_t = 0, int most = 0) {
    const cudaDeviceProp limits;
    *threads = most ? most : limits.maxThreadsPerBlock;
    *blocks = limits.multiProcessorCount * (limits.maxThreadsPerMultiProcessor / *threads);
    return cudaSuccess;
}
